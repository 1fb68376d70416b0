/* SPDX-License-Identifier: Apache-2.0 */
/* store_ledger.c - see store.h: the lines of a run's ledger. */
#include "store.h"

#include "ledger.h"
#include "schema.h"
#include "store_sql.h"

enum status store_add_idle(struct store *store, int64_t run, int64_t agent,
                           const struct trace_idle *line, struct diag *diag)
{
    const struct value values[] = {
        value_int(run),
        value_int(agent),
        value_string(line->cause),
        value_string(line->word),
        value_text(line->waits_for),
        value_string(line->words),
        value_int(line->idle_ns),
    };
    return sql_insert(store, STATEMENT_ADD_IDLE, values, NULL, diag);
}

bool store_has_ledgers(const struct store *store)
{
    return store->version >= SCHEMA_WITH_LEDGER;
}

/* The trace's number of an agent of the store; -1: it is none of this run. */
static int find_agent(const struct trace *trace, const int64_t *agent_ids, int64_t id)
{
    size_t low = 0, high = trace->agent_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (agent_ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < trace->agent_count && agent_ids[low] == id ? (int)low : -1;
}

static enum status load_line(const struct query *query, const int64_t *agent_ids,
                             struct trace *trace, struct diag *diag)
{
    enum status status = STATUS_OK;
    const struct trace_idle line = {
        .agent = find_agent(trace, agent_ids, sql_int(query, 0)),
        .cause = sql_string(query, 1),
        .word = sql_string(query, 2),
        .waits_for = sql_text(query, 3),
        .words = sql_string(query, 4),
        .idle_ns = sql_quantity(query, 5, QUANTITY_TIME, &status, diag),
    };
    if (status == STATUS_OK && (line.agent < 0 || line.idle_ns < 0))
        return sql_damage(query->store, diag, "impossible line of a ledger", line.words);
    if (status == STATUS_OK && !trace_add_idle(trace, &line))
        return diag_no_memory(diag);
    return status;
}

enum status sql_load_ledger(struct store *store, const int64_t *agent_ids, struct trace *trace,
                            struct diag *diag)
{
    if (!store_has_ledgers(store))
        return STATUS_OK;
    const struct value values[] = {value_int(trace->run)};
    struct query query = sql_query(store, STATEMENT_IDLES, values);
    enum status status = STATUS_OK;
    while (status == STATUS_OK && sql_next(&query))
        status = load_line(&query, agent_ids, trace, diag);
    return sql_end(&query, status, diag);
}
