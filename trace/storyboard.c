/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storyboard.c - see storyboard.h.
 *
 *     +------------------------------------------------------------------+
 *     | title                                                            |
 *     | witness, driver, number of steps                                 |
 *     | the violation                                                    |
 *     |            step 1     2        3        4    blocked             |
 *     |  rank 0 streams                                                  |
 *     |     comm                    [grads          ][waits for ...] <.  |
 *     |  rank 0 threads                                                | |
 *     |    train  [pushes ]                          [waits for ...] --' |
 *     +------------------------------------------------------------------+
 *            left_pt ^                       blocked_pt ^      right_pt ^
 *
 * A long witness has columns of several steps and is broken into bands, one below the other, as a score is. A band has rows
 * for the agents that begin or end a piece of work in it; of agents of several ranks that do the same there the first
 * has a row, and of many that are blocked alike the first a box.
 *
 * Everything has its place before the sheet is opened: columns from the steps, rows from the agents of each band, the
 * room at the right from the number of arrows, each of which gets a lane of its own.
 */
#include "storyboard.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert_index.h"
#include "base/repeats.h"
#include "base/sort.h"
#include "base/table.h"

#include "colors.h"
#include "draw.h"
#include "lanes.h"
#include "trace.h"
#include "base/units.h"

/* ---- the columns ----------------------------------------------------------------------------- */

/*
 * The columns of a storyboard: a step each, or several steps of a long witness.
 *
 * A long witness is shortened in three ways, in this order, each only while it is still long: steps that come several
 * times in a row are one column, consecutive steps of one thread are one column, and the middle is left out. Accesses
 * of a race and the end of the witness always have columns of their own.
 */

enum {
    BAND_STEPS = 26, /* most columns in a row of the picture, */
    BAND_SLACK = 6   /* unless that leaves but a few for the last */
};

enum column_kind {
    COLUMN_STEP,
    COLUMN_REPEAT, /* `times` times more the `length` steps before it */
    COLUMN_RUN,    /* steps of one thread */
    COLUMN_LEFT_OUT
};

/* Steps first .. last. */
struct storyboard_column {
    enum column_kind kind;
    int64_t first, last;
    size_t length, times;
    int agent; /* of a run */
};

struct storyboard_own_columns {
    struct storyboard_column *items;
    int64_t *of_step; /* the column of each step */
    int64_t count;
};

enum {
    LONG = BAND_STEPS + BAND_SLACK, /* columns of a witness that is shortened if it has more */
    WHOLE_END = 10,                 /* steps at the end that are never folded, */
    LEAST_FOLDED = 6,               /* the fewest that a repeat leaves out, */
    LEAST_RUN = 4,                  /* and the fewest of a run */
    FIRST_SHOWN = BAND_STEPS,       /* columns in front of those that are left out, */
    LAST_SHOWN = 3 * BAND_STEPS     /* and behind them */
};

struct folding {
    const struct trace *trace;
    int64_t steps;
    uint64_t *keys; /* of each step; those that are to stay by themselves are like no other */
    bool *alone;
    int *thread_of; /* the agent of a step; -1: no thread's */
    struct storyboard_own_columns *out;
};

/* The words of a step; NULL: they were not loaded. */
static const struct trace_step *columns_step(const struct trace *trace, int64_t seq)
{
    if (seq >= 0 && (size_t)seq < trace->step_count && trace->steps[seq].seq == seq)
        return &trace->steps[seq]; /* the order of a store, and of the checker */
    return NULL;
}

/* ---- the steps ------------------------------------------------------------------------------- */

static void mark_races(struct folding *folding)
{
    const struct trace *trace = folding->trace;
    for (size_t i = 0; i < trace->edge_count; i++)
        for (int end = 0; trace->edges[i].kind == EDGE_RACE && end < 2; end++) {
            int64_t s = trace->spans[end ? trace->edges[i].to : trace->edges[i].from].start_ns;
            if (s < folding->steps)
                folding->alone[s] = true;
        }
}

static void find_threads(struct folding *folding)
{
    const struct trace *trace = folding->trace;
    for (int64_t s = 0; s < folding->steps; s++)
        folding->thread_of[s] = -1;
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct trace_span *span = &trace->spans[i];
        if (span->start_ns < folding->steps && span->kind != SPAN_WAIT &&
            trace->agents[span->agent].kind != TRACE_STREAM)
            folding->thread_of[span->start_ns] = span->agent;
    }
}

static bool read_steps(struct folding *folding, struct arena *arena)
{
    size_t count = (size_t)folding->steps + 1;
    folding->keys = ARENA_ARRAY(arena, count, uint64_t);
    folding->alone = ARENA_ARRAY(arena, count, bool);
    folding->thread_of = ARENA_ARRAY(arena, count, int);
    if (!folding->keys || !folding->alone || !folding->thread_of)
        return false;
    mark_races(folding);
    find_threads(folding);
    for (int64_t s = 0; s < folding->steps; s++) {
        const struct trace_step *step = columns_step(folding->trace, s);
        folding->keys[s] = step && !folding->alone[s]
                               ? repeats_key(step->op, repeats_key(step->agent, 1))
                               : (uint64_t)s + 2;
    }
    return true;
}

/* ---- the columns ----------------------------------------------------------------------------- */

static void add_column(struct storyboard_own_columns *out, struct storyboard_column column)
{
    out->items[out->count++] = column;
}

static void storyboard_add_steps(struct storyboard_own_columns *out, int64_t first, int64_t end)
{
    for (int64_t step = first; step < end; step++)
        add_column(out, (struct storyboard_column){.first = step, .last = step});
}

