/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_predict.c - the simulator: times against an independent recurrence to the nanosecond, the stall
 * account, what the seeds say must come out, replay through the machine, deadlocks, threads.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/schedules/parallel.h"
#include "plan/text/parse.h"
#include "sim/predict/predict.h"
#include "tests/harness.h"
#include "tests/random_plan.h"
#include "tests/tap.h"

static struct diag diag;

/* ---- helpers --------------------------------------------------------------------------------- */

static struct predict_options usual(enum driver driver, int64_t iterations)
{
    return (struct predict_options){
        .program = {.driver = driver, .iterations = iterations},
        .seed = 1,
        .replications = 1,
        .threads = 1,
        .exposed = EXPOSED_NEVER,
    };
}

/* Predict the plan; on failure a failed case and false. */
static bool predicts(const struct plan *plan, struct predict_options options,
                     struct prediction *out)
{
    if (predict(plan, &options, out, &diag) == STATUS_OK)
        return true;
    tap_ok(0, "%s is predicted: %s", plan->name, diag.count ? diag.messages[0].text : "?");
    return false;
}

static int stream_named(const struct prediction *prediction, int rank, const char *name)
{
    const struct program *p = prediction->program;
    for (int s = 0; s < p->stream_count; s++)
        if (p->streams[s].rank == rank && strcmp(p->streams[s].name, name) == 0)
            return s;
    return -1;
}

/* The share of the run a stream spends on `cause`; STALL_BUSY: working. */
static double share(const struct prediction *prediction, int rank, const char *name,
                    enum stall_cause cause)
{
    int stream = stream_named(prediction, rank, name);
    if (stream < 0)
        return NAN;
    const struct stream_account *account = &prediction->streams[stream];
    int64_t ns = cause == STALL_BUSY ? account->busy_ns : account->stall_ns[cause];
    return (double)ns / (double)prediction->total_ns;
}

static bool adds_up(const struct prediction *prediction)
{
    for (int s = 0; s < prediction->program->stream_count; s++) {
        const struct stream_account *account = &prediction->streams[s];
        int64_t sum = account->busy_ns, named = account->busy_ns;
        for (int i = 0; i < STALL_COUNT; i++)
            sum += account->stall_ns[i];
        for (int i = 0; i < account->blame_count; i++)
            named += account->blames[i].ns;
        if (sum != prediction->total_ns || named != sum)
            return false;
    }
    return true;
}

/* The mean iteration time of a plan given as text. */
static double mean_of(const char *text, enum driver driver, int max_depth, int64_t iterations)
{
    struct plan plan;
    struct prediction prediction;
    double mean = NAN;
    if (!plan_of_text(text, &plan))
        return NAN;
    struct predict_options options = usual(driver, iterations);
    options.program.max_depth = max_depth;
    if (predicts(&plan, options, &prediction)) {
        mean = prediction.iteration.mean;
        prediction_fini(&prediction);
    }
    plan_fini(&plan);
    return mean;
}

/* ---- a chain against max-plus recurrences ---------------------------------------------------- */

enum { TASKS = 3, CHAIN_ITERATIONS = 500 };

/* Start and end of every CPU and device part. */
struct times {
    int64_t start[2][TASKS][CHAIN_ITERATIONS], end[2][TASKS][CHAIN_ITERATIONS];
    int64_t retired[CHAIN_ITERATIONS];
    const struct program *program;
};
enum { HOST, DEVICE };

static bool note_span(void *context, const struct simulate_span *span)
{
    struct times *times = context;
    if (span->kind == SIMULATE_STALL)
        return true;
    int part = span->kind == SIMULATE_DEVICE ? DEVICE : HOST;
    int task = times->program->ops[span->op].task;
    times->start[part][task][span->iteration] = span->start_ns;
    times->end[part][task][span->iteration] = span->end_ns;
    return true;
}

static bool note_iteration(void *context, int rank, int64_t number, int64_t admitted_ns,
                           int64_t retired_ns)
{
    struct times *times = context;
    (void)rank;
    (void)admitted_ns;
    times->retired[number] = retired_ns;
    return true;
}

static enum status note_program(void *context, const struct program *program, struct diag *unused)
{
    (void)unused;
    ((struct times *)context)->program = program;
    return STATUS_OK;
}

static int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The duration of a part, from the same random numbers. */
static int64_t duration(const struct prediction *prediction, int part, int task, int64_t iteration)
{
    const struct program *p = prediction->program;
    const struct body *body = &p->bodies[task];
    for (int i = body->first; i < body->first + body->count; i++)
        if (p->ops[i].kind == (part == HOST ? OP_HOST : OP_LAUNCH))
            return timing_draw(&prediction->timing, i, iteration, prediction->seed, 0);
    return 0;
}

/* Each task has a stream and a worker of its own, so for task t of iteration i
 *
 *     host start(t, i)   = max(host end(t, i-1), host end(t-1, i), handed out(t, i))
 *     device start(t, i) = max(host end(t, i), device end(t-1, i), device end(t, i-1))
 *
 * and an iteration retires with the last device part, in order. It is handed out when the iteration
 * `depth` before it has retired; task t under the clock only t periods later.
 */
static void recur(const struct prediction *prediction, bool clock, int depth, struct times *out)
{
    for (int64_t i = 0; i < CHAIN_ITERATIONS; i++) {
        int64_t handed_out = 0;
        for (int t = 0; t < TASKS; t++) {
            int64_t opener = clock ? i + t - depth : i - depth;
            if (opener >= 0)
                handed_out = max(handed_out, out->retired[opener]);
            int64_t host = handed_out, device = 0;
            if (i > 0) {
                host = max(host, out->end[HOST][t][i - 1]);
                device = max(device, out->end[DEVICE][t][i - 1]);
            }
            if (t > 0) {
                host = max(host, out->end[HOST][t - 1][i]);
                device = max(device, out->end[DEVICE][t - 1][i]);
            }
            out->start[HOST][t][i] = host;
            out->end[HOST][t][i] = host + duration(prediction, HOST, t, i);
            device = max(device, out->end[HOST][t][i]);
            out->start[DEVICE][t][i] = device;
            out->end[DEVICE][t][i] = device + duration(prediction, DEVICE, t, i);
        }
        int64_t end = out->end[DEVICE][TASKS - 1][i];
        out->retired[i] = i > 0 ? max(end, out->retired[i - 1]) : end;
    }
}

