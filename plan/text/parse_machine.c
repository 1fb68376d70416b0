/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse_machine.c - `machine:`, the knobs of the device and of its channels.
 */
#include <string.h>

#include "parse_internal.h"

/* eager_messages, eager_bytes: a number for each communicator. */
static bool eager_limits(struct parser *parser, const struct node *value, size_t offset,
                         const struct field *limit)
{
    if (!parse_want_map(parser, value, "a mapping from communicators to limits"))
        return false;
    bool ok = true;
    READ_MAP (parser, value, key, number) {
        int comm = parser->plan->form == FORM_PROGRAMS ? symbol_resolve(parser, TABLE_COMMS, key)
                                                       : symbol_require(parser, TABLE_COMMS, key);
        ok &= comm >= 0 &&
              limit->parse(parser, number, (char *)&parser->plan->comms[comm] + offset, limit);
    }
    return ok;
}

static bool field_eager_messages(struct parser *parser, const struct node *value, void *member,
                                 const struct field *field)
{
    (void)member;
    static const struct field limit = {.parse = field_int, .min = 0, .max = PLAN_MAX_EAGER};
    (void)field;
    return eager_limits(parser, value, offsetof(struct comm, eager_messages), &limit);
}

static bool field_eager_bytes(struct parser *parser, const struct node *value, void *member,
                              const struct field *field)
{
    (void)member;
    (void)field;
    static const struct field limit = {.parse = field_bytes};
    return eager_limits(parser, value, offsetof(struct comm, eager_bytes), &limit);
}

/* The default shares of each kind of work. */
static bool field_machine_shares(struct parser *parser, const struct node *value, void *member,
                                 const struct field *field)
{
    (void)field;
    static const struct field kind_fields[] = {
#define X(name, key_)                                                                              \
    {.key = (key_), .parse = field_shares, .offset = SHARED_WORK_##name * sizeof(struct shares)},
        SHARED_WORK_LIST(X)
#undef X
    };
    return parse_want_map(parser, value, "a mapping such as {collective: {sm: 0.15, link: 1}}") &&
           fields_parse(parser, value, kind_fields, FIELD_COUNT(kind_fields), member, "\"shares\"");
}

/* ranks := a list of two ranks or more, none of which is on another device */
static void parse_device(struct parser *parser, const struct node *ranks, int *device)
{
    int first = PLAN_MAX_RANKS;
    int64_t rank;
    if (!parse_want_list(parser, ranks, "a list of ranks such as [0, 1]"))
        return;
    if (ranks->length < 2)
        parse_error(parser, ranks->mark, "found %zu ranks on a device, expected two or more",
                    ranks->length);
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

static bool field_share_device(struct parser *parser, const struct node *value, void *member,
                               const struct field *field)
{
    (void)field;
    const int ranks = parser->plan->ranks;
    int **device = member;
    if (!parse_want_list(parser, value, "a list of lists of ranks such as [[0, 1], [2, 3]]"))
        return false;
    parser->plan->machine.share_device_mark = value->mark;
    *device = ARENA_ARRAY(&parser->plan->arena, (size_t)ranks, int);
    if (!*device) {
        parse_no_memory(parser);
        return false;
    }
    for (int rank = 0; rank < ranks; rank++)
        (*device)[rank] = -1;
    READ_LIST (parser, value, item)
        parse_device(parser, item, *device);
    for (int rank = 0; rank < ranks; rank++)
        if ((*device)[rank] < 0)
            (*device)[rank] = rank;
    return true;
}

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
static bool field_memory(struct parser *parser, const struct node *value, void *member,
                         const struct field *field)
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

static const struct field machine_fields[] = {
    FIELD("sm_slots", struct machine_spec, sm_slots, field_int, .min = 0, .max = 65536),
    FIELD("hw_queues", struct machine_spec, hw_queues, field_int, .min = 0, .max = 1024),
    FIELD("launch_queue", struct machine_spec, launch_queue, field_int, .min = 0, .max = 65536),
    FIELD("launch_latency", struct machine_spec, launch_latency_ns, field_time),
    FIELD("first_use_blocks", struct machine_spec, first_use_blocks, field_bool),
    FIELD("launch_order_implicit", struct machine_spec, launch_order_implicit, field_bool),
    FIELD("lazy_load", struct machine_spec, lazy_load, field_bool),
    FIELD("launch_lock", struct machine_spec, launch_lock, field_bool),
    FIELD("launch_blocking", struct machine_spec, launch_blocking, field_bool),
    FIELD("alloc_may_sync", struct machine_spec, alloc_may_sync, field_bool),
    FIELD("copy_engines", struct machine_spec, copy_engines, field_int, .min = 0, .max = 64),
    FIELD("cores", struct machine_spec, cores, field_int, .min = 1, .max = PLAN_MAX_CORES),
    FIELD("shares", struct machine_spec, shares, field_machine_shares),
    FIELD("memory", struct machine_spec, memory, field_memory),
    FIELD("share_device", struct machine_spec, share_device, field_share_device),
    FIELD("eager_messages", struct machine_spec, sm_slots, field_eager_messages),
    FIELD("eager_bytes", struct machine_spec, sm_slots, field_eager_bytes),
};

void parse_machine(struct parser *parser, const struct node *value)
{
    if (value && parse_want_map(parser, value, "a mapping of the machine's knobs"))
        fields_parse(parser, value, machine_fields, FIELD_COUNT(machine_fields),
                     &parser->plan->machine, "\"machine\"");
    if (value && value->kind == NODE_MAP)
        check_share_device(parser, value);
    parse_check_hw_queues(parser);
}
