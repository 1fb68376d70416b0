/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - what all devices have in common: arguments are checked here, once; see device.h. */
#include "device_impl.h"
#include "gpu/net/rendezvous.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

const char *device_kind_key(enum device_kind kind)
{
    static const char *const keys[] = {
#define X(name, key) key,
        DEVICE_KIND_LIST(X)
#undef X
    };
    return keys[kind];
}

int64_t device_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

struct device_comm *device_op_comm(const struct device_op *op)
{
    switch (op->kind) {
    case DEVICE_OP_COLLECTIVE: return op->collective.comm;
    case DEVICE_OP_GROUP: return op->group.comm;
    default: return NULL;
    }
}

int device_comm_place(const struct device_comm *comm, int rank)
{
    for (int i = 0; i < comm->count; i++)
        if (comm->members[i] == rank)
            return i;
    return -1;
}

const char *device_op_text(const struct device_op *op, char out[OP_TEXT])
{
    static const char *const keys[] = {
#define X(name, key) key,
        DEVICE_OP_LIST(X)
#undef X
    };
    const char *kind = keys[op->kind], *name = op->label;
    if (op->kind == DEVICE_OP_COLLECTIVE) {
        kind = collective_key(op->collective.kind);
        name = op->collective.tag ? op->collective.tag : op->label;
    }
    if (name)
        snprintf(out, OP_TEXT, "%s '%s'", kind, name);
    else
        snprintf(out, OP_TEXT, "%s", kind);
    return out;
}

/* ---- injected failures ----------------------------------------------------------------------- */

struct injection *injection_new(int64_t number, enum status status)
{
    struct injection *injection = calloc(1, sizeof *injection);
    if (injection)
        *injection = (struct injection){.number = number, .status = status};
    return injection;
}

enum status injection_take(struct injection **list, int64_t number)
{
    for (; *list; list = &(*list)->next) {
        struct injection *found = *list;
        enum status status = found->status;
        if (found->number != number)
            continue;
        *list = found->next;
        free(found);
        return status;
    }
    return STATUS_OK;
}

void injection_free_all(struct injection *list)
{
    while (list) {
        struct injection *next = list->next;
        free(list);
        list = next;
    }
}

/* ---- a caller without a diag ----------------------------------------------------------------- */

/* A diag for one call without one. */
struct lent {
    struct diag own, *diag;
};

static struct diag *lend(struct lent *lent, struct diag *diag)
{
    diag_init(&lent->own);
    lent->diag = diag ? diag : &lent->own;
    return lent->diag;
}

static enum status device_give_back(struct lent *lent, enum status status)
{
    diag_fini(&lent->own);
    return status;
}

/* ---- the interface --------------------------------------------------------------------------- */

static const struct device_ops *find_ops(enum device_kind kind)
{
    static const struct device_ops *const all[] = {
        [DEVICE_KIND_HOST] = &device_host_ops,
#ifdef HAVE_CUDA
        [DEVICE_KIND_CUDA] = &device_cuda_ops,
#else
        [DEVICE_KIND_CUDA] = NULL,
#endif
    };
    return all[kind];
}

/* The processes of a rendezvous share the ranks of a world evenly. */
static enum status check_processes(const struct device_config *config, struct diag *diag)
{
    int processes = config->rendezvous ? rendezvous_size(config->rendezvous) : 1;
    int process = config->rendezvous ? rendezvous_rank(config->rendezvous) : 0;
    if (config->local_ranks < 1 || config->local_ranks * processes != config->ranks ||
        config->first_rank != process * config->local_ranks)
        return diag_error(diag, STATUS_INPUT,
                          "a world of %d ranks in %d processes cannot have ranks %d to %d here",
                          config->ranks, processes, config->first_rank,
                          config->first_rank + config->local_ranks - 1);
    return STATUS_OK;
}

