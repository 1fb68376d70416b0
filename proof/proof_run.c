/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proof_run.c - numbers and paths of a program without iterations.
 *
 *     number EXECUTE [START [DONE]]     of each operation in order, as many as it has events
 *     meeting NUMBER OP...              of each collective in order: when and where its members meet
 *     buffer BUFFER                     for race and value: of each that is accessed,
 *     access OP                         its accesses, in the order of their numbers,
 *     path COUNT EVENT...               and from those that must come before each a path to it
 *
 * Every number is larger than those of all events that its own waits for, so of the events that have not happened
 * the one with the least number can: nothing hangs. Each path is one of happens-before.
 */
#include "proof.h"
#include "run_graph.h"

#include <inttypes.h>
#include <stdlib.h>

struct run_proof {
    const struct run_graph *graph;
    struct certificate *c;
    int64_t *number; /* per event */
    int *left;       /* per buffer: operations that access it and are not listed */
    int *open;       /* reads since the last write */
    unsigned proves;
};

/* ---- numbers ----------------------------------------------------------------------------------- */

static bool read_numbers(struct run_proof *proof)
{
    const struct run_graph *g = proof->graph;
    const struct program *p = g->program;
    for (int op = 0; op < (int)p->op_count && certificate_expect(proof->c, "number"); op++) {
        int events = !op_pushes(p->ops[op].kind) ? 1 : op_is_mark(p->ops[op].kind) ? 2 : RUN_PARTS;
        for (int part = 0; part < events; part++)
            certificate_number(proof->c, 0, CERTIFICATE_MOST,
                               &proof->number[run_event(g, op, (enum run_part)part)]);
    }
    for (int m = 0; m < g->meeting_count && certificate_expect(proof->c, "meeting"); m++) {
        certificate_number(proof->c, 0, CERTIFICATE_MOST, &proof->number[run_meeting(g, m)]);
        for (int i = g->meetings.first[m], op; i < g->meetings.first[m + 1]; i++)
            if (certificate_index(proof->c, (int64_t)p->op_count, &op) &&
                op != g->meetings.items[i])
                certificate_refuse(proof->c, "operation %d does not take part in meeting %d", op,
                                   m);
    }
    return !proof->c->refused;
}

static bool numbers_grow(struct run_proof *proof)
{
    const struct run_graph *g = proof->graph;
    for (int64_t event = 0; event < run_event_count(g); event++)
        for (int64_t i = g->first[event]; i < g->first[event + 1]; i++)
            if (proof->number[event] <= proof->number[g->waits[i].event])
                return certificate_refuse(proof->c,
                                          "number %" PRId64 " of event %" PRId64
                                          " is not larger than %" PRId64 " of event %" PRId64
                                          ", for which it waits",
                                          proof->number[event], event,
                                          proof->number[g->waits[i].event], g->waits[i].event);
    return true;
}

static bool same_message(const struct part *a, const struct part *b)
{
    return a->tag == b->tag && (a->bytes == b->bytes || a->bytes == 0 || b->bytes == 0);
}

/* Those that meet are the same. */
static bool partners_agree(struct run_proof *proof)
{
    const struct run_graph *g = proof->graph;
    const struct program *p = g->program;
    bool agree = true;
    for (int m = 0; m < g->meeting_count; m++)
        for (int i = g->meetings.first[m] + 1; i < g->meetings.first[m + 1]; i++)
            agree &= op_same_collective(&p->ops[g->meetings.items[i - 1]],
                                        &p->ops[g->meetings.items[i]]);
    for (int i = 0; i < g->sends.first[p->channel_count]; i++)
        agree &= same_message(&p->parts[g->sends.items[i]], &p->parts[g->receives.items[i]]);
    return agree || certificate_refuse(proof->c, "operations that meet differ");
}

/* ---- accesses ---------------------------------------------------------------------------------- */

static bool is_hop(const struct run_graph *g, int64_t from, int64_t to)
{
    bool found = run_in_line(g, from, to);
    for (int64_t i = g->first[to]; i < g->first[to + 1] && !found; i++)
        found = g->waits[i].known && g->waits[i].event == from;
    return found;
}

static bool read_path(struct run_proof *proof, int64_t from, int64_t to)
{
    int64_t count, event, before = from;
    if (!certificate_expect(proof->c, "path") ||
        !certificate_number(proof->c, 2, CERTIFICATE_MOST, &count))
        return false;
    for (int64_t i = 0; i < count; i++, before = event) {
        if (!certificate_number(proof->c, 0, run_event_count(proof->graph) - 1, &event))
            return false;
        if (i == 0 ? event != from : !is_hop(proof->graph, before, event))
            return certificate_refuse(
                proof->c, "line %" PRId64 ": event %" PRId64 " does not follow from %" PRId64,
                proof->c->line, event, before);
    }
    return before == to || certificate_refuse(proof->c, "line %" PRId64 ": the path ends elsewhere",
                                              proof->c->line);
}

/* Accesses in one thread's body or one stream need no path. */
static bool is_before(struct run_proof *proof, int first, int second)
{
    int64_t from = run_access_event(proof->graph, first),
            to = run_access_event(proof->graph, second);
    return run_in_line(proof->graph, from, to) || read_path(proof, from, to);
}

