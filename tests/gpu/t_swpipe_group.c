/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_swpipe_group.c - a pipeline whose ranks are processes, started by nobody but the test: they meet, run, end
 * together, and each is told when another one fails, dies, leaves or never comes. `t_swpipe_group cuda` is for
 * the cuda device.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "gpu/lib/swpipe.h"
#include "tests/processes.h"
#include "tests/tap.h"

#define PLAN(copy)                                                                                 \
    "swplan: 1\nname: group\nschedule:\n"                                                          \
    "  H2D: {stage: 0, stream: memcpy, writes: [b], work: {copy: h2d, bytes: 4KiB" copy "}}\n"     \
    "  Sum: {stage: 1, globally_ordered: true, reads: [b], writes: [s],\n"                         \
    "        work: {collective: all_reduce, comm: dp, bytes: 4KiB}}\n"                             \
    "  Step: {stage: 1, thread_group: step, reads: [s]}\n"                                         \
    "intra_iter_deps: [[Sum, H2D], [Step, Sum]]\n"                                                 \
    "inter_iter_deps: [[Sum, Step]]\n"                                                             \
    "buffers: {b: {scope: iteration}, s: {scope: shared}}\n"

#define FIRST                                                                                      \
    "swplan: 1\nname: first\nmachine: {first_use_blocks: true}\nschedule:\n"                       \
    "  Sum: {stage: 0, work: {collective: all_reduce, comm: dp, bytes: 4KiB}}\n"

/* Rank 1 sums two periods before the others: its iteration is over when they have gone on by two. */
#define AHEAD                                                                                      \
    "swplan: 1\nname: ahead\nranks: 2\nretire: device\nschedule:\n"                                \
    "  Sum: {stage: 2, stream: s, work: {collective: all_reduce, comm: dp, bytes: 4KiB}}\n"        \
    "  Step: {stage: 2, stream: s}\n"                                                              \
    "intra_iter_deps: [[Step, Sum]]\n"                                                             \
    "rank_overrides: {1: {schedule: {Sum: {stage: 0}}}}\n"

/* Rank 0 waits for the other's sum longer than a rank waits before it looks for more to do. */
#define SLOW                                                                                       \
    "swplan: 1\nname: slow\nranks: 2\nretire: device\nschedule:\n"                                 \
    "  Load: {stage: 0, stream: m, work: {spin: 1us}}\n"                                           \
    "  Sum: {stage: 1, work: {collective: all_reduce, comm: dp, bytes: 4KiB}}\n"                   \
    "intra_iter_deps: [[Sum, Load]]\n"                                                             \
    "rank_overrides: {1: {schedule: {Load: {work: {spin: 5ms}}}}}\n"

static enum swpipe_device device = SWPIPE_HOST;
/* The threads that call functions: tests run both ways. */
static enum swpipe_threads way;
static bool threads;   /* ranks are threads of this process */
static char store[64]; /* "": runs are not recorded */

enum trouble {
    NONE,
    FAILS,
    DIES,
    LEAVES,
    CLOSES,
    FAILS_IN_SOURCE,
    DIES_AT_OPEN,
    OTHER_PORT,
    OTHER_SIZE,
    OTHER_PLAN,
    OTHER_DRIVER
};

struct scene {
    enum swpipe_driver driver;
    bool broadcast, serial, twice, pageable, ahead, alarms, slow, first;
    bool shown;                  /* each rank one GPU, of its own: that alone */
    int batches[PROCESSES_MOST]; /* of each rank */
    enum trouble trouble;
    int who, at; /* of rank `who` in iteration `at` */
};

struct rank {
    const struct scene *scene;
    int number, fetched, batches;
    atomic_int sums;
};

static int sum(struct swpipe_context *context, void *arg)
{
    struct rank *rank = arg;
    const struct scene *scene = rank->scene;
    atomic_fetch_add(&rank->sums, 1);
    if (swpipe_rank(context) == scene->who && swpipe_iteration(context) == scene->at) {
        if (scene->trouble == FAILS)
            return swpipe_fail(context, "no luck today");
        if (scene->trouble == DIES)
            raise(SIGKILL);
    }
    return swpipe_work(context);
}