/* A stretch of steps that comes several times in a row is told once. */
static bool fold_repeats(struct folding *folding, struct arena *arena)
{
    size_t steps = (size_t)folding->steps;
    struct stretch *found = ARENA_ARRAY(arena, steps / 2 + 1, struct stretch);
    if (!found)
        return false;
    size_t count = folding->steps > LONG
                       ? repeats_find(folding->keys, steps - WHOLE_END, LEAST_FOLDED, found)
                       : 0;
    int64_t step = 0;
    for (size_t f = 0; f < count; f++) {
        int64_t once = (int64_t)(found[f].first + found[f].length);
        int64_t end = (int64_t)(found[f].first + found[f].times * found[f].length);
        storyboard_add_steps(folding->out, step, once);
        add_column(folding->out, (struct storyboard_column){.kind = COLUMN_REPEAT,
                                                            .first = once,
                                                            .last = end - 1,
                                                            .length = found[f].length,
                                                            .times = found[f].times - 1});
        step = end;
    }
    storyboard_add_steps(folding->out, step, folding->steps);
    return true;
}

/* Column `at` and the next one are steps of one thread. */
static bool storyboard_goes_on(const struct folding *folding, int64_t at)
{
    ASSERT_INDEX(at, folding->out->count);
    const struct storyboard_column *column = &folding->out->items[at];
    if (at + 1 >= folding->out->count || column[0].kind != COLUMN_STEP ||
        column[1].kind != COLUMN_STEP || column[1].last >= folding->steps - WHOLE_END)
        return false;
    int64_t step = column->first;
    return folding->thread_of[step] >= 0 &&
           folding->thread_of[step] == folding->thread_of[step + 1] && !folding->alone[step] &&
           !folding->alone[step + 1];
}

static void fold_runs(struct folding *folding)
{
    struct storyboard_column *items = folding->out->items;
    int64_t kept = 0;
    for (int64_t at = 0; at < folding->out->count;) {
        int64_t last = at;
        while (storyboard_goes_on(folding, last))
            last++;
        if (last - at + 1 < LEAST_RUN) {
            items[kept++] = items[at++];
            continue;
        }
        items[kept++] = (struct storyboard_column){.kind = COLUMN_RUN,
                                                   .first = items[at].first,
                                                   .last = items[last].last,
                                                   .agent = folding->thread_of[items[at].first]};
        at = last + 1;
    }
    folding->out->count = kept;
}

static bool has_alone(const struct folding *folding, const struct storyboard_column *column)
{
    for (int64_t step = column->first; step <= column->last; step++)
        if (folding->alone[step])
            return true;
    return false;
}

static void leave_out_middle(struct folding *folding)
{
    struct storyboard_column *items = folding->out->items;
    int64_t kept = FIRST_SHOWN, end = folding->out->count - LAST_SHOWN;
    for (int64_t at = FIRST_SHOWN; at < folding->out->count; at++) {
        bool shown = at >= end || has_alone(folding, &items[at]);
        struct storyboard_column *before = &items[kept - 1];
        if (!shown && before->kind == COLUMN_LEFT_OUT) {
            before->last = items[at].last;
            continue;
        }
        items[kept] = items[at];
        if (!shown)
            items[kept].kind = COLUMN_LEFT_OUT;
        kept++;
    }
    folding->out->count = kept;
}

/* The columns of a witness of `steps` steps, in memory of the arena. False: out of memory. */
static bool columns_choose(struct storyboard_own_columns *out, const struct trace *trace,
                           int64_t steps, struct arena *arena)
{
    struct folding folding = {.trace = trace, .steps = steps, .out = out};
    *out = (struct storyboard_own_columns){
        .items = ARENA_ARRAY(arena, (size_t)steps + 1, struct storyboard_column),
        .of_step = ARENA_ARRAY(arena, (size_t)steps + 1, int64_t)};
    if (!out->items || !out->of_step || !read_steps(&folding, arena) ||
        !fold_repeats(&folding, arena))
        return false;
    if (out->count > LONG)
        fold_runs(&folding);
    if (out->count > FIRST_SHOWN + LAST_SHOWN + BAND_SLACK)
        leave_out_middle(&folding);
    for (int64_t c = 0; c < out->count; c++)
        for (int64_t step = out->items[c].first; step <= out->items[c].last; step++)
            out->of_step[step] = c;
    return true;
}

/* Sizes in points. */
enum {
    MARGIN = 18,
    TITLE_FONT = 15,
    TEXT_FONT = 9,
    HEAD_HEIGHT = 76, /* title, subtitle, violation, numbers */
    HEADER_FONT = 8,
    ROW_HEIGHT = 39,
    STEPS_WIDTH = 780, /* of all steps, if that makes them neither too narrow nor too wide */
    MIN_STEP = 72,
    MAX_STEP = 104,
    BAND_GAP = 34,
    LABEL_FONT = 7,
    BLOCKED_WIDTH = 236,
    BLOCKED_FONT = 8,
    LINES = 4, /* of text in a box */
    ARC_LANE = 11,
    SHEET_MIN = 520,
    MAX_SHAPES = 20000, /* what Graphviz draws in seconds */
    MAX_STEPS = 1000 * 1000
};

static const char text_dark[] = "#222222", text_grey[] = "#777777", grid_color[] = "#e9e9e9",
                  red[] = "#c0392b", red_text[] = "#a8453b", red_fill[] = "#fbdcd8",
                  pale_fill[] = "#fdf1ef", grey_arrow[] = "#999999", culprit_fill[] = "#d9513f",
                  plain_fill[] = "#e4e4e4", fold_fill[] = "#f3f1e6", plain_border[] = "#9c9c9c";

struct storyboard_board {
    const struct trace *trace;
    struct arena arena; /* of this picture */
    struct drawing *drawing;
    struct lanes *rows;   /* of each band */
    struct colors colors; /* of names, as in other pictures of the plan */
    bool *on_stream;      /* by the number of a name: work on a stream has it */
    int64_t steps;
    struct storyboard_own_columns columns;
    int64_t bands, band_columns; /* as many in each band, or fewer in the last */
    size_t arcs;
    double step_pt, left_pt, blocked_pt, arcs_pt, width_pt, height_pt;
    const char *title;        /* NULL: the plan's name */
    struct draw_node **nodes; /* of each span */
    size_t *
        alike; /* of each span of a blocked agent: how many others are blocked alike, for which it stands; SIZE_MAX: one of
                      these */
};

