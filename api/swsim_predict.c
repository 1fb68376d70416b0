/* swsim_predict.c - swsim_predict of swsim.h. */
#include "plan/coverage.h"
#include "plan/warnings.h"
#include "sim/predict/predict.h"
#include "sim/predict/report.h"
#include "swsim_impl.h"
#include "unexplained.h"

enum { ITERATIONS = 1000 };

static enum status check_options(struct answer *answer)
{
    const struct swsim_options *o = &answer->options;
    if (o->iterations <= SIMULATE_MAX_ITERATIONS && o->replications <= PREDICT_MAX_REPLICATIONS &&
        o->threads <= PREDICT_MAX_THREADS)
        return STATUS_OK;
    return diag_error(&answer->diag, STATUS_USAGE,
                      "at most %d iterations, %d replications and %d threads",
                      SIMULATE_MAX_ITERATIONS, PREDICT_MAX_REPLICATIONS, PREDICT_MAX_THREADS);
}

static struct predict_options options_of(const struct answer *answer)
{
    const struct swsim_options *o = &answer->options;
    return (struct predict_options){
        .program = {.iterations = o->iterations ? o->iterations : ITERATIONS,
                    .ranks = o->ranks,
                    .max_depth = o->max_depth},
        .seed = o->seed ? (uint64_t)o->seed : 1,
        .replications = o->replications ? (int)o->replications : 1,
        .threads = o->threads ? o->threads : 1,
        .engine = ENGINE_AUTO,
        .exposed = EXPOSED_IF_CHEAP,
        .in_flight = true,
        .interrupted = &answer->asked->interrupted};
}

/* `base`: the prediction under the other driver; NULL: none. */
static enum status show(struct answer *answer, const struct prediction *prediction,
                        const struct prediction *base, const struct warnings *warnings)
{
    const struct report_row row = {.base = base, .warnings = warnings};
    if (base)
        fputc('\n', answer->text.out);
    enum status status = report_print(prediction, false, answer->text.out, &answer->diag);
    if (base)
        report_difference(prediction, base, answer->text.out);
    if (status == STATUS_OK)
        status = report_write(prediction, &row, &answer->json, &answer->diag);
    if (prediction->violated)
        answer_verdict(answer, SWSIM_VIOLATED);
    return status;
}

static enum status predict_drivers(struct answer *answer, const struct plan *plan,
                                   const struct warnings *warnings)
{
    struct predict_options options = options_of(answer);
    struct prediction predictions[2];
    enum driver drivers[2];
    int made = 0, count = answer_drivers(answer, plan, true, drivers);
    enum status status = STATUS_OK;
    while (made < count && status == STATUS_OK) {
        options.program.driver = drivers[made];
        status = predict(plan, &options, &predictions[made], &answer->diag);
        if (status != STATUS_OK)
            break;
        made++;
        status = show(answer, &predictions[made - 1], made == 2 ? &predictions[0] : NULL, warnings);
    }
    while (made > 0)
        prediction_fini(&predictions[--made]);
    return status;
}

static enum status predict_plan(struct answer *answer, const struct plan *plan, const void *context)
{
    struct warnings warnings;
    (void)context;
    enum status status = check_options(answer);
    if (status == STATUS_OK)
        status = warnings_find(plan, &answer->arena, &warnings, &answer->diag);
    if (status == STATUS_OK)
        status = refuse_unexplained(plan, answer->options.opaque, &answer->diag);
    if (status != STATUS_OK)
        return status;
    coverage_warn(plan, &answer->diag);
    return predict_drivers(answer, plan, &warnings);
}

enum swsim_status swsim_predict(const struct swsim_plan *plan, const struct swsim_options *options,
                                struct swsim_result **out)
{
    return swsim_answer(plan, options, predict_plan, NULL, out);
}
