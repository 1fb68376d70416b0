/* SPDX-License-Identifier: Apache-2.0 */
/* swsim_tune.c - swsim_tune and swsim_render of swsim.h: better plans, and pictures of plans. */
#include <string.h>

#include "render_schedule.h"
#include "swsim_impl.h"
#include "trace/plangraph.h"
#include "trace/schedule_picture.h"
#include "tuning.h"

/* ---- tuning ---------------------------------------------------------------------------------- */

static enum status show(struct asking *asking, const struct tuning *tuning)
{
    tuning_print(tuning, false, asking->text.out);
    tuning_write(tuning, &asking->json);
    if (tuning_is_unfit(tuning))
        asking_verdict(asking, SWSIM_VIOLATED);
    asking->result->better = strdup(tuning->after.text);
    return asking->result->better ? STATUS_OK : diag_no_memory(&asking->diag);
}

static enum status search(struct asking *asking, struct tune *tune)
{
    struct tuning tuning;
    enum status status = tuning_check(tune, &asking->diag);
    if (status == STATUS_OK)
        status = tuning_make(tune, &asking->arena, &tuning, &asking->diag);
    if (status != STATUS_OK)
        return status;
    status = show(asking, &tuning);
    tuning_fini(&tuning);
    return status;
}

static enum status tune_plan(struct asking *asking, const struct plan *plan, const void *context)
{
    const struct swsim_options *o = &asking->options;
    struct tune tune;
    enum driver drivers[2];
    (void)context;
    (void)asking_drivers(asking, plan, false, drivers);
    const struct tune_options options = {.driver = drivers[0],
                                         .candidates = (uint64_t)o->candidates,
                                         .seed = o->seed ? (uint64_t)o->seed : 1,
                                         .depth = o->max_depth,
                                         .memory_bytes = o->memory_bytes ? o->memory_bytes : -1,
                                         .allow_stale = o->allow_stale,
                                         .interrupted = &asking->asked->interrupted};
    enum status status = tune_open(plan, &options, &tune, &asking->diag);
    if (status != STATUS_OK)
        return status;
    status = search(asking, &tune);
    tune_close(&tune);
    return status;
}

enum swsim_status swsim_tune(const struct swsim_plan *plan, const struct swsim_options *options,
                             struct swsim_result **out)
{
    return swsim_answer(plan, options, tune_plan, NULL, out);
}

/* ---- pictures -------------------------------------------------------------------------------- */

static enum status draw_schedule(struct asking *asking, const struct plan *plan,
                                 const struct draw_target *target)
{
    const struct schedule_picture_options usual = {0};
    struct chart chart;
    enum status status = render_schedule_plan(plan, &asking->arena, &chart, &asking->diag);
    if (status != STATUS_OK)
        return status;
    if (asking->options.title)
        chart.title = asking->options.title;
    return schedule_picture_render(&chart, 1, &usual, target, &asking->diag);
}

static enum status render(struct asking *asking, const struct plan *plan, const void *path)
{
    const struct draw_target target = {.path = path};
    if (!path)
        return diag_error(&asking->diag, STATUS_USAGE, "no file is named");
    return plan->form == FORM_PROGRAMS ? draw_schedule(asking, plan, &target)
                                       : plangraph_render(plan, &target, &asking->diag);
}

enum swsim_status swsim_render(const struct swsim_plan *plan, const struct swsim_options *options,
                               const char *path, struct swsim_result **out)
{
    return swsim_answer(plan, options, render, path, out);
}
