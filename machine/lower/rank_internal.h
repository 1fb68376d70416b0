/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_internal.h - shared by the files that lower rank programs.
 *
 *     rank_programs.c     completion, checks, costs, the loop over the ranks
 *     rank_steps.c        the actions of a rank as steps, the communicators they use, the steps they wait for; the steps as
 *                         host operations, with events
 *     rank_tensors.c      what the steps read and write: buffers, and the steps that bring it; names of operations, tags of
 *                         messages
 *     rank_groups.c       the groups of `parallel:`: their communicators, the collectives of stages; the pipelines beside the
 *                         first: their ranks, communicators and buffers
 *     rank_straight.c     lists that leave no choice: their steps as a graph, with dates
 *     rank_collectives.c  the collectives of passes; sharded parameters: their communicators and buffers
 */
#ifndef SWSIM_RANK_INTERNAL_H
#define SWSIM_RANK_INTERNAL_H

#include "plan/schedules/comms.h"
#include "plan/schedules/pass_time.h"
#include "plan/plan.h"
#include "plan/schedules/costs.h"
#include "plan/schedules/parallel.h"
#include "rank_programs.h"

/* A JOIN is no operation: the stream waits for those BESIDE. */
enum step_kind { STEP_KERNEL, STEP_HOST, STEP_GROUP, STEP_COLLECTIVE, STEP_RING, STEP_JOIN };

/* Of a step among those of its action: the pass is ALONE, its collectives stand BEFORE or BEHIND it on its stream, or run
   BESIDE it on another. */
enum step_place { STEP_ALONE, STEP_BEFORE, STEP_BESIDE, STEP_BEHIND };

/* One operation. Indices + 1 mean 0: none. */
struct rank_step {
    enum step_kind kind;
    const struct action *action; /* a pass; GROUP: its first message */
    struct step_collective {     /* COLLECTIVE, RING */
        enum collective_kind kind;
        enum group_kind group;
        int64_t bytes;
    } collective;
    enum step_place place;
    uint32_t behind; /* ALONE: steps behind it that belong to its action */
    uint32_t listed; /* index + 1 into plan->listed */
    int stream, comm;
    int64_t time_ns;
    size_t first_message, last_message, message_count; /* GROUP: rank_steps.messages */
    size_t first_wait, wait_count;                     /* rank_steps.waits: those of this step */
    size_t first_waiter; /* index + 1 into waits: of those for this step */
    size_t waiters_left; /* of those, not yet written down */
    size_t event_slot;   /* held while waiters are left */
};

enum { MESSAGE_KINDS = 4 };

struct message {
    const struct action *action;
    uint32_t listed;
    int from, to; /* ranks */
    struct message_cost cost;
    size_t next; /* index + 1: in the same group */
};

/* A stream waits for a step on another stream. */
struct wait_for {
    size_t producer;
    int stream;
    size_t next; /* index + 1: the next wait for the same producer */
};

/* The rank being lowered; arrays big enough for the longest list. */
struct rank_steps {
    struct rank_step *steps;
    struct message *messages;
    struct wait_for *waits;
    size_t step_count, message_count, wait_count;
    size_t run_first; /* the first step of the current run of neighbouring messages */
};

/* A tensor is on two ranks at most: where an action of its stage makes it, and where a message or a pass of the
   next stage brings or wants it. All are per cell, see tensor_cell. */
enum tensor_place { PLACE_MADE, PLACE_NEXT, PLACES };

struct tensor_table {
    uint32_t *latest;  /* the step that wrote it last, index + 1; NULL: is not awaited */
    int *buffers;      /* index + 1; NULL: there are none */
    uint8_t *provided; /* by some action: not 0 */
};

/* The events that stand for one kind of action, and those of them unused now. */
struct event_pool {
    int *ids; /* per slot: plan->events */
    size_t count, cap;
    size_t *unused;
    size_t unused_count, unused_cap;
};

