/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_batch.c - see store_sql.h: rows of one table that go in together.
 *
 * A statement with several rows costs SQLite two thirds of as many statements with one. A batch keeps rows with copies
 * of their texts until it is full, or until somebody commits or reads.
 */
#include <string.h>

#include "store_sql.h"

static enum status flush(struct store *store, struct batch *batch, const struct batch_kind *kind,
                         struct diag *diag)
{
    enum status status = STATUS_OK;
    int rows = batch->rows;
    batch->rows = 0;
    batch->used = 0;
    if (rows == BATCH_ROWS) {
        store->rows += rows - 1; /* the statement counts as one */
        return sql_insert(store, kind->many, batch->values, NULL, diag);
    }
    for (int i = 0; i < rows && !status; i++)
        status = sql_insert(store, kind->one, &batch->values[i * kind->columns], NULL, diag);
    return status;
}

/* Room for the row's texts; false: they are too long for any batch. */
static bool has_room(const struct batch *batch, const struct batch_kind *kind,
                     const struct value *row)
{
    size_t bytes = 0;
    for (int i = 0; i < kind->columns; i++)
        bytes += row[i].type == VALUE_TEXT ? strlen(row[i].text) + 1 : 0;
    return bytes <= sizeof batch->text - batch->used;
}

static void keep(struct batch *batch, const struct batch_kind *kind, const struct value *row)
{
    for (int i = 0; i < kind->columns; i++) {
        struct value *value = &batch->values[batch->rows * kind->columns + i];
        *value = row[i];
        if (value->type != VALUE_TEXT)
            continue;
        size_t bytes = strlen(row[i].text) + 1;
        memcpy(batch->text + batch->used, row[i].text, bytes);
        value->text = batch->text + batch->used;
        batch->used += bytes;
    }
    batch->rows++;
}

enum status sql_insert_later(struct store *store, enum batch_table table, const struct value *row,
                             struct diag *diag)
{
    struct batch *batch = &store->batches[table];
    const struct batch_kind *kind = &batch_kinds[table];
    enum status status = STATUS_OK;
    if (!has_room(batch, kind, row))
        status = flush(store, batch, kind, diag);
    if (status || !has_room(batch, kind, row))
        return status ? status : sql_insert(store, kind->one, row, NULL, diag);
    keep(batch, kind, row);
    return batch->rows < BATCH_ROWS ? STATUS_OK : flush(store, batch, kind, diag);
}

enum status sql_flush_batches(struct store *store, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int table = 0; table < BATCH_TABLES && !status; table++)
        status = flush(store, &store->batches[table], &batch_kinds[table], diag);
    return status ? status : sql_flush_steps(store, diag);
}

const struct batch_kind batch_kinds[BATCH_TABLES] = {
    [BATCH_SPANS] = {STATEMENT_ADD_SPAN, STATEMENT_ADD_SPANS, 9},
    [BATCH_EDGES] = {STATEMENT_ADD_EDGE, STATEMENT_ADD_EDGES, 4},
};
