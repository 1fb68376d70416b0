/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_cuda.c - the CUDA device: the world, the GPU, memory, and the table of its functions.
 *
 * The program links the CUDA runtime statically and NCCL not at all, so it starts on any machine;
 * that a driver or GPU is missing comes out here, when a world is opened.
 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/system_words.h"
#include "gpu/net/rendezvous.h"

#include "cuda_impl.h"
#include "kernels.h"

/*
 * The GPU that is a thread's current one, a caller's state of CUDA, and queries that leave it alone.
 *
 * The runtime works on the driver's context that is current on the calling thread. cudaSetDevice makes the one of a GPU
 * current, and since CUDA 12 makes it if there is none: some hundred MiB on a GPU that may be another rank's, or nobody's.
 * So the thread of a caller could not get its GPU back by a number. Where the driver gives its functions out, a thread
 * enters the world's GPU by that one's context, and leaves it by the context that was current before, or by none. The
 * GPU that the caller has chosen stays chosen, and no other gets a context. Elsewhere cudaSetDevice does both.
 *
 * The context is the primary one, which the runtime has, too; it is retained once for a world and not released, because
 * the runtime keeps it until the process ends.
 *
 * A thread that asks, or allocates, invalidates the capture of another one that is in the mode Global, PyTorch's default, unless
 * its own mode is Relaxed: threads of the library are (cuda_relax), a caller's is within a call.
 *
 * The runtime's queries leave "not ready" as the last error of the calling thread, over the one that was there, and its
 * user may ask for that behind a launch of his own. The driver's queries leave nothing: they are asked where the
 * driver gives them out. Anything but "done" and "not ready" is for the
 * runtime to say, on the world's GPU: a failure, or a thread without a context. There the runtime would make one on the
 * GPU that is the thread's, which takes hundreds of MiB of a GPU that may be another rank's.
 *
 * Functions of the driver are those that the runtime gives out since CUDA 12. Handles and numbers of errors are the same for
 * both.
 */

/* ---- functions of the driver ------------------------------------------------------------------ */

enum { DRIVER_VERSION = 12000 };

static void cuda_caller_find_function(const char *name, void *out)
{
    void *found = NULL;
    enum cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 12050
    cudaError_t error =
        cudaGetDriverEntryPointByVersion(name, &found, DRIVER_VERSION, cudaEnableDefault, &result);
#elif CUDART_VERSION >= 12000
    cudaError_t error = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result);
#else
    cudaError_t error = cudaErrorNotSupported;
    (void)name;
    result = cudaDriverEntryPointSymbolNotFound;
#endif
    if (error == cudaSuccess && result == cudaDriverEntryPointSuccess)
        *(void **)out = found;
}

static void cuda_driver_find(struct cuda_driver *out)
{
    *out = (struct cuda_driver){0};
    bool had_error = cudaPeekAtLastError() != cudaSuccess;
    cuda_caller_find_function("cuThreadExchangeStreamCaptureMode", &out->exchange_mode);
    cuda_caller_find_function("cuEventQuery", &out->event_query);
    cuda_caller_find_function("cuStreamQuery", &out->stream_query);
    cuda_caller_find_function("cuCtxGetCurrent", &out->get_current);
    cuda_caller_find_function("cuCtxSetCurrent", &out->set_current);
    cuda_caller_find_function("cuDeviceGet", &out->device_get);
    cuda_caller_find_function("cuDevicePrimaryCtxRetain", &out->retain);
    out->has_contexts = out->get_current && out->set_current && out->device_get && out->retain;
    if (!had_error)
        (void)cudaGetLastError(); /* a refusal */
}

/* ---- the current GPU ------------------------------------------------------------------------- */

/* Before the first cuda_enter. */
static cudaError_t cuda_make_context(struct cuda_world *world)
{
    const struct cuda_driver *driver = &world->driver;
    int device = 0;
    if (!driver->has_contexts || world->context)
        return cudaSuccess;
    int error = driver->device_get(&device, world->gpu);
    if (error == 0)
        error = driver->retain(&world->context, device);
    return (cudaError_t)error;
}