/* A communicator, the stream that carries its messages and the ranks or direction it is for. */
struct route {
    int comm, stream;
};

/* A stage whose parameters are sharded. Buffers are + 1; 0: none yet. */
struct fsdp_stage {
    bool gathered, reduced; /* there is an UNSHARD, a REDUCE_GRAD of it */
    bool whole;             /* its parameters are unsharded now */
    int gathers;            /* so far */
    int *parameters;        /* per gather: buffers */
    size_t cap;
};

struct fsdp {
    int *comms; /* per rank; -1: not made yet */
    struct fsdp_stage *stages;
};

/* A list of actions that is lowered: that of a place of all pipelines, or of one rank that differs. */
struct rank_list {
    const struct rank_program *program;
    int replica, own; /* its place */
    enum grad_reduce reduce;
    size_t first_listed;         /* of plan->listed */
    size_t op_count, part_count; /* of its thread */
};

/* Numbers + 1 of names that have been handed on; 0: not yet. */
struct rank_names {
    int *actions[ACTION_IDLE], *tags[2][2]; /* by stage and microbatch */
    struct names others;
    int *other_numbers;
    size_t other_count, other_cap;
};

/* Takes the operations of a thread one by one. What an operation points to is in `arena`, which may be emptied after
   each. */
struct ops_sink {
    rank_op_take *take;   /* NULL: operations are only counted, what they refer to is made */
    rank_name_take *name; /* NULL: operations and messages have their texts themselves */
    void *arg;
    struct arena *arena;
    bool empties;
    struct host_op op; /* being written; `open`: there is one */
    bool open;
    enum status status; /* the first that is not STATUS_OK */
};

struct rank_lowering {
    const struct plan *plan;
    struct plan *out;
    struct diag *diag;
    struct arena scratch;
    struct complete_lists complete;
    struct rank_program *ranks; /* of these, as are the two below */
    int rank_count;
    struct parallel_spec
        grid; /* of the ranks that are lowered: the plan's, or a smaller one of the same form */
    struct stage_map map;
    struct stage_cost *costs; /* per stage */
    struct pass_clock clock;
    int compute;          /* stream */
    struct route *routes; /* comm -1: not made yet; see route_cell */
    size_t comm_cap, buffer_cap;
    int few;          /* 0, or the most ranks in a dimension of groups: program_options.few */
    bool all_buffers; /* whatever the number of actions */
    bool tracked;     /* there are buffers */
    unsigned kinds;   /* of actions in the lists, a bit each */
    unsigned awaited, accessed; /* kinds of tensors: those that hold up steps, those of buffers */
    struct tensor_table tensors[PLACES][TENSOR_COUNT];
    int rank; /* whose steps are made now */
    size_t listed_cap;
    struct fsdp fsdp;
    struct event_pool events[ACTION_IDLE];
    struct rank_steps now;
    uint32_t *told,
        walk; /* metadata before the first message alone: [told_cell], the walk of a rank that has told it */
    size_t op_count, part_count; /* of all ranks so far */
    struct ops_sink sink;
    struct rank_names names;
    size_t kept_cap;         /* room in the operations of the thread that is kept */
    bool again;              /* the second walk: communicators, events and buffers are there */
    struct rank_list *lists; /* per place, then those of ranks that differ */
    int list_count;
    const struct rank_list *list; /* being lowered, of the pipeline `replica` */
    int replica;
    size_t all_listed, all_parts;
    int *group_comms[GROUP_KIND_COUNT]; /* per group; -1: not made yet */
    bool *group_apart
        [GROUP_KIND_COUNT]; /* per group with a communicator: true if it is on several nodes */
    struct replicas {
        int count;  /* of the pipeline, that are lowered */
        int *route; /* per communicator: 1 + its number among those of messages; 0: not one */
        int routes, first_copy;
        size_t buffers; /* of one pipeline */
        int *lists;     /* per rank: of lowering->lists */
    } replicas;
};

