/* SPDX-License-Identifier: Apache-2.0 */
/* pass_chart.c - see pass_chart.h. */
#include "pass_chart.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert_index.h"
#include "base/sort.h"
#include "base/array.h"
#include "arrivals.h"

#include "plan/schedules/comms.h"
#include "plan/schedules/actions.h"
#include "plan/schedules/rank_memory.h"
#include "plan/schedules/parallel.h"
#include "predict.h"
#include "plan/keywords.h"
#include "plan/schedules/complete_lists.h"

/* A name of the trace, read once. */
struct name_reading {
    const char *name; /* interned */
    bool is_pass;
    struct action action;
};

struct stored_builder {
    const struct trace *trace;
    const struct plan *plan;
    struct arena *arena;
    struct chart chart;
    struct name_reading *readings; /* hash table of the names; a power of two */
    size_t reading_cap;
    int *rank_of;             /* of stages; -1: none */
    int stages, per_model;    /* stages; microbatches of a copy */
    size_t *caps;             /* of passes, per rank */
    struct arrivals arrivals; /* without cells: too many to be kept */
    enum span_kind kind;      /* of passes */
    int64_t start_ns;
};

enum { MOST_CELLS = 1 << 24 };

/* ---- names ----------------------------------------------------------------------------------- */

/* The spans that are passes: where a rank's schedule is kept, only those of schedules are. */
static enum span_kind kind_of_passes(const struct trace *trace)
{
    for (size_t i = 0; i < trace->span_count; i++)
        if (trace->spans[i].kind == SPAN_PASS)
            return SPAN_PASS;
    return SPAN_DEVICE;
}

/* NULL: no pass, or out of memory, as the arena knows. */
static const struct action *pass_chart_find_action(struct stored_builder *builder, const char *name)
{
    size_t at = ((uintptr_t)name >> 4) * 0x9e3779b97f4a7c15u >> 20 & (builder->reading_cap - 1);
    while (builder->readings[at].name && builder->readings[at].name != name)
        at = (at + 1) & (builder->reading_cap - 1);
    struct name_reading *reading = &builder->readings[at];
    if (!reading->name) {
        reading->name = name;
        reading->is_pass = pass_name_read(name, builder->arena, &reading->action);
    }
    return reading->is_pass ? &reading->action : NULL;
}

bool stored_chart_has_passes(const struct trace *trace)
{
    struct arena arena;
    struct action action;
    const enum span_kind kind = kind_of_passes(trace);
    bool found = false;
    arena_init(&arena, 0);
    for (size_t i = 0; i < trace->span_count && !found; i++)
        found = trace->spans[i].kind == kind && trace->spans[i].task &&
                pass_name_read(trace->spans[i].task, &arena, &action);
    arena_fini(&arena);
    return found;
}

/* ---- ranks and stages ------------------------------------------------------------------------ */

/* A pass without a stage is of that with the rank's number. */
static struct action staged(const struct action *action, int row)
{
    struct action out = *action;
    if (out.stage == PASS_STAGE_UNNAMED)
        out.stage = row;
    return out;
}

/* The row of a rank; -1: it is of another replica. */
static int pass_chart_row_of(const struct stored_builder *builder, int rank)
{
    int replica = 0, row = rank;
    if (builder->plan)
        parallel_place(&builder->plan->programs.parallel, builder->chart.rank_count, rank, &replica,
                       &row);
    return replica == 0 && row < builder->chart.rank_count ? row : -1;
}

/* "0F3" on rank 1 puts stage 0 there. */
static enum status place_stages(struct stored_builder *builder, struct diag *diag)
{
    struct chart *chart = &builder->chart;
    builder->rank_of = ARENA_ARRAY(builder->arena, PASS_MOST_STAGES, int);
    if (!builder->rank_of)
        return diag_no_memory(diag);
    for (int s = 0; s < PASS_MOST_STAGES; s++)
        builder->rank_of[s] = -1;
    for (size_t i = 0; i < builder->trace->span_count; i++) {
        const struct trace_span *span = &builder->trace->spans[i];
        const struct action *parts, *named = span->kind == builder->kind && span->task
                                                 ? pass_chart_find_action(builder, span->task)
                                                 : NULL;
        int row = pass_chart_row_of(builder, builder->trace->agents[span->agent].rank);
        if (!named || row < 0)
            continue;
        const struct action action = staged(named, row);
        size_t count = comms_parts(&action, &parts);
        for (size_t k = 0; k < count; k++) {
            builder->rank_of[parts[k].stage] = row;
            builder->stages =
                parts[k].stage >= builder->stages ? parts[k].stage + 1 : builder->stages;
            builder->per_model = parts[k].microbatch >= builder->per_model ? parts[k].microbatch + 1
                                                                           : builder->per_model;
        }
    }
    if (builder->arena->failed)
        return diag_no_memory(diag);
    if (builder->stages == 0)
        return diag_error(diag, STATUS_INPUT,
                          "nothing to draw: no work of the run is named as a pass, such as 0F3");
    for (int s = 0; s < builder->stages; s++)
        if (builder->rank_of[s] >= 0 && arrivals_chunk(builder->rank_of, s) >= chart->chunks)
            chart->chunks = arrivals_chunk(builder->rank_of, s) + 1;
    int copies = builder->plan ? complete_lists_copies(builder->plan) : 1;
    chart->copies = copies > 1;
    chart->microbatches = builder->per_model * copies;
    return STATUS_OK;
}

