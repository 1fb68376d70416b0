/* SPDX-License-Identifier: Apache-2.0 */
/* edits_pipeline_apply.c - edits of a pipeline, made and described. */
#include "edits_internal.h"

#include "plan/keywords.h"
#include "plan/order.h"

#include <string.h>

/* A property of a task for all ranks: their overrides hold copies. */
#define SET_TASK(plan, task, member, value)                                                        \
    do {                                                                                           \
        struct pipeline *all = &(plan)->pipeline;                                                  \
        for (size_t k = 0; k < all->override_count; k++)                                           \
            if (all->overrides[k].tasks)                                                           \
                all->overrides[k].tasks[task].member = (value);                                    \
        all->tasks[task].member = (value);                                                         \
    } while (0)

static bool set_order(struct plan *plan, const struct edit *edit)
{
    struct pipeline *pipeline = &plan->pipeline;
    int *order = ARENA_ARRAY(&plan->arena, pipeline->task_count, int), kept;
    struct diag unused;
    diag_init(&unused);
    bool known = order && order_enqueue(plan, 0, order, &unused) == STATUS_OK;
    diag_fini(&unused);
    size_t from = 0, to = 0;
    for (size_t i = 0; known && i < pipeline->task_count; i++) {
        from = order[i] == edit->a ? i : from;
        to = order[i] == edit->b ? i : to;
    }
    if (!known)
        return false;
    shift_item(order, sizeof *order, from, to, &kept);
    pipeline->order = (struct order_spec){.kind = ORDER_EXPLICIT,
                                          .tasks = {.items = order, .count = pipeline->task_count}};
    pipeline->order_given = true;
    return true;
}

static bool set_rule(struct plan *plan, int rule)
{
    plan->pipeline.order = (struct order_spec){.kind = (enum order_kind)rule};
    plan->pipeline.order_given = rule != ORDER_READY_FIRST;
    return true;
}

/* An override without content is removed. */
static bool drop_override_order(struct plan *plan, int which)
{
    struct pipeline *pipeline = &plan->pipeline;
    struct rank_override *override = &pipeline->overrides[which];
    override->has_order = false;
    if (!override->tasks) {
        size_t behind = pipeline->override_count - (size_t)which - 1;
        memmove(override, override + 1, behind * sizeof *override);
        pipeline->override_count--;
    }
    return true;
}

static bool set_stage(struct plan *plan, int task, int stage)
{
    struct pipeline *pipeline = &plan->pipeline;
    SET_TASK(plan, task, stage, stage);
    int lowest, highest;
    edits_stage_range(pipeline, pipeline->task_count, &lowest, &highest);
    pipeline->depth = highest + 1;
    return true;
}

static bool insert_dep(struct plan *plan, const struct edit *edit)
{
    struct pipeline *pipeline = &plan->pipeline;
    struct dep *deps = ARENA_ARRAY(&plan->arena, pipeline->dep_count + 1, struct dep);
    if (!deps)
        return false;
    size_t at = edit->to == 0 ? pipeline->intra_count : pipeline->dep_count;
    if (at > 0)
        memcpy(deps, pipeline->deps, at * sizeof *deps);
    deps[at] = (struct dep){.task = edit->a, .on = edit->b, .distance = edit->to};
    if (pipeline->dep_count > at)
        memcpy(&deps[at + 1], &pipeline->deps[at], (pipeline->dep_count - at) * sizeof *deps);
    pipeline->deps = deps;
    pipeline->dep_count++;
    pipeline->intra_count += edit->to == 0;
    return true;
}

static bool remove_dep(struct plan *plan, int which)
{
    struct pipeline *pipeline = &plan->pipeline;
    size_t at = (size_t)which;
    pipeline->intra_count -= pipeline->deps[at].distance == 0;
    pipeline->dep_count--;
    memmove(&pipeline->deps[at], &pipeline->deps[at + 1],
            (pipeline->dep_count - at) * sizeof *pipeline->deps);
    return true;
}

/* An existing one, or a new one named after the task. */
static int place(struct plan *plan, struct names *names, const struct edit *edit)
{
    if (edit->to >= 0)
        return edit->to;
    const char *name = fresh_name(plan, names, plan->pipeline.tasks[edit->a].name);
    return name ? names_intern(names, &plan->arena, name) : -1;
}

static bool set_group(struct plan *plan, const struct edit *edit)
{
    int group = place(plan, &plan->groups, edit);
    if (group >= 0)
        SET_TASK(plan, edit->a, group, group);
    return group >= 0;
}

static bool set_stream(struct plan *plan, const struct edit *edit)
{
    int stream = place(plan, &plan->streams, edit);
    if (stream >= 0)
        SET_TASK(plan, edit->a, stream, stream);
    return stream >= 0;
}