static bool same_times(const struct times *a, const struct times *b)
{
    for (int part = HOST; part <= DEVICE; part++)
        for (int t = 0; t < TASKS; t++)
            for (int64_t i = 0; i < CHAIN_ITERATIONS; i++)
                if (a->start[part][t][i] != b->start[part][t][i] ||
                    a->end[part][t][i] != b->end[part][t][i]) {
                    tap_note("part %d task %d iteration %lld: %lld..%lld, recurrence %lld..%lld",
                             part, t, (long long)i, (long long)a->start[part][t][i],
                             (long long)a->end[part][t][i], (long long)b->start[part][t][i],
                             (long long)b->end[part][t][i]);
                    return false;
                }
    return memcmp(a->retired, b->retired, sizeof a->retired) == 0;
}

static const char chain[] =
    "swplan: 1\n"
    "max_depth: 4\n"
    "retire: device\nschedule:\n"
    "  A: {stage: 0, stream: a, thread_group: a, time: 1ms, host_time: 100us, jitter: "
    "lognormal(cv=0.8), host_jitter: gamma(cv=0.5)}\n"
    "  B: {stage: 1, stream: b, thread_group: b, time: 1.1ms, host_time: 50us, jitter: "
    "exponential, host_jitter: exponential}\n"
    "  C: {stage: 2, stream: c, thread_group: c, time: 0.9ms, host_time: 400us, jitter: "
    "\"uniform(half=1) + spike(p=1%, add=5ms)\", host_jitter: normal(cv=1)}\n"
    "intra_iter_deps: [[B, A], [C, B]]\n";

static void test_recurrence(enum driver driver)
{
    struct plan plan;
    struct prediction prediction;
    struct times *got = calloc(2, sizeof *got), *want = got + 1;
    if (!got || !plan_of_text(chain, &plan)) {
        tap_ok(0, "there is memory");
        free(got);
        return;
    }
    const struct simulate_observer observer = {
        .context = got, .span = note_span, .iteration = note_iteration};
    struct predict_options options = usual(driver, CHAIN_ITERATIONS);
    options.observer = &observer;
    options.begin = note_program;
    if (predicts(&plan, options, &prediction)) {
        recur(&prediction, driver == DRIVER_CLOCK, prediction.program->depth, want);
        tap_ok(same_times(got, want), "%s: a jittery chain is as a recurrence has it, to the ns",
               driver_key(driver));
        tap_is_int((long long)prediction.makespan_ns, want->retired[CHAIN_ITERATIONS - 1],
                   "%s: so is its end", driver_key(driver));
        prediction_fini(&prediction);
    }
    plan_fini(&plan);
    free(got);
}

/* ---- what must come out ---------------------------------------------------------------------- */

/* SparseDist without CPU times; the main stream takes 9.6 ms. */
#define SPARSE_DIST(h2d, extra)                                                                    \
    "swplan: 1\n"                                                                                  \
    "pipeline_depth: 3\n" extra "retire: device\nschedule:\n"                                      \
    "  H2D: {stage: 0, stream: memcpy, " h2d "}\n"                                                 \
    "  InputDistStart: {stage: 1, stream: data_dist, globally_ordered: true, time: 0.4ms}\n"       \
    "  InputDistWait: {stage: 1, stream: data_dist, time: 2.5ms}\n"                                \
    "  Forward: {stage: 2, time: 4ms}\n"                                                           \
    "  Backward: {stage: 2, time: 5ms}\n"                                                          \
    "  OptimizerStep: {stage: 2, time: 0.6ms}\n"                                                   \
    "intra_iter_deps: [[InputDistStart, H2D], [InputDistWait, InputDistStart],\n"                  \
    "  [Forward, InputDistWait], [Backward, Forward], [OptimizerStep, Backward]]\n"                \
    "inter_iter_deps: [[Forward, OptimizerStep]]\n"

static void test_steady_state(void)
{
    static const char plan[] = SPARSE_DIST("time: 3ms", "");
    tap_ok(mean_of(plan, DRIVER_CLOCK, 0, 200) == 9.6e6, "clock: the busiest stream, 9.6 ms");
    tap_ok(mean_of(plan, DRIVER_DATAFLOW, 0, 200) == 9.6e6, "dataflow: the same without jitter");
    static const char slow_copy[] = SPARSE_DIST("time: 12ms", "");
    tap_ok(mean_of(slow_copy, DRIVER_CLOCK, 0, 200) == 12e6,
           "clock: a slow copy is the bottleneck");
    tap_ok(mean_of(slow_copy, DRIVER_DATAFLOW, 0, 200) == 12e6, "dataflow: too");
    tap_ok(mean_of(plan, DRIVER_DATAFLOW, 1, 200) == 15.5e6, "one in flight: the sum of all");
}

/* Jitter of a task that is not the bottleneck is absorbed by depth: 6 ms on average, sometimes 20.
 */
static void test_jitter(void)
{
    static const char plan[] = SPARSE_DIST("time: 6ms, jitter: lognormal(cv=0.8)", "");
    double last = INFINITY;
    bool better = true;
    for (int depth = 1; depth <= 16; depth *= 2) {
        double mean = mean_of(plan, DRIVER_DATAFLOW, depth, 4000);
        tap_note("max_depth %d: %.3f ms", depth, mean / 1e6);
        better &= mean < last + 0.001 * 9.6e6;
        last = mean;
    }
    tap_ok(better, "deeper is faster with the same random numbers");
    tap_ok(last < 1.01 * 9.6e6, "with 16 in flight a jittery copy costs less than 1%%");
    double clock = mean_of(plan, DRIVER_CLOCK, 0, 4000);
    tap_ok(clock > 1.01 * 9.6e6, "under the clock, three in flight, it costs more: %.3f ms",
           clock / 1e6);
}

static void test_modes(void)
{
#define MODES(deps)                                                                                \
    "swplan: 1\n"                                                                                  \
    "retire: device\nschedule:\n"                                                                  \
    "  Forward: {stage: 0, stream: f, time: 3ms}\n"                                                \
    "  Backward: {stage: 1, stream: b, time: 3ms}\n"                                               \
    "  OptimizerStep: {stage: 1, stream: o, time: 3ms}\n"                                          \
    "intra_iter_deps: [[Backward, Forward], [OptimizerStep, Backward]]\n" deps
    for (enum driver driver = DRIVER_CLOCK; driver <= DRIVER_DATAFLOW; driver++) {
        tap_ok(mean_of(MODES(""), driver, 0, 100) < 9e6, "%s: undeclared, iterations overlap",
               driver_key(driver));
        tap_ok(mean_of(MODES("inter_iter_deps: [[Forward, OptimizerStep]]\n"), driver, 0, 100) ==
                   9e6,
               "%s: Forward <- OptimizerStep(i-1) makes it serial", driver_key(driver));
    }
#undef MODES
}

