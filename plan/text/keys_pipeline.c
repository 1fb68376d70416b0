/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys_pipeline.c - the pipeline form: tasks, their work, dependences, orders, overrides.
 *
 * Whether a property of a task is printed is decided by comparing with the task it would be
 * without: one with all defaults, or for a rank's override the task as the other ranks have it.
 */
#include <assert.h>
#include <string.h>

#include "text_internal.h"

enum { SHOWN_CYCLE = 12 };

/* ---- work ------------------------------------------------------------------------------------ */

#define DTYPE                                                                                      \
    FIELD("dtype", struct work, dtype, word, "The type of the numbers.", .words = keywords_dtype,  \
          .always = true)
static const struct field gemm_fields[] = {
    FIELD("m", struct work, m, int64, "The rows of the product.", .required = true, .min = 1,
          .max = 1 << 30),
    FIELD("n", struct work, n, int64, "The columns of the product.", .required = true, .min = 1,
          .max = 1 << 30),
    FIELD("k", struct work, k, int64, "The length of the sums.", .required = true, .min = 1,
          .max = 1 << 30),
    DTYPE,
};
static const struct keys gemm_keys =
    KEYS(gemm_fields, "\"gemm\"", "a mapping such as {m: 512, n: 512, k: 512}");

static const struct field gather_fields[] = {
    FIELD("rows", struct work, rows, int64, "The rows that are gathered.", .required = true,
          .min = 1, .max = INT64_C(1) << 40),
    FIELD("dim", struct work, dim, int64, "The numbers of a row.", .required = true, .min = 1,
          .max = 1 << 30),
    DTYPE,
};
static const struct keys gather_keys =
    KEYS(gather_fields, "\"gather\"", "a mapping such as {rows: 4096, dim: 128}");

static const struct field axpy_fields[] = {
    FIELD("elements", struct work, elements, int64, "The numbers of each vector.", .required = true,
          .min = 1, .max = INT64_C(1) << 40),
};
static const struct keys axpy_keys =
    KEYS(axpy_fields, "\"axpy\"", "a mapping such as {elements: 65536}");

static const struct field copy_fields[] = {
    FIELD("copy", struct work, direction, word, "A copy, and its direction.", .always = true,
          .words = keywords_direction),
    FIELD("bytes", struct work, bytes, bytes, "The bytes that are copied.", .required = true),
    FIELD("pageable", struct work, pageable, boolean,
          "Whether the memory of the host is pageable, so that the copy may block it."),
};

#define WORK_COMM                                                                                  \
    FIELD("comm", struct work, comm, symbol, "The communicator.", .required = true,                \
          .table = TABLE_COMMS)
#define WORK_BYTES                                                                                 \
    FIELD("bytes", struct work, bytes, bytes, "The bytes that are sent."),                         \
        FIELD("dtype", struct work, element, word,                                                 \
              "The type of its elements, which its peers must agree in.",                          \
              .words = keywords_element),                                                          \
        FIELD("count", struct work, elements, count,                                               \
              "The number of its elements, in place of bytes.", .max = PARSE_MAX_COUNT)
static const struct field collective_fields[] = {
    FIELD("collective", struct work, collective, word, "A collective, and its kind.",
          .always = true, .words = keywords_collective),
    WORK_COMM,
    FIELD("root", struct work, root, rank, "The rank that sends to all. The default is the lowest.",
          .max = PLAN_MAX_RANKS - 1, .otherwise = -1),
    WORK_BYTES,
};

#define WORK_MESSAGE(key, about)                                                                   \
    FIELD(key, struct work, tag, name, about),                                                     \
        FIELD("peer", struct work, peer, rank, "The other rank.", .required = true,                \
              .max = PLAN_MAX_RANKS - 1, .otherwise = -1),                                         \
        WORK_COMM, WORK_BYTES
static const struct field send_fields[] = {
    WORK_MESSAGE("send", "A message that is sent: its tag.")};
static const struct field recv_fields[] = {
    WORK_MESSAGE("recv", "A message that is received: its tag.")};

static const struct field gemm_work[] = {
    FIELD_OF_ALL("gemm", map, "A product of two matrices.", .keys = &gemm_keys)};
