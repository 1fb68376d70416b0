/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys_plan.c - the keys at the top of a plan, and the short sections behind them: communicators, queues, buffers, verdicts.
 *
 * The order of `sections` is the order of meaning: names that a later section refers to are read by an
 * earlier one, wherever the keys stand in the file.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "text_internal.h"
#include "plan/schedules/generate.h"
#include "base/sort.h"
#include "base/units.h"

enum { VERSION = 1 };

static bool has_always(const struct printer *printer)
{
    return true;
}

/* What entries of mappings are that have names as keys. */
static const struct field rank_field = {.otherwise = -1, .max = PLAN_MAX_RANKS - 1};
static const struct field capacity_field = {.kind = &kind_int, .min = 1, .max = 65536};
static const struct field staleness_field = {.kind = &kind_int, .min = 1, .max = PLAN_MAX_DEPTH};
static const struct field text_field = {.kind = &kind_text};
static const struct field number_field = {
    .kind = &kind_int, .max = PLAN_MAX_ITERATIONS, .otherwise = -1};

/* ---- comms, queues, buffers ------------------------------------------------------------------- */

/* members := "all" | list of ranks, each once */
static void parse_members(struct parser *parser, struct comm *comm, const struct node *value)
{
    if (value->kind == NODE_SCALAR && strcmp(value->text, "all") == 0)
        return;
    if (value->kind != NODE_LIST || value->length == 0) {
        parse_mismatch(parser, value, "a list of ranks such as [0, 1], or all");
        return;
    }
    comm->members = PARSE_ARRAY(parser, value->length, int);
    if (!comm->members)
        return;
    READ_LIST (parser, value, item) {
        int64_t rank;
        if (!parse_number(parser, item, false, 0, parser->plan->ranks - 1, &rank))
            continue;
        for (size_t i = 0; i < comm->member_count; i++)
            if (comm->members[i] == rank) {
                parse_error(parser, item->mark,
                            "found rank %d a second time, expected every "
                            "member once",
                            (int)rank);
                return;
            }
        comm->members[comm->member_count++] = (int)rank;
    }
    sort_int(comm->members, comm->member_count);
}

static void parse_comms(struct parser *parser, const struct node *value)
{
    if (!value || !parse_want_map(parser, value, "a mapping from communicators to ranks"))
        return;
    READ_MAP (parser, value, key, members) {
        if (!parse_name(parser, key, "a communicator's name") ||
            symbol_find(parser, TABLE_COMMS, key->text) >= 0)
            continue; /* a duplicate key is reported already */
        struct comm *comm = parse_add_comm(parser, key->text, key->mark);
        if (!comm)
            continue;
        comm->declared = true;
        parse_members(parser, comm, members);
    }
}

static void print_comms(struct printer *printer)
{
    const struct plan *plan = printer->plan;
    open_map(printer, FLOW);
    for (size_t i = 0; i < plan->comm_count; i++) {
        const struct comm *comm = &plan->comms[i];
        put_text(printer, comm->name);
        if (!comm->members) {
            put_word(printer, "all");
            continue;
        }
        open_list(printer, FLOW);
        for (size_t k = 0; k < comm->member_count; k++)
            put_number(printer, comm->members[k]);
        close_list(printer);
    }
    close_map(printer);
}

static void schema_comms(struct json *json, const struct field *field)
{
    schema_begin_named(json);
    schema_either(json);
    json_put_string(json, "const", "all");
    schema_or(json);
    schema_begin_list(json);
    schema_int(json, &rank_field);
    schema_end(json);
    schema_end_either(json);
    schema_end(json);
}

static const struct field_kind kind_comms = {.schema = schema_comms};

static void parse_queues(struct parser *parser, const struct node *value)
{
    struct plan *plan = parser->plan;
    if (!value || !parse_want_map(parser, value, "a mapping from queues to capacities"))
        return;
    plan->queues = PARSE_ARRAY(parser, value->length, struct queue);
    if (!plan->queues)
        return;
    READ_MAP (parser, value, key, number) {
        struct queue *queue = &plan->queues[plan->queue_count];
        if (!parse_name(parser, key, "a queue's name") ||
            symbol_find(parser, TABLE_QUEUES, key->text) >= 0)
            continue;
        queue->mark = key->mark;
        queue->name = parse_keep(parser, key->text);
        field_int(parser, number, &queue->capacity, &capacity_field);
        if (queue->name && symbol_add(parser, TABLE_QUEUES, queue->name, (int)plan->queue_count))
            plan->queue_count++;
    }
}

static void print_queues(struct printer *printer)
{
    const struct plan *plan = printer->plan;
    open_map(printer, FLOW);
    for (size_t i = 0; i < plan->queue_count; i++) {
        put_text(printer, plan->queues[i].name);
        put_number(printer, plan->queues[i].capacity);
    }
    close_map(printer);
}

static const struct field buffer_fields[] = {
    FIELD("scope", struct buffer, scope, word,
          "Whether each iteration has an instance of its own, or all share one.",
          .words = keywords_scope, .otherwise = -1),
    FIELD("instances", struct buffer, instances, int,
          "Instances of a shared buffer that iterations use in turn.", .min = 1,
          .max = PLAN_MAX_DISTANCE),
    FIELD("bytes", struct buffer, bytes, bytes, "The size of an instance."),
};

/* A ring of instances is shared by all iterations. */
static void check_instances(struct parser *parser, const struct node *properties,
                            struct buffer *buffer)
{
    const struct node *scope = node_find(properties, "scope");
    if (buffer->instances == 0)
        return;
    if (scope && buffer->scope == SCOPE_ITERATION)
        parse_error(parser, scope->mark,
                    "found scope iteration beside instances, expected shared: iterations use the "
                    "instances in turn");
    buffer->scope = SCOPE_SHARED;
}

