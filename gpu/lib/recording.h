/*
 * recording.h - the runs of a pipeline go into a trace store; private to the public library
 * (gpu/lib/swpipe.h).
 *
 * A recorded run is an engine with a journal (gpu/record/journal.h), from its opening to its closing: fill to
 * the end of the data, or a sequence of serial iterations. Its number of iterations is known at its
 * end only. Where a task is a function its log has one entry for all the function did on the device
 * (gpu/exec/called.c); the plan that is kept is the plan with what is known of functions: nothing holds
 * residency slots for them, nothing is loaded lazily (recording_plan). A collective or message whose kept
 * results are put back meets nobody: it is some device work. A run in which such results are being kept
 * is neither one nor the other, and cannot be judged.
 *
 *     recording_open    after run_open, before the threads start
 *     recording_stop    all threads have ended, the device is idle or aborted
 *     recording_close   the run is closed: replay, figures, the end of the run in the store
 */
#ifndef SWPIPE_RECORDING_H
#define SWPIPE_RECORDING_H

#include "gpu/exec/run.h"

struct engine;

struct recording {
    struct journal *journal; /* NULL: this run is not recorded */
    struct runtime_options options;
    char *plan_text, *device;
    int64_t *ends; /* [ranks] */
    int64_t start_ns, duration_ns;
    bool complete;
};

/* What came of the last one. */
struct recorded {
    bool is; /* there was one */
    struct runtime_result result;
    char why[512]; /* it was not legal; "" */
};

/* What does a task's work: the plan, a function of which nothing is known, a copy of kept results. */
enum done_by { BY_PLAN, BY_FUNCTION, BY_COPY };

/* `plan` with what is known of who does its tasks' work ([task]); shares its memory and `arena`'s. False:
   memory. */
bool recording_plan(const struct plan *plan, const enum done_by *by, struct arena *arena,
                    struct plan *out);

enum status recording_open(struct recording *recording, struct engine *engine, bool serial,
                           const char *path, struct diag *diag);
void recording_stop(struct recording *recording, struct engine *engine);
/* After run_close. What came of it goes to *out, and what was there before is freed. STATUS_SYSTEM: the
   store could not be written. That a run was not legal is no failure. */
enum status recording_close(struct recording *recording, struct recorded *out, struct diag *diag);

void recorded_fini(struct recorded *recorded);

#endif
