/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plangraph.c - see plangraph.h: one cluster a stream or thread, one node a task or box of operations
 * (below), one edge a dependence. Operations get one colour a stream; those that push nothing are grey.
 */
#include "plangraph.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/assert_index.h"
#include "base/units.h"
#include "plan/ops.h"
#include "plan/plan.h"

#include "draw.h"

/* ---- boxes of the plan ----------------------------------------------------------------------- */

/*
 * The boxes of a picture of host programs.
 *
 * Folded, operations of a thread that follow one another are one box: work of one stream, and CPU work before and between
 * it. Only the first iteration of a repeat has boxes. An operation that gives or takes something, and so may have an
 * arrow, is a box of its own; so is the launch of a graph that records or awaits events of others. Unfolded, each
 * operation of each iteration is a box.
 */

/* Operations first .. first + count - 1 of a thread. */
struct plan_box {
    size_t first, count;
    int stream;  /* plan->streams; -1: none */
    int repeats; /* it begins a repeat that comes so many times; else 0 */
    size_t last; /* where `repeats`: the last box of the repeat, [boxes of the thread] */
};

/* Operations of a graph that record or await an event of others. */
struct plan_externals {
    const struct host_op **ops;
    size_t count;
};

struct plan_boxes {
    struct plan_box *items; /* thread after thread, in the order of the plan */
    size_t count;
    size_t *first; /* [thread_count + 1]: the first box of each thread, and `count` */
    struct plan_externals *externals; /* by graph */
};

/* A plan of more operations than this is folded, unless all are asked for. */
enum { PLAN_BOXES_EACH = 64 };

static bool plan_boxes_folds(const struct plan *plan, bool all)
{
    size_t operations = 0;
    for (size_t i = 0; i < plan->thread_count; i++)
        operations += plan->threads[i].op_count;
    return !all && operations > PLAN_BOXES_EACH;
}

/* Work that may have an arrow. */
static bool is_tied(const struct plan_boxes *boxes, const struct host_op *op)
{
    return host_op_is_graph(op) && boxes->externals[op->graph].count > 0;
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
    ASSERT_INDEX(at, thread->op_count);
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
        if (!host_op_is_external(&graph->ops[i]))
            continue;
        if (!ARENA_GROW(arena, out->ops, out->count, cap))
            return false;
        out->ops[out->count++] = &graph->ops[i];
    }
    return true;
}

/* The boxes of a plan of host programs; all of it is the arena's. False: no memory. */
static bool plan_boxes_make(const struct plan *plan, bool all, struct arena *arena,
                            struct plan_boxes *out)
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

