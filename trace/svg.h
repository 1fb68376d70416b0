/* SPDX-License-Identifier: Apache-2.0 */
/*
 * svg.h - placed drawings as SVG, without Graphviz: boxes, texts and curves become elements as they come.
 *
 * Lengths are points, x to the right and y down. Colours are "#rrggbb", "#rrggbbaa" or NULL for none. What is under boxes is
 * written first, arrows last. When memory runs out svg_close returns NULL; the other functions need no check.
 */
#ifndef SWSIM_SVG_H
#define SWSIM_SVG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text_stream.h"

enum svg_layer { SVG_UNDER, SVG_BOXES, SVG_ARROWS, SVG_LAYERS };

struct svg {
    double width, height;
    struct text_stream layers[SVG_LAYERS];
    bool failed;
};

void svg_open(struct svg *svg, double width, double height);
/* The whole file, to be freed, and the streams are closed; `ground`: the colour of the sheet. NULL: no memory. */
char *svg_close(struct svg *svg, const char *ground, size_t *bytes);

struct svg_pen {
    const char *color;
    double width;
    bool dashed;
};

struct svg_text {
    double x, y; /* y is the middle of its lines, which '\n' separates */
    int align;   /* enum draw_align */
    const char *text, *color;
    double font;
    bool bold;
};

/* Between the two, a box with the words that show where a pointer rests on it; NULL: no words, and svg_end_box does nothing. */
void svg_begin_box(struct svg *svg, const char *tooltip);
void svg_box(struct svg *svg, double left, double top, double right, double bottom,
             const char *fill, const struct svg_pen *pen);
void svg_text(struct svg *svg, const struct svg_text *text);
void svg_end_box(struct svg *svg, const char *tooltip);

/* A line through points (x, y, x, y, ...), or what they enclose if `fill`. */
void svg_points(struct svg *svg, const double *points, size_t count, bool fill,
                const struct svg_pen *pen);
/* A cubic curve: its begin, two controls, its end (x, y each), with a head that ends at `tip`. */
void svg_arrow(struct svg *svg, const double curve[8], const double tip[2], double head,
               const struct svg_pen *pen);

#endif
