/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - see explain.h: replays the path through the machine and lets it describe each step.
 */
#include "explain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 640 };

static const char *explain_task_name(const struct program *p, int op)
{
    return op >= 0 && p->ops[op].task >= 0 ? p->plan->pipeline.tasks[p->ops[op].task].name : NULL;
}

static void describe_step(const struct program *p, const struct state *state,
                          struct transition step, struct arena *arena, struct story_step *out)
{
    char text[TEXT], name[TEXT];
    struct action_words words;
    machine_describe_action(p, state, step, text, sizeof text);
    machine_action_words(p, state, step.agent, &words);
    program_agent_name(p, step.agent, name, sizeof name);
    out->rank = p->agents[step.agent].rank;
    out->agent = arena_strdup(arena, name);
    out->action = arena_strdup(arena, text);
    out->subject = arena_strdup(arena, words.subject);
    out->stream = words.stream ? arena_strdup(arena, words.stream) : NULL;
    out->pushed = arena_strdup(arena, words.pushed);
    out->behind = arena_strdup(arena, words.behind);
    out->agent_index = step.agent;
    out->agent_kind = p->agents[step.agent].kind;
    out->choice = step.choice;
}

/* A collective is completed by its communicator, for all members at once. */
static int finisher(const struct program *p, int agent, const struct effect *effect)
{
    bool collective =
        effect->kind == EFFECT_START && effect->op >= 0 && p->ops[effect->op].kind == OP_COLLECTIVE;
    return collective ? program_comm_agent(p, p->ops[effect->op].comm) : agent;
}

/* Is the agent a worker between two instances? */
static bool is_waiting_worker(const struct program *p, const struct state *state, int agent)
{
    const struct agent *desc = &p->agents[agent];
    int64_t iteration;
    return desc->kind == AGENT_THREAD && p->threads[desc->index].kind == THREAD_WORKER &&
           machine_current_op(p, state, agent, &iteration) < 0;
}

static bool describe_steps(const struct program *p, struct state *state,
                           const struct search_path *path, struct arena *arena, struct story *out,
                           struct effect *last)
{
    out->steps = ARENA_ARRAY(arena, path->count, struct story_step);
    if (!out->steps)
        return false;
    for (size_t i = 0; i < path->count; i++) {
        struct story_step *step = &out->steps[i];
        describe_step(p, state, path->steps[i], arena, step);
        step->opens = is_waiting_worker(p, state, path->steps[i].agent);
        machine_step(p, state, path->steps[i], last);
        step->closes = is_waiting_worker(p, state, path->steps[i].agent);
        step->task = explain_task_name(p, last->op);
        step->iteration = last->op >= 0 && p->tasks ? last->iteration : -1;
        step->kind = last->kind;
        step->finished_by = finisher(p, path->steps[i].agent, last);
        step->program_op = last->op;
        step->op = last->op >= 0 ? (int)p->ops[last->op].kind : -1;
    }
    out->step_count = path->count;
    return true;
}

static int find_blocked(const struct story *story, int agent)
{
    for (size_t i = 0; i < story->blocked_count; i++)
        if (story->blocked[i].agent_index == agent)
            return (int)i;
    return -1;
}

static bool describe_blocked(const struct program *p, const struct state *state,
                             struct arena *arena, struct story *out)
{
    out->blocked = ARENA_ARRAY(arena, (size_t)p->agent_count, struct story_blocked);
    if (!out->blocked)
        return false;
    for (int agent = 0; agent < p->agent_count; agent++) {
        if (!machine_hangs(p, state, agent))
            continue;
        char text[TEXT];
        struct story_blocked *blocked = &out->blocked[out->blocked_count++];
        blocked->rank = p->agents[agent].rank;
        blocked->agent_index = agent;
        blocked->agent_kind = p->agents[agent].kind;
        blocked->agent = arena_strdup(arena, program_agent_name(p, agent, text, sizeof text));
        blocked->waits_for =
            arena_strdup(arena, machine_describe_wait(p, state, agent, text, sizeof text));
    }
    for (size_t i = 0; i < out->blocked_count; i++) {
        struct wait wait;
        machine_why(p, state, out->blocked[i].agent_index, &wait);
        out->blocked[i].on = wait.agent < 0 ? -1 : find_blocked(out, wait.agent);
    }
    return true;
}

