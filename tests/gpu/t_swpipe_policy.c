/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_swpipe_policy.c - the program's own policy under data-flow: it is asked with what is ready, its choice is what begins,
 * recorded runs with it are legal, and a policy that cannot be followed fails the pipeline at once.
 * `t_swpipe_policy cuda`: on that device, with one rank.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/lib/swpipe.h"
#include "tests/tap.h"

static const char plan_text[] =
    "swplan: 1\nname: policy\nmax_depth: 3\nschedule:\n"
    "  Load: {stage: 0, stream: memcpy, thread_group: a, writes: [x]}\n"
    "  Sort: {stage: 0, stream: sort, thread_group: b, reads: [x], writes: [y]}\n"
    "  Hash: {stage: 0, stream: hash, thread_group: c, reads: [x], writes: [z]}\n"
    "  Train: {stage: 1, stream: train, thread_group: d, reads: [y, z], writes: [w]}\n"
    "intra_iter_deps: [[Sort, Load], [Hash, Load], [Train, Sort], [Train, Hash]]\n"
    "inter_iter_deps: [[Train, Train]]\n"
    "buffers: {w: {scope: shared}}\n";

static const char ordered_text[] =
    "swplan: 1\nname: ordered\nmax_depth: 3\nranks: %d\nschedule:\n"
    "  A: {stage: 0, stream: a, thread_group: a, globally_ordered: true, "
    "work: {collective: all_reduce, comm: one, bytes: 64B}}\n"
    "  B: {stage: 0, stream: b, thread_group: b, globally_ordered: true, "
    "work: {collective: all_reduce, comm: two, bytes: 64B}}\n"
    "  C: {stage: 0, stream: c, thread_group: c, work: {spin: 20us}}\n";

enum { BATCHES = 30, MOST = 400 };

struct log {
    pthread_mutex_t lock; /* ranks ask at the same time */
    int left;
    int asked, most_ready, most_flight;
    int wrong; /* offers that could not be */
    int begun;
    int answer; /* of an evil policy */
    char order[MOST];
};

static enum swpipe_device device = SWPIPE_HOST;
/* The threads that call functions: tests run both ways. */
static enum swpipe_threads way;

static int next_batch(void *arg, int rank, void **batch)
{
    struct log *log = arg;
    *batch = log;
    return rank == 0 ? log->left-- > 0 : log->left >= 0;
}

static int note(struct swpipe_context *context, void *arg)
{
    struct log *log = swpipe_batch(context);
    const char *name = arg;
    pthread_mutex_lock(&log->lock);
    if (log->begun < MOST - 1)
        log->order[log->begun] = *name;
    log->begun++;
    pthread_mutex_unlock(&log->lock);
    return 0;
}

static void look(struct log *log, const struct swpipe_choice *choice)
{
    pthread_mutex_lock(&log->lock);
    log->asked++;
    if (choice->ready_count > log->most_ready)
        log->most_ready = choice->ready_count;
    if (choice->in_flight > log->most_flight)
        log->most_flight = choice->in_flight;
    log->wrong += choice->ready_count < 1 || choice->in_flight > choice->max_in_flight ||
                  choice->max_in_flight != 3 || choice->running < 0 ||
                  (choice->running > 0 && !choice->may_wait);
    for (int i = 0; i < choice->ready_count; i++) {
        const struct swpipe_ready *ready = &choice->ready[i];
        log->wrong += ready->iteration < choice->oldest ||
                      ready->iteration >= choice->oldest + choice->in_flight ||
                      (i > 0 && ready->iteration < ready[-1].iteration) || !*ready->thread_group ||
                      !*ready->stream;
    }
    pthread_mutex_unlock(&log->lock);
}

static int first(void *arg, const struct swpipe_choice *choice)
{
    look(arg, choice);
    return 0;
}

static int last(void *arg, const struct swpipe_choice *choice)
{
    look(arg, choice);
    return choice->ready_count - 1;
}

