/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repeated.h - which steps of a job do the same, and the words for what is each iteration's own: what the steps of a trace
 * (trace/import/fold.h) and those of a recording (trace/record/reader/recorded_fold.c) have in common.
 *
 * Memory that one step alone uses is that step's own: in another step other memory may stand for it, the one with the same
 * number, by the order of first uses. Written once, it is a buffer of each iteration. Who reads memory that nobody changes
 * may as well read other such memory.
 *
 * A run is a number of iterations, each of one or more steps in turns: step k of it does what step k + turns does.
 */
#ifndef SWSIM_REPEATED_H
#define SWSIM_REPEATED_H

#include "trace/job/job.h"

#define STEP_NONE   SIZE_MAX /* in no step */
#define STEP_SHARED (SIZE_MAX - 1)

/* A buffer of a rank. */
struct step_memory {
    size_t
        step; /* the only one that uses it; STEP_NONE: nobody has; STEP_SHARED: it is no step's own */
    bool changes; /* somebody writes, allocates or frees it, or it begins without values */
    int number;   /* among those of its step, by their first uses; -1: not yet */
};

/* All of it is in `arena`. */
struct step_memories {
    struct arena *arena;
    int first_rank; /* of those that are looked at */
    size_t rank_count, buffer_count, steps;
    struct step_memory *items; /* by rank, then plan->buffers */
    int *next;                 /* per rank and step: the next number */
};

/* Of plan->buffers so far. False: no memory. */
bool step_memory_init(struct step_memories *memories, struct arena *arena, const struct plan *plan,
                      int first_rank, int ranks, size_t steps);
/* An operation of a thread of rank `home`, in a step or STEP_NONE. All are used, then all are numbered. */
void step_memory_use(struct step_memories *memories, int home, const struct host_op *op,
                     size_t step);
void step_memory_number(struct step_memories *memories, int home, const struct host_op *op,
                        size_t step);
/* True if what an operation of `rank` accesses in one step is what the other one does in another step. */
bool step_memory_same(const struct step_memories *memories, int rank, const struct index_list *a,
                      size_t a_step, const struct index_list *b, size_t b_step);

/* How the steps of a run become one; `from` and `turns` as in struct step_run. */
struct step_names {
    struct plan *plan;
    size_t from, turns;
    int (*buffer)(void *owner, const char *name); /* plan->buffers; -1: no memory */
    void *owner;
};

/* The operation of the first iteration gets the buffers of all iterations. False: no memory. */
bool step_memory_rename(struct step_memories *memories, const struct step_names *names, int home,
                        struct host_op *op);
/* The flag of this name in an iteration; -1: no memory. */
int step_flag(struct plan *plan, const char *stem, size_t iteration);

struct step_run {
    size_t from, turns, times;
    size_t
        end; /* the first step that does not do what the step `turns` behind it does, or has none behind it */
};

/* The run that leaves the fewest steps to write, of at least so many iterations; else times is 0. */
typedef bool step_same(void *owner, size_t a, size_t b);
struct step_run step_run_find(size_t steps, size_t most_turns, size_t least_times, step_same *same,
                              void *owner);

#endif
