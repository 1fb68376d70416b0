/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_swpipe_hooks.c - what a program has to do beside its tasks: threads that start and stop, batches that are released
 * exactly once, results of iterations, numbers of a pipeline; on cuda the GPU of a pipeline and of its caller.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef HAVE_CUDA
#include <cuda_runtime_api.h>
#endif

#include "gpu/lib/swpipe.h"
#include "tests/tap.h"

static const char plan_text[] =
    "swplan: 1\nname: hooks\nschedule:\n"
    "  Load: {stage: 0, stream: memcpy, thread_group: io}\n"
    "  Step: {stage: 1, thread_group: step}\n"
    "intra_iter_deps: [[Step, Load]]\ninter_iter_deps: [[Step, Step]]\n";

/* The threads that call functions: each test runs both ways. */
static enum swpipe_threads way;

enum { BATCHES = 20 };

struct job {
    atomic_int started, stopped, fail_start;
    int left, fail_at;
    int taken[2][BATCHES], released[2][BATCHES]; /* by rank */
    int next[2], retired;
    int64_t results[BATCHES];
    bool in_order;
};

static int started(void *arg, int rank, const char *group)
{
    struct job *job = arg;
    (void)rank;
    atomic_fetch_add(&job->started, 1);
    return atomic_load(&job->fail_start) && strcmp(group, "step") == 0 ? -1 : 0;
}

static void stopped(void *arg, int rank, const char *group)
{
    struct job *job = arg;
    (void)rank, (void)group;
    atomic_fetch_add(&job->stopped, 1);
}

static void retired(void *arg, const struct swpipe_retired *what)
{
    struct job *job = arg;
    job->in_order = job->in_order && what->iteration == job->retired / 2 + 0 &&
                    what->batch == &job->taken[what->rank][what->iteration];
    if (what->result)
        job->results[what->iteration] += *(int64_t *)what->result;
    job->retired++;
}

static void release(void *arg, int rank, void *batch)
{
    struct job *job = arg;
    job->released[rank][(int *)batch - job->taken[rank]]++;
}

static int next(void *arg, int rank, void **batch)
{
    struct job *job = arg;
    if (job->next[rank] == BATCHES)
        return 0;
    *batch = &job->taken[rank][job->next[rank]++];
    (*(int *)*batch)++;
    return 1;
}

static int64_t values[2][BATCHES];

static int step(struct swpipe_context *context, void *arg)
{
    struct job *job = arg;
    int64_t i = swpipe_iteration(context);
    int64_t *value = &values[swpipe_rank(context)][i];
    if (i == job->fail_at)
        return swpipe_fail(context, "no luck");
    *value = 100 * i;
    swpipe_set_result(context, value);
    return 0;
}

static struct swpipe *open_pipe(struct job *job, enum swpipe_driver driver)
{
    struct swpipe_task task = {"Step", step, job, NULL, 0};
    struct swpipe_config config = {.threads = way,
                                   .plan_text = plan_text,
                                   .plan_file = "hooks.yaml",
                                   .tasks = &task,
                                   .task_count = 1,
                                   .driver = driver,
                                   .ranks = 2,
                                   .hooks = {started, stopped, retired, release, job}};
    struct swpipe *pipe;
    swpipe_open(&config, &pipe);
    return pipe;
}

static bool released_once(const struct job *job)
{
    for (int rank = 0; rank < 2; rank++)
        for (int i = 0; i < BATCHES; i++)
            if (job->released[rank][i] != job->taken[rank][i])
                return false;
    return true;
}

static void test_good(enum swpipe_driver driver, bool serial)
{
    struct job job = {.fail_at = -1, .in_order = true};
    const struct swpipe_source source = {next, &job};
    struct swpipe *pipe = open_pipe(&job, driver);
    enum swpipe_status status =
        serial ? swpipe_run_serial(pipe, &source, NULL) : swpipe_run(pipe, &source, NULL);
    tap_ok(status == SWPIPE_OK, "a run with hooks: %s", swpipe_error(pipe));
    tap_ok(job.retired == 2 * BATCHES && job.results[7] == 1400, "each retired iteration is told");
    tap_ok(serial || job.in_order, "in order, with its batch");
    swpipe_close(pipe);
    tap_ok(released_once(&job) && job.taken[1][BATCHES - 1] == 1,
           "each batch is released exactly once");
    tap_ok(job.started > 0 && job.started == job.stopped, "%d threads started, as many stopped",
           job.started);
}

