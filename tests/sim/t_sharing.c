/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_sharing.c - work that runs together slows each other down: answers found by hand; and on random
 * plans, that work is conserved (against the rates computed again from the spans), that the order of
 * things does not matter, that sharing makes nothing end earlier where that is a theorem, and that a
 * device with room for all changes nothing.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/text/parse.h"
#include "plan/text/print.h"
#include "sim/maxplus/event_graph.h"
#include "sim/predict/predict.h"
#include "tests/harness.h"
#include "tests/random_plan.h"
#include "tests/tame_plan.h"
#include "tests/tap.h"

static struct diag diag;

enum { MOST_SPANS = 4096, MOST_RETIRED = 512, NAME = 320 };

/* ---- one run, watched ------------------------------------------------------------------------ */

struct seen {
    const struct program *program;
    struct state *state; /* a second machine that takes the same steps */
    bool legal;
    struct simulate_span spans[MOST_SPANS]; /* work and waits for peers */
    int count;
    int64_t retired_ns[MOST_RETIRED]; /* per iteration, on rank 0 */
    struct simulation_result result;
};

static bool see_span(void *context, const struct simulate_span *span)
{
    struct seen *seen = context;
    bool wanted = span->kind == SIMULATE_DEVICE || span->kind == SIMULATE_HOST ||
                  (span->kind == SIMULATE_STALL && span->stall.cause == STALL_PEER);
    if (wanted && seen->count < MOST_SPANS)
        seen->spans[seen->count++] = *span;
    return true;
}

static bool see_iteration(void *context, int rank, int64_t number, int64_t admitted_ns,
                          int64_t retired_ns)
{
    struct seen *seen = context;
    (void)admitted_ns;
    if (rank == 0 && number < MOST_RETIRED)
        seen->retired_ns[number] = retired_ns;
    return true;
}

static bool see_step(void *context, int64_t time_ns, struct transition transition,
                     const struct effect *effect)
{
    struct seen *seen = context;
    struct effect again;
    (void)time_ns;
    (void)effect;
    seen->legal =
        seen->legal && machine_agent_enabled(seen->program, seen->state, transition.agent) > 0;
    if (seen->legal)
        machine_step(seen->program, seen->state, transition, &again);
    return true;
}

static void forget(struct seen *seen)
{
    simulation_fini(&seen->result);
    machine_free(seen->state);
    free(seen);
}

/* Simulate and watch; NULL: it failed, which is a failed case. */
static struct seen *watch(const struct program *program, const struct timing *timing, uint64_t seed)
{
    struct seen *seen = calloc(1, sizeof *seen);
    assert(seen);
    seen->program = program;
    seen->state = machine_state(program);
    seen->legal = seen->state != NULL;
    const struct simulate_observer observer = {
        .context = seen, .span = see_span, .iteration = see_iteration, .step = see_step};
    const struct simulate_options options = {.seed = seed, .observer = &observer};
    if (simulate_run(program, timing, &options, &seen->result, &diag) == STATUS_OK)
        return seen;
    tap_ok(0, "it is simulated: %s", diag.count ? diag.messages[0].text : "?");
    forget(seen);
    return NULL;
}

/* A plan made ready to be simulated. */
struct ready {
    struct plan plan;
    struct program *program;
    struct jitter_rule rule;
    struct timing timing;
};

/* false: it has no program, as some random plans. */
static bool prepare(struct ready *ready, enum driver driver, int64_t iterations, const char *jitter)
{
    const struct program_options options = {.driver = driver, .iterations = iterations};
    const char *what;
    size_t where;
    ready->rule = (struct jitter_rule){.task = "*"};
    if (jitter && !dist_parse(jitter, &ready->plan.arena, &ready->rule.dist, &what, &where))
        return false;
    if (program_build(&ready->plan, &options, &ready->program, &diag) != STATUS_OK)
        return false;
    if (timing_init(&ready->timing, ready->program, &ready->rule, jitter != NULL, &diag) ==
        STATUS_OK)
        return true;
    program_close(ready->program);
    return false;
}

static void end(struct ready *ready)
{
    timing_fini(&ready->timing);
    program_close(ready->program);
}

/* ---- known answers --------------------------------------------------------------------------- */

/* When the work of a name has ended on a rank, and how much of that it was slowed; -1: it has not. */
static int64_t ended_ns(const struct seen *seen, int rank, const char *name)
{
    const struct program *p = seen->program;
    for (int i = 0; i < seen->count; i++) {
        const struct simulate_span *span = &seen->spans[i];
        if (span->kind == SIMULATE_STALL || p->agents[span->agent].rank != rank)
            continue;
        const struct op *op = &p->ops[span->op];
        char subject[NAME];
        snprintf(subject, sizeof subject, "%s%s", span->kind == SIMULATE_HOST ? "CPU part of " : "",
                 op->task >= 0   ? p->plan->pipeline.tasks[op->task].name
                 : op->name >= 0 ? p->names.items[op->name]
                                 : "");
        if (strcmp(subject, name) == 0)
            return span->end_ns;
    }
    return -1;
}

static const struct slowdown *slowdown_of(const struct seen *seen, const char *name)
{
    static const struct slowdown none;
    char text[NAME];
    for (int i = 0; seen->result.slowdowns && i < sharing_subject_count(seen->program); i++)
        if (strcmp(sharing_subject_name(seen->program, i, text, sizeof text), name) == 0)
            return &seen->result.slowdowns[i];
    return &none;
}

struct expected {
    int rank;
    const char *name;
    int64_t end_ns;
    int64_t slowed_ns[RESOURCE_COUNT]; /* SMs, link, copy engine, cores; over all ranks */
};

static void check_case(const char *what, const char *text, const struct expected *expected,
                       int count)
{
    struct ready ready;
    if (!plan_of_text(text, &ready.plan))
        return;
    if (prepare(&ready, DRIVER_NONE, 1, NULL)) {
        struct seen *seen = watch(ready.program, &ready.timing, 1);
        for (int i = 0; seen && i < count; i++) {
            const struct expected *want = &expected[i];
            tap_is_int(ended_ns(seen, want->rank, want->name), want->end_ns, "%s: %s ends", what,
                       want->name);
            for (int r = 0; r < RESOURCE_COUNT; r++)
                tap_is_int(slowdown_of(seen, want->name)->slowed_ns[r], want->slowed_ns[r],
                           "%s: %s is slowed by %s", what, want->name,
                           resource_words((enum resource)r));
        }
        if (seen) {
            tap_ok(seen->legal && machine_done(ready.program, seen->state), "%s: legal", what);
            forget(seen);
        }
        end(&ready);
    }
    plan_fini(&ready.plan);
}

