/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - see explain.h: replays the path through the machine and lets it describe each step.
 */
#include "explain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert_index.h"

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
    bool collective = effect->kind == EFFECT_START && effect->op >= 0 &&
                      op_ends_together(p->ops[effect->op].kind);
    return collective ? program_comm_agent(p, p->ops[effect->op].comm) : agent;
}

/* True if the agent is a worker between two instances. */
static bool is_waiting_worker(const struct program *p, const struct state *state, int agent)
{
    ASSERT_INDEX(agent, p->agent_count);
    const struct agent *desc = &p->agents[agent];
    int64_t iteration;
    return desc->kind == AGENT_THREAD && p->threads[desc->index].kind == THREAD_WORKER &&
           machine_current_op(p, state, agent, &iteration) < 0;
}

static struct mark mark_of_op(const struct program *p, int op)
{
    ASSERT_INDEX(op, p->op_count);
    const int task = p->ops[op].task;
    return task >= 0 ? p->plan->pipeline.tasks[task].mark : p->ops[op].mark;
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
        step->mark = last->op >= 0 ? mark_of_op(p, last->op) : (struct mark){0};
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

/* The step that pushed the operation of a later one; -1: none. */
static int find_push(const struct program *p, const struct story *story, int op, int64_t iteration)
{
    for (size_t i = 0; i < story->step_count; i++) {
        const struct story_step *step = &story->steps[i];
        if (step->program_op == op && step->iteration == iteration && step->kind == EFFECT_HOST &&
            op_pushes(p->ops[op].kind))
            return (int)i;
    }
    return -1;
}

static const char *agent_name_of(const struct program *p, int agent, struct arena *arena)
{
    char text[TEXT];
    return arena_strdup(arena, program_agent_name(p, agent, text, sizeof text));
}

static struct story_place place_of(const struct program *p, const struct story *story, int op,
                                   int64_t iteration, const char *agent, struct arena *arena)
{
    char text[TEXT];
    const int push = find_push(p, story, op, iteration);
    const char *pusher = push >= 0 ? story->steps[push].agent : NULL;
    ASSERT_INDEX(op, p->op_count);
    if (op_pushes(p->ops[op].kind) && p->ops[op].stream >= 0)
        agent = agent_name_of(p, program_stream_agent(p, p->ops[op].stream), arena);
    if (op_operand(p->ops[op].kind) == OPERAND_BUFFER)
        snprintf(text, sizeof text, "%s of %s", op_key(p->ops[op].kind),
                 program_object_name(p, &p->ops[op]));
    else
        program_op_subject(p, &p->ops[op], iteration, text, sizeof text);
    return (struct story_place){.subject = arena_strdup(arena, text),
                                .agent = agent,
                                .pusher = pusher && strcmp(pusher, agent) != 0 ? pusher : NULL,
                                .mark = mark_of_op(p, op)};
}

/* The last step of the story that makes the buffer unfit: the push of work that may still use it, its free, or an allocation
   that the thread does not know of. -1: the story has none. */
static int find_user(const struct program *p, const struct story *story,
                     const struct other_access *other)
{
    for (size_t i = story->step_count; i-- > 1;) {
        const struct story_step *step = &story->steps[i - 1];
        if (step->program_op < 0)
            continue;
        const struct op *op = &p->ops[step->program_op];
        const bool object = op->object == other->buffer;
        if (other->agent < 0 ? op->kind == OP_FREE && object
            : other->early   ? op_allocates(op->kind) && object
                             : op->stream >= 0 && op_pushes(op->kind) &&
                                 program_stream_agent(p, op->stream) == other->agent &&
                                 (explain_accesses(p, step->program_op, other->buffer, true) ||
                                  explain_accesses(p, step->program_op, other->buffer, false)))
            return (int)i - 1;
    }
    return -1;
}

/* The allocation that gets the memory: the last one on the stream of the operation at the end; -1: not known. */
static int find_reuse(const struct program *p, const struct story *story, int op)
{
    for (size_t i = story->step_count; i-- > 0;) {
        const struct story_step *step = &story->steps[i];
        if (step->program_op >= 0 && p->ops[step->program_op].kind == OP_ALLOC &&
            (op < 0 || p->ops[op].stream < 0 ||
             p->ops[op].stream == p->ops[step->program_op].stream))
            return (int)i;
    }
    return -1;
}

static void add_place(struct story *story, struct story_place place)
{
    if (story->places) /* else memory is exhausted, which the arena knows */
        story->places[story->place_count++] = place;
}

/* Both operations of a race, or of a lifetime that is not kept. */
static void place_both(const struct program *p, struct story *story, const struct effect *last,
                       struct other_access *other, struct arena *arena)
{
    const struct story_step *end = &story->steps[story->step_count - 1];
    const int reuse = last->violated & 1u << PROPERTY_LIFETIME && other->agent >= 0 && !other->early
                          ? find_reuse(p, story, last->op)
                          : -1;
    const int user = story->other_step >= 0 ? story->other_step : find_user(p, story, other);
    if (reuse >= 0)
        end = &story->steps[reuse];
    story->places = ARENA_ARRAY(arena, 2, struct story_place);
    if (end->program_op >= 0)
        add_place(story, place_of(p, story, end->program_op, end->iteration, end->agent, arena));
    if (user < 0)
        return;
    const struct story_step *step = &story->steps[user];
    other->op = step->program_op;
    other->iteration = step->iteration;
    add_place(story,
              place_of(p, story, other->op, step->iteration,
                       other->agent >= 0 && !other->early ? agent_name_of(p, other->agent, arena)
                                                          : step->agent,
                       arena));
}

/* Notes the operations at which the agents of the cycle wait; without a cycle, those of all blocked agents. */
static void place_blocked(const struct program *p, const struct state *state, struct story *story,
                          struct arena *arena)
{
    story->places = ARENA_ARRAY(arena, story->blocked_count, struct story_place);
    for (size_t i = 0; i < story->blocked_count; i++) {
        struct story_blocked *blocked = &story->blocked[i];
        int64_t iteration;
        const int op = machine_current_op(p, state, blocked->agent_index, &iteration);
        if (op < 0)
            continue;
        blocked->place = place_of(p, story, op, iteration, blocked->agent, arena);
        if (story->cycle_count == 0 || blocked->in_cycle)
            add_place(story, blocked->place);
    }
}

/* The operation that breaks another property, and of a mismatch the one that it meets. */
static void place_last(const struct program *p, struct story *story, const struct effect *last,
                       struct arena *arena)
{
    const struct counterpart *met = &last->met;
    story->places = ARENA_ARRAY(arena, 2, struct story_place);
    if (last->op >= 0 && story->step_count > 0)
        add_place(story, place_of(p, story, last->op, last->iteration,
                                  story->steps[story->step_count - 1].agent, arena));
    if (met->op >= 0)
        add_place(story,
                  place_of(p, story, met->op, met->iteration,
                           met->agent >= 0 ? agent_name_of(p, met->agent, arena) : NULL, arena));
}

/* ---- where a story begins -------------------------------------------------------------------- */

static void begin_at(struct story *story, int step)
{
    if (step >= 0 && (size_t)step < story->well)
        story->well = (size_t)step;
}

/* With the push of an operation that a step does. */
static void begin_with(const struct program *p, struct story *story, const struct story_step *step)
{
    if (step->program_op >= 0)
        begin_at(story, find_push(p, story, step->program_op, step->iteration));
}

/* An agent that hangs has taken its last step: from then on its wait is not to end. */
static void begin_with_hang(struct story *story)
{
    for (size_t k = 0; k < story->blocked_count; k++) {
        int last = -1;
        if (story->cycle_count > 0 && !story->blocked[k].in_cycle)
            continue;
        for (size_t i = 0; i < story->step_count; i++)
            if (story->steps[i].agent_index == story->blocked[k].agent_index)
                last = (int)i;
        begin_at(story, last);
    }
}

/* The step of the other member of a mismatch. */
static void begin_with_meeting(const struct program *p, struct story *story,
                               const struct counterpart *met)
{
    for (size_t i = 0; i < story->step_count; i++)
        if (met->op >= 0 && story->steps[i].program_op == met->op &&
            story->steps[i].iteration == met->iteration)
            begin_at(story, (int)i);
    begin_with(p, story, &story->steps[story->step_count - 1]);
}

static void find_beginning(const struct program *p, enum property property,
                           const struct effect *last, struct story *story)
{
    story->well = story->step_count;
    if (story->step_count == 0)
        return;
    if (story->blocked_count > 0)
        begin_with_hang(story);
    else if (property == PROPERTY_MISMATCH)
        begin_with_meeting(p, story, &last->met);
    else if (property == PROPERTY_RACE || property == PROPERTY_LIFETIME) {
        begin_with(p, story, &story->steps[story->step_count - 1]);
        begin_at(story, story->other_step);
        if (story->other_step >= 0)
            begin_with(p, story, &story->steps[story->other_step]);
    }
    if (story->well == story->step_count) /* not known */
        story->well = 0;
}

/* ---- what has no part in it ---------------------------------------------------------------------- */

/* A story that is longer than this leaves out what has no part in it. */
enum { LONG_STORY = 30 };

/* The operations that a story is about, and the threads that do or push them. */
struct parties {
    const struct program *p;
    int ops[2], threads[2]; /* program->ops; agents, -1: not known */
};

static bool is_of_both(const struct parties *parties, const struct story_step *step)
{
    return step->program_op == parties->ops[0] || step->program_op == parties->ops[1];
}

static bool is_on_stream_of_both(const struct parties *parties, int stream)
{
    const struct op *ops = parties->p->ops;
    return stream >= 0 &&
           (stream == ops[parties->ops[0]].stream || stream == ops[parties->ops[1]].stream);
}

/* Of two operations without an order a step is a part that might order them: their pushes, what their streams record and wait
   for, what their threads wait for, what becomes of memory. */
static bool may_order_both(const struct parties *parties, const struct story_step *step)
{
    const struct op *op = step->program_op >= 0 ? &parties->p->ops[step->program_op] : NULL;
    const bool of_thread =
        step->agent_index == parties->threads[0] || step->agent_index == parties->threads[1];
    if (!op || is_of_both(parties, step))
        return op != NULL;
    switch (op_operand(op->kind)) {
    case OPERAND_EVENT:
        return op_pushes(op->kind) ? is_on_stream_of_both(parties, op->stream) : of_thread;
    case OPERAND_BUFFER: return true;
    case OPERAND_FLAG:
    case OPERAND_QUEUE:
    case OPERAND_LOCK:
    case OPERAND_TURN:
        return op_pushes(op->kind) ? is_on_stream_of_both(parties, op->stream)
                                   : of_thread && parties->threads[0] != parties->threads[1];
    case OPERAND_NONE:
    case OPERAND_BARRIER:
    case OPERAND_COMM:
    case OPERAND_SUBMISSION: break;
    }
    return op_syncs(op->kind) && of_thread;
}

static int thread_of_step(const struct program *p, const struct story *story,
                          const struct story_step *step)
{
    const int push = find_push(p, story, step->program_op, step->iteration);
    return push >= 0 ? story->steps[push].agent_index : step->agent_index;
}

static void set_aside_of_race(const struct program *p, struct story *story)
{
    const struct story_step *last = &story->steps[story->step_count - 1];
    if (story->other_step < 0 || last->program_op < 0)
        return;
    const struct story_step *other = &story->steps[story->other_step];
    const struct parties parties = {
        p,
        {last->program_op, other->program_op},
        {thread_of_step(p, story, last), thread_of_step(p, story, other)}};
    for (size_t i = 0; i < story->step_count; i++)
        story->steps[i].aside = !may_order_both(&parties, &story->steps[i]);
}

static bool is_agent_in_cycle(const struct story *story, int agent)
{
    const int blocked = find_blocked(story, agent);
    return blocked >= 0 && story->blocked[blocked].in_cycle;
}

static void set_aside_of_hang(const struct program *p, struct story *story)
{
    for (size_t i = 0; i < story->step_count; i++) {
        struct story_step *step = &story->steps[i];
        const int stream = step->program_op >= 0 ? p->ops[step->program_op].stream : -1;
        step->aside = !is_agent_in_cycle(story, step->agent_index) &&
                      (stream < 0 || !is_agent_in_cycle(story, program_stream_agent(p, stream)));
    }
    for (size_t i = 0; i < story->blocked_count; i++) {
        struct story_blocked *blocked = &story->blocked[i];
        blocked->aside = !blocked->in_cycle && blocked->agent_kind == AGENT_THREAD &&
                         blocked->on >= 0 && story->blocked[blocked->on].agent_kind == AGENT_THREAD;
    }
}

/* A mismatch is about one communicator. */
static void set_aside_of_mismatch(const struct program *p, struct story *story)
{
    const int op = story->steps[story->step_count - 1].program_op;
    for (size_t i = 0; op >= 0 && i < story->step_count; i++) {
        const int own = story->steps[i].program_op;
        story->steps[i].aside = own < 0 || p->ops[own].comm != p->ops[op].comm;
    }
}

/* The communicator of the last operation of an agent; -1: it has none. */
static int last_comm_of(const struct program *p, const struct story *story, int agent)
{
    for (size_t i = story->step_count; i-- > 0;)
        if (story->steps[i].agent_index == agent && story->steps[i].program_op >= 0)
            return p->ops[story->steps[i].program_op].comm;
    return -1;
}

/* Streams that all wait in communicators, for somebody who does not come: the steps of these communicators. */
static void set_aside_of_wait(const struct program *p, struct story *story)
{
    bool *waited = calloc((size_t)p->comm_count + 1, sizeof *waited), all = waited != NULL;
    size_t streams = 0;
    for (size_t i = 0; all && i < story->blocked_count; i++) {
        if (story->blocked[i].agent_kind != AGENT_STREAM)
            continue;
        const int comm = last_comm_of(p, story, story->blocked[i].agent_index);
        streams++;
        all = comm >= 0;
        if (all)
            waited[comm] = true;
    }
    for (size_t i = 0; all && streams > 0 && i < story->step_count; i++) {
        const int op = story->steps[i].program_op, comm = op < 0 ? -1 : p->ops[op].comm;
        story->steps[i].aside = comm < 0 || !waited[comm];
    }
    free(waited); /* without memory the story is told whole */
}

/* Threads of a host program do much beside the two operations; the lists of rank programs are told whole. */
static void set_aside(const struct program *p, enum property property, struct story *story)
{
    if (p->plan->form != FORM_THREADS || p->owned_plan || story->step_count <= LONG_STORY)
        return;
    if (story->cycle_count > 0) {
        set_aside_of_hang(p, story);
        return;
    }
    if (property == PROPERTY_DEADLOCK)
        set_aside_of_wait(p, story);
    if (property == PROPERTY_RACE || property == PROPERTY_LIFETIME)
        set_aside_of_race(p, story);
    if (property == PROPERTY_MISMATCH)
        set_aside_of_mismatch(p, story);
    story->steps[story->step_count - 1].aside = false;
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
    if (described && property == PROPERTY_RACE && last.violated & 1u << PROPERTY_RACE) {
        find_other_access(program, out, &last.race);
        place_both(program, out, &last, &last.race, arena);
    }
    if (described && property == PROPERTY_LIFETIME && last.violated & 1u << PROPERTY_LIFETIME) {
        out->other_step = find_user(program, out, &last.lifetime);
        place_both(program, out, &last, &last.lifetime, arena);
    }
    if (described && out->blocked_count > 0)
        place_blocked(program, state, out, arena);
    else if (described && !out->places)
        place_last(program, out, &last, arena);
    if (described)
        find_beginning(program, property, &last, out);
    if (described && out->step_count > 0)
        set_aside(program, property, out);
    char text[TEXT];
    out->sentence = arena_strdup(
        arena, machine_describe_violation(program, property, &last, text, sizeof text));
    if (described && property == PROPERTY_FAULTS)
        out->sentence = explain_describe_fault(program, out, arena);
    machine_free(state);
    return described && !arena->failed ? STATUS_OK : diag_no_memory(diag);
}
