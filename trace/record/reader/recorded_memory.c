/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded_memory.c - the allocations of a recording and the accesses to them.
 *
 * A mapping is an allocation of its addresses, and ends with them. Mappings behind each other are one memory to the
 * accesses of the program. Memory that is mapped a second time, even if the first mapping has ended, has two names, and no
 * plan says that they are one memory: the plan tells of such mappings.
 */
#include "recorded_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/sort.h"

size_t recorded_memory_find(const struct recorded_process *process, uint64_t address)
{
    const struct ordered_node *last = ordered_last(&process->by_address, address);
    return last && address - last->key < process->blocks[last->value].bytes ? last->value
                                                                            : SIZE_MAX;
}

void recorded_memory_end(struct recorded_process *process, size_t block)
{
    const uint64_t address = process->blocks[block].address;
    const struct ordered_node *at = ordered_find(&process->by_address, address);
    if (at && at->value == block)
        ordered_drop(&process->by_address, address);
}

/* "device3": the fourth allocation of its kind of the process. */
static const char *block_name(struct recorded_job *job, struct recorded_process *process,
                              enum recording_memory memory)
{
    static const char *const kinds[] = {"device", "pinned", "managed", "registered"};
    return arena_printf(job->arena, "%s%zu", kinds[memory], process->named[memory]++);
}

bool recorded_memory_begin(struct recorded_job *job, struct recorded_process *process,
                           uint64_t address, uint64_t bytes, enum recording_memory memory,
                           int device, size_t *out)
{
    const char *name = block_name(job, process, memory);
    /* An allocation that was there before is gone, though no call was seen to free it. */
    for (size_t old; (old = recorded_memory_find(process, address)) != SIZE_MAX;)
        recorded_memory_end(process, old);
    if (!name ||
        !ARENA_GROW(job->arena, process->blocks, process->block_count, process->block_cap) ||
        !ordered_put(&process->by_address, job->arena, address, process->block_count))
        return false;
    *out = process->block_count++;
    process->blocks[*out] = (struct recorded_block){
        .address = address, .bytes = bytes, .memory = memory, .device = device, .name = name};
    return true;
}

static bool add_cut(struct arena *arena, uint64_t **items, size_t *count, size_t *cap,
                    uint64_t offset)
{
    if (*count > 0 && (*items)[*count - 1] == offset)
        return true;
    if (!ARENA_GROW(arena, *items, *count, *cap))
        return false;
    (*items)[(*count)++] = offset;
    return true;
}

void recorded_memory_strange(struct recorded_job *job, const struct recorded_process *process,
                             uint64_t address)
{
    job->strange_accesses += recorded_memory_find(process, address) == SIZE_MAX;
}

int64_t recorded_bytes(uint64_t bytes)
{
    const uint64_t most = UINT64_C(1) << 48;
    return (int64_t)(bytes < most ? bytes : most);
}

/* Nothing begins where an access goes on from the block in front, or is that of a block's end. */
bool recorded_memory_note(struct recorded_job *job, struct recorded_block *block,
                          const struct recorded_access *access)
{
    const uint64_t from = access->from, to = access->to;
    if ((!access->goes_on &&
         !add_cut(job->arena, &block->begins, &block->begin_count, &block->begin_cap, from)) ||
        (to > 0 && !add_cut(job->arena, &block->ends, &block->end_count, &block->end_cap, to)))
        return false;
    if (!access->goes_on) {
        block->begins_at_first = block->begins_at_first || from == 0;
        block->last_begin = from > block->last_begin ? from : block->last_begin;
    }
    block->used = true;
    if (access->goes_on && access->to == 0)
        block->written_on = block->written_on || access->write;
    else
        block->written = block->written || access->write;
    return true;
}

static bool access_block(struct recorded_job *job, struct recorded_block *block,
                         struct recorded_op *op, const struct recorded_access *access)
{
    if (!ARENA_GROW(job->arena, op->accesses, op->access_count, op->access_cap))
        return false;
    op->accesses[op->access_count++] = *access;
    return recorded_memory_note(job, block, access);
}

/* Memory that is mapped behind other mapped memory is one with it to a program. SIZE_MAX: there is none, or something
   begins in front of it. */
static size_t find_next(const struct recorded_process *process,
                        const struct recorded_access *access)
{
    const struct recorded_block *block = &process->blocks[access->block];
    const bool ends_here =
        access->to == 0 ? block->last_begin > access->from : access->to < block->bytes;
    const size_t next = block->mapped && !ends_here
                            ? recorded_memory_find(process, block->address + block->bytes)
                            : SIZE_MAX;
    return next != SIZE_MAX && process->blocks[next].mapped &&
                   !(access->to == 0 && process->blocks[next].begins_at_first)
               ? next
               : SIZE_MAX;
}

