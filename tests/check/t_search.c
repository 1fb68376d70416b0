/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_search.c - the search: limits, interrupts, threads, bitstate, counterexamples, always and some;
 * and every plan of the project, with and without reduction, against what it says of itself.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/verify.h"
#include "plan/text/parse.h"
#include "tests/harness.h"
#include "tests/tap.h"

enum { WITHOUT_REDUCTION_STATES = 30000 };

/* Two threads, two locks, two orders: the shortest way into the deadlock is one step of each. */
static const char two_locks[] =
    "swplan: 1\nthreads:\n"
    "  r0.a: [{host: 1us}, {lock: m}, {lock: n}, {unlock: n}, {unlock: m}]\n"
    "  r0.b: [{lock: n}, {lock: m}, {unlock: m}, {unlock: n}]\n";
static bool parse(const char *text, struct plan *plan, struct diag *diag)
{
    diag_init(diag);
    if (plan_parse("test.yaml", text, strlen(text), plan, diag) == STATUS_OK)
        return true;
    diag_print(diag, "t_search", false, stderr);
    diag_fini(diag);
    return false;
}

/* ---- searches -------------------------------------------------------------------------------- */

static bool verify_text(const char *text, struct verify_options options,
                        struct verify_report *report)
{
    struct plan plan;
    struct diag diag;
    if (!parse(text, &plan, &diag))
        return false;
    options.program.iterations = options.program.iterations ? options.program.iterations : -1;
    bool ok = verify_plan(&plan, &options, report, &diag) == STATUS_OK;
    plan_fini(&plan);
    diag_fini(&diag);
    return ok;
}

static void test_shortest(void)
{
    struct verify_report report;
    if (!verify_text(two_locks, (struct verify_options){0}, &report)) {
        tap_ok(0, "two locks are verified");
        return;
    }
    const struct story *story = &report.stories[PROPERTY_DEADLOCK];
    tap_is_int(report.outcome[PROPERTY_DEADLOCK], OUTCOME_SOME, "two locks: some interleavings");
    tap_is_int((long long)story->step_count, 3, "the shortest counterexample has three steps");
    tap_is_int((long long)story->blocked_count, 2, "two threads are blocked");
    tap_is_int((long long)story->cycle_count, 2, "and wait for each other");
    tap_ok(story->cycle_count == 2 && story->blocked[story->cycle[0]].on == story->cycle[1] &&
               story->blocked[story->cycle[1]].on == story->cycle[0],
           "in a cycle");
    verify_fini(&report);
}

static void test_limits(void)
{
    static const char text[] =
        "swplan: 1\nmax_depth: 2\nschedule:\n"
        "  A: {stage: 0, stream: s, thread_group: g}\n  B: {stage: 1, stream: t, thread_group: h}\n"
        "  C: {stage: 2, stream: u, thread_group: i}\n";
    struct verify_options options = {.no_reduction = true, .limits.states = 100};
    struct verify_report report;
    if (verify_text(text, options, &report)) {
        tap_is_int(report.verdict, VERDICT_UNDECIDED, "a limit on states: undecided");
        tap_is_str(report.limit, "states", "and it says which limit");
        tap_is_int(report.outcome[PROPERTY_DEADLOCK], OUTCOME_UNDECIDED, "no property is proved");
        tap_ok(report.states >= 100 && report.states < 200, "it is kept");
        verify_fini(&report);
    }
    options.limits = (struct search_limits){.mem_bytes = 1 << 20};
    options.program.driver = DRIVER_DATAFLOW;
    if (verify_text(text, options, &report)) {
        tap_is_str(report.limit, "memory", "a limit on memory");
        tap_ok(report.peak_bytes <= 1 << 20, "it is kept");
        verify_fini(&report);
    }
    options.limits = (struct search_limits){.until_ns = 1};
    if (verify_text(text, options, &report)) {
        tap_is_str(report.limit, "time", "a limit on time");
        verify_fini(&report);
    }
}

static bool build(const char *path, struct plan *plan, struct program **program, struct diag *diag)
{
    struct program_options options = {.driver = DRIVER_CLOCK, .iterations = -1, .ranks = 1};
    diag_init(diag);
    if (plan_read(path, plan, diag) != STATUS_OK)
        return false;
    if (program_build(plan, &options, program, diag) == STATUS_OK)
        return true;
    plan_fini(plan);
    return false;
}

static bool same_witnesses(const struct search_result *a, const struct search_result *b)
{
    bool same = a->found == b->found;
    for (int p = 0; p < PROPERTY_COUNT && same; p++) {
        const struct search_path *x = &a->witness[p], *y = &b->witness[p];
        same = x->count == y->count;
        for (size_t i = 0; same && i < x->count; i++)
            same =
                x->steps[i].agent == y->steps[i].agent && x->steps[i].choice == y->steps[i].choice;
    }
    return same;
}

