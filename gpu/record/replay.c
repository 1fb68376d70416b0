/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - see replay.h.
 *
 * Each agent has a queue of steps. Only heads are candidates; the next one taken is the first by
 * (key, agent) that
 *
 *     1. contradicts no clock: its interval does not begin after that of another head ended,
 *     2. is the next push of its rank, if it is a push,
 *     3. is what the agent is at in the machine, and enabled,
 *     4. need not wait for another step by a choice.
 *
 * A collective ends on all members in one step of the machine, at the earliest end logged; the
 * others' ends are then only counted off.
 *
 * To take a step as soon as clock and machine allow it is right for all steps but two kinds: a push, and the call of
 * a wait that would see it (machine/snapshot.h). Where the clock leaves their order open one order is tried, and what
 * is needed to come back is kept until the wait is over; from then on both orders have led to the same state. A
 * replay that is stuck comes back to the last choice and tries the other order. It is stuck for good when no choice is
 * left: then none of the orders that the clock allows is a run of the machine.
 *
 *     push z      |-----------|          wait of the host:  z before its call: it waits for z
 *     call             |                                    call before z: it does not
 */
#include "replay.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/assert_index.h"
#include "base/units.h"

enum { SENTENCE = 320, NAME = 160 };

enum {
    REPLAY_TEXT = 1000,
    REPLAY_CHOICES = 64, /* open at a time; without a wait that takes long there are one or two */
    REPLAY_UNDONE = 1 << 20 /* steps, in all */
};

/* The steps of an agent. */
struct backlog {
    struct replay_step *steps;
    size_t first, count, cap; /* steps[first .. first + count) are pending */
    size_t kept;              /* so many before `first` were taken, and may be pending again */
    size_t pushes_at;         /* none of the first so many pending steps is a push */
    int64_t taken;            /* in all: the place of steps[first] in the agent's order */
};

/* A step by its place in its agent's order. */
struct replay_place {
    int agent;
    int64_t at;
};

/* `first` is, or was, taken before `second`; `turned`: the other way round. */
struct replay_choice {
    struct replay_place first, second, end; /* `end`: of the wait */
    bool turned;
    int64_t settled; /* the replay had taken so many steps when the wait was over; -1: it is not */
    /* before the first of them was taken; `turned`: NULL */
    bool stale; /* the replay's */
    struct state *state;
    int64_t *places; /* [agent_count] of heads */
    int *ended;      /* [stream_count] */
    int64_t taken;
    unsigned violated;
    size_t trail_count;
};

struct replay {
    const struct program *program;
    struct state *state;
    int64_t tolerance_ns;
    replay_observer *observer;
    void *arg;
    struct backlog *queues; /* [agent_count] */
    int *ended;             /* [stream_count]: collectives that have ended in the machine already */
    int64_t pending, taken;
    int64_t until_ns, late_ns; /* steps before this were taken; what came so much behind it */
    char *violations[PROPERTY_COUNT];
    bool stale; /* see replay_has_stale_reads */
    char reason[REPLAY_TEXT];
    char first_reason
        [REPLAY_TEXT]; /* why it was stuck at first: what the orders tried later say is about them */

    bool has_calls; /* the program has waits with a call */
    struct replay_choice choices[REPLAY_CHOICES];
    int choice_count;
    int64_t undone;
    bool unsure;               /* a choice was forgotten */
    struct replay_step *trail; /* steps that may be undone: the observer has not seen them */
    size_t trail_count, trail_cap;
};

/* ---- choices: which steps ----------------------------------------------------------------------------- */

static const struct replay_step *pending_step(const struct backlog *queue, size_t i)
{
    return &queue->steps[queue->first + i];
}

static bool is_same_op(const struct replay_step *a, const struct replay_step *b)
{
    return a->kind == REPLAY_OP && b->kind == REPLAY_OP && a->op == b->op &&
           a->iteration == b->iteration;
}

/* A wait is two steps: the call, and the end with the same operation. */
static bool replay_is_call(const struct replay *replay, const struct backlog *queue, size_t i)
{
    const struct replay_step *step = pending_step(queue, i);
    bool has_before = queue->first + i > 0;
    return step->kind == REPLAY_OP && replay->program->ops[step->op].snapshot &&
           !(has_before && is_same_op(step - 1, step));
}

/* True if the wait of this call would see the push. */
static bool sees(const struct program *p, const struct replay_step *call,
                 const struct replay_step *push)
{
    const struct op *wait = &p->ops[call->op], *op = &p->ops[push->op];
    int thread = p->agents[call->agent].index;
    switch (wait->sync) {
    case SYNC_EVENT: return op_records(op->kind) && op->object == wait->object;
    case SYNC_STREAM: return op->stream == wait->stream;
    case SYNC_DEVICE:
    case SYNC_LOAD: return p->streams[op->stream].rank == program_sync_rank(p, thread, wait);
    case SYNC_RETRY:
    case SYNC_STAGED: break;
    }
    return false;
}

