/* SPDX-License-Identifier: Apache-2.0 */
/* probe.c - see probe.h. */
#include "probe.h"

#include <stdlib.h>

#include "paths.h"
#include "base/hash.h"

enum { WALK_NODES = 1 << 12 };

struct probe {
    struct explorer *explorer;
    struct batch *batch;
    struct search_result *result;
    struct search_path choices; /* of this walk */
    size_t choice_cap;
    uint64_t draws;
};

/* The witness of a violation: the choices of the walk, then the one that shows it. */
static enum status probe_keep(struct probe *probe, const struct violation *seen)
{
    struct search_result *result = probe->result;
    enum status status = STATUS_OK;
    const size_t taken = probe->choices.count;
    if (seen->stepped && !search_path_push(&probe->choices, &probe->choice_cap, seen->choice))
        return STATUS_SYSTEM;
    size_t count = probe->choices.count;
    probe->choices.count = taken;
    for (int p = 0; p < PROPERTY_COUNT && status == STATUS_OK; p++)
        if (seen->violated & ~result->found & 1u << p)
            status = path_replay(probe->explorer->program, probe->explorer->options,
                                 probe->choices.steps, count, seen->chain, &result->witness[p]);
    if (status == STATUS_OK)
        result->found |= seen->violated;
    return status;
}

/* One of the successors, seldom the end of the data. */
static const struct successor *probe_choose(struct probe *probe)
{
    const struct batch *batch = probe->batch;
    const struct successor *chosen = NULL;
    for (int tries = 0; tries < 4; tries++) {
        uint64_t draw = hash_mix(++probe->draws * UINT64_C(0x9e3779b97f4a7c15));
        chosen = &batch->successors[draw % batch->successor_count];
        if (chosen->by.agent != 0 || chosen->by.choice == 0)
            break;
    }
    return chosen;
}

/* Expand the node; its violations end the walk. */
static enum status probe_look(struct probe *probe, uint64_t root)
{
    struct batch *batch = probe->batch;
    batch->first = 0;
    batch->count = 1;
    batch->roots[0] = root;
    explorer_expand(probe->explorer, batch);
    probe->result->transitions += batch->nodes[0].transitions;
    enum status status = batch->status;
    for (size_t i = 0; i < batch->violation_count && status == STATUS_OK; i++)
        status = probe_keep(probe, &batch->violations[i]);
    return status;
}

static enum status probe_walk(struct probe *probe, uint64_t root, uint64_t until)
{
    const struct batch *batch = probe->batch;
    probe->choices.count = 0;
    for (int node = 0; node < WALK_NODES && probe->result->transitions < until; node++) {
        enum status status = probe_look(probe, root);
        if (status != STATUS_OK || batch->violation_count > 0 || batch->successor_count == 0 ||
            watch_over(probe->explorer->watch))
            return status;
        const struct successor *next = probe_choose(probe);
        root = next->root;
        if (!search_path_push(&probe->choices, &probe->choice_cap, next->by))
            return STATUS_SYSTEM;
    }
    return STATUS_OK;
}

enum status probe_run(struct explorer *explorer, struct batch *batch, uint64_t root,
                      unsigned properties, uint64_t steps, struct search_result *result)
{
    struct probe probe = {.explorer = explorer, .batch = batch, .result = result};
    uint64_t until = result->transitions + steps;
    enum status status = STATUS_OK;
    unsigned before = result->found;
    while (status == STATUS_OK && result->found == before && result->transitions < until &&
           !watch_over(explorer->watch)) {
        batch->properties = properties;
        uint64_t from = result->transitions;
        status = probe_walk(&probe, root, until);
        if (result->transitions == from)
            break;
    }
    free(probe.choices.steps);
    return status;
}
