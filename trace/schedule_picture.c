/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_picture.c - see schedule_picture.h: where things stand, and what surrounds the passes. */
#include "schedule_picture.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "schedule_sheet.h"

enum {
    LEAST_WIDTH = 620,
    MOST_WIDTH = 1500,
    LEAST_GRID = 200,
    PASS_WIDTH = 22, /* wanted for a pass of usual length */
    LEAST_PASS = 5,  /* narrower ones are merged */
    TITLE = 18,
    TOP = 78,
    AXIS = 30,
    MEMORY = 96,
    BOTTOM = 14,
    HATCH = 5,
    TICKS = 9,
    ALL_LABELS = 24, /* ranks: of more every eighth has one */
    LABELLED = 8,
    KEY = 11,
    ARROW_RANKS = 16, /* more have no room for arrows */
    ARROW_WIDTH = 12, /* points from one arrow of a row to the next */
    HEAD = 3
};

/* ---- shapes ---------------------------------------------------------------------------------- */

void sheet_area(const struct sheet *sheet, double x, double y, double width, double height,
                const char *color)
{
    const struct draw_point corners[] = {
        {x, y}, {x + width, y}, {x + width, y + height}, {x, y + height}};
    draw_under(sheet->drawing,
               &(struct draw_under){.points = corners, .count = 4, .color = color, .filled = true});
}

void sheet_line(const struct sheet *sheet, struct draw_point from, struct draw_point to,
                const char *color, double pen_pt)
{
    const struct draw_point points[] = {from, to};
    draw_under(sheet->drawing, &(struct draw_under){
                                   .points = points, .count = 2, .color = color, .pen_pt = pen_pt});
}

void sheet_text(const struct sheet *sheet, double x, double y, enum draw_align align,
                double font_pt, const char *color, const char *text)
{
    draw_text(sheet->drawing, &(struct draw_text){.x_pt = x,
                                                  .y_pt = y,
                                                  .align = align,
                                                  .text = text,
                                                  .color = color,
                                                  .font_pt = font_pt});
}

/* Lines at 45 degrees, x + y = d, cut at the sides. */
void sheet_hatch(const struct sheet *sheet, double x, double y, double width, double height)
{
    sheet_area(sheet, x, y, width, height, "#fafafa");
    for (double d = HATCH; d < width + height; d += HATCH) {
        double right = fmin(d, width), left = fmax(0, d - height);
        sheet_line(sheet, (struct draw_point){x + left, y + d - left},
                   (struct draw_point){x + right, y + d - right}, "#cfcfcf", 0.5);
    }
}

/* ---- the grid -------------------------------------------------------------------------------- */

static double row_height(int ranks)
{
    return ranks <= 8 ? 26 : ranks <= 16 ? 20 : ranks <= 32 ? 15 : 11;
}

static double row_gap(int ranks)
{
    return ranks <= 8 ? 9 : ranks <= 16 ? 6 : 2;
}

static double usual_pass(const struct chart *chart)
{
    double sum = 0, count = 0;
    for (int r = 0; r < chart->rank_count; r++)
        for (size_t i = 0; i < chart->ranks[r].count; i++) {
            const struct chart_pass *pass = &chart->ranks[r].passes[i];
            sum += (double)(pass->end_ns - pass->start_ns);
            count++;
        }
    return count > 0 && sum > 0 ? sum / count : (double)chart->end_ns;
}

/* Below `head`; the width of the grid is known. */
static void lay_out(struct sheet *sheet, double head)
{
    const struct chart *chart = sheet->chart;
    sheet->head = head;
    sheet->top = head + TOP;
    sheet->row = row_height(chart->rank_count);
    sheet->gap = row_gap(chart->rank_count);
    double usual = sheet->grid_width * usual_pass(chart) / (double)sheet->end_ns;
    sheet->narrow = usual < LEAST_PASS ? 2.5 * usual : 0;
    sheet->memory_top = sheet_bottom(sheet) + AXIS + 8;
    sheet->memory_height = MEMORY;
    sheet->bottom = sheet->memory_top + MEMORY + BOTTOM;
}

