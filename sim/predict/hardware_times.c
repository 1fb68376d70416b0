/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hardware_times.c - see hardware_times.h.
 *
 * Latencies and shares of bandwidths of collectives are those of NCCL's src/graph/tuning.cc (commit 01afd20a): a ring or, for an
 * all-reduce, a tree, with the protocol LL or Simple, whatever is fastest. Its times in microseconds: the base, then for each
 * step over NVLink and over the network. NVLink joins ranks in the order of their numbers.
 */
#include "hardware_times.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "base/units.h"
#include "machine/program.h"
#include "plan/blocks.h"
#include "base/list_key.h"

struct timing_plan {
    struct plan *plan;
    const struct hardware *hardware;
    const struct operator_times *measured;
    struct operator_times near; /* products that timing_near_ns has looked for */
    struct hardware_times *out;
    struct blocks blocks; /* of more ranks than the plan has */
    struct diag *diag;
    enum status status;
};

/* The figure; 0 where it is not known, which is an error. */
static double timing_figure(struct timing_plan *timing, const struct amount *amount,
                            const char *key)
{
    if (timing->status == STATUS_OK)
        timing->status = hardware_need(timing->hardware, amount, key, timing->diag);
    return amount->given ? (double)amount->value : 1;
}

static double timing_reached(const struct timing_plan *timing)
{
    const struct share *reached = &timing->hardware->reached;
    return reached->given && reached->millionths > 0 ? reached->millionths / (double)SHARE_WHOLE
                                                     : 1;
}

static void timing_put(struct timing_plan *timing, struct host_op *op, double ns,
                       enum time_source source)
{
    if (op->time_ns > 0)
        source = TIME_PLAN;
    else
        op->time_ns = (int64_t)fmin(ceil(ns), (double)PLAN_MOST_NS);
    timing->out->of[source].ns += op->time_ns;
    timing->out->of[source].count++;
}

/* ---- kernels and copies ------------------------------------------------------------------------ */

static double timing_bytes_ns(struct timing_plan *timing, int64_t bytes)
{
    const double rate = timing_figure(timing, &timing->hardware->bandwidth, "bandwidth");
    return 1e9 * (double)bytes / (rate * timing_reached(timing));
}

static double timing_flops_ns(struct timing_plan *timing, double flops, enum rate rate)
{
    static const char *const keys[] = {RATE_LIST(LIST_KEY)};
    return 1e9 * flops /
           (timing_figure(timing, &timing->hardware->flops[rate], keys[rate]) *
            timing_reached(timing));
}

/* Of a product of matrices, whose numbers are of `rate`. */
static double timing_product_ns(struct timing_plan *timing, const struct operator_product *of,
                                enum rate rate)
{
    const double numbers = of->batch * (of->m * of->k + of->k * of->n + of->m * of->n);
    const double size = strcmp(of->type, "f64") == 0   ? 8
                        : strcmp(of->type, "f32") == 0 ? 4
                        : strstr(of->type, "16")       ? 2
                                                       : 1;
    return fmax(timing_bytes_ns(timing, (int64_t)(numbers * size)),
                timing_flops_ns(timing, 2 * of->batch * of->m * of->n * of->k, rate));
}

/* The measured product that is nearest in the logarithms of its sizes, all of which differ by less than a factor of 16 together;
   0: there is none. */
static double timing_near_ns(struct timing_plan *timing, const struct operator_product *wanted,
                             enum rate rate)
{
    const struct operator_times *measured = timing->measured;
    double best = log(16), ns = 0;
    for (size_t i = 0; i < measured->count; i++) {
        struct operator_product row;
        if (!operator_product_of(measured->items[i].name, measured->items[i].shapes, &row) ||
            strcmp(row.type, wanted->type) != 0)
            continue;
        const double distance = fabs(log(row.batch / wanted->batch)) +
                                fabs(log(row.m / wanted->m)) + fabs(log(row.n / wanted->n)) +
                                fabs(log(row.k / wanted->k));
        if (distance >= best)
            continue;
        best = distance;
        ns = measured->items[i].device_ns / (double)measured->items[i].count *
             timing_product_ns(timing, wanted, rate) / timing_product_ns(timing, &row, rate);
    }
    return ns;
}

