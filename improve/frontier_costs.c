/* SPDX-License-Identifier: Apache-2.0 */
/* frontier_costs.c - see frontier_costs.h. */
#include "frontier_costs.h"
#include "base/sort.h"
#include "plan/schedules/costs.h"

enum { ASSUMED_NS = 1000000 };

bool frontier_has_cost(const struct stage_spec *spec, enum cost cost)
{
    const struct model_spec *model = &spec->model;
    if (model->layers && (!cost_is_time(cost) || model->rate_flops))
        return true;
    return spec->stages.of[cost].count || spec->layers.each.of[cost].count ||
           spec->layers.embedding.of[cost].count || spec->layers.head.of[cost].count;
}

bool frontier_has_bytes(const struct stage_spec *spec)
{
    for (int c = 0; c < COST_COUNT; c++)
        if (!cost_is_time((enum cost)c) && frontier_has_cost(spec, (enum cost)c))
            return true;
    return false;
}

static bool make_list(struct cost_list *list, size_t count, struct arena *arena)
{
    *list = (struct cost_list){
        .items = ARENA_ARRAY(arena, count, int64_t), .count = count, .mark = list->mark};
    return list->items != NULL;
}

/* ---- what is missing ------------------------------------------------------------------------- */

static bool split_table(struct cost_table *table, struct arena *arena)
{
    const struct cost_list *whole = &table->of[COST_B];
    struct cost_list *input = &table->of[COST_I], *weight = &table->of[COST_W];
    if (whole->count == 0 || input->count || weight->count)
        return true;
    if (!make_list(input, whole->count, arena) || !make_list(weight, whole->count, arena))
        return false;
    for (size_t i = 0; i < whole->count; i++) {
        weight->items[i] = whole->items[i] / 2;
        input->items[i] = whole->items[i] - weight->items[i];
    }
    return true;
}

static void split_times(struct action_time *times)
{
    if (!times[ACTION_B].given || times[ACTION_I].given || times[ACTION_W].given)
        return;
    times[ACTION_I] = times[ACTION_W] = times[ACTION_B];
    times[ACTION_W].time_ns /= 2;
    times[ACTION_I].time_ns -= times[ACTION_W].time_ns;
}

static void join_times(struct action_time *times)
{
    if (times[ACTION_B].given || !times[ACTION_I].given || !times[ACTION_W].given)
        return;
    times[ACTION_B] = (struct action_time){
        .given = true, .time_ns = times[ACTION_I].time_ns + times[ACTION_W].time_ns};
}

bool frontier_fill_costs(struct programs *programs, bool assume, int64_t activation,
                         struct arena *arena)
{
    struct stage_spec *spec = &programs->stages;
    struct action_time *times = programs->times;
    if (assume)
        times[ACTION_F] = times[ACTION_I] = times[ACTION_W] =
            (struct action_time){.given = true, .time_ns = ASSUMED_NS};
    split_times(times);
    join_times(times);
    if (activation) {
        if (!make_list(&spec->stages.of[COST_ACTIVATION], 1, arena))
            return false;
        spec->stages.of[COST_ACTIVATION].items[0] = activation;
    }
    return split_table(&spec->stages, arena);
}

/* ---- other sizes ----------------------------------------------------------------------------- */

static int64_t frontier_costs_scale(int64_t value, int from, int to)
{
    return (int64_t)((long double)value * to / from + 0.5L);
}

static bool scale_table(struct cost_table *table, const struct frontier_sizes *sizes,
                        struct arena *arena)
{
    const enum cost passes[] = {COST_F, COST_I, COST_W, COST_B},
                    bytes[] = {COST_ACTIVATION, COST_LEFT, COST_INPUT};
    const struct {
        const enum cost *costs;
        size_t count;
        int more; /* samples that are there anyway */
    } kinds[] = {{passes, sizeof passes / sizeof *passes, sizes->half},
                 {bytes, sizeof bytes / sizeof *bytes, 0}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t c = 0; c < kinds[k].count; c++) {
            struct cost_list *list = &table->of[kinds[k].costs[c]];
            const struct cost_list old = *list;
            if (old.count && !make_list(list, old.count, arena))
                return false;
            for (size_t i = 0; i < old.count; i++)
                list->items[i] = frontier_costs_scale(old.items[i], sizes->from + kinds[k].more,
                                                      sizes->to + kinds[k].more);
        }
    return true;
}

/* A rate counts operations, of which a microbatch has as many as samples. */
static void scale_model(struct model_spec *model, const struct frontier_sizes *sizes)
{
    model->microbatch = sizes->to;
    model->rate_flops = (int64_t)((long double)model->rate_flops * sizes->to / sizes->from *
                                  (sizes->from + sizes->half) / (sizes->to + sizes->half));
}

