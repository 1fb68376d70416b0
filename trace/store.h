/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - the trace store: runs kept in an SQLite file.
 *
 * A store is opened, runs are added or loaded, it is closed; one thread uses it at a time, several
 * processes may use one file. Writing happens in transactions that open by themselves and are
 * committed by store_flush, store_end_run, store_close and after every STORE_BATCH_ROWS rows;
 * committed rows survive a killed process. A closed store is one plain file (no -wal beside it).
 *
 * Errors: STATUS_INPUT when the file is not a swsim trace store, has another schema version, or
 * lacks the run asked for; STATUS_SYSTEM with SQLite's reason for everything else. After a failed
 * write the store refuses further writes with STATUS_SYSTEM, without another message. All times are
 * nanoseconds from the start of their run. Outputs are set only on success.
 */
#ifndef SWSIM_STORE_H
#define SWSIM_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/status.h"
#include "trace.h"

enum { STORE_BATCH_ROWS = 10000, STORE_LATEST = -1, STORE_ALL = -1, STORE_FIRST = -2 };

struct store;

/* A store up to this size is read whole before it is changed (0.2 s). */
#define STORE_WHOLE_BYTES (INT64_C(64) << 20)

/* Open `path`; with `create` a missing or empty file becomes a store, and runs can be added. A damaged store up to
   STORE_WHOLE_BYTES is refused, its bytes as before; in a larger one the damage shows where it is met. */
enum status store_open(const char *path, bool create, struct store **out, struct diag *diag);

/* Commit and close. Also after a failure: frees the store even if it fails. NULL is allowed. */
enum status store_close(struct store *store, struct diag *diag);

/* ---- writing --------------------------------------------------------------------------------- */

enum status store_begin_run(struct store *store, const struct run_info *info, int64_t *out_run,
                            struct diag *diag);
enum status store_add_agent(struct store *store, int64_t run, const struct trace_agent *agent,
                            int64_t *out_agent, struct diag *diag);
/* `agent` is that of store_add_agent; span->agent is ignored. `out_span` may be NULL. */
enum status store_add_span(struct store *store, int64_t run, int64_t agent,
                           const struct trace_span *span, int64_t *out_span, struct diag *diag);
enum status store_add_edge(struct store *store, int64_t run, int64_t from_span, int64_t to_span,
                           enum edge_kind kind, struct diag *diag);
enum status store_add_iteration(struct store *store, int64_t run,
                                const struct trace_iteration *iteration, struct diag *diag);
enum status store_add_step(struct store *store, int64_t run, const struct trace_step *step,
                           struct diag *diag);
/* A key that is already there gets the new value. */
enum status store_add_stat(struct store *store, int64_t run, const char *key, double value,
                           struct diag *diag);

/* `agent` is that of store_add_agent; line->agent is ignored. Lines of an agent with the same words become one. */
enum status store_add_idle(struct store *store, int64_t run, int64_t agent,
                           const struct trace_idle *line, struct diag *diag);

/* From now on a commit returns when the disk has it: what was committed survives a crash of the system, too. */
enum status store_make_durable(struct store *store, struct diag *diag);

/* Commit: everything so far survives a crash of this process. */
enum status store_flush(struct store *store, struct diag *diag);

/* Of a run that did not know at its start how many iterations it would have. */
enum status store_set_iterations(struct store *store, int64_t run, int64_t iterations,
                                 struct diag *diag);

/* Write down how the run ended, and commit. */
enum status store_end_run(struct store *store, int64_t run, enum run_finished finished,
                          int64_t duration_ns, struct diag *diag);

/* Write a whole trace, trace->info included, as a new run, and commit. `out_run` may be NULL. */
enum status store_write_trace(struct store *store, const struct trace *trace, int64_t *out_run,
                              struct diag *diag);

/* ---- witnesses ------------------------------------------------------------------------------- */

/* A witness has more than a trace: all that a replay needs (swrun --replay). The plan's text and
   the driver are in the run's info, the sentence of the violation is its note. */
struct trace_witness {
    const char *property; /* property_key */
    int64_t iterations;   /* -1: any number */
    int ranks, max_depth; /* 0: the plan's */
    struct trace_move {
        int agent, choice; /* a transition of the lowered program */
    } * moves;
    size_t move_count;
    struct trace_blocked {
        int rank; /* -1: of no rank */
        const char *agent, *waits_for;
        int on; /* the index of the agent that must act first; -1: none of these */
        bool in_cycle;
    } * blocked; /* at its end, if it hangs */
    size_t blocked_count;
};

/* Add the witness of `run`, which is of that kind, and commit. */
enum status store_add_witness(struct store *store, int64_t run, const struct trace_witness *witness,
                              struct diag *diag);

/* Load the witness that is run `run` (STORE_LATEST: the newest that is a witness); *out_run is its
   number, *out_info its description. STATUS_INPUT where it is none. All lives in `arena`. */
enum status store_load_witness(struct store *store, int64_t run, struct arena *arena,
                               struct trace_witness *out, int64_t *out_run,
                               struct run_info *out_info, struct diag *diag);

/* ---- reading --------------------------------------------------------------------------------- */

/* One line of `swsim runs`. */
struct store_run {
    int64_t id;
    struct run_info info;
    int64_t spans, iterations; /* iterations of the lowest rank */
};

/* Call `visit` for every run, oldest first; its arguments live until it returns. */
enum status store_list_runs(struct store *store, void (*visit)(const struct store_run *, void *),
                            void *context, struct diag *diag);

enum status store_latest_run(struct store *store, int64_t *out_run, struct diag *diag);

/* False: its schema is older than the ledger, and no run in it has one. */
bool store_has_ledgers(const struct store *store);

/* Load a run (STORE_LATEST: the newest): its agents, iterations, ledger and figures, the spans sorted by
   (agent, start, end) and the edges between them, by (from, to, kind). With iterations given (STORE_ALL: no bound on
   that side) only the spans that overlap in time with the work of those iterations, and the rows of these
   iterations and of each rank's first and last; of a span that others began behind, no more than STORE_OVERLAP on its agent. From STORE_FIRST: so many
   iterations as `to_iteration` says from the lowest one, and what was before; a witness, or a run without iterations,
   as a whole. The time is that of what is loaded, not of the run. Steps are not loaded. The trace lives in
   `arena`. */
enum status store_load(struct store *store, int64_t run, int64_t from_iteration,
                       int64_t to_iteration, struct arena *arena, struct trace *out,
                       struct diag *diag);

/* The same: the spans of this time, from the start of the run, and the iterations that they name. */
enum status store_load_time(struct store *store, int64_t run, int64_t from_ns, int64_t to_ns,
                            struct arena *arena, struct trace *out, struct diag *diag);

/* Add the steps of the run that `trace` was loaded from. */
enum status store_load_steps(struct store *store, struct trace *trace, struct diag *diag);
/* The same, the first `most` of them. */
enum status store_load_first_steps(struct store *store, struct trace *trace, int64_t most,
                                   struct diag *diag);

#endif
