/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.h - the group of a pipeline from inside; private to the public library (gpu/lib/swpipe_group.h).
 *
 *     group_fetch     before an iteration is admitted: has every rank a batch for it?
 *     watch_open      a thread that fails the run when another process aborts it, leaves or dies
 *
 * Every process counts on the board of the rendezvous the batches it has fetched, all pipelines and runs of
 * the group in one sequence that never falls:
 *
 *     2 (base + fetched)          so many so far
 *     2 (base + fetched) + 1      and the data has ended
 *
 * The next run begins behind the end of the last, the next world of devices at a multiple of EPOCH: then no
 * process mistakes an old number for a new one, and none has to wait before it fetches.
 */
#ifndef SWPIPE_GROUP_IMPL_H
#define SWPIPE_GROUP_IMPL_H

#include <pthread.h>

#include "gpu/exec/run.h"
#include "gpu/net/rendezvous.h"
#include "swpipe_group.h"

struct swpipe_group {
    struct rendezvous *rendezvous;
    struct broker *broker; /* rank 0 */
    int rank, size;
    int64_t patience_ns; /* RENDEZVOUS_FOREVER: no limit */
    bool in_use;         /* a pipeline of it is open */
    bool left;           /* by the program; to be done when the pipeline closes */
    int64_t worlds;      /* that were opened */
    int recordings;      /* begun */
    int64_t base;        /* of this run's batches */
    char error[512];
};

/* The moment at which a wait for the other processes, begun now, has taken too long. */
int64_t group_deadline(const struct swpipe_group *group);
/* A world of devices has been opened by all. */
void group_new_world(struct swpipe_group *group);
/* All begin a run: none reads numbers of the last one any more. */
enum status group_begin_run(struct swpipe_group *group, struct diag *diag);
/* This process has had so many batches in this run; with `ended` there is no other one. */
void group_say(struct swpipe_group *group, int64_t batches, bool ended);
/* Wait until every rank has said whether it has a batch for iteration `number`. *all: every rank has one; else the run ends
   before it, on all ranks. False: the run has stopped. */
bool group_hear(struct swpipe_group *group, struct run *run, int64_t number, bool *all);
/* The most batches that a rank has had, the end being one: so many words the others may wait for. */
int64_t group_most(const struct swpipe_group *group);
/* The run ends, and no rank had more than `most` batches: the next may begin. All say the same. */
void group_end_run(struct swpipe_group *group, int64_t most);

struct group_watch {
    struct swpipe_group *group;
    struct run *run;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool started, ending;
};

enum status watch_open(struct group_watch *watch, struct swpipe_group *group, struct run *run,
                       struct diag *diag);
/* Before the run is closed; one that was not opened is all zero. */
void watch_close(struct group_watch *watch);

#endif
