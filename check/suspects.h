/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suspects.h - the operations involved in a counterexample, which repairs edit first.
 *
 * A story (explain.h) is for people; suspects are for repair.h. A suspect is a task of a pipeline, or
 * the operation of a host or rank program at `mark`. Nearness 0 are the operations of the violation:
 * those on the cycle of waits, the two accesses that race, the two collectives that do not match.
 * Nearness 1 are other blocked or awaited operations, and those queued behind them.
 */
#ifndef SWSIM_SUSPECTS_H
#define SWSIM_SUSPECTS_H

#include "search.h"
#include "base/arena.h"

struct suspect {
    int task;         /* plan->pipeline.tasks; -1: none */
    struct mark mark; /* of the operation; {0, 0}: none */
    int rank;
    int nearness;
};

struct suspects {
    enum property property;
    struct suspect *items; /* no two alike */
    size_t count;
    uint64_t fingerprint; /* equal for equal violations; independent of iterations and marks */
};

/* Replay `path` to the violation of `property` it ends in. Memory is the arena's. */
enum status suspects_find(const struct program *program, enum property property,
                          const struct search_path *path, struct arena *arena, struct suspects *out,
                          struct diag *diag);

#endif
