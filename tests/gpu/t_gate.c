/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_gate.c - any run of the machine can be made to happen: random walks of random plans are forced upon
 * the host device, which must take every step, in that order, legally; and each turn wakes whose turn it is.
 *
 * Plan `i` comes from SWSIM_SEED + i; a failure printed with its seed is repeated by
 * `SWSIM_SEED=<seed> SWSIM_PLANS=1`. SWSIM_LONG=1 asks for more.
 */
#include "gpu/device/gate.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "machine/machine.h"
#include "plan/text/parse.h"
#include "gpu/exec/runtime.h"
#include "tests/harness.h"
#include "tests/random_plan.h"
#include "tests/tap.h"
#include "trace/store.h"

enum { QUICK_PLANS = 25, LONG_PLANS = 600, MAX_STEPS = 150, ITERATIONS = 4, MAX_COMPLAINTS = 5 };
static const int64_t QUICK_NS = 150000000, PATIENT_NS = 5000000000;

/* ---- a walk ---------------------------------------------------------------------------------- */

struct walk {
    struct transition steps[MAX_STEPS];
    char agents[MAX_STEPS][80]; /* "": a communicator's step, which a stream logs */
    size_t count;
};

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* Up to MAX_STEPS steps, wherever they lead; not beyond a mismatch, where the device stops, too. */
static bool walk_randomly(const struct program *p, uint64_t seed, struct walk *out)
{
    struct state *state = machine_state(p);
    struct transition *choices = calloc(machine_most_transitions(p), sizeof *choices);
    struct effect effect = {0};
    bool made = state && choices;
    int count;
    out->count = 0;
    seed = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    while (made && out->count < MAX_STEPS && !(effect.violated & 1u << PROPERTY_MISMATCH) &&
           (count = machine_enabled(p, state, choices)) > 0) {
        struct transition step = choices[next_random(&seed) % (uint64_t)count];
        if (step.agent != 0)
            step.choice = 0; /* a run waits where it may */
        char *name = out->agents[out->count];
        if (p->agents[step.agent].kind == AGENT_COMM)
            *name = '\0';
        else
            program_agent_name(p, step.agent, name, sizeof out->agents[0]);
        out->steps[out->count++] = step;
        machine_step(p, state, step, &effect);
    }
    free(choices);
    machine_free(state);
    return made;
}

/* Parts that the host device does not imitate are left out of the plan. */
static void tame(struct plan *plan)
{
    plan->machine.hw_queues = 0;
    plan->machine.launch_order_implicit = false;
    plan->programs.eager_messages = 0;
    plan->programs.eager_bytes = 0;
    for (size_t c = 0; c < plan->comm_count; c++)
        plan->comms[c].eager_messages = 0, plan->comms[c].eager_bytes = 0;
}

/* ---- one run --------------------------------------------------------------------------------- */

/* Does the trace in the store begin with the walk? */
static bool is_in_order(const char *path, const struct walk *walk, struct diag *diag)
{
    struct arena arena;
    struct trace trace;
    struct store *store = NULL;
    arena_init(&arena, 0);
    bool same =
        store_open(path, false, &store, diag) == STATUS_OK &&
        store_load(store, STORE_LATEST, STORE_ALL, STORE_ALL, &arena, &trace, diag) == STATUS_OK &&
        store_load_steps(store, &trace, diag) == STATUS_OK && trace.step_count >= walk->count;
    for (size_t i = 0; same && i < walk->count; i++) {
        same = !*walk->agents[i] || strcmp(trace.steps[i].agent, walk->agents[i]) == 0;
        if (!same)
            tap_note("step %zu: %s did '%s', it was %s's turn", i, trace.steps[i].agent,
                     trace.steps[i].op, walk->agents[i]);
    }
    store_close(store, diag);
    arena_fini(&arena);
    return same;
}

static bool force(const struct plan *plan, enum driver driver, const struct walk *walk,
                  int64_t timeout_ns)
{
    const char *path = path_temp("forced.db");
    const struct runtime_witness witness = {walk->steps, walk->count};
    const struct runtime_options options = {.driver = driver,
                                            .iterations = ITERATIONS,
                                            .replay = true,
                                            .compare = true,
                                            .db = path,
                                            .timeout_ns = timeout_ns,
                                            .witness = &witness};
    struct runtime_result result;
    struct diag diag;
    diag_init(&diag);
    enum status status = runtime_run(plan, &options, &result, &diag);
    bool ran = status == STATUS_OK || status == STATUS_VIOLATED, good = ran;
    if (ran) {
        bool broke = diag_says(&diag, "mismatch"); /* then the end of the trace is torn */
        good = result.forced == result.to_force && result.to_force == walk->count &&
               !result.forced_agent && (broke || result.legal == ANSWER_YES) &&
               (broke || is_in_order(path, walk, &diag));
        if (!good)
            tap_note("%zu of %zu steps, then %s", result.forced, result.to_force,
                     result.forced_agent ? result.forced_agent : "nobody");
        runtime_result_fini(&result);
    }
    if (!good)
        diag_tell(&diag);
    diag_fini(&diag);
    unlink(path);
    return good;
}

