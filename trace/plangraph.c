/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plangraph.c - see plangraph.h: one cluster a stream or thread, one node a task or operation, one
 * edge a dependence. Operations get one colour a stream; those that push nothing are grey.
 */
#include "plangraph.h"

#include <stdlib.h>

#include "plan/units.h"
#include "draw.h"

struct sketch {
    const struct plan *plan;
    struct drawing *drawing;
    struct draw_node **nodes; /* of each task, or of each operation, thread after thread */
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

static struct draw_node *draw_op(struct sketch *sketch, const struct host_op *op,
                                 struct draw_cluster *cluster)
{
    const struct plan *plan = sketch->plan;
    const char *name = object_name(plan, op);
    const char *stream = op->stream >= 0 ? plan->streams.items[op->stream] : "";
    const char *label = arena_printf(&sketch->arena, "%s%s%s%s%s", op_key(op->kind),
                                     *name ? " " : "", name, *stream ? "\n" : "", stream);
    if (!label)
        return NULL;
    return draw_node(sketch->drawing, cluster, label, NULL,
                     op->stream >= 0 ? draw_fill(op->stream) : "#eeeeee",
                     op->stream >= 0 ? draw_border(op->stream) : "#999999");
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

/* Dashed arrows from `from`, node `index`, to the operations it releases. */
static void draw_releases(struct sketch *sketch, const struct host_thread *thread,
                          const struct host_op *from, size_t index)
{
    size_t target = 0;
    if (!draws_releases(from))
        return;
    for (size_t i = 0; i < sketch->plan->thread_count; i++) {
        const struct host_thread *other = &sketch->plan->threads[i];
        for (size_t j = 0; j < other->op_count; j++, target++)
            if (releases(from, &other->ops[j], thread->rank == other->rank))
                draw_edge(sketch->drawing, sketch->nodes[index], sketch->nodes[target], NULL, true);
    }
}

/* `index`: of its first operation. */
static void draw_thread(struct sketch *sketch, const struct host_thread *thread, size_t index)
{
    const char *name = arena_printf(&sketch->arena, "r%d.%s", thread->rank, thread->name);
    struct draw_cluster *cluster = draw_cluster(sketch->drawing, name ? name : "");
    for (size_t j = 0; j < thread->op_count; j++, index++) {
        sketch->nodes[index] = draw_op(sketch, &thread->ops[j], cluster);
        if (j > 0)
            draw_edge(sketch->drawing, sketch->nodes[index - 1], sketch->nodes[index], NULL, false);
    }
}

static bool has_releases(const struct plan *plan)
{
    for (size_t i = 0; i < plan->thread_count; i++)
        for (size_t j = 0; j < plan->threads[i].op_count; j++)
            if (draws_releases(&plan->threads[i].ops[j]))
                return true;
    return false;
}

/* The first thread on top. dot lays threads that nothing connects from the bottom up, in the order that they come in. */
static void draw_threads(struct sketch *sketch)
{
    const struct plan *plan = sketch->plan;
    bool upwards = !has_releases(plan);
    size_t index = 0;
    for (size_t i = 0; upwards && i < plan->thread_count; i++)
        index += plan->threads[i].op_count;
    for (size_t i = 0; i < plan->thread_count; i++) {
        const struct host_thread *thread = &plan->threads[upwards ? plan->thread_count - 1 - i : i];
        index -= upwards ? thread->op_count : 0;
        draw_thread(sketch, thread, index);
        index += upwards ? 0 : thread->op_count;
    }
    index = 0;
    for (size_t i = 0; i < plan->thread_count; i++)
        for (size_t j = 0; j < plan->threads[i].op_count; j++, index++)
            draw_releases(sketch, &plan->threads[i], &plan->threads[i].ops[j], index);
}

/* ---- both ------------------------------------------------------------------------------------ */

static size_t count_nodes(const struct plan *plan)
{
    size_t count = plan->form == FORM_PIPELINE ? plan->pipeline.task_count : 0;
    for (size_t i = 0; plan->form == FORM_THREADS && i < plan->thread_count; i++)
        count += plan->threads[i].op_count;
    return count;
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

static enum status draw_all(void *context, const struct draw_target *target, char **data,
                            size_t *bytes, struct diag *diag)
{
    struct sketch *sketch = context;
    enum status status = draw_open_layered(target, sketch->plan->name, &sketch->drawing, diag);
    if (status != STATUS_OK)
        return status;
    arena_init(&sketch->arena, 0);
    status = draw_plan(sketch, data, bytes, diag);
    arena_fini(&sketch->arena);
    draw_close(sketch->drawing);
    return status;
}

enum status plangraph_render(const struct plan *plan, const struct draw_target *target,
                             struct diag *diag)
{
    struct sketch sketch = {.plan = plan, .count = count_nodes(plan)};
    if (plan->form == FORM_PROGRAMS)
        return diag_error(diag, STATUS_INPUT,
                          "plan %s has no task graph: it is a list of actions for each rank",
                          plan->name);
    if (sketch.count > PLANGRAPH_MAX_NODES)
        return diag_error(diag, STATUS_LIMIT,
                          "plan %s is too large to draw: %zu nodes, at most %d are drawn",
                          plan->name, sketch.count, PLANGRAPH_MAX_NODES);
    return draw_picture(target, draw_all, &sketch, diag);
}
