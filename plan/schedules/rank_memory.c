/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_memory.c - see rank_memory.h.
 *
 * The tensors that an action uses are those of tensors.h, seen from the stages of one rank: a tensor is a stage of it, a slot and
 * a microbatch. The first walk over a list finds the last use of each, the second adds and subtracts.
 */
#include "rank_memory.h"

#include <string.h>

#include "comms.h"
#include "complete_lists.h"
#include "tensors.h"
#include "costs.h"
#include "parallel.h"

/* The tensors of a stage on its own rank. INPUT and GRADIENT_IN come from other ranks, SAVED is what F keeps for
   B or I, AGAIN what these compute once more. */
enum slot {
    SLOT_INPUT,
    SLOT_OUTPUT,
    SLOT_GRADIENT_IN,
    SLOT_GRADIENT_OUT,
    SLOT_SAVED,
    SLOT_LEFT,
    SLOT_AGAIN,
    SLOT_PARAMETERS,
    SLOT_WEIGHT_GRADIENT,
    SLOT_COUNT
};

struct rank_memory_cell {
    size_t last; /* action, from 1 */
    bool held;
};

struct slot_use {
    int stage, microbatch;
    enum slot slot;
};

enum { MOST_SLOTS = 16 };

/* The uses of the part that was asked for last: it is asked for when it begins and when it ends. */
struct part_uses {
    const struct action *part;
    struct slot_use uses[MOST_SLOTS];
    int count;
};

struct account {
    const struct plan *plan;
    struct stage_map map;
    struct stage_cost *costs;
    int *local; /* per stage: which of its rank's it is */
    int rank;
    struct rank_memory_cell *cells; /* of the rank: stage, slot, microbatch */
    int64_t held[MEMORY_USES];
    bool sharded;    /* some stage is */
    bool weightless; /* no tensor has a size */
    struct part_uses last;
    int64_t *
        bytes; /* 1 + those of a tensor, per stage, slot, and whether it is computed again; 0: not asked for yet */
};

/* Cells of a slot: parameters have one where no action has a microbatch. */
static size_t cells_of_slot(const struct account *account)
{
    return account->map.microbatches > 0 ? (size_t)account->map.microbatches : 1;
}

static const struct rank_memory_cell *cell_at(const struct account *account,
                                              const struct slot_use *use)
{
    size_t stage = (size_t)account->local[use->stage];
    int microbatch = use->microbatch < 0 ? 0 : use->microbatch;
    return &account->cells[(stage * SLOT_COUNT + use->slot) * cells_of_slot(account) +
                           (size_t)microbatch];
}

