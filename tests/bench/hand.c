/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hand.c - the library beside what one would write by hand: SparseDist's graph, eight tasks on three lanes, three
 * iterations in flight.
 *
 *     hand [--rounds=N] [--ns=N]... [--iterations=N] [--peer=NAME=FILE]... [WAY...]
 *
 *     futex     a thread a lane, a counter a task; a lane sleeps on a counter that is too low
 *     streams   the library, data-flow: tasks are functions that launch their work
 *     workers   the same, but the function does the work itself, on a thread group a lane
 *     clock     as `streams`, under the clock
 *     caller    as `streams`, but all functions are called on the thread that runs the pipeline (SWPIPE_CALLER)
 *     c-clock   the same, under the clock
 *     record    as `streams`, recorded (swpipe_record), kept in memory
 *     store     the same, into a trace store
 *     plain     a loop on one thread: what a serial run costs at least
 *     serial    as `streams`, a serial run (swpipe_run_serial)
 *     c-serial  as `caller`, a serial run
 *
 * and the peers: NAME is `peer_run` of the shared object FILE (hand.sh makes those there are libraries for).
 *
 * All ways in turns, so many rounds; medians. A task computes for `ns` (0: nothing). Printed: microseconds an iteration
 * and a task, the same of processor time, iterations a second, context switches a task, and the rate as a part of that
 * of the first way. And the time that a word takes from core 0 to core 1 and back, before and after the rounds: in a
 * virtual machine it changes with time, and with it what empty tasks take.
 */

#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gpu/lib/swpipe.h"

enum { TASKS = 8, LANES = 3, IN_FLIGHT = 3, MOST_ROUNDS = 101, MOST_TIMES = 8, MOST_PEERS = 4 };

/* %s: a thread group a lane, or nothing: one for all. */
static const char plan[] =
    "swplan: 1\nname: hand\npipeline_depth: 3\nmax_depth: 3\nschedule:\n"
    "  T0: {stage: 0, stream: a%s}\n  T1: {stage: 1, stream: b%s}\n  T2: {stage: 1, stream: b%s}\n"
    "  T3: {stage: 2, stream: c%s}\n  T4: {stage: 2, stream: c%s}\n  T5: {stage: 2, stream: c%s}\n"
    "  T6: {stage: 2, stream: c%s}\n  T7: {stage: 2, stream: c%s}\n"
    "intra_iter_deps: [[T1, T0], [T2, T1], [T4, T2], [T4, T3], [T5, T2], [T5, T4], [T6, T5], [T7, "
    "T6]]\n"
    "inter_iter_deps: [[T5, T7], [T3, T7]]\n";
static const char *const names[TASKS] = {"T0", "T1", "T2", "T3", "T4", "T5", "T6", "T7"};

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int64_t task_ns;

static void work(void *arg)
{
    (void)arg;
    if (task_ns == 0)
        return;
    for (int64_t end_ns = now_ns() + task_ns; now_ns() < end_ns;)
        continue;
}

/* ---- by hand ----------------------------------------------------------------------------------- */

/* Iterations of a task that are done, and whether a lane sleeps until there are more. */
struct counter {
    _Alignas(64) atomic_int done;
    atomic_int sleepers;
};

static struct counter counters[TASKS];
static int iterations;

static void await(struct counter *counter, int least)
{
    for (int done; (done = atomic_load(&counter->done)) < least;) {
        atomic_fetch_add(&counter->sleepers, 1);
        syscall(SYS_futex, &counter->done, FUTEX_WAIT_PRIVATE, done, NULL, NULL, 0);
        atomic_fetch_sub(&counter->sleepers, 1);
    }
}

static void finish(struct counter *counter)
{
    atomic_fetch_add(&counter->done, 1);
    if (atomic_load(&counter->sleepers) > 0)
        syscall(SYS_futex, &counter->done, FUTEX_WAKE_PRIVATE, LANES, NULL, NULL, 0);
}

