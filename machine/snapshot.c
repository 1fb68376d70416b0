/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.c - see snapshot.h. */
#include "snapshot.h"

#include "happens_before.h"
#include "base/array.h"

/* A cell for each stream that a thread may have to wait for. */
enum {
    NOT_CALLED = 0,
    REACHED = -1
    /* else the stream must have popped so many items */
};

enum { NONE = -1, SEVERAL = -2 };

/* The one that does something, if one does: NONE, an index, or SEVERAL. */
struct doers {
    int *pusher;          /* of a stream: the thread */
    int *recorder;        /* of an event: the thread */
    int *recorded_stream; /* of an event */
};

/* ---- where it is needed ---------------------------------------------------------------------- */

static int *nothing_yet(struct program *p, int count)
{
    int *all = ARENA_ARRAY(&p->arena, (size_t)count + 1, int);
    for (int i = 0; all && i < count; i++)
        all[i] = NONE;
    return all;
}

static void add_doer(int *doer, int index)
{
    *doer = *doer == NONE || *doer == index ? index : SEVERAL;
}

static bool is_others(int doer, int thread)
{
    return doer != NONE && doer != thread;
}

static void find_doers(const struct program *p, const struct doers *doers)
{
    for (size_t b = 0; b < p->body_count; b++)
        for (int i = p->bodies[b].first; i < p->bodies[b].first + p->bodies[b].count; i++) {
            const struct op *op = &p->ops[i];
            if (op_pushes(op->kind))
                add_doer(&doers->pusher[op->stream], p->bodies[b].thread);
            if (op_records(op->kind)) {
                add_doer(&doers->recorder[op->object], p->bodies[b].thread);
                add_doer(&doers->recorded_stream[op->object], op->stream);
            }
        }
}

static bool snapshot_waits_for(const struct op *op, int stream)
{
    return op->sync != SYNC_STREAM || op->stream == stream;
}

/* Instances of a pipeline's events are recorded once. */
static bool others_record(const struct program *p, const struct doers *doers, int thread,
                          const struct op *op)
{
    return p->threads[thread].kind == THREAD_HOST && is_others(doers->recorder[op->object], thread);
}

static bool others_push(const struct program *p, const struct doers *doers, int thread,
                        const struct op *op)
{
    int rank = program_sync_rank(p, thread, op);
    for (int k = p->rank_first[rank]; k < p->rank_first[rank + 1]; k++) {
        int s = p->rank_streams[k];
        if (snapshot_waits_for(op, s) && is_others(doers->pusher[s], thread))
            return true;
    }
    return false;
}

static bool snapshot_is_listed(const struct program *p, int thread, int stream)
{
    int k = p->awaited_by[thread];
    while (k >= 0 && p->awaited[k].stream != stream)
        k = p->awaited[k].next_of_thread;
    return k >= 0;
}

static bool list_stream(struct program *p, int thread, int stream)
{
    int k = p->awaited_count;
    if (snapshot_is_listed(p, thread, stream))
        return true;
    if (!ARENA_GROW(&p->arena, p->awaited, k, p->awaited_cap))
        return false;
    p->awaited[k] = (struct awaited){stream, thread, p->awaited_by[thread], p->awaited_on[stream]};
    p->awaited_by[thread] = p->awaited_on[stream] = p->awaited_count++;
    return true;
}

static bool list_awaited(struct program *p, int thread, const struct op *op)
{
    int rank = program_sync_rank(p, thread, op);
    for (int i = p->rank_first[rank]; i < p->rank_first[rank + 1]; i++)
        if (snapshot_waits_for(op, p->rank_streams[i]) &&
            !list_stream(p, thread, p->rank_streams[i]))
            return false;
    return true;
}

/* Any stream may be that of a record, once there are several: a device may have streams of another rank's. */
static bool list_recorded(struct program *p, int thread, int stream)
{
    if (stream != SEVERAL)
        return list_stream(p, thread, stream);
    for (int s = 0; s < p->stream_count; s++)
        if (!list_stream(p, thread, s))
            return false;
    return true;
}

static bool find_snapshots(struct program *p, const struct doers *doers)
{
    for (size_t b = 0; b < p->body_count; b++)
        for (int i = p->bodies[b].first; i < p->bodies[b].first + p->bodies[b].count; i++) {
            struct op *op = &p->ops[i];
            int thread = p->bodies[b].thread;
            if (!op_syncs(op->kind) || op_may_sync(op))
                continue;
            bool event = op->sync == SYNC_EVENT;
            op->snapshot =
                event ? others_record(p, doers, thread, op) : others_push(p, doers, thread, op);
            if (op->snapshot &&
                !(event ? list_recorded(p, thread, doers->recorded_stream[op->object])
                        : list_awaited(p, thread, op)))
                return false;
        }
    return true;
}