struct told {
    int messages;
    char text[512];
};

static void listen(void *arg, const char *text)
{
    struct told *told = arg;
    told->messages++;
    snprintf(told->text, sizeof told->text, "%s", text);
}

/* A result of the device is there under `retire: device`; under the default the message function is told once. */
static void test_early(const char *rule, bool early)
{
    static struct told told;
    char plan[512];
    struct job job = {.fail_at = -1};
    const struct swpipe_source source = {next, &job};
    struct swpipe_task task = {"Step", step, &job, NULL, 0};
    struct swpipe_config config = {.threads = way,
                                   .plan_text = plan,
                                   .plan_file = "early.yaml",
                                   .tasks = &task,
                                   .task_count = 1,
                                   .proof_limit_ns = -1,
                                   .message = listen,
                                   .message_arg = &told};
    struct swpipe *pipe;
    told = (struct told){0};
    snprintf(plan, sizeof plan, "%sretire: %s\n", plan_text, rule);
    swpipe_open(&config, &pipe);
    tap_ok(swpipe_run_serial(pipe, &source, NULL) == SWPIPE_OK && told.messages == 0,
           "retire: %s: a serial run waits for the device", rule);
    job = (struct job){.fail_at = -1};
    tap_ok(swpipe_run(pipe, &source, NULL) == SWPIPE_OK, "... a pipelined one: %s",
           swpipe_error(pipe));
    tap_ok(told.messages == early && (!early || strstr(told.text, rule)),
           "... that a result may not be there yet is told %s", early ? "once" : "not");
    swpipe_close(pipe);
}

static int next_fewer(void *arg, int rank, void **batch)
{
    const struct job *job = arg;
    return rank == 1 && job->next[1] == 5 ? 0 : next(arg, rank, batch);
}

/* A run ends with the first rank that has no batch, and rank 0 has one already then. */
static void test_uneven(bool serial)
{
    struct job job = {.fail_at = -1, .in_order = true};
    const struct swpipe_source source = {next_fewer, &job};
    struct swpipe *pipe = open_pipe(&job, SWPIPE_CLOCK);
    enum swpipe_status status =
        serial ? swpipe_run_serial(pipe, &source, NULL) : swpipe_run(pipe, &source, NULL);
    tap_ok(status == SWPIPE_OK && job.retired == 5 + 5,
           "a%s run of ranks with fewer batches: %d retired", serial ? " serial" : "", job.retired);
    swpipe_close(pipe);
    tap_ok(released_once(&job), "and each batch that was taken is released");
}

static void test_numbers(void)
{
    struct job job = {.fail_at = -1};
    const struct swpipe_source source = {next, &job};
    struct swpipe *pipe = open_pipe(&job, SWPIPE_CLOCK);
    int64_t iteration;
    tap_ok(swpipe_depth(pipe) == 2 && swpipe_task_count(pipe) == 2 && swpipe_rank_count(pipe) == 2,
           "depth, tasks, ranks");
    tap_is_str(swpipe_task_name(pipe, 1), "Step", "the name of a task");
    tap_is_str(swpipe_task_name(pipe, 2), NULL, "and of none");
    tap_is_int(swpipe_in_flight(pipe), 0, "nothing in flight");
    tap_ok(swpipe_fill(pipe, &source) == SWPIPE_OK && swpipe_in_flight(pipe) >= 1,
           "%d in flight when filled", swpipe_in_flight(pipe));
    tap_ok(swpipe_progress(pipe, &source, &iteration) == SWPIPE_OK && iteration == 0 &&
               swpipe_result(pipe, 1) == &values[1][0],
           "progress has the result of the iteration");
    swpipe_close(pipe);
    tap_ok(released_once(&job), "a pipeline that is closed in flight releases its batches");
}

