/*
 * recurrence.c - see recurrence.h and recurrence_internal.h: making a recurrence, and a run of it from the
 * beginning to the results.
 */
#include "sim/recurrence_internal.h"

#include <stdio.h>
#include <stdlib.h>

/* Larger plans are left to the event-driven engine. */
enum { MOST_EVENTS = 20000 };
static const size_t MOST_BYTES = (size_t)256 << 20;

/* ---- making it ------------------------------------------------------------------------------- */

static bool may_apply(const struct program *p, const struct event_graph *g, char *why)
{
    const struct pipeline *form = &p->plan->pipeline;
    int64_t bytes = p->shared_bytes + p->depth * p->iteration_bytes;
    if (*g->why) {
        snprintf(why, EVENT_GRAPH_WHY, "%s", g->why);
        return false;
    }
    if (g->event_count > MOST_EVENTS)
        return recurrence_refuse(why, "the plan is too large");
    if (form->retire != RETIRE_DEVICE || p->plan->machine.launch_queue)
        return recurrence_refuse(why, "how far the host runs ahead depends on the timing");
    if (p->plan->machine.memory_bytes && bytes > p->plan->machine.memory_bytes)
        return recurrence_refuse(why, "iterations in flight need more than machine.memory");
    if (form->retired_dep == RETIRED_DEP_SKIP)
        return recurrence_refuse(why, "dependences on retired iterations are skipped");
    for (size_t i = 0; i < p->op_count; i++)
        if (p->ops[i].kind == OP_SYNC || p->ops[i].kind == OP_CALLBACK)
            return recurrence_refuse(why, p->ops[i].kind == OP_SYNC
                                              ? "a thread waits for the device"
                                              : "a stream calls back");
    return true;
}

static void find_range(struct recurrence *r)
{
    const struct event_graph *g = &r->graph;
    int lowest = g->events[0].stage, highest = lowest, height = 0;
    for (int v = 0; v < g->event_count; v++) {
        lowest = g->events[v].stage < lowest ? g->events[v].stage : lowest;
        highest = g->events[v].stage > highest ? g->events[v].stage : highest;
    }
    for (int e = 0; e < g->edge_count; e++)
        height = g->edges[e].height > height ? g->edges[e].height : height;
    if (height > r->history)
        r->history = height;
    r->first = highest + 2 * r->history + 1;
    r->last = r->iterations + lowest;
    r->end = r->iterations + r->program->periods;
}

static bool build(struct recurrence *r, char why[EVENT_GRAPH_WHY])
{
    if (!may_apply(r->program, &r->graph, why) || !recurrence_order(r, why) ||
        !recurrence_shrink(r) || !recurrence_make_pieces(r))
        return false;
    find_range(r);
    size_t columns = (size_t)r->column_count + (size_t)r->duration_count;
    if (columns * (BLOCK + (size_t)r->history) * RANDOM_LANES * sizeof(int64_t) > MOST_BYTES)
        return recurrence_refuse(why, "the plan is too large");
    return true;
}

enum status recurrence_build(const struct program *program, const struct timing *timing,
                             struct recurrence **out, char why[EVENT_GRAPH_WHY], struct diag *diag)
{
    struct recurrence *r = calloc(1, sizeof *r);
    if (!r)
        return diag_no_memory(diag);
    r->program = program;
    r->timing = timing;
    r->iterations = program->tasks ? program->ends[0] : 0;
    arena_init(&r->arena, 0);
    *why = '\0';
    enum status status = event_graph_build(program, timing, true, &r->graph, diag);
    bool good = status == STATUS_OK && build(r, why);
    if (status == STATUS_OK && !good && r->arena.failed)
        status = diag_no_memory(diag);
    if (!good) {
        recurrence_close(r);
        r = NULL;
    }
    if (status == STATUS_OK)
        *out = r;
    return status;
}

void recurrence_close(struct recurrence *r)
{
    if (!r)
        return;
    event_graph_fini(&r->graph);
    arena_fini(&r->arena);
    free(r);
}