static int next(void *arg, int number, void **batch)
{
    struct rank *rank = arg;
    const struct scene *scene = rank->scene;
    *batch = rank;
    if (number != rank->number)
        return -1;
    if (scene->trouble == FAILS_IN_SOURCE && rank->number == scene->who &&
        rank->fetched == scene->at)
        return -1;
    return rank->fetched < rank->batches ? (rank->fetched++, 1) : 0;
}

static int run_once(struct swpipe *pipe, struct rank *rank, int *retired)
{
    const struct swpipe_source source = {next, rank};
    int64_t iteration;
    int status = (int)swpipe_fill(pipe, &source);
    for (*retired = 0; status == SWPIPE_OK; (*retired)++) {
        if (rank->scene->trouble == CLOSES && rank->number == rank->scene->who &&
            *retired == rank->scene->at)
            return SWPIPE_OK;
        status = (int)swpipe_progress(pipe, &source, &iteration);
        if (status != SWPIPE_OK)
            break;
    }
    return status;
}

/* The same on all ranks: a run of the store, and whether it was legal. */
static void look_at_recording(struct swpipe *pipe, struct outcome *out)
{
    struct swpipe_recorded recorded = {.run = -2};
    (void)swpipe_drain(pipe); /* also after a failure */
    if (swpipe_recorded(pipe, &recorded) != SWPIPE_OK)
        return;
    out->value = (double)(1000 * recorded.run + 10 * recorded.iterations + recorded.legal);
    if (recorded.legal == 0)
        snprintf(out->said, sizeof out->said, "%s", recorded.why);
}

/* Messages at open about waits that the proof does not know. */
enum { CONNECTS = 1, LOADS = 2 };
static void hear(void *arg, const char *text)
{
    int *heard = arg;
    *heard |= strstr(text, "NCCL_RUNTIME_CONNECT") ? CONNECTS : 0;
    *heard |= strstr(text, "CUDA_MODULE_LOADING") ? LOADS : 0;
}

static const char *plan_of(const struct scene *scene)
{
    return scene->slow       ? SLOW
           : scene->ahead    ? AHEAD
           : scene->pageable ? PLAN(", pageable: true")
           : scene->first    ? FIRST
                             : PLAN("");
}

static void take_part(struct swpipe_group *group, struct rank *rank, struct outcome *out)
{
    struct swpipe_task task = {"Sum", sum, rank, NULL, 0};
    const bool differs = rank->number == rank->scene->who;
    int heard = 0;
    struct swpipe_config config = {
        .threads = way,
        .plan_text = differs && rank->scene->trouble == OTHER_PLAN ? SLOW : plan_of(rank->scene),
        .plan_file = "group.yaml",
        .tasks = &task,
        .task_count = 1,
        .driver =
            differs && rank->scene->trouble == OTHER_DRIVER ? SWPIPE_DATAFLOW : rank->scene->driver,
        .device = device,
        .ranks = swpipe_group_size(group),
        .group = group,
        .message = hear,
        .message_arg = &heard,
        .gpu = threads ? SWPIPE_GPU(rank->number) : 0};
    const struct swpipe_source source = {next, rank};
    struct swpipe *pipe;
    if (rank->scene->trouble == LEAVES && rank->number == rank->scene->who)
        return;
    out->status = (int)swpipe_open(&config, &pipe);
    if (store[0] && out->status == SWPIPE_OK)
        out->status = (int)swpipe_record(pipe, store);
    if (out->status == SWPIPE_OK)
        out->status = rank->scene->serial ? (int)swpipe_run_serial(pipe, &source, NULL)
                                          : run_once(pipe, rank, &out->count);
    snprintf(out->said, sizeof out->said, "%s", swpipe_error(pipe));
    if (rank->scene->serial)
        out->count = atomic_load(&rank->sums);
    if (rank->scene->twice) {
        swpipe_drain(pipe);
        rank->fetched = 0;
        const struct scene good = {
            .driver = rank->scene->driver, .who = -1, .ahead = rank->scene->ahead};
        rank->scene = &good;
        out->status = run_once(pipe, rank, &out->count);
        snprintf(out->said, sizeof out->said, "%s", swpipe_error(pipe));
    }
    if (store[0])
        look_at_recording(pipe, out);
    else
        out->value = heard;
    swpipe_close(pipe);
}

static void wake_up(int signal)
{
    (void)signal;
}

