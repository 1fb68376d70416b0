/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.h - a plan made ready to execute: the immutable tables the machine runs on.
 *
 * `program_build` lowers every form of plan to bodies of operations (ops.h), executed by agents:
 *
 *     data        the data loader: decides whether a further iteration exists (only when the number
 *                 of iterations is open)
 *     threads     host threads, pipeline workers (one a thread group and rank), pipeline drivers
 *                 (one a rank), and callback threads (one a stream that has callbacks)
 *     streams     device FIFOs
 *     comms       communicators: a collective completes on all its members at once
 *
 * Everything is an index into a table here. A program is never changed after it is built and may be
 * shared by any number of machines and threads. All memory is the program's arena; the plan must
 * outlive the program.
 *
 * Objects that exist once per iteration (events and flags of tasks) come in families: instance
 * (family, iteration) is family * slots + iteration mod slots.
 */
#ifndef SWSIM_PROGRAM_H
#define SWSIM_PROGRAM_H

#include <stdatomic.h>
#include <string.h>

#include "base/assert_index.h"
#include "plan/plan.h"

enum driver { DRIVER_NONE, DRIVER_CLOCK, DRIVER_DATAFLOW };
const char *driver_key(enum driver driver); /* "none", "clock", "dataflow" */

/* The options of a run that the command line may change. */
struct program_options {
    enum driver driver;   /* pipeline form: CLOCK or DATAFLOW; other forms: NONE */
    int64_t iterations;   /* pipeline form: iterations until the data ends; -1: any number */
    bool ended_by_caller; /* the data end before `iterations`, which is more than any run has */
    int ranks;            /* 0: as the plan says */
    int few; /* rank programs: the most ranks of a dimension of groups that are built; 0: all */
    int stands_for; /* what is built stands for so many ranks, which do the same; 0: each is built */
    int max_depth;  /* 0: as the plan says */
    int part;       /* 0: all ranks; k + 1: rank k and its fellows, the others have no data */
    bool faults;    /* let one fault happen: see struct fault */
    bool clocks;    /* knowledge beside the state, for one run: programs without iterations and
                           allocations, of any size; rank programs of any size have buffers */
    bool serial;    /* compare the order of accesses with that of a serial run: machine.c */
    bool keep_lists; /* rank programs: the program has their complete lists */
    bool
        straight; /* rank programs that leave no choice: the program has their graph, and no operations */
    bool no_knowledge; /* no happens-before knowledge: races and lifetimes are not checked, and a
                           state is about half as large */
    bool any_size;     /* a state may be too large to be made: program_fits. Not kept in a program:
                           its options build further ones, and those have states */
    const struct work_limit
        *limit; /* of building, which copies it; NULL: half of this machine's memory */
    const atomic_bool
        *interrupted; /* without a limit: building ends when it turns true; NULL: never */
};

struct access {
    int buffer : 31; /* index into program->buffers (one a rank and plan buffer) */
    bool write : 1;
};
enum { ACCESS_MOST_BUFFERS = 0x3fffffff };

struct part {
    bool send, metadata;
    enum element element : 8;
    int tag;         /* program->names */
    int channel;     /* program->channels */
    uint32_t listed; /* index + 1 into plan->listed; 0: none */
    int64_t bytes;
};

/* True if a send and a receive that meet match as one message. Iterations are apart. What one side does not say
   fits. */
static inline bool part_same_message(const struct part *a, const struct part *b)
{
    return a->tag == b->tag && (a->bytes == b->bytes || a->bytes == 0 || b->bytes == 0) &&
           (a->element == b->element || !a->element || !b->element);
}

/* Attributes that few operations have of their own: those that agree in them share one. */
struct given {
    const struct dist *jitter;
    const struct work *work;     /* work of a real run */
    const struct shares *shares; /* its shares of the device; NULL: none given */
    const int
        *roots; /* COLLECTIVE: positions of the members whose data all get; none: of every one */
    int root_count;
    int64_t bytes;
};