static const struct field gather_work[] = {
    FIELD_OF_ALL("gather", map, "A lookup of rows in a table.", .keys = &gather_keys)};
static const struct field axpy_work[] = {
    FIELD_OF_ALL("axpy", map, "A sum of two vectors.", .keys = &axpy_keys)};
static const struct field spin_work[] = {
    FIELD("spin", struct work, time_ns, time, "A kernel that takes this time.", .always = true)};
static const struct field host_work[] = {FIELD(
    "host", struct work, time_ns, time, "Work of the CPU alone, of this time.", .always = true)};

/* The keys of each kind of work; the first names the kind. */
static const struct work_syntax {
    const struct field *fields;
    size_t count;
} work_syntax[] = {
    [WORK_NONE] = {NULL, 0},
    [WORK_COPY] = {copy_fields, FIELD_COUNT(copy_fields)},
    [WORK_COLLECTIVE] = {collective_fields, FIELD_COUNT(collective_fields)},
    [WORK_SEND] = {send_fields, FIELD_COUNT(send_fields)},
    [WORK_RECV] = {recv_fields, FIELD_COUNT(recv_fields)},
    [WORK_GEMM] = {gemm_work, FIELD_COUNT(gemm_work)},
    [WORK_GATHER] = {gather_work, FIELD_COUNT(gather_work)},
    [WORK_AXPY] = {axpy_work, FIELD_COUNT(axpy_work)},
    [WORK_SPIN] = {spin_work, FIELD_COUNT(spin_work)},
    [WORK_HOST] = {host_work, FIELD_COUNT(host_work)},
};

/* The kind the mapping's first key names, else the first of its keys that names one. */
static enum work_kind find_work(const struct node *map)
{
    MAP_EACH (map, key, value)
        for (enum work_kind kind = WORK_COPY; kind <= WORK_HOST; kind++)
            if (strcmp(key->text, work_key(kind)) == 0)
                return kind;
    return WORK_NONE;
}

static bool field_work(PARSE_PARAMS)
{
    struct work work = {.comm = -1, .peer = -1, .root = -1};
    if (!parse_want_map(parser, value, "a mapping such as {copy: h2d, bytes: 64MiB}"))
        return false;
    work.kind = find_work(value);
    if (work.kind == WORK_NONE)
        return parse_error(parser, value->mark,
                           "found no kind of work, expected copy, collective, send, recv, gemm, "
                           "gather, axpy, spin or host");
    const struct work_syntax *syntax = &work_syntax[work.kind];
    if (!fields_parse(parser, value, syntax->fields, syntax->count, &work, "\"work\"") ||
        !parse_check_root(parser, value, work.collective, work.root) ||
        !parse_check_count(parser, value, work.element, work.elements, &work.bytes))
        return false;
    if (!parse_check_pageable(parser, value, work.direction))
        return false;
    *(struct work *)member = work;
    return true;
}

static void print_work(PRINT_PARAMS)
{
    const struct work *work = member;
    const struct work_syntax *syntax = &work_syntax[work->kind];
    assert(syntax->fields && work->kind != WORK_NONE);
    open_map(printer, FLOW);
    fields_print(printer, syntax->fields, syntax->count, work, NULL);
    close_map(printer);
}

static bool keys_pipeline_same_work(SAME_PARAMS)
{
    const struct work *a = member, *b = other;
    if (!b || a->kind == WORK_NONE)
        return a->kind == (b ? b->kind : WORK_NONE);
    const struct work_syntax *syntax = &work_syntax[a->kind];
    return a->kind == b->kind && fields_same(printer, syntax->fields, syntax->count, a, b);
}

static void schema_work(struct json *json, const struct field *field)
{
    json_begin_array_at(json, "anyOf");
    for (enum work_kind kind = WORK_COPY; kind <= WORK_HOST; kind++) {
        json_begin_object(json);
        schema_keys_with(json, work_syntax[kind].fields, work_syntax[kind].count, work_key(kind));
        json_end_object(json);
    }
    json_end_array(json);
}

const struct field_kind kind_work = {field_work, print_work, keys_pipeline_same_work,
                                     .schema = schema_work};

