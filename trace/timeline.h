/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline.h - the picture of a run: a lane for every stream and thread, time to the right.
 *
 * Boxes are the work of streams and, thinner, of threads, one colour a task (colors.h), labelled with the
 * iteration; work that is too narrow for boxes is merged by its share of the time; ranks that look alike are drawn
 * once; pale boxes are time spent waiting, coloured by cause (trace.h), with the cause where it
 * fits. Every box has a tooltip with exact times. A witness, which has steps and no times, is drawn as a storyboard
 * (trace/storyboard.h), always as a whole. The output format follows the extension: .svg, .png, .pdf or .dot.
 */
#ifndef SWSIM_TIMELINE_H
#define SWSIM_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/status.h"

#include "draw.h"
#include "trace.h"

/* Which part of the run is drawn. Work of other iterations in that time is drawn too. */
enum timeline_range {
    TIMELINE_FIRST,      /* the first TIMELINE_FIRST_ITERATIONS, the fill included */
    TIMELINE_ITERATIONS, /* from .. to, both included */
    TIMELINE_TIME,       /* from .. to, nanoseconds */
    TIMELINE_ALL
};

enum timeline_arrows {
    TIMELINE_ARROWS_AUTO, /* dependences, unless there are more than TIMELINE_AUTO_ARROWS */
    TIMELINE_ARROWS_NONE,
    TIMELINE_ARROWS_DEPENDENCES,
    TIMELINE_ARROWS_ALL /* launches too */
};

enum { TIMELINE_FIRST_ITERATIONS = 6, TIMELINE_AUTO_ARROWS = 200, TIMELINE_MIN_WIDTH_PT = 400 };

/* All zero: the defaults. */
struct timeline_options {
    enum timeline_range range;
    int64_t from, to;
    enum timeline_arrows arrows;
    double width_pt;           /* 0: 1200; at least TIMELINE_MIN_WIDTH_PT */
    const char *const *titles; /* of each run; NULL: the names of the plans */
    const char *note;          /* of a page: what it says beside its title; NULL: nothing more */
    bool hide_threads;
    /* True if the agent is to be shown. NULL: all are. */
    bool (*shows)(void *context, const struct trace_agent *agent);
    void *context;
};

/* Draw the runs, one above the other on one axis of time, each from its own start if there are several. STATUS_INPUT where there is nothing to draw, STATUS_USAGE for an
   unknown extension, STATUS_SYSTEM when the file cannot be written or Graphviz fails. */
enum status timeline_render(const struct trace *traces, size_t count,
                            const struct timeline_options *options,
                            const struct draw_target *target, struct diag *diag);

#endif
