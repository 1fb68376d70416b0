/* SPDX-License-Identifier: Apache-2.0 */
/* prepare.c - the tables of a simulation, made before its first step; see simulation.h. */
#include <stdlib.h>
#include <string.h>

#include "simulation.h"

#include "base/array.h"
#include "base/assert_index.h"
#include "base/sort.h"
#include "machine/uses.h"
#include "memo.h"

enum { WORD_BITS = 64 };

/* ---- limits ---------------------------------------------------------------------------------- */

/* No run takes longer than all its work one after another. */
static enum status check_times(const struct program *p, const struct timing *timing,
                               struct diag *diag)
{
    const double most_ns = 0x1p62, year_ns = 365.25 * 86400 * 1e9;
    int64_t iterations = 1;
    double ns = 0;
    for (int rank = 0; p->tasks && rank < p->ranks; rank++)
        iterations = max_i64(iterations, p->ends[rank]);
    for (size_t i = 0; i < p->op_count; i++)
        ns += (double)timing->ops[i].mean_ns + (double)p->plan->machine.launch_latency_ns;
    if (ns * (double)iterations <= most_ns)
        return STATUS_OK;
    return diag_error(diag, STATUS_INPUT,
                      "%s: found times that add up to %.3g years, expected less than %.0f",
                      p->plan->name, ns * (double)iterations / year_ns, most_ns / year_ns);
}

enum status simulate_check(const struct program *p, const struct timing *timing, struct diag *diag)
{
    for (size_t i = 0; p->has_aborts && i < p->op_count; i++)
        if (p->ops[i].kind == OP_ABORT)
            return plan_error_at(p->plan, diag, p->ops[i].mark,
                                 "found \"abort\", expected none: nothing goes wrong in a "
                                 "prediction");
    for (int rank = 0; p->tasks && rank < p->ranks; rank++)
        if (p->ends[rank] < 0)
            return diag_error(diag, STATUS_USAGE,
                              "found any number of iterations, expected a number to simulate");
    return check_times(p, timing, diag);
}

/* ---- tables ---------------------------------------------------------------------------------- */

#define TABLE(sim, count, type) ARENA_ARRAY(&(sim)->arena, (size_t)(count), type)

static void make_launches(struct simulation *sim, struct launches *launches)
{
    const struct program *p = sim->program;
    launches->latency_ns = p->plan->machine.launch_latency_ns;
    if (launches->latency_ns == 0)
        return;
    launches->queues = TABLE(sim, p->stream_count + 1, struct launch_queue);
    for (int s = 0; launches->queues && s < p->stream_count; s++) {
        launches->queues[s].cap = p->streams[s].cap + 1;
        launches->queues[s].pushed_ns = TABLE(sim, launches->queues[s].cap, int64_t);
    }
}

static void make_clocks(struct simulation *sim)
{
    struct simulation_clocks *clocks = &sim->clocks;
    const struct program *p = sim->program;
    make_launches(sim, &clocks->launches);
    clocks->timers = TABLE(sim, p->agent_count, uint8_t);
    clocks->started_ns = TABLE(sim, p->agent_count, int64_t);
    clocks->member_ops = TABLE(sim, p->member_count, struct timed_op);
    clocks->member_streams = TABLE(sim, p->member_count, int);
    if (p->tasks) /* a host program does each operation once */
        clocks->draws = TABLE(sim, sim->timing->draw_count, struct draws);
    for (int m = 0; clocks->member_streams && m < p->member_count; m++)
        clocks->member_streams[m] = -1;
    for (int i = 0; clocks->draws && i < sim->timing->draw_count; i++)
        clocks->draws[i].first = DRAWS_NONE;
}

static void make_marks(struct simulation *sim)
{
    struct marks *marks = &sim->marks;
    const struct program *p = sim->program;
    marks->dirty_words = p->agent_count / WORD_BITS + 1;
    marks->dirty = TABLE(sim, marks->dirty_words, uint64_t);
    marks->touched = TABLE(sim, p->ranks, bool);
    marks->touched_ranks = TABLE(sim, p->ranks, int);
    marks->rank_first = TABLE(sim, p->ranks + 2, int);
    marks->rank_agents = TABLE(sim, p->agent_count, int);
    marks->rank_streams = TABLE(sim, p->ranks, int);
    marks->touched_streams = TABLE(sim, p->stream_count, bool);
    marks->touched_list = TABLE(sim, p->stream_count, int);
    marks->stirred = TABLE(sim, p->thread_count, bool);
    marks->stirred_list = TABLE(sim, p->thread_count, int);
    marks->queued_seen = TABLE(sim, p->stream_count, int);
}