/* A timer of the program's, whose signals end system calls of its thread: all wait for rank 1, which comes late. */
static void be_alarmed(int rank)
{
    const struct sigaction action = {.sa_handler = wake_up};
    const struct itimerval often = {{0, 300}, {0, 300}};
    if (rank == 1)
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
}

/* As a launcher does it, before the first use of CUDA. */
static void show_gpu(int number)
{
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    setenv("SWSIM_EMULATED_GPUS", "4", 1);
    setenv("CUDA_VISIBLE_DEVICES", text, 1);
}

static void body(const struct process *self, struct outcome *out)
{
    const struct scene *scene = self->arg;
    struct rank rank = {
        .scene = scene, .number = self->number, .batches = scene->batches[self->number]};
    struct swpipe_join join = {
        .rank = self->number, .size = self->count, .timeout_ns = 20000000000};
    if (scene->trouble == LEAVES || scene->trouble == OTHER_PORT)
        join.timeout_ns = 2000000000;
    if (scene->trouble == OTHER_SIZE && self->number == scene->who)
        join.size++;
    if (scene->alarms)
        be_alarmed(self->number);
    struct process copy = *self;
    struct swpipe_group *group;
    if (scene->shown)
        show_gpu(self->number);
    else if (device == SWPIPE_CUDA && !threads)
        processes_share_gpu(self);
    if (scene->trouble == DIES_AT_OPEN && self->number == scene->who)
        setenv("SWSIM_EMULATION_FAULT", "ncclCommInitRank=1", 1);
    if (scene->broadcast) {
        join.broadcast = processes_broadcast;
        join.arg = &copy;
    } else {
        bool other = scene->trouble == OTHER_PORT && self->number == scene->who;
        join.address = other ? "127.0.0.1:1" : self->address;
    }
    out->status = (int)swpipe_join(&join, &group);
    if (out->status == SWPIPE_OK)
        take_part(group, &rank, out);
    else
        snprintf(out->said, sizeof out->said, "%s", swpipe_group_error(group));
    swpipe_leave(group);
}

static struct outcome outcomes[PROCESSES_MOST];
static bool ended[PROCESSES_MOST];

static void play(int size, const struct scene *scene, const char *what)
{
    bool in_time = threads ? threads_run(size, body, scene, outcomes)
                           : processes_run(size, body, scene, 60, outcomes, ended);
    for (int i = 0; threads && i < size; i++)
        ended[i] = true;
    tap_ok(in_time, "%s: every %s returns", what, threads ? "thread" : "process");
    for (int i = 0; i < size; i++)
        tap_note("rank %d: %s after %d: %s", i,
                 ended[i] ? swpipe_status_name((enum swpipe_status)outcomes[i].status) : "killed",
                 outcomes[i].count, ended[i] ? outcomes[i].said : "");
}

static struct scene scene_of(enum swpipe_driver driver, int batches)
{
    struct scene scene = {.driver = driver, .who = -1};
    for (int i = 0; i < PROCESSES_MOST; i++)
        scene.batches[i] = batches;
    return scene;
}

static void test_good(int size, enum swpipe_driver driver, bool broadcast)
{
    struct scene scene = scene_of(driver, 12);
    scene.broadcast = broadcast;
    play(size, &scene, broadcast ? "joined by a broadcast" : "joined by an address");
    for (int i = 0; i < size; i++)
        tap_ok(outcomes[i].status == SWPIPE_END && outcomes[i].count == 12, "rank %d of %d runs", i,
               size);
}

/* An environment that leaves hidden waits is told of, and one that leaves none is not. */
static void test_hidden_waits(const char *connect, const char *loading, int expected)
{
    struct scene scene = scene_of(SWPIPE_DATAFLOW, 2);
    setenv("NCCL_RUNTIME_CONNECT", connect, 1);
    setenv("CUDA_MODULE_LOADING", loading, 1);
    play(2, &scene, "hidden waits");
    unsetenv("NCCL_RUNTIME_CONNECT");
    unsetenv("CUDA_MODULE_LOADING");
    for (int i = 0; i < 2; i++)
        tap_is_int((int)outcomes[i].value, device == SWPIPE_CUDA ? expected : 0,
                   "rank %d is told of hidden waits", i);
}

