/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_steady.c - the exact steady state found by running: that of the event graph where there is one, that of
 * long simulations always, and tasks may take longer by their slack and no more.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plan/text/parse.h"
#include "sim/maxplus/observed_event_graph.h"
#include "sim/maxplus/steady.h"
#include "sim/engine/simulate.h"
#include "sim/maxplus/slack.h"
#include "tests/harness.h"
#include "tests/random_plan.h"
#include "tests/tame_plan.h"
#include "tests/tap.h"

static struct diag diag;

/* ---- against the event graph and long simulations -------------------------------------------- */

enum { ITERATIONS = 500, MANY_ITERATIONS = 20000 };

struct clock {
    int64_t over_ns[MANY_ITERATIONS];
};

static bool note_iteration(void *context, int rank, int64_t number, int64_t admitted_ns,
                           int64_t retired_ns)
{
    struct clock *clock = context;
    (void)rank;
    (void)admitted_ns;
    if (retired_ns > clock->over_ns[number])
        clock->over_ns[number] = retired_ns;
    return true;
}

/* Does some number of iterations, from any of the middle third on, take as long as that says? */
static bool repeats(const struct clock *clock, int iterations, const struct steady *steady)
{
    const int first = iterations / 3, last = 2 * iterations / 3;
    for (int period = 1; period <= iterations / 4; period++) {
        bool good = true;
        for (int i = first; good && i + period < last; i++)
            good = (clock->over_ns[i + period] - clock->over_ns[i]) * steady->den ==
                   steady->num_ns * period;
        if (good)
            return true;
    }
    return false;
}

struct op_stats {
    int found, by_graph, by_causes, wrong, unknown, drivers[3], causes[3];
};

/* Times on the critical cycle add up to its iterations. */
static bool adds_up(const struct steady *steady)
{
    int64_t ns = 0;
    for (int i = 0; i < steady->part_count; i++)
        ns += steady->parts[i].ns;
    return ns * steady->den == steady->num_ns * steady->iterations;
}

static bool as_simulated(const struct program *program, const struct timing *timing, int iterations,
                         const struct steady *steady)
{
    static struct clock clock;
    struct simulation_result result;
    const struct simulate_observer observer = {.context = &clock, .iteration = note_iteration};
    const struct simulate_options options = {.observer = &observer};
    memset(&clock, 0, sizeof clock);
    if (simulate_run(program, timing, &options, &result, &diag) != STATUS_OK)
        return false;
    bool good = result.blocked_count || repeats(&clock, iterations, steady);
    simulation_fini(&result);
    return good;
}

/* Some queues fill slowly, so that the steady state comes late; and some periods are 800 iterations long. */
static bool as_simulated_longer(const struct program *program, const struct steady *steady)
{
    const struct program_options options = {.driver = program->driver,
                                            .iterations = MANY_ITERATIONS};
    struct program *longer;
    struct timing timing;
    bool good = false;
    if (program_build(program->plan, &options, &longer, &diag) != STATUS_OK)
        return false;
    if (timing_init(&timing, longer, NULL, 0, &diag) == STATUS_OK) {
        good = as_simulated(longer, &timing, MANY_ITERATIONS, steady);
        timing_fini(&timing);
    }
    program_close(longer);
    return good;
}

static bool same_period(const struct steady *a, const struct steady *b)
{
    return a->kind != STEADY_EXACT || b->kind != STEADY_EXACT ||
           (a->num_ns == b->num_ns && a->den == b->den);
}

/* The event graph found by running has the period of the other two, and the same slacks as the one. */
static bool agrees_by_causes(struct op_stats *op_stats, const struct program *program,
                             const struct timing *timing, const struct steady *by_run,
                             const struct steady *by_graph)
{
    struct event_graph graph;
    struct steady steady;
    int64_t *mine_ns = NULL, *theirs_ns = NULL;
    if (observed_event_graph_build(program, timing, &graph, &diag) != STATUS_OK)
        return false;
    bool good = steady_of_graph(&graph, STEADY_BY_CAUSES, &steady, &diag) == STATUS_OK;
    event_graph_fini(&graph);
    if (!good)
        return false;
    good = same_period(&steady, by_run) && same_period(&steady, by_graph);
    if (steady.kind == STEADY_EXACT && by_graph->kind == STEADY_EXACT) {
        op_stats->by_causes++;
        good &= slack_find(program, timing, &steady, &mine_ns, &diag) == STATUS_OK &&
                slack_find(program, timing, by_graph, &theirs_ns, &diag) == STATUS_OK;
        for (int t = 0; good && mine_ns && theirs_ns && t < program->tasks; t++)
            good = mine_ns[t] == theirs_ns[t];
    }
    op_stats->causes[program->driver] += steady.kind == STEADY_EXACT;
    if (!good)
        tap_note("by causes %" PRId64 "/%" PRId64 " (%d)", steady.num_ns, steady.den, steady.kind);
    free(mine_ns);
    free(theirs_ns);
    steady_fini(&steady);
    return good;
}

