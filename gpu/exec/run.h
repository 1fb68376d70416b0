/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h - a run at work: what its threads share; private to the runtime (gpu/exec/runtime.h).
 *
 *     drive.c     a driver thread a rank asks the policy and fills the workers' queues
 *     worker.c    workers and host threads execute operations one by one
 *     push.c      an operation goes to its stream: launch queues, events, callbacks
 *     pump.c      the calling thread takes the workers' steps, where workers have no threads
 *     called.c    a function of the user in place of a task's work, between marks if it is recorded
 *     data.c      the memory of a run
 *     work.c      the effect of operations on it
 *     layers.c    what the passes of rank programs compute (gpu/exec/layers.h)
 *     graph.c     a steady period as one launch (gpu/exec/graph.h)
 *     watch.c     the calling thread looks for the end, signals, failures and hangs; who waits for whom, in words
 *
 * Under the public library (gpu/lib/swpipe.h) there is neither a driver thread nor a watchdog: the caller
 * takes the drivers' steps (RUN_DRIVEN), and waits have limits of their own. With RUN_ON_CALLER it takes those of
 * the workers, too.
 *
 * One lock (`lock`) protects everything the host side decides: flags, tickets, locks, queues, the
 * policy. Sections under it are short: no device call, no sleep, no task runs there. So the host side's
 * steps have one order, and their logged times, taken under the lock, tell it. A waiting thread
 * names its object (`awaits`) and waits on a condition of its own; a change of the object wakes exactly
 * its waiters, when the lock is given back (`called`): woken before, they would wait for the lock.
 * Before a thread sleeps it yields to the one that wakes it, if both have the same core, and spins where there are more
 * cores than threads: waking up takes longer than most waits (gpu/device/cores.h). Lock order: a stream's gate before the
 * lock, never the other way round; the device has its own locks below both. A stream of one worker has no need of its gate.
 *
 * Every step of the machine that a thread makes is between run_begin_step and run_end_step, which wait for
 * and pass on the turn of a witness (gate.h); the device does the same for its own steps.
 *
 * A run ends early in one way: run_fail or run_stop aborts the device's world, sets `stopped` and wakes
 * every thread. A thread that finds `stopped` returns.
 */
#ifndef SWSIM_RUN_H
#define SWSIM_RUN_H

#include <assert.h>
#include <pthread.h>

#include "machine/policy.h"
#include "gpu/device/cores.h"
#include "gpu/device/gate.h"
#include "gpu/record/journal.h"
#include "gpu/net/rendezvous.h"
#include "runtime.h"

/* An iteration in flight on one rank. */
struct run_in_flight {
    int64_t admitted_ns;
    int submit_left; /* tasks not yet submitted */
    int record_left; /* tasks without a recorded event */
    bool last_recorded;
};

struct instance {
    int task;
    int64_t iteration, ticket;
};

/* A function of the user at work (called.c). */
struct call {
    const struct op *op; /* the device work it stands for; NULL: none, or not recorded */
    struct log *log;     /* of its thread, which logs nothing as long as it works; NULL: none */
    struct log_entry *entry;
    bool marked; /* it has begun to push */
    bool worked; /* it has pushed the plan's work, which has had its room */
};

/* The range that a profiler sees of an instance: from its first work to its last. */
struct range {
    int last; /* operation of the body */
    bool open;
};

/* How far an instance of a body is. */
struct run_place {
    int next; /* operation of the body */
    struct range range;
};

/* A worker whose steps the calling thread takes (pump.c). It is left where it cannot go on. */
struct pumped {
    bool begun;       /* the hook at its start went well */
    bool in_instance; /* the current one, at `place` */
    struct run_place place;
    int64_t came_ns;         /* it came to what it cannot do yet; 0: nothing, or not recorded */
    struct device_event *on; /* which is to wait for this; NULL: for another worker, or nothing */
    const struct op *sync;   /* a wait of the host for the device that has begun; NULL: none */
    struct device_event *
        *marks; /* [streams of the rank]: what it waits for; NULL: the plan has no such wait */
};

