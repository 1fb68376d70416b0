/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.c - the steps of every operation; see machine.h for the contract and machine_internal.h for
 * the layout of a state.
 *
 * Reading order: machine_thread_can_step and thread_step (host side), can_start, start and finish (device
 * side), settle (items that take effect at once at the head of a stream), complete_collective.
 */
#include "machine.h"
#include "base/sort.h"

#include <stdlib.h>
#include <string.h>

#include "clocks.h"
#include "driver.h"
#include "failure.h"
#include "happens_before.h"
#include "base/large_pages.h"
#include "snapshot.h"
#include "machine_internal.h"

/* ---- serial ---------------------------------------------------------------------------------- */

/*
 * Whether a run accesses its buffers in the order of a serial run. Private to the machine.
 *
 * A serial run executes iteration after iteration, in each the tasks in topological order (program->serial_place).
 * Two runs that order the accesses of every buffer instance alike, writes with writes and writes with reads,
 * compute the same. With options.serial a state counts, per rank and task that writes, the iterations whose
 * accesses have been made; so each access knows which writes came before it:
 *
 *     of task W, before access (X, i):    serial run    W(0) .. W(i)    if W is before X, else W(0) .. W(i - 1)
 *                                         this run      made[W] of them
 *
 * A read may lag by as many iterations as `staleness:` allows its buffer: by the same number behind each writer,
 * so that it sees what a serial run had some iterations ago.
 */

static int32_t *made_cell(const struct work_state *w, int rank, int task)
{
    return w->c + w->p->at.made + rank * w->p->tasks + task;
}

/* How many of the iterations before `end` use the instance of this one, but for a number that depends on it alone. */
static int64_t turns_before(int64_t end, int64_t iteration, int period)
{
    int64_t distance = end - 1 - iteration, rest = distance % period;
    return (distance - (rest < 0 ? rest + period : rest)) / period;
}

/* How many writes of `writer` to the instance lag behind those of a serial run; negative: they are ahead.
   Only those of its own iteration count where a buffer has an instance an iteration. */
static int64_t find_lag(const struct work_state *w, const struct op *op, int rank,
                        int64_t iteration, int writer, int period)
{
    const int *place = w->p->serial_place;
    int64_t serial = iteration + (place[writer] < place[op->task]);
    int64_t made = *made_cell(w, rank, writer);
    if (period == 0)
        return (serial > iteration) - (made > iteration);
    return turns_before(serial, iteration, period) - turns_before(made, iteration, period);
}

static void serial_report(struct work_state *w, const struct access *access, int64_t serial,
                          int64_t lag, int writer)
{
    if (w->e->violated & (1u << PROPERTY_SERIAL))
        return;
    w->e->violated |= 1u << PROPERTY_SERIAL;
    w->e->serial =
        (struct order_change){access->buffer, !access->write, writer, serial, serial - lag};
}

/* All writers must lag alike: the own writes of a task never do. */
static void serial_check(struct work_state *w, const struct op *op, const struct access *access,
                         int rank, int64_t iteration)
{
    const struct program *p = w->p;
    const struct buffer_desc *desc = &p->buffers[access->buffer];
    const struct buffer *buffer = &p->plan->buffers[desc->plan_buffer];
    const struct task *tasks = plan_tasks(p->plan, rank);
    int64_t allowed = access->write ? 0 : buffer->staleness, common = -1;
    for (int t = 0; t < p->tasks; t++) {
        if (!index_list_has(&tasks[t].writes, desc->plan_buffer))
            continue;
        int64_t lag = t == op->task ? 0 : find_lag(w, op, rank, iteration, t, desc->period);
        if (lag < 0 || lag > allowed || (common >= 0 && lag != common))
            serial_report(w, access, iteration + (p->serial_place[t] < p->serial_place[op->task]),
                          lag * max_int(desc->period, 1), t);
        else if (lag > 0)
            w->e->stale = true;
        common = lag;
    }
}

/* Task op->task makes its accesses of `iteration`. An order that a serial run does not have is a violation of
   PROPERTY_SERIAL. Does nothing without options.serial. */
static void serial_access(struct work_state *w, const struct op *op, int rank, int64_t iteration)
{
    if (!w->p->options.serial || op->task < 0 || op->access_count == 0)
        return;
    for (int k = 0; k < op->access_count; k++)
        serial_check(w, op, &w->p->accesses[op->access_first + k], rank, iteration);
    if (plan_task(w->p->plan, rank, op->task)->writes.count > 0)
        *made_cell(w, rank, op->task) = (int32_t)iteration + 1;
}

/* ---- whether a drained pipeline can be filled again ------------------------------------------ */

/*
 * A drain resets a rank: its driver counts iterations and tickets anew and clears its slots. When all agents are
 * at their end, all else is as at the start, except the messages between ranks: a send that finished on credit
 * (`eager_messages`, `eager_bytes`) without a receive leaves its message in the channel, and the first receive
 * after a refill gets it.
 */

/* The oldest send in the channel without a receive; -1: none. */
static int unreceived_part(const struct program *p, const int32_t *c, int channel)
{
    const int32_t *cells = c + p->at.channels[channel];
    return cells[0] > 0 ? cells[1 + CHANNEL_PART] : -1;
}

static bool may_be_eager(const struct program *p, int channel)
{
    const struct comm_desc *comm = &p->comms[p->channels[channel].comm];
    return comm->eager_messages > 0 || comm->eager_bytes > 0;
}

/* After a step of a pipeline: a message left by the last step is a violation of PROPERTY_DRAIN;
   effect->met names its send. */
static void refill_check(struct work_state *w)
{
    const struct program *p = w->p;
    if (failure_happened(p, w->c))
        return; /* a stopped rank is not drained */
    for (int channel = 0; channel < p->channel_count; channel++) {
        int part = may_be_eager(p, channel) ? unreceived_part(p, w->c, channel) : -1;
        if (part < 0)
            continue;
        struct state state = {.cells = w->c};
        if (!machine_done(p, &state))
            return;
        w->e->violated |= 1u << PROPERTY_DRAIN;
        w->e->met.op = (int)(machine_part_op(p, part) - p->ops);
        w->e->met.iteration = w->c[p->at.channels[channel] + 1 + CHANNEL_ITER];
        return;
    }
}

/* ---- states ---------------------------------------------------------------------------------- */

/* The initial state of a cleared one: the cells that are not zero. */
static void machine_begin(const struct program *p, int32_t *c)
{
    for (int t = 0; t < p->thread_count; t++)
        thread_cells(p, c, t)[THREAD_BODY] = p->threads[t].body;
    for (int e = 0; e < p->event_families * p->slots; e++)
        event_cells(p, c, e)[EVENT_STREAM] = -1;
    for (int f = 0; f < p->flag_families; f++)
        if (p->flag_begins[f])
            flag_cells(p, c, f * p->slots)[FLAG_VALUE] = p->flag_begins[f];
    if (p->tasks == 0)
        return;
    for (int e = 0; e < p->event_families * p->slots; e++)
        event_cells(p, c, e)[EVENT_OWNER] = -1;
    for (int f = 0; f < p->flag_families * p->slots; f++)
        flag_cells(p, c, f)[FLAG_OWNER] = -1;
    for (int rank = 0; rank < p->ranks; rank++) {
        rank_cells(p, c, rank)[RANK_END] = p->ends[rank] < 0 ? -1 : (int32_t)p->ends[rank];
        driver_settle(p, c, rank);
    }
}

struct state *machine_state(const struct program *p)
{
    assert(p->fits);
    struct state *state = malloc(sizeof *state);
    if (!state)
        return NULL;
    state->cells = large_calloc(1, p->at.block);
    bool clocks = p->options.clocks && p->at.rows > 0;
    state->clocks = clocks ? clocks_open(p) : NULL;
    if (!state->cells || (clocks && !state->clocks)) {
        machine_free(state);
        return NULL;
    }
    machine_begin(p, state->cells);
    return state;
}

void machine_free(struct state *state)
{
    if (!state)
        return;
    clocks_close(state->clocks);
    free(state->cells);
    free(state);
}

void machine_copy(const struct program *p, struct state *to, const struct state *from)
{
    assert(!to->clocks && !from->clocks);
    memcpy(to->cells, from->cells, p->at.bytes);
}

void machine_limit_knowledge(const struct state *state, bool own_rank)
{
    if (state->clocks)
        clocks_limit(state->clocks, own_rank);
}

bool machine_lost_knowledge(const struct state *state)
{
    return state->clocks && clocks_failed(state->clocks);
}

void machine_reset(const struct program *p, struct state *state)
{
    memset(state->cells, 0, p->at.bytes);
    if (state->clocks)
        clocks_reset(state->clocks);
    machine_begin(p, state->cells);
}

/* ---- small helpers --------------------------------------------------------------------------- */

static const struct op *item_op(const struct program *p, int32_t *c, int stream, int k)
{
    return &p->ops[item_cells(p, c, stream, k)[ITEM_OP]];
}

static int at_thread(const struct work_state *w, int thread)
{
    return w->p->at.row_threads + thread;
}

static int at_stream(const struct work_state *w, int stream)
{
    return w->p->at.row_streams + stream;
}

/* The first stream of a shared hardware queue must be this one. */
static bool heads_hw_queue(const struct program *p, int32_t *c, int stream)
{
    int queue = p->streams[stream].hw_queue;
    return queue < 0 || c[p->at.hw_queues[queue] + 1] == stream;
}

static void leave_hw_queue(const struct program *p, int32_t *c, int stream)
{
    int queue = p->streams[stream].hw_queue;
    if (queue < 0)
        return;
    int32_t *cells = c + p->at.hw_queues[queue];
    cells[0]--;
    memmove(cells + 1, cells + 2, (size_t)cells[0] * sizeof *cells);
    cells[1 + cells[0]] = 0;
}

bool machine_device_idle(const struct program *p, int32_t *c, int rank)
{
    for (int k = p->rank_first[rank]; k < p->rank_first[rank + 1]; k++)
        if (stream_cells(p, c, p->rank_streams[k])[STREAM_COUNT] > 0)
            return false;
    return true;
}

