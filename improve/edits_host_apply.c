/* SPDX-License-Identifier: Apache-2.0 */
/* edits_host_apply.c - edits of host programs, made and described. */
#include "edits_internal.h"

#include <string.h>

struct host_op *edits_insert_op(struct plan *plan, int t, size_t at, enum op_kind kind)
{
    struct host_thread *thread = &plan->threads[t];
    struct host_op *ops = ARENA_ARRAY(&plan->arena, thread->op_count + 1, struct host_op);
    if (!ops)
        return NULL;
    if (at > 0)
        memcpy(ops, thread->ops, at * sizeof *ops);
    if (thread->op_count > at)
        memcpy(&ops[at + 1], &thread->ops[at], (thread->op_count - at) * sizeof *ops);
    ops[at] = (struct host_op){.kind = kind, .stream = -1, .object = -1, .comm = -1};
    ops[at].work.comm = ops[at].work.peer = ops[at].work.root = -1;
    thread->ops = ops;
    thread->op_count++;
    return &ops[at];
}

static void remove_op(struct host_thread *thread, size_t at)
{
    memmove(&thread->ops[at], &thread->ops[at + 1],
            (thread->op_count - at - 1) * sizeof *thread->ops);
    thread->op_count--;
}

/* The name of an operation, without its kind; for new names. */
static const char *stem_of(const struct plan *plan, const struct host_op *op)
{
    if (op->name)
        return op->name;
    if (op->part_count > 0)
        return op->parts[0].tag;
    if (edits_is_event_op(op) && op->object >= 0)
        return plan->events.items[op->object];
    return op_key(op->kind);
}

static bool insert_event(struct plan *plan, int t, size_t first, size_t second, int event)
{
    int from = plan->threads[t].ops[first].stream, to = plan->threads[t].ops[second].stream;
    struct host_op *wait = edits_insert_op(plan, t, second, OP_WAIT);
    if (!wait)
        return false;
    wait->object = event;
    wait->stream = to;
    struct host_op *record = edits_insert_op(plan, t, first + 1, OP_RECORD);
    if (!record)
        return false;
    record->object = event;
    record->stream = from;
    return true;
}

/* Events belong to a rank: the same name will do on another. */
static bool has_event(const struct plan *plan, int rank, int event)
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
    const struct host_thread *thread = &plan->threads[t];
    const char *stem = stem_of(plan, &plan->threads[edit->a].ops[edit->b]);
    const char *wanted = arena_printf(&plan->arena, "%s_done", stem), *name = wanted;
    int event = wanted ? names_find(&plan->events, wanted) : -1;
    if (wanted && event >= 0 && has_event(plan, thread->rank, event))
        name = fresh_name(plan, &plan->events, wanted);
    event = name ? names_intern(&plan->events, &plan->arena, name) : -1;
    return event >= 0 && insert_event(plan, t, (size_t)edit->b, (size_t)edit->c, event);
}

static bool apply_signal(struct plan *plan, int t, int u, const struct edit *edit)
{
    const struct host_thread *thread = &plan->threads[t];
    const char *wanted = arena_printf(&plan->arena, "r%d_%s_issued", thread->rank,
                                      stem_of(plan, &thread->ops[edit->b]));
    const char *name = wanted ? fresh_name(plan, &plan->flags, wanted) : NULL;
    int flag = name ? names_intern(&plan->flags, &plan->arena, name) : -1;
    struct host_op *await = flag >= 0 ? edits_insert_op(plan, u, (size_t)edit->c, OP_AWAIT) : NULL;
    if (!await)
        return false;
    await->object = flag;
    struct host_op *signal = edits_insert_op(plan, t, (size_t)edit->b + 1, OP_SIGNAL);
    if (!signal)
        return false;
    signal->object = flag;
    return true;
}

