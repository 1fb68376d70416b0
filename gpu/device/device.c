/* device.c - what all devices have in common: arguments are checked here, once; see device.h. */
#include "device_impl.h"
#include "net/rendezvous.h"

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

/* ---- sizes of collectives -------------------------------------------------------------------- */

static bool has_blocks(enum collective_kind kind)
{
    return kind == COLLECTIVE_ALL_TO_ALL || kind == COLLECTIVE_ALL_GATHER ||
           kind == COLLECTIVE_REDUCE_SCATTER;
}

/* What the bytes of a collective must be a multiple of. */
static int64_t granule(enum collective_kind kind, int members)
{
    if (has_blocks(kind))
        return (int64_t)sizeof(float) * members;
    return kind == COLLECTIVE_ALL_REDUCE ? (int64_t)sizeof(float) : 1;
}

int64_t device_collective_round(enum collective_kind kind, int64_t bytes, int members)
{
    int64_t unit = granule(kind, members), over = bytes % unit;
    return over == 0 ? bytes : bytes - over + unit;
}

int64_t device_collective_send_bytes(enum collective_kind kind, int64_t bytes, int members)
{
    if (kind == COLLECTIVE_BARRIER)
        return 0;
    return kind == COLLECTIVE_ALL_GATHER ? bytes / members : bytes;
}

int64_t device_collective_recv_bytes(enum collective_kind kind, int64_t bytes, int members)
{
    if (kind == COLLECTIVE_BARRIER)
        return 0;
    return kind == COLLECTIVE_REDUCE_SCATTER ? bytes / members : bytes;
}

/* ---- checking one operation ------------------------------------------------------------------ */

/* The check of one pushed operation: its stream, the operation, the diag for messages. */
struct check {
    const struct device *device;
    const struct device_op *op;
    struct diag *diag;
};

static enum status refuse(const struct check *check, const char *what)
{
    char text[OP_TEXT];
    return diag_error(check->diag, STATUS_INPUT, "rank %d, %s: %s", check->device->rank,
                      device_op_text(check->op, text), what);
}

/* `count` elements of `size` bytes lie at `ref`, in memory of the right kind. */
static enum status check_ref(const struct check *check, const char *name, struct device_ref ref,
                             bool host, int64_t count, int64_t size)
{
    char text[OP_TEXT];
    int64_t bytes;
    if (count < 0 || size < 0 || __builtin_mul_overflow(count, size, &bytes))
        return refuse(check, "a size is negative or too large");
    if (bytes == 0)
        return STATUS_OK;
    const struct device_buffer *buffer = ref.buffer;
    if (!buffer || buffer->device != check->device)
        return diag_error(check->diag, STATUS_INPUT, "rank %d, %s: %s is %s", check->device->rank,
                          device_op_text(check->op, text), name,
                          buffer ? "a buffer of another rank" : "missing");
    if ((buffer->memory != MEMORY_DEVICE) != host)
        return diag_error(check->diag, STATUS_INPUT, "rank %d, %s: %s must be %s memory",
                          check->device->rank, device_op_text(check->op, text), name,
                          host ? "host" : "device");
    if (ref.offset > buffer->bytes || (uint64_t)bytes > buffer->bytes - ref.offset)
        return diag_error(check->diag, STATUS_INPUT,
                          "rank %d, %s: %s needs %lld bytes at offset %zu of a buffer of %zu",
                          check->device->rank, device_op_text(check->op, text), name,
                          (long long)bytes, ref.offset, buffer->bytes);
    return STATUS_OK;
}

static bool overlap(struct device_ref a, int64_t a_bytes, struct device_ref b, int64_t b_bytes)
{
    return a.buffer && a.buffer == b.buffer && a.offset < b.offset + (size_t)b_bytes &&
           b.offset < a.offset + (size_t)a_bytes;
}

