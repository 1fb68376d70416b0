/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_graph.c - steady periods as graphs (gpu/exec/graph.h) on the host device: what is launched by one call is legal
 * and computes what a serial run does; which plans are refused, and why; failures, stops and hangs in the
 * middle of launches; and the same through the public library.
 *
 * Plan `i` of the random ones comes from SWSIM_SEED + i, as in t_runtime.c.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/lib/swpipe.h"
#include "tests/harness.h"
#include "tests/random_plan.h"
#include "tests/tap.h"
#include "tests/trial.h"

enum { QUICK_PLANS = 60, LONG_PLANS = 2000, SHORT_MS = 300, PATIENT_MS = 5000, MAX_COMPLAINTS = 5 };
static const int64_t MS = 1000000;

/* ---- one run --------------------------------------------------------------------------------- */

static struct runtime_options usual(enum runtime_graph graph, int64_t iterations)
{
    return (struct runtime_options){.driver = DRIVER_CLOCK,
                                    .iterations = iterations,
                                    .graph = graph,
                                    .replay = true,
                                    .compare = true,
                                    .timeout_ns = 20000 * MS};
}

/* ---- plans that allow it --------------------------------------------------------------------- */

static const char QUICK[] =
    "swplan: 1\n"
    "name: quick\n"
    "ranks: 2\n"
    "schedule:\n"
    "  Copy: {stage: 0, stream: memcpy, writes: [x], work: {copy: h2d, bytes: 4KiB}}\n"
    "  Make: {stage: 0, stream: memcpy, writes: [z, v], work: {axpy: {elements: 1000}}}\n"
    "  Exchange: {stage: 1, stream: comm, reads: [x], writes: [y], globally_ordered: true,\n"
    "             work: {collective: all_to_all, comm: dp, bytes: 4KiB}}\n"
    "  Train: {stage: 2, thread_group: other, reads: [y, z, w], writes: [w]}\n"
    "  Keep: {stage: 2, stream: back, reads: [w, v], work: {copy: d2h, bytes: 1KiB}}\n"
    "intra_iter_deps: [[Exchange, Copy], [Train, Exchange], [Train, Make], [Keep, Train]]\n"
    "inter_iter_deps: [[Train, Keep]]\n"
    "buffers: {x: {scope: iteration}, y: {scope: iteration}, z: {scope: iteration},\n"
    "          v: {scope: iteration}, w: {scope: shared}}\n";

/* 3 periods deep and a dependence on the iteration before: 4 slots. A period is steady when its oldest
   iteration is at least the second one. */
static void test_quick(void)
{
    struct trial trial;
    trial_text(&trial, QUICK, usual(RUNTIME_GRAPH_REQUIRE, 500));
    tap_ok(trial_matched(&trial),
           "500 iterations of two ranks as graphs: legal, results as in serial");
    tap_is_int(trial.result.tasks, 2 * 5 * 500, "all their tasks have stamps");
    tap_is_int(trial.result.graph.periods, 2 * 502, "502 periods a rank");
    tap_is_int(trial.result.graph.launches, 2 * 497, "all but fill and drain by one launch");
    tap_is_int(trial.result.graph.graphs, 2 * 4, "of as many graphs as there are slots");
    if (trial.status)
        trial_tell(&trial);
    trial_fini(&trial);
    trial_text(&trial, QUICK, usual(RUNTIME_GRAPH_OFF, 20));
    tap_ok(trial_matched(&trial) && trial.result.graph.periods == 0,
           "without graphs there are none");
    trial_fini(&trial);
}

static void test_few_iterations(void)
{
    for (int64_t iterations = 0; iterations < 6; iterations++) {
        struct trial trial;
        trial_text(&trial, QUICK, usual(RUNTIME_GRAPH_REQUIRE, iterations));
        bool steady = iterations > 3;
        tap_ok(trial_matched(&trial) && trial.result.iterations == iterations &&
                   trial.result.graph.launches == (steady ? 2 * (iterations - 3) : 0),
               "%" PRId64 " iterations", iterations);
        if (trial.status)
            trial_tell(&trial);
        trial_fini(&trial);
    }
}

