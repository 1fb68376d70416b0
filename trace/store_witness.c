/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_witness.c - see store.h: the tables of witnesses.
 *
 * Other programs may have changed a store: indices are checked here; the machine decides whether the moves
 * are a run of the plan.
 */
#include "store.h"

#include <limits.h>

#include "store_sql.h"

/* ---- writing --------------------------------------------------------------------------------- */

static enum status add_move(struct store *store, int64_t run, size_t seq,
                            const struct trace_move *move, struct diag *diag)
{
    const struct value values[] = {value_int(run), value_int((int64_t)seq), value_int(move->agent),
                                   value_int(move->choice)};
    return sql_insert(store, STATEMENT_ADD_MOVE, values, NULL, diag);
}

static enum status add_blocked(struct store *store, int64_t run, size_t seq,
                               const struct trace_blocked *blocked, struct diag *diag)
{
    const struct value values[] = {
        value_int(run),
        value_int((int64_t)seq),
        value_int(blocked->rank),
        value_string(blocked->agent),
        value_string(blocked->waits_for),
        value_iteration(blocked->on), /* NULL for -1 */
        value_int(blocked->in_cycle),
    };
    return sql_insert(store, STATEMENT_ADD_BLOCKED, values, NULL, diag);
}

enum status store_add_witness(struct store *store, int64_t run, const struct trace_witness *witness,
                              struct diag *diag)
{
    const struct value values[] = {
        value_int(run),
        value_string(witness->property),
        value_iteration(witness->iterations),
        value_int(witness->ranks),
        value_int(witness->max_depth),
    };
    enum status status = sql_insert(store, STATEMENT_ADD_WITNESS, values, NULL, diag);
    for (size_t i = 0; i < witness->move_count && status == STATUS_OK; i++)
        status = add_move(store, run, i, &witness->moves[i], diag);
    for (size_t i = 0; i < witness->blocked_count && status == STATUS_OK; i++)
        status = add_blocked(store, run, i, &witness->blocked[i], diag);
    return status == STATUS_OK ? store_flush(store, diag) : status;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct load {
    struct store *store;
    struct arena *arena;
    int64_t run;
    struct trace_witness *out;
    size_t move_cap, blocked_cap;
};

static enum status no_witness(const struct load *load, struct diag *diag)
{
    return diag_error(diag, STATUS_INPUT,
                      "run %lld in trace store %s is no witness: 'swsim verify --witness=FILE.db' "
                      "makes one, 'swsim runs' lists them",
                      (long long)load->run, load->store->path);
}

static enum status find_latest(struct load *load, struct diag *diag)
{
    struct query query = sql_query(load->store, STATEMENT_LATEST_WITNESS, NULL);
    if (sql_next(&query))
        load->run = sql_iteration(&query, 0);
    enum status status = sql_end(&query, STATUS_OK, diag);
    if (status == STATUS_OK && load->run < 0)
        return diag_error(diag, STATUS_INPUT, "trace store %s holds no witness", load->store->path);
    return status;
}

static bool is_small(int64_t number)
{
    return number >= 0 && number <= INT_MAX;
}

static enum status load_options(struct load *load, struct diag *diag)
{
    const struct value values[] = {value_int(load->run)};
    struct query query = sql_query(load->store, STATEMENT_WITNESS, values);
    enum status status = STATUS_OK;
    bool found = sql_next(&query);
    if (found) {
        load->out->property = arena_strdup(load->arena, sql_string(&query, 0));
        load->out->iterations = sql_iteration(&query, 1);
        load->out->ranks = (int)sql_int(&query, 2);
        load->out->max_depth = (int)sql_int(&query, 3);
        if (!load->out->property)
            status = diag_no_memory(diag);
        else if (!is_small(sql_int(&query, 2)) || !is_small(sql_int(&query, 3)) ||
                 load->out->iterations > INT32_MAX)
            status = sql_damage(load->store, diag, "impossible options of witness",
                                sql_string(&query, 0));
    }
    status = sql_end(&query, status, diag);
    return status == STATUS_OK && !found ? no_witness(load, diag) : status;
}

/* Moves and blocked agents are numbered from 0 without gaps. */
static bool is_next(const struct query *query, size_t count)
{
    return sql_int(query, 0) == (int64_t)count;
}

static enum status load_moves(struct load *load, struct diag *diag)
{
    struct trace_witness *out = load->out;
    const struct value values[] = {value_int(load->run)};
    struct query query = sql_query(load->store, STATEMENT_MOVES, values);
    enum status status = STATUS_OK;
    while (status == STATUS_OK && sql_next(&query)) {
        void *moves = out->moves;
        if (!is_next(&query, out->move_count) || !is_small(sql_int(&query, 1)) ||
            !is_small(sql_int(&query, 2)))
            status = sql_damage(load->store, diag, "impossible move", sql_string(&query, 0));
        else if (!arena_grow(load->arena, &moves, out->move_count, &load->move_cap,
                             sizeof *out->moves))
            status = diag_no_memory(diag);
        else {
            out->moves = moves;
            out->moves[out->move_count++] =
                (struct trace_move){(int)sql_int(&query, 1), (int)sql_int(&query, 2)};
        }
    }
    return sql_end(&query, status, diag);
}

static enum status load_blocked(struct load *load, struct diag *diag)
{
    struct trace_witness *out = load->out;
    const struct value values[] = {value_int(load->run)};
    struct query query = sql_query(load->store, STATEMENT_BLOCKED, values);
    enum status status = STATUS_OK;
    while (status == STATUS_OK && sql_next(&query)) {
        void *all = out->blocked;
        const struct trace_blocked row = {
            .rank = (int)sql_quantity(&query, 1, QUANTITY_ANY_RANK, &status, diag),
            .agent = arena_strdup(load->arena, sql_string(&query, 2)),
            .waits_for = arena_strdup(load->arena, sql_string(&query, 3)),
            .on = is_small(sql_iteration(&query, 4)) ? (int)sql_int(&query, 4) : -1,
            .in_cycle = sql_int(&query, 5) != 0,
        };
        if (status != STATUS_OK)
            break;
        if (!is_next(&query, out->blocked_count))
            status = sql_damage(load->store, diag, "impossible blocked agent", row.agent);
        else if (!row.agent || !row.waits_for ||
                 !arena_grow(load->arena, &all, out->blocked_count, &load->blocked_cap,
                             sizeof *out->blocked))
            status = diag_no_memory(diag);
        else {
            out->blocked = all;
            out->blocked[out->blocked_count++] = row;
        }
    }
    for (size_t i = 0; status == STATUS_OK && i < out->blocked_count; i++)
        if (out->blocked[i].on >= (int)out->blocked_count)
            status = sql_damage(load->store, diag, "impossible cause of blocked agent",
                                out->blocked[i].agent);
    return sql_end(&query, status, diag);
}

enum status store_load_witness(struct store *store, int64_t run, struct arena *arena,
                               struct trace_witness *out, int64_t *out_run,
                               struct run_info *out_info, struct diag *diag)
{
    struct trace_witness witness = {0};
    struct trace trace;
    struct load load = {.store = store, .arena = arena, .run = run, .out = &witness};
    if (store->version < 2)
        return diag_error(diag, STATUS_INPUT,
                          "trace store %s holds no witness: it was made by an older swsim",
                          store->path);
    enum status status = run < 0 ? find_latest(&load, diag) : STATUS_OK;
    if (status == STATUS_OK)
        status = store_load_info(store, load.run, arena, &trace, diag);
    if (status == STATUS_OK && trace.info.kind != RUN_WITNESS)
        status = no_witness(&load, diag);
    if (status == STATUS_OK)
        status = load_options(&load, diag);
    if (status == STATUS_OK)
        status = load_moves(&load, diag);
    if (status == STATUS_OK)
        status = load_blocked(&load, diag);
    if (status != STATUS_OK)
        return status;
    *out = witness;
    *out_run = load.run;
    *out_info = trace.info;
    return STATUS_OK;
}
