/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_structure.c - what structure.c proves without a search, a search without reduction must not
 * refute.
 *
 * Random small pipelines under both drivers: two or three tasks, stages, streams, thread groups,
 * dependences of distance 0 to 2, buffers, and now and then whatever the conditions of a proof speak
 * of: collectives, tickets, locks, host synchronisation, limits of the machine, ranks that differ. And
 * pipelines of two or four ranks with several collectives, under data-flow.
 * Prints its seed; SWSIM_SEED sets it, SWSIM_LONG=1 asks for more plans, SWSIM_PLANS for so many.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/certify.h"
#include "check/search.h"
#include "check/structure.h"
#include "plan/text/parse.h"
#include "tests/harness.h"
#include "tests/mutants.h"
#include "tests/random_draw.h"
#include "tests/tap.h"

enum { QUICK = 300, LONG = 6000, STATES = 12000, MUTANTS = 10 };

static const char *const collectives[] = {"all_reduce", "all_gather"};

/* Operations that take residency slots if they are work of the device. True if it is a collective of communicator dp. */
/* `pushes`: it must push something. */
static bool write_work(struct random *random, int ranks, int slots, bool pushes)
{
    const char *comm = below(random, 3) ? "dp" : "mp";
    bool of_dp = false;
    switch (below(random, ranks > 1 ? 6 : 12)) {
    case 0:
    case 1:
    case 2:
        fprintf(random->out, ", work: {collective: %s, comm: %s, bytes: 1KiB}",
                one_of(random, collectives, 2), comm);
        of_dp = *comm == 'd';
        break;
    case 3:
        if (pushes)
            break;
        fputs(", work: {host: 1us}", random->out);
        slots = 0;
        break;
    case 4: fputs(", work: {copy: h2d, bytes: 1KiB, pageable: true}", random->out); break;
    default: break;
    }
    if (slots)
        fprintf(random->out, ", sm: %d", slots);
    return of_dp;
}

static bool write_task(struct random *random, int index, int ranks)
{
    static const char *const accesses[] = {"", ", reads: [b]", ", writes: [b]", ", reads: [w]",
                                           ", writes: [w]"};
    static const char *const locks[] = {"m", "m", "m, n", "n, m"};
    fprintf(random->out, "  T%d: {stage: %d, stream: s%d, thread_group: g%d, time: 1us%s", index,
            below(random, 3), below(random, 2), below(random, 2), one_of(random, accesses, 5));
    if (rarely(random, 4))
        fputs(", globally_ordered: true", random->out);
    if (rarely(random, 6))
        fprintf(random->out, ", host_sync: %s", below(random, 2) ? "stream" : "device");
    if (rarely(random, 6))
        fprintf(random->out, ", holds: [%s]", one_of(random, locks, 4));
    int slots = below(random, 2) ? 1 + rarely(random, 6) : 0;
    bool after = rarely(random, 8), sync = rarely(random, 6);
    if (after)
        fputs(", host_after: 1us", random->out);
    if (sync)
        fprintf(random->out, ", sync_after: %s", below(random, 2) ? "stream" : "device");
    bool collective = write_work(random, ranks, slots, after || sync);
    fputs("}\n", random->out);
    return collective;
}

static void write_machine(struct random *random)
{
    static const char *const knobs[] = {"sm_slots: 1",
                                        "hw_queues: 1",
                                        "launch_queue: 3",
                                        "launch_order_implicit: true",
                                        "lazy_load: true",
                                        "launch_lock: true",
                                        "first_use_blocks: true",
                                        "sm_slots: 1",
                                        "sm_slots: 2",
                                        "memory: 3KiB"};
    if (rarely(random, 2))
        fprintf(random->out, "machine: {%s}\n", one_of(random, knobs, 9));
}

static void write_dependences(struct random *random, int tasks)
{
    const char *comma = "";
    fputs("intra_iter_deps: [", random->out);
    for (int t = 1; t < tasks; t++)
        if (below(random, 3)) {
            fprintf(random->out, "%s[T%d, T%d]", comma, t, below(random, t));
            comma = ", ";
        }
    fputs("]\n", random->out);
    if (below(random, 2))
        fprintf(random->out, "inter_iter_deps: [[T%d, T%d, %d]]\n", below(random, tasks),
                below(random, tasks), 1 + below(random, 2));
}