/* An odd number of places, and work that differs between even and odd iterations: twice the graphs. */
static void test_phases(void)
{
    struct trial trial;
    static const char text[] =
        "swplan: 1\n"
        "schedule:\n"
        "  A: {stage: 0, stream: a, writes: [x], work: {axpy: {elements: 100}}}\n"
        "  B: {stage: 1, stream: b, reads: [x], writes: [y]}\n"
        "  C: {stage: 2, stream: c, reads: [x, y], writes: [z]}\n"
        "intra_iter_deps: [[B, A], [C, B]]\n"
        "buffers: {x: {scope: iteration}, y: {scope: iteration}, z: {scope: shared}}\n";
    trial_text(&trial, text, usual(RUNTIME_GRAPH_REQUIRE, 60));
    tap_ok(trial_matched(&trial), "three places and alternating work");
    tap_is_int(trial.result.graph.graphs, 6, "six graphs");
    trial_fini(&trial);
}

/* Ranks may have different numbers of iterations, stages and orders. */
static void test_ranks(void)
{
    struct trial trial;
    static const char text[] =
        "swplan: 1\n"
        "ranks: 2\n"
        "batches: [40, 25]\n"
        "schedule:\n"
        "  A: {stage: 0, stream: a, writes: [x], work: {copy: h2d, bytes: 1KiB}}\n"
        "  B: {stage: 1, stream: b, reads: [x], writes: [y], globally_ordered: true}\n"
        "intra_iter_deps: [[B, A]]\n"
        "rank_overrides: {1: {schedule: {B: {stage: 2}}}}\n"
        "buffers: {x: {scope: iteration}, y: {scope: shared}}\n";
    trial_text(&trial, text, usual(RUNTIME_GRAPH_REQUIRE, 40));
    tap_ok(trial_matched(&trial), "ranks that differ");
    tap_ok(trial.result.graph.launches > 40, "both have graphs: %" PRId64 " launches",
           trial.result.graph.launches);
    if (!trial_matched(&trial))
        trial_tell(&trial);
    trial_fini(&trial);
}

static void test_torchrec(void)
{
    glob_t files = files_source("plans/reference/*.yaml");
    int launched = 0;
    for (size_t i = 0; i < files.gl_pathc; i++) {
        struct trial trial;
        trial_file(&trial, files.gl_pathv[i], usual(RUNTIME_GRAPH_AUTO, 12));
        tap_ok(trial_matched(&trial) &&
                   (trial.result.graph.launches > 0 || trial_says(&trial, "no graphs")),
               "%s: %" PRId64 " launches", files.gl_pathv[i], trial.result.graph.launches);
        if (!trial_matched(&trial))
            trial_tell(&trial);
        launched += trial.result.graph.launches > 0;
        trial_fini(&trial);
    }
    tap_ok(launched >= 10, "%d of the TorchRec plans run as graphs", launched);
    globfree(&files);
}

/* ---- plans that do not ----------------------------------------------------------------------- */

struct refusal {
    const char *keys, *a, *reason; /* of the plan, of task A, in the message */
};

static void test_refusals(void)
{
    static const struct refusal refusals[] = {
        {"retire: last-task\n", "", "retire is not 'device'"},
        {"slot_reset: submit\n", "", "slot_reset is not 'admit'"},
        {"num_slots: 1\n", "", "num_slots is too small"},
        {"retired_dep: skip\n", "", "retired_dep is 'skip'"},
        {"num_slots: 65\n", "", "65 places, more than 64 graphs"},
        {"machine: {launch_queue: 4}\n", "", "machine.launch_queue"},
        {"machine: {lazy_load: true}\n", "", "machine.lazy_load"},
        {"machine: {first_use_blocks: true}\n", "", "machine.first_use_blocks"},
        {"", ", host_sync: stream", "A: the host waits for the device in it"},
        {"", ", sync_after: stream", "A: the host waits for the device in it"},
        {"", ", host_after: 1us", "A: CPU work goes on beside its device work"},
        {"", ", work: {copy: h2d, bytes: 1KiB, pageable: true}", "A: the host waits"},
        {"inter_iter_deps: [[A, B]]\n", "", "A waits for B of a later period"},
    };
    char text[600];
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct refusal *refusal = &refusals[i];
        struct trial trial;
        snprintf(text, sizeof text,
                 "swplan: 1\n%sschedule: {A: {stage: 0%s}, B: {stage: 2, stream: b}}\n"
                 "intra_iter_deps: [[B, A]]\n",
                 refusal->keys, refusal->a);
        trial_text(&trial, text, usual(RUNTIME_GRAPH_REQUIRE, 4));
        tap_ok(trial.status == STATUS_USAGE && trial_says(&trial, refusal->reason), "refused: %s",
               refusal->reason);
        if (!trial_says(&trial, refusal->reason))
            trial_tell(&trial);
        trial_fini(&trial);
    }
}