cudaError_t cuda_enter(const struct cuda_world *world)
{
    return world->context ? (cudaError_t)world->driver.set_current(world->context)
                          : cudaSetDevice(world->gpu);
}

/* CUstreamCaptureMode, -1: the driver does not say, as before its first use. */
static int exchange_mode(const struct cuda_driver *driver, int mode)
{
    return driver->exchange_mode && driver->exchange_mode(&mode) == 0 ? mode : -1;
}

void cuda_relax(const struct cuda_world *world)
{
    (void)exchange_mode(&world->driver, cudaStreamCaptureModeRelaxed);
}

/* The last error, which a call that succeeds does not change, and a look does not take away. */
static void cuda_note_caller(const struct device_world *world, struct device_caller *out)
{
    struct cuda_driver found;
    const struct cuda_driver *driver = world ? &((const struct cuda_world *)world)->driver : &found;
    if (!world)
        cuda_driver_find(&found);
    out->had_error = cudaPeekAtLastError() != cudaSuccess;
    out->context = NULL;
    out->capture_mode = exchange_mode(driver, cudaStreamCaptureModeRelaxed);
    out->exchange_mode = out->capture_mode >= 0 ? driver->exchange_mode : NULL;
    out->set_current = driver->has_contexts ? driver->set_current : NULL;
    /* a driver that nobody has used says so, and there is no context */
    if (out->set_current && driver->get_current(&out->context) != 0)
        out->context = NULL;
    if (cudaGetDevice(&out->gpu) == cudaSuccess)
        return;
    out->gpu = -1;
    if (!out->had_error)
        (void)cudaGetLastError();
}

static void cuda_restore_caller(const struct device_caller *caller)
{
    if (caller->set_current)
        (void)caller->set_current(caller->context);
    else if (caller->gpu >= 0)
        (void)cudaSetDevice(caller->gpu);
    int mode = caller->capture_mode;
    if (caller->exchange_mode)
        (void)caller->exchange_mode(&mode);
    if (!caller->had_error)
        (void)cudaGetLastError();
}

/* ---- queries --------------------------------------------------------------------------------- */

enum { DONE = 0, NOT_READY = 600 };

_Static_assert((int)cudaErrorNotReady == NOT_READY, "one number in driver and runtime");

static cudaError_t forget_not_ready(cudaError_t error)
{
    if (error == cudaErrorNotReady)
        (void)cudaGetLastError();
    return error;
}

/* The driver's answer; -1: it has none. */
typedef int driver_query(void *handle);
static int ask_driver(driver_query *query, void *handle)
{
    int answer = query ? query(handle) : -1;
    return answer == DONE || answer == NOT_READY ? answer : -1;
}

/* The runtime is asked where the driver has no answer. A thread of the program's, which takes the steps of workers, may be on
   another GPU or on none: it asks again on the world's. */
static cudaError_t ask(const struct cuda_world *world, driver_query *query, void *handle,
                       bool is_event)
{
    int answer = ask_driver(query, handle);
    const cudaError_t entered = answer < 0 ? cuda_enter(world) : cudaSuccess;
    if (answer < 0 && entered != cudaSuccess)
        return entered;
    if (answer < 0)
        answer = ask_driver(query, handle);
    if (answer >= 0)
        return (cudaError_t)answer;
    return forget_not_ready(is_event ? cudaEventQuery(handle) : cudaStreamQuery(handle));
}

cudaError_t cuda_ask_event(const struct cuda_world *world, cudaEvent_t event)
{
    return ask(world, world->driver.event_query, event, true);
}

cudaError_t cuda_ask_stream(const struct cuda_world *world, cudaStream_t stream)
{
    return ask(world, world->driver.stream_query, stream, false);
}

/* After these the context is lost: every further call gives the same error. */
static bool is_sticky(cudaError_t error)
{
    switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorECCUncorrectable:
    case cudaErrorAssert: return true;
    default: return false;
    }
}

