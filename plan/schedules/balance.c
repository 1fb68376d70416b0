/* SPDX-License-Identifier: Apache-2.0 */
/*
 * balance.c - see balance.h.
 *
 * By bisection over the time of the slowest stage: layers are put into one stage after the other while it takes no longer
 * and its rank has room.
 */
#include "balance.h"

#include "comms.h"
#include "generate.h"

/* ---- what layers cost ------------------------------------------------------------------------ */

static int64_t item(const struct cost_list *list, size_t index)
{
    return list->count == 0 ? 0 : list->items[list->count == 1 ? 0 : index];
}

/* The time of a microbatch in a layer, in embedding or head. */
static int64_t item_ns(const struct cost_table *table, size_t index)
{
    int64_t backward = table->of[COST_B].count
                           ? item(&table->of[COST_B], index)
                           : item(&table->of[COST_I], index) + item(&table->of[COST_W], index);
    int64_t exchange =
        item(&table->of[COST_DISPATCH], index) + item(&table->of[COST_COMBINE], index);
    return item(&table->of[COST_F], index) + backward + 2 * exchange;
}

/* The ranks' room, and what stages hold. */
struct room {
    const struct machine_spec *machine; /* NULL: there is no bound */
    bool again;                         /* only inputs are kept, and one layer computed once more */
    int *rank_of;                       /* per stage */
    int *in_flight; /* per stage: microbatches that hold activations at a time */
    int64_t *held;  /* per rank, while a division is made */
};

static int64_t item_bytes(const struct room *room, const struct cost_table *table, size_t index,
                          int stage)
{
    int64_t kept = item(&table->of[room->again ? COST_INPUT : COST_ACTIVATION], index);
    return item(&table->of[COST_WEIGHTS], index) + item(&table->of[COST_STATE], index) +
           room->in_flight[stage] * kept;
}

/* ---- what lists have in flight --------------------------------------------------------------- */

/* A microbatch is in flight from F to the end of its backward pass. */
static void count_list(struct room *room, const struct rank_program *list, int rank)
{
    const struct action *parts;
    for (int stage = 0; room->rank_of[stage] >= 0; stage++) {
        int now = 0;
        for (size_t i = 0; room->rank_of[stage] == rank && i < list->count; i++)
            for (size_t k = 0, count = comms_parts(&list->actions[i], &parts); k < count; k++) {
                if (parts[k].stage != stage)
                    continue;
                now += parts[k].kind == ACTION_F;
                now -= parts[k].kind == ACTION_B || parts[k].kind == ACTION_W;
                if (now > room->in_flight[stage])
                    room->in_flight[stage] = now;
            }
    }
}

/* Lists that are found follow from the costs: there `memory` says how many are in flight. */
static enum status count_in_flight(const struct plan *plan, int stages, struct arena *arena,
                                   struct room *room, struct diag *diag)
{
    const struct generate_spec *spec = &plan->programs.generate;
    struct rank_program *ranks = plan->programs.ranks;
    struct stage_map map;
    int rank_count = plan->ranks, chunks = spec->given && stages > spec->ranks ? 2 : 1;
    enum status status = STATUS_OK;
    if (spec->given && generate_is_found(spec->schedule)) {
        for (int stage = 0; stage < stages; stage++) {
            bool climbs = stage >= spec->ranks;
            room->rank_of[stage] = climbs ? stages - 1 - stage : stage;
            room->in_flight[stage] = (generate_memory(spec) + chunks - 1) / chunks;
        }
        return STATUS_OK;
    }
    if (spec->given)
        status = generate_program(spec, arena, &ranks, &rank_count, diag);
    if (status == STATUS_OK)
        status = comms_map_stages(arena, ranks, rank_count, 1, &map, diag);
    if (status != STATUS_OK || map.stages < stages)
        return status;
    for (int stage = 0; stage < stages; stage++)
        room->rank_of[stage] = map.rank_of[stage];
    for (int rank = 0; rank < rank_count; rank++)
        count_list(room, &ranks[rank], rank);
    return STATUS_OK;
}

