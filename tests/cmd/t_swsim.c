/* SPDX-License-Identifier: Apache-2.0 */
/* t_swsim.c - the calls of libswsim: errors, results, interruption, threads. Their words are compared with those of the
   commands in t_swsim_lib.sh. */
#include <pthread.h>
#include <stddef.h>
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

static const char schedule[] = "swplan: 1\n"
                               "name: schedule\n"
                               "generate: {schedule: 1f1b, ranks: 4, microbatches: 8}\n"
                               "times: {F: 1ms, B: 2ms}\n";

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
    tap_is_int(swsim_verdict(result), SWSIM_UNDECIDED, "is not proved");
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
    contains(swsim_error(result), "ranks is -1: expected 0 to", "the option is named");
    swsim_free(result);
    const struct swsim_options crowd = {.threads = 257};
    tap_is_int(swsim_verify(plan, &crowd, &result), SWSIM_USAGE, "as many threads as the verb has");
    contains(swsim_error(result), "threads is 257: expected 0 to 256", "and not fewer in silence");
    swsim_free(result);
    const struct swsim_options later = {.reserved = {[3] = &plan}};
    tap_is_int(swsim_verify(plan, &later, &result), SWSIM_USAGE, "an option of a later version");
    contains(swsim_error(result), "reserved[3] is not 0", "is not left unread");
    swsim_free(result);
    const struct swsim_options number = {.reserved_int = 1};
    tap_is_int(swsim_verify(plan, &number, &result), SWSIM_USAGE,
               "and a number of a later version");
    contains(swsim_error(result), "reserved_int is not 0", "neither");
    swsim_free(result);
    const struct swsim_options many = {.cores = 65537};
    tap_is_int(swsim_predict(plan, &many, &result), SWSIM_USAGE, "too many cores");
    contains(swsim_error(result), "cores is 65537: expected 0 to 65536", "are told");
    swsim_free(result);
    const struct swsim_options endless = {.limit_ns = INT64_MAX};
    tap_is_int(swsim_verify(plan, &endless, &result), SWSIM_OK, "a limit that never comes");
    tap_is_int(swsim_verdict(result), SWSIM_PROVED, "does not end a proof");
    swsim_free(result);
    struct swsim_plan *no_plan;
    struct swsim_store *no_store;
    tap_is_int(swsim_read(NULL, &no_plan), SWSIM_SYSTEM, "no path of a plan");
    contains(swsim_plan_error(no_plan), "cannot open '': ", "is told");
    swsim_close(no_plan);
    tap_is_int(swsim_store_open(NULL, &no_store), SWSIM_SYSTEM, "no path of a store");
    contains(swsim_store_error(no_store), "its name is empty", "is told, too");
    swsim_store_close(no_store);
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

/* A program that was compiled with this header goes on working: see "Versions" in it. */
static void layout(void)
{
    if (sizeof(void *) != 8)
        return;
    tap_is_int((long long)offsetof(struct swsim_options, limit_states), 40, "options: numbers");
    tap_is_int((long long)offsetof(struct swsim_options, properties), 64, "texts");
    tap_is_int((long long)offsetof(struct swsim_options, cores), 184, "an option of later");
    tap_is_int((long long)offsetof(struct swsim_options, reserved), 192, "what is to come");
    tap_is_int((long long)sizeof(struct swsim_options), 248,
               "the size is that of the first release");
}

static void properties(void)
{
    struct swsim_plan *plan = plan_of(hangs);
    struct swsim_result *result;
    const struct swsim_options race = {.properties = "race"};
    tap_is_int(swsim_verify(plan, &race, &result), SWSIM_OK, "one property of a plan that hangs");
    tap_is_int(swsim_verdict(result), SWSIM_PROVED, "holds");
    contains(swsim_json(result), "\"deadlock\":\"", "the others are named");
    swsim_free(result);
    const struct swsim_options none = {.properties = "rase"};
    tap_is_int(swsim_verify(plan, &none, &result), SWSIM_USAGE, "no such property");
    contains(swsim_error(result), "did you mean 'race'?", "but one like it");
    swsim_free(result);
    swsim_close(plan);
}

/* Options that have no effect on the plan. */
static void without_effect(void)
{
    static const struct swsim_options iterations = {.iterations = 3}, depth = {.max_depth = 2};
    static const struct swsim_options clock = {.driver = SWSIM_DRIVER_CLOCK, .max_depth = 2};
    struct swsim_plan *lists = plan_of(schedule), *pipeline = plan_of(copy_in);
    struct swsim_result *result;
    tap_is_int(swsim_verify(lists, &iterations, &result), SWSIM_USAGE, "lists have no iterations");
    contains(swsim_error(result), "only plans of the pipeline form have that", "as it is told");
    swsim_free(result);
    tap_is_int(swsim_predict(lists, &iterations, &result), SWSIM_USAGE, "nor in a prediction");
    swsim_free(result);
    tap_is_int(swsim_verify(lists, &depth, &result), SWSIM_USAGE, "nor a depth");
    swsim_free(result);
    tap_is_int(swsim_verify(pipeline, &clock, &result), SWSIM_USAGE, "which the clock has not");
    contains(swsim_error(result), "only data-flow has it", "as it is told");
    swsim_free(result);
    swsim_close(lists);
    swsim_close(pipeline);
}

