/* SPDX-License-Identifier: Apache-2.0 */
/* print_random_plan.c - `print_random_plan SEED FORM [wide]`: a plan of random_plan.h, for shell
   tests. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random_plan.h"

static int usage(void)
{
    fputs("usage: print_random_plan SEED pipeline|threads|programs [wide]\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    bool wide = argc == 4 && strcmp(argv[3], "wide") == 0;
    if (argc != 3 && !wide)
        return usage();
    int form = 0;
    while (form < RANDOM_FORMS && strcmp(argv[2], random_form_key((enum random_form)form)) != 0)
        form++;
    if (form == RANDOM_FORMS)
        return usage();
    uint64_t seed = strtoull(argv[1], NULL, 10);
    char *text = (wide ? random_wide_plan : random_plan)(seed, (enum random_form)form);
    if (!text || fputs(text, stdout) < 0 || fflush(stdout) != 0)
        return 2;
    free(text);
    return 0;
}