/* Of an object: what is taken from it, and put there. */
struct run_used {
    int64_t taken, put;
};

/* A program thread. Callback threads have one of these too, but the device's threads run them. */
struct run_thread {
    struct run *run;
    int index, rank;
    pthread_t id;
    bool started;
    pthread_cond_t wake;
    const void *awaits; /* the object it is blocked on, NULL: none; under the lock */
    const struct op *
        awaiting; /* and the operation of that iteration: run_wake_able asks of it; NULL: any change matters */
    int64_t awaiting_iteration;
    atomic_uint woken; /* so many times */
    struct spin spin;
    struct way way;        /* to the thread that wakes it */
    _Atomic int64_t steps; /* so far: progress, for the watchdog; written by this thread alone */
    struct run_thread *next_called; /* in run->called, if it is `is_called`; under the lock */
    bool is_called;
    struct instance *queue; /* WORKER: a ring of queue_cap; under the lock */
    int queue_cap, queue_first, queue_count;
    bool yields; /* DRIVER: held, it fails nothing: its caller has others go on meanwhile */
    struct instance current; /* WORKER */
    bool idle; /* WORKER, with a chooser: it has submitted what it took; under the lock */
    bool loops, has_taken; /* WORKER: it takes instances itself; the current one is taken already */
    struct pumped pumped;  /* WORKER without a thread */
    struct log *log;       /* NULL: this run is not recorded */
    struct call call;
    _Atomic int64_t
        at; /* where it is, for the watchdog: operation << 32 | iteration; -1: nowhere */
};

/* A program stream. */
struct run_stream {
    struct device_stream *handle;
    int pusher;           /* a worker that pushes there, + 1; 0: none is known */
    bool shared;          /* others do, too; else the gate stays open */
    pthread_mutex_t gate; /* the device operations of one program operation go in together */
    /* A launch queue of `cap` program operations: there is a mark, in a ring, behind each `marked` of them. NULL: unlimited */
    struct device_event **room;
    int cap, marked, room_marks;
    int64_t items;             /* program operations pushed, under the gate */
    int64_t passed;            /* marks that were waited for, under the gate */
    struct device_event *mark; /* for operations that leave nothing else in the stream */
    /* For operands and results that no buffer of the plan stands for. Operands are never written: what
       an operation reads does not depend on what its stream did before. */
    struct device_buffer *operands, *results;
};

/* With a chooser, under the lock. */
struct rank_choice {
    bool asks;                /* something has changed since it was asked */
    bool asking;              /* on some thread */
    int chosen;               /* the worker that has not taken its instance yet, + 1; 0: none */
    int running;              /* tasks taken and not submitted */
    struct run_offer *offers; /* [thread_count]; of the asking thread meanwhile */
};

struct run_rank {
    struct device *device;
    struct device_event *never;   /* not recorded, ever */
    struct device_buffer *digest; /* DIGEST_FLOATS a task */
    int64_t served;               /* tickets */
    int64_t end;                  /* pipeline: iterations it will do; lowered by a stop */
    bool driver_done;
    int64_t handed_out;         /* instances that are not submitted yet */
    struct rank_graphs *graphs; /* NULL: none (gpu/exec/graph.h) */
    struct rank_choice choice;
};

struct run_buffer {
    struct device_buffer **instances; /* [count] */
    int count;
    size_t bytes;
};

/* The data of an operation that pushes, beyond the program's description. */
struct run_op {
    struct work work;               /* in sizes the device can bear */
    int64_t bytes;                  /* COPY, COLLECTIVE: that really move */
    struct device_buffer **staging; /* COPY h2d, d2h: host memory, one an instance */
    int staging_count;
    bool vain;  /* WAIT: for an event of its own stream */
    bool works; /* it is work of its task: worker_is_work */
    bool ends; /* the last two operations of a task begin here, which are one section of the lock */
    bool is_call; /* if its task has a function: that is called here, in place of all its work */
    struct run_thread *thread; /* CALLBACK: executes its body; WRITE, WAIT_FLAG: has pushed it */
    int body;                  /* CALLBACK; WRITE, WAIT_FLAG: the iteration */
    int64_t acted_ns; /* WRITE, WAIT_FLAG: when it set the flag, or found it set; 0: not yet */
};

