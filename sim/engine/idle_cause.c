/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idle_cause.c - why an idle stream is idle: exactly one cause, at a moment when nothing can happen.
 *
 * A stream whose head cannot start is asked directly (machine_why). One with an empty queue lacks a
 * push, so the question is where that push is: the next instance with work for the stream may be in
 * a worker's hand, behind another one in a worker's queue, not yet handed out because a dependence
 * has not been submitted, or another one has its turn before it (data-flow; then the question is where *that* is), or not yet
 * admitted.
 * In a host program the next push stands in a thread's text, and the question is where the thread
 * is.
 */
#include "simulation.h"
#include "base/assert_index.h"

static struct stall stall(enum stall_cause cause, int on)
{
    return (struct stall){cause, on};
}

/* The task a wait names if there is one, else the agent. */
static int idle_cause_named(const struct wait *wait)
{
    if (wait->task >= 0)
        return wait->task;
    return wait->agent >= 0 ? ~wait->agent : STALL_ON_NONE;
}

/* The resource that the machine says is lacking; without a name where the wait is for something else. */
static struct stall lacking_resource(const struct wait *wait)
{
    switch (wait->cause) {
    case CAUSE_COMM_ORDER: return stall_for_resource(HELD_COMM, wait->object);
    case CAUSE_LOCK: return stall_for_resource(HELD_LOCK, wait->object);
    case CAUSE_HW_QUEUE: return stall_for_resource(HELD_HW_QUEUE, wait->agent);
    case CAUSE_RESIDENCY: return stall_for_resource(HELD_RESIDENCY, wait->agent);
    case CAUSE_ISSUE: return stall_for_resource(HELD_ISSUE, wait->agent);
    case CAUSE_FULL: return stall_for_resource(HELD_FULL, wait->agent);
    default: return stall(STALL_RESOURCE, STALL_ON_NONE);
    }
}

/* ---- the head of a stream -------------------------------------------------------------------- */

static struct stall blocked_head(struct simulation *sim, int stream)
{
    struct wait wait;
    const int agent = program_stream_agent(sim->program, stream);
    int64_t iteration;
    machine_why(sim->program, sim->state, agent, &wait);
    if (wait.cause == CAUSE_NONE && sim->clocks.timers[agent] == TIMER_LAUNCH) {
        const int op = machine_current_op(sim->program, sim->state, agent, &iteration);
        const int task = sim->program->ops[op].task;
        return stall(STALL_HOST, task >= 0 ? task : STALL_ON_NONE);
    }
    switch (wait.cause) {
    case CAUSE_DEPENDENCE: return stall(STALL_DEPENDENCE, idle_cause_named(&wait));
    case CAUSE_PEER: return stall(STALL_PEER, STALL_ON_NONE);
    default: return lacking_resource(&wait);
    }
}

/* ---- a thread that will push ----------------------------------------------------------------- */

/* A wait to meet the peers of a link for the first time. */
static bool meets_peers(const struct op *op)
{
    return op_uses_so(op->kind, OPERAND_FLAG, AT_CALL, TAKES) && op->distance < 0;
}

/* The thread is blocked in this sync, or was before it could push. */
static struct stall sync_cause(struct simulation *sim, int op, const struct wait *wait)
{
    ASSERT_INDEX(op, sim->program->op_count);
    const struct op *desc = &sim->program->ops[op];
    if (desc->sync == SYNC_STREAM)
        return stall(STALL_SYNC, ~program_stream_agent(sim->program, desc->stream));
    return stall(STALL_SYNC, wait && wait->agent >= 0 ? ~wait->agent : STALL_ON_NONE);
}

/* The cause for which the thread has not pushed. `own`: what it is at leads to that push; else to something before,
   which is `front` (a task, ~agent or STALL_ON_NONE). */
static struct stall thread_cause(struct simulation *sim, int thread, bool own, int front)
{
    const struct program *p = sim->program;
    int agent = program_thread_agent(p, thread);
    if (sim->clocks.timers[agent] == TIMER_RUNNING)
        return stall(STALL_HOST, front);
    struct wait wait;
    int64_t iteration;
    int current = machine_current_op(p, sim->state, agent, &iteration);
    machine_why(p, sim->state, agent, &wait);
    if (p->tasks == 0 && current >= 0 && p->ops[current].kind == OP_SYNC)
        return sync_cause(sim, current, &wait);
    if (current >= 0 && meets_peers(&p->ops[current]))
        return stall(STALL_PEER, STALL_ON_NONE);
    if (!own)
        return stall(STALL_HEAD_OF_LINE, front);
    switch (wait.cause) {
    case CAUSE_ORDER: return stall(STALL_HEAD_OF_LINE, idle_cause_named(&wait));
    case CAUSE_LOCK:
    case CAUSE_FULL: return lacking_resource(&wait);
    case CAUSE_QUEUE:
        if (current >= 0 && op_gives_to(p->ops[current].kind, OPERAND_QUEUE))
            return stall(STALL_BACKPRESSURE, STALL_ON_NONE);
        break;
    default: break;
    }
    return stall(STALL_DEPENDENCE, idle_cause_named(&wait));
}

