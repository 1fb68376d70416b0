/* SPDX-License-Identifier: Apache-2.0 */
/* swsim.c - see swsim.h: plans, and what all questions and results have in common. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "channels.h"
#include "improve/tune.h"
#include "improve/found.h"
#include "check/search.h"
#include "driver_choice.h"
#include "base/c_locale.h"
#include "plan/text/parse.h"
#include "swsim_impl.h"

/* ---- words ----------------------------------------------------------------------------------- */

const char *swsim_status_name(enum swsim_status status)
{
    static const char *const names[] = {"ok", "limit", "usage", "input", "system"};
    return status >= SWSIM_OK && status <= SWSIM_SYSTEM ? names[status] : "unknown";
}

const char *swsim_version(void)
{
    return PACKAGE_VERSION;
}

int swsim_abi(void)
{
    return LIBRARY_ABI;
}

/* A violation is an answer; without an answer the plan is the reason. */
enum swsim_status swsim_translate(enum status status)
{
    switch (status) {
    case STATUS_OK: return SWSIM_OK;
    case STATUS_LIMIT: return SWSIM_LIMIT;
    case STATUS_USAGE: return SWSIM_USAGE;
    case STATUS_VIOLATED:
    case STATUS_INPUT: return SWSIM_INPUT;
    case STATUS_SYSTEM: break;
    }
    return SWSIM_SYSTEM;
}

/* NULL: no memory. */
char *swsim_all_messages(struct diag *diag)
{
    struct text_stream stream;
    if (!text_open(&stream))
        return NULL;
    diag_print(diag, "swsim", false, stream.out);
    return text_close(&stream, true, NULL);
}

/* ---- plans ----------------------------------------------------------------------------------- */

static enum swsim_status swsim_take(const char *name, const char *text, struct swsim_plan **out)
{
    struct swsim_plan *plan = out ? calloc(1, sizeof *plan) : NULL;
    struct diag diag;
    if (!out)
        return SWSIM_USAGE;
    *out = plan;
    if (!plan)
        return SWSIM_SYSTEM;
    diag_init(&diag);
    locale_t before = c_locale_begin();
    enum status status = text ? plan_parse(name, text, strlen(text), &plan->plan, &diag)
                              : plan_read(name, &plan->plan, &diag);
    plan->has_plan = status == STATUS_OK;
    if (status != STATUS_OK)
        plan->error = swsim_all_messages(&diag);
    c_locale_end(before);
    diag_fini(&diag);
    return swsim_translate(status);
}

enum swsim_status swsim_read(const char *path, struct swsim_plan **out)
{
    return swsim_take(path ? path : "", NULL, out);
}

enum swsim_status swsim_parse(const char *name, const char *text, struct swsim_plan **out)
{
    return swsim_take(name ? name : "plan", text ? text : "", out);
}

void swsim_close(struct swsim_plan *plan)
{
    if (!plan)
        return;
    if (plan->has_plan)
        plan_fini(&plan->plan);
    free(plan->error);
    free(plan);
}

const char *swsim_plan_name(const struct swsim_plan *plan)
{
    return plan && plan->has_plan ? plan->plan.name : "";
}

const char *swsim_plan_error(const struct swsim_plan *plan)
{
    if (!plan || (!plan->has_plan && !plan->error))
        return "out of memory";
    return plan->error ? plan->error : "";
}

void swsim_interrupt(struct swsim_plan *plan)
{
    if (plan)
        atomic_store(&plan->interrupted, true);
}

/* ---- answers --------------------------------------------------------------------------------- */

void asking_verdict(struct asking *asking, enum swsim_verdict verdict)
{
    static const int gravity[] = {[SWSIM_PROVED] = 0, [SWSIM_UNDECIDED] = 1, [SWSIM_VIOLATED] = 2};
    if (gravity[verdict] > gravity[asking->result->verdict])
        asking->result->verdict = verdict;
}

static int driver_choice(enum swsim_driver driver)
{
    static const int choices[] = {[SWSIM_DRIVER_OF_PLAN] = DRIVER_NOT_GIVEN,
                                  [SWSIM_DRIVER_CLOCK] = CLOCK_ONLY,
                                  [SWSIM_DRIVER_DATAFLOW] = DATAFLOW_ONLY,
                                  [SWSIM_DRIVER_BOTH] = BOTH_DRIVERS};
    return choices[driver];
}

