/*
 * enabling.h - which agents matter to the next step of one agent.
 *
 * Two questions about an agent in a state, from which sets of steps are built that may be explored
 * before all others (check/reduce.h):
 *
 *     it can step:  who may, now or later, take a step that conflicts with this one?
 *     it cannot:    who must act before it can? While all of these stand still, it stays blocked,
 *                   whatever the others do (a necessary enabling set).
 *
 * Both err towards naming too many. They know nothing of faults: a step that commutes with all others
 * does not commute with the death of its rank, so programs built with `faults` are searched whole. Sets are the caller's and keep their memory.
 */
#ifndef SWSIM_ENABLING_H
#define SWSIM_ENABLING_H

#include "machine.h"

/* A set of agents in the order they came.
 *
 *     members: [4, 1, 7 | ...]    stamp[4] = stamp[1] = stamp[7] = now, all others are less
 *
 * So emptying it is one addition. */
struct agent_set {
    int *members;
    int count;
    unsigned *stamp, now;
};

/* False: memory is exhausted. agent_set_fini in any case. */
bool agent_set_init(struct agent_set *set, int agent_count);
void agent_set_fini(struct agent_set *set);
void agent_set_clear(struct agent_set *set, int agent_count);
bool agent_set_has(const struct agent_set *set, int agent);
void agent_set_add(struct agent_set *set, int agent);

/* `agent` can step: add all others whose steps, now or later, may conflict with its next one. */
void machine_conflicts(const struct program *program, const struct state *state, int agent,
                       struct agent_set *set);

/* May this enabled step finish work of an iteration, so that fewer are in flight? */
bool machine_may_finish(const struct program *program, const struct state *state, int agent);
/* Add the drivers for whose count of iterations in flight the agent's next step matters, unless they
   are at their end. */
void machine_counting_drivers(const struct program *program, const struct state *state, int agent,
                              struct agent_set *set);
/* Add everybody who may finish work of this rank. */
void machine_finishers(const struct program *program, const struct state *state, int rank,
                       struct agent_set *set);

/* `agent` cannot step: add agents of whom one must act before it can. None is added where it never
   can again. */
void machine_enablers(const struct program *program, const struct state *state, int agent,
                      struct agent_set *set);

#endif