/* ---- agents and steps ------------------------------------------------------------------------ */

static bool storyboard_is_blocked(const struct storyboard_board *board,
                                  const struct trace_span *span)
{
    return span->kind == SPAN_WAIT && span->start_ns >= board->steps;
}

static bool in_cycle(const struct storyboard_board *board, size_t span)
{
    for (size_t i = 0; i < board->trace->edge_count; i++)
        if (board->trace->edges[i].kind == EDGE_CYCLE && board->trace->edges[i].from == (int)span)
            return true;
    return false;
}

static bool is_arc(const struct trace_edge *edge)
{
    return edge->kind == EDGE_CYCLE || edge->kind == EDGE_BLOCKED;
}

/* A thread decides what a stream does and stands above it. */
static const struct lanes_style style = {
    .threads_first = true,
    .margin_pt = MARGIN,
    .header_pt = 17,
    .header_font_pt = HEADER_FONT,
    .stream_pt = ROW_HEIGHT,
    .thread_pt = ROW_HEIGHT,
    .gap_pt = 6,
    .rank_gap_pt = 10,
    .stream_font_pt = 10,
    .thread_font_pt = 10,
    .name_gap_pt = 8,
    .least_gutter_pt = 56,
};

static int find_color(const struct storyboard_board *board, const char *name)
{
    const int found = colors_find(&board->colors, name);
    return found >= 0 && board->on_stream[found] ? board->colors.items[found].color : -1;
}

/* Each subject of work on a stream has a colour, also on threads that name it. */
static bool choose_colors(struct storyboard_board *board)
{
    colors_init(&board->colors, &board->arena);
    if (!colors_add_run(&board->colors, board->trace))
        return false;
    board->on_stream = ARENA_ARRAY(&board->arena, board->colors.count + 1, bool);
    for (size_t i = 0; board->on_stream && i < board->trace->span_count; i++) {
        const struct trace_span *span = &board->trace->spans[i];
        if (span->kind == SPAN_DEVICE && span->task)
            board->on_stream[colors_find(&board->colors, span->task)] = true;
    }
    return board->on_stream;
}

/* ---- where it stands ------------------------------------------------------------------------- */

/* The place at which a column begins in a band; those of other bands are at its ends. */
static double storyboard_x_of(const struct storyboard_board *board, int64_t band, int64_t column)
{
    int64_t first = band * board->band_columns, left = board->columns.count - first;
    int64_t count = left < board->band_columns ? left : board->band_columns;
    int64_t at = column < first ? 0 : column > first + count ? count : column - first;
    return board->left_pt + board->step_pt * (double)at;
}

/* The first column of a span, and the one behind its last. */
static int64_t storyboard_start_of(const struct storyboard_board *board,
                                   const struct trace_span *span)
{
    return span->start_ns < board->steps ? board->columns.of_step[span->start_ns]
                                         : board->columns.count;
}

static int64_t storyboard_end_of(const struct storyboard_board *board,
                                 const struct trace_span *span)
{
    int64_t last = span->end_ns < board->steps ? span->end_ns : board->steps;
    return last > span->start_ns ? board->columns.of_step[last - 1] + 1
                                 : storyboard_start_of(board, span);
}

/* True if it stands in a column of several steps alone, and so has no box. */
static bool is_folded(const struct storyboard_board *board, const struct trace_span *span)
{
    const int64_t start = storyboard_start_of(board, span);
    return start < board->columns.count && board->columns.items[start].kind != COLUMN_STEP &&
           storyboard_end_of(board, span) == start + 1;
}

static bool shows(const struct storyboard_board *board, int64_t band, int agent)
{
    return board->rows[band].of_agent[agent] >= 0;
}

static double storyboard_y_of(const struct storyboard_board *board, int64_t band, int agent)
{
    return lanes_of(&board->rows[band], agent)->y_pt;
}

static double band_height(const struct storyboard_board *board, int64_t band)
{
    return board->rows[band].bottom_pt - board->rows[band].top_pt;
}

/* "rank 1", where there are several. */
static const char **storyboard_name_ranks(struct storyboard_board *board)
{
    const struct trace *trace = board->trace;
    int last = 0;
    for (size_t i = 0; i < trace->agent_count; i++)
        last = trace->agents[i].rank > last ? trace->agents[i].rank : last;
    if (last == 0)
        return NULL;
    const char **names = ARENA_ARRAY(&board->arena, (size_t)last + 1, const char *);
    for (size_t i = 0; names && i < trace->agent_count; i++) {
        int rank = trace->agents[i].rank;
        if (!names[rank])
            names[rank] = arena_printf(&board->arena, "rank %d", rank);
    }
    return names;
}

/* An agent in a band: whether it has a row there, and what it does there, as a number that agents which do the same have, too. */
struct band_agent {
    bool wanted;
    uint64_t does;
};

static struct band_agent *band_agent(const struct storyboard_board *board, struct band_agent *all,
                                     int64_t band, int agent)
{
    return &all[(size_t)band * board->trace->agent_count + (size_t)agent];
}

/* True if arrows lead to it, or it stands for others: its row is like no other. */
static bool stands_out(const struct storyboard_board *board, size_t span)
{
    const struct trace *trace = board->trace;
    for (size_t i = 0; i < trace->edge_count; i++)
        if (trace->edges[i].kind == EDGE_RACE &&
            (trace->edges[i].from == (int)span || trace->edges[i].to == (int)span))
            return true;
    ASSERT_INDEX(span, trace->span_count);
    return storyboard_is_blocked(board, &trace->spans[span]) ||
           trace->spans[span].start_ns == board->steps - 1;
}