static struct rank_memory_cell *rank_memory_cell_of(struct account *account,
                                                    const struct slot_use *use)
{
    return (struct rank_memory_cell *)cell_at(account, use);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static enum memory_use use_of(enum slot slot)
{
    switch (slot) {
    case SLOT_INPUT:
    case SLOT_OUTPUT:
    case SLOT_GRADIENT_IN:
    case SLOT_GRADIENT_OUT: return MEMORY_MESSAGES;
    case SLOT_SAVED:
    case SLOT_LEFT:
    case SLOT_AGAIN: return MEMORY_ACTIVATIONS;
    case SLOT_PARAMETERS:
    case SLOT_WEIGHT_GRADIENT:
    case SLOT_COUNT: break;
    }
    return MEMORY_PARAMETERS;
}

/* A tensor that goes from a stage to another is as long as its message, also where both are on one rank. */
static int64_t message_bytes(const struct account *account, int from, int to, bool forward)
{
    int sender = comms_rank_of(&account->map, from), receiver = comms_rank_of(&account->map, to);
    return costs_message(account->plan, sender, receiver,
                         parallel_apart(account->plan, 0, sender, receiver), forward)
        .bytes;
}

/* True if the pass keeps its own copy of what it reads. Then messages are held until it is done. */
static bool rank_memory_keeps_own(const struct account *account, int stage)
{
    return account->costs[stage].given[COST_ACTIVATION];
}

static int64_t find_bytes(const struct account *account, const struct slot_use *use, bool again)
{
    const struct stage_cost *costs = &account->costs[use->stage];
    int s = use->stage;
    switch (use->slot) {
    case SLOT_INPUT: return message_bytes(account, s - 1, s, true);
    case SLOT_OUTPUT:
        if (s == account->map.stages - 1 && rank_memory_keeps_own(account, s))
            return 0; /* no message */
        return message_bytes(account, s, s + 1, true);
    case SLOT_GRADIENT_IN: return message_bytes(account, s + 1, s, false);
    case SLOT_GRADIENT_OUT: return message_bytes(account, s, s - 1, false);
    case SLOT_SAVED: return costs->of[again ? COST_INPUT : COST_ACTIVATION];
    case SLOT_LEFT: return costs->of[COST_LEFT];
    case SLOT_AGAIN: return again ? costs->again : 0;
    case SLOT_PARAMETERS:
    case SLOT_WEIGHT_GRADIENT:
    case SLOT_COUNT: break;
    }
    return account->plan->programs.fsdp_bytes;
}

/* True if no tensor has a size. Then a rank holds the same at all actions. */
static bool is_weightless(const struct account *account)
{
    for (int stage = 0; stage < account->map.stages; stage++)
        for (int slot = 0; slot < SLOT_COUNT; slot++)
            for (int again = 0; again < 2; again++)
                if (find_bytes(account, &(struct slot_use){stage, 0, (enum slot)slot}, again))
                    return false;
    return true;
}

static int64_t rank_memory_bytes_of(struct account *account, const struct slot_use *use)
{
    bool again = costs_checkpointed(account->plan, use->microbatch, account->map.microbatches);
    int64_t *bytes =
        &account->bytes[((size_t)use->stage * SLOT_COUNT + use->slot) * 2 + (size_t)again];
    if (*bytes == 0)
        *bytes = 1 + find_bytes(account, use, again);
    return *bytes - 1;
}

/* ---- what an action uses --------------------------------------------------------------------- */

static bool rank_memory_is_here(const struct account *account, int stage)
{
    return comms_rank_of(&account->map, stage) == account->rank;
}

/* A tensor of the table as a slot of this rank; false: the rank does not hold it for this action. */
static bool rank_memory_slot_of(const struct account *account, const struct action *action,
                                const struct tensor_use *use, struct slot_use *out)
{
    const struct tensor *tensor = &use->tensor;
    bool own = tensor->stage == action->stage;
    bool backward =
        action->kind == ACTION_B || action->kind == ACTION_I || action->kind == ACTION_W;
    bool released = account->plan->programs.stages.release == RELEASE_SEND;
    *out = (struct slot_use){.stage = action->stage, .microbatch = tensor->microbatch};
    switch (tensor->kind) {
    case TENSOR_ACTIVATION:
        if (backward && (own ? released : rank_memory_keeps_own(account, action->stage)))
            return false;
        out->slot = own ? SLOT_OUTPUT : SLOT_INPUT;
        if (!own && rank_memory_is_here(account, tensor->stage)) /* made here by the stage before */
            *out = (struct slot_use){tensor->stage, tensor->microbatch, SLOT_OUTPUT};
        return true;
    case TENSOR_GRADIENT:
        if (action->kind == ACTION_W && rank_memory_keeps_own(account, action->stage))
            return false;
        out->slot = own ? SLOT_GRADIENT_OUT : SLOT_GRADIENT_IN;
        if (!own && rank_memory_is_here(account, tensor->stage))
            *out = (struct slot_use){tensor->stage, tensor->microbatch, SLOT_GRADIENT_OUT};
        return tensor->stage > 0;
    case TENSOR_LEFT:
        out->slot = SLOT_LEFT;
        return action->kind == ACTION_I || action->kind == ACTION_W;
    case TENSOR_PARAMETERS: out->slot = SLOT_PARAMETERS; return account->sharded;
    case TENSOR_WEIGHT_GRADIENT: out->slot = SLOT_WEIGHT_GRADIENT; return account->sharded;
    case TENSOR_WEIGHT:
    case TENSOR_SENT_F:
    case TENSOR_SENT_B:
    case TENSOR_REDUCED:
    case TENSOR_COUNT: break;
    }
    return false;
}

static int rank_memory_find_uses(const struct account *account, const struct action *action,
                                 struct slot_use out[MOST_SLOTS])
{
    struct tensor_use uses[ACTION_MOST_USES];
    int count = 0,
        used = action_uses(action, comms_first_stage(&account->map, action->stage),
                           comms_end_stage(&account->map, action->stage), ALL_TENSORS, uses);
    if (comms_is_message(action) && rank_memory_is_here(account, comms_partner(action)))
        return 0; /* stages of one rank exchange no messages */
    for (int i = 0; i < used; i++)
        count += rank_memory_slot_of(account, action, &uses[i], &out[count]);
    const struct slot_use saved = {action->stage, action->microbatch, SLOT_SAVED};
    bool backward = action->kind == ACTION_B || action->kind == ACTION_I;
    if (backward || action->kind == ACTION_F)
        out[count++] = saved;
    if (backward)
        out[count++] = (struct slot_use){action->stage, action->microbatch, SLOT_AGAIN};
    return count;
}

static const struct part_uses *rank_memory_uses_of(struct account *account,
                                                   const struct action *part)
{
    struct part_uses *last = &account->last;
    if (last->part != part) {
        last->part = part;
        last->count = rank_memory_find_uses(account, part, last->uses);
    }
    return last;
}

/* ---- the walks ------------------------------------------------------------------------------- */

static void note_last(struct account *account, const struct action *part, size_t at)
{
    const struct part_uses *of = rank_memory_uses_of(account, part);
    for (int i = 0; i < of->count; i++)
        rank_memory_cell_of(account, &of->uses[i])->last = at;
}

static void rank_memory_bring(struct account *account, const struct action *part)
{
    const struct part_uses *of = rank_memory_uses_of(account, part);
    for (int i = 0; i < of->count; i++) {
        const struct slot_use *use = &of->uses[i];
        struct rank_memory_cell *cell = rank_memory_cell_of(account, use);
        if (part->kind == ACTION_I && use->slot == SLOT_LEFT)
            continue; /* a part of what it has: see leave */
        if (!cell->held)
            account->held[use_of(use->slot)] += rank_memory_bytes_of(account, use);
        cell->held = true;
    }
}

static void rank_memory_release(struct account *account, const struct action *part, size_t at)
{
    const struct part_uses *of = rank_memory_uses_of(account, part);
    for (int i = 0; i < of->count; i++) {
        const struct slot_use *use = &of->uses[i];
        struct rank_memory_cell *cell = rank_memory_cell_of(account, use);
        if (cell->held && cell->last == at)
            account->held[use_of(use->slot)] -= rank_memory_bytes_of(account, use);
        cell->held &= cell->last != at;
    }
}

/* Of what I had, it leaves a part to W. */
static void rank_memory_leave(struct account *account, const struct action *part, size_t at)
{
    const struct slot_use left = {part->stage, part->microbatch, SLOT_LEFT};
    if (part->kind != ACTION_I)
        return;
    struct rank_memory_cell *cell = rank_memory_cell_of(account, &left);
    cell->held = cell->last > at;
    if (cell->held)
        account->held[MEMORY_ACTIVATIONS] += rank_memory_bytes_of(account, &left);
}

static int64_t held_now(const struct account *account, const struct rank_memory *memory)
{
    int64_t sum = memory->fixed;
    for (int use = 0; use < MEMORY_USES; use++)
        sum += account->held[use];
    return sum;
}

static void note_most(const struct account *account, struct rank_memory *memory, size_t column)
{
    int64_t now = held_now(account, memory), activations = account->held[MEMORY_ACTIVATIONS];
    memory->during[column - 1] = now;
    if (activations > memory->most_activations)
        memory->most_activations = activations;
    if (now <= memory->most && memory->column)
        return;
    memory->most = now;
    memory->column = column;
    memcpy(memory->at, account->held, sizeof memory->at);
}

static void hold_fixed(const struct rank_program *list, struct rank_memory *memory)
{
    memory->column = list->count > 0;
    for (size_t i = 0; memory->fixed && i < list->count; i++)
        memory->during[i] = memory->fixed;
}

static void rank_memory_walk(struct account *account, const struct rank_program *list,
                             struct rank_memory *memory)
{
    const struct action *parts;
    for (size_t i = 0; i < list->count; i++)
        for (size_t k = 0, count = comms_parts(&list->actions[i], &parts); k < count; k++)
            note_last(account, &parts[k], i + 1);
    for (size_t i = 0; i < list->count; i++) {
        size_t count = comms_parts(&list->actions[i], &parts);
        for (size_t k = 0; k < count; k++)
            rank_memory_bring(account, &parts[k]);
        note_most(account, memory, i + 1);
        for (size_t k = 0; k < count; k++) {
            rank_memory_release(account, &parts[k], i + 1);
            rank_memory_leave(account, &parts[k], i + 1);
        }
        memory->after[i] = held_now(account, memory);
    }
}

/* ---- all ranks ------------------------------------------------------------------------------- */

/* How many stages the rank holds. */
static int number_stages(struct account *account, struct rank_memory *memory)
{
    int count = 0;
    for (int s = 0; s < account->map.stages; s++) {
        if (!rank_memory_is_here(account, s))
            continue;
        account->local[s] = count++;
        memory->fixed += account->costs[s].of[COST_WEIGHTS] + account->costs[s].of[COST_STATE];
    }
    return count;
}

static bool account_rank(struct account *account, const struct rank_program *list,
                         struct arena *arena, struct rank_memory *memory)
{
    struct arena scratch;
    *memory = (struct rank_memory){.count = list->count};
    memory->during = ARENA_ARRAY(arena, list->count + 1, int64_t);
    memory->after =
        account->weightless ? memory->during : ARENA_ARRAY(arena, list->count + 1, int64_t);
    if (!memory->during || !memory->after)
        return false;
    size_t stages = (size_t)number_stages(account, memory);
    memory->most = memory->fixed;
    if (account->weightless) {
        hold_fixed(list, memory);
        return true;
    }
    memset(account->held, 0, sizeof account->held);
    account->last.part = NULL;
    arena_init(&scratch, 0);
    account->cells = ARENA_ARRAY(&scratch, stages * SLOT_COUNT * cells_of_slot(account) + 1,
                                 struct rank_memory_cell);
    bool good = account->cells != NULL;
    if (good)
        rank_memory_walk(account, list, memory);
    arena_fini(&scratch);
    return good;
}

bool rank_memory_sharded(const struct rank_program *ranks, int rank_count)
{
    for (int rank = 0; rank < rank_count; rank++)
        for (size_t i = 0; i < ranks[rank].count; i++)
            if (ranks[rank].actions[i].kind == ACTION_UNSHARD ||
                ranks[rank].actions[i].kind == ACTION_REDUCE_GRAD)
                return true;
    return false;
}

/* `others`: of ranks that differ, at most those of the lists. */
static enum status account_lists(const struct plan *plan, const struct complete_lists *lists,
                                 struct arena *arena, size_t others, struct rank_memory **ranks,
                                 struct diag *diag)
{
    struct account account = {.plan = plan, .map = lists->map};
    struct arena scratch;
    size_t count = (size_t)lists->rank_count;
    arena_init(&scratch, 0);
    enum status status = costs_resolve(plan, account.map.stages, &scratch, &account.costs, diag);
    if (status != STATUS_OK) {
        arena_fini(&scratch);
        return status;
    }
    struct rank_memory *made = ARENA_ARRAY(arena, count + others, struct rank_memory);
    account.local = ARENA_ARRAY(&scratch, (size_t)account.map.stages + 1, int);
    account.bytes =
        ARENA_ARRAY(&scratch, 2 * SLOT_COUNT * ((size_t)account.map.stages + 1), int64_t);
    bool good = made && account.local && account.bytes;
    account.weightless = is_weightless(&account);
    account.sharded = rank_memory_sharded(lists->ranks, lists->rank_count);
    for (account.rank = 0; good && account.rank < lists->rank_count; account.rank++)
        good = account_rank(&account, &lists->ranks[account.rank], arena, &made[account.rank]);
    for (size_t i = 0; good && i < others; i++) {
        int replica;
        parallel_place(&plan->programs.parallel, lists->rank_count,
                       plan->programs.parallel.differing[i].rank, &replica, &account.rank);
        good = account_rank(&account, &lists->differing[i], arena, &made[count + i]);
    }
    arena_fini(&scratch);
    if (!good)
        return diag_no_memory(diag);
    *ranks = made;
    return STATUS_OK;
}

static enum status find_memory(const struct plan *plan, struct arena *arena, size_t others,
                               struct rank_memory **ranks, int *rank_count, struct diag *diag)
{
    struct complete_lists lists;
    enum status status = complete_lists_make(plan, NULL, &lists, diag);
    if (status != STATUS_OK)
        return status;
    status = account_lists(plan, &lists, arena, others, ranks, diag);
    if (status == STATUS_OK)
        *rank_count = lists.rank_count;
    complete_lists_fini(&lists);
    return status;
}

enum status rank_memory_of_lists(const struct plan *plan, struct rank_program *given,
                                 struct arena *arena, struct rank_memory **ranks, struct diag *diag)
{
    struct complete_lists lists;
    struct plan with =
        *plan; /* for its lists only: a balance that is found depends on `generate:` */
    with.programs.generate.given = false;
    with.programs.ranks = given;
    with.programs.has_comms = true;
    with.programs.copies = complete_lists_copies(plan);
    enum status status = complete_lists_make(&with, NULL, &lists, diag);
    if (status != STATUS_OK)
        return status;
    status = account_lists(plan, &lists, arena, 0, ranks, diag);
    complete_lists_fini(&lists);
    return status;
}

enum status rank_memory_of_complete(const struct plan *plan, const struct complete_lists *lists,
                                    struct arena *arena, struct rank_memory **ranks,
                                    struct diag *diag)
{
    return account_lists(plan, lists, arena, 0, ranks, diag);
}

enum status rank_memory_find(const struct plan *plan, struct arena *arena,
                             struct rank_memory **ranks, int *rank_count, struct diag *diag)
{
    return find_memory(plan, arena, 0, ranks, rank_count, diag);
}

enum status rank_memory_find_all(const struct plan *plan, struct arena *arena,
                                 struct rank_memory **ranks, int *rank_count, struct diag *diag)
{
    return find_memory(plan, arena, plan->programs.parallel.differing_count, ranks, rank_count,
                       diag);
}
