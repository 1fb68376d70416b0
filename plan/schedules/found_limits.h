/* SPDX-License-Identifier: Apache-2.0 */
/*
 * found_limits.h - how many activations each rank of a found schedule may hold.
 *
 * `generate: {memory: N}` says it for all ranks; without it, the schedule. Neither may be more than `machine: {memory}` has
 * room for beside weights and state of the rank's own stages; `memory: fit` is as many as that. An activation is as
 * large as that of the rank's largest stage. The memory of messages is known when there are lists: found_limits_lower.
 */
#ifndef SWSIM_FOUND_LIMITS_H
#define SWSIM_FOUND_LIMITS_H

#include "bubble.h"

struct found_limits {
    const struct plan *costs;
    int ranks;
    bool by_bytes;             /* machine: {memory} counts: it is given, and no number is */
    int *of;                   /* per rank */
    int64_t *activation_bytes; /* per rank, at least 1; NULL unless by_bytes */
};

/* `rank_of`: per stage. `costs` may be NULL, and outlives *out; the arrays are in `arena`. */
enum status found_limits_make(const struct generate_spec *spec, const struct plan *costs,
                              const int *rank_of, struct arena *arena, struct found_limits *out,
                              struct diag *diag);

/* May every rank hold one at least? */
bool found_limits_hold(const struct found_limits *limits);

/* Do the lists keep to the bytes? Else the ranks that do not may hold less from now on. */
enum status found_limits_lower(struct found_limits *limits, const struct bubble_problem *problem,
                               const struct rank_program *lists, bool *fits, struct diag *diag);

/* As if the machine's memory were not given. */
void found_limits_own(struct found_limits *limits, const struct generate_spec *spec);

/* Of the rank with the least, and with the most. */
void found_limits_range(const struct found_limits *limits, int *least, int *most);

#endif
