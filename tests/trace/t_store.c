/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_store.c - the trace store: what goes in comes out, and what happens when the file, the disk or
 * the process fails.
 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness.h"
#include "tests/refused_sql.h"
#include "tests/tap.h"
#include "trace/trace.h"
#include "trace/store.h"
#include "trace/store_sql.h"

static bool exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0)
        tap_ok(0, "could write %s", path);
}

/* One statement on the file behind the store's back. */
static void run_sql(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    int code = sqlite3_open(path, &db);
    if (code == SQLITE_OK)
        code = sqlite3_exec(db, sql, NULL, NULL, NULL);
    if (code != SQLITE_OK)
        tap_ok(0, "could run '%s': %s", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
}

/* One error with this status whose text contains `part`; empties the diag. */
static void expect_error(enum status got, enum status want, struct diag *diag, const char *part,
                         const char *what)
{
    bool said = diag->errors == 1 && strstr(diag_first(diag), part);
    tap_ok(got == want && said, "%s", what);
    if (got != want || !said)
        tap_note("status %d, %zu errors: %s", (int)got, diag->errors, diag_first(diag));
    diag_fini(diag);
}

/* No error; says it otherwise. Empties the diag. */
static void expect_ok(enum status got, struct diag *diag, const char *what)
{
    tap_ok(got == STATUS_OK && diag->errors == 0, "%s", what);
    if (got != STATUS_OK)
        tap_note("status %d: %s", (int)got, diag_first(diag));
    diag_fini(diag);
}

static const struct run_info some_info = {
    .kind = RUN_MEASURED,
    .plan_name = "It's a \"plan\"",
    .plan_text = "swplan: 1\n",
    .device = "host",
    .driver = RUN_DRIVER_CLOCK,
    .ranks = 2,
    .seed = UINT64_C(0xfedcba9876543210),
    .iterations_wanted = 40,
    .created_unix_s = 1700000000,
    .duration_ns = 12345678901,
    .finished = RUN_FINISHED,
    .note = "über alles",
};

/* Two agents, `iterations` iterations of 100 ns with a host and a device span each, an edge between
   them, and one wait without task or iteration. */
static void build_trace(struct trace *trace, struct arena *arena, int iterations)
{
    trace_init(trace, arena);
    trace_set_info(trace, &some_info);
    int thread = trace_add_agent(trace, 0, TRACE_THREAD, "default", 0);
    int stream = trace_add_agent(trace, 1, TRACE_STREAM, "memcpy", 3);
    for (int i = iterations - 1; i >= 0; i--) { /* out of order on purpose */
        int from = trace_add_span(
            trace, &(struct trace_span){thread, SPAN_HOST, "H2D", i, 100 * i, 100 * i + 10, NULL});
        int to = trace_add_span(trace, &(struct trace_span){stream, SPAN_DEVICE, "H2D", i,
                                                            100 * i + 20, 100 * i + 90, NULL});
        trace_add_edge(trace, from, to, i % 2 ? EDGE_LAUNCH : EDGE_DEPENDENCE);
        trace_add_iteration(trace, &(struct trace_iteration){0, i, 100 * i, 100 * i + 90});
    }
    trace_add_span(trace, &(struct trace_span){stream, SPAN_WAIT, NULL, -1, 90, 120, "H2D(1)"});
    trace_add_step(trace, &(struct trace_step){0, 0, "thread default", "launch", "H2D", 0, 5});
    trace_add_step(trace, &(struct trace_step){1, 1, "stream memcpy", "finish", NULL, -1, 7});
    trace_add_stat(trace, "steady_exact_ns", 9.6e6);
    trace_add_stat(trace, "bubble", 0.25);
}

static void check_info(const struct run_info *got)
{
    const struct run_info *want = &some_info;
    tap_is_str(got->plan_name, want->plan_name, "the plan's name with quotes in it");
    tap_is_str(got->plan_text, want->plan_text, "the plan's text");
    tap_is_str(got->device, want->device, "the device");
    tap_is_str(got->note, want->note, "the note, UTF-8");
    tap_ok(got->kind == want->kind && got->driver == want->driver && got->ranks == want->ranks,
           "kind, driver, ranks");
    tap_ok(got->seed == want->seed, "a seed with the high bit set");
    tap_ok(got->iterations_wanted == want->iterations_wanted &&
               got->created_unix_s == want->created_unix_s &&
               got->duration_ns == want->duration_ns && got->finished == want->finished,
           "iterations, times, state");
}

static void test_round_trip(void)
{
    const char *path = path_temp("round.db");
    struct diag diag;
    struct arena arena;
    struct store *store = NULL;
    struct trace trace, back = {0};
    int64_t run = -1;
    diag_init(&diag);
    arena_init(&arena, 0);
    build_trace(&trace, &arena, 5);
    expect_ok(store_open(path, true, &store, &diag), &diag, "a missing file becomes a store");
    expect_ok(store_write_trace(store, &trace, &run, &diag), &diag, "a trace is written");
    expect_ok(store_close(store, &diag), &diag, "the store is closed");
    tap_ok(!exists(path_temp("round.db-wal")), "a closed store has no write-ahead log beside it");

    expect_ok(store_open(path, false, &store, &diag), &diag, "the store is opened for reading");
    expect_ok(store_load(store, STORE_LATEST, STORE_ALL, STORE_ALL, &arena, &back, &diag), &diag,
              "the latest run is loaded");
    expect_ok(store_load_steps(store, &back, &diag), &diag, "and its steps");
    expect_ok(store_close(store, &diag), &diag, "and closed again");
    tap_is_int(back.run, run, "it is the run that was written");
    check_info(&back.info);

    trace_sort(&trace);
    tap_is_int((long long)back.agent_count, 2, "agents");
    tap_ok(back.agents[1].rank == 1 && back.agents[1].kind == TRACE_STREAM &&
               back.agents[1].position == 3,
           "an agent's rank, kind and position");
    tap_is_str(back.agents[1].name, "memcpy", "an agent's name");
    int same = back.span_count == trace.span_count;
    for (size_t i = 0; same && i < trace.span_count; i++) {
        const struct trace_span *a = &trace.spans[i], *b = &back.spans[i];
        same = a->agent == b->agent && a->kind == b->kind && a->iteration == b->iteration &&
               a->start_ns == b->start_ns && a->end_ns == b->end_ns && !a->task == !b->task &&
               (!a->task || strcmp(a->task, b->task) == 0) && !a->cause == !b->cause &&
               (!a->cause || strcmp(a->cause, b->cause) == 0);
    }
    tap_ok(same, "the spans come back sorted as trace_sort sorts them");
    same = back.edge_count == trace.edge_count;
    for (size_t i = 0; same && i < trace.edge_count; i++)
        same = trace.edges[i].from == back.edges[i].from && trace.edges[i].to == back.edges[i].to &&
               trace.edges[i].kind == back.edges[i].kind;
    tap_ok(same, "the edges still join the same spans");
    tap_ok(back.iteration_count == 5 && back.iterations[4].number == 4 &&
               back.iterations[4].retire_ns == 490,
           "the iterations, in order");
    tap_ok(back.stat_count == 2 && strcmp(back.stats[0].key, "bubble") == 0 &&
               back.stats[0].value == 0.25,
           "the figures, by name");
    tap_ok(back.step_count == 2 && strcmp(back.steps[0].op, "launch") == 0 && !back.steps[1].task &&
               back.steps[1].iteration == -1 && back.steps[1].time_ns == 7,
           "the steps, with and without a task");
    arena_fini(&arena);
}

static void test_window(void)
{
    struct diag diag;
    struct arena arena;
    struct store *store = NULL;
    struct trace part = {0};
    diag_init(&diag);
    arena_init(&arena, 0);
    expect_ok(store_open(path_temp("round.db"), false, &store, &diag), &diag, "open once more");
    expect_ok(store_load(store, STORE_LATEST, 2, 3, &arena, &part, &diag), &diag,
              "load iterations 2 to 3");
    tap_is_int((long long)part.span_count, 4, "only their spans");
    tap_is_int((long long)part.edge_count, 2, "only their edges");
    tap_is_int((long long)part.iteration_count, 4, "these iterations, the first and the last");
    expect_ok(store_load(store, STORE_LATEST, 1, 1, &arena, &part, &diag), &diag,
              "load iteration 1");
    tap_is_int((long long)part.span_count, 3, "its spans, and the wait that overlaps it");
    expect_ok(store_load(store, STORE_LATEST, 4, STORE_ALL, &arena, &part, &diag), &diag,
              "load from iteration 4 on");
    tap_is_int((long long)part.span_count, 2, "one bound only");
    expect_ok(store_load(store, STORE_LATEST, STORE_FIRST, 2, &arena, &part, &diag), &diag,
              "load the first two iterations");
    tap_is_int((long long)part.span_count, 5, "their spans, and what was before");
    expect_ok(store_load_first_steps(store, &part, 1, &diag), &diag, "load the first step");
    tap_is_int((long long)part.step_count, 1, "not the second");
    expect_error(store_load(store, STORE_LATEST, 17, 20, &arena, &part, &diag), STATUS_INPUT, &diag,
                 "no such iterations", "iterations that are not there are an input error");
    expect_error(store_load(store, 99, STORE_ALL, STORE_ALL, &arena, &part, &diag), STATUS_INPUT,
                 &diag, "no run 99", "so is a run that is not there");
    store_close(store, &diag);
    arena_fini(&arena);
}

static void count_run(const struct store_run *run, void *context)
{
    int64_t *sum = context;
    sum[0]++;
    sum[1] += run->spans;
    sum[2] += run->iterations;
    sum[3] = run->id;
}

static void test_many_runs(void)
{
    struct diag diag;
    struct arena arena;
    struct store *store = NULL;
    struct trace small, large;
    int64_t run = 0, latest = 0, sums[4] = {0};
    diag_init(&diag);
    arena_init(&arena, 0);
    build_trace(&small, &arena, 1);
    build_trace(&large, &arena, 9000);
    expect_ok(store_open(path_temp("round.db"), true, &store, &diag), &diag,
              "a store is opened to add runs");
    expect_ok(store_write_trace(store, &small, NULL, &diag), &diag, "a second run");
    expect_ok(store_write_trace(store, &large, &run, &diag), &diag,
              "a third one, larger than a batch");
    expect_ok(store_latest_run(store, &latest, &diag), &diag, "the latest run is found");
    tap_is_int(latest, run, "it is the last one written");
    expect_ok(store_list_runs(store, count_run, sums, &diag), &diag, "the runs are listed");
    tap_ok(sums[0] == 3 && sums[1] == 11 + 3 + 18001 && sums[2] == 9006 && sums[3] == run,
           "three runs, their spans and iterations");
    expect_ok(store_add_stat(store, run, "bubble", 1, &diag), &diag, "a figure may be replaced");
    expect_error(store_add_stat(store, 77, "bubble", 1, &diag), STATUS_SYSTEM, &diag,
                 "has no run 77", "a row of no run is refused");
    tap_is_int(store_flush(store, &diag), STATUS_SYSTEM, "and the store refuses to go on");
    tap_is_int((long long)diag.errors, 1, "for the same reason");
    expect_error(store_close(store, &diag), STATUS_SYSTEM, &diag, "has no run 77",
                 "closing tells it too");
    arena_fini(&arena);
}

/* A store with one run of four iterations, changed by `sql`. */
static const char *changed_store(const char *name, const char *sql)
{
    struct diag diag;
    struct arena arena;
    struct trace trace;
    struct store *store = NULL;
    diag_init(&diag);
    arena_init(&arena, 0);
    build_trace(&trace, &arena, 4);
    const char *path = path_temp(name);
    (void)unlink(path);
    enum status status = store_open(path, true, &store, &diag);
    if (status == STATUS_OK)
        status = store_write_trace(store, &trace, NULL, &diag);
    if (status == STATUS_OK)
        status = store_close(store, &diag);
    if (status != STATUS_OK)
        expect_ok(status, &diag, "a store to change");
    run_sql(path, sql);
    arena_fini(&arena);
    return path;
}

static void test_names(void)
{
    static const char *const names[] = {":memory:", ":x", "file:x", "file:x?mode=memory"};
    struct store *store = NULL;
    struct diag diag;
    diag_init(&diag);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        expect_error(store_open(names[i], true, &store, &diag), STATUS_USAGE, &diag,
                     "expected the name of a file", names[i]);
}

/* Functions that compute when a store is read. */
static void test_foreign_schema(void)
{
    static const char *const strange[] = {
        ("ALTER TABLE span RENAME TO hidden; CREATE VIEW span AS WITH RECURSIVE n(i) AS (SELECT 1 "
         "UNION ALL SELECT i + 1 FROM n) SELECT i AS id FROM n"),
        "CREATE TRIGGER t AFTER INSERT ON run BEGIN DELETE FROM span; END",
        "ALTER TABLE agent ADD COLUMN more TEXT AS (hex(zeroblob(1000000)))",
    };
    struct store *store = NULL;
    struct diag diag;
    diag_init(&diag);
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++)
        for (int write = 0; write < 2; write++)
            expect_error(store_open(changed_store("strange.db", strange[i]), write, &store, &diag),
                         STATUS_INPUT, &diag, "which no trace store has", strange[i]);
}

