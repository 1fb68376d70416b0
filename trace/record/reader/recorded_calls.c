/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded_calls.c - the items of a recording, in the order of their ends, as operations of threads and graphs.
 *
 * Handles and addresses are used again for other objects; at each moment they mean the one that lives then.
 */
#include "recorded_internal.h"

#include <string.h>

#include "base/array.h"

/* ---- operations ------------------------------------------------------------------------------- */

int64_t walk_end_ns(const struct walk *walk)
{
    const struct recording_item *item = walk->item;
    return item->at_ns + (item->took_ns < UINT32_MAX ? item->took_ns : 0);
}

struct recorded_op walk_op(const struct walk *walk, enum op_kind kind)
{
    struct recorded_op op = {.signal = -1,
                             .place = walk->thread->place,
                             .device = walk->thread->device,
                             .begin_ns = walk->item->at_ns,
                             .end_ns = walk_end_ns(walk)};
    op.event_device = op.device;
    op.asked =
        walk->item->kind == RECORDING_QUERY_EVENT || walk->item->kind == RECORDING_QUERY_STREAM;
    op.op = host_op_make(kind);
    op.op.at = walk->thread->at;
    return op;
}

static bool walk_append(const struct walk *walk, struct recorded_ops *ops,
                        const struct recorded_op *op)
{
    if (!ARENA_GROW(walk->job->arena, ops->items, ops->count, ops->cap))
        return false;
    ops->items[ops->count++] = *op;
    return true;
}

/* A number for the parts of a block that an operation accesses; never 0. */
static uint64_t recorded_calls_part_of(const struct recorded_op *op, size_t block, uint64_t bytes)
{
    uint64_t sum = 1;
    for (size_t i = 0; i < op->access_count; i++) {
        const struct recorded_access *access = &op->accesses[i];
        if (access->block != block)
            continue;
        sum = (sum ^ access->from) * 0x9e3779b97f4a7c15U;
        sum = (sum ^ (access->to ? access->to : bytes)) * 0x9e3779b97f4a7c15U;
    }
    return sum | 1;
}

bool walk_add(const struct walk *walk, const struct recorded_stream *stream,
              const struct recorded_op *op)
{
    if (stream) {
        /* The recorder looks for the host's accesses behind copies, fills and kernels as they are pushed. */
        const bool looks =
            stream->capture < 0 && (op->op.kind == OP_LAUNCH || op->op.kind == OP_COPY);
        for (size_t i = 0; !looks && i < op->access_count; i++)
            walk->process->blocks[op->accesses[i].block].unseen = true;
        /* Behind the first access of the host to a part of a block those to others are not seen. */
        for (size_t i = 0; i < op->access_count; i++) {
            struct recorded_block *block = &walk->process->blocks[op->accesses[i].block];
            if (block->memory != RECORDING_MEMORY_PINNED)
                continue;
            const uint64_t part = recorded_calls_part_of(op, op->accesses[i].block, block->bytes);
            block->in_parts = block->in_parts || (block->part != 0 && block->part != part);
            block->part = part;
        }
    }
    if (stream && stream->capture >= 0)
        return walk_tenant_accesses(walk, stream, op) &&
               walk_append(walk, &walk->process->graphs[stream->capture].ops, op);
    walk_order_accesses(walk, op);
    return walk_tenant_accesses(walk, stream, op) && walk_append(walk, &walk->thread->ops, op);
}

bool walk_use_device(struct recorded_process *process, int device)
{
    for (int i = 0; i < process->device_count; i++)
        if (process->devices[i] == device)
            return true;
    if (process->device_count < 64)
        process->devices[process->device_count++] = device;
    return true;
}

/* ---- objects ---------------------------------------------------------------------------------- */

static int recorded_calls_intern(const struct walk *walk, struct names *names, const char *stem,
                                 size_t number)
{
    const char *name = arena_printf(walk->job->arena, "%s%zu", stem, number);
    return name ? names_intern(names, walk->job->arena, name) : -1;
}

static bool set_spec(const struct walk *walk, int stream, bool legacy, bool blocking)
{
    struct plan *plan = walk->job->plan;
    if (!ARENA_GROW(walk->job->arena, plan->stream_specs, plan->stream_spec_count,
                    walk->job->spec_cap))
        return false;
    plan->stream_specs[plan->stream_spec_count++] = (struct stream_spec){
        .stream = stream, .legacy = legacy, .blocking = blocking, .hw_queue = -1};
    return true;
}

/* A stream that is made behind a copy which its device waits for comes after it. */
static bool follow_copies(const struct walk *walk, struct recorded_stream *stream)
{
    struct recorded_process *process = walk->process;
    for (size_t i = 0; (process->held >> stream->device & 1) && i < process->stream_count; i++)
        if (&process->streams[i] != stream && (process->streams[i].holds >> stream->device & 1) &&
            !walk_join(walk, stream, &process->streams[i]))
            return false;
    return true;
}

/* The key of a stream that has no handle of its own: a device's, or that of a thread there. */
static uint64_t stream_key(const struct walk *walk, uint64_t handle, int device)
{
    const uint64_t thread = handle == RECORDED_PER_THREAD ? walk->number : 0;
    return thread << 16 | (uint64_t)device << 2 | handle;
}

