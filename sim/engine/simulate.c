/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simulate.c - see simulate.h. The loop:
 *
 *     do at once all that takes no time        (simulation_instant)
 *     book what the streams are doing now      (account_touched)
 *     go to the next event's time, do all events of that time
 *
 * After a step only agents that it may have enabled are looked at again (mark_after_*); with
 * --enable-checks all are, to see that none was forgotten.
 */
#include "simulate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert_index.h"
#include "base/units.h"
#include "machine/uses.h"
#include "lone_ranks.h"
#include "memo.h"

enum { WORD_BITS = 64, PRIORITY_HOST = 0, PRIORITY_STREAM, PRIORITY_COMM, NAME = 160 };
enum { PROGRESS_EVERY = 1024 };

/* ---- marks ----------------------------------------------------------------------------------- */

void simulation_mark(struct simulation *sim, int agent)
{
    struct marks *marks = &sim->marks;
    int word = agent / WORD_BITS;
    marks->dirty[word] |= UINT64_C(1) << (agent % WORD_BITS);
    if (word < marks->dirty_first)
        marks->dirty_first = word;
}

static void touch_rank(struct marks *marks, int rank)
{
    if (marks->touched[rank])
        return;
    marks->touched[rank] = true;
    marks->touched_ranks[marks->touched_count++] = rank;
}

/* Where threads drive several devices, the streams of one may be idle because of what another does. */
static void touch(struct simulation *sim, int rank)
{
    for (int other = 0; sim->program->is_crossed && other < sim->program->ranks; other++)
        touch_rank(&sim->marks, other);
    touch_rank(&sim->marks, rank);
}

/* Something happened to the stream. */
static void mark_stream(struct simulation *sim, int stream)
{
    account_touch(sim, stream);
    sim->marks.queued_seen[stream] = machine_stream_queued(sim->program, sim->state, stream);
    simulation_mark(sim, program_stream_agent(sim->program, stream));
}

static void mark_rank(struct simulation *sim, int rank)
{
    for (int k = sim->marks.rank_first[rank]; k < sim->marks.rank_first[rank + 1]; k++)
        simulation_mark(sim, sim->marks.rank_agents[k]);
}

/* Their streams may be idle because of what this rank does. */
static void touch_device(struct simulation *sim, int rank)
{
    const struct program *p = sim->program;
    for (int other = p->device[rank]; other >= 0; other = p->device_next[other])
        if (other != rank)
            touch(sim, other);
}

void simulation_wake(struct simulation *sim, int object)
{
    const struct lists *wakes = &sim->marks.wakes;
    for (int i = wakes->first[object]; i < wakes->first[object + 1]; i++)
        simulation_mark(sim, program_thread_agent(sim->program, wakes->items[i]));
}

/* Streams and threads that may go on because of what happened on this stream. */
static void mark_beyond(struct simulation *sim, int stream)
{
    ASSERT_INDEX(stream, sim->program->stream_count);
    int rank = sim->program->streams[stream].rank;
    if (!sim->marks.selective) {
        /* Streams of other ranks on the device may wait for residency slots of this one, and any for its events where
           threads drive several devices. */
        const struct program *p = sim->program;
        for (int other = p->device[rank]; other >= 0; other = p->device_next[other])
            mark_rank(sim, other);
        touch_device(sim, rank);
        for (int other = 0; p->is_crossed && other < p->ranks; other++)
            mark_rank(sim, other);
        return;
    }
    account_cascade(sim, stream);
    simulation_wake(sim, uses_use_object(sim->program, OBJECT_DEVICE, rank));
}

static void mark_threads(struct simulation *sim, int rank)
{
    for (int k = sim->marks.rank_first[rank]; k < sim->marks.rank_streams[rank]; k++)
        simulation_mark(sim, sim->marks.rank_agents[k]);
}

static void mark_all_threads(struct simulation *sim)
{
    for (int t = 0; t < sim->program->thread_count; t++)
        simulation_mark(sim, program_thread_agent(sim->program, t));
}

/* The dirty agent with the lowest number, now clean; -1: none. */
static int next_dirty(struct simulation *sim)
{
    struct marks *marks = &sim->marks;
    for (; marks->dirty_first < marks->dirty_words; marks->dirty_first++) {
        uint64_t word = marks->dirty[marks->dirty_first];
        if (word == 0)
            continue;
        marks->dirty[marks->dirty_first] = word & (word - 1);
        return marks->dirty_first * WORD_BITS + __builtin_ctzll(word);
    }
    return -1;
}

/* ---- time ------------------------------------------------------------------------------------ */

void simulation_fail(struct simulation *sim, enum status status)
{
    if (sim->status == STATUS_OK)
        sim->status = status;
}

static void simulate_draw_run(struct simulation *sim, struct draws *draws, int op, int64_t first)
{
    timing_draw_run(sim->timing, op, first, sim->options->seed, sim->options->replication,
                    &draws->ns[(uint64_t)first % DRAWS]);
}