#define CASE(what, text, ...)                                                                      \
    check_case(what, "swplan: 1\n" text, (const struct expected[]){__VA_ARGS__},                   \
               (int)(sizeof((const struct expected[]){__VA_ARGS__}) / sizeof(struct expected)))

static void test_kernels(void)
{
    CASE("two that want 0.6 each",
         "threads: {r0.main: [{launch: a, stream: s, time: 1ms, shares: {sm: 0.6}},"
         " {launch: b, stream: t, time: 1ms, shares: {sm: 0.6}}]}",
         {0, "a", 1200000, {200000}}, {0, "b", 1200000, {200000}});
    CASE("two that fit",
         "threads: {r0.main: [{launch: a, stream: s, time: 1ms, shares: {sm: 0.6}},"
         " {launch: b, stream: t, time: 2ms, shares: {sm: 0.4}}]}",
         {0, "a", 1000000, {0}}, {0, "b", 2000000, {0}});
    /* 0.2 ms alone, 0.2 ms of two, then three at 2/3 until A has done its 0.6, then two. */
    CASE("three, one after the other",
         "threads: {r0.main: [{launch: a, stream: s, time: 1ms, shares: {sm: 0.5}}, {host: 200us},"
         " {launch: b, stream: t, time: 1ms, shares: {sm: 0.5}}, {host: 200us},"
         " {launch: c, stream: u, time: 1ms, shares: {sm: 0.5}}]}",
         {0, "a", 1300000, {300000}}, {0, "b", 1500000, {300000}}, {0, "c", 1700000, {300000}});
    /* 3/2.1 of a nanosecond here and there: 2.1 * 1000001 = 2100002.1 */
    CASE("to the nearest nanosecond",
         "threads: {r0.main: [{launch: a, stream: s, time: 1000001ns, shares: {sm: 0.7}},"
         " {launch: b, stream: t, time: 1000001ns, shares: {sm: 0.7}},"
         " {launch: c, stream: u, time: 1000001ns, shares: {sm: 0.7}}]}",
         {0, "a", 2100002, {1100001}}, {0, "c", 2100002, {1100001}});
    CASE("what the machine says of all kernels, and what one says of itself",
         "machine: {shares: {kernel: {sm: 1}}}\n"
         "threads: {r0.main: [{launch: a, stream: s, time: 1ms},"
         " {launch: b, stream: t, time: 1ms, shares: {sm: 0.25}},"
         " {launch: c, stream: u, time: 1ms, shares: {sm: 0}}]}",
         {0, "a", 1250000, {250000}}, {0, "b", 1250000, {250000}}, {0, "c", 1000000, {0}});
    CASE("on two ranks nobody meets",
         "threads: {r0.main: [{launch: a, stream: s, time: 1ms, shares: {sm: 1}}],"
         " r1.main: [{launch: b, stream: s, time: 1ms, shares: {sm: 1}}]}",
         {0, "a", 1000000, {0}}, {1, "b", 1000000, {0}});
}

#define COPIES(engines)                                                                            \
    engines "threads: {r0.main: [{copy: h2d, name: in, bytes: 1MiB, stream: s, time: 1ms},"        \
            " {copy: d2h, name: out, bytes: 1MiB, stream: t, time: 1ms},"                          \
            " {copy: h2d, name: more, bytes: 1MiB, stream: u, time: 1ms},"                         \
            " {launch: k, stream: v, time: 2ms, shares: {sm: 1}}]}"

static void test_copies(void)
{
    CASE("copies as long as nothing is said", COPIES(""), {0, "in", 1000000, {0}},
         {0, "out", 1000000, {0}}, {0, "more", 1000000, {0}}, {0, "k", 2000000, {0}});
    CASE("copies of one direction share an engine", COPIES("machine: {copy_engines: 2}\n"),
         {0, "in", 2000000, {0, 0, 1000000}}, {0, "out", 1000000, {0}},
         {0, "more", 2000000, {0, 0, 1000000}}, {0, "k", 2000000, {0}});
    CASE("all copies share the only engine", COPIES("machine: {copy_engines: 1}\n"),
         {0, "in", 3000000, {0, 0, 2000000}}, {0, "out", 3000000, {0, 0, 2000000}},
         {0, "k", 2000000, {0}});
    CASE("copies within the device have the third engine",
         "machine: {copy_engines: 3}\n"
         "threads: {r0.main: [{copy: d2d, name: a, stream: s, time: 1ms},"
         " {copy: d2h, name: b, stream: t, time: 1ms}]}",
         {0, "a", 1000000, {0}}, {0, "b", 1000000, {0}});
    CASE("or share the second",
         "machine: {copy_engines: 2}\n"
         "threads: {r0.main: [{copy: d2d, name: a, stream: s, time: 1ms},"
         " {copy: d2h, name: b, stream: t, time: 1ms}]}",
         {0, "a", 2000000, {0, 0, 1000000}}, {0, "b", 2000000, {0, 0, 1000000}});
}