static void compare_threads(const struct program *program, const char *what, uint64_t limit,
                            unsigned stop_at, struct diag *diag)
{
    struct search_options options = {
        .properties = (1u << PROPERTY_COUNT) - 1, .stop_at = stop_at, .limits.states = limit};
    struct search_result one, many;
    if (search_run(program, &options, &one, diag) != STATUS_OK) {
        tap_ok(0, "%s: one thread", what);
        return;
    }
    for (int threads = 2; threads <= 4; threads++) {
        options.threads = threads;
        if (search_run(program, &options, &many, diag) != STATUS_OK) {
            tap_ok(0, "%s: %d threads", what, threads);
            continue;
        }
        tap_is_int((long long)many.states, (long long)one.states, "%s: %d threads, as many states",
                   what, threads);
        tap_is_int((long long)many.transitions, (long long)one.transitions, "as many steps");
        tap_ok(one.complete == many.complete && one.ends_well == many.ends_well &&
                   same_witnesses(&one, &many),
               "the same answer and the same witnesses");
        search_result_fini(&many);
    }
    search_result_fini(&one);
}

/* More states than are found before the threads begin. */
static void test_threads(void)
{
    static const char *const names[] = {"reference/sparse_dist", "reference/fused_sparse_dist"};
    struct plan plan;
    struct diag diag;
    struct program *program;
    char name[80];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(name, sizeof name, "plans/%s.yaml", names[i]);
        if (!build(path_source(name), &plan, &program, &diag)) {
            tap_ok(0, "%s is built", names[i]);
            continue;
        }
        compare_threads(program, names[i], 30000, 0, &diag);
        program_close(program);
        plan_fini(&plan);
        diag_fini(&diag);
    }
}

static void test_bitstate(void)
{
    struct verify_options options = {.no_reduction = true, .bitstate_bytes = 1 << 16};
    struct verify_report report;
    if (verify_text(two_locks, options, &report)) {
        tap_is_int(report.verdict, VERDICT_VIOLATED, "bitstate: what it finds is violated");
        tap_is_int(report.outcome[PROPERTY_DEADLOCK], OUTCOME_SOME, "in some interleavings");
        tap_is_int((long long)report.stories[PROPERTY_DEADLOCK].step_count, 3, "told shortly");
        verify_fini(&report);
    }
    options.any_witness = true;
    if (verify_text(two_locks, options, &report)) {
        const struct story *story = &report.stories[PROPERTY_DEADLOCK];
        tap_ok(story->cycle_count == 2, "its own witness leads into the deadlock as well");
        verify_fini(&report);
    }
    options.properties = 1u << PROPERTY_RACE;
    if (verify_text(two_locks, options, &report)) {
        tap_is_int(report.verdict, VERDICT_UNDECIDED, "what it does not find is undecided");
        tap_is_int(report.outcome[PROPERTY_RACE], OUTCOME_UNDECIDED, "and not proved");
        tap_ok(report.bitstate && strncmp(report.limit, "bitstate", 8) == 0, "it says why");
        verify_fini(&report);
    }
}

static void test_interrupt(void)
{
    atomic_bool now = true;
    struct verify_options options = {.no_reduction = true, .interrupted = &now};
    struct verify_report report;
    if (verify_text(two_locks, options, &report)) {
        tap_is_int(report.verdict, VERDICT_UNDECIDED, "interrupted: undecided");
        tap_is_str(report.limit, "interrupted", "and it says so");
        verify_fini(&report);
    }
}

/* There is an answer with any amount of memory. */
static void test_little_memory(void)
{
    int undecided = 0, decided = 0, wrong = 0;
    for (size_t bytes = 64; bytes < (size_t)4 << 20; bytes += bytes / 4) {
        struct verify_options options = {.no_reduction = true, .limits.mem_bytes = bytes};
        struct verify_report report;
        if (!verify_text(two_locks, options, &report)) {
            wrong++;
            continue;
        }
        wrong += report.peak_bytes > bytes;
        wrong += report.verdict == VERDICT_UNDECIDED && strcmp(report.limit, "memory") != 0;
        undecided += report.verdict == VERDICT_UNDECIDED;
        decided += report.verdict == VERDICT_VIOLATED;
        verify_fini(&report);
    }
    tap_ok(wrong == 0, "no memory limit is overstepped");
    tap_ok(undecided > 5 && decided > 5, "with little undecided, with enough decided");
}