/* From the first push to the stream to the last. */
static bool wrap(struct plan *plan, int t, int stream, int lock)
{
    const struct host_thread *thread = &plan->threads[t];
    size_t first = thread->op_count, last = 0;
    for (size_t i = 0; i < thread->op_count; i++)
        if (op_pushes(thread->ops[i].kind) && thread->ops[i].stream == stream) {
            first = first == thread->op_count ? i : first;
            last = i;
        }
    struct host_op *unlock = edits_insert_op(plan, t, last + 1, OP_UNLOCK);
    if (!unlock)
        return false;
    unlock->object = lock;
    struct host_op *take = edits_insert_op(plan, t, first, OP_LOCK);
    if (!take)
        return false;
    take->object = lock;
    return true;
}

static bool apply_lock(struct plan *plan, const struct edit *edit)
{
    const char *wanted = arena_printf(&plan->arena, "%s_turn", plan->streams.items[edit->b]);
    const char *name = wanted ? fresh_name(plan, &plan->locks, wanted) : NULL;
    int lock = name ? names_intern(&plan->locks, &plan->arena, name) : -1;
    return lock >= 0 && wrap(plan, edit->a, edit->b, lock) && wrap(plan, edit->to, edit->b, lock);
}

static bool apply_join(struct plan *plan, int t, const struct edit *edit)
{
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
static int own_stream(struct plan *plan, const struct edit *edit)
{
    const char *old = plan->streams.items[plan->threads[edit->a].ops[edit->b].stream];
    const char *wanted = arena_printf(&plan->arena, "%s_2", old);
    const char *name = wanted ? fresh_name(plan, &plan->streams, wanted) : NULL;
    return name ? names_intern(&plan->streams, &plan->arena, name) : -1;
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
                edits_same_name(op->name, like.name))
                op->comm = (int)plan->comm_count;
        }
    plan->comms = comms;
    plan->comm_count++;
    return added->name != NULL;
}

static bool apply_move(struct plan *plan, int t, const struct edit *edit)
{
    struct host_op kept;
    shift_item(plan->threads[t].ops, sizeof kept, (size_t)edit->b, (size_t)edit->to, &kept);
    return true;
}

static bool apply_op_stream(struct plan *plan, int t, const struct edit *edit, int stream)
{
    for (int i = edit->b; i <= edit->c; i++)
        plan->threads[t].ops[i].stream = stream;
    return true;
}

static bool apply_before_free(struct plan *plan, int t, const struct edit *edit)
{
    bool sync = edit->kind == EDIT_SYNC_BEFORE;
    struct host_op *op =
        edits_insert_op(plan, t, (size_t)edit->b, sync ? OP_SYNC : OP_RECORD_STREAM);
    if (!op)
        return false;
    op->stream = edit->to;
    if (sync)
        op->sync = SYNC_STREAM;
    else
        op->object = edit->c;
    return true;
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
    int to = edit->kind == EDIT_OP_STREAM && edit->to < 0 ? own_stream(plan, edit) : edit->to;
    if (edit->kind == EDIT_OP_STREAM && to < 0)
        return false;
    return edit->everywhere ? apply_everywhere(plan, edit, to)
                            : apply_here(plan, edit->a, edit, to);
}

/* ---- in words -------------------------------------------------------------------------------- */

static const char *plain_label(const struct plan *plan, int t, int i, struct arena *arena)
{
    const struct host_op *op = &plan->threads[t].ops[i];
    if (op->kind == OP_SYNC)
        return arena_printf(arena, "sync %s",
                            op->sync == SYNC_STREAM  ? plan->streams.items[op->stream]
                            : op->sync == SYNC_EVENT ? plan->events.items[op->object]
                                                     : "device");
    if (op->kind != OP_GROUP) {
        const char *object = plan_object_name(plan, op), *name = object ? object : op->name;
        return arena_printf(arena, "%s%s%s", op_key(op->kind), name ? " " : "", name ? name : "");
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
    const struct host_thread *thread = &plan->threads[t];
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
    case EDIT_RECORD_STREAM:
        return arena_printf(arena, "%s: record_stream of %s on %s before %s", place,
                            plan->buffers[edit->c].name, plan->streams.items[edit->to], what);
    default: return arena_printf(arena, "%s: remove %s", place, what);
    }
}
