/*
 * causes.h - who let whom go on: the steps of a simulated run, each with the step that made it possible.
 *
 * The steps the simulator takes go through a machine of their own. An agent that could not step and now
 * can owes that to the step just taken, and why it could not says machine_why; one that can go on after
 * its own step owes it to that. Since the simulator does what it can at once, a step is late by its own
 * duration and by nothing else:
 *
 *     from     ----x enabled_ns
 *     the step     [..........its duration..........]x time_ns
 *
 * So from any step the steps it owes itself to lead back to the beginning without a gap.
 *
 * Steps are numbered from 0; the oldest may be forgotten. After a step only those are asked whom it may have
 * concerned (causes.c), so a step costs about what it does in the machine, twice with reasons.
 */
#ifndef SWSIM_CAUSES_H
#define SWSIM_CAUSES_H

#include "machine/machine.h"

struct causes;

struct cause_step {
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
struct causes *causes_open(const struct program *program, bool reasons);
void causes_close(struct causes *causes);

/* The next step of the run. false: memory is exhausted. */
bool causes_take(struct causes *causes, int64_t time_ns, struct transition transition);

/* How many steps were taken; the step of a number that is not forgotten; forget all before one. */
int64_t causes_count(const struct causes *causes);
const struct cause_step *causes_step(const struct causes *causes, int64_t number);
void causes_forget(struct causes *causes, int64_t before);

/* The state after the last step, and the program it is one of: as the given one, without rows of
   happens-before knowledge. */
const struct state *causes_state(const struct causes *causes);
const struct program *causes_program(const struct causes *causes);
/* Can a thread, stream or communicator step? No other agent can, as far as this goes. */
bool causes_can_step(const struct causes *causes, int agent);
/* Since when has the agent been able to step? For a stream in a callback: since it began. -1: it
   cannot. */
int64_t causes_enabled_since(const struct causes *causes, int agent);
/* The step it owes that to; -1: none. */
int64_t causes_enabled_by(const struct causes *causes, int agent);

#endif
