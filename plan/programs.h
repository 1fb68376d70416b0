/* SPDX-License-Identifier: Apache-2.0 */
/*
 * programs.h - rank programs: lists of actions, what they cost and the groups of ranks around them.
 *
 * Times are nanoseconds, sizes bytes; all memory is the arena of the plan.
 */
#ifndef SWSIM_PLAN_PROGRAMS_H
#define SWSIM_PLAN_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

/*            NAME          text           has a microbatch */
#define ACTION_LIST(X)                                                                             \
    X(F, "F", 1)                                                                                   \
    X(I, "I", 1)                                                                                   \
    X(W, "W", 1)                                                                                   \
    X(B, "B", 1)                                                                                   \
    X(UNSHARD, "UNSHARD", 0)                                                                       \
    X(RESHARD, "RESHARD", 0)                                                                       \
    X(REDUCE_GRAD, "REDUCE_GRAD", 0)                                                               \
    X(SEND_F, "SEND_F", 1)                                                                         \
    X(RECV_F, "RECV_F", 1)                                                                         \
    X(SEND_B, "SEND_B", 1)                                                                         \
    X(RECV_B, "RECV_B", 1)                                                                         \
    X(WAIT_SEND_F, "WAIT_SEND_F", 1)                                                               \
    X(WAIT_SEND_B, "WAIT_SEND_B", 1)                                                               \
    X(WAIT_RECV_F, "WAIT_RECV_F", 1)                                                               \
    X(WAIT_RECV_B, "WAIT_RECV_B", 1)                                                               \
    X(WAIT_REDUCE_GRAD, "WAIT_REDUCE_GRAD", 0)                                                     \
    X(REDUCE_EMBEDDING, "REDUCE_EMBEDDING", 0)                                                     \
    X(OVERLAP_F_B, "OVERLAP_F_B", 0) /* composite: parts */                                        \
    X(IDLE, "", 0)                   /* an empty cell of a compute_only schedule */
enum action_kind {
#define X(name, text, microbatch) ACTION_##name,
    ACTION_LIST(X)
#undef X
};

struct action {
    enum action_kind kind;
    int stage;
    int microbatch; /* -1: none */
    int column;     /* of the list in the file, from 1; 0: it is generated */
    struct action
        *parts; /* OVERLAP_F_B: ACTION_PARTS, a forward pass and a backward pass; else NULL */
    struct mark mark;
};
enum { ACTION_PARTS = 2 };

/* Where an action, or a part of one, stands in the lists: all from 1. The end of a list is an ACTION_IDLE. */
struct listed_action {
    enum action_kind kind;
    int stage, microbatch;
    int row, column;
    int in_file; /* the column in the file, where the list is given: messages may have been added since */
};

struct rank_program {
    struct action *actions;
    size_t count;
    size_t unread; /* of them idle ones whose text is no action; only in lists that are refused */
};

/* The messages that share a communicator and its stream. GROUP is what PyTorch does with NCCL: see doc/semantics.md. */
#define FIFO_LIST(X) X(RANK, "group") X(PAIR, "pair") X(DIRECTION, "direction") X(EDGE, "edge")
enum fifo_rule {
#define X(name, key) FIFO_##name,
    FIFO_LIST(X)
#undef X
};

/* Messages that tell the shape of the tensor behind them: none, before the first one from a stage to another, or before
   each, as hfai does. */
#define METADATA_LIST(X) X(NONE, "none") X(FIRST, "first") X(EACH, "each")
enum metadata {
#define X(name, key) METADATA_##name,
    METADATA_LIST(X)
#undef X
};
enum { METADATA_BYTES = 64 };

/* The messages of Megatron-LM: neighbouring ones in a batch; one by one, odd and even ranks in opposite orders; awaited
   later; in warm-up and cool-down, too. */
#define MEGATRON_LIST(X)                                                                           \
    X(NONE, "none")                                                                                \
    X(BATCH, "batch")                                                                              \
    X(ODD_EVEN, "odd_even")                                                                        \
    X(OVERLAP, "overlap_p2p")                                                                      \
    X(FLUSH, "overlap_p2p_flush")
enum megatron_order {
#define X(name, key) MEGATRON_##name,
    MEGATRON_LIST(X)
#undef X
};

/* ---- costs of messages ----------------------------------------------------------------------- */

struct amount {
    bool given;
    int64_t value;
};

/* A message takes latency + bytes / bandwidth. What is not given is that of the next wider link. */
struct link {
    struct amount latency, bandwidth, bytes; /* nanoseconds; bytes a second; bytes of a message */
};

