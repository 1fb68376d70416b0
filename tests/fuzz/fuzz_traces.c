/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_traces.c - traces of profilers on their way to a plan. A trace that becomes a plan prints as a text that reads
 * back as itself, and has a run that can be stored.
 *
 * For `chakra` it is the execution trace of rank 0 of two. For `kineto` the input is one trace or several, with a line `====` between them; one with "nodes" is an execution trace. For `nsys` it changes an export of two
 * processes (sql.h), unless it begins as SQLite's files do.
 */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/job/host_form.h"
#include "trace/import/chakra.h"
#include "trace/import/execution.h"
#include "trace/import/import.h"
#include "trace/import/kineto.h"
#include "trace/import/kineto_operators.h"
#include "trace/import/meetings.h"
#include "trace/import/nsys.h"
#include "trace/import/record.h"
#include "sql.h"
#include "targets.h"

/* ---- from a job on ----------------------------------------------------------------------------- */

static void record(const struct imported *imported)
{
    struct diag diag;
    struct trace trace;
    struct arena arena;
    fuzz_diag_begin(&diag);
    arena_init(&arena, 0);
    trace_init(&trace, &arena);
    enum status status = import_record(imported, &trace, &diag);
    arena_fini(&arena);
    fuzz_diag_end(&diag, status == STATUS_OK);
}

/* The execution traces of the input that is run. */
static struct execution executions[2];
static size_t execution_count;

static enum status find_evidence(struct imported *imported, struct diag *diag)
{
    enum status status = STATUS_OK;
    imported->evidence = calloc(imported->job.rank_count, sizeof *imported->evidence);
    FUZZ_EXPECT(imported->evidence);
    for (size_t r = 0; status == STATUS_OK && r < imported->job.rank_count; r++)
        status = evidence_find(&imported->job.ranks[r], &imported->evidence[r], diag);
    return status;
}

/* The ranks that were read become a plan, as an import of them would. */
static enum status make_plan(struct imported *imported, size_t variant, struct diag *diag)
{
    const struct host_calls_options form = {
        .name = "fuzz", .launch_queue = 1024, .opaque = variant % 2 > 0};
    enum status status = variant % 8 == 7 ? job_keep_steps(&imported->job, 1, 2, diag) : STATUS_OK;
    if (status == STATUS_OK)
        status = job_finish(&imported->job, diag);
    if (status == STATUS_OK && imported->job.rank_count > 1)
        status = meetings_align(&imported->job, diag);
    const bool as_pipeline = variant % 5 == 4;
    const struct pipeline_form_options pipeline = {"fuzz", 20000, variant % 2 > 0};
    if (status == STATUS_OK && execution_count > 0)
        status = execution_join(&imported->job, executions, execution_count, !as_pipeline, diag);
    if (status == STATUS_OK)
        status = find_evidence(imported, diag);
    if (status == STATUS_OK && as_pipeline)
        status = pipeline_form(&imported->job, imported->evidence, &pipeline, &imported->job.arena,
                               &imported->plan, &imported->tasks, diag);
    else if (status == STATUS_OK)
        status = host_calls(&imported->job, imported->evidence, &form, diag);
    if (status == STATUS_OK && !as_pipeline)
        status = host_form(&imported->job, &imported->plan, diag);
    if (status != STATUS_OK)
        return status;
    fuzz_print_again(&imported->plan);
    record(imported);
    import_report(imported, fuzz_sink());
    return STATUS_OK;
}

typedef enum status read_job(const void *input, size_t size, struct job *job, struct diag *diag);

static void import_with(read_job *read, const void *input, size_t size)
{
    struct diag diag;
    struct imported imported = {0};
    fuzz_diag_begin(&diag);
    job_init(&imported.job);
    plan_init(&imported.plan);
    enum status status = read(input, size, &imported.job, &diag);
    if (status == STATUS_OK)
        status = make_plan(&imported, size, &diag);
    import_fini(&imported);
    fuzz_diag_end(&diag, status == STATUS_OK);
}

/* ---- Kineto ------------------------------------------------------------------------------------ */

static enum status read_trace(const char *text, size_t length, struct job *job, struct diag *diag)
{
    struct bytes *bytes;
    enum status status = bytes_open_memory("fuzz.json", text, length, &bytes, diag);
    if (status != STATUS_OK)
        return status;
    if (!memmem(text, length, "\"nodes\"", 7))
        status = kineto_read(bytes, job, diag);
    else if (execution_count < sizeof executions / sizeof *executions)
        status = execution_read(bytes, &job->arena, &executions[execution_count++], diag);
    bytes_close(bytes);
    return status;
}

static enum status read_traces(const void *input, size_t size, struct job *job, struct diag *diag)
{
    static const char between[] = "\n====\n";
    const char *at = input, *end = at + size;
    enum status status = STATUS_OK;
    execution_count = 0;
    job->wants_operators = true;
    while (status == STATUS_OK && at) {
        const char *next = memmem(at, (size_t)(end - at), between, sizeof between - 1);
        status = read_trace(at, (size_t)((next ? next : end) - at), job, diag);
        at = next ? next + sizeof between - 1 : NULL;
    }
    return status;
}

/* The times of its operators. */
static enum status read_operators(const void *input, size_t size, struct job *job,
                                  struct diag *diag)
{
    struct operator_times times = {0};
    struct bytes *bytes;
    enum status status = bytes_open_memory("fuzz.json", input, size, &bytes, diag);
    if (status != STATUS_OK)
        return status;
    status = kineto_operators_read(bytes, &job->arena, &times, diag);
    bytes_close(bytes);
    for (size_t i = 0; status == STATUS_OK && i < times.count; i++)
        FUZZ_EXPECT(times.items[i].device_ns > 0 && times.items[i].count > 0);
    return status;
}

