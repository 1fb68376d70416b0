/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simulation.h - the clocks beside a state; private to sim/engine/.
 *
 *     struct simulation    the machine's state, the present instant, the result
 *       clocks             what takes time: events, timers, draws, sharing
 *       marks              what is looked at before the instant ends
 *       stalls             what each stream does, since when: the open ends of the stall account
 *       pipeline, host     where work is before it is pushed, in each form of program
 *       recording          the memo edge being made, if any
 *
 * Everything is indexed as in the program. An agent is *dirty* when it may be able to do something
 * it could not do when it was last looked at; a rank is *touched* when something happened on it at
 * the present instant, so that its streams may be idle for another reason than before.
 *
 * A rank may have thousands of streams, of which an event concerns a few. So in a pipeline whose
 * streams share nothing but events (`selective`) only those are looked at again that the event can
 * have changed. Streams that wait for the same thing, such as their turn behind the task a worker
 * has in hand, are not updated one by one when that changes: they share a *common* reason, which
 * keeps a log, and a stream that leaves it reads the entries made since it joined.
 *
 *     common   value: behind T7, since 30    log: until 10 behind T5 | until 30 behind T6
 *     lane     LANE_COMMON of it, since 4, from 0  ->  6 ns behind T5, 20 ns behind T6, then T7
 *
 * A stream that waits while a thread does a thousand other tasks has a thousand reasons, and a thousand such streams
 * a million. So a wait for a common reason names what it was the first NAMED_PIECES times, and after that only what took as
 * large a part of the wait so far; the rest is booked by cause. Sums over the log find both without a look at each entry.
 */
#ifndef SWSIM_SIMULATION_H
#define SWSIM_SIMULATION_H

#include <assert.h>

#include "base/arena.h"
#include "events.h"
#include "sharing.h"
#include "simulate.h"

/* Lists by key: those of key k are items[first[k]] .. items[first[k + 1] - 1]. */
struct lists {
    int *first, *items;
};

/* ---- clocks ---------------------------------------------------------------------------------- */

/* An operation that takes time, in a relative iteration. */
struct timed_op {
    int op;
    int64_t iteration;
};

/* The activity of an agent that takes time. */
enum timer {
    TIMER_NONE,
    TIMER_RUNNING, /* its event is to come */
    TIMER_LAUNCH,  /* a stream whose head is on its way to the device */
    TIMER_OVER     /* a callback whose own time is over and whose body is not */
};

/* Draws of one operation: those of two runs, which are all that iterations in flight need. That of
   iteration i is at i mod DRAWS. */
enum { DRAWS = 2 * RANDOM_RUN, DRAWS_NONE = -DRAWS };
struct draws {
    int64_t first; /* the iterations are first .. first + DRAWS - 1; DRAWS_NONE: there are none */
    int64_t ns[DRAWS];
};

/* machine.launch_latency: work can begin on its stream that much later than it was pushed, whatever else it waits for. Each
   stream keeps the times of the pushes that it holds. */
struct launches {
    int64_t latency_ns; /* 0: none of the below */
    struct launch_queue {
        int64_t *pushed_ns; /* a ring of `cap` */
        int first, count, cap;
    } * queues; /* per stream */
};

struct simulation_clocks {
    struct events events;
    struct sharing *sharing; /* NULL: no work slows other work down */
    struct launches launches;
    struct draws *draws;         /* per operation that varies */
    uint8_t *timers;             /* enum timer of an agent */
    int64_t *started_ns;         /* per agent: the start of its current operation */
    struct timed_op *member_ops; /* per communicator member: scratch */
    int *member_streams; /* per communicator member: the stream whose operation has started, -1 */
};

/* ---- marks ----------------------------------------------------------------------------------- */

