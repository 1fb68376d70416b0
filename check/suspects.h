/*
 * suspects.h - whom a counterexample points at: the operations an edit should look at first.
 *
 * A story (explain.h) is for people; this is the same path for repair.h. A suspect is a task of a
 * pipeline, or the operation of a host or rank program that stands at `mark`. Nearness 0 is what
 * the violation is made of: the operations on the cycle of waits, the two accesses that race, the
 * two collectives that do not match. Nearness 1 is what else is blocked or waited for, and what is
 * queued behind it.
 */
#ifndef SWSIM_SUSPECTS_H
#define SWSIM_SUSPECTS_H

#include "search.h"
#include "plan/arena.h"

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
    uint64_t
        fingerprint; /* equal for equal violations, whatever the iteration and the plan's marks */
};

/* Replay `path` to the violation of `property` it ends in. Memory is the arena's. */
enum status suspects_find(const struct program *program, enum property property,
                          const struct search_path *path, struct arena *arena, struct suspects *out,
                          struct diag *diag);

#endif
