/* SPDX-License-Identifier: Apache-2.0 */
/* swsim_calls.c - the questions of swsim.h about a plan: swsim_verify, swsim_predict, swsim_tune. */
#include <string.h>

#include "check/many_ranks.h"
#include "improve/frontier.h"
#include "plan/coverage.h"
#include "plan/text/parse.h"
#include "plan/text/print.h"
#include "plan/text/warnings.h"
#include "sim/predict/predict.h"
#include "sim/predict/report.h"
#include "trace/plangraph.h"
#include "trace/schedule_picture.h"

#include "finding.h"
#include "frontier_report.h"
#include "profiled.h"
#include "render.h"
#include "swsim_impl.h"
#include "tuning.h"
#include "unexplained.h"

enum { ITERATIONS = 1000 };

static struct predict_options predict_options_of(const struct asking *asking)
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
static enum status predict_show(struct asking *asking, const struct prediction *prediction,
                                const struct prediction *base, const struct warnings *warnings)
{
    const struct report_row row = {.base = base, .warnings = warnings};
    if (base)
        fputc('\n', asking->text.out);
    enum status status =
        base ? report_print_second(prediction, base, false, false, asking->text.out, &asking->diag)
             : report_print(prediction, false, false, asking->text.out, &asking->diag);
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
        status = predict_show(asking, &predictions[made - 1], made == 2 ? &predictions[0] : NULL,
                              warnings);
    }
    while (made > 0)
        prediction_fini(&predictions[--made]);
    return status;
}

