/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_compare.c - profiles of runs whose durations are known, and stall accounts found again from the
 * steps of a simulation.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plan/text/parse.h"
#include "sim/engine/observe.h"
#include "sim/predict/predict.h"
#include "sim/predict/profile.h"
#include "tests/harness.h"
#include "tests/tap.h"

enum { ITERATIONS = 22, WARM_UP = 3, NAME = 160 };

static const char plan_text[] =
    "swplan: 1\n"
    "name: known\n"
    "ranks: 2\n"
    "schedule:\n"
    "  Load: {stage: 0, time: 9ms, work: {host: 1ms}}\n"
    "  Copy: {stage: 0, time: 9ms, host_time: 1us}\n"
    "  Sum: {stage: 0, time: 9ms, work: {collective: all_reduce, comm: all, bytes: 1KiB}}\n"
    "  Rest: {stage: 0, time: 5ms, host_time: 7us}\n"
    "comms: {all: all}\n";

/* ---- a run with known durations -------------------------------------------------------------- */

struct made {
    struct trace trace;
    struct arena arena;
    int threads[2], streams[2];
};

static void add(struct made *made, int agent, enum span_kind kind, const char *task, int iteration,
                int64_t start_ns, int64_t ns)
{
    const struct trace_span span = {.agent = agent,
                                    .kind = kind,
                                    .task = task,
                                    .iteration = iteration,
                                    .start_ns = start_ns,
                                    .end_ns = start_ns + ns};
    trace_add_span(&made->trace, &span);
}

/* Copy takes 1000 ns and one more each iteration, on rank 1 twice that; the members of Sum start 300
   ns apart and end together, 700 ns later. Iterations that warm up take far longer. */
static void add_iteration(struct made *made, int i)
{
    int64_t at_ns = i * 1000000, slow = i < WARM_UP ? 100000 : 0;
    for (int rank = 0; rank < 2; rank++) {
        int thread = made->threads[rank], stream = made->streams[rank];
        add(made, thread, SPAN_HOST, "Load", i, at_ns, 500 + slow);
        add(made, thread, SPAN_HOST, "Copy", i, at_ns + 1000, 100 + slow);
        add(made, thread, SPAN_HOST, "Copy", i, at_ns + 1200, 20); /* the push */
        add(made, stream, SPAN_DEVICE, "Copy", i, at_ns + 2000, (rank + 1) * (1000 + i) + slow);
        add(made, stream, SPAN_WAIT, "Copy", i, at_ns + 1000, 50);
        add(made, thread, SPAN_HOST, "Sum", i, at_ns + 5000, 40);
        add(made, stream, SPAN_DEVICE, "Sum", i, at_ns + 6000 + 300 * rank, 1000 - 300 * rank);
        add(made, thread, SPAN_HOST, "Rest", i, at_ns + 8000, 60);
        const struct trace_iteration row = {rank, i, at_ns, at_ns + 9000};
        trace_add_iteration(&made->trace, &row);
    }
}

static void make(struct made *made, enum run_kind kind, const char *note, int iterations)
{
    arena_init(&made->arena, 0);
    trace_init(&made->trace, &made->arena);
    trace_set_info(&made->trace, &(struct run_info){.kind = kind,
                                                    .plan_name = "known",
                                                    .plan_text = plan_text,
                                                    .device = "somewhere",
                                                    .driver = RUN_DRIVER_CLOCK,
                                                    .ranks = 2,
                                                    .iterations_wanted = iterations,
                                                    .finished = RUN_FINISHED,
                                                    .note = note});
    for (int rank = 0; rank < 2; rank++) {
        made->threads[rank] = trace_add_agent(&made->trace, rank, TRACE_THREAD, "serial", 0);
        made->streams[rank] = trace_add_agent(&made->trace, rank, TRACE_STREAM, "serial", 0);
    }
    for (int i = 0; i < iterations; i++)
        add_iteration(made, i);
}

