/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_cycle_ratio.c - the exact steady state: policy iteration against Lawler's binary search on
 * random graphs, deadlocks, and the simulator: over whole periods of its steady state an iteration
 * takes the exact time to the nanosecond.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plan/text/parse.h"
#include "sim/predict/predict.h"
#include "sim/engine/random.h"
#include "sim/predict/report.h"
#include "sim/maxplus/slack.h"
#include "tests/harness.h"
#include "tests/random_plan.h"
#include "tests/tame_plan.h"
#include "tests/tap.h"

static struct diag diag;

enum { MAX_NODES = 40, MAX_EDGES = 160, MAX_HEIGHT = 3 };

static struct random_stream open_rng(uint64_t seed, const char *what)
{
    return random_open(
        &(struct random_subject){.seed = seed, .task = random_name(what), .part = RANDOM_OTHER});
}

static int below(struct random_stream *rng, int count)
{
    return (int)(random_bits(rng) % (uint64_t)count);
}

/* ---- the second algorithm -------------------------------------------------------------------- */

/* Bellman-Ford: is there a cycle on which weight * scale - ratio * height adds up to more than
   zero, or to zero at least? Exact for the small numbers of these tests. */
static bool has_cycle_above(const struct ratio_graph *graph, int64_t ratio, int64_t scale,
                            bool zero_too)
{
    int64_t distance[MAX_NODES] = {0};
    int64_t nudge = zero_too, stretch = zero_too ? MAX_NODES + 1 : 1;
    bool changed = true;
    for (int round = 0; round <= graph->nodes && changed; round++) {
        changed = false;
        for (int e = 0; e < graph->edge_count; e++) {
            const struct ratio_edge *edge = &graph->edges[e];
            int64_t length = (edge->weight_ns * scale - ratio * edge->height) * stretch + nudge;
            if (distance[edge->from] + length <= distance[edge->to])
                continue;
            distance[edge->to] = distance[edge->from] + length;
            changed = true;
        }
    }
    return changed;
}

/* Lawler 1976: halve the interval the ratio is in until it holds one fraction only whose
   denominator a simple cycle can have. */
static void lawler(const struct ratio_graph *graph, int64_t *num, int64_t *den)
{
    enum { SCALE = 1 << 16, MAX_DEN = MAX_NODES * MAX_HEIGHT };
    int64_t low = -(INT64_C(1) << 40), high = INT64_C(1) << 40; /* low <= ratio * SCALE < high */
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (has_cycle_above(graph, middle, SCALE, true))
            low = middle;
        else
            high = middle;
    }
    for (int64_t d = 1; d <= MAX_DEN; d++) {
        int64_t n = (high * d - 1) / SCALE; /* rounds up where it is negative */
        while (n * SCALE >= high * d)
            n--;
        if (n * SCALE >= low * d) {
            *num = n;
            *den = d;
            return;
        }
    }
    *den = 0;
}

/* ---- random graphs --------------------------------------------------------------------------- */

struct random_graph {
    struct ratio_graph graph;
    struct ratio_edge edges[MAX_EDGES];
};

/* Edges of height 0 lead to larger nodes, so that every cycle has a height. Then heights are
   shifted by a random potential, which changes none of the cycles. */
static void make_graph(struct random_graph *out, uint64_t seed, bool shifted)
{
    struct random_stream rng = open_rng(seed, "graph");
    int nodes = 1 + below(&rng, MAX_NODES), lift[MAX_NODES];
    int edges = 1 + below(&rng, nodes * 4);
    int64_t heaviest = below(&rng, 2) ? 10 : 1000000;
    bool negative = below(&rng, 4) == 0;
    for (int v = 0; v < nodes; v++)
        lift[v] = shifted ? below(&rng, 7) : 0;
    out->graph = (struct ratio_graph){nodes, edges, out->edges};
    for (int e = 0; e < edges; e++) {
        int from = below(&rng, nodes), to = below(&rng, nodes);
        int height = below(&rng, MAX_HEIGHT + 1);
        int64_t weight = (int64_t)(random_bits(&rng) % (uint64_t)heaviest);
        if (height == 0 && from >= to)
            height = 1 + below(&rng, MAX_HEIGHT);
        out->edges[e] = (struct ratio_edge){from, to, height + lift[from] - lift[to],
                                            negative ? weight - heaviest / 2 : weight};
    }
}

