/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys_machine.c - `machine:`, `streams:` and `flags:`, the knobs of the device, of its channels, streams and flags.
 *
 * stream := {legacy: true} | {blocking: bool, hw_queue: number}; one stream at most is the legacy one.
 */
#include <string.h>

#include "base/array.h"
#include "base/units.h"
#include "text_internal.h"

/* eager_messages, eager_bytes, timeout: a number for each communicator. */
static const struct field eager_messages =
    FIELD("eager_messages", struct comm, eager_messages, int, NULL, .max = PLAN_MAX_EAGER);
static const struct field eager_bytes = FIELD("eager_bytes", struct comm, eager_bytes, bytes, NULL);

static const struct field time_limit = FIELD("timeout", struct comm, time_limit_ns, time, NULL);

static const struct field *eager_limit(const struct field *field)
{
    if (strcmp(field->key, time_limit.key) == 0)
        return &time_limit;
    return strcmp(field->key, eager_bytes.key) == 0 ? &eager_bytes : &eager_messages;
}

static bool field_eager(PARSE_PARAMS)
{
    const struct field *limit = eager_limit(field);
    if (!parse_want_map(parser, value, "a mapping from communicators to limits"))
        return false;
    bool ok = true;
    READ_MAP (parser, value, key, number) {
        int comm = parser->plan->form == FORM_PROGRAMS ? symbol_resolve(parser, TABLE_COMMS, key)
                                                       : symbol_require(parser, TABLE_COMMS, key);
        ok &= comm >= 0 &&
              limit->kind->parse(parser, number, (char *)&parser->plan->comms[comm] + limit->offset,
                                 limit);
    }
    return ok;
}

static bool same_eager(SAME_PARAMS)
{
    const struct plan *plan = printer->plan;
    for (size_t i = 0; i < plan->comm_count; i++)
        if (!fields_same(printer, eager_limit(field), 1, &plan->comms[i], NULL))
            return false;
    return true;
}

static void print_eager(PRINT_PARAMS)
{
    const struct plan *plan = printer->plan;
    open_map(printer, FLOW);
    for (size_t i = 0; i < plan->comm_count; i++) {
        const struct field *limit = eager_limit(field);
        if (fields_same(printer, limit, 1, &plan->comms[i], NULL))
            continue;
        put_text(printer, plan->comms[i].name);
        limit->kind->print(printer, (const char *)&plan->comms[i] + limit->offset, limit);
    }
    close_map(printer);
}

static void schema_eager(struct json *json, const struct field *field)
{
    schema_begin_named(json);
    schema_value(json, eager_limit(field));
    schema_end(json);
}

static const struct field_kind kind_eager = {field_eager, print_eager, same_eager,
                                             .schema = schema_eager};

/* The default shares of each kind of work. */
static const struct field kind_fields[] = {
#define X(name, key_)                                                                              \
    {.key = (key_),                                                                                \
     .kind = &kind_shares,                                                                         \
     .offset = SHARED_WORK_##name * sizeof(struct shares),                                         \
     .about = "The shares of work of this kind that gives none of its own."},
    SHARED_WORK_LIST(X)
#undef X
};
static const struct keys kind_keys =
    KEYS(kind_fields, "\"shares\"", "a mapping such as {collective: {sm: 0.15, link: 1}}");

/* ranks := a list of two ranks or more, none of which is on another device */
static void parse_device(struct parser *parser, const struct node *ranks, int *device)
{
    int first = PLAN_MAX_RANKS;
    int64_t rank;
    if (!parse_want_list(parser, ranks, "a list of ranks such as [0, 1]"))
        return;
    if (ranks->length < 2)
        parse_error(parser, ranks->mark, "found %zu rank%s on a device, expected two or more",
                    ranks->length, units_plural(ranks->length));
    READ_LIST (parser, ranks, item) {
        if (!parse_number(parser, item, false, 0, parser->plan->ranks - 1, &rank))
            return;
        if (device[rank] >= 0) {
            parse_error(parser, item->mark,
                        "found rank %d a second time, expected each rank on one device", (int)rank);
            return;
        }
        device[rank] = (int)rank;
        first = rank < first ? (int)rank : first;
    }
    READ_LIST (parser, ranks, item)
        if (parse_number(parser, item, false, 0, parser->plan->ranks - 1, &rank))
            device[rank] = first;
}

