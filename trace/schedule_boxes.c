/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_boxes.c - see schedule_sheet.h: the passes of a rank. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "schedule_picture.h"
#include "schedule_sheet.h"
#include "base/assert_index.h"

/* ---- colours --------------------------------------------------------------------------------- */

struct color {
    int r, g, b;
};

/* Conventions of the field; tones are such that text stays legible and neighbours can be told apart without hue. */
static const struct color colors[PALETTES][CHART_KINDS] = {
    [PALETTE_PYTORCH] = {[CHART_F] = {0x6f, 0xa8, 0xdc},
                         [CHART_B] = {0xf4, 0xa2, 0x4c},
                         [CHART_I] = {0x45, 0xb5, 0xaa},
                         [CHART_W] = {0x9c, 0xcf, 0x7b},
                         [CHART_OVERLAP] = {0xb4, 0x9a, 0xd9},
                         [CHART_OPTIMIZER] = {0xf2, 0xd8, 0x5c}},
    [PALETTE_DUALPIPE] = {[CHART_F] = {0xf6, 0xb2, 0x5b},
                          [CHART_B] = {0x8f, 0xc9, 0x6b},
                          [CHART_I] = {0x74, 0xc6, 0xb4},
                          [CHART_W] = {0x6c, 0x9f, 0xd8},
                          [CHART_OVERLAP] = {0xf6, 0xb2, 0x5b},
                          [CHART_OPTIMIZER] = {0xd9, 0xd9, 0xd9}},
    [PALETTE_ZERO_BUBBLE] = {[CHART_F] = {0x8a, 0xb8, 0xf0},
                             [CHART_B] = {0x5f, 0xb8, 0x78},
                             [CHART_I] = {0x8e, 0xd6, 0x9c},
                             [CHART_W] = {0x2f, 0x7d, 0x4a},
                             [CHART_OVERLAP] = {0x8a, 0xb8, 0xf0},
                             [CHART_OPTIMIZER] = {0xf2, 0xd8, 0x5c}},
    [PALETTE_GREY] = {[CHART_F] = {0xdc, 0xdc, 0xdc},
                      [CHART_B] = {0x90, 0x90, 0x90},
                      [CHART_I] = {0xb2, 0xb2, 0xb2},
                      [CHART_W] = {0x70, 0x70, 0x70},
                      [CHART_OVERLAP] = {0xc8, 0xc8, 0xc8},
                      [CHART_OPTIMIZER] = {0xff, 0xff, 0xff}},
};

/* The last chunk of a rank is so much nearer to white: no nearer, or a dark sheet takes it for a ground. */
#define CHUNK_SHARE 0.45

static int schedule_boxes_blend(int a, int b, double share)
{
    return (int)(a + (b - a) * share + 0.5);
}

static void write_color(struct color color, char out[PALETTE_COLOR])
{
    snprintf(out, PALETTE_COLOR, "#%02x%02x%02x", (unsigned)color.r & 0xff,
             (unsigned)color.g & 0xff, (unsigned)color.b & 0xff);
}

static struct color read_color(const char *text)
{
    unsigned r = 0, g = 0, b = 0;
    sscanf(text, "#%2x%2x%2x", &r, &g, &b);
    return (struct color){(int)r, (int)g, (int)b};
}

void palette_fill(enum palette palette, enum chart_kind kind, int chunk, int chunks,
                  char out[PALETTE_COLOR])
{
    enum { WHITE = 0xff };
    const struct color base = colors[palette][kind];
    double share = chunks > 1 && chunk > 0 ? CHUNK_SHARE * chunk / (chunks - 1) : 0;
    write_color((struct color){schedule_boxes_blend(base.r, WHITE, share),
                               schedule_boxes_blend(base.g, WHITE, share),
                               schedule_boxes_blend(base.b, WHITE, share)},
                out);
}

void palette_border(const char *fill, char out[PALETTE_COLOR])
{
    const struct color base = read_color(fill);
    write_color((struct color){schedule_boxes_blend(base.r, 0, 0.35),
                               schedule_boxes_blend(base.g, 0, 0.35),
                               schedule_boxes_blend(base.b, 0, 0.35)},
                out);
}