/* Tasks that are functions of the user: called by the task's worker in place of the plan's own work,
   after the dependences, with the turn and the locks the plan gives the task. */
struct run_functions {
    bool (*has)(void *arg, int task);
    /* False: the run has stopped, or failed by run_fail. */
    bool (*call)(void *arg, struct run_thread *self, int task, int64_t iteration);
    /* For profilers: true if kept results are put back in place of the work. */
    bool (*skips)(void *arg, int rank, int task);
    /* True if the function only gives work to the device, the same for all iterations but for the plan's buffers: it is
       not called where a graph has that work. */
    bool (*is_device_only)(void *arg, int task);
    /* On each worker, first and last; false: the run has failed. */
    bool (*begin_thread)(void *arg, struct run_thread *self);
    void (*end_thread)(void *arg, struct run_thread *self);
    void *arg;
};

/* An instance that can begin: the oldest of its worker, which is idle. */
struct run_offer {
    int task, thread; /* program->threads */
    int64_t iteration;
};
struct run_choice {
    const struct run_offer *offers; /* the older iteration first */
    int count;                      /* one at least */
    int running;                    /* tasks of the rank taken and not submitted */
    int in_flight;                  /* iterations of the rank with a context; the oldest of them */
    int64_t oldest;
    bool may_wait; /* something else will happen that asks again */
};
enum { RUN_WAITS = -1 };
/* Returns the number of an offer, or RUN_WAITS if it may. On any worker's thread, one at a time for a rank. */
struct run_chooser {
    int (*choose)(void *arg, int rank, const struct run_choice *choice);
    void *arg;
};

/*
 * How a run goes. No other combination of these exists; run_open asserts it of its configuration.
 *
 *                    driver's   workers'   operations   order of        work of    device
 *                    steps by   steps by                steps           tasks
 *     RUN_TIMED      threads    threads    take time    any             the plan   opened by the run
 *     RUN_REFERENCE  threads    threads    move data    any             the plan   opened by the run
 *     RUN_FORCED     threads    threads    move data    the witness's   the plan   opened by the run
 *     RUN_DRIVEN     caller     threads    take time    any             functions  borrowed
 *     RUN_ON_CALLER  caller     caller     take time    any             functions  borrowed
 *
 * The first three are runs of swrun, under a watchdog (watch.c). RUN_REFERENCE gives the results that others are compared
 * with. The last two are runs of the public library: its caller takes the drivers' steps (drive_enqueue, drive_retire), and
 * with RUN_ON_CALLER also those of the workers (pump.c).
 */
enum run_mode { RUN_TIMED, RUN_REFERENCE, RUN_FORCED, RUN_DRIVEN, RUN_ON_CALLER };

static inline bool run_mode_is_timed(enum run_mode mode)
{
    return mode != RUN_REFERENCE && mode != RUN_FORCED;
}
static inline bool run_mode_is_driven(enum run_mode mode)
{
    return mode == RUN_DRIVEN || mode == RUN_ON_CALLER;
}

struct run_config {
    enum run_mode mode;
    enum device_kind device;
    bool serial; /* the program runs one task after another, for profilers and for RUN_REFERENCE */
    bool
        digest; /* tasks fold what they read into what they write, to be compared; always with RUN_REFERENCE, never in a
                    run that is driven */
    struct rendezvous *
        rendezvous; /* of processes that have a rank each: nothing is opened and no thread runs for the
                                      other ranks; NULL: all ranks are here */
    int instances; /* of iteration buffers; 0: as many as iterations can be in flight, and data_open
                                 sets this to their number */
    enum runtime_graph graph; /* steady periods as graphs; off in a serial run */

