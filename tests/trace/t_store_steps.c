/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_store_steps.c - steps in a trace store: blocks of them come back as the rows that went in, also by plain SQL, also from
 * a store of an older version; what has damaged a block is told.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness.h"
#include "tests/tap.h"
#include "trace/store.h"

enum { STEPS = 1000 };

static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % below;
}

static const char *const agents[] = {"thread default", "stream main", "driver", ""};
static const char *const ops[] = {"launch", "start", "finish", "take"};
static const char *const tasks[] = {NULL, "H2D", "Forward", ""};

/* Steps of two runs in turns: near each other in time, and as far apart as a store takes them. */
static void make_steps(struct trace_step *steps)
{
    int64_t seq[2] = {0, 100};
    for (int i = 0; i < STEPS; i++) {
        int run = i % 300 < 200;
        bool far = draw(100) == 0;
        seq[run] += draw(50) == 0 ? 7 : 1; /* positions may be missing */
        steps[i] = (struct trace_step){
            .seq = seq[run],
            .rank = (int)draw(3) - 1,
            .agent = agents[draw(4)],
            .op = ops[draw(4)],
            .task = tasks[draw(4)],
            .iteration = far ? INT64_C(1) << 53 : (int64_t)draw(6) - 1,
            .time_ns = far ? (INT64_C(1) << 56) * (draw(2) ? 1 : -1)
                           : 1000 * (int64_t)i - (int64_t)draw(4000),
        };
    }
}

static bool same_step(const struct trace_step *a, const struct trace_step *b)
{
    bool task = a->task && b->task ? strcmp(a->task, b->task) == 0 : a->task == b->task;
    return a->seq == b->seq && a->rank == b->rank && strcmp(a->agent, b->agent) == 0 &&
           strcmp(a->op, b->op) == 0 && task && a->iteration == b->iteration &&
           a->time_ns == b->time_ns;
}

/* Adds two runs and their steps. False after a failed case. */
static bool write_steps(const char *path, const struct trace_step *steps, int64_t runs[2])
{
    const struct run_info info = {.kind = RUN_MEASURED, .plan_name = "p", .plan_text = "t"};
    struct store *store = NULL;
    struct diag diag;
    diag_init(&diag);
    enum status status = store_open(path, true, &store, &diag);
    for (int run = 0; run < 2 && !status; run++)
        status = store_begin_run(store, &info, &runs[run], &diag);
    for (int i = 0; i < STEPS && !status; i++) {
        status = store_add_step(store, runs[i % 300 < 200], &steps[i], &diag);
        if (!status && draw(100) == 0)
            status = store_flush(store, &diag);
    }
    if (!status)
        status = store_close(store, &diag);
    tap_ok(!status, "steps of two runs are written");
    diag_tell(&diag);
    diag_fini(&diag);
    return !status;
}

/* The steps of both runs, in the order in which they were written. */
static bool come_back(const char *path, const struct trace_step *steps, const int64_t runs[2])
{
    struct store *store = NULL;
    struct arena arena;
    struct trace back[2];
    struct diag diag;
    size_t at[2] = {0, 0};
    bool same = true;
    diag_init(&diag);
    arena_init(&arena, 0);
    enum status status = store_open(path, false, &store, &diag);
    for (int run = 0; run < 2 && !status; run++) {
        status = store_load(store, runs[run], STORE_ALL, STORE_ALL, &arena, &back[run], &diag);
        if (!status)
            status = store_load_steps(store, &back[run], &diag);
    }
    for (int i = 0; i < STEPS && !status && same; i++) {
        int run = i % 300 < 200;
        same = at[run] < back[run].step_count && same_step(&steps[i], &back[run].steps[at[run]++]);
        if (!same)
            tap_note("step %lld of run %d is another", (long long)steps[i].seq, run);
    }
    same = same && !status && at[0] == back[0].step_count && at[1] == back[1].step_count;
    diag_tell(&diag);
    diag_fini(&diag);
    store_close(store, &diag);
    arena_fini(&arena);
    return same;
}

static int64_t ask(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *row = NULL;
    int64_t number = -1;
    if (sqlite3_open(path, &db) == SQLITE_OK &&
        sqlite3_prepare_v2(db, sql, -1, &row, NULL) == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW)
        number = sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    sqlite3_close(db);
    return number;
}

