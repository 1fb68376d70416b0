/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tame_plan.h - random pipelines that most often have an event graph: each stream belongs to one
 * thread, and what is issued together is ordered. Up to eight tasks, four streams, three threads and
 * three ranks, with CPU parts, collectives, locks, retire rules and launch queues.
 */
#ifndef SWSIM_TAME_PLAN_H
#define SWSIM_TAME_PLAN_H

#include <stdint.h>

/* A plan's text; the caller frees it. NULL when memory is exhausted. A calm plan is a tame one in
   which the host waits for the device by retiring only. */
char *tame_plan(uint64_t seed);
char *calm_plan(uint64_t seed);

#endif