/* There may be a hundred million: a member that one kind alone has shares its place with those of others. */
struct op {
    enum op_kind kind : 8;
    enum sync_kind sync : 4;
    bool snapshot : 1;  /* SYNC: other threads push to what is waited for: snapshot.h */
    bool is_kernel : 1; /* CALLBACK: a kernel of steps, which does not run on the host */
    bool free : 1; /* commutes with every step of every other agent; see program_find_conflicts */
    bool starts_free : 1;         /* pushes: so does its start by its stream */
    enum flag_rule flag_rule : 4; /* OPERAND_FLAG: how it uses its flag, with `value` */
    int8_t distance;              /* events and flags: the instance of iteration i - distance */
    int task;                     /* pipeline form: index into plan->pipeline.tasks; else -1 */
    union {
        int member; /* op_uses_comm, ABORT: this rank's position in the communicator */
        int device; /* others, SYNC and QUERY: the rank whose device is asked; -1: that of the thread */
    };
    uint32_t listed; /* index + 1 into plan->listed; 0: none */
    int sm;
    int name;      /* program->names: kernel, tag or label; -1 */
    int at;        /* program->names, from 1: where in the program it is called; 0: not told */
    int stream;    /* program->streams; -1 */
    int object;    /* event family, flag family, queue, lock, buffer or kernel; -1 */
    int iteration; /* host programs: of the thread's repeats; -1: in none */
    int comm;      /* op_uses_comm: program->comms; else -1 */
    union {
        int ticket;     /* TICKET, SERVE in host programs; -1: the instance's own */
        int callback;   /* CALLBACK: program->threads */
        int part_first; /* GROUP: program->parts */
        int value;      /* OPERAND_FLAG: that the flag gets, what is added, taken or waited for */
        int sm_most; /* LAUNCH, greedy: the most residency slots that it takes, of which `sm` are the least; else -1 */
        int within; /* LOCK, UNLOCK, RECORD, WAIT of a pipeline: part of the wait for a dependence of this distance, as
                           that takes a lock or is on a legacy stream; -1: of none */
    };
    int part_count;
    int access_first, access_count; /* program->accesses */
    int otherwise; /* an operation with branches: it goes on so far behind itself where the answer is no; ELSE: always; else 0 */
    int64_t time_ns;           /* CPU work: CPU time; pushes of work: device time */
    const struct given *given; /* never NULL */
    struct mark mark;
};

_Static_assert(PLAN_MAX_DISTANCE <= INT8_MAX, "distances of operations have 8 bits");

/* True if it starts with the residency slots that are free, and takes more as they become free. */
static inline bool op_is_greedy(const struct op *op)
{
    return op->kind == OP_LAUNCH && op->sm_most > 0;
}

/* The distance of the dependence without which the operation has no effect: awaited, waited for, or part of that wait; -1: it
   has one always. */
static inline int op_dependence(const struct op *op)
{
    switch (op->kind) {
    case OP_AWAIT: return op->distance;
    case OP_WAIT: return op->distance >= 0 ? op->distance : op->within;
    case OP_RECORD: return op->distance >= 0 ? -1 : op->within;
    case OP_LOCK:
    case OP_UNLOCK: return op->within;
    default: return -1;
    }
}

/* True if a thread may go past the sync behind this operation. */
static inline bool op_may_sync(const struct op *op)
{
    return op_syncs(op->kind) && (op->sync == SYNC_RETRY || op->sync == SYNC_STAGED);
}

/* True if it has branches. Of which one follows the state decides, or with CHOOSE nothing. */
static inline bool op_has_branches(const struct op *op)
{
    return op->otherwise > 0 && op->kind != OP_ELSE;
}

/* True if the members that start these match as one collective. Iterations are apart. */
static inline bool op_same_collective(const struct op *a, const struct op *b)
{
    const struct given *x = a->given, *y = b->given;
    return a->name == b->name && x->bytes == y->bytes &&
           x->work->collective == y->work->collective && x->work->element == y->work->element &&
           x->root_count == y->root_count &&
           (x->root_count == 0 ||
            memcmp(x->roots, y->roots, (size_t)x->root_count * sizeof *x->roots) == 0);
}

struct body {
    int first, count; /* program->ops */
    int thread;       /* that executes it */
};

/* What the name of the thread of a stream's kernels with steps begins with. */
#define PROGRAM_KERNEL_OF "kernel of "

enum thread_kind { THREAD_HOST, THREAD_WORKER, THREAD_DRIVER, THREAD_CALLBACK };

struct thread_desc {
    enum thread_kind kind;
    int rank;
    const char *name;
    int body;      /* HOST: its body; else -1 */
    int group;     /* WORKER: plan->groups */
    int stream;    /* CALLBACK: the stream that runs it */
    int queue_cap; /* WORKER: instances its queue holds */
};

struct stream_desc {
    int rank;
    int plan_stream; /* plan->streams */
    const char *name;
    const char *full_name; /* with its rank, "r1.copy", where a thread drives several devices */
    int cap;               /* items it holds before a push blocks */
    int hw_queue;          /* program->hw_queues; -1: its own */
};

