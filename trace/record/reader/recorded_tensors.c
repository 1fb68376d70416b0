/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded_tensors.c - the tensors of a process on its devices: how much they take at most, what they are for, and whose
 * line allocates then.
 *
 * The allocator of PyTorch keeps the memory of a tensor that is gone where another stream has used it (record_stream): it
 * records an event in each such stream and gives the memory to others when it has seen that all of them are done. So the
 * records that directly precede the end of a tensor are its own.
 */
#include "recorded_internal.h"

#include <string.h>

#include "base/array.h"
#include "base/sort.h"

enum { NOT_TOLD = -1 };

struct recorded_tensor {
    uint64_t address, bytes;
    int device, what;          /* enum recording_tensor, or NOT_TOLD */
    bool in_operator, of_comm; /* a collective or message accesses it */
    const char *at, *name;     /* the line and the operator that allocate it; NULL: not told */
    size_t from, gone,
        to;        /* moments; SIZE_MAX: not yet. Its memory is free for others from `to` on */
    size_t events; /* that it waits for */
    size_t block;  /* SIZE_MAX: its memory is no tenant's */
};

/* A tensor is gone, and its memory waits for an event. */
struct recorded_held {
    size_t tensor, next; /* 1 + another one of the event; 0: it is the last */
};

struct recorded_tensors_device {
    uint64_t used, most, reserved, all, all_most, refused;
    size_t peak; /* the moment of `most`; the tensor that was allocated then */
    size_t peak_tensor;
    const char *refused_at;
};

struct recorded_tensors {
    struct recorded_tensor *items;
    size_t count, cap, moments;
    struct ordered live; /* by address */
    struct recorded_held *held;
    size_t held_count, held_cap;
    struct recorded_tensors_device devices[64];
    bool used[64];
};

static struct recorded_tensors *tensors_of(const struct walk *walk)
{
    struct recorded_tensors **tensors = &walk->process->tensors;
    if (!*tensors && (*tensors = ARENA_ARRAY(walk->job->arena, 1, struct recorded_tensors)))
        memset(*tensors, 0, sizeof **tensors);
    return *tensors;
}

/* Among those that live; NULL: the address is in none. */
static struct recorded_tensor *tensors_find(const struct recorded_tensors *tensors,
                                            uint64_t address)
{
    const struct ordered_node *last = ordered_last(&tensors->live, address);
    struct recorded_tensor *tensor = last ? &tensors->items[last->value] : NULL;
    return tensor && address - tensor->address < tensor->bytes ? tensor : NULL;
}

size_t recorded_tensors_find(const struct recorded_process *process, uint64_t address,
                             uint64_t bytes)
{
    const struct recorded_tensor *tensor = tensors_find(process->tensors, address);
    return tensor && bytes <= tensor->bytes - (address - tensor->address) ? tensor->block
                                                                          : SIZE_MAX;
}

static void tensors_free(const struct walk *walk, struct recorded_tensors *tensors,
                         struct recorded_tensor *tensor)
{
    recorded_tenant_free(walk->process, tensor->block);
    tensor->to = tensors->moments;
    tensors->devices[tensor->device].used -= tensor->bytes;
}

/* ---- items ------------------------------------------------------------------------------------- */

static bool take_tensor(const struct walk *walk, struct recorded_tensors *tensors)
{
    const uint64_t *word = walk->item->word;
    struct recorded_tensors_device *device = &tensors->devices[word[2] & 63];
    size_t block;
    if (!ARENA_GROW(walk->job->arena, tensors->items, tensors->count, tensors->cap) ||
        !ordered_put(&tensors->live, walk->job->arena, word[0], tensors->count) ||
        !walk_tenant_begin(walk, word[0], word[1], &block))
        return false;
    tensors->items[tensors->count] = (struct recorded_tensor){
        .address = word[0],
        .bytes = word[1],
        .device = (int)(word[2] & 63),
        .what = NOT_TOLD,
        .in_operator = word[4] != 0,
        .name = word[4] ? recorded_calls_find_text(walk->process, word[4]) : NULL,
        .at = walk->thread->at,
        .from = tensors->moments,
        .gone = SIZE_MAX,
        .to = SIZE_MAX,
        .block = block};
    device->used += word[1];
    device->reserved = word[3] > device->reserved ? word[3] : device->reserved;
    tensors->used[word[2] & 63] = true;
    if (device->used > device->most) {
        device->most = device->used;
        device->peak = tensors->moments;
        device->peak_tensor = tensors->count;
    }
    tensors->count++;
    tensors->moments++;
    return true;
}

