/*
 * formats.h - what a file is: its content says.
 */
#ifndef SWSIM_FORMATS_H
#define SWSIM_FORMATS_H

#include <stdbool.h>

#include "plan/diag.h"

/* Traces come first. */
enum format {
    FORMAT_NSYS,       /* an export of Nsight Systems, SQLite */
    FORMAT_KINETO,     /* a trace of PyTorch's profiler */
    FORMAT_DUMP,       /* a dump of the flight recorder, JSON */
    FORMAT_DUMP_PICKLE /* the same as pickle */
};

static inline bool format_is_trace(enum format format)
{
    return format <= FORMAT_KINETO;
}

/* STATUS_INPUT for a file of none of these, also a damaged one. */
enum status format_recognise(const char *path, enum format *out, struct diag *diag);

#endif