/* A rank that differs, in what must not pass for alike; `collective` is a task of communicator dp, -1:
   there is none. */
static void write_override(struct random *random, int rank, int tasks, int collective)
{
    fprintf(random->out, "rank_overrides: {%d: {", rank);
    int task = below(random, tasks);
    switch (below(random, 5)) {
    case 0: fputs("enqueue_order: stage-ascending", random->out); break;
    case 1:
    case 2:
        task = collective >= 0 ? collective : task;
        fprintf(random->out, "schedule: {T%d: {work: {collective: %s, comm: dp, bytes: %dKiB}}}",
                task, one_of(random, collectives, 2), 1 + below(random, 2));
        break;
    case 3: fprintf(random->out, "schedule: {T%d: {stream: s1, time: 2us}}", task); break;
    default: fprintf(random->out, "schedule: {T%d: {time: 2us}}", task); break;
    }
    fputs("}}\n", random->out);
}

static void write_plan(struct random *random)
{
    int ranks = 1 + rarely(random, 3), tasks = 2 + (ranks == 1 && below(random, 2));
    fprintf(random->out,
            "swplan: 1\nname: random\nranks: %d\nmax_depth: %d\nretire: %s\n"
            "buffers: {b: {scope: iteration, bytes: 1KiB}, w: {scope: shared, bytes: 1KiB}}\n",
            ranks, 1 + below(random, 2), below(random, 4) ? "device" : "submit");
    if (rarely(random, 6))
        fprintf(random->out, "elide_same_stream: true\n");
    if (rarely(random, 4))
        fprintf(random->out, "enqueue_order: %s\n",
                below(random, 2) ? "stage-descending" : "stage-ascending");
    write_machine(random);
    fputs("schedule:\n", random->out);
    int collective = -1;
    for (int t = 0; t < tasks; t++)
        collective = write_task(random, t, ranks) ? t : collective;
    write_dependences(random, tasks);
    if (rarely(random, ranks > 1 ? 2 : 6))
        write_override(random, below(random, ranks), tasks, collective);
}

/* ---- several collectives under data-flow -------------------------------------------------------- */

/* Two to four tasks, most of them collectives of two or three communicators, on few streams and threads,
   so that the order in which threads get their work can matter. */
static void write_caller(struct random *random, int index, int streams, const char *comm)
{
    static const char *const knobs[] = {", globally_ordered: true", ", host_sync: stream",
                                        ", holds: [m]", ", host_sync: device",
                                        ", sync_after: stream"};
    fprintf(random->out, "  T%d: {stage: 0, stream: s%d, thread_group: g%d, time: 1us", index,
            below(random, streams), below(random, 2));
    if (rarely(random, 5))
        fputs(one_of(random, knobs, comm ? 5 : 4), random->out);
    if (comm)
        fprintf(random->out, ", work: {collective: all_reduce, comm: %s, bytes: 1KiB}", comm);
    else if (rarely(random, 6))
        fputs(", work: {host: 1us}", random->out);
    fputs("}\n", random->out);
}

/* On four ranks the tasks of communicator `low` use `high` on the upper two. */
static void write_halves(struct random *random, int tasks, unsigned halved)
{
    const char *separator = "";
    fputs("rank_overrides: {", random->out);
    for (int rank = 2; rank < 4; rank++)
        for (int t = 0, first = 1; t <= tasks; t++) {
            if (t == tasks) {
                fputs("}}", random->out);
                break;
            }
            if (!(halved & 1u << t))
                continue;
            if (first)
                fprintf(random->out, "%s%d: {schedule: {", separator, rank);
            fprintf(random->out, "%sT%d: {work: {collective: all_reduce, comm: high, bytes: 1KiB}}",
                    first ? "" : ", ", t);
            first = 0;
            separator = ", ";
        }
    fputs("}\n", random->out);
}

