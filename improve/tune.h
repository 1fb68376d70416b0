/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune.h - a better plan: other stages, streams, threads, enqueue orders and depths, searched.
 *
 * A candidate is the given plan with other choices, all of them in one row of integers:
 *
 *     cells   | stage of each task | its stream | its thread group | order | rule | max_depth |
 *               TUNE_STAGE           TUNE_STREAM  TUNE_GROUP         TUNE_ORDER
 *
 * `order` is a list of all tasks where `rule` is ORDER_EXPLICIT, else zeros, so that equal choices are
 * equal memory. Dependences, buffers, work, durations and the machine are never touched.
 *
 * Questions to a candidate, the cheapest first:
 *
 *     fits --> proved --> predicted --> better? --> proved under the other driver --> same view --> kept
 *
 * fits       stages and depth within the limit; depth x bytes of an iteration + shared bytes within the
 *            memory budget.
 * proved     by the ordinary checker, every property, for any number of iterations. If the given plan is
 *            proved under the other driver as well, the candidate has to be.
 * predicted  the exact period (event_graph.h: by a graph, or of a run that repeats itself) where there is
 *            one; otherwise, with jitter or shared devices, the mean of a short simulation, with the same
 *            random numbers for all. Where the given plan has an exact period, a candidate without one is
 *            dropped; and where no timing changes the order of its steps, the same is asked of a candidate:
 *            otherwise two threads might fill one stream in an arbitrary order.
 * same view  equal results: tune_view.h.
 *
 * The search (tune_search.c) is local: starts made by cutting the order within an iteration into
 * stages, climbed from by single moves in an order drawn from the seed, then disturbed and climbed
 * again until the budget of candidates is spent. It counts candidates and reads no clock, so the
 * answer is the same everywhere, unless it is interrupted. The result need not be an optimum.
 *
 * The tune owns copies of the plan, parsed from its canonical text. tune_open / tune_close.
 */
#ifndef SWSIM_TUNE_H
#define SWSIM_TUNE_H

#include <stdatomic.h>

#include "check/verify.h"
#include "plan/plan.h"
#include "machine/program.h"
#include "sim/maxplus/steady.h"

/* The name of plans parsed again, in messages. */
#define TUNE_NAME "tuned.yaml"

enum {
    TUNE_CANDIDATES = 10000,          /* tried by default where periods are exact */
    TUNE_SIMULATED_CANDIDATES = 1000, /* and where they are simulated */
    TUNE_MOST_CANDIDATES = 10000000,
    TUNE_MOST_SAMPLES = 1 << 20, /* in a microbatch */
    TUNE_DEPTH = 4,              /* by default no deeper than this, or than the given plan is */
    TUNE_SPARES = 2              /* streams, and thread groups, beyond those of the plan */
};

enum tune_row { TUNE_STAGE, TUNE_STREAM, TUNE_GROUP, TUNE_ORDER, TUNE_ROWS };

/* The choices that may be changed. */
#define TUNE_KNOB_LIST(X)                                                                          \
    X(STAGE, "stage") X(STREAM, "stream") X(GROUP, "group") X(ORDER, "order") X(DEPTH, "depth")
enum tune_knob {
#define X(name, key) TUNE_KNOB_##name,
    TUNE_KNOB_LIST(X)
#undef X
        TUNE_KNOBS
};
const char *tune_knob_key(enum tune_knob knob);

struct tune_progress {
    uint64_t candidates;
    double period_ns; /* of the best so far */
};

struct tune_options {
    enum driver driver;             /* CLOCK or DATAFLOW */
    uint64_t candidates;            /* most to try; 0: the default */
    uint64_t seed;                  /* of the search, and of the simulations */
    int depth;                      /* most stages, or iterations in flight; 0: the default */
    int64_t memory_bytes;           /* of a rank; -1: any */
    bool allow_stale;               /* do not ask for the same view */
    const atomic_bool *interrupted; /* ends the search early, may be NULL */
    unsigned kept;                  /* bits 1u << enum tune_knob: left as they are */
    void (*progress)(void *arg, const struct tune_progress *); /* may be NULL */
    void *progress_arg;
};

/* How good a candidate is; compared member by member, less is better. */
struct tune_score {
    bool unfit;       /* not proved, or not within the limits: only the given plan may be so */
    double period_ps; /* rounded, so that equal periods compare equal */
    int depth;
    int streams, groups; /* that the given plan does not have */
    int changes;         /* cells that differ from the given plan's */
};

struct tune_counts {
    uint64_t tried;     /* changed plans looked at: within limits, not seen before */
    uint64_t proved;    /* under the driver in question */
    uint64_t predicted; /* have a period */
    uint64_t stale;     /* would have been kept, but see another view */
};

