/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_swpipe_own.c - what a program has made itself: an allocator and events on the host device; `t_swpipe_own cuda`, with
 * four emulated GPUs: streams, communicators and memory, which stay the program's.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef HAVE_CUDA
#include <cuda_runtime_api.h>
#endif
#ifdef HAVE_NCCL
#include <nccl.h>
#endif

#include "gpu/lib/swpipe.h"
#include "tests/processes.h"
#include "tests/tap.h"

enum { BATCHES = 12 };
static enum swpipe_device device = SWPIPE_HOST;
/* The threads that call functions: tests run both ways. */
static enum swpipe_threads way;

static const char plan_text[] =
    "swplan: 1\nname: own\nschedule:\n"
    "  H2D: {stage: 0, stream: memcpy, writes: [b], work: {copy: h2d, bytes: 4KiB}}\n"
    "  Sum: {stage: 1, stream: sums, globally_ordered: true, reads: [b], writes: [s],\n"
    "        work: {collective: all_reduce, comm: dp, bytes: 4KiB}}\n"
    "  Step: {stage: 1, thread_group: step, reads: [s]}\n"
    "intra_iter_deps: [[Sum, H2D], [Step, Sum]]\ninter_iter_deps: [[Sum, Step]]\n"
    "buffers: {b: {scope: iteration}, s: {scope: shared}}\n";

static int next(void *arg, int rank, void **batch)
{
    int *left = arg;
    (void)rank;
    *batch = NULL;
    return (*left)-- > 0;
}

static enum swpipe_status open_own(const struct swpipe_own *own, struct swpipe_group *group,
                                   struct swpipe **pipe)
{
    struct swpipe_config config = {.threads = way,
                                   .plan_text = plan_text,
                                   .plan_file = "own.yaml",
                                   .device = device,
                                   .ranks = group ? swpipe_group_size(group) : 1,
                                   .group = group,
                                   .gpu = group ? SWPIPE_GPU(swpipe_group_rank(group)) : 0,
                                   .own = *own};
    return swpipe_open(&config, pipe);
}

static enum swpipe_status run_own(struct swpipe *pipe)
{
    int left = BATCHES;
    const struct swpipe_source source = {next, &left};
    return swpipe_run(pipe, &source, NULL);
}

static void refuse(const struct swpipe_own *own, const char *words)
{
    struct swpipe *pipe;
    enum swpipe_status status = open_own(own, NULL, &pipe);
    tap_ok(status == SWPIPE_INPUT && strstr(swpipe_error(pipe), words), "refused: %s",
           swpipe_error(pipe));
    swpipe_close(pipe);
}

/* ---- memory ---------------------------------------------------------------------------------- */

struct memory {
    atomic_int taken, given;
    atomic_llong bytes;
    int most; /* 0: as much as is wanted */
};

static void *take(void *arg, int rank, size_t bytes)
{
    struct memory *memory = arg;
    void *out = NULL;
    (void)rank;
    if (memory->most && atomic_load(&memory->taken) >= memory->most)
        return NULL;
    atomic_fetch_add(&memory->taken, 1);
    atomic_fetch_add(&memory->bytes, (long long)bytes);
#ifdef HAVE_CUDA
    if (device == SWPIPE_CUDA)
        return cudaMalloc(&out, bytes) == cudaSuccess ? out : NULL;
#endif
    return posix_memalign(&out, 256, bytes) ? NULL : out;
}

static void give(void *arg, int rank, void *address, size_t bytes)
{
    struct memory *memory = arg;
    (void)rank;
    atomic_fetch_add(&memory->given, 1);
    atomic_fetch_sub(&memory->bytes, (long long)bytes);
#ifdef HAVE_CUDA
    if (device == SWPIPE_CUDA) {
        cudaFree(address);
        return;
    }
#endif
    free(address);
}

/* Memory that begins where no memory of a device does. */
static void *take_askew(void *arg, int rank, size_t bytes)
{
    char *address = take(arg, rank, bytes + 8);
    return address ? address + 8 : NULL;
}

static void give_askew(void *arg, int rank, void *address, size_t bytes)
{
    give(arg, rank, (char *)address - 8, bytes + 8);
}

