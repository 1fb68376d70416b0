/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_swpipe.c - the public library, used as its users do: contexts, both drivers, serial runs, the end
 * of the data, drain and refill, failures, limits, short-cuts, profiles, two ranks, recorded runs.
 */
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "gpu/lib/swpipe.h"
#include "tests/harness.h"
#include "tests/tap.h"

static const char plan_text[] = "swplan: 1\n"
                                "name: little\n"
                                "schedule:\n"
                                "  Load: {stage: 0, stream: memcpy, thread_group: io}\n"
                                "  Forward: {stage: 1, reads: [batch], writes: [act]}\n"
                                "  Step: {stage: 1, thread_group: step}\n"
                                "buffers: {batch: {scope: iteration, bytes: 4KiB}}\n"
                                "intra_iter_deps: [[Forward, Load], [Step, Forward]]\n"
                                "inter_iter_deps: [[Step, Step]]\n";

/* The threads that call functions: each test runs both ways. */
static enum swpipe_threads way;

/* ---- a model that can be checked --------------------------------------------------------------- */

enum { MOST = 64 };

struct job {
    struct model *model;
    int64_t iteration;
    int *from, *to;
};

struct model {
    atomic_int loads, forwards, steps, released, cloned;
    int results[MOST];     /* of Step, by iteration */
    int order[MOST], done; /* in which order Step ran on the device */
    struct job jobs[3 * MOST];
    atomic_int jobs_used;
    int fail_at, sleep_at; /* Forward fails, or dawdles, in this iteration; -1 */
    int64_t outside;       /* what a task changes outside its context */
};

static struct job *new_job(struct model *model, int64_t iteration)
{
    struct job *job = &model->jobs[atomic_fetch_add(&model->jobs_used, 1) % (3 * MOST)];
    *job = (struct job){.model = model, .iteration = iteration};
    return job;
}

static void *clone_number(const void *value)
{
    int *copy = malloc(sizeof *copy);
    if (copy)
        *copy = *(const int *)value;
    return copy;
}

static atomic_int live_numbers;

static void release_number(void *value, void *live)
{
    atomic_fetch_sub((atomic_int *)live, 1);
    free(value);
}

static void *clone_and_count(const void *value, void *live)
{
    atomic_fetch_add((atomic_int *)live, 1);
    return clone_number(value);
}

static const struct swpipe_kind number_kind = {clone_and_count, release_number, &live_numbers};

static void load_on_device(void *arg)
{
    struct job *job = arg;
    *job->to = *job->from * 10;
}

static int load(struct swpipe_context *context, void *arg)
{
    struct model *model = arg;
    int *host = malloc(sizeof *host);
    int *device = swpipe_alloc(context, "x", sizeof *device);
    if (!host || !device) {
        free(host);
        return swpipe_fail(context, "no memory");
    }
    *host = (int)(intptr_t)swpipe_batch(context);
    atomic_fetch_add(&live_numbers, 1);
    if (swpipe_set(context, "host", host, &number_kind) != 0)
        return -1;
    atomic_fetch_add(&model->loads, 1);
    struct job *job = new_job(model, swpipe_iteration(context));
    job->from = host;
    job->to = device;
    return swpipe_launch(context, load_on_device, job);
}

static void forward_on_device(void *arg)
{
    struct job *job = arg;
    *job->to = *job->from + 1;
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 700000000}, NULL);
}

static int forward(struct swpipe_context *context, void *arg)
{
    struct model *model = arg;
    if (swpipe_iteration(context) == model->fail_at)
        return swpipe_fail(context, "no gradient at %d", model->fail_at);
    if (swpipe_iteration(context) == model->sleep_at)
        nap();
    atomic_fetch_add(&model->forwards, 1);
    model->outside += 100;
    struct job *job = new_job(model, swpipe_iteration(context));
    job->from = swpipe_get(context, "x");
    job->to = swpipe_buffer(context, "act", NULL);
    int failed = job->from && job->to ? swpipe_launch(context, forward_on_device, job) : -1;
    swpipe_unset(context, "x");
    return failed;
}

static void step_on_device(void *arg)
{
    struct job *job = arg;
    job->model->results[job->iteration] = *job->from;
    job->model->order[job->model->done++] = (int)job->iteration;
}

static int step(struct swpipe_context *context, void *arg)
{
    struct model *model = arg;
    struct job *job = new_job(model, swpipe_iteration(context));
    job->from = swpipe_buffer(context, "act", NULL);
    atomic_fetch_add(&model->steps, 1);
    return swpipe_launch(context, step_on_device, job);
}

static void *capture_outside(void *arg)
{
    return clone_number(&(int){(int)((struct model *)arg)->outside});
}

static int restore_outside(const void *saved, void *arg)
{
    ((struct model *)arg)->outside += *(const int *)saved;
    return 0;
}

static void release_outside(void *saved, void *arg)
{
    (void)arg;
    free(saved);
}

/* ---- a source -------------------------------------------------------------------------------- */

struct numbers {
    int next, end, fail_at;
};

static int next_number(void *arg, int rank, void **batch)
{
    struct numbers *numbers = arg;
    (void)rank;
    if (numbers->next == numbers->fail_at)
        return -1;
    if (numbers->next == numbers->end)
        return 0;
    *batch = (void *)(intptr_t)(numbers->next++ + 1);
    return 1;
}

/* The condition first, then what is said about it. */
#define check(condition, ...)                                                                      \
    do {                                                                                           \
        bool passed = (condition);                                                                 \
        tap_ok(passed, __VA_ARGS__);                                                               \
    } while (0)

/* ---- helpers --------------------------------------------------------------------------------- */

static void reset(struct model *model)
{
    memset(model, 0, sizeof *model);
    model->fail_at = model->sleep_at = -1;
}

static struct swpipe *open_with(struct model *model, enum swpipe_driver driver, int64_t limit_ns)
{
    struct swpipe *pipe;
    static struct swpipe_io io; /* of one test at a time */
    io = (struct swpipe_io){capture_outside, restore_outside, release_outside, model};
    struct swpipe_task tasks[] = {{"Load", load, model, NULL, 0},
                                  {"Forward", forward, model, &io, 1},
                                  {"Step", step, model, NULL, 0}};
    struct swpipe_config config = {.threads = way,
                                   .plan_text = plan_text,
                                   .tasks = tasks,
                                   .task_count = 3,
                                   .driver = driver,
                                   .max_depth = driver == SWPIPE_DATAFLOW ? 4 : 0,
                                   .wait_timeout_ns = limit_ns,
                                   .progress_timeout_ns = limit_ns};
    enum swpipe_status status = swpipe_open(&config, &pipe);
    check(status == SWPIPE_OK, "a pipeline opens: %s", swpipe_error(pipe));
    return pipe;
}

static struct swpipe_source source_of(struct numbers *numbers)
{
    return (struct swpipe_source){next_number, numbers};
}

