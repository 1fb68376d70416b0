/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plangraph.c - see plangraph.h: one cluster a stream or thread, one node a task or box of operations
 * (plan_boxes.h), one edge a dependence. Operations get one colour a stream; those that push nothing are grey.
 */
#include "plangraph.h"

#include <stdlib.h>

#include "base/units.h"
#include "draw.h"
#include "plan_boxes.h"

struct sketch {
    const struct plan *plan;
    struct drawing *drawing;
    bool all;                 /* host programs: each operation */
    bool down;                /* host programs: a column a thread, not a row */
    struct plan_boxes boxes;  /* of host programs */
    struct draw_node **nodes; /* of each task, or of each box */
    size_t count;
    struct arena arena; /* for labels */
};

/* ---- pipeline form --------------------------------------------------------------------------- */

static const char *stream_name(const struct plan *plan, const struct task *task)
{
    return task->stream >= 0 ? plan->streams.items[task->stream] : "no stream";
}

static const char *group_name(const struct plan *plan, const struct task *task)
{
    return task->group >= 0 ? plan->groups.items[task->group] : PLAN_IMPLICIT_GROUP;
}

static void draw_task(struct sketch *sketch, size_t index, struct draw_cluster *cluster)
{
    const struct plan *plan = sketch->plan;
    const struct task *task = plan_task(plan, 0, (int)index);
    struct arena *arena = &sketch->arena;
    char time[UNITS_TEXT], host_time[UNITS_TEXT];
    units_print_time(task->time_ns, time);
    units_print_time(task->host_time_ns + task->host_after_ns, host_time);
    const char *label = task->time_ns
                            ? arena_printf(arena, "%s\nstage %d, %s", task->name, task->stage, time)
                            : arena_printf(arena, "%s\nstage %d", task->name, task->stage);
    const char *tooltip =
        arena_printf(arena, "%s: stage %d, stream %s, thread group %s, device %s, host %s%s",
                     task->name, task->stage, stream_name(plan, task), group_name(plan, task), time,
                     host_time, task->globally_ordered ? ", globally ordered" : "");
    if (label && tooltip)
        sketch->nodes[index] = draw_node(sketch->drawing, cluster, label, tooltip,
                                         draw_fill(task->stage), draw_border(task->stage));
}

/* One cluster for `stream` (-1: no stream), if any task uses it. */
static void draw_stream(struct sketch *sketch, int stream)
{
    struct draw_cluster *cluster = NULL;
    for (size_t i = 0; i < sketch->plan->pipeline.task_count; i++) {
        const struct task *task = plan_task(sketch->plan, 0, (int)i);
        if (task->stream != stream)
            continue;
        if (!cluster && stream >= 0)
            cluster = draw_cluster(sketch->drawing, stream_name(sketch->plan, task));
        draw_task(sketch, i, cluster);
    }
}

static void draw_deps(struct sketch *sketch)
{
    const struct pipeline *pipeline = &sketch->plan->pipeline;
    for (size_t i = 0; i < pipeline->dep_count; i++) {
        const struct dep *dep = &pipeline->deps[i];
        const char *label =
            dep->distance ? arena_printf(&sketch->arena, "i+%d", dep->distance) : NULL;
        draw_edge(sketch->drawing, sketch->nodes[dep->on], sketch->nodes[dep->task], label,
                  dep->distance > 0);
    }
}

static void draw_pipeline(struct sketch *sketch)
{
    for (int stream = -1; stream < (int)sketch->plan->streams.count; stream++)
        draw_stream(sketch, stream);
    draw_deps(sketch);
}

/* ---- host programs --------------------------------------------------------------------------- */

static const char *object_name(const struct plan *plan, const struct host_op *op)
{
    if (op->name)
        return op->name;
    if (op->kind == OP_SYNC && op->sync == SYNC_DEVICE)
        return "device";
    const char *name = plan_object_name(plan, op);
    return name ? name : "";
}

static const struct host_op *box_ops(const struct sketch *sketch, size_t thread,
                                     const struct plan_box *box)
{
    return &sketch->plan->threads[thread].ops[box->first];
}

static const char *box_label(struct sketch *sketch, const struct host_op *ops,
                             const struct plan_box *box)
{
    const struct plan *plan = sketch->plan;
    const char *stream = box->stream >= 0 ? plan->streams.items[box->stream] : "";
    const char *gap = *stream ? "\n" : "";
    const char *name = object_name(plan, ops);
    int64_t ns = 0;
    char time[UNITS_TEXT];
    if (box->count == 1 && !op_is_cpu_work(ops->kind))
        return arena_printf(&sketch->arena, "%s%s%s%s%s", op_key(ops->kind), *name ? " " : "", name,
                            gap, stream);
    for (size_t i = 0; i < box->count; i++)
        if (box->stream < 0 || op_is_device_work(ops[i].kind))
            ns += ops[i].time_ns;
    units_show_time((double)ns, time);
    const char *words = box->count == 1 && *name
                            ? arena_printf(&sketch->arena, "%s %s", op_key(ops->kind), name)
                            : plan_boxes_words(ops, box->count, &sketch->arena);
    return words ? arena_printf(&sketch->arena, "%s%s%s%s%s", words, gap, stream, ns ? "\n" : "",
                                ns ? time : "")
                 : NULL;
}

