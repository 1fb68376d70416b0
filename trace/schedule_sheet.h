/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule_sheet.h - shared by the parts of a schedule's picture: where things stand, and how they are drawn.
 */
#ifndef SWSIM_SCHEDULE_SHEET_H
#define SWSIM_SCHEDULE_SHEET_H

#include "draw.h"
#include "schedule_picture.h"

#include "base/arena.h"
#include "base/units.h"

#define SHEET_INK   "#1a1a1a"
#define SHEET_GREY  "#767676"
#define SHEET_FAINT "#d9d9d9"

enum { SHEET_LEFT = 62, SHEET_RIGHT = 118, SHEET_FONT = 11 };

struct sheet {
    const struct chart *chart;
    const struct schedule_picture_options *options;
    struct drawing *drawing;
    struct arena *arena;
    int64_t end_ns;       /* of the time axis, which all charts share */
    double head;          /* where its title begins */
    double bottom;        /* where it ends */
    double grid_width;    /* of the time axis */
    double top, row, gap; /* of the first row; height of a row and of what is between two */
    double narrow;        /* passes narrower than this are merged */
    double memory_top, memory_height;
};

static inline double sheet_x(const struct sheet *sheet, int64_t time_ns)
{
    return SHEET_LEFT + sheet->grid_width * (double)time_ns / (double)sheet->end_ns;
}

static inline double sheet_y(const struct sheet *sheet, int rank)
{
    return sheet->top + rank * (sheet->row + sheet->gap);
}

static inline double sheet_bottom(const struct sheet *sheet)
{
    return sheet_y(sheet, sheet->chart->rank_count) - sheet->gap;
}

/* The colours of passes (schedule_boxes.c). */

enum { PALETTE_COLOR = sizeof "#rrggbb" };

/* "#rrggbb": the colour of a kind; the chunks of a rank are shades of it, the first is the darkest. */
void palette_fill(enum palette palette, enum chart_kind kind, int chunk, int chunks,
                  char out[PALETTE_COLOR]);
/* A darker shade of a colour, for its border. */
void palette_border(const char *fill, char out[PALETTE_COLOR]);
/* Black or white, whichever is easier to read on it. */
const char *palette_ink(const char *fill);

/* A filled rectangle under the boxes; a line; a text whose middle line is `y`. */
void sheet_area(const struct sheet *sheet, double x, double y, double width, double height,
                const char *color);
void sheet_line(const struct sheet *sheet, struct draw_point from, struct draw_point to,
                const char *color, double pen_pt);
void sheet_text(const struct sheet *sheet, double x, double y, enum draw_align align,
                double font_pt, const char *color, const char *text);
/* Diagonal lines within a rectangle: bubbles. */
void sheet_hatch(const struct sheet *sheet, double x, double y, double width, double height);

/* The passes of a rank: boxes, and blocks of those that are too narrow (schedule_boxes.c). */
void sheet_passes(const struct sheet *sheet, int rank);

/* The bytes that ranks hold, with the time axis above them. */
void sheet_memory(const struct sheet *sheet);

#endif
