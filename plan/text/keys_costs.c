/* SPDX-License-Identifier: Apache-2.0 */
/* keys_costs.c - what messages, passes and stages of rank programs cost. */
#include <assert.h>
#include <string.h>

#include "plan/schedules/generate.h"
#include "plan/schedules/costs.h"
#include "text_internal.h"

/* ---- messages -------------------------------------------------------------------------------- */

#define LINK_FIELDS(type, member)                                                                  \
    FIELD("latency", type, member.latency, given_time, "The time of a message of no bytes."),      \
        FIELD("bandwidth", type, member.bandwidth, given_rate, "The bytes a second."),             \
        FIELD("bytes", type, member.bytes, given_bytes, "The bytes of a message.")

struct single_link {
    struct link link;
};
static const struct field link_fields[] = {LINK_FIELDS(struct single_link, link)};
const struct keys link_keys =
    KEYS(link_fields, "a link", "a link such as {latency: 5us, bandwidth: 25GB/s}");

static const struct field edge_fields[] = {
    FIELD("from", struct edge_link, from, int, "The rank that sends.", .required = true,
          .max = PLAN_MAX_RANKS - 1),
    FIELD("to", struct edge_link, to, int, "The rank that receives.", .required = true,
          .max = PLAN_MAX_RANKS - 1),
    LINK_FIELDS(struct edge_link, link),
};
static const struct keys edge_keys =
    KEYS(edge_fields, "an edge", "an edge such as {from: 0, to: 1, latency: 5us}");

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

static bool field_edges(PARSE_PARAMS)
{
    struct links *links = member;
    bool ok = parse_want_list(parser, value, "edges such as [{from: 0, to: 1, latency: 5us}]");
    if (!ok || value->length == 0)
        return ok;
    links->edges = ARENA_ARRAY(&parser->plan->arena, value->length, struct edge_link);
    if (!links->edges)
        return parse_no_memory(parser);
    READ_LIST (parser, value, item) {
        struct edge_link edge = {.mark = item->mark};
        ok &= keys_parse(parser, item, &edge_keys, &edge) && check_edge(parser, links, &edge);
        links->edges[links->edge_count++] = edge;
    }
    return ok;
}

static void print_edges(PRINT_PARAMS)
{
    const struct links *links = member;
    open_list(printer, FLOW);
    for (size_t i = 0; i < links->edge_count; i++)
        print_map(printer, &links->edges[i], &(struct field){.keys = &edge_keys});
    close_list(printer);
}

static bool same_edges(SAME_PARAMS)
{
    return ((const struct links *)member)->edge_count == 0;
}

static const struct field edge_field = {.kind = &kind_map, .keys = &edge_keys};
static const struct field_kind kind_edges = {field_edges, print_edges, same_edges,
                                             .schema = schema_list};

/* A communicator for all was "rank" in earlier plans. */
static bool field_fifo(PARSE_PARAMS)
{
    if (value->kind != NODE_SCALAR || strcmp(value->text, "rank") != 0)
        return field_word(parser, value, member, field);
    *(enum fifo_rule *)member = FIFO_RANK;
    return true;
}

/* The default of the channel is that of the schedule that is generated. */
static bool same_fifo(SAME_PARAMS)
{
    enum fifo_rule fifo;
    bool batch;
    generate_channel(&printer->plan->programs.generate, &fifo, &batch);
    return *(const enum fifo_rule *)member == fifo;
}

static bool same_batch(SAME_PARAMS)
{
    enum fifo_rule fifo;
    bool batch;
    generate_channel(&printer->plan->programs.generate, &fifo, &batch);
    return *(const bool *)member == batch;
}

static void schema_fifo(struct json *json, const struct field *field)
{
    json_begin_array_at(json, "enum");
    for (size_t i = 0; field->words[i]; i++)
        json_string(json, field->words[i]);
    json_string(json, "rank");
    json_end_array(json);
}

static const struct field_kind kind_fifo = {field_fifo, print_word, same_fifo,
                                            .schema = schema_fifo};
static const struct field_kind kind_batch = {field_bool, print_bool, same_batch,
                                             .schema = schema_truth};

