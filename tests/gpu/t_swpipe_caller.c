/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_swpipe_caller.c - a pipeline whose functions are called on the caller's thread (SWPIPE_CALLER): on which thread, in
 * which order, with the results of a run with threads, as a run that the plan allows; what it waits for, and for how
 * long; what is refused. Random plans run both ways. The other tests of the library run both ways, too.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check/verify.h"
#include "gpu/lib/swpipe.h"
#include "tests/harness.h"
#include "tests/random_plan.h"
#include "tests/tap.h"

/* ---- a graph of tasks on four threads, whose values tell the order ----------------------------- */

enum { TASKS = 5, MOST_RANKS = 2, MOST_ITERATIONS = 60, NOTHING = -1 };

static const char plan_text[] =
    "swplan: 1\nname: caller\n%s"
    "schedule:\n"
    "  Read: {stage: 0, stream: a, thread_group: io, work: {host: 1us}}\n"
    "  Copy: {stage: 0, stream: a, thread_group: copy, globally_ordered: true}\n"
    "  Left: {stage: 1, stream: b, thread_group: left, holds: [m]}\n"
    "  Right: {stage: 1, stream: c, thread_group: right, holds: [m]}\n"
    "  Join: {stage: 2, stream: b, thread_group: join, globally_ordered: true}\n"
    "intra_iter_deps: [[Copy, Read], [Left, Copy], [Right, Copy], [Join, Left], [Join, Right]]\n"
    "inter_iter_deps: [[Left, Left], [Right, Join], [Join, Join, 2]]\n";

static const struct needs {
    int task, distance;
} needs[TASKS][4] = {{{NOTHING, 0}},
                     {{0, 0}, {NOTHING, 0}},
                     {{1, 0}, {2, 1}, {NOTHING, 0}},
                     {{1, 0}, {4, 1}, {NOTHING, 0}},
                     {{2, 0}, {3, 0}, {4, 2}, {NOTHING, 0}}};

struct model;

/* One call of a function: what its host part and its device part have computed. */
struct cell {
    struct model *model;
    int task, rank;
    int64_t iteration;
    uint64_t on_host, on_device;
    pthread_t thread;
};

struct model {
    struct cell cells[TASKS][MOST_RANKS][MOST_ITERATIONS];
    int fetched[MOST_RANKS], iterations;
    atomic_int calls, running, most_running;
    int64_t nap_ns; /* that Left takes */
};

static uint64_t mix(uint64_t a, uint64_t b)
{
    a = (a ^ b) * UINT64_C(0x9e3779b97f4a7c15);
    return a ^ (a >> 29);
}

/* Of a task from those that it needs: 0 where one of them has not been yet. */
static uint64_t value(const struct model *model, int task, int rank, int64_t iteration, bool device)
{
    uint64_t sum = mix((uint64_t)task + 1, (uint64_t)iteration + 1);
    for (const struct needs *need = needs[task]; need->task != NOTHING; need++) {
        if (iteration < need->distance)
            continue;
        const struct cell *cell = &model->cells[need->task][rank][iteration - need->distance];
        sum = mix(sum, device ? cell->on_device : cell->on_host);
    }
    return sum;
}

static void compute_on_device(void *arg)
{
    struct cell *cell = arg;
    cell->on_device = value(cell->model, cell->task, cell->rank, cell->iteration, true);
}

static const char *const names[TASKS] = {"Read", "Copy", "Left", "Right", "Join"};

struct task_arg {
    struct model *model;
    int task;
};

static int compute(struct swpipe_context *context, void *arg)
{
    const struct task_arg *what = arg;
    struct model *model = what->model;
    int rank = swpipe_rank(context);
    int64_t iteration = swpipe_iteration(context);
    struct cell *cell = &model->cells[what->task][rank][iteration];
    int running = atomic_fetch_add(&model->running, 1) + 1;
    if (running > atomic_load(&model->most_running))
        atomic_store(&model->most_running, running);
    atomic_fetch_add(&model->calls, 1);
    cell->model = model;
    cell->task = what->task;
    cell->rank = rank;
    cell->iteration = iteration;
    cell->thread = pthread_self();
    cell->on_host = value(model, what->task, rank, iteration, false);
    if (what->task == 2 && model->nap_ns)
        nanosleep(&(struct timespec){.tv_nsec = model->nap_ns}, NULL);
    atomic_fetch_sub(&model->running, 1);
    return swpipe_launch(context, compute_on_device, cell);
}

