/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data.c - the memory of a run: buffers, host memory, operands, and what is left in them at the end.
 *
 * A buffer of the plan is device memory; one of scope iteration has as many instances as iterations
 * can be in flight. What an operation needs and no buffer of the plan stands for lies in memory of its
 * stream. What operations do to all this is in work.c.
 */
#include "run.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert_index.h"
#include "base/sort.h"

enum {
    DEFAULT_BYTES = 4096,
    HOST_MAX_DIM = 1024,        /* of a gemm on the host device */
    HOST_MAX_ELEMENTS = 4 << 20 /* of an axpy, a gather */
};

/* ---- reads and writes ------------------------------------------------------------------------ */

int data_access(const struct run *run, const struct op *op, bool write, int k)
{
    const struct program *p = run->program;
    for (int i = 0; i < op->access_count; i++) {
        const struct access *access = &p->accesses[op->access_first + i];
        if (access->write == write && k-- == 0)
            return access->buffer;
    }
    return -1;
}

struct device_ref data_buffer(const struct run *run, int buffer, int64_t iteration)
{
    const struct run_buffer *of = &run->buffers[buffer];
    assert(buffer >= 0 && of->count > 0 && iteration >= 0);
    return (struct device_ref){of->instances[iteration % of->count], 0};
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* The buffers of a program that uses the library are its own: they have the size it wants. */
static bool cuts_buffers(const struct run *run)
{
    return run->config.device == DEVICE_KIND_HOST && !run_is_driven(run);
}

static int64_t cap_bytes(const struct run *run, int64_t bytes)
{
    return cuts_buffers(run) ? min_i64(bytes, RUNTIME_HOST_BUFFER_BYTES) : bytes;
}

/* Cut a kernel down to what the host device can bear, and to types it computes in. */
static void fit_work(const struct run *run, struct work *work)
{
    if (work->dtype != DTYPE_F64)
        work->dtype = DTYPE_F32;
    if (run->config.device != DEVICE_KIND_HOST)
        return;
    work->m = min_i64(work->m, HOST_MAX_DIM);
    work->n = min_i64(work->n, HOST_MAX_DIM);
    work->k = min_i64(work->k, HOST_MAX_DIM);
    work->elements = min_i64(work->elements, HOST_MAX_ELEMENTS);
    if (work->dim > 0)
        work->rows = min_i64(work->rows, max_i64(1, HOST_MAX_ELEMENTS / work->dim));
}

static bool data_same_work(const struct work *a, const struct work *b)
{
    return a->m == b->m && a->n == b->n && a->k == b->k && a->elements == b->elements &&
           a->rows == b->rows;
}

/* The bytes of one part of a group. The machine takes 0 for "any": then the other side's count. */
static int64_t wanted_bytes(const struct program *p, const struct part *part, bool all_zero)
{
    int64_t bytes = part->bytes;
    for (size_t i = 0; part->bytes == 0 && !all_zero && i < p->part_count; i++)
        if (p->parts[i].channel == part->channel && p->parts[i].tag == part->tag)
            bytes = max_i64(bytes, p->parts[i].bytes);
    return bytes;
}

static int members(const struct run *run, const struct op *op)
{
    return run->program->comms[op->comm].count;
}

static int64_t moved_bytes(const struct run *run, const struct op *op)
{
    int64_t bytes = op->given->bytes;
    int buffer = data_access(run, op, op->given->work->direction == DIRECTION_H2D, 0);
    if (bytes == 0 && op->kind == OP_COPY && buffer >= 0)
        bytes = run->program->buffers[buffer].bytes;
    bytes = bytes ? cap_bytes(run, bytes) : DEFAULT_BYTES;
    if (op->kind == OP_COLLECTIVE)
        bytes = device_collective_round(op->given->work->collective, bytes, members(run, op));
    return bytes;
}

struct needs data_needs(const struct run *run, const struct op *op)
{
    const struct run_op *of = &run->ops[op - run->program->ops];
    const struct work *work = &of->work;
    int64_t size = dtype_bytes(work->dtype);
    if (op->kind == OP_COPY)
        return (struct needs){{work->direction == DIRECTION_H2D ? 0 : of->bytes, 0,
                               work->direction == DIRECTION_D2H ? 0 : of->bytes}};
    if (op->kind == OP_COLLECTIVE)
        return (struct needs){
            {device_collective_send_bytes(work->collective, of->bytes, members(run, op)), 0,
             device_collective_recv_bytes(work->collective, of->bytes, members(run, op))}};
    if (op->kind == OP_GROUP) {
        struct needs needs = {{0}};
        for (int k = 0; k < op->part_count; k++) {
            int part = op->part_first + k;
            needs.bytes[run->program->parts[part].send ? 0 : 2] +=
                data_align(run->part_bytes[part]);
        }
        return needs;
    }
    switch (op->kind == OP_LAUNCH ? work->kind : WORK_NONE) {
    case WORK_GEMM:
        return (struct needs){
            {work->m * work->k * size, work->k * work->n * size, work->m * work->n * size}};
    case WORK_GATHER:
        return (struct needs){
            {work->rows * work->dim * size, work->rows * 4, work->rows * work->dim * size}};
    case WORK_AXPY: return (struct needs){{work->elements * 4, 0, work->elements * 4}};
    default: return (struct needs){{0}};
    }
}

/* ---- open ------------------------------------------------------------------------------------ */

/* A run gives CPU work its time and nothing else, on each device; a function of the program does what it does. */
static void note_cpu_accesses(const struct run *run, struct diag *diag)
{
    const struct program *p = run->program;
    size_t count = 0;
    for (size_t i = 0; i < p->op_count && !run_is_driven(run); i++)
        count += op_is_cpu_work(p->ops[i].kind) && p->ops[i].access_count > 0;
    if (count > 0)
        diag_note(diag,
                  "CPU work takes its time and touches no memory: what %zu operation%s read%s and "
                  "write%s is verified, but not run",
                  count, count == 1 ? "" : "s", count == 1 ? "s" : "", count == 1 ? "s" : "");
}

static void prepare_ops(struct run *run, struct diag *diag)
{
    const struct program *p = run->program;
    bool cut = false, other_type = false;
    for (size_t i = 0; i < p->op_count; i++) {
        const struct op *op = &p->ops[i];
        run->ops[i].work = *op->given->work;
        if (op->kind == OP_LAUNCH)
            fit_work(run, &run->ops[i].work);
        cut = cut || !data_same_work(&run->ops[i].work, op->given->work);
        other_type = other_type || run->ops[i].work.dtype != op->given->work->dtype;
        if (op->kind == OP_COPY || op->kind == OP_COLLECTIVE)
            run->ops[i].bytes = moved_bytes(run, op);
    }
    if (!run_is_timed(run))
        return; /* the reference of a run that has said it */
    if (cuts_buffers(run)) {
        for (int b = 0; b < p->buffer_count / p->ranks; b++)
            if (p->buffers[b].bytes > RUNTIME_HOST_BUFFER_BYTES)
                diag_note(diag, "buffer %s: the host device uses %d MiB of its %lld",
                          p->buffers[b].name, RUNTIME_HOST_BUFFER_BYTES >> 20,
                          (long long)(p->buffers[b].bytes >> 20));
    }
    if (cut)
        diag_note(diag, "kernels are cut to sizes that the host device can bear");
    if (other_type)
        diag_note(diag, "f16 and bf16: kernels compute in f32");
    note_cpu_accesses(run, diag);
}

/* A buffer has room for what is said of it and for all that is moved through it. */
static void size_buffers(struct run *run)
{
    const struct program *p = run->program;
    for (int b = 0; b < p->buffer_count; b++) {
        int64_t bytes = p->buffers[b].bytes ? cap_bytes(run, p->buffers[b].bytes) : DEFAULT_BYTES;
        run->buffers[b].bytes = (size_t)max_i64(bytes, DIGEST_BYTES);
    }
    for (size_t i = 0; i < p->op_count; i++) {
        const struct op *op = &p->ops[i];
        struct needs needs = data_needs(run, op);
        for (int end = 0; end < 2 && op->kind != OP_LAUNCH; end++) {
            int buffer = data_access(run, op, end, 0);
            size_t bytes = (size_t)needs.bytes[2 * end];
            if (buffer >= 0 && run->buffers[buffer].bytes < bytes)
                run->buffers[buffer].bytes = bytes;
        }
    }
}

static enum status alloc_all(struct device *device, enum device_memory memory, size_t bytes,
                             int count, struct device_buffer ***out, int *out_count,
                             struct diag *diag)
{
    *out = calloc((size_t)count, sizeof(struct device_buffer *));
    if (!*out)
        return diag_no_memory(diag);
    *out_count = count;
    enum status status = STATUS_OK;
    for (int i = 0; i < count && !status; i++)
        status = device_alloc(device, memory, bytes, &(*out)[i], diag);
    return status;
}

static bool data_is_used(const struct run *run, int buffer)
{
    for (size_t i = 0; i < run->program->access_count; i++)
        if (run->program->accesses[i].buffer == buffer)
            return true;
    return false;
}

static enum status open_buffers(struct run *run, struct diag *diag)
{
    const struct program *p = run->program;
    enum status status = STATUS_OK;
    for (int b = 0; b < p->buffer_count && !status; b++) {
        struct run_buffer *buffer = &run->buffers[b];
        int count = p->buffers[b].period ? p->buffers[b].period : run->config.instances;
        if (data_is_used(run, b) && run_has(run, p->buffers[b].rank))
            status = alloc_all(run->ranks[p->buffers[b].rank].device, MEMORY_DEVICE, buffer->bytes,
                               count, &buffer->instances, &buffer->count, diag);
    }
    return status;
}

static enum status open_staging(struct run *run, struct diag *diag)
{
    const struct program *p = run->program;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < p->op_count && !status; i++) {
        const struct op *op = &p->ops[i];
        struct run_op *of = &run->ops[i];
        if (op->kind != OP_COPY || op->given->work->direction == DIRECTION_D2D ||
            !run_has(run, p->streams[op->stream].rank))
            continue;
        /* The program has the blocking part of a pageable copy as an operation of its own. */
        bool pageable = op->given->work->pageable && run->config.device == DEVICE_KIND_CUDA;
        status = alloc_all(run->ranks[p->streams[op->stream].rank].device,
                           pageable ? MEMORY_PAGEABLE : MEMORY_PINNED, (size_t)of->bytes,
                           run->config.instances, &of->staging, &of->staging_count, diag);
    }
    return status;
}

