/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.c - see snapshot.h. */
#include "snapshot.h"

#include "happens_before.h"
#include "lower.h"

/* A cell for each stream that a thread may have to wait for. */
enum {
    NOT_CALLED = 0,
    REACHED = -1
    /* else the stream must have popped so many items */
};

enum { NO_THREAD = -1, SEVERAL = -2 };

/* ---- where it is needed ---------------------------------------------------------------------- */

static int *list_pushers(struct program *p)
{
    int *pushers = ARENA_ARRAY(&p->arena, (size_t)p->stream_count + 1, int);
    for (int s = 0; pushers && s < p->stream_count; s++)
        pushers[s] = NO_THREAD;
    for (size_t b = 0; pushers && b < p->body_count; b++)
        for (int i = p->bodies[b].first; i < p->bodies[b].first + p->bodies[b].count; i++) {
            if (!op_pushes(p->ops[i].kind))
                continue;
            int *pusher = &pushers[p->ops[i].stream], thread = p->bodies[b].thread;
            *pusher = *pusher == NO_THREAD || *pusher == thread ? thread : SEVERAL;
        }
    return pushers;
}

static bool waits_for(const struct op *op, int stream)
{
    return op->sync != SYNC_STREAM || op->stream == stream;
}

static bool others_push(const struct program *p, const int *pushers, int thread,
                        const struct op *op)
{
    int rank = program_sync_rank(p, thread, op);
    for (int k = p->rank_first[rank]; k < p->rank_first[rank + 1]; k++) {
        int s = p->rank_streams[k];
        if (waits_for(op, s) && pushers[s] != NO_THREAD && pushers[s] != thread)
            return true;
    }
    return false;
}

static bool is_listed(const struct program *p, int thread, int stream)
{
    int k = p->awaited_by[thread];
    while (k >= 0 && p->awaited[k].stream != stream)
        k = p->awaited[k].next_of_thread;
    return k >= 0;
}

static bool list_awaited(struct program *p, int thread, const struct op *op)
{
    int rank = program_sync_rank(p, thread, op);
    for (int i = p->rank_first[rank]; i < p->rank_first[rank + 1]; i++) {
        int s = p->rank_streams[i], k = p->awaited_count;
        if (!waits_for(op, s) || is_listed(p, thread, s))
            continue;
        if (!arena_grow(&p->arena, (void **)&p->awaited, (size_t)k, &p->awaited_cap,
                        sizeof *p->awaited))
            return false;
        p->awaited[k] = (struct awaited){s, thread, p->awaited_by[thread], p->awaited_on[s]};
        p->awaited_by[thread] = p->awaited_on[s] = p->awaited_count++;
    }
    return true;
}

static bool find_snapshots(struct program *p, const int *pushers)
{
    for (size_t b = 0; b < p->body_count; b++)
        for (int i = p->bodies[b].first; i < p->bodies[b].first + p->bodies[b].count; i++) {
            struct op *op = &p->ops[i];
            if (op->kind != OP_SYNC || op->sync == SYNC_EVENT || op->sync == SYNC_RETRY)
                continue;
            op->snapshot = others_push(p, pushers, p->bodies[b].thread, op);
            if (op->snapshot && !list_awaited(p, p->bodies[b].thread, op))
                return false;
        }
    return true;
}

enum status snapshot_build(struct program *p, struct diag *diag)
{
    const int *pushers = list_pushers(p);
    p->awaited_by = ARENA_ARRAY(&p->arena, (size_t)p->thread_count + 1, int);
    p->awaited_on = ARENA_ARRAY(&p->arena, (size_t)p->stream_count + 1, int);
    if (!pushers || !p->awaited_by || !p->awaited_on)
        return diag_no_memory(diag);
    for (int t = 0; t < p->thread_count; t++)
        p->awaited_by[t] = -1;
    for (int s = 0; s < p->stream_count; s++)
        p->awaited_on[s] = -1;
    return find_snapshots(p, pushers) ? STATUS_OK : diag_no_memory(diag);
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

static void learn(struct work_state *w, int k)
{
    w->c[w->p->at.awaited + k] = REACHED;
    hb_join(w, w->p->at.row_threads + w->p->awaited[k].thread,
            w->p->at.row_streams + w->p->awaited[k].stream);
}

void snapshot_take(struct work_state *w, int thread, const struct op *op)
{
    const struct program *p = w->p;
    int rank = program_sync_rank(p, thread, op);
    for (int k = p->awaited_by[thread]; k >= 0; k = p->awaited[k].next_of_thread) {
        int s = p->awaited[k].stream;
        const int32_t *stream = stream_cells(p, w->c, s);
        if (p->streams[s].rank != rank || !waits_for(op, s))
            continue;
        if (stream[STREAM_COUNT] == 0)
            learn(w, k);
        else
            w->c[p->at.awaited + k] = stream[STREAM_DONE] + stream[STREAM_COUNT];
    }
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
            learn(w, k);
}
