/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded_tenants.c - memory that PyTorch's allocator gives to one tensor after another.
 *
 * A tensor is a *tenant* of its addresses. Where in every run all work on the tenants that were there before comes before all work on
 * it, it makes no difference that they had the same addresses: the plan gives the tensor a buffer of its own. An access comes behind one to
 * an earlier tenant where
 *
 *     - both are of one stream, since the allocator gave the memory away between the two pushes;
 *     - the stream waits for the earlier one, or the thread that pushes has seen its end;
 *     - the allocator has: it recorded an event behind it (record_stream), and gave the memory away when that was done.
 *
 * Pinned memory has no tensors that a recording shows. It gets a new tenant where a stream writes it behind all work on it so far.
 *
 * Where one does not, or a tensor is accessed by others than streams, as by graphs, or on streams whose pushes come in no
 * order that was seen, all tensors that ever had one of these addresses keep them in the plan: whatever is wrong with the
 * order then shows there. All others have only tenants before them that come before in this way, directly or through one between.
 */
#include "recorded_internal.h"

#include <assert.h>
#include <string.h>

#include "base/array.h"
#include "base/sort.h"

/* The last push to a stream that accesses a tenant. */
struct tenant_use {
    size_t stream;
    uint64_t pushes;
    bool told; /* the allocator recorded an event behind it when the tensor was gone */
};

struct recorded_tenant {
    size_t block, parent;
    uint64_t from, to; /* addresses */
    struct tenant_use *uses;
    size_t use_count, use_cap;
    size_t *before; /* the tenants that its addresses had last */
    size_t before_count, before_cap;
    bool free; /* the allocator has seen all events that were recorded when the tensor was gone */
    bool used, odd; /* odd: some access is not a push to a stream, or comes in no order */
    bool by_place;  /* the plan has its addresses */
};

/* The addresses whose last tenant with accesses is this one; they do not overlap. */
struct tenant_place {
    uint64_t from, to;
    size_t tenant;
};

/* Addresses that are accessed by others than their tenants. */
struct tenant_loose {
    uint64_t from, to;
};

struct recorded_tenants {
    struct recorded_tenant *items;
    size_t count, cap;
    struct tenant_place *places; /* by address */
    size_t place_count, place_cap;
    struct tenant_loose *loose;
    size_t loose_count, loose_cap;
};

static struct recorded_tenant *tenant_of(const struct recorded_process *process, size_t block)
{
    const size_t tenant = process->blocks[block].tenant;
    return tenant > 0 ? &process->tenants->items[tenant - 1] : NULL;
}

/* ---- who was there --------------------------------------------------------------------------------- */

static size_t tenants_first(const struct recorded_tenants *tenants, uint64_t from)
{
    return SORT_FIRST(i, 0, tenants->place_count, tenants->places[i].to > from);
}

static bool list_before(struct recorded_job *job, const struct recorded_tenants *tenants,
                        struct recorded_tenant *tenant)
{
    for (size_t i = tenants_first(tenants, tenant->from);
         i < tenants->place_count && tenants->places[i].from < tenant->to; i++) {
        const size_t other = tenants->places[i].tenant;
        bool known = false;
        for (size_t k = 0; k < tenant->before_count; k++)
            known |= tenant->before[k] == other;
        if (known)
            continue;
        if (!ARENA_GROW(job->arena, tenant->before, tenant->before_count, tenant->before_cap))
            return false;
        tenant->before[tenant->before_count++] = other;
    }
    return true;
}

