/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h - what is known of a job, whatever the format of its files: the one form that all readers fill and all plans are
 * made from.
 *
 * A job has threads, each with its operations in the order of its calls, and a plan that holds what these name: streams,
 * events, flags, communicators, buffers, graphs. host_form.h makes the threads a part of that plan. Dumps of hangs and
 * recordings name every operation; of profiles host_calls.h finds the operations.
 *
 * What profilers recorded stands in ranks; a rank is one process with one device, as a plan has them. Its record is
 *
 *     threads   of the host, which made calls
 *     calls     of the CUDA or HIP runtime that can launch, record, wait or block
 *     works     kernels, copies and memsets of the device, on its streams
 *     ranges    annotated by the program or the profiler: steps, phases
 *     syncs     rows about waits that some profilers add to the calls
 *     accesses  of works, and of CPU work that touches the same memory, where a file tells them
 *
 * A reader adds these in any order. job_finish sorts them by time, joins calls with their work by the
 * correlation id, and puts time 0 at the beginning of the job. Times are nanoseconds. Names and all
 * else live in the job's arena and arrays: job_init / job_fini.
 */
#ifndef SWSIM_JOB_H
#define SWSIM_JOB_H

#include "plan/plan.h"

/* The effect of a runtime call, as far as a plan can say it. */
enum call_kind {
    CALL_OTHER,  /* it may push work: its correlation id tells */
    CALL_RECORD, /* records an event */
    CALL_WAIT,   /* makes a stream wait for an event */
    CALL_SYNC_STREAM,
    CALL_SYNC_EVENT,
    CALL_SYNC_DEVICE
};

struct job_call {
    int thread, name; /* rank->threads; job->names */
    enum call_kind kind;
    uint32_t place; /* in the file */
    int64_t correlation;
    int64_t start_ns, end_ns;
    int first_work, work_count; /* the work that it pushed: rank->pushed[first_work ...] */
    int sync;                   /* rank->syncs that tells more; -1 */
};

struct job_access {
    int memory; /* rank->memories */
    bool write;
};

/* Accesses in a row: rank->accesses[first ...]. */
struct job_accesses {
    int first, count;
};

enum work_class { CLASS_KERNEL, CLASS_COPY, CLASS_MEMSET };

/* There are millions of them, so that small members share a word. */
struct job_work {
    int stream, name;
    enum work_class class : 4;
    enum direction direction : 4;
    enum collective_kind collective : 4;
    bool pageable : 1;             /* CLASS_COPY */
    bool is_collective : 1;        /* a kernel of NCCL or RCCL, or an operation of gloo */
    bool is_message : 1, send : 1; /* ... between two ranks */
    bool
        peer_is_member : 1; /* `peer` counts in its process group, whose members the event does not list */
    bool
        awaited : 1; /* of a message of gloo: a thread was waiting when it ended, so it did not end before */
    uint32_t place; /* in the file */
    int64_t bytes;
    int64_t correlation;
    int64_t start_ns, end_ns;
    int call; /* that pushed it; -1: none is recorded */
    int group; /* job->names: its process group, where the file tells it; of a message its way; else -1 */
    int row;                      /* rank->rows */
    int peer;                     /* of a message of NCCL: the other rank */
    struct job_accesses accesses; /* none where no execution trace tells them */
};

struct job_range {
    int thread, name;
    int64_t start_ns, end_ns;
};

/* What a thread did for at least ACT_LEAST_NS: an operator, a function of Python. A trace with a device has them to tell why
   its host was late. */
enum { ACT_LEAST_NS = 20 * 1000 };
struct job_act {
    int thread, name;
    bool is_line; /* a function of Python that is the program's own: "train.py(41): step" */
    int64_t start_ns, end_ns;
};

/* An operator of PyTorch, kept where an execution trace tells what operators access (execution.h), or for its shapes. */
struct job_operator {
    int thread, name;
    int64_t number;     /* of the record function, by which both files name it */
    const char *shapes; /* of its inputs, as operator_times.h has them; NULL: not wanted */
    int64_t start_ns, end_ns;
};

/* Memory of a rank that its operations access: a storage of tensors, or all storages that one stream alone uses. */
struct job_memory {
    const char *name;
    bool from_outside; /* it holds a value from before the trace: it is read before it is written */
};

/* CPU work of a thread that accesses memory which others access, too; the accesses are made at `time_ns`. */
struct job_touch {
    int thread, name;
    int64_t time_ns;
    struct job_accesses accesses;
};