/* `p2p: {edges: [...]}`: the messages from one rank to another. */
struct edge_link {
    int from, to;
    struct link link;
    struct mark mark;
};

/* The links of a message, the narrowest first: its edge; `between` nodes; its direction; all. */
struct links {
    struct mark mark;
    struct link all;
    struct link forward, backward;
    struct link between; /* ranks of different nodes */
    int node;            /* ranks a node; 0: all are on one */
    struct edge_link *edges;
    size_t edge_count;
};

/* ---- costs of stages ------------------------------------------------------------------------- */

/*    NAME          key            a time, else bytes */
#define COST_LIST(X)                                                                               \
    X(F, "F", 1) /* passes of a microbatch */                                                      \
    X(I, "I", 1)                                                                                   \
    X(W, "W", 1)                                                                                   \
    X(B, "B", 1)                   /* without it that of I and W */                                \
    X(DISPATCH, "dispatch", 1)     /* all-to-all of F, I and B to the experts of their layers */   \
    X(COMBINE, "combine", 1)       /* and back */                                                  \
    X(OPTIMIZER, "optimizer", 1)   /* at the end */                                                \
    X(ACTIVATION, "activation", 0) /* what F keeps of a microbatch for its backward pass */        \
    X(LEFT, "left", 0)             /* what I keeps of it for W; default: all of it */              \
    X(INPUT, "input", 0)           /* what F keeps instead where it is computed once more */       \
    X(WEIGHTS, "weights", 0)       /* all the time: parameters */                                  \
    X(STATE, "state", 0)           /* gradients, the state of the optimizer */
enum cost {
#define X(name, key, time) COST_##name,
    COST_LIST(X)
#undef X
        COST_COUNT
};

/* One for all, or one each. */
struct cost_list {
    int64_t *items;
    size_t count; /* 0: not given */
    struct mark mark;
};

struct cost_table {
    struct cost_list of[COST_COUNT];
};

/* How `layers:` are divided into stages. */
#define BALANCE_LIST(X) X(EVEN, "even") X(FOUND, "found") X(LISTED, NULL)
enum balance_kind {
#define X(name, key) BALANCE_##name,
    BALANCE_LIST(X)
#undef X
};

/* Which microbatches keep only the input of their passes, and compute the rest once more. */
#define CHECKPOINT_LIST(X) X(NEVER, "never") X(EXCEPT_LAST, "except_last") X(ALWAYS, "always")
enum checkpoint {
#define X(name, key) CHECKPOINT_##name,
    CHECKPOINT_LIST(X)
#undef X
};

/* Until when the output of a stage is kept. */
#define RELEASE_LIST(X) X(BACKWARD, "backward") X(SEND, "send")
enum release {
#define X(name, key) RELEASE_##name,
    RELEASE_LIST(X)
#undef X
};

/* `layers:` */
struct layers {
    int count;        /* 0: not given */
    struct mark mark; /* of `layers:`, else of `model:` */
    struct cost_table each;
    struct cost_table embedding, head; /* of the first and the last stage, besides */
};

/* `model:`, a transformer, which fills in what layers cost (model.h); 0: not given. */
struct model_spec {
    int layers, hidden, heads, sequence, microbatch;
    int kv_heads;           /* of keys and values, which groups of heads share; default: heads */
    int ffn;                /* default: 4 hidden */
    bool gated;             /* the MLP has three matrices: down(f(gate x) * up x) */
    int vocab;              /* 0: no embedding, no head */
    int tensor, data;       /* parallelism; default: 1 */
    int context;            /* divides the sequence; default: 1 */
    int experts, top_k;     /* of each layer; default: none, 1 */
    int expert_parallel;    /* default: 1 */
    bool sequence_parallel; /* what tensor parallelism leaves whole is divided, too */
    bool selective;         /* attention is computed once more, not kept */
    bool tied;              /* on one stage embedding and head share their weights */
    bool distributed;       /* the optimizer's state is divided by `data` */
    int64_t rate_flops;     /* floating-point operations a second of a rank; 0: no times */
};

struct stage_spec {
    struct cost_table stages; /* goes before what layers cost */
    struct layers layers;     /* goes before the model */
    struct model_spec model;
    enum balance_kind balance;
    int *balanced; /* BALANCE_LISTED: layers of each stage */
    size_t balanced_count;
    struct mark balance_mark;
    enum checkpoint checkpoint;
    enum release release;
};

