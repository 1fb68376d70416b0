/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_engines.c - a simulation that remembers what the machine did in a state (sim/engine/memo.h) gives the same
 * answer, to the nanosecond, as one that asks the machine for every step: times, stalls with their causes, figures
 * of iterations, deadlocks. On random plans of many kinds and on every plan there is.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "plan/text/parse.h"
#include "sim/engine/simulate.h"
#include "tests/harness.h"
#include "tests/random_plan.h"
#include "tests/tame_plan.h"
#include "tests/tap.h"

static struct diag diag;

/* ---- are two results the same? --------------------------------------------------------------- */

static bool same_double(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool same_account(const struct stream_account *a, const struct stream_account *b)
{
    if (a->busy_ns != b->busy_ns || a->blame_count != b->blame_count ||
        memcmp(a->stall_ns, b->stall_ns, sizeof a->stall_ns) != 0)
        return false;
    for (int i = 0; i < a->blame_count; i++)
        if (a->blames[i].stall.cause != b->blames[i].stall.cause ||
            a->blames[i].stall.on != b->blames[i].stall.on || a->blames[i].ns != b->blames[i].ns)
            return false;
    return true;
}

static bool same_in_flight(const struct in_flight *a, const struct in_flight *b)
{
    return a->count == b->count && a->merged == b->merged && a->last == b->last &&
           memcmp(a->points, b->points, (size_t)a->count * sizeof *a->points) == 0;
}

/* The first difference, or NULL. */
static const char *difference(const struct simulation_result *a, const struct simulation_result *b)
{
    if (a->makespan_ns != b->makespan_ns)
        return "makespan";
    if (a->tasks != b->tasks || a->steps != b->steps)
        return "number of tasks or steps";
    if (a->violated != b->violated || a->blocked_count != b->blocked_count)
        return "what went wrong";
    if (a->fill_ns != b->fill_ns || a->drain_ns != b->drain_ns)
        return "fill or drain";
    if (a->in_flight_ns != b->in_flight_ns || a->in_flight_max != b->in_flight_max ||
        a->in_flight_bytes_max != b->in_flight_bytes_max)
        return "in flight";
    if (!same_double(a->iteration.mean, b->iteration.mean) ||
        !same_double(a->iteration.p50, b->iteration.p50) ||
        !same_double(a->iteration.p99, b->iteration.p99) ||
        !same_double(a->iteration.mean_in.low, b->iteration.mean_in.low))
        return "figures of iterations";
    for (int s = 0; s < a->stream_count; s++)
        if (!same_account(&a->streams[s], &b->streams[s]))
            return "a stream's account";
    return NULL;
}

static void show_accounts(const struct program *p, const char *name,
                          const struct simulation_result *result)
{
    tap_note("%s: makespan %lld, mean %.3f", name, (long long)result->makespan_ns,
             result->iteration.mean);
    for (int s = 0; s < result->stream_count; s++) {
        const struct stream_account *account = &result->streams[s];
        char text[200];
        tap_note("  %s rank %d: busy %lld", p->streams[s].name, p->streams[s].rank,
                 (long long)account->busy_ns);
        for (int i = 0; i < account->blame_count; i++)
            tap_note("    %lld %s", (long long)account->blames[i].ns,
                     stall_describe(p, p->streams[s].rank, &account->blames[i].stall, text,
                                    sizeof text));
    }
}

/* ---- plans ----------------------------------------------------------------------------------- */

struct op_stats {
    int compared, different, blocked, in_flight_differs;
};

/* Durations vary by this rule, or not at all. */
static const struct dist shapes[] = {
    {.kind = DIST_CONSTANT},
    {.kind = DIST_NORMAL, .parameter = 0.5},
    {.kind = DIST_EXPONENTIAL, .spike_probability = 0.02, .spike_add_ns = 20000},
    {.kind = DIST_UNIFORM, .parameter = 1},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void compare_results(struct op_stats *op_stats, const struct program *program,
                            const struct simulation_result *want,
                            const struct simulation_result *got, const char *what)
{
    const char *differs = difference(want, got);
    op_stats->compared++;
    if (!differs || op_stats->different++ >= 3)
        return;
    tap_note("%s: %s", what, differs);
    show_accounts(program, "forgetful", want);
    show_accounts(program, "memo", got);
}

static bool simulates(const struct program *program, const struct timing *timing,
                      const struct simulate_options *options, struct simulation_result *out,
                      const char *what)
{
    if (simulate_run(program, timing, options, out, &diag) == STATUS_OK)
        return true;
    tap_ok(0, "%s is simulated: %s", what, diag.messages[0].text);
    return false;
}

static void compare_runs(struct op_stats *op_stats, const struct program *program,
                         const struct timing *timing, uint64_t seed, const char *what)
{
    struct simulation_result want, got;
    struct in_flight in_flight = {0}, remembered = {0};
    struct simulate_options options = {.seed = seed, .forgetful = true, .in_flight = &in_flight};
    if (!simulates(program, timing, &options, &want, what))
        return;
    op_stats->blocked += want.blocked_count > 0;
    options.forgetful = false;
    options.in_flight = &remembered;
    if (simulates(program, timing, &options, &got, what)) {
        compare_results(op_stats, program, &want, &got, what);
        op_stats->in_flight_differs += !same_in_flight(&in_flight, &remembered);
        simulation_fini(&got);
    }
    simulation_fini(&want);
}

static void compare_plan(struct op_stats *op_stats, const struct plan *plan, enum driver driver,
                         int64_t iterations, const struct dist *shape, uint64_t seed,
                         const char *what)
{
    struct program *program;
    struct timing timing;
    const struct program_options options = {.driver = driver, .iterations = iterations};
    const struct jitter_rule rule = {"*", *shape};
    diag_fini(&diag);
    diag_init(&diag);
    if (program_build(plan, &options, &program, &diag) != STATUS_OK)
        return;
    if (timing_init(&timing, program, &rule, shape->kind != DIST_CONSTANT, &diag) == STATUS_OK) {
        compare_runs(op_stats, program, &timing, seed, what);
        timing_fini(&timing);
    }
    program_close(program);
}

static void compare_text(struct op_stats *op_stats, const char *text, uint64_t seed)
{
    struct plan plan;
    if (plan_parse("random.yaml", text, strlen(text), &plan, &diag) != STATUS_OK) {
        tap_ok(0, "random plan %llu is good: %s", (unsigned long long)seed, diag.messages[0].text);
        return;
    }
    if (seed % 4 == 3 && plan.pipeline.retire == RETIRE_SUBMIT) /* less than an iteration, too */
        plan.machine.launch_queue = 1 + (int)(seed / 4 % 20);
    for (enum driver driver = DRIVER_CLOCK; driver <= DRIVER_DATAFLOW; driver++) {
        int before = op_stats->different;
        compare_plan(op_stats, &plan, driver, 200, &shapes[seed % SHAPES], seed,
                     driver_key(driver));
        if (op_stats->different > before && before < 3)
            tap_note("%s", text);
    }
    plan_fini(&plan);
}

/* ---- random plans ---------------------------------------------------------------------------- */

static void test_random_plans(const char *what, char *(*make)(uint64_t seed), int count)
{
    struct op_stats op_stats = {0};
    if (env_is_long())
        count *= 10;
    for (int i = 0; i < count; i++) {
        char *text = make((uint64_t)i);
        if (text)
            compare_text(&op_stats, text, (uint64_t)i);
        free(text);
    }
    tap_is_int(op_stats.different, 0, "%s plans: %d runs compared", what, op_stats.compared);
    tap_is_int(op_stats.in_flight_differs, 0, "%s plans: the same is in flight over time", what);
    tap_ok(op_stats.blocked > 0 && op_stats.blocked < op_stats.compared, "%d of them deadlocks",
           op_stats.blocked);
}

static void test_our_plans(void)
{
    struct op_stats op_stats = {0};
    glob_t found = files_source("plans/*/*.yaml");
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct plan plan;
        if (plan_read(found.gl_pathv[i], &plan, &diag) != STATUS_OK)
            continue;
        for (int k = 0; k < 6 && plan.form == FORM_PIPELINE; k++) {
            if (k >= 2)
                plan.pipeline.retire = k < 4 ? RETIRE_DEVICE : RETIRE_SUBMIT;
            if (k == 4)
                plan.machine.launch_queue = 3 + (int)i % 17;
            compare_plan(&op_stats, &plan, k % 2 ? DRIVER_DATAFLOW : DRIVER_CLOCK, 400,
                         &shapes[i % SHAPES], 7, found.gl_pathv[i]);
        }
        plan_fini(&plan);
    }
    globfree(&found);
    tap_ok(op_stats.different == 0 && op_stats.in_flight_differs == 0 && op_stats.compared > 400,
           "our plans: %d runs, %d differ", op_stats.compared, op_stats.different);
}

/* From every key that can change a verdict, or a time. */
static char *wide_pipeline(uint64_t seed)
{
    return random_wide_plan(seed, RANDOM_PIPELINE);
}

/* Ranks that differ in one key of one task; those that differ in times are simulated each alone. */
static void test_ranks_that_differ(void)
{
    static const char *const overrides[] = {
        "Load: {time: 3ms}",
        "Load: {host_time: 1ms}",
        "Load: {host_after: 1ms}",
        "Load: {jitter: uniform(half=0.5)}",
        "Load: {host_time: 1ms, host_jitter: uniform(half=0.5)}",
        "Load: {stage: 1}",
        "Load: {stream: b}",
        "Load: {thread_group: other}",
        "Save: {globally_ordered: true}",
        "Load: {sm: 2}",
        "Work: {sm: 4, greedy: true}",
        "Save: {shares: {link: 0.5}}",
        "Save: {shares: {sm: 0.8}}",
        "Load: {host_sync: stream}",
        "Load: {sync_after: device}",
        "Load: {holds: [lock]}",
        "Save: {work: {copy: h2d, bytes: 1MiB}}",
        "Load: {work: {copy: h2d, bytes: 1MiB, pageable: true}}",
        "Spin: {work: {spin: 3ms}}",
        "Spin: {work: {host: 3ms}}",
    };
    struct op_stats op_stats = {0};
    for (size_t i = 0; i < sizeof overrides / sizeof *overrides; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "swplan: 1\nranks: 3\nretire: device\n"
                 "machine: {copy_engines: 2, sm_slots: 4}\n"
                 "schedule:\n"
                 "  Load: {stage: 0, stream: a, time: 1ms, host_time: 0.2ms, work: {copy: h2d, "
                 "bytes: 1MiB}}\n"
                 "  Save: {stage: 0, stream: b, time: 1ms, work: {copy: d2h, bytes: 1MiB}}\n"
                 "  Work: {stage: 0, stream: c, time: 1ms, sm: 2, shares: {sm: 0.5, link: 0.6}}\n"
                 "  Spin: {stage: 0, stream: e, work: {spin: 0.5ms}}\n"
                 "  Reduce: {stage: 1, stream: d, time: 0.1ms, globally_ordered: true,\n"
                 "    work: {collective: all_reduce, comm: dp, bytes: 1MiB}}\n"
                 "intra_iter_deps: [[Reduce, Load]]\n"
                 "rank_overrides: {1: {schedule: {%s}}}\n",
                 overrides[i]);
        compare_text(&op_stats, text, 4 * i);
    }
    tap_ok(op_stats.different == 0 && op_stats.in_flight_differs == 0 && op_stats.compared >= 40,
           "ranks that differ in a key: %d runs, %d differ", op_stats.compared, op_stats.different);
}