/* True if each rank has one thread at most, and nothing to do with the devices of others. `known`: falses, one a
   rank. */
static bool each_alone(const struct program *p, bool *known)
{
    bool alone = !p->is_crossed;
    for (int t = 0; alone && t < p->thread_count; t++) {
        alone = !known[p->threads[t].rank];
        known[p->threads[t].rank] = true;
    }
    return alone;
}

enum status snapshot_build(struct program *p, struct diag *diag)
{
    p->awaited_by = nothing_yet(p, p->thread_count);
    p->awaited_on = nothing_yet(p, p->stream_count);
    bool *known = ARENA_ARRAY(&p->arena, (size_t)p->ranks, bool);
    if (!p->awaited_by || !p->awaited_on || !known)
        return diag_no_memory(diag);
    if (each_alone(p, known))
        return STATUS_OK;
    struct doers doers = {nothing_yet(p, p->stream_count), nothing_yet(p, p->event_families),
                          nothing_yet(p, p->event_families)};
    if (!doers.pusher || !doers.recorder || !doers.recorded_stream)
        return diag_no_memory(diag);
    find_doers(p, &doers);
    return find_snapshots(p, &doers) ? STATUS_OK : diag_no_memory(diag);
}

/* ---- in a state ------------------------------------------------------------------------------ */

bool snapshot_is_taken(const struct program *p, const int32_t *c, int thread)
{
    for (int k = p->awaited_by[thread]; k >= 0; k = p->awaited[k].next_of_thread)
        if (c[p->at.awaited + k] != NOT_CALLED)
            return true;
    return false;
}

int snapshot_awaits(const struct program *p, const int32_t *c, int thread)
{
    for (int k = p->awaited_by[thread]; k >= 0; k = p->awaited[k].next_of_thread)
        if (c[p->at.awaited + k] > 0)
            return p->awaited[k].stream;
    return -1;
}

static void snapshot_learn(struct work_state *w, int k)
{
    w->c[w->p->at.awaited + k] = REACHED;
    hb_join(w, w->p->at.row_threads + w->p->awaited[k].thread,
            w->p->at.row_streams + w->p->awaited[k].stream);
}

static void snapshot_take_work(struct work_state *w, int thread, const struct op *op)
{
    const struct program *p = w->p;
    int rank = program_sync_rank(p, thread, op);
    for (int k = p->awaited_by[thread]; k >= 0; k = p->awaited[k].next_of_thread) {
        int s = p->awaited[k].stream;
        const int32_t *stream = stream_cells(p, w->c, s);
        if (p->streams[s].rank != rank || !snapshot_waits_for(op, s))
            continue;
        if (stream[STREAM_COUNT] == 0)
            snapshot_learn(w, k);
        else
            w->c[p->at.awaited + k] = stream[STREAM_DONE] + stream[STREAM_COUNT];
    }
}

/* Cells of other streams say that the call was. */
static void snapshot_take_event(struct work_state *w, int thread, int instance)
{
    const struct program *p = w->p;
    const int32_t *event = event_cells(p, w->c, instance);
    for (int k = p->awaited_by[thread]; k >= 0; k = p->awaited[k].next_of_thread)
        w->c[p->at.awaited + k] =
            p->awaited[k].stream == event[EVENT_STREAM] ? event[EVENT_POS] + 1 : REACHED;
    if (event[EVENT_STREAM] < 0)
        hb_join(w, p->at.row_threads + thread, p->at.row_events + instance);
}

void snapshot_take(struct work_state *w, int thread, const struct op *op, int64_t iteration)
{
    if (op->sync == SYNC_EVENT)
        snapshot_take_event(w, thread, instance_of(w->p, op, iteration));
    else
        snapshot_take_work(w, thread, op);
}

void snapshot_drop(struct work_state *w, int thread)
{
    const struct program *p = w->p;
    for (int k = p->awaited_by[thread]; k >= 0; k = p->awaited[k].next_of_thread)
        w->c[p->at.awaited + k] = NOT_CALLED;
}

void snapshot_reach(struct work_state *w, int stream)
{
    const struct program *p = w->p;
    int32_t done = stream_cells(p, w->c, stream)[STREAM_DONE];
    for (int k = p->awaited_on[stream]; k >= 0; k = p->awaited[k].next_of_stream)
        if (w->c[p->at.awaited + k] > 0 && w->c[p->at.awaited + k] <= done)
            snapshot_learn(w, k);
}