static bool set_sync(struct plan *plan, int task, bool after)
{
    if (after)
        SET_TASK(plan, task, sync_after, HOST_SYNC_STREAM);
    else
        SET_TASK(plan, task, host_sync, HOST_SYNC_STREAM);
    return true;
}

static bool merge_groups(struct plan *plan, int from, int to)
{
    for (size_t t = 0; t < plan->pipeline.task_count; t++)
        if (plan->pipeline.tasks[t].group == from)
            SET_TASK(plan, t, group, to);
    return true;
}

static bool order_comms(struct plan *plan)
{
    for (size_t t = 0; t < plan->pipeline.task_count; t++)
        if (edits_communicates(&plan->pipeline.tasks[t]))
            SET_TASK(plan, t, globally_ordered, true);
    return true;
}

static void sort_list(struct index_list *list)
{
    int kept;
    for (size_t i = 1; i < list->count; i++)
        for (size_t k = 0; k < i; k++)
            if (list->items[k] > list->items[i])
                shift_item(list->items, sizeof kept, i, k, &kept);
}

static bool sort_holds(struct plan *plan)
{
    struct pipeline *pipeline = &plan->pipeline;
    for (size_t t = 0; t < pipeline->task_count; t++) {
        sort_list(&pipeline->tasks[t].holds);
        for (size_t i = 0; i < pipeline->override_count; i++)
            if (pipeline->overrides[i].tasks)
                sort_list(&pipeline->overrides[i].tasks[t].holds);
    }
    return true;
}

static int64_t fewest_batches(const struct pipeline *pipeline)
{
    int64_t fewest = pipeline->batches[0];
    for (size_t i = 1; i < pipeline->batch_count; i++)
        fewest = pipeline->batches[i] < fewest ? pipeline->batches[i] : fewest;
    return fewest;
}

static bool equal_batches(struct plan *plan)
{
    struct pipeline *pipeline = &plan->pipeline;
    int64_t fewest = fewest_batches(pipeline);
    for (size_t i = 0; i < pipeline->batch_count; i++)
        pipeline->batches[i] = fewest;
    return true;
}

bool apply_pipeline(struct plan *plan, const struct edit *edit)
{
    struct pipeline *pipeline = &plan->pipeline;
    switch (edit->kind) {
    case EDIT_RETIRE: pipeline->retire = RETIRE_DEVICE; return true;
    case EDIT_FORGET_DONE: pipeline->forget_done = FORGET_NEVER; return true;
    case EDIT_RETIRED_DEP: pipeline->retired_dep = RETIRED_DEP_WAIT; return true;
    case EDIT_SLOT_RESET: pipeline->slot_reset = SLOT_RESET_ADMIT; return true;
    case EDIT_TICKET_AT: pipeline->ticket_at = TICKET_AT_ITERATION; return true;
    case EDIT_NUM_SLOTS: pipeline->num_slots_given = false; return true;
    case EDIT_ELIDE: pipeline->elide_same_stream = edit->to; return true;
    case EDIT_BATCHES: return equal_batches(plan);
    case EDIT_ORDER_RULE: return set_rule(plan, edit->to);
    case EDIT_ORDER_MOVE: return set_order(plan, edit);
    case EDIT_OVERRIDE_ORDER: return drop_override_order(plan, edit->a);
    case EDIT_STAGE: return set_stage(plan, edit->a, edit->to);
    case EDIT_ADD_DEP: return insert_dep(plan, edit);
    case EDIT_REMOVE_DEP: return remove_dep(plan, edit->a);
    case EDIT_MAX_DEPTH:
        pipeline->max_depth = edit->to;
        pipeline->max_depth_given = true;
        return true;
    case EDIT_GROUP: return set_group(plan, edit);
    case EDIT_MERGE_GROUPS: return merge_groups(plan, edit->a, edit->b);
    case EDIT_GLOBAL_ORDER: SET_TASK(plan, edit->a, globally_ordered, edit->to); return true;
    case EDIT_ORDER_COMMS: return order_comms(plan);
    case EDIT_TASK_SYNC: return set_sync(plan, edit->a, edit->to);
    case EDIT_TASK_STREAM: return set_stream(plan, edit);
    default: return sort_holds(plan);
    }
}

/* ---- in words -------------------------------------------------------------------------------- */

static const char *order_text(const struct order_spec *order)
{
    return order->kind == ORDER_EXPLICIT ? "the list" : keywords_order[order->kind];
}

