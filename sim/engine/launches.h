/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launches.h - the time that a launch takes from the host to the device: machine.launch_latency; private to the
 * event-driven engine.
 *
 * Work that is pushed at one time can begin on its stream that much later, whatever else it waits for. Each
 * stream keeps the times of the pushes that it holds; without a latency there is nothing to keep.
 */
#ifndef SWSIM_LAUNCHES_H
#define SWSIM_LAUNCHES_H

#include "machine/machine.h"
#include "base/arena.h"

struct launches {
    int64_t latency_ns; /* 0: none of the below */
    struct launch_queue {
        int64_t *pushed_ns; /* a ring of `cap` */
        int first, count, cap;
    } * queues; /* per stream */
};

/* In `arena`, whose failure is the caller's to see. */
void launches_init(struct launches *launches, const struct program *program, struct arena *arena);

/* Of a stream whose queue may have changed: what is in it now and was not before is pushed now. To be called in front of
   and behind each push, as steps on other streams may have taken items out before; and before its head is asked for. */
void launches_note(struct launches *launches, const struct program *program,
                   const struct state *state, int stream, int64_t now_ns);

/* The time at which the head of the stream can begin; INT64_MIN without a latency or a head. */
int64_t launches_head_ns(const struct launches *launches, int stream);

#endif
