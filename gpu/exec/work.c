/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work.c - what operations do to buffers, so that a wrong order shows in the results.
 *
 * The first DIGEST_FLOATS numbers of a buffer, its *mark*, carry what can be compared. Before the work
 * of a task go, in the same stream,
 *
 *     kernels       w := c(task, iteration) + sum of a_k * r_k     w the first mark written, r_k those
 *                   digest(task) += w                              read; to a buffer read and written
 *                   other marks written := w                       c is added, and its old mark scaled down
 *     copies,       digest(task) += sum of a_k * r_k
 *     collectives   then the operation itself moves whole buffers, marks included
 *
 * The sums of a_k stay below 1/2, so that numbers neither die out nor explode. A copy from the host
 * brings numbers made from (rank, task, iteration). gemm, gather and axpy compute on memory of their
 * stream: they are there for the time and the heat, their operands say nothing about order.
 *
 * Two numbers depend on the iteration: c(task, iteration), and what a copy brings from the host. In a graph
 * (gpu/exec/graph.h), which is launched for many iterations, c comes by a copy from the host, too, and
 * work_refresh writes both before each launch.
 */
#include "graph.h"
#include "layers.h"
#include "run.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"

/* ---- numbers --------------------------------------------------------------------------------- */

/* In [0, 1), on a grid coarse enough that sums of a few are exact. */
static float work_number(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t hash = hash_mix(hash_mix(hash_mix(a + 1) ^ b) ^ c);
    return (float)(hash >> 52) / 4096.0F;
}

/* The weight of the k-th of several numbers read; all together less than 1/2. */
static float work_weight(const struct op *op, int k)
{
    return 0.25F / (float)(1 << (k < 8 ? k : 8)) *
           (0.5F + work_number((uint64_t)op->task, 7, (uint64_t)k));
}

static bool is_read(const struct run *run, const struct op *op, int buffer)
{
    for (int k = 0, read; (read = data_access(run, op, false, k)) >= 0; k++)
        if (read == buffer)
            return true;
    return false;
}

/* ---- what goes before the work --------------------------------------------------------------- */

/* One operation on its way to its stream. */
struct work_job {
    struct run *run;
    const struct op *op;
    const struct run_op *of;
    int64_t iteration;
    struct diag *diag;
    bool begun; /* something of it is in the stream */
};

/* All that a job pushes starts in one step: the first operation waits for its turn, the operation
   proper, which has it in `op` already, ends it. */
static enum status work_own_push(struct work_job *job, struct device_op op, struct stamp *stamp)
{
    bool proper = op.turn.leaves;
    op.turn = push_turn(job->run, job->op);
    op.turn.enters = !job->begun;
    op.turn.leaves = proper;
    job->begun = true;
    op.label = job->op->name >= 0 ? job->run->program->names.items[job->op->name] : NULL;
    return device_push(job->run->streams[job->op->stream].handle, &op, stamp, job->diag);
}

static enum status add_mark(struct work_job *job, struct device_ref x, struct device_ref y,
                            float alpha)
{
    return work_own_push(
        job,
        (struct device_op){.kind = DEVICE_OP_AXPY,
                           .axpy = {.x = x, .y = y, .elements = DIGEST_FLOATS, .alpha = alpha}},
        NULL);
}

static int work_rank_of(const struct work_job *job)
{
    return job->run->program->streams[job->op->stream].rank;
}

/* c(task, iteration) */
static float constant(const struct work_job *job)
{
    return work_number((uint64_t)work_rank_of(job), (uint64_t)job->op->task,
                       (uint64_t)job->iteration);
}

static enum status set_mark_from_host(struct work_job *job, struct device_ref mark)
{
    struct device_ref from =
        graph_numbers(job->run, work_rank_of(job), job->op->task, job->iteration);
    return work_own_push(job,
                         (struct device_op){.kind = DEVICE_OP_COPY,
                                            .copy = {DIRECTION_H2D, from, mark, DIGEST_BYTES}},
                         NULL);
}