static enum status load_all(const char *path, struct diag *diag)
{
    struct arena arena;
    struct trace back;
    struct store *store = NULL;
    enum status status = store_open(path, false, &store, diag);
    if (status != STATUS_OK)
        return status;
    arena_init(&arena, 0);
    status = store_load(store, STORE_LATEST, STORE_ALL, STORE_ALL, &arena, &back, diag);
    if (status == STATUS_OK)
        status = store_load_steps(store, &back, diag);
    arena_fini(&arena);
    store_close(store, diag);
    return status;
}

static void test_impossible_numbers(void)
{
    static const struct {
        const char *sql, *want;
    } cases[] = {
        {"UPDATE span SET end_ns = 9223372036854775807", "impossible time '9223372036854775807'"},
        {"UPDATE span SET start_ns = -9223372036854775807", "impossible time"},
        {"UPDATE span SET iteration = 9223372036854775807", "impossible iteration"},
        {"UPDATE iteration SET retire_ns = 9223372036854775807", "impossible time"},
        {"UPDATE agent SET rank = 4294967296", "impossible rank '4294967296'"},
        {"UPDATE agent SET position = 4294967296", "impossible position"},
        {"UPDATE run SET ranks = -1", "impossible number of ranks"},
        {"UPDATE run SET duration_ns = -9223372036854775807", "impossible time"},
        {"UPDATE run SET created = 9223372036854775807", "impossible date"},
        {"DROP TABLE span", "damaged trace store: no such table: span"},
        {"ALTER TABLE span DROP COLUMN cause", "damaged trace store: no such column"},
    };
    struct diag diag;
    diag_init(&diag);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_error(load_all(changed_store("numbers.db", cases[i].sql), &diag), STATUS_INPUT,
                     &diag, cases[i].want, cases[i].sql);
}