/* Does the cycle close, and do its sums say what the result says? */
static bool cycle_is_one(const struct ratio_graph *graph, const struct cycle_ratio *ratio)
{
    int64_t weight = 0, height = 0;
    for (int i = 0; i < ratio->length; i++) {
        const struct ratio_edge *edge = &graph->edges[ratio->cycle[i]];
        if (edge->to != graph->edges[ratio->cycle[(i + 1) % ratio->length]].from)
            return false;
        weight += edge->weight_ns;
        height += edge->height;
    }
    return ratio->length > 0 && weight == ratio->weight_ns && height == ratio->height;
}

static bool has_any_cycle(const struct ratio_graph *graph)
{
    struct ratio_edge edges[MAX_EDGES];
    struct ratio_graph flat = {graph->nodes, graph->edge_count, edges};
    for (int e = 0; e < graph->edge_count; e++)
        edges[e] = (struct ratio_edge){graph->edges[e].from, graph->edges[e].to, 0, 1};
    return has_cycle_above(&flat, 0, 1, false);
}

static bool agrees(uint64_t seed)
{
    struct random_graph made;
    struct cycle_ratio ratio;
    int64_t num = 0, den = 0;
    make_graph(&made, seed, seed % 2);
    if (cycle_ratio_find(&made.graph, &ratio, &diag) != STATUS_OK)
        return false;
    bool good = ratio.kind == RATIO_NONE && !has_any_cycle(&made.graph);
    if (ratio.kind == RATIO_FOUND) {
        lawler(&made.graph, &num, &den);
        good = cycle_is_one(&made.graph, &ratio) && den > 0 &&
               num * ratio.height == ratio.weight_ns * den;
    }
    if (!good)
        tap_note("seed %" PRIu64 ": kind %d, %" PRId64 " / %" PRId64 ", Lawler %" PRId64
                 " / %" PRId64,
                 seed, ratio.kind, ratio.weight_ns, ratio.height, num, den);
    cycle_ratio_fini(&ratio);
    return good;
}

/* Heights as they come: a cycle of none or less must be found exactly when there is one. */
static bool agrees_on_deadlock(uint64_t seed)
{
    struct random_graph made;
    struct ratio_edge heights[MAX_EDGES];
    struct cycle_ratio ratio;
    struct random_stream rng = open_rng(seed, "deadlock");
    make_graph(&made, seed, false);
    for (int e = 0; e < made.graph.edge_count; e++) {
        made.edges[e].height = below(&rng, 6) - (below(&rng, 4) ? 0 : 2);
        heights[e] = made.edges[e];
        heights[e].weight_ns = -made.edges[e].height;
        heights[e].height = 0;
    }
    struct ratio_graph lengths = {made.graph.nodes, made.graph.edge_count, heights};
    bool deadlock = has_cycle_above(&lengths, 0, 1, true);
    if (cycle_ratio_find(&made.graph, &ratio, &diag) != STATUS_OK)
        return false;
    bool good = (ratio.kind == RATIO_DEADLOCK) == deadlock;
    if (good && deadlock)
        good = cycle_is_one(&made.graph, &ratio) && ratio.height <= 0;
    cycle_ratio_fini(&ratio);
    return good;
}

static void test_random_graphs(void)
{
    int count = env_is_long() ? 10000 : 2000, good = 0, right = 0;
    for (int seed = 0; seed < count; seed++) {
        good += agrees((uint64_t)seed);
        right += agrees_on_deadlock((uint64_t)seed);
    }
    tap_is_int(good, count, "policy iteration and Lawler's search agree on %d random graphs",
               count);
    tap_is_int(right, count, "cycles without height are found in %d random graphs", count);
}

/* ---- the report ------------------------------------------------------------------------------ */