/* True if the step may change the answer to an operation with branches. A push of another thread may, and a record, and
   the end of work. */
static bool may_answer(const struct program *p, const struct replay_step *asking,
                       const struct replay_step *step)
{
    const struct op *asks = &p->ops[asking->op];
    if (step->op < 0 || !op_has_branches(asks) || op_operand(asks->kind) == OPERAND_NONE)
        return false;
    const struct op *op = &p->ops[step->op];
    if (asks->kind == OP_QUERY)
        return step->kind == REPLAY_FINISH ||
               (step->kind == REPLAY_OP && step->number >= 0 && sees(p, asking, step));
    if (op_asks(op->kind) || step->no) /* it has changed nothing */
        return false;
    return op_operand(op->kind) == op_operand(asks->kind) && op->object == asks->object;
}

/* ---- keeping a choice ------------------------------------------------------------------------ */

static void free_choice(struct replay_choice *choice)
{
    machine_free(choice->state);
    free(choice->places);
    free(choice->ended);
}

static bool keep_state(const struct replay *replay, struct replay_choice *choice)
{
    const struct program *p = replay->program;
    size_t agents = (size_t)p->agent_count, streams = (size_t)p->stream_count + 1;
    choice->state = machine_state(p);
    choice->places = calloc(agents, sizeof *choice->places);
    choice->ended = calloc(streams, sizeof *choice->ended);
    if (!choice->state || !choice->places || !choice->ended)
        return false;
    machine_copy(p, choice->state, replay->state);
    for (size_t agent = 0; agent < agents; agent++)
        choice->places[agent] = replay->queues[agent].taken;
    memcpy(choice->ended, replay->ended, streams * sizeof *choice->ended);
    choice->taken = replay->taken;
    choice->trail_count = replay->trail_count;
    choice->stale = replay->stale;
    for (int property = 0; property < PROPERTY_COUNT; property++)
        choice->violated |= replay->violations[property] ? 1u << property : 0;
    return true;
}

static void remove_choice(struct replay *replay, int index)
{
    assert(index >= 0 && index < replay->choice_count);
    free_choice(&replay->choices[index]);
    replay->choice_count--;
    memmove(&replay->choices[index], &replay->choices[index + 1],
            (size_t)(replay->choice_count - index) * sizeof *replay->choices);
}

/* Without room or memory the oldest, or this one, stays as it is: a verdict against the run is none then. */
static void add_choice(struct replay *replay, struct replay_place first, struct replay_place second,
                       struct replay_place end)
{
    struct replay_choice choice = {.first = first, .second = second, .end = end, .settled = -1};
    if (replay->choice_count == REPLAY_CHOICES) {
        remove_choice(replay, 0);
        replay->unsure = true;
    }
    if (keep_state(replay, &choice)) {
        replay->choices[replay->choice_count++] = choice;
        return;
    }
    free_choice(&choice);
    replay->unsure = true;
}

static struct replay_place replay_place_of(const struct replay *replay, int agent, size_t i)
{
    return (struct replay_place){agent, replay->queues[agent].taken + (int64_t)i};
}

static struct replay_place behind(struct replay_place place)
{
    return (struct replay_place){place.agent, place.at + 1};
}

/* Find out whether this pending step may be taken before `step`, which is about to be taken, and whether that would be
   another run. A wait for work that was pushed later is as good as a shorter one; a wait for another record of an event
   is not. */
static void choose_between(struct replay *replay, const struct replay_step *step, bool calls,
                           int agent, size_t i)
{
    const struct program *p = replay->program;
    const struct backlog *queue = &replay->queues[agent];
    const struct replay_step *other = pending_step(queue, i);
    const struct replay_place first = replay_place_of(replay, step->agent, 0),
                              second = replay_place_of(replay, agent, i);
    if (!calls && replay_is_call(replay, queue, i) && sees(p, other, step))
        add_choice(replay, first, second, behind(second));
    else if (other->kind == REPLAY_OP && may_answer(p, other, step))
        add_choice(replay, first, second, behind(second));
    else if (calls && other->number >= 0 && p->ops[step->op].sync == SYNC_EVENT &&
             sees(p, step, other))
        add_choice(replay, first, second, behind(first));
}

