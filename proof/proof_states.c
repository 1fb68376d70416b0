/*
 * proof_states.c - the closed set of states of any plan, as the tree by which they are reached.
 *
 *     states COUNT
 *     PARENT AGENT CHOICE      of each but the first: the state it follows by this step of the machine
 *
 * The first is the initial one. Every step from every state of the set leads into the set and violates nothing, and where none
 * is possible all work is done. All steps are tried, none is left out. With faults: in none a thread is blocked for ever after
 * a fault.
 */
#include "proof.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "machine/machine.h"
#include "plan/hash.h"

struct set {
    const struct program *p;
    struct certificate *c;
    unsigned proves;
    char *bytes; /* of all states, one behind the other */
    size_t count, table_size;
    size_t *table; /* open addressing: index + 1, 0: empty */
    struct state *state;
    struct transition *steps;
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

/* Make the states, each by one step from an earlier one. */
static bool read_tree(struct set *set)
{
    machine_reset(set->p, set->state);
    machine_canonical(set->p, set->state);
    keep(set, 0);
    for (size_t i = 1; i < set->count; i++) {
        int parent, agent, choice;
        if (!certificate_index(set->c, (int64_t)i, &parent) ||
            !certificate_index(set->c, set->p->agent_count, &agent) ||
            !certificate_index(set->c, 2, &choice))
            return false;
        load(set, (size_t)parent);
        if (choice >= machine_agent_enabled(set->p, set->state, agent))
            return certificate_refuse(set->c, "line %" PRId64 ": the step is not possible",
                                      set->c->line);
        machine_step(set->p, set->state, (struct transition){agent, choice}, NULL);
        machine_canonical(set->p, set->state);
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

/* No step leads out of the set or violates what is proved. */
static bool is_closed(struct set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        load(set, i);
        int count = machine_enabled(set->p, set->state, set->steps);
        if (!is_good(set, i, count))
            return false;
        for (int k = 0; k < count; k++) {
            struct effect effect;
            load(set, i);
            machine_step(set->p, set->state, set->steps[k], &effect);
            if (effect.violated & (set->proves | 1u << PROPERTY_MISMATCH))
                return certificate_refuse(set->c, "a step from state %zu violates what it proves",
                                          i);
            machine_canonical(set->p, set->state);
            if (!*find(set, set->state->cells))
                return certificate_refuse(set->c, "a step from state %zu leads out of the set", i);
        }
    }
    return true;
}

unsigned proof_states_covers(const struct program *p)
{
    if (p->options.faults)
        return 1u << PROPERTY_FAULTS;
    unsigned covers = 1u << PROPERTY_DEADLOCK | 1u << PROPERTY_MISMATCH | 1u << PROPERTY_SLOT |
                      1u << PROPERTY_DRAIN;
    covers |= p->options.serial ? 1u << PROPERTY_SERIAL : 0;
    if (!p->untracked)
        covers |= 1u << PROPERTY_RACE | 1u << PROPERTY_LIFETIME | 1u << PROPERTY_VALUE;
    covers |= p->tasks == 0 && program_asks_bound(p) ? 0 : 1u << PROPERTY_BOUND;
    covers |= p->part_count > 0 ? 0 : 1u << PROPERTY_MESSAGE;
    return covers;
}

bool proof_states(const struct program *p, struct certificate *c, unsigned proves, bool *no_memory)
{
    int64_t count, most = (int64_t)(PROOF_STATE_BYTES / p->at.bytes);
    if (!certificate_expect(c, "states") || !certificate_number(c, 1, most, &count))
        return false;
    if (count > c->end - c->at)
        return certificate_refuse(c, "there are fewer states than it says");
    struct set set = {.p = p, .c = c, .proves = proves, .count = (size_t)count};
    set.table_size = 2 * set.count + 1;
    set.bytes = malloc(set.count * p->at.bytes);
    set.table = calloc(set.table_size, sizeof *set.table);
    set.state = machine_state(p);
    set.steps = calloc(machine_most_transitions(p) + 1, sizeof *set.steps);
    *no_memory = !set.bytes || !set.table || !set.state || !set.steps;
    bool good = !*no_memory && read_tree(&set) && is_closed(&set);
    free(set.bytes);
    free(set.table);
    machine_free(set.state);
    free(set.steps);
    return good;
}
