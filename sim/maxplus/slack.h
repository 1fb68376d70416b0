/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slack.h - by how much each task may take longer before an iteration does.
 *
 * In the steady state every cycle through a task's work is at most as long as its iterations allow. What
 * is missing on the longest of them is the task's slack: exact, like the cycle ratio it is taken from.
 * A task of the critical cycle has none.
 */
#ifndef SWSIM_SLACK_H
#define SWSIM_SLACK_H

#include "steady.h"

/* More work than this many relaxations is not done. */
#define SLACK_MOST_WORK INT64_C(100000000)

/* Per task the least slack of its device parts over the ranks (of its CPU parts, where it has no
   other), rounded down; -1: it takes no time. *out_ns is freed by the caller; NULL where there is no
   exact steady state or it would take too long. STATUS_SYSTEM when memory runs out. */
enum status slack_find(const struct program *program, const struct timing *timing,
                       const struct steady *steady, int64_t **out_ns, struct diag *diag);

#endif