/* The two members that a channel connects, in program-wide numbers. */
static void channel_members(const struct program *p, const struct channel *channel, int members[2])
{
    int first = p->comms[channel->comm].first_member;
    members[0] = first + program_member(p, channel->comm, channel->from);
    members[1] = first + program_member(p, channel->comm, channel->to);
    assert(members[0] >= first && members[1] >= first);
}

/* A counting sort of the channels by both their members. False: memory is exhausted. */
static bool find_peers(struct simulation *sim)
{
    struct marks *marks = &sim->marks;
    const struct program *p = sim->program;
    int pair[2];
    marks->peer_first = TABLE(sim, p->member_count + 2, int);
    marks->peers = TABLE(sim, 2 * p->channel_count + 1, int);
    marks->mixed = TABLE(sim, p->comm_count + 1, bool);
    if (!marks->peer_first || !marks->peers || !marks->mixed)
        return false;
    for (size_t i = 0; i < p->op_count; i++)
        if (op_ends_together(p->ops[i].kind))
            marks->mixed[p->ops[i].comm] = true;
    int *next = marks->peer_first + 1; /* [m]: where its next peer goes; at last its end */
    for (int c = 0; c < p->channel_count; c++) {
        channel_members(p, &p->channels[c], pair);
        next[pair[0] + 1]++;
        next[pair[1] + 1]++;
    }
    for (int m = 0; m < p->member_count; m++)
        next[m + 1] += next[m];
    for (int c = 0; c < p->channel_count; c++) {
        channel_members(p, &p->channels[c], pair);
        marks->peers[next[pair[0]]++] = pair[1];
        marks->peers[next[pair[1]]++] = pair[0];
    }
    return true;
}

static void make_stalls(struct simulation *sim)
{
    struct stalls *stalls = &sim->stalls;
    const struct program *p = sim->program;
    stalls->lanes = TABLE(sim, p->stream_count, struct lane);
    stalls->chained = TABLE(sim, p->stream_count, bool);
    stalls->loose_list = TABLE(sim, p->stream_count, int);
    stalls->loose_at = TABLE(sim, p->stream_count, int);
    stalls->links = TABLE(sim, p->ranks * p->tasks, struct chain_link);
    stalls->chain_ends = TABLE(sim, p->ranks * p->tasks, struct chain_end);
    for (int s = 0; stalls->lanes && s < p->stream_count;
         s++) /* busy for no time: the first instant says what it does */
        stalls->lanes[s] = (struct lane){.blame = LANE_BUSY, .wait.common = COMMON_NONE};
    for (int s = 0; stalls->loose_at && s < p->stream_count; s++)
        stalls->loose_at[s] = -1;
    for (int i = 0; stalls->links && i < p->ranks * p->tasks; i++)
        stalls->links[i] = (struct chain_link){-1, -1, -1, -1};
}

static void make_pipeline(struct simulation *sim)
{
    struct pipeline_notes *pipeline = &sim->pipeline;
    const struct program *p = sim->program;
    int instances = p->ranks * p->tasks;
    for (pipeline->admitted_cap = 1; pipeline->admitted_cap < p->window;)
        pipeline->admitted_cap *= 2;
    pipeline->finished = TABLE(sim, p->ranks, int64_t);
    pipeline->admitted_ns = TABLE(sim, p->ranks * pipeline->admitted_cap, int64_t);
    pipeline->hands = TABLE(sim, p->thread_count, struct hand);
    pipeline->submitted = TABLE(sim, instances, int64_t);
    pipeline->task_streams = TABLE(sim, instances, int);
    pipeline->task_positions = TABLE(sim, instances, int);
    pipeline->task_pushes = TABLE(sim, p->tasks, bool);
    pipeline->stream_first = TABLE(sim, p->stream_count + 2, int);
    pipeline->stream_tasks = TABLE(sim, instances, int);
    pipeline->queued = TABLE(sim, (size_t)instances * (size_t)p->window, bool);
    pipeline->queue_seen = TABLE(sim, p->thread_count, int);
}

