/* SPDX-License-Identifier: Apache-2.0 */
/* quiet_thread.c - see quiet_thread.h. */
#include "quiet_thread.h"

#include <signal.h>

int quiet_thread_start(pthread_t *thread, void *(*function)(void *), void *arg)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    const int error = pthread_create(thread, NULL, function, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}
