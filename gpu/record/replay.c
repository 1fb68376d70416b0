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
 *     4. need not wait for another step by a choice (gpu/record/replay_impl.h).
 *
 * A collective ends on all members in one step of the machine, at the earliest end logged; the
 * others' ends are then only counted off.
 */
#include "replay_impl.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

enum { SENTENCE = 320, NAME = 160 };

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

static bool make_room(struct backlog *queue)
{
    size_t spent = queue->first - queue->kept, left = queue->kept + queue->count;
    if (spent > left / 2) { /* as many moves as steps taken, twice at most */
        memmove(queue->steps, queue->steps + spent, left * sizeof *queue->steps);
        queue->first = queue->kept;
    }
    if (queue->first + queue->count < queue->cap)
        return true;
    size_t cap = queue->cap ? 2 * queue->cap : 64;
    struct replay_step *steps = realloc(queue->steps, cap * sizeof *steps);
    if (!steps)
        return false;
    queue->steps = steps;
    queue->cap = cap;
    return true;
}

/* The steps of a stream may come late, but their numbers say where they belong. */
bool replay_add(struct replay *replay, const struct replay_step *step)
{
    struct backlog *queue = &replay->queues[step->agent];
    bool of_stream = replay->program->agents[step->agent].kind == AGENT_STREAM;
    if (!make_room(queue))
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

static int pushes_to(const struct program *p, const struct replay_step *step)
{
    return p->streams[p->ops[step->op].stream].rank;
}

/* The number of a thread's next push to the device of `rank`; others have numbers of their own. */
static int64_t next_push_to(const struct program *p, const struct backlog *queue, int rank)
{
    for (size_t i = queue->first; i < queue->first + queue->count; i++)
        if (queue->steps[i].number >= 0 && pushes_to(p, &queue->steps[i]) == rank)
            return queue->steps[i].number;
    return INT64_MAX;
}

static bool is_next_on_device(const struct replay *replay, const struct replay_step *step)
{
    const struct program *p = replay->program;
    int rank = pushes_to(p, step);
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

/* ---- does the machine agree? ----------------------------------------------------------------- */

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

/* Is the agent where the step says it was? */
static bool agrees(struct replay *replay, const struct replay_step *step)
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
    case REPLAY_START:
        return is_at(replay, step) && !machine_stream_running(p, replay->state, desc->index);
    case REPLAY_FINISH:
        return is_at(replay, step) && machine_stream_running(p, replay->state, desc->index);
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

/* The other members' streams have the end of this collective behind them in the machine. */
static void count_off_members(struct replay *replay, int comm, int except)
{
    const struct program *p = replay->program;
    for (int s = 0; s < p->stream_count; s++) {
        int64_t iteration;
        int op = machine_current_op(p, replay->state, program_stream_agent(p, s), &iteration);
        if (s != except && op >= 0 && p->ops[op].comm == comm &&
            machine_stream_running(p, replay->state, s))
            replay->ended[s]++;
    }
}

static void do_step(struct replay *replay, const struct replay_step *step, int agent)
{
    const struct program *p = replay->program;
    struct transition transition = {.agent = agent};
    struct effect effect;
    if (p->agents[agent].kind == AGENT_COMM)
        count_off_members(replay, p->agents[agent].index, p->agents[step->agent].index);
    machine_step(p, replay->state, transition, &effect);
    keep_violations(replay, &effect);
    replay->stale |= effect.stale;
    replay_observe(replay, step);
}

/* A period without a new iteration is the first sign that the data has ended, or that the run is to end. */
static void notice_end_of_data(struct replay *replay, const struct replay_step *step)
{
    const struct program *p = replay->program;
    int rank = p->agents[step->agent].rank;
    if (step->kind == REPLAY_ENQUEUE && machine_admits_next(p, replay->state, rank) &&
        machine_admitted(p, replay->state, rank) == step->iteration)
        machine_end_data(p, replay->state, rank, step->iteration);
}

static bool try_step(struct replay *replay, const struct replay_step *step)
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
    if (finish && p->ops[step->op].kind == OP_COLLECTIVE)
        agent = program_comm_agent(p, p->ops[step->op].comm);
    notice_end_of_data(replay, step);
    if (!agrees(replay, step) || machine_agent_enabled(p, replay->state, agent) == 0)
        return false;
    replay_choose(replay, step);
    do_step(replay, step, agent);
    drop_head(replay, step->agent);
    replay_settle_choices(replay);
    return true;
}

/* ---- the order ------------------------------------------------------------------------------- */

static bool comes_before(const struct replay_step *a, const struct replay_step *b)
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
        if (step && (!after || comes_before(after, step)) && (!best || comes_before(step, best)))
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

/* Was the stream's next operation over by then, as far as is known? The end of a long one follows its start. */
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

/* Does the clock allow that it is next? An end before its time serves its communicator alone. */
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
        if (may_be_next(replay, step, horizon_ns) && try_step(replay, step))
            return true;
    return false;
}

/* ---- the end --------------------------------------------------------------------------------- */

static const char *step_text(const struct replay *replay, const struct replay_step *step, char *buf,
                             size_t cap)
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
             step_text(replay, step, did, sizeof did), wait);
}

/* Is a step left that had happened by then, of which all that did has been added? */
static bool is_stuck(const struct replay *replay, int64_t until_ns)
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
    if (replay->choice_count == 0 || !is_stuck(replay, until_ns))
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

void replay_end_data(struct replay *replay, int rank, int64_t iterations)
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
    for (int agent = 0; agent < p->agent_count; agent++)
        stuck = stuck && machine_agent_enabled(p, replay->state, agent) == 0;
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
