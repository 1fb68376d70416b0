/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chakra.h - a host program as an execution trace of Chakra (MLCommons), one file a rank: messages of protobuf, each behind
 * its length, GlobalMetadata first, then the nodes (chakra/schema/protobuf/et_def.proto, version 0.0.4).
 *
 * A call of a thread is a node with is_cpu_op; what it pushes to a stream is one more, for the device. `data_deps` have
 * all of the order: of the calls of a thread, of the operations of a stream, of waits behind records, of syncs behind what
 * they wait for, and of threads behind each other's flags. Attributes beside those of PyTorch's converter (is_cpu_op,
 * stream, comm_type, comm_size, pg_name) keep the call, so that the files can be imported again:
 *
 *     of GlobalMetadata   plan, rank, world_size, launch_queue, unexplained, inputs, unrecorded, process_group.NAME
 *     of a call           call (its key in a plan), thread, label, at, object, sync, stream_name
 *     of device work      duration_ns, stream_name, bytes, direction, op, root, tag, peer, sm, reads, writes
 *
 * Iterations of a repeat are written one by one, and instances of a buffer have their number behind its name.
 */
#ifndef SWSIM_CHAKRA_H
#define SWSIM_CHAKRA_H

#include "plan/plan.h"

/* The numbers of Chakra's node types and kinds of collectives. */
enum chakra_node {
    CHAKRA_METADATA = 1,
    CHAKRA_COMP = 4,
    CHAKRA_SEND = 5,
    CHAKRA_RECV = 6,
    CHAKRA_COLL = 7
};

/*    our kind, Chakra's number */
#define CHAKRA_COLLECTIVE_LIST(X)                                                                  \
    X(ALL_REDUCE, 0)                                                                               \
    X(ALL_GATHER, 2) X(BROADCAST, 5) X(ALL_TO_ALL, 6) X(REDUCE_SCATTER, 7) X(BARRIER, 9)

/* The operations that have nodes. */
static const enum op_kind chakra_ops[] = {OP_HOST,   OP_LAUNCH, OP_COPY, OP_COLLECTIVE, OP_GROUP,
                                          OP_RECORD, OP_WAIT,   OP_SYNC, OP_SIGNAL,     OP_AWAIT};

struct chakra_bytes {
    unsigned char *items;
    size_t count, cap;
};

/* One file for each rank of the plan, in `arena`. STATUS_INPUT for a plan of another form, for an operation that has no node
   (locks, queues, graphs, branches), and for threads that wait for each other for ever. */
enum status chakra_write(const struct plan *plan, struct arena *arena, struct chakra_bytes **out,
                         struct diag *diag);

#endif