static void test_collectives(void)
{
    /* At 4/5 for 2.5 ms, then Forward has 2 ms to go. */
    CASE("an all-to-all steals SMs",
         "comms: {dp: [0]}\n"
         "threads: {r0.main: [{launch: Forward, stream: s, time: 4ms, shares: {sm: 1}},"
         " {collective: x, comm: dp, op: all_to_all, stream: t, time: 2ms,"
         "  shares: {sm: 0.25, link: 1}}]}",
         {0, "Forward", 4500000, {500000}}, {0, "x", 2500000, {500000}});
    /* It waits for rank 1 until 1 ms and has Forward at 4/5 until 3.5 ms, where 1.2 ms are left. Both
       ranks' legs go at the pace of rank 0. */
    CASE("it holds its SMs while it waits, and all members go as fast as the slowest",
         "comms: {dp: [0, 1]}\n"
         "threads:\n"
         "  r0.main: [{launch: Forward, stream: s, time: 4ms, shares: {sm: 1}},"
         " {collective: x, comm: dp, stream: t, time: 2ms, shares: {sm: 0.25, link: 1}}]\n"
         "  r1.main: [{host: 1ms},"
         " {collective: x, comm: dp, stream: t, time: 2ms, shares: {sm: 0.25, link: 1}}]\n",
         {0, "Forward", 4700000, {700000}}, {0, "x", 3500000, {1000000}},
         {1, "x", 3500000, {1000000}});
    /* x at 1/2 because of the link, not at 5/6; K all the same at 5/6 while x is there. */
    CASE("the shortest of two resources is to blame",
         "comms: {A: [0], B: [0]}\n"
         "threads: {r0.main: [{launch: K, stream: s, time: 1ms, shares: {sm: 0.6}},"
         " {collective: x, comm: A, stream: t, time: 1ms, shares: {sm: 0.6, link: 1}},"
         " {collective: y, comm: B, stream: u, time: 1ms, shares: {link: 1}}]}",
         {0, "K", 1200000, {200000}}, {0, "x", 2000000, {0, 1000000}},
         {0, "y", 2000000, {0, 1000000}});
    CASE("sends and receives share the link",
         "comms: {A: [0, 1], B: [0, 1]}\nmachine: {shares: {p2p: {link: 1}}}\n"
         "threads:\n"
         "  r0.main: [{group: [{send: x, peer: 1}], comm: A, stream: s, time: 1ms},"
         " {group: [{send: y, peer: 1}], comm: B, stream: t, time: 1ms}]\n"
         "  r1.main: [{group: [{recv: x, peer: 0}], comm: A, stream: s, time: 1ms, shares: {link: "
         "0}},"
         " {group: [{recv: y, peer: 0}], comm: B, stream: t, time: 1ms}]\n",
         {0, "", 2000000, {0}});
}

static void test_cores(void)
{
    CASE("two ranks on one core",
         "machine: {cores: 1}\n"
         "threads: {r0.main: [{launch: a, stream: s, time: 1ms}],"
         " r1.main: [{launch: b, stream: s, time: 3ms}]}",
         {0, "a", 2000000, {0, 0, 0, 1000000}}, {1, "b", 4000000, {0, 0, 0, 1000000}});
    /* At 2/3 until A is over at 1.5 ms; the others have 1 ms and 2 ms to go, with a core each. */
    CASE("three streams on two cores",
         "machine: {cores: 2}\n"
         "threads: {r0.main: [{launch: a, stream: s, time: 1ms}, {launch: b, stream: t, time: 2ms},"
         " {launch: c, stream: u, time: 3ms}]}",
         {0, "a", 1500000, {0, 0, 0, 500000}}, {0, "b", 2500000, {0, 0, 0, 500000}},
         {0, "c", 3500000, {0, 0, 0, 500000}});
    CASE("a core for each",
         "machine: {cores: 2}\n"
         "threads: {r0.main: [{launch: a, stream: s, time: 1ms}],"
         " r1.main: [{launch: b, stream: s, time: 3ms}]}",
         {0, "a", 1000000, {0}}, {1, "b", 3000000, {0}});
    CASE("copies want a core as well as kernels, and what is said otherwise holds",
         "machine: {cores: 1, shares: {copy: {core: 0.5}}}\n"
         "threads: {r0.main: [{copy: h2d, name: in, bytes: 1MiB, stream: s, time: 1ms},"
         " {launch: k, stream: t, time: 1ms},"
         " {launch: sleeps, stream: u, time: 1ms, shares: {core: 0}}]}",
         {0, "in", 1500000, {0, 0, 0, 500000}}, {0, "k", 1500000, {0, 0, 0, 500000}},
         {0, "sleeps", 1000000, {0}});
    /* F and the CPU part share the core until that is over at 2 ms; then three want it until x is over at 5 ms, and F
       has 1 ms to go. */
    CASE("a collective that waits for its peers wants no core, one that runs wants one a member",
         "machine: {cores: 1}\n"
         "comms: {dp: [0, 1]}\n"
         "threads:\n"
         "  r0.main: [{launch: F, stream: s, time: 3ms},"
         " {collective: x, comm: dp, stream: t, time: 1ms}]\n"
         "  r1.main: [{host: 1ms, name: h}, {collective: x, comm: dp, stream: t, time: 1ms}]\n",
         {1, "CPU part of h", 2000000, {0, 0, 0, 1000000}}, {0, "x", 5000000, {0, 0, 0, 4000000}},
         {1, "x", 5000000, {0, 0, 0, 4000000}}, {0, "F", 6000000, {0, 0, 0, 3000000}});
    CASE("a message wants one at each end",
         "machine: {cores: 1}\n"
         "comms: {A: [0, 1]}\n"
         "threads:\n"
         "  r0.main: [{group: [{send: x, peer: 1}], comm: A, stream: s, time: 1ms}]\n"
         "  r1.main: [{group: [{recv: x, peer: 0}], comm: A, stream: s, time: 1ms}]\n",
         {0, "", 2000000, {0}}, {1, "", 2000000, {0}});
    /* Three want it until A is over at 3 ms, and then two until B is; C has 1 ms to go. */
    CASE("CPU parts want a core, of whatever rank",
         "machine: {cores: 1}\n"
         "threads: {r0.main: [{launch: A, stream: s, time: 1ms}, {host: 2ms, name: B}],"
         " r1.main: [{host: 3ms, name: C}]}",
         {0, "A", 3000000, {0, 0, 0, 2000000}}, {0, "CPU part of B", 5000000, {0, 0, 0, 3000000}},
         {1, "CPU part of C", 6000000, {0, 0, 0, 3000000}});
    CASE("a callback wants what its body does",
         "machine: {cores: 1}\n"
         "threads: {r0.main: [{launch: A, stream: s, time: 1ms}],"
         " r1.main: [{callback: c, stream: s, time: 1ms, body: [{host: 1ms, name: B}]}]}",
         {0, "A", 2000000, {0, 0, 0, 1000000}}, {1, "CPU part of B", 2000000, {0, 0, 0, 1000000}},
         {1, "c", 2000000, {0}});
    /* K at 1/2 because of the cores, not at 5/6 because of the SMs; on rank 1 the cores are as short. */
    CASE("the shorter of the device and the host is to blame",
         "machine: {cores: 2}\n"
         "threads: {r0.main: [{launch: K, stream: s, time: 1ms, shares: {sm: 0.6}},"
         " {launch: L, stream: t, time: 1ms, shares: {sm: 0.6}}],"
         " r1.main: [{launch: M, stream: s, time: 1ms}, {launch: N, stream: t, time: 1ms}]}",
         {0, "K", 2000000, {0, 0, 0, 1000000}}, {1, "N", 2000000, {0, 0, 0, 1000000}});
    CASE("of the same shortage the device is to blame",
         "machine: {cores: 2}\n"
         "threads: {r0.main: [{launch: K, stream: s, time: 1ms, shares: {sm: 1}},"
         " {launch: L, stream: t, time: 1ms, shares: {sm: 1}}],"
         " r1.main: [{launch: M, stream: s, time: 2ms}, {launch: N, stream: t, time: 2ms}]}",
         {0, "K", 2000000, {1000000}}, {1, "N", 3000000, {0, 0, 0, 1000000}});
}

