/* SPDX-License-Identifier: Apache-2.0 */
/*
 * certify_states.c - all states of a plan, breadth first, and the steps between them: without reduction, or with the set
 * of agents that the reducer would choose in each.
 */
#include "certify.h"

#include <stdlib.h>
#include <string.h>

#include "reduce.h"
#include "machine/machine.h"
#include "base/hash.h"
#include "base/text_stream.h"
#include "faults.h"
#include "base/sort.h"

enum { LOOK_EVERY = 256 };

struct gatherer {
    const struct certifier *certifier;
    const struct program *p;
    char *bytes;
    size_t count, most, table_size;
    size_t *table;
    struct state *state;
    struct transition *steps;
    struct reducer *reducer; /* NULL: every step is taken */
    struct transition *choices;
    struct agent_set tried;
    int *seeds;
    FILE *out; /* the states, which their number precedes */
    unsigned violated;
};

static char *certify_states_place_of(const struct gatherer *g, size_t index)
{
    return g->bytes + index * g->p->at.bytes;
}

/* An agent of the set that the reducer chooses: the closed set around it is no larger. */
static int find_seed(struct gatherer *g)
{
    return reducer_choices(g->reducer, g->state, g->choices) > 0 ? g->choices[0].agent : 0;
}

/* The index of the state, which is kept; g->most: there is no room for it. */
static size_t certify_states_keep(struct gatherer *g)
{
    const void *cells = g->state->cells;
    size_t at = (size_t)hash_bytes(cells, g->p->at.bytes) % g->table_size;
    for (; g->table[at]; at = (at + 1) % g->table_size)
        if (memcmp(certify_states_place_of(g, g->table[at] - 1), cells, g->p->at.bytes) == 0)
            return g->table[at] - 1;
    if (g->count == g->most)
        return g->most;
    memcpy(certify_states_place_of(g, g->count), cells, g->p->at.bytes);
    if (g->reducer)
        g->seeds[g->count] = find_seed(g);
    g->table[at] = ++g->count;
    return g->count - 1;
}

/* The properties that the state itself violates, given the number of its steps. */
static unsigned certify_states_judge(const struct gatherer *g, int steps)
{
    if (g->p->options.faults)
        return machine_never_woken(g->p, g->state) ? 1u << PROPERTY_FAULTS : 0;
    bool hangs = steps == 0 && !machine_done(g->p, g->state);
    return hangs ? 1u << PROPERTY_DEADLOCK | 1u << PROPERTY_DRAIN : 0;
}

static bool certify_states_expand(struct gatherer *g, size_t index)
{
    memcpy(g->state->cells, certify_states_place_of(g, index), g->p->at.bytes);
    int count = machine_enabled(g->p, g->state, g->steps);
    g->violated |= certify_states_judge(g, count);
    fputs("state", g->out);
    if (g->reducer)
        fprintf(g->out, " %d", g->seeds[index]);
    if (g->reducer && count > 0)
        count = proof_tried_steps(g->p, g->state, g->seeds[index], &g->tried, g->steps);
    for (int k = 0; k < count; k++) {
        struct effect effect;
        memcpy(g->state->cells, certify_states_place_of(g, index), g->p->at.bytes);
        machine_step(g->p, g->state, g->steps[k], &effect);
        g->violated |= effect.violated;
        machine_canonical(g->p, g->state);
        size_t to = certify_states_keep(g);
        if (to == g->most)
            return false;
        fprintf(g->out, " %zu", to);
    }
    fputc('\n', g->out);
    return true;
}

static unsigned covers_of(const struct gatherer *g)
{
    return g->reducer ? proof_reduced_covers(g->p) : proof_states_covers(g->p);
}

static void certify_states_gather(struct gatherer *g)
{
    const struct certifier *certifier = g->certifier;
    bool all = true;
    machine_canonical(g->p, g->state);
    certify_states_keep(g);
    for (size_t i = 0; i < g->count && all; i++) {
        all = certify_states_expand(g, i) &&
              !(g->violated & (1u << PROPERTY_MISMATCH | 1u << PROPERTY_FAULTS));
        if (i % LOOK_EVERY == 0 && watch_own_watch_look(certifier->watch))
            all = false;
    }
    if (g->violated & 1u << PROPERTY_FAULTS)
        certify_why_not(certifier, "a thread is not woken after a fault");
    else if (!all)
        certify_why_not(certifier, "there are too many states to list");
    else if (g->violated & 1u << PROPERTY_DEADLOCK)
        certify_why_not(certifier, "not every state can go on");
    else
        *certifier->proves = certifier->asked & ~g->violated & covers_of(g);
}

