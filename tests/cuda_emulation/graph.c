/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.c - emulated CUDA: not a GPU. Captured streams and launched graphs.
 *
 * Operations pushed to a captured stream go to a list; a stream that waits for a point of the
 * list joins the capture. An executable graph has a stream for each captured one: a launch pushes copies of
 * the list's operations to them, with points of its own, between earlier and later work of the launching
 * stream. So branches run concurrently, and launches of one graph one after the other.
 */
#include "emulation.h"

#include <stdlib.h>

struct CUgraph_st {
    struct operation *head, **tail;
    uint64_t capture;
    int lanes, gpu;
    size_t points, nodes;
    struct CUstream_st *origin;
    enum cudaStreamCaptureMode mode;
    pthread_t thread; /* the one that began it */
    bool invalid;
    bool is_given; /* by the program, with cudaGraphCreate */
};

struct CUgraphExec_st {
    struct operation *head;
    int gpu, lanes;
    size_t points;
    struct CUstream_st *streams[];
};

static void free_list(struct operation *list)
{
    while (list) {
        struct operation *next = list->next;
        point_release(list->point);
        free(list);
        list = next;
    }
}

static struct operation *copy_one(const struct operation *from)
{
    struct operation *copy = operation_new(from->kind, from->payload, from->bytes);
    if (!copy)
        return NULL;
    copy->run = from->run;
    copy->counts = from->counts;
    copy->activity = from->activity;
    copy->node = from->node;
    copy->lane = from->lane;
    copy->event = from->event;
    copy->point = from->point;
    if (copy->point)
        copy->point->references++;
    return copy;
}

/* ---- capture ------------------------------------------------------------------------------------ */

void graph_add(struct CUgraph_st *graph, struct operation *operation, int lane)
{
    operation->lane = lane;
    operation->node = graph->capture << 32 | ++graph->nodes;
    *graph->tail = operation;
    graph->tail = &operation->next;
}

cudaError_t graph_add_work(struct CUgraph_st *graph, int gpu,
                           cudaError_t (*run)(struct CUstream_st *, void *), const void *payload,
                           size_t bytes)
{
    struct operation *operation = operation_new(OPERATION_WORK, payload, bytes);
    if (!operation)
        return cudaErrorMemoryAllocation;
    operation->run = run;
    graph->gpu = gpu;
    graph->lanes = graph->lanes > 0 ? graph->lanes : 1;
    graph_add(graph, operation, 0);
    return cudaSuccess;
}

struct operation *graph_add_record(struct CUstream_st *stream, struct CUevent_st *event)
{
    struct operation *operation = operation_new(OPERATION_POINT, NULL, 0);
    struct point *point = operation ? calloc(1, sizeof *point) : NULL;
    if (!point) {
        free(operation);
        return NULL;
    }
    point->references = 1;
    operation->point = point;
    operation->event = event;
    graph_number(stream->graph, point);
    graph_add(stream->graph, operation, stream->lane);
    return operation;
}

/* Without a point: which it waits for is known at the launch. */
struct operation *graph_add_wait(struct CUstream_st *stream, struct CUevent_st *event)
{
    struct operation *operation = operation_new(OPERATION_WAIT, NULL, 0);
    if (operation) {
        operation->event = event;
        graph_add(stream->graph, operation, stream->lane);
    }
    return operation;
}

void graph_number(struct CUgraph_st *graph, struct point *point)
{
    point->capture = graph->capture;
    point->number = graph->points++;
}

uint64_t graph_capture(const struct CUstream_st *stream)
{
    return stream->graph ? stream->graph->capture : 0;
}

/* The graph of a capture in progress, or NULL. */
static struct CUgraph_st *find_capture(uint64_t capture)
{
    const struct CUstream_st *at = emulation.streams;
    while (at && graph_capture(at) != capture)
        at = at->next;
    return at ? at->graph : NULL;
}

cudaError_t graph_join(struct CUstream_st *stream, const struct point *point)
{
    if (graph_capture(stream) == point->capture)
        return cudaSuccess;
    if (stream->graph) {
        stream->graph->invalid = true;
        return cudaErrorStreamCaptureIsolation;
    }
    stream->graph = find_capture(point->capture);
    if (!stream->graph)
        return cudaErrorCapturedEvent;
    stream->lane = stream->graph->lanes++;
    return cudaSuccess;
}

cudaError_t graph_forbids(struct CUstream_st *stream)
{
    stream->graph->invalid = true;
    return cudaErrorStreamCaptureUnsupported;
}