static void write_traffic_machine(struct random *random)
{
    if (rarely(random, 6))
        fprintf(random->out, "machine: {launch_queue: %d}\n", 1 + below(random, 12));
    else if (rarely(random, 16))
        fprintf(random->out, "machine: {%s}\n",
                below(random, 2) ? "hw_queues: 1" : "launch_order_implicit: true");
}

static void write_traffic_plan(struct random *random)
{
    static const char *const comms[] = {"all", "other", "low"};
    bool four = rarely(random, 4);
    int tasks = 2 + below(random, four ? 2 : 3), streams = 1 + below(random, tasks);
    unsigned halved = 0;
    fprintf(random->out, "swplan: 1\nname: traffic\nranks: %d\nmax_depth: %d\nretire: %s\n",
            four ? 4 : 2, 1 + below(random, 3), below(random, 2) ? "device" : "submit");
    if (rarely(random, 6))
        fputs("elide_same_stream: true\n", random->out);
    if (four)
        fputs("comms: {all: [0, 1, 2, 3], other: [0, 1, 2, 3], low: [0, 1], high: [2, 3]}\n",
              random->out);
    write_traffic_machine(random);
    fputs("schedule:\n", random->out);
    for (int t = 0; t < tasks; t++) {
        const char *comm = below(random, 3) ? one_of(random, comms, four ? 3 : 2) : NULL;
        halved |= comm && *comm == 'l' ? 1u << t : 0;
        write_caller(random, t, streams, comm);
    }
    write_dependences(random, tasks);
    if (halved)
        write_halves(random, tasks, halved);
}

struct op_stats {
    int plans, proved, races_proved, checked, refuted;
    int certified, uncertified; /* properties proved: with a certificate, without */
    int too_much;               /* properties with a certificate only */
};

static void refute(struct op_stats *op_stats, unsigned found, const char *text)
{
    op_stats->refuted++;
    for (int p = 0; p < PROPERTY_COUNT; p++)
        if (found & 1u << p)
            tap_note("structure proves %s, the search refutes it:\n%s",
                     property_key((enum property)p), text);
}

/* A proof by structure has a certificate that swcheck accepts, and nothing else has one. */
static enum status compare_certificate(const struct plan *plan,
                                       const struct program_options *options, unsigned proved,
                                       const char *text, struct op_stats *op_stats,
                                       struct diag *diag)
{
    const unsigned asked =
        ((1u << PROPERTY_COUNT) - 1) & ~(1u << PROPERTY_FAULTS | 1u << PROPERTY_MESSAGE);
    struct search_watch watch = {0};
    struct certified certified;
    enum status status = certify_plan(plan, options, asked, 1, &watch, &certified, diag);
    if (status != STATUS_OK)
        return status;
    for (int p = 0; p < PROPERTY_COUNT; p++) {
        bool has = certified.covers & 1u << p, should = proved & 1u << p;
        op_stats->certified += has && should;
        op_stats->uncertified += should && !has;
        op_stats->too_much += has && !should;
        if (has != should && op_stats->uncertified + op_stats->too_much < 4)
            tap_note("%s %s a certificate (%s):\n%s", property_key((enum property)p),
                     has ? "has" : "lacks", certified.why_not, text);
    }
    struct mutants mutants = {.seed = (uint64_t)op_stats->plans, .count = MUTANTS};
    if (certified.text && !mutants_try(plan, certified.text, certified.covers, &mutants, diag)) {
        op_stats->too_much++;
        tap_note("a mutant is accepted:\n%s\n%s", mutants.wrong, text);
    }
    free(mutants.wrong);
    free(certified.text);
    return STATUS_OK;
}