bool dependence_applies(const struct program *p, int32_t *c, int rank, const struct op *op,
                        int64_t iteration)
{
    const int distance = op_dependence(op);
    if (p->tasks == 0 || distance < 0)
        return true;
    int64_t wanted = iteration - distance;
    if (wanted < 0)
        return false;
    return p->plan->pipeline.retired_dep == RETIRED_DEP_WAIT ||
           wanted >= rank_cells(p, c, rank)[RANK_OLDEST];
}

/* A thread that skips a dependence because its iteration is retired has asked the driver, and gets the
   knowledge that the driver had at the retirement. */
static void learn_of_retirement(struct work_state *w, int thread, const struct op *op,
                                int64_t iteration)
{
    int rank = w->p->threads[thread].rank;
    if (iteration >= op_dependence(op))
        hb_join(w, at_thread(w, thread), at_thread(w, w->p->driver_thread[rank]));
}

static void slot_hazard(struct work_state *w, int64_t wanted, int64_t found)
{
    if (w->e->violated & (1u << PROPERTY_SLOT))
        return;
    w->e->violated |= 1u << PROPERTY_SLOT;
    w->e->wanted = wanted;
    w->e->found = found;
}

static void check_owner(struct work_state *w, const struct op *op, int64_t iteration, int64_t owner)
{
    if (w->p->tasks && op->distance >= 0 && owner != iteration - op->distance)
        slot_hazard(w, iteration - op->distance, owner);
}

/* ---- device: the head of a stream ------------------------------------------------------------ */

static void machine_pop(struct work_state *w, int stream)
{
    const struct program *p = w->p;
    int32_t *state = stream_cells(p, w->c, stream);
    memset(item_cells(p, w->c, stream, 0), 0, ITEM_CELLS * sizeof *state);
    hb_clear(w, item_row(p, w->c, stream, 0));
    state[STREAM_FIRST] = --state[STREAM_COUNT] ? item_place(p, w->c, stream, 1) : 0;
    state[STREAM_RUNNING] = 0;
    state[STREAM_DONE]++;
    if (p->awaited_count > 0)
        snapshot_reach(w, stream);
}

/* The waits in `waiter` for the record at this position of `stream` get the knowledge of `stream`. */
static void tell_waits(struct work_state *w, int waiter, int stream, int position)
{
    const struct program *p = w->p;
    int count = stream_cells(p, w->c, waiter)[STREAM_COUNT];
    for (int k = 0; k < count; k++) {
        const int32_t *item = item_cells(p, w->c, waiter, k);
        if (p->ops[item[ITEM_OP]].kind == OP_WAIT && item[ITEM_A] == stream &&
            item[ITEM_B] == position)
            hb_join(w, item_row(p, w->c, waiter, k), at_stream(w, stream));
    }
}

/* The record at the head takes effect: its knowledge goes to the event, if that has not been recorded
   again, and to all waits for this record. The waits are over when the record is popped. */
static void reach_record(struct work_state *w, int stream, const struct op *op)
{
    const struct program *p = w->p;
    int rank = p->streams[stream].rank, position = stream_cells(p, w->c, stream)[STREAM_DONE];
    const int32_t *item = item_cells(p, w->c, stream, 0);
    int64_t iteration = item[ITEM_ITER];
    int instance = item[ITEM_A];
    int32_t *event = event_cells(p, w->c, instance);
    if (event[EVENT_STREAM] == stream && event[EVENT_POS] == position) {
        event[EVENT_STREAM] = -1;
        event[EVENT_POS] = 0;
        hb_copy(w, p->at.row_events + instance, at_stream(w, stream));
    }
    if (w->clocks)
        clocks_reach(w->clocks, stream, position, at_stream(w, stream));
    else if (p->at.row_words)
        for (int i = p->waiter_first[op->object]; i < p->waiter_first[op->object + 1]; i++)
            tell_waits(w, p->waiters[i], stream, position);
    if (op->task < 0 || p->tasks == 0)
        return;
    int32_t *window = window_cells(p, w->c, rank, iteration);
    if (--window[WINDOW_DEVICE_LEFT] == 0)
        driver_finish(w, rank);
    if (op->task == p->last_task)
        window[WINDOW_LAST_LEFT] = 0;
    if (driver_awaits_event(p, op->task))
        hb_join(w, p->at.row_done + rank * p->window + (int)(iteration % p->window),
                at_stream(w, stream));
}

static void report_lifetime(struct work_state *w, const struct other_access *other)
{
    if (w->e->violated & (1u << PROPERTY_LIFETIME))
        return;
    w->e->violated |= 1u << PROPERTY_LIFETIME;
    w->e->lifetime = *other;
}

bool machine_is_recorded(const struct program *p, int32_t *c, int buffer, int agent)
{
    for (int i = p->recorded_of[buffer]; i >= 0; i = p->recorded[i].next)
        if (program_stream_agent(p, p->recorded[i].stream) == agent)
            return c[p->at.recorded + i] != RECORDED_NOT;
    return false;
}

static bool machine_accesses(const struct program *p, const struct op *op, int buffer)
{
    for (int k = 0; k < op->access_count; k++)
        if (p->accesses[op->access_first + k].buffer == buffer)
            return true;
    return false;
}

/* True if an access to `buffer` is queued on another stream than this, -1: on any, that record_stream has not announced
   to the allocator. */
static bool access_pending(struct work_state *w, int buffer, int stream, int *other)
{
    const struct program *p = w->p;
    int rank = p->buffers[buffer].rank;
    int first = p->is_crossed ? 0 : p->rank_first[rank];
    int end = p->is_crossed ? p->stream_count : p->rank_first[rank + 1];
    for (int i = first; i < end; i++) {
        int s = p->rank_streams[i], agent = program_stream_agent(p, s);
        int count = s == stream ? 0 : stream_cells(p, w->c, s)[STREAM_COUNT];
        for (int k = 0; k < count; k++)
            if (machine_accesses(p, item_op(p, w->c, s, k), buffer) &&
                !machine_is_recorded(p, w->c, buffer, agent)) {
                *other = agent;
                return true;
            }
    }
    return false;
}

/* The allocator gives memory to `stream`: it may be that of any buffer of the stream that was freed
   before. */
static void reuse_memory(struct work_state *w, int stream)
{
    const struct program *p = w->p;
    int position = stream_cells(p, w->c, stream)[STREAM_DONE];
    for (int b = 0; p->has_lifetimes && b < p->buffer_count; b++) {
        const int32_t *buffer = buffer_cells(p, w->c, b);
        int other = -1;
        if (p->buffers[b].rank != p->streams[stream].rank || buffer[BUFFER_STATE] != BUFFER_FREED ||
            buffer[BUFFER_STREAM] != stream + 1 || buffer[BUFFER_FREED_AT] > position)
            continue;
        bool in_use =
            hb_is_kept(w) && (hb_unknown_access(w, b, at_stream(w, stream),
                                                program_stream_agent(p, stream), &other) ||
                              access_pending(w, b, stream, &other));
        if (in_use)
            report_lifetime(w, &(struct other_access){.buffer = b, .agent = other, .op = -1});
    }
}

enum { LONGEST_CHAIN = 64 };

/* Pop the head of `stream` if it takes effect at once. Returns its operation, or NULL. */
static const struct op *settle_head(struct work_state *w, int stream)
{
    const struct program *p = w->p;
    const int32_t *state = stream_cells(p, w->c, stream);
    if (state[STREAM_COUNT] == 0 || state[STREAM_RUNNING] || !heads_hw_queue(p, w->c, stream))
        return NULL;
    const struct op *op = item_op(p, w->c, stream, 0);
    if (!op_is_mark(op->kind) ||
        (op->kind == OP_WAIT && !wait_is_over(p, w->c, item_cells(p, w->c, stream, 0))))
        return NULL;
    hb_join(w, at_stream(w, stream), item_row(p, w->c, stream, 0));
    const int32_t *item = item_cells(p, w->c, stream, 0);
    if (w->clocks && op->kind == OP_WAIT && item[ITEM_A] >= 0)
        clocks_receive(w->clocks, item[ITEM_A], item[ITEM_B], at_stream(w, stream));
    if (op->kind == OP_RECORD)
        reach_record(w, stream, op);
    if (op->kind == OP_ALLOC) {
        reuse_memory(w, stream);
        hb_allocated(w, op->object, RECORD_ALLOCATED, at_stream(w, stream));
    }
    leave_hw_queue(p, w->c, stream);
    machine_pop(w, stream);
    return op;
}

/* Settle all streams of a rank, and of those that wait for its events, until no head takes effect any more. */
static void settle_rank(struct work_state *w, int rank)
{
    const struct program *p = w->p;
    int first = p->is_crossed ? 0 : p->rank_first[rank];
    int end = p->is_crossed ? p->stream_count : p->rank_first[rank + 1];
    for (bool again = true; again;) {
        again = false;
        for (int k = first; k < end; k++)
            while (settle_head(w, p->rank_streams[k]))
                again = true;
    }
}

/* Settle `stream` and the streams that wait for its records. A long chain of them ends in
   settle_rank. */
static void settle_chain(struct work_state *w, int stream, int length)
{
    const struct program *p = w->p;
    for (const struct op *op; (op = settle_head(w, stream));) {
        if (op->kind != OP_RECORD)
            continue;
        if (length == LONGEST_CHAIN)
            settle_rank(w, p->streams[stream].rank);
        else
            for (int i = p->waiter_first[op->object]; i < p->waiter_first[op->object + 1]; i++)
                settle_chain(w, p->waiters[i], length + 1);
    }
}

/* `stream` has changed: settle until no head takes effect any more; the order does not matter. Only
   streams that wait for its records, or share its hardware queue, can be concerned. */
static void machine_settle(struct work_state *w, int stream)
{
    if (w->p->streams[stream].hw_queue >= 0 || (w->p->is_crossed && w->p->hw_queue_count > 0))
        settle_rank(w, w->p->streams[stream].rank);
    else
        settle_chain(w, stream, 0);
}

/* ---- device: start --------------------------------------------------------------------------- */

