/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proof_states.c - the closed set of states of any plan, as the tree by which they are reached.
 *
 *     partner PART             with message: of each send and receive in order, the one it meets
 *     states COUNT             reduced_states COUNT SEED
 *     PARENT AGENT CHOICE      PARENT AGENT CHOICE SEED     of each but the first: the state it follows by this step of the
 *                                                           machine
 *
 * The first is the initial one. Every step from every state of the set leads into the set and violates nothing, and where none
 * is possible all work is done. All steps are tried; of a reduced set, those of the smallest closed set of agents around the
 * SEED of the state (doc/checker.md, "Stubborn sets"). With faults: in none a thread is blocked for ever after a fault.
 */
#include "proof.h"

#include <string.h>

#include "machine/conflicts.h"
#include "plan/hash.h"

struct set {
    const struct program *p;
    struct certificate *c;
    unsigned proves;
    int *seeds;  /* of a reduced set, per state; else NULL */
    char *bytes; /* of all states, one behind the other */
    size_t count, table_size;
    size_t *table; /* open addressing: index + 1, 0: empty */
    struct state *state;
    struct transition *steps;
    struct agent_set tried;
};

static char *place_of(const struct set *set, size_t index)
{
    return set->bytes + index * set->p->at.bytes;
}

/* Where the state is in the table, or would be. */
static size_t *find(const struct set *set, const void *cells)
{
    size_t at = (size_t)hash_bytes(cells, set->p->at.bytes) % set->table_size;
    while (set->table[at] &&
           memcmp(place_of(set, set->table[at] - 1), cells, set->p->at.bytes) != 0)
        at = (at + 1) % set->table_size;
    return &set->table[at];
}

static void load(const struct set *set, size_t index)
{
    memcpy(set->state->cells, place_of(set, index), set->p->at.bytes);
}

static void keep(struct set *set, size_t index)
{
    memcpy(place_of(set, index), set->state->cells, set->p->at.bytes);
    *find(set, set->state->cells) = index + 1;
}

static bool read_seed(struct set *set, size_t index)
{
    return !set->seeds || certificate_index(set->c, NULL, set->p->agent_count, &set->seeds[index]);
}

/* No step of the set may violate what is proved, and none is taken behind a mismatch, which ends a run. */
static bool take_step(struct set *set, size_t from, struct transition step)
{
    struct effect effect;
    load(set, from);
    machine_step(set->p, set->state, step, &effect);
    machine_canonical(set->p, set->state);
    return !(effect.violated & (set->proves | 1u << PROPERTY_MISMATCH)) ||
           certificate_refuse(set->c, "a step from state %zu violates what it proves", from);
}

/* Make the states, each by one step from an earlier one. */
static bool read_tree(struct set *set)
{
    machine_reset(set->p, set->state);
    machine_canonical(set->p, set->state);
    keep(set, 0);
    if (!read_seed(set, 0))
        return false;
    for (size_t i = 1; i < set->count; i++) {
        int parent, agent, choice;
        if (!certificate_index(set->c, NULL, (int64_t)i, &parent) ||
            !certificate_index(set->c, NULL, set->p->agent_count, &agent) ||
            !certificate_index(set->c, NULL, 2, &choice) || !read_seed(set, i))
            return false;
        load(set, (size_t)parent);
        if (choice >= machine_agent_enabled(set->p, set->state, agent))
            return certificate_refuse(set->c, "the step is not possible");
        if (!take_step(set, (size_t)parent, (struct transition){agent, choice}))
            return false;
        keep(set, i);
    }
    return true;
}

/* A state where no step is possible is an end; after a fault every thread can still be woken. */
static bool is_good(struct set *set, size_t index, int steps)
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

/* Of the `all` steps that are possible, those that are to be tried. */
static bool list_steps(struct set *set, size_t index, int all, int *count)
{
    *count = all;
    if (set->seeds && all > 0)
        *count = proof_tried_steps(set->p, set->state, set->seeds[index], &set->tried, set->steps);
    return all == 0 || *count > 0 ||
           certificate_refuse(set->c, "in state %zu no step is tried", index);
}

/* No step leads out of the set or violates what is proved. */
static bool is_closed(struct set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        load(set, i);
        int count = machine_enabled(set->p, set->state, set->steps);
        if (!is_good(set, i, count) || !list_steps(set, i, count, &count))
            return false;
        for (int k = 0; k < count; k++) {
            if (!take_step(set, i, set->steps[k]))
                return false;
            if (!*find(set, set->state->cells))
                return certificate_refuse(set->c, "a step from state %zu leads out of the set", i);
        }
    }
    return true;
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

static bool judge(const struct program *p, struct certificate *c, unsigned proves, bool reduced)
{
    int64_t count, most = (int64_t)(PROOF_STATE_BYTES / p->at.bytes);
    if (proves & 1u << PROPERTY_MESSAGE && !read_partners(p, c))
        return false;
    if (!certificate_number(c, reduced ? "reduced_states" : "states", 1, most, &count))
        return false;
    if (count > c->end - c->at)
        return certificate_refuse(c, "there are fewer states than it says");
    struct set set = {.p = p, .c = c, .proves = proves, .count = (size_t)count};
    set.table_size = 2 * set.count + 1;
    set.seeds = reduced ? ARENA_ARRAY(&c->arena, set.count, int) : NULL;
    set.bytes = arena_array(&c->arena, set.count, p->at.bytes);
    set.table = ARENA_ARRAY(&c->arena, set.table_size, size_t);
    set.steps = ARENA_ARRAY(&c->arena, machine_most_transitions(p) + 1, struct transition);
    set.state = machine_state(p);
    c->arena.failed |= !agent_set_init(&set.tried, p->agent_count) || !set.state;
    bool good = !c->arena.failed && read_tree(&set) && is_closed(&set);
    machine_free(set.state);
    agent_set_fini(&set.tried);
    return good;
}

bool proof_states(const struct program *p, struct certificate *c, unsigned proves)
{
    return judge(p, c, proves, false);
}

/* Values and the order of accesses are the same in all orders of independent steps only where no accesses race. */
bool proof_reduced(const struct program *p, struct certificate *c, unsigned proves)
{
    const unsigned ordered = 1u << PROPERTY_VALUE | 1u << PROPERTY_SERIAL;
    if (proves & ordered && p->access_count > 0 && !((proves | c->before) & 1u << PROPERTY_RACE))
        return certificate_refuse(c, "nothing proves that no accesses race");
    return judge(p, c, proves, true);
}