/* Two streams of one pipeline that are both always busy, once the copy is there. */
static void test_pipeline(void)
{
    static const char text[] = "swplan: 1\nschedule:\n"
                               "  A: {stage: 0, stream: a, time: 1ms, shares: {sm: 0.75}}\n"
                               "  B: {stage: 0, stream: b, time: 1ms, shares: {sm: 0.75}}\n";
    struct ready ready;
    if (!plan_of_text(text, &ready.plan))
        return;
    struct prediction prediction;
    const struct predict_options options = {.program = {.driver = DRIVER_CLOCK, .iterations = 50},
                                            .replications = 1,
                                            .threads = 1,
                                            .exposed = EXPOSED_ALWAYS};
    if (predict(&ready.plan, &options, &prediction, &diag) == STATUS_OK) {
        tap_ok(prediction.iteration.mean == 1500000, "a pipeline: %.1f ns an iteration",
               prediction.iteration.mean);
        tap_ok(prediction.steady.kind == STEADY_UNKNOWN && strstr(prediction.steady.why, "the SMs"),
               "it has no exact steady state: %s", prediction.steady.why);
        tap_ok(prediction.exposed_ns[0] == 500000, "without A it would be 1 ms: %.1f exposed",
               prediction.exposed_ns[0]);
        tap_is_int(prediction.slowdowns[1].slowed_ns[RESOURCE_SM], 50 * 500000, "B is slowed");
        tap_is_int(prediction.slowdowns[1].runs, 50, "50 times");
        prediction_fini(&prediction);
    } else {
        tap_ok(0, "a pipeline is predicted");
    }
    plan_fini(&ready.plan);
}

/* ---- random plans ---------------------------------------------------------------------------- */

static int below(struct random_stream *rng, int count)
{
    return (int)(random_bits(rng) % (uint64_t)count);
}

static struct random_stream open_rng(uint64_t seed)
{
    return random_open(&(struct random_subject){
        .seed = seed, .task = random_name("sharing"), .part = RANDOM_OTHER});
}

static struct shares draw_shares(struct random_stream *rng)
{
    struct shares shares = {{below(rng, 3) > 0, below(rng, SHARE_WHOLE + 1)},
                            {below(rng, 3) == 0, below(rng, SHARE_WHOLE + 1)},
                            {below(rng, 3) == 0, below(rng, SHARE_WHOLE + 1)}};
    return shares;
}

static void draw_tasks(struct random_stream *rng, struct task *tasks, size_t count)
{
    for (size_t t = 0; t < count; t++)
        tasks[t].shares = draw_shares(rng);
}

/* The plan's work wants this and that of its device. */
static void draw_wishes(struct plan *plan, struct random_stream *rng)
{
    for (int kind = 0; kind < SHARED_WORK_COUNT; kind++)
        if (plan->form == FORM_PROGRAMS || below(rng, 2))
            plan->machine.shares[kind] = draw_shares(rng);
    plan->machine.copy_engines = below(rng, 4);
    plan->machine.cores = below(rng, 5);
    draw_tasks(rng, plan->pipeline.tasks, plan->pipeline.task_count);
    for (size_t i = 0; i < plan->pipeline.override_count; i++)
        if (plan->pipeline.overrides[i].tasks)
            draw_tasks(rng, plan->pipeline.overrides[i].tasks, plan->pipeline.task_count);
    for (size_t t = 0; t < plan->thread_count; t++)
        for (size_t i = 0; i < plan->threads[t].op_count; i++) {
            struct host_op *op = &plan->threads[t].ops[i];
            bool work = op->kind == OP_LAUNCH || op->kind == OP_COPY || op->kind == OP_COLLECTIVE ||
                        op->kind == OP_GROUP;
            if (op->kind == OP_LAUNCH &&
                (op->body_count > 0 || op->is_graph)) /* its steps take time */
                continue;
            if (work)
                host_op_own_details(op, &plan->arena)->shares = draw_shares(rng);
            if (work || op->kind == OP_CALLBACK)
                op->time_ns = below(rng, 9000);
        }
}

static const struct share *share_in(const struct shares *shares, enum resource resource)
{
    return resource == RESOURCE_SM     ? &shares->sm
           : resource == RESOURCE_LINK ? &shares->link
                                       : &shares->core;
}

/* The demand of an operation, found in another way than the simulator's. */
static double wanted(const struct program *p, int rank, const struct op *op, enum resource resource,
                     int engine)
{
    static const struct shares nothing;
    if (op_is_cpu_work(op->kind)) {
        const struct share *said =
            op->task >= 0 ? &plan_task(p->plan, rank, op->task)->shares.core : &nothing.core;
        bool counts = resource == RESOURCE_CORE && p->plan->machine.cores > 0;
        return !counts ? 0 : said->given ? said->millionths / 1e6 : 1;
    }
    const struct machine_spec *machine = &p->plan->machine;
    enum shared_work kind = op->kind == OP_COPY         ? SHARED_WORK_COPY
                            : op->kind == OP_COLLECTIVE ? SHARED_WORK_COLLECTIVE
                            : op->kind == OP_GROUP      ? SHARED_WORK_P2P
                                                        : SHARED_WORK_KERNEL;
    if (op->kind == OP_CALLBACK)
        return 0;
    if (resource == RESOURCE_COPY_ENGINE) {
        int last = machine->copy_engines - 1;
        int own = op->kind != OP_COPY || last < 0          ? -1
                  : (int)op->given->work->direction > last ? last
                                                           : (int)op->given->work->direction;
        return own == engine;
    }
    const struct shares *own = op->given->shares ? op->given->shares : &nothing,
                        *usual = &machine->shares[kind];
    const struct share *said = share_in(own, resource);
    if (!said->given)
        said = share_in(usual, resource);
    bool core = resource == RESOURCE_CORE;
    if (core && machine->cores == 0)
        return 0;
    return said->given ? said->millionths / 1e6 : core;
}