/* The number of cells that a run one after another would have left otherwise. */
static int count_wrong(const struct model *model, int ranks)
{
    static struct model serial;
    int wrong = 0;
    memset(&serial, 0, sizeof serial);
    for (int64_t i = 0; i < model->iterations; i++)
        for (int task = 0; task < TASKS; task++)
            for (int rank = 0; rank < ranks; rank++) {
                uint64_t expected = value(&serial, task, rank, i, true);
                const struct cell *cell = &model->cells[task][rank][i];
                serial.cells[task][rank][i].on_device = expected;
                wrong += cell->on_device != expected || cell->on_host != expected;
            }
    return wrong;
}

static int next_batch(void *arg, int rank, void **batch)
{
    struct model *model = arg;
    *batch = model;
    return model->fetched[rank] < model->iterations ? (model->fetched[rank]++, 1) : 0;
}

static void reset(struct model *model, int iterations)
{
    memset(model, 0, sizeof *model);
    model->iterations = iterations;
}

/* `keys`: more lines of the plan. */
static struct swpipe *open_keys(struct model *model, enum swpipe_driver driver, const char *keys,
                                struct swpipe_config config)
{
    static struct task_arg args[TASKS]; /* of one pipeline at a time */
    static char text[2 * sizeof plan_text];
    char more[sizeof plan_text];
    struct swpipe_task tasks[TASKS];
    struct swpipe *pipe;
    for (int t = 0; t < TASKS; t++) {
        args[t] = (struct task_arg){model, t};
        tasks[t] = (struct swpipe_task){.name = names[t], .function = compute, .arg = &args[t]};
    }
    /* turns in an order in which the data-flow driver can give them */
    snprintf(more, sizeof more, "%s%s", keys,
             driver == SWPIPE_DATAFLOW ? "enqueue_order: stage-ascending\n" : "");
    snprintf(text, sizeof text, plan_text, more);
    config.plan_text = text;
    config.plan_file = "caller.yaml";
    config.tasks = tasks;
    config.task_count = TASKS;
    config.driver = driver;
    enum swpipe_status status = swpipe_open(&config, &pipe);
    tap_ok(status == SWPIPE_OK, "a pipeline opens: %s", swpipe_error(pipe));
    return pipe;
}

static const char *driver_name(enum swpipe_driver driver)
{
    return driver == SWPIPE_CLOCK ? "clock" : "dataflow";
}

/* ---- the thread ---------------------------------------------------------------------------------- */

/* Threads of this process with the name of a worker; -1: they cannot be told. */
static int count_workers(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = tasks ? 0 : -1;
    for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
        char path[300], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (!file)
            continue;
        if (fgets(name, sizeof name, file))
            count += strncmp(name, "r0:io", 5) == 0 || strncmp(name, "r0:join", 7) == 0;
        fclose(file);
    }
    if (tasks)
        closedir(tasks);
    return count;
}

static bool all_on(const struct model *model, pthread_t thread, int64_t from, int64_t to)
{
    for (int64_t i = from; i < to; i++)
        for (int task = 0; task < TASKS; task++)
            if (!pthread_equal(model->cells[task][0][i].thread, thread))
                return false;
    return true;
}

struct hook_log {
    int started, stopped;
    pthread_t starter, stopper;
};

static int note_start(void *arg, int rank, const char *group)
{
    struct hook_log *log = arg;
    (void)rank, (void)group;
    log->started++;
    log->starter = pthread_self();
    return 0;
}

static void note_stop(void *arg, int rank, const char *group)
{
    struct hook_log *log = arg;
    (void)rank, (void)group;
    log->stopped++;
    log->stopper = pthread_self();
}

