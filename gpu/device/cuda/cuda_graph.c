/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_graph.c - graphs of the CUDA device: streams are captured, and the graph is launched on the first of them.
 *
 *     begin     the first stream (origin) is captured, the others join it by an event
 *     push      as ever; a record and a wait within the graph become an edge of it, a wait for what was
 *               recorded before it none: a launch comes after that
 *     end       the others are joined back; the graph is instantiated and uploaded
 *     launch    origin waits for all work so far of the others and of the awaited events (none, if the launch
 *               before was the last push), the graph is launched on origin, a marker is recorded behind it:
 *               its events mean that marker from then on, and the others wait for it before their next
 *               operation (cuda_stream_follow)
 *
 * So launches of all graphs with one origin are one FIFO.
 *
 * Stamps. Each operation that does work stands between two timed events that are nodes of the graph
 * (cudaEventRecordExternal): every launch records them anew. They are read when the marker behind the launch
 * has been reached, at the latest by the next arm, which waits for that. A record has the time of the operation
 * before it in its stream, a wait the time until the operation behind it.
 *
 * A capture belongs to one thread (cudaStreamCaptureModeThreadLocal): calls of other threads do not end it,
 * except queries of a captured stream, which do not occur here. NCCL's operations are captured like all others.
 * A refusal of CUDA during a capture is reported by the push and again by the end, and leaves the streams as
 * they were.
 */
#include "cuda_impl.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"

/* A captured push. */
struct captured {
    struct cuda_stream *stream;
    struct device_op op; /* for messages; the parts of a group are gone */
};

/* When a stamped one starts and ends; the markers are the graph's. */
struct cuda_graph_timing {
    struct cuda_stream *stream;
    struct marker *start, *end;
    bool open; /* a wait: its end is the start of what comes next in its stream */
};

struct cuda_graph_record {
    struct cuda_event *event;
    struct marker *marker; /* in the capture; later that of the launch */
};

struct cuda_graph {
    struct device_graph base;
    struct cuda_graph *next;
    struct cuda_device *device;
    struct cuda_stream **streams; /* [0] is the origin */
    size_t stream_count;
    cudaGraphExec_t exec;
    struct captured *pushes; /* [base.pushes] */
    size_t push_cap;
    struct cuda_graph_timing *timings; /* [base.stamps] */
    size_t timing_cap;
    struct cuda_graph_record *records; /* an event once, with its last record */
    size_t record_count, record_cap;
    struct cuda_event **awaited; /* that were not recorded in here before */
    size_t awaited_count, awaited_cap;
    struct marker **markers; /* held until the capture ends (untimed) or the graph is closed */
    size_t marker_count, marker_cap;
    struct failure failure;  /* of the capture */
    struct stamp **stamps;   /* [base.stamps] of the last launch */
    struct marker *finished; /* behind it; NULL: none yet */
    /* The last launch is under way, or its stamps have not been read. Only the collector reads them, and clears
       this; no launch before that. */
    atomic_bool unread;
};

/* ---- lists ----------------------------------------------------------------------------------- */

static bool keep_marker(struct cuda_graph *graph, struct marker *marker)
{
    if (!ARRAY_GROW(graph->markers, graph->marker_count, graph->marker_cap))
        return false;
    graph->markers[graph->marker_count++] = marker;
    return true;
}

/* A marker recorded in a captured stream: an edge of the graph, or with `timed` a node of it. */
static struct marker *mark(struct cuda_graph *graph, struct cuda_stream *stream, bool timed,
                           cudaError_t *error)
{
    struct marker *marker = marker_record_in(graph->device, timed, stream->handle, timed, error);
    if (!marker || keep_marker(graph, marker))
        return marker;
    marker_release(graph->device, marker);
    *error = cudaErrorMemoryAllocation;
    return NULL;
}

/* ---- begin ----------------------------------------------------------------------------------- */

static void graph_free(struct cuda_graph *graph)
{
    for (size_t i = 0; i < graph->marker_count; i++)
        marker_release(graph->device, graph->markers[i]);
    marker_release(graph->device, graph->finished);
    free(graph->streams);
    free(graph->pushes);
    free(graph->timings);
    free(graph->records);
    free(graph->awaited);
    free(graph->markers);
    free(graph->stamps);
    free(graph);
}

