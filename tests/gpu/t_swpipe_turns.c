/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_swpipe_turns.c - ranks of one process that are not alike: one may need what another one hands out only iterations
 * later. A proved plan runs to its end, with worker threads and without; batches are asked for in one order, all are
 * given back, and each iteration's result is there when progress returns it. Ranks that are processes: t_swpipe_group.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "gpu/lib/swpipe.h"
#include "tests/tap.h"

enum { RANKS = 3, MOST = 64 };

/* Rank 1 sums two periods before the others, so its iteration i waits for their iteration i + 2. */
static const char sums[] =
    "swplan: 1\nname: sums\nranks: 3\nretire: %s\nschedule:\n"
    "  Sum: {stage: 2, stream: s, work: {collective: all_reduce, comm: dp, bytes: 4KiB}}\n"
    "  Step: {stage: 2, stream: s}\n"
    "intra_iter_deps: [[Step, Sum]]\n"
    "rank_overrides: {1: {schedule: {Sum: {stage: 0}}}}\n";

/* Rank 2 sends in its first stage, on the stream of its other task, what rank 0 receives in its last. */
static const char messages[] =
    "swplan: 1\nname: messages\nranks: 3\nretire: %s\nschedule:\n"
    "  Pass: {stage: 0, stream: s, work: {spin: 1us}}\n"
    "  Step: {stage: 3, stream: s, work: {spin: 1us}}\n"
    "intra_iter_deps: [[Step, Pass]]\n"
    "rank_overrides:\n"
    "  0: {schedule: {Pass: {stage: 3, work: {recv: act, peer: 2, comm: dp, bytes: 4KiB}}}}\n"
    "  2: {schedule: {Pass: {stage: 0, work: {send: act, peer: 0, comm: dp, bytes: 4KiB}}}}\n";

/* The ranks that are done wait long for rank 2. */
static const char slow[] =
    "swplan: 1\nname: slow\nranks: 3\nretire: %s\nschedule:\n"
    "  Sum: {stage: 0, stream: s, work: {collective: all_reduce, comm: dp, bytes: 4KiB}}\n"
    "  Step: {stage: 1, stream: s, work: {spin: 1us}}\n"
    "intra_iter_deps: [[Step, Sum]]\n"
    "rank_overrides: {2: {schedule: {Step: {work: {spin: 2ms}}}}}\n";

struct batch {
    int64_t iteration;
    int rank;
};

struct data {
    struct batch batches[RANKS][MOST];
    int64_t asked[RANKS], given_back[RANKS], retired[RANKS];
    int64_t last_iteration; /* of the call before */
    int last_rank, count;
    bool in_order;
    int fails_at; /* rank 1's batch; -1: never */
};

static int next(void *arg, int rank, void **out)
{
    struct data *data = arg;
    int64_t iteration = data->asked[rank];
    data->in_order = data->in_order && (iteration == data->last_iteration
                                            ? rank == data->last_rank + 1
                                            : iteration == data->last_iteration + 1 && rank == 0);
    data->last_iteration = iteration;
    data->last_rank = rank;
    if (rank == 1 && iteration == data->fails_at)
        return -1;
    if (iteration >= data->count)
        return 0;
    data->batches[rank][iteration] = (struct batch){iteration, rank};
    *out = &data->batches[rank][iteration];
    data->asked[rank]++;
    return 1;
}

static void give_back(void *arg, int rank, void *batch)
{
    struct data *data = arg;
    data->given_back[rank] += ((struct batch *)batch)->rank == rank;
}

static void retired(void *arg, const struct swpipe_retired *what)
{
    struct data *data = arg;
    data->retired[what->rank] += what->iteration == data->retired[what->rank] &&
                                 ((struct batch *)what->batch)->iteration == what->iteration;
}

static int step(struct swpipe_context *context, void *arg)
{
    (void)arg;
    swpipe_set_result(context, swpipe_batch(context));
    return swpipe_work(context);
}

struct scene {
    const char *plan, *retire;
    enum swpipe_driver driver;
    enum swpipe_threads way;
};

static void begin(struct data *data, int count)
{
    *data = (struct data){.last_iteration = -1, .in_order = true, .count = count, .fails_at = -1};
}

