/* SPDX-License-Identifier: Apache-2.0 */
/* suspects.c - see suspects.h. */
#include "suspects.h"

#include "base/assert_index.h"
#include "base/hash.h"
#include "base/array.h"

#include <string.h>

enum { NAME = 320 };

struct suspects_finder {
    const struct program *program;
    const struct state *state; /* at the end of the path */
    struct effect last;
    struct arena *arena;
    struct suspects *out;
    size_t cap;
};

static bool suspects_same_place(const struct suspect *a, const struct suspect *b)
{
    return a->task == b->task && a->rank == b->rank && a->mark.line == b->mark.line &&
           a->mark.col == b->mark.col;
}

/* The nearer of two views of one operation counts. */
static void suspects_add(struct suspects_finder *finder, const struct suspect *suspect)
{
    struct suspects *out = finder->out;
    for (size_t i = 0; i < out->count; i++)
        if (suspects_same_place(&out->items[i], suspect)) {
            if (suspect->nearness < out->items[i].nearness)
                out->items[i].nearness = suspect->nearness;
            return;
        }
    if (ARENA_GROW(finder->arena, out->items, out->count, finder->cap))
        out->items[out->count++] = *suspect;
}

static void suspects_add_op(struct suspects_finder *finder, int op, int rank, int nearness)
{
    if (op < 0)
        return;
    const struct op *desc = &finder->program->ops[op];
    suspects_add(finder, &(struct suspect){desc->task, desc->mark, rank, nearness});
}

/* Names instead of indices, which an edit changes. */
static void mix_fingerprint(struct suspects_finder *finder, int agent, int op)
{
    char text[2 * NAME] = "";
    if (agent >= 0)
        program_agent_name(finder->program, agent, text, NAME);
    size_t length = strlen(text);
    if (op >= 0)
        program_op_subject(finder->program, &finder->program->ops[op], 0, text + length, NAME);
    finder->out->fingerprint = hash_mix(finder->out->fingerprint ^ hash_bytes(text, strlen(text)));
}

/* ---- hangs ----------------------------------------------------------------------------------- */

static int suspects_waits_for(const struct suspects_finder *finder, int agent)
{
    struct wait wait;
    machine_why(finder->program, finder->state, agent, &wait);
    return wait.agent;
}

static bool suspects_is_blocked(const struct suspects_finder *finder, int agent)
{
    return machine_hangs(finder->program, finder->state, agent);
}

/* True if following "waits for" from `agent` leads back to it. */
static bool is_in_cycle(const struct suspects_finder *finder, int agent)
{
    int at = agent;
    for (int hops = 0; hops < finder->program->agent_count; hops++) {
        at = suspects_is_blocked(finder, at) ? suspects_waits_for(finder, at) : -1;
        if (at < 0 || at == agent)
            return at == agent;
    }
    return false;
}

/* The instances in the queue of a blocked worker. */
static void add_queue(struct suspects_finder *finder, int agent)
{
    const struct program *p = finder->program;
    ASSERT_INDEX(agent, p->agent_count);
    const struct agent *desc = &p->agents[agent];
    if (desc->kind != AGENT_THREAD || p->threads[desc->index].kind != THREAD_WORKER)
        return;
    int task;
    int64_t iteration;
    for (int k = 0; k < machine_queue(p, finder->state, desc->index, k, &task, &iteration); k++)
        suspects_add(finder, &(struct suspect){task, {0, 0}, desc->rank, 1});
}

static void suspects_add_blocked(struct suspects_finder *finder)
{
    const struct program *p = finder->program;
    for (int agent = 0; agent < p->agent_count; agent++) {
        if (!suspects_is_blocked(finder, agent))
            continue;
        int64_t iteration;
        int rank = p->agents[agent].rank, nearness = is_in_cycle(finder, agent) ? 0 : 1;
        int op = machine_current_op(p, finder->state, agent, &iteration);
        struct wait wait;
        machine_why(p, finder->state, agent, &wait);
        suspects_add_op(finder, op, rank, nearness);
        if (wait.task >= 0)
            suspects_add(finder, &(struct suspect){wait.task, {0, 0}, rank, nearness});
        add_queue(finder, agent);
        mix_fingerprint(finder, agent, op);
    }
}

/* ---- steps that violate ---------------------------------------------------------------------- */

static int suspects_agent_of(const struct program *p, const struct op *op, int rank)
{
    if (op->stream >= 0 && op_pushes(op->kind))
        return program_stream_agent(p, op->stream);
    if (op->task >= 0)
        return program_thread_agent(p, p->worker[rank * p->tasks + op->task]);
    return -1; /* a host thread: any of the rank */
}

static bool touches(const struct program *p, const struct op *op, int buffer)
{
    if (op_allocates(op->kind) && op->object == buffer)
        return true;
    for (int i = 0; i < op->access_count; i++)
        if (p->accesses[op->access_first + i].buffer == buffer)
            return true;
    return false;
}

/* The operations by which `other.agent` may have made the other access. */
static void add_other_access(struct suspects_finder *finder, const struct other_access *other)
{
    const struct program *p = finder->program;
    mix_fingerprint(finder, other->agent, -1);
    if (other->agent < 0 || other->buffer < 0)
        return;
    int rank = p->buffers[other->buffer].rank;
    for (size_t i = 0; i < p->op_count; i++) {
        int agent = suspects_agent_of(p, &p->ops[i], rank);
        if ((agent == other->agent || agent < 0) && touches(p, &p->ops[i], other->buffer))
            suspects_add_op(finder, (int)i, rank, 0);
    }
}

static void add_offenders(struct suspects_finder *finder, int agent)
{
    const struct program *p = finder->program;
    const struct effect *last = &finder->last;
    suspects_add_op(finder, last->op, agent >= 0 ? p->agents[agent].rank : -1, 0);
    mix_fingerprint(finder, agent, last->op);
    if (finder->out->property == PROPERTY_RACE)
        add_other_access(finder, &last->race);
    if (finder->out->property == PROPERTY_LIFETIME)
        add_other_access(finder, &last->lifetime);
    if (last->met.op >= 0) {
        int rank = last->met.agent >= 0 ? p->agents[last->met.agent].rank : -1;
        suspects_add_op(finder, last->met.op, rank, 0);
        mix_fingerprint(finder, last->met.agent, last->met.op);
    }
}

enum status suspects_find(const struct program *program, enum property property,
                          const struct search_path *path, struct arena *arena, struct suspects *out,
                          struct diag *diag)
{
    *out = (struct suspects){.property = property, .fingerprint = (uint64_t)property + 1};
    struct state *state = machine_state(program);
    if (!state)
        return diag_no_memory(diag);
    struct suspects_finder finder = {
        .program = program,
        .state = state,
        .last = effect_none(),
        .arena = arena,
        .out = out,
    };
    for (size_t i = 0; i < path->count; i++)
        machine_step(program, state, path->steps[i], &finder.last);
    if (finder.last.violated & 1u << property)
        add_offenders(&finder, path->steps[path->count - 1].agent);
    else
        suspects_add_blocked(&finder);
    machine_free(state);
    return arena->failed ? diag_no_memory(diag) : STATUS_OK;
}