/* ---- tasks ----------------------------------------------------------------------------------- */

static const struct field task_fields[] = {
    FIELD("stage", struct task, stage, int,
          "The clock-driven driver works on iteration period - stage.", .max = PLAN_MAX_DEPTH - 1),
    FIELD("stream", struct task, stream, symbol, "The stream of its device part.",
          .table = TABLE_STREAMS),
    FIELD("thread_group", struct task, group, symbol, "The worker threads of its CPU part.",
          .table = TABLE_GROUPS),
    FIELD("globally_ordered", struct task, globally_ordered, boolean,
          "Whether all ranks push it in one order, by tickets."),
    FIELD("time", struct task, time_ns, time, "The time of its device part."),
    FIELD("host_time", struct task, host_time_ns, time, "The CPU time before the push."),
    FIELD("host_after", struct task, host_after_ns, time, "The CPU time behind the push."),
    FIELD("jitter", struct task, jitter, dist, "How time varies."),
    FIELD("host_jitter", struct task, host_jitter, dist, "How host_time and host_after vary."),
    FIELD(
        "greedy", struct task, greedy, boolean,
        "Whether its kernel starts with the slots that are free, up to sm, and takes more as they "
        "become free."),
    FIELD("sm", struct task, sm, slots, "The residency slots that its device part holds.",
          .max = 65536),
    FIELD("shares", struct task, shares, shares, "The shares of the device that it takes."),
    FIELD("reads", struct task, reads, symbols, "The buffers that it reads.",
          .table = TABLE_BUFFERS),
    FIELD("writes", struct task, writes, symbols, "The buffers that it writes.",
          .table = TABLE_BUFFERS),
    FIELD("work", struct task, work, work, "What a real run does."),
    FIELD("host_sync", struct task, host_sync, word, "What its CPU part waits for at first.",
          .words = keywords_host_sync),
    FIELD("sync_after", struct task, sync_after, word, "What its CPU part waits for at the end.",
          .words = keywords_host_sync),
    FIELD("holds", struct task, holds, symbols, "The locks that its CPU part takes, in this order.",
          .table = TABLE_LOCKS),
};
static const struct keys task_keys =
    KEYS(task_fields, "a task", "a task: a mapping such as {stage: 0, time: 1ms}");

void schema_task(struct json *json)
{
    schema_keys(json, task_fields, FIELD_COUNT(task_fields));
}

/* Where the key stands; one that a rank's override takes from the task of all ranks: where the override does. */
static struct mark task_key_mark(const struct node *map, const char *key)
{
    const struct node *value = node_find(map, key);
    return value ? value->mark : map->mark;
}

/* Refuse keys that another key leaves without effect, also where one of the two is that of all ranks. */
static bool check_keys(struct parser *parser, const struct node *map, const struct task *task)
{
    const enum work_kind kind = task->work.kind;
    if (kind == WORK_SPIN && task->time_ns > 0)
        return parse_error(
            parser, task_key_mark(map, "time"),
            "found \"time\" beside work \"spin\", expected one of them: a spin is its "
            "time");
    if (kind == WORK_HOST && task->sm > 0)
        return parse_error(
            parser, task_key_mark(map, "sm"),
            "found \"sm\" beside work \"host\", expected work of the device: the CPU "
            "takes no residency slots");
    if (task->greedy && (task->sm == 0 || kind == WORK_COPY || kind == WORK_COLLECTIVE ||
                         kind == WORK_SEND || kind == WORK_RECV))
        return parse_error(parser, task_key_mark(map, "greedy"),
                           "found \"greedy\" without a kernel and its \"sm\", expected the most "
                           "slots that it takes");
    if (kind == WORK_HOST && (task->host_after_ns > 0 || task->sync_after != HOST_SYNC_NONE)) {
        const char *behind = task->host_after_ns > 0 ? "host_after" : "sync_after";
        return parse_error(parser, task_key_mark(map, behind),
                           "found \"%s\" beside work \"host\", expected work of the device: the "
                           "CPU pushes nothing that it could stand behind",
                           behind);
    }
    return parse_check_jitter(parser, map, "jitter", "time", task->time_ns + task->work.time_ns) &&
           parse_check_jitter(parser, map, "host_jitter", "host_time",
                              task->host_time_ns + task->host_after_ns + task->work.time_ns);
}