/* The handle may have been that of another stream, whose end was not seen. */
static bool put_stream(const struct walk *walk, uint64_t handle, int device, size_t stream)
{
    struct recorded_process *process = walk->process;
    if (handle <= RECORDED_PEER)
        return ordered_put(&process->stream_of[1], walk->job->arena,
                           stream_key(walk, handle, device), stream);
    const struct ordered_node *before = ordered_find(&process->stream_of[0], handle);
    if (before)
        process->streams[before->value].live = false;
    return ordered_put(&process->stream_of[0], walk->job->arena, handle, stream);
}

/* Non-blocking streams have names of their own: a name is of one kind on all ranks. */
static struct recorded_stream *recorded_calls_add_stream(const struct walk *walk, uint64_t handle,
                                                         int device, uint64_t flags)
{
    struct recorded_process *process = walk->process;
    const bool blocking = handle == RECORDED_LEGACY || !(flags & 1);
    process->stream_named[blocking] += handle > RECORDED_PEER;
    if (!put_stream(walk, handle, device, process->stream_count) ||
        !ARENA_GROW(walk->job->arena, process->streams, process->stream_count, process->stream_cap))
        return NULL;
    struct recorded_stream *stream = &process->streams[process->stream_count++];
    *stream = (struct recorded_stream){.handle = handle,
                                       .device = device,
                                       .live = true,
                                       .blocking = blocking,
                                       .capture = -1,
                                       .synced_by = -1};
    struct names *names = &walk->job->plan->streams;
    const size_t known = names->count;
    stream->name = handle == RECORDED_LEGACY ? names_intern(names, walk->job->arena, "default")
                   : handle == RECORDED_PER_THREAD
                       ? recorded_calls_intern(walk, names, "default.thread", walk->number + 1)
                   : handle == RECORDED_PEER
                       ? names_intern(names, walk->job->arena, "peer_copies")
                       : recorded_calls_intern(walk, names, blocking ? "blocking" : "stream",
                                               process->stream_named[blocking]);
    stream->thread = handle == RECORDED_PER_THREAD ? (int64_t)walk->number : -1;
    walk_use_device(process, device);
    const bool is_new = names->count > known;
    return stream->name >= 0 &&
                   (!is_new || set_spec(walk, stream->name, handle == RECORDED_LEGACY, blocking)) &&
                   follow_copies(walk, stream)
               ? stream
               : NULL;
}

static struct recorded_stream *recorded_calls_find_stream(const struct walk *walk, uint64_t handle,
                                                          int device)
{
    struct recorded_process *process = walk->process;
    const bool special = handle <= RECORDED_PEER;
    const struct ordered_node *found = ordered_find(
        &process->stream_of[special], special ? stream_key(walk, handle, device) : handle);
    if (found && process->streams[found->value].live)
        return &process->streams[found->value];
    return recorded_calls_add_stream(walk, handle, device, handle > RECORDED_PER_THREAD);
}

struct recorded_stream *walk_stream(const struct walk *walk, uint64_t handle)
{
    return recorded_calls_find_stream(walk, handle, walk->thread->device);
}

bool walk_is_legacy(const struct recorded_stream *stream)
{
    return stream->handle == RECORDED_LEGACY;
}

struct recorded_stream *walk_peer_stream(const struct walk *walk, int device)
{
    return recorded_calls_find_stream(walk, RECORDED_PEER, device);
}

static bool end_stream(const struct walk *walk, uint64_t handle)
{
    struct recorded_process *process = walk->process;
    const struct ordered_node *found = ordered_find(&process->stream_of[0], handle);
    if (found)
        process->streams[found->value].live = false;
    ordered_drop(&process->stream_of[0], handle);
    return true;
}

/* 0: it has no handle. */
static struct recorded_event *add_event(const struct walk *walk, uint64_t handle)
{
    struct recorded_process *process = walk->process;
    if ((handle > 0 &&
         !ordered_put(&process->event_of, walk->job->arena, handle, process->event_count)) ||
        !ARENA_GROW(walk->job->arena, process->events, process->event_count, process->event_cap))
        return NULL;
    struct recorded_event *event = &process->events[process->event_count++];
    *event = (struct recorded_event){
        .handle = handle, .device = walk->thread->device, .capture = -1, .synced_by = -1};
    event->name =
        recorded_calls_intern(walk, &walk->job->plan->events, "event", process->event_count);
    return event->name >= 0 ? event : NULL;
}

struct recorded_event *walk_event(const struct walk *walk, uint64_t handle)
{
    struct recorded_process *process = walk->process;
    const struct ordered_node *found = ordered_find(&process->event_of, handle);
    return found ? &process->events[found->value] : add_event(walk, handle);
}

void recorded_event_end(struct recorded_process *process, size_t event)
{
    const uint64_t handle = process->events[event].handle;
    const struct ordered_node *found = ordered_find(&process->event_of, handle);
    if (found && found->value == event)
        ordered_drop(&process->event_of, handle);
}

static bool end_event(const struct walk *walk, uint64_t handle)
{
    ordered_drop(&walk->process->event_of, handle);
    return true;
}

/* ---- calls that are not modelled --------------------------------------------------------------- */

