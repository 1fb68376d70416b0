/* SPDX-License-Identifier: Apache-2.0 */
/* recorded_copies.c - memory, copies and fills of a recording; see recorded_internal.h. */
#include "recorded_internal.h"

/* ---- memory ----------------------------------------------------------------------------------- */

bool walk_take_alloc(const struct walk *walk)
{
    const uint64_t *word = walk->item->word;
    size_t block;
    return word[1] == 0 || recorded_memory_begin(walk->job, walk->process, word[0], word[1],
                                                 (enum recording_memory)(word[2] & 3),
                                                 walk->thread->device, &block);
}

/* `op` overwrites all of the memory: what is done to it without an order behind or in front is a race. */
static bool overwrite(const struct walk *walk, size_t block, const char *verb,
                      struct recorded_op *op)
{
    op->op.name = arena_printf(walk->job->arena, "%s %s", verb, walk->process->blocks[block].name);
    return op->op.name && recorded_memory_overwrite(walk->job, walk->process, op, block);
}

static bool overwrite_in_stream(const struct walk *walk, size_t block, const char *verb,
                                struct recorded_stream *stream)
{
    struct recorded_op op = walk_op(walk, OP_LAUNCH);
    op.device = op.event_device = stream->device;
    op.op.stream = stream->name;
    return walk_count_push(walk, stream) && overwrite(walk, block, verb, &op) &&
           walk_add(walk, stream, &op);
}

/* Memory of a graph is allocated by each launch anew, at one address. A plan's buffer is allocated once, so here it is
   there and overwritten. */
static bool add_to_graph(const struct walk *walk, size_t block, struct recorded_stream *stream)
{
    walk->process->blocks[block].of_graph = true;
    walk->job->graph_blocks++;
    return overwrite_in_stream(walk, block, "alloc", stream);
}

/* Memory of a stream's pool comes in the stream's order. */
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
    if (stream->capture >= 0)
        return add_to_graph(walk, block, stream);
    op.device = stream->device;
    op.op.stream = stream->name;
    op.block = block;
    return walk_add(walk, NULL, &op);
}

/* "Accesses after the free operation in stream order" are undefined (CUDA C++ programming guide, stream ordered memory
   allocator), and the pool gives the memory to any stream behind it: so the free is work of its stream that overwrites
   it. What a pool's attributes allow orders only the next owner. In a capture the memory "must be a graph allocation"
   (cudaFreeAsync). */
bool walk_take_free_async(const struct walk *walk)
{
    struct recorded_stream *stream = walk_stream(walk, walk->item->word[1]);
    const size_t block = recorded_memory_find(walk->process, walk->item->word[0]);
    struct recorded_op op = walk_op(walk, OP_FREE);
    if (!stream)
        return false;
    if (block == SIZE_MAX)
        return true;
    const struct recorded_block *freed = &walk->process->blocks[block];
    const bool is_pools = freed->async && !freed->of_graph;
    if (stream->capture >= 0 && !freed->of_graph) {
        recorded_memory_end(walk->process, block);
        return walk_unmodelled(walk, "cudaFreeAsync in a capture");
    }
    op.device = stream->device;
    op.op.stream = stream->name;
    op.block = block;
    if (freed->used && !overwrite_in_stream(walk, block, "free", stream))
        return false;
    recorded_memory_end(walk->process, block);
    return !is_pools || walk_add(walk, NULL, &op);
}

bool walk_free_block(const struct walk *walk, size_t block, bool waits)
{
    struct recorded_op op = walk_op(walk, OP_COMPUTE);
    const bool is_used = walk->process->blocks[block].used;
    if ((waits && !walk_sync_device(walk, walk->process->blocks[block].device)) ||
        (is_used && !overwrite(walk, block, "free", &op)))
        return false;
    recorded_memory_end(walk->process, block);
    return !is_used || walk_add(walk, NULL, &op);
}

/* Of an allocation that is freed: its memory is the host's again. cudaFree waits for the device, but not with memory of
   cudaMallocAsync: "the driver assumes that all accesses to the memory are complete and performs no further
   synchronization" (the guide's same section). */
bool walk_take_free(const struct walk *walk)
{
    const size_t block = recorded_memory_find(walk->process, walk->item->word[0]);
    return block == SIZE_MAX || walk_free_block(walk, block,
                                                walk->item->word[1] == RECORDING_MEMORY_DEVICE &&
                                                    !walk->process->blocks[block].async);
}

/* cudaDeviceReset does not say that it waits: "it is the caller's responsibility to ensure that the device is not being
   accessed". */
