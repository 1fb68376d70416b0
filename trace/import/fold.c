/* SPDX-License-Identifier: Apache-2.0 */
/* fold.c - see fold.h. A slot of a step is an operation that is no wait for an event, no record and no unnamed CPU time. */
#include <string.h>

#include "fold_internal.h"

static bool is_slot(const struct host_op *op)
{
    return op->kind != OP_WAIT && op->kind != OP_RECORD && (op->kind != OP_HOST || op->name);
}
/* ---- the slots of a step --------------------------------------------------------------------- */

/* The step of each operation: -1 in front of the first one. */
static int step_at(const struct folder *folder, int thread, size_t op, int step)
{
    while (step < folder->steps && op >= folder->threads[thread].marks[step + 1])
        step++;
    return step;
}

static bool list_slots(struct folder *folder, int thread)
{
    const struct host_thread *t = folder->threads[thread].thread;
    int *first = ARENA_ARRAY(&folder->arena, (size_t)folder->steps + 1, int);
    size_t *slots = ARENA_ARRAY(&folder->arena, t->op_count + 1, size_t);
    if (!first || !slots)
        return false;
    int count = 0, outside = 0, last = -1;
    for (size_t i = 0; i < t->op_count; i++) {
        const struct host_op *op = &t->ops[i];
        const int step = i < folder->threads[thread].marks[0]
                             ? -1
                             : step_at(folder, thread, i, last < 0 ? 0 : last);
        for (; last < step; last++)
            if (last + 1 <= folder->steps)
                first[last + 1] = count;
        const bool inside = step >= 0 && step < folder->steps;
        if (is_slot(op) && inside)
            slots[count++] = i;
        outside += is_slot(op) && !inside;
        const struct place place = {thread, step, inside ? count - first[step] - 1 : outside};
        if (op->kind == OP_SIGNAL)
            *fold_flag_place(folder, op->object) = place;
        if (op->kind == OP_RECORD)
            *fold_event_place(folder, op->object) = place;
    }
    for (; last < folder->steps; last++)
        first[last + 1] = count;
    folder->first[thread] = first;
    folder->slots[thread] = slots;
    return true;
}

static bool prepare(struct folder *folder)
{
    const struct plan *plan = folder->plan;
    const size_t threads = (size_t)folder->thread_count;
    folder->slots = ARENA_ARRAY(&folder->arena, threads, size_t *);
    folder->first = ARENA_ARRAY(&folder->arena, threads, int *);
    folder->event = ARENA_ARRAY(&folder->arena, threads, int *);
    folder->set =
        ARENA_ARRAY(&folder->arena, plan->flags.count + plan->events.count + 1, struct place);
    folder->renamed = ARENA_ARRAY(&folder->arena, plan->events.count + 1, int);
    if (!folder->slots || !folder->first || !folder->event || !folder->set || !folder->renamed)
        return false;
    for (int i = 0; i < (int)plan->events.count; i++)
        folder->renamed[i] = i;
    for (size_t i = 0; i < plan->flags.count + plan->events.count; i++)
        folder->set[i] = (struct place){-1, -2, -1};
    for (int t = 0; t < folder->thread_count; t++)
        if (!list_slots(folder, t))
            return false;
    return true;
}
/* ---- which steps do the same ------------------------------------------------------------------ */

