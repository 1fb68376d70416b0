/* SPDX-License-Identifier: Apache-2.0 */
/* replay_choices.c - see replay_impl.h. */
#include "replay_impl.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- which steps ----------------------------------------------------------------------------- */

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
static bool is_call(const struct replay *replay, const struct backlog *queue, size_t i)
{
    const struct replay_step *step = pending_step(queue, i);
    bool has_before = queue->first + i > 0;
    return step->kind == REPLAY_OP && replay->program->ops[step->op].snapshot &&
           !(has_before && is_same_op(step - 1, step));
}

/* Would the wait of this call see the push? */
static bool sees(const struct program *p, const struct replay_step *call,
                 const struct replay_step *push)
{
    const struct op *wait = &p->ops[call->op], *op = &p->ops[push->op];
    int thread = p->agents[call->agent].index;
    switch (wait->sync) {
    case SYNC_EVENT: return op->kind == OP_RECORD && op->object == wait->object;
    case SYNC_STREAM: return op->stream == wait->stream;
    case SYNC_DEVICE:
    case SYNC_LOAD: return p->streams[op->stream].rank == program_sync_rank(p, thread, wait);
    case SYNC_RETRY:
    case SYNC_STAGED: break;
    }
    return false;
}

/* ---- keeping a choice ------------------------------------------------------------------------ */

static void free_choice(struct choice *choice)
{
    machine_free(choice->state);
    free(choice->places);
    free(choice->ended);
}

static bool keep_state(const struct replay *replay, struct choice *choice)
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
static void add_choice(struct replay *replay, struct place first, struct place second,
                       struct place end)
{
    struct choice choice = {.first = first, .second = second, .end = end, .settled = -1};
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

static struct place place_of(const struct replay *replay, int agent, size_t i)
{
    return (struct place){agent, replay->queues[agent].taken + (int64_t)i};
}

static struct place behind(struct place place)
{
    return (struct place){place.agent, place.at + 1};
}

/* May this pending step be taken before `step`, which is about to be taken, and would that be another run? A wait for
   work that was pushed later is as good as a shorter one; a wait for another record of an event is not. */
static void choose_between(struct replay *replay, const struct replay_step *step, bool calls,
                           int agent, size_t i)
{
    const struct program *p = replay->program;
    const struct backlog *queue = &replay->queues[agent];
    const struct replay_step *other = pending_step(queue, i);
    const struct place first = place_of(replay, step->agent, 0),
                       second = place_of(replay, agent, i);
    if (!calls && is_call(replay, queue, i) && sees(p, other, step))
        add_choice(replay, first, second, behind(second));
    else if (calls && other->number >= 0 && p->ops[step->op].sync == SYNC_EVENT &&
             sees(p, step, other))
        add_choice(replay, first, second, behind(first));
}

void replay_choose(struct replay *replay, const struct replay_step *step)
{
    const struct program *p = replay->program;
    bool pushes = step->kind == REPLAY_OP && step->number >= 0;
    bool calls = replay->has_calls && is_call(replay, &replay->queues[step->agent], 0);
    if (!replay->has_calls || (!pushes && !calls))
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

static bool was_taken(const struct replay *replay, struct place place)
{
    return replay->queues[place.agent].taken > place.at;
}

bool replay_is_held(const struct replay *replay, int agent)
{
    int64_t at = replay->queues[agent].taken;
    for (int i = 0; i < replay->choice_count; i++) {
        const struct choice *choice = &replay->choices[i];
        if (choice->turned && choice->first.agent == agent && choice->first.at == at &&
            !was_taken(replay, choice->second))
            return true;
    }
    return false;
}

/* ---- settled choices ------------------------------------------------------------------------- */

/* Would no choice behind this one lead back to before its wait was over? */
static bool is_final(const struct replay *replay, int index)
{
    const struct choice *choice = &replay->choices[index];
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

void replay_forget_choices(struct replay *replay)
{
    while (replay->choice_count > 0)
        remove_choice(replay, replay->choice_count - 1);
    tell_observer(replay);
    for (int agent = 0; agent < replay->program->agent_count; agent++)
        if (replay->queues[agent].kept > 1)
            replay->queues[agent].kept = 1;
}

void replay_settle_choices(struct replay *replay)
{
    if (replay->choice_count == 0)
        return;
    for (int i = replay->choice_count - 1; i >= 0; i--) {
        struct choice *choice = &replay->choices[i];
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
    if (replay->trail_count == replay->trail_cap) {
        size_t cap = replay->trail_cap ? 2 * replay->trail_cap : 64;
        struct replay_step *trail = realloc(replay->trail, cap * sizeof *trail);
        if (!trail)
            return false;
        replay->trail = trail;
        replay->trail_cap = cap;
    }
    replay->trail[replay->trail_count++] = *step;
    return true;
}

/* Without memory the order so far is final. */
void replay_observe(struct replay *replay, const struct replay_step *step)
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

static void restore_queues(struct replay *replay, const struct choice *choice)
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

static void restore(struct replay *replay, struct choice *choice)
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

bool replay_undo(struct replay *replay)
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
    struct choice *choice = &replay->choices[replay->choice_count - 1];
    restore(replay, choice);
    free_choice(choice);
    choice->state = NULL;
    choice->places = NULL;
    choice->ended = NULL;
    choice->turned = true;
    return true;
}