enum status device_world_open(const struct device_config *config, struct device_world **out,
                              struct diag *diag)
{
    const struct device_ops *ops = find_ops(config->kind);
    if (!ops)
        return diag_error(diag, STATUS_SYSTEM, "this program was built without the %s device",
                          device_kind_key(config->kind));
    if (config->ranks < 1 || config->sm_slots < 0 || config->launch_queue < 0)
        return diag_error(diag, STATUS_INPUT,
                          "a world needs at least one rank and no negative limits");
    if (config->share_device && (config->kind != DEVICE_KIND_HOST || config->rendezvous))
        return diag_error(diag, STATUS_INPUT,
                          "share_device needs the host device and all ranks in one process: %s",
                          config->kind != DEVICE_KIND_HOST ? "here each rank has a GPU of its own"
                                                           : "processes do not share slots");
    struct device_config whole = *config;
    struct device_world *world = NULL;
    if (whole.local_ranks == 0)
        whole.local_ranks = whole.ranks - whole.first_rank;
    enum status status = check_processes(&whole, diag);
    if (!status)
        status = ops->world_open(&whole, &world, diag);
    if (status)
        return status;
    if (whole.rendezvous) {
        world->base_ns = rendezvous_board(whole.rendezvous)->base_ns;
        status = rendezvous_barrier(
            whole.rendezvous,
            whole.meet_ns ? device_clock_ns() + whole.meet_ns : RENDEZVOUS_FOREVER, diag);
    }
    if (status)
        device_world_close(world);
    else
        *out = world;
    return status;
}

int device_kept_comms(const struct device *device)
{
    return atomic_load(&device->kept_comms);
}

int64_t device_kept_bytes(const struct device *device)
{
    return atomic_load(&device->kept_bytes);
}

void device_world_close(struct device_world *world)
{
    if (world)
        world->ops->world_close(world);
}

void device_world_abort(struct device_world *world, const char *why)
{
    world->ops->world_abort(world, why);
}

enum status device_world_status(struct device_world *world, struct diag *diag)
{
    struct lent lent;
    return device_give_back(&lent, world->ops->world_status(world, lend(&lent, diag)));
}

void device_world_explain(struct device_world *world, struct diag *diag)
{
    world->ops->world_explain(world, diag);
}

int64_t device_now(const struct device_world *world)
{
    return device_clock_ns() - world->base_ns;
}

enum status device_open(struct device_world *world, int rank, struct device **out,
                        struct diag *diag)
{
    if (rank < 0 || rank >= world->config.ranks)
        return diag_error(diag, STATUS_INPUT, "no rank %d in a world of %d", rank,
                          world->config.ranks);
    if (!device_world_has(world, rank))
        return diag_error(diag, STATUS_INPUT, "rank %d is in another process", rank);
    return world->ops->open(world, rank, out, diag);
}

void device_close(struct device *device)
{
    if (device)
        device->ops->close(device);
}

void *device_comm_handle(struct device_comm *comm)
{
    const struct device_ops *ops = comm->device->ops;
    return ops->comm_handle ? ops->comm_handle(comm) : NULL;
}

bool device_comm_takes_own(const struct device_comm *comm, size_t bytes)
{
    const struct device_ops *ops = comm->device->ops;
    return ops->comm_takes_own && ops->comm_takes_own(comm, bytes);
}

void device_enter(struct device *device)
{
    if (device->ops->enter)
        device->ops->enter(device);
}

void device_note_caller(enum device_kind kind, const struct device_world *world,
                        struct device_caller *out)
{
    const struct device_ops *ops = find_ops(kind);
    *out = (struct device_caller){.gpu = -1};
    if (ops && ops->note_caller)
        ops->note_caller(world, out);
}

void device_restore_caller(enum device_kind kind, const struct device_caller *caller)
{
    const struct device_ops *ops = find_ops(kind);
    if (ops && ops->restore_caller)
        ops->restore_caller(caller);
}

/* Streams that share a queue of the GPU wait for each other, and there are 8 unless one asks for more. NCCL connects
   ranks at their first collective, and that call then waits for the others, unless it is told to do it before. */
int device_set_environment(void)
{
    static const char *const settings[][2] = {{"CUDA_DEVICE_MAX_CONNECTIONS", "32"},
                                              {"NCCL_RUNTIME_CONNECT", "0"}};
    int set = 0;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        if (getenv(settings[i][0]))
            continue;
        if (setenv(settings[i][0], settings[i][1], 0))
            return -1;
        set++;
    }
    return set;
}