static void parse_buffers(struct parser *parser, const struct node *value)
{
    if (!value || !parse_want_map(parser, value, "a mapping from buffers to their properties"))
        return;
    READ_MAP (parser, value, key, properties) {
        if (!parse_name(parser, key, "a buffer's name") ||
            symbol_find(parser, TABLE_BUFFERS, key->text) >= 0)
            continue;
        struct buffer *buffer = parse_add_buffer(parser, key->text, key->mark);
        if (!buffer || !parse_want_map(parser, properties, "a mapping such as {bytes: 64MiB}"))
            continue;
        buffer->declared = true;
        fields_parse(parser, properties, buffer_fields, FIELD_COUNT(buffer_fields), buffer,
                     "a buffer");
        check_instances(parser, properties, buffer);
    }
}

static void keys_plan_print_buffers(struct printer *printer)
{
    const struct plan *plan = printer->plan;
    const struct buffer usual = {.scope =
                                     plan->form == FORM_PIPELINE ? SCOPE_ITERATION : SCOPE_SHARED};
    open_map(printer, BLOCK);
    for (size_t i = 0; i < plan->buffer_count; i++) {
        if (!plan->buffers[i].declared)
            continue;
        put_text(printer, plan->buffers[i].name);
        open_map(printer, FLOW);
        fields_print(printer, buffer_fields, FIELD_COUNT(buffer_fields), &plan->buffers[i], &usual);
        close_map(printer);
    }
    close_map(printer);
}

static bool has_buffers(const struct printer *printer)
{
    const struct plan *plan = printer->plan;
    for (size_t i = 0; i < plan->buffer_count; i++)
        if (plan->buffers[i].declared)
            return true;
    return false;
}

static const struct keys buffer_keys =
    KEYS(buffer_fields, "a buffer", "a mapping such as {bytes: 64MiB}");
static const struct field buffer_field = {.kind = &kind_map, .keys = &buffer_keys};

/* A buffer that no operation names is a misspelling. */
static struct buffer *known_buffer(struct parser *parser, const struct node *node)
{
    int index = symbol_require(parser, TABLE_BUFFERS, node);
    return index < 0 ? NULL : &parser->plan->buffers[index];
}

static void parse_inputs(struct parser *parser, const struct node *value)
{
    if (!value || !parse_want_list(parser, value, "a list of buffers"))
        return;
    parser->plan->inputs_given = true;
    READ_LIST (parser, value, item) {
        struct buffer *buffer = known_buffer(parser, item);
        if (buffer && buffer->input)
            parse_error(parser, item->mark, "found buffer \"%s\" a second time", item->text);
        else if (buffer)
            buffer->input = true;
    }
}

static void print_inputs(struct printer *printer)
{
    const struct plan *plan = printer->plan;
    open_list(printer, FLOW);
    for (size_t i = 0; i < plan->buffer_count; i++)
        if (plan->buffers[i].input)
            put_text(printer, plan->buffers[i].name);
    close_list(printer);
}

static void parse_unrecorded(struct parser *parser, const struct node *value)
{
    if (!value ||
        !parse_want_map(parser, value, "a mapping from what is not recorded to the reason"))
        return;
    READ_MAP (parser, value, key, reason) {
        if (!parse_name(parser, key, "what is not recorded") ||
            !parse_name(parser, reason, "a reason"))
            continue;
        if (!plan_add_unrecorded(parser->plan, parse_keep(parser, key->text),
                                 parse_keep(parser, reason->text)))
            parse_no_memory(parser);
    }
}

static void keys_plan_print_unrecorded(struct printer *printer)
{
    const struct plan *plan = printer->plan;
    open_map(printer, BLOCK);
    for (size_t i = 0; i < plan->unrecorded_count; i++) {
        put_text(printer, plan->unrecorded[i].what);
        put_text(printer, plan->unrecorded[i].why);
    }
    close_map(printer);
}

/* ---- memory ----------------------------------------------------------------------------------- */

static const struct field memory_fields[] = {
    FIELD("rank", struct tensor_memory, rank, rank, "The rank.", .required = true,
          .max = PLAN_MAX_RANKS - 1),
    FIELD("peak", struct tensor_memory, peak, bytes, "The most bytes that tensors take."),
    FIELD("reserved", struct tensor_memory, reserved, bytes,
          "The most bytes that PyTorch's allocator reserves."),
    FIELD("device", struct tensor_memory, device, bytes,
          "The most bytes of the device that are allocated."),
#define X(name, key, about) FIELD(key, struct tensor_memory, by_use[TENSORS_##name], bytes, about),
    TENSORS_FOR_LIST(X)
#undef X
        FIELD("refused", struct tensor_memory, refused, bytes,
              "The bytes of an allocation that failed."),
    FIELD("at", struct tensor_memory, at, text,
          "The line of the program whose allocation makes the peak, or failed."),
};
static const struct keys memory_keys =
    KEYS(memory_fields, "the memory of a rank", "{rank: 0, peak: 1GiB}");

static void keys_plan_parse_memory(struct parser *parser, const struct node *value)
{
    struct plan *plan = parser->plan;
    if (!value || !parse_want_list(parser, value, "a list of the memory of ranks"))
        return;
    plan->memory = PARSE_ARRAY(parser, value->length + 1, struct tensor_memory);
    if (!plan->memory)
        return;
    READ_LIST (parser, value, item) {
        struct tensor_memory memory = {0};
        if (keys_parse(parser, item, &memory_keys, &memory))
            plan->memory[plan->memory_count++] = memory;
    }
}