int asking_drivers(struct asking *asking, const struct plan *plan, bool both,
                   enum driver drivers[2])
{
    drivers[0] = DRIVER_NONE;
    if (plan->form != FORM_PIPELINE)
        return 1;
    int chosen = driver_choose(plan, driver_choice(asking->options.driver),
                               both ? BOTH_DRIVERS : CLOCK_ONLY, &asking->diag);
    drivers[0] = chosen == DATAFLOW_ONLY ? DRIVER_DATAFLOW : DRIVER_CLOCK;
    drivers[1] = DRIVER_DATAFLOW;
    return both && chosen == BOTH_DRIVERS ? 2 : 1;
}

/* Negative numbers have no meaning anywhere. */
static enum status swsim_check_options(struct asking *asking)
{
    const struct swsim_options *o = &asking->options;
    const struct {
        const char *name;
        int64_t found, most;
    } numbers[] = {{"ranks", o->ranks, PLAN_MAX_RANKS},
                   {"max_depth", o->max_depth, PLAN_MAX_DEPTH},
                   {"threads", o->threads, SEARCH_MAX_THREADS},
                   {"iterations", o->iterations, PLAN_MAX_ITERATIONS},
                   {"limit_states", o->limit_states, INT64_MAX},
                   {"limit_bytes", o->limit_bytes, INT64_MAX},
                   {"limit_ns", o->limit_ns, INT64_MAX},
                   {"seed", o->seed, INT64_MAX},
                   {"replications", o->replications, PREDICT_MAX_REPLICATIONS},
                   {"memory_bytes", o->memory_bytes, INT64_MAX},
                   {"candidates", o->candidates, TUNE_MOST_CANDIDATES},
                   {"samples", o->samples, TUNE_MOST_SAMPLES},
                   {"half_size", o->half_size, TUNE_MOST_SAMPLES},
                   {"cores", o->cores, PLAN_MAX_CORES}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].found < 0 || numbers[i].found > numbers[i].most)
            return diag_error(&asking->diag, STATUS_USAGE,
                              "%s is %" PRId64 ": expected 0 to %" PRId64, numbers[i].name,
                              numbers[i].found, numbers[i].most);
    if (o->reserved_int)
        return diag_error(&asking->diag, STATUS_USAGE,
                          "reserved_int is not 0: a later version of swsim.h has an option there");
    for (size_t i = 0; i < sizeof o->reserved / sizeof *o->reserved; i++)
        if (o->reserved[i])
            return diag_error(
                &asking->diag, STATUS_USAGE,
                "reserved[%zu] is not 0: a later version of swsim.h has an option there", i);
    if (o->driver < SWSIM_DRIVER_OF_PLAN || o->driver > SWSIM_DRIVER_BOTH)
        return diag_error(&asking->diag, STATUS_USAGE, "there is no such driver");
    if (o->driver != SWSIM_DRIVER_OF_PLAN && asking->asked->has_plan &&
        asking->asked->plan.form != FORM_PIPELINE)
        return diag_error(&asking->diag, STATUS_USAGE,
                          "%s: only plans of the pipeline form have a driver",
                          asking->asked->plan.file);
    return STATUS_OK;
}

enum status asking_pipeline_options(struct asking *asking, const struct plan *plan)
{
    const struct swsim_options *o = &asking->options;
    const char *given[2];
    size_t count = 0;
    if (o->iterations)
        given[count++] = "iterations";
    if (o->max_depth)
        given[count++] = "max-depth";
    return driver_check_options(plan, given, count, driver_choice(o->driver), BOTH_DRIVERS,
                                &asking->diag);
}

struct option_reader asking_reader(struct asking *asking)
{
    return (struct option_reader){&asking->arena, &asking->diag};
}

void asking_set_cores(const struct asking *asking, struct plan *plan)
{
    if (asking->options.cores)
        plan->machine.cores = asking->options.cores;
}

enum status asking_changed(struct asking *asking, const struct plan *plan, struct plan *out,
                           bool *all)
{
    const struct swsim_options *o = &asking->options;
    int channel = CHANNELS_NOT_GIVEN;
    enum status status = STATUS_OK;
    *out = *plan;
    if (o->p2p && !channels_parse(o->p2p, &channel))
        return diag_error(&asking->diag, STATUS_USAGE, "--p2p: found '%s', expected %s", o->p2p,
                          CHANNELS_CHOICE);
    asking_set_cores(asking, out);
    if (o->times)
        status = option_times(asking_reader(asking), o->times, out);
    *all = channel == CHANNELS_ALL;
    if (status == STATUS_OK)
        status = channels_choose(out, channel, &asking->diag);
    return status == STATUS_OK && !*all ? found_resolve(out, &asking->arena, &asking->diag)
                                        : status;
}

