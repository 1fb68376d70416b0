/* SPDX-License-Identifier: Apache-2.0 */
/* few_ranks.c - see few_ranks.h. */
#include "few_ranks.h"

#include <stdlib.h>

#include "base/assert_index.h"

/* A search with few ranks is over soon, or given up. */
enum { FEW = 2, STEPS = 1 << 17 };

/* Runs of `few`, repeated by `many`. */
struct echo {
    const struct program *few, *many;
    int **agents; /* per rank of `many` its agents, in their order */
    int *place;   /* per agent of `few`: its place among those of its rank */
    struct state *state;
    struct search_path path; /* of `many` */
    size_t path_cap;
};

static bool echo_list_agents(struct echo *echo, struct arena *arena)
{
    const struct program *many = echo->many, *few = echo->few;
    int *count = ARENA_ARRAY(arena, (size_t)many->ranks, int);
    echo->agents = ARENA_ARRAY(arena, (size_t)many->ranks, int *);
    echo->place = ARENA_ARRAY(arena, (size_t)few->agent_count, int);
    for (int rank = 0; rank < many->ranks && !arena->failed; rank++)
        echo->agents[rank] = ARENA_ARRAY(arena, (size_t)few->agent_count, int);
    if (arena->failed)
        return false;
    for (int agent = 0; agent < many->agent_count; agent++) {
        int rank = many->agents[agent].rank;
        if (rank >= 0 && count[rank] < few->agent_count)
            echo->agents[rank][count[rank]++] = agent;
    }
    for (int rank = 0; rank < FEW; rank++)
        count[rank] = 0;
    for (int agent = 0; agent < few->agent_count; agent++)
        if (few->agents[agent].rank >= 0)
            echo->place[agent] = count[few->agents[agent].rank]++;
    return true;
}

/* The agent of `many` that does for `rank` what this one of `few` does; for communicators and data there is one. */
static int echo_agent(const struct echo *echo, int agent, int rank)
{
    ASSERT_INDEX(agent, echo->few->agent_count);
    const struct agent *desc = &echo->few->agents[agent];
    if (desc->kind == AGENT_COMM)
        return program_comm_agent(echo->many, desc->index);
    return desc->rank < 0 ? agent : echo->agents[rank][echo->place[agent]];
}

/* Take the step, if it can be taken; what it violates goes to *violated. */
static enum status echo_take(struct echo *echo, struct transition step, bool *taken,
                             unsigned *violated)
{
    struct effect effect;
    *taken = machine_agent_enabled(echo->many, echo->state, step.agent) > step.choice;
    if (!*taken)
        return STATUS_OK;
    if (!search_path_push(&echo->path, &echo->path_cap, step))
        return STATUS_SYSTEM;
    machine_step(echo->many, echo->state, step, &effect);
    *violated = effect.violated;
    return STATUS_OK;
}

/* True if no agent can step, though the run is not over. */
static bool echo_hangs(const struct echo *echo)
{
    for (int agent = 0; agent < echo->many->agent_count; agent++)
        if (machine_agent_enabled(echo->many, echo->state, agent))
            return false;
    return !machine_done(echo->many, echo->state);
}

/* The path of `few` up to a violation of `property`. *found: one of `many` that violates it, too, is in echo->path. */
static enum status echo_path(struct echo *echo, const struct search_path *path,
                             enum property property, bool *found)
{
    const unsigned wanted = 1u << property;
    const unsigned by_hang = 1u << PROPERTY_DEADLOCK | 1u << PROPERTY_DRAIN | 1u << PROPERTY_SLOT;
    bool taken = true;
    unsigned violated = 0;
    machine_reset(echo->many, echo->state);
    echo->path.count = 0;
    for (size_t i = 0; i < path->count && taken && !(violated & wanted); i++) {
        struct transition step = path->steps[i];
        int own = echo->few->agents[step.agent].rank;
        int end = own == FEW - 1 ? echo->many->ranks : own + 1;
        for (int rank = own; rank < end && taken && !(violated & wanted); rank++) {
            enum status status = echo_take(
                echo, (struct transition){echo_agent(echo, step.agent, rank), step.choice}, &taken,
                &violated);
            if (status != STATUS_OK)
                return status;
        }
    }
    *found = violated & wanted || (taken && wanted & by_hang && echo_hangs(echo));
    return STATUS_OK;
}

static enum status echo_all(struct echo *echo, const struct search_result *result,
                            struct search_result *out)
{
    enum status status = STATUS_OK;
    for (int p = 0; p < PROPERTY_COUNT && status == STATUS_OK; p++) {
        bool found = false;
        if (!(result->found & ~out->found & 1u << p))
            continue;
        status = echo_path(echo, &result->witness[p], (enum property)p, &found);
        if (!found)
            continue;
        out->found |= 1u << p;
        out->witness[p] = echo->path;
        echo->path = (struct search_path){0};
        echo->path_cap = 0;
    }
    return status;
}

static enum status search_few(const struct program *few, const struct program *many,
                              const struct search_options *search, struct search_result *out,
                              struct diag *diag)
{
    struct search_options options = *search;
    struct search_result result;
    options.going_on = NULL;
    options.limits.steps = STEPS;
    enum status status = search_run(few, &options, &result, diag);
    if (status != STATUS_OK)
        return status;
    struct arena arena;
    struct echo echo = {.few = few, .many = many};
    arena_init(&arena, 0);
    if (result.found & ~out->found) {
        echo.state = machine_state(many);
        bool ready = echo.state && echo_list_agents(&echo, &arena);
        status = ready ? echo_all(&echo, &result, out) : STATUS_SYSTEM;
        out->states += result.states;
        out->transitions += result.transitions;
        free(echo.path.steps);
        machine_free(echo.state);
    }
    arena_fini(&arena);
    search_result_fini(&result);
    return status == STATUS_OK ? status : diag_no_memory(diag);
}

enum status few_ranks_find(const struct program *program, const struct search_options *search,
                           struct search_result *out, struct diag *diag)
{
    struct program_options built = program->options;
    struct program *few;
    if (program->ranks <= FEW || program->comm_count == 0 || !plan_is_for_any_ranks(program->plan))
        return STATUS_OK;
    built.ranks = FEW;
    enum status status = program_build(program->plan, &built, &few, diag);
    if (status != STATUS_OK)
        return status;
    status = search_few(few, program, search, out, diag);
    program_close(few);
    return status;
}
