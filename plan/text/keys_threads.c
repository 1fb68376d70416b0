/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys_threads.c - host programs: per rank and thread a list of machine operations.
 *
 * An operation is one mapping whose first key names it (ops.h); `op_syntax` has the keys each
 * operation takes, its own first. In canonical text an operation is a line.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "text_internal.h"
#include "base/assert_index.h"
#include "base/list_key.h"

enum { MAX_SM = 65536, MAX_RANK_DIGITS = 4 };

/* thread := "r" rank "." name */
bool thread_name_rank(const char *name, int *rank, const char **thread_name)
{
    size_t digits = *name == 'r' ? strspn(name + 1, "0123456789") : 0;
    const char *dot = name + 1 + digits;
    bool padded = digits > 1 && name[1] == '0';
    if (digits == 0 || digits > MAX_RANK_DIGITS || padded || *dot != '.' || !dot[1])
        return false;
    *rank = atoi(name + 1);
    *thread_name = dot + 1;
    return true;
}

/* ---- kinds of values --------------------------------------------------------------------------- */

/* Steps of a body are done on the device of the operation around it. */
static bool same_device(SAME_PARAMS)
{
    return printer->in_body || *(const int *)member == 0;
}

static void print_device(PRINT_PARAMS)
{
    put_rank(printer, *(const int *)member - 1);
}

static const struct field_kind kind_device = {field_device, print_device, same_device,
                                              .schema = schema_rank};

/* A stream that is not named is PLAN_IMPLICIT_STREAM. */
static bool same_stream(SAME_PARAMS)
{
    const int stream = *(const int *)member;
    return stream < 0 || stream == printer->default_stream;
}

static const struct field_kind kind_stream = {field_symbol, print_symbol, same_stream,
                                              .refer = "name"};

static const struct field_kind kind_buffers = {field_buffers, print_symbols, same_list,
                                               .schema = schema_symbols};

/* The object of an operation, with the rank of another one's: r1.copied. The flag ready(0) of an iteration is printed as
   `ready`: the body of a repeat is printed once. */
static void keys_threads_print_object(PRINT_PARAMS)
{
    const struct host_op *op = member;
    assert(op->object >= 0);
    const char *name = plan_object_name(printer->plan, op);
    const char *number = strrchr(name, '(');
    if (op->iteration > 0 && op_operand(op->kind) == OPERAND_FLAG && number) {
        const char *of_all = arena_strndup(&printer->scratch, name, (size_t)(number - name));
        const struct flag_spec *spec = of_all ? plan_flag_spec(printer->plan, of_all) : NULL;
        name = spec && spec->scope == SCOPE_ITERATION ? of_all : name;
    }
    int rank = op->object_rank - 1;
    const char *rest = name;
    if (rank >= 0 || (name && thread_name_rank(name, &rank, &rest)))
        put_ranked_name(printer, rank, rest);
    else
        put_text(printer, name);
}

static bool same_object(SAME_PARAMS)
{
    return ((const struct host_op *)member)->object < 0;
}

static bool field_object(PARSE_PARAMS)
{
    return field_symbol(parser, value, &((struct host_op *)member)->object, field);
}

static bool field_own_object(PARSE_PARAMS)
{
    return field_own(parser, value, &((struct host_op *)member)->object, field);
}

static bool field_flag_object(PARSE_PARAMS)
{
    return field_flag(parser, value, &((struct host_op *)member)->object, field);
}

static const struct field_kind kind_object = {field_object, keys_threads_print_object, same_object,
                                              .refer = "name"};
static const struct field_kind kind_own = {field_own_object, keys_threads_print_object, same_object,
                                           .refer = "name"};
static const struct field_kind kind_flag = {field_flag_object, keys_threads_print_object,
                                            same_object, .refer = "name"};
static const struct field_kind kind_event = {field_event, keys_threads_print_object, same_object,
                                             .refer = "name"};

static void print_flag_use(PRINT_PARAMS)
{
    const struct flag_use *use = &((const struct host_op *)member)->flag_use;
    char sum[64];
    if (use->each == 0) {
        put_number(printer, use->base);
        return;
    }
    snprintf(sum, sizeof sum, "%" PRId64 " * iteration %c %" PRId64, use->each,
             use->base < 0 ? '-' : '+', use->base < 0 ? -use->base : use->base);
    if (use->base == 0)
        *strchr(sum + strlen(sum) - 4, ' ') = '\0';
    put_text(printer, use->each == 1 ? strchr(sum, 'i') : sum);
}

/* What an operation does by default is not printed. */
static bool same_flag_use(SAME_PARAMS)
{
    const struct host_op *op = member;
    struct host_op plain = {.kind = op->kind};
    int64_t usual;
    enum flag_rule rule = host_op_flag_use(&plain, &usual);
    const struct flag_use *use = &op->flag_use;
    return !use->given || use->rule != (enum flag_rule)field->otherwise ||
           (use->rule == rule && use->each == 0 && use->base == usual);
}

static void schema_flag_use(struct json *json, const struct field *field)
{
    schema_either(json);
    json_put_string(json, "type", "integer");
    json_put_int(json, "minimum", field->min);
    json_put_int(json, "maximum", field->max);
    schema_or(json);
    json_put_string(json, "type", "string");
    json_put_string(json, "pattern",
                    "^([+-]? *[0-9]+|([0-9]+ *\\* *)?iteration *([+-] *[0-9]+)?)$");
    schema_end_either(json);
}

static const struct field_kind kind_flag_use = {field_flag_use, print_flag_use, same_flag_use,
                                                .schema = schema_flag_use};

/* One time, or those of the iterations. */
static void print_time_or_list(struct printer *printer, int64_t time_ns,
                               const struct time_list *list)
{
    if (!list) {
        put_time(printer, time_ns);
        return;
    }
    open_list(printer, FLOW);
    for (size_t i = 0; i < list->count; i++)
        put_time(printer, list->items[i]);
    close_list(printer);
}

static void print_op_time(PRINT_PARAMS)
{
    const struct host_op *op = member;
    print_time_or_list(printer, op->time_ns, host_op_details(op)->times);
}

static bool same_op_time(SAME_PARAMS)
{
    const struct host_op *op = member;
    return !host_op_details(op)->times && op->time_ns == 0;
}

static void print_op_host_time(PRINT_PARAMS)
{
    const struct host_op *op = member;
    print_time_or_list(printer, op->host_time_ns, host_op_details(op)->host_times);
}

static bool same_op_host_time(SAME_PARAMS)
{
    const struct host_op *op = member;
    return !host_op_details(op)->host_times && op->host_time_ns == 0;
}

static void schema_op_time(struct json *json, const struct field *field)
{
    schema_one_or_list(json, &(const struct field){.kind = &kind_time}, 1);
}

static const struct field_kind kind_op_time = {field_op_time, print_op_time, same_op_time,
                                               .schema = schema_op_time};
static const struct field_kind kind_op_host_time = {field_op_host_time, print_op_host_time,
                                                    same_op_host_time, .schema = schema_op_time};

static struct process_group *process_group_of(struct parser *parser, struct host_op *op)
{
    if (!op->process_group)
        op->process_group = ARENA_ARRAY(&parser->plan->arena, 1, struct process_group);
    if (!op->process_group)
        parse_no_memory(parser);
    return op->process_group;
}

static bool field_async(PARSE_PARAMS)
{
    struct process_group *group = process_group_of(parser, member);
    return group && field_bool(parser, value, &group->async, field);
}

static void print_async(PRINT_PARAMS)
{
    print_bool(printer, &((const struct host_op *)member)->process_group->async, field);
}

static bool same_async(SAME_PARAMS)
{
    return !((const struct host_op *)member)->process_group;
}

static bool field_work_event(PARSE_PARAMS)
{
    struct process_group *group = process_group_of(parser, member);
    if (!group)
        return false;
    group->named = true;
    group->done = symbol_resolve(parser, TABLE_EVENTS, value);
    return group->done >= 0;
}