/* ---- pipeline form --------------------------------------------------------------------------- */

enum place { IN_HAND, QUEUED, NOT_FIRED, NOT_ADMITTED, NOWHERE };

/* The next instance of a task: which iteration, and where it is. */
struct idle_cause_instance {
    int task, position;
    int64_t iteration, key; /* key: what is handed out first has the smaller one */
    enum place place;
};

static struct idle_cause_instance next_instance(struct simulation *sim, int rank, int task)
{
    const struct program *p = sim->program;
    int index = rank * p->tasks + task, worker = p->worker[index];
    struct idle_cause_instance next = {.task = task,
                                       .position = sim->pipeline.task_positions[index],
                                       .iteration = sim->pipeline.submitted[index]};
    bool clock = p->driver == DRIVER_CLOCK;
    next.key = next.iteration + (clock ? plan_task(p->plan, rank, task)->stage : 0);
    const struct hand *hand = &sim->pipeline.hands[worker];
    if (next.iteration >= machine_end(p, sim->state, rank))
        next.place = NOWHERE;
    else if (hand->task == task && hand->iteration == next.iteration)
        next.place = IN_HAND;
    else if (*account_queued(sim, rank, task, next.iteration))
        next.place = QUEUED;
    else if (!clock && next.iteration < machine_admitted(p, sim->state, rank))
        next.place = NOT_FIRED;
    else
        next.place = NOT_ADMITTED;
    return next;
}

static bool idle_cause_comes_before(const struct idle_cause_instance *a,
                                    const struct idle_cause_instance *b)
{
    if (a->place != b->place)
        return a->place < b->place;
    if (a->key != b->key)
        return a->key < b->key;
    return a->position < b->position;
}

/* The instance that will push to the stream next; tasks that only record count where the stream has
   no others. */
static struct idle_cause_instance next_for_stream(struct simulation *sim, int stream)
{
    const struct program *p = sim->program;
    ASSERT_INDEX(stream, p->stream_count);
    int rank = p->streams[stream].rank;
    struct idle_cause_instance best = {.task = -1, .place = NOWHERE};
    for (int pass = 0; pass < 2 && best.task < 0; pass++)
        for (int k = sim->pipeline.stream_first[stream]; k < sim->pipeline.stream_first[stream + 1];
             k++) {
            int task = sim->pipeline.stream_tasks[k];
            if (pass == 0 && !sim->pipeline.task_pushes[task])
                continue;
            struct idle_cause_instance next = next_instance(sim, rank, task);
            if (best.task < 0 || idle_cause_comes_before(&next, &best))
                best = next;
        }
    return best;
}

/* The first dependence of an instance whose submission is not over, else the one that has its turn before it; task -1: there is
   none. */
static struct idle_cause_instance lacking(struct simulation *sim, int rank,
                                          const struct idle_cause_instance *instance)
{
    const struct program *p = sim->program;
    const struct edge_list *depends = &p->depends[instance->task];
    for (int i = 0; i < depends->count; i++) {
        int64_t wanted = instance->iteration - depends->items[i].distance;
        int on = depends->items[i].task;
        if (wanted >= 0 && sim->pipeline.submitted[rank * p->tasks + on] <= wanted)
            return next_instance(sim, rank, on);
    }
    int64_t iteration;
    const int turn = program_ends_turn(p, rank, instance->task)
                         ? machine_turn(p, sim->state, rank, &iteration)
                         : -1;
    if (turn >= 0 && turn != instance->task)
        return next_instance(sim, rank, turn);
    return (struct idle_cause_instance){.task = -1, .place = NOWHERE};
}

/* The driver hands out no more: because of its rule, or because the device is too far behind. */
static struct stall driver_cause(struct simulation *sim, int rank)
{
    const struct program *p = sim->program;
    struct wait wait;
    machine_why(p, sim->state, program_thread_agent(p, p->driver_thread[rank]), &wait);
    if (wait.cause == CAUSE_WINDOW)
        return stall_for_resource(HELD_WINDOW, program_thread_agent(p, p->driver_thread[rank]));
    return stall(p->driver == DRIVER_CLOCK ? STALL_CLOCK : STALL_BACKPRESSURE, STALL_ON_NONE);
}

/* The end of the chain of lacking dependences that begins with an instance that is not handed out: a
   function of the task, since an instance that is looked at is its task's next one. All on the way are
   noted, so that none is followed again at this instant. Iterations fall along it, or the task's own
   dependences are followed, which have no cycle. */
