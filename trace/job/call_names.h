/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_names.h - what the names in a trace mean: calls of CUDA and HIP, kernels, steps.
 */
#ifndef SWSIM_CALL_NAMES_H
#define SWSIM_CALL_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "job.h"

/* The kind of a call of the runtime or the driver, "cudaStreamSynchronize" or "hipStreamSynchronize". False for
   a call that only asks (cudaEventQuery): it is CPU time and no more. */
bool call_kind_of(const char *name, enum call_kind *out);

/* True if it waits for the device and then has work of its own: cudaFree. */
bool call_waits_and_works(const char *name);

/* The name of a kernel without its return type, namespaces, template arguments and parameters, at most cap - 1
   bytes; of other names as much as fits. Returns out. */
const char *kernel_short_name(const char *name, char *out, size_t cap);

/* True if it is a kernel of NCCL or RCCL; *out is which. Sends and receives count as all_to_all. */
bool kernel_is_collective(const char *name, enum collective_kind *out);

/* "Memcpy HtoD (Pinned -> Device)" */
enum direction copy_direction(const char *name);
/* True if the host's memory is pageable, or HIP does not tell: "Memcpy DtoH (Device -> Host)". */
bool copy_is_pageable(const char *name);

/* "ProfilerStep#12": a step of the profiler and its number. */
bool range_is_step(const char *name, int64_t *number);

#endif