/* `step`, the head of its agent, is about to be taken: keep the choices that this is. */
static void replay_choose(struct replay *replay, const struct replay_step *step)
{
    const struct program *p = replay->program;
    bool pushes = step->kind == REPLAY_OP && step->number >= 0;
    bool calls = replay->has_calls && replay_is_call(replay, &replay->queues[step->agent], 0);
    if (!p->has_branches && (!replay->has_calls || (!pushes && !calls)))
        return;
    for (int t = 0; t < p->thread_count; t++) {
        int agent = program_thread_agent(p, t);
        const struct backlog *queue = &replay->queues[agent];
        for (size_t i = 0; agent != step->agent && i < queue->count &&
                           pending_step(queue, i)->lo_ns - replay->tolerance_ns <= step->hi_ns;
             i++)
            choose_between(replay, step, calls, agent, i);
    }
}

static bool was_taken(const struct replay *replay, struct replay_place place)
{
    return replay->queues[place.agent].taken > place.at;
}

/* True if the head of the agent must wait for another step, because of a choice. */
static bool replay_is_held(const struct replay *replay, int agent)
{
    int64_t at = replay->queues[agent].taken;
    for (int i = 0; i < replay->choice_count; i++) {
        const struct replay_choice *choice = &replay->choices[i];
        if (choice->turned && choice->first.agent == agent && choice->first.at == at &&
            !was_taken(replay, choice->second))
            return true;
    }
    return false;
}

/* ---- settled choices ------------------------------------------------------------------------- */

/* True if no choice behind this one would lead back to before its wait was over. */
static bool is_final(const struct replay *replay, int index)
{
    ASSERT_INDEX(index, replay->choice_count);
    const struct replay_choice *choice = &replay->choices[index];
    for (int i = index + 1; i < replay->choice_count; i++)
        if (!replay->choices[i].turned && replay->choices[i].taken < choice->settled)
            return false;
    return choice->settled >= 0;
}

/* Steps before the first choice are final. */
static void tell_observer(struct replay *replay)
{
    size_t final = replay->trail_count;
    for (int i = replay->choice_count - 1; i >= 0; i--)
        if (!replay->choices[i].turned)
            final = replay->choices[i].trail_count;
    for (size_t i = 0; i < final; i++)
        replay->observer(replay->arg, &replay->trail[i]);
    assert(final <= replay->trail_count);
    replay->trail_count -= final;
    if (final > 0 && replay->trail_count > 0)
        memmove(replay->trail, replay->trail + final, replay->trail_count * sizeof *replay->trail);
    for (int i = 0; i < replay->choice_count; i++)
        if (!replay->choices[i].turned)
            replay->choices[i].trail_count -= final;
}

/* The order so far is final. */
static void replay_forget_choices(struct replay *replay)
{
    while (replay->choice_count > 0)
        remove_choice(replay, replay->choice_count - 1);
    tell_observer(replay);
    for (int agent = 0; agent < replay->program->agent_count; agent++)
        if (replay->queues[agent].kept > 1)
            replay->queues[agent].kept = 1;
}

/* Forget the choices that no longer matter. */
static void replay_settle_choices(struct replay *replay)
{
    if (replay->choice_count == 0)
        return;
    for (int i = replay->choice_count - 1; i >= 0; i--) {
        struct replay_choice *choice = &replay->choices[i];
        if (choice->settled < 0 && was_taken(replay, choice->end))
            choice->settled = replay->taken;
        if (is_final(replay, i))
            remove_choice(replay, i);
    }
    tell_observer(replay);
    if (replay->choice_count == 0) {
        replay_forget_choices(replay);
        replay->first_reason[0] = '\0';
    }
}

static bool keep_on_trail(struct replay *replay, const struct replay_step *step)
{
    if (!ARRAY_GROW(replay->trail, replay->trail_count, replay->trail_cap))
        return false;
    replay->trail[replay->trail_count++] = *step;
    return true;
}

/* A step has been taken. Without memory the order so far is final. */
static void replay_observe(struct replay *replay, const struct replay_step *step)
{
    if (!replay->observer)
        return;
    if (replay->choice_count > 0 && keep_on_trail(replay, step))
        return;
    replay->unsure = replay->unsure || replay->choice_count > 0;
    replay_forget_choices(replay);
    replay->observer(replay->arg, step);
}

/* ---- going back ------------------------------------------------------------------------------ */

static void restore_queues(struct replay *replay, const struct replay_choice *choice)
{
    for (int agent = 0; agent < replay->program->agent_count; agent++) {
        struct backlog *queue = &replay->queues[agent];
        assert(queue->taken >= choice->places[agent]);
        size_t back = (size_t)(queue->taken - choice->places[agent]);
        assert(back <= queue->kept &&
               back <= queue->first); /* what was taken since is still there */
        queue->first -= back;
        for (size_t i = 0; i < back; i++)
            replay->pending += !pending_step(queue, i)->optional;
        queue->count += back;
        queue->kept -= back;
        queue->taken -= (int64_t)back;
        queue->pushes_at = 0;
    }
}