/* Operands are numbers, not zeros, which some devices multiply faster. */
static enum status fill_operands(struct run *run, int stream, size_t bytes, struct diag *diag)
{
    struct device_stream *handle = run->streams[stream].handle;
    struct device_op op = {.kind = DEVICE_OP_FILL,
                           .fill = {.out = {run->streams[stream].operands, 0},
                                    .elements = (int64_t)(bytes / sizeof(float)),
                                    .dtype = DTYPE_F32,
                                    .value = 0.25}};
    enum status status = device_push(handle, &op, NULL, diag);
    return status ? status : device_stream_sync(handle, DEVICE_FOREVER, diag);
}

static enum status open_stream_memory(struct run *run, int stream, struct diag *diag)
{
    const struct program *p = run->program;
    ASSERT_INDEX(stream, p->stream_count);
    struct device *device = run->ranks[p->streams[stream].rank].device;
    int64_t operands = 0, results = DIGEST_BYTES;
    for (size_t i = 0; i < p->op_count; i++) {
        if (p->ops[i].stream != stream)
            continue;
        struct needs needs = data_needs(run, &p->ops[i]);
        operands = max_i64(operands, data_align(needs.bytes[0]) + data_align(needs.bytes[1]));
        results = max_i64(results, data_align(needs.bytes[2]));
    }
    enum status status =
        device_alloc(device, MEMORY_DEVICE, (size_t)operands, &run->streams[stream].operands, diag);
    if (!status)
        status = device_alloc(device, MEMORY_DEVICE, (size_t)results, &run->streams[stream].results,
                              diag);
    return status ? status : fill_operands(run, stream, (size_t)operands, diag);
}