/* false: memory is exhausted. */
static bool prepare_make_tables(struct simulation *sim)
{
    make_clocks(sim);
    make_marks(sim);
    make_stalls(sim);
    if (sim->program->tasks)
        make_pipeline(sim);
    else {
        struct host_notes *host = &sim->host;
        const struct program *p = sim->program;
        host->stream_pushers = TABLE(sim, p->stream_count + 1, int);
        host->pushes = TABLE(sim, p->op_count, int);
        host->next_push = TABLE(sim, p->op_count, int);
        host->came_ns = TABLE(sim, p->thread_count, int64_t);
        host->synced = TABLE(sim, p->thread_count, int);
        for (int t = 0; host->synced && t < p->thread_count; t++)
            host->synced[t] = -1;
    }
    sim->result.streams =
        calloc((size_t)sim->program->stream_count + 1, sizeof *sim->result.streams);
    return find_peers(sim) && !sim->arena.failed && sim->result.streams;
}

void prepare_free(struct simulation *sim)
{
    if (sim->memo)
        memo_close(sim);
    machine_free(sim->state);
    sharing_close(sim->clocks.sharing);
    events_fini(&sim->clocks.events);
    iterations_fini(&sim->pipeline.iterations);
    arena_fini(&sim->arena);
}

/* ---- both forms ------------------------------------------------------------------------------ */

/* Counting sort of the threads and streams by rank. */
static void list_rank_agents(struct simulation *sim)
{
    struct marks *marks = &sim->marks;
    const struct program *p = sim->program;
    for (int agent = 0; agent < p->agent_count; agent++)
        if (p->agents[agent].rank >= 0)
            marks->rank_first[p->agents[agent].rank + 2]++;
    for (int rank = 0; rank < p->ranks; rank++)
        marks->rank_first[rank + 2] += marks->rank_first[rank + 1];
    for (int agent = 0; agent < p->agent_count; agent++)
        if (p->agents[agent].rank >= 0)
            marks->rank_agents[marks->rank_first[p->agents[agent].rank + 1]++] = agent;
    for (int rank = 0; rank < p->ranks; rank++) {
        int k = marks->rank_first[rank];
        while (k < marks->rank_first[rank + 1] &&
               p->agents[marks->rank_agents[k]].kind != AGENT_STREAM)
            k++;
        marks->rank_streams[rank] = k;
    }
}

/* Counting sort of the tasks by their streams. */
static void list_stream_tasks(struct simulation *sim)
{
    struct pipeline_notes *pipeline = &sim->pipeline;
    const struct program *p = sim->program;
    for (int i = 0; i < p->ranks * p->tasks; i++)
        pipeline->stream_first[pipeline->task_streams[i] + 2]++;
    for (int s = 0; s < p->stream_count; s++)
        pipeline->stream_first[s + 2] += pipeline->stream_first[s + 1];
    for (int i = 0; i < p->ranks * p->tasks; i++)
        sim->pipeline.stream_tasks[pipeline->stream_first[pipeline->task_streams[i] + 1]++] =
            i % p->tasks;
}

/* ---- lists by key ---------------------------------------------------------------------------- */

struct lists_pair {
    int key, item;
};

static int compare_pairs(const void *a, const void *b)
{
    const struct lists_pair *x = a, *y = b;
    return compare_then(compare_int(x->key, y->key), compare_int(x->item, y->item));
}

/* Sort the pairs and make lists of them, each item once in the list of a key. false: memory is exhausted. */
static bool lists_make(struct lists *lists, struct arena *arena, struct lists_pair *pairs,
                       size_t count, int keys)
{
    lists->first = ARENA_ARRAY(arena, (size_t)keys + 1, int);
    lists->items = ARENA_ARRAY(arena, count + 1, int);
    if (!lists->first || !lists->items)
        return false;
    int kept = 0;
    SORT(pairs, count, compare_pairs);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || compare_pairs(&pairs[i - 1], &pairs[i]) != 0) {
            lists->items[kept++] = pairs[i].item;
            lists->first[pairs[i].key + 1] = kept;
        }
    for (int key = 0; key < keys; key++)
        if (lists->first[key + 1] < lists->first[key])
            lists->first[key + 1] = lists->first[key];
    return true;
}

