/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steady.c - see steady.h: the steady state of an event graph, which is its maximum cycle ratio, and that of a run that
 * comes back to an earlier state.
 */
#include "steady.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <inttypes.h>
#include <string.h>

#include "base/integers.h"
#include "observed_event_graph.h"
#include "enabling_steps.h"
#include "sim/engine/sharing.h"
#include "sim/engine/simulate.h"

void steady_set(struct steady *steady, int64_t ns, int64_t iterations)
{
    assert(ns >= 0 && iterations > 0);
    int64_t divisor = integers_gcd(ns, iterations);
    steady->kind = STEADY_EXACT;
    steady->num_ns = ns / divisor;
    steady->den = iterations / divisor;
}

void steady_add(struct steady *steady, const struct steady_part *part)
{
    struct steady_part *last = steady->part_count ? &steady->parts[steady->part_count - 1] : NULL;
    if (last && last->kind == part->kind && last->rank == part->rank && last->task == part->task)
        last->ns += part->ns;
    else
        steady->parts[steady->part_count++] = *part;
}

/* The cycle in words begins at the driver if it is on it, else at the least event. */
static int steady_first_edge(const struct event_graph *graph, const struct ratio_edge *edges,
                             const struct cycle_ratio *ratio)
{
    int first = 0;
    for (int i = 1; i < ratio->length; i++)
        if (edges[ratio->cycle[i]].from < edges[ratio->cycle[first]].from)
            first = i;
    for (int i = 0; i < ratio->length; i++)
        if (graph->events[edges[ratio->cycle[i]].from].kind == EVENT_DRIVER)
            return i;
    return first;
}

/* Operations without a time are left out, except from a deadlock. */
static enum status steady_list_parts(struct steady *steady, const struct event_graph *graph,
                                     const struct ratio_edge *edges,
                                     const struct cycle_ratio *ratio, struct diag *diag)
{
    int first = steady_first_edge(graph, edges, ratio);
    steady->parts = calloc((unsigned)ratio->length, sizeof *steady->parts);
    if (!steady->parts)
        return diag_no_memory(diag);
    for (int i = 0; i < ratio->length; i++) {
        const struct ratio_edge *edge = &edges[ratio->cycle[(first + i) % ratio->length]];
        const struct event_graph_event *event = &graph->events[edge->from];
        struct steady_part part = {event->kind, event->rank, event->task, edge->weight_ns};
        if (ratio->kind == RATIO_FOUND && part.ns == 0 && part.kind != EVENT_DRIVER)
            continue;
        steady_add(steady, &part);
    }
    return STATUS_OK;
}

static enum status steady_describe(struct steady *steady, const struct event_graph *graph,
                                   const struct ratio_edge *edges, const struct cycle_ratio *ratio,
                                   struct diag *diag)
{
    if (ratio->kind == RATIO_FOUND) {
        steady_set(steady, ratio->weight_ns, ratio->height);
        steady->iterations = ratio->height;
    } else {
        assert(ratio->kind == RATIO_DEADLOCK); /* the driver alone is a cycle */
        steady->kind = STEADY_DEADLOCK;
    }
    return steady_list_parts(steady, graph, edges, ratio, diag);
}

/* In the steady state all edges of events exist. Returns the number of those kept. */
static int drop_spare_edges(const struct event_graph *graph, struct ratio_edge *out)
{
    int kept = 0;
    for (int e = 0; e < graph->edge_count; e++)
        if (!graph->links[e].spare)
            out[kept++] = graph->edges[e];
    return kept;
}

static enum status steady_solve(const struct event_graph *graph, struct steady *steady,
                                struct diag *diag)
{
    struct cycle_ratio ratio = {0};
    struct ratio_edge *edges = malloc(((size_t)graph->edge_count + 1) * sizeof *edges);
    if (!edges)
        return diag_no_memory(diag);
    const struct ratio_graph plain = {graph->event_count, drop_spare_edges(graph, edges), edges};
    enum status status = cycle_ratio_find(&plain, &ratio, diag);
    if (status == STATUS_OK)
        status = steady_describe(steady, graph, edges, &ratio, diag);
    cycle_ratio_fini(&ratio);
    free(edges);
    return status;
}