/* An annotation that names a pass, over the work of a stream (passes.h). */
struct job_mark {
    int row, name;  /* rank->rows; job->names */
    int64_t stream; /* the device's own number */
    int64_t start_ns, end_ns;
};

/* An event of an operation between ranks, in a trace without a device (host_work.h). */
enum gloo_kind {
    GLOO_CALLED, /* an operator: c10d::allreduce_ */
    GLOO_DONE,   /* gloo:all_reduce; of a message until a thread has waited for it */
    GLOO_WAIT,   /* a thread waits for a Work */
    GLOO_OTHER   /* an operator of another kind, whose name is not kept */
};

struct job_gloo_event {
    enum gloo_kind kind;
    int thread, name;
    bool waits;   /* CALLED: its caller waits for it at once */
    int64_t peer; /* CALLED, a message: the other rank; -1: not told */
    int64_t start_ns, end_ns;
};

/* A row about a wait: it belongs to the call with its correlation id. */
struct job_sync {
    int64_t correlation;
    int64_t stream;        /* that waits, or is waited for by the host; -1: not told */
    int64_t source_stream; /* whose event is waited for; -1: not told */
    bool is_event;         /* a wait for an event */
    int64_t record;        /* the correlation id of the record; -1: not told */
    int row;               /* rank->rows */
};

struct job_stream {
    int64_t number; /* of the device's own number and the device */
    int64_t device, own;
    const char *name; /* NULL: its number is */
    int first, count; /* its works: rank->by_stream[first ...], in the order of their starts */
};

/* The members of a process group, as ranks of the job. */
struct job_members {
    int64_t *ranks;
    size_t count, cap;
};

struct job_rank {
    const char *file; /* for messages: with the process, where the file has several */
    const char *path;
    int64_t number;       /* as the file says; -1: it does not */
    int64_t world;        /* the ranks of its job; -1: not told */
    size_t unasked_count; /* operations of gloo left out: no operator of the trace asks for them */
    size_t duplicated;    /* works and calls that the file has more than once: they count once */
    size_t assumed_count; /* messages of gloo, of which process group the trace does not tell */
    struct job_call *calls; /* by thread, then by start */
    struct job_work *works; /* by start */
    struct job_range *ranges;
    struct job_act *acts;
    struct job_sync *syncs; /* by correlation id */
    struct job_stream *streams;
    struct job_gloo_event *gloo_events;
    struct job_mark *marks;
    struct job_operator *operators;
    struct job_memory *memories;
    struct job_access *accesses;
    struct job_touch *touches; /* by thread, then by time */
    int *pushed, *by_stream;
    size_t call_count, work_count, range_count, sync_count, stream_count, gloo_event_count,
        mark_count, act_count, operator_count, memory_count, access_count, touch_count;
    size_t operator_cap, memory_cap, access_cap, touch_cap;
    size_t act_cap, call_cap, work_cap, range_cap, sync_cap, stream_cap, gloo_event_cap, mark_cap;
    struct names threads; /* "PID/TID" */
    struct names groups;  /* process groups, in their order, where the file lists them */
    struct job_members
        *members; /* of each of the groups; empty where the file does not list them */
    size_t members_count, members_cap;
    const char *execution; /* the execution trace that tells its accesses; NULL: none */
    bool is_host;          /* its work is on threads of the host */
    bool has_waits;        /* ... and the trace has the waits of its threads */
    struct names rows;     /* the names under which the file shows devices */
    int64_t first_device;  /* of the works, in the order of the file; -1: none yet */
    int *first_call;       /* per thread, and one more at the end */
    int64_t end_ns;        /* of all calls and works, and of the steps */
    bool stepped; /* it has steps of the profiler, those of `stepper`, which took this time: */
    int stepper;  /* rank->threads */
    int64_t steps_begin_ns, steps_end_ns;
};

/* A thread of the host and its operations so far. */
struct job_thread {
    struct host_thread host;
    size_t op_cap;
    int64_t clock_ns; /* when its next operation begins */
    bool is_rank;     /* it stands in the plan even if it calls nothing: its rank was seen */
};

struct job {
    struct arena arena;
    struct names names;
    bool wants_operators;   /* readers keep them: an execution trace will tell what they access */
    bool wants_shapes;      /* ... those that have shapes, with them */
    struct job_rank *ranks; /* of profiles */
    size_t rank_count, rank_cap;
    struct plan
        plan; /* without threads: what their operations name, and what is known of the whole job */
    struct names buffers; /* of the plan: job_buffer */
    size_t buffer_cap;
    struct job_thread **threads;
    size_t thread_count, thread_cap;
};

