/* SPDX-License-Identifier: Apache-2.0 */
/* device_check.c - the arguments of pushed operations are checked here, once for all devices. */
#include "device_impl.h"

/* ---- sizes of collectives -------------------------------------------------------------------- */

static bool has_blocks(enum collective_kind kind)
{
    return kind == COLLECTIVE_ALL_TO_ALL || kind == COLLECTIVE_ALL_GATHER ||
           kind == COLLECTIVE_REDUCE_SCATTER;
}

/* The number that divides the bytes of a collective. */
static int64_t granule(enum collective_kind kind, enum number number, int members)
{
    int64_t size = kind == COLLECTIVE_ALL_REDUCE || kind == COLLECTIVE_REDUCE_SCATTER
                       ? number_bytes(number)
                       : 1;
    return has_blocks(kind) ? size * members : size;
}

int64_t device_collective_round(enum collective_kind kind, int64_t bytes, int members)
{
    int64_t unit = granule(kind, NUMBER_F32, members), over;
    if (has_blocks(kind)) /* whole numbers in each, whether or not they are added up */
        unit = (int64_t)sizeof(float) * members;
    over = bytes % unit;
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

static enum status device_check_refuse(const struct check *check, const char *what)
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
        return device_check_refuse(check, "a size is negative or too large");
    if (bytes == 0)
        return STATUS_OK;
    const struct device_buffer *buffer = ref.buffer;
    if (!buffer || buffer->device->world != check->device->world)
        return diag_error(check->diag, STATUS_INPUT, "rank %d, %s: %s is %s", check->device->rank,
                          device_op_text(check->op, text), name,
                          buffer ? "a buffer of another world" : "missing");
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

static bool device_check_overlap(struct device_ref a, int64_t a_bytes, struct device_ref b,
                                 int64_t b_bytes)
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
        return device_check_refuse(check, "a size is negative or too large");
    if (ref.offset % (size_t)dtype_bytes(dtype) != 0)
        return device_check_refuse(check, "an offset does not fall on an element");
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
    if (device_check_overlap(gemm->c, c_bytes, gemm->a, gemm->m * gemm->k * size) ||
        device_check_overlap(gemm->c, c_bytes, gemm->b, gemm->k * gemm->n * size))
        return device_check_refuse(check, "the result overlaps an operand");
    return STATUS_OK;
}

static enum status check_gather(const struct check *check, const struct device_gather *gather)
{
    if (gather->rows > 0 && (gather->table_rows < 1 || gather->table_rows > UINT32_MAX))
        return device_check_refuse(check, "the table must have 1 to 4294967295 rows");
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

static enum status check_dense_step(const struct check *check, const struct device_dense_step *step)
{
    static const char *const names[DENSE_OPERANDS] = {"a", "b", "c", "d"};
    int64_t sizes[DENSE_OPERANDS];
    enum status status = STATUS_OK;
    dense_sizes(&step->dense, sizes);
    for (int i = 0; i < DENSE_OPERANDS && !status; i++)
        status = check_matrix(check, names[i], step->refs[i], sizes[i], 1, DTYPE_F32);
    return status;
}

static enum status check_dense(const struct check *check, const struct device_dense *dense)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < dense->count && !status; i++)
        status = check_dense_step(check, &dense->steps[i]);
    return status;
}

static enum status check_fill(const struct check *check, const struct device_fill *fill)
{
    enum status status = check_arithmetic(check, fill->dtype);
    return status ? status : check_matrix(check, "out", fill->out, fill->elements, 1, fill->dtype);
}

static enum status device_check_copy(const struct check *check, const struct device_copy *copy)
{
    enum status status = check_ref(check, "the source", copy->from,
                                   copy->direction == DIRECTION_H2D, copy->bytes, 1);
    if (!status)
        status = check_ref(check, "the destination", copy->to, copy->direction == DIRECTION_D2H,
                           copy->bytes, 1);
    if (!status && device_check_overlap(copy->from, copy->bytes, copy->to, copy->bytes))
        status = device_check_refuse(check, "source and destination overlap");
    return status;
}

/* One side of a collective, in a buffer or in `own` memory of the process. */
static enum status check_side(const struct check *check, const char *name, struct device_ref ref,
                              int64_t bytes, const void *own, size_t own_bytes)
{
    const struct device_collective *what = &check->op->collective;
    if (!ref.buffer && own && !what->tag && bytes >= 0 && (size_t)bytes <= own_bytes &&
        device_comm_takes_own(what->comm, (size_t)what->bytes))
        return STATUS_OK;
    return check_ref(check, name, ref, false, bytes, 1);
}

/* Apart, or in place as with NCCL. */
static bool device_check_may_overlap(const struct device_collective *what, bool sends)
{
    const int count = what->comm->count;
    const size_t own = (size_t)(what->bytes / count) * (size_t)what->comm->me;
    if (!sends || !device_check_overlap(
                      what->send, device_collective_send_bytes(what->kind, what->bytes, count),
                      what->recv, device_collective_recv_bytes(what->kind, what->bytes, count)))
        return true;
    if (what->kind == COLLECTIVE_ALL_GATHER)
        return what->send.offset == what->recv.offset + own;
    if (what->kind == COLLECTIVE_REDUCE_SCATTER)
        return what->recv.offset == what->send.offset + own;
    return what->kind != COLLECTIVE_ALL_TO_ALL && what->send.offset == what->recv.offset;
}