static void test_thread(enum swpipe_driver driver)
{
    static struct model model;
    struct hook_log log = {0};
    const struct swpipe_source source = {next_batch, &model};
    const struct swpipe_config config = {
        .threads = SWPIPE_CALLER,
        .hooks = {.started = note_start, .stopped = note_stop, .arg = &log}};
    const char *name = driver_name(driver);
    reset(&model, MOST_ITERATIONS);
    struct swpipe *pipe = open_keys(&model, driver, "", config);
    tap_is_int(swpipe_fill(pipe, &source), SWPIPE_OK, "%s: filled", name);
    if (count_workers() >= 0)
        tap_is_int(count_workers(), 0, "%s: there is no worker thread", name);
    else
        tap_skip("threads have no names here");
    int calls = atomic_load(&model.calls);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    tap_is_int(atomic_load(&model.calls), calls, "%s: between two calls nothing is called", name);
    enum swpipe_status status;
    while ((status = swpipe_progress(pipe, &source, NULL)) == SWPIPE_OK)
        continue;
    tap_is_int(status, SWPIPE_END, "%s: to the end: %s", name, swpipe_error(pipe));
    tap_ok(all_on(&model, pthread_self(), 0, MOST_ITERATIONS),
           "%s: functions are called on the caller's thread", name);
    tap_is_int(atomic_load(&model.most_running), 1, "%s: one at a time", name);
    tap_is_int(count_wrong(&model, 1), 0, "%s: with the results of a serial run", name);
    reset(&model, 5);
    tap_is_int(swpipe_run_serial(pipe, &source, NULL), SWPIPE_OK, "%s: a serial run: %s", name,
               swpipe_error(pipe));
    tap_ok(all_on(&model, pthread_self(), 0, 5) && count_wrong(&model, 1) == 0,
           "%s: as well on this thread", name);
    swpipe_close(pipe);
    tap_ok(log.started > 0 && log.started == log.stopped &&
               pthread_equal(log.starter, pthread_self()) &&
               pthread_equal(log.stopper, pthread_self()),
           "%s: so are the hooks, %d times", name, log.started);
}

/* With workers the same functions are called elsewhere: else the test above could not fail. */
static void test_workers(void)
{
    static struct model model;
    const struct swpipe_source source = {next_batch, &model};
    reset(&model, MOST_ITERATIONS);
    struct swpipe *pipe =
        open_keys(&model, SWPIPE_CLOCK, "", (struct swpipe_config){.threads = SWPIPE_WORKERS});
    tap_is_int(swpipe_fill(pipe, &source), SWPIPE_OK, "workers: filled");
    int found = count_workers();
    for (int ms = 0; ms < 20000 && found >= 0 && found < 2;
         ms++) { /* each names itself when it starts */
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        found = count_workers();
    }
    if (found >= 0)
        tap_is_int(found, 2, "workers: two of them are found by their names");
    else
        tap_skip("threads have no names here");
    tap_is_int(swpipe_drain(pipe), SWPIPE_OK, "workers: drained");
    tap_ok(!pthread_equal(model.cells[0][0][0].thread, pthread_self()),
           "workers: functions are called there");
    swpipe_close(pipe);
}

/* ---- one caller after another -------------------------------------------------------------------- */

struct guest {
    struct swpipe *pipe;
    struct swpipe_source source;
    int steps;
    enum swpipe_status status;
};

static void *progress_elsewhere(void *arg)
{
    struct guest *guest = arg;
    guest->status = SWPIPE_OK;
    for (int i = 0; i < guest->steps && guest->status == SWPIPE_OK; i++)
        guest->status = swpipe_progress(guest->pipe, &guest->source, NULL);
    return NULL;
}

/* The thread of a call is that of its functions, whichever it is. */
static void test_callers(void)
{
    static struct model model;
    pthread_t thread;
    reset(&model, 30);
    struct guest guest = {.source = {next_batch, &model}, .steps = 6};
    guest.pipe =
        open_keys(&model, SWPIPE_CLOCK, "", (struct swpipe_config){.threads = SWPIPE_CALLER});
    bool filled = swpipe_fill(guest.pipe, &guest.source) == SWPIPE_OK;
    int first = model.fetched[0];
    bool started = pthread_create(&thread, NULL, progress_elsewhere, &guest) == 0;
    if (started)
        pthread_join(thread, NULL);
    int second = model.fetched[0];
    tap_ok(filled && started && guest.status == SWPIPE_OK && second == first + 6,
           "another thread goes on: %s", swpipe_error(guest.pipe));
    /* of the tasks of stage 0 that were fetched there, each was called there */
    bool there = true;
    for (int i = first; i < second; i++)
        there = there && pthread_equal(model.cells[0][0][i].thread, thread);
    tap_ok(there, "and calls the functions");
    tap_is_int(swpipe_drain(guest.pipe), SWPIPE_OK, "the first one drains");
    model.iterations = second;
    tap_is_int(count_wrong(&model, 1), 0, "and the results are right");
    swpipe_close(guest.pipe);
}