/* The bands in which the span has a piece; a span that goes through a band gives its agent no row there. */
static void storyboard_note_span(const struct storyboard_board *board, size_t index,
                                 struct band_agent *all)
{
    ASSERT_INDEX(index, board->trace->span_count);
    const struct trace_span *span = &board->trace->spans[index];
    const int64_t start = storyboard_start_of(board, span), end = storyboard_end_of(board, span);
    const bool blocked = storyboard_is_blocked(board, span);
    const int64_t last = board->bands - 1;
    const int64_t first_band = blocked ? last : min_i64(start / board->band_columns, last);
    const int64_t last_band =
        blocked ? last : max_i64(first_band, min_i64((end - 1) / board->band_columns, last));
    band_agent(board, all, first_band, span->agent)->wanted = true;
    band_agent(board, all, last_band, span->agent)->wanted = true;
    for (int64_t band = first_band; band <= last_band; band++) {
        const int64_t begin = band * board->band_columns;
        struct band_agent *of = band_agent(board, all, band, span->agent);
        const uint64_t words[8] = {of->does, (uint64_t)max_i64(start, begin),
                                   (uint64_t)min_i64(end, begin + board->band_columns),
                                   span->task ? table_hash_text(span->task) : 0,
                                   stands_out(board, index) ? (uint64_t)span->agent + 1 : 0};
        of->does = hash_words(words, sizeof words / sizeof *words);
    }
}

/* The agent of the band that does the same and has the row; itself: none in front of it. */
static int row_of(const struct storyboard_board *board, struct band_agent *all, int64_t band,
                  int agent)
{
    const struct trace_agent *agents = board->trace->agents;
    for (int other = 0; other < agent; other++)
        if (band_agent(board, all, band, other)->wanted &&
            band_agent(board, all, band, other)->does ==
                band_agent(board, all, band, agent)->does &&
            agents[other].kind == agents[agent].kind &&
            strcmp(agents[other].name, agents[agent].name) == 0)
            return other;
    return agent;
}

/* The rows of a band: of agents of several ranks that do the same there the first stands for all. */
static bool choose_band(struct storyboard_board *board, struct band_agent *all, int64_t band,
                        const char **headings)
{
    const size_t agents = board->trace->agent_count;
    struct lanes *rows = &board->rows[band];
    size_t *stands_for = ARENA_ARRAY(&board->arena, agents + 1, size_t);
    int last = 0;
    if (!stands_for || !lanes_open(rows, board->trace, &style, &board->arena))
        return false;
    for (size_t a = 0; a < agents; a++) {
        last = max_int(last, board->trace->agents[a].rank);
        if (!band_agent(board, all, band, (int)a)->wanted)
            continue;
        const int row = row_of(board, all, band, (int)a);
        if (row != (int)a) {
            stands_for[row]++;
            continue;
        }
        rows->of_agent[a] = 0; /* lanes_place sets the right one */
        lanes_add(rows, (int)a);
    }
    rows->headings = headings;
    const char **own = headings ? ARENA_ARRAY(&board->arena, (size_t)last + 1, const char *) : NULL;
    if (!headings || !own)
        return !board->arena.failed;
    memcpy(own, headings, ((size_t)last + 1) * sizeof *own);
    for (size_t a = 0; a < agents; a++)
        if (stands_for[a] > 0)
            own[board->trace->agents[a].rank] = arena_printf(
                &board->arena, "rank %d, %zu alike", board->trace->agents[a].rank, stands_for[a]);
    rows->headings = own;
    return !board->arena.failed;
}

static bool choose_rows(struct storyboard_board *board)
{
    const char **headings = storyboard_name_ranks(board);
    const size_t count = (size_t)board->bands * board->trace->agent_count + 1;
    struct band_agent *all = ARENA_ARRAY(&board->arena, count, struct band_agent);
    board->rows = ARENA_ARRAY(&board->arena, (size_t)board->bands, struct lanes);
    if (!all || !board->rows)
        return false;
    for (size_t i = 0; i < board->trace->span_count; i++)
        if (board->alike[i] != SIZE_MAX && !is_folded(board, &board->trace->spans[i]))
            storyboard_note_span(board, i, all);
    for (int64_t c = 0; c < board->columns.count; c++)
        if (board->columns.items[c].kind == COLUMN_RUN) {
            const int agent = board->columns.items[c].agent;
            struct band_agent *of = band_agent(board, all, c / board->band_columns, agent);
            *of = (struct band_agent){true, (uint64_t)agent + 1};
        }
    for (int64_t band = 0; band < board->bands; band++)
        if (!choose_band(board, all, band, headings))
            return false;
    return true;
}

static int64_t storyboard_count_steps(const struct trace *trace)
{
    int64_t last = 0;
    for (size_t i = 0; i < trace->span_count; i++)
        if (trace->spans[i].kind != SPAN_WAIT && trace->spans[i].end_ns > last)
            last = trace->spans[i].end_ns;
    return last;
}

static enum status too_large(int64_t steps, struct diag *diag)
{
    return diag_error(diag, STATUS_INPUT,
                      "the witness is too large to draw: %" PRId64
                      " steps are more than %d columns, names and boxes",
                      steps, MAX_SHAPES);
}

static enum status storyboard_check_steps(const struct trace *trace, struct diag *diag)
{
    const int64_t steps = storyboard_count_steps(trace);
    if (steps > MAX_STEPS)
        return too_large(steps, diag);
    for (size_t i = 0; i < trace->span_count; i++)
        if (trace->spans[i].start_ns < 0)
            return diag_error(diag, STATUS_INPUT, "found step %" PRId64 ", expected steps from 0",
                              trace->spans[i].start_ns);
    return STATUS_OK;
}

/* The columns, a name for each agent in each band, a box for each span in each of its bands: counted before anything is
   drawn. */
