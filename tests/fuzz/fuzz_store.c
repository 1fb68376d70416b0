/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_store.c - a trace store from somebody else: a good one with some rows or bytes changed, read by all readers.
 *
 * The changes are those of sql.h. The good store holds a serial run, a pipelined run and a witness of one small plan. An input that begins as SQLite's
 * files do is the file itself.
 */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plan/text/parse.h"
#include "sim/predict/compare.h"
#include "sim/predict/record.h"
#include "sql.h"
#include "targets.h"
#include "trace/store.h"
#include "trace/timeline.h"

enum { MOST_RUNS = 4, ITERATIONS = 4 };

static const char plan_of_runs[] = "swplan: 1\n"
                                   "name: p\n"
                                   "schedule:\n"
                                   "  A: {stage: 0, stream: c, time: 2ms, host_time: 20us}\n"
                                   "  B: {stage: 1, time: 3ms, host_time: 30us}\n"
                                   "intra_iter_deps: [[B, A]]\n";

static const char runs_as_measured[] =
    "UPDATE run SET kind = 'measured', device = 'host', note = 'serial' WHERE id = 1;"
    "UPDATE run SET kind = 'measured', device = 'host', note = NULL WHERE id = 2;";

/* ---- the good store ---------------------------------------------------------------------------- */

/* A file that goes away with this process. */
static const char *store_path(void)
{
    static char path[64];
    if (!*path)
        snprintf(path, sizeof path, "%s/swsim-fuzz-%ld.db",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (long)getpid());
    return path;
}

static void remove_store(void)
{
    (void)unlink(store_path());
}

static void add_run(struct store *store, const struct plan *plan, struct diag *diag)
{
    struct recorder recorder;
    struct prediction prediction;
    recorder_init(&recorder, store, plan, 1, diag);
    const struct predict_options options = {
        .program = {.driver = DRIVER_CLOCK, .iterations = ITERATIONS},
        .seed = 1,
        .replications = 1,
        .threads = 1,
        .exposed = EXPOSED_NEVER,
        .observer = recorder_observer(&recorder),
        .begin = recorder_begin};
    FUZZ_EXPECT(predict(plan, &options, &prediction, diag) == STATUS_OK);
    FUZZ_EXPECT(recorder_end(&recorder, &prediction) == STATUS_OK);
    recorder_fini(&recorder);
    prediction_fini(&prediction);
}

/* Two threads that wait for each other. */
static void add_witness(struct store *store, struct diag *diag)
{
    struct arena arena;
    struct trace trace;
    int64_t run;
    struct trace_move moves[] = {{0, 0}, {1, 0}};
    struct trace_blocked blocked[] = {{0, "thread a", "is at lock m", 1, true},
                                      {0, "thread b", "is at lock n", 0, true}};
    const struct trace_witness witness = {"deadlock", -1, 1, 0, moves, 2, blocked, 2};
    arena_init(&arena, 0);
    trace_init(&trace, &arena);
    FUZZ_EXPECT(trace_set_info(&trace, &(struct run_info){.kind = RUN_WITNESS,
                                                          .plan_name = "p",
                                                          .plan_text = plan_of_runs,
                                                          .driver = RUN_DRIVER_CLOCK,
                                                          .ranks = 1,
                                                          .duration_ns = 2,
                                                          .finished = RUN_INTERRUPTED,
                                                          .note = "deadlock: a and b wait"}));
    for (int i = 0; i < 2; i++) {
        trace_add_agent(&trace, 0, TRACE_THREAD, blocked[i].agent, i);
        trace_add_span(&trace, &(struct trace_span){i, SPAN_HOST, "A", 0, i, i + 1, NULL});
        trace_add_span(&trace, &(struct trace_span){i, SPAN_WAIT, NULL, -1, 2, 3, "is at lock m"});
        trace_add_step(&trace, &(struct trace_step){i, 0, blocked[i].agent, "locks m", "A", 0, i});
    }
    trace_add_edge(&trace, 1, 3, EDGE_CYCLE);
    trace_add_edge(&trace, 3, 1, EDGE_CYCLE);
    FUZZ_EXPECT(!arena.failed && store_write_trace(store, &trace, &run, diag) == STATUS_OK);
    FUZZ_EXPECT(store_add_witness(store, run, &witness, diag) == STATUS_OK);
    arena_fini(&arena);
}

static void *read_whole(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    FUZZ_EXPECT(file && fseek(file, 0, SEEK_END) == 0);
    *bytes = (size_t)ftell(file);
    rewind(file);
    void *data = malloc(*bytes);
    FUZZ_EXPECT(data && fread(data, 1, *bytes, file) == *bytes);
    fclose(file);
    return data;
}

/* The bytes of the good store, made once. */
static const void *good_store(size_t *bytes)
{
    static void *image;
    static size_t image_bytes;
    if (!image) {
        struct diag diag;
        struct plan plan;
        struct store *store;
        sqlite3 *db;
        fuzz_diag_begin(&diag);
        remove_store();
        FUZZ_EXPECT(atexit(remove_store) == 0);
        FUZZ_EXPECT(plan_parse("p.yaml", plan_of_runs, sizeof plan_of_runs - 1, &plan, &diag) ==
                    STATUS_OK);
        FUZZ_EXPECT(store_open(store_path(), true, &store, &diag) == STATUS_OK);
        add_run(store, &plan, &diag);
        add_run(store, &plan, &diag);
        add_witness(store, &diag);
        FUZZ_EXPECT(store_close(store, &diag) == STATUS_OK);
        FUZZ_EXPECT(sqlite3_open(store_path(), &db) == SQLITE_OK);
        FUZZ_EXPECT(sqlite3_exec(db, runs_as_measured, NULL, NULL, NULL) == SQLITE_OK);
        FUZZ_EXPECT(sqlite3_exec(db, "PRAGMA page_size = 512; VACUUM", NULL, NULL, NULL) ==
                    SQLITE_OK);
        sqlite3_close(db);
        plan_fini(&plan);
        fuzz_diag_end(&diag, true);
        image = read_whole(store_path(), &image_bytes);
    }
    *bytes = image_bytes;
    return image;
}