static enum status set_mark(struct work_job *job, struct device_ref mark)
{
    double value = constant(job);
    if (graph_captures(job->run, work_rank_of(job)))
        return set_mark_from_host(job, mark);
    return work_own_push(
        job,
        (struct device_op){.kind = DEVICE_OP_FILL, .fill = {mark, DIGEST_FLOATS, DTYPE_F32, value}},
        NULL);
}

static enum status copy_mark(struct work_job *job, struct device_ref from, struct device_ref to)
{
    return work_own_push(
        job,
        (struct device_op){.kind = DEVICE_OP_COPY, .copy = {DIRECTION_D2D, from, to, DIGEST_BYTES}},
        NULL);
}

/* sum += a_k * r_k over the buffers read, but for `except`. */
static enum status add_reads(struct work_job *job, struct device_ref sum, int except)
{
    enum status status = STATUS_OK;
    for (int k = 0, read; (read = data_access(job->run, job->op, false, k)) >= 0 && !status; k++)
        if (read != except)
            status = add_mark(job, data_buffer(job->run, read, job->iteration), sum,
                              work_weight(job->op, k));
    return status;
}

static struct device_ref digest_ref(const struct work_job *job)
{
    return (struct device_ref){job->run->ranks[work_rank_of(job)].digest,
                               (size_t)job->op->task * (size_t)DIGEST_BYTES};
}

/* A place in the stream's own memory. */
static struct device_ref work_own(const struct work_job *job, bool write, size_t at)
{
    const struct run_stream *stream = &job->run->streams[job->op->stream];
    return (struct device_ref){write ? stream->results : stream->operands, at};
}

/* The operations of host programs have no digest; what they read goes into their stream's own memory. */
static struct device_ref sum_ref(const struct work_job *job)
{
    const struct run_stream *stream = &job->run->streams[job->op->stream];
    return job->op->task >= 0 ? digest_ref(job) : (struct device_ref){stream->results, 0};
}

/* Of an accumulator: what was in it counts, and so does each addition. */
static enum status add_to_mark(struct work_job *job, struct device_ref mark)
{
    const struct device_ref aside = work_own(job, true, 0);
    enum status status = add_mark(job, mark, mark, -0.75F);
    if (!status)
        status = set_mark(job, aside);
    return status ? status : add_mark(job, aside, mark, 1.0F);
}

/* A kernel: everything read goes into everything written. */
static enum status work_mix(struct work_job *job)
{
    int first = data_access(job->run, job->op, true, 0);
    if (first < 0)
        return add_reads(job, sum_ref(job), -1);
    struct device_ref mark = data_buffer(job->run, first, job->iteration);
    enum status status =
        is_read(job->run, job->op, first) ? add_to_mark(job, mark) : set_mark(job, mark);
    if (!status)
        status = add_reads(job, mark, first);
    if (!status && job->op->task >= 0)
        status = add_mark(job, mark, digest_ref(job), 1.0F);
    for (int k = 1, written; (written = data_access(job->run, job->op, true, k)) >= 0 && !status;
         k++)
        if (written != first)
            status = copy_mark(job, mark, data_buffer(job->run, written, job->iteration));
    return status;
}

/* On a GPU the kernels of host programs use their buffers, so that whoever looks at the run sees what they access. */
static bool touches_buffers(const struct work_job *job)
{
    return job->run->program->tasks == 0 && job->run->config.device == DEVICE_KIND_CUDA &&
           job->op->kind == OP_LAUNCH;
}

static enum status push_marks(struct work_job *job)
{
    if (job->op->access_count == 0 || !(job->run->config.digest || touches_buffers(job)))
        return STATUS_OK;
    return job->op->kind == OP_LAUNCH ? work_mix(job) : add_reads(job, digest_ref(job), -1);
}

/* ---- the work -------------------------------------------------------------------------------- */

/* The first buffer read or written, if there is one, else a place in the stream's own memory. */
static struct device_ref operand(const struct work_job *job, bool write, size_t at)
{
    int buffer = data_access(job->run, job->op, write, 0);
    return buffer >= 0 ? data_buffer(job->run, buffer, job->iteration) : work_own(job, write, at);
}

