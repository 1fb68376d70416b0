/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline.c - see timeline.h.
 *
 * First everything is measured (the window in time, the lanes, the legend), then a sheet of that
 * size is opened and drawn on from back to front: lane backgrounds, grid, waits, work, arrows.
 *
 *     +--------------------------------------------------------+
 *     | title                                                  |
 *     | subtitle                                               |
 *     |            0 ms        10 ms        20 ms        30 ms |  axis
 *     |  streams                                               |  header of a group
 *     |    memcpy  [H2D 0][H2D 1]                              |  lane
 *     |   default          ...                                 |
 *     |  threads                                               |
 *     |   default  ...                                         |
 *     |  # H2D  # Forward  # waiting                           |  legend
 *     +--------------------------------------------------------+
 *               ^ left_pt                           right_pt ^
 */
#include "timeline.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "storyboard.h"
#include "timeline_view.h"

/* Sizes in points. */
enum {
    DEFAULT_WIDTH = 1200,
    MARGIN = TIMELINE_MARGIN,
    TITLE_FONT = 15,
    SUBTITLE_FONT = 9,
    TITLE_HEIGHT = 38,
    AXIS_HEIGHT = 22,
    AXIS_FONT = 8,
    TICK_SPACING = 90, /* at least so far apart */
    LEGEND_GAP = 16,
    FEW_LANES = 24, /* more are lower, */
    SOME_LANES = 48 /* and more yet lower still */
};

static const char text_dark[] = "#222222", text_grey[] = "#777777", grid_color[] = "#e4e4e4",
                  tight_color[] = "#333333cc", loose_color[] = "#33333344";

/* ---- the window ------------------------------------------------------------------------------ */

/* The time that iterations from..to take, on all ranks; false: there are none. */
static bool range_of_iterations(const struct trace *trace, int64_t from, int64_t to,
                                int64_t *out_start_ns, int64_t *out_end_ns)
{
    int64_t start_ns = INT64_MAX, end_ns = INT64_MIN;
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct trace_span *span = &trace->spans[i];
        if (span->iteration < 0 || span->iteration < from || span->iteration > to)
            continue;
        start_ns = span->start_ns < start_ns ? span->start_ns : start_ns;
        end_ns = span->end_ns > end_ns ? span->end_ns : end_ns;
    }
    *out_start_ns = start_ns;
    *out_end_ns = end_ns;
    return start_ns <= end_ns;
}

/* 0 where no span has an iteration. */
static int64_t lowest_iteration(const struct trace *trace)
{
    int64_t lowest = -1;
    for (size_t i = 0; i < trace->span_count; i++) {
        int64_t iteration = trace->spans[i].iteration;
        if (iteration >= 0 && (lowest < 0 || iteration < lowest))
            lowest = iteration;
    }
    return lowest < 0 ? 0 : lowest;
}

static enum status choose_window(struct view *view, struct diag *diag)
{
    const struct trace *trace = view->trace;
    const struct timeline_options *options = view->options;
    int64_t first_ns, last_ns;
    view->last_iteration = -1;
    if (trace->span_count == 0)
        return diag_error(diag, STATUS_INPUT, "nothing to draw: the run has no %s",
                          options->range == TIMELINE_TIME ? "work in this time" : "spans");
    trace_range(trace, &first_ns, &last_ns);
    view->start_ns = first_ns;
    view->end_ns = last_ns;
    if (options->range == TIMELINE_TIME) {
        view->start_ns = options->from > first_ns ? options->from : first_ns;
        view->end_ns = options->to < last_ns ? options->to : last_ns;
        if (options->from >= options->to || options->to <= first_ns || options->from >= last_ns)
            return diag_error(diag, STATUS_INPUT,
                              "nothing to draw: the run has no work in this time");
    } else if (options->range == TIMELINE_ITERATIONS) {
        if (!range_of_iterations(trace, options->from, options->to, &view->start_ns, &view->end_ns))
            return diag_error(diag, STATUS_INPUT,
                              "nothing to draw: the run has no iterations %" PRId64 " to %" PRId64,
                              options->from, options->to);
        view->first_iteration = options->from;
        view->last_iteration = options->to;
    } else if (options->range == TIMELINE_FIRST) {
        int64_t start_ns;
        view->first_iteration = lowest_iteration(trace);
        view->last_iteration = view->first_iteration + TIMELINE_FIRST_ITERATIONS - 1;
        if (!range_of_iterations(trace, view->first_iteration, view->last_iteration, &start_ns,
                                 &view->end_ns))
            view->end_ns = last_ns;
    }
    if (view->end_ns <= view->start_ns)
        view->end_ns = view->start_ns + 1;
    assert(view->start_ns < view->end_ns);
    return STATUS_OK;
}

