/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.h - whether a run was legal. The logged steps are taken once more by the machine.
 *
 * Each agent's steps come in its own order, each with the interval of time in which it took effect.
 * The rule: a run is legal if there is an order of all steps that the machine can take and that contradicts no
 * clock: a step is not taken before another one that had ended when it began.
 *
 * The replay takes the earliest step that is enabled; a step that is not enabled waits for those of other agents.
 * Where the clock leaves the order of a push and a wait of the host open, and the one that comes first leads to
 * no end, it tries the other (gpu/record/replay.c). When none of the pending steps can be taken and no such choice
 * is left, the run was not legal.
 *
 * A step that began before another had ended may be taken before it or behind it. So may the end of a function of the
 * user that uses a communicator: its collective was over at some time of its device work. It is taken early only for
 * the sake of the communicator, whose next operation had ended by then.
 *
 * Pushes of one rank are taken in the order of the device's numbers; one that stands for several, while
 * others may have come in between, has a span of them and may be taken at any place in it. Steps are kept until they are
 * taken; replay_advance may be called while steps are still being added, to bound memory.
 */
#ifndef SWSIM_REPLAY_H
#define SWSIM_REPLAY_H

#include "machine/machine.h"

struct replay;

enum replay_kind {
    REPLAY_OP,   /* a thread executes `op` */
    REPLAY_TAKE, /* a worker takes (task, iteration) */
    REPLAY_ENQUEUE, /* a driver enqueues a period; `iteration` counts the iterations admitted by then */
    REPLAY_RETIRE, /* a driver retires `iteration` */
    REPLAY_END,    /* a driver hears that there are no more than `iteration` iterations */
    REPLAY_START,  /* a stream starts `op` */
    REPLAY_FINISH  /* a stream finishes `op` */
};

struct replay_step {
    enum replay_kind kind;
    int agent; /* program->agents */
    int op;    /* OP, START, FINISH: program->ops; else -1 */
    int task;  /* TAKE; else -1 */
    int64_t iteration;
    int64_t lo_ns, hi_ns; /* it took effect between these */
    int64_t key_ns;       /* most likely then */
    int64_t number;       /* pushes: the device's number; else -1 */
    int64_t span;         /* pushes: so many numbers before it was the first that belongs to it */
    bool no;              /* OP with branches: the answer was no */
    bool optional;        /* START, FINISH: it may not have happened */
};

/* Called for each step in the order in which the machine took it. */
typedef void replay_observer(void *arg, const struct replay_step *step);

/* NULL: memory is exhausted. Clocks of the device and the host may differ by `tolerance_ns`. */
struct replay *replay_open(const struct program *program, int64_t tolerance_ns,
                           replay_observer *observer, void *arg);
void replay_close(struct replay *replay);
/* Clocks have been seen to differ by more. */
void replay_tolerate(struct replay *replay, int64_t tolerance_ns);
/* Steps that were added after steps of a later time may have been taken, by at most so much. */
int64_t replay_late_ns(const struct replay *replay);

/* Steps of one agent in its order; those of a stream in the order of their start. false: memory. */
bool replay_add(struct replay *replay, const struct replay_step *step);

/* Take up to `max_steps` of the steps before `until_ns`; not to be enabled yet is no failure. Returns
   whether there may be more to take. */
bool replay_advance(struct replay *replay, int64_t until_ns, int64_t max_steps);

/* The data of a rank ended after so many iterations, before the program said. */
void replay_end_data(struct replay *replay, int rank, int64_t iterations);

/* Everything has been added: take the rest. `complete`: and then everything must be done. */
bool replay_finish(struct replay *replay, bool complete);
/* True if a run that is not legal has no legal order at all; false if so many orders were open that some were not tried. */
bool replay_is_sure(const struct replay *replay);
/* Why it was not legal; "" if it was. */
const char *replay_reason(const struct replay *replay);

/* The machine's state after the last step taken. A stalled device has started all it could: replay_settle
   starts the streams and returns whether no agent can step then. */
bool replay_settle(struct replay *replay);
const struct state *replay_state(const struct replay *replay);

int64_t
replay_pending(const struct replay *replay); /* steps not taken yet, optional ones left out */
int64_t replay_taken(const struct replay *replay);
/* True if a read saw what a serial run had some iterations ago, as `staleness` allows. */
bool replay_has_stale_reads(const struct replay *replay);
/* The first violation of a property, in words; NULL: none was seen. */
const char *replay_violation(const struct replay *replay, enum property property);

#endif