static struct cuda_graph *cuda_graph_new(struct device *device,
                                         struct device_stream *const *streams, size_t count)
{
    struct cuda_graph *graph = calloc(1, sizeof *graph);
    if (!graph)
        return NULL;
    graph->base.device = device;
    graph->device = (struct cuda_device *)device;
    graph->streams = calloc(count, sizeof(struct cuda_stream *));
    if (!graph->streams) {
        free(graph);
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        graph->streams[graph->stream_count++] = (struct cuda_stream *)streams[i];
    return graph;
}

/* The streams' pushes go to `capture`, or with NULL are done again. The watchdog looks with this lock. */
static void cuda_graph_divert(struct cuda_graph *graph, struct device_graph *capture)
{
    pthread_mutex_lock(&graph->device->world->lock);
    graph->base.device->capture = capture;
    for (size_t i = 0; i < graph->stream_count; i++)
        graph->streams[i]->base.capture = capture;
    pthread_mutex_unlock(&graph->device->world->lock);
}

/* All streams wait for the origin's present. */
static cudaError_t fork_streams(struct cuda_graph *graph)
{
    cudaError_t error = cudaSuccess;
    struct marker *start = mark(graph, graph->streams[0], false, &error);
    for (size_t i = 1; i < graph->stream_count && error == cudaSuccess; i++)
        error = cudaStreamWaitEvent(graph->streams[i]->handle, start->handle, 0);
    return error;
}

static cudaError_t cuda_graph_join_streams(struct cuda_graph *graph)
{
    cudaError_t error = cudaSuccess;
    for (size_t i = 1; i < graph->stream_count && error == cudaSuccess; i++) {
        struct marker *end = mark(graph, graph->streams[i], false, &error);
        if (end)
            error = cudaStreamWaitEvent(graph->streams[0]->handle, end->handle, 0);
    }
    return error;
}

/* The captured work is dropped, and CUDA's streams are as they were. */
static void drop_capture(struct cuda_graph *graph)
{
    cudaGraph_t graph_handle = NULL;
    if (cudaStreamEndCapture(graph->streams[0]->handle, &graph_handle) == cudaSuccess &&
        graph_handle)
        cudaGraphDestroy(graph_handle);
    cuda_graph_divert(graph, NULL);
    graph_free(graph);
}

enum status cuda_graph_begin(struct device *device, struct device_stream *const *streams,
                             size_t count, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && !status; i++)
        status = cuda_stream_check((struct cuda_stream *)streams[i], diag);
    if (!status)
        status = cuda_nccl_captures((const struct cuda_device *)device, diag);
    if (status)
        return status;
    struct cuda_graph *graph = cuda_graph_new(device, streams, count);
    if (!graph)
        return diag_no_memory(diag);
    cudaError_t error = cuda_enter(graph->device->world);
    cuda_graph_divert(graph, &graph->base);
    if (error == cudaSuccess)
        error = cudaStreamBeginCapture(graph->streams[0]->handle, cudaStreamCaptureModeThreadLocal);
    if (error != cudaSuccess) {
        cuda_graph_divert(graph, NULL);
        graph_free(graph);
        return cuda_refused(diag, "a graph cannot be captured", error);
    }
    error = fork_streams(graph);
    if (error == cudaSuccess)
        return STATUS_OK;
    drop_capture(graph);
    return cuda_refused(diag, "a graph cannot be captured", error);
}

/* ---- push ------------------------------------------------------------------------------------ */

static struct cuda_graph_record *find_record(struct cuda_graph *graph,
                                             const struct cuda_event *event)
{
    for (size_t i = 0; i < graph->record_count; i++)
        if (graph->records[i].event == event)
            return &graph->records[i];
    return NULL;
}

