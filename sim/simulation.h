/*
 * simulation.h - the clocks beside a state; private to simulate.c, account.c and cause.c.
 *
 * Everything is indexed as in the program. An agent is *dirty* when it may be able to do something
 * it could not do when it was last looked at; a rank is *touched* when something happened on it at
 * the present instant, so that its streams may be idle for another reason than before.
 */
#ifndef SWSIM_SIMULATION_H
#define SWSIM_SIMULATION_H

#include <assert.h>

#include "sim/events.h"
#include "sim/simulate.h"

/* What an agent that takes time is doing. */
enum timer {
    TIMER_NONE,
    TIMER_RUNNING, /* its event is in the heap */
    TIMER_OVER     /* a callback whose own time is over and whose body is not */
};

/* What a stream has been doing since when. */
struct lane {
    struct stall doing; /* cause STALL_BUSY: work */
    int64_t since_ns;
};

/* The instance a worker has in hand. */
struct hand {
    int task; /* -1: none */
    int64_t iteration;
};

/* Host programs: the work one thread pushes to one stream, in order. */
struct pusher {
    int thread, stream;
    int first, count; /* into simulation.pushes */
    int next;         /* of these, the one to be pushed next */
};

struct simulation {
    struct program lean;           /* without the happens-before rows, which no clock asks for */
    const struct program *program; /* &lean */
    const struct timing *timing;
    const struct simulate_options *options;
    struct diag *diag;
    struct state *state;
    struct events events;
    int64_t now_ns;
    enum status status; /* the first failure */
    struct simulation_result result;

    uint64_t *dirty;              /* one bit an agent */
    int dirty_words, dirty_first; /* no bit is set in words before dirty_first */
    bool *touched;
    int *touched_ranks, touched_count;
    int *rank_first,
        *rank_agents; /* threads and streams of rank r: rank_agents[rank_first[r] ..] */

    uint8_t *timers;     /* enum timer of an agent */
    int64_t *started_ns; /* when what an agent is doing began */
    int *member_streams; /* per communicator member: the stream whose operation has started, -1 */
    struct lane *lanes;  /* per stream */

    /* pipeline form */
    struct hand *hands;   /* per thread */
    int64_t *submitted;   /* per rank and task: instances whose work is pushed */
    int64_t *admitted_ns; /* per rank and iteration mod window */
    int64_t last_admission_ns;
    int *task_streams;       /* per rank and task */
    int *task_positions;     /* per rank and task: place in the enqueue order */
    bool *task_pushes;       /* per task: has it a device part? */
    int64_t iteration_bytes; /* buffers of scope iteration */
    struct iterations iterations;

    /* host programs */
    struct pusher *pushers; /* by stream, then thread */
    int pusher_count, pusher_cap;
    int *stream_pushers; /* those of stream s: pushers[stream_pushers[s] ..] */
    int *pushes;         /* operations that push work */
    int *next_push;      /* per operation: the first push of work at or after it in its body, -1 */
    int64_t *allocated;  /* per rank: bytes between alloc and free */
};

/* Why a stream that is not busy is idle; asked when nothing more can happen at this instant. */
struct stall cause_of_idleness(struct simulation *sim, int stream);

/* account.c: bring the accounts of the touched ranks up to the present; and of all, at the end. */
void account_touched(struct simulation *sim);
void account_close(struct simulation *sim);
/* Does every stream's account add up? For assertions. */
bool account_check(const struct simulation *sim);

static inline bool is_work(enum op_kind kind)
{
    return kind == OP_LAUNCH || kind == OP_COPY || kind == OP_COLLECTIVE || kind == OP_GROUP ||
           kind == OP_CALLBACK;
}

#endif
