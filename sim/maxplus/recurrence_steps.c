/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recurrence_steps.c - what the recursion has to compute: the starts of events with several causes, and
 * those ends that one of them waits for; see recurrence_internal.h.
 *
 *     Batch   start = max(ZeroGrad's end, InputDistWait's end a period ago)
 *             end   = start + Batch + Forward + Backward + OptimizerStep     the end of the last
 *     late:   Batch's end = start + Batch, Forward's end = Batch's end + Forward, ...
 */
#include "recurrence_internal.h"

/* The computations that use the end of an event. */
struct users {
    int *count;
    int *
        last; /* an event that is over a duration later, in the same period; NONE: something else */
    int *step; /* that computes its start */
};

static bool is_late(const struct users *users, int event)
{
    return users->count[event] == 0 || (users->count[event] == 1 && users->last[event] != NONE);
}

/* When what takes so long began. */
static struct origin begin_of(const struct recurrence *r, int event)
{
    return recurrence_resolve(r, (struct event_ref){event, 0, false});
}

static void use(struct users *users, const struct origin *origin, int event)
{
    if (!origin->ref.end)
        return;
    users->count[origin->ref.event]++;
    users->last[origin->ref.event] = origin->ref.height == 0 ? event : NONE;
}

static void find_users(const struct recurrence *r, struct users *users)
{
    for (int v = 0; v < r->graph.event_count; v++) {
        struct origin begin = begin_of(r, v);
        if (r->duration[v] != NONE)
            use(users, &begin, v);
        for (int k = r->in_first[v]; !r->follows[v] && k < r->in_first[v + 1]; k++) {
            int e = r->in_edges[k];
            struct origin origin = recurrence_resolve(
                r, (struct event_ref){r->graph.edges[e].from, r->graph.edges[e].height,
                                      r->graph.links[e].end});
            if (!r->gone[e])
                use(users, &origin, NONE);
        }
    }
}

static void make_columns(struct recurrence *r)
{
    for (int v = 0; v < r->graph.event_count; v++) {
        r->starts[v] = r->follows[v] ? NONE : r->column_count++;
        r->ends[v] = r->duration[v] == NONE ? NONE : r->column_count++;
    }
}

/* The start of an event with several causes, or none. */
static void add_start(struct recurrence *r, const struct users *users, int v, int *source_count)
{
    struct step step = {*source_count, 0, r->starts[v], NONE, NONE};
    for (int k = r->in_first[v]; k < r->in_first[v + 1]; k++) {
        int e = r->in_edges[k];
        const struct ratio_edge *edge = &r->graph.edges[e];
        if (!r->gone[e])
            r->sources[(*source_count)++] = recurrence_place(
                r, (struct event_ref){edge->from, edge->height, r->graph.links[e].end});
    }
    step.count = *source_count - step.first;
    users->step[v] = r->step_count;
    r->steps[r->step_count++] = step;
}

/* The step that computes this start, if nothing follows it yet; NULL: none. */
static struct step *open_step(struct recurrence *r, const struct users *users,
                              const struct origin *begin)
{
    if (begin->ref.end || begin->ref.height != 0 || begin->plus_ns != 0)
        return NULL;
    struct step *step = &r->steps[users->step[begin->ref.event]];
    return step->end == NONE ? step : NULL;
}

/* An end that is waited for: from the last time before it that is computed, by all that is not. */
static void add_end(struct recurrence *r, const struct users *users, int v, int *source_count,
                    int *part_count)
{
    struct stretch *stretch = &r->stretches[r->stretch_count];
    *stretch = (struct stretch){*part_count, 1};
    r->parts[(*part_count)++] = r->duration[v];
    struct origin begin = begin_of(r, v);
    while (begin.ref.end && begin.ref.height == 0 && is_late(users, begin.ref.event)) {
        int64_t plus_ns = begin.plus_ns;
        r->parts[(*part_count)++] = r->duration[begin.ref.event];
        stretch->count++;
        begin = begin_of(r, begin.ref.event);
        begin.plus_ns += plus_ns;
    }
    struct step *step = open_step(r, users, &begin);
    if (!step) {
        struct place from = recurrence_place(r, begin.ref);
        from.plus_ns += begin.plus_ns;
        step = &r->steps[r->step_count++];
        *step = (struct step){*source_count, 1, NONE, NONE, NONE};
        r->sources[(*source_count)++] = from;
    }
    step->end = r->ends[v];
    step->stretch = r->stretch_count++;
}

static void add_late(struct recurrence *r, int v)
{
    r->lates[r->late_count++] = (struct late){recurrence_place(r, (struct event_ref){v, 0, false}),
                                              r->ends[v], r->duration[v]};
}

bool recurrence_make_steps(struct recurrence *r)
{
    size_t events = (size_t)r->graph.event_count;
    int source_count = 0, part_count = 0;
    struct users users = {ARENA_ARRAY(&r->arena, events, int), ARENA_ARRAY(&r->arena, events, int),
                          ARENA_ARRAY(&r->arena, events, int)};
    r->starts = ARENA_ARRAY(&r->arena, events, int);
    r->ends = ARENA_ARRAY(&r->arena, events, int);
    r->steps = ARENA_ARRAY(&r->arena, 2 * events, struct step);
    r->sources = ARENA_ARRAY(&r->arena, (size_t)r->graph.edge_count + events + 1, struct place);
    r->stretches = ARENA_ARRAY(&r->arena, events, struct stretch);
    r->parts = ARENA_ARRAY(&r->arena, events, int);
    r->lates = ARENA_ARRAY(&r->arena, events, struct late);
    r->drivers = ARENA_ARRAY(&r->arena, (size_t)r->program->ranks, struct place);
    if (r->arena.failed)
        return false;
    make_columns(r);
    find_users(r, &users);
    for (int i = 0; i < r->graph.event_count; i++) {
        int v = r->order[i];
        if (!r->follows[v])
            add_start(r, &users, v, &source_count);
        if (r->duration[v] != NONE && is_late(&users, v))
            add_late(r, v);
        else if (r->duration[v] != NONE)
            add_end(r, &users, v, &source_count, &part_count);
    }
    for (int rank = 0; rank < r->program->ranks; rank++)
        r->drivers[rank] =
            recurrence_place(r, (struct event_ref){r->graph.drivers[rank], 0, false});
    return true;
}
