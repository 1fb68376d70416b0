/* SPDX-License-Identifier: Apache-2.0 */
/* recorded_groups.c - communicators, collectives, messages and groups of them; see recorded_walk.h. */
#include "recorded_walk.h"

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

static bool add_parts(const struct walk *walk, struct recorded_op *group,
                      const struct recorded_op *op, int stream)
{
    const int before = (int)group->op.part_count;
    for (size_t i = 0; i < op->op.part_count; i++) {
        if (!arena_grow(walk->job->arena, (void **)&group->op.parts, group->op.part_count,
                        &group->part_cap, sizeof *group->op.parts))
            return false;
        struct p2p_part *part = &group->op.parts[group->op.part_count++];
        *part = op->op.parts[i];
        part->comm = op->op.comm;
        part->stream = stream;
        part->device = op->device;
    }
    for (size_t i = 0; i < op->access_count; i++) {
        if (!arena_grow(walk->job->arena, (void **)&group->accesses, group->access_count,
                        &group->access_cap, sizeof *group->accesses))
            return false;
        group->accesses[group->access_count] = op->accesses[i];
        group->accesses[group->access_count++].part += before;
    }
    return true;
}

static struct recorded_stream *stream_of(const struct walk *walk, const struct p2p_part *part)
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
        struct recorded_stream *own = stream_of(walk, &group->op.parts[i]),
                               *first = stream_of(walk, first_alike(group, i));
        bool joined = own == first;
        for (size_t k = 0; k < i && !joined; k++)
            joined = stream_of(walk, &group->op.parts[k]) == own;
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
    const struct recorded_stream *stream = stream_of(walk, part);
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
            !walk_knows(walk, other, room->pushes, true) &&
            !walk_known_behind(stream, room->stream, room->pushes))
            walk->job->shares_room = true;
    }
    if (found == process->room_count) {
        if (!arena_grow(walk->job->arena, (void **)&process->rooms, process->room_count,
                        &process->room_cap, sizeof *process->rooms))
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
    group->op.collective = group->op.work.collective = part->collective;
    group->op.work.root = part->root;
    group->op.bytes = part->bytes;
    group->op.parts = NULL;
    group->op.part_count = 0;
    for (size_t i = 0; i < group->access_count; i++)
        group->accesses[i].part = -1;
}

static bool end_group(const struct walk *walk, struct recorded_op *group)
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
                               stream_of(walk, &first), &one) &&
           walk_add(walk, stream_of(walk, &first), &one) && join_parts(walk, group, true);
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
    return walk_count_push(walk, stream) && add_parts(walk, group, &op, stream->name) &&
           (walk->thread->depth > 0 || end_group(walk, group));
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
    return end_group(walk, &walk->thread->group);
}