/* The rank of place `own` of a replica. */
static inline int rank_at(const struct rank_lowering *lowering, int replica, int own)
{
    return parallel_rank(&lowering->grid, lowering->rank_count, replica, own);
}

/* In a walk that only counts operations nothing asks how long they take. */
static inline bool only_counts(const struct rank_lowering *lowering)
{
    return !lowering->sink.take;
}

/* ---- rank_steps.c: steps --------------------------------------------------------------------- */

bool message_is_forward(const struct action *message);
/* The stage that receives it. */
int message_arrives_at(const struct action *message);

/* False: out of memory. */
bool routes_begin(struct rank_lowering *lowering);
/* A communicator that the plan describes but no message uses is a misspelling. */
enum status routes_check(const struct rank_lowering *lowering);

/* Step `at` waits for `producer` (index + 1), unless its stream does so already or it is the same. */
void steps_wait(struct rank_steps *now, size_t at, uint32_t producer);
/* The steps of a rank in lowering->now, each with the steps that it waits for. False: out of memory. */
bool steps_make(struct rank_lowering *lowering, const struct rank_program *list);

/* ---- rank_programs.c, rank_straight.c -------------------------------------------------------- */

/* The steps of a list in lowering->now; false: out of memory. */
bool rank_list_steps(struct rank_lowering *lowering, const struct rank_list *list);
/* The graph of all lists, with dates, in `arena`, if they leave no choice, come to their end, and access what is tracked
   in order; else NULL. Before the first walk, whose tables it leaves as they were. */
struct straight *straight_make(struct rank_lowering *lowering, struct arena *arena);

/* ---- rank_steps.c: operations ---------------------------------------------------------------- */

/* A rank takes over the events of the ranks before it, all unused; the first ones go first. */
void events_reset(struct rank_lowering *lowering);
/* lowering->now as the operations of a thread, handed to the sink. */
enum status ops_write(struct rank_lowering *lowering, struct host_thread *thread);

/* ---- rank_tensors.c: buffers ----------------------------------------------------------------- */

/* All: false is out of memory. */
bool tensors_begin(struct rank_lowering *lowering, size_t actions);
/* Before a list: what it makes, where ranks differ. */
void tensors_turn(struct rank_lowering *lowering, const struct rank_program *list);
/* Behind a list: no step has brought anything. */
void tensors_forget(struct rank_lowering *lowering, const struct rank_list *list);
/* Behind all lists. */
void tensors_again(struct rank_lowering *lowering);
/* A buffer of this rank, declared at its first use and kept as index + 1 in *cell; -1: out of memory. */
int tensors_buffer(struct rank_lowering *lowering, int *cell, const struct tensor *tensor,
                   int number);
/* Append what an action reads and writes to the operation, if there are buffers. */
bool tensors_access(struct rank_lowering *lowering, struct host_op *op,
                    const struct action *action);
/* Step `at` waits for the steps that brought what the action reads, and step `last` brings what it writes. */
void tensors_link(struct rank_lowering *lowering, size_t at, size_t last,
                  const struct action *action);
/* Step `at`, before the pass, waits for what the pass reads of others. */
void tensors_await(struct rank_lowering *lowering, size_t at, const struct action *action);
/* Append what the collectives of a pass read and write: before it what it reads of others, behind it what it has
   written for them. */
bool tensors_access_shared(struct rank_lowering *lowering, struct host_op *op,
                           const struct action *action, enum step_place place);
/* True if all that the action reads has been made on this rank, in this walk: tensors_are_made notes what it makes, and is
   false where that has been made before. */
bool tensors_are_read(struct rank_lowering *lowering, const struct action *action);
bool tensors_are_made(struct rank_lowering *lowering, const struct action *action);
/* The tensors of this rank that no action makes, appended to what the end of its list reads. */
bool tensors_missing(struct rank_lowering *lowering, struct index_list *out);

