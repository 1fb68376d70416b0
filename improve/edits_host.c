/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edits_host.c - proposed edits of host programs: order of calls, events, signals, locks, streams.
 *
 * Whether moving a call loses an order is decided by crossing_loses: a push moved behind the record
 * that covered it, a wait moved behind the operation that should wait, and so on. Such moves are proposed
 * too, at a higher price, as edits that weaken the plan.
 */
#include "edits_internal.h"

#include <string.h>

enum { MOVE_REACH = 6, MOVE_EXTRA = 15 };

static bool is_work(const struct host_op *op)
{
    return op_is_stream_work(op->kind);
}

/* ---- ranks that run the same program --------------------------------------------------------- */

static bool is_like_op(const struct host_op *a, const struct host_op *b)
{
    return a->kind == b->kind && a->stream == b->stream && a->comm == b->comm &&
           a->part_count == b->part_count &&
           (a->kind != OP_LAUNCH || edits_same_name(a->name, b->name));
}

/* Do two threads of different ranks, or one and the same, do the same in the same order? Messages
   have other names on the other side. */
static bool is_like(const struct host_thread *a, const struct host_thread *b)
{
    if (a == b)
        return true;
    if (a->rank == b->rank || a->op_count != b->op_count || strcmp(a->name, b->name) != 0)
        return false;
    for (size_t i = 0; i < a->op_count; i++)
        if (!is_like_op(&a->ops[i], &b->ops[i]))
            return false;
    return true;
}

int edits_like_on_rank(const struct plan *plan, int t, int rank)
{
    for (size_t u = 0; u < plan->thread_count; u++)
        if (plan->threads[u].rank == rank && is_like(&plan->threads[t], &plan->threads[u]))
            return (int)u;
    return -1;
}

/* Threads that do the same as rings. */
static bool find_alike(struct proposer *proposer)
{
    const struct plan *plan = proposer->plan;
    const int count = (int)plan->thread_count;
    int *next = proposer->next_alike = ARENA_ARRAY(proposer->arena, plan->thread_count, int);
    int *firsts = ARENA_ARRAY(proposer->arena, plan->thread_count, int), rings = 0;
    if (!next || !firsts)
        return false;
    for (int t = 0; t < count; t++) {
        int ring = 0;
        while (ring < rings && !is_like(&plan->threads[firsts[ring]], &plan->threads[t]))
            ring++;
        next[t] = t;
        if (ring == rings) {
            firsts[rings++] = t;
            continue;
        }
        next[t] = next[firsts[ring]];
        next[firsts[ring]] = t;
    }
    return true;
}

/* An edit everywhere stands once, in the list of the first rank. */
static bool has_twins(const struct proposer *proposer, int t)
{
    return proposer->next_alike[t] != t;
}

static int nearest_twin(const struct proposer *proposer, int t, size_t i)
{
    int least = proposer->near[t][i];
    for (int twin = proposer->next_alike[t]; twin != t; twin = proposer->next_alike[twin])
        if (proposer->near[twin][i] < least)
            least = proposer->near[twin][i];
    return least;
}

/* No edit of this operation is proposed: it and those alike are far from all suspects. */
static bool is_far(const struct proposer *proposer, int t, size_t i)
{
    return nearest_twin(proposer, t, i) > NEAR_ENOUGH;
}

/* Propose `edit` of thread edit.a for all ranks alike where there are several, and for this one. */
static void propose_both(struct proposer *proposer, struct edit edit, size_t i, int extra,
                         int alone)
{
    if (has_twins(proposer, edit.a)) {
        edit.everywhere = true;
        propose(proposer, edit, nearest_twin(proposer, edit.a, i), extra);
        edit.everywhere = false;
        extra += alone;
    }
    propose(proposer, edit, proposer->near[edit.a][i], extra);
}

/* ---- moves ----------------------------------------------------------------------------------- */

static bool takes_turn(const struct host_op *op) /* blocks the thread for another */
{
    return op_takes(op->kind) && op_waits(op->kind) == WAITS_THREADS;
}

static bool gives_turn(const struct host_op *op)
{
    return op_gives(op->kind) && !op_pushes(op->kind);
}

static bool is_lock_op(const struct host_op *op)
{
    return op_operand(op->kind) == OPERAND_LOCK;
}

