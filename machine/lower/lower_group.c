/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower_group.c - collectives and groups of host programs.
 *
 *     group: [collective a on A, send b on A, collective c on B, collective d on A]
 *         -->  collective "a + d" on A;  group {send b} on A;  collective "c" on B
 *
 * NCCL launches one kernel for each communicator of a group, in the order in which the group names them
 * first, and in it the collectives before the messages (NVIDIA/nccl src/group.cc, src/enqueue.cc). All
 * collectives of a kernel share its channels, so the other members must have the same ones in the same order:
 * together they are one collective of another name.
 */
#include "lower.h"
#include "base/array.h"
#include "plan/group_names.h"

/* ---- communication --------------------------------------------------------------------------- */

static int part_comm(const struct host_op *group, const struct p2p_part *part)
{
    return part->comm >= 0 ? part->comm : group->comm;
}

static enum status lower_group_check_member(struct lowering *lowering, int rank, int comm,
                                            struct mark mark)
{
    if (lower_member(lowering, comm, rank) >= 0)
        return STATUS_OK;
    return plan_error_at(
        lowering->plan, lowering->diag, mark,
        "found an operation of rank %d on communicator %s, expected one of its members", rank,
        lowering->plan->comms[comm].name);
}

static enum status check_root(struct lowering *lowering, int comm, int root, struct mark mark)
{
    if (root < 0 || lower_member(lowering, comm, root) >= 0)
        return STATUS_OK;
    return plan_error_at(lowering->plan, lowering->diag, mark,
                         "found root %d, expected a member of communicator %s", root,
                         lowering->plan->comms[comm].name);
}

/* A process group has a stream of its own. */
static int lower_group_stream_of(const struct host_op *op)
{
    return op->process_group ? op->process_group->stream : op->stream;
}

static struct op *emit_comm_op(struct lowering *lowering, enum op_kind kind, int rank, int comm,
                               int plan_stream, const struct host_op *from)
{
    int stream = lower_stream(lowering, rank, plan_stream);
    struct op *op = lower_emit(lowering, kind, from->mark);
    op->name = lower_op_name(lowering, from);
    op->listed = from->listed;
    op->stream = stream;
    op->comm = comm;
    op->member = lower_member(lowering, comm, rank);
    op->time_ns = from->time_ns;
    op->sm = from->sm;
    lower_given(lowering, op, from);
    lower_accesses(lowering, op, rank, host_op_reads(from), host_op_writes(from));
    return op;
}

/* ---- process groups -------------------------------------------------------------------------- */

static void emit_event(struct lowering *lowering, enum op_kind kind, int rank, int event,
                       int plan_stream, struct mark mark)
{
    lower_legacy_begin(lowering, rank, plan_stream, false, mark);
    int stream = lower_stream(lowering, rank, plan_stream);
    struct op *op = lower_emit(lowering, kind, mark);
    op->object = rank * (int)lowering->plan->events.count + event;
    op->stream = stream;
    lower_legacy_end(lowering, rank, plan_stream, false, mark);
}

/* The process group's stream goes on from where the stream of the call is. */
static void enter_process_group(struct lowering *lowering, int rank, const struct host_op *from)
{
    const struct process_group *group = from->process_group;
    if (!group)
        return;
    emit_event(lowering, OP_RECORD, rank, group->ready, from->stream, from->mark);
    emit_event(lowering, OP_WAIT, rank, group->ready, group->stream, from->mark);
}

/* A process group keeps the memory of a call until it is done: the allocator waits for its stream. */
static void lower_group_keep_memory(struct lowering *lowering, int rank,
                                    const struct index_list *list, const struct host_op *from)
{
    int stream = lower_stream(lowering, rank, from->process_group->stream);
    for (size_t i = 0; i < list->count; i++)
        if (lower_frees(lowering, list->items[i])) {
            struct op *op = lower_emit(lowering, OP_RECORD_STREAM, from->mark);
            op->object = rank * (int)lowering->plan->buffer_count + list->items[i];
            op->stream = stream;
        }
}

static void leave_process_group(struct lowering *lowering, int rank, const struct host_op *from)
{
    const struct process_group *group = from->process_group;
    if (!group)
        return;
    emit_event(lowering, OP_RECORD, rank, group->done, group->stream, from->mark);
    lower_group_keep_memory(lowering, rank, host_op_reads(from), from);
    lower_group_keep_memory(lowering, rank, host_op_writes(from), from);
    for (size_t i = 0; i < host_op_part_count(from); i++) {
        lower_group_keep_memory(lowering, rank, &from->parts[i].reads, from);
        lower_group_keep_memory(lowering, rank, &from->parts[i].writes, from);
    }
    if (!group->async)
        emit_event(lowering, OP_WAIT, rank, group->done, from->stream, from->mark);
}

