/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse_effects.c - keys of rank programs that other keys leave without effect.
 *
 * Read last, when the whole plan is known and without errors. A key is refused at its value, with what it lacks. What a
 * schedule does not use, such as the time of an action that no list has, is not refused, nor a group of one rank: a plan
 * may try several.
 */
#include "text_internal.h"
#include "plan/schedules/rank_memory.h"
#include "plan/schedules/costs.h"

/* The node at a path of up to three keys; NULL: the plan does not have it. */
static const struct node *node_at(const struct parser *parser, const char *top, const char *middle,
                                  const char *last)
{
    const char *const keys[] = {top, middle, last};
    const struct node *node = parser->root;
    for (size_t i = 0; node && i < FIELD_COUNT(keys) && keys[i]; i++)
        node = node->kind == NODE_MAP ? node_find(node, keys[i]) : NULL;
    return node;
}

/* ---- messages -------------------------------------------------------------------------------- */

static bool edges_have_bytes(const struct links *links)
{
    for (size_t i = 0; i < links->edge_count; i++)
        if (links->edges[i].link.bytes.value)
            return true;
    return false;
}

/* True if some message has bytes, besides those of this direction. */
static bool parse_effects_has_bytes(const struct programs *programs, const struct link *direction)
{
    const struct links *links = &programs->links;
    return programs->p2p_bytes || direction->bytes.value || links->between.bytes.value ||
           edges_have_bytes(links) || programs->stages.model.layers || programs->arithmetic.given;
}

static bool any_bytes(const struct programs *programs)
{
    return parse_effects_has_bytes(programs, &programs->links.forward) ||
           parse_effects_has_bytes(programs, &programs->links.backward);
}

static void refuse_bandwidth(struct parser *parser, const struct node *bandwidth)
{
    if (bandwidth)
        parse_error(parser, bandwidth->mark,
                    "found \"bandwidth\" of messages without bytes, expected \"bytes\" in \"p2p\", "
                    "\"model\" or \"arithmetic\"");
}

/* The message that tells a shape has bytes of its own. */
static void check_bandwidths(struct parser *parser)
{
    static const char *const links[] = {"forward", "backward", "between"};
    const struct programs *programs = &parser->plan->programs;
    if (any_bytes(programs) || programs->metadata != METADATA_NONE)
        return;
    refuse_bandwidth(parser, node_at(parser, "p2p", "bandwidth", NULL));
    for (size_t i = 0; i < FIELD_COUNT(links); i++)
        refuse_bandwidth(parser, node_at(parser, "p2p", links[i], "bandwidth"));
    const struct node *edges = node_at(parser, "p2p", "edges", NULL);
    if (!edges)
        return;
    READ_LIST (parser, edges, edge)
        refuse_bandwidth(parser, node_find(edge, "bandwidth"));
}

static bool parse_effects_is_given(const struct link *link)
{
    return link->latency.given || link->bandwidth.given || link->bytes.given;
}

/* Links between nodes, and the ranks of a node. */
static void check_nodes(struct parser *parser)
{
    const struct programs *programs = &parser->plan->programs;
    const struct node *node = node_at(parser, "p2p", "node", NULL);
    const struct node *between = node_at(parser, "p2p", "between", NULL);
    bool used = between != NULL;
    if (between && !parse_effects_is_given(&programs->links.between))
        parse_error(parser, between->mark,
                    "found \"between\" without a cost, expected \"latency\", \"bandwidth\" or "
                    "\"bytes\" between nodes");
    for (int kind = 0; kind < GROUP_KIND_COUNT; kind++)
        used |= parse_effects_is_given(&programs->parallel.costs[kind].between);
    if (node && !used)
        parse_error(parser, node->mark,
                    "found \"node\" without \"between\", expected what a message or a collective "
                    "between nodes costs");
    if (between && !node)
        parse_error(parser, between->mark,
                    "found \"between\" without \"node\", expected the number of ranks on a node");
}

static void check_release(struct parser *parser)
{
    const struct programs *programs = &parser->plan->programs;
    if (programs->stages.release == RELEASE_SEND &&
        !parse_effects_has_bytes(programs, &programs->links.forward))
        parse_error(parser, node_at(parser, "release", NULL, NULL)->mark,
                    "found \"release: send\" of outputs without bytes, expected \"bytes\" of "
                    "forward messages in \"p2p\", \"model\" or \"arithmetic\"");
}

/* ---- a model --------------------------------------------------------------------------------- */

static void check_model_key(struct parser *parser, const char *key, bool useless,
                            const char *expected)
{
    const struct node *value = node_at(parser, "model", key, NULL);
    if (value && useless)
        parse_error(parser, value->mark, "found \"%s\" without %s", key, expected);
}

static void check_model(struct parser *parser)
{
    const struct model_spec model = costs_model(parser->plan);
    const bool alone = !parser->plan->programs.parallel.given;
    check_model_key(parser, "top_k", model.experts == 0, "\"experts\", expected both");
    check_model_key(parser, "expert_parallel", alone && model.experts == 0,
                    "\"experts\", expected both");
    check_model_key(parser, "tied", model.tied && model.vocab == 0,
                    "\"vocab\", expected the rows of the embedding that the head shares");
    check_model_key(parser, "sequence_parallel", model.sequence_parallel && model.tensor <= 1,
                    "\"tensor\", expected the ranks that divide the sequence");
    check_model_key(
        parser, "data", alone && !model.distributed,
        "\"distributed_optimizer\", expected both: else each rank holds all of its state");
}

/* ---- groups ---------------------------------------------------------------------------------- */

static void check_cost(struct parser *parser, const struct node *cost)
{
    static const char *const hidden[] = {"latency", "bandwidth"};
    for (size_t i = 0; node_find(cost, "time") && i < FIELD_COUNT(hidden); i++)
        if (node_find(cost, hidden[i]))
            parse_error(parser, node_find(cost, hidden[i])->mark,
                        "found \"%s\" beside \"time\", expected one of them", hidden[i]);
}

static void check_groups(struct parser *parser)
{
    const struct node *costs = node_at(parser, "parallel", "costs", NULL);
    if (!costs)
        return;
    READ_MAP (parser, costs, key, cost)
        check_cost(parser, cost);
}

/* ---- sharded parameters ---------------------------------------------------------------------- */

static void check_fsdp(struct parser *parser)
{
    const struct parallel_spec *spec = &parser->plan->programs.parallel;
    const struct node *bytes = node_at(parser, "fsdp", "bytes", NULL);
    if (spec->reduce != GRAD_REDUCE_NONE || spec->differing_count > 0)
        return; /* their lists may have more actions */
    const struct rank_program *lists = parser->plan->programs.ranks; /* NULL: generated, without */
    if (bytes && !(lists && rank_memory_sharded(lists, parser->plan->ranks)))
        parse_error(parser, bytes->mark,
                    "found \"bytes\" of sharded parameters, expected lists with UNSHARD or "
                    "REDUCE_GRAD");
}

void parse_check_effects(struct parser *parser)
{
    check_bandwidths(parser);
    check_nodes(parser);
    check_release(parser);
    check_model(parser);
    check_groups(parser);
    check_fsdp(parser);
}
