/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_sql.h - inside the trace store: its statements, and how values get into them.
 *
 * Private to store.c and the other store_*.c. A statement is prepared when first used and lives as long as
 * the store.
 */
#ifndef SWSIM_STORE_SQL_H
#define SWSIM_STORE_SQL_H

#include <limits.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/table.h"
#include "plan/plan.h"
#include "base/status.h"
#include "trace.h"

/*                NAME            SQL */
#define STATEMENT_LIST(X)                                                                          \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                    \
    X(COMMIT, "COMMIT")                                                                            \
    X(BEGIN_RUN, "INSERT INTO run (kind, plan_name, plan_text, driver, device, ranks, seed,"       \
                 " iterations_wanted, created, duration_ns, finished, note)"                       \
                 " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")                                   \
    X(RUN_IS_THERE, "SELECT 1 FROM run WHERE id = ?")                                              \
    X(END_RUN, "UPDATE run SET finished = ?2, duration_ns = ?3 WHERE id = ?1")                     \
    X(SET_ITERATIONS, "UPDATE run SET iterations_wanted = ?2 WHERE id = ?1")                       \
    X(ADD_AGENT, "INSERT INTO agent (run, rank, kind, name, position) VALUES (?, ?, ?, ?, ?)")     \
    X(NEXT_SPAN, "SELECT coalesce(max(id), 0) + 1 FROM span")                                      \
    X(ADD_SPAN, "INSERT INTO span (run, id, agent, kind, task, iteration, start_ns, end_ns,"       \
                " cause) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")                                      \
    X(ADD_SPANS, "INSERT INTO span (run, id, agent, kind, task, iteration, start_ns, end_ns,"      \
                 " cause) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?, ?, ?, ?),"        \
                 " (?, ?, ?, ?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?, ?, ?, ?),"                      \
                 " (?, ?, ?, ?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?, ?, ?, ?),"                      \
                 " (?, ?, ?, ?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?, ?, ?, ?)")                      \
    X(ADD_EDGE, "INSERT OR IGNORE INTO edge (run, from_span, to_span, kind) VALUES (?, ?, ?, ?)")  \
    X(ADD_ITERATION, "INSERT INTO iteration (run, rank, number, start_ns, retire_ns)"              \
                     " VALUES (?, ?, ?, ?, ?)")                                                    \
    X(ADD_STEP_WORD, "INSERT INTO step_word (run, number, rank, agent, op, task)"                  \
                     " VALUES (?, ?, ?, ?, ?, ?)")                                                 \
    X(NEXT_STEP_WORD, "SELECT coalesce(max(number) + 1, 0) FROM step_word WHERE run = ?")          \
    X(ADD_STEP_BLOCK, "INSERT INTO step_block (run, seq, words, iterations, iteration, time_ns,"   \
                      " numbers) VALUES (?, ?, ?, ?, ?, ?, ?)")                                    \
    X(OLD_STEPS, "SELECT run, seq, rank, agent, op, task, iteration, time_ns FROM old_step"        \
                 " ORDER BY run, seq")                                                             \
    X(DROP_OLD_STEPS, "DROP TABLE old_step")                                                       \
    X(ADD_EDGES, "INSERT OR IGNORE INTO edge (run, from_span, to_span, kind) VALUES (?, ?, ?, ?)," \
                 " (?, ?, ?, ?), (?, ?, ?, ?), (?, ?, ?, ?), (?, ?, ?, ?), (?, ?, ?, ?),"          \
                 " (?, ?, ?, ?), (?, ?, ?, ?)")                                                    \
    X(ADD_STAT, "INSERT OR REPLACE INTO stat (run, key, value) VALUES (?, ?, ?)")                  \
    X(ADD_IDLE, "INSERT INTO ledger (run, agent, cause, word, waits_for, words, idle_ns)"          \
                " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run, agent, words) DO UPDATE SET"      \
                " idle_ns = idle_ns + excluded.idle_ns")                                           \
    X(IDLES, "SELECT agent, cause, word, waits_for, words, idle_ns FROM ledger"                    \
             " WHERE run = ? ORDER BY agent, idle_ns DESC, words")                                 \
    X(LIST_RUNS,                                                                                   \
      "SELECT id, kind, plan_name, plan_text, driver, device, ranks, seed,"                        \
      " iterations_wanted, created, duration_ns, finished, note,"                                  \
      " (SELECT count(*) FROM span WHERE span.run = run.id),"                                      \
      " coalesce((SELECT max(number) FROM iteration WHERE iteration.run = run.id AND rank ="       \
      " (SELECT min(rank) FROM iteration WHERE iteration.run = run.id)) -"                         \
      " (SELECT min(number) FROM iteration WHERE iteration.run = run.id AND rank ="                \
      " (SELECT min(rank) FROM iteration WHERE iteration.run = run.id)) + 1, 0)"                   \
      " FROM run WHERE ?1 IS NULL OR id = ?1 ORDER BY id")                                         \
    X(ADD_WITNESS, "INSERT INTO witness (run, property, iterations, ranks, max_depth)"             \
                   " VALUES (?, ?, ?, ?, ?)")                                                      \
    X(ADD_MOVE, "INSERT INTO move (run, seq, agent, choice) VALUES (?, ?, ?, ?)")                  \
    X(ADD_BLOCKED, "INSERT INTO blocked (run, seq, rank, agent, waits_for, waits_on, in_cycle)"    \
                   " VALUES (?, ?, ?, ?, ?, ?, ?)")                                                \
    X(WITNESS, "SELECT property, iterations, ranks, max_depth FROM witness WHERE run = ?")         \
    X(LATEST_WITNESS, "SELECT max(run) FROM witness")                                              \
    X(MOVES, "SELECT seq, agent, choice FROM move WHERE run = ? ORDER BY seq")                     \
    X(BLOCKED, "SELECT seq, rank, agent, waits_for, waits_on, in_cycle FROM blocked"               \
               " WHERE run = ? ORDER BY seq")                                                      \
    X(LATEST_RUN, "SELECT max(id) FROM run")                                                       \
    X(AGENTS, "SELECT id, rank, kind, name, position FROM agent WHERE run = ? ORDER BY id")        \
    X(FIRST_ITERATION, "SELECT min(iteration) FROM span WHERE run = ? AND iteration >= 0")         \
    X(REACHES, "SELECT min(start_ns) FROM (SELECT start_ns, end_ns FROM span WHERE agent = ?1"     \
               " AND start_ns < ?2 ORDER BY start_ns DESC LIMIT ?3) WHERE end_ns >= ?2")           \
    X(WINDOW, "SELECT min(start_ns), max(end_ns) FROM span"                                        \
              " WHERE run = ? AND iteration BETWEEN ? AND ?")                                      \
    X(SPANS, "SELECT id, kind, task, iteration, start_ns, end_ns, cause FROM span"                 \
             " WHERE agent = ?1 AND end_ns >= ?2 AND start_ns BETWEEN ?4 AND ?3"                   \
             " ORDER BY start_ns, end_ns, id")                                                     \
    X(EDGES_FROM, "SELECT from_span, to_span, kind FROM edge WHERE run = ? AND from_span = ?")     \
    X(OLD_EDGES_FROM, "SELECT from_span, to_span, kind FROM edge INDEXED BY edge_from"             \
                      " WHERE run = ? AND from_span = ?")                                          \
    X(EDGES, "SELECT from_span, to_span, kind FROM edge WHERE run = ?")                            \
    X(ITERATIONS, "SELECT rank, number, start_ns, retire_ns FROM iteration WHERE run = ?"          \
                  " ORDER BY rank, number")                                                        \
    X(ITERATIONS_OF,                                                                               \
      "SELECT rank, number, start_ns, retire_ns FROM iteration WHERE run = ?1"                     \
      " AND rank = ?2 AND number IN (SELECT min(number) FROM iteration"                            \
      " WHERE run = ?1 AND rank = ?2 UNION SELECT max(number) FROM iteration"                      \
      " WHERE run = ?1 AND rank = ?2 UNION SELECT number FROM iteration"                           \
      " WHERE run = ?1 AND rank = ?2 AND number BETWEEN ?3 AND ?4) ORDER BY number")               \
    X(RUN_STATE, "SELECT finished, duration_ns, iterations_wanted FROM run WHERE id = ?")          \
    X(ITERATIONS_DONE, "SELECT (SELECT min(number) FROM iteration WHERE run = ?1 AND rank = ?2),"  \
                       " (SELECT max(number) FROM iteration WHERE run = ?1 AND rank = ?2)")        \
    X(LAST_ITERATIONS, "SELECT retire_ns FROM iteration WHERE run = ? AND rank = ?"                \
                       " ORDER BY number DESC LIMIT ?")                                            \
    X(NEWEST_END, "SELECT end_ns FROM span WHERE agent = ? ORDER BY start_ns DESC LIMIT 1")        \
    /* one that began before and lasts is the last one that began before */                        \
    X(BUSY, "SELECT task, sum(min(end_ns, ?3) - max(start_ns, ?2)) FROM span WHERE agent = ?1"     \
            " AND start_ns >= coalesce((SELECT max(start_ns) FROM span WHERE agent = ?1"           \
            " AND start_ns <= ?2), ?2) AND start_ns < ?3 AND end_ns > ?2 AND kind = ?4"            \
            " GROUP BY task ORDER BY 2 DESC, task")                                                \
    X(STATS, "SELECT key, value FROM stat WHERE run = ? ORDER BY key")                             \
    X(STEPS, "SELECT seq, rank, agent, op, task, iteration, time_ns FROM step WHERE run = ?"       \
             " ORDER BY seq LIMIT ?")

