/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.h - the files that the arguments of an import name. A folder stands for the files in it, by name, where
 * numbers count as numbers: rank2 comes before rank10. A file of a folder that is neither a trace nor a dump is
 * passed over, with a note.
 */
#ifndef SWSIM_FILES_H
#define SWSIM_FILES_H

#include "formats.h"

#include "base/arena.h"

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