static cudaError_t capture_record(struct cuda_graph *graph, struct cuda_stream *stream,
                                  struct cuda_event *event)
{
    cudaError_t error = cudaSuccess;
    struct cuda_graph_record *record = find_record(graph, event);
    struct marker *marker = mark(graph, stream, false, &error);
    if (!marker)
        return error;
    if (!record && !ARRAY_GROW(graph->records, graph->record_count, graph->record_cap))
        return cudaErrorMemoryAllocation;
    if (!record)
        record = &graph->records[graph->record_count++];
    *record = (struct cuda_graph_record){event, marker};
    return cudaSuccess;
}

static cudaError_t capture_wait(struct cuda_graph *graph, struct cuda_stream *stream,
                                struct cuda_event *event)
{
    const struct cuda_graph_record *record = find_record(graph, event);
    if (record)
        return cudaStreamWaitEvent(stream->handle, record->marker->handle, 0);
    for (size_t i = 0; i < graph->awaited_count; i++)
        if (graph->awaited[i] == event)
            return cudaSuccess;
    if (!ARRAY_GROW(graph->awaited, graph->awaited_count, graph->awaited_cap))
        return cudaErrorMemoryAllocation;
    graph->awaited[graph->awaited_count++] = event;
    return cudaSuccess;
}

static cudaError_t cuda_graph_capture_op(struct cuda_graph *graph, struct cuda_stream *stream,
                                         const struct device_op *op)
{
    switch (op->kind) {
    case DEVICE_OP_RECORD: return capture_record(graph, stream, (struct cuda_event *)op->event);
    case DEVICE_OP_WAIT: return capture_wait(graph, stream, (struct cuda_event *)op->event);
    default: return cuda_issue(stream, op);
    }
}

/* The last timing of a stream; NULL: it has none. */
static struct cuda_graph_timing *last_timing(struct cuda_graph *graph,
                                             const struct cuda_stream *stream)
{
    for (size_t i = graph->base.stamps; i-- > 0;)
        if (graph->timings[i].stream == stream)
            return &graph->timings[i];
    return NULL;
}

/* Waits at the end of a stream's timings end where its next work starts. */
static void close_waits(struct cuda_graph *graph, const struct cuda_stream *stream,
                        struct marker *start)
{
    for (size_t i = 0; i < graph->base.stamps; i++)
        if (graph->timings[i].stream == stream && graph->timings[i].open) {
            graph->timings[i].end = start;
            graph->timings[i].open = false;
        }
}

/* An operation that takes no time of its own, behind what is in its stream before. */
static cudaError_t capture_instant(struct cuda_graph *graph, struct cuda_stream *stream,
                                   const struct device_op *op, struct cuda_graph_timing *out)
{
    cudaError_t error = cudaSuccess;
    const struct cuda_graph_timing *before = last_timing(graph, stream);
    struct marker *at = before ? before->end : mark(graph, stream, true, &error);
    *out = (struct cuda_graph_timing){stream, at, at, op->kind == DEVICE_OP_WAIT};
    return at ? cuda_graph_capture_op(graph, stream, op) : error;
}

static cudaError_t capture_stamped(struct cuda_graph *graph, struct cuda_stream *stream,
                                   const struct device_op *op)
{
    cudaError_t error = cudaSuccess;
    struct cuda_graph_timing timing = {.stream = stream};
    if (!ARRAY_GROW(graph->timings, graph->base.stamps, graph->timing_cap))
        return cudaErrorMemoryAllocation;
    if (device_op_is_work(op)) {
        timing.start = mark(graph, stream, true, &error);
        if (timing.start)
            error = cuda_graph_capture_op(graph, stream, op);
        if (error == cudaSuccess)
            timing.end = mark(graph, stream, true, &error);
        if (timing.end)
            close_waits(graph, stream, timing.start);
    } else {
        error = capture_instant(graph, stream, op, &timing);
    }
    if (error == cudaSuccess)
        graph->timings[graph->base.stamps++] = timing;
    return error;
}

static enum status fail_capture(struct cuda_graph *graph, const struct cuda_stream *stream,
                                const struct device_op *op, cudaError_t error, struct diag *diag)
{
    char text[OP_TEXT];
    graph->failure.status = STATUS_SYSTEM;
    snprintf(graph->failure.text, sizeof graph->failure.text,
             "rank %d, stream %s: %s cannot be captured: %s (%s)", graph->device->base.rank,
             stream->base.name, device_op_text(op, text), cudaGetErrorString(error),
             cudaGetErrorName(error));
    return diag_error(diag, STATUS_SYSTEM, "%s", graph->failure.text);
}