enum status steady_of_graph(const struct event_graph *graph, enum steady_way way,
                            struct steady *out, struct diag *diag)
{
    struct steady steady = {.kind = STEADY_UNKNOWN, .way = way};
    enum status status = STATUS_OK;
    if (*graph->why)
        snprintf(steady.why, sizeof steady.why, "%s", graph->why);
    else
        status = steady_solve(graph, &steady, diag);
    if (status == STATUS_OK)
        *out = steady;
    else
        steady_fini(&steady);
    return status;
}

enum status steady_find(const struct program *program, const struct timing *timing,
                        struct steady *out, struct diag *diag)
{
    struct event_graph graph;
    enum status status = event_graph_build(program, timing, &graph, diag);
    if (status != STATUS_OK)
        return status;
    status = steady_of_graph(&graph, STEADY_BY_GRAPH, out, diag);
    event_graph_fini(&graph);
    return status;
}

/* ---- the recurrent state --------------------------------------------------------------------- */

/*
 * The run is watched; whenever rank 0 has retired an iteration and all of that instant is done, a snapshot is
 * compared with one earlier snapshot, which is replaced after 1, 2, 4, ... of them (Brent 1980): so there are
 * never more than two, and only steps since that one are kept.
 */

enum { NONE = -1 };

/* An end of the data so far away that it makes no difference. */
static const int64_t FAR = INT64_C(1) << 30;

/* All that the future depends on, and its place in the run. */
struct snapshot {
    struct state *state; /* canonical */
    int64_t *busy_ns;    /* per agent: since when it has been able to step; -1: it is not */
    int64_t time_ns, step, iteration;
};

struct recurrent {
    const struct program *program; /* as `steps` has it */
    struct enabling_steps *steps;
    struct snapshot earlier, now;
    int64_t compared, until_replaced; /* snapshots since `earlier`; so many until the next */
    int64_t now_ns;                   /* of the last step */
    int64_t most_iterations;          /* that are looked at */
    bool takes_time;                  /* an operation does */
    bool retired;                     /* rank 0, since the last snapshot */
    bool ending;                      /* a rank has begun with its last iteration */
    bool found, gave_up, failed, deadlock;
    char refused[EVENT_GRAPH_WHY]; /* why a state does not say how time goes on; "": it does */
};

/* ---- snapshots ------------------------------------------------------------------------------- */

static bool snapshot_open(struct snapshot *snapshot, const struct program *p)
{
    snapshot->state = machine_state(p);
    snapshot->busy_ns = calloc((size_t)p->agent_count, sizeof *snapshot->busy_ns);
    snapshot->step = NONE;
    return snapshot->state && snapshot->busy_ns;
}

static void snapshot_close(struct snapshot *snapshot)
{
    machine_free(snapshot->state);
    free(snapshot->busy_ns);
}

static void snapshot_take(struct recurrent *run, struct snapshot *out)
{
    const struct program *p = run->program;
    out->time_ns = run->now_ns;
    out->step = enabling_steps_count(run->steps);
    out->iteration = machine_oldest(p, enabling_steps_state(run->steps), 0);
    machine_copy(p, out->state, enabling_steps_state(run->steps));
    machine_canonical(p, out->state);
    for (int rank = 0; rank < p->ranks; rank++)
        machine_end_data(p, out->state, rank, FAR);
    for (int agent = 0; agent < p->agent_count; agent++) {
        int64_t since_ns = enabling_steps_enabled_since(run->steps, agent);
        out->busy_ns[agent] = since_ns < 0 ? NONE : run->now_ns - since_ns;
    }
}

static bool steady_same(const struct program *p, const struct snapshot *a, const struct snapshot *b)
{
    return a->step >= 0 && a->time_ns < b->time_ns &&
           memcmp(a->busy_ns, b->busy_ns, (size_t)p->agent_count * sizeof *a->busy_ns) == 0 &&
           memcmp(a->state->cells, b->state->cells, p->at.bytes) == 0;
}

/* ---- watching -------------------------------------------------------------------------------- */

/* True if the end of the data is in sight of this rank. */
static bool is_ending(const struct recurrent *run, int rank)
{
    return machine_admitted(run->program, enabling_steps_state(run->steps), rank) >=
           run->program->ends[rank];
}

static bool at_a_limit(const struct recurrent *run)
{
    const struct state *state = enabling_steps_state(run->steps);
    return run->ending || machine_oldest(run->program, state, 0) > run->most_iterations ||
           enabling_steps_count(run->steps) > STEADY_MOST_STEPS;
}

