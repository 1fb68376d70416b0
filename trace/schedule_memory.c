/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_memory.c - see schedule_sheet.h: what ranks hold over time, its peak and its limit. */
#include "schedule_sheet.h"

#include <math.h>
#include <stdio.h>

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

static void show_bytes(const struct chart *chart, double bytes, char out[UNITS_TEXT])
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

static double y_of(const struct sheet *sheet, double bytes, double top)
{
    return sheet->memory_top + sheet->memory_height * (1 - bytes / top);
}

/* The first level is that of the beginning. Steps to the right; what changes within half a point is one step to the most of it. */
static size_t trace_curve(const struct sheet *sheet, const struct chart_rank *rank, double top,
                          struct draw_point *out)
{
    size_t count = 0;
    double y = y_of(sheet, (double)rank->levels[0].bytes, top);
    out[count++] = (struct draw_point){SHEET_LEFT, y};
    for (size_t i = 1; i < rank->level_count; i++) {
        double x = sheet_x(sheet, rank->levels[i].time_ns);
        int64_t bytes = rank->levels[i].bytes;
        while (i + 1 < rank->level_count && sheet_x(sheet, rank->levels[i + 1].time_ns) - x < 0.5) {
            i++;
            bytes = rank->levels[i].bytes > bytes ? rank->levels[i].bytes : bytes;
        }
        out[count++] = (struct draw_point){x, y};
        y = y_of(sheet, (double)bytes, top);
        out[count++] = (struct draw_point){x, y};
    }
    out[count++] = (struct draw_point){SHEET_LEFT + sheet->grid_width, y};
    return count;
}

static void draw_curve(const struct sheet *sheet, int r, double top, bool peak)
{
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
static bool is_shown(const struct chart *chart, int rank)
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
        bool shown = is_shown(sheet->chart, r);
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
static void draw_limit(const struct sheet *sheet, double top)
{
    const struct chart *chart = sheet->chart;
    char bytes[UNITS_TEXT], text[64];
    double y = y_of(sheet, (double)chart->limit_bytes, top);
    show_bytes(chart, (double)chart->limit_bytes, bytes);
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
    const struct chart_rank *rank = &sheet->chart->ranks[peak];
    int64_t most = most_of(rank);
    char bytes[UNITS_TEXT], text[64];
    size_t at = 0;
    while (rank->levels[at].bytes < most)
        at++;
    double x = sheet_x(sheet, rank->levels[at].time_ns), y = y_of(sheet, (double)most, top);
    show_bytes(sheet->chart, (double)most, bytes);
    snprintf(text, sizeof text, "%s", bytes);
    double limit = y_of(sheet, (double)sheet->chart->limit_bytes, top);
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
        draw_limit(sheet, top);
    draw_peak(sheet, peak, top);
    sheet_text(sheet, SHEET_LEFT - 6, base, DRAW_RIGHT, SHEET_FONT - 2, SHEET_INK, "0");
    sheet_text(sheet, SHEET_LEFT - 6, sheet->memory_top + sheet->memory_height / 2, DRAW_RIGHT,
               SHEET_FONT - 1, SHEET_INK, chart->activation ? "activations" : "memory");
}