const char *palette_ink(const char *fill)
{
    const struct color base = read_color(fill);
    return 0.299 * base.r + 0.587 * base.g + 0.114 * base.b < 130 ? "#ffffff" : "#1a1a1a";
}

enum { BLOCK = 12, NEAR = 1, LEAST_FONT = 6 };

/* Two blocks whose shares differ by less look alike. */
static const double alike = 0.08;

/* ---- a pass ---------------------------------------------------------------------------------- */

static void fill_of(const struct sheet *sheet, const struct chart_pass *pass,
                    char out[PALETTE_COLOR])
{
    palette_fill(sheet->options->palette, pass->kind, pass->chunk, sheet->chart->chunks, out);
}

/* Two numbers of an overlap stand beside one another. */
static void label_of(const struct chart_pass *pass, char *out, size_t size)
{
    if (pass->kind == CHART_OPTIMIZER)
        snprintf(out, size, "opt");
    else if (pass->kind == CHART_OVERLAP)
        snprintf(out, size, "%d+%d", pass->microbatch, pass->other_microbatch);
    else
        snprintf(out, size, "%d", pass->microbatch);
}

static const char *schedule_boxes_words_of(enum chart_kind kind)
{
#define X(name, words) words,
    static const char *const words[] = {CHART_KIND_LIST(X)};
#undef X
    return words[kind];
}

static void tooltip_of(const struct sheet *sheet, int rank, const struct chart_pass *pass,
                       char *out, size_t size)
{
    char start[UNITS_TEXT], end[UNITS_TEXT], which[64] = "";
    units_show_time((double)pass->start_ns, start);
    units_show_time((double)pass->end_ns, end);
    if (pass->kind == CHART_OVERLAP)
        snprintf(which, sizeof which, " of microbatches %d and %d", pass->microbatch,
                 pass->other_microbatch);
    else if (pass->kind != CHART_OPTIMIZER)
        snprintf(which, sizeof which, " of microbatch %d", pass->microbatch);
    if (sheet->chart->chunks > 1 && pass->kind != CHART_OPTIMIZER) {
        size_t used = strlen(which);
        snprintf(which + used, sizeof which - used, ", %s %d",
                 sheet->chart->copies ? "copy" : "chunk", pass->chunk);
    }
    snprintf(out, size, "rank %d: %s%s, %s to %s", rank, schedule_boxes_words_of(pass->kind), which,
             start, end);
}

/* The largest font in which the longest number of the step fits; 0: none. */
static double font_for(const struct sheet *sheet, const struct chart_pass *pass, double width)
{
    static const double digit = 0.58;
    char longest[32];
    double font = fmin(SHEET_FONT, 0.62 * sheet->row);
    struct chart_pass last = {.kind = pass->kind,
                              .microbatch = sheet->chart->microbatches - 1,
                              .other_microbatch = sheet->chart->microbatches - 1};
    label_of(&last, longest, sizeof longest);
    double fits = (width - 2) / (digit * (double)strlen(longest));
    font = fmin(font, fits);
    return font >= LEAST_FONT ? floor(2 * font) / 2 : 0;
}

static bool is_split(const struct sheet *sheet, const struct chart_pass *pass)
{
    return pass->kind == CHART_OVERLAP && sheet->options->palette != PALETTE_PYTORCH;
}

/* Forward above, backward below: the border and the numbers are those of one box over both. */
static void draw_halves(const struct sheet *sheet, const struct chart_pass *pass, double x,
                        double y, double width)
{
    const struct chart_pass parts[] = {
        {.kind = CHART_F, .chunk = pass->chunk},
        {.kind = CHART_B, .chunk = pass->other_chunk},
    };
    for (int i = 0; i < 2; i++) {
        char fill[PALETTE_COLOR];
        fill_of(sheet, &parts[i], fill);
        sheet_area(sheet, x, y + i * sheet->row / 2, width, sheet->row / 2, fill);
    }
}