/* ---- random plans ---------------------------------------------------------------------------- */

struct tally {
    int runs, complaints;
    size_t steps;
};

static bool try_plan(struct tally *tally, const struct plan *plan, enum driver driver,
                     uint64_t seed)
{
    const struct program_options options = {.driver = driver, .iterations = ITERATIONS};
    struct program *program = NULL;
    struct walk walk;
    struct diag diag;
    diag_init(&diag);
    bool good = program_build(plan, &options, &program, &diag) == STATUS_OK &&
                walk_randomly(program, seed, &walk);
    program_close(program);
    diag_fini(&diag);
    if (!good)
        return false;
    tally->runs++;
    tally->steps += walk.count;
    /* On a busy machine the watchdog may come too early. */
    return force(plan, driver, &walk, QUICK_NS) || force(plan, driver, &walk, PATIENT_NS);
}

static void try_random(struct tally *tally, uint64_t seed, enum random_form form,
                       enum driver driver)
{
    struct plan plan;
    char *text = random_plan(seed, form);
    if (!text || !plan_of_text(text, &plan))
        abort();
    tame(&plan);
    if (!try_plan(tally, &plan, driver, seed) && tally->complaints++ < MAX_COMPLAINTS)
        tap_note("SWSIM_SEED=%" PRIu64 " %s %s:\n%s", seed, random_form_key(form),
                 driver_key(driver), text);
    plan_fini(&plan);
    free(text);
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
    tap_is_int(tally.complaints, 0, "%d runs took the %zu steps they were told to, in that order",
               tally.runs, tally.steps);
    tap_ok(tally.runs == 4 * plans && tally.steps > (size_t)plans, "and there were some");
}

/* ---- what cannot be forced ------------------------------------------------------------------- */

static const char TWO[] = "swplan: 1\nname: two\nthreads:\n"
                          "  r0.a: [{signal: f}]\n  r0.b: [{await: f}, {launch: k}]\n";

static enum status run_two(const char *text, const struct transition *steps, size_t count,
                           struct diag *diag)
{
    const struct runtime_witness witness = {steps, count};
    const struct runtime_options options = {
        .replay = true, .timeout_ns = PATIENT_NS, .witness = &witness};
    struct plan plan;
    struct runtime_result result;
    enum status status = plan_parse("two.yaml", text, strlen(text), &plan, diag);
    if (status)
        return status;
    status = runtime_run(&plan, &options, &result, diag);
    if (status == STATUS_OK || status == STATUS_VIOLATED)
        runtime_result_fini(&result);
    plan_fini(&plan);
    return status;
}

static void test_refusals(void)
{
    const struct transition right[] = {{1, 0}, {2, 0}, {2, 0}, {3, 0}, {3, 0}};
    const struct transition wrong[] = {{2, 0}}, nobody[] = {{99, 0}};
    struct diag diag;
    diag_init(&diag);
    tap_is_int(run_two(TWO, right, 5, &diag), STATUS_OK, "a run of the plan happens");
    tap_is_int(run_two(TWO, right, 0, &diag), STATUS_OK, "so does one that says nothing");
    tap_is_int(run_two(TWO, wrong, 1, &diag), STATUS_INPUT, "what is no run of the plan does not");
    tap_ok(diag_says(&diag, "step 1 is not possible"), "and the step is named");
    tap_is_int(run_two(TWO, nobody, 1, &diag), STATUS_INPUT, "nor do steps of nobody");
    char queues[512];
    snprintf(queues, sizeof queues, "%smachine: {hw_queues: 1}\n", TWO);
    tap_is_int(run_two(queues, right, 5, &diag), STATUS_USAGE, "a knob that is not imitated");
    tap_ok(diag_says(&diag, "machine.hw_queues"), "is named");
    diag_fini(&diag);
}

/* ---- the order that is stored ---------------------------------------------------------------- */