static const struct field p2p_fields[] = {
    FIELD("fifo", struct programs, fifo, fifo,
          "The messages that share a communicator and its stream. rank is an old word for group.",
          .words = keywords_fifo),
    FIELD("batch", struct programs, batch, batch,
          "Whether neighbouring sends and receives form a group."),
    FIELD("metadata", struct programs, metadata, word,
          "Messages that tell the shape of the tensor behind them.", .words = keywords_metadata),
    FIELD("bytes", struct programs, p2p_bytes, bytes, "The bytes of a message."),
    FIELD("eager_messages", struct programs, eager_messages, int,
          "How many messages may be sent before they are received. 0: rendezvous.", .max = 65536),
    FIELD("eager_bytes", struct programs, eager_bytes, bytes,
          "How many bytes may be sent before they are received. 0B: rendezvous."),
    FIELD("latency", struct programs, links.all.latency, given_time,
          "The time of a message of no bytes."),
    FIELD("bandwidth", struct programs, links.all.bandwidth, given_rate, "The bytes a second."),
    FIELD("forward", struct programs, links.forward, map, "The link of forward messages.",
          .keys = &link_keys),
    FIELD("backward", struct programs, links.backward, map, "The link of backward messages.",
          .keys = &link_keys),
    FIELD("node", struct programs, links.node, int, "The ranks of a node.", .min = 1,
          .max = PLAN_MAX_RANKS),
    FIELD("between", struct programs, links.between, map, "The link between nodes.",
          .keys = &link_keys),
    FIELD("edges", struct programs, links, edges, "The links from one rank to another.",
          .each = &edge_field),
};
const struct keys p2p_keys =
    KEYS(p2p_fields, "\"p2p\"", "a mapping such as {fifo: pair, batch: true}");

void parse_p2p(struct parser *parser, const struct node *value)
{
    struct programs *programs = &parser->plan->programs;
    generate_channel(&programs->generate, &programs->fifo, &programs->batch);
    if (!value)
        return;
    if (value->kind == NODE_MAP)
        programs->links.mark = value->mark;
    keys_parse(parser, value, &p2p_keys, programs);
}

static const struct field fsdp_fields[] = {
    FIELD("replicas", struct programs, fsdp_replicas, more, "The replicas of the whole pipeline.",
          .min = 1, .max = PLAN_MAX_RANKS),
    FIELD("bytes", struct programs, fsdp_bytes, bytes, "The unsharded parameters of a stage."),
};
const struct keys fsdp_keys =
    KEYS(fsdp_fields, "\"fsdp\"", "a mapping such as {replicas: 2, bytes: 1GiB}");

/* ---- stages and layers ----------------------------------------------------------------------- */

enum { MOST_LAYERS = PLAN_MAX_MODEL_STAGES };

static bool field_cost(struct parser *parser, const struct node *value, void *member, bool is_time)
{
    struct cost_list *list = member;
    bool single = value->kind != NODE_LIST, ok = true;
    size_t count = single ? 1 : value->length;
    list->mark = value->mark;
    if (value->kind == NODE_MAP || count == 0 || count > MOST_LAYERS)
        return parse_mismatch(
            parser, value, is_time ? "a time, or a list of times" : "a size, or a list of sizes");
    assert(list->count == 0 && "a key stands once in a mapping");
    list->items = ARENA_ARRAY(&parser->plan->arena, count, int64_t);
    if (!list->items)
        return parse_no_memory(parser);
    for (const struct node *item = single ? value : value->first; item && ok && list->count < count;
         item = item->next)
        ok = is_time ? field_time(parser, item, &list->items[list->count++], NULL)
                     : field_bytes(parser, item, &list->items[list->count++], NULL);
    return ok;
}

static bool field_times(PARSE_PARAMS)
{
    return field_cost(parser, value, member, true);
}

bool field_sizes(PARSE_PARAMS)
{
    return field_cost(parser, value, member, false);
}

static void print_cost(struct printer *printer, const struct cost_list *list, bool is_time)
{
    if (list->count > 1)
        open_list(printer, FLOW);
    for (size_t i = 0; i < list->count; i++)
        if (is_time)
            put_time(printer, list->items[i]);
        else
            put_bytes(printer, list->items[i]);
    if (list->count > 1)
        close_list(printer);
}

