/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profiler_json.h - a run as a trace of PyTorch's profiler: JSON of the Chrome Trace Event format with the names,
 * categories and arguments of Kineto, for Perfetto, chrome://tracing, HolisticTraceAnalysis and our own import.
 *
 * A rank is two processes: its host, with a row for each thread, and its device, with a row for each stream.
 *
 *     kernel, gpu_memcpy    work of a stream. Collectives and messages are named as NCCL's kernels, copies as
 *                           CUDA's, with our name in parentheses; args: task, iteration, stream, correlation, bytes
 *     user_annotation       work of a thread, and ProfilerStep#N: from the first work of a thread for iteration N to that for N + 1
 *     cuda_runtime          the call that launched the work with the same correlation; the calls of a thread's work divide its time
 *     wait                  idle time of a stream or a thread: its name is the cause
 *     ac2g                  flow from a call to its work
 *     dependence            flow from work to the work that needed it
 *     C                     iterations in flight
 *
 * Times are microseconds with up to three places. ProfilerStep is there only where launches are known, since
 * HolisticTraceAnalysis leaves out of steps what it cannot place; iterations in flight, where all iterations are loaded.
 */
#ifndef SWSIM_PROFILER_JSON_H
#define SWSIM_PROFILER_JSON_H

#include <stdbool.h>
#include <stdio.h>

#include "base/diag.h"
#include "base/status.h"

#include "trace.h"

/* All zero: the defaults. */
struct profiler_json_options {
    bool no_dependences, hide_threads;
    bool one_rank; /* only `rank`, as one file of a job */
    int rank;
};

/* Write `trace`, whose spans are sorted. STATUS_INPUT for a counterexample, which has no times, and where there is
   nothing to write. A failed write is remembered by `out`. */
enum status profiler_json_write(const struct trace *trace,
                                const struct profiler_json_options *options, FILE *out,
                                struct diag *diag);

#endif