/* `first` stands before `second`: is an order lost when they change places? */
static bool crossing_loses(const struct host_op *first, const struct host_op *second)
{
    if (is_lock_op(first) && is_lock_op(second))
        return first->object == second->object;
    if (edits_is_event_op(first) && edits_is_event_op(second) && first->object == second->object)
        return true;
    if (takes_turn(first) || gives_turn(second))
        return true;
    if (first->kind == OP_SYNC) /* what comes later was to come after it */
        return true;
    if (second->kind == OP_SYNC)
        return op_pushes(first->kind) &&
               (second->sync != SYNC_STREAM || second->stream == first->stream);
    if (second->kind == OP_RECORD)
        return is_work(first) && first->stream == second->stream;
    return first->kind == OP_WAIT && is_work(second) && first->stream == second->stream;
}

static bool move_loses(const struct host_thread *thread, size_t from, size_t to)
{
    for (size_t i = to; i < from; i++)
        if (crossing_loses(&thread->ops[i], &thread->ops[from]))
            return true;
    for (size_t i = from + 1; i <= to; i++)
        if (crossing_loses(&thread->ops[from], &thread->ops[i]))
            return true;
    return false;
}

/* A swap of neighbours is "the later one first"; farther away both directions count. Rank 0 is what
   others are made like. */
static void propose_moves(struct proposer *proposer, int t)
{
    const struct host_thread *thread = &proposer->plan->threads[t];
    for (size_t i = 0; i < thread->op_count; i++)
        for (int by = -MOVE_REACH; by <= MOVE_REACH; by++) {
            int to = (int)i + by;
            if (by == 0 || by == 1 || to < 0 || to >= (int)thread->op_count)
                continue;
            int places = by < 0 ? -by : by;
            propose(proposer,
                    (struct edit){.kind = EDIT_MOVE,
                                  .a = t,
                                  .b = (int)i,
                                  .to = to,
                                  .weakens = move_loses(thread, i, (size_t)to)},
                    proposer->near[t][i], MOVE_EXTRA * (places - 1) + (thread->rank == 0));
        }
}

/* ---- synchronisation ------------------------------------------------------------------------- */

/* An event behind one piece of work or an allocation, waited for by later work on another stream. The
   nearer of the two in the program text is the likelier. */
static void propose_events(struct proposer *proposer, int t)
{
    const struct host_thread *thread = &proposer->plan->threads[t];
    for (size_t i = 0; i < thread->op_count; i++)
        for (size_t k = i + 1; k < thread->op_count && k <= i + 3 * NEAR_ENOUGH; k++) {
            const struct host_op *first = &thread->ops[i], *second = &thread->ops[k];
            bool source = is_work(first) || first->kind == OP_ALLOC;
            if (!source || !is_work(second) || first->stream == second->stream)
                continue;
            int far = proposer->near[t][k];
            propose_both(proposer,
                         (struct edit){.kind = EDIT_EVENT, .a = t, .b = (int)i, .c = (int)k}, i,
                         2 * (far < FAR_AWAY ? far : NEAR_ENOUGH) + (int)(k - i), 5);
        }
}

/* A wait that may come before its record needs a signal in between; two threads that fill one
   stream need an order. */
static int signal_extra(const struct host_op *first, const struct host_op *second)
{
    if (first->kind == OP_RECORD && second->kind == OP_WAIT && first->object == second->object)
        return -12;
    if (is_work(first) && is_work(second) && first->stream == second->stream)
        return -25;
    return op_pushes(first->kind) && op_pushes(second->kind) ? 0 : 10;
}

static void propose_signals(struct proposer *proposer, int t, int u)
{
    const struct host_thread *from = &proposer->plan->threads[t], *to = &proposer->plan->threads[u];
    if (t == u || from->rank != to->rank)
        return;
    for (size_t i = 0; i < from->op_count; i++)
        for (size_t k = 0; k < to->op_count; k++) {
            int far = proposer->near[u][k];
            if (far > NEAR_ENOUGH || from->ops[i].kind == OP_LOCK)
                continue;
            propose_both(
                proposer,
                (struct edit){.kind = EDIT_SIGNAL, .a = t, .b = (int)i, .c = (int)k, .to = u}, i,
                2 * far + signal_extra(&from->ops[i], &to->ops[k]) + (t > u ? 4 : 0), 5);
        }
}

static bool pushes_to(const struct host_thread *thread, int stream)
{
    for (size_t i = 0; i < thread->op_count; i++)
        if (op_pushes(thread->ops[i].kind) && thread->ops[i].stream == stream)
            return true;
    return false;
}