static void parse_task(struct parser *parser, const struct node *key, const struct node *value,
                       struct task *task)
{
    *task = (struct task){.mark = key->mark, .stream = -1, .group = -1};
    task->work = (struct work){.comm = -1, .peer = -1, .root = -1};
    task->name = parse_keep(parser, key->text);
    if (keys_parse(parser, value, &task_keys, task))
        check_keys(parser, value, task);
    if (task->stream < 0)
        task->stream = symbol_implicit(parser, TABLE_STREAMS, PLAN_IMPLICIT_STREAM);
    if (task->group < 0)
        task->group = symbol_implicit(parser, TABLE_GROUPS, PLAN_IMPLICIT_GROUP);
}

void parse_schedule(struct parser *parser, const struct node *value)
{
    struct plan *plan = parser->plan;
    struct pipeline *pipeline = &plan->pipeline;
    if (!parse_want_map(parser, value, "a mapping from tasks to their properties"))
        return;
    if (value->length == 0 || value->length > PLAN_MAX_TASKS)
        parse_error(parser, value->mark, "found %zu tasks, expected from 1 to %d", value->length,
                    PLAN_MAX_TASKS);
    if (value->length == 0)
        return; /* too many are read: other keys name them */
    pipeline->tasks = PARSE_ARRAY(parser, value->length, struct task);
    if (!pipeline->tasks)
        return;
    READ_MAP (parser, value, key, properties) {
        if (!parse_name(parser, key, "a task's name") ||
            symbol_find(parser, TABLE_TASKS, key->text) >= 0)
            continue; /* a duplicate key is reported already */
        struct task *task = &pipeline->tasks[pipeline->task_count];
        parse_task(parser, key, properties, task);
        if (task->name && symbol_add(parser, TABLE_TASKS, task->name, (int)pipeline->task_count))
            pipeline->task_count++;
    }
}

/* The members that differ from `usual`. */
static void print_task(struct printer *printer, const struct task *task, const struct task *usual)
{
    put_text(printer, task->name);
    open_map(printer, BLOCK);
    fields_print(printer, task_fields, FIELD_COUNT(task_fields), task, usual);
    close_map(printer);
}

void print_schedule(struct printer *printer)
{
    const struct plan *plan = printer->plan;
    struct task usual = {.stage = -1};
    usual.stream = printer->default_stream;
    usual.group = printer->default_group;
    usual.work = (struct work){.comm = -1, .peer = -1, .root = -1};
    open_map(printer, BLOCK);
    for (size_t t = 0; t < plan->pipeline.task_count; t++)
        print_task(printer, &plan->pipeline.tasks[t], &usual);
    close_map(printer);
}

static const struct field_kind kind_task = {.refer = "task"};
const struct field task_field = {.kind = &kind_task};

/* ---- dependences ----------------------------------------------------------------------------- */

/* dep := [task, depends_on] | [task, depends_on, distance]; the third only between iterations */
static bool parse_dep(struct parser *parser, const struct node *item, bool inter, struct dep *out)
{
    const char *expected =
        inter ? "[task, depends_on] or [task, depends_on, distance]" : "[task, depends_on]";
    if (item->kind != NODE_LIST || item->length < 2 || item->length > (inter ? 3 : 2)) {
        if (!inter && item->kind == NODE_LIST && item->length == 3)
            expected = "[task, depends_on]; a distance belongs to inter_iter_deps";
        return parse_mismatch(parser, item, expected);
    }
    const struct node *task = item->first, *on = task->next, *distance = on->next;
    int64_t steps = inter;
    *out = (struct dep){.mark = item->mark};
    out->task = symbol_resolve(parser, TABLE_TASKS, task);
    out->on = symbol_resolve(parser, TABLE_TASKS, on);
    bool ok = !distance || parse_number(parser, distance, false, 1, PLAN_MAX_DISTANCE, &steps);
    out->distance = (int)steps;
    return ok && out->task >= 0 && out->on >= 0;
}

