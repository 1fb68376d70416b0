/* SPDX-License-Identifier: Apache-2.0 */
/* pass_time.c - see pass_time.h. */
#include "pass_time.h"
#include "base/sort.h"

#include "costs.h"

/* ---- passes that exchange tokens ------------------------------------------------------------- */

/*
 * How long passes with layers of experts take, alone and executed together.
 *
 * Before its experts a pass sends its tokens to them (dispatch), behind them back (combine): two all-to-alls, forward
 * and backward alike. Alone it waits for both. A forward and a backward pass together run one's all-to-alls beside the
 * other's computation.
 *
 * Two streams, each with its pieces in the order in which Megatron-LM issues them for a layer of each pass (megatron-core
 * 0.16.1, models/common/model_chunk_schedule_plan.py):
 *
 *     compute:   attention F     experts B            experts F     attention B
 *     messages:  combine B       dispatch F           dispatch B    combine F
 *
 * A piece begins when its stream and the piece that it needs are done. All layers of a stage behave like one that takes
 * as long as all of them: the last piece of a layer on each stream is what the next layer needs.
 */

/* Nanoseconds: what a pass computes, half of it before its experts (backward: behind them), and its all-to-alls. */
struct exchanging {
    int64_t compute_ns, dispatch_ns, combine_ns;
};

static int64_t overlap_alone(const struct exchanging *pass)
{
    return pass->dispatch_ns + pass->compute_ns + pass->combine_ns;
}

static int64_t overlap_together(const struct exchanging *forward, const struct exchanging *backward)
{
    int64_t attention_f = forward->compute_ns - forward->compute_ns / 2;
    int64_t experts_b = backward->compute_ns / 2;
    int64_t compute_ns = attention_f, messages_ns = backward->combine_ns;
    int64_t dispatched_f = max_i64(messages_ns, compute_ns) + forward->dispatch_ns;
    compute_ns = max_i64(compute_ns, messages_ns) + experts_b;
    int64_t dispatched_b = max_i64(dispatched_f, compute_ns) + backward->dispatch_ns;
    compute_ns = max_i64(compute_ns, dispatched_f) + forward->compute_ns / 2;
    int64_t combined_f = max_i64(dispatched_b, compute_ns) + forward->combine_ns;
    compute_ns = max_i64(compute_ns, dispatched_b) + backward->compute_ns - experts_b;
    return max_i64(compute_ns, combined_f);
}

/* The pass backward computes the pass forward once more where only its input was kept, with its all-to-alls. */
static struct exchanging backward_of(const struct pass_clock *clock, const struct action *action,
                                     enum cost cost)
{
    const struct stage_cost *row = &clock->costs[action->stage];
    struct exchanging pass = {row->of[cost], row->of[COST_DISPATCH], row->of[COST_COMBINE]};
    if (costs_checkpointed(clock->plan, action->microbatch, clock->microbatches))
        pass.compute_ns += row->of[COST_F] + pass.dispatch_ns + pass.combine_ns;
    return pass;
}

static struct exchanging forward_of(const struct pass_clock *clock, const struct action *action)
{
    const struct stage_cost *row = &clock->costs[action->stage];
    return (struct exchanging){row->of[COST_F], row->of[COST_DISPATCH], row->of[COST_COMBINE]};
}

static struct exchanging exchanging_of(const struct pass_clock *clock, const struct action *action)
{
    if (action->kind == ACTION_F)
        return forward_of(clock, action);
    return backward_of(clock, action, action->kind == ACTION_I ? COST_I : COST_B);
}

static int64_t pass_time_given_time(const struct pass_clock *clock, enum action_kind kind)
{
    const struct action_time *time = &clock->plan->programs.times[kind];
    return time->given ? time->time_ns : 0;
}

static int64_t single_time(const struct pass_clock *clock, const struct action *action)
{
    enum cost cost;
    if (!action_cost(action->kind, &cost))
        return pass_time_given_time(clock, action->kind);
    if (cost == COST_W)
        return clock->costs[action->stage].of[COST_W];
    const struct exchanging pass = exchanging_of(clock, action);
    return overlap_alone(&pass);
}

static bool exchanges(const struct pass_clock *clock, const struct action *action)
{
    const struct stage_cost *row = &clock->costs[action->stage];
    return row->of[COST_DISPATCH] > 0 || row->of[COST_COMBINE] > 0;
}

static int64_t usual_time(const struct action *action)
{
    int64_t all = action->kind == ACTION_B ? 2
                  : action->kind == ACTION_F || action->kind == ACTION_I || action->kind == ACTION_W
                      ? 1
                      : 0;
    for (int i = 0; action->parts && i < ACTION_PARTS; i++)
        all += usual_time(&action->parts[i]);
    return all;
}

/* A composite takes the time given for it, else that of its parts together. */
int64_t pass_time(const struct pass_clock *clock, const struct action *action)
{
    const struct action *parts = action->parts;
    if (!clock->costs)
        return usual_time(action);
    if (!parts || clock->plan->programs.times[action->kind].given)
        return single_time(clock, action);
    if (!exchanges(clock, &parts[0]) && !exchanges(clock, &parts[1]))
        return single_time(clock, &parts[0]) + single_time(clock, &parts[1]);
    struct exchanging forward = exchanging_of(clock, &parts[0]);
    struct exchanging backward = exchanging_of(clock, &parts[1]);
    return overlap_together(&forward, &backward);
}

bool pass_time_known(const struct stage_cost *costs, int stages)
{
    for (int stage = 0; costs && stage < stages; stage++)
        for (int cost = COST_F; cost <= COST_B; cost++)
            if (costs[stage].given[cost])
                return true;
    return false;
}
