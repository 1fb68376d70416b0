/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interrupts.h - the first SIGINT, SIGTERM or SIGHUP ends long work early, with the results so far; a second one
 * ends the process.
 */
#ifndef SWSIM_INTERRUPTS_H
#define SWSIM_INTERRUPTS_H

#include <stdatomic.h>
#include <stdbool.h>

/* From now on the first of these signals only sets the returned flag. */
const atomic_bool *interrupts_catch(void);

/* Was there one? */
bool interrupts_seen(void);

/* A handler of its own, or SIG_IGN, for these signals; `flags` as for sigaction(). Where SIGHUP is ignored, as
   nohup makes it, it stays so. */
void interrupts_handle(void (*handler)(int), unsigned flags);

#endif
