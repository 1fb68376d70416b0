/* SPDX-License-Identifier: Apache-2.0 */
/* edits_pipeline.c - edits of a pipeline: knobs of the drivers, order, stages, dependences, threads
   and streams. */
#include "edits_internal.h"

#include <string.h>

#include "plan/crossing.h"
#include "plan/order.h"
#include "plan/keywords.h"
#include "base/assert_index.h"

enum { MAX_RELATED = 64, MISSED_ORDER = 14 };

static int near_task(const struct proposer *proposer, size_t task)
{
    return proposer->near[0][task];
}

static int near_both(const struct proposer *proposer, size_t one, size_t other)
{
    return near_task(proposer, one) + near_task(proposer, other);
}

void edits_stage_range(const struct pipeline *pipeline, size_t skip, int *lowest, int *highest)
{
    *lowest = PLAN_MAX_STAGE;
    *highest = 0;
    for (size_t t = 0; t < pipeline->task_count; t++) {
        int stage = pipeline->tasks[t].stage;
        if (t == skip)
            continue;
        *lowest = stage < *lowest ? stage : *lowest;
        *highest = stage > *highest ? stage : *highest;
    }
}

/* ---- proposals ------------------------------------------------------------------------------- */

/* A repair gives all the fewest: where that is none it would leave no work. */
static bool has_unequal_batches(const struct pipeline *pipeline)
{
    bool unequal = false;
    for (size_t i = 0; i < pipeline->batch_count; i++) {
        if (pipeline->batches[i] == 0)
            return false;
        unequal = unequal || pipeline->batches[i] != pipeline->batches[0];
    }
    return unequal;
}

static void propose_knobs(struct proposer *proposer)
{
    const struct pipeline *pipeline = &proposer->plan->pipeline;
    if (pipeline->retire != RETIRE_DEVICE)
        propose(proposer, (struct edit){.kind = EDIT_RETIRE}, 0, 0);
    if (pipeline->forget_done != FORGET_NEVER)
        propose(proposer, (struct edit){.kind = EDIT_FORGET_DONE}, 0, 0);
    if (pipeline->retired_dep != RETIRED_DEP_WAIT)
        propose(proposer, (struct edit){.kind = EDIT_RETIRED_DEP}, 0, 0);
    if (pipeline->slot_reset != SLOT_RESET_ADMIT)
        propose(proposer, (struct edit){.kind = EDIT_SLOT_RESET}, 0, 0);
    if (pipeline->ticket_at != TICKET_AT_PIPELINED)
        propose(proposer, (struct edit){.kind = EDIT_TICKET_AT}, 0, 0);
    if (pipeline->num_slots_given)
        propose(proposer, (struct edit){.kind = EDIT_NUM_SLOTS}, 0, 0);
    propose(proposer, (struct edit){.kind = EDIT_ELIDE, .to = !pipeline->elide_same_stream}, 0, 0);
    if (has_unequal_batches(pipeline))
        propose(proposer, (struct edit){.kind = EDIT_BATCHES}, 0, 0);
}

static void propose_depth(struct proposer *proposer)
{
    const struct pipeline *pipeline = &proposer->plan->pipeline;
    int now = pipeline->max_depth_given ? pipeline->max_depth : pipeline->depth;
    for (int by = 1; by <= 2; by++) {
        if (now - by >= 1)
            propose(proposer, (struct edit){.kind = EDIT_MAX_DEPTH, .to = now - by, .alone = true},
                    0, by);
        if (proposer->hang && now + by <= PLAN_MAX_DEPTH)
            propose(proposer, (struct edit){.kind = EDIT_MAX_DEPTH, .to = now + by}, 0, by);
    }
}

