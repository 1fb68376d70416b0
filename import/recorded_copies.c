/* SPDX-License-Identifier: Apache-2.0 */
/* recorded_copies.c - memory, copies and fills of a recording; see recorded_walk.h. */
#include "recorded_walk.h"

/* ---- memory ----------------------------------------------------------------------------------- */

bool walk_take_alloc(const struct walk *walk)
{
    const uint64_t *word = walk->item->word;
    size_t block;
    return word[1] == 0 || recorded_memory_begin(walk->job, walk->process, word[0], word[1],
                                                 (enum recording_memory)(word[2] & 3),
                                                 walk->thread->device, &block);
}

/* Memory of a stream's pool comes and goes in the stream's order. */
bool walk_take_alloc_async(const struct walk *walk)
{
    struct recorded_stream *stream = walk_stream(walk, walk->item->word[2]);
    struct recorded_op op = walk_op(walk, OP_ALLOC);
    size_t block;
    if (!stream ||
        !recorded_memory_begin(walk->job, walk->process, walk->item->word[0], walk->item->word[1],
                               RECORDING_MEMORY_DEVICE, stream->device, &block))
        return false;
    walk->process->blocks[block].async = true;
    op.device = stream->device;
    op.op.stream = stream->name;
    op.block = block;
    return walk_add(walk, NULL, &op);
}

bool walk_take_free_async(const struct walk *walk)
{
    struct recorded_stream *stream = walk_stream(walk, walk->item->word[1]);
    const size_t block = recorded_memory_find(walk->process, walk->item->word[0]);
    if (!stream)
        return false;
    if (block == SIZE_MAX)
        return true;
    struct recorded_op op = walk_op(walk, OP_FREE);
    op.device = stream->device;
    op.op.stream = stream->name;
    op.block = block;
    recorded_memory_end(walk->process, block);
    return walk_add(walk, NULL, &op);
}

/* Of an allocation that is freed: its memory is the host's again. */
bool walk_take_free(const struct walk *walk)
{
    const size_t block = recorded_memory_find(walk->process, walk->item->word[0]);
    struct recorded_op op = walk_op(walk, OP_COMPUTE);
    if (block == SIZE_MAX)
        return true;
    const struct recorded_block freed = walk->process->blocks[block];
    const bool waits = walk->item->word[1] == RECORDING_MEMORY_DEVICE;
    op.op.name = arena_printf(walk->job->arena, "free %s", freed.name);
    if (!op.op.name || (waits && !walk_sync_device(walk, freed.device)) ||
        (freed.begin_count > 0 && !recorded_memory_access(walk->job, walk->process, &op,
                                                          freed.address, freed.bytes, true, -1)))
        return false;
    recorded_memory_end(walk->process, block);
    return freed.begin_count == 0 || walk_add(walk, NULL, &op);
}

/* Host memory that CUDA does not know. */
static bool is_pageable(const struct walk *walk, uint64_t address, bool device)
{
    return !device && recorded_memory_find(walk->process, address) == SIZE_MAX;
}

struct area {
    uint64_t address, pitch, width, height;
};

static uint64_t area_bytes(const struct area *area)
{
    return area->height > 1 ? area->pitch * (area->height - 1) + area->width
                            : area->width * area->height;
}

/* The device whose memory an address is; -1: it is no device's, or not known. */
static int device_of(const struct walk *walk, uint64_t address)
{
    const size_t block = recorded_memory_find(walk->process, address);
    return block != SIZE_MAX && walk->process->blocks[block].memory == RECORDING_MEMORY_DEVICE
               ? walk->process->blocks[block].device
               : -1;
}

/* All streams of these devices before or behind `peer`. */
static bool join_all(const struct walk *walk, struct recorded_stream *peer, uint64_t devices,
                     bool before)
{
    for (size_t i = 0; i < walk->process->stream_count; i++) {
        struct recorded_stream *other = &walk->process->streams[i];
        if (other == peer || !other->live || other->capture >= 0 || !(devices >> other->device & 1))
            continue;
        if (before ? !walk_join(walk, peer, other) : !walk_join(walk, other, peer))
            return false;
    }
    return true;
}

/* "A copy (in the implicit NULL stream) between the memories of two different devices does not start until all commands
   previously issued to either device have completed and runs to completion before any commands issued after the copy to
   either device can start" (CUDA C++ programming guide, Peer-to-Peer Memory Copy). So it has a stream of its own, with
   an order that the plan says by events. */
