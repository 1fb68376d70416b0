/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frontier_shared.h - the candidates of a frontier, divided among the processes of mpirun or srun.
 *
 * Candidate n is tried by rank n mod size, and goes to rank 0 as it is in memory.
 */
#ifndef SWSIM_FRONTIER_SHARED_H
#define SWSIM_FRONTIER_SHARED_H

#include "improve/frontier.h"
#include "sim/predict/result_wire.h"

/* Try all; NULL: this process does it alone. On rank 0 all candidates have been tried then, on the others those of
   the rank. */
enum status frontier_try_all(struct frontier *frontier, const struct result_wire *wire,
                             struct diag *diag);

#endif
