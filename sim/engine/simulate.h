/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simulate.h - a program in time: the machine's steps, each as early as it can be.
 *
 * An interpreter of machine/machine.h: only the machine knows what a step means and when it is possible.
 * Clocks stand beside its state. Steps without a duration are done at once, host threads
 * first, then streams, then communicators, each in order of number. These take time: the CPU part
 * of a thread (CPU work), a kernel or copy from its start, a collective once all members have
 * started (the longest of their durations), a group of sends and receives once the machine says it
 * is matched, a callback (its body and at least its own time). Work that together wants more of its
 * device than there is takes longer (sharing.h).
 *
 * The stall account: from time 0 to the end every nanosecond of every stream is busy or has exactly
 * one cause. All is integer nanoseconds, so busy + causes == makespan, which simulate_run asserts.
 *
 * One simulation uses one thread; any number may share a program and a timing.
 */
#ifndef SWSIM_SIMULATE_H
#define SWSIM_SIMULATE_H

#include <stdatomic.h>

#include "base/table.h"
#include "machine/machine.h"
#include "in_flight.h"
#include "iterations.h"
#include "sharing.h"
#include "timing.h"

/*            NAME           key in JSON       in words */
#define STALL_LIST(X)                                                                              \
    X(DEPENDENCE, "dependence", "dependence")                                                      \
    X(CLOCK, "clock", "period clock")                                                              \
    X(BACKPRESSURE, "backpressure", "back-pressure")                                               \
    X(HOST, "host", "host launch")                                                                 \
    X(HEAD_OF_LINE, "head_of_line", "head-of-line")                                                \
    X(SYNC, "sync", "host waits in sync")                                                          \
    X(PEER, "peer", "collective peer")                                                             \
    X(RESOURCE, "resource", "resource")                                                            \
    X(NO_MORE_DATA, "no_more_data", "no more data")
/*
 * DEPENDENCE    the stream's head waits for an event, or the thread that will push next waits for a
 *               signal, queue or synchronisation; `on` is the task (or stream, thread) waited for
 * CLOCK         the next work belongs to a period the clock driver has not come to, because it waits
 *               for the oldest iteration to retire
 * BACKPRESSURE  the same under data-flow: no iteration more may be in flight
 * HOST          the thread that will push next is in a CPU part; `on` is that task
 * HEAD_OF_LINE  that thread has work for the stream but is blocked at another task, or the turn of
 *               its ticket has not come; `on` is the task in front
 * SYNC          host programs: that thread is blocked in a sync, or has been since its last push to the stream,
 *               and so comes late to this one; `on` is the stream waited for
 * PEER          a started collective or group that waits for other members
 * RESOURCE      something of which there is not enough; `on` is one of HELD_LIST
 * NO_MORE_DATA  nothing will be pushed to the stream any more
 */
enum stall_cause {
#define X(name, key, words) STALL_##name,
    STALL_LIST(X)
#undef X
        STALL_COUNT,
    STALL_BUSY = -1 /* no stall at all */
};

const char *stall_key(enum stall_cause cause);
const char *stall_words(enum stall_cause cause);

/* The kinds of resources. The machine names them (struct wait): a communicator, a lock, or the agent that has what is
   lacking. */
/*            NAME          in words, before the name */
#define HELD_LIST(X)                                                                               \
    X(COMM, "communicator ")                  /* its operation before has to end first */          \
    X(LOCK, "lock ")                          /**/                                                 \
    X(HW_QUEUE, "hardware queue, behind ")    /* the stream that is first in it */                 \
    X(RESIDENCY, "residency slots, held by ") /* the stream that has most of them */               \
    X(ISSUE, "order of issue, behind ")       /* the stream with the collective before */          \
    X(FULL, "room in ")                       /* the stream that is full */                        \
    X(WINDOW, "room for an iteration more")   /* the driver: agents take turns in holding it up */
enum held {
#define X(name, words) HELD_##name,
    HELD_LIST(X)
#undef X
        HELD_KINDS
};

/* A cause and what it names: a task (>= 0), an agent (as ~agent) or STALL_ON_NONE. STALL_RESOURCE names a resource
   (stall_for_resource) or none. */
enum { STALL_ON_NONE = INT32_MIN };
struct stall {
    enum stall_cause cause;
    int on;
};

/* `index`: a communicator, a lock or an agent; -1: unknown. */
static inline struct stall stall_for_resource(enum held held, int index)
{
    return (struct stall){STALL_RESOURCE,
                          index < 0 ? STALL_ON_NONE : index * HELD_KINDS + (int)held};
}

/* True if the program has what the stall names. */
bool stall_is_of(const struct program *program, const struct stall *stall);

/* An agent's name as seen from `rank`: "stream memcpy", or "rank 1 stream memcpy" from elsewhere.
   Returns buf. */
const char *agent_on_rank(const struct program *program, int rank, int agent, char *buf,
                          size_t cap);

/* The task or the resource that the stall is for, as seen from `rank`: "InputDistWait", "communicator dp"; in `buf` or the
   plan. NULL: none. */
