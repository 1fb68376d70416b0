/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app.h - the program around the model: what the command line asks for, the tasks of its plans, and the plain loop that
 * their losses are compared with.
 */
#ifndef DLRM_APP_H
#define DLRM_APP_H

#include "model.h"

#include <swpipe.h>

struct app {
    const char *plan; /* NULL: the plain loop */
    const char *data_file, *address, *record;
    int ranks, rank; /* rank -1: all are in this process */
    int serial, dataflow, quiet, stale;
    enum sharding sharding;
    int64_t iterations;
    struct data *data;
    struct model models[MOST_RANKS]; /* of the ranks in this process, by rank */
    int64_t fetched[MOST_RANKS];
    float *losses; /* [iterations], of all ranks' samples */
};

/* The functions of the tasks; swpipe_task.arg is the app. *count of them, of which the last is Prefetch, which only
   some plans have. */
const struct swpipe_task *tasks_of(struct app *app, size_t *count);

/* All ranks one after the other, step after step, without a pipeline: 0, or -1: no memory. With `stale` rows are looked
   up that many iterations early, 0 or 1: before the update of the iteration before. */
int plain_run(struct app *app);

/* The next batch of a rank, for free; NULL: no memory. */
struct batch *app_next_batch(struct app *app, int rank);

#endif
