/* SPDX-License-Identifier: Apache-2.0 */
/* swsim_tune.c - swsim_tune and swsim_render of swsim.h: better plans, and pictures of plans. */
#include <string.h>

#include "frontier_report.h"
#include "improve/frontier.h"
#include "plan/text/parse.h"
#include "plan/text/print.h"
#include "profiled.h"
#include "render_schedule.h"
#include "swsim_impl.h"
#include "trace/plangraph.h"
#include "trace/schedule_picture.h"
#include "tuning.h"
#include "unexplained.h"

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

/* Options that are for the other form. */
struct other {
    const char *name;
    bool given;
};

static enum status refuse(struct asking *asking, const struct plan *plan,
                          const struct other *others, size_t count, const char *form)
{
    for (size_t i = 0; i < count; i++)
        if (others[i].given)
            return diag_error(&asking->diag, STATUS_USAGE, "%s: found --%s, but it is for %s only",
                              plan->file, others[i].name, form);
    return STATUS_OK;
}

static enum status tune_times(struct asking *asking, const struct plan *plan,
                              const struct tune_options *options)
{
    struct tune tune;
    enum status status = tune_open(plan, options, &tune, &asking->diag);
    if (status != STATUS_OK)
        return status;
    status = search(asking, &tune);
    tune_close(&tune);
    return status;
}

/* A plan of its own, because measured times are set in it. */
static enum status tune_profiled(struct asking *asking, const struct plan *plan,
                                 const struct tune_options *options)
{
    struct plan own;
    enum status status =
        plan_parse(plan->file, plan->text, strlen(plan->text), &own, &asking->diag);
    if (status != STATUS_OK)
        return status;
    asking_set_cores(asking, &own);
    status = profiled_set_times(asking_reader(asking), asking->options.profile, false, &own);
    if (status == STATUS_OK)
        status = tune_times(asking, &own, options);
    plan_fini(&own);
    return status;
}

static enum status tune_pipeline(struct asking *asking, const struct plan *plan)
{
    const struct swsim_options *o = &asking->options;
    const struct other others[] = {{"axes", o->axes},
                                   {"samples", o->samples},
                                   {"half-size", o->half_size},
                                   {"times", o->times}};
    enum driver drivers[2];
    (void)asking_drivers(asking, plan, false, drivers);
    struct tune_options options = {.driver = drivers[0],
                                   .candidates = (uint64_t)o->candidates,
                                   .seed = o->seed ? (uint64_t)o->seed : 1,
                                   .depth = o->max_depth,
                                   .memory_bytes = o->memory_bytes ? o->memory_bytes : -1,
                                   .allow_stale = o->allow_stale,
                                   .interrupted = &asking->asked->interrupted};
    enum status status =
        refuse(asking, plan, others, sizeof others / sizeof *others, "rank programs");
    if (status == STATUS_OK && o->keep)
        status = option_kept(asking_reader(asking), o->keep, &options.kept);
    if (status != STATUS_OK)
        return status;
    return o->profile ? tune_profiled(asking, plan, &options) : tune_times(asking, plan, &options);
}

/* ---- rank programs --------------------------------------------------------------------------- */

/* "KEY=VALUE,VALUE;..." */
static enum status read_axes(struct asking *asking, struct axis_values axes[AXES])
{
    char *rest = NULL, *text = arena_strdup(&asking->arena, asking->options.axes);
    enum status status = text ? STATUS_OK : diag_no_memory(&asking->diag);
    for (char *part = text ? strtok_r(text, ";", &rest) : NULL; part && status == STATUS_OK;
         part = strtok_r(NULL, ";", &rest)) {
        part += strspn(part, " ");
        size_t length = strcspn(part, "=");
        int a = 0;
        while (a < AXES && (strlen(axis_key((enum axis)a)) != length ||
                            strncmp(axis_key((enum axis)a), part, length) != 0))
            a++;
        status = a < AXES && part[length]
                     ? option_axis(asking_reader(asking), a, part + length + 1, &axes[a])
                     : diag_error(&asking->diag, STATUS_USAGE,
                                  "axes: found '%s', expected an axis such as schedule=1f1b,zb_h1",
                                  part);
    }
    return status;
}