/* A store with one run; *store is open. */
static bool store_run(enum run_kind kind, const char *note, int iterations, struct store **store)
{
    static int number;
    char name[20];
    struct made made;
    struct diag diag;
    diag_init(&diag);
    snprintf(name, sizeof name, "%d.db", number++);
    make(&made, kind, note, iterations);
    bool good = store_open(path_temp(name), true, store, &diag) == STATUS_OK &&
                store_write_trace(*store, &made.trace, NULL, &diag) == STATUS_OK;
    diag_print(&diag, "t_compare", false, stderr);
    diag_fini(&diag);
    arena_fini(&made.arena);
    return good;
}

static void close_store(struct store *store)
{
    struct diag diag;
    diag_init(&diag);
    tap_ok(store_close(store, &diag) == STATUS_OK, "the store can be closed");
    diag_fini(&diag);
}

/* ---- the profile ----------------------------------------------------------------------------- */

static const struct profile_part *find(const struct profile *profile, enum profile_kind kind,
                                       const char *task, int rank)
{
    for (size_t i = 0; i < profile->part_count; i++) {
        const struct profile_part *part = &profile->parts[i];
        if (part->kind == kind && part->rank == rank &&
            strcmp(profile->plan.pipeline.tasks[part->task].name, task) == 0)
            return part;
    }
    return NULL;
}

static void check_constant(const struct profile *profile, enum profile_kind kind, const char *task,
                           int64_t want_ns)
{
    for (int rank = 0; rank < 2; rank++) {
        const struct profile_part *part = find(profile, kind, task, rank);
        bool good = part && part->count == ITERATIONS - WARM_UP && part->ns[0] == want_ns &&
                    part->ns[part->count - 1] == want_ns && part->mean_ns == (double)want_ns;
        tap_ok(good, "%s of %s on rank %d always takes %lld ns", profile_words(kind), task, rank,
               (long long)want_ns);
    }
}

static void check_parts(const struct profile *profile)
{
    tap_is_int(profile->warm_up, WARM_UP, "the first tenth and one more iteration warm up");
    tap_is_int(profile->iterations, ITERATIONS - WARM_UP, "the others count");
    check_constant(profile, PROFILE_HOST, "Load", 500);
    check_constant(profile, PROFILE_HOST, "Copy", 120);
    check_constant(profile, PROFILE_DEVICE, "Sum", 700);
    const struct profile_part *copy = find(profile, PROFILE_DEVICE, "Copy", 1);
    bool ascending = copy && copy->count == ITERATIONS - WARM_UP;
    for (size_t i = 0; ascending && i < copy->count; i++)
        ascending = copy->ns[i] == 2 * (1000 + WARM_UP + (int64_t)i);
    tap_ok(ascending, "the device part of Copy on rank 1 has the durations of its iterations");
    tap_is_int((long long)profile->missing_count, 2, "two parts were not measured");
    for (size_t i = 0; i < profile->missing_count; i++)
        tap_ok(profile->missing[i].kind == PROFILE_DEVICE && profile->missing[i].task == 3 &&
                   profile->missing[i].rank == (int)i,
               "the device part of Rest on rank %zu", i);
}

static void check_plan(const struct profile *profile)
{
    const struct plan *plan = &profile->plan;
    const struct task *copy = plan_task(plan, 1, 1), *sum = plan_task(plan, 0, 2);
    const struct task *load = plan_task(plan, 0, 0), *rest = plan_task(plan, 1, 3);
    double mean = 2 * (1000 + (WARM_UP + ITERATIONS - 1) / 2.0);
    tap_is_int(copy->time_ns, llround(mean), "the plan's Copy takes the mean on rank 1");
    tap_ok(copy->jitter.kind == DIST_EMPIRICAL &&
               copy->jitter.factor_count == ITERATIONS - WARM_UP &&
               fabs(copy->jitter.factors[0] * (double)copy->time_ns - 2 * (1000 + WARM_UP)) < 1e-6,
           "and varies as measured");
    tap_is_int(sum->time_ns, 700, "Sum takes what it was measured to take");
    tap_is_int(plan_task(plan, 1, 2)->time_ns, 0, "by way of its lowest member alone");
    tap_ok(load->host_time_ns == 500 && load->work.time_ns == 0, "host work is CPU time");
    tap_ok(rest->time_ns == 5000000 && rest->host_time_ns == 60 && rest->jitter.factor_count == 0,
           "a part that was not measured keeps the plan's time");
}

