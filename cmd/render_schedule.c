/* render_schedule.c - see render_schedule.h. */
#include "render_schedule.h"

#include "improve/frontier_costs.h"
#include "plan/rank_programs.h"
#include "sim/predict/pass_chart.h"

enum { UNIT_NS = 1000 * 1000, ACTIVATION = 1 << 20 };

/* Lists are completed once: some schedules take long to find. */
static enum status complete(struct app *app, struct plan *plan)
{
    struct programs *programs = &plan->programs;
    struct rank_program *ranks;
    int count;
    enum status status = rank_programs_complete(plan, &app->arena, &ranks, &count, &app->diag);
    if (status != STATUS_OK)
        return status;
    programs->copies = rank_programs_copies(plan);
    programs->generate.given = false;
    programs->ranks = ranks;
    programs->has_comms = true;
    plan->ranks = count;
    return STATUS_OK;
}

enum status render_schedule(struct app *app, const struct plan *plan,
                            const struct render_schedule *wanted)
{
    struct plan drawn = *plan;
    struct chart chart;
    bool has_times =
        plan->programs.times[ACTION_F].given || frontier_has_cost(&plan->programs.stages, COST_F);
    bool has_bytes = frontier_has_bytes(&plan->programs.stages);
    if (!frontier_fill_costs(&drawn.programs, !has_times, has_bytes ? 0 : ACTIVATION, &app->arena))
        return diag_no_memory(&app->diag);
    if (!has_bytes) /* messages and parameters are no activations */
        drawn.machine.memory_bytes = 0;
    enum status status = complete(app, &drawn);
    if (status == STATUS_OK)
        status = pass_chart_make(&drawn, &app->arena, &chart, &app->diag);
    if (status != STATUS_OK)
        return status;
    if (wanted->title)
        chart.title = wanted->title;
    chart.activation = has_bytes ? 0 : ACTIVATION;
    chart.unit_ns = has_times ? 0 : UNIT_NS;
    return schedule_picture_render(&chart, &wanted->picture, wanted->path, &app->diag);
}