/* The report of a plan, as JSON and as text. */
static void check_report(const char *text, enum driver driver, const char *in_json,
                         const char *in_text)
{
    struct plan plan;
    struct prediction prediction;
    struct json json;
    char *written = NULL;
    size_t size;
    const struct predict_options options = {.program = {.driver = driver, .iterations = 50},
                                            .replications = 1,
                                            .threads = 1,
                                            .exposed = EXPOSED_NEVER};
    FILE *out = open_memstream(&written, &size);
    bool parsed = out && plan_parse("test.yaml", text, strlen(text), &plan, &diag) == STATUS_OK;
    bool predicted = parsed && predict(&plan, &options, &prediction, &diag) == STATUS_OK;
    if (predicted) {
        json_open(&json, out);
        bool good = report_write(&prediction, &(struct report_row){0}, &json, &diag) == STATUS_OK &&
                    json_close(&json, &diag) == STATUS_OK &&
                    report_print(&prediction, true, false, out, &diag) == STATUS_OK;
        prediction_fini(&prediction);
        fflush(out);
        tap_ok(good && strstr(written, in_json), "JSON: %s", in_json);
        tap_ok(good && strstr(written, in_text), "text: %s", in_text);
    } else {
        tap_ok(0, "the plan of the report is good");
    }
    if (parsed)
        plan_fini(&plan);
    if (out)
        fclose(out);
    free(written);
}

static void test_report(void)
{
#define TWO_STREAMS                                                                                \
    "swplan: 1\nretire: device\nschedule:\n"                                                       \
    "  Copy: {stage: 0, stream: memcpy, time: 1ms}\n"                                              \
    "  Work: {stage: 1, time: 2ms, host_time: 10us}\n"                                             \
    "  Back: {stage: 1, time: 1ms, host_time: 10us}\n"
    static const char good[] = TWO_STREAMS "intra_iter_deps: [[Work, Copy], [Back, Work]]\n";
    check_report(good, DRIVER_CLOCK,
                 "\"steady_exact_ns\":3010000,\"steady_exact_ratio\":[3010000,1],"
                 "\"steady_exact_way\":\"event_graph\",\"steady_exact_why\":null,\"critical_"
                 "cycle\":[\"Work\",\"Back\"],\"critical_parts\":[{",
                 "exact       3.01 ms, limited by driver -> launch of Work -> Work -> Back");
    check_report(good, DRIVER_DATAFLOW,
                 "\"steady_exact_ns\":3000000,\"steady_exact_ratio\":[3000000,1],"
                 "\"steady_exact_way\":\"run\",\"steady_exact_why\":null,"
                 "\"critical_cycle\":[\"Work\",\"Back\"]",
                 "exact       3.00 ms, as the run repeats itself, limited by Work -> Back");
    check_report(TWO_STREAMS "intra_iter_deps: [[Copy, Work]]\nenqueue_order: [Copy, Work, Back]\n",
                 DRIVER_CLOCK, "\"steady_exact_why\":\"deadlock\",\"critical_cycle\":[",
                 "exact       deadlock, each waiting for the one before: launch of");
}

/* ---- small graphs by hand -------------------------------------------------------------------- */

static void test_by_hand(void)
{
    static const struct ratio_edge two[] = {
        {0, 1, 0, 5}, {1, 0, 1, 0}, {1, 2, 0, 9}, {2, 1, 2, 2}, {2, 2, 3, 17}};
    struct ratio_graph graph = {3, 5, two};
    struct cycle_ratio ratio;
    if (cycle_ratio_find(&graph, &ratio, &diag) == STATUS_OK) {
        tap_ok(ratio.kind == RATIO_FOUND && ratio.weight_ns == 17 && ratio.height == 3,
               "17/3 is more than 11/2 and 5/1");
        cycle_ratio_fini(&ratio);
    }
    static const struct ratio_edge huge[] = {{0, 0, 1, INT64_MAX}};
    graph = (struct ratio_graph){1, 1, huge};
    tap_is_int(cycle_ratio_find(&graph, &ratio, &diag), STATUS_LIMIT, "more than 146 years");
    diag_fini(&diag);
    diag_init(&diag);
    graph = (struct ratio_graph){0};
    tap_ok(cycle_ratio_find(&graph, &ratio, &diag) == STATUS_OK && ratio.kind == RATIO_NONE,
           "nothing has no cycle");
}

/* ---- speed ----------------------------------------------------------------------------------- */

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