enum status cuda_graph_push(struct cuda_stream *stream, const struct device_op *op,
                            struct stamp *stamp, struct diag *diag)
{
    struct cuda_graph *graph = (struct cuda_graph *)stream->base.capture;
    if (graph->failure.status)
        return diag_error(diag, graph->failure.status, "%s", graph->failure.text);
    if (!ARRAY_GROW(graph->pushes, graph->base.pushes, graph->push_cap))
        return fail_capture(graph, stream, op, cudaErrorMemoryAllocation, diag);
    cudaError_t error =
        stamp ? capture_stamped(graph, stream, op) : cuda_graph_capture_op(graph, stream, op);
    if (error != cudaSuccess)
        return fail_capture(graph, stream, op, error, diag);
    enum status status = cuda_stream_check(stream, diag); /* NCCL's refusals are the stream's */
    if (status)
        return status;
    if (stamp)
        stamp->number = (int64_t)graph->base.pushes;
    graph->pushes[graph->base.pushes++] = (struct captured){stream, *op};
    return STATUS_OK;
}

/* ---- end ------------------------------------------------------------------------------------- */

/* The markers that made edges are free again. */
static void release_edges(struct cuda_graph *graph)
{
    size_t kept = 0;
    for (size_t i = 0; i < graph->marker_count; i++)
        if (graph->markers[i]->timed)
            graph->markers[kept++] = graph->markers[i];
        else
            marker_release(graph->device, graph->markers[i]);
    graph->marker_count = kept;
    for (size_t i = 0; i < graph->record_count; i++)
        graph->records[i].marker = NULL;
}

static cudaError_t instantiate(struct cuda_graph *graph)
{
    cudaGraph_t captured = NULL;
    cudaError_t error = cuda_graph_join_streams(graph);
    cudaError_t ended = cudaStreamEndCapture(graph->streams[0]->handle, &captured);
    error = error == cudaSuccess ? ended : error;
    if (error == cudaSuccess)
        error = cudaGraphInstantiate(&graph->exec, captured, 0);
    if (captured)
        cudaGraphDestroy(captured);
    if (error == cudaSuccess)
        error = cudaGraphUpload(graph->exec, graph->streams[0]->handle);
    return error;
}

static void link_graph(struct cuda_graph *graph)
{
    pthread_mutex_lock(&graph->device->world->lock);
    graph->next = graph->device->graphs;
    graph->device->graphs = graph;
    pthread_mutex_unlock(&graph->device->world->lock);
}

enum status cuda_graph_end(struct device *device, struct device_graph **out, struct diag *diag)
{
    struct cuda_graph *graph = (struct cuda_graph *)device->capture;
    assert(graph); /* device.c has looked */
    if (!out || graph->failure.status) {
        enum status status = graph->failure.status;
        if (status)
            diag_error(diag, status, "%s", graph->failure.text);
        drop_capture(graph);
        return out ? status : STATUS_OK;
    }
    cudaError_t error = instantiate(graph);
    cuda_graph_divert(graph, NULL);
    graph->stamps = calloc(graph->base.stamps + 1, sizeof(struct stamp *));
    if (error == cudaSuccess && !graph->stamps)
        error = cudaErrorMemoryAllocation;
    if (error != cudaSuccess) {
        if (graph->exec)
            cudaGraphExecDestroy(graph->exec);
        graph_free(graph);
        return cuda_refused(diag, "a graph cannot be made of what was captured", error);
    }
    release_edges(graph);
    link_graph(graph);
    *out = &graph->base;
    return STATUS_OK;
}

/* ---- launch ---------------------------------------------------------------------------------- */

