/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quiet_thread.h - a thread that gets no signals of the process, which are for the program's own threads.
 *
 * A fault of its own (SIGSEGV, SIGBUS, SIGFPE, SIGILL) reaches the program's handler as in any thread: where that is
 * blocked, the system ends the process without asking it.
 */
#ifndef SWSIM_QUIET_THREAD_H
#define SWSIM_QUIET_THREAD_H

#include <pthread.h>

/* As pthread_create, with default attributes. Returns errno. */
int quiet_thread_start(pthread_t *thread, void *(*function)(void *), void *arg);

#endif