/* A pipeline of `tasks` tasks on 8 streams, in 4 stages, as an event graph. */
static char *big_plan(int tasks, uint64_t seed)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct random_stream rng = open_rng(seed, "speed");
    if (!out)
        return NULL;
    fprintf(out, "swplan: 1\nschedule:\n");
    for (int t = 0; t < tasks; t++) {
        int stream = below(&rng, 8), device_us = 50 + below(&rng, 500);
        fprintf(out, "  T%d: {stage: %d, stream: s%d, time: %dus, host_time: %dus}\n", t,
                t * 4 / tasks, stream, device_us, 1 + below(&rng, 60));
    }
    fprintf(out, "intra_iter_deps:\n");
    for (int t = 1; t < tasks; t++)
        fprintf(out, "  - [T%d, T%d]\n", t, below(&rng, t));
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* Without the edges that a steady state does not have: as steady_find asks. */
static int drop_spare_edges(struct event_graph *graph)
{
    int kept = 0;
    for (int e = 0; e < graph->edge_count; e++)
        if (!graph->links[e].spare)
            graph->edges[kept++] = graph->edges[e];
    return kept;
}

/* The best of several times, which is what the machine can do. */
static void time_it(const struct program *program, const struct timing *timing)
{
    enum { ROUNDS = 50 };
    double build_us = 1e18, solve_us = 1e18;
    int events = 0, edges = 0, rounds = 0;
    for (int i = 0; i < ROUNDS; i++) {
        struct event_graph graph;
        struct cycle_ratio ratio = {0};
        double start = now_us();
        if (event_graph_build(program, timing, &graph, &diag) != STATUS_OK)
            return;
        double built = now_us();
        const struct ratio_graph plain = {graph.event_count, drop_spare_edges(&graph), graph.edges};
        double start_us = now_us();
        if (cycle_ratio_find(&plain, &ratio, &diag) == STATUS_OK) {
            solve_us = fmin(solve_us, now_us() - start_us);
            build_us = fmin(build_us, built - start);
            rounds = ratio.rounds;
            cycle_ratio_fini(&ratio);
        }
        events = graph.event_count;
        edges = plain.edge_count;
        event_graph_fini(&graph);
    }
    tap_note("%d tasks: %d events and %d edges in %.0f us, the cycle in %.0f us (%d rounds)",
             program->tasks, events, edges, build_us, solve_us, rounds);
}

static void time_plan(uint64_t seed)
{
    struct plan plan;
    struct program *program;
    struct timing timing;
    char *text = big_plan(1000, seed);
    const struct program_options options = {.driver = DRIVER_CLOCK, .iterations = 10};
    if (!text || plan_parse("big.yaml", text, strlen(text), &plan, &diag) != STATUS_OK) {
        tap_ok(0, "the big plan is good");
        free(text);
        return;
    }
    if (program_build(&plan, &options, &program, &diag) == STATUS_OK) {
        if (timing_init(&timing, program, NULL, 0, &diag) == STATUS_OK) {
            time_it(program, &timing);
            timing_fini(&timing);
        }
        program_close(program);
    }
    plan_fini(&plan);
    free(text);
}

/* In the first the first policy is the best, in the others it is not. */
static void tell_times(void)
{
    for (uint64_t seed = 1; seed <= 6; seed++)
        time_plan(seed);
}

/* ---- against the simulator ------------------------------------------------------------------- */

enum { MAX_PERIOD = 120 };

/* When each iteration was over on all ranks. */
struct clock {
    int64_t *over_ns;
    int64_t count;
};

static bool note_iteration(void *context, int rank, int64_t number, int64_t admitted_ns,
                           int64_t retired_ns)
{
    struct clock *clock = context;
    (void)rank;
    (void)admitted_ns;
    if (number < clock->count && retired_ns > clock->over_ns[number])
        clock->over_ns[number] = retired_ns;
    return true;
}

/* Is the time from iteration i to i + period as exact says, for all i of the middle third? Fill and
   drain reach beyond their depth: a queue fills slowly, a rank that drains hurries its peers. */
static bool has_period(const struct clock *clock, const struct steady *steady, int period)
{
    int64_t first = clock->count / 3, last = 2 * clock->count / 3 - period;
    for (int64_t i = first; i < last; i++)
        if ((clock->over_ns[i + period] - clock->over_ns[i]) * steady->den !=
            steady->num_ns * period)
            return false;
    return last > first;
}