struct comm_desc {
    const char *name;
    const int *members; /* ranks */
    int count;
    int first_member; /* base of this communicator's members in program-wide member numbering */
    bool used;        /* some operation is on it */
    int eager_messages;
    int64_t eager_bytes;
    int64_t time_limit_ns; /* of an operation, from its call on; 0: none */
};

/* A directed pair of members: messages from one rank to another through one communicator. */
struct channel {
    int comm, from, to; /* ranks */
    int cap;            /* unmatched messages it may hold */
};

struct buffer_desc {
    int rank;
    int plan_buffer;
    const char *name;
    enum buffer_scope scope;
    int64_t bytes;
    bool initialised;               /* it holds values before anything is written */
    bool allocated;                 /* by the plan, else it is there from the start */
    bool on_host;                   /* ... in memory of the host */
    int period;                     /* buffer_period */
    int record_first, record_count; /* program->records */
    int ring_first; /* period > 1: the first of instance 0 among the last accesses */
};

/* An access that an agent can make, or the allocation of the buffer: one cell of
   happens-before knowledge (machine_internal.h). */
struct record {
    int buffer;
    int agent;
    bool write;
    enum knowledge_of {
        RECORD_ACCESS,
        RECORD_CALLED,   /* its alloc is called; only where another thread frees or marks it */
        RECORD_ALLOCATED /* its alloc has taken effect on its stream, or on the host */
    } kind;
};

/* A stream that `record_stream` names for a buffer. */
struct marked_stream {
    int buffer, stream;
    int next; /* of the same buffer, program->recorded; -1: none */
};

struct agent {
    enum agent_kind {
        AGENT_DATA,
        AGENT_THREAD,
        AGENT_STREAM,
        AGENT_COMM,
        AGENT_FAULT, /* only with options.faults */
        AGENT_WATCHDOG /* only with options.faults: of a communicator of several ranks, one for all of them or, where
                          each waits for its device, one for each */
    } kind;
    int index; /* into threads, streams, comms (watchdogs as well) or faults */
    int rank;  /* -1: none (data, comms, faults, the watchdog of all ranks) */
};

/* A possible fault; at most one happens in a run (failure.h). */
struct fault {
    enum fault_kind { FAULT_TASK, FAULT_DATA, FAULT_RANK, FAULT_TIME } kind;
    int index; /* TASK: the thread that fails; DATA: the rank whose data end; RANK: the one that dies; TIME: the
                  communicator of which an operation exceeds its time limit */
    int rank; /* TIME: on which; else 0 */
};

/* Tasks that are fired or awaited by a task. */
struct edge {
    int task, distance; /* the other task */
    int dep;            /* plan->pipeline.deps */
    int place;          /* of the same dependence in the list of the task that has it */
};
struct edge_list {
    struct edge *items;
    int count;
};

/* The layout of a state, in cells from its start; the drawing is in machine_internal.h. Arrays
   with a * have one entry per thread, stream, and so on. Rows of happens-before knowledge follow
   the cells; row numbers count from the first row. */
/* A thread whose waits may be for this stream while others push to it: snapshot.h. */
struct awaited {
    int stream, thread;
    int next_of_thread, next_of_stream; /* program->awaited; -1: none */
};

struct layout {
    int aborted; /* per member of a communicator, only where one can be aborted */
    int ranks, windows, fired, members, events, flags, queues, locks, kernels, buffers, recorded,
        awaited;
    int *threads, *streams, *channels, *hw_queues;
    int loose;  /* 1: hb_renumber may have something to do */
    int faults; /* only with options.faults */
    int made;   /* only with options.serial: per rank and task */
    int cells;
    int columns;       /* agents that access buffers */
    int *column;       /* per agent: its column, -1: it accesses none */
    int *column_row;   /* per column: the row of its agent */
    int *column_ticks; /* per column: its first tick in the room behind a state; then the end */
    int tick_bytes;    /* 1, 2 or 4 */
    int row_words;     /* 64-bit words a row; 0: the plan declares no accesses */
    int row_threads, row_streams, row_events, row_flags, row_locks, row_tickets, row_done,
        row_admit;
    int *row_items, *row_entries, *row_queues, *row_channels;
    int rows;
    size_t rows_at; /* bytes from the start */
    size_t last_at; /* bytes from the start: the last accesses, a tick each */
    size_t bytes;   /* of a state */
    size_t room_at; /* behind it room for hb_renumber, all zero between calls */
    size_t block;   /* of both */
};