static void print_memory(struct printer *printer)
{
    const struct plan *plan = printer->plan;
    open_list(printer, BLOCK);
    for (size_t i = 0; i < plan->memory_count; i++) {
        open_map(printer, FLOW);
        fields_print(printer, memory_fields, FIELD_COUNT(memory_fields), &plan->memory[i], NULL);
        close_map(printer);
    }
    close_list(printer);
}

static const struct field memory_field = {.kind = &kind_map, .keys = &memory_keys};

static void parse_staleness(struct parser *parser, const struct node *value)
{
    if (!value || !parse_want_map(parser, value, "a mapping from shared buffers to iterations"))
        return;
    READ_MAP (parser, value, key, iterations) {
        struct buffer *buffer = known_buffer(parser, key);
        if (buffer && buffer->scope != SCOPE_SHARED)
            parse_error(parser, key->mark,
                        "found buffer \"%s\" of scope iteration, expected a shared one", key->text);
        else if (buffer && buffer_period(buffer) > 1)
            parse_error(parser, key->mark,
                        "found buffer \"%s\" of %d instances, expected one that has one: a read "
                        "of its instance is as old as the iteration that used it before",
                        key->text, buffer->instances);
        else if (buffer)
            field_int(parser, iterations, &buffer->staleness, &staleness_field);
    }
}

static void print_staleness(struct printer *printer)
{
    const struct plan *plan = printer->plan;
    open_map(printer, FLOW);
    for (size_t i = 0; i < plan->buffer_count; i++)
        if (plan->buffers[i].staleness > 0) {
            put_text(printer, plan->buffers[i].name);
            put_number(printer, plan->buffers[i].staleness);
        }
    close_map(printer);
}

static bool has_staleness(const struct printer *printer)
{
    const struct plan *plan = printer->plan;
    for (size_t i = 0; i < plan->buffer_count; i++)
        if (plan->buffers[i].staleness > 0)
            return true;
    return false;
}

/* ---- expected verdicts ----------------------------------------------------------------------- */

/* verdict := proved | some | always | violated, of a race also: order */
static void parse_verdict(struct parser *parser, struct expectation *expect, int property,
                          const struct node *value)
{
    const char *word = value->kind == NODE_SCALAR ? value->text : "";
    bool order = property == PROPERTY_RACE && strcmp(word, "order") == 0;
    expect->named[property] = true;
    if (order || strcmp(word, "violated") == 0) {
        expect->outcome[property] = OUTCOME_SOME;
        expect->any_violation[property] = true;
        return;
    }
    for (enum outcome outcome = OUTCOME_PROVED; outcome < OUTCOME_NONE; outcome++) {
        if (strcmp(word, outcome_key(outcome)) == 0) {
            expect->outcome[property] = outcome;
            return;
        }
    }
    parse_mismatch(parser, value,
                   property == PROPERTY_RACE ? "proved, some, always, violated or order"
                                             : "proved, some, always or violated");
}

/* covers := all */
static void parse_covers(struct parser *parser, struct expectation *expect,
                         const struct node *value)
{
    expect->covers_all = value->kind == NODE_SCALAR && strcmp(value->text, "all") == 0;
    if (!expect->covers_all)
        parse_mismatch(parser, value, "all");
}

/* below := "<TIME" */
static void parse_below(struct parser *parser, struct expectation *expect, const struct node *value)
{
    const char *what;
    expect->below_mark = value->mark;
    if (value->kind != NODE_SCALAR || value->text[0] != '<' ||
        !units_parse_time(value->text + 1, &expect->below_ns, &what) || expect->below_ns <= 0)
        parse_mismatch(parser, value, "a bound of the predicted time, as in \"<11ms\"");
}

static void parse_verdicts(struct parser *parser, struct expectation *expect,
                           const struct node *value)
{
    if (!parse_want_map(parser, value, "a mapping from properties to verdicts"))
        return;
    expect->given = true;
    expect->mark = value->mark;
    READ_MAP (parser, value, key, verdict) {
        struct nearest nearest = {.found = key->text};
        int property = 0;
        if (strcmp(key->text, "coverage") == 0) {
            parse_covers(parser, expect, verdict);
            continue;
        }
        if (strcmp(key->text, "iteration") == 0) {
            parse_below(parser, expect, verdict);
            continue;
        }
        while (property < PROPERTY_COUNT &&
               strcmp(key->text, property_key((enum property)property)) != 0)
            nearest_try(&nearest, property_key((enum property)property++));
        if (property < PROPERTY_COUNT)
            parse_verdict(parser, expect, property, verdict);
        else
            parse_error(parser, key->mark,
                        "found unknown property \"%s\", expected message, deadlock, mismatch, "
                        "race, lifetime, value, serial, slot, bound, drain, faults, coverage or "
                        "iteration%s",
                        key->text, nearest_hint(&nearest, '"', &parser->scratch));
    }
}

/* expect := verdicts | {clock: verdicts, dataflow: verdicts}, the latter for two drivers */
static void parse_expect(struct parser *parser, const struct node *value)
{
    struct plan *plan = parser->plan;
    if (!value || !parse_want_map(parser, value, "a mapping from properties to verdicts"))
        return;
    const struct node *clock = node_find(value, "clock");
    const struct node *dataflow = node_find(value, "dataflow");
    if ((!clock && !dataflow) || plan->form != FORM_PIPELINE) {
        parse_verdicts(parser, &plan->expect, value);
        plan->expect_dataflow = plan->expect;
        return;
    }
    READ_MAP (parser, value, key, verdicts)
        if (verdicts != clock && verdicts != dataflow)
            parse_error(parser, key->mark,
                        "found key \"%s\" beside a driver, expected only clock and dataflow",
                        key->text);
    if (clock)
        parse_verdicts(parser, &plan->expect, clock);
    if (dataflow)
        parse_verdicts(parser, &plan->expect_dataflow, dataflow);
}