bool walk_take_reset(const struct walk *walk)
{
    struct recorded_process *process = walk->process;
    const struct ordered_node *at;
    for (uint64_t end = UINT64_MAX; (at = ordered_before(&process->by_address, end)) != NULL;) {
        const size_t block = at->value;
        end = at->key;
        if (process->blocks[block].device == walk->thread->device &&
            !walk_free_block(walk, block, false))
            return false;
    }
    for (size_t i = 0; i < process->stream_count; i++)
        if (process->streams[i].device == walk->thread->device)
            process->streams[i].live = false;
    for (size_t i = 0; i < process->event_count; i++)
        if (process->events[i].device == walk->thread->device)
            recorded_event_end(process, i);
    return true;
}

/* Host memory that CUDA does not know. */
static bool is_pageable(const struct walk *walk, uint64_t address, bool device)
{
    return !device && recorded_memory_find(walk->process, address) == SIZE_MAX;
}

/* ---- rows and slices ---------------------------------------------------------------------------- */

/* Rows of `width` bytes, `pitch` from one to the next, in slices. */
struct area {
    uint64_t address, pitch, width, height, slice, depth;
};

enum { MOST_RUNS = 64 };

/* Rows that lie behind each other are one. */
static struct area join_rows(struct area area)
{
    if (area.height == 1 || area.pitch == area.width) {
        area.width *= area.height;
        area.height = 1;
        area.pitch = area.width;
    }
    if (area.depth == 1 || (area.height == 1 && area.slice == area.width)) {
        area.width *= area.height == 1 ? area.depth : 1;
        area.depth = 1;
    }
    return area;
}

static bool recorded_copies_is_empty(const struct area *area)
{
    return area->width == 0 || area->height == 0 || area->depth == 0;
}

/* The rows as they are, where there are few of them; else all from the first byte to the last. */
static bool access_area(const struct walk *walk, struct recorded_op *op, const struct area *whole,
                        bool write)
{
    const struct area area = join_rows(*whole);
    if (area.height > MOST_RUNS || area.depth > MOST_RUNS || area.height * area.depth > MOST_RUNS) {
        walk->job->coarse_copies++;
        return recorded_memory_access(
            walk->job, walk->process, op, area.address,
            area.slice * (area.depth - 1) + area.pitch * (area.height - 1) + area.width, write, -1);
    }
    for (uint64_t z = 0; z < area.depth; z++)
        for (uint64_t y = 0; y < area.height; y++)
            if (!recorded_memory_access(walk->job, walk->process, op,
                                        area.address + z * area.slice + y * area.pitch, area.width,
                                        write, -1))
                return false;
    return true;
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
    walk->process->held |= devices;
    return join_all(walk, peer, devices, false);
}

/* Where the host waits (CUDA runtime API, API synchronization behavior): in a call that says so, for a copy between host
   and device. But from pageable memory "a stream sync is performed before the copy is initiated", and "the DMA to final
   destination may not have completed" when it returns. */
enum host_wait { NO_WAIT, WAITS_BEFORE, WAITS_BEHIND };
static enum host_wait host_wait(const struct walk *walk, const struct area *from, bool to_device,
                                bool from_device, bool waits)
{
    if (!waits || (to_device && from_device))
        return NO_WAIT;
    return is_pageable(walk, from->address, from_device) ? WAITS_BEFORE : WAITS_BEHIND;
}

/* An asynchronous copy between the device and pageable memory "might be synchronous" (ibid.). */
static bool recorded_copies_may_wait(const struct walk *walk, uint64_t host_address, bool to_device,
                                     bool from_device, bool waits)
{
    return !waits && to_device != from_device && is_pageable(walk, host_address, false);
}

static bool recorded_copies_copy(const struct walk *walk, uint64_t handle, const struct area *to,
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
    op.op.direction = to_device ? from_device ? DIRECTION_D2D : DIRECTION_H2D : DIRECTION_D2H;
    const enum host_wait host = host_wait(walk, from, to_device, from_device, waits);
    op.op.pageable = recorded_copies_may_wait(walk, to_device ? from->address : to->address,
                                              to_device, from_device, waits);
    op.op.bytes = recorded_bytes(to->width * to->height * to->depth);
    if (to_device)
        recorded_memory_strange(walk->job, walk->process, to->address);
    if (from_device)
        recorded_memory_strange(walk->job, walk->process, from->address);
    /* Nothing was pushed: nothing to wait for. */
    return (host != WAITS_BEFORE || (stream->pushes == 0 || walk_sync_stream(walk, stream))) &&
           access_area(walk, &op, from, false) && access_area(walk, &op, to, true) &&
           (between && walk_is_legacy(stream) ? push_between(walk, &op, devices)
                                              : walk_push(walk, stream, &op)) &&
           (host != WAITS_BEHIND || walk_sync_stream(walk, stream));
}

bool walk_take_copy(const struct walk *walk)
{
    const uint64_t *word = walk->item->word;
    const struct area to = {word[1], word[3], word[3], 1, 0, 1},
                      from = {word[2], word[3], word[3], 1, 0, 1};
    return word[3] == 0 || recorded_copies_copy(walk, word[0], &to, &from, word[4], word[5] != 0);
}

