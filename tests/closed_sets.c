/* SPDX-License-Identifier: Apache-2.0 */
/* closed_sets.c - see closed_sets.h. */
#include "closed_sets.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/certify.h"
#include "machine/machine.h"
#include "base/hash.h"

struct walk {
    const struct program *p;
    uint64_t seed;
    char *bytes; /* of all states, one behind the other */
    size_t count, most;
    struct state *state;
    struct transition *steps;
    struct agent_set tried;
    FILE *tree;
    unsigned violated;
};

static char *place_of(const struct walk *walk, size_t index)
{
    return walk->bytes + index * walk->p->at.bytes;
}

/* An agent whose closed set has a step in the present state, and the number of these steps, which come in `steps`; 0: there
   is none. */
static int draw_agent(struct walk *walk, size_t index, struct transition *steps, int *agent)
{
    int agents = walk->p->agent_count;
    int first = (int)(hash_mix(walk->seed + index) % (uint64_t)agents);
    for (int k = 0; k < agents; k++) {
        *agent = (first + k) % agents;
        int count = proof_tried_steps(walk->p, walk->state, *agent, &walk->tried, steps);
        if (count > 0)
            return count;
    }
    *agent = 0;
    return 0;
}

/* The index of the present state, which is kept; walk->most: there is no room. Sets are small: no table. */
static size_t keep(struct walk *walk)
{
    for (size_t i = 0; i < walk->count; i++)
        if (memcmp(place_of(walk, i), walk->state->cells, walk->p->at.bytes) == 0)
            return i;
    if (walk->count == walk->most)
        return walk->most;
    memcpy(place_of(walk, walk->count), walk->state->cells, walk->p->at.bytes);
    return walk->count++;
}

/* False: the set has too many states, or hangs. */
static bool expand(struct walk *walk, size_t index)
{
    int agent;
    memcpy(walk->state->cells, place_of(walk, index), walk->p->at.bytes);
    int count = draw_agent(walk, index, walk->steps, &agent);
    fprintf(walk->tree, "state %d%s", agent, count == 0 ? "\n" : "");
    if (count == 0)
        return machine_done(walk->p, walk->state);
    for (int k = 0; k < count; k++) {
        struct effect effect;
        memcpy(walk->state->cells, place_of(walk, index), walk->p->at.bytes);
        machine_step(walk->p, walk->state, walk->steps[k], &effect);
        walk->violated |= effect.violated;
        machine_canonical(walk->p, walk->state);
        size_t to = keep(walk);
        if (to == walk->most)
            return false;
        fprintf(walk->tree, " %zu%s", to, k + 1 == count ? "\n" : "");
    }
    return true;
}

static bool gather(struct walk *walk)
{
    bool closed = true;
    machine_canonical(walk->p, walk->state);
    keep(walk);
    for (size_t i = 0; i < walk->count && closed; i++)
        closed = expand(walk, i) && !(walk->violated & 1u << PROPERTY_MISMATCH);
    return closed;
}

static void write_all(const struct walk *walk, const struct program_options *options, uint64_t hash,
                      const char *tree, FILE *out)
{
    const unsigned ordered = 1u << PROPERTY_VALUE | 1u << PROPERTY_SERIAL;
    unsigned claims = proof_reduced_covers(walk->p) & ~walk->violated;
    claims &= walk->violated & 1u << PROPERTY_RACE ? ~ordered : ~0u;
    fprintf(out, "swcert %d\nplan %016" PRIx64 "\noptions %s %d %d %" PRId64 "\nproves",
            PROOF_VERSION, hash, driver_key(options->driver), options->ranks, options->max_depth,
            options->iterations);
    for (int p = 0; p < PROPERTY_COUNT; p++)
        if (claims & 1u << p)
            fprintf(out, " %s", property_key((enum property)p));
    fprintf(out, "\nby %s\n", proof_key(PROOF_REDUCED_STATES));
    if (claims & 1u << PROPERTY_MESSAGE)
        certify_partners(walk->p, out);
    fprintf(out, "reduced_states %zu\n%send\n", walk->count, tree);
}

char *closed_sets_certify(const struct plan *plan, const struct program_options *options,
                          size_t most, uint64_t seed, struct diag *diag)
{
    struct program *program;
    uint64_t hash;
    char *tree = NULL, *text = NULL;
    size_t size;
    if (proof_hash(plan, &hash, diag) != STATUS_OK ||
        proof_program(plan, PROOF_REDUCED_STATES, 1u << PROPERTY_SERIAL, options, &program, diag) !=
            STATUS_OK)
        return NULL;
    struct walk walk = {.p = program, .seed = seed, .most = most};
    walk.bytes = malloc(most * program->at.bytes);
    walk.state = machine_state(program);
    walk.steps = calloc(machine_most_transitions(program) + 1, sizeof *walk.steps);
    walk.tree = open_memstream(&tree, &size);
    bool ready = agent_set_init(&walk.tried, program->agent_count) && walk.bytes && walk.state &&
                 walk.steps && walk.tree;
    bool good = ready && gather(&walk);
    if (walk.tree)
        fclose(walk.tree);
    FILE *out = good && tree ? open_memstream(&text, &size) : NULL;
    if (out) {
        write_all(&walk, options, hash, tree, out);
        fclose(out);
    }
    free(tree);
    free(walk.bytes);
    machine_free(walk.state);
    free(walk.steps);
    agent_set_fini(&walk.tried);
    program_close(program);
    return text;
}