/* ---- results, and what the machine says of the run ------------------------------------------------ */

static void test_results(enum swpipe_driver driver, enum swpipe_threads threads, const char *keys,
                         int ranks)
{
    static struct model model;
    struct swpipe_recorded recorded = {0};
    const struct swpipe_source source = {next_batch, &model};
    reset(&model, 40);
    struct swpipe *pipe =
        open_keys(&model, driver, keys, (struct swpipe_config){.threads = threads, .ranks = ranks});
    enum swpipe_status status = swpipe_run(pipe, &source, NULL);
    tap_ok(status == SWPIPE_OK && count_wrong(&model, ranks) == 0,
           "%s, %d rank%s, %s, %.*s: the results are right: %s", driver_name(driver), ranks,
           ranks == 1 ? "" : "s", threads == SWPIPE_CALLER ? "caller" : "workers",
           (int)strcspn(keys, "\n"), keys, swpipe_error(pipe));
    reset(&model, 40);
    if (swpipe_record(pipe, "") == SWPIPE_OK)
        status = swpipe_run(pipe, &source, NULL);
    bool judged = swpipe_recorded(pipe, &recorded) == SWPIPE_OK && recorded.legal == 1 &&
                  recorded.iterations == 40;
    tap_ok(status == SWPIPE_OK && judged && count_wrong(&model, ranks) == 0,
           "and recorded, its steps are those of the machine: %s%s", swpipe_error(pipe),
           recorded.why ? recorded.why : "");
    swpipe_close(pipe);
}

static void test_all_results(void)
{
    static const char *const keys[] = {
        "",
        "retire: device\n",
        "retire: last-task\n",
        "machine: {launch_queue: 3}\n",
        "machine: {launch_queue: 1}\nretire: device\n",
        "num_slots: 6\n",
        "elide_same_stream: true\n",
    };
    for (int driver = 0; driver < 2; driver++)
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            for (int ranks = 1; ranks <= MOST_RANKS; ranks++)
                test_results((enum swpipe_driver)driver, SWPIPE_CALLER, keys[k], ranks);
    test_results(SWPIPE_DATAFLOW, SWPIPE_WORKERS, "", 1);
}

/* ---- two pipelines of one thread ------------------------------------------------------------------ */

static void test_two(void)
{
    static struct model models[2];
    static struct task_arg args[2][TASKS];
    static char text[2 * sizeof plan_text];
    struct swpipe *pipes[2];
    bool good = true;
    snprintf(text, sizeof text, plan_text, "enqueue_order: stage-ascending\n");
    for (int p = 0; p < 2; p++) {
        struct swpipe_task tasks[TASKS];
        reset(&models[p], 30);
        for (int t = 0; t < TASKS; t++) {
            args[p][t] = (struct task_arg){&models[p], t};
            tasks[t] =
                (struct swpipe_task){.name = names[t], .function = compute, .arg = &args[p][t]};
        }
        const struct swpipe_config config = {.plan_text = text,
                                             .tasks = tasks,
                                             .task_count = TASKS,
                                             .driver = (enum swpipe_driver)p,
                                             .threads = SWPIPE_CALLER};
        good = swpipe_open(&config, &pipes[p]) == SWPIPE_OK && good;
    }
    for (int p = 0; p < 2; p++)
        good =
            swpipe_fill(pipes[p], &(struct swpipe_source){next_batch, &models[p]}) == SWPIPE_OK &&
            good;
    enum swpipe_status status[2] = {SWPIPE_OK, SWPIPE_OK};
    while (status[0] == SWPIPE_OK || status[1] == SWPIPE_OK)
        for (int p = 0; p < 2; p++)
            status[p] =
                swpipe_progress(pipes[p], &(struct swpipe_source){next_batch, &models[p]}, NULL);
    tap_ok(good && status[0] == SWPIPE_END && status[1] == SWPIPE_END &&
               count_wrong(&models[0], 1) == 0 && count_wrong(&models[1], 1) == 0,
           "one thread drives two pipelines in turns: %s%s", swpipe_error(pipes[0]),
           swpipe_error(pipes[1]));
    swpipe_close(pipes[0]);
    swpipe_close(pipes[1]);
}