static void *lane_main(void *arg)
{
    static const struct {
        int first, last;
    } lanes[LANES] = {{0, 0}, {1, 2}, {3, 7}};
    /* per task: one of another lane that it needs in its iteration; -1: none */
    static const int needs[TASKS] = {-1, 0, -1, -1, 2, -1, -1, -1};
    int lane = *(const int *)arg;
    for (int i = 0; i < iterations; i++) {
        if (lane == 0)
            await(&counters[TASKS - 1], i + 1 - IN_FLIGHT);
        for (int task = lanes[lane].first; task <= lanes[lane].last; task++) {
            if (needs[task] >= 0)
                await(&counters[needs[task]], i + 1);
            work(NULL);
            finish(&counters[task]);
        }
    }
    return NULL;
}

static bool run_futex(void)
{
    static const int numbers[LANES] = {0, 1, 2};
    pthread_t lanes[LANES];
    memset(counters, 0, sizeof counters);
    for (int lane = 0; lane < LANES; lane++)
        if (pthread_create(&lanes[lane], NULL, lane_main, (void *)&numbers[lane]))
            return false;
    for (int lane = 0; lane < LANES; lane++)
        pthread_join(lanes[lane], NULL);
    return true;
}

/* ---- one task after another -------------------------------------------------------------------- */

static bool run_plain(void)
{
    for (int i = 0; i < iterations; i++)
        for (int task = 0; task < TASKS; task++)
            work(NULL);
    return true;
}

/* ---- the library ------------------------------------------------------------------------------- */

static int launch(struct swpipe_context *context, void *arg)
{
    return swpipe_launch(context, work, arg);
}

static int compute(struct swpipe_context *context, void *arg)
{
    (void)context;
    work(arg);
    return 0;
}

static int next_batch(void *arg, int rank, void **batch)
{
    (void)rank;
    *batch = NULL;
    return (*(int *)arg)-- > 0;
}

typedef enum swpipe_status run_function(struct swpipe *pipe, const struct swpipe_source *source,
                                        double *seconds);

static bool run_library_by(run_function *run, enum swpipe_driver driver,
                           enum swpipe_threads threads, swpipe_function *function,
                           const char *record)
{
    struct swpipe_task tasks[TASKS];
    struct swpipe *pipe;
    char text[2 * sizeof plan];
    const char *a = "", *b = "", *c = "";
    if (function == compute)
        a = ", thread_group: a", b = ", thread_group: b", c = ", thread_group: c";
    snprintf(text, sizeof text, plan, a, b, b, c, c, c, c, c);
    for (int t = 0; t < TASKS; t++)
        tasks[t] = (struct swpipe_task){.name = names[t], .function = function};
    const struct swpipe_config config = {.plan_text = text,
                                         .plan_file = "hand",
                                         .tasks = tasks,
                                         .task_count = TASKS,
                                         .driver = driver,
                                         .threads = threads,
                                         .max_depth = driver == SWPIPE_DATAFLOW ? IN_FLIGHT : 0};
    int left = iterations;
    const struct swpipe_source source = {next_batch, &left};
    enum swpipe_status status = swpipe_open(&config, &pipe);
    if (status == SWPIPE_OK && record)
        status = swpipe_record(pipe, record);
    if (status == SWPIPE_OK)
        status = run(pipe, &source, NULL);
    if (status != SWPIPE_OK)
        fprintf(stderr, "hand: %s\n", swpipe_error(pipe));
    swpipe_close(pipe);
    return status == SWPIPE_OK;
}

static bool run_library(enum swpipe_driver driver, enum swpipe_threads threads,
                        swpipe_function *function, const char *record)
{
    return run_library_by(swpipe_run, driver, threads, function, record);
}

