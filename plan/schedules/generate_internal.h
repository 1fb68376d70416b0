/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate_internal.h - shared by the files that make schedules.
 *
 *     generate.c           the table of schedules, their conditions, lists with a warm-up and steady pairs; two chunks a
 *                          rank: ZB-V, DualPipe, DualPipeV
 *     generate_megatron.c  passes with the messages between them, as Megatron sends them
 */
#ifndef SWSIM_GENERATE_INTERNAL_H
#define SWSIM_GENERATE_INTERNAL_H

#include "generate.h"

/* One rank's list in the making. */
struct list_builder {
    struct arena *arena;
    int p, v, m, rank; /* ranks, chunks a rank, microbatches, the rank of this list */
    int group;
    bool moe_overlap;
    struct action *actions;
    size_t count, cap;
    struct mark mark;
    bool failed; /* memory is exhausted */
};

/* A list with a warm-up and steady pairs. */
struct generate_pattern {
    int warm;   /* forwards before the first backward */
    int group;  /* microbatches that go through one chunk before the next chunk's turn */
    bool split; /* the backward is I, with W following `lag` backwards later; else B */
    int lag;
    bool overlap; /* the two of a pair are executed together */
};

/* The k-th pass forward or backward of a rank. */
struct action generate_pass(const struct list_builder *b, enum action_kind kind, int group, int k);

/* Append a pass; a forward and a full backward that are executed together. */
void generate_push(struct list_builder *b, enum action_kind kind, int stage, int microbatch);
void generate_push_overlap(struct list_builder *b, struct action forward, struct action backward);

/* ---- generate_megatron.c: the list of a rank, with messages ---------------------------------- */

/* Actions for each pass of a rank: itself, a send, a receive, and waits for both. */
enum { MEGATRON_MOST = 5 };

void generate_megatron(struct list_builder *b, const struct generate_pattern *pattern,
                       enum megatron_order order, bool forward_only);

#endif
