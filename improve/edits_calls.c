/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edits_calls.c - edits of calls that ranks make together: one that differs becomes as another rank's, and one that is
 * left out is added.
 *
 * The calls of a communicator are counted: the n-th of one rank meets the n-th of the others. A message counts in its
 * channel, and its counterpart is the receive of a send. Only calls that are no parts of a larger group, and of no
 * other rank's device, are copied.
 */
#include "edits_internal.h"
#include "base/array.h"
#include "base/assert_index.h"

#include <inttypes.h>

/* ---- which calls meet ------------------------------------------------------------------------ */

static bool edits_calls_is_message(const struct host_op *op)
{
    return op->kind == OP_GROUP && op->part_count == 1 && !op->parts[0].is_collective;
}

static bool edits_calls_is_collective(const struct host_op *op)
{
    bool all = op->kind == OP_COLLECTIVE || host_op_part_count(op) > 0;
    for (size_t i = 0; i < host_op_part_count(op); i++)
        all &= op->parts[i].is_collective && op->parts[i].comm < 0 && op->parts[i].device == 0;
    return all;
}

static bool edits_calls_is_call(const struct host_op *op)
{
    return (edits_calls_is_collective(op) || edits_calls_is_message(op)) && op->device == 0 &&
           !op->process_group;
}

/* True if the two are counted together: collectives of one communicator, or the two ends of a channel. */
static bool counts_with(const struct host_op *op, int rank, const struct host_op *other,
                        int other_rank)
{
    if (!edits_calls_is_call(other) || other->comm != op->comm ||
        edits_calls_is_message(op) != edits_calls_is_message(other))
        return false;
    if (!edits_calls_is_message(op))
        return true;
    const struct p2p_part *a = &op->parts[0], *b = &other->parts[0];
    return rank == other_rank ? a->send == b->send && a->peer == b->peer
                              : a->send != b->send && a->peer == other_rank && b->peer == rank;
}

/* How many calls of the thread that count with (u, k) stand before it. */
static int edits_calls_count_before(const struct host_thread *of, size_t k)
{
    int count = 0;
    ASSERT_INDEX(k, of->op_count);
    for (size_t i = 0; i < k; i++)
        count += counts_with(&of->ops[k], of->rank, &of->ops[i], of->rank);
    return count;
}

/* Where thread t calls what meets (u, k); its length: nowhere. */
static size_t find_partner(const struct plan *plan, int t, int u, size_t k)
{
    ASSERT_INDEX(t, plan->thread_count);
    ASSERT_INDEX(u, plan->thread_count);
    const struct host_thread *thread = &plan->threads[t], *of = &plan->threads[u];
    int left = edits_calls_count_before(of, k);
    ASSERT_INDEX(k, of->op_count);
    for (size_t i = 0; i < thread->op_count; i++)
        if (counts_with(&of->ops[k], of->rank, &thread->ops[i], thread->rank) && left-- == 0)
            return i;
    return thread->op_count;
}

static bool edits_calls_is_member(const struct plan *plan, int comm, int rank)
{
    const struct comm *of = comm >= 0 ? &plan->comms[comm] : NULL;
    bool found = !of || !of->members;
    for (size_t i = 0; of && of->members && i < of->member_count; i++)
        found |= of->members[i] == rank;
    return found;
}

/* True if a thread's rank may make the call that (u, k) waits for. */
static bool can_make(const struct plan *plan, int t, int u, size_t k)
{
    ASSERT_INDEX(u, plan->thread_count);
    const struct host_op *op = &plan->threads[u].ops[k];
    ASSERT_INDEX(t, plan->thread_count);
    const int rank = plan->threads[t].rank;
    return rank != plan->threads[u].rank && edits_calls_is_call(op) &&
           edits_calls_is_member(plan, op->comm, rank) &&
           (!edits_calls_is_message(op) || op->parts[0].peer == rank);
}

/* ---- calls that differ ----------------------------------------------------------------------- */

static bool is_like_part(const struct p2p_part *a, const struct p2p_part *b)
{
    return a->collective == b->collective && a->bytes == b->bytes && a->root == b->root &&
           equal_text(a->tag, b->tag);
}

