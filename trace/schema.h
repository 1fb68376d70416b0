/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.h - the tables of a trace store, as SQL with a comment for each table and column.
 *
 * `swsim schema store` prints this text, and SQLite keeps it in the store itself. Times are nanoseconds from the start of
 * their run; in a witness they count steps. Deleting a row of `run` deletes the whole run. A change of
 * a table raises SCHEMA_VERSION, which is kept in `PRAGMA user_version` and checked when a store is opened.
 *
 *     version 1   run, agent, span, edge, iteration, step, stat
 *     version 2   and witness, move, blocked. A store of version 1 is read as it is, and gets these
 *                 tables when a run is added to it
 *     version 3   and ledger, in the same way
 *     version 4   steps in blocks, edges without ids and indexes of their own. An older store is read as it is, and
 *                 gets these tables in place of its own when a run is added to it
 */
#ifndef SWSIM_SCHEMA_H
#define SWSIM_SCHEMA_H

enum {
    SCHEMA_APPLICATION = 0x73777472, /* "swtr", in PRAGMA application_id */
    SCHEMA_VERSION = 4,
    SCHEMA_WITH_LEDGER = 3,
    SCHEMA_WITH_BLOCKS = 4
};

#define SCHEMA_RUN                                                                                 \
    "CREATE TABLE run ( -- a run of a plan: measured, simulated, or a witness, which a search "    \
    "found and nobody ran\n"                                                                       \
    "    id INTEGER PRIMARY KEY, -- number of the run, as in swsim runs\n"                         \
    "    kind TEXT NOT NULL, -- measured, simulated, witness\n"                                    \
    "    plan_name TEXT NOT NULL, -- name of the plan\n"                                           \
    "    plan_text TEXT NOT NULL, -- the plan itself, canonical YAML\n"                            \
    "    driver TEXT NOT NULL, -- none, clock, dataflow\n"                                         \
    "    device TEXT NOT NULL, -- host, or cuda and the GPU; empty: no device\n"                   \
    "    ranks INTEGER NOT NULL, -- number of ranks\n"                                             \
    "    seed INTEGER NOT NULL, -- seed of the random numbers\n"                                   \
    "    iterations_wanted INTEGER NOT NULL, -- number of iterations asked for; 0: not given\n"    \
    "    created INTEGER NOT NULL, -- seconds since 1970, UTC\n"                                   \
    "    duration_ns INTEGER NOT NULL, -- from start to end; of a witness its number of steps\n"   \
    "    finished INTEGER NOT NULL CHECK (finished IN (0, 1, 2)), -- 0: goes on, or was killed; "  \
    "1: at its end; 2: interrupted\n"                                                              \
    "    note TEXT -- serial: one task after another; imported: recorded by a profiler; of a "     \
    "witness the violation\n"                                                                      \
    ");\n"

#define SCHEMA_AGENT                                                                               \
    "CREATE TABLE agent ( -- a thread, a stream, a driver or the schedule of one rank\n"           \
    "    id INTEGER PRIMARY KEY,\n"                                                                \
    "    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,\n"                                 \
    "    rank INTEGER NOT NULL, -- from 0; -1: of no rank, as a data loader\n"                     \
    "    kind TEXT NOT NULL, -- stream, thread, driver, schedule\n"                                \
    "    name TEXT NOT NULL, -- as in the plan\n"                                                  \
    "    position INTEGER NOT NULL -- order of the lanes in a picture, within rank and kind\n"     \
    ");\n"                                                                                         \
    "CREATE INDEX agent_of_run ON agent (run);\n"

#define SCHEMA_SPAN                                                                                \
    "CREATE TABLE span ( -- work of an agent, or a wait of it, from start to end\n"                \
    "    id INTEGER PRIMARY KEY,\n"                                                                \
    "    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,\n"                                 \
    "    agent INTEGER NOT NULL REFERENCES agent ON DELETE CASCADE,\n"                             \
    "    kind TEXT NOT NULL, -- device: work of a stream; host: work of a thread; wait: idle or "  \
    "blocked; pass: of a microbatch, over its work\n"                                              \
    "    task TEXT, -- name of the work; NULL: none\n"                                             \
    "    iteration INTEGER, -- number of the iteration; NULL: none\n"                              \
    "    start_ns INTEGER NOT NULL, -- since the start of the run; of a witness, a step\n"         \
    "    end_ns INTEGER NOT NULL CHECK (end_ns >= start_ns), -- likewise\n"                        \
    "    cause TEXT -- reason of the wait, or why the work was slow; NULL: none is known\n"        \
    ");\n"                                                                                         \
    "CREATE INDEX span_of_agent ON span (agent, start_ns);\n"                                      \
    "CREATE INDEX span_of_iteration ON span (run, iteration);\n"