/* The iterations to name in the subtitle: those with work in the window, of the wanted ones if there are
   any. False: none. */
static bool shown_iterations(const struct view *view, int64_t *out_first, int64_t *out_last)
{
    int64_t first = INT64_MAX, last = -1;
    for (size_t i = 0; i < view->trace->span_count; i++) {
        const struct trace_span *span = &view->trace->spans[i];
        bool asked = view->last_iteration < 0 || (span->iteration >= view->first_iteration &&
                                                  span->iteration <= view->last_iteration);
        if (span->iteration < 0 || !asked || !view_has(view, span))
            continue;
        first = span->iteration < first ? span->iteration : first;
        last = span->iteration > last ? span->iteration : last;
    }
    *out_first = first;
    *out_last = last;
    return last >= 0;
}

/* ---- lanes ----------------------------------------------------------------------------------- */

static const struct lanes_style usual = {
    .margin_pt = MARGIN,
    .header_pt = 18,
    .header_font_pt = 8,
    .stream_pt = 26,
    .thread_pt = 13,
    .gap_pt = 9,
    .rank_gap_pt = 8,
    .stream_font_pt = 10,
    .thread_font_pt = 8,
    .name_gap_pt = 8,
    .least_gutter_pt = 56,
};

/* Lower ones, so that the ranks of a job stand on one sheet. */
static void choose_style(struct view *view)
{
    size_t count = view->lanes.count;
    view->style = usual;
    view->lanes.style = &view->style;
    if (count > FEW_LANES) {
        view->style.stream_pt = 16;
        view->style.thread_pt = 9;
        view->style.gap_pt = 4;
        view->style.stream_font_pt = 9;
        view->style.thread_font_pt = 7;
    }
    if (count > SOME_LANES) {
        view->style.stream_pt = 9;
        view->style.thread_pt = 6;
        view->style.gap_pt = 2;
        view->style.header_pt = 12;
        view->style.rank_gap_pt = 2;
        view->style.stream_font_pt = view->style.thread_font_pt = 7;
    }
}

/* All lanes that are wanted, in order that they can be held against each other. */
static bool open_lanes(struct view *view)
{
    const struct trace *trace = view->trace;
    view->nodes = ARENA_ARRAY(view->arena, trace->span_count + 1, struct draw_node *);
    if (!lanes_open(&view->lanes, trace, &usual, view->arena) || !view->nodes)
        return false;
    for (size_t i = 0; i < trace->agent_count; i++) {
        const struct timeline_options *options = view->options;
        view->lanes.of_agent[i] =
            ((trace->agents[i].kind == TRACE_STREAM || !options->hide_threads) &&
             (!options->shows || options->shows(options->context, &trace->agents[i])))
                ? 0
                : -1;
        if (trace->agents[i].rank >= view->rank_count)
            view->rank_count = trace->agents[i].rank + 1;
    }
    return true;
}

static bool choose_lanes(struct view *view)
{
    const struct trace *trace = view->trace;
    view->lanes.headings = ARENA_ARRAY(view->arena, (size_t)view->rank_count + 1, const char *);
    if (!timeline_fold(view) || !view->lanes.headings)
        return false;
    for (size_t i = 0; i < trace->agent_count; i++) {
        int rank = trace->agents[i].rank;
        assert(rank >= 0 && rank < view->rank_count);
        bool shown = view->lanes.of_agent[i] == 0 && view->like[rank] == rank;
        view->lanes.of_agent[i] = -1;
        if (shown)
            lanes_add(&view->lanes, (int)i);
    }
    for (int rank = 0; rank < view->rank_count; rank++)
        if (view->like[rank] == rank)
            view->lanes.headings[rank] = timeline_group_name(view, rank);
    choose_style(view);
    return !view->arena->failed;
}

/* ---- title and axis -------------------------------------------------------------------------- */

/* Add `text` to the subtitle. */
static void add_fact(struct view *view, const char **subtitle, const char *text)
{
    if (text && *text)
        *subtitle = arena_printf(view->arena, "%s%s%s", *subtitle ? *subtitle : "",
                                 *subtitle && **subtitle ? "  \u00b7  " : "", text);
}

/* "iterations 0 to 5 of 40" */
static const char *iterations_text(struct view *view)
{
    int64_t first, last, all = view->trace->info.iterations_wanted;
    if (!shown_iterations(view, &first, &last))
        return NULL;
    if (all > last + 1)
        return arena_printf(view->arena, "iterations %" PRId64 " to %" PRId64 " of %" PRId64, first,
                            last, all);
    return arena_printf(view->arena, "iterations %" PRId64 " to %" PRId64, first, last);
}

