/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.h - the files that the arguments of an import name. A folder stands for the files in it, by name, where
 * numbers count as numbers: rank2 comes before rank10. A file of a folder that is neither a trace nor a dump is
 * passed over, with a note.
 */
#ifndef SWSIM_FILES_H
#define SWSIM_FILES_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/diag.h"

/* What a file is, by its content. Traces come first, what cannot be imported last. */
enum format {
    FORMAT_NSYS,        /* an export of Nsight Systems, SQLite */
    FORMAT_KINETO,      /* a trace of PyTorch's profiler */
    FORMAT_EXECUTION,   /* an execution trace of PyTorch, JSON: what its operators access */
    FORMAT_DUMP,        /* a dump of the flight recorder, JSON */
    FORMAT_DUMP_PICKLE, /* the same as pickle */
    FORMAT_STACK,       /* stacks of a process, by py-spy or gdb */
    FORMAT_STACK_JSON,  /* by py-spy, as JSON */
    FORMAT_RAS,         /* the counts of NCCL's RAS, JSON */
    FORMAT_INSPECTOR,   /* a log of NCCL's Inspector, lines of JSON */
    FORMAT_RECORDING,   /* of swsim record */
    FORMAT_CHAKRA,      /* an execution trace of Chakra, protobuf */
    FORMAT_JSON,        /* JSON of something else */
    FORMAT_ROCPROF,     /* of rocprofv3, JSON */
    FORMAT_REPORT,      /* of Nsight Systems itself */
    FORMAT_XPLANE,      /* of XLA's profiler */
    FORMAT_TAR,
    FORMAT_ZIP,
    FORMAT_ZSTD,
    FORMAT_XZ,
    FORMAT_OTHER, /* none of these */
    FORMAT_EMPTY  /* a file without a byte */
};

static inline bool format_is_trace(enum format format)
{
    return format <= FORMAT_EXECUTION;
}

/* Of a job that hangs: read beside the dumps. */
static inline bool format_is_standstill(enum format format)
{
    return format >= FORMAT_STACK && format <= FORMAT_INSPECTOR;
}

static inline bool format_is_usable(enum format format)
{
    return format <= FORMAT_CHAKRA;
}

/* STATUS_INPUT for a damaged file. */
enum status format_recognise(const char *path, enum format *out, struct diag *diag);

/* Says why a file of this format cannot be imported; returns STATUS_INPUT. */
enum status format_refuse(const char *path, enum format format, struct diag *diag);

struct import_file {
    const char *path;
    enum format format;
};

struct import_files {
    struct import_file *items;
    size_t count, cap;
};

/* All of it lives in `arena`. All files are traces, or all are dumps: STATUS_INPUT where they are not, and for one
   that is neither or damaged, and for a folder without any. STATUS_SYSTEM for one that cannot be read. */
enum status files_list(const char *const *paths, size_t count, struct arena *arena,
                       struct import_files *out, struct diag *diag);

#endif
