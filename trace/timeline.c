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

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/units.h"
#include "draw.h"
#include "lanes.h"
#include "ledger.h"
#include "storyboard.h"

/* Sizes in points. */
enum {
    DEFAULT_WIDTH = 1200,
    MARGIN = 18,
    TITLE_FONT = 15,
    SUBTITLE_FONT = 9,
    TITLE_HEIGHT = 38,
    AXIS_HEIGHT = 22,
    AXIS_FONT = 8,
    TICK_SPACING = 90, /* at least so far apart */
    LEGEND_GAP = 16,
    LEGEND_ROW = 17,
    LEGEND_FONT = 9,
    SWATCH = 10,
    MANY_TASKS = 24, /* then the legend leaves out those whose boxes are narrower than this: */
    LEAST_SEEN = 2
};

static const char text_dark[] = "#222222", text_grey[] = "#777777", grid_color[] = "#e4e4e4",
                  wait_text[] = "#a8453b", tight_color[] = "#333333cc", loose_color[] = "#33333344";

/* A cause of the ledger, and the look of idle time of that cause; then of any other cause, and of a thread. */
static const struct wait_look {
    const char *cause, *fill, *words;
} wait_looks[] = {
    {"dependence", "#fde8c0", "waiting for other work"},
    {"host", "#fbdcd8", "waiting for the host"},
    {"peer", "#e3d9f0", "waiting for other ranks"},
    {"resource", "#d8ecdd", "waiting for a resource"},
    {"unexplained", "#f0a8a0", "idle without a known cause"},
    {"", "#e6e9f4", "waiting"},
    {"", "#fdefed", "a thread waits"},
};
enum {
    WAIT_LOOKS = sizeof wait_looks / sizeof *wait_looks,
    OTHER_WAIT = WAIT_LOOKS - 2,
    THREAD_WAIT
};

/* A task in the order of first start, which is also its colour. */
struct task_entry {
    const char *name;       /* interned by the trace: compared by pointer */
    const char *short_name; /* NULL: none */
    int64_t start_ns;
    bool short_used;  /* on a box: the legend explains it */
    double widest_pt; /* of its boxes in the window */
};

struct view {
    const struct trace *trace;
    const struct timeline_options *options;
    struct arena arena; /* of this picture */
    struct drawing *drawing;
    int64_t start_ns, end_ns;
    struct lanes lanes;
    struct task_entry *tasks;
    size_t task_count, task_cap;
    bool waits[WAIT_LOOKS]; /* in the window */
    bool arrows_left_out;
    int64_t first_iteration, last_iteration; /* wanted; last -1: all */
    double width_pt, height_pt;
    double left_pt, right_pt; /* of the lanes */
    struct draw_node **nodes; /* of each span, NULL: not drawn */
};

static bool in_window(const struct view *view, const struct trace_span *span)
{
    return span->start_ns < view->end_ns && span->end_ns >= view->start_ns &&
           (span->end_ns > view->start_ns || span->start_ns == view->start_ns);
}

static double x_of(const struct view *view, int64_t time_ns)
{
    double part = (double)(time_ns - view->start_ns) / (double)(view->end_ns - view->start_ns);
    return view->left_pt + fmin(fmax(part, 0), 1) * (view->right_pt - view->left_pt);
}

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
        return diag_error(diag, STATUS_INPUT, "nothing to draw: the run has no spans");
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
        if (span->iteration < 0 || !asked || !in_window(view, span))
            continue;
        first = span->iteration < first ? span->iteration : first;
        last = span->iteration > last ? span->iteration : last;
    }
    *out_first = first;
    *out_last = last;
    return last >= 0;
}

/* ---- tasks ----------------------------------------------------------------------------------- */