/* True if its time was measured, and is given. */
static bool timing_measured(struct timing_plan *timing, struct host_op *op)
{
    const struct op_cost *cost = &host_op_details(op)->cost;
    struct operator_product product;
    if (!timing->measured || !cost->shapes || !op->name)
        return false;
    const struct operator_time *found =
        operator_times_find(timing->measured, op->name, cost->shapes);
    if (found && found->host_count > 0 && op->host_time_ns == 0) {
        op->host_time_ns = (int64_t)(found->host_ns / (double)found->host_count);
        timing->out->host_count++;
    }
    if (found)
        timing_put(timing, op, found->device_ns / (double)found->count, TIME_MEASURED);
    if (found || !operator_product_of(op->name, cost->shapes, &product))
        return found != NULL;
    const struct operator_time *near = operator_times_find(&timing->near, op->name, cost->shapes);
    const double ns =
        near ? near->device_ns / (double)near->count : timing_near_ns(timing, &product, cost->rate);
    if (!near &&
        !operator_times_add(&timing->near, &timing->plan->arena, op->name, cost->shapes, ns, -1))
        timing->status = diag_no_memory(timing->diag);
    if (ns > 0)
        timing_put(timing, op, ns, TIME_NEAR);
    return ns > 0;
}

static void timing_launch(struct timing_plan *timing, struct host_op *op)
{
    const struct op_cost *cost = &host_op_details(op)->cost;
    if (timing_measured(timing, op))
        return;
    const double shortest = timing_figure(timing, &timing->hardware->kernel, "kernel");
    const double bytes = timing_bytes_ns(timing, cost->bytes);
    const double flops =
        cost->flops == 0 ? 0 : timing_flops_ns(timing, (double)cost->flops, cost->rate);
    const double longest = fmax(shortest, fmax(bytes, flops));
    timing_put(timing, op, longest,
               cost->bytes == 0 && cost->flops == 0 ? TIME_UNKNOWN
               : longest == shortest                ? TIME_SHORTEST
               : longest == flops                   ? TIME_FLOPS
                                                    : TIME_BYTES);
}

static void timing_copy(struct timing_plan *timing, struct host_op *op)
{
    const double shortest = timing_figure(timing, &timing->hardware->kernel, "kernel");
    if (op->direction == DIRECTION_D2D) {
        timing_put(timing, op, fmax(shortest, timing_bytes_ns(timing, 2 * op->bytes)), TIME_BYTES);
        return;
    }
    const double rate = timing_figure(timing, &timing->hardware->copy, "copy");
    timing_put(timing, op, shortest + 1e9 * (double)op->bytes / rate, TIME_COPY);
}

/* ---- collectives ------------------------------------------------------------------------------- */

/* A communicator's members, those that the plan has, and in how many domains of NVLink they are. */
struct timing_group {
    double ranks, recorded, domains;
};

/* Its number among all: groups that are no neighbours come to lie further apart. */
static int timing_rank(const struct timing_plan *timing, int rank)
{
    const struct blocks *blocks = &timing->blocks;
    return blocks->strided ? blocks_place(blocks, rank) * (timing->out->ranks / blocks->size) +
                                 blocks_of(blocks, rank)
                           : rank;
}

static struct timing_group timing_group_of(struct timing_plan *timing, int comm)
{
    const struct plan *plan = timing->plan;
    const struct comm *members = comm >= 0 ? &plan->comms[comm] : NULL;
    const int domain = (int)timing_figure(timing, &timing->hardware->domain, "domain");
    const size_t count = members && members->members ? members->member_count : (size_t)plan->ranks;
    const int ranks = timing->out->ranks;
    int domains = 0;
    /* The whole job, or the same places of all its groups, of which there are more than recorded. */
    if (count == (size_t)plan->ranks ||
        (ranks > plan->ranks && blocks_share(&timing->blocks, members))) {
        const double all = (double)count * ranks / plan->ranks;
        const double over = timing->blocks.strided ? all : ranks; /* that they lie among */
        return (struct timing_group){all, (double)count, fmin(all, ceil(over / domain))};
    }
    for (size_t i = 0; i < count; i++)
        domains += i == 0 || timing_rank(timing, members->members[i]) / domain !=
                                 timing_rank(timing, members->members[i - 1]) / domain;
    return (struct timing_group){(double)count, (double)count, domains};
}

enum { PROTOCOL_LL, PROTOCOL_SIMPLE, PROTOCOLS };
static const struct {
    double ring_base, ring_inside, ring_outside, tree_base, tree_inside, tree_outside;
} protocol_us[PROTOCOLS] = {
    [PROTOCOL_LL] = {3.6, .47, 2.7, 4.4, .52, 5.0}, [PROTOCOL_SIMPLE] = {8.4, 3.4, 9.6, 0, 28, 50}};

