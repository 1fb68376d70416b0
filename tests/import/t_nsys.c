/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_nsys.c - an export of Nsight Systems that SQLite has no memory for, or whose pages are spoiled: it is read as it is or
 * not at all. A column that cannot be asked for is no column that is missing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/import/nsys.h"
#include "tests/harness.h"
#include "tests/refused_sql.h"
#include "tests/tap.h"

/* Two processes, work of three kinds, calls, a wait and a range; each of the columns that versions may lack. */
static const char tables[] =
    "CREATE TABLE StringIds (id INTEGER, value TEXT);"
    "INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'void f<int>(int)'),"
    " (3, 'cudaStreamSynchronize_v3020'), (4, 'step'), (5, 'cudaMemcpyAsync_v3020');"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, \"end\" INTEGER, globalTid INTEGER,"
    " correlationId INTEGER, nameId INTEGER);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1000, 6000, 117440519, 1, 1),"
    " (7000, 8000, 117440520, 2, 5), (9000, 111000, 117440519, 3, 3),"
    " (1000, 6000, 134217735, 1, 1);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, \"end\" INTEGER, deviceId INTEGER,"
    " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10000, 50000, 0, 7, 1, 117440512, 2),"
    " (10000, 60000, 1, 9, 1, 134217728, 2);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, \"end\" INTEGER, deviceId INTEGER,"
    " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER,"
    " srcKind INTEGER, dstKind INTEGER);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (50000, 90000, 0, 8, 2, 117440512, 4096, 1, 0, "
    "2);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER, \"end\" INTEGER,"
    " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, syncType INTEGER);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (9000, 111000, 7, 3, 117440512, 3);"
    "CREATE TABLE NVTX_EVENTS (start INTEGER, \"end\" INTEGER, eventType INTEGER, text TEXT,"
    " textId INTEGER, globalTid INTEGER);"
    "INSERT INTO NVTX_EVENTS VALUES (500, 112000, 59, NULL, 4, 117440519);";

static bool write_export(const char *path)
{
    sqlite3 *db = NULL;
    bool written = sqlite3_open(path, &db) == SQLITE_OK &&
                   sqlite3_exec(db, tables, NULL, NULL, NULL) == SQLITE_OK;
    sqlite3_close(db);
    return written;
}

static const char *name_of(const struct job *job, int number)
{
    return job->names.items[number];
}

/* All that was read, as a text. */
static void put_job(FILE *out, const struct job *job)
{
    for (size_t r = 0; r < job->rank_count; r++) {
        const struct job_rank *rank = &job->ranks[r];
        fprintf(out, "rank %zu\n", r);
        for (size_t i = 0; i < rank->work_count; i++) {
            const struct job_work *work = &rank->works[i];
            fprintf(out, "work %s %d %d %lld %lld %lld %lld %d %d\n", name_of(job, work->name),
                    work->stream, (int)work->class, (long long)work->start_ns,
                    (long long)work->end_ns, (long long)work->bytes, (long long)work->correlation,
                    (int)work->direction, work->pageable);
        }
        for (size_t i = 0; i < rank->call_count; i++)
            fprintf(out, "call %s %d %lld\n", name_of(job, rank->calls[i].name),
                    rank->calls[i].thread, (long long)rank->calls[i].correlation);
        for (size_t i = 0; i < rank->sync_count; i++)
            fprintf(out, "sync %lld %lld\n", (long long)rank->syncs[i].correlation,
                    (long long)rank->syncs[i].stream);
        for (size_t i = 0; i < rank->range_count; i++)
            fprintf(out, "range %s %d\n", name_of(job, rank->ranges[i].name),
                    rank->ranges[i].thread);
    }
}

struct end {
    enum status status;
    bool reached;
    size_t told; /* errors, or that memory ran out */
    char *text;  /* what was read */
};

/* With the allocation `refused` of SQLite refused. The caller frees the text. */
static struct end read_with(const char *path, long refused)
{
    struct end end = {.text = NULL};
    struct job job;
    struct diag diag;
    size_t bytes;
    FILE *out = open_memstream(&end.text, &bytes);
    job_init(&job);
    diag_init(&diag);
    before_refusal = refused;
    end.status = nsys_read(path, &job, &diag);
    end.reached = refused >= 0 && before_refusal < 0;
    before_refusal = -1;
    end.told = diag.errors + diag.out_of_memory;
    put_job(out, &job);
    fclose(out);
    diag_fini(&diag);
    job_fini(&job);
    return end;
}

static void test_without_memory(const char *path, const char *want)
{
    long refused = 0, other = 0, silent = 0, bad = 0;
    for (bool reached = true; reached; refused++) {
        struct end end = read_with(path, refused);
        reached = end.reached;
        other += end.status == STATUS_OK && strcmp(end.text, want) != 0;
        silent += end.status != STATUS_OK && end.told != 1;
        bad += end.status != STATUS_OK && end.status != STATUS_SYSTEM;
        free(end.text);
    }
    tap_ok(refused > 100, "%ld allocations of SQLite are refused", refused - 1);
    tap_is_int(other, 0, "exports of which only a part is read");
    tap_is_int(silent, 0, "failures without a message, or with two");
    tap_is_int(bad, 0, "exports that are called bad ones");
}

/* Each page is overwritten in turn. */
static void test_spoiled(const char *path, const char *want)
{
    enum { PAGE = 4096 };
    static const char junk[PAGE] = "no page of a database";
    long pages = 0, refused = 0, silent = 0;
    char original[PAGE];
    FILE *file = fopen(path, "r+b");
    while (file && fseek(file, pages * PAGE, SEEK_SET) == 0 &&
           fread(original, 1, PAGE, file) == PAGE) {
        fseek(file, pages * PAGE, SEEK_SET);
        fwrite(junk, 1, PAGE, file);
        fflush(file);
        struct end end = read_with(path, -1);
        refused += end.status == STATUS_INPUT && end.told == 1;
        silent += end.status == STATUS_OK && strcmp(end.text, want) != 0;
        free(end.text);
        fseek(file, pages++ * PAGE, SEEK_SET);
        fwrite(original, 1, PAGE, file);
        fflush(file);
    }
    if (file)
        fclose(file);
    tap_ok(pages > 5 && refused == pages, "%ld of %ld spoiled pages are refused", refused, pages);
    tap_is_int(silent, 0, "spoiled exports of which only a part is read");
}

int main(void)
{
    const char *path = path_temp("export.sqlite");
    tap_ok(refused_sql_begin() && write_export(path), "an export is written");
    struct end whole = read_with(path, -1);
    tap_ok(whole.status == STATUS_OK && strstr(whole.text, "work f") &&
               strstr(whole.text, "range step"),
           "and read");
    test_without_memory(path, whole.text);
    test_spoiled(path, whole.text);
    free(whole.text);
    return tap_done();
}
