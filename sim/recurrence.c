/*
 * recurrence.c - see recurrence.h.
 *
 * Periods are computed in blocks. A column holds the times of one event, a place a period and lane:
 *
 *                     history                    block
 *     column   | H periods before it |  BLOCK periods      |     x RANDOM_LANES, or x 1
 *
 * First the durations of the block are drawn. Then the steps, one an event in the order of their
 * causes, are taken period by period: this is the recursion proper. At last the accounts are added up,
 * each reason over the whole block. The middle of a run is like that; at its beginning and its end,
 * where some instances do not exist, events are computed one by one (`edge_*`): who does not exist
 * waits for nothing and holds up nobody, but whoever comes behind it in a FIFO comes behind the one
 * before it.
 *
 * Before, the graph is made smaller. An edge goes if another way from its tail to its head is at
 * least as long and spans no more periods. An event that takes no time and has one cause left is that
 * cause under another name.
 */
#include "sim/recurrence.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3") /* loops over lanes and blocks are to be vectorised */
#endif

enum {
    BLOCK = RANDOM_RUN,
    SUMS = 8,
    NONE = -1,
    MOST_PRUNED = 3000,
    MOST_CHAINED = 1000,
    MOST_EVENTS = 20000
};
/* Larger plans are left to the event-driven engine. */
static const size_t MOST_BYTES = (size_t)256 << 20;

/* Where a time is: in a column, so many periods ago. */
struct place {
    int column, height;
};

struct step {
    int column;       /* of the time; that of the end is the next one, if it takes time */
    int first, count; /* sources */
    int duration;     /* NONE: it takes no time */
};

struct duration {
    int op_first, op_count; /* of the graph's ops */
    int stage;
    int64_t constant_ns; /* what does not vary; the longest */
    bool varies;
};

/* One reason a stream is idle for. `slot` is the place in its account's sums. */
struct reason {
    struct place until, pushed; /* pushed.column NONE: none */
    int slot;
};

struct piece {
    struct place begin, end, before; /* before: the end of the piece before it */
    bool takes_time;
    int stream, first, count; /* reasons */
};

struct recurrence {
    const struct program *program;
    const struct timing *timing;
    struct event_graph graph;
    struct arena arena;
    int64_t iterations;
    int *order;               /* events by their causes */
    int *in_first, *in_edges; /* edges into an event */
    /* the smaller graph */
    struct event_ref *alias; /* per event: what it is another name for; itself, if for nothing */
    int *columns;            /* per event; NONE for an alias */
    int column_count;
    struct step *steps;
    int step_count;
    struct place *sources;
    struct duration *durations;
    int duration_count;
    struct piece *pieces; /* beside graph.works */
    struct reason *reasons;
    int *slots; /* per graph.idle: its place among the sums */
    struct slot {
        int stream;
        struct stall stall;
    } * sums; /* one a stream and reason; the first are NO_MORE_DATA of each stream, then CLOCK */
    int slot_count;
    int history; /* H */
    int64_t first,
        last;    /* periods that are like all others, with all they refer to: first .. last - 1 */
    int64_t end; /* periods in all */
};

/* ---- the order of causes --------------------------------------------------------------------- */

static bool refuse(char why[EVENT_GRAPH_WHY], const char *text)
{
    snprintf(why, EVENT_GRAPH_WHY, "%s", text);
    return false;
}

static bool list_causes(struct recurrence *r)
{
    const struct event_graph *g = &r->graph;
    size_t events = (size_t)g->event_count;
    r->in_first = ARENA_ARRAY(&r->arena, events + 2, int);
    r->in_edges = ARENA_ARRAY(&r->arena, (size_t)g->edge_count + 1, int);
    r->order = ARENA_ARRAY(&r->arena, events, int);
    if (r->arena.failed)
        return false;
    for (int e = 0; e < g->edge_count; e++)
        r->in_first[g->edges[e].to + 2]++;
    for (int v = 0; v < g->event_count; v++)
        r->in_first[v + 2] += r->in_first[v + 1];
    for (int e = 0; e < g->edge_count; e++)
        r->in_edges[r->in_first[g->edges[e].to + 1]++] = e;
    return true;
}

/* Depth first along causes of the same period. 0: not seen, 1: on the way, 2: in order. */
static bool visit(struct recurrence *r, uint8_t *seen, int v, int *count)
{
    if (seen[v])
        return seen[v] == 2;
    seen[v] = 1;
    for (int i = r->in_first[v]; i < r->in_first[v + 1]; i++) {
        const struct ratio_edge *edge = &r->graph.edges[r->in_edges[i]];
        if (edge->height == 0 && !visit(r, seen, edge->from, count))
            return false;
    }
    seen[v] = 2;
    r->order[(*count)++] = v;
    return true;
}

/* The same order with chains kept together: who follows the last one directly comes next, if all its
   causes have come. */