const char *cuda_way_out(cudaError_t error)
{
    return is_sticky(error) ? "; the process can use the GPU no more: start it anew" : "";
}

enum status cuda_refused(struct diag *diag, const char *what, cudaError_t error)
{
    return diag_error(diag, STATUS_SYSTEM, "%s: %s (%s)%s", what, cudaGetErrorString(error),
                      cudaGetErrorName(error), cuda_way_out(error));
}

/* ---- what is unfinished ---------------------------------------------------------------------- */

/* The first stamped operation of a stream that has not finished, or NULL. */
static const struct cuda_pending *find_head(const struct cuda_stream *stream)
{
    const struct cuda_pending *at = stream->device->pendings;
    while (at && (at->stream != stream ||
                  cuda_ask_event(stream->world, at->end->handle) != cudaErrorNotReady))
        at = at->next;
    return at;
}

/* Of the members of a communicator the one that is known to be gone or to have failed, -1: none. */
static int find_lost(const struct device_comm *comm, const char **how)
{
    struct rendezvous *rendezvous = comm ? comm->device->world->config.rendezvous : NULL;
    int gone = rendezvous ? rendezvous_lost(rendezvous, how) : -1;
    for (int i = 0; gone >= 0 && i < comm->count; i++)
        if (comm->members[i] == gone)
            return gone;
    return -1;
}

/* The work that keeps a stream busy, into `out`; "" if none. */
static void describe_work(const struct cuda_stream *stream, char out[STUCK_TEXT])
{
    char text[OP_TEXT];
    out[0] = '\0';
    if (stream->base.capture) /* looking would end the capture */
        return;
    if (stream->behind &&
        cuda_ask_event(stream->world, stream->behind->handle) == cudaErrorNotReady) {
        snprintf(out, STUCK_TEXT, "is part of a graph that has not finished");
        return;
    }
    if (cuda_ask_stream(stream->world, stream->handle) != cudaErrorNotReady)
        return;
    const struct cuda_pending *head = find_head(stream);
    const struct device_comm *comm = head ? device_op_comm(&head->op) : NULL;
    if (!head)
        snprintf(out, STUCK_TEXT, "has unfinished work");
    else
        snprintf(out, STUCK_TEXT, "%s%s%s has not %s", device_op_text(&head->op, text),
                 comm ? " on communicator " : "", comm ? comm->name : "",
                 cuda_ask_event(stream->world, head->start->handle) == cudaSuccess
                     ? "finished"
                     : "been reached");
    const char *how;
    int gone = find_lost(comm, &how);
    size_t length = strlen(out);
    if (gone >= 0)
        snprintf(out + length, STUCK_TEXT - length, ", whose member rank %d %s", gone, how);
}

/* Describes the work that an abort ends; the lock is held. */
static void note_work(struct cuda_world *world)
{
    for (struct cuda_stream *at = world->device ? world->device->streams : NULL; at; at = at->next)
        describe_work(at, at->stuck);
}

static void device_cuda_world_explain(struct device_world *base, struct diag *diag)
{
    struct cuda_world *world = (struct cuda_world *)base;
    pthread_mutex_lock(&world->lock);
    if (!atomic_load(&world->aborted))
        note_work(world);
    for (struct cuda_stream *at = world->device ? world->device->streams : NULL; at; at = at->next)
        if (at->stuck[0])
            diag_note(diag, "rank %d, stream %s: %s", world->device->base.rank, at->base.name,
                      at->stuck);
    pthread_mutex_unlock(&world->lock);
}

/* ---- world ----------------------------------------------------------------------------------- */

/* Why there is no GPU to be had. CUDA has one error for a driver that is missing and for one that is too old;
   their versions, of CUDA as 1000 major + 10 minor, tell them apart (0: no driver). */