static void test_failures(void)
{
    struct job job = {.fail_at = 5, .in_order = true};
    const struct swpipe_source source = {next, &job};
    struct swpipe *pipe = open_pipe(&job, SWPIPE_CLOCK);
    tap_ok(swpipe_run(pipe, &source, NULL) == SWPIPE_FAILED, "a task fails: %s",
           swpipe_error(pipe));
    swpipe_drain(pipe);
    tap_ok(released_once(&job), "and each batch is released exactly once");
    swpipe_close(pipe);
    job = (struct job){.fail_at = -1, .fail_start = 1};
    pipe = open_pipe(&job, SWPIPE_CLOCK);
    tap_ok(swpipe_run(pipe, &source, NULL) != SWPIPE_OK &&
               strstr(swpipe_error(pipe), "hook at the start of thread"),
           "a hook that fails: %s", swpipe_error(pipe));
    swpipe_close(pipe);
    tap_ok(released_once(&job), "releases, too");
}

/* An iteration is retired with its last task, when its other sink is not yet submitted: the end of the run waits for it. */
static void test_other_sink(enum swpipe_driver driver)
{
    static const char plan[] =
        "swplan: 1\nname: sinks\nretire: last-task\nmachine: {launch_queue: 2}\nschedule:\n"
        "  Metrics: {stage: 0, stream: metrics, thread_group: metrics, work: {spin: 2ms}}\n"
        "  Update: {stage: 0, work: {spin: 10us}}\n";
    const struct swpipe_config config = {
        .threads = way, .plan_text = plan, .driver = driver, .proof_limit_ns = -1};
    struct job job = {.fail_at = -1};
    const struct swpipe_source source = {next, &job};
    struct swpipe_recorded recorded = {.legal = -2, .why = ""};
    struct swpipe *pipe;
    enum swpipe_status status = swpipe_open(&config, &pipe);
    if (status == SWPIPE_OK)
        status = swpipe_record(pipe, "");
    if (status == SWPIPE_OK)
        status = swpipe_run(pipe, &source, NULL);
    tap_ok(status == SWPIPE_OK, "a run with two sinks: %s", swpipe_error(pipe));
    (void)swpipe_recorded(pipe, &recorded);
    tap_ok(recorded.legal == 1, "ends when both are through: %s", recorded.why);
    swpipe_close(pipe);
}

#ifdef HAVE_CUDA
static int on_gpu(void *arg, int rank, const char *group)
{
    int gpu = -1;
    (void)rank, (void)group;
    cudaGetDevice(&gpu);
    return gpu == *(int *)arg ? 0 : -1;
}

static int on_gpu_of_arg(struct swpipe_context *context, void *arg)
{
    return on_gpu(arg, 0, "") ? swpipe_fail(context, "another GPU is the current one") : 0;
}

/* ---- memory in the middle of a run: beside work that waits for the task that wants it --------------------- */

enum { ALLOCATIONS = 4, PATIENCE_MS = 20000 };

struct beside {
    atomic_int allocated;
    atomic_bool late;
};

/* On the device, as a collective whose peers wait for the other task. */
static void await_memory(void *arg)
{
    struct beside *beside = arg;
    for (int ms = 0; atomic_load(&beside->allocated) == 0; ms++) {
        if (ms == PATIENCE_MS) {
            atomic_store(&beside->late, true);
            return;
        }
        usleep(1000);
    }
}

static int hold(struct swpipe_context *context, void *arg)
{
    return swpipe_launch(context, await_memory, arg);
}

static int take(struct swpipe_context *context, void *arg)
{
    struct beside *beside = arg;
    char name[8];
    for (int i = 0; i < ALLOCATIONS; i++) {
        snprintf(name, sizeof name, "m%d", i);
        if (!swpipe_alloc(context, name, (size_t)1 << (10 + i)))
            return -1;
    }
    atomic_fetch_add(&beside->allocated, 1);
    return 0;
}

static void test_memory_beside_work(void)
{
    static const char plan[] = "swplan: 1\nname: beside\nschedule:\n"
                               "  Hold: {stage: 0, stream: a, thread_group: one}\n"
                               "  Take: {stage: 1, stream: b, thread_group: one}\n";
    struct beside beside = {0};
    struct swpipe_task tasks[] = {{"Hold", hold, &beside, NULL, 0},
                                  {"Take", take, &beside, NULL, 0}};
    const struct swpipe_config config = {
        .threads = way, .plan_text = plan, .device = SWPIPE_CUDA, .tasks = tasks, .task_count = 2};
    struct job job = {.fail_at = -1};
    const struct swpipe_source source = {next, &job};
    struct swpipe *pipe;
    const bool done =
        swpipe_open(&config, &pipe) == SWPIPE_OK && swpipe_run(pipe, &source, NULL) == SWPIPE_OK;
    tap_ok(done && !atomic_load(&beside.late), "memory is to be had beside work: %s",
           swpipe_error(pipe));
    swpipe_close(pipe);
}