static void keys_costs_print_times(PRINT_PARAMS)
{
    print_cost(printer, member, true);
}

void print_sizes(PRINT_PARAMS)
{
    print_cost(printer, member, false);
}

static bool same_costs(SAME_PARAMS)
{
    return ((const struct cost_list *)member)->count == 0;
}

static void schema_times(struct json *json, const struct field *field)
{
    schema_one_or_list(json, &(const struct field){.kind = &kind_time}, 1);
}

void schema_sizes(struct json *json, const struct field *field)
{
    schema_one_or_list(json, &(const struct field){.kind = &kind_bytes}, 1);
}

static const struct field_kind kind_times = {field_times, keys_costs_print_times, same_costs,
                                             .schema = schema_times};
const struct field_kind kind_sizes = {field_sizes, print_sizes, same_costs, .schema = schema_sizes};

/* The keys of COST_LIST, in its order. */
#define COST_FIELDS(type, member)                                                                  \
    FIELD("F", type, member.of[COST_F], times, "The time of a forward pass of a microbatch."),     \
        FIELD("I", type, member.of[COST_I], times,                                                 \
              "The time of a backward pass for the gradient of the input."),                       \
        FIELD("W", type, member.of[COST_W], times,                                                 \
              "The time of a backward pass for the gradient of the weights."),                     \
        FIELD("B", type, member.of[COST_B], times,                                                 \
              "The time of a whole backward pass of a microbatch."),                               \
        FIELD("dispatch", type, member.of[COST_DISPATCH], times,                                   \
              "The time of the all-to-all to the experts."),                                       \
        FIELD("combine", type, member.of[COST_COMBINE], times,                                     \
              "The time of the all-to-all back from the experts."),                                \
        FIELD("optimizer", type, member.of[COST_OPTIMIZER], times,                                 \
              "The time of the optimizer at the end."),                                            \
        FIELD("activation", type, member.of[COST_ACTIVATION], sizes,                               \
              "What a forward pass keeps of a microbatch for its backward pass."),                 \
        FIELD("left", type, member.of[COST_LEFT], sizes,                                           \
              "What I keeps of a microbatch for W. The default is all of it."),                    \
        FIELD("input", type, member.of[COST_INPUT], sizes,                                         \
              "What a forward pass keeps where it is computed once more."),                        \
        FIELD("weights", type, member.of[COST_WEIGHTS], sizes,                                     \
              "The parameters, which are held all the time."),                                     \
        FIELD("state", type, member.of[COST_STATE], sizes,                                         \
              "Gradients and the state of the optimizer.")

static const struct field stage_fields[] = {COST_FIELDS(struct stage_spec, stages)};

const struct keys stages_keys =
    KEYS(stage_fields, "\"stages\"", "costs such as {F: [1ms, 2ms], activation: 1GiB}");

struct single {
    struct cost_table costs;
};

static const struct field single_fields[] = {COST_FIELDS(struct single, costs)};

static const struct keys embedding_keys =
    KEYS(single_fields, "embedding", "costs such as {F: 1ms, weights: 1GiB}");
static const struct keys head_keys =
    KEYS(single_fields, "head", "costs such as {F: 1ms, weights: 1GiB}");

/* Embedding and head are one each. */
static bool field_single(PARSE_PARAMS)
{
    struct single *single = member;
    bool ok = field_map(parser, value, member, field);
    for (int c = 0; ok && c < COST_COUNT; c++)
        if (single->costs.of[c].count > 1)
            ok = parse_error(parser, single->costs.of[c].mark, "found a list, expected one value");
    return ok;
}

static const struct field_kind kind_single = {field_single, print_map, same_map,
                                              .schema = schema_map};

static const struct field layer_fields[] = {
    FIELD("count", struct layers, count, int, "The number of layers.", .required = true, .min = 1,
          .max = MOST_LAYERS),
    COST_FIELDS(struct layers, each),
    FIELD("embedding", struct layers, embedding, single,
          "The costs of the embedding, in the first stage.", .keys = &embedding_keys),
    FIELD("head", struct layers, head, single, "The costs of the head, in the last stage.",
          .keys = &head_keys),
};
const struct keys layers_keys =
    KEYS(layer_fields, "\"layers\"", "costs such as {count: 24, F: 1ms}");