const char *stall_waits_for(const struct program *program, int rank, const struct stall *stall,
                            char *buf, size_t cap);

/* "dependence on InputDistWait", "resource, communicator dp", as seen from `rank`. Returns buf. */
const char *stall_describe(const struct program *program, int rank, const struct stall *stall,
                           char *buf, size_t cap);

struct stream_account {
    int64_t busy_ns;
    int64_t slowed_ns[RESOURCE_COUNT]; /* of that: by what work was slowed (sharing.h) */
    int64_t stall_ns[STALL_COUNT];
    struct blame { /* the causes split by what they name */
        struct stall stall;
        int64_t ns;
    } * blames;
    int blame_count, blame_cap;
    struct table table; /* of the blames by their stalls; empty once finished */
};

/* Add to the account's split; false when memory is exhausted. When all is in, finish it: the blames
   without time go, the others are put in order, and the causes are summed up. */
bool stream_account_blame(struct stream_account *account, const struct stall *stall, int64_t ns);
void stream_account_finish(struct stream_account *account);
void stream_account_free(struct stream_account *account);

/* Something that took time, told when it has ended. */
struct simulate_span {
    enum simulate_span_kind { SIMULATE_DEVICE, SIMULATE_HOST, SIMULATE_STALL } kind;
    int agent;
    int op;            /* STALL: -1 */
    int64_t iteration; /* STALL and host programs: -1 */
    int64_t start_ns, end_ns;
    struct stall stall;       /* STALL: of a stream */
    const int64_t *slowed_ns; /* of work, per resource of sharing.h; NULL: by none */
};

/* Any member may be NULL. Returning false stops the simulation with STATUS_SYSTEM, the
   observer having described why in its diag. */
struct simulate_observer {
    void *context;
    bool (*span)(void *context, const struct simulate_span *span);
    /* the spans that are no stalls: costs less, as no stall needs to be known when it ends */
    bool (*work)(void *context, const struct simulate_span *span);
    bool (*iteration)(void *context, int rank, int64_t number, int64_t admitted_ns,
                      int64_t finished_ns);
    /* now and then: so many iterations are over */
    bool (*progress)(void *context, int64_t iterations, int64_t time_ns);
    bool (*step)(void *context, int64_t time_ns, struct transition transition,
                 const struct effect *effect);
};

struct simulate_options {
    uint64_t seed;
    uint32_t replication;
    const struct simulate_observer *observer; /* NULL: none */
    struct in_flight *in_flight; /* filled with what is in flight on rank 0; NULL: not asked for */
    const atomic_bool *interrupted; /* ends it with STATUS_LIMIT when it turns true; NULL: never */
    bool forgetful; /* ask the machine for every step, remember none: slow, for tests */
};

static inline bool simulate_interrupted(const struct simulate_options *options)
{
    return options->interrupted && atomic_load_explicit(options->interrupted, memory_order_relaxed);
}

struct simulation_result {
    int64_t makespan_ns; /* until the last step */
    int64_t steps;       /* of the machine */
    int64_t looks;       /* at streams, to see why they are idle: what the accounts cost */
    int64_t tasks;       /* instances submitted; host programs: device and CPU work finished */
    struct stream_account *streams; /* beside program->streams */
    int stream_count;
    struct slowdown *slowdowns; /* per subject of sharing.h; NULL: no work slows other work */
    unsigned violated;          /* properties broken on the way: bit 1u << PROPERTY_x, never RACE */
    struct blocked {            /* deadlock: what each agent waits for, in words */
        int agent;
        char *waits_for;
    } * blocked;
    size_t blocked_count; /* 0: everything was done */
    /* pipeline form; without a value -1 */
    struct iteration_figures iteration;
    int64_t fill_ns;  /* until the first iteration is over on all ranks */
    int64_t drain_ns; /* from the last admission of an iteration to the end */
    int64_t
        in_flight_ns; /* pipeline form: from admission until it is over, summed over the iterations
                             of all ranks */
    int64_t in_flight_max;       /* most iterations of one rank admitted and not over */
    int64_t in_flight_bytes_max; /* pipeline: the bytes of their buffers and the shared ones; host
                                    programs: bytes between alloc and free; of one rank */
};

/*
 * Simulate until nothing can happen any more. A deadlock is a result, not an error: see `blocked`.
 * STATUS_USAGE when the number of iterations is open or too large, STATUS_SYSTEM when memory runs
 * out. *out is set on success only and is freed with simulation_fini.
 */
enum status simulate_run(const struct program *program, const struct timing *timing,
                         const struct simulate_options *options, struct simulation_result *out,
                         struct diag *diag);
void simulation_fini(struct simulation_result *result);

/* Check that this number of iterations can be simulated. STATUS_USAGE when it is open, STATUS_INPUT when the times of all work add up to more than half of what 64 bits hold. */
enum status simulate_check(const struct program *program, const struct timing *timing,
                           struct diag *diag);

#endif