#define SCHEMA_EDGE                                                                                \
    "CREATE TABLE edge ( -- an arrow from one span to another\n"                                   \
    "    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,\n"                                 \
    "    from_span INTEGER NOT NULL, -- id of a span\n"                                            \
    "    to_span INTEGER NOT NULL, -- id of a span\n"                                              \
    "    kind TEXT NOT NULL, -- dependence, launch (a thread to a stream); of a witness blocked, " \
    "cycle, race\n"                                                                                \
    "    PRIMARY KEY (run, from_span, to_span, kind)\n"                                            \
    ") WITHOUT ROWID;\n"

#define SCHEMA_ITERATION                                                                           \
    "CREATE TABLE iteration ( -- an iteration on one rank\n"                                       \
    "    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,\n"                                 \
    "    rank INTEGER NOT NULL,\n"                                                                 \
    "    number INTEGER NOT NULL, -- from 0\n"                                                     \
    "    start_ns INTEGER NOT NULL, -- its admission\n"                                            \
    "    retire_ns INTEGER NOT NULL, -- the end of its last task\n"                                \
    "    PRIMARY KEY (run, rank, number)\n"                                                        \
    ") WITHOUT ROWID;\n"

#define SCHEMA_STEP_TABLES                                                                         \
    "CREATE TABLE step_word ( -- the kinds of steps of a run\n"                                    \
    "    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,\n"                                 \
    "    number INTEGER NOT NULL, -- from 0\n"                                                     \
    "    rank INTEGER NOT NULL, -- -1: of no rank\n"                                               \
    "    agent TEXT NOT NULL, -- the agent that took the step\n"                                   \
    "    op TEXT NOT NULL, -- the step, in words\n"                                                \
    "    task TEXT, -- NULL: none\n"                                                               \
    "    PRIMARY KEY (run, number)\n"                                                              \
    ") WITHOUT ROWID;\n"                                                                           \
    "CREATE TABLE step_block ( -- steps of a run that follow each other; the view step has a row " \
    "for each\n"                                                                                   \
    "    id INTEGER PRIMARY KEY,\n"                                                                \
    "    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,\n"                                 \
    "    seq INTEGER NOT NULL, -- position of the first, from 0\n"                                 \
    "    words INTEGER NOT NULL, -- factor in numbers: above every number of step_word\n"          \
    "    iterations INTEGER NOT NULL, -- factor in numbers: how many, and one for none\n"          \
    "    iteration INTEGER NOT NULL, -- the least one\n"                                           \
    "    time_ns INTEGER NOT NULL, -- the least one\n"                                             \
    "    numbers TEXT NOT NULL, -- a JSON array, of each step ((its time_ns - time_ns) * "         \
    "iterations + (its iteration - iteration + 1, or 0 for none)) * words + number of step_word\n" \
    "    UNIQUE (run, seq)\n"                                                                      \
    ");\n"

/* Without the semicolon, as SQLite keeps it, and without a quote: store.c compares it in SQL. */
#define SCHEMA_STEP_VIEW                                                                           \
    "CREATE VIEW step AS -- the steps of the machine, in the order in which they were taken\n"     \
    "SELECT b.run AS run,\n"                                                                       \
    "    b.seq + n.key AS seq, -- position, from 0\n"                                              \
    "    w.rank AS rank, -- -1: of no rank\n"                                                      \
    "    w.agent AS agent, -- the agent that took the step\n"                                      \
    "    w.op AS op, -- the step, in words\n"                                                      \
    "    w.task AS task, -- NULL: none\n"                                                          \
    "    b.iteration - 1 + nullif(n.value / b.words % b.iterations, 0) AS iteration, -- NULL: "    \
    "none\n"                                                                                       \
    "    b.time_ns + n.value / b.words / b.iterations AS time_ns -- since the start of the run; "  \
    "of a witness, its position\n"                                                                 \
    "FROM step_block AS b CROSS JOIN json_each(b.numbers) AS n\n"                                  \
    "LEFT JOIN step_word AS w ON w.run = b.run AND w.number = n.value % b.words"
#define SCHEMA_STEP SCHEMA_STEP_TABLES SCHEMA_STEP_VIEW ";\n"