static enum status no_gpu(cudaError_t error, struct diag *diag)
{
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (driver == 0)
        return diag_error(
            diag, STATUS_SYSTEM,
            "no CUDA driver or GPU: libcuda.so.1, which comes with the driver, cannot be loaded");
    if (error == cudaErrorInsufficientDriver)
        return diag_error(
            diag, STATUS_SYSTEM,
            "the CUDA driver is too old: it is for CUDA %d.%d, and this program needs one for CUDA "
            "%d.0 or newer",
            driver / 1000, driver % 1000 / 10, runtime / 1000);
    return diag_error(diag, STATUS_SYSTEM, "no CUDA driver or GPU: %s",
                      error == cudaSuccess ? "the driver shows no device"
                                           : cudaGetErrorString(error));
}

static enum status find_gpu(int *out, struct diag *diag)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    *out = count;
    return error == cudaSuccess && count > 0 ? STATUS_OK : no_gpu(error, diag);
}

static void enter_device(struct device *device)
{
    const struct cuda_world *world = ((struct cuda_device *)device)->world;
    cuda_relax(world);
    (void)cuda_enter(world); /* the next call says what is wrong */
}

/* NCCL refuses two ranks on one GPU of one machine: then they have to look as if on several, which talk
   through sockets. What the user has set stays, but for the name of the machine. In a process of our own nothing
   else looks at the environment when a world is opened: NCCL has not been, and no thread of the run started. */
static void share_gpu(const struct cuda_world *world, struct diag *diag)
{
    static const char *const settings[][2] = {
        {"NCCL_NET", "Socket"}, {"NCCL_P2P_DISABLE", "1"}, {"NCCL_SHM_DISABLE", "1"}};
    char host[32];
    snprintf(host, sizeof host, "swrun-rank-%d", world->base.config.first_rank);
    setenv("NCCL_HOSTID", host, 1);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        setenv(settings[i][0], settings[i][1], 0);
    setenv("NCCL_SOCKET_IFNAME", "lo", 0); /* all ranks are on this machine */
    diag_note(diag, "%d ranks share %d GPU%s: not for timing", world->base.config.ranks,
              world->gpus, world->gpus > 1 ? "s" : "");
}

/* The news of an abort: which of the rendezvous' worlds, since it may arrive when the next is open, and why. */
struct news {
    int world;
    char why[FAILURE_TEXT];
};

static bool end_world(struct cuda_world *world, const char *why);

/* Another process has aborted the world; it informs all. */
static void hear_abort(void *arg, int from, const void *data, size_t bytes)
{
    struct cuda_world *world = arg;
    struct news news;
    (void)from;
    if (bytes != sizeof news)
        return;
    memcpy(&news, data, sizeof news);
    news.why[sizeof news.why - 1] = '\0';
    cuda_relax(world);
    if (news.world == world->number)
        end_world(world, news.why);
}

static enum status choose_gpu(struct cuda_world *world, int gpus, struct diag *diag)
{
    struct device_caller caller;
    cuda_note_caller(&world->base, &caller);
    int wanted = world->base.config.gpu, current = caller.gpu;
    world->gpus = gpus;
    world->gpu = wanted > 0 ? wanted - 1
                 : wanted == DEVICE_GPU_CURRENT && current >= 0
                     ? current
                     : world->base.config.first_rank % gpus;
    return world->gpu < gpus ? STATUS_OK
                             : diag_error(diag, STATUS_INPUT, "there is no GPU %d, only 0 to %d",
                                          world->gpu, gpus - 1);
}

/* Find out whether two ranks have the same GPU. All processes find the same. */
static enum status find_shared(struct cuda_world *world, bool *shared, struct diag *diag)
{
    struct rendezvous *rendezvous = world->base.config.rendezvous;
    int ranks = world->base.config.ranks, number = rendezvous_count(rendezvous);
    char key[64];
    struct cudaDeviceProp found = {0};
    cudaError_t error = cudaGetDeviceProperties(&found, world->gpu);
    if (error != cudaSuccess)
        return cuda_refused(diag, "the GPU", error);
    cudaUUID_t mine = found.uuid, *all = calloc((size_t)ranks, sizeof *all);
    if (!all)
        return diag_no_memory(diag);
    snprintf(key, sizeof key, "gpu of %d, choice %d", world->base.config.first_rank, number);
    enum status status = rendezvous_put(rendezvous, key, &mine, sizeof mine, diag);
    *shared = false;
    for (int rank = 0; rank < ranks && !status; rank++) {
        size_t bytes = sizeof *all;
        snprintf(key, sizeof key, "gpu of %d, choice %d", rank, number);
        status = rendezvous_get(rendezvous, key, &all[rank], &bytes, RENDEZVOUS_FOREVER, diag);
        for (int other = 0; other < rank; other++)
            *shared = *shared || memcmp(&all[rank], &all[other], sizeof *all) == 0;
    }
    free(all);
    return status;
}

