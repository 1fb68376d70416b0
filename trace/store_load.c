/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_load.c - see store.h: listing runs and loading one.
 *
 * Other programs may have changed a store: kinds and references are checked, and bad ones are reported as
 * damage.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/sort.h"

#include "schema.h"
#include "store.h"
#include "store_sql.h"

enum { STORE_OVERLAP = 4096 };

/* find_x(text): the kind with this text, or -1. */
#define X(name, text)                                                                              \
    if (strcmp(found, text) == 0)                                                                  \
        return kind;                                                                               \
    kind++;
#define DEFINE_FIND(function, LIST)                                                                \
    static int function(const char *found)                                                         \
    {                                                                                              \
        int kind = 0;                                                                              \
        LIST(X)                                                                                    \
        return -1;                                                                                 \
    }
DEFINE_FIND(find_run_kind, RUN_KIND_LIST)
DEFINE_FIND(find_run_driver, RUN_DRIVER_LIST)
DEFINE_FIND(find_agent_kind, TRACE_AGENT_KIND_LIST)
DEFINE_FIND(find_span_kind, SPAN_KIND_LIST)
DEFINE_FIND(find_edge_kind, EDGE_KIND_LIST)
#undef DEFINE_FIND
#undef X

/* The row of LIST_RUNS; its texts are SQLite's until the next row. */
static enum status store_load_read_run(const struct query *query, struct store_run *out,
                                       struct diag *diag)
{
    int kind = find_run_kind(sql_string(query, 1));
    int driver = find_run_driver(sql_string(query, 4));
    int64_t finished = sql_int(query, 11);
    if (kind < 0)
        return sql_damage(query->store, diag, "unknown kind of run", sql_string(query, 1));
    if (driver < 0)
        return sql_damage(query->store, diag, "unknown driver", sql_string(query, 4));
    if (finished < RUN_OPEN || finished > RUN_INTERRUPTED)
        return sql_damage(query->store, diag, "unknown state of run", sql_string(query, 11));
    enum status status = STATUS_OK;
    out->id = sql_int(query, 0);
    out->info = (struct run_info){
        .kind = (enum run_kind)kind,
        .plan_name = sql_string(query, 2),
        .plan_text = sql_lines(query, 3),
        .driver = (enum run_driver)driver,
        .device = sql_string(query, 5),
        .ranks = (int)sql_quantity(query, 6, QUANTITY_RANKS, &status, diag),
        .seed = (uint64_t)sql_int(query, 7),
        .iterations_wanted = sql_quantity(query, 8, QUANTITY_ITERATION, &status, diag),
        .created_unix_s = sql_quantity(query, 9, QUANTITY_DATE, &status, diag),
        .duration_ns = sql_quantity(query, 10, QUANTITY_TIME, &status, diag),
        .finished = (enum run_finished)finished,
        .note = sql_text(query, 12),
    };
    out->spans = sql_int(query, 13);
    out->iterations = sql_int(query, 14);
    return status;
}

enum status store_list_runs(struct store *store, void (*visit)(const struct store_run *, void *),
                            void *context, struct diag *diag)
{
    enum status status = STATUS_OK;
    const struct store_sql_value values[] = {value_text(NULL)};
    struct query query = sql_query(store, STATEMENT_LIST_RUNS, values);
    while (status == STATUS_OK && sql_next(&query)) {
        struct store_run run;
        status = store_load_read_run(&query, &run, diag);
        if (status == STATUS_OK)
            visit(&run, context);
    }
    return sql_end(&query, status, diag);
}

enum status store_latest_run(struct store *store, int64_t *out_run, struct diag *diag)
{
    int64_t run = -1;
    struct query query = sql_query(store, STATEMENT_LATEST_RUN, NULL);
    if (sql_next(&query))
        run = sql_iteration(&query, 0);
    enum status status = sql_end(&query, STATUS_OK, diag);
    if (status == STATUS_OK && run < 0)
        return diag_error(diag, STATUS_INPUT, "trace store %s holds no run", store->path);
    if (status == STATUS_OK)
        *out_run = run;
    return status;
}

/* ---- loading a run --------------------------------------------------------------------------- */

