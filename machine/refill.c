/* SPDX-License-Identifier: Apache-2.0 */
/* refill.c - see refill.h. */
#include "refill.h"

#include "failure.h"

/* The oldest send in the channel without a receive; -1: none. */
static int unreceived_part(const struct program *p, const int32_t *c, int channel)
{
    const int32_t *cells = c + p->at.channels[channel];
    return cells[0] > 0 ? cells[1 + CHANNEL_PART] : -1;
}

static bool may_be_eager(const struct program *p, int channel)
{
    const struct comm_desc *comm = &p->comms[p->channels[channel].comm];
    return comm->eager_messages > 0 || comm->eager_bytes > 0;
}

void refill_check(struct work_state *w)
{
    const struct program *p = w->p;
    if (failure_happened(p, w->c))
        return; /* a stopped rank is not drained */
    for (int channel = 0; channel < p->channel_count; channel++) {
        int part = may_be_eager(p, channel) ? unreceived_part(p, w->c, channel) : -1;
        if (part < 0)
            continue;
        struct state state = {.cells = w->c};
        if (!machine_done(p, &state))
            return;
        w->e->violated |= 1u << PROPERTY_DRAIN;
        w->e->met.op = (int)(machine_part_op(p, part) - p->ops);
        w->e->met.iteration = w->c[p->at.channels[channel] + 1 + CHANNEL_ITER];
        return;
    }
}
