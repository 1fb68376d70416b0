/* SPDX-License-Identifier: Apache-2.0 */
/* swsim_verify.c - swsim_verify of swsim.h. */
#include <string.h>

#include "check/stopwatch.h"
#include "finding.h"
#include "sim/predict/predict.h"
#include "swsim_impl.h"

static enum status options_of(struct asking *asking, struct verify_options *out)
{
    const struct swsim_options *o = &asking->options;
    *out = (struct verify_options){
        .program = {.iterations = o->iterations ? o->iterations : -1,
                    .ranks = o->ranks,
                    .max_depth = o->max_depth},
        .faults = o->faults,
        .limits = {.states = (uint64_t)o->limit_states,
                   .mem_bytes = (size_t)o->limit_bytes,
                   .until_ns = o->limit_ns ? stopwatch_until(o->limit_ns) : 0},
        .threads = o->threads,
        .interrupted = &asking->asked->interrupted};
    return o->properties ? option_properties(asking_reader(asking), o->properties, &out->properties)
                         : STATUS_OK;
}

static enum status show(struct asking *asking, const struct finding *finding, int number)
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
    if (status == STATUS_OK && !asking->options.no_fix && !atomic_load(&asking->asked->interrupted))
        status =
            finding_repair(finding, &(struct repair_options){.verify = options}, &asking->diag);
    for (int d = 0; d < finding->count && status == STATUS_OK; d++)
        status = show(asking, finding, d);
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
    for (size_t i = 0; i < finding->warnings.count; i++)
        diag_warn_at(&asking->diag, plan->file, plan->text, finding->warnings.items[i].mark, "%s",
                     finding->warnings.items[i].text);
    status = examine(asking, finding, *options);
    finding_close(finding);
    return status;
}

static enum status ask(struct asking *asking, const struct plan *plan, const void *context)
{
    struct verify_options options;
    struct plan changed;
    bool all = false;
    (void)context;
    enum status status = asking_pipeline_options(asking, plan);
    if (status == STATUS_OK)
        status = options_of(asking, &options);
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
    return swsim_answer(plan, options, ask, NULL, out);
}
