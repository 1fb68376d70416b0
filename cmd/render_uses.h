/* SPDX-License-Identifier: Apache-2.0 */
/*
 * render_uses.h - which options of `swsim render` mean something to which kind of picture.
 *
 * An option either has an effect on the picture, or is refused with the name of the picture: none is read and dropped.
 */
#ifndef SWSIM_RENDER_USES_H
#define SWSIM_RENDER_USES_H

#include "options.h"

#define RENDER_KIND_LIST(X)                                                                        \
    X(TIMELINE, "a timeline")                                                                      \
    X(WITNESS, "a counterexample, which is drawn as a whole")                                      \
    X(PAGE, "an HTML page")                                                                        \
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