static bool allocate(struct runner *run)
{
    const struct recurrence *r = run->r;
    size_t lanes = (size_t)run->lanes, block = BLOCK * lanes;
    size_t streams = (size_t)r->program->stream_count;
    run->stride = ((size_t)r->history + BLOCK) * lanes;
    run->ring = r->history + 1;
    size_t ring = (size_t)r->graph.event_count * (size_t)run->ring * lanes;
    run->columns = ARENA_ARRAY(
        &run->arena,
        (size_t)r->column_count * run->stride + ((size_t)r->duration_count + 2) * block, int64_t);
    run->offsets = ARENA_ARRAY(&run->arena, (size_t)r->graph.edge_count + 1, size_t);
    run->moves = ARENA_ARRAY(&run->arena, (size_t)r->step_count + 1, struct move);
    run->drawn = ARENA_ARRAY(&run->arena, (size_t)r->timing->draw_count + 1, struct drawn);
    run->sums = ARENA_ARRAY(&run->arena, (size_t)r->slot_count * SUMS + SUMS, int64_t);
    run->busy = ARENA_ARRAY(&run->arena, streams * SUMS + SUMS, int64_t);
    run->over_ns = ARENA_ARRAY(&run->arena, BLOCK, int64_t);
    run->at = ARENA_ARRAY(&run->arena, block, int64_t);
    run->starts = ARENA_ARRAY(&run->arena, ring, int64_t);
    run->ends = ARENA_ARRAY(&run->arena, ring, int64_t);
    run->since_ns = ARENA_ARRAY(&run->arena, (streams + 1) * lanes, int64_t);
    run->pending_cap = (r->graph.work_count + 1) * (r->program->periods + r->history + 2);
    run->pending = ARENA_ARRAY(&run->arena, streams * (size_t)run->pending_cap + 1, struct absent);
    run->entries = ARENA_ARRAY(&run->arena,
                               ((size_t)r->graph.idle_count + 1) *
                                   (size_t)(r->program->periods + r->history + 3),
                               struct entry);
    run->pending_count = ARENA_ARRAY(&run->arena, streams + 1, int);
    for (int i = 0; !run->arena.failed && i < r->timing->draw_count; i++)
        for (int k = 0; k < 2; k++)
            run->drawn[i] = (struct drawn){{NONE, NONE},
                                           {ARENA_ARRAY(&run->arena, block, int64_t),
                                            ARENA_ARRAY(&run->arena, block, int64_t)}};
    return !run->arena.failed;
}

/* ---- iterations ------------------------------------------------------------------------------ */

/* When a rank's driver came to a period, per lane. */
static const int64_t *driver_time(const struct runner *run, int rank, int64_t period, int64_t block)
{
    int driver = run->r->graph.drivers[rank];
    if (block < 0)
        return recurrence_edge_time(run, driver, period, false);
    return run->columns + (size_t)run->r->columns[driver] * run->stride +
           (size_t)(run->r->history + period - block) * (size_t)run->lanes;
}

/* Bytes of the buffers that every iteration has of its own. */
static int64_t iteration_bytes(const struct program *p)
{
    int64_t bytes = 0;
    for (int b = 0; b < p->buffer_count; b++)
        if (p->buffers[b].rank == 0 && p->buffers[b].scope == SCOPE_ITERATION)
            bytes += p->buffers[b].bytes;
    return bytes;
}

/* What is in flight on rank 0 in the first lane: before an iteration is admitted the oldest retires. */
static void note_in_flight(struct runner *run, int64_t period, int count, int64_t block)
{
    const struct program *p = run->r->program;
    struct in_flight *in_flight = run->options->in_flight;
    int64_t admits = run->r->iterations - 1 + p->min_stage;
    if (!in_flight || (block >= 0 && in_flight_exchange_is_free(in_flight)))
        return;
    for (int64_t at = period; at < period + count; at++) {
        int64_t time_ns = *driver_time(run, 0, at, block);
        for (int come = 0; come <= 1; come++) {
            if (come ? at < p->min_stage || at > admits : at < p->periods)
                continue;
            run->in_flight += come ? 1 : -1;
            const struct in_flight_point now = {time_ns, run->in_flight,
                                                run->in_flight * iteration_bytes(p)};
            in_flight_change(in_flight, &now);
        }
    }
}

/* `count` periods from `period` on have been computed: in the columns, `block` being the first of
   theirs, or, with `block` -1, in the ring. Iterations end that many periods before. */
void recurrence_note_periods(struct runner *run, int64_t period, int count, int64_t block)
{
    const struct recurrence *r = run->r;
    const struct simulate_observer *observer = run->options->observer;
    int64_t first = period - r->program->periods,
            admits = r->iterations - 1 + r->program->min_stage;
    int skipped = first < 0 ? (int)(-first < count ? -first : count) : 0;
    for (int l = 0; l < run->lanes; l++) {
        for (int j = skipped; j < count; j++) {
            int64_t over_ns = 0;
            for (int rank = 0; rank < r->program->ranks; rank++) {
                int64_t ns = driver_time(run, rank, period + j, block)[l];
                over_ns = ns > over_ns ? ns : over_ns;
                run->in_flight_ns[l] += (uint64_t)ns;
            }
            run->over_ns[j - skipped] = over_ns;
        }
        iterations_over(&run->iterations[l], run->over_ns, count - skipped);
        for (int64_t p = period > r->program->min_stage ? period : r->program->min_stage;
             p < period + count && p <= admits; p++)
            for (int rank = 0; rank < r->program->ranks; rank++)
                run->in_flight_ns[l] -= (uint64_t)driver_time(run, rank, p, block)[l];
        for (int rank = 0; admits >= period && admits < period + count && rank < r->program->ranks;
             rank++) {
            int64_t ns = driver_time(run, rank, admits, block)[l];
            run->admitted_ns[l] = ns > run->admitted_ns[l] ? ns : run->admitted_ns[l];
        }
    }
    note_in_flight(run, period, count, block);
    if (observer && observer->progress && count > skipped &&
        !observer->progress(observer->context, first + count, run->over_ns[count - skipped - 1]))
        run->stopped = true;
}

