/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - a plan as its author wrote it: tasks, actions or host operations, and the machine's
 * knobs.
 *
 * A plan is data. It is built by parse.h (YAML, JSON) or csv.h (PyTorch schedules), printed by
 * print.h and given its meaning by program.h (lowering) and machine.h. All memory belongs to the
 * plan's arena: plan_init / plan_fini. Names are resolved: a reference to a task, stream, comm,
 * queue or buffer is an index into the plan's table, -1 for none. Times are nanoseconds, sizes
 * bytes. A `struct mark` is a position in the file.
 */
#ifndef SWSIM_PLAN_H
#define SWSIM_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/table.h"
#include "host_op.h"
#include "machine_rules.h"
#include "ops.h"
#include "pipeline.h"
#include "programs.h"
#include "work.h"

/* Limits of sizes that an input determines; the message that refuses more names the limit. */
enum {
    PLAN_MAX_FILE_BYTES = 512 * 1024 * 1024,
    PLAN_MAX_RANKS = 65536,
    PLAN_MAX_CORES = 65536,
    PLAN_MAX_TASKS = 256 * 1024,
    PLAN_MAX_STAGE = 255,
    PLAN_MAX_DEPTH = 255,
    PLAN_MAX_IN_FLIGHT = 1 << 20,
    PLAN_MAX_DISTANCE = 64,
    PLAN_MAX_ITERATIONS = 1 << 30,        /* the machine counts them in 32 bits */
    PLAN_MAX_OPS = 4 * 1024 * 1024,       /* operations of host programs */
    PLAN_MAX_LOWERED = 128 * 1024 * 1024, /* operations of the machine */
    PLAN_MAX_ACTIONS = 64 * 1024 * 1024,  /* in all lists of rank programs */
    PLAN_MAX_PASSES = 16 * 1024 * 1024,   /* stages times microbatches of rank programs */
    PLAN_MAX_MICROBATCHES = 65536,
    PLAN_MAX_MODEL_STAGES = 65536, /* stages of a model split over ranks: actions */
    PLAN_MAX_EAGER = 65536,        /* messages sent on credit and not received */
    PLAN_MAX_NAME = 200
};
/* Of every time in a plan: sums of as many as a run has operations stay within 64 bits, or are refused. */
#define PLAN_MOST_NS INT64_C(50000000000000)

/* The stream and the thread group of what names none. It is no legacy default stream of CUDA: streams
   are independent of each other. */
#define PLAN_IMPLICIT_STREAM "main"
#define PLAN_IMPLICIT_GROUP  "default"

enum plan_form { FORM_PIPELINE, FORM_PROGRAMS, FORM_THREADS };

/* Those with a 1 exist for each stage and microbatch, the others for each stage. */
#define TENSOR_LIST(X)                                                                             \
    X(ACTIVATION, "act", 1) /* the output of a stage */                                            \
    X(GRADIENT, "grad", 1)  /* of the input of a stage */                                          \
    X(LEFT, "left", 1)      /* by I, for W */                                                      \
    X(WEIGHT, "weight", 1)  /* what a microbatch adds to the weight gradient */                    \
    X(SENT_F, "sent_f", 1)  /* for WAIT_SEND_F: the message has gone */                            \
    X(SENT_B, "sent_b", 1)                                                                         \
    X(PARAMETERS, "parameters", 0)           /* unsharded */                                       \
    X(WEIGHT_GRADIENT, "weight_gradient", 0) /* to be reduced */                                   \
    X(REDUCED, "reduced", 0)                 /* for WAIT_REDUCE_GRAD */
enum tensor_kind {
#define X(name, text, microbatch) TENSOR_##name,
    TENSOR_LIST(X)
#undef X
        TENSOR_COUNT
};

struct tensor {
    enum tensor_kind kind;
    int stage;
    int microbatch; /* -1: of all */
};

#define SCOPE_LIST(X) X(ITERATION, "iteration") X(SHARED, "shared")
enum buffer_scope {
#define X(name, key) SCOPE_##name,
    SCOPE_LIST(X)
#undef X
};

struct buffer {
    const char *name;
    enum buffer_scope scope; /* iteration: every iteration has its own instance */
    int instances;           /* of a shared one: iteration i uses instance i mod this; 0: one */
    int64_t bytes;           /* of an instance; 0: not given */
    bool declared;           /* named under `buffers:`, not only in reads or writes */
    int owner;  /* in lowered rank programs: 1 + the rank that has it; else 0: every rank has one */
    bool input; /* `inputs:` names it: it holds values before anything is written */
    int staleness; /* `staleness:`: iterations by which its reads may lag; 0: not given */
    struct mark mark;
    struct tensor holds; /* in lowered rank programs */
};

