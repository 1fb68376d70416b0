/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proof_states.c - the closed set of states of any plan, by the steps between them.
 *
 *     partner PART         with message: of each send and receive in order, the one it meets
 *     states COUNT         or reduced_states COUNT
 *     state [SEED] TO...   of each: the states to which its steps lead, in the machine's order
 *
 * State 0 is the initial one, and the first step to a state makes it: it is the next one. Every step from every state of the
 * set leads into the set and violates nothing, and where none is possible all work is done. All steps are tried; of a reduced
 * set, those of the smallest closed set of agents around the SEED of the state (doc/checker.md, "Stubborn sets"). With faults:
 * in none a thread is blocked for ever after a fault.
 */
#include "proof.h"

#include <inttypes.h>
#include <string.h>

#include "machine/conflicts.h"

struct set {
    const struct program *p;
    struct certificate *c;
    unsigned proves;
    bool reduced;
    char *bytes;          /* of all states, one behind the other */
    size_t count, filled; /* states it says, states that are made */
    struct state *state;
    struct transition *steps;
    struct agent_set tried;
};

static char *proof_states_place_of(const struct set *set, size_t index)
{
    return set->bytes + index * set->p->at.bytes;
}

/* The present state is that of this index; if the index is the next one it becomes that. */
static bool is_state(struct set *set, size_t index)
{
    if (index == set->filled) {
        memcpy(proof_states_place_of(set, index), set->state->cells, set->p->at.bytes);
        set->filled++;
    }
    return memcmp(proof_states_place_of(set, index), set->state->cells, set->p->at.bytes) == 0;
}

/* No step of the set may violate what is proved, and none is taken behind a mismatch, which ends a run. */
static bool read_step(struct set *set, size_t from, struct transition step)
{
    struct effect effect;
    const size_t most = set->filled < set->count ? set->filled + 1 : set->count;
    int64_t to;
    memcpy(set->state->cells, proof_states_place_of(set, from), set->p->at.bytes);
    machine_step(set->p, set->state, step, &effect);
    machine_canonical(set->p, set->state);
    if (effect.violated & (set->proves | 1u << PROPERTY_MISMATCH))
        return certificate_refuse(set->c, "a step from state %zu violates what it proves", from);
    return certificate_number(set->c, NULL, 0, (int64_t)most - 1, &to) &&
           (is_state(set, (size_t)to) ||
            certificate_refuse(set->c, "a step from state %zu does not lead to state %" PRId64,
                               from, to));
}

/* A state where no step is possible is an end; after a fault every thread can still be woken. */
static bool proof_states_is_good(struct set *set, size_t index, int steps)
{
    const struct program *p = set->p;
    if (p->options.faults)
        return !machine_never_woken(p, set->state) ||
               certificate_refuse(set->c, "in state %zu a thread is never woken after a fault",
                                  index);
    return steps > 0 || machine_done(p, set->state) ||
           certificate_refuse(set->c, "in state %zu no step is possible and work remains", index);
}

int proof_tried_steps(const struct program *p, const struct state *state, int seed,
                      struct agent_set *set, struct transition *steps)
{
    int all = machine_enabled(p, state, steps), kept = 0;
    agent_set_clear(set, p->agent_count);
    agent_set_add(set, machine_agent_enabled(p, state, 0) ? 0 : seed);
    for (int i = 0; i < set->count; i++)
        if (machine_agent_enabled(p, state, set->members[i]))
            machine_conflicts(p, state, set->members[i], set);
        else
            machine_enablers(p, state, set->members[i], set);
    for (int k = 0; k < all; k++)
        if (agent_set_has(set, steps[k].agent))
            steps[kept++] = steps[k];
    return kept;
}

/* The steps from a state, which is good. */
static bool proof_states_read_state(struct set *set, size_t index)
{
    int seed;
    if (!certificate_expect(set->c, "state") ||
        (set->reduced && !certificate_index(set->c, NULL, set->p->agent_count, &seed)))
        return false;
    memcpy(set->state->cells, proof_states_place_of(set, index), set->p->at.bytes);
    int all = machine_enabled(set->p, set->state, set->steps), count = all;
    if (!proof_states_is_good(set, index, all))
        return false;
    if (set->reduced && all > 0)
        count = proof_tried_steps(set->p, set->state, seed, &set->tried, set->steps);
    if (all > 0 && count == 0)
        return certificate_refuse(set->c, "in state %zu no step is tried", index);
    bool good = true;
    for (int k = 0; k < count && good; k++)
        good = read_step(set, index, set->steps[k]);
    return good;
}

