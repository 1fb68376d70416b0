/* SPDX-License-Identifier: Apache-2.0 */
/*
 * one_run.h - races and lifetimes in a finite program of any size, from one of its runs.
 *
 * In a program whose steps all commute every run is a reordering of one, so one run, with vector clocks
 * (machine/clocks.h), shows everything there is. Where a choice remains it is taken somehow, and only what that run
 * shows is known. doc/checker.md has the argument.
 */
#ifndef SWSIM_ONE_RUN_H
#define SWSIM_ONE_RUN_H

#include "search.h"
#include "base/watch.h"

struct one_run {
    bool alone;    /* every run is a reordering of this one, which came to its end */
    bool done;     /* where all is done; else it hangs */
    unsigned seen; /* all properties violated, without a path */
    uint64_t steps;
    bool mismatch;                           /* it ended at one */
    unsigned found;                          /* PROPERTY_RACE, PROPERTY_LIFETIME, PROPERTY_VALUE: */
    struct search_path path[PROPERTY_COUNT]; /* the steps to the first; freed with one_run_fini */
};

/* `program` was built with options.clocks. The run ends early when the watch says so. */
enum status one_run_take(const struct program *program, struct search_watch *watch,
                         struct one_run *out, struct diag *diag);
/* The same of any program, and `look` sees the effect of every step. */
enum status one_run_observe(const struct program *program, struct search_watch *watch,
                            void (*look)(void *arg, const struct effect *effect), void *arg,
                            struct one_run *out, struct diag *diag);
void one_run_fini(struct one_run *run);

#endif
