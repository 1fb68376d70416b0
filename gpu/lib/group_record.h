/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group_record.h - the recording of a group's run; private to the public library (gpu/lib/swpipe_group.h).
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
#ifndef SWPIPE_GROUP_RECORD_H
#define SWPIPE_GROUP_RECORD_H

#include "group.h"
#include "gpu/record/journal.h"

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
