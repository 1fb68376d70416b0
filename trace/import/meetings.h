/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meetings.h - the collectives of several ranks, matched by their order on each communicator.
 *
 * Where the trace names process groups, a group is a communicator; else the streams that carry collectives are,
 * in the order of their first use: NCCL has a stream for each communicator. The time of a collective is the least
 * over its ranks, as the last one to arrive does not wait. A job of one rank has no meetings: its collectives
 * are kernels, with the waiting in them.
 */
#ifndef SWSIM_MEETINGS_H
#define SWSIM_MEETINGS_H

#include "trace/job/job.h"

struct meetings_meeting {
    int comm; /* plan->comms */
    int64_t time_ns;
};

struct meetings {
    struct meetings_meeting **of; /* per rank and work; comm -1: it meets nobody */
    size_t rank_count;
};

/* Adds the communicators to `plan`. STATUS_INPUT where the lists of two ranks differ. Ended by
   meetings_fini, also after a failure. */
enum status meetings_find(const struct job *job, struct plan *plan, struct meetings *out,
                          struct diag *diag);
void meetings_fini(struct meetings *meetings);

/* The meeting that a work is part of; NULL: none. */
const struct meetings_meeting *meetings_of(const struct meetings *meetings, int rank, int work);

/* Puts the clocks of all ranks right by the ends of their collectives, which come together: each is shifted by the
   median of its differences to a rank that is right already, the first one to begin with. Ranks of one file without
   collectives keep their clocks; STATUS_INPUT for a rank of another file that has none in common with the others. */
enum status meetings_align(struct job *job, struct diag *diag);

#endif
