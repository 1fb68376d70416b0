/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proof_run.c - numbers and paths of a program without iterations.
 *
 *     number EXECUTE START DONE     of each operation in order, its events; of those that it does not have, any number
 *     meeting NUMBER OP...          of each collective in order: when and where its members meet
 *     access OP                     for race and value: of each buffer in order its accesses, in the order of their numbers,
 *     path COUNT WAIT...            and from those that must come before each a path to it
 *
 * Every number is larger than those of all events that its own waits for, so of the events that have not happened
 * the one with the least number can: nothing hangs. A path names waits, by which knowledge travels; between them it follows
 * one thread's body or one stream.
 */
#include "proof.h"
#include "run_graph.h"

#include <inttypes.h>

#include "base/assert_index.h"

struct run_proof {
    const struct run_graph *graph;
    struct certificate *c;
    int64_t *number; /* per event */
    int *left;       /* per buffer: operations that access it and are not listed */
    int *open;       /* reads since the last write */
    unsigned proves;
};

/* ---- numbers ----------------------------------------------------------------------------------- */

static bool proof_run_read_numbers(struct run_proof *proof)
{
    const struct run_graph *g = proof->graph;
    const int64_t meetings = run_meeting(g, 0);
    for (int64_t event = 0; event < meetings && !proof->c->refused; event++)
        certificate_number(proof->c, event % RUN_PARTS == RUN_EXECUTE ? "number" : NULL, 0,
                           CERTIFICATE_MOST, &proof->number[event]);
    for (int m = 0; m < g->meeting_count && !proof->c->refused; m++) {
        certificate_number(proof->c, "meeting", 0, CERTIFICATE_MOST, &proof->number[meetings + m]);
        for (int i = g->meetings.first[m], op; i < g->meetings.first[m + 1]; i++)
            if (certificate_index(proof->c, NULL, (int64_t)g->program->op_count, &op) &&
                op != g->meetings.items[i])
                certificate_refuse(proof->c, "operation %d does not take part in meeting %d", op,
                                   m);
    }
    return !proof->c->refused;
}

static bool numbers_grow(struct run_proof *proof)
{
    const struct run_wait *waits = proof->graph->waits;
    for (size_t i = 0; i < proof->graph->count; i++)
        if (proof->number[waits[i].event] <= proof->number[waits[i].awaited])
            return certificate_refuse(proof->c,
                                      "number %" PRId64 " of event %" PRId64
                                      " is not larger than %" PRId64 " of event %" PRId64
                                      ", for which it waits",
                                      proof->number[waits[i].event], waits[i].event,
                                      proof->number[waits[i].awaited], waits[i].awaited);
    return true;
}

/* ---- accesses ---------------------------------------------------------------------------------- */

static bool read_path(struct run_proof *proof, int first, int second)
{
    const struct run_graph *g = proof->graph;
    int64_t count, index, at = run_access_event(g, first), to = run_access_event(g, second);
    if (!certificate_number(proof->c, "path", 0, CERTIFICATE_MOST, &count))
        return false;
    for (; count > 0; count--) {
        if (!certificate_number(proof->c, NULL, 0, (int64_t)g->count - 1, &index))
            return false;
        const struct run_wait wait = g->waits[index];
        if (!wait.known || (at != wait.awaited && !run_in_line(g, at, wait.awaited)))
            return certificate_refuse(
                proof->c, "wait %" PRId64 " does not follow from event %" PRId64, index, at);
        at = wait.event;
    }
    return at == to || run_in_line(g, at, to) ||
           certificate_refuse(proof->c, "the path ends elsewhere");
}

static void find_accesses(const struct program *p, int op, int buffer, bool *reads, bool *writes)
{
    *reads = *writes = false;
    ASSERT_INDEX(op, p->op_count);
    for (int k = 0; k < p->ops[op].access_count; k++) {
        const struct access *access = &p->accesses[p->ops[op].access_first + k];
        *(access->write ? writes : reads) |= access->buffer == buffer;
    }
}

/* A write comes behind all reads since the last one, or else behind that; a read behind the last write. */
static bool proof_run_read_buffer(struct run_proof *proof, int buffer)
{
    const struct program *p = proof->graph->program;
    int64_t last_number = -1;
    int op, write = -1, reads_open = 0;
    for (; proof->left[buffer] > 0; proof->left[buffer]--) {
        bool reads, writes, good = true;
        if (!certificate_index(proof->c, "access", (int64_t)p->op_count, &op))
            return false;
        int64_t number = proof->number[run_access_event(proof->graph, op)];
        find_accesses(p, op, buffer, &reads, &writes);
        if ((!reads && !writes) || number <= last_number)
            return certificate_refuse(proof->c, "operation %d is out of place", op);
        if (reads && write < 0 && !p->buffers[buffer].initialised &&
            proof->proves & 1u << PROPERTY_VALUE)
            return certificate_refuse(proof->c, "operation %d reads buffer %d before it is written",
                                      op, buffer);
        last_number = number;
        for (int i = 0; writes && i < reads_open && good; i++)
            good = read_path(proof, proof->open[i], op);
        if (good && write >= 0 && !(writes && reads_open > 0))
            good = read_path(proof, write, op);
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

static bool proof_run_read_buffers(struct run_proof *proof)
{
    bool good = true;
    count_accesses(proof);
    for (int b = 0; b < proof->graph->program->buffer_count && good; b++)
        good = proof_run_read_buffer(proof, b);
    return good;
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
        allocates |= op_allocates(p->ops[i].kind);
    covers |= allocates ? 0 : 1u << PROPERTY_LIFETIME;
    /* machine/memory.h tells the rest: of a rank program everything, of a host program what it never allocates */
    covers |= allocates && !p->owned_plan && program_asks_bound(p) ? 0 : 1u << PROPERTY_BOUND;
    return covers;
}

bool proof_run(const struct program *p, struct certificate *c, unsigned proves)
{
    struct run_graph graph;
    if (!run_graph_open(&graph, p, &c->arena))
        return false;
    if (graph.refusal)
        return certificate_refuse(c, "%s", graph.refusal);
    struct run_proof proof = {.graph = &graph, .c = c, .proves = proves};
    proof.number = ARENA_ARRAY(&c->arena, (size_t)run_event_count(&graph) + 1, int64_t);
    proof.left = ARENA_ARRAY(&c->arena, (size_t)p->buffer_count + 1, int);
    proof.open = ARENA_ARRAY(&c->arena, p->op_count + 1, int);
    bool ordered = proves & (1u << PROPERTY_RACE | 1u << PROPERTY_VALUE);
    return !c->arena.failed && proof_run_read_numbers(&proof) && numbers_grow(&proof) &&
           (!ordered || proof_run_read_buffers(&proof));
}
