/*
 * spread.h - can the ranks of a program be processes? Not where threads of two ranks share a CPU flag or
 * a queue, as host programs may: these are memory of one process.
 */
#ifndef SWSIM_SPREAD_H
#define SWSIM_SPREAD_H

#include "plan/diag.h"
#include "machine/program.h"

/* STATUS_USAGE names what is shared. */
enum status spread_check(const struct program *program, struct diag *diag);

#endif