static void test_memory(void)
{
    struct memory memory = {0};
    struct swpipe_own own = {.allocator = {take, give, &memory}};
    struct swpipe *pipe;
    enum swpipe_status status = open_own(&own, NULL, &pipe);
    if (status == SWPIPE_OK)
        status = run_own(pipe);
    tap_ok(status == SWPIPE_OK, "a run in memory of the program: %s", swpipe_error(pipe));
    swpipe_close(pipe);
    tap_ok(memory.taken > 2 && memory.taken == memory.given && memory.bytes == 0,
           "%d blocks were taken, %d given back", memory.taken, memory.given);
    memory = (struct memory){.most = 1};
    status = open_own(&own, NULL, &pipe);
    tap_ok(status == SWPIPE_SYSTEM && strstr(swpipe_error(pipe), "no memory"), "no more of it: %s",
           swpipe_error(pipe));
    swpipe_close(pipe);
    tap_is_int(memory.given, 1, "and what there was is given back");
    memory = (struct memory){0};
    own.allocator = (struct swpipe_allocator){take_askew, give_askew, &memory};
    status = open_own(&own, NULL, &pipe);
    tap_ok(status == SWPIPE_SYSTEM && strstr(swpipe_error(pipe), "align"), "askew: %s",
           swpipe_error(pipe));
    swpipe_close(pipe);
    tap_ok(memory.taken > 0 && memory.taken == memory.given, "it is given back");
}

/* ---- events ---------------------------------------------------------------------------------- */

struct scene {
    struct swpipe_event *loaded;
    atomic_int order, load_at, use_at;
    bool waits;
};

static void note_load(void *arg)
{
    struct scene *scene = arg;
    for (volatile int i = 0; i < 3000000; i++)
        continue;
    atomic_store(&scene->load_at, atomic_fetch_add(&scene->order, 1) + 1);
}

static void note_use(void *arg)
{
    struct scene *scene = arg;
    atomic_store(&scene->use_at, atomic_fetch_add(&scene->order, 1) + 1);
}

static int load(struct swpipe_context *context, void *arg)
{
    struct scene *scene = arg;
    return swpipe_launch(context, note_load, scene) || swpipe_event_record(context, scene->loaded);
}

/* One worker pushes both, and the plan has no dependence between them. */
static int use(struct swpipe_context *context, void *arg)
{
    struct scene *scene = arg;
    return (scene->waits && swpipe_event_wait(context, scene->loaded)) ||
           swpipe_launch(context, note_use, scene);
}

static void test_events(void)
{
    /* one worker: Load is pushed before Use, to another stream, and no dependence says so */
    static const char plan[] = "swplan: 1\nname: events\nschedule:\n"
                               "  Load: {stage: 0, stream: memcpy}\n  Use: {stage: 0}\n";
    struct scene scene = {.waits = true};
    struct swpipe_task tasks[] = {{"Load", load, &scene, NULL, 0}, {"Use", use, &scene, NULL, 0}};
    struct swpipe_config config = {
        .threads = way, .plan_text = plan, .device = device, .tasks = tasks, .task_count = 2};
    struct swpipe *pipe;
    int left = 1;
    const struct swpipe_source source = {next, &left};
    swpipe_open(&config, &pipe);
    tap_is_int(swpipe_event_open(pipe, 7, &scene.loaded), SWPIPE_USAGE, "an event of no rank: %s",
               swpipe_error(pipe));
    tap_is_int(swpipe_event_open(pipe, 0, &scene.loaded), SWPIPE_OK, "an event");
    tap_is_int(swpipe_event_done(scene.loaded), 1, "without a record it stands for no work");
    tap_is_int((int)swpipe_fill(pipe, &source), SWPIPE_OK, "fill: %s", swpipe_error(pipe));
    while (swpipe_progress(pipe, &source, NULL) == SWPIPE_OK)
        continue;
    tap_ok(scene.load_at == 1 && scene.use_at == 2, "work waits for the event's: %d, %d",
           scene.load_at, scene.use_at);
    tap_is_int(swpipe_event_sync(scene.loaded, 1000000000), SWPIPE_OK, "so does the host");
    tap_is_int(swpipe_event_done(scene.loaded), 1, "then it is done");
    swpipe_event_close(scene.loaded);
    swpipe_close(pipe);
}

#if defined HAVE_CUDA && defined HAVE_NCCL
/* ---- streams --------------------------------------------------------------------------------- */