struct marks {
    uint64_t *dirty;              /* one bit an agent */
    int dirty_words, dirty_first; /* no bit is set in words before dirty_first */
    bool *touched;                /* per rank */
    int *touched_ranks, touched_count;
    /* threads, then streams, of rank r: rank_agents[rank_first[r] ..], the streams from
       rank_streams[r] on */
    int *rank_first, *rank_agents, *rank_streams;

    bool has_commons; /* streams share nothing but events, each recorded on one */
    bool
        selective; /* then, unless all are asked for: only some streams of a touched rank are looked at: */
    bool *touched_streams; /* these */
    int *touched_list, touched_stream_count;
    bool *stirred; /* per thread: it was looked at, or has moved */
    int *stirred_list, stirred_count;
    int *peer_first, *peers; /* members that exchange messages with member m */
    bool *mixed;             /* communicators with collectives */
    struct lists watchers;   /* by stream: streams with waits for the events it records */
    struct lists wakes;      /* by object (machine/uses.h): threads that may wait for it */
    int *queued_seen;        /* per stream: operations in it when last looked at */
    int *cascade;            /* scratch: streams */
};

/* ---- stalls ---------------------------------------------------------------------------------- */

/* The activity of a stream, and its beginning. */
struct lane {
    /* LANE_BUSY: work; else why it is idle: >= 0 of its account's blames, else LANE_COMMON - a common
       reason */
    int blame;
    int from;           /* of a common reason's log */
    int next, previous; /* streams with the same common reason; -1: none */
    int booked; /* of its account's blames: what a common reason was when it was last booked */
    int64_t since_ns, told_ns; /* told_ns: an observer knows what was before */
    struct wait_of_lane {
        int common; /* COMMON_NONE: it does not wait for a common reason */
        int pieces; /* changes of the reason since it began, as far as they are booked */
        int64_t began_ns;
    } wait;
};
enum { LANE_BUSY = -1, LANE_COMMON = -2 };

/* Why all streams are idle that wait for the same. The first two of each thread are about what it has
   in hand and what is queued behind that; then comes one for each rank's driver. */
struct common {
    struct stall value; /* STALL_BUSY: no stream waits */
    int64_t since_ns;
    int waiting; /* streams */
    int first;   /* of them; -1: none */
    struct logged {
        struct stall value;
        int64_t until_ns;
    } * log; /* what it was before */
    int log_count, log_cap;
    struct log_sum {
        int64_t longest_ns;            /* Fenwick's tree: of the entries [i & (i + 1), i] */
        int64_t cause_ns[STALL_COUNT]; /* of the entries [0, i] */
    } * sums;                          /* of the log's entries so far as they were asked for */
    int sum_count, sum_cap;
};
enum { COMMON_NONE = -1 };

struct stalls {
    struct lane *lanes; /* per stream */
    struct common *commons;
    int common_count;
    struct stream_account *
        known; /* per stream: accounts whose blames have the numbers of ours, so far as we have them; NULL: ours
                                     alone */
    /* Streams whose next instance is not handed out, because of others: it lacks an instance, which may lack another, and so on.
       They are looked at when one on this chain may have gone on, which the links tell; `loose` ones, whose chain ends without
       an instance to blame, whenever any may have. */
    bool *chained;
    int *loose_list, *loose_at, loose_count; /* loose_at: per stream; -1: not in the list */
    bool chain_moved;
    struct chain_link {
        int lacks;                 /* the next one of the chain; -1: none */
        int first, next, previous; /* those that lack this one: a list; -1: none */
    } * links;                     /* per rank and task */
    struct chain_end {
        int64_t stamp; /* found in the look of this number */
        int task;      /* whose instance the chain leads to; -1: no instance is to blame */
    } * chain_ends;    /* per rank and task */
    int64_t chain_stamp;
};

/* ---- work before it is pushed ---------------------------------------------------------------- */

/* The instance a worker has in hand. */
struct hand {
    int64_t iteration; /* relative */
    int64_t task;      /* -1: none */
};

