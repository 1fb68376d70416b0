/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvtx.h - ranges and names for a profiler that looks on (Nsight Systems): what a worker is at.
 *
 *     SWP/Forward/iter12          a worker does Forward(12): its function, or the plan's work
 *     SWP_serial/Forward/iter12   one task after another
 *     ... [skip]                  its kept results are put back instead
 *     SWP/open                    a run is being opened
 *
 * A range spans the work of a task on its thread, not what it waits for before. Host programs and rank
 * programs have one for each operation: SWP/grads. NVTX's headers load an injection library when the environment names one
 * (NVTX_INJECTION64_PATH), as profilers do. Without one, and in a build without the headers
 * (configure asks for them by --with-nvtx), nothing is done: a run asks once, nvtx_open, and then looks at one flag a
 * task. Names longer than 255 bytes are cut.
 *
 * Streams of the cuda device are named where they are opened; the threads of the host device (r0.device: any
 * of them serves any stream of its rank) and those of a run by nvtx_name_thread.
 */
#ifndef SWSIM_NVTX_H
#define SWSIM_NVTX_H

#include <stdbool.h>
#include <stdint.h>

/* Begin the range of opening a run, ended with nvtx_end; returns whether a profiler is attached. */
bool nvtx_open(void);
/* `iteration` -1: the name has none. */
void nvtx_begin(bool serial, const char *task, int64_t iteration, bool skipped);
void nvtx_end(void);
/* To be called before NVTX is by other means than these. */
void nvtx_ready(void);
/* The calling thread. */
void nvtx_name_thread(const char *name);

#endif
