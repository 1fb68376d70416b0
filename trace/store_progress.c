/* SPDX-License-Identifier: Apache-2.0 */
/* store_progress.c - see store_progress.h. */
#include "store_progress.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/sort.h"

#include "store_sql.h"

/* ---- finding a run --------------------------------------------------------------------------- */

static enum status store_progress_add_agent(const struct query *query, struct arena *arena,
                                            struct progress_run *run, size_t *cap,
                                            struct diag *diag)
{
    enum status status = STATUS_OK;
    struct progress_agent agent = {
        .id = sql_int(query, 0),
        .rank = (int)sql_quantity(query, 1, QUANTITY_RANK, &status, diag),
        .name = arena_strdup(arena, sql_string(query, 3)),
    };
    const char *kind = sql_string(query, 2);
    if (status != STATUS_OK)
        return status;
    agent.kind = strcmp(kind, trace_agent_kind_text(TRACE_STREAM)) == 0   ? TRACE_STREAM
                 : strcmp(kind, trace_agent_kind_text(TRACE_DRIVER)) == 0 ? TRACE_DRIVER
                                                                          : TRACE_THREAD;
    if (!agent.name || !ARENA_GROW(arena, run->agents, run->agent_count, *cap))
        return diag_no_memory(diag);
    run->agents[run->agent_count++] = agent;
    return STATUS_OK;
}

static enum status store_progress_load_agents(struct store *store, struct arena *arena,
                                              struct progress_run *run, struct diag *diag)
{
    size_t cap = 0;
    enum status status = STATUS_OK;
    const struct store_sql_value values[] = {value_int(run->run)};
    struct query query = sql_query(store, STATEMENT_AGENTS, values);
    while (status == STATUS_OK && sql_next(&query))
        status = store_progress_add_agent(&query, arena, run, &cap, diag);
    return sql_end(&query, status, diag);
}

/* Ids rise in the order in which a run has its agents: by kind and position. */
static int store_progress_by_rank(const void *left, const void *right)
{
    const struct progress_agent *a = left, *b = right;
    return compare_then(compare_int(a->rank, b->rank), compare_i64(a->id, b->id));
}

/* The streams; without any the threads. Before that, all ranks. */
static enum status choose_agents(struct progress_run *run, struct arena *arena, struct diag *diag)
{
    size_t streams = 0, kept = 0;
    run->ranks = ARENA_ARRAY(arena, run->agent_count + 1, int);
    if (!run->ranks)
        return diag_no_memory(diag);
    if (run->agent_count > 0)
        qsort(run->agents, run->agent_count, sizeof *run->agents, store_progress_by_rank);
    for (size_t i = 0; i < run->agent_count; i++) {
        if (i == 0 || run->agents[i].rank != run->agents[i - 1].rank)
            run->ranks[run->rank_count++] = run->agents[i].rank;
        streams += run->agents[i].kind == TRACE_STREAM;
    }
    for (size_t i = 0; i < run->agent_count; i++)
        if (streams == 0 || run->agents[i].kind == TRACE_STREAM)
            run->agents[kept++] = run->agents[i];
    run->agent_count = kept;
    return STATUS_OK;
}

static enum status find_start(struct store *store, struct progress_run *run, struct diag *diag)
{
    const struct store_sql_value values[] = {value_int(run->run)};
    struct query query = sql_query(store, STATEMENT_STATS, values);
    run->start_unix_ns = -1;
    while (sql_next(&query))
        if (strcmp(sql_string(&query, 0), RUN_STAT_START) == 0)
            run->start_unix_ns = sql_int(&query, 1);
    return sql_end(&query, STATUS_OK, diag);
}

enum status progress_find(struct store *store, int64_t run, struct arena *arena,
                          struct progress_run *out, struct diag *diag)
{
    struct trace described;
    struct progress_run found = {.run = run};
    enum status status = STATUS_OK;
    if (run == STORE_LATEST)
        status = store_latest_run(store, &found.run, diag);
    if (status == STATUS_OK)
        status = store_load_info(store, found.run, arena, &described, diag);
    if (status != STATUS_OK)
        return status;
    found.info = described.info;
    status = store_progress_load_agents(store, arena, &found, diag);
    if (status == STATUS_OK)
        status = choose_agents(&found, arena, diag);
    if (status == STATUS_OK)
        status = find_start(store, &found, diag);
    if (status == STATUS_OK)
        *out = found;
    return status;
}

/* ---- reading --------------------------------------------------------------------------------- */

static enum status store_progress_read_state(struct store *store, int64_t run,
                                             struct run_progress *out, struct diag *diag)
{
    const struct store_sql_value values[] = {value_int(run)};
    struct query query = sql_query(store, STATEMENT_RUN_STATE, values);
    enum status status = STATUS_OK;
    bool found = sql_next(&query);
    if (found) {
        int64_t finished = sql_int(&query, 0);
        if (finished < RUN_OPEN || finished > RUN_INTERRUPTED)
            status = sql_damage(store, diag, "unknown state of run", sql_string(&query, 0));
        out->finished = (enum run_finished)finished;
        out->duration_ns = sql_quantity(&query, 1, QUANTITY_TIME, &status, diag);
        out->wanted = sql_quantity(&query, 2, QUANTITY_ITERATION, &status, diag);
    }
    status = sql_end(&query, status, diag);
    if (status == STATUS_OK && !found)
        return diag_error(diag, STATUS_INPUT, "trace store %s has no run %lld any more",
                          store->path, (long long)run);
    return status;
}

