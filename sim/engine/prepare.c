/* prepare.c - the tables of a simulation, made before its first step; see simulation.h. */
#include <stdlib.h>
#include <string.h>

#include "prepare.h"

enum { WORD_BITS = 64 };

/* ---- limits ---------------------------------------------------------------------------------- */

/* The machine counts what goes through a stream or is handed a ticket in 32 bits. */
static int64_t most_iterations(const struct program *p)
{
    int64_t most = 1;
    for (int rank = 0; rank < p->ranks; rank++)
        most = p->ordered_tasks[rank] + 1 > most ? p->ordered_tasks[rank] + 1 : most;
    for (int s = 0; s < p->stream_count; s++) {
        int64_t pushes = 0;
        for (size_t i = 0; i < p->op_count; i++)
            pushes += p->ops[i].stream == s && p->ops[i].kind != OP_SYNC;
        most = pushes > most ? pushes : most;
    }
    int64_t limit = INT32_MAX / most - p->window - p->history;
    return limit < SIMULATE_MAX_ITERATIONS ? limit : SIMULATE_MAX_ITERATIONS;
}

enum status simulate_check(const struct program *p, struct diag *diag)
{
    int64_t limit = p->tasks ? most_iterations(p) : 0;
    for (int rank = 0; p->tasks && rank < p->ranks; rank++) {
        if (p->ends[rank] < 0)
            return diag_error(diag, STATUS_USAGE,
                              "found any number of iterations, expected a number to simulate");
        if (p->ends[rank] > limit)
            return diag_error(diag, STATUS_USAGE,
                              "found %lld iterations, expected at most %lld: the machine counts "
                              "what this plan does in 32 bits",
                              (long long)p->ends[rank], (long long)limit);
    }
    return STATUS_OK;
}

/* ---- allocation ------------------------------------------------------------------------------ */