    /* Of runs with a watchdog: */
    int64_t timeout_ns;
    const atomic_int *stop;
    struct gate *gate; /* RUN_FORCED: the steps of the witness */
    int64_t seed;      /* of the branches that `choose` takes */

    /* Of runs that are driven: */
    struct device_world *world;    /* borrowed */
    struct device *const *devices; /* borrowed, one a rank */
    const struct run_functions *functions;
    const struct run_chooser *chooser; /* data-flow; NULL: workers take what is oldest */
    int64_t
        wait_ns; /* a task that waits longer for another task's CPU part, or for its turn, fails the run; 0: no limit */
    int64_t spin_ns; /* before a thread sleeps; 0: while a core is free (cores.h); -1: never */
};

struct layer_run;

struct run {
    const struct program *program;
    struct run_config config;
    struct device_world *world;
    struct run_rank *ranks;
    struct run_stream *streams;
    int slots;                    /* of each family of events and flags, see size_slots */
    struct device_event **events; /* [event_families * slots] */
    struct device_event *
        *done; /* [rank * tasks + task][window]: records that are not re-armed before
                                     their iteration is over; NULL: `events` are good enough */
    struct device_comm **comms; /* [member_count] */
    struct run_buffer *buffers; /* beside program->buffers */
    struct run_op *ops;         /* beside program->ops */
    int64_t *part_bytes;        /* beside program->parts */
    struct journal *journal;    /* NULL: not recorded */
    struct layer_run *layers;   /* rank programs with arithmetic: what passes compute; else NULL */
    bool watched;               /* by a profiler (nvtx.h) */

    pthread_mutex_t lock;
    pthread_cond_t watch; /* a thread ended, or the run stopped */
    struct run_thread *threads;
    int alive;
    struct policy *policy;           /* pipeline form */
    struct run_in_flight *in_flight; /* [rank][window] */
    atomic_int *flags;               /* [flag_families * slots]: values; changed under the lock */
    atomic_bool *recorded;           /* [event_families * slots]: since the slot was armed */
    int blocked;                     /* threads in run_block */
    int *holders;                    /* locks: thread, -1 */
    int *queued;                     /* queues between host threads */
    bool *loaded;                    /* [rank][kernel]: lazy loading */
    bool draining;                   /* drivers admit nothing: where to end is being agreed on */
    bool ending;                     /* the run is being stopped */
    enum status failure;             /* why, if it is one */
    char failure_text[512];

    struct run_thread *called; /* to be woken when the lock is given back */

    /* RUN_ON_CALLER, of the calling thread: */
    int64_t pumped_ns;     /* so long it has taken workers' steps */
    int64_t idle_since_ns; /* no worker can go on since then; 0: one could */

    atomic_bool stopped;
};

/* ---- run.c: open, close, wait, wake, fail ---------------------------------------------------- */

enum status run_open(struct run *run, const struct program *program,
                     const struct run_config *config, struct diag *diag);
/* After run_join. A run that was stopped has aborted its device. */
void run_close(struct run *run);

enum status run_start_threads(struct run *run, struct diag *diag);
/* Wait for those that were started. */
void run_join(struct run *run);

/* Monotonic, since the world was opened. */
static inline int64_t run_now(const struct run *run)
{
    return device_now(run->world);
}

/* The same for a step of this thread that may be logged; 0 where there is no log. */
static inline int64_t run_step_ns(const struct run_thread *self)
{
    return self->log ? run_now(self->run) : 0;
}

/* When the thread came to the step that it takes now, as above. */
static inline int64_t run_come_ns(const struct run_thread *self)
{
    return self->pumped.came_ns ? self->pumped.came_ns : run_step_ns(self);
}

/* Limits are for waiting. Where the calling thread takes the workers' steps, deadlines are given in time without these:
   until then in time, and back. */
