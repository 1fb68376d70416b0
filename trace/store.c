/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.c - see store.h: opening, closing and writing; reading is in store_load.c.
 *
 * Rows go in through sql_insert, which binds a list of values, opens the transaction where none is
 * open and commits a full batch. A write that fails rolls the batch back and marks the store as
 * failed.
 *
 * Rows of a run refer to the run, which is looked up once a transaction, for another program may have deleted it, and to
 * rows that this program has just written. SQLite's own look-ups for each row cost as much as the rows.
 *
 * A store is in WAL mode while runs are added, so that readers and a killed writer do no harm, and
 * goes back to a plain journal when it is closed, so that the file can be copied or kept read-only.
 */
#include "store.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/sort.h"

#include "foreign_sql.h"
#include "schema.h"
#include "store_sql.h"
#include "trace.h"

enum { BUSY_TIMEOUT_MS = 10000, BUSY_NAP_MS = 1, PLAIN_NAPS = 100 };

/* Another program that adds a run leaves the store for a few milliseconds between its transactions: SQLite's own
   naps are longer than that. */
static int nap_between(void *unused, int naps)
{
    (void)unused;
    nanosleep(&(struct timespec){.tv_nsec = BUSY_NAP_MS * 1000000L}, NULL);
    return naps < BUSY_TIMEOUT_MS / BUSY_NAP_MS;
}

/* ---- opening and closing --------------------------------------------------------------------- */

static bool query_int(struct store *store, const char *sql, int64_t *out)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) != SQLITE_OK)
        return false;
    bool found = sqlite3_step(statement) == SQLITE_ROW;
    if (found)
        *out = sqlite3_column_int64(statement, 0);
    return sqlite3_finalize(statement) == SQLITE_OK && found;
}

/* A trace store has tables and indexes, and one view. Everything else that computes when it is read (views, triggers,
   virtual tables, generated columns) comes from elsewhere, and could compute forever. */
static enum status check_tables(struct store *store, struct diag *diag)
{
    int64_t strange = 0;
    if (!query_int(
            store,
            "SELECT (SELECT count(*) FROM sqlite_master WHERE (type NOT IN ('table', 'index')"
            " OR sql LIKE 'CREATE VIRTUAL%') AND coalesce(sql, '') <> '" SCHEMA_STEP_VIEW "') +"
            " (SELECT count(*) FROM sqlite_master AS t, pragma_table_xinfo(t.name) AS c"
            " WHERE t.type = 'table' AND c.hidden <> 0)",
            &strange))
        return sql_error(store, "open", diag);
    if (strange)
        return diag_error(diag, STATUS_INPUT,
                          "%s has a view, a trigger, a virtual table or a generated column, which "
                          "no trace store has",
                          store->path);
    return STATUS_OK;
}

/* Find out whether this file is a trace store. *out_empty: it is a database without tables. */
static enum status identify(struct store *store, bool *out_empty, struct diag *diag)
{
    int64_t application = 0, version = 0, tables = 0;
    if (!query_int(store, "PRAGMA application_id", &application) ||
        !query_int(store, "PRAGMA user_version", &version) ||
        !query_int(store, "SELECT count(*) FROM sqlite_master", &tables))
        return sql_error(store, "open", diag);
    *out_empty = application == 0 && version == 0 && tables == 0;
    if (*out_empty)
        return STATUS_OK;
    if (application != SCHEMA_APPLICATION)
        return diag_error(diag, STATUS_INPUT,
                          "%s is an SQLite database, but not a swsim trace store", store->path);
    if (version < 1 || version > SCHEMA_VERSION)
        return diag_error(diag, STATUS_INPUT,
                          "trace store %s has schema version %lld, this swsim knows version %d",
                          store->path, (long long)version, SCHEMA_VERSION);
    store->version = (int)version;
    return check_tables(store, diag);
}

/* Make an empty database a store, or bring an older one up to date; another process may be doing the
   same. */