static bool allocate(struct simulation *sim)
{
    const struct program *p = sim->program;
    size_t agents = (size_t)p->agent_count, ranks = (size_t)p->ranks;
    size_t streams = (size_t)p->stream_count, threads = (size_t)p->thread_count;
    size_t instances = ranks * (size_t)p->tasks + 1;
    sim->marks.dirty_words = (int)(agents / WORD_BITS) + 1;
    sim->marks.dirty = calloc((size_t)sim->marks.dirty_words, sizeof *sim->marks.dirty);
    sim->marks.touched = calloc(ranks, sizeof *sim->marks.touched);
    sim->marks.touched_ranks = calloc(ranks, sizeof *sim->marks.touched_ranks);
    sim->marks.rank_first = calloc(ranks + 2, sizeof *sim->marks.rank_first);
    sim->marks.rank_agents = calloc(agents, sizeof *sim->marks.rank_agents);
    sim->marks.rank_streams = calloc(ranks + 1, sizeof *sim->marks.rank_streams);
    sim->clocks.timers = calloc(agents, sizeof *sim->clocks.timers);
    sim->clocks.started_ns = calloc(agents, sizeof *sim->clocks.started_ns);
    sim->clocks.member_streams =
        malloc(((size_t)p->member_count + 1) * sizeof *sim->clocks.member_streams);
    sim->clocks.member_ops = malloc(((size_t)p->member_count + 1) * sizeof *sim->clocks.member_ops);
    sim->stalls.lanes = calloc(streams + 1, sizeof *sim->stalls.lanes);
    sim->pipeline.hands = calloc(threads + 1, sizeof *sim->pipeline.hands);
    sim->pipeline.submitted = calloc(instances, sizeof *sim->pipeline.submitted);
    for (sim->pipeline.admitted_cap = 1; sim->pipeline.admitted_cap < p->window;)
        sim->pipeline.admitted_cap *= 2;
    sim->pipeline.admitted_ns =
        calloc(ranks * (size_t)sim->pipeline.admitted_cap, sizeof *sim->pipeline.admitted_ns);
    sim->pipeline.task_streams = calloc(instances, sizeof *sim->pipeline.task_streams);
    sim->pipeline.task_positions = calloc(instances, sizeof *sim->pipeline.task_positions);
    sim->pipeline.task_pushes = calloc((size_t)p->tasks + 1, sizeof *sim->pipeline.task_pushes);
    sim->pipeline.stream_first = calloc(streams + 2, sizeof *sim->pipeline.stream_first);
    sim->pipeline.stream_tasks = calloc(instances, sizeof *sim->pipeline.stream_tasks);
    sim->pipeline.queued = calloc(instances * (size_t)p->window + 1, sizeof *sim->pipeline.queued);
    sim->pipeline.queue_seen = calloc(threads + 1, sizeof *sim->pipeline.queue_seen);
    sim->stalls.chain_ends = calloc(instances, sizeof *sim->stalls.chain_ends);
    sim->marks.touched_streams = calloc(streams + 1, sizeof *sim->marks.touched_streams);
    sim->marks.touched_list = calloc(streams + 1, sizeof *sim->marks.touched_list);
    sim->stalls.chained = calloc(streams + 1, sizeof *sim->stalls.chained);
    sim->stalls.chained_list = calloc(streams + 1, sizeof *sim->stalls.chained_list);
    sim->stalls.chained_at = calloc(streams + 1, sizeof *sim->stalls.chained_at);
    sim->marks.queued_seen = calloc(streams + 1, sizeof *sim->marks.queued_seen);
    sim->host.allocated = calloc(ranks, sizeof *sim->host.allocated);
    sim->clocks.draws = malloc(((size_t)sim->timing->draw_count + 1) * sizeof *sim->clocks.draws);
    for (int i = 0; sim->clocks.draws && i < sim->timing->draw_count; i++)
        sim->clocks.draws[i].first = DRAWS_NONE;
    sim->result.streams = calloc(streams + 1, sizeof *sim->result.streams);
    return sim->marks.dirty && sim->marks.touched && sim->marks.touched_ranks &&
           sim->marks.rank_first && sim->marks.rank_agents && sim->marks.rank_streams &&
           sim->clocks.timers && sim->clocks.started_ns && sim->clocks.member_streams &&
           sim->clocks.member_ops && sim->stalls.lanes && sim->pipeline.hands &&
           sim->pipeline.submitted && sim->pipeline.admitted_ns && sim->pipeline.task_streams &&
           sim->pipeline.task_positions && sim->pipeline.task_pushes && sim->host.allocated &&
           sim->pipeline.stream_first && sim->pipeline.stream_tasks && sim->pipeline.queued &&
           sim->pipeline.queue_seen && sim->stalls.chain_ends && sim->marks.touched_streams &&
           sim->marks.touched_list && sim->stalls.chained && sim->stalls.chained_list &&
           sim->stalls.chained_at && sim->marks.queued_seen && sim->clocks.draws &&
           sim->result.streams;
}

void prepare_free(struct simulation *sim)
{
    machine_free(sim->state);
    sharing_close(sim->clocks.sharing);
    events_fini(&sim->clocks.events);
    iterations_fini(&sim->pipeline.iterations);
    free(sim->marks.dirty);
    free(sim->marks.touched);
    free(sim->marks.touched_ranks);
    free(sim->marks.rank_first);
    free(sim->marks.rank_agents);
    free(sim->marks.rank_streams);
    free(sim->pipeline.stream_first);
    free(sim->pipeline.stream_tasks);
    free(sim->pipeline.queued);
    free(sim->pipeline.queue_seen);
    free(sim->stalls.chain_ends);
    free(sim->marks.touched_streams);
    free(sim->marks.touched_list);
    free(sim->stalls.chained);
    free(sim->stalls.chained_list);
    free(sim->stalls.chained_at);
    free(sim->marks.queued_seen);
    free(sim->marks.watcher_first);
    free(sim->marks.watchers);
    free(sim->marks.cascade);
    free(sim->stalls.commons);
    free(sim->stalls.logs);
    free(sim->clocks.timers);
    free(sim->clocks.started_ns);
    free(sim->clocks.member_streams);
    free(sim->clocks.member_ops);
    free(sim->stalls.lanes);
    free(sim->pipeline.hands);
    free(sim->pipeline.submitted);
    free(sim->pipeline.admitted_ns);
    free(sim->pipeline.task_streams);
    free(sim->pipeline.task_positions);
    free(sim->pipeline.task_pushes);
    free(sim->host.pushers);
    free(sim->host.stream_pushers);
    free(sim->host.pushes);
    free(sim->host.next_push);
    free(sim->host.allocated);
    free(sim->clocks.draws);
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

/* ---- what an event may change ---------------------------------------------------------------- */

struct pair {
    int recorder, waiter;
};

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    if (x->recorder != y->recorder)
        return x->recorder < y->recorder ? -1 : 1;
    return (x->waiter > y->waiter) - (x->waiter < y->waiter);
}