/* ---- groups of ranks ------------------------------------------------------------------------- */

#define DIM_LIST(X) X(TP, "tp") X(PP, "pp") X(DP, "dp") X(EP, "ep") X(CP, "cp")
enum dim {
#define X(name, key) DIM_##name,
    DIM_LIST(X)
#undef X
        DIM_COUNT
};

/*            NAME        word          dimensions                        of the grid of experts */
#define GROUP_KIND_LIST(X)                                                                         \
    X(TP, "tp", 1u << DIM_TP, 0)                                                                   \
    X(CP, "cp", 1u << DIM_CP, 0)                                                                   \
    X(EP, "ep", 1u << DIM_EP, 1)                                                                   \
    X(DP, "dp", 1u << DIM_DP, 0)                                                                   \
    X(DP_CP, "dp-cp", 1u << DIM_DP | 1u << DIM_CP, 0) /* gradients are reduced in it */            \
    X(EXPERT_TP, "expert-tp", 1u << DIM_TP, 1)                                                     \
    X(EXPERT_DP, "expert-dp", 1u << DIM_DP, 1) /* and those of experts in this */                  \
    X(PP, "pp", 1u << DIM_PP, 0)                                                                   \
    X(EMBEDDING, "embedding", 1u << DIM_PP, 0) /* first and last rank of a pipeline */
enum group_kind {
#define X(name, key, dims, expert) GROUP_##name,
    GROUP_KIND_LIST(X)
#undef X
        GROUP_KIND_COUNT
};

/* The moment at which the gradients of a stage are reduced among its replicas. */
#define GRAD_REDUCE_LIST(X)                                                                        \
    X(NONE, "none")       /* where the lists say so */                                             \
    X(END, "end")         /* behind all passes, on the stream of the passes */                     \
    X(STAGE, "stage")     /* behind the last backward pass of the stage, on that stream */         \
    X(OVERLAP, "overlap") /* there, on a stream of its own; the passes go on */
enum grad_reduce {
#define X(name, key) GRAD_REDUCE_##name,
    GRAD_REDUCE_LIST(X)
#undef X
};

/* The moment at which the gradients of tied embeddings are reduced between first and last stage. */
#define EMBEDDING_LIST(X)                                                                          \
    X(NONE, "none")                                                                                \
    X(FIRST, "first") /* at the end, before gradients that are reduced there */                    \
    X(LAST, "last")
enum embedding_reduce {
#define X(name, key) EMBEDDING_##name,
    EMBEDDING_LIST(X)
#undef X
};

/* The calls by which the passes of a group put its ranks' parts together. */
#define GROUP_CALL_LIST(X)                                                                         \
    X(USUAL, "usual") /* what parallel_call says */                                                \
    X(ALL_REDUCE, "all_reduce")                                                                    \
    X(GATHER_SCATTER,                                                                              \
      "gather_scatter")         /* all-gather before, reduce-scatter behind: of sequences */       \
    X(ALL_GATHER, "all_gather") /* backward a reduce-scatter: of keys and values */                \
    X(RING, "ring")             /* of them, from rank to rank */                                   \
    X(ALL_TO_ALL, "all_to_all")
enum group_call {
#define X(name, key) GROUP_CALL_##name,
    GROUP_CALL_LIST(X)
#undef X
};

/* The cost of a collective in a kind of group: latency + bytes / bandwidth, or `time`. */
struct group_cost {
    bool given;
    enum group_call call;
    bool overlap; /* collectives of passes on a stream of their own, beside other passes */
    struct amount calls[COST_B + 1]; /* in a pass F, I, W, B */
    struct link link, between;       /* `between`: of groups that lie on several nodes */
    struct amount time;
};

/* Differences of one rank from the others of its group. */
struct rank_differs {
    int rank;
    struct mark mark;
    bool has_reduce, has_embedding, has_program;
    enum grad_reduce reduce;
    enum embedding_reduce embedding;
    struct rank_program *program;
};

struct parallel_spec {
    bool given;
    struct mark mark;
    int size[DIM_COUNT];       /* pp: that of the lists */
    int expert_tp;             /* 0: as tp */
    int world;                 /* 0: not given */
    enum dim order[DIM_COUNT]; /* the fastest first */
    enum grad_reduce reduce;
    enum embedding_reduce embedding;
    struct group_cost costs[GROUP_KIND_COUNT];
    struct rank_differs *differing;
    size_t differing_count;
};

/* ---- arithmetic of a real run ---------------------------------------------------------------- */

