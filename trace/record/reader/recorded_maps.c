/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded_maps.c - memory that is mapped to reserved addresses, of a recording; see recorded_walk.h.
 *
 * A mapping is an allocation of its addresses, and ends with them. Mappings behind each other are one memory to the
 * accesses of the program (recorded_memory.c). Memory that is mapped a second time, even if the first mapping has ended,
 * has two names, of which no plan says that they are one: that is told.
 */
#include "recorded_walk.h"

/* Of the live handle, or NULL: its number may have been another memory's before. */
static struct recorded_physical *find(const struct walk *walk, uint64_t handle)
{
    struct recorded_process *process = walk->process;
    for (size_t i = process->physical_count; i-- > 0;)
        if (process->physicals[i].handle == handle && process->physicals[i].ends > 0)
            return &process->physicals[i];
    return NULL;
}

static struct recorded_physical *add(const struct walk *walk, uint64_t handle,
                                     enum recording_memory memory, int device)
{
    struct recorded_process *process = walk->process;
    if (!arena_grow(walk->job->arena, (void **)&process->physicals, process->physical_count,
                    &process->physical_cap, sizeof *process->physicals))
        return NULL;
    struct recorded_physical *physical = &process->physicals[process->physical_count++];
    *physical =
        (struct recorded_physical){.handle = handle, .ends = 1, .memory = memory, .device = device};
    return physical;
}

bool walk_take_physical(const struct walk *walk)
{
    const uint64_t *word = walk->item->word;
    return add(walk, word[0], (enum recording_memory)(word[2] & 3), (int)(word[3] & 63)) != NULL;
}

bool walk_take_physical_kept(const struct walk *walk)
{
    struct recorded_physical *physical = find(walk, walk->item->word[0]);
    if (physical)
        physical->ends++;
    return true;
}

bool walk_take_physical_end(const struct walk *walk)
{
    struct recorded_physical *physical = find(walk, walk->item->word[0]);
    if (physical)
        physical->ends--;
    return true;
}

static bool was_mapped(const struct recorded_physical *physical, uint64_t from, uint64_t to)
{
    for (size_t i = 0; i < physical->mapped_count; i++)
        if (physical->mapped[i].from < to && from < physical->mapped[i].to)
            return true;
    return false;
}

/* Memory of a handle that another process gave is known from its first mapping on. */
bool walk_take_map(const struct walk *walk)
{
    const uint64_t *word = walk->item->word, from = word[3], to = word[3] + word[1];
    struct recorded_physical *physical = find(walk, word[2]);
    size_t block;
    if (word[1] == 0)
        return true;
    if (!physical)
        physical = add(walk, word[2], RECORDING_MEMORY_DEVICE, walk->thread->device);
    if (!physical ||
        !recorded_memory_begin(walk->job, walk->process, word[0], word[1], physical->memory,
                               physical->device, &block) ||
        !arena_grow(walk->job->arena, (void **)&physical->mapped, physical->mapped_count,
                    &physical->mapped_cap, sizeof *physical->mapped))
        return false;
    walk->process->blocks[block].mapped = true;
    const bool again = was_mapped(physical, from, to);
    physical->mapped[physical->mapped_count].from = from;
    physical->mapped[physical->mapped_count++].to = to;
    return !again || walk_unmodelled(walk, "cuMemMap of memory that was mapped before");
}

/* It promises to wait for nothing: "this function exhibits synchronous behavior for most use cases" (CUDA driver API). */
bool walk_take_unmap(const struct walk *walk)
{
    const uint64_t from = walk->item->word[0], bytes = walk->item->word[1];
    const struct recorded_process *process = walk->process;
    for (size_t i = process->live_count; i-- > 0;) {
        const size_t block = process->by_address[i];
        const struct recorded_block *at = &process->blocks[block];
        if (at->mapped && at->address - from < bytes && !walk_free_block(walk, block, false))
            return false;
    }
    return true;
}