static bool field_share_device(PARSE_PARAMS)
{
    const int ranks = parser->plan->ranks;
    int **device = member;
    if (!parse_want_list(parser, value, "a list of lists of ranks such as [[0, 1], [2, 3]]"))
        return false;
    parser->plan->machine.share_device_mark = value->mark;
    *device = PARSE_ARRAY(parser, (size_t)ranks, int);
    if (!*device)
        return false;
    for (int rank = 0; rank < ranks; rank++)
        (*device)[rank] = -1;
    READ_LIST (parser, value, item)
        parse_device(parser, item, *device);
    for (int rank = 0; rank < ranks; rank++)
        if ((*device)[rank] < 0)
            (*device)[rank] = rank;
    return true;
}

static bool same_share_device(SAME_PARAMS)
{
    return *(int *const *)member == NULL;
}

static void print_share_device(PRINT_PARAMS)
{
    const int *device = *(int *const *)member;
    open_list(printer, FLOW);
    for (int first = 0; first < printer->plan->ranks; first++) {
        int count = 0;
        for (int rank = first; rank < printer->plan->ranks; rank++)
            count += device[rank] == first;
        if (count < 2)
            continue;
        open_list(printer, FLOW);
        for (int rank = first; rank < printer->plan->ranks; rank++)
            if (device[rank] == first)
                put_number(printer, rank);
        close_list(printer);
    }
    close_list(printer);
}

static void schema_share_device(struct json *json, const struct field *field)
{
    schema_begin_list(json);
    schema_begin_list(json);
    schema_int(json, field);
    schema_end(json);
    schema_end(json);
}

static const struct field_kind kind_share_device = {
    field_share_device, print_share_device, same_share_device, .schema = schema_share_device};

/* Without slots there is nothing to share. */
static void check_share_device(struct parser *parser, const struct node *machine)
{
    const struct machine_spec *spec = &parser->plan->machine;
    const struct node *value = machine ? node_find(machine, "share_device") : NULL;
    if (value && spec->share_device && spec->sm_slots == 0)
        parse_error(parser, value->mark,
                    "found share_device without sm_slots, expected the slots that ranks share");
}

/* All ranks of a pipeline do the same and hold the same. */
static bool field_memory(PARSE_PARAMS)
{
    const struct plan *plan = parser->plan;
    const struct cost_list *memory = member;
    if (!field_sizes(parser, value, member, field))
        return false;
    if (value->kind == NODE_LIST && plan->form == FORM_PIPELINE)
        return parse_error(parser, value->mark,
                           "found a list of sizes, expected one size: the ranks of a pipeline of "
                           "stages hold the same");
    if (value->kind == NODE_LIST && memory->count != (size_t)plan->ranks)
        return parse_error(parser, value->mark,
                           "found a list of %zu, expected one size for each of %d ranks",
                           memory->count, plan->ranks);
    return true;
}

static bool same_memory(SAME_PARAMS)
{
    const struct cost_list *memory = member;
    for (size_t i = 0; i < memory->count; i++)
        if (memory->items[i] > 0)
            return false;
    return true;
}

static const struct field_kind kind_memory = {field_memory, print_sizes, same_memory,
                                              .schema = schema_sizes};

