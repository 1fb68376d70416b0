/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline_buffers.c - what the sections of TorchRec's pipelines read and write, so that races have something to be about.
 *
 * A buffer is in the plan where dependences and streams order all that use it as a serial run does. A job that came to its
 * end has computed what it should, so where its trace shows no order the evidence is missing, and the plan says
 * so (`unrecorded`).
 */
#include <string.h>

#include "pieces_internal.h"
#include "pipeline_internal.h"

#include "base/array.h"

/* The work of a section: the first reads; the last of all, or of the first one's stream, writes. */
enum used { FIRST, LAST, LAST_OF_STREAM };

/* In the order of an iteration, buffer by buffer. */
static const struct section_use {
    const char *buffer;
    enum buffer_scope scope;
    const char *section;
    enum used used;
} section_uses[] = {
    {"batch", SCOPE_ITERATION, "load_batch", LAST},
    {"batch", SCOPE_ITERATION, "copy_batch_to_gpu", LAST},
    {"batch", SCOPE_ITERATION, "enqueue_batch", LAST},
    {"batch", SCOPE_ITERATION, "sparse_data_dist", FIRST},
    {"batch", SCOPE_ITERATION, "start_sparse_data_dist", FIRST},
    {"batch", SCOPE_ITERATION, "forward", FIRST},
    {"lengths", SCOPE_ITERATION, "sparse_data_dist", LAST_OF_STREAM},
    {"lengths", SCOPE_ITERATION, "start_sparse_data_dist", LAST_OF_STREAM},
    {"lengths", SCOPE_ITERATION, "wait_sparse_data_dist", FIRST},
    {"features", SCOPE_ITERATION, "sparse_data_dist", LAST},
    {"features", SCOPE_ITERATION, "wait_sparse_data_dist", LAST},
    {"features", SCOPE_ITERATION, "prefetch", FIRST},
    {"features", SCOPE_ITERATION, "start_embedding_lookup", FIRST},
    {"features", SCOPE_ITERATION, "forward", FIRST},
    {"embeddings", SCOPE_ITERATION, "start_embedding_lookup", LAST},
    {"embeddings", SCOPE_ITERATION, "forward", FIRST},
    {"activations", SCOPE_ITERATION, "forward", LAST_OF_STREAM},
    {"activations", SCOPE_ITERATION, "backward", FIRST},
    {"gradients", SCOPE_SHARED, "zero_grad", LAST},
    {"gradients", SCOPE_SHARED, "backward", LAST},
    {"gradients", SCOPE_SHARED, "optimizer", FIRST},
    {"weights", SCOPE_SHARED, "forward", FIRST},
    {"weights", SCOPE_SHARED, "backward", FIRST},
    {"weights", SCOPE_SHARED, "optimizer", LAST},
    {"tables", SCOPE_SHARED, "prefetch", FIRST},
    {"tables", SCOPE_SHARED, "start_embedding_lookup", FIRST},
    {"tables", SCOPE_SHARED, "forward", FIRST},
    {"tables", SCOPE_SHARED, "backward", LAST_OF_STREAM},
};

enum { USE_COUNT = sizeof section_uses / sizeof *section_uses };

/* ---- what comes before what ------------------------------------------------------------------ */

static bool pipeline_buffers_is_work(const struct pipeline_form_writer *writer, int task)
{
    return writer->pieces->items[task].kind == PIECE_WORK;
}

/* True if the push of `a` is before that of `b`. A work of an iteration is pushed in a period, at the place of its
   task. */
static bool is_pushed_before(const struct orders *orders, int a, int b)
{
    const struct task *tasks = orders->writer->plan->pipeline.tasks;
    const int a_task = a % orders->tasks, b_task = b % orders->tasks;
    const int a_period = a / orders->tasks + tasks[a_task].stage;
    const int b_period = b / orders->tasks + tasks[b_task].stage;
    return a_period != b_period ? a_period < b_period : a_task < b_task;
}