/* The rank with the fewest batches ends the run of all; the next run is a new one. */
static void test_early_end(enum swpipe_driver driver, bool serial, bool twice)
{
    struct scene scene = scene_of(driver, 12);
    scene.batches[1] = 5;
    scene.serial = serial;
    scene.twice = twice;
    play(4, &scene,
         twice    ? "an early end, twice"
         : serial ? "an early end, serial"
                  : "an early end");
    for (int i = 0; i < 4; i++)
        tap_ok(outcomes[i].status == (serial ? SWPIPE_OK : SWPIPE_END) && outcomes[i].count == 5,
               "rank %d ends with the others", i);
}

/* A rank waits for what others hand out in later iterations, of which it has to say that it has batches, too. */
static void test_ahead(int size, enum swpipe_driver driver, int batches)
{
    struct scene scene = scene_of(driver, 12);
    scene.ahead = scene.twice = true;
    scene.batches[0] = batches;
    play(size, &scene, "one rank ahead of the others");
    for (int i = 0; i < size; i++)
        tap_ok(outcomes[i].status == SWPIPE_END && outcomes[i].count == batches,
               "rank %d of %d goes on with the others", i, size);
}

static void test_trouble(enum trouble trouble, int who, int size, const char *words,
                         const char *what)
{
    struct scene scene = scene_of(SWPIPE_CLOCK, 12);
    scene.trouble = trouble;
    scene.who = who;
    scene.at = 4;
    play(size, &scene, what);
    for (int i = 0; i < size; i++)
        if (i != who)
            tap_ok(outcomes[i].status != SWPIPE_END && outcomes[i].status != SWPIPE_OK &&
                       strstr(outcomes[i].said, words),
                   "%s: rank %d knows: %s", what, i, outcomes[i].said);
}

static void test_again(void)
{
    struct scene scene = scene_of(SWPIPE_CLOCK, 12);
    scene.trouble = FAILS;
    scene.who = 1;
    scene.at = 4;
    scene.twice = true;
    play(2, &scene, "a failure, and once more");
    for (int i = 0; i < 2; i++)
        tap_ok(outcomes[i].status == SWPIPE_END && outcomes[i].count == 12,
               "rank %d runs after it: %s", i, outcomes[i].said);
}

/* A serial run of ranks with tasks of their own: one that waits for another does not say that its data has ended. */
static void test_slow_serial(void)
{
    struct scene scene = scene_of(SWPIPE_CLOCK, 12);
    scene.slow = scene.serial = true;
    play(2, &scene, "a serial run with a slow rank");
    for (int i = 0; i < 2; i++)
        tap_ok(outcomes[i].status == SWPIPE_OK && outcomes[i].count == 12,
               "rank %d waits for the slow one: %s", i, outcomes[i].said);
}

static void test_alarms(void)
{
    struct scene scene = scene_of(SWPIPE_CLOCK, 12);
    scene.alarms = true;
    play(3, &scene, "signals all the time");
    for (int i = 0; i < 3; i++)
        tap_ok(outcomes[i].status == SWPIPE_END && outcomes[i].count == 12,
               "rank %d runs through signals: %s", i, outcomes[i].said);
}

/* Both are told: rank 0 that one is missing, the other which two things have to be the same. */
static void test_other_port(void)
{
    struct scene scene = scene_of(SWPIPE_CLOCK, 12);
    scene.trouble = OTHER_PORT;
    scene.who = 1;
    play(2, &scene, "another port");
    tap_ok(outcomes[0].status == SWPIPE_TIMEOUT && strstr(outcomes[0].said, "rank 1 is missing"),
           "another port, rank 0: %s", outcomes[0].said);
    tap_ok(outcomes[1].status == SWPIPE_TIMEOUT &&
               strstr(outcomes[1].said, "the same port and size"),
           "another port, rank 1: %s", outcomes[1].said);
}

/* The group of rank 0 is the group. */
static void test_size(void)
{
    struct scene scene = scene_of(SWPIPE_CLOCK, 12);
    scene.trouble = OTHER_SIZE;
    scene.who = 1;
    play(2, &scene, "another size");
    tap_ok(outcomes[1].status == SWPIPE_USAGE &&
               strstr(outcomes[1].said, "rank 1 joins a group of 3, rank 0 has one of 2"),
           "another size, rank 1: %s", outcomes[1].said);
    tap_ok(outcomes[0].status != SWPIPE_END && outcomes[0].status != SWPIPE_OK &&
               strstr(outcomes[0].said, "rank 1"),
           "another size, rank 0: %s", outcomes[0].said);
}

