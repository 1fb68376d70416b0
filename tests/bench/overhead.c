/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overhead.c - what the runtime costs the host, a task: against the same calls written straight in C.
 *
 *     overhead [--device=host|cuda] [--iterations=N] [--spin=NS] [--json]
 *
 *     task     tasks that do nothing, one thread group, two streams in turn, each waiting for the one
 *              before it. Measured on their thread, from one task's function to the next one's: all the
 *              runtime does between them (event recorded, waiter woken, next taken, dependence
 *              awaited, stream made to wait). Straight in C: record the event, make the other stream
 *              wait, in a loop.
 *     fire     data-flow: from the end of a task's submission, the last that another one needs, until
 *              that one is taken from its queue: by the same thread, and by another, which waits for it.
 *              From the steps of a recorded run
 *     record   the first again, in a run that is recorded (swpipe_record)
 *
 * Figures are medians over iterations, in nanoseconds. With the cuda device, straight in C means CUDA's own
 * calls; with the host device, those of gpu/device/device.h, which are the same as the runtime makes.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sqlite3.h>
#include <time.h>
#include <unistd.h>

#include "gpu/device/device.h"
#include "gpu/lib/swpipe.h"

#ifdef HAVE_CUDA
#include <cuda_runtime_api.h>
#endif

enum { TASKS = 8, WARMUP = 50, ITERATIONS = 2000 };

static const char chain[] = "swplan: 1\nname: chain\nmax_depth: 2\nschedule:\n"
                            "  T0: {stage: 0, stream: a}\n  T1: {stage: 0, stream: b}\n"
                            "  T2: {stage: 0, stream: a}\n  T3: {stage: 0, stream: b}\n"
                            "  T4: {stage: 0, stream: a}\n  T5: {stage: 0, stream: b}\n"
                            "  T6: {stage: 0, stream: a}\n  T7: {stage: 0, stream: b}\n"
                            "intra_iter_deps: [[T1, T0], [T2, T1], [T3, T2], [T4, T3], [T5, T4],\n"
                            "                  [T6, T5], [T7, T6]]\n";
static const char pair[] = "swplan: 1\nname: pair\nmax_depth: 1\nschedule:\n"
                           "  T0: {stage: 0, stream: a, thread_group: one}\n"
                           "  T1: {stage: 0, stream: b, thread_group: %s}\n"
                           "intra_iter_deps: [[T1, T0]]\n";

