/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_memory.h - the bytes that the ranks of rank programs hold, action by action.
 *
 * A rank holds a tensor from the action that brings it to the last one of its list that uses it: a caching allocator
 * gives and takes memory when calls are made, so what is held follows from the list, in every run.
 *
 *     fixed        weights and state of its stages (costs.h)
 *     activations  what passes forward keep for passes backward
 *     messages     outputs and gradients of stages, sent, received or used on the rank itself
 *     parameters   unsharded, and gradients to be reduced
 *
 * All memory is the caller's arena. Time and memory are linear in the actions.
 */
#ifndef SWSIM_RANK_MEMORY_H
#define SWSIM_RANK_MEMORY_H

#include "plan/plan.h"

enum memory_use { MEMORY_ACTIVATIONS, MEMORY_MESSAGES, MEMORY_PARAMETERS, MEMORY_USES };

struct rank_memory {
    int64_t fixed;
    int64_t most;             /* at one time, of all */
    int64_t at[MEMORY_USES];  /* then, besides `fixed` */
    size_t column;            /* the action then, from 1; 0: the list is empty */
    int64_t most_activations; /* at one time, of them alone */
    int64_t *during;          /* bytes held at each action of the list, all uses and `fixed` */
    int64_t *after;           /* and when it is done */
    size_t count;             /* of actions */
};

/* A row for each rank of one replica of a plan of FORM_PROGRAMS. */
enum status rank_memory_find(const struct plan *plan, struct arena *arena,
                             struct rank_memory **ranks, int *rank_count, struct diag *diag);
/* The same of its complete lists. */
struct complete_lists;
enum status rank_memory_of_complete(const struct plan *plan, const struct complete_lists *lists,
                                    struct arena *arena, struct rank_memory **ranks,
                                    struct diag *diag);
/* Of lists made for a plan, with their messages, instead of its own. */
enum status rank_memory_of_lists(const struct plan *plan, struct rank_program *lists,
                                 struct arena *arena, struct rank_memory **ranks,
                                 struct diag *diag);
/* True if an action of the lists unshards parameters or reduces gradients. */
bool rank_memory_sharded(const struct rank_program *ranks, int rank_count);
/* And behind these one for each rank that differs (plan->programs.parallel.differing), not counted. */
enum status rank_memory_find_all(const struct plan *plan, struct arena *arena,
                                 struct rank_memory **ranks, int *rank_count, struct diag *diag);

#endif