/* ---- limits ---------------------------------------------------------------------------------------- */

/* Functions may take longer than a limit of waiting: nothing is waited for meanwhile. */
static void test_slow_functions(enum swpipe_driver driver)
{
    static struct model model;
    const struct swpipe_source source = {next_batch, &model};
    reset(&model, 3);
    model.nap_ns = 700000000;
    /* the device's own work must be over in time also on a busy machine */
    struct swpipe *pipe = open_keys(&model, driver, "retire: device\n",
                                    (struct swpipe_config){.threads = SWPIPE_CALLER,
                                                           .wait_timeout_ns = 600000000,
                                                           .progress_timeout_ns = 600000000});
    enum swpipe_status status = swpipe_run(pipe, &source, NULL);
    tap_ok(status == SWPIPE_OK && count_wrong(&model, 1) == 0,
           "%s: functions longer than a limit of waiting: %s", driver_name(driver),
           swpipe_error(pipe));
    swpipe_close(pipe);
}

static double seconds_since(const struct timespec *start)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) + 1e-9 * (double)(now.tv_nsec - start->tv_nsec);
}

static int count_down(void *arg, int rank, void **batch)
{
    int *left = arg;
    (void)rank;
    *batch = NULL;
    return (*left)-- > 0;
}

static bool says(const struct swpipe *pipe, const char *what)
{
    bool is = strstr(swpipe_error(pipe), what);
    if (!is)
        tap_note("'%s' is not in: %s", what, swpipe_error(pipe));
    return is;
}

/* Two threads that wait for each other: no limit has to pass before it is known. */
static void test_deadlock(void)
{
    static const char crossed[] =
        "swplan: 1\nname: crossed\nschedule:\n"
        "  A: {stage: 0, thread_group: a}\n  B: {stage: 1, thread_group: a}\n"
        "  C: {stage: 0, thread_group: c}\n  D: {stage: 1, thread_group: c}\n"
        "enqueue_order: [A, B, C, D]\n"
        "intra_iter_deps: [[A, D], [C, B]]\n";
    int left = 10;
    const struct swpipe_source source = {count_down, &left};
    const struct swpipe_config config = {
        .plan_text = crossed, .proof_limit_ns = -1, .threads = SWPIPE_CALLER};
    struct swpipe *pipe;
    struct timespec start;
    enum swpipe_status status = swpipe_open(&config, &pipe);
    if (status == SWPIPE_INPUT) { /* refused by a Corollary, whatever the limit of the proof */
        tap_skip("the plan is refused");
        swpipe_close(pipe);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &start);
    status = swpipe_run(pipe, &source, NULL);
    tap_ok(status == SWPIPE_TIMEOUT && says(pipe, "waits for ever") &&
               says(pipe, "waits for the CPU part of"),
           "threads that wait for each other: %s", swpipe_error(pipe));
    tap_ok(seconds_since(&start) < 25, "are known before a limit has passed");
    tap_is_int(swpipe_drain(pipe), SWPIPE_OK, "and the pipeline can be drained");
    swpipe_close(pipe);
}

struct stay {
    sem_t leave;
    int left;
};

static void stay(void *arg)
{
    struct stay *what = arg;
    while (sem_wait(&what->leave) != 0 && errno == EINTR)
        continue;
}

static int launch_stay(struct swpipe_context *context, void *arg)
{
    return swpipe_iteration(context) == 0 ? swpipe_launch(context, stay, arg)
                                          : swpipe_work(context);
}

static int work(struct swpipe_context *context, void *arg)
{
    (void)arg;
    return swpipe_work(context);
}

/* Device work that does not end: the launch queue behind it is full, so A is held by the device, and B by A. Which limit
   passes says which of them is told. */
