/*
 * certify_states.c - all states of a plan, breadth first and without reduction, and how each was reached.
 */
#include "certify.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "machine/machine.h"
#include "plan/hash.h"
#include "plan/text_stream.h"

enum { LOOK_EVERY = 256 };

struct gatherer {
    const struct certifier *certifier;
    const struct program *p;
    char *bytes;
    size_t count, most, table_size;
    size_t *table;
    struct state *state;
    struct transition *steps;
    FILE *out; /* the tree, which its size precedes */
    unsigned violated;
};

static char *place_of(const struct gatherer *g, size_t index)
{
    return g->bytes + index * g->p->at.bytes;
}

/* Keep the state unless it is known; false: there is no room for it. */
static bool keep(struct gatherer *g, size_t parent, struct transition step)
{
    const void *cells = g->state->cells;
    size_t at = (size_t)hash_bytes(cells, g->p->at.bytes) % g->table_size;
    for (; g->table[at]; at = (at + 1) % g->table_size)
        if (memcmp(place_of(g, g->table[at] - 1), cells, g->p->at.bytes) == 0)
            return true;
    if (g->count == g->most)
        return false;
    memcpy(place_of(g, g->count), cells, g->p->at.bytes);
    g->table[at] = ++g->count;
    if (g->count > 1)
        fprintf(g->out, "%zu %d %d\n", parent, step.agent, step.choice);
    return true;
}

/* The properties that the state itself violates, given the number of its steps. */
static unsigned judge(const struct gatherer *g, int steps)
{
    if (g->p->options.faults)
        return machine_never_woken(g->p, g->state) ? 1u << PROPERTY_FAULTS : 0;
    bool hangs = steps == 0 && !machine_done(g->p, g->state);
    return hangs ? 1u << PROPERTY_DEADLOCK | 1u << PROPERTY_DRAIN : 0;
}

static bool expand(struct gatherer *g, size_t index)
{
    memcpy(g->state->cells, place_of(g, index), g->p->at.bytes);
    int count = machine_enabled(g->p, g->state, g->steps);
    g->violated |= judge(g, count);
    for (int k = 0; k < count; k++) {
        struct effect effect;
        memcpy(g->state->cells, place_of(g, index), g->p->at.bytes);
        machine_step(g->p, g->state, g->steps[k], &effect);
        g->violated |= effect.violated;
        machine_canonical(g->p, g->state);
        if (!keep(g, index, g->steps[k]))
            return false;
    }
    return true;
}

static void gather(struct gatherer *g)
{
    const struct certifier *certifier = g->certifier;
    bool all = true;
    machine_canonical(g->p, g->state);
    keep(g, 0, (struct transition){0, 0});
    for (size_t i = 0; i < g->count && all; i++) {
        all = expand(g, i) && !(g->violated & (1u << PROPERTY_MISMATCH | 1u << PROPERTY_FAULTS));
        if (i % LOOK_EVERY == 0 && watch_look(certifier->watch))
            all = false;
    }
    if (g->violated & 1u << PROPERTY_FAULTS)
        certify_why_not(certifier, "a thread is not woken after a fault");
    else if (!all)
        certify_why_not(certifier, "there are too many states to list");
    else if (g->violated & 1u << PROPERTY_DEADLOCK)
        certify_why_not(certifier, "not every state can go on");
    else
        *certifier->proves = certifier->asked & ~g->violated & proof_states_covers(g->p);
}

enum status certify_states(const struct certifier *certifier, struct diag *diag)
{
    const struct program *p = certifier->program;
    struct gatherer g = {.certifier = certifier, .p = p};
    if (!(certifier->asked & proof_states_covers(p))) {
        certify_why_not(certifier, "no kind of certificate covers it");
        return STATUS_OK;
    }
    g.most = PROOF_STATE_BYTES / p->at.bytes;
    g.most = g.most < certifier->most_states ? g.most : certifier->most_states;
    g.table_size = 2 * g.most + 1;
    g.bytes = malloc(g.most * p->at.bytes + 1);
    g.table = calloc(g.table_size, sizeof *g.table);
    g.state = machine_state(p);
    g.steps = calloc(machine_most_transitions(p) + 1, sizeof *g.steps);
    struct text_stream stream;
    char *tree = NULL;
    if (g.bytes && g.table && g.state && g.steps && text_open(&stream)) {
        g.out = stream.out;
        gather(&g);
        tree = text_close(&stream, true, NULL);
    }
    bool good = tree != NULL;
    if (good)
        fprintf(certifier->out, "states %zu\n%s", g.count, tree);
    free(tree);
    free(g.bytes);
    free(g.table);
    machine_free(g.state);
    free(g.steps);
    return good ? STATUS_OK : diag_no_memory(diag);
}