static bool is_like_call(const struct host_op *a, const struct host_op *b)
{
    if (a->kind != b->kind || host_op_part_count(a) != host_op_part_count(b) || a->comm != b->comm)
        return false;
    for (size_t i = 0; i < host_op_part_count(a); i++)
        if (!is_like_part(&a->parts[i], &b->parts[i]))
            return false;
    return a->kind == OP_GROUP || (a->collective == b->collective && a->bytes == b->bytes &&
                                   a->root == b->root && equal_text(a->name, b->name));
}

/* ---- proposals ------------------------------------------------------------------------------- */

/* The calls that meet: the n-th of each thread. */
struct edits_calls_meeting {
    size_t *at; /* per thread the operation; its length: it has none; NOT_ASKED: no member */
};
static const size_t NOT_ASKED = SIZE_MAX;

static const struct host_op *edits_calls_call_of(const struct plan *plan,
                                                 const struct edits_calls_meeting *meeting, int t)
{
    ASSERT_INDEX(t, plan->thread_count);
    const struct host_thread *thread = &plan->threads[t];
    return meeting->at[t] < thread->op_count ? &thread->ops[meeting->at[t]] : NULL;
}

static bool find_meeting(const struct proposer *proposer, int u, size_t k,
                         struct edits_calls_meeting *out)
{
    const struct plan *plan = proposer->plan;
    out->at = ARENA_ARRAY(proposer->arena, plan->thread_count, size_t);
    for (int t = 0; out->at && t < (int)plan->thread_count; t++)
        out->at[t] = t == u ? k : can_make(plan, t, u, k) ? find_partner(plan, t, u, k) : NOT_ASKED;
    return out->at != NULL;
}

/* The threads whose call is like that of thread u; 0 if an earlier one is like it. */
static int count_like(const struct plan *plan, const struct edits_calls_meeting *meeting, int u)
{
    int count = 0;
    for (int t = 0; t < (int)plan->thread_count; t++) {
        const struct host_op *op = edits_calls_call_of(plan, meeting, t);
        if (!op || !is_like_call(op, edits_calls_call_of(plan, meeting, u)))
            continue;
        if (t < u)
            return 0;
        count++;
    }
    return count;
}

static int nearer(const struct proposer *proposer, int t, size_t i, int u, size_t k)
{
    ASSERT_INDEX(t, proposer->plan->thread_count);
    const int mine = i < proposer->plan->threads[t].op_count ? proposer->near[t][i] : FAR_AWAY;
    const int theirs = proposer->near[u][k];
    return mine < theirs ? mine : theirs;
}

/* The calls of thread t that count with (u, k). */
static int edits_calls_count_calls(const struct plan *plan, int t, int u, size_t k)
{
    ASSERT_INDEX(t, plan->thread_count);
    ASSERT_INDEX(u, plan->thread_count);
    const struct host_thread *thread = &plan->threads[t], *of = &plan->threads[u];
    int count = 0;
    ASSERT_INDEX(k, of->op_count);
    for (size_t i = 0; i < thread->op_count; i++)
        count += counts_with(&of->ops[k], of->rank, &thread->ops[i], thread->rank);
    return count;
}

static void propose_same(struct proposer *proposer, int t, size_t i, int u, size_t k, int extra)
{
    const struct plan *plan = proposer->plan;
    ASSERT_INDEX(t, plan->thread_count);
    ASSERT_INDEX(u, plan->thread_count);
    if (i < plan->threads[t].op_count && edits_calls_is_call(&plan->threads[t].ops[i]) &&
        edits_calls_is_message(&plan->threads[t].ops[i]) ==
            edits_calls_is_message(&plan->threads[u].ops[k]))
        propose(proposer,
                (struct edit){.kind = EDIT_SAME_CALL, .a = t, .b = (int)i, .c = u, .to = (int)k},
                nearer(proposer, t, i, u, k), extra);
}