static void draw_pass(const struct sheet *sheet, int rank, const struct chart_pass *pass)
{
    char fill[PALETTE_COLOR], border[PALETTE_COLOR], label[32], tooltip[200];
    double x = round(sheet_x(sheet, pass->start_ns)), y = sheet_y(sheet, rank); /* as boxes snap */
    double width = round(sheet_x(sheet, pass->end_ns)) - x;
    bool overlap = pass->kind == CHART_OVERLAP, split = is_split(sheet, pass);
    fill_of(sheet, pass, fill);
    palette_border(fill, border);
    label_of(pass, label, sizeof label);
    tooltip_of(sheet, rank, pass, tooltip, sizeof tooltip);
    if (split)
        draw_halves(sheet, pass, x, y, width);
    double font = font_for(sheet, pass, width);
    draw_box(sheet->drawing, &(struct draw_box){.x_pt = x,
                                                .y_pt = y,
                                                .width_pt = width,
                                                .height_pt = sheet->row,
                                                .fill = split ? NULL : fill,
                                                .border = overlap ? SHEET_INK : border,
                                                .pen_pt = overlap ? 1.4 : 0.5,
                                                .label = font > 0 ? label : NULL,
                                                .text_color = palette_ink(fill),
                                                .font_pt = font,
                                                .tooltip = tooltip});
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Passes behind one another that are too narrow, together. */
struct schedule_boxes_block {
    int64_t start_ns, end_ns;
    int64_t busy_ns[CHART_KINDS];
    int first[CHART_KINDS], last[CHART_KINDS]; /* microbatches; -1: none of the kind */
};

static bool schedule_boxes_is_narrow(const struct sheet *sheet, const struct chart_pass *pass)
{
    return sheet_x(sheet, pass->end_ns) - sheet_x(sheet, pass->start_ns) < sheet->narrow;
}

static void schedule_boxes_add_part(struct schedule_boxes_block *block, enum chart_kind kind,
                                    int microbatch, int64_t ns)
{
    if (block->first[kind] < 0 || microbatch < block->first[kind])
        block->first[kind] = microbatch;
    if (microbatch > block->last[kind])
        block->last[kind] = microbatch;
    block->busy_ns[kind] += ns;
}

static void schedule_boxes_open_block(struct schedule_boxes_block *block, int64_t start_ns)
{
    *block = (struct schedule_boxes_block){.start_ns = start_ns, .end_ns = start_ns};
    for (int k = 0; k < CHART_KINDS; k++)
        block->first[k] = block->last[k] = -1;
}

static bool has_kinds_of(const struct schedule_boxes_block *a, const struct schedule_boxes_block *b)
{
    for (int k = 0; k < CHART_KINDS; k++)
        if (b->first[k] >= 0 && a->first[k] < 0)
            return false;
    return true;
}

/* A short rest, as at the end, needs the same kinds only. */
static bool schedule_boxes_are_alike(const struct sheet *sheet,
                                     const struct schedule_boxes_block *a,
                                     const struct schedule_boxes_block *b)
{
    double a_ns = (double)(a->end_ns - a->start_ns), b_ns = (double)(b->end_ns - b->start_ns);
    if (sheet_x(sheet, b->start_ns) - sheet_x(sheet, a->end_ns) > NEAR)
        return false;
    if (sheet_x(sheet, b->end_ns) - sheet_x(sheet, b->start_ns) < BLOCK / 2.0)
        return has_kinds_of(a, b);
    for (int k = 0; k < CHART_KINDS; k++)
        if (fabs((double)a->busy_ns[k] / a_ns - (double)b->busy_ns[k] / b_ns) > alike)
            return false;
    return true;
}

static const char *letters_of(enum chart_kind kind)
{
    static const char *const letters[CHART_KINDS] = {"F", "B", "I", "W", "F+B", "opt"};
    return letters[kind];
}

/* The microbatches of each kind, where there is room: "F 64-511  B 0-447". */
static void label_block(const struct sheet *sheet, int rank,
                        const struct schedule_boxes_block *block, double x, double width)
{
    char text[160] = "";
    size_t used = 0;
    for (int k = 0; k < CHART_KINDS; k++) {
        if (block->first[k] < 0)
            continue;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %d", used ? "   " : "",
                                 letters_of((enum chart_kind)k), block->first[k]);
        if (block->last[k] > block->first[k])
            used +=
                (size_t)snprintf(text + used, sizeof text - used, "\xe2\x80\x93%d", block->last[k]);
    }
    double font = fmin(SHEET_FONT, sheet->row - 2);
    if (used && draw_text_width(text, font) * 0.9 <= width)
        sheet_text(sheet, x + width / 2, sheet_y(sheet, rank) + sheet->row / 2, DRAW_CENTER, font,
                   SHEET_INK, text);
}