/*
 * The lists of threads by objects. false: memory is exhausted.
 *
 * A rank may have thousands of workers, and most steps of one concern few others. So each thread is listed once
 * under each object that it may wait for (op_awaited of machine/uses.h): the flag that it awaits, the lock that it takes, the
 * turns of its rank, the stream that it pushes to or synchronises with, the device. The driver is listed under the device.
 *
 * Instances are handed out by the driver, after whose steps all workers of the rank are looked at, and by the end
 * of a submission, which knows whom it fires.
 */
static bool wakes_make(struct lists *wakes, const struct program *program, struct arena *arena)
{
    const struct program *p = program;
    size_t count = 0;
    struct lists_pair *pairs = malloc((p->op_count + (size_t)p->ranks) * sizeof *pairs);
    for (size_t b = 0; pairs && b < p->body_count; b++) { /* those of callbacks and kernels, too */
        const struct body *body = &p->bodies[b];
        for (int k = body->first; k < body->first + body->count; k++) {
            const int object = op_awaited(p, &p->ops[k], body->thread);
            if (object >= 0)
                pairs[count++] = (struct lists_pair){object, body->thread};
        }
    }
    for (int rank = 0; pairs && p->tasks && rank < p->ranks; rank++)
        pairs[count++] =
            (struct lists_pair){uses_use_object(p, OBJECT_DEVICE, rank), p->driver_thread[rank]};
    bool made = pairs && lists_make(wakes, arena, pairs, count, p->uses->object_count);
    free(pairs);
    return made;
}

/* ---- what an event may change ---------------------------------------------------------------- */

/* True if its stream uses an event in this way when it comes to the operation. */
static bool uses_event(const struct op *op, enum op_use use)
{
    return op_operand(op->kind) == OPERAND_EVENT && op_uses(op->kind, AT_STREAM) & use;
}

/* The stream on which the events of each family are recorded, or -1. false: not one alone. */
static bool find_recorders(const struct program *p, int *recorders)
{
    for (int e = 0; e < p->event_families; e++)
        recorders[e] = -1;
    for (size_t i = 0; i < p->op_count; i++) {
        const struct op *op = &p->ops[i];
        if (!uses_event(op, GIVES))
            continue;
        if (recorders[op->object] >= 0 && recorders[op->object] != op->stream)
            return false;
        recorders[op->object] = op->stream;
    }
    return true;
}

/* false: memory is exhausted. */
static bool find_watchers(struct simulation *sim)
{
    struct marks *marks = &sim->marks;
    const struct program *p = sim->program;
    size_t count = 0, waits = 1;
    for (size_t i = 0; i < p->op_count; i++)
        waits += uses_event(&p->ops[i], TAKES);
    int *recorders = TABLE(sim, p->event_families, int);
    struct lists_pair *pairs = TABLE(sim, waits, struct lists_pair);
    marks->cascade = TABLE(sim, (size_t)p->stream_count + waits + 1, int);
    if (sim->arena.failed)
        return false;
    marks->selective = marks->has_commons = find_recorders(p, recorders);
    for (size_t i = 0; marks->selective && i < p->op_count; i++) {
        const struct op *op = &p->ops[i];
        if (uses_event(op, TAKES) && recorders[op->object] >= 0 &&
            recorders[op->object] != op->stream)
            pairs[count++] = (struct lists_pair){recorders[op->object], op->stream};
    }
    return lists_make(&marks->watchers, &sim->arena, pairs, count, p->stream_count);
}

static bool make_commons(struct simulation *sim)
{
    struct stalls *stalls = &sim->stalls;
    int count = 2 * sim->program->thread_count + sim->program->ranks;
    stalls->commons = TABLE(sim, count, struct common);
    if (!stalls->commons)
        return false;
    stalls->common_count = count;
    for (int i = 0; i < count; i++)
        stalls->commons[i] = (struct common){.value = {STALL_BUSY, STALL_ON_NONE}, .first = -1};
    return true;
}