const char *device_name(const struct device *device)
{
    return device_kind_key(device->world->config.kind);
}

const char *device_description(const struct device *device)
{
    return device->description;
}

enum status device_wrap(struct device *device, void *address, size_t bytes,
                        struct device_buffer **out, struct diag *diag)
{
    struct device_buffer *buffer = calloc(1, device->ops->buffer_size);
    if (!buffer)
        return diag_no_memory(diag);
    *buffer = (struct device_buffer){
        .device = device, .memory = MEMORY_DEVICE, .bytes = bytes, .address = address};
    *out = buffer;
    return STATUS_OK;
}

void device_unwrap(struct device_buffer *buffer)
{
    free(buffer);
}

enum status device_alloc(struct device *device, enum device_memory memory, size_t bytes,
                         struct device_buffer **out, struct diag *diag)
{
    return device->ops->alloc(device, memory, bytes, out, diag);
}

enum status device_alloc_beside(struct device *device, size_t bytes, struct device_buffer **out,
                                struct diag *diag)
{
    return device->ops->alloc_beside ? device->ops->alloc_beside(device, bytes, out, diag)
                                     : device_alloc(device, MEMORY_DEVICE, bytes, out, diag);
}

void device_free(struct device_buffer *buffer)
{
    if (buffer)
        buffer->device->ops->free(buffer);
}

void *device_host_pointer(const struct device_buffer *buffer)
{
    return buffer->memory == MEMORY_DEVICE ? NULL : buffer->address;
}

void *device_address(const struct device_buffer *buffer)
{
    return buffer->address;
}

enum status device_stream_open(struct device *device, const char *name, struct device_stream **out,
                               struct diag *diag)
{
    return device->ops->stream_open(device, name, out, diag);
}

void device_stream_close(struct device_stream *stream)
{
    if (stream)
        stream->device->ops->stream_close(stream);
}

void *device_stream_handle(struct device_stream *stream)
{
    const struct device_ops *ops = stream->device->ops;
    return ops->stream_handle ? ops->stream_handle(stream) : NULL;
}

enum status device_event_open(struct device *device, struct device_event **out, struct diag *diag)
{
    return device->ops->event_open(device, out, diag);
}

void device_event_close(struct device_event *event)
{
    if (event)
        event->device->ops->event_close(event);
}

enum status device_comm_open(struct device *device, const char *name, const int *members, int count,
                             struct device_comm **out, struct diag *diag)
{
    bool found = false;
    for (int i = 0; i < count; i++) {
        if (members[i] < 0 || members[i] >= device->world->config.ranks)
            return diag_error(diag, STATUS_INPUT, "communicator %s: no rank %d in a world of %d",
                              name, members[i], device->world->config.ranks);
        if (i > 0 && members[i] <= members[i - 1])
            return diag_error(diag, STATUS_INPUT, "communicator %s: members must ascend", name);
        found = found || members[i] == device->rank;
    }
    if (!found)
        return diag_error(diag, STATUS_INPUT, "communicator %s: rank %d is no member", name,
                          device->rank);
    return device->ops->comm_open(device, name, members, count, out, diag);
}

void device_comm_close(struct device_comm *comm)
{
    if (comm)
        comm->device->ops->comm_close(comm);
}

enum status device_push(struct device_stream *stream, const struct device_op *op,
                        struct stamp *stamp, struct diag *diag)
{
    enum status status = device_check_op(stream->device, op, stream->capture != NULL, diag);
    if (stamp)
        *stamp = (struct stamp){.number = -1};
    return status ? status : stream->device->ops->push(stream, op, stamp, diag);
}

enum status device_record(struct device_stream *stream, struct device_event *event,
                          struct stamp *stamp, struct diag *diag)
{
    return device_push(stream, &(struct device_op){.kind = DEVICE_OP_RECORD, .event = event}, stamp,
                       diag);
}

enum status device_wait(struct device_stream *stream, struct device_event *event,
                        struct stamp *stamp, struct diag *diag)
{
    return device_push(stream, &(struct device_op){.kind = DEVICE_OP_WAIT, .event = event}, stamp,
                       diag);
}

/* A captured operation has not begun: there is nothing to look at. */
static enum status refuse_captured(const struct device *device, struct diag *diag)
{
    return diag_error(diag, STATUS_INPUT, "rank %d: a stream is being captured", device->rank);
}