static bool has_resources(const struct program *p, int32_t *c, int rank, const struct op *op)
{
    int slots = p->plan->machine.sm_slots;
    return slots == 0 || op->sm == 0 || *device_sm_used(p, c, rank) + op->sm <= slots;
}

/* True if the flag has the value that the operation waits for. */
static bool machine_flag_suffices(const struct program *p, int32_t *c, const struct op *op,
                                  int64_t iteration)
{
    const int32_t value = flag_cells(p, c, instance_of(p, op, iteration))[FLAG_VALUE];
    return op->flag_rule == FLAG_EQUALS ? value == op->value : value >= op->value;
}

/* True if what the operation takes at its stream is there. Who waits for a record settles. */
static bool has_what_it_takes(const struct program *p, int32_t *c, const struct op *op,
                              int64_t iteration)
{
    return op->kind != OP_WAIT_FLAG || machine_flag_suffices(p, c, op, iteration);
}

bool machine_can_start(const struct program *p, int32_t *c, int stream)
{
    ASSERT_INDEX(stream, p->stream_count);
    const int32_t *state = stream_cells(p, c, stream);
    if (state[STREAM_COUNT] == 0 || state[STREAM_RUNNING])
        return false;
    const struct op *op = item_op(p, c, stream, 0);
    const int32_t *item = item_cells(p, c, stream, 0);
    int rank = p->streams[stream].rank;
    if (op_is_mark(op->kind) || !heads_hw_queue(p, c, stream) || !has_resources(p, c, rank, op) ||
        !has_what_it_takes(p, c, op, item[ITEM_ITER]))
        return false;
    if (!op_uses_comm(op->kind))
        return true;
    if (p->plan->machine.launch_order_implicit &&
        item[ITEM_C] != rank_cells(p, c, rank)[RANK_COMM_STARTED])
        return false;
    return item[ITEM_A] == member_cells(p, c, op)[MEMBER_FINISHED];
}

/* After a fault a mismatch is not reported: the collective never ends (can_complete). */
static void report_mismatch(struct work_state *w, const struct counterpart *met)
{
    if (w->e->violated & (1u << PROPERTY_MISMATCH) || failure_happened(w->p, w->c))
        return;
    w->e->violated |= 1u << PROPERTY_MISMATCH;
    w->e->met = *met;
}

/* True if the two match as one collective. */
static bool machine_same_collective(const struct op *a, int64_t iteration_a, const struct op *b,
                                    int64_t iteration_b)
{
    return iteration_a == iteration_b && op_same_collective(a, b);
}

/* The stream of member `m` of the communicator of `op`, another one than that of `op`, where it is in a
   collective and has not aborted it; else -1. */
static int in_collective(const struct work_state *w, const struct op *op, int m)
{
    const struct program *p = w->p;
    const int index = p->comms[op->comm].first_member + m,
              active = w->c[p->at.members + index * MEMBER_CELLS + MEMBER_ACTIVE] - 1;
    return m != op->member && active >= 0 && !failure_is_aborted(p, w->c, op->comm, m) &&
                   item_op(p, w->c, active, 0)->kind == OP_COLLECTIVE
               ? active
               : -1;
}

#ifdef SWSIM_CHECKS
/* What matches `other`, which `op` matches, matches `op`, too, and the other way round: to be the same is an equivalence. */
static bool is_same_for_all(const struct work_state *w, const struct op *op, int64_t iteration,
                            const struct op *other, int64_t other_iteration)
{
    const struct program *p = w->p;
    bool same = machine_same_collective(other, other_iteration, op, iteration);
    for (int m = 0; m < p->comms[op->comm].count; m++) {
        const int active = in_collective(w, op, m);
        if (active < 0)
            continue;
        const struct op *third = item_op(p, w->c, active, 0);
        const int64_t third_iteration = item_cells(p, w->c, active, 0)[ITEM_ITER];
        same &= machine_same_collective(op, iteration, third, third_iteration) ==
                machine_same_collective(other, other_iteration, third, third_iteration);
    }
    return same;
}
#endif

static void machine_check_collective(struct work_state *w, const struct op *op, int64_t iteration)
{
    const struct program *p = w->p;
    for (int m = 0; m < p->comms[op->comm].count; m++) {
        const int active = in_collective(w, op, m);
        if (active < 0)
            continue;
        const struct op *other = item_op(p, w->c, active, 0);
        int64_t other_iteration = item_cells(p, w->c, active, 0)[ITEM_ITER];
        if (machine_same_collective(op, iteration, other, other_iteration)) {
#ifdef SWSIM_CHECKS
            assert(is_same_for_all(w, op, iteration, other, other_iteration));
#endif
            return; /* and so are the others that have started, or one of them has reported a mismatch */
        }
        report_mismatch(w, &(struct counterpart){.agent = program_stream_agent(p, active),
                                                 .op = (int)(other - p->ops),
                                                 .iteration = other_iteration,
                                                 .part = -1,
                                                 .other_part = -1});
    }
}

const struct op *machine_part_op(const struct program *p, int part)
{
    for (size_t i = 0; i < p->op_count; i++)
        if (part >= p->ops[i].part_first && part < p->ops[i].part_first + p->ops[i].part_count)
            return &p->ops[i];
    return NULL;
}

static int active_stream(const struct program *p, int32_t *c, int comm, int member)
{
    return c[p->at.members + (p->comms[comm].first_member + member) * MEMBER_CELLS +
             MEMBER_ACTIVE] -
           1;
}

/* The stream of `rank` where the group of a message runs. */
static int running_group(const struct program *p, int32_t *c, int comm, int rank)
{
    int member = program_member(p, comm, rank);
    return member < 0 ? -1 : active_stream(p, c, comm, member);
}

/* A message matches: its receiver gets the knowledge that the sender had when its group started, and a
   sender that waits for its receiver gets the receiver's. `stream` runs the later part, whose
   knowledge is in its item; the knowledge of the earlier part is kept with the message. */
static void tell_peer(struct work_state *w, int stream, const struct part *part)
{
    const struct program *p = w->p;
    const struct channel *channel = &p->channels[part->channel];
    const struct comm_desc *comm = &p->comms[channel->comm];
    bool rendezvous = comm->eager_messages == 0 && comm->eager_bytes == 0;
    if (!part->send || rendezvous)
        hb_join(w, at_stream(w, stream), p->at.row_channels[part->channel]);
    if (part->send || rendezvous) {
        int peer = part->send ? channel->to : channel->from;
        hb_join(w, at_stream(w, running_group(p, w->c, channel->comm, peer)),
                item_row(p, w->c, stream, 0));
    }
}

/* A channel holds unmatched sends (count > 0) or unmatched receives (count < 0), oldest first. */
static void post_part(struct work_state *w, int stream, int index, int64_t iteration)
{
    const struct program *p = w->p;
    const struct part *part = &p->parts[index];
    int rows = p->at.row_channels[part->channel];
    int32_t *channel = w->c + p->at.channels[part->channel];
    int count = channel[0];
    bool matches = part->send ? count < 0 : count > 0;
    int pending = count < 0 ? -count : count;
    int32_t *first = channel + 1;
    channel[0] += part->send ? 1 : -1;
    if (!matches) {
        assert(pending < p->channels[part->channel].cap);
        first[pending * MESSAGE_CELLS + CHANNEL_PART] = index;
        first[pending * MESSAGE_CELLS + CHANNEL_ITER] = (int32_t)iteration;
        hb_copy(w, rows + pending, item_row(p, w->c, stream, 0));
        return;
    }
    tell_peer(w, stream, part);
    hb_shift(w, rows, pending);
    const struct part *other = &p->parts[first[CHANNEL_PART]];
    if (iteration != first[CHANNEL_ITER] || !part_same_message(part, other))
        report_mismatch(
            w, &(struct counterpart){.agent = -1,
                                     .op = (int)(machine_part_op(p, first[CHANNEL_PART]) - p->ops),
                                     .iteration = first[CHANNEL_ITER],
                                     .part = index,
                                     .other_part = first[CHANNEL_PART]});
    memmove(first, first + MESSAGE_CELLS, (size_t)(pending - 1) * MESSAGE_CELLS * sizeof *first);
    memset(first + (pending - 1) * MESSAGE_CELLS, 0, MESSAGE_CELLS * sizeof *first);
}

static void start_comm(struct work_state *w, int stream, const struct op *op, int64_t iteration)
{
    const struct program *p = w->p;
    member_cells(p, w->c, op)[MEMBER_ACTIVE] = stream + 1;
    if (p->plan->machine.launch_order_implicit)
        rank_cells(p, w->c, p->streams[stream].rank)[RANK_COMM_STARTED]++;
    hb_copy(w, item_row(p, w->c, stream, 0), at_stream(w, stream));
    if (failure_is_aborted(p, w->c, op->comm, op->member))
        return; /* it has no peers any more, and ends with an error */
    if (op->kind == OP_COLLECTIVE)
        machine_check_collective(w, op, iteration);
    for (int k = 0; k < op->part_count; k++)
        post_part(w, stream, op->part_first + k, iteration);
}

static void start_callback(struct work_state *w, int stream, const struct op *op, int64_t iteration)
{
    int32_t *thread = thread_cells(w->p, w->c, op->callback);
    thread[THREAD_PC] = 0;
    thread[THREAD_ITER] = (int32_t)iteration;
    thread[THREAD_BODY] = w->p->bodies[op->object].count ? op->object : -1;
    hb_join(w, at_thread(w, op->callback), at_stream(w, stream));
}

/* A flag carries what those know that its value comes from: who set it, and those that added to it since. A set to the value
   that it has carries nothing: who waited for that value may have seen it before. `from` knows it. */
static void machine_change_flag(struct work_state *w, const struct op *op, int instance, int from)
{
    int32_t *value = &flag_cells(w->p, w->c, instance)[FLAG_VALUE];
    const int row = w->p->at.row_flags + instance;
    if (op->flag_rule != FLAG_SETS) {
        *value += op->flag_rule == FLAG_TAKES ? -op->value : op->value;
        hb_join(w, row, from);
    } else if (*value != op->value) {
        *value = op->value;
        hb_copy(w, row, from);
    }
}

