/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline_view.h - shared by the parts of a timeline: what is shown of a run, and where it stands.
 *
 * A picture has a view for each run, one above the other; they share the scale of time, the names and the legend.
 */
#ifndef SWSIM_TIMELINE_VIEW_H
#define SWSIM_TIMELINE_VIEW_H

#include "colors.h"
#include "draw.h"
#include "lanes.h"
#include "timeline.h"
#include "trace.h"

/* Sizes in points. */
enum { TIMELINE_MARGIN = 18 };

/* A cause of the ledger, and the look of idle time of that cause; then of any other cause, and of a thread. */
struct wait_look {
    const char *cause, *fill, *words;
};
enum { WAIT_LOOKS = 7, OTHER_WAIT = WAIT_LOOKS - 2, THREAD_WAIT = WAIT_LOOKS - 1 };
extern const struct wait_look timeline_waits[WAIT_LOOKS];
/* The look of a wait: an index of timeline_waits. */
int timeline_look(const struct trace *trace, const struct trace_span *span);

/* The facts of a name, beside its colour. */
struct task_note {
    const char *short_name;   /* NULL: none */
    bool short_used;          /* on a box: the legend explains it */
    double widest_pt, sum_pt; /* of its boxes in the window, and all of them */
};

/* Of all views. */
struct timeline_key {
    struct arena *arena;
    struct colors colors;
    struct task_note *notes; /* beside the names of `colors` */
    bool waits[WAIT_LOOKS];  /* in the window */
    bool grey;               /* waits look alike: their words are in the bands */
    bool merged;             /* some work is too narrow for a box of its own */
};

struct view {
    const struct trace *trace;
    const struct timeline_options *options;
    struct timeline_key *key;
    struct arena *arena; /* of this picture */
    struct drawing *drawing;
    const char *title;
    int64_t start_ns, end_ns, range_ns; /* the range is that of the longest view */
    double head_pt;                     /* where the view begins */
    struct lanes_style style;
    struct lanes lanes;
    int *order;     /* spans, agent by agent, by their start */
    size_t *first;  /* of each agent in `order`, and one behind the last */
    int *like;      /* per rank: the lowest one that looks the same */
    int rank_count; /* 1 + the highest rank */
    bool arrows_left_out;
    bool from_zero;                          /* the axis counts from the start of the view */
    int64_t first_iteration, last_iteration; /* wanted; last -1: all */
    double left_pt, right_pt;                /* of the lanes */
    struct draw_node **nodes;                /* of each span, NULL: not drawn on its own */
};

static inline bool view_has(const struct view *view, const struct trace_span *span)
{
    return span->start_ns < view->end_ns && span->end_ns >= view->start_ns &&
           (span->end_ns > view->start_ns || span->start_ns == view->start_ns);
}

static inline double view_x(const struct view *view, int64_t time_ns)
{
    int64_t at = time_ns < view->start_ns ? view->start_ns
                 : time_ns > view->end_ns ? view->end_ns
                                          : time_ns;
    return view->left_pt + (double)(at - view->start_ns) / (double)view->range_ns *
                               (view->right_pt - view->left_pt);
}

/* The number of a span's name among the colours; -1: none. */
static inline int view_task(const struct view *view, const struct trace_span *span)
{
    return span->task ? colors_group(&view->key->colors, span->task) : -1;
}

/* The run's of those that were asked for, else the name of its plan. */
const char *timeline_title(const struct timeline_options *options, const struct trace *traces,
                           size_t at);

/* The spans, by agent; and which ranks look alike, of those that are shown. False: out of memory. */
bool timeline_order(struct view *view);
bool timeline_fold(struct view *view);
/* "ranks 0-63 alike:", "ranks 0, 2-5 alike:", of the group whose lowest rank is `group`; NULL: that is alone. */
const char *timeline_group_name(const struct view *view, int group);

/* Boxes of all lanes; what the legend must explain of them, before there is a drawing (timeline_boxes.c). */
void timeline_boxes(struct view *view);
void timeline_note(struct view *view);

/* The legend from y downwards, drawn if there is a drawing; returns its height. */
double timeline_legend(const struct view *view, double y);
/* Names of spans, colours and short names. False: out of memory. */
bool timeline_names(struct timeline_key *key, const struct trace *trace);

#endif
