/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draw.c - see draw.h.
 *
 * A placed drawing that becomes SVG is written by svg.c, with `graph` NULL. Else the graph is built with attributes only; libgvc turns it into SVG or PNG in memory, and one
 * function writes the result to the file, so that a full disk is an ordinary error. Boxes
 * are nodes, drawn in the order they were made (outputorder=nodesfirst), arrows are edges with
 * their spline given. draw_node and draw_cluster are Agnode_t and Agraph_t under another name.
 */
#include "draw.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "base/system_words.h"
#include "base/text_stream.h"

#include "apart.h"
#include "graphviz.h"
#include "svg.h"
#include "whole.h"
#include "base/columns.h"
#include "base/printable.h"

enum { POINTS_PER_INCH = 72, MAX_ATTRIBUTE = 512 };

static const char png_dpi[] = "144";

/* Where nothing else is said: of borders, of arrows and their heads. */
#define THIN_PT    0.5
#define ARROW_PT   0.7
#define ARROW_HEAD 0.4

struct drawing {
    struct graphviz gv;
    Agraph_t *graph; /* NULL: `svg` is drawn */
    struct svg svg;
    double height_pt; /* of a placed drawing */
    enum draw_format format;
    struct look look;
    double scale;
    const char *engine;
    unsigned nodes, clusters; /* to name them */
    bool failed;              /* out of memory */
    struct text_stream
        under; /* what is drawn under boxes, in the language of xdot; out NULL: nothing */
};

/* ---- attributes ------------------------------------------------------------------------------ */

/* cgraph takes char * for names and values and changes neither. */
static char *unconst(const char *text)
{
    return (char *)(uintptr_t)text;
}

/* All that reaches a picture goes through here. */
static void draw_set(struct drawing *drawing, void *object, const char *name, const char *value)
{
    struct arena arena;
    char color[LOOK_COLOR];
    arena_init(&arena, 0);
    const size_t length = strlen(name), end = strlen("color");
    if (length >= end && strcmp(name + length - end, "color") == 0)
        value = look_color(&drawing->look, strcmp(name, "fillcolor") == 0 ? LOOK_AREA : LOOK_INK,
                           value, color);
    const char *shown = printable_text(&arena, value, false);
    if (!shown || (object && drawing->gv.agsafeset(object, unconst(name), unconst(shown), "") != 0))
        drawing->failed = true;
    arena_fini(&arena);
}

__attribute__((format(printf, 4, 5))) static void setf(struct drawing *drawing, void *object,
                                                       const char *name, const char *format, ...)
{
    char value[MAX_ATTRIBUTE];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(value, sizeof value, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= sizeof value)
        drawing->failed = true;
    else
        draw_set(drawing, object, name, value);
}

/* Set a text that Graphviz would search for escapes and entities: both are made harmless.
   `line_end` follows every line ("\\l" to align it left), NULL: only between lines. */
static void draw_set_text(struct drawing *drawing, void *object, const char *name, const char *text,
                          const char *line_end)
{
    struct arena arena;
    arena_init(&arena, 0);
    text = printable_text(&arena, text, true);
    size_t longest = strlen("&#92;"), end = line_end ? strlen(line_end) : strlen("\\n");
    char *safe = text ? arena_alloc(&arena, strlen(text) * (longest + end) + end + 1) : NULL;
    if (!safe) {
        arena_fini(&arena);
        drawing->failed = true;
        return;
    }
    char *out = safe;
    for (; *text; text++) {
        if (*text == '\\')
            out = stpcpy(out, "\\\\");
        else if (*text == '&')
            out = stpcpy(out, "&amp;");
        else if (*text == '\n')
            out = stpcpy(out, line_end ? line_end : "\\n");
        else
            *out++ = *text;
    }
    *out = '\0';
    if (line_end)
        stpcpy(out, line_end);
    draw_set(drawing, object, name, safe);
    arena_fini(&arena);
}

/* A default for all nodes or edges: keeps the DOT text short. */
static void set_default(struct drawing *drawing, int kind, const char *name, const char *value)
{
    if (!drawing->gv.agattr(drawing->graph, kind, unconst(name), unconst(value)))
        drawing->failed = true;
}

