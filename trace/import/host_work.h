/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_work.h - a job whose work is on threads of the host: PyTorch on CPUs, whose ranks meet over gloo.
 *
 * Such a trace has annotations and operators, and no call of a device's runtime. It becomes calls and works as a device
 * would have them, and the rest of the room sees no difference:
 *
 *     c10d::allreduce_      of a thread pushes gloo:all_reduce, which a thread of gloo does, to the stream of its process
 *                           group; operations of a group are done in their order
 *     c10d::send, recv_     push a message to the stream of its direction between two ranks
 *     wait() of a Work      is the wait of a thread for the end of an operation: a Python call of that name where the
 *                           trace has stacks (with_stack); behind an operator that says it is not asynchronous (record_shapes);
 *                           else where the thread goes on just after an operation has ended
 *
 * Time of a thread between these is CPU time, named by its innermost annotation. Gloo's threads are no threads of the plan.
 */
#ifndef SWSIM_HOST_WORK_H
#define SWSIM_HOST_WORK_H

#include "trace/job/job.h"

/* True if the rank has work of the host, and none of a device. */
bool host_work_is_all(const struct job_rank *rank);

/* Makes calls, works and syncs of rank->gloo_events. STATUS_INPUT where the trace does not tell which process group, or
   which other rank, is meant. */
enum status host_work_make(struct job *job, struct job_rank *rank, struct diag *diag);

#endif
