/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_critical_path.c - a critical path is a chain without a gap, made of what the simulation did: on random
 * plans of all forms, with random durations; and one by hand, as text.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plan/text/parse.h"
#include "sim/predict/critical_path.h"
#include "tests/harness.h"
#include "tests/random_plan.h"
#include "tests/tame_plan.h"
#include "tests/tap.h"

static struct diag diag;

enum { ITERATIONS = 30, MOST_SPANS = 20000 };

/* The events of a simulation. */
struct heard {
    struct simulate_span spans[MOST_SPANS];
    int count;
    int64_t first_ns[ITERATIONS], last_ns[ITERATIONS]; /* admitted, retired; over all ranks */
    int ranks[ITERATIONS];
};
static struct heard heard;

static bool hear_span(void *context, const struct simulate_span *span)
{
    struct heard *all = context;
    if (all->count < MOST_SPANS)
        all->spans[all->count++] = *span;
    return true;
}

static bool hear_iteration(void *context, int rank, int64_t number, int64_t admitted_ns,
                           int64_t retired_ns)
{
    struct heard *all = context;
    (void)rank;
    if (all->ranks[number]++ == 0 || admitted_ns < all->first_ns[number])
        all->first_ns[number] = admitted_ns;
    if (retired_ns > all->last_ns[number])
        all->last_ns[number] = retired_ns;
    return true;
}

/* A part that is not the first, which may have begun before the path, is just what was heard. */
static bool was_heard(const struct program *p, const struct path_part *part, bool first)
{
    bool comm = p->agents[part->agent].kind == AGENT_COMM;
    int64_t end_ns = part->start_ns + part->dur_ns;
    for (int i = 0; i < heard.count; i++) {
        const struct simulate_span *span = &heard.spans[i];
        if (span->op == part->op && (comm || span->agent == part->agent) &&
            (p->tasks == 0 || span->iteration == part->iteration) && span->end_ns == end_ns &&
            (first ? span->start_ns <= part->start_ns : span->start_ns == part->start_ns))
            return true;
    }
    return false;
}

static const char *wrong_with(const struct program *p, const struct critical_path *path)
{
    int64_t at_ns = path->start_ns;
    for (int i = 0; i < path->part_count; i++) {
        const struct path_part *part = &path->parts[i];
        if (part->start_ns != at_ns || part->dur_ns <= 0)
            return "there is a gap";
        if (!was_heard(p, part, i == 0))
            return "a part was never heard of";
        if ((part->waited == PATH_BEGIN) != (i == 0))
            return "a part waited for nothing";
        at_ns += part->dur_ns;
    }
    if (at_ns != path->end_ns)
        return "the durations do not add up";
    if (p->tasks && (path->start_ns != heard.first_ns[path->iteration] ||
                     path->end_ns != heard.last_ns[path->iteration]))
        return "it is not from the iteration's admission to its end";
    return NULL;
}

/* Nothing is on the paths for longer than they are, or more often. */
static const char *wrong_with_shares(const struct program *p, const struct critical_path *path)
{
    int64_t ns = 0;
    for (int i = 0; path->shares && i < 2 * p->tasks; i++) {
        ns += path->shares[i].ns;
        if (path->shares[i].iterations > path->iterations)
            return "a task is on more paths than there are";
    }
    return path->shares && ns != path->total_ns ? "the shares do not add up" : NULL;
}

struct op_stats {
    int paths, parts, wrong, none, waits[PATH_PERIOD + 1];
};

static void look_at(struct op_stats *op_stats, const struct program *p,
                    const struct critical_path *path, const char *text, uint64_t seed)
{
    const char *wrong = path->parts ? wrong_with(p, path) : NULL;
    if (!wrong)
        wrong = wrong_with_shares(p, path);
    op_stats->paths += path->parts != NULL;
    op_stats->none += path->parts == NULL;
    op_stats->parts += path->part_count;
    for (int i = 0; i < path->part_count; i++)
        op_stats->waits[path->parts[i].waited]++;
    if (wrong && op_stats->wrong++ < 3) {
        tap_note("seed %" PRIu64 ", %s, iteration %" PRId64 ": %s\n%s", seed, driver_key(p->driver),
                 path->iteration, wrong, text);
        critical_path_print(p, path, stdout);
    }
}

static void run(struct op_stats *op_stats, const struct program *p, const struct timing *timing,
                int64_t wanted, const char *text, uint64_t seed)
{
    struct critical_path path;
    struct simulation_result result;
    const struct simulate_observer inner = {
        .context = &heard, .span = hear_span, .iteration = hear_iteration};
    struct path_watch *watch = path_watch_open(p, wanted, &inner, &diag);
    const struct simulate_options options = {.seed = seed, .observer = path_watch_observer(watch)};
    memset(&heard, 0, sizeof heard);
    if (simulate_run(p, timing, &options, &result, &diag) != STATUS_OK) {
        tap_ok(0, "seed %" PRIu64 " is simulated", seed);
        path_watch_close(watch);
        return;
    }
    simulation_fini(&result);
    if (path_watch_take(watch, &path) == STATUS_OK) {
        look_at(op_stats, p, &path, text, seed);
        critical_path_fini(&path);
    }
    path_watch_close(watch);
}