/* Mostly the next run is asked for. */
void simulation_draw_more(struct simulation *sim, struct draws *draws, int op, int64_t iteration)
{
    int64_t run = iteration / RANDOM_RUN * RANDOM_RUN,
            first = run > RANDOM_RUN ? run - RANDOM_RUN : 0;
    if (draws->first + RANDOM_RUN != first)
        simulate_draw_run(sim, draws, op, first);
    simulate_draw_run(sim, draws, op, first + RANDOM_RUN);
    draws->first = first;
}

/* The agent is busy as long as the longest of these operations takes. */
static void start_timer(struct simulation *sim, int agent, int priority, const struct timed_op *ops,
                        int count)
{
    int64_t longest_ns = 0;
    for (int i = 0; i < count; i++) {
        int64_t ns = simulation_draw(sim, ops[i].op, ops[i].iteration + sim->base);
        longest_ns = ns > longest_ns ? ns : longest_ns;
    }
    sim->clocks.timers[agent] = TIMER_RUNNING;
    sim->clocks.started_ns[agent] = sim->now_ns;
    if (!events_push(&sim->clocks.events, sim->now_ns + longest_ns, priority, agent)) {
        simulation_fail(sim, diag_no_memory(sim->diag));
        return;
    }
    for (int i = 0; sim->clocks.sharing && i < count; i++)
        sharing_start(sim->clocks.sharing, agent, ops[i].op, longest_ns, sim->now_ns);
    if (sim->recording)
        recording_start(sim, agent, priority, ops, count);
    if (sim->lone && priority == PRIORITY_COMM)
        lone_rank_comes(sim, ops->op, ops->iteration + sim->base, longest_ns);
}

static bool takes_time(const struct simulation *sim, int op)
{
    return sim->timing->ops[op].mean_ns > 0 || sim->timing->ops[op].draw >= 0;
}

/* A piece of work of a host program's repeat has ended, or will not be done. */
static void count_off(struct simulation *sim, int op)
{
    const struct program *p = sim->program;
    const int rank = sim->timing->ops[op].rank;
    if (p->ops[op].iteration < 0)
        return;
    int *left = &sim->host.left[rank * p->repeats];
    int64_t *over = &sim->pipeline.finished[rank];
    left[p->ops[op].iteration]--;
    for (; *over < sim->host.repeats[rank] && left[*over] == 0; ++*over)
        if (!iterations_finished(&sim->pipeline.iterations, rank, *over, sim->now_ns))
            simulation_fail(sim, diag_no_memory(sim->diag));
}

/* Report a piece of work that has ended to the observer. */
static void tell_span(struct simulation *sim, enum simulate_span_kind kind, int agent, int op,
                      int64_t iteration)
{
    const struct simulate_observer *observer = sim->options->observer;
    sim->result.tasks += sim->program->tasks == 0;
    count_off(sim, op);
    if (!observer || !(observer->span || observer->work) || sim->status != STATUS_OK)
        return;
    const struct simulate_span span = {
        .kind = kind,
        .agent = agent,
        .op = op,
        .iteration = sim->program->tasks ? iteration + sim->base : -1,
        .start_ns = sim->clocks.started_ns[agent],
        .end_ns = sim->now_ns,
        .stall = {STALL_BUSY, STALL_ON_NONE},
        .slowed_ns = sim->clocks.sharing && takes_time(sim, op)
                         ? sharing_last(sim->clocks.sharing, agent)
                         : NULL,
    };
    if ((observer->span && !observer->span(observer->context, &span)) ||
        (observer->work && !observer->work(observer->context, &span)))
        simulation_fail(sim, STATUS_SYSTEM);
}

/* ---- drivers --------------------------------------------------------------------------------- */

static int64_t *admission_time(struct simulation *sim, int rank, int64_t iteration)
{
    return &sim->pipeline.admitted_ns[rank * sim->pipeline.admitted_cap +
                                      (int)(iteration & (sim->pipeline.admitted_cap - 1))];
}

/* So much is in flight on rank 0; iterations of it in a pipeline. */
static void note_in_flight(struct simulation *sim, int64_t iterations, int64_t bytes)
{
    const struct in_flight_point now = {sim->now_ns, iterations, bytes};
    sim->pipeline.in_flight = iterations;
    if (sim->options->in_flight)
        in_flight_change(sim->options->in_flight, &now);
}

static void simulate_admitted(struct simulation *sim, int rank, int64_t iteration,
                              int64_t in_flight)
{
    *admission_time(sim, rank, iteration) = sim->now_ns;
    sim->pipeline.last_admission_ns = sim->now_ns;
    sim->pipeline.newest = iteration > sim->pipeline.newest ? iteration : sim->pipeline.newest;
    if (in_flight <= sim->result.in_flight_max)
        return;
    sim->result.in_flight_max = in_flight;
    sim->result.in_flight_bytes_max = program_bytes(sim->program, in_flight);
}

static void simulate_finished(struct simulation *sim, int rank, int64_t iteration)
{
    const struct simulate_observer *observer = sim->options->observer;
    sim->pipeline.finished[rank] = iteration + 1;
    if (!iterations_finished(sim->pipeline.over, sim->rank + rank, iteration, sim->now_ns))
        simulation_fail(sim, diag_no_memory(sim->diag));
    sim->result.in_flight_ns += sim->now_ns - *admission_time(sim, rank, iteration);
    if (observer && observer->progress && rank == 0 && iteration % PROGRESS_EVERY == 0 &&
        sim->status == STATUS_OK &&
        !observer->progress(observer->context, iteration + 1, sim->now_ns))
        simulation_fail(sim, STATUS_SYSTEM);
    if (observer && observer->iteration && sim->status == STATUS_OK &&
        !observer->iteration(observer->context, rank, iteration,
                             *admission_time(sim, rank, iteration), sim->now_ns))
        simulation_fail(sim, STATUS_SYSTEM);
}

