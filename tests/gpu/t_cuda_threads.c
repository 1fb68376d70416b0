/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_cuda_threads.c - the CUDA device on emulated CUDA, with rank 0 on GPU 2 of four: threads that have another current GPU
 * and other settings than the device wants, and several threads at once. The emulation ends a process that makes a context
 * on a second GPU (SWSIM_EMULATION_CONTEXTS). Each case is a process of its own.
 */
#include <cuda_runtime_api.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpu/device/device.h"
#include "tests/tap.h"

enum { GPU = 2, STREAMS = 2, BYTES = 64, STAMPS = 8, SHORTEST_SPIN_NS = 25000 };

/* The answer of a case: 0 is good, else the line that was not. */
#define NEED(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return __LINE__ % 250 + 1;                                                             \
    } while (0)

static struct {
    struct device_world *world;
    struct device *device;
    struct device_stream *streams[STREAMS];
    struct device_event *event;
    struct device_buffer *memory, *host;
    struct device_comm *comm;
    struct diag diag;
} place;

static bool open_place(void)
{
    const struct device_config config = {.kind = DEVICE_KIND_CUDA, .ranks = 1, .gpu = GPU + 1};
    const int alone = 0;
    diag_init(&place.diag);
    return !device_world_open(&config, &place.world, &place.diag) &&
           !device_open(place.world, 0, &place.device, &place.diag) &&
           !device_stream_open(place.device, "main", &place.streams[0], &place.diag) &&
           !device_stream_open(place.device, "side", &place.streams[1], &place.diag) &&
           !device_event_open(place.device, &place.event, &place.diag) &&
           !device_alloc(place.device, MEMORY_DEVICE, 4 * BYTES, &place.memory, &place.diag) &&
           !device_alloc(place.device, MEMORY_PINNED, 4 * BYTES, &place.host, &place.diag) &&
           !device_comm_open(place.device, "self", &alone, 1, &place.comm, &place.diag);
}