bool walk_take_copy_2d(const struct walk *walk)
{
    const uint64_t *word = walk->item->word;
    const bool slices = walk->item->words > 11;
    const uint64_t depth = slices ? word[11] : 1;
    const struct area to = {word[1], word[2], word[5], word[6], slices ? word[9] : 0, depth},
                      from = {word[3], word[4], word[5], word[6], slices ? word[10] : 0, depth};
    return recorded_copies_is_empty(&to) ||
           recorded_copies_copy(walk, word[0], &to, &from, word[7], word[8] != 0);
}

/* ---- batches ------------------------------------------------------------------------------------- */

static bool recorded_copies_overlap(uint64_t one, uint64_t bytes, uint64_t other,
                                    uint64_t other_bytes)
{
    return one < other + other_bytes && other < one + bytes;
}

/* True if one of two copies writes what the other one reads or writes. */
static bool depend(const uint64_t *one, const uint64_t *other)
{
    return recorded_copies_overlap(one[0], one[2], other[0], other[2]) ||
           recorded_copies_overlap(one[0], one[2], other[1], other[2]) ||
           recorded_copies_overlap(one[1], one[2], other[0], other[2]);
}

static bool any_depend(const uint64_t *copies, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; k < count; k++)
            if (depend(&copies[3 * i], &copies[3 * k]))
                return true;
    return false;
}

static bool recorded_copies_add_copy(const struct walk *walk, struct recorded_op *op,
                                     const uint64_t *words)
{
    const int to = device_of(walk, words[0]), from = device_of(walk, words[1]);
    if (words[2] == 0)
        return true;
    if (to >= 0)
        walk_use_device(walk->process, to);
    if (from >= 0)
        walk_use_device(walk->process, from);
    op->op.direction = to < 0 ? DIRECTION_D2H : from < 0 ? DIRECTION_H2D : DIRECTION_D2D;
    op->op.bytes += recorded_bytes(words[2]);
    return recorded_memory_access(walk->job, walk->process, op, words[1], words[2], false, -1) &&
           recorded_memory_access(walk->job, walk->process, op, words[0], words[2], true, -1);
}

/* One operation, in the stream's order: copies that do not depend on each other have no other. The direction is that of
   the last; whether the host waits for its pageable memory is not said by CUDA, so it does not. */
bool walk_take_copy_batch(const struct walk *walk)
{
    const uint64_t *copies = walk->item->word + 1;
    const size_t count = ((size_t)walk->item->words - 1) / 3;
    struct recorded_stream *stream = walk_stream(walk, walk->item->word[0]);
    struct recorded_op op = walk_op(walk, OP_COPY);
    if (!stream ||
        (any_depend(copies, count) &&
         !walk_unmodelled(walk, "cudaMemcpyBatchAsync with copies that depend on each other")))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!recorded_copies_add_copy(walk, &op, &copies[3 * i]))
            return false;
    return op.op.bytes == 0 || walk_push(walk, stream, &op);
}

bool walk_take_fill(const struct walk *walk)
{
    const uint64_t *word = walk->item->word;
    const bool slices = walk->item->words > 6;
    struct recorded_stream *stream = walk_stream(walk, word[0]);
    struct recorded_op op = walk_op(walk, OP_LAUNCH);
    const struct area to = {
        word[1], word[2], word[3], word[4], slices ? word[5] : 0, slices ? word[6] : 1};
    op.op.name = "memset";
    if (!stream || recorded_copies_is_empty(&to))
        return stream != NULL;
    recorded_memory_strange(walk->job, walk->process, to.address);
    return access_area(walk, &op, &to, true) && walk_push(walk, stream, &op);
}

/* The host has been seen to read or write memory that a device uses. Other threads may do so behind that, unseen. */
bool walk_take_touch(const struct walk *walk)
{
    const bool write = walk->item->word[1] == RECORDING_TOUCH_WRITE;
    const size_t block = recorded_memory_find(walk->process, walk->item->word[0]);
    struct recorded_op op = walk_op(walk, OP_COMPUTE);
    if (block == SIZE_MAX)
        return true;
    if (walk->item->word[1] == RECORDING_TOUCH_UNSEEN)
        return walk->process->blocks[block].unseen = true;
    walk->process->blocks[block].others =
        walk->process->blocks[block].others || walk->item->word[2] != 0;
    op.op.name = arena_printf(walk->job->arena, "%s %s", write ? "write" : "read",
                              walk->process->blocks[block].name);
    return op.op.name &&
           recorded_memory_access(walk->job, walk->process, &op, walk->item->word[0], 1, write,
                                  -1) &&
           walk_add(walk, NULL, &op);
}
