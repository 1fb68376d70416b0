/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chakra.h - execution traces of Chakra in its own format, as `swsim export --format=chakra` writes them (plan/text/chakra.h): each
 * is a rank, and its nodes are the calls of threads and the work that they push.
 *
 * A trace of another program has no calls. Its nodes are then those of one thread, in the order of their numbers: work of a
 * CPU is CPU time, other work is pushed to its stream (by the attribute `stream`; else computations have one, and each group
 * another), which waits for the data dependences that are on other streams.
 */
#ifndef SWSIM_IMPORT_CHAKRA_H
#define SWSIM_IMPORT_CHAKRA_H

#include "trace/job/bytes.h"
#include "trace/job/job.h"

/* Adds the threads of rank `number` to the job, and to its plan what they name. STATUS_INPUT for a file that is damaged or whose
   metadata say another rank. */
enum status chakra_read(struct bytes *bytes, int number, const char *name, struct job *job,
                        struct diag *diag);

#endif