/* Bytes a second of a ring over all ranks: between domains each rank has a port of its own. */
static double timing_bus(struct timing_plan *timing, const struct timing_group *group)
{
    const double inside = timing_figure(timing, &timing->hardware->nvlink, "nvlink");
    if (group->domains <= 1)
        return inside;
    const double port = timing_figure(timing, &timing->hardware->network, "network");
    return fmin(inside, port * group->ranks / group->domains);
}

static double timing_ring_ns(const struct timing_group *group, int protocol, double steps,
                             double outside, double bytes, double bus)
{
    const double share = protocol == PROTOCOL_SIMPLE ? 1 : group->domains > 1 ? 1.0 / 4 : 1.0 / 3;
    const double latency_us = protocol_us[protocol].ring_base +
                              (steps - outside) * protocol_us[protocol].ring_inside +
                              outside * protocol_us[protocol].ring_outside;
    return 1e3 * latency_us + 1e9 * bytes * steps / group->ranks / (bus * share);
}

static double timing_tree_ns(const struct timing_group *group, int protocol, double bytes,
                             double bus)
{
    const double share = protocol == PROTOCOL_SIMPLE ? .9 : .9 / 3.8;
    const double latency_us =
        protocol_us[protocol].tree_base +
        2 * ((group->ranks / group->domains - 1) * protocol_us[protocol].tree_inside +
             log2(group->domains) * protocol_us[protocol].tree_outside);
    return 1e3 * latency_us + 1e9 * bytes / (bus * share * .5);
}

/* An all-to-all sends each peer its part; what is outside of the domain goes by the network. */
static double timing_all_to_all_ns(struct timing_plan *timing, const struct timing_group *group,
                                   double bytes)
{
    const double peers = group->ranks - 1, inside = group->ranks / group->domains - 1;
    const double nvlink = timing_figure(timing, &timing->hardware->nvlink, "nvlink");
    double ns = 1e9 * bytes * inside / group->ranks / nvlink;
    if (group->domains > 1)
        ns = fmax(ns, 1e9 * bytes * (peers - inside) / group->ranks /
                          timing_figure(timing, &timing->hardware->network, "network"));
    return ns + 1e3 * protocol_us[PROTOCOL_SIMPLE].ring_base;
}

/* `bytes` as the plan has them: of an all-gather those that each rank gives, of a reduce-scatter those that it gets. What all
   have together stays the same where few ranks stand for many. */
static double timing_collective_ns(struct timing_plan *timing, enum collective_kind kind, int comm,
                                   int64_t given)
{
    const struct timing_group group = timing_group_of(timing, comm);
    const double bus = timing_bus(timing, &group), n = group.ranks, d = group.domains;
    const bool parts = kind == COLLECTIVE_ALL_GATHER || kind == COLLECTIVE_REDUCE_SCATTER;
    const double together = (double)given * (parts ? group.recorded : 1);
    double best = INFINITY;
    if (n <= 1)
        return timing_figure(timing, &timing->hardware->kernel, "kernel");
    if (kind == COLLECTIVE_ALL_TO_ALL)
        return timing_all_to_all_ns(timing, &group, together);
    const double times = kind == COLLECTIVE_ALL_REDUCE || kind == COLLECTIVE_BARRIER ? 2 : 1;
    const bool is_chain = kind == COLLECTIVE_BROADCAST;
    for (int protocol = 0; protocol < PROTOCOLS; protocol++) {
        const double steps = is_chain ? n : times * (n - 1),
                     outside = is_chain ? d : times * (d - 1);
        best = fmin(best, timing_ring_ns(&group, protocol, steps, outside, together, bus));
        if (times == 2)
            best = fmin(best, timing_tree_ns(&group, protocol, together, bus));
    }
    return best;
}

static double timing_message_ns(struct timing_plan *timing, int rank, int peer, int64_t bytes)
{
    const int domain = (int)timing_figure(timing, &timing->hardware->domain, "domain");
    const bool inside = timing_rank(timing, rank) / domain == timing_rank(timing, peer) / domain;
    const double rate = inside ? timing_figure(timing, &timing->hardware->nvlink, "nvlink")
                               : timing_figure(timing, &timing->hardware->network, "network");
    const double latency_us = protocol_us[PROTOCOL_SIMPLE].ring_base +
                              (inside ? protocol_us[PROTOCOL_SIMPLE].ring_inside
                                      : protocol_us[PROTOCOL_SIMPLE].ring_outside);
    return 1e3 * latency_us + 1e9 * (double)bytes / rate;
}