bool walk_unmodelled(const struct walk *walk, const char *name)
{
    struct recorded_job *job = walk->job;
    job->unseen = true;
    for (size_t i = 0; name && i < job->unmodelled_count; i++)
        if (strcmp(job->unmodelled[i].name, name) == 0)
            return ++job->unmodelled[i].calls > 0;
    if (!name ||
        !ARENA_GROW(job->arena, job->unmodelled, job->unmodelled_count, job->unmodelled_cap))
        return false;
    job->unmodelled[job->unmodelled_count].name = name;
    job->unmodelled[job->unmodelled_count++].calls = 1;
    return true;
}

static bool take_unmodelled(const struct walk *walk)
{
    char *name = arena_strndup(walk->job->arena, (const char *)walk->item->word,
                               8 * (size_t)walk->item->words);
    for (char *at = name; at && *at; at++)
        *at = *at >= ' ' && *at < 127 ? *at : '?';
    return walk_unmodelled(walk, name);
}

/* ---- events and waits ------------------------------------------------------------------------- */

static bool record_event(const struct walk *walk, struct recorded_event *event,
                         struct recorded_stream *stream)
{
    struct recorded_op op = walk_op(walk, OP_RECORD);
    event->device = op.device = op.event_device = stream->device;
    event->capture = stream->capture;
    event->ready_ns = recorded_clock_ready(walk->process, stream->device, stream);
    event->records++;
    op.op.stream = stream->name;
    op.op.object = event->name;
    return walk_note_record(walk, event, stream) && walk_add(walk, stream, &op);
}

static bool recorded_calls_wait_for_event(const struct walk *walk, struct recorded_stream *stream,
                                          const struct recorded_event *event)
{
    struct recorded_op op = walk_op(walk, OP_WAIT);
    op.device = stream->device;
    op.event_device = event->device;
    op.op.stream = stream->name;
    op.op.object = event->name;
    if (event->ready_ns > stream->ready_ns)
        stream->ready_ns = event->ready_ns;
    /* counted as a push: a sync of the stream waits for the event, too */
    return walk_count_push(walk, stream) && walk_frontier_wait(walk, stream, event) &&
           walk_add(walk, stream, &op);
}

/* In a capture: of an event that each launch of the graph records, or waits for. */
static bool is_external(const struct walk *walk, const struct recorded_stream *stream)
{
    return stream->capture >= 0 && (walk->item->word[2] & 1) != 0;
}

static bool add_external(const struct walk *walk, const struct recorded_stream *stream,
                         const struct recorded_event *event, enum op_kind kind)
{
    struct recorded_op op = walk_op(walk, kind);
    op.device = stream->device;
    op.event_device = event->device;
    op.op.stream = stream->name;
    op.op.object = event->name;
    op.op.external = true;
    op.event = (size_t)(event - walk->process->events);
    return walk_add(walk, stream, &op);
}

static bool recorded_calls_take_record(const struct walk *walk)
{
    struct recorded_event *event = walk_event(walk, walk->item->word[0]);
    struct recorded_stream *stream = walk_stream(walk, walk->item->word[1]);
    if (!event || !stream)
        return false;
    if (is_external(walk, stream)) {
        event->device = stream->device;
        return add_external(walk, stream, event, OP_RECORD);
    }
    walk_order_use(walk, &event->recorded);
    event->recorded = walk_order_here(walk);
    return walk_count_push(walk, stream) && record_event(walk, event, stream);
}

/* A stream that waits for an event of a capture belongs to it from then on. */
static bool take_wait(const struct walk *walk)
{
    struct recorded_stream *stream = walk_stream(walk, walk->item->word[0]);
    struct recorded_event *event = walk_event(walk, walk->item->word[1]);
    if (!event || !stream)
        return false;
    if (is_external(walk, stream))
        return add_external(walk, stream, event, OP_WAIT);
    if (event->capture >= 0 && !walk->process->graphs[event->capture].over)
        stream->capture = event->capture;
    walk_order_use(walk, &event->recorded);
    return recorded_calls_wait_for_event(walk, stream, event);
}

bool walk_join(const struct walk *walk, struct recorded_stream *stream,
               struct recorded_stream *before)
{
    struct recorded_event *event = add_event(walk, 0);
    if (!event)
        return false;
    return record_event(walk, event, before) && recorded_calls_wait_for_event(walk, stream, event);
}

/* The thread has waited for the same before: nothing new. */
static bool known_already(const struct walk *walk, uint64_t now, uint64_t *synced, int64_t *by)
{
    const bool known = *by == (int64_t)walk->number && *synced == now;
    *synced = now;
    *by = (int64_t)walk->number;
    return known;
}

bool walk_await_event(const struct walk *walk, struct recorded_event *event)
{
    walk_order_use(walk, &event->recorded);
    if (event->records == 0 || event->capture >= 0 ||
        known_already(walk, event->records, &event->synced, &event->synced_by))
        return true;
    struct recorded_op op = walk_op(walk, OP_SYNC);
    op.op.sync = SYNC_EVENT;
    op.op.object = event->name;
    op.event_device = event->device;
    recorded_clock_sync(walk->job, &op, event->ready_ns);
    return walk_add(walk, NULL, &op);
}

static bool take_sync_event(const struct walk *walk)
{
    struct recorded_event *event = walk_event(walk, walk->item->word[0]);
    return event && walk_await_event(walk, event) && walk_observe_event(walk, event, true);
}