static void test_not_a_store(void)
{
    struct diag diag;
    struct store *store = NULL;
    diag_init(&diag);
    const char *garbage = path_temp("garbage.db");
    write_text(garbage, "This is a text of some length, and surely no database. Not at all.\n");
    expect_error(store_open(garbage, false, &store, &diag), STATUS_INPUT, &diag,
                 "not a swsim trace store", "a text file is not a store");
    expect_error(store_open(garbage, true, &store, &diag), STATUS_INPUT, &diag,
                 "not a swsim trace store", "nor is it made one");
    const char *foreign = path_temp("foreign.db");
    run_sql(foreign, "CREATE TABLE song (title)");
    expect_error(store_open(foreign, true, &store, &diag), STATUS_INPUT, &diag,
                 "not a swsim trace store", "another program's database is left alone");
    const char *future = path_temp("future.db");
    expect_ok(store_open(future, true, &store, &diag), &diag, "a new store");
    expect_ok(store_close(store, &diag), &diag, "without any run");
    expect_ok(store_open(future, false, &store, &diag), &diag, "opens again");
    int64_t run;
    expect_error(store_latest_run(store, &run, &diag), STATUS_INPUT, &diag, "holds no run",
                 "and has no latest run");
    store_close(store, &diag);
    run_sql(future, "PRAGMA user_version = 7");
    expect_error(store_open(future, false, &store, &diag), STATUS_INPUT, &diag, "schema version 7",
                 "a store of another version is refused");
    const char *empty = path_temp("empty.db");
    write_text(empty, "");
    expect_error(store_open(empty, false, &store, &diag), STATUS_INPUT, &diag, "is empty",
                 "an empty file is not a store to read");
    expect_ok(store_open(empty, true, &store, &diag), &diag, "but may become one");
    expect_ok(store_close(store, &diag), &diag, "and closes");
}

