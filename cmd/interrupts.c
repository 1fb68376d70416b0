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

const atomic_bool *interrupts_catch(void)
{
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL); /* cannot fail with these arguments */
    return &interrupted;
}

bool interrupts_seen(void)
{
    return atomic_load(&interrupted);
}