static void print_work_event(PRINT_PARAMS)
{
    print_symbol(printer, &((const struct host_op *)member)->process_group->done, field);
}

static bool same_work_event(SAME_PARAMS)
{
    const struct host_op *op = member;
    return same_async(printer, member, other, field) || !op->process_group->named;
}

static const struct field_kind kind_async = {field_async, print_async, same_async,
                                             .schema = schema_truth};
static const struct field_kind kind_work_event = {field_work_event, print_work_event,
                                                  same_work_event, .refer = "name"};

/* The operations inside an operation: a callback's, or the steps of a kernel. */
static bool field_body(PARSE_PARAMS);
static void keys_threads_print_body(PRINT_PARAMS);

static bool same_body(SAME_PARAMS)
{
    return ((const struct host_op *)member)->body_count == 0;
}

static void schema_body(struct json *json, const struct field *field)
{
    schema_begin_list(json);
    schema_refer(json, "operation");
    schema_end(json);
}

static const struct field_kind kind_body = {field_body, keys_threads_print_body, same_body,
                                            .schema = schema_body};

/* ---- branches --------------------------------------------------------------------------------- */

/* What a query asks for. */
static const char *asked_word(const struct host_op *op)
{
    return op->kind == OP_QUERY_FLAG    ? "flag"
           : op->kind == OP_QUERY_QUEUE ? "queue"
                                        : keywords_sync[op->sync];
}

/* The word has chosen the kind already, but for what the device does. */
static bool field_asked(PARSE_PARAMS)
{
    struct host_op *op = member;
    if (op->kind != OP_QUERY)
        return true;
    for (int i = 0; value->kind == NODE_SCALAR && field->words[i]; i++)
        if (strcmp(value->text, field->words[i]) == 0) {
            op->sync = (enum sync_kind)i;
            return true;
        }
    return parse_mismatch(
        parser, value,
        "event, stream, device, flag or queue; whether a collective is over tells "
        "the event that its \"work\" names");
}

static void print_asked(PRINT_PARAMS)
{
    put_word(printer, asked_word(member));
}

static const struct field_kind kind_asked = {field_asked, print_asked, NULL, .schema = schema_word};

/* The operations of a branch stand behind the one that has it: parse_repeat.c puts them there. */
static bool field_branch(PARSE_PARAMS)
{
    ((struct host_op *)member)->has_branches = true;
    return parse_want_list(parser, value, "a list of operations");
}

/* The operations of a branch of `op`: of `then`, or of `else`. They end at OP_ELSE or OP_END. */
static const struct host_op *branch_begin(const struct host_op *op, bool otherwise)
{
    const struct host_op *first = op + 1;
    return otherwise ? host_op_behind_branch(first) + 1 : first;
}

/* An operation that always has branches says which of them are not empty; another one that has none would be another one. */
static bool branch_is_printed(const struct host_op *op, const struct field *field)
{
    if (!op->has_branches)
        return false;
    const bool otherwise = strcmp(field->key, "else") == 0;
    const struct host_op *end = host_op_behind_branch(op + 1);
    if (!otherwise)
        return end > op + 1;
    return end->kind == OP_ELSE || (end == op + 1 && !op_asks(op->kind));
}

static bool same_branch(SAME_PARAMS)
{
    return !branch_is_printed(member, field);
}

static void keys_threads_print_op(struct printer *printer, const struct host_op *op);

static void print_branch(PRINT_PARAMS)
{
    const bool outer = printer->in_branch, otherwise = strcmp(field->key, "else") == 0;
    const struct host_op *end = host_op_behind_branch((const struct host_op *)member + 1);
    printer->in_branch = true;
    open_list(printer, FLOW);
    if (!otherwise || end->kind == OP_ELSE)
        for (const struct host_op *op = branch_begin(member, otherwise); !op_ends_branch(op->kind);
             op = host_op_behind(op))
            keys_threads_print_op(printer, op);
    close_list(printer);
    printer->in_branch = outer;
}

static const struct field_kind kind_branch = {field_branch, print_branch, same_branch,
                                              .schema = schema_body};

/* The parts of a group. */
static bool field_parts(PARSE_PARAMS);
static void keys_threads_print_parts(PRINT_PARAMS);
static void schema_parts(struct json *json, const struct field *field);
static const struct field_kind kind_parts = {field_parts, keys_threads_print_parts, NULL,
                                             .schema = schema_parts};

/* One communicator, or several that are aborted in one group. */
static bool field_aborted(PARSE_PARAMS)
{
    struct index_list *list = ARENA_ARRAY(&parser->plan->arena, 1, struct index_list);
    ((struct host_op *)member)->aborted = list;
    if (!list)
        return parse_no_memory(parser);
    if (value->kind == NODE_LIST && value->length > 0) {
        if (!kind_symbols.parse(parser, value, list, field))
            return false;
        for (size_t i = 0; i < list->count; i++)
            for (size_t k = 0; k < i; k++)
                if (list->items[i] == list->items[k])
                    return parse_error(parser, value->mark,
                                       "found communicator %s twice, expected each once",
                                       parser->plan->comms[list->items[i]].name);
        return true;
    }
    if (value->kind != NODE_SCALAR)
        return parse_mismatch(parser, value, "a communicator, or a list of them");
    list->items = ARENA_ARRAY(&parser->plan->arena, 1, int);
    if (!list->items)
        return parse_no_memory(parser);
    list->count = 1;
    return field_symbol(parser, value, list->items, field);
}

static void print_aborted(PRINT_PARAMS)
{
    const struct index_list *list = ((const struct host_op *)member)->aborted;
    if (list->count == 1)
        print_symbol(printer, list->items, field);
    else
        print_symbols(printer, list, field);
}

static void schema_aborted(struct json *json, const struct field *field)
{
    schema_one_or_list(json, &(const struct field){.kind = &kind_symbol}, 0);
}

static const struct field_kind kind_aborted = {field_aborted, print_aborted, NULL,
                                               .schema = schema_aborted};

/* ---- the keys of each operation, in the order of the canonical text ------------------------------ */

static void *make_op_accesses(struct parser *parser, void *base)
{
    void *made = host_op_make_accesses(base, &parser->plan->arena);
    return made ? made : (parse_no_memory(parser), NULL);
}

static const void *find_op_accesses(const void *base)
{
    return ((const struct host_op *)base)->accesses;
}

static void *make_op_details(struct parser *parser, void *base)
{
    void *made = host_op_make_details(base, &parser->plan->arena);
    return made ? made : (parse_no_memory(parser), NULL);
}

static const void *find_op_details(const void *base)
{
    return ((const struct host_op *)base)->details;
}

static const struct field_part part_accesses = {make_op_accesses, find_op_accesses},
                               part_details = {make_op_details, find_op_details};

#define OP_FIELD(key, member, kind, ...) FIELD(key, struct host_op, member, kind, __VA_ARGS__)
#define OP_DETAIL(key, member, kind, ...)                                                          \
    FIELD(key, struct host_details, member, kind, __VA_ARGS__, .part = &part_details)
#define OP_ACCESS(key, member, about)                                                              \
    FIELD(key, struct host_accesses, member, buffers, about, .table = TABLE_BUFFERS,               \
          .part = &part_accesses)
#define OP_HEAD(key, kind, table_, about)                                                          \
    FIELD_OF_ALL(key, kind, about, .table = (table_), .always = true)
#define OP_AT OP_FIELD("at", at, name, "Where in the program it is called, as train.py:41.")
#define OP_STREAM                                                                                  \
    OP_FIELD("stream", stream, stream, "The stream. The default is main.",                         \
             .table = TABLE_STREAMS),                                                              \
        OP_DEVICE, OP_AT
#define OP_DEVICE                                                                                  \
    OP_FIELD("device", device, device, "The rank on whose device it is done.",                     \
             .max = PLAN_MAX_RANKS - 1, .otherwise = -1)