static void test_fill(void)
{
    struct plan plan;
    struct prediction clock, dataflow;
    if (!plan_of_text(SPARSE_DIST("time: 3ms", "max_depth: 8\n"), &plan))
        return;
    if (predicts(&plan, usual(DRIVER_CLOCK, 100), &clock)) {
        tap_is_int(clock.in_flight_max, 3, "clock: depth iterations in flight");
        tap_is_int((long long)clock.fill_ns, 15500000, "clock: the fill is one iteration's way");
        prediction_fini(&clock);
    }
    if (predicts(&plan, usual(DRIVER_DATAFLOW, 100), &dataflow)) {
        tap_is_int(dataflow.in_flight_max, 8, "dataflow: max_depth");
        prediction_fini(&dataflow);
    }
    plan_fini(&plan);
}

static void test_exposed(void)
{
    struct plan plan;
    struct prediction prediction;
    if (!plan_of_text(SPARSE_DIST("time: 3ms", ""), &plan))
        return;
    struct predict_options options = usual(DRIVER_CLOCK, 1000);
    options.exposed = EXPOSED_IF_CHEAP;
    if (predicts(&plan, options, &prediction)) {
        int h2d = plan_find_task(&plan, "H2D"), forward = plan_find_task(&plan, "Forward");
        tap_ok(prediction.exposed_ns && prediction.exposed_ns[h2d] == 0, "H2D is hidden");
        tap_ok(prediction.exposed_ns && prediction.exposed_ns[forward] == 4e6,
               "Forward is exposed, all of it");
        prediction_fini(&prediction);
    }
    plan_fini(&plan);
}

/* ---- causes ---------------------------------------------------------------------------------- */

static bool near(double a, double b)
{
    return fabs(a - b) < 0.005;
}

static void test_causes(void)
{
    struct plan plan;
    struct prediction clock, dataflow;
    if (!plan_of_text(SPARSE_DIST("time: 3ms", ""), &plan))
        return;
    if (predicts(&plan, usual(DRIVER_CLOCK, 1000), &clock)) {
        tap_ok(near(share(&clock, 0, "memcpy", STALL_CLOCK), 1 - 3 / 9.6),
               "clock: the copy stream waits for the period clock");
        tap_ok(share(&clock, 0, "main", STALL_BUSY) > 0.99, "clock: the stream works");
        tap_ok(share(&clock, 0, "memcpy", STALL_BACKPRESSURE) == 0, "clock: no back-pressure");
        prediction_fini(&clock);
    }
    if (predicts(&plan, usual(DRIVER_DATAFLOW, 1000), &dataflow)) {
        tap_ok(near(share(&dataflow, 0, "memcpy", STALL_BACKPRESSURE), 1 - 3 / 9.6),
               "dataflow: the copy stream feels back-pressure");
        tap_ok(share(&dataflow, 0, "memcpy", STALL_CLOCK) == 0, "dataflow: no period clock");
        prediction_fini(&dataflow);
    }
    plan_fini(&plan);
}

static void check_cause(const char *text, enum driver driver, const char *stream, int rank,
                        enum stall_cause cause, double want, const char *what)
{
    struct plan plan;
    struct prediction prediction;
    if (!plan_of_text(text, &plan))
        return;
    if (predicts(&plan, usual(driver, 1000), &prediction)) {
        double got = share(&prediction, rank, stream, cause);
        tap_ok(near(got, want), "%s: %.3f, wanted %.3f", what, got, want);
        prediction_fini(&prediction);
    }
    plan_fini(&plan);
}

static void test_more_causes(void)
{
    check_cause("swplan: 1\n"
                "retire: device\nschedule:\n"
                "  Work: {stage: 0, time: 1ms, host_time: 3ms}\n",
                DRIVER_CLOCK, "main", 0, STALL_HOST, 0.75, "launch-bound");
    check_cause("swplan: 1\n"
                "retire: device\nschedule:\n"
                "  A: {stage: 0, stream: a, time: 3ms}\n"
                "  B: {stage: 0, stream: b, time: 1ms}\n"
                "intra_iter_deps: [[B, A]]\n",
                DRIVER_CLOCK, "b", 0, STALL_DEPENDENCE, 0.75, "a stream waits for an event");
    check_cause("swplan: 1\n"
                "retire: device\nschedule:\n"
                "  A: {stage: 0, stream: a, time: 3ms, host_sync: device}\n"
                "  B: {stage: 0, stream: b, time: 1ms, host_sync: device}\n"
                "intra_iter_deps: [[B, A]]\n",
                DRIVER_CLOCK, "b", 0, STALL_DEPENDENCE, 0.75, "a host waits for the device");
    check_cause("swplan: 1\n"
                "retire: device\nschedule:\n"
                "  Work: {stage: 0, time: 1ms, host_time: 1ms, host_after: 3ms}\n",
                DRIVER_CLOCK, "main", 0, STALL_HOST, 0.75,
                "the device works beside the task's thread");
    check_cause("swplan: 1\n"
                "machine: {launch_latency: 3ms}\n"
                "retire: device\nschedule:\n"
                "  Work: {stage: 0, time: 1ms, host_sync: device}\n",
                DRIVER_CLOCK, "main", 0, STALL_HOST, 0.75, "a launch is on its way to the device");
    check_cause("swplan: 1\n"
                "pipeline_depth: 2\nretire: device\nschedule:\n"
                "  A: {stage: 0, stream: a, time: 3ms, sync_after: stream}\n"
                "  B: {stage: 1, stream: b, time: 1ms}\n",
                DRIVER_CLOCK, "b", 0, STALL_HEAD_OF_LINE, 0.75, "a thread waits for its own push");
    check_cause("swplan: 1\n"
                "pipeline_depth: 2\n"
                "enqueue_order: [A, B, C]\n"
                "retire: device\nschedule:\n"
                "  A: {stage: 0, stream: a, time: 3ms, work: {copy: h2d, bytes: 1MiB, pageable: "
                "true}}\n"
                "  B: {stage: 1, stream: b, time: 1ms}\n"
                "  C: {stage: 1, stream: b, time: 1ms}\n"
                "intra_iter_deps: [[C, B], [B, A]]\n",
                DRIVER_CLOCK, "b", 0, STALL_HEAD_OF_LINE, 0.6,
                "a blocking copy in front in the worker's queue");
    check_cause("swplan: 1\n"
                "machine: {sm_slots: 1}\n"
                "retire: device\nschedule:\n"
                "  A: {stage: 0, stream: a, time: 3ms, sm: 1}\n"
                "  B: {stage: 0, stream: b, time: 1ms, sm: 1}\n",
                DRIVER_CLOCK, "b", 0, STALL_RESOURCE, 0.75, "residency slots");
    static const char slow_rank[] = "swplan: 1\n"
                                    "ranks: 2\n"
                                    "retire: device\nschedule:\n"
                                    "  Work: {stage: 0, time: 2ms}\n"
                                    "  Reduce: {stage: 0, time: 1ms, work: {collective: "
                                    "all_reduce, comm: dp, bytes: 1MiB}}\n"
                                    "intra_iter_deps: [[Reduce, Work]]\n"
                                    "rank_overrides: {1: {schedule: {Work: {time: 3ms}}}}\n";
    check_cause(slow_rank, DRIVER_CLOCK, "main", 0, STALL_PEER, 0.25, "the slower rank's peer");
    check_cause(slow_rank, DRIVER_CLOCK, "main", 1, STALL_BUSY, 1, "the slower rank");
    check_cause("swplan: 1\n"
                "ranks: 2\n"
                "batches: [500, 1000]\n"
                "retire: device\nschedule: {Work: {stage: 0, time: 2ms}}\n",
                DRIVER_CLOCK, "main", 0, STALL_NO_MORE_DATA, 0.5, "half the data");
}