static void propose_order(struct proposer *proposer)
{
    const struct plan *plan = proposer->plan;
    const struct pipeline *pipeline = &plan->pipeline;
    static const int preference[] = {
        [ORDER_READY_FIRST] = 0, [ORDER_STAGE_DESCENDING] = 1, [ORDER_STAGE_ASCENDING] = 4};
    for (int rule = ORDER_READY_FIRST; rule < ORDER_EXPLICIT; rule++)
        if ((int)pipeline->order.kind != rule)
            propose(proposer, (struct edit){.kind = EDIT_ORDER_RULE, .to = rule}, 0,
                    preference[rule] + (pipeline->order.kind == ORDER_EXPLICIT ? 8 : 0));
    for (size_t i = 0; i < pipeline->override_count; i++)
        if (pipeline->overrides[i].has_order)
            propose(proposer, (struct edit){.kind = EDIT_OVERRIDE_ORDER, .a = (int)i}, 0, 0);
    int *order = ARENA_ARRAY(proposer->arena, pipeline->task_count, int);
    struct diag unused;
    diag_init(&unused);
    bool known = order && order_enqueue(plan, 0, order, &unused) == STATUS_OK;
    diag_fini(&unused);
    for (size_t i = 0; known && i < pipeline->task_count; i++)
        for (size_t k = i + 1; k < pipeline->task_count; k++)
            propose(proposer, (struct edit){.kind = EDIT_ORDER_MOVE, .a = order[k], .b = order[i]},
                    near_both(proposer, (size_t)order[i], (size_t)order[k]), (int)(k - i) - 1);
}

/* Stages up to two away. The lowest stage stays in use: an edit that leaves it empty only renames
   stages. Losing or gaining a period of depth costs more. */
static void propose_stages(struct proposer *proposer)
{
    const struct pipeline *pipeline = &proposer->plan->pipeline;
    int lowest, highest;
    edits_stage_range(pipeline, pipeline->task_count, &lowest, &highest);
    for (size_t t = 0; t < pipeline->task_count; t++) {
        int others_lowest, others_highest;
        edits_stage_range(pipeline, t, &others_lowest, &others_highest);
        for (int by = -2; by <= 2; by++) {
            int to = pipeline->tasks[t].stage + by;
            int deepest = to > others_highest ? to : others_highest;
            if (by == 0 || to < lowest || (to > lowest && others_lowest > lowest) ||
                to > PLAN_MAX_STAGE)
                continue;
            propose(proposer, (struct edit){.kind = EDIT_STAGE, .a = (int)t, .to = to},
                    near_task(proposer, t), (by * by > 1 ? 10 : 0) + (deepest != highest ? 6 : 0));
        }
    }
}

static int find_dep(const struct pipeline *pipeline, int task, int on, int distance)
{
    for (size_t i = 0; i < pipeline->dep_count; i++)
        if (pipeline->deps[i].task == task && pipeline->deps[i].on == on &&
            pipeline->deps[i].distance == distance)
            return (int)i;
    return -1;
}

/* True if there is a buffer in both lists. Of every iteration's own ones only, if `own`. */
static bool edits_pipeline_shares_buffer(const struct plan *plan, const struct index_list *a,
                                         const struct index_list *b, bool own)
{
    for (size_t i = 0; i < a->count; i++)
        for (size_t k = 0; k < b->count; k++)
            if (a->items[i] == b->items[k] &&
                (!own || plan->buffers[a->items[i]].scope == SCOPE_ITERATION))
                return true;
    return false;
}

/* Within an iteration a reader comes after its writer and in no lower a stage. */
static int dep_oddness(const struct plan *plan, const struct task *task, const struct task *on,
                       int distance)
{
    int oddness = 3 * distance;
    if (distance == 0 && on->stage > task->stage)
        oddness += 12;
    if (distance == 0 && !edits_pipeline_shares_buffer(plan, &task->reads, &on->writes, false))
        oddness += 2;
    return oddness;
}

/* Matrices over pairs of tasks, [a * count + b], of one iteration: */
struct relations {
    size_t count;
    bool *feeds;   /* a writes what b reads */
    bool *flows;   /* and by way of others */
    bool *follows; /* b comes after a by the plan's dependences; every task after itself */
};

