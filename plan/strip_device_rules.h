/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strip_device_rules.h - a plan without the rules that a real device brings itself.
 *
 * No device imitates shared hardware queues and an implicit launch order; the host device has no eager
 * messages; on a GPU residency is the GPU's. A run, its replay and its prediction leave these rules
 * out of the machine.
 */
#ifndef SWSIM_STRIP_DEVICE_RULES_H
#define SWSIM_STRIP_DEVICE_RULES_H

#include "base/arena.h"
#include "base/diag.h"
#include "plan.h"

/* Change `plan`, a shallow copy of one; new memory is in `arena`. `cuda`: the
   device is a GPU, else the host. Notes in diag name the rules left out; NULL: no notes. Returns false when
   memory is exhausted. */
bool plan_strip_device_rules(struct plan *plan, struct arena *arena, bool cuda, struct diag *diag);

#endif
