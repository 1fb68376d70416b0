/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_runtime.c - plans are carried out on the host device: what must finish finishes legally and computes
 * what a serial run computes, what must hang is found to hang, failures and stops wake everybody.
 *
 * Plan `i` of the random ones comes from SWSIM_SEED + i; a failure printed with its seed is repeated by
 * `SWSIM_SEED=<seed> SWSIM_PLANS=1`. SWSIM_LONG=1 asks for more of everything.
 */
#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "tests/harness.h"
#include "tests/random_plan.h"
#include "tests/tap.h"
#include "tests/trial.h"
#include "trace/store.h"

enum {
    QUICK_PLANS = 60,
    LONG_PLANS = 1200,
    SHORT_MS = 300,
    PATIENT_MS = 5000,
    MAX_COMPLAINTS = 5,
    REPETITIONS = 8
};
static const int64_t MS = 1000000;

/* ---- one run --------------------------------------------------------------------------------- */

static struct runtime_options usual(enum driver driver)
{
    return (struct runtime_options){.driver = driver,
                                    .iterations = 6,
                                    .replay = true,
                                    .compare = true,
                                    .timeout_ns = 20000 * MS};
}

/* ---- the plans that come with the product ---------------------------------------------------- */

/* The lookup of semi-synchronous training is a batch early: its results are not a serial run's. */
static bool is_semi_sync(const char *path)
{
    return strstr(path, "torchrec/semi_sync") && !strstr(path, "semi_sync.start");
}

static void test_pipeline(const char *path, enum driver driver)
{
    struct trial trial;
    struct runtime_options options = usual(driver);
    options.compare = !is_semi_sync(path);
    trial_file(&trial, path, options);
    bool good = options.compare ? trial_matched(&trial) : trial_went_well(&trial);
    good = good && trial.result.iterations == 6 && trial.result.tasks > 6;
    tap_ok(good, "%s runs legally with the %s driver%s", path, driver_key(driver),
           options.compare ? " and computes what a serial run does" : "");
    if (!good)
        trial_tell(&trial);
    trial_fini(&trial);
}

/* TorchRec's pipelines as they are run under the driver that they name, their outlines under both. */
static void test_torchrec(void)
{
    glob_t files = files_source("plans/torchrec/*.yaml");
    for (size_t i = 0; i < files.gl_pathc; i++)
        test_pipeline(files.gl_pathv[i], DRIVER_CLOCK);
    globfree(&files);
    files = files_source("plans/reference/*.yaml");
    for (size_t i = 0; i < files.gl_pathc; i++) {
        test_pipeline(files.gl_pathv[i], DRIVER_CLOCK);
        test_pipeline(files.gl_pathv[i], DRIVER_DATAFLOW);
    }
    globfree(&files);
}

/* The plan's expectation of deadlock, and whether the run can say anything about it. */
static void test_bug(const char *path)
{
    struct trial trial;
    bool broken = strstr(path, "_broken");
    struct runtime_options options = usual(DRIVER_NONE);
    options.timeout_ns = (broken ? SHORT_MS : PATIENT_MS) * MS;
    trial_file(&trial, path, options);
    if (!trial.parsed) {
        tap_ok(0, "%s is read", path);
        trial_tell(&trial);
        trial_fini(&trial);
        return;
    }
    enum outcome deadlock = trial.plan.expect.outcome[PROPERTY_DEADLOCK];
    bool eager = trial_says(&trial, "eager");
    const struct runtime_result *result = &trial.result;
    bool good = true;
    if (deadlock == OUTCOME_ALWAYS)
        good = trial.status == STATUS_VIOLATED && result->hung && result->blocked_count > 0 &&
               result->legal == ANSWER_YES;
    else if (!broken && !eager)
        good = trial_went_well(&trial);
    else
        good = trial.ran && (result->hung || result->finished);
    tap_ok(good, "%s %s", path,
           deadlock == OUTCOME_ALWAYS ? "hangs, as the machine says, and is found to"
           : broken || eager          ? "ends one way or the other"
                                      : "runs legally");
    if (!good)
        trial_tell(&trial);
    trial_fini(&trial);
}

