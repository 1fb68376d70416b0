/* paths.c - see paths.h. */
#include "paths.h"

#include <stdlib.h>

#include "explore.h"

static bool append(struct search_path *path, size_t *cap, struct transition step)
{
    if (path->count == *cap) {
        size_t grown = *cap ? 2 * *cap : 64;
        struct transition *steps = realloc(path->steps, grown * sizeof *steps);
        if (!steps)
            return false;
        path->steps = steps;
        *cap = grown;
    }
    path->steps[path->count++] = step;
    return true;
}

static bool replay(const struct program *p, struct reducer *reducer, struct state *state,
                   bool reduction, const struct transition *choices, size_t count,
                   size_t last_chain, struct search_path *path)
{
    size_t cap = 0;
    for (size_t i = 0; i <= count; i++) {
        bool anchored = false;
        if (i > 0) {
            anchored = machine_retires(p, state, choices[i - 1].agent);
            if (!append(path, &cap, choices[i - 1]))
                return false;
            machine_step(p, state, choices[i - 1], NULL);
        }
        size_t limit = i == count ? last_chain : EXPLORE_MAX_CHAIN;
        if (reduction && !anchored)
            reducer_begin(reducer, state);
        for (size_t k = 0; reduction && !anchored && k < limit; k++) {
            int agent = reducer_next_free(reducer, state);
            if (agent < 0)
                break;
            anchored = machine_retires(p, state, agent);
            if (!append(path, &cap, (struct transition){agent, 0}))
                return false;
            machine_step(p, state, (struct transition){agent, 0}, NULL);
        }
    }
    return true;
}

enum status path_replay(const struct program *program, const struct search_options *options,
                        const struct transition *choices, size_t count, size_t last_chain,
                        struct search_path *out)
{
    struct search_path path = {0};
    struct reducer reducer;
    struct state *state = machine_state(program);
    bool ok =
        reducer_init(&reducer, program, explorer_pace(program, options)) && state &&
        replay(program, &reducer, state, options->reduction, choices, count, last_chain, &path);
    reducer_fini(&reducer);
    machine_free(state);
    if (!ok) {
        free(path.steps);
        return STATUS_SYSTEM;
    }
    *out = path;
    return STATUS_OK;
}

enum status path_to(const struct program *program, const struct search_options *options,
                    const struct states *states, uint32_t id, const struct transition *choice,
                    size_t chain, struct search_path *out)
{
    size_t depth = choice ? 1 : 0;
    for (uint32_t at = id; at != STATES_NONE && states_parent(states, at) != STATES_NONE;
         at = states_parent(states, at))
        depth++;
    struct transition *choices = calloc(depth + 1, sizeof *choices);
    if (!choices)
        return STATUS_SYSTEM;
    size_t k = depth;
    if (choice)
        choices[--k] = *choice;
    for (uint32_t at = id; k > 0; at = states_parent(states, at))
        choices[--k] = states_step(states, at);
    enum status status = path_replay(program, options, choices, depth, chain, out);
    free(choices);
    return status;
}
