/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime.h - run a plan: threads, streams, events and communicators of a device take the machine's
 * steps.
 *
 * The runtime interprets the same lowered program (machine/program.h) as checker and simulator: one
 * thread for each program thread, one device stream for each stream, the driver's decisions from
 * machine/policy.h. Every agent logs its steps with their times; afterwards the log is replayed through the
 * machine (gpu/record/replay.h), which decides whether the run was legal, and written to a trace store.
 *
 * The results of tasks are checkable. In a pipeline every task folds its reads into its writes, on
 * the device and exactly in stream order, and into a digest of its own. The digests and
 * the final buffers are compared bit for bit with a run of the same tasks one after another.
 * Buffers of host work are not touched. On the host device a buffer is cut to
 * RUNTIME_HOST_BUFFER_BYTES and a kernel to sizes a CPU can bear, with a note.
 *
 * Rules that a device does not have are left out of the replayed machine and noted: shared hardware
 * queues, an implicit launch order between communicators, eager messages (sends are rendezvous).
 *
 * A run can be forced into the steps of a witness (`options->witness`, gpu/device/gate.h), on the host device
 * only, and only where the device imitates all the plan's rules. Behind the last step the run goes on as
 * an ordinary one and gives an ordinary result; the number of forced steps is in `forced`.
 *
 * Durations: on the host device an operation takes at least its `time`, the CPU part of a task sleeps
 * (and spins the last 100 us of) its `host_time`. Jitter of the plan is not imitated: a real run has
 * its own. A run that makes no progress for `timeout_ns`, plus the longest single operation of the
 * plan, hangs: it is aborted and the result names the blocked agents and what they wait for.
 */
#ifndef SWSIM_RUNTIME_H
#define SWSIM_RUNTIME_H

#include "base/arena.h"
#include "plan/plan.h"
#include "gpu/record/result.h"

/*
 * A plan as a device can run it: without the rules the device decides for itself, and on demand one task after another. A serial
 * run is no special case of the runtime but another plan: every task in stage 0, one stream, one thread group, topological
 * order, one iteration in flight. It shares most of its memory with the original, which must outlive it.
 */
struct variant {
    struct arena arena; /* what it does not share */
    struct plan plan;
};

/* Parts that had to be left out are noted in diag. variant_fini in any case. */
enum status variant_init(struct variant *variant, const struct plan *plan, bool serial,
                         enum device_kind device, struct diag *diag);
/* For a run by graphs: a graph may be launched again only when the device is done with it, so where the plan
   retires by submission, the run retires by the device. That is one of the plan's runs. */
void variant_for_graphs(struct variant *variant);
void variant_fini(struct variant *variant);

/* Run `plan`. STATUS_OK: it finished and, where asked for, was legal. STATUS_VIOLATED: it failed, hung,
   was interrupted or was not legal, with the reason in `diag`. Results that differ from a serial run
   are no failure: some plans mean that. *out is set in both cases and ended with runtime_result_fini;
   with any other status there is none. Blocks; may be called from several threads. */
enum status runtime_run(const struct plan *plan, const struct runtime_options *options,
                        struct runtime_result *out, struct diag *diag);
void runtime_result_fini(struct runtime_result *result);

/* True if a read of the plan may see what a serial run had iterations ago: `staleness:`. */
bool runtime_may_be_stale(const struct plan *plan);

/* The program that runtime_run runs; ended with program_close and then variant_fini, also after a
   failure. */
enum status runtime_build(const struct plan *plan, const struct runtime_options *options,
                          struct variant *variant, struct program **out, struct diag *diag);

#endif