/* Wishes that cannot be met are dropped, with a note. */
static void test_falls_back(void)
{
    struct trial trial;
    struct runtime_options options = usual(RUNTIME_GRAPH_AUTO, 20);
    options.driver = DRIVER_DATAFLOW;
    trial_text(&trial, QUICK, options);
    tap_ok(trial_matched(&trial) && trial.result.graph.launches == 0,
           "data-flow runs without graphs");
    tap_ok(trial_says(&trial, "no graphs: the data-flow driver has no periods"), "and says why");
    trial_fini(&trial);
    options.graph = RUNTIME_GRAPH_REQUIRE;
    trial_text(&trial, QUICK, options);
    tap_is_int(trial.status, STATUS_USAGE, "or not at all");
    trial_fini(&trial);
    options.driver = DRIVER_NONE;
    trial_text(&trial, "swplan: 1\nthreads: {r0.main: [{host: 1us}]}\n", options);
    tap_ok(trial_says(&trial, "only plans of the pipeline form have periods"),
           "nor has a host program");
    trial_fini(&trial);
    options = usual(RUNTIME_GRAPH_AUTO, 4);
    options.serial = true;
    trial_text(&trial, QUICK, options);
    tap_is_int(trial.status, STATUS_USAGE, "a serial run has no graphs");
    trial_fini(&trial);
}

/* ---- ends before the end --------------------------------------------------------------------- */

static const char LONG_RUN[] = "swplan: 1\n"
                               "ranks: 2\n"
                               "schedule:\n"
                               "  Copy: {stage: 0, stream: memcpy, time: 1ms}\n"
                               "  Meet: {stage: 1, time: 1ms, globally_ordered: true,\n"
                               "         work: {collective: all_reduce, comm: dp, bytes: 4KiB}}\n"
                               "intra_iter_deps: [[Meet, Copy]]\n";

static void test_failure(void)
{
    struct trial trial;
    struct runtime_options options = usual(RUNTIME_GRAPH_REQUIRE, 100000);
    options.inject.given = true;
    options.inject.rank = 1;
    options.inject.number = 100;
    trial_text(&trial, LONG_RUN, options);
    tap_ok(trial.status == STATUS_VIOLATED && !trial.result.finished,
           "an operation of a launch that fails, fails the run");
    tap_ok(trial_says(&trial, "injected failure of operation"), "the reason is told");
    tap_ok(trial.result.graph.launches > 0, "it was in a launch");
    tap_ok(trial.result.legal != ANSWER_NO, "what happened was legal");
    tap_ok(!trial.result.hung, "every agent is woken by the failure, not by the watchdog");
    trial_fini(&trial);
}

struct stopper {
    atomic_int stop;
    int wish;
};

static void *stop_soon(void *arg)
{
    struct stopper *stopper = arg;
    nanosleep(&(struct timespec){.tv_nsec = 100 * (long)MS}, NULL);
    atomic_store(&stopper->stop, stopper->wish);
    return NULL;
}

static void test_stop(int wish)
{
    struct trial trial;
    struct stopper stopper = {.wish = wish};
    struct runtime_options options = usual(RUNTIME_GRAPH_REQUIRE, 1000000);
    pthread_t thread;
    options.stop = &stopper.stop;
    if (pthread_create(&thread, NULL, stop_soon, &stopper))
        abort();
    trial_text(&trial, LONG_RUN, options);
    pthread_join(thread, NULL);
    tap_ok(trial.status == STATUS_VIOLATED && trial.result.interrupted, "a stop interrupts");
    tap_ok(trial_says(&trial, "in flight has finished") == (wish == RUNTIME_DRAIN),
           wish == RUNTIME_DRAIN ? "what is launched finishes" : "what is launched is aborted");
    tap_ok(trial.result.legal == (wish == RUNTIME_ABORT ? trial.result.legal : ANSWER_YES),
           "what happened was legal");
    if (trial.result.legal == ANSWER_NO)
        trial_tell(&trial);
    trial_fini(&trial);
}

/* Rank 0 has a launch in which nobody meets it. */
static void test_hang(void)
{
    struct trial trial;
    struct runtime_options options = usual(RUNTIME_GRAPH_REQUIRE, 40);
    char text[sizeof LONG_RUN + 40];
    snprintf(text, sizeof text, "%sbatches: [40, 20]\n", LONG_RUN);
    options.timeout_ns = SHORT_MS * MS;
    trial_text(&trial, text, options);
    tap_ok(trial.status == STATUS_VIOLATED && trial.result.hung, "a launch that hangs is found");
    tap_ok(trial.result.legal == ANSWER_YES && trial.result.blocked_count > 0,
           "and the machine says who waits for whom");
    if (trial.result.legal != ANSWER_YES)
        trial_tell(&trial);
    trial_fini(&trial);
}