/* A band for each kind, as high as its share of the time; what is left is the bubble beneath. */
static void schedule_boxes_draw_block(const struct sheet *sheet, int rank,
                                      const struct schedule_boxes_block *block)
{
    double x = sheet_x(sheet, block->start_ns), y = sheet_y(sheet, rank);
    double width = sheet_x(sheet, block->end_ns) - x;
    double all_ns = (double)(block->end_ns - block->start_ns);
    for (int k = 0; all_ns > 0 && k < CHART_KINDS; k++) {
        char fill[PALETTE_COLOR];
        double height = sheet->row * (double)block->busy_ns[k] / all_ns;
        if (block->first[k] < 0)
            continue;
        palette_fill(sheet->options->palette, (enum chart_kind)k, 0, 1, fill);
        sheet_area(sheet, x, y, width, height, fill);
        y += height;
    }
    label_block(sheet, rank, block, x, width);
}

/* ---- a rank ---------------------------------------------------------------------------------- */

/* Passes from `*i` on that belong to one block: narrow, near one another, not much wider than BLOCK. */
static void schedule_boxes_take_block(const struct sheet *sheet, const struct chart_rank *rank,
                                      size_t *i, struct schedule_boxes_block *out)
{
    schedule_boxes_open_block(out, rank->passes[*i].start_ns);
    while (*i < rank->count && schedule_boxes_is_narrow(sheet, &rank->passes[*i])) {
        const struct chart_pass *pass = &rank->passes[*i];
        double end = sheet_x(sheet, out->end_ns);
        if (sheet_x(sheet, pass->start_ns) - end > NEAR ||
            end - sheet_x(sheet, out->start_ns) >= BLOCK)
            return;
        schedule_boxes_add_part(out, pass->kind, pass->microbatch, pass->end_ns - pass->start_ns);
        out->end_ns = pass->end_ns;
        (*i)++;
    }
}