static void draw_ranks(const struct sheet *sheet)
{
    int count = sheet->chart->rank_count;
    for (int r = 0; r < count; r++) {
        char text[32];
        if (count > ALL_LABELS && r % LABELLED != 0 && r != count - 1)
            continue;
        snprintf(text, sizeof text, "rank %d", r);
        sheet_text(sheet, SHEET_LEFT - 6, sheet_y(sheet, r) + sheet->row / 2, DRAW_RIGHT,
                   fmin(SHEET_FONT, sheet->row - 1), SHEET_INK, text);
    }
}

/* 1, 2 or 5 times a power of ten, in `unit`. */
static double find_step(double all)
{
    double step = pow(10, floor(log10(all / TICKS)));
    while (all / step > TICKS)
        step *= all / (2 * step) <= TICKS ? 2 : all / (5 * step) <= TICKS ? 5 : 10;
    return step;
}

static void schedule_picture_draw_axis(const struct sheet *sheet)
{
    const struct chart *chart = sheet->chart;
    double bottom = sheet_bottom(sheet) + 3, unit = chart->unit_ns ? (double)chart->unit_ns : 1;
    double all = (double)sheet->end_ns / unit, step = find_step(all);
    sheet_line(sheet, (struct draw_point){SHEET_LEFT, bottom},
               (struct draw_point){SHEET_LEFT + sheet->grid_width, bottom}, SHEET_GREY, 0.6);
    for (int i = 0; i * step <= all * 1.0001; i++) {
        char text[UNITS_TEXT];
        double x = sheet_x(sheet, (int64_t)(i * step * unit));
        if (chart->unit_ns)
            snprintf(text, sizeof text, "%.6g", i * step);
        else
            units_show_time(i * step, text);
        sheet_line(sheet, (struct draw_point){x, bottom}, (struct draw_point){x, bottom + 4},
                   SHEET_GREY, 0.6);
        sheet_text(sheet, x, bottom + 11, DRAW_CENTER, SHEET_FONT - 2, SHEET_INK, i ? text : "0");
    }
    if (chart->unit_ns)
        sheet_text(sheet, SHEET_LEFT - 14, bottom + 11, DRAW_RIGHT, SHEET_FONT - 2, SHEET_INK,
                   "F = 1");
}

/* ---- messages -------------------------------------------------------------------------------- */

/* True if there is room for arrows. */
static bool shows_messages(const struct sheet *sheet)
{
    const struct chart *chart = sheet->chart;
    return !sheet->options->no_messages && chart->message_count > 0 &&
           chart->rank_count <= ARROW_RANKS &&
           (double)chart->message_count * ARROW_WIDTH <
               2 * sheet->grid_width * (chart->rank_count > 1 ? chart->rank_count - 1 : 1);
}

static void draw_head(const struct sheet *sheet, struct draw_point from, struct draw_point to)
{
    double dx = to.x_pt - from.x_pt, dy = to.y_pt - from.y_pt, length = hypot(dx, dy);
    if (length < 1)
        return;
    dx *= HEAD / length;
    dy *= HEAD / length;
    const struct draw_point points[] = {to,
                                        {to.x_pt - dx - dy / 2, to.y_pt - dy + dx / 2},
                                        {to.x_pt - dx + dy / 2, to.y_pt - dy - dx / 2}};
    draw_under(
        sheet->drawing,
        &(struct draw_under){.points = points, .count = 3, .color = SHEET_GREY, .filled = true});
}

/* From the edge of one row to that of the other. */
static void draw_messages(const struct sheet *sheet)
{
    const struct chart *chart = sheet->chart;
    for (size_t i = 0; shows_messages(sheet) && i < chart->message_count; i++) {
        const struct chart_message *message = &chart->messages[i];
        bool down = message->to > message->from;
        struct draw_point from = {sheet_x(sheet, message->start_ns),
                                  sheet_y(sheet, message->from) + (down ? sheet->row : 0)},
                          to = {sheet_x(sheet, message->end_ns),
                                sheet_y(sheet, message->to) + (down ? 0 : sheet->row)};
        sheet_line(sheet, from, to, SHEET_GREY, 0.6);
        draw_head(sheet, from, to);
    }
}

/* ---- words ----------------------------------------------------------------------------------- */

