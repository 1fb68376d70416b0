/* SPDX-License-Identifier: Apache-2.0 */
/* nsys.c - see nsys.h. Work comes first: its processes are the ranks, and calls of other processes are passed over. */
#include "nsys.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "trace/job/bytes.h"
#include "trace/job/call_names.h"
#include "trace/foreign_sql.h"
#include "base/array.h"

enum { MOST_BYTES = 1 << 30 };

struct nsys {
    sqlite3 *db;
    const char *path;
    struct job *job;
    struct diag *diag;
    size_t first_rank; /* of this file */
    int64_t *pids;     /* of its ranks */
    size_t pid_cap;
    size_t kept; /* rows with times */
    struct job_reversed reversed;
    enum status
        asked; /* whether tables and columns could be asked for: else an error, that was told */
};

/* ---- the file -------------------------------------------------------------------------------- */

/* The whole text of a compressed file, in memory of SQLite. */
static enum status inflate_file(const char *path, unsigned char **out, size_t *length,
                                struct diag *diag)
{
    struct bytes *bytes;
    size_t cap = 1 << 20, got = 1;
    enum status status = bytes_open(path, &bytes, diag);
    if (status != STATUS_OK)
        return status;
    unsigned char *data = sqlite3_malloc64(cap);
    if (!data)
        status = diag_no_memory(diag);
    *length = 0;
    while (status == STATUS_OK && got > 0) {
        if (*length == cap) {
            unsigned char *more = cap < MOST_BYTES ? sqlite3_realloc64(data, cap * 2) : NULL;
            if (!more) {
                status =
                    cap < MOST_BYTES
                        ? diag_no_memory(diag)
                        : diag_error(diag, STATUS_INPUT,
                                     "%s: larger than 1 GiB; unpack it first with gunzip", path);
                break;
            }
            data = more;
            cap *= 2;
        }
        status = bytes_read(bytes, data + *length, cap - *length, &got, diag);
        *length += status == STATUS_OK ? got : 0;
    }
    bytes_close(bytes);
    if (status == STATUS_OK)
        *out = data;
    else
        sqlite3_free(data);
    return status;
}

static bool is_compressed(const char *path)
{
    unsigned char head[2] = {0};
    FILE *file = fopen(path, "rb");
    const bool read = file && fread(head, 1, sizeof head, file) == sizeof head;
    if (file)
        fclose(file);
    return read && head[0] == 0x1f && head[1] == 0x8b;
}

static enum status unreadable(const struct nsys *nsys)
{
    const int code = nsys->db ? sqlite3_errcode(nsys->db) & 0xff : SQLITE_NOMEM;
    if (code == SQLITE_NOMEM)
        return diag_no_memory(nsys->diag);
    if (code == SQLITE_IOERR || code == SQLITE_CANTOPEN || code == SQLITE_BUSY)
        return diag_error(nsys->diag, STATUS_SYSTEM, "cannot read %s: %s", nsys->path,
                          sqlite3_errmsg(nsys->db));
    return diag_error(nsys->diag, STATUS_INPUT,
                      "%s: the export of Nsight Systems cannot be read: %s", nsys->path,
                      sqlite3_errmsg(nsys->db));
}