/* As the command's note. */
static void drivers(void)
{
    struct swsim_plan *plan = plan_of(hangs);
    struct swsim_result *result;
    const struct swsim_options other = {.driver = SWSIM_DRIVER_DATAFLOW, .no_fix = 1};
    tap_is_int(swsim_verify(plan, &other, &result), SWSIM_OK, "another driver than the plan's");
    contains(swsim_messages(result), "the plan names driver clock; --driver=dataflow overrides it",
             "with a note");
    swsim_free(result);
    swsim_close(plan);
}

static void schedules(void)
{
    struct swsim_plan *plan = plan_of(schedule), *best;
    struct swsim_result *result;
    const struct swsim_options some = {.axes = "schedule=1f1b,zb_h1"};
    tap_is_int(swsim_tune(plan, &some, &result), SWSIM_OK, "rank programs are tuned");
    contains(swsim_text(result), "the frontier", "to a frontier");
    contains(swsim_json(result), "\"zb_h1\"", "as JSON, too");
    tap_is_int(swsim_parse("best.yaml", swsim_better_plan(result), &best), SWSIM_OK,
               "the fastest is a plan");
    swsim_free(result);
    const struct swsim_options slow = {.times = "F=5ms"};
    tap_is_int(swsim_predict(plan, &slow, &result), SWSIM_OK, "with other times");
    char *slower = strdup(swsim_text(result));
    swsim_free(result);
    tap_is_int(swsim_predict(plan, NULL, &result), SWSIM_OK, "and with its own again");
    tap_ok(slower && strcmp(slower, swsim_text(result)) != 0, "the plan was not changed");
    free(slower);
    swsim_free(result);
    const struct swsim_options all = {.p2p = "all"};
    tap_is_int(swsim_verify(plan, &all, &result), SWSIM_OK, "under all channels");
    contains(swsim_text(result), "direction", "in a table");
    swsim_free(result);
    tap_is_int(swsim_render(plan, &all, "x.svg", &result), SWSIM_USAGE, "a picture is of one");
    swsim_free(result);
    const struct swsim_options odd = {.axes = "schedule"};
    tap_is_int(swsim_tune(plan, &odd, &result), SWSIM_USAGE, "an axis without values");
    swsim_free(result);
    swsim_close(best);
    swsim_close(plan);
}

static void jitters(void)
{
    struct swsim_plan *plan = plan_of(copy_in);
    struct swsim_result *result;
    const struct swsim_options two = {.iterations = 50,
                                      .jitter = "CopyIn=gamma(cv=0.2); Compute=exponential"};
    const struct swsim_options both = {.jitter = "CopyIn=exponential", .profile = "x.db"};
    const struct swsim_options bad = {.jitter = "Compute=gama(cv=1)"};
    tap_is_int(swsim_predict(plan, &two, &result), SWSIM_OK, "two tasks vary");
    swsim_free(result);
    tap_is_int(swsim_predict(plan, &both, &result), SWSIM_USAGE, "measured times vary already");
    swsim_free(result);
    tap_is_int(swsim_predict(plan, &bad, &result), SWSIM_USAGE, "no such distribution");
    contains(swsim_error(result), "--jitter Compute: at character 1:", "has a place");
    swsim_free(result);
    swsim_close(plan);
}

static void stores(void)
{
    struct swsim_store *store;
    struct swsim_result *result;
    tap_is_int(swsim_store_open("/does/not/exist.db", &store), SWSIM_SYSTEM, "no such store");
    contains(swsim_store_error(store), "/does/not/exist.db", "it is named");
    tap_is_int(swsim_runs(store, &result), SWSIM_USAGE, "it has no runs");
    tap_is_str(swsim_error(result), "the store was not opened", "for a reason");
    swsim_free(result);
    swsim_store_close(store);
    swsim_store_close(NULL);
    tap_is_str(swsim_store_error(NULL), "out of memory", "no store: no memory");
}

/* Neither crashes nor leaks: there is nobody to give a plan, a store or a result to. */
static void nowhere(void)
{
    struct swsim_plan *plan = plan_of(copy_in);
    tap_is_int(swsim_read("x.yaml", NULL), SWSIM_USAGE, "a plan to nowhere");
    tap_is_int(swsim_parse("x.yaml", copy_in, NULL), SWSIM_USAGE, "a text to nowhere");
    tap_is_int(swsim_store_open("x.db", NULL), SWSIM_USAGE, "a store to nowhere");
    tap_is_int(swsim_verify(plan, NULL, NULL), SWSIM_USAGE, "a verdict to nowhere");
    tap_is_int(swsim_predict(plan, NULL, NULL), SWSIM_USAGE, "a prediction to nowhere");
    tap_is_int(swsim_tune(plan, NULL, NULL), SWSIM_USAGE, "a better plan to nowhere");
    tap_is_int(swsim_render(plan, NULL, "x.svg", NULL), SWSIM_USAGE, "a picture's result");
    tap_is_int(swsim_runs(NULL, NULL), SWSIM_USAGE, "runs to nowhere");
    tap_is_int(swsim_ledger(NULL, SWSIM_LATEST, NULL), SWSIM_USAGE, "a ledger to nowhere");
    swsim_close(plan);
}

static void interruption(void)
{
    struct swsim_plan *plan = plan_of(copy_in);
    struct swsim_result *result;
    swsim_interrupt(plan);
    tap_is_int(swsim_predict(plan, NULL, &result), SWSIM_LIMIT, "an interrupted prediction");
    tap_is_str(swsim_error(result), "test.yaml: interrupted while the program of this plan was built", "says so");
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
    layout();
    properties();
    without_effect();
    drivers();
    schedules();
    jitters();
    stores();
    nowhere();
    interruption();
    threads();
    return tap_done();
}