struct bench {
    enum swpipe_device device;
    int iterations, left;
    int64_t spin_ns;
    int64_t (*at)[TASKS]; /* [WARMUP + iterations]: when each task was called */
};

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t median(int64_t *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

/* The median over the iterations of what passed between two entries, a step. */
static int64_t between(const struct bench *bench, int from, int to, int steps)
{
    int64_t *values = malloc((size_t)bench->iterations * sizeof *values), result = -1;
    for (int i = 0; values && i < bench->iterations; i++)
        values[i] = (bench->at[WARMUP + i][to] - bench->at[WARMUP + i][from]) / steps;
    if (values)
        result = median(values, bench->iterations);
    free(values);
    return result;
}

/* ---- the runtime ------------------------------------------------------------------------------- */

struct place {
    struct bench *bench;
    int task;
};

static int note_time(struct swpipe_context *context, void *arg)
{
    const struct place *place = arg;
    int64_t *row = place->bench->at[swpipe_iteration(context)];
    row[place->task] = now_ns();
    return 0;
}

static int next_batch(void *arg, int rank, void **batch)
{
    struct bench *bench = arg;
    (void)rank;
    *batch = NULL;
    return bench->left-- > 0;
}

static bool run_plan(struct bench *bench, const char *plan, int count, enum swpipe_driver driver,
                     const char *record)
{
    static const char *const names[] = {"T0", "T1", "T2", "T3", "T4", "T5", "T6", "T7"};
    struct place places[TASKS];
    struct swpipe_task tasks[TASKS];
    struct swpipe *pipe;
    for (int t = 0; t < count; t++) {
        places[t] = (struct place){bench, t};
        tasks[t] = (struct swpipe_task){.name = names[t], .function = note_time, .arg = &places[t]};
    }
    const struct swpipe_config config = {.plan_text = plan,
                                         .plan_file = "overhead",
                                         .tasks = tasks,
                                         .task_count = (size_t)count,
                                         .driver = driver,
                                         .device = bench->device,
                                         .spin_ns = bench->spin_ns};
    const struct swpipe_source source = {next_batch, bench};
    bench->left = WARMUP + bench->iterations;
    enum swpipe_status status = swpipe_open(&config, &pipe);
    if (status == SWPIPE_OK)
        status = swpipe_record(pipe, record);
    if (status == SWPIPE_OK)
        status = swpipe_run(pipe, &source, NULL);
    if (status != SWPIPE_OK)
        fprintf(stderr, "overhead: %s\n", swpipe_error(pipe));
    swpipe_close(pipe);
    return status == SWPIPE_OK;
}

/* ---- straight in C ----------------------------------------------------------------------------- */

static bool direct_host(struct bench *bench)
{
    const struct device_config config = {.kind = DEVICE_KIND_HOST, .ranks = 1};
    struct device_world *world = NULL;
    struct device *device = NULL;
    struct device_stream *streams[2] = {NULL, NULL};
    struct device_event *events[TASKS] = {NULL};
    struct diag diag;
    diag_init(&diag);
    bool good =
        !device_world_open(&config, &world, &diag) && !device_open(world, 0, &device, &diag);
    for (int s = 0; s < 2 && good; s++)
        good = !device_stream_open(device, s ? "b" : "a", &streams[s], &diag);
    for (int t = 0; t < TASKS && good; t++)
        good = !device_event_open(device, &events[t], &diag);
    for (int i = 0; i < WARMUP + bench->iterations && good; i++) {
        for (int t = 0; t < TASKS && good; t++) {
            good = t == 0 || !device_wait(streams[t % 2], events[t - 1], NULL, &diag);
            bench->at[i][t] = now_ns();
            good = good && !device_record(streams[t % 2], events[t], NULL, &diag);
        }
        good = good && !device_event_sync(events[TASKS - 1], DEVICE_FOREVER, &diag);
    }
    if (!good)
        diag_print(&diag, "overhead", false, stderr);
    for (int t = 0; t < TASKS; t++)
        if (events[t])
            device_event_close(events[t]);
    for (int s = 0; s < 2; s++)
        if (streams[s])
            device_stream_close(streams[s]);
    if (device)
        device_close(device);
    if (world)
        device_world_close(world);
    diag_fini(&diag);
    return good;
}

#ifdef HAVE_CUDA
static bool direct_cuda(struct bench *bench)
{
    cudaStream_t streams[2] = {NULL, NULL};
    cudaEvent_t events[TASKS] = {NULL};
    cudaError_t error = cudaSuccess;
    for (int s = 0; s < 2 && !error; s++)
        error = cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking);
    for (int t = 0; t < TASKS && !error; t++)
        error = cudaEventCreateWithFlags(&events[t], cudaEventDisableTiming);
    for (int i = 0; i < WARMUP + bench->iterations && !error; i++) {
        for (int t = 0; t < TASKS && !error; t++) {
            error = t ? cudaStreamWaitEvent(streams[t % 2], events[t - 1], 0) : cudaSuccess;
            bench->at[i][t] = now_ns();
            error = error ? error : cudaEventRecord(events[t], streams[t % 2]);
        }
        error = error ? error : cudaEventSynchronize(events[TASKS - 1]);
    }
    if (error)
        fprintf(stderr, "overhead: %s\n", cudaGetErrorString(error));
    for (int t = 0; t < TASKS; t++)
        if (events[t])
            cudaEventDestroy(events[t]);
    for (int s = 0; s < 2; s++)
        if (streams[s])
            cudaStreamDestroy(streams[s]);
    return !error;
}
#else
static bool direct_cuda(struct bench *bench)
{
    (void)bench;
    fprintf(stderr, "overhead: this build has no cuda device\n");
    return false;
}
#endif

/* ---- the figures ------------------------------------------------------------------------------- */

struct figures {
    int64_t direct, clock, dataflow, recorded; /* a task */
    int64_t fire_same, fire_other;
};