static void test_held_by_device(int64_t wait_ns, int64_t progress_ns, const char *what)
{
    static const char queue[] = "swplan: 1\nname: queue\nmachine: {launch_queue: 3}\nschedule:\n"
                                "  First: {stage: 0, stream: s, thread_group: a}\n"
                                "  A: {stage: 0, stream: s, thread_group: a}\n"
                                "  B: {stage: 0, stream: t, thread_group: b}\n"
                                "intra_iter_deps: [[A, First], [B, A]]\n";
    struct stay what_stays;
    struct swpipe_task tasks[] = {{.name = "First", .function = launch_stay, .arg = &what_stays},
                                  {.name = "A", .function = work},
                                  {.name = "B", .function = work}};
    const struct swpipe_config config = {.plan_text = queue,
                                         .tasks = tasks,
                                         .task_count = 3,
                                         .wait_timeout_ns = wait_ns,
                                         .progress_timeout_ns = progress_ns,
                                         .threads = SWPIPE_CALLER};
    const struct swpipe_source source = {count_down, &what_stays.left};
    struct swpipe *pipe;
    what_stays.left = 20;
    sem_init(&what_stays.leave, 0, 0);
    bool open = swpipe_open(&config, &pipe) == SWPIPE_OK;
    enum swpipe_status status = open ? swpipe_run(pipe, &source, NULL) : SWPIPE_SYSTEM;
    tap_ok(status == SWPIPE_TIMEOUT && says(pipe, what), "device work that does not end: %s",
           swpipe_error(pipe));
    sem_post(&what_stays.leave);
    tap_is_int(swpipe_drain(pipe), SWPIPE_OK, "drained when it has ended");
    swpipe_close(pipe);
    sem_destroy(&what_stays.leave);
}

/* ---- what is refused ------------------------------------------------------------------------------- */

static void refuse(struct swpipe_config config, const char *what)
{
    struct swpipe *pipe;
    enum swpipe_status status = swpipe_open(&config, &pipe);
    tap_ok(status == SWPIPE_USAGE && says(pipe, what), "refused: %s", swpipe_error(pipe));
    swpipe_close(pipe);
}

static int sync_stream(struct swpipe_context *context, void *arg)
{
    (void)arg;
    return swpipe_sync(context);
}

static void test_refusals(void)
{
    char text[2 * sizeof plan_text];
    snprintf(text, sizeof text, plan_text, "");
    refuse((struct swpipe_config){.plan_text = text, .threads = (enum swpipe_threads)7},
           "threads is 7");
    refuse((struct swpipe_config){.plan_text = text, .threads = SWPIPE_CALLER, .spin_ns = 1000},
           "spin_ns is 1000");
    for (int ranks = 1; ranks <= 2; ranks++) {
        struct swpipe_task task = {.name = "Left", .function = sync_stream};
        struct swpipe *pipe;
        int left = 4;
        const struct swpipe_source source = {count_down, &left};
        const struct swpipe_config config = {.plan_text = text,
                                             .tasks = &task,
                                             .task_count = 1,
                                             .ranks = ranks,
                                             .threads = SWPIPE_CALLER};
        enum swpipe_status opened = swpipe_open(&config, &pipe);
        enum swpipe_status status = swpipe_run(pipe, &source, NULL);
        tap_ok(opened == SWPIPE_OK && status == (ranks == 1 ? SWPIPE_OK : SWPIPE_FAILED) &&
                   (ranks == 1 || says(pipe, "functions of other ranks")),
               "a function that waits for its stream, %d rank%s here: %s", ranks,
               ranks == 1 ? "" : "s", swpipe_error(pipe));
        swpipe_close(pipe);
    }
}

/* ---- random plans ---------------------------------------------------------------------------------- */

enum { QUICK = 60, LONG = 1500, RANDOM_ITERATIONS = 7, STATES = 20000, MOST_COMPLAINTS = 5 };

struct bench {
    uint64_t seed;
    const char *text;
    int complaints, ran, hung, refused;
};

static void complain(struct bench *bench, enum driver driver, const char *what, const char *detail)
{
    if (bench->complaints++ >= MOST_COMPLAINTS)
        return;
    tap_note("SWSIM_SEED=%" PRIu64 ", %s: %s: %s", bench->seed, driver_key(driver), what, detail);
    tap_note("%s", bench->text);
}

/* Does the host device do all that the plan says of the machine? Without a rule a run may hang that has a proof. */
static bool is_imitated(const struct plan *plan)
{
    bool eager = false;
    for (size_t c = 0; c < plan->comm_count; c++)
        eager |= plan->comms[c].eager_messages > 0 || plan->comms[c].eager_bytes > 0;
    return !eager && plan->machine.hw_queues == 0 && !plan->machine.launch_order_implicit;
}