/* Without overlap an iteration is the sum of its parts; so simulate with one in flight. */
static void check_prediction(const struct profile *profile)
{
    const struct predict_options options = {
        .program = {.driver = DRIVER_DATAFLOW, .iterations = 400, .max_depth = 1},
        .seed = 1,
        .replications = 1,
        .threads = 1,
        .exposed = EXPOSED_NEVER};
    struct prediction prediction;
    struct diag diag;
    diag_init(&diag);
    enum status status = predict(&profile->plan, &options, &prediction, &diag);
    tap_ok(status == STATUS_OK, "a profile can be predicted with");
    if (status == STATUS_OK) {
        double mean = prediction.iteration.mean;
        tap_ok(mean > 5000000 && mean < 5000000 + 6000, "in the measured times: %g", mean);
        prediction_fini(&prediction);
    }
    diag_fini(&diag);
}

static void test_profile(void)
{
    struct store *store;
    struct plan plan;
    struct profile profile;
    struct diag diag;
    diag_init(&diag);
    bool made = plan_of_text(plan_text, &plan) &&
                store_run(RUN_MEASURED, RUN_NOTE_SERIAL, ITERATIONS, &store);
    tap_ok(made, "a run with known durations");
    if (!made)
        return;
    enum status status = profile_read(store, STORE_LATEST, &plan, 4, &profile, &diag);
    tap_ok(status == STATUS_OK, "its profile");
    diag_print(&diag, "t_compare", false, stderr);
    if (status == STATUS_OK) {
        tap_is_str(profile.device, "somewhere", "and where it comes from");
        tap_is_int(plan_task(&profile.plan, 3, 1)->time_ns, plan_task(&profile.plan, 1, 1)->time_ns,
                   "ranks the run did not have take after those it had");
        profile_fini(&profile);
    }
    status = profile_read(store, STORE_LATEST, &plan, 2, &profile, &diag);
    if (status == STATUS_OK) {
        check_parts(&profile);
        check_plan(&profile);
        check_prediction(&profile);
        profile_fini(&profile);
    }
    close_store(store);
    plan_fini(&plan);
    diag_fini(&diag);
}

/* ---- cores ----------------------------------------------------------------------------------- */

/* A serial run with these figures, profiled for the known plan with `machine` in front. */
static enum status profile_with(const char *machine, double cores, const char *key, double share,
                                struct plan *plan, struct profile *profile, struct diag *diag)
{
    static int number;
    char name[20], text[1000];
    struct made made;
    struct store *store = NULL;
    snprintf(name, sizeof name, "cores%d.db", number++);
    snprintf(text, sizeof text, "swplan: 1\n%s%s", machine, strchr(plan_text, '\n') + 1);
    make(&made, RUN_MEASURED, RUN_NOTE_SERIAL, ITERATIONS);
    if (cores != 0)
        trace_add_stat(&made.trace, RUN_STAT_CORES, cores);
    if (key)
        trace_add_stat(&made.trace, key, share);
    bool good = plan_of_text(text, plan) &&
                store_open(path_temp(name), true, &store, diag) == STATUS_OK &&
                store_write_trace(store, &made.trace, NULL, diag) == STATUS_OK;
    enum status status =
        good ? profile_read(store, STORE_LATEST, plan, 3, profile, diag) : STATUS_SYSTEM;
    if (store)
        store_close(store, diag);
    arena_fini(&made.arena);
    return status;
}