#define X(name, sql) STATEMENT_##name,
enum statement { STATEMENT_LIST(X) STATEMENT_COUNT };
#undef X

/* The value of a parameter; texts must live until the statement is stepped. */
struct store_sql_value {
    enum { VALUE_NULL, VALUE_INT, VALUE_REAL, VALUE_TEXT } type;
    int64_t integer;
    double real;
    const char *text;
};

/* Rows that go in together: the statements of store.c. */
enum batch_table { BATCH_SPANS, BATCH_EDGES, BATCH_TABLES };
enum { BATCH_ROWS = 8, BATCH_COLUMNS = 9, BATCH_TEXT = 2048 };
struct batch_kind {
    enum statement one, many; /* of a row, of BATCH_ROWS */
    int columns;
};
extern const struct batch_kind batch_kinds[BATCH_TABLES];
struct store_sql_batch {
    int rows;
    size_t used; /* of `text` */
    struct store_sql_value values[BATCH_ROWS * BATCH_COLUMNS];
    char text[BATCH_TEXT];
};

/* Steps that go in together (store_steps.c). */
enum { STEP_BLOCK = 64 };
struct step_blocks {
    int64_t run, seq; /* of the first one that is kept here */
    int count;
    struct kept_step {
        int64_t word, iteration, time_ns;
    } steps[STEP_BLOCK];
    struct step_word { /* a row of step_word */
        int rank;
        const char *agent, *op, *task;
        int64_t number;
    } * words; /* of this run */
    size_t word_cap;
    struct table table; /* of the words */
    int64_t next_word;
    struct arena texts;
};