/* ---- passes and messages --------------------------------------------------------------------- */

/* A pass with collectives of a stage in it consists of several works behind one another. */
static bool pass_chart_is_same(const struct chart_pass *a, const struct chart_pass *b)
{
    return a->kind == b->kind && a->chunk == b->chunk && a->microbatch == b->microbatch &&
           a->other_chunk == b->other_chunk && a->other_microbatch == b->other_microbatch;
}

static bool pass_chart_add_pass(struct stored_builder *builder, int row,
                                const struct chart_pass *pass)
{
    assert(row >= 0 && row < builder->chart.rank_count);
    struct chart_rank *rank = &builder->chart.ranks[row];
    struct chart_pass *last = rank->count ? &rank->passes[rank->count - 1] : NULL;
    if (last && pass_chart_is_same(last, pass)) {
        last->end_ns = pass->end_ns;
        return true;
    }
    if (!ARENA_GROW(builder->arena, rank->passes, rank->count, builder->caps[row]))
        return false;
    rank->passes[rank->count++] = *pass;
    return true;
}

static bool pass_chart_take_pass(struct stored_builder *builder, int row,
                                 const struct trace_span *span, const struct action *named)
{
    const struct action *parts, action = staged(named, row);
    size_t count = comms_parts(&action, &parts);
    struct chart_pass pass = {.kind = CHART_OVERLAP,
                              .chunk = arrivals_chunk(builder->rank_of, parts->stage),
                              .microbatch = parts->microbatch,
                              .start_ns = span->start_ns,
                              .end_ns = span->end_ns};
    for (size_t k = 0; k < count; k++)
        arrivals_note(&builder->arrivals, parts[k].kind, parts[k].stage, parts[k].microbatch,
                      span->end_ns);
    if (count == 1)
        (void)arrivals_kind(parts->kind, &pass.kind); /* as read_name has seen */
    if (count == 2) {
        pass.other_chunk = arrivals_chunk(builder->rank_of, parts[1].stage);
        pass.other_microbatch = parts[1].microbatch;
    }
    return pass_chart_add_pass(builder, row, &pass);
}

/* "receive F0@1 from rank 0" ends when the message has come. */
static void pass_chart_take_message(struct stored_builder *builder, const struct trace_span *span)
{
    char kind;
    int microbatch, stage;
    if (sscanf(span->task, "receive %c%d@%d from", &kind, &microbatch, &stage) != 3 ||
        (kind != 'F' && kind != 'B'))
        return;
    arrivals_note(&builder->arrivals, kind == 'F' ? ACTION_RECV_F : ACTION_RECV_B, stage,
                  microbatch, span->end_ns);
}

static bool pass_chart_take_span(struct stored_builder *builder, const struct trace_span *span)
{
    int row = pass_chart_row_of(builder, builder->trace->agents[span->agent].rank);
    if (row < 0 || span->kind != builder->kind || !span->task)
        return true;
    const struct action *action = pass_chart_find_action(builder, span->task);
    if (action)
        return pass_chart_take_pass(builder, row, span, action);
    if (strcmp(span->task, "optimizer") == 0)
        return pass_chart_add_pass(builder, row,
                                   &(struct chart_pass){.kind = CHART_OPTIMIZER,
                                                        .start_ns = span->start_ns,
                                                        .end_ns = span->end_ns});
    pass_chart_take_message(builder, span);
    return true;
}

static int pass_chart_compare_passes(const void *left, const void *right)
{
    const struct chart_pass *a = left, *b = right;
    return compare_i64(a->start_ns, b->start_ns);
}

