/*
 * data.c - what operations do to buffers, so that a wrong order shows in the results.
 *
 * A buffer of the plan is device memory; one of scope iteration has as many instances as iterations
 * can be in flight. Its first DIGEST_FLOATS numbers, its *mark*, carry what can be compared. Before
 * the work of a task go, in the same stream,
 *
 *     kernels       w := c(task, iteration) + sum of a_k * r_k     w the first mark written, r_k those
 *                   digest(task) += w                              read; a buffer read and written is
 *                   other marks written := w                       scaled down instead of set
 *     copies,       digest(task) += sum of a_k * r_k
 *     collectives   then the operation itself moves whole buffers, marks included
 *
 * The sums of a_k stay below 1/2, so that numbers neither die out nor explode. A copy from the host
 * brings numbers made from (rank, task, iteration). gemm, gather and axpy compute on scratch memory of
 * their stream: they are there for the time and the heat, their operands say nothing about order.
 */
#include "gpu/run.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"

enum {
    DEFAULT_BYTES = 4096,
    ALIGN_BYTES = 256,
    HOST_MAX_DIM = 1024,         /* of a gemm on the host device */
    HOST_MAX_ELEMENTS = 4 << 20, /* of an axpy, a gather */
    MAX_NEEDS = 3
};

/* ---- numbers --------------------------------------------------------------------------------- */

/* In [0, 1), on a grid coarse enough that sums of a few are exact. */
static float number(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t hash = hash_mix(hash_mix(hash_mix(a + 1) ^ b) ^ c);
    return (float)(hash >> 52) / 4096.0F;
}