static bool chain_events(struct recurrence *r)
{
    const struct event_graph *g = &r->graph;
    const int count = g->event_count;
    int *order = ARENA_ARRAY(&r->arena, (size_t)count, int), placed = 0, last = NONE;
    int *left = ARENA_ARRAY(&r->arena, (size_t)count, int);
    bool *done = ARENA_ARRAY(&r->arena, (size_t)count, bool);
    if (r->arena.failed)
        return false;
    for (int e = 0; e < g->edge_count; e++)
        left[g->edges[e].to] += g->edges[e].height == 0;
    while (placed < count) {
        int next = NONE;
        for (int i = 0; i < count && next == NONE; i++) {
            int v = r->order[i];
            for (int k = r->in_first[v]; !done[v] && left[v] == 0 && k < r->in_first[v + 1]; k++)
                if (g->edges[r->in_edges[k]].from == last && g->edges[r->in_edges[k]].height == 0)
                    next = v;
        }
        for (int i = 0; i < count && next == NONE; i++)
            if (!done[r->order[i]] && left[r->order[i]] == 0)
                next = r->order[i];
        done[next] = true;
        order[placed++] = last = next;
        for (int e = 0; e < g->edge_count; e++)
            left[g->edges[e].to] -= g->edges[e].from == next && g->edges[e].height == 0;
    }
    r->order = order;
    return true;
}

/* Does anything refer to a later period, as a collective counted by another rank's stage may? */
static bool looks_ahead(const struct event_graph *g)
{
    bool ahead = false;
    for (int e = 0; e < g->edge_count; e++)
        ahead |= g->edges[e].height < 0;
    for (int w = 0; w < g->work_count; w++) {
        ahead |= g->works[w].done.height < 0;
        for (int i = g->works[w].first; i < g->works[w].first + g->works[w].count; i++)
            ahead |= g->idles[i].until.height < 0 || g->idles[i].owner.height < 0 ||
                     (g->idles[i].pushed.event != EVENT_NONE && g->idles[i].pushed.height < 0);
    }
    return ahead;
}

static bool order_events(struct recurrence *r, char why[EVENT_GRAPH_WHY])
{
    int count = 0;
    uint8_t *seen = ARENA_ARRAY(&r->arena, (size_t)r->graph.event_count, uint8_t);
    if (looks_ahead(&r->graph))
        return refuse(why, "ranks have one collective in different stages");
    for (int v = 0; seen && v < r->graph.event_count; v++)
        if (!visit(r, seen, v, &count))
            return refuse(why, "the plan deadlocks");
    return seen && (count > MOST_CHAINED || chain_events(r));
}

/* ---- a smaller graph ------------------------------------------------------------------------- */

struct pruner {
    bool *gone;       /* per edge */
    int *height;      /* per event: of the shortest way from the tail */
    int *queue, tail; /* a ring */
    bool *queued;
    int *out_first, *out_edges;
};

static bool pruner_init(struct recurrence *r, struct pruner *pr)
{
    const struct event_graph *g = &r->graph;
    size_t events = (size_t)g->event_count, edges = (size_t)g->edge_count;
    pr->gone = ARENA_ARRAY(&r->arena, edges, bool);
    pr->height = ARENA_ARRAY(&r->arena, events, int);
    pr->queue = ARENA_ARRAY(&r->arena, events + 1, int);
    pr->queued = ARENA_ARRAY(&r->arena, events, bool);
    pr->out_first = ARENA_ARRAY(&r->arena, events + 2, int);
    pr->out_edges = ARENA_ARRAY(&r->arena, edges + 1, int);
    if (r->arena.failed)
        return false;
    for (int e = 0; e < g->edge_count; e++)
        pr->out_first[g->edges[e].from + 2]++;
    for (int v = 0; v < g->event_count; v++)
        pr->out_first[v + 2] += pr->out_first[v + 1];
    for (int e = 0; e < g->edge_count; e++)
        pr->out_edges[pr->out_first[g->edges[e].from + 1]++] = e;
    return true;
}

/* The way so far has come to `event` in `height` periods; where it leads next. With `from_end` only by
   edges that begin at the event's end. true: one leads to the head of `implied`. */
static bool go_on(const struct recurrence *r, struct pruner *pr, int implied, int event, int height,
                  bool from_end)
{
    const struct event_graph *g = &r->graph;
    for (int i = pr->out_first[event]; i < pr->out_first[event + 1]; i++) {
        int e = pr->out_edges[i], to = g->edges[e].to, there = height + g->edges[e].height;
        if (e == implied || pr->gone[e] || there > g->edges[implied].height ||
            there >= pr->height[to] || (from_end && !g->links[e].end))
            continue;
        if (to == g->edges[implied].to)
            return true;
        pr->height[to] = there;
        if (pr->queued[to])
            continue;
        pr->queued[to] = true;
        pr->queue[pr->tail] = to;
        pr->tail = (pr->tail + 1) % (g->event_count + 1);
    }
    return false;
}

/* Is there another way from the edge's tail, or from the tail's end, to its head, in no more
   periods? Heights only grow on the way, so a queue of improved events will do. */
static bool is_implied(const struct recurrence *r, struct pruner *pr, int edge)
{
    const struct event_graph *g = &r->graph;
    int head = 0;
    pr->tail = 0;
    for (int v = 0; v < g->event_count; v++) {
        pr->height[v] = INT32_MAX;
        pr->queued[v] = false;
    }
    bool implied = go_on(r, pr, edge, g->edges[edge].from, 0, g->links[edge].end);
    while (!implied && head != pr->tail) {
        int v = pr->queue[head];
        head = (head + 1) % (g->event_count + 1);
        pr->queued[v] = false;
        implied = go_on(r, pr, edge, v, pr->height[v], false);
    }
    return implied;
}