/* Tables of the pipeline form. */
struct pipeline_notes {
    struct hand *hands;   /* per thread */
    int64_t *submitted;   /* per rank and task: instances whose work is pushed; relative */
    int64_t *finished;    /* per rank: iterations that are over */
    int64_t *admitted_ns; /* per rank and iteration mod admitted_cap */
    int admitted_cap;     /* a power of two, at least the window */
    int64_t last_admission_ns;
    int64_t newest;                   /* iteration admitted, on any rank */
    int64_t in_flight;                /* iterations of rank 0 */
    int *task_streams;                /* per rank and task */
    int *stream_first, *stream_tasks; /* tasks of stream s: stream_tasks[stream_first[s] ..] */
    bool *queued;        /* per rank, task and relative iteration mod window: in a worker's queue */
    int *queue_seen;     /* per thread: instances in its queue that are in `queued` */
    int *task_positions; /* per rank and task: place in the enqueue order */
    bool *task_pushes;   /* per task: true if it has a device part */
    struct iterations iterations, *over; /* where those that are over are counted: mostly there */
};

/* Host programs: the work one thread pushes to one stream, in order. */
struct pusher {
    int thread, stream;
    int first, count; /* into host.pushes */
    int next;         /* of these, the one to be pushed next */
};

/* Tables of host programs. */
struct host_notes {
    struct pusher *pushers; /* by stream, then thread */
    size_t pusher_count, pusher_cap;
    int *stream_pushers; /* those of stream s: pushers[stream_pushers[s] ..] */
    int *pushes;         /* operations that push work */
    int *next_push;      /* per operation: the first push of work at or after it in its body, -1 */
    int64_t *came_ns;    /* per thread: when it came to its operation */
    int *synced; /* per thread: the last sync that it was blocked in, an operation; -1: none yet */
    int64_t allocated; /* bytes on rank 0, as last noted */
    int64_t *repeats;  /* per rank: iterations of its repeats that have work */
    int *left;         /* per rank and iteration: work that is not finished */
};

/* ---- all of it ------------------------------------------------------------------------------- */

/* memo.h */
struct memo_walk;
struct recording;
struct memo_change;
struct memo_iteration;

struct simulation {
    struct program lean;           /* without the happens-before rows, which no clock needs */
    const struct program *program; /* &lean */
    const struct timing *timing;
    const struct simulate_options *options;
    struct diag *diag;
    struct arena arena; /* of the tables below */
    struct state *state;
    int64_t base; /* iteration numbers in the state and in the tables are relative to this one */
    int64_t now_ns;
    /* nothing may happen at this time yet, or once an iteration of this number has begun; INT64_MAX: all may */
    int64_t horizon_ns, most;
    enum status status; /* the first failure */
    struct simulation_result result;

    struct simulation_clocks clocks;
    struct marks marks;
    struct stalls stalls;
    struct pipeline_notes pipeline;
    struct host_notes host;
    struct memo_walk *memo;      /* NULL: there is none, or no more */
    struct recording *recording; /* NULL: no memo edge is being made */
    struct lone_rank
        *lone; /* NULL: all ranks are here; else the only one is `rank`: lone_ranks.h */
    int rank;
};

/* prepare.c: the tables, or what cannot be simulated is refused. The simulation must not be moved in memory afterwards.
   prepare_free releases, after an error too, all but the result. */
enum status prepare(struct simulation *sim, const struct program *program,
                    const struct timing *timing, const struct simulate_options *options,
                    struct diag *diag);
void prepare_free(struct simulation *sim);

/* simulate.c: what took time at this agent is done; then, all events of this time being done, do
   what takes no time and bring the accounts up to the present. */
