/* SPDX-License-Identifier: Apache-2.0 */
/* swsim_predict.c - swsim_predict of swsim.h. */
#include <string.h>

#include "check/verify.h"
#include "plan/coverage.h"
#include "plan/text/warnings.h"
#include "sim/predict/predict.h"
#include "sim/predict/report.h"
#include "profiled.h"
#include "swsim_impl.h"
#include "unexplained.h"

enum { ITERATIONS = 1000 };

static enum status check_options(struct asking *asking)
{
    const struct swsim_options *o = &asking->options;
    if (o->iterations <= SIMULATE_MAX_ITERATIONS && o->replications <= PREDICT_MAX_REPLICATIONS &&
        o->threads <= PREDICT_MAX_THREADS)
        return STATUS_OK;
    return diag_error(&asking->diag, STATUS_USAGE,
                      "at most %d iterations, %d replications and %d threads",
                      SIMULATE_MAX_ITERATIONS, PREDICT_MAX_REPLICATIONS, PREDICT_MAX_THREADS);
}

static struct predict_options options_of(const struct asking *asking)
{
    const struct swsim_options *o = &asking->options;
    return (struct predict_options){
        .program = {.iterations = o->iterations ? o->iterations : ITERATIONS,
                    .ranks = o->ranks,
                    .max_depth = o->max_depth},
        .seed = o->seed ? (uint64_t)o->seed : 1,
        .replications = o->replications ? (int)o->replications : 1,
        .threads = o->threads ? o->threads : 1,
        .exposed = EXPOSED_IF_CHEAP,
        .in_flight = true,
        .interrupted = &asking->asked->interrupted};
}

/* `base`: the prediction under the other driver; NULL: none. */
static enum status show(struct asking *asking, const struct prediction *prediction,
                        const struct prediction *base, const struct warnings *warnings)
{
    const struct report_row row = {.base = base, .warnings = warnings};
    if (base)
        fputc('\n', asking->text.out);
    enum status status = report_print(prediction, false, false, asking->text.out, &asking->diag);
    if (base)
        report_difference(prediction, base, asking->text.out);
    if (status == STATUS_OK)
        status = report_write(prediction, &row, &asking->json, &asking->diag);
    if (prediction->violated)
        asking_verdict(asking, SWSIM_VIOLATED);
    return status;
}

/* "TASK=DIST;TASK=DIST" */
static enum status add_jitters(struct asking *asking, struct predict_options *options)
{
    char *rest = NULL, *text = arena_strdup(&asking->arena, asking->options.jitter);
    struct jitter_rule *rules =
        text ? ARENA_ARRAY(&asking->arena, strlen(text) / 2 + 1, struct jitter_rule) : NULL;
    enum status status = rules ? STATUS_OK : diag_no_memory(&asking->diag);
    for (char *rule = rules ? strtok_r(text, ";", &rest) : NULL; rule && status == STATUS_OK;
         rule = strtok_r(NULL, ";", &rest)) {
        rule += strspn(rule, " ");
        status = option_jitter(asking_reader(asking), rule, &rules[options->jitter_count]);
        options->jitter_count += status == STATUS_OK;
    }
    options->jitter = rules;
    return status;
}

static enum status predict_drivers(struct asking *asking, const struct plan *plan,
                                   struct predict_options options, const struct warnings *warnings)
{
    struct prediction predictions[2];
    enum driver drivers[2];
    int made = 0, count = asking_drivers(asking, plan, true, drivers);
    enum status status = STATUS_OK;
    while (made < count && status == STATUS_OK) {
        options.program.driver = drivers[made];
        status = predict(plan, &options, &predictions[made], &asking->diag);
        if (status != STATUS_OK)
            break;
        made++;
        status = show(asking, &predictions[made - 1], made == 2 ? &predictions[0] : NULL, warnings);
    }
    while (made > 0)
        prediction_fini(&predictions[--made]);
    return status;
}

static enum status predict_plan(struct asking *asking, const struct plan *plan,
                                const struct predict_options *options)
{
    struct warnings warnings;
    enum status status = warnings_find(plan, &asking->arena, &warnings, &asking->diag);
    if (status == STATUS_OK)
        status = refuse_unexplained(plan, asking->options.opaque, &asking->diag);
    if (status != STATUS_OK)
        return status;
    coverage_warn(plan, &asking->diag);
    return predict_drivers(asking, plan, *options, &warnings);
}

static enum status predict_profiled(struct asking *asking, const struct plan *plan,
                                    const struct predict_options *options)
{
    struct profile profile;
    enum status status = profiled_read(asking_reader(asking), asking->options.profile, plan,
                                       options->program.ranks, false, &profile);
    if (status != STATUS_OK)
        return status;
    status = predict_plan(asking, &profile.plan, options);
    profile_fini(&profile);
    return status;
}

/* Options that the command does not take together. */
static enum status check_together(struct asking *asking, const struct plan *plan)
{
    const struct swsim_options *o = &asking->options;
    enum status status = asking_pipeline_options(asking, plan);
    if (status != STATUS_OK)
        return status;
    if (o->profile && (o->jitter || o->p2p))
        return diag_error(&asking->diag, STATUS_USAGE, "found --profile beside --%s",
                          o->jitter ? "jitter: the measured times have their own jitter" : "p2p");
    return check_options(asking);
}

static enum status ask(struct asking *asking, const struct plan *plan, const void *context)
{
    struct plan changed;
    bool all = false;
    (void)context;
    enum status status = check_together(asking, plan);
    if (status != STATUS_OK)
        return status;
    struct predict_options options = options_of(asking);
    status = asking_changed(asking, plan, &changed, &all);
    if (status == STATUS_OK && asking->options.jitter)
        status = add_jitters(asking, &options);
    if (status != STATUS_OK)
        return status;
    if (all)
        return asking_channels(asking, &changed,
                               &(struct verify_options){.program = {.iterations = -1}}, &options);
    return asking->options.profile ? predict_profiled(asking, &changed, &options)
                                   : predict_plan(asking, &changed, &options);
}

enum swsim_status swsim_predict(const struct swsim_plan *plan, const struct swsim_options *options,
                                struct swsim_result **out)
{
    return swsim_answer(plan, options, ask, NULL, out);
}