static bool read_states(struct set *set)
{
    machine_reset(set->p, set->state);
    machine_canonical(set->p, set->state);
    bool good = is_state(set, 0);
    for (size_t i = 0; i < set->count && good; i++)
        good = i < set->filled ? proof_states_read_state(set, i)
                               : certificate_refuse(set->c, "no step leads to state %zu", i);
    return good;
}

/* ---- the whole --------------------------------------------------------------------------------- */

/* Each part has a partner of its own: it is sent on the same channel with the same tag, and received. */
static bool read_partners(const struct program *p, struct certificate *c)
{
    int *partner = ARENA_ARRAY(&c->arena, p->part_count + 1, int);
    bool good = partner != NULL;
    for (size_t i = 0; good && i < p->part_count; i++)
        good = certificate_index(c, "partner", (int64_t)p->part_count, &partner[i]);
    for (size_t i = 0; good && i < p->part_count; i++) {
        const struct part *a = &p->parts[i], *b = &p->parts[partner[i]];
        good = partner[partner[i]] == (int)i && a->send != b->send && a->channel == b->channel &&
               a->tag == b->tag;
    }
    return good || (partner && certificate_refuse(c, "a message has no partner"));
}

unsigned proof_states_covers(const struct program *p)
{
    if (p->options.faults)
        return 1u << PROPERTY_FAULTS;
    unsigned covers = 1u << PROPERTY_DEADLOCK | 1u << PROPERTY_MISMATCH | 1u << PROPERTY_SLOT |
                      1u << PROPERTY_DRAIN | 1u << PROPERTY_MESSAGE | 1u << PROPERTY_BOUND;
    covers |= p->options.serial ? 1u << PROPERTY_SERIAL : 0;
    if (!p->untracked)
        covers |= 1u << PROPERTY_RACE | 1u << PROPERTY_LIFETIME | 1u << PROPERTY_VALUE;
    return covers;
}

/* Which iterations are in flight, and which memory is held, depends on more orders than a reduced set has; a rank program's
   memory follows from its lists. */
unsigned proof_reduced_covers(const struct program *p)
{
    const unsigned bound = program_asks_bound(p) && !p->owned_plan ? 1u << PROPERTY_BOUND : 0;
    return p->options.faults ? 0 : proof_states_covers(p) & ~bound;
}

static bool proof_states_judge(const struct program *p, struct certificate *c, unsigned proves,
                               bool reduced)
{
    int64_t count, most = (int64_t)(PROOF_STATE_BYTES / p->at.bytes);
    if (proves & 1u << PROPERTY_MESSAGE && !read_partners(p, c))
        return false;
    if (!certificate_number(c, reduced ? "reduced_states" : "states", 1, most, &count))
        return false;
    if (count > c->end - c->at)
        return certificate_refuse(c, "there are fewer states than it says");
    struct set set = {.p = p, .c = c, .proves = proves, .reduced = reduced, .count = (size_t)count};
    set.bytes = arena_array(&c->arena, set.count, p->at.bytes);
    set.steps = ARENA_ARRAY(&c->arena, machine_most_transitions(p) + 1, struct transition);
    set.state = machine_state(p);
    c->arena.failed |= !agent_set_init(&set.tried, p->agent_count) || !set.state;
    bool good = !c->arena.failed && read_states(&set);
    machine_free(set.state);
    agent_set_fini(&set.tried);
    return good;
}

bool proof_states(const struct program *p, struct certificate *c, unsigned proves)
{
    return proof_states_judge(p, c, proves, false);
}

/* Values and the order of accesses are the same in all orders of independent steps only where no accesses race. */
bool proof_reduced(const struct program *p, struct certificate *c, unsigned proves)
{
    const unsigned ordered = 1u << PROPERTY_VALUE | 1u << PROPERTY_SERIAL;
    if (proves & ordered && p->access_count > 0 && !((proves | c->before) & 1u << PROPERTY_RACE))
        return certificate_refuse(c, "nothing proves that no accesses race");
    return proof_states_judge(p, c, proves, true);
}
