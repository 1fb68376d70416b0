/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h - one run in memory: agents, their work in time, its iterations, and the reasons of waits.
 *
 * Measured runs, simulated runs and witnesses of the checker all take this form, so every picture
 * and every comparison works on each of them. Times are nanoseconds from the run's start; in a
 * witness time counts steps instead, one a nanosecond. Agents, spans and the rest refer to each
 * other by index. All memory is the arena's, which the caller owns and which must outlive the
 * trace; strings given to the add functions are copied and interned: within one trace equal names
 * are equal pointers. The add functions return an index, or -1 when memory is exhausted.
 */
#ifndef SWSIM_TRACE_H
#define SWSIM_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/table.h"

/* The lists give NAME and the text used in the store and in messages. */
#define RUN_KIND_LIST(X)                                                                           \
    X(MEASURED, "measured")                                                                        \
    X(SIMULATED, "simulated")                                                                      \
    X(WITNESS, "witness")

#define RUN_DRIVER_LIST(X)                                                                         \
    X(NONE, "none")                                                                                \
    X(CLOCK, "clock")                                                                              \
    X(DATAFLOW, "dataflow")

#define TRACE_AGENT_KIND_LIST(X)                                                                   \
    X(STREAM, "stream")                                                                            \
    X(THREAD, "thread")                                                                            \
    X(DRIVER, "driver")                                                                            \
    X(SCHEDULE, "schedule") /* the passes of a pipeline's rank, as its annotations name them */

#define SPAN_KIND_LIST(X)                                                                          \
    X(DEVICE, "device") /* work of a stream */                                                     \
    X(HOST, "host")     /* work of a thread */                                                     \
    X(WAIT, "wait")     /* a thread is blocked or a stream is idle; `cause` is the reason */       \
    X(PASS, "pass")     /* from the first to the last work of a pass; no work itself */

#define EDGE_KIND_LIST(X)                                                                          \
    X(DEPENDENCE, "dependence") /* `to` needed the result of `from` */                             \
    X(LAUNCH, "launch")         /* `from` on a thread pushed `to` to a stream */                   \
    X(BLOCKED, "blocked")       /* the end of a witness: `from` waits for the agent of `to` */     \
    X(CYCLE, "cycle")           /* likewise, and back again */                                     \
    X(RACE, "race")             /* two accesses without an order between them */

#define X(name, text) RUN_##name,
enum run_kind { RUN_KIND_LIST(X) };
#undef X
#define X(name, text) RUN_DRIVER_##name,
enum run_driver { RUN_DRIVER_LIST(X) };
#undef X
#define X(name, text) TRACE_##name,
enum trace_agent_kind { TRACE_AGENT_KIND_LIST(X) };
#undef X
#define X(name, text) SPAN_##name,
enum span_kind { SPAN_KIND_LIST(X) };
#undef X
#define X(name, text) EDGE_##name,
enum edge_kind { EDGE_KIND_LIST(X) };
#undef X

/* The end of a run. A run that was killed stays RUN_OPEN. */
enum run_finished { RUN_OPEN, RUN_FINISHED, RUN_INTERRUPTED };

/* The note of a measured run that did one task after another; profiles come from such runs. */
#define RUN_NOTE_SERIAL "serial"
/* That of a run which was recorded by a profiler. */
#define RUN_NOTE_IMPORTED "imported"

/* The figure with the most iterations in flight on a rank of a measured pipeline. */
#define RUN_STAT_DEPTH "depth"

/* The figure with the time at which a measured run started, since 1970 in nanoseconds, to within a microsecond. */
#define RUN_STAT_START "start_unix_ns"

/* The figure with the cores that carried a measured run of the host device. Not there: they are not known. */
#define RUN_STAT_CORES "cores"

/* Behind a task's name: the figure with the share of a core that its work wanted. Not there: none, as of a
   task that slept for its time. */
#define RUN_STAT_CORE_SHARE ".core_share"

const char *run_kind_text(enum run_kind kind);
const char *run_driver_text(enum run_driver driver);
const char *trace_agent_kind_text(enum trace_agent_kind kind);
const char *span_kind_text(enum span_kind kind);
const char *edge_kind_text(enum edge_kind kind);
const char *run_finished_text(enum run_finished finished); /* "open", "finished", "interrupted" */

struct run_info {
    enum run_kind kind;
    const char *plan_name; /* NULL is read as "" in all three texts */
    const char *plan_text; /* the whole plan, canonical, so that the run can be looked at later */
    const char *device;    /* "host", "cuda: NVIDIA ...", "" for simulations */
    enum run_driver driver;
    int ranks;
    uint64_t seed;
    int64_t iterations_wanted; /* 0: not given */
    int64_t created_unix_s;
    int64_t duration_ns;
    enum run_finished finished;
    const char *note; /* free text or NULL */
};

struct trace_agent {
    int rank;
    enum trace_agent_kind kind;
    const char *name;
    int position; /* display order within its rank and kind */
};