static void restore(struct replay *replay, struct replay_choice *choice)
{
    const struct program *p = replay->program;
    assert(choice->state && !choice->turned && choice->taken <= replay->taken);
    replay->undone += replay->taken - choice->taken;
    restore_queues(replay, choice);
    machine_copy(p, replay->state, choice->state);
    memcpy(replay->ended, choice->ended, (size_t)p->stream_count * sizeof *replay->ended);
    replay->taken = choice->taken;
    replay->trail_count = choice->trail_count;
    replay->stale = choice->stale;
    for (int property = 0; property < PROPERTY_COUNT; property++) {
        if (choice->violated & 1u << property)
            continue;
        free(replay->violations[property]);
        replay->violations[property] = NULL;
    }
    for (int i = 0; i < replay->choice_count; i++)
        if (replay->choices[i].settled > replay->taken)
            replay->choices[i].settled = -1;
}

/* Back to the last choice, and the other way; false: none is left. */
static bool replay_undo(struct replay *replay)
{
    while (replay->choice_count > 0 && replay->choices[replay->choice_count - 1].turned)
        remove_choice(replay, replay->choice_count - 1);
    if (replay->choice_count == 0) {
        replay_forget_choices(replay);
        return false;
    }
    if (replay->undone > REPLAY_UNDONE) {
        replay->unsure = true;
        return false;
    }
    struct replay_choice *choice = &replay->choices[replay->choice_count - 1];
    restore(replay, choice);
    free_choice(choice);
    choice->state = NULL;
    choice->places = NULL;
    choice->ended = NULL;
    choice->turned = true;
    return true;
}

/* ---- open and close -------------------------------------------------------------------------- */

struct replay *replay_open(const struct program *program, int64_t tolerance_ns,
                           replay_observer *observer, void *arg)
{
    struct replay *replay = calloc(1, sizeof *replay);
    if (!replay)
        return NULL;
    *replay = (struct replay){.program = program,
                              .tolerance_ns = tolerance_ns,
                              .observer = observer,
                              .arg = arg,
                              .until_ns = INT64_MIN};
    replay->state = machine_state(program);
    for (size_t i = 0; i < program->op_count; i++)
        replay->has_calls = replay->has_calls || program->ops[i].snapshot;
    replay->queues = calloc((size_t)program->agent_count, sizeof *replay->queues);
    replay->ended = calloc((size_t)program->stream_count + 1, sizeof *replay->ended);
    if (replay->state && replay->queues && replay->ended)
        return replay;
    replay_close(replay);
    return NULL;
}

void replay_close(struct replay *replay)
{
    if (!replay)
        return;
    replay->trail_count = 0;
    if (replay->queues)
        replay_forget_choices(replay);
    for (int agent = 0; replay->queues && agent < replay->program->agent_count; agent++)
        free(replay->queues[agent].steps);
    free(replay->trail);
    for (int property = 0; property < PROPERTY_COUNT; property++)
        free(replay->violations[property]);
    machine_free(replay->state);
    free(replay->queues);
    free(replay->ended);
    free(replay);
}

/* ---- queues ---------------------------------------------------------------------------------- */

static bool replay_make_room(struct backlog *queue)
{
    size_t spent = queue->first - queue->kept, left = queue->kept + queue->count;
    if (spent > left / 2) { /* as many moves as steps taken, twice at most */
        memmove(queue->steps, queue->steps + spent, left * sizeof *queue->steps);
        queue->first = queue->kept;
    }
    return ARRAY_GROW(queue->steps, queue->first + queue->count, queue->cap);
}

/* The steps of a stream may come late, but their numbers say where they belong. */
bool replay_add(struct replay *replay, const struct replay_step *step)
{
    struct backlog *queue = &replay->queues[step->agent];
    bool of_stream = replay->program->agents[step->agent].kind == AGENT_STREAM;
    if (!replay_make_room(queue))
        return false;
    size_t at = queue->first + queue->count;
    for (; of_stream && at > queue->first && queue->steps[at - 1].number > step->number; at--)
        queue->steps[at] = queue->steps[at - 1];
    assert(queue->first + queue->count < queue->cap);
    queue->steps[at] = *step;
    queue->count++;
    replay->pending += !step->optional;
    if (step->hi_ns < replay->until_ns && replay->until_ns - step->hi_ns > replay->late_ns)
        replay->late_ns = replay->until_ns - step->hi_ns;
    return true;
}

int64_t replay_late_ns(const struct replay *replay)
{
    return replay->late_ns;
}