static void close_place(void)
{
    device_comm_close(place.comm);
    device_free(place.host);
    device_free(place.memory);
    device_event_close(place.event);
    device_stream_close(place.streams[1]);
    device_stream_close(place.streams[0]);
    device_close(place.device);
    device_world_close(place.world);
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void nap(int ms)
{
    clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

static enum status spin(int ms, struct stamp *stamp)
{
    const struct device_op op = {.kind = DEVICE_OP_SPIN, .time_ns = ms * INT64_C(1000000)};
    return device_push(place.streams[0], &op, stamp, &place.diag);
}

static int64_t late(void)
{
    return device_now(place.world) + INT64_C(20000000000);
}

/* A thread that has used nothing of CUDA before runs it; the answer is kept. */
static int in_thread(void *(*what)(void *), void *arg)
{
    pthread_t thread;
    void *answer = NULL;
    if (pthread_create(&thread, NULL, what, arg) != 0 || pthread_join(thread, &answer) != 0)
        return __LINE__ % 250 + 1;
    return (int)(intptr_t)answer;
}

/* ---- newcomers: the current GPU of a thread is not the rank's ------------------------------------ */

enum act {
    COLLECTS,
    SYNCS,
    SYNCS_STREAM,
    SYNCS_EVENT,
    QUERIES,
    EXPLAINS,
    GETS_HANDLE,
    PUSHES,
    ALLOCATES,
    ACTS
};

static int act(enum act what)
{
    struct device_buffer *memory = NULL;
    bool done;
    int gpu;
    switch (what) {
    case COLLECTS: NEED(!device_collect(place.device, &place.diag)); break;
    case SYNCS: NEED(!device_sync(place.device, late(), &place.diag)); break;
    case SYNCS_STREAM: NEED(!device_stream_sync(place.streams[0], late(), &place.diag)); break;
    case SYNCS_EVENT: NEED(!device_event_sync(place.event, late(), &place.diag)); break;
    case QUERIES: NEED(!device_event_query(place.event, &done, &place.diag)); break;
    case EXPLAINS: device_world_explain(place.world, &place.diag); break;
    case GETS_HANDLE: /* the caller launches something next */
        NEED(device_stream_handle(place.streams[0]));
        NEED(cudaGetDevice(&gpu) == cudaSuccess && gpu == GPU);
        break;
    case PUSHES: NEED(!spin(1, NULL)); break;
    case ALLOCATES:
        NEED(!device_alloc(place.device, MEMORY_DEVICE, BYTES, &memory, &place.diag));
        device_free(memory);
        break;
    case ACTS: break;
    }
    return 0;
}

static void *be_newcomer(void *what)
{
    return (void *)(intptr_t)act(*(const enum act *)what);
}

static int newcomers(void)
{
    struct stamp stamps[ACTS];
    NEED(open_place());
    for (enum act what = COLLECTS; what < ACTS; what++) {
        NEED(!spin(5, &stamps[what]));
        NEED(!device_record(place.streams[0], place.event, NULL, &place.diag));
        const int answer = in_thread(be_newcomer, &what);
        if (answer != 0)
            return answer;
    }
    NEED(!device_sync(place.device, late(), &place.diag));
    close_place();
    return 0;
}

static void *end_place(void *unused)
{
    close_place();
    return unused;
}

static void *abort_place(void *unused)
{
    device_world_abort(place.world, "the test says so");
    return unused;
}

static int closed_elsewhere(void)
{
    NEED(open_place() && !spin(5, NULL));
    return in_thread(end_place, NULL);
}

static int aborted_elsewhere(void)
{
    NEED(open_place() && !spin(3600000, NULL));
    NEED(in_thread(abort_place, NULL) == 0);
    return in_thread(end_place, NULL);
}

/* ---- waits --------------------------------------------------------------------------------------- */

/* The pauses of a thread, and its timer slack meanwhile. */
static _Thread_local struct {
    int count, most_slack;
    int64_t first_ns;
} pauses;

int nanosleep(const struct timespec *time, struct timespec *left)
{
    const int slack = prctl(PR_GET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL);
    if (pauses.count++ == 0)
        pauses.first_ns = now_ns();
    pauses.most_slack = slack > pauses.most_slack ? slack : pauses.most_slack;
    errno = clock_nanosleep(CLOCK_MONOTONIC, 0, time, left);
    return errno ? -1 : 0;
}

/* A wait looks again and again first; then its pauses are as short as it says, and the thread's own are as before. */
static void *wait_for_spin(void *unused)
{
    const int before = prctl(PR_GET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL);
    const int64_t begin_ns = now_ns();
    enum status status = device_stream_sync(place.streams[0], late(), &place.diag);
    const int after = prctl(PR_GET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL);
    (void)unused;
    return (void *)(intptr_t)(status                                          ? 1
                              : pauses.count == 0                             ? 2
                              : pauses.most_slack != 1                        ? 3
                              : pauses.first_ns - begin_ns < SHORTEST_SPIN_NS ? 4
                              : before < 2 || after != before                 ? 5
                                                                              : 0);
}

static int waits(void)
{
    NEED(open_place() && !spin(10, NULL));
    const int answer = in_thread(wait_for_spin, NULL);
    close_place();
    return answer;
}

/* ---- the last error of a thread ------------------------------------------------------------------ */

/* A look at unfinished work leaves nothing, nor does it take away what was there. */
static int last_error(void)
{
    bool done = true;
    NEED(open_place() && !spin(20, NULL));
    NEED(!device_record(place.streams[0], place.event, NULL, &place.diag));
    NEED(cudaGetLastError() == cudaSuccess);
    NEED(!device_event_query(place.event, &done, &place.diag) && !done);
    NEED(cudaGetLastError() == cudaSuccess);
    NEED(!device_sync(place.device, late(), &place.diag));
    NEED(cudaGetLastError() == cudaSuccess);
    close_place();
    return 0;
}

/* A driver that gives none of its functions out: the runtime's are used. */
static int last_error_of_runtime(void)
{
#if CUDART_VERSION >= 12050
#define REFUSED(number) "cudaGetDriverEntryPointByVersion=" #number ":801,"
#else
#define REFUSED(number) "cudaGetDriverEntryPoint=" #number ":801,"
#endif
    setenv("SWSIM_EMULATION_FAULT",
           REFUSED(1) REFUSED(2) REFUSED(3) REFUSED(4) REFUSED(5) REFUSED(6), 1);
    return last_error();
}

/* A caller that has chosen GPU 0 and made nothing there gets it back, and no context is made on it for that. */
static int caller_without_context(void)
{
    struct device_caller caller;
    int gpu = -1;
    device_note_caller(DEVICE_KIND_CUDA, NULL, &caller);
    NEED(open_place());
    device_restore_caller(DEVICE_KIND_CUDA, &caller);
    NEED(cudaGetDevice(&gpu) == cudaSuccess && gpu == 0);
    device_note_caller(DEVICE_KIND_CUDA, place.world, &caller);
    NEED(!spin(1, NULL) && !device_sync(place.device, late(), &place.diag));
    NEED(cudaGetDevice(&gpu) == cudaSuccess && gpu == GPU);
    close_place();
    device_restore_caller(DEVICE_KIND_CUDA, &caller);
    NEED(cudaGetDevice(&gpu) == cudaSuccess && gpu == 0);
    return 0;
}

/* One with a context of its own gets that back. */
static int caller_with_context(void)
{
    struct device_caller caller;
    int gpu = -1;
    setenv("SWSIM_EMULATION_CONTEXTS", "2", 1);
    NEED(cudaSetDevice(1) == cudaSuccess);
    device_note_caller(DEVICE_KIND_CUDA, NULL, &caller);
    NEED(open_place());
    NEED(cudaGetDevice(&gpu) == cudaSuccess && gpu == GPU);
    close_place();
    device_restore_caller(DEVICE_KIND_CUDA, &caller);
    NEED(cudaGetDevice(&gpu) == cudaSuccess && gpu == 1);
    return 0;
}

/* The GPU is in use by another process alone: the reason is told, and nothing is left. */
static int no_context(void)
{
    setenv("SWSIM_EMULATION_FAULT", "cuDevicePrimaryCtxRetain=1:46", 1);
    NEED(!open_place() && place.diag.count > 0);
    NEED(strstr(place.diag.messages[0].text, "cannot use the GPU"));
    device_world_close(place.world);
    return 0;
}

/* ---- several threads ----------------------------------------------------------------------------- */

static atomic_bool collected;

static void *collect(void *unused)
{
    device_collect(place.device, &place.diag);
    atomic_store(&collected, true);
    return unused;
}

/* While stamps are read pushes go on. */
static int pushes_beside_reading(void)
{
    struct stamp stamps[STAMPS];
    pthread_t thread;
    NEED(open_place());
    for (int i = 0; i < STAMPS; i++)
        NEED(!spin(0, &stamps[i]));
    NEED(!device_sync(place.device, late(), &place.diag));
    setenv("SWSIM_EMULATION_SLOW", "cudaEventElapsedTime:20", 1);
    NEED(pthread_create(&thread, NULL, collect, NULL) == 0);
    nap(30);
    NEED(!device_record(place.streams[1], place.event, NULL, &place.diag));
    NEED(!atomic_load(&collected));
    pthread_join(thread, NULL);
    unsetenv("SWSIM_EMULATION_SLOW");
    for (int i = 0; i < STAMPS; i++)
        NEED(stamps[i].valid);
    close_place();
    return 0;
}

static struct device_op sum(size_t from)
{
    return (struct device_op){.kind = DEVICE_OP_COLLECTIVE,
                              .collective = {.comm = place.comm,
                                             .kind = COLLECTIVE_ALL_REDUCE,
                                             .bytes = BYTES,
                                             .send = {place.memory, from},
                                             .recv = {place.memory, 3 * BYTES}}};
}

static void *push_first(void *stamp)
{
    const struct device_op op = sum(0);
    device_push(place.streams[0], &op, stamp, &place.diag);
    return NULL;
}

static enum status copy(enum direction direction, bool here)
{
    const struct device_ref host = {place.host, 0}, memory = {place.memory, 0};
    const struct device_op op = {
        .kind = DEVICE_OP_COPY,
        .copy = {direction, here ? host : memory, here ? memory : host, 4 * BYTES}};
    return device_push(place.streams[0], &op, NULL, &place.diag);
}

/* Operations of a communicator run in the order of their numbers, also where the thread that took the first number is
   slow. Each writes the same memory. */
static int numbers_of_communicator(void)
{
    struct stamp stamp = {0};
    pthread_t thread;
    NEED(open_place());
    char *host = device_host_pointer(place.host);
    for (int i = 0; i < 4; i++)
        memset(host + (ptrdiff_t)i * BYTES, 'a' + i, BYTES);
    NEED(!copy(DIRECTION_H2D, true) && !device_sync(place.device, late(), &place.diag));
    setenv("SWSIM_EMULATION_SLOW", "cudaEventRecord:100", 1);
    NEED(pthread_create(&thread, NULL, push_first, &stamp) == 0);
    nap(30);
    const struct device_op second = sum(BYTES);
    NEED(!device_push(place.streams[1], &second, NULL, &place.diag));
    pthread_join(thread, NULL);
    unsetenv("SWSIM_EMULATION_SLOW");
    NEED(!device_sync(place.device, late(), &place.diag));
    NEED(!copy(DIRECTION_D2H, false) && !device_sync(place.device, late(), &place.diag));
    NEED(host[3 * BYTES] == 'b' && host[4 * BYTES - 1] == 'b');
    device_collect(place.device, &place.diag);
    close_place();
    return 0;
}

/* ---- all of them --------------------------------------------------------------------------------- */

/* The exit code of a case in a process, negative if it was killed. */
static int run(int (*what)(void))
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        const int answer = what();
        if (answer != 0 && place.diag.count)
            tap_note("%s", place.diag.messages[place.diag.count - 1].text);
        fflush(stdout);
        _exit(answer);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int main(void)
{
    setenv("SWSIM_EMULATED_GPUS", "4", 1);
    setenv("SWSIM_EMULATION_CONTEXTS", "1", 1);
    tap_is_int(run(newcomers), 0, "threads that have not used the rank's GPU before");
    tap_is_int(run(closed_elsewhere), 0, "one of them closes the device");
    tap_is_int(run(aborted_elsewhere), 0, "or aborts it");
    tap_is_int(run(waits), 0, "a wait looks for 30 us, then pauses, and each as long as it says");
    tap_is_int(run(last_error), 0, "a look leaves no error to the thread");
    tap_is_int(run(last_error_of_runtime), 0, "nor with a driver of another kind");
    tap_is_int(run(caller_without_context), 0, "a caller's GPU comes back without a context on it");
    tap_is_int(run(caller_with_context), 0, "and one with its context");
    tap_is_int(run(no_context), 0, "a GPU without room for a context is refused");
    tap_is_int(run(pushes_beside_reading), 0, "pushes go on while stamps are read");
    tap_is_int(run(numbers_of_communicator), 0,
               "operations of a communicator have the order of their numbers");
    return tap_done();
}
