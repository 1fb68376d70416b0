/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gaps.h - by how many iterations one task of a pipeline must come later to happen after another.
 *
 * The gap from X to Y is the least g of which the theorem of order (structure.c) says that X(i) happens
 * before Y(i + g): the length of a shortest path. Gaps are found when they are asked for, a task at a
 * time, because plans are long and few tasks share a buffer. Of submission the same holds of the host
 * parts: X(i) is submitted before Y(i + g) is taken, since a task is fired when its dependences have been
 * submitted, and a driver retires no iteration that is not.
 */
#ifndef SWSIM_GAPS_H
#define SWSIM_GAPS_H

#include "machine/program.h"

enum { GAP_FAR = 1 << 20 }; /* no number of iterations is enough */

/* Data-flow: how far gaps in queues look for the order of dependences in their own queue, and theirs. */
enum { GAPS_DEEP = 2 };

/* Of the work itself, or of its submission by the host. */
enum gaps_of { GAPS_OF_WORK, GAPS_OF_SUBMISSION };

struct gap_edge {
    int to, length;
};

/* Memory is the arena's; `program` and `place` must outlive it. */
struct gaps {
    const struct program *program;
    const int *place; /* of every task in the enqueue order */
    enum gaps_of of;
    struct arena arena;
    /* of the first search on: */
    int *from_any; /* per task: its gap from any other, by way of the driver */
    int *first;    /* edges from a task: edges[first[task] .. first[task + 1]) */
    int edge_count;
    struct gap_edge *edges;
    int *admitted; /* submission, per thread: the last task so far that an admission fires */
    int levels;    /* more than any edge is long */
    int **rows;    /* per task: the gaps to all others; NULL: not asked for yet */
    int **queued[GAPS_DEEP + 1]; /* the same in queues, by how deep they look */
};

/* Clock: the least g with key(from, i) < key(to, i + g). */
int gaps_of_keys(const struct program *program, const int *place, int from, int to);

/* false: memory is exhausted; close it all the same. Of submission: data-flow only. */
bool gaps_open(struct gaps *gaps, const struct program *program, const int *place, enum gaps_of of);
void gaps_close(struct gaps *gaps);

/* Under data-flow, true if the task has neither a dependence nor a turn, so that the admission of an iteration fires
   it. */
bool gaps_fired_at_admission(const struct program *program, int task);

/* Data-flow: the tasks of an iteration, each behind those of it that it depends on, as one worker would submit them: those that
   the admission fires in the enqueue order, then the others as they are fired. `missing` is room for a number a task. */
void gaps_firing_order(const struct program *program, int *missing, int *out);

/* True if the driver knows of the accesses of this task when it has retired its iteration. */
bool gaps_driver_sees(const struct gaps *gaps, int task);
/* A bound of the gap between two tasks at once, without a search: by a dependence, or, under the clock, by the order of
   their thread and stream, which is the gap itself; GAP_FAR: only a search tells. Not of a wait by host work for a device. */
int gaps_at_once(const struct program *program, const int *place, int from, int to);
/* Find out whether a short path shows that the gap between two tasks is at most `most`. False says nothing: few tasks
   and edges are looked at. Not of a wait by host work for a device. STATUS_SYSTEM: memory is exhausted. */
enum status gaps_near(struct gaps *gaps, int from, int to, int most, bool *near);
/* The gaps from a task to every other one; NULL: memory is exhausted. */
const int *gaps_from(struct gaps *gaps, int task);

/* Data-flow, two tasks of one thread: the least g of which the dependences say that (from, i) enters
   the thread's queue before (to, i + g). */
enum status gaps_in_queue(struct gaps *gaps, int from, int to, int *out, struct diag *diag);

/* Of the dependences of `to` the one, *which (-1: none), that shows it best for the dependence `first` of `from`: the least
   g with which `first` of (from, i) is submitted no later than it of (to, i + g). STATUS_SYSTEM: memory is exhausted. */
enum status gaps_of_firing(struct gaps *gaps, const struct edge *first, int to, int deep,
                           int *which, int *out);

#endif