static inline int64_t run_idle_now(const struct run *run)
{
    return run_now(run) - run->pumped_ns;
}
static inline int64_t run_real_deadline(const struct run *run, int64_t deadline_ns)
{
    return deadline_ns == DEVICE_FOREVER ? DEVICE_FOREVER : deadline_ns + run->pumped_ns;
}

static inline bool run_is_timed(const struct run *run)
{
    return run_mode_is_timed(run->config.mode);
}
static inline bool run_is_driven(const struct run *run)
{
    return run_mode_is_driven(run->config.mode);
}
static inline bool run_is_on_caller(const struct run *run)
{
    return run->config.mode == RUN_ON_CALLER;
}
static inline bool run_is_forced(const struct run *run)
{
    return run->config.mode == RUN_FORCED;
}

/* True if a function of the caller does the work of this task of the pipeline. */
static inline bool run_has_function(const struct run *run, int task)
{
    const struct run_functions *functions = run->config.functions;
    return run_is_driven(run) && task >= 0 && functions->has(functions->arg, task);
}

/* The two ends of a step of this thread, in a run that is forced into an order. Begin without a lock. */
static inline void run_begin_step(struct run_thread *self)
{
    if (run_is_forced(self->run))
        gate_wait(self->run->config.gate, program_thread_agent(self->run->program, self->index));
}
static inline void run_end_step(struct run_thread *self)
{
    if (run_is_forced(self->run))
        gate_pass(self->run->config.gate, program_thread_agent(self->run->program, self->index));
}

/* The ranks that are here: [first, last). */
static inline int run_first_rank(const struct run *run)
{
    return run->config.rendezvous ? rendezvous_rank(run->config.rendezvous) : 0;
}
static inline int run_last_rank(const struct run *run)
{
    return run->config.rendezvous ? run_first_rank(run) + 1 : run->program->ranks;
}
static inline bool run_has(const struct run *run, int rank)
{
    return rank >= run_first_rank(run) && rank < run_last_rank(run);
}

static inline bool run_stopped(struct run *run)
{
    return atomic_load(&run->stopped);
}

/* Give the lock back, and wake those that are called. */
void run_unlock(struct run *run);

/* Sleep until `object` is woken or the run stops, in a loop that looks again. With the lock held. The second returns false
   when the deadline has passed. */
void run_block(struct run_thread *self, const void *object);
bool run_block_until(struct run_thread *self, const void *object, int64_t deadline_ns);
/* With the lock held: wake the threads that wait for `object`, those of a rank that wait for a flag, or all of a rank that
   wait. A run needs no ready set: a blocked thread waits for one object, which is the operand of its operation. */
void run_wake(struct run *run, const void *object);
/* The same for those whose operation could be done now. `able` is asked of each in turn; *used, 0 at first, is for what the
   earlier ones will take. */
typedef bool run_able(const struct run_thread *thread, struct run_used *used);
void run_wake_able(struct run *run, const void *object, run_able *able);
void run_wake_dependents(struct run *run, int rank);
void run_wake_rank(struct run *run, int rank);

/* Put an instance into a worker's queue. With the lock held. */
void run_give(struct run *run, int thread, const struct instance *instance);