/* Of the thread that makes a potentially unsafe call: what captures forbid it. */
static _Thread_local enum cudaStreamCaptureMode mode_of_thread = cudaStreamCaptureModeGlobal;

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    cudaError_t error = call_begin_anyhow(__func__);
    if (error != cudaSuccess)
        return error;
    if (*mode < cudaStreamCaptureModeGlobal || *mode > cudaStreamCaptureModeRelaxed)
        return call_end(cudaErrorInvalidValue);
    const enum cudaStreamCaptureMode before = mode_of_thread;
    mode_of_thread = *mode;
    *mode = before;
    return call_end(cudaSuccess);
}

cudaError_t graph_forbids_all(void)
{
    if (mode_of_thread == cudaStreamCaptureModeRelaxed)
        return cudaSuccess;
    for (struct CUstream_st *at = emulation.streams; at; at = at->next) {
        if (!at->graph || at->graph->mode == cudaStreamCaptureModeRelaxed)
            continue;
        if (pthread_equal(at->graph->thread, pthread_self()) ||
            (at->graph->mode == cudaStreamCaptureModeGlobal &&
             mode_of_thread == cudaStreamCaptureModeGlobal))
            return graph_forbids(at);
    }
    return cudaSuccess;
}

static struct CUgraph_st *new_graph(bool is_given)
{
    struct CUgraph_st *graph = calloc(1, sizeof *graph);
    if (graph) {
        graph->tail = &graph->head;
        graph->is_given = is_given;
    }
    return graph;
}

/* Takes the graph. */
static cudaError_t begin_capture(struct CUstream_st *stream, struct CUgraph_st *graph,
                                 enum cudaStreamCaptureMode mode)
{
    graph->capture = ++emulation.captures;
    graph->lanes = 1;
    graph->gpu = stream->gpu;
    graph->origin = stream;
    graph->mode = mode;
    graph->thread = pthread_self();
    stream->graph = graph;
    stream->lane = 0;
    return cudaSuccess;
}

static cudaError_t check_capture(const struct CUstream_st *stream)
{
    return !stream                    ? cudaErrorMemoryAllocation
           : stream_is_legacy(stream) ? cudaErrorStreamCaptureUnsupported
           : stream->graph            ? cudaErrorIllegalState
                                      : cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, enum cudaStreamCaptureMode mode)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    struct CUstream_st *stream = any_stream(handle, __func__);
    error = check_capture(stream);
    if (mode < cudaStreamCaptureModeGlobal || mode > cudaStreamCaptureModeRelaxed)
        error = cudaErrorInvalidValue;
    struct CUgraph_st *graph = error == cudaSuccess ? new_graph(false) : NULL;
    if (error == cudaSuccess)
        error = graph ? begin_capture(stream, graph, mode) : cudaErrorMemoryAllocation;
    return call_end(error);
}

cudaError_t cudaGraphCreate(cudaGraph_t *out, unsigned flags)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    if (flags != 0)
        return call_end(cudaErrorInvalidValue);
    *out = new_graph(true);
    if (*out)
        handle_born(HANDLE_GRAPH, *out);
    return call_end(*out ? cudaSuccess : cudaErrorMemoryAllocation);
}

#if CUDART_VERSION >= 12030
/* Only into a graph without nodes. */
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t handle, cudaGraph_t graph,
                                          const cudaGraphNode_t *nodes,
                                          const cudaGraphEdgeData *edges, size_t count,
                                          enum cudaStreamCaptureMode mode)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    handle_use(HANDLE_GRAPH, graph, __func__);
    struct CUstream_st *stream = any_stream(handle, __func__);
    error = check_capture(stream);
    if (error == cudaSuccess && (nodes || edges || count > 0 || graph->head))
        error = cudaErrorNotSupported;
    return call_end(error == cudaSuccess ? begin_capture(stream, graph, mode) : error);
}
#endif

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, enum cudaStreamCaptureStatus *out)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    const struct CUstream_st *stream = any_stream(handle, __func__);
    *out = !stream || !stream->graph ? cudaStreamCaptureStatusNone
           : stream->graph->invalid  ? cudaStreamCaptureStatusInvalidated
                                     : cudaStreamCaptureStatusActive;
    return call_end(cudaSuccess);
}

/* Does the end of the first lane wait for all of the others? From the end backwards: a wait covers all
   operations before its point. -1: no memory. */