static bool recorded_calls_sync_stream(const struct walk *walk,
                                       const struct recorded_stream *stream)
{
    struct recorded_op op = walk_op(walk, OP_SYNC);
    op.op.sync = SYNC_STREAM;
    op.op.stream = stream->name;
    op.device = op.event_device = stream->device;
    recorded_clock_sync(walk->job, &op,
                        recorded_clock_ready(walk->process, stream->device, stream));
    return walk_add(walk, NULL, &op);
}

bool walk_sync_stream(const struct walk *walk, struct recorded_stream *stream)
{
    return recorded_calls_sync_stream(walk, stream) && walk_observe_stream(walk, stream, true);
}

bool walk_await_stream(const struct walk *walk, struct recorded_stream *stream)
{
    return stream->pushes == 0 ||
           known_already(walk, stream->pushes, &stream->synced, &stream->synced_by) ||
           recorded_calls_sync_stream(walk, stream);
}

static bool take_sync_stream(const struct walk *walk)
{
    struct recorded_stream *stream = walk_stream(walk, walk->item->word[0]);
    return stream && walk_await_stream(walk, stream) && walk_observe_stream(walk, stream, true);
}

bool walk_sync_device(const struct walk *walk, int device)
{
    struct recorded_op op = walk_op(walk, OP_SYNC);
    op.op.sync = SYNC_DEVICE;
    op.device = op.event_device = device;
    recorded_clock_sync(walk->job, &op, recorded_clock_ready(walk->process, device, NULL));
    return walk_add(walk, NULL, &op) && walk_observe_device(walk, device);
}

bool walk_push(const struct walk *walk, struct recorded_stream *stream, struct recorded_op *op)
{
    op->device = op->event_device = stream->device;
    op->op.stream = stream->name;
    return walk_count_push(walk, stream) &&
           recorded_clock_push(walk->job, walk->process, walk->thread->push, stream, op) &&
           walk_add(walk, stream, op);
}

/* ---- kernels and host functions --------------------------------------------------------------- */

const struct recorded_text *recorded_calls_find(const struct recorded_process *process,
                                                uint64_t number)
{
    static const struct recorded_text none = {.text = "unnamed"};
    for (size_t i = process->text_count; i-- > 0;)
        if (process->texts[i].number == number)
            return &process->texts[i];
    return &none;
}

static bool take_text(const struct walk *walk)
{
    struct recorded_process *process = walk->process;
    char *text = tapes_text(walk->item, walk->job->arena);
    char *shapes = text ? strchr(text, '\t') : NULL;
    if (shapes)
        *shapes++ = 0;
    for (char *at = text; at && *at; at++)
        *at = *at >= ' ' && *at < 127 ? *at : '?';
    for (char *at = shapes; at && *at; at++)
        *at = *at >= ' ' && *at < 127 ? *at : '?';
    if (!text ||
        !ARENA_GROW(walk->job->arena, process->texts, process->text_count, process->text_cap))
        return false;
    process->texts[process->text_count++] =
        (struct recorded_text){walk->item->word[0], text, shapes && *shapes ? shapes : NULL};
    return true;
}

static void remove_text(char *at, size_t length)
{
    memmove(at, at + length, strlen(at + length) + 1);
}

/* nvcc's space of the names of one file, "_INTERNAL_<number>_<file>::", as far as it goes. */
static void remove_file_spaces(char *text)
{
    static const char begin[] = "_INTERNAL_";
    for (char *at = text; (at = strstr(at, begin));) {
        const size_t length = strcspn(at, ":<>,( ");
        if (at[length] == ':' && at[length + 1] == ':')
            remove_text(at, length + 2);
        else
            at += length;
    }
}

/* "void ns::axpy<float>(float const*, float*)": without the type of the result, the arguments and unnamed spaces. */
static const char *short_name(struct arena *arena, const char *text)
{
    static const char unnamed[] = "(anonymous namespace)::";
    const char *from = strncmp(text, "void ", 5) == 0 ? text + 5 : text;
    char *out = arena_strdup(arena, from);
    for (char *at; out && (at = strstr(out, unnamed));)
        remove_text(at, sizeof unnamed - 1);
    if (out)
        remove_file_spaces(out);
    if (out && strchr(out, '(') > out)
        *strchr(out, '(') = '\0';
    if (out && strlen(out) > PLAN_MAX_NAME / 2)
        out[PLAN_MAX_NAME / 2] = '\0';
    return out && *out ? out : "kernel";
}

static bool take_kernel(const struct walk *walk)
{
    struct recorded_process *process = walk->process;
    const uint64_t *word = walk->item->word;
    if (!ARENA_GROW(walk->job->arena, process->kernels, process->kernel_count, process->kernel_cap))
        return false;
    process->kernels[process->kernel_count++] = (struct recorded_kernel){
        word[0], short_name(walk->job->arena, recorded_calls_find_text(process, word[1])),
        word[2] != 0};
    return true;
}

static const struct recorded_kernel *find_kernel(const struct recorded_process *process,
                                                 uint64_t number)
{
    static const struct recorded_kernel none = {0, "kernel", false};
    for (size_t i = 0; i < process->kernel_count; i++)
        if (process->kernels[i].number == number)
            return &process->kernels[i];
    return &none;
}