/* In front of the call that meets the others now, and in the place that it has on the other rank. */
static void propose_added(struct proposer *proposer, int t, size_t i, int u, size_t k, int extra)
{
    ASSERT_INDEX(t, proposer->plan->thread_count);
    const size_t length = proposer->plan->threads[t].op_count;
    const size_t places[] = {i, k < length ? k : length};
    for (int n = 0; n < (places[0] == places[1] ? 1 : 2); n++)
        propose(
            proposer,
            (struct edit){.kind = EDIT_ADD_CALL, .a = t, .b = (int)places[n], .c = u, .to = (int)k},
            nearer(proposer, t, places[n], u, k), extra + n);
}

/* True if all members of the meeting but one make the same call, `like` of them. */
static bool is_odd_one(const struct plan *plan, const struct edits_calls_meeting *meeting, int like)
{
    enum { MANY = 3 };
    int members = 0;
    for (int t = 0; t < (int)plan->thread_count; t++)
        members += meeting->at[t] != NOT_ASKED;
    return like >= MANY && like == members - 1;
}

/* The others as thread u: the more ranks make the call as it does, the cheaper; rank 0 is what others are made like. A
   single one that differs is the first suspect: it leaves the call out if it makes fewer than u, else it makes another. */
static void propose_as(struct proposer *proposer, const struct edits_calls_meeting *meeting, int u,
                       int like)
{
    enum { MOST = 8, ODD_ONE = -140 };
    const struct plan *plan = proposer->plan;
    const size_t k = meeting->at[u];
    const int first = is_odd_one(plan, meeting, like) ? ODD_ONE : 0;
    for (int t = 0; t < (int)plan->thread_count; t++) {
        const struct host_op *op = edits_calls_call_of(plan, meeting, t);
        if (t == u || meeting->at[t] == NOT_ASKED ||
            (op && is_like_call(op, &plan->threads[u].ops[k])))
            continue;
        const int extra = MOST - (like < MOST ? like : MOST) + (plan->threads[t].rank == 0);
        const bool left_out = first && edits_calls_count_calls(plan, t, u, k) <
                                           edits_calls_count_calls(plan, u, u, k);
        propose_same(proposer, t, meeting->at[t], u, k, extra + (left_out ? 0 : first));
        if (meeting->at[t] != k)
            propose_same(proposer, t, k, u, k, extra + 1);
        propose_added(proposer, t, meeting->at[t], u, k, extra + (left_out ? first : 0));
    }
}

static void propose_meeting(struct proposer *proposer, const struct edits_calls_meeting *meeting,
                            int u)
{
    const struct plan *plan = proposer->plan;
    if (edits_calls_is_message(edits_calls_call_of(plan, meeting, u))) {
        propose_as(proposer, meeting, u, 1);
        return;
    }
    for (int t = 0; t < (int)plan->thread_count; t++) {
        const int like = edits_calls_call_of(plan, meeting, t) ? count_like(plan, meeting, t) : 0;
        if (like > 0)
            propose_as(proposer, meeting, t, like);
    }
}

/* True if (u, k) is in one of them. */
static bool edits_calls_is_done(const struct edits_calls_meeting *done, size_t count, int u,
                                size_t k)
{
    for (size_t i = 0; i < count; i++)
        if (done[i].at[u] == k)
            return true;
    return false;
}

void propose_calls(struct proposer *proposer)
{
    const struct plan *plan = proposer->plan;
    struct edits_calls_meeting *done = NULL, next;
    size_t count = 0, cap = 0;
    for (int u = 0; u < (int)plan->thread_count && !edits_are_over(proposer); u++)
        for (size_t k = 0; k < plan->threads[u].op_count; k++) {
            if (proposer->near[u][k] > NEAR_ENOUGH ||
                !edits_calls_is_call(&plan->threads[u].ops[k]) ||
                edits_calls_is_done(done, count, u, k))
                continue;
            if (!find_meeting(proposer, u, k, &next) ||
                !ARENA_GROW(proposer->arena, done, count, cap))
                return;
            done[count++] = next;
            propose_meeting(proposer, &next, u);
        }
}

/* ---- made ------------------------------------------------------------------------------------ */

