/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - see model.h. */
#include "model.h"

#include <math.h>

enum { HALF = 2, GRADIENT = 4, ADAM = 12 }; /* bytes a parameter */

/* Doubles hold all products exactly: up to 2^53. */
struct sizes {
    double s, b, h, a, f, v;
    double all; /* the whole sequence, of which s is a rank's part */
    double t;   /* tensor parallelism */
    double w;   /* what divides the rest: t with sequence parallelism, else 1 */
    double k;   /* experts that a token goes to; 1 without experts */
    double kv;  /* heads of keys and values for each head */
    double m;   /* matrices of the MLP */
};

static double or_one(int value)
{
    return value ? value : 1;
}

static struct sizes sizes_of(const struct model_spec *m)
{
    double t = or_one(m->tensor);
    return (struct sizes){.s = m->sequence / or_one(m->context),
                          .all = m->sequence,
                          .b = m->microbatch,
                          .h = m->hidden,
                          .a = m->heads,
                          .f = m->ffn ? m->ffn : 4.0 * m->hidden,
                          .v = m->vocab,
                          .t = t,
                          .w = m->sequence_parallel ? t : 1,
                          .k = m->experts ? or_one(m->top_k) : 1,
                          .kv = m->kv_heads ? (double)m->kv_heads / m->heads : 1,
                          .m = m->gated ? 3 : 2};
}

int64_t model_layer_bytes(const struct model_spec *model)
{
    struct sizes z = sizes_of(model);
    return llround(HALF * z.s * z.b * z.h);
}

int64_t model_kv_bytes(const struct model_spec *model)
{
    struct sizes z = sizes_of(model);
    return llround(2 * HALF * z.s * z.b * z.h * z.kv / z.t);
}

int64_t model_query_bytes(const struct model_spec *model)
{
    struct sizes z = sizes_of(model);
    return llround(HALF * z.s * z.b * z.h / z.t);
}

int64_t model_message_bytes(const struct model_spec *model)
{
    struct sizes z = sizes_of(model);
    return llround(HALF * z.s * z.b * z.h / z.w);
}

/* ---- costs ----------------------------------------------------------------------------------- */

/* `ns` of operations; bytes as they are. */
static bool model_put(struct arena *arena, struct cost_table *table, enum cost cost, double value)
{
    struct cost_list *list = &table->of[cost];
    if (list->count)
        return true;
    list->items = ARENA_ARRAY(arena, 1, int64_t);
    if (!list->items)
        return false;
    list->items[0] = llround(value);
    list->count = 1;
    return true;
}

static bool put_parameters(const struct model_spec *model, struct arena *arena,
                           struct cost_table *table, double parameters)
{
    double adam = model->distributed ? ADAM / or_one(model->data) : ADAM;
    return model_put(arena, table, COST_WEIGHTS, HALF * parameters) &&
           model_put(arena, table, COST_STATE, (GRADIENT + adam) * parameters);
}

/* Operations of F, I and W on a rank. */
static bool model_put_times(const struct model_spec *model, struct arena *arena,
                            struct cost_table *table, double forward, double input, double weights)
{
    double ns = model->rate_flops ? 1e9 / (double)model->rate_flops : 0;
    bool split = table->of[COST_I].count || table->of[COST_W].count;
    if (ns == 0)
        return true;
    return model_put(arena, table, COST_F, forward * ns) &&
           model_put(arena, table, COST_I, input * ns) &&
           model_put(arena, table, COST_W, weights * ns) &&
           (split || model_put(arena, table, COST_B, (input + weights) * ns));
}

/* Of the 34: norms 4, inputs of attention and MLP and the masks behind them, which tensor parallelism leaves whole;
   8 of attention (queries, keys, values, and what comes of them) and 4f/h of the MLP, which it divides. */
static bool fill_layer(const struct model_spec *model, struct arena *arena, struct layers *out)
{
    struct sizes z = sizes_of(model);
    double sbh = z.s * z.b * z.h, scores = 5 * z.a * z.s * z.all * z.b;
    double whole = sbh * (4 + 3 + 2 * z.k + 1);
    double divided =
        (4 + 4 * z.kv) * sbh + HALF * z.m * z.s * z.b * z.f * z.k + (model->selective ? 0 : scores);
    double projections = (2 + 2 * z.kv) * z.h * z.h, mlp = z.m * z.h * z.f;
    double experts = model->experts ? model->experts / or_one(model->expert_parallel) : 1;
    double router = model->experts ? z.h * model->experts : 0;
    double linear = 2 * z.s * z.b * (projections + mlp * z.k) / z.t;
    double attention = 4 * z.b * z.s * z.all * z.h / z.t;
    return model_put(arena, &out->each, COST_ACTIVATION, whole / z.w + divided / z.t) &&
           model_put(arena, &out->each, COST_INPUT, HALF * sbh / z.w) &&
           put_parameters(model, arena, &out->each, (projections + mlp * experts) / z.t + router) &&
           model_put_times(model, arena, &out->each, linear + attention,
                           linear + (model->selective ? 3 : 2) * attention, linear);
}

/* Token numbers and the mask behind the embedding; norm, input and logits of the head. */
static bool fill_ends(const struct model_spec *model, int stages, struct arena *arena,
                      struct layers *out)
{
    struct sizes z = sizes_of(model);
    double sb = z.s * z.b, parameters = z.v * z.h / z.t, logits = 2 * sb * z.h * z.v / z.t;
    if (model->vocab == 0)
        return true;
    bool shared = model->tied && stages == 1;
    return model_put(arena, &out->embedding, COST_ACTIVATION, (8 * sb + sb * z.h) / z.w) &&
           model_put(arena, &out->embedding, COST_INPUT, 8 * sb / z.w) &&
           put_parameters(model, arena, &out->embedding, parameters) &&
           model_put(arena, &out->head, COST_ACTIVATION, (4 * sb * z.h + 4 * sb * z.v) / z.t) &&
           model_put(arena, &out->head, COST_INPUT, HALF * sb * z.h / z.w) &&
           put_parameters(model, arena, &out->head, shared ? 0 : parameters) &&
           model_put_times(model, arena, &out->head, logits, logits, logits);
}

bool model_fill(const struct model_spec *model, int stages, struct arena *arena, struct layers *out)
{
    out->count = model->layers;
    return fill_layer(model, arena, out) && fill_ends(model, stages, arena, out);
}