/* The first failure is kept; everything stops. Without the lock. */
void run_fail(struct run *run, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* STATUS_OK: true. Else the run fails, unless it has stopped already: with the first failure of the
   device, of which this may be a consequence, or with the first error in `diag`. */
bool run_check(struct run *run, enum status status, struct diag *diag);
/* Stop without a failure. */
void run_stop(struct run *run, const char *why);

/* Let `ns` pass on this thread; false when the run stopped. */
bool run_spend(struct run *run, int64_t ns);

/* Log a step taken at `at_ns`, come to at `begin_ns`; NULL where there is no log, or no memory. The record is complete with
   log_commit. */
struct log_entry *run_log_entry(struct run_thread *self, enum log_kind kind, int op,
                                int64_t iteration, int64_t begin_ns, int64_t at_ns);
static inline struct log_entry *run_log(struct run_thread *self, enum log_kind kind, int op,
                                        int64_t iteration, int64_t begin_ns, int64_t at_ns)
{
    const int64_t steps = atomic_load_explicit(&self->steps, memory_order_relaxed);
    atomic_store_explicit(&self->steps, steps + 1, memory_order_relaxed);
    return self->log ? run_log_entry(self, kind, op, iteration, begin_ns, at_ns) : NULL;
}
/* Both at once, for steps that push nothing; false when memory ran out: the journal remembers it and
   the watchdog makes the run fail. The lock may be held. */
static inline bool run_note(struct run_thread *self, enum log_kind kind, int op, int64_t iteration,
                            int64_t begin_ns, int64_t at_ns)
{
    if (run_log(self, kind, op, iteration, begin_ns, at_ns))
        log_commit(self->log);
    else if (self->log)
        return false;
    return true;
}

static inline struct run_in_flight *run_iteration(struct run *run, int rank, int64_t iteration)
{
    int window = run->program->window;
    assert(run_has(run, rank) && iteration >= 0);
    return &run->in_flight[rank * window + (int)(iteration % window)];
}

/* The instance of a family for an iteration; single objects (distance < 0) have one instance. */
static inline int run_instance(const struct run *run, const struct op *op, int64_t iteration)
{
    const struct program *program = run->program;
    int slot = op->distance < 0 || program->tasks == 0
                   ? 0
                   : (int)((iteration - op->distance) % run->slots);
    assert(op->object >= 0 && slot >= 0);
    return op->object * run->slots + slot;
}

/* ---- drive.c --------------------------------------------------------------------------------- */

/* The driver thread of a rank, from start to end. */
void drive_run(struct run_thread *self);
/* Make the slot of (task, iteration) its own: nothing set, nothing recorded. With the lock held. */
void drive_arm_slot(struct run *run, int rank, int task, int64_t iteration);
/* True if the host side of the iteration is as far as a driver may wait for. With the lock held. */
bool drive_is_ready(const struct run *run, const struct run_in_flight *state);
/* Admit nothing more; all ranks end after the same iteration. With ranks in other processes this takes
   until all have said how far they are: called again until it returns true. */
bool drive_drain(struct run *run);
/* This process is done: no other needs to wait for its progress. */
void drive_done(struct run *run);

/* The steps of a driver, for a run that is driven by its caller. Without the lock; false when the run
   stopped or failed. `self` is the driver's thread of a rank. */
struct drive_step {
    enum policy_next next;
    int64_t iteration; /* RETIRE: the oldest */
    int64_t admitted;  /* the iteration this rank admits next */
};
struct drive_step drive_next(struct run_thread *self);
/* Wait until the step can be taken: the iteration to be retired is over, or the one whose memory the next
   one takes is. Not after the deadline: then some of it has not been submitted yet, or the device is at it. Where the
   caller takes the workers' steps and none can ever go on, the run fails, unless `self->yields`. */
enum drive_wait { DRIVE_READY, DRIVE_HELD_BY_HOST, DRIVE_HELD_BY_DEVICE, DRIVE_STOPPED };
enum drive_wait drive_await(struct run_thread *self, const struct drive_step *step,
                            int64_t deadline_ns);
/* That took too long: the run fails with STATUS_LIMIT, and says what has been waited for. */
void drive_late(struct run_thread *self, const struct drive_step *step);
/* True if the device has nothing left to do of an iteration that has been retired, and whose place no other has taken. */
bool drive_is_over(struct run_thread *self, int64_t iteration);
/* When drive_next says ENQUEUE, and drive_await that there is room. */
bool drive_enqueue(struct run_thread *self);
/* When drive_next says RETIRE, and drive_await that the iteration is over. HELD_BY_DEVICE: it no longer is, as its slots have been
   used again; nothing has changed. */
enum drive_wait drive_retire(struct run_thread *self, int64_t iteration);
/* Wait until the rank's device has nothing left to do. Later than the deadline: the run fails as above. */
bool drive_sync(struct run_thread *self, int64_t deadline_ns);
/* There is no data for another iteration on this rank. */
bool drive_end_data(struct run_thread *self);
/* Nothing more will be handed out: workers end when their queues are empty. */
void drive_leave(struct run_thread *self);

/* ---- pump.c: RUN_ON_CALLER -------------------------------------------------------------------- */

/* Behind the streams. */
enum status pump_open(struct run *run, struct diag *diag);
void pump_close(struct run *run);
/* The hooks of workers without threads, in place of a thread's start and end. */
void pump_begin(struct run *run);
void pump_end(struct run *run);
/* Take the steps of a rank's workers, or of all workers here, until no worker can go on. False if none could, or if workers
   have threads. Without the lock, here and below. */
bool pump_rank(struct run *run, int rank);
bool pump_all(struct run *run);
/* The same, but if no worker can go on, wait until one can. False if the deadline has passed, or if no worker ever can; then
   the run fails, unless the driver yields. */
bool pump_or_wait(struct run_thread *driver, int64_t deadline_ns);
/* True if no worker waits for the device: none can go on before a driver hands out an instance. */
bool pump_is_held(const struct run *run);
/* Take the workers' steps until they have nothing left to do. False as above. */
bool pump_through(struct run_thread *driver, int64_t deadline_ns);
/* Wait for an event, and take the steps of workers meanwhile. */
enum status pump_event(struct run *run, struct device_event *event, int64_t deadline_ns,
                       struct diag *diag);

/* ---- worker.c -------------------------------------------------------------------------------- */

void worker_run(struct run_thread *self);
/* Take the steps of a worker without a thread until it cannot go on. False: it could not take any. */
bool worker_go_on(struct run_thread *self);
/* The operation that it is at has waited too long: the run fails. Always false. */
bool worker_is_late(struct run_thread *self);
/* True if the operation is work of its task, and not one that orders tasks. */
bool worker_is_work(const struct op *op);

/* Log that a worker took an instance, which is its current one, and do all its operations. */
bool worker_submit(struct run_thread *self);
void host_thread_run(struct run_thread *self);
/* Do the plan's own work for a task that is a function of the user; not what waits. False as above. */
bool worker_own_work(struct run_thread *self, int task, int64_t iteration);
/* Execute a callback's body on behalf of its callback thread. */
void callback_run(struct run_thread *self, int body, int64_t iteration);

/* ---- push.c: false when the run stopped or failed -------------------------------------------- */

bool push_work(struct run_thread *self, const struct op *op, int64_t iteration);
bool push_callback(struct run_thread *self, const struct op *op, int64_t iteration);
/* An operation that takes effect in a step of its stream, by a function of the host: its argument is a struct run_op. */
bool push_step(struct run_thread *self, const struct op *op, int64_t iteration,
               void (*step)(void *arg));
bool push_record(struct run_thread *self, const struct op *op, int64_t iteration);
/* Count the task as recorded, for the driver. With the lock held. */
void push_count_record(struct run *run, int task, struct run_in_flight *state);
bool push_wait(struct run_thread *self, const struct op *op, int64_t iteration);
bool push_mark(struct run_thread *self, const struct op *op, int64_t iteration);
/* The turns in which an operation starts and finishes, in a run that is forced into an order. */
struct device_turn push_turn(const struct run *run, const struct op *op);
/* The event that says when a task of an iteration in flight is over. */
struct device_event *push_done_event(struct run *run, int rank, int task, int64_t iteration);

/* The halves of a push that is not of the program's making, for called.c: room and the gate; what
   goes behind it. */
bool push_enter(struct run_thread *self, const struct op *op, bool takes_room, struct diag *diag);
bool push_leave(struct run_thread *self, const struct op *op, bool takes_room, bool done,
                struct diag *diag);
/* The event that so many pushes to a stream must wait for; NULL: they need not wait, or the run has failed. For the only
   thread that pushes there. */
struct device_event *push_obstacle(struct run *run, int stream, int count);

/* ---- drive.c: a policy, with the lock held ------------------------------------------------------------- */

/* Wait until the oldest instance of this worker's queue is chosen, to be taken now. False at the end. */
bool choose_wait(struct run_thread *self);
/* The tasks that can be chosen on this rank, or waited for, may have changed. */
void choose_changed(struct run *run, int rank);
/* The task that this worker has taken is submitted. */
void choose_submitted(struct run_thread *self);

/* ---- called.c -------------------------------------------------------------------------------- */

/* Where functions are called: run_op.is_call. */
void called_open(struct run *run);
/* Work of a task that has a function: the place where that is called, or one whose work is part of it. False as above. */
bool called_run(struct run_thread *self, const struct op *op, int64_t iteration);
/* The function is about to give work to its stream; at every time but the first nothing happens. */
bool called_pushes(struct run_thread *self);

/* ---- data.c ---------------------------------------------------------------------------------- */

enum { DIGEST_FLOATS = 64, DIGEST_BYTES = DIGEST_FLOATS * (int)sizeof(float) };

enum status data_open(struct run *run, struct diag *diag);
void data_close(struct run *run);

/* The k-th buffer an operation reads, or writes; -1: there is none. */
int data_access(const struct run *run, const struct op *op, bool write, int k);
/* The instance of a buffer for an iteration. */
struct device_ref data_buffer(const struct run *run, int buffer, int64_t iteration);

/* The room that an operation needs: bytes that it reads, computes with, writes. In the stream's
   memory for operands the second lies behind the first, aligned. */
enum { DATA_ALIGN = 256 };
struct needs {
    int64_t bytes[3];
};
struct needs data_needs(const struct run *run, const struct op *op);
static inline int64_t data_align(int64_t bytes)
{
    return (bytes + DATA_ALIGN - 1) / DATA_ALIGN * DATA_ALIGN;
}

/* With the device of the rank idle: copy `bytes` of a device buffer to the host. */
enum status data_fetch(struct run *run, int rank, struct device_ref from, size_t bytes, float *to,
                       struct diag *diag);

/* The remains of a run: a digest a rank and task, the final contents of a buffer's first floats. */
struct results {
    float *floats;
    size_t digests, buffers; /* DIGEST_FLOATS each, digests first */
};
/* With the device idle. Freed with free(out->floats). */
enum status data_results(struct run *run, struct results *out, struct diag *diag);

/* ---- work.c ---------------------------------------------------------------------------------- */

/* Push the work of an operation, with what makes its data checkable before it. With the gate held. */
enum status work_push(struct run *run, const struct op *op, int64_t iteration, struct stamp *stamp,
                      struct diag *diag);
/* Where a graph has that work: only write what its copies bring from the host in this iteration. */
void work_refresh(struct run *run, const struct op *op, int64_t iteration);
/* True if the work differs between an even and an odd iteration. */
bool work_alternates(const struct run *run, const struct op *op);

/* ---- watch.c --------------------------------------------------------------------------------- */

enum watch_end {
    WATCH_FINISHED,
    WATCH_FAILED,
    WATCH_INTERRUPTED,
    WATCH_HUNG,
    WATCH_BEREFT /* another process is gone */
};

/* Wait until all threads ended and the device is idle, or the run has to stop and was stopped. A run
   that drained in time is interrupted, too, but not stopped. Why it failed or hangs goes to diag. */
enum watch_end watch_run(struct run *run, struct diag *diag);

/* The object that the operation waits for, in words. */
void waits_for(struct run *run, int rank, const struct op *op, int64_t iteration, char *out,
               size_t bytes);
/* The other workers' positions, as "; NAME: TASK waits for WHAT" each, as far as there is room. */
void waits_of_others(const struct run_thread *self, char *out, size_t bytes);

#endif
