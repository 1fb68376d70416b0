/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tapes.h - a recording of one process (trace/record/recorder/recording.h): its threads and the items of each, in their order.
 *
 * Only a chunk's `used` bytes count: a process may have been killed while it wrote. Chunks that do
 * not fit together, items that a chunk cuts off and items with too few words make the file damaged.
 */
#ifndef SWSIM_TAPES_H
#define SWSIM_TAPES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/diag.h"
#include "trace/record/recorder/recording.h"

struct tape_thread {
    const struct recording_item **items;
    size_t count, cap;
    size_t read; /* of a walk over all threads: items that are behind it */
};

struct tapes {
    const char *path;
    int64_t pid, rank, size;     /* rank -1: not told */
    int64_t wall_ns;             /* the time of day is so much more than CLOCK_MONOTONIC */
    bool touches;                /* the host's accesses to pinned memory are there */
    struct tape_thread *threads; /* [i]: number i + 1 */
    size_t thread_count, thread_cap;
};

/* All of it lives in `arena`, but for the name of `bytes`. STATUS_INPUT for a damaged file. */
struct bytes;
enum status tapes_read(struct bytes *bytes, struct arena *arena, struct tapes *out,
                       struct diag *diag);
/* The same of a file. `path` must outlive it. */
enum status tapes_read_file(const char *path, struct arena *arena, struct tapes *out,
                            struct diag *diag);

/* The latest time at which a call was over: one that took longer than an item tells, before the next of its thread. */
int64_t tapes_end_ns(const struct tape_thread *thread, size_t item);

/* The next item of all threads by the time of its end, and the index of its thread; NULL behind the last. */
const struct recording_item *tapes_next(struct tapes *tapes, size_t *thread);

/* The characters of a TEXT, which `arena` keeps; NULL: no memory. */
char *tapes_text(const struct recording_item *item, struct arena *arena);

#endif