/* The stream on which the events of each family are recorded, or -1. false: not one alone. */
static bool find_recorders(const struct program *p, int *recorders)
{
    for (int e = 0; e < p->event_families; e++)
        recorders[e] = -1;
    for (size_t i = 0; i < p->op_count; i++) {
        const struct op *op = &p->ops[i];
        if (op->kind != OP_RECORD)
            continue;
        if (recorders[op->object] >= 0 && recorders[op->object] != op->stream)
            return false;
        recorders[op->object] = op->stream;
    }
    return true;
}

/* Pairs without repetition, the waiters of each recorder together. */
static void fill_watchers(struct simulation *sim, struct pair *pairs, int count)
{
    struct marks *marks = &sim->marks;
    int kept = 0;
    qsort(pairs, (size_t)count, sizeof *pairs, compare_pairs);
    for (int i = 0; i < count; i++)
        if (i == 0 || compare_pairs(&pairs[i - 1], &pairs[i]) != 0) {
            marks->watchers[kept++] = pairs[i].waiter;
            marks->watcher_first[pairs[i].recorder + 1] = kept;
        }
    for (int s = 0; s < sim->program->stream_count; s++)
        if (marks->watcher_first[s + 1] < marks->watcher_first[s])
            marks->watcher_first[s + 1] = marks->watcher_first[s];
}

/* false: memory is exhausted. */
static bool find_watchers(struct simulation *sim)
{
    struct marks *marks = &sim->marks;
    const struct program *p = sim->program;
    int count = 0;
    int *recorders = malloc(((size_t)p->event_families + 1) * sizeof *recorders);
    struct pair *pairs = malloc((p->op_count + 1) * sizeof *pairs);
    marks->watcher_first = calloc((size_t)p->stream_count + 2, sizeof *marks->watcher_first);
    marks->watchers = malloc((p->op_count + 1) * sizeof *marks->watchers);
    marks->cascade = malloc(((size_t)p->stream_count + p->op_count + 1) * sizeof *marks->cascade);
    bool good = recorders && pairs && marks->watcher_first && marks->watchers && marks->cascade;
    if (good && (marks->selective = find_recorders(p, recorders))) {
        for (size_t i = 0; i < p->op_count; i++) {
            const struct op *op = &p->ops[i];
            if (op->kind == OP_WAIT && recorders[op->object] >= 0 &&
                recorders[op->object] != op->stream)
                pairs[count++] = (struct pair){recorders[op->object], op->stream};
        }
        fill_watchers(sim, pairs, count);
    }
    free(recorders);
    free(pairs);
    return good;
}

enum { LEAST_LOGGED = 256 };

