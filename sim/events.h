/*
 * events.h - what will happen when: a binary heap of timed events.
 *
 * The order is (time, priority, sequence): at one instant the lower priority first, and among
 * equals the one pushed first. Nothing else, no address and no hash, decides. The heap owns its
 * array; events_init / events_fini.
 */
#ifndef SWSIM_EVENTS_H
#define SWSIM_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event {
    int64_t time_ns;
    uint64_t sequence; /* given by events_push */
    int priority;
    int agent;
};

struct events {
    struct event *items;
    size_t count, cap;
    uint64_t pushed;
};

void events_init(struct events *events);
void events_fini(struct events *events);

/* false: memory is exhausted, nothing was pushed. */
bool events_push(struct events *events, int64_t time_ns, int priority, int agent);

/* The next event, which stays; NULL when there is none. */
const struct event *events_next(const struct events *events);

/* Take the next event; false when there is none. */
bool events_pop(struct events *events, struct event *out);

/* The agent's only event happens at another time; among those of that time it keeps its place. The
   agent must have one. Takes time in proportion to the number of events. */
void events_retime(struct events *events, int agent, int64_t time_ns);

/* Is the heap a heap? For assertions. */
bool events_check(const struct events *events);

#endif
