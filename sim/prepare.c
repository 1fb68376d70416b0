/* prepare.c - the tables of a simulation, made before its first step; see simulation.h. */
#include <stdlib.h>
#include <string.h>

#include "sim/prepare.h"

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
    sim->timers = calloc(agents, sizeof *sim->timers);
    sim->started_ns = calloc(agents, sizeof *sim->started_ns);
    sim->member_streams = malloc(((size_t)p->member_count + 1) * sizeof *sim->member_streams);
    sim->member_ops = malloc(((size_t)p->member_count + 1) * sizeof *sim->member_ops);
    sim->lanes = calloc(streams + 1, sizeof *sim->lanes);
    sim->hands = calloc(threads + 1, sizeof *sim->hands);
    sim->submitted = calloc(instances, sizeof *sim->submitted);
    sim->admitted_ns = calloc(ranks * (size_t)p->window, sizeof *sim->admitted_ns);
    sim->task_streams = calloc(instances, sizeof *sim->task_streams);
    sim->task_positions = calloc(instances, sizeof *sim->task_positions);
    sim->task_pushes = calloc((size_t)p->tasks + 1, sizeof *sim->task_pushes);
    sim->allocated = calloc(ranks, sizeof *sim->allocated);
    sim->draws = malloc(((size_t)sim->timing->draw_count + 1) * sizeof *sim->draws);
    for (int i = 0; sim->draws && i < sim->timing->draw_count; i++)
        sim->draws[i].run[0] = sim->draws[i].run[1] = -1;
    sim->result.streams = calloc(streams + 1, sizeof *sim->result.streams);
    return sim->dirty && sim->touched && sim->touched_ranks && sim->rank_first &&
           sim->rank_agents && sim->timers && sim->started_ns && sim->member_streams &&
           sim->member_ops && sim->lanes && sim->hands && sim->submitted && sim->admitted_ns &&
           sim->task_streams && sim->task_positions && sim->task_pushes && sim->allocated &&
           sim->draws && sim->result.streams;
}

void prepare_free(struct simulation *sim)
{
    machine_free(sim->state);
    events_fini(&sim->events);
    iterations_fini(&sim->iterations);
    free(sim->dirty);
    free(sim->touched);
    free(sim->touched_ranks);
    free(sim->rank_first);
    free(sim->rank_agents);
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
    for (int t = 0; t < p->thread_count; t++)
        sim->hands[t].task = -1;
    for (int b = 0; b < p->buffer_count; b++)
        if (p->buffers[b].rank == 0 && p->buffers[b].scope == SCOPE_ITERATION)
            sim->iteration_bytes += p->buffers[b].bytes;
    return iterations_init(&sim->iterations, p->ends, p->ranks, p->depth, seed);
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
    events_init(&sim->events);
    sim->state = machine_state(sim->program);
    bool good = sim->state && allocate(sim);
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
    return STATUS_OK;
}
