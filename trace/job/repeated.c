/* SPDX-License-Identifier: Apache-2.0 */
/* repeated.c - see repeated.h. */
#include "repeated.h"

#include <assert.h>
#include <string.h>

#include "base/array.h"

bool step_memory_init(struct step_memories *memories, struct arena *arena, const struct plan *plan,
                      int first_rank, int ranks, size_t steps)
{
    const size_t count = (size_t)ranks * plan->buffer_count, numbers = (size_t)ranks * steps;
    *memories = (struct step_memories){.arena = arena,
                                       .first_rank = first_rank,
                                       .rank_count = (size_t)ranks,
                                       .buffer_count = plan->buffer_count,
                                       .steps = steps,
                                       .items = ARENA_ARRAY(arena, count + 1, struct step_memory),
                                       .next = ARENA_ARRAY(arena, numbers + 1, int)};
    if (!memories->items || !memories->next)
        return false;
    memset(memories->next, 0, numbers * sizeof *memories->next);
    for (size_t i = 0; i < count; i++) {
        const bool input = plan->buffers[i % plan->buffer_count].input;
        memories->items[i] =
            (struct step_memory){input ? STEP_SHARED : STEP_NONE, .changes = !input, .number = -1};
    }
    return true;
}

static struct step_memory *step_memory_of(const struct step_memories *memories, int rank,
                                          const struct index_list *accesses, size_t i)
{
    const int owner = accesses->ranks && accesses->ranks[i] > 0 ? accesses->ranks[i] - 1 : rank;
    const size_t at = (size_t)(owner - memories->first_rank);
    assert(at < memories->rank_count && (size_t)accesses->items[i] < memories->buffer_count);
    return &memories->items[at * memories->buffer_count + (size_t)accesses->items[i]];
}

/* ---- whose it is ----------------------------------------------------------------------------------- */

/* A list of what an operation of `rank` accesses. */
typedef void step_visit(struct step_memories *memories, int rank, size_t step,
                        const struct index_list *accesses, bool writes);

static void visit_accesses(struct step_memories *memories, int home, size_t step,
                           const struct host_op *op, step_visit *visit)
{
    const int rank = host_op_rank(op, home);
    visit(memories, rank, step, host_op_reads(op), false);
    visit(memories, rank, step, host_op_writes(op), true);
    for (size_t i = 0; i < host_op_part_count(op); i++) {
        const int own = p2p_part_rank(op, &op->parts[i], home);
        visit(memories, own, step, &op->parts[i].reads, false);
        visit(memories, own, step, &op->parts[i].writes, true);
    }
    for (size_t i = 0; i < host_op_body_count(op); i++)
        visit_accesses(memories, home, STEP_NONE, &op->body[i], visit);
}

static void use_list(struct step_memories *memories, int rank, size_t step,
                     const struct index_list *accesses, bool writes)
{
    for (size_t i = 0; i < accesses->count; i++) {
        struct step_memory *memory = step_memory_of(memories, rank, accesses, i);
        const bool own = step != STEP_NONE && (memory->step == STEP_NONE || memory->step == step);
        memory->step = own ? step : STEP_SHARED;
        memory->changes |= writes;
    }
}

static void number_list(struct step_memories *memories, int rank, size_t step,
                        const struct index_list *accesses, bool writes)
{
    (void)writes;
    for (size_t i = 0; step != STEP_NONE && i < accesses->count; i++) {
        struct step_memory *memory = step_memory_of(memories, rank, accesses, i);
        const size_t at = (size_t)(rank - memories->first_rank);
        if (memory->step == step && memory->number < 0)
            memory->number = memories->next[at * memories->steps + step]++;
    }
}

void step_memory_use(struct step_memories *memories, int home, const struct host_op *op,
                     size_t step)
{
    visit_accesses(memories, home, step, op, use_list);
    for (size_t r = 0; op_operand(op->kind) == OPERAND_BUFFER && r < memories->rank_count; r++) {
        struct step_memory *memory =
            &memories->items[r * memories->buffer_count + (size_t)op->object];
        memory->changes = true;
        memory->step = STEP_SHARED;
    }
}