static bool is_drawable(const struct storyboard_board *board)
{
    const struct trace *trace = board->trace;
    int64_t shapes = board->columns.count + (int64_t)trace->edge_count;
    for (int64_t band = 0; band < board->bands; band++)
        for (size_t a = 0; a < trace->agent_count; a++)
            shapes += shows(board, band, (int)a);
    for (size_t i = 0; i < trace->span_count && shapes <= MAX_SHAPES; i++) {
        const struct trace_span *span = &trace->spans[i];
        if (board->alike[i] != SIZE_MAX && !is_folded(board, span))
            shapes += (storyboard_end_of(board, span) - storyboard_start_of(board, span)) /
                          board->band_columns +
                      2;
    }
    return shapes <= MAX_SHAPES;
}

static int blocked_compare(const void *left, const void *right, void *context)
{
    const struct trace *trace = context;
    const size_t i = *(const size_t *)left, k = *(const size_t *)right;
    const struct trace_span *a = &trace->spans[i], *b = &trace->spans[k];
    const struct trace_agent *of_a = &trace->agents[a->agent], *of_b = &trace->agents[b->agent];
    return compare_then(
        strcmp(a->cause ? a->cause : "", b->cause ? b->cause : ""),
        compare_then(compare_int((int)of_a->kind, (int)of_b->kind),
                     compare_then(strcmp(of_a->name, of_b->name), compare_size(i, k))));
}

/* Of many agents that wait for the same the first stands for all, but for those of a cycle. */
static bool storyboard_find_alike(struct storyboard_board *board)
{
    enum { FEW = 4 };
    const struct trace *trace = board->trace;
    size_t *list = ARENA_ARRAY(&board->arena, trace->span_count + 1, size_t), count = 0;
    board->alike = ARENA_ARRAY(&board->arena, trace->span_count + 1, size_t);
    if (!list || !board->alike)
        return false;
    memset(board->alike, 0, (trace->span_count + 1) * sizeof *board->alike);
    for (size_t i = 0; i < trace->span_count; i++)
        if (storyboard_is_blocked(board, &trace->spans[i]) && !in_cycle(board, i))
            list[count++] = i;
    if (count <= FEW)
        return true;
    SORT_BY(list, count, blocked_compare, (void *)trace);
    for (size_t i = 1, first = 0; i < count; i++) {
        const struct trace_span *a = &trace->spans[list[first]], *b = &trace->spans[list[i]];
        const struct trace_agent *of_a = &trace->agents[a->agent], *of_b = &trace->agents[b->agent];
        if (a->cause && b->cause && strcmp(a->cause, b->cause) == 0 && of_a->kind == of_b->kind &&
            strcmp(of_a->name, of_b->name) == 0) {
            board->alike[list[first]]++;
            board->alike[list[i]] = SIZE_MAX;
        } else {
            first = i;
        }
    }
    return true;
}

static bool storyboard_measure(struct storyboard_board *board)
{
    bool blocked = false;
    board->steps = storyboard_count_steps(board->trace);
    board->nodes = ARENA_ARRAY(&board->arena, board->trace->span_count + 1, struct draw_node *);
    if (!board->nodes ||
        !columns_choose(&board->columns, board->trace, board->steps, &board->arena) ||
        !storyboard_find_alike(board))
        return false;
    int64_t last = board->columns.count;
    for (size_t i = 0; i < board->trace->span_count; i++)
        blocked |= storyboard_is_blocked(board, &board->trace->spans[i]);
    for (size_t i = 0; i < board->trace->edge_count; i++)
        board->arcs += is_arc(&board->trace->edges[i]);
    board->bands = last <= BAND_STEPS + BAND_SLACK ? 1 : (last + BAND_STEPS - 1) / BAND_STEPS;
    board->band_columns = last > 0 ? (last + board->bands - 1) / board->bands : 1;
    board->step_pt = fmin(fmax(STEPS_WIDTH / (double)board->band_columns, MIN_STEP), MAX_STEP);
    if (!choose_rows(board))
        return false;
    double top_pt = MARGIN + HEAD_HEIGHT, gutter_pt = 0;
    for (int64_t band = 0; band < board->bands; band++) {
        lanes_place(&board->rows[band], top_pt);
        top_pt = board->rows[band].bottom_pt + BAND_GAP;
        gutter_pt = fmax(gutter_pt, board->rows[band].gutter_pt);
    }
    board->height_pt = top_pt - BAND_GAP + MARGIN;
    board->left_pt = MARGIN + gutter_pt + style.name_gap_pt;
    board->blocked_pt = storyboard_x_of(board, board->bands - 1, last);
    board->arcs_pt = board->blocked_pt + (blocked ? BLOCKED_WIDTH : 0);
    board->width_pt = fmax(storyboard_x_of(board, 0, last) + 2 * MARGIN,
                           board->arcs_pt + (double)board->arcs * ARC_LANE + 2 * MARGIN);
    const char *note = board->trace->info.note;
    board->width_pt = fmax(board->width_pt, SHEET_MIN);
    if (note)
        board->width_pt = fmax(board->width_pt, draw_text_width(note, TEXT_FONT) + 3 * MARGIN);
    return true;
}

/* ---- words ----------------------------------------------------------------------------------- */

/* `text`, or as much of its beginning as fits. */
static const char *storyboard_cut(struct storyboard_board *board, const char *text, double width_pt,
                                  double font_pt)
{
    size_t length = strlen(text);
    if (draw_text_width(text, font_pt) <= width_pt)
        return text;
    for (; length > 0; length--) {
        if (((unsigned char)text[length] & 0xc0) == 0x80) /* not inside a UTF-8 sequence */
            continue;
        char *part = arena_printf(&board->arena, "%.*s\xe2\x80\xa6", (int)length, text);
        if (!part || draw_text_width(part, font_pt) <= width_pt)
            return part;
    }
    return NULL;
}

