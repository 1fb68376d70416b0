/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce.h - which steps must be explored from a state, and which may be explored later.
 *
 * The reducer answers two questions. Is there a step that may be taken alone (reducer_next_free)? If
 * not, which steps make up the choice (reducer_choices)? The argument that nothing is lost, property
 * by property, is in doc/checker.md. In short:
 *
 *     free steps       commute with all others; they are taken at once, in chains; a ready set
 *                      (machine/ready.h) lists them
 *     stubborn sets    where no free step is left: a set of agents, closed so that no others can
 *                      interfere; only its steps are explored (Overman; Valmari; Godefroid 1996,
 *                      ch. 4)
 *
 * The reducer keeps scratch memory, so each searching thread has its own. Its answers depend only on
 * the state where a chain began and the steps since, so a chain can be replayed.
 */
#ifndef SWSIM_REDUCE_H
#define SWSIM_REDUCE_H

#include "machine/ready.h"

/* The number of iterations in flight is checked at each admission, and finishing work lowers it; so the bytes
   that are held, at each allocation of a host program. If the question is whether it can be too high (LATE_DEVICE), no step
   that finishes work is moved before an admission that others may still make; if the question is whether a run can keep it
   low (LATE_ADMISSION), no admission is moved before a finish. The other direction is harmless. */
enum pace { PACE_ANY, PACE_LATE_DEVICE, PACE_LATE_ADMISSION };

/* A thread may leave out the wait behind a copy of pageable memory. Where that would be over at once (machine_wait_is_idle), a
   run without it is the same but for what the thread knows: it violates all that the run with the wait violates. So a search
   for violations needs no such waits, and one for a run without a violation needs no other runs. */
enum staged_waits { STAGED_EITHER, STAGED_LEAST, STAGED_MOST };

/* Agents with a free step, the one that has waited longest first: a ring with room for all. */
struct free_queue {
    int *agents;
    int first, count, size;
};

struct reducer {
    const struct program *program;
    enum pace pace;
    enum staged_waits waits;
    const int *component; /* per rank: the first rank of its component: program->fellows */
    bool has_components;
    int current; /* the component whose steps are taken */
    int last;    /* the agent of the last step named; -1: none */
    int choice;  /* of that step */
    int turn,
        turn_left; /* host programs: the thread whose turn it is, and its steps left; -1: none */
    struct ready_set ready;
    struct free_queue hosts, devices; /* threads; streams and communicators */
    struct agent_set closure, best;   /* the stubborn set being tried, the best so far */
};

/* False: memory is exhausted. reducer_fini in any case. */
bool reducer_init(struct reducer *reducer, const struct program *program, enum pace pace,
                  enum staged_waits waits);
void reducer_fini(struct reducer *reducer);

/* A chain of free steps begins at `state`. */
void reducer_begin(struct reducer *reducer, const struct state *state);
/* An agent with a step to be taken alone, by reducer->choice, or -1: there is a choice, or the run ends. The caller takes
   that step and asks again in the state behind it. */
int reducer_next_free(struct reducer *reducer, const struct state *state);

/* The transitions to explore from `state`; `out` has room for program->agent_count + 1. Returns
   their number; 0: the run ends here. */
int reducer_choices(struct reducer *reducer, const struct state *state, struct transition *out);

/* True if the ranks that hang in `state` have admitted all iterations of their data. */
bool reducer_data_ended(const struct reducer *reducer, const struct state *state);

#endif