static const char *subtitle_text(struct view *view)
{
    const struct run_info *info = &view->trace->info;
    struct arena *arena = view->arena;
    char time[UNITS_TEXT];
    const char *text = NULL;
    double mean_ns = trace_mean_iteration_ns(view->trace);
    add_fact(view, &text, run_kind_text(info->kind));
    add_fact(view, &text, info->device);
    if (info->driver != RUN_DRIVER_NONE)
        add_fact(view, &text, arena_printf(arena, "%s driver", run_driver_text(info->driver)));
    if (info->ranks > 1)
        add_fact(view, &text, arena_printf(arena, "%d ranks", info->ranks));
    add_fact(view, &text, iterations_text(view));
    if (mean_ns > 0) {
        units_show_time(mean_ns, time);
        add_fact(view, &text, arena_printf(arena, "%s per iteration", time));
    }
    if (info->finished == RUN_INTERRUPTED)
        add_fact(view, &text, "interrupted");
    if (view->arrows_left_out)
        add_fact(view, &text, "without dependence arrows");
    return text ? text : "";
}

/* The smallest of 1, 2, 5, 10, 20, ... that is at least `least`. */
static int64_t round_step(double least)
{
    static const int factors[] = {2, 5, 10};
    int64_t decade = 1;
    if (least <= 1)
        return 1;
    while (decade <= INT64_MAX / 100) {
        for (size_t i = 0; i < 3; i++)
            if ((double)(decade * factors[i]) >= least)
                return decade * factors[i];
        decade *= 10;
    }
    return decade;
}

/* The unit that all ticks are written in: the largest that leaves the last tick at one or more. */
static const char *tick_unit(const struct view *view, double *out_ns)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
    size_t i = 0;
    double last_ns = (double)(view->from_zero ? view->range_ns : view->end_ns);
    while (i < 3 && last_ns < units[i].ns)
        i++;
    *out_ns = units[i].ns;
    return units[i].name;
}

static void timeline_draw_axis(struct view *view)
{
    double unit_ns, width_pt = view->right_pt - view->left_pt;
    const char *unit = tick_unit(view, &unit_ns);
    int64_t step_ns = round_step((double)view->range_ns * TICK_SPACING / width_pt);
    assert(step_ns > 0);
    int decimals = 0;
    for (double step = (double)step_ns / unit_ns; step < 0.999 && decimals < 9; step *= 10)
        decimals++;
    int64_t zero_ns = view->from_zero ? view->start_ns : 0;
    int64_t tick_ns = (view->start_ns - zero_ns + step_ns - 1) / step_ns * step_ns;
    for (; tick_ns <= view->start_ns + view->range_ns - zero_ns; tick_ns += step_ns) {
        double x = view->left_pt +
                   (double)(zero_ns + tick_ns - view->start_ns) * width_pt / (double)view->range_ns;
        const char *text =
            arena_printf(view->arena, "%.*f %s", decimals, (double)tick_ns / unit_ns, unit);
        draw_box(view->drawing,
                 &(struct draw_box){.x_pt = x,
                                    .y_pt = view->lanes.top_pt,
                                    .width_pt = 1,
                                    .height_pt = view->lanes.bottom_pt - view->lanes.top_pt,
                                    .fill = grid_color});
        double half_pt = text ? draw_text_width(text, AXIS_FONT) / 2 : 0;
        bool fits = x + half_pt < view->right_pt + MARGIN / 2.0;
        draw_text(view->drawing, &(struct draw_text){.x_pt = fits ? x : view->right_pt + 4,
                                                     .y_pt = view->lanes.top_pt - AXIS_FONT,
                                                     .align = fits ? DRAW_CENTER : DRAW_RIGHT,
                                                     .text = text ? text : "",
                                                     .color = text_grey,
                                                     .font_pt = AXIS_FONT});
    }
}

/* ---- arrows ---------------------------------------------------------------------------------- */

/* True if the end of `from` let `to` start. As near as a point on the sheet. */
static bool is_tight(const struct view *view, const struct trace_edge *edge)
{
    const struct trace_span *from = &view->trace->spans[edge->from];
    const struct trace_span *to = &view->trace->spans[edge->to];
    return view_x(view, to->start_ns) - view_x(view, from->end_ns) <= 1;
}