/* ---- random plans ---------------------------------------------------------------------------- */

static void try_random(uint64_t seed, int *launched, int *complaints)
{
    struct trial trial;
    struct runtime_options options = usual(RUNTIME_GRAPH_AUTO, 12);
    char *text = random_plan(seed, RANDOM_PIPELINE);
    if (!text)
        abort();
    options.timeout_ns = SHORT_MS / 2 * MS;
    options.compare = false;
    trial_text(&trial, text, options);
    if (!trial_is_possible(&trial) &&
        trial.result.hung) { /* on a busy machine a run may just be slow */
        trial_fini(&trial);
        options.timeout_ns = PATIENT_MS * MS;
        trial_text(&trial, text, options);
    }
    *launched += trial.ran && trial.result.graph.launches > 0;
    if (!trial_is_possible(&trial) && (*complaints)++ < MAX_COMPLAINTS) {
        tap_note("SWSIM_SEED=%" PRIu64 ":", seed);
        trial_tell(&trial);
        tap_note("%s", text);
    }
    trial_fini(&trial);
    free(text);
}

static void test_random(void)
{
    uint64_t seed = env_number("SWSIM_SEED", 1);
    int plans = env_plans(QUICK_PLANS, LONG_PLANS);
    int launched = 0, complaints = 0;
    for (int i = 0; i < plans; i++)
        try_random(seed + (uint64_t)i, &launched, &complaints);
    tap_is_int(complaints, 0, "%d random pipelines, %d of them as graphs", plans, launched);
    tap_ok(plans < 20 || launched > plans / 10, "enough of them are");
}

/* ---- the public library ---------------------------------------------------------------------- */

static const char LITTLE[] = "swplan: 1\n"
                             "name: little\n"
                             "schedule:\n"
                             "  Load: {stage: 0, stream: memcpy, thread_group: io, writes: [x]}\n"
                             "  Add: {stage: 1, reads: [x], writes: [sum]}\n"
                             "intra_iter_deps: [[Add, Load]]\n"
                             "inter_iter_deps: [[Add, Add]]\n"
                             "buffers: {x: {scope: iteration}, sum: {scope: shared}}\n";

/* Load writes 1, 2, 3, ... to x; Add adds x to the sum. The counter differs from iteration to
   iteration, so it lies in memory of the device. */
struct model {
    int counter, sum; /* of the device */
    int loads, adds;  /* calls of the functions */
    bool allocates;
    struct pair {
        struct model *model;
        int *x, *sum;
    } pairs[64];
    int pairs_used;
};

static void load_on_device(void *arg)
{
    struct pair *pair = arg;
    *pair->x = ++pair->model->counter;
}

static void add_on_device(void *arg)
{
    struct pair *pair = arg;
    *pair->sum += *pair->x;
    pair->model->sum = *pair->sum;
}

static struct pair *new_pair(struct swpipe_context *context, struct model *model)
{
    struct pair *pair = &model->pairs[model->pairs_used++ % 64];
    *pair = (struct pair){model, swpipe_buffer(context, "x", NULL),
                          swpipe_buffer(context, "sum", NULL)};
    return pair;
}

static pthread_mutex_t pairs_lock = PTHREAD_MUTEX_INITIALIZER;

static int load(struct swpipe_context *context, void *arg)
{
    struct model *model = arg;
    pthread_mutex_lock(&pairs_lock);
    model->loads++;
    struct pair *pair = new_pair(context, model);
    pthread_mutex_unlock(&pairs_lock);
    if (model->allocates && !swpipe_alloc(context, "more", 64))
        return -1;
    return swpipe_launch(context, load_on_device, pair);
}

static int add(struct swpipe_context *context, void *arg)
{
    struct model *model = arg;
    pthread_mutex_lock(&pairs_lock);
    model->adds++;
    struct pair *pair = new_pair(context, model);
    pthread_mutex_unlock(&pairs_lock);
    return swpipe_launch(context, add_on_device, pair);
}

struct data {
    int left;
};

static int next_batch(void *arg, int rank, void **batch)
{
    struct data *data = arg;
    (void)rank;
    *batch = data;
    return data->left-- > 0;
}

