/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starter.h - whether this process was started by mpirun, mpiexec or srun, as one of several.
 *
 * Reads only the environment.
 */
#ifndef SWSIM_STARTER_H
#define SWSIM_STARTER_H

#include <stdbool.h>

#include "base/diag.h"

struct starter {
    int rank, size;        /* size 0: no launcher; 1: one process alone */
    int local_size;        /* processes of the job on this machine; 0: not known */
    bool several_machines; /* false: not known */
    const char *odd; /* the variable that is not what `expected` says: size is 0 then; NULL: none */
    const char *expected;
};

/* A variable that is empty counts as unset. */
void starter_find(struct starter *out);
/* Refuse an odd variable. */
enum status starter_check(const struct starter *starter, struct diag *diag);

/* The processors that this process may use, shared with the others on its machine; at least 1. */
int starter_processors(const struct starter *starter);

#endif