/* "InputDistWait" is IDW, "all_to_all" is ata; NULL where that is too short. */
static const char *shorten(struct arena *arena, const char *name)
{
    char initials[8];
    size_t count = 0;
    bool starts_word = true;
    for (const char *c = name; *c; c++) {
        bool upper = *c >= 'A' && *c <= 'Z', lower = *c >= 'a' && *c <= 'z';
        bool digit = *c >= '0' && *c <= '9';
        if (upper || digit || (starts_word && lower)) {
            if (count + 1 >= sizeof initials)
                return NULL;
            initials[count++] = *c;
        }
        starts_word = !upper && !lower && !digit;
    }
    initials[count] = '\0';
    return count >= 2 && count + 2 <= strlen(name) ? arena_strdup(arena, initials) : NULL;
}

static int find_task(const struct view *view, const char *name)
{
    for (size_t i = 0; i < view->task_count; i++)
        if (view->tasks[i].name == name)
            return (int)i;
    return -1;
}

static int compare_tasks(const void *left, const void *right)
{
    const struct task_entry *a = left, *b = right;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* All tasks of the run, so that colours do not depend on the window. */
static bool collect_tasks(struct view *view)
{
    for (size_t i = 0; i < view->trace->span_count; i++) {
        const struct trace_span *span = &view->trace->spans[i];
        if (!span->task || span->kind == SPAN_WAIT)
            continue;
        int found = find_task(view, span->task);
        if (found >= 0) {
            struct task_entry *task = &view->tasks[found];
            task->start_ns = span->start_ns < task->start_ns ? span->start_ns : task->start_ns;
            continue;
        }
        void *tasks = view->tasks;
        if (!arena_grow(&view->arena, &tasks, view->task_count, &view->task_cap,
                        sizeof *view->tasks))
            return false;
        view->tasks = tasks;
        view->tasks[view->task_count++] = (struct task_entry){
            span->task, shorten(&view->arena, span->task), span->start_ns, false, 0};
    }
    if (view->task_count)
        qsort(view->tasks, view->task_count, sizeof *view->tasks, compare_tasks);
    return !view->arena.failed;
}

/* ---- lanes ----------------------------------------------------------------------------------- */

static const struct lanes_style style = {
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

/* The look of a wait: an index of wait_looks. */
static int look_of(const struct view *view, const struct trace_span *span)
{
    const struct trace_idle *line = trace_find_idle(view->trace, span->agent, span->cause);
    int look = 0;
    if (view->trace->agents[span->agent].kind != TRACE_STREAM)
        return THREAD_WAIT;
    while (look < OTHER_WAIT && (!line || strcmp(line->cause, wait_looks[look].cause) != 0))
        look++;
    return look;
}

static bool choose_lanes(struct view *view)
{
    const struct trace *trace = view->trace;
    view->nodes = ARENA_ARRAY(&view->arena, trace->span_count, struct draw_node *);
    if (!lanes_open(&view->lanes, trace, &style, &view->arena) || !view->nodes)
        return false;
    for (size_t i = 0; i < trace->agent_count; i++) {
        const struct trace_agent *agent = &trace->agents[i];
        bool shown = agent->kind == TRACE_STREAM || !view->options->hide_threads;
        if (shown && (!view->options->one_rank || agent->rank == view->options->rank))
            lanes_add(&view->lanes, (int)i);
    }
    return true;
}

static void place_lanes(struct view *view)
{
    lanes_place(&view->lanes, MARGIN + TITLE_HEIGHT + AXIS_HEIGHT);
    view->left_pt = MARGIN + fmin(view->lanes.gutter_pt, view->width_pt / 4) + style.name_gap_pt;
    view->right_pt = view->width_pt - MARGIN;
}

/* ---- title and axis -------------------------------------------------------------------------- */

/* Add `text` to the subtitle. */
static void add_fact(struct view *view, const char **subtitle, const char *text)
{
    if (text && *text)
        *subtitle = arena_printf(&view->arena, "%s%s%s", *subtitle ? *subtitle : "",
                                 *subtitle && **subtitle ? "  \u00b7  " : "", text);
}

/* "iterations 0 to 5 of 40" */
static const char *iterations_text(struct view *view)
{
    int64_t first, last, all = view->trace->info.iterations_wanted;
    if (!shown_iterations(view, &first, &last))
        return NULL;
    if (all > last + 1)
        return arena_printf(&view->arena, "iterations %" PRId64 " to %" PRId64 " of %" PRId64,
                            first, last, all);
    return arena_printf(&view->arena, "iterations %" PRId64 " to %" PRId64, first, last);
}

static const char *subtitle_text(struct view *view)
{
    const struct run_info *info = &view->trace->info;
    struct arena *arena = &view->arena;
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

static void draw_title(struct view *view)
{
    const char *name = view->options->title ? view->options->title : view->trace->info.plan_name;
    draw_text(view->drawing, &(struct draw_text){.x_pt = MARGIN,
                                                 .y_pt = MARGIN + TITLE_FONT / 2.0,
                                                 .text = name,
                                                 .color = text_dark,
                                                 .font_pt = TITLE_FONT,
                                                 .bold = true});
    draw_line(view->drawing, MARGIN, MARGIN + TITLE_FONT + 12, subtitle_text(view), text_grey,
              SUBTITLE_FONT);
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
    while (i < 3 && (double)view->end_ns < units[i].ns)
        i++;
    *out_ns = units[i].ns;
    return units[i].name;
}

static void draw_axis(struct view *view)
{
    double unit_ns, width_pt = view->right_pt - view->left_pt;
    const char *unit = tick_unit(view, &unit_ns);
    int64_t range_ns = view->end_ns - view->start_ns;
    int64_t step_ns = round_step((double)range_ns * TICK_SPACING / width_pt);
    int decimals = 0;
    for (double step = (double)step_ns / unit_ns; step < 0.999 && decimals < 9; step *= 10)
        decimals++;
    int64_t tick_ns = (view->start_ns + step_ns - 1) / step_ns * step_ns;
    for (; tick_ns <= view->end_ns; tick_ns += step_ns) {
        double x = x_of(view, tick_ns);
        const char *text =
            arena_printf(&view->arena, "%.*f %s", decimals, (double)tick_ns / unit_ns, unit);
        draw_box(view->drawing,
                 &(struct draw_box){.x_pt = x,
                                    .y_pt = view->lanes.top_pt,
                                    .width_pt = 1,
                                    .height_pt = view->lanes.bottom_pt - view->lanes.top_pt,
                                    .fill = grid_color});
        double half_pt = text ? draw_text_width(text, AXIS_FONT) / 2 : 0;
        bool fits = x + half_pt < view->width_pt - MARGIN / 2.0;
        draw_text(view->drawing, &(struct draw_text){.x_pt = fits ? x : view->right_pt + 4,
                                                     .y_pt = view->lanes.top_pt - AXIS_FONT,
                                                     .align = fits ? DRAW_CENTER : DRAW_RIGHT,
                                                     .text = text ? text : "",
                                                     .color = text_grey,
                                                     .font_pt = AXIS_FONT});
    }
}

/* ---- spans ----------------------------------------------------------------------------------- */

/* A label that may be used in a font of that size or smaller. */
static bool fit(const char *text, double width_pt, double largest_pt, double smallest_pt,
                double *out_font_pt)
{
    for (double font_pt = largest_pt; text && font_pt >= smallest_pt; font_pt--) {
        if (draw_text_width(text, font_pt) + 3 <= width_pt) {
            *out_font_pt = font_pt;
            return true;
        }
    }
    return false;
}

/* "Forward 3", else "IDW 3", else "3", else NULL. Notes the use of a short name. */
static const char *work_label(struct view *view, const struct trace_span *span, double width_pt,
                              double height_pt, double *out_font_pt)
{
    double largest_pt = fmin(9, height_pt - 5), smallest_pt = largest_pt - 1;
    int task = span->task ? find_task(view, span->task) : -1;
    const char *names[] = {span->task, task >= 0 ? view->tasks[task].short_name : NULL, ""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *label = names[i];
        if (label && span->iteration >= 0)
            label = arena_printf(&view->arena, "%s%s%" PRId64, label, *label ? " " : "",
                                 span->iteration);
        if (!label || !fit(label, width_pt, largest_pt, smallest_pt - (i == 2), out_font_pt))
            continue;
        if (i == 1)
            view->tasks[task].short_used = true;
        return label;
    }
    return NULL;
}

/* A time in full, in the unit of its size: "3.4525 ms". */
static const char *exact_time(struct view *view, int64_t ns)
{
    static const struct {
        const char *name;
        int64_t ns;
        int decimals;
    } units[] = {{"s", 1000000000, 9}, {"ms", 1000000, 6}, {"us", 1000, 3}, {"ns", 1, 0}};
    size_t i = 0;
    while (i < 3 && llabs(ns) < units[i].ns)
        i++;
    char number[UNITS_TEXT];
    snprintf(number, sizeof number, "%.*f", units[i].decimals, (double)ns / (double)units[i].ns);
    for (size_t end = strlen(number); units[i].decimals && number[end - 1] == '0'; end--)
        number[end - 1] = '\0';
    if (number[strlen(number) - 1] == '.')
        number[strlen(number) - 1] = '\0';
    return arena_printf(&view->arena, "%s %s", number, units[i].name);
}

static const char *tooltip(struct view *view, const struct trace_span *span)
{
    const struct trace_agent *agent = &view->trace->agents[span->agent];
    struct arena *arena = &view->arena;
    const char *iteration =
        span->iteration >= 0 ? arena_printf(arena, " %" PRId64, span->iteration) : "";
    const char *doing =
        arena_printf(arena, "%s%s", span->task ? span->task : "", iteration ? iteration : "");
    const char *what = doing;
    if (span->kind == SPAN_WAIT)
        what = arena_printf(arena, "%s%swaits for %s", doing ? doing : "", span->task ? " " : "",
                            span->cause ? span->cause : "something unknown");
    else if (span->cause)
        what = arena_printf(arena, "%s, slowed %s", doing ? doing : "", span->cause);
    const char *where = arena_printf(arena, "rank %d %s %s", agent->rank,
                                     trace_agent_kind_text(agent->kind), agent->name);
    return arena_printf(arena, "%s; %s; %s to %s, %s", what, where,
                        exact_time(view, span->start_ns), exact_time(view, span->end_ns),
                        exact_time(view, span->end_ns - span->start_ns));
}

static void draw_work(struct view *view, const struct trace_span *span, struct draw_box *box)
{
    int task = span->task ? find_task(view, span->task) : -1;
    box->fill = task >= 0 ? draw_fill(task) : "#cccccc";
    box->border = box->width_pt >= 3 ? (task >= 0 ? draw_border(task) : "#888888") : NULL;
    box->text_color = text_dark;
    box->label = work_label(view, span, box->width_pt, box->height_pt, &box->font_pt);
}

static void draw_wait(struct view *view, const struct trace_span *span, struct draw_box *box)
{
    box->fill = wait_looks[look_of(view, span)].fill;
    box->text_color = wait_text;
    if (fit(span->cause, box->width_pt, 7, 6, &box->font_pt))
        box->label = span->cause;
}

static void draw_span(struct view *view, size_t index)
{
    const struct trace_span *span = &view->trace->spans[index];
    const struct lane *lane = lanes_of(&view->lanes, span->agent);
    double left = x_of(view, span->start_ns), right = x_of(view, span->end_ns);
    struct draw_box box = {
        .x_pt = left,
        .y_pt = lane->y_pt,
        .width_pt = right - left,
        .height_pt = lane->height_pt,
        .tooltip = tooltip(view, span),
    };
    if (span->kind == SPAN_WAIT)
        draw_wait(view, span, &box);
    else
        draw_work(view, span, &box);
    view->nodes[index] = draw_box(view->drawing, &box);
}

/* Waits first: work stands in front of them. */
static void draw_spans(struct view *view)
{
    for (int work = 0; work <= 1; work++) {
        for (size_t i = 0; i < view->trace->span_count; i++) {
            const struct trace_span *span = &view->trace->spans[i];
            if ((span->kind != SPAN_WAIT) == work && in_window(view, span) &&
                view->lanes.of_agent[span->agent] >= 0)
                draw_span(view, i);
        }
    }
}

/* ---- arrows ---------------------------------------------------------------------------------- */

/* Did the end of `from` let `to` start? As near as a point on the sheet. */
static bool is_tight(const struct view *view, const struct trace_edge *edge)
{
    const struct trace_span *from = &view->trace->spans[edge->from];
    const struct trace_span *to = &view->trace->spans[edge->to];
    return x_of(view, to->start_ns) - x_of(view, from->end_ns) <= 1;
}

/* Arrows within a lane would only repeat the order of the boxes. */
static bool is_drawn(const struct view *view, const struct trace_edge *edge)
{
    const struct trace_span *from = &view->trace->spans[edge->from];
    const struct trace_span *to = &view->trace->spans[edge->to];
    bool wanted = view->options->arrows != TIMELINE_ARROWS_NONE &&
                  (edge->kind == EDGE_DEPENDENCE || view->options->arrows == TIMELINE_ARROWS_ALL);
    return wanted && from->agent != to->agent && in_window(view, from) && in_window(view, to) &&
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
    const struct lane *source = lanes_of(&view->lanes, from->agent);
    const struct lane *target = lanes_of(&view->lanes, to->agent);
    double from_width = x_of(view, from->end_ns) - x_of(view, from->start_ns);
    double to_width = x_of(view, to->end_ns) - x_of(view, to->start_ns);
    bool down = source->y_pt < target->y_pt;
    draw_arrow(view->drawing,
               &(struct draw_arrow){.from = view->nodes[edge->from],
                                    .to = view->nodes[edge->to],
                                    .from_x_pt = x_of(view, from->end_ns) - fmin(3, from_width / 2),
                                    .from_y_pt = source->y_pt + (down ? source->height_pt : 0),
                                    .to_x_pt = x_of(view, to->start_ns) + fmin(3, to_width / 2),
                                    .to_y_pt = target->y_pt + (down ? 0 : target->height_pt),
                                    .color = is_tight(view, edge) ? tight_color : loose_color,
                                    .dashed = edge->kind == EDGE_LAUNCH});
}

static void draw_arrows(struct view *view)
{
    for (size_t i = 0; i < view->trace->edge_count && !view->arrows_left_out; i++)
        if (is_drawn(view, &view->trace->edges[i]))
            draw_edge_arrow(view, &view->trace->edges[i]);
}

/* ---- legend ---------------------------------------------------------------------------------- */

/* An entry of the legend: a swatch and its words; a new row where it does not fit. */
struct legend {
    struct view *view;
    double x_pt, y_pt;
};

static void lay_entry(struct legend *legend, const char *text, const char *fill, const char *border)
{
    struct view *view = legend->view;
    const double width = SWATCH + 5 + draw_text_width(text ? text : "", LEGEND_FONT) + 14;
    if (legend->x_pt + width > view->right_pt && legend->x_pt > view->left_pt) {
        legend->x_pt = view->left_pt;
        legend->y_pt += LEGEND_ROW;
    }
    if (view->drawing) {
        draw_box(view->drawing,
                 &(struct draw_box){.x_pt = legend->x_pt,
                                    .y_pt = legend->y_pt + (LEGEND_ROW - SWATCH) / 2.0,
                                    .width_pt = SWATCH,
                                    .height_pt = SWATCH,
                                    .fill = fill,
                                    .border = border});
        draw_line(view->drawing, legend->x_pt + SWATCH + 5, legend->y_pt + LEGEND_ROW / 2.0, text,
                  text_dark, LEGEND_FONT);
    }
    legend->x_pt += width;
}

/* Walks over the entries of the legend, drawing them when there is a drawing. Returns the height.
 */
static double lay_legend(struct view *view, double y)
{
    struct legend legend = {view, view->left_pt, y};
    size_t unseen = 0;
    for (int i = 0; i < WAIT_LOOKS; i++)
        if (view->waits[i])
            lay_entry(&legend, wait_looks[i].words, wait_looks[i].fill, NULL);
    for (size_t i = 0; i < view->task_count; i++) {
        const struct task_entry *task = &view->tasks[i];
        const char *text = task->name;
        if (view->task_count > MANY_TASKS && task->widest_pt < LEAST_SEEN) {
            unseen++;
            continue;
        }
        if (task->short_used)
            text = arena_printf(&view->arena, "%s (%s)", task->name, task->short_name);
        lay_entry(&legend, text, draw_fill((int)i), draw_border((int)i));
    }
    if (unseen)
        lay_entry(&legend, arena_printf(&view->arena, "and %zu more, too short to be seen", unseen),
                  "#ffffff", NULL);
    return legend.y_pt + LEGEND_ROW - y;
}

/* Find the entries of the legend: waits, short names on boxes and their widths; before the legend is measured. */
static void note_legend(struct view *view)
{
    for (size_t i = 0; i < view->trace->span_count; i++) {
        const struct trace_span *span = &view->trace->spans[i];
        int index = view->lanes.of_agent[span->agent];
        double font_pt;
        if (index < 0 || !in_window(view, span))
            continue;
        if (span->kind == SPAN_WAIT) {
            view->waits[look_of(view, span)] = true;
            continue;
        }
        double width_pt = x_of(view, span->end_ns) - x_of(view, span->start_ns);
        int task = span->task ? find_task(view, span->task) : -1;
        if (task >= 0)
            view->tasks[task].widest_pt = fmax(view->tasks[task].widest_pt, width_pt);
        (void)work_label(view, span, width_pt, view->lanes.items[index].height_pt, &font_pt);
    }
}

/* ---- all together ---------------------------------------------------------------------------- */

static enum status measure(struct view *view, struct diag *diag)
{
    enum status status = choose_window(view, diag);
    if (status != STATUS_OK)
        return status;
    view->width_pt = view->options->width_pt > 0 ? view->options->width_pt : DEFAULT_WIDTH;
    if (view->width_pt < TIMELINE_MIN_WIDTH_PT)
        return diag_error(diag, STATUS_USAGE, "a timeline is at least %d points wide",
                          TIMELINE_MIN_WIDTH_PT);
    if (!collect_tasks(view) || !choose_lanes(view))
        return diag_no_memory(diag);
    place_lanes(view);
    if (view->lanes.count == 0)
        return diag_error(diag, STATUS_INPUT, "nothing to draw: no rank or stream is left");
    count_arrows(view);
    note_legend(view);
    view->height_pt = view->lanes.bottom_pt + LEGEND_GAP + lay_legend(view, 0) + MARGIN;
    return STATUS_OK;
}

static enum status draw_all(void *context, const struct draw_target *target, char **data,
                            size_t *bytes, struct diag *diag)
{
    struct view *view = context;
    enum status status =
        draw_open_placed(target, view->width_pt, view->height_pt, &view->drawing, diag);
    if (status != STATUS_OK)
        return status;
    draw_title(view);
    lanes_draw(&view->lanes, view->drawing, view->left_pt, view->right_pt, 0);
    draw_axis(view);
    draw_spans(view);
    draw_arrows(view);
    lay_legend(view, view->lanes.bottom_pt + LEGEND_GAP);
    status =
        view->arena.failed ? diag_no_memory(diag) : draw_finish(view->drawing, data, bytes, diag);
    draw_close(view->drawing);
    return status;
}

enum status timeline_render(const struct trace *trace, const struct timeline_options *options,
                            const struct draw_target *target, struct diag *diag)
{
    struct view view = {.trace = trace, .options = options};
    bool part = options->range == TIMELINE_ITERATIONS || options->range == TIMELINE_TIME;
    if (trace->info.kind == RUN_WITNESS && part)
        return diag_error(diag, STATUS_USAGE,
                          "a witness is drawn as a whole, not from here to there");
    if (trace->info.kind == RUN_WITNESS)
        return storyboard_render(trace, options->title, target, diag);
    arena_init(&view.arena, 0);
    enum status status = measure(&view, diag);
    if (status == STATUS_OK)
        status = draw_picture(target, draw_all, &view, diag);
    arena_fini(&view.arena);
    return status;
}