/* ---- a run ----------------------------------------------------------------------------------- */

static void run_all(struct runner *run)
{
    const struct recurrence *r = run->r;
    run->reached = r->first < r->last ? r->first : 0;
    recurrence_run_edge(run, 0, run->reached);
    if (r->first + SUMS <= r->last)
        recurrence_run_middle(run);
    recurrence_run_edge(run, run->reached, r->end);
}

/* ---- results --------------------------------------------------------------------------------- */

/* Of one lane: its own sum, or, where there is but one, all of them. */
static int64_t sum_of(const struct runner *run, const int64_t sums[SUMS], int lane)
{
    int64_t sum = 0;
    for (int l = 0; l < SUMS; l++)
        sum += run->lanes == 1 || l == lane ? sums[l] : 0;
    return sum;
}

static bool finish_accounts(struct runner *run, int lane, struct simulation_result *out)
{
    const struct recurrence *r = run->r;
    for (int i = 0; i < r->slot_count; i++)
        if (!stream_account_blame(&out->streams[r->sums[i].stream], &r->sums[i].stall,
                                  sum_of(run, &run->sums[i * SUMS], lane)))
            return false;
    for (int s = 0; s < out->stream_count; s++) {
        const struct stall none = {STALL_NO_MORE_DATA, STALL_NOBODY};
        out->streams[s].busy_ns = sum_of(run, &run->busy[s * SUMS], lane);
        if (!stream_account_blame(&out->streams[s], &none,
                                  out->makespan_ns - run->since_ns[s * run->lanes + lane]))
            return false;
        stream_account_finish(&out->streams[s]);
    }
    return true;
}

static bool finish(struct runner *run, int lane, struct simulation_result *out)
{
    const struct program *p = run->r->program;
    int64_t most = p->periods - p->min_stage;
    *out = (struct simulation_result){
        .makespan_ns = run->iterations[lane].last_over_ns,
        .tasks = run->r->iterations * p->tasks * p->ranks,
        .streams = calloc((size_t)p->stream_count + 1, sizeof *out->streams),
        .stream_count = p->stream_count,
        .fill_ns = run->iterations[lane].first_over_ns,
        .in_flight_ns = (int64_t)run->in_flight_ns[lane],
        .in_flight_max = most < run->r->iterations ? most : run->r->iterations,
    };
    out->drain_ns = out->makespan_ns - run->admitted_ns[lane];
    out->in_flight_bytes_max = out->in_flight_max * iteration_bytes(p);
    iterations_figures(&run->iterations[lane], &out->iteration);
    return out->streams && finish_accounts(run, lane, out);
}

static enum status run_lanes(const struct recurrence *r, const struct simulate_options *options,
                             int lanes, struct simulation_result *out, struct diag *diag)
{
    struct iterations iterations[RANDOM_LANES];
    struct runner run = {.r = r, .options = options, .lanes = lanes, .iterations = iterations};
    int opened = 0, finished = 0;
    arena_init(&run.arena, 0);
    bool good = allocate(&run);
    while (good && opened < lanes) {
        good = iterations_init(&iterations[opened], r->program->ends, r->program->ranks,
                               r->program->depth, options->seed);
        opened += good;
    }
    if (good) {
        recurrence_prepare_middle(&run);
        run_all(&run);
        recurrence_end_edge(&run);
    }
    while (good && !run.stopped && finished < lanes)
        good = finish(&run, finished, &out[finished]), finished++;
    for (int l = 0; l < opened; l++)
        iterations_fini(&iterations[l]);
    arena_fini(&run.arena);
    if (good && !run.stopped)
        return STATUS_OK;
    for (int l = 0; l < finished; l++)
        simulation_fini(&out[l]);
    return run.stopped ? STATUS_SYSTEM : diag_no_memory(diag);
}

enum status recurrence_run(const struct recurrence *recurrence,
                           const struct simulate_options *options, struct simulation_result *out,
                           struct diag *diag)
{
    return run_lanes(recurrence, options, 1, out, diag);
}

enum status recurrence_run_lanes(const struct recurrence *recurrence,
                                 const struct simulate_options *options,
                                 struct simulation_result out[RANDOM_LANES], struct diag *diag)
{
    return run_lanes(recurrence, options, RANDOM_LANES, out, diag);
}