static struct swpipe *open_pipe(const struct scene *scene, struct data *data)
{
    static const struct swpipe_task tasks[] = {{.name = "Step", .function = step}};
    char text[1200];
    struct swpipe *pipe;
    snprintf(text, sizeof text, scene->plan, scene->retire);
    const struct swpipe_config config = {
        .plan_text = text,
        .tasks = tasks,
        .task_count = 1,
        .driver = scene->driver,
        .threads = scene->way,
        .hooks = {.release = give_back, .retired = retired, .arg = data},
        .progress_timeout_ns = 20000000000};
    if (swpipe_open(&config, &pipe) != SWPIPE_OK)
        tap_note("%s", swpipe_error(pipe));
    return pipe;
}

/* Progress to the end, or `most` times. The iterations that came, in order and each with its results. */
static int progress(struct swpipe *pipe, const struct swpipe_source *source, int most,
                    enum swpipe_status *status)
{
    int64_t iteration;
    int count = 0;
    while (count < most && (*status = swpipe_progress(pipe, source, &iteration)) == SWPIPE_OK) {
        bool right = iteration == count;
        for (int rank = 0; rank < RANKS; rank++) {
            const struct batch *result = swpipe_result(pipe, rank);
            right = right && result && result->iteration == iteration && result->rank == rank;
        }
        if (!right)
            break;
        count++;
    }
    return count;
}

static bool all_are(const int64_t *counts, int64_t expected)
{
    for (int rank = 0; rank < RANKS; rank++)
        if (counts[rank] != expected)
            return false;
    return true;
}

static void test_end(const struct scene *scene)
{
    struct data data;
    begin(&data, 20);
    struct swpipe *pipe = open_pipe(scene, &data);
    const struct swpipe_source source = {next, &data};
    enum swpipe_status status = swpipe_fill(pipe, &source);
    int count = status ? 0 : progress(pipe, &source, MOST, &status);
    tap_ok(status == SWPIPE_END && count == 20, "to the end: %d iterations, %s", count,
           swpipe_error(pipe));
    swpipe_close(pipe);
    tap_ok(all_are(data.retired, 20) && all_are(data.given_back, 20),
           "every rank retires all, and gives back all");
    tap_ok(data.in_order, "batches are asked for by iteration, and then by rank");
}

/* The data ends where some ranks have begun more iterations than others. */
static void test_drain(const struct scene *scene)
{
    struct data data;
    begin(&data, MOST);
    struct swpipe *pipe = open_pipe(scene, &data);
    const struct swpipe_source source = {next, &data};
    enum swpipe_status status = swpipe_fill(pipe, &source);
    int count = status ? 0 : progress(pipe, &source, 5, &status);
    tap_ok(status == SWPIPE_OK && count == 5, "five iterations, %s", swpipe_error(pipe));
    status = swpipe_drain(pipe);
    tap_ok(status == SWPIPE_OK && all_are(data.retired, data.asked[0]) &&
               all_are(data.given_back, data.asked[0]) && all_are(data.asked, data.asked[0]),
           "then it is drained: %d batches, %s", (int)data.asked[0], swpipe_error(pipe));
    swpipe_close(pipe);
}

/* Batches that were asked for too early are given back when no iteration can begin with them. */
static void test_stop(const struct scene *scene, bool fails)
{
    struct data data;
    begin(&data, MOST);
    data.fails_at = fails ? 9 : -1;
    struct swpipe *pipe = open_pipe(scene, &data);
    const struct swpipe_source source = {next, &data};
    enum swpipe_status status = swpipe_fill(pipe, &source);
    (void)(status ? 0 : progress(pipe, &source, fails ? MOST : 5, &status));
    tap_ok(status == (fails ? SWPIPE_FAILED : SWPIPE_OK), "%s: %s",
           fails ? "the source fails" : "it is closed in the middle", swpipe_error(pipe));
    swpipe_close(pipe);
    bool all = true;
    for (int rank = 0; rank < RANKS; rank++)
        all = all && data.given_back[rank] == data.asked[rank];
    tap_ok(all, "and every batch is given back");
}