static cudaStream_t new_stream(int gpu, unsigned flags)
{
    cudaStream_t stream = NULL;
    cudaSetDevice(gpu);
    cudaStreamCreateWithFlags(&stream, flags);
    cudaSetDevice(0);
    return stream;
}

static int is_mine(struct swpipe_context *context, void *arg)
{
    return swpipe_stream(context) == arg ? swpipe_work(context)
                                         : swpipe_fail(context, "it is another stream");
}

static void test_streams(int gpus)
{
    cudaStream_t good = new_stream(0, cudaStreamNonBlocking),
                 blocking = new_stream(0, cudaStreamDefault);
    struct swpipe_own_stream streams[] = {{"memcpy", good}, {"sums", good}};
    struct swpipe_own own = {.streams = streams, .stream_count = 1};
    struct swpipe_task task = {"H2D", is_mine, good, NULL, 0};
    struct swpipe_config config = {.threads = way,
                                   .plan_text = plan_text,
                                   .device = device,
                                   .ranks = 1,
                                   .tasks = &task,
                                   .task_count = 1,
                                   .own = own};
    struct swpipe *pipe;
    enum swpipe_status status = swpipe_open(&config, &pipe);
    for (int i = 0; i < 2 && status == SWPIPE_OK; i++)
        status = run_own(pipe);
    tap_ok(status == SWPIPE_OK, "two runs on a stream of the program: %s", swpipe_error(pipe));
    swpipe_close(pipe);
    tap_ok(cudaStreamSynchronize(good) == cudaSuccess, "which is still there");
    own.stream_count = 2;
    refuse(&own, "are one stream");
    own.stream_count = 1;
    streams[0].handle = blocking;
    refuse(&own, "made without cudaStreamNonBlocking");
    if (gpus > 1) {
        streams[0].handle = new_stream(1, cudaStreamNonBlocking);
        refuse(&own, "cannot be used on GPU 0");
    }
    streams[0] = (struct swpipe_own_stream){"nothing", good};
    refuse(&own, "has no stream 'nothing'");
    (void)cudaGetLastError();
}

/* ---- communicators --------------------------------------------------------------------------- */

static struct {
    __typeof__(ncclGetUniqueId) *id;
    __typeof__(ncclCommInitRank) *init;
    __typeof__(ncclCommDestroy) *destroy;
    __typeof__(ncclCommCount) *count;
} nccl;
static ncclUniqueId id;
static bool fails;

static bool load_nccl(void)
{
    char path[4096];
    const char *folder = getenv("SWSIM_NCCL");
    snprintf(path, sizeof path, "%s%slibnccl.so.2", folder ? folder : "", folder ? "/" : "");
    void *library = dlopen(path, RTLD_NOW);
    if (!library)
        return false;
    *(void **)&nccl.id = dlsym(library, "ncclGetUniqueId");
    *(void **)&nccl.init = dlsym(library, "ncclCommInitRank");
    *(void **)&nccl.destroy = dlsym(library, "ncclCommDestroy");
    *(void **)&nccl.count = dlsym(library, "ncclCommCount");
    return nccl.id && nccl.init && nccl.destroy && nccl.count;
}

static int fail_once(struct swpipe_context *context, void *arg)
{
    ncclComm_t *mine = arg;
    if (swpipe_comm_handle(context, NULL) != (void *)*mine)
        return swpipe_fail(context, "it is another communicator");
    if (fails && swpipe_rank(context) == 1 && swpipe_iteration(context) == 3)
        return swpipe_fail(context, "no luck");
    return swpipe_work(context);
}

static void use_comm(struct swpipe_group *group, ncclComm_t *comm, struct outcome *out)
{
    int rank = swpipe_group_rank(group), left = BATCHES;
    struct swpipe_own_comm comms[] = {{"dp", *comm}};
    struct swpipe_task task = {"Sum", fail_once, comm, NULL, 0};
    struct swpipe_config config = {.threads = way,
                                   .plan_text = plan_text,
                                   .device = device,
                                   .ranks = swpipe_group_size(group),
                                   .group = group,
                                   .gpu = SWPIPE_GPU(rank),
                                   .tasks = &task,
                                   .task_count = 1,
                                   .own = {.comms = comms, .comm_count = 1}};
    const struct swpipe_source source = {next, &left};
    struct swpipe *pipe;
    out->status = (int)swpipe_open(&config, &pipe);
    if (out->status == SWPIPE_OK)
        out->status = (int)swpipe_run(pipe, &source, NULL);
    snprintf(out->said, sizeof out->said, "%s", swpipe_error(pipe));
    swpipe_drain(pipe);
    out->count = swpipe_comm_is_lost(pipe, "dp");
    if (out->count)
        out->value = (double)swpipe_fill(pipe, &source);
    swpipe_close(pipe);
}