/* ---- witnesses ------------------------------------------------------------------------------- */

/* A store with a run of kind witness that has two moves and two blocked agents; returns its number. */
static int64_t write_witness(const char *path, struct diag *diag)
{
    struct trace_move moves[] = {{1, 0}, {0, 1}};
    struct trace_blocked blocked[] = {{0, "thread a", "waits for b", 1, true},
                                      {-1, "thread b", "waits for nobody", -1, false}};
    const struct trace_witness witness = {.property = "deadlock",
                                          .iterations = -1,
                                          .max_depth = 3,
                                          .moves = moves,
                                          .move_count = 2,
                                          .blocked = blocked,
                                          .blocked_count = 2};
    const struct run_info info = {.kind = RUN_WITNESS, .plan_name = "w", .plan_text = "text"};
    struct store *store = NULL;
    int64_t run = -1;
    expect_ok(store_open(path, true, &store, diag), diag, "a store for a witness");
    expect_ok(store_begin_run(store, &info, &run, diag), diag, "which is a run");
    expect_ok(store_add_witness(store, run, &witness, diag), diag, "and more");
    expect_ok(store_close(store, diag), diag, "is written");
    return run;
}

static enum status read_witness(const char *path, int64_t run, struct arena *arena,
                                struct trace_witness *out, struct diag *diag)
{
    struct store *store = NULL;
    struct run_info info;
    int64_t found;
    enum status status = store_open(path, false, &store, diag);
    if (status == STATUS_OK)
        status = store_load_witness(store, run, arena, out, &found, &info, diag);
    store_close(store, diag);
    return status;
}

static void test_witness(void)
{
    const char *path = path_temp("witness.db");
    struct trace_witness back;
    struct arena arena;
    struct diag diag;
    arena_init(&arena, 0);
    diag_init(&diag);
    int64_t run = write_witness(path, &diag);
    expect_ok(read_witness(path, STORE_LATEST, &arena, &back, &diag), &diag, "a witness is found");
    tap_ok(strcmp(back.property, "deadlock") == 0 && back.iterations == -1 && back.ranks == 0 &&
               back.max_depth == 3,
           "with its options");
    tap_ok(back.move_count == 2 && back.moves[0].agent == 1 && back.moves[1].choice == 1,
           "its moves");
    tap_ok(back.blocked_count == 2 && back.blocked[0].on == 1 && back.blocked[0].in_cycle &&
               back.blocked[1].on == -1 && back.blocked[1].rank == -1 &&
               strcmp(back.blocked[1].waits_for, "waits for nobody") == 0,
           "and who is blocked");
    expect_error(read_witness(path, run + 1, &arena, &back, &diag), STATUS_INPUT, &diag,
                 "has no run 2", "another run is not there");
    run_sql(path, "UPDATE move SET seq = 5 WHERE seq = 1");
    expect_error(read_witness(path, run, &arena, &back, &diag), STATUS_INPUT, &diag,
                 "impossible move", "a move is missing");
    run_sql(path, "UPDATE move SET seq = 1, agent = -4 WHERE seq = 5");
    expect_error(read_witness(path, run, &arena, &back, &diag), STATUS_INPUT, &diag,
                 "impossible move", "a move of nobody");
    run_sql(path, "UPDATE move SET agent = 0 WHERE seq = 1; DELETE FROM blocked WHERE seq = 0");
    expect_error(read_witness(path, run, &arena, &back, &diag), STATUS_INPUT, &diag,
                 "impossible blocked agent", "a blocked agent is missing");
    run_sql(path, "UPDATE witness SET max_depth = -1");
    expect_error(read_witness(path, run, &arena, &back, &diag), STATUS_INPUT, &diag,
                 "impossible options", "options that cannot be");
    run_sql(path, "UPDATE run SET kind = 'measured'");
    expect_error(read_witness(path, run, &arena, &back, &diag), STATUS_INPUT, &diag,
                 "is not a witness", "a run of another kind is none");
    arena_fini(&arena);
    diag_fini(&diag);
}

/* A store of version 3, and then less. */
static void make_older(const char *path, const char *sql)
{
    char *older = file_text(path_source("tests/older_store.sql"));
    run_sql(path, older);
    run_sql(path, sql);
    free(older);
}

