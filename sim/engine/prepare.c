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
    sim->dirty_words = (int)(agents / WORD_BITS) + 1;
    sim->dirty = calloc((size_t)sim->dirty_words, sizeof *sim->dirty);
    sim->touched = calloc(ranks, sizeof *sim->touched);
    sim->touched_ranks = calloc(ranks, sizeof *sim->touched_ranks);
    sim->rank_first = calloc(ranks + 2, sizeof *sim->rank_first);
    sim->rank_agents = calloc(agents, sizeof *sim->rank_agents);
    sim->rank_streams = calloc(ranks + 1, sizeof *sim->rank_streams);
    sim->timers = calloc(agents, sizeof *sim->timers);
    sim->started_ns = calloc(agents, sizeof *sim->started_ns);
    sim->member_streams = malloc(((size_t)p->member_count + 1) * sizeof *sim->member_streams);
    sim->member_ops = malloc(((size_t)p->member_count + 1) * sizeof *sim->member_ops);
    sim->lanes = calloc(streams + 1, sizeof *sim->lanes);
    sim->hands = calloc(threads + 1, sizeof *sim->hands);
    sim->submitted = calloc(instances, sizeof *sim->submitted);
    for (sim->admitted_cap = 1; sim->admitted_cap < p->window;)
        sim->admitted_cap *= 2;
    sim->admitted_ns = calloc(ranks * (size_t)sim->admitted_cap, sizeof *sim->admitted_ns);
    sim->task_streams = calloc(instances, sizeof *sim->task_streams);
    sim->task_positions = calloc(instances, sizeof *sim->task_positions);
    sim->task_pushes = calloc((size_t)p->tasks + 1, sizeof *sim->task_pushes);
    sim->stream_first = calloc(streams + 2, sizeof *sim->stream_first);
    sim->stream_tasks = calloc(instances, sizeof *sim->stream_tasks);
    sim->queued = calloc(instances * (size_t)p->window + 1, sizeof *sim->queued);
    sim->queue_seen = calloc(threads + 1, sizeof *sim->queue_seen);
    sim->chain_ends = calloc(instances, sizeof *sim->chain_ends);
    sim->touched_streams = calloc(streams + 1, sizeof *sim->touched_streams);
    sim->touched_list = calloc(streams + 1, sizeof *sim->touched_list);
    sim->chained = calloc(streams + 1, sizeof *sim->chained);
    sim->chained_list = calloc(streams + 1, sizeof *sim->chained_list);
    sim->chained_at = calloc(streams + 1, sizeof *sim->chained_at);
    sim->queued_seen = calloc(streams + 1, sizeof *sim->queued_seen);
    sim->allocated = calloc(ranks, sizeof *sim->allocated);
    sim->draws = malloc(((size_t)sim->timing->draw_count + 1) * sizeof *sim->draws);
    for (int i = 0; sim->draws && i < sim->timing->draw_count; i++)
        sim->draws[i].first = DRAWS_NONE;
    sim->result.streams = calloc(streams + 1, sizeof *sim->result.streams);
    return sim->dirty && sim->touched && sim->touched_ranks && sim->rank_first &&
           sim->rank_agents && sim->rank_streams && sim->timers && sim->started_ns &&
           sim->member_streams && sim->member_ops && sim->lanes && sim->hands && sim->submitted &&
           sim->admitted_ns && sim->task_streams && sim->task_positions && sim->task_pushes &&
           sim->allocated && sim->stream_first && sim->stream_tasks && sim->queued &&
           sim->queue_seen && sim->chain_ends && sim->touched_streams && sim->touched_list &&
           sim->chained && sim->chained_list && sim->chained_at && sim->queued_seen && sim->draws &&
           sim->result.streams;
}

void prepare_free(struct simulation *sim)
{
    machine_free(sim->state);
    sharing_close(sim->sharing);
    events_fini(&sim->events);
    iterations_fini(&sim->iterations);
    free(sim->dirty);
    free(sim->touched);
    free(sim->touched_ranks);
    free(sim->rank_first);
    free(sim->rank_agents);
    free(sim->rank_streams);
    free(sim->stream_first);
    free(sim->stream_tasks);
    free(sim->queued);
    free(sim->queue_seen);
    free(sim->chain_ends);
    free(sim->touched_streams);
    free(sim->touched_list);
    free(sim->chained);
    free(sim->chained_list);
    free(sim->chained_at);
    free(sim->queued_seen);
    free(sim->watcher_first);
    free(sim->watchers);
    free(sim->cascade);
    free(sim->commons);
    free(sim->logs);
    free(sim->timers);
    free(sim->started_ns);
    free(sim->member_streams);
    free(sim->member_ops);
    free(sim->lanes);
    free(sim->hands);
    free(sim->submitted);
    free(sim->admitted_ns);
    free(sim->task_streams);
    free(sim->task_positions);
    free(sim->task_pushes);
    free(sim->pushers);
    free(sim->stream_pushers);
    free(sim->pushes);
    free(sim->next_push);
    free(sim->allocated);
    free(sim->draws);
}