static void put_verdicts(struct printer *printer, const struct expectation *expect)
{
    open_map(printer, FLOW);
    for (int p = 0; p < PROPERTY_COUNT; p++) {
        if (!expect->named[p])
            continue;
        const char *violated = p == PROPERTY_RACE ? "order" : "violated";
        put_word(printer, property_key((enum property)p));
        put_word(printer, expect->any_violation[p] ? violated : outcome_key(expect->outcome[p]));
    }
    if (expect->covers_all) {
        put_word(printer, "coverage");
        put_word(printer, "all");
    }
    if (expect->below_ns > 0) {
        char text[UNITS_TEXT + 1] = "<";
        units_print_time(expect->below_ns, text + 1);
        put_word(printer, "iteration");
        put_text(printer, text);
    }
    close_map(printer);
}

static bool same_verdicts(const struct expectation *a, const struct expectation *b)
{
    if (a->given != b->given || a->covers_all != b->covers_all || a->below_ns != b->below_ns)
        return false;
    for (int p = 0; p < PROPERTY_COUNT; p++)
        if (a->named[p] != b->named[p] || a->outcome[p] != b->outcome[p] ||
            a->any_violation[p] != b->any_violation[p])
            return false;
    return true;
}

static bool is_one(const struct plan *plan)
{
    return plan->form != FORM_PIPELINE || same_verdicts(&plan->expect, &plan->expect_dataflow);
}

static void print_expect(struct printer *printer)
{
    const struct plan *plan = printer->plan;
    if (is_one(plan)) {
        put_verdicts(printer, &plan->expect);
        return;
    }
    open_map(printer, FLOW);
    if (plan->expect.given) {
        put_word(printer, "clock");
        put_verdicts(printer, &plan->expect);
    }
    if (plan->expect_dataflow.given) {
        put_word(printer, "dataflow");
        put_verdicts(printer, &plan->expect_dataflow);
    }
    close_map(printer);
}

static bool has_expect(const struct printer *printer)
{
    const struct plan *plan = printer->plan;
    return plan->expect.given || (!is_one(plan) && plan->expect_dataflow.given);
}

static void schema_verdicts(struct json *json, bool drivers)
{
    json_put_string(json, "type", "object");
    json_put_bool(json, "additionalProperties", false);
    json_begin_object_at(json, "properties");
    for (int p = 0; p < PROPERTY_COUNT; p++) {
        json_begin_object_at(json, property_key((enum property)p));
        json_put_string(json, "description", "The expected verdict of this property.");
        json_begin_array_at(json, "enum");
        for (enum outcome outcome = OUTCOME_PROVED; outcome < OUTCOME_NONE; outcome++)
            json_string(json, outcome_key(outcome));
        json_string(json, "violated");
        if (p == PROPERTY_RACE)
            json_string(json, "order");
        json_end_array(json);
        json_end_object(json);
    }
    json_begin_object_at(json, "coverage");
    json_put_string(json, "description", "All work declares what it accesses.");
    json_begin_array_at(json, "enum");
    json_string(json, "all");
    json_end_array(json);
    json_end_object(json);
    json_begin_object_at(json, "iteration");
    json_put_string(json, "description", "A bound of the predicted time of an iteration.");
    schema_refer(json, "below");
    json_end_object(json);
    static const char *const keys[] = {"clock", "dataflow"};
    for (size_t i = 0; drivers && i < FIELD_COUNT(keys); i++) {
        json_begin_object_at(json, keys[i]);
        json_put_string(json, "description", "The verdicts under this driver.");
        schema_verdicts(json, false);
        json_end_object(json);
    }
    json_end_object(json);
}

static void schema_expect(struct json *json, const struct field *field)
{
    schema_verdicts(json, true);
}

static const struct field_kind kind_expect = {.schema = schema_expect};

/* ---- version and ranks ----------------------------------------------------------------------- */

static void parse_version(struct parser *parser, const struct node *value)
{
    int64_t version;
    if (!value)
        parse_error(parser, parser->root->mark, "found no \"swplan\", expected \"swplan: %d\"",
                    VERSION);
    else if (parse_number(parser, value, false, 1, INT32_MAX, &version) && version != VERSION)
        parse_error(
            parser, value->mark,
            "found version %d of the format of plans, expected \"swplan: %d\", the only one so far",
            (int)version, VERSION);
}

static void print_version(struct printer *printer)
{
    put_number(printer, VERSION);
}

static void schema_version(struct json *json, const struct field *field)
{
    json_put_int(json, "const", VERSION);
}

static const struct field_kind kind_version = {.schema = schema_version};

static void raise_ranks(struct parser *parser, int rank)
{
    if (rank >= parser->plan->ranks && rank < PLAN_MAX_RANKS)
        parser->plan->ranks = rank + 1;
}

/* Host programs: as many as threads and communicators name. */
static void count_ranks(struct parser *parser)
{
    const struct node *threads = node_find(parser->root, "threads");
    const struct node *comms = node_find(parser->root, "comms");
    const char *name;
    int rank;
    if (threads && threads->kind == NODE_MAP)
        READ_MAP (parser, threads, key, ops)
            if (thread_name_rank(key->text, &rank, &name))
                raise_ranks(parser, rank);
    if (comms && comms->kind == NODE_MAP)
        READ_MAP (parser, comms, key, members)
            READ_LIST (parser, members, item)
                if (item->kind == NODE_SCALAR && strlen(item->text) <= 4)
                    raise_ranks(parser, atoi(item->text));
}