/* Streams of a rank follow one another in the trace. */
static bool pass_chart_take_spans(struct stored_builder *builder)
{
    size_t cells = (size_t)builder->stages * (size_t)builder->per_model;
    builder->caps = ARENA_ARRAY(builder->arena, (size_t)builder->chart.rank_count, size_t);
    if (cells <= MOST_CELLS && !arrivals_open(&builder->arrivals, builder->rank_of, builder->stages,
                                              builder->per_model, builder->arena))
        return false;
    for (size_t i = 0; builder->caps && i < builder->trace->span_count; i++)
        if (!pass_chart_take_span(builder, &builder->trace->spans[i]))
            return false;
    for (int r = 0; r < builder->chart.rank_count; r++)
        SORT(builder->chart.ranks[r].passes, builder->chart.ranks[r].count,
             pass_chart_compare_passes);
    return !builder->arena->failed;
}

/* ---- time ------------------------------------------------------------------------------------ */

static void begin_at_zero(struct stored_builder *builder)
{
    struct chart *chart = &builder->chart;
    builder->start_ns = INT64_MAX;
    for (int r = 0; r < chart->rank_count; r++)
        if (chart->ranks[r].count && chart->ranks[r].passes[0].start_ns < builder->start_ns)
            builder->start_ns = chart->ranks[r].passes[0].start_ns;
    chart->end_ns = 1;
    for (int r = 0; r < chart->rank_count; r++)
        for (size_t i = 0; i < chart->ranks[r].count; i++) {
            struct chart_pass *pass = &chart->ranks[r].passes[i];
            pass->start_ns -= builder->start_ns;
            pass->end_ns -= builder->start_ns;
            chart->end_ns = max_i64(chart->end_ns, pass->end_ns);
        }
}

/* ---- memory ---------------------------------------------------------------------------------- */

static bool add_level(struct stored_builder *builder, struct chart_rank *rank, size_t *cap,
                      int64_t time_ns, int64_t bytes)
{
    if (!ARENA_GROW(builder->arena, rank->levels, rank->level_count, *cap))
        return false;
    rank->levels[rank->level_count++] = (struct chart_level){time_ns, bytes};
    return true;
}

/* The memory of the list at each pass; a run that is cut off has the first passes of the list. */
static bool take_list(struct stored_builder *builder, struct chart_rank *rank,
                      const struct rank_program *list, const struct rank_memory *memory)
{
    size_t at = 0, cap = 0;
    int64_t most = memory->fixed;
    bool kept = add_level(builder, rank, &cap, 0, memory->fixed);
    for (size_t i = 0; kept && i < list->count && i < memory->count; i++) {
        const struct action *parts;
        comms_parts(&list->actions[i], &parts);
        most = max_i64(most, memory->during[i]);
        if (!comms_is_pass(parts))
            continue;
        while (at < rank->count && rank->passes[at].kind == CHART_OPTIMIZER)
            at++;
        if (at == rank->count)
            break;
        kept = add_level(builder, rank, &cap, rank->passes[at].start_ns, most) &&
               add_level(builder, rank, &cap, rank->passes[at].end_ns, memory->after[i]);
        most = memory->after[i];
        at++;
    }
    return kept;
}

static enum status take_lists(struct stored_builder *builder, struct diag *diag)
{
    const struct plan *plan = builder->plan;
    struct rank_memory *memory;
    int count;
    enum status status = rank_memory_find(plan, builder->arena, &memory, &count, diag);
    for (int r = 0; status == STATUS_OK && r < count && r < builder->chart.rank_count; r++)
        if (!take_list(builder, &builder->chart.ranks[r], &plan->programs.ranks[r], &memory[r]))
            status = diag_no_memory(diag);
    return status;
}

/* An activation from the start of F to the end of B or W. */
static bool count_activations(struct stored_builder *builder, struct chart_rank *rank,
                              int64_t activation)
{
    size_t cap = 0;
    int64_t held = 0;
    bool kept = add_level(builder, rank, &cap, 0, 0);
    for (size_t i = 0; kept && i < rank->count; i++) {
        const struct chart_pass *pass = &rank->passes[i];
        if (pass->kind == CHART_F || pass->kind == CHART_OVERLAP)
            kept = add_level(builder, rank, &cap, pass->start_ns, held += activation);
        if (pass->kind == CHART_B || pass->kind == CHART_W || pass->kind == CHART_OVERLAP)
            kept = kept && add_level(builder, rank, &cap, pass->end_ns, held -= activation);
    }
    return kept;
}