/* The words of a box of several operations: "CPU work, 12 launches, 2 copies"; NULL: no memory. */
static const char *plan_boxes_words(const struct host_op *ops, size_t count, struct arena *arena)
{
    static const char *const many[HOST_OP_COUNT] = {[OP_LAUNCH] = "launches",
                                                    [OP_COPY] = "copies",
                                                    [OP_COLLECTIVE] = "collectives",
                                                    [OP_GROUP] = "groups"};
    size_t found[OP_COUNT] = {0};
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

/* The names of its work, each once, with how often it comes if more than once; NULL: no memory. */
static const char *plan_boxes_names(const struct host_op *ops, size_t count, struct arena *arena)
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

/* CPU work stands with its thread, other tasks with their stream. */
static bool drawn_on_thread(const struct plan *plan, const struct task *task)
{
    return task->work.kind == WORK_HOST || plan_is_only_cpu(plan, task);
}

static const char *plangraph_group_name(const struct plan *plan, const struct task *task)
{
    return task->group >= 0 ? plan->groups.items[task->group] : PLAN_IMPLICIT_GROUP;
}

/* The lane of a task: "thread decoder", "h2d"; NULL: out of memory. */
static const char *plangraph_lane_name(struct sketch *sketch, const struct task *task)
{
    const struct plan *plan = sketch->plan;
    if (drawn_on_thread(plan, task))
        return arena_printf(&sketch->arena, "thread %s", plangraph_group_name(plan, task));
    return plan->streams.items[task->stream];
}

static void draw_task(struct sketch *sketch, size_t index, struct draw_cluster *cluster)
{
    const struct plan *plan = sketch->plan;
    const struct task *task = plan_task(plan, 0, (int)index);
    struct arena *arena = &sketch->arena;
    char time[UNITS_TEXT], host_time[UNITS_TEXT];
    units_print_time(task->time_ns, time);
    units_print_time(task->host_time_ns + task->host_after_ns +
                         (task->work.kind == WORK_HOST ? task->work.time_ns : 0),
                     host_time);
    const char *shown = task->time_ns ? time : "";
    if (drawn_on_thread(plan, task))
        shown = host_time;
    const char *label =
        arena_printf(arena, "%s\nstage %d%s%s", task->name, task->stage, *shown ? ", " : "", shown);
    const char *tooltip = arena_printf(
        arena, "%s: stage %d, stream %s, thread group %s, device %s, host %s%s", task->name,
        task->stage,
        drawn_on_thread(plan, task) || task->stream < 0 ? "none"
                                                        : plan->streams.items[task->stream],
        plangraph_group_name(plan, task), time, host_time,
        task->globally_ordered ? ", globally ordered" : "");
    ASSERT_INDEX(index, sketch->count);
    if (label && tooltip)
        sketch->nodes[index] = draw_node(sketch->drawing, cluster, label, tooltip,
                                         draw_fill(task->stage), draw_border(task->stage));
}

/* One cluster for the tasks of a stream or of a thread group, if there are any; -1: those without a stream, which stand alone,
   or those of the group that has no name. */
static void draw_lane(struct sketch *sketch, bool thread, int number)
{
    struct draw_cluster *cluster = NULL;
    for (size_t i = 0; i < sketch->plan->pipeline.task_count; i++) {
        const struct task *task = plan_task(sketch->plan, 0, (int)i);
        if (drawn_on_thread(sketch->plan, task) != thread ||
            (thread ? task->group : task->stream) != number)
            continue;
        const char *name =
            cluster || (!thread && number < 0) ? NULL : plangraph_lane_name(sketch, task);
        if (name)
            cluster = draw_cluster(sketch->drawing, name);
        draw_task(sketch, i, cluster);
    }
}

static void draw_pipeline(struct sketch *sketch)
{
    for (int group = -1; group < (int)sketch->plan->groups.count; group++)
        draw_lane(sketch, true, group);
    for (int stream = -1; stream < (int)sketch->plan->streams.count; stream++)
        draw_lane(sketch, false, stream);
    const struct pipeline *pipeline = &sketch->plan->pipeline;
    for (size_t i = 0; i < pipeline->dep_count; i++) {
        const struct dep *dep = &pipeline->deps[i];
        const char *label =
            dep->distance ? arena_printf(&sketch->arena, "i+%d", dep->distance) : NULL;
        draw_edge(sketch->drawing, sketch->nodes[dep->on], sketch->nodes[dep->task], label,
                  dep->distance > 0);
    }
}

/* ---- host programs --------------------------------------------------------------------------- */

static const char *plangraph_object_name(const struct plan *plan, const struct host_op *op)
{
    if (op->name)
        return op->name;
    if (host_op_syncs(op, SYNC_DEVICE))
        return "device";
    const char *name = plan_object_name(plan, op);
    return name ? name : "";
}

static const struct host_op *box_ops(const struct sketch *sketch, size_t thread,
                                     const struct plan_box *box)
{
    ASSERT_INDEX(thread, sketch->plan->thread_count);
    return &sketch->plan->threads[thread].ops[box->first];
}

static const char *box_label(struct sketch *sketch, const struct host_op *ops,
                             const struct plan_box *box)
{
    const struct plan *plan = sketch->plan;
    const char *stream = box->stream >= 0 ? plan->streams.items[box->stream] : "";
    const char *gap = *stream ? "\n" : "";
    const char *name = plangraph_object_name(plan, ops);
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

/* True if `to` waits for the object that `from` sets. Events are a rank's own, the rest is the plan's. */
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
static const struct host_op *plangraph_part_of(const struct sketch *sketch,
                                               const struct host_op *op, size_t i)
{
    if (!host_op_is_graph(op))
        return i == 0 ? op : NULL;
    const struct plan_externals *externals = &sketch->boxes.externals[op->graph];
    return i < externals->count ? externals->ops[i] : NULL;
}

static bool is_taken_by(const struct sketch *sketch, const struct host_op *gives,
                        const struct host_op *to, bool same_rank)
{
    const struct host_op *takes;
    for (size_t i = 0; (takes = plangraph_part_of(sketch, to, i)); i++)
        if (releases(gives, takes, same_rank))
            return true;
    return false;
}

static bool is_given_by(const struct sketch *sketch, const struct host_op *given,
                        const struct host_op *op)
{
    const struct host_op *gives;
    for (size_t i = 0; (gives = plangraph_part_of(sketch, op, i)); i++)
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
    ASSERT_INDEX(index, boxes->count);
    const struct host_op *from = box_ops(sketch, thread, &boxes->items[index]);
    ASSERT_INDEX(thread, plan->thread_count);
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
                          host_op_is_graph(from) || host_op_is_graph(to)
                              ? plan_object_name(plan, gives)
                              : NULL,
                          true);
            if (own && is_given_by(sketch, gives, to))
                break;
        }
    }
}

