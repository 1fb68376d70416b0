/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline_figures.c - see pipeline_figures.h.
 *
 * The watch keeps when each action of the lists began and ended. Afterwards the passes of a rank are gone through in
 * their order; in front of each, the time since the one before is cut at the end of the pass that its message comes
 * from, and at the beginning and the end of that message.
 */
#include "pipeline_figures.h"
#include "base/sort.h"

#include <stdlib.h>
#include <string.h>

#include "plan/schedules/comms.h"
#include "plan/schedules/parallel.h"
#include "machine/straight.h"
#include "base/list_key.h"
#include "plan/schedules/complete_lists.h"

/* Of an action, or of the last of what it stands for. */
struct when {
    int64_t start_ns, end_ns;
    bool done;
};

struct pipeline_watch {
    const struct plan *plan;
    const struct program *program;
    const struct simulate_observer *inner;
    struct simulate_observer observer;
    struct arena arena;
    const struct rank_program *lists; /* the program's, as is the map */
    int rank_count;
    int replica; /* the pipeline that is watched: the first in which no list is another */
    struct stage_map map;
    struct rank_memory *memory;
    struct when *
        *when; /* per rank and action; of programs that leave no choice all ranks share one place */
    uint32_t *place; /* of those in plan->listed: in the list of their rank, from 1; 0: in none */
    int64_t *optimizer_end_ns; /* per rank; 0: none */
    int64_t *optimizer_ns;
    /* per stage and microbatch: when its passes ended, and when their messages went */
    struct pipeline_figures_cell {
        int64_t forward_end_ns, backward_end_ns;
        struct when input, gradient;
    } * cells;
};

const char *pipeline_wait_key(enum pipeline_wait wait)
{
    static const char *const keys[] = {WAIT_LIST(LIST_KEY)};
    return keys[wait];
}

/* ---- while it runs --------------------------------------------------------------------------- */

static void pipeline_figures_note(struct pipeline_watch *watch, uint32_t listed, int64_t start_ns,
                                  int64_t end_ns)
{
    const struct listed_action *action = &watch->program->plan->listed[listed - 1];
    if (watch->place[listed - 1] == 0)
        return;
    struct when *when = &watch->when[action->row - 1][watch->place[listed - 1] - 1];
    *when = (struct when){when->done ? when->start_ns : start_ns, end_ns, true};
}

static bool pipeline_figures_watch_work(void *context, const struct simulate_span *span)
{
    struct pipeline_watch *watch = context;
    const struct program *p = watch->program;
    const struct op *op = &p->ops[span->op];
    const struct simulate_observer *inner = watch->inner;
    int replica, rank;
    parallel_place(&watch->plan->programs.parallel, watch->rank_count,
                   program_stood_for(p, p->agents[span->agent].rank), &replica, &rank);
    if (span->kind == SIMULATE_DEVICE && replica == watch->replica) {
        if (op->kind == OP_GROUP) {
            /* A group waits for its other end first: it moves for as long as it takes. */
            int64_t start_ns = span->end_ns - op->time_ns;
            if (!watch->program->parts[op->part_first].listed) /* of a pass */
                pipeline_figures_note(watch, op->listed, span->start_ns, span->end_ns);
            else
                for (int i = 0; i < op->part_count; i++)
                    pipeline_figures_note(watch, watch->program->parts[op->part_first + i].listed,
                                          start_ns, span->end_ns);
        } else if (op->listed)
            pipeline_figures_note(watch, op->listed, span->start_ns, span->end_ns);
        else if (op->kind == OP_LAUNCH) {
            watch->optimizer_end_ns[rank] = span->end_ns;
            watch->optimizer_ns[rank] = span->end_ns - span->start_ns;
        }
    }
    return !inner || !inner->work || inner->work(inner->context, span);
}

static bool pipeline_figures_watch_span(void *context, const struct simulate_span *span)
{
    const struct simulate_observer *inner = ((struct pipeline_watch *)context)->inner;
    return inner->span(inner->context, span);
}

static bool pipeline_figures_watch_step(void *context, int64_t time_ns,
                                        struct transition transition, const struct effect *effect)
{
    const struct simulate_observer *inner = ((struct pipeline_watch *)context)->inner;
    return inner->step(inner->context, time_ns, transition, effect);
}