static enum status pass_chart_take_memory(struct stored_builder *builder, int64_t activation,
                                          struct diag *diag)
{
    if (builder->plan)
        return take_lists(builder, diag);
    for (int r = 0; r < builder->chart.rank_count; r++)
        if (!count_activations(builder, &builder->chart.ranks[r], activation))
            return diag_no_memory(diag);
    return STATUS_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum status prepare_stored(struct stored_builder *builder, struct diag *diag)
{
    const struct trace *trace = builder->trace;
    struct chart *chart = &builder->chart;
    if (builder->plan)
        chart->rank_count = builder->plan->ranks;
    for (size_t i = 0; !builder->plan && i < trace->agent_count; i++)
        if (trace->agents[i].rank >= chart->rank_count)
            chart->rank_count = trace->agents[i].rank + 1;
    builder->reading_cap = 64;
    while (builder->reading_cap < 2 * trace->interned_count + 2)
        builder->reading_cap *= 2;
    builder->readings = ARENA_ARRAY(builder->arena, builder->reading_cap, struct name_reading);
    chart->ranks = ARENA_ARRAY(builder->arena, (size_t)chart->rank_count + 1, struct chart_rank);
    return builder->readings && chart->ranks ? STATUS_OK : diag_no_memory(diag);
}

/* A row without a pass looks idle: of an import it may be a rank that has no such annotations. */
static void note_empty_rows(const struct chart *chart, struct diag *diag)
{
    int empty = 0, first = -1;
    for (int r = chart->rank_count; r-- > 0;)
        if (chart->ranks[r].count == 0) {
            first = r;
            empty++;
        }
    if (empty == 1)
        diag_note(diag, "rank %d has no work that is named as a pass: its row is empty", first);
    else if (empty > 1)
        diag_note(diag,
                  "%d of %d ranks, rank %d first, have no work that is named as a pass: their rows "
                  "are empty",
                  empty, chart->rank_count, first);
}

enum status stored_chart_make(const struct trace *trace, const struct plan *plan,
                              int64_t activation, struct arena *arena, struct chart *out,
                              struct diag *diag)
{
    struct stored_builder builder = {
        .trace = trace, .plan = plan, .arena = arena, .kind = kind_of_passes(trace)};
    builder.chart.title = trace->info.plan_name ? trace->info.plan_name : "";
    /* "measured on host"; what follows the device's kind is left out. */
    const struct run_info *info = &trace->info;
    const char *device = info->device ? info->device : "";
    builder.chart.origin = arena_printf(arena, "%s%s%.*s", run_kind_text(info->kind),
                                        *device ? " on " : "", (int)strcspn(device, ":"), device);
    builder.chart.limit_bytes = plan ? machine_same_memory(&plan->machine) : 0;
    enum status status = prepare_stored(&builder, diag);
    if (status == STATUS_OK)
        status = place_stages(&builder, diag);
    if (status == STATUS_OK && !pass_chart_take_spans(&builder))
        status = diag_no_memory(diag);
    if (status != STATUS_OK)
        return status;
    note_empty_rows(&builder.chart, diag);
    begin_at_zero(&builder);
    if (builder.arrivals.cells &&
        !arrivals_messages(&builder.arrivals, builder.start_ns, arena, &builder.chart))
        return diag_no_memory(diag);
    status = pass_chart_take_memory(&builder, activation, diag);
    if (status != STATUS_OK)
        return status;
    builder.chart.bubble = chart_bubble(&builder.chart);
    *out = builder.chart;
    return STATUS_OK;
}

/* ---- a predicted run ------------------------------------------------------------------------- */

struct chart_watch {
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
static void extend_pass(struct chart_rank *rank, size_t *known, const struct chart_pass *pass)
{
    assert(*known <= rank->count);
    if (*known == 0) {
        rank->passes[rank->count] = *pass;
        *known = ++rank->count;
    } else if (pass->end_ns > rank->passes[*known - 1].end_ns)
        rank->passes[*known - 1].end_ns = pass->end_ns;
}

/* Collectives beside passes are on streams of their own; the first stream of a rank program is that of the passes. */
static bool pass_chart_is_compute(const struct chart_watch *watch, const struct op *op)
{
    return op->stream >= 0 && watch->program->streams[op->stream].plan_stream == 0;
}

static void pass_chart_note_pass(struct chart_watch *watch, int rank, uint32_t listed,
                                 const struct simulate_span *span)
{
    const struct plan *lowered = watch->program->plan;
    const struct listed_action *part = &lowered->listed[listed - 1],
                               *other = arrivals_second(lowered, listed);
    struct chart_pass pass = {.start_ns = span->start_ns, .end_ns = span->end_ns};
    if (part->microbatch < 0)
        return;
    arrivals_note(&watch->arrivals, part->kind, part->stage, part->microbatch, span->end_ns);
    if (!arrivals_kind(part->kind, &pass.kind) ||
        !pass_chart_is_compute(watch, &watch->program->ops[span->op]))
        return;
    pass.chunk = arrivals_chunk(watch->map.rank_of, part->stage);
    pass.microbatch = part->microbatch;
    if (other) {
        arrivals_note(&watch->arrivals, other->kind, other->stage, other->microbatch, span->end_ns);
        pass.kind = CHART_OVERLAP;
        pass.other_chunk = arrivals_chunk(watch->map.rank_of, other->stage);
        pass.other_microbatch = other->microbatch;
    }
    ASSERT_INDEX(rank, watch->chart->rank_count);
    extend_pass(&watch->chart->ranks[rank], &watch->pass_of[listed], &pass);
}

static bool pass_chart_watch_work(void *context, const struct simulate_span *span)
{
    struct chart_watch *watch = context;
    const struct program *p = watch->program;
    const struct op *op = &p->ops[span->op];
    int replica, rank;
    parallel_place(&watch->plan->programs.parallel, watch->chart->rank_count,
                   p->agents[span->agent].rank, &replica, &rank);
    if (span->kind != SIMULATE_DEVICE || replica != 0)
        return true;
    if (op->kind == OP_GROUP) {
        for (int i = 0; i < op->part_count; i++)
            if (p->parts[op->part_first + i].listed)
                pass_chart_note_pass(watch, rank, p->parts[op->part_first + i].listed, span);
        if (op->listed && !p->parts[op->part_first].listed) /* of a pass */
            pass_chart_note_pass(watch, rank, op->listed, span);
    } else if (op->listed)
        pass_chart_note_pass(watch, rank, op->listed, span);
    else if (op->kind == OP_LAUNCH)
        extend_pass(&watch->chart->ranks[rank], &watch->optimizer_of[rank],
                    &(struct chart_pass){.kind = CHART_OPTIMIZER,
                                         .start_ns = span->start_ns,
                                         .end_ns = span->end_ns});
    return true;
}

static enum status begin_watch(void *context, const struct program *program, struct diag *diag)
{
    struct chart_watch *watch = context;
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

static enum status take_prediction(struct chart_watch *watch, const struct prediction *prediction,
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

static enum status prepare_watch(const struct plan *plan, struct arena *arena,
                                 struct chart_watch *watch, struct diag *diag)
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
        chart->chunks = max_int(chart->chunks, arrivals_chunk(watch->map.rank_of, s) + 1);
    }
    bool opened = arrivals_open(&watch->arrivals, watch->map.rank_of, watch->map.stages,
                                watch->map.microbatches, arena);
    return !opened || arena->failed ? diag_no_memory(diag) : STATUS_OK;
}

enum status pass_chart_make(const struct plan *plan, struct arena *arena, struct chart *out,
                            struct diag *diag)
{
    struct chart chart = {.title = plan->name, .limit_bytes = machine_same_memory(&plan->machine)};
    struct chart_watch watch = {.plan = plan, .arena = arena, .chart = &chart};
    struct prediction prediction;
    const struct simulate_observer observer = {.context = &watch, .work = pass_chart_watch_work};
    const struct predict_options options = {.program = {.driver = DRIVER_NONE, .iterations = 1},
                                            .seed = 1,
                                            .replications = 1,
                                            .threads = 1,
                                            .exposed = EXPOSED_NEVER,
                                            .observer = &observer,
                                            .begin = begin_watch};
    enum status status = prepare_watch(plan, arena, &watch, diag);
    if (status != STATUS_OK)
        return status;
    /* begin_watch has the observer's context */
    status = predict(plan, &options, &prediction, diag);
    if (status != STATUS_OK)
        return status;
    status = take_prediction(&watch, &prediction, arena, diag);
    prediction_fini(&prediction);
    if (chart.message_count > 0)
        chart.channel = keywords_fifo[plan->programs.fifo];
    if (status == STATUS_OK)
        *out = chart;
    return status;
}