/* The layout of states that keep no knowledge of accesses. */
static inline void layout_leave_out_rows(struct layout *at)
{
    at->columns = at->row_words = at->rows = 0;
    at->bytes = at->last_at = at->room_at = at->block = at->rows_at;
}

struct program {
    struct arena arena;
    const struct plan *plan;        /* the plan, or the host program it was turned into */
    struct plan *owned_plan;        /* that host program, if the plan was rank programs */
    struct program_options options; /* with defaults filled in */
    enum driver driver;
    int ranks;
    int *
        stood_for; /* per rank that is built: the first rank of the plan for which it stands; NULL: itself */
    int tasks;   /* pipeline form: tasks a rank, else 0 */
    int depth;   /* most iterations that have a context at once */
    int periods; /* clock: pipeline depth */
    int min_stage;
    int slots;          /* instances in a family of events and flags */
    int window;         /* iterations the machine may have to remember */
    int most_in_flight; /* iterations of a rank with unfinished work: never more */
    int history;        /* iterations before the oldest that rules may still look at */
    int max_distance;
    int64_t iteration_bytes, shared_bytes; /* of the buffers of one iteration, of the shared ones */
    bool slots_safe; /* no slot is re-armed while a wait may look at it (semantics, section 5) */

    struct op *ops;
    size_t op_count, op_cap;
    struct use_table *uses; /* which agent uses which object how: uses.h */
    bool admit_free, retire_free, take_free,
        data_free;       /* steps of drivers and workers that commute with
                                                everything, see conflicts.c */
    struct body *bodies; /* pipeline: rank * tasks + task; else one a host thread and callback */
    size_t body_count, body_cap;
    struct access *accesses;
    size_t access_count, access_cap;
    struct part *parts;
    size_t part_count, part_cap;
    struct thread_desc *threads;
    int thread_count;
    struct stream_desc *streams;
    int stream_count;
    int *rank_streams; /* the streams, rank by rank */
    int *rank_first;   /* those of a rank: rank_streams[rank_first[rank] .. rank_first[rank + 1]) */
    int *waiters;      /* the streams that wait for an event, family by family */
    int *waiter_first; /* those of a family: waiters[waiter_first[family] .. [family + 1]) */
    struct awaited *awaited;
    int awaited_count;
    size_t awaited_cap;
    int *awaited_by, *awaited_on; /* the first of a thread, of a stream; -1: none */
    struct comm_desc *comms;
    int comm_count, member_count;
    int *
        member_stream; /* per member the only stream that its operations are pushed to; -1: there is none, or several */
    struct channel *channels;
    int channel_count;
    bool credit_ends; /* channels have room for what their data send on credit, no more */
    struct buffer_desc *buffers;
    int buffer_count;
    struct record *records;
    int record_count;
    struct marked_stream *recorded;
    int recorded_count;
    int *recorded_of;   /* the first of a buffer; -1: none */
    int shared_records; /* the first of them belong to shared buffers */
    int ring_records;   /* then come the instances of shared buffers that have several */
    int period_records; /* then window times this many belong to iteration buffers */
    struct agent *agents;
    int agent_count;
    struct fault *faults; /* only with options.faults */
    int fault_count;
    int *device;      /* per rank, the first rank on its device ... */
    int *device_next; /* ... and the next one, -1: none; so those of a device are a list */
    int *process;     /* per rank the first rank whose process it is in; NULL: each has its own */
    int *team;        /* per rank, the first of the ranks that communicators connect with it */
    int *
        fellows; /* the same; in host programs, where flags and queues connect too, the first of all ranks */
    struct names names;
    struct complete_lists *lists; /* options.keep_lists and rank programs; else NULL */
    struct straight *straight;    /* options.straight, and there is one (straight.h); else NULL */
    bool fits;                    /* states of it can be made */
    bool has_lifetimes;           /* host programs that free buffers */
    bool has_greedy;              /* some kernel is greedy */
    bool has_aborts;              /* host programs that abort communicators */
    bool has_branches;            /* host programs: some operation has branches ... */
    bool
        asks_device; /* ... and one of them asks for what a stream, the device or an event has come to */
    bool can_abort; /* these, and programs with options.faults */
    bool
        abort_is_plain; /* operations are on every communicator of several ranks, and no rank is in two of these */
    bool
        is_crossed; /* a thread drives devices of several ranks, or a device uses another's events or
                           buffers */
    bool untracked; /* rank programs too big for knowledge in their states: they have no buffers */
    int event_families, flag_families, queue_count, lock_count, kernel_count;
    const char **event_names, **flag_names, **lock_names, **queue_names;
    bool *flag_counts; /* per family of flags: it does more than be set for good, to 1 and from 0 */
    int *flag_begins;  /* its value at the beginning */
    int *event_rank;   /* of each family of events */
    int *lock_rank;
    int *queue_caps;
    int hw_queue_count, hw_cap;