static bool pipeline_figures_watch_progress(void *context, int64_t iterations, int64_t time_ns)
{
    const struct simulate_observer *inner = ((struct pipeline_watch *)context)->inner;
    return inner->progress(inner->context, iterations, time_ns);
}

static bool pipeline_figures_is_listed(const struct listed_action *listed, int rank,
                                       const struct action *action)
{
    return listed->row == rank + 1 && listed->kind == action->kind &&
           listed->stage == action->stage && listed->microbatch == action->microbatch;
}

/* Lowering has listed the actions rank by rank in their order, each part of a composite, with others between them. */
static void pipeline_figures_find_places(struct pipeline_watch *watch)
{
    enum { MOST_BETWEEN = 64 };
    const struct plan *lowered = watch->program->plan;
    size_t listed = 0;
    for (int rank = 0; rank < watch->rank_count; rank++)
        for (size_t i = 0; i < watch->lists[rank].count; i++) {
            const struct action *parts;
            size_t count = comms_parts(&watch->lists[rank].actions[i], &parts);
            for (size_t k = 0; k < count; k++) {
                size_t at = listed, end = listed + MOST_BETWEEN;
                while (at < lowered->listed_count && at < end &&
                       !pipeline_figures_is_listed(&lowered->listed[at], rank, &parts[k]))
                    at++;
                if (at == lowered->listed_count || at == end)
                    continue;
                watch->place[at] = (uint32_t)i + 1;
                listed = at + 1;
            }
        }
}

/* The dates of a rank; of programs that leave no choice they are made when they are wanted. */
static const struct when *dates_of(const struct pipeline_watch *watch, int rank)
{
    const struct straight *graph = watch->program->straight;
    struct when *when = watch->when[rank];
    if (!graph)
        return when;
    memset(when, 0, watch->lists[rank].count * sizeof *when);
    for (int s = graph->rank_first[rank]; s < graph->rank_first[rank + 1]; s++)
        for (uint32_t i = graph->streams[s].first; i < graph->streams[s].end; i++) {
            const struct straight_step *step = &graph->steps[i];
            const struct when at = {step->end_ns - straight_time(graph, step), step->end_ns, true};
            when[step->action] = at;
            for (uint32_t m = step[0].first_message; m < step[1].first_message; m++)
                when[graph->messages[m].action] = at;
        }
    return when;
}

static bool pipeline_figures_make_tables(struct pipeline_watch *watch)
{
    struct arena *arena = &watch->arena;
    size_t count = (size_t)watch->rank_count;
    watch->when = ARENA_ARRAY(arena, count, struct when *);
    watch->optimizer_end_ns = ARENA_ARRAY(arena, count, int64_t);
    watch->optimizer_ns = ARENA_ARRAY(arena, count, int64_t);
    watch->cells =
        ARENA_ARRAY(arena, (size_t)watch->map.stages * (size_t)watch->map.microbatches + 1,
                    struct pipeline_figures_cell);
    size_t most = 0;
    for (size_t rank = 0; rank < count; rank++)
        most = max_size(most, watch->lists[rank].count);
    for (size_t rank = 0; watch->when && rank < count; rank++)
        watch->when[rank] = rank > 0 && watch->program->straight
                                ? watch->when[0]
                                : ARENA_ARRAY(arena, most + 1, struct when);
    watch->place = ARENA_ARRAY(arena, watch->program->plan->listed_count + 1, uint32_t);
    if (!arena->failed)
        pipeline_figures_find_places(watch);
    return !arena->failed;
}

static int find_replica(const struct plan *plan, int ranks)
{
    const struct parallel_spec *spec = &plan->programs.parallel;
    for (int replica = 0; replica < plan_replicas(plan); replica++) {
        bool alike = true;
        for (size_t i = 0; i < spec->differing_count; i++) {
            int of, own;
            parallel_place(&plan->programs.parallel, ranks, spec->differing[i].rank, &of, &own);
            alike &= of != replica;
        }
        if (alike)
            return replica;
    }
    return 0;
}

