/* SPDX-License-Identifier: Apache-2.0 */
/* edits.c - see edits.h: the cost of edits, and the list in order of cost. */
#include "edits_internal.h"
#include "base/array.h"
#include "base/sort.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The price of a kind: where something hangs, and where an order is missing. */
static const struct price {
    int hang, order;
} prices[EDIT_COUNT] = {
    [EDIT_FORGET_DONE] = {1, 1},    [EDIT_TICKET_AT] = {1, 1},
    [EDIT_SLOT_RESET] = {2, 2},     [EDIT_NUM_SLOTS] = {3, 3},
    [EDIT_RETIRED_DEP] = {4, 4},    [EDIT_RETIRE] = {5, 5},
    [EDIT_BATCHES] = {6, 6},        [EDIT_SORT_HOLDS] = {15, 15},
    [EDIT_ON_FAILURE] = {7, 7},     [EDIT_DECLARE] = {6, 6},

    [EDIT_ORDER_RULE] = {20, 60},   [EDIT_OVERRIDE_ORDER] = {25, 70},
    [EDIT_ORDER_COMMS] = {27, 90},  [EDIT_ORDER_MOVE] = {30, 70},
    [EDIT_STAGE] = {40, 60},        [EDIT_GLOBAL_ORDER] = {50, 90},
    [EDIT_ELIDE] = {60, 80},        [EDIT_GROUP] = {60, 90},
    [EDIT_MERGE_GROUPS] = {65, 80}, [EDIT_ADD_DEP] = {70, 20},
    [EDIT_TASK_STREAM] = {75, 40},  [EDIT_MAX_DEPTH] = {90, 55},
    [EDIT_REMOVE_DEP] = {150, 200}, [EDIT_TASK_SYNC] = {120, 30},

    [EDIT_JOIN] = {10, 60},         [EDIT_MOVE] = {20, 40},
    [EDIT_OP_STREAM] = {30, 30},    [EDIT_EVENT] = {45, 10},
    [EDIT_WAIT_EVENT] = {44, 6},    [EDIT_SYNC_EVENT] = {79, 8},
    [EDIT_SIGNAL] = {50, 20},       [EDIT_RECORD_STREAM] = {60, 9},
    [EDIT_SYNC_BEFORE] = {80, 18},  [EDIT_QUEUE_CAPACITY] = {60, 80},
    [EDIT_LOCK] = {70, 60},         [EDIT_OP_COMM] = {75, 90},
    [EDIT_SAME_CALL] = {150, 240},  [EDIT_ADD_CALL] = {155, 240},
    [EDIT_REMOVE_OP] = {160, 220},  [EDIT_UNSYNC] = {170, 220},

    [EDIT_ACTION_MOVE] = {20, 20},  [EDIT_P2P_BATCH] = {40, 90},
    [EDIT_P2P_FIFO] = {50, 90},     [EDIT_P2P_EAGER] = {110, 120},
    [EDIT_ACTION_ADD] = {10, 10},   [EDIT_ACTION_REMOVE] = {5, 5},
    [EDIT_RANK_ALIKE] = {30, 40},   [EDIT_MESSAGE_ADD] = {15, 15},

    [EDIT_LAZY_LOAD] = {160, 190},  [EDIT_LAUNCH_ORDER] = {180, 190},
    [EDIT_FIRST_USE] = {190, 190},  [EDIT_SM_SLOTS] = {200, 210},
    [EDIT_HW_QUEUES] = {200, 210},  [EDIT_LAUNCH_QUEUE] = {200, 210},
    [EDIT_EAGER] = {210, 220},
};

enum { WEAKER = 60, STEP = 2 };

const char *edit_key(enum edit_kind kind)
{
#define X(name) #name,
    static const char *const keys[] = {EDIT_LIST(X)};
#undef X
    return keys[kind];
}

static bool edits_is_same(const struct edit *a, const struct edit *b)
{
    return a->kind == b->kind && a->a == b->a && a->b == b->b && a->c == b->c && a->to == b->to &&
           a->everywhere == b->everywhere;
}

void propose(struct proposer *proposer, struct edit edit, int distance, int extra)
{
    struct edit_list *out = proposer->out;
    if (distance > NEAR_ENOUGH)
        return;
    const struct price *price = &prices[edit.kind];
    assert(price->hang > 0 && price->order > 0 && distance >= 0);
    edit.cost = (proposer->hang ? price->hang : price->order) + STEP * distance + extra +
                (edit.weakens ? WEAKER : 0);
    edit.alone |= edit.weakens;
    if (ARENA_GROW(proposer->arena, out->items, out->count, out->cap))
        out->items[out->count++] = edit;
}

/* Cheaper first; equally cheap ones in the order of the plan. */
static int by_cost(const void *left, const void *right)
{
    const struct edit *a = left, *b = right;
    if (a->cost != b->cost)
        return a->cost < b->cost ? -1 : 1;
    const int ours[] = {(int)a->kind, a->a, a->b, a->c, a->to, a->everywhere};
    const int theirs[] = {(int)b->kind, b->a, b->b, b->c, b->to, b->everywhere};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (ours[i] != theirs[i])
            return ours[i] < theirs[i] ? -1 : 1;
    return 0;
}