/* What a word of the arguments points to, if it does. */
static bool take_argument(const struct walk *walk, struct recorded_op *op, uint64_t word,
                          bool *in_struct)
{
    const uint64_t address = word & ~(RECORDING_WRITE | RECORDING_POINTER);
    const bool is_pointer = (word & RECORDING_POINTER) != 0;
    const bool write = (word & RECORDING_WRITE) != 0 &&
                       (is_pointer || walk->job->options->structs == RECORDED_STRUCTS_WRITE);
    const size_t before = op->access_count;
    if (is_pointer)
        recorded_memory_strange(walk->job, walk->process, address);
    if (!recorded_memory_access(walk->job, walk->process, op, address, 0, write, -1))
        return false;
    *in_struct = *in_struct || (!is_pointer && op->access_count > before);
    return true;
}

static bool take_launch(const struct walk *walk)
{
    const uint64_t *word = walk->item->word;
    struct recorded_stream *stream = walk_stream(walk, word[0]);
    const struct recorded_kernel *kernel = find_kernel(walk->process, word[1]);
    struct recorded_op op = walk_op(walk, OP_LAUNCH);
    op.op.name = kernel->name;
    walk->job->opaque_launches += !kernel->known;
    bool in_struct = false;
    for (int i = 2; i < walk->item->words; i++)
        if (!take_argument(walk, &op, word[i], &in_struct))
            return false;
    walk->job->struct_launches += in_struct;
    return stream && walk_push(walk, stream, &op);
}

/* The bytes that it accesses, and what the item in front of it says that it computes. */
static bool take_cost(const struct walk *walk, struct recorded_op *op)
{
    const struct recording_item *work = walk->thread->work;
    struct host_details *details = host_op_make_details(&op->op, walk->job->arena);
    walk->thread->work = NULL;
    if (!details)
        return false;
    details->cost.shapes = recorded_calls_find(walk->process, walk->item->word[1])->shapes;
    for (int i = 2; i + 1 < walk->item->words; i += 2)
        details->cost.bytes += recorded_bytes(walk->item->word[i + 1] & ~RECORDING_WRITE);
    if (work) {
        details->cost.flops = recorded_bytes(work->word[0]);
        details->cost.rate = (enum rate)(work->word[1] % RECORDING_RATES);
    }
    return true;
}

/* An operation of the program with exactly these accesses, for its kernels. */
static bool take_operator(const struct walk *walk)
{
    const uint64_t *word = walk->item->word;
    struct recorded_stream *stream = walk_stream(walk, word[0]);
    struct recorded_op op = walk_op(walk, OP_LAUNCH);
    op.op.name = recorded_calls_find_text(walk->process, word[1]);
    for (int i = 2; i + 1 < walk->item->words; i += 2) {
        const uint64_t bytes = word[i + 1] & ~RECORDING_WRITE;
        const bool write = (word[i + 1] & RECORDING_WRITE) != 0;
        if (bytes > 0 &&
            !recorded_memory_access(walk->job, walk->process, &op, word[i], bytes, write, -1))
            return false;
    }
    return take_cost(walk, &op) && stream && walk_push(walk, stream, &op);
}

/* A mark for who looks at times. */
static bool take_step(const struct walk *walk)
{
    struct recorded_op op = walk_op(walk, OP_HOST);
    op.op.name = PLAN_STEP;
    return walk_add(walk, NULL, &op);
}

static bool take_where(const struct walk *walk)
{
    walk->thread->at = walk->item->word[0] == 0
                           ? NULL
                           : recorded_calls_find_text(walk->process, walk->item->word[0]);
    return true;
}

static bool take_host_call(const struct walk *walk)
{
    struct recorded_stream *stream = walk_stream(walk, walk->item->word[0]);
    struct recorded_op op = walk_op(walk, OP_CALLBACK);
    op.op.name = "host function";
    op.host_call = walk->item->word[1];
    return stream && walk_push(walk, stream, &op);
}

static bool take_host_bound(const struct walk *walk, bool begins)
{
    struct recorded_op op = walk_op(walk, OP_HOST);
    walk->thread->in_host_function = begins;
    if (begins && !walk_order_host(walk))
        return false;
    op.begins = begins;
    op.ends = !begins;
    op.host_call = walk->item->word[0];
    return walk_add(walk, NULL, &op);
}

/* ---- graphs ----------------------------------------------------------------------------------- */

static struct recorded_graph *find_graph(const struct recorded_process *process, uint64_t handle)
{
    for (size_t i = process->graph_count; i-- > 0;)
        if (process->graphs[i].graph == handle)
            return &process->graphs[i];
    return NULL;
}

/* A graph that has nodes gets more of them, behind some of the first or behind none. */
static bool extends_graph(const struct walk *walk)
{
    const uint64_t handle = walk->item->words > 1 ? walk->item->word[1] : 0;
    const struct recorded_graph *graph = handle ? find_graph(walk->process, handle) : NULL;
    return (graph && graph->ops.count > 0) || (walk->item->words > 2 && walk->item->word[2] > 0);
}