/* The number of iterations of a rank that are over. */
static enum status count_iterations(struct store *store, int64_t run, int rank, int64_t *out,
                                    struct diag *diag)
{
    enum status status = STATUS_OK;
    const struct store_sql_value values[] = {value_int(run), value_int(rank)};
    struct query query = sql_query(store, STATEMENT_ITERATIONS_DONE, values);
    int64_t first = -1, last = -2;
    if (sql_next(&query)) {
        first = sql_quantity(&query, 0, QUANTITY_ITERATION, &status, diag);
        last = sql_quantity(&query, 1, QUANTITY_ITERATION, &status, diag);
    }
    status = sql_end(&query, status, diag);
    if (status == STATUS_OK)
        *out = first >= 0 && last >= first ? last - first + 1 : 0;
    return status;
}

/* The mean time between the last `most` ends of iterations; iterations can end in another order than they began. */
static enum status mean_iteration(struct store *store, int64_t run, int rank, int64_t most,
                                  struct run_progress *out, struct diag *diag)
{
    enum status status = STATUS_OK;
    const struct store_sql_value values[] = {value_int(run), value_int(rank), value_int(most)};
    struct query query = sql_query(store, STATEMENT_LAST_ITERATIONS, values);
    int64_t count = 0, least = INT64_MAX, greatest = INT64_MIN;
    for (; status == STATUS_OK && sql_next(&query); count++) {
        int64_t at_ns = sql_quantity(&query, 0, QUANTITY_TIME, &status, diag);
        least = at_ns < least ? at_ns : least;
        greatest = at_ns > greatest ? at_ns : greatest;
    }
    status = sql_end(&query, status, diag);
    if (status == STATUS_OK && count > 1) {
        out->averaged = count;
        out->iteration_ns = (greatest - least) / (count - 1);
    }
    return status;
}

static enum status read_iterations(struct store *store, const struct progress_run *run,
                                   int64_t most, struct run_progress *out, struct diag *diag)
{
    enum status status = STATUS_OK;
    out->done = run->rank_count > 0 ? INT64_MAX : 0;
    for (size_t i = 0; i < run->rank_count && status == STATUS_OK; i++) {
        int64_t done = 0;
        status = count_iterations(store, run->run, run->ranks[i], &done, diag);
        out->done = done < out->done ? done : out->done;
    }
    if (status == STATUS_OK && run->rank_count > 0)
        status = mean_iteration(store, run->run, run->ranks[0], most, out, diag);
    return status;
}

/* The end of the span that began last. */
static enum status read_newest(struct store *store, int64_t agent, int64_t *newest_ns,
                               struct diag *diag)
{
    enum status status = STATUS_OK;
    const struct store_sql_value values[] = {value_int(agent)};
    struct query query = sql_query(store, STATEMENT_NEWEST_END, values);
    int64_t end_ns = 0;
    if (sql_next(&query))
        end_ns = sql_quantity(&query, 0, QUANTITY_TIME, &status, diag);
    *newest_ns = end_ns > *newest_ns ? end_ns : *newest_ns;
    return sql_end(&query, status, diag);
}

static enum status store_progress_add_task(const struct query *query, struct arena *arena,
                                           struct progress_work *work, struct diag *diag)
{
    enum status status = STATUS_OK;
    int64_t busy_ns = sql_quantity(query, 1, QUANTITY_TIME, &status, diag);
    work->busy_ns += busy_ns;
    if (status != STATUS_OK || work->task_count == PROGRESS_TASKS)
        return status;
    struct progress_task *task = &work->tasks[work->task_count++];
    *task = (struct progress_task){arena_strdup(arena, sql_string(query, 0)), busy_ns};
    return task->name ? STATUS_OK : diag_no_memory(diag);
}

static enum status read_work(struct store *store, const struct progress_agent *agent,
                             struct run_progress *out, struct progress_work *work,
                             struct arena *arena, struct diag *diag)
{
    enum status status = STATUS_OK;
    enum span_kind kind = agent->kind == TRACE_STREAM ? SPAN_DEVICE : SPAN_HOST;
    const struct store_sql_value values[] = {value_int(agent->id), value_int(out->from_ns),
                                             value_int(out->to_ns),
                                             value_string(span_kind_text(kind))};
    struct query query = sql_query(store, STATEMENT_BUSY, values);
    while (status == STATUS_OK && sql_next(&query))
        status = store_progress_add_task(&query, arena, work, diag);
    return sql_end(&query, status, diag);
}

/* The state first: what a run that is over has written is there. */
enum status progress_read(struct store *store, const struct progress_run *run, int64_t window_ns,
                          struct arena *arena, struct run_progress *out, struct diag *diag)
{
    bool all = window_ns == PROGRESS_ALL;
    struct run_progress now = {.work =
                                   ARENA_ARRAY(arena, run->agent_count + 1, struct progress_work)};
    if (!now.work)
        return diag_no_memory(diag);
    enum status status = store_progress_read_state(store, run->run, &now, diag);
    if (status == STATUS_OK)
        status = read_iterations(store, run, all ? -1 : PROGRESS_ITERATIONS, &now, diag);
    for (size_t i = 0; i < run->agent_count && status == STATUS_OK; i++)
        status = read_newest(store, run->agents[i].id, &now.newest_ns, diag);
    now.to_ns = now.newest_ns;
    now.from_ns = all || now.to_ns < window_ns ? 0 : now.to_ns - window_ns;
    for (size_t i = 0; i < run->agent_count && status == STATUS_OK; i++)
        status = read_work(store, &run->agents[i], &now, &now.work[i], arena, diag);
    if (status == STATUS_OK)
        *out = now;
    return status;
}
