/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_graph.c - graphs of the host device: a list of pushes, and one call that does them all.
 *
 *     capture:  push -> kept, kept, kept ...           (nothing else happens)
 *     launch:   kept, kept, kept ... -> entries -> under one lock into the FIFOs of their streams
 *
 * A launch is exactly the pushes that were captured, in their order: what each waits for, its turn on its
 * communicator, the place an event means are found when it goes into its FIFO. So nothing has to be
 * ordered between launches, and several launches of one graph may be under way.
 */
#include "host.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* One captured push. */
struct host_graph_kept {
    struct host_stream *stream;
    struct device_op op;
    struct device_p2p *parts; /* GROUP: its own copy */
    bool stamped;
};

struct host_graph {
    struct device_graph base;
    struct host_stream **streams; /* that are captured; [stream_count] */
    size_t stream_count;
    struct host_graph_kept *kept; /* [base.pushes], of room for `cap` */
    size_t cap;
};

/* ---- capture --------------------------------------------------------------------------------- */

static struct host_graph *host_graph_new(struct device *device,
                                         struct device_stream *const *streams, size_t count)
{
    struct host_graph *graph = calloc(1, sizeof *graph);
    if (!graph)
        return NULL;
    graph->base.device = device;
    graph->streams = calloc(count, sizeof(struct host_stream *));
    if (!graph->streams) {
        free(graph);
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        graph->streams[graph->stream_count++] = (struct host_stream *)streams[i];
    return graph;
}

/* The streams' pushes go to `capture`, or with NULL into their FIFOs again. */
static void host_graph_divert(struct host_graph *graph, struct device_graph *capture)
{
    graph->base.device->capture = capture;
    for (size_t i = 0; i < graph->stream_count; i++)
        graph->streams[i]->base.capture = capture;
}

enum status host_graph_begin(struct device *device, struct device_stream *const *streams,
                             size_t count, struct diag *diag)
{
    struct host_graph *graph = host_graph_new(device, streams, count);
    if (!graph)
        return diag_no_memory(diag);
    host_graph_divert(graph, &graph->base);
    return STATUS_OK;
}

/* The caller's parts may be gone when the graph is launched. */
static bool keep_parts(struct host_graph_kept *kept)
{
    size_t count = kept->op.kind == DEVICE_OP_GROUP ? kept->op.group.count : 0;
    if (count == 0)
        return true;
    kept->parts = calloc(count, sizeof *kept->parts);
    if (!kept->parts)
        return false;
    memcpy(kept->parts, kept->op.group.parts, count * sizeof *kept->parts);
    kept->op.group.parts = kept->parts;
    return true;
}

enum status host_graph_keep(struct host_stream *stream, const struct device_op *op,
                            struct stamp *stamp, struct diag *diag)
{
    struct host_graph *graph = (struct host_graph *)stream->base.capture;
    struct host_graph_kept kept = {.stream = stream, .op = *op, .stamped = stamp};
    if (!ARRAY_GROW(graph->kept, graph->base.pushes, graph->cap) || !keep_parts(&kept))
        return diag_no_memory(diag);
    if (stamp)
        stamp->number = (int64_t)graph->base.pushes;
    graph->base.stamps += kept.stamped;
    graph->kept[graph->base.pushes++] = kept;
    return STATUS_OK;
}

enum status host_graph_end(struct device *device, struct device_graph **out, struct diag *diag)
{
    struct host_graph *graph = (struct host_graph *)device->capture;
    (void)diag;
    host_graph_divert(graph, NULL);
    if (out)
        *out = &graph->base;
    else
        host_graph_close(&graph->base);
    return STATUS_OK;
}

/* Operations under way have copies of their own. */
void host_graph_close(struct device_graph *base)
{
    struct host_graph *graph = (struct host_graph *)base;
    for (size_t i = 0; i < base->pushes; i++)
        free(graph->kept[i].parts);
    free(graph->kept);
    free(graph->streams);
    free(graph);
}

/* ---- launch ---------------------------------------------------------------------------------- */

enum status host_graph_arm(struct device_graph *base, struct diag *diag)
{
    struct host_device *device = (struct host_device *)base->device;
    (void)diag;
    pthread_mutex_lock(&device->world->lock);
    base->first = device->pushes;
    device->pushes += (int64_t)base->pushes;
    world_unlock(device->world);
    return STATUS_OK;
}

static void free_from(struct entry **entries, size_t first, size_t count)
{
    for (size_t i = first; i < count; i++)
        entry_free(entries[i]);
}

/* All entries of a launch; false when memory is exhausted, then there are none. */
static bool make_entries(const struct host_graph *graph, struct stamp *const *stamps,
                         struct entry **out)
{
    size_t stamped = 0;
    for (size_t i = 0; i < graph->base.pushes; i++) {
        const struct host_graph_kept *kept = &graph->kept[i];
        struct stamp *stamp = kept->stamped ? stamps[stamped++] : NULL;
        out[i] = entry_new(kept->stream, &kept->op, stamp);
        if (!out[i]) {
            free_from(out, 0, i);
            return false;
        }
        out[i]->number = graph->base.first + (int64_t)i;
    }
    return true;
}

enum status host_graph_launch(struct device_graph *base, struct stamp *const *stamps,
                              struct diag *diag)
{
    struct host_graph *graph = (struct host_graph *)base;
    struct host_world *world = ((struct host_device *)base->device)->world;
    struct entry **entries = calloc(base->pushes + 1, sizeof(struct entry *));
    enum status status = STATUS_OK;
    size_t pushed = 0;
    if (!entries || !make_entries(graph, stamps, entries)) {
        free(entries);
        return diag_no_memory(diag);
    }
    pthread_mutex_lock(&world->lock);
    while (pushed < base->pushes && !status) {
        status = entry_push(entries[pushed], diag);
        pushed += !status;
    }
    world_unlock(world);
    free_from(entries, pushed, base->pushes);
    free(entries);
    return status;
}