/* What a stream gives and takes it does at the start of the operation: its end only enables others. */
static void start_step(struct work_state *w, int stream, const struct op *op, int64_t iteration)
{
    int instance = instance_of(w->p, op, iteration);
    if (op->kind == OP_WRITE)
        machine_change_flag(w, op, instance, at_stream(w, stream));
    else
        hb_join(w, at_stream(w, stream), w->p->at.row_flags + instance);
}

/* A greedy kernel takes what is free, up to its most; others what they need. */
static void take_residency(struct work_state *w, int stream)
{
    const struct op *op = item_op(w->p, w->c, stream, 0);
    int32_t *used = device_sm_used(w->p, w->c, w->p->streams[stream].rank);
    if (op_is_greedy(op))
        item_cells(w->p, w->c, stream, 0)[ITEM_B] =
            min_int(w->p->plan->machine.sm_slots - *used, op->sm_most);
    *used += slots_held(w->p, w->c, stream);
}

/* Slots have become free on the device: its greedy kernels that run have them first, in the order of their streams. */
static void grow_greedy(struct work_state *w, int device_of)
{
    const struct program *p = w->p;
    int32_t *used = device_sm_used(p, w->c, device_of);
    for (int rank = p->device[device_of]; rank >= 0; rank = p->device_next[rank])
        for (int i = p->rank_first[rank]; i < p->rank_first[rank + 1]; i++) {
            const int stream = p->rank_streams[i];
            if (!stream_cells(p, w->c, stream)[STREAM_RUNNING] ||
                !op_is_greedy(item_op(p, w->c, stream, 0)))
                continue;
            int32_t *held = &item_cells(p, w->c, stream, 0)[ITEM_B];
            const int more = min_int(p->plan->machine.sm_slots - *used,
                                     item_op(p, w->c, stream, 0)->sm_most - *held);
            *held += more;
            *used += more;
        }
}

static void machine_start(struct work_state *w, int stream)
{
    const struct program *p = w->p;
    const struct op *op = item_op(p, w->c, stream, 0);
    int64_t iteration = item_cells(p, w->c, stream, 0)[ITEM_ITER];
    stream_cells(p, w->c, stream)[STREAM_RUNNING] = 1;
    leave_hw_queue(p, w->c, stream);
    if (p->plan->machine.sm_slots)
        take_residency(w, stream);
    hb_join(w, at_stream(w, stream), item_row(p, w->c, stream, 0));
    hb_access(w, op, iteration, at_stream(w, stream), program_stream_agent(p, stream));
    serial_access(w, op, p->streams[stream].rank, iteration);
    if (op_uses_comm(op->kind))
        start_comm(w, stream, op, iteration);
    if (op->kind == OP_CALLBACK)
        start_callback(w, stream, op, iteration);
    if (op_role(op->kind) == ROLE_STEP)
        start_step(w, stream, op, iteration);
    w->e->op = (int)(op - p->ops);
    w->e->iteration = iteration;
    w->e->kind = EFFECT_START;
    if (p->streams[stream].hw_queue >= 0)
        machine_settle(w, stream); /* the queue has moved on */
}

/* ---- device: finish -------------------------------------------------------------------------- */

/* True if the unmatched sends of a channel are within the eager limits, of messages or of bytes. */
static bool sends_are_eager(const struct program *p, const int32_t *channel,
                            const struct comm_desc *comm)
{
    int64_t bytes = 0;
    for (int k = 0; k < channel[0]; k++) {
        bytes += p->parts[channel[1 + k * MESSAGE_CELLS + CHANNEL_PART]].bytes;
        if (k >= comm->eager_messages && (comm->eager_bytes == 0 || bytes > comm->eager_bytes))
            return false;
    }
    return true;
}

/* One group a rank and communicator is active, so its messages are the youngest of their channels.
 */
bool machine_group_matched(const struct program *p, int32_t *c, const struct op *op)
{
    for (int k = 0; k < op->part_count; k++) {
        const struct part *part = &p->parts[op->part_first + k];
        const int32_t *channel = c + p->at.channels[part->channel];
        bool to_itself = p->channels[part->channel].from == p->channels[part->channel].to;
        bool eager = part->send && !to_itself && sends_are_eager(p, channel, &p->comms[op->comm]);
        if (!eager && (part->send ? channel[0] > 0 : channel[0] < 0))
            return false;
    }
    return true;
}

static bool can_finish(const struct program *p, int32_t *c, int stream)
{
    if (!stream_cells(p, c, stream)[STREAM_RUNNING])
        return false;
    const struct op *op = item_op(p, c, stream, 0);
    switch (op_role(op->kind)) {
    case ROLE_DEVICE:
    case ROLE_STEP: return true;
    case ROLE_COMM: /* a collective's members finish by one step of the communicator */
        return failure_is_aborted(p, c, op->comm, op->member) ||
               (op->kind == OP_GROUP && machine_group_matched(p, c, op));
    case ROLE_CALL: return thread_cells(p, c, op->callback)[THREAD_BODY] < 0;
    case ROLE_MARK:
    case ROLE_CPU:
    case ROLE_ASK:
    case ROLE_BRANCH:
    case ROLE_CONTROL: break;
    }
    assert(0 && "an operation that never starts");
    return false;
}

static void machine_finish(struct work_state *w, int stream)
{
    const struct program *p = w->p;
    const struct op *op = item_op(p, w->c, stream, 0);
    w->e->op = (int)(op - p->ops);
    w->e->iteration = item_cells(p, w->c, stream, 0)[ITEM_ITER];
    w->e->kind = EFFECT_FINISH;
    if (p->plan->machine.sm_slots)
        *device_sm_used(p, w->c, p->streams[stream].rank) -= slots_held(p, w->c, stream);
    if (op_uses_comm(op->kind)) {
        member_cells(p, w->c, op)[MEMBER_ACTIVE] = 0;
        member_cells(p, w->c, op)[MEMBER_FINISHED]++;
    }
    if (op->kind == OP_CALLBACK)
        hb_join(w, at_stream(w, stream), at_thread(w, op->callback));
    machine_pop(w, stream);
    if (p->has_greedy)
        grow_greedy(w, p->streams[stream].rank);
    machine_settle(w, stream);
}

/* True if the members, which have all started a collective, are in the same one. Without a fault they are: the first
   that disagrees ends the run. */
static bool machine_members_agree(const struct program *p, int32_t *c, int comm)
{
    int first = active_stream(p, c, comm, 0);
    for (int m = 1; m < p->comms[comm].count; m++) {
        int stream = active_stream(p, c, comm, m);
        if (!machine_same_collective(item_op(p, c, first, 0), item_cells(p, c, first, 0)[ITEM_ITER],
                                     item_op(p, c, stream, 0),
                                     item_cells(p, c, stream, 0)[ITEM_ITER]))
            return false;
    }
    return true;
}

static bool machine_can_complete(const struct program *p, int32_t *c, int comm)
{
    for (int m = 0; m < p->comms[comm].count; m++) {
        int stream = active_stream(p, c, comm, m);
        if (stream < 0 || item_op(p, c, stream, 0)->kind != OP_COLLECTIVE ||
            failure_is_aborted(p, c, comm, m))
            return false;
    }
    return !failure_happened(p, c) || machine_members_agree(p, c, comm);
}

/* Each member gets the knowledge of all. */
static void tell_all(struct work_state *w, int comm)
{
    const struct program *p = w->p;
    int first = active_stream(p, w->c, comm, 0);
    for (int m = 1; m < p->comms[comm].count; m++)
        hb_join(w, at_stream(w, first), at_stream(w, active_stream(p, w->c, comm, m)));
    for (int m = 1; m < p->comms[comm].count; m++)
        hb_copy(w, at_stream(w, active_stream(p, w->c, comm, m)), at_stream(w, first));
}

/* Each member gets the knowledge of the root, which learns nothing. */
static void tell_from_root(struct work_state *w, int comm, int root)
{
    int source = active_stream(w->p, w->c, comm, root);
    for (int m = 0; m < w->p->comms[comm].count; m++)
        if (m != root)
            hb_join(w, at_stream(w, active_stream(w->p, w->c, comm, m)), at_stream(w, source));
}

/* All members have started. Knowledge goes where data go. */
static void complete_collective(struct work_state *w, int comm)
{
    const struct program *p = w->p;
    const struct op *op = item_op(p, w->c, active_stream(p, w->c, comm, 0), 0);
    if (op->given->root_count == 0)
        tell_all(w, comm);
    for (int i = 0; i < op->given->root_count; i++)
        tell_from_root(w, comm, op->given->roots[i]);
    for (int m = 0; m < p->comms[comm].count; m++)
        machine_finish(w, active_stream(p, w->c, comm, m));
}

/* ---- host threads ---------------------------------------------------------------------------- */

static bool machine_has_place(const struct program *p, int32_t *c, int stream)
{
    return stream_cells(p, c, stream)[STREAM_COUNT] < p->streams[stream].cap;
}

static bool can_sync(const struct program *p, int32_t *c, int thread, const struct op *op,
                     int64_t iteration)
{
    int rank = program_sync_rank(p, thread, op);
    if (snapshot_is_needed(p, c, thread, op))
        return snapshot_awaits(p, c, thread) < 0; /* none before the call, which is never blocked */
    switch (op->sync) {
    case SYNC_STREAM: return stream_cells(p, c, op->stream)[STREAM_COUNT] == 0;
    case SYNC_EVENT: return event_cells(p, c, instance_of(p, op, iteration))[EVENT_STREAM] < 0;
    case SYNC_LOAD:
        if (c[p->at.kernels + rank * p->kernel_count + op->object])
            return true;
        break;
    case SYNC_RETRY:
    case SYNC_STAGED: return true;
    case SYNC_DEVICE: break;
    }
    return machine_device_idle(p, c, rank);
}

static int64_t ticket_of(const struct op *op, const int32_t *thread)
{
    return op->ticket >= 0 ? op->ticket : thread[THREAD_TICKET];
}