static int is_joined(const struct CUgraph_st *graph)
{
    size_t count = 0;
    for (const struct operation *at = graph->head; at; at = at->next)
        count++;
    const struct operation **all = calloc(count + 1, sizeof *all);
    bool *lanes = calloc((size_t)graph->lanes, sizeof *lanes);
    bool *points = calloc(graph->points + 1, sizeof *points);
    int joined = all && lanes && points ? 1 : -1;
    size_t i = 0;
    for (const struct operation *at = graph->head; at && joined > 0; at = at->next)
        all[i++] = at;
    if (joined > 0)
        lanes[0] = true;
    while (i-- > 0 && joined > 0) {
        const struct operation *at = all[i];
        if (at->kind == OPERATION_POINT)
            lanes[at->lane] = lanes[at->lane] || points[at->point->number];
        if (!lanes[at->lane] && (at->kind != OPERATION_POINT || at->event))
            joined = 0;
        else if (at->kind == OPERATION_WAIT && at->point)
            points[at->point->number] = true;
    }
    free(all);
    free(lanes);
    free(points);
    return joined;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *out)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    struct CUstream_st *stream = stream_of(handle, __func__);
    struct CUgraph_st *graph = stream->graph;
    if (!graph)
        return call_end(cudaErrorIllegalState);
    if (graph->origin != stream)
        return call_end(cudaErrorStreamCaptureUnmatched);
    if (graph->mode != cudaStreamCaptureModeRelaxed &&
        !pthread_equal(graph->thread, pthread_self()))
        return call_end(cudaErrorStreamCaptureWrongThread);
    for (struct CUstream_st *at = emulation.streams; at; at = at->next)
        if (at->graph == graph)
            at->graph = NULL;
    int joined = is_joined(graph);
    error = graph->invalid ? cudaErrorStreamCaptureInvalidated
            : joined == 0  ? cudaErrorStreamCaptureUnjoined
            : joined < 0   ? cudaErrorMemoryAllocation
                           : cudaSuccess;
    *out = error == cudaSuccess ? graph : NULL;
    if (error == cudaSuccess && !graph->is_given)
        handle_born(HANDLE_GRAPH, graph);
    if (error != cudaSuccess && !graph->is_given) {
        free_list(graph->head);
        free(graph);
    }
    return call_end(error);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    handle_dies(HANDLE_GRAPH, graph, __func__);
    for (const struct CUstream_st *at = emulation.streams; at; at = at->next)
        if (at->graph == graph)
            emulation_misuse("cudaGraphDestroy: a stream is being captured to the graph");
    free_list(graph->head);
    free(graph);
    return call_end(cudaSuccess);
}

/* ---- launch ------------------------------------------------------------------------------------- */

/* No lock is needed: no other thread has a pointer to it. */
static void free_exec(struct CUgraphExec_st *exec)
{
    for (int i = 0; i < exec->lanes && exec->streams[i]; i++)
        stream_close(exec->streams[i]);
    free_list(exec->head);
    free(exec);
}

static bool copy_nodes(const struct CUgraph_st *graph, struct operation **out)
{
    for (const struct operation *at = graph->head; at; at = at->next) {
        *out = copy_one(at);
        if (!*out)
            return false;
        out = &(*out)->next;
    }
    return true;
}

static cudaError_t instantiate(cudaGraphExec_t *out, const struct CUgraph_st *graph,
                               unsigned long long flags, const char *function)
{
    cudaError_t error = call_begin(function);
    if (error != cudaSuccess)
        return error;
    handle_use(HANDLE_GRAPH, graph, function);
    if (flags & ~(unsigned long long)(cudaGraphInstantiateFlagAutoFreeOnLaunch |
                                      cudaGraphInstantiateFlagUpload |
                                      cudaGraphInstantiateFlagUseNodePriority))
        return call_end(cudaErrorInvalidValue);
    size_t lanes = (size_t)graph->lanes;
    struct CUgraphExec_st *exec = calloc(1, sizeof *exec + lanes * sizeof(struct CUstream_st *));
    if (!exec)
        return call_end(cudaErrorMemoryAllocation);
    *exec =
        (struct CUgraphExec_st){.gpu = graph->gpu, .lanes = graph->lanes, .points = graph->points};
    bool good = true;
    for (size_t i = 0; i < lanes && good; i++)
        good = (exec->streams[i] = stream_new(exec->gpu, false)) != NULL;
    good = good && copy_nodes(graph, &exec->head);
    if (good)
        handle_born(HANDLE_EXEC, *out = exec);
    else
        free_exec(exec);
    return call_end(good ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags)
{
    return instantiate(out, graph, flags, __func__);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph,
                                          unsigned long long flags)
{
    return instantiate(out, graph, flags, __func__);
}

#if CUDART_VERSION >= 12000
cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *out, cudaGraph_t graph,
                                           cudaGraphInstantiateParams *params)
{
    const cudaError_t error = instantiate(out, graph, params->flags, __func__);
    params->errNode_out = NULL;
    params->result_out =
        error == cudaSuccess ? cudaGraphInstantiateSuccess : cudaGraphInstantiateError;
    return error;
}

