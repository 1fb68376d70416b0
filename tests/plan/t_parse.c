/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_parse.c - plans that are accepted and plans that are refused, with position and message.
 *
 * The cases are text files under tests/cases/parse:
 *
 *     --- title                     a case begins; a title that ends in .csv makes it a CSV file
 *     the plan
 *     === 3:5: found x, expected y  one line for each message, in order: its beginning
 *     === ok                        or the plan is accepted
 *
 * Every message must be named. Besides: what text files cannot hold, values that end up in the
 * plan, files, and damaged plans.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/text/csv.h"
#include "plan/text/parse.h"
#include "tests/case_file.h"
#include "tests/harness.h"
#include "tests/tap.h"

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* ---- text cases ------------------------------------------------------------------------------ */

static bool messages_match(const struct text_case *test, const struct diag *diag)
{
    bool match = diag->count == test->expected_count;
    for (size_t i = 0; i < diag->count && i < test->expected_count; i++) {
        char line[2048];
        const struct diag_message *message = &diag->messages[i];
        snprintf(line, sizeof line, "%u:%u: %s", message->mark.line, message->mark.col,
                 message->text);
        if (starts_with(line, test->expected[i]))
            continue;
        match = false;
        tap_note("want %s", test->expected[i]);
        tap_note("got  %s", line);
    }
    for (size_t i = test->expected_count; i < diag->count; i++)
        tap_note("also %u:%u: %s", diag->messages[i].mark.line, diag->messages[i].mark.col,
                 diag->messages[i].text);
    for (size_t i = diag->count; i < test->expected_count; i++)
        tap_note("lacks %s", test->expected[i]);
    return match;
}

static void run_case(const struct text_case *test)
{
    struct plan plan;
    struct diag diag;
    diag_init(&diag);
    bool accept = test->expected_count == 1 && strcmp(test->expected[0], "ok") == 0;
    const char *name = ends_with(test->title, ".csv") ? "case.csv" : "case";
    enum status status = plan_parse(name, test->text, test->length, &plan, &diag);
    if (accept) {
        tap_ok(status == STATUS_OK && diag.count == 0, "%s:%d: %s", test->file, test->line,
               test->title);
        if (diag.count)
            tap_note("%u:%u: %s", diag.messages[0].mark.line, diag.messages[0].mark.col,
                     diag.messages[0].text);
    } else {
        bool match = messages_match(test, &diag);
        tap_ok(status == STATUS_INPUT && match, "%s:%d: %s", test->file, test->line, test->title);
    }
    if (status == STATUS_OK)
        plan_fini(&plan);
    diag_fini(&diag);
}

/* ---- what text files cannot hold ------------------------------------------------------------- */

/* Parse `text` and compare the first message. */
static void refuse(const char *file_name, const char *text, size_t length, const char *want)
{
    struct plan plan;
    struct diag diag;
    char line[1024] = "accepted";
    diag_init(&diag);
    if (plan_parse(file_name, text, length, &plan, &diag) == STATUS_OK)
        plan_fini(&plan);
    else if (diag.count)
        snprintf(line, sizeof line, "%u:%u: %.900s", diag.messages[0].mark.line,
                 diag.messages[0].mark.col, diag.messages[0].text);
    line[strlen(want) < sizeof line ? strlen(want) : 0] = '\0';
    tap_is_str(line, want, "refused: %s", want);
    diag_fini(&diag);
}