struct trace_span {
    int agent;
    enum span_kind kind;
    const char *task;  /* NULL: none */
    int64_t iteration; /* -1: none */
    int64_t start_ns, end_ns;
    const char
        *cause; /* WAIT: the reason; DEVICE: the reason of a slow-down; NULL: unknown, none */
};

struct trace_edge {
    int from, to; /* spans */
    enum edge_kind kind;
};

struct trace_iteration {
    int rank;
    int64_t number;
    int64_t start_ns, retire_ns;
};

/* One step of the machine, for replay and for the story of a witness. */
struct trace_step {
    int64_t seq;
    int rank;
    const char *agent, *op;
    const char *task;  /* NULL: none */
    int64_t iteration; /* -1: none */
    int64_t time_ns;
};

/* A line of the ledger: an agent's idle time of one cause. */
struct trace_idle {
    int agent;
    const char *cause;     /* a key: "dependence", "host", ... */
    const char *word;      /* that says so: "id", "call order", "time", "model", ... */
    const char *waits_for; /* the task; NULL: none */
    const char *words;     /* cause of the spans */
    int64_t idle_ns;
};

/* A named figure, "steady_exact_ns". */
struct trace_stat {
    const char *key;
    double value;
};

struct trace {
    struct arena *arena;
    int64_t run; /* its number in the store it was loaded from, -1: none */
    struct run_info info;
    struct trace_agent *agents;
    struct trace_span *spans;
    struct trace_edge *edges;
    struct trace_iteration *iterations;
    struct trace_step *steps;
    struct trace_stat *stats;
    struct trace_idle *idles;
    size_t agent_count, span_count, edge_count, iteration_count, step_count, stat_count;
    size_t agent_cap, span_cap, edge_cap, iteration_cap, step_cap, stat_cap;
    size_t idle_count, idle_cap;
    struct table idle_table; /* of the ledger's lines, by agent and words */
    const char **interned;
    size_t interned_count, interned_cap;
    struct table names; /* of the interned texts */
};

/* Start an empty trace; its memory comes from `arena`. */
void trace_init(struct trace *trace, struct arena *arena);

/* Copy the description of the run. Returns false when memory is exhausted. */
bool trace_set_info(struct trace *trace, const struct run_info *info);

int trace_add_agent(struct trace *trace, int rank, enum trace_agent_kind kind, const char *name,
                    int position);
int trace_add_span(struct trace *trace, const struct trace_span *span);
int trace_add_edge(struct trace *trace, int from_span, int to_span, enum edge_kind kind);
int trace_add_iteration(struct trace *trace, const struct trace_iteration *iteration);
int trace_add_step(struct trace *trace, const struct trace_step *step);
int trace_add_stat(struct trace *trace, const char *key, double value);
/* NULL: it has none of this key. */
const struct trace_stat *trace_find_stat(const struct trace *trace, const char *key);

/* Sort the spans by (agent, start, end), make the edges follow, and sort these. Indices of spans change. Returns
   false when memory is exhausted, the trace then unchanged. */
bool trace_sort(struct trace *trace);
/* By (from, to, kind). */
void trace_sort_edges(struct trace *trace);

/* Take out the waits of all agents of this kind, and edges to and from them. Indices of spans change.
   Returns false when memory is exhausted, the trace then unchanged. */
bool trace_drop_waits(struct trace *trace, enum trace_agent_kind kind);

/* The index of an agent, or -1. */
int trace_find_agent(const struct trace *trace, int rank, enum trace_agent_kind kind,
                     const char *name);

/* The trace's one copy of `text`; NULL for NULL and when memory is exhausted. */
const char *trace_intern(struct trace *trace, const char *text);

/* First start and last end of all spans; both 0 where there is none. */
void trace_range(const struct trace *trace, int64_t *out_start_ns, int64_t *out_end_ns);

/* The mean time between retirements of neighbouring iterations on the lowest rank that has any,
   leaving out the fill (iterations before the first retirement); 0 with fewer than two iterations.
 */
double trace_mean_iteration_ns(const struct trace *trace);

/* ---- idle times ------------------------------------------------------------------------------ */

/*
 * Why the streams of a run were idle: one line for each cause on each stream.
 *
 * A line has the time in total. Its words are those of the spans that it
 * adds up (trace_span.cause), so a span finds its line by them. Times that are too short for a span of their own may
 * be in a line all the same. A run without lines has not been asked why its streams were idle.
 */

/* Causes beside those of the simulator (stall_key), and words of both. */
#define LEDGER_UNEXPLAINED "unexplained" /* nothing in the record of the run explains it */
#define LEDGER_ORDER       "order"       /* between one work and the next */
/* The others: "id", "call order", "time" and "ranks" of an import (trace/import/evidence.h, trace/import/meetings.h). */
#define LEDGER_BY_MODEL                                                                            \
    "model" /* the simulator's word, or the machine's that took the run's steps */

/* Add to the line of this agent with these words; the first one sets cause, word and waits_for. False: out of
   memory. */
bool trace_add_idle(struct trace *trace, const struct trace_idle *line);

/* The line of an agent with these words, which are the trace's own (trace_intern); NULL: none. */
const struct trace_idle *trace_find_idle(const struct trace *trace, int agent, const char *words);

#endif
