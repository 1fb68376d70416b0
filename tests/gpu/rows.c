/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.c - rows of tests/gpu/run.sh that need a program of their own:
 *
 *     rows poll [TIMES]        a wait of the runtime beside one of CUDA's own: how long after the work's end it returns
 *     rows push [TIMES]        the host's time for the push of an all-reduce of 4 KiB, beside NCCL's own call; two processes
 *     rows hand [ITERATIONS]   a pipeline of two streams by hand, beside the same in the library under both drivers
 *     rows refill              a pipeline that fails, is drained and filled again; drained halfway and filled again
 *     rows illegal             a kernel with an address that there is not: told, and the process ends in order
 *     rows hung                a kernel that does not end: told, the pipeline closes in time, and the GPU goes on after it
 *     rows drift [SECONDS]     the GPU's clock beside the host's, in parts per million
 *
 * Prints the figures as a JSON object. Exit status: 0; 1 and a reason on stderr where something is wrong.
 */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpu/device/cuda/kernels.h"
#include "gpu/device/cuda/nccl_load.h"
#include "gpu/device/device.h"
#include "gpu/lib/swpipe.h"
#include "gpu/net/rendezvous.h"

enum { SLOTS = 8, COUNT = 1024, IN_FLIGHT = 3, MOST_TIMES = 10000 };

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

__attribute__((format(printf, 1, 2))) static bool complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("rows: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return false;
}