/* ---- both forms ------------------------------------------------------------------------------ */

/* Counting sort of the threads and streams by rank. */
static void list_rank_agents(struct simulation *sim)
{
    const struct program *p = sim->program;
    for (int agent = 0; agent < p->agent_count; agent++)
        if (p->agents[agent].rank >= 0)
            sim->rank_first[p->agents[agent].rank + 2]++;
    for (int rank = 0; rank < p->ranks; rank++)
        sim->rank_first[rank + 2] += sim->rank_first[rank + 1];
    for (int agent = 0; agent < p->agent_count; agent++)
        if (p->agents[agent].rank >= 0)
            sim->rank_agents[sim->rank_first[p->agents[agent].rank + 1]++] = agent;
    for (int rank = 0; rank < p->ranks; rank++) {
        int k = sim->rank_first[rank];
        while (k < sim->rank_first[rank + 1] && p->agents[sim->rank_agents[k]].kind != AGENT_STREAM)
            k++;
        sim->rank_streams[rank] = k;
    }
}

/* Counting sort of the tasks by their streams. */
static void list_stream_tasks(struct simulation *sim)
{
    const struct program *p = sim->program;
    for (int i = 0; i < p->ranks * p->tasks; i++)
        sim->stream_first[sim->task_streams[i] + 2]++;
    for (int s = 0; s < p->stream_count; s++)
        sim->stream_first[s + 2] += sim->stream_first[s + 1];
    for (int i = 0; i < p->ranks * p->tasks; i++)
        sim->stream_tasks[sim->stream_first[sim->task_streams[i] + 1]++] = i % p->tasks;
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
    int kept = 0;
    qsort(pairs, (size_t)count, sizeof *pairs, compare_pairs);
    for (int i = 0; i < count; i++)
        if (i == 0 || compare_pairs(&pairs[i - 1], &pairs[i]) != 0) {
            sim->watchers[kept++] = pairs[i].waiter;
            sim->watcher_first[pairs[i].recorder + 1] = kept;
        }
    for (int s = 0; s < sim->program->stream_count; s++)
        if (sim->watcher_first[s + 1] < sim->watcher_first[s])
            sim->watcher_first[s + 1] = sim->watcher_first[s];
}