bool recorded_memory_access(struct recorded_job *job, struct recorded_process *process,
                            struct recorded_op *op, uint64_t address, uint64_t bytes, bool write,
                            int part)
{
    size_t index = recorded_memory_find(process, address);
    if (index != SIZE_MAX && process->blocks[index].has_tenants) {
        const size_t tensor = recorded_tensors_find(process, address, bytes);
        const uint64_t end = process->blocks[index].address + process->blocks[index].bytes;
        if (tensor == SIZE_MAX &&
            !recorded_tenant_loose(job, process, address, bytes > 0 ? address + bytes : end))
            return false;
        index = tensor == SIZE_MAX ? index : tensor;
    }
    struct recorded_access access = {.write = write, .part = part};
    while (index != SIZE_MAX) {
        struct recorded_block *block = &process->blocks[index];
        access.block = index;
        access.from = access.goes_on ? 0 : address - block->address;
        const uint64_t left = block->bytes - access.from, here = bytes < left ? bytes : left;
        access.to = bytes == 0 ? 0 : access.from + here;
        if (!access_block(job, block, op, &access))
            return false;
        index = bytes > 0 && bytes == here ? SIZE_MAX : find_next(process, &access);
        bytes -= here;
        access.goes_on = true;
    }
    return true;
}

bool recorded_memory_overwrite(struct recorded_job *job, struct recorded_process *process,
                               struct recorded_op *op, size_t block)
{
    const struct recorded_access all = {.block = block,
                                        .to = process->blocks[block].bytes,
                                        .write = true,
                                        .part = -1,
                                        .goes_on = true};
    const bool written = process->blocks[block].written;
    const bool good = access_block(job, &process->blocks[block], op, &all);
    process->blocks[block].written = written;
    return good;
}

/* ---- pieces ----------------------------------------------------------------------------------- */

/* Sorted, each once. */
static size_t sort_once(uint64_t *items, size_t count)
{
    size_t kept = 0;
    sort_u64(items, count);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || items[kept - 1] != items[i])
            items[kept++] = items[i];
    return kept;
}

static bool cut_block(struct recorded_job *job, struct recorded_block *block)
{
    const size_t most = block->begin_count + block->end_count + 2;
    block->cuts = ARENA_ARRAY(job->arena, most, uint64_t);
    block->pieces = ARENA_ARRAY(job->arena, most, int);
    block->listed = ARENA_ARRAY(job->arena, most, size_t);
    if (!block->cuts || !block->pieces || !block->listed)
        return false;
    memset(block->listed, 0, most * sizeof *block->listed);
    if (block->begin_count > 0)
        memcpy(block->cuts, block->begins, block->begin_count * sizeof *block->cuts);
    if (block->end_count > 0)
        memcpy(block->cuts + block->begin_count, block->ends,
               block->end_count * sizeof *block->cuts);
    block->cuts[most - 2] = 0;
    block->cuts[most - 1] = block->bytes;
    block->cut_count = sort_once(block->cuts, most);
    block->begin_count = sort_once(block->begins, block->begin_count);
    for (size_t i = 0; i < most; i++)
        block->pieces[i] = -1;
    return true;
}

bool recorded_memory_cut(struct recorded_job *job, struct recorded_process *process)
{
    for (size_t i = 0; i < process->block_count; i++)
        if (!cut_block(job, &process->blocks[i]))
            return false;
    return true;
}

/* The first of a sorted list that is greater. */
static uint64_t next_above(const uint64_t *items, size_t count, uint64_t value, uint64_t otherwise)
{
    const size_t low = SORT_FIRST(i, 0, count, items[i] > value);
    return low < count ? items[low] : otherwise;
}

/* Nobody can say of memory that nothing has written it where some writes may be unknown. */
static bool may_hold_values(const struct recorded_job *job, const struct recorded_block *block)
{
    const bool written = block->written || (block->written_on && !block->begins_at_first);
    return !written || block->memory != RECORDING_MEMORY_DEVICE || job->unseen ||
           job->opaque_launches > 0 || job->strange_accesses > 0;
}

int recorded_memory_piece(struct recorded_job *job, struct recorded_block *block, size_t piece)
{
    struct plan *plan = job->plan;
    if (block->pieces[piece] >= 0)
        return block->pieces[piece];
    const char *name = block->cut_count <= 2 ? block->name
                                             : arena_printf(job->arena, "%s.%" PRIu64, block->name,
                                                            block->cuts[piece]);
    const int buffer = name ? names_intern(&job->buffers, job->arena, name) : -1;
    if (buffer >= 0 && (size_t)buffer == plan->buffer_count) {
        if (!ARENA_GROW(job->arena, plan->buffers, plan->buffer_count, job->buffer_cap))
            return -1;
        plan->buffers[plan->buffer_count++] = (struct buffer){.name = name, .scope = SCOPE_SHARED};
    }
    if (buffer >= 0)
        plan->buffers[buffer].input = plan->buffers[buffer].input || may_hold_values(job, block);
    block->pieces[piece] = buffer;
    return buffer;
}