static const struct field machine_fields[] = {
    FIELD("sm_slots", struct machine_spec, sm_slots, int,
          "The residency slots of a device. 0: any number.", .max = 65536),
    FIELD("share_device", struct machine_spec, share_device, share_device,
          "The ranks that share a device: a list for each device.", .max = PLAN_MAX_RANKS - 1,
          .otherwise = -1),
    FIELD("hw_queues", struct machine_spec, hw_queues, int,
          "The in-order hardware queues of a rank. 0: one for each stream.", .max = 1024),
    FIELD("launch_queue", struct machine_spec, launch_queue, int,
          "The operations that a stream holds before a push blocks. 0: enough for what can be in "
          "flight.",
          .max = 65536),
    FIELD("launch_latency", struct machine_spec, launch_latency_ns, time,
          "The time from a push until its work can begin."),
    FIELD("first_use_blocks", struct machine_spec, first_use_blocks, boolean,
          "Whether the first message of a link or collective of a communicator blocks until the "
          "others come."),
    FIELD("launch_order_implicit", struct machine_spec, launch_order_implicit, boolean,
          "Whether communicators of a rank are ordered as they were launched (NCCL 2.26 and later)."
          "(NCCL_LAUNCH_ORDER_IMPLICIT)."),
    FIELD("lazy_load", struct machine_spec, lazy_load, boolean,
          "Whether the first launch of a kernel waits for the device and holds the lock of the "
          "context."),
    FIELD("launch_lock", struct machine_spec, launch_lock, boolean,
          "Whether a push holds the lock of the context, also while it waits for room in a launch "
          "queue."),
    FIELD("launch_blocking", struct machine_spec, launch_blocking, boolean,
          "Whether a thread waits for each kernel, collective or group that it launches "
          "(CUDA_LAUNCH_BLOCKING)."),
    FIELD("alloc_may_sync", struct machine_spec, alloc_may_sync, boolean,
          "Whether an allocation may find no memory and then waits for an idle device."),
    FIELD("copy_engines", struct machine_spec, copy_engines, int,
          "The engines that copies share. 0: one for each copy.", .max = 64),
    FIELD("cores", struct machine_spec, cores, int,
          "The cores of the host that the work of all ranks shares.", .min = 1,
          .max = PLAN_MAX_CORES),
    FIELD("shares", struct machine_spec, shares, map,
          "The shares of work that gives none of its own, by kind.", .keys = &kind_keys),
    FIELD("memory", struct machine_spec, memory, memory,
          "The bytes that a rank may hold: one size, or in rank programs one for each rank."),
    FIELD_OF_ALL("eager_messages", eager,
                 "How many messages of a communicator may be sent before they are received."),
    FIELD_OF_ALL("eager_bytes", eager,
                 "How many bytes of a communicator may be sent before they are received."),
    FIELD_OF_ALL("timeout", eager,
                 "How long an operation of a communicator may take from its call on, before its "
                 "watchdog ends it."),
};
const struct keys machine_keys =
    KEYS(machine_fields, "\"machine\"", "a mapping of the machine's knobs");

/* A stream's hardware queue is one of the machine's. */
static void check_hw_queues(struct parser *parser)
{
    const struct plan *plan = parser->plan;
    for (size_t i = 0; i < plan->stream_spec_count; i++) {
        const struct stream_spec *spec = &plan->stream_specs[i];
        if (spec->hw_queue >= plan->machine.hw_queues)
            parse_error(parser, spec->mark,
                        "found hw_queue %d, expected \"machine: {hw_queues: n}\" with a greater n",
                        spec->hw_queue);
    }
}

void parse_machine(struct parser *parser, const struct node *value)
{
    if (value)
        keys_parse(parser, value, &machine_keys, &parser->plan->machine);
    if (value && value->kind == NODE_MAP)
        check_share_device(parser, value);
    check_hw_queues(parser);
}

/* ---- streams --------------------------------------------------------------------------------- */

static const struct field stream_fields[] = {
    FIELD("legacy", struct stream_spec, legacy, boolean,
          "Whether it is the legacy default stream: it and the blocking streams wait for each "
          "other."),
    FIELD("blocking", struct stream_spec, blocking, boolean,
          "Whether it and the legacy default stream wait for each other.", .otherwise = true),
    FIELD("hw_queue", struct stream_spec, hw_queue, int,
          "Its hardware queue. Without this key queues are dealt out by first use.", .max = 1023,
          .otherwise = -1),
};
static const struct keys stream_keys =
    KEYS(stream_fields, "a stream", "a mapping such as {blocking: false}");