static enum status nsys_open_file(struct nsys *nsys)
{
    if (!is_compressed(nsys->path))
        return sqlite3_open_v2(nsys->path, &nsys->db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK
                   ? STATUS_OK
                   : unreadable(nsys);
    unsigned char *data;
    size_t length;
    enum status status = inflate_file(nsys->path, &data, &length, nsys->diag);
    if (status != STATUS_OK)
        return status;
    if (sqlite3_open_v2(":memory:", &nsys->db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) {
        sqlite3_free(data);
        return unreadable(nsys);
    }
    /* The database owns the data from here on, also if this fails. */
    return sqlite3_deserialize(nsys->db, "main", data, (sqlite3_int64)length, (sqlite3_int64)length,
                               SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY) ==
                   SQLITE_OK
               ? STATUS_OK
               : unreadable(nsys);
}

/* ---- tables and columns ---------------------------------------------------------------------- */

/* True if the file has this table, with this column (NULL: whatever its columns). A question without an answer is told
   once, and ends the reading at the next query. */
static bool nsys_has(struct nsys *nsys, const char *table, const char *column)
{
    static const char question[] =
        "SELECT 1 FROM pragma_table_info(?1) WHERE ?2 IS NULL OR name = ?2";
    sqlite3_stmt *statement = NULL;
    if (nsys->asked != STATUS_OK)
        return false;
    /* The second value is NULL until a text is bound to it. */
    bool ready =
        sqlite3_prepare_v2(nsys->db, question, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC) == SQLITE_OK &&
        (!column || sqlite3_bind_text(statement, 2, column, -1, SQLITE_STATIC) == SQLITE_OK);
    const int answer = ready ? sqlite3_step(statement) : SQLITE_ERROR;
    if (answer != SQLITE_ROW && answer != SQLITE_DONE)
        nsys->asked = unreadable(nsys);
    sqlite3_finalize(statement);
    return answer == SQLITE_ROW;
}

/* "column", or "-1" where the table has none of this name. */
static const char *column(struct nsys *nsys, const char *table, const char *name)
{
    return nsys_has(nsys, table, name) ? name : "-1";
}

/* Hand each row of a query to `row`, until one fails. */
typedef enum status row_use(struct nsys *nsys, sqlite3_stmt *row);
static enum status each(struct nsys *nsys, const char *query, row_use *use)
{
    sqlite3_stmt *statement;
    enum status status = STATUS_OK;
    int result;
    if (nsys->asked != STATUS_OK)
        return nsys->asked;
    if (!query)
        return diag_no_memory(nsys->diag);
    if (sqlite3_prepare_v2(nsys->db, query, -1, &statement, NULL) != SQLITE_OK)
        return unreadable(nsys);
    while ((result = sqlite3_step(statement)) == SQLITE_ROW && status == STATUS_OK)
        status = use(nsys, statement);
    if (status == STATUS_OK && result != SQLITE_DONE)
        status = unreadable(nsys);
    sqlite3_finalize(statement);
    return status;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The process bits that globalPid and globalTid share. */
static int64_t nsys_process_of(int64_t global)
{
    return global & ~INT64_C(0xffffff);
}

/* The rank of a process; NULL: it has none. */
static struct job_rank *find_rank(const struct nsys *nsys, int64_t pid)
{
    for (size_t i = 0; nsys->first_rank + i < nsys->job->rank_count; i++)
        if (nsys->pids[i] == pid)
            return &nsys->job->ranks[nsys->first_rank + i];
    return NULL;
}

static struct job_rank *rank_of_work(struct nsys *nsys, int64_t pid)
{
    struct job_rank *rank = find_rank(nsys, pid);
    if (rank)
        return rank;
    const size_t place = nsys->job->rank_count - nsys->first_rank;
    if (!ARENA_GROW(&nsys->job->arena, nsys->pids, place, nsys->pid_cap))
        return NULL;
    nsys->pids[place] = pid;
    return job_add_rank(nsys->job, nsys->path);
}

/* CUPTI's kinds of memory copies. */
static enum direction nsys_direction_of(int kind)
{
    enum { HOST_TO_DEVICE = 1, DEVICE_TO_HOST = 2, HOST_TO_ARRAY = 3, ARRAY_TO_HOST = 4 };
    return kind == HOST_TO_DEVICE || kind == HOST_TO_ARRAY   ? DIRECTION_H2D
           : kind == DEVICE_TO_HOST || kind == ARRAY_TO_HOST ? DIRECTION_D2H
                                                             : DIRECTION_D2D;
}

/* Whether the times of a row are of use. One that ends before it begins is left out with STATUS_OK, times that no clock
   shows are refused. */
static bool has_times(struct nsys *nsys, int64_t start_ns, int64_t end_ns, const char *name,
                      enum status *status)
{
    *status = STATUS_OK;
    if (end_ns < start_ns) {
        job_leave_out(&nsys->reversed, name);
        return false;
    }
    if (!job_times_are_sane(start_ns, end_ns)) {
        *status = diag_error(nsys->diag, STATUS_INPUT,
                             "%s: '%.60s' begins or ends at an impossible time", nsys->path, name);
        return false;
    }
    nsys->kept++;
    return true;
}

/* As PyTorch's profiler names copies. */
static const char *copy_name(enum direction direction)
{
    switch (direction) {
    case DIRECTION_H2D: return "Memcpy HtoD";
    case DIRECTION_D2H: return "Memcpy DtoH";
    case DIRECTION_D2D: break;
    }
    return "Memcpy DtoD";
}

/* start, end, process, device, stream, correlation, class, name, bytes, kind of copy, pageable */
static enum status nsys_take_work(struct nsys *nsys, sqlite3_stmt *row)
{
    enum { START, END, PID, DEVICE, STREAM, CORRELATION, CLASS, NAME, BYTES, KIND, PAGEABLE };
    char name[PLAN_MAX_NAME];
    enum status status;
    const char *text = (const char *)sqlite3_column_text(row, NAME);
    struct job_work work = {.start_ns = sqlite3_column_int64(row, START),
                            .end_ns = sqlite3_column_int64(row, END),
                            .correlation = sqlite3_column_int64(row, CORRELATION),
                            .class = (enum work_class)sqlite3_column_int(row, CLASS),
                            .bytes = sqlite3_column_int64(row, BYTES),
                            .direction = nsys_direction_of(sqlite3_column_int(row, KIND)),
                            .pageable = sqlite3_column_int(row, PAGEABLE) != 0,
                            .call = -1,
                            .group = -1};
    text = work.class == CLASS_COPY ? copy_name(work.direction) : text ? text : "kernel";
    if (!has_times(nsys, work.start_ns, work.end_ns, text, &status))
        return status;
    struct job_rank *rank = rank_of_work(nsys, nsys_process_of(sqlite3_column_int64(row, PID)));
    if (!rank)
        return diag_no_memory(nsys->diag);
    work.bytes = work.bytes > 0 ? work.bytes : 0;
    enum collective_kind collective = work.collective;
    if (work.class == CLASS_KERNEL)
        work.is_collective = kernel_is_collective(text, &collective);
    work.collective = collective;
    work.stream =
        job_stream(rank, sqlite3_column_int64(row, DEVICE), sqlite3_column_int64(row, STREAM));
    if (work.class != CLASS_COPY)
        text = kernel_short_name(text, name, sizeof name);
    work.name = job_intern(nsys->job, text);
    return work.stream >= 0 && work.name >= 0 && job_add_work(rank, &work)
               ? STATUS_OK
               : diag_no_memory(nsys->diag);
}

static int nsys_thread_of(const struct nsys *nsys, struct job_rank *rank, int64_t tid)
{
    char thread[32];
    snprintf(thread, sizeof thread, "%lld", (long long)(tid & 0xffffff));
    return names_intern(&rank->threads, &nsys->job->arena, thread);
}

/* start, end, thread, correlation, name */
static enum status take_call(struct nsys *nsys, sqlite3_stmt *row)
{
    enum { START, END, TID, CORRELATION, NAME };
    enum status status;
    const char *text = (const char *)sqlite3_column_text(row, NAME);
    const int64_t tid = sqlite3_column_int64(row, TID);
    struct job_rank *rank = find_rank(nsys, nsys_process_of(tid));
    struct job_call call = {.start_ns = sqlite3_column_int64(row, START),
                            .end_ns = sqlite3_column_int64(row, END),
                            .correlation = sqlite3_column_int64(row, CORRELATION),
                            .sync = -1};
    if (!rank || !text || !call_kind_of(text, &call.kind))
        return STATUS_OK;
    if (!has_times(nsys, call.start_ns, call.end_ns, text, &status))
        return status;
    call.name = job_intern(nsys->job, text);
    call.thread = nsys_thread_of(nsys, rank, tid);
    return call.name >= 0 && call.thread >= 0 && job_add_call(rank, &call)
               ? STATUS_OK
               : diag_no_memory(nsys->diag);
}

/* start, end, thread, name: a range of NVTX. Operators of PyTorch and calls of NCCL are no annotations of a program. */
static enum status take_range(struct nsys *nsys, sqlite3_stmt *row)
{
    enum { START, END, TID, NAME };
    enum status status;
    const char *text = (const char *)sqlite3_column_text(row, NAME);
    const int64_t tid = sqlite3_column_int64(row, TID);
    struct job_rank *rank = find_rank(nsys, nsys_process_of(tid));
    struct job_range range = {.start_ns = sqlite3_column_int64(row, START),
                              .end_ns = sqlite3_column_int64(row, END)};
    if (!rank || !text || strncmp(text, "nccl", 4) == 0 || strstr(text, ", op_id = ") ||
        strstr(text, ", seq = "))
        return STATUS_OK;
    if (!has_times(nsys, range.start_ns, range.end_ns, text, &status))
        return status;
    range.name = job_intern(nsys->job, text);
    range.thread = nsys_thread_of(nsys, rank, tid);
    return range.name >= 0 && range.thread >= 0 && job_add_range(rank, &range)
               ? STATUS_OK
               : diag_no_memory(nsys->diag);
}

/* process, correlation, stream, type */
static enum status take_sync(struct nsys *nsys, sqlite3_stmt *row)
{
    enum { PID, CORRELATION, STREAM, TYPE, EVENT_SYNC = 1, STREAM_WAITS = 2, STREAM_SYNC = 3 };
    const int type = sqlite3_column_int(row, TYPE);
    struct job_rank *rank = find_rank(nsys, nsys_process_of(sqlite3_column_int64(row, PID)));
    const struct job_sync sync = {.correlation = sqlite3_column_int64(row, CORRELATION),
                                  .stream = type == STREAM_WAITS || type == STREAM_SYNC
                                                ? sqlite3_column_int64(row, STREAM)
                                                : -1,
                                  .source_stream = -1,
                                  .is_event = type == EVENT_SYNC || type == STREAM_WAITS,
                                  .record = -1};
    return !rank || job_add_sync(rank, &sync) ? STATUS_OK : diag_no_memory(nsys->diag);
}

/* ---- queries --------------------------------------------------------------------------------- */

/* The name of a row: that of StringIds, or `otherwise`. */
static const char *name_column(struct nsys *nsys, const char *table, const char *name,
                               const char *otherwise, char *out, size_t cap)
{
    if (!nsys_has(nsys, table, name) || !nsys_has(nsys, "StringIds", "value"))
        snprintf(out, cap, "'%s'", otherwise);
    else
        snprintf(out, cap, "(SELECT value FROM StringIds WHERE id = t.%s)", name);
    return out;
}

/* The process of a row; without a column for it that of the first thread that calls. */
static const char *process_column(struct nsys *nsys, const char *table)
{
    if (nsys_has(nsys, table, "globalPid") ||
        !nsys_has(nsys, "CUPTI_ACTIVITY_KIND_RUNTIME", "globalTid"))
        return column(nsys, table, "globalPid");
    return "(SELECT min(globalTid) FROM CUPTI_ACTIVITY_KIND_RUNTIME)";
}

static enum status read_works(struct nsys *nsys, const char *table, enum work_class class,
                              const char *named, const char *otherwise)
{
    char name[200], pageable[100] = "0";
    if (!nsys_has(nsys, table, NULL))
        return nsys->asked;
    /* Nsight's own numbers of memories, not CUPTI's: 0 is pageable. */
    if (nsys_has(nsys, table, "srcKind") && nsys_has(nsys, table, "dstKind"))
        snprintf(pageable, sizeof pageable, "(srcKind = 0 OR dstKind = 0)");
    char *query = sqlite3_mprintf(
        "SELECT start, \"end\", %s, %s, %s, %s, %d, %s, %s, %s, %s FROM %s t ORDER BY 3, start",
        process_column(nsys, table), column(nsys, table, "deviceId"),
        column(nsys, table, "streamId"), column(nsys, table, "correlationId"), (int)class,
        name_column(nsys, table, named, otherwise, name, sizeof name), column(nsys, table, "bytes"),
        column(nsys, table, "copyKind"), pageable, table);
    enum status status = each(nsys, query, nsys_take_work);
    sqlite3_free(query);
    return status;
}

static enum status nsys_read_calls(struct nsys *nsys)
{
    static const char table[] = "CUPTI_ACTIVITY_KIND_RUNTIME";
    char name[200];
    if (!nsys_has(nsys, table, NULL))
        return nsys->asked;
    char *query = sqlite3_mprintf(
        "SELECT start, \"end\", %s, %s, %s FROM %s t ORDER BY start",
        column(nsys, table, "globalTid"), column(nsys, table, "correlationId"),
        name_column(nsys, table, "nameId", "cudaLaunchKernel", name, sizeof name), table);
    enum status status = each(nsys, query, take_call);
    sqlite3_free(query);
    return status;
}

/* Ranges that a thread pushed and popped. The text stands in the row, or it is one of StringIds. */
static enum status read_ranges(struct nsys *nsys)
{
    enum { PUSH_POP = 59 };
    static const char table[] = "NVTX_EVENTS";
    char name[200];
    if (!nsys_has(nsys, table, "eventType") || !nsys_has(nsys, table, "end"))
        return nsys->asked;
    char *query = sqlite3_mprintf(
        "SELECT start, \"end\", %s, coalesce(%s, %s) FROM %s t "
        "WHERE eventType = %d AND \"end\" IS NOT NULL ORDER BY start",
        column(nsys, table, "globalTid"), nsys_has(nsys, table, "text") ? "text" : "NULL",
        nsys_has(nsys, table, "textId") ? name_column(nsys, table, "textId", "", name, sizeof name)
                                        : "NULL",
        table, (int)PUSH_POP);
    enum status status = each(nsys, query, take_range);
    sqlite3_free(query);
    return status;
}

static enum status read_syncs(struct nsys *nsys)
{
    static const char table[] = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
    if (!nsys_has(nsys, table, "syncType"))
        return nsys->asked;
    char *query = sqlite3_mprintf("SELECT %s, %s, %s, syncType FROM %s",
                                  process_column(nsys, table), column(nsys, table, "correlationId"),
                                  column(nsys, table, "streamId"), table);
    enum status status = each(nsys, query, take_sync);
    sqlite3_free(query);
    return status;
}

static enum status read_tables(struct nsys *nsys)
{
    enum status status =
        read_works(nsys, "CUPTI_ACTIVITY_KIND_KERNEL", CLASS_KERNEL, "demangledName", "kernel");
    if (status == STATUS_OK)
        status = read_works(nsys, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", CLASS_KERNEL, "", "graph");
    if (status == STATUS_OK)
        status = read_works(nsys, "CUPTI_ACTIVITY_KIND_MEMCPY", CLASS_COPY, "", "Memcpy");
    if (status == STATUS_OK)
        status = read_works(nsys, "CUPTI_ACTIVITY_KIND_MEMSET", CLASS_MEMSET, "", "Memset");
    if (status == STATUS_OK)
        status = nsys_read_calls(nsys);
    if (status == STATUS_OK)
        status = read_syncs(nsys);
    if (status == STATUS_OK)
        status = read_ranges(nsys);
    if (status == STATUS_OK)
        status = job_check_reversed(&nsys->reversed, nsys->kept, nsys->path, nsys->diag);
    if (status == STATUS_OK && nsys->job->rank_count == nsys->first_rank)
        status = diag_error(nsys->diag, STATUS_INPUT, "%s: no work of a GPU is recorded in it",
                            nsys->path);
    return status;
}

/* A file of SQLite, of another program. */
static enum status nsys_refuse(struct nsys *nsys)
{
    const bool store = nsys_has(nsys, "run", NULL) && nsys_has(nsys, "span", NULL);
    if (nsys->asked != STATUS_OK)
        return nsys->asked;
    return diag_error(nsys->diag, STATUS_INPUT,
                      "%s: a file of SQLite, but not an export of Nsight Systems%s", nsys->path,
                      store ? ": a trace store, which 'swsim runs' lists" : "");
}

enum status nsys_read(const char *path, struct job *job, struct diag *diag)
{
    struct nsys nsys = {.path = path, .job = job, .diag = diag, .first_rank = job->rank_count};
    enum status status = nsys_open_file(&nsys);
    if (status == STATUS_OK && !foreign_sql_distrust(nsys.db))
        status = unreadable(&nsys);
    if (status == STATUS_OK)
        status = nsys_has(&nsys, "StringIds", NULL) ? read_tables(&nsys) : nsys_refuse(&nsys);
    sqlite3_close(nsys.db);
    return status;
}
