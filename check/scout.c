/* SPDX-License-Identifier: Apache-2.0 */
/* scout.c - see scout.h. */
#include "scout.h"

#include <stdlib.h>

#include "base/assert_index.h"
#include "base/hash.h"

enum { RUNS = 10, STEPS = 20000, ITERATIONS_MORE = 4, LOOK = 16 };

enum preference { HOST_FIRST, DEVICE_FIRST, RANDOM };

struct scout_run {
    const struct program *program;
    struct search_watch *watch;
    struct state *state;
    struct transition *choices;
    enum preference preference;
    uint64_t random;
    int64_t iterations; /* of data, where their number is open */
    struct search_path path;
    size_t path_cap;
    uint64_t steps; /* of all runs */
};

static bool scout_is_host(const struct scout_run *run, int agent)
{
    ASSERT_INDEX(agent, run->program->agent_count);
    enum agent_kind kind = run->program->agents[agent].kind;
    return kind == AGENT_THREAD || kind == AGENT_DATA;
}

/* Of the possible steps the one to take. The data go on for a while, then end. */
static struct transition scout_choose(struct scout_run *run, int count)
{
    int64_t asked = run->state->cells[0];
    for (int i = 0; i < count; i++)
        if (run->choices[i].agent == 0)
            return (struct transition){0, asked >= run->iterations};
    run->random = hash_mix(run->random + 1);
    if (run->preference == RANDOM)
        return run->choices[run->random % (uint64_t)count];
    for (int i = 0; i < count; i++)
        if (scout_is_host(run, run->choices[i].agent) == (run->preference == HOST_FIRST))
            return run->choices[i];
    return run->choices[0];
}

/* The properties of `wanted` that the run violates; it ends at the first. */
static enum status scout_take_run(struct scout_run *run, unsigned wanted, unsigned *violated)
{
    struct effect effect = {0};
    machine_reset(run->program, run->state);
    run->path = (struct search_path){0};
    run->path_cap = 0;
    *violated = 0;
    for (int step = 0; step < STEPS && !*violated; step++) {
        if (step % LOOK == 0 && watch_own_watch_look(run->watch))
            return STATUS_OK;
        int count = machine_enabled(run->program, run->state, run->choices);
        if (count == 0 || effect.violated & (1u << PROPERTY_MISMATCH))
            return STATUS_OK;
        struct transition chosen = scout_choose(run, count);
        if (!search_path_push(&run->path, &run->path_cap, chosen))
            return STATUS_SYSTEM;
        machine_step(run->program, run->state, chosen, &effect);
        *violated = effect.violated & wanted;
        run->steps++;
    }
    return STATUS_OK;
}

/* The path belongs to the first of the properties, a copy to each other. */
static enum status scout_keep(const struct search_path *path, unsigned violated,
                              struct search_result *out)
{
    for (int p = 0; p < PROPERTY_COUNT; p++) {
        size_t cap = 0;
        if (!(violated & 1u << p))
            continue;
        for (size_t i = 0; i < path->count; i++)
            if (!search_path_push(&out->witness[p], &cap, path->steps[i]))
                return STATUS_SYSTEM;
        out->found |= 1u << p;
    }
    return STATUS_OK;
}

static enum status take_runs(struct scout_run *run, unsigned wanted, struct search_result *out)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < RUNS && status == STATUS_OK && wanted & ~out->found; i++) {
        unsigned violated;
        run->preference = i < RANDOM ? (enum preference)i : RANDOM;
        status = scout_take_run(run, wanted & ~out->found, &violated);
        out->states = out->transitions = run->steps;
        if (status == STATUS_OK)
            status = scout_keep(&run->path, violated, out);
        free(run->path.steps);
    }
    return status;
}

enum status scout_runs(const struct program *program, unsigned wanted, struct search_watch *watch,
                       struct search_result *out, struct diag *diag)
{
    *out = (struct search_result){0};
    if (!wanted)
        return STATUS_OK;
    struct scout_run run = {.program = program,
                            .watch = watch,
                            .state = machine_state(program),
                            .choices =
                                calloc(machine_most_transitions(program), sizeof *run.choices),
                            .iterations = program->window + ITERATIONS_MORE};
    enum status status = run.state && run.choices ? take_runs(&run, wanted, out) : STATUS_SYSTEM;
    machine_free(run.state);
    free(run.choices);
    if (status == STATUS_OK)
        return STATUS_OK;
    search_result_fini(out);
    return diag_no_memory(diag);
}
