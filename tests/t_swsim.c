/* SPDX-License-Identifier: Apache-2.0 */
/* t_swsim.c - the calls of libswsim: errors, results, interruption, threads. What is said is compared with the commands
   in t_swsim_lib.sh. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "api/swsim.h"
#include "tests/harness.h"
#include "tests/tap.h"

enum { THREADS = 4 };

static const char copy_in[] = "swplan: 1\n"
                              "name: two\n"
                              "schedule:\n"
                              "  CopyIn: {stage: 0, stream: copy, time: 1ms, writes: [input]}\n"
                              "  Compute: {stage: 1, time: 2ms, reads: [input]}\n"
                              "intra_iter_deps:\n"
                              "  - [Compute, CopyIn]\n"
                              "buffers:\n"
                              "  input: {scope: iteration, bytes: 1MiB}\n";
static const char hangs[] = "swplan: 1\n"
                            "name: hangs\n"
                            "driver: clock\n"
                            "enqueue_order: stage-ascending\n"
                            "schedule:\n"
                            "  A: {stage: 0, stream: a, time: 1ms}\n"
                            "  B: {stage: 1, time: 1ms}\n"
                            "inter_iter_deps:\n"
                            "  - [A, B]\n";

static void contains(const char *text, const char *part, const char *what)
{
    tap_ok(strstr(text, part) != NULL, "%s", what);
    if (!strstr(text, part))
        tap_note("'%s' is not in: %s", part, text);
}

static struct swsim_plan *plan_of(const char *text)
{
    struct swsim_plan *plan;
    tap_is_int(swsim_parse("test.yaml", text, &plan), SWSIM_OK, "the plan is read");
    tap_is_str(swsim_plan_error(plan), "", "without an error");
    return plan;
}

static void verdicts(void)
{
    struct swsim_plan *plan = plan_of(copy_in);
    struct swsim_result *result;
    tap_is_str(swsim_plan_name(plan), "two", "it has its name");
    tap_is_int(swsim_verify(plan, NULL, &result), SWSIM_OK, "verified");
    tap_is_int(swsim_verdict(result), SWSIM_PROVED, "proved");
    contains(swsim_text(result), "dataflow", "under both drivers");
    contains(swsim_json(result), "\"verdict\":\"proved\"", "as JSON");
    tap_is_str(swsim_better_plan(result), "", "nothing to repair");
    tap_is_str(swsim_error(result), "", "no error");
    swsim_free(result);
    const struct swsim_options clock = {.driver = SWSIM_DRIVER_CLOCK, .iterations = 3};
    tap_is_int(swsim_verify(plan, &clock, &result), SWSIM_OK, "with options");
    tap_ok(!strstr(swsim_text(result), "dataflow"), "one driver");
    contains(swsim_json(result), "\"iterations\":3", "three iterations");
    swsim_free(result);
    swsim_close(plan);
}

static void repairs(void)
{
    struct swsim_plan *plan = plan_of(hangs), *repaired;
    struct swsim_result *result;
    tap_is_int(swsim_verify(plan, NULL, &result), SWSIM_OK, "a violation is an answer");
    tap_is_int(swsim_verdict(result), SWSIM_VIOLATED, "violated");
    contains(swsim_text(result), "deadlock", "with its story");
    tap_is_int(swsim_parse("repaired.yaml", swsim_better_plan(result), &repaired), SWSIM_OK,
               "the repair is a plan");
    swsim_free(result);
    const struct swsim_options quick = {.no_fix = 1};
    tap_is_int(swsim_verify(repaired, &quick, &result), SWSIM_OK, "which is verified");
    tap_is_int(swsim_verdict(result), SWSIM_PROVED, "and proved");
    swsim_free(result);
    tap_is_int(swsim_verify(plan, &quick, &result), SWSIM_OK, "without a repair");
    tap_is_str(swsim_better_plan(result), "", "there is none");
    swsim_free(result);
    tap_is_int(swsim_predict(plan, NULL, &result), SWSIM_OK, "a hang is predicted");
    tap_is_int(swsim_verdict(result), SWSIM_VIOLATED, "as a violation");
    swsim_free(result);
    tap_is_int(swsim_tune(plan, NULL, &result), SWSIM_INPUT, "it cannot be tuned");
    contains(swsim_error(result), "hangs: its results are unknown", "for a reason");
    swsim_free(result);
    swsim_close(repaired);
    swsim_close(plan);
}

static void errors(void)
{
    struct swsim_plan *plan;
    struct swsim_result *result;
    tap_is_int(swsim_read("/does/not/exist.yaml", &plan), SWSIM_SYSTEM, "no such file");
    contains(swsim_plan_error(plan), "/does/not/exist.yaml", "it is named");
    tap_is_int(swsim_verify(plan, NULL, &result), SWSIM_USAGE, "a plan that was not read");
    tap_is_str(swsim_error(result), "the plan was not read", "is no plan");
    tap_is_str(swsim_text(result), "", "no text");
    tap_is_str(swsim_json(result), "", "no JSON");
    swsim_free(result);
    swsim_close(plan);
    tap_is_int(swsim_parse("bad.yaml", "swplan: 1\nschedule:\n  A: {stage: x}\n", &plan),
               SWSIM_INPUT, "a bad plan");
    contains(swsim_plan_error(plan), "bad.yaml:3:14: error:", "has a place");
    swsim_close(plan);
    plan = plan_of(copy_in);
    const struct swsim_options negative = {.ranks = -1};
    tap_is_int(swsim_predict(plan, &negative, &result), SWSIM_USAGE, "no negative numbers");
    swsim_free(result);
    tap_is_int(swsim_render(plan, NULL, "x.bmp", &result), SWSIM_USAGE, "no such picture");
    contains(swsim_error(result), ".svg", "it says which");
    swsim_free(result);
    swsim_close(plan);
    swsim_close(NULL);
    swsim_free(NULL);
    tap_is_str(swsim_error(NULL), "out of memory", "no result: no memory");
    tap_is_str(swsim_status_name(SWSIM_INPUT), "input", "a status has a name");
    tap_is_str(swsim_version(), PACKAGE_VERSION, "a release");
    tap_is_int(swsim_abi(), LIBRARY_ABI, "and a number of the interface");
}

static void interruption(void)
{
    struct swsim_plan *plan = plan_of(copy_in);
    struct swsim_result *result;
    swsim_interrupt(plan);
    tap_is_int(swsim_predict(plan, NULL, &result), SWSIM_LIMIT, "an interrupted prediction");
    tap_ok(*swsim_error(result) != '\0', "says so");
    swsim_free(result);
    swsim_close(plan);
}

/* Each thread asks everything of one plan. */
static void *ask_all(void *arg)
{
    const struct swsim_plan *plan = arg;
    struct swsim_result *result;
    const struct swsim_options few = {
        .driver = SWSIM_DRIVER_CLOCK, .candidates = 50, .iterations = 50};
    bool good =
        swsim_verify(plan, NULL, &result) == SWSIM_OK && swsim_verdict(result) == SWSIM_PROVED;
    swsim_free(result);
    good &= swsim_tune(plan, &few, &result) == SWSIM_OK;
    swsim_free(result);
    good &= swsim_predict(plan, &few, &result) == SWSIM_OK;
    char *json = strdup(good ? swsim_json(result) : "");
    swsim_free(result);
    return json;
}

/* Behind the times that the prediction itself took. */
static const char *figures(const char *json)
{
    const char *seconds = strstr(json, "\"cpu_seconds\"");
    return seconds ? strchr(seconds, ',') : "";
}

static void threads(void)
{
    struct swsim_plan *plan = plan_of(copy_in);
    pthread_t ids[THREADS];
    void *texts[THREADS];
    bool same = true;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&ids[i], NULL, ask_all, plan) != 0)
            abort();
    for (int i = 0; i < THREADS; i++)
        pthread_join(ids[i], &texts[i]);
    for (int i = 0; i < THREADS; i++)
        same &= *figures(texts[i]) && strcmp(figures(texts[0]), figures(texts[i])) == 0;
    tap_ok(same, "threads that share a plan get the same answers");
    for (int i = 0; i < THREADS; i++)
        free(texts[i]);
    swsim_close(plan);
}

int main(void)
{
    verdicts();
    repairs();
    errors();
    interruption();
    threads();
    return tap_done();
}