/* What the device has come to, at this moment. */
static bool query_says(const struct program *p, int32_t *c, int thread, const struct op *op,
                       int64_t iteration)
{
    if (op->sync == SYNC_EVENT)
        return event_cells(p, c, instance_of(p, op, iteration))[EVENT_STREAM] < 0;
    if (op->sync == SYNC_STREAM)
        return stream_cells(p, c, op->stream)[STREAM_COUNT] == 0;
    return machine_device_idle(p, c, program_sync_rank(p, thread, op));
}

static bool op_can_step(const struct program *p, int32_t *c, int thread, const struct op *op)
{
    const int32_t *state = thread_cells(p, c, thread);
    int rank = p->threads[thread].rank;
    int64_t iteration = state[THREAD_ITER];
    switch (op->kind) {
    case OP_LAUNCH:
    case OP_COPY:
    case OP_COLLECTIVE:
    case OP_GROUP:
    case OP_CALLBACK:
    case OP_ALLOC:
    case OP_WRITE:
    case OP_WAIT_FLAG: return machine_has_place(p, c, op->stream);
    case OP_RECORD:
    case OP_WAIT:
        return !dependence_applies(p, c, rank, op, iteration) ||
               machine_has_place(p, c, op->stream);
    case OP_SYNC: return can_sync(p, c, thread, op, iteration);
    case OP_AWAIT:
    case OP_ACQUIRE:
        return !dependence_applies(p, c, rank, op, iteration) ||
               machine_flag_suffices(p, c, op, iteration);
    case OP_PUT: return c[p->at.queues + op->object] < p->queue_caps[op->object];
    case OP_GET: return c[p->at.queues + op->object] > 0;
    case OP_LOCK:
        return c[p->at.locks + op->object] == 0 || !dependence_applies(p, c, rank, op, iteration);
    case OP_TICKET: return rank_cells(p, c, rank)[RANK_SERVED] == ticket_of(op, state);
    case OP_QUERY: return query_says(p, c, thread, op, iteration);
    case OP_QUERY_FLAG: return machine_flag_suffices(p, c, op, iteration);
    case OP_QUERY_QUEUE: return c[p->at.queues + op->object] > 0;
    case OP_HOST:
    case OP_COMPUTE:
    case OP_SIGNAL:
    case OP_UNLOCK:
    case OP_SERVE:
    case OP_HOST_ALLOC:
    case OP_FREE:
    case OP_RECORD_STREAM:
    case OP_ABORT:
    case OP_COMPLETE:
    case OP_CHOOSE:
    case OP_ELSE:
    case OP_END:
    case OP_CLEAR:          /* lowered to a signal */
    case OP_BARRIER: break; /* a barrier is lowered to flags */
    }
    return true;
}

bool machine_says_yes(const struct program *p, int32_t *c, int thread, const struct op *op)
{
    ASSERT_INDEX(thread, p->thread_count);
    assert(op_asks(op->kind) || op_may_try(op->kind));
    return op_can_step(p, c, thread, op);
}

/* The operations up to the next one that the thread does. Choice 0 is the usual one: memory is there, and a copy of pageable
   memory waits. */
static int steps_on(const struct op *op, int choice)
{
    bool usual_syncs = op->sync == SYNC_STAGED;
    return usual_syncs == (choice == 0) ? 1 : 2;
}

/* The steps that a thread can take. */
static int thread_choices(const struct program *p, int32_t *c, int thread)
{
    const enum thread_kind kind = p->threads[thread].kind;
    if (kind == THREAD_DRIVER)
        return driver_can_step(p, c, p->threads[thread].rank);
    const struct op *op = machine_thread_op(p, c, thread);
    if (!op)
        return kind == THREAD_WORKER && thread_cells(p, c, thread)[THREAD_COUNT] > 0 &&
               !failure_has_ended(p, c, thread);
    if (op_has_branches(op))
        return op->kind == OP_CHOOSE ? 2 : 1;
    if (!failure_gives_up(p, c, thread, op) && !op_can_step(p, c, thread, op))
        return 0;
    return op_may_sync(op) ? 2 : 1;
}

bool machine_thread_can_step(const struct program *p, int32_t *c, int thread)
{
    ASSERT_INDEX(thread, p->thread_count);
    return thread_choices(p, c, thread) > 0;
}

static int32_t *machine_push(struct work_state *w, int thread, const struct op *op,
                             int64_t iteration)
{
    const struct program *p = w->p;
    int32_t *state = stream_cells(p, w->c, op->stream);
    int last = state[STREAM_COUNT]++;
    int32_t *item = item_cells(p, w->c, op->stream, last);
    item[ITEM_OP] = (int32_t)(op - p->ops);
    item[ITEM_ITER] = (int32_t)iteration;
    hb_copy(w, item_row(p, w->c, op->stream, last), at_thread(w, thread));
    int queue = p->streams[op->stream].hw_queue;
    if (queue >= 0) {
        int32_t *cells = w->c + p->at.hw_queues[queue];
        cells[1 + cells[0]++] = op->stream;
    }
    return item;
}

/* Work that uses freed memory is wrong in any timing. */
static void check_freed(struct work_state *w, const struct op *op)
{
    for (int k = 0; w->p->has_lifetimes && k < op->access_count; k++) {
        int b = w->p->accesses[op->access_first + k].buffer;
        if (buffer_cells(w->p, w->c, b)[BUFFER_STATE] == BUFFER_FREED)
            report_lifetime(w, &(struct other_access){.buffer = b, .agent = -1, .op = -1});
    }
}

static void push_work(struct work_state *w, int thread, const struct op *op, int64_t iteration)
{
    int32_t *item = machine_push(w, thread, op, iteration);
    check_freed(w, op);
    if (!op_uses_comm(op->kind))
        return;
    item[ITEM_A] = member_cells(w->p, w->c, op)[MEMBER_ISSUED]++;
    if (w->p->plan->machine.launch_order_implicit)
        item[ITEM_C] = rank_cells(w->p, w->c, w->p->streams[op->stream].rank)[RANK_COMM_ISSUED]++;
}

static void record(struct work_state *w, int thread, const struct op *op, int64_t iteration)
{
    const struct program *p = w->p;
    int instance = instance_of(p, op, iteration);
    int32_t *event = event_cells(p, w->c, instance);
    const int32_t *stream = stream_cells(p, w->c, op->stream);
    check_owner(w, op, iteration, event[EVENT_OWNER]);
    event[EVENT_STREAM] = op->stream;
    event[EVENT_POS] = stream[STREAM_DONE] + stream[STREAM_COUNT];
    hb_clear(w, p->at.row_events + instance);
    machine_push(w, thread, op, iteration)[ITEM_A] = instance;
}

static void wait(struct work_state *w, int thread, const struct op *op, int64_t iteration)
{
    const struct program *p = w->p;
    int instance = instance_of(p, op, iteration);
    const int32_t *event = event_cells(p, w->c, instance);
    check_owner(w, op, iteration, event[EVENT_OWNER]);
    int row = item_row(p, w->c, op->stream, stream_cells(p, w->c, op->stream)[STREAM_COUNT]);
    int32_t *item = machine_push(w, thread, op, iteration);
    item[ITEM_A] = event[EVENT_STREAM];
    item[ITEM_B] = event[EVENT_POS];
    if (w->clocks && item[ITEM_A] >= 0)
        clocks_expect(w->clocks, item[ITEM_A], item[ITEM_B]);
    hb_join(w, row, p->at.row_events + instance);
}

/* Yes: the thread knows what the stream, the device or the event knows. */
static void query_done(struct work_state *w, int thread, const struct op *op, int64_t iteration)
{
    const struct program *p = w->p;
    const int rank = program_sync_rank(p, thread, op), self = at_thread(w, thread);
    if (op->sync == SYNC_EVENT) {
        hb_join(w, self, p->at.row_events + instance_of(p, op, iteration));
        return;
    }
    for (int k = p->rank_first[rank]; k < p->rank_first[rank + 1]; k++)
        if (op->sync != SYNC_STREAM || p->rank_streams[k] == op->stream)
            hb_join(w, self, at_stream(w, p->rank_streams[k]));
}

static void sync_done(struct work_state *w, int thread, const struct op *op, int64_t iteration)
{
    const struct program *p = w->p;
    int rank = program_sync_rank(p, thread, op);
    if (op->sync == SYNC_EVENT && !op->snapshot) {
        query_done(w, thread, op, iteration);
        return;
    }
    bool knows =
        snapshot_is_needed(p, w->c, thread, op) ||
        (op->sync == SYNC_LOAD && w->c[p->at.kernels + rank * p->kernel_count + op->object]);
    if (op->snapshot)
        snapshot_drop(w, thread);
    if (!knows)
        query_done(w, thread, op, iteration);
    if (op->sync == SYNC_LOAD)
        w->c[p->at.kernels + rank * p->kernel_count + op->object] = 1;
}

static void machine_signal_flag(struct work_state *w, int thread, const struct op *op,
                                int64_t iteration)
{
    int instance = instance_of(w->p, op, iteration);
    check_owner(w, op, iteration, flag_cells(w->p, w->c, instance)[FLAG_OWNER]);
    machine_change_flag(w, op, instance, at_thread(w, thread));
}

static void machine_await_flag(struct work_state *w, int thread, const struct op *op,
                               int64_t iteration)
{
    int instance = instance_of(w->p, op, iteration);
    check_owner(w, op, iteration, flag_cells(w->p, w->c, instance)[FLAG_OWNER]);
    hb_join(w, at_thread(w, thread), w->p->at.row_flags + instance);
    if (op->kind == OP_ACQUIRE)
        machine_change_flag(w, op, instance, at_thread(w, thread));
}

/* A place of a bounded queue carries knowledge both ways: from put to get, and from the get that
   freed it to the put that fills it again. */
static void machine_put(struct work_state *w, int thread, const struct op *op)
{
    int place = w->c[w->p->at.queues + op->object]++;
    int at = w->p->at.row_queues[op->object] + place;
    hb_join(w, at_thread(w, thread), at);
    hb_copy(w, at, at_thread(w, thread));
}

