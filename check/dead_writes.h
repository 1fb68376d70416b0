/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dead_writes.h - writes that are overwritten before anybody can read them.
 *
 * The plan must have no races: then the accesses of a buffer have the same order in all runs that only reorder steps which
 * commute. One run shows this order for a host program, and the serial run shows it for a pipeline whose accesses come as
 * in a serial run. A program with several such orders has no dead writes reported (doc/semantics.md).
 */
#ifndef SWSIM_DEAD_WRITES_H
#define SWSIM_DEAD_WRITES_H

#include "verify.h"

/* One operation of the pair: in a pipeline a task. */
struct dead_access {
    const char *subject; /* "fill(0)" */
    struct mark mark;
};

struct dead_write {
    const char *buffer; /* "r1.x" where there are several ranks */
    bool read;          /* True if any operation reads the buffer. */
    bool
        may_be_read; /* True if `over` is a recorded launch: of what it writes it may read what was there. */
    struct dead_access lost, over;
};

/* No two have the same marks and buffer. In the order of the run. */
struct dead_writes {
    struct dead_write *items;
    size_t count, cap;
    bool one_order; /* True if the run stands for all; else `items` are only those of this run. */
};

/* `options` are those that the plan was verified with. Texts are the arena's. */
enum status dead_writes_find(const struct plan *plan, const struct verify_options *options,
                             struct arena *arena, struct dead_writes *out, struct diag *diag);

#endif
