/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.h - the meaning of a plan: one transition system for checker, simulator and runtime.
 *
 * A state is one flat block of memory without pointers (`struct state`), created by machine_state
 * and copied with machine_copy. machine_agent_enabled tells whether an agent can step; machine_step
 * takes the step and reports violations. The state has no clocks: the simulator keeps time beside
 * it. Every step, and every wait of a blocked agent, can be described in words.
 *
 * Steps of one agent:
 *     data    two choices: 0 there is a further iteration, 1 the data ends here
 *     thread  execute the next operation; where an allocation or a copy may sync, two choices
 *     stream  start the operation at the head, or finish the one that runs
 *     comm    complete the collective that all members have started
 *     fault   the fault happens, once a run (programs built with `faults`)
 *     watchdog  abort a communicator whose member is gone (the same programs)
 * Records, waits and allocations at the head of a stream take effect at once, as part of the step
 * that brought them there.
 */
#ifndef SWSIM_MACHINE_H
#define SWSIM_MACHINE_H

#include "program.h"

struct state {
    int32_t *cells;        /* program->at.bytes: cells, then happens-before rows; one allocation */
    struct clocks *clocks; /* options.clocks: knowledge beside it; such a state is never copied */
};

struct transition {
    int agent;
    int choice; /* data: 0 more, 1 end; SYNC_RETRY: 0 past the sync, 1 to it; SYNC_STAGED: 0 to it, 1 past; CHOOSE: 0 then,
                   1 else; else 0 */
};

/* The effect of a step. */
struct effect {
    unsigned violated; /* bit (1u << PROPERTY_x) */
    bool
        stale; /* options.serial: a read was older than in a serial run, and no older than its buffer allows */
    /* the operation that was executed, started or finished; op -1: a driver's or the loader's step
     */
    int op;
    int64_t iteration;
    enum effect_kind { EFFECT_HOST, EFFECT_START, EFFECT_FINISH } kind;
    bool
        takes; /* HOST: a worker has taken the instance that begins with the operation, and not executed it */
    /* details of the first violation of each property; -1: not known, or none */
    struct other_access {
        int buffer; /* program->buffers */
        int agent;  /* of the other access */
        bool write; /* true if that one is a write */
        bool early; /* LIFETIME: before its allocation is known to have happened */
        int op;     /* of the other access */
        int64_t iteration;
    } race, lifetime;
    struct counterpart {
        int agent; /* the stream of the other member; of a message -1 */
        int op;    /* its operation; DRAIN: the send that is left */
        int64_t iteration;
        int part, other_part; /* the two messages, program->parts; of a collective -1 */
    } met;                    /* MISMATCH, DRAIN */
    int64_t wanted, found; /* SLOT: iteration looked for and the one found; BOUND: bound, number */
    bool bytes;            /* BOUND: of bytes, not of iterations */
    int unwritten;         /* VALUE: the buffer that is read, program->buffers */
    struct order_change {
        int buffer;            /* program->buffers */
        bool reads;            /* the access of `op`; else it writes */
        int writer;            /* the task whose writes are too few or too many */
        int64_t serial, found; /* how many of its writes a serial run has made by then, this run */
    } serial;                  /* SERIAL */
};

static inline struct effect effect_none(void)
{
    static const struct other_access nothing = {.buffer = -1, .agent = -1, .op = -1};
    return (struct effect){.op = -1,
                           .race = nothing,
                           .lifetime = nothing,
                           .met = {.agent = -1, .op = -1, .part = -1, .other_part = -1}};
}

/* A fresh state in memory of its own; NULL when memory is exhausted. */
struct state *machine_state(const struct program *program);
void machine_free(struct state *state);
void machine_copy(const struct program *program, struct state *to, const struct state *from);
/* Set to the initial state. */
void machine_reset(const struct program *program, struct state *state);

/* The number of choices the agent has now: 0 (blocked or done), 1, or 2 (data, op_may_sync, CHOOSE). */
int machine_agent_enabled(const struct program *program, const struct state *state, int agent);

/* All enabled transitions; `out` has room for machine_most_transitions. Returns their number. */
static inline size_t machine_most_transitions(const struct program *program)
{
    return 2 * (size_t)program->agent_count;
}
int machine_enabled(const struct program *program, const struct state *state,
                    struct transition *out);