static bool work_same_place(struct device_ref a, struct device_ref b)
{
    return a.buffer == b.buffer && a.offset == b.offset;
}

static enum status push_kernel(struct work_job *job, struct device_op op, struct stamp *stamp)
{
    const struct work *work = &job->of->work;
    struct needs needs = data_needs(job->run, job->op);
    struct device_ref a = work_own(job, false, 0),
                      b = work_own(job, false, (size_t)data_align(needs.bytes[0])),
                      c = work_own(job, true, 0);
    op.kind = DEVICE_OP_SPIN;
    if (job->run->layers)
        op.dense = layers_steps(job->run, job->op);
    if (job->run->layers && op.dense.count > 0) {
        op.kind = DEVICE_OP_DENSE;
        return work_own_push(job, op, stamp);
    }
    switch (run_is_timed(job->run) ? work->kind : WORK_NONE) {
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
                                           .table_rows = work->rows > 0 ? work->rows : 1,
                                           .dtype = work->dtype};
        break;
    case WORK_AXPY:
        op.kind = DEVICE_OP_AXPY;
        op.axpy = (struct device_axpy){a, c, work->elements, job->iteration % 2 ? -0.5F : 0.5F};
        break;
    default: break;
    }
    return work_own_push(job, op, stamp);
}

/* The numbers a copy brings from the host are those of its iteration. */
static struct device_ref staging(const struct work_job *job)
{
    const struct run_op *of = job->of;
    struct device_buffer *buffer = of->staging[job->iteration % of->staging_count];
    float *numbers = device_host_pointer(buffer);
    size_t count = (size_t)of->bytes / sizeof(float);
    if (of->work.direction != DIRECTION_H2D)
        count = 0;
    for (size_t i = 0; i < count && i < DIGEST_FLOATS; i++)
        numbers[i] =
            work_number((uint64_t)work_rank_of(job) << 32 | (uint64_t)(uint32_t)job->op->task,
                        (uint64_t)job->iteration, i);
    return (struct device_ref){buffer, 0};
}

static enum status work_push_copy(struct work_job *job, struct device_op op, struct stamp *stamp)
{
    enum direction direction = job->of->work.direction;
    op.kind = DEVICE_OP_COPY;
    op.copy = (struct device_copy){.direction = direction, .bytes = job->of->bytes};
    op.copy.from = direction == DIRECTION_H2D ? staging(job) : operand(job, false, 0);
    op.copy.to = direction == DIRECTION_D2H ? staging(job) : operand(job, true, 0);
    if (work_same_place(op.copy.from, op.copy.to))
        op.copy.to = work_own(job, true, 0);
    return work_own_push(job, op, stamp);
}

/* It reads and writes one buffer of the plan: a rank's block of it where a collective is in place with that. */
static void work_put_in_place(struct work_job *job, int count, struct device_collective *what)
{
    const size_t own = (size_t)(what->bytes / count) * (size_t)job->op->member;
    if (what->kind == COLLECTIVE_ALL_TO_ALL)
        what->recv = work_own(job, true, 0);
    else if (what->kind == COLLECTIVE_REDUCE_SCATTER)
        what->recv.offset += own;
    else if (what->kind == COLLECTIVE_ALL_GATHER)
        what->send.offset += own;
}

static enum status work_push_collective(struct work_job *job, struct device_op op,
                                        struct stamp *stamp)
{
    const struct program *p = job->run->program;
    const struct comm_desc *comm = &p->comms[job->op->comm];
    op.kind = DEVICE_OP_COLLECTIVE;
    op.collective = (struct device_collective){
        .comm = job->run->comms[comm->first_member + job->op->member],
        .kind = job->of->work.collective,
        .tag = job->op->name >= 0 ? p->names.items[job->op->name] : NULL,
        .root = comm->members[job->op->given->root_count ? job->op->given->roots[0] : 0],
        .bytes = job->of->bytes,
        .send = operand(job, false, 0),
        .recv = operand(job, true, 0)};
    if (work_same_place(op.collective.send, op.collective.recv))
        work_put_in_place(job, comm->count, &op.collective);
    bool gathers = layers_gather(job->run, job->op, &op.collective);
    enum status status = work_own_push(job, op, stamp);
    if (!gathers || status)
        return status;
    return work_own_push(
        job, (struct device_op){.kind = DEVICE_OP_DENSE, .dense = layers_steps(job->run, job->op)},
        NULL);
}

