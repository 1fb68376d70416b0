/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate.h - pipeline-parallel schedules from their parameters: `generate:` in a plan.
 *
 * A schedule is generated as compute actions only (F, B, I, W, OVERLAP_F_B), one list a rank,
 * without idle cells; comms.h adds the messages. Rank r of p holds chunk c as stage c * p + r, in
 * the V-shaped schedules stages r and 2p - 1 - r. DualPipe has two copies of a model of p stages: rank r
 * holds stage r of the first and p - 1 - r of the second, which is called 2p - 1 - r. All memory belongs to the caller's arena.
 */
#ifndef SWSIM_GENERATE_H
#define SWSIM_GENERATE_H

#include "plan/plan.h"

/* The schedules there are, in the order to show them; NULL past the last. */
const char *generate_name(size_t index);
/* One line about it for people. */
const char *generate_about(size_t index);

/* True if it is found from costs and a memory limit. Else rules make it. */
bool generate_is_found(const char *schedule);
/* A schedule that rules make, with as many chunks and the same stages on each rank as this one, which is found. */
const char *generate_rule_like(const char *schedule);
/* The activations of a stage that a rank may hold in one that is found, as `spec` or else its schedule says; the
   machine's memory may allow fewer, and with GENERATE_FIT more. */
int generate_memory(const struct generate_spec *spec);

/* The channel that a plan has unless it says another: Megatron has a communicator for each pair of ranks, or on two ranks one
   for each way, where it does not send batches. */
void generate_channel(const struct generate_spec *spec, enum fifo_rule *fifo, bool *batch);

/* How many copies of the model a schedule's stages are; 1 unless the schedule is bidirectional. */
int generate_copies(const struct generate_spec *spec);

/* Check that there is such a schedule, and that it can have these parameters. *filled has its number of chunks, too.
   The refusals are those of generate_program. */
enum status generate_check(const struct generate_spec *spec, struct generate_spec *filled,
                           struct diag *diag);

/* Generate `spec` (0 chunks: 1, or 2 for the V-shaped). The lists of a schedule that is found from costs are those of
   spec->found: nothing is searched for here. An unknown schedule, parameters it cannot have and lists that are missing
   are described in diag at spec->mark, without a file: STATUS_INPUT. */
enum status generate_program(const struct generate_spec *spec, struct arena *arena,
                             struct rank_program **ranks, int *rank_count, struct diag *diag);

#endif
