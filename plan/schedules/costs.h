/* SPDX-License-Identifier: Apache-2.0 */
/*
 * costs.h - what the actions of rank programs cost: time of passes and messages, bytes that stages hold.
 *
 * A plan says it by message (`p2p:`), by kind of action (`times:`), by stage (`stages:`) or by layer (`layers:`,
 * `balance:`). costs_resolve makes one row a stage of it; all memory is the plan's or the caller's arena. Times are
 * nanoseconds, sizes bytes.
 */
#ifndef SWSIM_COSTS_H
#define SWSIM_COSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"

struct plan;

/* ---- messages -------------------------------------------------------------------------------- */

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

struct message_cost {
    int64_t bytes, latency_ns, transfer_ns;
    int64_t metadata_ns; /* of the message that tells its shape, where there is one */
};

/* A message from rank to rank (those of one replica), forward or backward; `apart`: they are on different nodes. */
struct message_cost costs_message(const struct plan *plan, int from, int to, bool apart,
                                  bool forward);
/* The value of the first of these links that gives one; `bytes`, where none does. */
struct message_cost costs_link(const struct link *const *links, int count, int64_t bytes);

/* ---- stages ---------------------------------------------------------------------------------- */

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

/* The most that a pass or message of a microbatch may take, and that a stage may hold of one: sums over a step stay
   within 64 bits. */
#define COST_MOST_NS    INT64_C(50000000000000)
#define COST_MOST_BYTES (INT64_C(64) << 40)

/* The costs of a stage. */
struct stage_cost {
    bool given[COST_COUNT];
    int64_t of[COST_COUNT];
    int64_t again; /* bytes that a backward pass computes once more at a time */
    int layers;
};

/* A row for each stage: what `stages:` says, else its layers, else `times:`. B without a cost of its own takes I and W
   together, and I and W of a layer that has B alone half of it each. In `arena`. STATUS_INPUT also where a cost, or that
   of a message, is more than COST_MOST_NS or COST_MOST_BYTES. */
enum status costs_resolve(const struct plan *plan, int stages, struct arena *arena,
                          struct stage_cost **out, struct diag *diag);

/* Does a microbatch keep only the input of its passes? */
bool costs_checkpointed(const struct plan *plan, int microbatch, int microbatches);

/* `model:` with the sizes of parallelism that `parallel:` gives. */
struct model_spec costs_model(const struct plan *plan);

const char *cost_key(enum cost cost);
bool cost_is_time(enum cost cost);

#endif
