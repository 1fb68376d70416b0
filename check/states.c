/* SPDX-License-Identifier: Apache-2.0 */
/* states.c - see states.h. */
#include "states.h"

#include <assert.h>

enum { WIDE = UINT16_MAX }; /* in `steps`: look into `wide_steps` */

struct wide_step {
    uint32_t id;
    int32_t agent;
    int32_t choice, unused;
};

enum status states_open(struct states *states, const struct program *program, struct budget *budget)
{
    *states = (struct states){.agents = (uint32_t)program->agent_count};
    chunked_open(&states->parents, sizeof(uint32_t), budget);
    chunked_open(&states->steps, sizeof(uint16_t), budget);
    chunked_open(&states->wide_steps, sizeof(struct wide_step), budget);
    return intern_open(&states->roots, 1, false, budget);
}

#ifdef SWSIM_CHECKS
/* Every state has a way to it: a parent that is no younger, if any, and a step. Wide steps are in order of their states. */
static bool states_check(const struct states *states)
{
    uint32_t count = states_count(states), last = STATES_NONE;
    for (uint32_t id = 0; id < count; id++) {
        uint32_t parent = states_parent(states, id);
        if (parent != STATES_NONE && parent > id)
            return false;
    }
    for (size_t i = 0; i < states->wide_steps.count; i++) {
        const struct wide_step *wide = chunked_at(&states->wide_steps, i, sizeof *wide);
        if (wide->id >= count || (i > 0 && wide->id <= last))
            return false;
        last = wide->id;
    }
    return states->parents.count == count && states->steps.count == count;
}
#endif

void states_close(struct states *states)
{
#ifdef SWSIM_CHECKS
    assert(!atomic_load_explicit(&states->roots.index, memory_order_relaxed) ||
           states_check(states));
#endif
    intern_close(&states->roots);
    chunked_close(&states->parents);
    chunked_close(&states->steps);
    chunked_close(&states->wide_steps);
}

static enum status keep_step(struct states *states, uint32_t id, struct transition by)
{
    uint64_t code = (uint64_t)by.choice * states->agents + (uint64_t)by.agent;
    uint16_t narrow = code < WIDE ? (uint16_t)code : WIDE;
    enum status status = chunked_push(&states->steps, &narrow);
    if (status != STATUS_OK || narrow != WIDE)
        return status;
    struct wide_step wide = {id, by.agent, by.choice, 0};
    status = chunked_push(&states->wide_steps, &wide);
    if (status != STATUS_OK)
        chunked_pop(&states->steps);
    return status;
}

/* Parent and step are inserted first, so every inserted state is complete. */
static enum status keep_way(struct states *states, uint32_t parent, struct transition by)
{
    uint32_t id = states_count(states);
    enum status status = chunked_push(&states->parents, &parent);
    if (status != STATUS_OK)
        return status;
    status = keep_step(states, id, by);
    if (status != STATUS_OK)
        chunked_pop(&states->parents);
    return status;
}

static void forget_way(struct states *states)
{
    uint16_t step = *(uint16_t *)chunked_at(&states->steps, states->steps.count - 1, sizeof step);
    if (step == WIDE)
        chunked_pop(&states->wide_steps);
    chunked_pop(&states->steps);
    chunked_pop(&states->parents);
}

enum status states_insert(struct states *states, uint64_t root, uint32_t parent,
                          struct transition by, uint32_t *id, bool *is_new)
{
    uint64_t hash = hash_words(&root, 1);
    *is_new = false;
    *id = intern_find(&states->roots, &root, hash, 1);
    if (*id != INTERN_NONE)
        return STATUS_OK;
    enum status status = keep_way(states, parent, by);
    if (status != STATUS_OK)
        return status;
    status = intern_add(&states->roots, &root, hash, id, is_new);
    if (status != STATUS_OK)
        forget_way(states);
    return status;
}

uint32_t states_parent(const struct states *states, uint32_t id)
{
    return *(const uint32_t *)chunked_at(&states->parents, id, sizeof(uint32_t));
}

static struct transition wide_step(const struct states *states, uint32_t id)
{
    size_t low = 0, high = states->wide_steps.count;
    while (high - low > 1) { /* by number, ascending */
        size_t middle = low + (high - low) / 2;
        const struct wide_step *at =
            chunked_at(&states->wide_steps, middle, sizeof(struct wide_step));
        if (at->id <= id)
            low = middle;
        else
            high = middle;
    }
    const struct wide_step *found = chunked_at(&states->wide_steps, low, sizeof *found);
    assert(found->id == id);
    return (struct transition){found->agent, found->choice};
}

struct transition states_step(const struct states *states, uint32_t id)
{
    uint16_t code = *(const uint16_t *)chunked_at(&states->steps, id, sizeof code);
    if (code == WIDE)
        return wide_step(states, id);
    return (struct transition){(int)(code % states->agents), (int)(code / states->agents)};
}