static void find_accesses(const struct program *p, int op, int buffer, bool *reads, bool *writes)
{
    *reads = *writes = false;
    for (int k = 0; k < p->ops[op].access_count; k++) {
        const struct access *access = &p->accesses[p->ops[op].access_first + k];
        *(access->write ? writes : reads) |= access->buffer == buffer;
    }
}

/* A write comes behind all reads since the last one, or else behind that; a read behind the last write. */
static bool read_buffer(struct run_proof *proof, int buffer)
{
    const struct program *p = proof->graph->program;
    int64_t last_number = -1;
    int op, write = -1, reads_open = 0;
    for (; proof->left[buffer] > 0; proof->left[buffer]--) {
        bool reads, writes, good = true;
        if (!certificate_expect(proof->c, "access") ||
            !certificate_index(proof->c, (int64_t)p->op_count, &op))
            return false;
        int64_t number = proof->number[run_access_event(proof->graph, op)];
        find_accesses(p, op, buffer, &reads, &writes);
        if ((!reads && !writes) || number <= last_number)
            return certificate_refuse(proof->c, "line %" PRId64 ": operation %d is out of place",
                                      proof->c->line, op);
        if (reads && write < 0 && !p->buffers[buffer].initialised &&
            proof->proves & 1u << PROPERTY_VALUE)
            return certificate_refuse(proof->c, "operation %d reads buffer %d before it is written",
                                      op, buffer);
        last_number = number;
        for (int i = 0; writes && i < reads_open && good; i++)
            good = is_before(proof, proof->open[i], op);
        if (good && write >= 0 && !(writes && reads_open > 0))
            good = is_before(proof, write, op);
        if (!good)
            return false;
        if (writes) {
            write = op;
            reads_open = 0;
        } else {
            proof->open[reads_open++] = op;
        }
    }
    return !proof->c->refused;
}

/* Operations that access each buffer; one that both reads and writes counts once. */
static void count_accesses(struct run_proof *proof)
{
    const struct program *p = proof->graph->program;
    for (size_t i = 0; i < p->op_count; i++)
        for (int k = 0; k < p->ops[i].access_count; k++) {
            const struct access *access = &p->accesses[p->ops[i].access_first + k];
            bool seen = false;
            for (int before = 0; before < k; before++)
                seen |= access[before - k].buffer == access->buffer;
            proof->left[access->buffer] += !seen;
        }
}

static bool read_buffers(struct run_proof *proof)
{
    const struct program *p = proof->graph->program;
    int buffer;
    count_accesses(proof);
    while (certificate_accept(proof->c, "buffer"))
        if (!certificate_index(proof->c, p->buffer_count, &buffer) || !read_buffer(proof, buffer))
            return false;
    for (int b = 0; b < p->buffer_count; b++)
        if (proof->left[b] > 0)
            return certificate_refuse(proof->c, "the accesses of buffer %d are left out", b);
    return true;
}

/* ---- the whole --------------------------------------------------------------------------------- */

unsigned proof_run_covers(const struct program *p)
{
    if (p->tasks > 0)
        return 0;
    unsigned covers = 1u << PROPERTY_MESSAGE | 1u << PROPERTY_DEADLOCK | 1u << PROPERTY_MISMATCH |
                      1u << PROPERTY_SLOT | 1u << PROPERTY_DRAIN;
    covers |= p->untracked ? 0 : 1u << PROPERTY_RACE | 1u << PROPERTY_VALUE;
    bool allocates = p->has_lifetimes;
    for (size_t i = 0; i < p->op_count; i++)
        allocates |= p->ops[i].kind == OP_ALLOC;
    covers |= allocates ? 0 : 1u << PROPERTY_LIFETIME;
    /* machine/memory.h tells the rest: of a rank program everything, of a host program what it never allocates */
    covers |= allocates && !p->owned_plan && program_asks_bound(p) ? 0 : 1u << PROPERTY_BOUND;
    return covers;
}

bool proof_run(const struct program *p, struct certificate *c, unsigned proves, bool *no_memory)
{
    struct run_graph graph;
    *no_memory = !run_graph_open(&graph, p);
    struct run_proof proof = {.graph = &graph, .c = c, .proves = proves};
    proof.number =
        calloc(*no_memory ? 1 : (size_t)run_event_count(&graph) + 1, sizeof *proof.number);
    proof.left = calloc((size_t)p->buffer_count + 1, sizeof *proof.left);
    proof.open = calloc(p->op_count + 1, sizeof *proof.open);
    *no_memory |= !proof.number || !proof.left || !proof.open;
    bool ordered = proves & (1u << PROPERTY_RACE | 1u << PROPERTY_VALUE);
    bool good = !*no_memory;
    if (good && graph.refusal)
        good = certificate_refuse(c, "%s", graph.refusal);
    good = good && read_numbers(&proof) && numbers_grow(&proof) && partners_agree(&proof) &&
           (!ordered || read_buffers(&proof));
    free(proof.number);
    free(proof.left);
    free(proof.open);
    run_graph_close(&graph);
    return good;
}