/* True if streams may be looked at alone. Not where they also share queues or residency slots, and not where an
   observer is told of every change. */
static bool prepare_selection(struct simulation *sim)
{
    const struct program *p = sim->program;
    const struct simulate_observer *observer = sim->options->observer;
    bool shared =
        p->plan->machine.sm_slots || p->plan->machine.launch_order_implicit || p->is_crossed;
    for (int s = 0; s < p->stream_count; s++)
        shared |= p->streams[s].hw_queue >= 0;
    if (shared)
        return true;
    if (!find_watchers(sim) || (sim->marks.has_commons && !make_commons(sim)))
        return false;
    sim->marks.selective &= !(observer && observer->span) && !sim->options->forgetful;
    return true;
}

static void mark_everything(struct simulation *sim)
{
    struct marks *marks = &sim->marks;
    const struct program *p = sim->program;
    for (int agent = 0; agent < p->agent_count; agent++)
        marks->dirty[agent / WORD_BITS] |= UINT64_C(1) << (agent % WORD_BITS);
    for (int rank = 0; rank < p->ranks; rank++) {
        marks->touched[rank] = true;
        marks->touched_ranks[marks->touched_count++] = rank;
    }
}

/* ---- pipeline form --------------------------------------------------------------------------- */

static bool prepare_pipeline(struct simulation *sim, uint64_t seed)
{
    struct pipeline_notes *pipeline = &sim->pipeline;
    const struct program *p = sim->program;
    for (int rank = 0; rank < p->ranks; rank++)
        for (int k = 0; k < p->tasks; k++) {
            const struct body *body = &p->bodies[rank * p->tasks + k];
            for (int i = body->first; i < body->first + body->count; i++) {
                if (op_is_stream_work(p->ops[i].kind))
                    sim->pipeline.task_pushes[k] = true;
                if (program_records_task(&p->ops[i]))
                    sim->pipeline.task_streams[rank * p->tasks + k] = p->ops[i].stream;
            }
            pipeline->task_positions[rank * p->tasks + p->order[rank][k]] = k;
        }
    list_stream_tasks(sim);
    for (int t = 0; t < p->thread_count; t++)
        pipeline->hands[t].task = -1;
    return prepare_selection(sim) &&
           iterations_init(&pipeline->iterations, p->ends, p->ranks, p->depth, seed);
}

/* ---- host programs --------------------------------------------------------------------------- */

static int compare_pushers(const void *a, const void *b)
{
    const struct pusher *x = a, *y = b;
    return compare_then(compare_int(x->stream, y->stream), compare_int(x->thread, y->thread));
}

static bool add_pusher(struct simulation *sim, int thread, int stream)
{
    struct host_notes *host = &sim->host;
    if (!ARENA_GROW(&sim->arena, host->pushers, host->pusher_count, host->pusher_cap))
        return false;
    host->pushers[host->pusher_count++] = (struct pusher){.thread = thread, .stream = stream};
    return true;
}

/* One pusher for each stream the thread pushes work to; `known` is scratch: per stream the thread +
   1 that was last seen to push to it, and beside it that pusher's number. */
static bool prepare_find_pushers(struct simulation *sim, int thread, int *known, int *numbers)
{
    struct host_notes *host = &sim->host;
    const struct program *p = sim->program;
    ASSERT_INDEX(thread, p->thread_count);
    const struct body *body = &p->bodies[p->threads[thread].body];
    int next = -1;
    for (int i = body->first + body->count - 1; i >= body->first; i--) {
        const struct op *op = &p->ops[i];
        if (op_is_stream_work(op->kind))
            next = i;
        host->next_push[i] = next;
        if (!op_is_stream_work(op->kind))
            continue;
        if (known[op->stream] != thread + 1) {
            known[op->stream] = thread + 1;
            numbers[op->stream] = (int)host->pusher_count;
            if (!add_pusher(sim, thread, op->stream))
                return false;
        }
        host->pushers[numbers[op->stream]].count++;
    }
    return true;
}

/* Of those that are sorted. */
static struct pusher *find_pusher(struct host_notes *host, int thread, int stream)
{
    const struct pusher key = {.thread = thread, .stream = stream};
    return bsearch(&key, host->pushers, host->pusher_count, sizeof key, compare_pushers);
}

