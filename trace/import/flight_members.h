/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flight_members.h - what differs between the dumps of one backend and another: who belongs to a process group, which
 * calls have come to their end, and which are not recorded.
 *
 * NCCL lists the members of each group in `pg_config` and moves `state` to completed. Gloo (PyTorch 2.9) does neither: its
 * `pg_config` is empty, `state` stays scheduled and `retired` tells the end; and its sends and receives have no
 * entries. Source: FlightRecorder.hpp and
 * ProcessGroupGloo.cpp of PyTorch 2.9.
 */
#ifndef SWSIM_FLIGHT_MEMBERS_H
#define SWSIM_FLIGHT_MEMBERS_H

#include "flight_calls.h"

/* Sets the ranks of `group`, whose name is set, from "[0, 1]", or a list. Where these are empty: the ranks that called it,
   if one of its calls has come to its end, else all dumps. False without memory. */
bool flight_read_members(const struct flight_job *job, const struct value *ranks,
                         struct flight_group *group);
bool flight_is_member(const struct flight_group *group, int64_t rank);

/* Is the call of this entry over? */
bool flight_is_completed(const struct value *entry);

/* Has the dump entries of a backend that records collectives only? */
bool flight_lacks_messages(const struct flight_rank *rank);

#endif
