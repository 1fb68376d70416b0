/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_progress.h - how far a run in a trace store is, also while another process adds to it.
 *
 * The run is found once; every reading may use another opening of the same store, so that none stays open between
 * them. A reading costs little, however long the run is: it touches the newest rows only, unless all are asked for.
 * All memory is the arena's. Errors as in store.h.
 */
#ifndef SWSIM_STORE_PROGRESS_H
#define SWSIM_STORE_PROGRESS_H

#include "store.h"

enum { PROGRESS_TASKS = 3, PROGRESS_ITERATIONS = 32 };
#define PROGRESS_ALL INT64_C(-1)

/* A run and its streams, or where it has none its threads, by rank and position. */
struct progress_run {
    int64_t run;
    struct run_info info;  /* as it was when the run was found */
    int64_t start_unix_ns; /* -1: unknown */
    struct progress_agent {
        int64_t id; /* in the store */
        int rank;
        enum trace_agent_kind kind;
        const char *name;
    } * agents;
    size_t agent_count;
    int *ranks; /* in rising order */
    size_t rank_count;
};

/* The work of an agent between from_ns and to_ns. */
struct progress_work {
    int64_t busy_ns;
    struct progress_task {
        const char *name;
        int64_t busy_ns;
    } tasks[PROGRESS_TASKS]; /* the longest ones */
    int task_count;
};

struct run_progress {
    enum run_finished finished;
    int64_t wanted;       /* iterations; 0: not known */
    int64_t done;         /* iterations over on all ranks */
    int64_t averaged;     /* iterations of the lowest rank whose ends `iteration_ns` is the mean of */
    int64_t iteration_ns; /* mean time between two ends of them; 0: fewer than two have ended */
    int64_t newest_ns;    /* the newest end of work */
    int64_t duration_ns;  /* of a run that is over */
    int64_t from_ns, to_ns;
    struct progress_work *work; /* [agent] */
};

/* STORE_LATEST: the newest run. */
enum status progress_find(struct store *store, int64_t run, struct arena *arena,
                          struct progress_run *out, struct diag *diag);

/* The work of the last `window_ns` before the newest end of work, and the last PROGRESS_ITERATIONS ends of
   iterations. PROGRESS_ALL: of the whole run. */
enum status progress_read(struct store *store, const struct progress_run *run, int64_t window_ns,
                          struct arena *arena, struct run_progress *out, struct diag *diag);

#endif