/* ---- rank programs, host programs ------------------------------------------------------------ */

static void check_schedule(const char *schedule, const char *fifo, double want_ms)
{
    char text[256];
    struct plan plan;
    struct prediction prediction;
    snprintf(text, sizeof text,
             "swplan: 1\n"
             "generate: {schedule: %s}\n"
             "p2p: {fifo: %s}\n"
             "times: {F: 1ms, B: 2ms}\n",
             schedule, fifo);
    if (!plan_of_text(text, &plan))
        return;
    if (predicts(&plan, usual(DRIVER_NONE, 1), &prediction)) {
        int64_t busy_ns = prediction.streams[prediction_compute_stream(&prediction, 0)].busy_ns;
        double bubble = 1 - (double)busy_ns / (want_ms * 1e6);
        tap_ok(prediction.makespan_ns == want_ms * 1e6, "%s, fifo %s: %g ms, got %g", schedule,
               fifo, want_ms, prediction.makespan_ns / 1e6);
        tap_ok(fabs(prediction.bubble - bubble) < 1e-9, "bubble %.4f, wanted %.4f",
               prediction.bubble, bubble);
        prediction_fini(&prediction);
    }
    plan_fini(&plan);
}

/* DualPipe's formula: (p/2 - 1)(F&B + B - 3W) for p stages. On half as many ranks, F = I = W = 1. */
static void check_overlap(const char *both, double want_ms)
{
    char text[256];
    struct plan plan;
    struct prediction prediction;
    snprintf(text, sizeof text,
             "swplan: 1\n"
             "generate: {schedule: dualpipe_v, ranks: 4, microbatches: 10}\n"
             "p2p: {fifo: edge}\n"
             "times: {F: 1ms, I: 1ms, W: 1ms, B: 2ms, OVERLAP_F_B: %s}\n",
             both);
    if (!plan_of_text(text, &plan))
        return;
    if (predicts(&plan, usual(DRIVER_NONE, 1), &prediction)) {
        double most = 0;
        for (int rank = 0; rank < 4; rank++) {
            int stream = prediction_compute_stream(&prediction, rank);
            most = fmax(most, prediction.makespan_ns - (double)prediction.streams[stream].busy_ns);
        }
        tap_ok(most == want_ms * 1e6, "dualpipe_v, F&B %s: %g ms idle, got %g", both, want_ms,
               most / 1e6);
        prediction_fini(&prediction);
    }
    plan_fini(&plan);
}

/* (m + p - 1)(F + B) without chunks. With them receives that come early hold up sends in a single
   FIFO; these makespans were computed with another model of the same rules. */
static void test_schedules(void)
{
    check_schedule("gpipe, ranks: 4, microbatches: 8", "rank", 33);
    check_schedule("1f1b, ranks: 4, microbatches: 8", "rank", 33);
    check_schedule("1f1b, ranks: 4, microbatches: 8", "edge", 33);
    check_schedule("interleaved_1f1b, ranks: 4, chunks: 2, microbatches: 8", "rank", 67);
    check_schedule("interleaved_1f1b, ranks: 4, chunks: 2, microbatches: 8", "pair", 57);
    check_schedule("interleaved_1f1b, ranks: 8, chunks: 2, microbatches: 16", "rank", 168);
    check_schedule("interleaved_1f1b, ranks: 8, chunks: 2, microbatches: 16", "pair", 117);
    check_schedule("interleaved_1f1b, ranks: 8, chunks: 4, microbatches: 32", "rank", 552);
    check_schedule("interleaved_1f1b, ranks: 8, chunks: 4, microbatches: 32", "pair", 405);
    check_overlap("2ms", 3);
    check_overlap("2500us", 4.5);
    check_overlap("3ms", 6);
}

/* PyTorch's own zero-bubble schedule, with and without its messages, in both dialects. */
static void test_pytorch_schedules(void)
{
    static const char *const names[] = {"comms", "compute", "compute.olddialect"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[80];
        struct plan plan;
        struct prediction prediction;
        snprintf(name, sizeof name, "data/pytorch/zb1p_2rank_2stagep_%s.csv", names[i]);
        const char *path = path_shared(name);
        if (!has_shared(path) || !plan_of_file(path, &plan))
            continue;
        plan.programs.times[ACTION_F] = plan.programs.times[ACTION_I] =
            plan.programs.times[ACTION_W] = (struct action_time){true, 1000000};
        plan.programs.times[ACTION_B] = (struct action_time){true, 2000000};
        if (predicts(&plan, usual(DRIVER_NONE, 1), &prediction)) {
            tap_is_int((long long)prediction.makespan_ns, 49000000, "zb1p (%s): 49 ms", names[i]);
            prediction_fini(&prediction);
        }
        plan_fini(&plan);
    }
}

