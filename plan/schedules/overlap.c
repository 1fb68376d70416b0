/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overlap.c - see overlap.h.
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
#include "overlap.h"

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t overlap_alone(const struct exchanging *pass)
{
    return pass->dispatch_ns + pass->compute_ns + pass->combine_ns;
}

int64_t overlap_together(const struct exchanging *forward, const struct exchanging *backward)
{
    int64_t attention_f = forward->compute_ns - forward->compute_ns / 2;
    int64_t experts_b = backward->compute_ns / 2;
    int64_t compute_ns = attention_f, messages_ns = backward->combine_ns;
    int64_t dispatched_f = later(messages_ns, compute_ns) + forward->dispatch_ns;
    compute_ns = later(compute_ns, messages_ns) + experts_b;
    int64_t dispatched_b = later(dispatched_f, compute_ns) + backward->dispatch_ns;
    compute_ns = later(compute_ns, dispatched_f) + forward->compute_ns / 2;
    int64_t combined_f = later(dispatched_b, compute_ns) + forward->combine_ns;
    compute_ns = later(compute_ns, dispatched_b) + backward->compute_ns - experts_b;
    return later(compute_ns, combined_f);
}