struct pipeline_watch *pipeline_watch_open(const struct plan *plan, const struct program *program,
                                           const struct simulate_observer *inner, struct diag *diag)
{
    struct pipeline_watch *watch = calloc(1, sizeof *watch);
    if (!watch) {
        diag_no_memory(diag);
        return NULL;
    }
    *watch = (struct pipeline_watch){.plan = plan, .program = program, .inner = inner};
    watch->observer = (struct simulate_observer){
        .context = watch,
        .work = pipeline_figures_watch_work,
        .span = inner && inner->span ? pipeline_figures_watch_span : NULL,
        .progress = inner && inner->progress ? pipeline_figures_watch_progress : NULL,
        .step = inner && inner->step ? pipeline_figures_watch_step : NULL};
    arena_init(&watch->arena, 0);
    watch->lists = program->lists->ranks;
    watch->rank_count = program->lists->rank_count;
    watch->map = program->lists->map;
    enum status status =
        rank_memory_of_complete(plan, program->lists, &watch->arena, &watch->memory, diag);
    if (status == STATUS_OK)
        watch->replica = find_replica(plan, watch->rank_count);
    if (status == STATUS_OK && !pipeline_figures_make_tables(watch))
        status = diag_no_memory(diag);
    if (status == STATUS_OK)
        return watch;
    pipeline_watch_close(watch);
    return NULL;
}

const struct simulate_observer *pipeline_watch_observer(const struct pipeline_watch *watch)
{
    return &watch->observer;
}

void pipeline_watch_close(struct pipeline_watch *watch)
{
    arena_fini(&watch->arena);
    free(watch);
}

/* ---- what each pass waited for --------------------------------------------------------------- */

static bool pipeline_figures_is_pass(enum action_kind kind)
{
    return kind == ACTION_F || kind == ACTION_B || kind == ACTION_I || kind == ACTION_W;
}

static struct pipeline_figures_cell *pipeline_figures_cell_of(const struct pipeline_watch *watch,
                                                              int stage, int microbatch)
{
    return &watch->cells[(size_t)stage * (size_t)watch->map.microbatches + (size_t)microbatch];
}

static void note_cell(struct pipeline_watch *watch, const struct action *action,
                      const struct when *when)
{
    if (action->microbatch < 0)
        return;
    struct pipeline_figures_cell *cell =
        pipeline_figures_cell_of(watch, action->stage, action->microbatch);
    if (action->kind == ACTION_F)
        cell->forward_end_ns = when->end_ns;
    else if (action->kind == ACTION_B || action->kind == ACTION_I)
        cell->backward_end_ns = when->end_ns;
    else if (action->kind == ACTION_RECV_F)
        cell->input = *when;
    else if (action->kind == ACTION_RECV_B)
        cell->gradient = *when;
}

/* The message that a part of a pass needs, and the end of the pass it comes from; NULL: none. */
static const struct when *message_of(const struct pipeline_watch *watch, const struct action *part,
                                     int64_t *from_ns)
{
    const struct pipeline_figures_cell *cell =
        pipeline_figures_cell_of(watch, part->stage, part->microbatch);
    bool forward = part->kind == ACTION_F;
    int other = part->stage + (forward ? -1 : 1);
    if (part->kind == ACTION_W || other < 0 || other >= watch->map.stages)
        return NULL;
    const struct pipeline_figures_cell *source =
        pipeline_figures_cell_of(watch, other, part->microbatch);
    *from_ns = forward ? source->forward_end_ns : source->backward_end_ns;
    const struct when *message = forward ? &cell->input : &cell->gradient;
    return message->done ? message : NULL;
}

/* From `*at` to `until`, but not beyond `end`. */
static int64_t pipeline_figures_cut(int64_t *at, int64_t until, int64_t end)
{
    int64_t to = until < end ? until : end, length = to > *at ? to - *at : 0;
    *at += length;
    return length;
}

