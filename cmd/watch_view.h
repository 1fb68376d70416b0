/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_view.h - a look at a run that goes on: as the block of lines of a terminal, as one line, as JSON.
 *
 * Up to WATCH_RANKS ranks each stream has a row; beyond that the streams of one name share one, with the least
 * and the greatest share of a rank.
 */
#ifndef SWSIM_WATCH_VIEW_H
#define SWSIM_WATCH_VIEW_H

#include <stdio.h>

#include "base/arena.h"
#include "base/json.h"
#include "trace/store_progress.h"

enum { WATCH_RANKS = 4 };

struct watch_look {
    const struct progress_run *run;
    const struct run_progress *now;
    int64_t quiet_ns; /* since something was written */
};

/* A block of lines, none wider than `width`, at most `height` of them; returns how many. Each begins with
   `before` and ends with `after` and a line end. */
struct watch_sheet {
    int width, height;
    const char *before, *after;
    FILE *out;
};
int watch_view_block(const struct watch_look *look, const struct watch_sheet *sheet,
                     struct arena *scratch);

void watch_view_line(const struct watch_look *look, struct arena *scratch, FILE *out);
void watch_view_json(const struct watch_look *look, struct json *json);

#endif
