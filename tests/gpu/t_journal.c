/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_journal.c - the trace of a run and its disk: a slow one holds the run up, and nothing is left out;
 * memory stays within its bound; a full one ends the run and is named.
 *
 * The disk is SQLite's own, through a VFS whose writes nap, or fail.
 */
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "plan/text/parse.h"
#include "base/processors.h"
#include "gpu/record/journal.h"
#include "gpu/exec/runtime.h"
#include "gpu/lib/swpipe.h"
#include "tests/harness.h"
#include "tests/tap.h"

static const char plan_text[] =
    "swplan: 1\n"
    "name: quick\n"
    "schedule:\n"
    "  Load: {stage: 0, stream: memcpy, thread_group: io, writes: [x]}\n"
    "  Forward: {stage: 1, reads: [x]}\n"
    "intra_iter_deps: [[Forward, Load]]\n"
    "buffers: {x: {scope: iteration, bytes: 4KiB}}\n";

/* ---- a disk ------------------------------------------------------------------------------------ */

static sqlite3_vfs disk, *real_disk;
/* Databases and journals have methods of their own. `own` first: that is what a file points to. */
static struct kind {
    sqlite3_io_methods own;
    const sqlite3_io_methods *real;
} kinds[4];
static atomic_int nap_every, fail_after, writes; /* 0: never; -1: never; since they were set */

static int write_file(sqlite3_file *file, const void *data, int bytes, sqlite3_int64 at)
{
    int count = atomic_fetch_add(&writes, 1) + 1, every = atomic_load(&nap_every),
        after = atomic_load(&fail_after);
    if (after >= 0 && count > after)
        return SQLITE_FULL;
    if (every && count % every == 0)
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    return ((const struct kind *)file->pMethods)->real->xWrite(file, data, bytes, at);
}

static const sqlite3_io_methods *own_methods(const sqlite3_io_methods *real)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct kind *kind = &kinds[i];
        if (!kind->real) {
            *kind = (struct kind){*real, real};
            kind->own.xWrite = write_file;
        }
        if (kind->real == real)
            return &kind->own;
    }
    return real;
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    (void)vfs;
    int failed = real_disk->xOpen(real_disk, name, file, flags, out);
    if (!failed && file->pMethods)
        file->pMethods = own_methods(file->pMethods);
    return failed;
}

static bool mount_disk(void)
{
    real_disk = sqlite3_vfs_find(NULL);
    disk = *real_disk;
    disk.zName = "disk";
    disk.xOpen = open_file;
    return sqlite3_vfs_register(&disk, 1) == SQLITE_OK;
}

static void set_disk(int every, int after)
{
    atomic_store(&writes, 0);
    atomic_store(&nap_every, every);
    atomic_store(&fail_after, after);
}

/* ---- runs -------------------------------------------------------------------------------------- */

static const char *path; /* of the store */

/* Of the store's newest run; -1: cannot be read. */
static int64_t count_rows(const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    int64_t count = -1;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        count = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return count;
}

static enum status run(int64_t iterations, int chunks, struct runtime_result *result,
                       struct diag *diag)
{
    struct plan plan;
    const struct runtime_options options = {.driver = DRIVER_DATAFLOW,
                                            .iterations = iterations,
                                            .replay = true,
                                            .db = path,
                                            .plan_text = plan_text,
                                            .log_chunks = chunks};
    enum status status = plan_parse("quick.yaml", plan_text, strlen(plan_text), &plan, diag);
    if (status)
        return status;
    status = runtime_run(&plan, &options, result, diag);
    plan_fini(&plan);
    return status;
}

/* ---- tests ------------------------------------------------------------------------------------- */

/* The least a chunk of the log can be; it may be a little more. */
enum { CHUNK = 64 * (int)sizeof(struct log_entry), THREADS = 4, LIMIT = 3, ITERATIONS = 800 };

static void test_slow_disk(void)
{
    struct runtime_result result;
    struct diag diag;
    diag_init(&diag);
    set_disk(100, -1);
    enum status status = run(ITERATIONS, LIMIT, &result, &diag);
    tap_is_int(status, STATUS_OK, "a run with a slow disk: %s",
               diag.count ? diag.messages[0].text : "");
    tap_ok(result.legal == ANSWER_YES && result.iterations == ITERATIONS, "is legal and complete");
    tap_ok(result.log_bytes > LIMIT * CHUNK && result.held_ns > 0,
           "it was held up: the log came to its bound (%ld bytes)", (long)result.log_bytes);
    tap_ok(result.log_bytes < (LIMIT + 2 * THREADS) * (CHUNK + 64),
           "and not far beyond it: a chunk or two for each thread under way");
    tap_is_int(count_rows("SELECT count(*) FROM iteration"), ITERATIONS,
               "all iterations are there");
    tap_is_int(count_rows("SELECT count(*) FROM step"), result.steps, "and all steps");
    tap_is_int(count_rows("SELECT count(*) FROM span WHERE kind = 'device'"), 2 * ITERATIONS,
               "and what the device did");
    runtime_result_fini(&result);
    unlink(path);
    set_disk(100, -1);
    status = run(ITERATIONS, 0, &result, &diag);
    tap_ok(status == STATUS_OK && result.log_bytes > (LIMIT + 2 * THREADS) * (CHUNK + 64),
           "without the bound the same run logs more (%ld bytes)", (long)result.log_bytes);
    runtime_result_fini(&result);
    diag_fini(&diag);
    unlink(path);
}

static bool says(const struct diag *diag, const char *words)
{
    for (size_t i = 0; i < diag->count; i++)
        if (strstr(diag->messages[i].text, words))
            return true;
    return false;
}

