/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - lifetime, look-up and names of a plan; see plan.h. */
#include "plan.h"

#include "keywords.h"
#include "base/array.h"
#include "base/list_key.h"
#include "base/sort.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

void plan_init(struct plan *plan)
{
    *plan = (struct plan){.ranks = 1};
    arena_init(&plan->arena, 0);
}

void plan_fini(struct plan *plan)
{
    arena_fini(&plan->arena);
    *plan = (struct plan){0};
}

static bool is_unrecorded(const struct plan *plan, const char *what)
{
    for (size_t i = 0; i < plan->unrecorded_count; i++)
        if (strcmp(plan->unrecorded[i].what, what) == 0)
            return true;
    return false;
}

enum status plan_error_at(const struct plan *plan, struct diag *diag, struct mark mark,
                          const char *format, ...)
{
    va_list args;
    va_start(args, format);
    enum status status = diag_verror_at(diag, plan->file, plan->text, mark, format, args);
    va_end(args);
    return status;
}

bool plan_add_unrecorded(struct plan *plan, const char *what, const char *why)
{
    if (what && why && is_unrecorded(plan, what))
        return true;
    if (!what || !why ||
        !ARENA_GROW(&plan->arena, plan->unrecorded, plan->unrecorded_count, plan->unrecorded_cap))
        return false;
    plan->unrecorded[plan->unrecorded_count++] = (struct unrecorded){what, why};
    return true;
}

bool plan_is_unexplained(const struct plan *plan)
{
    return plan->unexplained.millionths > SHARE_WHOLE / 20;
}

int plan_replicas(const struct plan *plan)
{
    const struct parallel_spec *spec = &plan->programs.parallel;
    if (spec->given)
        return spec->size[DIM_TP] * spec->size[DIM_CP] * spec->size[DIM_DP];
    return plan->programs.fsdp_replicas > 1 ? plan->programs.fsdp_replicas : 1;
}

int plan_rank_count(const struct plan *plan)
{
    return plan->ranks * (plan->form == FORM_PROGRAMS ? plan_replicas(plan) : 1);
}

static const struct rank_override *find_override(const struct plan *plan, int rank)
{
    const struct pipeline *pipeline = &plan->pipeline;
    const size_t count = pipeline->override_count;
    size_t place = 0;
    if (pipeline->overrides_ascend)
        place = SORT_FIRST(i, 0, count, pipeline->overrides[i].rank >= rank);
    else
        while (place < count && pipeline->overrides[place].rank != rank)
            place++;
    return place < count && pipeline->overrides[place].rank == rank ? &pipeline->overrides[place]
                                                                    : NULL;
}

const struct task *plan_tasks(const struct plan *plan, int rank)
{
    const struct rank_override *override = find_override(plan, rank);
    return override && override->tasks ? override->tasks : plan->pipeline.tasks;
}

const struct task *plan_task(const struct plan *plan, int rank, int task)
{
    assert(task >= 0 && (size_t)task < plan->pipeline.task_count);
    return &plan_tasks(plan, rank)[task];
}

bool plan_is_for_any_ranks(const struct plan *plan)
{
    const struct pipeline *pipeline = &plan->pipeline;
    if (plan->form != FORM_PIPELINE || pipeline->override_count > 0 || pipeline->batches)
        return false;
    for (size_t c = 0; c < plan->comm_count; c++)
        if (plan->comms[c].members)
            return false;
    for (int t = 0; t < (int)pipeline->task_count; t++)
        if (plan_task(plan, 0, t)->work.kind == WORK_COLLECTIVE &&
            plan_task(plan, 0, t)->work.root > 0)
            return false;
    return true;
}

bool plan_ranks_meet_alone(const struct plan *plan)
{
    const struct machine_spec *machine = &plan->machine;
    bool alone = plan_is_for_any_ranks(plan) && machine->cores == 0 && machine->memory.count <= 1 &&
                 !machine->share_device && !machine->first_use_blocks;
    for (int t = 0; alone && t < (int)plan->pipeline.task_count; t++) {
        const struct work *work = &plan_task(plan, 0, t)->work;
        alone = work->kind == WORK_COLLECTIVE || work->comm < 0;
    }
    for (size_t c = 0; c < plan->comm_count; c++)
        alone &= plan->comms[c].time_limit_ns == 0;
    return alone;
}

static bool same_list(const struct index_list *a, const struct index_list *b)
{
    return a->count == b->count &&
           (a->count == 0 || memcmp(a->items, b->items, a->count * sizeof *a->items) == 0);
}

/* True if the two match as a collective, and block in the same way. */
static bool plan_same_work(const struct work *a, const struct work *b)
{
    return a->kind == b->kind && a->collective == b->collective &&
           (a->kind != WORK_COLLECTIVE ||
            (a->bytes == b->bytes && a->root == b->root && a->element == b->element)) &&
           a->pageable == b->pageable;
}