static void close_transitively(bool *matrix, size_t count)
{
    for (size_t via = 0; via < count; via++)
        for (size_t a = 0; a < count; a++)
            for (size_t b = 0; matrix[a * count + via] && b < count; b++)
                matrix[a * count + b] |= matrix[via * count + b];
}

/* False: too many tasks to look at all pairs of pairs, or no memory. */
static bool find_relations(const struct proposer *proposer, struct relations *out)
{
    const struct plan *plan = proposer->plan;
    const struct pipeline *pipeline = &plan->pipeline;
    size_t count = out->count = pipeline->task_count;
    if (count > MAX_RELATED)
        return false;
    out->feeds = ARENA_ARRAY(proposer->arena, count * count, bool);
    out->flows = ARENA_ARRAY(proposer->arena, count * count, bool);
    out->follows = ARENA_ARRAY(proposer->arena, count * count, bool);
    if (!out->feeds || !out->flows || !out->follows)
        return false;
    for (size_t a = 0; a < count; a++)
        for (size_t b = 0; b < count; b++)
            out->feeds[a * count + b] = out->flows[a * count + b] =
                a != b && edits_pipeline_shares_buffer(plan, &pipeline->tasks[a].writes,
                                                       &pipeline->tasks[b].reads, true);
    for (size_t t = 0; t < count; t++)
        out->follows[t * count + t] = true;
    for (size_t i = 0; i < pipeline->intra_count; i++)
        out->follows[(size_t)pipeline->deps[i].on * count + (size_t)pipeline->deps[i].task] = true;
    close_transitively(out->flows, count);
    close_transitively(out->follows, count);
    return true;
}

/* How many more readers would come after their writers by a dependence of `task` on `on`. */
static int count_gain(const struct relations *relations, size_t task, size_t on)
{
    size_t count = relations->count;
    int gain = 0;
    for (size_t a = 0; a < count; a++)
        for (size_t b = 0; relations->follows[a * count + on] && b < count; b++)
            gain += relations->feeds[a * count + b] && !relations->follows[a * count + b] &&
                    relations->follows[task * count + b];
    return gain;
}

/* A dependence that makes a task wait, within the iteration, for those that use its data would be
   proved, but means to read them before they are written: it is not proposed. */
static bool is_sensible_dep(const struct proposer *proposer, const struct relations *relations,
                            size_t task, size_t on, int distance)
{
    bool backwards = distance == 0 && relations && relations->flows[task * relations->count + on];
    return task != on && !backwards &&
           find_dep(&proposer->plan->pipeline, (int)task, (int)on, distance) < 0;
}

static int best_gain(const struct proposer *proposer, const struct relations *relations)
{
    int best = 0;
    for (size_t t = 0; relations && t < relations->count; t++)
        for (size_t on = 0; on < relations->count; on++)
            if (is_sensible_dep(proposer, relations, t, on, 0)) {
                int gain = count_gain(relations, t, on);
                best = gain > best ? gain : best;
            }
    return best;
}

/* The more data it puts in order, the better. */
static void propose_dep(struct proposer *proposer, const struct relations *relations, int best,
                        size_t task, size_t on, int distance)
{
    const struct plan *plan = proposer->plan;
    const struct pipeline *pipeline = &plan->pipeline;
    int missed = distance == 0 && relations ? best - count_gain(relations, task, on) : 0;
    ASSERT_INDEX(on, pipeline->task_count);
    ASSERT_INDEX(task, pipeline->task_count);
    propose(proposer,
            (struct edit){.kind = EDIT_ADD_DEP, .a = (int)task, .b = (int)on, .to = distance},
            near_both(proposer, task, on),
            MISSED_ORDER * missed +
                dep_oddness(plan, &pipeline->tasks[task], &pipeline->tasks[on], distance));
}