static void test_host_program(void)
{
    static const char text[] = "swplan: 1\n"
                               "queues: {q: 1}\n"
                               "threads:\n"
                               "  r0.loader:\n"
                               "    - {host: 5ms}\n"
                               "    - {put: q}\n"
                               "    - {host: 1ms}\n"
                               "    - {put: q}\n"
                               "  r0.main:\n"
                               "    - {get: q}\n"
                               "    - {launch: first, stream: s, time: 3ms, host_time: 1ms}\n"
                               "    - {get: q}\n"
                               "    - {launch: second, stream: s, time: 2ms}\n"
                               "    - {sync: stream, stream: s}\n"
                               "    - {host: 1ms}\n";
    struct plan plan;
    struct prediction prediction;
    if (!plan_of_text(text, &plan))
        return;
    if (predicts(&plan, usual(DRIVER_NONE, 1), &prediction)) {
        const struct stream_account *account = &prediction.streams[0];
        tap_is_int((long long)prediction.makespan_ns, 12000000, "host program: 12 ms");
        tap_is_int(account->busy_ns, 5000000, "its stream works 5 ms");
        tap_is_int(account->stall_ns[STALL_DEPENDENCE], 5000000, "5 ms for the loader");
        tap_is_int(account->stall_ns[STALL_HOST], 1000000, "1 ms for the launch");
        tap_is_int(account->stall_ns[STALL_NO_MORE_DATA], 1000000, "1 ms after its last work");
        prediction_fini(&prediction);
    }
    plan_fini(&plan);
}

/* Two launches on their way at once, and a record behind the second. */
static void test_launch_latency(void)
{
    static const char text[] = "swplan: 1\n"
                               "machine: {launch_latency: 1ms}\n"
                               "threads:\n"
                               "  r0.t:\n"
                               "    - {launch: a, stream: s, time: 2ms, host_time: 1ms}\n"
                               "    - {launch: b, stream: s, time: 3ms, host_time: 1ms}\n"
                               "    - {record: e, stream: s}\n"
                               "    - {wait: e, stream: u}\n"
                               "    - {launch: c, stream: u, time: 1ms}\n"
                               "    - {sync: device}\n"
                               "    - {launch: d, stream: s, time: 1ms}\n";
    struct plan plan;
    struct prediction prediction;
    if (!plan_of_text(text, &plan))
        return;
    if (predicts(&plan, usual(DRIVER_NONE, 1), &prediction)) {
        tap_is_int((long long)prediction.makespan_ns, 10000000, "the launches a and d take 1 ms");
        tap_is_int(prediction.streams[0].stall_ns[STALL_HOST], 3000000, "... beside the host's");
        prediction_fini(&prediction);
    }
    plan_fini(&plan);
}

/* `b` is pushed when a step on another stream has emptied its own: at 8 ms, so it runs from 11 to 16. */
static void test_launch_behind_a_wait(void)
{
    static const char text[] = "swplan: 1\n"
                               "machine: {launch_latency: 3ms}\n"
                               "threads:\n"
                               "  r0.t:\n"
                               "    - {launch: a, stream: u, time: 5ms}\n"
                               "    - {record: e, stream: u}\n"
                               "    - {wait: e, stream: s}\n"
                               "    - {sync: stream, stream: s}\n"
                               "    - {launch: b, stream: s, time: 5ms}\n";
    struct plan plan;
    struct prediction prediction;
    if (!plan_of_text(text, &plan))
        return;
    if (predicts(&plan, usual(DRIVER_NONE, 1), &prediction)) {
        tap_is_int((long long)prediction.makespan_ns, 16000000, "both launches take 3 ms");
        prediction_fini(&prediction);
    }
    plan_fini(&plan);
}

/* The first iteration waits for the loader, later ones for the device and take their own times: 3, 2, 4, 3, 2 ms;
   rank 1 has work in fewer. */
static void test_repeat(void)
{
    static const char text[] = "swplan: 1\n"
                               "ranks: 2\n"
                               "flags: {loaded: {scope: iteration}}\n"
                               "threads:\n"
                               "  r0.loader:\n"
                               "    - {host: 4ms}\n"
                               "    - {repeat: 5, body: [{host: 1ms}, {signal: loaded}]}\n"
                               "  r0.main:\n"
                               "    - repeat: 5\n"
                               "      body: [{await: loaded}, {launch: k, stream: s, time: [3ms, "
                               "2ms, 4ms]}]\n"
                               "  r1.main:\n"
                               "    - {repeat: 1, body: [{launch: k, stream: s, time: 1ms}]}\n"
                               "    - {launch: k, stream: s, time: 9ms}\n";
    struct plan plan;
    struct prediction prediction;
    if (!plan_of_text(text, &plan))
        return;
    if (predicts(&plan, usual(DRIVER_NONE, 1), &prediction)) {
        tap_is_int((long long)prediction.makespan_ns, 19000000, "a repeat: 19 ms in all");
        tap_is_int((long long)prediction.fill_ns, 8000000, "8 ms for the first iteration");
        tap_is_int(prediction.iteration.count, 4, "four more");
        tap_ok(near(prediction.iteration.mean, 2.75e6), "2.75 ms each, by their positions");
        prediction_fini(&prediction);
    }
    plan_fini(&plan);
}

/* A callback lasts as long as its body and at least its own time; what is behind it waits. */
static void test_callback(void)
{
    static const char text[] = "swplan: 1\n"
                               "threads:\n"
                               "  r0.main:\n"
                               "    - {launch: a, stream: s, time: 1ms}\n"
                               "    - {callback: c, stream: s, body: [{host: 2ms}, {signal: f}]}\n"
                               "    - {launch: b, stream: s, time: 1ms}\n"
                               "    - {await: f}\n"
                               "    - {host: 5ms}\n";
    struct plan plan;
    struct prediction prediction;
    if (!plan_of_text(text, &plan))
        return;
    if (predicts(&plan, usual(DRIVER_NONE, 1), &prediction)) {
        tap_is_int((long long)prediction.makespan_ns, 8000000, "callback: 1 + 2 + 5 ms");
        tap_is_int(prediction.streams[0].busy_ns, 4000000, "its stream works 4 ms");
        prediction_fini(&prediction);
    }
    plan_fini(&plan);
}

/* ---- deadlock -------------------------------------------------------------------------------- */

static void test_deadlock(void)
{
    static const char text[] = "swplan: 1\n"
                               "enqueue_order: [A, B]\n"
                               "retire: device\nschedule:\n"
                               "  A: {stage: 0, time: 1ms}\n"
                               "  B: {stage: 1, time: 1ms}\n"
                               "inter_iter_deps: [[A, B]]\n";
    struct plan plan;
    struct prediction prediction;
    if (!plan_of_text(text, &plan))
        return;
    if (predicts(&plan, usual(DRIVER_CLOCK, 100), &prediction)) {
        bool told = false;
        for (size_t i = 0; i < prediction.blocked_count; i++)
            told |= strstr(prediction.blocked[i].waits_for, "B(0)") != NULL;
        tap_ok(prediction.blocked_count > 0, "a deadlock is a result");
        tap_ok(told, "it names the blocked agents and what they wait for");
        tap_ok(prediction.violated & (1u << PROPERTY_DEADLOCK), "the property is broken");
        tap_ok(adds_up(&prediction), "the account adds up all the same");
        prediction_fini(&prediction);
    }
    plan_fini(&plan);
}

