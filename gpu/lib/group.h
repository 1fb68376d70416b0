/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.h - the group of a pipeline from inside; private to the public library (gpu/lib/swpipe_group.h).
 *
 *     group_fetch     before an iteration is admitted: true if every rank has a batch for it
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
 *
 * The recording of a group's run (group.c):
 *
 *     rank 0: journal --.                          .--> swpipe_recorded, the store
 *     rank 1: journal ---+-- mail --> keeper: books, replay
 *     rank 2: journal --'     (rank 0's process)   `--> answer to the other ranks
 *
 * The journal of each rank sends what it logs to the broker, whose owner is rank 0; a thread there, the keeper, takes
 * it into one journal that collects (gpu/record/journal.h). All ranks record a run, or none; opening and
 * ending one waits for rank 0, at most the group's patience. A rank that has died leaves the log torn: then
 * nothing is replayed, and whether the run was legal stays unknown.
 */
#ifndef SWPIPE_GROUP_IMPL_H
#define SWPIPE_GROUP_IMPL_H

#include <pthread.h>

#include "gpu/exec/run.h"
#include "gpu/net/rendezvous.h"
#include "gpu/record/journal.h"
#include "swpipe_group.h"

struct swpipe;

struct swpipe_group {
    struct rendezvous *rendezvous;
    struct broker *broker; /* rank 0 */
    pid_t process;         /* that joined: its forks have none of its threads */
    int rank, size;
    int64_t patience_ns; /* RENDEZVOUS_FOREVER: no limit */
    bool in_use;         /* a pipeline of it is open */
    bool left;           /* by the program; to be done when the pipeline closes */
    int opens;           /* of pipelines */
    int64_t worlds;      /* that were opened */
    int recordings;      /* begun */
    int64_t base;        /* of this run's batches */
    char error[512];
};

/* STATUS_USAGE where it cannot be used: it has not come together, or this process is a fork of the one that joined. */
enum status group_must_be_here(const struct swpipe_group *group, struct diag *diag);
/* All open a pipeline: with the same plan, driver, depth and device, or all get STATUS_INPUT with two that differ. */
enum status group_open_same(struct swpipe_group *group, const struct swpipe *pipe,
                            struct diag *diag);
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

/* ---- the recording -------------------------------------------------------------------------- */

struct keeper;

/* A rank's part in a recorded run. */
struct group_recording {
    struct swpipe_group *group; /* NULL: the run is not a group's */
    struct keeper *keeper;      /* rank 0 */
    int number;                 /* of this run among those recorded by the group */
};

/* Before the rank's own journal opens. `program`, `options` and `device` are borrowed until the end. */
enum status group_recording_open(struct group_recording *recording, struct swpipe_group *group,
                                 struct run *run, const struct runtime_options *options,
                                 const char *device, struct diag *diag);

/* The end of this rank, when its journal has been stopped. `planned`: its iterations. */
void group_recording_stop(struct group_recording *recording, bool complete, int64_t planned,
                          int64_t duration_ns);

/* The outcome, the same on all ranks; rank 0 has the figures besides. Words of an illegal run go to `why`.
   STATUS_SYSTEM: the books could not be kept, or rank 0 does not answer. Frees what was opened. */
enum status group_recording_close(struct group_recording *recording, struct runtime_result *out,
                                  char *why, size_t why_bytes, struct diag *diag);

/* This rank's own part could not be opened: the others are told that it did not complete the run. */
void group_recording_drop(struct group_recording *recording);

#endif