static void keys_plan_parse_ranks(struct parser *parser, const struct node *value)
{
    static const struct field field = {.min = 1, .max = PLAN_MAX_RANKS};
    if (value)
        field_int(parser, value, &parser->plan->ranks, &field);
    else if (parser->plan->form == FORM_THREADS)
        count_ranks(parser);
}

/* True if there are other ranks than the parser would find without the key. */
static bool has_ranks(const struct printer *printer)
{
    const struct plan *plan = printer->plan;
    int highest = 0;
    for (size_t i = 0; i < plan->thread_count; i++)
        if (plan->threads[i].of_all) /* that list may stand for more than have lists of their own */
            return true;
    for (size_t i = 0; i < plan->thread_count; i++)
        if (plan->threads[i].rank > highest)
            highest = plan->threads[i].rank;
    for (size_t i = 0; plan->form == FORM_THREADS && i < plan->comm_count; i++)
        for (size_t k = 0; k < plan->comms[i].member_count; k++)
            if (plan->comms[i].members[k] > highest)
                highest = plan->comms[i].members[k];
    return plan->form != FORM_PROGRAMS && plan->ranks != highest + 1;
}

/* ---- failures -------------------------------------------------------------------------------- */

/* The runtime of the pipeline form stops all ranks by default; a program written call by call does only
   what is written in it. */
static enum on_failure usual_on_failure(const struct plan *plan)
{
    return plan->form == FORM_PIPELINE ? ON_FAILURE_GROUP_ABORT : ON_FAILURE_NONE;
}

static void parse_on_failure(struct parser *parser, const struct node *value)
{
    static const struct field field = {.words = keywords_on_failure};
    parser->plan->on_failure = usual_on_failure(parser->plan);
    if (value)
        field_word(parser, value, &parser->plan->on_failure, &field);
}

static bool has_on_failure(const struct printer *printer)
{
    const struct plan *plan = printer->plan;
    return plan->on_failure != usual_on_failure(plan);
}

/* ---- the top of a plan ----------------------------------------------------------------------- */

enum {
    IN_PIPELINE = 1 << FORM_PIPELINE,
    IN_PROGRAMS = 1 << FORM_PROGRAMS,
    IN_THREADS = 1 << FORM_THREADS,
    IN_ALL = IN_PIPELINE | IN_PROGRAMS | IN_THREADS
};

/* The keys that make a form. */
static const struct form_key {
    const char *key;
    enum plan_form form;
    const char *words;
} form_keys[] = {
    {"schedule", FORM_PIPELINE, "pipeline plans"},
    {"programs", FORM_PROGRAMS, "rank programs"},
    {"generate", FORM_PROGRAMS, "rank programs"},
    {"threads", FORM_THREADS, "host programs"},
};

/* A key at the top. The table stands in the order of reading; `place` orders the canonical text. `parse` is called whether
   the key is there or not; without it, the field is filled in when the key is there. */