/* Version 1 had no witnesses. */
static void test_older_version(void)
{
    const char *path = path_temp("older.db");
    struct trace_witness back;
    struct arena arena;
    struct diag diag;
    struct store *store = NULL;
    int64_t run;
    arena_init(&arena, 0);
    diag_init(&diag);
    write_witness(path, &diag);
    make_older(path, "DROP TABLE witness; DROP TABLE move; DROP TABLE blocked; DROP TABLE ledger;"
                     " PRAGMA user_version = 1");
    expect_ok(store_open(path, false, &store, &diag), &diag, "an older store can be read");
    expect_ok(store_latest_run(store, &run, &diag), &diag, "as it is");
    expect_ok(store_close(store, &diag), &diag, "and closed");
    expect_error(read_witness(path, STORE_LATEST, &arena, &back, &diag), STATUS_INPUT, &diag,
                 "made by an older swsim", "it holds no witnesses");
    run = write_witness(path, &diag);
    expect_ok(read_witness(path, run, &arena, &back, &diag), &diag,
              "but takes them once one is added");
    arena_fini(&arena);
    diag_fini(&diag);
}

static void test_damaged(void)
{
    struct diag diag;
    struct arena arena;
    struct trace trace, back;
    struct store *store = NULL;
    diag_init(&diag);
    arena_init(&arena, 0);
    build_trace(&trace, &arena, 2);
    const char *path = path_temp("damaged.db");
    store_open(path, true, &store, &diag);
    store_write_trace(store, &trace, NULL, &diag);
    expect_ok(store_close(store, &diag), &diag, "a store to damage");
    run_sql(path, "UPDATE span SET kind = 'nonsense' WHERE id = 1");
    expect_ok(store_open(path, false, &store, &diag), &diag, "its header is well");
    expect_error(store_load(store, STORE_LATEST, STORE_ALL, STORE_ALL, &arena, &back, &diag),
                 STATUS_INPUT, &diag, "unknown kind of span 'nonsense'", "an unknown kind is said");
    store_close(store, &diag);
    run_sql(path, "PRAGMA ignore_check_constraints = ON;"
                  "UPDATE span SET kind = 'host', end_ns = -5 WHERE id = 1");
    store_open(path, false, &store, &diag);
    expect_error(store_load(store, STORE_LATEST, STORE_ALL, STORE_ALL, &arena, &back, &diag),
                 STATUS_INPUT, &diag, "ends before its start", "so is a span of negative length");
    store_close(store, &diag);
    if (truncate(path, 6 * 4096) != 0)
        tap_ok(0, "could truncate %s", path);
    enum status status = store_open(path, false, &store, &diag);
    if (status == STATUS_OK) {
        status = store_load(store, STORE_LATEST, STORE_ALL, STORE_ALL, &arena, &back, &diag);
        store_close(store, &diag);
    }
    expect_error(status, STATUS_INPUT, &diag, "damaged", "half a file is a damaged store");
    arena_fini(&arena);
}

enum { DAMAGED_BYTES = 1 << 20 };

static size_t read_bytes(const char *path, char *out)
{
    FILE *file = fopen(path, "r");
    size_t bytes = file ? fread(out, 1, DAMAGED_BYTES, file) : 0;
    if (file)
        fclose(file);
    return bytes;
}

/* Each page in turn is spoiled. A store that is opened for writing is refused, or is whole enough to be written; a refused
   one has the bytes that it had. */
static void test_damaged_for_writing(void)
{
    static char before[DAMAGED_BYTES], after[DAMAGED_BYTES];
    struct diag diag;
    struct store *store = NULL;
    int refused = 0, changed = 0;
    diag_init(&diag);
    const char *path = path_temp("spoiled.db");
    int64_t run = write_witness(path, &diag);
    expect_ok(run < 0 ? STATUS_SYSTEM : STATUS_OK, &diag, "a store to spoil");
    size_t bytes = read_bytes(path, before);
    for (size_t page = 1; page * 4096 < bytes; page++) {
        FILE *file = fopen(path, "w");
        char *header = before + page * 4096, kept = *header;
        *header = 0x7f; /* no kind of page */
        if (!file || fwrite(before, 1, bytes, file) != bytes || fclose(file) != 0)
            tap_ok(0, "could write %s", path);
        enum status status = store_open(path, true, &store, &diag);
        refused += status == STATUS_INPUT;
        if (status == STATUS_OK)
            store_close(store, &diag);
        changed += status != STATUS_OK &&
                   (read_bytes(path, after) != bytes || memcmp(before, after, bytes) != 0);
        *header = kept;
        diag_fini(&diag);
        diag_init(&diag);
    }
    tap_ok(refused > 10 && changed == 0, "%d of %zu spoiled pages refused, %d with changed bytes",
           refused, bytes / 4096, changed);
    diag_fini(&diag);
}

