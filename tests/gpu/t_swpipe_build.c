/* SPDX-License-Identifier: Apache-2.0 */
/* t_swpipe_build.c - plans that are made by calls: the text is that of the same plan from a file, and it runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/lib/swpipe.h"
#include "plan/text/parse.h"
#include "plan/text/print.h"
#include "tests/tap.h"

static const char same[] =
    "swplan: 1\nname: built\nranks: 2\nretire: device\nschedule:\n"
    "  H2D: {stage: 0, stream: memcpy, writes: [b], work: {copy: h2d, bytes: 4KiB}}\n"
    "  Sum: {stage: 1, globally_ordered: true, reads: [b], writes: [s], work: {collective: "
    "all_reduce, comm: dp, bytes: 4KiB}}\n"
    "  \"A \\\"step\\\"\": {stage: 1, reads: [s]}\n"
    "intra_iter_deps: [[Sum, H2D], [\"A \\\"step\\\"\", Sum]]\n"
    "inter_iter_deps: [[Sum, \"A \\\"step\\\"\", 2]]\n"
    "comms: {dp: [0, 1]}\n"
    "buffers: {b: {scope: iteration, bytes: 4KiB}, s: {scope: shared}}\n";

static char *canonical(const char *text)
{
    struct plan plan;
    struct diag diag;
    char *out = NULL;
    diag_init(&diag);
    if (plan_parse("same", text, strlen(text), &plan, &diag) == STATUS_OK) {
        plan_text(&plan, &out, &diag);
        plan_fini(&plan);
    }
    diag_fini(&diag);
    return out;
}

static struct swpipe_plan *build(void)
{
    struct swpipe_plan *plan = swpipe_plan_new("built");
    int bad =
        swpipe_plan_set(plan, "ranks", "4") || swpipe_plan_set(plan, "ranks", "2") ||
        swpipe_plan_set(plan, "retire", "device") ||
        swpipe_plan_buffer(plan, "b", "scope", "iteration") ||
        swpipe_plan_task(plan, "H2D", "stage", "0") ||
        swpipe_plan_task(plan, "H2D", "stream", "memcpy") ||
        swpipe_plan_task(plan, "H2D", "writes", "[b]") ||
        swpipe_plan_task(plan, "H2D", "work", "{copy: h2d, bytes: 4KiB}") ||
        swpipe_plan_task(plan, "Sum", "stage", "1") ||
        swpipe_plan_task(plan, "Sum", "globally_ordered", "true") ||
        swpipe_plan_task(plan, "Sum", "reads", "[b]") ||
        swpipe_plan_task(plan, "Sum", "writes", "[s]") ||
        swpipe_plan_task(plan, "Sum", "work", "{collective: all_reduce, comm: dp, bytes: 4KiB}") ||
        swpipe_plan_task(plan, "A \"step\"", "stage", "1") ||
        swpipe_plan_task(plan, "A \"step\"", "reads", "[s]") ||
        swpipe_plan_needs(plan, "Sum", "H2D", 0) ||
        swpipe_plan_needs(plan, "A \"step\"", "Sum", 0) ||
        swpipe_plan_needs(plan, "Sum", "A \"step\"", 2) ||
        swpipe_plan_buffer(plan, "b", "bytes", "4KiB") || swpipe_plan_comm(plan, "dp", "[0, 1]") ||
        swpipe_plan_buffer(plan, "s", "scope", "shared");
    tap_ok(!bad, "a plan is made by calls");
    return plan;
}

static int next(void *arg, int rank, void **batch)
{
    *batch = NULL;
    return ((int *)arg)[rank]-- > 0;
}

static void run(const char *text)
{
    int left[2] = {8, 8};
    const struct swpipe_config config = {.plan_text = text, .plan_file = "built"};
    const struct swpipe_source source = {next, left};
    struct swpipe *pipe;
    enum swpipe_status status = swpipe_open(&config, &pipe);
    if (status == SWPIPE_OK)
        status = swpipe_run(pipe, &source, NULL);
    tap_ok(status == SWPIPE_OK, "it runs: %s", swpipe_error(pipe));
    swpipe_close(pipe);
}

static void test_same(void)
{
    struct swpipe_plan *plan = build();
    char *text = swpipe_plan_print(plan), *wanted = canonical(same);
    tap_is_str(text, wanted, "its text is that of the same plan as text: %s",
               swpipe_plan_error(plan));
    if (text)
        run(text);
    free(text);
    free(wanted);
    swpipe_plan_free(plan);
}

static void test_wrong(void)
{
    struct swpipe_plan *plan = swpipe_plan_new("wrong");
    tap_ok(swpipe_plan_set(plan, "", "1") && swpipe_plan_task(plan, "A\nB", "stage", "0") &&
               swpipe_plan_task(plan, "A", "stage", "") && swpipe_plan_needs(plan, "A", "B", -1),
           "what is no line is refused");
    tap_ok(swpipe_plan_task(plan, "A", "work: {spin: 1ms}, stage", "0") &&
               swpipe_plan_set(plan, "ranks: 2 #", "1") && swpipe_plan_set(plan, NULL, "1"),
           "and a key that is more than one");
    tap_ok(!swpipe_plan_print(plan) && swpipe_plan_error(plan)[0], "a plan without tasks: %s",
           swpipe_plan_error(plan));
    swpipe_plan_task(plan, "A", "stage", "0");
    swpipe_plan_task(plan, "A", "colour", "red");
    char *text = swpipe_plan_print(plan);
    tap_ok(!text && strstr(swpipe_plan_error(plan), "colour") &&
               strstr(swpipe_plan_error(plan), ", in: \"A\": {stage: 0, colour: red}"),
           "an unknown key: %s", swpipe_plan_error(plan));
    swpipe_plan_free(plan);
    plan = swpipe_plan_new("lost");
    swpipe_plan_task(plan, "A", "stage", "0");
    swpipe_plan_needs(plan, "A", "Nobody", 0);
    tap_ok(!swpipe_plan_print(plan) && strstr(swpipe_plan_error(plan), "Nobody"),
           "a need of nobody: %s", swpipe_plan_error(plan));
    swpipe_plan_free(plan);
    swpipe_plan_free(NULL);
}

/* A name is a name, whatever it looks like; a name that is set as a key is one as a plan has it. */
static void test_names(void)
{
    struct swpipe_plan *plan = swpipe_plan_new("a: \"b\" # c");
    swpipe_plan_task(plan, "A", "stage", "0");
    char *text = swpipe_plan_print(plan);
    tap_ok(text && strstr(text, "'a: \"b\" # c'"), "a plan of any name: %s%s", text ? text : "",
           swpipe_plan_error(plan));
    free(text);
    swpipe_plan_set(plan, "name", "other");
    text = swpipe_plan_print(plan);
    tap_ok(text && strstr(text, "name: other\n"), "that gets another one");
    free(text);
    swpipe_plan_free(plan);
    tap_ok(!swpipe_plan_new(NULL) && !swpipe_plan_new("") && swpipe_plan_set(NULL, "a", "b") &&
               swpipe_plan_task(NULL, "A", "stage", "0") && swpipe_plan_comm(NULL, "dp", "[0]") &&
               swpipe_plan_needs(NULL, "A", "B", 0) && !swpipe_plan_print(NULL),
           "no plan");
    tap_ok(strstr(swpipe_plan_error(NULL), "no plan: its name is none") != NULL, "and why");
}

int main(void)
{
    test_names();
    test_same();
    test_wrong();
    return tap_done();
}
