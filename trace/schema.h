/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.h - the tables of a trace store, as SQL.
 *
 * Times are nanoseconds from the start of their run; in a witness they count steps. Kinds are the
 * texts of trace.h. Deleting a row of `run` deletes the whole run. A change of a table raises
 * SCHEMA_VERSION, which is kept in `PRAGMA user_version` and checked when a store is opened.
 *
 *     version 1   run, agent, span, edge, iteration, step, stat
 *     version 2   and witness, move, blocked. A store of version 1 is read as it is, and gets these
 *                 tables when a run is added to it
 *     version 3   and ledger, in the same way
 */
#ifndef SWSIM_SCHEMA_H
#define SWSIM_SCHEMA_H

enum {
    SCHEMA_APPLICATION = 0x73777472, /* "swtr", in PRAGMA application_id */
    SCHEMA_VERSION = 3,
    SCHEMA_WITH_LEDGER = 3
};

/* One run of one plan: measured, simulated or a witness. finished: 0 no (running, or killed),
   1 yes, 2 interrupted. */
#define SCHEMA_RUN                                                                                 \
    "CREATE TABLE run ("                                                                           \
    " id INTEGER PRIMARY KEY,"                                                                     \
    " kind TEXT NOT NULL,"                                                                         \
    " plan_name TEXT NOT NULL,"                                                                    \
    " plan_text TEXT NOT NULL,"                                                                    \
    " driver TEXT NOT NULL,"                                                                       \
    " device TEXT NOT NULL,"                                                                       \
    " ranks INTEGER NOT NULL,"                                                                     \
    " seed INTEGER NOT NULL,"                                                                      \
    " iterations_wanted INTEGER NOT NULL,"                                                         \
    " created INTEGER NOT NULL," /* seconds since 1970 */                                          \
    " duration_ns INTEGER NOT NULL,"                                                               \
    " finished INTEGER NOT NULL CHECK (finished IN (0, 1, 2)),"                                    \
    " note TEXT);"

/* A thread, a stream or a driver of one rank; `position` orders the lanes of a picture. */
#define SCHEMA_AGENT                                                                               \
    "CREATE TABLE agent ("                                                                         \
    " id INTEGER PRIMARY KEY,"                                                                     \
    " run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,"                                      \
    " rank INTEGER NOT NULL,"                                                                      \
    " kind TEXT NOT NULL,"                                                                         \
    " name TEXT NOT NULL,"                                                                         \
    " position INTEGER NOT NULL);"                                                                 \
    "CREATE INDEX agent_of_run ON agent (run);"

/* The work of an agent from start to end and the reason why it was slow (`cause`); of kind wait, the reason
   (`cause`). */
#define SCHEMA_SPAN                                                                                \
    "CREATE TABLE span ("                                                                          \
    " id INTEGER PRIMARY KEY,"                                                                     \
    " run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,"                                      \
    " agent INTEGER NOT NULL REFERENCES agent ON DELETE CASCADE,"                                  \
    " kind TEXT NOT NULL,"                                                                         \
    " task TEXT,"                                                                                  \
    " iteration INTEGER,"                                                                          \
    " start_ns INTEGER NOT NULL,"                                                                  \
    " end_ns INTEGER NOT NULL CHECK (end_ns >= start_ns),"                                         \
    " cause TEXT);"                                                                                \
    "CREATE INDEX span_of_agent ON span (agent, start_ns);"                                        \
    "CREATE INDEX span_of_iteration ON span (run, iteration);"

/* An arrow from one span to another: a dependence, or a launch from a thread to a stream. */
#define SCHEMA_EDGE                                                                                \
    "CREATE TABLE edge ("                                                                          \
    " run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,"                                      \
    " from_span INTEGER NOT NULL REFERENCES span ON DELETE CASCADE,"                               \
    " to_span INTEGER NOT NULL REFERENCES span ON DELETE CASCADE,"                                 \
    " kind TEXT NOT NULL);"                                                                        \
    "CREATE INDEX edge_of_run ON edge (run);"                                                      \
    "CREATE INDEX edge_from ON edge (from_span);"                                                  \
    "CREATE INDEX edge_to ON edge (to_span);"