void sheet_passes(const struct sheet *sheet, int r)
{
    ASSERT_INDEX(r, sheet->chart->rank_count);
    const struct chart_rank *rank = &sheet->chart->ranks[r];
    struct schedule_boxes_block last;
    bool open = false;
    for (size_t i = 0; i < rank->count;) {
        struct schedule_boxes_block next;
        if (!schedule_boxes_is_narrow(sheet, &rank->passes[i])) {
            draw_pass(sheet, r, &rank->passes[i++]);
            continue;
        }
        schedule_boxes_take_block(sheet, rank, &i, &next);
        if (open && schedule_boxes_are_alike(sheet, &last, &next)) {
            for (int k = 0; k < CHART_KINDS; k++)
                if (next.first[k] >= 0) {
                    schedule_boxes_add_part(&last, (enum chart_kind)k, next.first[k],
                                            next.busy_ns[k]);
                    schedule_boxes_add_part(&last, (enum chart_kind)k, next.last[k], 0);
                }
            last.end_ns = next.end_ns;
            continue;
        }
        if (open)
            schedule_boxes_draw_block(sheet, r, &last);
        last = next;
        open = true;
    }
    if (open)
        schedule_boxes_draw_block(sheet, r, &last);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* What ranks hold over time, its peak and its limit. */

enum { CURVES = 8, SWATCH = 14, STEP = 15, LABEL = 7 /* above a line */ };

static int64_t most_of(const struct chart_rank *rank)
{
    int64_t most = 0;
    for (size_t i = 0; i < rank->level_count; i++)
        most = rank->levels[i].bytes > most ? rank->levels[i].bytes : most;
    return most;
}

static int find_peak(const struct chart *chart)
{
    int peak = 0;
    for (int r = 1; r < chart->rank_count; r++)
        if (most_of(&chart->ranks[r]) > most_of(&chart->ranks[peak]))
            peak = r;
    return peak;
}

static void schedule_boxes_show_bytes(const struct chart *chart, double bytes, char out[UNITS_TEXT])
{
    if (chart->activation)
        snprintf(out, UNITS_TEXT, "%.3g", bytes / (double)chart->activation);
    else
        units_show_bytes(bytes, out);
}

/* From dark to light, rank 0 first. */
static void curve_color(const struct chart *chart, int rank, char out[PALETTE_COLOR])
{
    double share = chart->rank_count > 1 ? (double)rank / (chart->rank_count - 1) : 0;
    snprintf(out, PALETTE_COLOR, "#%02x%02x%02x", (unsigned)(0x1f + share * 0x90) & 0xff,
             (unsigned)(0x3a + share * 0x88) & 0xff, (unsigned)(0x5f + share * 0x80) & 0xff);
}

static double curve_pen(bool peak)
{
    return peak ? 1.6 : 0.9;
}

static double schedule_boxes_y_of(const struct sheet *sheet, double bytes, double top)
{
    return sheet->memory_top + sheet->memory_height * (1 - bytes / top);
}

/* The first level is that of the beginning. Steps to the right; what changes within half a point is one step to the most of it. */
static size_t trace_curve(const struct sheet *sheet, const struct chart_rank *rank, double top,
                          struct draw_point *out)
{
    size_t count = 0;
    double y = schedule_boxes_y_of(sheet, (double)rank->levels[0].bytes, top);
    out[count++] = (struct draw_point){SHEET_LEFT, y};
    for (size_t i = 1; i < rank->level_count; i++) {
        double x = sheet_x(sheet, rank->levels[i].time_ns);
        int64_t bytes = rank->levels[i].bytes;
        while (i + 1 < rank->level_count && sheet_x(sheet, rank->levels[i + 1].time_ns) - x < 0.5) {
            i++;
            bytes = rank->levels[i].bytes > bytes ? rank->levels[i].bytes : bytes;
        }
        out[count++] = (struct draw_point){x, y};
        y = schedule_boxes_y_of(sheet, (double)bytes, top);
        out[count++] = (struct draw_point){x, y};
    }
    out[count++] = (struct draw_point){SHEET_LEFT + sheet->grid_width, y};
    return count;
}

static void draw_curve(const struct sheet *sheet, int r, double top, bool peak)
{
    ASSERT_INDEX(r, sheet->chart->rank_count);
    const struct chart_rank *rank = &sheet->chart->ranks[r];
    struct draw_point *points =
        ARENA_ARRAY(sheet->arena, 2 * rank->level_count + 4, struct draw_point);
    char color[PALETTE_COLOR];
    if (!points)
        return; /* the arena says so at the end */
    double base = sheet->memory_top + sheet->memory_height;
    size_t count = trace_curve(sheet, rank, top, points);
    curve_color(sheet->chart, r, color);
    if (peak) {
        points[count] = (struct draw_point){points[count - 1].x_pt, base};
        points[count + 1] = (struct draw_point){SHEET_LEFT, base};
        draw_under(sheet->drawing,
                   &(struct draw_under){
                       .points = points, .count = count + 2, .color = "#e3ebf5", .filled = true});
    }
    draw_under(sheet->drawing,
               &(struct draw_under){
                   .points = points, .count = count, .color = color, .pen_pt = curve_pen(peak)});
}

/* A few ranks at even distances, the first and the last among them. */
static bool schedule_boxes_is_shown(const struct chart *chart, int rank)
{
    int last = chart->rank_count - 1;
    if (chart->rank_count <= CURVES)
        return true;
    for (int i = 0; i < CURVES; i++)
        if (rank == i * last / (CURVES - 1))
            return true;
    return false;
}

static void draw_curves(const struct sheet *sheet, double top, int peak)
{
    double y = sheet->memory_top + 5;
    draw_curve(sheet, peak, top, true);
    for (int r = 0; r < sheet->chart->rank_count; r++) {
        char color[PALETTE_COLOR], text[32];
        bool shown = schedule_boxes_is_shown(sheet->chart, r);
        if (!shown && r != peak)
            continue;
        if (shown && r != peak)
            draw_curve(sheet, r, top, false);
        curve_color(sheet->chart, r, color);
        double x = SHEET_LEFT + sheet->grid_width + 12;
        sheet_line(sheet, (struct draw_point){x, y}, (struct draw_point){x + SWATCH, y}, color,
                   curve_pen(r == peak));
        snprintf(text, sizeof text, r == peak ? "rank %d, the most" : "rank %d", r);
        sheet_text(sheet, x + SWATCH + 2, y, DRAW_LEFT, SHEET_FONT - 2, SHEET_INK, text);
        y += STEP - 2;
    }
}

/* A limit far above would flatten the curves: it is told instead. */
static void schedule_boxes_draw_limit(const struct sheet *sheet, double top)
{
    const struct chart *chart = sheet->chart;
    char bytes[UNITS_TEXT], text[64];
    double y = schedule_boxes_y_of(sheet, (double)chart->limit_bytes, top);
    schedule_boxes_show_bytes(chart, (double)chart->limit_bytes, bytes);
    snprintf(text, sizeof text, "limit %s", bytes);
    if ((double)chart->limit_bytes > top)
        y = sheet->memory_top - 6;
    else {
        const struct draw_point line[] = {{SHEET_LEFT, y}, {SHEET_LEFT + sheet->grid_width, y}};
        draw_under(
            sheet->drawing,
            &(struct draw_under){
                .points = line, .count = 2, .color = "#c0392b", .pen_pt = 1, .dashed = true});
    }
    sheet_text(sheet, SHEET_LEFT + sheet->grid_width - 2, y - LABEL, DRAW_RIGHT, SHEET_FONT - 2,
               "#c0392b", text);
}

static void draw_peak(const struct sheet *sheet, int peak, double top)
{
    ASSERT_INDEX(peak, sheet->chart->rank_count);
    const struct chart_rank *rank = &sheet->chart->ranks[peak];
    int64_t most = most_of(rank);
    char bytes[UNITS_TEXT], text[64];
    size_t at = 0;
    while (rank->levels[at].bytes < most)
        at++;
    double x = sheet_x(sheet, rank->levels[at].time_ns),
           y = schedule_boxes_y_of(sheet, (double)most, top);
    schedule_boxes_show_bytes(sheet->chart, (double)most, bytes);
    snprintf(text, sizeof text, "%s", bytes);
    double limit = schedule_boxes_y_of(sheet, (double)sheet->chart->limit_bytes, top);
    bool beneath = sheet->chart->limit_bytes > 0 && y - limit < 2 * LABEL && y > limit - 1;
    bool right = x < SHEET_LEFT + sheet->grid_width - 80;
    sheet_text(sheet, x + (right ? 2 : -2), y + (beneath ? LABEL : -LABEL),
               right ? DRAW_LEFT : DRAW_RIGHT, SHEET_FONT - 1, SHEET_INK, text);
}

void sheet_memory(const struct sheet *sheet)
{
    const struct chart *chart = sheet->chart;
    int peak = find_peak(chart);
    double most = (double)most_of(&chart->ranks[peak]), limit = (double)chart->limit_bytes;
    if (most <= 0)
        return;
    double top =
        (limit > most && limit <= 1.8 * most ? limit : fmax(most, limit <= most ? limit : 0)) * 1.2;
    double base = sheet->memory_top + sheet->memory_height;
    draw_curves(sheet, top, peak);
    sheet_line(sheet, (struct draw_point){SHEET_LEFT, base},
               (struct draw_point){SHEET_LEFT + sheet->grid_width, base}, SHEET_GREY, 0.6);
    if (limit > 0)
        schedule_boxes_draw_limit(sheet, top);
    draw_peak(sheet, peak, top);
    sheet_text(sheet, SHEET_LEFT - 6, base, DRAW_RIGHT, SHEET_FONT - 2, SHEET_INK, "0");
    sheet_text(sheet, SHEET_LEFT - 6, sheet->memory_top + sheet->memory_height / 2, DRAW_RIGHT,
               SHEET_FONT - 1, SHEET_INK, chart->activation ? "activations" : "memory");
}