void simulation_event(struct simulation *sim, int agent);
void simulation_instant(struct simulation *sim);
/* All of the first instant; then all that may happen, until nothing is left or the simulation pauses. `fellow`: memo.h. */
void simulate_begin(struct simulation *sim, const struct simulation *fellow);
void simulate_go_on(struct simulation *sim);
static inline bool simulation_pauses(const struct simulation *sim)
{
    return sim->clocks.events.count > 0 &&
           (events_next_ns(&sim->clocks.events) >= sim->horizon_ns ||
            sim->pipeline.newest >= sim->most);
}
/* The same for what is only written down: iterations that begin and end. */
void simulation_iterations(struct simulation *sim, const struct memo_iteration *changes, int count);
void simulation_fail(struct simulation *sim, enum status status);
/* The agent may be able to do something. */
void simulation_mark(struct simulation *sim, int agent);
/* The threads that may wait for this may go on (marks.wakes). */
void simulation_wake(struct simulation *sim, int object);

/* Draw more, so that those of this iteration are there. */
void simulation_draw_more(struct simulation *sim, struct draws *draws, int op, int64_t iteration);

/* How long an operation that varies takes, from its draws. */
static inline int64_t simulation_draw_next(struct simulation *sim, struct draws *draws, int op,
                                           int64_t iteration)
{
    if ((uint64_t)(iteration - draws->first) >= DRAWS)
        simulation_draw_more(sim, draws, op, iteration);
    return draws->ns[(uint64_t)iteration % DRAWS];
}

/* How long an operation takes in an absolute iteration. */
static inline int64_t simulation_draw(struct simulation *sim, int op, int64_t iteration)
{
    const struct op_time *time = &sim->timing->ops[op];
    if (time->draw < 0)
        return time->mean_ns;
    if (sim->program->tasks == 0)
        return timing_draw(sim->timing, op, 0, sim->options->seed, sim->options->replication);
    return simulation_draw_next(sim, &sim->clocks.draws[time->draw], op, iteration);
}

/* Why a stream that is not busy is idle; asked when nothing more can happen at this instant. Where it is
   a reason common to all streams that wait for the same, its number goes to *common, else COMMON_NONE;
   *chained: it depends on tasks of other streams, to which the links then lead. */
struct stall cause_of_idleness(struct simulation *sim, int stream, int *common, bool *chained);
/* And what a common reason is now. */
struct stall cause_in_common(struct simulation *sim, int common);

/* account.c: bring the accounts of the touched ranks up to the present; and of all, at the end. */
void account_touched(struct simulation *sim);
void account_close(struct simulation *sim);

/* Streams do something else from now on, and common reasons are others, as written down. */
void account_apply(struct simulation *sim, const struct memo_change *changes, int count);
/* Work may have been pushed to the stream, or it went on, and so did streams that wait for its events. */
void account_cascade(struct simulation *sim, int stream);
void account_touch(struct simulation *sim, int stream);
/* What the thread has in hand, or what it waits for, may have changed. */
void account_stir(struct simulation *sim, int thread);
/* The next instance of a task is another, or is somewhere else: what lacks it may be idle for another reason. */
void account_moved(struct simulation *sim, int rank, int task);
/* The chain of a stream that is chained, for the links: true if it leads to an instance. */
bool idle_cause_link(struct simulation *sim, int stream);
/* This task's instance lacks that of another from now on; -1: none. Numbers of a rank and task. */
void account_link(struct simulation *sim, int instance, int lacks);
/* The worker queues of a rank have grown; or those of the workers that the end of a submission fires. */
void account_queues(struct simulation *sim, int rank);
void account_fired(struct simulation *sim, int rank, int task);
/* Derive tables from those that were set. */
void account_derive(struct simulation *sim);

static inline bool *account_queued(struct simulation *sim, int rank, int task, int64_t iteration)
{
    const struct program *p = sim->program;
    return &sim->pipeline.queued[(size_t)(rank * p->tasks + task) * (size_t)p->window +
                                 (size_t)(iteration % p->window)];
}
/* True if every stream's account adds up. For assertions. */
bool account_check(const struct simulation *sim);
/* With --enable-checks, check that each stream's lane says why it is idle. Between two instants. */
void account_check_lanes(struct simulation *sim);

#endif