static bool take_capture(const struct walk *walk)
{
    struct recorded_process *process = walk->process;
    if (extends_graph(walk) &&
        !walk_unmodelled(walk, "cudaStreamBeginCaptureToGraph to a graph with nodes"))
        return false;
    struct recorded_stream *stream = walk_stream(walk, walk->item->word[0]);
    if (!stream ||
        !ARENA_GROW(walk->job->arena, process->graphs, process->graph_count, process->graph_cap))
        return false;
    stream->capture = (int64_t)process->graph_count;
    process->graphs[process->graph_count++] =
        (struct recorded_graph){.device = stream->device, .index = -1};
    return true;
}

static bool take_capture_end(const struct walk *walk)
{
    struct recorded_process *process = walk->process;
    struct recorded_stream *stream = walk_stream(walk, walk->item->word[0]);
    if (!stream)
        return false;
    const int64_t capture = stream->capture;
    if (capture < 0)
        return true;
    process->graphs[capture].graph = walk->item->word[1];
    process->graphs[capture].over = true;
    for (size_t i = 0; i < process->stream_count; i++)
        if (process->streams[i].capture == capture)
            process->streams[i].capture = -1;
    return true;
}

/* The last one that is an executable's counts. */
static bool take_graph(const struct walk *walk)
{
    struct recorded_process *process = walk->process;
    const struct recorded_graph *graph = find_graph(process, walk->item->word[1]);
    if (!graph)
        return true;
    if (!ARENA_GROW(walk->job->arena, process->executables, process->executable_count,
                    process->executable_cap))
        return false;
    process->executables[process->executable_count].executable = walk->item->word[0];
    process->executables[process->executable_count++].graph = (size_t)(graph - process->graphs);
    return true;
}

/* "graph1" of this process */
static bool name_graph(const struct walk *walk, struct recorded_graph *graph)
{
    struct plan *plan = walk->job->plan;
    if (graph->index >= 0)
        return true;
    if (!ARENA_GROW(walk->job->arena, plan->graphs, plan->graph_count, walk->job->graph_cap))
        return false;
    graph->index = (int)plan->graph_count;
    plan->graphs[plan->graph_count++] = (struct graph){
        .name = arena_printf(walk->job->arena, "graph%zu", plan->graph_count), .begin = -1};
    return plan->graphs[graph->index].name != NULL;
}

/* An event of the process that each launch records, or waits for; NULL: it is no such operation. */
static struct recorded_event *external_of(const struct walk *walk, const struct recorded_op *op,
                                          enum op_kind kind)
{
    return op->op.kind == kind && host_op_is_external(&op->op) ? &walk->process->events[op->event]
                                                               : NULL;
}

/* A record of a launch means something in the midst of it: all that the launch comes behind is done then, and the launch is
   not. When that is, is not known. */
static bool record_externals(const struct walk *walk, const struct recorded_graph *graph,
                             struct recorded_stream *stream)
{
    for (size_t i = 0; i < graph->ops.count; i++) {
        struct recorded_event *event = external_of(walk, &graph->ops.items[i], OP_RECORD);
        if (!event)
            continue;
        event->capture = -1;
        event->ready_ns = RECORDED_UNKNOWN_NS;
        event->records++;
        walk_order_use(walk, &event->recorded);
        event->recorded = walk_order_here(walk);
        if (!walk_note_record(walk, event, stream))
            return false;
        event->implied = stream->pushes - 1;
    }
    return true;
}

/* Behind record_externals: what a launch records need not come behind what it waits for. */
static bool await_externals(const struct walk *walk, const struct recorded_graph *graph,
                            struct recorded_stream *stream)
{
    for (size_t i = 0; i < graph->ops.count; i++) {
        const struct recorded_event *event = external_of(walk, &graph->ops.items[i], OP_WAIT);
        if (event && !walk_frontier_wait(walk, stream, event))
            return false;
    }
    return true;
}

static bool take_graph_launch(const struct walk *walk)
{
    struct recorded_process *process = walk->process;
    struct recorded_stream *stream = walk_stream(walk, walk->item->word[1]);
    size_t at = process->executable_count;
    while (at > 0 && process->executables[at - 1].executable != walk->item->word[0])
        at--;
    if (!stream)
        return false;
    if (at == 0)
        return plan_add_unrecorded(walk->job->plan, "a graph", "it was not captured");
    struct recorded_graph *graph = &process->graphs[process->executables[at - 1].graph];
    struct recorded_op op = walk_op(walk, OP_LAUNCH);
    if (!name_graph(walk, graph))
        return false;
    op.op.is_graph = true;
    op.op.graph = graph->index;
    op.op.name = walk->job->plan->graphs[graph->index].name;
    recorded_clock_graph(walk->job, process, walk->thread->push, graph);
    for (size_t i = 0; i < graph->ops.count; i++) {
        const struct recorded_event *event = external_of(walk, &graph->ops.items[i], OP_WAIT);
        if (event)
            walk_order_use(walk, &event->recorded);
    }
    return walk_push(walk, stream, &op) && record_externals(walk, graph, stream) &&
           await_externals(walk, graph, stream);
}

/* ---- the walk --------------------------------------------------------------------------------- */

/* Another run may have it the other way round. */
static bool is_by_luck(const struct walk *walk)
{
    const struct recording_item *item = walk->item;
    return item->kind == RECORDING_AFTER &&
           (item->word[2] == RECORDING_LOCKED || item->word[2] == RECORDING_POLLED ||
            walk_order_has_several(walk, item->word[3]));
}

