/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_split.h - can the ranks of a program be processes? Not where threads of two ranks share a CPU flag or
 * a queue, as host programs may: these are memory of one process. Nor where a thread drives the devices of several
 * ranks, or ranks share the residency slots of a device.
 */
#ifndef SWSIM_RANK_SPLIT_H
#define SWSIM_RANK_SPLIT_H

#include "base/diag.h"
#include "machine/program.h"

/* STATUS_USAGE names what is shared. */
enum status rank_split_check(const struct program *program, struct diag *diag);

#endif
