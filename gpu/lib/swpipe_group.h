/* SPDX-License-Identifier: Apache-2.0 */
/*
 * swpipe_group.h - the processes, or threads, of a pipeline that each have one rank; part of swpipe.h.
 *
 *     process 0: swpipe_join --.                        .-- swpipe_open (config.group) -- ... -- swpipe_leave
 *     process 1: swpipe_join ---+-- all have come: OK --+-- swpipe_open                ...
 *     process 2: swpipe_join --'                        '-- swpipe_open                ...
 *
 * A group has a process for each rank, all on one machine, where they share memory. The processes find each other
 * by an address that all know, or through a broadcast that all can take part in (swpipe_mpi.h makes one of an MPI
 * communicator). Rank 0 carries the messages of the others. All leave together: swpipe_leave waits for the
 * others, up to the time limit of the join; a process that exits without it counts as dead.
 *
 * A pipeline of a group holds this process's rank of the plan. All processes open the same plan with the same driver,
 * depth and device, else swpipe_open is SWPIPE_INPUT on all, and fill it, drain it and run serial iterations of it as often
 * as the others; one pipeline of a group is open at a time.
 * The run ends when the data of one rank ends: iterations that not every rank has a batch for are not started
 * on any. The failure of one rank, its end or the death of its process fails the run of the others with the
 * reason.
 *
 * Ranks may also be threads of one process: each joins with its rank, and has a pipeline and hooks of its own. On cuda
 * each needs a GPU of its own then, for NCCL wants a machine name for each rank that shares one, and a process has
 * one. A thread that dies takes the process with it.
 *
 * A run is recorded (swpipe_record) by all ranks or by none. Rank 0's file is the one that is written, names on other
 * ranks only say that there is one; swpipe_recorded tells all ranks the outcome, and swpipe_format_stats works
 * on rank 0. Ending such a run waits for the other ranks, at most as long as a join.
 *
 * In a fork of a process that joined, calls of the group are SWPIPE_USAGE and swpipe_leave does nothing. It has the
 * sockets of its parent, so as long as it lives the others do not notice that its parent has died.
 */
#ifndef SWPIPE_GROUP_H
#define SWPIPE_GROUP_H

#include <stddef.h>
#include <stdint.h>

#include "swpipe_status.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined __GNUC__
#pragma GCC visibility push(default)
#endif

struct swpipe_group;

struct swpipe_join {
    int rank, size;
    int machines; /* how many the processes are on: more than 1 is refused; 0: the caller does not know */
    /* host:port, the same in all processes. The host is this machine (IPv4), an address of another one is refused. The
       port is a name: processes of one user with the same port meet, and nothing is sent to it. */
    const char *address;
    /* Used if `address` is NULL: it copies the first `bytes` of rank 0's `data` into `data` of every other rank. Returns
       0; any other value means that the broadcast failed. */
    int (*broadcast)(void *arg, void *data, size_t bytes);
    void *arg;
    int64_t timeout_ns; /* how long a process waits for the others; 0: 60 s; -1: no limit */
};

/* *out is set unless memory is exhausted, so that swpipe_group_error can say what was wrong; the caller leaves the
   group in any case. OK: all processes have come. */
enum swpipe_status swpipe_join(const struct swpipe_join *join, struct swpipe_group **out);
const char *swpipe_group_error(const struct swpipe_group *group);
int swpipe_group_rank(const struct swpipe_group *group);
int swpipe_group_size(const struct swpipe_group *group);
/* Until all processes are in it. */
enum swpipe_status swpipe_group_wait(struct swpipe_group *group);
/* Where a pipeline of the group is open, the group is left when that is closed. NULL is allowed. */
void swpipe_leave(struct swpipe_group *group);

#if defined __GNUC__
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