/* Between the end of one pass and the start of the next. */
static void explain_gap(const struct pipeline_watch *watch, const struct action *action,
                        int64_t start_ns, int64_t end_ns, struct rank_figures *figures)
{
    const struct action *parts;
    const struct when *last = NULL;
    int64_t last_from_ns = 0;
    size_t count = comms_parts(action, &parts);
    for (size_t k = 0; k < count; k++) {
        int64_t from_ns = 0;
        const struct when *message = message_of(watch, &parts[k], &from_ns);
        if (message && (!last || message->end_ns > last->end_ns)) {
            last = message;
            last_from_ns = from_ns;
        }
    }
    int64_t at = start_ns;
    if (last) {
        figures->idle_ns[PIPELINE_WAIT_PASS] += pipeline_figures_cut(&at, last_from_ns, end_ns);
        figures->idle_ns[PIPELINE_WAIT_CHANNEL] +=
            pipeline_figures_cut(&at, last->start_ns, end_ns);
        figures->idle_ns[PIPELINE_WAIT_TRANSFER] += pipeline_figures_cut(&at, last->end_ns, end_ns);
    }
    figures->idle_ns[PIPELINE_WAIT_OTHER] += pipeline_figures_cut(&at, end_ns, end_ns);
}

static void note_bytes(struct rank_figures *figures, int64_t time_ns, int64_t bytes)
{
    in_flight_change(&figures->held, &(struct in_flight_point){.time_ns = time_ns, .bytes = bytes});
}

/* Messages between two passes count for the later one. */
static void explain_rank(const struct pipeline_watch *watch, int rank, struct rank_figures *figures)
{
    const struct rank_program *list = &watch->lists[rank];
    const struct rank_memory *memory = &watch->memory[rank];
    const struct when *dates = dates_of(watch, rank);
    int64_t end_ns = 0, most = memory->fixed;
    bool any = false;
    for (size_t i = 0; i < list->count; i++) {
        const struct when *when = &dates[i];
        const struct action *parts;
        comms_parts(&list->actions[i], &parts);
        most = memory->during[i] > most ? memory->during[i] : most;
        if (!pipeline_figures_is_pass(parts->kind) || !when->done)
            continue;
        if (any)
            explain_gap(watch, &list->actions[i], end_ns, when->start_ns, figures);
        else
            figures->first_ns = when->start_ns;
        int64_t from_ns = any && when->start_ns < end_ns ? end_ns : when->start_ns;
        figures->busy_ns += when->end_ns > from_ns ? when->end_ns - from_ns : 0;
        end_ns = !any || when->end_ns > end_ns ? when->end_ns : end_ns;
        any = true;
        note_bytes(figures, when->start_ns, most);
        most = memory->after[i];
        note_bytes(figures, when->end_ns, most);
    }
    if (watch->optimizer_end_ns[rank]) {
        int64_t ns = watch->optimizer_ns[rank];
        figures->idle_ns[PIPELINE_WAIT_OTHER] += watch->optimizer_end_ns[rank] - ns - end_ns;
        figures->busy_ns += ns;
        end_ns = watch->optimizer_end_ns[rank];
    }
    figures->last_ns = end_ns;
    figures->memory = *memory;
    figures->memory.during = figures->memory.after = NULL;
}

enum status pipeline_watch_take(struct pipeline_watch *watch, struct pipeline_figures *out,
                                struct diag *diag)
{
    struct pipeline_figures made = {.rank_count = watch->rank_count};
    made.ranks = calloc((size_t)watch->rank_count, sizeof *made.ranks);
    if (!made.ranks)
        return diag_no_memory(diag);
    for (int rank = 0; rank < watch->rank_count; rank++) {
        const struct when *dates = dates_of(watch, rank);
        for (size_t i = 0; i < watch->lists[rank].count; i++) {
            const struct action *parts;
            size_t count = comms_parts(&watch->lists[rank].actions[i], &parts);
            for (size_t k = 0; k < count; k++)
                note_cell(watch, &parts[k], &dates[i]);
        }
    }
    for (int rank = 0; rank < watch->rank_count; rank++) {
        struct rank_figures *figures = &made.ranks[rank], *longest = &made.ranks[made.longest];
        explain_rank(watch, rank, figures);
        made.has_bytes |= figures->memory.most > 0;
        if (figures->last_ns - figures->first_ns > longest->last_ns - longest->first_ns)
            made.longest = rank;
    }
    *out = made;
    return STATUS_OK;
}

void pipeline_figures_fini(struct pipeline_figures *figures)
{
    free(figures->ranks);
}