static void scale_link(struct link *link, const struct frontier_sizes *sizes)
{
    link->bytes.value = frontier_costs_scale(link->bytes.value, sizes->from, sizes->to);
}

static bool scale_messages(struct programs *programs, const struct frontier_sizes *sizes,
                           struct arena *arena)
{
    struct links *links = &programs->links;
    struct link *kinds[] = {&links->all, &links->forward, &links->backward, &links->between};
    const struct edge_link *old = links->edges;
    programs->p2p_bytes = frontier_costs_scale(programs->p2p_bytes, sizes->from, sizes->to);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        scale_link(kinds[i], sizes);
    if (links->edge_count == 0)
        return true;
    links->edges = ARENA_ARRAY(arena, links->edge_count, struct edge_link);
    for (size_t i = 0; links->edges && i < links->edge_count; i++) {
        links->edges[i] = old[i];
        scale_link(&links->edges[i].link, sizes);
    }
    return links->edges != NULL;
}

static void scale_times(struct action_time *times, const struct frontier_sizes *sizes)
{
    const enum action_kind passes[] = {ACTION_F, ACTION_I, ACTION_W, ACTION_B, ACTION_OVERLAP_F_B},
                           messages[] = {ACTION_SEND_F, ACTION_RECV_F, ACTION_SEND_B,
                                         ACTION_RECV_B};
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
        times[passes[i]].time_ns = frontier_costs_scale(
            times[passes[i]].time_ns, sizes->from + sizes->half, sizes->to + sizes->half);
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
        times[messages[i]].time_ns =
            frontier_costs_scale(times[messages[i]].time_ns, sizes->from, sizes->to);
}

bool frontier_scale_costs(struct programs *programs, const struct frontier_sizes *sizes,
                          struct arena *arena)
{
    struct stage_spec *spec = &programs->stages;
    if (sizes->from == sizes->to)
        return true;
    if (spec->model.layers)
        scale_model(&spec->model, sizes);
    scale_times(programs->times, sizes);
    return scale_messages(programs, sizes, arena) && scale_table(&spec->stages, sizes, arena) &&
           scale_table(&spec->layers.each, sizes, arena) &&
           scale_table(&spec->layers.embedding, sizes, arena) &&
           scale_table(&spec->layers.head, sizes, arena);
}

/* ---- other stages ---------------------------------------------------------------------------- */

static int64_t frontier_costs_share(int64_t value, int part, int whole)
{
    return (int64_t)((long double)value * part / whole + 0.5L);
}

/* In units of 1 / (from x to) of the model stage s of `from` ends at (s + 1) x to. */
static int64_t frontier_costs_overlap(int64_t a, int64_t b, int64_t c, int64_t d)
{
    return max_i64(0, min_i64(b, d) - max_i64(a, c));
}

static int64_t frontier_costs_piece(const struct cost_list *list, int from, int to, int s)
{
    int64_t sum = 0;
    for (int i = 0; i < from; i++) {
        int64_t common = frontier_costs_overlap((int64_t)s * from, (int64_t)(s + 1) * from,
                                                (int64_t)i * to, (int64_t)(i + 1) * to);
        sum += common ? frontier_costs_share(list->items[i], (int)common, to) : 0;
    }
    return sum;
}

/* A list for each stage of another number of them is left for costs_resolve to refuse. */
static bool divide_list(struct cost_list *list, enum cost cost, int from, int to,
                        struct arena *arena)
{
    const struct cost_list old = *list;
    if (old.count == 0 || (old.count > 1 && old.count != (size_t)from) ||
        (cost == COST_INPUT && old.count == 1))
        return true;
    if (!make_list(list, old.count == 1 ? 1 : (size_t)to, arena))
        return false;
    for (int s = 0; s < (int)list->count; s++)
        list->items[s] = old.count == 1       ? frontier_costs_share(old.items[0], from, to)
                         : cost == COST_INPUT ? old.items[(int64_t)s * from / to]
                                              : frontier_costs_piece(&old, from, to, s);
    return true;
}

bool frontier_divide_costs(struct programs *programs, int from, int to, struct arena *arena)
{
    if (from == to)
        return true;
    const enum action_kind passes[] = {ACTION_F, ACTION_I, ACTION_W, ACTION_B, ACTION_OVERLAP_F_B};
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
        struct action_time *time = &programs->times[passes[i]];
        time->time_ns = frontier_costs_share(time->time_ns, from, to);
    }
    for (int c = 0; c < COST_COUNT; c++)
        if (!divide_list(&programs->stages.stages.of[c], (enum cost)c, from, to, arena))
            return false;
    return true;
}