static void test_bytes(void)
{
    static const char nul[] = "swplan: 1\nname: a\0b\n";
    static const char latin[] = "swplan: 1\nname: caf\xE9\n";
    static const char escaped[] = "swplan: 1\nname: \"a\\0b\"\n";
    static const char csv[] = "0F0,\0000B0\n";
    refuse("x.yaml", nul, sizeof nul - 1, "2:8: found a bad byte (control characters");
    refuse("x.yaml", latin, sizeof latin - 1, "2:10: found a bad byte (");
    refuse("x.yaml", escaped, sizeof escaped - 1, "2:7: found a NUL character in a string");
    refuse("x.csv", csv, sizeof csv - 1, "1:1: found a NUL byte");

    char deep[512];
    memset(deep, '[', sizeof deep);
    refuse("x.yaml", deep, sizeof deep, "1:65: found more than 64 levels of nesting");

    char name[512];
    int length = snprintf(name, sizeof name, "swplan: 1\nname: %0300d\nthreads: {r0.m: []}\n", 0);
    refuse("x.yaml", name, (size_t)length, "2:7: found a name of 300 bytes, expected at most 200");
}

static void test_error_limit(void)
{
    char text[8192];
    size_t length = (size_t)snprintf(text, sizeof text, "swplan: 1\nthreads:\n  r0.m:\n");
    for (int i = 0; i < 50; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "  - {recrd: e%d}\n", i);
    struct plan plan;
    struct diag diag;
    diag_init(&diag);
    tap_is_int(plan_parse("x.yaml", text, length, &plan, &diag), STATUS_INPUT, "50 errors");
    tap_is_int((long long)diag.errors, 50, "all are counted");
    tap_is_int((long long)diag.count, 20, "20 are kept");
    tap_ok(plan.arena.head == NULL, "a refused plan holds nothing");
    diag_fini(&diag);
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool accept(const char *file_name, const char *text, struct plan *plan)
{
    struct diag diag;
    diag_init(&diag);
    enum status status = plan_parse(file_name, text, strlen(text), plan, &diag);
    tap_is_int(status, STATUS_OK, "%s is accepted", file_name);
    if (diag.count)
        tap_note("%s", diag.messages[0].text);
    diag_fini(&diag);
    return status == STATUS_OK;
}

static void test_pipeline_values(void)
{
    struct plan plan;
    if (!accept("dir/two.words.yaml",
                "swplan: 1\n"
                "ranks: 2\n"
                "schedule:\n"
                "  A: {stage: 0, stream: copy, time: 0.2ms, reads: [x, y]}\n"
                "  B: {stage: 2, work: {collective: all_gather, comm: dp, bytes: 1MiB}}\n"
                "intra_iter_deps: [[B, A]]\n"
                "inter_iter_deps: [[A, B], [B, B, 3]]\n"
                "rank_overrides: {1: {schedule: {A: {time: 1ms}}}}\n"
                "buffers: {y: {scope: shared}}\n"
                "expect: {race: order}\n",
                &plan))
        return;
    const struct pipeline *pipeline = &plan.pipeline;
    tap_is_str(plan.name, "two.words", "the name comes from the file");
    tap_is_int(plan.form, FORM_PIPELINE, "pipeline form");
    tap_is_int((long long)pipeline->task_count, 2, "two tasks");
    tap_is_int(pipeline->depth, 3, "depth is max(stage) + 1");
    tap_is_int(pipeline->max_depth, 3, "max_depth defaults to depth");
    tap_is_int(pipeline->num_slots, 0, "num_slots is left to the lowering");
    tap_is_int(pipeline->tasks[0].time_ns, 200000, "0.2ms");
    tap_is_int(pipeline->tasks[0].mark.line, 4, "a task knows its line");
    tap_is_str(plan.streams.items[pipeline->tasks[1].stream], "main", "the implicit stream");
    tap_is_str(plan.groups.items[pipeline->tasks[0].group], "default", "default thread group");
    tap_is_int((long long)pipeline->intra_count, 1, "one dependence within an iteration");
    tap_is_int((long long)pipeline->dep_count, 3, "three dependences");
    tap_is_int(pipeline->deps[1].distance, 1, "[task, on] between iterations has distance 1");
    tap_is_int(pipeline->deps[2].distance, 3, "a distance of its own");
    tap_is_int(plan_task(&plan, 0, 0)->time_ns, 200000, "rank 0 has the common time");
    tap_is_int(plan_task(&plan, 1, 0)->time_ns, 1000000, "rank 1 has its own");
    tap_is_int(plan_task(&plan, 1, 0)->stream, pipeline->tasks[0].stream, "and the common stream");
    tap_is_int((long long)plan.comm_count, 1, "a communicator comes into being by use");
    tap_ok(plan.comms[0].members == NULL, "and spans all ranks");
    tap_is_int((long long)plan.buffer_count, 2, "two buffers");
    tap_is_str(plan.buffers[0].name, "y", "declared buffers come first");
    tap_is_int(plan.buffers[0].scope, SCOPE_SHARED, "declared shared");
    tap_ok(!plan.buffers[1].declared && plan.buffers[1].scope == SCOPE_ITERATION,
           "used buffers belong to an iteration");
    tap_ok(plan.expect.given && plan.expect.any_violation[PROPERTY_RACE], "race: order");
    tap_ok(plan.expect_dataflow.named[PROPERTY_RACE], "for both drivers");
    tap_is_int(plan_find_task(&plan, "B"), 1, "plan_find_task");
    tap_is_int(plan_find_task(&plan, "C"), -1, "plan_find_task: none");
    plan_fini(&plan);
}

static void test_thread_values(void)
{
    struct plan plan;
    if (!accept("-",
                "{\"swplan\": 1, \"comms\": {\"A\": [3, 1]}, \"threads\": {\"r2.m\": ["
                "{\"launch\": \"k\", \"reads\": [\"b\"]}, {\"sync\": \"device\"},"
                "{\"collective\": \"t\", \"comm\": \"A\", \"bytes\": \"1KiB\"}]}}",
                &plan))
        return;
    const struct host_op *ops = plan.threads[0].ops;
    tap_is_str(plan.name, "stdin", "a name for standard input");
    tap_is_int(plan.ranks, 4, "ranks are 1 + the highest named");
    tap_is_int(plan.comms[0].members[0], 1, "members are sorted");
    tap_is_int(plan.threads[0].rank, 2, "the thread's rank");
    tap_is_str(plan.threads[0].name, "m", "the thread's name");
    tap_is_str(plan.streams.items[ops[0].stream], "main", "a push has a stream");
    tap_is_int(ops[1].stream, -1, "a device synchronisation has none");
    tap_is_int(ops[2].bytes, 1024, "bytes");
    tap_is_int(ops[2].collective, COLLECTIVE_ALL_REDUCE, "all_reduce is the default");
    tap_is_int(host_op_work(&ops[2]).kind, WORK_COLLECTIVE, "a collective is its own work");
    tap_is_int(plan.buffers[0].scope, SCOPE_SHARED, "one buffer a rank");
    plan_fini(&plan);
}

static void test_program_values(void)
{
    struct plan plan;
    if (!accept("x.yaml", "swplan: 1\nprograms: [0F0 0SEND_F0, 1RECV_F0 1F0]\n", &plan))
        return;
    tap_is_int(plan.ranks, 2, "as many ranks as programs");
    tap_ok(plan.programs.has_comms, "compute_comms");
    tap_is_int(plan.programs.ranks[0].actions[1].kind, ACTION_SEND_F, "the second action");
    tap_is_int(plan.programs.ranks[0].actions[1].mark.col, 16, "knows its column");
    plan_fini(&plan);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void test_files(void)
{
    struct plan plan;
    struct diag diag;
    diag_init(&diag);
    tap_is_int(plan_read("/nonexistent/plan.yaml", &plan, &diag), STATUS_SYSTEM, "a missing file");
    tap_is_str(diag.count ? diag.messages[0].text : "",
               "cannot open /nonexistent/plan.yaml: No such file or directory", "says why");
    tap_is_int(plan_read("/", &plan, &diag), STATUS_SYSTEM, "a directory");
    tap_is_str(diag.count > 1 ? diag.messages[1].text : "", "cannot read /: Is a directory",
               "says why");
    diag_fini(&diag);
}

/* A text without end. */
static void test_size_limit(void)
{
    char path[40];
    struct plan plan;
    struct diag diag;
    FILE *endless = popen("yes '# and more'", "r");
    if (!endless) {
        tap_skip("no process");
        return;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(endless));
    diag_init(&diag);
    tap_is_int(plan_read(path, &plan, &diag), STATUS_INPUT, "a text above the size limit");
    tap_ok(diag.count && strstr(diag.messages[0].text, "bigger than 512 MiB"), "names the limit");
    diag_fini(&diag);
    (void)pclose(endless); /* yes writes until nobody reads */
}

/* ---- damaged plans --------------------------------------------------------------------------- */

/* A text of any content is accepted silently or refused with a position. */
static bool is_decided(const char *file_name, const char *text, size_t length)
{
    struct plan plan;
    struct diag diag;
    diag_init(&diag);
    enum status status = plan_parse(file_name, text, length, &plan, &diag);
    bool decided = status == STATUS_OK
                       ? diag.errors == 0
                       : status == STATUS_INPUT && diag.count > 0 && diag.messages[0].mark.line > 0;
    if (status == STATUS_OK)
        plan_fini(&plan);
    diag_fini(&diag);
    return decided;
}

static void damage(const char *file_name, const char *text)
{
    static const char replacements[] = "{}[]:,-#&*!|>'\"%@`0~ \n\tx";
    size_t length = strlen(text), bad = 0;
    char *copy = malloc(length);
    if (!copy) {
        tap_ok(0, "memory");
        return;
    }
    for (size_t i = 0; i < length; i++) {
        bad += !is_decided(file_name, text, i);
        memcpy(copy, text, length);
        copy[i] = replacements[(i * 7) % (sizeof replacements - 1)];
        bad += !is_decided(file_name, copy, length);
        copy[i] = (char)(text[i] ^ 1 << i % 8);
        bad += !is_decided(file_name, copy, length);
    }
    free(copy);
    tap_is_int((long long)bad, 0, "%s cut and changed at each of %zu bytes", file_name, length);
}

static void test_damage(void)
{
    damage("p.yaml",
           "swplan: 1\nranks: 2\nschedule:\n  A: {stage: 0, work: {copy: h2d, bytes: 1B}, "
           "reads: [x], jitter: gamma(cv=0.1) + spike(p=1%, add=1us)}\n  B: {stage: 1}\n"
           "intra_iter_deps: [[B, A]]\nenqueue_order: [A, B]\nexpect: {clock: {}}\n");
    damage("t.yaml", "swplan: 1\ncomms: {A: [0, 1]}\nqueues: {q: 1}\nthreads:\n  r0.m:\n"
                     "    - {group: [{send: x, peer: 1}], comm: A}\n    - {put: q}\n"
                     "    - {callback: c, body: [{host: 1us}]}\n    - {sync: event, event: e}\n");
    damage("r.yaml", "{\"swplan\": 1, \"programs\": [[\"0F0\", \"(0F1;0B0)OVERLAP_F_B\"], "
                     "\"1F0 1B0\"], \"times\": {\"F\": \"1ms\"}}");
    damage("c.csv", "0F0,0F1,,\"0B0\",(0F2;0B1)OVERLAP_F_B\r\n,1F0,1B0,1UNSHARD,\r\n");
}

int main(void)
{
    case_file_run("parse/yaml.txt", run_case);
    case_file_run("parse/pipeline.txt", run_case);
    case_file_run("parse/threads.txt", run_case);
    case_file_run("parse/programs.txt", run_case);
    case_file_run("parse/csv.txt", run_case);
    test_bytes();
    test_error_limit();
    test_pipeline_values();
    test_thread_values();
    test_program_values();
    test_files();
    test_size_limit();
    test_damage();
    return tap_done();
}