/* The places of a tenant that is gone, in front of those that have been there. */
static bool tenants_take_place(struct recorded_job *job, struct recorded_tenants *tenants,
                               size_t number)
{
    const uint64_t from = tenants->items[number].from, to = tenants->items[number].to;
    const size_t first = tenants_first(tenants, from);
    size_t end = first, kept = 0;
    struct tenant_place left[3];
    for (; end < tenants->place_count && tenants->places[end].from < to; end++) {
        const struct tenant_place *old = &tenants->places[end];
        if (old->from < from)
            left[kept++] = (struct tenant_place){old->from, from, old->tenant};
    }
    left[kept++] = (struct tenant_place){from, to, number};
    if (end > first && tenants->places[end - 1].to > to)
        left[kept++] =
            (struct tenant_place){to, tenants->places[end - 1].to, tenants->places[end - 1].tenant};
    if (!ARENA_RESERVE(job->arena, tenants->places, tenants->place_count + kept,
                       tenants->place_cap))
        return false;
    memmove(&tenants->places[first + kept], &tenants->places[end],
            (tenants->place_count - end) * sizeof *tenants->places);
    memcpy(&tenants->places[first], left, kept * sizeof *left);
    tenants->place_count += kept - (end - first);
    return true;
}

/* ---- tensors --------------------------------------------------------------------------------------- */

/* The new tenant of some of a block; NULL: no memory. */
static struct recorded_tenant *add_tenant(struct recorded_job *job,
                                          struct recorded_process *process, size_t parent,
                                          uint64_t address, uint64_t bytes, const char *name)
{
    struct recorded_tenants *tenants = process->tenants;
    if (!tenants) {
        tenants = process->tenants = ARENA_NEW(job->arena, struct recorded_tenants);
        if (!tenants)
            return NULL;
        *tenants = (struct recorded_tenants){0};
    }
    if (!name ||
        !ARENA_GROW(job->arena, process->blocks, process->block_count, process->block_cap) ||
        !ARENA_GROW(job->arena, tenants->items, tenants->count, tenants->cap))
        return NULL;
    const size_t block = process->block_count++;
    const struct recorded_block *within = &process->blocks[parent];
    process->blocks[block] = (struct recorded_block){.address = address,
                                                     .bytes = bytes,
                                                     .memory = within->memory,
                                                     .device = within->device,
                                                     .name = name,
                                                     .tenant = 1 + tenants->count};
    struct recorded_tenant *tenant = &tenants->items[tenants->count++];
    *tenant = (struct recorded_tenant){
        .block = block, .parent = parent, .from = address, .to = address + bytes};
    return tenant;
}

bool walk_tenant_begin(const struct walk *walk, uint64_t address, uint64_t bytes, size_t *out)
{
    struct recorded_process *process = walk->process;
    struct recorded_job *job = walk->job;
    const size_t parent = recorded_memory_find(process, address);
    *out = SIZE_MAX;
    if (parent == SIZE_MAX || bytes == 0 || !job->by_tensors)
        return true;
    struct recorded_block *within = &process->blocks[parent];
    if (within->memory != RECORDING_MEMORY_DEVICE || within->mapped ||
        bytes > within->bytes - (address - within->address))
        return true;
    within->has_tenants = true;
    const size_t number = process->tenants ? process->tenants->count : 0;
    struct recorded_tenant *tenant = add_tenant(job, process, parent, address, bytes,
                                                arena_printf(job->arena, "tensor%zu", number));
    if (!tenant)
        return false;
    *out = tenant->block;
    return list_before(job, process->tenants, tenant);
}

bool walk_tenant_end(const struct walk *walk, size_t block)
{
    const struct recorded_process *process = walk->process;
    const struct recorded_thread *thread = walk->thread;
    struct recorded_tenant *tenant = block == SIZE_MAX ? NULL : tenant_of(process, block);
    for (size_t e = 0; tenant && e < thread->just_recorded_count; e++) {
        const struct recorded_event *event = walk_event(walk, thread->just_recorded[e]);
        if (!event)
            return false;
        for (size_t i = 0; i < tenant->use_count; i++)
            tenant->uses[i].told |=
                event->stream == tenant->uses[i].stream && event->pushes >= tenant->uses[i].pushes;
    }
    return !tenant || !tenant->used ||
           tenants_take_place(walk->job, process->tenants, process->blocks[block].tenant - 1);
}