static enum status find_room(const struct plan *plan, int stages, struct arena *arena,
                             struct room *room, struct diag *diag)
{
    size_t count = (size_t)stages + 1;
    room->machine = machine_has_memory(&plan->machine) ? &plan->machine : NULL;
    room->again = plan->programs.stages.checkpoint == CHECKPOINT_ALWAYS;
    room->rank_of = ARENA_ARRAY(arena, count, int);
    room->in_flight = ARENA_ARRAY(arena, count, int);
    room->held = ARENA_ARRAY(arena, count, int64_t);
    if (!room->rank_of || !room->in_flight || !room->held)
        return diag_no_memory(diag);
    for (int stage = 0; stage < stages; stage++)
        room->rank_of[stage] = stage;
    room->rank_of[stages] = -1;
    return room->machine ? count_in_flight(plan, stages, arena, room, diag) : STATUS_OK;
}

/* ---- divisions ------------------------------------------------------------------------------- */

static bool has_room(const struct room *room, int stage, int64_t more)
{
    int rank = room->rank_of[stage];
    int64_t bytes = room->machine ? machine_memory(room->machine, rank) : 0;
    return bytes == 0 || room->held[rank] + more <= bytes;
}

static int64_t end_ns(const struct layers *layers, int stages, int stage)
{
    return (stage == 0 ? item_ns(&layers->embedding, 0) : 0) +
           (stage == stages - 1 ? item_ns(&layers->head, 0) : 0);
}

/* The bytes that a rank holds before layers are put into its stages. */
static void start_ranks(struct room *room, const struct layers *layers, int stages)
{
    for (int stage = 0; stage < stages; stage++)
        room->held[room->rank_of[stage]] = 0;
    room->held[room->rank_of[0]] += item_bytes(room, &layers->embedding, 0, 0);
    room->held[room->rank_of[stages - 1]] += item_bytes(room, &layers->head, 0, stages - 1);
    for (int stage = 0; room->again && stage < stages; stage++)
        room->held[room->rank_of[stage]] += item(&layers->each.of[COST_ACTIVATION], 0);
}

/* Layers behind one another on each stage while it takes no longer than `most`; each stage gets one while there
   are enough. False: layers are left over, or a rank has no room. */
static bool fill_stages(const struct layers *layers, int stages, int64_t most, struct room *room,
                        int *out)
{
    int next = 0;
    start_ranks(room, layers, stages);
    for (int s = 0; s < stages; s++) {
        int64_t ns = end_ns(layers, stages, s);
        int last = layers->count - (stages - 1 - s); /* one for each stage behind it */
        out[s] = 0;
        while (next < layers->count) {
            int64_t more_ns = item_ns(&layers->each, (size_t)next);
            int64_t bytes = item_bytes(room, &layers->each, (size_t)next, s);
            bool must = out[s] == 0 && layers->count >= stages;
            bool may = next < last && ns + more_ns <= most && has_room(room, s, bytes);
            if (!must && !may)
                break;
            ns += more_ns;
            room->held[room->rank_of[s]] += bytes;
            out[s]++;
            next++;
        }
        if (ns > most || !has_room(room, s, 0))
            return false;
    }
    return next == layers->count;
}

/* False: no division keeps to the room. */
static bool bisect(const struct layers *layers, int stages, struct room *room, int *out)
{
    int64_t low = -1, high = item_ns(&layers->embedding, 0) + item_ns(&layers->head, 0);
    for (int i = 0; i < layers->count; i++)
        high += item_ns(&layers->each, (size_t)i);
    if (room->machine && !fill_stages(layers, stages, high, room, out))
        return false;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (fill_stages(layers, stages, middle, room, out))
            high = middle;
        else
            low = middle;
    }
    fill_stages(layers, stages, high, room, out);
    return true;
}

enum status balance_find(const struct plan *plan, const struct layers *layers, int stages, int *out,
                         struct diag *diag)
{
    struct room room = {0};
    struct arena scratch;
    arena_init(&scratch, 0);
    enum status status = find_room(plan, stages, &scratch, &room, diag);
    if (status == STATUS_OK && !bisect(layers, stages, &room, out)) {
        room.machine = NULL;
        bisect(layers, stages, &room, out);
    }
    arena_fini(&scratch);
    return status;
}