static void propose_locks(struct proposer *proposer, int t, int u)
{
    const struct plan *plan = proposer->plan;
    if (t >= u || plan->threads[t].rank != plan->threads[u].rank)
        return;
    for (int stream = 0; stream < (int)plan->streams.count; stream++)
        if (pushes_to(&plan->threads[t], stream) && pushes_to(&plan->threads[u], stream))
            propose(proposer, (struct edit){.kind = EDIT_LOCK, .a = t, .b = stream, .to = u}, 0, 0);
}

/* ---- streams, communicators, messages -------------------------------------------------------- */

/* Work takes the records right behind it along: they are about it. */
static size_t records_behind(const struct host_thread *thread, size_t i)
{
    size_t end = i;
    while (is_work(&thread->ops[i]) && end + 1 < thread->op_count &&
           thread->ops[end + 1].kind == OP_RECORD &&
           thread->ops[end + 1].stream == thread->ops[i].stream)
        end++;
    return end;
}

/* Is there a sync or record behind, or a wait in front, that work from `first` to `last` escapes on
   another stream? */
static bool leaving_loses(const struct host_thread *thread, size_t first, size_t last)
{
    int stream = thread->ops[first].stream;
    for (size_t i = 0; i < thread->op_count; i++) {
        const struct host_op *op = &thread->ops[i];
        bool behind = op->kind == OP_RECORD || (op->kind == OP_SYNC && op->sync == SYNC_STREAM);
        if (op->stream == stream && ((i < first && op->kind == OP_WAIT) || (i > last && behind)))
            return true;
    }
    return false;
}

/* A record or a wait may have been put on the wrong stream. */
static void propose_marker_streams(struct proposer *proposer, int t, size_t i)
{
    const struct plan *plan = proposer->plan;
    const struct host_thread *thread = &plan->threads[t];
    struct edit edit = {.kind = EDIT_OP_STREAM, .a = t, .b = (int)i, .c = (int)i};
    edit.weakens = proposer->hang;
    for (; edit.to < (int)plan->streams.count; edit.to++)
        if (edit.to != thread->ops[i].stream && pushes_to(thread, edit.to))
            propose_both(proposer, edit, i, proposer->hang ? 0 : -25, 2);
}

/* Work may stand behind unrelated work: move it to a stream of its own, or to another one of the plan,
   where it is in order with the work there. */
static void propose_work_streams(struct proposer *proposer, int t, size_t i)
{
    const struct plan *plan = proposer->plan;
    const struct host_thread *thread = &plan->threads[t];
    size_t last = records_behind(thread, i);
    bool loses = leaving_loses(thread, i, last);
    struct edit edit = {.kind = EDIT_OP_STREAM, .a = t, .b = (int)i, .c = (int)last};
    edit.weakens = loses;
    edit.alone = true;
    for (; edit.to < (int)plan->streams.count; edit.to++)
        if (edit.to != thread->ops[i].stream && pushes_to(thread, edit.to))
            propose_both(proposer, edit, i, 30, 2);
    edit.to = -1;
    edit.alone = false;
    propose_both(proposer, edit, i, loses ? 30 : 0, 2);
}

static void propose_streams(struct proposer *proposer, int t)
{
    const struct host_thread *thread = &proposer->plan->threads[t];
    for (size_t i = 0; i < thread->op_count; i++)
        if (is_far(proposer, t, i))
            continue;
        else if (thread->ops[i].kind == OP_RECORD || thread->ops[i].kind == OP_WAIT)
            propose_marker_streams(proposer, t, i);
        else if (is_work(&thread->ops[i]))
            propose_work_streams(proposer, t, i);
}

static void propose_comms(struct proposer *proposer, int t)
{
    const struct host_thread *thread = &proposer->plan->threads[t];
    for (size_t i = 0; i < thread->op_count; i++)
        if (thread->ops[i].kind == OP_COLLECTIVE && !thread->ops[i].process_group)
            propose(proposer, (struct edit){.kind = EDIT_OP_COMM, .a = t, .b = (int)i},
                    proposer->near[t][i], 0);
}

static void propose_joins(struct proposer *proposer, int t)
{
    const struct host_thread *thread = &proposer->plan->threads[t];
    for (size_t i = 0; i + 1 < thread->op_count; i++) {
        const struct host_op *first = &thread->ops[i], *second = first + 1;
        if (first->kind == OP_GROUP && second->kind == OP_GROUP && first->comm == second->comm &&
            first->stream == second->stream)
            propose_both(proposer,
                         (struct edit){.kind = EDIT_JOIN, .a = t, .b = (int)i, .c = (int)i + 1}, i,
                         has_twins(proposer, t) ? 0 : 18, 18);
    }
}