static const char *describe_dep(const struct pipeline *pipeline, int task, int on, int distance,
                                const char *verb, struct arena *arena)
{
    const char *a = pipeline->tasks[task].name, *b = pipeline->tasks[on].name;
    if (distance == 0)
        return arena_printf(arena, "%s the dependence [%s, %s]: %s waits for %s of its iteration",
                            verb, a, b, a, b);
    if (distance == 1)
        return arena_printf(arena,
                            "%s the dependence [%s, %s] between iterations: %s waits for %s of the "
                            "iteration before",
                            verb, a, b, a, b);
    return arena_printf(arena,
                        "%s the dependence [%s, %s, %d] between iterations: %s waits for %s of %d "
                        "iterations before",
                        verb, a, b, distance, a, b, distance);
}

static const char *describe_place(const struct plan *plan, const struct edit *edit,
                                  struct arena *arena)
{
    bool group = edit->kind == EDIT_GROUP;
    const struct task *task = &plan->pipeline.tasks[edit->a];
    const struct names *names = group ? &plan->groups : &plan->streams;
    const char *what = group ? "thread_group" : "stream";
    if (edit->to < 0)
        return arena_printf(arena, "%s of %s: one of its own", what, task->name);
    return arena_printf(arena, "%s of %s: %s instead of %s", what, task->name,
                        names->items[edit->to], names->items[group ? task->group : task->stream]);
}

static const char *describe_knob(const struct plan *plan, const struct edit *edit,
                                 struct arena *arena)
{
    const struct pipeline *pipeline = &plan->pipeline;
    switch (edit->kind) {
    case EDIT_RETIRE:
        return arena_printf(arena, "retire: device instead of %s",
                            keywords_retire[pipeline->retire]);
    case EDIT_FORGET_DONE: return "forget_done: false instead of retire";
    case EDIT_RETIRED_DEP: return "retired_dep: wait instead of skip";
    case EDIT_SLOT_RESET: return "slot_reset: admit instead of submit";
    case EDIT_TICKET_AT: return "ticket_at: iteration instead of fire";
    case EDIT_NUM_SLOTS:
        return arena_printf(arena,
                            "num_slots: the default, depth plus largest distance, instead "
                            "of %d",
                            pipeline->num_slots);
    case EDIT_ELIDE:
        return edit->to ? "elide_same_stream: true, no waits for one's own stream"
                        : "elide_same_stream: false, a wait for every dependence";
    case EDIT_BATCHES:
        return arena_printf(arena, "batches: %lld on every rank",
                            (long long)fewest_batches(pipeline));
    case EDIT_MAX_DEPTH:
        return arena_printf(arena, "max_depth: %d instead of %d", edit->to,
                            pipeline->max_depth_given ? pipeline->max_depth : pipeline->depth);
    case EDIT_ORDER_COMMS: return "globally_ordered: true for every task that communicates";
    default: return "holds: every task takes its locks in one order";
    }
}

const char *describe_pipeline(const struct plan *plan, const struct edit *edit, struct arena *arena)
{
    const struct pipeline *pipeline = &plan->pipeline;
    const struct task *task = &pipeline->tasks[edit->a];
    switch (edit->kind) {
    case EDIT_ORDER_RULE:
        return arena_printf(arena, "enqueue_order: %s instead of %s", keywords_order[edit->to],
                            order_text(&pipeline->order));
    case EDIT_ORDER_MOVE:
        return arena_printf(arena, "enqueue_order: %s before %s", task->name,
                            pipeline->tasks[edit->b].name);
    case EDIT_OVERRIDE_ORDER:
        return arena_printf(arena, "enqueue_order: on rank %d as on the others",
                            pipeline->overrides[edit->a].rank);
    case EDIT_STAGE:
        return arena_printf(arena, "stage of %s: %d instead of %d", task->name, edit->to,
                            task->stage);
    case EDIT_ADD_DEP: return describe_dep(pipeline, edit->a, edit->b, edit->to, "add", arena);
    case EDIT_REMOVE_DEP: {
        const struct dep *dep = &pipeline->deps[edit->a];
        return describe_dep(pipeline, dep->task, dep->on, dep->distance, "remove", arena);
    }
    case EDIT_GROUP:
    case EDIT_TASK_STREAM: return describe_place(plan, edit, arena);
    case EDIT_MERGE_GROUPS:
        return arena_printf(arena, "thread_group %s does the work of %s",
                            plan->groups.items[edit->b], plan->groups.items[edit->a]);
    case EDIT_TASK_SYNC:
        return arena_printf(arena, "%s of %s: stream", edit->to ? "sync_after" : "host_sync",
                            task->name);
    case EDIT_GLOBAL_ORDER:
        return arena_printf(arena, "globally_ordered of %s: %s", task->name,
                            edit->to ? "true" : "false");
    default: return describe_knob(plan, edit, arena);
    }
}