#define OP_COMM(...)                                                                               \
    OP_FIELD("comm", comm, symbol, "The communicator.", .table = TABLE_COMMS, __VA_ARGS__)
#define OP_ACCESSES                                                                                \
    OP_ACCESS("reads", reads, "The buffers that it reads."),                                       \
        OP_ACCESS("writes", writes, "The buffers that it writes.")
/* A call of torch.distributed: `async` with or without `work`. */
#define OP_PROCESS_GROUP                                                                           \
    FIELD_OF_ALL(                                                                                  \
        "async", async,                                                                            \
        "A call of a process group: whether its thread's stream goes on before its end."),         \
        FIELD_OF_ALL("work", work_event, "The event that its end records.", .table = TABLE_EVENTS)
#define OP_HOST_TIME                                                                               \
    FIELD_OF_ALL("host_time", op_host_time, "The CPU time of the call, or one for each iteration.")
#define OP_TIME     FIELD_OF_ALL("time", op_time, "The time that it takes, or one for each iteration.")
#define OP_JITTER   OP_DETAIL("jitter", jitter, dist, "How its time varies.")
#define OP_NAME     OP_FIELD("name", name, name, "A label.")
#define OP_BYTES    OP_FIELD("bytes", bytes, bytes, "The bytes that it moves.")
#define DTYPE_ABOUT "The type of its elements, which its peers must agree in."
#define COUNT_ABOUT "The number of its elements, in place of bytes."
/* Keys of every push of device work. */
#define OP_WORK                                                                                    \
    OP_TIME, OP_HOST_TIME, OP_JITTER,                                                              \
        OP_FIELD("sm", sm, slots, "The residency slots that it holds.", .max = MAX_SM),            \
        OP_DETAIL("shares", shares, shares, "The shares of the device that it takes."),            \
        OP_ACCESSES

static const char *const keywords_rate[] = {RATE_LIST(LIST_KEY) NULL};
static const struct field op_cost_fields[] = {
    FIELD("bytes", struct op_cost, bytes, bytes, "That it reads and writes."),
    FIELD("flops", struct op_cost, flops, int64, "Operations with numbers.", .max = INT64_MAX),
    FIELD("numbers", struct op_cost, rate, word, "The type of the numbers. The default is f64.",
          .words = keywords_rate),
    FIELD("shapes", struct op_cost, shapes, text,
          "Types and sizes of the operator's tensors, by which a measured time is found."),
};
static const struct keys op_cost_keys = KEYS(op_cost_fields, "a cost", "{bytes: 1MiB}");

static const struct field HOST_fields[] = {
    FIELD_OF_ALL("host", op_time, "CPU work of this time.", .always = true),
    OP_NAME,
    OP_AT,
    OP_JITTER,
    OP_ACCESSES,
};
static const struct field COMPUTE_fields[] = {
    OP_FIELD("compute", name, name, "CPU work of this name."),
    OP_AT,
    OP_TIME,
    OP_JITTER,
    OP_ACCESSES,
};
static const struct field LAUNCH_fields[] = {
    OP_FIELD("launch", name, name, "A kernel of this name, or a graph."),
    OP_STREAM,
    OP_FIELD("graph", is_graph, boolean, "Whether it launches a graph of graphs."),
    OP_WORK,
    OP_FIELD("greedy", greedy, boolean,
             "Whether it starts with the slots that are free, up to sm, and takes more as they "
             "become free."),
    OP_DETAIL("cost", cost, map, "What a kernel does, of which predict --hardware makes a time.",
              .keys = &op_cost_keys),
    OP_DETAIL("work", work, work, "What a real run does."),
    FIELD_OF_ALL("body", body, "The steps of a kernel that synchronises on the device."),
};
static const struct field COPY_fields[] = {
    OP_FIELD("copy", direction, word, "A copy, and its direction.", .always = true,
             .words = keywords_direction),
    OP_NAME,
    OP_STREAM,
    OP_BYTES,
    OP_FIELD("pageable", pageable, boolean,
             "Whether the memory of the host is pageable, so that the copy may block it."),
    OP_WORK,
};
static const struct field COLLECTIVE_fields[] = {
    OP_FIELD("collective", name, name, "A collective, and its tag."),
    OP_COMM(.required = true),
    OP_STREAM,
    OP_FIELD("op", collective, word, "The kind of collective.", .words = keywords_collective,
             .otherwise = COLLECTIVE_ALL_REDUCE),
    OP_FIELD("root", root, rank, "The rank that sends to all. The default is the lowest.",
             .max = PLAN_MAX_RANKS - 1, .otherwise = -1),
    OP_BYTES,
    OP_DETAIL("dtype", work.element, word, DTYPE_ABOUT, .words = keywords_element),
    OP_DETAIL("count", work.elements, count, COUNT_ABOUT, .max = PARSE_MAX_COUNT),
    OP_WORK,
    OP_PROCESS_GROUP,
};
static const struct field GROUP_fields[] = {
    FIELD_OF_ALL("group", parts, "Collectives, sends and receives that are called as one.",
                 .always = true),
    OP_COMM(),
    OP_STREAM,
    OP_WORK,
    OP_PROCESS_GROUP,
};
#define OP_EXTERNAL                                                                                \
    OP_FIELD("external", external, boolean, "In a graph: whether the event is the plan's own.")
static const struct field RECORD_fields[] = {
    OP_HEAD("record", own, TABLE_EVENTS, "An event is recorded on the stream."),
    OP_STREAM,
    OP_EXTERNAL,
    OP_HOST_TIME,
};
static const struct field WAIT_fields[] = {
    OP_HEAD("wait", event, TABLE_EVENTS, "The stream waits for an event."),
    OP_STREAM,
    OP_EXTERNAL,
    OP_HOST_TIME,
};
static const struct field SYNC_fields[] = {
    OP_FIELD("sync", sync, word, "The thread waits for a stream, an event or the device.",
             .always = true, .words = keywords_sync),
    OP_STREAM,
    FIELD_OF_ALL("event", event, "The event that it waits for.", .table = TABLE_EVENTS),
};
#define OP_BRANCHES                                                                                \
    FIELD_OF_ALL("then", branch, "What follows if the answer is yes, or if it could be done."),    \
        FIELD_OF_ALL("else", branch,                                                               \
                     "What follows else. An operation with then or else does not wait.")
#define OP_FLAG_CHANGE                                                                             \
    FIELD_OF_ALL("value", flag_use, "The value that the flag gets. The default is 1.",             \
                 .max = PLAN_MAX_FLAG, .otherwise = FLAG_SETS),                                    \
        FIELD_OF_ALL("add", flag_use, "What is added to the value of the flag.",                   \
                     .min = -PLAN_MAX_FLAG, .max = PLAN_MAX_FLAG, .otherwise = FLAG_ADDS)
#define OP_FLAG_WAIT                                                                               \
    FIELD_OF_ALL(                                                                                  \
        "at_least", flag_use,                                                                      \
        "The wait ends while the flag has this value or a greater one. The default is 1.",         \
        .min = -PLAN_MAX_FLAG, .max = PLAN_MAX_FLAG, .otherwise = FLAG_AT_LEAST),                  \
        FIELD_OF_ALL("equals", flag_use, "The wait ends while the flag has this value.",           \
                     .min = -PLAN_MAX_FLAG, .max = PLAN_MAX_FLAG, .otherwise = FLAG_EQUALS)