/* The operation of a span; of one that waits for its peers the next on its stream, and where there is
   none the one that waits for ever. NULL: the stream waits before it has any, for the first use of a link. */
static const struct op *op_of(const struct seen *seen, int span)
{
    const struct simulate_span *of = &seen->spans[span];
    if (of->kind == SIMULATE_HOST)
        return &seen->program->ops[of->op];
    for (int i = span; i < seen->count; i++)
        if (seen->spans[i].agent == of->agent && seen->spans[i].kind == SIMULATE_DEVICE)
            return &seen->program->ops[seen->spans[i].op];
    int64_t iteration;
    int current = machine_current_op(seen->program, seen->state, of->agent, &iteration);
    return current < 0 ? NULL : &seen->program->ops[current];
}

static bool covers(const struct simulate_span *span, int64_t from_ns, int64_t to_ns)
{
    return span->start_ns <= from_ns && to_ns <= span->end_ns;
}

/* How fast a span's operation goes in this interval, in which nothing changes, for what is short on its own rank or
   on the host. */
static double rate_on_rank(const struct seen *seen, int span, int64_t from_ns, int64_t to_ns)
{
    const struct program *p = seen->program;
    const struct op *mine = op_of(seen, span);
    const int rank = p->agents[seen->spans[span].agent].rank;
    double rate = 1;
    for (int engine = -3; engine < 3; engine++) {
        enum resource resource = engine == -3   ? RESOURCE_CORE
                                 : engine == -2 ? RESOURCE_SM
                                 : engine == -1 ? RESOURCE_LINK
                                                : RESOURCE_COPY_ENGINE;
        bool core = resource == RESOURCE_CORE;
        double sum = 0, room = core ? p->plan->machine.cores : 1;
        if (wanted(p, rank, mine, resource, engine) == 0)
            continue;
        for (int i = 0; i < seen->count; i++) {
            const struct simulate_span *other = &seen->spans[i];
            const struct op *op = op_of(seen, i);
            bool waits = other->kind == SIMULATE_STALL;
            if (op && (core || p->agents[other->agent].rank == rank) &&
                covers(other, from_ns, to_ns) && (!waits || resource == RESOURCE_SM))
                sum += wanted(p, p->agents[other->agent].rank, op, resource, engine);
        }
        rate = sum > room && room / sum < rate ? room / sum : rate;
    }
    return rate;
}

/* The legs of a collective go together: at the same time on the same communicator. */
static double rate_of(const struct seen *seen, int span, int64_t from_ns, int64_t to_ns)
{
    const struct simulate_span *mine = &seen->spans[span];
    const struct op *op = &seen->program->ops[mine->op];
    double rate = rate_on_rank(seen, span, from_ns, to_ns);
    for (int i = 0; op->kind == OP_COLLECTIVE && i < seen->count; i++) {
        const struct simulate_span *other = &seen->spans[i];
        if (other->kind != SIMULATE_DEVICE || seen->program->ops[other->op].comm != op->comm ||
            other->start_ns != mine->start_ns || other->end_ns != mine->end_ns)
            continue;
        double leg = rate_on_rank(seen, i, from_ns, to_ns);
        rate = leg < rate ? leg : rate;
    }
    return rate;
}

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The work done in a span: its rate, summed over the intervals between any two changes. */
static double work_done(const struct seen *seen, int span, const int64_t *times, int count)
{
    const struct simulate_span *mine = &seen->spans[span];
    double work = 0;
    for (int i = 0; i + 1 < count; i++)
        if (times[i] < times[i + 1] && covers(mine, times[i], times[i + 1]))
            work += (double)(times[i + 1] - times[i]) * rate_of(seen, span, times[i], times[i + 1]);
    return work;
}

/* The longest of the members' durations. */
static int64_t drawn(const struct seen *seen, const struct timing *timing, int span, uint64_t seed)
{
    const struct simulate_span *mine = &seen->spans[span];
    const struct op *op = &seen->program->ops[mine->op];
    int64_t longest_ns = timing_draw(timing, mine->op, mine->iteration, seed, 0);
    for (int i = 0; op->kind == OP_COLLECTIVE && i < seen->count; i++) {
        const struct simulate_span *other = &seen->spans[i];
        if (other->kind != SIMULATE_DEVICE || seen->program->ops[other->op].comm != op->comm ||
            other->start_ns != mine->start_ns || other->end_ns != mine->end_ns)
            continue;
        int64_t ns = timing_draw(timing, other->op, other->iteration, seed, 0);
        longest_ns = ns > longest_ns ? ns : longest_ns;
    }
    return longest_ns;
}

/* false: something got more or less done than it had to do, by more than half a nanosecond and what
   doubles lose. */
static bool conserves_work(const struct seen *seen, const struct timing *timing, uint64_t seed,
                           int *checked, int *slowed)
{
    bool good = true;
    int64_t *times = calloc(2 * (size_t)seen->count + 1, sizeof *times);
    assert(times);
    for (int i = 0; i < seen->count; i++) {
        times[2 * i] = seen->spans[i].start_ns;
        times[2 * i + 1] = seen->spans[i].end_ns;
    }
    qsort(times, 2 * (size_t)seen->count, sizeof *times, compare_times);
    for (int i = 0; i < seen->count; i++) {
        const struct simulate_span *span = &seen->spans[i];
        if (span->kind == SIMULATE_STALL || seen->program->ops[span->op].kind == OP_CALLBACK)
            continue;
        int64_t alone_ns = drawn(seen, timing, i, seed);
        double done = work_done(seen, i, times, 2 * seen->count);
        ++*checked;
        *slowed += span->end_ns - span->start_ns > alone_ns;
        if (fabs(done - (double)alone_ns) <= 0.5001)
            continue;
        tap_note("op %d of iteration %lld, %lld to %lld: %.4f done, %lld to do", span->op,
                 (long long)span->iteration, (long long)span->start_ns, (long long)span->end_ns,
                 done, (long long)alone_ns);
        good = false;
    }
    free(times);
    return good;
}