static bool run_streams(void)
{
    return run_library(SWPIPE_DATAFLOW, SWPIPE_WORKERS, launch, NULL);
}
static bool run_workers(void)
{
    return run_library(SWPIPE_DATAFLOW, SWPIPE_WORKERS, compute, NULL);
}
static bool run_clock(void)
{
    return run_library(SWPIPE_CLOCK, SWPIPE_WORKERS, launch, NULL);
}
static bool run_caller(void)
{
    return run_library(SWPIPE_DATAFLOW, SWPIPE_CALLER, launch, NULL);
}
static bool run_caller_clock(void)
{
    return run_library(SWPIPE_CLOCK, SWPIPE_CALLER, launch, NULL);
}
static bool run_serial(void)
{
    return run_library_by(swpipe_run_serial, SWPIPE_DATAFLOW, SWPIPE_WORKERS, launch, NULL);
}
static bool run_caller_serial(void)
{
    return run_library_by(swpipe_run_serial, SWPIPE_DATAFLOW, SWPIPE_CALLER, launch, NULL);
}
static bool run_record(void)
{
    return run_library(SWPIPE_DATAFLOW, SWPIPE_WORKERS, launch, "");
}

static bool run_store(void)
{
    char path[] = "/tmp/hand.XXXXXX";
    int file = mkstemp(path);
    if (file < 0)
        return false;
    close(file);
    bool good = run_library(SWPIPE_DATAFLOW, SWPIPE_WORKERS, launch, path);
    unlink(path);
    return good;
}

/* ---- all of them, in turns --------------------------------------------------------------------- */

typedef bool peer_function(int iterations, int in_flight, void (*work)(void *));

enum { OWN_WAYS = 11, MOST_WAYS = OWN_WAYS + MOST_PEERS };
static struct way {
    const char *name;
    bool (*run)(void); /* NULL: a peer */
    peer_function *peer;
} ways[MOST_WAYS] = {
    {.name = "futex", .run = run_futex},           {.name = "streams", .run = run_streams},
    {.name = "workers", .run = run_workers},       {.name = "clock", .run = run_clock},
    {.name = "caller", .run = run_caller},         {.name = "c-clock", .run = run_caller_clock},
    {.name = "record", .run = run_record},         {.name = "store", .run = run_store},
    {.name = "plain", .run = run_plain},           {.name = "serial", .run = run_serial},
    {.name = "c-serial", .run = run_caller_serial}};
static int way_count = OWN_WAYS;

static bool run_way(const struct way *way)
{
    return way->run ? way->run() : way->peer(iterations, IN_FLIGHT, work);
}

/* NAME=FILE */
static bool add_peer(char *text)
{
    char *file = strchr(text, '=');
    if (!file || way_count == MOST_WAYS)
        return false;
    *file++ = '\0';
    void *library = dlopen(file, RTLD_NOW);
    void *found = library ? dlsym(library, "peer_run") : NULL;
    if (!found) {
        fprintf(stderr, "hand: %s\n", dlerror());
        return false;
    }
    struct way *way = &ways[way_count++];
    way->name = text;
    memcpy(&way->peer, &found, sizeof found);
    return true;
}

/* ---- from core to core ------------------------------------------------------------------------- */

enum { THROWS = 20000 };

static _Alignas(64) atomic_int ball;