/* Iterations i and j use one instance if their distance is a multiple of this; 0: only if it is 0. */
static inline int buffer_period(const struct buffer *buffer)
{
    if (buffer->scope == SCOPE_ITERATION)
        return 0;
    return buffer->instances > 1 ? buffer->instances : 1;
}

/* Of two accesses the first is known to come before the second `there` iterations later, and the second before the first
   `back` iterations later. True if that orders all that use one instance. */
static inline bool buffer_gaps_order(int period, int64_t there, int64_t back)
{
    if (period == 0)
        return there <= 0 || back <= 0;
    int64_t below = there - 1, rest = below % period;
    return below - (rest < 0 ? rest + period : rest) <= -back; /* the last multiple below `there` */
}

/* An entry of `flags:`. */
struct flag_spec {
    const char *name;
    enum buffer_scope
        scope; /* iteration: each iteration of a repeat has a flag of its own, named f(3) */
    int value; /* that it has at the beginning */
    struct mark mark;
};

/* A verdict the plan expects; OUTCOME_UNDECIDED where it names none (then: no violation). */
struct expectation {
    bool given; /* `expect:` is present, maybe empty: every property holds */
    bool named[PROPERTY_COUNT];
    enum outcome
        outcome[PROPERTY_COUNT];        /* for `race: order`: OUTCOME_SOME, any violation matches */
    bool any_violation[PROPERTY_COUNT]; /* named without always/some: either matches */
    bool covers_all;  /* True if `coverage: all`: all work declares what it accesses. */
    int64_t below_ns; /* `iteration: "<T"`: a predicted iteration takes less; 0: nothing is said */
    struct mark mark, below_mark;
};

/* A table of names; the rest of the plan refers to names by index. Small tables are searched one by
   one, large ones through a hash table in the same arena. */
struct names {
    const char **items;
    size_t count, cap;
    struct mark *marks; /* of the first of them: where the file uses them first */
    size_t mark_count, mark_cap;
    struct table table; /* of all names, where they are many */
};

/* An entry of `unrecorded:`: what the job that the plan was imported from did, and the plan does not have. */
struct unrecorded {
    const char *what, *why;
};

/*    NAME, key, what it is */
#define TENSORS_FOR_LIST(X)                                                                        \
    X(PARAMETERS, "parameters", "Parameters of modules and optimizers.")                           \
    X(GRADIENTS, "gradients", "Gradients of parameters.")                                          \
    X(OPTIMIZER, "optimizer", "The state of optimizers.")                                          \
    X(ACTIVATIONS, "activations", "Other results of operators, and inputs.")                       \
    X(BACKWARD, "backward", "Results of operators of the backward pass that are no gradients.")    \
    X(COMMUNICATION, "communication", "Other memory that collectives and messages read or write.") \
    X(WORKSPACE, "workspace",                                                                      \
      "Memory that operators allocate and do not return, and results in an optimizer's step.")     \
    X(HELD, "held", "Memory of freed tensors that other streams may still use (record_stream).")   \
    X(OTHER, "other", "Memory whose use is not known.")
enum tensors_for {
#define X(name, ...) TENSORS_##name,
    TENSORS_FOR_LIST(X)
#undef X
        TENSORS_FOR
};

/* An entry of `memory:`: bytes of the tensors of a recorded rank when they take most, by use. */
struct tensor_memory {
    int rank;
    int64_t peak, reserved, device; /* of tensors; of their allocator; of the device, at most */
    int64_t by_use[TENSORS_FOR];
    int64_t refused; /* an allocation that failed; 0: none */
    const char *at;  /* the line that allocates at the peak, or what was refused; NULL: not told */
};