/* A copy of (u, k) for another rank: a message is its other end. */
static bool copy_call(struct plan *plan, const struct edit *edit, struct host_op *out)
{
    const struct host_op *from = &plan->threads[edit->c].ops[edit->to];
    *out = *from;
    out->accesses = NULL;
    if (host_op_part_count(from) == 0)
        return true;
    out->parts = ARENA_ARRAY(&plan->arena, from->part_count, struct p2p_part);
    if (!out->parts)
        return false;
    memcpy(out->parts, from->parts, from->part_count * sizeof *from->parts);
    for (size_t i = 0; i < out->part_count; i++)
        out->parts[i].reads = out->parts[i].writes = (struct index_list){0};
    if (edits_calls_is_message(from)) {
        out->parts[0].send = !from->parts[0].send;
        out->parts[0].peer = plan->threads[edit->c].rank;
    }
    return true;
}

bool apply_call(struct plan *plan, const struct edit *edit)
{
    struct host_op copy;
    if (!copy_call(plan, edit, &copy))
        return false;
    struct host_op *op = edit->kind == EDIT_ADD_CALL
                             ? edits_insert_before(plan, edit->a, (size_t)edit->b, copy.kind)
                             : &plan->threads[edit->a].ops[edit->b];
    if (op)
        *op = copy;
    return op != NULL;
}

/* ---- in words -------------------------------------------------------------------------------- */

static int64_t edits_calls_bytes_of(const struct host_op *op)
{
    int64_t sum = host_op_bytes(op);
    for (size_t i = 0; i < host_op_part_count(op); i++)
        sum += op->parts[i].bytes;
    return sum;
}

/* "collective all_reduce of pg0 (32 bytes)" */
static const char *edits_calls_words_of(const struct plan *plan, const struct host_op *op,
                                        struct arena *arena)
{
    const char *comm = op->comm >= 0 ? plan->comms[op->comm].name : "world";
    const char *kind = op->kind == OP_COLLECTIVE || !edits_calls_is_message(op) ? "collective"
                       : op->parts[0].send                                      ? "send"
                                                                                : "recv";
    const char *name = op->kind == OP_COLLECTIVE ? op->name : op->parts[0].tag;
    const char *more = host_op_part_count(op) > 1 ? " and others" : "";
    return edits_calls_bytes_of(op) > 0
               ? arena_printf(arena, "%s %s%s of %s (%" PRId64 " bytes)", kind, name ? name : "",
                              more, comm, edits_calls_bytes_of(op))
               : arena_printf(arena, "%s %s%s of %s", kind, name ? name : "", more, comm);
}

static const char *edits_calls_describe_added(const struct plan *plan, const struct edit *edit,
                                              const char *place, const char *what,
                                              struct arena *arena)
{
    const bool at_end = (size_t)edit->b >= plan->threads[edit->a].op_count;
    const char *next = at_end ? "" : edits_label(plan, edit->a, edit->b, arena);
    const struct host_op *ops = plan->threads[edit->a].ops;
    const char *line = edit->b > 0 ? ops[edit->b - 1].at : NULL;
    return next ? arena_printf(arena, "%s: add %s %s%s%s%s", place, what,
                               at_end ? "at the end" : "before ", next, line ? ", behind " : "",
                               line ? line : "")
                : NULL;
}

const char *describe_call(const struct plan *plan, const struct edit *edit, const char *place,
                          struct arena *arena)
{
    const struct host_op *from = &plan->threads[edit->c].ops[edit->to];
    struct host_op copy = *from;
    struct p2p_part part;
    if (edits_calls_is_message(from)) {
        part = from->parts[0];
        part.send = !part.send;
        copy.parts = &part;
    }
    const char *what = edits_calls_words_of(plan, &copy, arena);
    if (what && edit->kind == EDIT_ADD_CALL)
        return edits_calls_describe_added(plan, edit, place, what, arena);
    const char *old = edits_calls_words_of(plan, &plan->threads[edit->a].ops[edit->b], arena);
    return what && old ? arena_printf(arena, "%s: %s, as rank %d has it, instead of %s", place,
                                      what, plan->threads[edit->c].rank, old)
                       : NULL;
}