static int pipeline_buffers_next_on_stream(const struct orders *orders, int node)
{
    const struct pipeline_form_writer *writer = orders->writer;
    const struct task *tasks = writer->plan->pipeline.tasks;
    const int stream = tasks[node % orders->tasks].stream;
    int best = -1;
    for (int other = 0;
         pipeline_buffers_is_work(writer, node % orders->tasks) && other < 2 * orders->tasks;
         other++)
        if (pipeline_buffers_is_work(writer, other % orders->tasks) &&
            tasks[other % orders->tasks].stream == stream &&
            is_pushed_before(orders, node, other) &&
            (best < 0 || is_pushed_before(orders, other, best)))
            best = other;
    return best;
}

bool orders_add(struct orders *orders, struct arena *arena, const struct dep *dep)
{
    if (!ARENA_GROW(arena, orders->deps, orders->dep_count, orders->dep_cap))
        return false;
    orders->deps[orders->dep_count] =
        (struct order_dep){dep->task, dep->distance, orders->first_dep[dep->on]};
    orders->first_dep[dep->on] = (int)orders->dep_count++;
    return true;
}

static bool pipeline_buffers_prepare(struct orders *orders, struct arena *arena)
{
    const struct pipeline *pipeline = &orders->writer->plan->pipeline;
    const size_t nodes = 2 * (size_t)orders->tasks;
    orders->next = ARENA_ARRAY(arena, nodes + 1, int);
    orders->reached = ARENA_ARRAY(arena, nodes + 1, bool);
    orders->open = ARENA_ARRAY(arena, nodes + 1, int);
    orders->first_dep = pieces_filled(arena, (size_t)orders->tasks, -1);
    if (!orders->next || !orders->reached || !orders->open || !orders->first_dep)
        return false;
    for (size_t i = 0; i < pipeline->dep_count; i++)
        if (!orders_add(orders, arena, &pipeline->deps[i]))
            return false;
    for (int node = 0; node < (int)nodes; node++)
        orders->next[node] = pipeline_buffers_next_on_stream(orders, node);
    return true;
}

static void pipeline_buffers_reach(struct orders *orders, int node, size_t *open)
{
    if (node < 0 || orders->reached[node])
        return;
    orders->reached[node] = true;
    orders->open[(*open)++] = node;
}

bool orders_come_after(struct orders *orders, int to, int from)
{
    const bool within = to < orders->tasks;
    size_t open = 0;
    memset(orders->reached, 0, 2 * (size_t)orders->tasks * sizeof *orders->reached);
    pipeline_buffers_reach(orders, from, &open);
    while (open > 0 && !orders->reached[to]) {
        const int node = orders->open[--open];
        const int task = node % orders->tasks, iteration = node / orders->tasks;
        if (!within)
            pipeline_buffers_reach(orders, orders->next[node], &open);
        for (int i = orders->first_dep[task]; i >= 0; i = orders->deps[i].next) {
            const int at = iteration + orders->deps[i].distance;
            if (at < 2 - within)
                pipeline_buffers_reach(orders, at * orders->tasks + orders->deps[i].task, &open);
        }
    }
    return orders->reached[to];
}

/* ---- buffers --------------------------------------------------------------------------------- */

/* -1: the section has no work. */
static int pipeline_buffers_work_of(const struct pipeline_form_writer *writer, int section,
                                    enum used used)
{
    const struct piece *items = writer->pieces->items;
    int found = -1;
    for (int i = 0; i < (int)writer->pieces->count; i++) {
        const bool better = found < 0 || used == LAST ||
                            (used == LAST_OF_STREAM && items[i].stream == items[found].stream);
        if (items[i].section == section && pipeline_buffers_is_work(writer, i) && better)
            found = i;
    }
    return found;
}

/* The exchange's buffer is written when the section that waits for it has ended, if there is one with work. */
static bool is_left_to_wait(const struct pipeline_form_writer *writer,
                            const struct section_use *row)
{
    const int wait = pipeline_section(writer, "wait_sparse_data_dist");
    return strcmp(row->buffer, "features") == 0 && strcmp(row->section, "sparse_data_dist") == 0 &&
           wait >= 0 && pipeline_buffers_work_of(writer, wait, FIRST) >= 0;
}

