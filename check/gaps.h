/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gaps.h - by how many iterations one task of a pipeline must come later to happen after another.
 *
 * The gap from X to Y is the least g of which the theorem of order (structure.c) says that X(i) happens
 * before Y(i + g): the length of a shortest path. Gaps are found when they are asked for, because plans are long and few
 * tasks share a buffer. A search ends when it comes to the task. Where the task is far, chains are asked (gap_chains.h), and
 * then the search goes on to all tasks, and its row is kept. Of submission the same holds of the host parts: X(i) is submitted before Y(i + g) is taken, since a task is fired when its dependences have been
 * submitted, and a driver retires no iteration that is not.
 */
#ifndef SWSIM_GAPS_H
#define SWSIM_GAPS_H

#include "base/table.h"
#include "gap_chains.h"
#include "machine/program.h"

enum { GAP_FAR = 1 << 20 }; /* no number of iterations is enough */

/* Data-flow: how far gaps in queues look for the order of dependences in their own queue, and theirs. */
enum { GAPS_DEEP = 2 };

/* Of the work itself, or of its submission by the host. */
enum gaps_of { GAPS_OF_WORK, GAPS_OF_SUBMISSION };

/* A search for shortest paths: tasks to be visited, in lists by their distance modulo `levels`. */
struct gaps_search {
    struct gap_visit {
        int task, next;
    } * visits; /* room for one an edge and one a task */
    struct gap_level {
        int first, last;
    } * level;
    int visit_count, waiting, distance; /* `distance`: all nearer ones were visited */
    int *row; /* per task: the shortest path found; GAP_FAR between two searches */
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
    struct gaps_search search;
    struct gap_chains chains; /* once a search was long */
    int **rows; /* per task: the gaps to all others; NULL: searches from it were short */
    /* Gaps in queues that have been found. */
    struct queued_gap {
        int from, to, deep, gap;
    } * queued;
    size_t queued_count, queued_cap;
    struct table queued_table;
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
/* The gap between two tasks, or a bound of it that is at most `enough`. Not of a wait by host work for a device.
   STATUS_SYSTEM: memory is exhausted. */
enum status gaps_between(struct gaps *gaps, int from, int to, int enough, int *out);
/* The gap of a wait by host work for the work of any task of whose accesses the driver knows. STATUS_SYSTEM as above. */
enum status gaps_by_driver(struct gaps *gaps, int to, int *out);

/* Data-flow, two tasks of one thread: the least g of which the dependences say that (from, i) enters
   the thread's queue before (to, i + g). */
enum status gaps_in_queue(struct gaps *gaps, int from, int to, int *out, struct diag *diag);

/* Of the dependences of `to` the one, *which (-1: none), that shows it best for the dependence `first` of `from`: the least
   g with which `first` of (from, i) is submitted no later than it of (to, i + g). STATUS_SYSTEM: memory is exhausted. */
enum status gaps_of_firing(struct gaps *gaps, const struct edge *first, int to, int deep,
                           int *which, int *out);

#endif