void step_memory_number(struct step_memories *memories, int home, const struct host_op *op,
                        size_t step)
{
    visit_accesses(memories, home, step, op, number_list);
}

bool step_memory_same(const struct step_memories *memories, int rank, const struct index_list *a,
                      size_t a_step, const struct index_list *b, size_t b_step)
{
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++) {
        const struct step_memory *own = step_memory_of(memories, rank, a, i);
        const struct step_memory *other = step_memory_of(memories, rank, b, i);
        same = (a->ranks ? a->ranks[i] : 0) == (b->ranks ? b->ranks[i] : 0) &&
               (a->items[i] == b->items[i] || (!own->changes && !other->changes) ||
                (own->step == a_step && other->step == b_step && own->number == other->number));
    }
    return same;
}

/* ---- words for all iterations ---------------------------------------------------------------------- */

/* -1: no memory. */
static int name_memory(const struct step_names *names, const struct step_memory *memory)
{
    struct plan *plan = names->plan;
    const char *name = names->turns == 1 ? arena_printf(&plan->arena, "step.%d", memory->number)
                                         : arena_printf(&plan->arena, "step%zu.%d",
                                                        memory->step - names->from, memory->number);
    const int buffer = name ? names->buffer(names->owner, name) : -1;
    if (buffer >= 0) {
        plan->buffers[buffer].scope = SCOPE_ITERATION;
        plan->buffers[buffer].declared = true;
    }
    return buffer;
}

static bool rename_list(struct step_memories *memories, const struct step_names *names, int rank,
                        struct index_list *list)
{
    const struct index_list old = *list;
    list->items = ARENA_ARRAY(&names->plan->arena, old.count + 1, int);
    for (size_t i = 0; list->items && i < old.count; i++) {
        const struct step_memory *memory = step_memory_of(memories, rank, &old, i);
        list->items[i] = memory->step < STEP_SHARED ? name_memory(names, memory) : old.items[i];
        if (list->items[i] < 0)
            return false;
    }
    return list->items != NULL;
}

bool step_memory_rename(struct step_memories *memories, const struct step_names *names, int home,
                        struct host_op *op)
{
    struct arena *arena = &names->plan->arena;
    const int rank = host_op_rank(op, home);
    if (op->accesses) {
        const struct host_accesses *old = op->accesses;
        op->accesses = ARENA_NEW(arena, struct host_accesses);
        if (!op->accesses)
            return false;
        *op->accesses = *old;
        if (!rename_list(memories, names, rank, &op->accesses->reads) ||
            !rename_list(memories, names, rank, &op->accesses->writes))
            return false;
    }
    const size_t parts = host_op_part_count(op);
    if (parts == 0)
        return true;
    const struct p2p_part *old = op->parts;
    op->parts = ARENA_ARRAY(arena, parts, struct p2p_part);
    for (size_t i = 0; op->parts && i < parts; i++) {
        const int own = p2p_part_rank(op, &old[i], home);
        op->parts[i] = old[i];
        if (!rename_list(memories, names, own, &op->parts[i].reads) ||
            !rename_list(memories, names, own, &op->parts[i].writes))
            return false;
    }
    return op->parts != NULL;
}

int step_flag(struct plan *plan, const char *stem, size_t iteration)
{
    const char *name = plan_flag_per_iteration(plan, stem)
                           ? arena_printf(&plan->arena, "%s(%zu)", stem, iteration)
                           : NULL;
    return name ? names_intern(&plan->flags, &plan->arena, name) : -1;
}

/* ---- runs ------------------------------------------------------------------------------------------ */

struct step_run step_run_find(size_t steps, size_t most_turns, size_t least_times, step_same *same,
                              void *owner)
{
    struct step_run best = {0};
    size_t saved = 0;
    for (size_t turns = 1; turns <= most_turns; turns++)
        for (size_t k = 0, from = 0; k + turns <= steps; k++) {
            if (k + turns < steps && same(owner, k, k + turns))
                continue;
            const size_t times = (k - from + turns) / turns;
            if (times >= least_times && (times - 1) * turns > saved) {
                saved = (times - 1) * turns;
                best = (struct step_run){from, turns, times, k};
            }
            from = k + 1;
        }
    return best;
}
