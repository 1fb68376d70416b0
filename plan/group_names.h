/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group_names.h - the names of a group's operations: those of programs, predictions and runs, which are compared by name.
 *
 * A group is an operation for its messages and one for its collectives (doc/semantics.md, section 3).
 */
#ifndef SWSIM_GROUP_NAMES_H
#define SWSIM_GROUP_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "plan.h"

/* "send x to rank 1", "receive x from rank 0 and others": the first of the messages; `peer` is a rank. Returns `buf`. */
const char *group_message_name(bool send, const char *tag, int peer, bool others, char *buf,
                               size_t cap);

/* `name`, those before, with one more of several collectives: "grads 1MiB + loss all_gather + seed broadcast from 1". Kinds,
   roots and sizes are part of the name, as they must agree. In the arena; NULL: no memory. */
const char *group_add_collective(struct arena *arena, const char *name,
                                 const struct p2p_part *part);

#endif