static void fill_pushers(struct simulation *sim)
{
    struct host_notes *host = &sim->host;
    const struct program *p = sim->program;
    SORT(host->pushers, host->pusher_count, compare_pushers);
    int place = 0;
    for (size_t i = 0; i < host->pusher_count; i++) {
        struct pusher *pusher = &host->pushers[i];
        host->stream_pushers[pusher->stream + 1] = (int)i + 1;
        pusher->first = place;
        place += pusher->count;
    }
    for (int t = 0; t < p->thread_count; t++) {
        const struct body *body = p->threads[t].body < 0 ? NULL : &p->bodies[p->threads[t].body];
        for (int k = body ? body->first : 0; body && k < body->first + body->count; k++)
            if (op_is_stream_work(p->ops[k].kind)) {
                struct pusher *pusher = find_pusher(host, t, p->ops[k].stream);
                host->pushes[pusher->first + pusher->next++] = k;
            }
    }
    for (size_t i = 0; i < host->pusher_count; i++)
        host->pushers[i].next = 0;
    for (int s = 0; s < p->stream_count; s++)
        host->stream_pushers[s + 1] = max_int(host->stream_pushers[s + 1], host->stream_pushers[s]);
}

/* Of a host program with repeats: the work of each iteration. */
static bool prepare_repeats(struct simulation *sim)
{
    struct host_notes *host = &sim->host;
    const struct program *p = sim->program;
    host->repeats = TABLE(sim, p->ranks, int64_t);
    host->left = TABLE(sim, (size_t)p->ranks * (size_t)p->repeats, int);
    sim->pipeline.finished = TABLE(sim, p->ranks, int64_t);
    if (sim->arena.failed)
        return false;
    for (size_t i = 0; i < p->op_count; i++) {
        const struct op *op = &p->ops[i];
        const int rank = sim->timing->ops[i].rank;
        if (op->iteration < 0 || !op_is_work(op->kind))
            continue;
        host->left[rank * p->repeats + op->iteration]++;
        if (op->iteration >= host->repeats[rank])
            host->repeats[rank] = op->iteration + 1;
    }
    return iterations_init(&sim->pipeline.iterations, host->repeats, p->ranks, 0,
                           sim->options->seed);
}

static bool prepare_host_programs(struct simulation *sim)
{
    const struct program *p = sim->program;
    int *known = TABLE(sim, p->stream_count, int), *numbers = TABLE(sim, p->stream_count, int);
    if (!known || !numbers)
        return false;
    for (int t = 0; t < p->thread_count; t++)
        if (p->threads[t].body >= 0 && !prepare_find_pushers(sim, t, known, numbers))
            return false;
    if (sim->host.pusher_count)
        fill_pushers(sim);
    return p->repeats == 0 || prepare_repeats(sim);
}

/* ---- all of it ------------------------------------------------------------------------------- */

enum status prepare(struct simulation *sim, const struct program *program,
                    const struct timing *timing, const struct simulate_options *options,
                    struct diag *diag)
{
    *sim = (struct simulation){.timing = timing,
                               .options = options,
                               .diag = diag,
                               .horizon_ns = INT64_MAX,
                               .most = INT64_MAX,
                               .pipeline.over = &sim->pipeline.iterations};
    sim->lean = *program;
    layout_leave_out_rows(&sim->lean.at);
    sim->program = &sim->lean;
    sim->result.stream_count = program->stream_count;
    sim->result.fill_ns = sim->result.drain_ns = -1;
    sim->state = machine_state(sim->program);
    bool good = events_init(&sim->clocks.events, program->agent_count) && sim->state &&
                sharing_open(sim->program, &sim->clocks.sharing) && prepare_make_tables(sim);
    if (good)
        good = wakes_make(&sim->marks.wakes, sim->program, &sim->arena);
    if (good)
        good = program->tasks ? prepare_pipeline(sim, options->seed) : prepare_host_programs(sim);
    if (!good)
        return diag_no_memory(diag);
    for (int m = 0; m < program->member_count; m++)
        sim->clocks.member_streams[m] = -1;
    list_rank_agents(sim);
    mark_everything(sim);
    for (int s = 0; s < program->stream_count; s++)
        account_touch(sim, s);
    return STATUS_OK;
}
