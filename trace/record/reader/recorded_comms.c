/* SPDX-License-Identifier: Apache-2.0 */
/* recorded_comms.c - communicators of a recording, their collectives and messages, and groups of these. */
#include "recorded_internal.h"

#include <string.h>

#include "base/array.h"
#include "base/sort.h"

/* ---- communicators ---------------------------------------------------------------------------- */

static bool new_comm(struct recorded_job *job, uint64_t low, uint64_t high, int64_t size)
{
    if (!ARENA_GROW(job->arena, job->comms, job->comm_count, job->comm_cap))
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
    size_t index = 0;
    while (index < job->comm_count &&
           (job->comms[index].low != word[1] || job->comms[index].high != word[2]))
        index++;
    if (size < 1 || size > PLAN_MAX_RANKS || rank < 0 || rank >= size)
        return true;
    if (index == job->comm_count && !new_comm(job, word[1], word[2], size))
        return false;
    struct recorded_comm *comm = &job->comms[index];
    if (!ARENA_GROW(job->arena, of->comms, of->comm_count, of->comm_cap))
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

static bool recorded_comms_is_member(const struct comm *comm, int rank)
{
    for (size_t i = 0; i < comm->member_count; i++)
        if (comm->members[i] == rank)
            return true;
    return false;
}

static bool recorded_comms_write_comm(struct recorded_job *job, size_t index)
{
    struct plan *plan = job->plan;
    const struct recorded_comm *from = &job->comms[index];
    struct comm *comm = &plan->comms[plan->comm_count++];
    *comm = (struct comm){.declared = true, .name = arena_printf(job->arena, "comm%zu", index)};
    comm->members = ARENA_ARRAY(job->arena, (size_t)from->size, int);
    for (int64_t i = 0; comm->members && i < from->size; i++) {
        const int rank = recorded_comm_rank(job, (int)index, (int)i);
        if (rank >= 0 && !recorded_comms_is_member(comm, rank))
            comm->members[comm->member_count++] = rank;
    }
    const size_t doubled = from->known - comm->member_count;
    sort_int(comm->members, comm->member_count);
    if (!comm->members || !comm->name ||
        (doubled > 0 &&
         !plan_add_unrecorded(
             plan, arena_printf(job->arena, "%zu ranks of %s", doubled, comm->name),
             "they share a device with another rank, and a plan has each device once")))
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
        if (!recorded_comms_write_comm(job, i))
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

static uint64_t recorded_comms_bytes_of(uint64_t type)
{
    return type < sizeof types / sizeof *types ? types[type].bytes : 1;
}

static const char *recorded_comms_name_of(uint64_t type)
{
    return type < sizeof types / sizeof *types ? types[type].name : "a type";
}

/* So few that their bytes, of a whole communicator, are a number of 64 bits. */
static uint64_t bytes_in(uint64_t count, uint64_t type)
{
    const uint64_t most = UINT64_C(1) << 40;
    return (count < most ? count : most) * recorded_comms_bytes_of(type);
}

/* The data that a collective moves: of how many times its count each side is, with the whole communicator's. */
struct recorded_comms_shape {
    const char *name;
    enum collective_kind kind;
    bool reduces,
        is_messages; /* no collective of a plan is like it: messages from or to the root */
    bool sends_all, receives_all;
};

static const struct recorded_comms_shape shapes[RECORDING_COLLECTIVES] = {
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

static struct p2p_part *recorded_comms_add_part(struct recorded_job *job, struct recorded_op *op)
{
    if (!ARENA_GROW(job->arena, op->op.parts, op->op.part_count, op->part_cap))
        return NULL;
    struct p2p_part *part = &op->op.parts[op->op.part_count++];
    *part = (struct p2p_part){.root = -1, .comm = -1, .stream = -1, .peer = -1};
    return part;
}

static bool recorded_comms_add_message(struct recorded_job *job, struct recorded_op *op,
                                       const char *tag, bool send, int peer, uint64_t bytes)
{
    struct p2p_part *part = recorded_comms_add_part(job, op);
    if (!part || !tag)
        return false;
    part->tag = tag;
    part->send = send;
    part->peer = peer;
    part->bytes = recorded_bytes(bytes);
    return true;
}

/* Messages with the root: to it, or from it where it scatters. */
static bool add_rooted(struct recorded_job *job, struct recorded_op *op,
                       const struct recorded_comms_shape *shape, const char *tag,
                       const struct recorded_comm_handle *comm, int root, uint64_t bytes)
{
    const bool scatters = shape->sends_all;
    if (comm->rank != root)
        return recorded_comms_add_message(job, op, tag, !scatters, root, bytes);
    for (int i = 0; i < job->comms[comm->comm].size; i++)
        if (i != root && !recorded_comms_add_message(job, op, tag, scatters, i, bytes))
            return false;
    return true;
}

static bool add_collective(struct recorded_job *job, struct recorded_op *op,
                           const struct recorded_comms_shape *shape, const char *tag, int root,
                           uint64_t bytes)
{
    struct p2p_part *part = recorded_comms_add_part(job, op);
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
    const struct recorded_comms_shape *shape = &shapes[word[2] % RECORDING_COLLECTIVES];
    const uint64_t size = (uint64_t)job->comms[comm->comm].size;
    const uint64_t bytes = bytes_in(word[5], word[6]);
    const int root = (int)(word[8] & INT32_MAX);
    const bool rooted = shape->is_messages || shape->kind == COLLECTIVE_BROADCAST,
               at_root = comm->rank == root;
    const char *tag =
        shape->reduces
            ? arena_printf(job->arena, "%s %s %s", shape->name, recorded_comms_name_of(word[6]),
                           word[7] < 5 ? sums[word[7]] : "of its own")
            : arena_printf(job->arena, "%s %s", shape->name, recorded_comms_name_of(word[6]));
    const bool reads = shape->name[0] == 'g' || shape->reduces || !rooted || at_root;
    const bool writes = !(rooted && (shape->reduces || shape->name[0] == 'g')) || at_root;
    if (!(shape->is_messages ? add_rooted(job, op, shape, tag, comm, root, bytes)
                             : add_collective(job, op, shape, tag, root, bytes)))
        return false;
    return (!reads || access_memory(job, process, op, word[3],
                                    bytes * (shape->sends_all ? size : 1), false)) &&
           (!writes || (rooted && at_root && word[3] == word[4] && !shape->reduces) ||
            access_memory(job, process, op, word[4], bytes * (shape->receives_all ? size : 1),
                          true));
}

static bool message_op(struct recorded_job *job, struct recorded_process *process,
                       const struct recording_item *item, struct recorded_op *op)
{
    const uint64_t *word = item->word;
    const uint64_t bytes = bytes_in(word[4], word[5]);
    return recorded_comms_add_message(job, op, recorded_comms_name_of(word[5]), word[2] != 0,
                                      (int)(word[6] & INT32_MAX), bytes) &&
           access_memory(job, process, op, word[3], bytes, word[2] == 0);
}

bool recorded_comm_op(struct recorded_job *job, struct recorded_process *process,
                      const struct recording_item *item, struct recorded_op *out)
{
    const struct recorded_comm_handle *comm = recorded_comm_find(process, item->word[0]);
    if (!comm)
        return plan_add_unrecorded(job->plan, "a communicator",
                                   "no call that makes it was recorded");
    out->op.comm = (int)comm->comm;
    return item->kind == RECORDING_COLLECTIVE ? collective_op(job, process, item, comm, out)
                                              : message_op(job, process, item, out);
}

/* ---- the walk's items --------------------------------------------------------------------------- */

bool walk_take_comm(const struct walk *walk)
{
    walk_use_device(walk->process, walk->thread->device);
    return recorded_comm_add(walk->job, (size_t)(walk->process - walk->job->processes),
                             walk->thread->device, walk->item);
}

bool walk_take_comm_end(const struct walk *walk)
{
    for (size_t i = 0; i < walk->process->comm_count; i++)
        if (walk->process->comms[i].handle == walk->item->word[0])
            walk->process->comms[i].live = false;
    return true;
}

static bool recorded_comms_add_parts(const struct walk *walk, struct recorded_op *group,
                                     const struct recorded_op *op, int stream)
{
    const int before = (int)group->op.part_count;
    for (size_t i = 0; i < op->op.part_count; i++) {
        if (!ARENA_GROW(walk->job->arena, group->op.parts, group->op.part_count, group->part_cap))
            return false;
        struct p2p_part *part = &group->op.parts[group->op.part_count++];
        *part = op->op.parts[i];
        part->comm = op->op.comm;
        part->stream = stream;
        part->device = op->device;
    }
    for (size_t i = 0; i < op->access_count; i++) {
        if (!ARENA_GROW(walk->job->arena, group->accesses, group->access_count, group->access_cap))
            return false;
        group->accesses[group->access_count] = op->accesses[i];
        group->accesses[group->access_count++].part += before;
    }
    return true;
}

static struct recorded_stream *recorded_comms_stream_of(const struct walk *walk,
                                                        const struct p2p_part *part)
{
    for (size_t i = 0; i < walk->process->stream_count; i++)
        if (walk->process->streams[i].name == part->stream &&
            walk->process->streams[i].device == part->device)
            return &walk->process->streams[i];
    return NULL;
}

/* The first part of a group with the communicator and device of this one. */
static struct p2p_part *first_alike(const struct recorded_op *group, size_t part)
{
    size_t i = 0;
    while (group->op.parts[i].comm != group->op.parts[part].comm ||
           group->op.parts[i].device != group->op.parts[part].device)
        i++;
    return &group->op.parts[i];
}

/* NCCL has one kernel for a communicator: it waits for all streams that its parts are on, and holds them up. */
static bool join_parts(const struct walk *walk, const struct recorded_op *group, bool behind)
{
    for (size_t i = 0; i < group->op.part_count; i++) {
        struct recorded_stream *own = recorded_comms_stream_of(walk, &group->op.parts[i]),
                               *first = recorded_comms_stream_of(walk, first_alike(group, i));
        bool joined = own == first;
        for (size_t k = 0; k < i && !joined; k++)
            joined = recorded_comms_stream_of(walk, &group->op.parts[k]) == own;
        if (!joined && !walk_join(walk, behind ? own : first, behind ? first : own))
            return false;
    }
    return true;
}

/* The stream's last operation with the communicator; they may be on a device at once with those of other communicators on other
   streams, where none waits for the other. */
static bool note_room(const struct walk *walk, const struct p2p_part *part)
{
    struct recorded_process *process = walk->process;
    const struct recorded_stream *stream = recorded_comms_stream_of(walk, part);
    const size_t own = (size_t)(stream - process->streams);
    size_t found = process->room_count;
    if (walk->job->comms[part->comm].size < 2)
        return true;
    for (size_t i = 0; i < process->room_count; i++) {
        const struct recorded_room *room = &process->rooms[i];
        const struct recorded_stream *other = &process->streams[room->stream];
        if (room->comm == part->comm && room->stream == own)
            found = i;
        if (room->comm != part->comm && room->stream != own && other->device == stream->device &&
            !walk_has_observed(walk, other, room->pushes, true) &&
            !walk_frontier_includes(stream, room->stream, room->pushes))
            walk->job->shares_room = true;
    }
    if (found == process->room_count) {
        if (!ARENA_GROW(walk->job->arena, process->rooms, process->room_count, process->room_cap))
            return false;
        process->room_count++;
    }
    process->rooms[found] = (struct recorded_room){part->comm, own, stream->pushes};
    return true;
}

/* One that is alone is what it is without a group. */
static void ungroup(struct recorded_op *group)
{
    const struct p2p_part *part = &group->op.parts[0];
    group->op.kind = OP_COLLECTIVE;
    group->op.name = part->tag;
    group->op.bytes = part->bytes;
    group->op.collective = part->collective;
    group->op.root = part->root;
    for (size_t i = 0; i < group->access_count; i++)
        group->accesses[i].part = -1;
}

static bool recorded_comms_end_group(const struct walk *walk, struct recorded_op *group)
{
    if (group->op.part_count == 0)
        return true;
    const struct p2p_part first = group->op.parts[0];
    struct recorded_op one = *group;
    if (!join_parts(walk, group, false))
        return false;
    one.op.comm = first.comm;
    one.op.stream = first.stream;
    one.device = one.event_device = first.device;
    one.place = walk->thread->place;
    one.op.parts = ARENA_ARRAY(walk->job->arena, group->op.part_count, struct p2p_part);
    if (!one.op.parts)
        return false;
    for (size_t i = 0; i < group->op.part_count; i++) {
        if (!note_room(walk, &group->op.parts[i]))
            return false;
        one.op.parts[i] = group->op.parts[i];
        one.op.parts[i].stream = first_alike(group, i)->stream;
    }
    if (group->op.part_count == 1 && first.is_collective)
        ungroup(&one);
    one.end_ns = walk_end_ns(walk);
    return recorded_clock_push(walk->job, walk->process, walk->thread->push,
                               recorded_comms_stream_of(walk, &first), &one) &&
           walk_add(walk, recorded_comms_stream_of(walk, &first), &one) &&
           join_parts(walk, group, true);
}

bool walk_take_exchange(const struct walk *walk)
{
    struct recorded_stream *stream = walk_stream(walk, walk->item->word[1]);
    struct recorded_op op = walk_op(walk, OP_GROUP), *group = &walk->thread->group;
    if (!stream)
        return false;
    op.device = stream->device;
    if (!recorded_comm_op(walk->job, walk->process, walk->item, &op))
        return false;
    if (walk->thread->depth == 0)
        *group = walk_op(walk, OP_GROUP);
    return walk_count_push(walk, stream) &&
           recorded_comms_add_parts(walk, group, &op, stream->name) &&
           (walk->thread->depth > 0 || recorded_comms_end_group(walk, group));
}

bool walk_take_group(const struct walk *walk)
{
    if (walk->thread->depth++ == 0)
        walk->thread->group = walk_op(walk, OP_GROUP);
    return true;
}

bool walk_take_group_end(const struct walk *walk)
{
    if (walk->thread->depth == 0 || --walk->thread->depth > 0)
        return true;
    if (walk->item->words > 0 && walk->item->word[0] != 0) /* ncclGroupSimulateEnd */
        return true;
    return recorded_comms_end_group(walk, &walk->thread->group);
}
