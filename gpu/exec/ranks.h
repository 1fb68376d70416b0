/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks.h - a run with a process a rank: the report of each process, and the one result made of them.
 *
 *     rank 0: runtime_run --- log, notes, end ---.
 *     rank 1: runtime_run -----------------------+--> broker --> collector: one journal, one replay,
 *     rank 2: runtime_run -----------------------'            one store, one result
 *
 * Every process runs the same plan with the same options; options->rendezvous says which rank it is. The
 * collector builds the same program, takes every rank's log as if all were threads of its own, and at the
 * end replays it. Each process compares the results of its own rank with a serial run.
 *
 * When a process dies, part of its log is missing: then nothing is replayed, `legal` stays unknown, a
 * note says so, and the blocked agents are those the other ranks reported.
 */
#ifndef SWSIM_RANKS_H
#define SWSIM_RANKS_H

#include "gpu/net/rendezvous.h"
#include "gpu/record/rank_report.h"
#include "runtime.h"

/* ---- a process with a rank ------------------------------------------------------------------- */

/* All that runtime_run gave: its status, its result (NULL: there is none), what is in `diag`. */
bool ranks_report(struct rendezvous *rendezvous, enum status status,
                  const struct runtime_result *result, const struct diag *diag);

/* ---- the launcher ---------------------------------------------------------------------------- */

struct collector;

/* `broker` and `plan` are borrowed. */
enum status collector_open(const struct plan *plan, const struct runtime_options *options,
                           struct broker *broker, struct collector **out, struct diag *diag);
/* Take what was reported, waiting up to timeout_ns for it, until a pass of the journal is due. STATUS_OK, or why it cannot
   be kept. */
enum status collector_take(struct collector *collector, int64_t timeout_ns, struct diag *diag);
/* True if the last call of collector_take left reports for the next one. */
bool collector_is_behind(const struct collector *collector);
/* How long the run may make no progress: the time limit, and the longest operation of the plan. */
int64_t collector_patience_ns(const struct collector *collector);
/* True if the rank has reported its end. */
bool collector_has_end(const struct collector *collector, int rank);
/* The number of ranks that have reported their end; *good: all of these ended well. */
int collector_ends(const struct collector *collector, bool *good);
/* The result of the run; like runtime_run. Frees the collector in any case. */
enum status collector_end(struct collector *collector, struct runtime_result *out,
                          struct diag *diag);
/* Without a result. */
void collector_drop(struct collector *collector);

#endif
