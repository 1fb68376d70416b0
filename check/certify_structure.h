/* SPDX-License-Identifier: Apache-2.0 */
/*
 * certify_structure.h - what the writers of a pipeline's certificate share: numbers and paths of accesses, and under data-flow
 * the order of collectives (certify_traffic.c).
 */
#ifndef SWSIM_CERTIFY_STRUCTURE_H
#define SWSIM_CERTIFY_STRUCTURE_H

#include "certify.h"
#include "gaps.h"

enum { CERTIFY_FAR = 1 << 20 }; /* there is no path */

enum hop { HOP_NONE, HOP_ON, HOP_RETIRED, HOP_QUEUE, HOP_FIRED };

/* Shortest paths from one task, of its work or of its submission, or from whatever the driver has retired. */
struct row {
    int *length;   /* per task */
    int *before;   /* per task: the one in front of it */
    enum hop *hop; /* per task: the last one to it; NONE: it is the source */
    bool submission;
};

struct pipeline_writer {
    const struct certifier *certifier;
    const struct program *p;
    const struct task *tasks;
    FILE *out;
    struct diag *diag;
    struct arena arena;
    int *place, *topological, *number, *list;
    bool *done, *fed;
    struct row *rows; /* of work, when they are there */
    struct row submission, retired;
    struct gaps gaps; /* of submission while calls are written, of work while accesses are */
    unsigned proves;
};

bool pipeline_make_row(struct pipeline_writer *w, struct row *row);
/* From task `from`, -1: from the driver, and if the driver has `seen` it from there as well. */
void pipeline_fill_row(const struct pipeline_writer *w, struct row *row, int from, bool seen);
/* The path to a task, `none` if it is far. */
void pipeline_write_path(struct pipeline_writer *w, const struct row *row, int to);
/* Data-flow, one thread: the path from (from, i), which is fired before (to, i + length), because each dependence of it is
   submitted before one of the other; `deep` as in gaps_of_firing. Leaves w->submission changed. False: memory is exhausted. */
bool pipeline_write_firings(struct pipeline_writer *w, int from, int to, int length, int deep);

/* Data-flow: why what threads call comes through. False: it is not known that it does, or *status says why not. */
bool pipeline_write_calls(struct pipeline_writer *w, enum status *status, struct diag *diag);

#endif
