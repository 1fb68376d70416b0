/*
 * t_search.c - the search and its parts: packed states, the set of visited ones, limits,
 * counterexamples, always and some; and every plan of the project, with and without reduction,
 * against what it says of itself.
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/pack.h"
#include "check/verify.h"
#include "check/visited.h"
#include "core/parse.h"
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

/* ---- packed states --------------------------------------------------------------------------- */

static void test_pack(void)
{
    static const int32_t values[] = {0,    0,     0, 1,    -1,        63,        64,      -64, -65,
                                     8191, -8192, 0, 8192, INT32_MAX, INT32_MIN, 1 << 21, 0};
    enum { COUNT = sizeof values / sizeof *values };
    int32_t in[COUNT], out[COUNT];
    unsigned char packed[5 * COUNT + 16];
    struct program program = {.at.bytes = sizeof in};
    struct state from = {in}, to = {out};
    memcpy(in, values, sizeof in);
    memset(out, 0x77, sizeof out);
    size_t length = pack_state(&program, &from, packed);
    pack_expand(&program, packed, &to);
    tap_ok(memcmp(in, out, sizeof in) == 0, "a packed state comes back");
    tap_ok(length <= pack_bound(&program) && length < sizeof in, "packed it is smaller");
    memset(in, 0, sizeof in);
    tap_is_int((long long)pack_state(&program, &from, packed), 2, "nothing but zeros: two bytes");
}

/* ---- visited states -------------------------------------------------------------------------- */

static enum status insert(struct visited *visited, int key, uint32_t *id, bool *is_new)
{
    unsigned char bytes[40];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(key >> (i % 4 * 8));
    struct transition by = {100000 + key, key % 2};
    return visited_insert(visited, bytes, sizeof bytes, (uint32_t)key / 2, by, id, is_new);
}

static void test_visited(void)
{
    enum { COUNT = 50000 };
    struct visited *visited = visited_open(64 << 20);
    int wrong = 0;
    uint32_t id;
    bool is_new;
    for (int key = 0; visited && key < COUNT; key++)
        wrong += insert(visited, key, &id, &is_new) != STATUS_OK || !is_new || id != (uint32_t)key;
    for (int key = COUNT - 1; visited && key >= 0; key--)
        wrong += insert(visited, key, &id, &is_new) != STATUS_OK || is_new || id != (uint32_t)key;
    tap_ok(visited && wrong == 0 && visited_count(visited) == COUNT, "each state is kept once");
    for (uint32_t i = 0; visited && i < COUNT; i++) {
        struct transition by = visited_transition(visited, i);
        wrong += by.agent != 100000 + (int)i || by.choice != (int)(i % 2) ||
                 visited_parent(visited, i) != i / 2 || visited_state(visited, i)[0] != (i & 0xff);
    }
    tap_ok(wrong == 0, "with its bytes, its parent and the step from there");
    visited_close(visited);

    visited = visited_open(2 << 20);
    enum status status = STATUS_OK;
    int key = 0;
    while (visited && status == STATUS_OK && key < 10000000)
        status = insert(visited, key++, &id, &is_new);
    tap_is_int(status, STATUS_LIMIT, "the memory limit is kept");
    tap_ok(visited && insert(visited, 0, &id, &is_new) == STATUS_OK && !is_new && id == 0,
           "what is in is still found");
    visited_close(visited);
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
    options.limits = (struct search_limits){.mem_bytes = 2 << 20};
    options.program.driver = DRIVER_DATAFLOW;
    if (verify_text(text, options, &report)) {
        tap_is_str(report.limit, "memory", "a limit on memory");
        tap_ok(report.peak_bytes < 3 << 20, "it is kept");
        verify_fini(&report);
    }
    options.limits = (struct search_limits){.time_ns = 1};
    if (verify_text(text, options, &report)) {
        tap_is_str(report.limit, "time", "a limit on time");
        verify_fini(&report);
    }
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

static void test_plans(const char *root, const char *pattern)
{
    char path[4096];
    glob_t found;
    snprintf(path, sizeof path, "%s/%s", root, pattern);
    if (glob(path, 0, NULL, &found) != 0) {
        tap_note("%s", path);
        tap_skip("no such plans (SWSIM_SHARED says where the zoo is)");
        return;
    }
    for (size_t i = 0; i < found.gl_pathc; i++)
        test_plan(found.gl_pathv[i]);
    globfree(&found);
}

int main(void)
{
    const char *srcdir = getenv("srcdir"), *shared = getenv("SWSIM_SHARED");
    char beside[4096];
    srcdir = srcdir ? srcdir : ".";
    snprintf(beside, sizeof beside, "%s/../shared", srcdir);
    test_pack();
    test_visited();
    test_shortest();
    test_limits();
    test_numbers();
    test_asked_for();
    test_plans(srcdir, "plans/knobs/*.yaml");
    test_plans(srcdir, "plans/bugs/*.yaml");
    test_plans(srcdir, "plans/deadlocks/*.yaml");
    test_plans(srcdir, "plans/examples/*.yaml");
    test_plans(shared ? shared : beside, "zoo/*.yaml");
    return tap_done();
}
