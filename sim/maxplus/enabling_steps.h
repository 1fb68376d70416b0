/* SPDX-License-Identifier: Apache-2.0 */
/*
 * enabling_steps.h - the steps of a simulated run, each with its enabling step: the one that made it possible.
 *
 * The steps the simulator takes go through a machine of their own. An agent that could not step and now
 * can was enabled by the step just taken, and machine_why says why it could not; one that can go on after
 * its own step was enabled by that. Since the simulator takes every step as early as it can, a step is late
 * by its own duration and by nothing else:
 *
 *     from     ----x enabled_ns
 *     the step     [..........its duration..........]x time_ns
 *
 * So from any step the enabling steps lead back to the beginning without a gap.
 *
 * Steps are numbered from 0; the oldest may be forgotten. A step costs about twice what it does in the
 * machine, three times with reasons.
 */
#ifndef SWSIM_ENABLING_STEPS_H
#define SWSIM_ENABLING_STEPS_H

#include "machine/machine.h"

struct enabling_steps;

struct enabled_step {
    int64_t time_ns, enabled_ns;
    int64_t from; /* the step that enabled it; -1: it was possible from the beginning */
    int agent;
    int op; /* -1: a driver's step */
    enum effect_kind kind;
    int64_t iteration; /* as in struct effect, and `violated` too */
    unsigned violated;
    struct wait wait; /* what the agent waited for until then; CAUSE_NONE: for nothing but itself. A
                          communicator: PEER where some of its members had come before */
};

/* `reasons`: every step says what its agent waited for; else `wait` is CAUSE_NONE. NULL: memory is
   exhausted. The program must outlive it. */
struct enabling_steps *enabling_steps_open(const struct program *program, bool reasons);
void enabling_steps_close(struct enabling_steps *run);

/* The next step of the run. false: memory is exhausted. */
bool enabling_steps_take(struct enabling_steps *run, int64_t time_ns, struct transition transition);

/* How many steps were taken; the step of a number that is not forgotten; forget all before one. */
int64_t enabling_steps_count(const struct enabling_steps *run);
const struct enabled_step *enabling_steps_step(const struct enabling_steps *run, int64_t number);
void enabling_steps_forget(struct enabling_steps *run, int64_t before);

/* The state after the last step, and the program it is one of: as the given one, without rows of
   happens-before knowledge. */
const struct state *enabling_steps_state(const struct enabling_steps *run);
const struct program *enabling_steps_program(const struct enabling_steps *run);
/* True if a thread, stream or communicator can step. */
bool enabling_steps_can_step(const struct enabling_steps *run, int agent);
/* The time since which the agent has been able to step. For a stream in a callback: since it began. -1: it cannot. */
int64_t enabling_steps_enabled_since(const struct enabling_steps *run, int agent);
/* The step that enabled it; -1: none. */
int64_t enabling_steps_enabled_by(const struct enabling_steps *run, int agent);

#endif