static void schedule_picture_draw_title(const struct sheet *sheet)
{
    const struct chart *chart = sheet->chart;
    char caption[CHART_CAPTION];
    draw_text(sheet->drawing, &(struct draw_text){.x_pt = SHEET_LEFT - 4,
                                                  .y_pt = sheet->head + TITLE,
                                                  .text = chart->title,
                                                  .color = SHEET_INK,
                                                  .font_pt = SHEET_FONT + 4,
                                                  .bold = true});
    sheet_text(sheet, SHEET_LEFT - 4, sheet->head + TITLE + 19, DRAW_LEFT, SHEET_FONT, SHEET_GREY,
               chart_caption(chart, caption));
}

static bool schedule_picture_has_kind(const struct chart *chart, enum chart_kind kind)
{
    for (int r = 0; r < chart->rank_count; r++)
        for (size_t i = 0; i < chart->ranks[r].count; i++)
            if (chart->ranks[r].passes[i].kind == kind)
                return true;
    return false;
}

/* A swatch and a word; returns where the next begins. */
static double end_key(const struct sheet *sheet, double x, double y, const char *words)
{
    sheet_text(sheet, x + KEY + 4, y + KEY / 2.0, DRAW_LEFT, SHEET_FONT - 1, SHEET_INK, words);
    return x + KEY + 18 + 0.9 * draw_text_width(words, SHEET_FONT - 1);
}

static double draw_key(const struct sheet *sheet, double x, double y, enum chart_kind kind,
                       const char *words)
{
    char fill[PALETTE_COLOR], border[PALETTE_COLOR], lower[PALETTE_COLOR];
    bool overlap = kind == CHART_OVERLAP,
         split = overlap && sheet->options->palette != PALETTE_PYTORCH;
    palette_fill(sheet->options->palette, kind, 0, 1, fill);
    palette_border(fill, border);
    if (split) {
        palette_fill(sheet->options->palette, CHART_B, 0, 1, lower);
        sheet_area(sheet, x, y, KEY, KEY / 2.0, fill);
        sheet_area(sheet, x, y + KEY / 2.0, KEY, KEY / 2.0, lower);
    }
    draw_box(sheet->drawing, &(struct draw_box){.x_pt = x,
                                                .y_pt = y,
                                                .width_pt = KEY,
                                                .height_pt = KEY,
                                                .fill = split ? NULL : fill,
                                                .border = overlap ? SHEET_INK : border,
                                                .pen_pt = overlap ? 1.4 : 0.5});
    return end_key(sheet, x, y, words);
}

/* Chunks are shades. */
static double draw_shades(const struct sheet *sheet, double x, double y)
{
    char text[48];
    int chunks = sheet->chart->chunks, shown = chunks < 4 ? chunks : 4;
    for (int i = 0; i < shown; i++) {
        char fill[PALETTE_COLOR], border[PALETTE_COLOR];
        int chunk = shown > 1 ? i * (chunks - 1) / (shown - 1) : 0;
        palette_fill(sheet->options->palette, CHART_F, chunk, chunks, fill);
        palette_border(fill, border);
        draw_box(sheet->drawing, &(struct draw_box){.x_pt = x + i * KEY,
                                                    .y_pt = y,
                                                    .width_pt = KEY,
                                                    .height_pt = KEY,
                                                    .fill = fill,
                                                    .border = border,
                                                    .pen_pt = 0.5});
    }
    snprintf(text, sizeof text, "%s 0 %s %d", sheet->chart->copies ? "copies" : "chunks",
             chunks == 2 ? "and" : "to", chunks - 1);
    return end_key(sheet, x + (shown - 1) * KEY, y, text);
}

static void draw_keys(const struct sheet *sheet)
{
    static const char *const words[] = {
#define X(name, text) text,
        CHART_KIND_LIST(X)
#undef X
    };
    double x = SHEET_LEFT, y = sheet->head + TITLE + 34;
    for (int k = 0; k < CHART_KINDS; k++)
        if (schedule_picture_has_kind(sheet->chart, (enum chart_kind)k))
            x = draw_key(sheet, x, y, (enum chart_kind)k, words[k]);
    if (sheet->chart->chunks > 1 && sheet->narrow <= 0) /* blocks have no shades */
        x = draw_shades(sheet, x, y);
    sheet_hatch(sheet, x, y, KEY, KEY);
    x = end_key(sheet, x, y, "bubble");
    if (!shows_messages(sheet))
        return;
    struct draw_point from = {x, y + 1}, to = {x + KEY, y + KEY - 1};
    sheet_line(sheet, from, to, SHEET_GREY, 0.6);
    draw_head(sheet, from, to);
    end_key(sheet, x, y, "message");
}