/* Lines of a ledger come back as they were; lines with the same words are one. */
static void test_ledger(void)
{
    struct diag diag;
    struct arena arena;
    struct trace trace, back;
    struct store *store = NULL;
    diag_init(&diag);
    arena_init(&arena, 0);
    build_trace(&trace, &arena, 2);
    const char *path = path_temp("ledger.db");
    const struct trace_idle line = {0, "dependence", "id", "Work", "Work on s2", 100};
    struct trace_idle other = {0, "host", "id", NULL, "a launch", 1};
    tap_ok(trace_add_idle(&trace, &line) && trace_add_idle(&trace, &other) &&
               trace_add_idle(&trace, &line) && trace.idle_count == 2,
           "lines with the same words are one");
    for (int i = 0; i < 200; i++) {
        char words[32];
        snprintf(words, sizeof words, "cause %d", i);
        other.words = words;
        trace_add_idle(&trace, &other);
    }
    store_open(path, true, &store, &diag);
    expect_ok(store_write_trace(store, &trace, NULL, &diag), &diag, "a ledger is written");
    expect_ok(store_load(store, STORE_LATEST, STORE_ALL, STORE_ALL, &arena, &back, &diag), &diag,
              "and read");
    const struct trace_idle *found = trace_find_idle(&back, 0, trace_intern(&back, "Work on s2"));
    tap_ok(back.idle_count == 202 && found && found->idle_ns == 200 &&
               strcmp(found->word, "id") == 0 && strcmp(found->waits_for, "Work") == 0,
           "as it was");
    tap_ok(!trace_find_idle(&back, 1, trace_intern(&back, "Work on s2")), "of its agent only");
    store_close(store, &diag);
    run_sql(path, "UPDATE ledger SET idle_ns = -1 WHERE words = 'a launch'");
    store_open(path, false, &store, &diag);
    expect_error(store_load(store, STORE_LATEST, STORE_ALL, STORE_ALL, &arena, &back, &diag),
                 STATUS_INPUT, &diag, "impossible line of a ledger", "damage is said");
    store_close(store, &diag);
    arena_fini(&arena);
    diag_fini(&diag);
}

static void test_unwritable(void)
{
    struct diag diag;
    struct store *store = NULL;
    diag_init(&diag);
    expect_error(store_open(path_temp("no/such/folder.db"), true, &store, &diag), STATUS_SYSTEM,
                 &diag, "No such file or directory", "a missing folder is said");
    expect_error(store_open(path_temp("missing.db"), false, &store, &diag), STATUS_SYSTEM, &diag,
                 "No such file or directory", "so is a missing file");
    tap_ok(!exists(path_temp("missing.db")), "which is not created by reading");
    expect_error(store_open(path_temp(""), true, &store, &diag), STATUS_SYSTEM, &diag,
                 "cannot open", "a folder is no file");
    expect_error(store_open("", true, &store, &diag), STATUS_SYSTEM, &diag, "name is empty",
                 "a name is needed");
    if (geteuid() == 0) {
        tap_skip("the superuser may write everywhere");
        return;
    }
    mkdir(path_temp("locked"), 0500);
    expect_error(store_open(path_temp("locked/x.db"), true, &store, &diag), STATUS_SYSTEM, &diag,
                 "cannot open", "a folder without permission is said");
}

/* In a child whose files may not grow beyond 200 kB, as on a full disk. */
static int fill_disk(void)
{
    struct diag diag;
    struct arena arena;
    struct trace trace;
    struct store *store = NULL;
    const struct rlimit limit = {200 * 1024, 200 * 1024};
    diag_init(&diag);
    arena_init(&arena, 0);
    build_trace(&trace, &arena, 20000);
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0 ||
        store_open(path_temp("full.db"), true, &store, &diag) != STATUS_OK)
        return 1;
    enum status written = store_write_trace(store, &trace, NULL, &diag);
    bool said = diag.errors == 1 && strstr(diag_first(&diag), "cannot write");
    enum status closed = store_close(store, &diag);
    bool quiet = diag.errors == 1;
    if (!said)
        fprintf(stderr, "%s\n", diag_first(&diag));
    diag_fini(&diag);
    arena_fini(&arena);
    return written != STATUS_SYSTEM ? 2 : !said ? 3 : closed != STATUS_SYSTEM ? 4 : !quiet ? 5 : 0;
}

/* In a child: a run of which a part is flushed, then death without warning. */
static int die_in_the_middle(void)
{
    struct diag diag;
    struct store *store = NULL;
    int64_t run, agent;
    struct run_info info = some_info;
    info.finished = RUN_OPEN;
    diag_init(&diag);
    if (store_open(path_temp("killed.db"), true, &store, &diag) != STATUS_OK ||
        store_begin_run(store, &info, &run, &diag) != STATUS_OK ||
        store_add_agent(store, run, &(struct trace_agent){0, TRACE_THREAD, "t", 0}, &agent,
                        &diag) != STATUS_OK)
        return 1;
    for (int i = 0; i < 150; i++) {
        const struct trace_span span = {0, SPAN_HOST, "H2D", i, i, i + 1, NULL};
        if (store_add_span(store, run, agent, &span, NULL, &diag) != STATUS_OK ||
            (i == 99 && store_flush(store, &diag) != STATUS_OK))
            return 2;
    }
    raise(SIGKILL);
    return 3;
}

/* The wait status of a child that ran `body`. */
static int in_child(int (*body)(void))
{
    fflush(stdout);
    int status = -1;
    pid_t child = fork();
    if (child == 0)
        _exit(body());
    if (child < 0 || waitpid(child, &status, 0) != child)
        tap_ok(0, "could start a child");
    return status;
}

static void test_full_disk(void)
{
    int status = in_child(fill_disk);
    tap_ok(WIFEXITED(status), "a full disk kills nobody");
    tap_is_int(WEXITSTATUS(status), 0, "it is reported once, and again by status when closing");
    struct diag diag;
    struct store *store = NULL;
    diag_init(&diag);
    expect_ok(store_open(path_temp("full.db"), false, &store, &diag), &diag,
              "the store can still be opened");
    expect_ok(store_close(store, &diag), &diag, "and closed");
}