bool plan_same_task(const struct task *a, const struct task *b)
{
    return a->stage == b->stage && a->stream == b->stream && a->group == b->group &&
           a->globally_ordered == b->globally_ordered && a->sm == b->sm && a->greedy == b->greedy &&
           a->host_sync == b->host_sync && a->sync_after == b->sync_after &&
           plan_same_work(&a->work, &b->work) && same_list(&a->holds, &b->holds) &&
           same_list(&a->reads, &b->reads) && same_list(&a->writes, &b->writes);
}

void plan_set_host_time(struct task *task, int64_t time_ns)
{
    const int64_t total_ns = task->host_time_ns + task->host_after_ns;
    const double share = total_ns > 0 ? (double)task->host_after_ns / (double)total_ns : 0;
    task->host_after_ns = (int64_t)(share * (double)time_ns);
    task->host_time_ns = time_ns - task->host_after_ns;
}

bool plan_is_only_cpu(const struct plan *plan, const struct task *task)
{
    return task->work.kind == WORK_NONE && task->time_ns == 0 &&
           task->host_time_ns + task->host_after_ns > 0 &&
           (task->stream < 0 ||
            strcmp(plan->streams.items[task->stream], PLAN_IMPLICIT_STREAM) == 0);
}

int plan_repeats(const struct plan *plan)
{
    int most = 0;
    for (size_t t = 0; t < plan->thread_count; t++)
        for (size_t i = 0; i < plan->threads[t].repeat_count; i++)
            if (plan->threads[t].repeats[i].times > most)
                most = plan->threads[t].repeats[i].times;
    return most;
}

const struct order_spec *plan_order(const struct plan *plan, int rank)
{
    const struct rank_override *override = find_override(plan, rank);
    return override && override->has_order ? &override->order : &plan->pipeline.order;
}

int plan_find_task(const struct plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->pipeline.task_count; i++)
        if (strcmp(plan->pipeline.tasks[i].name, name) == 0)
            return (int)i;
    return -1;
}

enum { SMALL_NAMES = 32 };

int names_find(const struct names *names, const char *name)
{
    if (names->count >= SMALL_NAMES && names->table.count == names->count) {
        const uint32_t found =
            TABLE_FIND(&names->table, table_hash_name(name), i, strcmp(names->items[i], name) == 0);
        return found == TABLE_NONE ? -1 : (int)found;
    }
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i], name) == 0)
            return (int)i;
    return -1;
}

/* Put the names into the hash table that are not there yet. */
static bool names_index(struct names *names, struct arena *arena)
{
    for (size_t i = names->table.count; names->count >= SMALL_NAMES && i < names->count; i++)
        if (!table_add_in(&names->table, arena, table_hash_name(names->items[i]), i))
            return false;
    return true;
}

struct mark names_mark(const struct names *names, size_t index)
{
    return index < names->mark_count ? names->marks[index] : (struct mark){0, 0};
}

int names_intern(struct names *names, struct arena *arena, const char *name)
{
    int found = names_find(names, name);
    if (found >= 0)
        return found;
    const char *copy = arena_strdup(arena, name);
    if (!copy || !ARENA_GROW(arena, names->items, names->count, names->cap))
        return -1;
    names->items[names->count++] = copy;
    if (names_index(names, arena))
        return (int)names->count - 1;
    names->count--;
    return -1;
}

const struct stream_spec *plan_stream_spec(const struct plan *plan, int stream)
{
    for (size_t i = 0; i < plan->stream_spec_count; i++)
        if (plan->stream_specs[i].stream == stream)
            return &plan->stream_specs[i];
    return NULL;
}

const struct stream_spec *plan_legacy_stream(const struct plan *plan)
{
    for (size_t i = 0; i < plan->stream_spec_count; i++)
        if (plan->stream_specs[i].legacy)
            return &plan->stream_specs[i];
    return NULL;
}

const struct flag_spec *plan_flag_spec(const struct plan *plan, const char *name)
{
    const uint32_t found = TABLE_FIND(&plan->flag_table, table_hash_name(name), i,
                                      strcmp(plan->flag_specs[i].name, name) == 0);
    return found == TABLE_NONE ? NULL : &plan->flag_specs[found];
}

bool plan_add_flag_spec(struct plan *plan, const struct flag_spec *spec)
{
    if (!ARENA_GROW(&plan->arena, plan->flag_specs, plan->flag_spec_count, plan->flag_spec_cap) ||
        !table_add_in(&plan->flag_table, &plan->arena, table_hash_name(spec->name),
                      plan->flag_spec_count))
        return false;
    plan->flag_specs[plan->flag_spec_count++] = *spec;
    return true;
}

bool plan_flag_per_iteration(struct plan *plan, const char *name)
{
    if (plan_flag_spec(plan, name))
        return true;
    const struct flag_spec spec = {.name = arena_strdup(&plan->arena, name),
                                   .scope = SCOPE_ITERATION};
    return spec.name && plan_add_flag_spec(plan, &spec);
}

enum flag_rule host_op_flag_use(const struct host_op *op, int64_t *value)
{
    const struct flag_use *use = &op->flag_use;
    *value = op->kind == OP_CLEAR ? 0 : 1;
    if (use->given)
        *value = use->base + use->each * (op->iteration > 0 ? op->iteration - 1 : 0);
    if (op->kind == OP_ACQUIRE)
        return FLAG_TAKES;
    return use->given                                        ? use->rule
           : op_takes(op->kind) || op->kind == OP_QUERY_FLAG ? FLAG_AT_LEAST
                                                             : FLAG_SETS;
}

