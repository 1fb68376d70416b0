/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edits_host.c - edits of host programs: order of calls, events, signals, locks, streams.
 *
 * Whether moving a call loses an order is decided by crossing_loses: a push moved behind the record
 * that covered it, a wait moved behind the operation that should wait, and so on. Such moves are proposed
 * too, at a higher price, as edits that weaken the plan.
 */
#include "edits_internal.h"

#include <assert.h>
#include <string.h>

#include "base/assert_index.h"

enum { MOVE_REACH = 6, MOVE_EXTRA = 15 };

static bool edits_host_is_work(const struct host_op *op)
{
    return op_is_stream_work(op->kind);
}

/* ---- ranks that run the same program --------------------------------------------------------- */

static bool is_like_op(const struct host_op *a, const struct host_op *b)
{
    return a->kind == b->kind && a->stream == b->stream && a->comm == b->comm &&
           host_op_part_count(a) == host_op_part_count(b) &&
           ((a->kind != OP_LAUNCH && a->kind != OP_COLLECTIVE) || equal_text(a->name, b->name));
}

static bool edits_host_repeats_alike(const struct host_thread *a, const struct host_thread *b)
{
    if (a->repeat_count != b->repeat_count)
        return false;
    for (size_t i = 0; i < a->repeat_count; i++)
        if (a->repeats[i].first != b->repeats[i].first ||
            a->repeats[i].length != b->repeats[i].length ||
            a->repeats[i].times != b->repeats[i].times)
            return false;
    return true;
}

/* True if two threads of different ranks, or one and the same, do the same in the same order. Messages have other names
   on the other side. */
static bool is_like(const struct host_thread *a, const struct host_thread *b)
{
    if (a == b)
        return true;
    if (a->rank == b->rank || a->op_count != b->op_count || strcmp(a->name, b->name) != 0 ||
        !edits_host_repeats_alike(a, b))
        return false;
    for (size_t i = 0; i < a->op_count; i++)
        if (!is_like_op(&a->ops[i], &b->ops[i]))
            return false;
    return true;
}