static void note_iterations(struct simulation *sim, int rank, int64_t in_flight)
{
    if (rank == 0)
        note_in_flight(sim, in_flight, program_bytes(sim->program, in_flight));
}

/* True if an iteration of rank 0 ends and another begins, so that nothing changes for in_flight. */
static bool is_exchange(const struct simulation *sim, const struct memo_iteration *changes,
                        int count)
{
    return count == 2 && changes[0].rank == 0 && changes[1].rank == 0 &&
           changes[0].in_flight == ENDS && changes[1].in_flight == sim->pipeline.in_flight &&
           (!sim->options->in_flight || in_flight_exchange_is_free(sim->options->in_flight));
}

void simulation_iterations(struct simulation *sim, const struct memo_iteration *changes, int count)
{
    bool exchange = is_exchange(sim, changes, count);
    for (const struct memo_iteration *change = changes; change < changes + count; change++) {
        bool ends = change->in_flight == ENDS;
        if (ends)
            simulate_finished(sim, change->rank, change->iteration + sim->base);
        else
            simulate_admitted(sim, change->rank, change->iteration + sim->base, change->in_flight);
        if (!exchange)
            note_iterations(sim, change->rank,
                            ends ? sim->pipeline.in_flight - 1 : change->in_flight);
    }
}

