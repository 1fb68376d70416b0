/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline_figures.h - what the ranks of rank programs do and hold over time, and what each waits for.
 *
 * A rank's span is from the start of its first pass to the end of its last, the optimizer included. In it the rank
 * computes, or is idle, to the nanosecond, because the message that its next pass needs
 *
 *     pass       is not computed yet by the rank it comes from
 *     channel    is computed and not under way: the channel is taken, or the other end is not there
 *     transfer   is under way
 *     other      is there, or none is needed: the CPU, a collective, a residency slot
 *
 * Figures of the first replication and the first replica of the pipeline. Bytes are those of plan/schedules/rank_memory.h.
 */
#ifndef SWSIM_PIPELINE_FIGURES_H
#define SWSIM_PIPELINE_FIGURES_H

#include "plan/schedules/rank_memory.h"
#include "sim/engine/in_flight.h"
#include "sim/engine/simulate.h"

#define WAIT_LIST(X) X(PASS, "pass") X(CHANNEL, "channel") X(TRANSFER, "transfer") X(OTHER, "other")
enum pipeline_wait {
#define X(name, key) PIPELINE_WAIT_##name,
    WAIT_LIST(X)
#undef X
        PIPELINE_WAITS
};

struct rank_figures {
    int64_t first_ns, last_ns; /* of passes; both 0: the rank has none */
    int64_t busy_ns, idle_ns[PIPELINE_WAITS];
    struct rank_memory memory; /* without its lists */
    struct in_flight held;     /* bytes over time */
};

struct pipeline_figures {
    struct rank_figures *ranks;
    int rank_count;
    int longest; /* the rank with the longest span */
    bool has_bytes;
};

const char *pipeline_wait_key(enum pipeline_wait wait);

/* While a run is watched. NULL: no memory. Plan and program must outlive the watch; `inner` is told what it wants. */
struct pipeline_watch *pipeline_watch_open(const struct plan *plan, const struct program *program,
                                           const struct simulate_observer *inner,
                                           struct diag *diag);
const struct simulate_observer *pipeline_watch_observer(const struct pipeline_watch *watch);
enum status pipeline_watch_take(struct pipeline_watch *watch, struct pipeline_figures *out,
                                struct diag *diag);
void pipeline_watch_close(struct pipeline_watch *watch);

void pipeline_figures_fini(struct pipeline_figures *figures);

#endif