static enum status device_cuda_world_open(const struct device_config *config,
                                          struct device_world **out, struct diag *diag)
{
    int gpus;
    if (config->local_ranks != 1)
        return diag_error(
            diag, STATUS_INPUT,
            "the cuda device runs one rank a process, not %d: expected a process for each (a "
            "group; swrun --processes, mpirun), or the host device",
            config->local_ranks);
    if (config->own_process && device_set_environment() < 0)
        return diag_no_memory(diag);
    enum status status = find_gpu(&gpus, diag);
    if (status)
        return status;
    struct cuda_world *world = calloc(1, sizeof *world);
    if (!world)
        return diag_no_memory(diag);
    int failed = pthread_mutex_init(&world->lock, NULL);
    if (failed) {
        free(world);
        return diag_error(diag, STATUS_SYSTEM, "cannot make a lock: %s", system_words(failed));
    }
    world->base = (struct device_world){
        .ops = &device_cuda_ops, .config = *config, .base_ns = device_clock_ns()};
    cuda_driver_find(&world->driver);
    status = choose_gpu(world, gpus, diag);
    bool shared = false; /* numbers say nothing: each rank may be shown one GPU, and not the same */
    if (!status && config->ranks > 1 && config->rendezvous)
        status = find_shared(world, &shared, diag);
    if (status) {
        pthread_mutex_destroy(&world->lock);
        free(world);
        return status;
    }
    world->shared = shared;
    if (shared && config->own_process)
        share_gpu(world, diag);
    if (config->rendezvous) {
        world->number = rendezvous_count(config->rendezvous);
        rendezvous_listen(config->rendezvous, hear_abort, world);
        world->base.base_ns = rendezvous_board(config->rendezvous)->base_ns;
    }
    *out = &world->base;
    return STATUS_OK;
}

static void device_cuda_world_close(struct device_world *base)
{
    struct cuda_world *world = (struct cuda_world *)base;
    assert(!world->device && "a device is still open");
    if (base->config.rendezvous)
        rendezvous_listen(base->config.rendezvous, NULL, NULL);
    cuda_comm_forget(world);
    pthread_mutex_destroy(&world->lock);
    free(world);
}

/* Ends the work of this process; false if that has been done. */
static bool end_world(struct cuda_world *world, const char *why)
{
    pthread_mutex_lock(&world->lock); /* keeps the device open meanwhile */
    struct cuda_device *device = world->device;
    bool first = !atomic_load(&world->aborted), started = true;
    if (first && !world->failure.status) {
        world->failure.status = STATUS_VIOLATED;
        snprintf(world->failure.text, sizeof world->failure.text, "aborted: %s", why);
    }
    if (first)
        note_work(world);
    atomic_store(&world->aborted, true);
    if (first && device) {
        __atomic_store_n(device->stop, 1, __ATOMIC_SEQ_CST);
        started = cuda_comm_abort(device);
    }
    pthread_mutex_unlock(&world->lock);
    if (!started)
        cuda_comm_abort_here(device);
    return first;
}

static void device_cuda_world_abort(struct device_world *base, const char *why)
{
    struct cuda_world *world = (struct cuda_world *)base;
    struct news news = {.world = world->number};
    if (!end_world(world, why) || !base->config.rendezvous)
        return;
    snprintf(news.why, sizeof news.why, "%s", why);
    (void)rendezvous_send(base->config.rendezvous, TO_ALL, &news,
                          sizeof news); /* a peer that cannot be reached
                                                                    learns of the end of this process */
}