/* From an id in the store to an index in the trace. */
struct id_index {
    int64_t id;
    int index;
};

/* The state of store_load. */
struct load {
    struct store *store;
    struct trace *trace;
    bool part; /* only spans that touch this time, and iterations first .. last: */
    bool by_time;
    int64_t start_ns, end_ns;
    int64_t first, last;
    struct id_index *spans; /* one for each span of the trace, malloc'd */
    size_t span_cap;
    int64_t *agent_ids; /* in the arena */
    size_t agent_cap;
};

enum status store_load_info(struct store *store, int64_t run, struct arena *arena,
                            struct trace *out, struct diag *diag)
{
    struct store_run found = {.id = -1};
    const struct store_sql_value values[] = {value_int(run)};
    struct query query = sql_query(store, STATEMENT_LIST_RUNS, values);
    enum status status = STATUS_OK;
    trace_init(out, arena);
    if (sql_next(&query)) {
        status = store_load_read_run(&query, &found, diag);
        if (status == STATUS_OK && !trace_set_info(out, &found.info))
            status = diag_no_memory(diag);
    }
    status = sql_end(&query, status, diag);
    if (status == STATUS_OK && found.id < 0)
        return diag_error(diag, STATUS_INPUT, "trace store %s has no run %lld", store->path,
                          (long long)run);
    out->run = run;
    return status;
}

static enum status load_agent(struct load *load, const struct query *query, struct diag *diag)
{
    struct trace *trace = load->trace;
    enum status status = STATUS_OK;
    int kind = find_agent_kind(sql_string(query, 2));
    int rank = (int)sql_quantity(query, 1, QUANTITY_RANK, &status, diag);
    int position = (int)sql_quantity(query, 4, QUANTITY_POSITION, &status, diag);
    if (kind < 0)
        return sql_damage(load->store, diag, "unknown kind of agent", sql_string(query, 2));
    if (status != STATUS_OK)
        return status;
    if (!ARENA_GROW(trace->arena, load->agent_ids, trace->agent_count, load->agent_cap) ||
        trace_add_agent(trace, rank, (enum trace_agent_kind)kind, sql_string(query, 3), position) <
            0)
        return diag_no_memory(diag);
    load->agent_ids[trace->agent_count - 1] = sql_int(query, 0);
    return STATUS_OK;
}

static enum status store_load_agents(struct load *load, struct diag *diag)
{
    const struct store_sql_value values[] = {value_int(load->trace->run)};
    struct query query = sql_query(load->store, STATEMENT_AGENTS, values);
    enum status status = STATUS_OK;
    while (status == STATUS_OK && sql_next(&query))
        status = load_agent(load, &query, diag);
    return sql_end(&query, status, diag);
}

/* The lowest iteration; -1: there is none. */
static enum status first_iteration(const struct load *load, int64_t *out, struct diag *diag)
{
    const struct store_sql_value values[] = {value_int(load->trace->run)};
    struct query query = sql_query(load->store, STATEMENT_FIRST_ITERATION, values);
    int64_t first = sql_next(&query) ? sql_iteration(&query, 0) : -1;
    enum status status = sql_end(&query, STATUS_OK, diag);
    if (status == STATUS_OK)
        *out = first;
    return status;
}

/* The iterations that the caller asks for; load->part: not all. */
static enum status choose_iterations(struct load *load, int64_t from, int64_t to, struct diag *diag)
{
    int64_t first = from;
    enum status status = STATUS_OK;
    if (from == STORE_FIRST)
        status = first_iteration(load, &first, diag);
    load->part = from == STORE_FIRST ? first >= 0 && load->trace->info.kind != RUN_WITNESS
                                     : from >= 0 || to >= 0;
    load->first = first < 0 ? 0 : first;
    load->last = to < 0 ? INT64_MAX : from == STORE_FIRST ? load->first + to - 1 : to;
    return status;
}

