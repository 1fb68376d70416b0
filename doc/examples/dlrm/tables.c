/* SPDX-License-Identifier: Apache-2.0 */
/* tables.c - see model.h: ids and rows. The owner of a row, requests for it, and the rows in the cache. */
#include "model.h"

#include <string.h>

/* ---- sharding -------------------------------------------------------------------------------- */

static int is_by_row(const struct model *model, int table)
{
    return model->sharding == SHARD_BY_ROW ||
           (model->sharding == SHARD_MIXED && table == TABLES - 1);
}

static int owner(const struct model *model, int table, int64_t row)
{
    return (int)((is_by_row(model, table) ? row : table) % model->ranks);
}

/* ---- ids to their owners --------------------------------------------------------------------- */

/* The ids of this rank's bags that belong to rank `to`; their number. */
static size_t ask_rank(const struct work *work, int to, int32_t *lengths, int64_t *ids)
{
    const struct batch *batch = work->batch;
    const int64_t *id = batch->ids;
    size_t count = 0;
    for (int bag = 0; bag < TABLES * batch->count; bag++) {
        lengths[bag] = 0;
        for (int i = 0; i < batch->lengths[bag]; i++, id++)
            if (owner(work->model, bag / batch->count, *id) == to) {
                ids[count++] = *id;
                lengths[bag]++;
            }
    }
    return count;
}

void model_ask(struct work *work)
{
    struct on_host *host = work->host;
    const struct batch *batch = work->batch;
    size_t asked = 0;
    memcpy(host->dense, batch->dense, (size_t)batch->count * sizeof batch->dense[0]);
    memcpy(host->labels, batch->labels, (size_t)batch->count * sizeof batch->labels[0]);
    for (int to = 0; to < work->model->ranks; to++) {
        work->ask_counts[to] = ask_rank(work, to, &host->ask_lengths[to * TABLES * batch->count],
                                        &host->ask_ids[asked]);
        asked += work->ask_counts[to];
    }
}

int model_load(struct work *work, void *stream)
{
    const struct on_host *host = work->host;
    struct on_device *device = work->device;
    return device_write(stream, device->dense, host->dense, sizeof host->dense) ||
           device_write(stream, device->labels, host->labels, sizeof host->labels) ||
           device_write(stream, device->ask_lengths, host->ask_lengths, sizeof host->ask_lengths) ||
           device_write(stream, device->ask_ids, host->ask_ids, sizeof host->ask_ids);
}

int model_fetch_lengths(struct work *work, void *stream)
{
    return device_read(stream, work->host->asked_lengths, work->device->asked_lengths,
                       sizeof work->host->asked_lengths);
}

void model_count_asked(struct work *work)
{
    struct on_host *host = work->host;
    int bags = TABLES * work->batch->count; /* of a rank */
    work->asked = 0;
    memset(work->asked_counts, 0, sizeof work->asked_counts);
    for (int bag = 0; bag < work->model->ranks * bags; bag++) {
        host->offsets[bag] = work->asked;
        work->asked_counts[bag / bags] += (size_t)host->asked_lengths[bag];
        for (int i = 0; i < host->asked_lengths[bag]; i++)
            host->bag_of[work->asked++] = bag;
    }
    host->offsets[work->model->ranks * bags] = work->asked;
}

/* ---- the cache ------------------------------------------------------------------------------- */

int model_fetch_ids(struct work *work, void *stream)
{
    return device_read(stream, work->host->asked_ids, work->device->asked_ids,
                       sizeof work->host->asked_ids);
}

/* The slot that was not used for the longest time. There is always one that the last two iterations did not ask for. */
static int oldest_slot(const struct cache *cache, int table)
{
    int oldest = 0;
    for (int slot = 1; slot < SLOTS; slot++)
        if (cache->used_by[table][slot] < cache->used_by[table][oldest])
            oldest = slot;
    return oldest;
}

/* A row comes into the slot, and the one that is there goes back to its table. */
static struct move exchange(struct cache *cache, int table, int slot, int row)
{
    const struct move move = {table, slot, cache->row_in[table][slot], row};
    if (move.out >= 0)
        cache->slot_of[table][move.out] = -1;
    cache->row_in[table][slot] = row;
    cache->slot_of[table][row] = slot;
    return move;
}

/* Rows that are there are kept first, so that none of them has to make room for another one. */
static void keep_rows(struct cache *cache, const struct work *work, int64_t iteration)
{
    for (int i = 0; i < work->asked; i++) {
        int table = work->host->bag_of[i] / work->batch->count % TABLES;
        int slot = cache->slot_of[table][work->host->asked_ids[i]];
        if (slot >= 0)
            cache->used_by[table][slot] = iteration;
    }
}

void model_choose_slots(struct work *work, int64_t iteration)
{
    struct cache *cache = work->model->cache;
    struct on_host *host = work->host;
    work->moves = 0;
    keep_rows(cache, work, iteration);
    for (int i = 0; i < work->asked; i++) {
        int table = host->bag_of[i] / work->batch->count % TABLES, row = (int)host->asked_ids[i];
        int slot = cache->slot_of[table][row];
        if (slot < 0) {
            slot = oldest_slot(cache, table);
            host->moves[work->moves++] = exchange(cache, table, slot, row);
            cache->used_by[table][slot] = iteration;
        }
        host->slots[i] = slot;
    }
}

int model_prefetch(struct work *work, void *stream)
{
    const struct on_host *host = work->host;
    struct on_device *device = work->device;
    const struct model *model = work->model;
    const struct move_row move = {device->moves, model->rows, model->cache->tables};
    return device_write(stream, device->slots, host->slots, sizeof host->slots) ||
           device_write(stream, device->moves, host->moves,
                        (size_t)work->moves * sizeof *host->moves) ||
           device_move_row(stream, &move, work->moves);
}

/* ---- rows ------------------------------------------------------------------------------------ */

int model_look_up(struct work *work, void *stream)
{
    const struct model *model = work->model;
    const struct on_host *host = work->host;
    struct on_device *device = work->device;
    const struct look_up look_up = {.rows = model->rows,
                                    .stride = model->stride,
                                    .count = work->batch->count,
                                    .offsets = device->offsets,
                                    .slots = model->cache ? device->slots : device->asked_ids,
                                    .answers = device->answers};
    return device_write(stream, device->offsets, host->offsets, sizeof host->offsets) ||
           device_write(stream, device->bag_of, host->bag_of, sizeof host->bag_of) ||
           device_look_up(stream, &look_up, model->ranks * TABLES * work->batch->count * DIM);
}