static void set_default_number(struct drawing *drawing, int kind, const char *name, double value)
{
    char text[32];
    snprintf(text, sizeof text, "%g", value);
    set_default(drawing, kind, name, text);
}

/* The ground of a picture that is not white, and of fonts the size. */
static void set_ground(struct drawing *drawing)
{
    char color[LOOK_COLOR];
    const char *ground = look_color(&drawing->look, LOOK_AREA, "#ffffff", color);
    if (ground == color)
        set_default(drawing, AGRAPH, "bgcolor", ground);
}

static void set_font(struct drawing *drawing, int kind, double font_pt, const char *font_color)
{
    char size[32], color[LOOK_COLOR];
    snprintf(size, sizeof size, "%g", drawing->scale * font_pt);
    set_default(drawing, kind, "fontsize", size);
    set_default(drawing, kind, "fontcolor",
                look_color(&drawing->look, LOOK_INK, font_color, color));
}

/* ---- opening and closing --------------------------------------------------------------------- */

static struct drawing *new_drawing(const struct draw_target *target)
{
    struct drawing *drawing = calloc(1, sizeof *drawing);
    if (!drawing)
        return NULL;
    drawing->format = target->format;
    drawing->look = target->look;
    drawing->scale = target->look.scale > 0 ? target->look.scale : 1;
    return drawing;
}

static enum status open_graph(const struct draw_target *target, const char *engine,
                              struct drawing **out, struct diag *diag)
{
    struct graphviz gv;
    enum status status = graphviz_load(&gv, diag);
    if (status != STATUS_OK)
        return status;
    struct drawing *drawing = new_drawing(target);
    if (!drawing)
        return diag_no_memory(diag);
    drawing->gv = gv;
    drawing->engine = engine;
    drawing->graph = gv.agopen(unconst("swsim"), *gv.Agdirected, NULL);
    if (!drawing->graph) {
        free(drawing);
        return diag_no_memory(diag);
    }
    set_default(drawing, AGRAPH, "layout", engine);
    set_default(drawing, AGRAPH, "fontname", "Helvetica");
    set_default(drawing, AGRAPH, "bgcolor", "white");
    set_default(drawing, AGNODE, "fontname", "Helvetica");
    set_default(drawing, AGNODE, "shape", "box");
    set_default(drawing, AGEDGE, "fontname", "Helvetica");
    set_default_number(drawing, AGEDGE, "arrowsize", ARROW_HEAD);
    set_default_number(drawing, AGEDGE, "penwidth", ARROW_PT);
    *out = drawing;
    return STATUS_OK;
}

static enum status open_svg(const struct draw_target *target, double width_pt, double height_pt,
                            struct drawing **out, struct diag *diag)
{
    struct drawing *drawing = new_drawing(target);
    if (!drawing)
        return diag_no_memory(diag);
    drawing->height_pt = height_pt;
    svg_open(&drawing->svg, ceil(drawing->scale * width_pt), ceil(drawing->scale * height_pt));
    *out = drawing;
    return STATUS_OK;
}

static enum status open_placed(const struct draw_target *target, double width_pt, double height_pt,
                               const char *sheet, struct drawing **out, struct diag *diag)
{
    struct drawing *drawing = NULL;
    if (target->format == DRAW_SVG)
        return open_svg(target, width_pt, height_pt, out, diag);
    enum status status = open_graph(target, "nop2", &drawing, diag);
    if (status != STATUS_OK)
        return status;
    drawing->height_pt = height_pt;
    set_default(drawing, AGRAPH, "outputorder", "nodesfirst");
    set_default(drawing, AGRAPH, "pad", "0");
    set_default(drawing, AGNODE, "fixedsize", "shape");
    set_default(drawing, AGNODE, "margin", "0");
    set_default_number(drawing, AGNODE, "penwidth", THIN_PT);
    set_ground(drawing);
    set_default(drawing, AGNODE, "label", "\\N"); /* an empty default would not be written */
    /* The picture is as large as its contents: a sheet keeps the margins. */
    draw_box(drawing,
             &(struct draw_box){.width_pt = width_pt, .height_pt = height_pt, .fill = sheet});
    *out = drawing;
    return STATUS_OK;
}