/* The driver has retired an iteration that never finishes, and no agent waits. */
static void test_left_behind(void)
{
    static const char text[] = "swplan: 1\n"
                               "max_depth: 1\n"
                               "retire: last-task\n"
                               "forget_done: retire\n"
                               "schedule:\n"
                               "  A: {stage: 0, time: 1us, thread_group: a}\n"
                               "  B: {stage: 0, time: 1us, thread_group: b}\n"
                               "inter_iter_deps: [[A, B]]\n";
    struct plan plan;
    struct prediction prediction;
    if (!plan_of_text(text, &plan))
        return;
    if (predicts(&plan, usual(DRIVER_DATAFLOW, 2), &prediction)) {
        tap_ok(prediction.violated & (1u << PROPERTY_DEADLOCK), "a task is never handed out");
        tap_is_int((long long)prediction.blocked_count, 1, "one is to blame");
        if (prediction.blocked_count == 1)
            tap_is_str(prediction.blocked[0].waits_for,
                       "has retired iteration 1, of which A was never handed out",
                       "the driver, who gave it up");
        prediction_fini(&prediction);
    }
    plan_fini(&plan);
}

static void test_refusals(void)
{
    struct plan plan;
    struct prediction prediction;
    struct jitter_rule rule = {.task = "Nobody"};
    if (!plan_of_text("swplan: 1\nschedule: {A: {stage: 0}}\n", &plan))
        return;
    struct predict_options options = usual(DRIVER_CLOCK, -1);
    tap_is_int(predict(&plan, &options, &prediction, &diag), STATUS_USAGE,
               "any number of iterations cannot be simulated");
    options = usual(DRIVER_CLOCK, (int64_t)PLAN_MAX_ITERATIONS + 1);
    tap_is_int(predict(&plan, &options, &prediction, &diag), STATUS_USAGE, "nor can too many");
    options = usual(DRIVER_CLOCK, 10);
    options.jitter = &rule;
    options.jitter_count = 1;
    tap_is_int(predict(&plan, &options, &prediction, &diag), STATUS_USAGE,
               "jitter of a task that is not there is refused");
    plan_fini(&plan);
}

/* ---- random durations -------------------------------------------------------------------------- */

static void test_replications(void)
{
    struct plan plan;
    struct prediction one, four;
    if (!plan_of_text(chain, &plan))
        return;
    struct predict_options options = usual(DRIVER_DATAFLOW, 300);
    options.replications = 9;
    struct predict_options spread = options;
    spread.threads = 4;
    if (predicts(&plan, options, &one)) {
        if (predicts(&plan, spread, &four)) {
            tap_ok(one.iteration.mean == four.iteration.mean && one.total_ns == four.total_ns &&
                       one.iteration.mean_in.low == four.iteration.mean_in.low &&
                       one.streams[0].busy_ns == four.streams[0].busy_ns,
                   "four threads and one give the same");
            tap_ok(four.iteration.mean_in.low < four.iteration.mean, "replications differ");
            tap_ok(adds_up(&four), "the sum of their accounts adds up");
            prediction_fini(&four);
        }
        prediction_fini(&one);
    }
    plan_fini(&plan);
}

/* One stream that is never idle: an iteration takes as long as its task, 1 ms on average. So often as
   it says must the interval of a run, and that of its replications, hold that mean. */
static void test_coverage(void)
{
    static const char text[] =
        "swplan: 1\n"
        "max_depth: 4\n"
        "retire: device\nschedule: {Work: {stage: 0, time: 1ms, jitter: lognormal(cv=0.5)}}\n";
    int runs = env_is_long() ? 2000 : 400, inside = 0;
    double band = env_is_long() ? 0.01 : 0.03;
    struct plan plan;
    struct prediction prediction;
    if (!plan_of_text(text, &plan))
        return;
    for (int run = 0; run < runs; run++) {
        struct predict_options options = usual(DRIVER_DATAFLOW, 2000);
        options.seed = (uint64_t)run + 1;
        if (!predicts(&plan, options, &prediction))
            break;
        inside +=
            prediction.iteration.mean_in.low <= 1e6 && 1e6 <= prediction.iteration.mean_in.high;
        prediction_fini(&prediction);
    }
    tap_ok(inside >= (0.95 - band) * runs && inside <= (0.95 + band) * runs,
           "the 95%% interval holds the known period in %.2f%% of %d runs", 100.0 * inside / runs,
           runs);
    plan_fini(&plan);
}

/* The same tasks in another order and with another one between: their random numbers stay. */
static void test_same_numbers(void)
{
    static const char other[] =
        "swplan: 1\n"
        "retire: device\nschedule:\n"
        "  X: {stage: 0, stream: x, time: 1ms}\n"
        "  B: {stage: 1, stream: b, time: 1.1ms, jitter: exponential}\n"
        "  A: {stage: 0, stream: a, time: 1ms, jitter: lognormal(cv=0.8)}\n";
    struct plan first, second;
    struct prediction a, b;
    if (!plan_of_text(chain, &first) || !plan_of_text(other, &second))
        return;
    if (predicts(&first, usual(DRIVER_CLOCK, 300), &a)) {
        if (predicts(&second, usual(DRIVER_DATAFLOW, 300), &b)) {
            tap_is_int(b.streams[stream_named(&b, 0, "a")].busy_ns,
                       a.streams[stream_named(&a, 0, "a")].busy_ns,
                       "task A has the same random numbers in another plan under the other driver");
            tap_is_int(b.streams[stream_named(&b, 0, "b")].busy_ns,
                       a.streams[stream_named(&a, 0, "b")].busy_ns, "so has B");
            prediction_fini(&b);
        }
        prediction_fini(&a);
    }
    plan_fini(&first);
    plan_fini(&second);
}

/* ---- every plan we have ---------------------------------------------------------------------- */

/* The steps, taken a second time by a machine that knows no time. */
struct replay {
    const struct program *program;
    struct state *state;
    int64_t last_ns;
    bool legal;
};

