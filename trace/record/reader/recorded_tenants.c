/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded_tenants.c - memory that PyTorch's allocator gives to one tensor after another.
 *
 * A tensor is a *tenant* of its addresses. Where in every run all work on earlier tenants comes before all work on it, it makes
 * no difference that they had the same addresses, and the plan gives the tensor a buffer of its own. An access comes behind
 * one to an earlier tenant where
 *
 *     - both are of one stream, since the allocator gave the memory away between the two pushes;
 *     - the stream waits for the earlier one, or the thread that pushes has seen its end;
 *     - the allocator has: it recorded an event behind it (record_stream), and gave the memory away when that was done.
 *
 * Pinned memory has no tensors that a recording shows. It gets a new tenant where a stream or the host writes it behind all
 * work on it so far: PyTorch's allocator gives a block away again when queries have told it that all copies are done. An access of
 * the host comes behind work whose end its thread has seen, and behind accesses of threads that its own comes after.
 *
 * Where one does not, or a tensor is accessed by others than streams, as by graphs, or on streams whose pushes come in no
 * order that was seen, all tensors that ever had one of these addresses keep them in the plan: whatever is wrong with the
 * order then shows there. Of all others, each byte had tenants that come one behind another in this way. A stream
 * is looked at once a tensor: its later pushes come behind its first one.
 *
 * The order is that of recorded_order.c. That of machine/happens_before.h cannot be asked: it is one of a plan's program, and which
 * buffers that plan has is decided here, by what the recording alone knows: the allocator's events, and answers of queries.
 */
#include "recorded_internal.h"

#include <assert.h>
#include <string.h>

#include "base/array.h"
#include "base/sort.h"

/* The last access of a tenant: the push of a stream, or the place of a thread's own access. */
struct tenant_use {
    size_t user; /* a stream, or TENANT_HOST + a thread */
    uint64_t pushes;
    bool told; /* the allocator recorded an event behind it when the tensor was gone */
};
static const size_t TENANT_HOST = SIZE_MAX / 2;

/* By user. */
struct tenant_uses {
    struct tenant_use *items;
    size_t count, cap;
};

struct recorded_tenant {
    size_t block, parent;
    uint64_t from, to; /* addresses */
    struct tenant_uses
        before; /* of the tenants that its addresses had last, when it is first used */
    struct tenant_uses uses;
    bool free; /* the allocator has seen all events that were recorded when the tensor was gone */
    bool used, odd; /* odd: some access is not a push to a stream, or comes in no order */
    bool by_place;  /* the plan has its addresses */
};

/* Addresses that are accessed by others than their tenants. */
struct tenant_loose {
    uint64_t from, to;
};

enum { NO_TENANT = SIZE_MAX };

struct recorded_tenants {
    struct recorded_tenant *items;
    size_t count, cap;
    struct ordered
        places; /* by address: from there to the next one the last tenant with accesses, or NO_TENANT */
    struct tenant_loose *loose;
    size_t loose_count, loose_cap;
};

static struct recorded_tenant *tenant_of(const struct recorded_process *process, size_t block)
{
    const size_t tenant = process->blocks[block].tenant;
    return tenant > 0 ? &process->tenants->items[tenant - 1] : NULL;
}

/* ---- who was there --------------------------------------------------------------------------------- */

/* The use of that user, which is a new one if it had none; NULL: no memory. */
static struct tenant_use *uses_of(struct arena *arena, struct tenant_uses *uses, size_t user)
{
    const size_t place = SORT_FIRST(i, 0, uses->count, uses->items[i].user >= user);
    if (place < uses->count && uses->items[place].user == user)
        return &uses->items[place];
    if (!ARENA_GROW(arena, uses->items, uses->count, uses->cap))
        return NULL;
    memmove(&uses->items[place + 1], &uses->items[place],
            (uses->count++ - place) * sizeof *uses->items);
    uses->items[place] = (struct tenant_use){.user = user};
    return &uses->items[place];
}

/* What the allocator has seen the end of needs no order. */
static bool add_uses_before(struct arena *arena, struct tenant_uses *before,
                            const struct recorded_tenant *last)
{
    for (size_t i = 0; i < last->uses.count; i++) {
        const struct tenant_use *use = &last->uses.items[i];
        if (use->told && last->free)
            continue;
        struct tenant_use *known = uses_of(arena, before, use->user);
        if (!known)
            return false;
        known->pushes = max_u64(known->pushes, use->pushes);
    }
    return true;
}

