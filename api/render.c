/* SPDX-License-Identifier: Apache-2.0 */
/* render.c - see render.h. */
#include "render.h"

#include <string.h>

#include "improve/found.h"
#include "improve/frontier_costs.h"
#include "plan/text/parse.h"
#include "sim/predict/pass_chart.h"
#include "sim/predict/explained.h"
#include "trace/store.h"
#include "plan/schedules/complete_lists.h"

enum { UNIT_NS = 1000 * 1000, ACTIVATION = 1 << 20 };

/* Lists are completed once: some schedules take long to find. */
static enum status render_complete(struct plan *plan, struct arena *arena, struct diag *diag)
{
    struct programs *programs = &plan->programs;
    struct rank_program *ranks;
    int count;
    enum status status = complete_lists_fill(plan, arena, &ranks, &count, diag);
    if (status != STATUS_OK)
        return status;
    programs->copies = complete_lists_copies(plan);
    programs->generate.given = false;
    programs->ranks = ranks;
    programs->has_comms = true;
    plan->ranks = count;
    return STATUS_OK;
}

/* The parts that the plan leaves out, and its lists. */
static enum status render_fill(struct plan *plan, bool has_times, struct arena *arena,
                               struct diag *diag)
{
    bool has_bytes = frontier_has_bytes(&plan->programs.stages), changes = !has_times || !has_bytes;
    if (!frontier_fill_costs(&plan->programs, !has_times, has_bytes ? 0 : ACTIVATION, arena))
        return diag_no_memory(diag);
    if (!has_bytes) /* messages and parameters are no activations */
        plan->machine.memory = (struct cost_list){0};
    enum status status = STATUS_OK;
    if (changes || !plan->programs.generate.found)
        status = found_resolve(plan, arena, diag);
    return status == STATUS_OK ? render_complete(plan, arena, diag) : status;
}

enum status render_schedule_plan(const struct plan *plan, struct arena *arena, struct chart *out,
                                 struct diag *diag)
{
    struct plan drawn = *plan;
    struct chart chart;
    bool has_times =
        plan->programs.times[ACTION_F].given || frontier_has_cost(&plan->programs.stages, COST_F);
    enum status status = render_fill(&drawn, has_times, arena, diag);
    if (status == STATUS_OK)
        status = pass_chart_make(&drawn, arena, &chart, diag);
    if (status != STATUS_OK)
        return status;
    chart.activation = frontier_has_bytes(&plan->programs.stages) ? 0 : ACTIVATION;
    chart.unit_ns = has_times ? 0 : UNIT_NS;
    *out = chart;
    return STATUS_OK;
}

/* ---- runs ------------------------------------------------------------------------------------ */

static bool is_import(const struct trace *trace)
{
    return trace->info.note && strcmp(trace->info.note, RUN_NOTE_IMPORTED) == 0;
}

/* The text of a plan of rank programs has this key at the beginning of a line. */
static bool keeps_programs(const struct trace *trace)
{
    const char *text = trace->info.plan_text;
    return text && (strstr(text, "\nprograms:") || strstr(text, "\ngenerate:"));
}

bool render_schedule_fits(const struct trace *trace)
{
    return trace->info.kind != RUN_WITNESS && (keeps_programs(trace) || is_import(trace)) &&
           stored_chart_has_passes(trace);
}

static enum status of_kept_plan(const struct trace *trace, struct plan *kept, struct arena *arena,
                                struct chart *out, struct diag *diag)
{
    struct plan plan = *kept;
    if (kept->form != FORM_PROGRAMS)
        return stored_chart_make(trace, NULL, ACTIVATION, arena, out, diag);
    bool has_bytes = frontier_has_bytes(&plan.programs.stages);
    enum status status = render_fill(&plan, true, arena, diag);
    if (status == STATUS_OK)
        status = stored_chart_make(trace, &plan, ACTIVATION, arena, out, diag);
    if (status == STATUS_OK)
        out->activation = has_bytes ? 0 : ACTIVATION;
    return status;
}

enum status render_schedule_run(const struct trace *trace, struct arena *arena, struct chart *out,
                                struct diag *diag)
{
    struct chart chart;
    struct plan kept;
    enum status status;
    if (keeps_programs(trace)) {
        status = plan_parse("the plan of the run", trace->info.plan_text,
                            strlen(trace->info.plan_text), &kept, diag);
        if (status != STATUS_OK)
            return status;
        status = of_kept_plan(trace, &kept, arena, &chart, diag);
        plan_fini(&kept);
    } else {
        status = stored_chart_make(trace, NULL, ACTIVATION, arena, &chart, diag);
        chart.activation = ACTIVATION;
    }
    if (status == STATUS_OK)
        *out = chart;
    return status;
}

/* ---- a part of a run ------------------------------------------------------------------------- */

enum { MAX_STEPS = 400000 /* that a picture takes through the machine */ };

/* The steps explain why streams were idle; a later part of a long run would need too many of them. */
static enum status add_stalls(struct store *store, struct trace *trace, struct diag *diag)
{
    int64_t first_ns, last_ns;
    enum status status = store_load_first_steps(store, trace, MAX_STEPS, diag);
    if (status != STATUS_OK || trace->step_count == 0)
        return status;
    trace_range(trace, &first_ns, &last_ns);
    if (trace->step_count == MAX_STEPS && trace->steps[MAX_STEPS - 1].time_ns < last_ns) {
        diag_note(diag,
                  "why streams were idle is not shown: the causes are found in the first %d steps "
                  "of a run, which end before this part",
                  MAX_STEPS);
        return STATUS_OK;
    }
    return stalls_add(trace, diag);
}

enum status render_run_load(struct store *store, int64_t run, const struct run_part *part,
                            struct arena *arena, struct trace *out, struct diag *diag)
{
    enum status status =
        part->has_time ? store_load_time(store, run, part->from_ns, part->to_ns, arena, out, diag)
                       : store_load(store, run, part->from, part->to, arena, out, diag);
    if (status == STATUS_OK && out->info.kind == RUN_WITNESS)
        return store_load_steps(store, out, diag);
    if (status == STATUS_OK && stalls_known(&out->info))
        return add_stalls(store, out, diag);
    return status;
}