static bool take_tensor_end(const struct walk *walk, struct recorded_tensors *tensors)
{
    struct recorded_tensor *tensor = tensors_find(tensors, walk->item->word[0]);
    if (!tensor)
        return true; /* it was there before the recording began */
    ordered_drop(&tensors->live, tensor->address);
    tensor->gone = tensors->moments;
    tensor->events = walk->thread->just_recorded_count;
    if (!walk_tenant_end(walk, tensor->block))
        return false;
    for (size_t i = 0; i < tensor->events; i++) {
        struct recorded_event *event = walk_event(walk, walk->thread->just_recorded[i]);
        if (!event ||
            !ARENA_GROW(walk->job->arena, tensors->held, tensors->held_count, tensors->held_cap))
            return false;
        tensors->held[tensors->held_count++] =
            (struct recorded_held){(size_t)(tensor - tensors->items), event->held};
        event->held = tensors->held_count;
    }
    if (tensor->events == 0)
        tensors_free(walk, tensors, tensor);
    tensors->moments++;
    return true;
}

static bool take_done_event(const struct walk *walk, struct recorded_tensors *tensors,
                            uint64_t handle)
{
    struct recorded_event *event = walk_event(walk, handle);
    for (size_t i = event ? event->held : 0; i > 0; i = tensors->held[i - 1].next) {
        struct recorded_tensor *tensor = &tensors->items[tensors->held[i - 1].tensor];
        if (--tensor->events == 0)
            tensors_free(walk, tensors, tensor);
    }
    if (event)
        event->held = 0;
    return event != NULL;
}

static void take_what(const struct walk *walk, struct recorded_tensors *tensors)
{
    const int what = (int)(walk->item->word[0] % RECORDING_TENSORS);
    for (int i = 1; i < walk->item->words; i++) {
        struct recorded_tensor *tensor = tensors_find(tensors, walk->item->word[i]);
        /* What a tensor is kept for says more than which operator made it. */
        if (tensor && (what < RECORDING_TENSOR_FORWARD || tensor->what == NOT_TOLD))
            tensor->what = what;
    }
}

static void take_comm_use(struct recorded_tensors *tensors, uint64_t address)
{
    struct recorded_tensor *tensor = tensors_find(tensors, address);
    if (tensor)
        tensor->of_comm = true;
}

/* Memory of the device that the program allocates, for tensors or not. */
static void take_device_memory(const struct walk *walk, struct recorded_tensors *tensors)
{
    const uint64_t *word = walk->item->word;
    struct recorded_tensors_device *device = &tensors->devices[walk->thread->device];
    if (walk->item->kind == RECORDING_ALLOC_ASYNC || word[2] == RECORDING_MEMORY_DEVICE)
        device->all += word[1];
    tensors->used[walk->thread->device] = true;
    device->all_most = device->all > device->all_most ? device->all : device->all_most;
}

static void take_device_free(const struct walk *walk, struct recorded_tensors *tensors)
{
    const size_t index = recorded_memory_find(walk->process, walk->item->word[0]);
    const struct recorded_block *block = index == SIZE_MAX ? NULL : &walk->process->blocks[index];
    if (block && block->memory == RECORDING_MEMORY_DEVICE)
        tensors->devices[block->device].all -= block->bytes;
}

static void tensors_note_record(const struct walk *walk)
{
    struct recorded_thread *thread = walk->thread;
    if (thread->just_recorded_count < RECORDED_HELD)
        thread->just_recorded[thread->just_recorded_count++] = walk->item->word[0];
}