/* The first send and the first receive use the buffers of the plan, if it names any. */
static enum status work_push_group(struct work_job *job, struct device_op op, struct stamp *stamp)
{
    const struct program *p = job->run->program;
    const struct comm_desc *comm = &p->comms[job->op->comm];
    size_t count = (size_t)job->op->part_count, at[2] = {0, 0};
    int seen[2] = {0, 0};
    struct device_p2p *parts = calloc(count + 1, sizeof *parts);
    if (!parts)
        return diag_no_memory(job->diag);
    for (size_t i = 0; i < count; i++) {
        const struct part *part = &p->parts[job->op->part_first + (int)i];
        int end = part->send ? 0 : 1;
        int64_t bytes = job->run->part_bytes[job->op->part_first + (int)i];
        const struct channel *channel = &p->channels[part->channel];
        parts[i] = (struct device_p2p){.send = part->send,
                                       .peer = part->send ? channel->to : channel->from,
                                       .tag = p->names.items[part->tag],
                                       .bytes = bytes};
        parts[i].data = seen[end]++ ? work_own(job, end, at[end]) : operand(job, end, at[end]);
        layers_message(job->run, part, &parts[i].data, &parts[i].bytes);
        at[end] += (size_t)data_align(bytes);
    }
    op.kind = DEVICE_OP_GROUP;
    op.group =
        (struct device_group){job->run->comms[comm->first_member + job->op->member], parts, count};
    enum status status = work_own_push(job, op, stamp);
    free(parts);
    return status;
}

enum status work_push(struct run *run, const struct op *op, int64_t iteration, struct stamp *stamp,
                      struct diag *diag)
{
    struct work_job job = {.run = run,
                           .op = op,
                           .of = &run->ops[op - run->program->ops],
                           .iteration = iteration,
                           .diag = diag};
    struct device_op work = {
        .sm = op->sm, .time_ns = run_is_timed(run) ? op->time_ns : 0, .turn = push_turn(run, op)};
    enum status status = push_marks(&job);
    if (status)
        return status;
    if (op->kind == OP_COPY)
        return work_push_copy(&job, work, stamp);
    if (op->kind == OP_COLLECTIVE)
        return work_push_collective(&job, work, stamp);
    if (op->kind == OP_GROUP)
        return work_push_group(&job, work, stamp);
    assert(op->kind == OP_LAUNCH);
    return push_kernel(&job, work, stamp);
}

/* ---- in a graph ------------------------------------------------------------------------------ */

bool work_alternates(const struct run *run, const struct op *op)
{
    return run_is_timed(run) && op->kind == OP_LAUNCH && op->given->work->kind == WORK_AXPY;
}

void work_refresh(struct run *run, const struct op *op, int64_t iteration)
{
    struct work_job job = {
        .run = run, .op = op, .of = &run->ops[op - run->program->ops], .iteration = iteration};
    if (op->kind == OP_COPY && job.of->work.direction == DIRECTION_H2D)
        staging(&job);
    else if (op->kind == OP_LAUNCH && run->config.digest && op->access_count > 0 &&
             data_access(run, op, true, 0) >= 0) {
        struct device_ref to =
            graph_numbers(job.run, work_rank_of(&job), job.op->task, job.iteration);
        float *numbers = (float *)device_host_pointer(to.buffer) + to.offset / sizeof(float);
        float value = constant(&job);
        for (int i = 0; i < DIGEST_FLOATS; i++)
            numbers[i] = value;
    }
}