static bool make_commons(struct simulation *sim)
{
    struct stalls *stalls = &sim->stalls;
    const struct program *p = sim->program;
    size_t count = 2 * (size_t)p->thread_count + (size_t)p->ranks;
    stalls->common_cap = p->stream_count < LEAST_LOGGED ? LEAST_LOGGED : p->stream_count;
    stalls->commons = calloc(count, sizeof *stalls->commons);
    stalls->logs = malloc(count * (size_t)stalls->common_cap * sizeof *stalls->logs);
    if (!stalls->commons || !stalls->logs)
        return false;
    stalls->common_count = (int)count;
    for (size_t i = 0; i < count; i++) {
        stalls->commons[i].value = (struct stall){STALL_BUSY, STALL_NOBODY};
        stalls->commons[i].log = &stalls->logs[i * (size_t)stalls->common_cap];
    }
    return true;
}

/* May streams be looked at alone? Not where they also share queues or residency slots, and not where
   somebody wants to hear of every change. */
static bool prepare_selection(struct simulation *sim)
{
    const struct program *p = sim->program;
    const struct simulate_observer *observer = sim->options->observer;
    bool shared = p->plan->machine.sm_slots || p->plan->machine.launch_order_implicit;
    for (int s = 0; s < p->stream_count; s++)
        shared |= p->streams[s].hw_queue >= 0;
    if (shared || (observer && observer->span) || sim->options->forgetful)
        return true;
    return find_watchers(sim) && (!sim->marks.selective || make_commons(sim));
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

static void find_task(struct simulation *sim, int rank, int task)
{
    const struct program *p = sim->program;
    const struct body *body = &p->bodies[rank * p->tasks + task];
    for (int i = body->first; i < body->first + body->count; i++) {
        if (is_work(p->ops[i].kind))
            sim->pipeline.task_pushes[task] = true;
        if (p->ops[i].kind == OP_RECORD)
            sim->pipeline.task_streams[rank * p->tasks + task] = p->ops[i].stream;
    }
}

static bool prepare_pipeline(struct simulation *sim, uint64_t seed)
{
    struct pipeline_notes *pipeline = &sim->pipeline;
    const struct program *p = sim->program;
    for (int rank = 0; rank < p->ranks; rank++)
        for (int k = 0; k < p->tasks; k++) {
            find_task(sim, rank, k);
            pipeline->task_positions[rank * p->tasks + p->order[rank][k]] = k;
        }
    list_stream_tasks(sim);
    for (int t = 0; t < p->thread_count; t++)
        pipeline->hands[t].task = -1;
    for (int b = 0; b < p->buffer_count; b++)
        if (p->buffers[b].rank == 0 && p->buffers[b].scope == SCOPE_ITERATION)
            pipeline->iteration_bytes += p->buffers[b].bytes;
    return prepare_selection(sim) &&
           iterations_init(&pipeline->iterations, p->ends, p->ranks, p->depth, seed);
}

/* ---- host programs --------------------------------------------------------------------------- */

static int compare_pushers(const void *a, const void *b)
{
    const struct pusher *x = a, *y = b;
    if (x->stream != y->stream)
        return x->stream < y->stream ? -1 : 1;
    return (x->thread > y->thread) - (x->thread < y->thread);
}

static struct pusher *add_pusher(struct simulation *sim, int thread, int stream)
{
    struct host_notes *host = &sim->host;
    if (host->pusher_count == host->pusher_cap) {
        int cap = host->pusher_cap ? 2 * host->pusher_cap : 16;
        struct pusher *pushers = realloc(host->pushers, (size_t)cap * sizeof *pushers);
        if (!pushers)
            return NULL;
        host->pushers = pushers;
        host->pusher_cap = cap;
    }
    struct pusher *pusher = &host->pushers[host->pusher_count++];
    *pusher = (struct pusher){.thread = thread, .stream = stream};
    return pusher;
}

/* One pusher for each stream the thread pushes work to; `known` is scratch: per stream the thread +
   1 that was last seen to push to it, and beside it that pusher's number. */
static bool find_pushers(struct simulation *sim, int thread, int *known, int *numbers)
{
    struct host_notes *host = &sim->host;
    const struct program *p = sim->program;
    const struct body *body = &p->bodies[p->threads[thread].body];
    int next = -1;
    for (int i = body->first + body->count - 1; i >= body->first; i--) {
        const struct op *op = &p->ops[i];
        if (is_work(op->kind))
            next = i;
        host->next_push[i] = next;
        if (!is_work(op->kind))
            continue;
        if (known[op->stream] != thread + 1) {
            known[op->stream] = thread + 1;
            numbers[op->stream] = host->pusher_count;
            if (!add_pusher(sim, thread, op->stream))
                return false;
        }
        host->pushers[numbers[op->stream]].count++;
    }
    return true;
}

static void fill_pushers(struct simulation *sim)
{
    struct host_notes *host = &sim->host;
    const struct program *p = sim->program;
    qsort(host->pushers, (size_t)host->pusher_count, sizeof *host->pushers, compare_pushers);
    int place = 0;
    for (int i = 0; i < host->pusher_count; i++) {
        struct pusher *pusher = &host->pushers[i];
        host->stream_pushers[pusher->stream + 1] = i + 1;
        pusher->first = place;
        const struct body *body = &p->bodies[p->threads[pusher->thread].body];
        for (int k = body->first; k < body->first + body->count; k++)
            if (is_work(p->ops[k].kind) && p->ops[k].stream == pusher->stream)
                host->pushes[place++] = k;
        assert(place == pusher->first + pusher->count);
    }
    for (int s = 0; s < p->stream_count; s++)
        if (host->stream_pushers[s + 1] < host->stream_pushers[s])
            host->stream_pushers[s + 1] = host->stream_pushers[s];
}

static bool prepare_host_programs(struct simulation *sim)
{
    struct host_notes *host = &sim->host;
    const struct program *p = sim->program;
    size_t streams = (size_t)p->stream_count;
    host->stream_pushers = calloc(streams + 1, sizeof *host->stream_pushers);
    host->pushes = calloc(p->op_count + 1, sizeof *host->pushes);
    host->next_push = malloc((p->op_count + 1) * sizeof *host->next_push);
    int *scratch = calloc(2 * streams + 1, sizeof *scratch);
    bool good = host->stream_pushers && host->pushes && host->next_push && scratch;
    for (int t = 0; good && t < p->thread_count; t++)
        if (p->threads[t].body >= 0)
            good = find_pushers(sim, t, scratch, scratch + streams);
    free(scratch);
    if (good && host->pusher_count)
        fill_pushers(sim);
    return good;
}

/* ---- all of it ------------------------------------------------------------------------------- */

enum status prepare(struct simulation *sim, const struct program *program,
                    const struct timing *timing, const struct simulate_options *options,
                    struct diag *diag)
{
    *sim = (struct simulation){.timing = timing, .options = options, .diag = diag};
    enum status status = simulate_check(program, diag);
    if (status != STATUS_OK)
        return status;
    sim->lean = *program;
    sim->lean.at.row_words = 0;
    sim->lean.at.rows = 0;
    sim->lean.at.bytes = sim->lean.at.rows_at;
    sim->program = &sim->lean;
    sim->result.stream_count = program->stream_count;
    sim->result.fill_ns = sim->result.drain_ns = -1;
    sim->state = machine_state(sim->program);
    bool good = events_init(&sim->clocks.events, program->agent_count) && sim->state &&
                sharing_open(sim->program, &sim->clocks.sharing) && allocate(sim);
    if (good)
        good = program->tasks ? prepare_pipeline(sim, options->seed) : prepare_host_programs(sim);
    if (!good)
        return diag_no_memory(diag);
    for (int m = 0; m < program->member_count; m++)
        sim->clocks.member_streams[m] = -1;
    for (int s = 0; s < program->stream_count; s++)
        sim->stalls.lanes[s].blame =
            LANE_BUSY; /* for no time: the first instant says what it does */
    list_rank_agents(sim);
    mark_everything(sim);
    for (int s = 0; s < program->stream_count; s++)
        account_touch(sim, s);
    return STATUS_OK;
}