void replay_tolerate(struct replay *replay, int64_t tolerance_ns)
{
    if (tolerance_ns > replay->tolerance_ns)
        replay->tolerance_ns = tolerance_ns;
}

static const struct replay_step *head(const struct replay *replay, int agent)
{
    const struct backlog *queue = &replay->queues[agent];
    return queue->count ? &queue->steps[queue->first] : NULL;
}

static void drop_head(struct replay *replay, int agent)
{
    struct backlog *queue = &replay->queues[agent];
    assert(queue->count > 0 && queue->first + queue->count <= queue->cap);
    assert(queue->kept <= queue->first && replay->pending >= 0);
    replay->pending -= !queue->steps[queue->first].optional;
    queue->first++;
    queue->count--;
    queue->taken++;
    queue->kept =
        replay->choice_count > 0 ? queue->kept + 1 : 1; /* a call is told by the step before */
    if (queue->pushes_at > 0)
        queue->pushes_at--;
    replay->taken++;
}

/* The number of the next push of a thread, INT64_MAX if none is known. */
static int64_t next_push(struct backlog *queue)
{
    while (queue->pushes_at < queue->count &&
           queue->steps[queue->first + queue->pushes_at].number < 0)
        queue->pushes_at++;
    return queue->pushes_at < queue->count ? queue->steps[queue->first + queue->pushes_at].number
                                           : INT64_MAX;
}

static int replay_pushes_to(const struct program *p, const struct replay_step *step)
{
    return p->streams[p->ops[step->op].stream].rank;
}

/* The number of a thread's next push to the device of `rank`; others have numbers of their own. */
static int64_t next_push_to(const struct program *p, const struct backlog *queue, int rank)
{
    for (size_t i = queue->first; i < queue->first + queue->count; i++)
        if (queue->steps[i].number >= 0 && replay_pushes_to(p, &queue->steps[i]) == rank)
            return queue->steps[i].number;
    return INT64_MAX;
}

static bool is_next_on_device(const struct replay *replay, const struct replay_step *step)
{
    const struct program *p = replay->program;
    int rank = replay_pushes_to(p, step);
    for (int t = 0; t < p->thread_count; t++)
        if (next_push_to(p, &replay->queues[program_thread_agent(p, t)], rank) <
            step->number - step->span)
            return false;
    return true;
}

static bool is_next_push(struct replay *replay, const struct replay_step *step)
{
    const struct program *p = replay->program;
    int rank = p->agents[step->agent].rank;
    if (p->is_crossed)
        return is_next_on_device(replay, step);
    for (int t = 0; t < p->thread_count; t++)
        if (p->threads[t].rank == rank &&
            next_push(&replay->queues[program_thread_agent(p, t)]) < step->number - step->span)
            return false;
    return true;
}

/* ---- agreement with the machine ----------------------------------------------------------------- */

static bool is_at(const struct replay *replay, const struct replay_step *step)
{
    int64_t iteration = -1;
    int op = machine_current_op(replay->program, replay->state, step->agent, &iteration);
    return op == step->op && iteration == step->iteration;
}

static bool can_take(const struct replay *replay, const struct replay_step *step)
{
    const struct program *p = replay->program;
    int64_t iteration = -1;
    int task = -1, thread = p->agents[step->agent].index;
    return machine_current_op(p, replay->state, step->agent, &iteration) < 0 &&
           machine_queue(p, replay->state, thread, 0, &task, &iteration) > 0 &&
           task == step->task && iteration == step->iteration;
}

/* True if the agent is where the step says it was. */
static bool replay_agrees(struct replay *replay, const struct replay_step *step)
{
    const struct program *p = replay->program;
    const struct agent *desc = &p->agents[step->agent];
    bool retires = machine_retires(p, replay->state, step->agent);
    switch (step->kind) {
    case REPLAY_OP: return is_at(replay, step) && (step->number < 0 || is_next_push(replay, step));
    case REPLAY_TAKE: return can_take(replay, step);
    case REPLAY_ENQUEUE: return !retires;
    case REPLAY_RETIRE:
        return retires && machine_oldest(p, replay->state, desc->rank) == step->iteration;
    case REPLAY_END: return true; /* at any moment */
    case REPLAY_START:
        return is_at(replay, step) && !machine_stream_running(p, replay->state, desc->index);
    case REPLAY_FINISH:
        return is_at(replay, step) && machine_stream_running(p, replay->state, desc->index);
    }
    return false;
}

/* Of an operation with branches, true if its answer is that of the log. */
static bool answers_so(const struct replay *replay, const struct replay_step *step)
{
    const struct program *p = replay->program;
    const struct op *op = step->kind == REPLAY_OP ? &p->ops[step->op] : NULL;
    return !op || !op_has_branches(op) || op->kind == OP_CHOOSE ||
           machine_says(p, replay->state, step->agent) == !step->no;
}

