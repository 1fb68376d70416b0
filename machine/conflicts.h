/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conflicts.h - which agents matter to the next step of one agent.
 *
 * Two questions about an agent in a state, from which sets of steps are built that may be explored
 * before all others (check/reduce.h):
 *
 *     it can step:  which agents may, now or later, take a step that conflicts with this one?
 *     it cannot:    of which agents must one act before it can? While all of these stand still, it
 *                   stays blocked, whatever the others do (a necessary enabling set).
 *
 * Both answers may name too many agents, never too few. Faults are left out: a step that commutes with
 * all others does not commute with the death of its rank, so programs built with `faults` are searched
 * whole. Sets are the caller's and keep their memory.
 *
 *     conflicts.c   why steps conflict; free steps; conflicts in a state
 *     enablers.c    the agents that a blocked agent waits for
 *     uses.h        the table both read: which agent uses which object how
 */
#ifndef SWSIM_CONFLICTS_H
#define SWSIM_CONFLICTS_H

#include "machine.h"

/* The last step of building a program: which operations commute with every step of every other agent. */
enum status program_find_conflicts(struct program *program, struct diag *diag);

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

static inline bool agent_set_has(const struct agent_set *set, int agent)
{
    return set->stamp[agent] == set->now;
}

static inline void agent_set_add(struct agent_set *set, int agent)
{
    if (agent_set_has(set, agent))
        return;
    set->stamp[agent] = set->now;
    set->members[set->count++] = agent;
}

/* `agent` can step: add all others whose steps, now or later, may conflict with its next one. */
void machine_conflicts(const struct program *program, const struct state *state, int agent,
                       struct agent_set *set);

/* `agent` cannot step: add agents of whom one must act before it can. None is added where it never
   can again. */
void machine_enablers(const struct program *program, const struct state *state, int agent,
                      struct agent_set *set);
/* The same, but a stream that must move is itself in the set where it waits for another one: if it moves, and if an agent
   of the set acts, the blocked agent may be able to step. */
void machine_watched(const struct program *program, const struct state *state, int agent,
                     struct agent_set *set);

/* What is in flight: the iterations of a pipeline, the memory of a host program. Add the threads that may still count it,
   drivers or those that allocate, if the next step of this enabled agent may make it less. */
void machine_counting_threads(const struct program *program, const struct state *state, int agent,
                              struct agent_set *set);
/* The rank of which the next step of this agent counts what is in flight; -1: of none. */
int machine_counted_rank(const struct program *program, const struct state *state, int agent);
/* Add all agents that may make it less on this rank. */
void machine_finishers(const struct program *program, int rank, struct agent_set *set);

#endif