/* What it sends and what it receives go at the same time, its collectives one behind the other. */
static void timing_op_group(struct timing_plan *timing, struct host_op *op, int rank)
{
    double sent = 0, received = 0, collectives = 0;
    if (timing->out->ranks != timing->plan->ranks &&
        blocks_exchange(&timing->blocks, timing->plan, op)) {
        for (size_t i = 0; i < op->part_count; i++)
            sent += op->parts[i].send ? (double)op->parts[i].bytes : 0;
        const struct timing_group group = timing_group_of(timing, op->comm);
        timing_put(timing, op, timing_all_to_all_ns(timing, &group, sent), TIME_NCCL);
        return;
    }
    for (size_t i = 0; i < op->part_count; i++) {
        const struct p2p_part *part = &op->parts[i];
        const int comm = part->comm >= 0 ? part->comm : op->comm;
        if (part->is_collective)
            collectives += timing_collective_ns(timing, part->collective, comm, part->bytes);
        else
            *(part->send ? &sent : &received) +=
                timing_message_ns(timing, rank, part->peer, part->bytes);
    }
    timing_put(timing, op, collectives + fmax(sent, received), TIME_NCCL);
}

/* ---- the plan ---------------------------------------------------------------------------------- */

static void timing_op(struct timing_plan *timing, struct host_op *op, int rank, bool of_host)
{
    if (op->kind == OP_LAUNCH && !host_op_is_graph(op) && op->body_count == 0)
        timing_launch(timing, op);
    else if (op->kind == OP_COPY)
        timing_copy(timing, op);
    else if (op->kind == OP_COLLECTIVE)
        timing_put(timing, op, timing_collective_ns(timing, op->collective, op->comm, op->bytes),
                   TIME_NCCL);
    else if (op->kind == OP_GROUP)
        timing_op_group(timing, op, rank);
    else if (op->kind != OP_LAUNCH)
        return;
    if (of_host && op->host_time_ns == 0)
        op->host_time_ns = (int64_t)timing_figure(timing, &timing->hardware->launch, "launch");
}

enum status hardware_times_set(struct plan *plan, const struct hardware *hardware,
                               const struct operator_times *measured, int ranks,
                               struct hardware_times *out, struct diag *diag)
{
    struct timing_plan timing = {.plan = plan,
                                 .hardware = hardware,
                                 .measured = measured->count > 0 ? measured : NULL,
                                 .out = out,
                                 .diag = diag};
    *out = (struct hardware_times){.recorded = plan->ranks, .ranks = ranks ? ranks : plan->ranks};
    if (out->ranks != plan->ranks) {
        enum status status = blocks_find(plan, ranks, &timing.blocks, diag);
        if (status != STATUS_OK)
            return status;
        out->group = timing.blocks.size;
        out->strided = timing.blocks.strided;
    }
    for (size_t t = 0; t < plan->thread_count; t++)
        for (size_t i = 0; i < plan->threads[t].op_count; i++)
            timing_op(&timing, &plan->threads[t].ops[i], plan->threads[t].rank, true);
    for (size_t g = 0; g < plan->graph_count; g++)
        for (size_t i = 0; i < plan->graphs[g].op_count; i++)
            timing_op(&timing, &plan->graphs[g].ops[i], 0, false);
    blocks_fini(&timing.blocks);
    return timing.status;
}

