/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.h - the order of threads that locks, conditions, semaphores, barriers, functions called once, creation and
 * joining make, and which locks they have when they call CUDA.
 */
#ifndef SWSIM_THREADS_H
#define SWSIM_THREADS_H

#include <stdbool.h>

/* A thread of CUDA begins (1) or ends (-1) to execute the program's code. */
void threads_host_call(int by);

/* True if this is a thread of CUDA that executes none of the program's code. */
bool threads_are_internal(void);

/* True if it is such a thread, or in a call of CUDA or NCCL, or if nothing is recorded. Its locks are not the
   program's. */
bool threads_are_left_out(void);

/* True of the locks and conditions of Python's interpreter, where the program's own primitives tell the order of its threads:
   any thread of Python's comes behind any other one by the interpreter's lock, in another run the other way round. */
bool threads_orders_nothing(const void *object);

/* True if the program has ever begun a thread. */
bool threads_are_several(void);

/* Writes that the thread has its locks, those of which it has not: in front of an item of a call. */
void threads_tell_locks(void);

/* In a new process: what the threads of its parent have left is of no use. */
void threads_begin_child(void);

#endif