struct tune {
    const struct tune_options *options;
    uint64_t budget;
    int depth_limit;
    struct plan given, work; /* as parsed; `work` is changed in place */
    size_t tasks, cells;     /* cells: integers of a candidate */
    int streams, groups;     /* table sizes, spares included */
    int64_t iteration_bytes, shared_bytes;
    int most_retired;     /* retired iterations in flight that fit into the plan's launch queue */
    bool has_other;       /* the given plan is proved under the other driver, too */
    enum verdict verdict; /* of the given plan under this driver */
    bool exact;           /* periods are exact */
    enum steady_way way;  /* and found in one of the ways up to this */
    bool has_view;
    uint64_t view;
    uint64_t states; /* limit of the checker for a candidate */
    double quantum_ps;
    uint64_t *seen; /* open addressing: hashes of candidates, 0 empty */
    size_t seen_mask;
    struct tune_counts counts;
    int *first, *best; /* cells */
    int *listed;       /* the explicit enqueue order of `work` */
    struct tune_score first_score, best_score;
};

/* Judge the given plan. STATUS_INPUT: not of the pipeline form; STATUS_SYSTEM. On failure *out needs no
   tune_close. `options` must outlive it. */
enum status tune_open(const struct plan *plan, const struct tune_options *options, struct tune *out,
                      struct diag *diag);
void tune_close(struct tune *tune);

/* Search; the best is in tune->best, which may be the given plan. */
enum status tune_search(struct tune *tune, struct diag *diag);

/* True if the best is better than the given plan. */
bool tune_found(const struct tune *tune);

/* ---- for the search -------------------------------------------------------------------------- */

/* Where in a candidate's cells something stands. */
static inline size_t tune_at(const struct tune *tune, enum tune_row row)
{
    return (size_t)row * tune->tasks;
}
static inline size_t tune_rule_at(const struct tune *tune)
{
    return TUNE_ROWS * tune->tasks;
}
static inline size_t tune_depth_at(const struct tune *tune)
{
    return TUNE_ROWS * tune->tasks + 1;
}
static inline bool tune_may(const struct tune *tune, enum tune_knob knob)
{
    return !(tune->options->kept & 1u << knob);
}

/* The candidate's choices in tune->work. */
void tune_apply(struct tune *tune, const int *cells);

/* Stages, or max_depth under data-flow. */
int tune_depth(const struct tune *tune, const int *cells);
/* Iterations of a rank that may have unfinished work at this depth, and what they and the rest take. */
int tune_in_flight(const struct tune *tune, int depth);
int64_t tune_bytes(const struct tune *tune, int depth);

/* The enqueue order of rank 0 that the candidate has, whatever its rule. */
enum status tune_order(struct tune *tune, const int *cells, int *out, struct diag *diag);

/* Judge a candidate that was not seen before. *kept: it beats `bar` in every respect above; its score
   then. One that was seen, or for which there is no budget left, is not kept. */
enum status tune_judge(struct tune *tune, const int *cells, const struct tune_score *bar,
                       struct tune_score *score, bool *kept, struct diag *diag);
/* No budget left, or interrupted. */
bool tune_is_spent(const struct tune *tune);
bool tune_is_interrupted(const struct tune *tune);

/* a < b. */
bool tune_is_better(const struct tune_score *a, const struct tune_score *b);

/* ---- for the result -------------------------------------------------------------------------- */

/* Different values from `least` on among the tasks' cells of a row. */
int tune_count_used(const struct tune *tune, const int *cells, enum tune_row row, int least);

/* The flag that ends what is begun now: once it is set, what is left to do is the answer, which takes its short time. */
const atomic_bool *tune_own_interrupt(const struct tune_options *options);

/* Verify every property for any number of iterations. `quick`: a candidate, up to `states` states and without
   `serial`: its order of accesses is compared with that of the given plan. */
enum status tune_verify(const struct plan *plan, const struct tune_options *options,
                        enum driver driver, bool quick, uint64_t states, struct verify_report *out,
                        struct diag *diag);

/* The time of an iteration, NAN if it never ends, or is not exact and has to be. */
enum status tune_find_period(const struct plan *plan, const struct tune_options *options,
                             enum steady_way last, bool only_exact, struct steady *steady,
                             double *out_ns, struct diag *diag);

/* ---- the result ------------------------------------------------------------------------------ */

/* A plan judged as a user would judge it, from its text. */
struct tune_result {
    const char *text; /* canonical; in plan.arena */
    struct plan plan; /* parsed from it */
    enum verdict verdict;
    double period_ns;                      /* NAN: none */
    struct steady steady;                  /* kind UNKNOWN where there is none */
    int depth, in_flight, streams, groups; /* in_flight: iterations of a rank at most */
    int64_t bytes;                         /* shared + in flight, of a rank */
};

/* The canonical text of a candidate, read again, verified in full and predicted. */
enum status tune_examine(struct tune *tune, const int *cells, struct tune_result *out,
                         struct diag *diag);
void tune_result_fini(struct tune_result *result);

/* Expectations about the given plan do not hold for another one, which expects no violation. */
void tune_expect_no_violation(struct expectation *expect);

/* The name of the plan that is found for the plan of this name, in `arena`: NAME_tuned. NULL: no memory. */
const char *tune_name(const char *name, struct arena *arena);

/* The changes of the best in words, one line each; NULL ends the list. In `arena`; NULL: no memory. */
const char **tune_describe(struct tune *tune, struct arena *arena);

#endif
