/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recurrence.c - see recurrence.h and recurrence_internal.h: making a recurrence, and a run of it from the
 * beginning to the results.
 */
#include "recurrence_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Larger plans are left to the event-driven engine. */
enum { MOST_EVENTS = 1000000 };
static const size_t MOST_BYTES = (size_t)2 << 30;

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
    bool ahead = form->retire == RETIRE_SUBMIT;
    if (ahead && program_asks_bound(p))
        return recurrence_refuse(why, "the host runs ahead of the device, and iterations in flight "
                                      "have a bound");
    if (!ahead && (form->retire != RETIRE_DEVICE || p->plan->machine.launch_queue))
        return recurrence_refuse(why, "how far the host runs ahead depends on the timing");
    if (machine_has_memory(&p->plan->machine) && bytes > machine_same_memory(&p->plan->machine))
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

/* How far back a time is at most, as the graph has it. */
static int find_reach(const struct recurrence *r)
{
    const struct event_graph *g = &r->graph;
    int reach = 1; /* a move may follow the last one of the period before */
    for (int e = 0; e < g->edge_count; e++)
        reach = g->edges[e].height > reach ? g->edges[e].height : reach;
    for (int w = 0; w < g->work_count; w++) {
        const struct event_work *work = &g->works[w];
        reach = work->done.height + 1 > reach ? work->done.height + 1 : reach;
        for (int i = work->first; i < work->first + work->count; i++) {
            reach = g->idles[i].until.height > reach ? g->idles[i].until.height : reach;
            if (g->idles[i].pushed.event != EVENT_NONE && g->idles[i].pushed.height > reach)
                reach = g->idles[i].pushed.height;
        }
    }
    if (g->item_count == 0)
        return reach;
    /* in the first and last periods fewer items are pushed, so more periods fill a stream */
    return reach + r->program->periods + r->program->max_distance + 1;
}

/* The columns have to go back as far as times of the graph may come from there. */
static void find_history(struct recurrence *r)
{
    r->reach = find_reach(r);
    for (int v = 0; v < r->graph.event_count; v++)
        for (int end = 0; end <= 1; end++)
            recurrence_place(r, (struct event_ref){v, r->reach, end});
}

static void find_range(struct recurrence *r)
{
    const struct event_graph *g = &r->graph;
    int lowest = g->events[0].stage, highest = lowest;
    for (int v = 0; v < g->event_count; v++) {
        lowest = g->events[v].stage < lowest ? g->events[v].stage : lowest;
        highest = g->events[v].stage > highest ? g->events[v].stage : highest;
    }
    r->first_stage = r->duration_count ? r->durations[0].stage : 0;
    for (int d = 0; d < r->duration_count; d++)
        if (r->durations[d].stage < r->first_stage)
            r->first_stage = r->durations[d].stage;
    r->first = highest + 2 * r->history + 1;
    while ((r->first - r->first_stage) % SUMS) /* blocks end where runs of draws do */
        r->first++;
    r->last = r->iterations + lowest;
    r->end = r->iterations + r->program->periods;
}

