/* SPDX-License-Identifier: Apache-2.0 */
/* paths.c - see paths.h. */
#include "paths.h"

#include <stdlib.h>

#include "explore.h"

struct replayer {
    const struct program *program;
    struct reducer reducer;
    struct state *state;
    struct search_path path;
    size_t cap;
};

/* Take a step and append it to the path. False: memory is exhausted. */
static bool paths_take(struct replayer *replayer, struct transition step)
{
    machine_step(replayer->program, replayer->state, step, NULL);
    return search_path_push(&replayer->path, &replayer->cap, step);
}

/* Up to `limit` free steps, as in explore.c: a chain ends behind a step that retires. */
static bool replay_chain(struct replayer *replayer, size_t limit)
{
    bool retires = false;
    reducer_begin(&replayer->reducer, replayer->state);
    for (size_t k = 0; k < limit && !retires; k++) {
        int agent = reducer_next_free(&replayer->reducer, replayer->state);
        if (agent < 0)
            break;
        retires = machine_retires(replayer->program, replayer->state, agent);
        if (!paths_take(replayer, (struct transition){agent, replayer->reducer.choice}))
            return false;
    }
    return true;
}

static bool paths_replay(struct replayer *replayer, bool reduction,
                         const struct transition *choices, size_t count, size_t last_chain)
{
    for (size_t i = 0; i <= count; i++) {
        bool retires = false;
        if (i > 0) {
            retires = machine_retires(replayer->program, replayer->state, choices[i - 1].agent);
            if (!paths_take(replayer, choices[i - 1]))
                return false;
        }
        size_t limit = i == count ? last_chain : EXPLORE_MAX_CHAIN;
        if (reduction && !retires && !replay_chain(replayer, limit))
            return false;
    }
    return true;
}

enum status path_replay(const struct program *program, const struct search_options *options,
                        const struct transition *choices, size_t count, size_t last_chain,
                        struct search_path *out)
{
    struct replayer replayer = {.program = program, .state = machine_state(program)};
    bool ok = reducer_init(&replayer.reducer, program, explorer_pace(program, options),
                           explorer_waits(program, options)) &&
              replayer.state &&
              paths_replay(&replayer, options->reduction, choices, count, last_chain);
    reducer_fini(&replayer.reducer);
    machine_free(replayer.state);
    if (!ok) {
        free(replayer.path.steps);
        return STATUS_SYSTEM;
    }
    *out = replayer.path;
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