static int next_left(void *arg, int rank, void **batch)
{
    int *left = arg;
    (void)rank;
    *batch = NULL;
    return (*left)-- > 0;
}

static int to_nobody(void *arg, void *data, size_t bytes)
{
    (void)arg, (void)data, (void)bytes;
    return 0;
}

/* Left in the middle, a group is there until its pipeline closes. */
static void test_left_open(void)
{
    const struct swpipe_join join = {.size = 1, .broadcast = to_nobody};
    int left = 3;
    struct swpipe_group *group;
    struct swpipe *pipe;
    int status = (int)swpipe_join(&join, &group);
    tap_ok(status == SWPIPE_OK, "a group of one: %s", swpipe_group_error(group));
    const struct swpipe_config config = {.threads = way,
                                         .plan_text =
                                             "swplan: 1\nname: left\nschedule: {A: {stage: 0}}\n",
                                         .group = group};
    status = (int)swpipe_open(&config, &pipe);
    swpipe_leave(group);
    const struct swpipe_source source = {next_left, &left};
    if (status == SWPIPE_OK)
        status = (int)swpipe_run(pipe, &source, NULL);
    tap_ok(status == SWPIPE_OK, "its pipeline runs behind swpipe_leave: %s", swpipe_error(pipe));
    swpipe_close(pipe);
    status = (int)swpipe_join(&join, &group);
    tap_ok(status == SWPIPE_OK, "and another group can come together: %s",
           swpipe_group_error(group));
    swpipe_leave(group);
}

/* ---- recordings ------------------------------------------------------------------------------ */

/* One run of the store for all ranks, of the iterations that all retired. */
static void test_recorded(int size, enum swpipe_driver driver, bool serial)
{
    struct scene scene = scene_of(driver, 12);
    scene.serial = serial;
    snprintf(store, sizeof store, "group-%d.db", (int)getpid());
    remove(store);
    play(size, &scene, serial ? "a recorded serial run" : "a recorded run");
    for (int i = 0; i < size; i++)
        tap_ok(outcomes[i].status == (serial ? SWPIPE_OK : SWPIPE_END) &&
                   outcomes[i].value == 1000 + 120 + 1,
               "rank %d: run 1, 12 iterations, legal: %g %s", i, outcomes[i].value,
               outcomes[i].said);
    scene = scene_of(driver, 12);
    scene.trouble = FAILS;
    scene.who = 1;
    scene.at = 4;
    if (!serial)
        play(size, &scene, "a recorded run that fails");
    for (int i = 0; i < size && !serial; i++)
        tap_ok(outcomes[i].status == SWPIPE_FAILED && outcomes[i].value >= 2000 - 1 &&
                   (int)outcomes[i].value % 10 != 0,
               "rank %d: run 2, not said to be illegal: %g %s", i, outcomes[i].value,
               outcomes[i].said);
    remove(store);
    store[0] = '\0';
}

/* Rank 0 keeps the books: where it cannot, all are told. */
static void test_unwritable(void)
{
    struct scene scene = scene_of(SWPIPE_CLOCK, 12);
    snprintf(store, sizeof store, "/nowhere/to/be/found.db");
    play(2, &scene, "a store that cannot be written");
    for (int i = 0; i < 2; i++)
        tap_ok(outcomes[i].status != SWPIPE_END && strstr(outcomes[i].said, "/nowhere"),
               "rank %d: %s", i, outcomes[i].said);
    store[0] = '\0';
}

/* ---- ranks that are threads ------------------------------------------------------------------ */

static void test_threads(void)
{
    threads = true;
    test_good(3, SWPIPE_CLOCK, false);
    test_good(4, SWPIPE_DATAFLOW, false);
    test_early_end(SWPIPE_CLOCK, false, true);
    test_trouble(FAILS, 1, 4, "Sum(4) of rank 1 failed: no luck today", "a function fails");
    test_trouble(CLOSES, 1, 2, "rank 1 has closed its pipeline", "a rank closes its pipeline");
    test_again();
    test_recorded(3, SWPIPE_CLOCK, false);
    threads = false;
}