enum { UNTOUCHED = -1 }; /* the caller has called nothing of CUDA */

static void test_gpu(int wanted, int expected, int caller)
{
    struct swpipe_task task = {"Step", on_gpu_of_arg, &expected, NULL, 0};
    struct swpipe_config config = {.threads = way,
                                   .plan_text = plan_text,
                                   .plan_file = "hooks.yaml",
                                   .device = SWPIPE_CUDA,
                                   .gpu = wanted,
                                   .tasks = &task,
                                   .task_count = 1,
                                   .hooks = {.started = on_gpu, .arg = &expected}};
    struct job job = {.fail_at = -1};
    const struct swpipe_source source = {next, &job};
    struct swpipe *pipe;
    int after = -1;
    if (caller != UNTOUCHED)
        cudaSetDevice(caller);
    else
        cudaGetDevice(&caller);
    bool done =
        swpipe_open(&config, &pipe) == SWPIPE_OK && swpipe_run(pipe, &source, NULL) == SWPIPE_OK;
    cudaGetDevice(&after);
    tap_ok(done && after == caller, "GPU %d for a caller on %d: %s", expected, caller,
           swpipe_error(pipe));
    swpipe_close(pipe);
    cudaGetDevice(&after);
    tap_is_int(after, caller, "which stays the caller's");
}
#endif

#ifdef HAVE_CUDA
extern char **environ;

/* The environment in one text. */
static void write_environment(char *out, size_t size)
{
    size_t used = 0;
    for (char **at = environ; *at && used < size; at++)
        used += (size_t)snprintf(out + used, size - used, "%s\n", *at);
}

/* The last error, as the user finds it in a hook on the calling thread. */
static void look_at_error(void *arg, const struct swpipe_retired *what)
{
    int *wrong = arg;
    (void)what;
    *wrong += cudaPeekAtLastError() != (*wrong >= 1000 ? cudaErrorInvalidDevice : cudaSuccess);
}

static int slow(struct swpipe_context *context, void *arg)
{
    (void)arg;
    return swpipe_work(context); /* not done when the caller asks for it */
}

static void test_error(bool had_one, bool serial)
{
    static const char slow_plan[] =
        "swplan: 1\nname: slow\nschedule:\n  Step: {stage: 0, time: 2ms}\n";
    static char before[1 << 16], after[1 << 16];
    struct swpipe_task task = {"Step", slow, NULL, NULL, 0};
    int wrong = had_one ? 1000 : 0;
    struct swpipe_config config = {.threads = way,
                                   .plan_text = slow_plan,
                                   .device = SWPIPE_CUDA,
                                   .tasks = &task,
                                   .task_count = 1,
                                   .hooks = {.retired = look_at_error, .arg = &wrong}};
    struct job job = {.fail_at = -1};
    const struct swpipe_source source = {next, &job};
    struct swpipe *pipe;
    write_environment(before, sizeof before);
    (void)cudaGetLastError();
    if (had_one)
        (void)cudaSetDevice(99);
    enum swpipe_status status = swpipe_open(&config, &pipe);
    if (status == SWPIPE_OK)
        status = serial ? swpipe_run_serial(pipe, &source, NULL) : swpipe_run(pipe, &source, NULL);
    tap_ok(status == SWPIPE_OK, "a run: %s", swpipe_error(pipe));
    tap_is_int(wrong % 1000, 0, "a hook finds the caller's last error, %s",
               had_one ? "that there was" : "none");
    swpipe_close(pipe);
    tap_ok(cudaGetLastError() == (had_one ? cudaErrorInvalidDevice : cudaSuccess),
           "and the caller does behind it");
    write_environment(after, sizeof after);
    tap_is_str(after, before, "the environment is as it was");
}
#endif

/* Values and batches of iterations that are alive. */
struct alive {
    atomic_int values, most_values, batches, most_batches;
    bool launches; /* functions give the device work of a millisecond, and return at once */
    int left;
};

static struct alive alive;