enum status cuda_graph_arm(struct device_graph *base, struct diag *diag)
{
    struct cuda_graph *graph = (struct cuda_graph *)base;
    struct cuda_world *world = graph->device->world;
    enum status status = cuda_stream_check(graph->streams[0], diag);
    if (!status && graph->finished)
        status =
            marker_await(graph->device, graph->finished, DEVICE_FOREVER, "the launch before", diag);
    if (!status && atomic_load(&graph->unread))
        status = cuda_collect(base->device, diag);
    if (status)
        return status;
    pthread_mutex_lock(&world->lock);
    base->first = graph->device->pushes;
    graph->device->pushes += (int64_t)base->pushes;
    pthread_mutex_unlock(&world->lock);
    return STATUS_OK;
}

static void refuse_records(struct cuda_graph *graph)
{
    for (size_t i = 0; i < graph->record_count; i++)
        cuda_event_refuse(graph->records[i].event, graph->streams[0]);
}

/* A launch fails as a whole: all its streams. */
static void fail_streams(struct cuda_graph *graph, enum status status, const char *text)
{
    for (size_t i = 0; i < graph->stream_count; i++)
        cuda_stream_fail(graph->streams[i], status, "%s", text);
    refuse_records(graph);
}

/* True if one of its operations is to fail. Then none of them is done, as if the device had failed it. */
static bool cuda_graph_inject(struct cuda_graph *graph)
{
    struct cuda_world *world = graph->device->world;
    char text[OP_TEXT], why[FAILURE_TEXT];
    for (size_t i = 0; i < graph->base.pushes; i++) {
        const struct captured *push = &graph->pushes[i];
        int64_t number = graph->base.first + (int64_t)i;
        pthread_mutex_lock(&world->lock);
        enum status injected = injection_take(&graph->device->injections, number);
        bool more = graph->device->injections;
        pthread_mutex_unlock(&world->lock);
        if (injected) {
            snprintf(why, sizeof why, "rank %d, stream %s: injected failure of operation %lld, %s",
                     graph->device->base.rank, push->stream->base.name, (long long)number,
                     device_op_text(&push->op, text));
            fail_streams(graph, injected, why);
            return true;
        }
        if (!more)
            break;
    }
    return false;
}

/* The origin waits for what the other streams and the awaited events have to do by now. */
static cudaError_t gather_streams(struct cuda_graph *graph)
{
    struct cuda_stream *origin = graph->streams[0];
    cudaError_t error = cuda_stream_follow(origin);
    for (size_t i = 1; i < graph->stream_count && error == cudaSuccess; i++) {
        struct cuda_stream *stream = graph->streams[i];
        pthread_mutex_lock(&stream->lock);
        struct marker *end =
            stream->used ? marker_record(graph->device, false, stream->handle, &error) : NULL;
        stream->used = false;
        pthread_mutex_unlock(&stream->lock);
        if (end)
            error = cudaStreamWaitEvent(origin->handle, end->handle, 0);
        marker_release(graph->device, end);
    }
    for (size_t i = 0; i < graph->awaited_count && error == cudaSuccess; i++)
        error = cuda_event_follow(graph->awaited[i], origin);
    return error;
}

/* The launch under way becomes the meaning of its events, the predecessor of its streams and the next to have
   its stamps read. Takes over the marker behind it. */
static void spread_marker(struct cuda_graph *graph, struct marker *finished,
                          struct stamp *const *stamps)
{
    struct cuda_device *device = graph->device;
    for (size_t i = 0; i < graph->record_count; i++)
        cuda_event_mean(graph->records[i].event, finished);
    for (size_t i = 1; i < graph->stream_count; i++)
        cuda_stream_put_behind(graph->streams[i], finished);
    pthread_mutex_lock(&device->world->lock);
    struct marker *before = graph->finished;
    graph->finished = finished;
    pthread_mutex_unlock(&device->world->lock);
    for (size_t i = 0; i < graph->base.stamps; i++)
        graph->stamps[i] = stamps[i];
    atomic_store(&graph->unread, true);
    marker_release(device, before);
}

static cudaError_t cuda_graph_start(struct cuda_graph *graph, struct stamp *const *stamps)
{
    struct cuda_stream *origin = graph->streams[0];
    struct marker *finished = NULL;
    cudaError_t error = cuda_enter(graph->device->world);
    if (error == cudaSuccess)
        error = gather_streams(graph);
    pthread_mutex_lock(&origin->lock);
    if (error == cudaSuccess)
        error = cudaGraphLaunch(graph->exec, origin->handle);
    if (error == cudaSuccess)
        finished = marker_record(graph->device, true, origin->handle, &error);
    pthread_mutex_unlock(&origin->lock);
    if (finished)
        spread_marker(graph, finished, stamps);
    return error;
}