/* True if another thread asks, as its next step, for a state that this step changes, and the answer now is that of the
   log. Then the question is taken first: behind this step the answer may differ, and a question changes nothing for
   this step. A question that the clock has behind the horizon may be behind what this step leads to. */
static bool is_asked_before(struct replay *replay, const struct replay_step *step,
                            int64_t horizon_ns)
{
    const struct program *p = replay->program;
    for (int t = 0; p->has_branches && t < p->thread_count; t++) {
        const int agent = program_thread_agent(p, t);
        const struct replay_step *other = head(replay, agent);
        if (agent != step->agent && other && other->kind == REPLAY_OP &&
            op_asks(p->ops[other->op].kind) && may_answer(p, other, step) &&
            other->lo_ns - replay->tolerance_ns <= step->hi_ns &&
            other->lo_ns - replay->tolerance_ns <= horizon_ns && !replay_is_held(replay, agent) &&
            is_at(replay, other) && answers_so(replay, other))
            return true;
    }
    return false;
}

/* ---- taking a step --------------------------------------------------------------------------- */

static void keep_violations(struct replay *replay, const struct effect *effect)
{
    char text[SENTENCE];
    for (int property = 0; property < PROPERTY_COUNT; property++) {
        if (!(effect->violated & 1u << property) || replay->violations[property])
            continue;
        machine_describe_violation(replay->program, (enum property)property, effect, text,
                                   sizeof text);
        replay->violations[property] =
            strdup(text); /* without memory the replay itself finds it later */
    }
}

static void do_step(struct replay *replay, const struct replay_step *step, int agent)
{
    const struct program *p = replay->program;
    const bool chooses = step->kind == REPLAY_OP && p->ops[step->op].kind == OP_CHOOSE;
    struct transition transition = {.agent = agent, .choice = chooses && step->no};
    struct effect effect;
    if (p->agents[agent].kind == AGENT_COMM) {
        /* The other members' streams have the end of this collective behind them in the machine. */
        for (int s = 0; s < p->stream_count; s++) {
            int64_t iteration;
            int op = machine_current_op(p, replay->state, program_stream_agent(p, s), &iteration);
            if (s != p->agents[step->agent].index && op >= 0 &&
                p->ops[op].comm == p->agents[agent].index &&
                machine_stream_running(p, replay->state, s))
                replay->ended[s]++;
        }
    }
    machine_step(p, replay->state, transition, &effect);
    keep_violations(replay, &effect);
    replay->stale |= effect.stale;
    replay_observe(replay, step);
}

static void tell_end(struct replay *replay, int rank, int64_t iterations)
{
    const struct program *p = replay->program;
    for (int i = 0; i < replay->choice_count; i++) {
        struct state *state = replay->choices[i].state;
        if (state && iterations >= machine_admitted(p, state, rank))
            machine_end_data(p, state, rank, iterations);
    }
    if (iterations >= machine_admitted(p, replay->state, rank))
        machine_end_data(p, replay->state, rank, iterations);
}

static bool try_step(struct replay *replay, const struct replay_step *step, int64_t horizon_ns)
{
    const struct program *p = replay->program;
    bool finish = step->kind == REPLAY_FINISH;
    int agent = step->agent, stream = p->agents[agent].index;
    if (replay_is_held(replay, agent))
        return false;
    assert(!finish || p->agents[agent].kind == AGENT_STREAM);
    if (finish && replay->ended[stream] > 0) {
        replay->ended[stream]--;
        drop_head(replay, agent);
        return true;
    }
    if (finish && op_ends_together(p->ops[step->op].kind))
        agent = program_comm_agent(p, p->ops[step->op].comm);
    if (step->kind == REPLAY_END) { /* what its driver does from then on depends on it */
        tell_end(replay, p->agents[agent].rank, step->iteration);
        drop_head(replay, agent);
        return true;
    }
    /* A period without a new iteration is the first sign that the data has ended, or that the run is to end. */
    int rank = p->agents[step->agent].rank;
    if (step->kind == REPLAY_ENQUEUE && machine_admits_next(p, replay->state, rank) &&
        machine_admitted(p, replay->state, rank) == step->iteration)
        machine_end_data(p, replay->state, rank, step->iteration);
    if (!replay_agrees(replay, step) || !answers_so(replay, step) ||
        machine_agent_enabled(p, replay->state, agent) == 0 ||
        is_asked_before(replay, step, horizon_ns))
        return false;
    replay_choose(replay, step);
    do_step(replay, step, agent);
    drop_head(replay, step->agent);
    replay_settle_choices(replay);
    return true;
}