static bool same_word(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_parts(const struct host_op *a, const struct host_op *b)
{
    if (a->part_count != b->part_count)
        return false;
    for (size_t i = 0; i < a->part_count; i++)
        if (a->parts[i].send != b->parts[i].send || a->parts[i].peer != b->parts[i].peer)
            return false;
    return true;
}

/* Places that are the same, each seen from its own step. */
static bool same_place(const struct place *a, int a_step, const struct place *b, int b_step)
{
    return a->thread == b->thread && a->slot == b->slot && a->step - a_step == b->step - b_step;
}

/* The event that it awaits or synchronises with is set at the same place. */
static bool same_cause(const struct folder *folder, const struct host_op *a, int a_step,
                       const struct host_op *b, int b_step)
{
    if (a->kind == OP_AWAIT)
        return fold_flag_place(folder, a->object)->step == a_step &&
               same_place(fold_flag_place(folder, a->object), a_step,
                          fold_flag_place(folder, b->object), b_step);
    if (a->kind == OP_SYNC && a->sync == SYNC_EVENT)
        return same_place(fold_event_place(folder, a->object), a_step,
                          fold_event_place(folder, b->object), b_step);
    return true;
}

static bool same_slot(const struct folder *folder, int thread, int a_step, int b_step, int slot)
{
    const struct host_op *a = fold_slot_op(folder, thread, a_step, slot);
    const struct host_op *b = fold_slot_op(folder, thread, b_step, slot);
    return a->kind == b->kind && a->stream == b->stream && a->comm == b->comm &&
           a->sync == b->sync && a->direction == b->direction && a->collective == b->collective &&
           same_word(a->name, b->name) && same_parts(a, b) &&
           same_cause(folder, a, a_step, b, b_step);
}

static bool same_waits(const struct folder *folder, int thread, int a_step, int b_step, int slot)
{
    const struct host_op *ops = fold_ops(folder, thread);
    const size_t a_end = fold_slot_end(folder, thread, a_step, slot);
    const size_t b_end = fold_slot_end(folder, thread, b_step, slot);
    size_t a =
        fold_next_wait(folder, thread, fold_waits_begin(folder, thread, a_step, slot), a_end);
    size_t b =
        fold_next_wait(folder, thread, fold_waits_begin(folder, thread, b_step, slot), b_end);
    while (a < a_end && b < b_end) {
        if (!same_place(fold_event_place(folder, ops[a].object), a_step,
                        fold_event_place(folder, ops[b].object), b_step) ||
            ops[a].stream != ops[b].stream)
            return false;
        a = fold_next_wait(folder, thread, a + 1, a_end);
        b = fold_next_wait(folder, thread, b + 1, b_end);
    }
    return a == a_end && b == b_end;
}

static bool same_steps(const struct folder *folder, int a, int b)
{
    for (int t = 0; t < folder->thread_count; t++) {
        const int count = fold_slot_count(folder, t, a);
        if (count != fold_slot_count(folder, t, b))
            return false;
        for (int i = 0; i <= count; i++)
            if ((i < count && !same_slot(folder, t, a, b, i)) ||
                (!folder->typical && !same_waits(folder, t, a, b, i)))
                return false;
    }
    return true;
}

/* The longest run of steps that do the same; the first of equal ones. */
static void find_run(struct folder *folder)
{
    folder->from = folder->to = 0;
    for (int from = 0, step = 1; step <= folder->steps; step++) {
        if (step < folder->steps && same_steps(folder, step - 1, step))
            continue;
        if (step - 1 - from > folder->to - folder->from) {
            folder->from = from;
            folder->to = step - 1;
        }
        from = step;
    }
}
/* Verdicts are about the step that was written: no other wait of a step is checked. */
static bool mark_changed(struct plan *plan)
{
    static const char what[] = "waits of single steps";
    for (size_t i = 0; i < plan->unrecorded_count; i++)
        if (strcmp(plan->unrecorded[i].what, what) == 0)
            return true;
    return plan_add_unrecorded(plan, what, "--repeat=like took those of most steps");
}

bool fold_steps(struct plan *plan, struct fold_thread *threads, size_t count, size_t steps,
                bool typical)
{
    struct folder folder = {.plan = plan,
                            .threads = threads,
                            .thread_count = (int)count,
                            .steps = (int)steps,
                            .typical = typical};
    bool fits = steps > 1 && count > 0;
    arena_init(&folder.arena, 0);
    bool ok = !fits || prepare(&folder);
    if (ok && fits)
        find_run(&folder);
    fits &= folder.to > folder.from && 2 * (folder.to - folder.from + 1) > folder.steps;
    ok = ok && (!fits || fold_find_waits(&folder, &fits));
    ok = ok && (!fits || fold_find_events(&folder, &fits));
    for (int t = 0; ok && fits && t < folder.thread_count; t++)
        ok = fold_write_thread(&folder, t);
    if (ok && fits && folder.changed)
        ok = mark_changed(plan);
    arena_fini(&folder.arena);
    return ok;
}