/* Busy and slowed, summed from the spans, are what the accounts say, to the nanosecond. */
static bool accounts_agree(const struct seen *seen, const struct timing *timing, uint64_t seed)
{
    const struct simulation_result *result = &seen->result;
    int64_t busy_ns = 0, slowed_ns = 0, host_ns = 0, streams_ns = 0, sum_ns = 0;
    int64_t told_ns[2] = {0, 0}; /* of device work, of CPU parts */
    const int subjects = sharing_subject_count(seen->program);
    for (int i = 0; i < seen->count; i++) {
        const struct simulate_span *span = &seen->spans[i];
        if (span->kind == SIMULATE_HOST)
            host_ns += span->end_ns - span->start_ns - drawn(seen, timing, i, seed);
        if (span->kind != SIMULATE_DEVICE)
            continue;
        busy_ns += span->end_ns - span->start_ns;
        if (seen->program->ops[span->op].kind != OP_CALLBACK)
            slowed_ns += span->end_ns - span->start_ns - drawn(seen, timing, i, seed);
    }
    for (int i = 0; result->slowdowns && i < subjects; i++)
        for (int r = 0; r < RESOURCE_COUNT; r++)
            told_ns[i >= subjects / 2] += result->slowdowns[i].slowed_ns[r];
    for (int s = 0; s < result->stream_count; s++) {
        const struct stream_account *account = &result->streams[s];
        busy_ns -= account->busy_ns;
        sum_ns += account->busy_ns - result->makespan_ns;
        for (int i = 0; i < STALL_COUNT; i++)
            sum_ns += account->stall_ns[i];
        for (int r = 0; r < RESOURCE_COUNT; r++)
            streams_ns += account->slowed_ns[r];
    }
    if (result->blocked_count)
        busy_ns = 0; /* what never ends has no span */
    return busy_ns == 0 && sum_ns == 0 && slowed_ns == told_ns[0] && told_ns[0] == streams_ns &&
           host_ns == told_ns[1];
}

/* Printed, read and printed again the plan is the same text. */
static bool comes_back(const struct plan *plan)
{
    char *text, *again = NULL;
    struct plan read;
    if (plan_text(plan, &text, &diag) != STATUS_OK)
        return false;
    if (plan_of_text(text, &read)) {
        if (plan_text(&read, &again, &diag) != STATUS_OK)
            again = NULL;
        plan_fini(&read);
    }
    bool same = again && strcmp(text, again) == 0;
    if (!same)
        tap_note("%s", text);
    free(text);
    free(again);
    return same;
}

struct op_stats {
    int changed, runs, illegal, unconserved, unaccounted, checked, slowed, sharing;
};

static void try_one(struct op_stats *op_stats, const struct ready *ready, uint64_t seed)
{
    struct seen *seen = watch(ready->program, &ready->timing, seed);
    if (!seen)
        return;
    bool done = machine_done(ready->program, seen->state);
    bool deadlock = seen->result.violated & (1u << PROPERTY_DEADLOCK);
    op_stats->runs++;
    op_stats->sharing += seen->result.slowdowns != NULL;
    op_stats->illegal += !seen->legal || done == deadlock;
    if (seen->count < MOST_SPANS) {
        op_stats->unconserved +=
            !conserves_work(seen, &ready->timing, seed, &op_stats->checked, &op_stats->slowed);
        op_stats->unaccounted += !accounts_agree(seen, &ready->timing, seed);
    }
    forget(seen);
}

static void test_random(const char *what, char *(*make)(uint64_t seed), int count)
{
    struct op_stats op_stats = {0};
    if (env_is_long())
        count *= 10;
    for (int i = 0; i < count; i++) {
        char *text = make((uint64_t)i);
        struct random_stream rng = open_rng((uint64_t)i);
        struct ready ready;
        if (text && plan_of_text(text, &ready.plan)) {
            draw_wishes(&ready.plan, &rng);
            op_stats.changed += !comes_back(&ready.plan);
            enum driver driver = i % 2 ? DRIVER_DATAFLOW : DRIVER_CLOCK;
            if (prepare(&ready, driver, 12, i % 3 ? "normal(cv=0.4)" : NULL)) {
                try_one(&op_stats, &ready, (uint64_t)i);
                end(&ready);
            }
            plan_fini(&ready.plan);
        }
        free(text);
    }
    tap_is_int(op_stats.changed, 0, "%s: what a plan says is printed and read again", what);
    tap_ok(op_stats.illegal == 0 && op_stats.runs > count / 2, "%s: %d runs are legal", what,
           op_stats.runs);
    tap_ok(op_stats.unconserved == 0 && op_stats.slowed > 0,
           "%s: as much is done as there was to do, %d times, %d of them slowed", what,
           op_stats.checked, op_stats.slowed);
    tap_ok(op_stats.unaccounted == 0 && op_stats.sharing > 0, "%s: the accounts add up in %d runs",
           what, op_stats.sharing);
}

/* ---- what is remembered ---------------------------------------------------------------------- */

static bool same_stream(const struct stream_account *a, const struct stream_account *b)
{
    if (a->busy_ns != b->busy_ns || a->blame_count != b->blame_count ||
        memcmp(a->slowed_ns, b->slowed_ns, sizeof a->slowed_ns) != 0)
        return false;
    for (int i = 0; i < a->blame_count; i++)
        if (a->blames[i].ns != b->blames[i].ns ||
            a->blames[i].stall.cause != b->blames[i].stall.cause ||
            a->blames[i].stall.on != b->blames[i].stall.on)
            return false;
    return true;
}

static bool same_slowdowns(const struct slowdown *a, const struct slowdown *b, int count)
{
    for (int i = 0; i < count; i++)
        if (a[i].runs != b[i].runs || a[i].work_ns != b[i].work_ns ||
            memcmp(a[i].slowed_ns, b[i].slowed_ns, sizeof a->slowed_ns) != 0)
            return false;
    return true;
}

static bool same_result(const struct program *program, const struct simulation_result *a,
                        const struct simulation_result *b)
{
    bool same = a->makespan_ns == b->makespan_ns && a->steps == b->steps && a->tasks == b->tasks &&
                a->fill_ns == b->fill_ns && a->in_flight_ns == b->in_flight_ns &&
                a->violated == b->violated && a->blocked_count == b->blocked_count;
    for (int s = 0; same && s < a->stream_count; s++)
        same = same_stream(&a->streams[s], &b->streams[s]);
    return same && (a->slowdowns == NULL) == (b->slowdowns == NULL) &&
           (!a->slowdowns ||
            same_slowdowns(a->slowdowns, b->slowdowns, sharing_subject_count(program)));
}