/* Arrows within a lane would only repeat the order of the boxes. */
static bool is_drawn(const struct view *view, const struct trace_edge *edge)
{
    const struct trace_span *from = &view->trace->spans[edge->from];
    const struct trace_span *to = &view->trace->spans[edge->to];
    bool wanted = view->options->arrows != TIMELINE_ARROWS_NONE &&
                  (edge->kind == EDGE_DEPENDENCE || view->options->arrows == TIMELINE_ARROWS_ALL);
    return wanted && from->agent != to->agent && view_has(view, from) && view_has(view, to) &&
           view->lanes.of_agent[from->agent] >= 0 && view->lanes.of_agent[to->agent] >= 0;
}

static void count_arrows(struct view *view)
{
    size_t count = 0;
    for (size_t i = 0; i < view->trace->edge_count; i++)
        count += is_drawn(view, &view->trace->edges[i]);
    view->arrows_left_out =
        view->options->arrows == TIMELINE_ARROWS_AUTO && count > TIMELINE_AUTO_ARROWS;
}

static void draw_edge_arrow(struct view *view, const struct trace_edge *edge)
{
    const struct trace_span *from = &view->trace->spans[edge->from];
    const struct trace_span *to = &view->trace->spans[edge->to];
    const struct lanes_lane *source = lanes_of(&view->lanes, from->agent);
    const struct lanes_lane *target = lanes_of(&view->lanes, to->agent);
    double from_width = view_x(view, from->end_ns) - view_x(view, from->start_ns);
    double to_width = view_x(view, to->end_ns) - view_x(view, to->start_ns);
    bool down = source->y_pt < target->y_pt;
    draw_arrow(view->drawing, &(struct draw_arrow){
                                  .from = view->nodes[edge->from],
                                  .to = view->nodes[edge->to],
                                  .from_x_pt = view_x(view, from->end_ns) - fmin(3, from_width / 2),
                                  .from_y_pt = source->y_pt + (down ? source->height_pt : 0),
                                  .to_x_pt = view_x(view, to->start_ns) + fmin(3, to_width / 2),
                                  .to_y_pt = target->y_pt + (down ? 0 : target->height_pt),
                                  .color = is_tight(view, edge) ? tight_color : loose_color,
                                  .dashed = edge->kind == EDGE_LAUNCH});
}

/* Merged work has none. */
static bool has_boxes(const struct view *view, const struct trace_edge *edge)
{
    return view->nodes[edge->from] && view->nodes[edge->to];
}

/* ---- all together ---------------------------------------------------------------------------- */

struct timeline_picture {
    struct arena arena;
    struct timeline_key key;
    struct view *views;
    size_t count;
    double width_pt, height_pt;
};

static enum status open_view(struct timeline_picture *picture, struct view *view, struct diag *diag)
{
    enum status status = choose_window(view, diag);
    if (status != STATUS_OK)
        return status;
    if (!timeline_names(&picture->key, view->trace) || !timeline_order(view) || !open_lanes(view))
        return diag_no_memory(diag);
    view->left_pt = MARGIN;
    view->right_pt = picture->width_pt - MARGIN;
    return STATUS_OK;
}

/* All views have the longest one's scale, and lanes that begin at one place. */
static enum status choose_scale(struct timeline_picture *picture, struct diag *diag)
{
    int64_t range_ns = 1;
    double gutter_pt = 0;
    for (size_t i = 0; i < picture->count; i++) {
        const struct view *view = &picture->views[i];
        range_ns =
            view->end_ns - view->start_ns > range_ns ? view->end_ns - view->start_ns : range_ns;
    }
    for (size_t i = 0; i < picture->count; i++) {
        struct view *view = &picture->views[i];
        view->range_ns = range_ns;
        if (!choose_lanes(view))
            return diag_no_memory(diag);
        if (view->lanes.count == 0)
            return diag_error(diag, STATUS_INPUT,
                              "nothing to draw: the options leave no rank or stream");
        lanes_place(&view->lanes, 0);
        gutter_pt = fmax(gutter_pt, view->lanes.gutter_pt);
    }
    for (size_t i = 0; i < picture->count; i++)
        picture->views[i].left_pt =
            MARGIN + fmin(gutter_pt, picture->width_pt / 4) + usual.name_gap_pt;
    return STATUS_OK;
}

static enum status timeline_measure(struct timeline_picture *picture, struct diag *diag)
{
    enum status status = STATUS_OK;
    double head_pt = MARGIN;
    if (picture->width_pt < TIMELINE_MIN_WIDTH_PT)
        return diag_error(diag, STATUS_USAGE, "a timeline is at least %d points wide",
                          TIMELINE_MIN_WIDTH_PT);
    for (size_t i = 0; i < picture->count && status == STATUS_OK; i++)
        status = open_view(picture, &picture->views[i], diag);
    if (status == STATUS_OK)
        status = choose_scale(picture, diag);
    for (size_t i = 0; i < picture->count && status == STATUS_OK; i++) {
        struct view *view = &picture->views[i];
        view->head_pt = head_pt;
        lanes_place(&view->lanes, head_pt + TITLE_HEIGHT + AXIS_HEIGHT);
        count_arrows(view);
        timeline_note(view);
        head_pt = view->lanes.bottom_pt + LEGEND_GAP;
    }
    if (status == STATUS_OK)
        picture->height_pt = head_pt + timeline_legend(picture->views, 0) + MARGIN;
    return status;
}