static void check_program(struct op_stats *op_stats, const struct program *program,
                          const struct timing *timing, const char *text, uint64_t seed)
{
    struct steady by_run, by_graph;
    if (steady_recurrent(program, timing, &by_run, &diag) != STATUS_OK ||
        steady_find(program, timing, &by_graph, &diag) != STATUS_OK) {
        tap_ok(0, "seed %" PRIu64 " is looked at", seed);
        return;
    }
    bool both = by_run.kind == STEADY_EXACT && by_graph.kind == STEADY_EXACT;
    bool good = by_run.kind != STEADY_EXACT ||
                (adds_up(&by_run) && (as_simulated(program, timing, ITERATIONS, &by_run) ||
                                      as_simulated_longer(program, &by_run)));
    good &= by_run.kind != STEADY_EXACT || by_graph.kind != STEADY_DEADLOCK;
    good &= same_period(&by_run, &by_graph);
    good &= agrees_by_causes(op_stats, program, timing, &by_run, &by_graph);
    op_stats->found += by_run.kind == STEADY_EXACT;
    op_stats->drivers[program->driver] += by_run.kind == STEADY_EXACT;
    op_stats->unknown += by_run.kind == STEADY_UNKNOWN;
    op_stats->by_graph += both;
    if (!good && op_stats->wrong++ < 3)
        tap_note("seed %" PRIu64 ", %s: by a run %" PRId64 "/%" PRId64
                 " (%d), by the graph %" PRId64 "/%" PRId64 " (%d)\n%s",
                 seed, driver_key(program->driver), by_run.num_ns, by_run.den, by_run.kind,
                 by_graph.num_ns, by_graph.den, by_graph.kind, text);
    steady_fini(&by_run);
    steady_fini(&by_graph);
}

typedef void program_check(struct op_stats *op_stats, const struct program *program,
                           const struct timing *timing, const char *text, uint64_t seed);

static void with_program(const char *text, uint64_t seed, enum driver driver, int ranks,
                         program_check *check, struct op_stats *op_stats)
{
    struct plan plan;
    struct program *program;
    struct timing timing;
    const struct program_options options = {
        .driver = driver, .iterations = ITERATIONS, .ranks = ranks};
    if (!text || plan_parse("random.yaml", text, strlen(text), &plan, &diag) != STATUS_OK) {
        tap_ok(0, "random plan %" PRIu64 " is good", seed);
        return;
    }
    plan.pipeline.batches = NULL; /* a few iterations are no steady state */
    if (program_build(&plan, &options, &program, &diag) == STATUS_OK) {
        if (timing_init(&timing, program, NULL, 0, &diag) == STATUS_OK) {
            check(op_stats, program, &timing, text, seed);
            timing_fini(&timing);
        }
        program_close(program);
    }
    plan_fini(&plan);
}

static void test_plans(const char *what, char *(*make)(uint64_t seed), int least)
{
    struct op_stats op_stats = {0};
    int count = env_plans(70, 3000);
    for (int i = 0; i < count; i++) {
        char *text = make((uint64_t)i);
        for (enum driver driver = DRIVER_CLOCK; driver <= DRIVER_DATAFLOW; driver++)
            with_program(text, (uint64_t)i, driver, 0, check_program, &op_stats);
        free(text);
    }
    tap_is_int(op_stats.wrong, 0,
               "%s plans, seeds 0 .. %d: %d steady states, as simulated; %d as by the event graph",
               what, count - 1, op_stats.found, op_stats.by_graph);
    tap_ok(op_stats.drivers[DRIVER_DATAFLOW] * 100 >= count * least,
           "%d of %d under data-flow; %d in all are not known", op_stats.drivers[DRIVER_DATAFLOW],
           count, op_stats.unknown);
    tap_ok(op_stats.by_causes > 0 && op_stats.causes[DRIVER_DATAFLOW] > 0,
           "event graphs by running: %d clock, %d of them compared with the other, %d data-flow",
           op_stats.causes[DRIVER_CLOCK], op_stats.by_causes, op_stats.causes[DRIVER_DATAFLOW]);
}

