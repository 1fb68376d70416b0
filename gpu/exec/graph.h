/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.h - a steady period of the clock-driven pipeline as a graph of the device; private to the runtime.
 *
 *     driver of a rank                                          device
 *     fill      hands out -> workers execute, push              FIFOs
 *     steady    waits until the workers have nothing left, and from then on, a period at a time:
 *                 phase new?  capture: the pushes of the period, kept by the device
 *                 submit:     every step of the workers, done and logged by the driver; a push is only counted
 *                 launch:     one call gives the device the whole period
 *     drain     hands out -> workers execute, push              FIFOs
 *
 * A period is *steady* when every task of the rank has an instance in it and every dependence looks at an
 * iteration that exists, and every task has run before. What the pushes of two such periods differ in is where
 * iteration i finds its events and buffers: i mod `phases`, with phases = the number of slots, of which
 * iteration buffers get as many instances (twice as many when that is odd and the work of some task
 * alternates between iterations). So there is one graph for each period mod phases. All else that depends on
 * the iteration is numbers the host brings: they lie in pinned memory, which the host writes before a launch
 * and the captured copies read (work.c). No node of a graph is ever changed.
 *
 * The machine sees nothing new. The steps of the workers are those of any run, in an order in which none of
 * them has to wait (`order`), which is one the machine allows; they are logged with the numbers and stamps
 * the device gives to each operation of a launch. So a run with graphs is replayed and judged as any other.
 *
 * Which plans allow it: graph_open says, with the reason where one does not. What follows from it for a run:
 * the CPU parts of a period (`host_time`) are done before its launch, one after the other, by the driver.
 *
 * Failures: a capture that fails has done nothing. Where graphs are only wished for (RUNTIME_GRAPH_AUTO) the
 * rank goes on without them, and the reason is noted. A launch that fails, fails the run, as a push does.
 *
 * Threads: everything here belongs to the driver of the rank. Before its first period as a graph no worker of
 * the rank has anything left to do, and until it hands out to them again they sleep.
 */
#ifndef SWSIM_GPU_GRAPH_H
#define SWSIM_GPU_GRAPH_H

#include "run.h"

enum { GRAPH_MAX_PHASES = 64 };

/* The graphs of all ranks that are here, or the reason why there are none: a note, or with
   RUNTIME_GRAPH_REQUIRE an error, STATUS_USAGE. Sets run->config.instances; before data_open. */
enum status graph_open(struct run *run, struct diag *diag);
/* Before communicators, events and streams are closed. */
void graph_close(struct run *run);
/* The outcome: the figures of `result`, and notes of what was given up. */
void graph_report(const struct run *run, struct runtime_result *result, struct diag *diag);

/* Periods that were launched as one so far, on all ranks that are here. */
int64_t graph_launches(const struct run *run);

/* True if the period after this many admitted iterations is one for a graph. With the lock held. */
bool graph_takes(struct run *run, int rank, int64_t admitted);
/* True if the workers have nothing left. If not, wait a while; then the caller looks again at everything. With the lock
   held. */
bool graph_is_quiet(struct run_thread *driver);
/* A period of this rank is about to be handed out; `as_graph`: its instances are kept for graph_submit. With
   the lock held. */
void graph_expect(struct run *run, int rank, bool as_graph);
/* True if this is one of them, which has then been kept. With the lock held. */
bool graph_keeps(struct run *run, int rank, int thread, const struct instance *instance);
/* Submit what was kept as one launch, or without a graph as any other period. Entered and left with the
   lock held; false when the run stopped or failed. */
bool graph_submit(struct run_thread *driver, int64_t period);

/* True if a captured period of this rank is being submitted. Then each push is counted instead of made; `stamp` is the
   operation's, NULL: it has none. */
bool graph_replays(const struct run *run, int rank);
void graph_count(struct run *run, int rank, struct stamp *stamp);

/* True if this rank is capturing. Then numbers of an iteration must come from memory of the host: DIGEST_BYTES for each
   task and iteration, in pinned memory. */
bool graph_captures(const struct run *run, int rank);
struct device_ref graph_numbers(const struct run *run, int rank, int task, int64_t iteration);

#endif
