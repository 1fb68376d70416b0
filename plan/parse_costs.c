/* parse_costs.c - what messages, passes and stages of rank programs cost. */
#include <string.h>

#include "keywords.h"
#include "parse_internal.h"

/* ---- messages -------------------------------------------------------------------------------- */

static const struct field link_fields[] = {
    FIELD("latency", struct link, latency, field_given_time),
    FIELD("bandwidth", struct link, bandwidth, field_given_rate),
    FIELD("bytes", struct link, bytes, field_given_bytes),
};

bool field_link(struct parser *parser, const struct node *value, void *member,
                const struct field *field)
{
    (void)field;
    return parse_want_map(parser, value, "a link such as {latency: 5us, bandwidth: 25GB/s}") &&
           fields_parse(parser, value, link_fields, FIELD_COUNT(link_fields), member, "a link");
}

static const struct field edge_fields[] = {
    FIELD("from", struct edge_link, from, field_int, .required = true, .max = PLAN_MAX_RANKS - 1),
    FIELD("to", struct edge_link, to, field_int, .required = true, .max = PLAN_MAX_RANKS - 1),
    FIELD("latency", struct edge_link, link.latency, field_given_time),
    FIELD("bandwidth", struct edge_link, link.bandwidth, field_given_rate),
    FIELD("bytes", struct edge_link, link.bytes, field_given_bytes),
};

static bool check_edge(struct parser *parser, const struct links *links,
                       const struct edge_link *edge)
{
    if (edge->from == edge->to)
        return parse_error(parser, edge->mark,
                           "found an edge from rank %d to itself, expected two ranks", edge->from);
    for (size_t i = 0; i < links->edge_count; i++)
        if (links->edges[i].from == edge->from && links->edges[i].to == edge->to)
            return parse_error(parser, edge->mark,
                               "found the edge from rank %d to rank %d a second time, expected it "
                               "once",
                               edge->from, edge->to);
    return true;
}

bool field_edges(struct parser *parser, const struct node *value, void *member,
                 const struct field *field)
{
    (void)field;
    struct links *links = member;
    bool ok = parse_want_list(parser, value, "edges such as [{from: 0, to: 1, latency: 5us}]");
    if (!ok || value->length == 0)
        return ok;
    links->edges = ARENA_ARRAY(&parser->plan->arena, value->length, struct edge_link);
    if (!links->edges)
        return parse_no_memory(parser);
    READ_LIST (parser, value, item) {
        struct edge_link edge = {.mark = item->mark};
        ok &= parse_want_map(parser, item, "an edge such as {from: 0, to: 1, latency: 5us}") &&
              fields_parse(parser, item, edge_fields, FIELD_COUNT(edge_fields), &edge, "an edge") &&
              check_edge(parser, links, &edge);
        links->edges[links->edge_count++] = edge;
    }
    return ok;
}
