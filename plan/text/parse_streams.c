/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse_streams.c - `streams:`, what is said about a stream besides the work that names it.
 *
 * stream := {legacy: true} | {blocking: bool, hw_queue: number}; one stream at most is the legacy one.
 */
#include "parse_internal.h"

static const struct field stream_fields[] = {
    FIELD("legacy", struct stream_spec, legacy, field_bool),
    FIELD("blocking", struct stream_spec, blocking, field_bool),
    FIELD("hw_queue", struct stream_spec, hw_queue, field_int, .min = 0, .max = 1023),
};

static void parse_stream(struct parser *parser, const struct node *key, const struct node *value)
{
    struct plan *plan = parser->plan;
    struct stream_spec *spec = &plan->stream_specs[plan->stream_spec_count];
    *spec = (struct stream_spec){.blocking = true, .hw_queue = -1, .mark = key->mark};
    spec->stream = symbol_resolve(parser, TABLE_STREAMS, key);
    if (spec->stream < 0 || !parse_want_map(parser, value, "a mapping such as {blocking: false}") ||
        !fields_parse(parser, value, stream_fields, FIELD_COUNT(stream_fields), spec, "a stream"))
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
    plan->stream_specs = ARENA_ARRAY(&plan->arena, value->length, struct stream_spec);
    if (!plan->stream_specs) {
        parse_no_memory(parser);
        return;
    }
    READ_MAP (parser, value, key, properties)
        parse_stream(parser, key, properties);
    if (!plan_legacy_stream(plan))
        check_blocking(parser, value);
}

void parse_check_hw_queues(struct parser *parser)
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