static void propose_deps(struct proposer *proposer)
{
    const struct pipeline *pipeline = &proposer->plan->pipeline;
    struct relations found, *relations = find_relations(proposer, &found) ? &found : NULL;
    int best = best_gain(proposer, relations);
    for (size_t t = 0; t < pipeline->task_count; t++)
        for (size_t on = 0; on < pipeline->task_count; on++)
            for (int distance = 0; distance <= 2; distance++)
                if (is_sensible_dep(proposer, relations, t, on, distance))
                    propose_dep(proposer, relations, best, t, on, distance);
    for (size_t i = 0; i < pipeline->dep_count; i++) {
        const struct dep *dep = &pipeline->deps[i];
        propose(proposer, (struct edit){.kind = EDIT_REMOVE_DEP, .a = (int)i, .weakens = true},
                near_both(proposer, (size_t)dep->task, (size_t)dep->on), 0);
    }
}

static bool is_alone(const struct pipeline *pipeline, size_t task, bool in_group)
{
    for (size_t t = 0; t < pipeline->task_count; t++) {
        const struct task *a = &pipeline->tasks[task], *b = &pipeline->tasks[t];
        if (t != task && (in_group ? a->group == b->group : a->stream == b->stream))
            return false;
    }
    return true;
}

static void propose_places(struct proposer *proposer)
{
    const struct plan *plan = proposer->plan;
    const struct pipeline *pipeline = &plan->pipeline;
    for (size_t t = 0; t < pipeline->task_count; t++) {
        const struct task *task = &pipeline->tasks[t];
        int near = near_task(proposer, t);
        struct edit group = {.kind = EDIT_GROUP, .a = (int)t, .to = -1};
        struct edit stream = {.kind = EDIT_TASK_STREAM, .a = (int)t, .to = -1};
        if (!is_alone(pipeline, t, true))
            propose(proposer, group, near, 0);
        if (!is_alone(pipeline, t, false))
            propose(proposer, stream, near, 0);
        stream.alone = true;
        for (group.to = 0; group.to < (int)plan->groups.count; group.to++)
            if (group.to != task->group)
                propose(proposer, group, near, 6);
        for (stream.to = 0; stream.to < (int)plan->streams.count; stream.to++)
            if (stream.to != task->stream)
                propose(proposer, stream, near, 6);
    }
    for (int a = 0; a < (int)plan->groups.count; a++)
        for (int b = 0; b < a; b++)
            propose(proposer,
                    (struct edit){.kind = EDIT_MERGE_GROUPS, .a = a, .b = b, .alone = true}, 0, 0);
}

static void propose_global_order(struct proposer *proposer)
{
    const struct pipeline *pipeline = &proposer->plan->pipeline;
    int unordered = 0;
    for (size_t t = 0; t < pipeline->task_count; t++) {
        const struct task *task = &pipeline->tasks[t];
        unordered += edits_communicates(task) && !task->globally_ordered;
        propose(
            proposer,
            (struct edit){.kind = EDIT_GLOBAL_ORDER, .a = (int)t, .to = !task->globally_ordered},
            near_task(proposer, t), task->globally_ordered ? 10 : 0);
    }
    if (unordered > 0)
        propose(proposer, (struct edit){.kind = EDIT_ORDER_COMMS}, 0, 0);
}

/* A CPU part waits for the stream of its task, behind its dependences; device work is waited for by its own thread. */
static void propose_syncs(struct proposer *proposer)
{
    const struct pipeline *pipeline = &proposer->plan->pipeline;
    for (size_t t = 0; t < pipeline->task_count; t++) {
        const struct task *task = &pipeline->tasks[t];
        const bool after = task->work.kind != WORK_HOST;
        if ((after ? task->sync_after : task->host_sync) == HOST_SYNC_NONE)
            propose(proposer, (struct edit){.kind = EDIT_TASK_SYNC, .a = (int)t, .to = after},
                    near_task(proposer, t), after ? 6 : 0);
    }
}