static void stay_on(size_t core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void throw_and_catch(int own)
{
    for (int i = own; i < 2 * THROWS; i += 2) {
        while (atomic_load_explicit(&ball, memory_order_acquire) != i)
            continue;
        atomic_store_explicit(&ball, i + 1, memory_order_release);
    }
}

static void *second_player(void *arg)
{
    (void)arg;
    stay_on(1);
    throw_and_catch(1);
    return NULL;
}

/* Nanoseconds there and back; 0: there is one core, or no thread. */
static double round_trip_ns(void)
{
    cpu_set_t mine;
    pthread_t second;
    if (sched_getaffinity(0, sizeof mine, &mine) != 0 || !CPU_ISSET(0, &mine) ||
        !CPU_ISSET(1, &mine))
        return 0;
    atomic_store(&ball, 0);
    if (pthread_create(&second, NULL, second_player, NULL))
        return 0;
    stay_on(0);
    int64_t begin_ns = now_ns();
    throw_and_catch(0);
    int64_t end_ns = now_ns();
    pthread_join(second, NULL);
    sched_setaffinity(0, sizeof mine, &mine);
    return (double)(end_ns - begin_ns) / THROWS;
}

/* ---- rounds ------------------------------------------------------------------------------------ */

struct figures {
    double iteration_us[MOST_ROUNDS], busy_us[MOST_ROUNDS], switches[MOST_ROUNDS];
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

static double switches(const struct rusage *usage)
{
    return (double)(usage->ru_nvcsw + usage->ru_nivcsw);
}

static double busy_us(const struct rusage *usage)
{
    return 1e6 * (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
           (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
}

static bool measure(const struct way *way, struct figures *out, int round)
{
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    int64_t begin_ns = now_ns();
    if (!run_way(way))
        return false;
    out->iteration_us[round] = 1e-3 * (double)(now_ns() - begin_ns) / iterations;
    getrusage(RUSAGE_SELF, &after);
    out->busy_us[round] = (busy_us(&after) - busy_us(&before)) / iterations / TASKS;
    out->switches[round] = (switches(&after) - switches(&before)) / iterations / TASKS;
    return true;
}

static bool compare(int rounds, int given, const bool *chosen)
{
    static struct figures figures[MOST_WAYS];
    double first_us = 0;
    iterations = given ? given : (int)(400000000 / (8 * task_ns + 40000));
    const double before_ns = round_trip_ns();
    for (int round = 0; round < rounds; round++)
        for (int w = 0; w < way_count; w++)
            if (chosen[w] && !measure(&ways[w], &figures[w], round))
                return false;
    printf("tasks of %lld us, %d iterations, %d rounds; from core to core and back %.0f, %.0f ns\n",
           (long long)task_ns / 1000, iterations, rounds, before_ns, round_trip_ns());
    for (int w = 0; w < way_count; w++) {
        if (!chosen[w])
            continue;
        double us = median(figures[w].iteration_us, rounds);
        first_us = first_us > 0 ? first_us : us;
        printf("  %-8s %8.2f us an iteration, a task %7.2f us, busy %7.2f us, %5.2f switches; "
               "%8.0f it/s %6.2f\n",
               ways[w].name, us, us / TASKS, median(figures[w].busy_us, rounds),
               median(figures[w].switches, rounds), 1e6 / us, first_us / us);
    }
    return true;
}

static bool choose(const char *name, bool *chosen)
{
    for (int w = 0; w < way_count; w++)
        if (strcmp(ways[w].name, name) == 0)
            return chosen[w] = true;
    return false;
}

int main(int argc, char **argv)
{
    int64_t times[MOST_TIMES] = {0, 10000, 100000};
    int rounds = 7, given = 0, named = 0, wanted = 0;
    bool chosen[MOST_WAYS] = {false}, good = true;
    for (int i = 1; i < argc && good; i++) {
        if (strncmp(argv[i], "--rounds=", 9) == 0)
            rounds = atoi(argv[i] + 9);
        else if (strncmp(argv[i], "--iterations=", 13) == 0)
            wanted = atoi(argv[i] + 13);
        else if (strncmp(argv[i], "--peer=", 7) == 0)
            good = add_peer(argv[i] + 7);
        else if (strncmp(argv[i], "--ns=", 5) == 0 && given < MOST_TIMES)
            times[given++] = atoll(argv[i] + 5);
        else if ((good = choose(argv[i], chosen)))
            named++;
    }
    if (!good || wanted < 0 || rounds < 1 || rounds > MOST_ROUNDS) {
        fprintf(stderr,
                "usage: hand [--rounds=N] [--ns=N]... [--iterations=N] [--peer=NAME=FILE]... "
                "[futex|streams|workers|clock|caller|c-clock|record|store|plain|serial|c-serial]..."
                "\n");
        return 2;
    }
    for (int w = 0; named == 0 && w < way_count; w++)
        chosen[w] = true;
    for (int t = 0; t < (given ? given : 3) && good; t++) {
        task_ns = times[t];
        good = compare(rounds, wanted, chosen);
    }
    return good ? 0 : 1;
}