/* ---- all of it ------------------------------------------------------------------------------- */

struct schedule_picture_request {
    const struct chart *charts;
    size_t count;
    const struct schedule_picture_options *options;
};

static void draw_chart(const struct sheet *sheet)
{
    /* Hatched rows with white between them. */
    double bottom = sheet_bottom(sheet), width = sheet_x(sheet, sheet->chart->end_ns) - SHEET_LEFT;
    sheet_hatch(sheet, SHEET_LEFT, sheet->top, width, bottom - sheet->top);
    for (int r = 0; r + 1 < sheet->chart->rank_count; r++)
        sheet_area(sheet, SHEET_LEFT - 1, sheet_y(sheet, r) + sheet->row, width + 2, sheet->gap,
                   "#ffffff");
    draw_messages(sheet);
    schedule_picture_draw_title(sheet);
    draw_keys(sheet);
    draw_ranks(sheet);
    for (int r = 0; r < sheet->chart->rank_count; r++)
        sheet_passes(sheet, r);
    schedule_picture_draw_axis(sheet);
    sheet_memory(sheet);
}

/* As wide as the passes of the charts need. */
static double find_width(const struct schedule_picture_request *request, int64_t end_ns)
{
    double wanted = LEAST_WIDTH, sides = SHEET_LEFT + SHEET_RIGHT;
    if (request->options->width_pt > 0)
        return fmax(request->options->width_pt - sides, LEAST_GRID);
    for (size_t i = 0; i < request->count; i++)
        wanted = fmax(wanted, PASS_WIDTH * (double)end_ns / usual_pass(&request->charts[i]));
    return fmin(wanted, MOST_WIDTH);
}

static bool make_sheets(const struct schedule_picture_request *request, struct arena *arena,
                        struct sheet **out)
{
    struct sheet *sheets = ARENA_ARRAY(arena, request->count, struct sheet);
    double head = 0;
    int64_t end_ns = 1;
    for (size_t i = 0; i < request->count; i++)
        end_ns = request->charts[i].end_ns > end_ns ? request->charts[i].end_ns : end_ns;
    double width = find_width(request, end_ns);
    for (size_t i = 0; sheets && i < request->count; i++) {
        sheets[i] = (struct sheet){.chart = &request->charts[i],
                                   .options = request->options,
                                   .arena = arena,
                                   .end_ns = end_ns,
                                   .grid_width = width};
        lay_out(&sheets[i], head);
        head = sheets[i].bottom;
    }
    *out = sheets;
    return sheets != NULL;
}

static enum status draw_sheets(const struct schedule_picture_request *request,
                               const struct draw_target *target, struct arena *arena, char **data,
                               size_t *bytes, struct diag *diag)
{
    struct sheet *sheets;
    struct drawing *drawing;
    if (!make_sheets(request, arena, &sheets))
        return diag_no_memory(diag);
    double width = SHEET_LEFT + sheets->grid_width + SHEET_RIGHT;
    enum status status =
        draw_open_clear(target, width, sheets[request->count - 1].bottom, &drawing, diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < request->count; i++) {
        sheets[i].drawing = drawing;
        draw_chart(&sheets[i]);
    }
    status = arena->failed ? diag_no_memory(diag) : draw_finish(drawing, data, bytes, diag);
    draw_close(drawing);
    return status;
}

static enum status schedule_picture_draw_body_of(void *context, const struct draw_target *target,
                                                 char **data, size_t *bytes, struct diag *diag)
{
    struct arena arena;
    arena_init(&arena, 0);
    enum status status = draw_sheets(context, target, &arena, data, bytes, diag);
    arena_fini(&arena);
    return status;
}

enum status schedule_picture_render(const struct chart *charts, size_t count,
                                    const struct schedule_picture_options *options,
                                    const struct draw_target *target, struct diag *diag)
{
    struct schedule_picture_options shown = *options;
    struct schedule_picture_request request = {charts, count, &shown};
    if (target->look.grey)
        shown.palette = PALETTE_GREY;
    if (target->look.scale > 0)
        shown.width_pt /= target->look.scale;
    return draw_picture(target, schedule_picture_draw_body_of, &request, diag);
}