void job_init(struct job *job);
void job_fini(struct job *job);

/* A new rank of the job; NULL without memory. It moves when another one is added. */
struct job_rank *job_add_rank(struct job *job, const char *file);

/* Ends a rank; those behind it move up. */
void job_drop_rank(struct job *job, size_t rank);

/* The number of a name in job->names, as a plan can have it: what would act instead of being seen is '?', what is longer
   than PLAN_MAX_NAME is cut off, and nothing is "unnamed". -1 without memory. */
int job_intern(struct job *job, const char *name);

/* Add one item. False without memory. */
bool job_add_call(struct job_rank *rank, const struct job_call *call);
bool job_add_work(struct job_rank *rank, const struct job_work *work);
bool job_add_range(struct job_rank *rank, const struct job_range *range);
bool job_add_act(struct job_rank *rank, const struct job_act *act);
bool job_add_sync(struct job_rank *rank, const struct job_sync *sync);
bool job_add_operator(struct job_rank *rank, const struct job_operator *item);
bool job_add_gloo_event(struct job_rank *rank, const struct job_gloo_event *event);
bool job_add_mark(struct job_rank *rank, const struct job_mark *mark);
/* The rank's stream that a device has under this number, added if new; -1 without memory. Streams of another device
   than the first one of the rank have other numbers than its own. */
int job_stream(struct job_rank *rank, int64_t device, int64_t number);

/* Its name in plans, reports and stores: its own, or "s7", made in `text`. */
enum { STREAM_TEXT = 32 };
const char *job_stream_name(const struct job_stream *stream, char text[STREAM_TEXT]);

/* Times so far apart that no trace has them, which would overflow sums; every item is to lie within. */
bool job_times_are_sane(int64_t start_ns, int64_t end_ns);

/* Events of a file that end before they begin or have no time: they are counted and left out. */
struct job_reversed {
    size_t count;
    char first[64]; /* the name of the first, cut off */
};
void job_leave_out(struct job_reversed *reversed, const char *name);
/* Warns of them. STATUS_INPUT where they are several and more than a tenth of the events, of which `kept` were kept:
   the clock of such a file tells nothing. */
enum status job_check_reversed(const struct job_reversed *reversed, size_t kept, const char *file,
                               struct diag *diag);

/* The calls of a rank by their correlation id; NULL without memory. The caller frees them. */
struct job_key {
    int64_t correlation;
    int call;
};
struct job_key *job_key_calls(const struct job_rank *rank);
/* The first key of this id or of a larger one. */
size_t job_find_key(const struct job_key *keys, size_t count, int64_t correlation);

/* Sort and join; STATUS_INPUT for a rank without work of a device, and for one longer than a day. */
enum status job_finish(struct job *job, struct diag *diag);

/* ---- threads --------------------------------------------------------------------------------- */

/* A new thread, whose clock shows 0; `name` lives as long as the plan. NULL without memory. */
struct job_thread *job_add_thread(struct job *job, int rank, const char *name);
/* The plan's buffer of this name, maybe a new one, shared and without a value; -1 without memory. */
int job_buffer(struct job *job, const char *name);
/* Adds to a list, once. False without memory. */
bool job_list_index(struct arena *arena, struct index_list *list, int index);
/* A new operation that names nothing yet; those before it may move. NULL without memory. */
struct host_op *job_add_op(struct job *job, struct job_thread *thread, enum op_kind kind);
/* The thread's clock goes on to `until_ns`, where that is later; returns the time that passes. */
int64_t job_pass_time(struct job_thread *thread, int64_t until_ns);
/* CPU time up to `until_ns`; no operation where no time passes. False without memory. */
bool job_add_time(struct job *job, struct job_thread *thread, int64_t until_ns, const char *name);
/* Asserts under --enable-checks that all operations name things that the plan has, and that no time is negative. */
void job_check(const struct job *job);

/* ---- times ------------------------------------------------------------------------------------ */

/* All times of a rank, earlier by this; and those of all ranks, so that the first is 0. */
void job_shift(struct job_rank *rank, int64_t by_ns);
void job_begin_at_zero(struct job *job);

/* Keep what belongs to the steps `first` to `last` of the profiler (ProfilerStep#N), before job_finish.
   STATUS_INPUT where a rank has not the first or the last. */
enum status job_keep_steps(struct job *job, int64_t first, int64_t last, struct diag *diag);

#endif