static struct draw_node *draw_ops(struct sketch *sketch, const struct host_op *ops,
                                  const struct plan_box *box, struct draw_cluster *cluster)
{
    const char *label = box_label(sketch, ops, box);
    const char *names = box->count > 1 ? plan_boxes_names(ops, box->count, &sketch->arena) : NULL;
    if (!label)
        return NULL;
    return draw_node(sketch->drawing, cluster, label, names,
                     box->stream >= 0 ? draw_fill(box->stream) : "#eeeeee",
                     box->stream >= 0 ? draw_border(box->stream) : "#999999");
}

/* Does `to` wait for the object that `from` sets? Events are a rank's own, the rest is the plan's. */
static bool releases(const struct host_op *from, const struct host_op *to, bool same_rank)
{
    enum op_operand kind = op_operand(from->kind);
    return op_operand(to->kind) == kind && from->object == to->object && op_takes(to->kind) &&
           (same_rank || kind != OPERAND_EVENT);
}

/* Locks and barriers would be arrows both ways. */
static bool draws_releases(const struct host_op *op)
{
    enum op_operand kind = op_operand(op->kind);
    return op_gives(op->kind) &&
           (kind == OPERAND_EVENT || kind == OPERAND_FLAG || kind == OPERAND_QUEUE);
}

/* Operation `i` that sets or awaits something where `op` is: itself, or one of the graph that it launches; NULL: there are
   no more. */
static const struct host_op *part_of(const struct sketch *sketch, const struct host_op *op,
                                     size_t i)
{
    if (!op->is_graph)
        return i == 0 ? op : NULL;
    const struct plan_externals *externals = &sketch->boxes.externals[op->graph];
    return i < externals->count ? externals->ops[i] : NULL;
}

static bool is_taken_by(const struct sketch *sketch, const struct host_op *gives,
                        const struct host_op *to, bool same_rank)
{
    const struct host_op *takes;
    for (size_t i = 0; (takes = part_of(sketch, to, i)); i++)
        if (releases(gives, takes, same_rank))
            return true;
    return false;
}

static bool is_given_by(const struct sketch *sketch, const struct host_op *given,
                        const struct host_op *op)
{
    const struct host_op *gives;
    for (size_t i = 0; (gives = part_of(sketch, op, i)); i++)
        if (draws_releases(gives) && op_operand(gives->kind) == op_operand(given->kind) &&
            gives->object == given->object)
            return true;
    return false;
}

/* Dashed arrows from box `index` of `thread` to those that wait for what `gives` sets. In one thread a wait for an event finds
   the last record in front of it, unless the boxes stand for several iterations. */
static void draw_release(struct sketch *sketch, size_t thread, size_t index,
                         const struct host_op *gives)
{
    const struct plan *plan = sketch->plan;
    const struct plan_boxes *boxes = &sketch->boxes;
    const struct host_op *from = box_ops(sketch, thread, &boxes->items[index]);
    const bool in_order =
        op_operand(gives->kind) == OPERAND_EVENT &&
        !(plan->threads[thread].repeat_count > 0 && plan_boxes_folds(plan, sketch->all));
    for (size_t i = 0; i < plan->thread_count; i++) {
        const bool own = in_order && i == thread,
                   same_rank = plan->threads[thread].rank == plan->threads[i].rank;
        for (size_t j = own ? index + 1 : boxes->first[i]; j < boxes->first[i + 1]; j++) {
            const struct host_op *to = box_ops(sketch, i, &boxes->items[j]);
            if (is_taken_by(sketch, gives, to, same_rank) && j != index)
                draw_edge(sketch->drawing, sketch->nodes[index], sketch->nodes[j],
                          from->is_graph || to->is_graph ? plan_object_name(plan, gives) : NULL,
                          true);
            if (own && is_given_by(sketch, gives, to))
                break;
        }
    }
}

/* An arrow from or to the launch of a graph names the event, which is not in the box. */
static void draw_releases(struct sketch *sketch, size_t thread, size_t index)
{
    const struct host_op *from = box_ops(sketch, thread, &sketch->boxes.items[index]), *part;
    for (size_t i = 0; (part = part_of(sketch, from, i)); i++)
        if (draws_releases(part))
            draw_release(sketch, thread, index, part);
}

