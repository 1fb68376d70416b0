/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_serial.c - values and the serial order as the machine judges them, against an oracle that writes down runs.
 *
 * Random pipelines are run by random steps. The oracle notes every access in its order and then asks, of
 * each, whether the writes made before it are those that a serial run has made by then: every W(j) of an
 * earlier iteration, and of its own iteration those of tasks before it. It knows neither the machine's
 * counters nor happens-before. SWSIM_SEED=<seed> SWSIM_PLANS=1 repeats a plan.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "machine/machine.h"
#include "base/hash.h"
#include "plan/text/parse.h"
#include "tests/harness.h"
#include "tests/random_plan.h"
#include "tests/tap.h"

enum { QUICK = 400, LONG = 20000, ITERATIONS = 4, STEPS = 4000, MOST = 1024, MAX_COMPLAINTS = 5 };

struct made {
    int buffer, task; /* program->buffers */
    int64_t iteration;
    bool write;
};

struct bench {
    uint64_t seed, random;
    const struct program *program;
    struct made made[MOST];
    int count, complaints, compared, differing, unwritten;
};

static bool one_instance(const struct bench *bench, const struct made *a, const struct made *b)
{
    const int period = bench->program->buffers[a->buffer].period;
    return a->buffer == b->buffer && (a->iteration == b->iteration ||
                                      (period > 0 && (a->iteration - b->iteration) % period == 0));
}

static bool comes_first(const struct bench *bench, const struct made *a, const struct made *b)
{
    const int *place = bench->program->serial_place;
    return a->iteration != b->iteration ? a->iteration < b->iteration
                                        : place[a->task] < place[b->task];
}

/* The properties that access `at` violates, by the notes of all accesses before it, and those behind it. */
static unsigned judge(const struct bench *bench, int at)
{
    const struct made *x = &bench->made[at];
    bool written = x->write || bench->program->buffers[x->buffer].initialised, serial = true;
    for (int i = 0; i < bench->count; i++) {
        const struct made *w = &bench->made[i];
        if (!w->write || !one_instance(bench, w, x))
            continue;
        written |= i < at;
        if (w->task != x->task && (i < at) != comes_first(bench, w, x))
            serial = false;
    }
    return (written ? 0 : 1u << PROPERTY_VALUE) | (serial ? 0 : 1u << PROPERTY_SERIAL);
}

static void note(struct bench *bench, const struct effect *effect)
{
    const struct program *p = bench->program;
    const struct op *op = effect->op < 0 ? NULL : &p->ops[effect->op];
    bool access =
        op && (effect->kind == EFFECT_START ||
               (effect->kind == EFFECT_HOST && !effect->takes && op_is_cpu_work(op->kind)));
    for (int write = 0; access && write < 2; write++)
        for (int k = 0; k < op->access_count && bench->count < MOST; k++) {
            const struct access *a = &p->accesses[op->access_first + k];
            if (a->write == (bool)write)
                bench->made[bench->count++] =
                    (struct made){a->buffer, op->task, effect->iteration, a->write};
        }
}

/* A run to its end. Returns what it violates by the machine; *whole: it came to its end. */
static unsigned run(struct bench *bench, struct state *state, struct transition *choices,
                    bool *whole)
{
    unsigned violated = 0;
    int count = 0;
    bench->count = 0;
    machine_reset(bench->program, state);
    for (int step = 0; step < STEPS; step++) {
        struct effect effect;
        count = machine_enabled(bench->program, state, choices);
        if (count == 0)
            break;
        bench->random = hash_mix(bench->random + 1);
        struct transition chosen = choices[bench->random % (uint64_t)count];
        int64_t unused;
        bool works = machine_current_op(bench->program, state, chosen.agent, &unused) >= 0;
        machine_step(bench->program, state, chosen, &effect);
        if (works) /* else a worker takes an instance */
            note(bench, &effect);
        violated |= effect.violated;
        if (violated & 1u << PROPERTY_MISMATCH)
            break;
    }
    *whole = count == 0 && machine_done(bench->program, state) && bench->count < MOST;
    return violated;
}

static void compare(struct bench *bench, unsigned violated, const char *text)
{
    const unsigned values = 1u << PROPERTY_VALUE | 1u << PROPERTY_SERIAL;
    unsigned oracle = 0;
    for (int i = 0; i < bench->count; i++)
        oracle |= judge(bench, i);
    bench->compared++;
    bench->differing += (oracle & 1u << PROPERTY_SERIAL) != 0;
    bench->unwritten += (oracle & 1u << PROPERTY_VALUE) != 0;
    if (oracle == (violated & values) || bench->complaints++ >= MAX_COMPLAINTS)
        return;
    tap_note("SWSIM_SEED=%" PRIu64 ": the oracle says %#x, the machine %#x", bench->seed, oracle,
             violated & values);
    tap_note("%s", text);
}

static void check_program(struct bench *bench, const struct plan *plan, enum driver driver,
                          const char *text)
{
    struct program_options options = {.driver = driver, .iterations = ITERATIONS, .serial = true};
    struct program *program;
    struct diag diag;
    diag_init(&diag);
    if (program_build(plan, &options, &program, &diag) == STATUS_OK) {
        bench->program = program;
        struct state *state = machine_state(program);
        struct transition *choices = calloc((size_t)program->agent_count + 2, sizeof *choices);
        for (int n = 0; state && choices && n < 4; n++) {
            bool whole;
            unsigned violated = run(bench, state, choices, &whole);
            if (whole && !(violated & 1u << PROPERTY_MISMATCH))
                compare(bench, violated, text);
        }
        free(choices);
        machine_free(state);
        program_close(program);
    }
    diag_fini(&diag);
}

/* Stale reads are for the search to judge. */
static bool allows_staleness(const struct plan *plan)
{
    bool any = plan->pipeline.forget_done != FORGET_NEVER; /* a task twice in an iteration */
    for (size_t b = 0; b < plan->buffer_count; b++)
        any |= plan->buffers[b].staleness > 0;
    return any;
}

static void check_plan(struct bench *bench)
{
    char *text = random_pipeline(bench->seed);
    struct plan plan;
    struct diag diag;
    diag_init(&diag);
    bench->random = bench->seed;
    if (text && plan_parse("random.yaml", text, strlen(text), &plan, &diag) == STATUS_OK) {
        if (!allows_staleness(&plan)) {
            check_program(bench, &plan, DRIVER_CLOCK, text);
            check_program(bench, &plan, DRIVER_DATAFLOW, text);
        }
        plan_fini(&plan);
    }
    diag_fini(&diag);
    free(text);
}

int main(void)
{
    static struct bench bench;
    uint64_t seed = env_seed(), plans = (uint64_t)env_plans(QUICK, LONG);
    for (uint64_t i = 0; i < plans; i++) {
        bench.seed = seed + i;
        check_plan(&bench);
    }
    tap_ok(bench.complaints == 0 && bench.compared > 0,
           "%d runs judged as the oracle does; %d in another order, %d read what nothing wrote",
           bench.compared, bench.differing, bench.unwritten);
    return tap_done();
}