static const struct share *core_share(const struct profile *profile, int rank, int task)
{
    return &plan_task(&profile->plan, rank, task)->shares.core;
}

static void test_cores(void)
{
    struct plan plan;
    struct profile profile;
    struct diag diag;
    diag_init(&diag);
    if (profile_with("", 6, "Copy.core_share", 0.75, &plan, &profile, &diag) == STATUS_OK) {
        tap_is_int(profile.cores, 6, "the run says how many cores it had");
        tap_is_int(profile.plan.machine.cores, 6, "so many has the plan");
        tap_is_int(plan.machine.cores, 0, "of the profile, not the given one");
        for (int rank = 0; rank < 3; rank++)
            tap_ok(core_share(&profile, rank, 1)->given &&
                       core_share(&profile, rank, 1)->millionths == 750000 &&
                       core_share(&profile, rank, 2)->given &&
                       core_share(&profile, rank, 2)->millionths == 0,
                   "on rank %d Copy wants what it wanted, and Sum, which slept, nothing", rank);
        profile_note(&profile, "x.db", &diag);
        tap_ok(diag.count > 1 &&
                   strcmp(diag.messages[1].text,
                          "6 cores of the run's machine carry the work of all ranks") == 0,
               "a note says so");
        profile_fini(&profile);
        plan_fini(&plan);
    } else {
        tap_ok(0, "a run with cores");
    }
    if (profile_with("machine: {cores: 3}\n", 6, "Copy.core_share", 1, &plan, &profile, &diag) ==
        STATUS_OK) {
        tap_ok(profile.cores == 0 && profile.plan.machine.cores == 3 &&
                   !core_share(&profile, 0, 2)->given,
               "a plan that names its cores keeps them, and its work wants what it says");
        profile_fini(&profile);
        plan_fini(&plan);
    } else {
        tap_ok(0, "a plan with cores");
    }
    if (profile_with("", 6, NULL, 0, &plan, &profile, &diag) == STATUS_OK) {
        tap_ok(profile.cores == 0 && profile.plan.machine.cores == 0,
               "where all tasks slept the cores do not matter");
        profile_fini(&profile);
        plan_fini(&plan);
    } else {
        tap_ok(0, "a run that slept");
    }
    if (profile_with("", 0, "Copy.core_share", 1, &plan, &profile, &diag) == STATUS_OK) {
        tap_ok(profile.cores == 0 && profile.plan.machine.cores == 0,
               "nor does it where their number is not known");
        profile_fini(&profile);
        plan_fini(&plan);
    } else {
        tap_ok(0, "a run with an unknown number");
    }
    diag_fini(&diag);
}