void recorded_tenant_free(struct recorded_process *process, size_t block)
{
    if (block != SIZE_MAX)
        tenant_of(process, block)->free = true;
}

/* ---- accesses -------------------------------------------------------------------------------------- */

bool recorded_tenant_loose(struct recorded_job *job, struct recorded_process *process,
                           uint64_t from, uint64_t to)
{
    struct recorded_tenants *tenants = process->tenants;
    if (!ARENA_GROW(job->arena, tenants->loose, tenants->loose_count, tenants->loose_cap))
        return false;
    tenants->loose[tenants->loose_count++] = (struct tenant_loose){from, to};
    return true;
}

/* What the next push of the stream does comes behind that use, in every run. */
static bool comes_behind(const struct walk *walk, const struct recorded_stream *stream,
                         const struct recorded_tenant *before, const struct tenant_use *use)
{
    const struct recorded_stream *other = &walk->process->streams[use->stream];
    return other == stream || (use->told && before->free) ||
           walk_frontier_includes(stream, use->stream, use->pushes) ||
           walk_has_observed(walk, other, use->pushes, false);
}

static bool add_use(const struct walk *walk, struct recorded_tenant *tenant,
                    const struct recorded_stream *stream)
{
    const size_t number = (size_t)(stream - walk->process->streams);
    for (size_t i = 0; i < tenant->use_count; i++)
        if (tenant->uses[i].stream == number) {
            tenant->uses[i].pushes = stream->pushes;
            return true;
        }
    if (!ARENA_GROW(walk->job->arena, tenant->uses, tenant->use_count, tenant->use_cap))
        return false;
    tenant->uses[tenant->use_count++] = (struct tenant_use){number, stream->pushes, false};
    return true;
}

static bool are_behind(const struct walk *walk, const struct recorded_stream *stream,
                       const struct recorded_tenant *before)
{
    for (size_t u = 0; u < before->use_count; u++)
        if (!comes_behind(walk, stream, before, &before->uses[u]))
            return false;
    return true;
}

/* The access to pinned memory becomes one to its tenant. */
static bool use_version(const struct walk *walk, const struct recorded_stream *stream,
                        struct recorded_access *access)
{
    struct recorded_process *process = walk->process;
    struct arena *arena = walk->job->arena;
    const size_t parent = access->block;
    const struct recorded_block within = process->blocks[parent];
    const size_t last = within.version;
    struct recorded_tenant *tenant = last > 0 ? &process->tenants->items[last - 1] : NULL;
    if (!tenant || (access->write && stream && stream->capture < 0 && tenant->use_count > 0 &&
                    are_behind(walk, stream, tenant))) {
        const char *name = last > 0
                               ? arena_printf(arena, "%sv%zu", within.name, process->tenants->count)
                               : within.name;
        tenant = add_tenant(walk->job, process, parent, within.address, within.bytes, name);
        if (!tenant || !ARENA_GROW(arena, tenant->before, 0, tenant->before_cap))
            return false;
        tenant->before[0] = last - 1;
        tenant->before_count = last > 0;
        process->blocks[parent].version = process->tenants->count;
    }
    access->block = tenant->block;
    return recorded_memory_note(walk->job, &process->blocks[tenant->block], access);
}

bool walk_tenant_accesses(const struct walk *walk, const struct recorded_stream *stream,
                          const struct recorded_op *op)
{
    const struct recorded_process *process = walk->process;
    for (size_t i = 0; i < op->access_count; i++) {
        const struct recorded_block *block = &process->blocks[op->accesses[i].block];
        if (walk->job->by_tensors && block->memory == RECORDING_MEMORY_PINNED &&
            block->tenant == 0 && !block->mapped && !use_version(walk, stream, &op->accesses[i]))
            return false;
        struct recorded_tenant *tenant = tenant_of(process, op->accesses[i].block);
        if (!tenant)
            continue;
        tenant->used = true;
        if (!stream || stream->capture >= 0) {
            tenant->odd = true;
            continue;
        }
        for (size_t b = 0; b < tenant->before_count; b++) {
            struct recorded_tenant *before = &process->tenants->items[tenant->before[b]];
            if (!are_behind(walk, stream, before))
                tenant->odd = before->odd = true;
        }
        if (!add_use(walk, tenant, stream))
            return false;
    }
    return true;
}

