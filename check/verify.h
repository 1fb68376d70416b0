/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.h - prove a plan or refute it: the outcome of every property, and the story of a violation.
 */
#ifndef SWSIM_VERIFY_H
#define SWSIM_VERIFY_H

#include "explain.h"
#include "search.h"
#include "suspects.h"
#include "plan/plan.h"

struct verify_report;

struct verify_options {
    struct program_options program; /* driver, iterations (-1: any number), ranks, max_depth */
    int many_ranks; /* host programs: of so many ranks, which do what those of the plan do; 0: of these alone */
    unsigned properties; /* bits of enum property; 0: all but faults */
    bool faults;         /* ask about failure safety; its bit and the plan's `expect:` ask, too */
    bool no_reduction;
    bool any_witness; /* do not look for a shorter counterexample */
    bool quick;       /* stop at the first violation, and find suspects instead of a story */
    struct search_limits limits;
    int threads;                    /* of a search; 0: one */
    size_t bitstate_bytes;          /* not 0: a bitstate search with a filter of this size, which
                                       proves nothing */
    const atomic_bool *interrupted; /* ends all searches, undecided; may be NULL */
    void (*progress)(void *arg, const struct search_progress *);
    void *progress_arg;
    /* Called at most once a plan, by any thread: a violation was found, and there is still much to do.
       `so_far` has `first` and its story. May be NULL. */
    void (*found)(void *arg, const struct verify_report *so_far);
    void *found_arg;
};

enum verdict { VERDICT_PROVED, VERDICT_VIOLATED, VERDICT_UNDECIDED };
const char *verdict_key(enum verdict verdict);

/* The caller embeds it, calls verify_fini, and owns it; texts live in its arena. */
struct verify_report {
    struct arena arena;
    const char *plan; /* its name */
    const char *file;
    enum driver driver;
    bool driver_named;                   /* it is the one that the plan is for, `driver:` */
    int64_t iterations, most_iterations; /* of the ranks' data: least, most; -1: any number */
    bool finite;                         /* a form without iterations */
    int repeated;                        /* ... but with a repeat, of so many at most; 0: none */
    bool any_times;                      /* proved for any greater number of them, too */
    int ranks;
    bool any_ranks;    /* proved for any number of them */
    const char *parts; /* of a proof by parts: which they are (many_ranks.h); else NULL */
    int64_t most_in_flight, most_bytes; /* of a rank at once: never more iterations, buffer bytes */
    int launch_queue;                   /* items of the longest queue of a stream */
    enum verdict verdict;
    enum outcome outcome[PROPERTY_COUNT];
    unsigned asked;                       /* bits of the properties */
    struct story stories[PROPERTY_COUNT]; /* of the violated ones */
    struct suspects suspects;             /* of `first`; only if `quick` */
    enum property first; /* the violation to show first; only if verdict is VIOLATED */
    const char *limit;   /* why it is undecided, NULL otherwise */
    unsigned
        maybe_always; /* bits of properties with OUTCOME_SOME: no run that avoids the violation was found, and the
                                     search for one did not end */
    const char *hidden;           /* why it is undecided though no limit was reached, else NULL */
    bool bitstate;                /* undecided only because it was a bitstate search */
    bool no_memory;               /* the system had no more memory: there is a message in diag */
    bool searched;                /* else structure alone decided */
    uint64_t states, transitions; /* of the main search */
    size_t peak_bytes;
    double seconds; /* in total, counterexamples included */
};

/* STATUS_OK whatever the verdict; an error only if the verification could not begin. */
enum status verify_plan(const struct plan *plan, const struct verify_options *options,
                        struct verify_report *out, struct diag *diag);
void verify_fini(struct verify_report *report);

/* True if the report agrees with the plan's expectations of this driver. Each difference is added to diag as a note. A
   property that the plan does not name must not be violated. */
bool verify_as_expected(const struct plan *plan, const struct verify_report *report,
                        struct diag *diag);

#endif
