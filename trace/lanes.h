/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lanes.h - the lanes of a placed picture: an agent each, ordered by rank and kind, a header above each group.
 *
 * Everything is in the arena of the picture. lanes_open, lanes_add for each agent shown, lanes_place, then
 * lanes_draw.
 */
#ifndef SWSIM_LANES_H
#define SWSIM_LANES_H

#include "draw.h"
#include "trace.h"

struct lanes_lane {
    int agent;
    double y_pt, height_pt;
    int place;         /* in the order of its rank and kind */
    bool starts_group; /* the first of its rank and kind: a header stands above */
};

/* Sizes in points. */
struct lanes_style {
    bool threads_first;
    double margin_pt, header_pt, header_font_pt;
    double stream_pt, thread_pt;           /* heights */
    double gap_pt, rank_gap_pt;            /* below each lane, above each rank but the first */
    double stream_font_pt, thread_font_pt; /* of the names */
    double name_gap_pt, least_gutter_pt; /* between a name and its lane; least width of the names */
};

struct lanes {
    const struct trace *trace;
    const struct lanes_style *style;
    struct arena *arena;
    struct lanes_lane *items;
    int *of_agent; /* -1: not shown */
    const char **
        headings; /* per rank, in front of "streams"; NULL, also of one: "rank 1", if there are several */
    size_t count;
    double top_pt, bottom_pt, gutter_pt; /* bottom of the last gap; width of the widest name */
};

/* False: out of memory. */
bool lanes_open(struct lanes *lanes, const struct trace *trace, const struct lanes_style *style,
                struct arena *arena);
void lanes_add(struct lanes *lanes, int agent);
/* Order the lanes and place them from `top_pt` downwards. */
void lanes_place(struct lanes *lanes, double top_pt);
/* The lane of a shown agent. */
static inline const struct lanes_lane *lanes_of(const struct lanes *lanes, int agent)
{
    return &lanes->items[lanes->of_agent[agent]];
}
/* All lanes from left to right, empty, with names; `down_pt` below their places. */
void lanes_draw(const struct lanes *lanes, struct drawing *drawing, double left_pt, double right_pt,
                double down_pt);
/* The headings of their groups, above lines that are there already. */
void lanes_draw_headings(const struct lanes *lanes, struct drawing *drawing, double down_pt);

#endif