static bool certify_states_open_tables(struct gatherer *g)
{
    const struct program *p = g->p;
    g->most = PROOF_STATE_BYTES / p->at.bytes;
    g->most = g->most < g->certifier->most_states ? g->most : g->certifier->most_states;
    g->table_size = 2 * g->most + 1;
    g->bytes = malloc(g->most * p->at.bytes + 1);
    g->table = calloc(g->table_size, sizeof *g->table);
    g->seeds = calloc(g->most + 1, sizeof *g->seeds);
    g->state = machine_state(p);
    g->steps = calloc(machine_most_transitions(p) + 1, sizeof *g->steps);
    g->choices = calloc(machine_most_transitions(p) + 1, sizeof *g->choices);
    bool tried = agent_set_init(&g->tried, p->agent_count);
    return tried && g->bytes && g->table && g->seeds && g->state && g->steps && g->choices;
}

static void certify_states_close_tables(struct gatherer *g)
{
    free(g->bytes);
    free(g->table);
    free(g->seeds);
    machine_free(g->state);
    free(g->steps);
    free(g->choices);
    agent_set_fini(&g->tried);
}

struct numbered_part {
    const struct part *part;
    int number;
};

static int certify_states_compare_parts(const void *a, const void *b)
{
    const struct part *x = ((const struct numbered_part *)a)->part;
    const struct part *y = ((const struct numbered_part *)b)->part;
    return compare_then(compare_int(x->channel, y->channel),
                        compare_then(compare_int(x->tag, y->tag), (x > y) - (x < y)));
}

/* Of each channel and tag the n-th send and receive; -1 where there is none. `sorted`: by both. */
static void find_partners(const struct numbered_part *sorted, size_t count, int *partner)
{
    size_t ends[2] = {0, 0}; /* the next receive and the next send to look at */
    for (size_t i = 0; i < count; i++) {
        const struct part *part = sorted[i].part;
        size_t *other = &ends[!part->send];
        for (; *other < count; ++*other) {
            const struct part *met = sorted[*other].part;
            bool before = met->channel < part->channel ||
                          (met->channel == part->channel && met->tag < part->tag);
            if (!before && met->send != part->send)
                break;
        }
        if (*other == count || sorted[*other].part->channel != part->channel ||
            sorted[*other].part->tag != part->tag)
            continue;
        partner[sorted[i].number] = sorted[*other].number;
        ++*other;
    }
}

bool certify_partners(const struct program *p, FILE *out)
{
    struct arena arena;
    arena_init(&arena, 0);
    struct numbered_part *sorted = ARENA_ARRAY(&arena, p->part_count + 1, struct numbered_part);
    int *partner = ARENA_ARRAY(&arena, p->part_count + 1, int);
    bool good = sorted && partner;
    for (size_t i = 0; good && i < p->part_count; i++) {
        sorted[i] = (struct numbered_part){&p->parts[i], (int)i};
        partner[i] = -1;
    }
    if (good && p->part_count > 0) {
        SORT(sorted, p->part_count, certify_states_compare_parts);
        find_partners(sorted, p->part_count, partner);
    }
    for (size_t i = 0; good && i < p->part_count; i++)
        fprintf(out, "partner %d\n", partner[i]);
    arena_fini(&arena);
    return good;
}

static enum status write_states(struct gatherer *g, const char *key, struct diag *diag)
{
    struct text_stream stream;
    char *tree = NULL;
    if (!(g->certifier->asked & covers_of(g))) {
        certify_why_not(g->certifier, "no kind of certificate covers it");
        return STATUS_OK;
    }
    if (certify_states_open_tables(g) && text_open(&stream)) {
        g->out = stream.out;
        certify_states_gather(g);
        tree = text_close(&stream, true, NULL);
    }
    bool good = tree != NULL;
    if (good && *g->certifier->proves & 1u << PROPERTY_MESSAGE)
        good = certify_partners(g->p, g->certifier->out);
    if (good)
        fprintf(g->certifier->out, "%s %zu\n%s", key, g->count, tree);
    free(tree);
    certify_states_close_tables(g);
    return good ? STATUS_OK : diag_no_memory(diag);
}

enum status certify_states(const struct certifier *certifier, struct diag *diag)
{
    struct gatherer g = {.certifier = certifier, .p = certifier->program};
    return write_states(&g, "states", diag);
}

enum status certify_reduced(const struct certifier *certifier, struct diag *diag)
{
    struct reducer reducer;
    struct gatherer g = {.certifier = certifier, .p = certifier->program, .reducer = &reducer};
    enum status status = reducer_init(&reducer, g.p, PACE_ANY, STAGED_EITHER)
                             ? write_states(&g, "reduced_states", diag)
                             : diag_no_memory(diag);
    reducer_fini(&reducer);
    return status;
}

enum status certify_teams(const struct certifier *certifier, struct diag *diag)
{
    const unsigned life = 1u << PROPERTY_DEADLOCK | 1u << PROPERTY_DRAIN | 1u << PROPERTY_MISMATCH;
    bool proved, lives = (certifier->before & life) == life;
    enum status status = faults_proved_by_structure(certifier->program, lives, &proved, diag);
    if (status == STATUS_OK && proved)
        *certifier->proves = certifier->asked & proof_teams_covers(certifier->program);
    return status;
}