static bool build(struct recurrence *r, char why[EVENT_GRAPH_WHY])
{
    if (!may_apply(r->program, &r->graph, why) || !recurrence_order(r, why) ||
        !recurrence_shrink(r) || !recurrence_make_pieces(r))
        return false;
    find_history(r);
    find_range(r);
    if (r->runs_ahead && !recurrence_make_ahead(r))
        return false;
    size_t columns = (size_t)r->column_count + (size_t)r->duration_count;
    if (columns * (BLOCK + (size_t)r->history * RANDOM_LANES) * sizeof(int64_t) > MOST_BYTES)
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
    r->runs_ahead = program->plan->pipeline.retire == RETIRE_SUBMIT;
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

/* The first place from there on where a vector is in one line of the cache; SUMS more are there. */
static int64_t *aligned(int64_t *at)
{
    uintptr_t past = (uintptr_t)at % (SUMS * sizeof *at);
    return past ? at + SUMS - past / sizeof *at : at;
}

/* A stream has room for its works in all periods that can be pending. Returns the room of all streams. */
static size_t place_pending(struct runner *run)
{
    const struct event_graph *graph = &run->r->graph;
    size_t periods = (size_t)(run->r->program->periods + run->r->history + 2), total = 0;
    int stream = 0;
    for (int work = 0; work < graph->work_count; work++) {
        while (stream <= graph->works[work].stream)
            run->pending_first[stream++] = total;
        total += periods;
    }
    return total + 1;
}

/* A stream holds as many items as it has places, and those of a period. */
static bool allocate_items(struct runner *run)
{
    const struct event_graph *g = &run->r->graph;
    const struct program *p = run->r->program;
    size_t streams = (size_t)p->stream_count, items = (size_t)g->item_count, total = 0;
    run->queued_first = ARENA_ARRAY(&run->arena, streams + 1, size_t);
    run->queued_count = ARENA_ARRAY(&run->arena, streams + 1, int64_t);
    run->queued_number = ARENA_ARRAY(&run->arena, items + 1, int64_t);
    run->place_ns =
        ARENA_ARRAY(&run->arena, items * (size_t)run->ring * (size_t)run->lanes + 1, int64_t);
    if (!run->queued_first)
        return false;
    int item = 0;
    for (int s = 0; s < p->stream_count; s++) {
        run->queued_first[s] = total;
        int first = item;
        while (item < g->item_count && g->items[item].stream == s)
            item++;
        total += item > first ? (size_t)(p->streams[s].cap + item - first) + 1 : 0;
    }
    run->queued_first[streams] = total;
    run->queued = ARENA_ARRAY(&run->arena, total + 1, struct queued);
    return !run->arena.failed;
}

static bool allocate(struct runner *run)
{
    const struct recurrence *r = run->r;
    size_t lanes = (size_t)run->lanes, streams = (size_t)r->program->stream_count;
    int lead = 0;
    for (int d = 0; d < r->duration_count; d++)
        if (r->durations[d].stage - r->first_stage > lead)
            lead = r->durations[d].stage - r->first_stage;
    run->stride = (size_t)r->history * lanes + BLOCK;
    run->run_length = lanes == 1 ? RANDOM_RUN : RANDOM_ROWS;
    run->drawn_stride = (size_t)(lead + run->run_length) * lanes;
    run->ring = r->history + 1;
    size_t ring = (size_t)r->graph.event_count * (size_t)run->ring * lanes;
    const size_t values = drawn_at(run, r->duration_count) + SUMS;
    int64_t *columns = ARENA_ARRAY(&run->arena, values, int64_t);
    run->columns = aligned(columns);
    run->sources =
        ARENA_ARRAY(&run->arena, (size_t)(r->graph.edge_count + r->step_count) + 1, struct source);
    run->moves = ARENA_ARRAY(&run->arena, (size_t)r->step_count + 1, struct move);
    run->sums = ARENA_ARRAY(&run->arena, (size_t)r->slot_count * SUMS + SUMS, int64_t);
    run->busy = ARENA_ARRAY(&run->arena, streams * SUMS + SUMS, int64_t);
    run->over_ns = ARENA_ARRAY(&run->arena, BLOCK, int64_t);
    run->at = ARENA_ARRAY(&run->arena, BLOCK, int64_t);
    run->one_draw = ARENA_ARRAY(&run->arena, (size_t)run->run_length * lanes, int64_t);
    run->starts = ARENA_ARRAY(&run->arena, ring, int64_t);
    run->ends = ARENA_ARRAY(&run->arena, ring, int64_t);
    run->since_ns = ARENA_ARRAY(&run->arena, (streams + 1) * lanes, int64_t);
    run->pending_first = ARENA_ARRAY(&run->arena, streams + 1, size_t);
    if (!run->pending_first)
        return false;
    run->pending = ARENA_ARRAY(&run->arena, place_pending(run), struct absent);
    run->entries = ARENA_ARRAY(&run->arena,
                               ((size_t)r->graph.idle_count + 1) *
                                   (size_t)(r->program->periods + r->history + 3),
                               struct entry);
    run->pending_count = ARENA_ARRAY(&run->arena, streams + 1, int);
    return allocate_items(run) && (!r->runs_ahead || recurrence_open_ahead(run));
}

/* ---- iterations ------------------------------------------------------------------------------ */

/* When the oldest iteration was over on a rank. */
static int64_t over_ns(const struct runner *run, int rank, int64_t period, int64_t block, int lane)
{
    int64_t ns = recurrence_driver_ns(run, rank, period, block, lane);
    int64_t finish_ns =
        run->r->runs_ahead ? recurrence_finish_ns(run, rank, period, block, lane) : ns;
    return finish_ns > ns ? finish_ns : ns;
}

/* When iterations were over on all ranks, a period and lane each. */
static void find_over(struct runner *run, int64_t period, int count, int64_t block)
{
    for (int rank = 0; rank < run->r->program->ranks; rank++)
        for (int j = 0; j < count; j++)
            for (int l = 0; l < run->lanes; l++) {
                int64_t ns = over_ns(run, rank, period + j, block, l);
                int64_t *latest_ns = &run->over_ns[j * run->lanes + l];
                *latest_ns = rank > 0 && *latest_ns > ns ? *latest_ns : ns;
            }
}

/* The same in a block, where times are in columns. */
static void raise_over(struct runner *run, const struct place *place, bool first, int values)
{
    const int64_t *restrict times = run->columns + at_column(run, *place);
    int64_t *restrict over = run->over_ns;
    for (int i = 0; i < values; i++) {
        int64_t ns = times[i] + place->plus_ns;
        over[i] = !first && over[i] > ns ? over[i] : ns;
    }
}

static void find_over_in_block(struct runner *run, int values)
{
    for (int rank = 0; rank < run->r->program->ranks; rank++) {
        raise_over(run, &run->r->drivers[rank], rank == 0, values);
        if (run->r->runs_ahead)
            raise_over(run, &run->r->finishes[rank], false, values);
    }
}

int64_t recurrence_iteration_bytes(const struct program *p)
{
    int64_t bytes = 0;
    for (int b = 0; b < p->buffer_count; b++)
        if (p->buffers[b].rank == 0 && p->buffers[b].scope == SCOPE_ITERATION)
            bytes += p->buffers[b].bytes;
    return bytes;
}

bool recurrence_retires(const struct recurrence *r, int64_t period)
{
    return period >= r->program->periods;
}

bool recurrence_admits(const struct recurrence *r, int64_t period)
{
    int64_t number = period - r->program->min_stage;
    return number >= 0 && number < r->iterations;
}

/* Iterations in flight on rank 0 in the first lane: before an iteration is admitted the oldest retires. */
static void note_in_flight(struct runner *run, int64_t period, int64_t block)
{
    for (int come = 0; come <= 1; come++) {
        if (!(come ? recurrence_admits(run->r, period) : recurrence_retires(run->r, period)))
            continue;
        run->in_flight += come ? 1 : -1;
        const struct in_flight_point now = {
            recurrence_driver_ns(run, 0, period, block, 0), run->in_flight,
            run->in_flight * recurrence_iteration_bytes(run->r->program)};
        in_flight_change(run->options->in_flight, &now);
    }
}

/* Retirements less admissions, and the last admission. */
static void note_admissions(struct runner *run, int64_t period, int64_t block)
{
    const struct recurrence *r = run->r;
    bool last = period - r->program->min_stage == r->iterations - 1;
    for (int rank = 0; rank < r->program->ranks; rank++)
        for (int l = 0; l < run->lanes; l++) {
            int64_t ns = recurrence_driver_ns(run, rank, period, block, l);
            run->in_flight_ns[l] += recurrence_retires(r, period) ? (uint64_t)ns : 0;
            run->in_flight_ns[l] -= recurrence_admits(r, period) ? (uint64_t)ns : 0;
            if (last && ns > run->admitted_ns[l])
                run->admitted_ns[l] = ns;
        }
}

/* In a period that retires an iteration and admits another, not the last, there is nothing to note. */
void recurrence_note_periods(struct runner *run, int64_t period, int count, int64_t block)
{
    const struct recurrence *r = run->r;
    const struct simulate_observer *observer = run->options->observer;
    int64_t first = period - r->program->periods;
    int skipped = first < 0 ? (int)(-first < count ? -first : count) : 0, over = count - skipped;
    for (int64_t p = period; r->runs_ahead && p < period + count; p++)
        recurrence_note_ahead(run, p, block);
    bool even =
        r->runs_ahead || (recurrence_retires(r, period) && recurrence_admits(r, period + count));
    struct in_flight *in_flight = run->options->in_flight;
    for (int64_t p = period; !even && p < period + count; p++)
        note_admissions(run, p, block);
    even = r->runs_ahead || (even && in_flight && in_flight_exchange_is_free(in_flight));
    for (int64_t p = period; in_flight && !even && p < period + count; p++)
        note_in_flight(run, p, block);
    if (block < 0)
        find_over(run, period, count, block);
    else
        find_over_in_block(run, count * run->lanes);
    for (int l = 0; l < run->lanes; l++)
        iterations_over(&run->iterations[l], run->over_ns + skipped * run->lanes + l, run->lanes,
                        over);
    if (simulate_interrupted(run->options) && !run->stopped) {
        run->interrupted_at =
            first + count > 0 ? first + count : 0; /* the first ones begin before 0 */
        run->stopped = run->interrupted = true;
    }
    if (observer && observer->progress && over > 0 && !run->stopped &&
        !observer->progress(observer->context, first + count,
                            run->over_ns[(count - 1) * run->lanes]))
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
        const struct stall none = {STALL_NO_MORE_DATA, STALL_ON_NONE};
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
    int64_t depth = p->periods - p->min_stage,
            most = depth < run->r->iterations ? depth : run->r->iterations;
    *out = (struct simulation_result){
        .makespan_ns = run->iterations[lane].last_over_ns,
        .tasks = run->r->iterations * p->tasks * p->ranks,
        .streams = calloc((size_t)p->stream_count + 1, sizeof *out->streams),
        .stream_count = p->stream_count,
        .fill_ns = run->iterations[lane].first_over_ns,
        .in_flight_ns = (int64_t)run->in_flight_ns[lane],
        .in_flight_max = run->r->runs_ahead ? run->in_flight_max[lane] : most,
    };
    out->drain_ns = out->makespan_ns - run->admitted_ns[lane];
    out->in_flight_bytes_max = out->in_flight_max * recurrence_iteration_bytes(p);
    iterations_figures(&run->iterations[lane], &out->iteration);
    return out->streams && finish_accounts(run, lane, out);
}

/* The machine knows what happens first. What is in flight is that of the first lane. */
static enum status run_events(const struct recurrence *r, const struct simulate_options *options,
                              int lanes, struct simulation_result *out, struct diag *diag)
{
    struct simulate_options each = *options;
    for (int l = 0; l < lanes; l++) {
        enum status status = simulate_run(r->program, r->timing, &each, &out[l], diag);
        while (status != STATUS_OK && l > 0)
            simulation_fini(&out[--l]);
        if (status != STATUS_OK)
            return status;
        out[l].steps = 0;
        each.replication++;
        each.observer = NULL;
        each.in_flight = NULL;
    }
    return STATUS_OK;
}

static enum status run_lanes(const struct recurrence *r, const struct simulate_options *options,
                             int lanes, struct simulation_result *out, struct diag *diag)
{
    struct iterations iterations[RANDOM_LANES];
    struct runner run = {.r = r, .options = options, .lanes = lanes, .iterations = iterations};
    struct in_flight before = {0};
    if (options->in_flight)
        before = *options->in_flight;
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
    }
    if (good && !run.unclear)
        recurrence_end_edge(&run);
    while (good && !run.stopped && !run.unclear && finished < lanes)
        good = finish(&run, finished, &out[finished]), finished++;
    for (int l = 0; l < opened; l++)
        iterations_fini(&iterations[l]);
    arena_fini(&run.arena);
    if (good && run.unclear && !run.stopped) {
        if (options->in_flight)
            *options->in_flight = before;
        return run_events(r, options, lanes, out, diag);
    }
    if (good && !run.stopped)
        return STATUS_OK;
    for (int l = 0; l < finished; l++)
        simulation_fini(&out[l]);
    if (run.interrupted)
        return diag_error(diag, STATUS_LIMIT, "interrupted after %" PRId64 " iterations",
                          run.interrupted_at);
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