enum status lower_collective(struct lowering *lowering, int home, const struct host_op *from)
{
    int rank = host_op_rank(from, home);
    enum status status = lower_group_check_member(lowering, rank, from->comm, from->mark);
    if (status != STATUS_OK)
        return status;
    if (collective_has_root(from->collective))
        status = check_root(lowering, from->comm, from->root, from->mark);
    if (status != STATUS_OK)
        return status;
    lower_first_use(lowering, &(struct first_use){from->comm, rank, NULL, 0, from->mark});
    lower_alone(lowering, home, from);
    int stream = lower_group_stream_of(from);
    enter_process_group(lowering, rank, from);
    lower_legacy_begin(lowering, rank, stream, false, from->mark);
    struct op *op = emit_comm_op(lowering, OP_COLLECTIVE, rank, from->comm, stream, from);
    lower_root(lowering, op, from->collective, from->root);
    int pushed_to = op->stream;
    lower_legacy_end(lowering, rank, stream, false, from->mark);
    lower_launched(lowering, pushed_to, from->mark);
    leave_process_group(lowering, rank, from);
    return STATUS_OK;
}

/* ---- groups ---------------------------------------------------------------------------------- */

static enum status lower_group_add_message(struct lowering *lowering, struct op *op, int rank,
                                           const struct p2p_part *in)
{
    struct program *program = lowering->program;
    struct part part = {.send = in->send,
                        .metadata = in->metadata,
                        .element = in->element,
                        .listed = in->listed,
                        .bytes = in->bytes};
    part.tag = in->numbered ? in->numbered - 1 : lower_name(lowering, in->tag);
    part.channel =
        lower_channel(lowering, op->comm, in->send ? rank : in->peer, in->send ? in->peer : rank);
    if (!ARENA_GROW(&program->arena, program->parts, program->part_count, program->part_cap))
        return diag_no_memory(lowering->diag);
    program->parts[program->part_count++] = part;
    op->part_count++;
    return STATUS_OK;
}

/* The parts of one communicator and device that are collectives, or messages. */
struct portion {
    const struct host_op *group;
    int home; /* rank of its thread */
    int comm, rank;
    bool collectives;
};

static bool is_of_either(const struct portion *portion, const struct p2p_part *part)
{
    return part_comm(portion->group, part) == portion->comm &&
           p2p_part_rank(portion->group, part, portion->home) == portion->rank;
}

static bool is_of(const struct portion *portion, const struct p2p_part *part)
{
    return is_of_either(portion, part) && part->is_collective == portion->collectives;
}

static size_t portion_count(const struct portion *portion)
{
    size_t count = 0;
    for (size_t i = 0; i < portion->group->part_count; i++)
        count += is_of(portion, &portion->group->parts[i]);
    return count;
}

/* The roots of all, unless a collective without one is among them: then all data go everywhere. */
static void list_roots(struct lowering *lowering, struct op *op, const struct portion *portion)
{
    for (size_t i = 0; i < portion->group->part_count; i++) {
        const struct p2p_part *part = &portion->group->parts[i];
        if (!is_of(portion, part))
            continue;
        lower_root(lowering, op, part->collective, part->root);
        if (!collective_has_root(part->collective)) {
            struct given given = *op->given;
            given.root_count = 0;
            lower_give(lowering, op, given);
            return;
        }
    }
}

/* Several are one with the bytes of all, the kind of the first, and the type of elements that all have; one is what
   it is. */
static enum status list_collectives(struct lowering *lowering, struct op *op,
                                    const struct portion *portion)
{
    struct arena *arena = &lowering->program->arena;
    struct work *work = ARENA_ARRAY(arena, 1, struct work);
    const char *name = "";
    bool single = portion_count(portion) == 1;
    if (!work)
        return diag_no_memory(lowering->diag);
    *work = (struct work){.comm = op->comm, .peer = -1, .root = -1};
    for (size_t i = 0; name && i < portion->group->part_count; i++) {
        const struct p2p_part *part = &portion->group->parts[i];
        if (!is_of(portion, part))
            continue;
        if (work->kind == WORK_NONE) {
            work->collective = part->collective;
            work->element = part->element;
        } else if (work->element != part->element) {
            work->element = ELEMENT_NONE;
        }
        work->kind = WORK_COLLECTIVE;
        work->bytes += part->bytes;
        name = single ? part->tag : group_add_collective(arena, name, part);
    }
    struct given given = *op->given;
    given.bytes = work->bytes;
    given.work = work;
    lower_give(lowering, op, given);
    op->name = lower_name(lowering, name);
    list_roots(lowering, op, portion);
    return STATUS_OK;
}

