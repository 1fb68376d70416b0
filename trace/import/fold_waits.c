/* SPDX-License-Identifier: Apache-2.0 */
/* fold_waits.c - the waits of streams that a repeated step has, and the events that it records for them. */
#include <stdlib.h>

#include "fold_internal.h"

/* ---- waits of the step ------------------------------------------------------------------------- */

static void add_edge(struct folder *folder, const struct edge *edge)
{
    if (!arena_grow(&folder->arena, (void **)&folder->edges, folder->edge_count, &folder->edge_cap,
                    sizeof *folder->edges))
        folder->no_memory = true;
    else
        folder->edges[folder->edge_count++] = *edge;
}

static void list_edges(struct folder *folder, int thread, int step)
{
    for (int slot = 0; slot <= fold_slot_count(folder, thread, step); slot++) {
        const size_t end = fold_slot_end(folder, thread, step, slot);
        size_t at =
            fold_next_wait(folder, thread, fold_waits_begin(folder, thread, step, slot), end);
        for (; at < end; at = fold_next_wait(folder, thread, at + 1, end)) {
            const struct host_op *op = &fold_ops(folder, thread)[at];
            const struct place *place = fold_event_place(folder, op->object);
            const struct edge edge = {
                thread,     slot, place->thread, place->slot, step - place->step,
                op->stream, step, op->object};
            add_edge(folder, &edge);
        }
    }
}

