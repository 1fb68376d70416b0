/*
 * worklist.h - the agents whose free step can be taken, kept while a chain of steps goes on.
 *
 * Nobody asks all agents at every step. A blocked agent watches those of whom one must act before it
 * can (machine_enablers), and is looked at again when one of them has. So a chain costs time in
 * proportion to its steps, however many agents there are.
 *
 *     begin: look at everybody
 *                 | can step, free       | can step, not free    | cannot
 *                 v                      v                       v
 *       hosts, devices (FIFO)     left for a choice       watches its enablers
 *                 |                                              ^
 *       taken, and stepped by the caller --- acted: look at it, -+ and at whoever watches it
 *
 * A free step is disabled by nobody, so what is listed stays listed until it is taken.
 */
#ifndef SWSIM_WORKLIST_H
#define SWSIM_WORKLIST_H

#include "machine/conflicts.h"

/* Agents, the one that has waited longest first: a ring with room for all. */
struct ready_list {
    int *agents;
    int first, count;
};

/* `watcher` stands in the list of `watched`. Places are never moved; a watcher that is looked at
   leaves all lists. */
struct watching {
    int watcher, watched;
    int next, previous; /* in the list of `watched`; -1: none */
    int next_own;       /* the watcher's next place, or the next unused one; -1: none */
};

struct worklist {
    const struct program *program;
    struct ready_list hosts, devices; /* threads; streams and communicators */
    struct watching *watches;
    int unused;                       /* the first unused place; -1: none */
    int *head, *own;                  /* per agent: who watches it; what it watches. -1: nobody */
    bool unwatched;                   /* places ran out: somebody may be able to step unnoticed */
    struct agent_set enablers, woken; /* scratch */
};

/* False: memory is exhausted. worklist_fini in any case. */
bool worklist_init(struct worklist *list, const struct program *program);
void worklist_fini(struct worklist *list);

void worklist_begin(struct worklist *list, const struct state *state);
/* `agent`, which had been taken, has stepped, and this is the state now. If it is still ready it comes
   last. */
void worklist_acted(struct worklist *list, const struct state *state, int agent);

/* The k-th agent that is ready, oldest first; and take it out. */
int ready_peek(const struct worklist *list, const struct ready_list *ready, int k);
int ready_take(const struct worklist *list, struct ready_list *ready, int k);
/* `agent` is taken though it may have been left on a list. */
void worklist_drop(struct worklist *list, int agent);

#endif