enum status data_open(struct run *run, struct diag *diag)
{
    const struct program *p = run->program;
    run->ops = calloc(p->op_count + 1, sizeof *run->ops);
    run->buffers = calloc((size_t)p->buffer_count + 1, sizeof *run->buffers);
    run->part_bytes = calloc(p->part_count + 1, sizeof *run->part_bytes);
    if (!run->ops || !run->buffers || !run->part_bytes)
        return diag_no_memory(diag);
    if (run->config.instances == 0)
        run->config.instances = p->tasks == 0                               ? 1
                                : p->plan->pipeline.retire == RETIRE_DEVICE ? p->depth
                                                                            : p->most_in_flight;
    bool all_zero = true;
    for (size_t i = 0; i < p->part_count; i++)
        all_zero = all_zero && p->parts[i].bytes == 0;
    for (size_t i = 0; i < p->part_count; i++) {
        int64_t bytes = wanted_bytes(p, &p->parts[i], all_zero);
        run->part_bytes[i] = bytes ? cap_bytes(run, bytes) : DIGEST_BYTES;
    }
    prepare_ops(run, diag);
    size_buffers(run);
    enum status status = open_buffers(run, diag);
    if (!status)
        status = open_staging(run, diag);
    for (int s = 0; s < p->stream_count && !status; s++)
        if (run_has(run, p->streams[s].rank))
            status = open_stream_memory(run, s, diag);
    for (int rank = run_first_rank(run); rank < run_last_rank(run) && !status; rank++)
        status = device_alloc(run->ranks[rank].device, MEMORY_DEVICE,
                              (size_t)p->tasks * DIGEST_BYTES, &run->ranks[rank].digest, diag);
    return status;
}