    /* pipeline form, per rank */
    int **order; /* order[rank][k]: the k-th task in enqueue order */
    int *worker; /* worker[rank * tasks + task]: thread that submits it */
    int *
        first_thread; /* per rank, also of other forms: its first driver or host thread; -1: it has none */
    int *driver_thread;        /* driver_thread[rank]; the rank's workers follow it */
    struct edge_list *depends; /* per task: its dependences */
    struct edge_list *fires;   /* per task: the tasks its end of submission may fire, intra first */
    int repeats;       /* host programs: most iterations of a thread's repeats; 0: there are none */
    int last_task;     /* last in topological order */
    int *serial_place; /* per task: its place in an iteration of a serial run */
    int64_t *ends;     /* per rank: iterations it has data for; -1: open */
    int *ticket_position; /* ticket_position[rank * tasks + task]: position among those globally
                             ordered on this rank, in the enqueue order of rank 0; -1: not ordered */
    int *ordered_tasks;   /* per rank */
    /* Data-flow, `ticket_at: pipelined`: the order of turns, that of a software pipeline (plan/order.h). */
    int *turn_task; /* turn_task[rank * tasks + position]: the task with this ticket_position */
    /* The same: so many of the next turns may be the one behind it, since others may have no iteration. */
    int *turn_followers;
    int *turn_stage;     /* per task: the turn of (task, i) is in round i + stage */
    int *turn_place;     /* per task: its place in a round */
    int last_turn_stage; /* of all tasks */

    struct layout at;
};

/* Lower `plan`. Errors (a form without lowering, a generator that does not exist, a plan too big)
   are reported in diag. On failure *out is untouched. */
enum status program_build(const struct plan *plan, const struct program_options *options,
                          struct program **out, struct diag *diag);
void program_close(struct program *program);

/* Check that states of it can be made. They take 2 GiB at most: else STATUS_INPUT. Of a program that was built for any
   size it must be asked before machine_state. */
enum status program_fits(const struct program *program, struct diag *diag);

/* The agent's name for people: "thread default", "stream memcpy", with "rank 1 " in front when
   there are several ranks. Returns buf. */
const char *program_agent_name(const struct program *program, int agent, char *buf, size_t cap);

/* All ranks, those that a built one stands for among them. */
static inline int program_all_ranks(const struct program *program)
{
    return program->options.stands_for ? program->options.stands_for : program->ranks;
}

/* The first rank of the plan for which one that is built stands. */
static inline int program_stood_for(const struct program *program, int built)
{
    return program->stood_for ? program->stood_for[built] : built;
}

/* The rank of all steps of a communicator; -1: there are several. */
static inline int program_comm_rank(const struct program *program, int comm)
{
    ASSERT_INDEX(comm, program->comm_count);
    const struct comm_desc *desc = &program->comms[comm];
    return desc->count > 1 || program->options.stands_for ? -1 : desc->members[0];
}

/* Where a thread comes to that goes `steps` operations on in the body from `at`: a `then` that is over ends behind its `else`. */
static inline int program_behind(const struct program *program, const struct body *body, int at,
                                 int steps)
{
    const struct op *ops = &program->ops[body->first];
    int next = at + steps;
    while (program->has_branches && next < body->count && ops[next].kind == OP_ELSE)
        next += ops[next].otherwise;
    return next;
}

/* True if a globally ordered instance is fired when its turn has come. Else its worker waits for the turn, and keeps
   its queue waiting. */
static inline bool program_fires_by_turn(const struct program *program)
{
    return program->driver == DRIVER_DATAFLOW && program->turn_stage;
}

/* True if the end of a submission of this task ends a turn, and may so fire the next ordered instance. */
static inline bool program_ends_turn(const struct program *program, int rank, int task)
{
    ASSERT_INDEX(rank, program->ranks);
    ASSERT_INDEX(task, program->tasks);
    return program_fires_by_turn(program) &&
           program->ticket_position[rank * program->tasks + task] >= 0;
}

