/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draw.h - pictures through libcgraph and libgvc: one Agraph, written as DOT, SVG or PNG. A placed drawing as SVG needs
 * neither (svg.h).
 *
 * Two kinds of drawing. A *placed* one is a sheet of points, x to the right and y down from its top
 * left corner, on which boxes, texts and arrows stand where they are put; its DOT text carries
 * `layout=nop2`, so that a plain `dot -Tsvg` draws it alike. A *layered* one is a graph of nodes in
 * clusters that the dot engine lays out. Placed boxes snap to whole points.
 *
 * A drawing owns its graph and copies every text. Texts are taken as they are: nothing in them is
 * an escape. Colours are "#rrggbb" or "#rrggbbaa". When memory runs out draw_finish fails; the
 * other functions need no check. The libraries may also end the process then: draw_picture draws in another one.
 * cgraph keeps state in the process, so one thread at a time may draw.
 */
#ifndef SWSIM_DRAW_H
#define SWSIM_DRAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/diag.h"
#include "base/status.h"

#include "look.h"

struct drawing;
struct draw_node;    /* a box or a node; lives as long as the drawing */
struct draw_cluster; /* likewise */

/* BY_NAME: the extension of the path says it. */
enum draw_format { DRAW_BY_NAME, DRAW_DOT, DRAW_SVG, DRAW_PNG, DRAW_PDF };

/* The place of a picture, and its look. */
struct draw_target {
    const char *path;
    FILE *
        stream; /* NULL: the file at `path`, which is written whole or not at all; else to be written to */
    enum draw_format format;
    struct look look;
};

/* The format that the extension of `path` names: .dot or .gv, .svg, .png, .pdf. STATUS_USAGE otherwise.
 */
enum status draw_format_of(const char *path, enum draw_format *out, struct diag *diag);

enum status draw_open_placed(const struct draw_target *target, double width_pt, double height_pt,
                             struct drawing **out, struct diag *diag);
/* The same without boxes for a sheet: what is drawn under boxes (draw_under) shows. */
enum status draw_open_clear(const struct draw_target *target, double width_pt, double height_pt,
                            struct drawing **out, struct diag *diag);
/* Layers from left to right, or `down` from top to bottom. */
enum status draw_open_layered(const struct draw_target *target, const char *title, bool down,
                              struct drawing **out, struct diag *diag);
void draw_close(struct drawing *drawing);

/* The bytes of the picture; freed by nobody, since the process that draws ends afterwards. */
enum status draw_finish(struct drawing *drawing, char **data, size_t *bytes, struct diag *diag);

/* Opens a drawing, draws, and finishes it. */
typedef enum status draw_body(void *context, const struct draw_target *target, char **data,
                              size_t *bytes, struct diag *diag);

/* Let `body` draw, in a process of its own (apart.h), and write the picture whole or not at all (base/output.h). Changes that `body` makes in `context` are lost. */
enum status draw_picture(const struct draw_target *target, draw_body *body, void *context,
                         struct diag *diag);

/* ---- placed ---------------------------------------------------------------------------------- */

enum draw_align { DRAW_LEFT, DRAW_CENTER, DRAW_RIGHT };

/* NULL or 0: no label, no tooltip, no fill, no border. */
struct draw_box {
    double x_pt, y_pt, width_pt, height_pt; /* top left corner and size */
    const char *fill, *border;
    double pen_pt; /* of the border; 0: thin */
    const char *label, *text_color;
    double font_pt;
    const char *tooltip;
};

struct draw_text {
    double x_pt, y_pt; /* the point that `align` refers to; y is the middle of the line */
    enum draw_align align;
    const char *text, *color;
    double font_pt;
    bool bold;
};

struct draw_point {
    double x_pt, y_pt;
};

/* A line through points, or what they enclose if `filled`, under all boxes, in the order of the calls. It costs little in
   the picture, and has neither label nor tooltip. */
struct draw_under {
    const struct draw_point *points;
    size_t count;
    const char *color;
    double pen_pt;
    bool filled, dashed;
};
void draw_under(struct drawing *drawing, const struct draw_under *under);

/* A curve that leaves `from` and reaches `to` vertically. */
struct draw_arrow {
    struct draw_node *from, *to;
    double from_x_pt, from_y_pt, to_x_pt, to_y_pt;
    const char *color;
    bool dashed;
};

/* A curve to the right of two boxes, from the right side of one to that of the other. */
struct draw_arc {
    struct draw_node *from, *to;
    double x_pt, from_y_pt, to_y_pt; /* of the sides */
    double bulge_pt;                 /* how far it leads away */
    double pen_pt;
    const char *color;
    bool dashed;
};

struct draw_node *draw_box(struct drawing *drawing, const struct draw_box *box);
void draw_text(struct drawing *drawing, const struct draw_text *text);
/* One that begins at `x_pt`; NULL is no text. */
void draw_line(struct drawing *drawing, double x_pt, double y_pt, const char *text,
               const char *color, double font_pt);
void draw_arrow(struct drawing *drawing, const struct draw_arrow *arrow);
void draw_arc(struct drawing *drawing, const struct draw_arc *arc);

/* The approximate width of a text, rather too wide: fonts differ between machines. */
double draw_text_width(const char *text, double font_pt);

/* A colour for the n-th of several things, told apart by colour-blind readers too and light enough
   for dark text; its border a darker shade. They repeat after DRAW_COLORS. */
enum { DRAW_COLORS = 18 };
const char *draw_fill(int n);
const char *draw_border(int n);

/* ---- layered --------------------------------------------------------------------------------- */

struct draw_cluster *draw_cluster(struct drawing *drawing, const char *label);
/* `cluster` may be NULL. Lines of the label are separated by '\n'. */
struct draw_node *draw_node(struct drawing *drawing, struct draw_cluster *cluster,
                            const char *label, const char *tooltip, const char *fill,
                            const char *border);
/* A dashed edge does not pull its ends into different layers. */
void draw_edge(struct drawing *drawing, struct draw_node *from, struct draw_node *to,
               const char *label, bool dashed);

#endif