static void propose_holds(struct proposer *proposer)
{
    const struct pipeline *pipeline = &proposer->plan->pipeline;
    for (size_t t = 0; t < pipeline->task_count; t++)
        if (pipeline->tasks[t].holds.count > 1) {
            propose(proposer, (struct edit){.kind = EDIT_SORT_HOLDS}, 0, 0);
            return;
        }
}

static void propose_scopes(struct proposer *proposer)
{
    const struct crossing *crossings = crossings_find(proposer->plan, proposer->arena);
    for (size_t b = 0; crossings && b < proposer->plan->buffer_count; b++)
        if (crossings[b].first >= 0)
            propose(proposer, (struct edit){.kind = EDIT_DECLARE, .a = (int)b}, 0, 0);
}

void propose_pipeline(struct proposer *proposer)
{
    propose_scopes(proposer);
    propose_knobs(proposer);
    propose_depth(proposer);
    propose_order(proposer);
    propose_stages(proposer);
    propose_deps(proposer);
    propose_places(proposer);
    propose_global_order(proposer);
    propose_syncs(proposer);
    propose_holds(proposer);
}

/* ---- edits, made and described --------------------------------------------------------------- */

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
    ASSERT_INDEX(which, pipeline->override_count);
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
static int edits_pipeline_place(struct plan *plan, struct names *names, const struct edit *edit)
{
    if (edit->to >= 0)
        return edit->to;
    const char *name = fresh_name(plan, names, plan->pipeline.tasks[edit->a].name);
    return name ? names_intern(names, &plan->arena, name) : -1;
}

static bool set_group(struct plan *plan, const struct edit *edit)
{
    int group = edits_pipeline_place(plan, &plan->groups, edit);
    if (group >= 0)
        SET_TASK(plan, edit->a, group, group);
    return group >= 0;
}

static bool set_stream(struct plan *plan, const struct edit *edit)
{
    int stream = edits_pipeline_place(plan, &plan->streams, edit);
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
    case EDIT_TICKET_AT: pipeline->ticket_at = TICKET_AT_PIPELINED; return true;
    case EDIT_NUM_SLOTS: pipeline->num_slots_given = false; return true;
    case EDIT_ELIDE: pipeline->elide_same_stream = edit->to; return true;
    case EDIT_BATCHES: return equal_batches(plan);
    case EDIT_DECLARE:
        plan->buffers[edit->a].scope = SCOPE_SHARED;
        plan->buffers[edit->a].declared = true;
        plan->buffers[edit->a].input = plan->inputs_given;
        return true;
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

static const char *edits_pipeline_order_text(const struct order_spec *order)
{
    return order->kind == ORDER_EXPLICIT ? "the list" : keywords_order[order->kind];
}

static const char *describe_dep(const struct pipeline *pipeline, int task, int on, int distance,
                                const char *verb, struct arena *arena)
{
    ASSERT_INDEX(on, pipeline->task_count);
    ASSERT_INDEX(task, pipeline->task_count);
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

static const char *edits_pipeline_describe_place(const struct plan *plan, const struct edit *edit,
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
    case EDIT_TICKET_AT:
        return arena_printf(arena, "ticket_at: pipelined instead of %s",
                            keywords_ticket_at[pipeline->ticket_at]);
    case EDIT_NUM_SLOTS:
        return arena_printf(arena,
                            "num_slots: the default, depth plus largest distance, instead "
                            "of %d",
                            pipeline->num_slots);
    case EDIT_ELIDE:
        return edit->to ? "elide_same_stream: true, no waits for one's own stream"
                        : "elide_same_stream: false, a wait for every dependence";
    case EDIT_DECLARE:
        return arena_printf(arena, "buffer %s: scope shared, one for all iterations",
                            plan->buffers[edit->a].name);
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
                            edits_pipeline_order_text(&pipeline->order));
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
    case EDIT_TASK_STREAM: return edits_pipeline_describe_place(plan, edit, arena);
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
