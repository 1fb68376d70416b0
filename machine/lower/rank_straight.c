/* SPDX-License-Identifier: Apache-2.0 */
/* rank_straight.c - see machine/straight.h: the steps of all ranks as a graph, and its order with dates. */
#include "base/array.h"
#include "base/sort.h"
#include "base/table.h"
#include "machine/straight.h"

#include "rank_internal.h"

enum { MOST_STREAMS = 16 }; /* of a rank */

/* Messages from one rank to another that match in their order: those of one end that came first. */
struct straight_channel {
    int to, next; /* of those from the same rank; -1: none */
    bool forward, sends;
    uint32_t stream;      /* of the messages that have no other end yet */
    uint32_t first, last; /* indices + 1; `stream` of a message is the next one */
};

struct straight_walk {
    struct rank_lowering *lowering;
    struct straight *out;
    struct arena *arena; /* of the graph */
    int *places;         /* per step of the rank: its stream */
    uint32_t *numbers;   /* ... and its number */
    struct table times;
    size_t stream_cap, wait_cap, time_count, time_cap;
    int *first_channel; /* per rank; -1: none */
    struct straight_channel *channels;
    size_t channel_count, channel_cap;
    size_t unpaired;
};

/* ---- which programs -------------------------------------------------------------------------- */

static bool machine_is_plain(const struct machine_spec *machine)
{
    for (int i = 0; i < SHARED_WORK_COUNT; i++)
        if (machine->shares[i].sm.given || machine->shares[i].link.given ||
            machine->shares[i].core.given)
            return false;
    return !machine->sm_slots && !machine->share_device && !machine->hw_queues &&
           !machine->launch_queue && !machine->launch_latency_ns && !machine->first_use_blocks &&
           !machine->launch_order_implicit && !machine->lazy_load && !machine->launch_lock &&
           !machine->launch_blocking && !machine->cores;
}

/* Passes and messages that wait for each other, and nothing else. */
static bool may_be_straight(const struct rank_lowering *lowering)
{
    const struct plan *plan = lowering->plan;
    const struct programs *programs = &plan->programs;
    const unsigned others = 1u << ACTION_UNSHARD | 1u << ACTION_RESHARD | 1u << ACTION_REDUCE_GRAD |
                            1u << ACTION_WAIT_REDUCE_GRAD | 1u << ACTION_REDUCE_EMBEDDING;
    for (int s = 0; s < lowering->map.stages; s++)
        if (lowering->costs[s].of[COST_OPTIMIZER])
            return false;
    return machine_is_plain(&plan->machine) && !programs->parallel.given && !programs->fragment &&
           plan_replicas(plan) == 1 && plan->comm_count == 0 && !programs->eager_messages &&
           !programs->eager_bytes && programs->metadata == METADATA_NONE &&
           !programs->arithmetic.given && !(lowering->kinds & others);
}

/* ---- messages -------------------------------------------------------------------------------- */

static struct straight_channel *straight_channel_of(struct straight_walk *walk,
                                                    const struct message *message)
{
    const bool forward = walk->lowering->plan->programs.fifo == FIFO_DIRECTION &&
                         message_is_forward(message->action);
    int *first = &walk->first_channel[message->from];
    for (int c = *first; c >= 0; c = walk->channels[c].next)
        if (walk->channels[c].to == message->to && walk->channels[c].forward == forward)
            return &walk->channels[c];
    if (!ARENA_GROW(&walk->lowering->scratch, walk->channels, walk->channel_count,
                    walk->channel_cap))
        return NULL;
    walk->channels[walk->channel_count] =
        (struct straight_channel){.to = message->to, .next = *first, .forward = forward};
    *first = (int)walk->channel_count;
    return &walk->channels[walk->channel_count++];
}

static bool same_message(const struct action *a, const struct action *b)
{
    return message_is_forward(a) == message_is_forward(b) &&
           message_arrives_at(a) == message_arrives_at(b) && a->microbatch == b->microbatch;
}

