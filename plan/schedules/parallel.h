/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parallel.h - the groups of ranks of tensor, context, expert, data and pipeline parallelism.
 *
 * The ranks are a grid. Its order names the dimensions, the fastest first: "tp-cp-ep-dp-pp" puts the ranks of a tensor
 * group next to each other and those of a pipeline farthest apart. A group has the ranks that differ in its
 * dimensions only. Layers of experts divide the ranks of each stage anew, into expert-tp x ep x expert-dp in the same
 * order. The rules are those of Megatron-Core's RankGenerator (parallel_state.py, 0.16), numbers of groups included.
 *
 * A pipeline is a group over pp; its place in a list of ranks is its pipeline's stage order. All times are nanoseconds,
 * sizes bytes; memory is the plan's.
 */
#ifndef SWSIM_PARALLEL_H
#define SWSIM_PARALLEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "costs.h"
#include "base/diag.h"
#include "plan/programs.h"

struct plan;
struct rank_program;

const char *dim_key(enum dim dim);
const char *group_kind_key(enum group_kind kind);

/* The dimension of this name, -1: there is none. */
int parallel_find_dim(const char *text, size_t length);
/* The order of a text like "tp-cp-dp-pp"; what it leaves out must have size 1 and comes last. NULL, or what is wrong. */
const char *parallel_parse_order(const char *text, const int size[DIM_COUNT],
                                 enum dim order[DIM_COUNT]);
void parallel_print_order(const struct parallel_spec *spec, char *out, size_t cap);
/* Check that sizes and order make grids, and that the pipelines are the same with experts. NULL, or what is wrong. */
const char *parallel_check(const struct parallel_spec *spec);

/* Ranks in all; those of a stage that are data-parallel for its experts. */
int parallel_world(const struct parallel_spec *spec);
int parallel_expert_dp(const struct parallel_spec *spec);

/* The grid with the dimensions of `dims` (a bit each) as groups: their number, their ranks, the number of that which
   a rank is in, and the i-th rank of one. `experts`: of the grid of experts. */
int parallel_groups(const struct parallel_spec *spec, unsigned dims, bool experts);
int parallel_group_size(const struct parallel_spec *spec, unsigned dims, bool experts);
int parallel_group_of(const struct parallel_spec *spec, unsigned dims, bool experts, int rank);
int parallel_member(const struct parallel_spec *spec, unsigned dims, bool experts, int group,
                    int index);

unsigned group_kind_dims(enum group_kind kind);
bool group_kind_experts(enum group_kind kind);
/* The ranks of a group of this kind, into `out`; returns how many. An embedding group has one or two. */
int group_members(const struct parallel_spec *spec, enum group_kind kind, int group, int *out);

/* ---- the ranks of all pipelines of a plan ---------------------------------------------------- */

/* The rank of place `own` (of `ranks`) of a replica, and back. */
int parallel_rank(const struct parallel_spec *spec, int ranks, int replica, int own);
void parallel_place(const struct parallel_spec *spec, int ranks, int rank, int *replica, int *own);
/* True if two places of a replica are on different nodes (`p2p: {node}`). */
bool parallel_apart(const struct plan *plan, int replica, int from, int to);
/* The plan's entry for one rank; NULL: none. */
const struct rank_differs *parallel_differs(const struct plan *plan, int rank);

/* The same grid, but with at most `most` ranks in each dimension that is not pp; of any other form where that is no grid. */
struct parallel_spec parallel_few(const struct parallel_spec *spec, int most);
/* True if there are replicas, and the ranks of one place of all are alike: the same lists, groups and neighbours, on
   one node or on several. Nor do they share a device, exchange messages in a ring or connect to each other: each does
   what it would do alone. */
bool parallel_replicas_are_alike(const struct plan *plan);

/* True if the ranks of this group are on several nodes. */
bool parallel_group_is_apart(const struct plan *plan, enum group_kind kind, int group);
/* A collective of `bytes`, unless the plan says how many, in a group, on several nodes if it is `apart`. */
struct message_cost parallel_cost(const struct plan *plan, enum group_kind kind, int64_t bytes,
                                  bool apart);
/* The calls of its passes: by default an all-reduce of tp and expert-tp, with sequence parallelism gather_scatter; an
   all-gather of cp; an all-to-all of ep. */
enum group_call parallel_call(const struct plan *plan, enum group_kind kind);
/* The number of them in a pass: by default one in F, I and B, two of gather_scatter: of attention and MLP. */
int parallel_calls(const struct plan *plan, enum group_kind kind, enum cost pass);
/* True if the plan says how many. */
bool parallel_counts(const struct parallel_spec *spec, enum group_kind kind);

#endif