enum status draw_open_placed(const struct draw_target *target, double width_pt, double height_pt,
                             struct drawing **out, struct diag *diag)
{
    return open_placed(target, width_pt, height_pt, "#ffffff", out, diag);
}

enum status draw_open_clear(const struct draw_target *target, double width_pt, double height_pt,
                            struct drawing **out, struct diag *diag)
{
    return open_placed(target, width_pt, height_pt, NULL, out, diag);
}

enum status draw_open_layered(const struct draw_target *target, const char *title, bool down,
                              struct drawing **out, struct diag *diag)
{
    struct drawing *drawing = NULL;
    enum status status = open_graph(target, "dot", &drawing, diag);
    if (status != STATUS_OK)
        return status;
    set_default(drawing, AGRAPH, "rankdir", down ? "TB" : "LR");
    set_default(drawing, AGRAPH, "labelloc", "t");
    set_default(drawing, AGRAPH, "labeljust", "l");
    set_default(drawing, AGRAPH, "pad", "0.2");
    set_default(drawing, AGRAPH, "nodesep", "0.18");
    set_default(drawing, AGRAPH, "ranksep", "0.45");
    set_font(drawing, AGRAPH, 13, "#222222");
    set_default(drawing, AGNODE, "style", "filled");
    set_font(drawing, AGNODE, 10, "#222222");
    set_default(drawing, AGNODE, "height", "0.36");
    set_default(drawing, AGNODE, "margin", "0.11,0.05");
    char color[LOOK_COLOR];
    set_default(drawing, AGEDGE, "color", look_color(&drawing->look, LOOK_INK, "#555555", color));
    set_font(drawing, AGEDGE, 8, "#555555");
    set_ground(drawing);
    draw_set_text(drawing, drawing->graph, "label", title, "\\l");
    *out = drawing;
    return STATUS_OK;
}

void draw_close(struct drawing *drawing)
{
    if (!drawing)
        return;
    if (drawing->under.out)
        text_close(&drawing->under, false, NULL);
    if (drawing->graph)
        (void)drawing->gv.agclose(drawing->graph); /* frees it; nothing to report */
    else
        free(svg_close(&drawing->svg, NULL, NULL));
    free(drawing);
}

/* ---- placed, as SVG -------------------------------------------------------------------------- */

static void draw_svg_text(struct drawing *drawing, const struct draw_text *text)
{
    struct arena arena;
    char color[LOOK_COLOR];
    const double scale = drawing->scale;
    arena_init(&arena, 0);
    const char *shown = printable_text(&arena, text->text, true);
    if (!shown)
        drawing->failed = true;
    else
        svg_text(
            &drawing->svg,
            &(struct svg_text){.x = scale * text->x_pt,
                               .y = scale * text->y_pt,
                               .align = (int)text->align,
                               .text = shown,
                               .color = look_color(&drawing->look, LOOK_INK,
                                                   text->color ? text->color : "#000000", color),
                               .font = scale * text->font_pt,
                               .bold = text->bold});
    arena_fini(&arena);
}

/* The box from `left` to `right` and `top` to `bottom`, in whole points. */
static void draw_svg_box(struct drawing *drawing, const struct draw_box *box, double left,
                         double top, double right, double bottom)
{
    struct arena arena;
    char fill[LOOK_COLOR], border[LOOK_COLOR];
    const double scale = drawing->scale;
    const struct svg_pen pen = {
        .color = box->border ? look_color(&drawing->look, LOOK_INK, box->border, border) : NULL,
        .width = box->pen_pt > 0 ? box->pen_pt : THIN_PT};
    arena_init(&arena, 0);
    const char *words = box->tooltip ? printable_text(&arena, box->tooltip, true) : NULL;
    if (box->tooltip && !words)
        drawing->failed = true;
    svg_begin_box(&drawing->svg, words);
    svg_box(&drawing->svg, scale * left, scale * top, scale * right, scale * bottom,
            box->fill ? look_color(&drawing->look, LOOK_AREA, box->fill, fill) : NULL, &pen);
    if (box->label)
        draw_svg_text(drawing, &(struct draw_text){.x_pt = (left + right) / 2,
                                                   .y_pt = (top + bottom) / 2,
                                                   .align = DRAW_CENTER,
                                                   .text = box->label,
                                                   .color = box->text_color,
                                                   .font_pt = box->font_pt});
    svg_end_box(&drawing->svg, words);
    arena_fini(&arena);
}