static struct event_ref resolve(const struct recurrence *r, struct event_ref ref)
{
    while (r->alias[ref.event].event != ref.event || r->alias[ref.event].height != 0) {
        struct event_ref next = r->alias[ref.event];
        next.height += ref.height;
        ref = next;
    }
    if (r->graph.events[ref.event].op_count == 0)
        ref.end = false;
    return ref;
}

/* An event without time of its own and with one cause. Drivers stay, their times are wanted. */
static void find_aliases(struct recurrence *r, const bool *gone)
{
    const struct event_graph *g = &r->graph;
    for (int i = 0; i < g->event_count; i++) {
        int v = r->order[i], causes = 0, edge = NONE;
        r->alias[v] = (struct event_ref){v, 0, false};
        for (int k = r->in_first[v]; k < r->in_first[v + 1]; k++)
            if (!gone[r->in_edges[k]]) {
                edge = r->in_edges[k];
                causes++;
            }
        if (causes == 1 && g->events[v].op_count == 0 && g->events[v].kind != EVENT_DRIVER &&
            g->edges[edge].height == 0)
            r->alias[v] = (struct event_ref){g->edges[edge].from, 0, g->links[edge].end};
    }
}

static struct place place_of(struct recurrence *r, struct event_ref ref)
{
    struct event_ref found = resolve(r, ref);
    if (found.height > r->history)
        r->history = found.height;
    return (struct place){r->columns[found.event] + found.end, found.height};
}

/* ---- steps ----------------------------------------------------------------------------------- */

static int add_duration(struct recurrence *r, const struct event *event)
{
    if (event->op_count == 0)
        return NONE;
    struct duration *duration = &r->durations[r->duration_count];
    *duration = (struct duration){event->op_first, event->op_count, event->stage, 0, false};
    for (int i = 0; i < event->op_count; i++) {
        const struct op_time *time = &r->timing->ops[r->graph.ops[event->op_first + i]];
        if (time->dist)
            duration->varies = true;
        else if (time->mean_ns > duration->constant_ns)
            duration->constant_ns = time->mean_ns;
    }
    return r->duration_count++;
}

static void make_columns(struct recurrence *r)
{
    for (int i = 0; i < r->graph.event_count; i++) {
        int v = r->order[i];
        bool alias = r->alias[v].event != v;
        r->columns[v] = alias ? NONE : r->column_count;
        r->column_count += alias ? 0 : 1 + (r->graph.events[v].op_count > 0);
    }
}

static void make_steps(struct recurrence *r, const bool *gone)
{
    const struct event_graph *g = &r->graph;
    int sources = 0;
    for (int i = 0; i < g->event_count; i++) {
        int v = r->order[i];
        if (r->columns[v] == NONE)
            continue;
        struct step step = {r->columns[v], sources, 0, add_duration(r, &g->events[v])};
        for (int k = r->in_first[v]; k < r->in_first[v + 1]; k++) {
            int e = r->in_edges[k];
            if (!gone[e])
                r->sources[sources++] = place_of(
                    r, (struct event_ref){g->edges[e].from, g->edges[e].height, g->links[e].end});
        }
        step.count = sources - step.first;
        r->steps[r->step_count++] = step;
    }
}

static bool shrink(struct recurrence *r)
{
    const struct event_graph *g = &r->graph;
    struct pruner pr;
    size_t events = (size_t)g->event_count;
    r->alias = ARENA_ARRAY(&r->arena, events, struct event_ref);
    r->columns = ARENA_ARRAY(&r->arena, events, int);
    r->steps = ARENA_ARRAY(&r->arena, events, struct step);
    r->durations = ARENA_ARRAY(&r->arena, events, struct duration);
    r->sources = ARENA_ARRAY(&r->arena, (size_t)g->edge_count + 1, struct place);
    if (!pruner_init(r, &pr))
        return false;
    for (int e = 0; g->edge_count <= MOST_PRUNED && e < g->edge_count; e++)
        pr.gone[e] = is_implied(r, &pr, e);
    find_aliases(r, pr.gone);
    make_columns(r);
    make_steps(r, pr.gone);
    return true;
}

/* ---- accounts -------------------------------------------------------------------------------- */

static int find_slot(struct recurrence *r, int stream, struct stall stall)
{
    for (int i = 0; i < r->slot_count; i++)
        if (r->sums[i].stream == stream && r->sums[i].stall.cause == stall.cause &&
            r->sums[i].stall.who == stall.who)
            return i;
    r->sums[r->slot_count] = (struct slot){stream, stall};
    return r->slot_count++;
}

static struct place piece_place(struct recurrence *r, const struct event_work *work, bool end)
{
    struct event_ref ref = work->done;
    if (!end && work->takes_time)
        ref.end = false;
    return place_of(r, ref);
}

static void make_piece(struct recurrence *r, int index, int before, int periods)
{
    const struct event_work *work = &r->graph.works[index];
    struct piece *piece = &r->pieces[index];
    *piece = (struct piece){.begin = piece_place(r, work, false),
                            .end = piece_place(r, work, true),
                            .takes_time = work->takes_time,
                            .stream = work->stream,
                            .first = work->first,
                            .count = work->count};
    struct event_ref last = r->graph.works[before].done;
    last.height += periods;
    piece->before = place_of(r, last);
    for (int i = work->first; i < work->first + work->count; i++) {
        const struct event_idle *idle = &r->graph.idles[i];
        bool bounded = idle->why.cause == STALL_CLOCK && idle->pushed.event != EVENT_NONE;
        r->slots[i] = find_slot(r, work->stream, idle->why);
        r->reasons[i] = (struct reason){
            place_of(r, idle->until), bounded ? place_of(r, idle->pushed) : (struct place){NONE, 0},
            r->slots[i]};
    }
}