/* Likewise for a matrix of `rows` times `columns` numbers in device memory. */
static enum status check_matrix(const struct check *check, const char *name, struct device_ref ref,
                                int64_t rows, int64_t columns, enum dtype dtype)
{
    int64_t row_bytes;
    if (rows < 0 || columns < 0 ||
        __builtin_mul_overflow(columns, (int64_t)dtype_bytes(dtype), &row_bytes))
        return refuse(check, "a size is negative or too large");
    if (ref.offset % (size_t)dtype_bytes(dtype) != 0)
        return refuse(check, "an offset does not fall on an element");
    return check_ref(check, name, ref, false, rows, row_bytes);
}

static enum status check_arithmetic(const struct check *check, enum dtype dtype)
{
    if (dtype == DTYPE_F32 || dtype == DTYPE_F64)
        return STATUS_OK;
    char text[OP_TEXT];
    return diag_error(check->diag, STATUS_INPUT,
                      "rank %d, %s: devices compute in f32 and f64, not in %s", check->device->rank,
                      device_op_text(check->op, text), dtype_key(dtype));
}

static enum status check_gemm(const struct check *check, const struct device_gemm *gemm)
{
    enum status status = check_arithmetic(check, gemm->dtype);
    if (!status)
        status = check_matrix(check, "a", gemm->a, gemm->m, gemm->k, gemm->dtype);
    if (!status)
        status = check_matrix(check, "b", gemm->b, gemm->k, gemm->n, gemm->dtype);
    if (!status)
        status = check_matrix(check, "c", gemm->c, gemm->m, gemm->n, gemm->dtype);
    if (status)
        return status;
    int64_t size = dtype_bytes(gemm->dtype), c_bytes = gemm->m * gemm->n * size;
    if (overlap(gemm->c, c_bytes, gemm->a, gemm->m * gemm->k * size) ||
        overlap(gemm->c, c_bytes, gemm->b, gemm->k * gemm->n * size))
        return refuse(check, "the result overlaps an operand");
    return STATUS_OK;
}

static enum status check_gather(const struct check *check, const struct device_gather *gather)
{
    if (gather->rows > 0 && (gather->table_rows < 1 || gather->table_rows > UINT32_MAX))
        return refuse(check, "the table must have 1 to 4294967295 rows");
    enum status status =
        check_matrix(check, "table", gather->table, gather->table_rows, gather->dim, gather->dtype);
    if (!status)
        status = check_matrix(check, "index", gather->index, gather->rows, 1, DTYPE_F32);
    if (!status)
        status = check_matrix(check, "out", gather->out, gather->rows, gather->dim, gather->dtype);
    return status;
}

static enum status check_axpy(const struct check *check, const struct device_axpy *axpy)
{
    enum status status = check_matrix(check, "x", axpy->x, axpy->elements, 1, DTYPE_F32);
    return status ? status : check_matrix(check, "y", axpy->y, axpy->elements, 1, DTYPE_F32);
}

static enum status check_fill(const struct check *check, const struct device_fill *fill)
{
    enum status status = check_arithmetic(check, fill->dtype);
    return status ? status : check_matrix(check, "out", fill->out, fill->elements, 1, fill->dtype);
}

static enum status check_copy(const struct check *check, const struct device_copy *copy)
{
    enum status status = check_ref(check, "the source", copy->from,
                                   copy->direction == DIRECTION_H2D, copy->bytes, 1);
    if (!status)
        status = check_ref(check, "the destination", copy->to, copy->direction == DIRECTION_D2H,
                           copy->bytes, 1);
    if (!status && overlap(copy->from, copy->bytes, copy->to, copy->bytes))
        status = refuse(check, "source and destination overlap");
    return status;
}

