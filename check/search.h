/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.h - every interleaving of a program: explicit-state search over the machine.
 *
 * Breadth-first, exact, over canonical states: with an open number of iterations the reachable
 * graph of a pipeline is finite, and the search closes it. With reduction, steps that commute with
 * everything (machine_step_free) are taken at once and alone, and only states with a real choice,
 * or behind the retirement of an iteration, are stored; doc/checker.md proves that no violation is
 * lost. Without reduction every state is a node.
 *
 * The result, including the numbers of states and the steps of witnesses, does not depend on the
 * number of threads. A bitstate search (bitstate.h) remembers states by their hash alone: its
 * violations are real, but it proves nothing absent.
 */
#ifndef SWSIM_SEARCH_H
#define SWSIM_SEARCH_H

#include <stdatomic.h>

#include "base/diag.h"
#include "machine/machine.h"

struct search_limits {
    uint64_t states;       /* 0: none */
    uint64_t steps;        /* transitions; 0: none */
    uint64_t steps_behind; /* transitions after that of the first violation; 0: none */
    size_t mem_bytes;      /* 0: the default, SEARCH_DEFAULT_MEMORY */
    int64_t
        until_ns; /* a point of time, by stopwatch_now_ns, that all searches for a verdict share; 0: none */
    int64_t time_ns; /* from which until_ns is made anew for each plan and driver; 0: none */
};
#define SEARCH_DEFAULT_MEMORY ((size_t)2 << 30)

struct search_progress {
    uint64_t states, transitions;
    uint64_t frontier; /* states found and not yet expanded */
    size_t bytes;
    double seconds;
};

enum { SEARCH_MAX_THREADS = 256 };

struct search_result;

struct search_options {
    bool reduction;
    unsigned properties;    /* bits of enum property: which violations are looked for */
    unsigned stop_at;       /* stop as soon as one of these is found (0: explore everything) */
    unsigned stop_when_all; /* stop as soon as all of these are found (0: explore everything) */
    unsigned moot, moot_by; /* `moot` need not be found once one of `moot_by` is */
    unsigned cut_at;        /* do not go on behind a violation of these */
    uint64_t
        probe_steps; /* machine steps of walks ahead of the search, where the first states have no
                               violation: probe.h; 0: none */
    bool endless;    /* do not follow the end of the data; ends_well then means infinite runs */
    /* Called for every state a run passes; true: a fault in this state leaves an agent blocked, which
       is reported as PROPERTY_FAULTS with the path to this state. May be NULL; otherwise the search
       has one thread. */
    bool (*visit)(void *arg, const struct state *state);
    void *visit_arg;
    struct search_limits limits;
    int threads;                    /* 0: one */
    size_t bitstate_bytes;          /* 0: exact; else the size of the filter; one thread */
    const atomic_bool *interrupted; /* the search ends when this turns true; may be NULL */
    void (*progress)(void *arg,
                     const struct search_progress *); /* may be NULL; about twice a second,
                                                      by any thread, one at a time */
    void *progress_arg;
    /* Called again and again while the search goes on, by any thread, one at a time. May be NULL. */
    void (*going_on)(void *arg, const struct search_result *so_far);
    void *going_on_arg;
};

/* A path from the initial state that ends in (or right after the step to) a violation. */
struct search_path {
    struct transition *steps; /* malloc'd */
    size_t count;
};

/* Append a step; *cap is the capacity of path->steps. False: memory is exhausted. */
bool search_path_push(struct search_path *path, size_t *cap, struct transition step);

struct search_result {
    unsigned found;                             /* properties violated */
    struct search_path witness[PROPERTY_COUNT]; /* of those found */
    bool complete;     /* the graph was closed: violations not found are proved absent */
    const char *limit; /* why it is not complete, NULL otherwise (static) */
    bool no_memory;    /* the system refused memory: there is a message in diag, and `limit` */
    double coverage;   /* bitstate: estimated part of the states that was visited; else 0 */
    bool ends_well;    /* some run reaches the end or (open number of iterations) is infinite */
    bool avoided; /* some run does so, hangs or mismatches without a violation of `cut_at`; with
                          reduction runs that mismatch are not all seen */
    uint64_t states, transitions;
    size_t peak_bytes;
    double seconds;
};

/* `limit` of a bitstate search that reached its end, and of one ended by `steps_behind`. */
extern const char SEARCH_BITSTATE[], SEARCH_BEHIND[];

/* True if enough has been found. */
static inline bool search_has_enough(const struct search_options *options, unsigned found)
{
    unsigned all = options->stop_when_all & ~(found & options->moot_by ? options->moot : 0);
    return found & options->stop_at || (options->stop_when_all && (found & all) == all);
}

/* STATUS_OK also if a violation was found, a limit was reached or memory ran out on the way;
   STATUS_SYSTEM if the search could not begin. The caller frees the result with search_result_fini. */
enum status search_run(const struct program *program, const struct search_options *options,
                       struct search_result *out, struct diag *diag);
void search_result_fini(struct search_result *result);

#endif