/* ---- what has a buffer of its own ------------------------------------------------------------------ */

static int compare_loose(const void *left, const void *right)
{
    const struct tenant_loose *a = left, *b = right;
    return compare_u64(a->from, b->from);
}

/* By address, so that none overlap. */
static void sort_loose(struct recorded_tenants *tenants)
{
    size_t kept = 0;
    SORT(tenants->loose, tenants->loose_count, compare_loose);
    for (size_t i = 0; i < tenants->loose_count; i++) {
        const struct tenant_loose *at = &tenants->loose[i];
        struct tenant_loose *last = kept > 0 ? &tenants->loose[kept - 1] : NULL;
        if (!last || at->from > last->to)
            tenants->loose[kept++] = *at;
        else
            last->to = at->to > last->to ? at->to : last->to;
    }
    tenants->loose_count = kept;
}

static bool is_by_place(const struct recorded_tenants *tenants,
                        const struct recorded_tenant *tenant)
{
    const size_t at = SORT_FIRST(i, 0, tenants->loose_count, tenants->loose[i].to > tenant->from);
    return at < tenants->loose_count && tenants->loose[at].from < tenant->to;
}

static bool is_odd(const struct recorded_process *process, const struct recorded_tenant *tenant)
{
    const struct recorded_block *parent = &process->blocks[tenant->parent];
    bool odd = tenant->odd || parent->freed || parent->async || parent->of_graph;
    for (size_t u = 0; u < tenant->use_count; u++)
        odd |= process->streams[tenant->uses[u].stream].unordered;
    return odd;
}

static bool settle_tenants(struct recorded_job *job, struct recorded_process *process)
{
    struct recorded_tenants *tenants = process->tenants;
    for (size_t i = 0; i < tenants->count; i++) {
        const struct recorded_tenant *tenant = &tenants->items[i];
        if (is_odd(process, tenant) &&
            !recorded_tenant_loose(job, process, tenant->from, tenant->to))
            return false;
    }
    sort_loose(tenants);
    for (size_t i = 0; i < tenants->count; i++)
        tenants->items[i].by_place = is_by_place(tenants, &tenants->items[i]);
    return true;
}

static bool place_ops(struct recorded_job *job, struct recorded_process *process,
                      struct recorded_ops *ops)
{
    for (size_t i = 0; i < ops->count; i++)
        for (size_t k = 0; k < ops->items[i].access_count; k++) {
            struct recorded_access *access = &ops->items[i].accesses[k];
            const struct recorded_tenant *tenant = tenant_of(process, access->block);
            if (!tenant || !tenant->by_place)
                continue;
            const uint64_t offset = tenant->from - process->blocks[tenant->parent].address;
            access->block = tenant->parent;
            access->from += offset;
            access->to += access->to > 0 ? offset : 0;
            if (!recorded_memory_note(job, &process->blocks[tenant->parent], access))
                return false;
        }
    return true;
}

bool recorded_tenants_settle(struct recorded_job *job, struct recorded_process *process)
{
    if (!process->tenants)
        return true;
    if (!settle_tenants(job, process))
        return false;
    for (size_t t = 0; t < process->tapes.thread_count; t++)
        if (!place_ops(job, process, &process->threads[t].ops))
            return false;
    for (size_t g = 0; g < process->graph_count; g++)
        if (!place_ops(job, process, &process->graphs[g].ops))
            return false;
    return true;
}