static bool good(int error, const char *what)
{
    return error == 0 || complain("%s: %s", what, cudaGetErrorString((cudaError_t)error));
}
#define GOOD(call) good((int)(call), #call)

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t median(int64_t *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

/* ---- the pipeline: stream 1 fills a slot with the iteration's number, stream 2 adds it up --------------------- */

static struct {
    float *slots[SLOTS], *sum;
    int *stop; /* of spinning kernels: set only where one hangs */
    int64_t task_ns, progress_ns;
    int left;
    int fail_at;    /* the function of an iteration fails; -1: none */
    int illegal_at; /* ... gives its kernel an address that there is not */
    int hung_at;    /* ... pushes a kernel that does not end */
} job;

static bool open_memory(int64_t task_ns)
{
    bool all = GOOD(kernels_load()) && GOOD(cudaMalloc((void **)&job.sum, COUNT * sizeof(float))) &&
               GOOD(cudaHostAlloc((void **)&job.stop, sizeof *job.stop,
                                  cudaHostAllocMapped | cudaHostAllocPortable));
    for (int i = 0; i < SLOTS && all; i++)
        all = GOOD(cudaMalloc((void **)&job.slots[i], COUNT * sizeof(float)));
    if (all)
        *job.stop = 0;
    job.task_ns = task_ns;
    job.fail_at = job.illegal_at = job.hung_at = -1;
    return all;
}

static bool clear_sum(void)
{
    return GOOD(kernels_fill_f32(NULL, job.sum, COUNT, 0)) && GOOD(cudaDeviceSynchronize());
}

/* 1 + 2 + ... + iterations, which a float has exactly. */
static bool sum_is(int iterations)
{
    float numbers[COUNT];
    if (!GOOD(cudaMemcpy(numbers, job.sum, sizeof numbers, cudaMemcpyDeviceToHost)))
        return false;
    for (int i = 0; i < COUNT; i++)
        if (numbers[i] != (float)iterations * (float)(iterations + 1) / 2)
            return complain("number %d is %g, expected %g", i, (double)numbers[i],
                            (double)iterations * (iterations + 1) / 2);
    return true;
}

static int push_fill(void *stream, int64_t index)
{
    const int error = kernels_spin(stream, job.task_ns, job.stop);
    return error ? error
                 : kernels_fill_f32(stream, job.slots[index % SLOTS], COUNT, (float)(index + 1));
}

static int push_add(void *stream, int64_t index)
{
    float *wild = (float *)(uintptr_t)16;
    const int64_t spin_ns = index == job.hung_at ? INT64_MAX / 4 : job.task_ns;
    const int error = kernels_spin(stream, spin_ns, job.stop);
    return error ? error
                 : kernels_axpy(stream, job.slots[index % SLOTS],
                                index == job.illegal_at ? wild : job.sum, COUNT, 1.0F);
}

/* ---- in the library --------------------------------------------------------------------------- */

static const char plan[] =
    "swplan: 1\nname: rows\npipeline_depth: 2\nmax_depth: 3\nretire: device\nschedule:\n"
    "  Fill: {stage: 0, stream: fill}\n  Add: {stage: 1, stream: add}\n"
    "intra_iter_deps: [[Add, Fill]]\ninter_iter_deps: [[Add, Add]]\n";

static int result_of(struct swpipe_context *context, int error)
{
    return error ? swpipe_fail(context, "%s", cudaGetErrorString((cudaError_t)error)) : 0;
}

static int fill_task(struct swpipe_context *context, void *arg)
{
    (void)arg;
    return result_of(context, push_fill(swpipe_stream(context), swpipe_iteration(context)));
}

static int add_task(struct swpipe_context *context, void *arg)
{
    const int64_t index = swpipe_iteration(context);
    (void)arg;
    if (index == job.fail_at)
        return swpipe_fail(context, "asked to");
    return result_of(context, push_add(swpipe_stream(context), index));
}

static int next_batch(void *arg, int rank, void **batch)
{
    (void)arg, (void)rank;
    *batch = NULL;
    return job.left-- > 0;
}
static const struct swpipe_source source = {next_batch, NULL};

static char said[400]; /* by the library, last */

static void keep_message(void *arg, const char *text)
{
    (void)arg;
    snprintf(said, sizeof said, "%s", text);
}

static struct swpipe *open_pipe(enum swpipe_driver driver)
{
    static const struct swpipe_task tasks[] = {{.name = "Fill", .function = fill_task},
                                               {.name = "Add", .function = add_task}};
    const struct swpipe_config config = {.plan_text = plan,
                                         .plan_file = "rows.yaml",
                                         .tasks = tasks,
                                         .task_count = 2,
                                         .driver = driver,
                                         .device = SWPIPE_CUDA,
                                         .message = keep_message,
                                         .wait_timeout_ns = job.progress_ns,
                                         .progress_timeout_ns = job.progress_ns};
    struct swpipe *pipe;
    if (swpipe_open(&config, &pipe) == SWPIPE_OK)
        return pipe;
    complain("%s", swpipe_error(pipe));
    swpipe_close(pipe);
    return NULL;
}

/* Nanoseconds an iteration; -1: it failed, or its result is wrong. */
static int64_t run_library(enum swpipe_driver driver, int iterations)
{
    struct swpipe *pipe = clear_sum() ? open_pipe(driver) : NULL;
    double seconds = 0;
    if (!pipe)
        return -1;
    job.left = iterations;
    const bool ran = swpipe_run(pipe, &source, &seconds) == SWPIPE_OK;
    if (!ran)
        complain("%s", swpipe_error(pipe));
    swpipe_close(pipe);
    return ran && sum_is(iterations) ? (int64_t)(seconds * 1e9 / iterations) : -1;
}

/* ---- by hand ----------------------------------------------------------------------------------- */

struct by_hand {
    cudaStream_t fill, add;
    cudaEvent_t filled[SLOTS], added[SLOTS];
};

static bool open_by_hand(struct by_hand *hand)
{
    bool all = GOOD(cudaStreamCreateWithFlags(&hand->fill, cudaStreamNonBlocking)) &&
               GOOD(cudaStreamCreateWithFlags(&hand->add, cudaStreamNonBlocking));
    for (int i = 0; i < SLOTS && all; i++)
        all = GOOD(cudaEventCreateWithFlags(&hand->filled[i], cudaEventDisableTiming)) &&
              GOOD(cudaEventCreateWithFlags(&hand->added[i], cudaEventDisableTiming));
    return all;
}

static bool iterate_by_hand(const struct by_hand *hand, int64_t i)
{
    const int slot = (int)(i % SLOTS);
    if (i >= IN_FLIGHT && !GOOD(cudaEventSynchronize(hand->added[(i - IN_FLIGHT) % SLOTS])))
        return false;
    return GOOD(push_fill(hand->fill, i)) &&
           GOOD(cudaEventRecord(hand->filled[slot], hand->fill)) &&
           GOOD(cudaStreamWaitEvent(hand->add, hand->filled[slot], 0)) &&
           GOOD(push_add(hand->add, i)) && GOOD(cudaEventRecord(hand->added[slot], hand->add));
}

static int64_t run_by_hand(const struct by_hand *hand, int iterations)
{
    if (!clear_sum())
        return -1;
    const int64_t begin_ns = now_ns();
    for (int i = 0; i < iterations; i++)
        if (!iterate_by_hand(hand, i))
            return -1;
    if (!GOOD(cudaStreamSynchronize(hand->add)))
        return -1;
    const int64_t took_ns = now_ns() - begin_ns;
    return sum_is(iterations) ? took_ns / iterations : -1;
}

/* In turns, so that a busy moment meets all. */
static bool hand_row(int iterations)
{
    enum { ROUNDS = 5, WAYS = 3, TASK_NS = 100000 };
    int64_t ns[WAYS][ROUNDS];
    struct by_hand hand;
    if (!open_memory(TASK_NS) || !open_by_hand(&hand))
        return false;
    for (int round = 0; round < ROUNDS; round++) {
        ns[0][round] = run_by_hand(&hand, iterations);
        ns[1][round] = run_library(SWPIPE_CLOCK, iterations);
        ns[2][round] = run_library(SWPIPE_DATAFLOW, iterations);
        if (ns[0][round] < 0 || ns[1][round] < 0 || ns[2][round] < 0)
            return false;
    }
    printf("{\"hand_ns\":%lld,\"clock_ns\":%lld,\"dataflow_ns\":%lld,\"task_ns\":%d}\n",
           (long long)median(ns[0], ROUNDS), (long long)median(ns[1], ROUNDS),
           (long long)median(ns[2], ROUNDS), TASK_NS);
    return true;
}

/* ---- failures ---------------------------------------------------------------------------------- */

static bool has(const char *text, const char *part)
{
    return strstr(text, part) || complain("'%s' does not say '%s'", text, part);
}

static bool fails(struct swpipe *pipe, const char *why)
{
    const enum swpipe_status status = swpipe_run(pipe, &source, NULL);
    if (status != SWPIPE_FAILED && status != SWPIPE_SYSTEM) /* a call of CUDA's may say it first */
        return complain("the run ended with '%s', expected a failure", swpipe_status_name(status));
    return has(swpipe_error(pipe), why);
}

/* A fill numbers its iterations from 0. */
static bool runs_whole(struct swpipe *pipe, int iterations, int64_t *took_ns)
{
    const int64_t begin_ns = now_ns();
    job.left = iterations;
    if (!clear_sum())
        return false;
    if (swpipe_run(pipe, &source, NULL) != SWPIPE_OK)
        return complain("filled again: %s", swpipe_error(pipe));
    *took_ns = now_ns() - begin_ns;
    return sum_is(iterations);
}

/* Some iterations are retired, the others of this fill when it is drained. */
static bool drains_halfway(struct swpipe *pipe, int iterations)
{
    job.left = iterations;
    bool all = clear_sum() && swpipe_fill(pipe, &source) == SWPIPE_OK;
    for (int i = 0; i < iterations / 2 && all; i++)
        all = swpipe_progress(pipe, &source, NULL) == SWPIPE_OK;
    const int taken = all ? iterations / 2 + swpipe_in_flight(pipe) : 0;
    all = all && swpipe_drain(pipe) == SWPIPE_OK;
    return all ? sum_is(taken) : complain("drained halfway: %s", swpipe_error(pipe));
}

static bool refill(enum swpipe_driver driver, int64_t *drain_ns, int64_t *again_ns)
{
    enum { ITERATIONS = 30 };
    struct swpipe *pipe = open_pipe(driver);
    if (!pipe)
        return false;
    job.left = ITERATIONS;
    job.fail_at = ITERATIONS / 3;
    bool all = fails(pipe, "asked to");
    const int64_t begin_ns = now_ns();
    if (all && swpipe_drain(pipe) != SWPIPE_OK)
        all = complain("drained: %s", swpipe_error(pipe));
    *drain_ns = now_ns() - begin_ns;
    job.fail_at = -1;
    all = all && runs_whole(pipe, ITERATIONS, again_ns) && drains_halfway(pipe, ITERATIONS) &&
          runs_whole(pipe, ITERATIONS, again_ns);
    swpipe_close(pipe);
    return all;
}

static bool refill_row(void)
{
    int64_t drain_ns[2], again_ns[2];
    if (!open_memory(20000) || !refill(SWPIPE_CLOCK, &drain_ns[0], &again_ns[0]) ||
        !refill(SWPIPE_DATAFLOW, &drain_ns[1], &again_ns[1]))
        return false;
    printf("{\"clock_drain_ns\":%lld,\"clock_again_ns\":%lld,\"dataflow_drain_ns\":%lld,"
           "\"dataflow_again_ns\":%lld}\n",
           (long long)drain_ns[0], (long long)again_ns[0], (long long)drain_ns[1],
           (long long)again_ns[1]);
    return true;
}

/* The context has ended: each call says so, and the pipeline is closed without a wait that never ends. */
static bool illegal_row(void)
{
    struct swpipe *pipe = open_memory(20000) ? open_pipe(SWPIPE_DATAFLOW) : NULL;
    if (!pipe)
        return false;
    job.left = 30;
    job.illegal_at = 10;
    const int64_t begin_ns = now_ns();
    bool all = fails(pipe, "illegal memory access");
    all = all && has(swpipe_error(pipe), "start it anew");
    const int64_t told_ns = now_ns() - begin_ns;
    job.illegal_at = -1;
    job.left = 30;
    (void)swpipe_drain(pipe);
    if (all && swpipe_run(pipe, &source, NULL) == SWPIPE_OK)
        all = complain("the pipeline ran again on a GPU that has ended");
    if (all && cudaDeviceSynchronize() == cudaSuccess)
        all = complain("the error is not sticky");
    swpipe_close(pipe);
    printf("{\"told_ns\":%lld,\"ended_ns\":%lld}\n", (long long)told_ns,
           (long long)(now_ns() - begin_ns));
    return all;
}

/* The program ends the kernel after the pipeline has closed without it. */
static bool hung_row(void)
{
    job.progress_ns = 2 * INT64_C(1000000000);
    struct swpipe *pipe = open_memory(20000) ? open_pipe(SWPIPE_DATAFLOW) : NULL;
    int64_t again_ns;
    if (!pipe)
        return false;
    job.left = 30;
    job.hung_at = 10;
    const int64_t begin_ns = now_ns();
    const enum swpipe_status status = swpipe_run(pipe, &source, NULL);
    bool all = status != SWPIPE_OK || complain("the run ended well beside a kernel that hangs");
    all = all && has(swpipe_error(pipe), "stream add");
    const int64_t told_ns = now_ns() - begin_ns;
    swpipe_close(pipe);
    all = has(said, "stay allocated until the process ends") && all;
    const int64_t closed_ns = now_ns() - begin_ns;
    *(volatile int *)job.stop = 1;
    all = GOOD(cudaDeviceSynchronize()) && all;
    *(volatile int *)job.stop = 0;
    job.hung_at = -1;
    job.progress_ns = 0;
    pipe = all ? open_pipe(SWPIPE_DATAFLOW) : NULL;
    all = pipe && runs_whole(pipe, 30, &again_ns);
    swpipe_close(pipe);
    printf("{\"told_ns\":%lld,\"closed_ns\":%lld}\n", (long long)told_ns, (long long)closed_ns);
    return all;
}

/* ---- waits --------------------------------------------------------------------------------------- */

struct waits {
    struct device_stream *stream;
    struct device_event *event;
    cudaStream_t own_stream;
    cudaEvent_t own_event;
    struct diag *diag;
};

/* Both from the push of a kernel of known time to the return of the wait behind it, less that time; -1: an error. */
static int64_t wait_of_runtime(const struct waits *waits, int64_t time_ns)
{
    const struct device_op op = {.kind = DEVICE_OP_SPIN, .time_ns = time_ns};
    const int64_t begin_ns = now_ns();
    if (device_push(waits->stream, &op, NULL, waits->diag) != STATUS_OK ||
        device_record(waits->stream, waits->event, NULL, waits->diag) != STATUS_OK ||
        device_event_sync(waits->event, DEVICE_FOREVER, waits->diag) != STATUS_OK)
        return -1;
    return now_ns() - begin_ns - time_ns;
}

static int64_t wait_of_cuda(const struct waits *waits, int64_t time_ns)
{
    const int64_t begin_ns = now_ns();
    if (!GOOD(kernels_spin(waits->own_stream, time_ns, job.stop)) ||
        !GOOD(cudaEventRecord(waits->own_event, waits->own_stream)) ||
        !GOOD(cudaEventSynchronize(waits->own_event)))
        return -1;
    return now_ns() - begin_ns - time_ns;
}

static bool measure_waits(const struct waits *waits, int64_t time_ns, int times, int64_t out[2])
{
    static int64_t ns[2][MOST_TIMES];
    for (int i = 0; i < times; i++) {
        ns[0][i] = wait_of_runtime(waits, time_ns);
        ns[1][i] = wait_of_cuda(waits, time_ns);
        if (ns[0][i] < 0 && ns[0][i] == -1)
            return complain("a wait of the runtime failed");
        if (ns[1][i] == -1)
            return false;
    }
    out[0] = median(ns[0], times);
    out[1] = median(ns[1], times);
    return true;
}

/* A short wait ends while the runtime still looks again and again, a long one while it sleeps in between. */
static bool poll_with(const struct waits *waits, int times)
{
    enum { SHORT_NS = 15000, LONG_NS = 1000000 };
    int64_t brief[2], lengthy[2], unused[2];
    if (!measure_waits(waits, SHORT_NS, 10, unused) ||
        !measure_waits(waits, SHORT_NS, times, brief) ||
        !measure_waits(waits, LONG_NS, times, lengthy))
        return false;
    printf("{\"short_ns\":%lld,\"short_cuda_ns\":%lld,\"long_ns\":%lld,\"long_cuda_ns\":%lld}\n",
           (long long)brief[0], (long long)brief[1], (long long)lengthy[0], (long long)lengthy[1]);
    return true;
}

static bool poll_row(int times)
{
    const struct device_config config = {.kind = DEVICE_KIND_CUDA, .ranks = 1, .own_process = true};
    struct device_world *world = NULL;
    struct device *device = NULL;
    struct diag diag;
    struct waits waits = {.diag = &diag};
    diag_init(&diag);
    bool all = device_world_open(&config, &world, &diag) == STATUS_OK &&
               device_open(world, 0, &device, &diag) == STATUS_OK &&
               device_stream_open(device, "poll", &waits.stream, &diag) == STATUS_OK &&
               device_event_open(device, &waits.event, &diag) == STATUS_OK && open_memory(0) &&
               GOOD(cudaStreamCreateWithFlags(&waits.own_stream, cudaStreamNonBlocking)) &&
               GOOD(cudaEventCreateWithFlags(&waits.own_event, cudaEventDisableTiming)) &&
               poll_with(&waits, times);
    if (!all)
        diag_print(&diag, "rows", false, stderr);
    if (waits.event)
        device_event_close(waits.event);
    if (waits.stream)
        device_stream_close(waits.stream);
    if (device)
        device_close(device);
    if (world)
        device_world_close(world);
    diag_fini(&diag);
    return all;
}

/* ---- the push of a collective ------------------------------------------------------------------- */

#ifdef HAVE_NCCL
enum { PUSH_BYTES = 4096, PUSHES_AHEAD = 16 };

struct pusher {
    struct device_world *world;
    struct device *device;
    struct device_stream *stream;
    struct device_comm *comm;
    struct device_buffer *send, *recv;
    struct nccl nccl;
};

static bool open_pusher(struct pusher *pusher, struct rendezvous *rendezvous, struct diag *diag)
{
    const int rank = rendezvous_rank(rendezvous), members[] = {0, 1};
    const struct device_config config = {.kind = DEVICE_KIND_CUDA,
                                         .ranks = 2,
                                         .first_rank = rank,
                                         .local_ranks = 1,
                                         .rendezvous = rendezvous,
                                         .own_process = true};
    return device_world_open(&config, &pusher->world, diag) == STATUS_OK &&
           device_open(pusher->world, rank, &pusher->device, diag) == STATUS_OK &&
           device_stream_open(pusher->device, "push", &pusher->stream, diag) == STATUS_OK &&
           device_alloc(pusher->device, MEMORY_DEVICE, PUSH_BYTES, &pusher->send, diag) ==
               STATUS_OK &&
           device_alloc(pusher->device, MEMORY_DEVICE, PUSH_BYTES, &pusher->recv, diag) ==
               STATUS_OK &&
           device_comm_open(pusher->device, "dp", members, 2, &pusher->comm, diag) == STATUS_OK &&
           nccl_load(&pusher->nccl, diag) == STATUS_OK;
}

static bool push_once(struct pusher *pusher, bool by_hand, struct diag *diag)
{
    if (by_hand)
        return pusher->nccl.AllReduce(device_address(pusher->send), device_address(pusher->recv),
                                      PUSH_BYTES / sizeof(float), ncclFloat, ncclSum,
                                      device_comm_handle(pusher->comm),
                                      device_stream_handle(pusher->stream)) == ncclSuccess;
    const struct device_op op = {.kind = DEVICE_OP_COLLECTIVE,
                                 .collective = {.comm = pusher->comm,
                                                .kind = COLLECTIVE_ALL_REDUCE,
                                                .bytes = PUSH_BYTES,
                                                .send = {pusher->send, 0},
                                                .recv = {pusher->recv, 0}}};
    return device_push(pusher->stream, &op, NULL, diag) == STATUS_OK;
}

/* The median of calls that find a queue with room. */
static bool time_pushes(struct pusher *pusher, bool by_hand, int times, int64_t *out,
                        struct diag *diag)
{
    static int64_t ns[MOST_TIMES];
    for (int i = 0; i < times; i++) {
        const int64_t begin_ns = now_ns();
        if (!push_once(pusher, by_hand, diag))
            return complain("a push failed");
        ns[i] = now_ns() - begin_ns;
        if (i % PUSHES_AHEAD == 0 &&
            device_stream_sync(pusher->stream, DEVICE_FOREVER, diag) != STATUS_OK)
            return false;
    }
    *out = median(ns, times);
    return device_stream_sync(pusher->stream, DEVICE_FOREVER, diag) == STATUS_OK;
}

static bool push_as_rank(struct broker *broker, int rank, int times)
{
    struct pusher pusher = {0};
    struct rendezvous *rendezvous = NULL;
    struct diag diag;
    int64_t library_ns = 0, nccl_ns = 0, unused;
    diag_init(&diag);
    bool all = rendezvous_join(broker_inherit(broker, rank), rank, RENDEZVOUS_FOREVER, &rendezvous,
                               &diag) == STATUS_OK &&
               open_pusher(&pusher, rendezvous, &diag) &&
               time_pushes(&pusher, false, 20, &unused, &diag) &&
               time_pushes(&pusher, true, times, &nccl_ns, &diag) &&
               time_pushes(&pusher, false, times, &library_ns, &diag);
    if (all && rank == 0)
        printf("{\"push_ns\":%lld,\"nccl_ns\":%lld}\n", (long long)library_ns, (long long)nccl_ns);
    if (!all)
        diag_print(&diag, "rows", false, stderr);
    fflush(stdout);
    return all;
}

/* Each process ends with what it has open. */
static bool push_row(int times)
{
    struct broker *broker = NULL;
    struct diag diag;
    pid_t pids[2];
    bool all = true;
    diag_init(&diag);
    if (broker_open(2, &broker, &diag) || broker_invite(broker, 0, &diag) ||
        broker_invite(broker, 1, &diag))
        return complain("no place to meet");
    for (int rank = 0; rank < 2; rank++)
        if ((pids[rank] = fork()) == 0)
            _exit(!push_as_rank(broker, rank, times));
    all = broker_start(broker, &diag) == STATUS_OK;
    for (int rank = 0; rank < 2; rank++) {
        int status = -1;
        waitpid(pids[rank], &status, 0);
        all = all && status == 0;
    }
    broker_close(broker);
    diag_fini(&diag);
    return all;
}
#endif

/* ---- the clock --------------------------------------------------------------------------------- */

struct tie {
    cudaEvent_t event;
    int64_t host_ns, round_ns;
};

/* A record between two readings of the host's clock: the shortest of some round trips. */
static bool tie_clocks(struct tie *tie)
{
    enum { TRIES = 64 };
    cudaEvent_t other;
    tie->round_ns = INT64_MAX;
    if (!GOOD(cudaEventCreateWithFlags(&tie->event, cudaEventDefault)) ||
        !GOOD(cudaEventCreateWithFlags(&other, cudaEventDefault)))
        return false;
    for (int i = 0; i < TRIES; i++) {
        const int64_t before_ns = now_ns();
        if (!GOOD(cudaEventRecord(other, NULL)) || !GOOD(cudaEventSynchronize(other)))
            return false;
        const int64_t round_ns = now_ns() - before_ns;
        if (round_ns >= tie->round_ns)
            continue;
        cudaEvent_t kept = other;
        other = tie->event;
        *tie = (struct tie){kept, before_ns + round_ns / 2, round_ns};
    }
    return GOOD(cudaEventDestroy(other));
}

static bool since(const struct tie *from, const struct tie *to, double *device_ns)
{
    float ms;
    if (!GOOD(cudaEventElapsedTime(&ms, from->event, to->event)))
        return false;
    *device_ns = (double)ms * 1e6;
    return true;
}

/* The slope of the whole, and how far the ties between lie off that line at most. */
static bool drift_row(int seconds)
{
    struct tie *ties = calloc((size_t)seconds + 1, sizeof *ties);
    double whole_ns = 0, part_ns, worst_ns = 0;
    bool all = ties && tie_clocks(&ties[0]);
    for (int i = 1; i <= seconds && all; i++) {
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
        all = tie_clocks(&ties[i]);
    }
    all = all && since(&ties[0], &ties[seconds], &whole_ns);
    const double host_ns = all ? (double)(ties[seconds].host_ns - ties[0].host_ns) : 1;
    const double error_ns =
        all ? (double)ties[0].round_ns / 2 + (double)ties[seconds].round_ns / 2 : 0;
    for (int i = 1; i < seconds && all; i++) {
        all = since(&ties[0], &ties[i], &part_ns);
        worst_ns = fmax(worst_ns, fabs(part_ns * host_ns / whole_ns -
                                       (double)(ties[i].host_ns - ties[0].host_ns)));
    }
    if (all)
        printf("{\"ppm\":%.3f,\"error_ppm\":%.3f,\"worst_ns\":%.0f,\"seconds\":%d}\n",
               (whole_ns / host_ns - 1) * 1e6, error_ns / host_ns * 1e6, worst_ns, seconds);
    free(ties);
    return all;
}

/* ---- all of them ------------------------------------------------------------------------------ */

int main(int argc, char **argv)
{
    const char *row = argc > 1 ? argv[1] : "";
    const int number = argc > 2 ? atoi(argv[2]) : 0;
    swpipe_set_environment();
    if (strcmp(row, "poll") == 0 && number > 0 && number <= MOST_TIMES)
        return !poll_row(number);
#ifdef HAVE_NCCL
    if (strcmp(row, "push") == 0 && number > 0 && number <= MOST_TIMES)
        return !push_row(number);
#endif
    if (strcmp(row, "hand") == 0 && number > 0 && number <= 5000)
        return !hand_row(number);
    if (strcmp(row, "drift") == 0 && number > 0 && number <= 600)
        return !drift_row(number);
    if (strcmp(row, "refill") == 0)
        return !refill_row();
    if (strcmp(row, "illegal") == 0)
        return !illegal_row();
    if (strcmp(row, "hung") == 0)
        return !hung_row();
    fputs("usage: rows poll TIMES | push TIMES | hand ITERATIONS | refill | illegal | hung | drift "
          "SECONDS\n",
          stderr);
    return 2;
}