/* Plans of several ranks are searched with reduction, which other tests compare with none. */
static enum status check_program(const struct program *program, const char *text, bool reduction,
                                 unsigned *out, struct op_stats *op_stats, struct diag *diag)
{
    unsigned proved = 0;
    struct search_watch watch = {0};
    enum status status = structure_proves(program, &watch, &proved, diag);
    *out = proved;
    op_stats->plans++;
    if (status != STATUS_OK || !proved)
        return status;
    struct search_options search = {
        .reduction = reduction, .properties = proved, .limits = {.states = STATES}};
    struct search_result result;
    op_stats->proved++;
    op_stats->races_proved += (proved & 1u << PROPERTY_RACE) != 0;
    status = search_run(program, &search, &result, diag);
    if (status != STATUS_OK)
        return status;
    op_stats->checked += result.complete;
    if (result.found)
        refute(op_stats, result.found, text);
    search_result_fini(&result);
    return STATUS_OK;
}

static void check_plan(const char *text, enum driver driver, bool reduction,
                       struct op_stats *op_stats)
{
    struct diag diag;
    struct plan plan;
    struct program *program;
    struct program_options options = {.driver = driver, .iterations = -1};
    diag_init(&diag);
    enum status status = plan_parse("random.yaml", text, strlen(text), &plan, &diag);
    if (status == STATUS_OK) {
        status = program_build(&plan, &options, &program, &diag);
        if (status == STATUS_OK) {
            unsigned proved;
            status = check_program(program, text, reduction, &proved, op_stats, &diag);
            program_close(program);
            if (status == STATUS_OK)
                status = compare_certificate(&plan, &options, proved, text, op_stats, &diag);
        }
        plan_fini(&plan);
    }
    if (status != STATUS_OK) {
        tap_note("refused:\n%s", text);
        diag_print(&diag, "t_structure", false, stderr);
        op_stats->refuted++;
    }
    diag_fini(&diag);
}

static void report(const struct op_stats *op_stats, const char *driver)
{
    tap_ok(op_stats->refuted == 0, "%s: no search refutes what structure proves", driver);
    tap_ok(op_stats->proved > op_stats->plans / 4 && op_stats->checked > op_stats->plans / 10 &&
               op_stats->proved < op_stats->plans,
           "%s: %d of %d plans proved by structure, %d of these searched to the end", driver,
           op_stats->proved, op_stats->plans, op_stats->checked);
    tap_ok(op_stats->races_proved > op_stats->plans / 10 &&
               op_stats->races_proved < op_stats->proved,
           "%s: %d free of races by structure", driver, op_stats->races_proved);
}

static void report_certificates(const struct op_stats *op_stats, const char *kind)
{
    tap_ok(op_stats->uncertified == 0 && op_stats->too_much == 0 && op_stats->certified > 0,
           "%s: %d proofs with a certificate, %d without; %d certificates of something else", kind,
           op_stats->certified, op_stats->uncertified, op_stats->too_much);
}

static char *write_text(struct random *random, void (*write)(struct random *random))
{
    char *text = NULL;
    size_t length;
    random->out = open_memstream(&text, &length);
    if (!random->out)
        return NULL;
    write(random);
    fclose(random->out);
    return text;
}

int main(void)
{
    struct random random = {.seed = env_seed()};
    int plans = env_plans(QUICK, LONG);
    struct op_stats clock = {0}, dataflow = {0}, traffic = {0};
    for (int i = 0; i < plans; i++) {
        char *text = write_text(&random, write_plan);
        char *callers = write_text(&random, write_traffic_plan);
        if (!text || !callers)
            return tap_ok(0, "memory"), tap_done();
        check_plan(text, DRIVER_CLOCK, false, &clock);
        check_plan(text, DRIVER_DATAFLOW, false, &dataflow);
        check_plan(callers, DRIVER_DATAFLOW, true, &traffic);
        free(text);
        free(callers);
    }
    report(&clock, "clock");
    report(&dataflow, "data-flow");
    report_certificates(&clock, "clock");
    report_certificates(&dataflow, "data-flow");
    report_certificates(&traffic, "collectives");
    tap_ok(traffic.refuted == 0, "collectives: no search refutes what structure proves");
    tap_ok(traffic.proved > traffic.plans / 4 && traffic.checked > traffic.plans / 8 &&
               traffic.proved < traffic.plans,
           "collectives: %d of %d plans proved by structure, %d of these searched to the end",
           traffic.proved, traffic.plans, traffic.checked);
    return tap_done();
}