static void parse_stream(struct parser *parser, const struct node *key, const struct node *value)
{
    struct plan *plan = parser->plan;
    struct stream_spec *spec = &plan->stream_specs[plan->stream_spec_count];
    *spec = (struct stream_spec){.blocking = true, .hw_queue = -1, .mark = key->mark};
    spec->stream = symbol_resolve(parser, TABLE_STREAMS, key);
    if (spec->stream < 0 || !keys_parse(parser, value, &stream_keys, spec))
        return;
    const struct stream_spec *legacy = plan_legacy_stream(plan);
    if (spec->legacy && legacy)
        parse_error(parser, key->mark,
                    "found a second legacy stream (the first is %s), expected one",
                    plan->streams.items[legacy->stream]);
    else if (spec->legacy && !spec->blocking)
        parse_error(parser, key->mark,
                    "found \"blocking: false\" of a legacy stream, expected it of others");
    plan->stream_spec_count++;
}

/* `blocking` says what a stream is to the legacy one. */
static void check_blocking(struct parser *parser, const struct node *value)
{
    READ_MAP (parser, value, key, properties) {
        const struct node *blocking =
            properties->kind == NODE_MAP ? node_find(properties, "blocking") : NULL;
        if (blocking)
            parse_error(
                parser, blocking->mark,
                "found \"blocking\" without a legacy stream, expected one of the streams to "
                "be {legacy: true}");
    }
}

void parse_streams(struct parser *parser, const struct node *value)
{
    struct plan *plan = parser->plan;
    if (!value || !parse_want_map(parser, value, "a mapping from streams to their properties"))
        return;
    plan->stream_specs = PARSE_ARRAY(parser, value->length, struct stream_spec);
    if (!plan->stream_specs)
        return;
    READ_MAP (parser, value, key, properties)
        parse_stream(parser, key, properties);
    if (!plan_legacy_stream(plan))
        check_blocking(parser, value);
}

void print_streams(struct printer *printer)
{
    const struct plan *plan = printer->plan;
    open_map(printer, FLOW);
    for (size_t i = 0; i < plan->stream_spec_count; i++) {
        const struct stream_spec *spec = &plan->stream_specs[i];
        put_text(printer, plan->streams.items[spec->stream]);
        print_map(printer, spec, &(struct field){.keys = &stream_keys});
    }
    close_map(printer);
}

/* ---- flags ----------------------------------------------------------------------------------- */

static const struct field flag_fields[] = {
    FIELD("scope", struct flag_spec, scope, word,
          "iteration: each iteration of a repeat has a flag of its own. The default is shared: one "
          "for all.",
          .words = keywords_scope, .otherwise = SCOPE_SHARED),
    FIELD("value", struct flag_spec, value, int, "The value with which it begins.",
          .max = PLAN_MAX_FLAG),
};
static const struct keys flag_keys =
    KEYS(flag_fields, "a flag", "a mapping such as {scope: iteration}");

void parse_flags(struct parser *parser, const struct node *value)
{
    struct plan *plan = parser->plan;
    if (!value || !parse_want_map(parser, value, "a mapping from flags to their properties"))
        return;
    READ_MAP (parser, value, key, properties) {
        struct flag_spec spec = {.scope = SCOPE_SHARED, .mark = key->mark};
        if (!parse_name(parser, key, "a flag's name") ||
            !keys_parse(parser, properties, &flag_keys, &spec))
            continue;
        spec.name = parse_keep(parser, key->text);
        if (!spec.name || !plan_add_flag_spec(plan, &spec)) {
            parse_no_memory(parser);
            return;
        }
    }
}

void print_flags(struct printer *printer)
{
    const struct plan *plan = printer->plan;
    open_map(printer, FLOW);
    for (size_t i = 0; i < plan->flag_spec_count; i++) {
        put_text(printer, plan->flag_specs[i].name);
        print_map(printer, &plan->flag_specs[i], &(struct field){.keys = &flag_keys});
    }
    close_map(printer);
}

const struct field flag_field = {.kind = &kind_map, .keys = &flag_keys};
const struct field stream_field = {.kind = &kind_map, .keys = &stream_keys};