/* While `slow` runs, longer than the replay stays behind, the thread goes on. */
static const char LONG_WORK[] = "swplan: 1\nname: long\nthreads:\n  r0.main:\n"
                                "    - {launch: slow, stream: s, time: 1200ms}\n"
                                "    - {host: 20ms}\n    - {host: 600ms}\n    - {host: 1ms}\n";

static int64_t place_of(const struct trace *trace, const char *agent, const char *op)
{
    for (size_t i = 0; i < trace->step_count; i++)
        if (strcmp(trace->steps[i].agent, agent) == 0 &&
            strncmp(trace->steps[i].op, op, strlen(op)) == 0)
            return (int64_t)i;
    return -1;
}

static bool is_in_order_of_time(const struct trace *trace)
{
    for (size_t i = 1; i < trace->step_count; i++)
        if (trace->steps[i].time_ns < trace->steps[i - 1].time_ns)
            return false;
    return trace->step_count > 0;
}

static void test_long_work(void)
{
    const char *path = path_temp("long.db");
    const struct runtime_options options = {.replay = true, .db = path, .timeout_ns = PATIENT_NS};
    struct plan plan;
    struct runtime_result result;
    struct trace trace = {0};
    struct store *store = NULL;
    struct arena arena;
    struct diag diag;
    diag_init(&diag);
    arena_init(&arena, 0);
    bool stored =
        plan_of_text(LONG_WORK, &plan) &&
        runtime_run(&plan, &options, &result, &diag) == STATUS_OK &&
        store_open(path, false, &store, &diag) == STATUS_OK &&
        store_load(store, STORE_LATEST, STORE_ALL, STORE_ALL, &arena, &trace, &diag) == STATUS_OK &&
        store_load_steps(store, &trace, &diag) == STATUS_OK;
    tap_ok(stored, "a run with a long operation is stored");
    tap_ok(place_of(&trace, "stream s", "start") >= 0 &&
               place_of(&trace, "stream s", "finish") >= 0,
           "with its start and its end");
    tap_ok(is_in_order_of_time(&trace), "each where its time is among the steps of the thread");
    store_close(store, &diag);
    runtime_result_fini(&result);
    plan_fini(&plan);
    arena_fini(&arena);
    diag_fini(&diag);
    unlink(path);
}

/* ---- wakes ----------------------------------------------------------------------------------- */

enum { MANY = 200, SLEEPS_A_TURN = 8 };

struct party {
    struct gate *gate;
    int agent;
};

static void *take_turn(void *arg)
{
    struct party *party = arg;
    gate_enter(party->gate, party->agent);
    gate_leave(party->gate, party->agent);
    return NULL;
}

/* N threads that each wait for a turn of their own sleep some N times together, not N * N. */
static void test_wakes(void)
{
    char text[MANY * 32] = "swplan: 1\nname: many\nthreads:\n";
    for (int i = 0; i < MANY; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "  r0.t%d: [{signal: f%d}]\n", i,
                 i);
    struct plan plan;
    struct program *program = NULL;
    struct gate *gate = NULL;
    struct transition steps[MANY];
    struct party parties[MANY];
    pthread_t threads[MANY];
    struct diag diag;
    diag_init(&diag);
    if (!plan_of_text(text, &plan) ||
        program_build(&plan, &(struct program_options){.iterations = 1}, &program, &diag))
        abort();
    for (int i = 0; i < MANY; i++)
        steps[i] = (struct transition){program_thread_agent(program, i), 0};
    if (gate_open(program, steps, MANY, &gate, &diag))
        abort();
    for (int i = 1; i < MANY; i++) {
        parties[i] = (struct party){gate, steps[i].agent};
        if (pthread_create(&threads[i], NULL, take_turn, &parties[i]))
            abort();
    }
    usleep(50000); /* they sleep: else there is less to count */
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    gate_leave(gate, steps[0].agent);
    for (int i = 1; i < MANY; i++)
        pthread_join(threads[i], NULL);
    getrusage(RUSAGE_SELF, &after);
    const long sleeps = after.ru_nvcsw - before.ru_nvcsw;
    tap_note("%d turns of %d threads: slept %ld times", MANY, MANY, sleeps);
    tap_ok(gate_taken(gate) == MANY && sleeps < (long)SLEEPS_A_TURN * MANY,
           "a turn wakes the thread whose turn is next, and no other");
    gate_close(gate);
    program_close(program);
    plan_fini(&plan);
    diag_fini(&diag);
}

int main(void)
{
    if (!env_number("SWSIM_SEED", 0)) /* else one random plan is repeated */
        test_refusals(), test_long_work(), test_wakes();
    test_random();
    return tap_done();
}