/* Break the last line that began at `line` where its words no longer fit: at `gap`, the last space. */
static char *break_line(char *line, char *gap, double width_pt, double font_pt)
{
    if (!gap || draw_text_width(line, font_pt) <= width_pt)
        return line;
    *gap = '\n';
    return gap + 1;
}

/* A word may be wider than the line. */
static const char *cut_lines(struct storyboard_board *board, const char *text, double width_pt,
                             double font_pt)
{
    const char *out = "";
    while (text && out && *text) {
        size_t length = strcspn(text, "\n");
        const char *line = arena_strndup(&board->arena, text, length);
        const char *kept = line ? storyboard_cut(board, line, width_pt, font_pt) : NULL;
        out = arena_printf(&board->arena, "%s%s%s", out, *out ? "\n" : "", kept ? kept : "");
        text += length + (text[length] == '\n');
    }
    return out;
}

/* Lines of whole words, at most LINES; the rest of the text is cut off. */
static const char *storyboard_wrap(struct storyboard_board *board, const char *text,
                                   double width_pt, double font_pt)
{
    char *out = arena_strdup(&board->arena, text), *line = out, *gap = NULL;
    int lines = 1;
    for (char *c = out; out && lines < LINES; c++) {
        char end = *c;
        if (end != ' ' && end != '\0')
            continue;
        *c = '\0';
        char *next = break_line(line, gap, width_pt, font_pt);
        *c = end;
        lines += next != line;
        line = next;
        gap = c;
        if (end == '\0')
            break;
    }
    return out ? cut_lines(board, out, width_pt, font_pt) : NULL;
}

static const char *subject(struct storyboard_board *board, const struct trace_span *span)
{
    const char *task = span->task ? span->task : "";
    return span->iteration >= 0 ? arena_printf(&board->arena, "%s %" PRId64, task, span->iteration)
                                : task;
}

/* A thread's label is its operation, a stream's only the subject of its work. */
static const char *storyboard_work_label(struct storyboard_board *board,
                                         const struct trace_span *span, double width_pt)
{
    const struct trace_step *step = columns_step(board->trace, span->start_ns);
    const char *what = span->kind != SPAN_DEVICE && step ? step->op : subject(board, span);
    return what ? storyboard_wrap(board, what, width_pt, LABEL_FONT) : NULL;
}

static const char *storyboard_tooltip(struct storyboard_board *board, const struct trace_span *span)
{
    const struct trace_agent *agent = &board->trace->agents[span->agent];
    const struct trace_step *step = columns_step(board->trace, span->start_ns);
    if (span->kind == SPAN_WAIT)
        return arena_printf(&board->arena, "rank %d %s %s %s", agent->rank,
                            trace_agent_kind_text(agent->kind), agent->name,
                            span->cause ? span->cause : "waits");
    return arena_printf(&board->arena, "step %" PRId64 ": rank %d %s %s %s", span->start_ns + 1,
                        agent->rank, trace_agent_kind_text(agent->kind), agent->name,
                        step ? step->op : subject(board, span));
}

/* ---- drawing --------------------------------------------------------------------------------- */

static void storyboard_draw_title(struct storyboard_board *board, const char *title)
{
    const struct run_info *info = &board->trace->info;
    const char *driver =
        info->driver == RUN_DRIVER_NONE
            ? ""
            : arena_printf(&board->arena, "  \xc2\xb7  %s driver", run_driver_text(info->driver));
    draw_text(board->drawing, &(struct draw_text){.x_pt = MARGIN,
                                                  .y_pt = MARGIN + TITLE_FONT / 2.0,
                                                  .text = title ? title : info->plan_name,
                                                  .color = text_dark,
                                                  .font_pt = TITLE_FONT,
                                                  .bold = true});
    draw_line(board->drawing, MARGIN, MARGIN + TITLE_FONT + 12,
              arena_printf(&board->arena,
                           "witness%s  \xc2\xb7  %" PRId64
                           " steps from left to right: steps, not time",
                           driver ? driver : "", board->steps),
              text_grey, TEXT_FONT);
    draw_line(board->drawing, MARGIN, MARGIN + TITLE_FONT + 26, info->note, red, TEXT_FONT);
}

/* "the same 20 steps, 3 times more", over all rows. */
static void draw_fold(struct storyboard_board *board, const struct storyboard_column *column,
                      int64_t band, double x)
{
    const char *words =
        column->kind == COLUMN_REPEAT
            ? arena_printf(&board->arena, "the same %zu step%s, %zu time%s more", column->length,
                           column->length == 1 ? "" : "s", column->times,
                           column->times == 1 ? "" : "s")
            : arena_printf(&board->arena, "%" PRId64 " step%s left out",
                           column->last - column->first + 1,
                           units_plural((size_t)(column->last - column->first + 1)));
    struct draw_box box = {.x_pt = x + 1,
                           .y_pt = board->rows[band].top_pt,
                           .width_pt = board->step_pt - 1,
                           .height_pt = band_height(board, band),
                           .fill = fold_fill,
                           .tooltip = words};
    draw_box(board->drawing, &box);
    box.height_pt = ROW_HEIGHT;
    box.label = words ? storyboard_wrap(board, words, board->step_pt - 6, LABEL_FONT) : NULL;
    box.text_color = text_grey;
    box.font_pt = LABEL_FONT;
    draw_box(board->drawing, &box);
}

