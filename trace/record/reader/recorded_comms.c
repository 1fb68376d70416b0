/* SPDX-License-Identifier: Apache-2.0 */
/* recorded_comms.c - see recorded_internal.h. */
#include "recorded_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- communicators ---------------------------------------------------------------------------- */

static size_t find_comm(const struct recorded_job *job, uint64_t low, uint64_t high)
{
    size_t i = 0;
    while (i < job->comm_count && (job->comms[i].low != low || job->comms[i].high != high))
        i++;
    return i;
}

static bool new_comm(struct recorded_job *job, uint64_t low, uint64_t high, int64_t size)
{
    if (!arena_grow(job->arena, (void **)&job->comms, job->comm_count, &job->comm_cap,
                    sizeof *job->comms))
        return false;
    struct recorded_comm *comm = &job->comms[job->comm_count++];
    *comm = (struct recorded_comm){.low = low, .high = high, .size = size};
    comm->members = arena_alloc(job->arena, (size_t)(size + 1) * sizeof *comm->members);
    if (comm->members)
        memset(comm->members, 0, (size_t)(size + 1) * sizeof *comm->members);
    return comm->members != NULL;
}

bool recorded_comm_add(struct recorded_job *job, size_t process, int device,
                       const struct recording_item *item)
{
    struct recorded_process *of = &job->processes[process];
    const uint64_t *word = item->word;
    const int64_t rank = (int64_t)word[3], size = (int64_t)word[4];
    const size_t index = find_comm(job, word[1], word[2]);
    if (size < 1 || size > PLAN_MAX_RANKS || rank < 0 || rank >= size)
        return true;
    if (index == job->comm_count && !new_comm(job, word[1], word[2], size))
        return false;
    struct recorded_comm *comm = &job->comms[index];
    if (!arena_grow(job->arena, (void **)&of->comms, of->comm_count, &of->comm_cap,
                    sizeof *of->comms))
        return false;
    of->comms[of->comm_count++] = (struct recorded_comm_handle){word[0], index, (int)rank, true};
    if (rank >= comm->size)
        return true;
    comm->known += !comm->members[rank].known;
    comm->members[rank].process = process;
    comm->members[rank].device = device;
    comm->members[rank].known = true;
    return true;
}

const struct recorded_comm_handle *recorded_comm_find(const struct recorded_process *process,
                                                      uint64_t handle)
{
    for (size_t i = process->comm_count; i-- > 0;)
        if (process->comms[i].handle == handle && process->comms[i].live)
            return &process->comms[i];
    return NULL;
}

int recorded_comm_rank(const struct recorded_job *job, int comm, int member)
{
    const struct recorded_comm *of = &job->comms[comm];
    if (member < 0 || member >= of->size || !of->members[member].known)
        return -1;
    return recorded_rank(&job->processes[of->members[member].process], of->members[member].device);
}

static int ascending(const void *left, const void *right)
{
    return *(const int *)left - *(const int *)right;
}

static bool is_member(const struct comm *comm, int rank)
{
    for (size_t i = 0; i < comm->member_count; i++)
        if (comm->members[i] == rank)
            return true;
    return false;
}

static bool write_comm(struct recorded_job *job, size_t index)
{
    struct plan *plan = job->plan;
    const struct recorded_comm *from = &job->comms[index];
    struct comm *comm = &plan->comms[plan->comm_count++];
    *comm = (struct comm){.declared = true, .name = arena_printf(job->arena, "comm%zu", index)};
    comm->members = ARENA_ARRAY(job->arena, (size_t)from->size, int);
    for (int64_t i = 0; comm->members && i < from->size; i++) {
        const int rank = recorded_comm_rank(job, (int)index, (int)i);
        if (rank >= 0 && !is_member(comm, rank))
            comm->members[comm->member_count++] = rank;
    }
    const size_t doubled = from->known - comm->member_count;
    if (comm->member_count > 1)
        qsort(comm->members, comm->member_count, sizeof *comm->members, ascending);
    if (!comm->members || !comm->name ||
        (doubled > 0 && !plan_add_unrecorded(
                            plan, arena_printf(job->arena, "%zu ranks of %s", doubled, comm->name),
                            "they are on a device of another one, which a plan has once")))
        return false;
    return from->known == (size_t)from->size ||
           plan_add_unrecorded(plan,
                               arena_printf(job->arena, "%zu of %lld ranks of %s",
                                            (size_t)from->size - from->known, (long long)from->size,
                                            comm->name),
                               "no recording of them");
}