static void draw_svg_under(struct drawing *drawing, const struct draw_under *under)
{
    char color[LOOK_COLOR];
    const double scale = drawing->scale;
    const struct svg_pen pen = {
        .color =
            look_color(&drawing->look, under->filled ? LOOK_AREA : LOOK_INK, under->color, color),
        .width = under->filled ? 0.1 : under->pen_pt,
        .dashed = under->dashed};
    double *points = malloc((under->count + 1) * 2 * sizeof *points);
    if (!points) {
        drawing->failed = true;
        return;
    }
    for (size_t i = 0; i < under->count; i++) {
        points[2 * i] = scale * under->points[i].x_pt;
        points[2 * i + 1] = scale * under->points[i].y_pt;
    }
    svg_points(&drawing->svg, points, under->count, under->filled, &pen);
    free(points);
}

/* ---- placed ---------------------------------------------------------------------------------- */

static Agnode_t *draw_new_node(struct drawing *drawing, Agraph_t *where)
{
    char name[16];
    snprintf(name, sizeof name, "n%u", drawing->nodes++);
    Agnode_t *node = drawing->gv.agnode(where, name, 1);
    if (!node)
        drawing->failed = true;
    return node;
}

/* Graphviz counts y upwards from the bottom, and a node's place is its middle. */
static void draw_place(struct drawing *drawing, Agnode_t *node, double x, double y, double width,
                       double height)
{
    double scale = drawing->scale;
    setf(drawing, node, "pos", "%g,%g!", scale * (x + width / 2),
         scale * (drawing->height_pt - y - height / 2));
    setf(drawing, node, "width", "%.6f", scale * width / POINTS_PER_INCH);
    setf(drawing, node, "height", "%.6f", scale * height / POINTS_PER_INCH);
}

struct draw_node *draw_box(struct drawing *drawing, const struct draw_box *box)
{
    double left = round(box->x_pt), right = round(box->x_pt + box->width_pt);
    double top = round(box->y_pt), bottom = round(box->y_pt + box->height_pt);
    if (!drawing->graph) {
        draw_svg_box(drawing, box, left, top, fmax(right, left + 1), fmax(bottom, top + 1));
        return (struct draw_node *)drawing; /* an arrow says where it begins */
    }
    Agnode_t *node = draw_new_node(drawing, drawing->graph);
    draw_place(drawing, node, left, top, fmax(right - left, 1), fmax(bottom - top, 1));
    if (box->pen_pt > 0)
        setf(drawing, node, "penwidth", "%g", box->pen_pt);
    draw_set(drawing, node, "style", box->fill ? "filled" : "solid");
    if (box->fill)
        draw_set(drawing, node, "fillcolor", box->fill);
    draw_set(drawing, node, "color", box->border ? box->border : "transparent");
    draw_set_text(drawing, node, "label", box->label ? box->label : "", NULL);
    if (box->label) {
        setf(drawing, node, "fontsize", "%g", drawing->scale * box->font_pt);
        draw_set(drawing, node, "fontcolor", box->text_color ? box->text_color : "#000000");
    }
    if (box->tooltip)
        draw_set_text(drawing, node, "tooltip", box->tooltip, NULL);
    return (struct draw_node *)node;
}

void draw_text(struct drawing *drawing, const struct draw_text *text)
{
    static const char *const line_ends[] = {"\\l", NULL, "\\r"};
    if (!drawing->graph) {
        draw_svg_text(drawing, text);
        return;
    }
    double bold = text->bold ? 1.15 : 1;
    double width = ceil(bold * draw_text_width(text->text, text->font_pt)) + 8,
           height = text->font_pt + 4;
    double left = round(text->x_pt - width * (double)text->align / 2);
    Agnode_t *node = draw_new_node(drawing, drawing->graph);
    draw_set(drawing, node, "shape", "plaintext");
    draw_place(drawing, node, left, text->y_pt - height / 2, width, height);
    draw_set_text(drawing, node, "label", text->text, line_ends[text->align]);
    setf(drawing, node, "fontsize", "%g", drawing->scale * text->font_pt);
    draw_set(drawing, node, "fontcolor", text->color ? text->color : "#000000");
    if (text->bold)
        draw_set(drawing, node, "fontname", "Helvetica-Bold");
}