/* Graphs of as many streams and operations count as alike: the executable does what the graph does from now on. */
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo *info)
{
    struct operation *head = NULL;
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    handle_use(HANDLE_EXEC, exec, __func__);
    handle_use(HANDLE_GRAPH, graph, __func__);
    *info = (cudaGraphExecUpdateResultInfo){.result = cudaGraphExecUpdateSuccess};
    if (exec->lanes != graph->lanes || exec->points != graph->points) {
        info->result = cudaGraphExecUpdateErrorTopologyChanged;
        return call_end(cudaErrorGraphExecUpdateFailure);
    }
    if (!copy_nodes(graph, &head)) {
        free_list(head);
        return call_end(cudaErrorMemoryAllocation);
    }
    free_list(exec->head);
    exec->head = head;
    return call_end(cudaSuccess);
}
#endif

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t handle)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    handle_use(HANDLE_EXEC, exec, __func__);
    struct CUstream_st *stream = stream_of(handle, __func__);
    return call_end(stream->graph              ? graph_forbids(stream)
                    : stream->gpu == exec->gpu ? cudaSuccess
                                               : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    cudaError_t error = call_begin_anyhow(__func__);
    if (error != cudaSuccess)
        return error;
    handle_dies(HANDLE_EXEC, exec, __func__);
    const int gpu = exec->gpu;
    free_exec(exec); /* the host's part, also where the context has ended */
    return call_end(emulation.gpus[gpu].error);
}

/* All lanes behind one point of a stream. */
static bool fan_out(struct CUgraphExec_st *exec, struct CUstream_st *from)
{
    struct point *start = stream_mark(from);
    bool good = start != NULL;
    for (int i = 0; i < exec->lanes && good; i++)
        good = stream_wait_for(exec->streams[i], start) == cudaSuccess;
    point_release(start);
    return good;
}

static bool fan_in(struct CUgraphExec_st *exec, struct CUstream_st *to)
{
    bool good = true;
    for (int i = 0; i < exec->lanes && good; i++) {
        struct point *end = stream_mark(exec->streams[i]);
        good = end && stream_wait_for(to, end) == cudaSuccess;
        point_release(end);
    }
    return good;
}

/* The event of a node counts as recorded now: it is not done until the launch reaches it. */
static bool push_point(struct CUstream_st *stream, const struct operation *operation,
                       struct point **points)
{
    struct point *point = stream_mark(stream);
    points[operation->point->number] = point;
    if (!point || !operation->event)
        return point != NULL;
    struct CUevent_st *event = event_of(operation->event, "cudaGraphLaunch");
    point_release(event->last);
    event->last = point;
    point->references++;
    return true;
}

static bool wait_for_event(struct CUstream_st *stream, const struct CUevent_st *event)
{
    return !event->last || stream_wait_for(stream, event->last) == cudaSuccess;
}

static bool push_copy(struct CUstream_st *stream, const struct operation *operation,
                      struct point **points, uint32_t correlation)
{
    struct operation *copy;
    switch (operation->kind) {
    case OPERATION_POINT: return push_point(stream, operation, points);
    case OPERATION_WAIT:
        if (operation->event)
            return wait_for_event(stream, event_of(operation->event, "cudaGraphLaunch"));
        return stream_wait_for(stream, points[operation->point->number]) == cudaSuccess;
    case OPERATION_WORK:
        copy = copy_one(operation);
        if (copy) {
            copy->correlation = copy->activity ? correlation : 0;
            stream_push(stream, copy);
        }
        return copy != NULL;
    }
    return false;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t handle)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    handle_use(HANDLE_EXEC, exec, __func__);
    struct CUstream_st *stream = any_stream(handle, __func__);
    if (!stream)
        return call_end(cudaErrorMemoryAllocation);
    if (stream->graph)
        return call_end(graph_forbids(stream));
    struct point **points = calloc(exec->points + 1, sizeof(struct point *));
    bool good = points && fan_out(exec, stream);
    const struct activity *profiler = atomic_load(&emulation_activity);
    const uint32_t correlation = profiler ? profiler->pushed() : 0;
    for (const struct operation *at = exec->head; at && good; at = at->next)
        good = push_copy(exec->streams[at->lane], at, points, correlation);
    good = good && fan_in(exec, stream);
    for (size_t i = 0; points && i < exec->points; i++)
        point_release(points[i]);
    free(points);
    return call_end(good ? cudaSuccess : cudaErrorMemoryAllocation);
}
