/*
 * interrupts.h - long work ends early and says what it knows: the first SIGINT asks it to, a second one
 * ends the process.
 */
#ifndef SWSIM_INTERRUPTS_H
#define SWSIM_INTERRUPTS_H

#include <stdatomic.h>
#include <stdbool.h>

/* From now on the first SIGINT only sets what is returned. */
const atomic_bool *interrupts_catch(void);

/* Was there one? */
bool interrupts_seen(void);

#endif