/* Take one enabled transition. `effect` may be NULL. */
void machine_step(const struct program *program, struct state *state, struct transition transition,
                  struct effect *effect);

/* True if this enabled step may be taken first without losing any behaviour: it commutes with all steps that other
   agents can take before it. The argument is in conflicts.c and doc/checker.md. */
bool machine_step_free(const struct program *program, const struct state *state, int agent);

/* Programs built with `clocks`: knowledge that has passed through another rank is left out, or no longer; at the initial
   state. Left out, races may show that are none, but all that are show. */
void machine_limit_knowledge(const struct state *state, bool own_rank);
/* In programs built with `clocks`, true if memory for knowledge was refused. Then races may have been missed. */
bool machine_lost_knowledge(const struct state *state);

/* True if this is the end of a complete run: all threads at their end, all queues and streams empty, every admitted
   iteration finished. */
bool machine_done(const struct program *program, const struct state *state);
/* True if this agent is a driver whose next step retires an iteration. */
bool machine_retires(const struct program *program, const struct state *state, int agent);
/* True if this agent is a driver whose next step admits an iteration, or would if there is data. */
bool machine_admits(const struct program *program, const struct state *state, int agent);
/* In the pipeline form, true if this rank has admitted the last iteration there is data for. */
bool machine_data_ended(const struct program *program, const struct state *state, int rank);
/* True if this agent is at its end, or idle with nothing to do. */
bool machine_agent_idle(const struct program *program, const struct state *state, int agent);

/* True if the agent is at a wait that it may leave out, which would be over at once whatever others do by then. So the
   two choices (MACHINE_WAITS, MACHINE_GOES_PAST) differ in nothing but what the thread knows. */
bool machine_wait_is_idle(const struct program *program, const struct state *state, int agent);
enum { MACHINE_WAITS, MACHINE_GOES_PAST };

/* True if the agent is a thread blocked at a slot of another iteration than the one it waits for. This is the other
   form of a slot hazard. */
bool machine_stale_wait(const struct program *program, const struct state *state, int agent,
                        int64_t *wanted, int64_t *found);

/* A thread that waits for a stream, a device or an event while others push to it (snapshot.h): its call is moved to now. */
void machine_call_now(const struct program *program, struct state *state, int agent);

/* A rank has data for no more than `iterations`, which is not less than it has admitted. */
void machine_end_data(const struct program *program, struct state *state, int rank,
                      int64_t iterations);

/* In programs built with `faults`, true if the fault has happened. */
bool machine_failed(const struct program *program, const struct state *state);
/* After a fault, true if a thread of a living rank is blocked, and no agent can step that could wake it. */
bool machine_never_woken(const struct program *program, const struct state *state);
/* Set to a state of `plain`, the same program built without `faults`; no fault has happened. */
void machine_state_from_plain(const struct program *program, struct state *to,
                              const struct program *plain, const struct state *from);

/* Make equal futures equal memory: iteration numbers become relative, finished work is forgotten. */
void machine_canonical(const struct program *program, struct state *state);

/* ---- questions about a state ----------------------------------------------------------------- */

/* The current operation of an agent: a thread's next one, the head of a stream (running or not); -1:
   none. The iteration goes to *iteration. */
int machine_current_op(const struct program *program, const struct state *state, int agent,
                       int64_t *iteration);
/* True if the thread is at an operation with branches whose answer is yes, or which can be done without a wait. */
bool machine_says(const struct program *program, const struct state *state, int agent);
bool machine_stream_running(const struct program *program, const struct state *state, int stream);
/* Operations that are over: grows but for machine_canonical. */
int machine_stream_done(const struct program *program, const struct state *state, int stream);
int machine_stream_queued(const struct program *program, const struct state *state, int stream);
/* Of a rank: the oldest iteration not yet retired, the oldest with work that is not submitted or not
   finished on the device, and the next one to be admitted. */
int64_t machine_oldest(const struct program *program, const struct state *state, int rank);
int64_t machine_finished(const struct program *program, const struct state *state, int rank);
int64_t machine_admitted(const struct program *program, const struct state *state, int rank);
/* True if the next period of the rank's driver admits an iteration, as far as its data is known to go. */
bool machine_admits_next(const struct program *program, const struct state *state, int rank);
/* Iterations a rank has data for; -1: not known yet. */
int64_t machine_end(const struct program *program, const struct state *state, int rank);