/* Append the dependences of one list to the plan's. */
static void parse_deps(struct parser *parser, const struct node *value, bool inter)
{
    struct pipeline *pipeline = &parser->plan->pipeline;
    if (!value || !parse_want_list(parser, value, "a list of [task, depends_on]"))
        return;
    struct dep *deps =
        ARENA_ARRAY(&parser->plan->arena, pipeline->dep_count + value->length, struct dep);
    if (!deps) {
        parse_no_memory(parser);
        return;
    }
    if (pipeline->dep_count)
        memcpy(deps, pipeline->deps, pipeline->dep_count * sizeof *deps);
    pipeline->deps = deps;
    READ_LIST (parser, value, item)
        pipeline->dep_count += parse_dep(parser, item, inter, &deps[pipeline->dep_count]);
}

/* The search for a cycle: a task is new, on the path from the root, or done. */
struct keys_pipeline_walk {
    struct parser *parser;
    int *first_dep; /* per task: where its dependences start in `sorted` */
    int *sorted;    /* indices of dependences, by task */
    int *path;      /* dependences from the root to here */
    enum { WALK_NEW, WALK_OPEN, WALK_DONE } * state;
};

/* "A waits for B, B waits for A", long cycles cut in the middle. */
static const char *cycle_text(struct keys_pipeline_walk *walk, int from, int depth)
{
    const struct pipeline *pipeline = &walk->parser->plan->pipeline;
    struct arena *scratch = &walk->parser->scratch;
    const char *text = "";
    for (int i = from; i <= depth && text; i++) {
        const struct dep *dep = &pipeline->deps[walk->path[i]];
        bool cut = i - from >= SHOWN_CYCLE && i < depth;
        if (cut && i - from == SHOWN_CYCLE)
            text = arena_printf(scratch, "%s, ...", text);
        if (!cut)
            text = arena_printf(scratch, "%s%s%s waits for %s", text, i > from ? ", " : "",
                                pipeline->tasks[dep->task].name, pipeline->tasks[dep->on].name);
    }
    return text ? text : "out of memory";
}

/* Depth first from `task`, without recursion; false when a cycle was found and reported. */
static bool walk_from(struct keys_pipeline_walk *walk, int root, int *next)
{
    const struct pipeline *pipeline = &walk->parser->plan->pipeline;
    int depth = 0, task = root; /* path[0 .. depth-1] leads from root to task */
    walk->state[root] = WALK_OPEN;
    for (;;) {
        if (next[task] == walk->first_dep[task + 1]) {
            walk->state[task] = WALK_DONE;
            if (depth == 0)
                return true;
            task = pipeline->deps[walk->path[--depth]].task;
            continue;
        }
        int edge = walk->sorted[next[task]++];
        int on = pipeline->deps[edge].on;
        if (walk->state[on] == WALK_DONE)
            continue;
        assert(depth <= (int)pipeline->task_count);
        walk->path[depth] = edge;
        if (walk->state[on] == WALK_OPEN) {
            int from = depth;
            while (pipeline->deps[walk->path[from]].task != on)
                from--;
            return parse_error(walk->parser, pipeline->deps[edge].mark,
                               "found a cycle within one iteration: %s; expected an order",
                               cycle_text(walk, from, depth));
        }
        walk->state[on] = WALK_OPEN;
        task = on;
        depth++;
    }
}

/* Dependences within an iteration, grouped by the task that waits (counting sort). */
static void group_deps(struct keys_pipeline_walk *walk, int *next)
{
    const struct pipeline *pipeline = &walk->parser->plan->pipeline;
    for (size_t i = 0; i < pipeline->intra_count; i++)
        walk->first_dep[pipeline->deps[i].task + 1]++;
    for (size_t t = 0; t < pipeline->task_count; t++)
        walk->first_dep[t + 1] += walk->first_dep[t];
    memcpy(next, walk->first_dep, pipeline->task_count * sizeof *next);
    for (size_t i = 0; i < pipeline->intra_count; i++)
        walk->sorted[next[pipeline->deps[i].task]++] = (int)i;
    memcpy(next, walk->first_dep, pipeline->task_count * sizeof *next);
}

