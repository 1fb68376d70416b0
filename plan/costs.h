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

#include "arena.h"
#include "diag.h"

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
    struct link all;
    struct link forward, backward;
    struct link between; /* ranks of different nodes */
    int node;            /* ranks a node; 0: all are on one */
    struct edge_link *edges;
    size_t edge_count;
};

struct message_cost {
    int64_t bytes, latency_ns, transfer_ns;
};

/* A message from rank to rank (those of one replica), forward or backward. */
struct message_cost costs_message(const struct plan *plan, int from, int to, bool forward);

#endif