void fuzz_kineto(const uint8_t *data, size_t size)
{
    struct diag diag;
    struct job job;
    import_with(read_traces, data, size);
    fuzz_diag_begin(&diag);
    job_init(&job);
    const enum status status = read_operators(data, size, &job, &diag);
    job_fini(&job);
    fuzz_diag_end(&diag, status == STATUS_OK);
}

/* ---- Chakra ------------------------------------------------------------------------------------ */

void fuzz_chakra(const uint8_t *data, size_t size)
{
    struct diag diag;
    struct job job;
    struct plan plan;
    struct bytes *bytes;
    fuzz_diag_begin(&diag);
    job_init(&job);
    plan_init(&plan);
    job.plan.ranks = 2;
    enum status status = bytes_open_memory("fuzz.et", data, size, &bytes, &diag);
    if (status == STATUS_OK) {
        status = chakra_read(bytes, 0, "fuzz", &job, &diag);
        bytes_close(bytes);
    }
    if (status == STATUS_OK)
        status = host_form(&job, &plan, &diag);
    if (status == STATUS_OK)
        fuzz_print_again(&plan);
    plan_fini(&plan);
    job_fini(&job);
    fuzz_diag_end(&diag, status == STATUS_OK);
}

/* ---- Nsight Systems ---------------------------------------------------------------------------- */

/* Two processes, 7 and 8, of which each copies, computes and reduces; and a CUDA graph. */
static const char good_export[] =
    "PRAGMA page_size = 512;"
    "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
    "INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'void f<int>(int)'),"
    " (3, 'cudaStreamSynchronize_v3020'), (4, 'ncclDevKernel_AllReduce_Sum_f32_RING_LL'),"
    " (5, 'cudaMemcpyAsync_v3020'), (6, 'cudaStreamWaitEvent_v3020'), (7, 'cudaEventRecord_v3020'),"
    " (8, 'cudaGraphLaunch_v10000');"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, \"end\" INTEGER, globalTid INTEGER,"
    " correlationId INTEGER, nameId INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, \"end\" INTEGER, deviceId INTEGER,"
    " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, \"end\" INTEGER, deviceId INTEGER,"
    " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER,"
    " srcKind INTEGER, dstKind INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, \"end\" INTEGER,"
    " deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER, \"end\" INTEGER,"
    " globalPid INTEGER, correlationId INTEGER, streamId INTEGER, syncType INTEGER);"
    "WITH p(n) AS (VALUES (7), (8)) INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME"
    " SELECT c.column1 + 100 * n, c.column2 + 100 * n, (n << 24) + n, c.column3, c.column4 FROM p,"
    " (VALUES (1000, 6000, 1, 5), (7000, 7500, 2, 7), (8000, 8500, 3, 6), (9000, 14000, 4, 1),"
    "  (15000, 20000, 5, 1), (21000, 26000, 6, 8), (27000, 200000, 7, 3)) c;"
    "WITH p(n) AS (VALUES (7), (8)) INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL"
    " SELECT c.column1, c.column2, n - 7, c.column3, c.column4, n << 24, c.column5 FROM p,"
    " (VALUES (40000, 80000, 7, 4, 2), (90000, 120000, 9, 5, 4)) c;"
    "WITH p(n) AS (VALUES (7), (8)) INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY"
    " SELECT 12000, 38000, n - 7, 8, 1, n << 24, 4096, 1, 0, 2 FROM p;"
    "WITH p(n) AS (VALUES (7), (8)) INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
    " SELECT 121000, 190000, n - 7, 7, 6, n << 24 FROM p;"
    "WITH p(n) AS (VALUES (7), (8)) INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
    " SELECT 27000, 200000, n << 24, 7, 7, 3 FROM p;";

/* Its bytes, made once. */
static const void *good_file(size_t *bytes)
{
    static unsigned char *image;
    static sqlite3_int64 image_bytes;
    sqlite3 *db;
    if (!image) {
        FUZZ_EXPECT(sqlite3_open(":memory:", &db) == SQLITE_OK);
        FUZZ_EXPECT(sqlite3_exec(db, good_export, NULL, NULL, NULL) == SQLITE_OK);
        image = sqlite3_serialize(db, "main", &image_bytes, 0);
        sqlite3_close(db);
        FUZZ_EXPECT(image);
    }
    *bytes = (size_t)image_bytes;
    return image;
}

/* A file that goes away with this process. */
static const char *export_path(void)
{
    static char path[64];
    if (!*path)
        snprintf(path, sizeof path, "%s/swsim-fuzz-%ld.sqlite",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (long)getpid());
    return path;
}

static void remove_export(void)
{
    (void)unlink(export_path());
}

static void write_export(const void *data, size_t bytes)
{
    static bool registered;
    if (!registered)
        FUZZ_EXPECT(atexit(remove_export) == 0);
    registered = true;
    int file = open(export_path(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_EXPECT(file >= 0 && write(file, data, bytes) == (ssize_t)bytes);
    close(file);
}

static enum status read_export(const void *input, size_t size, struct job *job, struct diag *diag)
{
    static const char magic[] = "SQLite format 3";
    size_t bytes;
    if (size >= sizeof magic && memcmp(input, magic, sizeof magic) == 0) {
        write_export(input, size);
        return nsys_read(export_path(), job, diag);
    }
    char *text = fuzz_text(input, size);
    const void *good = good_file(&bytes);
    uint8_t *changed = sql_changed(good, text, &bytes);
    write_export(changed, bytes);
    sqlite3_free(changed);
    free(text);
    return nsys_read(export_path(), job, diag);
}

void fuzz_nsys(const uint8_t *data, size_t size)
{
    execution_count = 0;
    import_with(read_export, data, size);
}
