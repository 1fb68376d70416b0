/* swsim_tune.c - swsim_tune and swsim_render of swsim.h: better plans, and pictures of plans. */
#include <string.h>

#include "render_schedule.h"
#include "swsim_impl.h"
#include "trace/plangraph.h"
#include "trace/schedule_picture.h"
#include "tuning.h"

/* ---- tuning ---------------------------------------------------------------------------------- */

static enum status show(struct answer *answer, const struct tuning *tuning)
{
    tuning_print(tuning, false, answer->text.out);
    tuning_write(tuning, &answer->json);
    if (tuning_is_unfit(tuning))
        answer_verdict(answer, SWSIM_VIOLATED);
    answer->result->better = strdup(tuning->after.text);
    return answer->result->better ? STATUS_OK : diag_no_memory(&answer->diag);
}

static enum status search(struct answer *answer, struct tune *tune)
{
    struct tuning tuning;
    enum status status = tuning_check(tune, &answer->diag);
    if (status == STATUS_OK)
        status = tuning_make(tune, &answer->arena, &tuning, &answer->diag);
    if (status != STATUS_OK)
        return status;
    status = show(answer, &tuning);
    tuning_fini(&tuning);
    return status;
}

static enum status tune_plan(struct answer *answer, const struct plan *plan, const void *context)
{
    const struct swsim_options *o = &answer->options;
    struct tune tune;
    enum driver drivers[2];
    (void)context;
    (void)answer_drivers(answer, plan, false, drivers);
    const struct tune_options options = {.driver = drivers[0],
                                         .candidates = (uint64_t)o->candidates,
                                         .seed = o->seed ? (uint64_t)o->seed : 1,
                                         .depth = o->max_depth,
                                         .memory_bytes = o->memory_bytes ? o->memory_bytes : -1,
                                         .allow_stale = o->allow_stale,
                                         .interrupted = &answer->asked->interrupted};
    enum status status = tune_open(plan, &options, &tune, &answer->diag);
    if (status != STATUS_OK)
        return status;
    status = search(answer, &tune);
    tune_close(&tune);
    return status;
}

enum swsim_status swsim_tune(const struct swsim_plan *plan, const struct swsim_options *options,
                             struct swsim_result **out)
{
    return swsim_answer(plan, options, tune_plan, NULL, out);
}

/* ---- pictures -------------------------------------------------------------------------------- */

static enum status draw_schedule(struct answer *answer, const struct plan *plan,
                                 const struct draw_target *target)
{
    const struct schedule_picture_options usual = {0};
    struct chart chart;
    enum status status = render_schedule_plan(plan, &answer->arena, &chart, &answer->diag);
    if (status != STATUS_OK)
        return status;
    if (answer->options.title)
        chart.title = answer->options.title;
    return schedule_picture_render(&chart, 1, &usual, target, &answer->diag);
}

static enum status render(struct answer *answer, const struct plan *plan, const void *path)
{
    const struct draw_target target = {.path = path};
    if (!path)
        return diag_error(&answer->diag, STATUS_USAGE, "no file is named");
    return plan->form == FORM_PROGRAMS ? draw_schedule(answer, plan, &target)
                                       : plangraph_render(plan, &target, &answer->diag);
}

enum swsim_status swsim_render(const struct swsim_plan *plan, const struct swsim_options *options,
                               const char *path, struct swsim_result **out)
{
    return swsim_answer(plan, options, render, path, out);
}
