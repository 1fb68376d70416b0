-- SPDX-License-Identifier: Apache-2.0
-- A trace store of today gets the tables of version 3 with its own rows: what an older swsim would have written.
CREATE TABLE moved AS SELECT * FROM edge;
DROP TABLE edge;
CREATE TABLE edge (
    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    from_span INTEGER NOT NULL REFERENCES span ON DELETE CASCADE,
    to_span INTEGER NOT NULL REFERENCES span ON DELETE CASCADE,
    kind TEXT NOT NULL
);
CREATE INDEX edge_of_run ON edge (run);
CREATE INDEX edge_from ON edge (from_span);
CREATE INDEX edge_to ON edge (to_span);
INSERT INTO edge SELECT * FROM moved;
DROP TABLE moved;
CREATE TABLE moved AS SELECT * FROM step;
DROP VIEW step;
DROP TABLE step_block;
DROP TABLE step_word;
CREATE TABLE step (
    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    agent TEXT NOT NULL,
    op TEXT NOT NULL,
    task TEXT,
    iteration INTEGER,
    time_ns INTEGER NOT NULL,
    PRIMARY KEY (run, seq)
) WITHOUT ROWID;
INSERT INTO step SELECT run, seq, rank, agent, op, task, iteration, time_ns FROM moved;
DROP TABLE moved;
PRAGMA user_version = 3;