/* f */
#define LAYER_FUNCTION_LIST(X) X(RELU, "relu") X(GELU, "gelu") X(NONE, "none")
enum layer_function {
#define X(name, key) LAYER_FUNCTION_##name,
    LAYER_FUNCTION_LIST(X)
#undef X
};

/* Of a row: the mean of squares, or the cross entropy of softmax with a class; of a microbatch: the mean over its rows. */
#define LOSS_LIST(X) X(MSE, "mse") X(CROSS_ENTROPY, "cross_entropy")
enum loss_kind {
#define X(name, key) LOSS_##name,
    LOSS_LIST(X)
#undef X
};

enum { ARITHMETIC_WIDTH = 64, ARITHMETIC_BATCH = 8, ARITHMETIC_MOST = 4096 };
struct arithmetic {
    bool given;
    struct mark mark;
    int width, batch;
    int layers_per_stage; /* 0: as `layers:` or `model:` are divided, without these 1 */
    enum layer_function activation;
    enum loss_kind loss;
    int64_t seed;
    /* Of a lowered plan: */
    int stages;       /* of all copies of the model */
    int length;       /* of a copy */
    int microbatches; /* 1 + the highest number */
    int *layers;      /* [stages] */
    int replicas;     /* pipelines beside one another, each with microbatches of its own */
    int *rank_of;     /* [replicas][stages] */
    bool *again;      /* [microbatches]: a backward pass computes the forward pass once more */
};

/* ---- the whole ------------------------------------------------------------------------------- */

/* As many activations as `machine: {memory}` has room for, rank by rank. */
enum { GENERATE_FIT = -1 };

/* Generator parameters, `generate:`. */
struct generate_spec {
    bool given;
    const char *schedule; /* gpipe, 1f1b, interleaved_1f1b, ... */
    int ranks, chunks, microbatches;
    int group;                    /* microbatches that go through a chunk in a row; 0: as PyTorch */
    bool moe_overlap;             /* the two passes of a steady pair are one piece of work */
    enum megatron_order megatron; /* NONE: passes alone, whose messages are added as PyTorch does */
    int memory; /* schedules that are found: activations of a stage a rank holds; 0: by the schedule, GENERATE_FIT */
    struct rank_program
        *found; /* schedules that are found: the list of each rank, after the search; else NULL */
    bool found_given; /* the text of the plan has these lists: they are not searched for */
    struct mark mark;
};

/* Cost of one action kind, for prediction: `times: {F: 1ms, B: 2ms, ...}`. */
struct action_time {
    bool given;
    int64_t time_ns;
};

struct programs {
    struct rank_program *ranks; /* plan->ranks of them */
    bool has_comms;             /* at least one SEND or RECV: compute_comms, else compute_only */
    int copies;    /* `copies: 2`, of the model, half of the stages each; 0 or 1: one */
    bool fragment; /* `fragment: true`: a piece, whose other passes are elsewhere */
    struct generate_spec generate;
    enum fifo_rule fifo;    /* p2p: {fifo: rank|pair|direction|edge} */
    bool batch;             /* p2p: {batch: true}: neighbouring sends and receives form a group */
    enum metadata metadata; /* p2p: {metadata: each} */
    int64_t p2p_bytes;      /* p2p: {bytes: 4MiB}, per message, where its links say nothing else */
    struct links links;     /* p2p: {latency, bandwidth, ...} */
    struct stage_spec stages;      /* stages:, layers:, balance:, checkpoint:, release: */
    int eager_messages;            /* p2p: {eager_messages: 1}, per communicator; 0: rendezvous */
    int64_t eager_bytes;           /* p2p: {eager_bytes: 1MiB}; 0: rendezvous */
    int fsdp_replicas;             /* fsdp: {replicas: 2}, of the whole pipeline; 0 or 1: one */
    int64_t fsdp_bytes;            /* fsdp: {bytes: 1GiB}, the unsharded parameters of a stage */
    struct parallel_spec parallel; /* `parallel:`, the pipelines and groups of all ranks */
    struct action_time times[ACTION_IDLE];
    struct arithmetic arithmetic; /* arithmetic: */
};

const char *action_text(enum action_kind kind);
bool action_has_microbatch(enum action_kind kind);
/* The action whose time is this cost: one of COST_F, I, W, B. */
enum action_kind action_of_cost(enum cost cost);
/* The reverse; false, and *out untouched: the action is no pass. */
bool action_cost(enum action_kind kind, enum cost *out);

#endif