static bool make_pieces(struct recurrence *r)
{
    const struct event_graph *g = &r->graph;
    size_t idles = (size_t)g->idle_count, streams = (size_t)r->program->stream_count;
    r->pieces = ARENA_ARRAY(&r->arena, (size_t)g->work_count + 1, struct piece);
    r->reasons = ARENA_ARRAY(&r->arena, idles + 1, struct reason);
    r->slots = ARENA_ARRAY(&r->arena, idles + 1, int);
    r->sums = ARENA_ARRAY(&r->arena, idles + 2 * streams + 1, struct slot);
    if (r->arena.failed)
        return false;
    for (int s = 0; s < r->program->stream_count; s++)
        find_slot(r, s, (struct stall){STALL_NO_MORE_DATA, STALL_NOBODY});
    for (int s = 0; s < r->program->stream_count; s++)
        find_slot(r, s, (struct stall){STALL_CLOCK, STALL_NOBODY});
    for (int first = 0, next; first < g->work_count; first = next) {
        for (next = first; next < g->work_count && g->works[next].stream == g->works[first].stream;)
            next++;
        for (int w = first; w < next; w++)
            make_piece(r, w, w == first ? next - 1 : w - 1, w == first);
    }
    return true;
}

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
        return refuse(why, "the plan is too large");
    if (form->retire != RETIRE_DEVICE || p->plan->machine.launch_queue)
        return refuse(why, "how far the host runs ahead depends on the timing");
    if (p->plan->machine.memory_bytes && bytes > p->plan->machine.memory_bytes)
        return refuse(why, "iterations in flight need more than machine.memory");
    if (form->retired_dep == RETIRED_DEP_SKIP)
        return refuse(why, "dependences on retired iterations are skipped");
    for (size_t i = 0; i < p->op_count; i++)
        if (p->ops[i].kind == OP_SYNC || p->ops[i].kind == OP_CALLBACK)
            return refuse(why, p->ops[i].kind == OP_SYNC ? "a thread waits for the device"
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
    if (!may_apply(r->program, &r->graph, why) || !list_causes(r) || !order_events(r, why) ||
        !shrink(r) || !make_pieces(r))
        return false;
    find_range(r);
    size_t columns = (size_t)r->column_count + (size_t)r->duration_count;
    if (columns * (BLOCK + (size_t)r->history) * RANDOM_LANES * sizeof(int64_t) > MOST_BYTES)
        return refuse(why, "the plan is too large");
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

/* ---- a run ----------------------------------------------------------------------------------- */

/* Runs of draws of one operation. */
struct drawn {
    int64_t run[2];
    int64_t *ns[2];
};

struct runner {
    const struct recurrence *r;
    const struct simulate_options *options;
    struct diag *diag;
    int lanes;
    struct arena arena;
    struct iterations *iterations; /* per lane */
    int64_t *columns;              /* then the durations of the block */
    size_t stride;                 /* of a column */
    size_t *offsets;               /* per source: of its value in the block's first period */
    struct move {                  /* per step: where it reads and writes, likewise */
        size_t start, end, duration;
        int first, count;
        int64_t carry; /* all bits: the end of the step before is a source, too; it is at hand */
    } * moves;
    struct drawn *drawn; /* per operation that varies */
    int64_t *sums;       /* per slot: SUMS partial sums; of lane l: those l mod lanes */
    int64_t *busy;       /* per stream */
    int64_t *over_ns;    /* scratch: ends of a block's iterations, of one lane */
    int64_t *at;         /* scratch: a block */
    /* one by one: a ring of history + 1 periods */
    int64_t *starts, *ends;
    int ring;
    int64_t *since_ns; /* per stream and lane: it has been idle */
    struct absent { /* per stream: pieces that do not exist, whose reasons may hold for the next */
        int64_t period;
        int work;
    } * pending;
    int *pending_count;
    int pending_cap; /* per stream */
    struct entry {   /* reasons of pending pieces, in order */
        int idle;
        int64_t period;
    } * entries;
    int entry_count;
    int64_t reached;                     /* periods computed */
    int64_t admitted_ns[RANDOM_LANES];   /* the last one */
    uint64_t in_flight_ns[RANDOM_LANES]; /* retirements less admissions so far, modulo 2^64 */
    bool stopped;
};

static size_t at_column(const struct runner *run, struct place place)
{
    return (size_t)place.column * run->stride +
           (size_t)(run->r->history - place.height) * (size_t)run->lanes;
}

static size_t duration_at(const struct runner *run, int duration)
{
    return (size_t)run->r->column_count * run->stride +
           (size_t)(duration + 1) * BLOCK * (size_t)run->lanes;
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

/* Offsets, and durations that stay; those of number NONE are zero. */
static void prepare(struct runner *run)
{
    const struct recurrence *r = run->r;
    for (int i = 0; i < r->step_count; i++) {
        const struct step *step = &r->steps[i];
        size_t start = at_column(run, (struct place){step->column, 0});
        bool takes_time = step->duration != NONE;
        run->moves[i] = (struct move){start,
                                      takes_time ? start + run->stride : start,
                                      duration_at(run, step->duration),
                                      step->first,
                                      0,
                                      0};
        for (int k = step->first; k < step->first + step->count; k++) {
            size_t source = at_column(run, r->sources[k]);
            if (i > 0 && source == run->moves[i - 1].end)
                run->moves[i].carry = -1;
            else
                run->offsets[step->first + run->moves[i].count++] = source;
        }
    }
    for (int d = 0; d < r->duration_count; d++)
        for (int j = 0; j < BLOCK * run->lanes; j++)
            run->columns[duration_at(run, d) + (size_t)j] = r->durations[d].constant_ns;
}

/* ---- draws ----------------------------------------------------------------------------------- */

/* The draws of an operation for the run an iteration is in. */
static const int64_t *draw_run(struct runner *run, int op, int64_t iteration)
{
    const struct timing *timing = run->r->timing;
    const struct simulate_options *options = run->options;
    struct drawn *drawn = &run->drawn[timing->ops[op].draw];
    int64_t number = iteration / RANDOM_RUN;
    int place = (int)(number % 2);
    if (drawn->run[place] == number)
        return drawn->ns[place];
    drawn->run[place] = number;
    if (run->lanes == 1)
        timing_draw_run(timing, op, iteration, options->seed, options->replication,
                        drawn->ns[place]);
    else
        timing_draw_across(timing, op, iteration, options->seed, options->replication,
                           (int64_t(*)[RANDOM_LANES])drawn->ns[place]);
    return drawn->ns[place];
}

static void take_longer(int64_t *out, const int64_t *in, int count)
{
    for (int i = 0; i < count; i++)
        out[i] = out[i] > in[i] ? out[i] : in[i];
}

/* The block's draws of one operation: the end of one run and the beginning of the next. */
static void draw_op(struct runner *run, const struct duration *duration, int op, int64_t period,
                    bool alone, int64_t *out)
{
    for (int64_t done = 0; done < BLOCK;) {
        int64_t iteration = period + done - duration->stage, from = iteration % RANDOM_RUN;
        int64_t count = RANDOM_RUN - from < BLOCK - done ? RANDOM_RUN - from : BLOCK - done;
        const int64_t *in = draw_run(run, op, iteration) + from * run->lanes;
        size_t numbers = (size_t)(count * run->lanes);
        if (alone)
            memcpy(out + done * run->lanes, in, numbers * sizeof *out);
        else
            take_longer(out + done * run->lanes, in, (int)numbers);
        done += count;
    }
}

static void draw_block(struct runner *run, int64_t period)
{
    const struct recurrence *r = run->r;
    for (int d = 0; d < r->duration_count; d++) {
        const struct duration *duration = &r->durations[d];
        int64_t *out = run->columns + duration_at(run, d);
        bool alone = duration->op_count == 1;
        if (!duration->varies)
            continue;
        for (int j = 0; !alone && j < BLOCK * run->lanes; j++)
            out[j] = duration->constant_ns;
        for (int i = 0; i < duration->op_count; i++) {
            int op = r->graph.ops[duration->op_first + i];
            if (r->timing->ops[op].dist)
                draw_op(run, duration, op, period, alone, out);
        }
    }
}

/* ---- the recursion --------------------------------------------------------------------------- */

static void advance_one(struct runner *run, int count)
{
    int64_t *restrict columns = run->columns, before = 0;
    const struct move *last = run->moves + run->r->step_count;
    for (size_t j = 0; j < (size_t)count; j++)
        for (const struct move *move = run->moves; move < last; move++) {
            const size_t *source = run->offsets + move->first;
            int64_t time = before & move->carry;
            for (int k = 0; k < move->count; k++) {
                int64_t other = columns[source[k] + j];
                time = other > time ? other : time;
            }
            before = time + columns[move->duration + j];
            columns[move->start + j] = time;
            columns[move->end + j] = before;
        }
}

typedef int64_t vector __attribute__((vector_size(8 * RANDOM_LANES), aligned(8), may_alias));

static inline __attribute__((always_inline)) void advance_vectors(struct runner *run, int count)
{
    vector *restrict columns = (vector *)(void *)run->columns, before = {0};
    const struct move *last = run->moves + run->r->step_count;
    for (size_t j = 0; j < (size_t)count; j++)
        for (const struct move *move = run->moves; move < last; move++) {
            const size_t *source = run->offsets + move->first;
            vector time = before & move->carry;
            for (int k = 0; k < move->count; k++) {
                vector other = columns[source[k] / RANDOM_LANES + j], later = other > time;
                time = (other & later) | (time & ~later);
            }
            before = time + columns[move->duration / RANDOM_LANES + j];
            columns[move->start / RANDOM_LANES + j] = time;
            columns[move->end / RANDOM_LANES + j] = before;
        }
}

/* ---- accounts of a block --------------------------------------------------------------------- */

/* The stream is idle from at[i]: until untils[i], but no longer than pushed[i]. */
static inline __attribute__((always_inline)) void book_reason(int64_t *restrict at,
                                                              const int64_t *untils,
                                                              const int64_t *pushed, int count,
                                                              int64_t sums[SUMS])
{
    int64_t partial[SUMS] = {0};
    for (int i = 0; i < count; i += SUMS)
        for (int l = 0; l < SUMS; l++) {
            int64_t until = untils[i + l];
            if (pushed)
                until = pushed[i + l] < until ? pushed[i + l] : until;
            until = until > at[i + l] ? until : at[i + l];
            partial[l] += until - at[i + l];
            at[i + l] = until;
        }
    for (int l = 0; l < SUMS; l++)
        sums[l] += partial[l];
}

static inline __attribute__((always_inline)) void
book_busy(const int64_t *begin, const int64_t *end, int count, int64_t sums[SUMS])
{
    int64_t partial[SUMS] = {0};
    for (int i = 0; i < count; i += SUMS)
        for (int l = 0; l < SUMS; l++)
            partial[l] += end[i + l] - begin[i + l];
    for (int l = 0; l < SUMS; l++)
        sums[l] += partial[l];
}

static inline __attribute__((always_inline)) void book_all(struct runner *run, int count)
{
    const struct recurrence *r = run->r;
    for (int w = 0; w < r->graph.work_count; w++) {
        const struct piece *piece = &r->pieces[w];
        memcpy(run->at, run->columns + at_column(run, piece->before),
               (size_t)count * sizeof *run->at);
        for (int i = piece->first; i < piece->first + piece->count; i++) {
            const struct reason *reason = &r->reasons[i];
            const int64_t *untils = run->columns + at_column(run, reason->until);
            if (reason->pushed.column == NONE)
                book_reason(run->at, untils, NULL, count, &run->sums[reason->slot * SUMS]);
            else
                book_reason(run->at, untils, run->columns + at_column(run, reason->pushed), count,
                            &run->sums[reason->slot * SUMS]);
        }
        if (piece->takes_time)
            book_busy(run->columns + at_column(run, piece->begin),
                      run->columns + at_column(run, piece->end), count,
                      &run->busy[piece->stream * SUMS]);
    }
}

/* ---- for three levels of the instruction set ------------------------------------------------- */

#define DEFINE_BLOCK(NAME, ATTRIBUTE)                                                              \
    ATTRIBUTE static void advance_##NAME(struct runner *run, int count)                            \
    {                                                                                              \
        advance_vectors(run, count);                                                               \
    }                                                                                              \
    ATTRIBUTE static void book_##NAME(struct runner *run, int count)                               \
    {                                                                                              \
        book_all(run, count);                                                                      \
    }

DEFINE_BLOCK(plain, )
#if defined __x86_64__
DEFINE_BLOCK(avx2, __attribute__((target("avx2"))))
DEFINE_BLOCK(avx512, __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw"))))
#endif

static void advance(struct runner *run, int count)
{
    if (run->lanes == 1) {
        advance_one(run, count);
        return;
    }
#if defined __x86_64__
    if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        advance_avx512(run, count);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        advance_avx2(run, count);
        return;
    }
#endif
    advance_plain(run, count);
}

static void book(struct runner *run, int count)
{
#if defined __x86_64__
    if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        book_avx512(run, count);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        book_avx2(run, count);
        return;
    }
#endif
    book_plain(run, count);
}

/* ---- one by one ------------------------------------------------------------------------------ */

static bool edge_exists(const struct runner *run, int event, int64_t period)
{
    const struct event *e = &run->r->graph.events[event];
    int64_t iteration = period - e->stage;
    if (e->kind == EVENT_DRIVER)
        return period >= 0;
    return iteration >= 0 && iteration < run->r->iterations;
}

static int64_t *edge_time(const struct runner *run, int event, int64_t period, bool end)
{
    size_t place = (size_t)event * (size_t)run->ring + (size_t)(period % run->ring);
    return (end ? run->ends : run->starts) + place * (size_t)run->lanes;
}

/* The time of what exists; NULL: it does not. */
static const int64_t *edge_ref(const struct runner *run, struct event_ref ref, int64_t period)
{
    period -= ref.height;
    return edge_exists(run, ref.event, period) ? edge_time(run, ref.event, period, ref.end) : NULL;
}

/* The edge by which an event follows another in a lane; else the one by which it follows another of
   its own instance, which may follow that one; NONE: it is the first. */
static int edge_before(const struct runner *run, int event, int lane)
{
    const struct event_graph *g = &run->r->graph;
    int within = NONE;
    for (int k = run->r->in_first[event]; k < run->r->in_first[event + 1]; k++) {
        int e = run->r->in_edges[k];
        const struct event *from = &g->events[g->edges[e].from];
        if (g->links[e].lane == lane)
            return e;
        if (g->links[e].lane >= 0 && g->edges[e].height == 0 &&
            from->task == g->events[event].task && from->rank == g->events[event].rank)
            within = e;
    }
    return within;
}

/* What comes before an event in a lane, whoever does not exist left out; NULL: nobody. */
static const int64_t *edge_follow(const struct runner *run, int event, int64_t period, int lane)
{
    const struct event_graph *g = &run->r->graph;
    for (int edge; (edge = edge_before(run, event, lane)) != NONE;) {
        event = g->edges[edge].from;
        period -= g->edges[edge].height;
        if (period < 0)
            return NULL;
        if (edge_exists(run, event, period))
            return edge_time(run, event, period, g->links[edge].end);
    }
    return NULL;
}

/* The time an edge starts from. */
static const int64_t *edge_cause(const struct runner *run, int edge, int64_t period)
{
    const struct event_graph *g = &run->r->graph;
    const struct ratio_edge *e = &g->edges[edge];
    period -= e->height;
    if (edge_exists(run, e->from, period))
        return edge_time(run, e->from, period, g->links[edge].end);
    bool in_lane = g->links[edge].lane >= 0 && period >= 0;
    return in_lane ? edge_follow(run, e->from, period, g->links[edge].lane) : NULL;
}

static void edge_event(struct runner *run, int v, int64_t period)
{
    const struct recurrence *r = run->r;
    const struct event *event = &r->graph.events[v];
    int64_t *starts = edge_time(run, v, period, false), *ends = edge_time(run, v, period, true);
    for (int l = 0; l < run->lanes; l++)
        starts[l] = 0;
    for (int k = r->in_first[v]; k < r->in_first[v + 1]; k++) {
        const int64_t *cause = edge_cause(run, r->in_edges[k], period);
        if (cause)
            take_longer(starts, cause, run->lanes);
    }
    for (int l = 0; l < run->lanes; l++) {
        int64_t longest_ns = 0;
        for (int i = 0; i < event->op_count; i++) {
            int64_t ns =
                timing_draw(r->timing, r->graph.ops[event->op_first + i], period - event->stage,
                            run->options->seed, run->options->replication + (uint32_t)l);
            longest_ns = ns > longest_ns ? ns : longest_ns;
        }
        ends[l] = starts[l] + longest_ns;
    }
}

static void edge_book(struct runner *run, int stream, int slot, const int64_t *until,
                      const int64_t *unless)
{
    int64_t *since = &run->since_ns[stream * run->lanes];
    for (int l = 0; l < run->lanes; l++) {
        int64_t to = unless && unless[l] < until[l] ? unless[l] : until[l];
        if (to <= since[l])
            continue;
        run->sums[slot * SUMS + l] += to - since[l];
        since[l] = to;
    }
}

/* ---- accounts at the edges ------------------------------------------------------------------- */

/* A reason with its owner, if both exist. */
static const int64_t *entry_until(const struct runner *run, const struct entry *entry)
{
    const struct event_idle *idle = &run->r->graph.idles[entry->idle];
    if (!edge_exists(run, idle->owner.event, entry->period - idle->owner.height))
        return NULL;
    const int64_t *until = edge_ref(run, idle->until, entry->period);
    int64_t period = entry->period - idle->until.height;
    if (until || idle->lane < 0 || period < 0)
        return until;
    return edge_follow(run, idle->until.event, period, idle->lane);
}

/* When the next wait from entry `i` on was pushed to the stream; NULL: there is no further one. */
static const int64_t *next_push(const struct runner *run, int i, int *wait)
{
    for (; i < run->entry_count; i++) {
        const struct entry *entry = &run->entries[i];
        const struct event_idle *idle = &run->r->graph.idles[entry->idle];
        if (idle->pushed.event == EVENT_NONE || !entry_until(run, entry))
            continue;
        *wait = i;
        return edge_ref(run, idle->pushed, entry->period);
    }
    *wait = run->entry_count;
    return NULL;
}

/* The reasons of a piece but for the period, which is told anew. */
static void add_entries(struct runner *run, int work, int64_t period)
{
    const struct event_work *w = &run->r->graph.works[work];
    for (int i = w->first; i < w->first + w->count; i++)
        if (run->r->graph.idles[i].owner.event != EVENT_NONE)
            run->entries[run->entry_count++] = (struct entry){i, period};
}

/* All reasons since the stream's last piece that exists. The next one belongs to `period`; -1: there
   is none, and nobody but a wait says anything. */
static void edge_reasons(struct runner *run, int stream, int64_t period)
{
    const struct recurrence *r = run->r;
    int streams = r->program->stream_count,
        driver = r->graph.drivers[r->program->streams[stream].rank];
    const int64_t *comes = period < 0 ? NULL : edge_time(run, driver, period, false);
    run->entry_count = 0;
    for (int k = 0; k < run->pending_count[stream]; k++) {
        const struct absent *pending = &run->pending[stream * run->pending_cap + k];
        add_entries(run, pending->work, pending->period);
    }
    run->pending_count[stream] = 0;
    for (int i = 0, wait = NONE; i <= run->entry_count; i++) {
        if (i == wait + 1) { /* up to the next wait, or the end */
            const int64_t *pushed = next_push(run, i, &wait);
            if (comes)
                edge_book(run, stream, streams + stream, comes, pushed);
            else if (pushed)
                edge_book(run, stream, stream, pushed, NULL);
        }
        if (i == run->entry_count || (!comes && i != wait))
            continue;
        const int64_t *until = entry_until(run, &run->entries[i]);
        if (until)
            edge_book(run, stream, r->slots[run->entries[i].idle], until, NULL);
    }
}

static void edge_piece(struct runner *run, int work, int64_t period)
{
    const struct event_work *w = &run->r->graph.works[work];
    int64_t of = period - w->done.height;
    int place = w->stream * run->pending_cap + run->pending_count[w->stream]++;
    run->pending[place] = (struct absent){period, work};
    if (!edge_exists(run, w->done.event, of))
        return;
    edge_reasons(run, w->stream, period);
    const int64_t *start = edge_time(run, w->done.event, of, false);
    const int64_t *end = edge_time(run, w->done.event, of, w->done.end);
    for (int l = 0; l < run->lanes; l++) {
        if (w->takes_time)
            run->busy[w->stream * SUMS + l] += end[l] - start[l];
        run->since_ns[w->stream * run->lanes + l] = end[l];
    }
}

/* ---- between the edges and the middle -------------------------------------------------------- */

/* The columns' history, from the ring. */
static void enter_columns(struct runner *run, int64_t period)
{
    const struct recurrence *r = run->r;
    for (int v = 0; v < r->graph.event_count; v++)
        for (int h = 1; r->columns[v] != NONE && h <= r->history; h++) {
            const struct place place = {r->columns[v], h};
            size_t bytes = (size_t)run->lanes * sizeof *run->columns;
            int64_t *to = run->columns + at_column(run, place);
            memcpy(to, edge_time(run, v, period - h, false), bytes);
            if (r->graph.events[v].op_count)
                memcpy(to + run->stride, edge_time(run, v, period - h, true), bytes);
        }
}

/* The ring, and since when streams have been idle, from the columns before `period`; they have been
   moved so that their history is what is before it. */
static void leave_columns(struct runner *run, int64_t period)
{
    const struct recurrence *r = run->r;
    size_t bytes = (size_t)run->lanes * sizeof *run->columns;
    for (int v = 0; v < r->graph.event_count; v++)
        for (int h = 1; h <= r->history; h++)
            for (int end = 0; end <= 1; end++) {
                struct event_ref ref = resolve(r, (struct event_ref){v, h, end});
                const struct place place = {r->columns[ref.event] + ref.end, ref.height};
                memcpy(edge_time(run, v, period - h, end), run->columns + at_column(run, place),
                       bytes);
            }
    for (int w = 0; w < r->graph.work_count; w++) {
        const struct event_work *work = &r->graph.works[w];
        run->pending_count[work->stream] = 0;
        memcpy(&run->since_ns[work->stream * run->lanes],
               edge_time(run, work->done.event, period - 1 - work->done.height, work->done.end),
               bytes);
    }
}

static void keep_history(struct runner *run, int count)
{
    const struct recurrence *r = run->r;
    for (int c = 0; c < r->column_count; c++) {
        int64_t *column = run->columns + (size_t)c * run->stride;
        memmove(column, column + count * run->lanes,
                (size_t)(r->history * run->lanes) * sizeof *column);
    }
}

/* ---- iterations ------------------------------------------------------------------------------ */

/* When a rank's driver came to a period, per lane. */
static const int64_t *driver_time(const struct runner *run, int rank, int64_t period, int64_t block)
{
    int driver = run->r->graph.drivers[rank];
    if (block < 0)
        return edge_time(run, driver, period, false);
    return run->columns + (size_t)run->r->columns[driver] * run->stride +
           (size_t)(run->r->history + period - block) * (size_t)run->lanes;
}

/* `count` periods from `period` on have been computed: in the columns, `block` being the first of
   theirs, or, with `block` -1, in the ring. Iterations end that many periods before. */
static void note_periods(struct runner *run, int64_t period, int count, int64_t block)
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
    if (observer && observer->progress && count > skipped &&
        !observer->progress(observer->context, first + count, run->over_ns[count - skipped - 1]))
        run->stopped = true;
}