/* ---- joins that cannot be -------------------------------------------------------------------- */

static void alone(const struct process *self, struct outcome *out)
{
    const struct swpipe_join join = {
        .rank = 0, .size = 2, .address = self->address, .timeout_ns = 300000000};
    struct swpipe_group *group;
    out->status = (int)swpipe_join(&join, &group);
    snprintf(out->said, sizeof out->said, "%s", swpipe_group_error(group));
    swpipe_leave(group);
}

static void refuse(struct swpipe_join join, const char *words)
{
    struct swpipe_group *group;
    int status = (int)swpipe_join(&join, &group);
    tap_ok(status != SWPIPE_OK && strstr(swpipe_group_error(group), words), "refused: %s",
           swpipe_group_error(group));
    swpipe_leave(group);
}

/* What rank 0 of another machine tells: its name, and that of a socket there. */
static int tell_elsewhere(void *arg, void *data, size_t bytes)
{
    memset(data, 'x', bytes);
    (void)arg;
    return 0;
}

/* A copy that blocks its thread would block all of a rank's workers; on the host device none does. */
static void test_blocking_copy(void)
{
    struct scene scene = scene_of(SWPIPE_DATAFLOW, 2);
    const bool refused = way == SWPIPE_CALLER && device == SWPIPE_CUDA;
    scene.pageable = true;
    play(2, &scene, "copies of pageable memory");
    for (int i = 0; i < 2; i++)
        tap_ok(outcomes[i].status == (refused ? SWPIPE_INPUT : SWPIPE_END) &&
                   (!refused || strstr(outcomes[i].said, "the copy H2D of pageable memory blocks")),
               "rank %d, a copy of pageable memory: %s", i, outcomes[i].said);
}

/* A first use that blocks is NCCL's on a GPU. The host device imitates it among threads of one process and pipeline. */
static void test_first_use(void)
{
    struct scene scene = scene_of(SWPIPE_CLOCK, 12);
    const bool refused = device == SWPIPE_HOST;
    scene.first = true;
    play(2, &scene, "a first use that blocks");
    for (int i = 0; i < 2; i++)
        tap_ok(outcomes[i].status == (refused ? SWPIPE_INPUT : SWPIPE_END) &&
                   (!refused || strstr(outcomes[i].said, "first_use_blocks")),
               "rank %d, a first use that blocks: %s", i, outcomes[i].said);
}

static void test_refusals(void)
{
    bool in_time = processes_run(1, alone, NULL, 20, outcomes, ended);
    tap_ok(in_time && outcomes[0].status == SWPIPE_TIMEOUT &&
               strstr(outcomes[0].said, "did not come together in time: rank 1 is missing"),
           "a rank that stays alone: %s", outcomes[0].said);
    refuse((struct swpipe_join){.rank = 2, .size = 2, .address = "a:1"}, "rank 2 of 2");
    refuse((struct swpipe_join){.rank = 0, .size = 2}, "either an address or a broadcast");
    refuse((struct swpipe_join){.rank = 0, .size = 1, .address = "localhost"}, "host:port");
    refuse((struct swpipe_join){.rank = 0, .size = 1, .address = "127.0.0.1:99999"}, "host:port");
    refuse((struct swpipe_join){.rank = 0, .size = 0, .address = "a:1"}, "a group of 0 processes");
    refuse((struct swpipe_join){.rank = 0, .size = 1, .address = "a:1", .timeout_ns = -2},
           "timeout_ns is -2");
    refuse((struct swpipe_join){.rank = 1, .size = 2, .address = "192.0.2.1:29500"},
           "'192.0.2.1:29500' is the address of another machine");
    refuse((struct swpipe_join){.rank = 1, .size = 2, .broadcast = tell_elsewhere},
           "rank 1 is on another machine than rank 0");
    refuse((struct swpipe_join){.rank = 1, .size = 2, .machines = 2, .broadcast = tell_elsewhere},
           "the 2 processes of the group are on 2 machines");
    struct swpipe_group *group;
    int status = (int)swpipe_join(NULL, &group);
    tap_ok(status == SWPIPE_USAGE, "a join that says nothing: %s", swpipe_group_error(group));
    swpipe_leave(group);
    tap_ok(swpipe_join(&(struct swpipe_join){.size = 1}, NULL) == SWPIPE_USAGE &&
               swpipe_group_wait(NULL) == SWPIPE_USAGE && swpipe_group_rank(NULL) == -1 &&
               swpipe_group_size(NULL) == -1,
           "no group");
}

