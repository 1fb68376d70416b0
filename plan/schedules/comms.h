/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comms.h - from compute actions to compute and communication actions.
 *
 * A schedule says which passes a rank does in which order. Where a pass needs what another rank
 * computed, a message is needed: comms_add puts SEND and RECV actions into the lists. Which rank
 * holds which stage follows from the lists themselves. New lists are made in the caller's arena;
 * the old ones are left as they are. Messages in diag carry the position of an action, but no file.
 */
#ifndef SWSIM_COMMS_H
#define SWSIM_COMMS_H

#include "pass_time.h"
#include "plan/plan.h"

enum { ACTION_NAME = 160 };

/* The text of an action, "0F3" or "(0F7;7B3)OVERLAP_F_B", cut to `cap`. Returns buf. */
const char *comms_action_name(const struct action *action, char *buf, size_t cap);

/* The passes an action consists of: the parts of a composite, else the action itself. */
static inline size_t comms_parts(const struct action *action, const struct action **parts)
{
    bool composite = action->kind == ACTION_OVERLAP_F_B;
    *parts = composite ? action->parts : action;
    return composite ? ACTION_PARTS : action->kind != ACTION_IDLE;
}

/* True if the action is F, I, W or B. */
bool comms_is_pass(const struct action *action);

/* True if the action is a SEND or RECV; true if one of the lists has such an action. */
bool comms_is_message(const struct action *action);
bool comms_present(const struct rank_program *ranks, int rank_count);

/* Which rank holds which stage. */
struct stage_map {
    int *rank_of;     /* -1: no rank names this stage */
    int *lowest_of;   /* per rank: its lowest stage, -1: none */
    int *next_of;     /* per stage: the next one that its rank holds, -1: none */
    int stages;       /* 1 + the highest stage named */
    int length;       /* stages of a copy of the model: messages and tensors stay within one */
    int microbatches; /* 1 + the highest microbatch named */
    struct mark mark; /* of an action of the highest stage */
};

/* Infer the map of lists for `copies` copies of a model, one behind the other in the numbers of their stages. Stages and microbatches out of range and a stage on two ranks are errors. */
enum status comms_map_stages(struct arena *arena, const struct rank_program *ranks, int rank_count,
                             int copies, struct stage_map *out, struct diag *diag);
/* The first stage of the copy that `stage` belongs to, and the one behind its last. */
static inline int comms_first_stage(const struct stage_map *map, int stage)
{
    return stage < map->length ? 0 : stage - stage % map->length; /* most models have one copy */
}

static inline int comms_end_stage(const struct stage_map *map, int stage)
{
    return comms_first_stage(map, stage) + map->length;
}

/* The stage at the other end of a SEND or RECV: may be outside the map. */
int comms_partner(const struct action *action);
/* The RECV that takes this SEND, the SEND that this RECV takes; without a mark. */
struct action comms_other_end(const struct action *message);
/* The rank holding `stage`, -1 if there is none. */
static inline int comms_rank_of(const struct stage_map *map, int stage)
{
    return stage >= 0 && stage < map->stages ? map->rank_of[stage] : -1;
}

/* Add the SEND and RECV actions to compute-only lists; idle cells are left out. A schedule in which
   all ranks wait for each other is an error; notes give the position of each of them. */
enum status comms_add(struct arena *arena, struct rank_program *ranks, int rank_count, int copies,
                      struct diag *diag);

/* The same in the order in which the passes end, if passes and messages take what `times` says. */
enum status comms_add_timed(struct arena *arena, struct rank_program *ranks, int rank_count,
                            int copies, const struct pass_clock *times, struct diag *diag);

/* Join each I directly followed by the W of the same stage and microbatch to a B; idle cells are
   left out. Delays the message of the I until the W is done. */
enum status comms_merge_bw(struct arena *arena, struct rank_program *ranks, int rank_count,
                           struct diag *diag);

#endif