static enum status device_cuda_world_status(struct device_world *base, struct diag *diag)
{
    struct cuda_world *world = (struct cuda_world *)base;
    pthread_mutex_lock(&world->lock);
    enum status status = world->failure.status;
    if (status)
        diag_error(diag, status, "%s", world->failure.text);
    pthread_mutex_unlock(&world->lock);
    return status;
}

enum status cuda_world_ended(struct cuda_world *world, struct diag *diag)
{
    if (world->device && !atomic_load(&world->aborted))
        cuda_comm_check(world->device);
    return atomic_load(&world->aborted) ? device_cuda_world_status(&world->base, diag) : STATUS_OK;
}

/* ---- device ---------------------------------------------------------------------------------- */

static void device_cuda_describe(struct cuda_device *device)
{
    struct cudaDeviceProp properties;
    int driver = 0, runtime = 0;
    char *text = device->base.description;
    size_t size = sizeof device->base.description;
    if (cudaGetDeviceProperties(&properties, device->world->gpu) != cudaSuccess)
        snprintf(properties.name, sizeof properties.name, "a GPU");
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    snprintf(text, size, "cuda: %.80s, driver for CUDA %d.%d, CUDA runtime %d.%d, ",
             properties.name, driver / 1000, driver % 1000 / 10, runtime / 1000,
             runtime % 1000 / 10);
    size_t used = strlen(text);
    cuda_nccl_open(device, text + used, size - used);
}

/* All that a run must not meet for the first time in its middle: the context, the code of the
   kernels, the number that stops them. */
static enum status device_cuda_prepare(struct cuda_device *device, struct diag *diag)
{
    const char *what = "cannot use the GPU";
    cudaError_t error = cuda_make_context(device->world);
    if (error == cudaSuccess)
        error = cuda_enter(device->world);
    if (error == cudaSuccess)
        error = cudaFree(NULL); /* makes the context, if it has not been made */
    if (error == cudaSuccess) {
        what = "cannot load the kernels";
        error = (cudaError_t)kernels_load();
        if (error == cudaErrorNoKernelImageForDevice)
            return diag_error(
                diag, STATUS_SYSTEM,
                "cannot load the kernels: there is no code for this GPU; built as usual they "
                "want sm_80 or newer (NVCC_GENCODE, ./configure --help)");
    }
    if (error == cudaSuccess) {
        what = "cannot map host memory";
        error = cudaHostAlloc((void **)&device->stop, sizeof *device->stop, cudaHostAllocMapped);
    }
    if (error == cudaSuccess) {
        *device->stop = 0;
        error = cudaHostGetDevicePointer((void **)&device->stop_on_device, device->stop, 0);
    }
    if (error == cudaSuccess) {
        what = "cannot make a stream";
        error = cudaStreamCreateWithFlags(&device->service, cudaStreamNonBlocking);
    }
    if (error == cudaSuccess)
        cuda_pool_open(device);
    if (error == cudaSuccess) {
        what = "cannot read the GPU's clock";
        error = cuda_clock_open(device);
    }
    return error == cudaSuccess ? STATUS_OK : cuda_refused(diag, what, error);
}

bool cuda_never_ends(const struct cuda_device *device)
{
    if (!atomic_load(&device->world->aborted))
        return false;
    for (const struct cuda_stream *at = device->streams; at; at = at->next)
        if (cuda_ask_stream(device->world, at->handle) == cudaErrorNotReady)
            return true;
    return device->unfinished;
}

/* Give back what a device holds, however far its opening came. */
static void device_cuda_release(struct cuda_device *device)
{
    enter_device(&device->base);
    cuda_clock_close(device);
    markers_free(device);
    if (device->memory) /* waits for nothing: memory that work still uses goes when that ends */
        cudaMemPoolDestroy(device->memory);
    if (device->service)
        cudaStreamDestroy(device->service);
    if (device->stop && !cuda_never_ends(device))
        cudaFreeHost(device->stop);
    cuda_nccl_close(device);
    pthread_mutex_destroy(&device->collect_lock);
    pthread_mutex_destroy(&device->abort_lock);
    injection_free_all(device->injections);
    free(device);
}

