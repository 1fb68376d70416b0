/* SPDX-License-Identifier: Apache-2.0 */
/* fold.c - see fold.h. A slot of a step is an operation that is no wait for an event, no record and no unnamed CPU
   time. */
#include "fold.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/assert_index.h"
#include "base/sort.h"
#include "trace/job/repeated.h"

/* A place in a step: a thread and a slot in it. */
struct fold_place {
    int thread, step, slot;
};

/* A stream waits for an event in front of a slot. */
struct fold_edge {
    int thread, slot; /* that waits */
    int on_thread, on_slot, distance;
    int stream;
    int step;  /* of the step that shows it */
    int event; /* as it was */
};

struct folder {
    struct job *job;
    struct plan *plan; /* of the job */
    struct fold_thread *threads;
    int thread_count, steps;
    bool typical;
    struct arena arena;
    size_t **slots;         /* per thread: the operations of all slots, step by step */
    int **first;            /* per thread and step, and one more: of `slots` */
    struct fold_place *set; /* per flag, then per event: where it is set */
    struct fold_edge *edges;
    size_t edge_count, edge_cap;
    struct step_memories memories;
    int from, to; /* the run of steps */
    int **event;  /* per thread and slot: that is recorded behind it; -1 */
    int *renamed; /* per event */
    bool changed; /* some step waits otherwise in the plan than in the trace */
    bool no_memory;
};

static inline struct fold_place *fold_flag_place(const struct folder *folder, int flag)
{
    return &folder->set[flag];
}

static inline struct fold_place *fold_event_place(const struct folder *folder, int event)
{
    return &folder->set[folder->plan->flags.count + (size_t)event];
}

static inline const struct host_op *fold_ops(const struct folder *folder, int thread)
{
    ASSERT_INDEX(thread, folder->thread_count);
    return folder->threads[thread].thread->ops;
}

static inline int fold_slot_count(const struct folder *folder, int thread, int step)
{
    return folder->first[thread][step + 1] - folder->first[thread][step];
}

static inline const struct host_op *fold_slot_op(const struct folder *folder, int thread, int step,
                                                 int slot)
{
    return &fold_ops(folder, thread)[folder->slots[thread][folder->first[thread][step] + slot]];
}

/* The first of the waits in front of a slot; fold_slot_end is the operation behind the last of them. */
static inline size_t fold_waits_begin(const struct folder *folder, int thread, int step, int slot)
{
    const int at = folder->first[thread][step] + slot;
    return slot > 0 ? folder->slots[thread][at - 1] + 1 : folder->threads[thread].marks[step];
}

static inline size_t fold_slot_end(const struct folder *folder, int thread, int step, int slot)
{
    return slot < fold_slot_count(folder, thread, step)
               ? folder->slots[thread][folder->first[thread][step] + slot]
               : folder->threads[thread].marks[step + 1];
}

/* The next wait from `at` on, or `end`. */
static inline size_t fold_next_wait(const struct folder *folder, int thread, size_t at, size_t end)
{
    while (at < end && fold_ops(folder, thread)[at].kind != OP_WAIT)
        at++;
    return at;
}

static bool fold_find_events(struct folder *folder, bool *fits);
static bool fold_find_waits(struct folder *folder, bool *fits);
static bool fold_write_thread(struct folder *folder, int t);

static bool is_slot(const struct host_op *op)
{
    return op->kind != OP_WAIT && op->kind != OP_RECORD && (op->kind != OP_HOST || op->name);
}
/* ---- the slots of a step --------------------------------------------------------------------- */

