/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.c - streams that are captured, and the graphs that become of them. See none.h.
 *
 * A launched graph has its nodes in the order of the capture, one behind the other: one of the orders that CUDA allows.
 */
#include "engine_impl.h"

#include <stdlib.h>

static uint64_t captures; /* so far; by the lock */
static struct none_stream *captured[64];

struct none_graph *none_graph_new(void)
{
    struct none_graph *graph = calloc(1, sizeof *graph);
    if (graph)
        graph->references = 1;
    return graph;
}

void none_graph_keep(struct none_graph *graph)
{
    __atomic_add_fetch(&graph->references, 1, __ATOMIC_RELAXED);
}

void none_graph_release(struct none_graph *graph)
{
    if (__atomic_sub_fetch(&graph->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (size_t i = 0; i < graph->count; i++)
        free(graph->nodes[i]);
    free(graph->nodes);
    free(graph);
}

static void set_captured(struct none_stream *stream, struct none_graph *graph)
{
    const size_t most = sizeof captured / sizeof *captured;
    size_t place = most;
    for (size_t i = 0; i < most; i++)
        if (captured[i] == (graph ? NULL : stream))
            place = i;
    if (place == most)
        none_missing("a capture of more than 64 streams", "a larger table of them");
    captured[place] = graph ? stream : NULL;
    if (graph)
        none_graph_keep(graph);
    else
        none_graph_release(stream->capture);
    stream->capture = graph;
    stream->node = NULL;
}

int none_capture_begin(const void *handle, struct none_graph *into, int mode)
{
    (void)mode;
    if ((uintptr_t)handle <= 2)
        return NONE_CAPTURE_IMPLICIT;
    struct none_graph *graph = into ? into : none_graph_new();
    if (!graph)
        return NONE_NO_MEMORY;
    if (!none_lock())
        return NONE_NOT_INITIALIZED;
    struct none_stream *stream = none_stream_of_locked(handle);
    const int result = stream->capture ? NONE_ILLEGAL_STATE : NONE_OK;
    if (result == NONE_OK) {
        graph->id = ++captures;
        graph->origin = stream;
        graph->device = stream->device;
        graph->over = graph->broken = false;
        set_captured(stream, graph);
    }
    if (!into)
        none_graph_release(graph);
    none_unlock();
    return result;
}

/* A stream that joined and does not end in front of the end of the first stream is not looked for: programs that forget
   it are told by verify. */
int none_capture_end(const void *handle, struct none_graph **out)
{
    *out = NULL;
    if (!none_lock())
        return NONE_NOT_INITIALIZED;
    struct none_stream *stream = none_stream_of_locked(handle);
    struct none_graph *graph = stream->capture;
    int result = graph && graph->origin == stream ? NONE_OK : NONE_ILLEGAL_STATE;
    if (result == NONE_OK) {
        none_graph_keep(graph);
        for (size_t i = 0; i < sizeof captured / sizeof *captured; i++)
            if (captured[i] && captured[i]->capture == graph)
                set_captured(captured[i], NULL);
        graph->over = true;
        if (graph->broken)
            result = NONE_CAPTURE_INVALIDATED;
    }
    if (result == NONE_OK)
        *out = graph;
    none_unlock();
    return result;
}

int none_capture_state(const void *handle, uint64_t *id, struct none_graph **graph,
                       void *const **nodes, size_t *count)
{
    if (!none_lock())
        return 0;
    struct none_stream *stream = none_stream_of_locked(handle);
    const struct none_graph *capture = stream->capture;
    *id = capture ? capture->id : 0;
    *graph = stream->capture;
    *nodes = &stream->node;
    *count = stream->node != NULL;
    none_unlock();
    return capture ? 1 + capture->broken : 0;
}

int none_graph_add_locked(struct none_stream *stream, const struct none_entry *entry)
{
    struct none_graph *graph = stream->capture;
    struct none_node *node = malloc(sizeof *node);
    if (graph->count == graph->cap) {
        const size_t cap = 2 * graph->cap + 16;
        struct none_node **grown = realloc(graph->nodes, cap * sizeof(struct none_node *));
        if (!grown)
            none_missing("a graph", "there is no memory");
        graph->nodes = grown;
        graph->cap = cap;
    }
    if (!node)
        none_missing("a graph", "there is no memory");
    node->entry = *entry;
    graph->nodes[graph->count++] = node;
    stream->node = node;
    return NONE_OK;
}

int none_graph_join_locked(struct none_stream *stream, struct none_event *event)
{
    if (event->capture->over)
        return NONE_CAPTURE_ISOLATION;
    if (stream->capture && stream->capture != event->capture)
        return NONE_CAPTURE_ISOLATION;
    if (!stream->capture)
        set_captured(stream, event->capture);
    if (!stream->node)
        stream->node = event->node;
    return NONE_OK;
}

int none_capture_forbids_locked(const struct none_stream *stream)
{
    if (stream && !stream->capture)
        return NONE_OK;
    for (size_t i = 0; i < sizeof captured / sizeof *captured; i++)
        if (captured[i] && (!stream || captured[i] == stream)) {
            captured[i]->capture->broken = true;
            return NONE_CAPTURE_FORBIDS;
        }
    return NONE_OK;
}

int none_graph_launch(struct none_graph *graph, const void *handle)
{
    int result = NONE_OK;
    if (!graph)
        return NONE_INVALID_VALUE;
    if (!none_lock())
        return NONE_NOT_INITIALIZED;
    struct none_stream *stream = none_stream_of_locked(handle);
    for (size_t i = 0; i < graph->count && result == NONE_OK; i++) {
        struct none_entry entry = graph->nodes[i]->entry;
        if (entry.kind == NONE_RECORD) { /* external: this launch's own */
            entry.version = ++entry.event->records;
            entry.event->stream = stream;
            entry.event->position = stream->pushed + 1;
        }
        if (entry.kind == NONE_WAIT && entry.event->records == 0)
            continue;
        if (entry.kind == NONE_WAIT)
            entry = (struct none_entry){
                .kind = NONE_JOIN, .other = entry.event->stream, .version = entry.event->position};
        if (entry.event)
            entry.event->references++;
        if (entry.kind == NONE_HOST)
            none_start_clerk_locked();
        result = none_append_locked(stream, &entry);
    }
    none_unlock();
    return result;
}

size_t none_graph_nodes(const struct none_graph *graph, void **out, size_t room)
{
    for (size_t i = 0; out && i < graph->count && i < room; i++)
        out[i] = graph->nodes[i];
    return graph->count;
}

int none_exchange_capture_mode(int mode)
{
    static __thread int own; /* global */
    const int before = own;
    own = mode;
    return before;
}