void hardware_times_report(const struct hardware_times *times, const struct hardware *hardware,
                           FILE *out)
{
    static const char *const about[] = {TIME_SOURCE_LIST(LIST_KEY)};
    double all = 0;
    for (int i = 0; i < TIME_SOURCES; i++)
        all += (double)times->of[i].ns;
    const double measured = (double)(times->of[TIME_MEASURED].ns + times->of[TIME_NEAR].ns);
    if (measured > 0)
        fprintf(out,
                "times   %.0f%% from measured operators, the rest from the peak figures of %s\n",
                100 * measured / all, hardware->name);
    else
        fprintf(out, "times   from the peak figures of %s, not measured: no kernel is faster\n",
                hardware->name);
    for (int i = 0; i < TIME_SOURCES; i++) {
        char text[UNITS_TEXT];
        units_show_time((double)times->of[i].ns, text);
        if (times->of[i].count > 0)
            fprintf(out, "  %5.1f%%  %10s  %7zu operations  %s\n",
                    all > 0 ? 100 * (double)times->of[i].ns / all : 0, text, times->of[i].count,
                    about[i]);
    }
    if (times->host_count > 0)
        fprintf(out, "  for %zu operation%s the host's time is measured, too\n", times->host_count,
                units_plural(times->host_count));
    if (times->ranks > times->recorded)
        fprintf(out,
                "  the %d recorded ranks stand for %d, and communicators%s have as many times more "
                "members; what all-gathers and\n"
                "  reduce-scatters move together stays, kernels and memory of a rank are as "
                "recorded; 'swsim verify --ranks=%d' proves them\n",
                times->recorded, times->ranks, times->group > 1 ? " across their groups" : "",
                times->ranks);
    if (times->ranks > times->recorded && times->group > 1)
        fprintf(out, "  groups of %d ranks, which %s, stay as they are\n", times->group,
                times->strided ? "are not neighbours" : "are neighbours");
}

/* ---- steps ------------------------------------------------------------------------------------- */

static bool is_step_mark(const struct program *program, const struct op *op)
{
    return op->kind == OP_HOST && op->name >= 0 &&
           strcmp(program->names.items[op->name], PLAN_STEP) == 0;
}

enum status hardware_steps_begin(void *context, const struct program *program, struct diag *diag)
{
    struct hardware_steps *steps = context;
    if (steps->program)
        return STATUS_OK;
    steps->program = program;
    steps->step_of = malloc((program->op_count + 1) * sizeof *steps->step_of);
    if (!steps->step_of)
        return diag_no_memory(diag);
    for (size_t i = 0; i < program->op_count; i++)
        steps->step_of[i] = -1;
    for (size_t b = 0; b < program->body_count; b++) {
        int step = 0;
        const struct body *body = &program->bodies[b];
        for (int i = 0; i < body->count; i++) {
            steps->step_of[body->first + i] = step;
            step += is_step_mark(program, &program->ops[body->first + i]);
        }
        /* Behind the last mark, and of threads without one: of none. */
        for (int i = 0; i < body->count; i++)
            if (steps->step_of[body->first + i] == step)
                steps->step_of[body->first + i] = -1;
        steps->count = step > steps->count ? step : steps->count;
    }
    steps->ends_ns = calloc((size_t)steps->count + 1, sizeof *steps->ends_ns);
    return steps->ends_ns ? STATUS_OK : diag_no_memory(diag);
}

bool hardware_steps_work(void *context, const struct simulate_span *span)
{
    struct hardware_steps *steps = context;
    const int step = span->op >= 0 && steps->step_of ? steps->step_of[span->op] : -1;
    if (step >= 0 && span->end_ns > steps->ends_ns[step])
        steps->ends_ns[step] = span->end_ns;
    return true;
}

void hardware_steps_fini(struct hardware_steps *steps)
{
    free(steps->step_of);
    free(steps->ends_ns);
}

/* Sorted; the caller frees them. */
static int64_t *hardware_steps_durations(const struct hardware_steps *steps)
{
    int64_t *durations = malloc((size_t)(steps->count + 1) * sizeof *durations);
    for (int i = 1; durations && i < steps->count; i++)
        durations[i - 1] = steps->ends_ns[i] - steps->ends_ns[i - 1];
    if (durations && steps->count > 1)
        sort_i64(durations, (size_t)steps->count - 1);
    return durations;
}

int64_t hardware_steps_median(const struct hardware_steps *steps)
{
    int64_t *durations = steps->count > 1 ? hardware_steps_durations(steps) : NULL;
    const int64_t median = durations ? durations[(steps->count - 1) / 2] : -1;
    free(durations);
    return median;
}

void hardware_steps_report(const struct hardware_steps *steps, FILE *out)
{
    int64_t *durations = steps->count > 1 ? hardware_steps_durations(steps) : NULL;
    char median[UNITS_TEXT], least[UNITS_TEXT], most[UNITS_TEXT];
    if (!durations) {
        fprintf(out, "step    not known: the recording has fewer than two steps of an optimizer\n");
        return;
    }
    units_show_time((double)durations[(steps->count - 1) / 2], median);
    units_show_time((double)durations[0], least);
    units_show_time((double)durations[steps->count - 2], most);
    fprintf(out, "step    %s, the median of %d steps after the first; they take %s to %s\n", median,
            steps->count - 1, least, most);
    free(durations);
}