static bool find_before(struct arena *arena, const struct recorded_tenants *tenants,
                        struct recorded_tenant *tenant)
{
    const struct ordered_node *place = ordered_last(&tenants->places, tenant->from);
    if (!place)
        place = ordered_first(&tenants->places, tenant->from);
    for (; place && place->key < tenant->to;
         place = ordered_first(&tenants->places, place->key + 1))
        if (place->value != NO_TENANT &&
            !add_uses_before(arena, &tenant->before, &tenants->items[place->value]))
            return false;
    return true;
}

/* The places of a tenant that is gone, in front of those that have been there. */
static bool take_places(struct arena *arena, struct ordered *places, uint64_t from, uint64_t to,
                        size_t number)
{
    const struct ordered_node *place = ordered_last(places, to);
    if (!(place && place->key == to) &&
        !ordered_put(places, arena, to, place ? place->value : NO_TENANT))
        return false;
    while ((place = ordered_first(places, from))->key < to)
        ordered_drop(places, place->key);
    return ordered_put(places, arena, from, number);
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
    return true;
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
        for (size_t i = 0; i < tenant->uses.count; i++) {
            struct tenant_use *use = &tenant->uses.items[i];
            use->told |= event->stream == use->user && event->pushes >= use->pushes;
        }
    }
    return !tenant || !tenant->used ||
           take_places(walk->job->arena, &process->tenants->places, tenant->from, tenant->to,
                       process->blocks[block].tenant - 1);
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

static bool comes_behind_use(const struct walk *walk, const struct recorded_stream *stream,
                             const struct tenant_use *use)
{
    if (use->user >= TENANT_HOST)
        return walk_order_is_behind(
            walk, &(struct recorded_use){.thread = use->user - TENANT_HOST, .place = use->pushes});
    const struct recorded_stream *other = &walk->process->streams[use->user];
    return other == stream || (stream && walk_frontier_includes(stream, use->user, use->pushes)) ||
           walk_has_observed(walk, other, use->pushes, false);
}

/* True if the next push of the stream comes behind these uses in every run; where the stream is NULL, the thread does. */
static bool comes_behind(const struct walk *walk, const struct recorded_stream *stream,
                         const struct tenant_uses *uses)
{
    for (size_t i = 0; i < uses->count; i++)
        if (!comes_behind_use(walk, stream, &uses->items[i]))
            return false;
    return true;
}

/* True if its accesses come in an order that is known: those of a graph do not, nor those of the host to a device's memory. */
static bool has_order(const struct walk *walk, const struct recorded_stream *stream,
                      enum recording_memory memory)
{
    return stream ? stream->capture < 0
                  : memory == RECORDING_MEMORY_PINNED && !walk->thread->in_host_function;
}

/* The later pushes of a stream come behind what its first one comes behind, and so do the later accesses of a thread. */
static bool use_tenant(const struct walk *walk, struct recorded_tenant *tenant,
                       const struct recorded_stream *stream)
{
    struct arena *arena = walk->job->arena;
    const size_t users = tenant->uses.count;
    if (!tenant->used && !find_before(arena, walk->process->tenants, tenant))
        return false;
    tenant->used = true;
    if (!has_order(walk, stream, walk->process->blocks[tenant->block].memory)) {
        tenant->odd = true;
        return true;
    }
    const size_t user =
        stream ? (size_t)(stream - walk->process->streams) : TENANT_HOST + walk->number;
    struct tenant_use *use = uses_of(arena, &tenant->uses, user);
    if (!use)
        return false;
    use->pushes = stream ? stream->pushes : walk->thread->place;
    if (tenant->uses.count > users && !comes_behind(walk, stream, &tenant->before))
        tenant->odd = true;
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
    if (!tenant || (access->write && has_order(walk, stream, within.memory) &&
                    tenant->uses.count > 0 && comes_behind(walk, stream, &tenant->uses))) {
        const char *name = last > 0
                               ? arena_printf(arena, "%sv%zu", within.name, process->tenants->count)
                               : within.name;
        tenant = add_tenant(walk->job, process, parent, within.address, within.bytes, name);
        if (!tenant || (last > 0 && !add_uses_before(arena, &tenant->before,
                                                     &process->tenants->items[last - 1])))
            return false;
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
        if (tenant && !use_tenant(walk, tenant, stream))
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
    /* That of pinned memory is an access of the host like others. */
    const bool freed = parent->freed && parent->memory != RECORDING_MEMORY_PINNED;
    bool odd = tenant->odd || freed || parent->async || parent->of_graph;
    for (size_t u = 0; u < tenant->uses.count; u++)
        odd |= tenant->uses.items[u].user < TENANT_HOST &&
               process->streams[tenant->uses.items[u].user].unordered;
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
