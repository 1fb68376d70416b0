/*
 * interrupts.h - the first SIGINT ends long work early, with the results so far; a second one ends the
 * process.
 */
#ifndef SWSIM_INTERRUPTS_H
#define SWSIM_INTERRUPTS_H

#include <stdatomic.h>
#include <stdbool.h>

/* From now on the first SIGINT only sets the returned flag. */
const atomic_bool *interrupts_catch(void);

/* Was there one? */
bool interrupts_seen(void);

#endif