static int compare_edges(const void *left, const void *right)
{
    const struct edge *a = left, *b = right;
    const int keys[][2] = {
        {a->thread, b->thread},   {a->slot, b->slot},         {a->on_thread, b->on_thread},
        {a->on_slot, b->on_slot}, {a->distance, b->distance}, {a->stream, b->stream},
        {a->step, b->step}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

static bool same_edge(const struct edge *a, const struct edge *b)
{
    return a->thread == b->thread && a->slot == b->slot && a->on_thread == b->on_thread &&
           a->on_slot == b->on_slot && a->distance == b->distance && a->stream == b->stream;
}

/* Has the body a flag that `by` signals from this slot on and `to` awaits, in front of `before`? */
static bool hands_over(const struct folder *folder, int by, int from_slot, int to, int before)
{
    for (int i = 0; i < before; i++) {
        const struct host_op *op = fold_slot_op(folder, to, folder->from, i);
        if (op->kind == OP_AWAIT && fold_flag_place(folder, op->object)->thread == by &&
            fold_flag_place(folder, op->object)->slot >= from_slot)
            return true;
    }
    return false;
}

/* Means the wait the same record when there is one event for all iterations? */
static bool is_told_apart(const struct folder *folder, int thread, int slot, const struct place *on,
                          int distance)
{
    if (distance < 0 || distance > 1 || on->slot < 0)
        return false;
    if (on->thread == thread)
        return distance == 0 ? on->slot < slot : on->slot >= slot;
    const int whole = fold_slot_count(folder, on->thread, folder->from);
    return distance == 0 && hands_over(folder, on->thread, on->slot, thread, slot) &&
           (hands_over(folder, thread, slot, on->thread, whole) ||
            hands_over(folder, thread, 0, on->thread, on->slot + 1));
}

static int source_stream(const struct folder *folder, const struct edge *edge)
{
    return edge->on_slot < 0
               ? -1
               : fold_slot_op(folder, edge->on_thread, folder->from, edge->on_slot)->stream;
}

static bool is_clear(const struct folder *folder, const struct edge *edge)
{
    const struct place on = {edge->on_thread, 0, edge->on_slot};
    return is_told_apart(folder, edge->thread, edge->slot, &on, edge->distance);
}

/* Are the two waits of one kind: of one stream for another? */
static bool same_streams(const struct folder *folder, const struct edge *a, const struct edge *b)
{
    return a->thread == b->thread && a->stream == b->stream && a->on_thread == b->on_thread &&
           a->distance == b->distance && source_stream(folder, a) == source_stream(folder, b);
}

/* The wait that most of these edges are; of equals the first, which asks for the least. */
static struct edge most_frequent(const struct edge *edges, const size_t *list, size_t count)
{
    size_t best = 0, most = 0;
    for (size_t i = 0; i < count; i++) {
        size_t same = 0;
        for (size_t k = 0; k < count; k++)
            same += same_edge(&edges[list[i]], &edges[list[k]]);
        if (same > most) {
            most = same;
            best = i;
        }
    }
    return edges[list[best]];
}

/* Do all steps wait exactly like this, but the first ones, which have no step so far before them? */
static bool is_in_all(const struct folder *folder, const size_t *list, size_t count,
                      const struct edge *kept)
{
    const int first = folder->from > kept->distance ? folder->from : kept->distance;
    bool same = (int)count == folder->to + 1 - first;
    for (size_t i = 0; i < count && same; i++)
        same = same_edge(&folder->edges[list[i]], kept);
    return same;
}

/* Lists the edges from `first` on that stand for one wait: of one kind, near each other, each of another step. */
static size_t list_alike(const struct folder *folder, size_t first, bool *taken, size_t *list)
{
    const struct edge *edges = folder->edges;
    size_t count = 0;
    for (size_t i = first; i < folder->edge_count && edges[i].thread == edges[first].thread; i++) {
        if (taken[i] || !same_streams(folder, &edges[i], &edges[first]) ||
            !is_clear(folder, &edges[i]))
            continue;
        for (size_t k = 0; k < count; k++)
            if (edges[list[k]].step == edges[i].step)
                return count;
        list[count++] = i;
        taken[i] = true;
    }
    return count;
}

/* Leaves the waits that most steps have. */
static bool keep_frequent(struct folder *folder)
{
    const size_t all = folder->edge_count, steps = (size_t)(folder->to - folder->from + 1);
    bool *taken = ARENA_ARRAY(&folder->arena, all + 1, bool);
    size_t *list = ARENA_ARRAY(&folder->arena, steps + 1, size_t);
    struct edge *kept = ARENA_ARRAY(&folder->arena, all + 1, struct edge);
    if (!taken || !list || !kept)
        return false;
    size_t count = 0;
    for (size_t i = 0; i < all; i++) {
        if (taken[i])
            continue;
        const size_t alike =
            is_clear(folder, &folder->edges[i]) ? list_alike(folder, i, taken, list) : 0;
        if (alike * 2 > steps)
            kept[count++] = most_frequent(folder->edges, list, alike);
        folder->changed |= alike * 2 <= steps || !is_in_all(folder, list, alike, &kept[count - 1]);
    }
    folder->edges = kept;
    folder->edge_count = count;
    qsort(kept, count, sizeof *kept, compare_edges);
    return true;
}

/* All steps have the same: leaves those of the first one. */
static bool keep_first(struct folder *folder, bool *fits)
{
    size_t kept = 0;
    for (size_t i = 0; i < folder->edge_count; i++) {
        *fits &= is_clear(folder, &folder->edges[i]);
        if (folder->edges[i].step == folder->from)
            folder->edges[kept++] = folder->edges[i];
    }
    folder->edge_count = kept;
    return true;
}

/* *fits: one event for all iterations means the same. */
bool fold_find_waits(struct folder *folder, bool *fits)
{
    for (int t = 0; t < folder->thread_count; t++)
        for (int step = folder->from; step <= folder->to; step++)
            list_edges(folder, t, step);
    if (folder->no_memory)
        return false;
    if (folder->edge_count > 0)
        qsort(folder->edges, folder->edge_count, sizeof *folder->edges, compare_edges);
    return folder->typical ? keep_frequent(folder) : keep_first(folder, fits);
}
/* ---- events of the step -------------------------------------------------------------------------- */

static bool in_run(const struct folder *folder, int step)
{
    return step >= folder->from && step <= folder->to;
}

/* The event behind a slot of the step, maybe a new one. */
static void want_event(struct folder *folder, int thread, int slot, int event)
{
    if (folder->event[thread][slot] < 0)
        folder->event[thread][slot] = event;
}

static bool want_syncs(struct folder *folder)
{
    for (int t = 0; t < folder->thread_count; t++)
        for (int i = 0; i < fold_slot_count(folder, t, folder->from); i++) {
            const struct host_op *op = fold_slot_op(folder, t, folder->from, i);
            if (op->kind != OP_SYNC || op->sync != SYNC_EVENT)
                continue;
            const struct place *place = fold_event_place(folder, op->object);
            if (!is_told_apart(folder, t, i, place, folder->from - place->step))
                return false;
            want_event(folder, place->thread, place->slot, op->object);
        }
    return true;
}

/* Events of the last iteration are waited for behind the repeat; those of others must not be. */
static bool want_outer(struct folder *folder)
{
    for (int t = 0; t < folder->thread_count; t++) {
        const struct host_thread *thread = folder->threads[t].thread;
        const size_t end = folder->threads[t].marks[folder->to + 1];
        for (size_t i = end; i < thread->op_count; i++) {
            const struct host_op *op = &thread->ops[i];
            const bool waits =
                op->kind == OP_WAIT || (op->kind == OP_SYNC && op->sync == SYNC_EVENT);
            const struct place *place = waits ? fold_event_place(folder, op->object) : NULL;
            if (!waits || !in_run(folder, place->step))
                continue;
            if (place->step != folder->to || place->thread != t)
                return false;
            want_event(folder, place->thread, place->slot, op->object);
        }
    }
    return true;
}

/* Flags of the run are set and awaited in it. */
static bool flags_stay(const struct folder *folder)
{
    for (int t = 0; t < folder->thread_count; t++) {
        const struct host_thread *thread = folder->threads[t].thread;
        const size_t begin = folder->threads[t].marks[folder->from];
        const size_t end = folder->threads[t].marks[folder->to + 1];
        for (size_t i = 0; i < thread->op_count; i++)
            if (thread->ops[i].kind == OP_AWAIT &&
                in_run(folder, fold_flag_place(folder, thread->ops[i].object)->step) !=
                    (i >= begin && i < end))
                return false;
    }
    return true;
}

/* One event for all of one slot, also for the record of the step in front of the run that the first iteration waits for. */
static void rename_events(struct folder *folder)
{
    for (int e = 0; e < (int)folder->plan->events.count; e++) {
        const struct place *place = fold_event_place(folder, e);
        if (place->thread >= 0 && in_run(folder, place->step) && place->slot >= 0 &&
            folder->event[place->thread][place->slot] >= 0)
            folder->renamed[e] = folder->event[place->thread][place->slot];
    }
    for (size_t i = 0; i < folder->edge_count; i++) {
        const struct edge *edge = &folder->edges[i];
        if (edge->distance > 0 && edge->step == folder->from)
            folder->renamed[edge->event] = folder->event[edge->on_thread][edge->on_slot];
    }
}

bool fold_find_events(struct folder *folder, bool *fits)
{
    for (int t = 0; t < folder->thread_count; t++) {
        const int count = fold_slot_count(folder, t, folder->from);
        folder->event[t] = ARENA_ARRAY(&folder->arena, (size_t)count + 1, int);
        for (int i = 0; folder->event[t] && i <= count; i++)
            folder->event[t][i] = -1;
        if (!folder->event[t])
            return false;
    }
    for (size_t i = 0; i < folder->edge_count; i++)
        want_event(folder, folder->edges[i].on_thread, folder->edges[i].on_slot,
                   folder->edges[i].event);
    *fits = want_syncs(folder) && want_outer(folder) && flags_stay(folder);
    if (*fits)
        rename_events(folder);
    return true;
}
