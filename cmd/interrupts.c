/* SPDX-License-Identifier: Apache-2.0 */
/* interrupts.c - see interrupts.h. */
#include "interrupts.h"

#include <signal.h>
#include <stddef.h>

static atomic_bool interrupted;

static void interrupt(int signal_number)
{
    (void)signal_number;
    atomic_store(&interrupted, true);
}

void interrupts_handle(void (*handler)(int), unsigned flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = (int)flags}, before;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL); /* cannot fail with these arguments */
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, NULL, &before);
    if (before.sa_handler != SIG_IGN) /* as nohup sets it */
        sigaction(SIGHUP, &action, NULL);
}

const atomic_bool *interrupts_catch(void)
{
    interrupts_handle(interrupt, SA_RESETHAND);
    return &interrupted;
}

bool interrupts_seen(void)
{
    return atomic_load(&interrupted);
}