/* ---- rank_tensors.c: names ------------------------------------------------------------------- */

/* All: false is out of memory. */
bool names_op(struct rank_lowering *lowering, struct host_op *op, const struct rank_step *step);
bool names_word(struct rank_lowering *lowering, struct host_op *op, const char *word);
/* A message of a step of kind RING. */
bool names_part(struct rank_lowering *lowering, struct p2p_part *part,
                const struct rank_step *step);
bool names_message(struct rank_lowering *lowering, struct p2p_part *part,
                   const struct action *message);

/* ---- rank_collectives.c: sharded parameters -------------------------------------------------- */

/* All: false or -1 is out of memory. */
bool fsdp_begin(struct rank_lowering *lowering);
/* Before a list. */
void fsdp_again(struct rank_lowering *lowering, int stage);
int fsdp_stream(struct rank_lowering *lowering);
/* The communicator of the ranks that hold a stage; -1: out of memory. */
int fsdp_comm(struct rank_lowering *lowering, int stage);
/* New memory for the parameters of a stage. */
int fsdp_gather(struct rank_lowering *lowering, int stage);
/* The memory that RESHARD gives back; -1: none. */
int fsdp_free(struct rank_lowering *lowering, int stage);
/* The memory that passes of a sharded stage read; -1: out of memory. */
int fsdp_parameters(struct rank_lowering *lowering, int stage);

/* ---- rank_groups.c --------------------------------------------------------------------------- */

/* Check that `parallel:` fits the lists. */
enum status groups_check(const struct rank_lowering *lowering);
bool groups_begin(struct rank_lowering *lowering); /* false: out of memory */
/* True if there is a group of several ranks of this kind. */
bool groups_used(const struct rank_lowering *lowering, enum group_kind kind);
/* Time and bytes of a step, unless the plan gives them. */
struct message_cost groups_call_cost(const struct rank_lowering *lowering, enum group_kind kind,
                                     int64_t bytes);
void groups_cost(const struct rank_lowering *lowering, struct rank_step *step, int64_t bytes);
/* The collective that reduces gradients: a reduce-scatter where they are sharded. */
enum collective_kind groups_reduction(const struct rank_lowering *lowering);
/* The step that reduces gradients, of a stage or an embedding. */
bool groups_reduce(struct rank_lowering *lowering, struct rank_step *step);
/* The communicator of this rank, made at its first use; -1: out of memory. */
int groups_comm(struct rank_lowering *lowering, enum group_kind kind);
/* "0F3.tp" */
const char *groups_step_name(struct rank_lowering *lowering, const struct rank_step *step);

/* ---- rank_collectives.c: of passes ----------------------------------------------------------- */

/* The most collectives that an action has. */
size_t collectives_most(const struct rank_lowering *lowering);
/* Those before and beside a pass that is not among the steps yet. False: out of memory. */
bool collectives_before(struct rank_lowering *lowering, const struct rank_step *pass);
/* Behind the last step, a pass or a collective of its stage: those of its groups, and a JOIN where some run beside. */
bool collectives_behind(struct rank_lowering *lowering);
/* Step `at`, one BESIDE or a JOIN, waits for those of other streams. */
void collectives_link(struct rank_lowering *lowering, size_t at);
/* A step of kind RING: a message to the next rank of its communicator and one from the rank before. */
bool collectives_ring(struct rank_lowering *lowering, struct host_op *op,
                      const struct rank_step *step);

/* ---- rank_groups.c: replicas ----------------------------------------------------------------- */

/* Threads, communicators and buffers of all ranks, behind the first walk. */
enum status replicas_make(struct rank_lowering *lowering);
/* The list of a rank, and its pipeline. */
const struct rank_list *replicas_list(const struct rank_lowering *lowering, int rank, int *replica);
/* An operation of the first pipeline becomes one of lowering->replica. */
void replicas_move(struct rank_lowering *lowering, struct host_op *op);

#endif