/* ---- memory, queues, removal ----------------------------------------------------------------- */

static bool names_buffer(const struct index_list *list, int buffer)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i] == buffer)
            return true;
    return false;
}

static bool uses(const struct host_op *op, int buffer)
{
    bool any = names_buffer(&op->reads, buffer) || names_buffer(&op->writes, buffer);
    for (size_t i = 0; i < op->part_count; i++)
        any |=
            names_buffer(&op->parts[i].reads, buffer) || names_buffer(&op->parts[i].writes, buffer);
    return any;
}

/* The streams that use the buffer freed at (t, i). */
static void propose_before_free(struct proposer *proposer, int t, size_t i)
{
    const struct host_thread *thread = &proposer->plan->threads[t];
    int buffer = thread->ops[i].object;
    for (size_t k = 0; k < i; k++) {
        const struct host_op *user = &thread->ops[k];
        if (user->stream < 0 || !op_pushes(user->kind) || !uses(user, buffer))
            continue;
        struct edit edit = {.a = t, .b = (int)i, .c = buffer, .to = user->stream};
        edit.kind = EDIT_RECORD_STREAM;
        propose_both(proposer, edit, i, 0, 2);
        edit.kind = EDIT_SYNC_BEFORE;
        propose_both(proposer, edit, i, 0, 2);
    }
}

static bool shares_buffer(const struct host_op *user, const struct index_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (uses(user, list->items[i]))
            return true;
    return false;
}

/* The CPU work at (t, i) accesses what work of a stream does: wait for the stream, once for each. */
static void propose_before_access(struct proposer *proposer, int t, size_t i)
{
    const struct host_thread *thread = &proposer->plan->threads[t];
    const struct host_op *own = &thread->ops[i];
    int last = -1;
    for (size_t k = i; k-- > 0;) {
        const struct host_op *user = &thread->ops[k];
        if (user->stream < 0 || user->stream == last || !op_pushes(user->kind) ||
            !(shares_buffer(user, &own->reads) || shares_buffer(user, &own->writes)))
            continue;
        last = user->stream;
        propose_both(
            proposer,
            (struct edit){.kind = EDIT_SYNC_BEFORE, .a = t, .b = (int)i, .to = user->stream}, i, 0,
            2);
    }
}

static void propose_others(struct proposer *proposer, int t)
{
    const struct plan *plan = proposer->plan;
    const struct host_thread *thread = &plan->threads[t];
    for (size_t i = 0; i < thread->op_count; i++) {
        const struct host_op *op = &thread->ops[i];
        int near = proposer->near[t][i];
        if (op->kind == OP_FREE)
            propose_before_free(proposer, t, i);
        if (op_is_cpu_work(op->kind) && !is_far(proposer, t, i))
            propose_before_access(proposer, t, i);
        for (int more = 1; op->kind == OP_PUT && more <= 2; more++)
            propose(proposer,
                    (struct edit){.kind = EDIT_QUEUE_CAPACITY,
                                  .a = op->object,
                                  .to = plan->queues[op->object].capacity + more},
                    near, 2 * more);
        if (op->kind != OP_LAUNCH && op->kind != OP_COPY && !op_is_cpu_work(op->kind))
            propose(proposer,
                    (struct edit){.kind = EDIT_REMOVE_OP, .a = t, .b = (int)i, .weakens = true},
                    near, 0);
    }
}

void propose_host(struct proposer *proposer)
{
    if (plan_repeats(proposer->plan)) /* an edit would be of one iteration */
        return;
    if (!find_alike(proposer))
        return;
    int count = (int)proposer->plan->thread_count;
    for (int t = 0; t < count && !edits_are_over(proposer); t++) {
        propose_moves(proposer, t);
        propose_events(proposer, t);
        propose_streams(proposer, t);
        propose_comms(proposer, t);
        propose_joins(proposer, t);
        propose_others(proposer, t);
        for (int u = 0; u < count && !edits_are_over(proposer); u++) {
            propose_signals(proposer, t, u);
            propose_locks(proposer, t, u);
        }
    }
    if (proposer->hang && !edits_are_over(proposer))
        propose_calls(proposer);
}