/* A tree of tasks on half as many streams: each waits while its thread hands out hundreds of others, some of which take
   long. */
static void test_long_waits(void)
{
    enum { TASKS = 400, LONGEST = 100 };
    static char text[TASKS * (LONGEST + 20)];
    struct op_stats op_stats = {0};
    for (uint64_t seed = 0; seed < 6; seed++) {
        struct plan plan;
        size_t end = (size_t)sprintf(text, "swplan: 1\nretire: %s\nschedule:\n",
                                     seed % 2 ? "submit" : "device");
        for (uint64_t i = 0; i < TASKS; i++) {
            const uint64_t drawn = hash_mix(seed * TASKS + i + 1);
            end += (size_t)snprintf(
                text + end, LONGEST,
                "  T%d: {stage: %d, stream: s%d, thread_group: g%d, time: %dus, host_time: %dus}\n",
                (int)i, (int)(i * 2 / TASKS), (int)(i % (TASKS / 2)),
                (int)(seed % 3 == 2 ? i % 2 : 0), (int)(50 + drawn % 200),
                (int)(drawn / 256 % 32 ? 1 + drawn / 8192 % 3 : 150));
        }
        end += (size_t)sprintf(text + end, "intra_iter_deps:\n");
        for (int i = 1; i < TASKS; i++)
            end += (size_t)sprintf(text + end, "  - [T%d, T%d]\n", i, (i - 1) / 2);
        if (plan_parse("tree.yaml", text, end, &plan, &diag) != STATUS_OK) {
            tap_ok(0, "a tree is good: %s", diag.messages[0].text);
            return;
        }
        for (enum driver driver = DRIVER_CLOCK; driver <= DRIVER_DATAFLOW; driver++)
            compare_plan(&op_stats, &plan, driver, 6, &shapes[seed % SHAPES], seed,
                         driver_key(driver));
        plan_fini(&plan);
    }
    tap_ok(op_stats.different == 0 && op_stats.in_flight_differs == 0 && op_stats.compared == 12,
           "long waits: %d runs, %d differ", op_stats.compared, op_stats.different);
}

int main(void)
{
    diag_init(&diag);
    test_random_plans("random", random_pipeline, 150);
    test_random_plans("tame random", tame_plan, 60);
    test_random_plans("calm random", calm_plan, 120);
    test_random_plans("wide random", wide_pipeline, 150);
    test_our_plans();
    test_ranks_that_differ();
    test_long_waits();
    diag_fini(&diag);
    return tap_done();
}