/* All of an instant is done. */
static void steady_look(struct recurrent *run)
{
    const struct program *p = run->program;
    run->retired = false;
    snapshot_take(run, &run->now);
    run->found = steady_same(p, &run->earlier, &run->now);
    if (!run->found && ++run->compared == run->until_replaced) {
        struct snapshot snapshot = run->earlier;
        run->earlier = run->now;
        run->now = snapshot;
        run->compared = 0;
        run->until_replaced *= 2;
        enabling_steps_forget(run->steps, run->earlier.step);
    }
}

static bool steady_watch(void *context, int64_t time_ns, struct transition transition,
                         const struct effect *effect)
{
    struct recurrent *run = context;
    (void)effect;
    if (run->retired && at_a_limit(run))
        run->gave_up = true;
    else if (run->retired && time_ns > run->now_ns)
        steady_look(run);
    if (run->found || run->gave_up)
        return false;
    run->now_ns = time_ns;
    int64_t oldest = machine_oldest(run->program, enabling_steps_state(run->steps), 0);
    run->failed = !enabling_steps_take(run->steps, time_ns, transition);
    const int rank = run->program->agents[transition.agent].rank;
    run->ending |= rank >= 0 && is_ending(run, rank);
    run->retired |= machine_oldest(run->program, enabling_steps_state(run->steps), 0) > oldest;
    return !run->failed;
}

/* ---- the critical cycle ---------------------------------------------------------------------- */

/* The step that made this one of the repetition possible, in the repetition; *wraps: it was of the one
   before. */
static int64_t steady_cause_of(const struct recurrent *run, int64_t number, bool *wraps)
{
    const struct enabled_step *step = enabling_steps_step(run->steps, number);
    *wraps = step->from < run->earlier.step;
    return *wraps ? enabling_steps_enabled_by(run->steps, step->agent) : step->from;
}

static struct steady_part steady_part_of(const struct program *p, const struct enabled_step *step)
{
    const struct agent *agent = &p->agents[step->agent];
    struct steady_part part = {EVENT_DEVICE, agent->rank, NONE, step->time_ns - step->enabled_ns};
    if (step->op >= 0)
        part.task = p->ops[step->op].task;
    else
        part.kind = EVENT_DRIVER;
    if (agent->kind == AGENT_THREAD && step->op >= 0)
        part.kind = EVENT_HOST;
    if (agent->kind == AGENT_COMM)
        part.rank = program_comm_rank(p, agent->index);
    return part;
}

/* From the last step back until a step comes again: those from there on are the cycle, latest first.
   Returns their number. Their time is that of the repetitions they span. */
static int list_cycle(const struct recurrent *run, int64_t *out, int64_t *place,
                      int64_t *repetitions)
{
    int64_t number = run->now.step - 1, ns = 0;
    int count = 0, first;
    bool wraps;
    for (; place[number - run->earlier.step] == 0; number = steady_cause_of(run, number, &wraps)) {
        out[count++] = number;
        place[number - run->earlier.step] = count;
    }
    first = (int)place[number - run->earlier.step] - 1;
    *repetitions = 0;
    for (int i = first; i < count; i++) {
        const struct enabled_step *step = enabling_steps_step(run->steps, out[i]);
        ns += step->time_ns - step->enabled_ns;
        steady_cause_of(run, out[i], &wraps);
        *repetitions += wraps;
        out[i - first] = out[i];
    }
    assert(ns == *repetitions * (run->now.time_ns - run->earlier.time_ns));
    (void)ns;
    return count - first;
}

/* In words a cycle begins at a driver if one is on it, else early in the repetition. */
static int steady_first_of(const struct recurrent *run, const int64_t *cycle, int count)
{
    int first = 0;
    for (int i = 0; i < count; i++) {
        bool after_driver = enabling_steps_step(run->steps, cycle[(i + 1) % count])->op < 0;
        if (enabling_steps_step(run->steps, cycle[i])->op < 0 && !after_driver)
            return i;
        first = cycle[i] < cycle[first] ? i : first;
    }
    return first;
}