static void grow(atomic_int *count, atomic_int *most)
{
    const int now = atomic_fetch_add(count, 1) + 1;
    if (now > atomic_load(most))
        atomic_store(most, now);
}

static void value_ends(void *value, void *arg)
{
    atomic_fetch_sub(&((struct alive *)arg)->values, 1);
    free(value);
}

static void batch_ends(void *arg, int rank, void *batch)
{
    (void)arg, (void)rank, (void)batch;
    atomic_fetch_sub(&alive.batches, 1);
}

static int next_alive(void *arg, int rank, void **batch)
{
    (void)rank;
    if (alive.left-- <= 0)
        return 0;
    *batch = arg;
    grow(&alive.batches, &alive.most_batches);
    return 1;
}

static void take_time(void *arg)
{
    (void)arg;
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static int work_or_wait(struct swpipe_context *context, void *arg)
{
    static const struct swpipe_kind kind = {.release = value_ends, .arg = &alive};
    if (arg) { /* the first task of an iteration */
        grow(&alive.values, &alive.most_values);
        if (swpipe_set(context, "x", malloc(1), &kind))
            return -1;
    }
    if (alive.launches)
        return swpipe_launch(context, take_time, NULL);
    take_time(NULL);
    return 0;
}

/* What the library holds is what predict says: the iterations that the device has not passed. */
static void test_alive(enum swpipe_driver driver, bool launches)
{
    static const char plan[] = "swplan: 1\nname: alive\nmax_depth: 3\nschedule:\n"
                               "  Load: {stage: 0, stream: m, time: 1ms, writes: [b]}\n"
                               "  Mid: {stage: 1, stream: n, time: 1ms, reads: [b]}\n"
                               "  Train: {stage: 2, time: 1ms, reads: [b]}\n"
                               "intra_iter_deps: [[Mid, Load], [Train, Mid]]\n"
                               "buffers: {b: {scope: iteration, bytes: 8B}}\n";
    const struct swpipe_task tasks[] = {{.name = "Load", .function = work_or_wait, .arg = &alive},
                                        {.name = "Mid", .function = work_or_wait},
                                        {.name = "Train", .function = work_or_wait}};
    const struct swpipe_config config = {.threads = way,
                                         .plan_text = plan,
                                         .tasks = tasks,
                                         .task_count = 3,
                                         .driver = driver,
                                         .hooks.release = batch_ends};
    const struct swpipe_source source = {next_alive, &alive};
    struct swpipe_answer answer = {.json = ""};
    struct swpipe *pipe;
    alive = (struct alive){.launches = launches, .left = 60};
    int predicted = 0;
    bool good =
        swpipe_open(&config, &pipe) == SWPIPE_OK && swpipe_predict(pipe, &answer) == SWPIPE_OK;
    const char *line = strstr(answer.json, "\"in_flight_max\":");
    good = good && line && sscanf(line, "\"in_flight_max\":%d", &predicted) == 1 &&
           predicted == 8 && swpipe_run(pipe, &source, NULL) == SWPIPE_OK;
    /* A host that does the work itself is never ahead of the device; its streams are soon told. */
    const int most = launches ? predicted : predicted - 2;
    tap_ok(good && alive.most_values <= most && alive.most_batches <= most,
           "%d values and %d batches of %d iterations are alive: %s", alive.most_values,
           alive.most_batches, most, swpipe_error(pipe));
    swpipe_close(pipe);
    tap_ok(alive.values == 0 && alive.batches == 0, "none at the end");
}

/* Threads that take their time to stop are no part of a run's time. */
static void stopped_late(void *arg, int rank, const char *group)
{
    (void)arg, (void)rank, (void)group;
    nanosleep(&(struct timespec){.tv_nsec = 400000000}, NULL);
}

static void test_seconds(void)
{
    struct job job = {.fail_at = -1};
    const struct swpipe_source source = {next, &job};
    const struct swpipe_config config = {
        .threads = way, .plan_text = plan_text, .hooks.stopped = stopped_late};
    struct timespec start, end;
    struct swpipe *pipe;
    double seconds = -1;
    swpipe_open(&config, &pipe);
    clock_gettime(CLOCK_MONOTONIC, &start);
    enum swpipe_status status = swpipe_run(pipe, &source, &seconds);
    clock_gettime(CLOCK_MONOTONIC, &end);
    double all = (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
    tap_ok(status == SWPIPE_OK && seconds > 0 && all - seconds > 0.39,
           "a run's seconds end when its device work is done: %.3f of %.3f", seconds, all);
    swpipe_close(pipe);
}

#ifdef HAVE_CUDA
/* A capture of the program's that forbids unsafe calls to all threads is not ended by what the library asks meanwhile. */
static void test_capture(enum swpipe_driver driver)
{
    struct job job = {.fail_at = -1, .in_order = true};
    const struct swpipe_source source = {next, &job};
    const struct swpipe_config config = {
        .threads = way, .plan_text = plan_text, .driver = driver, .device = SWPIPE_CUDA};
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    struct swpipe *pipe;
    cudaStream_t stream;
    cudaGraph_t graph = NULL;
    swpipe_open(&config, &pipe);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    bool begun = cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess;
    enum swpipe_status status = swpipe_run(pipe, &source, NULL);
    bool ended = cudaStreamEndCapture(stream, &graph) == cudaSuccess;
    tap_ok(begun && status == SWPIPE_OK && ended,
           "a run leaves a capture of the program's alone: %s",
           ended ? swpipe_error(pipe) : "it was ended");
    tap_ok(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess &&
               mode == cudaStreamCaptureModeGlobal,
           "and the thread has its mode again");
    if (graph)
        cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    swpipe_close(pipe);
}
#endif

static void test_way(bool cuda)
{
    test_other_sink(SWPIPE_CLOCK);
    test_other_sink(SWPIPE_DATAFLOW);
    test_seconds();
    for (int i = 0; i < 4; i++)
        test_alive(i & 1 ? SWPIPE_DATAFLOW : SWPIPE_CLOCK, i & 2);
    test_good(SWPIPE_CLOCK, false);
    test_good(SWPIPE_DATAFLOW, false);
    test_good(SWPIPE_CLOCK, true);
    test_early("submit", true);
    test_early("last-task", true);
    test_early("device", false);
    test_uneven(false);
    test_uneven(true);
    test_numbers();
    test_failures();
#ifdef HAVE_CUDA
    if (cuda) {
        int gpus = 0;
        cudaGetDeviceCount(&gpus);
        if (gpus >= 4) {
            test_gpu(SWPIPE_GPU(2), 2, 1);
            test_gpu(0, 3, 3);
            test_gpu(SWPIPE_GPU(0), 0, 2);
        } else {
            tap_note("GPUs by number: left out, for there are %d", gpus);
        }
        int has_pools = 0;
        cudaDeviceGetAttribute(&has_pools, cudaDevAttrMemoryPoolsSupported, 0);
        if (has_pools)
            test_memory_beside_work();
        else
            tap_note("memory beside work: left out, for the GPU has no pools");
        test_capture(SWPIPE_CLOCK);
        test_capture(SWPIPE_DATAFLOW);
        test_error(false, false);
        test_error(true, false);
        test_error(true, true);
    }
#endif
    (void)cuda;
}

int main(int argc, char **argv)
{
    const bool cuda = argc > 1 && strcmp(argv[1], "cuda") == 0;
    test_way(cuda);
    tap_note("functions are called on the caller's thread");
    way = SWPIPE_CALLER;
    test_way(cuda);
#ifdef HAVE_CUDA
    if (cuda) {
        tap_ok(swpipe_set_environment() == 2 && swpipe_set_environment() == 0 &&
                   strcmp(getenv("NCCL_RUNTIME_CONNECT"), "0") == 0,
               "the environment is set where the program asks for it, once");
        struct swpipe_config config = {
            .threads = way, .plan_text = plan_text, .device = SWPIPE_CUDA, .gpu = SWPIPE_GPU(99)};
        struct swpipe *pipe;
        enum swpipe_status status = swpipe_open(&config, &pipe);
        tap_ok(status == SWPIPE_INPUT, "no such GPU: %s", swpipe_error(pipe));
        swpipe_close(pipe);
    }
#endif
#ifdef HAVE_CUDA
    if (argc > 1 && strcmp(argv[1], "untouched") == 0)
        test_gpu(SWPIPE_GPU(2), 2, UNTOUCHED);
#endif
    (void)argc, (void)argv;
    return tap_done();
}
