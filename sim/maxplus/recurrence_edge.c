/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recurrence_edge.c - the beginning and the end of a run, where some instances do not exist: events are
 * computed one by one; see recurrence_internal.h.
 *
 * An event that does not exist waits for nothing and holds up none, but the next in its FIFO comes
 * behind the one before it.
 */
#include "recurrence_internal.h"

/* ---- one by one ------------------------------------------------------------------------------ */

static bool edge_exists(const struct runner *run, int event, int64_t period)
{
    const struct event *e = &run->r->graph.events[event];
    int64_t iteration = period - e->stage;
    if (e->kind == EVENT_DRIVER)
        return period >= 0;
    return iteration >= 0 && iteration < run->r->iterations;
}

int64_t *recurrence_edge_time(const struct runner *run, int event, int64_t period, bool end)
{
    size_t place = (size_t)event * (size_t)run->ring + (size_t)(period % run->ring);
    return (end ? run->ends : run->starts) + place * (size_t)run->lanes;
}

/* The time of what exists; NULL: it does not. */
static const int64_t *edge_ref(const struct runner *run, struct event_ref ref, int64_t period)
{
    period -= ref.height;
    return edge_exists(run, ref.event, period)
               ? recurrence_edge_time(run, ref.event, period, ref.end)
               : NULL;
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

/* The event before this one in a lane, events that do not exist left out; NULL: none. */
static const int64_t *edge_follow(const struct runner *run, int event, int64_t period, int lane)
{
    const struct event_graph *g = &run->r->graph;
    for (int edge; (edge = edge_before(run, event, lane)) != NONE;) {
        event = g->edges[edge].from;
        period -= g->edges[edge].height;
        if (period < 0)
            return NULL;
        if (edge_exists(run, event, period))
            return recurrence_edge_time(run, event, period, g->links[edge].end);
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
        return recurrence_edge_time(run, e->from, period, g->links[edge].end);
    bool in_lane = g->links[edge].lane >= 0 && period >= 0;
    return in_lane ? edge_follow(run, e->from, period, g->links[edge].lane) : NULL;
}

/* ---- places in bounded streams --------------------------------------------------------------- */

static int64_t *place_time(const struct runner *run, int item, int64_t period)
{
    size_t place = (size_t)item * (size_t)run->ring + (size_t)(period % run->ring);
    return run->place_ns + place * (size_t)run->lanes;
}

static int64_t ring_size(const struct runner *run, int stream)
{
    return (int64_t)(run->queued_first[stream + 1] - run->queued_first[stream]);
}

static bool is_pushed(const struct runner *run, const struct event_item *item, int64_t period)
{
    int64_t iteration = period - item->stage;
    return iteration >= item->distance && iteration < run->r->iterations;
}

/* The items of a period that exist have numbers, each stream its own. */
static void queue_items(struct runner *run, int64_t period)
{
    const struct event_graph *g = &run->r->graph;
    for (int i = 0; i < g->item_count; i++) {
        int stream = g->items[i].stream;
        if (!is_pushed(run, &g->items[i], period))
            continue;
        int64_t number = run->queued_count[stream]++;
        run->queued_number[i] = number;
        run->queued[run->queued_first[stream] + (size_t)(number % ring_size(run, stream))] =
            (struct queued){period, i};
    }
}

/* Those that take a place which one of these periods waits for. */
static void queue_before(struct runner *run, int64_t period)
{
    for (int s = 0; s < run->r->program->stream_count; s++)
        run->queued_count[s] = 0;
    int64_t from = period - run->r->reach;
    for (int64_t p = from > 0 ? from : 0; run->r->graph.item_count && p < period; p++)
        queue_items(run, p);
    run->places_from = period;
}

/* When the item that many before is through; NULL: there is none, or nothing is pushed. */
static const int64_t *edge_through(const struct runner *run, int item, int64_t of)
{
    const struct program *p = run->r->program;
    int stream = run->r->graph.items[item].stream;
    int64_t number = run->queued_number[item] - p->streams[stream].cap;
    if (!is_pushed(run, &run->r->graph.items[item], of) || number < 0)
        return NULL;
    const struct queued *before =
        &run->queued[run->queued_first[stream] + (size_t)(number % ring_size(run, stream))];
    struct event_ref through = run->r->graph.items[before->item].through;
    int64_t period = before->period - through.height;
    if (edge_exists(run, through.event, period))
        return recurrence_edge_time(run, through.event, period, through.end);
    return edge_follow(run, through.event, period, p->thread_count + stream);
}

static const int64_t *edge_place(struct runner *run, int item, int64_t period)
{
    int64_t *out = place_time(run, item, period);
    const int64_t *through = edge_through(run, item, period);
    for (int l = 0; l < run->lanes; l++)
        out[l] = through ? through[l] : 0;
    return out;
}

/* ---- an event -------------------------------------------------------------------------------- */

static void edge_event(struct runner *run, int v, int64_t period)
{
    const struct recurrence *r = run->r;
    const struct event *event = &r->graph.events[v];
    int64_t *starts = recurrence_edge_time(run, v, period, false),
            *ends = recurrence_edge_time(run, v, period, true);
    for (int l = 0; l < run->lanes; l++)
        starts[l] = 0;
    for (int k = r->in_first[v]; k < r->in_first[v + 1]; k++) {
        int item = r->graph.links[r->in_edges[k]].place;
        const int64_t *cause =
            item == NONE ? edge_cause(run, r->in_edges[k], period) : edge_place(run, item, period);
        if (cause)
            take_later(starts, cause, run->lanes);
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
    int64_t pushed = entry->period - idle->owner.height;
    if (idle->place != NONE && pushed >= run->places_from)
        return place_time(run, idle->place, pushed);
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
   is none, and only waits have reasons. */
static void edge_reasons(struct runner *run, int stream, int64_t period)
{
    const struct recurrence *r = run->r;
    int streams = r->program->stream_count,
        driver = r->graph.drivers[r->program->streams[stream].rank];
    const int64_t *comes = period < 0 ? NULL : recurrence_edge_time(run, driver, period, false);
    run->entry_count = 0;
    for (int k = 0; k < run->pending_count[stream]; k++) {
        const struct absent *pending = &run->pending[run->pending_first[stream] + (size_t)k];
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
    size_t place = run->pending_first[w->stream] + (size_t)run->pending_count[w->stream]++;
    run->pending[place] = (struct absent){period, work};
    if (!edge_exists(run, w->done.event, of))
        return;
    edge_reasons(run, w->stream, period);
    const int64_t *start = recurrence_edge_time(run, w->done.event, of, false);
    const int64_t *end = recurrence_edge_time(run, w->done.event, of, w->done.end);
    for (int l = 0; l < run->lanes; l++) {
        if (w->takes_time)
            run->busy[w->stream * SUMS + l] += end[l] - start[l];
        run->since_ns[w->stream * run->lanes + l] = end[l];
    }
}
void recurrence_run_edge(struct runner *run, int64_t from, int64_t to)
{
    const struct recurrence *r = run->r;
    queue_before(run, from);
    for (int64_t period = from; period < to && !run->unclear && !run->stopped; period++) {
        queue_items(run, period);
        for (int i = 0; i < r->graph.event_count; i++)
            if (edge_exists(run, r->order[i], period))
                edge_event(run, r->order[i], period);
        for (int w = 0; w < r->graph.work_count; w++)
            edge_piece(run, w, period);
        recurrence_note_periods(run, period, 1, NONE);
    }
}

void recurrence_end_edge(struct runner *run)
{
    for (int s = 0; s < run->r->program->stream_count; s++)
        edge_reasons(run, s, NONE);
}
