/* SPDX-License-Identifier: Apache-2.0 */
/* frontier_room.c - see frontier_room.h. */
#include "frontier_room.h"

/* Of a microbatch, between its passes. */
static int64_t kept_bytes(const struct plan *plan, const struct stage_cost *stage)
{
    return stage
        ->of[plan->programs.stages.checkpoint == CHECKPOINT_NEVER ? COST_ACTIVATION : COST_INPUT];
}

/* One stage a rank, or two in V shape. */
static int stage_of(const struct generate_spec *spec, int rank, int chunk)
{
    return chunk == 0 ? rank : spec->ranks * spec->chunks - 1 - rank;
}

static struct frontier_room room_of(const struct plan *plan, const struct stage_cost *stages,
                                    int rank, int64_t bytes)
{
    const struct generate_spec *spec = &plan->programs.generate;
    struct frontier_room room = {spec->microbatches * spec->chunks, 1};
    for (int chunk = 0; chunk < spec->chunks; chunk++) {
        const struct stage_cost *stage = &stages[stage_of(spec, rank, chunk)];
        int64_t kept = kept_bytes(plan, stage);
        bytes -= stage->of[COST_WEIGHTS] + stage->of[COST_STATE];
        room.activation_bytes = kept > room.activation_bytes ? kept : room.activation_bytes;
    }
    if (bytes / room.activation_bytes < room.activations)
        room.activations = (int)(bytes / room.activation_bytes);
    return room;
}

enum status frontier_find_room(const struct plan *plan, int64_t bytes, struct arena *arena,
                               struct frontier_room *out, struct diag *diag)
{
    const struct generate_spec *spec = &plan->programs.generate;
    struct stage_cost *stages;
    enum status status = costs_resolve(plan, spec->ranks * spec->chunks, arena, &stages, diag);
    for (int rank = 0; status == STATUS_OK && rank < spec->ranks; rank++) {
        struct frontier_room room = room_of(plan, stages, rank, bytes);
        if (rank == 0 || room.activations < out->activations)
            *out = room;
    }
    return status;
}