void draw_line(struct drawing *drawing, double x_pt, double y_pt, const char *text,
               const char *color, double font_pt)
{
    if (text)
        draw_text(
            drawing,
            &(struct draw_text){
                .x_pt = x_pt, .y_pt = y_pt, .text = text, .color = color, .font_pt = font_pt});
}

/* xdot: `c` is the colour of lines, `C` of areas, `S` a style; a text stands behind its length and a '-'. */
static void write_text(FILE *out, char what, const char *text)
{
    fprintf(out, "%c %zu -%s ", what, strlen(text), text);
}

void draw_under(struct drawing *drawing, const struct draw_under *under)
{
    char pen[32], shown[LOOK_COLOR];
    const char *color =
        look_color(&drawing->look, under->filled ? LOOK_AREA : LOOK_INK, under->color, shown);
    double scale = drawing->scale;
    if (!drawing->graph) {
        draw_svg_under(drawing, under);
        return;
    }
    if (!drawing->under.out && !text_open(&drawing->under)) {
        drawing->failed = true;
        return;
    }
    FILE *out = drawing->under.out;
    snprintf(pen, sizeof pen, "setlinewidth(%g)", under->filled ? 0.1 : under->pen_pt);
    write_text(out, 'S', under->dashed ? "dashed" : "solid");
    write_text(out, 'S', pen);
    write_text(out, 'c', color);
    if (under->filled)
        write_text(out, 'C', color);
    fprintf(out, "%c %zu ", under->filled ? 'P' : 'L', under->count);
    for (size_t i = 0; i < under->count; i++)
        fprintf(out, "%.1f %.1f ", scale * under->points[i].x_pt,
                scale * (drawing->height_pt - under->points[i].y_pt));
}

/* The default is the value of the one graph there is. */
static void set_under(struct drawing *drawing)
{
    if (!drawing->under.out)
        return;
    char *text = text_close(&drawing->under, true, NULL);
    drawing->under.out = NULL;
    if (text)
        set_default(drawing, AGRAPH, "_background", text);
    else
        drawing->failed = true;
    free(text);
}

/* A curve with a head, y upwards: its begin, two controls, the neck of the head, its tip. */
struct draw_curve {
    double x[5], y[5];
    double pen_pt; /* 0: thin */
    double head;   /* Graphviz's arrowsize */
    const char *color;
    bool dashed;
};

static void draw_svg_curve(struct drawing *drawing, const struct draw_curve *curve)
{
    enum { HALF_HEAD_PT = 3 }; /* of arrowsize 1 */
    char color[LOOK_COLOR];
    const double sheet = drawing->scale * drawing->height_pt;
    const struct svg_pen pen = {.color = look_color(&drawing->look, LOOK_INK, curve->color, color),
                                .width = curve->pen_pt > 0 ? curve->pen_pt : ARROW_PT,
                                .dashed = curve->dashed};
    double points[10];
    for (int i = 0; i < 5; i++) {
        points[2 * i] = curve->x[i];
        points[2 * i + 1] = sheet - curve->y[i];
    }
    svg_arrow(&drawing->svg, points, points + 8, HALF_HEAD_PT * curve->head, &pen);
}

/* NULL: it failed, which is noted. */
static Agedge_t *draw_new_edge(struct drawing *drawing, struct draw_node *from,
                               struct draw_node *to)
{
    Agedge_t *edge =
        from && to ? drawing->gv.agedge(drawing->graph, (Agnode_t *)from, (Agnode_t *)to, NULL, 1)
                   : NULL;
    drawing->failed |= !edge;
    return edge;
}

static void draw_head_curve(struct drawing *drawing, struct draw_node *from, struct draw_node *to,
                            const struct draw_curve *curve)
{
    if (!drawing->graph) {
        draw_svg_curve(drawing, curve);
        return;
    }
    Agedge_t *edge = draw_new_edge(drawing, from, to);
    if (!edge)
        return;
    const double *x = curve->x, *y = curve->y;
    setf(drawing, edge, "pos", "e,%.1f,%.1f %.1f,%.1f %.1f,%.1f %.1f,%.1f %.1f,%.1f", x[4], y[4],
         x[0], y[0], x[1], y[1], x[2], y[2], x[3], y[3]);
    if (curve->pen_pt > 0) {
        setf(drawing, edge, "penwidth", "%g", curve->pen_pt);
        setf(drawing, edge, "arrowsize", "%g", curve->head);
    }
    draw_set(drawing, edge, "color", curve->color);
    if (curve->dashed)
        draw_set(drawing, edge, "style", "dashed");
}

