/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shortcut.h - a task's results, kept and put back instead of running it; private to the public library
 * (gpu/lib/swpipe.h).
 *
 * After one execution is kept: the values the task set in its context, copied by their kinds;
 * device memory it allocated there and the plan's buffers it writes, copied on the device in stream
 * order; what its declared io captured. Putting it back costs a copy of each and no host work.
 *
 * One for each rank and task; only the task's worker touches it while the pipeline runs.
 */
#ifndef SWPIPE_SHORTCUT_H
#define SWPIPE_SHORTCUT_H

#include "engine.h"

/* One thing kept. */
struct kept {
    char *name; /* of a value, NULL: a buffer of the plan */
    int buffer; /* program->buffers */
    void *content;
    const struct swpipe_kind *kind;
    struct device_buffer *copy; /* device memory */
    size_t bytes;
};

struct shortcut {
    bool on, saved;
    struct kept *kept;
    size_t count, cap;
    void **captured; /* beside the task's io */
};

/* After the task's function: 0, or -1 with the reason in the context. */
int shortcut_save(struct shortcut *shortcut, struct swpipe_context *context,
                  const struct swpipe_task *task);
int shortcut_restore(const struct shortcut *shortcut, struct swpipe_context *context,
                     const struct swpipe_task *task);
/* Forget what was kept. */
void shortcut_forget(struct shortcut *shortcut, const struct swpipe_task *task);

#endif
