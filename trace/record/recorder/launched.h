/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launched.h - the rank of a process in its job, as the launcher tells it: torchrun, mpirun, mpiexec, srun.
 *
 * Reads only the environment. The first rank that is set counts; a variable that is empty counts as unset.
 */
#ifndef SWSIM_LAUNCHED_H
#define SWSIM_LAUNCHED_H

#include <stdint.h>

struct launched {
    uint64_t rank,
        size; /* the rank, plus 1, 0: no launcher tells one; the number of ranks, 0: not told */
    const char
        *odd; /* the variable that is no number that a launcher sets; NULL: none. rank is 0 then */
};

struct launched launched_as(void);

#endif