#ifdef SWSIM_CHECKS
/* The cheaper edits come first, and none is there twice at one cost. */
static bool edits_check(const struct edit_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (i > 0 && by_cost(&list->items[i - 1], &list->items[i]) >= 0)
            return false;
    return true;
}
#endif

/* ---- nearness -------------------------------------------------------------------------------- */

static size_t line_count(const struct plan *plan)
{
    return plan->form == FORM_PIPELINE   ? 1
           : plan->form == FORM_PROGRAMS ? plan->programs.ranks ? (size_t)plan->ranks : 0
                                         : plan->thread_count;
}

size_t edits_piece(const struct host_thread *thread, size_t at)
{
    size_t piece = 0;
    assert(thread->folded);
    for (size_t r = 0; r < thread->repeat_count && thread->repeats[r].first <= at; r++) {
        const bool inside = at < thread->repeats[r].first + thread->repeats[r].length;
        piece = 2 * (r + 1) - inside;
    }
    return piece;
}

static size_t edits_line_length(const struct plan *plan, size_t line)
{
    return plan->form == FORM_PIPELINE   ? plan->pipeline.task_count
           : plan->form == FORM_PROGRAMS ? plan->programs.ranks[line].count
                                         : plan->threads[line].op_count;
}

static int distance_to(const struct suspect *suspect, const struct plan *plan, size_t line,
                       size_t at)
{
    if (plan->form == FORM_PIPELINE)
        return suspect->task == (int)at ? suspect->nearness : FAR_AWAY;
    if (suspect->mark.line != line + 1)
        return FAR_AWAY;
    return STEP * suspect->nearness + abs((int)suspect->mark.col - 1 - (int)at);
}

/* The distance of every task or operation from a suspect; three steps for a task that no suspect names. */
static bool edits_measure(struct proposer *proposer)
{
    const struct plan *plan = proposer->plan;
    size_t lines = line_count(plan);
    proposer->near = ARENA_ARRAY(proposer->arena, lines, int *);
    for (size_t line = 0; proposer->near && line < lines; line++) {
        size_t length = edits_line_length(plan, line);
        int *near = proposer->near[line] = ARENA_ARRAY(proposer->arena, length, int);
        for (size_t at = 0; near && at < length; at++) {
            near[at] = plan->form == FORM_PIPELINE ? 3 : FAR_AWAY;
            for (size_t i = 0; i < proposer->suspects->count; i++) {
                int distance = distance_to(&proposer->suspects->items[i], plan, line, at);
                near[at] = distance < near[at] ? distance : near[at];
            }
        }
    }
    return !proposer->arena->failed;
}

enum status edits_list(const struct plan *plan, const struct suspects *suspects,
                       const struct edits_end *end, struct arena *arena, struct edit_list *out,
                       struct diag *diag)
{
    *out = (struct edit_list){0};
    enum property property = suspects->property;
    struct proposer proposer = {
        .plan = plan,
        .suspects = suspects,
        .end = end,
        .hang = property != PROPERTY_RACE && property != PROPERTY_LIFETIME,
        .arena = arena,
        .out = out,
    };
    if (!edits_measure(&proposer))
        return diag_no_memory(diag);
    if (plan->form == FORM_PIPELINE)
        propose_pipeline(&proposer);
    else if (plan->form == FORM_THREADS)
        propose_host(&proposer);
    else
        propose_programs(&proposer);
    propose_machine(&proposer);
    if (arena->failed)
        return diag_no_memory(diag);
    if (out->count == 0)
        return STATUS_OK;
    SORT(out->items, out->count, by_cost);
    size_t kept = 1;
    for (size_t i = 1; i < out->count; i++)
        if (!edits_is_same(&out->items[i], &out->items[kept - 1]))
            out->items[kept++] = out->items[i];
    out->count = kept;
#ifdef SWSIM_CHECKS
    assert(edits_check(out));
#endif
    return STATUS_OK;
}

/* Nothing is far from what is to be faster. */
enum status edits_list_faster(const struct plan *plan, const struct edits_end *end,
                              struct arena *arena, struct edit_list *out, struct diag *diag)
{
    const struct suspects none = {0};
    struct proposer proposer = {
        .plan = plan, .suspects = &none, .end = end, .arena = arena, .out = out};
    *out = (struct edit_list){0};
    proposer.near = ARENA_ARRAY(arena, plan->thread_count, int *);
    for (size_t t = 0; proposer.near && t < plan->thread_count; t++)
        proposer.near[t] = ARENA_ARRAY(arena, plan->threads[t].op_count, int);
    if (!arena->failed)
        propose_faster(&proposer);
    return arena->failed ? diag_no_memory(diag) : STATUS_OK;
}

/* ---- one edit -------------------------------------------------------------------------------- */