static enum status begin_replay(void *context, const struct program *program, struct diag *unused)
{
    struct replay *replay = context;
    (void)unused;
    replay->program = program;
    replay->state = machine_state(program);
    replay->legal = replay->state != NULL;
    return STATUS_OK;
}

static bool replay_step(void *context, int64_t time_ns, struct transition transition,
                        const struct effect *effect)
{
    struct replay *replay = context;
    struct effect again;
    (void)effect;
    if (!replay->legal || time_ns < replay->last_ns ||
        machine_agent_enabled(replay->program, replay->state, transition.agent) == 0) {
        replay->legal = false;
        return true;
    }
    replay->last_ns = time_ns;
    machine_step(replay->program, replay->state, transition, &again);
    return true;
}

static void check_plan(const struct plan *plan, enum driver driver)
{
    struct replay replay = {0};
    const struct simulate_observer observer = {.context = &replay, .step = replay_step};
    struct prediction prediction, again;
    struct predict_options options = usual(driver, 40);
    options.observer = &observer;
    options.begin = begin_replay;
    if (!predicts(plan, options, &prediction))
        return;
    bool done = replay.legal && machine_done(replay.program, replay.state);
    tap_ok(replay.legal && done == (prediction.blocked_count == 0) && adds_up(&prediction),
           "%s, %s: legal, adds up%s", plan->name, driver_key(driver),
           prediction.blocked_count ? ", deadlock" : "");
    machine_free(replay.state);
    if (predicts(plan, usual(driver, 40), &again)) {
        if (again.makespan_ns != prediction.makespan_ns || again.tasks != prediction.tasks)
            tap_ok(0, "%s, %s: twice the same", plan->name, driver_key(driver));
        prediction_fini(&again);
    }
    prediction_fini(&prediction);
}

/* Predictions refuse a plan that aborts a communicator by itself. */
static bool aborts(const struct plan *plan)
{
    for (size_t t = 0; t < plan->thread_count; t++)
        for (size_t i = 0; i < plan->threads[t].op_count; i++)
            if (plan->threads[t].ops[i].kind == OP_ABORT)
                return true;
    return false;
}

static void is_refused(const struct plan *plan)
{
    const struct predict_options options = usual(DRIVER_NONE, 40);
    struct prediction prediction;
    struct diag own;
    diag_init(&own);
    tap_ok(predict(plan, &options, &prediction, &own) != STATUS_OK && own.count > 0 &&
               strstr(own.messages[0].text, "abort") != NULL,
           "%s: an abort is refused by its name", plan->name);
    diag_fini(&own);
}

static void test_all_plans(void)
{
    glob_t found = files_source("plans/*/*.yaml");
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct plan plan;
        if (!plan_of_file(found.gl_pathv[i], &plan))
            continue;
        bool pipeline = plan.form == FORM_PIPELINE;
        if (aborts(&plan))
            is_refused(&plan);
        else
            check_plan(&plan, pipeline ? DRIVER_CLOCK : DRIVER_NONE);
        if (pipeline)
            check_plan(&plan, DRIVER_DATAFLOW);
        plan_fini(&plan);
    }
    globfree(&found);
}

/* ---- what an event costs --------------------------------------------------------------------- */

/* A chain of tasks, each on a stream of its own: how often a stream is looked at, for each task that is
   executed. NAN: a failure was reported. */
static double looks_a_task(int tasks)
{
    enum { LINE = 80, ITERATIONS = 4 }; /* too few for the memo */
    struct plan plan;
    struct program *program;
    struct timing timing;
    struct simulation_result result;
    const struct simulate_options options = {.seed = 1};
    double looks = NAN;
    char *text = malloc((size_t)(2 * tasks + 3) * LINE);
    int at = sprintf(text, "swplan: 1\nname: chain\nretire: device\nschedule:\n");
    for (int t = 0; t < tasks; t++)
        at +=
            sprintf(text + at, "  T%d: {stage: 0, stream: s%d, time: 9us, host_time: 1us}\n", t, t);
    at += sprintf(text + at, "intra_iter_deps:\n");
    for (int t = 1; t < tasks; t++)
        at += sprintf(text + at, "  - [T%d, T%d]\n", t, t - 1);
    bool good = plan_of_text(text, &plan);
    free(text);
    if (!good)
        return NAN;
    struct program_options how = {.driver = DRIVER_CLOCK, .iterations = ITERATIONS};
    if (program_build(&plan, &how, &program, &diag) == STATUS_OK) {
        if (timing_init(&timing, program, NULL, 0, &diag) == STATUS_OK) {
            if (simulate_run(program, &timing, &options, &result, &diag) == STATUS_OK) {
                looks = (double)result.looks / (double)result.tasks;
                simulation_fini(&result);
            }
            timing_fini(&timing);
        }
        program_close(program);
    }
    plan_fini(&plan);
    return looks;
}

static void test_looks(void)
{
    double few = looks_a_task(20), many = looks_a_task(400);
    tap_ok(few > 0 && many < 1.5 * few,
           "streams looked at for a task: %.2f where there are 20, %.2f where there are 400", few,
           many);
}

/* ---- in flight over time --------------------------------------------------------------------- */

static void test_in_flight(void)
{
    struct in_flight series = {0};
    const struct in_flight_point changes[] = {{0, 1, 5}, {7, 0, 0}, {7, 1, 5}, {9, 2, 10}};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        in_flight_change(&series, &changes[i]);
    tap_ok(series.count == 2 && series.points[0].time_ns == 0 && series.points[1].time_ns == 9 &&
               series.points[1].iterations == 2,
           "one goes and another comes: no change");
    int64_t most = 0;
    bool rises = true;
    for (int64_t i = 0; i < 100000; i++)
        in_flight_change(&series, &(struct in_flight_point){10 + i, i == 4321 ? 9 : i % 3, 0});
    for (int i = 0; i < series.count; i++) {
        most = series.points[i].iterations > most ? series.points[i].iterations : most;
        rises &= i == 0 || series.points[i].time_ns > series.points[i - 1].time_ns;
    }
    tap_ok(series.count > IN_FLIGHT_POINTS / 4 && series.count <= IN_FLIGHT_POINTS && rises,
           "of many changes %d points are kept, in order", series.count);
    tap_ok(most == 9, "and the peak");
}

/* ---- one rank for all ------------------------------------------------------------------------ */

static bool accept_iteration(void *context, int rank, int64_t number, int64_t admitted_ns,
                             int64_t finished_ns)
{
    (void)context, (void)rank, (void)number, (void)admitted_ns, (void)finished_ns;
    return true;
}