/* The step of each operation: -1 in front of the first one. */
static int fold_step_at(const struct folder *folder, int thread, size_t op, int step)
{
    assert(step >= 0 && step <= folder->steps);
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
                             : fold_step_at(folder, thread, i, last < 0 ? 0 : last);
        assert(step >= last); /* operations are in the order of time */
        for (; last < step; last++)
            if (last + 1 <= folder->steps)
                first[last + 1] = count;
        const bool inside = step >= 0 && step < folder->steps;
        if (is_slot(op) && inside)
            slots[count++] = i;
        outside += is_slot(op) && !inside;
        const struct fold_place place = {thread, step, inside ? count - first[step] - 1 : outside};
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

typedef void fold_visit_op(struct step_memories *memories, int home, const struct host_op *op,
                           size_t step);

static void fold_visit_ops(struct folder *folder, fold_visit_op *visit)
{
    for (int t = 0; t < folder->thread_count; t++) {
        const struct host_thread *thread = folder->threads[t].thread;
        const size_t *marks = folder->threads[t].marks;
        size_t step = 0; /* behind the operation */
        for (size_t i = 0; i < thread->op_count; i++) {
            while (step <= (size_t)folder->steps && i >= marks[step])
                step++;
            visit(&folder->memories, thread->rank, &thread->ops[i],
                  step == 0 || step > (size_t)folder->steps ? STEP_NONE : step - 1);
        }
    }
}

static bool fold_prepare(struct folder *folder)
{
    const struct plan *plan = folder->plan;
    const size_t threads = (size_t)folder->thread_count;
    folder->slots = ARENA_ARRAY(&folder->arena, threads, size_t *);
    folder->first = ARENA_ARRAY(&folder->arena, threads, int *);
    folder->event = ARENA_ARRAY(&folder->arena, threads, int *);
    folder->set =
        ARENA_ARRAY(&folder->arena, plan->flags.count + plan->events.count + 1, struct fold_place);
    folder->renamed = ARENA_ARRAY(&folder->arena, plan->events.count + 1, int);
    if (!folder->slots || !folder->first || !folder->event || !folder->set || !folder->renamed ||
        !step_memory_init(&folder->memories, &folder->arena, plan, folder->threads[0].thread->rank,
                          1, (size_t)folder->steps))
        return false;
    for (int i = 0; i < (int)plan->events.count; i++)
        folder->renamed[i] = i;
    for (size_t i = 0; i < plan->flags.count + plan->events.count; i++)
        folder->set[i] = (struct fold_place){-1, -2, -1};
    for (int t = 0; t < folder->thread_count; t++)
        if (!list_slots(folder, t))
            return false;
    fold_visit_ops(folder, step_memory_use);
    fold_visit_ops(folder, step_memory_number);
    return true;
}
/* ---- which steps do the same ------------------------------------------------------------------ */

static bool fold_same_memory(const struct folder *folder, const struct index_list *a, int a_step,
                             const struct index_list *b, int b_step)
{
    return step_memory_same(&folder->memories, folder->memories.first_rank, a, (size_t)a_step, b,
                            (size_t)b_step);
}

static bool same_parts(const struct folder *folder, const struct host_op *a, int a_step,
                       const struct host_op *b, int b_step)
{
    if (host_op_part_count(a) != host_op_part_count(b))
        return false;
    for (size_t i = 0; i < host_op_part_count(a); i++) {
        const struct p2p_part *own = &a->parts[i], *other = &b->parts[i];
        if (own->send != other->send || own->peer != other->peer ||
            !fold_same_memory(folder, &own->reads, a_step, &other->reads, b_step) ||
            !fold_same_memory(folder, &own->writes, a_step, &other->writes, b_step))
            return false;
    }
    return true;
}

/* Places that are the same, each seen from its own step. */
static bool fold_same_place(const struct fold_place *a, int a_step, const struct fold_place *b,
                            int b_step)
{
    return a->thread == b->thread && a->slot == b->slot && a->step - a_step == b->step - b_step;
}

/* The event that it awaits or synchronises with is set at the same place. */
static bool same_cause(const struct folder *folder, const struct host_op *a, int a_step,
                       const struct host_op *b, int b_step)
{
    if (a->kind == OP_AWAIT)
        return fold_flag_place(folder, a->object)->step == a_step &&
               fold_same_place(fold_flag_place(folder, a->object), a_step,
                               fold_flag_place(folder, b->object), b_step);
    if (host_op_syncs(a, SYNC_EVENT))
        return fold_same_place(fold_event_place(folder, a->object), a_step,
                               fold_event_place(folder, b->object), b_step);
    return true;
}

static bool same_slot(const struct folder *folder, int thread, int a_step, int b_step, int slot)
{
    const struct host_op *a = fold_slot_op(folder, thread, a_step, slot);
    const struct host_op *b = fold_slot_op(folder, thread, b_step, slot);
    return a->kind == b->kind && a->stream == b->stream && a->comm == b->comm &&
           (a->kind != OP_SYNC || a->sync == b->sync) &&
           (a->kind != OP_COPY || a->direction == b->direction) &&
           (a->kind != OP_COLLECTIVE || a->collective == b->collective) &&
           equal_text(a->name, b->name) && same_parts(folder, a, a_step, b, b_step) &&
           fold_same_memory(folder, host_op_reads(a), a_step, host_op_reads(b), b_step) &&
           fold_same_memory(folder, host_op_writes(a), a_step, host_op_writes(b), b_step) &&
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
        if (!fold_same_place(fold_event_place(folder, ops[a].object), a_step,
                             fold_event_place(folder, ops[b].object), b_step) ||
            ops[a].stream != ops[b].stream)
            return false;
        a = fold_next_wait(folder, thread, a + 1, a_end);
        b = fold_next_wait(folder, thread, b + 1, b_end);
    }
    return a == a_end && b == b_end;
}

