/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_times.h - when the device did what the program's calls pushed: activity records of CUPTI.
 *
 * CUPTI is opened at the first call that is recorded. A call that pushes work has a number (PUSH), which CUPTI notes with it; the
 * records go to the recording as they are (DEVICE_OP, PUSHED_AS), and with them what CUPTI's clock showed at times of the
 * host's (CLOCK), about once a second. Where CUPTI cannot be had, one item says why (NO_TIMES), and nothing else changes.
 * SWSIM_RECORD_TIMES=0 asks for none; SWSIM_CUPTI names the library.
 */
#ifndef SWSIM_DEVICE_TIMES_H
#define SWSIM_DEVICE_TIMES_H

#include <stdint.h>

#include "recording.h"

/* A call of the program begins; the thread is in no other one. Its number; 0: it pushes nothing, or there is no CUPTI. */
uint64_t device_times_begin(enum recording_kind kind);
/* It is over. */
void device_times_end(uint64_t number);
/* Its item comes next. */
void device_times_put(enum recording_kind kind, uint64_t number);

/* All records are taken: the process ends. What is pushed later has none. */
void device_times_close(void);

#endif
