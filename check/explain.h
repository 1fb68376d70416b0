/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.h - a counterexample as a story: numbered steps in words, the blocked agents and their
 * waits, the cycle.
 *
 * All texts live in the arena of the story's owner.
 */
#ifndef SWSIM_EXPLAIN_H
#define SWSIM_EXPLAIN_H

#include "search.h"
#include "base/arena.h"

struct story_step {
    int rank;            /* -1: the data loader or a communicator */
    const char *agent;   /* "thread default" */
    const char *action;  /* "launches Forward(3) on stream default" */
    const char *subject; /* "Forward(3)"; "": a step without an operation */
    const char *stream;  /* that the step pushes to; NULL: it pushes nothing */
    const char *pushed;  /* what it pushes: "record event x" */
    const char *behind;  /* the task whose event a pushed wait is for: "Forward(3)"; "" none */
    const char *task;    /* NULL: none */
    int64_t iteration;   /* -1: none */
    enum effect_kind kind;
    int op;                     /* enum op_kind; -1: a step without an operation */
    bool opens, closes;         /* a worker's: the first and the last of submitting an instance */
    int agent_index;            /* program->agents */
    enum agent_kind agent_kind; /* AGENT_FAULT: the fault happens here */
    int choice;                 /* with agent_index: the transition */
    int program_op;             /* program->ops; -1: none */
    struct mark mark;           /* of the operation in the file; line 0: not known */
    int finished_by; /* START: the agent whose later step ends it, possibly a communicator */
    bool aside;      /* of a long story of a host program: it has no part in what goes wrong */
};

/* An operation that a sentence is about. */
struct story_place {
    const char *subject; /* "use(0)"; NULL: not known */
    const char *agent;   /* where it is done: "rank 0 stream b" */
    const char *pusher;  /* who pushed it there: "rank 0 thread main"; NULL: nobody, or not known */
    struct mark mark;    /* in the file; line 0: not known */
};

struct story_blocked {
    int rank;
    const char *agent;
    const char *waits_for; /* "is at B(3), waits for the CPU signal of A(3)" */
    int agent_index;
    enum agent_kind agent_kind;
    int on; /* index into blocked of the agent that must act first, -1: none of these */
    bool in_cycle;
    bool aside;               /* a thread that waits for one that is blocked; as of steps */
    struct story_place place; /* the operation that it is at; subject NULL: it is at none */
};

/* The way to a violation. Some violations need no interleaving, as a message that nobody receives: they have no steps. */
struct story {
    const char *sentence; /* the violation in one sentence */
    int other_step;       /* of a race: the step of the other access, before the last; -1: none */
    /* The operations at fault. Of a race and of a lifetime: the last step's, and the other. Of agents that wait for each
       other, or hang: what they are at. Else the last step's, and the one that it meets. */
    struct story_place *places;
    size_t place_count;
    size_t
        well; /* so many steps at the beginning were none that what goes wrong needs, as far as is known */
    struct story_step *steps;
    size_t step_count;
    struct story_blocked *blocked; /* deadlock and drain: all that wait */
    size_t blocked_count;
    int *cycle; /* indices into blocked, each waiting for the next, the last for the first */
    size_t cycle_count;
};

/* Replay `path` and describe it. */
enum status explain_path(const struct program *program, enum property property,
                         const struct search_path *path, struct arena *arena, struct story *out,
                         struct diag *diag);

#endif