void draw_arrow(struct drawing *drawing, const struct draw_arrow *arrow)
{
    enum { HEAD_PT = 4 };
    double scale = drawing->scale;
    double x0 = scale * arrow->from_x_pt, y0 = scale * (drawing->height_pt - arrow->from_y_pt);
    double x1 = scale * arrow->to_x_pt, y1 = scale * (drawing->height_pt - arrow->to_y_pt);
    double neck = y1 + (y0 > y1 ? HEAD_PT : -HEAD_PT), bend = (neck - y0) / 2;
    draw_head_curve(drawing, arrow->from, arrow->to,
                    &(struct draw_curve){.x = {x0, x0, x1, x1, x1},
                                         .y = {y0, y0 + bend, neck - bend, neck, y1},
                                         .head = ARROW_HEAD,
                                         .color = arrow->color,
                                         .dashed = arrow->dashed});
}

void draw_arc(struct drawing *drawing, const struct draw_arc *arc)
{
    enum { HEAD_PT = 5 };
    double scale = drawing->scale, x = scale * arc->x_pt;
    double y0 = scale * (drawing->height_pt - arc->from_y_pt);
    double y1 = scale * (drawing->height_pt - arc->to_y_pt);
    double reach = x + scale * arc->bulge_pt * 4 / 3; /* where the curve itself gets to bulge_pt */
    draw_head_curve(drawing, arc->from, arc->to,
                    &(struct draw_curve){.x = {x, reach, reach, x + HEAD_PT, x},
                                         .y = {y0, y0, y1, y1, y1},
                                         .pen_pt = arc->pen_pt,
                                         .head = 0.5,
                                         .color = arc->color,
                                         .dashed = arc->dashed});
}

static double em_of(unsigned code)
{
    if (code == 0 || code >= 0x80) /* a wide one is as wide as it is high */
        return columns_of_character(code) == 1 ? 0.63 : 0.5 * columns_of_character(code);
    if (strchr("ijlI.,:;'|!()[] ftr-", (int)code))
        return 0.39;
    if (strchr("mwMW@%", (int)code))
        return 0.95;
    return code >= 'A' && code <= 'Z' ? 0.70 : 0.63;
}

double draw_text_width(const char *text, double font_pt)
{
    double em = 0;
    unsigned code;
    for (size_t bytes; *text; text += bytes) {
        bytes = printable_decode(text, &code);
        em += em_of(code);
    }
    return em * font_pt;
}

/* Paul Tol's "light" scheme, then its colours a shade darker. */
static const char *const fills[DRAW_COLORS] = {
    "#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#99ddff", "#44bb99",
    "#bbcc33", "#aaaa00", "#dddddd", "#ce84e0", "#bba381", "#69a7ae",
    "#63d863", "#85ae69", "#c1ade0", "#63d8d8", "#bbc99b", "#e084b2",
};
static const char *const borders[DRAW_COLORS] = {
    "#4f7ba8", "#b35f43", "#b3a455", "#c27785", "#66a3c2", "#2c8a6e",
    "#88961c", "#787800", "#9c9c9c", "#8c5998", "#7f6e57", "#477176",
    "#439243", "#5a7647", "#837598", "#439292", "#7f8869", "#985979",
};

const char *draw_fill(int n)
{
    return fills[n % DRAW_COLORS];
}

const char *draw_border(int n)
{
    return borders[n % DRAW_COLORS];
}

/* ---- layered --------------------------------------------------------------------------------- */

