/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frontier_room.h - how many activations a rank has room for beside its weights and state.
 */
#ifndef SWSIM_FRONTIER_ROOM_H
#define SWSIM_FRONTIER_ROOM_H

#include "plan/plan.h"

struct frontier_room {
    int activations; /* of a stage, on the rank with the least room; as many as it ever needs at most */
    int64_t activation_bytes; /* of one, there; at least 1 */
};

/* `plan` has `generate:` of a schedule that is found; `bytes` are those of a rank. Messages are not counted. */
enum status frontier_find_room(const struct plan *plan, int64_t bytes, struct arena *arena,
                               struct frontier_room *out, struct diag *diag);

#endif
