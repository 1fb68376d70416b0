/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storyboard_columns.h - the columns of a storyboard: a step each, or several steps of a long witness.
 *
 * A long witness is shortened in three ways, in this order, each only while it is still long: steps that come several
 * times in a row are one column, consecutive steps of one thread are one column, and the middle is left out. Accesses
 * of a race and the end of the witness always have columns of their own.
 */
#ifndef SWSIM_STORYBOARD_COLUMNS_H
#define SWSIM_STORYBOARD_COLUMNS_H

#include "trace.h"

enum {
    BAND_STEPS = 26, /* most columns in a row of the picture, */
    BAND_SLACK = 6   /* unless that leaves but a few for the last */
};

enum column_kind {
    COLUMN_STEP,
    COLUMN_REPEAT, /* `times` times more the `length` steps before it */
    COLUMN_RUN,    /* steps of one thread */
    COLUMN_LEFT_OUT
};

/* Steps first .. last. */
struct column {
    enum column_kind kind;
    int64_t first, last;
    size_t length, times;
    int agent; /* of a run */
};

struct columns {
    struct column *items;
    int64_t *of_step; /* the column of each step */
    int64_t count;
};

/* The words of a step; NULL: they were not loaded. */
const struct trace_step *columns_step(const struct trace *trace, int64_t seq);

/* The columns of a witness of `steps` steps, in memory of the arena. False: out of memory. */
bool columns_choose(struct columns *out, const struct trace *trace, int64_t steps,
                    struct arena *arena);

#endif