#define GIVEN(member)   .given = offsetof(struct plan, member)
#define COUNTED(member) .count = offsetof(struct plan, member)
static const struct keys_plan_section {
    unsigned forms;
    int place;
    void (*parse)(struct parser *parser, const struct node *value);
    struct field field;
    /* Where the key is printed: where the function says so, where this bool of the plan is true, which reading the field sets,
       where this number is not 0. None of them: where its value is not the default. */
    bool (*has)(const struct printer *printer);
    size_t given, count; /* offsets */
    /* Print the value; NULL: as its kind is printed. */
    void (*print)(struct printer *printer);
} sections[] = {
    {IN_ALL, 0, parse_version,
     .field = FIELD_OF_ALL("swplan", version, "The version of the format of plans."),
     .has = has_always, .print = print_version},
    {IN_ALL, 1, NULL,
     .field =
         FIELD("name", struct plan, name, name,
               "The name of the plan. The default is the name of the file without its suffix.")},
    {IN_ALL, 2, NULL,
     .field = FIELD("about", struct plan, about, text, "A description for the reader.")},
    {IN_ALL, 3, NULL,
     .field =
         FIELD("source", struct plan, source, text, "The origin of the plan, for the reader.")},
    {IN_ALL, 6, keys_plan_parse_ranks,
     .field =
         FIELD("ranks", struct plan, ranks, int,
               "The number of ranks. The default is one more than the highest rank that is named.",
               .min = 1, .max = PLAN_MAX_RANKS),
     .has = has_ranks},
    {IN_PIPELINE | IN_THREADS, 21, parse_comms,
     .field = FIELD_OF_ALL("comms", comms, "Communicators, and the ranks that are their members."),
     COUNTED(comm_count), .print = print_comms},
    {IN_THREADS, 23, parse_queues,
     .field = FIELD_OF_ALL("queues", names,
                           "Queues between threads, and the number of items that each can hold.",
                           .each = &capacity_field),
     COUNTED(queue_count), .print = print_queues},
    {IN_PIPELINE | IN_THREADS, 22, parse_streams,
     .field = FIELD_OF_ALL("streams", names, "What a stream of this name is, on every rank.",
                           .each = &stream_field),
     COUNTED(stream_spec_count), .print = print_streams},
    {IN_THREADS, 24, parse_flags,
     .field = FIELD_OF_ALL("flags", names,
                           "What a flag is: with which value it begins, and whether each iteration "
                           "has its own.",
                           .each = &flag_field),
     COUNTED(flag_spec_count), .print = print_flags},
    {IN_PIPELINE | IN_THREADS, 44, parse_buffers,
     .field = FIELD_OF_ALL("buffers", names, "Memory that work reads and writes.",
                           .each = &buffer_field),
     .has = has_buffers, .print = keys_plan_print_buffers},
    {IN_PIPELINE, 7, NULL,
     .field = FIELD("driver", struct plan, pipeline.driver, word,
                    "The driver that the plan is for. Without this key it is for both.",
                    .words = keywords_driver),
     GIVEN(pipeline.driver_given)},
    {IN_PIPELINE, 40, parse_schedule,
     .field = FIELD_OF_ALL("schedule", names, "The tasks of an iteration, by name.",
                           .each = &task_field),
     .has = has_always, .print = print_schedule},
    {IN_PIPELINE, 41, parse_intra_deps,
     .field = FIELD_OF_ALL("intra_iter_deps", deps,
                           "Dependences within an iteration: [task, the task it depends on]."),
     COUNTED(pipeline.intra_count), .print = print_intra_deps},
    {IN_PIPELINE, 42, parse_inter_deps,
     .field = FIELD_OF_ALL(
         "inter_iter_deps", deps,
         "Dependences on earlier iterations: [task, the task it depends on, distance].", .max = 1),
     .has = has_inter_deps, .print = print_inter_deps},
    {IN_PIPELINE, 12, parse_enqueue_order,
     .field = FIELD_OF_ALL(
         "enqueue_order", order,
         "The order of a period's tasks under the clock driver, and of tickets under both.",
         .words = keywords_order),
     GIVEN(pipeline.order_given), .print = print_order},
    {IN_PIPELINE, 43, parse_overrides,
     .field = FIELD_OF_ALL("rank_overrides", names, "How a rank differs from the others.",
                           .each = &override_field),
     COUNTED(pipeline.override_count), .print = print_overrides},
    {IN_PIPELINE, 8, parse_depth,
     .field = FIELD("pipeline_depth", struct plan, pipeline.depth, int,
                    "The number of stages, to be checked: one more than the highest stage.",
                    .min = 1, .max = PLAN_MAX_DEPTH),
     GIVEN(pipeline.depth_given)},
    {IN_PIPELINE, 9, NULL,
     .field = FIELD("max_depth", struct plan, pipeline.max_depth, int,
                    "Data-flow driver: the most iterations in flight. The default is the depth.",
                    .min = 1, .max = PLAN_MAX_DEPTH),
     GIVEN(pipeline.max_depth_given)},
    {IN_PIPELINE, 10, NULL,
     .field =
         FIELD("max_in_flight", struct plan, pipeline.max_in_flight, int,
               "The most iterations that a rank may have in flight. The default is any number.",
               .min = 1, .max = PLAN_MAX_IN_FLIGHT)},
    {IN_PIPELINE, 11, NULL,
     .field = FIELD("num_slots", struct plan, pipeline.num_slots, int,
                    "The slots of CPU signals and events. Iteration i uses slot i mod num_slots.",
                    .min = 1, .max = PLAN_MAX_DEPTH + PLAN_MAX_DISTANCE),
     GIVEN(pipeline.num_slots_given)},
    {IN_PIPELINE, 19, parse_batches,
     .field = FIELD_OF_ALL("batches", list,
                           "The number of iterations that each rank has data for. The default is "
                           "one open number for all.",
                           .each = &number_field),
     COUNTED(pipeline.batch_count), .print = print_batches},
    {IN_PIPELINE, 13, NULL,
     .field = FIELD("retire", struct plan, pipeline.retire, word,
                    "When the oldest iteration may retire.", .words = keywords_retire)},
    {IN_PIPELINE, 14, NULL,
     .field = FIELD("elide_same_stream", struct plan, pipeline.elide_same_stream, boolean,
                    "Whether a dependence between tasks of one stream needs no event.")},
    {IN_PIPELINE, 15, NULL,
     .field =
         FIELD("ticket_at", struct plan, pipeline.ticket_at, word,
               "Data-flow driver: globally ordered tasks have turns in the order of a software "
               "pipeline, which is a condition to fire, or are numbered by iteration, or as "
               "they are fired, and their threads wait.",
               .words = keywords_ticket_at)},
    {IN_PIPELINE, 16, NULL,
     .field = FIELD(
         "forget_done", struct plan, pipeline.forget_done, word,
         "Data-flow driver: whether finished instances are dropped when their iteration retires.",
         .words = keywords_forget)},
    {IN_PIPELINE, 17, NULL,
     .field = FIELD("retired_dep", struct plan, pipeline.retired_dep, word,
                    "Whether a dependence on an iteration that has retired is still awaited.",
                    .words = keywords_retired_dep)},
    {IN_PIPELINE, 18, NULL,
     .field = FIELD("slot_reset", struct plan, pipeline.slot_reset, word,
                    "When the signals of a slot are cleared.", .words = keywords_slot_reset)},
    {IN_PROGRAMS, 36, NULL,
     .field =
         FIELD("fragment", struct plan, programs.fragment, boolean,
               "Whether the lists are a piece of a schedule whose other passes are elsewhere.")},
    {IN_PROGRAMS, 37, NULL,
     .field = FIELD("copies", struct plan, programs.copies, more,
                    "The copies of the model, each of which has its part of the stages.", .min = 1,
                    .max = PLAN_MAX_RANKS)},
    {IN_PROGRAMS, 39, parse_programs,
     .field = FIELD_OF_ALL("programs", programs, "The actions of each rank, in order."),
     .has = has_programs, .print = print_programs},
    {IN_PROGRAMS, 38, parse_generate,
     .field = FIELD("generate", struct plan, programs.generate, map, "A schedule by name and size.",
                    .keys = &generate_keys)},
    {IN_PROGRAMS, 25, parse_p2p,
     .field = FIELD("p2p", struct plan, programs, map,
                    "Messages between ranks: their channels and costs.", .keys = &p2p_keys)},
    {IN_PROGRAMS, 26, NULL,
     .field = FIELD("fsdp", struct plan, programs, map,
                    "Parameters that are sharded over replicas.", .keys = &fsdp_keys)},
    {IN_PROGRAMS, 27, parse_parallel,
     .field = FIELD("parallel", struct plan, programs.parallel, map,
                    "The groups of ranks around the pipelines.", .keys = &parallel_keys),
     GIVEN(programs.parallel.given), .print = print_parallel},
    {IN_PROGRAMS, 28, parse_arithmetic,
     .field = FIELD("arithmetic", struct plan, programs.arithmetic, map,
                    "The dense layers that a real run computes.", .keys = &arithmetic_keys),
     GIVEN(programs.arithmetic.given)},
    {IN_PROGRAMS, 29, NULL,
     .field = FIELD("times", struct plan, programs, map, "The time of each kind of action.",
                    .keys = &times_keys)},
    {IN_PROGRAMS, 30, NULL,
     .field = FIELD("stages", struct plan, programs.stages, map,
                    "The costs of stages: one value for all, or a list of one each.",
                    .keys = &stages_keys)},
    {IN_PROGRAMS, 31, parse_layers,
     .field = FIELD("layers", struct plan, programs.stages.layers, map,
                    "The costs of layers, which are divided into stages.", .keys = &layers_keys)},
    {IN_PROGRAMS, 32, parse_model,
     .field = FIELD("model", struct plan, programs.stages.model, map,
                    "A transformer, from which the costs of layers follow.", .keys = &model_keys)},
    {IN_PROGRAMS, 33, parse_balance,
     .field = FIELD_OF_ALL(
         "balance", balance,
         "How layers are divided into stages: even, found, or the layers of each stage.",
         .words = keywords_balance),
     .has = has_balance, .print = print_balance},
    {IN_PROGRAMS, 34, NULL,
     .field = FIELD("checkpoint", struct plan, programs.stages.checkpoint, word,
                    "The microbatches that keep only their input and compute the rest again.",
                    .words = keywords_checkpoint)},
    {IN_PROGRAMS, 35, NULL,
     .field = FIELD("release", struct plan, programs.stages.release, word,
                    "Until when the output of a stage is kept.", .words = keywords_release)},
    {IN_THREADS, 45, parse_graphs,
     .field =
         FIELD_OF_ALL("graphs", names, "Work that is captured once and launched again, by name.",
                      .each = &operations_field),
     COUNTED(graph_count), .print = print_graphs},
    {IN_THREADS, 46, parse_threads,
     .field = FIELD_OF_ALL("threads", threads, "The operations of each thread, named rRANK.NAME.",
                           .always = true),
     .has = has_always, .print = print_threads},
    {IN_PIPELINE | IN_THREADS, 47, parse_inputs,
     .field =
         FIELD_OF_ALL("inputs", list, "The buffers that hold values before anything is written.",
                      .each = &text_field),
     GIVEN(inputs_given), .print = print_inputs},
    {IN_PIPELINE, 48, parse_staleness,
     .field = FIELD_OF_ALL("staleness", names,
                           "Shared buffers, and by how many iterations their reads may lag.",
                           .each = &staleness_field),
     .has = has_staleness, .print = print_staleness},
    {IN_ALL, 20, parse_machine,
     .field = FIELD("machine", struct plan, machine, map,
                    "The device, its hardware queues and its channels.", .keys = &machine_keys)},
    {IN_ALL, 4, NULL,
     .field = FIELD("unexplained", struct plan, unexplained, share,
                    "The share of the measured job's time in which its device was idle and the "
                    "plan has no cause.")},
    {IN_ALL, 5, parse_unrecorded,
     .field = FIELD_OF_ALL(
         "unrecorded", names,
         "What the job of which the plan was made did and the plan does not have, and why.",
         .each = &text_field),
     COUNTED(unrecorded_count), .print = keys_plan_print_unrecorded},
    {IN_THREADS, 51, keys_plan_parse_memory,
     .field =
         FIELD_OF_ALL("memory", list, "The memory of recorded ranks, when their tensors take most.",
                      .each = &memory_field),
     COUNTED(memory_count), .print = print_memory},
    {IN_ALL, 49, parse_on_failure,
     .field = FIELD("on_failure", struct plan, on_failure, word,
                    "What the failure of a task does to other threads and ranks.",
                    .words = keywords_on_failure),
     .has = has_on_failure},
    {IN_ALL, 50, parse_expect,
     .field = FIELD_OF_ALL("expect", expect, "The verdicts that are expected of the plan."),
     .has = has_expect, .print = print_expect},
};
enum { PLACES = FIELD_COUNT(sections) };

