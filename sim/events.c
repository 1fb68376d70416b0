/* events.c - see events.h. The children of item i are 2i + 1 and 2i + 2. */
#include "sim/events.h"

#include <assert.h>
#include <stdlib.h>

enum { FIRST_CAP = 64 };

void events_init(struct events *events)
{
    *events = (struct events){0};
}

void events_fini(struct events *events)
{
    free(events->items);
    *events = (struct events){0};
}

static bool before(const struct event *a, const struct event *b)
{
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns;
    if (a->priority != b->priority)
        return a->priority < b->priority;
    return a->sequence < b->sequence;
}

static bool make_room(struct events *events)
{
    if (events->count < events->cap)
        return true;
    size_t cap = events->cap ? 2 * events->cap : FIRST_CAP;
    struct event *items = realloc(events->items, cap * sizeof *items);
    if (!items)
        return false;
    events->items = items;
    events->cap = cap;
    return true;
}

/* The event belongs at the free place `at` or above it. */
static void rise(struct events *events, size_t at, const struct event *event)
{
    while (at > 0 && before(event, &events->items[(at - 1) / 2])) {
        events->items[at] = events->items[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    events->items[at] = *event;
}

/* The event belongs at the free place `at` or below it. */
static void sink(struct events *events, size_t at, const struct event *event)
{
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= events->count)
            break;
        if (child + 1 < events->count && before(&events->items[child + 1], &events->items[child]))
            child++;
        if (!before(&events->items[child], event))
            break;
        events->items[at] = events->items[child];
        at = child;
    }
    events->items[at] = *event;
}

bool events_push(struct events *events, int64_t time_ns, int priority, int agent)
{
    if (!make_room(events))
        return false;
    const struct event event = {time_ns, events->pushed++, priority, agent};
    rise(events, events->count++, &event);
    return true;
}

const struct event *events_next(const struct events *events)
{
    return events->count ? &events->items[0] : NULL;
}

bool events_pop(struct events *events, struct event *out)
{
    if (events->count == 0)
        return false;
    *out = events->items[0];
    const struct event last = events->items[--events->count];
    sink(events, 0, &last);
    return true;
}

void events_retime(struct events *events, int agent, int64_t time_ns)
{
    size_t at = 0;
    while (at < events->count && events->items[at].agent != agent)
        at++;
    assert(at < events->count);
    struct event event = events->items[at];
    bool earlier = time_ns < event.time_ns;
    event.time_ns = time_ns;
    if (earlier)
        rise(events, at, &event);
    else
        sink(events, at, &event);
}

bool events_check(const struct events *events)
{
    for (size_t i = 1; i < events->count; i++)
        if (before(&events->items[i], &events->items[(i - 1) / 2]))
            return false;
    return true;
}
