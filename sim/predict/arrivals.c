/* SPDX-License-Identifier: Apache-2.0 */
/* arrivals.c - see arrivals.h. */
#include "arrivals.h"

#include <assert.h>

bool arrivals_open(struct arrivals *arrivals, const int *rank_of, int stages, int microbatches,
                   struct arena *arena)
{
    size_t count = (size_t)stages * (size_t)microbatches;
    *arrivals = (struct arrivals){.cells = ARENA_ARRAY(arena, count + 1, struct arrival),
                                  .stages = stages,
                                  .microbatches = microbatches,
                                  .rank_of = rank_of};
    for (size_t i = 0; arrivals->cells && i < count; i++)
        arrivals->cells[i] = (struct arrival){-1, -1, -1, -1};
    return arrivals->cells != NULL;
}

static struct arrival *arrivals_find(const struct arrivals *arrivals, int stage, int microbatch)
{
    bool known = arrivals->cells && stage >= 0 && stage < arrivals->stages && microbatch >= 0 &&
                 microbatch < arrivals->microbatches;
    return known ? &arrivals
                        ->cells[(size_t)stage * (size_t)arrivals->microbatches + (size_t)microbatch]
                 : NULL;
}

void arrivals_note(struct arrivals *arrivals, enum action_kind kind, int stage, int microbatch,
                   int64_t end_ns)
{
    struct arrival *arrival = arrivals_find(arrivals, stage, microbatch);
    if (!arrival)
        return;
    if (kind == ACTION_F)
        arrival->forward_ns = end_ns;
    else if (kind == ACTION_B || kind == ACTION_I)
        arrival->backward_ns = end_ns;
    else if (kind == ACTION_RECV_F)
        arrival->input_ns = end_ns;
    else if (kind == ACTION_RECV_B)
        arrival->gradient_ns = end_ns;
}

static void arrivals_add_message(const struct arrivals *arrivals, int from_stage, int to_stage,
                                 const struct chart_message *times, struct chart *chart)
{
    int from = arrivals->rank_of[from_stage], to = arrivals->rank_of[to_stage];
    bool known = times->start_ns >= 0 && times->end_ns >= times->start_ns;
    if (known && from >= 0 && to >= 0 && from != to)
        chart->messages[chart->message_count++] =
            (struct chart_message){from, to, times->start_ns, times->end_ns};
}

/* Activations come from the stage before, gradients from the one behind. */
bool arrivals_messages(const struct arrivals *arrivals, int64_t start_ns, struct arena *arena,
                       struct chart *chart)
{
    size_t count = (size_t)arrivals->stages * (size_t)arrivals->microbatches;
    chart->messages = ARENA_ARRAY(arena, 2 * count + 1, struct chart_message);
    for (int s = 0; chart->messages && s < arrivals->stages; s++)
        for (int m = 0; m < arrivals->microbatches; m++) {
            const struct arrival *here = arrivals_find(arrivals, s, m),
                                 *before = arrivals_find(arrivals, s - 1, m),
                                 *behind = arrivals_find(arrivals, s + 1, m);
            if (before)
                arrivals_add_message(
                    arrivals, s - 1, s,
                    &(struct chart_message){.start_ns = before->forward_ns - start_ns,
                                            .end_ns = here->input_ns - start_ns},
                    chart);
            if (behind)
                arrivals_add_message(
                    arrivals, s + 1, s,
                    &(struct chart_message){.start_ns = behind->backward_ns - start_ns,
                                            .end_ns = here->gradient_ns - start_ns},
                    chart);
        }
    return chart->messages != NULL;
}

int arrivals_chunk(const int *rank_of, int stage)
{
    int chunk = 0;
    for (int s = 0; s < stage; s++)
        chunk += rank_of[s] == rank_of[stage];
    return chunk;
}

const struct listed_action *arrivals_second(const struct plan *lowered, uint32_t listed)
{
    assert(listed >= 1 && listed <= lowered->listed_count);
    const struct listed_action *first = &lowered->listed[listed - 1], *second = first + 1;
    bool backward =
        listed < lowered->listed_count && (second->kind == ACTION_B || second->kind == ACTION_I);
    return first->kind == ACTION_F && backward && second->row == first->row &&
                   second->column == first->column
               ? second
               : NULL;
}

bool arrivals_kind(enum action_kind kind, enum chart_kind *out)
{
    static const struct {
        enum action_kind kind;
        enum chart_kind shown;
    } passes[] = {
        {ACTION_F, CHART_F}, {ACTION_B, CHART_B}, {ACTION_I, CHART_I}, {ACTION_W, CHART_W}};
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
        if (passes[i].kind == kind) {
            *out = passes[i].shown;
            return true;
        }
    return false;
}