static void free_all(struct device_buffer **buffers, int count)
{
    for (int i = 0; i < count; i++)
        device_free(buffers[i]);
    free(buffers);
}

void data_close(struct run *run)
{
    const struct program *p = run->program;
    for (int b = 0; run->buffers && b < p->buffer_count; b++)
        free_all(run->buffers[b].instances, run->buffers[b].count);
    for (size_t i = 0; run->ops && i < p->op_count; i++)
        free_all(run->ops[i].staging, run->ops[i].staging_count);
    for (int s = 0; run->streams && s < p->stream_count; s++) {
        device_free(run->streams[s].operands);
        device_free(run->streams[s].results);
    }
    for (int rank = 0; run->ranks && rank < p->ranks; rank++)
        device_free(run->ranks[rank].digest);
    free(run->buffers);
    free(run->part_bytes);
    free(run->ops);
}

/* ---- results --------------------------------------------------------------------------------- */

static int stream_of_rank(const struct run *run, int rank)
{
    for (int s = 0; s < run->program->stream_count; s++)
        if (run->program->streams[s].rank == rank)
            return s;
    return -1;
}

/* Copy the start of a device buffer to the host. */
enum status data_fetch(struct run *run, int rank, struct device_ref from, size_t bytes, float *to,
                       struct diag *diag)
{
    struct device_buffer *host = NULL;
    int stream = stream_of_rank(run, rank);
    if (bytes == 0 || stream < 0)
        return STATUS_OK;
    struct device_stream *handle = run->streams[stream].handle;
    enum status status = device_alloc(run->ranks[rank].device, MEMORY_PINNED, bytes, &host, diag);
    if (status)
        return status;
    struct device_op op = {.kind = DEVICE_OP_COPY,
                           .copy = {DIRECTION_D2H, from, {host, 0}, (int64_t)bytes}};
    status = device_push(handle, &op, NULL, diag);
    if (!status)
        status = device_stream_sync(handle, DEVICE_FOREVER, diag);
    if (!status)
        memcpy(to, device_host_pointer(host), bytes);
    device_free(host);
    return status;
}

static enum status fetch_buffer(struct run *run, int buffer, float *to, struct diag *diag)
{
    ASSERT_INDEX(buffer, run->program->buffer_count);
    int rank = run->program->buffers[buffer].rank;
    int64_t last = run->program->tasks ? run->ranks[rank].end - 1 : 0;
    if (!run_has(run, rank) || run->buffers[buffer].count == 0 || last < 0)
        return STATUS_OK;
    return data_fetch(run, rank, data_buffer(run, buffer, last), DIGEST_BYTES, to, diag);
}

enum status data_results(struct run *run, struct results *out, struct diag *diag)
{
    const struct program *p = run->program;
    size_t digests = (size_t)(p->ranks * p->tasks), buffers = (size_t)p->buffer_count;
    float *floats = calloc((digests + buffers) * DIGEST_FLOATS + 1, sizeof *floats), *to = floats;
    if (!floats)
        return diag_no_memory(diag);
    enum status status = STATUS_OK;
    for (int rank = 0; rank < p->ranks && !status; rank++) {
        size_t count = (size_t)p->tasks * DIGEST_FLOATS;
        if (run_has(run, rank))
            status = data_fetch(run, rank, (struct device_ref){run->ranks[rank].digest, 0},
                                count * sizeof *floats, to, diag);
        to += count;
    }
    for (int b = 0; b < p->buffer_count && !status; b++, to += DIGEST_FLOATS)
        status = fetch_buffer(run, b, to, diag);
    if (status) {
        free(floats);
        return status;
    }
    *out = (struct results){floats, digests, buffers};
    return STATUS_OK;
}