static enum status list_messages(struct lowering *lowering, struct op *op,
                                 const struct portion *portion)
{
    enum status status = STATUS_OK;
    op->part_first = (int)lowering->program->part_count;
    for (size_t i = 0; status == STATUS_OK && i < portion->group->part_count; i++)
        if (is_of(portion, &portion->group->parts[i]))
            status =
                lower_group_add_message(lowering, op, portion->rank, &portion->group->parts[i]);
    return status;
}

static enum status emit_portion(struct lowering *lowering, const struct portion *portion,
                                bool *first)
{
    const int rank = portion->rank;
    const struct host_op *group = portion->group;
    int stream = lower_group_stream_of(group);
    if (portion_count(portion) == 0)
        return STATUS_OK;
    for (size_t i = 0; !group->process_group && i < group->part_count; i++)
        if (is_of(portion, &group->parts[i]) && group->parts[i].stream >= 0)
            stream = group->parts[i].stream;
    lower_legacy_begin(lowering, rank, stream, false, group->mark);
    struct op *op = emit_comm_op(lowering, portion->collectives ? OP_COLLECTIVE : OP_GROUP, rank,
                                 portion->comm, stream, group);
    op->time_ns = *first ? group->time_ns : 0;
    *first = false;
    for (size_t i = 0; i < group->part_count; i++)
        if (is_of(portion, &group->parts[i]))
            lower_more_accesses(lowering, op, rank, &group->parts[i].reads,
                                &group->parts[i].writes);
    enum status status = portion->collectives ? list_collectives(lowering, op, portion)
                                              : list_messages(lowering, op, portion);
    int pushed_to = op->stream;
    lower_legacy_end(lowering, rank, stream, false, group->mark);
    lower_launched(lowering, pushed_to, group->mark);
    return status;
}

static enum status check_part(struct lowering *lowering, int rank, int comm,
                              const struct p2p_part *part)
{
    enum status status = STATUS_OK;
    if (part->is_collective && collective_has_root(part->collective))
        status = check_root(lowering, comm, part->root, part->mark);
    if (status != STATUS_OK)
        return status;
    if (part->is_collective || lower_member(lowering, comm, part->peer) >= 0)
        return lower_group_check_member(lowering, rank, comm, part->mark);
    return plan_error_at(lowering->plan, lowering->diag, part->mark,
                         "found peer %d on rank %d, expected a member of communicator %s",
                         part->peer, rank, lowering->plan->comms[comm].name);
}

static enum status lower_group_check_parts(struct lowering *lowering, int home,
                                           const struct host_op *group)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < group->part_count; i++) {
        const struct p2p_part *part = &group->parts[i];
        status =
            check_part(lowering, p2p_part_rank(group, part, home), part_comm(group, part), part);
    }
    return status;
}

/* A group is one operation for each of its communicators on each of its devices, in the order in which it
   names them first; its collectives come before its messages (doc/semantics.md, section 3). */
enum status lower_group(struct lowering *lowering, int home, const struct host_op *group)
{
    const int rank = host_op_rank(group, home);
    enum status status = lower_group_check_parts(lowering, home, group);
    if (status != STATUS_OK)
        return status;
    lower_first_use(lowering, &(struct first_use){group->comm, rank, group->parts,
                                                  group->part_count, group->mark});
    lower_alone(lowering, home, group);
    enter_process_group(lowering, rank, group);
    for (size_t i = 0; status == STATUS_OK && i < group->part_count; i++) {
        const struct p2p_part *part = &group->parts[i];
        struct portion portion = {group, home, part_comm(group, part),
                                  p2p_part_rank(group, part, home), true};
        bool seen = false, first = true;
        for (size_t k = 0; k < i; k++)
            seen |= is_of_either(&portion, &group->parts[k]);
        if (seen)
            continue;
        status = emit_portion(lowering, &portion, &first);
        portion.collectives = false;
        if (status == STATUS_OK)
            status = emit_portion(lowering, &portion, &first);
    }
    leave_process_group(lowering, rank, group);
    return status;
}
