/* SPDX-License-Identifier: Apache-2.0 */
/*
 * structure.h - what the files that look at certificates of pipelines share: proof_structure.c (the whole), proof_paths.c (paths
 * between tasks), proof_traffic.c (the order of collectives under data-flow). Private to proof/.
 */
#ifndef SWSIM_PROOF_STRUCTURE_H
#define SWSIM_PROOF_STRUCTURE_H

#include "lists.h"
#include "proof.h"

/* The length of a path that is not there. */
enum { STRUCTURE_FAR = 1 << 28 };

struct structure {
    const struct program *p;
    const struct task *tasks; /* of rank 0 */
    struct certificate *c;
    unsigned proves;
    int *place;             /* per task, in the enqueue order */
    int *order;             /* tasks by their numbers */
    int64_t *number;        /* per task */
    int deep;               /* paths around the one that is read */
    int *list;              /* room for tasks, thread groups or communicators */
    int64_t *level, weight; /* of forward collectives, per task */
    bool *fed;              /* per task: a write comes before its read */
};

static inline bool structure_is_clock(const struct structure *s)
{
    return s->p->driver == DRIVER_CLOCK;
}

static inline bool structure_is_host(const struct structure *s, int task)
{
    return s->tasks[task].work.kind == WORK_HOST;
}

/* True if the task communicates. */
static inline bool structure_calls(const struct structure *s, int task)
{
    return s->tasks[task].work.kind == WORK_COLLECTIVE;
}

/* (from, i) comes before (to, i + *length): its work, or its submission. STRUCTURE_FAR: there is no path. */
bool structure_read_path(struct structure *s, int from, int to, bool submission, int64_t *length);

/* Data-flow: what threads call comes through, in whatever order they are handed their work. */
bool structure_read_traffic(struct structure *s);

#endif
