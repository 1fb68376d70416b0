/* SPDX-License-Identifier: Apache-2.0 */
/* plan_boxes.c - see plan_boxes.h. */
#include "plan_boxes.h"

#include <string.h>

#include "plan/ops.h"

bool plan_boxes_folds(const struct plan *plan, bool all)
{
    size_t operations = 0;
    for (size_t i = 0; i < plan->thread_count; i++)
        operations += plan->threads[i].op_count;
    return !all && operations > PLAN_BOXES_EACH;
}

/* Work that may have an arrow. */
static bool is_tied(const struct plan_boxes *boxes, const struct host_op *op)
{
    return op->is_graph && boxes->externals[op->graph].count > 0;
}

static bool joins(const struct host_thread *thread, const struct plan_boxes *boxes,
                  const struct plan_box *box, const struct host_op *op)
{
    if (is_tied(boxes, op))
        return false;
    if (op_is_cpu_work(op->kind))
        return box->stream < 0 && op_is_cpu_work(thread->ops[box->first].kind);
    if (!op_is_device_work(op->kind) || (box->stream >= 0 && op->stream != box->stream))
        return false;
    const struct host_op *last = &thread->ops[box->first + box->count - 1];
    return op_is_cpu_work(last->kind) ||
           (op_is_device_work(last->kind) && op_uses_comm(last->kind) == op_uses_comm(op->kind));
}

/* CPU work behind work of a stream belongs to it if more of that comes behind it. */
static bool bridges(const struct host_thread *thread, const struct plan_boxes *boxes,
                    const struct plan_box *box, size_t at, size_t end)
{
    if (box->stream < 0 || !op_is_cpu_work(thread->ops[at].kind))
        return false;
    while (at < end && op_is_cpu_work(thread->ops[at].kind))
        at++;
    const struct host_op *last = &thread->ops[box->first + box->count - 1];
    while (op_is_cpu_work(last->kind))
        last--;
    return at < end && op_is_device_work(thread->ops[at].kind) &&
           !is_tied(boxes, &thread->ops[at]) && thread->ops[at].stream == box->stream &&
           op_uses_comm(last->kind) == op_uses_comm(thread->ops[at].kind);
}

/* Boxes of the operations from `at` to `end`. */
static void fold(const struct host_thread *thread, size_t at, size_t end, struct plan_boxes *boxes)
{
    struct plan_box *box = NULL;
    for (; at < end; at++) {
        const struct host_op *op = &thread->ops[at];
        if (box && (joins(thread, boxes, box, op) || bridges(thread, boxes, box, at, end))) {
            box->count++;
            box->stream = box->stream < 0 && op_is_device_work(op->kind) ? op->stream : box->stream;
            continue;
        }
        boxes->items[boxes->count] =
            (struct plan_box){.first = at, .count = 1, .stream = op->stream};
        box = op_is_work(op->kind) && !is_tied(boxes, op) ? &boxes->items[boxes->count] : NULL;
        boxes->count++;
    }
}

static void fold_thread(const struct host_thread *thread, struct plan_boxes *boxes)
{
    const size_t first = boxes->count;
    size_t at = 0;
    for (size_t r = 0; r < thread->repeat_count; r++) {
        const struct repeat *repeat = &thread->repeats[r];
        fold(thread, at, repeat->first, boxes);
        const size_t begin = boxes->count;
        fold(thread, repeat->first, repeat->first + repeat->length, boxes);
        boxes->items[begin].repeats = repeat->times;
        boxes->items[begin].last = boxes->count - 1 - first;
        at = repeat->first + repeat->length * (size_t)repeat->times;
    }
    fold(thread, at, thread->op_count, boxes);
}

static bool find_externals(const struct graph *graph, struct arena *arena,
                           struct plan_externals *out)
{
    size_t cap = 0;
    *out = (struct plan_externals){0};
    for (size_t i = 0; i < graph->op_count; i++) {
        if (!graph->ops[i].external)
            continue;
        if (!arena_grow(arena, (void **)&out->ops, out->count, &cap, sizeof *out->ops))
            return false;
        out->ops[out->count++] = &graph->ops[i];
    }
    return true;
}

bool plan_boxes_make(const struct plan *plan, bool all, struct arena *arena, struct plan_boxes *out)
{
    const bool folds = plan_boxes_folds(plan, all);
    size_t most = 0;
    for (size_t i = 0; i < plan->thread_count; i++)
        most += plan->threads[i].op_count;
    *out = (struct plan_boxes){
        .items = ARENA_ARRAY(arena, most + 1, struct plan_box),
        .first = ARENA_ARRAY(arena, plan->thread_count + 1, size_t),
        .externals = ARENA_ARRAY(arena, plan->graph_count + 1, struct plan_externals)};
    if (!out->items || !out->first || !out->externals)
        return false;
    for (size_t i = 0; i < plan->graph_count; i++)
        if (!find_externals(&plan->graphs[i], arena, &out->externals[i]))
            return false;
    for (size_t i = 0; i < plan->thread_count; i++) {
        const struct host_thread *thread = &plan->threads[i];
        out->first[i] = out->count;
        if (folds)
            fold_thread(thread, out);
        for (size_t j = 0; !folds && j < thread->op_count; j++)
            out->items[out->count++] =
                (struct plan_box){.first = j, .count = 1, .stream = thread->ops[j].stream};
    }
    out->first[plan->thread_count] = out->count;
    return true;
}

const char *plan_boxes_words(const struct host_op *ops, size_t count, struct arena *arena)
{
    static const char *const many[HOST_OP_COUNT] = {[OP_LAUNCH] = "launches",
                                                    [OP_COPY] = "copies",
                                                    [OP_COLLECTIVE] = "collectives",
                                                    [OP_GROUP] = "groups"};
    size_t found[HOST_OP_COUNT] = {0};
    const char *words = "";
    for (size_t i = 0; i < count; i++)
        found[ops[i].kind]++;
    if (found[OP_HOST] + found[OP_COMPUTE] == count)
        return "CPU work";
    for (int kind = 0; words && kind < HOST_OP_COUNT; kind++)
        if (many[kind] && found[kind])
            words = arena_printf(arena, "%s%s%zu %s", words, *words ? ", " : "", found[kind],
                                 found[kind] > 1 ? many[kind] : op_key((enum op_kind)kind));
    return words;
}

const char *plan_boxes_names(const struct host_op *ops, size_t count, struct arena *arena)
{
    enum { NAMES = 24 }; /* as many as a tooltip can show */
    size_t times[NAMES] = {0}, known = 0, more = 0;
    const char *names[NAMES], *words = "";
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        if (!ops[i].name)
            continue;
        while (at < known && strcmp(names[at], ops[i].name) != 0)
            at++;
        if (at == NAMES) {
            more++;
            continue;
        }
        names[at] = ops[i].name;
        times[at]++;
        known += at == known;
    }
    for (size_t i = 0; words && i < known; i++)
        words = times[i] > 1
                    ? arena_printf(arena, "%s%s%zu x %s", words, i ? "; " : "", times[i], names[i])
                    : arena_printf(arena, "%s%s%s", words, i ? "; " : "", names[i]);
    return words && more ? arena_printf(arena, "%s; %zu more", words, more) : words;
}