struct store {
    sqlite3 *db;
    char *path;
    sqlite3_stmt *statements[STATEMENT_COUNT];
    int version;   /* of its schema; an older one is brought up to date where runs are added */
    bool writable; /* opened with `create` */
    bool in_transaction;
    bool failed; /* a write failed; every later one fails with the same reason */
    enum status failed_status;
    struct diag failure;
    int rows;           /* written since the last commit */
    int64_t run;        /* known to be there in this transaction; 0: none */
    struct arena shown; /* texts of a query that had to be made printable */
    int64_t next_span;  /* its id, known in this transaction; 0: not known */
    struct store_sql_batch batches[BATCH_TABLES];
    struct step_blocks steps;
};

static inline struct store_sql_value value_int(int64_t integer)
{
    return (struct store_sql_value){.type = VALUE_INT, .integer = integer};
}

/* NULL for -1: no iteration. */
static inline struct store_sql_value value_iteration(int64_t iteration)
{
    return (struct store_sql_value){.type = iteration < 0 ? VALUE_NULL : VALUE_INT,
                                    .integer = iteration};
}

static inline struct store_sql_value value_real(double real)
{
    return (struct store_sql_value){.type = VALUE_REAL, .real = real};
}

static inline struct store_sql_value value_text(const char *text)
{
    return (struct store_sql_value){.type = text ? VALUE_TEXT : VALUE_NULL, .text = text};
}

/* For texts that are never NULL in the store. */
static inline struct store_sql_value value_string(const char *text)
{
    return value_text(text ? text : "");
}

/* Report SQLite's last error on this store: "cannot WHAT trace store ...". */
enum status sql_error(struct store *store, const char *what, struct diag *diag);