static const struct field SIGNAL_fields[] = {
    OP_HEAD("signal", flag, TABLE_FLAGS, "A flag is set."),
    OP_FLAG_CHANGE,
};
static const struct field CLEAR_fields[] = {
    OP_HEAD("clear", flag, TABLE_FLAGS, "A flag gets the value 0."),
};
static const struct field AWAIT_fields[] = {
    OP_HEAD("await", flag, TABLE_FLAGS, "The thread waits for a flag."),
    OP_FLAG_WAIT,
};
static const struct field ACQUIRE_fields[] = {
    OP_HEAD("acquire", flag, TABLE_FLAGS,
            "The thread waits until a flag is at least a count, and takes that from it at once."),
    FIELD_OF_ALL("count", flag_use, "How much it waits for and takes. The default is 1.", .min = 1,
                 .max = PLAN_MAX_FLAG, .otherwise = FLAG_TAKES),
    OP_BRANCHES,
};
static const struct field WRITE_fields[] = {
    OP_HEAD("write", flag, TABLE_FLAGS, "The stream sets a flag when it comes to this."),
    OP_FLAG_CHANGE,
    OP_STREAM,
    OP_HOST_TIME,
};
static const struct field WAIT_FLAG_fields[] = {
    OP_HEAD("wait_flag", flag, TABLE_FLAGS, "The stream does not go on until a flag is set."),
    OP_FLAG_WAIT,
    OP_STREAM,
    OP_HOST_TIME,
};
static const struct field PUT_fields[] = {
    OP_HEAD("put", object, TABLE_QUEUES, "An item is put into a queue."),
    OP_BRANCHES,
};
static const struct field GET_fields[] = {
    OP_HEAD("get", object, TABLE_QUEUES, "An item is taken from a queue."),
    OP_BRANCHES,
};
static const struct field LOCK_fields[] = {
    OP_HEAD("lock", object, TABLE_LOCKS, "A lock is taken."),
    OP_BRANCHES,
};
static const struct field UNLOCK_fields[] = {
    OP_HEAD("unlock", object, TABLE_LOCKS, "A lock is released."),
};
static const struct field BARRIER_fields[] = {
    OP_HEAD("barrier", object, TABLE_BARRIERS, "The thread waits for the others at a barrier."),
};
static const struct field TICKET_fields[] = {
    OP_FIELD("ticket", ticket, int64, "The thread waits for the turn of this number.",
             .always = true, .max = PLAN_MAX_OPS),
};
static const struct field SERVE_fields[] = {
    OP_FIELD("serve", ticket, int64, "The turn of this number ends.", .always = true,
             .max = PLAN_MAX_OPS),
};
static const struct field CALLBACK_fields[] = {
    OP_FIELD("callback", name, name, "A function of the host, called at its place in the stream."),
    OP_STREAM,
    OP_TIME,
    OP_HOST_TIME,
    OP_JITTER,
    FIELD_OF_ALL("body", body, "The operations of the function.", .required = true),
};
static const struct field ALLOC_fields[] = {
    OP_HEAD("alloc", own, TABLE_BUFFERS, "A buffer is allocated on the stream."),
    OP_STREAM,
    OP_HOST_TIME,
};
static const struct field HOST_ALLOC_fields[] = {
    OP_HEAD("host_alloc", own, TABLE_BUFFERS, "A buffer is allocated in memory of the host."),
    OP_AT,
};
/* It is on a stream only where it names one. */
static const struct field FREE_fields[] = {
    OP_HEAD("free", own, TABLE_BUFFERS, "A buffer is freed."),
    OP_FIELD("stream", stream, symbol, "The stream behind whose work the memory is free again.",
             .table = TABLE_STREAMS),
    OP_DEVICE,
    OP_AT,
};
static const struct field RECORD_STREAM_fields[] = {
    OP_HEAD("record_stream", own, TABLE_BUFFERS, "A buffer is marked as used by a stream."),
    OP_STREAM,
};

static const struct field ABORT_fields[] = {
    FIELD_OF_ALL("abort", aborted, "A communicator is aborted, or several in one group.",
                 .always = true, .table = TABLE_COMMS),
    OP_DEVICE,
};

static const char *const asked_device[] = {"stream", "event", "device", NULL};
static const char *const asked_flag[] = {"flag", NULL};
static const char *const asked_queue[] = {"queue", NULL};
static const struct field QUERY_fields[] = {
    FIELD_OF_ALL(
        "query", asked,
        "The thread asks whether a stream or the device is idle, or an event has happened.",
        .always = true, .words = asked_device),
    OP_STREAM,
    FIELD_OF_ALL("event", event, "The event that it asks for.", .table = TABLE_EVENTS),
    OP_BRANCHES,
};
static const struct field QUERY_FLAG_fields[] = {
    FIELD_OF_ALL("query", asked, "The thread asks whether a flag has a value.", .always = true,
                 .words = asked_flag),
    FIELD_OF_ALL("flag", flag, "The flag.", .required = true, .table = TABLE_FLAGS),
    FIELD_OF_ALL("at_least", flag_use,
                 "Whether the flag has this value or a greater one. The default is 1.",
                 .min = -PLAN_MAX_FLAG, .max = PLAN_MAX_FLAG, .otherwise = FLAG_AT_LEAST),
    FIELD_OF_ALL("equals", flag_use, "Whether the flag has this value.", .min = -PLAN_MAX_FLAG,
                 .max = PLAN_MAX_FLAG, .otherwise = FLAG_EQUALS),
    OP_AT,
    OP_BRANCHES,
};
static const struct field QUERY_QUEUE_fields[] = {
    FIELD_OF_ALL("query", asked, "The thread asks whether a queue has an item.", .always = true,
                 .words = asked_queue),
    FIELD_OF_ALL("queue", object, "The queue.", .required = true, .table = TABLE_QUEUES),
    OP_AT,
    OP_BRANCHES,
};
static const struct field CHOOSE_fields[] = {
    OP_FIELD("choose", name, name, "Either branch may follow, for a reason that the plan has not."),
    OP_AT,
    OP_BRANCHES,
};

/* The keys an operation takes, and what messages call it. */
static const struct {
    const struct field *fields;
    size_t count;
    const char *what;
} op_syntax[] = {
#define X(name, key, ...) {name##_fields, FIELD_COUNT(name##_fields), "operation \"" key "\""},
    HOST_OP_LIST(X)
#undef X
};

/* The steps of a kernel that synchronises on the device. */
static bool fits_in_kernel(enum op_kind kind)
{
    return !op_asks(kind) &&
           (kind == OP_COMPUTE || (op_operand(kind) == OPERAND_FLAG && !op_pushes(kind)));
}

/* A callback's body touches no device and takes part in no barrier. */
static bool fits_in_callback(enum op_kind kind)
{
    switch (op_operand(kind)) {
    case OPERAND_FLAG:
    case OPERAND_QUEUE:
    case OPERAND_LOCK:
    case OPERAND_TURN: return !op_pushes(kind) && !op_asks(kind);
    case OPERAND_NONE: return op_is_cpu_work(kind);
    case OPERAND_EVENT:
    case OPERAND_BARRIER:
    case OPERAND_SUBMISSION:
    case OPERAND_COMM:
    case OPERAND_BUFFER: break;
    }
    return false;
}

static int find_op(const char *key)
{
    for (int kind = 0; kind < HOST_OP_COUNT; kind++) {
        const char *other = op_syntax[kind].fields[0].key; /* queries share one */
        if (*key == *other && strcmp(key, other) == 0)
            return kind;
    }
    return -1;
}

/* A message outside of a group is a group of one. */
static bool is_message_key(const char *key)
{
    return strcmp(key, "send") == 0 || strcmp(key, "recv") == 0;
}

/* Of the operations with the key `query`, the one that asks for this. */
static enum op_kind asking_kind(const struct node *asked)
{
    const char *word = asked->kind == NODE_SCALAR ? asked->text : "";
    return strcmp(word, *asked_flag) == 0    ? OP_QUERY_FLAG
           : strcmp(word, *asked_queue) == 0 ? OP_QUERY_QUEUE
                                             : OP_QUERY;
}

