/*
 * strip_device_rules.h - a plan as a real device takes it: without the rules that the device has of its own.
 *
 * No device imitates shared hardware queues and an implicit launch order; the host device has no eager
 * messages; on a GPU residency is the GPU's. Whoever runs a plan, replays a run or predicts one leaves
 * these rules out of the machine.
 */
#ifndef SWSIM_STRIP_DEVICE_RULES_H
#define SWSIM_STRIP_DEVICE_RULES_H

#include "arena.h"
#include "diag.h"
#include "plan.h"

/* Change `plan`, a shallow copy of one; what it does not share with that goes into `arena`. `cuda`: the
   device is a GPU, else the host. What is left out is noted in diag, NULL: silently. Returns false when
   memory is exhausted. */
bool plan_strip_device_rules(struct plan *plan, struct arena *arena, bool cuda, struct diag *diag);

#endif