/* ---- the order ------------------------------------------------------------------------------- */

static bool replay_comes_before(const struct replay_step *a, const struct replay_step *b)
{
    return a->key_ns != b->key_ns ? a->key_ns < b->key_ns : a->agent < b->agent;
}

/* The first head after `after` (NULL: of all). */
static const struct replay_step *next_head(const struct replay *replay,
                                           const struct replay_step *after)
{
    const struct replay_step *best = NULL;
    for (int agent = 0; agent < replay->program->agent_count; agent++) {
        const struct replay_step *step = head(replay, agent);
        if (step && (!after || replay_comes_before(after, step)) &&
            (!best || replay_comes_before(step, best)))
            best = step;
    }
    return best;
}

/* No head that begins later than this may be taken now. */
static int64_t horizon(const struct replay *replay)
{
    int64_t hi_ns = INT64_MAX;
    for (int agent = 0; agent < replay->program->agent_count; agent++) {
        const struct replay_step *step = head(replay, agent);
        if (step && step->hi_ns < hi_ns)
            hi_ns = step->hi_ns;
    }
    return hi_ns > INT64_MAX - replay->tolerance_ns ? hi_ns : hi_ns + replay->tolerance_ns;
}

/* True if the stream's next operation was over by then, as far as is known. The end of a long one follows its start. */
static bool was_over(const struct backlog *queue, int64_t ns)
{
    const struct replay_step *step = &queue->steps[queue->first];
    if (queue->count > 1 && step->hi_ns == INT64_MAX && step[1].kind == REPLAY_FINISH)
        step++;
    return step->hi_ns <= ns && !(step->optional && step->hi_ns == INT64_MAX);
}

/* Another stream has had an operation of the communicator by then that the machine is not at the end of. */
static bool comm_went_on(const struct replay *replay, const struct replay_step *step,
                         int64_t horizon_ns)
{
    const struct program *p = replay->program;
    int comm = p->ops[step->op].comm;
    for (int s = 0; s < p->stream_count && comm >= 0; s++) {
        int agent = program_stream_agent(p, s);
        const struct replay_step *other = head(replay, agent);
        if (other && agent != step->agent && p->ops[other->op].comm == comm &&
            was_over(&replay->queues[agent], horizon_ns))
            return true;
    }
    return false;
}

/* True if the clock allows that it is next. An end before its time serves its communicator alone. */
static bool may_be_next(const struct replay *replay, const struct replay_step *step,
                        int64_t horizon_ns)
{
    if (step->lo_ns - replay->tolerance_ns > horizon_ns)
        return false;
    bool due = !step->optional && step->key_ns - replay->tolerance_ns <= horizon_ns;
    return step->kind != REPLAY_FINISH || due || comm_went_on(replay, step, horizon_ns);
}

static bool take_one(struct replay *replay, int64_t until_ns)
{
    int64_t horizon_ns = horizon(replay);
    for (const struct replay_step *step = next_head(replay, NULL); step && step->key_ns <= until_ns;
         step = next_head(replay, step))
        if (may_be_next(replay, step, horizon_ns) && try_step(replay, step, horizon_ns))
            return true;
    return false;
}

/* ---- the end --------------------------------------------------------------------------------- */

static const char *replay_step_text(const struct replay *replay, const struct replay_step *step,
                                    char *buf, size_t cap)
{
    const struct program *p = replay->program;
    char subject[NAME] = "";
    if (step->op >= 0)
        program_op_subject(p, &p->ops[step->op], step->iteration, subject, sizeof subject);
    switch (step->kind) {
    case REPLAY_OP:
        snprintf(buf, cap, "did '%s' of %s", op_key(p->ops[step->op].kind), subject);
        break;
    case REPLAY_TAKE:
        snprintf(buf, cap, "took %s(%" PRId64 ") from its queue",
                 p->plan->pipeline.tasks[step->task].name, step->iteration);
        break;
    case REPLAY_ENQUEUE: snprintf(buf, cap, "handed out instances"); break;
    case REPLAY_END: snprintf(buf, cap, "heard of the end"); break;
    case REPLAY_RETIRE: snprintf(buf, cap, "retired iteration %" PRId64, step->iteration); break;
    case REPLAY_START: snprintf(buf, cap, "started %s", subject); break;
    case REPLAY_FINISH: snprintf(buf, cap, "finished %s", subject); break;
    }
    return buf;
}