static enum status keep_best(struct asking *asking, const struct frontier *frontier)
{
    struct plan best;
    bool found;
    enum status status = frontier_best(frontier, &best, &found, &asking->diag);
    return status == STATUS_OK && found ? plan_text(&best, &asking->result->better, &asking->diag)
                                        : status;
}

static enum status search_frontier(struct asking *asking, const struct plan *plan,
                                   const struct frontier_options *options)
{
    struct frontier frontier;
    enum status status = frontier_open(plan, options, &asking->arena, &frontier, &asking->diag);
    if (status == STATUS_OK)
        status = frontier_try(&frontier, 0, 1, &asking->diag);
    if (status != STATUS_OK)
        return status;
    frontier_sort(&frontier);
    frontier_warn(&frontier, &asking->diag);
    frontier_print(&frontier, false, asking->text.out);
    frontier_write(&frontier, &asking->json);
    if (!frontier.fates[FATE_PROVED])
        asking_verdict(asking, SWSIM_VIOLATED);
    return keep_best(asking, &frontier);
}

static enum status tune_programs(struct asking *asking, const struct plan *plan)
{
    const struct swsim_options *o = &asking->options;
    const struct other others[] = {{"max-depth", o->max_depth},
                                   {"keep", o->keep},
                                   {"allow-stale", o->allow_stale},
                                   {"budget", o->candidates},
                                   {"seed", o->seed}};
    struct frontier_options options = {.memory_bytes = o->memory_bytes ? o->memory_bytes : -1,
                                       .samples = o->samples,
                                       .half_size = o->half_size,
                                       .interrupted = &asking->asked->interrupted};
    struct plan changed = *plan;
    struct profile profile;
    enum status status =
        refuse(asking, plan, others, sizeof others / sizeof *others, "the pipeline form");
    if (status == STATUS_OK && o->axes)
        status = read_axes(asking, options.axes);
    if (status == STATUS_OK && o->times)
        status = option_times(asking_reader(asking), o->times, &changed);
    if (status == STATUS_OK)
        status = frontier_check_samples(&options, plan, &asking->diag);
    if (status == STATUS_OK && !o->profile)
        return search_frontier(asking, &changed, &options);
    if (status == STATUS_OK)
        status = profiled_read(asking_reader(asking), o->profile, &changed, 0, false, &profile);
    if (status != STATUS_OK)
        return status;
    status = search_frontier(asking, &profile.plan, &options);
    profile_fini(&profile);
    return status;
}

static enum status tune_plan(struct asking *asking, const struct plan *plan, const void *context)
{
    (void)context;
    enum status status = refuse_unexplained(plan, asking->options.opaque, &asking->diag);
    if (status != STATUS_OK)
        return status;
    struct plan changed = *plan;
    asking_set_cores(asking, &changed);
    return plan->form == FORM_PROGRAMS ? tune_programs(asking, &changed)
                                       : tune_pipeline(asking, &changed);
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
    struct plan changed;
    bool all = false;
    if (!path)
        return diag_error(&asking->diag, STATUS_USAGE, "no file is named");
    enum status status = asking_changed(asking, plan, &changed, &all);
    if (status == STATUS_OK && all)
        return diag_error(&asking->diag, STATUS_USAGE,
                          "--p2p: found 'all', but a picture is of one channel");
    if (status != STATUS_OK)
        return status;
    return plan->form == FORM_PROGRAMS ? draw_schedule(asking, &changed, &target)
                                       : plangraph_render(plan, false, &target, &asking->diag);
}

enum swsim_status swsim_render(const struct swsim_plan *plan, const struct swsim_options *options,
                               const char *path, struct swsim_result **out)
{
    return swsim_answer(plan, options, render, path, out);
}