static enum status check_collective(const struct check *check,
                                    const struct device_collective *collective)
{
    const struct device_comm *comm = collective->comm;
    enum collective_kind kind = collective->kind;
    if (!comm || comm->device != check->device)
        return refuse(check, "no communicator of this rank");
    int64_t unit = granule(kind, comm->count), bytes = collective->bytes;
    if (bytes < 0 || bytes % unit != 0) {
        char text[OP_TEXT];
        return diag_error(check->diag, STATUS_INPUT,
                          "rank %d, %s: %lld bytes, expected a multiple of %lld",
                          check->device->rank, device_op_text(check->op, text), (long long)bytes,
                          (long long)unit);
    }
    if ((kind == COLLECTIVE_ALL_REDUCE || kind == COLLECTIVE_REDUCE_SCATTER) &&
        (collective->send.offset % sizeof(float) != 0 ||
         collective->recv.offset % sizeof(float) != 0))
        return refuse(check, "an offset does not fall on an element");
    bool sends = true;
    if (kind == COLLECTIVE_BROADCAST) {
        if (device_comm_place(comm, collective->root) < 0)
            return refuse(check, "the root is no member of the communicator");
        sends = collective->root == check->device->rank;
    }
    if (kind == COLLECTIVE_ALL_TO_ALL && overlap(collective->send, bytes, collective->recv, bytes))
        return refuse(check, "all_to_all cannot work in place");
    enum status status = STATUS_OK;
    if (sends)
        status = check_ref(check, "the send buffer", collective->send, false,
                           device_collective_send_bytes(kind, bytes, comm->count), 1);
    if (!status)
        status = check_ref(check, "the receive buffer", collective->recv, false,
                           device_collective_recv_bytes(kind, bytes, comm->count), 1);
    return status;
}

/* Sends to this rank itself need a receive in the same group: no other group can bring one. */
static enum status check_self(const struct check *check, const struct device_group *group)
{
    int64_t sends = 0, receives = 0;
    for (size_t i = 0; i < group->count; i++)
        if (group->parts[i].peer == check->device->rank)
            (*(group->parts[i].send ? &sends : &receives))++;
    return sends == receives ? STATUS_OK
                             : refuse(check, "sends to and receives from itself do not pair up");
}

static enum status check_group(const struct check *check, const struct device_group *group)
{
    if (!group->comm || group->comm->device != check->device)
        return refuse(check, "no communicator of this rank");
    for (size_t i = 0; i < group->count; i++) {
        const struct device_p2p *part = &group->parts[i];
        if (device_comm_place(group->comm, part->peer) < 0)
            return refuse(check, "a peer is no member of the communicator");
        enum status status = check_ref(check, part->send ? "a send buffer" : "a receive buffer",
                                       part->data, false, part->bytes, 1);
        if (status)
            return status;
    }
    return check_self(check, group);
}

static enum status check_event(const struct check *check)
{
    return check->op->event && check->op->event->device == check->device
               ? STATUS_OK
               : refuse(check, "no event of this rank");
}

/* What a captured stream takes besides: nothing that waits now, or for an order of steps. */
static enum status check_captured(const struct check *check)
{
    const struct device_op *op = check->op;
    if (op->turn.gate)
        return refuse(check, "has its turn, which a graph cannot keep");
    if (op->kind == DEVICE_OP_COPY && op->copy.bytes > 0 &&
        (op->copy.from.buffer->memory == MEMORY_PAGEABLE ||
         op->copy.to.buffer->memory == MEMORY_PAGEABLE))
        return refuse(check, "copies pageable memory, for which a graph cannot wait");
    return STATUS_OK;
}

static enum status check_op(const struct check *check)
{
    const struct device_op *op = check->op;
    int slots = check->device->world->config.sm_slots;
    if (op->sm < 0 || op->time_ns < 0)
        return refuse(check, "negative slots or time");
    if (slots > 0 && op->sm > slots)
        return refuse(check, "needs more residency slots than a rank has");
    switch (op->kind) {
    case DEVICE_OP_SPIN: return STATUS_OK;
    case DEVICE_OP_FILL: return check_fill(check, &op->fill);
    case DEVICE_OP_GEMM: return check_gemm(check, &op->gemm);
    case DEVICE_OP_GATHER: return check_gather(check, &op->gather);
    case DEVICE_OP_AXPY: return check_axpy(check, &op->axpy);
    case DEVICE_OP_COPY: return check_copy(check, &op->copy);
    case DEVICE_OP_COLLECTIVE: return check_collective(check, &op->collective);
    case DEVICE_OP_GROUP: return check_group(check, &op->group);
    case DEVICE_OP_RECORD:
    case DEVICE_OP_WAIT: return check_event(check);
    case DEVICE_OP_CALLBACK:
        return op->callback.run ? STATUS_OK : refuse(check, "no function to call");
    }
    return refuse(check, "unknown kind of operation");
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

static enum status give_back(struct lent *lent, enum status status)
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
        status = rendezvous_barrier(whole.rendezvous, RENDEZVOUS_FOREVER, diag);
    }
    if (status)
        device_world_close(world);
    else
        *out = world;
    return status;
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
    return give_back(&lent, world->ops->world_status(world, lend(&lent, diag)));
}

