/* SPDX-License-Identifier: Apache-2.0 */
/*
 * render_choice.h - the part of a run that `swsim render` is asked for: ranks, streams, time, iterations.
 */
#ifndef SWSIM_RENDER_CHOICE_H
#define SWSIM_RENDER_CHOICE_H

#include "trace/trace.h"

#include "app.h"
#include "options.h"

struct render_choice {
    const char *ranks; /* "0-3,8"; NULL: all */
    const char
        *streams; /* "compute,comm*": patterns of the names of streams and threads; NULL: all */
    bool has_time;
    int64_t from_ns, to_ns;
    int64_t from, to; /* iterations; -1: not given */
    bool no_threads;
};

/* "A..B" of --time: durations from the start of the run, of which one may be left out. STATUS_USAGE otherwise. */
enum status render_choice_time(struct app *app, const char *text, struct render_choice *choice);
/* "A..B", or one number, of --iterations. */
enum status render_choice_iterations(struct app *app, const char *text,
                                     struct render_choice *choice);
/* Check that the text of --rank is well-formed. *only is the rank if it is one; else -1. */
enum status render_choice_ranks(struct app *app, const char *text, int *only);

/* As timeline_options.shows takes it. */
bool render_choice_shows(void *choice, const struct trace_agent *agent);

/* ---- options and kinds of pictures ----------------------------------------------------------- */

/*
 * Which options of `swsim render` mean something to which kind of picture.
 *
 * An option either has an effect on the picture, or is refused with the name of the picture: none is read and dropped.
 */

#define RENDER_KIND_LIST(X)                                                                        \
    X(TIMELINE, "a timeline")                                                                      \
    X(WITNESS, "a counterexample, which is drawn as a whole")                                      \
    X(PAGE, "the page of a timeline")                                                              \
    X(RUN_PAGE, "the page of a run's schedule")                                                    \
    X(PLAN_PAGE, "the page of a plan's schedule")                                                  \
    X(WITNESS_PAGE, "the page of a counterexample, which is shown as a whole")                     \
    X(GRAPH_PAGE, "the page of a graph")                                                           \
    X(JSON, "JSON")                                                                                \
    X(RUN_SCHEDULE, "the schedule of a run")                                                       \
    X(PLAN_SCHEDULE, "the schedule of a plan")                                                     \
    X(GRAPH, "the graph of a plan")
enum render_kind {
#define X(name, words) RENDER_##name,
    RENDER_KIND_LIST(X)
#undef X
        RENDER_KINDS
};

/* STATUS_USAGE where an option was given that has no effect on the picture of `file`, of this kind. */
enum status render_uses_check(struct app *app, const struct arguments *arguments,
                              enum render_kind kind, const char *file);

#endif