static enum status device_check_collective(const struct check *check,
                                           const struct device_collective *collective)
{
    const struct device_comm *comm = collective->comm;
    enum collective_kind kind = collective->kind;
    if (!comm || comm->device != check->device)
        return device_check_refuse(check, "no communicator of this rank");
    int64_t unit = granule(kind, collective->number, comm->count), bytes = collective->bytes;
    if (bytes < 0 || bytes % unit != 0) {
        char text[OP_TEXT];
        return diag_error(check->diag, STATUS_INPUT,
                          "rank %d, %s: %lld bytes, expected a multiple of %lld",
                          check->device->rank, device_op_text(check->op, text), (long long)bytes,
                          (long long)unit);
    }
    if ((kind == COLLECTIVE_ALL_REDUCE || kind == COLLECTIVE_REDUCE_SCATTER) &&
        (collective->send.offset % (size_t)number_bytes(collective->number) != 0 ||
         collective->recv.offset % (size_t)number_bytes(collective->number) != 0))
        return device_check_refuse(check, "an offset does not fall on an element");
    bool sends = true;
    if (kind == COLLECTIVE_BROADCAST) {
        if (device_comm_place(comm, collective->root) < 0)
            return device_check_refuse(check, "the root is no member of the communicator");
        sends = collective->root == check->device->rank;
    }
    if (!device_check_may_overlap(collective, sends))
        return device_check_refuse(check, "its buffers overlap, and it is not in place");
    enum status status = STATUS_OK;
    if (sends)
        status = check_side(check, "the send buffer", collective->send,
                            device_collective_send_bytes(kind, bytes, comm->count),
                            collective->staging.from, collective->staging.from_bytes);
    if (!status)
        status = check_side(check, "the receive buffer", collective->recv,
                            device_collective_recv_bytes(kind, bytes, comm->count),
                            collective->staging.to, collective->staging.to_bytes);
    return status;
}

static enum status check_group(const struct check *check, const struct device_group *group)
{
    if (!group->comm || group->comm->device != check->device)
        return device_check_refuse(check, "no communicator of this rank");
    for (size_t i = 0; i < group->count; i++) {
        const struct device_p2p *part = &group->parts[i];
        if (device_comm_place(group->comm, part->peer) < 0)
            return device_check_refuse(check, "a peer is no member of the communicator");
        enum status status = check_ref(check, part->send ? "a send buffer" : "a receive buffer",
                                       part->data, false, part->bytes, 1);
        if (status)
            return status;
    }
    /* Sends to this rank itself need a receive in the same group: no other group can bring one. */
    int64_t sends = 0, receives = 0;
    for (size_t i = 0; i < group->count; i++)
        if (group->parts[i].peer == check->device->rank)
            (*(group->parts[i].send ? &sends : &receives))++;
    return sends == receives
               ? STATUS_OK
               : device_check_refuse(check, "sends to and receives from itself do not pair up");
}

static enum status check_event(const struct check *check)
{
    const struct device_event *event = check->op->event;
    if (!event || event->device->world != check->device->world)
        return device_check_refuse(check, "no event of this world");
    return check->op->kind == DEVICE_OP_WAIT || event->device == check->device
               ? STATUS_OK
               : device_check_refuse(check, "no event of this rank");
}

/* A captured stream refuses operations that wait during the push or hold a turn. */
static enum status check_captured(const struct check *check)
{
    const struct device_op *op = check->op;
    if (op->turn.gate)
        return device_check_refuse(check, "has its turn, which a graph cannot keep");
    if (op->kind == DEVICE_OP_DENSE)
        return device_check_refuse(check,
                                   "reads its steps when it starts, which a graph does not keep");
    if (op->kind == DEVICE_OP_COPY && op->copy.bytes > 0 &&
        (op->copy.from.buffer->memory == MEMORY_PAGEABLE ||
         op->copy.to.buffer->memory == MEMORY_PAGEABLE))
        return device_check_refuse(check, "copies pageable memory, for which a graph cannot wait");
    return STATUS_OK;
}

static enum status device_check_kind(const struct check *check)
{
    const struct device_op *op = check->op;
    int slots = check->device->world->config.sm_slots;
    if (op->sm < 0 || op->time_ns < 0)
        return device_check_refuse(check, "negative slots or time");
    if (slots > 0 && op->sm > slots)
        return device_check_refuse(check, "needs more residency slots than a rank has");
    switch (op->kind) {
    case DEVICE_OP_SPIN: return STATUS_OK;
    case DEVICE_OP_FILL: return check_fill(check, &op->fill);
    case DEVICE_OP_GEMM: return check_gemm(check, &op->gemm);
    case DEVICE_OP_GATHER: return check_gather(check, &op->gather);
    case DEVICE_OP_AXPY: return check_axpy(check, &op->axpy);
    case DEVICE_OP_DENSE: return check_dense(check, &op->dense);
    case DEVICE_OP_COPY: return device_check_copy(check, &op->copy);
    case DEVICE_OP_COLLECTIVE: return device_check_collective(check, &op->collective);
    case DEVICE_OP_GROUP: return check_group(check, &op->group);
    case DEVICE_OP_RECORD:
    case DEVICE_OP_WAIT: return check_event(check);
    case DEVICE_OP_CALLBACK:
        return op->callback.run ? STATUS_OK : device_check_refuse(check, "no function to call");
    }
    return device_check_refuse(check, "unknown kind of operation");
}

enum status device_check_op(const struct device *device, const struct device_op *op, bool captured,
                            struct diag *diag)
{
    const struct check check = {.device = device, .op = op, .diag = diag};
    enum status status = device_check_kind(&check);
    return !status && captured ? check_captured(&check) : status;
}