static bool add_to_list(struct arena *arena, struct index_list *list, size_t *cap, size_t *rank_cap,
                        int buffer, int rank)
{
    if (!ARENA_GROW(arena, list->items, list->count, *cap) ||
        !ARENA_GROW(arena, list->ranks, list->count, *rank_cap))
        return false;
    list->ranks[list->count] = rank;
    list->items[list->count++] = buffer;
    return true;
}

bool recorded_memory_list(struct recorded_job *job, const struct recorded_process *process,
                          const struct recorded_op *op, int rank, bool write, int part,
                          struct index_list *out)
{
    size_t cap = 0, rank_cap = 0;
    bool goes_on = false;
    job->lists++;
    for (size_t i = 0; i < op->access_count; i++) {
        const struct recorded_access *access = &op->accesses[i];
        struct recorded_block *block = &process->blocks[access->block];
        if (access->write != write || access->part != part)
            continue;
        const uint64_t to =
            access->to ? access->to
                       : next_above(block->begins, block->begin_count, access->from, block->bytes);
        job->assumes_extents = job->assumes_extents || (access->to == 0 && to < block->bytes);
        if (access->goes_on && access->to == 0 && (!goes_on || block->begins_at_first)) {
            goes_on = false;
            continue;
        }
        goes_on = to == block->bytes;
        const int owner = recorded_rank(process, block->device);
        size_t c = SORT_FIRST(k, 0, block->cut_count, block->cuts[k] >= access->from);
        for (; c + 1 < block->cut_count && block->cuts[c] < to; c++) {
            if (block->listed[c] == job->lists)
                continue;
            block->listed[c] = job->lists;
            const int buffer = recorded_memory_piece(job, block, c);
            if (buffer < 0 || !add_to_list(job->arena, out, &cap, &rank_cap, buffer,
                                           owner == rank ? 0 : 1 + owner))
                return false;
        }
    }
    return true;
}

/* ---- memory that is mapped to reserved addresses ----------------------------------------------- */

/* Of the live handle, or NULL: its number may have been that of other memory before. */
static struct recorded_physical *find_physical(const struct walk *walk, uint64_t handle)
{
    struct recorded_process *process = walk->process;
    const struct ordered_node *found = ordered_find(&process->physical_of, handle);
    return found ? &process->physicals[found->value] : NULL;
}

static struct recorded_physical *add_physical(const struct walk *walk, uint64_t handle,
                                              enum recording_memory memory, int device)
{
    struct recorded_process *process = walk->process;
    if (!ordered_put(&process->physical_of, walk->job->arena, handle, process->physical_count) ||
        !ARENA_GROW(walk->job->arena, process->physicals, process->physical_count,
                    process->physical_cap))
        return NULL;
    struct recorded_physical *physical = &process->physicals[process->physical_count++];
    *physical =
        (struct recorded_physical){.handle = handle, .ends = 1, .memory = memory, .device = device};
    return physical;
}

bool walk_take_physical(const struct walk *walk)
{
    const uint64_t *word = walk->item->word;
    return add_physical(walk, word[0], (enum recording_memory)(word[2] & 3), (int)(word[3] & 63)) !=
           NULL;
}

bool walk_take_physical_kept(const struct walk *walk)
{
    struct recorded_physical *physical = find_physical(walk, walk->item->word[0]);
    if (physical)
        physical->ends++;
    return true;
}

bool walk_take_physical_end(const struct walk *walk)
{
    struct recorded_physical *physical = find_physical(walk, walk->item->word[0]);
    if (physical && --physical->ends == 0)
        ordered_drop(&walk->process->physical_of, physical->handle);
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
    struct recorded_physical *physical = find_physical(walk, word[2]);
    size_t block;
    if (word[1] == 0)
        return true;
    if (!physical)
        physical = add_physical(walk, word[2], RECORDING_MEMORY_DEVICE, walk->thread->device);
    if (!physical ||
        !recorded_memory_begin(walk->job, walk->process, word[0], word[1], physical->memory,
                               physical->device, &block) ||
        !ARENA_GROW(walk->job->arena, physical->mapped, physical->mapped_count,
                    physical->mapped_cap))
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
    const struct ordered_node *at;
    for (uint64_t end = from + bytes;
         (at = ordered_before(&process->by_address, end)) != NULL && at->key >= from;) {
        const size_t block = at->value;
        end = at->key;
        if (process->blocks[block].mapped && !walk_free_block(walk, block, false))
            return false;
    }
    return true;
}