static void get(struct work_state *w, int thread, const struct op *op)
{
    const struct program *p = w->p;
    int at = p->at.row_queues[op->object];
    w->c[p->at.queues + op->object]--;
    hb_join(w, at_thread(w, thread), at);
    hb_shift(w, at, p->queue_caps[op->object]);
    hb_copy(w, at + p->queue_caps[op->object] - 1, at_thread(w, thread));
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* True if a freed buffer has a recorded stream that has not come to the point where it was freed. */
static bool is_kept_by_streams(const struct program *p, int32_t *c, int buffer)
{
    for (int i = p->recorded_of[buffer]; i >= 0; i = p->recorded[i].next)
        if (c[p->at.recorded + i] - RECORDED_UNTIL >
            stream_cells(p, c, p->recorded[i].stream)[STREAM_DONE])
            return true;
    return false;
}

/* Whatever the stream that asks: memory that is not freed, or freed and still used by a recorded stream. */
static bool is_held(const struct program *p, int32_t *c, int buffer)
{
    switch ((enum buffer_state)buffer_cells(p, c, buffer)[BUFFER_STATE]) {
    case BUFFER_LIVE: return true;
    case BUFFER_FREED: return is_kept_by_streams(p, c, buffer);
    case BUFFER_FRESH: break;
    }
    return false;
}

enum { POSITIONS = 256 };

/* The bytes that each position of a piece of a stream, from `first` on, has more than the one before. */
static void count_changes(const struct program *p, int32_t *c, int stream, int32_t first,
                          int64_t changes[POSITIONS])
{
    const int32_t begin = stream_cells(p, c, stream)[STREAM_DONE];
    for (int b = 0; b < p->buffer_count; b++) {
        const int32_t *buffer = buffer_cells(p, c, b);
        bool held = is_held(p, c, b);
        if (buffer[BUFFER_STREAM] != stream + 1 || (!held && buffer[BUFFER_FREED_AT] <= begin))
            continue;
        const int32_t from = max_int(buffer[BUFFER_TAKEN_AT], begin) - first,
                      to = buffer[BUFFER_FREED_AT] - first;
        if (from >= 0 && from < POSITIONS)
            changes[from] += p->buffers[b].bytes;
        if (!held && to >= 0 && to < POSITIONS)
            changes[to] -= p->buffers[b].bytes;
    }
}

/* The most bytes that are in use at once in what is left of a stream: there memory is handed out again in its order. */
static int64_t most_in_stream(const struct program *p, int32_t *c, int stream)
{
    int64_t bytes = 0, most = 0;
    for (int32_t first = stream_cells(p, c, stream)[STREAM_DONE], end = machine_tail(p, c, stream);
         first <= end; first += POSITIONS) {
        int64_t changes[POSITIONS] = {0};
        count_changes(p, c, stream, first, changes);
        for (int i = 0; i < POSITIONS; i++) {
            bytes += changes[i];
            most = bytes > most ? bytes : most;
        }
    }
    return most;
}

int64_t machine_allocated_bytes(const struct program *p, const struct state *state, int rank,
                                int stream)
{
    int32_t *c = state->cells;
    int64_t bytes = 0;
    for (int b = 0; b < p->buffer_count; b++) {
        const int32_t *buffer = buffer_cells(p, c, b);
        bool here = p->buffers[b].rank == rank && buffer[BUFFER_STREAM] == stream + 1;
        if (here && p->buffers[b].allocated && !p->buffers[b].on_host && is_held(p, c, b))
            bytes += p->buffers[b].bytes;
    }
    for (int i = p->rank_first[rank]; i < p->rank_first[rank + 1]; i++)
        if (p->rank_streams[i] != stream)
            bytes += most_in_stream(p, c, p->rank_streams[i]);
    return bytes;
}

int64_t machine_used_bytes(const struct program *p, int rank)
{
    int64_t bytes = 0;
    for (int b = 0; b < p->buffer_count; b++)
        if (p->buffers[b].rank == rank && !p->buffers[b].allocated &&
            p->buffers[b].record_count > 0)
            bytes += p->buffers[b].bytes * p->buffers[b].period;
    return bytes;
}

static void machine_check_memory(struct work_state *w, int rank, int stream)
{
    const struct program *p = w->p;
    const struct state state = {.cells = w->c};
    int64_t memory = machine_memory(&p->plan->machine, rank);
    int64_t bytes = memory && !p->owned_plan ? machine_used_bytes(p, rank) +
                                                   machine_allocated_bytes(p, &state, rank, stream)
                                             : 0;
    if (bytes <= memory)
        return;
    w->e->violated |= 1u << PROPERTY_BOUND;
    w->e->wanted = memory;
    w->e->found = bytes;
    w->e->bytes = true;
}

static void allocate(struct work_state *w, int thread, const struct op *op)
{
    const struct program *p = w->p;
    int32_t *buffer = buffer_cells(p, w->c, op->object);
    buffer[BUFFER_STATE] = BUFFER_LIVE;
    buffer[BUFFER_STREAM] = op->stream + 1;
    if (program_counts_memory(p))
        buffer[BUFFER_TAKEN_AT] = machine_tail(p, w->c, op->stream);
    machine_check_memory(w, p->buffers[op->object].rank, op->stream);
    hb_allocated(w, op->object, RECORD_CALLED, at_thread(w, thread));
}

static void host_allocate(struct work_state *w, int thread, const struct op *op)
{
    buffer_cells(w->p, w->c, op->object)[BUFFER_STATE] = BUFFER_LIVE;
    hb_allocated(w, op->object, RECORD_CALLED, at_thread(w, thread));
    hb_allocated(w, op->object, RECORD_ALLOCATED, at_thread(w, thread));
}

/* Memory of the host goes back at once: nobody may use it, but the streams that the allocator was told of. */
static void check_host_free(struct work_state *w, int thread, int buffer)
{
    const int agent = program_thread_agent(w->p, thread);
    int other = -1;
    if (hb_is_kept(w) && (hb_unknown_access(w, buffer, at_thread(w, thread), agent, &other) ||
                          access_pending(w, buffer, -1, &other)))
        report_lifetime(w, &(struct other_access){.buffer = buffer, .agent = other, .op = -1});
}

/* A thread that frees memory, or names a stream that uses it, knows that it is allocated, and no thread has freed it. False: it
   is not there. */
static bool check_is_live(struct work_state *w, int thread, const struct op *op)
{
    const struct program *p = w->p;
    const int32_t state = buffer_cells(p, w->c, op->object)[BUFFER_STATE];
    const bool live =
        state == BUFFER_LIVE || (state == BUFFER_FRESH && !p->buffers[op->object].allocated);
    if (!live || !hb_knows_call(w, op->object, at_thread(w, thread)))
        report_lifetime(
            w, &(struct other_access){
                   .buffer = op->object, .agent = -1, .early = state != BUFFER_FREED, .op = -1});
    return live;
}

/* `record_stream` is a call of the caching allocator: it says nothing where memory goes back in the order of a stream. */
static void free_recorded(struct work_state *w, const struct op *op, int home)
{
    const struct program *p = w->p;
    for (int i = p->recorded_of[op->object]; i >= 0; i = p->recorded[i].next) {
        int32_t *recorded = w->c + p->at.recorded + i;
        const int stream = p->recorded[i].stream;
        if (op->stream >= 0)
            *recorded = RECORDED_NOT;
        else if (*recorded && stream + 1 != home && program_counts_memory(p) &&
                 stream_cells(p, w->c, stream)[STREAM_COUNT] > 0)
            *recorded = RECORDED_UNTIL + machine_tail(p, w->c, stream);
    }
}

static void machine_free_buffer(struct work_state *w, int thread, const struct op *op)
{
    const struct program *p = w->p;
    int32_t *buffer = buffer_cells(p, w->c, op->object);
    if (!check_is_live(w, thread, op))
        return;
    if (p->buffers[op->object].on_host)
        check_host_free(w, thread, op->object);
    if (op->stream >= 0 && buffer[BUFFER_STREAM] != op->stream + 1) {
        buffer[BUFFER_STREAM] = op->stream + 1; /* it goes back in the order of that stream */
        buffer[BUFFER_TAKEN_AT] = 0;
    }
    const int home = buffer[BUFFER_STREAM];
    free_recorded(w, op, home);
    buffer[BUFFER_STATE] = BUFFER_FREED;
    buffer[BUFFER_FREED_AT] = home ? machine_tail(p, w->c, home - 1) : 0;
}

static void record_stream(struct work_state *w, int thread, const struct op *op)
{
    const struct program *p = w->p;
    const bool live = check_is_live(w, thread, op);
    for (int i = live ? p->recorded_of[op->object] : -1; i >= 0; i = p->recorded[i].next)
        if (p->recorded[i].stream == op->stream)
            w->c[p->at.recorded + i] = RECORDED;
}

static void machine_complete(struct work_state *w, int thread, const struct op *op,
                             int64_t iteration)
{
    int rank = w->p->threads[thread].rank;
    if (--window_cells(w->p, w->c, rank, iteration)[WINDOW_SUBMIT_LEFT] == 0)
        driver_finish(w, rank);
    if (driver_awaits_submission(w->p))
        hb_join(w, w->p->at.row_done + rank * w->p->window + (int)(iteration % w->p->window),
                at_thread(w, thread));
    if (program_ends_turn(w->p, rank, op->task))
        hb_join(w, w->p->at.row_tickets + rank, at_thread(w, thread));
    if (w->p->driver == DRIVER_DATAFLOW && !failure_is_stopped(w->p, w->c, rank))
        dataflow_complete(w, rank, op->task, iteration);
}

/* True if the operation has no effect, as there is nothing to wait for. A lock that was taken for a wait is released in
   any case. */
static bool has_no_effect(const struct work_state *w, int thread, const struct op *op,
                          int64_t iteration)
{
    if (op->kind == OP_UNLOCK && op_dependence(op) >= 0 && w->p->tasks > 0)
        return w->c[w->p->at.locks + op->object] != thread + 1;
    return !dependence_applies(w->p, w->c, w->p->threads[thread].rank, op, iteration);
}

static void machine_execute(struct work_state *w, int thread, const struct op *op,
                            int64_t iteration)
{
    const struct program *p = w->p;
    int rank = p->threads[thread].rank, self = at_thread(w, thread);
    if (has_no_effect(w, thread, op, iteration)) {
        learn_of_retirement(w, thread, op, iteration);
        return;
    }
    switch (op->kind) {
    case OP_HOST:
    case OP_COMPUTE:
        hb_access(w, op, iteration, self, program_thread_agent(p, thread));
        serial_access(w, op, rank, iteration);
        check_freed(w, op);
        break;
    case OP_LAUNCH:
    case OP_COPY:
    case OP_COLLECTIVE:
    case OP_GROUP:
    case OP_CALLBACK: push_work(w, thread, op, iteration); break;
    case OP_ALLOC:
        allocate(w, thread, op);
        machine_push(w, thread, op, iteration);
        break;
    case OP_WRITE:
    case OP_WAIT_FLAG: machine_push(w, thread, op, iteration); break;
    case OP_RECORD: record(w, thread, op, iteration); break;
    case OP_WAIT: wait(w, thread, op, iteration); break;
    case OP_SYNC: sync_done(w, thread, op, iteration); break;
    case OP_SIGNAL: machine_signal_flag(w, thread, op, iteration); break;
    case OP_AWAIT:
    case OP_ACQUIRE: machine_await_flag(w, thread, op, iteration); break;
    case OP_PUT: machine_put(w, thread, op); break;
    case OP_GET: get(w, thread, op); break;
    case OP_LOCK:
        w->c[p->at.locks + op->object] = thread + 1;
        hb_join(w, self, p->at.row_locks + op->object);
        break;
    case OP_UNLOCK:
        w->c[p->at.locks + op->object] = 0;
        hb_copy(w, p->at.row_locks + op->object, self);
        break;
    case OP_TICKET: hb_join(w, self, p->at.row_tickets + rank); break;
    case OP_SERVE:
        rank_cells(p, w->c, rank)[RANK_SERVED]++;
        hb_join(w, p->at.row_tickets + rank, self);
        break;
    case OP_HOST_ALLOC: host_allocate(w, thread, op); break;
    case OP_FREE: machine_free_buffer(w, thread, op); break;
    case OP_RECORD_STREAM: record_stream(w, thread, op); break;
    case OP_ABORT: failure_abort_member(w, op->object, op->member); break;
    case OP_COMPLETE: machine_complete(w, thread, op, iteration); break;
    case OP_QUERY: query_done(w, thread, op, iteration); break;
    case OP_QUERY_FLAG: hb_join(w, self, p->at.row_flags + instance_of(p, op, iteration)); break;
    case OP_QUERY_QUEUE: hb_join(w, self, p->at.row_queues[op->object]); break;
    case OP_CHOOSE: break;
    case OP_ELSE:
    case OP_END:
    case OP_CLEAR:
    case OP_BARRIER: assert(0 && "an operation that is lowered to others"); break;
    }
}

/* A worker takes the oldest instance of its queue. */
static void machine_take(struct work_state *w, int thread)
{
    const struct program *p = w->p;
    int32_t *state = thread_cells(p, w->c, thread), *first = entry_cells(p, w->c, thread, 0);
    int rank = p->threads[thread].rank, task = first[ENTRY_TASK];
    state[THREAD_BODY] = rank * p->tasks + task;
    state[THREAD_PC] = 0;
    state[THREAD_ITER] = first[ENTRY_ITER];
    state[THREAD_TICKET] = first[ENTRY_TICKET];
    hb_join(w, at_thread(w, thread), p->at.row_entries[thread]);
    int count = --state[THREAD_COUNT];
    memset(first, 0, ENTRY_CELLS * sizeof *first);
    const int next = state[THREAD_FIRST] + 1;
    state[THREAD_FIRST] = count && next < p->threads[thread].queue_cap ? next : 0;
    hb_shift(w, p->at.row_entries[thread], count + 1);
    w->e->iteration = state[THREAD_ITER];
    w->e->op = p->bodies[state[THREAD_BODY]].first;
    w->e->takes = true;
    if (p->plan->pipeline.slot_reset == SLOT_RESET_SUBMIT)
        driver_arm_slot(w, rank, task, state[THREAD_ITER]);
}

/* The thread goes on so many operations behind the one it is at: program_behind. */
static void go_past(const struct program *p, int32_t *c, int thread, int steps)
{
    int32_t *state = thread_cells(p, c, thread);
    state[THREAD_PC] = program_behind(p, &p->bodies[state[THREAD_BODY]], state[THREAD_PC], steps);
}

/* After a push: behind others an item takes effect later. */
static bool may_settle(const struct program *p, int32_t *c, int stream)
{
    return p->hw_queue_count > 0 || stream_cells(p, c, stream)[STREAM_COUNT] == 1;
}

static void thread_step(struct work_state *w, int thread, int choice)
{
    const struct program *p = w->p;
    int rank = p->threads[thread].rank;
    w->e->kind = EFFECT_HOST;
    if (p->threads[thread].kind == THREAD_DRIVER) {
        driver_step(w, rank);
        return;
    }
    const struct op *op = machine_thread_op(p, w->c, thread);
    if (!op) {
        machine_take(w, thread);
        return;
    }
    int32_t *state = thread_cells(p, w->c, thread);
    w->e->op = (int)(op - p->ops);
    w->e->iteration = state[THREAD_ITER];
    if (failure_gives_up(p, w->c, thread, op)) {
        failure_give_up(w, thread);
        return;
    }
    if (op_may_sync(op)) {
        go_past(p, w->c, thread, steps_on(op, choice));
        return;
    }
    if (op_has_branches(op) && (choice > 0 || !machine_says_yes(p, w->c, thread, op))) {
        go_past(p, w->c, thread, op->otherwise);
        return;
    }
    if (snapshot_is_needed(p, w->c, thread, op) && !snapshot_is_taken(p, w->c, thread)) {
        snapshot_take(w, thread, op, state[THREAD_ITER]);
        return;
    }
    machine_execute(w, thread, op, state[THREAD_ITER]);
    go_past(p, w->c, thread, 1);
    if (p->threads[thread].kind != THREAD_HOST && !machine_thread_op(p, w->c, thread)) {
        state[THREAD_PC] = state[THREAD_ITER] = state[THREAD_TICKET] = 0;
        state[THREAD_BODY] = -1;
    }
    if (op_pushes(op->kind) && may_settle(p, w->c, op->stream))
        machine_settle(w, op->stream);
}

/* ---- the data loader ------------------------------------------------------------------------- */

static bool someone_asks(const struct program *p, int32_t *c)
{
    for (int rank = 0; p->tasks && rank < p->ranks; rank++)
        if (driver_asks_for_data(p, c, rank))
            return true;
    return false;
}

static void machine_decide(struct work_state *w, int choice)
{
    const struct program *p = w->p;
    w->e->iteration = w->c[0];
    if (choice == 0) {
        w->c[0]++;
        return;
    }
    for (int rank = 0; rank < p->ranks; rank++)
        if (rank_cells(p, w->c, rank)[RANK_END] < 0) {
            rank_cells(p, w->c, rank)[RANK_END] = w->c[0];
            driver_settle(p, w->c, rank);
        }
}

/* ---- the contract ---------------------------------------------------------------------------- */

int machine_agent_enabled(const struct program *p, const struct state *state, int agent)
{
    ASSERT_INDEX(agent, p->agent_count);
    int32_t *c = state->cells;
    const struct agent *desc = &p->agents[agent];
    switch (desc->kind) {
    case AGENT_DATA: return someone_asks(p, c) ? 2 : 0;
    case AGENT_THREAD: return thread_choices(p, c, desc->index);
    case AGENT_STREAM:
        return !failure_is_dead(p, c, desc->rank) &&
               (machine_can_start(p, c, desc->index) || can_finish(p, c, desc->index));
    case AGENT_COMM: return machine_can_complete(p, c, desc->index);
    case AGENT_FAULT: return failure_can_happen(p, c, &p->faults[desc->index]);
    case AGENT_WATCHDOG: return failure_can_abort(p, c, desc->index, desc->rank);
    }
    return 0;
}

int machine_enabled(const struct program *p, const struct state *state, struct transition *out)
{
    int count = 0;
    for (int agent = 0; agent < p->agent_count; agent++) {
        int choices = machine_agent_enabled(p, state, agent);
        for (int choice = 0; choice < choices; choice++)
            out[count++] = (struct transition){agent, choice};
    }
    return count;
}

void machine_step(const struct program *p, struct state *state, struct transition transition,
                  struct effect *effect)
{
    struct effect unused;
    struct work_state w = {p, state->cells, effect ? effect : &unused, state->clocks};
    *w.e = effect_none();
    const struct agent *desc = &p->agents[transition.agent];
    switch (desc->kind) {
    case AGENT_DATA: machine_decide(&w, transition.choice); break;
    case AGENT_THREAD: thread_step(&w, desc->index, transition.choice); break;
    case AGENT_STREAM:
        if (stream_cells(p, w.c, desc->index)[STREAM_RUNNING])
            machine_finish(&w, desc->index);
        else
            machine_start(&w, desc->index);
        break;
    case AGENT_COMM: complete_collective(&w, desc->index); break;
    case AGENT_FAULT: failure_happens(&w, &p->faults[desc->index]); break;
    case AGENT_WATCHDOG: failure_abort(&w, desc->index, desc->rank); break;
    }
    if (p->tasks)
        refill_check(&w);
}

bool machine_step_free(const struct program *p, const struct state *state, int agent)
{
    ASSERT_INDEX(agent, p->agent_count);
    int32_t *c = state->cells;
    const struct agent *desc = &p->agents[agent];
    switch (desc->kind) {
    case AGENT_DATA:
    case AGENT_FAULT:
    case AGENT_WATCHDOG: return false;
    case AGENT_COMM: return !p->has_aborts && !p->asks_device;
    case AGENT_STREAM:
        return stream_cells(p, c, desc->index)[STREAM_RUNNING]
                   ? !p->asks_device
                   : item_op(p, c, desc->index, 0)->starts_free;
    case AGENT_THREAD: break;
    }
    if (p->threads[desc->index].kind == THREAD_DRIVER)
        return thread_cells(p, c, desc->index)[THREAD_PC] == PHASE_RETIRE ? p->retire_free
                                                                          : p->admit_free;
    const struct op *op = machine_thread_op(p, c, desc->index);
    return op ? op->free : p->take_free;
}

bool machine_agent_idle(const struct program *p, const struct state *state, int agent)
{
    ASSERT_INDEX(agent, p->agent_count);
    int32_t *c = state->cells;
    const struct agent *desc = &p->agents[agent];
    switch (desc->kind) {
    case AGENT_DATA:
    case AGENT_COMM:
    case AGENT_FAULT: return true;
    case AGENT_WATCHDOG:
        return desc->rank < 0 || failure_abort_waits(p, c, desc->rank) != desc->index;
    case AGENT_STREAM:
        return stream_cells(p, c, desc->index)[STREAM_COUNT] == 0 ||
               failure_is_dead(p, c, desc->rank);
    case AGENT_THREAD: break;
    }
    const int32_t *thread = thread_cells(p, c, desc->index);
    if (p->threads[desc->index].kind == THREAD_DRIVER)
        return thread[THREAD_PC] == PHASE_END;
    return !machine_thread_op(p, c, desc->index) &&
           (thread[THREAD_COUNT] == 0 || failure_has_ended(p, c, desc->index));
}

bool machine_wait_is_idle(const struct program *p, const struct state *state, int agent)
{
    int32_t *c = state->cells;
    const struct agent *desc = &p->agents[agent];
    const struct op *op = desc->kind == AGENT_THREAD && p->threads[desc->index].kind == THREAD_HOST
                              ? machine_thread_op(p, c, desc->index)
                              : NULL;
    return op && op->kind == OP_SYNC && op->sync == SYNC_STAGED && op[1].free &&
           stream_cells(p, c, op->stream)[STREAM_COUNT] == 0;
}

/* True if an admitted iteration is unfinished. Its driver may have retired it already. */
static bool iteration_left(const struct program *p, int32_t *c)
{
    for (int rank = 0; p->tasks && rank < p->ranks; rank++)
        for (int place = 0; place < p->window; place++)
            if (driver_unfinished(p, c, rank, place))
                return true;
    return false;
}

bool machine_done(const struct program *p, const struct state *state)
{
    for (int agent = 0; agent < p->agent_count; agent++)
        if (!machine_agent_idle(p, state, agent))
            return false;
    return !iteration_left(p, state->cells);
}

/* ---- after a fault --------------------------------------------------------------------------- */

bool machine_failed(const struct program *p, const struct state *state)
{
    return failure_happened(p, state->cells);
}

/* The first rank of the component of this agent. */
static int fellows_of(const struct program *p, int agent)
{
    const struct agent *desc = &p->agents[agent];
    bool of_comm = desc->rank < 0;
    return p->fellows[of_comm ? p->comms[desc->index].members[0] : desc->rank];
}

/* True if no agent of these ranks can step, none waits for data, and a thread is blocked, or a watchdog is in an
   abort. */
static bool machine_is_stuck(const struct program *p, const struct state *state, int fellows)
{
    bool blocked = false;
    for (int agent = 1; agent < p->agent_count; agent++) {
        const struct agent *desc = &p->agents[agent];
        if (desc->kind == AGENT_FAULT || fellows_of(p, agent) != fellows)
            continue;
        if (machine_agent_enabled(p, state, agent))
            return false;
        if (p->tasks && machine_admits(p, state, agent) &&
            driver_asks_for_data(p, state->cells, desc->rank))
            return false;
        blocked |= desc->kind != AGENT_STREAM && !machine_agent_idle(p, state, agent);
    }
    return blocked;
}

bool machine_never_woken(const struct program *p, const struct state *state)
{
    for (int rank = 0; machine_failed(p, state) && rank < p->ranks; rank++)
        if (p->fellows[rank] == rank && machine_is_stuck(p, state, rank))
            return true;
    return false;
}

void machine_state_from_plain(const struct program *p, struct state *to,
                              const struct program *plain, const struct state *from)
{
    memset(to->cells, 0, p->at.bytes);
    memcpy(to->cells, from->cells, (size_t)plain->at.cells * sizeof *to->cells);
    memcpy((char *)to->cells + p->at.rows_at, (const char *)from->cells + plain->at.rows_at,
           p->at.bytes - p->at.rows_at);
}

static bool driver_is_in(const struct program *p, const struct state *state, int agent, int phase)
{
    const struct agent *desc = &p->agents[agent];
    return desc->kind == AGENT_THREAD && p->threads[desc->index].kind == THREAD_DRIVER &&
           thread_cells(p, state->cells, desc->index)[THREAD_PC] == phase;
}

bool machine_admits(const struct program *p, const struct state *state, int agent)
{
    return driver_is_in(p, state, agent, PHASE_ADMIT);
}

bool machine_retires(const struct program *p, const struct state *state, int agent)
{
    return driver_is_in(p, state, agent, PHASE_RETIRE);
}

void machine_call_now(const struct program *p, struct state *state, int agent)
{
    ASSERT_INDEX(agent, p->agent_count);
    const int thread = p->agents[agent].index;
    struct effect unused = effect_none();
    struct work_state w = {p, state->cells, &unused, state->clocks};
    const struct op *op =
        p->agents[agent].kind == AGENT_THREAD ? machine_thread_op(p, w.c, thread) : NULL;
    if (!op || !snapshot_is_needed(p, w.c, thread, op) || !snapshot_is_taken(p, w.c, thread))
        return;
    snapshot_drop(&w, thread);
    snapshot_take(&w, thread, op, thread_cells(p, w.c, thread)[THREAD_ITER]);
}

void machine_end_data(const struct program *p, struct state *state, int rank, int64_t iterations)
{
    ASSERT_INDEX(rank, p->ranks);
    rank_cells(p, state->cells, rank)[RANK_END] = (int32_t)iterations;
    driver_settle(p, state->cells, rank);
}

bool machine_data_ended(const struct program *p, const struct state *state, int rank)
{
    const int32_t *rank_state = rank_cells(p, state->cells, rank);
    return p->tasks > 0 && rank_state[RANK_END] >= 0 &&
           rank_state[RANK_ADMITTED] >= rank_state[RANK_END];
}

bool machine_stale_wait(const struct program *p, const struct state *state, int agent,
                        int64_t *wanted, int64_t *found)
{
    const struct agent *desc = &p->agents[agent];
    if (desc->kind != AGENT_THREAD || p->tasks == 0)
        return false;
    const struct op *op = machine_thread_op(p, state->cells, desc->index);
    if (!op || op->kind != OP_AWAIT || op->distance < 0)
        return false;
    int64_t iteration = thread_cells(p, state->cells, desc->index)[THREAD_ITER];
    if (!dependence_applies(p, state->cells, desc->rank, op, iteration))
        return false;
    *wanted = iteration - op->distance;
    *found = flag_cells(p, state->cells, instance_of(p, op, iteration))[FLAG_OWNER];
    return *found > *wanted;
}

int machine_current_op(const struct program *p, const struct state *state, int agent,
                       int64_t *iteration)
{
    int32_t *c = state->cells;
    const struct agent *desc = &p->agents[agent];
    if (desc->kind == AGENT_STREAM && stream_cells(p, c, desc->index)[STREAM_COUNT] > 0) {
        *iteration = item_cells(p, c, desc->index, 0)[ITEM_ITER];
        return item_cells(p, c, desc->index, 0)[ITEM_OP];
    }
    const struct op *op = desc->kind == AGENT_THREAD ? machine_thread_op(p, c, desc->index) : NULL;
    if (!op)
        return -1;
    *iteration = thread_cells(p, c, desc->index)[THREAD_ITER];
    return (int)(op - p->ops);
}

bool machine_says(const struct program *p, const struct state *state, int agent)
{
    ASSERT_INDEX(agent, p->agent_count);
    const int thread = p->agents[agent].index;
    return machine_says_yes(p, state->cells, thread, machine_thread_op(p, state->cells, thread));
}

bool machine_stream_running(const struct program *p, const struct state *state, int stream)
{
    ASSERT_INDEX(stream, p->stream_count);
    return stream_cells(p, state->cells, stream)[STREAM_RUNNING];
}

int machine_slots_held(const struct program *p, const struct state *state, int stream)
{
    return slots_held(p, state->cells, stream);
}

int machine_stream_queued(const struct program *p, const struct state *state, int stream)
{
    return stream_cells(p, state->cells, stream)[STREAM_COUNT];
}

int machine_stream_done(const struct program *p, const struct state *state, int stream)
{
    return stream_cells(p, state->cells, stream)[STREAM_DONE];
}

int64_t machine_oldest(const struct program *p, const struct state *state, int rank)
{
    return rank_cells(p, state->cells, rank)[RANK_OLDEST];
}

int64_t machine_finished(const struct program *p, const struct state *state, int rank)
{
    return rank_cells(p, state->cells, rank)[RANK_FINISHED];
}

int64_t machine_admitted(const struct program *p, const struct state *state, int rank)
{
    return rank_cells(p, state->cells, rank)[RANK_ADMITTED];
}

bool machine_admits_next(const struct program *p, const struct state *state, int rank)
{
    const int32_t *rank_state = rank_cells(p, state->cells, rank);
    int64_t next = driver_next(p, rank_state), end = rank_state[RANK_END];
    return next >= rank_state[RANK_ADMITTED] && (end < 0 || next < end);
}

int64_t machine_end(const struct program *p, const struct state *state, int rank)
{
    return rank_cells(p, state->cells, rank)[RANK_END];
}

int machine_queue(const struct program *p, const struct state *state, int thread, int k, int *task,
                  int64_t *iteration)
{
    int count = thread_cells(p, state->cells, thread)[THREAD_COUNT];
    if (k < count) {
        *task = entry_cells(p, state->cells, thread, k)[ENTRY_TASK];
        *iteration = entry_cells(p, state->cells, thread, k)[ENTRY_ITER];
    }
    return count;
}