/* The statement, ready for binding; NULL when SQLite cannot prepare it. */
sqlite3_stmt *sql_prepare(struct store *store, enum statement statement);

/* Bind `values`, as many as the statement has parameters. */
bool sql_bind(sqlite3_stmt *statement, const struct store_sql_value *values);

/* The number in the one row of the result. */
enum status sql_number(struct store *store, enum statement statement,
                       const struct store_sql_value *values, int64_t *out, struct diag *diag);
/* Write one row, which begins with its run; `out_id` (may be NULL) is its rowid. Opens the transaction where none is open and
   commits a full batch. */
enum status sql_insert(struct store *store, enum statement statement,
                       const struct store_sql_value *values, int64_t *out_id, struct diag *diag);
/* The same for a row of a table that gets many: it goes in with others, at the latest when the store is flushed or read. */
enum status sql_flush_batches(struct store *store, struct diag *diag);
/* A step likewise. */
enum status sql_add_step(struct store *store, int64_t run, const struct trace_step *step,
                         struct diag *diag);
enum status sql_flush_steps(struct store *store, struct diag *diag);
void sql_free_steps(struct store *store);
/* The rows of old_step, which an older version wrote, become steps, and the table goes. In one transaction with its caller's
   other changes. */
enum status sql_move_steps(struct store *store, struct diag *diag);

/* Numbers of a store: the noun, the least and the greatest. A number outside is damage. Differences of times,
   and sums of as many as a store holds in practice, stay within 64 bits. */
#define QUANTITY_LIST(X)                                                                           \
    X(RANK, "rank", 0, PLAN_MAX_RANKS - 1)                                                         \
    X(ANY_RANK, "rank", -1, PLAN_MAX_RANKS - 1) /* -1: of no rank, as the data loader */           \
    X(RANKS, "number of ranks", 0, PLAN_MAX_RANKS)                                                 \
    X(POSITION, "position", INT_MIN, INT_MAX)                                                      \
    X(INDEX, "index", 0, INT_MAX)                                                                  \
    X(ITERATION, "iteration", -1, INT64_C(1) << 53) /* -1: NULL */                                 \
    X(TIME, "time", -(INT64_C(1) << 56), INT64_C(1) << 56)                                         \
    X(DATE, "date", 0, INT64_C(1) << 40)

#define X(name, noun, min, max) QUANTITY_##name,
enum quantity { QUANTITY_LIST(X) };
#undef X

/* ---- reading --------------------------------------------------------------------------------- */

/* A query under way: rows come from sql_next until it returns false, then sql_end tells whether that
   was the end or an error. */
struct query {
    struct store *store;
    sqlite3_stmt *statement; /* NULL: could not be prepared */
    int code;
};

struct query sql_query(struct store *store, enum statement statement,
                       const struct store_sql_value *values);
bool sql_next(struct query *query);
/* `status` is that of handling the rows. */
enum status sql_end(struct query *query, enum status status, struct diag *diag);

int64_t sql_int(const struct query *query, int column);
/* The same where the number must be possible: otherwise reported, *status set, and 0. NULL is -1. */
int64_t sql_quantity(const struct query *query, int column, enum quantity quantity,
                     enum status *status, struct diag *diag);
/* As it may be shown (base/printable.h), until sql_end. */
const char *sql_text(const struct query *query, int column);
/* The same, of several lines, and "" for NULL: a plan. */
const char *sql_lines(const struct query *query, int column);
/* Never NULL, as the schema promises and another's file may not keep. */
const char *sql_string(const struct query *query, int column);
/* -1 for NULL: no iteration. */
int64_t sql_iteration(const struct query *query, int column);

/* A row has an impossible value: STATUS_INPUT. */
enum status sql_damage(const struct store *store, struct diag *diag, const char *what,
                       const char *found);

/* A trace that holds only the description of a run. In store_load.c. */
enum status store_load_info(struct store *store, int64_t run, struct arena *arena,
                            struct trace *out, struct diag *diag);

/* The ledger of the run that `trace` is loaded from, none from an older store; the ids of its agents in the store are
   in rising order. In store.c. */
enum status sql_load_ledger(struct store *store, const int64_t *agent_ids, struct trace *trace,
                            struct diag *diag);

/* ---- writing --------------------------------------------------------------------------------- */

/* Run a statement that gives no rows. */
bool sql_execute(struct store *store, enum statement statement,
                 const struct store_sql_value *values);

#endif