static bool is_between(enum edit_kind kind, enum edit_kind first, enum edit_kind last)
{
    return kind >= first && kind <= last;
}

enum status edit_apply(struct plan *plan, const struct edit *edit, struct diag *diag)
{
    bool done = is_between(edit->kind, EDIT_RETIRE, EDIT_SORT_HOLDS) ? apply_pipeline(plan, edit)
                : is_between(edit->kind, EDIT_MOVE, EDIT_REMOVE_OP)  ? apply_host(plan, edit)
                : is_between(edit->kind, EDIT_ACTION_ADD, EDIT_RANK_ALIKE)
                    ? apply_list(plan, edit)
                    : apply_common(plan, edit);
    return done && !plan->arena.failed ? STATUS_OK : diag_no_memory(diag);
}

const char *edit_describe(const struct plan *plan, const struct edit *edit, struct arena *arena)
{
    if (is_between(edit->kind, EDIT_RETIRE, EDIT_SORT_HOLDS))
        return describe_pipeline(plan, edit, arena);
    if (is_between(edit->kind, EDIT_MOVE, EDIT_REMOVE_OP))
        return describe_host(plan, edit, arena);
    if (is_between(edit->kind, EDIT_ACTION_ADD, EDIT_RANK_ALIKE))
        return describe_list(plan, edit, arena);
    return describe_common(plan, edit, arena);
}

static void number_op(struct host_op *op, uint32_t line, size_t at)
{
    op->mark = (struct mark){line, (uint32_t)at + 1};
    for (size_t k = 0; k < host_op_body_count(op); k++)
        op->body[k].mark = op->mark;
}

/* Every operation has the place that it has where the thread is folded. */
static void number_thread(struct host_thread *thread, uint32_t line)
{
    size_t i = 0, at = 0;
    for (size_t r = 0; r < thread->repeat_count; r++) {
        const struct repeat *repeat = &thread->repeats[r];
        const size_t times = thread->folded ? 1 : (size_t)repeat->times;
        while (i < repeat->first)
            number_op(&thread->ops[i++], line, at++);
        for (size_t k = 0; k < repeat->length * times; k++)
            number_op(&thread->ops[i++], line, at + k % repeat->length);
        at += repeat->length;
    }
    while (i < thread->op_count)
        number_op(&thread->ops[i++], line, at++);
}

/* The first iteration of every repeat stays. */
static void edits_fold_thread(struct host_thread *thread)
{
    size_t kept = 0, skipped = 0, from = 0;
    for (size_t r = 0; r < thread->repeat_count; r++) {
        struct repeat *repeat = &thread->repeats[r];
        const size_t end = repeat->first + repeat->length;
        memmove(&thread->ops[kept], &thread->ops[from], (end - from) * sizeof *thread->ops);
        kept += end - from;
        from = repeat->first + repeat->length * (size_t)repeat->times;
        repeat->first -= skipped;
        skipped += from - end;
        assert(kept == repeat->first + repeat->length);
    }
    memmove(&thread->ops[kept], &thread->ops[from],
            (thread->op_count - from) * sizeof *thread->ops);
    thread->op_count -= skipped;
    thread->folded = true;
}

void edits_fold(struct plan *plan)
{
    for (size_t t = 0; t < plan->thread_count; t++)
        edits_fold_thread(&plan->threads[t]);
}

bool edit_is_of_machine(const struct edit *edit)
{
    return is_between(edit->kind, EDIT_SM_SLOTS, EDIT_EAGER) || edit->kind == EDIT_P2P_EAGER;
}

void edits_number(struct plan *plan)
{
    for (size_t t = 0; t < plan->thread_count; t++)
        number_thread(&plan->threads[t], (uint32_t)t + 1);
    for (int rank = 0; plan->programs.ranks && rank < plan->ranks; rank++)
        for (size_t i = 0; i < plan->programs.ranks[rank].count; i++) {
            struct action *action = &plan->programs.ranks[rank].actions[i];
            action->mark = (struct mark){(uint32_t)rank + 1, (uint32_t)i + 1};
            for (int k = 0; action->parts && k < ACTION_PARTS; k++)
                action->parts[k].mark = action->mark;
        }
}

/* ---- helpers --------------------------------------------------------------------------------- */

const char *fresh_name(struct plan *plan, const struct names *names, const char *stem)
{
    if (names_find(names, stem) < 0)
        return stem;
    const char *name = stem;
    for (int number = 2; name && names_find(names, name) >= 0; number++)
        name = arena_printf(&plan->arena, "%s_%d", stem, number);
    return name;
}

void shift_item(void *array, size_t size, size_t from, size_t to, void *scratch)
{
    char *items = array;
    memcpy(scratch, items + from * size, size);
    if (from < to)
        memmove(items + from * size, items + (from + 1) * size, (to - from) * size);
    else
        memmove(items + (to + 1) * size, items + to * size, (from - to) * size);
    memcpy(items + to * size, scratch, size);
}
