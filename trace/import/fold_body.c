/* SPDX-License-Identifier: Apache-2.0 */
/* fold_body.c - the repeated step, written once for each iteration with its own times. */
#include <string.h>

#include "fold_internal.h"

/* ---- the step, iteration by iteration --------------------------------------------------------------- */

struct writer {
    struct folder *folder;
    int thread;
    struct host_op *ops; /* of the first iteration */
    size_t count, cap;
    size_t next_edge; /* they are in the order of threads and slots */
};

static struct host_op *add_op(struct writer *writer, const struct host_op *like)
{
    struct folder *folder = writer->folder;
    if (!arena_grow(&folder->arena, (void **)&writer->ops, writer->count, &writer->cap,
                    sizeof *writer->ops)) {
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

/* The times of a slot in all steps; a list only where they differ. */
static void set_times(struct writer *writer, int slot, measured *time, int64_t *out_ns,
                      struct time_list **out_list)
{
    struct folder *folder = writer->folder;
    const size_t count = (size_t)(folder->to - folder->from + 1);
    struct arena *arena = &folder->plan->arena;
    struct time_list *list = ARENA_ARRAY(arena, 1, struct time_list);
    int64_t *items = list ? ARENA_ARRAY(arena, count, int64_t) : NULL;
    bool varies = false;
    folder->no_memory |= !items;
    for (size_t i = 0; items && i < count; i++) {
        items[i] = time(folder, writer->thread, folder->from + (int)i, slot);
        varies |= items[i] != items[0];
    }
    if (!items)
        return;
    *list = (struct time_list){items, count};
    *out_ns = items[0];
    *out_list = varies ? list : NULL;
}

static void add_gap(struct writer *writer, int slot)
{
    const struct host_op like = {
        .kind = OP_HOST, .stream = -1, .graph = -1, .object = -1, .comm = -1};
    struct host_op *op = add_op(writer, &like);
    if (!op)
        return;
    op->work.comm = op->work.root = -1;
    set_times(writer, slot, gap_ns, &op->time_ns, &op->times);
    if (op->time_ns == 0 && !op->times)
        writer->count--;
}

static void add_event_op(struct writer *writer, enum op_kind kind, int event, int stream)
{
    const struct host_op like = {
        .kind = kind, .stream = stream, .graph = -1, .object = event, .comm = -1};
    struct host_op *op = add_op(writer, &like);
    if (op)
        op->work.comm = op->work.root = -1;
}

static void add_waits(struct writer *writer, int slot)
{
    const struct folder *folder = writer->folder;
    for (; writer->next_edge < folder->edge_count; writer->next_edge++) {
        const struct edge *edge = &folder->edges[writer->next_edge];
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

static void add_slot(struct writer *writer, int slot)
{
    struct folder *folder = writer->folder;
    struct host_op *op = add_op(writer, fold_slot_op(folder, writer->thread, folder->from, slot));
    if (!op)
        return;
    op->bytes = most_bytes(folder, writer->thread, slot);
    set_times(writer, slot, device_ns, &op->time_ns, &op->times);
    set_times(writer, slot, host_ns, &op->host_time_ns, &op->host_times);
    if (op->kind == OP_SYNC && op->sync == SYNC_EVENT)
        op->object = folder->renamed[op->object];
    const int stream = op->stream, event = folder->event[writer->thread][slot];
    if (event >= 0)
        add_event_op(writer, OP_RECORD, event, stream);
}

/* The operations of the first iteration. */
static void write_body(struct writer *writer)
{
    const struct folder *folder = writer->folder;
    const int slots = fold_slot_count(folder, writer->thread, folder->from);
    for (int i = 0; i <= slots && !folder->no_memory; i++) {
        add_gap(writer, i);
        add_waits(writer, i);
        if (i < slots)
            add_slot(writer, i);
    }
}

static bool is_flag_op(const struct host_op *op)
{
    return op->kind == OP_SIGNAL || op->kind == OP_AWAIT;
}

/* The operation as the iteration has it. */
static bool iterate(struct folder *folder, struct host_op *op, int iteration)
{
    struct plan *plan = folder->plan;
    op->iteration = iteration + 1;
    if (op->times)
        op->time_ns = op->times->items[iteration];
    if (op->host_times)
        op->host_time_ns = op->host_times->items[iteration];
    if (!is_flag_op(op))
        return true;
    const char *name =
        arena_printf(&folder->arena, "%s(%d)", plan->flags.items[op->object], iteration);
    op->object = name ? names_intern(&plan->flags, &plan->arena, name) : -1;
    return op->object >= 0;
}

static void copy_outer(const struct folder *folder, struct host_op *to, const struct host_op *from,
                       size_t count)
{
    for (size_t i = 0; i < count; i++) {
        to[i] = from[i];
        if (to[i].kind == OP_WAIT || to[i].kind == OP_RECORD ||
            (to[i].kind == OP_SYNC && to[i].sync == SYNC_EVENT))
            to[i].object = folder->renamed[to[i].object];
    }
}

/* The thread with its new operations. */
bool fold_write_thread(struct folder *folder, int t)
{
    struct host_thread *thread = folder->threads[t].thread;
    const size_t begin = folder->threads[t].marks[folder->from];
    const size_t end = folder->threads[t].marks[folder->to + 1];
    const size_t times = (size_t)(folder->to - folder->from + 1);
    struct writer writer = {.folder = folder, .thread = t};
    write_body(&writer);
    if (folder->no_memory)
        return false;
    const size_t count = begin + times * writer.count + thread->op_count - end;
    struct arena *arena = &folder->plan->arena;
    struct host_op *ops = ARENA_ARRAY(arena, count, struct host_op);
    thread->repeats = ARENA_ARRAY(arena, 1, struct repeat);
    if (!ops || !thread->repeats)
        return false;
    copy_outer(folder, ops, thread->ops, begin);
    for (size_t i = 0; i < times * writer.count; i++) {
        ops[begin + i] = writer.ops[i % writer.count];
        if (!iterate(folder, &ops[begin + i], (int)(i / writer.count)))
            return false;
    }
    copy_outer(folder, &ops[count - (thread->op_count - end)], &thread->ops[end],
               thread->op_count - end);
    thread->repeats[0] = (struct repeat){begin, writer.count, (int)times};
    thread->repeat_count = writer.count > 0;
    thread->ops = ops;
    thread->op_count = count;
    return true;
}