/* The message of this step finds its other end, or waits for it. False: they mismatch, or there is no memory. */
static bool pair_message(struct straight_walk *walk, const struct message *message, uint32_t step,
                         uint32_t stream)
{
    struct straight *out = walk->out;
    struct straight_channel *channel = straight_channel_of(walk, message);
    struct straight_message *all = out->messages, *own = &all[out->message_count];
    const struct rank_program *list = &walk->lowering->ranks[walk->lowering->rank];
    const bool sends = walk->lowering->rank == message->from;
    *own = (struct straight_message){.action = (uint32_t)(message->action - list->actions),
                                     .step = step};
    const uint32_t number = ++out->message_count;
    if (!channel)
        return false;
    if (channel->first == 0 || channel->sends == sends) {
        if (channel->first)
            all[channel->last - 1].stream = number;
        else
            channel->first = number;
        channel->last = number;
        channel->sends = sends;
        channel->stream = stream;
        walk->unpaired++;
        return true;
    }
    struct straight_message *other = &all[channel->first - 1];
    const int peer = sends ? message->to : message->from;
    if (!same_message(message->action, &walk->lowering->ranks[peer].actions[other->action]))
        return false;
    channel->first = other->stream;
    *own = (struct straight_message){own->action, other->step, channel->stream};
    *other = (struct straight_message){other->action, step, stream};
    walk->unpaired--;
    return true;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* The streams of the rank in the order of their first use, and the numbers of its steps. False: too many streams. */
static bool place_steps(struct straight_walk *walk)
{
    const int rank = walk->lowering->rank;
    const struct rank_steps *now = &walk->lowering->now;
    struct straight *out = walk->out;
    const int first = out->rank_first[rank] = out->stream_count;
    uint32_t next = out->step_count;
    if (!ARENA_RESERVE(walk->arena, out->streams, (size_t)first + MOST_STREAMS, walk->stream_cap))
        return false;
    for (size_t i = 0; i < now->step_count; i++) {
        int s = first;
        while (s < out->stream_count && out->streams[s].plan_stream != now->steps[i].stream)
            s++;
        if (s == first + MOST_STREAMS)
            return false;
        if (s == out->stream_count)
            out->streams[out->stream_count++] =
                (struct straight_stream){.rank = rank, .plan_stream = now->steps[i].stream};
        walk->places[i] = s;
        out->streams[s].end++;
    }
    for (int s = first; s < out->stream_count; s++) {
        struct straight_stream *stream = &out->streams[s];
        stream->dependence_ns =
            ARENA_ARRAY(walk->arena, (size_t)(out->stream_count - first), int64_t);
        if (!stream->dependence_ns)
            return false;
        stream->first = next;
        next += stream->end;
        stream->end = stream->first;
    }
    for (size_t i = 0; i < now->step_count; i++)
        walk->numbers[i] = out->streams[walk->places[i]].end++;
    return true;
}

static bool number_time(struct straight_walk *walk, int64_t time_ns, uint32_t *number)
{
    struct straight *out = walk->out;
    const uint64_t hash = table_hash_number((uint64_t)time_ns);
    const size_t count = walk->time_count;
    *number = TABLE_FIND(&walk->times, hash, i, out->times_ns[i] == time_ns);
    if (*number != TABLE_NONE)
        return true;
    if (!ARENA_GROW(walk->arena, out->times_ns, count, walk->time_cap) ||
        !table_add_in(&walk->times, &walk->lowering->scratch, hash, count))
        return false;
    *number = (uint32_t)count;
    out->times_ns[walk->time_count++] = time_ns;
    return true;
}

/* False: a message mismatches, or there is no memory. */
static bool add_step(struct straight_walk *walk, size_t at)
{
    struct straight *out = walk->out;
    const struct rank_steps *now = &walk->lowering->now;
    const struct rank_step *step = &now->steps[at];
    const struct rank_program *list = &walk->lowering->ranks[walk->lowering->rank];
    const uint32_t number = out->step_count++, stream = (uint32_t)walk->places[at];
    const bool recorded = step->waiters_left > 0;
    uint32_t time;
    if (!number_time(walk, step->time_ns, &time))
        return false;
    out->steps[number] = (struct straight_step){.time = time,
                                                .end_ns = -1,
                                                .first_wait = out->wait_count,
                                                .first_message = out->message_count,
                                                .action = (uint32_t)(step->action - list->actions)};
    out->streams[stream].pushes += 1 + (int)step->wait_count + recorded;
    out->machine_steps += 3 + step->wait_count + recorded; /* its push, its start, its end */
    for (size_t w = 0; w < step->wait_count; w++) {
        if (!ARENA_GROW(walk->arena, out->waits, out->wait_count, walk->wait_cap))
            return false;
        out->waits[out->wait_count++] = walk->numbers[now->waits[step->first_wait + w].producer];
    }
    for (size_t m = step->kind == STEP_GROUP ? step->first_message + 1 : 0; m;
         m = now->messages[m - 1].next)
        if (!pair_message(walk, &now->messages[m - 1], number, stream))
            return false;
    return true;
}

/* Each tensor is made once, before it is read; a step on another stream waits for it. So accesses are in order. */
static bool accesses_are_plain(struct rank_lowering *lowering, const struct rank_program *list)
{
    struct index_list missing = {0};
    if (!lowering->tracked)
        return true;
    for (size_t i = 0; i < list->count; i++) {
        const struct action *parts;
        const size_t count = comms_parts(&list->actions[i], &parts);
        for (size_t k = 0; k < count; k++)
            if (!tensors_are_read(lowering, &parts[k]))
                return false;
        for (size_t k = 0; k < count; k++)
            if (!tensors_are_made(lowering, &parts[k]))
                return false;
    }
    return tensors_missing(lowering, &missing) && missing.count == 0;
}

/* False: the list leaves a choice, or there is no memory. */
static bool straight_walk_rank(struct straight_walk *walk, int rank)
{
    struct rank_lowering *lowering = walk->lowering;
    const struct rank_steps *now = &lowering->now;
    struct straight *out = walk->out;
    if (!rank_list_steps(lowering, &lowering->lists[rank]) ||
        !accesses_are_plain(lowering, lowering->lists[rank].program) || !place_steps(walk))
        return false;
    out->machine_steps++; /* the thread waits for the device */
    for (int s = out->rank_first[rank]; s < out->stream_count; s++)
        for (size_t i = 0; i < now->step_count; i++)
            if (walk->places[i] == s && !add_step(walk, i))
                return false;
    return true;
}

/* ---- dates ----------------------------------------------------------------------------------- */

/* The head of a stream. */
struct straight_lane {
    uint32_t at;
    int missing; /* it runs, but so many of its messages' other ends do not */
    bool runs;
    int64_t now_ns, start_ns, met_ns; /* met: when the last of those that run began */
};

struct straight_run {
    struct straight *graph;
    struct straight_lane *lanes;
    int *ranks; /* that may go on */
    bool *waits;
    size_t count;
};

static void straight_wake(struct straight_run *run, int rank)
{
    if (!run->waits[rank])
        run->ranks[run->count++] = rank;
    run->waits[rank] = true;
}

/* True if all that the head waits for is over; the stream is where that is. */
static bool straight_awaits(struct straight_run *run, int s)
{
    const struct straight *graph = run->graph;
    struct straight_lane *lane = &run->lanes[s];
    const struct straight_step *step = &graph->steps[lane->at];
    for (uint32_t w = step[0].first_wait; w < step[1].first_wait; w++)
        if (graph->steps[graph->waits[w]].end_ns < 0)
            return false;
    for (uint32_t w = step[0].first_wait; w < step[1].first_wait; w++) {
        const uint32_t producer = graph->waits[w];
        const int64_t idle_ns = graph->steps[producer].end_ns - lane->now_ns;
        const struct straight_stream *of =
            &graph->streams[graph->rank_first[graph->streams[s].rank]];
        int k = 0;
        if (idle_ns <= 0)
            continue;
        while (producer >= of[k].end)
            k++;
        graph->streams[s].dependence_ns[k] += idle_ns;
        lane->now_ns += idle_ns;
    }
    return true;
}

/* The head begins; its messages meet those that run. */
static void straight_start(struct straight_run *run, int s)
{
    const struct straight *graph = run->graph;
    struct straight_lane *lane = &run->lanes[s];
    const struct straight_step *step = &graph->steps[lane->at];
    lane->runs = true;
    lane->missing = 0;
    lane->start_ns = lane->met_ns = lane->now_ns;
    for (uint32_t m = step[0].first_message; m < step[1].first_message; m++) {
        const struct straight_message *message = &graph->messages[m];
        struct straight_lane *other = &run->lanes[message->stream];
        if (!other->runs || other->at != message->step) {
            lane->missing++;
            continue;
        }
        other->met_ns = max_i64(other->met_ns, lane->start_ns);
        lane->met_ns = max_i64(lane->met_ns, other->start_ns);
        if (--other->missing == 0)
            straight_wake(run, graph->streams[message->stream].rank);
    }
}

/* The head of the stream ends, if it can. */
static bool straight_ends(struct straight_run *run, int s)
{
    struct straight_stream *stream = &run->graph->streams[s];
    struct straight_lane *lane = &run->lanes[s];
    if (lane->at == stream->end || (!lane->runs && !straight_awaits(run, s)))
        return false;
    if (!lane->runs)
        straight_start(run, s);
    if (lane->missing > 0)
        return false;
    struct straight_step *step = &run->graph->steps[lane->at++];
    lane->runs = false;
    stream->peer_ns += lane->met_ns - lane->start_ns;
    stream->busy_ns += straight_time(run->graph, step);
    lane->now_ns = step->end_ns = lane->met_ns + straight_time(run->graph, step);
    return true;
}

static void straight_go_on(struct straight_run *run, int rank)
{
    const struct straight *graph = run->graph;
    for (bool again = true; again;) {
        again = false;
        for (int s = graph->rank_first[rank]; s < graph->rank_first[rank + 1]; s++)
            while (straight_ends(run, s))
                again = true;
    }
}

/* True if all steps end; each has its date then. */
static bool straight_run_all(struct straight_run *run, int ranks)
{
    struct straight *graph = run->graph;
    bool ends = true;
    for (int s = 0; s < graph->stream_count; s++)
        run->lanes[s].at = graph->streams[s].first;
    for (int rank = ranks - 1; rank >= 0; rank--)
        straight_wake(run, rank);
    while (run->count > 0) {
        const int rank = run->ranks[--run->count];
        run->waits[rank] = false;
        straight_go_on(run, rank);
    }
    for (int s = 0; s < graph->stream_count; s++) {
        ends &= run->lanes[s].at == graph->streams[s].end;
        graph->end_ns = max_i64(graph->end_ns, run->lanes[s].now_ns);
    }
    return ends;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* False: out of memory. */
static bool straight_begin(struct straight_walk *walk)
{
    struct rank_lowering *lowering = walk->lowering;
    struct straight *out = walk->out;
    struct arena *scratch = &lowering->scratch;
    const size_t ranks = (size_t)lowering->rank_count, most = lowering->listed_cap;
    out->rank_first = ARENA_ARRAY(walk->arena, ranks + 1, int);
    out->steps = ARENA_ARRAY(walk->arena, most + 1, struct straight_step);
    out->messages = ARENA_ARRAY(walk->arena, most, struct straight_message);
    out->waits = ARENA_ARRAY(walk->arena, most, uint32_t);
    walk->wait_cap = most;
    walk->places = ARENA_ARRAY(scratch, most, int);
    walk->numbers = ARENA_ARRAY(scratch, most, uint32_t);
    walk->first_channel = ARENA_ARRAY(scratch, ranks, int);
    for (size_t rank = 0; walk->first_channel && rank < ranks; rank++)
        walk->first_channel[rank] = -1;
    return !walk->arena->failed && !scratch->failed;
}

/* The graph of all lists; false: there is none. */
static bool straight_build(struct straight_walk *walk)
{
    const int ranks = walk->lowering->rank_count;
    struct straight *out = walk->out;
    int64_t left_ns = INT64_MAX / 4;
    for (int rank = 0; rank < ranks; rank++)
        if (!straight_walk_rank(walk, rank))
            return false;
    out->rank_first[ranks] = out->stream_count;
    out->steps[out->step_count] =
        (struct straight_step){.first_wait = out->wait_count, .first_message = out->message_count};
    for (uint32_t i = 0; i < out->step_count && left_ns >= 0; i++)
        left_ns -= min_i64(straight_time(out, &out->steps[i]), INT64_MAX / 2);
    return walk->unpaired == 0 && left_ns >= 0 &&
           out->machine_steps - 2 * (uint64_t)out->step_count <= PLAN_MAX_LOWERED;
}

static bool straight_date(struct rank_lowering *lowering, struct straight *graph)
{
    struct arena *scratch = &lowering->scratch;
    const size_t ranks = (size_t)lowering->rank_count;
    struct straight_run run = {
        .graph = graph,
        .lanes = ARENA_ARRAY(scratch, (size_t)graph->stream_count + 1, struct straight_lane),
        .ranks = ARENA_ARRAY(scratch, ranks, int),
        .waits = ARENA_ARRAY(scratch, ranks, bool)};
    return !scratch->failed && straight_run_all(&run, lowering->rank_count);
}

/* Costs are found where operations are taken. */
static enum status take_none(void *arg, struct host_thread *thread, const struct host_op *op)
{
    (void)arg, (void)thread, (void)op;
    return STATUS_OK;
}

struct straight *straight_make(struct rank_lowering *lowering, struct arena *arena)
{
    static const struct ops_sink empty = {0};
    struct straight *graph = may_be_straight(lowering) ? ARENA_NEW(arena, struct straight) : NULL;
    struct straight_walk walk = {.lowering = lowering, .out = graph, .arena = arena};
    lowering->sink = (struct ops_sink){.take = take_none, .arena = &lowering->scratch};
    lowering->again = true; /* no actions are listed */
    const bool made =
        graph && straight_begin(&walk) && straight_build(&walk) && straight_date(lowering, graph);
    lowering->sink = empty;
    lowering->again = false;
    lowering->out->listed_count = 0;
    tensors_again(lowering);
    return made ? graph : NULL;
}