struct answer {
    enum steady_kind kind;
    bool deadlock; /* the simulation's */
    int period;    /* EXACT: over so many iterations the simulation agrees; 0: it does not */
    double exact_ns, mean_ns;
    char why[EVENT_GRAPH_WHY];
};

static bool compare(const struct plan *plan, int64_t iterations, struct answer *out)
{
    struct clock clock = {calloc((size_t)iterations, sizeof *clock.over_ns), iterations};
    const struct simulate_observer observer = {.context = &clock, .iteration = note_iteration};
    const struct predict_options options = {
        .program = {.driver = DRIVER_CLOCK, .iterations = iterations},
        .replications = 1,
        .threads = 1,
        .exposed = EXPOSED_NEVER,
        .observer = &observer,
    };
    struct prediction prediction;
    if (!clock.over_ns || predict(plan, &options, &prediction, &diag) != STATUS_OK) {
        free(clock.over_ns);
        return false;
    }
    const struct steady *steady = &prediction.steady;
    *out = (struct answer){.kind = steady->kind,
                           .deadlock = prediction.blocked_count > 0,
                           .mean_ns = prediction.iteration.mean};
    snprintf(out->why, sizeof out->why, "%s", steady->why);
    if (steady->kind == STEADY_EXACT)
        out->exact_ns = (double)steady->num_ns / (double)steady->den;
    for (int period = 1; steady->kind == STEADY_EXACT && !out->deadlock && period <= MAX_PERIOD;
         period++)
        if (has_period(&clock, steady, period)) {
            out->period = period;
            break;
        }
    prediction_fini(&prediction);
    free(clock.over_ns);
    return true;
}

static void check_file(const char *file, bool must_be_exact)
{
    struct plan plan;
    struct answer answer;
    const char *name = strrchr(file, '/') + 1;
    if (plan_read(file, &plan, &diag) != STATUS_OK) {
        tap_ok(0, "%s is read", name);
        return;
    }
    if (plan.form == FORM_PIPELINE && compare(&plan, 600, &answer)) {
        if (answer.kind == STEADY_EXACT)
            tap_ok(answer.period > 0, "%s: exactly %.1f ns, simulated %.1f ns, period %d", name,
                   answer.exact_ns, answer.mean_ns, answer.period);
        else if (answer.kind == STEADY_DEADLOCK)
            tap_ok(answer.deadlock, "%s: deadlock in both", name);
        else
            tap_ok(!must_be_exact, "%s: not known: %s", name, answer.why);
    }
    plan_fini(&plan);
}

static void check_folder(const char *pattern, bool must_be_exact)
{
    glob_t found = files_source(pattern);
    for (size_t i = 0; i < found.gl_pathc; i++)
        check_file(found.gl_pathv[i], must_be_exact);
    globfree(&found);
}

struct tally {
    int exact, deadlocks, wrong;
};

static void tally(struct tally *sum, const char *text, int seed)
{
    struct plan plan;
    struct answer answer = {.kind = STEADY_UNKNOWN};
    if (!text || plan_parse("random.yaml", text, strlen(text), &plan, &diag) != STATUS_OK) {
        tap_note("seed %d: %s\n%s", seed, diag.count ? diag.messages[0].text : "?", text);
        sum->wrong++;
        return;
    }
    plan.pipeline.batches = NULL; /* a few iterations are no steady state */
    bool good = compare(&plan, 400, &answer);
    if (good && answer.kind == STEADY_EXACT && answer.period == 0) /* a queue that fills slowly */
        good = compare(&plan, 40000, &answer);
    sum->exact += answer.kind == STEADY_EXACT;
    sum->deadlocks += answer.kind == STEADY_DEADLOCK;
    if (good && answer.kind != STEADY_UNKNOWN)
        good = (answer.kind == STEADY_DEADLOCK) == answer.deadlock &&
               (answer.deadlock || answer.period > 0);
    if (!good) {
        sum->wrong++;
        tap_note("seed %d: kind %d, deadlock %d, exactly %.3f, simulated %.3f\n%s", seed,
                 answer.kind, answer.deadlock, answer.exact_ns, answer.mean_ns, text);
    }
    plan_fini(&plan);
}