/* ---- slack, by simulation -------------------------------------------------------------------- */

/* Is an iteration longer, when the task takes so much longer? */
static bool is_longer(const struct program *program, const struct timing *timing, int task,
                      int64_t more_ns, const struct steady *than, bool *known)
{
    struct timing changed;
    struct steady steady = {0};
    *known = false;
    if (timing_without(&changed, timing, -1, &diag) != STATUS_OK) /* a copy */
        return false;
    for (size_t i = 0; i < program->op_count; i++)
        if (program->ops[i].task == task && changed.ops[i].timed && !changed.ops[i].host)
            changed.ops[i].mean_ns += more_ns;
    if (steady_recurrent(program, &changed, &steady, &diag) == STATUS_OK)
        *known = steady.kind == STEADY_EXACT;
    timing_fini(&changed);
    bool longer =
        *known && (__int128)steady.num_ns * than->den > (__int128)than->num_ns * steady.den;
    steady_fini(&steady);
    return longer;
}

/* The one, else the other. */
static bool find_by_a_graph(const struct program *program, const struct timing *timing,
                            struct steady *out)
{
    struct event_graph graph;
    if (steady_find(program, timing, out, &diag) != STATUS_OK)
        return false;
    if (out->kind != STEADY_UNKNOWN)
        return true;
    if (observed_event_graph_build(program, timing, &graph, &diag) != STATUS_OK)
        return false;
    bool good = steady_of_graph(&graph, STEADY_BY_CAUSES, out, &diag) == STATUS_OK;
    event_graph_fini(&graph);
    return good;
}

static void check_slacks(struct op_stats *op_stats, const struct program *program,
                         const struct timing *timing, const char *text, uint64_t seed)
{
    struct steady steady;
    int64_t *slack_ns = NULL;
    if (!find_by_a_graph(program, timing, &steady) ||
        slack_find(program, timing, &steady, &slack_ns, &diag) != STATUS_OK) {
        tap_ok(0, "seed %" PRIu64 " has slacks", seed);
        return;
    }
    for (int t = 0; slack_ns && t < program->tasks; t++) {
        bool known[2];
        if (slack_ns[t] < 0 || program->plan->pipeline.tasks[t].work.kind == WORK_HOST)
            continue;
        bool still = !is_longer(program, timing, t, slack_ns[t], &steady, &known[0]);
        bool longer = is_longer(program, timing, t, slack_ns[t] + 1, &steady, &known[1]);
        op_stats->found += known[0] && known[1];
        op_stats->causes[program->driver] += known[0] && known[1] && steady.way == STEADY_BY_CAUSES;
        if ((still || !known[0]) && (longer || !known[1]))
            continue;
        if (op_stats->wrong++ < 3)
            tap_note("seed %" PRIu64 ", %s: slack %" PRId64 "\n%s", seed,
                     program->plan->pipeline.tasks[t].name, slack_ns[t], text);
    }
    free(slack_ns);
    steady_fini(&steady);
}

static void test_slack(void)
{
    struct op_stats op_stats = {0};
    int count = env_is_long() ? 1000 : 40;
    for (int i = 0; i < count; i++) {
        char *text = calm_plan((uint64_t)i);
        with_program(text, (uint64_t)i, DRIVER_CLOCK, 1, check_slacks, &op_stats);
        free(text);
        text = random_plan((uint64_t)i, RANDOM_PIPELINE);
        with_program(text, (uint64_t)i, DRIVER_DATAFLOW, 1, check_slacks, &op_stats);
        free(text);
    }
    tap_is_int(op_stats.wrong, 0,
               "by its slack a task may take longer, by 1 ns more it may not: seeds 0 .. %d",
               count - 1);
    tap_ok(op_stats.found > count && op_stats.causes[DRIVER_DATAFLOW] > 0,
           "%d tasks were simulated, %d of them under data-flow", op_stats.found,
           op_stats.causes[DRIVER_DATAFLOW]);
}

int main(void)
{
    diag_init(&diag);
    test_plans("random", random_pipeline, 20);
    test_plans("tame random", tame_plan, 20);
    test_plans("calm random", calm_plan, 20);
    test_slack();
    diag_fini(&diag);
    return tap_done();
}