enum status asking_channels(struct asking *asking, const struct plan *plan,
                            const struct verify_options *verify,
                            const struct predict_options *predict)
{
    static const enum swsim_verdict verdicts[] = {[VERDICT_PROVED] = SWSIM_PROVED,
                                                  [VERDICT_VIOLATED] = SWSIM_VIOLATED,
                                                  [VERDICT_UNDECIDED] = SWSIM_UNDECIDED};
    struct channel_row rows[CHANNELS];
    enum status status = channels_compare(plan, verify, predict, rows, &asking->diag);
    if (status != STATUS_OK)
        return status;
    channels_print(plan, rows, asking->text.out);
    channels_write(plan, rows, &asking->json);
    asking_verdict(asking, verdicts[channels_verdict(rows)]);
    return STATUS_OK;
}

/* A question to a plan. */
struct question {
    asking_verb *ask;
    const void *context;
};

static enum status ask_plan(struct asking *asking, const void *context)
{
    const struct question *question = context;
    if (!asking->asked || !asking->asked->has_plan)
        return diag_error(&asking->diag, STATUS_USAGE, "the plan was not read");
    enum status status = swsim_check_options(asking);
    return status == STATUS_OK ? question->ask(asking, &asking->asked->plan, question->context)
                               : status;
}

/* Texts go to the result if nothing failed. */
static enum status swsim_finish(struct asking *asking, enum status status)
{
    struct swsim_result *result = asking->result;
    bool keep = status == STATUS_OK;
    result->text = text_close(&asking->text, keep, NULL);
    result->json = text_close(&asking->lines, keep, NULL);
    if (keep && (!result->text || !result->json || asking->diag.out_of_memory))
        status = diag_no_memory(&asking->diag);
    if (status != STATUS_OK) {
        diag_first_error(&asking->diag, result->error, sizeof result->error);
        result->verdict = SWSIM_UNDECIDED; /* no answer is no proof */
    }
    if (asking->diag.count)
        result->messages = swsim_all_messages(&asking->diag);
    return status;
}

static enum swsim_status swsim_own_make(const struct swsim_plan *plan,
                                        const struct swsim_options *options, making_verb *verb,
                                        const void *context, struct swsim_result **out)
{
    struct asking asking = {.asked = plan};
    if (!out)
        return SWSIM_USAGE;
    *out = asking.result = calloc(1, sizeof *asking.result);
    if (!asking.result)
        return SWSIM_SYSTEM;
    if (options)
        asking.options = *options;
    locale_t before = c_locale_begin();
    arena_init(&asking.arena, 0);
    diag_init(&asking.diag);
    enum status status = STATUS_SYSTEM;
    bool text = text_open(&asking.text), lines = text && text_open(&asking.lines);
    if (lines) {
        json_open(&asking.json, asking.lines.out);
        status = swsim_finish(&asking, verb(&asking, context));
    } else if (text) {
        text_close(&asking.text, false, NULL);
    }
    diag_fini(&asking.diag);
    arena_fini(&asking.arena);
    c_locale_end(before);
    return swsim_translate(status);
}

enum swsim_status swsim_make(const struct swsim_options *options, making_verb *verb,
                             const void *context, struct swsim_result **out)
{
    return swsim_own_make(NULL, options, verb, context, out);
}

enum swsim_status swsim_answer(const struct swsim_plan *plan, const struct swsim_options *options,
                               asking_verb *ask, const void *context, struct swsim_result **out)
{
    const struct question question = {ask, context};
    return swsim_own_make(plan, options, ask_plan, &question, out);
}

/* ---- results --------------------------------------------------------------------------------- */

static const char *or_nothing(const char *text)
{
    return text ? text : "";
}

enum swsim_verdict swsim_verdict(const struct swsim_result *result)
{
    return result ? result->verdict : SWSIM_UNDECIDED;
}

const char *swsim_text(const struct swsim_result *result)
{
    return or_nothing(result ? result->text : NULL);
}

const char *swsim_json(const struct swsim_result *result)
{
    return or_nothing(result ? result->json : NULL);
}

const char *swsim_better_plan(const struct swsim_result *result)
{
    return or_nothing(result ? result->better : NULL);
}

const char *swsim_messages(const struct swsim_result *result)
{
    return or_nothing(result ? result->messages : NULL);
}

const char *swsim_error(const struct swsim_result *result)
{
    return result ? result->error : "out of memory";
}

void swsim_free(struct swsim_result *result)
{
    if (!result)
        return;
    free(result->text);
    free(result->json);
    free(result->better);
    free(result->messages);
    free(result);
}