struct plan {
    struct arena arena;
    const char *file; /* as given by the user, "-" for standard input */
    const char *text; /* that it was read from, which all marks are positions in; NULL: none */
    const char *name; /* default: the file's base name without suffix */
    const char *about, *source;
    enum plan_form form;
    int ranks; /* >= 1 */
    struct machine_spec machine;
    enum on_failure on_failure; /* default: pipeline form abort, else none */
    struct comm *comms;
    size_t comm_count;
    struct queue *queues;
    size_t queue_count;
    struct buffer *buffers;
    size_t buffer_count;
    struct share
        unexplained; /* `unexplained:`, of the measured job's time: its device was idle without a cause */
    struct unrecorded *unrecorded; /* no verdict covers it */
    size_t unrecorded_count, unrecorded_cap;
    struct tensor_memory *memory; /* of a recording, by rank */
    size_t memory_count, memory_cap;
    bool inputs_given;    /* `inputs:` is present: no other buffer holds values at the start */
    struct names streams; /* per rank: a stream of this name on every rank that uses it */
    struct stream_spec *stream_specs;
    size_t stream_spec_count;
    struct flag_spec *flag_specs;
    size_t flag_spec_count, flag_spec_cap;
    struct table flag_table;   /* of all of them by their names */
    struct names groups;       /* thread groups, pipeline form */
    struct names events;       /* host programs, per rank */
    struct names flags;        /* host programs, plan-wide */
    struct names locks;        /* per rank */
    struct names barriers;     /* plan-wide */
    struct expectation expect; /* clock-driven, and the forms without a driver */
    struct expectation
        expect_dataflow; /* equal, unless `expect: {clock: {...}, dataflow: {...}}` */
    struct pipeline pipeline;
    struct programs programs;
    struct graph *graphs;
    size_t graph_count;
    struct host_thread *threads;
    size_t thread_count;
    struct listed_action *listed; /* in lowered rank programs */
    size_t listed_count;
    unsigned action_kinds; /* of lowered rank programs: those in their lists, a bit each */
};

void plan_init(struct plan *plan);
void plan_fini(struct plan *plan);

/* Add an error at a place of the plan's text, with that line. Returns STATUS_INPUT. */
enum status plan_error_at(const struct plan *plan, struct diag *diag, struct mark mark,
                          const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Add an entry of `unrecorded:`, unless there is one of the same `what`. False: no memory, also where a text is NULL. */
bool plan_add_unrecorded(struct plan *plan, const char *what, const char *why);

/* True if the job that the plan was imported from was idle without a cause for more than a tenth of its idle time. A
   prediction of it would not be that of the job. */
bool plan_is_unexplained(const struct plan *plan);

/* The tasks as rank `rank` sees them; one of them. */
const struct task *plan_tasks(const struct plan *plan, int rank);
const struct task *plan_task(const struct plan *plan, int rank, int task);
/* True if the tasks of two ranks differ in durations and communicators only. */
bool plan_same_task(const struct task *a, const struct task *b);
/* True if all ranks of the pipeline are equal, and members of every communicator, used or not, however many there are; no
   rank but 0 is named. */
bool plan_is_for_any_ranks(const struct plan *plan);
/* True if each rank of the pipeline then meets the others in collectives only, as if it were alone. */
bool plan_ranks_meet_alone(const struct plan *plan);
/* Both CPU parts together take `time_ns`; each keeps its share. */
void plan_set_host_time(struct task *task, int64_t time_ns);
/* The number of copies of the pipeline, by `parallel:` or by `fsdp: {replicas}`. */
int plan_replicas(const struct plan *plan);
/* The ranks of a run: those of all pipelines. */
int plan_rank_count(const struct plan *plan);
/* The enqueue order as rank `rank` states it. */
const struct order_spec *plan_order(const struct plan *plan, int rank);
/* Index of a task by name, or -1. */
int plan_find_task(const struct plan *plan, const char *name);

/* The entry of a stream; NULL: none. The legacy stream; NULL: there is none. */
/* What `flags:` says of this name; NULL: nothing. */
const struct flag_spec *plan_flag_spec(const struct plan *plan, const char *name);
/* Its name, which has none yet, is the plan's. False: memory is exhausted. */
bool plan_add_flag_spec(struct plan *plan, const struct flag_spec *spec);
/* Each iteration of a repeat has a flag of this name. False: no memory. */
bool plan_flag_per_iteration(struct plan *plan, const char *name);
const struct stream_spec *plan_stream_spec(const struct plan *plan, int stream);
const struct stream_spec *plan_legacy_stream(const struct plan *plan);

/* The index of `name` in `names`, added if new; -1 when memory is exhausted. */
int names_intern(struct names *names, struct arena *arena, const char *name);
/* Where the file uses a name first; line 0: not in a file. */
struct mark names_mark(const struct names *names, size_t index);
/* The index of `name`, or -1. */
int names_find(const struct names *names, const char *name);

/* The name of the event, flag, queue, lock, barrier or buffer an operation uses; NULL: none. */
const char *plan_object_name(const struct plan *plan, const struct host_op *op);
/* True if the task has CPU time, and neither a stream, a device time nor work. It is a launch of nothing on the default
   stream. */
bool plan_is_only_cpu(const struct plan *plan, const struct task *task);

/* The most iterations of a repeat of a host program; 0: none has one. */
int plan_repeats(const struct plan *plan);

#endif