/* The first key names the operation. */
static bool keys_threads_parse_kind(struct parser *parser, const struct node *item,
                                    enum op_kind *out)
{
    if (item->kind != NODE_MAP || item->length == 0)
        return parse_mismatch(parser, item, "an operation such as {launch: kernel, stream: s}");
    const struct node *first = item->first;
    int kind = is_message_key(first->text) ? OP_GROUP : find_op(first->text);
    if (kind >= 0) {
        *out = kind == OP_QUERY ? asking_kind(first->next) : (enum op_kind)kind;
        return true;
    }
    READ_MAP (parser, item, key, value)
        if (find_op(key->text) >= 0 || is_message_key(key->text))
            return parse_error(parser, first->mark,
                               "found \"%s\" first, expected \"%s\": the first key names the "
                               "operation",
                               first->text, key->text);
    if (strcmp(first->text, "repeat") == 0)
        return parse_error(
            parser, first->mark,
            "found \"repeat\" in a body or a graph, expected it among the operations "
            "of a thread");
    struct nearest nearest = {.found = first->text};
    for (kind = 0; kind < HOST_OP_COUNT; kind++)
        nearest_try(&nearest, op_syntax[kind].fields[0].key);
    return parse_error(parser, first->mark,
                       "found unknown operation \"%s\", expected one of swplan(5), such as launch, "
                       "record, wait or await%s",
                       first->text, nearest_hint(&nearest, '"', &parser->scratch));
}

/* The launch of a graph says no more than which, and on what stream. */
static bool finish_graph_launch(struct parser *parser, const struct node *item, struct host_op *op)
{
    static const char *const allowed[] = {"launch", "graph", "stream", "at", "host_time"};
    READ_MAP (parser, item, key, value) {
        bool known = false;
        for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
            known |= strcmp(key->text, allowed[i]) == 0;
        (void)value;
        if (!known)
            return parse_error(
                parser, key->mark,
                "found \"%s\" in the launch of a graph, expected stream, at or host_time",
                key->text);
    }
    struct nearest nearest = {.found = op->name};
    int graph = -1;
    for (size_t i = 0; i < parser->plan->graph_count; i++) {
        const char *name = parser->plan->graphs[i].name;
        if (name && strcmp(name, op->name) == 0)
            graph = (int)i;
        else if (name)
            nearest_try(&nearest, name);
    }
    op->graph = graph;
    return graph >= 0 ||
           parse_error(parser, item->mark, "found no graph \"%s\", expected one of \"graphs\"%s",
                       op->name, nearest_hint(&nearest, '"', &parser->scratch));
}

/* A launch does work of one kernel; what is an operation of its own is no work of a launch. */
static bool finish_launch(struct parser *parser, const struct node *item, struct host_op *op)
{
    if (op->is_graph)
        return finish_graph_launch(parser, item, op);
    static const char *const of_steps[] = {"reads", "writes", "work", "shares", "greedy"};
    if (op->greedy && op->sm == 0)
        return parse_error(
            parser, node_find(item, "greedy")->mark,
            "found \"greedy\" without \"sm\", expected the most slots that it takes");
    for (size_t i = 0; op->body_count > 0 && i < sizeof of_steps / sizeof *of_steps; i++)
        if (node_find(item, of_steps[i]))
            return parse_error(parser, node_find(item, of_steps[i])->mark,
                               "found \"%s\" beside \"body\", expected what the kernel does in its "
                               "steps",
                               of_steps[i]);
    const enum work_kind work = host_op_details(op)->work.kind;
    switch (work) {
    case WORK_COPY:
    case WORK_COLLECTIVE:
    case WORK_SEND:
    case WORK_RECV:
    case WORK_HOST:
        return parse_error(parser, node_find(item, "work")->mark,
                           "found work \"%s\" in a launch, expected gemm, gather, axpy or spin",
                           work_key(work));
    case WORK_NONE:
    case WORK_GEMM:
    case WORK_GATHER:
    case WORK_AXPY:
    case WORK_SPIN: break;
    }
    return true;
}

/* Of a sync, and of a query. */
static bool finish_sync(struct parser *parser, const struct node *item, const struct host_op *op)
{
    const struct node *stream = node_find(item, "stream"), *event = node_find(item, "event");
    const char *key = op_key(op->kind);
    if (event && op->sync != SYNC_EVENT)
        return parse_error(parser, event->mark, "found an event, expected it only in \"%s: event\"",
                           key);
    if (stream && op->sync != SYNC_STREAM)
        return parse_error(parser, stream->mark,
                           "found a stream, expected it only in \"%s: stream\"", key);
    return op->sync != SYNC_EVENT || event ||
           parse_error(parser, item->mark,
                       "found \"%s: event\" without \"event\", expected \"event: ...\" in it", key);
}

/* A turn ends with the number with which it began. */
static bool finish_turn(struct parser *parser, const struct host_op *op)
{
    int64_t open = parser->ticket;
    if (op_operand(op->kind) != OPERAND_TURN)
        return true;
    if (op->kind == OP_TICKET)
        parser->ticket = op->ticket;
    if (op->kind != OP_SERVE || op->ticket == open)
        return true;
    if (open < 0)
        return parse_error(parser, op->mark,
                           "found serve %d without a ticket before it in its thread, expected "
                           "{ticket: %d}",
                           (int)op->ticket, (int)op->ticket);
    return parse_error(parser, op->mark,
                       "found serve %d behind ticket %d, expected {serve: %d}: a turn ends "
                       "before the next one begins",
                       (int)op->ticket, (int)open, (int)open);
}

static bool implicit_stream(struct parser *parser, struct host_op *op)
{
    bool wants = host_op_has_stream(op);
    if (wants && op->stream < 0)
        op->stream = symbol_implicit(parser, TABLE_STREAMS, PLAN_IMPLICIT_STREAM);
    return !wants || op->stream >= 0;
}

static int stream_of_part(const struct host_op *op, const struct p2p_part *part)
{
    return part->stream >= 0 ? part->stream : op->stream;
}

/* The communicator of each part, and one stream for each communicator: on several NCCL would make them wait
   for each other. */
static bool finish_part(struct parser *parser, struct host_op *op, size_t at)
{
    struct p2p_part *part = &op->parts[at];
    assert(op->kind == OP_GROUP && at < op->part_count);
    if (part->comm < 0 && op->comm < 0)
        return parse_error(parser, part->mark,
                           "found no \"comm\", expected one here or in the group");
    if (part->comm == op->comm)
        part->comm = -1;
    if (part->stream == op->stream)
        part->stream = -1;
    for (size_t i = 0; i < at; i++)
        if (op->parts[i].comm == part->comm &&
            p2p_part_rank(op, &op->parts[i], parser->home) ==
                p2p_part_rank(op, part, parser->home) &&
            stream_of_part(op, &op->parts[i]) != stream_of_part(op, part))
            return parse_error(parser, part->mark,
                               "found another stream than that of the parts before it, expected "
                               "one stream for a communicator of a device");
    return true;
}

static bool finish_group(struct parser *parser, const struct node *item, struct host_op *op)
{
    bool streams = false;
    if (op->comm < 0)
        op->comm = op->parts[0].comm;
    for (size_t i = 0; i < op->part_count; i++) {
        if (!finish_part(parser, op, i))
            return false;
        streams |= op->parts[i].stream >= 0;
    }
    return !streams || !op->accesses || host_op_reads(op)->count + host_op_writes(op)->count == 0 ||
           parse_error(parser, item->mark,
                       "found reads or writes of a group on several streams, expected them in its "
                       "parts");
}

/* ---- process groups -------------------------------------------------------------------------- */

/* An event of the thread for its calls of a communicator. */
static int own_event(struct parser *parser, const char *what, const char *comm)
{
    const char *name = arena_printf(&parser->scratch, "%s.%s.%s", what, comm, parser->thread);
    return name ? symbol_implicit(parser, TABLE_EVENTS, name) : -1;
}