/* false: memory is exhausted. */
static bool find_watchers(struct simulation *sim)
{
    const struct program *p = sim->program;
    int count = 0;
    int *recorders = malloc(((size_t)p->event_families + 1) * sizeof *recorders);
    struct pair *pairs = malloc((p->op_count + 1) * sizeof *pairs);
    sim->watcher_first = calloc((size_t)p->stream_count + 2, sizeof *sim->watcher_first);
    sim->watchers = malloc((p->op_count + 1) * sizeof *sim->watchers);
    sim->cascade = malloc(((size_t)p->stream_count + p->op_count + 1) * sizeof *sim->cascade);
    bool good = recorders && pairs && sim->watcher_first && sim->watchers && sim->cascade;
    if (good && (sim->selective = find_recorders(p, recorders))) {
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
    const struct program *p = sim->program;
    size_t count = 2 * (size_t)p->thread_count + (size_t)p->ranks;
    sim->common_cap = p->stream_count < LEAST_LOGGED ? LEAST_LOGGED : p->stream_count;
    sim->commons = calloc(count, sizeof *sim->commons);
    sim->logs = malloc(count * (size_t)sim->common_cap * sizeof *sim->logs);
    if (!sim->commons || !sim->logs)
        return false;
    sim->common_count = (int)count;
    for (size_t i = 0; i < count; i++) {
        sim->commons[i].value = (struct stall){STALL_BUSY, STALL_NOBODY};
        sim->commons[i].log = &sim->logs[i * (size_t)sim->common_cap];
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
    return find_watchers(sim) && (!sim->selective || make_commons(sim));
}

static void mark_everything(struct simulation *sim)
{
    const struct program *p = sim->program;
    for (int agent = 0; agent < p->agent_count; agent++)
        sim->dirty[agent / WORD_BITS] |= UINT64_C(1) << (agent % WORD_BITS);
    for (int rank = 0; rank < p->ranks; rank++) {
        sim->touched[rank] = true;
        sim->touched_ranks[sim->touched_count++] = rank;
    }
}

/* ---- pipeline form --------------------------------------------------------------------------- */

static void find_task(struct simulation *sim, int rank, int task)
{
    const struct program *p = sim->program;
    const struct body *body = &p->bodies[rank * p->tasks + task];
    for (int i = body->first; i < body->first + body->count; i++) {
        if (is_work(p->ops[i].kind))
            sim->task_pushes[task] = true;
        if (p->ops[i].kind == OP_RECORD)
            sim->task_streams[rank * p->tasks + task] = p->ops[i].stream;
    }
}

static bool prepare_pipeline(struct simulation *sim, uint64_t seed)
{
    const struct program *p = sim->program;
    for (int rank = 0; rank < p->ranks; rank++)
        for (int k = 0; k < p->tasks; k++) {
            find_task(sim, rank, k);
            sim->task_positions[rank * p->tasks + p->order[rank][k]] = k;
        }
    list_stream_tasks(sim);
    for (int t = 0; t < p->thread_count; t++)
        sim->hands[t].task = -1;
    for (int b = 0; b < p->buffer_count; b++)
        if (p->buffers[b].rank == 0 && p->buffers[b].scope == SCOPE_ITERATION)
            sim->iteration_bytes += p->buffers[b].bytes;
    return prepare_selection(sim) &&
           iterations_init(&sim->iterations, p->ends, p->ranks, p->depth, seed);
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
    if (sim->pusher_count == sim->pusher_cap) {
        int cap = sim->pusher_cap ? 2 * sim->pusher_cap : 16;
        struct pusher *pushers = realloc(sim->pushers, (size_t)cap * sizeof *pushers);
        if (!pushers)
            return NULL;
        sim->pushers = pushers;
        sim->pusher_cap = cap;
    }
    struct pusher *pusher = &sim->pushers[sim->pusher_count++];
    *pusher = (struct pusher){.thread = thread, .stream = stream};
    return pusher;
}

/* One pusher for each stream the thread pushes work to; `known` is scratch: per stream the thread +
   1 that was last seen to push to it, and beside it that pusher's number. */
static bool find_pushers(struct simulation *sim, int thread, int *known, int *numbers)
{
    const struct program *p = sim->program;
    const struct body *body = &p->bodies[p->threads[thread].body];
    int next = -1;
    for (int i = body->first + body->count - 1; i >= body->first; i--) {
        const struct op *op = &p->ops[i];
        if (is_work(op->kind))
            next = i;
        sim->next_push[i] = next;
        if (!is_work(op->kind))
            continue;
        if (known[op->stream] != thread + 1) {
            known[op->stream] = thread + 1;
            numbers[op->stream] = sim->pusher_count;
            if (!add_pusher(sim, thread, op->stream))
                return false;
        }
        sim->pushers[numbers[op->stream]].count++;
    }
    return true;
}

static void fill_pushers(struct simulation *sim)
{
    const struct program *p = sim->program;
    qsort(sim->pushers, (size_t)sim->pusher_count, sizeof *sim->pushers, compare_pushers);
    int place = 0;
    for (int i = 0; i < sim->pusher_count; i++) {
        struct pusher *pusher = &sim->pushers[i];
        sim->stream_pushers[pusher->stream + 1] = i + 1;
        pusher->first = place;
        const struct body *body = &p->bodies[p->threads[pusher->thread].body];
        for (int k = body->first; k < body->first + body->count; k++)
            if (is_work(p->ops[k].kind) && p->ops[k].stream == pusher->stream)
                sim->pushes[place++] = k;
        assert(place == pusher->first + pusher->count);
    }
    for (int s = 0; s < p->stream_count; s++)
        if (sim->stream_pushers[s + 1] < sim->stream_pushers[s])
            sim->stream_pushers[s + 1] = sim->stream_pushers[s];
}

static bool prepare_host_programs(struct simulation *sim)
{
    const struct program *p = sim->program;
    size_t streams = (size_t)p->stream_count;
    sim->stream_pushers = calloc(streams + 1, sizeof *sim->stream_pushers);
    sim->pushes = calloc(p->op_count + 1, sizeof *sim->pushes);
    sim->next_push = malloc((p->op_count + 1) * sizeof *sim->next_push);
    int *scratch = calloc(2 * streams + 1, sizeof *scratch);
    bool good = sim->stream_pushers && sim->pushes && sim->next_push && scratch;
    for (int t = 0; good && t < p->thread_count; t++)
        if (p->threads[t].body >= 0)
            good = find_pushers(sim, t, scratch, scratch + streams);
    free(scratch);
    if (good && sim->pusher_count)
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
    bool good = events_init(&sim->events, program->agent_count) && sim->state &&
                sharing_open(sim->program, &sim->sharing) && allocate(sim);
    if (good)
        good = program->tasks ? prepare_pipeline(sim, options->seed) : prepare_host_programs(sim);
    if (!good)
        return diag_no_memory(diag);
    for (int m = 0; m < program->member_count; m++)
        sim->member_streams[m] = -1;
    for (int s = 0; s < program->stream_count; s++)
        sim->lanes[s].blame = LANE_BUSY; /* for no time: the first instant says what it does */
    list_rank_agents(sim);
    mark_everything(sim);
    for (int s = 0; s < program->stream_count; s++)
        account_touch(sim, s);
    return STATUS_OK;
}
