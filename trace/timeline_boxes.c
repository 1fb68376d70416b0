/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline_boxes.c - see timeline_view.h: the spans of the lanes.
 *
 * A span that is wide enough has a box. Those behind one another that are not become a block: of its height each
 * name has its share of the time, from the bottom up, with waits above and what nobody used left free. A block is as
 * high as it would be if the lane were drawn a thousand times wider and shrunk.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert_index.h"
#include "base/sort.h"
#include "base/units.h"

#include "timeline_view.h"

/* Points: narrower spans are merged; a block is about so wide; and gaps beyond this part two blocks. */
static const double narrow_pt = 2, block_pt = 5, gap_pt = 1.5;

/* Bands of a block: names in the order of the legend, then all others, then waits by their look. */
enum { NAMED = 12, OTHERS = NAMED, WAITS, BANDS = WAITS + WAIT_LOOKS };

static const char text_dark[] = "#222222", wait_text[] = "#a8453b", other_fill[] = "#cccccc";

/* ---- labels ---------------------------------------------------------------------------------- */

/* A label that may be used in a font of that size or smaller. */
static bool timeline_boxes_fit(const char *text, double width_pt, double largest_pt,
                               double smallest_pt, double *out_font_pt)
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
static const char *timeline_boxes_work_label(const struct view *view, const struct trace_span *span,
                                             double width_pt, double height_pt, double *out_font_pt)
{
    double largest_pt = fmin(9, height_pt - 5), smallest_pt = fmax(largest_pt - 1, 4);
    int task = view_task(view, span);
    struct task_note *note = task >= 0 ? &view->key->notes[task] : NULL;
    const char *names[] = {span->task, note ? note->short_name : NULL, ""};
    if (width_pt < 6)
        return NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *label = names[i];
        if (label && span->iteration >= 0)
            label = arena_printf(view->arena, "%s%s%" PRId64, label, *label ? " " : "",
                                 span->iteration);
        if (!label ||
            !timeline_boxes_fit(label, width_pt, largest_pt, smallest_pt - (i == 2), out_font_pt))
            continue;
        if (i == 1)
            note->short_used = true;
        return label;
    }
    return NULL;
}

/* A time in full, in the unit of its size: "3.4525 ms". */
static const char *exact_time(const struct view *view, int64_t ns)
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
    return arena_printf(view->arena, "%s %s", number, units[i].name);
}

/* "rank 0 stream default; 1 ms to 2 ms, 1 ms" */
static const char *place_and_time(const struct view *view, int agent, int64_t start_ns,
                                  int64_t end_ns)
{
    ASSERT_INDEX(agent, view->trace->agent_count);
    const struct trace_agent *it = &view->trace->agents[agent];
    return arena_printf(view->arena, "rank %d %s %s; %s to %s, %s", it->rank,
                        trace_agent_kind_text(it->kind), it->name, exact_time(view, start_ns),
                        exact_time(view, end_ns), exact_time(view, end_ns - start_ns));
}

static const char *timeline_boxes_tooltip(const struct view *view, const struct trace_span *span)
{
    struct arena *arena = view->arena;
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
    return arena_printf(arena, "%s; %s", what,
                        place_and_time(view, span->agent, span->start_ns, span->end_ns));
}

/* ---- one span -------------------------------------------------------------------------------- */

static struct draw_box box_of(const struct view *view, const struct trace_span *span)
{
    const struct lanes_lane *lane = lanes_of(&view->lanes, span->agent);
    double left = view_x(view, span->start_ns);
    return (struct draw_box){.x_pt = left,
                             .y_pt = lane->y_pt,
                             .width_pt = view_x(view, span->end_ns) - left,
                             .height_pt = lane->height_pt,
                             .tooltip = timeline_boxes_tooltip(view, span)};
}