/* The time taken by the iterations asked for: spans that do not touch it are left out. */
static enum status find_window(struct load *load, int64_t from, int64_t to, struct diag *diag)
{
    load->start_ns = INT64_MIN;
    load->end_ns = INT64_MAX;
    enum status status = choose_iterations(load, from, to, diag);
    if (status != STATUS_OK || !load->part)
        return status;
    const struct store_sql_value values[] = {value_int(load->trace->run), value_int(load->first),
                                             value_int(load->last)};
    struct query query = sql_query(load->store, STATEMENT_WINDOW, values);
    bool found = sql_next(&query) && sql_text(&query, 0);
    if (found) {
        load->start_ns = from == STORE_FIRST ? INT64_MIN : sql_int(&query, 0);
        load->end_ns = sql_int(&query, 1);
    }
    status = sql_end(&query, STATUS_OK, diag);
    if (status == STATUS_OK && !found)
        return diag_error(diag, STATUS_INPUT, "run %lld in trace store %s has no such iterations",
                          (long long)load->trace->run, load->store->path);
    return status;
}

/* Remember that the span `id` has become trace->spans[index]. */
static bool note_span(struct load *load, int64_t id, int index)
{
    if (!ARRAY_GROW(load->spans, index, load->span_cap))
        return false;
    load->spans[index] = (struct id_index){id, index};
    return true;
}

static enum status load_span(struct load *load, int agent, const struct query *query,
                             struct diag *diag)
{
    int kind = find_span_kind(sql_string(query, 1));
    if (kind < 0)
        return sql_damage(load->store, diag, "unknown kind of span", sql_string(query, 1));
    enum status status = STATUS_OK;
    const struct trace_span span = {
        .agent = agent,
        .kind = (enum span_kind)kind,
        .task = sql_text(query, 2),
        .iteration = sql_quantity(query, 3, QUANTITY_ITERATION, &status, diag),
        .start_ns = sql_quantity(query, 4, QUANTITY_TIME, &status, diag),
        .end_ns = sql_quantity(query, 5, QUANTITY_TIME, &status, diag),
        .cause = sql_text(query, 6),
    };
    if (status != STATUS_OK)
        return status;
    if (span.start_ns > span.end_ns)
        return sql_damage(load->store, diag, "span that ends before its start",
                          sql_string(query, 0));
    int index = trace_add_span(load->trace, &span);
    if (index < 0 || !note_span(load, sql_int(query, 0), index))
        return diag_no_memory(diag);
    return STATUS_OK;
}

/* Where the first span begins that reaches into the window: an index has beginnings, not ends. */
static enum status store_load_reach(const struct load *load, int64_t agent, int64_t *out_ns,
                                    struct diag *diag)
{
    *out_ns = load->start_ns;
    if (load->start_ns == INT64_MIN)
        return STATUS_OK;
    const struct store_sql_value values[] = {value_int(agent), value_int(load->start_ns),
                                             value_int(STORE_OVERLAP)};
    struct query query = sql_query(load->store, STATEMENT_REACHES, values);
    if (sql_next(&query) && sql_text(&query, 0))
        *out_ns = sql_int(&query, 0);
    return sql_end(&query, STATUS_OK, diag);
}

static enum status load_spans(struct load *load, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < load->trace->agent_count && status == STATUS_OK; i++) {
        int64_t from_ns;
        status = store_load_reach(load, load->agent_ids[i], &from_ns, diag);
        if (status != STATUS_OK)
            break;
        const struct store_sql_value values[] = {value_int(load->agent_ids[i]),
                                                 value_int(load->start_ns), value_int(load->end_ns),
                                                 value_int(from_ns)};
        struct query query = sql_query(load->store, STATEMENT_SPANS, values);
        while (status == STATUS_OK && sql_next(&query))
            status = load_span(load, (int)i, &query, diag);
        status = sql_end(&query, status, diag);
    }
    return status;
}

static int store_load_compare_ids(const void *left, const void *right)
{
    const struct id_index *a = left, *b = right;
    return compare_i64(a->id, b->id);
}

static int find_span(const struct load *load, int64_t id)
{
    const size_t count = load->trace->span_count;
    const size_t at = SORT_FIRST(i, 0, count, load->spans[i].id >= id);
    return at < count && load->spans[at].id == id ? load->spans[at].index : -1;
}