static bool has_condition(const struct keys_plan_section *section)
{
    return section->has || section->given || section->count;
}

static bool has_section(const struct printer *printer, const struct keys_plan_section *section)
{
    const char *plan = (const char *)printer->plan;
    assert(has_condition(section));
    return section->has     ? section->has(printer)
           : section->given ? *(const bool *)(plan + section->given)
                            : *(const size_t *)(const void *)(plan + section->count) > 0;
}

static void print_section(struct printer *printer, const struct keys_plan_section *section)
{
    struct field field = section->field;
    field.always = has_condition(section);
    if (field.always && !has_section(printer, section))
        return;
    if (!section->print) {
        fields_print(printer, &field, 1, printer->plan, NULL);
        return;
    }
    put_word(printer, field.key);
    section->print(printer);
}

/* With --enable-checks: each place has one key. */
static void sections_check(void)
{
#ifdef SWSIM_CHECKS
    bool taken[PLACES] = {false};
    for (size_t i = 0; i < PLACES; i++) {
        assert(sections[i].place < PLACES && !taken[sections[i].place]);
        assert(sections[i].parse || sections[i].field.kind->parse);
        assert(sections[i].print || sections[i].field.kind->print);
        taken[sections[i].place] = true;
    }
#endif
}

/* The keys in canonical order. */
void print_sections(struct printer *printer)
{
    const unsigned form = 1u << printer->plan->form;
    sections_check();
    open_map(printer, BLOCK);
    for (int place = 0; place < PLACES; place++)
        for (size_t i = 0; i < PLACES; i++)
            if (sections[i].place == place && sections[i].forms & form)
                print_section(printer, &sections[i]);
    close_map(printer);
}