static void test_wrong_cores(void)
{
    static const struct {
        double cores, share;
        const char *part;
    } wrong[] = {{0.5, 1, "found 0.5 cores, expected 1 to 65536"},
                 {-2, 1, "found -2 cores"},
                 {1e6, 1, "found 1e+06 cores"},
                 {INFINITY, 1, "found inf cores"},
                 {2, 1.5, "found Copy.core_share 1.5, expected a share from 0 to 1"},
                 {2, -1, "found Copy.core_share -1"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct plan plan;
        struct profile profile;
        struct diag diag;
        diag_init(&diag);
        enum status status = profile_with("", wrong[i].cores, "Copy.core_share", wrong[i].share,
                                          &plan, &profile, &diag);
        tap_ok(status == STATUS_INPUT && diag.errors == 1 &&
                   strstr(diag.messages[0].text, wrong[i].part),
               "refused: %s", wrong[i].part);
        if (status == STATUS_OK)
            profile_fini(&profile);
        plan_fini(&plan);
        diag_fini(&diag);
    }
}

/* ---- CPU parts from steps -------------------------------------------------------------------- */

static void add_step(struct trace *trace, const char *op, int rank, int iteration, int64_t time_ns)
{
    const struct trace_step step = {.seq = (int64_t)trace->step_count,
                                    .rank = rank,
                                    .agent = rank ? "rank 1 thread serial" : "rank 0 thread serial",
                                    .op = op,
                                    .task = "Copy",
                                    .iteration = iteration,
                                    .time_ns = time_ns};
    trace_add_step(trace, &step);
}

/* In hand for 400 ns, of which its thread waits 150; whatever its host spans say. */
static void make_stepped(struct made *made)
{
    make(made, RUN_MEASURED, RUN_NOTE_SERIAL, 2);
    for (int i = 0; i < 2; i++)
        for (int rank = 0; rank < 2; rank++) {
            int64_t at_ns = i * 1000000 + 20000;
            add(made, made->threads[rank], SPAN_WAIT, NULL, i, at_ns - 700, 90);
            add(made, made->threads[rank], SPAN_WAIT, NULL, i, at_ns + 100, 150);
            add_step(&made->trace, "take", rank, i, at_ns);
            add_step(&made->trace, "complete", rank, i, at_ns + 400);
        }
}

static void test_steps(void)
{
    struct made made;
    struct store *store = NULL;
    struct plan plan;
    struct profile profile;
    struct diag diag;
    diag_init(&diag);
    make_stepped(&made);
    bool good = plan_of_text(plan_text, &plan) &&
                store_open(path_temp("steps.db"), true, &store, &diag) == STATUS_OK &&
                store_write_trace(store, &made.trace, NULL, &diag) == STATUS_OK &&
                profile_read(store, 1, &plan, 0, &profile, &diag) == STATUS_OK;
    tap_ok(good, "the profile of a run with steps");
    diag_print(&diag, "t_compare", false, stderr);
    for (int rank = 0; good && rank < 2; rank++) {
        const struct profile_part *copy = find(&profile, PROFILE_HOST, "Copy", rank);
        tap_ok(copy && copy->count == 1 && copy->ns[0] == 250,
               "on rank %d its CPU part is from taking to completing it, waiting aside", rank);
        tap_ok(find(&profile, PROFILE_DEVICE, "Copy", rank) &&
                   !find(&profile, PROFILE_HOST, "Sum", rank),
               "its device part is that of the span; without steps there is no CPU part");
    }
    if (good) {
        profile_fini(&profile);
        plan_fini(&plan);
    }
    close_store(store);
    arena_fini(&made.arena);
    diag_fini(&diag);
}

/* ---- what is no profile ---------------------------------------------------------------------- */

static void refused(const char *what, struct store *store, int64_t run, const char *text,
                    enum status want, const char *part)
{
    struct plan plan;
    struct profile profile;
    struct diag diag;
    diag_init(&diag);
    if (!plan_of_text(text, &plan)) {
        tap_ok(0, "%s: a plan", what);
        return;
    }
    enum status status = profile_read(store, run, &plan, 0, &profile, &diag);
    bool said = diag.errors == 1 && strstr(diag.messages[0].text, part);
    tap_ok(status == want && said, "%s is refused", what);
    if (!said)
        tap_note("status %d: %s", (int)status, diag.count ? diag.messages[0].text : "");
    if (status == STATUS_OK)
        profile_fini(&profile);
    plan_fini(&plan);
    diag_fini(&diag);
}

static void test_refused(void)
{
    static const char other[] = "{swplan: 1, name: other, schedule: {A: {stage: 0, time: 1ms}}}";
    static const char renamed[] = "{swplan: 1, name: known, schedule: {A: {stage: 0, time: 1ms}}}";
    static const char threads[] = "{swplan: 1, name: known, threads: {r0.m: [{host: 1ms}]}}";
    static const char programs[] = "{swplan: 1, name: known, generate: {schedule: gpipe, ranks: 2, "
                                   "microbatches: 2}}";
    struct store *store;
    if (!store_run(RUN_MEASURED, NULL, ITERATIONS, &store)) {
        tap_ok(0, "a pipelined run");
        return;
    }
    refused("a pipelined run", store, 1, plan_text, STATUS_INPUT, "not serial");
    refused("a store of pipelined runs", store, STORE_LATEST, plan_text, STATUS_INPUT, "overlap");
    refused("a run that is not there", store, 7, plan_text, STATUS_INPUT, "no run 7");
    refused("host programs and a serial run", store, 1, threads, STATUS_INPUT, "not imported");
    refused("rank programs", store, 1, programs, STATUS_INPUT, "no passes and messages");
    close_store(store);
    if (!store_run(RUN_SIMULATED, NULL, ITERATIONS, &store))
        return;
    refused("a simulated run", store, 1, plan_text, STATUS_INPUT, "not measured");
    close_store(store);
    if (!store_run(RUN_MEASURED, RUN_NOTE_SERIAL, 1, &store))
        return;
    refused("a run of one iteration", store, 1, plan_text, STATUS_INPUT, "too short");
    refused("a store without the plan", store, STORE_LATEST, other, STATUS_INPUT, "no finished");
    refused("a run without the plan's tasks", store, 1, renamed, STATUS_INPUT, "none of the tasks");
    close_store(store);
}

/* ---- accounts from steps --------------------------------------------------------------------- */

struct writer {
    struct trace *trace;
    const struct program *program;
};

static enum status begin(void *context, const struct program *program, struct diag *diag)
{
    struct writer *writer = context;
    (void)diag;
    writer->program = program;
    return STATUS_OK;
}

/* As a real run logs it: the end of a collective is that of a stream. */
static bool write_step(void *context, int64_t time_ns, struct transition transition,
                       const struct effect *effect)
{
    struct writer *writer = context;
    const struct program *p = writer->program;
    int agent = transition.agent;
    char name[NAME];
    if (p->agents[agent].kind == AGENT_COMM)
        agent = program_stream_agent(p, p->ops[effect->op].stream);
    const struct trace_step step = {.seq = (int64_t)writer->trace->step_count,
                                    .agent = program_agent_name(p, agent, name, sizeof name),
                                    .op = "step",
                                    .iteration = -1,
                                    .time_ns = time_ns};
    return trace_add_step(writer->trace, &step) >= 0;
}

static bool same_accounts(const struct prediction *prediction, const struct observed *observed)
{
    for (int s = 0; s < prediction->program->stream_count; s++) {
        const struct stream_account *want = &prediction->streams[s];
        const struct observed_stream *got = &observed->streams[s];
        bool same = want->busy_ns == got->busy_ns;
        for (int i = 0; i < STALL_COUNT; i++)
            same = same && want->stall_ns[i] == got->stall_ns[i];
        if (!same) {
            tap_note("stream %s: busy %lld, found %lld", prediction->program->streams[s].name,
                     (long long)want->busy_ns, (long long)got->busy_ns);
            return false;
        }
    }
    return true;
}

struct watched {
    int64_t ns;
};

static bool watch(void *context, int stream, int64_t start_ns, int64_t end_ns,
                  const struct stall *stall)
{
    struct watched *watched = context;
    (void)stream;
    (void)stall;
    watched->ns += end_ns - start_ns;
    return start_ns < end_ns;
}

static void check_observed(const struct prediction *prediction, struct trace *trace,
                           const char *what)
{
    struct observed observed;
    struct watched watched = {0};
    struct diag diag;
    diag_init(&diag);
    enum status status = observe(prediction->program, trace, watch, &watched, &observed, &diag);
    tap_ok(status == STATUS_OK, "%s: the machine takes the steps again", what);
    if (status == STATUS_OK) {
        int64_t idle_ns = 0;
        for (int s = 0; s < prediction->program->stream_count; s++)
            idle_ns += prediction->total_ns - prediction->streams[s].busy_ns;
        tap_is_int(observed.end_ns - observed.start_ns, prediction->total_ns, "%s: in as long",
                   what);
        tap_ok(same_accounts(prediction, &observed), "%s: with the same accounts", what);
        tap_is_int(watched.ns, idle_ns, "%s: and who watches is told all of it", what);
        observed_fini(&observed);
    }
    diag_print(&diag, "t_compare", false, stderr);
    diag_fini(&diag);
}

static void test_observe(const char *file, enum driver driver)
{
    const struct jitter_rule jitter = {"*", {.kind = DIST_LOGNORMAL, .parameter = 0.5}};
    struct trace trace;
    struct arena arena;
    struct writer writer = {.trace = &trace};
    const struct simulate_observer observer = {.context = &writer, .step = write_step};
    const struct predict_options options = {.program = {.driver = driver, .iterations = 40},
                                            .seed = 3,
                                            .replications = 1,
                                            .threads = 1,
                                            .jitter = &jitter,
                                            .jitter_count = 1,
                                            .exposed = EXPOSED_NEVER,
                                            .observer = &observer,
                                            .begin = begin};
    struct prediction prediction;
    struct plan plan;
    struct diag diag;
    char name[256], what[256];
    diag_init(&diag);
    arena_init(&arena, 0);
    trace_init(&trace, &arena);
    snprintf(name, sizeof name, "plans/%s", file);
    snprintf(what, sizeof what, "%s, %s", file, driver_key(driver));
    if (plan_of_file(path_source(name), &plan)) {
        bool good = predict(&plan, &options, &prediction, &diag) == STATUS_OK;
        tap_ok(good, "%s: simulated", what);
        if (good) {
            check_observed(&prediction, &trace, what);
            prediction_fini(&prediction);
        }
        plan_fini(&plan);
    }
    diag_print(&diag, "t_compare", false, stderr);
    diag_fini(&diag);
    arena_fini(&arena);
}

/* ---- waits taken out of a trace ---------------------------------------------------------------- */

static void test_drop_waits(void)
{
    struct trace trace;
    struct arena arena;
    arena_init(&arena, 0);
    trace_init(&trace, &arena);
    int stream = trace_add_agent(&trace, 0, TRACE_STREAM, "s", 0);
    int thread = trace_add_agent(&trace, 0, TRACE_THREAD, "t", 0);
    const struct trace_span wait = {.agent = stream, .kind = SPAN_WAIT, .end_ns = 1};
    const struct trace_span work = {.agent = stream, .kind = SPAN_DEVICE, .end_ns = 2};
    const struct trace_span block = {.agent = thread, .kind = SPAN_WAIT, .end_ns = 3};
    trace_add_span(&trace, &wait);
    trace_add_span(&trace, &work);
    trace_add_span(&trace, &wait);
    trace_add_span(&trace, &block);
    trace_add_edge(&trace, 0, 1, EDGE_DEPENDENCE);
    trace_add_edge(&trace, 3, 1, EDGE_LAUNCH);
    tap_ok(trace_drop_waits(&trace, TRACE_STREAM), "waits of streams can be taken out");
    tap_ok(trace.span_count == 2 && trace.spans[0].end_ns == 2 && trace.spans[1].end_ns == 3,
           "work and the waits of threads stay");
    tap_ok(trace.edge_count == 1 && trace.edges[0].from == 1 && trace.edges[0].to == 0,
           "and so do the edges between them");
    arena_fini(&arena);
}

/* ---- main ------------------------------------------------------------------------------------ */

int main(void)
{
    static const char *const files[] = {"reference/base.yaml", "reference/sparse_dist.yaml",
                                        "reference/fused_sparse_dist.yaml",
                                        "reference/semi_sync.yaml", "reference/staged.yaml"};
    test_profile();
    test_cores();
    test_wrong_cores();
    test_steps();
    test_refused();
    test_drop_waits();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        test_observe(files[i], DRIVER_CLOCK);
        test_observe(files[i], DRIVER_DATAFLOW);
    }
    return tap_done();
}