static void draw_view(struct view *view)
{
    draw_text(view->drawing, &(struct draw_text){.x_pt = MARGIN,
                                                 .y_pt = view->head_pt + TITLE_FONT / 2.0,
                                                 .text = view->title,
                                                 .color = text_dark,
                                                 .font_pt = TITLE_FONT,
                                                 .bold = true});
    draw_line(view->drawing, MARGIN, view->head_pt + TITLE_FONT + 12, subtitle_text(view),
              text_grey, SUBTITLE_FONT);
    lanes_draw(&view->lanes, view->drawing, view->left_pt, view->right_pt, 0);
    timeline_draw_axis(view);
    lanes_draw_headings(&view->lanes, view->drawing, 0);
    timeline_boxes(view);
    for (size_t i = 0; i < view->trace->edge_count && !view->arrows_left_out; i++)
        if (is_drawn(view, &view->trace->edges[i]) && has_boxes(view, &view->trace->edges[i]))
            draw_edge_arrow(view, &view->trace->edges[i]);
}

static enum status timeline_draw_all(void *context, const struct draw_target *target, char **data,
                                     size_t *bytes, struct diag *diag)
{
    struct timeline_picture *picture = context;
    struct drawing *drawing;
    enum status status =
        draw_open_placed(target, picture->width_pt, picture->height_pt, &drawing, diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < picture->count; i++) {
        picture->views[i].drawing = drawing;
        draw_view(&picture->views[i]);
    }
    timeline_legend(picture->views,
                    picture->views[picture->count - 1].lanes.bottom_pt + LEGEND_GAP);
    status = picture->arena.failed ? diag_no_memory(diag) : draw_finish(drawing, data, bytes, diag);
    draw_close(drawing);
    return status;
}

static enum status refuse_witness(const struct timeline_options *options, size_t count,
                                  struct diag *diag)
{
    bool part = options->range == TIMELINE_ITERATIONS || options->range == TIMELINE_TIME;
    if (part || count > 1)
        return diag_error(diag, STATUS_USAGE, "a witness is drawn as a whole, %s",
                          part ? "not from here to there" : "not beside another run");
    return STATUS_OK;
}

const char *timeline_title(const struct timeline_options *options, const struct trace *traces,
                           size_t at)
{
    return options->titles ? options->titles[at] : traces[at].info.plan_name;
}

static enum status draw_runs(struct timeline_picture *picture, const struct trace *traces,
                             const struct timeline_options *options,
                             const struct draw_target *target, struct diag *diag)
{
    double scale = target->look.scale > 0 ? target->look.scale : 1;
    picture->width_pt = (options->width_pt > 0 ? options->width_pt : DEFAULT_WIDTH) / scale;
    picture->views = ARENA_ARRAY(&picture->arena, picture->count, struct view);
    if (!picture->views)
        return diag_no_memory(diag);
    colors_init(&picture->key.colors, &picture->arena);
    picture->key.arena = &picture->arena;
    picture->key.grey = target->look.grey;
    for (size_t i = 0; i < picture->count; i++)
        picture->views[i] = (struct view){.trace = &traces[i],
                                          .options = options,
                                          .key = &picture->key,
                                          .arena = &picture->arena,
                                          .title = timeline_title(options, traces, i),
                                          .from_zero = picture->count > 1};
    enum status status = timeline_measure(picture, diag);
    return status == STATUS_OK ? draw_picture(target, timeline_draw_all, picture, diag) : status;
}

enum status timeline_render(const struct trace *traces, size_t count,
                            const struct timeline_options *options,
                            const struct draw_target *target, struct diag *diag)
{
    struct timeline_picture picture = {.count = count};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count; i++)
        if (traces[i].info.kind == RUN_WITNESS) {
            status = refuse_witness(options, count, diag);
            return status == STATUS_OK
                       ? storyboard_render(traces, timeline_title(options, traces, 0), target, diag)
                       : status;
        }
    arena_init(&picture.arena, 0);
    status = draw_runs(&picture, traces, options, target, diag);
    arena_fini(&picture.arena);
    return status;
}