static enum status device_cuda_open_device(struct device_world *base, int rank, struct device **out,
                                           struct diag *diag)
{
    struct cuda_world *world = (struct cuda_world *)base;
    struct cuda_device *device = calloc(1, sizeof *device);
    if (!device)
        return diag_no_memory(diag);
    device->base = (struct device){.ops = &device_cuda_ops, .world = base, .rank = rank};
    device->world = world;
    device->pendings_end = &device->pendings;
    int failed = pthread_mutex_init(&device->abort_lock, NULL);
    if (!failed && (failed = pthread_mutex_init(&device->collect_lock, NULL)))
        pthread_mutex_destroy(&device->abort_lock);
    if (failed) {
        free(device);
        return diag_error(diag, STATUS_SYSTEM, "cannot make a lock: %s", system_words(failed));
    }
    enum status status = device_cuda_prepare(device, diag);
    if (status) {
        device_cuda_release(device);
        return status;
    }
    device_cuda_describe(device);
    pthread_mutex_lock(&world->lock);
    bool taken = world->device;
    if (!taken)
        world->device = device;
    pthread_mutex_unlock(&world->lock);
    if (taken) {
        device_cuda_release(device);
        return diag_error(diag, STATUS_INPUT, "rank %d is open already", rank);
    }
    *out = &device->base;
    return STATUS_OK;
}

static void device_cuda_close_device(struct device *base)
{
    struct cuda_device *device = (struct cuda_device *)base;
    assert(!device->streams && !device->comms && "a handle of this device is still open");
    pthread_mutex_lock(&device->world->lock);
    device->world->device = NULL;
    pthread_mutex_unlock(&device->world->lock);
    cuda_comm_settle(device);
    device_cuda_release(device);
}

/* ---- failures on request -------------------------------------------------------------------- */

static enum status device_cuda_inject(struct device *base, int64_t number, enum status status,
                                      struct diag *diag)
{
    struct cuda_device *device = (struct cuda_device *)base;
    struct injection *injection = injection_new(number, status);
    if (!injection)
        return diag_no_memory(diag);
    pthread_mutex_lock(&device->world->lock);
    injection->next = device->injections;
    device->injections = injection;
    pthread_mutex_unlock(&device->world->lock);
    return STATUS_OK;
}

const struct device_ops device_cuda_ops = {
    .world_open = device_cuda_world_open,
    .world_close = device_cuda_world_close,
    .world_abort = device_cuda_world_abort,
    .world_status = device_cuda_world_status,
    .world_explain = device_cuda_world_explain,
    .open = device_cuda_open_device,
    .close = device_cuda_close_device,
    .alloc = cuda_alloc,
    .alloc_beside = cuda_alloc_beside,
    .free = cuda_free,
    .enter = enter_device,
    .note_caller = cuda_note_caller,
    .restore_caller = cuda_restore_caller,
    .comm_handle = cuda_member_handle,
    .buffer_size = sizeof(struct cuda_buffer),
    .stream_open = cuda_stream_open,
    .stream_close = cuda_stream_close,
    .stream_handle = cuda_stream_handle,
    .event_open = cuda_event_open,
    .event_close = cuda_event_close,
    .comm_open = cuda_member_open,
    .comm_close = cuda_member_close,
    .push = cuda_push,
    .graph_begin = cuda_graph_begin,
    .graph_end = cuda_graph_end,
    .graph_arm = cuda_graph_arm,
    .graph_launch = cuda_graph_launch,
    .graph_close = cuda_graph_close,
    .event_query = cuda_event_query,
    .stream_sync = cuda_stream_sync,
    .event_sync = cuda_event_sync,
    .sync = cuda_device_sync,
    .collect = cuda_collect,
    .inject = device_cuda_inject,
};