static void change(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    int code = sqlite3_open(path, &db);
    if (code == SQLITE_OK)
        code = sqlite3_exec(db, sql, NULL, NULL, NULL);
    if (code != SQLITE_OK)
        tap_ok(0, "could run '%.60s': %s", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
}

/* Another program with plain SQLite. */
static void test_rows(const char *path, const struct trace_step *steps)
{
    tap_is_int(ask(path, "SELECT count(*) FROM step"), STEPS, "the view has a row a step");
    tap_ok(ask(path, "SELECT sum(iteration) FROM step WHERE iteration < 1000") >= 0 &&
               ask(path, "SELECT count(*) FROM step WHERE iteration IS NULL") > 0,
           "with NULL for no iteration");
    int64_t sum = 0;
    for (int i = 0; i < STEPS; i++)
        sum += steps[i].time_ns;
    tap_is_int(ask(path, "SELECT sum(time_ns) FROM step"), sum, "and all times");
}

static void test_delete(const char *path, int64_t run)
{
    static const char *const tables[] = {"step", "step_block", "step_word"};
    char sql[120];
    snprintf(sql, sizeof sql, "PRAGMA foreign_keys = ON; DELETE FROM run WHERE id = %lld",
             (long long)run);
    change(path, sql);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        snprintf(sql, sizeof sql, "SELECT count(*) - 100 * sum(run = %lld) FROM %s", (long long)run,
                 tables[i]);
        tap_ok(ask(path, sql) > 0, "a run that is deleted takes its rows of %s along", tables[i]);
    }
}

/* Of version 3: read as it is, and brought up to date by the next run. */
static void test_older(const char *path, const struct trace_step *steps, const int64_t runs[2])
{
    char *older = file_text(path_source("tests/older_store.sql"));
    int64_t more[2];
    change(path, older);
    free(older);
    tap_is_int(ask(path, "SELECT count(*) FROM sqlite_master WHERE name = 'step_block'"), 0,
               "an older store has no blocks");
    tap_ok(come_back(path, steps, runs), "its steps are read");
    if (!write_steps(path, steps, more))
        return;
    tap_is_int(ask(path, "PRAGMA user_version"), 4, "a run is added: it has today's version");
    tap_ok(come_back(path, steps, runs), "the older steps are still there");
    tap_ok(come_back(path, steps, more), "and the new ones");
}

static void test_damage(const char *path)
{
    static const struct {
        const char *sql, *want;
    } cases[] = {
        {"UPDATE step_block SET numbers = '[1, 2'", "malformed JSON"},
        {"UPDATE step_block SET words = 0", "step without an agent"},
        {"UPDATE step_block SET time_ns = 9223372036854775807", "impossible"},
        {"UPDATE step_block SET seq = seq - 9000", "impossible iteration"},
        {"UPDATE step_word SET rank = 99999", "impossible rank"},
        {"DELETE FROM step_word WHERE number = 1", "step without an agent"},
        {"DROP TABLE step_word", "no such table"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct store *store = NULL;
        struct arena arena;
        struct trace back;
        struct diag diag;
        char copy[PATH_CAP + 80];
        snprintf(copy, sizeof copy, "VACUUM INTO '%s'", path_temp("damaged.db"));
        remove(path_temp("damaged.db"));
        change(path, copy);
        change(path_temp("damaged.db"), cases[i].sql);
        diag_init(&diag);
        arena_init(&arena, 0);
        enum status status = store_open(path_temp("damaged.db"), false, &store, &diag);
        if (!status)
            status = store_load(store, STORE_LATEST, STORE_ALL, STORE_ALL, &arena, &back, &diag);
        if (!status)
            status = store_load_steps(store, &back, &diag);
        tap_ok(status == STATUS_INPUT && diag_says(&diag, cases[i].want), "%s", cases[i].sql);
        diag_tell(&diag);
        diag_fini(&diag);
        store_close(store, &diag);
        arena_fini(&arena);
    }
}

int main(void)
{
    static struct trace_step steps[STEPS];
    char path[PATH_CAP];
    int64_t runs[2];
    snprintf(path, sizeof path, "%s", path_temp("steps.db"));
    state = env_seed();
    make_steps(steps);
    if (write_steps(path, steps, runs)) {
        tap_ok(come_back(path, steps, runs), "and come back as they were");
        test_rows(path, steps);
        test_damage(path);
        test_older(path, steps, runs);
        test_delete(path, runs[0]);
    }
    return tap_done();
}