static void check_cycles(struct parser *parser)
{
    const struct pipeline *pipeline = &parser->plan->pipeline;
    struct arena *scratch = &parser->scratch;
    size_t tasks = pipeline->task_count;
    struct keys_pipeline_walk walk = {.parser = parser};
    walk.first_dep = ARENA_ARRAY(scratch, tasks + 1, int);
    walk.sorted = ARENA_ARRAY(scratch, pipeline->intra_count, int);
    walk.path = ARENA_ARRAY(scratch, tasks + 1, int);
    walk.state = arena_array(scratch, tasks, sizeof *walk.state);
    int *next = ARENA_ARRAY(scratch, tasks, int);
    if (!walk.first_dep || !walk.sorted || !walk.path || !walk.state || !next) {
        parse_no_memory(parser);
        return;
    }
    group_deps(&walk, next);
    for (size_t t = 0; t < tasks; t++)
        if (walk.state[t] == WALK_NEW && !walk_from(&walk, (int)t, next))
            return;
}

void parse_intra_deps(struct parser *parser, const struct node *value)
{
    parse_deps(parser, value, false);
    parser->plan->pipeline.intra_count = parser->plan->pipeline.dep_count;
    if (parser->plan->pipeline.task_count)
        check_cycles(parser);
}

void parse_inter_deps(struct parser *parser, const struct node *value)
{
    parse_deps(parser, value, true);
}

static void print_deps(struct printer *printer, size_t first, size_t end)
{
    const struct pipeline *pipeline = &printer->plan->pipeline;
    open_list(printer, BLOCK);
    for (size_t i = first; i < end; i++) {
        const struct dep *dep = &pipeline->deps[i];
        open_list(printer, FLOW);
        put_text(printer, pipeline->tasks[dep->task].name);
        put_text(printer, pipeline->tasks[dep->on].name);
        if (dep->distance > 1)
            put_number(printer, dep->distance);
        close_list(printer);
    }
    close_list(printer);
}

void print_intra_deps(struct printer *printer)
{
    print_deps(printer, 0, printer->plan->pipeline.intra_count);
}

bool has_inter_deps(const struct printer *printer)
{
    return printer->plan->pipeline.dep_count > printer->plan->pipeline.intra_count;
}

void print_inter_deps(struct printer *printer)
{
    print_deps(printer, printer->plan->pipeline.intra_count, printer->plan->pipeline.dep_count);
}

static void schema_deps(struct json *json, const struct field *field)
{
    static const struct field distance = {.min = 1, .max = PLAN_MAX_DISTANCE};
    schema_begin_list(json);
    schema_begin_list(json);
    schema_either(json);
    schema_refer(json, "name");
    schema_or(json);
    schema_int(json, &distance);
    schema_end_either(json);
    schema_end(json);
    json_put_int(json, "minItems", 2);
    json_put_int(json, "maxItems", 2 + field->max);
    schema_end(json);
}

const struct field_kind kind_deps = {.schema = schema_deps};

/* ---- enqueue order and overrides ------------------------------------------------------------- */

/* Every task must occur in an explicit order. */
static bool keys_pipeline_check_order(struct parser *parser, const struct node *value,
                                      const int *seen)
{
    const struct pipeline *pipeline = &parser->plan->pipeline;
    for (size_t t = 0; t < pipeline->task_count; t++)
        if (!seen[t])
            return parse_error(parser, value->mark,
                               "found an order without task \"%s\", expected every task once",
                               pipeline->tasks[t].name);
    return true;
}

/* order := ready-first | stage-descending | stage-ascending | [task, ...] */
static bool parse_order(struct parser *parser, const struct node *value, struct order_spec *out)
{
    const struct pipeline *pipeline = &parser->plan->pipeline;
    static const struct field word = {.words = keywords_order};
    if (value->kind != NODE_LIST)
        return field_word(parser, value, &out->kind, &word);
    struct order_spec order = {.kind = ORDER_EXPLICIT};
    order.tasks.items = ARENA_ARRAY(&parser->plan->arena, pipeline->task_count, int);
    int *seen = ARENA_ARRAY(&parser->scratch, pipeline->task_count, int);
    if (!order.tasks.items || !seen)
        return parse_no_memory(parser);
    bool ok = true;
    READ_LIST (parser, value, item) {
        int task = symbol_resolve(parser, TABLE_TASKS, item);
        if (task < 0 || seen[task]++)
            ok = task < 0 ? false
                          : parse_error(parser, item->mark,
                                        "found task \"%s\" a second time, "
                                        "expected every task once",
                                        item->text);
        else
            order.tasks.items[order.tasks.count++] = task;
    }
    if (!ok || !keys_pipeline_check_order(parser, value, seen))
        return false;
    *out = order;
    return true;
}