static void check_plan(struct op_stats *op_stats, const char *text, enum driver driver,
                       uint64_t seed)
{
    const struct dist dist = {.kind = DIST_NORMAL, .parameter = 0.5};
    const struct jitter_rule rule = {"*", dist};
    const struct program_options options = {.driver = driver, .iterations = ITERATIONS};
    struct plan plan;
    struct program *program;
    struct timing timing;
    if (!text || plan_parse("random.yaml", text, strlen(text), &plan, &diag) != STATUS_OK) {
        tap_ok(0, "random plan %" PRIu64 " is good", seed);
        return;
    }
    if (program_build(&plan, &options, &program, &diag) == STATUS_OK) {
        bool varies = seed % 2;
        if (timing_init(&timing, program, &rule, varies, &diag) == STATUS_OK) {
            run(op_stats, program, &timing, (int64_t)(seed % ITERATIONS), text, seed);
            run(op_stats, program, &timing, PATH_SLOWEST, text, seed);
            timing_fini(&timing);
        }
        program_close(program);
    }
    plan_fini(&plan);
}

static void test_plans(const char *what, char *(*make)(uint64_t seed), bool pipeline)
{
    struct op_stats op_stats = {0};
    int count = env_plans(150, 3000);
    for (int i = 0; i < count; i++) {
        char *text = make((uint64_t)i);
        if (pipeline) {
            check_plan(&op_stats, text, DRIVER_CLOCK, (uint64_t)i);
            check_plan(&op_stats, text, DRIVER_DATAFLOW, (uint64_t)i);
        } else {
            check_plan(&op_stats, text, DRIVER_NONE, (uint64_t)i);
        }
        free(text);
    }
    tap_is_int(op_stats.wrong, 0, "%s plans, seeds 0 .. %d: %d paths of %d parts (%d never over)",
               what, count - 1, op_stats.paths, op_stats.parts, op_stats.none);
    tap_ok(op_stats.paths > count / 2, "most have a path");
}

/* ---- by hand --------------------------------------------------------------------------------- */

static void test_by_hand(void)
{
    static const char text[] = "swplan: 1\nname: hand\nretire: device\nschedule:\n"
                               "  Copy: {stage: 0, stream: memcpy, time: 3ms}\n"
                               "  Work: {stage: 1, time: 2ms, host_time: 10us}\n"
                               "  Back: {stage: 1, time: 4ms}\n"
                               "intra_iter_deps: [[Work, Copy], [Back, Work]]\n";
    static const char *const lines[] = {"critical path of iteration 10, admitted at ",
                                        "launch of Work(9)   thread default  the beginning",
                                        "Work(9)             stream main     its launch",
                                        "Back(9)             stream main     stream order",
                                        "launch of Work(10)  thread default  period clock, Back(9)",
                                        "Work(10)            stream main     its launch",
                                        "Back(10)            stream main     stream order",
                                        "on the critical paths of all 30 iterations"};
    struct plan plan;
    struct program *program;
    struct timing timing;
    struct critical_path path;
    struct simulation_result result;
    char *written = NULL;
    size_t size;
    const struct program_options options = {.driver = DRIVER_CLOCK, .iterations = ITERATIONS};
    FILE *out = open_memstream(&written, &size);
    if (!out || plan_parse("hand.yaml", text, strlen(text), &plan, &diag) != STATUS_OK ||
        program_build(&plan, &options, &program, &diag) != STATUS_OK ||
        timing_init(&timing, program, NULL, 0, &diag) != STATUS_OK) {
        tap_ok(0, "the plan by hand is good");
        return;
    }
    struct path_watch *watch = path_watch_open(program, 10, NULL, &diag);
    const struct simulate_options how = {.observer = path_watch_observer(watch)};
    if (simulate_run(program, &timing, &how, &result, &diag) == STATUS_OK &&
        path_watch_take(watch, &path) == STATUS_OK) {
        critical_path_print(program, &path, out);
        fflush(out);
        bool good = true;
        for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
            bool there = strstr(written, lines[i]) != NULL;
            tap_ok(there, "%s", lines[i]);
            good &= there;
        }
        if (!good)
            tap_note("%s", written);
        critical_path_fini(&path);
        simulation_fini(&result);
    }
    path_watch_close(watch);
    timing_fini(&timing);
    program_close(program);
    plan_fini(&plan);
    fclose(out);
    free(written);
}

int main(void)
{
    diag_init(&diag);
    test_by_hand();
    test_plans("random", random_pipeline, true);
    test_plans("tame random", tame_plan, true);
    test_plans("calm random", calm_plan, true);
    test_plans("random thread", random_threads, false);
    test_plans("random rank program", random_programs, false);
    diag_fini(&diag);
    return tap_done();
}