enum status device_graph_begin(struct device *device, struct device_stream *const *streams,
                               size_t count, struct diag *diag)
{
    if (device->capture)
        return diag_error(diag, STATUS_INPUT, "rank %d: a graph is being captured already",
                          device->rank);
    if (count == 0)
        return diag_error(diag, STATUS_INPUT, "rank %d: a graph of no streams", device->rank);
    for (size_t i = 0; i < count; i++) {
        if (streams[i]->device != device)
            return diag_error(diag, STATUS_INPUT, "rank %d: a graph with a stream of another rank",
                              device->rank);
        for (size_t k = 0; k < i; k++)
            if (streams[k] == streams[i])
                return diag_error(diag, STATUS_INPUT, "rank %d: a graph with stream %s twice",
                                  device->rank, streams[i]->name);
    }
    return device->ops->graph_begin(device, streams, count, diag);
}

enum status device_graph_end(struct device *device, struct device_graph **out, struct diag *diag)
{
    struct lent lent;
    if (!device->capture)
        return device_give_back(&lent,
                                diag_error(lend(&lent, diag), STATUS_INPUT,
                                           "rank %d: no graph is being captured", device->rank));
    return device_give_back(&lent, device->ops->graph_end(device, out, lend(&lent, diag)));
}

enum status device_graph_arm(struct device_graph *graph, int64_t *first, struct diag *diag)
{
    enum status status = graph->device->ops->graph_arm(graph, diag);
    graph->armed = !status;
    if (!status)
        *first = graph->first;
    return status;
}

enum status device_graph_launch(struct device_graph *graph, struct stamp *const *stamps,
                                struct diag *diag)
{
    if (!graph->armed)
        return diag_error(diag, STATUS_INPUT, "rank %d: the graph has not been armed",
                          graph->device->rank);
    if (graph->device->capture)
        return refuse_captured(graph->device, diag);
    graph->armed = false;
    return graph->device->ops->graph_launch(graph, stamps, diag);
}

void device_graph_close(struct device_graph *graph)
{
    if (graph)
        graph->device->ops->graph_close(graph);
}

size_t device_graph_pushes(const struct device_graph *graph)
{
    return graph->pushes;
}

size_t device_graph_stamps(const struct device_graph *graph)
{
    return graph->stamps;
}

enum status device_event_query(struct device_event *event, bool *done, struct diag *diag)
{
    struct lent lent;
    return device_give_back(&lent, event->device->ops->event_query(event, done, lend(&lent, diag)));
}

enum status device_stream_sync(struct device_stream *stream, int64_t deadline_ns, struct diag *diag)
{
    struct lent lent;
    if (stream->capture)
        return device_give_back(&lent, refuse_captured(stream->device, lend(&lent, diag)));
    return device_give_back(
        &lent, stream->device->ops->stream_sync(stream, deadline_ns, lend(&lent, diag)));
}

enum status device_event_sync(struct device_event *event, int64_t deadline_ns, struct diag *diag)
{
    struct lent lent;
    return device_give_back(&lent,
                            event->device->ops->event_sync(event, deadline_ns, lend(&lent, diag)));
}

enum status device_sync(struct device *device, int64_t deadline_ns, struct diag *diag)
{
    struct lent lent;
    if (device->capture)
        return device_give_back(&lent, refuse_captured(device, lend(&lent, diag)));
    return device_give_back(&lent, device->ops->sync(device, deadline_ns, lend(&lent, diag)));
}

enum status device_collect(struct device *device, struct diag *diag)
{
    struct lent lent;
    return device_give_back(&lent, device->ops->collect(device, lend(&lent, diag)));
}

enum status device_inject(struct device *device, int64_t number, enum status status,
                          struct diag *diag)
{
    struct lent lent;
    struct diag *told = lend(&lent, diag);
    if (number < 0 || status == STATUS_OK)
        return device_give_back(&lent,
                                diag_error(told, STATUS_INPUT,
                                           "an injected failure needs an operation number and a "
                                           "status that is one"));
    return device_give_back(&lent, device->ops->inject(device, number, status, told));
}
