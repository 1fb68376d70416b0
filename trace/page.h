/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.h - runs, schedules and graphs as one HTML file that zooms: page.html, page.js and their data, with nothing fetched.
 *
 * The data are JSON: for each run its lanes (with the place of their first box), names and their colours, and columns of
 * numbers (page_column.h) for the boxes, lane by lane in the order of their starts: starts and lengths in nanoseconds, names,
 * 1 + iterations or microbatches, causes of waits (0: work; else 1 + the place in `causes`), edges. A timeline has its
 * iterations and critical path besides, a schedule what ranks hold, a counterexample the texts of its steps, which are its
 * axis. Every '<' in it is written as \u003c, so that no name can end the script it stands in.
 *
 * The critical path leads from the work that ends last back to what it needed last: by an edge, or the work before it on
 * its stream or thread.
 */
#ifndef SWSIM_PAGE_H
#define SWSIM_PAGE_H

#include <stdio.h>

#include "look.h"
#include "schedule_picture.h"
#include "timeline.h"

/* A page of more spans than this is too large for a browser: it shows a window. */
enum { PAGE_MOST_SPANS = 150 * 1000, PAGE_STALLS = 10 };

/* The longest waits of streams, the longest first, as numbers of spans; and the time around the first in which there are no more
   than PAGE_MOST_SPANS. Returns how many waits there are, at most PAGE_STALLS. */
size_t page_window(const struct trace *trace, int stalls[PAGE_STALLS], int64_t *from_ns,
                   int64_t *to_ns);

/* A counterexample, alone, or runs as timelines. STATUS_INPUT where there is nothing to show. Of the options `shows`, `note` and
   `title` are used. A failed write is remembered by `out`, as below. */
enum status page_write(const struct trace *traces, size_t count,
                       const struct timeline_options *options, const struct look *look, FILE *out,
                       struct diag *diag);

/* Schedules, one below the other on one axis. */
enum status page_write_charts(const struct chart *charts, size_t count, enum palette palette,
                              const struct look *look, FILE *out, struct diag *diag);

/* A picture that is SVG. */
enum status page_write_picture(const char *title, const char *svg, size_t bytes,
                               const struct look *look, FILE *out, struct diag *diag);

#endif