static bool add_await(const struct walk *walk, const struct recorded_followed *order)
{
    struct recorded_op op = walk_op(walk, OP_AWAIT);
    op.after_thread = (int64_t)order->thread;
    op.after_count = order->count;
    op.by_lock = order->luck;
    op.in_time = order->in_time;
    return walk->job->options->order == RECORDED_SEEN || walk_add(walk, NULL, &op);
}

/* The thread goes on behind the first items of another one. */
static bool add_after(const struct walk *walk, const struct recorded_followed *order)
{
    return walk_order_follow(walk, order, add_await) &&
           walk_order_merge(walk, order->thread, order->count);
}

static bool take_after(const struct walk *walk)
{
    const uint64_t *word = walk->item->word;
    if (word[0] == 0 || word[0] > walk->process->tapes.thread_count || word[0] == walk->number + 1)
        return true;
    bool luck = is_by_luck(walk);
    if (word[2] == RECORDING_LOCKED && walk_order_excludes(walk, word[3])) {
        uint64_t *locked = &walk->thread->locked[word[0] - 1];
        *locked = *locked < word[1] ? word[1] : *locked;
        return true;
    }
    if (word[2] == RECORDING_LOCKED && !walk_order_find_luck(walk, &luck))
        return false;
    const struct recorded_followed order = {.thread = (size_t)word[0] - 1,
                                            .count = word[1],
                                            .luck = luck,
                                            .in_time = word[2] == RECORDING_IN_TIME};
    return add_after(walk, &order);
}

/* As PyTorch's allocator of pinned memory: one thread records an event and puts it into a list under a lock, another one finds it
   there, asks and gives the memory away. Without the order the query would be of an event that nobody has recorded. */
bool walk_order_follow_record(const struct walk *walk, const struct recorded_use *record)
{
    const struct recorded_followed order = {
        .thread = record->thread, .count = record->place, .luck = true};
    return walk_order_is_behind(walk, record) ||
           walk->thread->locked[record->thread] < record->place || add_after(walk, &order);
}

static bool take_lock(const struct walk *walk, enum op_kind kind)
{
    struct recorded_op op = walk_op(walk, kind);
    op.lock = walk->item->word[0];
    op.shared = kind == OP_LOCK && walk->item->word[1] != 0;
    if (op.lock > RECORDING_LOCKS || !walk_order_excludes(walk, op.lock))
        return true;
    walk_order_lock(walk, op.lock, kind == OP_LOCK);
    return walk_add(walk, NULL, &op);
}

static bool take_device(const struct walk *walk)
{
    walk->thread->device = (int)(walk->item->word[0] & 63);
    return true;
}

static bool take_unseen(const struct walk *walk)
{
    walk->job->unseen = true;
    return plan_add_unrecorded(walk->job->plan,
                               recorded_calls_find_text(walk->process, walk->item->word[0]),
                               "the recorder does not see what it does");
}

