/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_swpipe_hostile.c - calls of libswpipe that make no sense: without a pipeline, a context, a function or a name, in the
 * wrong order, twice, and from a second thread while a run is under way. Each has an answer, and a sentence where there
 * is a pipeline that can keep one.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/lib/swpipe.h"
#include "tests/tap.h"

static const char plan_text[] =
    "swplan: 1\nname: hostile\nschedule:\n"
    "  Load: {stage: 0, stream: memcpy, thread_group: io}\n"
    "  Step: {stage: 1, thread_group: step}\n"
    "intra_iter_deps: [[Step, Load]]\ninter_iter_deps: [[Step, Step]]\n";

enum { LITTLE = 20 };

static int next(void *arg, int rank, void **batch)
{
    int *left = arg;
    (void)rank;
    *batch = left;
    return (*left)-- > 0;
}

static struct swpipe *open_with(swpipe_function *function, void *arg)
{
    const struct swpipe_task task = {"Step", function, arg, NULL, 0};
    const struct swpipe_config config = {.plan_text = plan_text,
                                         .plan_file = "hostile.yaml",
                                         .tasks = &task,
                                         .task_count = 1,
                                         .proof_limit_ns = -1};
    struct swpipe *pipe;
    swpipe_open(&config, &pipe);
    return pipe;
}

/* ---- without a pipeline ---------------------------------------------------------------------- */

static void test_no_pipe(void)
{
    struct swpipe_recorded recorded;
    struct swpipe_answer answer;
    struct swpipe_profile profile;
    struct swpipe_event *event;
    int64_t iteration = 7;
    double seconds = 7;
    int left = 1;
    const struct swpipe_source source = {next, &left};
    const enum swpipe_status statuses[] = {swpipe_open(NULL, NULL),
                                           swpipe_verify(NULL, 0, &answer),
                                           swpipe_predict(NULL, &answer),
                                           swpipe_fill(NULL, &source),
                                           swpipe_progress(NULL, &source, &iteration),
                                           swpipe_drain(NULL),
                                           swpipe_run(NULL, &source, &seconds),
                                           swpipe_run_serial(NULL, &source, &seconds),
                                           swpipe_run_one_serial(NULL, NULL, 0),
                                           swpipe_record(NULL, ""),
                                           swpipe_recorded(NULL, &recorded),
                                           swpipe_enable_shortcut(NULL, "Step"),
                                           swpipe_disable_shortcut(NULL, NULL),
                                           swpipe_profile(NULL, NULL, NULL, &profile),
                                           swpipe_profile_many(NULL, NULL, 0, NULL, NULL),
                                           swpipe_print_schedule(NULL, 0, stdout),
                                           swpipe_print_stage_analysis(NULL, stdout),
                                           swpipe_print_profile(NULL, NULL, stdout),
                                           swpipe_print_stats(NULL, stdout),
                                           swpipe_print(NULL, stdout),
                                           (enum swpipe_status)swpipe_event_open(NULL, 0, &event),
                                           (enum swpipe_status)swpipe_event_sync(NULL, 0),
                                           (enum swpipe_status)swpipe_join(NULL, NULL),
                                           (enum swpipe_status)swpipe_group_wait(NULL)};
    int usage = 0, count = (int)(sizeof statuses / sizeof *statuses);
    for (int i = 0; i < count; i++)
        usage += statuses[i] == SWPIPE_USAGE;
    tap_is_int(usage, count, "every call without a pipeline is SWPIPE_USAGE");
    tap_ok(iteration == 7 && seconds == 7 && left == 1, "and changes nothing");
    tap_ok(swpipe_depth(NULL) == -1 && swpipe_task_count(NULL) == -1 &&
               swpipe_rank_count(NULL) == -1 && swpipe_in_flight(NULL) == 0 &&
               swpipe_graph_launches(NULL) == 0 && swpipe_event_done(NULL) == -1 &&
               swpipe_group_rank(NULL) == -1 && swpipe_group_size(NULL) == -1,
           "numbers of none");
    tap_ok(!swpipe_task_name(NULL, 0) && !swpipe_result(NULL, 0) &&
               !swpipe_comm_is_lost(NULL, "dp") && !swpipe_format(NULL) &&
               !swpipe_format_schedule(NULL, 0) && !swpipe_format_stage_analysis(NULL) &&
               !swpipe_format_profile(NULL, NULL) && !swpipe_format_stats(NULL),
           "and texts");
    tap_ok(*swpipe_error(NULL) && *swpipe_group_error(NULL) && *swpipe_plan_error(NULL),
           "there is a sentence all the same: %s", swpipe_error(NULL));
    swpipe_close(NULL);
    swpipe_event_close(NULL);
    swpipe_leave(NULL);
    swpipe_plan_free(NULL);
}

