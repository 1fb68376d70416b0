/*
 * generate.h - pipeline-parallel schedules from their parameters: `generate:` in a plan.
 *
 * A schedule is generated as compute actions only (F, B, I, W, OVERLAP_F_B), one list a rank,
 * without idle cells; comms.h adds the messages. Rank r of p holds chunk c as stage c * p + r, in
 * the V-shaped schedules stages r and 2p - 1 - r. All memory belongs to the caller's arena.
 */
#ifndef SWSIM_GENERATE_H
#define SWSIM_GENERATE_H

#include "plan.h"

/* The schedules there are, in the order to show them; NULL past the last. */
const char *generate_name(size_t index);
/* One line about it for people. */
const char *generate_about(size_t index);

/* Generate `spec` (0 chunks: 1, or 2 for the V-shaped). An unknown schedule or parameters it cannot
   have are described in diag at spec->mark, without a file: STATUS_INPUT. */
enum status generate_program(const struct generate_spec *spec, struct arena *arena,
                             struct rank_program **ranks, int *rank_count, struct diag *diag);

#endif