static bool take_item(const struct walk *walk)
{
    const uint64_t *word = walk->item->word;
    switch ((enum recording_kind)walk->item->kind) {
    case RECORDING_NONE: return ++walk->job->failed_calls > 0;
    case RECORDING_PROCESS:
    case RECORDING_THREAD:
    case RECORDING_SEVERAL: return true;
    case RECORDING_SIGNAL: return walk_order_signal(walk, word[0]);
    case RECORDING_LOCK: return take_lock(walk, OP_LOCK);
    case RECORDING_UNLOCK: return take_lock(walk, OP_UNLOCK);
    case RECORDING_TEXT: return take_text(walk);
    case RECORDING_AFTER: return take_after(walk);
    case RECORDING_END: return walk->process->ended = true;
    case RECORDING_UNSEEN: return take_unseen(walk);
    case RECORDING_DEVICE: return take_device(walk);
    case RECORDING_STREAM:
        return recorded_calls_add_stream(walk, word[0], walk->thread->device, word[1]) != NULL;
    case RECORDING_STREAM_END: return end_stream(walk, word[0]);
    case RECORDING_EVENT: return add_event(walk, word[0]) != NULL;
    case RECORDING_EVENT_END: return end_event(walk, word[0]);
    case RECORDING_RECORD: return recorded_calls_take_record(walk);
    case RECORDING_WAIT: return take_wait(walk);
    case RECORDING_SYNC_STREAM: return take_sync_stream(walk);
    case RECORDING_SYNC_EVENT: return take_sync_event(walk);
    case RECORDING_QUERY_STREAM: return walk_take_query_stream(walk);
    case RECORDING_QUERY_EVENT: return walk_take_query_event(walk);
    case RECORDING_SYNC_DEVICE: return walk_sync_device(walk, walk->thread->device);
    case RECORDING_KERNEL: return take_kernel(walk);
    case RECORDING_LAUNCH: return take_launch(walk);
    case RECORDING_COPY: return walk_take_copy(walk);
    case RECORDING_COPY_2D: return walk_take_copy_2d(walk);
    case RECORDING_COPY_BATCH: return walk_take_copy_batch(walk);
    case RECORDING_FILL: return walk_take_fill(walk);
    case RECORDING_ALLOC: return walk_take_alloc(walk);
    case RECORDING_ALLOC_ASYNC: return walk_take_alloc_async(walk);
    case RECORDING_FREE: return walk_take_free(walk);
    case RECORDING_FREE_ASYNC: return walk_take_free_async(walk);
    case RECORDING_PHYSICAL: return walk_take_physical(walk);
    case RECORDING_PHYSICAL_KEPT: return walk_take_physical_kept(walk);
    case RECORDING_PHYSICAL_END: return walk_take_physical_end(walk);
    case RECORDING_MAP: return walk_take_map(walk);
    case RECORDING_UNMAP: return walk_take_unmap(walk);
    case RECORDING_WRITE_VALUE: return walk_take_value(walk, true);
    case RECORDING_WAIT_VALUE: return walk_take_value(walk, false);
    case RECORDING_HOST_CALL: return take_host_call(walk);
    case RECORDING_HOST_BEGIN: return take_host_bound(walk, true);
    case RECORDING_HOST_END: return take_host_bound(walk, false);
    case RECORDING_CAPTURE: return take_capture(walk);
    case RECORDING_CAPTURE_END: return take_capture_end(walk);
    case RECORDING_GRAPH: return take_graph(walk);
    case RECORDING_GRAPH_LAUNCH: return take_graph_launch(walk);
    case RECORDING_COMM: return walk_take_comm(walk);
    case RECORDING_COMM_END: return walk_take_comm_end(walk);
    case RECORDING_COLLECTIVE:
    case RECORDING_MESSAGE: return walk_take_exchange(walk);
    case RECORDING_GROUP: return walk_take_group(walk);
    case RECORDING_GROUP_END: return walk_take_group_end(walk);
    case RECORDING_TOUCH: return walk_take_touch(walk);
    case RECORDING_PUSH: return walk->thread->push = word[0], true;
    case RECORDING_NO_TIMES:
    case RECORDING_PUSHED_AS:
    case RECORDING_DEVICE_OP:
    case RECORDING_CLOCK:
    case RECORDING_LOST: return true;
    case RECORDING_UNMODELLED: return take_unmodelled(walk);
    case RECORDING_RESET: return walk_take_reset(walk);
    case RECORDING_WHERE: return take_where(walk);
    case RECORDING_OPERATOR: return take_operator(walk);
    case RECORDING_TENSOR:
    case RECORDING_TENSOR_END:
    case RECORDING_TENSOR_REFUSED:
    case RECORDING_TENSORS_ARE: return true;
    case RECORDING_WORK: walk->thread->work = walk->item; return true;
    case RECORDING_STEP: return take_step(walk);
    case RECORDING_KINDS: break;
    }
    return true;
}

/* A query, or a lock: only one that another thread held last is an item, so it does not tell a loop from another one. */
static bool is_idle(const struct walk *walk)
{
    return walk->item->kind == RECORDING_QUERY_EVENT ||
           walk->item->kind == RECORDING_QUERY_STREAM || walk->item->kind == RECORDING_LOCK ||
           walk->item->kind == RECORDING_UNLOCK || walk->item->kind == RECORDING_SIGNAL ||
           walk->item->kind == RECORDING_TENSOR || walk->item->kind == RECORDING_TENSOR_END ||
           walk->item->kind == RECORDING_TENSORS_ARE ||
           (walk->item->kind == RECORDING_AFTER &&
            (walk->item->word[2] == RECORDING_LOCKED || walk->item->word[2] == RECORDING_POLLED));
}

/* All that another thread's calls had done when this call began. */
static bool add_seen(const struct walk *walk)
{
    for (size_t t = 0; t < walk->process->tapes.thread_count; t++) {
        const struct tape_thread *tape = &walk->process->tapes.threads[t];
        size_t before = tape->read;
        while (before > 0 && tapes_end_ns(tape, before - 1) > walk->item->at_ns)
            before--;
        if (t == walk->number || before == 0)
            continue;
        struct recorded_op op = walk_op(walk, OP_AWAIT);
        op.after_thread = (int64_t)t;
        op.after_count = before;
        if (!walk_order_merge(walk, t, before) || !walk_add(walk, NULL, &op))
            return false;
    }
    return true;
}

enum status recorded_walk(struct recorded_job *job, struct recorded_process *process)
{
    struct walk walk = {.job = job, .process = process};
    process->threads = ARENA_ARRAY(job->arena, process->tapes.thread_count, struct recorded_thread);
    if (!process->threads || !recorded_times_read(job, process))
        return diag_no_memory(job->diag);
    for (size_t i = 0; i < process->tapes.thread_count; i++)
        process->threads[i] = (struct recorded_thread){0};
    if (!walk_order_begin(job, process))
        return diag_no_memory(job->diag);
    while ((walk.item = tapes_next(&process->tapes, &walk.number))) {
        walk.thread = &process->threads[walk.number];
        walk.thread->place++;
        if (job->options->order == RECORDED_SEEN && walk.item->kind > RECORDING_DEVICE &&
            !add_seen(&walk))
            return diag_no_memory(job->diag);
        if (!walk_take_tensors(&walk) || !take_item(&walk))
            return diag_no_memory(job->diag);
        if (walk.item->kind != RECORDING_PUSH)
            walk.thread->push = 0;
        if (!is_idle(&walk))
            walk.thread->acted = walk.thread->place;
    }
    recorded_queries_end(job, process);
    return STATUS_OK;
}