/* The machine is asked at every step, or only where it has not been before. */
static void compare_memory(struct op_stats *op_stats, const struct ready *ready, uint64_t seed)
{
    struct simulation_result asked, remembered;
    struct simulate_options options = {.seed = seed, .forgetful = true};
    if (simulate_run(ready->program, &ready->timing, &options, &asked, &diag) != STATUS_OK)
        return;
    options.forgetful = false;
    if (simulate_run(ready->program, &ready->timing, &options, &remembered, &diag) == STATUS_OK) {
        op_stats->runs++;
        op_stats->sharing += asked.slowdowns != NULL;
        op_stats->slowed += remembered.looks < asked.looks;
        op_stats->changed += !same_result(ready->program, &asked, &remembered);
        simulation_fini(&remembered);
    }
    simulation_fini(&asked);
}

static void test_memory(const char *what, char *(*make)(uint64_t seed), int count)
{
    struct op_stats op_stats = {0};
    for (int i = 0; i < 2 * count; i++) {
        uint64_t seed = (uint64_t)i / 2;
        char *text = make(seed);
        struct random_stream rng = open_rng(seed);
        struct ready ready;
        if (text && plan_of_text(text, &ready.plan)) {
            draw_wishes(&ready.plan, &rng);
            if (prepare(&ready, i % 2 ? DRIVER_DATAFLOW : DRIVER_CLOCK, 120,
                        seed % 3 ? "normal(cv=0.4)" : NULL)) {
                compare_memory(&op_stats, &ready, seed);
                end(&ready);
            }
            plan_fini(&ready.plan);
        }
        free(text);
    }
    tap_is_int(op_stats.changed, 0, "%s: remembered and asked for, %d runs are the same", what,
               op_stats.runs);
    tap_ok(op_stats.sharing > 10 && op_stats.slowed > 10, "%d of them share, %d of them remember",
           op_stats.sharing, op_stats.slowed);
}

/* ---- never earlier --------------------------------------------------------------------------- */

/*
 * Where the order of everything is fixed (event_graph.h), each event happens when the latest of its
 * causes does or is over. So every time is a maximum of sums of durations and grows with each of
 * them; sharing makes durations longer and nothing else; therefore no iteration retires earlier.
 * Without fixed orders that is no theorem: then longer work may let other work go first (Graham 1969).
 */
static void test_never_earlier(void)
{
    int plans = 0, earlier = 0, later = 0;
    for (uint64_t seed = 0; seed < 80; seed++) {
        char *text = calm_plan(seed);
        struct ready alone, shared;
        struct event_graph graph = {0};
        struct random_stream rng = open_rng(seed);
        if (!text || !plan_of_text(text, &alone.plan) || !plan_of_text(text, &shared.plan))
            continue;
        draw_wishes(&shared.plan, &rng);
        bool good = prepare(&alone, DRIVER_CLOCK, 60, "gamma(cv=0.5)") &&
                    prepare(&shared, DRIVER_CLOCK, 60, "gamma(cv=0.5)");
        if (good && event_graph_build(alone.program, &alone.timing, &graph, &diag) == STATUS_OK &&
            !*graph.why) {
            struct seen *a = watch(alone.program, &alone.timing, seed);
            struct seen *b = watch(shared.program, &shared.timing, seed);
            for (int i = 0; a && b && i < 60; i++) {
                earlier += b->retired_ns[i] < a->retired_ns[i];
                later += b->retired_ns[i] > a->retired_ns[i];
            }
            plans++;
            forget(a);
            forget(b);
        }
        event_graph_fini(&graph);
        end(&alone);
        end(&shared);
        plan_fini(&alone.plan);
        plan_fini(&shared.plan);
        free(text);
    }
    tap_ok(plans > 20 && earlier == 0 && later > 0,
           "of %d plans of fixed order no iteration retires earlier, %d later", plans, later);
}

/* ---- order and room -------------------------------------------------------------------------- */

enum { THREADS = 7, ROUNDS = 12 };

/* Threads that have nothing to do with each other but the device, listed in some order. */
static char *listed(uint64_t seed, bool backwards)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert(out);
    fprintf(out, "swplan: 1\nmachine: {copy_engines: 2, cores: 4}\nthreads:\n");
    for (int i = 0; i < THREADS; i++) {
        int t = backwards ? THREADS - 1 - i : i;
        struct random_stream rng = open_rng(1000 * seed + (uint64_t)t);
        fprintf(out, "  r0.t%d:\n", t);
        for (int k = 0; k < ROUNDS; k++) {
            fprintf(out, "    - {host: %dns}\n", below(&rng, 4) * 1000);
            if (below(&rng, 3))
                fprintf(out,
                        "    - {launch: k%d_%d, stream: s%d, time: %dns, shares: {sm: 0.%d}}\n", t,
                        k, t, below(&rng, 8) * 1000, 1 + below(&rng, 9));
            else
                fprintf(out, "    - {copy: %s, name: k%d_%d, stream: s%d, time: %dns}\n",
                        below(&rng, 2) ? "h2d" : "d2h", t, k, t, below(&rng, 8) * 1000);
        }
    }
    fclose(out);
    return text;
}

/* Durations are whole microseconds, so that much happens at one instant. */
static void test_order(void)
{
    int different = 0, compared = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct ready ready[2];
        struct seen *seen[2] = {NULL, NULL};
        for (int b = 0; b < 2; b++) {
            char *text = listed(seed, b == 1);
            if (plan_of_text(text, &ready[b].plan) && prepare(&ready[b], DRIVER_NONE, 1, NULL))
                seen[b] = watch(ready[b].program, &ready[b].timing, 1);
            free(text);
        }
        for (int t = 0; t < THREADS && seen[0] && seen[1]; t++)
            for (int k = 0; k < ROUNDS; k++) {
                char name[32];
                snprintf(name, sizeof name, "k%d_%d", t, k);
                const struct slowdown *a = slowdown_of(seen[0], name),
                                      *b = slowdown_of(seen[1], name);
                compared++;
                different += ended_ns(seen[0], 0, name) != ended_ns(seen[1], 0, name) ||
                             memcmp(a->slowed_ns, b->slowed_ns, sizeof a->slowed_ns) != 0;
            }
        for (int b = 0; b < 2; b++) {
            forget(seen[b]);
            end(&ready[b]);
            plan_fini(&ready[b].plan);
        }
    }
    tap_ok(different == 0 && compared == 20 * THREADS * ROUNDS,
           "in whatever order threads are listed, %d pieces of work end at the same time",
           compared);
}