const struct host_op *host_op_behind_branch(const struct host_op *op)
{
    while (!op_ends_branch(op->kind))
        op = host_op_behind(op);
    return op;
}

const struct host_op *host_op_behind(const struct host_op *op)
{
    if (!op->has_branches)
        return op + 1;
    const struct host_op *end = host_op_behind_branch(op + 1);
    if (end->kind == OP_ELSE)
        end = host_op_behind_branch(end + 1);
    return end + 1;
}

const char *plan_object_name(const struct plan *plan, const struct host_op *op)
{
    if (op->object < 0)
        return NULL;
    switch (op_operand(op->kind)) {
    case OPERAND_EVENT: return plan->events.items[op->object];
    case OPERAND_FLAG: return plan->flags.items[op->object];
    case OPERAND_QUEUE: return plan->queues[op->object].name;
    case OPERAND_LOCK: return plan->locks.items[op->object];
    case OPERAND_BARRIER: return plan->barriers.items[op->object];
    case OPERAND_BUFFER: return plan->buffers[op->object].name;
    case OPERAND_COMM: /* one or several: op->aborted */
    case OPERAND_TURN:
    case OPERAND_SUBMISSION:
    case OPERAND_NONE: break;
    }
    return NULL;
}

struct host_accesses *host_op_make_accesses(struct host_op *op, struct arena *arena)
{
    if (!op->accesses)
        op->accesses = ARENA_ARRAY(arena, 1, struct host_accesses);
    return op->accesses;
}

static const struct host_details no_details = {.work = {.comm = -1, .peer = -1, .root = -1}};

const struct host_details *host_op_details(const struct host_op *op)
{
    return op->details ? op->details : &no_details;
}

struct host_details *host_op_make_details(struct host_op *op, struct arena *arena)
{
    return op->details ? op->details : host_op_own_details(op, arena);
}

struct host_details *host_op_own_details(struct host_op *op, struct arena *arena)
{
    struct host_details *own = ARENA_ARRAY(arena, 1, struct host_details);
    if (own) {
        *own = *host_op_details(op);
        op->details = own;
    }
    return own;
}

struct work host_op_work(const struct host_op *op)
{
    struct work work = no_details.work;
    if (op->kind == OP_LAUNCH)
        return host_op_details(op)->work;
    work.bytes = host_op_bytes(op);
    if (op->kind == OP_COPY) {
        work.kind = WORK_COPY;
        work.direction = op->direction;
        work.pageable = op->pageable;
    } else if (op->kind == OP_COLLECTIVE) {
        work.kind = WORK_COLLECTIVE;
        work.collective = op->collective;
        work.element = host_op_details(op)->work.element;
        work.elements = host_op_details(op)->work.elements;
        work.root = op->root;
        work.comm = op->comm;
    }
    return work;
}

bool host_op_has_stream(const struct host_op *op)
{
    return op_pushes(op->kind) || op->kind == OP_RECORD_STREAM ||
           host_op_looks_at(op, SYNC_STREAM) ||
           (op->kind == OP_FREE && op->stream >= 0); /* cudaFreeAsync */
}

const char *element_key(enum element element)
{
    return keywords_element[element];
}

int64_t element_bytes(enum element element)
{
    static const int64_t bytes[] = {
#define X(name, key, size) size,
        ELEMENT_LIST(X)
#undef X
    };
    return bytes[element];
}

const char *work_key(enum work_kind kind)
{
    static const char *const keys[] = {WORK_LIST(LIST_KEY)};
    return keys[kind];
}

const char *direction_key(enum direction direction)
{
    return keywords_direction[direction];
}

const char *collective_key(enum collective_kind kind)
{
    return keywords_collective[kind];
}

const char *dtype_key(enum dtype dtype)
{
    return keywords_dtype[dtype];
}

int dtype_bytes(enum dtype dtype)
{
#define X(name, key, bytes) bytes,
    static const int sizes[] = {DTYPE_LIST(X)};
#undef X
    return sizes[dtype];
}

const char *action_text(enum action_kind kind)
{
    static const char *const texts[] = {ACTION_LIST(LIST_KEY)};
    return texts[kind];
}

bool action_has_microbatch(enum action_kind kind)
{
#define X(name, text, microbatch) microbatch,
    static const bool has[] = {ACTION_LIST(X)};
#undef X
    return has[kind];
}

static const enum action_kind passes[] = {
    [COST_F] = ACTION_F, [COST_I] = ACTION_I, [COST_W] = ACTION_W, [COST_B] = ACTION_B};

enum action_kind action_of_cost(enum cost cost)
{
    return passes[cost];
}

bool action_cost(enum action_kind kind, enum cost *out)
{
    for (int cost = COST_F; cost <= COST_B; cost++)
        if (passes[cost] == kind) {
            *out = (enum cost)cost;
            return true;
        }
    return false;
}
