/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.h - runs as one HTML file that zooms: page.html, page.js and the data of the runs, with nothing fetched.
 *
 * The data are JSON: for each run its agents (with the place of their first span), names and their colours, causes of
 * waits and their looks, iterations, the critical path, and columns of numbers in base64, little-endian: starts and
 * lengths in nanoseconds (doubles), names, iterations, causes (0: work; else 1 + the place in `causes`), edges (32 bits).
 * Spans stand agent by agent in the order of their starts. Every '<' in it is written as \u003c, so that no name can end
 * the script it stands in.
 *
 * The critical path leads from the work that ends last back to what it needed last: by an edge, or the work before it on
 * its stream or thread.
 */
#ifndef SWSIM_PAGE_H
#define SWSIM_PAGE_H

#include <stdio.h>

#include "look.h"
#include "timeline.h"

/* A page of more spans than this is too large for a browser, 20 MB: it shows a window. */
enum { PAGE_MOST_SPANS = 150 * 1000, PAGE_STALLS = 10 };

/* The longest waits of streams, the longest first, as numbers of spans; and the time around the first in which there are no more
   than PAGE_MOST_SPANS. Returns how many waits there are, at most PAGE_STALLS. */
size_t page_window(const struct trace *trace, int stalls[PAGE_STALLS], int64_t *from_ns,
                   int64_t *to_ns);

/* STATUS_INPUT for a counterexample, which has no times, and where there is nothing to show. Of the options `shows`,
   `note` and `title` are used. A failed write is remembered by `out`. */
enum status page_write(const struct trace *traces, size_t count,
                       const struct timeline_options *options, const struct look *look, FILE *out,
                       struct diag *diag);

#endif
