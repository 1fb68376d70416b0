/* SPDX-License-Identifier: Apache-2.0 */
/* store_sql.c - see store_sql.h. */
#include "store_sql.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/system_words.h"

/* Why no store can be made or opened there. SQLite, refused a file for writing, tries to read it, and has the errno of that. */
static int why_not_opened(const char *path, int system_errno)
{
    char folder[PATH_MAX];
    if (access(path, F_OK) == 0)
        return access(path, R_OK | W_OK) == 0 ? system_errno : errno;
    const size_t length = strnlen(path, sizeof folder);
    if (errno != ENOENT || length == sizeof folder)
        return errno;
    memcpy(folder, path, length + 1);
    return access(dirname(folder), W_OK | X_OK) == 0 ? system_errno : errno;
}

/* The process that has a lock on the file, 0 where none is known: SQLite locks bytes of the store, and of its -shm, by
   fcntl (sqlite.org/fileformat2.html#walindexformat, os.h's PENDING_BYTE). */
static pid_t store_lock_holder(const char *path, const char *ending, off_t first, off_t bytes)
{
    char name[PATH_MAX];
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = first, .l_len = bytes};
    if (snprintf(name, sizeof name, "%s%s", path, ending) >= (int)sizeof name)
        return 0;
    const int file = open(name, O_RDWR | O_CLOEXEC);
    const bool known = file >= 0 && fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    if (file >= 0)
        close(file);
    return known ? lock.l_pid : 0;
}

static bool is_stopped(pid_t process)
{
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)process);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    const size_t bytes = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[bytes] = '\0';
    const char *end = strrchr(text, ')'); /* of the program's name */
    return end && end[1] == ' ' && end[2] == 'T';
}

/* Another process has had the store for longer than is waited for. The store is given up: to close a file that one looks
   at drops the own locks on it. */
static enum status tell_busy(const struct store *store, const char *what, struct diag *diag)
{
    pid_t holder = store_lock_holder(store->path, "-shm", 120, 8);
    if (holder <= 0)
        holder = store_lock_holder(store->path, "", 0x40000000, 512);
    if (holder <= 0)
        return diag_error(diag, STATUS_SYSTEM,
                          "cannot %s trace store %s: another process uses it; try again", what,
                          store->path);
    return diag_error(diag, STATUS_SYSTEM, "cannot %s trace store %s: process %ld has it%s", what,
                      store->path, (long)holder,
                      is_stopped(holder) ? " and is stopped: continue it, or end it"
                                         : "; try again");
}

enum status sql_error(struct store *store, const char *what, struct diag *diag)
{
    int code = sqlite3_errcode(store->db) & 0xff;
    int system_errno = sqlite3_system_errno(store->db);
    bool from_system = system_errno && (code == SQLITE_CANTOPEN || code == SQLITE_IOERR ||
                                        code == SQLITE_FULL || code == SQLITE_READONLY);
    if (code == SQLITE_BUSY)
        return tell_busy(store, what, diag);
    if (code == SQLITE_CANTOPEN)
        system_errno = why_not_opened(store->path, system_errno);
    if (code == SQLITE_NOMEM)
        return diag_no_memory(diag);
    /* An SQL error of the program's own statements: the tables are not those of a store. */
    if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT || code == SQLITE_ERROR ||
        code == SQLITE_TOOBIG)
        return diag_error(diag, STATUS_INPUT, "%s is %s: %s", store->path,
                          code == SQLITE_NOTADB ? "not a swsim trace store"
                                                : "a damaged trace store",
                          sqlite3_errmsg(store->db));
    return diag_error(diag, STATUS_SYSTEM, "cannot %s trace store %s: %s%s%s", what, store->path,
                      sqlite3_errmsg(store->db), from_system ? ": " : "",
                      from_system ? system_words(system_errno) : "");
}

static const char *statement_sql(enum statement statement)
{
#define X(name, sql) sql,
    static const char *const sqls[] = {STATEMENT_LIST(X)};
#undef X
    return sqls[statement];
}

sqlite3_stmt *sql_prepare(struct store *store, enum statement statement)
{
    sqlite3_stmt **prepared = &store->statements[statement];
    if (*prepared) {
        (void)sqlite3_reset(*prepared); /* repeats the error of its last step, already reported */
    } else if (sqlite3_prepare_v3(store->db, statement_sql(statement), -1,
                                  SQLITE_PREPARE_PERSISTENT, prepared, NULL) != SQLITE_OK) {
        return NULL;
    }
    return *prepared;
}