/* A process group has a stream of its own, nccl.COMM, and its calls one communicator. */
static bool finish_process_group(struct parser *parser, const struct node *item, struct host_op *op)
{
    struct process_group *group = op->process_group;
    assert(op->kind == OP_COLLECTIVE || op->kind == OP_GROUP);
    const struct node *work = node_find(item, "work");
    if (!node_find(item, "async"))
        return parse_error(parser, work->mark, "found \"work\" without \"async\", expected both");
    for (size_t i = 0; i < host_op_part_count(op); i++)
        if (op->parts[i].comm >= 0 || op->parts[i].stream >= 0)
            return parse_error(parser, op->parts[i].mark,
                               "found a part with a communicator or stream of its own in a call of "
                               "a process group, expected those of the group");
    const char *comm = parser->plan->comms[op->comm].name;
    const char *stream = arena_printf(&parser->scratch, "nccl.%s", comm);
    group->stream = stream ? symbol_implicit(parser, TABLE_STREAMS, stream) : -1;
    group->ready = own_event(parser, "ready", comm);
    if (!group->named)
        group->done = own_event(parser, "done", comm);
    return group->stream >= 0 && group->ready >= 0 && group->done >= 0;
}

/* Checks of several keys together. */
static bool finish_op(struct parser *parser, const struct node *item, struct host_op *op)
{
    if ((op->kind == OP_LAUNCH && !finish_launch(parser, item, op)) ||
        ((op->kind == OP_SYNC || op->kind == OP_QUERY) && !finish_sync(parser, item, op)))
        return false;
    if (op->kind == OP_COPY && !parse_check_pageable(parser, item, op->direction))
        return false;
    if (host_op_is_external(op) && !parser->in_graph)
        return parse_error(
            parser, node_find(item, "external")->mark,
            "found \"external\" outside of a graph, expected it of a record or a wait "
            "of a graph: other events are the plan's anyway");
    if (op->kind == OP_COLLECTIVE) {
        const struct work *work = &host_op_details(op)->work;
        if (!parse_check_count(parser, item, work->element, work->elements, &op->bytes))
            return false;
    }
    if (!parse_check_jitter(parser, item, "jitter", op->kind == OP_HOST ? "host" : "time",
                            host_op_details(op)->times ? 1 : op->time_ns))
        return false;
    return finish_turn(parser, op) &&
           (op->kind != OP_COLLECTIVE ||
            parse_check_root(parser, item, op->collective, op->root)) &&
           implicit_stream(parser, op) &&
           (op->kind != OP_GROUP || finish_group(parser, item, op)) &&
           (!host_op_process_group(op) || finish_process_group(parser, item, op));
}

/* `around`: the operation whose body this is in, or NULL. */
static bool check_place(struct parser *parser, const struct node *item,
                        const struct host_op *around, enum op_kind kind)
{
    if (!around || (around->kind == OP_LAUNCH ? fits_in_kernel(kind) : fits_in_callback(kind)))
        return true;
    return parse_error(parser, item->mark, "found \"%s\" in the body of a %s, expected %s",
                       op_syntax[kind].fields[0].key,
                       around->kind == OP_LAUNCH ? "kernel" : "callback",
                       around->kind == OP_LAUNCH ? "compute, signal, clear, await or acquire"
                                                 : "operations that touch no device");
}

/* Branches stand in the list of a thread, where what may follow is searched. */
static bool check_branches(struct parser *parser, const struct node *item,
                           const struct host_op *around, enum op_kind kind)
{
    if (op_asks(kind) || node_find(item, "then") || node_find(item, "else"))
        return (!around && !parser->in_graph) ||
               parse_error(
                   parser, item->mark,
                   "found \"%s\" with branches in a %s, expected it in the list of a thread",
                   op_key(kind), parser->in_graph ? "graph" : "body");
    return true;
}

/* Put a pair behind the others of a mapping. `last`: its last value so far, NULL: it is empty. */
static bool add_pair(struct parser *parser, struct node *map, struct node **last,
                     const struct node *key, const struct node *value)
{
    struct node *pair = ARENA_ARRAY(&parser->scratch, 2, struct node);
    if (!pair)
        return parse_no_memory(parser);
    pair[0] = *key;
    pair[1] = *value;
    pair[0].next = &pair[1];
    pair[1].next = NULL;
    *(*last ? &(*last)->next : &map->first) = pair;
    *last = &pair[1];
    map->length++;
    return true;
}

/*
 * A message outside of a group, as the group that it is:
 *
 *     {send: x, peer: 1, bytes: 8B, comm: c, stream: s}  -->  {group: [{send: x, peer: 1, bytes: 8B}], comm: c, stream: s}
 */
static const struct node *group_of_message(struct parser *parser, const struct node *item)
{
    static const char *const own[] = {"send", "recv", "peer", "bytes", "dtype", "count"};
    struct node *made = ARENA_ARRAY(&parser->scratch, 4, struct node);
    if (!made) {
        parse_no_memory(parser);
        return NULL;
    }
    struct node *part = &made[0], *list = &made[1], *group = &made[2], *key_of_list = &made[3];
    struct node *part_last = NULL, *group_last = NULL;
    *part = *group = *list = (struct node){.kind = NODE_MAP, .mark = item->mark};
    *list = (struct node){.kind = NODE_LIST, .mark = item->mark, .length = 1, .first = part};
    *key_of_list = *item->first;
    key_of_list->text = "group";
    key_of_list->length = strlen("group");
    bool good = add_pair(parser, group, &group_last, key_of_list, list);
    MAP_EACH (item, key, value) {
        bool is_own = false;
        for (size_t i = 0; i < sizeof own / sizeof *own; i++)
            is_own |= strcmp(key->text, own[i]) == 0;
        good = good && (is_own ? add_pair(parser, part, &part_last, key, value)
                               : add_pair(parser, group, &group_last, key, value));
    }
    return good ? group : NULL;
}

#ifdef SWSIM_CHECKS
/* Members from `first` up to, without it, `end` are of operations of these kinds. */
#define PART(first, end, ...)                                                                      \
    {                                                                                              \
        offsetof(struct host_op, first), offsetof(struct host_op, end), __VA_ARGS__                \
    }
enum { OF_FLAGS = 0 }; /* in place of kinds */
#define OF(kind) (UINT64_C(1) << OP_##kind)
static const struct {
    size_t begin, end;
    uint64_t kinds;
} op_parts[] = {
    PART(body, graph, OF(LAUNCH) | OF(CALLBACK)),
    PART(graph, process_group, OF(LAUNCH)),
    PART(process_group, parts, OF(COLLECTIVE) | OF(GROUP)),
    PART(parts, bytes, OF(GROUP)),
    PART(bytes, collective, OF(COLLECTIVE) | OF(COPY)),
    PART(collective, direction, OF(COLLECTIVE)),
    PART(direction, sync, OF(COPY)),
    PART(sync, external, OF(SYNC) | OF(QUERY)),
    PART(external, ticket, OF(RECORD) | OF(WAIT)),
    PART(ticket, aborted, OF(TICKET) | OF(SERVE)),
    PART(aborted, flag_use, OF(ABORT)),
    {offsetof(struct host_op, flag_use), sizeof(struct host_op), OF_FLAGS},
};
_Static_assert(OP_COUNT <= 64, "a bit for each kind");

/* No key of the operation fills a part of other kinds. They get a pattern, which whoever reads them stumbles over. */
static void check_parts(struct host_op *op)
{
    enum { PATTERN = 0xa5 };
    unsigned char *bytes = (unsigned char *)op;
    for (size_t i = 0; i < sizeof op_parts / sizeof *op_parts; i++)
        for (size_t at = op_parts[i].begin; at < op_parts[i].end; at++) {
            if (op_parts[i].kinds == OF_FLAGS ? op_operand(op->kind) == OPERAND_FLAG
                                              : op_parts[i].kinds >> op->kind & 1)
                continue;
            assert(bytes[at] == 0 && "a key fills what its kind of operation has not");
            bytes[at] = PATTERN;
        }
}
#endif