/* 1: no interleaving hangs or fails; 0: some may; -1: not known. */
static int always_ends(const struct plan *plan, enum driver driver)
{
    static const enum property stops[] = {PROPERTY_DEADLOCK, PROPERTY_MESSAGE, PROPERTY_MISMATCH,
                                          PROPERTY_DRAIN};
    struct verify_options options = {
        .program = {.driver = driver, .iterations = -1}, .quick = true, .limits.states = STATES};
    struct verify_report report;
    struct diag diag;
    if (!is_imitated(plan))
        return -1;
    diag_init(&diag);
    int answer = 1;
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++)
        options.properties |= 1u << stops[i];
    if (verify_plan(plan, &options, &report, &diag) != STATUS_OK) {
        diag_fini(&diag);
        return -1;
    }
    answer = report.verdict == VERDICT_PROVED ? 1 : report.verdict == VERDICT_VIOLATED ? 0 : -1;
    verify_fini(&report);
    diag_fini(&diag);
    return answer;
}

struct data {
    int left[RANDOM_MAX_RANKS];
};

static int next_of_rank(void *arg, int rank, void **batch)
{
    struct data *data = arg;
    *batch = NULL;
    return data->left[rank]-- > 0;
}

static atomic_int calls;

static int count_and_work(struct swpipe_context *context, void *arg)
{
    (void)arg;
    atomic_fetch_add(&calls, 1);
    return swpipe_work(context);
}

struct ending {
    enum swpipe_status opened, ran, drained;
    int legal, calls;
    int64_t steps;
    char error[512];
};

/* Of one plan, one way; every other plan has functions, which do the plan's work. `patient`: with the library's own limits, as
   a run that must end may be slow on a busy machine. */
static struct ending run_plan(struct bench *bench, const struct plan *plan, enum driver driver,
                              enum swpipe_threads threads, bool patient)
{
    struct ending out = {.legal = -2};
    struct data data;
    struct swpipe_recorded recorded;
    struct swpipe *pipe;
    struct swpipe_task tasks[8];
    size_t count = 0;
    for (size_t t = 0; t < plan->pipeline.task_count && t < 8 && bench->seed % 2; t++)
        tasks[count++] =
            (struct swpipe_task){.name = plan->pipeline.tasks[t].name, .function = count_and_work};
    const struct swpipe_config config = {.plan_text = bench->text,
                                         .tasks = tasks,
                                         .task_count = count,
                                         .driver = driver == DRIVER_CLOCK ? SWPIPE_CLOCK
                                                                          : SWPIPE_DATAFLOW,
                                         .proof_limit_ns = -1,
                                         .wait_timeout_ns = patient ? 0 : 200000000,
                                         .progress_timeout_ns = patient ? 0 : 200000000,
                                         .threads = threads};
    for (int rank = 0; rank < RANDOM_MAX_RANKS; rank++)
        data.left[rank] = RANDOM_ITERATIONS;
    atomic_store(&calls, 0);
    out.opened = swpipe_open(&config, &pipe);
    snprintf(out.error, sizeof out.error, "%s", swpipe_error(pipe));
    if (out.opened == SWPIPE_OK) {
        swpipe_record(pipe, "");
        out.ran = swpipe_run(pipe, &(struct swpipe_source){next_of_rank, &data}, NULL);
        snprintf(out.error, sizeof out.error, "%s", swpipe_error(pipe));
        out.drained = swpipe_drain(pipe);
        if (swpipe_recorded(pipe, &recorded) == SWPIPE_OK) {
            out.legal = recorded.legal;
            out.steps = recorded.steps;
            if (recorded.legal == 0)
                snprintf(out.error, sizeof out.error, "%s", recorded.why);
        }
        out.calls = atomic_load(&calls);
    }
    swpipe_close(pipe);
    return out;
}