/* The weight of the k-th of several numbers read; all together less than 1/2. */
static float weight(const struct op *op, int k)
{
    return 0.25F / (float)(1 << (k < 8 ? k : 8)) *
           (0.5F + number((uint64_t)op->task, 7, (uint64_t)k));
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t align(int64_t bytes)
{
    return (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
}

/* ---- who reads and writes what --------------------------------------------------------------- */

/* The k-th buffer read, or written; -1: there is none. */
static int access_of(const struct run *run, const struct op *op, bool write, int k)
{
    const struct program *p = run->program;
    for (int i = 0; i < op->access_count; i++) {
        const struct access *access = &p->accesses[op->access_first + i];
        if (access->write == write && k-- == 0)
            return access->buffer;
    }
    return -1;
}

static bool is_read(const struct run *run, const struct op *op, int buffer)
{
    for (int k = 0, read; (read = access_of(run, op, false, k)) >= 0; k++)
        if (read == buffer)
            return true;
    return false;
}

static struct device_ref buffer_ref(const struct run *run, int buffer, int64_t iteration)
{
    const struct run_buffer *of = &run->buffers[buffer];
    return (struct device_ref){of->instances[iteration % of->count], 0};
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static int64_t cap_bytes(const struct run *run, int64_t bytes)
{
    return run->config.device == DEVICE_KIND_HOST ? smaller(bytes, RUNTIME_HOST_BUFFER_BYTES)
                                                  : bytes;
}

/* Cut a kernel down to what the host device can bear, and to types it computes in. */
static void fit_work(const struct run *run, struct work *work)
{
    if (work->dtype != DTYPE_F64)
        work->dtype = DTYPE_F32;
    if (run->config.device != DEVICE_KIND_HOST)
        return;
    work->m = smaller(work->m, HOST_MAX_DIM);
    work->n = smaller(work->n, HOST_MAX_DIM);
    work->k = smaller(work->k, HOST_MAX_DIM);
    work->elements = smaller(work->elements, HOST_MAX_ELEMENTS);
    if (work->dim > 0)
        work->rows = smaller(work->rows, larger(1, HOST_MAX_ELEMENTS / work->dim));
}

static bool same_work(const struct work *a, const struct work *b)
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
            bytes = larger(bytes, p->parts[i].bytes);
    return bytes;
}

static void size_parts(struct run *run)
{
    const struct program *p = run->program;
    bool all_zero = true;
    for (size_t i = 0; i < p->part_count; i++)
        all_zero = all_zero && p->parts[i].bytes == 0;
    for (size_t i = 0; i < p->part_count; i++) {
        int64_t bytes = wanted_bytes(p, &p->parts[i], all_zero);
        run->part_bytes[i] = bytes ? cap_bytes(run, bytes) : DIGEST_BYTES;
    }
}

static int members(const struct run *run, const struct op *op)
{
    return run->program->comms[op->comm].count;
}

static int64_t moved_bytes(const struct run *run, const struct op *op)
{
    int64_t bytes = op->bytes;
    int buffer = access_of(run, op, op->work->direction == DIRECTION_H2D, 0);
    if (bytes == 0 && op->kind == OP_COPY && buffer >= 0)
        bytes = run->program->buffers[buffer].bytes;
    bytes = bytes ? cap_bytes(run, bytes) : DEFAULT_BYTES;
    if (op->kind == OP_COLLECTIVE)
        bytes = device_collective_round(op->work->collective, bytes, members(run, op));
    return bytes;
}

/* What an operation needs room for: bytes of what it reads, computes with, writes. */
struct needs {
    int64_t bytes[MAX_NEEDS];
};

static struct needs needs_of(const struct run *run, const struct op *op)
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
            needs.bytes[run->program->parts[part].send ? 0 : 2] += align(run->part_bytes[part]);
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

/* Where the operand lies in the scratch memory of the stream. */
static size_t scratch_at(const struct needs *needs, int operand)
{
    int64_t at = 0;
    for (int i = 0; i < operand; i++)
        at += align(needs->bytes[i]);
    return (size_t)at;
}

/* ---- open ------------------------------------------------------------------------------------ */

static void note_cut(struct run *run, struct diag *diag)
{
    const struct program *p = run->program;
    for (int b = 0; b < p->buffer_count / p->ranks; b++)
        if (p->buffers[b].bytes > RUNTIME_HOST_BUFFER_BYTES)
            diag_note(diag, "buffer %s: the host device uses %d MiB of its %lld",
                      p->buffers[b].name, RUNTIME_HOST_BUFFER_BYTES >> 20,
                      (long long)(p->buffers[b].bytes >> 20));
}

static void prepare_ops(struct run *run, struct diag *diag)
{
    const struct program *p = run->program;
    bool cut = false;
    for (size_t i = 0; i < p->op_count; i++) {
        const struct op *op = &p->ops[i];
        run->ops[i].work = *op->work;
        if (op->kind == OP_LAUNCH)
            fit_work(run, &run->ops[i].work);
        cut = cut || !same_work(&run->ops[i].work, op->work);
        if (op->kind == OP_COPY || op->kind == OP_COLLECTIVE)
            run->ops[i].bytes = moved_bytes(run, op);
    }
    if (!run->config.timed)
        return; /* the reference of a run that has said it */
    if (run->config.device == DEVICE_KIND_HOST)
        note_cut(run, diag);
    if (cut)
        diag_note(diag, "kernels are cut to sizes that the host device can bear");
}

/* A buffer has room for what is said of it and for all that is moved through it. */
static void size_buffers(struct run *run)
{
    const struct program *p = run->program;
    for (int b = 0; b < p->buffer_count; b++) {
        int64_t bytes = p->buffers[b].bytes ? cap_bytes(run, p->buffers[b].bytes) : DEFAULT_BYTES;
        run->buffers[b].bytes = (size_t)larger(bytes, DIGEST_BYTES);
    }
    for (size_t i = 0; i < p->op_count; i++) {
        const struct op *op = &p->ops[i];
        struct needs needs = needs_of(run, op);
        for (int end = 0; end < 2 && op->kind != OP_LAUNCH; end++) {
            int buffer = access_of(run, op, end, 0);
            size_t bytes = (size_t)needs.bytes[2 * end];
            if (buffer >= 0 && run->buffers[buffer].bytes < bytes)
                run->buffers[buffer].bytes = bytes;
        }
    }
}

static int count_instances(const struct program *p)
{
    if (p->tasks == 0)
        return 1;
    return p->plan->pipeline.retire == RETIRE_DEVICE ? p->depth : p->window;
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

static bool is_used(const struct run *run, int buffer)
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
        int count = p->buffers[b].scope == SCOPE_ITERATION ? run->config.instances : 1;
        if (is_used(run, b))
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
        if (op->kind != OP_COPY || op->work->direction == DIRECTION_D2D)
            continue;
        /* The program has the blocking part of a pageable copy as an operation of its own. */
        bool pageable = op->work->pageable && run->config.device == DEVICE_KIND_CUDA;
        status = alloc_all(run->ranks[p->streams[op->stream].rank].device,
                           pageable ? MEMORY_PAGEABLE : MEMORY_PINNED, (size_t)of->bytes,
                           run->config.instances, &of->staging, &of->staging_count, diag);
    }
    return status;
}

/* Scratch memory starts as numbers, not as zeros, which some devices multiply faster. */
static enum status fill_scratch(struct run *run, int stream, size_t bytes, struct diag *diag)
{
    struct device_stream *handle = run->streams[stream].handle;
    struct device_op op = {.kind = DEVICE_OP_FILL,
                           .fill = {.out = {run->streams[stream].scratch, 0},
                                    .elements = (int64_t)(bytes / sizeof(float)),
                                    .dtype = DTYPE_F32,
                                    .value = 0.25}};
    enum status status = device_push(handle, &op, NULL, diag);
    return status ? status : device_stream_sync(handle, DEVICE_FOREVER, diag);
}

static enum status open_scratch(struct run *run, struct diag *diag)
{
    const struct program *p = run->program;
    enum status status = STATUS_OK;
    for (int s = 0; s < p->stream_count && !status; s++) {
        size_t bytes = 0;
        for (size_t i = 0; i < p->op_count; i++) {
            struct needs needs = needs_of(run, &p->ops[i]);
            if (p->ops[i].stream == s && scratch_at(&needs, MAX_NEEDS) > bytes)
                bytes = scratch_at(&needs, MAX_NEEDS);
        }
        status = device_alloc(run->ranks[p->streams[s].rank].device, MEMORY_DEVICE, bytes,
                              &run->streams[s].scratch, diag);
        if (!status)
            status = fill_scratch(run, s, bytes, diag);
    }
    return status;
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
        run->config.instances = count_instances(p);
    size_parts(run);
    prepare_ops(run, diag);
    size_buffers(run);
    enum status status = open_buffers(run, diag);
    if (!status)
        status = open_staging(run, diag);
    if (!status)
        status = open_scratch(run, diag);
    for (int rank = 0; rank < p->ranks && !status; rank++)
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
    for (int s = 0; run->streams && s < p->stream_count; s++)
        device_free(run->streams[s].scratch);
    for (int rank = 0; run->ranks && rank < p->ranks; rank++)
        device_free(run->ranks[rank].digest);
    free(run->buffers);
    free(run->part_bytes);
    free(run->ops);
}

/* ---- what goes before the work --------------------------------------------------------------- */

/* One operation on its way to its stream. */
struct job {
    struct run *run;
    const struct op *op;
    const struct run_op *of;
    int64_t iteration;
    struct diag *diag;
};

static enum status push(const struct job *job, struct device_op op, struct stamp *stamp)
{
    op.label = job->op->name >= 0 ? job->run->program->names.items[job->op->name] : NULL;
    return device_push(job->run->streams[job->op->stream].handle, &op, stamp, job->diag);
}

static enum status add_mark(const struct job *job, struct device_ref x, struct device_ref y,
                            float alpha)
{
    return push(
        job,
        (struct device_op){.kind = DEVICE_OP_AXPY,
                           .axpy = {.x = x, .y = y, .elements = DIGEST_FLOATS, .alpha = alpha}},
        NULL);
}

static enum status set_mark(const struct job *job, struct device_ref mark)
{
    int rank = job->run->program->streams[job->op->stream].rank;
    double value = number((uint64_t)rank, (uint64_t)job->op->task, (uint64_t)job->iteration);
    return push(
        job,
        (struct device_op){.kind = DEVICE_OP_FILL, .fill = {mark, DIGEST_FLOATS, DTYPE_F32, value}},
        NULL);
}

static enum status copy_mark(const struct job *job, struct device_ref from, struct device_ref to)
{
    return push(
        job,
        (struct device_op){.kind = DEVICE_OP_COPY, .copy = {DIRECTION_D2D, from, to, DIGEST_BYTES}},
        NULL);
}

/* sum += a_k * r_k over the buffers read, but for `except`. */
static enum status add_reads(const struct job *job, struct device_ref sum, int except)
{
    enum status status = STATUS_OK;
    for (int k = 0, read; (read = access_of(job->run, job->op, false, k)) >= 0 && !status; k++)
        if (read != except)
            status =
                add_mark(job, buffer_ref(job->run, read, job->iteration), sum, weight(job->op, k));
    return status;
}

static struct device_ref digest_ref(const struct job *job)
{
    int rank = job->run->program->streams[job->op->stream].rank;
    return (struct device_ref){job->run->ranks[rank].digest,
                               (size_t)job->op->task * (size_t)DIGEST_BYTES};
}

/* A kernel: everything read goes into everything written. */
static enum status mix(const struct job *job)
{
    int first = access_of(job->run, job->op, true, 0);
    if (first < 0)
        return add_reads(job, digest_ref(job), -1);
    struct device_ref mark = buffer_ref(job->run, first, job->iteration);
    enum status status =
        is_read(job->run, job->op, first) ? add_mark(job, mark, mark, -0.75F) : set_mark(job, mark);
    if (!status)
        status = add_reads(job, mark, first);
    if (!status)
        status = add_mark(job, mark, digest_ref(job), 1.0F);
    for (int k = 1, written; (written = access_of(job->run, job->op, true, k)) >= 0 && !status; k++)
        if (written != first)
            status = copy_mark(job, mark, buffer_ref(job->run, written, job->iteration));
    return status;
}

static enum status push_marks(const struct job *job)
{
    if (!job->run->config.digest || job->op->access_count == 0)
        return STATUS_OK;
    return job->op->kind == OP_LAUNCH ? mix(job) : add_reads(job, digest_ref(job), -1);
}

/* ---- the work -------------------------------------------------------------------------------- */

/* An operand: the k-th buffer read or written, if there is one, else scratch memory. */
static struct device_ref operand(const struct job *job, bool write, int k, size_t at)
{
    int buffer = access_of(job->run, job->op, write, k);
    if (buffer >= 0)
        return buffer_ref(job->run, buffer, job->iteration);
    return (struct device_ref){job->run->streams[job->op->stream].scratch, at};
}

static struct device_ref scratch(const struct job *job, size_t at)
{
    return (struct device_ref){job->run->streams[job->op->stream].scratch, at};
}

static bool same_place(struct device_ref a, struct device_ref b)
{
    return a.buffer == b.buffer && a.offset == b.offset;
}

static enum status push_kernel(const struct job *job, struct device_op op, struct stamp *stamp)
{
    const struct work *work = &job->of->work;
    struct needs needs = needs_of(job->run, job->op);
    struct device_ref a = scratch(job, 0), b = scratch(job, scratch_at(&needs, 1)),
                      c = scratch(job, scratch_at(&needs, 2));
    op.kind = DEVICE_OP_SPIN;
    switch (job->run->config.timed ? work->kind : WORK_NONE) {
    case WORK_GEMM:
        op.kind = DEVICE_OP_GEMM;
        op.gemm = (struct device_gemm){a, b, c, work->m, work->n, work->k, work->dtype};
        break;
    case WORK_GATHER:
        op.kind = DEVICE_OP_GATHER;
        op.gather = (struct device_gather){.table = a,
                                           .index = b,
                                           .out = c,
                                           .rows = work->rows,
                                           .dim = work->dim,
                                           .table_rows = larger(work->rows, 1),
                                           .dtype = work->dtype};
        break;
    case WORK_AXPY:
        op.kind = DEVICE_OP_AXPY;
        op.axpy = (struct device_axpy){a, c, work->elements, job->iteration % 2 ? -0.5F : 0.5F};
        break;
    default: break;
    }
    return push(job, op, stamp);
}

/* The numbers a copy brings from the host are those of its iteration. */
static struct device_ref staging(const struct job *job)
{
    const struct run_op *of = job->of;
    int rank = job->run->program->streams[job->op->stream].rank;
    struct device_buffer *buffer = of->staging[job->iteration % of->staging_count];
    float *numbers = device_host_pointer(buffer);
    size_t count = (size_t)smaller(of->bytes / (int64_t)sizeof(float), DIGEST_FLOATS);
    for (size_t i = 0; i < count && of->work.direction == DIRECTION_H2D; i++)
        numbers[i] = number((uint64_t)rank << 32 | (uint64_t)(uint32_t)job->op->task,
                            (uint64_t)job->iteration, i);
    return (struct device_ref){buffer, 0};
}

static enum status push_copy(const struct job *job, struct device_op op, struct stamp *stamp)
{
    struct needs needs = needs_of(job->run, job->op);
    enum direction direction = job->of->work.direction;
    op.kind = DEVICE_OP_COPY;
    op.copy = (struct device_copy){.direction = direction, .bytes = job->of->bytes};
    op.copy.from = direction == DIRECTION_H2D ? staging(job) : operand(job, false, 0, 0);
    op.copy.to =
        direction == DIRECTION_D2H ? staging(job) : operand(job, true, 0, scratch_at(&needs, 2));
    if (same_place(op.copy.from, op.copy.to))
        op.copy.to = scratch(job, scratch_at(&needs, 2));
    return push(job, op, stamp);
}

static enum status push_collective(const struct job *job, struct device_op op, struct stamp *stamp)
{
    const struct program *p = job->run->program;
    const struct comm_desc *comm = &p->comms[job->op->comm];
    struct needs needs = needs_of(job->run, job->op);
    op.kind = DEVICE_OP_COLLECTIVE;
    op.collective =
        (struct device_collective){.comm = job->run->comms[comm->first_member + job->op->member],
                                   .kind = job->of->work.collective,
                                   .tag = job->op->name >= 0 ? p->names.items[job->op->name] : NULL,
                                   .root = comm->members[0],
                                   .bytes = job->of->bytes,
                                   .send = operand(job, false, 0, 0),
                                   .recv = operand(job, true, 0, scratch_at(&needs, 2))};
    if (same_place(op.collective.send, op.collective.recv) &&
        job->of->work.collective == COLLECTIVE_ALL_TO_ALL)
        op.collective.recv = scratch(job, scratch_at(&needs, 2));
    return push(job, op, stamp);
}

static int peer_of(const struct program *p, const struct part *part)
{
    return part->send ? p->channels[part->channel].to : p->channels[part->channel].from;
}

/* The first send and the first receive use the buffers of the plan, if it names any. */
static enum status push_group(const struct job *job, struct device_op op, struct stamp *stamp)
{
    const struct program *p = job->run->program;
    const struct comm_desc *comm = &p->comms[job->op->comm];
    struct needs needs = needs_of(job->run, job->op);
    size_t count = (size_t)job->op->part_count, at[2] = {0, scratch_at(&needs, 2)};
    int seen[2] = {0, 0};
    struct device_p2p *parts = calloc(count + 1, sizeof *parts);
    if (!parts)
        return diag_no_memory(job->diag);
    for (size_t i = 0; i < count; i++) {
        const struct part *part = &p->parts[job->op->part_first + (int)i];
        int end = part->send ? 0 : 1;
        int64_t bytes = job->run->part_bytes[job->op->part_first + (int)i];
        parts[i] = (struct device_p2p){.send = part->send,
                                       .peer = peer_of(p, part),
                                       .tag = p->names.items[part->tag],
                                       .bytes = bytes};
        parts[i].data = seen[end]++ ? scratch(job, at[end]) : operand(job, end, 0, at[end]);
        at[end] += (size_t)align(bytes);
    }
    op.kind = DEVICE_OP_GROUP;
    op.group =
        (struct device_group){job->run->comms[comm->first_member + job->op->member], parts, count};
    enum status status = push(job, op, stamp);
    free(parts);
    return status;
}

enum status data_push(struct run *run, const struct op *op, int64_t iteration, struct stamp *stamp,
                      struct diag *diag)
{
    struct job job = {run, op, &run->ops[op - run->program->ops], iteration, diag};
    struct device_op work = {.sm = op->sm, .time_ns = run->config.timed ? op->time_ns : 0};
    enum status status = push_marks(&job);
    if (status)
        return status;
    switch (op->kind) {
    case OP_LAUNCH: return push_kernel(&job, work, stamp);
    case OP_COPY: return push_copy(&job, work, stamp);
    case OP_COLLECTIVE: return push_collective(&job, work, stamp);
    case OP_GROUP: return push_group(&job, work, stamp);
    default: break;
    }
    assert(0 && "an operation without work");
    return STATUS_OK;
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
static enum status fetch(struct run *run, int rank, struct device_ref from, size_t bytes, float *to,
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
    int rank = run->program->buffers[buffer].rank;
    int64_t last = run->program->tasks ? run->ranks[rank].end - 1 : 0;
    if (run->buffers[buffer].count == 0 || last < 0)
        return STATUS_OK;
    return fetch(run, rank, buffer_ref(run, buffer, last), DIGEST_BYTES, to, diag);
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
        status = fetch(run, rank, (struct device_ref){run->ranks[rank].digest, 0},
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