static void test_bugs(void)
{
    glob_t files = files_source("plans/bugs/*.yaml");
    for (size_t i = 0; i < files.gl_pathc; i++)
        test_bug(files.gl_pathv[i]);
    globfree(&files);
}

/* ---- pipelines of our own -------------------------------------------------------------------- */

static const char QUICK[] =
    "swplan: 1\n"
    "name: quick\n"
    "max_depth: 3\n"
    "ranks: 2\n"
    "schedule:\n"
    "  Copy: {stage: 0, stream: memcpy, writes: [x], work: {copy: h2d, bytes: 4KiB}}\n"
    "  Exchange: {stage: 1, stream: comm, reads: [x], writes: [y], globally_ordered: true,\n"
    "             work: {collective: all_to_all, comm: dp, bytes: 4KiB}}\n"
    "  Train: {stage: 2, thread_group: other, reads: [y, w], writes: [w]}\n"
    "intra_iter_deps: [[Exchange, Copy], [Train, Exchange]]\n"
    "buffers: {x: {scope: iteration}, y: {scope: iteration}, w: {scope: shared}}\n";

static void test_quick(enum driver driver)
{
    struct trial trial;
    struct runtime_options options = usual(driver);
    options.iterations = 1000;
    trial_text(&trial, QUICK, options);
    tap_ok(trial_matched(&trial), "1000 iterations as fast as they go, two ranks, %s driver",
           driver_key(driver));
    tap_is_int(trial.result.iterations, 1000, "all of them");
    tap_is_int(trial.result.tasks, 6000, "all their tasks");
    tap_ok(trial.result.iteration.mean_ns > 0 &&
               trial.result.iteration.p50_ns <= trial.result.iteration.p99_ns,
           "there are times");
    if (trial.status)
        trial_tell(&trial);
    trial_fini(&trial);
}

static void test_few_iterations(void)
{
    for (int64_t iterations = 0; iterations < 4; iterations++) {
        struct trial trial;
        struct runtime_options options = usual(iterations % 2 ? DRIVER_CLOCK : DRIVER_DATAFLOW);
        options.iterations = iterations;
        trial_text(&trial, QUICK, options);
        tap_ok(trial_went_well(&trial) && trial.result.iterations == iterations,
               "%" PRId64 " iterations", iterations);
        if (trial.status)
            trial_tell(&trial);
        trial_fini(&trial);
    }
}

static void test_serial(void)
{
    struct trial trial;
    struct runtime_options options = usual(DRIVER_CLOCK);
    options.serial = true;
    trial_text(&trial, QUICK, options);
    tap_ok(trial_went_well(&trial), "a serial run is legal");
    tap_is_int((int64_t)trial.result.stream_count, 2, "it has one stream a rank");
    trial_fini(&trial);
    trial_text(&trial, "swplan: 1\nthreads: {r0.main: [{host: 1us}]}\n", options);
    tap_is_int(trial.status, STATUS_USAGE, "a host program has no serial run");
    trial_fini(&trial);
}

/* Both read what the other writes, without an order: not what a serial run computes. */
static void test_race(void)
{
    struct trial trial;
    trial_text(&trial,
               "swplan: 1\n"
               "schedule:\n"
               "  Slow: {stage: 0, stream: a, time: 3ms, writes: [x], reads: [y]}\n"
               "  Fast: {stage: 0, stream: b, writes: [y], reads: [x]}\n"
               "buffers: {x: {scope: shared}, y: {scope: shared}}\n",
               usual(DRIVER_CLOCK));
    tap_ok(trial.status == STATUS_OK && trial.result.legal == ANSWER_YES,
           "a race is no illegal run");
    tap_ok(trial.result.violations[PROPERTY_RACE] != NULL, "the replay sees it");
    trial_fini(&trial);
}

/* Which of two streams comes first must not matter: here the slower one is to come first, and does
   not. */