static bool same_steps(void *owner, size_t step, size_t other)
{
    const struct folder *folder = owner;
    const int a = (int)step, b = (int)other;
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

/* Verdicts are about the step that was written: no other wait of a step is checked. */
static bool mark_changed(struct plan *plan)
{
    static const char what[] = "waits of single steps";
    for (size_t i = 0; i < plan->unrecorded_count; i++)
        if (strcmp(plan->unrecorded[i].what, what) == 0)
            return true;
    return plan_add_unrecorded(plan, what, "--repeat=like took those of most steps");
}

bool fold_steps(struct job *job, struct fold_thread *threads, size_t count, size_t steps,
                bool typical)
{
    struct plan *plan = &job->plan;
    struct folder folder = {.job = job,
                            .plan = plan,
                            .threads = threads,
                            .thread_count = (int)count,
                            .steps = (int)steps,
                            .typical = typical};
    bool fits = steps > 1 && count > 0;
    arena_init(&folder.arena, 0);
    bool ok = !fits || fold_prepare(&folder);
    if (ok && fits) {
        const struct step_run run = step_run_find(steps, 1, 2, same_steps, &folder);
        fits = 2 * run.times > steps;
        folder.from = (int)run.from;
        folder.to = (int)(run.from + run.times) - 1;
    }
    ok = ok && (!fits || fold_find_waits(&folder, &fits));
    ok = ok && (!fits || fold_find_events(&folder, &fits));
    for (int t = 0; ok && fits && t < folder.thread_count; t++)
        ok = fold_write_thread(&folder, t);
    if (ok && fits && folder.changed)
        ok = mark_changed(plan);
    arena_fini(&folder.arena);
    return ok;
}

/* The waits of streams that a repeated step has, and the events that it records for them. */

/* ---- waits of the step ------------------------------------------------------------------------- */

static void fold_list_edges(struct folder *folder, int thread, int step)
{
    for (int slot = 0; slot <= fold_slot_count(folder, thread, step); slot++) {
        const size_t end = fold_slot_end(folder, thread, step, slot);
        size_t at =
            fold_next_wait(folder, thread, fold_waits_begin(folder, thread, step, slot), end);
        for (; at < end; at = fold_next_wait(folder, thread, at + 1, end)) {
            const struct host_op *op = &fold_ops(folder, thread)[at];
            const struct fold_place *place = fold_event_place(folder, op->object);
            const struct fold_edge edge = {
                thread,     slot, place->thread, place->slot, step - place->step,
                op->stream, step, op->object};
            if (!ARENA_GROW(&folder->arena, folder->edges, folder->edge_count, folder->edge_cap))
                folder->no_memory = true;
            else
                folder->edges[folder->edge_count++] = edge;
        }
    }
}

static int fold_compare_edges(const void *left, const void *right)
{
    const struct fold_edge *a = left, *b = right;
    const int keys[][2] = {
        {a->thread, b->thread},   {a->slot, b->slot},         {a->on_thread, b->on_thread},
        {a->on_slot, b->on_slot}, {a->distance, b->distance}, {a->stream, b->stream},
        {a->step, b->step}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

static bool same_edge(const struct fold_edge *a, const struct fold_edge *b)
{
    return a->thread == b->thread && a->slot == b->slot && a->on_thread == b->on_thread &&
           a->on_slot == b->on_slot && a->distance == b->distance && a->stream == b->stream;
}

/* True if the body has a flag that `by` signals from this slot on and `to` awaits, in front of `before`. */
static bool hands_over(const struct folder *folder, int by, int from_slot, int to, int before)
{
    for (int i = 0; i < before; i++) {
        const struct host_op *op = fold_slot_op(folder, to, folder->from, i);
        if (op->kind == OP_AWAIT && fold_flag_place(folder, op->object)->thread == by &&
            fold_flag_place(folder, op->object)->slot >= from_slot)
            return true;
    }
    return false;
}

/* True if the wait means the same record when there is one event for all iterations. */
static bool is_told_apart(const struct folder *folder, int thread, int slot,
                          const struct fold_place *on, int distance)
{
    if (distance < 0 || distance > 1 || on->slot < 0)
        return false;
    if (on->thread == thread)
        return distance == 0 ? on->slot < slot : on->slot >= slot;
    const int whole = fold_slot_count(folder, on->thread, folder->from);
    return distance == 0 && hands_over(folder, on->thread, on->slot, thread, slot) &&
           (hands_over(folder, thread, slot, on->thread, whole) ||
            hands_over(folder, thread, 0, on->thread, on->slot + 1));
}

static int source_stream(const struct folder *folder, const struct fold_edge *edge)
{
    return edge->on_slot < 0
               ? -1
               : fold_slot_op(folder, edge->on_thread, folder->from, edge->on_slot)->stream;
}

static bool is_clear(const struct folder *folder, const struct fold_edge *edge)
{
    const struct fold_place on = {edge->on_thread, 0, edge->on_slot};
    return is_told_apart(folder, edge->thread, edge->slot, &on, edge->distance);
}

/* True if the two waits are of one kind: of one stream for another. */
static bool same_streams(const struct folder *folder, const struct fold_edge *a,
                         const struct fold_edge *b)
{
    return a->thread == b->thread && a->stream == b->stream && a->on_thread == b->on_thread &&
           a->distance == b->distance && source_stream(folder, a) == source_stream(folder, b);
}

/* The wait that most of these edges are; of equals the first, which asks for the least. */
static struct fold_edge most_frequent(const struct fold_edge *edges, const size_t *list,
                                      size_t count)
{
    size_t best = 0, most = 0;
    for (size_t i = 0; i < count; i++) {
        size_t same = 0;
        for (size_t k = 0; k < count; k++)
            same += same_edge(&edges[list[i]], &edges[list[k]]);
        if (same > most) {
            most = same;
            best = i;
        }
    }
    return edges[list[best]];
}

/* True if all steps wait exactly like this, but the first ones, which have no step so far before them. */
static bool is_in_all(const struct folder *folder, const size_t *list, size_t count,
                      const struct fold_edge *kept)
{
    const int first = folder->from > kept->distance ? folder->from : kept->distance;
    bool same = (int)count == folder->to + 1 - first;
    for (size_t i = 0; i < count && same; i++)
        same = same_edge(&folder->edges[list[i]], kept);
    return same;
}

/* Lists the edges from `first` on that stand for one wait: of one kind, near each other, each of another step. */
static size_t list_alike(const struct folder *folder, size_t first, bool *taken, size_t *list)
{
    const struct fold_edge *edges = folder->edges;
    size_t count = 0;
    for (size_t i = first; i < folder->edge_count && edges[i].thread == edges[first].thread; i++) {
        if (taken[i] || !same_streams(folder, &edges[i], &edges[first]) ||
            !is_clear(folder, &edges[i]))
            continue;
        for (size_t k = 0; k < count; k++)
            if (edges[list[k]].step == edges[i].step)
                return count;
        list[count++] = i;
        taken[i] = true;
    }
    return count;
}

/* Leaves the waits that most steps have. */
static bool keep_frequent(struct folder *folder)
{
    const size_t all = folder->edge_count, steps = (size_t)(folder->to - folder->from + 1);
    bool *taken = ARENA_ARRAY(&folder->arena, all + 1, bool);
    size_t *list = ARENA_ARRAY(&folder->arena, steps + 1, size_t);
    struct fold_edge *kept = ARENA_ARRAY(&folder->arena, all + 1, struct fold_edge);
    if (!taken || !list || !kept)
        return false;
    size_t count = 0;
    for (size_t i = 0; i < all; i++) {
        if (taken[i])
            continue;
        const size_t alike =
            is_clear(folder, &folder->edges[i]) ? list_alike(folder, i, taken, list) : 0;
        if (alike * 2 > steps)
            kept[count++] = most_frequent(folder->edges, list, alike);
        folder->changed |= alike * 2 <= steps || !is_in_all(folder, list, alike, &kept[count - 1]);
    }
    folder->edges = kept;
    folder->edge_count = count;
    SORT(kept, count, fold_compare_edges);
    return true;
}

/* All steps have the same: leaves those of the first one. */
static bool keep_first(struct folder *folder, bool *fits)
{
    size_t kept = 0;
    for (size_t i = 0; i < folder->edge_count; i++) {
        *fits &= is_clear(folder, &folder->edges[i]);
        if (folder->edges[i].step == folder->from)
            folder->edges[kept++] = folder->edges[i];
    }
    folder->edge_count = kept;
    return true;
}

/* *fits: one event for all iterations means the same. */
static bool fold_find_waits(struct folder *folder, bool *fits)
{
    for (int t = 0; t < folder->thread_count; t++)
        for (int step = folder->from; step <= folder->to; step++)
            fold_list_edges(folder, t, step);
    if (folder->no_memory)
        return false;
    SORT(folder->edges, folder->edge_count, fold_compare_edges);
    return folder->typical ? keep_frequent(folder) : keep_first(folder, fits);
}
/* ---- events of the step -------------------------------------------------------------------------- */

static bool in_run(const struct folder *folder, int step)
{
    return step >= folder->from && step <= folder->to;
}

/* The event behind a slot of the step, maybe a new one. */
static void want_event(struct folder *folder, int thread, int slot, int event)
{
    if (folder->event[thread][slot] < 0)
        folder->event[thread][slot] = event;
}

static bool want_syncs(struct folder *folder)
{
    for (int t = 0; t < folder->thread_count; t++)
        for (int i = 0; i < fold_slot_count(folder, t, folder->from); i++) {
            const struct host_op *op = fold_slot_op(folder, t, folder->from, i);
            if (!host_op_syncs(op, SYNC_EVENT))
                continue;
            const struct fold_place *place = fold_event_place(folder, op->object);
            if (!is_told_apart(folder, t, i, place, folder->from - place->step))
                return false;
            want_event(folder, place->thread, place->slot, op->object);
        }
    return true;
}

/* Events of the last iteration are waited for behind the repeat; those of others must not be. */
static bool want_outer(struct folder *folder)
{
    for (int t = 0; t < folder->thread_count; t++) {
        const struct host_thread *thread = folder->threads[t].thread;
        const size_t end = folder->threads[t].marks[folder->to + 1];
        for (size_t i = end; i < thread->op_count; i++) {
            const struct host_op *op = &thread->ops[i];
            const bool waits = op->kind == OP_WAIT || host_op_syncs(op, SYNC_EVENT);
            const struct fold_place *place = waits ? fold_event_place(folder, op->object) : NULL;
            if (!waits || !in_run(folder, place->step))
                continue;
            if (place->step != folder->to || place->thread != t)
                return false;
            want_event(folder, place->thread, place->slot, op->object);
        }
    }
    return true;
}

/* Flags of the run are set and awaited in it. */
static bool flags_stay(const struct folder *folder)
{
    for (int t = 0; t < folder->thread_count; t++) {
        const struct host_thread *thread = folder->threads[t].thread;
        const size_t begin = folder->threads[t].marks[folder->from];
        const size_t end = folder->threads[t].marks[folder->to + 1];
        for (size_t i = 0; i < thread->op_count; i++)
            if (thread->ops[i].kind == OP_AWAIT &&
                in_run(folder, fold_flag_place(folder, thread->ops[i].object)->step) !=
                    (i >= begin && i < end))
                return false;
    }
    return true;
}

/* One event for all of one slot, also for the record of the step in front of the run that the first iteration waits
   for. */
static void rename_events(struct folder *folder)
{
    for (int e = 0; e < (int)folder->plan->events.count; e++) {
        const struct fold_place *place = fold_event_place(folder, e);
        if (place->thread >= 0 && in_run(folder, place->step) && place->slot >= 0 &&
            folder->event[place->thread][place->slot] >= 0)
            folder->renamed[e] = folder->event[place->thread][place->slot];
    }
    for (size_t i = 0; i < folder->edge_count; i++) {
        const struct fold_edge *edge = &folder->edges[i];
        if (edge->distance > 0 && edge->step == folder->from)
            folder->renamed[edge->event] = folder->event[edge->on_thread][edge->on_slot];
    }
}

static bool fold_find_events(struct folder *folder, bool *fits)
{
    for (int t = 0; t < folder->thread_count; t++) {
        const int count = fold_slot_count(folder, t, folder->from);
        folder->event[t] = ARENA_ARRAY(&folder->arena, (size_t)count + 1, int);
        for (int i = 0; folder->event[t] && i <= count; i++)
            folder->event[t][i] = -1;
        if (!folder->event[t])
            return false;
    }
    for (size_t i = 0; i < folder->edge_count; i++)
        want_event(folder, folder->edges[i].on_thread, folder->edges[i].on_slot,
                   folder->edges[i].event);
    *fits = want_syncs(folder) && want_outer(folder) && flags_stay(folder);
    if (*fits)
        rename_events(folder);
    return true;
}

/* The repeated step, written once for each iteration with its own times. */

/* ---- the step, iteration by iteration --------------------------------------------------------------- */

struct fold_writer {
    struct folder *folder;
    int thread;
    struct host_op *ops; /* of the first iteration */
    size_t count, cap;
    size_t next_edge; /* they are in the order of threads and slots */
};

static struct host_op *fold_add_op(struct fold_writer *writer, const struct host_op *like)
{
    struct folder *folder = writer->folder;
    if (!ARENA_GROW(&folder->arena, writer->ops, writer->count, writer->cap)) {
        folder->no_memory = true;
        return NULL;
    }
    writer->ops[writer->count] = *like;
    return &writer->ops[writer->count++];
}

/* Unnamed CPU time in front of a slot, or behind the last one. */
static int64_t gap_ns(const struct folder *folder, int thread, int step, int slot)
{
    const struct host_op *ops = fold_ops(folder, thread);
    int64_t sum = 0;
    for (size_t i = fold_waits_begin(folder, thread, step, slot);
         i < fold_slot_end(folder, thread, step, slot); i++)
        sum += ops[i].kind == OP_HOST ? ops[i].time_ns : 0;
    return sum;
}

typedef int64_t measured(const struct folder *folder, int thread, int step, int slot);

static int64_t device_ns(const struct folder *folder, int thread, int step, int slot)
{
    return fold_slot_op(folder, thread, step, slot)->time_ns;
}

static int64_t host_ns(const struct folder *folder, int thread, int step, int slot)
{
    return fold_slot_op(folder, thread, step, slot)->host_time_ns;
}

/* The times of a slot in all steps, of the operation or of its call; a list only where they differ. */
static void fold_set_times(struct fold_writer *writer, int slot, measured *time, struct host_op *op,
                           bool of_call)
{
    struct folder *folder = writer->folder;
    const size_t count = (size_t)(folder->to - folder->from + 1);
    struct arena *arena = &folder->plan->arena;
    const int64_t first = time(folder, writer->thread, folder->from, slot);
    bool varies = false;
    for (size_t i = 0; !varies && i < count; i++)
        varies = time(folder, writer->thread, folder->from + (int)i, slot) != first;
    *(of_call ? &op->host_time_ns : &op->time_ns) = first;
    if (!varies)
        return;
    int64_t *items = ARENA_ARRAY(arena, count, int64_t);
    folder->no_memory |= !items;
    for (size_t i = 0; items && i < count; i++)
        items[i] = time(folder, writer->thread, folder->from + (int)i, slot);
    if (!items)
        return;
    struct time_list *list = ARENA_ARRAY(arena, 1, struct time_list);
    struct host_details *details = host_op_make_details(op, arena);
    folder->no_memory |= !list || !details;
    if (!list || !details)
        return;
    *list = (struct time_list){items, count};
    *(of_call ? &details->host_times : &details->times) = list;
}

static void fold_add_gap(struct fold_writer *writer, int slot)
{
    const struct host_op like = host_op_make(OP_HOST);
    struct host_op *op = fold_add_op(writer, &like);
    if (!op)
        return;
    fold_set_times(writer, slot, gap_ns, op, false);
    if (op->time_ns == 0 && !op->details)
        writer->count--;
}

static void add_event_op(struct fold_writer *writer, enum op_kind kind, int event, int stream)
{
    struct host_op like = host_op_make(kind);
    like.stream = stream;
    like.object = event;
    fold_add_op(writer, &like);
}

static void fold_add_waits(struct fold_writer *writer, int slot)
{
    const struct folder *folder = writer->folder;
    for (; writer->next_edge < folder->edge_count; writer->next_edge++) {
        const struct fold_edge *edge = &folder->edges[writer->next_edge];
        if (edge->thread > writer->thread || (edge->thread == writer->thread && edge->slot > slot))
            return;
        if (edge->thread == writer->thread && edge->slot == slot)
            add_event_op(writer, OP_WAIT, folder->event[edge->on_thread][edge->on_slot],
                         edge->stream);
    }
}

static int64_t most_bytes(const struct folder *folder, int thread, int slot)
{
    int64_t most = 0;
    for (int step = folder->from; step <= folder->to; step++) {
        const int64_t bytes = fold_slot_op(folder, thread, step, slot)->bytes;
        most = bytes > most ? bytes : most;
    }
    return most;
}

static int fold_name_buffer(void *job, const char *name)
{
    return job_buffer(job, name);
}

static void add_slot(struct fold_writer *writer, int slot)
{
    struct folder *folder = writer->folder;
    struct host_op *op =
        fold_add_op(writer, fold_slot_op(folder, writer->thread, folder->from, slot));
    if (!op)
        return;
    if (op->kind == OP_COPY || op->kind == OP_COLLECTIVE)
        op->bytes = most_bytes(folder, writer->thread, slot);
    fold_set_times(writer, slot, device_ns, op, false);
    fold_set_times(writer, slot, host_ns, op, true);
    const struct step_names names = {.plan = folder->plan,
                                     .from = (size_t)folder->from,
                                     .turns = 1,
                                     .buffer = fold_name_buffer,
                                     .owner = folder->job};
    folder->no_memory |= !step_memory_rename(&folder->memories, &names,
                                             folder->threads[writer->thread].thread->rank, op);
    if (host_op_syncs(op, SYNC_EVENT))
        op->object = folder->renamed[op->object];
    const int stream = op->stream, event = folder->event[writer->thread][slot];
    if (event >= 0)
        add_event_op(writer, OP_RECORD, event, stream);
}

/* The operations of the first iteration. */
static void fold_write_body(struct fold_writer *writer)
{
    const struct folder *folder = writer->folder;
    const int slots = fold_slot_count(folder, writer->thread, folder->from);
    for (int i = 0; i <= slots && !folder->no_memory; i++) {
        fold_add_gap(writer, i);
        fold_add_waits(writer, i);
        if (i < slots)
            add_slot(writer, i);
    }
}

static bool is_flag_op(const struct host_op *op)
{
    return op->kind == OP_SIGNAL || op->kind == OP_AWAIT;
}

/* The operation as the iteration has it. */
static bool fold_iterate(struct folder *folder, struct host_op *op, int iteration)
{
    struct plan *plan = folder->plan;
    op->iteration = iteration + 1;
    const struct host_details *details = host_op_details(op);
    if (details->times)
        op->time_ns = details->times->items[iteration];
    if (details->host_times)
        op->host_time_ns = details->host_times->items[iteration];
    if (!is_flag_op(op))
        return true;
    op->object = step_flag(plan, plan->flags.items[op->object], (size_t)iteration);
    return op->object >= 0;
}

static void copy_outer(const struct folder *folder, struct host_op *to, const struct host_op *from,
                       size_t count)
{
    for (size_t i = 0; i < count; i++) {
        to[i] = from[i];
        if (to[i].kind == OP_WAIT || to[i].kind == OP_RECORD || host_op_syncs(&to[i], SYNC_EVENT))
            to[i].object = folder->renamed[to[i].object];
    }
}

/* The thread with its new operations. */
static bool fold_write_thread(struct folder *folder, int t)
{
    struct host_thread *thread = folder->threads[t].thread;
    const size_t begin = folder->threads[t].marks[folder->from];
    const size_t end = folder->threads[t].marks[folder->to + 1];
    assert(begin <= end && end <= thread->op_count && thread->repeat_count == 0);
    const size_t times = (size_t)(folder->to - folder->from + 1);
    struct fold_writer writer = {.folder = folder, .thread = t};
    fold_write_body(&writer);
    if (folder->no_memory)
        return false;
    const size_t count = begin + times * writer.count + thread->op_count - end;
    struct arena *arena = &folder->plan->arena;
    /* What a step has more of, waits and gaps, makes room for its iterations. */
    struct host_op *ops =
        count <= thread->op_count ? thread->ops : ARENA_ARRAY(arena, count, struct host_op);
    thread->repeats = ARENA_ARRAY(arena, 1, struct repeat);
    if (!ops || !thread->repeats)
        return false;
    copy_outer(folder, ops, thread->ops, begin);
    copy_outer(folder, &ops[count - (thread->op_count - end)], &thread->ops[end],
               thread->op_count - end);
    for (size_t i = 0; i < times * writer.count; i++) {
        ops[begin + i] = writer.ops[i % writer.count];
        if (!fold_iterate(folder, &ops[begin + i], (int)(i / writer.count)))
            return false;
    }
    thread->repeats[0] = (struct repeat){begin, writer.count, (int)times};
    thread->repeat_count = writer.count > 0;
    thread->ops = ops;
    thread->op_count = count;
    return true;
}