static void compare_ways(struct bench *bench, const struct plan *plan, enum driver driver)
{
    const int ends = always_ends(plan, driver);
    struct ending caller = run_plan(bench, plan, driver, SWPIPE_CALLER, ends == 1);
    if (caller.opened != SWPIPE_OK) {
        bench->refused++;
        struct ending workers = run_plan(bench, plan, driver, SWPIPE_WORKERS, false);
        if (workers.opened != caller.opened || strcmp(workers.error, caller.error) != 0)
            complain(bench, driver, "refused one way", caller.error);
        return;
    }
    if (caller.legal == 0)
        complain(bench, driver, "a run that the machine does not allow", caller.error);
    if (caller.drained != SWPIPE_OK)
        complain(bench, driver, "it cannot be drained", swpipe_status_name(caller.drained));
    if (ends != 1) { /* it may hang; if it does not, it is a run like others */
        bench->hung += caller.ran != SWPIPE_OK;
        if (caller.ran == SWPIPE_USAGE || caller.ran == SWPIPE_SYSTEM)
            complain(bench, driver, swpipe_status_name(caller.ran), caller.error);
        return;
    }
    bench->ran++;
    /* Under data-flow the driver of a rank with turns has one step more where it comes to turns of iterations that do not
       exist. */
    const struct pipeline *pipeline = &plan->pipeline;
    bool has_turns = false;
    for (size_t t = 0; t < pipeline->task_count; t++) {
        has_turns |= pipeline->tasks[t].globally_ordered;
        for (size_t i = 0; i < pipeline->override_count; i++)
            has_turns |=
                pipeline->overrides[i].tasks && pipeline->overrides[i].tasks[t].globally_ordered;
    }
    const long long passing = driver == DRIVER_DATAFLOW && has_turns ? plan->ranks : 0;
    struct ending workers = run_plan(bench, plan, driver, SWPIPE_WORKERS, true);
    if (caller.ran == SWPIPE_INPUT && workers.ran == SWPIPE_INPUT) /* more slots than a rank has */
        return;
    if (caller.ran != SWPIPE_OK || workers.ran != SWPIPE_OK)
        complain(bench, driver, "what always ends has failed",
                 caller.ran ? caller.error : workers.error);
    /* where functions of two threads push to one stream at a time, a record cannot tell them apart: swpipe(3) */
    else if (caller.legal != 1 || caller.calls != workers.calls ||
             (workers.legal == 1 && llabs(caller.steps - workers.steps) > passing)) {
        char detail[600];
        snprintf(detail, sizeof detail, "legal %d and %d, calls %d and %d, steps %d and %d %s",
                 caller.legal, workers.legal, caller.calls, workers.calls, (int)caller.steps,
                 (int)workers.steps, workers.error);
        complain(bench, driver, "two ways, two runs", detail);
    }
}

static void test_random(void)
{
    struct bench bench = {0};
    const uint64_t seed = env_seed();
    const int plans = env_plans(QUICK, LONG);
    for (int i = 0; i < plans; i++) {
        bench.seed = seed + (uint64_t)i;
        char *text = bench.seed / 2 % 2 ? random_wide_plan(bench.seed, RANDOM_PIPELINE)
                                        : random_pipeline(bench.seed);
        struct plan plan;
        bench.text = text;
        if (!text || !plan_of_text(text, &plan)) {
            complain(&bench, DRIVER_CLOCK, "no plan", "");
            free(text);
            continue;
        }
        compare_ways(&bench, &plan, DRIVER_CLOCK);
        compare_ways(&bench, &plan, DRIVER_DATAFLOW);
        plan_fini(&plan);
        free(text);
    }
    tap_is_int(bench.complaints, 0, "%d random plans under two drivers run as with threads", plans);
    tap_note("%d ran both ways, %d were refused, %d hung", bench.ran, bench.refused, bench.hung);
    if (plans >= QUICK)
        tap_ok(bench.ran >= plans / 4, "enough of them run, and are judged");
}

int main(void)
{
    if (env_number("SWSIM_SEED", 0)) { /* repeats a random plan only */
        test_random();
        return tap_done();
    }
    for (int driver = 0; driver < 2; driver++) {
        test_thread((enum swpipe_driver)driver);
        test_slow_functions((enum swpipe_driver)driver);
    }
    test_workers();
    test_callers();
    test_all_results();
    test_two();
    test_deadlock();
    test_held_by_device(200000000, -1, "waited longer than 200 ms for the CPU part of A");
    test_held_by_device(-1, 200000000, "of rank 0 did not finish in time");
    test_refusals();
    test_random();
    return tap_done();
}