/* Data-flow: the k-th task of which the end of a submission of `task` may fire an instance; -1: there are no more. */
static inline int program_may_fire(const struct program *program, int rank, int task, int k)
{
    ASSERT_INDEX(rank, program->ranks);
    ASSERT_INDEX(task, program->tasks);
    const struct edge_list *fires = &program->fires[task];
    if (k < fires->count)
        return fires->items[k].task;
    k -= fires->count;
    const int first = rank * program->tasks, position = program->ticket_position[first + task];
    if (!program_ends_turn(program, rank, task) || k >= program->turn_followers[first + position])
        return -1;
    return program->turn_task[first + (position + 1 + k) % program->ordered_tasks[rank]];
}

/* The place of a task of iteration 0 in the order of turns: that of iteration i is i rounds behind. */
static inline int64_t program_turn_key(const struct program *program, int task)
{
    ASSERT_INDEX(task, program->tasks);
    return (int64_t)program->turn_stage[task] * program->tasks + program->turn_place[task];
}

/* With turns, true if every task is behind those that it depends on, and no turn is more than the contexts away. Then
   an instance whose turn has not come waits for earlier ones only, all of iterations that the driver can admit. */
bool program_turns_come(const struct program *program);

int program_thread_agent(const struct program *program, int thread);
int program_stream_agent(const struct program *program, int stream);
int program_comm_agent(const struct program *program, int comm);

/* Position of `rank` in a communicator, or -1. */
int program_member(const struct program *program, int comm, int rank);

/* The name of the event, flag, queue, lock or buffer an operation uses; NULL: none. */
const char *program_object_name(const struct program *program, const struct op *op);

/* The flag with what is done to it, behind "sets", "passes" or "waits for": "pad to 3", "pad at 3 or more"; of a flag that is
   set for good its name. Returns buf. */
const char *program_flag_words(const struct program *program, const struct op *op, char *buf,
                               size_t cap);

/* "Forward(3)" for a task's operation, else the operation's own name or key. Returns buf. */
const char *program_op_label(const struct program *program, const struct op *op, int64_t iteration,
                             char *buf, size_t cap);
/* The same for a sentence: a copy without a name says what it copies, and no iteration stands beside a rank. */
const char *program_op_subject(const struct program *program, const struct op *op,
                               int64_t iteration, char *buf, size_t cap);
/* The same behind the place in the program that calls it, where that is told: "train.py:41 aten.mm". */
const char *program_op_title(const struct program *program, const struct op *op, int64_t iteration,
                             char *buf, size_t cap);

/* Print the lowered program for people, one operation a line: `swsim lower`. */
enum status program_print(const struct program *program, FILE *out, struct diag *diag);

/* True if the plan says how much a rank may have in flight, or hold. Else nothing violates PROPERTY_BOUND. */
static inline bool program_asks_bound(const struct program *program)
{
    return machine_has_memory(&program->plan->machine) ||
           (program->tasks > 0 && program->plan->pipeline.max_in_flight > 0);
}

/* The bytes that a rank of a pipeline holds with so many iterations in flight: their buffers and the shared ones. */
static inline int64_t program_bytes(const struct program *program, int64_t in_flight)
{
    return program->shared_bytes + in_flight * program->iteration_bytes;
}

/* True if the moments are kept from which freed memory can be handed out. `bound` asks for them, and a prediction. */
static inline bool program_counts_memory(const struct program *program)
{
    return program->has_lifetimes &&
           (program->options.no_knowledge ||
            (machine_has_memory(&program->plan->machine) && !program->owned_plan));
}

/* True if the operation records a task's own event, not one that lowering adds. */
static inline bool program_records_task(const struct op *op)
{
    return op_records(op->kind) && op->task >= 0;
}

/* Ranks whose devices one thread drives are in one process, and end together. */
static inline bool program_same_process(const struct program *program, int a, int b)
{
    return a == b || (program->process && program->process[a] == program->process[b]);
}

/* True if an operation of a thread of `rank` concerns the device, an event or a buffer of another one. */
bool program_op_crosses(const struct program *program, const struct op *op, int rank);

/* The rank whose device a SYNC of the thread waits for. */
static inline int program_sync_rank(const struct program *program, int thread, const struct op *op)
{
    ASSERT_INDEX(thread, program->thread_count);
    return op->device >= 0 ? op->device : program->threads[thread].rank;
}

static inline bool program_is_worker(const struct program *program, int thread)
{
    return thread < program->thread_count && program->threads[thread].kind == THREAD_WORKER;
}

#endif
