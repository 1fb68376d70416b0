/* SPDX-License-Identifier: Apache-2.0 */
/* print_costs.c - what messages, passes and stages of rank programs cost, in canonical text. */
#include "plan/keywords.h"
#include "plan/schedules/costs.h"
#include "print_internal.h"
#include "base/units.h"

/* ---- messages -------------------------------------------------------------------------------- */

static bool has_link(const struct link *link)
{
    return link->latency.given || link->bandwidth.given || link->bytes.given;
}

void put_link_pairs(struct printer *printer, const struct link *link)
{
    if (link->latency.given)
        put_pair_time(printer, "latency", link->latency.value, -1);
    if (link->bandwidth.given)
        put_pair_rate(printer, "bandwidth", link->bandwidth.value);
    if (link->bytes.given)
        put_pair_bytes(printer, "bytes", link->bytes.value, -1);
}

void put_link(struct printer *printer, const char *key, const struct link *link)
{
    if (!has_link(link))
        return;
    put_word(printer, key);
    open_map(printer, FLOW);
    put_link_pairs(printer, link);
    close_map(printer);
}

static void put_edges(struct printer *printer, const struct links *links)
{
    if (links->edge_count == 0)
        return;
    put_word(printer, "edges");
    open_list(printer, FLOW);
    for (size_t i = 0; i < links->edge_count; i++) {
        open_map(printer, FLOW);
        put_pair_number(printer, "from", links->edges[i].from, -1);
        put_pair_number(printer, "to", links->edges[i].to, -1);
        put_link_pairs(printer, &links->edges[i].link);
        close_map(printer);
    }
    close_list(printer);
}

bool has_links(const struct links *links)
{
    return has_link(&links->all) || has_link(&links->forward) || has_link(&links->backward) ||
           has_link(&links->between) || links->node || links->edge_count;
}

void put_links(struct printer *printer, const struct links *links)
{
    put_link_pairs(printer, &links->all);
    put_link(printer, "forward", &links->forward);
    put_link(printer, "backward", &links->backward);
    put_pair_number(printer, "node", links->node, 0);
    put_link(printer, "between", &links->between);
    put_edges(printer, links);
}

/* ---- stages and layers ----------------------------------------------------------------------- */

static void put_item(struct printer *printer, bool is_time, int64_t value)
{
    if (is_time)
        put_time(printer, value);
    else
        put_bytes(printer, value);
}

void put_cost(struct printer *printer, const char *key, const struct cost_list *list, bool is_time)
{
    if (list->count == 0)
        return;
    put_word(printer, key);
    if (list->count > 1)
        open_list(printer, FLOW);
    for (size_t i = 0; i < list->count; i++)
        put_item(printer, is_time, list->items[i]);
    if (list->count > 1)
        close_list(printer);
}

static void put_costs(struct printer *printer, const struct cost_table *table)
{
    for (int c = 0; c < COST_COUNT; c++)
        put_cost(printer, cost_key((enum cost)c), &table->of[c], cost_is_time((enum cost)c));
}

static bool has_costs(const struct cost_table *table)
{
    for (int c = 0; c < COST_COUNT; c++)
        if (table->of[c].count)
            return true;
    return false;
}

static void put_table(struct printer *printer, const char *key, const struct cost_table *table)
{
    if (!has_costs(table))
        return;
    put_word(printer, key);
    open_map(printer, FLOW);
    put_costs(printer, table);
    close_map(printer);
}

static void put_layers(struct printer *printer, const struct layers *layers)
{
    if (layers->count == 0)
        return;
    put_word(printer, "layers");
    open_map(printer, FLOW);
    put_pair_number(printer, "count", layers->count, 0);
    put_costs(printer, &layers->each);
    put_table(printer, "embedding", &layers->embedding);
    put_table(printer, "head", &layers->head);
    close_map(printer);
}

static void put_model(struct printer *printer, const struct model_spec *model)
{
    char rate[UNITS_TEXT];
    if (model->layers == 0)
        return;
    put_word(printer, "model");
    open_map(printer, FLOW);
    put_pair_number(printer, "layers", model->layers, 0);
    put_pair_number(printer, "hidden", model->hidden, 0);
    put_pair_number(printer, "heads", model->heads, 0);
    put_pair_number(printer, "sequence", model->sequence, 0);
    put_pair_number(printer, "microbatch", model->microbatch, 0);
    put_pair_number(printer, "kv_heads", model->kv_heads, 0);
    put_pair_number(printer, "ffn", model->ffn, 0);
    put_pair_bool(printer, "gated", model->gated, false);
    put_pair_number(printer, "vocab", model->vocab, 0);
    put_pair_number(printer, "tensor", model->tensor, 0);
    put_pair_number(printer, "data", model->data, 0);
    put_pair_number(printer, "context", model->context, 0);
    put_pair_number(printer, "experts", model->experts, 0);
    put_pair_number(printer, "top_k", model->top_k, 0);
    put_pair_number(printer, "expert_parallel", model->expert_parallel, 0);
    put_pair_bool(printer, "sequence_parallel", model->sequence_parallel, false);
    put_pair_bool(printer, "selective", model->selective, false);
    put_pair_bool(printer, "tied", model->tied, false);
    put_pair_bool(printer, "distributed_optimizer", model->distributed, false);
    units_print_flops(model->rate_flops, rate);
    if (model->rate_flops)
        put_pair_word(printer, "rate", rate);
    close_map(printer);
}

static void put_balance(struct printer *printer, const struct stage_spec *spec)
{
    if (spec->balance != BALANCE_LISTED) {
        put_pair_keyword(printer, "balance", keywords_balance, spec->balance, BALANCE_EVEN);
        return;
    }
    put_word(printer, "balance");
    open_list(printer, FLOW);
    for (size_t i = 0; i < spec->balanced_count; i++)
        put_number(printer, spec->balanced[i]);
    close_list(printer);
}

void print_stages(struct printer *printer)
{
    const struct stage_spec *spec = &printer->plan->programs.stages;
    put_table(printer, "stages", &spec->stages);
    put_layers(printer, &spec->layers);
    put_model(printer, &spec->model);
    put_balance(printer, spec);
    put_pair_keyword(printer, "checkpoint", keywords_checkpoint, spec->checkpoint,
                     CHECKPOINT_NEVER);
    put_pair_keyword(printer, "release", keywords_release, spec->release, RELEASE_BACKWARD);
}