static bool push_between(const struct walk *walk, struct recorded_op *op, uint64_t devices)
{
    struct recorded_stream *peer = walk_peer_stream(walk, walk->thread->device);
    if (!peer || !join_all(walk, peer, devices, true) || !walk_push(walk, peer, op))
        return false;
    peer->holds |= devices;
    return join_all(walk, peer, devices, false);
}

/* A copy between devices does not keep the host waiting. */
static bool copy(const struct walk *walk, uint64_t handle, const struct area *to,
                 const struct area *from, uint64_t direction, bool waits)
{
    struct recorded_stream *stream = walk_stream(walk, handle);
    struct recorded_op op = walk_op(walk, OP_COPY);
    const bool to_device = direction == 1 || direction == 3 || device_of(walk, to->address) >= 0;
    const bool from_device =
        direction == 2 || direction == 3 || device_of(walk, from->address) >= 0;
    const int to_gpu = device_of(walk, to->address), from_gpu = device_of(walk, from->address);
    const bool between = to_gpu >= 0 && from_gpu >= 0 && to_gpu != from_gpu;
    const uint64_t devices = between ? UINT64_C(1) << walk->thread->device | UINT64_C(1) << to_gpu |
                                           UINT64_C(1) << from_gpu
                                     : 0;
    if (!stream)
        return false;
    if (between) {
        walk_use_device(walk->process, to_gpu);
        walk_use_device(walk->process, from_gpu);
    }
    op.op.direction = op.op.work.direction =
        to_device ? from_device ? DIRECTION_D2D : DIRECTION_H2D : DIRECTION_D2H;
    op.op.pageable =
        is_pageable(walk, to->address, to_device) || is_pageable(walk, from->address, from_device);
    op.op.bytes = recorded_bytes(to->width * to->height);
    if (to_device)
        recorded_memory_strange(walk->job, walk->process, to->address);
    if (from_device)
        recorded_memory_strange(walk->job, walk->process, from->address);
    return recorded_memory_access(walk->job, walk->process, &op, from->address, area_bytes(from),
                                  false, -1) &&
           recorded_memory_access(walk->job, walk->process, &op, to->address, area_bytes(to), true,
                                  -1) &&
           (between && walk_is_legacy(stream) ? push_between(walk, &op, devices)
                                              : walk_push(walk, stream, &op)) &&
           (!waits || op.op.pageable || (to_device && from_device) ||
            walk_sync_stream(walk, stream));
}

bool walk_take_copy(const struct walk *walk)
{
    const uint64_t *word = walk->item->word;
    const struct area to = {word[1], 0, word[3], 1}, from = {word[2], 0, word[3], 1};
    return word[3] == 0 || copy(walk, word[0], &to, &from, word[4], word[5] != 0);
}

bool walk_take_copy_2d(const struct walk *walk)
{
    const uint64_t *word = walk->item->word;
    const struct area to = {word[1], word[2], word[5], word[6]},
                      from = {word[3], word[4], word[5], word[6]};
    return word[5] == 0 || word[6] == 0 || copy(walk, word[0], &to, &from, word[7], word[8] != 0);
}

bool walk_take_fill(const struct walk *walk)
{
    const uint64_t *word = walk->item->word;
    struct recorded_stream *stream = walk_stream(walk, word[0]);
    struct recorded_op op = walk_op(walk, OP_LAUNCH);
    const struct area to = {word[1], word[2], word[3], word[4]};
    op.op.name = "memset";
    if (area_bytes(&to) > 0)
        recorded_memory_strange(walk->job, walk->process, to.address);
    return stream && (area_bytes(&to) == 0 ||
                      (recorded_memory_access(walk->job, walk->process, &op, to.address,
                                              area_bytes(&to), true, -1) &&
                       walk_push(walk, stream, &op)));
}

/* The host has been seen to read or write memory that a device uses. */
bool walk_take_touch(const struct walk *walk)
{
    const bool write = walk->item->word[1] != 0;
    const size_t block = recorded_memory_find(walk->process, walk->item->word[0]);
    struct recorded_op op = walk_op(walk, OP_COMPUTE);
    if (block == SIZE_MAX)
        return true;
    op.op.name = arena_printf(walk->job->arena, "%s %s", write ? "write" : "read",
                              walk->process->blocks[block].name);
    return op.op.name &&
           recorded_memory_access(walk->job, walk->process, &op, walk->item->word[0], 1, write,
                                  -1) &&
           walk_add(walk, NULL, &op);
}