/* One iteration at a time, one task after the other: all may share, but nobody ever meets. */
static void test_nobody_meets(void)
{
    static const char *const texts[] = {
        "swplan: 1\nretire: device\nschedule:\n"
        "  A: {stage: 0, stream: a, time: 1ms, host_time: 10us, work: {copy: h2d, bytes: 1MiB}}\n"
        "  B: {stage: 0, stream: b, time: 2ms, shares: {sm: 1}}\n"
        "  C: {stage: 0, stream: c, time: 3ms, shares: {sm: 1}}\n"
        "intra_iter_deps: [[B, A], [C, B]]\n",
        "swplan: 1\nretire: device\nschedule:\n"
        "  A: {stage: 0, stream: a, time: 1ms, host_time: 10us, work: {copy: h2d, bytes: 1MiB}}\n"
        "  B: {stage: 0, stream: b, time: 2ms}\n"
        "  C: {stage: 0, stream: c, time: 3ms}\n"
        "intra_iter_deps: [[B, A], [C, B]]\n"};
    struct ready ready[2];
    struct seen *seen[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++)
        if (plan_of_text(texts[i], &ready[i].plan) &&
            prepare(&ready[i], DRIVER_CLOCK, 40, "lognormal(cv=0.3)"))
            seen[i] = watch(ready[i].program, &ready[i].timing, 3);
    if (!seen[0] || !seen[1])
        return;
    tap_ok(seen[0]->result.slowdowns && !seen[1]->result.slowdowns, "one may share, one cannot");
    tap_is_int(seen[0]->result.makespan_ns, seen[1]->result.makespan_ns, "they take as long");
    bool same = seen[0]->count == seen[1]->count;
    for (int i = 0; same && i < seen[0]->count; i++)
        same = seen[0]->spans[i].start_ns == seen[1]->spans[i].start_ns &&
               seen[0]->spans[i].end_ns == seen[1]->spans[i].end_ns &&
               seen[0]->spans[i].agent == seen[1]->spans[i].agent;
    tap_ok(same, "and do the same at the same time");
    for (int s = 0; same && s < seen[0]->result.stream_count; s++)
        same = memcmp(seen[0]->result.streams[s].stall_ns, seen[1]->result.streams[s].stall_ns,
                      sizeof seen[0]->result.streams[s].stall_ns) == 0;
    tap_ok(same, "and wait for the same");
    for (int i = 0; i < 2; i++) {
        forget(seen[i]);
        end(&ready[i]);
        plan_fini(&ready[i].plan);
    }
}

static void shrink(struct share *share, int by)
{
    share->millionths /= by;
}

static void shrink_tasks(struct task *tasks, size_t count, int by)
{
    for (size_t t = 0; t < count; t++) {
        shrink(&tasks[t].shares.sm, by);
        shrink(&tasks[t].shares.link, by);
    }
}

/* Where all that is wanted fits, the orders are fixed still and the times are those without sharing. */
static void test_room_for_all(void)
{
    int compared = 0, different = 0, shared = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        char *text = calm_plan(seed);
        struct random_stream rng = open_rng(seed);
        struct ready ready, alone;
        struct event_graph graph = {0};
        if (!text || !plan_of_text(text, &ready.plan) || !plan_of_text(text, &alone.plan))
            continue;
        draw_tasks(&rng, ready.plan.pipeline.tasks, ready.plan.pipeline.task_count);
        shrink_tasks(ready.plan.pipeline.tasks, ready.plan.pipeline.task_count, 8);
        ready.plan.machine.cores = 2 * (int)ready.plan.pipeline.task_count * ready.plan.ranks;
        if (prepare(&ready, DRIVER_CLOCK, 60, "gamma(cv=0.5)") &&
            prepare(&alone, DRIVER_CLOCK, 60, "gamma(cv=0.5)")) {
            struct seen *a = watch(alone.program, &alone.timing, seed);
            struct seen *b = watch(ready.program, &ready.timing, seed);
            compared += a && b;
            different += a && b && a->result.makespan_ns != b->result.makespan_ns;
            if (event_graph_build(ready.program, &ready.timing, &graph, &diag) == STATUS_OK)
                shared += strstr(graph.why, "share") != NULL;
            event_graph_fini(&graph);
            forget(a);
            forget(b);
            end(&ready);
            end(&alone);
        }
        plan_fini(&ready.plan);
        plan_fini(&alone.plan);
        free(text);
    }
    tap_ok(compared > 15 && different == 0 && shared == 0,
           "where there is room for all, times are those without sharing, %d times", compared);
}

/* With any number of threads, and with replications. */
static void test_threads(void)
{
    static const char text[] =
        "swplan: 1\nretire: device\nschedule:\n"
        "  A: {stage: 0, stream: a, time: 1ms, jitter: gamma(cv=0.4), shares: {sm: 0.7}}\n"
        "  B: {stage: 1, stream: b, time: 1ms, jitter: gamma(cv=0.4), shares: {sm: 0.7}}\n"
        "intra_iter_deps: [[B, A]]\n";
    struct plan plan;
    struct prediction one, many;
    struct predict_options options = {.program = {.driver = DRIVER_DATAFLOW, .iterations = 100},
                                      .replications = 12,
                                      .threads = 1,
                                      .exposed = EXPOSED_NEVER};
    if (!plan_of_text(text, &plan))
        return;
    if (predict(&plan, &options, &one, &diag) == STATUS_OK) {
        options.threads = 4;
        if (predict(&plan, &options, &many, &diag) == STATUS_OK) {
            tap_ok(one.iteration.mean == many.iteration.mean && one.total_ns == many.total_ns &&
                       memcmp(one.slowdowns, many.slowdowns, 2 * sizeof *one.slowdowns) == 0,
                   "four threads find what one finds");
            tap_is_int(many.slowdowns[0].runs, 1200, "and of all replications");
            prediction_fini(&many);
        }
        prediction_fini(&one);
    }
    plan_fini(&plan);
}

int main(void)
{
    diag_init(&diag);
    test_kernels();
    test_copies();
    test_collectives();
    test_cores();
    test_pipeline();
    test_memory("tame pipelines", tame_plan, 60);
    test_memory("pipelines", random_pipeline, 60);
    test_random("tame pipelines", tame_plan, 60);
    test_random("pipelines", random_pipeline, 100);
    test_random("host programs", random_threads, 200);
    test_random("rank programs", random_programs, 60);
    test_never_earlier();
    test_order();
    test_nobody_meets();
    test_room_for_all();
    test_threads();
    diag_fini(&diag);
    return tap_done();
}