/* ---- without a context ----------------------------------------------------------------------- */

static void nothing(void *arg)
{
    (void)arg;
}

static int without_context(struct swpipe_context *context, void *arg)
{
    const size_t counts[1] = {1};
    float numbers[2] = {0};
    int failed = 0;
    (void)context;
    failed += swpipe_iteration(NULL) == -1;
    failed += swpipe_rank(NULL) == -1;
    failed += !swpipe_batch(NULL);
    failed += swpipe_fail(NULL, "%d", 1) == -1;
    failed += swpipe_set(NULL, "x", NULL, NULL) == -1;
    failed += !swpipe_get(NULL, "x");
    failed += !swpipe_alloc(NULL, "x", 8);
    failed += !swpipe_buffer(NULL, "x", NULL);
    failed += !swpipe_stream(NULL);
    failed += swpipe_launch(NULL, nothing, NULL) == -1;
    failed += swpipe_work(NULL) == -1;
    failed += swpipe_comm_size(NULL, NULL) == -1;
    failed += swpipe_comm_place(NULL, NULL) == -1;
    failed += !swpipe_comm_handle(NULL, NULL);
    failed += swpipe_all_reduce(NULL, NULL, numbers, numbers, 1, SWPIPE_F32) == -1;
    failed += swpipe_all_gather(NULL, NULL, numbers, numbers, 1, SWPIPE_F32) == -1;
    failed += swpipe_reduce_scatter(NULL, NULL, numbers, numbers, 1, SWPIPE_F32) == -1;
    failed += swpipe_broadcast(NULL, NULL, numbers, numbers, 1, SWPIPE_F32, 0) == -1;
    failed += swpipe_all_to_all(NULL, NULL, numbers, numbers, 1, SWPIPE_F32) == -1;
    failed += swpipe_all_to_all_v(NULL, NULL, numbers, counts, numbers, counts, SWPIPE_F32) == -1;
    failed += swpipe_send(NULL, NULL, numbers, 1, SWPIPE_F32, 0) == -1;
    failed += swpipe_receive(NULL, NULL, numbers, 1, SWPIPE_F32, 0) == -1;
    failed += swpipe_sync(NULL) == -1;
    failed += swpipe_event_record(NULL, NULL) == -1;
    failed += swpipe_event_wait(NULL, NULL) == -1;
    swpipe_set_result(NULL, arg);
    swpipe_unset(NULL, "x");
    *(int *)arg = failed;
    return 0;
}

static void test_no_context(void)
{
    int failed = 0, left = 1;
    const struct swpipe_source source = {next, &left};
    struct swpipe *pipe = open_with(without_context, &failed);
    enum swpipe_status status = swpipe_run(pipe, &source, NULL);
    tap_ok(status == SWPIPE_OK, "a function without its context: %s", swpipe_error(pipe));
    tap_is_int(failed, 25, "each of its calls says so");
    swpipe_close(pipe);
}

/* ---- nothing in place of things -------------------------------------------------------------- */

static int launch_null(struct swpipe_context *context, void *arg)
{
    return swpipe_launch(context, NULL, arg);
}

static int set_null(struct swpipe_context *context, void *arg)
{
    return swpipe_set(context, NULL, arg, NULL);
}

static int alloc_null(struct swpipe_context *context, void *arg)
{
    (void)arg;
    swpipe_unset(context, NULL);
    return swpipe_get(context, NULL) || swpipe_buffer(context, NULL, NULL) ||
                   swpipe_alloc(context, NULL, 8)
               ? 0
               : -1;
}

static int alloc_all(struct swpipe_context *context, void *arg)
{
    (void)arg;
    return swpipe_alloc(context, "all", SIZE_MAX) || swpipe_alloc(context, "half", SIZE_MAX / 2)
               ? 0
               : -1;
}

static int reduce(struct swpipe_context *context, void *arg)
{
    float number = 0;
    (void)arg;
    return swpipe_all_reduce(context, "nobody", &number, &number, 1, SWPIPE_F32);
}

