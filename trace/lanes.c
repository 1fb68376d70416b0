/* SPDX-License-Identifier: Apache-2.0 */
/* lanes.c - see lanes.h. */
#include "lanes.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"

static const char name_color[] = "#222222", header_color[] = "#777777", lane_fill[] = "#f6f6f6";

static const struct trace_agent *lanes_agent_of(const struct lanes *lanes,
                                                const struct lanes_lane *lane)
{
    assert(lane->agent >= 0 && (size_t)lane->agent < lanes->trace->agent_count);
    return &lanes->trace->agents[lane->agent];
}

static int compare_lanes(const void *left, const void *right, void *context)
{
    const struct lanes *lanes = context;
    const struct trace_agent *a = lanes_agent_of(lanes, left), *b = lanes_agent_of(lanes, right);
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->kind != b->kind)
        return (a->kind < b->kind) != lanes->style->threads_first ? -1 : 1;
    const struct lanes_lane *x = left, *y = right;
    return compare_then(compare_int(x->place, y->place), (a > b) - (a < b));
}

/* Lanes of one name stand in the same order on all ranks: that of the lowest one. */
static int lanes_place_of(const struct lanes *lanes, const struct lanes_lane *lane)
{
    const struct trace_agent *agent = lanes_agent_of(lanes, lane), *first = agent;
    for (size_t i = 0; i < lanes->count; i++) {
        const struct trace_agent *other = lanes_agent_of(lanes, &lanes->items[i]);
        if (other->rank < first->rank && other->kind == agent->kind &&
            strcmp(other->name, agent->name) == 0)
            first = other;
    }
    return first->position;
}

bool lanes_open(struct lanes *lanes, const struct trace *trace, const struct lanes_style *style,
                struct arena *arena)
{
    *lanes = (struct lanes){.trace = trace, .style = style, .arena = arena};
    lanes->items = ARENA_ARRAY(arena, trace->agent_count + 1, struct lanes_lane);
    lanes->of_agent = ARENA_ARRAY(arena, trace->agent_count + 1, int);
    for (size_t i = 0; lanes->of_agent && i < trace->agent_count; i++)
        lanes->of_agent[i] = -1;
    return lanes->items && lanes->of_agent;
}

void lanes_add(struct lanes *lanes, int agent)
{
    assert(lanes->count < lanes->trace->agent_count); /* an agent has one lane */
    lanes->items[lanes->count++] = (struct lanes_lane){.agent = agent};
}

void lanes_place(struct lanes *lanes, double top_pt)
{
    const struct lanes_style *style = lanes->style;
    const struct trace_agent *before = NULL;
    double y = top_pt;
    for (size_t i = 0; i < lanes->count; i++)
        lanes->items[i].place = lanes_place_of(lanes, &lanes->items[i]);
    if (lanes->count)
        qsort_r(lanes->items, lanes->count, sizeof *lanes->items, compare_lanes, lanes);
    lanes->gutter_pt = style->least_gutter_pt;
    for (size_t i = 0; i < lanes->count; i++) {
        struct lanes_lane *lane = &lanes->items[i];
        const struct trace_agent *agent = lanes_agent_of(lanes, lane);
        lanes->of_agent[lane->agent] = (int)i;
        lane->starts_group = !before || agent->rank != before->rank || agent->kind != before->kind;
        y += lane->starts_group ? style->header_pt : 0;
        y += before && agent->rank != before->rank ? style->rank_gap_pt : 0;
        lane->y_pt = y;
        lane->height_pt = agent->kind == TRACE_STREAM ? style->stream_pt : style->thread_pt;
        y += lane->height_pt + style->gap_pt;
        lanes->gutter_pt =
            fmax(lanes->gutter_pt, draw_text_width(agent->name, style->stream_font_pt));
        before = agent;
    }
    lanes->top_pt = top_pt;
    lanes->bottom_pt = y;
}

static bool has_many_ranks(const struct lanes *lanes)
{
    return lanes->count && lanes_agent_of(lanes, &lanes->items[0])->rank !=
                               lanes_agent_of(lanes, &lanes->items[lanes->count - 1])->rank;
}

/* "streams", "rank 1 threads" */
static void draw_header(const struct lanes *lanes, struct drawing *drawing,
                        const struct trace_agent *agent, double y_pt)
{
    const char *kind = trace_agent_kind_text(agent->kind);
    const char *heading = lanes->headings ? lanes->headings[agent->rank] : NULL;
    const char *text = heading ? arena_printf(lanes->arena, "%s %ss", heading, kind)
                       : has_many_ranks(lanes)
                           ? arena_printf(lanes->arena, "rank %d %ss", agent->rank, kind)
                           : arena_printf(lanes->arena, "%ss", kind);
    double font_pt = lanes->style->header_font_pt;
    if (text)
        draw_box(drawing, &(struct draw_box){.x_pt = lanes->style->margin_pt,
                                             .y_pt = y_pt - 1.5 * font_pt,
                                             .width_pt = draw_text_width(text, font_pt),
                                             .height_pt = font_pt,
                                             .fill = "#ffffff"});
    draw_line(drawing, lanes->style->margin_pt, y_pt - font_pt, text, header_color, font_pt);
}

void lanes_draw_headings(const struct lanes *lanes, struct drawing *drawing, double down_pt)
{
    for (size_t i = 0; i < lanes->count; i++)
        if (lanes->items[i].starts_group)
            draw_header(lanes, drawing, lanes_agent_of(lanes, &lanes->items[i]),
                        lanes->items[i].y_pt + down_pt);
}

void lanes_draw(const struct lanes *lanes, struct drawing *drawing, double left_pt, double right_pt,
                double down_pt)
{
    const struct lanes_style *style = lanes->style;
    for (size_t i = 0; i < lanes->count; i++) {
        const struct lanes_lane *lane = &lanes->items[i];
        const struct trace_agent *agent = lanes_agent_of(lanes, lane);
        double y_pt = lane->y_pt + down_pt;
        draw_box(drawing, &(struct draw_box){.x_pt = left_pt,
                                             .y_pt = y_pt,
                                             .width_pt = right_pt - left_pt,
                                             .height_pt = lane->height_pt,
                                             .fill = lane_fill});
        draw_text(drawing, &(struct draw_text){.x_pt = left_pt - style->name_gap_pt,
                                               .y_pt = y_pt + lane->height_pt / 2,
                                               .align = DRAW_RIGHT,
                                               .text = agent->name,
                                               .color = name_color,
                                               .font_pt = agent->kind == TRACE_STREAM
                                                              ? style->stream_font_pt
                                                              : style->thread_font_pt});
    }
}