struct draw_cluster *draw_cluster(struct drawing *drawing, const char *label)
{
    char name[32];
    snprintf(name, sizeof name, "cluster%u", drawing->clusters++);
    Agraph_t *cluster = drawing->gv.agsubg(drawing->graph, name, 1);
    if (!cluster) {
        drawing->failed = true;
        return NULL;
    }
    draw_set_text(drawing, cluster, "label", label, "\\l");
    draw_set(drawing, cluster, "style", "filled");
    draw_set(drawing, cluster, "fillcolor", "#f5f5f5");
    draw_set(drawing, cluster, "color", "transparent");
    setf(drawing, cluster, "fontsize", "%g", 9 * drawing->scale);
    draw_set(drawing, cluster, "fontcolor", "#777777");
    return (struct draw_cluster *)cluster;
}

struct draw_node *draw_node(struct drawing *drawing, struct draw_cluster *cluster,
                            const char *label, const char *tooltip, const char *fill,
                            const char *border)
{
    Agnode_t *node = draw_new_node(drawing, cluster ? (Agraph_t *)cluster : drawing->graph);
    if (!node)
        return NULL;
    draw_set_text(drawing, node, "label", label, NULL);
    if (tooltip)
        draw_set_text(drawing, node, "tooltip", tooltip, NULL);
    draw_set(drawing, node, "fillcolor", fill);
    draw_set(drawing, node, "color", border);
    return (struct draw_node *)node;
}

void draw_edge(struct drawing *drawing, struct draw_node *from, struct draw_node *to,
               const char *label, bool dashed)
{
    Agedge_t *edge = draw_new_edge(drawing, from, to);
    if (!edge)
        return;
    if (label)
        draw_set_text(drawing, edge, "label", label, NULL);
    if (dashed) {
        draw_set(drawing, edge, "style", "dashed");
        draw_set(drawing, edge, "constraint", "false");
    }
}

/* ---- writing --------------------------------------------------------------------------------- */

enum status draw_format_of(const char *path, enum draw_format *out, struct diag *diag)
{
    static const struct {
        const char *extension;
        enum draw_format format;
    } known[] = {{".dot", DRAW_DOT},
                 {".gv", DRAW_DOT},
                 {".svg", DRAW_SVG},
                 {".png", DRAW_PNG},
                 {".pdf", DRAW_PDF}};
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    for (size_t i = 0; dot && i < sizeof known / sizeof *known; i++) {
        if (strcmp(dot, known[i].extension) == 0) {
            *out = known[i].format;
            return STATUS_OK;
        }
    }
    return diag_error(diag, STATUS_USAGE,
                      "cannot tell the picture's format from '%s': expected .svg, .png, .pdf or "
                      ".dot, of a run also .html or .json",
                      path);
}

static enum status write_dot(struct drawing *drawing, char **data, size_t *bytes, struct diag *diag)
{
    struct text_stream stream;
    if (!text_open(&stream))
        return diag_no_memory(diag);
    bool written = drawing->gv.agwrite(drawing->graph, stream.out) != EOF;
    *data = text_close(&stream, written, bytes);
    return *data ? STATUS_OK : diag_no_memory(diag);
}

enum status draw_finish(struct drawing *drawing, char **data, size_t *bytes, struct diag *diag)
{
    set_under(drawing);
    if (drawing->failed)
        return diag_no_memory(diag);
    if (!drawing->graph) {
        char color[LOOK_COLOR];
        *data = svg_close(&drawing->svg, look_color(&drawing->look, LOOK_AREA, "#ffffff", color),
                          bytes);
        return *data ? STATUS_OK : diag_no_memory(diag);
    }
    switch (drawing->format) {
    case DRAW_BY_NAME: /* draw_picture has found it */
    case DRAW_DOT: return write_dot(drawing, data, bytes, diag);
    case DRAW_SVG:
        return graphviz_render(&drawing->gv, drawing->graph, drawing->engine, "svg", data, bytes,
                               diag);
    case DRAW_PDF:
        return graphviz_render(&drawing->gv, drawing->graph, drawing->engine, "pdf", data, bytes,
                               diag);
    case DRAW_PNG: break;
    }
    draw_set(drawing, drawing->graph, "dpi", png_dpi);
    return graphviz_render(&drawing->gv, drawing->graph, drawing->engine, "png", data, bytes, diag);
}

/* ---- apart ----------------------------------------------------------------------------------- */

struct draw_own_picture {
    draw_body *body;
    void *context;
    struct draw_target target;
};