static int event_null(struct swpipe_context *context, void *arg)
{
    (void)arg;
    return swpipe_event_record(context, NULL);
}

static int fail_null(struct swpipe_context *context, void *arg)
{
    (void)arg;
    return swpipe_fail(context, NULL);
}

static void test_bad_arguments(void)
{
    const struct {
        swpipe_function *function;
        const char *says;
    } cases[] = {{launch_null, "swpipe_launch: the function is NULL"},
                 {set_null, "swpipe_set: the name is NULL"},
                 {alloc_null, "swpipe_alloc: the name is NULL"},
                 {alloc_all, "Step(0) of rank 0 failed: "},
                 {reduce, "the plan does not give communicator 'nobody' to Step"},
                 {event_null, "the event is NULL"},
                 {fail_null, "gave no reason"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int left = 3;
        const struct swpipe_source source = {next, &left};
        struct swpipe *pipe = open_with(cases[i].function, NULL);
        enum swpipe_status status = swpipe_run(pipe, &source, NULL);
        tap_ok(status == SWPIPE_FAILED && strstr(swpipe_error(pipe), cases[i].says),
               "refused in a function: %s", swpipe_error(pipe));
        swpipe_close(pipe);
    }
}

/* ---- in the wrong order ---------------------------------------------------------------------- */

static int well(struct swpipe_context *context, void *arg)
{
    swpipe_set_result(context, arg);
    return 0;
}

/* SWPIPE_USAGE, with a sentence of its own. */
static bool refused(struct swpipe *pipe, enum swpipe_status status, const char *says)
{
    return status == SWPIPE_USAGE && strstr(swpipe_error(pipe), says);
}

static void test_wrong_order(void)
{
    int left = LITTLE, none = 0;
    int64_t iteration;
    const struct swpipe_source source = {next, &left}, empty = {next, &none}, nobody = {NULL, NULL};
    struct swpipe *pipe = open_with(well, &left);
    struct swpipe_recorded recorded;
    struct swpipe_answer answer;
    tap_ok(refused(pipe, swpipe_progress(pipe, &source, NULL), "progress without fill"),
           "progress without fill");
    tap_ok(refused(pipe, swpipe_fill(pipe, NULL), "source") &&
               refused(pipe, swpipe_fill(pipe, &nobody), "source") &&
               refused(pipe, swpipe_run(pipe, NULL, NULL), "source") &&
               refused(pipe, swpipe_run_serial(pipe, &nobody, NULL), "source"),
           "no source");
    tap_ok(refused(pipe, swpipe_run_one_serial(pipe, NULL, -1), "iteration -1"), "iteration -1");
    tap_ok(swpipe_recorded(pipe, &recorded) == SWPIPE_USAGE &&
               strstr(swpipe_error(pipe), "iteration -1"),
           "nothing was recorded, and the error before stays");
    tap_ok(!swpipe_format_stats(pipe) && strstr(swpipe_error(pipe), "no run has been recorded"),
           "nor are there figures");
    tap_ok(refused(pipe, swpipe_verify(pipe, 0, NULL), "is NULL") &&
               refused(pipe, swpipe_predict(pipe, NULL), "is NULL") &&
               refused(pipe, swpipe_verify(pipe, -1, &answer), "negative"),
           "questions without a place for the answer");
    tap_ok(refused(pipe, swpipe_print(pipe, NULL), "is NULL") &&
               refused(pipe, swpipe_print_profile(pipe, NULL, stdout), "no profile") &&
               refused(pipe, swpipe_print_schedule(pipe, -1, stdout), "periods"),
           "tables of nothing");
    tap_ok(swpipe_enable_shortcut(pipe, "Nobody") == SWPIPE_INPUT &&
               refused(pipe, swpipe_enable_shortcut(pipe, NULL), "no task is named"),
           "short-cuts of nothing");
    tap_ok(swpipe_drain(pipe) == SWPIPE_OK && swpipe_drain(pipe) == SWPIPE_OK,
           "draining what is empty is fine, twice");
    tap_ok(swpipe_fill(pipe, &source) == SWPIPE_OK &&
               refused(pipe, swpipe_fill(pipe, &source), "drain it first"),
           "fill twice");
    tap_ok(refused(pipe, swpipe_progress(pipe, &nobody, &iteration), "next"),
           "progress with a source that is none");
    tap_ok(refused(pipe, swpipe_record(pipe, ""), "drain it first") &&
               refused(pipe, swpipe_run(pipe, &source, NULL), "drain it first") &&
               refused(pipe, swpipe_run_serial(pipe, &source, NULL), "drain it first") &&
               refused(pipe, swpipe_run_one_serial(pipe, NULL, 0), "drain it first") &&
               refused(pipe, swpipe_enable_shortcut(pipe, "Step"), "drain it first") &&
               refused(pipe, swpipe_disable_shortcut(pipe, NULL), "drain it first"),
           "what cannot be while it is filled");
    tap_ok(swpipe_progress(pipe, &source, &iteration) == SWPIPE_OK && iteration == 0,
           "it goes on all the same");
    tap_ok(swpipe_drain(pipe) == SWPIPE_OK && swpipe_in_flight(pipe) == 0, "and is drained");
    tap_ok(refused(pipe, swpipe_progress(pipe, &source, NULL), "without fill"), "and is empty");
    tap_ok(swpipe_run(pipe, &empty, NULL) == SWPIPE_OK &&
               swpipe_run_serial(pipe, &empty, NULL) == SWPIPE_OK,
           "no data at all is the end at once");
    tap_ok(swpipe_result(pipe, -1) == NULL && swpipe_result(pipe, 1) == NULL &&
               swpipe_result(pipe, 0) == &left,
           "results of ranks that are none");
    swpipe_close(pipe);
}

/* A pipeline that did not open answers each call. */
static void test_not_open(void)
{
    const struct swpipe_config config = {.plan_text = "swplan: 1\nname: x\n",
                                         .plan_file = "x.yaml"};
    struct swpipe_answer answer;
    struct swpipe_event *event;
    int left = 1;
    const struct swpipe_source source = {next, &left};
    struct swpipe *pipe;
    enum swpipe_status status = swpipe_open(&config, &pipe);
    tap_ok(status == SWPIPE_INPUT && *swpipe_error(pipe), "no plan: %s", swpipe_error(pipe));
    tap_ok(
        refused(pipe, swpipe_fill(pipe, &source), "did not open") &&
            refused(pipe, swpipe_progress(pipe, &source, NULL), "did not open") &&
            refused(pipe, swpipe_run(pipe, &source, NULL), "did not open") &&
            refused(pipe, swpipe_run_serial(pipe, &source, NULL), "did not open") &&
            refused(pipe, swpipe_drain(pipe), "did not open") &&
            refused(pipe, swpipe_record(pipe, ""), "did not open") &&
            refused(pipe, swpipe_print(pipe, stdout), "did not open") &&
            refused(pipe, (enum swpipe_status)swpipe_event_open(pipe, 0, &event), "did not open") &&
            refused(pipe, swpipe_verify(pipe, 0, &answer), "not read"),
        "each call says that");
    tap_ok(swpipe_depth(pipe) == -1 && !swpipe_task_name(pipe, 0) && !swpipe_result(pipe, 0) &&
               swpipe_in_flight(pipe) == 0,
           "and it has no numbers");
    swpipe_close(pipe);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void keep_message(void *arg, const char *text)
{
    strncat(arg, text, 999 - strlen(arg));
}

static void test_names(void)
{
    static const struct {
        const char *name, *says;
        enum swpipe_status status;
    } cases[] = {{"Lood", "hostile.yaml has no task 'Lood'; did you mean 'Load'?", SWPIPE_INPUT},
                 {"Backward", "has no task 'Backward', expected one of: Load, Step", SWPIPE_INPUT},
                 {"", "has no task '', expected one of: Load, Step", SWPIPE_INPUT},
                 {NULL, "the name of task 0 is NULL", SWPIPE_USAGE}};
    char told[1000] = "";
    struct swpipe *pipe;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct swpipe_task task = {cases[i].name, well, NULL, NULL, 0};
        const struct swpipe_config config = {
            .plan_text = plan_text, .plan_file = "hostile.yaml", .tasks = &task, .task_count = 1};
        enum swpipe_status status = swpipe_open(&config, &pipe);
        tap_ok(status == cases[i].status && strstr(swpipe_error(pipe), cases[i].says),
               "a name of none: %s", swpipe_error(pipe));
        swpipe_close(pipe);
    }
    const struct swpipe_task task = {"Step", well, NULL, NULL, 0};
    const struct swpipe_config config = {
        .plan_text = plan_text, .tasks = &task, .message = keep_message, .message_arg = told};
    enum swpipe_status status = swpipe_open(&config, &pipe);
    tap_ok(status == SWPIPE_OK && strstr(told, "tasks is given, but task_count is 0"),
           "functions without their count are told: %s", told);
    const char *skip = "step";
    const struct swpipe_profile_options options = {.skip = &skip, .skip_count = 1};
    struct swpipe_profile profile;
    status = swpipe_profile(pipe, NULL, &options, &profile);
    tap_ok(status == SWPIPE_INPUT &&
               strstr(swpipe_error(pipe), "skip: plan has no task 'step'; did"),
           "so is what is skipped: %s", swpipe_error(pipe));
    swpipe_close(pipe);
}

/* ---- from a second thread -------------------------------------------------------------------- */

struct asker {
    struct swpipe *pipe;
    atomic_bool stop;
    bool odd; /* an answer that cannot be */
    int64_t asked;
};

static void *ask(void *arg)
{
    struct asker *asker = arg;
    struct swpipe *pipe = asker->pipe;
    while (!atomic_load(&asker->stop)) {
        const int in_flight = swpipe_in_flight(pipe);
        const char *error = swpipe_error(pipe);
        asker->odd = asker->odd || in_flight < 0 || in_flight > 2 || swpipe_depth(pipe) != 2 ||
                     swpipe_task_count(pipe) != 2 || swpipe_rank_count(pipe) != 1 ||
                     strcmp(swpipe_task_name(pipe, 1), "Step") != 0 ||
                     swpipe_graph_launches(pipe) != 0 || swpipe_comm_is_lost(pipe, "dp") ||
                     (*error && strncmp(error, "Step(", 5) != 0);
        void *result = swpipe_result(pipe, 0);
        asker->odd = asker->odd || (result && result != asker);
        asker->asked++;
    }
    return NULL;
}

static int give_or_fail(struct swpipe_context *context, void *arg)
{
    swpipe_set_result(context, arg);
    return swpipe_iteration(context) == LITTLE ? swpipe_fail(context, "no luck") : 0;
}

/* Runs, serial runs and failures, with their engines, come and go while another thread asks. */
static void test_second_thread(void)
{
    struct asker asker = {0};
    pthread_t thread;
    int ok = 0, failed = 0;
    asker.pipe = open_with(give_or_fail, &asker);
    if (pthread_create(&thread, NULL, ask, &asker) != 0)
        abort();
    for (int i = 0; i < 20; i++) {
        int little = LITTLE, more = 2 * LITTLE;
        const struct swpipe_source good = {next, &little}, bad = {next, &more};
        ok += swpipe_run(asker.pipe, &good, NULL) == SWPIPE_OK;
        failed += swpipe_run(asker.pipe, &bad, NULL) == SWPIPE_FAILED;
        ok += swpipe_drain(asker.pipe) == SWPIPE_OK;
        little = LITTLE;
        ok += swpipe_run_serial(asker.pipe, &good, NULL) == SWPIPE_OK;
    }
    atomic_store(&asker.stop, true);
    pthread_join(thread, NULL);
    tap_ok(ok == 60 && failed == 20, "runs while another thread asks: %s",
           swpipe_error(asker.pipe));
    tap_ok(!asker.odd, "its answers are those of the run");
    tap_note("%lld questions", (long long)asker.asked);
    swpipe_close(asker.pipe);
}

/* Calls that change something are refused while one is under way. */
static void *disturb(void *arg)
{
    struct asker *asker = arg;
    struct swpipe_recorded recorded;
    int left = 1;
    const struct swpipe_source source = {next, &left};
    while (!atomic_load(&asker->stop) && asker->asked < 1000) {
        asker->odd = asker->odd || swpipe_fill(asker->pipe, &source) != SWPIPE_USAGE ||
                     swpipe_drain(asker->pipe) != SWPIPE_USAGE ||
                     swpipe_recorded(asker->pipe, &recorded) != SWPIPE_USAGE ||
                     swpipe_record(asker->pipe, NULL) != SWPIPE_USAGE || left != 1;
        asker->asked++;
    }
    return NULL;
}

struct disturbed {
    struct asker asker;
    pthread_t thread;
    int left;
    bool began;
};

/* The first batch starts the other thread, the last one waits for its end. */
static int next_disturbed(void *arg, int rank, void **batch)
{
    struct disturbed *disturbed = arg;
    (void)rank;
    *batch = NULL;
    if (!disturbed->began) {
        disturbed->began = true;
        if (pthread_create(&disturbed->thread, NULL, disturb, &disturbed->asker) != 0)
            abort();
    }
    if (disturbed->left-- > 0)
        return 1;
    pthread_join(disturbed->thread, NULL);
    return 0;
}

static void test_disturbed(void)
{
    struct disturbed disturbed = {.left = LITTLE};
    const struct swpipe_source source = {next_disturbed, &disturbed};
    disturbed.asker.pipe = open_with(well, NULL);
    enum swpipe_status status = swpipe_run(disturbed.asker.pipe, &source, NULL);
    tap_ok(status == SWPIPE_OK && !disturbed.asker.odd && disturbed.asker.asked == 1000,
           "calls by another thread are refused as long as swpipe_run is under way: %s",
           swpipe_error(disturbed.asker.pipe));
    swpipe_close(disturbed.asker.pipe);
}

/* ---- layouts --------------------------------------------------------------------------------- */

static void test_versions(void)
{
    static int set;
    const struct swpipe_config config = {.plan_text = plan_text, .reserved = {[3] = &set}};
    struct swpipe *pipe;
    enum swpipe_status status = swpipe_open(&config, &pipe);
    tap_ok(refused(pipe, status, "reserved[3]"), "a member of a later version: %s",
           swpipe_error(pipe));
    swpipe_close(pipe);
    tap_ok(strcmp(swpipe_version(), PACKAGE_VERSION) == 0 && swpipe_abi() == LIBRARY_ABI,
           "the library is %s, %d", swpipe_version(), swpipe_abi());
    tap_ok(strstr(swpipe_error(NULL), "no pipeline") &&
               strstr(swpipe_group_error(NULL), "no group"),
           "without a pipeline: %s", swpipe_error(NULL));
}

/* ---- in a fork ------------------------------------------------------------------------------- */

enum before { OPENED, FILLED, HAS_RUN };

/* The child's calls on its parent's pipeline; 0: all are as they should be. */
static int be_child(struct swpipe *pipe, const struct swpipe_source *source)
{
    int left = LITTLE;
    struct swpipe *own;
    alarm(20); /* a hang ends the child */
    bool good = refused(pipe, swpipe_run(pipe, source, NULL), "fork") &&
                refused(pipe, swpipe_progress(pipe, source, NULL), "fork") &&
                refused(pipe, swpipe_drain(pipe), "fork");
    swpipe_close(pipe);
    own = open_with(well, &left);
    good = good && swpipe_run(own, &(struct swpipe_source){next, &left}, NULL) == SWPIPE_OK;
    swpipe_close(own);
    return !good;
}

static void test_fork(enum swpipe_threads way, enum before before)
{
    static const char *const names[] = {"opened", "filled", "run before"};
    int left = LITTLE, status = -1;
    const struct swpipe_source source = {next, &left};
    const struct swpipe_task task = {"Step", well, &left, NULL, 0};
    const struct swpipe_config config = {
        .plan_text = plan_text, .tasks = &task, .task_count = 1, .threads = way};
    struct swpipe *pipe;
    swpipe_open(&config, &pipe);
    if (before == FILLED)
        swpipe_fill(pipe, &source);
    if (before == HAS_RUN)
        swpipe_run(pipe, &source, NULL);
    const pid_t child = fork();
    if (child == 0)
        _exit(be_child(pipe, &source));
    waitpid(child, &status, 0);
    tap_ok(WIFEXITED(status) && WEXITSTATUS(status) == 0,
           "a child of fork leaves its parent's pipeline alone: %s, %s", names[before],
           way == SWPIPE_CALLER ? "caller" : "workers");
    enum swpipe_status went = SWPIPE_OK;
    left = LITTLE;
    if (before == FILLED)
        went = swpipe_drain(pipe);
    tap_ok(went == SWPIPE_OK && swpipe_run(pipe, &source, NULL) == SWPIPE_OK, "which goes on: %s",
           swpipe_error(pipe));
    swpipe_close(pipe);
}

int main(void)
{
    for (int i = 0; i < 6; i++)
        test_fork(i & 1 ? SWPIPE_CALLER : SWPIPE_WORKERS, (enum before)(i / 2));
    test_versions();
    test_no_pipe();
    test_no_context();
    test_bad_arguments();
    test_wrong_order();
    test_not_open();
    test_names();
    test_second_thread();
    test_disturbed();
    return tap_done();
}