/* An arrow from or to the launch of a graph names the event, which is not in the box. */
static void draw_releases(struct sketch *sketch, size_t thread, size_t index)
{
    ASSERT_INDEX(index, sketch->boxes.count);
    const struct host_op *from = box_ops(sketch, thread, &sketch->boxes.items[index]), *part;
    for (size_t i = 0; (part = plangraph_part_of(sketch, from, i)); i++)
        if (draws_releases(part))
            draw_release(sketch, thread, index, part);
}

static void draw_thread(struct sketch *sketch, size_t thread)
{
    ASSERT_INDEX(thread, sketch->plan->thread_count);
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
            for (size_t k = 0;
                 (part = plangraph_part_of(sketch, &sketch->plan->threads[i].ops[j], k)); k++)
                if (draws_releases(part))
                    return true;
    return false;
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
    else {
        /* The first thread on top, or left. dot lays rows that nothing connects from the bottom up, in the order that they come in. */
        const struct plan *plan = sketch->plan;
        bool upwards = !sketch->down && !has_releases(sketch);
        for (size_t i = 0; i < plan->thread_count; i++)
            draw_thread(sketch, upwards ? plan->thread_count - 1 - i : i);
        for (size_t i = 0; i < plan->thread_count; i++)
            for (size_t j = sketch->boxes.first[i]; j < sketch->boxes.first[i + 1]; j++)
                draw_releases(sketch, i, j);
    }
    return sketch->arena.failed ? diag_no_memory(diag)
                                : draw_finish(sketch->drawing, data, bytes, diag);
}

/* True if a thread has more boxes than a row of a page. Then each has a column. */
static bool goes_down(const struct sketch *sketch)
{
    enum { ROW = 12 };
    for (size_t i = 0; i < sketch->plan->thread_count; i++)
        if (sketch->boxes.first[i + 1] - sketch->boxes.first[i] > ROW)
            return true;
    return false;
}

static enum status plangraph_draw_all(void *context, const struct draw_target *target, char **data,
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
        status = draw_picture(target, plangraph_draw_all, &sketch, diag);
    arena_fini(&sketch.arena);
    return status;
}
