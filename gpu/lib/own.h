/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own.h - what is the program's own, inside a pipeline; private to the public library (gpu/lib/swpipe_own.h).
 */
#ifndef SWPIPE_OWN_IMPL_H
#define SWPIPE_OWN_IMPL_H

#include <stdatomic.h>

#include "gpu/device/device.h"
#include "swpipe_own.h"

struct swpipe;

struct own_thing {
    const char *name; /* the plan's memory */
    void *handle;
    atomic_bool lost; /* a communicator that was aborted */
};

struct own {
    struct own_thing *streams, *comms;
    size_t stream_count, comm_count;
    struct swpipe_allocator memory;
    struct device_own device;
    struct swpipe_event *events;
};

/* STATUS_INPUT: the plan has no such thing, or the device cannot use it. Handles themselves are looked at when they are
   used first. */
enum status own_open(struct swpipe *pipe, const struct swpipe_own *given);
/* For the configuration of a world; NULL: the program has nothing of its own. */
const struct device_own *own_for_device(struct own *own);
/* Before a run. STATUS_USAGE: a failure has taken a communicator. */
enum status own_check(struct swpipe *pipe);
/* Events live as long as the devices are open, and are opened again with them. */
enum status own_open_events(struct swpipe *pipe);
void own_close_events(struct swpipe *pipe);
/* Those that the program has not closed. */
void own_forget_events(struct swpipe *pipe);

#endif