static bool list_repetition(const struct recurrent *run, struct steady *steady)
{
    size_t steps = (size_t)(run->now.step - run->earlier.step);
    int64_t *cycle = calloc(steps, sizeof *cycle), *place = calloc(steps, sizeof *place);
    steady->parts = calloc(steps, sizeof *steady->parts);
    bool good = cycle && place && steady->parts;
    if (good) {
        int64_t repetitions;
        int count = list_cycle(run, cycle, place, &repetitions);
        int first = steady_first_of(run, cycle, count);
        steady->iterations = repetitions * (run->now.iteration - run->earlier.iteration);
        for (int i = 0; i < count; i++) {
            const int64_t number = cycle[(first + count - i) % count];
            const struct steady_part part =
                steady_part_of(run->program, enabling_steps_step(run->steps, number));
            if (part.ns || part.kind == EVENT_DRIVER) /* parts without time are left out */
                steady_add(steady, &part);
        }
    }
    free(cycle);
    free(place);
    return good;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* A rank that shares no communicator with rank 0, not even through others, so that they drift apart. */
static int first_apart(const struct program *p)
{
    int rank = 1;
    while (rank < p->ranks && p->fellows[rank] == p->fellows[0])
        rank++;
    return rank;
}

static int64_t iterations_seen(const struct recurrent *run)
{
    int64_t iterations = machine_oldest(run->program, enabling_steps_state(run->steps), 0);
    return iterations < STEADY_MOST_ITERATIONS ? iterations : STEADY_MOST_ITERATIONS;
}

static enum status say_why(const struct recurrent *run, struct steady *steady)
{
    const struct program *p = run->program;
    int apart = first_apart(p);
    if (*run->refused)
        snprintf(steady->why, sizeof steady->why, "%s", run->refused);
    else if (run->deadlock)
        snprintf(steady->why, sizeof steady->why, "the run comes to a deadlock");
    else if (apart < p->ranks)
        snprintf(steady->why, sizeof steady->why, "ranks 0 and %d never wait for each other",
                 apart);
    else if (!run->takes_time)
        snprintf(steady->why, sizeof steady->why, "nothing takes time");
    else
        snprintf(steady->why, sizeof steady->why,
                 "the run does not repeat itself within %" PRId64 " iterations",
                 iterations_seen(run));
    return STATUS_OK;
}

static enum status describe_repetition(const struct recurrent *run, struct steady *steady,
                                       struct diag *diag)
{
    if (!run->found)
        return say_why(run, steady);
    int64_t ns = run->now.time_ns - run->earlier.time_ns;
    int64_t iterations = run->now.iteration - run->earlier.iteration;
    steady_set(steady, ns, iterations);
    steady->way = STEADY_BY_RECURRENT_STATE;
    return list_repetition(run, steady) ? STATUS_OK : diag_no_memory(diag);
}

/* Each operation takes its mean. */
static enum status means_of(struct timing *out, const struct timing *timing, struct diag *diag)
{
    enum status status = timing_without(out, timing, NONE, diag); /* a copy */
    for (size_t i = 0; status == STATUS_OK && i < timing->program->op_count; i++) {
        out->ops[i].mean_ns = timing_mean(timing, (int)i);
        out->ops[i].draw = -1;
    }
    if (status == STATUS_OK)
        out->draw_count = 0;
    return status;
}

static enum status run_means(struct recurrent *run, const struct program *program,
                             const struct timing *timing, struct diag *diag)
{
    struct timing means;
    struct simulation_result result;
    const struct simulate_observer observer = {.context = run, .step = steady_watch};
    const struct simulate_options options = {.observer = &observer};
    enum status status = means_of(&means, timing, diag);
    if (status != STATUS_OK)
        return status;
    /* A run in which nothing takes time is one instant: a few windows show whether it comes to a deadlock. */
    for (size_t i = 0; i < means.program->op_count; i++)
        run->takes_time |= means.ops[i].mean_ns > 0;
    run->most_iterations = run->takes_time ? STEADY_MOST_ITERATIONS : 4 * run->program->window;
    status = simulate_run(program, &means, &options, &result, diag);
    timing_fini(&means);
    if (status == STATUS_OK) {
        run->deadlock = result.blocked_count > 0;
        simulation_fini(&result);
    }
    if (run->failed)
        return diag_no_memory(diag);
    return run->found || run->gave_up ? STATUS_OK : status; /* it was stopped from here */
}

/* Find the reason why equal states do not go on alike in time, if they do not. */
static enum status find_refusal(struct recurrent *run, const struct program *p, struct diag *diag)
{
    struct arena scratch;
    arena_init(&scratch, 0);
    const char *shared = sharing_why(p, &scratch);
    if (shared)
        snprintf(run->refused, sizeof run->refused,
                 "streams share %s: how long work takes depends on what else runs", shared);
    else if (p->plan->machine.launch_latency_ns)
        snprintf(run->refused, sizeof run->refused,
                 "machine.launch_latency is not part of a state");
    enum status status = scratch.failed ? diag_no_memory(diag) : STATUS_OK;
    arena_fini(&scratch);
    return status;
}

static enum status steady_own_find(struct recurrent *run, const struct program *endless,
                                   const struct timing *timing, struct steady *out,
                                   struct diag *diag)
{
    run->steps = enabling_steps_open(endless, false);
    if (!run->steps)
        return diag_no_memory(diag);
    run->program = enabling_steps_program(run->steps);
    if (!snapshot_open(&run->earlier, run->program) || !snapshot_open(&run->now, run->program))
        return diag_no_memory(diag);
    enum status status = find_refusal(run, endless, diag);
    if (status == STATUS_OK && !*run->refused && first_apart(endless) == endless->ranks)
        status = run_means(run, endless, timing, diag);
    return status == STATUS_OK ? describe_repetition(run, out, diag) : status;
}

enum status steady_recurrent(const struct program *program, const struct timing *timing,
                             struct steady *out, struct diag *diag)
{
    struct steady steady = {.kind = STEADY_UNKNOWN};
    struct recurrent recurrent = {.until_replaced = 1};
    struct program endless = *program; /* with more data than are looked at */
    endless.ends = calloc((size_t)program->ranks, sizeof *endless.ends);
    if (!endless.ends)
        return diag_no_memory(diag);
    for (int rank = 0; rank < program->ranks; rank++)
        endless.ends[rank] = 2 * STEADY_MOST_ITERATIONS + 2 * (int64_t)program->window;
    enum status status = steady_own_find(&recurrent, &endless, timing, &steady, diag);
    snapshot_close(&recurrent.earlier);
    snapshot_close(&recurrent.now);
    enabling_steps_close(recurrent.steps);
    free(endless.ends);
    if (status == STATUS_OK)
        *out = steady;
    else
        steady_fini(&steady);
    return status;
}

static enum status find_by_causes(const struct program *program, const struct timing *timing,
                                  struct steady *out, struct diag *diag)
{
    struct event_graph graph;
    enum status status = observed_event_graph_build(program, timing, &graph, diag);
    if (status != STATUS_OK)
        return status;
    status = steady_of_graph(&graph, STEADY_BY_CAUSES, out, diag);
    event_graph_fini(&graph);
    return status;
}

enum status steady_find_by(const struct program *program, const struct timing *timing,
                           enum steady_way last, struct steady *out, struct diag *diag)
{
    enum status status = steady_find(program, timing, out, diag);
    if (status == STATUS_OK && out->kind == STEADY_UNKNOWN && program->credit_ends) {
        /* the other ways look at more data than the program has */
        snprintf(out->why, sizeof out->why,
                 "only the end of the data bounds the messages on credit");
        return STATUS_OK;
    }
    if (status == STATUS_OK && out->kind == STEADY_UNKNOWN && last >= STEADY_BY_CAUSES &&
        program->tasks)
        status = find_by_causes(program, timing, out, diag);
    if (status == STATUS_OK && out->kind == STEADY_UNKNOWN && last >= STEADY_BY_RECURRENT_STATE &&
        program->tasks)
        status = steady_recurrent(program, timing, out, diag);
    return status;
}

void steady_fini(struct steady *steady)
{
    free(steady->parts);
    *steady = (struct steady){0};
}

static bool repeats_after(const struct steady *steady, int turn)
{
    for (int i = turn; i < steady->part_count; i++) {
        const struct steady_part *a = &steady->parts[i], *b = &steady->parts[i - turn];
        if (a->kind != b->kind || a->rank != b->rank || a->task != b->task)
            return false;
    }
    return true;
}

int steady_turn(const struct steady *steady)
{
    for (int turn = 1; turn <= steady->part_count / 2; turn++)
        if (repeats_after(steady, turn))
            return turn;
    return steady->part_count;
}