/* Edges whose two ends were loaded. */
static enum status store_load_add_edges(struct load *load, struct query *query, struct diag *diag)
{
    struct trace *trace = load->trace;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && sql_next(query)) {
        int from = find_span(load, sql_int(query, 0));
        int to = find_span(load, sql_int(query, 1));
        int kind = find_edge_kind(sql_string(query, 2));
        if (kind < 0)
            status = sql_damage(load->store, diag, "unknown kind of edge", sql_string(query, 2));
        else if (from >= 0 && to >= 0 && trace_add_edge(trace, from, to, (enum edge_kind)kind) < 0)
            status = diag_no_memory(diag);
    }
    return sql_end(query, status, diag);
}

/* Those of the spans, where these are a part of the run's. */
static enum status load_edges(struct load *load, struct diag *diag)
{
    size_t spans = load->trace->span_count;
    enum statement edges_from =
        load->store->version < SCHEMA_WITH_BLOCKS ? STATEMENT_OLD_EDGES_FROM : STATEMENT_EDGES_FROM;
    enum status status = STATUS_OK;
    if (spans)
        qsort(load->spans, spans, sizeof *load->spans, store_load_compare_ids);
    if (!load->part) {
        const struct store_sql_value values[] = {value_int(load->trace->run)};
        struct query query = sql_query(load->store, STATEMENT_EDGES, values);
        return store_load_add_edges(load, &query, diag);
    }
    for (size_t i = 0; i < spans && status == STATUS_OK; i++) {
        const struct store_sql_value values[] = {value_int(load->trace->run),
                                                 value_int(load->spans[i].id)};
        struct query query = sql_query(load->store, edges_from, values);
        status = store_load_add_edges(load, &query, diag);
    }
    return status;
}

static enum status add_iterations(struct load *load, struct query *query, struct diag *diag)
{
    enum status status = STATUS_OK;
    while (status == STATUS_OK && sql_next(query)) {
        const struct trace_iteration iteration = {
            .rank = (int)sql_quantity(query, 0, QUANTITY_RANK, &status, diag),
            .number = sql_quantity(query, 1, QUANTITY_ITERATION, &status, diag),
            .start_ns = sql_quantity(query, 2, QUANTITY_TIME, &status, diag),
            .retire_ns = sql_quantity(query, 3, QUANTITY_TIME, &status, diag),
        };
        if (status == STATUS_OK && trace_add_iteration(load->trace, &iteration) < 0)
            status = diag_no_memory(diag);
    }
    return sql_end(query, status, diag);
}

static enum status load_iterations(struct load *load, struct diag *diag)
{
    const struct store_sql_value all[] = {value_int(load->trace->run)};
    enum status status = STATUS_OK;
    if (load->by_time) {
        /* Those that the spans name; first > last: none. */
        load->first = INT64_MAX;
        load->last = -1;
        for (size_t i = 0; i < load->trace->span_count; i++) {
            int64_t iteration = load->trace->spans[i].iteration;
            load->first = iteration >= 0 && iteration < load->first ? iteration : load->first;
            load->last = iteration > load->last ? iteration : load->last;
        }
    }
    if (!load->part) {
        struct query query = sql_query(load->store, STATEMENT_ITERATIONS, all);
        return add_iterations(load, &query, diag);
    }
    for (int rank = 0; rank < load->trace->info.ranks && status == STATUS_OK; rank++) {
        const struct store_sql_value values[] = {value_int(load->trace->run), value_int(rank),
                                                 value_int(load->first), value_int(load->last)};
        struct query query = sql_query(load->store, STATEMENT_ITERATIONS_OF, values);
        status = add_iterations(load, &query, diag);
    }
    return status;
}

static enum status load_stats(struct load *load, struct diag *diag)
{
    const struct store_sql_value values[] = {value_int(load->trace->run)};
    struct query query = sql_query(load->store, STATEMENT_STATS, values);
    enum status status = STATUS_OK;
    while (status == STATUS_OK && sql_next(&query)) {
        double value = sqlite3_column_double(query.statement, 1);
        if (trace_add_stat(load->trace, sql_string(&query, 0), value) < 0)
            status = diag_no_memory(diag);
    }
    return sql_end(&query, status, diag);
}

