/* SPDX-License-Identifier: Apache-2.0 */
/*
 * formats.h - what a file is: its content says.
 */
#ifndef SWSIM_FORMATS_H
#define SWSIM_FORMATS_H

#include <stdbool.h>

#include "base/diag.h"

/* Traces come first, what cannot be imported last. */
enum format {
    FORMAT_NSYS,        /* an export of Nsight Systems, SQLite */
    FORMAT_KINETO,      /* a trace of PyTorch's profiler */
    FORMAT_DUMP,        /* a dump of the flight recorder, JSON */
    FORMAT_DUMP_PICKLE, /* the same as pickle */
    FORMAT_RECORDING,   /* of swsim record */
    FORMAT_JSON,        /* JSON of something else */
    FORMAT_OTHER,       /* none of these */
    FORMAT_EMPTY        /* a file without a byte */
};

static inline bool format_is_trace(enum format format)
{
    return format <= FORMAT_KINETO;
}

static inline bool format_is_usable(enum format format)
{
    return format <= FORMAT_RECORDING;
}

/* STATUS_INPUT for a damaged file. */
enum status format_recognise(const char *path, enum format *out, struct diag *diag);

/* Says why a file of this format cannot be imported; returns STATUS_INPUT. */
enum status format_refuse(const char *path, enum format format, struct diag *diag);

#endif
