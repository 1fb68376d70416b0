/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account.h - where the time of a run's streams went: work by task, idle time by cause.
 *
 * An account is made from the spans and the ledger of a run, whoever made it: an import, swrun, a prediction. Either
 * of its steps, or of the whole run. Steps are the iterations from the first to the last; where they overlap, those
 * before the first one retired fill the pipeline and are left out. All times are those of one step, in nanoseconds,
 * and the mean over the ranks' streams of one name. For each stream
 *
 *     the work of its tasks + its idle time by cause == the time of a step
 *
 * Idle time has a cause of the ledger. What no span tells is in between one work and the next, or after the last one;
 * in a run without a ledger it is not recorded.
 */
#ifndef SWSIM_ACCOUNT_H
#define SWSIM_ACCOUNT_H

#include "base/arena.h"
#include "base/diag.h"
#include "trace/trace.h"

#define ACCOUNT_NOT_RECORDED "not_recorded"

/* A task of a stream, or a cause of idle time. */
struct account_part {
    const char *name;      /* of a task; the words of a cause */
    const char *cause;     /* key; NULL: a task */
    const char *waits_for; /* of a cause: the task or resource; NULL: none */
    double ns, count;      /* count: how often, of a task */
};

struct account_parts {
    struct account_part *items;
    size_t count, cap;
};

struct account_stream {
    const char *name;
    int ranks; /* that have it */
    double busy_ns, idle_ns;
    struct account_parts tasks, idle;
};

struct run_account {
    bool by_steps, modelled; /* modelled: causes are those of the simulator */
    double step_ns;          /* or of the whole run */
    double steps;            /* mean over the ranks; 1 for the whole */
    int replications;        /* of a prediction, of which these are the means; else 1 */
    struct account_stream *streams;
    size_t stream_count, stream_cap;
};

/* True if its steps can be told: there is one on each rank. */
bool account_has_steps(const struct trace *trace);

/* The account of a trace, whose spans are sorted and whole; `by_steps` only where it has steps. It lives in the
   trace's arena. */
enum status account_make(struct trace *trace, bool by_steps, struct run_account *out,
                         struct diag *diag);

/* Adds the account of a further run of the same plan, whose figures count as much as those of all `runs` before. False
   without memory. */
bool account_add(struct run_account *sum, int runs, const struct run_account *further,
                 struct arena *arena);

/* The part for this task, or for this cause and task waited for; NULL: none. */
const struct account_part *account_find_task(const struct account_stream *stream, const char *name);

#endif