static void draw_work(struct view *view, size_t index)
{
    ASSERT_INDEX(index, view->trace->span_count);
    const struct trace_span *span = &view->trace->spans[index];
    struct draw_box box = box_of(view, span);
    int task = view_task(view, span);
    int color = task >= 0 ? view->key->colors.items[task].color : 0;
    box.fill = task >= 0 ? draw_fill(color) : other_fill;
    box.border = box.width_pt >= 3 ? (task >= 0 ? draw_border(color) : "#888888") : NULL;
    box.text_color = text_dark;
    box.label = timeline_boxes_work_label(view, span, box.width_pt, box.height_pt, &box.font_pt);
    view->nodes[index] = draw_box(view->drawing, &box);
}

/* The label is where no work stands in front of the wait: from `clear_ns` to `taken_ns`. */
static void draw_wait(struct view *view, size_t index, int64_t clear_ns, int64_t taken_ns)
{
    ASSERT_INDEX(index, view->trace->span_count);
    const struct trace_span *span = &view->trace->spans[index];
    struct draw_box box = box_of(view, span), part = box;
    box.fill = timeline_waits[timeline_look(view->trace, span)].fill;
    part.x_pt = view_x(view, clear_ns);
    part.width_pt = view_x(view, taken_ns) - part.x_pt;
    part.text_color = wait_text;
    if (timeline_boxes_fit(span->cause, part.width_pt, fmin(7, box.height_pt - 3), 5,
                           &part.font_pt))
        part.label = span->cause;
    bool whole = part.width_pt + 1 >= box.width_pt;
    if (whole) {
        box.label = part.label;
        box.text_color = part.text_color;
        box.font_pt = part.font_pt;
    }
    view->nodes[index] = draw_box(view->drawing, &box);
    if (part.label && !whole)
        draw_box(view->drawing, &part);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Narrow spans behind one another: the time of each name and kind of wait in them. */
struct timeline_boxes_block {
    int agent;
    int64_t start_ns, end_ns, spans;
    int names[NAMED]; /* of the colours; -1: free */
    int64_t busy_ns[BANDS];
};

static bool timeline_boxes_is_narrow(const struct view *view, const struct trace_span *span)
{
    return view_x(view, span->end_ns) - view_x(view, span->start_ns) < narrow_pt;
}

static void timeline_boxes_open_block(struct timeline_boxes_block *block, int agent,
                                      int64_t start_ns)
{
    *block =
        (struct timeline_boxes_block){.agent = agent, .start_ns = start_ns, .end_ns = start_ns};
    for (int i = 0; i < NAMED; i++)
        block->names[i] = -1;
}

static int band_of(struct timeline_boxes_block *block, int name)
{
    for (int i = 0; i < NAMED && name >= 0; i++)
        if (block->names[i] == name || block->names[i] < 0) {
            block->names[i] = name;
            return i;
        }
    return OTHERS;
}

/* A band's share of the height; one that is narrower than a point takes its share of that point. */
static double timeline_boxes_share_of(const struct view *view,
                                      const struct timeline_boxes_block *block, int band)
{
    double point_ns = (double)view->range_ns / (view->right_pt - view->left_pt), all_ns = 0;
    for (int b = 0; b < BANDS; b++)
        all_ns += (double)block->busy_ns[b];
    all_ns = fmax(all_ns, fmax((double)(block->end_ns - block->start_ns), point_ns));
    return (double)block->busy_ns[band] / all_ns;
}

/* The band of a name that may be without one in the block, 0: such a name. */
static double share_of_name(const struct view *view, const struct timeline_boxes_block *block,
                            int name)
{
    for (int band = 0; band < NAMED; band++)
        if (block->names[band] == name)
            return timeline_boxes_share_of(view, block, band);
    return 0;
}

/* As far as can be seen: every band is as high as before. */
static bool timeline_boxes_go_on(const struct view *view, const struct timeline_boxes_block *a,
                                 const struct timeline_boxes_block *b)
{
    static const double seen = 0.1;
    if (a->agent != b->agent || view_x(view, b->start_ns) - view_x(view, a->end_ns) > gap_pt)
        return false;
    for (int band = 0; band < BANDS; band++) {
        double before = timeline_boxes_share_of(view, a, band),
               now = timeline_boxes_share_of(view, b, band);
        if (band < NAMED && a->names[band] >= 0 &&
            fabs(before - share_of_name(view, b, a->names[band])) > seen)
            return false;
        if (band < NAMED && b->names[band] >= 0 &&
            fabs(now - share_of_name(view, a, b->names[band])) > seen)
            return false;
        if (band >= NAMED && fabs(before - now) > seen)
            return false;
    }
    return true;
}

static const char *band_word(const struct view *view, const struct timeline_boxes_block *block,
                             int band)
{
    return band >= WAITS    ? timeline_waits[band - WAITS].words
           : band == OTHERS ? "other work"
                            : view->key->colors.items[block->names[band]].name;
}

static const char *band_fill(const struct view *view, const struct timeline_boxes_block *block,
                             int band)
{
    return band >= WAITS    ? timeline_waits[band - WAITS].fill
           : band == OTHERS ? other_fill
                            : draw_fill(view->key->colors.items[block->names[band]].color);
}

/* Names in the order of the legend, so that neighbours look alike. */
static void sort_bands(struct timeline_boxes_block *block)
{
    for (int i = 1; i < NAMED; i++)
        for (int k = i; k > 0 && block->names[k] >= 0 && block->names[k] < block->names[k - 1];
             k--) {
            int name = block->names[k];
            int64_t busy_ns = block->busy_ns[k];
            block->names[k] = block->names[k - 1];
            block->busy_ns[k] = block->busy_ns[k - 1];
            block->names[k - 1] = name;
            block->busy_ns[k - 1] = busy_ns;
        }
}

/* From the bottom of the lane upwards. */
static void timeline_boxes_draw_block(const struct view *view, struct timeline_boxes_block *block)
{
    sort_bands(block);
    const struct lanes_lane *lane = lanes_of(&view->lanes, block->agent);
    double x = view_x(view, block->start_ns), base = lane->y_pt + lane->height_pt;
    double width = fmax(view_x(view, block->end_ns) - x, 1);
    /* "H2D 12%, Forward 40%; 31 works; rank 0 ..." */
    const char *text = "";
    for (int band = 0; band < BANDS; band++)
        if (block->busy_ns[band] > 0)
            text = arena_printf(view->arena, "%s%s%s %.3g%%", text ? text : "",
                                text && *text ? ", " : "", band_word(view, block, band),
                                100 * timeline_boxes_share_of(view, block, band));
    const char *words =
        arena_printf(view->arena, "%s; %" PRId64 " works merged; %s", text, block->spans,
                     place_and_time(view, block->agent, block->start_ns, block->end_ns));
    double share = 0;
    for (int band = 0; band < BANDS; band++) {
        double low = round(base - fmin(share, 1) * lane->height_pt);
        share += timeline_boxes_share_of(view, block, band);
        double high = round(base - fmin(share, 1) * lane->height_pt);
        if (low > high)
            draw_box(view->drawing, &(struct draw_box){.x_pt = x,
                                                       .y_pt = high,
                                                       .width_pt = width,
                                                       .height_pt = low - high,
                                                       .fill = band_fill(view, block, band),
                                                       .tooltip = words});
    }
}

/* ---- a lane ---------------------------------------------------------------------------------- */

static const struct trace_span *span_at(const struct view *view, size_t at)
{
    return &view->trace->spans[view->order[at]];
}

/* Narrow spans from `*at` on, until one is not, a gap comes or the block is wide enough. */
static void timeline_boxes_take_block(const struct view *view, int agent, size_t *at,
                                      struct timeline_boxes_block *out)
{
    timeline_boxes_open_block(out, agent, span_at(view, *at)->start_ns);
    double left = view_x(view, out->start_ns);
    for (; *at < view->first[agent + 1]; (*at)++) {
        const struct trace_span *span = span_at(view, *at);
        double x = view_x(view, span->start_ns);
        if (!view_has(view, span))
            continue;
        if (!timeline_boxes_is_narrow(view, span) || x - left >= block_pt ||
            x - fmax(view_x(view, out->end_ns), left + 1) > gap_pt)
            return;
        int band = span->kind == SPAN_WAIT ? WAITS + timeline_look(view->trace, span)
                                           : band_of(out, view_task(view, span));
        out->busy_ns[band] += span->end_ns - span->start_ns;
        out->end_ns = span->end_ns > out->end_ns ? span->end_ns : out->end_ns;
        out->spans += span->kind != SPAN_WAIT;
    }
}

static void draw_blocks(const struct view *view, int agent)
{
    struct timeline_boxes_block last;
    bool open = false;
    for (size_t at = view->first[agent]; at < view->first[agent + 1];) {
        struct timeline_boxes_block next;
        if (!view_has(view, span_at(view, at)) ||
            !timeline_boxes_is_narrow(view, span_at(view, at))) {
            at++;
            continue;
        }
        timeline_boxes_take_block(view, agent, &at, &next);
        if (open && timeline_boxes_go_on(view, &last, &next)) {
            for (int band = 0; band < BANDS; band++)
                last.busy_ns[band < NAMED ? band_of(&last, next.names[band]) : band] +=
                    next.busy_ns[band];
            last.end_ns = next.end_ns;
            last.spans += next.spans;
            continue;
        }
        if (open)
            timeline_boxes_draw_block(view, &last);
        last = next;
        open = true;
    }
    if (open)
        timeline_boxes_draw_block(view, &last);
}

static bool has_box(const struct view *view, const struct trace_span *span)
{
    return view_has(view, span) && !timeline_boxes_is_narrow(view, span);
}

static bool is_work_box(const struct view *view, const struct trace_span *span)
{
    return span->kind != SPAN_WAIT && has_box(view, span);
}

/* A measured wait may begin before the thread of the work in front of it has ended, or end behind the start of the next. */
static void draw_waits(struct view *view, int agent)
{
    size_t end = view->first[agent + 1], next = view->first[agent];
    int64_t busy_ns = INT64_MIN; /* the end of the works so far */
    for (size_t at = next; at < end; at++) {
        const struct trace_span *span = span_at(view, at);
        if (is_work_box(view, span) && span->end_ns > busy_ns)
            busy_ns = span->end_ns;
        if (span->kind != SPAN_WAIT || !has_box(view, span))
            continue;
        for (next = next > at ? next : at + 1; next < end; next++)
            if (is_work_box(view, span_at(view, next)))
                break;
        int64_t taken_ns = next < end ? span_at(view, next)->start_ns : span->end_ns;
        draw_wait(view, (size_t)view->order[at],
                  busy_ns > span->start_ns ? busy_ns : span->start_ns,
                  taken_ns < span->end_ns ? taken_ns : span->end_ns);
    }
}

void timeline_boxes(struct view *view)
{
    for (size_t i = 0; i < view->lanes.count; i++) {
        /* Waits first: work stands in front of them. */
        int agent = view->lanes.items[i].agent;
        draw_waits(view, agent);
        for (size_t at = view->first[agent]; at < view->first[agent + 1]; at++)
            if (is_work_box(view, span_at(view, at)))
                draw_work(view, (size_t)view->order[at]);
        draw_blocks(view, agent);
    }
}

void timeline_note(struct view *view)
{
    struct timeline_key *key = view->key;
    for (size_t i = 0; i < view->trace->span_count; i++) {
        const struct trace_span *span = &view->trace->spans[i];
        int index = view->lanes.of_agent[span->agent];
        double font_pt;
        if (index < 0 || !view_has(view, span))
            continue;
        if (span->kind == SPAN_WAIT) {
            key->waits[timeline_look(view->trace, span)] = true;
            continue;
        }
        double width_pt = view_x(view, span->end_ns) - view_x(view, span->start_ns);
        int task = view_task(view, span);
        if (task >= 0) {
            key->notes[task].widest_pt = fmax(key->notes[task].widest_pt, fmax(width_pt, 0.01));
            key->notes[task].sum_pt += width_pt;
        }
        key->merged |= timeline_boxes_is_narrow(view, span);
        (void)timeline_boxes_work_label(view, span, width_pt, view->lanes.items[index].height_pt,
                                        &font_pt);
    }
}

/* ---- narrow spans ---------------------------------------------------------------------------- */

/* Spans in order, and ranks that look alike. */

/* ---- order ----------------------------------------------------------------------------------- */

static int compare_spans(const void *left, const void *right, void *context)
{
    const struct trace_span *spans = context, *a = &spans[*(const int *)left],
                            *b = &spans[*(const int *)right];
    return compare_then(compare_i64(a->start_ns, b->start_ns), compare_i64(a->end_ns, b->end_ns));
}

bool timeline_order(struct view *view)
{
    const struct trace *trace = view->trace;
    size_t *next = ARENA_ARRAY(view->arena, trace->agent_count + 1, size_t);
    view->first = ARENA_ARRAY(view->arena, trace->agent_count + 2, size_t);
    view->order = ARENA_ARRAY(view->arena, trace->span_count + 1, int);
    if (!next || !view->first || !view->order)
        return false;
    for (size_t i = 0; i < trace->span_count; i++)
        view->first[trace->spans[i].agent + 1]++;
    for (size_t a = 0; a < trace->agent_count; a++) {
        view->first[a + 1] += view->first[a];
        next[a] = view->first[a];
    }
    for (size_t i = 0; i < trace->span_count; i++)
        view->order[next[trace->spans[i].agent]++] = (int)i;
    for (size_t a = 0; a < trace->agent_count; a++)
        if (view->first[a + 1] > view->first[a])
            qsort_r(view->order + view->first[a], view->first[a + 1] - view->first[a],
                    sizeof *view->order, compare_spans, trace->spans);
    return true;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

static bool timeline_boxes_is_shown(const struct view *view, size_t agent)
{
    return view->lanes.of_agent[agent] == 0;
}

/* The next work of an agent in the window; NULL: no more. */
static const struct trace_span *next_work(const struct view *view, size_t agent, size_t *at)
{
    while (*at < view->first[agent + 1]) {
        const struct trace_span *span = &view->trace->spans[view->order[(*at)++]];
        if (span->kind != SPAN_WAIT && view_has(view, span))
            return span;
    }
    return NULL;
}

/* To the eye: ends less than a point apart are the same. */
static bool timeline_boxes_are_alike(const struct view *view, const struct trace_span *a,
                                     const struct trace_span *b)
{
    return a->task == b->task && a->iteration == b->iteration &&
           fabs(view_x(view, a->start_ns) - view_x(view, b->start_ns)) < 1 &&
           fabs(view_x(view, a->end_ns) - view_x(view, b->end_ns)) < 1;
}

static bool do_the_same(const struct view *view, size_t a, size_t b)
{
    ASSERT_INDEX(a, view->trace->agent_count);
    ASSERT_INDEX(b, view->trace->agent_count);
    const struct trace_agent *left = &view->trace->agents[a], *right = &view->trace->agents[b];
    size_t at = view->first[a], bt = view->first[b];
    if (left->kind != right->kind || strcmp(left->name, right->name) != 0)
        return false;
    for (;;) {
        const struct trace_span *x = next_work(view, a, &at), *y = next_work(view, b, &bt);
        if (!x || !y)
            return !x && !y;
        if (!timeline_boxes_are_alike(view, x, y))
            return false;
    }
}

/* The shown agents of each rank, in the order of the trace. */
struct timeline_boxes_members {
    size_t *agents, *first; /* first: per rank, and one behind the last */
};

static bool find_members(const struct view *view, struct timeline_boxes_members *out)
{
    size_t ranks = (size_t)view->rank_count, count = view->trace->agent_count;
    size_t *next = ARENA_ARRAY(view->arena, ranks + 1, size_t);
    out->agents = ARENA_ARRAY(view->arena, count + 1, size_t);
    out->first = ARENA_ARRAY(view->arena, ranks + 2, size_t);
    if (!next || !out->agents || !out->first)
        return false;
    for (size_t a = 0; a < count; a++)
        out->first[view->trace->agents[a].rank + 1] += timeline_boxes_is_shown(view, a);
    for (size_t r = 0; r < ranks; r++) {
        out->first[r + 1] += out->first[r];
        next[r] = out->first[r];
    }
    for (size_t a = 0; a < count; a++)
        if (timeline_boxes_is_shown(view, a))
            out->agents[next[view->trace->agents[a].rank]++] = a;
    return true;
}

static bool timeline_boxes_ranks_are_alike(const struct view *view,
                                           const struct timeline_boxes_members *members, int a,
                                           int b)
{
    size_t count = members->first[a + 1] - members->first[a];
    if (count == 0 || count != members->first[b + 1] - members->first[b])
        return false;
    for (size_t i = 0; i < count; i++)
        if (!do_the_same(view, members->agents[members->first[a] + i],
                         members->agents[members->first[b] + i]))
            return false;
    return true;
}

/* Each rank is held against the first of every group so far. */
bool timeline_fold(struct view *view)
{
    enum { MOST_GROUPS = 32 }; /* more would not be a picture anyway */
    struct timeline_boxes_members members;
    int groups[MOST_GROUPS], count = 0;
    view->like = ARENA_ARRAY(view->arena, (size_t)view->rank_count + 1, int);
    if (!view->like || !find_members(view, &members))
        return false;
    for (int rank = 0; rank < view->rank_count; rank++) {
        int g = 0;
        while (g < count && !timeline_boxes_ranks_are_alike(view, &members, groups[g], rank))
            g++;
        view->like[rank] = g < count ? groups[g] : rank;
        if (g == count && count < MOST_GROUPS)
            groups[count++] = rank;
    }
    return true;
}

const char *timeline_group_name(const struct view *view, int group)
{
    const char *text = NULL;
    int last = -1;
    for (int rank = group; rank < view->rank_count; rank++) {
        int end = rank;
        if (view->like[rank] != group)
            continue;
        while (end + 1 < view->rank_count && view->like[end + 1] == group)
            end++;
        last = end;
        text = end > rank
                   ? arena_printf(view->arena, "%s%s%d-%d", text ? text : "", text ? ", " : "",
                                  rank, end)
                   : arena_printf(view->arena, "%s%s%d", text ? text : "", text ? ", " : "", rank);
        rank = end;
    }
    return last > group ? arena_printf(view->arena, "ranks %s alike:", text) : NULL;
}

/* ---- colours and legend ---------------------------------------------------------------------- */

/* Names, and the legend. */

/* Sizes in points. */
enum {
    ROW = 17,
    FONT = 9,
    SWATCH = 10,
    MANY_TASKS = 24, /* then the legend leaves out those whose boxes are narrower than this, */
    LEAST_SEEN = 2,
    LEAST_SHARE = 100 /* and that are less than this part of the width together */
};

const struct wait_look timeline_waits[WAIT_LOOKS] = {
    {"dependence", "#fde8c0", "waiting for other work"},
    {"host", "#fbdcd8", "waiting for the host"},
    {"peer", "#e3d9f0", "waiting for other ranks"},
    {"resource", "#d8ecdd", "waiting for a resource"},
    {"unexplained", "#f0a8a0", "idle without a known cause"},
    {"", "#e6e9f4", "waiting"},
    {"", "#fdefed", "a thread waits"},
};

int timeline_look(const struct trace *trace, const struct trace_span *span)
{
    const struct trace_idle *line = trace_find_idle(trace, span->agent, span->cause);
    int look = 0;
    if (trace->agents[span->agent].kind != TRACE_STREAM)
        return THREAD_WAIT;
    while (look < OTHER_WAIT && (!line || strcmp(line->cause, timeline_waits[look].cause) != 0))
        look++;
    return look;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* "InputDistWait" is IDW, "all_to_all" is ata; NULL where that is too short. */
static const char *timeline_boxes_shorten(struct arena *arena, const char *name)
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

bool timeline_names(struct timeline_key *key, const struct trace *trace)
{
    size_t before = key->colors.count;
    const struct task_note *old = key->notes;
    if (!colors_add_run(&key->colors, trace))
        return false;
    key->notes = ARENA_ARRAY(key->arena, key->colors.count + 1, struct task_note);
    for (size_t i = 0; key->notes && i < key->colors.count; i++)
        key->notes[i] = i < before ? old[i]
                                   : (struct task_note){.short_name = timeline_boxes_shorten(
                                                            key->arena, key->colors.items[i].name)};
    return !key->arena->failed;
}

/* ---- the legend ------------------------------------------------------------------------------ */

/* An entry: a swatch and its words; a new row where it does not fit. */
struct legend {
    const struct view *view;
    double x_pt, y_pt;
};

static void lay_entry(struct legend *legend, const char *text, const char *fill, const char *border)
{
    const struct view *view = legend->view;
    const double width = SWATCH + 5 + draw_text_width(text ? text : "", FONT) + 14;
    if (legend->x_pt + width > view->right_pt && legend->x_pt > view->left_pt) {
        legend->x_pt = view->left_pt;
        legend->y_pt += ROW;
    }
    if (view->drawing) {
        draw_box(view->drawing, &(struct draw_box){.x_pt = legend->x_pt,
                                                   .y_pt = legend->y_pt + (ROW - SWATCH) / 2.0,
                                                   .width_pt = SWATCH,
                                                   .height_pt = SWATCH,
                                                   .fill = fill,
                                                   .border = border});
        draw_line(view->drawing, legend->x_pt + SWATCH + 5, legend->y_pt + ROW / 2.0, text,
                  "#222222", FONT);
    }
    legend->x_pt += width;
}

static void lay_waits(struct legend *legend, const struct timeline_key *key)
{
    for (int i = 0; i < WAIT_LOOKS; i++) {
        if (!key->waits[i])
            continue;
        lay_entry(legend, key->grey ? "waiting" : timeline_waits[i].words, timeline_waits[i].fill,
                  NULL);
        if (key->grey)
            return;
    }
}

double timeline_legend(const struct view *view, double y)
{
    const struct timeline_key *key = view->key;
    struct legend legend = {view, view->left_pt, y};
    size_t unseen = 0, shown = 0;
    for (size_t i = 0; i < key->colors.count; i++)
        shown += key->notes[i].widest_pt > 0;
    lay_waits(&legend, key);
    for (size_t i = 0; i < key->colors.count; i++) {
        const struct named_color *task = &key->colors.items[i];
        const struct task_note *note = &key->notes[i];
        const char *text = task->name;
        if (note->widest_pt <= 0)
            continue;
        if (shown > MANY_TASKS && note->widest_pt < LEAST_SEEN &&
            note->sum_pt * LEAST_SHARE < view->right_pt - view->left_pt) {
            unseen++;
            continue;
        }
        if (note->short_used)
            text = arena_printf(view->arena, "%s (%s)", task->name, note->short_name);
        lay_entry(&legend, text, draw_fill(task->color), draw_border(task->color));
    }
    if (unseen)
        lay_entry(&legend, arena_printf(view->arena, "and %zu more, too short to be seen", unseen),
                  "#ffffff", NULL);
    if (key->merged)
        lay_entry(&legend, "narrow work is merged: heights are shares of the time", "#ffffff",
                  "#9c9c9c");
    return legend.y_pt + ROW - y;
}