/* One task at a time, Train before everything else, then Hash before Sort. */
static int one_by_one(void *arg, const struct swpipe_choice *choice)
{
    struct log *log = arg;
    int best = 0;
    look(log, choice);
    if (choice->running > 0)
        return SWPIPE_WAIT;
    for (int i = 1; i < choice->ready_count; i++) {
        const char *task = choice->ready[i].task, *chosen = choice->ready[best].task;
        if (*task == 'T' || (*task == 'H' && *chosen != 'T'))
            best = i;
    }
    return best;
}

static int at_random(void *arg, const struct swpipe_choice *choice)
{
    static _Thread_local unsigned luck = 12345;
    look(arg, choice);
    luck = luck * 1103515245 + 12345;
    if (choice->may_wait && luck >> 16 & 1)
        return SWPIPE_WAIT;
    return (int)((luck >> 17) % (unsigned)choice->ready_count);
}

static int evil(void *arg, const struct swpipe_choice *choice)
{
    struct log *log = arg;
    look(log, choice);
    pthread_mutex_lock(&log->lock);
    const bool good = log->begun < 5;
    pthread_mutex_unlock(&log->lock);
    return good ? 0 : log->answer;
}

/* It holds Sort back as long as it may. */
static int holds_back(void *arg, const struct swpipe_choice *choice)
{
    look(arg, choice);
    for (int i = 0; i < choice->ready_count; i++)
        if (*choice->ready[i].task != 'S')
            return i;
    return SWPIPE_WAIT;
}

static struct swpipe *open_pipe(struct log *log, const char *text, swpipe_choose *choose,
                                const struct swpipe_task *tasks, size_t count)
{
    struct swpipe *pipe;
    const struct swpipe_config config = {.threads = way,
                                         .plan_text = text,
                                         .tasks = tasks,
                                         .task_count = count,
                                         .driver = SWPIPE_DATAFLOW,
                                         .device = device,
                                         .progress_timeout_ns = 20000000000,
                                         .policy = {choose, log}};
    if (swpipe_open(&config, &pipe) != SWPIPE_OK)
        printf("# %s\n", swpipe_error(pipe));
    return pipe;
}

static const struct swpipe_task tasks[] = {{"Load", note, "L", NULL, 0},
                                           {"Sort", note, "S", NULL, 0},
                                           {"Hash", note, "H", NULL, 0},
                                           {"Train", note, "T", NULL, 0}};

static enum swpipe_status run_with(struct log *log, swpipe_choose *choose, char *error)
{
    struct swpipe *pipe = open_pipe(log, plan_text, choose, tasks, 4);
    enum swpipe_status status = swpipe_run(pipe, &(struct swpipe_source){next_batch, log}, NULL);
    snprintf(error, 300, "%s", status == SWPIPE_OK ? "" : swpipe_error(pipe));
    swpipe_close(pipe);
    return status;
}

static void reset(struct log *log)
{
    *log = (struct log){.lock = PTHREAD_MUTEX_INITIALIZER, .left = BATCHES};
}

static void test_choices(void)
{
    struct log log;
    char error[300];
    swpipe_choose *const all[] = {first, last, one_by_one, at_random};
    const char *const names[] = {"the first", "the last", "one by one", "at random, and waiting"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        reset(&log);
        tap_is_int(run_with(&log, all[i], error), SWPIPE_OK, "%s", names[i]);
        tap_is_int(log.begun, 4 * BATCHES, "... all tasks began");
        tap_is_int(log.wrong, 0, "... what was offered could be");
        tap_ok(log.asked >= 4 * BATCHES && log.most_flight >= 1, "... it was asked for each (%d)",
               log.asked);
    }
    reset(&log);
    (void)run_with(&log, one_by_one, error);
    tap_ok(log.most_ready > 1, "there was a choice");
    int worse =
        0; /* an iteration whose Sort comes before its Hash, with one in flight at the start */
    for (int i = 0, s = 0, h = 0; i < 4 * BATCHES; i++) {
        s += log.order[i] == 'S';
        h += log.order[i] == 'H';
        worse += s > h;
    }
    tap_is_int(worse, 0, "no Sort before its Hash: %.20s", log.order);
}