/* "18 steps, then pushes x", in the row of their thread. */
static void storyboard_draw_run(struct storyboard_board *board,
                                const struct storyboard_column *column, int64_t band, double x)
{
    const struct trace *trace = board->trace;
    const struct trace_step *last = columns_step(trace, column->last);
    const struct trace_step *first = columns_step(trace, column->first);
    int agent = column->agent;
    const char *words =
        arena_printf(&board->arena, "%" PRId64 " steps%s%s", column->last - column->first + 1,
                     last ? ", the last " : "", last ? last->op : "");
    const char *tip =
        arena_printf(&board->arena, "steps %" PRId64 " to %" PRId64 ": rank %d %s %s %s ... %s",
                     column->first + 1, column->last + 1, trace->agents[agent].rank,
                     trace_agent_kind_text(trace->agents[agent].kind), trace->agents[agent].name,
                     first ? first->op : "", last ? last->op : "");
    draw_box(
        board->drawing,
        &(struct draw_box){
            .x_pt = x + 1,
            .y_pt = storyboard_y_of(board, band, agent),
            .width_pt = board->step_pt - 1,
            .height_pt = ROW_HEIGHT,
            .fill = plain_fill,
            .border = plain_border,
            .label = words ? storyboard_wrap(board, words, board->step_pt - 7, LABEL_FONT) : NULL,
            .text_color = text_dark,
            .font_pt = LABEL_FONT,
            .tooltip = tip});
}

/* A number above a column, and a line where it begins. */
static void draw_column(struct storyboard_board *board, int64_t number)
{
    ASSERT_INDEX(number, board->columns.count);
    const struct storyboard_column *column = &board->columns.items[number];
    int64_t band = number / board->band_columns;
    double x = storyboard_x_of(board, band, number), y = board->rows[band].top_pt;
    const char *prefix = number ? "" : column->last > column->first ? "steps " : "step ";
    const char *text = column->last > column->first
                           ? arena_printf(&board->arena, "%s%" PRId64 "-%" PRId64, prefix,
                                          column->first + 1, column->last + 1)
                           : arena_printf(&board->arena, "%s%" PRId64, prefix, column->first + 1);
    if (column->kind == COLUMN_RUN)
        storyboard_draw_run(board, column, band, x);
    draw_box(board->drawing, &(struct draw_box){.x_pt = x,
                                                .y_pt = y,
                                                .width_pt = 1,
                                                .height_pt = band_height(board, band),
                                                .fill = grid_color});
    draw_text(board->drawing, &(struct draw_text){.x_pt = x + board->step_pt / 2,
                                                  .y_pt = y - HEADER_FONT,
                                                  .align = DRAW_CENTER,
                                                  .text = text ? text : "",
                                                  .color = text_grey,
                                                  .font_pt = HEADER_FONT});
}

/* Above the boxes that go through them. */
static void draw_folds(struct storyboard_board *board)
{
    for (int64_t number = 0; number < board->columns.count; number++) {
        const struct storyboard_column *column = &board->columns.items[number];
        int64_t band = number / board->band_columns;
        if (column->kind == COLUMN_REPEAT || column->kind == COLUMN_LEFT_OUT)
            draw_fold(board, column, band, storyboard_x_of(board, band, number));
    }
}

static void draw_blocked(struct storyboard_board *board, size_t index)
{
    ASSERT_INDEX(index, board->trace->span_count);
    const struct trace_span *span = &board->trace->spans[index];
    bool cycle = in_cycle(board, index);
    const char *cause = span->cause && board->alike[index] > 0
                            ? arena_printf(&board->arena, "%s; and so %zu more rank%s", span->cause,
                                           board->alike[index], units_plural(board->alike[index]))
                            : span->cause;
    const char *text =
        cause ? storyboard_wrap(board, cause, BLOCKED_WIDTH - 8, BLOCKED_FONT) : NULL;
    board->nodes[index] =
        draw_box(board->drawing,
                 &(struct draw_box){.x_pt = board->blocked_pt,
                                    .y_pt = storyboard_y_of(board, board->bands - 1, span->agent),
                                    .width_pt = BLOCKED_WIDTH,
                                    .height_pt = ROW_HEIGHT,
                                    .fill = cycle ? red_fill : pale_fill,
                                    .border = cycle ? red : NULL,
                                    .label = text,
                                    .text_color = red_text,
                                    .font_pt = BLOCKED_FONT,
                                    .tooltip = storyboard_tooltip(board, span)});
}

/* The step that violates a property, where no agent is blocked, is the last one. */
static bool is_culprit(const struct storyboard_board *board, const struct trace_span *span)
{
    return board->arcs_pt == board->blocked_pt && span->start_ns == board->steps - 1;
}

/* The part of a span that is in a band; the label is in the first. */
static void draw_piece(struct storyboard_board *board, size_t index, int64_t band, bool first)
{
    ASSERT_INDEX(index, board->trace->span_count);
    const struct trace_span *span = &board->trace->spans[index];
    double left = storyboard_x_of(board, band, storyboard_start_of(board, span)),
           right = storyboard_x_of(board, band, storyboard_end_of(board, span));
    int color = span->task ? find_color(board, span->task) : -1;
    bool wait = span->kind == SPAN_WAIT, culprit = is_culprit(board, span);
    const char *border = color >= 0 ? draw_border(color) : plain_border;
    const char *fill = culprit      ? culprit_fill
                       : wait       ? pale_fill
                       : color >= 0 ? draw_fill(color)
                                    : plain_fill;
    board->nodes[index] = draw_box(
        board->drawing,
        &(struct draw_box){
            .x_pt = left + 1,
            .y_pt = storyboard_y_of(board, band, span->agent),
            .width_pt = right - left - 1,
            .height_pt = ROW_HEIGHT,
            .fill = fill,
            .border = culprit ? red : border,
            .label = wait || !first ? NULL : storyboard_work_label(board, span, right - left - 7),
            .text_color = culprit ? "#ffffff" : text_dark,
            .font_pt = LABEL_FONT,
            .tooltip = storyboard_tooltip(board, span)});
}

static void draw_span(struct storyboard_board *board, size_t index)
{
    ASSERT_INDEX(index, board->trace->span_count);
    const struct trace_span *span = &board->trace->spans[index];
    int64_t start = storyboard_start_of(board, span), end = storyboard_end_of(board, span);
    int64_t first = start / board->band_columns;
    for (int64_t band = first; band < board->bands && !is_folded(board, span); band++)
        if (shows(board, band, span->agent) &&
            storyboard_x_of(board, band, end) > storyboard_x_of(board, band, start))
            draw_piece(board, index, band, band == first);
}