/* T0's last step and the taking of T1, iteration by iteration, from the trace store. */
static bool read_fire(struct bench *bench, const char *path)
{
    static const char sql[] = "SELECT iteration, op = 'take', time_ns FROM step WHERE"
                              " (task = 'T0' AND op = 'complete') OR (task = 'T1' AND op = 'take')";
    sqlite3 *db = NULL;
    sqlite3_stmt *row = NULL;
    bool good = sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
                sqlite3_prepare_v2(db, sql, -1, &row, NULL) == SQLITE_OK;
    while (good && sqlite3_step(row) == SQLITE_ROW)
        bench->at[sqlite3_column_int64(row, 0)][sqlite3_column_int(row, 1)] =
            sqlite3_column_int64(row, 2);
    sqlite3_finalize(row);
    sqlite3_close(db);
    return good;
}

static bool measure_fire(struct bench *bench, const char *group, int64_t *out)
{
    char plan[sizeof pair + 16], path[] = "/tmp/overhead.XXXXXX";
    int file = mkstemp(path);
    if (file < 0)
        return false;
    close(file);
    snprintf(plan, sizeof plan, pair, group);
    bool good = run_plan(bench, plan, 2, SWPIPE_DATAFLOW, path) && read_fire(bench, path);
    if (good)
        *out = between(bench, 0, 1, 1);
    unlink(path);
    return good;
}

static bool measure_task(struct bench *bench, enum swpipe_driver driver, const char *record,
                         int64_t *out)
{
    if (!run_plan(bench, chain, TASKS, driver, record))
        return false;
    *out = between(bench, 0, TASKS - 1, TASKS - 1);
    return true;
}

static bool measure(struct bench *bench, struct figures *out)
{
    if (!(bench->device == SWPIPE_CUDA ? direct_cuda(bench) : direct_host(bench)))
        return false;
    out->direct = between(bench, 0, TASKS - 1, TASKS - 1);
    return measure_task(bench, SWPIPE_CLOCK, NULL, &out->clock) &&
           measure_task(bench, SWPIPE_DATAFLOW, NULL, &out->dataflow) &&
           measure_task(bench, SWPIPE_CLOCK, "", &out->recorded) &&
           measure_fire(bench, "one", &out->fire_same) &&
           measure_fire(bench, "two", &out->fire_other);
}

static void print(const struct bench *bench, const struct figures *figures, bool json)
{
    const char *device = bench->device == SWPIPE_CUDA ? "cuda" : "host";
    const struct {
        const char *key, *words;
        int64_t ns;
    } rows[] = {
        {"direct_ns", "a task, straight in C", figures->direct},
        {"clock_ns", "a task, clock driver", figures->clock},
        {"dataflow_ns", "a task, data-flow driver", figures->dataflow},
        {"recorded_ns", "a task, clock driver, recorded", figures->recorded},
        {"overhead_ns", "more than straight in C (clock)", figures->clock - figures->direct},
        {"fire_same_ns", "fired on the same thread", figures->fire_same},
        {"fire_other_ns", "fired on another thread", figures->fire_other}};
    size_t count = sizeof rows / sizeof *rows;
    if (json)
        printf("{\"device\":\"%s\",\"iterations\":%d", device, bench->iterations);
    for (size_t i = 0; i < count && json; i++)
        printf(",\"%s\":%lld", rows[i].key, (long long)rows[i].ns);
    for (size_t i = 0; i < count && !json; i++)
        printf("%-32s %8.2f us\n", rows[i].words, 1e-3 * (double)rows[i].ns);
    if (json)
        puts("}");
}

int main(int argc, char **argv)
{
    struct bench bench = {.device = SWPIPE_HOST, .iterations = ITERATIONS};
    struct figures figures;
    bool json = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else if (strcmp(argv[i], "--device=cuda") == 0)
            bench.device = SWPIPE_CUDA;
        else if (strncmp(argv[i], "--iterations=", 13) == 0)
            bench.iterations = atoi(argv[i] + 13);
        else if (strncmp(argv[i], "--spin=", 7) == 0)
            bench.spin_ns = atoll(argv[i] + 7);
        else if (strcmp(argv[i], "--device=host") != 0)
            bench.iterations = 0;
    }
    if (bench.iterations < 1 || bench.iterations > 1000000) {
        fprintf(stderr,
                "usage: overhead [--device=host|cuda] [--iterations=N] [--spin=NS] [--json]\n");
        return 2;
    }
    bench.at = calloc((size_t)(WARMUP + bench.iterations), sizeof *bench.at);
    bool good = bench.at && measure(&bench, &figures);
    if (good)
        print(&bench, &figures, json);
    free(bench.at);
    return good ? 0 : 1;
}