static void test_killed(void)
{
    int status = in_child(die_in_the_middle);
    tap_ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "a writer is killed in a run");
    struct diag diag;
    struct arena arena;
    struct store *store = NULL;
    struct trace trace = {0};
    diag_init(&diag);
    arena_init(&arena, 0);
    expect_ok(store_open(path_temp("killed.db"), false, &store, &diag), &diag, "its store opens");
    expect_ok(store_load(store, STORE_LATEST, STORE_ALL, STORE_ALL, &arena, &trace, &diag), &diag,
              "the run loads");
    tap_is_int((long long)trace.span_count, 100, "everything flushed is there, nothing else");
    tap_is_int(trace.info.finished, RUN_OPEN, "the run counts as not finished");
    expect_ok(store_close(store, &diag), &diag, "the store is closed");
    expect_ok(store_open(path_temp("killed.db"), true, &store, &diag), &diag, "runs can be added");
    expect_ok(store_end_run(store, trace.run, RUN_INTERRUPTED, 100, &diag), &diag,
              "the old one is marked as interrupted");
    expect_ok(store_close(store, &diag), &diag, "and committed");
    expect_ok(store_open(path_temp("killed.db"), false, &store, &diag), &diag, "open again");
    expect_ok(store_load(store, STORE_LATEST, STORE_ALL, STORE_ALL, &arena, &trace, &diag), &diag,
              "an interrupted run loads");
    tap_ok(trace.info.finished == RUN_INTERRUPTED && trace.info.duration_ns == 100, "and says so");
    store_close(store, &diag);
    arena_fini(&arena);
}

static void test_memory(void)
{
    struct diag diag;
    struct arena arena;
    struct store *store = NULL;
    struct trace trace;
    diag_init(&diag);
    arena_init(&arena, 64 * 1024);
    store_open(path_temp("round.db"), false, &store, &diag);
    tap_is_int(store_load(store, STORE_LATEST, STORE_ALL, STORE_ALL, &arena, &trace, &diag),
               STATUS_SYSTEM, "a run that does not fit into its arena is refused");
    tap_ok(diag.out_of_memory, "as out of memory");
    store_close(store, &diag);
    diag_fini(&diag);
    arena_fini(&arena);
}

/* Rows of a run are found by an index, so that a window of a large store is read at once. */
static void test_plans_of_queries(void)
{
#define X(name, sql) sql,
    static const char *const sqls[] = {STATEMENT_LIST(X)};
#undef X
    sqlite3 *db = NULL;
    int scans = 0, queries = 0;
    sqlite3_open_v2(path_temp("round.db"), &db, SQLITE_OPEN_READONLY, NULL);
    for (size_t i = 0; i < sizeof sqls / sizeof *sqls; i++) {
        sqlite3_stmt *statement = NULL;
        char *text = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sqls[i]);
        if (strncmp(sqls[i], "SELECT", 6) == 0 &&
            sqlite3_prepare_v2(db, text, -1, &statement, NULL) == SQLITE_OK) {
            queries++;
            while (sqlite3_step(statement) == SQLITE_ROW) {
                const char *detail = (const char *)sqlite3_column_text(statement, 3);
                bool small = strcmp(detail, "SCAN run") == 0 || /* a list of runs reads them all */
                             strcmp(detail, "SCAN CONSTANT ROW") == 0; /* no table at all */
                if (strncmp(detail, "SCAN ", 5) == 0 && detail[5] != '(' && !small &&
                    !strstr(detail, "VIRTUAL TABLE")) { /* the numbers of one block */
                    tap_note("%s: %s", sqls[i], detail);
                    scans++;
                }
            }
        }
        sqlite3_finalize(statement);
        sqlite3_free(text);
    }
    sqlite3_close(db);
    tap_ok(queries > 10 && scans == 0, "no query reads a whole table (%d of %d do)", scans,
           queries);
}

/* A child that opens a store once the pipe is closed, says why that fails, and leaves with the status. */
static pid_t open_elsewhere(const char *path, const int begin[2])
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    struct store *store = NULL;
    struct diag diag;
    char byte;
    diag_init(&diag);
    close(begin[1]);
    enum status status = read(begin[0], &byte, 1) == 0 ? STATUS_OK : STATUS_SYSTEM;
    if (status == STATUS_OK)
        status = store_open(path, true, &store, &diag);
    if (status == STATUS_OK)
        status = store_close(store, &diag);
    if (diag.count > 0)
        fprintf(stderr, "# %s\n", diag.messages[0].text);
    _exit(status == STATUS_OK ? 0 : 1);
}

/* How many of some programs that begin a store in one moment fail. */
static int begin_at_once(const char *path, int programs)
{
    pid_t pids[16];
    int begin[2], failed = 0;
    if (pipe(begin) != 0)
        return programs;
    for (int i = 0; i < programs; i++)
        pids[i] = open_elsewhere(path, begin);
    close(begin[0]);
    close(begin[1]);
    for (int i = 0, code; i < programs; i++)
        failed += waitpid(pids[i], &code, 0) != pids[i] || code != 0;
    unlink(path);
    return failed;
}

static void test_begun_at_once(void)
{
    enum { PROGRAMS = 4, ROUNDS = 40 };
    const char *path = path_temp("at_once.db");
    int failed = 0;
    fflush(NULL);
    for (int round = 0; round < ROUNDS; round++)
        failed += begin_at_once(path, PROGRAMS);
    tap_is_int(failed, 0, "programs that begin one store at once, %d times %d", ROUNDS, PROGRAMS);
}

