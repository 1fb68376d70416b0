/* SPDX-License-Identifier: Apache-2.0 */
/*
 * messages.h - sends and receives without a partner: the property `message`.
 *
 * The messages of a channel meet in their order, so each tag must be sent and received equally often; in a pipeline,
 * by the tasks of one iteration. A message without a partner hangs under rendezvous, or is left behind, or meets another's:
 * in every run. So this is a fact about the program, found without a search.
 */
#ifndef SWSIM_MESSAGES_H
#define SWSIM_MESSAGES_H

#include "machine/program.h"
#include "base/diag.h"

/* *lone: one of program->parts without a partner, in a place where the plan names it first; -1: none. */
enum status messages_find_lone(const struct program *program, int *lone, struct diag *diag);

/* "1SEND_B2 (plan.yaml:7:12) has no 0RECV_B2": in `arena`; NULL when memory is exhausted. */
const char *messages_tell(const struct program *program, int lone, struct arena *arena);

#endif