bool walk_take_tensors(const struct walk *walk)
{
    const uint64_t *word = walk->item->word;
    struct recorded_tensors *tensors = tensors_of(walk);
    bool good = tensors != NULL;
    if (!good)
        return false;
    switch ((enum recording_kind)walk->item->kind) {
    case RECORDING_RECORD: tensors_note_record(walk); return true;
    case RECORDING_EVENT:
    case RECORDING_DEVICE:
    case RECORDING_TEXT:
    case RECORDING_PUSH:
    case RECORDING_AFTER:
    case RECORDING_LOCK:
    case RECORDING_UNLOCK:
    case RECORDING_SIGNAL: return true;
    case RECORDING_TENSOR: good = take_tensor(walk, tensors); break;
    case RECORDING_TENSOR_END: good = take_tensor_end(walk, tensors); break;
    case RECORDING_TENSORS_ARE: take_what(walk, tensors); break;
    case RECORDING_TENSOR_REFUSED:
        tensors->devices[word[1] & 63].refused = word[0];
        tensors->devices[word[1] & 63].refused_at = walk->thread->at;
        tensors->used[word[1] & 63] = true;
        break;
    case RECORDING_QUERY_EVENT:
        for (int i = 1; good && word[0] && i < walk->item->words; i++)
            good = take_done_event(walk, tensors, word[i]);
        break;
    case RECORDING_SYNC_EVENT: good = take_done_event(walk, tensors, word[0]); break;
    case RECORDING_COLLECTIVE:
        take_comm_use(tensors, word[3]);
        take_comm_use(tensors, word[4]);
        break;
    case RECORDING_MESSAGE: take_comm_use(tensors, word[3]); break;
    case RECORDING_ALLOC:
    case RECORDING_ALLOC_ASYNC: take_device_memory(walk, tensors); break;
    case RECORDING_FREE:
    case RECORDING_FREE_ASYNC: take_device_free(walk, tensors); break;
    default: break;
    }
    walk->thread->just_recorded_count = 0;
    return good;
}

/* ---- the plan ---------------------------------------------------------------------------------- */

static enum tensors_for tensors_use(const struct recorded_tensor *tensor)
{
    switch (tensor->what) {
    case RECORDING_TENSOR_PARAMETER: return TENSORS_PARAMETERS;
    case RECORDING_TENSOR_GRADIENT: return TENSORS_GRADIENTS;
    case RECORDING_TENSOR_OPTIMIZER: return TENSORS_OPTIMIZER;
    default: break;
    }
    if (tensor->of_comm)
        return TENSORS_COMMUNICATION;
    switch (tensor->what) {
    case RECORDING_TENSOR_FORWARD: return TENSORS_ACTIVATIONS;
    case RECORDING_TENSOR_BACKWARD: return TENSORS_BACKWARD;
    case RECORDING_TENSOR_STEP: return TENSORS_WORKSPACE;
    default: return tensor->in_operator ? TENSORS_WORKSPACE : TENSORS_OTHER;
    }
}

/* "train.py:9 aten.mm"; what is not told is left out. */
static const char *tensors_where(struct arena *arena, const struct recorded_tensor *tensor)
{
    if (!tensor->at || !tensor->name)
        return tensor->at ? tensor->at : tensor->name;
    return arena_printf(arena, "%s %s", tensor->at, tensor->name);
}

static bool tensors_write_device(struct recorded_job *job, const struct recorded_process *process,
                                 int device)
{
    struct plan *plan = job->plan;
    const struct recorded_tensors *tensors = process->tensors;
    const struct recorded_tensors_device *at = &tensors->devices[device];
    if (!ARENA_GROW(job->arena, plan->memory, plan->memory_count, plan->memory_cap))
        return false;
    struct tensor_memory *out = &plan->memory[plan->memory_count++];
    *out = (struct tensor_memory){.rank = recorded_rank(process, device),
                                  .peak = recorded_bytes(at->most),
                                  .reserved = recorded_bytes(at->reserved),
                                  .device = recorded_bytes(at->all_most),
                                  .refused = recorded_bytes(at->refused)};
    for (size_t i = 0; i < tensors->count; i++) {
        const struct recorded_tensor *tensor = &tensors->items[i];
        if (tensor->device != device || tensor->from > at->peak || tensor->to <= at->peak)
            continue;
        const enum tensors_for use = tensor->gone <= at->peak ? TENSORS_HELD : tensors_use(tensor);
        out->by_use[use] += recorded_bytes(tensor->bytes);
    }
    if (at->most > 0)
        out->at = tensors_where(job->arena, &tensors->items[at->peak_tensor]);
    if (at->refused > 0)
        out->at = at->refused_at;
    return true;
}

bool recorded_tensors_write(struct recorded_job *job, const struct recorded_process *process)
{
    for (int i = 0; process->tensors && process->is_rank && i < 64; i++)
        if (process->tensors->used[i] &&
            (process->tensors->devices[i].most > 0 || process->tensors->devices[i].all_most > 0 ||
             process->tensors->devices[i].refused > 0) &&
            !tensors_write_device(job, process, i))
            return false;
    return true;
}