#define SCHEMA_STAT                                                                                \
    "CREATE TABLE stat ( -- figures of a run by name\n"                                            \
    "    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,\n"                                 \
    "    key TEXT NOT NULL, -- iteration_ns, iteration_p99_ns, fill_ns, drain_ns, serial_ns, "     \
    "depth, start_unix_ns, cores, TASK.core_share, ...\n"                                          \
    "    value REAL NOT NULL, -- in the unit that ends the key\n"                                  \
    "    PRIMARY KEY (run, key)\n"                                                                 \
    ") WITHOUT ROWID;\n"

#define SCHEMA_WITNESS                                                                             \
    "CREATE TABLE witness ( -- the violation of a run of kind witness, and the options of its "    \
    "search\n"                                                                                     \
    "    run INTEGER PRIMARY KEY REFERENCES run ON DELETE CASCADE,\n"                              \
    "    property TEXT NOT NULL, -- deadlock, race, ...: a property of swplan(5)\n"                \
    "    iterations INTEGER, -- of the search; NULL: any number\n"                                 \
    "    ranks INTEGER NOT NULL, -- of the search; 0: those of the plan\n"                         \
    "    max_depth INTEGER NOT NULL -- of the search; 0: that of the plan\n"                       \
    ");\n"

#define SCHEMA_MOVE                                                                                \
    "CREATE TABLE move ( -- the transitions of a witness; the row of step with the same seq says " \
    "them in words\n"                                                                              \
    "    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,\n"                                 \
    "    seq INTEGER NOT NULL, -- position, from 0\n"                                              \
    "    agent INTEGER NOT NULL, -- its number in the lowered program, see swsim lower\n"          \
    "    choice INTEGER NOT NULL, -- which of the agent's possible steps\n"                        \
    "    PRIMARY KEY (run, seq)\n"                                                                 \
    ") WITHOUT ROWID;\n"

#define SCHEMA_BLOCKED                                                                             \
    "CREATE TABLE blocked ( -- the agents that wait at the end of a witness\n"                     \
    "    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,\n"                                 \
    "    seq INTEGER NOT NULL, -- position, from 0\n"                                              \
    "    rank INTEGER NOT NULL, -- -1: of no rank\n"                                               \
    "    agent TEXT NOT NULL, -- who waits\n"                                                      \
    "    waits_for TEXT NOT NULL, -- the reason, in words\n"                                       \
    "    waits_on INTEGER, -- seq of the agent that must act first; NULL: none of these\n"         \
    "    in_cycle INTEGER NOT NULL, -- 1: the agents wait for each other\n"                        \
    "    PRIMARY KEY (run, seq)\n"                                                                 \
    ") WITHOUT ROWID;\n"

#define SCHEMA_LEDGER                                                                              \
    "CREATE TABLE ledger ( -- why a stream was idle, in total\n"                                   \
    "    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,\n"                                 \
    "    agent INTEGER NOT NULL REFERENCES agent ON DELETE CASCADE, -- the stream\n"               \
    "    cause TEXT NOT NULL, -- a key: dependence, host, order, unexplained, ...\n"               \
    "    word TEXT NOT NULL, -- what says so: id, call order, time, ranks, model\n"                \
    "    waits_for TEXT, -- the task or resource waited for; NULL: none\n"                         \
    "    words TEXT NOT NULL, -- cause of the spans that the line adds up\n"                       \
    "    idle_ns INTEGER NOT NULL, -- their sum, with times too short for a span\n"                \
    "    PRIMARY KEY (run, agent, words)\n"                                                        \
    ") WITHOUT ROWID;\n"                                                                           \
    "CREATE INDEX ledger_of_agent ON ledger (agent);\n"

/* The rows of old_step follow by store_steps.c. */
#define SCHEMA_SINCE_3                                                                             \
    "ALTER TABLE edge RENAME TO old_edge;\n" SCHEMA_EDGE                                           \
    "INSERT OR IGNORE INTO edge SELECT run, from_span, to_span, kind FROM old_edge;\n"             \
    "DROP TABLE old_edge;\n"                                                                       \
    "ALTER TABLE step RENAME TO old_step;\n" SCHEMA_STEP
#define SCHEMA_SINCE_2 SCHEMA_LEDGER SCHEMA_SINCE_3
#define SCHEMA_SINCE_1 SCHEMA_WITNESS SCHEMA_MOVE SCHEMA_BLOCKED SCHEMA_SINCE_2

#define SCHEMA_ALL                                                                                 \
    SCHEMA_RUN SCHEMA_AGENT SCHEMA_SPAN SCHEMA_EDGE SCHEMA_ITERATION SCHEMA_STEP SCHEMA_STAT       \
        SCHEMA_WITNESS SCHEMA_MOVE SCHEMA_BLOCKED SCHEMA_LEDGER

#endif