static void draw_thread(struct sketch *sketch, size_t thread)
{
    const struct host_thread *described = &sketch->plan->threads[thread];
    const struct plan_boxes *boxes = &sketch->boxes;
    const char *name = arena_printf(&sketch->arena, "r%d.%s", described->rank, described->name);
    struct draw_cluster *cluster = draw_cluster(sketch->drawing, name ? name : "");
    const size_t first = boxes->first[thread], end = boxes->first[thread + 1];
    for (size_t i = first; i < end; i++) {
        const struct plan_box *box = &boxes->items[i];
        sketch->nodes[i] = draw_ops(sketch, box_ops(sketch, thread, box), box, cluster);
        if (i > first)
            draw_edge(sketch->drawing, sketch->nodes[i - 1], sketch->nodes[i], NULL, false);
    }
    for (size_t i = first; i < end; i++)
        if (boxes->items[i].repeats)
            draw_edge(sketch->drawing, sketch->nodes[first + boxes->items[i].last],
                      sketch->nodes[i],
                      arena_printf(&sketch->arena, "%d times", boxes->items[i].repeats), true);
}

static bool has_releases(const struct sketch *sketch)
{
    const struct host_op *part;
    for (size_t i = 0; i < sketch->plan->thread_count; i++)
        for (size_t j = 0; j < sketch->plan->threads[i].op_count; j++)
            for (size_t k = 0; (part = part_of(sketch, &sketch->plan->threads[i].ops[j], k)); k++)
                if (draws_releases(part))
                    return true;
    return false;
}

/* The first thread on top, or left. dot lays rows that nothing connects from the bottom up, in the order that they come in. */
static void draw_threads(struct sketch *sketch)
{
    const struct plan *plan = sketch->plan;
    bool upwards = !sketch->down && !has_releases(sketch);
    for (size_t i = 0; i < plan->thread_count; i++)
        draw_thread(sketch, upwards ? plan->thread_count - 1 - i : i);
    for (size_t i = 0; i < plan->thread_count; i++)
        for (size_t j = sketch->boxes.first[i]; j < sketch->boxes.first[i + 1]; j++)
            draw_releases(sketch, i, j);
}

/* ---- both ------------------------------------------------------------------------------------ */

/* The boxes of host programs, and how many the picture has. */
static enum status find_boxes(struct sketch *sketch, struct diag *diag)
{
    const struct plan *plan = sketch->plan;
    if (plan->form == FORM_THREADS &&
        !plan_boxes_make(plan, sketch->all, &sketch->arena, &sketch->boxes))
        return diag_no_memory(diag);
    sketch->count = plan->form == FORM_PIPELINE ? plan->pipeline.task_count : sketch->boxes.count;
    return STATUS_OK;
}

enum status plangraph_count(const struct plan *plan, bool all, size_t *out, struct diag *diag)
{
    struct sketch sketch = {.plan = plan, .all = all};
    arena_init(&sketch.arena, 0);
    enum status status = find_boxes(&sketch, diag);
    arena_fini(&sketch.arena);
    *out = sketch.count;
    return status;
}

static enum status draw_plan(struct sketch *sketch, char **data, size_t *bytes, struct diag *diag)
{
    sketch->nodes = ARENA_ARRAY(&sketch->arena, sketch->count, struct draw_node *);
    if (!sketch->nodes)
        return diag_no_memory(diag);
    if (sketch->plan->form == FORM_PIPELINE)
        draw_pipeline(sketch);
    else
        draw_threads(sketch);
    return sketch->arena.failed ? diag_no_memory(diag)
                                : draw_finish(sketch->drawing, data, bytes, diag);
}

/* Does a thread have more boxes than a row of a page? Then each has a column. */
static bool goes_down(const struct sketch *sketch)
{
    enum { ROW = 12 };
    for (size_t i = 0; i < sketch->plan->thread_count; i++)
        if (sketch->boxes.first[i + 1] - sketch->boxes.first[i] > ROW)
            return true;
    return false;
}

static enum status draw_all(void *context, const struct draw_target *target, char **data,
                            size_t *bytes, struct diag *diag)
{
    struct sketch *sketch = context;
    enum status status =
        draw_open_layered(target, sketch->plan->name, sketch->down, &sketch->drawing, diag);
    if (status != STATUS_OK)
        return status;
    status = draw_plan(sketch, data, bytes, diag);
    draw_close(sketch->drawing);
    return status;
}

enum status plangraph_render(const struct plan *plan, bool all, const struct draw_target *target,
                             struct diag *diag)
{
    struct sketch sketch = {.plan = plan, .all = all};
    if (plan->form == FORM_PROGRAMS)
        return diag_error(diag, STATUS_INPUT,
                          "plan %s has no task graph: it is a list of actions for each rank",
                          plan->name);
    arena_init(&sketch.arena, 0);
    enum status status = find_boxes(&sketch, diag);
    sketch.down = status == STATUS_OK && plan->form == FORM_THREADS && goes_down(&sketch);
    if (status == STATUS_OK && sketch.count > PLANGRAPH_MAX_NODES)
        status = diag_error(diag, STATUS_LIMIT,
                            "plan %s is too large to draw: %zu nodes, at most %d are drawn",
                            plan->name, sketch.count, PLANGRAPH_MAX_NODES);
    if (status == STATUS_OK)
        status = draw_picture(target, draw_all, &sketch, diag);
    arena_fini(&sketch.arena);
    return status;
}
