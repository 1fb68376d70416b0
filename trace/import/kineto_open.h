/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kineto_open.h - events of Chrome's format that are written as a begin ("B") and an end ("E").
 *
 * An end closes the last event of its thread (pid and tid) that is open, and need not repeat its name. The two are then
 * one complete event, with the members of the begin. Ends in a trace that began later are left out.
 */
#ifndef SWSIM_KINETO_OPEN_H
#define SWSIM_KINETO_OPEN_H

#include "kineto_internal.h"

/* So many may be open at once, of all threads. */
enum { OPEN_MOST = 4096 };

struct open_events {
    struct event *items;
    size_t count, cap;
};

/* Opens an event. STATUS_INPUT beyond OPEN_MOST. `file` is for the message. */
enum status open_events_begin(struct open_events *open, const struct event *event, const char *file,
                              struct diag *diag);

/* The event that `end` closes, complete, in *out; false: none is open. */
bool open_events_end(struct open_events *open, const struct event *end, struct event *out);

/* Also after a failure. */
void open_events_fini(struct open_events *open);

#endif
