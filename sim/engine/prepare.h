/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prepare.h - make a simulation's tables; private to sim/.
 *
 * prepare refuses what cannot be simulated. The simulation must not be moved in memory afterwards.
 * prepare_free releases, after an error too, all but the result.
 */
#ifndef SWSIM_PREPARE_H
#define SWSIM_PREPARE_H

#include "simulation.h"

enum status prepare(struct simulation *sim, const struct program *program,
                    const struct timing *timing, const struct simulate_options *options,
                    struct diag *diag);
void prepare_free(struct simulation *sim);

#endif