void schema_plan(struct json *json)
{
    struct field fields[PLACES];
    for (size_t i = 0; i < PLACES; i++) {
        assert(sections[i].place >= 0 && sections[i].place < PLACES);
        fields[sections[i].place] = sections[i].field;
        fields[sections[i].place].always = has_condition(&sections[i]); /* no default of its own */
    }
    schema_keys(json, fields, PLACES);
    json_begin_array_at(json, "anyOf");
    for (size_t i = 0; i < FIELD_COUNT(form_keys); i++) {
        json_begin_object(json);
        json_begin_array_at(json, "required");
        json_string(json, "swplan");
        json_string(json, form_keys[i].key);
        json_end_array(json);
        json_end_object(json);
    }
    json_end_array(json);
}

/* "generate" may stand beside the lists that a search has found for it. */
static bool has_found(const struct parser *parser)
{
    const struct node *generate = node_find(parser->root, "generate");
    const struct node *schedule = generate ? node_find(generate, "schedule") : NULL;
    return schedule && schedule->kind == NODE_SCALAR && generate_is_found(schedule->text);
}

static bool find_form(struct parser *parser, const struct form_key **out)
{
    *out = NULL;
    READ_MAP (parser, parser->root, key, value) {
        for (size_t i = 0; i < FIELD_COUNT(form_keys); i++) {
            if (strcmp(key->text, form_keys[i].key) != 0)
                continue;
            if (*out && !((*out)->form == form_keys[i].form && has_found(parser)))
                return parse_error(parser, key->mark,
                                   "found \"%s\" beside \"%s\", expected one form a plan",
                                   key->text, (*out)->key);
            *out = &form_keys[i];
        }
    }
    return *out != NULL ||
           parse_error(parser, parser->root->mark,
                       "found no form of a plan, expected schedule, programs, generate or threads");
}

static const struct keys_plan_section *find_section(const char *key)
{
    for (size_t i = 0; i < FIELD_COUNT(sections); i++)
        if (strcmp(sections[i].field.key, key) == 0)
            return &sections[i];
    return NULL;
}

static void unknown_section(struct parser *parser, const struct node *key)
{
    struct nearest nearest = {.found = key->text};
    for (size_t i = 0; i < FIELD_COUNT(sections); i++)
        nearest_try(&nearest, sections[i].field.key);
    parse_error(parser, key->mark, "found unknown key \"%s\", expected a key of a plan%s",
                key->text, nearest_hint(&nearest, '"', &parser->scratch));
}

static void check_sections(struct parser *parser, const struct form_key *form)
{
    READ_MAP (parser, parser->root, key, value) {
        const struct keys_plan_section *section = find_section(key->text);
        if (!section)
            unknown_section(parser, key);
        else if (form && !(section->forms & 1u << form->form))
            parse_error(parser, key->mark, "found \"%s\" beside \"%s\", expected only keys of %s",
                        key->text, form->key, form->words);
    }
}

static void parse_sections(struct parser *parser)
{
    for (size_t i = 0; i < FIELD_COUNT(sections); i++) {
        const struct keys_plan_section *section = &sections[i];
        if (!(section->forms & 1u << parser->plan->form) || parser->status == STATUS_SYSTEM ||
            parse_gave_up(parser))
            continue;
        const struct node *value = node_find(parser->root, section->field.key);
        if (section->parse)
            section->parse(parser, value);
        else if (value) {
            char *plan = (char *)parser->plan;
            const bool read = section->field.kind->parse(
                parser, value, plan + section->field.offset, &section->field);
            if (section->given)
                *(bool *)(plan + section->given) = read;
        }
    }
}

/* Files of jobs, which are imported, by a key that they have and no plan has. */
static bool is_of_job(struct parser *parser)
{
    static const char *const kinds[][2] = {{"traceEvents", "the trace of a profiler"},
                                           {"pg_config", "the dump of a flight recorder"}};
    for (size_t i = 0; i < FIELD_COUNT(kinds); i++)
        if (node_find(parser->root, kinds[i][0])) {
            parse_error(parser, parser->root->mark,
                        "found %s, expected a plan: 'swsim import' makes one of it", kinds[i][1]);
            return true;
        }
    return false;
}

void parse_root(struct parser *parser)
{
    const struct form_key *form;
    if (!parse_want_map(parser, parser->root, "a plan: a mapping with \"swplan: 1\"") ||
        is_of_job(parser))
        return;
    bool known = find_form(parser, &form);
    check_sections(parser, known ? form : NULL);
    if (!known) {
        parse_version(parser, node_find(parser->root, "swplan"));
        return;
    }
    parser->plan->form = form->form;
    parse_sections(parser);
    if (form->form == FORM_PROGRAMS && parser->status == STATUS_OK)
        parse_check_effects(parser);
}