bool recorded_comm_write(struct recorded_job *job)
{
    job->plan->comms = ARENA_ARRAY(job->arena, job->comm_count + 1, struct comm);
    for (size_t i = 0; job->plan->comms && i < job->comm_count; i++)
        if (!write_comm(job, i))
            return false;
    return job->plan->comms != NULL;
}

/* ---- operations ------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    unsigned bytes;
} types[] = {{"int8", 1},    {"uint8", 1},    {"int32", 4},      {"uint32", 4},
             {"int64", 8},   {"uint64", 8},   {"float16", 2},    {"float32", 4},
             {"float64", 8}, {"bfloat16", 2}, {"float8e4m3", 1}, {"float8e5m2", 1}};

static uint64_t bytes_of(uint64_t type)
{
    return type < sizeof types / sizeof *types ? types[type].bytes : 1;
}

static const char *name_of(uint64_t type)
{
    return type < sizeof types / sizeof *types ? types[type].name : "a type";
}

/* So few that their bytes, of a whole communicator, are a number of 64 bits. */
static uint64_t bytes_in(uint64_t count, uint64_t type)
{
    const uint64_t most = UINT64_C(1) << 40;
    return (count < most ? count : most) * bytes_of(type);
}

/* The data that a collective moves: of how many times its count each side is, with the whole communicator's. */
struct shape {
    const char *name;
    enum collective_kind kind;
    bool reduces,
        is_messages; /* no collective of a plan is like it: messages from or to the root */
    bool sends_all, receives_all;
};

static const struct shape shapes[RECORDING_COLLECTIVES] = {
    [RECORDING_ALL_REDUCE] = {"all_reduce", COLLECTIVE_ALL_REDUCE, true, false, false, false},
    [RECORDING_BROADCAST] = {"broadcast", COLLECTIVE_BROADCAST, false, false, false, false},
    [RECORDING_REDUCE] = {"reduce", COLLECTIVE_ALL_REDUCE, true, true, false, false},
    [RECORDING_ALL_GATHER] = {"all_gather", COLLECTIVE_ALL_GATHER, false, false, false, true},
    [RECORDING_REDUCE_SCATTER] = {"reduce_scatter", COLLECTIVE_REDUCE_SCATTER, true, false, true,
                                  false},
    [RECORDING_ALL_TO_ALL] = {"all_to_all", COLLECTIVE_ALL_TO_ALL, false, false, true, true},
    [RECORDING_GATHER] = {"gather", COLLECTIVE_ALL_GATHER, false, true, false, true},
    [RECORDING_SCATTER] = {"scatter", COLLECTIVE_ALL_TO_ALL, false, true, true, false},
};

static struct p2p_part *add_part(struct recorded_job *job, struct recorded_op *op)
{
    if (!arena_grow(job->arena, (void **)&op->op.parts, op->op.part_count, &op->part_cap,
                    sizeof *op->op.parts))
        return NULL;
    struct p2p_part *part = &op->op.parts[op->op.part_count++];
    *part = (struct p2p_part){.root = -1, .comm = -1, .stream = -1, .peer = -1};
    return part;
}

static bool add_message(struct recorded_job *job, struct recorded_op *op, const char *tag,
                        bool send, int peer, uint64_t bytes)
{
    struct p2p_part *part = add_part(job, op);
    if (!part || !tag)
        return false;
    part->tag = tag;
    part->send = send;
    part->peer = peer;
    part->bytes = recorded_bytes(bytes);
    return true;
}

