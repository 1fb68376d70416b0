/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_boxes.h - the boxes of a picture of host programs.
 *
 * Folded, operations of a thread that follow one another are one box: work of one stream, and CPU work before and between
 * it. Only the first iteration of a repeat has boxes. An operation that gives or takes something, and so may have an
 * arrow, is a box of its own; so is the launch of a graph that records or awaits events of others. Unfolded, each
 * operation of each iteration is a box.
 */
#ifndef SWSIM_PLAN_BOXES_H
#define SWSIM_PLAN_BOXES_H

#include "base/arena.h"
#include "plan/plan.h"

/* Operations first .. first + count - 1 of a thread. */
struct plan_box {
    size_t first, count;
    int stream;  /* plan->streams; -1: none */
    int repeats; /* it begins a repeat that comes so many times; else 0 */
    size_t last; /* where `repeats`: the last box of the repeat, [boxes of the thread] */
};

/* Operations of a graph that record or await an event of others. */
struct plan_externals {
    const struct host_op **ops;
    size_t count;
};

struct plan_boxes {
    struct plan_box *items; /* thread after thread, in the order of the plan */
    size_t count;
    size_t *first; /* [thread_count + 1]: the first box of each thread, and `count` */
    struct plan_externals *externals; /* by graph */
};

/* A plan of more operations than this is folded, unless all are asked for. */
enum { PLAN_BOXES_EACH = 64 };
bool plan_boxes_folds(const struct plan *plan, bool all);

/* The boxes of a plan of host programs; all of it is the arena's. False: no memory. */
bool plan_boxes_make(const struct plan *plan, bool all, struct arena *arena,
                     struct plan_boxes *out);

/* The words of a box of several operations: "CPU work, 12 launches, 2 copies"; NULL: no memory. */
const char *plan_boxes_words(const struct host_op *ops, size_t count, struct arena *arena);
/* The names of its work, each once, with how often it comes if more than once; NULL: no memory. */
const char *plan_boxes_names(const struct host_op *ops, size_t count, struct arena *arena);

#endif
