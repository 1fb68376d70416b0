/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ready.h - the ready set: which agents can step, kept while steps are taken.
 *
 * After a step only those agents are asked whether they can step that the step may concern:
 *
 *     READY_FREE     it can, and its step is free         not asked: no other agent changes that
 *     READY_CHOICE   it can, and its step is not free     asked after every step, or, `free_only`, no more
 *     READY_EMPTY    a stream with nothing queued         asked when an operation is pushed to it
 *     READY_BLOCKED  it cannot step                       watches others (machine_watched): asked when one of
 *                                                         them has acted, or is a stream that has moved; a communicator
 *                                                         when a stream has started a collective on it
 *
 * So a step costs time in proportion to the agents it concerns, however many there are. An agent that has
 * acted is asked in any case. The data loader (agent 0) is left out, and programs built with `faults` have
 * no ready set.
 *
 *     ready_begin(set, state)           asks all agents
 *     ready_acts(set, state, agent)     the agent is about to step
 *     machine_step(...)
 *     ready_acted(set, state)           asks those that the step may concern
 */
#ifndef SWSIM_READY_H
#define SWSIM_READY_H

#include "conflicts.h"

enum readiness { READY_BLOCKED, READY_EMPTY, READY_CHOICE, READY_FREE };

/* `watcher` is in the list of `watched`. Places are never moved; a watcher that is asked leaves all
   lists. */
struct watching {
    int watcher, watched;
    int next, previous; /* in the list of `watched`; -1: none */
    int next_own;       /* the watcher's next place, or the next unused one; -1: none */
};

struct ready_set {
    const struct program *program;
    bool free_only;            /* READY_CHOICE is kept as it was found */
    enum readiness *readiness; /* per agent */
    int *news, news_count; /* agents that begin, or the last step, made able to step, in the order
                                  found; one that has acted and can go on is the last of them */
    int32_t *done;         /* per agent that is a stream: how far it was when it was last asked */
    struct watching *watches;
    int unused;                /* the first unused place; -1: none */
    int *head, *own;           /* per agent: its watchers; what it watches. -1: none */
    int *always, always_count; /* agents that are asked after every step */
    int *place;                /* per agent: its place in `always`; -1 */
    int acting, fed; /* of the step being taken: its agent, the stream it pushes to or -1 */
    bool
        gives; /* false: the step only takes what was awaited: who watches its agent need not be asked */
    struct agent_set due, enablers; /* scratch: agents to ask, enablers */
};

/* False: memory is exhausted. ready_fini in any case. */
bool ready_init(struct ready_set *set, const struct program *program, bool free_only);
void ready_fini(struct ready_set *set);

void ready_begin(struct ready_set *set, const struct state *state);
void ready_acts(struct ready_set *set, const struct state *state, int agent);
void ready_acted(struct ready_set *set, const struct state *state);

#endif