/* One iteration at a time, of which a rank that waits has nothing to hand out: it does not ask for another one. */
static void test_serial(enum swpipe_threads way)
{
    const struct scene scene = {.plan = slow, .retire = "device", .way = way};
    const struct swpipe_profile_options options = {.warmup = 2, .measure = 3, .rounds = 1};
    void *batches[RANKS] = {NULL};
    struct swpipe_profile profile;
    struct data data;
    begin(&data, 10);
    struct swpipe *pipe = open_pipe(&scene, &data);
    const struct swpipe_source source = {next, &data};
    enum swpipe_status status = swpipe_run_serial(pipe, &source, NULL);
    tap_ok(status == SWPIPE_OK && all_are(data.retired, 10) && all_are(data.given_back, 10),
           "a serial run of ranks that are not alike: %s", swpipe_error(pipe));
    swpipe_close(pipe);
    char text[1200];
    snprintf(text, sizeof text, slow, "device");
    const struct swpipe_config config = {
        .plan_text = text, .threads = way, .progress_timeout_ns = 5000000000};
    status = swpipe_open(&config, &pipe);
    if (status == SWPIPE_OK)
        status = swpipe_profile(pipe, batches, &options, &profile);
    tap_ok(status == SWPIPE_OK && profile.baseline_seconds > 0.001, "and a profile: %s",
           swpipe_error(pipe));
    swpipe_close(pipe);
}

static int next_of_many(void *arg, int rank, void **batch)
{
    enum { MANY = 400 };
    int *taken = arg;
    *batch = NULL;
    return taken[rank]++ < MANY;
}

/* A host thread waits for a stream whose last operation is a wait. The wait becomes the head when the thread sleeps
   already. It is for a small collective, which ends with the last member's call and without a thread of this rank. */
static void test_wait_at_end(void)
{
    static const char plan[] =
        "swplan: 1\nname: wait at end\nranks: 2\nretire: device\nschedule:\n"
        "  Long: {stage: 0, thread_group: other, work: {spin: 100us}}\n"
        "  Beside: {stage: 0, stream: a, thread_group: other, work: {spin: 100us}}\n"
        "  Sum: {stage: 1, stream: a, globally_ordered: true,\n"
        "        work: {collective: all_reduce, comm: dp, bytes: 4KiB}}\n"
        "  Exchange: {stage: 1, globally_ordered: true, host_sync: stream,\n"
        "             work: {collective: all_to_all, comm: dp, bytes: 4KiB}}\n"
        "intra_iter_deps: [[Sum, Beside], [Exchange, Long], [Exchange, Sum]]\n";
    const struct swpipe_config config = {
        .plan_text = plan, .wait_timeout_ns = 10000000000, .progress_timeout_ns = 10000000000};
    int taken[RANKS] = {0};
    const struct swpipe_source source = {next_of_many, taken};
    struct swpipe *pipe;
    enum swpipe_status status = swpipe_open(&config, &pipe);
    if (status == SWPIPE_OK)
        status = swpipe_run(pipe, &source, NULL);
    tap_ok(status == SWPIPE_OK, "a host that waits for a wait: %s", swpipe_error(pipe));
    swpipe_close(pipe);
}

static void test_scene(struct scene scene)
{
    tap_note("%s, retire: %s, %s, %s", scene.plan == sums ? "sums" : "messages", scene.retire,
             scene.driver == SWPIPE_CLOCK ? "clock" : "dataflow",
             scene.way == SWPIPE_CALLER ? "caller" : "workers");
    test_end(&scene);
    test_drain(&scene);
    test_stop(&scene, false);
    test_stop(&scene, true);
}

int main(void)
{
    static const char *const plans[] = {sums, messages}, *const rules[] = {"device", "submit"};
    for (int i = 0; i < 16; i++)
        test_scene((struct scene){.plan = plans[i & 1],
                                  .retire = rules[i >> 1 & 1],
                                  .driver = i & 4 ? SWPIPE_DATAFLOW : SWPIPE_CLOCK,
                                  .way = i & 8 ? SWPIPE_CALLER : SWPIPE_WORKERS});
    test_wait_at_end();
    test_serial(SWPIPE_WORKERS);
    test_serial(SWPIPE_CALLER);
    return tap_done();
}