/* ---- the run --------------------------------------------------------------------------------- */

static void run_edge(struct runner *run, int64_t from, int64_t to)
{
    const struct recurrence *r = run->r;
    for (int64_t period = from; period < to; period++) {
        for (int i = 0; i < r->graph.event_count; i++)
            if (edge_exists(run, r->order[i], period))
                edge_event(run, r->order[i], period);
        for (int w = 0; w < r->graph.work_count; w++)
            edge_piece(run, w, period);
        note_periods(run, period, 1, NONE);
    }
}

static void run_middle(struct runner *run)
{
    const struct recurrence *r = run->r;
    enter_columns(run, r->first);
    for (int64_t period = r->first; period < r->last && !run->stopped;) {
        int count = r->last - period < BLOCK ? (int)(r->last - period) / SUMS * SUMS : BLOCK;
        if (count == 0)
            break;
        draw_block(run, period);
        advance(run, count);
        book(run, count * run->lanes);
        note_periods(run, period, count, period);
        keep_history(run, count);
        period += count;
        run->reached = period;
    }
    leave_columns(run, run->reached);
}

static void run_all(struct runner *run)
{
    const struct recurrence *r = run->r;
    run->reached = r->first < r->last ? r->first : 0;
    run_edge(run, 0, run->reached);
    if (r->first + SUMS <= r->last)
        run_middle(run);
    run_edge(run, run->reached, r->end);
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
    for (int b = 0; b < p->buffer_count; b++)
        if (p->buffers[b].rank == 0 && p->buffers[b].scope == SCOPE_ITERATION)
            out->in_flight_bytes_max += out->in_flight_max * p->buffers[b].bytes;
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
        prepare(&run);
        run_all(&run);
        for (int s = 0; s < r->program->stream_count; s++)
            edge_reasons(&run, s, NONE);
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