void parse_layers(struct parser *parser, const struct node *value)
{
    struct layers *layers = &parser->plan->programs.stages.layers;
    if (!value || !keys_parse(parser, value, &layers_keys, layers))
        return;
    layers->mark = value->mark;
    for (int c = 0; c < COST_COUNT; c++)
        if (layers->each.of[c].count > 1 && layers->each.of[c].count != (size_t)layers->count)
            parse_error(parser, layers->each.of[c].mark,
                        "found \"%s\" of %zu layers, expected one for all or %d",
                        cost_key((enum cost)c), layers->each.of[c].count, layers->count);
}

/* ---- a model --------------------------------------------------------------------------------- */

enum { MOST_SIZE = 1 << 24 };

#define SIZE_FIELD(name, needed, about)                                                            \
    FIELD(#name, struct model_spec, name, int, about, .required = (needed), .min = 1,              \
          .max = MOST_SIZE)

static const struct field model_fields[] = {
    FIELD("layers", struct model_spec, layers, int, "The number of layers.", .required = true,
          .min = 1, .max = MOST_LAYERS),
    SIZE_FIELD(hidden, true, "The width of a token."),
    SIZE_FIELD(heads, true, "The heads of attention."),
    SIZE_FIELD(sequence, true, "The tokens of a sequence."),
    SIZE_FIELD(microbatch, true, "The sequences of a microbatch."),
    SIZE_FIELD(kv_heads, false, "The heads of keys and values. The default is heads."),
    SIZE_FIELD(ffn, false, "The width inside the MLP. The default is 4 times hidden."),
    FIELD("gated", struct model_spec, gated, boolean,
          "Whether the MLP has a gate: three matrices."),
    SIZE_FIELD(vocab, false,
               "The rows of the embedding. Without this key there is neither embedding nor head."),
    SIZE_FIELD(tensor, false, "The ranks of tensor parallelism. The default is 1."),
    SIZE_FIELD(data, false, "The ranks of data parallelism. The default is 1."),
    SIZE_FIELD(context, false, "The ranks that divide a sequence. The default is 1."),
    SIZE_FIELD(experts, false, "The experts of a layer."),
    SIZE_FIELD(top_k, false, "The experts that a token goes to. The default is 1."),
    SIZE_FIELD(expert_parallel, false, "The ranks that divide the experts. The default is 1."),
    FIELD("sequence_parallel", struct model_spec, sequence_parallel, boolean,
          "Whether what tensor parallelism leaves whole is divided, too."),
    FIELD("selective", struct model_spec, selective, boolean,
          "Whether attention is computed once more and not kept."),
    FIELD("tied", struct model_spec, tied, boolean,
          "Whether embedding and head share their weights."),
    FIELD("distributed_optimizer", struct model_spec, distributed, boolean,
          "Whether the state of the optimizer is divided by data."),
    FIELD("rate", struct model_spec, rate_flops, flops,
          "The floating-point operations a second of a rank, such as 150TFLOPS."),
};
const struct keys model_keys =
    KEYS(model_fields, "\"model\"", "a transformer such as {layers: 24, hidden: 1024}");

/* `parallel:` says these sizes for the model, too. */
static void check_parallel(struct parser *parser, const struct node *value,
                           const struct model_spec *model)
{
    const struct parallel_spec *spec = &parser->plan->programs.parallel;
    const struct {
        const char *key;
        int found, expected;
    } sizes[] = {{"tensor", model->tensor, spec->size[DIM_TP]},
                 {"data", model->data, spec->size[DIM_DP] * spec->size[DIM_CP]},
                 {"context", model->context, spec->size[DIM_CP]},
                 {"expert_parallel", model->expert_parallel, spec->size[DIM_EP]}};
    for (size_t i = 0; spec->given && i < FIELD_COUNT(sizes); i++)
        if (sizes[i].found && sizes[i].found != sizes[i].expected)
            parse_error(parser, node_find(value, sizes[i].key)->mark,
                        "found %s %d, expected %d as \"parallel\" says", sizes[i].key,
                        sizes[i].found, sizes[i].expected);
}

