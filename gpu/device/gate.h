/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.h - forces the steps of a run into a given order, so that a counterexample really happens.
 *
 *     witness:   r0 train pushes | r1 train pushes | r0 stream starts | ... | last step
 *                                  ^ at: the current turn
 *     r1 train   -- gate_enter --> its turn: pushes --> gate_leave --> the next one's turn
 *     r0 stream  -- gate_enter ..... waits
 *
 * An agent enters before it makes a step of the machine and leaves when the step has taken effect. In
 * between it has the turn alone, so its log entries are in the witness's order, too. Behind the last
 * step the gate is open and the run is an ordinary one. An agent that is not in the rest of the witness
 * waits until then.
 *
 * A collective is completed by its communicator, in one step for all: each member's stream enters for
 * it, and the turn is over when all of them have left. The data loader has no thread: its answers are
 * fixed before the run starts and are no steps here.
 *
 * NULL stands for the open gate: a run that is not forced pays one comparison a step.
 *
 * Locks: the gate's own is below all others; gate_leave may be called with any lock held, gate_enter
 * with no lock that the agent with the turn needs. Any thread may release the gate.
 */
#ifndef SWSIM_GATE_H
#define SWSIM_GATE_H

#include <stddef.h>

#include "base/diag.h"

struct gate;
struct program;
struct transition;

/* The gate for a run of `program`, whose machine must be able to take these steps in this order: else
   STATUS_INPUT. `steps` are copied but for the data loader's. */
enum status gate_open(const struct program *program, const struct transition *steps, size_t count,
                      struct gate **out, struct diag *diag);
void gate_close(struct gate *gate);

/* Wait for the agent's turn, for the end of the witness or for gate_release. */
void gate_wait(struct gate *gate, int agent);
/* The agent's step has been taken. After the end, or without the turn: nothing happens. */
void gate_pass(struct gate *gate, int agent);

static inline void gate_enter(struct gate *gate, int agent)
{
    if (gate)
        gate_wait(gate, agent);
}

static inline void gate_leave(struct gate *gate, int agent)
{
    if (gate)
        gate_pass(gate, agent);
}

/* Open it early: the run stops. NULL is allowed. */
void gate_release(struct gate *gate);

/* Steps taken so far, and all there are to take. */
size_t gate_taken(struct gate *gate);
size_t gate_steps(const struct gate *gate);
/* The agent with the turn, or with it when the gate was released; -1: all steps have been taken. */
int gate_turn(struct gate *gate);
/* The choice of the step that has the turn; -1: all steps have been taken. */
int gate_choice(struct gate *gate);

#endif
