/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower_devices.c - one thread that calls NCCL for the devices of several ranks.
 *
 * "Every NCCL call may have to block, waiting for other threads/ranks to arrive, before effectively posting the
 * NCCL operation on the given stream" (NCCL user guide, "Management Of Multiple GPUs From One Thread"): a
 * thread that calls for several ranks of a communicator must do it in one group. A call outside of such a group
 * awaits the calls for the other ranks, which its thread makes only when it returns: a flag that nobody sets.
 */
#include "lower.h"

/* A collective, or a message, of one rank on a communicator. */
struct call {
    int comm, rank;
    int peer; /* a message; -1: a collective */
    bool send;
};

static bool same_call(const struct call *a, const struct call *b)
{
    return a->comm == b->comm && a->rank == b->rank && a->peer == b->peer &&
           (a->peer < 0 || a->send == b->send);
}

static size_t call_count(const struct host_op *op)
{
    return op->kind == OP_GROUP ? op->part_count : op->kind == OP_COLLECTIVE;
}

static struct call call_at(const struct host_op *op, int home, size_t i)
{
    if (op->kind == OP_COLLECTIVE)
        return (struct call){.comm = op->comm, .rank = host_op_rank(op, home), .peer = -1};
    const struct p2p_part *part = &op->parts[i];
    return (struct call){.comm = part->comm >= 0 ? part->comm : op->comm,
                         .rank = p2p_part_rank(op, part, home),
                         .peer = part->is_collective ? -1 : part->peer,
                         .send = part->send};
}

static bool makes(const struct host_op *op, int home, const struct call *call)
{
    for (size_t i = 0; i < call_count(op); i++) {
        struct call made = call_at(op, home, i);
        if (same_call(&made, call))
            return true;
    }
    return false;
}

static bool thread_makes(const struct host_thread *thread, const struct call *call)
{
    for (size_t i = 0; i < thread->op_count; i++)
        if (makes(&thread->ops[i], thread->rank, call))
            return true;
    return false;
}

bool lower_drives_others(const struct host_thread *thread)
{
    for (size_t i = 0; i < thread->op_count; i++)
        for (size_t k = 0; k < call_count(&thread->ops[i]); k++)
            if (call_at(&thread->ops[i], thread->rank, k).rank != thread->rank)
                return true;
    return false;
}

/* The thread makes the call, but not in this group. */
static void await_other(struct lowering *lowering, int home, const struct host_op *op,
                        const struct call *other)
{
    if (makes(op, home, other) || !thread_makes(lowering->driver, other))
        return;
    int flag =
        lower_flag(lowering, arena_printf(&lowering->program->arena,
                                          "the call for rank %d on %s in the same group",
                                          other->rank, lowering->plan->comms[other->comm].name));
    lower_emit(lowering, OP_AWAIT, op->mark)->object = flag;
}

void lower_alone(struct lowering *lowering, int home, const struct host_op *op)
{
    for (size_t i = 0; lowering->driver && i < call_count(op); i++) {
        const struct call call = call_at(op, home, i);
        const struct comm_desc *comm = &lowering->program->comms[call.comm];
        struct call other = {
            .comm = call.comm, .rank = call.peer, .peer = call.rank, .send = !call.send};
        if (call.peer >= 0 && call.peer != call.rank)
            await_other(lowering, home, op, &other);
        for (int m = 0; call.peer < 0 && m < comm->count; m++) {
            other = (struct call){.comm = call.comm, .rank = comm->members[m], .peer = -1};
            await_other(lowering, home, op, &other);
        }
    }
}