/* The description of the run, before its part is chosen. */
static enum status begin_load(struct store *store, int64_t run, struct arena *arena,
                              struct trace *trace, struct diag *diag)
{
    enum status status = run < 0 ? store_latest_run(store, &run, diag) : STATUS_OK;
    return status == STATUS_OK ? store_load_info(store, run, arena, trace, diag) : status;
}

/* The part that is chosen; frees what only loading needs. */
static enum status load_part(struct load *load, struct diag *diag)
{
    enum status status = store_load_agents(load, diag);
    if (status == STATUS_OK)
        status = load_spans(load, diag);
    if (status == STATUS_OK)
        status = load_edges(load, diag);
    if (status == STATUS_OK)
        trace_sort_edges(load->trace);
    if (status == STATUS_OK)
        status = load_iterations(load, diag);
    if (status == STATUS_OK)
        status = load_stats(load, diag);
    if (status == STATUS_OK)
        status = sql_load_ledger(load->store, load->agent_ids, load->trace, diag);
    free(load->spans);
    return status;
}

enum status store_load(struct store *store, int64_t run, int64_t from_iteration,
                       int64_t to_iteration, struct arena *arena, struct trace *out,
                       struct diag *diag)
{
    struct trace trace;
    struct load load = {.store = store, .trace = &trace};
    enum status status = begin_load(store, run, arena, &trace, diag);
    if (status == STATUS_OK)
        status = find_window(&load, from_iteration, to_iteration, diag);
    if (status == STATUS_OK)
        status = load_part(&load, diag);
    if (status == STATUS_OK)
        *out = trace;
    return status;
}

enum status store_load_time(struct store *store, int64_t run, int64_t from_ns, int64_t to_ns,
                            struct arena *arena, struct trace *out, struct diag *diag)
{
    struct trace trace;
    struct load load = {.store = store,
                        .trace = &trace,
                        .part = true,
                        .by_time = true,
                        .start_ns = from_ns,
                        .end_ns = to_ns};
    enum status status = begin_load(store, run, arena, &trace, diag);
    if (status == STATUS_OK && trace.info.kind == RUN_WITNESS)
        status = diag_error(diag, STATUS_USAGE, "a witness has steps and no time to choose from");
    if (status == STATUS_OK)
        status = load_part(&load, diag);
    if (status == STATUS_OK)
        *out = trace;
    return status;
}

enum status store_load_steps(struct store *store, struct trace *trace, struct diag *diag)
{
    return store_load_first_steps(store, trace, INT64_MAX, diag);
}

enum status store_load_first_steps(struct store *store, struct trace *trace, int64_t most,
                                   struct diag *diag)
{
    const struct store_sql_value values[] = {value_int(trace->run), value_int(most)};
    struct query query = sql_query(store, STATEMENT_STEPS, values);
    enum status status = STATUS_OK;
    while (status == STATUS_OK && sql_next(&query)) {
        const struct trace_step step = {
            .seq = sql_quantity(&query, 0, QUANTITY_ITERATION, &status, diag),
            .rank = (int)sql_quantity(&query, 1, QUANTITY_ANY_RANK, &status, diag),
            .agent = sql_string(&query, 2),
            .op = sql_string(&query, 3),
            .task = sql_text(&query, 4),
            .iteration = sql_quantity(&query, 5, QUANTITY_ITERATION, &status, diag),
            .time_ns = sql_quantity(&query, 6, QUANTITY_TIME, &status, diag),
        };
        if (status == STATUS_OK && !sql_text(&query, 2))
            status = sql_damage(store, diag, "step without an agent", sql_string(&query, 0));
        else if (status == STATUS_OK && trace_add_step(trace, &step) < 0)
            status = diag_no_memory(diag);
    }
    return sql_end(&query, status, diag);
}

/* ---- counterexamples ------------------------------------------------------------------------- */

/*
 * The tables of witnesses.
 *
 * Other programs may have changed a store: indices are checked here; the machine decides whether the moves
 * are a run of the plan.
 */

/* ---- writing --------------------------------------------------------------------------------- */

static enum status add_move(struct store *store, int64_t run, size_t seq,
                            const struct trace_move *move, struct diag *diag)
{
    const struct store_sql_value values[] = {value_int(run), value_int((int64_t)seq),
                                             value_int(move->agent), value_int(move->choice)};
    return sql_insert(store, STATEMENT_ADD_MOVE, values, NULL, diag);
}