static struct swpipe *open_little(struct model *model, enum swpipe_graph graph, size_t device_only,
                                  enum swpipe_status *status)
{
    struct swpipe_task tasks[] = {{.name = "Load", .function = load, .arg = model},
                                  {.name = "Add", .function = add, .arg = model}};
    static const char *const names[] = {"Load", "Add"};
    struct swpipe *pipe;
    *status = swpipe_open(&(struct swpipe_config){.plan_text = LITTLE,
                                                  .tasks = tasks,
                                                  .task_count = 2,
                                                  .graph = graph,
                                                  .device_only = names,
                                                  .device_only_count = device_only},
                          &pipe);
    return pipe;
}

static void run_little(struct swpipe *pipe, struct model *model, int iterations)
{
    struct data data = {iterations};
    struct swpipe_source source = {next_batch, &data};
    model->pairs_used = 0;
    tap_is_int(swpipe_run(pipe, &source, NULL), SWPIPE_OK, "%d iterations: %s", iterations,
               swpipe_error(pipe));
}

static void test_library(void)
{
    struct model model = {0};
    enum swpipe_status status;
    struct swpipe *pipe = open_little(&model, SWPIPE_GRAPH_REQUIRE, 2, &status);
    tap_is_int(status, SWPIPE_OK, "a pipeline with graphs opens: %s", swpipe_error(pipe));
    run_little(pipe, &model, 200);
    tap_is_int(model.counter, 200, "the device did 200 iterations");
    tap_is_int(model.sum, 200 * 201 / 2, "and the right ones");
    tap_is_int((int)swpipe_graph_launches(pipe), 198, "by one launch a period");
    tap_ok(model.loads < 10 && model.adds < 10, "functions were called %d and %d times",
           model.loads, model.adds);
    run_little(pipe, &model, 50);
    tap_is_int(model.counter, 250, "the pipeline can be filled again");

    tap_is_int(swpipe_enable_shortcut(pipe, "Load"), SWPIPE_OK, "a short-cut");
    struct data data = {10};
    status = swpipe_fill(pipe, &(struct swpipe_source){next_batch, &data});
    tap_ok(status == SWPIPE_USAGE && strstr(swpipe_error(pipe), "Load: its function"),
           "has no place in a graph: %s", swpipe_error(pipe));
    swpipe_disable_shortcut(pipe, NULL);
    run_little(pipe, &model, 20);
    swpipe_close(pipe);
}

static void test_library_refuses(void)
{
    struct model model = {0};
    enum swpipe_status status;
    struct swpipe *pipe = open_little(&model, SWPIPE_GRAPH_REQUIRE, 1, &status);
    tap_ok(status == SWPIPE_USAGE && strstr(swpipe_error(pipe), "Add: its function"),
           "a function that is not device_only is refused: %s", swpipe_error(pipe));
    swpipe_close(pipe);
    pipe = open_little(&model, SWPIPE_GRAPH_AUTO, 1, &status);
    run_little(pipe, &model, 30);
    tap_ok(model.adds == 30 && swpipe_graph_launches(pipe) == 0, "or runs without graphs");
    swpipe_close(pipe);
}

/* A function that breaks its word fails in the first period that is captured. */
static void test_library_failure(void)
{
    struct model model = {.allocates = true};
    enum swpipe_status status;
    struct swpipe *pipe = open_little(&model, SWPIPE_GRAPH_AUTO, 2, &status);
    struct data data = {50};
    status = swpipe_run(pipe, &(struct swpipe_source){next_batch, &data}, NULL);
    tap_ok(status == SWPIPE_FAILED && strstr(swpipe_error(pipe), "cannot allocate"),
           "device_only functions cannot allocate: %s", swpipe_error(pipe));
    tap_is_int(swpipe_drain(pipe), SWPIPE_OK, "drain");
    model = (struct model){0};
    run_little(pipe, &model, 40);
    tap_is_int(model.counter, 40, "and the pipeline works again");
    swpipe_close(pipe);
}

int main(void)
{
    if (env_number("SWSIM_SEED", 0)) { /* repeats a random plan only */
        test_random();
        return tap_done();
    }
    test_quick();
    test_few_iterations();
    test_phases();
    test_ranks();
    test_torchrec();
    test_refusals();
    test_falls_back();
    test_failure();
    test_stop(RUNTIME_DRAIN);
    test_stop(RUNTIME_ABORT);
    test_hang();
    test_library();
    test_library_refuses();
    test_library_failure();
    test_random();
    return tap_done();
}