static enum status draw_one_shape(void *context, char **data, size_t *bytes, struct diag *diag)
{
    const struct draw_own_picture *picture = context;
    return picture->body(picture->context, &picture->target, data, bytes, diag);
}

/* Pictures have limits of their own; this one is for libraries that never end. */
static enum status limit_s(unsigned *out_s, struct diag *diag)
{
    enum { USUAL_S = 300, MOST_S = 86400 };
    const char *text = getenv("SWSIM_DRAW_SECONDS");
    *out_s = USUAL_S;
    if (!text)
        return STATUS_OK;
    char *end;
    errno = 0;
    const long given = strtol(text, &end, 10);
    if (errno || !isdigit((unsigned char)*text) || *end || given < 1 || given > MOST_S)
        return diag_error(diag, STATUS_USAGE,
                          "environment variable SWSIM_DRAW_SECONDS: found \"%.20s\", expected "
                          "seconds from 1 to %d",
                          text, MOST_S);
    *out_s = (unsigned)given;
    return STATUS_OK;
}

/* Cairo writes the time into a PDF. Blanks in place of the entry leave all else where it was, and make the same bytes
   of the same plan. Newer versions of Cairo may compress it: then it stays. */
static void undate(char *data, size_t bytes)
{
    static const char key[] = "/CreationDate (";
    char *from = memmem(data, bytes, key, sizeof key - 1);
    char *to = from ? memchr(from, ')', bytes - (size_t)(from - data)) : NULL;
    if (to)
        memset(from, ' ', (size_t)(to + 1 - from));
}

static bool draw_is_whole(enum draw_format format, const struct apart_result *result)
{
    switch (format) {
    case DRAW_PNG: return whole_png(result->data, result->bytes);
    case DRAW_PDF: return whole_pdf(result->data, result->bytes);
    case DRAW_SVG: return whole_svg(result->data, result->bytes);
    case DRAW_BY_NAME:
    case DRAW_DOT: break; /* agwrite has told whether it wrote all */
    }
    return result->bytes > 0;
}

/* A picture of which Graphviz says that a part is missing, or that ends in the middle, is a failure. What the libraries below
   Graphviz say, of fonts as a rule, is a warning. */
static enum status check_picture(const char *path, enum draw_format format,
                                 struct apart_result *result, struct diag *diag)
{
    const char *message = graphviz_message(result->said);
    if (message)
        return diag_error(diag, STATUS_SYSTEM, "%s cannot be drawn: Graphviz failed: %s", path,
                          message);
    if (!draw_is_whole(format, result))
        return diag_error(diag, STATUS_SYSTEM,
                          "%s cannot be drawn: the graphics libraries wrote an incomplete file",
                          path);
    const char *line = result->said + strspn(result->said, "\r\n\t ");
    if (*line)
        diag_warn(diag, "%s: the graphics libraries say: %.*s", path, (int)strcspn(line, "\r\n"),
                  line);
    if (format == DRAW_PDF)
        undate(result->data, result->bytes);
    return STATUS_OK;
}

static enum status draw_write_stream(const struct draw_target *target, const char *data,
                                     size_t bytes, struct diag *diag)
{
    if (fwrite(data, 1, bytes, target->stream) == bytes && fflush(target->stream) == 0)
        return STATUS_OK;
    return diag_error(diag, STATUS_SYSTEM, "cannot write %s: %s", target->path,
                      system_words(errno));
}

enum status draw_picture(const struct draw_target *target, draw_body *body, void *context,
                         struct diag *diag)
{
    struct draw_own_picture picture = {.body = body, .context = context, .target = *target};
    struct apart_result result = {0};
    unsigned most_s;
    enum status status = limit_s(&most_s, diag);
    if (status == STATUS_OK && target->format == DRAW_BY_NAME)
        status = draw_format_of(target->path, &picture.target.format, diag);
    if (status == STATUS_OK)
        status = apart_run(draw_one_shape, &picture, target->path, most_s, &result, diag);
    if (status == STATUS_OK)
        status = check_picture(target->path, picture.target.format, &result, diag);
    if (status == STATUS_OK)
        status = target->stream ? draw_write_stream(target, result.data, result.bytes, diag)
                                : output_write(target->path, result.data, result.bytes, diag);
    free(result.data);
    return status;
}