/* The tasks that use the buffer of section_uses[first], in their order; returns the row behind those of it. */
static size_t pipeline_buffers_list_uses(const struct pipeline_form_writer *writer, size_t first,
                                         struct buffer_use *uses, size_t *count)
{
    size_t row = first;
    *count = 0;
    for (; row < USE_COUNT && strcmp(section_uses[row].buffer, section_uses[first].buffer) == 0;
         row++) {
        const int section = pipeline_section(writer, section_uses[row].section);
        const int task =
            section < 0 ? -1 : pipeline_buffers_work_of(writer, section, section_uses[row].used);
        const bool writes = section_uses[row].used != FIRST;
        if (task >= 0 && !is_left_to_wait(writer, &section_uses[row]))
            uses[(*count)++] = (struct buffer_use){task, !writes, writes};
    }
    return row;
}

/* Two uses that the plan does not order; false: it orders all. */
static bool find_unordered(struct orders *orders, const struct buffer_use *uses, size_t count,
                           bool shared, int *a, int *b)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++) {
            *a = uses[i].task;
            *b = uses[k].task;
            if ((!uses[i].writes && !uses[k].writes) || *a == *b)
                continue;
            if ((i < k && !orders_come_after(orders, *b, *a)) ||
                (shared && !orders_come_after(orders, orders->tasks + *b, *a)))
                return true;
        }
    return false;
}

static bool note_unordered(struct plan *plan, const char *buffer, int a, int b)
{
    const struct task *tasks = plan->pipeline.tasks;
    return plan_add_unrecorded(
        plan, arena_printf(&plan->arena, "buffer %s", buffer),
        arena_printf(&plan->arena, "no order of %s and %s is shown", tasks[a].name, tasks[b].name));
}

bool pipeline_add_buffer(struct plan *plan, const struct buffer *buffer,
                         const struct buffer_use *uses, size_t count)
{
    const int index = (int)plan->buffer_count;
    plan->buffers[plan->buffer_count++] = *buffer;
    for (size_t i = 0; i < count; i++) {
        struct task *task = &plan->pipeline.tasks[uses[i].task];
        if ((uses[i].writes && !job_list_index(&plan->arena, &task->writes, index)) ||
            (uses[i].reads && !job_list_index(&plan->arena, &task->reads, index)))
            return false;
    }
    return true;
}

/* The buffer of section_uses[first], if several tasks use it and it is written, an iteration's own one first. */
static bool pipeline_buffers_take_buffer(struct orders *orders, size_t first, size_t *row)
{
    struct plan *plan = orders->writer->plan;
    const bool shared = section_uses[first].scope == SCOPE_SHARED;
    struct buffer_use uses[USE_COUNT];
    size_t count;
    bool written = false;
    int a, b;
    *row = pipeline_buffers_list_uses(orders->writer, first, uses, &count);
    for (size_t i = 0; i < count; i++)
        written |= uses[i].writes && (shared || i == 0);
    if (count < 2 || !written)
        return true;
    if (find_unordered(orders, uses, count, shared, &a, &b))
        return note_unordered(plan, section_uses[first].buffer, a, b);
    const struct buffer buffer = {
        .name = section_uses[first].buffer, .scope = section_uses[first].scope, .declared = true};
    return pipeline_add_buffer(plan, &buffer, uses, count);
}

bool pipeline_buffers(struct pipeline_form_writer *writer, struct arena *arena)
{
    struct plan *plan = writer->plan;
    struct orders orders = {.writer = writer, .tasks = (int)plan->pipeline.task_count};
    bool told;
    if (!pipeline_buffers_prepare(&orders, arena) ||
        !pipeline_accesses(writer, &orders, arena, &told))
        return false;
    if (!told && !pipeline_is_torchrec(writer))
        return true;
    if (!told)
        plan->buffers = ARENA_ARRAY(&plan->arena, USE_COUNT, struct buffer);
    if (!plan->buffers)
        return false;
    for (size_t row = told ? USE_COUNT : 0; row < USE_COUNT;)
        if (!pipeline_buffers_take_buffer(&orders, row, &row))
            return false;
    /* All ranks use the same ones. */
    for (size_t i = 0; i < plan->pipeline.override_count; i++)
        for (size_t t = 0; t < plan->pipeline.task_count; t++) {
            plan->pipeline.overrides[i].tasks[t].reads = plan->pipeline.tasks[t].reads;
            plan->pipeline.overrides[i].tasks[t].writes = plan->pipeline.tasks[t].writes;
        }
    return true;
}