static void test_full_disk(void)
{
    struct runtime_result result;
    struct diag diag;
    diag_init(&diag);
    set_disk(0, 200);
    enum status status = run(100000000, LIMIT, &result, &diag);
    tap_ok(status == STATUS_SYSTEM && says(&diag, "full"), "a full disk ends a run: %s",
           diag.count ? diag.messages[0].text : "");
    if (status == STATUS_OK || status == STATUS_VIOLATED)
        runtime_result_fini(&result);
    set_disk(0, -1);
    tap_ok(count_rows("SELECT count(*) FROM iteration") > 0, "what was written before is there");
    diag_fini(&diag);
    unlink(path);
}

static int endless(void *arg, int rank, void **batch)
{
    (void)arg;
    (void)rank;
    *batch = NULL;
    return 1;
}

static void test_full_disk_in_the_library(void)
{
    const struct swpipe_config config = {.plan_text = plan_text, .plan_file = "quick.yaml"};
    const struct swpipe_source source = {endless, NULL};
    struct swpipe *pipe;
    set_disk(0, 200);
    enum swpipe_status status = swpipe_open(&config, &pipe);
    status = status == SWPIPE_OK ? swpipe_record(pipe, path) : status;
    tap_ok(status == SWPIPE_OK, "a recorded pipeline opens: %s", swpipe_error(pipe));
    status = swpipe_run(pipe, &source, NULL);
    tap_ok(status == SWPIPE_SYSTEM && strstr(swpipe_error(pipe), "full"),
           "a full disk ends its run: %s", swpipe_error(pipe));
    swpipe_drain(pipe);
    set_disk(0, -1);
    tap_ok(swpipe_record(pipe, NULL) == SWPIPE_OK, "it can go on unrecorded: %s",
           swpipe_error(pipe));
    void *batch = NULL;
    tap_ok(swpipe_run_one_serial(pipe, &batch, 0) == SWPIPE_OK, "and does: %s", swpipe_error(pipe));
    swpipe_close(pipe);
    unlink(path);
}

static int six_batches(void *arg, int rank, void **batch)
{
    int *given = arg;
    (void)rank;
    *batch = NULL;
    return (*given)++ < 6;
}

/* The replay follows 250 ms behind: it meets periods after the end of the data before the run is over. */
static void test_slow_iterations(void)
{
    static const char slow[] = "swplan: 1\n"
                               "schedule:\n"
                               "  Copy: {stage: 0, stream: copies, time: 100ms}\n"
                               "  Train: {stage: 1, time: 300ms}\n"
                               "  Log: {stage: 1, time: 1ms}\n"
                               "intra_iter_deps: [[Train, Copy]]\n";
    const struct swpipe_config config = {.plan_text = slow, .plan_file = "slow.yaml"};
    int given = 0;
    const struct swpipe_source source = {six_batches, &given};
    struct swpipe *pipe;
    struct swpipe_recorded recorded = {0};
    bool done = swpipe_open(&config, &pipe) == SWPIPE_OK &&
                swpipe_record(pipe, path) == SWPIPE_OK &&
                swpipe_run(pipe, &source, NULL) == SWPIPE_OK;
    tap_ok(done, "iterations of 300 ms are recorded: %s", swpipe_error(pipe));
    done = swpipe_recorded(pipe, &recorded) == SWPIPE_OK && recorded.legal == 1;
    tap_ok(done, "and legal: %s", recorded.why);
    swpipe_close(pipe);
    unlink(path);
}

static int do_nothing(struct swpipe_context *context, void *arg)
{
    (void)context;
    (void)arg;
    return 0;
}

/* A function computes, whatever time the plan has for it; the plan's own work sleeps for its time. */
static void test_cores(void)
{
    static const char text[] = "swplan: 1\n"
                               "schedule:\n"
                               "  Load: {stage: 0, time: 1ms}\n"
                               "  Train: {stage: 0, time: 1ms}\n"
                               "  Copy: {stage: 0, work: {copy: h2d, bytes: 64KiB}}\n";
    const struct swpipe_task tasks[] = {{.name = "Load", .function = do_nothing}};
    const struct swpipe_config config = {
        .plan_text = text, .plan_file = "cores.yaml", .tasks = tasks, .task_count = 1};
    int given = 0;
    const struct swpipe_source source = {six_batches, &given};
    struct swpipe *pipe;
    bool done = swpipe_open(&config, &pipe) == SWPIPE_OK &&
                swpipe_record(pipe, path) == SWPIPE_OK &&
                swpipe_run(pipe, &source, NULL) == SWPIPE_OK;
    tap_ok(done, "a run of a program is recorded: %s", swpipe_error(pipe));
    swpipe_close(pipe);
    tap_is_int(count_rows("SELECT value FROM stat WHERE key = 'cores'"), processors_count(),
               "with the cores that carried it");
    tap_is_int(count_rows("SELECT value FROM stat WHERE key = 'Load.core_share'"), 1,
               "a function wants one");
    tap_is_int(count_rows("SELECT value FROM stat WHERE key = 'Copy.core_share'"), 1,
               "and so does a copy without a time");
    tap_is_int(count_rows("SELECT count(*) FROM stat WHERE key LIKE '%.core_share'"), 2,
               "but nothing that sleeps");
    unlink(path);
}

int main(void)
{
    path = path_temp("journal.db");
    tap_ok(mount_disk(), "a disk that can be slow, or full");
    test_slow_disk();
    test_full_disk();
    test_full_disk_in_the_library();
    test_slow_iterations();
    test_cores();
    return tap_done();
}