/* An arrow leaves in the lower half of its box and comes to the upper half of another. Those around
   the cycle are red and nearest. */
static void draw_arc_of(struct storyboard_board *board, const struct trace_edge *edge, int lane)
{
    const struct trace_span *from = &board->trace->spans[edge->from];
    const struct trace_span *to = &board->trace->spans[edge->to];
    bool cycle = edge->kind == EDGE_CYCLE;
    double shift = 3.0 * lane > ROW_HEIGHT / 3.0 ? ROW_HEIGHT / 3.0 : 3.0 * lane;
    draw_arc(board->drawing,
             &(struct draw_arc){.from = board->nodes[edge->from],
                                .to = board->nodes[edge->to],
                                .x_pt = board->arcs_pt,
                                .from_y_pt = storyboard_y_of(board, board->bands - 1, from->agent) +
                                             ROW_HEIGHT * 0.62 + shift / 2,
                                .to_y_pt = storyboard_y_of(board, board->bands - 1, to->agent) +
                                           ROW_HEIGHT * 0.38 - shift / 2,
                                .bulge_pt = MARGIN + lane * ARC_LANE,
                                .color = cycle ? red : grey_arrow,
                                .dashed = !cycle,
                                .pen_pt = cycle ? 1.4 : 0.7});
}

/* Two accesses without an order: a red arrow from one box to the other. */
static void draw_races(struct storyboard_board *board)
{
    for (size_t i = 0; i < board->trace->edge_count; i++) {
        const struct trace_edge *edge = &board->trace->edges[i];
        const struct trace_span *from = &board->trace->spans[edge->from];
        const struct trace_span *to = &board->trace->spans[edge->to];
        if (edge->kind != EDGE_RACE || !board->nodes[edge->from] || !board->nodes[edge->to])
            continue;
        int64_t from_band = storyboard_start_of(board, from) / board->band_columns;
        int64_t to_band = storyboard_start_of(board, to) / board->band_columns;
        bool down = storyboard_y_of(board, from_band, from->agent) <
                    storyboard_y_of(board, to_band, to->agent);
        draw_arrow(
            board->drawing,
            &(struct draw_arrow){
                .from = board->nodes[edge->from],
                .to = board->nodes[edge->to],
                .from_x_pt = storyboard_x_of(board, from_band, storyboard_start_of(board, from)) +
                             board->step_pt / 2,
                .from_y_pt = storyboard_y_of(board, from_band, from->agent) + ROW_HEIGHT / 2.0,
                .to_x_pt = storyboard_x_of(board, to_band, storyboard_start_of(board, to)) +
                           board->step_pt / 2,
                .to_y_pt = storyboard_y_of(board, to_band, to->agent) + (down ? 0 : ROW_HEIGHT),
                .color = red});
    }
}

static enum status storyboard_draw_all(void *context, const struct draw_target *target, char **data,
                                       size_t *bytes, struct diag *diag)
{
    struct storyboard_board *board = context;
    enum status status =
        draw_open_placed(target, board->width_pt, board->height_pt, &board->drawing, diag);
    if (status != STATUS_OK)
        return status;
    storyboard_draw_title(board, board->title);
    for (int64_t band = 0; band < board->bands; band++)
        lanes_draw(&board->rows[band], board->drawing, board->left_pt,
                   band == board->bands - 1 ? board->arcs_pt
                                            : storyboard_x_of(board, band, board->columns.count),
                   0);
    for (int64_t column = 0; column < board->columns.count; column++)
        draw_column(board, column);
    double last_pt = board->rows[board->bands - 1].top_pt;
    if (board->arcs_pt > board->blocked_pt)
        draw_line(board->drawing, board->blocked_pt, last_pt - HEADER_FONT, "no agent can go on",
                  red, HEADER_FONT);
    for (int64_t band = 0; band < board->bands; band++)
        lanes_draw_headings(&board->rows[band], board->drawing, 0);
    for (size_t i = 0; i < board->trace->span_count; i++)
        if (board->alike[i] == SIZE_MAX)
            continue;
        else if (storyboard_is_blocked(board, &board->trace->spans[i]))
            draw_blocked(board, i);
        else
            draw_span(board, i);
    draw_folds(board);
    int lane = 0;
    for (int cycle = 1; cycle >= 0; cycle--)
        for (size_t i = 0; i < board->trace->edge_count; i++) {
            const struct trace_edge *edge = &board->trace->edges[i];
            bool drawn = board->nodes[edge->from] && board->nodes[edge->to];
            if (drawn && edge->kind == (cycle ? EDGE_CYCLE : EDGE_BLOCKED))
                draw_arc_of(board, edge, lane++);
        }
    draw_races(board);
    status =
        board->arena.failed ? diag_no_memory(diag) : draw_finish(board->drawing, data, bytes, diag);
    draw_close(board->drawing);
    return status;
}

enum status storyboard_render(const struct trace *trace, const char *title,
                              const struct draw_target *target, struct diag *diag)
{
    struct storyboard_board board = {.trace = trace, .title = title};
    arena_init(&board.arena, 0);
    enum status status = STATUS_OK;
    if (trace->span_count == 0)
        status = diag_error(diag, STATUS_INPUT, "nothing to draw: the witness has no steps");
    else
        status = storyboard_check_steps(trace, diag);
    if (status == STATUS_OK && !(choose_colors(&board) && storyboard_measure(&board)))
        status = diag_no_memory(diag);
    if (status == STATUS_OK && !is_drawable(&board))
        status = too_large(board.steps, diag);
    if (status == STATUS_OK)
        status = draw_picture(target, storyboard_draw_all, &board, diag);
    arena_fini(&board.arena);
    return status;
}
