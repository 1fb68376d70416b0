/* SPDX-License-Identifier: Apache-2.0 */
/*
 * critical_path.h - what decided when an iteration was over: a chain of work without a gap.
 *
 * From the end of an iteration (on its last rank) the steps lead back, each to the one that made
 * it possible (enabling_steps.h), until the iteration was admitted (on its first rank). Those that took time are
 * the path: each began when the one before was over, and `waited` says why not earlier. Work of other
 * iterations is on it wherever this one had to wait for it. The durations add up to end - start.
 *
 *     admitted                                                                   over
 *     |-- Optimizer(3) --|launch H2D(5)|-- H2D(5) --|-- Forward(4) --|-- ... --|
 *
 * A host program has one path, from its beginning to its end.
 *
 * It works for every plan, with jitter too: it is about the run that was simulated. Over all iterations
 * of a run the shares say which tasks are on these paths, how often, and for how much of their time.
 */
#ifndef SWSIM_CRITICAL_PATH_H
#define SWSIM_CRITICAL_PATH_H

#include <stdio.h>

#include "base/json.h"
#include "sim/engine/simulate.h"

/*            NAME           key in JSON       in words */
#define PATH_WAIT_LIST(X)                                                                          \
    X(BEGIN, "begin", "the beginning")              /* nothing: the path begins here */            \
    X(STREAM_ORDER, "stream_order", "stream order") /* what is in front on the stream */           \
    X(THREAD_ORDER, "thread_order", "thread order") /* what the thread did before */               \
    X(LAUNCH, "launch", "its launch")                                                              \
    X(COMM_ORDER, "comm_order", "communicator order")                                              \
    X(RESOURCE, "resource", "resource") /* residency slots, a hardware queue, a lock */            \
    X(TICKET, "ticket", "ticket order")                                                            \
    X(DEPENDENCE, "dependence", "dependence")                                                      \
    X(PEER, "peer", "collective peer")                                                             \
    X(BACKPRESSURE, "backpressure", "back-pressure") /* data-flow, a full queue or stream */       \
    X(PERIOD, "period", "period clock")

/* The greater one counts where several follow on one another without taking time. */
enum path_wait {
#define X(name, key, words) PATH_##name,
    PATH_WAIT_LIST(X)
#undef X
};

struct path_part {
    int agent, op; /* a communicator: of one of its members */
    int64_t iteration;
    int64_t start_ns, dur_ns;
    enum path_wait waited;
    int on_task; /* waited: for this task; -1: none */
    int64_t on_iteration;
};

struct critical_path {
    int64_t iteration; /* -1: a host program */
    int64_t start_ns, end_ns;
    struct path_part *parts;
    int part_count;
    /* Over all iterations: per task, its device parts, then its CPU parts; NULL for a host program. */
    struct path_share {
        int64_t ns;         /* on the paths */
        int64_t iterations; /* whose paths it is on */
        int64_t last;       /* of these */
    } * shares;
    int64_t total_ns, iterations; /* of all paths */
};

/* Which iteration. */
enum { PATH_SLOWEST = -2, PATH_MIDDLE = -3 };

/* Watches a simulation, and passes all on to `inner` (NULL: none). `program` and `inner` must
   outlive it. NULL: memory is exhausted. */
struct path_watch;
struct path_watch *path_watch_open(const struct program *program, int64_t iteration,
                                   const struct simulate_observer *inner, struct diag *diag);
const struct simulate_observer *path_watch_observer(const struct path_watch *watch);
/* When the simulation is over: the path; `parts` NULL where that iteration never ended. STATUS_SYSTEM
   when memory runs out. */
enum status path_watch_take(struct path_watch *watch, struct critical_path *out);
void path_watch_close(struct path_watch *watch);

void critical_path_fini(struct critical_path *path);

/* As text, and as the value of a key. */
void critical_path_print(const struct program *program, const struct critical_path *path,
                         FILE *out);
void critical_path_write(const struct program *program, const struct critical_path *path,
                         struct json *json);

#endif
