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
#include "plan/programs.h"

struct plan;

/* ---- messages -------------------------------------------------------------------------------- */

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

/* The most that a stage may hold of a microbatch, as PLAN_MOST_NS is the most that a pass or message of it may take:
   sums over a step stay within 64 bits. */
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
   of a message, is more than PLAN_MOST_NS or COST_MOST_BYTES. */
enum status costs_resolve(const struct plan *plan, int stages, struct arena *arena,
                          struct stage_cost **out, struct diag *diag);

/* True if a microbatch keeps only the input of its passes. */
bool costs_checkpointed(const struct plan *plan, int microbatch, int microbatches);

/* `model:` with the sizes of parallelism that `parallel:` gives. */
struct model_spec costs_model(const struct plan *plan);

const char *cost_key(enum cost cost);
bool cost_is_time(enum cost cost);

#endif
