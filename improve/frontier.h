/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frontier.h - schedules of rank programs by time and memory: every choice tried, proved and predicted.
 *
 * A candidate is the given plan with another schedule and other values of a few keys, one integer an axis:
 *
 *     schedule      index of generate_name; -1: the given plan as it is
 *     microbatches  of a step, in the given size; candidates are compared by the time of one
 *     size          samples in a microbatch; the step keeps its samples, so it has more or fewer microbatches
 *     chunks        stages a rank; the model stays the same, so more stages are smaller ones
 *     group         as `generate: {group}`; 0: that of the schedule
 *     held          as `generate: {memory}`, of schedules that are found; 0: their own; HELD_FIT: as many as each rank has memory for
 *     balance, checkpoint, p2p   as the keys of a plan
 *
 * Questions to a candidate, the cheapest first:
 *
 *     possible --> within memory --> proved --> predicted --> no other is as fast with as little memory
 *
 * possible   the schedule can have these parameters, and trains if the given plan does.
 * memory     the most bytes that a rank holds (plan/schedules/rank_memory.h). Where the plan gives no bytes they are
 *            counted in activations of a stage of the given plan. A limit is the candidate's `machine: {memory}`.
 * proved     by the ordinary checker, every property but faults, with a limit of states.
 *
 * The candidates that pass the last one are the frontier.
 */
#ifndef SWSIM_FRONTIER_H
#define SWSIM_FRONTIER_H

#include <stdatomic.h>

#include "check/verify.h"
#include "plan/plan.h"

#define AXIS_LIST(X)                                                                               \
    X(SCHEDULE, "schedule")                                                                        \
    X(MICROBATCHES, "microbatches")                                                                \
    X(SIZE, "size")                                                                                \
    X(CHUNKS, "chunks")                                                                            \
    X(GROUP, "group")                                                                              \
    X(HELD, "held")                                                                                \
    X(BALANCE, "balance")                                                                          \
    X(CHECKPOINT, "checkpoint")                                                                    \
    X(CHANNEL, "p2p")
enum axis {
#define X(name, key) AXIS_##name,
    AXIS_LIST(X)
#undef X
        AXES
};
const char *axis_key(enum axis axis);

/* The word of a value; NULL: the value is a number, or there is no such word. */
const char *axis_word(enum axis axis, int value);
/* True if the axis has words. Else its values are numbers. */
bool axis_has_words(enum axis axis);

enum { AXIS_MOST = 32, FRONTIER_AS_GIVEN = -1, HELD_FIT = -1 };

struct axis_values {
    int items[AXIS_MOST];
    size_t count; /* 0: the default */
};

#define FATE_LIST(X)                                                                               \
    X(UNTRIED, "untried")                                                                          \
    X(REFUSED, "refused")                                                                          \
    X(IMPOSSIBLE, "impossible")                                                                    \
    X(HEAVY, "beyond memory")                                                                      \
    X(VIOLATED, "violated")                                                                        \
    X(UNDECIDED, "undecided")                                                                      \
    X(PROVED, "proved")
enum frontier_fate {
#define X(name, key) FATE_##name,
    FATE_LIST(X)
#undef X
        FATES
};
const char *fate_key(enum frontier_fate fate);
/* It has bytes and a verdict of its own: it is not untried, refused, or nothing that its schedule has. */
bool fate_is_tried(enum frontier_fate fate);

/* Without pointers: it travels between processes as it is. */
struct candidate {
    int at[AXES];
    int held_least,
        held_most; /* activations a rank may hold, of the ranks, where at[AXIS_HELD] is HELD_FIT */
    enum frontier_fate fate;
    enum property violated;                /* FATE_VIOLATED */
    double step_ns, microbatch_ns, bubble; /* NAN unless proved */
    int64_t bytes;                         /* the most of a rank; not of the impossible */
    int64_t left_bytes; /* of the rank with the least room beyond them, negative: it lacks so many;
                           INT64_MAX: there is no limit */
    bool frontier;
};

struct frontier_options {
    struct axis_values axes[AXES];
    int64_t memory_bytes;           /* of every rank, 0: any; -1: as the plan says */
    int samples;                    /* of a given microbatch; 0: what the model says, else 1 */
    int half_size;                  /* samples at which a pass is half as fast as it can be */
    const atomic_bool *interrupted; /* ends the search early, may be NULL */
    void (*progress)(void *arg, size_t done, size_t count); /* may be NULL */
    void *progress_arg;
};

struct frontier {
    const struct plan *plan;
    const struct frontier_options *options;
    struct arena *arena;
    struct machine_spec machine;           /* the plan's, with the memory that counts */
    int ranks, chunks, microbatches, size; /* of the given plan */
    int stages;                            /* of one copy of its model */
    bool trains;                           /* it has passes backward */
    bool has_times;                        /* else F, I and W are assumed to take 1 ms each */
    bool has_bytes;               /* else `bytes` are FRONTIER_ACTIVATION for an activation */
    struct candidate given;       /* the choice that the given plan made */
    struct candidate *candidates; /* the first is the given plan */
    size_t count;
    size_t fates[FATES];
};

/* True if the given plan made this choice. */
bool frontier_is_given(const struct frontier *frontier, const struct candidate *candidate);

/* Candidates that could stand on the frontier and are not judged: interrupted, refused (beyond a limit of plans, say), or undecided by the checker.
   0: no choice of these values is faster with no more memory. After frontier_sort. */
size_t frontier_unjudged(const struct frontier *frontier);

enum { FRONTIER_ACTIVATION = 1 << 20 };

/* List the candidates of a plan of FORM_PROGRAMS. `plan`, `options` and `arena` outlive *out. */
enum status frontier_open(const struct plan *plan, const struct frontier_options *options,
                          struct arena *arena, struct frontier *out, struct diag *diag);

/* Try every `step`-th candidate from `first` on. */
enum status frontier_try(struct frontier *frontier, size_t first, size_t step, struct diag *diag);

/* All have been tried: which of them are the frontier. They stand first then, that with the least memory
   first; behind them the others, the fastest first. */
void frontier_sort(struct frontier *frontier);

/* The microbatches of a step, in the candidate's size; 0: samples are left over. */
int frontier_microbatches(const struct frontier *frontier, const struct candidate *candidate);
/* The activations that the ranks of a found schedule may hold, the most of a rank; 0: the schedule's own number. */
int frontier_held(const struct candidate *candidate);

/* The plan of a candidate, which shares memory with the given one; the rest is in `arena`. */
enum status frontier_plan(const struct frontier *frontier, const struct candidate *candidate,
                          struct arena *arena, struct plan *out, struct diag *diag);

#endif
