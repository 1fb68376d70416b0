/* SPDX-License-Identifier: Apache-2.0 */
/* pass_chart.c - see pass_chart.h. */
#include "pass_chart.h"

#include "arrivals.h"
#include "predict.h"

#include "plan/schedules/comms.h"
#include "plan/keywords.h"
#include "plan/schedules/parallel.h"
#include "machine/lower/rank_programs.h"

struct watch {
    const struct plan *plan;
    const struct program *program;
    struct rank_program *lists;
    struct stage_map map;
    struct chart *chart;
    struct arrivals arrivals;
    struct arena *arena;
    size_t *pass_of;      /* of those in plan->listed: 1 + the pass of its rank; 0: none yet */
    size_t *optimizer_of; /* per rank, likewise */
};

/* ---- while it runs --------------------------------------------------------------------------- */

/* A pass with collectives of a stage in it consists of several works, and so does an optimizer. */
static void add_pass(struct chart_rank *rank, size_t *known, const struct chart_pass *pass)
{
    if (*known == 0) {
        rank->passes[rank->count] = *pass;
        *known = ++rank->count;
    } else if (pass->end_ns > rank->passes[*known - 1].end_ns)
        rank->passes[*known - 1].end_ns = pass->end_ns;
}

/* Collectives beside passes are on streams of their own; the first stream of a rank program is that of the passes. */
static bool is_compute(const struct watch *watch, const struct op *op)
{
    return op->stream >= 0 && watch->program->streams[op->stream].plan_stream == 0;
}

static void note(struct watch *watch, int rank, uint32_t listed, const struct simulate_span *span)
{
    const struct plan *lowered = watch->program->plan;
    const struct listed_action *part = &lowered->listed[listed - 1],
                               *other = arrivals_second(lowered, listed);
    struct chart_pass pass = {.start_ns = span->start_ns, .end_ns = span->end_ns};
    if (part->microbatch < 0)
        return;
    arrivals_note(&watch->arrivals, part->kind, part->stage, part->microbatch, span->end_ns);
    if (!arrivals_kind(part->kind, &pass.kind) ||
        !is_compute(watch, &watch->program->ops[span->op]))
        return;
    pass.chunk = arrivals_chunk(watch->map.rank_of, part->stage);
    pass.microbatch = part->microbatch;
    if (other) {
        arrivals_note(&watch->arrivals, other->kind, other->stage, other->microbatch, span->end_ns);
        pass.kind = CHART_OVERLAP;
        pass.other_chunk = arrivals_chunk(watch->map.rank_of, other->stage);
        pass.other_microbatch = other->microbatch;
    }
    add_pass(&watch->chart->ranks[rank], &watch->pass_of[listed], &pass);
}

static bool watch_work(void *context, const struct simulate_span *span)
{
    struct watch *watch = context;
    const struct program *p = watch->program;
    const struct op *op = &p->ops[span->op];
    int replica, rank;
    parallel_place(watch->plan, watch->chart->rank_count, p->agents[span->agent].rank, &replica,
                   &rank);
    if (span->kind != SIMULATE_DEVICE || replica != 0)
        return true;
    if (op->kind == OP_GROUP) {
        for (int i = 0; i < op->part_count; i++)
            if (p->parts[op->part_first + i].listed)
                note(watch, rank, p->parts[op->part_first + i].listed, span);
        if (op->listed && !p->parts[op->part_first].listed) /* of a pass */
            note(watch, rank, op->listed, span);
    } else if (op->listed)
        note(watch, rank, op->listed, span);
    else if (op->kind == OP_LAUNCH)
        add_pass(&watch->chart->ranks[rank], &watch->optimizer_of[rank],
                 &(struct chart_pass){
                     .kind = CHART_OPTIMIZER, .start_ns = span->start_ns, .end_ns = span->end_ns});
    return true;
}

static enum status begin(void *context, const struct program *program, struct diag *diag)
{
    struct watch *watch = context;
    watch->program = program;
    watch->pass_of = ARENA_ARRAY(watch->arena, program->plan->listed_count + 1, size_t);
    return watch->pass_of ? STATUS_OK : diag_no_memory(diag);
}

/* ---- afterwards ------------------------------------------------------------------------------ */