/* All know at once. */
static void test_not_the_same(enum trouble trouble, const char *words)
{
    struct scene scene = scene_of(SWPIPE_CLOCK, 12);
    scene.trouble = trouble;
    scene.who = 1;
    play(3, &scene, "another plan or driver");
    for (int rank = 0; rank < 3; rank++)
        tap_ok(outcomes[rank].status == SWPIPE_INPUT && strstr(outcomes[rank].said, words),
               "rank %d is told: %s", rank, outcomes[rank].said);
}

/* One GPU for each rank is no GPU that ranks share, though each sees only one, of the same number. */
static void test_shown(void)
{
    struct scene scene = scene_of(SWPIPE_CLOCK, 12);
    scene.shown = true;
    play(3, &scene, "each rank is shown a GPU of its own");
    for (int rank = 0; rank < 3; rank++)
        tap_ok(outcomes[rank].status == SWPIPE_END && outcomes[rank].count == 12, "rank %d runs",
               rank);
}

static void test_way(void)
{
    test_good(2, SWPIPE_CLOCK, false);
    test_good(4, SWPIPE_DATAFLOW, false);
    test_good(2, SWPIPE_CLOCK, true);
    test_good(1, SWPIPE_CLOCK, false);
    test_ahead(2, SWPIPE_CLOCK, 12);
    test_ahead(3, SWPIPE_DATAFLOW, 5);
    test_ahead(4, SWPIPE_CLOCK, 5);
    test_hidden_waits("1", "LAZY", CONNECTS | LOADS);
    test_hidden_waits("0", "EAGER", 0);
    test_early_end(SWPIPE_CLOCK, false, false);
    test_early_end(SWPIPE_DATAFLOW, false, true);
    test_early_end(SWPIPE_CLOCK, true, false);
    test_trouble(FAILS, 1, 4, "Sum(4) of rank 1 failed: no luck today", "a function fails");
    test_trouble(FAILS_IN_SOURCE, 1, 2, "source failed for iteration 4 of rank 1",
                 "a source fails");
    test_trouble(DIES, 1, 4, "rank 1 is gone", "a process dies");
    if (device == SWPIPE_CUDA) /* the others wait for it in a call of NCCL */
        test_trouble(DIES_AT_OPEN, 1, 4, "rank 1 is gone",
                     "a process dies while a communicator is made");
    test_trouble(DIES, 0, 4, "rank 0 is gone", "the first process dies");
    test_trouble(CLOSES, 1, 2, "rank 1 has closed its pipeline", "a rank closes its pipeline");
    test_trouble(LEAVES, 1, 2, "", "a rank leaves");
    test_again();
    test_slow_serial();
    test_alarms();
    test_other_port();
    test_size();
    test_not_the_same(OTHER_PLAN, "rank 1 has plan 'slow'");
    test_not_the_same(OTHER_DRIVER, "under dataflow at depth");
    if (device == SWPIPE_HOST)
        test_left_open();
    test_recorded(2, SWPIPE_CLOCK, false);
    test_recorded(4, SWPIPE_DATAFLOW, false);
    test_recorded(2, SWPIPE_CLOCK, true);
    test_unwritable();
    test_blocking_copy();
    test_first_use();
    test_refusals();
    if (device == SWPIPE_HOST)
        test_threads();
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "cuda") == 0)
        device = SWPIPE_CUDA;
    const char *mode = argc > 2 ? argv[2] : "";
    const bool only_threads = strcmp(mode, "threads") == 0; /* each with a GPU of its own */
    if (strcmp(mode, "shown") == 0) {                       /* emulated GPUs, for there are four */
        test_shown();
        return tap_done();
    }
    for (int w = SWPIPE_WORKERS; w <= SWPIPE_CALLER; w++) {
        way = (enum swpipe_threads)w;
        tap_note("functions are called %s",
                 w == SWPIPE_CALLER ? "on the caller's thread" : "by workers");
        if (only_threads)
            test_threads();
        else
            test_way();
    }
    return tap_done();
}