static bool same_figure(double a, double b)
{
    return (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-9 * fabs(a);
}

/* Does each of many ranks do what the one does that was predicted? */
static bool same_for_all(const struct plan *plan, const struct prediction *one,
                         const struct prediction *all)
{
    bool same = program_all_ranks(one->program) == all->program->ranks &&
                one->makespan_ns == all->makespan_ns && same_figure(one->fill_ns, all->fill_ns) &&
                same_figure(one->drain_ns, all->drain_ns) &&
                one->in_flight_max == all->in_flight_max &&
                one->in_flight_bytes_max == all->in_flight_bytes_max &&
                same_figure(one->in_flight_mean, all->in_flight_mean) &&
                same_figure(one->iteration.mean, all->iteration.mean) &&
                same_figure(one->iteration.p99, all->iteration.p99) &&
                same_figure(one->bubble, all->bubble) && one->violated == all->violated;
    for (int s = 0; same && s < all->program->stream_count; s++) {
        const struct stream_desc *desc = &all->program->streams[s];
        const struct stream_account *account = &all->streams[s];
        int replica, place = desc->rank;
        if (one->program->ranks < all->program->ranks)
            parallel_place(&plan->programs.parallel, one->program->ranks, desc->rank, &replica,
                           &place);
        const int own = stream_named(one, place, desc->name);
        same = own >= 0 && one->streams[own].busy_ns == account->busy_ns &&
               memcmp(one->streams[own].stall_ns, account->stall_ns, sizeof account->stall_ns) == 0;
    }
    return same;
}

struct stand_ins {
    int compared, represented, different;
};

static void compare_stand_in(struct stand_ins *counts, const struct plan *plan, enum driver driver,
                             int ranks)
{
    const struct simulate_observer observer = {.iteration = accept_iteration};
    struct predict_options options = usual(driver, 40);
    struct prediction one, all;
    options.program.ranks = ranks;
    if (predict(plan, &options, &one, &diag) != STATUS_OK)
        return;
    options.observer = &observer;
    if (predicts(plan, options, &all)) {
        counts->compared++;
        counts->represented += one.program->ranks < all.program->ranks;
        counts->different += !same_for_all(plan, &one, &all);
        prediction_fini(&all);
    }
    prediction_fini(&one);
}

/* Groups of every kind around a pipeline, on nodes of some ranks. */
static void test_pipeline_for_all(void)
{
    static const char *const orders[] = {"tp-cp-dp-pp", "tp-cp-pp-dp", "pp-dp-cp-tp"};
    struct stand_ins counts = {0};
    for (int i = 0; i < 96; i++) {
        struct plan plan;
        char text[1000];
        const int tp = 1 + i % 2, cp = 1 + i / 2 % 2, dp = 1 + i / 4 % 3, ep = i % 5 == 4 ? dp : 1;
        snprintf(text, sizeof text,
                 "swplan: 1\nname: groups\n"
                 "p2p: {fifo: pair, bytes: 1MiB, latency: 10us, bandwidth: 25GB/s%s}\n"
                 "parallel:\n  {tp: %d, cp: %d, dp: %d, ep: %d, pp: 3, order: %s%s,\n"
                 "   grad_reduce: %s, embedding: last,\n"
                 "   costs: {tp: {F: 2, B: 2, latency: 5us, bandwidth: 200GB/s,\n"
                 "                between: {latency: 50us, bandwidth: 20GB/s}},\n"
                 "           dp-cp: {bytes: 64MiB, latency: 20us, bandwidth: 100GB/s}}}\n"
                 "times: {F: 1ms, B: 2ms}\n"
                 "generate: {schedule: 1f1b, ranks: 3, microbatches: 4}\n",
                 i % 3 == 1   ? ", node: 4"
                 : i % 3 == 2 ? ", node: 3"
                              : "",
                 tp, cp, dp, ep, orders[i / 12 % 3], ep > 1 ? "-ep" : "",
                 i % 2 ? "overlap" : "last");
        if (plan_parse("groups.yaml", text, strlen(text), &plan, &diag) != STATUS_OK)
            continue;
        const int before = counts.different;
        compare_stand_in(&counts, &plan, DRIVER_NONE, 0);
        if (counts.different > before)
            tap_note("%s", text);
        plan_fini(&plan);
    }
    tap_is_int(counts.different, 0, "one pipeline stands for all in %d of %d predictions of groups",
               counts.represented, counts.compared);
    tap_ok(counts.represented > 20 && counts.represented < counts.compared,
           "and in some it does not");
}

/* A prediction of equal ranks whose times do not vary is that of one of them; an observer sees all. */
static void test_one_for_all(void)
{
    struct stand_ins counts = {0};
    glob_t found = files_source("plans/*/*.yaml");
    for (size_t i = 0; i < found.gl_pathc + 400; i++) {
        struct plan plan;
        char *text = i < found.gl_pathc ? NULL : random_pipeline(i);
        const enum status status = text
                                       ? plan_parse("random.yaml", text, strlen(text), &plan, &diag)
                                       : plan_read(found.gl_pathv[i], &plan, &diag);
        const int before = counts.different;
        for (enum driver driver = DRIVER_CLOCK; !status && driver <= DRIVER_DATAFLOW; driver++)
            if (plan.form == FORM_PIPELINE)
                compare_stand_in(&counts, &plan, driver, 2 + (int)(i % 3));
        if (counts.different > before)
            tap_note("%s", text ? text : found.gl_pathv[i]);
        if (status == STATUS_OK)
            plan_fini(&plan);
        free(text);
    }
    globfree(&found);
    tap_is_int(counts.different, 0, "one rank stands for all in %d of %d predictions",
               counts.represented, counts.compared);
    tap_ok(counts.represented > 100 && counts.represented < counts.compared,
           "and in some it does not");
}

int main(void)
{
    diag_init(&diag);
    test_recurrence(DRIVER_CLOCK);
    test_recurrence(DRIVER_DATAFLOW);
    test_steady_state();
    test_jitter();
    test_modes();
    test_fill();
    test_exposed();
    test_causes();
    test_more_causes();
    test_schedules();
    test_pytorch_schedules();
    test_host_program();
    test_launch_latency();
    test_launch_behind_a_wait();
    test_repeat();
    test_callback();
    test_deadlock();
    test_left_behind();
    test_refusals();
    test_replications();
    test_coverage();
    test_same_numbers();
    test_all_plans();
    test_looks();
    test_in_flight();
    test_one_for_all();
    test_pipeline_for_all();
    diag_fini(&diag);
    return tap_done();
}