/* When an iteration began and when it was retired on one rank. */
#define SCHEMA_ITERATION                                                                           \
    "CREATE TABLE iteration ("                                                                     \
    " run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,"                                      \
    " rank INTEGER NOT NULL,"                                                                      \
    " number INTEGER NOT NULL,"                                                                    \
    " start_ns INTEGER NOT NULL,"                                                                  \
    " retire_ns INTEGER NOT NULL,"                                                                 \
    " PRIMARY KEY (run, rank, number)) WITHOUT ROWID;"

/* The steps of the machine in the order they were taken: replay, and the story of a witness. */
#define SCHEMA_STEP                                                                                \
    "CREATE TABLE step ("                                                                          \
    " run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,"                                      \
    " seq INTEGER NOT NULL,"                                                                       \
    " rank INTEGER NOT NULL,"                                                                      \
    " agent TEXT NOT NULL,"                                                                        \
    " op TEXT NOT NULL,"                                                                           \
    " task TEXT,"                                                                                  \
    " iteration INTEGER,"                                                                          \
    " time_ns INTEGER NOT NULL,"                                                                   \
    " PRIMARY KEY (run, seq)) WITHOUT ROWID;"

/* Named figures of a run. */
#define SCHEMA_STAT                                                                                \
    "CREATE TABLE stat ("                                                                          \
    " run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,"                                      \
    " key TEXT NOT NULL,"                                                                          \
    " value REAL NOT NULL,"                                                                        \
    " PRIMARY KEY (run, key)) WITHOUT ROWID;"

/* The property that a run of kind witness violates, and the options of the check; NULL iterations: any
   number, 0 ranks and max_depth: those of the plan. */
#define SCHEMA_WITNESS                                                                             \
    "CREATE TABLE witness ("                                                                       \
    " run INTEGER PRIMARY KEY REFERENCES run ON DELETE CASCADE,"                                   \
    " property TEXT NOT NULL,"                                                                     \
    " iterations INTEGER,"                                                                         \
    " ranks INTEGER NOT NULL,"                                                                     \
    " max_depth INTEGER NOT NULL);"

/* The transitions of a witness: agent by its number in the lowered program. The row of `step` with
   the same seq has them in words. */
#define SCHEMA_MOVE                                                                                \
    "CREATE TABLE move ("                                                                          \
    " run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,"                                      \
    " seq INTEGER NOT NULL,"                                                                       \
    " agent INTEGER NOT NULL,"                                                                     \
    " choice INTEGER NOT NULL,"                                                                    \
    " PRIMARY KEY (run, seq)) WITHOUT ROWID;"

/* The agents that are blocked at the end of a witness, and the reason; waits_on is the seq of the agent that
   must act first, NULL: none of these. */
#define SCHEMA_BLOCKED                                                                             \
    "CREATE TABLE blocked ("                                                                       \
    " run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,"                                      \
    " seq INTEGER NOT NULL,"                                                                       \
    " rank INTEGER NOT NULL,"                                                                      \
    " agent TEXT NOT NULL,"                                                                        \
    " waits_for TEXT NOT NULL,"                                                                    \
    " waits_on INTEGER,"                                                                           \
    " in_cycle INTEGER NOT NULL,"                                                                  \
    " PRIMARY KEY (run, seq)) WITHOUT ROWID;"

/* Why a stream was idle, in total: cause and word are keys (trace/ledger.h), waits_for is a task, words are the
   `cause` of the spans. */
#define SCHEMA_LEDGER                                                                              \
    "CREATE TABLE ledger ("                                                                        \
    " run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,"                                      \
    " agent INTEGER NOT NULL REFERENCES agent ON DELETE CASCADE,"                                  \
    " cause TEXT NOT NULL,"                                                                        \
    " word TEXT NOT NULL,"                                                                         \
    " waits_for TEXT,"                                                                             \
    " words TEXT NOT NULL,"                                                                        \
    " idle_ns INTEGER NOT NULL,"                                                                   \
    " PRIMARY KEY (run, agent, words)) WITHOUT ROWID;"                                             \
    "CREATE INDEX ledger_of_agent ON ledger (agent);"

#define SCHEMA_SINCE_2 SCHEMA_LEDGER
#define SCHEMA_SINCE_1 SCHEMA_WITNESS SCHEMA_MOVE SCHEMA_BLOCKED SCHEMA_SINCE_2

#define SCHEMA_ALL                                                                                 \
    SCHEMA_RUN SCHEMA_AGENT SCHEMA_SPAN SCHEMA_EDGE SCHEMA_ITERATION SCHEMA_STEP SCHEMA_STAT       \
        SCHEMA_SINCE_1

#endif
