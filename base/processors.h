/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processors.h - how many processors this process may keep busy: of those that are online, the ones that it is bound to,
 * and no more than its control groups give it time for, as a container does (cgroups(7)):
 *
 *     version 2   ROOT/GROUP/cpu.max                 "200000 100000": 200 ms of time in each 100 ms, two processors
 *     version 1   ROOT/cpu/GROUP/cpu.cfs_quota_us    200000; -1: no limit
 *                                cpu.cfs_period_us   100000
 *
 * GROUP is what /proc/self/cgroup says, and each group above it up to the root has a limit of its own. Inside of a
 * container the root is the container's group, and the name that /proc/self/cgroup gives may lie outside.
 */
#ifndef SWSIM_PROCESSORS_H
#define SWSIM_PROCESSORS_H

#include <stdbool.h>

/* At least 1. A part of a processor counts as none, for a thread more than the time for it would stop all of them. */
int processors_count(void);
/* All of the machine, at least 1, and whether this process may use them. */
int processors_online(void);
bool processors_are_all(void);
/* The smallest limit of the groups that `list` (/proc/self/cgroup) names, below `root` (/sys/fs/cgroup); 0: there is none. */
double processors_of_groups(const char *list, const char *root);

#endif
