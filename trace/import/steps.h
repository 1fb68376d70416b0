/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps.h - the steps of a job and the annotations in them, by which thread and at what times: the ground of
 * sections.h.
 */
#ifndef SWSIM_STEPS_H
#define SWSIM_STEPS_H

#include "trace/job/job.h"

struct mark_list {
    const struct job_range **items; /* of one thread: by start, the outer one first */
    size_t count;
};

/* The annotations of a step, in order. */
struct found_step {
    int64_t begin_ns, end_ns;
    const struct job_range **ranges;
    size_t count;
    int turn; /* of the rank whose step it is */
    bool kept;
};

struct step_search {
    const struct job *job;
    const struct job_rank *rank;
    struct arena *arena;
    int *stem;               /* per job->names */
    struct mark_list thread; /* the stepping thread */
    struct found_step *steps;
    size_t step_count;
};

/* Fills `thread`, `steps` with their times, and `stem`; no step where nothing is annotated. All memory is in the arena;
   false without it. */
bool steps_find(struct step_search *search);

/* The outermost annotations between two times; not those that are nearly all of it and hold others. */
bool steps_list_between(const struct step_search *search, int64_t begin_ns, int64_t end_ns,
                        const struct job_range ***out, size_t *count);

/* "## forward 12 ##" is forward, and *number 12; -1: none. NULL without memory. */
const char *steps_clean_name(const char *name, int64_t *number, struct arena *arena);

/* True if two names of the job are the same when they are clean. */
bool steps_same_name(const struct step_search *search, int a, int b);

#endif
