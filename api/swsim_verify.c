/* swsim_verify.c - swsim_verify of swsim.h. */
#include <string.h>

#include "check/stopwatch.h"
#include "finding.h"
#include "swsim_impl.h"

static struct verify_options options_of(const struct answer *answer)
{
    const struct swsim_options *o = &answer->options;
    return (struct verify_options){
        .program = {.iterations = o->iterations ? o->iterations : -1,
                    .ranks = o->ranks,
                    .max_depth = o->max_depth},
        .faults = o->faults,
        .limits = {.states = (uint64_t)o->limit_states,
                   .mem_bytes = (size_t)o->limit_bytes,
                   .until_ns = o->limit_ns ? stopwatch_now_ns() + o->limit_ns : 0},
        .threads = o->threads,
        .interrupted = &answer->asked->interrupted};
}

static enum status show(struct answer *answer, const struct finding *finding, int number)
{
    static const enum swsim_verdict verdicts[] = {[VERDICT_PROVED] = SWSIM_PROVED,
                                                  [VERDICT_VIOLATED] = SWSIM_VIOLATED,
                                                  [VERDICT_UNDECIDED] = SWSIM_UNDECIDED};
    const struct verdict_style style = {
        .arena = &answer->arena, .diag = &answer->diag, .whole = answer->options.whole_story};
    struct verdict_view view = finding_view(finding, number);
    enum status status = verdict_print(&style, &view, answer->text.out);
    verdict_write(&view, &answer->json);
    answer_verdict(answer, verdicts[view.report->verdict]);
    return view.report->no_memory ? STATUS_SYSTEM : status;
}

static enum status keep_repair(struct answer *answer, const struct finding *finding)
{
    const struct repair *repair = &finding->repair;
    if (!finding->repair_sought || !repair->found)
        return STATUS_OK;
    answer->result->better = strdup(repair->edited ? repair->edited : repair->text);
    return answer->result->better ? STATUS_OK : diag_no_memory(&answer->diag);
}

static enum status examine(struct answer *answer, struct finding *finding)
{
    struct verify_options options = options_of(answer);
    enum driver drivers[2];
    int count = answer_drivers(answer, finding->plan, true, drivers);
    enum status status = STATUS_OK;
    for (int d = 0; d < count && status == STATUS_OK; d++) {
        options.program.driver = drivers[d];
        status = finding_verify(finding, &options, &answer->diag);
    }
    if (status == STATUS_OK && !answer->options.no_fix && !atomic_load(&answer->asked->interrupted))
        status =
            finding_repair(finding, &(struct repair_options){.verify = options}, &answer->diag);
    for (int d = 0; d < finding->count && status == STATUS_OK; d++)
        status = show(answer, finding, d);
    return status == STATUS_OK ? keep_repair(answer, finding) : status;
}

static enum status verify(struct answer *answer, const struct plan *plan, const void *context)
{
    struct finding *finding = ARENA_NEW(&answer->arena, struct finding);
    (void)context;
    if (!finding)
        return diag_no_memory(&answer->diag);
    enum status status = finding_open(finding, plan, &answer->arena, &answer->diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < finding->warnings.count; i++)
        diag_warn_at(&answer->diag, plan->file, plan->text, finding->warnings.items[i].mark, "%s",
                     finding->warnings.items[i].text);
    status = examine(answer, finding);
    finding_close(finding);
    return status;
}

enum swsim_status swsim_verify(const struct swsim_plan *plan, const struct swsim_options *options,
                               struct swsim_result **out)
{
    return swsim_answer(plan, options, verify, NULL, out);
}
