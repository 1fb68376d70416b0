/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_impl.h - a replay from inside; private to
 *
 *     replay.c           queues of steps, what the machine agrees to, the order
 *     replay_choices.c   two steps whose order the clock leaves open
 *
 * To take a step as soon as clock and machine allow it is right for all steps but two kinds: a push, and the call of
 * a wait that would see it (machine/snapshot.h). Where the clock leaves their order open one order is tried, and what
 * is needed to come back is kept until the wait is over; from then on both orders have led to the same state. A
 * replay that is stuck comes back to the last choice and tries the other order. It is stuck for good when no choice is
 * left: then none of the orders that the clock allows is a run of the machine.
 *
 *     push z      |-----------|          wait of the host:  z before its call: it waits for z
 *     call             |                                    call before z: it does not
 */
#ifndef SWSIM_REPLAY_IMPL_H
#define SWSIM_REPLAY_IMPL_H

#include "replay.h"

enum {
    REPLAY_TEXT = 1000,
    REPLAY_CHOICES = 64, /* open at a time; without a wait that takes long there are one or two */
    REPLAY_UNDONE = 1 << 20 /* steps, in all */
};

/* The steps of an agent. */
struct backlog {
    struct replay_step *steps;
    size_t first, count, cap; /* steps[first .. first + count) are pending */
    size_t kept;              /* so many before `first` were taken, and may be pending again */
    size_t pushes_at;         /* none of the first so many pending steps is a push */
    int64_t taken;            /* in all: the place of steps[first] in the agent's order */
};

/* A step by its place in its agent's order. */
struct place {
    int agent;
    int64_t at;
};

/* `first` is, or was, taken before `second`; `turned`: the other way round. */
struct choice {
    struct place first, second, end; /* `end`: of the wait */
    bool turned;
    int64_t settled; /* the replay had taken so many steps when the wait was over; -1: it is not */
    /* before the first of them was taken; `turned`: NULL */
    bool stale; /* the replay's */
    struct state *state;
    int64_t *places; /* [agent_count] of heads */
    int *ended;      /* [stream_count] */
    int64_t taken;
    unsigned violated;
    size_t trail_count;
};

struct replay {
    const struct program *program;
    struct state *state;
    int64_t tolerance_ns;
    replay_observer *observer;
    void *arg;
    struct backlog *queues; /* [agent_count] */
    int *ended;             /* [stream_count]: collectives that have ended in the machine already */
    int64_t pending, taken;
    int64_t until_ns, late_ns; /* steps before this were taken; what came so much behind it */
    char *violations[PROPERTY_COUNT];
    bool stale; /* see replay_has_stale_reads */
    char reason[REPLAY_TEXT];
    char first_reason
        [REPLAY_TEXT]; /* why it was stuck at first: what the orders tried later say is about them */

    bool has_calls; /* the program has waits with a call */
    struct choice choices[REPLAY_CHOICES];
    int choice_count;
    int64_t undone;
    bool unsure;               /* a choice was forgotten */
    struct replay_step *trail; /* steps that may be undone: the observer has not seen them */
    size_t trail_count, trail_cap;
};

/* `step`, the head of its agent, is about to be taken: keep the choices that this is. */
void replay_choose(struct replay *replay, const struct replay_step *step);
/* Must the head of the agent wait for another step, because of a choice? */
bool replay_is_held(const struct replay *replay, int agent);
/* A step has been taken. */
void replay_observe(struct replay *replay, const struct replay_step *step);
/* Forget the choices that no longer matter. */
void replay_settle_choices(struct replay *replay);
/* Back to the last choice, and the other way; false: none is left. */
bool replay_undo(struct replay *replay);
/* The order so far is final. */
void replay_forget_choices(struct replay *replay);

#endif
