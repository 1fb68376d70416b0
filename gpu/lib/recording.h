/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording.h - records the runs of a pipeline in a trace store; private to the public library
 * (gpu/lib/swpipe.h).
 *
 * A recorded run is an engine with a journal (gpu/record/journal.h), from its opening to its closing: fill to
 * the end of the data, or a sequence of serial iterations. Its number of iterations is known at its
 * end only. Where a task is a function its log has one entry for all device work of the function
 * (gpu/exec/called.c); the stored plan describes functions as known: no residency slots, no lazy loading
 * (recording_plan). A short-cut collective or message, which puts kept results back, meets no peer: it is
 * plain device work. A run that is still collecting such results is neither, and cannot be judged. The run of a group
 * is recorded in rank 0's process (group_record.h).
 *
 *     recording_open    after run_open, before the threads start
 *     recording_stop    all threads have ended, the device is idle or aborted
 *     recording_close   the run is closed: replay, figures, the end of the run in the store
 */
#ifndef SWPIPE_RECORDING_H
#define SWPIPE_RECORDING_H

#include "group.h"

struct engine;

struct recording_recording {
    struct journal *journal;       /* NULL: this run is not recorded */
    struct group_recording shared; /* with a group */
    struct runtime_options options;
    char *plan_text, *device;
    int64_t *ends; /* [ranks] */
    int64_t start_ns, duration_ns;
    bool complete;
};

/* The outcome of the last one. */
struct recorded {
    bool is;        /* there was one */
    bool elsewhere; /* its figures are in the process of rank 0 */
    struct runtime_result result;
    char why[512]; /* it was not legal; "" */
};

/* The worker of a task: the plan, a function of which nothing is known, a copy of kept results. */
enum done_by { BY_PLAN, BY_FUNCTION, BY_COPY };

/* `plan` with the tasks that are functions ([task]) described as such; shares its memory and `arena`'s. False:
   memory. */
bool recording_plan(const struct plan *plan, const enum done_by *by, struct arena *arena,
                    struct plan *out);

enum status recording_open(struct recording_recording *recording, struct engine *engine,
                           bool serial, const char *path, struct diag *diag);
void recording_stop(struct recording_recording *recording, struct engine *engine);
/* After run_close. What came of it goes to *out, and what was there before is freed. STATUS_SYSTEM: the
   store could not be written. That a run was not legal is no failure. */
enum status recording_close(struct recording_recording *recording, struct recorded *out,
                            struct diag *diag);

void recorded_fini(struct recorded *recorded);

#endif