static void test_evil(void)
{
    struct log log;
    char error[300];
    struct {
        int answer;
        const char *words;
    } cases[] = {
        {7, "chose number 7 of"}, {-2, "chose number -2 of"}, {SWPIPE_WAIT, "chose none of"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        reset(&log);
        log.answer = cases[i].answer;
        const time_t begin = time(NULL);
        tap_is_int(run_with(&log, evil, error), SWPIPE_FAILED, "the answer %d fails",
                   cases[i].answer);
        tap_ok(strstr(error, cases[i].words) != NULL, "... it says so: %s", error);
        tap_ok(time(NULL) - begin < 10, "... at once");
    }
    reset(&log);
    tap_is_int(run_with(&log, holds_back, error), SWPIPE_FAILED,
               "a task that is never chosen fails");
    tap_ok(strstr(error, "chose none of") != NULL, "... it says so: %s", error);
}

static void test_refused(void)
{
    struct log log;
    struct swpipe *pipe;
    reset(&log);
    struct swpipe_config config = {
        .threads = way, .plan_text = plan_text, .device = device, .policy = {first, &log}};
    tap_is_int(swpipe_open(&config, &pipe), SWPIPE_USAGE, "no policy with the clock driver");
    swpipe_close(pipe);
    config.driver = SWPIPE_DATAFLOW;
    config.plan_text = "swplan: 1\nname: one\nschedule:\n  A: {stage: 0}\n  B: {stage: 1}\n";
    tap_is_int(swpipe_open(&config, &pipe), SWPIPE_INPUT, "nor with one thread group");
    tap_ok(strstr(swpipe_error(pipe), "chooses among thread groups") != NULL, "... %s",
           swpipe_error(pipe));
    swpipe_close(pipe);
}

/* Drained in the middle, filled again, recorded, serial: the run was legal, and no policy was asked in serial runs. */
static void test_lives(void)
{
    struct log log;
    struct swpipe_recorded recorded = {0};
    reset(&log);
    struct swpipe *pipe = open_pipe(&log, plan_text, at_random, tasks, 4);
    const struct swpipe_source source = {next_batch, &log};
    int64_t iteration;
    tap_is_int(swpipe_record(pipe, ""), SWPIPE_OK, "recorded");
    tap_is_int(swpipe_fill(pipe, &source), SWPIPE_OK, "filled");
    tap_is_int(swpipe_progress(pipe, &source, &iteration), SWPIPE_OK, "a step");
    tap_is_int(swpipe_drain(pipe), SWPIPE_OK, "drained");
    tap_is_int(swpipe_run(pipe, &source, NULL), SWPIPE_OK, "run to the end");
    tap_is_int(swpipe_recorded(pipe, &recorded), SWPIPE_OK, "the record");
    tap_is_int(recorded.legal, 1, "... was legal: %s", recorded.why ? recorded.why : "");
    const int asked = log.asked;
    log.left = 3;
    tap_is_int(swpipe_run_serial(pipe, &source, NULL), SWPIPE_OK, "serial");
    tap_is_int(log.asked, asked, "... without a policy");
    swpipe_close(pipe);
}

/* Turns: an ordered task is offered when its turn has come, so one after the other can be begun. */
static void test_ordered(void)
{
    struct log log;
    char text[1000];
    snprintf(text, sizeof text, ordered_text, device == SWPIPE_HOST ? 2 : 1);
    swpipe_choose *const all[] = {last, one_by_one, at_random};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        reset(&log);
        struct swpipe *pipe = open_pipe(&log, text, all[i], NULL, 0);
        tap_is_int(swpipe_run(pipe, &(struct swpipe_source){next_batch, &log}, NULL), SWPIPE_OK,
                   "globally ordered tasks, policy %zu: %s", i, swpipe_error(pipe));
        swpipe_close(pipe);
    }
}

static void test_way(void)
{
    test_choices();
    test_evil();
    test_refused();
    test_lives();
    test_ordered();
}

int main(int argc, char **argv)
{
    device = argc > 1 && strcmp(argv[1], "cuda") == 0 ? SWPIPE_CUDA : SWPIPE_HOST;
    test_way();
    tap_note("functions are called on the caller's thread");
    way = SWPIPE_CALLER;
    test_way();
    return tap_done();
}