static void explain_stuck(const struct replay *replay, char out[REPLAY_TEXT])
{
    const struct program *p = replay->program;
    const struct replay_step *step = next_head(replay, NULL);
    char name[NAME], did[SENTENCE], wait[SENTENCE], at[UNITS_TEXT];
    program_agent_name(p, step->agent, name, sizeof name);
    machine_describe_wait(p, replay->state, step->agent, wait, sizeof wait);
    units_show_time((double)step->key_ns, at);
    snprintf(out, REPLAY_TEXT, "at %s %s %s, but in the machine it %s", at, name,
             replay_step_text(replay, step, did, sizeof did), wait);
}

/* True if a step is left that had happened by then, of which all that did has been added. */
static bool replay_is_stuck(const struct replay *replay, int64_t until_ns)
{
    bool overdue = until_ns == INT64_MAX && replay->pending > 0;
    for (int agent = 0; agent < replay->program->agent_count && !overdue; agent++) {
        const struct replay_step *step = head(replay, agent);
        overdue = step && !step->optional && step->hi_ns < until_ns - replay->tolerance_ns;
    }
    return overdue;
}

/* Stuck: the other order of two steps, where the clock leaves one open. */
static bool turn_back(struct replay *replay, int64_t until_ns)
{
    if (replay->choice_count == 0 || !replay_is_stuck(replay, until_ns))
        return false;
    if (!replay->first_reason[0])
        explain_stuck(replay, replay->first_reason);
    return replay_undo(replay);
}

bool replay_advance(struct replay *replay, int64_t until_ns, int64_t max_steps)
{
    if (until_ns > replay->until_ns && until_ns < INT64_MAX)
        replay->until_ns = until_ns;
    for (int64_t i = 0; i < max_steps; i++)
        if (!take_one(replay, until_ns) && !turn_back(replay, until_ns))
            return false;
    return true;
}

static void explain_undone(struct replay *replay)
{
    const struct program *p = replay->program;
    char name[NAME], wait[SENTENCE];
    for (int agent = 0; agent < p->agent_count; agent++) {
        if (machine_agent_idle(p, replay->state, agent))
            continue;
        program_agent_name(p, agent, name, sizeof name);
        machine_describe_wait(p, replay->state, agent, wait, sizeof wait);
        snprintf(replay->reason, sizeof replay->reason, "the run ended, but in the machine %s %s",
                 name, wait);
        return;
    }
}

/* True if the driver of the rank is to hear of it by a step that is there already. */
static bool hears_of_end(const struct replay *replay, int rank)
{
    const struct program *p = replay->program;
    const struct backlog *queue = &replay->queues[program_thread_agent(p, p->driver_thread[rank])];
    for (size_t i = queue->first; i < queue->first + queue->count; i++)
        if (queue->steps[i].kind == REPLAY_END)
            return true;
    return false;
}

void replay_end_data(struct replay *replay, int rank, int64_t iterations)
{
    if (!hears_of_end(replay, rank))
        tell_end(replay, rank, iterations);
}

bool replay_finish(struct replay *replay, bool complete)
{
    replay_advance(replay, INT64_MAX, INT64_MAX);
    if (replay->pending > 0 && replay->first_reason[0])
        memcpy(replay->reason, replay->first_reason, sizeof replay->reason);
    else if (replay->pending > 0)
        explain_stuck(replay, replay->reason);
    else if (complete && !machine_done(replay->program, replay->state))
        explain_undone(replay);
    return replay->reason[0] == '\0';
}

bool replay_is_sure(const struct replay *replay)
{
    return !replay->unsure;
}

const char *replay_reason(const struct replay *replay)
{
    return replay->reason;
}

bool replay_settle(struct replay *replay)
{
    const struct program *p = replay->program;
    bool again = true, stuck = true;
    while (again) {
        again = false;
        for (int s = 0; s < p->stream_count; s++) {
            int agent = program_stream_agent(p, s);
            if (machine_stream_running(p, replay->state, s) ||
                machine_agent_enabled(p, replay->state, agent) == 0)
                continue;
            machine_step(p, replay->state, (struct transition){.agent = agent}, NULL);
            again = true;
        }
    }
    for (int agent = 0; agent < p->agent_count; agent++) {
        /* The device may have taken the call of a wait that did not end later than the thread said: behind all pushes. */
        machine_call_now(p, replay->state, agent);
        stuck = stuck && machine_agent_enabled(p, replay->state, agent) == 0;
    }
    return stuck;
}

const struct state *replay_state(const struct replay *replay)
{
    return replay->state;
}

int64_t replay_pending(const struct replay *replay)
{
    return replay->pending;
}

int64_t replay_taken(const struct replay *replay)
{
    return replay->taken;
}

bool replay_has_stale_reads(const struct replay *replay)
{
    return replay->stale;
}

const char *replay_violation(const struct replay *replay, enum property property)
{
    return replay->violations[property];
}