/* Instances in a worker's queue, oldest first: task and iteration of the k-th. Returns the count.
 */
/* The ordered task that has its turn on a rank (`ticket_at: pipelined`), and for which iteration; -1: none has. */
int machine_turn(const struct program *program, const struct state *state, int rank,
                 int64_t *iteration);
int machine_queue(const struct program *program, const struct state *state, int thread, int k,
                  int *task, int64_t *iteration);

/* Why an agent cannot step. */
enum wait_cause {
    CAUSE_NONE,       /* it can, or has nothing to do */
    CAUSE_EMPTY,      /* a stream or worker with nothing queued */
    CAUSE_DEPENDENCE, /* a CPU signal, an event, a sync */
    CAUSE_COMM_ORDER, /* its communicator's previous operation on this rank */
    CAUSE_PEER,       /* a collective or group whose other members have not started */
    CAUSE_ISSUE,     /* an operation issued before it on any communicator (launch_order_implicit) */
    CAUSE_HW_QUEUE,  /* another stream is first in its hardware queue */
    CAUSE_RESIDENCY, /* residency slots */
    CAUSE_LOCK,      /* a lock */
    CAUSE_FULL,      /* a stream without room for a push */
    CAUSE_WINDOW,    /* the driver: an iteration a window before the next one goes on */
    CAUSE_ORDER,     /* its ticket's turn */
    CAUSE_QUEUE,     /* an empty or full queue between threads */
    CAUSE_RETIRE,    /* the driver: the oldest iteration has not finished */
    CAUSE_LEFT,      /* the driver is at its end, but a retired iteration never finishes */
    CAUSE_DATA       /* the data loader has not answered */
};
struct wait {
    enum wait_cause cause;
    int agent;         /* the agent that must act first; -1: no particular one */
    int task;          /* the task waited for, -1 */
    int object;        /* COMM_ORDER: the communicator; LOCK: the lock; else -1 */
    int64_t iteration; /* of that task */
};
/* Fill `wait`; for an enabled, finished or idle agent the cause is NONE or EMPTY. */
void machine_why(const struct program *program, const struct state *state, int agent,
                 struct wait *wait);
/* Where no agent can step, true if this one has work left, be it of an iteration that its driver has retired. */
bool machine_hangs(const struct program *program, const struct state *state, int agent);

/* The residency slots that the running operation of a stream has; of a greedy kernel they grow. */
int machine_slots_held(const struct program *program, const struct state *state, int stream);
/* The memory of a rank of a host program: the buffers that work uses and the plan never allocates; and what is allocated
   and cannot be handed out, in the order of `stream`, without waiting for the device. Stream -1: in that of none. */
int64_t machine_used_bytes(const struct program *program, int rank);
int64_t machine_allocated_bytes(const struct program *program, const struct state *state, int rank,
                                int stream);

/* In words. "thread default: launches Forward(3) on stream default". Both return buf. */
const char *machine_describe(const struct program *program, const struct state *state,
                             struct transition transition, char *buf, size_t cap);
/* Without the agent: "launches Forward(3) on stream default". */
const char *machine_describe_action(const struct program *program, const struct state *state,
                                    struct transition transition, char *buf, size_t cap);
/* The next step of an agent, in pieces. */
enum { MACHINE_NAME = 160 };
struct action_words {
    char subject[MACHINE_NAME]; /* "Forward(3)": its operation; "": none */
    const char *stream;         /* that a thread pushes to; NULL: it pushes nothing */
    char pushed[MACHINE_NAME];  /* what it pushes there: "record event x" */
    char behind[MACHINE_NAME];  /* the task whose event that waits for: "Forward(3)"; "": none */
};
void machine_action_words(const struct program *program, const struct state *state, int agent,
                          struct action_words *out);
/* "is at WaitBatch(3), waits for the CPU signal of InputDistWait(3)". */
const char *machine_describe_wait(const struct program *program, const struct state *state,
                                  int agent, char *buf, size_t cap);
/* A violation in one sentence. */
const char *machine_describe_violation(const struct program *program, enum property property,
                                       const struct effect *effect, char *buf, size_t cap);

#endif