static enum status swsim_calls_predict_plan(struct asking *asking, const struct plan *plan,
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

static enum status swsim_calls_predict_profiled(struct asking *asking, const struct plan *plan,
                                                const struct predict_options *options)
{
    struct profile profile;
    enum status status = profiled_read(asking_reader(asking), asking->options.profile, plan,
                                       options->program.ranks, false, &profile);
    if (status != STATUS_OK)
        return status;
    status = swsim_calls_predict_plan(asking, &profile.plan, options);
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
    return STATUS_OK;
}

static enum status predict_ask(struct asking *asking, const struct plan *plan, const void *context)
{
    struct plan changed;
    bool all = false;
    (void)context;
    enum status status = check_together(asking, plan);
    if (status != STATUS_OK)
        return status;
    struct predict_options options = predict_options_of(asking);
    status = asking_changed(asking, plan, &changed, &all);
    if (status == STATUS_OK && asking->options.jitter)
        status = add_jitters(asking, &options);
    if (status != STATUS_OK)
        return status;
    if (all)
        return asking_channels(asking, &changed,
                               &(struct verify_options){.program = {.iterations = -1}}, &options);
    return asking->options.profile ? swsim_calls_predict_profiled(asking, &changed, &options)
                                   : swsim_calls_predict_plan(asking, &changed, &options);
}

enum swsim_status swsim_predict(const struct swsim_plan *plan, const struct swsim_options *options,
                                struct swsim_result **out)
{
    return swsim_answer(plan, options, predict_ask, NULL, out);
}

/* ---- swsim_verify ---------------------------------------------------------------------------- */

static enum status verify_options_of(struct asking *asking, struct verify_options *out)
{
    const struct swsim_options *o = &asking->options;
    *out = (struct verify_options){.program = {.iterations = o->iterations ? o->iterations : -1,
                                               .ranks = o->ranks,
                                               .max_depth = o->max_depth},
                                   .faults = o->faults,
                                   .limits = {.states = (uint64_t)o->limit_states,
                                              .mem_bytes = (size_t)o->limit_bytes,
                                              .time_ns = o->limit_ns},
                                   .threads = o->threads,
                                   .interrupted = &asking->asked->interrupted};
    return o->properties ? option_properties(asking_reader(asking), o->properties, &out->properties)
                         : STATUS_OK;
}

static enum status verify_show(struct asking *asking, const struct finding *finding, int number)
{
    static const enum swsim_verdict verdicts[] = {[VERDICT_PROVED] = SWSIM_PROVED,
                                                  [VERDICT_VIOLATED] = SWSIM_VIOLATED,
                                                  [VERDICT_UNDECIDED] = SWSIM_UNDECIDED};
    const struct verdict_style style = {
        .arena = &asking->arena, .diag = &asking->diag, .whole = asking->options.whole_story};
    struct verdict_view view = finding_view(finding, number);
    enum status status = verdict_print(&style, &view, asking->text.out);
    verdict_write(&view, &asking->json);
    asking_verdict(asking, verdicts[view.report->verdict]);
    return view.report->no_memory ? STATUS_SYSTEM : status;
}

static enum status keep_repair(struct asking *asking, const struct finding *finding)
{
    const struct repair *repair = &finding->repair;
    if (!finding->repair_sought || !repair->found)
        return STATUS_OK;
    asking->result->better = strdup(repair->edited ? repair->edited : repair->text);
    return asking->result->better ? STATUS_OK : diag_no_memory(&asking->diag);
}

static void examine_tell_warnings(struct asking *asking, const struct finding *finding,
                                  size_t first)
{
    const struct plan *plan = finding->plan;
    for (size_t i = first; i < finding->warnings.count; i++)
        diag_warn_at(&asking->diag, plan->file, plan->text, finding->warnings.items[i].mark, "%s",
                     finding->warnings.items[i].text);
}

static enum status examine(struct asking *asking, struct finding *finding,
                           struct verify_options options)
{
    enum driver drivers[2];
    int count = asking_drivers(asking, finding->plan, true, drivers);
    enum status status = STATUS_OK;
    for (int d = 0; d < count && status == STATUS_OK; d++) {
        options.program.driver = drivers[d];
        status = finding_verify(finding, &options, &asking->diag);
    }
    size_t first = 0;
    if (status == STATUS_OK)
        status = finding_dead_writes(finding, &options, &asking->arena, &first, &asking->diag);
    examine_tell_warnings(asking, finding, first);
    if (status == STATUS_OK && !asking->options.no_fix && !atomic_load(&asking->asked->interrupted))
        status =
            finding_repair(finding, &(struct repair_options){.verify = options}, &asking->diag);
    for (int d = 0; d < finding->count && status == STATUS_OK; d++)
        status = verify_show(asking, finding, d);
    return status == STATUS_OK ? keep_repair(asking, finding) : status;
}

static enum status verify(struct asking *asking, const struct plan *plan,
                          const struct verify_options *options)
{
    struct finding *finding = ARENA_NEW(&asking->arena, struct finding);
    if (!finding)
        return diag_no_memory(&asking->diag);
    enum status status = finding_open(finding, plan, &asking->arena, &asking->diag);
    if (status != STATUS_OK)
        return status;
    examine_tell_warnings(asking, finding, 0);
    status = examine(asking, finding, *options);
    finding_close(finding);
    return status;
}

static enum status verify_ask(struct asking *asking, const struct plan *plan, const void *context)
{
    struct verify_options options;
    struct plan changed;
    bool all = false;
    (void)context;
    enum status status = asking_pipeline_options(asking, plan);
    if (status == STATUS_OK)
        status = verify_options_of(asking, &options);
    if (status == STATUS_OK)
        many_ranks_option(&options, plan);
    if (status == STATUS_OK)
        status = asking_changed(asking, plan, &changed, &all);
    if (status != STATUS_OK)
        return status;
    const struct predict_options predict = {
        .program = {.iterations = 1, .ranks = options.program.ranks},
        .seed = 1,
        .replications = 1,
        .threads = 1,
        .interrupted = options.interrupted};
    return all ? asking_channels(asking, &changed, &options, &predict)
               : verify(asking, &changed, &options);
}

enum swsim_status swsim_verify(const struct swsim_plan *plan, const struct swsim_options *options,
                               struct swsim_result **out)
{
    return swsim_answer(plan, options, verify_ask, NULL, out);
}

/* ---- swsim_tune ------------------------------------------------------------------------------ */

/* ---- tuning ---------------------------------------------------------------------------------- */

static enum status tune_show(struct asking *asking, const struct tuning *tuning)
{
    tuning_print(tuning, false, asking->text.out);
    tuning_write(tuning, &asking->json);
    if (tuning->unfit)
        asking_verdict(asking, SWSIM_VIOLATED);
    asking->result->better = strdup(tuning->after.text);
    return asking->result->better ? STATUS_OK : diag_no_memory(&asking->diag);
}

static enum status swsim_calls_search(struct asking *asking, struct tune *tune)
{
    struct tuning tuning;
    enum status status = tuning_check(tune, &asking->diag);
    if (status == STATUS_OK)
        status = tuning_make(tune, &asking->arena, &tuning, &asking->diag);
    if (status != STATUS_OK)
        return status;
    status = tune_show(asking, &tuning);
    tuning_fini(&tuning);
    return status;
}

/* Options that are for the other form. */
struct other {
    const char *name;
    bool given;
};

static enum status swsim_calls_refuse(struct asking *asking, const struct plan *plan,
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
    status = swsim_calls_search(asking, &tune);
    tune_close(&tune);
    return status;
}

static enum status swsim_calls_tune_host(struct asking *asking, const struct plan *plan,
                                         const struct tune_options *options)
{
    const struct swsim_options *o = &asking->options;
    const struct other others[] = {
        {"memory", o->memory_bytes}, {"max-depth", o->max_depth}, {"profile", o->profile}};
    struct tuning tuning;
    enum status status = swsim_calls_refuse(asking, plan, others, sizeof others / sizeof *others,
                                            "the pipeline form");
    if (status == STATUS_OK)
        status = tuning_make_host(plan, options, &asking->arena, &tuning, &asking->diag);
    if (status != STATUS_OK)
        return status;
    status = tune_show(asking, &tuning);
    tuning_fini(&tuning);
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

static enum status swsim_calls_tune_pipeline(struct asking *asking, const struct plan *plan)
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
        swsim_calls_refuse(asking, plan, others, sizeof others / sizeof *others, "rank programs");
    if (status == STATUS_OK && o->keep)
        status = option_kept(asking_reader(asking), o->keep, &options.kept);
    if (status != STATUS_OK)
        return status;
    if (plan->form == FORM_THREADS)
        return swsim_calls_tune_host(asking, plan, &options);
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

static enum status swsim_calls_keep_best(struct asking *asking, const struct frontier *frontier)
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
    return swsim_calls_keep_best(asking, &frontier);
}

static enum status swsim_calls_tune_programs(struct asking *asking, const struct plan *plan)
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
    enum status status = swsim_calls_refuse(asking, plan, others, sizeof others / sizeof *others,
                                            "the pipeline form");
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

static enum status swsim_calls_tune_plan(struct asking *asking, const struct plan *plan,
                                         const void *context)
{
    (void)context;
    enum status status = refuse_unexplained(plan, asking->options.opaque, &asking->diag);
    if (status != STATUS_OK)
        return status;
    struct plan changed = *plan;
    asking_set_cores(asking, &changed);
    return plan->form == FORM_PROGRAMS ? swsim_calls_tune_programs(asking, &changed)
                                       : swsim_calls_tune_pipeline(asking, &changed);
}

enum swsim_status swsim_tune(const struct swsim_plan *plan, const struct swsim_options *options,
                             struct swsim_result **out)
{
    return swsim_answer(plan, options, swsim_calls_tune_plan, NULL, out);
}

/* ---- pictures -------------------------------------------------------------------------------- */

static enum status swsim_calls_draw_schedule(struct asking *asking, const struct plan *plan,
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
    return plan->form == FORM_PROGRAMS ? swsim_calls_draw_schedule(asking, &changed, &target)
                                       : plangraph_render(plan, false, &target, &asking->diag);
}

enum swsim_status swsim_render(const struct swsim_plan *plan, const struct swsim_options *options,
                               const char *path, struct swsim_result **out)
{
    return swsim_answer(plan, options, render, path, out);
}
