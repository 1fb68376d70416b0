/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turns.h - the ranks of a job as one rank: each has its turn when those before it are over.
 *
 * Times of a rank are later by those of the ranks before it, streams with one number are one stream, and so are the
 * streams of ranks that have as many of them, by their order. The steps of all ranks are then steps of one,
 * and what is found in most of them holds for every rank. Collectives keep their meetings (meetings.h).
 */
#ifndef SWSIM_TURNS_H
#define SWSIM_TURNS_H

#include "evidence.h"
#include "meetings.h"

struct turns {
    struct job_rank
        rank; /* calls, works, ranges and streams; numbers of threads are those of each rank */
    struct evidence evidence;
    struct meetings_meeting
        *meetings;          /* per work; comm -1: it meets nobody. NULL: a job of one rank */
    struct job_rank *ranks; /* each with the parts of `rank` that are its own */
    size_t count;
};

/* After job_finish; `evidence`: one a rank. All memory is in `arena`; the job is not changed. False without memory. */
bool turns_take(const struct job *job, const struct evidence *evidence,
                const struct meetings *meetings, struct arena *arena, struct turns *out);

#endif