/* A step of this rank, or of one of its communicators, may have finished iterations. */
static void note_finished(struct simulation *sim, int rank)
{
    int64_t next = machine_finished(sim->program, sim->state, rank);
    for (int64_t i = sim->pipeline.finished[rank] - sim->base; i < next; i++) {
        simulate_finished(sim, rank, i + sim->base);
        note_iterations(sim, rank, sim->pipeline.in_flight - 1);
        if (sim->recording)
            recording_finished(sim, rank, i);
    }
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* What is allocated on a rank, as an alloc on `stream` finds it; -1: as one on none does. */
static void note_memory(struct simulation *sim, int rank, int stream)
{
    int64_t allocated = machine_allocated_bytes(sim->program, sim->state, rank, stream);
    if (rank == 0 && allocated != sim->host.allocated) {
        sim->host.allocated = allocated;
        note_in_flight(sim, 0, allocated);
    }
    if (allocated > sim->result.in_flight_bytes_max)
        sim->result.in_flight_bytes_max = allocated;
}

static void machine_does(struct simulation *sim, int agent, struct effect *effect)
{
    const struct transition transition = {agent, 0};
    const struct simulate_observer *observer = sim->options->observer;
#ifdef SWSIM_CHECKS
    assert(machine_agent_enabled(sim->program, sim->state, agent));
#endif
    machine_step(sim->program, sim->state, transition, effect);
    sim->result.steps++;
    sim->result.violated |= effect->violated;
    if (effect->kind == EFFECT_FINISH && sim->options->in_flight && sim->host.allocated > 0)
        note_memory(sim, 0, -1); /* a stream has come to where freed memory can be handed out */
    if (sim->program->tasks && sim->program->agents[agent].rank >= 0)
        note_finished(sim, sim->program->agents[agent].rank);
    if (observer && observer->step && sim->status == STATUS_OK &&
        !observer->step(observer->context, sim->now_ns, transition, effect))
        simulation_fail(sim, STATUS_SYSTEM);
}

static void driver_does(struct simulation *sim, int agent)
{
    const struct program *p = sim->program;
    ASSERT_INDEX(agent, p->agent_count);
    int rank = p->agents[agent].rank;
    int64_t next = machine_admitted(p, sim->state, rank);
    struct effect effect;
    machine_does(sim, agent, &effect);
    for (int64_t i = next; i < machine_admitted(p, sim->state, rank); i++) {
        int64_t in_flight = i + 1 - machine_finished(sim->program, sim->state, rank);
        simulate_admitted(sim, rank, i + sim->base, in_flight);
        note_iterations(sim, rank, in_flight);
        if (sim->recording)
            recording_admitted(sim, rank, i, in_flight);
    }
    mark_threads(sim, rank);
    if (p->tasks)
        account_queues(sim, rank);
    for (int k = sim->marks.rank_streams[rank]; k < sim->marks.rank_first[rank + 1]; k++)
        account_touch(sim, p->agents[sim->marks.rank_agents[k]].index);
}

/* A worker takes an instance; the body's record names its task (not every operation does). */
static void worker_takes(struct simulation *sim, int agent)
{
    const struct program *p = sim->program;
    struct effect effect;
    machine_does(sim, agent, &effect);
    int op = effect.op;
    while (p->ops[op].task < 0)
        op++;
    ASSERT_INDEX(agent, p->agent_count);
    int worker = p->agents[agent].index, rank = p->agents[agent].rank, task = p->ops[op].task;
    sim->pipeline.hands[worker] = (struct hand){effect.iteration, task};
    *account_queued(sim, rank, task, effect.iteration) = false;
    sim->pipeline.queue_seen[worker]--;
    sim->stalls.chain_moved = true;
    account_moved(sim, rank, task);
    account_touch(sim, sim->pipeline.task_streams[rank * p->tasks + task]);
    simulation_mark(sim, agent);
}

static void note_push(struct simulation *sim, int thread, const struct op *op)
{
    if (sim->program->tasks)
        return;
    for (int i = sim->host.stream_pushers[op->stream]; i < sim->host.stream_pushers[op->stream + 1];
         i++)
        if (sim->host.pushers[i].thread == thread)
            sim->host.pushers[i].next++;
}

/* Streams whose heads wait for an object that is given by a step of another agent. */
static void mark_waiting_streams(struct simulation *sim, int object)
{
    const struct program *p = sim->program;
    for (int s = 0; !p->tasks && s < p->stream_count; s++) {
        int64_t iteration;
        const int op = machine_current_op(p, sim->state, program_stream_agent(p, s), &iteration);
        if (op >= 0 && op_pushes(p->ops[op].kind) && op_stream_awaits(p, &p->ops[op]) == object)
            mark_stream(sim, s);
    }
}

/* Threads and streams that may go on because of what the step of a thread has given. */
static void wake_helped(struct simulation *sim, int thread, const struct op *op)
{
    const struct program *p = sim->program;
    ASSERT_INDEX(thread, p->thread_count);
    const int object = op_helped(p, op, thread), rank = p->threads[thread].rank;
    if (object < 0)
        return;
    if (op_operand(op->kind) == OPERAND_SUBMISSION) {
        /* The end of a submission lets the driver go on, and under data-flow the workers that it fires. */
        simulation_mark(sim, program_thread_agent(p, p->driver_thread[rank]));
        for (int k = 0, fired;
             p->driver == DRIVER_DATAFLOW && (fired = program_may_fire(p, rank, op->task, k)) >= 0;
             k++)
            simulation_mark(sim, program_thread_agent(p, p->worker[rank * p->tasks + fired]));
    } else if (p->tasks || op_operand(op->kind) == OPERAND_FLAG)
        simulation_wake(sim, object);
    else if (p->is_crossed || operand_table[op_operand(op->kind)].is_far)
        mark_all_threads(sim);
    else
        mark_threads(sim, rank);
    mark_waiting_streams(sim, object);
}

static void mark_after_host(struct simulation *sim, int thread, const struct op *op)
{
    if (op_is_mark(op->kind)) {
        /* A mark may have taken effect at once, with all that waited for what it gives. */
        mark_stream(sim, op->stream);
        bool settled = machine_stream_queued(sim->program, sim->state, op->stream) == 0;
        if (sim->program->streams[op->stream].hw_queue >= 0 || (settled && op_gives(op->kind)))
            mark_beyond(sim, op->stream);
    } else if (op_pushes(op->kind))
        mark_stream(sim, op->stream);
    wake_helped(sim, thread, op);
}

static void note_host_op(struct simulation *sim, int agent, const struct op *op, int64_t iteration)
{
    const struct program *p = sim->program;
    ASSERT_INDEX(agent, p->agent_count);
    int thread = p->agents[agent].index, rank = p->threads[thread].rank;
    if (op_is_cpu_work(op->kind))
        tell_span(sim, SIMULATE_HOST, agent, (int)(op - p->ops), iteration);
    if (op_is_stream_work(op->kind))
        note_push(sim, thread, op);
    if (op->kind == OP_ALLOC || op->kind == OP_FREE)
        note_memory(sim, p->buffers[op->object].rank, op->kind == OP_ALLOC ? op->stream : -1);
    if (program_records_task(op)) {
        sim->pipeline.submitted[rank * p->tasks + op->task]++;
        sim->stalls.chain_moved = true;
        account_moved(sim, rank, op->task);
    }
    if (op_ends_submission(op->kind)) {
        account_touch(
            sim,
            sim->pipeline.task_streams[rank * p->tasks + (int)sim->pipeline.hands[thread].task]);
        account_fired(sim, rank, op->task);
        sim->pipeline.hands[thread].task = -1;
        sim->result.tasks++;
    }
}

/* What is in the stream's queue now and was not before is pushed now. To be called in front of and behind each push, as steps
   on other streams may have taken items out before; and before the head of the stream is asked for. */
static void note_launches(struct simulation *sim, int stream)
{
    if (sim->clocks.launches.latency_ns == 0)
        return;
    struct launch_queue *queue = &sim->clocks.launches.queues[stream];
    const int count = machine_stream_queued(sim->program, sim->state, stream);
    assert(count <= queue->cap);
    for (; queue->count > count; queue->count--)
        queue->first = (queue->first + 1) % queue->cap;
    for (; queue->count < count; queue->count++)
        queue->pushed_ns[(queue->first + queue->count) % queue->cap] = sim->now_ns;
}

/* The thread of a host program leaves this operation. */
static void note_sync(struct simulation *sim, int thread, const struct op *op)
{
    if (sim->program->tasks)
        return;
    if (op->kind == OP_SYNC && sim->now_ns > sim->host.came_ns[thread])
        sim->host.synced[thread] = (int)(op - sim->program->ops);
    sim->host.came_ns[thread] = sim->now_ns;
}

/* The operation is in a branch that is not taken. */
static void skip_op(struct simulation *sim, int thread, int index)
{
    const struct program *p = sim->program;
    ASSERT_INDEX(index, p->op_count);
    const struct op *op = &p->ops[index];
    if (op_is_stream_work(op->kind)) {
        note_push(sim, thread, op);
        mark_stream(sim, op->stream); /* it may be idle for another reason */
    }
    if (op_is_work(op->kind))
        count_off(sim, index);
    const struct body *body = op_calls_host(op->kind) ? &p->bodies[op->object] : NULL;
    for (int k = 0; body && k < body->count; k++)
        if (op_is_work(p->ops[body->first + k].kind))
            count_off(sim, body->first + k);
}

/* The thread was at operation `from`, and has gone past those up to the one it is at now. */
static void skip_branches(struct simulation *sim, int agent, int from)
{
    const struct program *p = sim->program;
    ASSERT_INDEX(agent, p->agent_count);
    const int thread = p->agents[agent].index;
    const struct body *body = &p->bodies[p->threads[thread].body];
    int64_t iteration;
    int next = machine_current_op(p, sim->state, agent, &iteration);
    next = next < 0 ? body->first + body->count : next;
    for (int index = from + 1; index < next; index++)
        skip_op(sim, thread, index);
}

static void thread_does(struct simulation *sim, int agent, const struct op *op)
{
    const struct program *p = sim->program;
    ASSERT_INDEX(agent, p->agent_count);
    const struct thread_desc *thread = &p->threads[p->agents[agent].index];
    const bool pushes = op_pushes(op->kind);
    struct effect effect;
    if (pushes)
        note_launches(sim, op->stream);
    machine_does(sim, agent, &effect);
    if (pushes)
        note_launches(sim, op->stream);
    sim->clocks.timers[agent] = TIMER_NONE;
    note_sync(sim, p->agents[agent].index, op);
    note_host_op(sim, agent, op, effect.iteration);
    if (p->has_branches && thread->kind == THREAD_HOST)
        skip_branches(sim, agent, (int)(op - p->ops));
    simulation_mark(sim, agent);
    mark_after_host(sim, p->agents[agent].index, op);
    if (thread->kind == THREAD_CALLBACK)
        mark_stream(sim, thread->stream);
}

/* The group concerns its own stream, and those of members that exchange messages with it: whether they are matched,
   or why not. */
static void mark_peers(struct simulation *sim, const struct op *op)
{
    const struct marks *marks = &sim->marks;
    const int member = sim->program->comms[op->comm].first_member + op->member;
    if (marks->mixed[op->comm]) {
        /* The streams on which members of a communicator are in a started operation. */
        const struct comm_desc *desc = &sim->program->comms[op->comm];
        for (int m = 0; m < desc->count; m++)
            if (sim->clocks.member_streams[desc->first_member + m] >= 0)
                mark_stream(sim, sim->clocks.member_streams[desc->first_member + m]);
        return;
    }
    mark_stream(sim, op->stream);
    for (int i = marks->peer_first[member]; i < marks->peer_first[member + 1]; i++) {
        int stream = sim->clocks.member_streams[marks->peers[i]];
        if (stream >= 0)
            mark_stream(sim, stream);
    }
}

static int *member_stream(struct simulation *sim, const struct op *op)
{
    return &sim->clocks.member_streams[sim->program->comms[op->comm].first_member + op->member];
}

/* Slots were taken or given back on the device of this rank: its greedy kernels go as fast as what they have now. */
static void tell_slots(struct simulation *sim, int device_of)
{
    const struct program *p = sim->program;
    for (int rank = p->has_greedy ? p->device[device_of] : -1; rank >= 0;
         rank = p->device_next[rank])
        for (int i = p->rank_first[rank]; i < p->rank_first[rank + 1]; i++) {
            const int stream = p->rank_streams[i], agent = program_stream_agent(p, stream);
            int64_t iteration;
            if (sim->clocks.timers[agent] != TIMER_RUNNING)
                continue;
            const int op = machine_current_op(p, sim->state, agent, &iteration);
            if (op_is_greedy(&p->ops[op]))
                sharing_slots(sim->clocks.sharing, stream,
                              machine_slots_held(p, sim->state, stream));
        }
}

static void stream_starts(struct simulation *sim, int agent)
{
    const struct program *p = sim->program;
    ASSERT_INDEX(agent, p->agent_count);
    int stream = p->agents[agent].index;
    struct effect effect;
    machine_does(sim, agent, &effect);
    const struct op *op = &p->ops[effect.op];
    if (op->comm >= 0)
        *member_stream(sim, op) = stream;
    if (op->comm >= 0 && sim->clocks.sharing) {
        sharing_hold(sim->clocks.sharing, effect.op);
        if (sim->recording)
            recording_hold(sim, effect.op);
    }
    if (op_ends_together(op->kind))
        simulation_mark(sim, program_comm_agent(p, op->comm));
    else if (op_uses_comm(op->kind))
        mark_peers(sim, op);
    else
        start_timer(sim, agent, PRIORITY_STREAM, &(struct timed_op){effect.op, effect.iteration},
                    1);
    if (op_calls_host(op->kind))
        simulation_mark(sim, program_thread_agent(p, op->callback));
    simulation_mark(sim, agent);
    if (op_stream_gives(p, op) >= 0) {
        mark_all_threads(sim);
        mark_waiting_streams(sim, op_stream_gives(p, op));
    }
    if (op->sm > 0) {
        touch_device(sim, p->streams[stream].rank);
        tell_slots(sim, p->streams[stream].rank);
    }
    if (p->streams[stream].hw_queue >= 0 || p->plan->machine.launch_order_implicit)
        mark_rank(sim, p->streams[stream].rank);
}

static void stream_finishes(struct simulation *sim, int agent)
{
    struct effect effect;
    ASSERT_INDEX(agent, sim->program->agent_count);
    const int stream = sim->program->agents[agent].index;
    machine_does(sim, agent, &effect);
    const struct op *op = &sim->program->ops[effect.op];
    sim->clocks.timers[agent] = TIMER_NONE;
    if (op->comm >= 0)
        *member_stream(sim, op) = -1;
    tell_span(sim, SIMULATE_DEVICE, agent, effect.op, effect.iteration);
    if (op->comm >= 0 && sim->marks.selective)
        mark_rank(sim, sim->program->agents[agent].rank);
    mark_beyond(sim, stream); /* not selective: the whole rank */
    tell_slots(sim, sim->program->streams[stream].rank);
}

/* ---- collectives ----------------------------------------------------------------------------- */

/* All members have started: from now on the collective runs, as long as its slowest member. */
static void comm_starts(struct simulation *sim, int agent)
{
    const struct program *p = sim->program;
    ASSERT_INDEX(agent, p->agent_count);
    const struct comm_desc *comm = &p->comms[p->agents[agent].index];
    struct timed_op *ops = &sim->clocks.member_ops[comm->first_member];
    for (int m = 0; m < comm->count; m++) {
        int stream = sim->clocks.member_streams[comm->first_member + m];
        int stream_agent = program_stream_agent(p, stream);
        ops[m].op = machine_current_op(p, sim->state, stream_agent, &ops[m].iteration);
        sim->clocks.timers[stream_agent] = TIMER_RUNNING;
        sim->clocks.started_ns[stream_agent] = sim->now_ns;
        touch(sim, p->streams[stream].rank);
        account_touch(sim, stream);
    }
    start_timer(sim, agent, PRIORITY_COMM, ops, comm->count);
}

static void comm_completes(struct simulation *sim, int agent)
{
    const struct program *p = sim->program;
    ASSERT_INDEX(agent, p->agent_count);
    const struct comm_desc *comm = &p->comms[p->agents[agent].index];
    struct {
        int op;
        int64_t iteration;
    } ended;
    for (int m = 0; m < comm->count; m++) {
        int stream_agent =
            program_stream_agent(p, sim->clocks.member_streams[comm->first_member + m]);
        ended.op = machine_current_op(p, sim->state, stream_agent, &ended.iteration);
        tell_span(sim, SIMULATE_DEVICE, stream_agent, ended.op, ended.iteration);
    }
    struct effect effect;
    machine_does(sim, agent, &effect);
    sim->clocks.timers[agent] = TIMER_NONE;
    for (int m = 0; m < comm->count; m++) /* of all of them first: ranks may share a device */
        sim->clocks
            .timers[program_stream_agent(p, sim->clocks.member_streams[comm->first_member + m])] =
            TIMER_NONE;
    for (int m = 0; m < comm->count; m++) {
        int *stream = &sim->clocks.member_streams[comm->first_member + m];
        touch(sim, p->streams[*stream].rank);
        mark_rank(sim, p->streams[*stream].rank);
        mark_beyond(sim, *stream);
        tell_slots(sim, p->streams[*stream].rank);
        if (p->tasks)
            note_finished(sim, p->streams[*stream].rank);
        *stream = -1;
    }
}

/* ---- one instant ----------------------------------------------------------------------------- */

static void look_at_thread(struct simulation *sim, int agent)
{
    const struct program *p = sim->program;
    int64_t iteration;
    ASSERT_INDEX(agent, p->agent_count);
    account_stir(sim, p->agents[agent].index);
    if (sim->clocks.timers[agent] != TIMER_NONE || !machine_agent_enabled(p, sim->state, agent))
        return;
    touch(sim, p->agents[agent].rank);
    if (p->threads[p->agents[agent].index].kind == THREAD_DRIVER) {
        driver_does(sim, agent);
        simulation_mark(sim, agent);
        return;
    }
    int op = machine_current_op(p, sim->state, agent, &iteration);
    if (op < 0) {
        worker_takes(sim, agent);
        return;
    }
    sim->clocks.started_ns[agent] = sim->now_ns;
    if (op_is_cpu_work(p->ops[op].kind) && takes_time(sim, op))
        start_timer(sim, agent, PRIORITY_HOST, &(struct timed_op){op, iteration}, 1);
    else
        thread_does(sim, agent, &p->ops[op]);
}

/* The head begins when it has come to the device: maybe later than now. */
static bool is_on_its_way(struct simulation *sim, int agent)
{
    const struct launches *launches = &sim->clocks.launches;
    if (launches->latency_ns == 0)
        return false;
    int64_t iteration;
    const int op = machine_current_op(sim->program, sim->state, agent, &iteration);
    const struct launch_queue *queue = &launches->queues[sim->program->agents[agent].index];
    assert(queue->count > 0);
    const int64_t begin_ns = queue->pushed_ns[queue->first] + launches->latency_ns;
    if (begin_ns <= sim->now_ns || !op_is_work(sim->program->ops[op].kind))
        return false;
    sim->clocks.timers[agent] = TIMER_LAUNCH;
    if (!events_push(&sim->clocks.events, begin_ns, PRIORITY_STREAM, agent))
        simulation_fail(sim, diag_no_memory(sim->diag));
    return true;
}

static bool simulate_has_event(const struct simulation *sim, int agent)
{
    return sim->clocks.timers[agent] == TIMER_RUNNING || sim->clocks.timers[agent] == TIMER_LAUNCH;
}

static void look_at_stream(struct simulation *sim, int agent)
{
    const struct program *p = sim->program;
    ASSERT_INDEX(agent, p->agent_count);
    note_launches(sim, p->agents[agent].index);
    if (simulate_has_event(sim, agent) || !machine_agent_enabled(p, sim->state, agent))
        return;
    touch(sim, p->agents[agent].rank);
    account_touch(sim, p->agents[agent].index);
    if (!machine_stream_running(p, sim->state, p->agents[agent].index)) {
        if (is_on_its_way(sim, agent))
            return;
        stream_starts(sim, agent);
        return;
    }
    int64_t iteration;
    int op = machine_current_op(p, sim->state, agent, &iteration);
    if (sim->clocks.timers[agent] == TIMER_OVER)
        stream_finishes(sim, agent);
    else /* a group that is matched now */
        start_timer(sim, agent, PRIORITY_STREAM, &(struct timed_op){op, iteration}, 1);
}

static void simulate_look_at(struct simulation *sim, int agent)
{
    ASSERT_INDEX(agent, sim->program->agent_count);
    switch (sim->program->agents[agent].kind) {
    case AGENT_DATA: break; /* the number of iterations is known */
    case AGENT_FAULT:
    case AGENT_WATCHDOG: break; /* nothing goes wrong in a prediction */
    case AGENT_THREAD: look_at_thread(sim, agent); break;
    case AGENT_STREAM: look_at_stream(sim, agent); break;
    case AGENT_COMM:
        if (sim->clocks.timers[agent] == TIMER_NONE &&
            machine_agent_enabled(sim->program, sim->state, agent))
            comm_starts(sim, agent);
        break;
    }
}

#ifdef SWSIM_CHECKS
/* No agent that could take a step without time was forgotten. */
static bool nothing_forgotten(struct simulation *sim)
{
    for (int agent = 0; agent < sim->program->agent_count; agent++)
        if (sim->program->agents[agent].kind != AGENT_DATA && !simulate_has_event(sim, agent) &&
            machine_agent_enabled(sim->program, sim->state, agent))
            return false;
    return true;
}
#endif

static void simulate_own_interrupted(struct simulation *sim)
{
    const int64_t *finished = sim->pipeline.finished;
    char now[UNITS_TEXT + 32];
    units_show_time((double)sim->now_ns, now);
    if (sim->program->tasks)
        simulation_fail(sim, diag_error(sim->diag, STATUS_LIMIT,
                                        "interrupted after %" PRId64 " iterations, %s simulated",
                                        finished[0], now));
    else
        simulation_fail(sim, diag_error(sim->diag, STATUS_LIMIT, "interrupted, %s simulated", now));
}

void simulation_instant(struct simulation *sim)
{
    int agent;
    while (sim->status == STATUS_OK && (agent = next_dirty(sim)) >= 0) {
        simulate_look_at(sim, agent);
        if (simulate_interrupted(sim->options))
            simulate_own_interrupted(sim);
    }
    if (sim->clocks.sharing)
        sharing_settle(sim->clocks.sharing, sim->now_ns, &sim->clocks.events);
#ifdef SWSIM_CHECKS
    assert(sim->status != STATUS_OK || nothing_forgotten(sim));
    assert(events_check(&sim->clocks.events));
#endif
    account_touched(sim);
    if (sim->status == STATUS_OK)
        account_check_lanes(sim);
}

/* Operations that took time until now are done. */
void simulation_event(struct simulation *sim, int agent)
{
    const struct program *p = sim->program;
    int64_t iteration;
    if (p->agents[agent].rank >= 0)
        touch(sim, p->agents[agent].rank);
    if (sim->clocks.sharing)
        sharing_finish(sim->clocks.sharing, agent, sim->now_ns);
    switch (p->agents[agent].kind) {
    case AGENT_THREAD:
        account_stir(sim, p->agents[agent].index);
        thread_does(sim, agent, &p->ops[machine_current_op(p, sim->state, agent, &iteration)]);
        break;
    case AGENT_STREAM:
        account_touch(sim, p->agents[agent].index);
        if (sim->clocks.timers[agent] == TIMER_LAUNCH) {
            sim->clocks.timers[agent] = TIMER_NONE;
            simulation_mark(sim, agent);
            break;
        }
        sim->clocks.timers[agent] = TIMER_OVER; /* a callback's body may still be running */
        if (machine_agent_enabled(p, sim->state, agent))
            stream_finishes(sim, agent);
        break;
    case AGENT_COMM: comm_completes(sim, agent); break;
    case AGENT_DATA:
    case AGENT_FAULT:
    case AGENT_WATCHDOG: assert(0 && "these take no time"); break;
    }
}

void simulate_begin(struct simulation *sim, const struct simulation *fellow)
{
    simulation_instant(sim);
    if (!sim->options->forgetful && sim->clocks.launches.latency_ns == 0 &&
        !sim->program->has_greedy)
        memo_open(sim, fellow);
}

void simulate_go_on(struct simulation *sim)
{
    struct event event;
    memo_go_on(sim);
    while (!sim->memo && sim->status == STATUS_OK && !simulation_pauses(sim) &&
           events_next(&sim->clocks.events, &event)) {
        sim->now_ns = event.time_ns;
        do {
            events_drop(&sim->clocks.events, event.agent);
            simulation_event(sim, event.agent);
        } while (events_next(&sim->clocks.events, &event) && event.time_ns == sim->now_ns);
        simulation_instant(sim);
    }
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Work remains and no agent can step: note what each waits for. */
static enum status note_blocked(struct simulation *sim)
{
    const struct program *p = sim->program;
    struct simulation_result *result = &sim->result;
    result->blocked = calloc((size_t)p->agent_count, sizeof *result->blocked);
    if (!result->blocked)
        return diag_no_memory(sim->diag);
    for (int agent = 0; agent < p->agent_count; agent++) {
        char text[2 * NAME];
        struct wait wait;
        machine_why(p, sim->state, agent, &wait);
        if (wait.cause == CAUSE_NONE || wait.cause == CAUSE_EMPTY)
            continue;
        struct blocked *blocked = &result->blocked[result->blocked_count];
        blocked->agent = agent;
        blocked->waits_for = strdup(machine_describe_wait(p, sim->state, agent, text, sizeof text));
        if (!blocked->waits_for)
            return diag_no_memory(sim->diag);
        result->blocked_count++;
    }
    return STATUS_OK;
}

static bool all_repeated(const struct simulation *sim)
{
    for (int rank = 0; rank < sim->program->ranks; rank++)
        if (sim->pipeline.finished[rank] != sim->host.repeats[rank])
            return false;
    return true;
}

static void simulate_sum_up(struct simulation *sim)
{
    struct simulation_result *result = &sim->result;
    if (sim->clocks.sharing) {
        for (int s = 0; s < result->stream_count; s++)
            memcpy(result->streams[s].slowed_ns, sharing_of_stream(sim->clocks.sharing, s),
                   sizeof result->streams[s].slowed_ns);
        result->slowdowns = sharing_take(sim->clocks.sharing);
    }
    result->makespan_ns = sim->now_ns;
    if (sim->program->tasks) {
        iterations_figures(&sim->pipeline.iterations, &result->iteration);
        result->fill_ns = sim->pipeline.iterations.first_over_ns;
        result->drain_ns = sim->now_ns - sim->pipeline.last_admission_ns;
    } else if (sim->program->repeats) {
        iterations_figures(&sim->pipeline.iterations, &result->iteration);
        result->fill_ns = sim->pipeline.iterations.first_over_ns;
        assert(!machine_done(sim->program, sim->state) || all_repeated(sim));
    }
    if (!machine_done(sim->program, sim->state)) {
        result->violated |= 1u << PROPERTY_DEADLOCK;
        sim->status = note_blocked(sim);
    }
}

enum status simulate_run(const struct program *program, const struct timing *timing,
                         const struct simulate_options *options, struct simulation_result *out,
                         struct diag *diag)
{
    struct simulation sim;
    bool done;
    enum status status = simulate_check(program, timing, diag);
    if (status == STATUS_OK)
        status = lone_ranks_run(program, timing, options, out, &done, diag);
    if (status != STATUS_OK || done)
        return status;
    status = prepare(&sim, program, timing, options, diag);
    if (status == STATUS_OK) {
        simulate_begin(&sim, NULL);
        simulate_go_on(&sim);
        account_close(&sim);
        status = sim.status;
    }
    if (status == STATUS_OK) {
        simulate_sum_up(&sim);
        assert(account_check(&sim));
        status = sim.status;
    }
    prepare_free(&sim);
    if (status == STATUS_OK)
        *out = sim.result;
    else
        simulation_fini(&sim.result);
    return status;
}

void simulation_fini(struct simulation_result *result)
{
    for (int s = 0; result->streams && s < result->stream_count; s++)
        stream_account_free(&result->streams[s]);
    free(result->streams);
    free(result->slowdowns);
    for (size_t i = 0; i < result->blocked_count; i++)
        free(result->blocked[i].waits_for);
    free(result->blocked);
    *result = (struct simulation_result){0};
}
