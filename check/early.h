/* SPDX-License-Identifier: Apache-2.0 */
/*
 * early.h - the first violation, printed while the searches go on.
 *
 * Every search of a program calls early_look regularly. When a violation has been found and a fixed number of machine
 * steps has been taken since, the violation is printed as it was found. Steps are counted instead of seconds, so that the
 * output is the same on every machine.
 */
#ifndef SWSIM_EARLY_H
#define SWSIM_EARLY_H

#include "verify.h"

/* The caller embeds it; `program` and what `result` points to must outlive it. */
struct early {
    const struct program *program;
    unsigned asked; /* bits of enum property: what is told of */
    void (*found)(void *arg, const struct verify_report *so_far); /* NULL: nobody is told */
    void *found_arg;
    const struct search_result *result; /* of the main search; NULL: it goes on */
    uint64_t from;                      /* transitions when the violation was first seen */
    bool seen, told;
};

void early_begin(struct early *early, const struct program *program, unsigned asked,
                 void (*found)(void *arg, const struct verify_report *so_far), void *found_arg);

/* `arg` is a struct early: search_options.going_on. */
void early_look(void *arg, const struct search_result *so_far);

#endif