/* "task Forward(1) of rank 0 fails, and rank 1 driver is never woken". */
static const char *explain_describe_fault(const struct program *p, const struct story *story,
                                          struct arena *arena)
{
    const char *fault = "something fails", *blocked = "a thread";
    char text[2 * TEXT];
    for (size_t i = 0; i < story->step_count; i++)
        if (story->steps[i].agent_kind == AGENT_FAULT)
            fault = story->steps[i].action;
    for (size_t i = story->blocked_count; i-- > 0;)
        if (p->agents[story->blocked[i].agent_index].kind == AGENT_THREAD)
            blocked = story->blocked[i].agent;
    snprintf(text, sizeof text, "%s, and %s is never woken", fault, blocked);
    return arena_strdup(arena, text);
}

/* Follow "must act first" from each agent until an agent comes twice. */
static bool find_cycle(struct arena *arena, struct story *out)
{
    out->cycle = ARENA_ARRAY(arena, out->blocked_count, int);
    int *seen = ARENA_ARRAY(arena, out->blocked_count, int);
    if (!out->cycle || !seen)
        return false;
    for (size_t start = 0; start < out->blocked_count && out->cycle_count == 0; start++) {
        memset(seen, 0, out->blocked_count * sizeof *seen);
        int at = (int)start;
        while (at >= 0 && !seen[at]) {
            seen[at] = 1;
            at = out->blocked[at].on;
        }
        for (int k = at; k >= 0 && !out->blocked[k].in_cycle; k = out->blocked[k].on) {
            out->blocked[k].in_cycle = true;
            out->cycle[out->cycle_count++] = k;
        }
    }
    return true;
}

/* The other form of a slot hazard: an agent waits for an event or flag that has been cleared. */
static void find_stale_wait(const struct program *p, const struct state *state, struct effect *out)
{
    int64_t wanted, found;
    for (int agent = 0; agent < p->agent_count; agent++)
        if (machine_stale_wait(p, state, agent, &wanted, &found)) {
            out->op = machine_current_op(p, state, agent, &out->iteration);
            out->wanted = wanted;
            out->found = found;
        }
}

static bool explain_accesses(const struct program *p, int op, int buffer, bool write)
{
    for (int i = 0; op >= 0 && i < p->ops[op].access_count; i++) {
        const struct access *access = &p->accesses[p->ops[op].access_first + i];
        if (access->buffer == buffer && access->write == write)
            return true;
    }
    return false;
}

/* The machine knows the agent of the other access; its step is the last one that makes it. */
static void find_other_access(const struct program *p, struct story *story,
                              struct other_access *other)
{
    for (size_t i = story->step_count; i-- > 1 && story->other_step < 0;) {
        const struct story_step *step = &story->steps[i - 1];
        if (step->agent_index == other->agent && step->kind != EFFECT_FINISH &&
            explain_accesses(p, step->program_op, other->buffer, other->write))
            story->other_step = (int)i - 1;
    }
    if (story->other_step < 0)
        return;
    other->op = story->steps[story->other_step].program_op;
    other->iteration = story->steps[story->other_step].iteration;
}

enum status explain_path(const struct program *program, enum property property,
                         const struct search_path *path, struct arena *arena, struct story *out,
                         struct diag *diag)
{
    *out = (struct story){.other_step = -1};
    struct state *state = machine_state(program);
    if (!state)
        return diag_no_memory(diag);
    struct effect last = effect_none();
    bool described = describe_steps(program, state, path, arena, out, &last);
    if (described && (property == PROPERTY_DEADLOCK || property == PROPERTY_DRAIN ||
                      property == PROPERTY_FAULTS ||
                      (property == PROPERTY_SLOT && !(last.violated & 1u << PROPERTY_SLOT))))
        described = describe_blocked(program, state, arena, out) && find_cycle(arena, out);
    if (property == PROPERTY_SLOT && !(last.violated & 1u << PROPERTY_SLOT))
        find_stale_wait(program, state, &last);
    if (described && property == PROPERTY_RACE && last.violated & 1u << PROPERTY_RACE)
        find_other_access(program, out, &last.race);
    char text[TEXT];
    out->sentence = arena_strdup(
        arena, machine_describe_violation(program, property, &last, text, sizeof text));
    if (described && property == PROPERTY_FAULTS)
        out->sentence = explain_describe_fault(program, out, arena);
    machine_free(state);
    return described && !arena->failed ? STATUS_OK : diag_no_memory(diag);
}