/* Messages with the root: to it, or from it where it scatters. */
static bool add_rooted(struct recorded_job *job, struct recorded_op *op, const struct shape *shape,
                       const char *tag, const struct recorded_comm_handle *comm, int root,
                       uint64_t bytes)
{
    const bool scatters = shape->sends_all;
    if (comm->rank != root)
        return add_message(job, op, tag, !scatters, root, bytes);
    for (int i = 0; i < job->comms[comm->comm].size; i++)
        if (i != root && !add_message(job, op, tag, scatters, i, bytes))
            return false;
    return true;
}

static bool add_collective(struct recorded_job *job, struct recorded_op *op,
                           const struct shape *shape, const char *tag, int root, uint64_t bytes)
{
    struct p2p_part *part = add_part(job, op);
    if (!part || !tag)
        return false;
    part->is_collective = true;
    part->collective = shape->kind;
    part->tag = tag;
    part->root = shape->kind == COLLECTIVE_BROADCAST ? root : -1;
    part->bytes = recorded_bytes(bytes);
    return true;
}

/* `bytes` 0: none, where an access elsewhere would be one of unknown size. */
static bool access_memory(struct recorded_job *job, struct recorded_process *process,
                          struct recorded_op *op, uint64_t address, uint64_t bytes, bool write)
{
    if (bytes == 0)
        return true;
    recorded_memory_strange(job, process, address);
    return recorded_memory_access(job, process, op, address, bytes, write, 0);
}

static bool collective_op(struct recorded_job *job, struct recorded_process *process,
                          const struct recording_item *item,
                          const struct recorded_comm_handle *comm, struct recorded_op *op)
{
    static const char *const sums[] = {"sum", "product", "max", "min", "average"};
    const uint64_t *word = item->word;
    const struct shape *shape = &shapes[word[2] % RECORDING_COLLECTIVES];
    const uint64_t size = (uint64_t)job->comms[comm->comm].size;
    const uint64_t bytes = bytes_in(word[5], word[6]);
    const int root = (int)(word[8] & INT32_MAX);
    const bool rooted = shape->is_messages || shape->kind == COLLECTIVE_BROADCAST,
               at_root = comm->rank == root;
    const char *tag = shape->reduces
                          ? arena_printf(job->arena, "%s %s %s", shape->name, name_of(word[6]),
                                         word[7] < 5 ? sums[word[7]] : "of its own")
                          : arena_printf(job->arena, "%s %s", shape->name, name_of(word[6]));
    const bool reads = shape->name[0] == 'g' || shape->reduces || !rooted || at_root;
    const bool writes = !(rooted && (shape->reduces || shape->name[0] == 'g')) || at_root;
    if (!(shape->is_messages ? add_rooted(job, op, shape, tag, comm, root, bytes)
                             : add_collective(job, op, shape, tag, root, bytes)))
        return false;
    return (!reads || access_memory(job, process, op, word[3],
                                    bytes * (shape->sends_all ? size : 1), false)) &&
           (!writes || (at_root && word[3] == word[4] && !shape->reduces) ||
            access_memory(job, process, op, word[4], bytes * (shape->receives_all ? size : 1),
                          true));
}

static bool message_op(struct recorded_job *job, struct recorded_process *process,
                       const struct recording_item *item, struct recorded_op *op)
{
    const uint64_t *word = item->word;
    const uint64_t bytes = bytes_in(word[4], word[5]);
    return add_message(job, op, name_of(word[5]), word[2] != 0, (int)(word[6] & INT32_MAX),
                       bytes) &&
           access_memory(job, process, op, word[3], bytes, word[2] == 0);
}

bool recorded_comm_op(struct recorded_job *job, struct recorded_process *process,
                      const struct recording_item *item, struct recorded_op *out)
{
    const struct recorded_comm_handle *comm = recorded_comm_find(process, item->word[0]);
    if (!comm)
        return plan_add_unrecorded(job->plan, "a communicator", "nobody was seen to make it");
    out->op.comm = (int)comm->comm;
    return item->kind == RECORDING_COLLECTIVE ? collective_op(job, process, item, comm, out)
                                              : message_op(job, process, item, out);
}