static enum status store_load_add_blocked(struct store *store, int64_t run, size_t seq,
                                          const struct trace_blocked *blocked, struct diag *diag)
{
    const struct store_sql_value values[] = {
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
    const struct store_sql_value values[] = {
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
        status = store_load_add_blocked(store, run, i, &witness->blocked[i], diag);
    return status == STATUS_OK ? store_flush(store, diag) : status;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct witness_load {
    struct store *store;
    struct arena *arena;
    int64_t run;
    struct trace_witness *out;
    size_t move_cap, blocked_cap;
};

static enum status no_witness(const struct witness_load *load, struct diag *diag)
{
    return diag_error(
        diag, STATUS_INPUT,
        "run %lld in trace store %s is not a witness: 'swsim verify --witness=FILE.db' "
        "makes one, 'swsim runs' lists them",
        (long long)load->run, load->store->path);
}

static enum status find_latest(struct witness_load *load, struct diag *diag)
{
    struct query query = sql_query(load->store, STATEMENT_LATEST_WITNESS, NULL);
    if (sql_next(&query))
        load->run = sql_iteration(&query, 0);
    enum status status = sql_end(&query, STATUS_OK, diag);
    if (status == STATUS_OK && load->run < 0)
        return diag_error(diag, STATUS_INPUT, "trace store %s holds no witness", load->store->path);
    return status;
}

static bool store_load_is_small(int64_t number)
{
    return number >= 0 && number <= INT_MAX;
}

static enum status load_options(struct witness_load *load, struct diag *diag)
{
    const struct store_sql_value values[] = {value_int(load->run)};
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
        else if (!store_load_is_small(sql_int(&query, 2)) ||
                 !store_load_is_small(sql_int(&query, 3)) || load->out->iterations > INT32_MAX)
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

static enum status load_moves(struct witness_load *load, struct diag *diag)
{
    struct trace_witness *out = load->out;
    const struct store_sql_value values[] = {value_int(load->run)};
    struct query query = sql_query(load->store, STATEMENT_MOVES, values);
    enum status status = STATUS_OK;
    while (status == STATUS_OK && sql_next(&query)) {
        if (!is_next(&query, out->move_count) || !store_load_is_small(sql_int(&query, 1)) ||
            !store_load_is_small(sql_int(&query, 2)))
            status = sql_damage(load->store, diag, "impossible move", sql_string(&query, 0));
        else if (!ARENA_GROW(load->arena, out->moves, out->move_count, load->move_cap))
            status = diag_no_memory(diag);
        else {
            out->moves[out->move_count++] =
                (struct trace_move){(int)sql_int(&query, 1), (int)sql_int(&query, 2)};
        }
    }
    return sql_end(&query, status, diag);
}

static enum status load_blocked(struct witness_load *load, struct diag *diag)
{
    struct trace_witness *out = load->out;
    const struct store_sql_value values[] = {value_int(load->run)};
    struct query query = sql_query(load->store, STATEMENT_BLOCKED, values);
    enum status status = STATUS_OK;
    while (status == STATUS_OK && sql_next(&query)) {
        const struct trace_blocked row = {
            .rank = (int)sql_quantity(&query, 1, QUANTITY_ANY_RANK, &status, diag),
            .agent = arena_strdup(load->arena, sql_string(&query, 2)),
            .waits_for = arena_strdup(load->arena, sql_string(&query, 3)),
            .on = store_load_is_small(sql_iteration(&query, 4)) ? (int)sql_int(&query, 4) : -1,
            .in_cycle = sql_int(&query, 5) != 0,
        };
        if (status != STATUS_OK)
            break;
        if (!is_next(&query, out->blocked_count))
            status = sql_damage(load->store, diag, "impossible blocked agent", row.agent);
        else if (!row.agent || !row.waits_for ||
                 !ARENA_GROW(load->arena, out->blocked, out->blocked_count, load->blocked_cap))
            status = diag_no_memory(diag);
        else {
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
    struct witness_load load = {.store = store, .arena = arena, .run = run, .out = &witness};
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