static enum status create_schema(struct store *store, struct diag *diag)
{
    bool empty = false;
    if (sqlite3_exec(store->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
        return sql_error(store, "create", diag);
    enum status status = identify(store, &empty, diag);
    if (status == STATUS_OK && (empty || store->version < SCHEMA_VERSION)) {
        char *marks = sqlite3_mprintf("PRAGMA application_id = %d; PRAGMA user_version = %d",
                                      SCHEMA_APPLICATION, SCHEMA_VERSION);
        if (!marks)
            return diag_no_memory(diag);
        const char *tables = empty                ? SCHEMA_ALL
                             : store->version < 2 ? SCHEMA_SINCE_1
                             : store->version < 3 ? SCHEMA_SINCE_2
                                                  : SCHEMA_SINCE_3;
        if (sqlite3_exec(store->db, tables, NULL, NULL, NULL) != SQLITE_OK ||
            sqlite3_exec(store->db, marks, NULL, NULL, NULL) != SQLITE_OK)
            status = sql_error(store, "create", diag);
        else if (!empty)
            status = sql_move_steps(store, diag);
        sqlite3_free(marks);
        store->version = SCHEMA_VERSION;
    }
    if (status == STATUS_OK && sqlite3_exec(store->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
        status = sql_error(store, "create", diag);
    return status;
}

/* Damage that shows only in the middle of writing would leave a changed file. So before the first byte the whole of a small
   store is read; a large one would take seconds. */
static enum status check_whole(struct store *store, struct diag *diag)
{
    int64_t pages = 0, page_bytes = 0;
    sqlite3_stmt *statement = NULL;
    if (!query_int(store, "PRAGMA page_count", &pages) ||
        !query_int(store, "PRAGMA page_size", &page_bytes))
        return sql_error(store, "open", diag);
    if (pages * page_bytes > STORE_WHOLE_BYTES)
        return STATUS_OK;
    if (sqlite3_prepare_v2(store->db, "PRAGMA quick_check(1)", -1, &statement, NULL) != SQLITE_OK)
        return sql_error(store, "open", diag);
    bool read = sqlite3_step(statement) == SQLITE_ROW;
    const char *words = read ? (const char *)sqlite3_column_text(statement, 0) : NULL;
    const char *last = words ? strrchr(words, '\n') : NULL; /* behind a heading */
    enum status status = STATUS_OK;
    if (!words)
        status = sql_error(store, "open", diag);
    else if (strcmp(words, "ok") != 0)
        status = diag_error(diag, STATUS_INPUT, "%s is a damaged trace store: %s", store->path,
                            last ? last + 1 : words);
    (void)sqlite3_finalize(statement);
    return status;
}

/* Another program can be in the way for a moment in two forms that SQLite's busy handler does not wait for: it has a lock
   while the mode is changed, or it has just deleted the log of an earlier store of this name, which both wanted to delete. */
static bool in_the_way(struct store *store)
{
    int code = sqlite3_extended_errcode(store->db);
    return (code & 0xff) == SQLITE_BUSY || code == SQLITE_IOERR_DELETE_NOENT;
}

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Statements that leave nothing behind where they fail. */
static bool execute_patiently(struct store *store, const char *sql)
{
    const int64_t end_ms = now_ms() + BUSY_TIMEOUT_MS;
    while (sqlite3_exec(store->db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        if (!in_the_way(store) || now_ms() >= end_ms)
            return false;
        if (!sqlite3_get_autocommit(store->db))
            (void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL,
                               NULL); /* of reading: cannot fail */
        (void)nap_between(NULL, 0);
    }
    return true;
}

/* At one moment: another program may be making the same file a store. */
static enum status identify_now(struct store *store, bool *out_empty, struct diag *diag)
{
    if (!execute_patiently(store, "BEGIN; SELECT count(*) FROM sqlite_master"))
        return sql_error(store, "open", diag);
    enum status status = identify(store, out_empty, diag);
    if (status == STATUS_OK && store->writable && !*out_empty)
        status = check_whole(store, diag);
    (void)sqlite3_exec(store->db, "COMMIT", NULL, NULL, NULL); /* nothing was written */
    return status;
}

static bool prepare_writing(struct store *store)
{
    return execute_patiently(store, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
                                    " PRAGMA foreign_keys = OFF; PRAGMA wal_autocheckpoint = 4000");
}

/* Everything between opening the file and using it. */
static enum status prepare_store(struct store *store, struct diag *diag)
{
    bool empty = false;
    (void)sqlite3_busy_handler(store->db, nap_between, NULL);
    if (!foreign_sql_distrust(store->db))
        return sql_error(store, "open", diag);
    enum status status = identify_now(store, &empty, diag);
    if (status != STATUS_OK)
        return status;
    if (empty && !store->writable)
        return diag_error(diag, STATUS_INPUT, "%s is empty, not a swsim trace store", store->path);
    if (!store->writable)
        return STATUS_OK;
    if (sqlite3_db_readonly(store->db, "main") == 1)
        return diag_error(diag, STATUS_SYSTEM, "cannot write to trace store %s: it is read-only",
                          store->path);
    if (!prepare_writing(store))
        return sql_error(store, "create", diag);
    return empty || store->version < SCHEMA_VERSION ? create_schema(store, diag) : STATUS_OK;
}

static void free_store(struct store *store)
{
    for (size_t i = 0; i < STATEMENT_COUNT; i++)
        (void)sqlite3_finalize(store->statements[i]); /* errors were reported by the step */
    (void)sqlite3_close(store->db);                   /* cannot fail: nothing refers to it now */
    sql_free_steps(store);
    diag_fini(&store->failure);
    free(store->path);
    free(store);
}

/* To SQLite the empty name, ":..." and "file:..." are other things than a file. */
static enum status store_check_name(const char *path, struct diag *diag)
{
    if (!*path)
        return diag_error(diag, STATUS_SYSTEM, "cannot open trace store: its name is empty");
    if (*path == ':' || strncmp(path, "file:", 5) == 0)
        return diag_error(diag, STATUS_USAGE,
                          "found trace store %s, expected the name of a file (./%s is one)", path,
                          path);
    return STATUS_OK;
}

/* SQLite would read and write devices and pipes as if they were files. Of what else is none it says so. */
static enum status store_check_kind(const char *path, bool create, struct diag *diag)
{
    struct stat about;
    if (stat(path, &about) == 0 &&
        (S_ISFIFO(about.st_mode) || S_ISCHR(about.st_mode) || S_ISBLK(about.st_mode)))
        return diag_error(diag, create ? STATUS_SYSTEM : STATUS_INPUT,
                          "%s is not an ordinary file, expected a trace store", path);
    return STATUS_OK;
}

/* Without its store there is nothing that it could restore; one that stays is dropped by the next store_open. */
static void remove_journal(const char *path)
{
    size_t cap = strlen(path) + sizeof "-journal";
    char *journal = malloc(cap);
    if (!journal)
        return;
    snprintf(journal, cap, "%s-journal", path);
    (void)unlink(journal);
    free(journal);
}

/* The rest that a failure left of a new store, on a full disk for example. */
static void remove_empty(const char *path)
{
    struct stat left;
    if (stat(path, &left) != 0 || !S_ISREG(left.st_mode) || left.st_size > 0)
        return;
    if (unlink(path) == 0) /* an empty file may stay: a later store_open makes it a store */
        remove_journal(path);
}

enum status store_open(const char *path, bool create, struct store **out, struct diag *diag)
{
    enum status status = store_check_name(path, diag);
    if (status == STATUS_OK)
        status = store_check_kind(path, create, diag);
    if (status != STATUS_OK)
        return status;
    struct store *store = calloc(1, sizeof *store);
    if (!store)
        return diag_no_memory(diag);
    bool is_new = create && access(path, F_OK) != 0;
    store->path = strdup(path);
    store->writable = create;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (create ? SQLITE_OPEN_CREATE : 0);
    if (!store->path)
        status = diag_no_memory(diag);
    else if (sqlite3_open_v2(path, &store->db, flags, NULL) != SQLITE_OK)
        status = store->db ? sql_error(store, "open", diag) : diag_no_memory(diag);
    else
        status = prepare_store(store, diag);
    if (status != STATUS_OK) {
        free_store(store);
        if (is_new)
            remove_empty(path);
        return status;
    }
    *out = store;
    return STATUS_OK;
}

enum status store_close(struct store *store, struct diag *diag)
{
    if (!store)
        return STATUS_OK;
    enum status status = store_flush(store, diag);
    for (size_t i = 0; i < STATEMENT_COUNT; i++) {
        (void)sqlite3_finalize(store->statements[i]);
        store->statements[i] = NULL;
    }
    if (store->writable && !store->failed) {
        /* Back to one plain file. Refused while another process has the store open. One that looks at it now and then is
           waited for; to another it is left: the rows are safe in the write-ahead log. */
        int naps = 0;
        while ((sqlite3_exec(store->db, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL) & 0xff) ==
                   SQLITE_BUSY &&
               naps < PLAIN_NAPS)
            (void)nap_between(NULL, naps++);
    }
    free_store(store);
    return status;
}

/* ---- rows in batches ------------------------------------------------------------------------- */

/*
 * Rows of one table that go in together.
 *
 * A statement with several rows costs SQLite two thirds of as many statements with one. A batch keeps rows with copies
 * of their texts until it is full, or until somebody commits or reads.
 */

static enum status flush(struct store *store, struct store_sql_batch *batch,
                         const struct batch_kind *kind, struct diag *diag)
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
static bool store_has_room(const struct store_sql_batch *batch, const struct batch_kind *kind,
                           const struct store_sql_value *row)
{
    size_t bytes = 0;
    for (int i = 0; i < kind->columns; i++)
        bytes += row[i].type == VALUE_TEXT ? strlen(row[i].text) + 1 : 0;
    return bytes <= sizeof batch->text - batch->used;
}

static void store_keep(struct store_sql_batch *batch, const struct batch_kind *kind,
                       const struct store_sql_value *row)
{
    for (int i = 0; i < kind->columns; i++) {
        struct store_sql_value *value = &batch->values[batch->rows * kind->columns + i];
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

static enum status sql_insert_later(struct store *store, enum batch_table table,
                                    const struct store_sql_value *row, struct diag *diag)
{
    struct store_sql_batch *batch = &store->batches[table];
    const struct batch_kind *kind = &batch_kinds[table];
    enum status status = STATUS_OK;
    if (!store_has_room(batch, kind, row))
        status = flush(store, batch, kind, diag);
    if (status || !store_has_room(batch, kind, row))
        return status ? status : sql_insert(store, kind->one, row, NULL, diag);
    store_keep(batch, kind, row);
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

/* ---- writing --------------------------------------------------------------------------------- */

/* What is true between two calls: outside a transaction no run is known to be there and no ids of spans are ours. */
static void store_check(const struct store *store)
{
    assert(!(store->failed && store->in_transaction));
    assert(store->in_transaction || store->failed || (store->run == 0 && store->next_span == 0));
    for (int table = 0; table < BATCH_TABLES; table++) {
        assert(store->batches[table].rows >= 0 && store->batches[table].rows < BATCH_ROWS);
        assert(store->batches[table].used <= sizeof store->batches[table].text);
    }
    (void)store;
}

static enum status report_failure(const struct store *store, struct diag *diag)
{
    assert(store->failed);
    if (store->failure.count == 0)
        return diag_no_memory(diag);
    return diag_error(diag, store->failed_status, "%s", store->failure.messages[0].text);
}

/* Report a failed write and give up the batch it belonged to. */
static enum status store_write_error(struct store *store, struct diag *diag)
{
    store->failed_status = sql_error(store, "write to", &store->failure);
    store->failed = true;
    store->in_transaction = false;
    store->run = 0;
    /* Where SQLite has rolled back by itself this fails, and there is nothing left to do. */
    (void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    return report_failure(store, diag);
}

static enum status store_commit(struct store *store, struct diag *diag)
{
    if (store->failed)
        return report_failure(store, diag);
    if (!store->in_transaction)
        return STATUS_OK;
    if (!sql_execute(store, STATEMENT_COMMIT, NULL))
        return store_write_error(store, diag);
    store->in_transaction = false;
    store->rows = 0;
    store->run = 0;
    store->next_span = 0;
    return STATUS_OK;
}

enum status store_flush(struct store *store, struct diag *diag)
{
    enum status status = store->failed ? STATUS_OK : sql_flush_batches(store, diag);
    status = status ? status : store_commit(store, diag);
    store_check(store);
    return status;
}

static enum status refuse_row(struct store *store, int64_t run, struct diag *diag)
{
    store->failed_status =
        diag_error(&store->failure, STATUS_SYSTEM,
                   "cannot write to trace store %s: it has no run %lld, or it has been deleted",
                   store->path, (long long)run);
    store->failed = true;
    store->in_transaction = false;
    (void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    return report_failure(store, diag);
}

/* Check that the run has a row. */
static enum status store_check_run(struct store *store, int64_t run, struct diag *diag)
{
    const struct store_sql_value values[] = {value_int(run)};
    sqlite3_stmt *statement = sql_prepare(store, STATEMENT_RUN_IS_THERE);
    int code = statement && sql_bind(statement, values) ? sqlite3_step(statement) : SQLITE_ERROR;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        return store_write_error(store, diag);
    (void)sqlite3_reset(statement);
    if (code == SQLITE_DONE)
        return refuse_row(store, run, diag);
    store->run = run;
    return STATUS_OK;
}

static enum status store_begin(struct store *store, struct diag *diag)
{
    store_check(store);
    if (store->failed)
        return report_failure(store, diag);
    if (!store->in_transaction && !sql_execute(store, STATEMENT_BEGIN, NULL))
        return store_write_error(store, diag);
    store->in_transaction = true;
    return STATUS_OK;
}

/* Open the transaction where none is open, and see that the run is there. */
static enum status sql_begin(struct store *store, int64_t run, struct diag *diag)
{
    enum status status = store_begin(store, diag);
    return status || run == store->run ? status : store_check_run(store, run, diag);
}

enum status sql_number(struct store *store, enum statement statement,
                       const struct store_sql_value *values, int64_t *out, struct diag *diag)
{
    sqlite3_stmt *prepared = sql_prepare(store, statement);
    if (!prepared || !sql_bind(prepared, values) || sqlite3_step(prepared) != SQLITE_ROW)
        return store_write_error(store, diag);
    *out = sqlite3_column_int64(prepared, 0);
    (void)sqlite3_reset(prepared);
    return STATUS_OK;
}

enum status sql_insert(struct store *store, enum statement statement,
                       const struct store_sql_value *values, int64_t *out_id, struct diag *diag)
{
    enum status status = statement == STATEMENT_BEGIN_RUN
                             ? store_begin(store, diag)
                             : sql_begin(store, values[0].integer, diag);
    if (status)
        return status;
    if (!sql_execute(store, statement, values))
        return store_write_error(store, diag);
    int64_t id = sqlite3_last_insert_rowid(store->db);
    if (++store->rows >= STORE_BATCH_ROWS) {
        store->rows = 0;
        status = store_flush(store, diag);
    }
    if (status == STATUS_OK && out_id)
        *out_id = id;
    return status;
}

enum status store_make_durable(struct store *store, struct diag *diag)
{
    if (sqlite3_exec(store->db, "PRAGMA synchronous = FULL", NULL, NULL, NULL) != SQLITE_OK)
        return sql_error(store, "write to", diag);
    return STATUS_OK;
}

enum status store_begin_run(struct store *store, const struct run_info *info, int64_t *out_run,
                            struct diag *diag)
{
    const struct store_sql_value values[] = {
        value_string(run_kind_text(info->kind)),
        value_string(info->plan_name),
        value_string(info->plan_text),
        value_string(run_driver_text(info->driver)),
        value_string(info->device),
        value_int(info->ranks),
        value_int((int64_t)info->seed), /* same 64 bits, read back with the opposite cast */
        value_int(info->iterations_wanted),
        value_int(info->created_unix_s),
        value_int(info->duration_ns),
        value_int(info->finished),
        value_text(info->note),
    };
    return sql_insert(store, STATEMENT_BEGIN_RUN, values, out_run, diag);
}

enum status store_add_agent(struct store *store, int64_t run, const struct trace_agent *agent,
                            int64_t *out_agent, struct diag *diag)
{
    const struct store_sql_value values[] = {
        value_int(run),
        value_int(agent->rank),
        value_string(trace_agent_kind_text(agent->kind)),
        value_string(agent->name),
        value_int(agent->position),
    };
    return sql_insert(store, STATEMENT_ADD_AGENT, values, out_agent, diag);
}

/* Ids of spans are the store's until the transaction ends: by then their rows are written. */
static enum status next_span(struct store *store, int64_t run, int64_t *out, struct diag *diag)
{
    enum status status = sql_begin(store, run, diag);
    if (!status && store->next_span == 0)
        status = sql_number(store, STATEMENT_NEXT_SPAN, NULL, &store->next_span, diag);
    *out = store->next_span;
    return status;
}

enum status store_add_span(struct store *store, int64_t run, int64_t agent,
                           const struct trace_span *span, int64_t *out_span, struct diag *diag)
{
    int64_t id;
    enum status status = next_span(store, run, &id, diag);
    if (status)
        return status;
    const struct store_sql_value values[] = {
        value_int(run),
        value_int(id),
        value_int(agent),
        value_string(span_kind_text(span->kind)),
        value_text(span->task),
        value_iteration(span->iteration),
        value_int(span->start_ns),
        value_int(span->end_ns),
        value_text(span->cause),
    };
    store->next_span++;
    status = sql_insert_later(store, BATCH_SPANS, values, diag);
    if (status == STATUS_OK && out_span)
        *out_span = id;
    return status;
}

enum status store_add_edge(struct store *store, int64_t run, int64_t from_span, int64_t to_span,
                           enum edge_kind kind, struct diag *diag)
{
    const struct store_sql_value values[] = {
        value_int(run),
        value_int(from_span),
        value_int(to_span),
        value_string(edge_kind_text(kind)),
    };
    return sql_insert_later(store, BATCH_EDGES, values, diag);
}

enum status store_add_iteration(struct store *store, int64_t run,
                                const struct trace_iteration *iteration, struct diag *diag)
{
    const struct store_sql_value values[] = {
        value_int(run),
        value_int(iteration->rank),
        value_int(iteration->number),
        value_int(iteration->start_ns),
        value_int(iteration->retire_ns),
    };
    return sql_insert(store, STATEMENT_ADD_ITERATION, values, NULL, diag);
}

enum status store_add_step(struct store *store, int64_t run, const struct trace_step *step,
                           struct diag *diag)
{
    return sql_add_step(store, run, step, diag);
}

enum status store_add_stat(struct store *store, int64_t run, const char *key, double value,
                           struct diag *diag)
{
    const struct store_sql_value values[] = {value_int(run), value_string(key), value_real(value)};
    return sql_insert(store, STATEMENT_ADD_STAT, values, NULL, diag);
}

enum status store_set_iterations(struct store *store, int64_t run, int64_t iterations,
                                 struct diag *diag)
{
    const struct store_sql_value values[] = {value_int(run), value_int(iterations)};
    return sql_insert(store, STATEMENT_SET_ITERATIONS, values, NULL, diag);
}

enum status store_end_run(struct store *store, int64_t run, enum run_finished finished,
                          int64_t duration_ns, struct diag *diag)
{
    const struct store_sql_value values[] = {value_int(run), value_int(finished),
                                             value_int(duration_ns)};
    enum status status = sql_insert(store, STATEMENT_END_RUN, values, NULL, diag);
    return status == STATUS_OK ? store_flush(store, diag) : status;
}

/* ---- writing a trace ------------------------------------------------------------------------- */

/* Agents, spans, edges and the ledger; `ids` has room for the ids of all agents and then of all spans. */
static enum status store_write_spans(struct store *store, int64_t run, const struct trace *trace,
                                     int64_t *ids, struct diag *diag)
{
    enum status status = STATUS_OK;
    int64_t *agent_ids = ids, *span_ids = ids + trace->agent_count;
    for (size_t i = 0; i < trace->agent_count && status == STATUS_OK; i++)
        status = store_add_agent(store, run, &trace->agents[i], &agent_ids[i], diag);
    for (size_t i = 0; i < trace->span_count && status == STATUS_OK; i++) {
        const struct trace_span *span = &trace->spans[i];
        status = store_add_span(store, run, agent_ids[span->agent], span, &span_ids[i], diag);
    }
    for (size_t i = 0; i < trace->edge_count && status == STATUS_OK; i++) {
        const struct trace_edge *edge = &trace->edges[i];
        status =
            store_add_edge(store, run, span_ids[edge->from], span_ids[edge->to], edge->kind, diag);
    }
    for (size_t i = 0; i < trace->idle_count && status == STATUS_OK; i++)
        status =
            store_add_idle(store, run, agent_ids[trace->idles[i].agent], &trace->idles[i], diag);
    return status;
}

/* The rows that refer to the run only. */
static enum status write_facts(struct store *store, int64_t run, const struct trace *trace,
                               struct diag *diag)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < trace->iteration_count && status == STATUS_OK; i++)
        status = store_add_iteration(store, run, &trace->iterations[i], diag);
    for (size_t i = 0; i < trace->step_count && status == STATUS_OK; i++)
        status = store_add_step(store, run, &trace->steps[i], diag);
    for (size_t i = 0; i < trace->stat_count && status == STATUS_OK; i++)
        status = store_add_stat(store, run, trace->stats[i].key, trace->stats[i].value, diag);
    return status;
}

enum status store_write_trace(struct store *store, const struct trace *trace, int64_t *out_run,
                              struct diag *diag)
{
    int64_t run = -1;
    int64_t *ids = calloc(trace->agent_count + trace->span_count + 1, sizeof *ids);
    if (!ids)
        return diag_no_memory(diag);
    enum status status = store_begin_run(store, &trace->info, &run, diag);
    if (status == STATUS_OK)
        status = store_write_spans(store, run, trace, ids, diag);
    if (status == STATUS_OK)
        status = write_facts(store, run, trace, diag);
    if (status == STATUS_OK)
        status = store_flush(store, diag);
    free(ids);
    if (status == STATUS_OK && out_run)
        *out_run = run;
    return status;
}

/* ---- idle times ------------------------------------------------------------------------------ */

/* The lines of a run's ledger. */

enum status store_add_idle(struct store *store, int64_t run, int64_t agent,
                           const struct trace_idle *line, struct diag *diag)
{
    const struct store_sql_value values[] = {
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
    const size_t low = SORT_FIRST(i, 0, trace->agent_count, agent_ids[i] >= id);
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
    const struct store_sql_value values[] = {value_int(trace->run)};
    struct query query = sql_query(store, STATEMENT_IDLES, values);
    enum status status = STATUS_OK;
    while (status == STATUS_OK && sql_next(&query))
        status = load_line(&query, agent_ids, trace, diag);
    return sql_end(&query, status, diag);
}