/* Ranks divide heads, tokens and experts into equal parts, as Megatron-Core demands. */
static void keys_costs_check_parts(struct parser *parser, const struct node *value)
{
    struct model_spec model = costs_model(parser->plan);
    const struct {
        const char *key;
        int found;
        const char *by;
        int parts;
    } sizes[] = {{"heads", model.heads, "tensor", model.tensor},
                 {"heads", model.heads, "kv_heads", model.kv_heads},
                 {"kv_heads", model.kv_heads, "tensor", model.tensor},
                 {"sequence", model.sequence, "context", model.context},
                 {"sequence", model.sequence, "tensor", model.sequence_parallel ? model.tensor : 1},
                 {"experts", model.experts, "expert_parallel", model.expert_parallel}};
    for (size_t i = 0; i < FIELD_COUNT(sizes); i++)
        if (sizes[i].parts && sizes[i].found % sizes[i].parts)
            parse_error(parser, node_find(value, sizes[i].key)->mark,
                        "found %s %d, expected a multiple of %s %d", sizes[i].key, sizes[i].found,
                        sizes[i].by, sizes[i].parts);
}

void parse_model(struct parser *parser, const struct node *value)
{
    struct stage_spec *spec = &parser->plan->programs.stages;
    if (!value || !keys_parse(parser, value, &model_keys, &spec->model))
        return;
    if (!spec->layers.count)
        spec->layers.mark = value->mark;
    check_parallel(parser, value, &spec->model);
    keys_costs_check_parts(parser, value);
    if (spec->layers.count && spec->layers.count != spec->model.layers)
        parse_error(parser, value->mark,
                    "found a model of %d layers, expected %d as \"layers\" says",
                    spec->model.layers, spec->layers.count);
}

/* ---- layers of stages ------------------------------------------------------------------------ */

static bool parse_balanced(struct parser *parser, const struct node *value)
{
    struct stage_spec *spec = &parser->plan->programs.stages;
    spec->balance = BALANCE_LISTED;
    if (value->length > PLAN_MAX_MODEL_STAGES)
        return parse_mismatch(parser, value, "the layers of each stage");
    spec->balanced = ARENA_ARRAY(&parser->plan->arena, value->length + 1, int);
    if (!spec->balanced)
        return parse_no_memory(parser);
    READ_LIST (parser, value, count) {
        int64_t number;
        if (!parse_number(parser, count, false, 0, MOST_LAYERS, &number))
            return false;
        spec->balanced[spec->balanced_count++] = (int)number;
    }
    return true;
}

/* balance := even | found | [layers, ...] */
void parse_balance(struct parser *parser, const struct node *value)
{
    static const struct field field = {.words = keywords_balance};
    struct stage_spec *spec = &parser->plan->programs.stages;
    if (!value)
        return;
    spec->balance_mark = value->mark;
    if (spec->layers.count == 0 && spec->model.layers == 0)
        parse_error(parser, value->mark, "found \"balance\" without \"layers\", expected both");
    else if (value->kind == NODE_LIST)
        parse_balanced(parser, value);
    else
        field_word(parser, value, &spec->balance, &field);
}

bool has_balance(const struct printer *printer)
{
    return printer->plan->programs.stages.balance != BALANCE_EVEN;
}

void print_balance(struct printer *printer)
{
    const struct stage_spec *spec = &printer->plan->programs.stages;
    if (spec->balance != BALANCE_LISTED) {
        put_word(printer, keywords_balance[spec->balance]);
        return;
    }
    open_list(printer, FLOW);
    for (size_t i = 0; i < spec->balanced_count; i++)
        put_number(printer, spec->balanced[i]);
    close_list(printer);
}

static void schema_balance(struct json *json, const struct field *field)
{
    static const struct field layers = {.max = MOST_LAYERS, .otherwise = -1};
    schema_either(json);
    schema_word(json, field);
    schema_or(json);
    schema_begin_list(json);
    schema_int(json, &layers);
    schema_end(json);
    schema_end_either(json);
}

const struct field_kind kind_balance = {.schema = schema_balance};