void parse_enqueue_order(struct parser *parser, const struct node *value)
{
    struct pipeline *pipeline = &parser->plan->pipeline;
    pipeline->order_given = value && parse_order(parser, value, &pipeline->order);
}

static void put_order(struct printer *printer, const struct order_spec *order)
{
    if (order->kind != ORDER_EXPLICIT) {
        put_word(printer, keywords_order[order->kind]);
        return;
    }
    open_list(printer, FLOW);
    for (size_t i = 0; i < order->tasks.count; i++)
        put_text(printer, printer->plan->pipeline.tasks[order->tasks.items[i]].name);
    close_list(printer);
}

void print_order(struct printer *printer)
{
    put_order(printer, &printer->plan->pipeline.order);
}

static void schema_order(struct json *json, const struct field *field)
{
    schema_either(json);
    schema_word(json, field);
    schema_or(json);
    schema_symbols(json, field);
    schema_end_either(json);
}

const struct field_kind kind_order = {.schema = schema_order};

static bool field_override_order(PARSE_PARAMS)
{
    struct rank_override *override = member;
    override->has_order = parse_order(parser, value, &override->order);
    return override->has_order;
}

static void print_override_order(PRINT_PARAMS)
{
    put_order(printer, &((const struct rank_override *)member)->order);
}

static bool same_override_order(SAME_PARAMS)
{
    return !((const struct rank_override *)member)->has_order;
}

static const struct field_kind kind_override_order = {field_override_order, print_override_order,
                                                      same_override_order, .schema = schema_order};

static bool field_override_schedule(PARSE_PARAMS)
{
    struct rank_override *override = member;
    const struct pipeline *pipeline = &parser->plan->pipeline;
    if (!parse_want_map(parser, value, "a mapping from tasks to what differs"))
        return false;
    override->tasks = ARENA_ARRAY(&parser->plan->arena, pipeline->task_count, struct task);
    if (!override->tasks)
        return parse_no_memory(parser);
    if (pipeline->task_count)
        memcpy(override->tasks, pipeline->tasks, pipeline->task_count * sizeof *pipeline->tasks);
    bool ok = true;
    READ_MAP (parser, value, key, properties) {
        int task = symbol_resolve(parser, TABLE_TASKS, key);
        ok &= task >= 0 &&
              parse_want_map(parser, properties, "a mapping of the properties that differ") &&
              fields_parse(parser, properties, task_fields, FIELD_COUNT(task_fields),
                           &override->tasks[task], "a task") &&
              check_keys(parser, properties, &override->tasks[task]);
    }
    return ok;
}

static void print_override_schedule(PRINT_PARAMS)
{
    const struct rank_override *override = member;
    const struct pipeline *pipeline = &printer->plan->pipeline;
    open_map(printer, BLOCK);
    for (size_t t = 0; t < pipeline->task_count; t++)
        if (!fields_same(printer, task_fields, FIELD_COUNT(task_fields), &override->tasks[t],
                         &pipeline->tasks[t]))
            print_task(printer, &override->tasks[t], &pipeline->tasks[t]);
    close_map(printer);
}

static bool same_override_schedule(SAME_PARAMS)
{
    return !((const struct rank_override *)member)->tasks;
}

static const struct field_kind kind_override_schedule = {
    field_override_schedule, print_override_schedule, same_override_schedule,
    .schema = schema_names};

static const struct field override_fields[] = {
    FIELD_OF_ALL("schedule", override_schedule, "The properties of tasks that differ, by task.",
                 .each = &task_field),
    FIELD_OF_ALL("enqueue_order", override_order, "The order of this rank.",
                 .words = keywords_order),
};
static const struct keys override_keys =
    KEYS(override_fields, "the differences of a rank", "a mapping with schedule or enqueue_order");