static void with_comm(const struct process *self, struct outcome *out)
{
    const struct swpipe_join join = {.rank = self->number,
                                     .size = self->count,
                                     .address = self->address,
                                     .timeout_ns = 20000000000};
    struct swpipe_group *group;
    ncclComm_t comm;
    int members = 0;
    cudaSetDevice(self->number);
    out->status = (int)swpipe_join(&join, &group);
    if (out->status == SWPIPE_OK && nccl.init(&comm, self->count, id, self->number) != ncclSuccess)
        out->status = SWPIPE_SYSTEM;
    if (out->status == SWPIPE_OK) {
        use_comm(group, &comm, out);
        if (!out->count && (nccl.count(comm, &members) != ncclSuccess || members != self->count ||
                            nccl.destroy(comm) != ncclSuccess))
            out->status = SWPIPE_SYSTEM;
    }
    swpipe_leave(group);
}

static void test_comms(int gpus)
{
    struct outcome outcomes[3];
    if (!load_nccl()) {
        tap_note("communicators: left out, for NCCL is not found");
        return;
    }
    for (int i = 0; i < 2 && gpus >= 3; i++) {
        fails = i == 1;
        nccl.id(&id);
        threads_run(3, with_comm, NULL, outcomes);
        for (int rank = 0; rank < 3; rank++)
            if (fails)
                tap_ok(outcomes[rank].status == SWPIPE_FAILED && outcomes[rank].count == 1 &&
                           outcomes[rank].value == SWPIPE_USAGE,
                       "rank %d: a failure takes the program's communicator: %s", rank,
                       outcomes[rank].said);
            else
                tap_ok(outcomes[rank].status == SWPIPE_OK && outcomes[rank].count == 0,
                       "rank %d runs with the program's communicator, which stays: %s", rank,
                       outcomes[rank].said);
    }
    ncclComm_t alone;
    struct swpipe *pipe;
    nccl.id(&id);
    nccl.init(&alone, 1, id, 0);
    struct swpipe_own_comm comms[] = {{"dp", alone}, {"dp", alone}};
    struct swpipe_own own = {.comms = comms, .comm_count = 1};
    bool done = open_own(&own, NULL, &pipe) == SWPIPE_OK && run_own(pipe) == SWPIPE_OK;
    tap_ok(done, "one of one member: %s", swpipe_error(pipe));
    swpipe_close(pipe);
    own.comm_count = 2;
    refuse(&own, "is given twice");
    own.comm_count = 1;
    if (gpus > 1) {
        cudaSetDevice(1);
        refuse(&own, "the program's own has rank 0 of 1 on GPU 0, the plan 0 of 1 on GPU 1");
        cudaSetDevice(0);
    }
    nccl.destroy(alone);
}
#endif

static void test_way(void)
{
    test_memory();
    test_events();
    if (device == SWPIPE_HOST) {
        int handle = 0;
        struct swpipe_own_stream stream = {"memcpy", &handle};
        struct swpipe_own_comm comm = {"dp", &handle};
        refuse(&(struct swpipe_own){.streams = &stream, .stream_count = 1},
               "the host device has no");
        refuse(&(struct swpipe_own){.comms = &comm, .comm_count = 1}, "the host device has no");
    }
#if defined HAVE_CUDA && defined HAVE_NCCL
    if (device == SWPIPE_CUDA) {
        int gpus = 0;
        cudaGetDeviceCount(&gpus);
        tap_note("%d GPUs: parts that need more are left out", gpus);
        test_streams(gpus);
        test_comms(gpus);
    }
#endif
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "cuda") == 0)
        device = SWPIPE_CUDA;
    test_way();
    tap_note("functions are called on the caller's thread");
    way = SWPIPE_CALLER;
    test_way();
    return tap_done();
}