enum status cuda_graph_launch(struct device_graph *base, struct stamp *const *stamps,
                              struct diag *diag)
{
    struct cuda_graph *graph = (struct cuda_graph *)base;
    char why[FAILURE_TEXT];
    enum status status = STATUS_OK;
    for (size_t i = 0; i < graph->stream_count && !status; i++)
        status = cuda_stream_check(graph->streams[i], diag);
    if (status) {
        refuse_records(graph);
        return status;
    }
    if (cuda_graph_inject(graph))
        return STATUS_OK;
    cudaError_t error = cuda_graph_start(graph, stamps);
    if (error == cudaSuccess)
        return STATUS_OK;
    snprintf(why, sizeof why, "rank %d, stream %s: a graph cannot be launched: %s (%s)",
             graph->device->base.rank, graph->streams[0]->base.name, cudaGetErrorString(error),
             cudaGetErrorName(error));
    fail_streams(graph, STATUS_SYSTEM, why);
    return cuda_stream_check(graph->streams[0], diag);
}

/* ---- stamps ---------------------------------------------------------------------------------- */

static cudaError_t read_stamps(struct cuda_graph *graph)
{
    cudaError_t error = cudaSuccess;
    for (size_t i = 0; i < graph->base.stamps && error == cudaSuccess; i++) {
        const struct cuda_graph_timing *timing = &graph->timings[i];
        double start_ns = 0, end_ns = 0;
        error = marker_measure(graph->device, timing->start, &start_ns);
        if (error == cudaSuccess)
            error = marker_measure(graph->device, timing->end, &end_ns);
        if (error != cudaSuccess)
            return error;
        graph->stamps[i]->start_ns = (int64_t)start_ns;
        graph->stamps[i]->end_ns = (int64_t)(end_ns > start_ns ? end_ns : start_ns);
        graph->stamps[i]->valid = true;
    }
    return error;
}

/* Graphs are added in front meanwhile, and taken away with the collect lock only. */
cudaError_t cuda_graph_collect(struct cuda_device *device)
{
    pthread_mutex_lock(&device->world->lock);
    struct cuda_graph *first = device->graphs;
    pthread_mutex_unlock(&device->world->lock);
    for (struct cuda_graph *graph = first; graph; graph = graph->next) {
        cudaError_t error = atomic_load(&graph->unread)
                                ? cuda_ask_event(device->world, graph->finished->handle)
                                : cudaErrorNotReady;
        if (error == cudaErrorNotReady)
            continue;
        if (error == cudaSuccess)
            error = read_stamps(graph);
        if (error == cudaSuccess)
            error = marker_measure_from(device, graph->finished);
        if (error != cudaSuccess)
            return error;
        atomic_store(&graph->unread, false);
    }
    return cudaSuccess;
}

/* ---- close ----------------------------------------------------------------------------------- */

void cuda_graph_close(struct device_graph *base)
{
    struct cuda_graph *graph = (struct cuda_graph *)base;
    struct cuda_world *world = graph->device->world;
    struct diag ignored; /* a sync has reported the failure */
    diag_init(&ignored);
    device_enter(base->device);
    if (graph->finished)
        (void)marker_await(graph->device, graph->finished, DEVICE_FOREVER, "a graph", &ignored);
    if (atomic_load(&graph->unread))
        (void)cuda_collect(base->device, &ignored);
    diag_fini(&ignored);
    pthread_mutex_lock(&graph->device->collect_lock);
    pthread_mutex_lock(&world->lock);
    struct cuda_graph **link = &graph->device->graphs;
    while (*link != graph)
        link = &(*link)->next;
    *link = graph->next;
    pthread_mutex_unlock(&world->lock);
    pthread_mutex_unlock(&graph->device->collect_lock);
    cudaGraphExecDestroy(graph->exec);
    graph_free(graph);
}