static bool results_are_right(const struct model *model, int count)
{
    bool right = model->done == count;
    for (int i = 0; i < count; i++)
        right = right && model->results[i] == 10 * (i + 1) + 1 && model->order[i] == i;
    return right;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_run(enum swpipe_driver driver, const char *name)
{
    struct model model;
    struct swpipe *pipe;
    struct numbers numbers = {0, 20, -1};
    struct swpipe_source source = source_of(&numbers);
    double seconds = -1;
    int64_t iteration = -1;
    reset(&model);
    pipe = open_with(&model, driver, 0);
    check(swpipe_progress(pipe, &source, &iteration) == SWPIPE_USAGE &&
              strstr(swpipe_error(pipe), "without fill"),
          "%s: progress without fill: %s", name, swpipe_error(pipe));
    check(swpipe_fill(pipe, &source) == SWPIPE_OK, "%s: fill: %s", name, swpipe_error(pipe));
    check(swpipe_fill(pipe, &source) == SWPIPE_USAGE && strstr(swpipe_error(pipe), "drain"),
          "%s: fill twice: %s", name, swpipe_error(pipe));
    int64_t expected = 0;
    enum swpipe_status status;
    bool in_order = true;
    while ((status = swpipe_progress(pipe, &source, &iteration)) == SWPIPE_OK)
        in_order = in_order && iteration == expected++;
    check(status == SWPIPE_END && in_order && expected == 20,
          "%s: 20 iterations retire in order, then the end (%s)", name, swpipe_error(pipe));
    check(results_are_right(&model, 20), "%s: every iteration computed the right thing", name);
    check(swpipe_progress(pipe, &source, &iteration) == SWPIPE_END, "%s: END stays END", name);
    numbers = (struct numbers){0, 7, -1};
    reset(&model);
    check(swpipe_run(pipe, &source, &seconds) == SWPIPE_OK && seconds > 0 &&
              results_are_right(&model, 7),
          "%s: run after the end: %s", name, swpipe_error(pipe));
    numbers = (struct numbers){0, 0, -1};
    check(swpipe_run(pipe, &source, &seconds) == SWPIPE_OK, "%s: a run without data: %s", name,
          swpipe_error(pipe));
    swpipe_close(pipe);
    tap_is_int(live_numbers, 0, "%s: every value was released", name);
}

static void test_drain(enum swpipe_driver driver, const char *name)
{
    struct model model;
    struct swpipe *pipe;
    struct numbers numbers = {0, 50, -1};
    struct swpipe_source source = source_of(&numbers);
    int64_t iteration;
    reset(&model);
    pipe = open_with(&model, driver, 0);
    swpipe_fill(pipe, &source);
    for (int i = 0; i < 3; i++)
        swpipe_progress(pipe, &source, &iteration);
    check(swpipe_drain(pipe) == SWPIPE_OK, "%s: drain: %s", name, swpipe_error(pipe));
    check(results_are_right(&model, numbers.next), "%s: what was fetched was finished (%d)", name,
          numbers.next);
    check(swpipe_drain(pipe) == SWPIPE_OK, "%s: draining an empty pipeline does nothing", name);
    numbers = (struct numbers){0, 5, -1};
    reset(&model);
    check(swpipe_run(pipe, &source, NULL) == SWPIPE_OK && results_are_right(&model, 5),
          "%s: refilled after a drain: %s", name, swpipe_error(pipe));
    numbers = (struct numbers){0, 50, -1};
    swpipe_fill(pipe, &source);
    swpipe_close(pipe); /* with work in flight */
    tap_is_int(live_numbers, 0, "%s: closing a full pipeline releases everything", name);
}

static void test_failure(enum swpipe_driver driver, const char *name)
{
    struct model model;
    struct swpipe *pipe;
    struct numbers numbers = {0, 50, -1};
    struct swpipe_source source = source_of(&numbers);
    struct timespec start, end;
    reset(&model);
    model.fail_at = 4;
    pipe = open_with(&model, driver, 0);
    clock_gettime(CLOCK_MONOTONIC, &start);
    enum swpipe_status status = swpipe_run(pipe, &source, NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    check(status == SWPIPE_FAILED && strstr(swpipe_error(pipe), "Forward(4)") &&
              strstr(swpipe_error(pipe), "no gradient at 4"),
          "%s: a task fails, the first error is reported: %s", name, swpipe_error(pipe));
    check(end.tv_sec - start.tv_sec < 20, "%s: nobody waited for a limit", name);
    check(swpipe_progress(pipe, &source, NULL) == SWPIPE_USAGE, "%s: then only drain: %s", name,
          swpipe_error(pipe));
    check(swpipe_drain(pipe) == SWPIPE_OK, "%s: which works: %s", name, swpipe_error(pipe));
    reset(&model);
    numbers = (struct numbers){0, 6, -1};
    check(swpipe_run(pipe, &source, NULL) == SWPIPE_OK && results_are_right(&model, 6),
          "%s: and the pipeline can be filled again: %s", name, swpipe_error(pipe));
    numbers = (struct numbers){0, 50, 5};
    check(swpipe_run(pipe, &source, NULL) == SWPIPE_FAILED &&
              strstr(swpipe_error(pipe), "source failed"),
          "%s: a source that fails: %s", name, swpipe_error(pipe));
    swpipe_close(pipe);
    tap_is_int(live_numbers, 0, "%s: every value was released", name);
}

static void test_limits(enum swpipe_driver driver, const char *name)
{
    struct model model;
    struct swpipe *pipe;
    struct numbers numbers = {0, 50, -1};
    struct swpipe_source source = source_of(&numbers);
    reset(&model);
    model.sleep_at = 3;
    /* on the caller's thread the device's own work must be over in time also on a busy machine */
    pipe = open_with(&model, driver, way == SWPIPE_CALLER ? 600000000 : 100000000);
    enum swpipe_status status = swpipe_run(pipe, &source, NULL);
    /* on the caller's thread nothing is waited for meanwhile: t_swpipe_caller.c has its limits */
    check(status == (way == SWPIPE_CALLER ? SWPIPE_OK : SWPIPE_TIMEOUT),
          "%s: a task that takes too long: %s, %s", name, swpipe_status_name(status),
          swpipe_error(pipe));
    check(swpipe_drain(pipe) == SWPIPE_OK, "%s: drained", name);
    swpipe_close(pipe);
}

static void test_serial(void)
{
    struct model model;
    struct swpipe *pipe;
    struct numbers numbers = {0, 9, -1};
    struct swpipe_source source = source_of(&numbers);
    void *batch = (void *)(intptr_t)4;
    double seconds = -1;
    reset(&model);
    pipe = open_with(&model, SWPIPE_CLOCK, 0);
    check(swpipe_run_serial(pipe, &source, &seconds) == SWPIPE_OK && seconds > 0 &&
              results_are_right(&model, 9),
          "a serial run: %s", swpipe_error(pipe));
    reset(&model);
    check(swpipe_run_one_serial(pipe, &batch, 3) == SWPIPE_OK && model.done == 1 &&
              model.results[3] == 41,
          "one serial iteration: %s", swpipe_error(pipe));
    reset(&model);
    numbers = (struct numbers){0, 50, -1};
    swpipe_fill(pipe, &source);
    check(swpipe_run_one_serial(pipe, &batch, 0) == SWPIPE_USAGE, "not while it is filled: %s",
          swpipe_error(pipe));
    swpipe_drain(pipe);
    model.fail_at = 2;
    check(swpipe_run_one_serial(pipe, &batch, 2) == SWPIPE_FAILED &&
              strstr(swpipe_error(pipe), "Forward(2)"),
          "a failing serial iteration: %s", swpipe_error(pipe));
    model.fail_at = -1;
    check(swpipe_run_one_serial(pipe, &batch, 5) == SWPIPE_OK && model.results[5] == 41,
          "and the next one: %s", swpipe_error(pipe));
    swpipe_close(pipe);
}

/* A thread that waits for its own later work: refused under the clock, and no trouble for data-flow. */
static void test_hang(void)
{
    static const struct refusal {
        const char *plan;
        enum swpipe_driver driver;
        enum swpipe_status status;
    } cases[] = {
        {"swplan: 1\nschedule: {A: {stage: 1}, B: {stage: 0}}\nintra_iter_deps: [[B, A]]\n",
         SWPIPE_CLOCK, SWPIPE_INPUT},
        {"swplan: 1\nschedule: {A: {stage: 1}, B: {stage: 0}}\nintra_iter_deps: [[B, A]]\n",
         SWPIPE_DATAFLOW, SWPIPE_OK},
        {"swplan: 1\nschedule: {A: {stage: 1}, B: {stage: 0, thread_group: b}}\n"
         "intra_iter_deps: [[B, A]]\n",
         SWPIPE_CLOCK, SWPIPE_OK},
        {"swplan: 1\nschedule: {A: {stage: 2}, B: {stage: 0}}\ninter_iter_deps: [[B, A]]\n",
         SWPIPE_CLOCK, SWPIPE_INPUT},
        {"swplan: 1\nenqueue_order: [B, A]\nschedule: {A: {stage: 1}, B: {stage: 0}}\n"
         "inter_iter_deps: [[B, A]]\n",
         SWPIPE_CLOCK, SWPIPE_INPUT},
        {"swplan: 1\nschedule: {A: {stage: 1}, B: {stage: 0}}\ninter_iter_deps: [[B, A]]\n",
         SWPIPE_CLOCK, SWPIPE_OK},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct swpipe *pipe;
        struct swpipe_config config = {
            .threads = way, .plan_text = cases[i].plan, .driver = cases[i].driver};
        enum swpipe_status status = swpipe_open(&config, &pipe);
        check(status == cases[i].status &&
                  (status == SWPIPE_OK || strstr(swpipe_error(pipe), "B waits for A")),
              "hang %zu: %s", i, swpipe_error(pipe));
        swpipe_close(pipe);
    }
}

static void test_shortcut(void)
{
    struct model model;
    struct swpipe *pipe;
    void *batch = (void *)(intptr_t)4;
    reset(&model);
    pipe = open_with(&model, SWPIPE_CLOCK, 0);
    check(swpipe_enable_shortcut(pipe, "Nothing") == SWPIPE_INPUT, "no such task: %s",
          swpipe_error(pipe));
    check(swpipe_enable_shortcut(pipe, "Load") == SWPIPE_OK &&
              swpipe_enable_shortcut(pipe, "Forward") == SWPIPE_OK,
          "short-cuts on");
    char *table = swpipe_format_schedule(pipe, 2);
    check(table && strstr(table, "Load [skip]") && strstr(table, "Step ") &&
              !strstr(table, "Step [skip]"),
          "the schedule says so");
    check(table && strstr(table, "|   .   .") && strstr(table, "|  --  i0"),
          "\".\" where work is skipped");
    free(table);
    check(!swpipe_format_schedule(pipe, -3) && strstr(swpipe_error(pipe), "found -3 periods"),
          "a negative number of periods is refused: %s", swpipe_error(pipe));
    swpipe_run_one_serial(pipe, &batch, 0);
    int64_t outside = model.outside;
    batch = (void *)(intptr_t)9; /* is not looked at any more */
    for (int i = 1; i < 4; i++)
        check(swpipe_run_one_serial(pipe, &batch, i) == SWPIPE_OK && model.results[i] == 41,
              "iteration %d has the results of the first: %d, %s", i, model.results[i],
              swpipe_error(pipe));
    check(model.loads == 1 && model.forwards == 1 && model.steps == 4,
          "Load and Forward ran once, Step every time");
    tap_is_int(model.outside, outside + 3 * outside, "what a task did outside was restored");
    struct numbers numbers = {0, 6, -1};
    struct swpipe_source source = source_of(&numbers);
    model.done = 0;
    check(swpipe_run(pipe, &source, NULL) == SWPIPE_OK && model.loads == 1 &&
              model.results[5] == 41,
          "short-cuts outlive a refill: %s", swpipe_error(pipe));
    swpipe_disable_shortcut(pipe, NULL);
    swpipe_run_one_serial(pipe, &batch, 7);
    check(model.loads == 2 && model.results[7] == 91, "off again");
    swpipe_close(pipe);
    tap_is_int(live_numbers, 0, "every value was released");
}

static void test_profile(void)
{
    struct model model;
    struct swpipe *pipe;
    struct swpipe_profile profile = {0};
    void *batch = (void *)(intptr_t)1;
    const char *skip[] = {"Step"};
    struct swpipe_profile_options options = {
        .warmup = 1, .measure = 2, .rounds = 3, .skip = skip, .skip_count = 1};
    reset(&model);
    pipe = open_with(&model, SWPIPE_CLOCK, 0);
    check(swpipe_profile(pipe, &batch, &options, &profile) == SWPIPE_OK, "a profile: %s",
          swpipe_error(pipe));
    check(profile.baseline_seconds > 0 && profile.task_count == 3 &&
              strcmp(profile.tasks[0].task, "Load") == 0 && profile.tasks[0].seconds >= 0 &&
              profile.tasks[2].seconds == -1,
          "has a baseline, tasks in topological order, those skipped marked");
    char *report = swpipe_format_profile(pipe, &profile);
    check(report && strstr(report, "Baseline") && strstr(report, "SUM") &&
              strstr(report, "skipped"),
          "and a report");
    free(report);
    void *const *many[] = {&batch, &batch};
    struct swpipe_profile profiles[2] = {{0}};
    check(swpipe_profile_many(pipe, many, 2, &options, profiles) == SWPIPE_OK &&
              profiles[0].task_count == 3 && profiles[1].baseline_seconds > 0 &&
              profiles[0].tasks != profiles[1].tasks && profiles[0].tasks[1].seconds >= 0 &&
              profiles[1].tasks[2].seconds == -1,
          "profiles of several batches: %s", swpipe_error(pipe));
    model.done = 0;
    check(swpipe_run_one_serial(pipe, &batch, 3) == SWPIPE_OK && model.done == 1,
          "a serial iteration is finished again when it returns");
    options.skip = (const char *[]){"Stpe"};
    check(swpipe_profile(pipe, &batch, &options, &profile) == SWPIPE_INPUT, "a wrong name: %s",
          swpipe_error(pipe));
    swpipe_close(pipe);
}

static bool has_line(const char *text, const char *line)
{
    bool has = text && strstr(text, line);
    if (!has)
        tap_note("nothing like '%s' in: %s", line, text ? text : "(nothing)");
    return has;
}

static void test_tables(void)
{
    struct model model;
    struct numbers numbers = {0, 10, -1};
    struct swpipe_source source = source_of(&numbers);
    struct swpipe_recorded recorded;
    char *printed = NULL;
    size_t size;
    reset(&model);
    struct swpipe *pipe = open_with(&model, SWPIPE_CLOCK, 0);
    check(!swpipe_format_stats(pipe) && has_line(swpipe_error(pipe), "no run has been recorded"),
          "no statistics yet: %s", swpipe_error(pipe));
    check(swpipe_record(pipe, "") == SWPIPE_OK && swpipe_run(pipe, &source, NULL) == SWPIPE_OK &&
              swpipe_recorded(pipe, &recorded) == SWPIPE_OK && recorded.legal == 1 &&
              recorded.run == -1,
          "a run is judged without being stored: %s", swpipe_error(pipe));
    char *stats = swpipe_format_stats(pipe);
    check(has_line(stats, "Forward         10  ") && has_line(stats, "time (ms)"),
          "statistics: calls and times");
    swpipe_enable_shortcut(pipe, "Load");
    char *whole = swpipe_format(pipe);
    check(has_line(whole, "clock(plan=little, device=host, ranks=1, depth=2, "
                          "tasks=[Load, Forward, Step], shortcuts=[Load])") &&
              has_line(whole, "Load [skip]"),
          "what the pipeline is, in one line and its schedule");
    FILE *out = open_memstream(&printed, &size);
    check(out && swpipe_print(pipe, out) == SWPIPE_OK &&
              swpipe_print_schedule(pipe, 3, out) == SWPIPE_OK &&
              swpipe_print_stage_analysis(pipe, out) == SWPIPE_OK &&
              swpipe_print_stats(pipe, out) == SWPIPE_OK,
          "tables are printed: %s", swpipe_error(pipe));
    fclose(out);
    check(printed && strncmp(printed, whole, strlen(whole)) == 0 && has_line(printed, "LDS = 2") &&
              has_line(printed, stats),
          "as they are formatted");
    out = fopen("/dev/full", "w");
    check(out && swpipe_print(pipe, out) == SWPIPE_SYSTEM, "a full disk is noticed: %s",
          swpipe_error(pipe));
    fclose(out);
    free(stats);
    free(whole);
    free(printed);
    swpipe_close(pipe);
}

/* The plan's own work, with one function in between, on two ranks. */
static atomic_int called[2];

static int count_and_work(struct swpipe_context *context, void *arg)
{
    (void)arg;
    atomic_fetch_add(&called[swpipe_rank(context)], 1);
    return swpipe_work(context);
}

static void test_ranks(void)
{
    static const char text[] =
        "swplan: 1\nname: two\nranks: 2\nschedule:\n"
        "  H2D: {stage: 0, stream: memcpy, writes: [b], work: {copy: h2d, bytes: 4KiB}}\n"
        "  Sum: {stage: 1, globally_ordered: true, reads: [b], writes: [s],\n"
        "        work: {collective: all_reduce, comm: dp, bytes: 4KiB}}\n"
        "intra_iter_deps: [[Sum, H2D]]\n";
    struct swpipe_task task = {"Sum", count_and_work, NULL, NULL, 0};
    for (int driver = 0; driver < 2; driver++) {
        struct swpipe_config config = {.threads = way,
                                       .plan_text = text,
                                       .plan_file = "two.yaml",
                                       .tasks = &task,
                                       .task_count = 1,
                                       .driver = driver ? SWPIPE_DATAFLOW : SWPIPE_CLOCK};
        struct swpipe *pipe;
        struct numbers numbers = {0, 24, -1}; /* both ranks take from it */
        struct swpipe_source source = source_of(&numbers);
        atomic_store(&called[0], 0);
        atomic_store(&called[1], 0);
        check(swpipe_open(&config, &pipe) == SWPIPE_OK, "two ranks open: %s", swpipe_error(pipe));
        check(swpipe_run(pipe, &source, NULL) == SWPIPE_OK, "and run: %s", swpipe_error(pipe));
        check(called[0] == 12 && called[1] == 12, "the function was called on both");
        swpipe_close(pipe);
    }
}

/* ---- recorded runs ----------------------------------------------------------------------------- */

static const char *store_path;

static bool is_legal(struct swpipe *pipe, struct swpipe_recorded *recorded, int64_t iterations)
{
    enum swpipe_status status = swpipe_recorded(pipe, recorded);
    if (status == SWPIPE_OK && recorded->legal == 1 && recorded->iterations == iterations)
        return true;
    tap_note("%s: legal %d, %d iterations: %s", swpipe_error(pipe), recorded->legal,
             (int)recorded->iterations, status == SWPIPE_OK ? recorded->why : "");
    return false;
}

static void test_record(enum swpipe_driver driver, const char *name)
{
    struct model model;
    struct numbers numbers = {0, 30, -1};
    struct swpipe_source source = source_of(&numbers);
    struct swpipe_recorded recorded = {0};
    void *batch = (void *)(intptr_t)4;
    reset(&model);
    struct swpipe *pipe = open_with(&model, driver, 0);
    check(swpipe_recorded(pipe, &recorded) == SWPIPE_USAGE, "%s: nothing was recorded: %s", name,
          swpipe_error(pipe));
    check(swpipe_record(pipe, store_path) == SWPIPE_OK, "%s: record: %s", name, swpipe_error(pipe));
    check(swpipe_run(pipe, &source, NULL) == SWPIPE_OK && results_are_right(&model, 30),
          "%s: a recorded run does the same: %s", name, swpipe_error(pipe));
    check(is_legal(pipe, &recorded, 30) && recorded.run == 1 && recorded.iteration_seconds > 0,
          "%s: and was legal, functions and all", name);
    numbers = (struct numbers){0, 12, -1};
    reset(&model);
    swpipe_enable_shortcut(pipe, "Forward");
    check(swpipe_run(pipe, &source, NULL) == SWPIPE_OK && is_legal(pipe, &recorded, 12) &&
              recorded.run == 2,
          "%s: with a short-cut, too", name);
    for (int i = 0; i < 5; i++)
        swpipe_run_one_serial(pipe, &batch, 40 + i);
    swpipe_disable_shortcut(pipe, NULL);
    check(is_legal(pipe, &recorded, 5) && recorded.run == 3,
          "%s: serial iterations are a run, which a change of short-cuts ends", name);
    for (int i = 0; i < 6; i++)
        swpipe_run_one_serial(pipe, &batch, i);
    check(swpipe_drain(pipe) == SWPIPE_OK && is_legal(pipe, &recorded, 6), "%s: or a drain: %s",
          name, swpipe_error(pipe));
    numbers = (struct numbers){0, 50, -1};
    swpipe_fill(pipe, &source);
    check(swpipe_record(pipe, NULL) == SWPIPE_USAGE, "%s: not while it is filled: %s", name,
          swpipe_error(pipe));
    for (int i = 0; i < 3; i++)
        swpipe_progress(pipe, &source, NULL);
    check(swpipe_drain(pipe) == SWPIPE_OK && is_legal(pipe, &recorded, numbers.next),
          "%s: a drained run is complete", name);
    check(swpipe_record(pipe, NULL) == SWPIPE_OK, "%s: no more", name);
    numbers = (struct numbers){0, 4, -1};
    int64_t last = recorded.run;
    check(swpipe_run(pipe, &source, NULL) == SWPIPE_OK && swpipe_recorded(pipe, &recorded) == 0 &&
              recorded.run == last,
          "%s: and then none is added", name);
    swpipe_close(pipe);
    unlink(store_path);
}

/* A run that fails is kept as far as it came, and can be followed by another one. */
static void test_record_failure(enum swpipe_driver driver, const char *name)
{
    struct model model;
    struct numbers numbers = {0, 50, -1};
    struct swpipe_source source = source_of(&numbers);
    struct swpipe_recorded recorded = {0};
    reset(&model);
    model.fail_at = 4;
    struct swpipe *pipe = open_with(&model, driver, 0);
    swpipe_record(pipe, store_path);
    check(swpipe_run(pipe, &source, NULL) == SWPIPE_FAILED && swpipe_drain(pipe) == SWPIPE_OK,
          "%s: a recorded run fails: %s", name, swpipe_error(pipe));
    check(swpipe_recorded(pipe, &recorded) == SWPIPE_OK && recorded.run == 1 && recorded.legal != 0,
          "%s: what there is of it was legal (%d)", name, recorded.legal);
    reset(&model);
    numbers = (struct numbers){0, 9, -1};
    check(swpipe_run(pipe, &source, NULL) == SWPIPE_OK && is_legal(pipe, &recorded, 9) &&
              recorded.run == 2,
          "%s: the next one: %s", name, swpipe_error(pipe));
    numbers = (struct numbers){0, 50, -1};
    swpipe_fill(pipe, &source);
    swpipe_close(pipe); /* with work in flight */
    tap_is_int(live_numbers, 0, "%s: closing a full recorded pipeline releases everything", name);
    unlink(store_path);
}

static void test_record_refusals(void)
{
    struct model model;
    struct numbers numbers = {0, 5, -1};
    struct swpipe_source source = source_of(&numbers);
    reset(&model);
    struct swpipe *pipe = open_with(&model, SWPIPE_CLOCK, 0);
    check(swpipe_record(pipe, "/nonexistent/x.db") == SWPIPE_OK &&
              swpipe_run(pipe, &source, NULL) == SWPIPE_SYSTEM &&
              strstr(swpipe_error(pipe), "/nonexistent/x.db"),
          "a store that cannot be made: %s", swpipe_error(pipe));
    check(swpipe_record(pipe, NULL) == SWPIPE_OK && swpipe_run(pipe, &source, NULL) == SWPIPE_OK,
          "without it, it runs: %s", swpipe_error(pipe));
    swpipe_close(pipe);
}

static int nothing(struct swpipe_context *context, void *arg)
{
    (void)context;
    (void)arg;
    return 0;
}

/* A recorded run of nine iterations is a run of the machine. */
static void check_recorded(const char *text, struct swpipe_task *tasks, size_t count,
                           const char *what)
{
    struct swpipe_config config = {
        .threads = way, .plan_text = text, .tasks = tasks, .task_count = count};
    struct numbers numbers = {0, 9, -1};
    struct swpipe_source source = source_of(&numbers);
    struct swpipe_recorded recorded = {0};
    struct swpipe *pipe;
    check(swpipe_open(&config, &pipe) == SWPIPE_OK && swpipe_record(pipe, "") == SWPIPE_OK &&
              swpipe_run(pipe, &source, NULL) == SWPIPE_OK && is_legal(pipe, &recorded, 9),
          "a recorded run, %s: %s", what, swpipe_error(pipe));
    swpipe_close(pipe);
}

/* CPU work behind the device work of a function has its step there. */
static void test_record_after(void)
{
    static const char text[] =
        "swplan: 1\nname: after\nschedule:\n"
        "  A: {stage: 0, stream: s, host_time: 1us, time: 1us, host_after: 1us}\n"
        "  B: {stage: 1, time: 1us, host_after: 1us, sync_after: stream}\n"
        "intra_iter_deps: [[B, A]]\n";
    struct swpipe_task tasks[] = {{"A", nothing, NULL, NULL, 0},
                                  {"B", count_and_work, NULL, NULL, 0}};
    check_recorded(text, tasks, 2, "CPU work behind device work");
}

/* Between the CPU work of a task and its device work there may be more of the plan: the lock of the context, and waits for
   the order of the legacy stream. A function is called behind all that, with the plan's own work or without. */
static void test_record_ordered(const char *knob)
{
    static const char tasks_text[] =
        "schedule:\n"
        "  A: {stage: 0, stream: s, thread_group: io, host_time: 2us, time: 1us, host_after: 1us}\n"
        "  B: {stage: 1, stream: t, host_time: 2us, time: 1us}\n"
        "  C: {stage: 2, stream: u, host_time: 2us, time: 1us}\n"
        "intra_iter_deps: [[B, A], [C, B]]\n";
    char text[600];
    snprintf(text, sizeof text, "swplan: 1\nname: ordered\n%s\n%s", knob, tasks_text);
    struct swpipe_task tasks[] = {{"A", nothing, NULL, NULL, 0},
                                  {"B", count_and_work, NULL, NULL, 0},
                                  {"C", nothing, NULL, NULL, 0}};
    check_recorded(text, tasks, 3, knob);
}

/* The loading of a kernel belongs to a launch, not to a task that may be a function. */
static void test_record_load(void)
{
    static const char text[] = "swplan: 1\nname: load\nmachine: {lazy_load: true}\nschedule:\n"
                               "  A: {stage: 0, stream: s, work: {axpy: {elements: 8}}}\n"
                               "  B: {stage: 1, work: {axpy: {elements: 8}}}\n"
                               "intra_iter_deps: [[B, A]]\n";
    check_recorded(text, NULL, 0, "kernels that are loaded when they are launched");
}

/* All kinds of tasks as functions: with CPU work, without device work, with residency slots and lazy
   loading, collectives that are done by the plan's own work, a queue that is short. */
static void test_record_kinds(void)
{
    static const char text[] =
        "swplan: 1\nname: kinds\nranks: 2\nmachine: {sm_slots: 1, lazy_load: true, launch_queue: "
        "3}\n"
        "schedule:\n"
        "  Read: {stage: 0, thread_group: io, work: {host: 10us}}\n"
        "  H2D: {stage: 0, stream: memcpy, host_time: 20us, writes: [b], work: {copy: h2d, bytes: "
        "4KiB}}\n"
        "  Left: {stage: 1, stream: left, thread_group: io, sm: 1, time: 50us}\n"
        "  Right: {stage: 1, stream: right, sm: 1, time: 50us}\n"
        "  Sum: {stage: 1, globally_ordered: true, reads: [b], writes: [s],\n"
        "        work: {collective: all_reduce, comm: dp, bytes: 4KiB}}\n"
        "intra_iter_deps: [[H2D, Read], [Left, H2D], [Right, H2D], [Sum, H2D]]\n"
        "buffers: {b: {scope: iteration}, s: {scope: shared}}\n";
    struct swpipe_task tasks[] = {{"Read", nothing, NULL, NULL, 0},
                                  {"H2D", count_and_work, NULL, NULL, 0},
                                  {"Left", nothing, NULL, NULL, 0},
                                  {"Right", count_and_work, NULL, NULL, 0},
                                  {"Sum", count_and_work, NULL, NULL, 0}};
    for (int driver = 0; driver < 2; driver++) {
        struct swpipe_config config = {.threads = way,
                                       .plan_text = text,
                                       .plan_file = "kinds.yaml",
                                       .tasks = tasks,
                                       .task_count = 5,
                                       .driver = driver ? SWPIPE_DATAFLOW : SWPIPE_CLOCK};
        struct swpipe *pipe;
        struct numbers numbers = {0, 60, -1}; /* both ranks take from it */
        struct swpipe_source source = source_of(&numbers);
        struct swpipe_recorded recorded = {0};
        check(swpipe_open(&config, &pipe) == SWPIPE_OK && !swpipe_record(pipe, store_path) &&
                  swpipe_run(pipe, &source, NULL) == SWPIPE_OK,
              "all kinds of functions: %s", swpipe_error(pipe));
        check(is_legal(pipe, &recorded, 30), "in a legal run");
        numbers = (struct numbers){0, 20, -1};
        check(swpipe_run_serial(pipe, &source, NULL) == SWPIPE_OK &&
                  swpipe_drain(pipe) == SWPIPE_OK && is_legal(pipe, &recorded, 10),
              "and serially: %s", swpipe_error(pipe));
        swpipe_close(pipe);
        unlink(store_path);
    }
}

/* A collective that a function does not do is none: the trace says so, the run goes on. */
static void test_record_illegal(void)
{
    static const char text[] = "swplan: 1\nname: alone\nranks: 2\nschedule:\n"
                               "  Sum: {stage: 0, globally_ordered: true,\n        work: "
                               "{collective: all_reduce, comm: dp, bytes: 4KiB}}\n"
                               "  Next: {stage: 0}\nintra_iter_deps: [[Next, Sum]]\n";
    struct swpipe_task task = {"Sum", nothing, NULL, NULL, 0};
    struct swpipe_config config = {.threads = way,
                                   .plan_text = text,
                                   .plan_file = "alone.yaml",
                                   .tasks = &task,
                                   .task_count = 1};
    struct swpipe *pipe;
    struct numbers numbers = {0, 40, -1};
    struct swpipe_source source = source_of(&numbers);
    struct swpipe_recorded recorded = {0};
    check(swpipe_open(&config, &pipe) == SWPIPE_OK && !swpipe_record(pipe, store_path) &&
              swpipe_run(pipe, &source, NULL) == SWPIPE_OK && !swpipe_recorded(pipe, &recorded),
          "a collective that is none: %s", swpipe_error(pipe));
    check(recorded.legal == 0 && strstr(recorded.why, "not legal"), "is not what the plan says: %s",
          recorded.why);
    swpipe_close(pipe);
    unlink(store_path);
}

static void refuse(struct swpipe_config config, const char *words, const char *what)
{
    struct swpipe *pipe;
    enum swpipe_status status = swpipe_open(&config, &pipe);
    check(status != SWPIPE_OK && strstr(swpipe_error(pipe), words), "%s: %s", what,
          swpipe_error(pipe));
    struct numbers numbers = {0, 3, -1};
    const struct swpipe_source source = source_of(&numbers);
    check(swpipe_run(pipe, &source, NULL) == SWPIPE_USAGE && numbers.next == 0 &&
              strstr(swpipe_error(pipe), "did not open") && swpipe_depth(pipe) == -1 &&
              swpipe_task_count(pipe) == -1,
          "%s: what did not open does nothing: %s", what, swpipe_error(pipe));
    swpipe_close(pipe);
}

static int answer_five(void *arg, int rank, void **batch)
{
    (void)arg, (void)rank;
    *batch = NULL;
    return 5;
}

static void test_sources(void)
{
    const struct swpipe_config config = {.threads = way, .plan_text = plan_text};
    const struct swpipe_source nothing = {0}, strange = {answer_five, NULL};
    struct swpipe *pipe;
    void *batches[1] = {NULL};
    if (swpipe_open(&config, &pipe) == SWPIPE_OK) {
        tap_ok(swpipe_fill(pipe, &nothing) == SWPIPE_USAGE &&
                   strstr(swpipe_error(pipe), "`next`") &&
                   swpipe_run(pipe, &nothing, NULL) == SWPIPE_USAGE &&
                   swpipe_run_serial(pipe, &nothing, NULL) == SWPIPE_USAGE,
               "a source without a function is refused");
        tap_ok(swpipe_run(pipe, &strange, NULL) == SWPIPE_FAILED &&
                   strstr(swpipe_error(pipe), "the source failed"),
               "an answer that is none of a source's is a failure");
        tap_is_int(swpipe_drain(pipe), SWPIPE_OK, "and the pipeline can be drained");
        tap_ok(swpipe_run_serial(pipe, &strange, NULL) == SWPIPE_FAILED, "so it is serially");
        tap_is_int(swpipe_run_one_serial(pipe, batches, -1), SWPIPE_USAGE,
                   "an iteration has no negative number");
    }
    swpipe_close(pipe);
}

static void give_nothing(void *arg, int rank, void *address, size_t bytes)
{
    (void)arg, (void)rank, (void)address, (void)bytes;
}

/* In place of a pipeline that memory was too short for, of a place for an answer, of a name. */
static void test_nothing(void)
{
    const struct swpipe_config config = {.threads = way, .plan_text = plan_text};
    struct numbers numbers = {0, 3, -1};
    const struct swpipe_source source = source_of(&numbers);
    const struct swpipe_profile_options skip = {.skip_count = 1};
    struct swpipe_recorded recorded;
    struct swpipe_answer answer;
    struct swpipe_profile profile;
    struct swpipe_event *event;
    struct swpipe *pipe;
    tap_is_int(swpipe_open(&config, NULL), SWPIPE_USAGE, "no place for the pipeline");
    tap_is_int(swpipe_open(NULL, &pipe), SWPIPE_USAGE, "no configuration");
    swpipe_close(pipe);
    tap_ok(swpipe_fill(NULL, &source) == SWPIPE_USAGE &&
               swpipe_progress(NULL, &source, NULL) == SWPIPE_USAGE &&
               swpipe_drain(NULL) == SWPIPE_USAGE &&
               swpipe_run(NULL, &source, NULL) == SWPIPE_USAGE &&
               swpipe_run_serial(NULL, &source, NULL) == SWPIPE_USAGE &&
               swpipe_run_one_serial(NULL, NULL, 0) == SWPIPE_USAGE &&
               swpipe_verify(NULL, 0, &answer) == SWPIPE_USAGE &&
               swpipe_predict(NULL, &answer) == SWPIPE_USAGE &&
               swpipe_record(NULL, "") == SWPIPE_USAGE &&
               swpipe_recorded(NULL, &recorded) == SWPIPE_USAGE &&
               swpipe_enable_shortcut(NULL, "Load") == SWPIPE_USAGE &&
               swpipe_disable_shortcut(NULL, NULL) == SWPIPE_USAGE &&
               swpipe_profile(NULL, NULL, NULL, &profile) == SWPIPE_USAGE &&
               swpipe_print(NULL, stdout) == SWPIPE_USAGE && !swpipe_format(NULL) &&
               swpipe_event_open(NULL, 0, &event) == SWPIPE_USAGE,
           "without a pipeline every call is refused");
    tap_ok(swpipe_depth(NULL) == -1 && swpipe_task_count(NULL) == -1 &&
               swpipe_rank_count(NULL) == -1 && !swpipe_task_name(NULL, 0) &&
               swpipe_in_flight(NULL) == 0 && !swpipe_result(NULL, 0) &&
               swpipe_graph_launches(NULL) == 0 && !swpipe_comm_is_lost(NULL, "dp") &&
               swpipe_event_done(NULL) == -1 && swpipe_event_sync(NULL, 0) == SWPIPE_USAGE,
           "and says nothing");
    if (swpipe_open(&config, &pipe) == SWPIPE_OK) {
        tap_ok(swpipe_verify(pipe, 0, NULL) == SWPIPE_USAGE &&
                   swpipe_verify(pipe, -1, &answer) == SWPIPE_USAGE &&
                   strstr(swpipe_error(pipe), "limit_ns is negative") &&
                   swpipe_predict(pipe, NULL) == SWPIPE_USAGE &&
                   swpipe_recorded(pipe, NULL) == SWPIPE_USAGE &&
                   swpipe_profile(pipe, NULL, NULL, NULL) == SWPIPE_USAGE &&
                   swpipe_profile_many(pipe, NULL, 2, NULL, &profile) == SWPIPE_USAGE &&
                   swpipe_profile(pipe, NULL, &skip, &profile) == SWPIPE_USAGE &&
                   strstr(swpipe_error(pipe), "skip is NULL") &&
                   swpipe_print(pipe, NULL) == SWPIPE_USAGE && !swpipe_format_profile(pipe, NULL) &&
                   swpipe_event_open(pipe, 0, NULL) == SWPIPE_USAGE &&
                   !swpipe_comm_is_lost(pipe, NULL),
               "answers need a place, options their arrays");
        tap_is_int(swpipe_verify(pipe, INT64_MAX, &answer), SWPIPE_OK, "a limit without end");
    }
    swpipe_close(pipe);
    const struct swpipe_config endless = {.plan_text = plan_text,
                                          .wait_timeout_ns = INT64_MAX - 1,
                                          .progress_timeout_ns = INT64_MAX - 1,
                                          .spin_ns = INT64_MAX,
                                          .proof_limit_ns = INT64_MAX};
    check(swpipe_open(&endless, &pipe) == SWPIPE_OK && swpipe_run(pipe, &source, NULL) == SWPIPE_OK,
          "limits without end do not pass at once: %s", swpipe_error(pipe));
    swpipe_close(pipe);
}

static int use_nothing(struct swpipe_context *context, void *arg)
{
    (void)arg;
    if (swpipe_get(context, NULL) || swpipe_buffer(context, NULL, NULL) ||
        swpipe_set(context, NULL, arg, NULL) == 0 || swpipe_alloc(context, NULL, 8) ||
        swpipe_event_record(context, NULL) == 0 || swpipe_event_wait(context, NULL) == 0)
        return swpipe_fail(context, "something without a name");
    swpipe_unset(context, NULL);
    return 0;
}

/* ---- calls within calls ---------------------------------------------------------------------------- */

struct within {
    struct swpipe *pipe;
    atomic_int refused, calls;
    int left;
};

static void call_within(struct within *within)
{
    struct swpipe_answer answer;
    const bool refused = swpipe_drain(within->pipe) == SWPIPE_USAGE &&
                         swpipe_progress(within->pipe, NULL, NULL) == SWPIPE_USAGE &&
                         swpipe_verify(within->pipe, 0, &answer) == SWPIPE_USAGE &&
                         !swpipe_format(within->pipe);
    swpipe_close(within->pipe);
    atomic_fetch_add(&within->refused, refused);
    atomic_fetch_add(&within->calls, 1);
}

static int next_within(void *arg, int rank, void **batch)
{
    struct within *within = arg;
    (void)rank;
    *batch = NULL;
    call_within(within);
    return within->left-- > 0;
}

static void retired_within(void *arg, const struct swpipe_retired *retired)
{
    (void)retired;
    call_within(arg);
}

/* A pipeline that is at work is not drained or closed by its own functions. */
static void test_within(void)
{
    struct within within = {.left = 3};
    struct swpipe_task task = {"Load", use_nothing, NULL, NULL, 0};
    const struct swpipe_config config = {.threads = way,
                                         .plan_text = plan_text,
                                         .tasks = &task,
                                         .task_count = 1,
                                         .hooks = {.retired = retired_within, .arg = &within}};
    const struct swpipe_source source = {next_within, &within};
    bool ran = swpipe_open(&config, &within.pipe) == SWPIPE_OK &&
               swpipe_run(within.pipe, &source, NULL) == SWPIPE_OK;
    check(ran, "a run whose functions call it, and give no names: %s", swpipe_error(within.pipe));
    tap_ok(within.calls == 7 && within.refused == 7, "%d of %d calls within it were refused",
           within.refused, within.calls);
    tap_is_int(swpipe_drain(within.pipe), SWPIPE_OK, "behind it they are not");
    swpipe_close(within.pipe);
}

static void test_refusals(void)
{
    struct swpipe_task unknown = {"Fwd", forward, NULL, NULL, 0};
    struct swpipe_task twice[] = {{"Load", load, NULL, NULL, 0}, {"Load", load, NULL, NULL, 0}};
    refuse((struct swpipe_config){0}, "plan_file", "no plan");
    refuse((struct swpipe_config){.plan_file = "/does/not/exist.yaml"}, "exist", "no file");
    refuse((struct swpipe_config){.plan_text = "swplan: 1\nname: x\n"}, "schedule", "half a plan");
    refuse((struct swpipe_config){.plan_text = plan_text, .tasks = &unknown, .task_count = 1},
           "no task 'Fwd'", "an unknown task");
    refuse((struct swpipe_config){.plan_text = plan_text, .tasks = twice, .task_count = 2}, "twice",
           "a task given twice");
    refuse((struct swpipe_config){.plan_text = plan_text, .max_depth = -3}, "expected at least 0",
           "a negative depth");
    refuse((struct swpipe_config){.plan_text = plan_text, .max_depth = -3}, "max_depth is -3",
           "it is named");
    refuse((struct swpipe_config){.plan_text = plan_text, .proof_limit_ns = -2},
           "proof_limit_ns is -2", "a negative limit of the proof");
    refuse((struct swpipe_config){.plan_text = plan_text, .wait_timeout_ns = -2},
           "wait_timeout_ns is -2", "a negative limit of waits");
    refuse((struct swpipe_config){.plan_text = plan_text, .max_depth = 2}, "the data-flow driver",
           "a depth of the clock");
    refuse((struct swpipe_config){.plan_text = plan_text,
                                  .graph = SWPIPE_GRAPH_REQUIRE,
                                  .driver = SWPIPE_DATAFLOW},
           "no graphs", "graphs of data-flow");
    refuse((struct swpipe_config){.plan_text = plan_text,
                                  .own = {.allocator = {.release = give_nothing}}},
           "a release, but no alloc", "half an allocator");
    struct swpipe_task half = {"Load", load, NULL, NULL, 1};
    const char *const none = NULL;
    refuse((struct swpipe_config){.plan_text = plan_text, .task_count = 1}, "tasks is NULL",
           "a count of tasks without tasks");
    refuse((struct swpipe_config){.plan_text = plan_text, .tasks = &half, .task_count = 1},
           "io of task 'Load' is NULL", "a count of io without io");
    refuse((struct swpipe_config){.plan_text = plan_text, .device_only_count = 1},
           "device_only is NULL", "a count of names without names");
    refuse((struct swpipe_config){.plan_text = plan_text,
                                  .device_only = &none,
                                  .device_only_count = 1},
           "name 0 is NULL", "a name that is none");
    const char *const load_name = "Load";
    refuse((struct swpipe_config){.plan_text = plan_text,
                                  .device_only = &load_name,
                                  .device_only_count = 1},
           "device_only: task 'Load' has no function", "a name of a task without a function");
    refuse((struct swpipe_config){.plan_text = plan_text, .own = {.stream_count = 1}},
           "own.streams is NULL", "a count of streams without streams");
    refuse((struct swpipe_config){.plan_text = plan_text, .driver = (enum swpipe_driver)7}, "is 7",
           "a driver that is none");
    refuse((struct swpipe_config){.plan_text = plan_text, .device = (enum swpipe_device)7}, "0, 7",
           "a device that is none");
    refuse((struct swpipe_config){.plan_text = plan_text, .graph = (enum swpipe_graph)7}, "0, 7",
           "a way of graphs that is none");
    refuse((struct swpipe_config){.plan_text = plan_text, .ranks = INT_MAX}, "at most",
           "ranks without end");
    refuse((struct swpipe_config){.plan_text = plan_text, .max_depth = INT_MAX}, "at most",
           "a depth without end");
    swpipe_close(NULL);
}

/* ---- faults that the program handles, as a debugger or a collector of garbage does ----------------- */

static struct {
    volatile char *pages; /* [2] that nobody may touch */
    size_t page_bytes;
    atomic_int opened;
} guarded;

static void open_pages(int number)
{
    (void)number;
    atomic_fetch_add(&guarded.opened, 1);
    if (mprotect((void *)(uintptr_t)guarded.pages, 2 * guarded.page_bytes,
                 PROT_READ | PROT_WRITE) != 0)
        _exit(1);
}

static void touch_on_device(void *arg)
{
    (void)arg;
    mprotect((void *)(uintptr_t)guarded.pages, guarded.page_bytes, PROT_NONE);
    guarded.pages[0] = 1;
}

static int touch(struct swpipe_context *context, void *arg)
{
    guarded.pages[guarded.page_bytes] = 1;
    return swpipe_launch(context, touch_on_device, arg);
}

static void test_fault(void)
{
    const struct sigaction action = {.sa_handler = open_pages};
    struct sigaction before;
    struct numbers numbers = {0, 1, -1};
    struct swpipe_source source = source_of(&numbers);
    struct swpipe_task tasks[] = {{"Touch", touch, NULL, NULL, 0}};
    const struct swpipe_config config = {
        .threads = way,
        .plan_text = "swplan: 1\nname: touch\nschedule:\n  Touch: {stage: 0, stream: s}\n",
        .tasks = tasks,
        .task_count = 1};
    struct swpipe *pipe;
    atomic_store(&guarded.opened, 0);
    guarded.page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    guarded.pages =
        mmap(NULL, 2 * guarded.page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaction(SIGSEGV, &action, &before);
    bool ran =
        swpipe_open(&config, &pipe) == SWPIPE_OK && swpipe_run(pipe, &source, NULL) == SWPIPE_OK;
    check(ran && atomic_load(&guarded.opened) == 2,
          "faults of a function and of its device work reach the program's handler: %d, %s",
          atomic_load(&guarded.opened), swpipe_error(pipe));
    swpipe_close(pipe);
    sigaction(SIGSEGV, &before, NULL);
    munmap((void *)(uintptr_t)guarded.pages, 2 * guarded.page_bytes);
}

/* ---- a release that uses its iteration ----------------------------------------------------------- */

static struct swpipe_context *released_in;
static int refused_calls;

static void release_and_use(void *value, void *arg)
{
    (void)value, (void)arg;
    swpipe_unset(released_in, "a");
    swpipe_set_result(released_in, NULL);
    refused_calls += swpipe_set(released_in, "b", NULL, NULL) == -1;
    refused_calls += swpipe_get(released_in, "a") == NULL;
    refused_calls += swpipe_alloc(released_in, "c", 8) == NULL;
}

/* The task returns what the release was told. */
static int replace(struct swpipe_context *context, void *arg)
{
    static const struct swpipe_kind kind = {.release = release_and_use};
    static int value;
    (void)arg;
    released_in = context;
    refused_calls = 0;
    if (swpipe_set(context, "a", &value, &kind) != 0 || swpipe_set(context, "a", &value, NULL) != 0)
        return swpipe_fail(context, "a value was not set");
    return refused_calls == 3 ? -1 : swpipe_fail(context, "%d calls were refused", refused_calls);
}

static void test_release(void)
{
    struct swpipe_task task = {.name = "Load", .function = replace};
    struct swpipe_config config = {
        .threads = way, .plan_text = plan_text, .tasks = &task, .task_count = 1};
    struct numbers numbers = {.end = 1, .fail_at = -1};
    struct swpipe_source source = source_of(&numbers);
    struct swpipe *pipe;
    check(swpipe_open(&config, &pipe) == SWPIPE_OK, "it opens: %s", swpipe_error(pipe));
    alarm(60); /* a lock that is never given back */
    const enum swpipe_status status = swpipe_run(pipe, &source, NULL);
    alarm(0);
    check(status == SWPIPE_FAILED &&
              strstr(swpipe_error(pipe),
                     "swpipe_alloc: the release of a value cannot use its iteration") != NULL,
          "the release of a value is refused: %s", swpipe_error(pipe));
    swpipe_close(pipe);
}

static void test_way(void)
{
    for (int driver = 0; driver < 2; driver++) {
        const char *name = driver ? "dataflow" : "clock";
        test_run((enum swpipe_driver)driver, name);
        test_drain((enum swpipe_driver)driver, name);
        test_failure((enum swpipe_driver)driver, name);
        test_limits((enum swpipe_driver)driver, name);
        test_record((enum swpipe_driver)driver, name);
        test_record_failure((enum swpipe_driver)driver, name);
    }
    test_serial();
    test_hang();
    test_shortcut();
    test_profile();
    test_tables();
    test_ranks();
    test_record_refusals();
    test_record_after();
    test_record_load();
    test_record_ordered("streams: {s: {legacy: true}}");
    test_record_ordered("streams: {t: {legacy: true}}");
    test_record_ordered("machine: {launch_lock: true}");
    test_record_kinds();
    test_record_illegal();
    test_refusals();
    test_release();
    test_nothing();
    test_within();
    test_sources();
    test_fault();
}

int main(void)
{
    store_path = path_temp("run.db");
    test_way();
    tap_note("functions are called on the caller's thread");
    way = SWPIPE_CALLER;
    test_way();
    return tap_done();
}