static struct idle_cause_instance end_of_chain(struct simulation *sim, int rank,
                                               struct idle_cause_instance next)
{
    struct chain_end *ends = &sim->stalls.chain_ends[rank * sim->program->tasks];
    int first = next.task;
    while (next.place == NOT_FIRED && ends[next.task].stamp != sim->stalls.chain_stamp) {
        struct idle_cause_instance dependence = lacking(sim, rank, &next);
        ends[next.task] = (struct chain_end){sim->stalls.chain_stamp, dependence.task};
        account_link(sim, rank * sim->program->tasks + next.task,
                     dependence.task < 0 ? -1 : rank * sim->program->tasks + dependence.task);
        if (dependence.task < 0)
            break;
        next = dependence;
    }
    int end = next.place == NOT_FIRED ? ends[next.task].task : next.task;
    for (int task = first; task != next.task;) {
        int after = ends[task].task;
        ends[task].task = end;
        task = after;
    }
    return end < 0 ? (struct idle_cause_instance){.task = -1, .place = NOT_FIRED}
                   : next_instance(sim, rank, end);
}

bool idle_cause_link(struct simulation *sim, int stream)
{
    const int rank = sim->program->streams[stream].rank;
    const struct idle_cause_instance next = next_for_stream(sim, stream);
    return next.place != NOT_FIRED || end_of_chain(sim, rank, next).task >= 0;
}

static struct stall in_common(struct simulation *sim, int number, int *common)
{
    *common = number;
    return cause_in_common(sim, number);
}

static struct stall lacks_instance(struct simulation *sim, int stream, int *common, bool *chained)
{
    const struct program *p = sim->program;
    ASSERT_INDEX(stream, p->stream_count);
    int rank = p->streams[stream].rank;
    struct idle_cause_instance next = next_for_stream(sim, stream);
    *chained = next.place == NOT_FIRED;
    if (*chained) {
        next = end_of_chain(sim, rank, next);
        if (next.task < 0)
            return stall(STALL_DEPENDENCE, STALL_ON_NONE);
    }
    if (next.task < 0 || next.place == NOWHERE)
        return stall(STALL_NO_MORE_DATA, STALL_ON_NONE);
    int worker = p->worker[rank * p->tasks + next.task];
    switch (next.place) {
    case IN_HAND: return in_common(sim, 2 * worker, common);
    case QUEUED: return in_common(sim, 2 * worker + 1, common);
    default: return in_common(sim, 2 * p->thread_count + rank, common);
    }
}

struct stall cause_in_common(struct simulation *sim, int common)
{
    const struct program *p = sim->program;
    int worker = common / 2;
    if (worker >= p->thread_count)
        return driver_cause(sim, common - 2 * p->thread_count);
    int front = sim->pipeline.hands[worker].task >= 0 ? (int)sim->pipeline.hands[worker].task
                                                      : STALL_ON_NONE;
    return thread_cause(sim, worker, common % 2 == 0, front);
}

/* ---- host programs --------------------------------------------------------------------------- */

static struct stall lacks_push(struct simulation *sim, int stream)
{
    const struct program *p = sim->program;
    int best_distance = 0, best_current = -1;
    const struct pusher *best = NULL;
    for (int i = sim->host.stream_pushers[stream]; i < sim->host.stream_pushers[stream + 1]; i++) {
        const struct pusher *pusher = &sim->host.pushers[i];
        if (pusher->next == pusher->count)
            continue;
        int64_t iteration;
        int agent = program_thread_agent(p, pusher->thread);
        int current = machine_current_op(p, sim->state, agent, &iteration);
        int distance = sim->host.pushes[pusher->first + pusher->next] - current;
        if (current < 0 || (best && distance >= best_distance))
            continue;
        best = pusher;
        best_distance = distance;
        best_current = current;
    }
    if (!best)
        return stall(STALL_NO_MORE_DATA, STALL_ON_NONE);
    const int before = best->next > 0 ? sim->host.pushes[best->first + best->next - 1] : -1;
    const int synced = sim->host.synced[best->thread];
    if (synced > before &&
        sim->clocks.timers[program_thread_agent(p, best->thread)] == TIMER_RUNNING)
        return sync_cause(sim, synced, NULL);
    bool own = sim->host.next_push[best_current] == sim->host.pushes[best->first + best->next];
    return thread_cause(sim, best->thread, own, ~program_thread_agent(p, best->thread));
}

struct stall cause_of_idleness(struct simulation *sim, int stream, int *common, bool *chained)
{
    *common = COMMON_NONE;
    *chained = false;
    if (machine_stream_queued(sim->program, sim->state, stream) > 0)
        return blocked_head(sim, stream);
    return sim->program->tasks ? lacks_instance(sim, stream, common, chained)
                               : lacks_push(sim, stream);
}