bool parse_op(struct parser *parser, const struct node *item, const struct host_op *around,
              struct host_op *op)
{
    if (!parser->in_graph && !(item = parse_relative(parser, item)))
        return false;
    enum op_kind kind = OP_HOST;
    if (!keys_threads_parse_kind(parser, item, &kind))
        return false;
    if (!check_place(parser, item, around, kind) || !check_branches(parser, item, around, kind))
        return false;
    *op = host_op_make(kind);
    op->mark = item->mark;
    op->iteration = parser->iteration;
    if (is_message_key(item->first->text))
        item = group_of_message(parser, item);
    const bool read = item &&
                      fields_parse(parser, item, op_syntax[kind].fields, op_syntax[kind].count, op,
                                   op_syntax[kind].what) &&
                      finish_op(parser, item, op);
#ifdef SWSIM_CHECKS
    check_parts(op);
#endif
    return read;
}

static bool parse_ops(struct parser *parser, const struct node *list, const struct host_op *around,
                      struct host_op **out, size_t *out_count)
{
    if (!parse_want_list(parser, list, "a list of operations"))
        return false;
    if (list->length > PLAN_MAX_OPS - parser->op_count)
        return parse_error(parser, list->mark, "found more than %d operations, expected fewer",
                           PLAN_MAX_OPS);
    parser->op_count += list->length;
    struct host_op *ops = ARENA_ARRAY(&parser->plan->arena, list->length, struct host_op);
    if (!ops)
        return parse_no_memory(parser);
    bool ok = true;
    size_t count = 0;
    READ_LIST (parser, list, item)
        ok &= parse_op(parser, item, around, &ops[count++]);
    *out = ops;
    *out_count = count;
    return ok;
}

bool parse_graph_ops(struct parser *parser, const struct node *list, struct graph *graph)
{
    parser->in_graph = true;
    const bool done = parse_ops(parser, list, NULL, &graph->ops, &graph->op_count);
    parser->in_graph = false;
    return done;
}

static bool field_body(PARSE_PARAMS)
{
    struct host_op *op = member;
    return parse_ops(parser, value, op, &op->body, &op->body_count);
}

/* ---- groups ---------------------------------------------------------------------------------- */

#define PART_FIELD(key, member, kind, ...) FIELD(key, struct p2p_part, member, kind, __VA_ARGS__)
#define PART_REST                                                                                  \
    PART_FIELD("comm", comm, symbol, "The communicator. The default is that of the group.",        \
               .table = TABLE_COMMS),                                                              \
        PART_FIELD("stream", stream, symbol, "The stream. The default is that of the group.",      \
                   .table = TABLE_STREAMS),                                                        \
        PART_FIELD("device", device, device, "The rank on whose device it is done.",               \
                   .max = PLAN_MAX_RANKS - 1, .otherwise = -1),                                    \
        PART_FIELD("bytes", bytes, bytes, "The bytes that it moves."),                             \
        PART_FIELD("dtype", element, word, DTYPE_ABOUT, .words = keywords_element),                \
        PART_FIELD("count", elements, count, COUNT_ABOUT, .max = PARSE_MAX_COUNT),                 \
        PART_FIELD("reads", reads, buffers, "The buffers that it reads.", .table = TABLE_BUFFERS), \
        PART_FIELD("writes", writes, buffers, "The buffers that it writes.",                       \
                   .table = TABLE_BUFFERS)
#define PART_MESSAGE(key, about)                                                                   \
    PART_FIELD(key, tag, name, about),                                                             \
        PART_FIELD("peer", peer, rank, "The other rank.", .required = true,                        \
                   .max = PLAN_MAX_RANKS - 1, .otherwise = -1),                                    \
        PART_REST
static const struct field send_part_fields[] = {
    PART_MESSAGE("send", "A message that is sent: its tag.")};
static const struct field recv_part_fields[] = {
    PART_MESSAGE("recv", "A message that is received: its tag.")};
static const struct field collective_part_fields[] = {
    PART_FIELD("collective", tag, name, "A collective: its tag."),
    PART_FIELD("op", collective, word, "The kind of collective.", .words = keywords_collective,
               .otherwise = COLLECTIVE_ALL_REDUCE),
    PART_FIELD("root", root, rank, "The rank that sends to all. The default is the lowest.",
               .max = PLAN_MAX_RANKS - 1, .otherwise = -1),
    PART_REST,
};

/* part := {send: tag, peer: rank, bytes: size} | {recv: ...} | {collective: tag, op: kind, bytes: size}
   and in each: comm, stream, reads, writes */
static bool keys_threads_parse_part(struct parser *parser, const struct node *item,
                                    struct p2p_part *part)
{
    bool map = item->kind == NODE_MAP;
    bool send = map && node_find(item, "send"), recv = map && node_find(item, "recv");
    bool collective = map && node_find(item, "collective");
    *part = (struct p2p_part){.is_collective = collective,
                              .send = send,
                              .collective = COLLECTIVE_ALL_REDUCE,
                              .comm = -1,
                              .stream = -1,
                              .root = -1,
                              .mark = item->mark};
    if (send + recv + collective != 1)
        return parse_mismatch(parser, item,
                              "one of {send: tag, peer: rank}, {recv: tag, peer: rank} and "
                              "{collective: tag}");
    if (collective)
        return fields_parse(parser, item, collective_part_fields,
                            FIELD_COUNT(collective_part_fields), part, "a collective") &&
               parse_check_root(parser, item, part->collective, part->root) &&
               parse_check_count(parser, item, part->element, part->elements, &part->bytes);
    return fields_parse(parser, item, send ? send_part_fields : recv_part_fields,
                        FIELD_COUNT(send_part_fields), part, send ? "a send" : "a recv") &&
           parse_check_count(parser, item, part->element, part->elements, &part->bytes);
}

static bool field_parts(PARSE_PARAMS)
{
    struct host_op *op = member;
    if (value->kind != NODE_LIST || value->length == 0)
        return parse_mismatch(parser, value, "a list of collectives, sends and receives");
    op->part_count = 0;
    op->parts = ARENA_ARRAY(&parser->plan->arena, value->length, struct p2p_part);
    if (!op->parts)
        return parse_no_memory(parser);
    bool ok = true;
    READ_LIST (parser, value, item)
        ok &= keys_threads_parse_part(parser, item, &op->parts[op->part_count++]);
    return ok;
}

static void keys_threads_print_part(struct printer *printer, const struct p2p_part *part)
{
    open_map(printer, FLOW);
    if (part->is_collective)
        fields_print(printer, collective_part_fields, FIELD_COUNT(collective_part_fields), part,
                     NULL);
    else
        fields_print(printer, part->send ? send_part_fields : recv_part_fields,
                     FIELD_COUNT(send_part_fields), part, NULL);
    close_map(printer);
}

static void keys_threads_print_parts(PRINT_PARAMS)
{
    const struct host_op *op = member;
    open_list(printer, FLOW);
    for (size_t i = 0; i < op->part_count; i++)
        keys_threads_print_part(printer, &op->parts[i]);
    close_list(printer);
}

static void schema_parts(struct json *json, const struct field *field)
{
    schema_begin_list(json);
    schema_either(json);
    schema_keys_with(json, collective_part_fields, FIELD_COUNT(collective_part_fields),
                     "collective");
    schema_or(json);
    schema_keys_with(json, send_part_fields, FIELD_COUNT(send_part_fields), "send");
    schema_or(json);
    schema_keys_with(json, recv_part_fields, FIELD_COUNT(recv_part_fields), "recv");
    schema_end_either(json);
    schema_end(json);
}

/* ---- operations in canonical text --------------------------------------------------------------- */

static void keys_threads_print_op(struct printer *printer, const struct host_op *op)
{
    if (printer->relative_lines && !printer->in_body && !printer->in_branch)
        printer->relative = printer->relative_lines[printer->line++];
    open_map(printer, FLOW);
    fields_print(printer, op_syntax[op->kind].fields, op_syntax[op->kind].count, op, NULL);
    close_map(printer);
}

static void keys_threads_print_body(PRINT_PARAMS)
{
    const struct host_op *op = member;
    const bool outer = printer->in_body;
    printer->in_body = true;
    open_list(printer, FLOW);
    for (size_t i = 0; i < op->body_count; i++)
        keys_threads_print_op(printer, &op->body[i]);
    close_list(printer);
    printer->in_body = outer;
}