void device_world_explain(struct device_world *world, struct diag *diag)
{
    world->ops->world_explain(world, diag);
}

int64_t device_now(const struct device_world *world)
{
    const struct rendezvous *rendezvous = world->config.rendezvous;
    int64_t now_ns = device_clock_ns(), since_ns = now_ns - world->base_ns;
    return rendezvous ? since_ns + rendezvous_correction_ns(rendezvous, now_ns) : since_ns;
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

const char *device_name(const struct device *device)
{
    return device_kind_key(device->world->config.kind);
}

const char *device_description(const struct device *device)
{
    return device->description;
}

enum status device_alloc(struct device *device, enum device_memory memory, size_t bytes,
                         struct device_buffer **out, struct diag *diag)
{
    return device->ops->alloc(device, memory, bytes, out, diag);
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

size_t device_buffer_bytes(const struct device_buffer *buffer)
{
    return buffer->bytes;
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

const char *device_stream_name(const struct device_stream *stream)
{
    return stream->name;
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
    enum status status =
        check_op(&(struct check){.device = stream->device, .op = op, .diag = diag});
    if (!status && stream->capture)
        status = check_captured(&(struct check){.device = stream->device, .op = op, .diag = diag});
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

/* What is captured has not begun, so there is nothing to look at. */
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
        return give_back(&lent, diag_error(lend(&lent, diag), STATUS_INPUT,
                                           "rank %d: no graph is being captured", device->rank));
    return give_back(&lent, device->ops->graph_end(device, out, lend(&lent, diag)));
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

enum status device_stream_query(struct device_stream *stream, bool *done, struct diag *diag)
{
    struct lent lent;
    if (stream->capture)
        return give_back(&lent, refuse_captured(stream->device, lend(&lent, diag)));
    return give_back(&lent, stream->device->ops->stream_query(stream, done, lend(&lent, diag)));
}

enum status device_event_query(struct device_event *event, bool *done, struct diag *diag)
{
    struct lent lent;
    return give_back(&lent, event->device->ops->event_query(event, done, lend(&lent, diag)));
}

enum status device_stream_sync(struct device_stream *stream, int64_t deadline_ns, struct diag *diag)
{
    struct lent lent;
    if (stream->capture)
        return give_back(&lent, refuse_captured(stream->device, lend(&lent, diag)));
    return give_back(&lent,
                     stream->device->ops->stream_sync(stream, deadline_ns, lend(&lent, diag)));
}

enum status device_event_sync(struct device_event *event, int64_t deadline_ns, struct diag *diag)
{
    struct lent lent;
    return give_back(&lent, event->device->ops->event_sync(event, deadline_ns, lend(&lent, diag)));
}

enum status device_sync(struct device *device, int64_t deadline_ns, struct diag *diag)
{
    struct lent lent;
    if (device->capture)
        return give_back(&lent, refuse_captured(device, lend(&lent, diag)));
    return give_back(&lent, device->ops->sync(device, deadline_ns, lend(&lent, diag)));
}

enum status device_collect(struct device *device, struct diag *diag)
{
    struct lent lent;
    return give_back(&lent, device->ops->collect(device, lend(&lent, diag)));
}

enum status device_inject(struct device *device, int64_t number, enum status status,
                          struct diag *diag)
{
    struct lent lent;
    struct diag *told = lend(&lent, diag);
    if (number < 0 || status == STATUS_OK)
        return give_back(&lent, diag_error(told, STATUS_INPUT,
                                           "an injected failure needs an operation number and a "
                                           "status that is one"));
    return give_back(&lent, device->ops->inject(device, number, status, told));
}