/* The log of a store that was removed without it: SQLite deletes it, and one of several programs finds none to delete. */
static void test_begun_beside_a_log(void)
{
    enum { PROGRAMS = 8, ROUNDS = 40 };
    char path[PATH_MAX], log_path[PATH_MAX + 4];
    int failed = 0;
    snprintf(path, sizeof path, "%s", path_temp("beside_log.db"));
    snprintf(log_path, sizeof log_path, "%s-wal", path);
    fflush(NULL);
    for (int round = 0; round < ROUNDS; round++) {
        FILE *log = fopen(log_path, "w");
        if (!log || fputs("of another store", log) < 0 || fclose(log) != 0)
            failed++;
        failed += begin_at_once(path, PROGRAMS);
    }
    tap_is_int(failed, 0, "and beside the log of a removed store, %d times %d", ROUNDS, PROGRAMS);
}

/* ---- without memory --------------------------------------------------------------------------- */

static void put_text(FILE *out, const char *text)
{
    fprintf(out, "%s;", text ? text : "(null)");
}

/* All that was loaded, as a text. */
static void put_trace(FILE *out, const struct trace *trace)
{
    put_text(out, trace->info.plan_name);
    put_text(out, trace->info.plan_text);
    put_text(out, trace->info.device);
    put_text(out, trace->info.note);
    for (size_t i = 0; i < trace->agent_count; i++)
        put_text(out, trace->agents[i].name);
    for (size_t i = 0; i < trace->span_count; i++) {
        put_text(out, trace->spans[i].task);
        put_text(out, trace->spans[i].cause);
    }
    for (size_t i = 0; i < trace->step_count; i++) {
        put_text(out, trace->steps[i].op);
        put_text(out, trace->steps[i].agent);
        put_text(out, trace->steps[i].task);
    }
    for (size_t i = 0; i < trace->stat_count; i++)
        put_text(out, trace->stats[i].key);
    fprintf(out, "%zu edges, %zu iterations\n", trace->edge_count, trace->iteration_count);
}

static enum status read_run(const char *path, FILE *out, struct diag *diag)
{
    struct arena arena;
    struct store *store = NULL;
    struct trace trace = {0};
    arena_init(&arena, 0);
    enum status status = store_open(path, false, &store, diag);
    if (!status)
        status = store_load(store, STORE_LATEST, STORE_ALL, STORE_ALL, &arena, &trace, diag);
    if (!status)
        status = store_load_steps(store, &trace, diag);
    if (!status)
        put_trace(out, &trace);
    enum status closed = store_close(store, diag);
    arena_fini(&arena);
    return status ? status : closed;
}

/* The same with the allocation `refused` of SQLite refused; *reached: it came to that. The caller frees the text. */
static char *read_scarcely(const char *path, long refused, bool *reached, enum status *status,
                           bool *told)
{
    char *text = NULL;
    size_t bytes = 0;
    struct diag diag;
    FILE *out = open_memstream(&text, &bytes);
    diag_init(&diag);
    before_refusal = refused;
    *status = read_run(path, out, &diag);
    *reached = refused >= 0 && before_refusal < 0;
    before_refusal = -1;
    *told = diag_has_error(&diag);
    diag_fini(&diag);
    fclose(out);
    return text;
}

/* A run whose texts are larger than a page. */
static void write_large(const char *path)
{
    static char text[20000];
    struct diag diag;
    struct arena arena;
    struct trace trace;
    struct store *store = NULL;
    memset(text, 'x', sizeof text - 1);
    arena_init(&arena, 0);
    diag_init(&diag);
    build_trace(&trace, &arena, 5);
    trace.info.plan_text = text;
    trace.info.note = text;
    enum status status = store_open(path, true, &store, &diag);
    if (!status)
        status = store_write_trace(store, &trace, NULL, &diag);
    (void)store_close(store, &diag);
    expect_ok(status, &diag, "a run with large texts is written");
    arena_fini(&arena);
}

/* A run is read as it is, or memory is said to be exhausted: the store is not called a bad one, and no text is
   taken for none. */
static void test_without_memory(void)
{
    const char *path = path_temp("scarce.db");
    bool reached = true, told;
    enum status status;
    long refused = 0, wrong = 0;
    write_large(path);
    char *want = read_scarcely(path, -1, &reached, &status, &told);
    tap_ok(status == STATUS_OK && strlen(want) > 200, "a run is read");
    for (reached = true; reached; refused++) {
        char *got = read_scarcely(path, refused, &reached, &status, &told);
        bool good = status == STATUS_OK ? strcmp(got, want) == 0 : status == STATUS_SYSTEM && told;
        if (!good && wrong++ == 0)
            tap_note("allocation %ld refused: status %d, read %.300s", refused, (int)status, got);
        free(got);
    }
    free(want);
    tap_ok(refused > 100 && wrong == 0, "%ld allocations of SQLite refused, %ld with a wrong end",
           refused - 1, wrong);
}

int main(void)
{
    tap_ok(refused_sql_begin(), "SQLite takes memory from this test");
    test_round_trip();
    test_without_memory();
    test_window();
    test_plans_of_queries();
    test_many_runs();
    test_not_a_store();
    test_names();
    test_foreign_schema();
    test_impossible_numbers();
    test_witness();
    test_older_version();
    test_damaged();
    test_damaged_for_writing();
    test_ledger();
    test_unwritable();
    test_full_disk();
    test_killed();
    test_begun_at_once();
    test_begun_beside_a_log();
    test_memory();
    return tap_done();
}