void print_overrides(struct printer *printer)
{
    const struct pipeline *pipeline = &printer->plan->pipeline;
    open_map(printer, BLOCK);
    for (size_t i = 0; i < pipeline->override_count; i++) {
        put_number(printer, pipeline->overrides[i].rank);
        open_map(printer, BLOCK);
        fields_print(printer, override_fields, FIELD_COUNT(override_fields),
                     &pipeline->overrides[i], NULL);
        close_map(printer);
    }
    close_map(printer);
}

const struct field override_field = {.kind = &kind_map, .keys = &override_keys};

void parse_overrides(struct parser *parser, const struct node *value)
{
    struct plan *plan = parser->plan;
    struct pipeline *pipeline = &plan->pipeline;
    if (!value || !parse_want_map(parser, value, "a mapping from ranks to what differs"))
        return;
    pipeline->overrides = PARSE_ARRAY(parser, value->length, struct rank_override);
    if (!pipeline->overrides)
        return;
    int64_t last = -1;
    pipeline->overrides_ascend = true;
    READ_MAP (parser, value, key, differences) {
        int64_t rank;
        if (!parse_number(parser, key, true, 0, plan->ranks - 1, &rank) ||
            !parse_want_map(parser, differences, override_keys.example))
            continue;
        pipeline->overrides_ascend &= rank > last;
        last = rank;
        struct rank_override *override = &pipeline->overrides[pipeline->override_count++];
        *override = (struct rank_override){.rank = (int)rank, .mark = key->mark};
        keys_parse(parser, differences, &override_keys, override);
    }
}

/* ---- numbers of the pipeline ----------------------------------------------------------------- */

static int highest_stage(const struct plan *plan)
{
    const struct pipeline *pipeline = &plan->pipeline;
    int highest = 0;
    for (size_t t = 0; t < pipeline->task_count; t++) {
        if (pipeline->tasks[t].stage > highest)
            highest = pipeline->tasks[t].stage;
        for (size_t i = 0; i < pipeline->override_count; i++)
            if (pipeline->overrides[i].tasks && pipeline->overrides[i].tasks[t].stage > highest)
                highest = pipeline->overrides[i].tasks[t].stage;
    }
    return highest;
}

void parse_depth(struct parser *parser, const struct node *value)
{
    struct pipeline *pipeline = &parser->plan->pipeline;
    int64_t depth;
    pipeline->depth = pipeline->max_depth = highest_stage(parser->plan) + 1;
    if (!value || !parse_number(parser, value, false, 1, PLAN_MAX_DEPTH, &depth))
        return;
    pipeline->depth_given = true;
    if (depth != pipeline->depth && parser->status == STATUS_OK)
        parse_error(parser, value->mark,
                    "found pipeline_depth %d, expected %d: the highest stage is %d, and the depth "
                    "is one more",
                    (int)depth, pipeline->depth, pipeline->depth - 1);
}

void parse_batches(struct parser *parser, const struct node *value)
{
    static const struct field field = {.min = 0, .max = PLAN_MAX_ITERATIONS};
    struct pipeline *pipeline = &parser->plan->pipeline;
    if (!value || !parse_want_list(parser, value, "a list with one number of iterations a rank"))
        return;
    if (value->length != (size_t)parser->plan->ranks) {
        parse_error(parser, value->mark, "found %zu numbers, expected one for each of %d ranks",
                    value->length, parser->plan->ranks);
        return;
    }
    pipeline->batches = PARSE_ARRAY(parser, value->length, int64_t);
    if (!pipeline->batches)
        return;
    READ_LIST (parser, value, item)
        field_int64(parser, item, &pipeline->batches[pipeline->batch_count++], &field);
}

void print_batches(struct printer *printer)
{
    const struct pipeline *pipeline = &printer->plan->pipeline;
    open_list(printer, FLOW);
    for (size_t i = 0; i < pipeline->batch_count; i++)
        put_number(printer, pipeline->batches[i]);
    close_list(printer);
}
