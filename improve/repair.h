/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repair.h - the smallest change of a plan that the checker itself proves repairs it.
 *
 * Generate and test. The edits of edits.h are tried one by one, the most likely first, each on a
 * copy of the plan that the ordinary checker judges; the first under which all wanted
 * properties are proved is the answer. If no single edit does it, the cheapest of those that changed
 * the violation are extended by the edits that their own counterexamples suggest, twice at most (a
 * beam search). So two or three edits are found by way of a first one that helps. The result was
 * proved, in full, like any plan.
 *
 *     plan --print--> text --parse--> copy --edit--> copy --print, parse--> candidate --verify-->
 *
 * A copy is the canonical text parsed again, so every candidate is a well-formed plan file.
 *
 * The budget counts candidates, states and machine steps, so that the answer does not depend on the machine; a
 * wall clock is the last guard, and the result names it as the reason.
 */
#ifndef SWSIM_REPAIR_H
#define SWSIM_REPAIR_H

#include "check/verify.h"

enum {
    REPAIR_CANDIDATES = 3000,               /* by default */
    REPAIR_STATES_A_CANDIDATE = 200,        /* on average: the budget of states */
    REPAIR_LEAST_STEPS = 1 << 16,           /* machine steps, however few candidates */
    REPAIR_STEPS_A_CANDIDATE = 300,         /* on average: the budget of machine steps */
    REPAIR_MICROSECONDS_A_CANDIDATE = 5000, /* on average: the last guard */
    REPAIR_MAX_EDITS = 3,
    REPAIR_MAX_DRIVERS = 2
};

struct repair_progress {
    uint64_t candidates, states;
    double seconds;
};

struct repair_options {
    struct verify_options verify; /* the question; its driver and progress do not matter */
    enum driver drivers[REPAIR_MAX_DRIVERS];
    bool violated[REPAIR_MAX_DRIVERS]; /* under which of them the plan is bad; at least one */
    int driver_count;
    uint64_t candidates; /* most to try; 0: REPAIR_CANDIDATES */
    uint64_t effort;     /* states it took to find the plan bad: the budget of states is never less
                            than a few times this many */
    void (*progress)(void *arg, const struct repair_progress *); /* may be NULL */
    void *progress_arg;
};

/* The caller embeds it and ends it with repair_fini; texts live in its arena. */
struct repair {
    struct arena arena;
    bool found;
    const char *change; /* in words; two edits are joined by "; and " */
    int edits;          /* 1 or 2 */
    bool weakens;       /* an order or an operation of the plan is given up */
    bool of_machine;    /* True if an edit is of the machine or of a library, not of the program. */
    bool proves[REPAIR_MAX_DRIVERS]; /* under which of the drivers the candidate is proved */
    const char *diff; /* hunks of the author's text if `edited`, else of the canonical one */
    const char *
        edited; /* the author's text with the repair, and an expectation `{}` if it had one; NULL: the
                           repair is none of that text (of a CSV file, of `generate`) */
    const char *text; /* the repaired plan as canonical text, its expectation `{}` if it had one */
    const char *why_not;         /* not found: the reason (static) */
    uint64_t candidates, states; /* tried, and explored for them */
};

/* STATUS_OK also when nothing was found. The plan is not changed. */
enum status repair_find(const struct plan *plan, const struct repair_options *options,
                        struct repair *out, struct diag *diag);
void repair_fini(struct repair *repair);

#endif
