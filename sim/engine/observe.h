/* SPDX-License-Identifier: Apache-2.0 */
/*
 * observe.h - the stall account of a measured run.
 *
 * The steps of a real run, in the order in which the replay took them (gpu/record/replay.h), go through the
 * machine once more, each at the time it was measured. In between every stream is asked what the
 * simulator asks its own streams (idle_cause.c). So a measured account and a predicted one mean the same.
 *
 * Steps that the machine takes at once need time in a real run. A thread that could take its next step and
 * has not is in a CPU part; a stream whose head could start and has not waits for its launch: both
 * are `host`. A step is logged no earlier than it took effect, so it counts as taken by the time of
 * any later step.
 */
#ifndef SWSIM_OBSERVE_H
#define SWSIM_OBSERVE_H

#include "simulate.h"
#include "trace/trace.h"

struct observed {
    int64_t start_ns, end_ns; /* of the first and the last step */
    struct observed_stream {
        int64_t busy_ns;
        int64_t stall_ns[STALL_COUNT]; /* with busy_ns they add up to end_ns - start_ns */
    } * streams;                       /* beside program->streams */
};

/* Told of every time a stream was idle for one reason, when it is over. Returning false stops with
   STATUS_SYSTEM, the watcher having described why. NULL: no watcher. */
typedef bool observe_watcher(void *context, int stream, int64_t start_ns, int64_t end_ns,
                             const struct stall *stall);

/*
 * `program` is what the run executed, of the pipeline form and with its number of iterations; the
 * trace's steps are loaded (store_load_steps). STATUS_INPUT when there are none or the program cannot
 * take them. *out is set on success only and ended with observed_fini.
 */
enum status observe(const struct program *program, struct trace *trace, observe_watcher *watcher,
                    void *context, struct observed *out, struct diag *diag);
void observed_fini(struct observed *observed);

#endif