int edits_like_on_rank(const struct plan *plan, int t, int rank)
{
    ASSERT_INDEX(t, plan->thread_count);
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

/* True if a rank does something else than thread `t` and its twins: then it is likelier that this rank is wrong. */
static bool has_odd_rank(const struct proposer *proposer, int t)
{
    int ranks = 1;
    for (int twin = proposer->next_alike[t]; twin != t; twin = proposer->next_alike[twin])
        ranks++;
    return ranks < proposer->plan->ranks;
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
static bool edits_host_is_far(const struct proposer *proposer, int t, size_t i)
{
    return nearest_twin(proposer, t, i) > NEAR_ENOUGH;
}

/* Propose `edit` of thread edit.a for all ranks alike where there are several, and for this one. Where an order is
   missing, ranks that run one program stay alike. */
static void propose_both(struct proposer *proposer, struct edit edit, size_t i, int extra,
                         int alone)
{
    if (has_twins(proposer, edit.a)) {
        edit.everywhere = true;
        propose(proposer, edit, nearest_twin(proposer, edit.a, i),
                extra + has_odd_rank(proposer, edit.a));
        edit.everywhere = false;
        extra += alone;
        if (!proposer->hang)
            return;
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

/* `first` stands before `second`: true if an order is lost when they change places. */
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
        return edits_host_is_work(first) && first->stream == second->stream;
    return first->kind == OP_WAIT && edits_host_is_work(second) && first->stream == second->stream;
}

static bool move_loses(const struct host_thread *thread, size_t from, size_t to)
{
    ASSERT_INDEX(from, thread->op_count);
    for (size_t i = to; i < from; i++)
        if (crossing_loses(&thread->ops[i], &thread->ops[from]))
            return true;
    for (size_t i = from + 1; i <= to; i++)
        if (crossing_loses(&thread->ops[from], &thread->ops[i]))
            return true;
    return false;
}

/* True if the operation has branches, or ends one. No edit moves such an operation. */
static bool is_of_branches(const struct host_op *op)
{
    return op->has_branches || op_ends_branch(op->kind);
}

/* A sync of the whole device orders all that comes before it: what it was put there for is not known. */
static bool edits_host_stays(const struct host_op *op)
{
    return is_of_branches(op) || host_op_syncs(op, SYNC_DEVICE);
}

/* In or out of a branch an operation would be done in other runs. */
static bool crosses_branches(const struct host_thread *thread, size_t from, size_t to)
{
    const size_t first = from < to ? from : to, last = from < to ? to : from;
    for (size_t i = first; i <= last; i++)
        if (is_of_branches(&thread->ops[i]))
            return true;
    return false;
}

/* A swap of neighbours is "the later one first"; farther away both directions count. Rank 0 is what
   others are made like. */
static void propose_moves(struct proposer *proposer, int t)
{
    ASSERT_INDEX(t, proposer->plan->thread_count);
    const struct host_thread *thread = &proposer->plan->threads[t];
    for (size_t i = 0; i < thread->op_count; i++)
        for (int by = -MOVE_REACH; by <= MOVE_REACH; by++) {
            int to = (int)i + by;
            if (by == 0 || by == 1 || to < 0 || to >= (int)thread->op_count ||
                edits_host_stays(&thread->ops[i]) ||
                edits_piece(thread, i) != edits_piece(thread, (size_t)to) ||
                crosses_branches(thread, i, (size_t)to))
                continue;
            int places = by < 0 ? -by : by;
            propose_both(proposer,
                         (struct edit){.kind = EDIT_MOVE,
                                       .a = t,
                                       .b = (int)i,
                                       .to = to,
                                       .weakens = move_loses(thread, i, (size_t)to)},
                         i, MOVE_EXTRA * (places - 1) + (thread->rank == 0), 0);
        }
}

/* ---- synchronisation ------------------------------------------------------------------------- */

/* From operation i to the next time that the thread comes to operation k: in a repeat that may be in the next
   iteration. FAR_AWAY: it does not. */
static int edits_host_way(const struct host_thread *thread, size_t i, size_t k)
{
    if (k > i)
        return (int)(k - i);
    const size_t piece = edits_piece(thread, i);
    if (piece % 2 == 0 || piece != edits_piece(thread, k))
        return FAR_AWAY;
    return (int)(thread->repeats[piece / 2].length - (i - k));
}

/* The edit that orders operation k of a thread behind its operation i, if there is one: work waits for an event, one
   that is there if i is a record, or one that is put behind other work or an allocation; the CPU waits for a record. */
static enum edit_kind edits_host_order_kind(const struct host_thread *thread, size_t i, size_t k)
{
    ASSERT_INDEX(i, thread->op_count);
    ASSERT_INDEX(k, thread->op_count);
    const struct host_op *first = &thread->ops[i], *second = &thread->ops[k];
    const bool source = edits_host_is_work(first) || first->kind == OP_ALLOC;
    if (first->kind == OP_RECORD && (op_is_cpu_work(second->kind) || gives_turn(second)))
        return EDIT_SYNC_EVENT;
    if (!edits_host_is_work(second) || first->stream == second->stream)
        return EDIT_COUNT;
    return first->kind == OP_RECORD ? EDIT_WAIT_EVENT : source ? EDIT_EVENT : EDIT_COUNT;
}

/* The nearer of the two in the program text is the likelier. */
static void propose_events(struct proposer *proposer, int t)
{
    ASSERT_INDEX(t, proposer->plan->thread_count);
    const struct host_thread *thread = &proposer->plan->threads[t];
    for (size_t i = 0; i < thread->op_count; i++)
        for (size_t k = 0; k < thread->op_count; k++) {
            const int way = edits_host_way(thread, i, k);
            const enum edit_kind kind = way <= 3 * NEAR_ENOUGH && way > 0
                                            ? edits_host_order_kind(thread, i, k)
                                            : EDIT_COUNT;
            if (kind == EDIT_COUNT)
                continue;
            int far = proposer->near[t][k];
            propose_both(proposer, (struct edit){.kind = kind, .a = t, .b = (int)i, .c = (int)k}, i,
                         2 * (far < FAR_AWAY ? far : NEAR_ENOUGH) + way, 5);
        }
}

/* A wait that may come before its record needs a signal in between; two threads that fill one
   stream need an order. */
static int signal_extra(const struct host_op *first, const struct host_op *second)
{
    if (first->kind == OP_RECORD && second->kind == OP_WAIT && first->object == second->object)
        return -12;
    if (edits_host_is_work(first) && edits_host_is_work(second) && first->stream == second->stream)
        return -25;
    return op_pushes(first->kind) && op_pushes(second->kind) ? 0 : 10;
}

static void propose_signals(struct proposer *proposer, int t, int u)
{
    ASSERT_INDEX(t, proposer->plan->thread_count);
    ASSERT_INDEX(u, proposer->plan->thread_count);
    const struct host_thread *from = &proposer->plan->threads[t], *to = &proposer->plan->threads[u];
    if (t == u || from->rank != to->rank)
        return;
    for (size_t i = 0; i < from->op_count; i++)
        for (size_t k = 0; k < to->op_count; k++) {
            int far = proposer->near[u][k];
            if (far > NEAR_ENOUGH || from->ops[i].kind == OP_LOCK ||
                op_ends_branch(from->ops[i].kind) || op_ends_branch(to->ops[k].kind))
                continue;
            propose_both(
                proposer,
                (struct edit){.kind = EDIT_SIGNAL, .a = t, .b = (int)i, .c = (int)k, .to = u}, i,
                2 * far + signal_extra(&from->ops[i], &to->ops[k]) + (t > u ? 4 : 0), 5);
        }
}

/* The first and the last push to the stream; false: there is none. */
static bool edits_host_pushes(const struct host_thread *thread, int stream, size_t *first,
                              size_t *last)
{
    *first = thread->op_count;
    *last = 0;
    for (size_t i = 0; i < thread->op_count; i++)
        if (op_pushes(thread->ops[i].kind) && thread->ops[i].stream == stream) {
            *first = *first == thread->op_count ? i : *first;
            *last = i;
        }
    return *first < thread->op_count;
}

static bool edits_host_pushes_to(const struct host_thread *thread, int stream)
{
    size_t first, last;
    return edits_host_pushes(thread, stream, &first, &last);
}

/* A lock is given back as often as it is taken. */
static bool edits_host_can_lock(const struct host_thread *thread, int stream)
{
    size_t first, last;
    return edits_host_pushes(thread, stream, &first, &last) &&
           edits_piece(thread, first) == edits_piece(thread, last);
}

static void propose_locks(struct proposer *proposer, int t, int u)
{
    const struct plan *plan = proposer->plan;
    ASSERT_INDEX(u, plan->thread_count);
    if (t >= u || plan->threads[t].rank != plan->threads[u].rank)
        return;
    for (int stream = 0; stream < (int)plan->streams.count; stream++)
        if (edits_host_can_lock(&plan->threads[t], stream) &&
            edits_host_can_lock(&plan->threads[u], stream))
            propose(proposer, (struct edit){.kind = EDIT_LOCK, .a = t, .b = stream, .to = u}, 0, 0);
}

/* ---- streams, communicators, messages -------------------------------------------------------- */

/* Work takes the records right behind it along: they are about it. */
static size_t records_behind(const struct host_thread *thread, size_t i)
{
    size_t end = i;
    ASSERT_INDEX(i, thread->op_count);
    while (edits_host_is_work(&thread->ops[i]) && end + 1 < thread->op_count &&
           thread->ops[end + 1].kind == OP_RECORD &&
           thread->ops[end + 1].stream == thread->ops[i].stream)
        end++;
    return end;
}

/* True if there is a sync or record behind, or a wait in front, that work from `first` to `last` escapes on another
   stream. */
static bool leaving_loses(const struct host_thread *thread, size_t first, size_t last)
{
    ASSERT_INDEX(first, thread->op_count);
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
    ASSERT_INDEX(t, plan->thread_count);
    const struct host_thread *thread = &plan->threads[t];
    struct edit edit = {.kind = EDIT_OP_STREAM, .a = t, .b = (int)i, .c = (int)i};
    edit.weakens = proposer->hang;
    ASSERT_INDEX(i, thread->op_count);
    for (; edit.to < (int)plan->streams.count; edit.to++)
        if (edit.to != thread->ops[i].stream && edits_host_pushes_to(thread, edit.to))
            propose_both(proposer, edit, i, proposer->hang ? 0 : -25, 2);
}

/* Work may stand behind unrelated work: move it to a stream of its own, or to another one of the plan,
   where it is in order with the work there. */
static void propose_work_streams(struct proposer *proposer, int t, size_t i)
{
    const struct plan *plan = proposer->plan;
    ASSERT_INDEX(t, plan->thread_count);
    const struct host_thread *thread = &plan->threads[t];
    size_t last = records_behind(thread, i);
    bool loses = leaving_loses(thread, i, last);
    struct edit edit = {.kind = EDIT_OP_STREAM, .a = t, .b = (int)i, .c = (int)last};
    edit.weakens = loses;
    edit.alone = true;
    ASSERT_INDEX(i, thread->op_count);
    for (; edit.to < (int)plan->streams.count; edit.to++)
        if (edit.to != thread->ops[i].stream && edits_host_pushes_to(thread, edit.to))
            propose_both(proposer, edit, i, 30, 2);
    edit.to = -1;
    edit.alone = false;
    propose_both(proposer, edit, i, loses ? 30 : 0, 2);
}

static void propose_streams(struct proposer *proposer, int t)
{
    ASSERT_INDEX(t, proposer->plan->thread_count);
    const struct host_thread *thread = &proposer->plan->threads[t];
    for (size_t i = 0; i < thread->op_count && !edits_are_over(proposer); i++)
        if (edits_host_is_far(proposer, t, i))
            continue;
        else if (thread->ops[i].kind == OP_RECORD || thread->ops[i].kind == OP_WAIT)
            propose_marker_streams(proposer, t, i);
        else if (edits_host_is_work(&thread->ops[i]))
            propose_work_streams(proposer, t, i);
}

static void propose_comms(struct proposer *proposer, int t)
{
    ASSERT_INDEX(t, proposer->plan->thread_count);
    const struct host_thread *thread = &proposer->plan->threads[t];
    for (size_t i = 0; i < thread->op_count; i++)
        if (thread->ops[i].kind == OP_COLLECTIVE && !host_op_process_group(&thread->ops[i]))
            propose(proposer, (struct edit){.kind = EDIT_OP_COMM, .a = t, .b = (int)i},
                    proposer->near[t][i], 0);
}

static void propose_joins(struct proposer *proposer, int t)
{
    ASSERT_INDEX(t, proposer->plan->thread_count);
    const struct host_thread *thread = &proposer->plan->threads[t];
    for (size_t i = 0; i + 1 < thread->op_count; i++) {
        const struct host_op *first = &thread->ops[i], *second = first + 1;
        if (first->kind == OP_GROUP && second->kind == OP_GROUP && first->comm == second->comm &&
            first->stream == second->stream && edits_piece(thread, i) == edits_piece(thread, i + 1))
            propose_both(proposer,
                         (struct edit){.kind = EDIT_JOIN, .a = t, .b = (int)i, .c = (int)i + 1}, i,
                         has_twins(proposer, t) ? 0 : 18, 18);
    }
}

/* ---- memory, queues, removal ----------------------------------------------------------------- */

static bool uses(const struct host_op *op, int buffer)
{
    bool any =
        index_list_has(host_op_reads(op), buffer) || index_list_has(host_op_writes(op), buffer);
    for (size_t i = 0; i < host_op_part_count(op); i++)
        any |= index_list_has(&op->parts[i].reads, buffer) ||
               index_list_has(&op->parts[i].writes, buffer);
    return any;
}

/* The streams that use the buffer freed at (t, i). */
static void propose_before_free(struct proposer *proposer, int t, size_t i)
{
    ASSERT_INDEX(t, proposer->plan->thread_count);
    const struct host_thread *thread = &proposer->plan->threads[t];
    ASSERT_INDEX(i, thread->op_count);
    int buffer = thread->ops[i].object;
    for (size_t k = 0; k < thread->op_count; k++) {
        const struct host_op *user = &thread->ops[k];
        if (user->stream < 0 || !op_pushes(user->kind) || !uses(user, buffer) ||
            edits_host_way(thread, k, i) == FAR_AWAY)
            continue;
        struct edit edit = {.a = t, .b = (int)i, .c = buffer, .to = user->stream};
        edit.kind = EDIT_RECORD_STREAM;
        propose_both(proposer, edit, i, 0, 2);
        edit.kind = EDIT_SYNC_BEFORE;
        propose_both(proposer, edit, i, 0, 2);
    }
}

static bool edits_host_shares_buffer(const struct host_op *user, const struct index_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (uses(user, list->items[i]))
            return true;
    return false;
}

/* The CPU work at (t, i) accesses what work of a stream does: wait for the stream, once for each. What other threads
   do behind (t, i), which lets them go on, is to come after the suspects of its own. */
static void propose_before_access(struct proposer *proposer, int t, size_t i)
{
    ASSERT_INDEX(t, proposer->plan->thread_count);
    const struct host_thread *thread = &proposer->plan->threads[t];
    ASSERT_INDEX(i, thread->op_count);
    const struct host_op *own = &thread->ops[i];
    const bool gives = gives_turn(own);
    int last = -1;
    for (size_t n = 1; n < thread->op_count; n++) { /* backwards from i, and on from the end */
        const size_t k = (i + thread->op_count - n) % thread->op_count;
        const struct host_op *user = &thread->ops[k];
        if (user->stream < 0 || user->stream == last || !op_pushes(user->kind) ||
            edits_host_way(thread, k, i) == FAR_AWAY ||
            !(gives ? proposer->near[t][k] == 0 && edits_host_is_work(user)
                    : edits_host_shares_buffer(user, host_op_reads(own)) ||
                          edits_host_shares_buffer(user, host_op_writes(own))))
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
    ASSERT_INDEX(t, plan->thread_count);
    const struct host_thread *thread = &plan->threads[t];
    for (size_t i = 0; i < thread->op_count; i++) {
        const struct host_op *op = &thread->ops[i];
        int near = proposer->near[t][i];
        if (op->kind == OP_FREE)
            propose_before_free(proposer, t, i);
        if ((op_is_cpu_work(op->kind) || (gives_turn(op) && !proposer->hang)) &&
            !edits_host_is_far(proposer, t, i))
            propose_before_access(proposer, t, i);
        for (int more = 1; op->kind == OP_PUT && more <= 2; more++)
            propose(proposer,
                    (struct edit){.kind = EDIT_QUEUE_CAPACITY,
                                  .a = op->object,
                                  .to = plan->queues[op->object].capacity + more},
                    near, 2 * more);
        if (op->kind != OP_LAUNCH && op->kind != OP_COPY && !op_is_cpu_work(op->kind) &&
            !is_of_branches(op))
            propose(proposer,
                    (struct edit){.kind = EDIT_REMOVE_OP, .a = t, .b = (int)i, .weakens = true},
                    near, 0);
    }
}

void propose_host(struct proposer *proposer)
{
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

/* Of threads alike the first stands for all. */
static bool is_first_alike(const struct proposer *proposer, int t)
{
    for (int twin = proposer->next_alike[t]; twin != t; twin = proposer->next_alike[twin])
        if (twin < t)
            return false;
    return true;
}

void propose_faster(struct proposer *proposer)
{
    if (!find_alike(proposer))
        return;
    for (int t = 0; t < (int)proposer->plan->thread_count && !edits_are_over(proposer); t++) {
        const struct host_thread *thread = &proposer->plan->threads[t];
        if (!is_first_alike(proposer, t))
            continue;
        propose_moves(proposer, t);
        propose_streams(proposer, t);
        for (size_t i = 0; i < thread->op_count; i++) {
            if (thread->ops[i].kind != OP_SYNC && thread->ops[i].kind != OP_WAIT)
                continue;
            if (thread->ops[i].kind == OP_SYNC)
                propose_both(proposer, (struct edit){.kind = EDIT_UNSYNC, .a = t, .b = (int)i}, i,
                             0, 0);
            propose_both(proposer, (struct edit){.kind = EDIT_REMOVE_OP, .a = t, .b = (int)i}, i, 0,
                         0);
        }
    }
}

/* ---- edits, made and described --------------------------------------------------------------- */

/* The repeats when an operation is put to `at`, beside operation `beside`. */
static void edits_host_widen(struct host_thread *thread, size_t at, size_t beside)
{
    for (size_t r = 0; r < thread->repeat_count; r++) {
        struct repeat *repeat = &thread->repeats[r];
        if (beside >= repeat->first && beside < repeat->first + repeat->length)
            repeat->length++;
        else if (repeat->first >= at)
            repeat->first++;
    }
}

static struct host_op *edits_host_insert(struct plan *plan, int t, size_t at, size_t beside,
                                         enum op_kind kind)
{
    struct host_thread *thread = &plan->threads[t];
    assert(thread->folded && at <= thread->op_count);
    struct host_op *ops = ARENA_ARRAY(&plan->arena, thread->op_count + 1, struct host_op);
    if (!ops)
        return NULL;
    if (at > 0)
        memcpy(ops, thread->ops, at * sizeof *ops);
    if (thread->op_count > at)
        memcpy(&ops[at + 1], &thread->ops[at], (thread->op_count - at) * sizeof *ops);
    ops[at] = host_op_make(kind);
    thread->ops = ops;
    edits_host_widen(thread, at, beside);
    thread->op_count++;
    return &ops[at];
}

struct host_op *edits_insert_before(struct plan *plan, int t, size_t at, enum op_kind kind)
{
    return edits_host_insert(plan, t, at, at, kind);
}

struct host_op *edits_insert_behind(struct plan *plan, int t, size_t at, enum op_kind kind)
{
    return edits_host_insert(plan, t, at + 1, at, kind);
}

/* Insert an operation of these objects; false without memory. */
static bool insert_on(struct plan *plan, int t, size_t at, enum op_kind kind, int object,
                      int stream)
{
    struct host_op *op = edits_insert_before(plan, t, at, kind);
    if (!op)
        return false;
    op->object = object;
    op->stream = stream;
    return true;
}

/* The index of a name that none of the table has yet, from this one on; -1 without memory. */
static int intern_fresh(struct plan *plan, struct names *names, const char *wanted)
{
    const char *name = wanted ? fresh_name(plan, names, wanted) : NULL;
    return name ? names_intern(names, &plan->arena, name) : -1;
}

/* A repeat without operations goes. */
static void edits_host_narrow(struct host_thread *thread, size_t at)
{
    size_t kept = 0;
    for (size_t r = 0; r < thread->repeat_count; r++) {
        struct repeat repeat = thread->repeats[r];
        if (at >= repeat.first && at < repeat.first + repeat.length)
            repeat.length--;
        else if (repeat.first > at)
            repeat.first--;
        if (repeat.length > 0)
            thread->repeats[kept++] = repeat;
    }
    thread->repeat_count = kept;
}

/* Where edits before this one have moved others, what has branches may stand there: it stays. */
static void remove_op(struct host_thread *thread, size_t at)
{
    ASSERT_INDEX(at, thread->op_count);
    if (is_of_branches(&thread->ops[at]))
        return;
    edits_host_narrow(thread, at);
    memmove(&thread->ops[at], &thread->ops[at + 1],
            (thread->op_count - at - 1) * sizeof *thread->ops);
    thread->op_count--;
}

/* The name of an operation, without its kind; for new names. */
static const char *stem_of(const struct plan *plan, const struct host_op *op)
{
    if (op->name)
        return op->name;
    if (host_op_part_count(op) > 0)
        return op->parts[0].tag;
    if (edits_is_event_op(op) && op->object >= 0)
        return plan->events.items[op->object];
    return op_key(op->kind);
}

static bool insert_event(struct plan *plan, int t, size_t first, size_t second, int event)
{
    ASSERT_INDEX(t, plan->thread_count);
    int from = plan->threads[t].ops[first].stream, to = plan->threads[t].ops[second].stream;
    if (!insert_on(plan, t, second, OP_WAIT, event, to))
        return false;
    struct host_op *record = edits_insert_behind(plan, t, first + (second < first), OP_RECORD);
    if (!record)
        return false;
    record->object = event;
    record->stream = from;
    return true;
}

/* Events belong to a rank: the same name will do on another. */
static bool edits_host_has_event(const struct plan *plan, int rank, int event)
{
    for (size_t t = 0; t < plan->thread_count; t++)
        for (size_t i = 0; plan->threads[t].rank == rank && i < plan->threads[t].op_count; i++)
            if (edits_is_event_op(&plan->threads[t].ops[i]) &&
                plan->threads[t].ops[i].object == event)
                return true;
    return false;
}

static bool apply_event(struct plan *plan, int t, const struct edit *edit)
{
    ASSERT_INDEX(t, plan->thread_count);
    const struct host_thread *thread = &plan->threads[t];
    const char *stem = stem_of(plan, &plan->threads[edit->a].ops[edit->b]);
    const char *wanted = arena_printf(&plan->arena, "%s_done", stem), *name = wanted;
    int event = wanted ? names_find(&plan->events, wanted) : -1;
    if (wanted && event >= 0 && edits_host_has_event(plan, thread->rank, event))
        name = fresh_name(plan, &plan->events, wanted);
    event = name ? names_intern(&plan->events, &plan->arena, name) : -1;
    return event >= 0 && insert_event(plan, t, (size_t)edit->b, (size_t)edit->c, event);
}

static bool apply_signal(struct plan *plan, int t, int u, const struct edit *edit)
{
    ASSERT_INDEX(t, plan->thread_count);
    const struct host_thread *thread = &plan->threads[t];
    const int flag = intern_fresh(plan, &plan->flags,
                                  arena_printf(&plan->arena, "r%d_%s_issued", thread->rank,
                                               stem_of(plan, &thread->ops[edit->b])));
    if (flag < 0 || !insert_on(plan, u, (size_t)edit->c, OP_AWAIT, flag, -1))
        return false;
    struct host_op *signal = edits_insert_behind(plan, t, (size_t)edit->b, OP_SIGNAL);
    if (!signal)
        return false;
    signal->object = flag;
    return true;
}

/* From the first push to the stream to the last. */
static bool edits_host_wrap(struct plan *plan, int t, int stream, int lock)
{
    size_t first, last = 0;
    ASSERT_INDEX(t, plan->thread_count);
    if (!edits_host_pushes(&plan->threads[t], stream, &first, &last))
        return true;
    struct host_op *unlock = edits_insert_behind(plan, t, last, OP_UNLOCK);
    if (!unlock)
        return false;
    unlock->object = lock;
    return insert_on(plan, t, first, OP_LOCK, lock, -1);
}

static bool apply_lock(struct plan *plan, const struct edit *edit)
{
    const int lock = intern_fresh(
        plan, &plan->locks, arena_printf(&plan->arena, "%s_turn", plan->streams.items[edit->b]));
    return lock >= 0 && edits_host_wrap(plan, edit->a, edit->b, lock) &&
           edits_host_wrap(plan, edit->to, edit->b, lock);
}

static bool apply_join(struct plan *plan, int t, const struct edit *edit)
{
    ASSERT_INDEX(t, plan->thread_count);
    struct host_thread *thread = &plan->threads[t];
    struct host_op *into = &thread->ops[edit->b];
    const struct host_op *from = &thread->ops[edit->c];
    size_t count = into->part_count + from->part_count;
    struct p2p_part *parts = ARENA_ARRAY(&plan->arena, count, struct p2p_part);
    if (!parts)
        return false;
    memcpy(parts, into->parts, into->part_count * sizeof *parts);
    memcpy(parts + into->part_count, from->parts, from->part_count * sizeof *parts);
    into->parts = parts;
    into->part_count = count;
    remove_op(thread, (size_t)edit->c);
    return true;
}

/* The name of a stream that only this operation has: the same on every rank. */
static int edits_host_own_stream(struct plan *plan, const struct edit *edit)
{
    const char *old = plan->streams.items[plan->threads[edit->a].ops[edit->b].stream];
    return intern_fresh(plan, &plan->streams, arena_printf(&plan->arena, "%s_2", old));
}

static bool apply_comm(struct plan *plan, const struct edit *edit)
{
    const struct host_op like = plan->threads[edit->a].ops[edit->b];
    struct comm *comms = ARENA_ARRAY(&plan->arena, plan->comm_count + 1, struct comm);
    if (!comms)
        return false;
    memcpy(comms, plan->comms, plan->comm_count * sizeof *comms);
    struct comm *added = &comms[plan->comm_count];
    *added = comms[like.comm];
    added->name = arena_printf(&plan->arena, "%s_%s", comms[like.comm].name, like.name);
    for (size_t t = 0; t < plan->thread_count; t++)
        for (size_t i = 0; i < plan->threads[t].op_count; i++) {
            struct host_op *op = &plan->threads[t].ops[i];
            if (op->kind == OP_COLLECTIVE && op->comm == like.comm &&
                equal_text(op->name, like.name))
                op->comm = (int)plan->comm_count;
        }
    plan->comms = comms;
    plan->comm_count++;
    return added->name != NULL;
}

static bool apply_move(struct plan *plan, int t, const struct edit *edit)
{
    struct host_op kept;
    ASSERT_INDEX(t, plan->thread_count);
    if (is_of_branches(&plan->threads[t].ops[edit->b]))
        return true;
    shift_item(plan->threads[t].ops, sizeof kept, (size_t)edit->b, (size_t)edit->to, &kept);
    return true;
}

static bool apply_op_stream(struct plan *plan, int t, const struct edit *edit, int stream)
{
    ASSERT_INDEX(t, plan->thread_count);
    for (int i = edit->b; i <= edit->c; i++)
        plan->threads[t].ops[i].stream = stream;
    return true;
}

static bool apply_before_free(struct plan *plan, int t, const struct edit *edit)
{
    bool sync = edit->kind == EDIT_SYNC_BEFORE;
    struct host_op *op =
        edits_insert_before(plan, t, (size_t)edit->b, sync ? OP_SYNC : OP_RECORD_STREAM);
    if (!op)
        return false;
    op->stream = edit->to;
    if (sync)
        op->sync = SYNC_STREAM;
    else
        op->object = edit->c;
    return true;
}

/* Of the event that record b has. */
static bool apply_event_wait(struct plan *plan, int t, const struct edit *edit)
{
    ASSERT_INDEX(t, plan->thread_count);
    const struct host_thread *thread = &plan->threads[t];
    const int event = thread->ops[edit->b].object, stream = thread->ops[edit->c].stream;
    const bool sync = edit->kind == EDIT_SYNC_EVENT;
    struct host_op *op = edits_insert_before(plan, t, (size_t)edit->c, sync ? OP_SYNC : OP_WAIT);
    if (!op)
        return false;
    op->object = event;
    op->stream = sync ? -1 : stream;
    if (sync)
        op->sync = SYNC_EVENT;
    return true;
}

/* True if the thread pushes work to the stream behind operation `at` (else: in front of it). In a repeat an operation
   comes on both sides. */
static bool pushes_there(const struct host_thread *thread, size_t at, int stream, bool behind)
{
    for (size_t i = 0; i < thread->op_count; i++)
        if (edits_host_is_work(&thread->ops[i]) && thread->ops[i].stream == stream &&
            (behind ? edits_host_way(thread, at, i) : edits_host_way(thread, i, at)) < FAR_AWAY)
            return true;
    return false;
}

/* In front of operation `at`, which moves on: the streams that the thread pushes to behind it wait for the event. */
static bool insert_waits(struct plan *plan, int t, size_t *at, int event, int recorded_on)
{
    for (int stream = 0; stream < (int)plan->streams.count; stream++) {
        if (stream == recorded_on || !pushes_there(&plan->threads[t], *at, stream, true))
            continue;
        if (!insert_on(plan, t, *at, OP_WAIT, event, stream))
            return false;
        ++*at;
    }
    return true;
}

/* The event of a place in the stream, which others wait for. */
static bool insert_reached(struct plan *plan, int t, size_t *at, int stream)
{
    ASSERT_INDEX(stream, plan->streams.count);
    const int event = intern_fresh(
        plan, &plan->events, arena_printf(&plan->arena, "%s_reached", plan->streams.items[stream]));
    if (event < 0 || !insert_on(plan, t, *at, OP_RECORD, event, stream))
        return false;
    ++*at;
    return insert_waits(plan, t, at, event, stream);
}

/* The streams that the thread pushes to behind the sync wait in its place for the work that it waits for. */
static bool apply_unsync(struct plan *plan, int t, const struct edit *edit)
{
    size_t at = (size_t)edit->b;
    ASSERT_INDEX(t, plan->thread_count);
    const struct host_op sync = plan->threads[t].ops[at];
    const int streams = (int)plan->streams.count;
    bool good = sync.kind != OP_SYNC || sync.sync != SYNC_EVENT ||
                insert_waits(plan, t, &at, sync.object, -1);
    for (int stream = 0;
         good && sync.kind == OP_SYNC && sync.sync != SYNC_EVENT && stream < streams; stream++)
        if (sync.sync == SYNC_STREAM ? stream == sync.stream
                                     : pushes_there(&plan->threads[t], at, stream, false))
            good = insert_reached(plan, t, &at, stream);
    if (good && sync.kind == OP_SYNC)
        remove_op(&plan->threads[t], at);
    return good;
}

/* `to`: the stream or the other thread. */
static bool apply_here(struct plan *plan, int t, const struct edit *edit, int to)
{
    switch (edit->kind) {
    case EDIT_MOVE: return apply_move(plan, t, edit);
    case EDIT_EVENT: return apply_event(plan, t, edit);
    case EDIT_SIGNAL: return apply_signal(plan, t, to, edit);
    case EDIT_JOIN: return apply_join(plan, t, edit);
    case EDIT_OP_STREAM: return apply_op_stream(plan, t, edit, to);
    case EDIT_SAME_CALL:
    case EDIT_ADD_CALL: return apply_call(plan, edit);
    case EDIT_SYNC_BEFORE:
    case EDIT_RECORD_STREAM: return apply_before_free(plan, t, edit);
    case EDIT_UNSYNC: return apply_unsync(plan, t, edit);
    case EDIT_WAIT_EVENT:
    case EDIT_SYNC_EVENT: return apply_event_wait(plan, t, edit);
    default: remove_op(&plan->threads[t], (size_t)edit->b); return true;
    }
}

/* Like threads are found before any thread is changed. */
static bool apply_everywhere(struct plan *plan, const struct edit *edit, int to)
{
    bool pair = edit->kind == EDIT_SIGNAL;
    int *twins = ARENA_ARRAY(&plan->arena, (size_t)plan->ranks, int);
    int *others = ARENA_ARRAY(&plan->arena, (size_t)plan->ranks, int);
    if (!twins || !others)
        return false;
    for (int rank = 0; rank < plan->ranks; rank++) {
        bool home = rank == plan->threads[edit->a].rank;
        twins[rank] = home ? edit->a : edits_like_on_rank(plan, edit->a, rank);
        others[rank] = home || !pair ? to : edits_like_on_rank(plan, to, rank);
    }
    for (int rank = 0; rank < plan->ranks; rank++)
        if (twins[rank] >= 0 && (!pair || others[rank] >= 0) &&
            !apply_here(plan, twins[rank], edit, others[rank]))
            return false;
    return true;
}

bool apply_host(struct plan *plan, const struct edit *edit)
{
    if (edit->kind == EDIT_LOCK)
        return apply_lock(plan, edit);
    if (edit->kind == EDIT_OP_COMM)
        return apply_comm(plan, edit);
    if (edit->kind == EDIT_QUEUE_CAPACITY) {
        plan->queues[edit->a].capacity = edit->to;
        return true;
    }
    int to =
        edit->kind == EDIT_OP_STREAM && edit->to < 0 ? edits_host_own_stream(plan, edit) : edit->to;
    if (edit->kind == EDIT_OP_STREAM && to < 0)
        return false;
    return edit->everywhere ? apply_everywhere(plan, edit, to)
                            : apply_here(plan, edit->a, edit, to);
}

/* ---- in words -------------------------------------------------------------------------------- */

/* What a copy without a name copies, as program_op_subject says it. */
static const char *copy_label(const struct plan *plan, const struct host_op *op,
                              struct arena *arena)
{
    const struct index_list *sides[] = {host_op_reads(op), host_op_writes(op)};
    const char *const words[] = {" of ", " to "}, *text = op_key(op->kind);
    for (int i = 0; i < 2 && text; i++)
        if (sides[i]->count > 0)
            text = arena_printf(arena, "%s%s%s%s", text, words[i],
                                plan->buffers[sides[i]->items[0]].name,
                                sides[i]->count > 1 ? " and others" : "");
    return text;
}

static const char *plain_label(const struct plan *plan, int t, int i, struct arena *arena)
{
    ASSERT_INDEX(t, plan->thread_count);
    const struct host_op *op = &plan->threads[t].ops[i];
    if (op->kind == OP_SYNC)
        return arena_printf(arena, "sync %s",
                            op->sync == SYNC_STREAM  ? plan->streams.items[op->stream]
                            : op->sync == SYNC_EVENT ? plan->events.items[op->object]
                                                     : "device");
    if (op->kind != OP_GROUP) {
        const char *object = plan_object_name(plan, op), *name = object ? object : op->name;
        return name || op->kind != OP_COPY ? arena_printf(arena, "%s%s%s", op_key(op->kind),
                                                          name ? " " : "", name ? name : "")
                                           : copy_label(plan, op, arena);
    }
    const char *text = "";
    for (size_t k = 0; text && k < op->part_count; k++)
        text = arena_printf(arena, "%s%s%s %s", text, k ? " + " : "",
                            op->parts[k].is_collective ? "collective"
                            : op->parts[k].send        ? "send"
                                                       : "recv",
                            op->parts[k].tag);
    return text;
}

/* Of operations with one label: their communicators if these tell them apart, else their place. */
const char *edits_label(const struct plan *plan, int t, int i, struct arena *arena)
{
    ASSERT_INDEX(t, plan->thread_count);
    const struct host_thread *thread = &plan->threads[t];
    ASSERT_INDEX(i, thread->op_count);
    const struct host_op *op = &thread->ops[i];
    const char *text = plain_label(plan, t, i, arena);
    int alike = 0, of_comm = 0;
    if (op->kind != OP_COLLECTIVE && op->kind != OP_GROUP)
        return text;
    for (size_t k = 0; text && k < thread->op_count; k++) {
        if (thread->ops[k].kind != op->kind)
            continue;
        const char *other = plain_label(plan, t, (int)k, arena);
        if (!other || strcmp(other, text) != 0)
            continue;
        alike++;
        of_comm += thread->ops[k].comm == op->comm;
    }
    if (!text || alike < 2)
        return text;
    const char *comm = op->comm >= 0 ? plan->comms[op->comm].name : "world";
    return of_comm < 2 ? arena_printf(arena, "%s of %s", text, comm)
                       : arena_printf(arena, "%s of %s (operation %d)", text, comm, i + 1);
}

/* "rank 1 thread train", "every rank, thread train". */
static const char *where(const struct plan *plan, const struct edit *edit, struct arena *arena)
{
    const struct host_thread *thread = &plan->threads[edit->a];
    if (edit->everywhere)
        return arena_printf(arena, "on every rank, thread %s", thread->name);
    if (plan->ranks == 1)
        return arena_printf(arena, "thread %s", thread->name);
    return arena_printf(arena, "rank %d thread %s", thread->rank, thread->name);
}

static const char *describe_signal(const struct plan *plan, const struct edit *edit,
                                   struct arena *arena)
{
    const struct host_thread *from = &plan->threads[edit->a], *to = &plan->threads[edit->to];
    const char *first = edits_label(plan, edit->a, edit->b, arena);
    const char *second = edits_label(plan, edit->to, edit->c, arena);
    const char *ranks = edit->everywhere   ? "on every rank, "
                        : plan->ranks == 1 ? ""
                                           : arena_printf(arena, "rank %d, ", from->rank);
    return first && second && ranks
               ? arena_printf(arena,
                              "%sthread %s waits before its `%s` until thread %s has issued `%s` "
                              "(signal, await)",
                              ranks, to->name, second, from->name, first)
               : NULL;
}

static const char *describe_move(const struct plan *plan, const struct edit *edit,
                                 const char *place, struct arena *arena)
{
    const char *what = edits_label(plan, edit->a, edit->b, arena);
    const char *other = edits_label(plan, edit->a, edit->to, arena);
    return what && other ? arena_printf(arena, "%s: %s %s %s", place, what,
                                        edit->to < edit->b ? "before" : "after", other)
                         : NULL;
}

static const char *describe_stream(const struct plan *plan, const struct edit *edit,
                                   const char *place, const char *what, struct arena *arena)
{
    const char *old = plan->streams.items[plan->threads[edit->a].ops[edit->b].stream];
    if (edit->to < 0)
        return arena_printf(arena, "%s: %s on a stream of its own instead of %s", place, what, old);
    return arena_printf(arena, "%s: %s on stream %s instead of %s", place, what,
                        plan->streams.items[edit->to], old);
}

static const char *describe_two(const struct plan *plan, const struct edit *edit, const char *place,
                                const char *first, struct arena *arena)
{
    const char *second = edits_label(plan, edit->a, edit->c, arena);
    if (!second)
        return NULL;
    if (edit->kind == EDIT_JOIN)
        return arena_printf(arena, "%s: one group of %s and %s", place, first, second);
    return arena_printf(
        arena, "%s: %s waits for %s: an event recorded behind it on %s, waited for on %s", place,
        second, first, plan->streams.items[plan->threads[edit->a].ops[edit->b].stream],
        plan->streams.items[plan->threads[edit->a].ops[edit->c].stream]);
}

static const char *describe_event_wait(const struct plan *plan, const struct edit *edit,
                                       const char *place, struct arena *arena)
{
    const struct host_thread *thread = &plan->threads[edit->a];
    const char *event = plan->events.items[thread->ops[edit->b].object];
    const char *behind = edits_label(plan, edit->a, edit->c, arena);
    if (!behind)
        return NULL;
    if (edit->kind == EDIT_SYNC_EVENT)
        return arena_printf(arena, "%s: sync event %s before %s", place, event, behind);
    return arena_printf(arena, "%s: %s waits for event %s, which is recorded already: a wait on %s",
                        place, behind, event, plan->streams.items[thread->ops[edit->c].stream]);
}

const char *describe_host(const struct plan *plan, const struct edit *edit, struct arena *arena)
{
    if (edit->kind == EDIT_QUEUE_CAPACITY)
        return arena_printf(arena, "capacity of queue %s: %d instead of %d",
                            plan->queues[edit->a].name, edit->to, plan->queues[edit->a].capacity);
    if (edit->kind == EDIT_SIGNAL)
        return describe_signal(plan, edit, arena);
    if (edit->kind == EDIT_LOCK)
        return arena_printf(arena,
                            "rank %d: threads %s and %s hold a lock while they push to stream %s",
                            plan->threads[edit->a].rank, plan->threads[edit->a].name,
                            plan->threads[edit->to].name, plan->streams.items[edit->b]);
    const char *place = where(plan, edit, arena);
    if (place && (edit->kind == EDIT_SAME_CALL || edit->kind == EDIT_ADD_CALL))
        return describe_call(plan, edit, place, arena);
    const char *what = place ? edits_label(plan, edit->a, edit->b, arena) : NULL;
    if (!what)
        return NULL;
    switch (edit->kind) {
    case EDIT_MOVE: return describe_move(plan, edit, place, arena);
    case EDIT_EVENT:
    case EDIT_JOIN: return describe_two(plan, edit, place, what, arena);
    case EDIT_OP_STREAM: return describe_stream(plan, edit, place, what, arena);
    case EDIT_OP_COMM: return arena_printf(arena, "%s on a communicator of its own", what);
    case EDIT_SYNC_BEFORE:
        return arena_printf(arena, "%s: sync stream %s before %s", place,
                            plan->streams.items[edit->to], what);
    case EDIT_WAIT_EVENT:
    case EDIT_SYNC_EVENT: return describe_event_wait(plan, edit, place, arena);
    case EDIT_UNSYNC:
        return arena_printf(arena, "%s: streams wait in place of the thread, at %s", place, what);
    case EDIT_RECORD_STREAM:
        return arena_printf(arena, "%s: record_stream of %s on %s before %s", place,
                            plan->buffers[edit->c].name, plan->streams.items[edit->to], what);
    default: return arena_printf(arena, "%s: remove %s", place, what);
    }
}