static void test_stale_read(void)
{
    struct trial trial;
    trial_text(
        &trial,
        "swplan: 1\n"
        "schedule:\n"
        "  Make: {stage: 0, stream: a, time: 20ms, work: {copy: h2d, bytes: 4KiB}, writes: [x]}\n"
        "  Before: {stage: 0, stream: a, time: 20ms}\n"
        "  Use: {stage: 0, stream: b, reads: [x], writes: [y]}\n"
        "intra_iter_deps: [[Make, Before]]\n"
        "enqueue_order: [Before, Make, Use]\n"
        "buffers: {x: {scope: shared}, y: {scope: iteration}}\n",
        usual(DRIVER_CLOCK));
    tap_ok(trial.ran && trial.result.matches_serial == ANSWER_NO,
           "who reads too early computes something else");
    tap_ok(trial_says(&trial, "serial run"), "and it is said who");
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

static void test_failure(int64_t number)
{
    struct trial trial;
    struct runtime_options options = usual(DRIVER_CLOCK);
    options.iterations = 100000;
    options.inject.given = true;
    options.inject.rank = 1;
    options.inject.number = number;
    trial_text(&trial, LONG_RUN, options);
    tap_ok(trial.status == STATUS_VIOLATED && !trial.result.finished,
           "a failed operation fails the run");
    tap_ok(trial_says(&trial, "injected failure"), "the reason is told");
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

static void test_stop(const char *text, int wish, enum driver driver, bool drains)
{
    struct trial trial;
    struct stopper stopper = {.wish = wish};
    struct runtime_options options = usual(driver);
    pthread_t thread;
    options.iterations = 1000000;
    options.stop = &stopper.stop;
    if (pthread_create(&thread, NULL, stop_soon, &stopper))
        abort();
    trial_text(&trial, text, options);
    pthread_join(thread, NULL);
    tap_ok(trial.status == STATUS_VIOLATED && trial.result.interrupted, "a stop interrupts (%s)",
           driver_key(driver));
    tap_ok(!trial.result.hung, "before the watchdog does");
    tap_ok(trial_says(&trial, "in flight has finished") == drains, "what is in flight %s",
           drains ? "finishes" : "is aborted");
    tap_ok(trial.result.legal == (wish == RUNTIME_ABORT ? trial.result.legal : ANSWER_YES),
           "what happened was legal");
    if (trial.result.legal == ANSWER_NO)
        trial_tell(&trial);
    trial_fini(&trial);
}

static void test_stops(void)
{
    static const char silent[] = "swplan: 1\n"
                                 "threads:\n"
                                 "  r0.main: [{await: never}]\n"
                                 "  r0.other: [{host: 1us}, {lock: l}, {await: never_too}]\n";
    test_stop(LONG_RUN, RUNTIME_DRAIN, DRIVER_CLOCK, true);
    test_stop(LONG_RUN, RUNTIME_DRAIN, DRIVER_DATAFLOW, true);
    test_stop(LONG_RUN, RUNTIME_ABORT, DRIVER_CLOCK, false);
    test_stop(silent, RUNTIME_DRAIN, DRIVER_NONE, false);
}

/* Iterations of one slot, which a later one may use before its driver retires it. The runs hang, as they may. */
static void test_used_again(void)
{
    static const char text[] =
        "swplan: 1\n"
        "max_depth: 1\n"
        "enqueue_order: stage-descending\n"
        "retire: last-task\n"
        "slot_reset: submit\n"
        "schedule:\n"
        "  T0: {stage: 0, stream: s0, thread_group: g1, time: 1us, globally_ordered: true}\n"
        "  T1: {stage: 0, stream: s0, thread_group: g1, time: 1us,\n"
        "       work: {collective: all_reduce, comm: mp, bytes: 1KiB}}\n"
        "  T2: {stage: 1, stream: s1, thread_group: g0, time: 1us, globally_ordered: true}\n"
        "intra_iter_deps: [[T1, T0]]\n"
        "inter_iter_deps: [[T1, T2, 1]]\n";
    struct runtime_options options = usual(DRIVER_DATAFLOW);
    options.timeout_ns = SHORT_MS / 2 * MS;
    bool legal = true;
    for (int i = 0; i < REPETITIONS && legal; i++) {
        struct trial trial;
        trial_text(&trial, text, options);
        legal = trial.ran && trial.result.legal == ANSWER_YES;
        if (!legal)
            trial_tell(&trial);
        trial_fini(&trial);
    }
    tap_ok(legal, "a slot that is used again before its iteration is retired");
}

/* ---- the store ------------------------------------------------------------------------------- */

static void count_run(const struct store_run *run, void *context)
{
    *(struct store_run *)context = *run;
}

static void test_store(void)
{
    const char *path = path_temp("run.db");
    struct runtime_options options = usual(DRIVER_DATAFLOW);
    struct trial trial;
    struct store *store = NULL;
    struct store_run row = {0};
    options.db = path;
    options.plan_text = QUICK;
    trial_text(&trial, QUICK, options);
    tap_ok(trial_went_well(&trial) && trial.result.run > 0, "a run is stored");
    enum status status = store_open(path, false, &store, &trial.diag);
    if (!status)
        status = store_list_runs(store, count_run, &row, &trial.diag);
    tap_ok(!status && row.id == trial.result.run, "and found");
    tap_is_int(row.iterations, 6, "with its iterations, counted once and not for each rank");
    tap_ok(row.spans >= 2 * trial.result.tasks, "with its spans");
    struct arena arena;
    struct trace trace;
    arena_init(&arena, 0);
    status = store_load(store, row.id, STORE_ALL, STORE_ALL, &arena, &trace, &trial.diag);
    size_t launches = 0, dependences = 0;
    for (size_t i = 0; !status && i < trace.edge_count; i++)
        *(trace.edges[i].kind == EDGE_LAUNCH ? &launches : &dependences) += 1;
    tap_is_int((int64_t)launches, trial.result.tasks, "a launch for each task");
    tap_is_int((int64_t)dependences, 2 * 2 * 6, "an edge for each dependence");
    tap_is_int(!status && trace.info.finished == RUN_FINISHED, 1, "and as finished");
    if (!status)
        status = store_load_steps(store, &trace, &trial.diag);
    tap_ok(!status && (int64_t)trace.step_count > 12 * 6, "the steps are there");
    arena_fini(&arena);
    store_close(store, &trial.diag);
    trial_fini(&trial);
}

static void test_bad_store(void)
{
    struct runtime_options options = usual(DRIVER_CLOCK);
    struct trial trial;
    options.db = "/nonexistent/directory/t.db";
    trial_text(&trial, QUICK, options);
    tap_is_int(trial.status, STATUS_SYSTEM, "a store that cannot be written is the system's fault");
    tap_ok(trial_says(&trial, "/nonexistent/directory/t.db"), "and named");
    trial_fini(&trial);
}

/* ---- random plans ---------------------------------------------------------------------------- */

struct tally {
    int ran, finished, hung, complaints;
};

/* On a busy machine a run may just be slow: then it gets more time. */
static void try_random(struct tally *tally, uint64_t seed, enum random_form form,
                       enum driver driver)
{
    struct trial trial;
    struct runtime_options options = usual(driver);
    char *text = random_plan(seed, form);
    if (!text)
        abort();
    options.timeout_ns = SHORT_MS / 2 * MS;
    options.compare = false;
    trial_text(&trial, text, options);
    if (!trial_is_possible(&trial) && trial.result.hung) {
        trial_fini(&trial);
        options.timeout_ns = PATIENT_MS * MS;
        trial_text(&trial, text, options);
    }
    tally->ran += trial.ran;
    tally->finished += trial.ran && trial.result.finished;
    tally->hung += trial.ran && trial.result.hung;
    if (!trial_is_possible(&trial) && tally->complaints++ < MAX_COMPLAINTS) {
        tap_note("SWSIM_SEED=%" PRIu64 " %s %s:", seed, random_form_key(form), driver_key(driver));
        trial_tell(&trial);
        tap_note("%s", text);
    }
    trial_fini(&trial);
    free(text);
}

/* Plans whose runs were not legal: where a look at the device took time, where a slot was used again, and where a stream set a
   flag later than its step began. */
static void test_old_seeds(void)
{
    struct tally tally = {0};
    for (int i = 0; i < REPETITIONS; i++) {
        try_random(&tally, 29, RANDOM_THREADS, DRIVER_NONE);
        try_random(&tally, 892922231, RANDOM_THREADS, DRIVER_NONE);
        try_random(&tally, 2304505462, RANDOM_THREADS, DRIVER_NONE);
        try_random(&tally, 1603300065, RANDOM_PIPELINE, DRIVER_DATAFLOW);
    }
    tap_is_int(tally.complaints, 0, "random plans that have failed");
}

static void test_random(void)
{
    uint64_t seed = env_number("SWSIM_SEED", 1);
    int plans = env_plans(QUICK_PLANS, LONG_PLANS);
    struct tally tally = {0};
    for (int i = 0; i < plans; i++) {
        uint64_t this = seed + (uint64_t)i;
        try_random(&tally, this, RANDOM_PIPELINE, DRIVER_CLOCK);
        try_random(&tally, this, RANDOM_PIPELINE, DRIVER_DATAFLOW);
        try_random(&tally, this, RANDOM_THREADS, DRIVER_NONE);
        try_random(&tally, this, RANDOM_PROGRAMS, DRIVER_NONE);
    }
    tap_is_int(tally.complaints, 0, "%d random plans: %d ran, %d to the end, %d hung, as they may",
               plans, tally.ran, tally.finished, tally.hung);
    tap_ok(plans < 20 || tally.finished > tally.ran / 4, "enough of them finish");
}

/* ---- many threads ---------------------------------------------------------------------------- */

static int64_t context_switches(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
}

/* Threads that all wait for one object: what happens to it wakes those that can go on, not each time all. */
static void test_crowd(const char *what, const char *head, const char *each)
{
    enum { CROWD = 600, MOST_BYTES = 100 * CROWD };
    char *text = malloc(MOST_BYTES);
    struct trial trial;
    if (!text)
        abort();
    int length = snprintf(text, MOST_BYTES, "swplan: 1\n%sthreads:\n", head);
    for (int i = 0; i < CROWD; i++) {
        length +=
            snprintf(text + length, (size_t)(MOST_BYTES - length), "  r0.t%d: [%s]\n", i, each);
        assert(length < MOST_BYTES);
    }
    const int64_t before = context_switches();
    trial_text(&trial, text, usual(DRIVER_NONE));
    const int64_t switches = context_switches() - before;
    tap_ok(trial_went_well(&trial) && switches < 30 * CROWD, "%d threads %s: %" PRId64 " switches",
           CROWD, what, switches);
    if (!trial_went_well(&trial))
        trial_tell(&trial);
    trial_fini(&trial);
    free(text);
}

static void test_crowds(void)
{
    test_crowd("want one lock", "", "{lock: m}, {host: 1us}, {unlock: m}");
    test_crowd("share a queue of one item", "queues: {q: 1}\n", "{put: q}, {host: 1us}, {get: q}");
    test_crowd("meet at a barrier", "", "{barrier: b}, {host: 1us}");
}

int main(void)
{
    if (env_number("SWSIM_SEED", 0)) { /* repeats a random plan only */
        test_random();
        return tap_done();
    }
    test_torchrec();
    test_bugs();
    test_quick(DRIVER_CLOCK);
    test_quick(DRIVER_DATAFLOW);
    test_few_iterations();
    test_serial();
    test_race();
    test_stale_read();
    test_failure(0);
    test_failure(100);
    test_stops();
    test_used_again();
    test_store();
    test_bad_store();
    test_crowds();
    test_old_seeds();
    test_random();
    return tap_done();
}