/* Every exact answer for a random plan must be the simulator's. */
static void test_random_plans(const char *what, char *(*make)(uint64_t seed))
{
    int count = env_plans(500, 10000);
    struct tally sum = {0};
    for (int seed = 0; seed < count; seed++) {
        char *text = make((uint64_t)seed);
        tally(&sum, text, seed);
        free(text);
    }
    tap_is_int(sum.wrong, 0, "%d %s plans: %d exact, %d deadlocks, the simulator agrees", count,
               what, sum.exact, sum.deadlocks);
}

/* ---- slack ----------------------------------------------------------------------------------- */

static double period_of(const struct program *program, const struct timing *timing)
{
    struct steady steady;
    if (steady_find(program, timing, &steady, &diag) != STATUS_OK)
        return NAN;
    double period = steady.kind == STEADY_EXACT ? (double)steady.num_ns / (double)steady.den : NAN;
    steady_fini(&steady);
    return period;
}

/* Longer by its slack a task changes nothing; by two nanoseconds more it does. */
static bool slack_holds(const struct program *program, struct timing *timing, int task,
                        int64_t slack_ns)
{
    double before = period_of(program, timing), with[2];
    for (int more = 0; more < 2; more++) {
        struct timing changed;
        if (timing_without(&changed, timing, -1, &diag) != STATUS_OK) /* a copy */
            return false;
        for (size_t i = 0; i < program->op_count; i++)
            if (program->ops[i].task == task && changed.ops[i].timed && !changed.ops[i].host)
                changed.ops[i].mean_ns += slack_ns + 2 * more;
        with[more] = period_of(program, &changed);
        timing_fini(&changed);
    }
    if (with[0] == before && with[1] > before)
        return true;
    tap_note("%s: slack %lld, period %.3f, with it %.3f, with more %.3f",
             program->plan->pipeline.tasks[task].name, (long long)slack_ns, before, with[0],
             with[1]);
    return false;
}

static void check_slacks(const struct program *program, struct timing *timing, int *looked_at,
                         int *wrong)
{
    struct steady steady;
    int64_t *slack_ns = NULL;
    if (steady_find(program, timing, &steady, &diag) != STATUS_OK)
        return;
    if (slack_find(program, timing, &steady, &slack_ns, &diag) != STATUS_OK)
        ++*wrong;
    for (int t = 0; slack_ns && t < program->tasks; t++)
        if (slack_ns[t] >= 0 && program->plan->pipeline.tasks[t].work.kind != WORK_HOST) {
            ++*looked_at;
            *wrong += !slack_holds(program, timing, t, slack_ns[t]);
        }
    free(slack_ns);
    steady_fini(&steady);
}

static void test_slack(void)
{
    const struct program_options options = {.driver = DRIVER_CLOCK, .iterations = 100, .ranks = 1};
    int looked_at = 0, wrong = 0, count = env_is_long() ? 2000 : 200;
    for (int i = 0; i < count; i++) {
        char *text = calm_plan((uint64_t)i);
        struct plan plan;
        struct program *program;
        struct timing timing;
        if (text && plan_parse("calm.yaml", text, strlen(text), &plan, &diag) == STATUS_OK) {
            if (program_build(&plan, &options, &program, &diag) == STATUS_OK) {
                if (timing_init(&timing, program, NULL, 0, &diag) == STATUS_OK) {
                    check_slacks(program, &timing, &looked_at, &wrong);
                    timing_fini(&timing);
                }
                program_close(program);
            }
            plan_fini(&plan);
        }
        free(text);
    }
    tap_is_int(wrong, 0, "the slack of tasks is what they may take longer, and no more");
    tap_ok(looked_at > count, "%d tasks were looked at", looked_at);
}

int main(void)
{
    diag_init(&diag);
    if (getenv("SWSIM_TIME_ONLY")) {
        tell_times();
        return 0;
    }
    test_by_hand();
    test_report();
    test_random_graphs();
    check_folder("plans/reference/*.yaml", true);
    check_folder("plans/deadlocks/*.yaml", false);
    check_folder("plans/examples/*.yaml", false);
    check_folder("plans/bugs/*.yaml", false);
    test_random_plans("random", random_pipeline);
    test_random_plans("tame random", tame_plan);
    test_slack();
    tell_times();
    diag_fini(&diag);
    return tap_done();
}