static void print_repeat(struct printer *printer, const struct host_thread *thread,
                         const struct repeat *repeat)
{
    printer->line += 2; /* this one, and that of "body" */
    open_map(printer, BLOCK);
    put_word(printer, "repeat");
    put_number(printer, repeat->times);
    put_word(printer, "body");
    open_list(printer, BLOCK);
    for (size_t k = 0; k < repeat->length; k += host_op_length(&thread->ops[repeat->first + k]))
        keys_threads_print_op(printer, &thread->ops[repeat->first + k]);
    close_list(printer);
    close_map(printer);
}

void print_thread(struct printer *printer, const struct host_thread *thread)
{
    size_t next = 0;
    printer->home = thread->rank;
    printer->line = 0;
    open_list(printer, BLOCK);
    for (size_t k = 0; k < thread->op_count; k++) {
        assert(next <= thread->repeat_count);
        if (next == thread->repeat_count || k < thread->repeats[next].first) {
            keys_threads_print_op(printer, &thread->ops[k]);
            k += host_op_length(&thread->ops[k]) - 1;
            continue;
        }
        const struct repeat *repeat = &thread->repeats[next++];
        print_repeat(printer, thread, repeat);
        k += repeat->length * (size_t)(thread->folded ? 1 : repeat->times) - 1;
    }
    close_list(printer);
}

static bool is_first_of_all(const struct plan *plan, size_t thread)
{
    ASSERT_INDEX(thread, plan->thread_count);
    for (size_t i = 0; i < thread; i++)
        if (plan->threads[i].of_all &&
            strcmp(plan->threads[i].name, plan->threads[thread].name) == 0)
            return false;
    return true;
}

void print_threads(struct printer *printer)
{
    const struct plan *plan = printer->plan;
    open_map(printer, BLOCK);
    for (size_t i = 0; i < plan->thread_count; i++) {
        const struct host_thread *thread = &plan->threads[i];
        if (thread->of_all) {
            if (is_first_of_all(plan, i))
                print_for_all_ranks(printer, thread);
            continue;
        }
        put_text(printer, arena_printf(&printer->scratch, "r%d.%s", thread->rank, thread->name));
        print_thread(printer, thread);
    }
    close_map(printer);
}

void print_graphs(struct printer *printer)
{
    const struct plan *plan = printer->plan;
    open_map(printer, BLOCK);
    for (size_t i = 0; i < plan->graph_count; i++) {
        put_text(printer, plan->graphs[i].name);
        open_list(printer, BLOCK);
        for (size_t k = 0; k < plan->graphs[i].op_count; k++)
            keys_threads_print_op(printer, &plan->graphs[i].ops[k]);
        close_list(printer);
    }
    close_map(printer);
}

/* A message outside of a group has the keys of a part and of a group. */
static void schema_message(struct json *json, const struct field *part, size_t count,
                           const char *key)
{
    struct field all[FIELD_COUNT(send_part_fields) + FIELD_COUNT(GROUP_fields)];
    assert(count <= FIELD_COUNT(send_part_fields));
    memcpy(all, part, count * sizeof *all);
    for (size_t i = 0; i < FIELD_COUNT(GROUP_fields); i++) {
        bool known = strcmp(GROUP_fields[i].key, "group") == 0;
        for (size_t k = 0; k < count; k++)
            known |= strcmp(GROUP_fields[i].key, all[k].key) == 0;
        if (!known)
            all[count++] = GROUP_fields[i];
    }
    json_begin_object(json);
    schema_keys_with(json, all, count, key);
    json_end_object(json);
}

void schema_operation(struct json *json)
{
    json_begin_array_at(json, "anyOf");
    for (int kind = 0; kind < HOST_OP_COUNT; kind++) {
        json_begin_object(json);
        schema_keys_with(json, op_syntax[kind].fields, op_syntax[kind].count,
                         op_syntax[kind].fields[0].key);
        json_end_object(json);
    }
    schema_message(json, send_part_fields, FIELD_COUNT(send_part_fields), "send");
    schema_message(json, recv_part_fields, FIELD_COUNT(recv_part_fields), "recv");
    json_end_array(json);
}

static void schema_threads(struct json *json, const struct field *field)
{
    schema_begin_named(json);
    schema_begin_list(json);
    schema_either(json);
    schema_refer(json, "operation");
    schema_or(json);
    schema_repeat(json);
    schema_end_either(json);
    schema_end(json);
    schema_end(json);
}

const struct field operations_field = {.kind = &kind_body};
const struct field_kind kind_threads = {.schema = schema_threads};

/* ---- threads --------------------------------------------------------------------------------- */

/* all := "r*." name */
bool thread_name_is_of_all(const char *name, const char **thread_name)
{
    *thread_name = name + 3;
    return strncmp(name, "r*.", 3) == 0 && name[3];
}

static void parse_ops_of_thread(struct parser *parser, const struct node *value,
                                struct host_thread *thread)
{
    parser->thread = thread->name;
    parser->home = thread->rank;
    parser->ticket = -1;
    if (parse_thread_ops(parser, value, thread))
        parse_settle_devices(parser, thread);
}

static void parse_thread(struct parser *parser, const struct node *key, const struct node *value)
{
    const char *name;
    struct host_thread *thread = &parser->plan->threads[parser->plan->thread_count++];
    *thread = (struct host_thread){.mark = key->mark};
    if (!thread_name_rank(key->text, &thread->rank, &name) || thread->rank >= parser->plan->ranks) {
        parse_error(parser, key->mark,
                    "found thread \"%s\", expected a name such as r0.main with a rank below "
                    "\"ranks\" (%d), or r*.main for all ranks",
                    key->text, parser->plan->ranks);
        return;
    }
    thread->name = parse_keep(parser, name);
    if (thread->name)
        parse_ops_of_thread(parser, value, thread);
}

static bool has_own_list(const struct node *threads, int rank, const char *name)
{
    int other;
    const char *other_name;
    for (const struct node *key = threads->first; key; key = key->next->next)
        if (thread_name_rank(key->text, &other, &other_name) && other == rank &&
            strcmp(name, other_name) == 0)
            return true;
    return false;
}

/* The list of all ranks that have none of their own. A mistake in it is told once. */
static void parse_thread_of_all(struct parser *parser, const struct node *threads,
                                const struct node *key, const struct node *value, const char *name)
{
    struct plan *plan = parser->plan;
    const char *kept = parse_keep(parser, name);
    const size_t errors = parser->errors;
    for (int rank = 0; kept && rank < plan->ranks && parser->errors == errors; rank++) {
        if (has_own_list(threads, rank, name))
            continue;
        struct host_thread *thread = &plan->threads[plan->thread_count++];
        *thread =
            (struct host_thread){.mark = key->mark, .rank = rank, .name = kept, .of_all = true};
        parse_ops_of_thread(parser, value, thread);
    }
}

/* Room for the threads of a mapping. */
static size_t most_threads(const struct parser *parser, const struct node *threads)
{
    size_t count = threads->length;
    const char *name;
    for (const struct node *key = threads->first; key; key = key->next->next)
        count += thread_name_is_of_all(key->text, &name) ? (size_t)parser->plan->ranks : 0;
    return count;
}

void parse_threads(struct parser *parser, const struct node *value)
{
    struct plan *plan = parser->plan;
    if (value->kind != NODE_MAP || value->length == 0) {
        parse_mismatch(parser, value, "a mapping from threads such as r0.main to operations");
        return;
    }
    plan->threads = PARSE_ARRAY(parser, most_threads(parser, value), struct host_thread);
    if (!plan->threads)
        return;
    READ_MAP (parser, value, key, ops) {
        const char *name;
        if (!parse_name(parser, key, "a thread's name"))
            continue;
        if (thread_name_is_of_all(key->text, &name))
            parse_thread_of_all(parser, value, key, ops, name);
        else
            parse_thread(parser, key, ops);
    }
}