static void test_numbers(void)
{
    static const char text[] = "swplan: 1\nschedule: {A: {stage: 0}, B: {stage: 1}}\n"
                               "intra_iter_deps: [[B, A]]\n";
    static const char hangs[] = "swplan: 1\nschedule: {A: {stage: 1}, B: {stage: 0}}\n"
                                "intra_iter_deps: [[B, A]]\nenqueue_order: [B, A]\n";
    struct verify_options options = {.program.iterations = 3};
    struct verify_report report;
    if (verify_text(text, options, &report)) {
        tap_is_int(report.verdict, VERDICT_PROVED, "three iterations");
        tap_is_int(report.iterations, 3, "as many as were asked for");
        verify_fini(&report);
    }
    if (verify_text(hangs, (struct verify_options){0}, &report)) {
        tap_is_int(report.outcome[PROPERTY_DEADLOCK], OUTCOME_ALWAYS, "a bad stage always hangs");
        tap_is_int(report.outcome[PROPERTY_DRAIN], OUTCOME_UNDECIDED,
                   "what hangs anyway is not blamed for its drain");
        verify_fini(&report);
    }
    options.program.iterations = 1;
    if (verify_text(hangs, options, &report)) {
        tap_is_int(report.outcome[PROPERTY_DRAIN], OUTCOME_ALWAYS,
                   "one iteration hangs in its drain");
        verify_fini(&report);
    }
}

static void test_asked_for(void)
{
    struct verify_options options = {.properties = 1u << PROPERTY_RACE};
    struct verify_report report;
    if (verify_text(two_locks, options, &report)) {
        tap_is_int(report.verdict, VERDICT_PROVED,
                   "asked for races only, a deadlock does not count");
        tap_is_int(report.outcome[PROPERTY_DEADLOCK], OUTCOME_UNDECIDED, "nor is it denied");
        verify_fini(&report);
    }
}

/* ---- the plans of the project ---------------------------------------------------------------- */

static bool is_violated(enum outcome outcome)
{
    return outcome == OUTCOME_SOME || outcome == OUTCOME_ALWAYS;
}

/* A search that was cut short has found nothing the plan does not expect. */
static bool finds_nothing_else(const struct plan *plan, const struct verify_report *report)
{
    const struct expectation *expect =
        report->driver == DRIVER_DATAFLOW ? &plan->expect_dataflow : &plan->expect;
    for (int p = 0; p < PROPERTY_COUNT; p++)
        if (is_violated(report->outcome[p]) &&
            !(expect->named[p] && (expect->any_violation[p] || is_violated(expect->outcome[p]))))
            return false;
    return true;
}

static bool agrees(const struct plan *plan, enum driver driver, bool no_reduction,
                   struct diag *diag)
{
    struct verify_options options = {.program = {.driver = driver, .iterations = -1},
                                     .any_witness = true,
                                     .no_reduction = no_reduction};
    options.limits.states = no_reduction ? WITHOUT_REDUCTION_STATES : 0;
    struct verify_report report;
    if (verify_plan(plan, &options, &report, diag) != STATUS_OK)
        return false;
    bool ok = no_reduction && report.limit ? finds_nothing_else(plan, &report)
                                           : verify_as_expected(plan, &report, diag);
    verify_fini(&report);
    return ok;
}

static void test_plan(const char *path)
{
    struct plan plan;
    struct diag diag;
    diag_init(&diag);
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    bool read = plan_read(path, &plan, &diag) == STATUS_OK, ok = read;
    bool expects = read && plan.expect.given;
    if (expects) {
        bool pipeline = plan.form == FORM_PIPELINE;
        for (int no_reduction = 0; no_reduction < 2; no_reduction++) {
            ok &= agrees(&plan, pipeline ? DRIVER_CLOCK : DRIVER_NONE, no_reduction, &diag);
            if (pipeline)
                ok &= agrees(&plan, DRIVER_DATAFLOW, no_reduction, &diag);
        }
    }
    tap_ok(ok, "%s %s", name, expects ? "is what it says" : "is read");
    for (size_t i = 0; !ok && i < diag.count; i++)
        tap_note("%s", diag.messages[i].text);
    if (read)
        plan_fini(&plan);
    diag_fini(&diag);
}

static void test_plans(glob_t files)
{
    for (size_t i = 0; i < files.gl_pathc; i++)
        test_plan(files.gl_pathv[i]);
    globfree(&files);
}

int main(void)
{
    test_shortest();
    test_limits();
    test_interrupt();
    test_little_memory();
    test_threads();
    test_bitstate();
    test_numbers();
    test_asked_for();
    test_plans(files_source("plans/knobs/*.yaml"));
    test_plans(files_source("plans/bugs/*.yaml"));
    test_plans(files_source("plans/deadlocks/*.yaml"));
    test_plans(files_source("plans/examples/*.yaml"));
    test_plans(files_shared("zoo/*.yaml"));
    return tap_done();
}