static bool take_levels(const struct pipeline_figures *figures, struct chart *chart,
                        struct arena *arena)
{
    for (int r = 0; r < chart->rank_count; r++) {
        const struct in_flight *held = &figures->ranks[r].held;
        struct chart_rank *rank = &chart->ranks[r];
        rank->levels = ARENA_ARRAY(arena, (size_t)held->count + 1, struct chart_level);
        if (!rank->levels)
            return false;
        rank->levels[rank->level_count++] =
            (struct chart_level){.bytes = figures->ranks[r].memory.fixed};
        for (int i = 0; i < held->count; i++)
            rank->levels[rank->level_count++] =
                (struct chart_level){held->points[i].time_ns, held->points[i].bytes};
    }
    return true;
}

static enum status take(struct watch *watch, const struct prediction *prediction,
                        struct arena *arena, struct diag *diag)
{
    struct chart *chart = watch->chart;
    const struct pipeline_figures *figures = prediction->pipeline;
    if (prediction->blocked_count)
        return diag_error(diag, STATUS_VIOLATED,
                          "the schedule hangs: it has no end that could be drawn");
    chart->end_ns = prediction->makespan_ns > 1 ? (int64_t)prediction->makespan_ns : 1;
    chart->bubble = chart_bubble(chart);
    return arrivals_messages(&watch->arrivals, 0, arena, chart) &&
                   take_levels(figures, chart, arena)
               ? STATUS_OK
               : diag_no_memory(diag);
}

static enum status prepare(const struct plan *plan, struct arena *arena, struct watch *watch,
                           struct diag *diag)
{
    struct chart *chart = watch->chart;
    enum status status = complete_lists_fill(plan, arena, &watch->lists, &chart->rank_count, diag);
    if (status == STATUS_OK)
        status = comms_map_stages(arena, watch->lists, chart->rank_count,
                                  complete_lists_copies(plan), &watch->map, diag);
    if (status != STATUS_OK)
        return status;
    watch->optimizer_of = ARENA_ARRAY(arena, (size_t)chart->rank_count, size_t);
    chart->ranks = ARENA_ARRAY(arena, (size_t)chart->rank_count, struct chart_rank);
    for (int r = 0; chart->ranks && r < chart->rank_count; r++)
        chart->ranks[r].passes = ARENA_ARRAY(arena, watch->lists[r].count + 1, struct chart_pass);
    chart->copies = complete_lists_copies(plan) > 1;
    chart->microbatches = watch->map.microbatches * complete_lists_copies(plan);
    for (int s = 0; s < watch->map.stages; s++) {
        int chunk = arrivals_chunk(watch->map.rank_of, s);
        chart->chunks = chunk + 1 > chart->chunks ? chunk + 1 : chart->chunks;
    }
    bool opened = arrivals_open(&watch->arrivals, watch->map.rank_of, watch->map.stages,
                                watch->map.microbatches, arena);
    return !opened || arena->failed ? diag_no_memory(diag) : STATUS_OK;
}

enum status pass_chart_make(const struct plan *plan, struct arena *arena, struct chart *out,
                            struct diag *diag)
{
    struct chart chart = {.title = plan->name, .limit_bytes = machine_same_memory(&plan->machine)};
    struct watch watch = {.plan = plan, .arena = arena, .chart = &chart};
    struct prediction prediction;
    const struct simulate_observer observer = {.context = &watch, .work = watch_work};
    const struct predict_options options = {.program = {.driver = DRIVER_NONE, .iterations = 1},
                                            .seed = 1,
                                            .replications = 1,
                                            .threads = 1,
                                            .exposed = EXPOSED_NEVER,
                                            .observer = &observer,
                                            .begin = begin};
    enum status status = prepare(plan, arena, &watch, diag);
    if (status != STATUS_OK)
        return status;
    /* `begin` has the observer's context */
    status = predict(plan, &options, &prediction, diag);
    if (status != STATUS_OK)
        return status;
    status = take(&watch, &prediction, arena, diag);
    prediction_fini(&prediction);
    if (chart.message_count > 0)
        chart.channel = keywords_fifo[plan->programs.fifo];
    if (status == STATUS_OK)
        *out = chart;
    return status;
}
