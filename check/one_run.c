/* SPDX-License-Identifier: Apache-2.0 */
/* one_run.c - see one_run.h. */
#include "one_run.h"

#include <stdlib.h>
#include <string.h>

#include "reduce.h"

enum { LOOK_EVERY = 1024 };

struct runner {
    const struct program *program;
    struct search_watch *watch;
    struct state *state;
    struct reducer reducer;
    struct transition *choices;
    struct one_run *out;
    struct search_path steps; /* only where paths are kept */
    size_t steps_cap;
    bool keeps_paths, no_memory;
    void (*look)(void *arg, const struct effect *effect); /* NULL: none */
    void *look_arg;
};

static const unsigned wanted = 1u << PROPERTY_RACE | 1u << PROPERTY_LIFETIME | 1u << PROPERTY_VALUE;

/* The steps so far lead to the first violation of these. */
static bool keep_path(struct runner *runner, unsigned violated)
{
    struct one_run *out = runner->out;
    for (int p = 0; p < PROPERTY_COUNT; p++) {
        if (!(violated & 1u << p))
            continue;
        size_t bytes = runner->steps.count * sizeof *runner->steps.steps;
        out->path[p].steps = malloc(bytes);
        if (!out->path[p].steps)
            return false;
        memcpy(out->path[p].steps, runner->steps.steps, bytes);
        out->path[p].count = runner->steps.count;
        out->found |= 1u << p;
    }
    return true;
}

static bool note_step(struct runner *runner, struct transition step)
{
    if (runner->keeps_paths && !search_path_push(&runner->steps, &runner->steps_cap, step))
        runner->no_memory = true;
    return !runner->no_memory;
}

/* Take the step; false: the run is over. */
static bool one_run_own_take(struct runner *runner, struct transition step)
{
    struct one_run *out = runner->out;
    struct effect effect;
    if (!note_step(runner, step))
        return false;
    machine_step(runner->program, runner->state, step, &effect);
    out->seen |= effect.violated;
    if (runner->look)
        runner->look(runner->look_arg, &effect);
    if (runner->keeps_paths && !keep_path(runner, effect.violated & wanted & ~out->found)) {
        runner->no_memory = true;
        return false;
    }
    out->mismatch = effect.violated & 1u << PROPERTY_MISMATCH;
    if (++out->steps % LOOK_EVERY == 0 && watch_own_watch_look(runner->watch))
        return false;
    return !out->mismatch;
}

/* Steps that commute with all others, until there is none. */
static bool follow_free(struct runner *runner)
{
    reducer_begin(&runner->reducer, runner->state);
    for (int agent; (agent = reducer_next_free(&runner->reducer, runner->state)) >= 0;)
        if (!one_run_own_take(runner, (struct transition){agent, runner->reducer.choice}))
            return false;
    return true;
}

/* From the initial state. */
static void one_run_run(struct runner *runner)
{
    *runner->out = (struct one_run){.alone = true};
    while (follow_free(runner)) {
        if (machine_enabled(runner->program, runner->state, runner->choices) == 0) {
            runner->out->done = machine_done(runner->program, runner->state);
            return;
        }
        runner->out->alone = false;
        if (!one_run_own_take(runner, runner->choices[0]))
            break;
    }
    runner->out->alone = false;
}

enum status one_run_observe(const struct program *program, struct search_watch *watch,
                            void (*look)(void *arg, const struct effect *effect), void *arg,
                            struct one_run *out, struct diag *diag)
{
    struct runner runner = {
        .program = program, .watch = watch, .out = out, .look = look, .look_arg = arg};
    *out = (struct one_run){0};
    runner.state = machine_state(program);
    runner.choices = calloc(machine_most_transitions(program), sizeof *runner.choices);
    bool ready = reducer_init(&runner.reducer, program, PACE_ANY, STAGED_EITHER) && runner.state &&
                 runner.choices;
    if (ready) {
        machine_limit_knowledge(runner.state, true);
        one_run_run(&runner);
    }
    if (ready && out->seen & wanted &&
        !look) { /* once more, with all knowledge and paths: both take much */
        machine_reset(program, runner.state);
        machine_limit_knowledge(runner.state, false);
        runner.keeps_paths = true;
        one_run_run(&runner);
    }
    bool good = ready && !runner.no_memory && !machine_lost_knowledge(runner.state);
    reducer_fini(&runner.reducer);
    machine_free(runner.state);
    free(runner.choices);
    free(runner.steps.steps);
    if (!good)
        one_run_fini(out);
    return good ? STATUS_OK : diag_no_memory(diag);
}

enum status one_run_take(const struct program *program, struct search_watch *watch,
                         struct one_run *out, struct diag *diag)
{
    return one_run_observe(program, watch, NULL, NULL, out, diag);
}

void one_run_fini(struct one_run *run)
{
    for (int p = 0; p < PROPERTY_COUNT; p++)
        free(run->path[p].steps);
    *run = (struct one_run){0};
}