static void write_store(const void *data, size_t bytes)
{
    int file = open(store_path(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_EXPECT(file >= 0 && write(file, data, bytes) == (ssize_t)bytes);
    close(file);
}

/* ---- readers ------------------------------------------------------------------------------------- */

/* Each reader says why it fails, in a list of its own. */
#define READ(call)                                                                                 \
    do {                                                                                           \
        struct diag diag;                                                                          \
        fuzz_diag_begin(&diag);                                                                    \
        enum status read = (call);                                                                 \
        fuzz_diag_end(&diag, read == STATUS_OK);                                                   \
    } while (0)

struct runs {
    int64_t ids[MOST_RUNS];
    size_t count;
};

static void note_run(const struct store_run *run, void *context)
{
    struct runs *runs = context;
    if (runs->count < MOST_RUNS)
        runs->ids[runs->count++] = run->id;
}

static enum status load(struct store *store, int64_t run, int64_t from, int64_t to,
                        struct diag *diag)
{
    struct arena arena;
    struct trace trace;
    int64_t start_ns, end_ns;
    arena_init(&arena, 0);
    enum status status = store_load(store, run, from, to, &arena, &trace, diag);
    if (status == STATUS_OK)
        status = store_load_steps(store, &trace, diag);
    if (status == STATUS_OK) {
        (void)trace_mean_iteration_ns(&trace);
        trace_range(&trace, &start_ns, &end_ns);
        if (!trace_drop_waits(&trace, TRACE_THREAD))
            status = diag_no_memory(diag);
    }
    arena_fini(&arena);
    return status;
}

static enum status load_witness(struct store *store, int64_t run, struct diag *diag)
{
    struct arena arena;
    struct trace_witness witness;
    struct run_info info;
    int64_t found;
    arena_init(&arena, 0);
    enum status status = store_load_witness(store, run, &arena, &witness, &found, &info, diag);
    arena_fini(&arena);
    return status;
}

static enum status compare(struct store *store, struct diag *diag)
{
    const struct compare_options options = {
        .run = STORE_ALL, .seed = 1, .replications = 1, .threads = 1};
    struct compared compared;
    enum status status = compare_store(store, &options, &compared, diag);
    if (status == STATUS_OK)
        compared_fini(&compared);
    return status;
}

static enum status profile(struct store *store, struct diag *diag)
{
    struct plan plan;
    struct profile profile;
    FUZZ_EXPECT(plan_parse("p.yaml", plan_of_runs, sizeof plan_of_runs - 1, &plan, diag) ==
                STATUS_OK);
    enum status status = profile_read(store, STORE_LATEST, &plan, 0, &profile, diag);
    if (status == STATUS_OK)
        profile_fini(&profile);
    plan_fini(&plan);
    return status;
}

/* As DOT: what the libraries that draw make of it is not ours. */
static enum status draw(struct store *store, int64_t run, struct diag *diag)
{
    const struct timeline_options options = {.range = TIMELINE_FIRST};
    struct arena arena;
    struct trace trace;
    char path[96];
    snprintf(path, sizeof path, "%s.dot", store_path());
    arena_init(&arena, 0);
    enum status status = store_load(store, run, STORE_ALL, STORE_ALL, &arena, &trace, diag);
    if (status == STATUS_OK)
        status = timeline_render(&trace, 1, &options, &(struct draw_target){.path = path}, diag);
    arena_fini(&arena);
    (void)unlink(path);
    return status;
}

static void read_store(struct store *store, bool drawn)
{
    struct runs runs = {.count = 0};
    READ(store_list_runs(store, note_run, &runs, &diag));
    for (size_t i = 0; i < runs.count; i++) {
        READ(load(store, runs.ids[i], STORE_ALL, STORE_ALL, &diag));
        READ(load(store, runs.ids[i], 1, 2, &diag));
        READ(load_witness(store, runs.ids[i], &diag));
        if (drawn)
            READ(draw(store, runs.ids[i], &diag));
    }
    READ(load_witness(store, STORE_LATEST, &diag));
    READ(profile(store, &diag));
    READ(compare(store, &diag));
}

static void open_store(bool drawn)
{
    struct diag diag;
    struct store *store;
    fuzz_diag_begin(&diag);
    enum status status = store_open(store_path(), false, &store, &diag);
    if (status == STATUS_OK) {
        read_store(store, drawn);
        status = store_close(store, &diag);
    }
    fuzz_diag_end(&diag, status == STATUS_OK);
}

void fuzz_store(const uint8_t *data, size_t size)
{
    static const char magic[] = "SQLite format 3";
    size_t bytes;
    if (size >= sizeof magic && memcmp(data, magic, sizeof magic) == 0) {
        write_store(data, size);
    } else {
        char *text = fuzz_text(data, size);
        const void *good = good_store(&bytes);
        uint8_t *changed = sql_changed(good, text, &bytes);
        write_store(changed, bytes);
        sqlite3_free(changed);
        free(text);
    }
    open_store(size % 8 == 0);
}