bool sql_bind(sqlite3_stmt *statement, const struct store_sql_value *values)
{
    int code = SQLITE_OK;
    for (int i = 0; i < sqlite3_bind_parameter_count(statement) && code == SQLITE_OK; i++) {
        switch (values[i].type) {
        case VALUE_NULL: code = sqlite3_bind_null(statement, i + 1); break;
        case VALUE_INT: code = sqlite3_bind_int64(statement, i + 1, values[i].integer); break;
        case VALUE_REAL: code = sqlite3_bind_double(statement, i + 1, values[i].real); break;
        case VALUE_TEXT:
            code = sqlite3_bind_text(statement, i + 1, values[i].text, -1, SQLITE_STATIC);
            break;
        }
    }
    return code == SQLITE_OK;
}

bool sql_execute(struct store *store, enum statement statement,
                 const struct store_sql_value *values)
{
    sqlite3_stmt *prepared = sql_prepare(store, statement);
    if (!prepared || !sql_bind(prepared, values))
        return false;
    bool done = sqlite3_step(prepared) == SQLITE_DONE;
    return sqlite3_reset(prepared) == SQLITE_OK && done;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct query sql_query(struct store *store, enum statement statement,
                       const struct store_sql_value *values)
{
    struct diag ignored; /* the next write or the end tells of it */
    diag_init(&ignored);
    if (!store->failed)
        (void)sql_flush_batches(store, &ignored);
    diag_fini(&ignored);
    struct query query = {store, sql_prepare(store, statement), SQLITE_ERROR};
    if (query.statement && !sql_bind(query.statement, values))
        query.statement = NULL;
    return query;
}

bool sql_next(struct query *query)
{
    if (query->statement)
        query->code = sqlite3_step(query->statement);
    return query->code == SQLITE_ROW;
}

enum status sql_end(struct query *query, enum status status, struct diag *diag)
{
    if (status == STATUS_OK && query->code != SQLITE_DONE && query->code != SQLITE_ROW)
        status = sql_error(query->store, "read", diag);
    if (query->statement)
        (void)sqlite3_reset(query->statement);
    if (status == STATUS_OK && query->store->shown.failed)
        status = diag_no_memory(diag);
    arena_fini(&query->store->shown);
    return status;
}

int64_t sql_int(const struct query *query, int column)
{
    return sqlite3_column_int64(query->statement, column);
}

int64_t sql_quantity(const struct query *query, int column, enum quantity quantity,
                     enum status *status, struct diag *diag)
{
    static const struct {
        const char *noun;
        int64_t min, max;
    } quantities[] = {
#define X(name, noun, min, max) {"impossible " noun, (min), (max)},
        QUANTITY_LIST(X)
#undef X
    };
    int64_t number = sql_iteration(query, column);
    if (number >= quantities[quantity].min && number <= quantities[quantity].max)
        return number;
    *status = sql_damage(query->store, diag, quantities[quantity].noun, sql_string(query, column));
    return 0;
}

/* SQLite gives NULL for a text that it has no memory for, too: sql_end tells. */
static const char *store_sql_column_text(const struct query *query, int column)
{
    bool null = sqlite3_column_type(query->statement, column) == SQLITE_NULL;
    const char *text = null ? NULL : (const char *)sqlite3_column_text(query->statement, column);
    if (!null && !text)
        query->store->shown.failed = true;
    return text;
}

const char *sql_text(const struct query *query, int column)
{
    return printable_text(&query->store->shown, store_sql_column_text(query, column), false);
}

const char *sql_lines(const struct query *query, int column)
{
    const char *text = store_sql_column_text(query, column);
    const char *shown = printable_text(&query->store->shown, text, true);
    return shown ? shown : "";
}

const char *sql_string(const struct query *query, int column)
{
    const char *text = sql_text(query, column);
    return text ? text : "";
}

int64_t sql_iteration(const struct query *query, int column)
{
    bool null = sqlite3_column_type(query->statement, column) == SQLITE_NULL;
    return null ? -1 : sql_int(query, column);
}

enum status sql_damage(const struct store *store, struct diag *diag, const char *what,
                       const char *found)
{
    return diag_error(diag, STATUS_INPUT, "trace store %s is damaged: %s '%s'", store->path, what,
                      found);
}
