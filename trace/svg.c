/* SPDX-License-Identifier: Apache-2.0 */
/* svg.c - see svg.h: SVG 1.1 (W3C), with the elements and fonts that Graphviz writes for the same drawing. */
#include "svg.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a line of text, from its middle down to its baseline, as a share of the font's size. */
#define BASELINE 0.25
#define LINE     1.2

static FILE *svg_stream(struct svg *svg, enum svg_layer layer)
{
    struct text_stream *stream = &svg->layers[layer];
    if (!stream->out && !text_open(stream))
        svg->failed = true;
    return stream->out;
}

void svg_open(struct svg *svg, double width, double height)
{
    *svg = (struct svg){.width = width, .height = height};
}

static void put_escaped_xml(const char *text, size_t bytes, FILE *out)
{
    for (size_t i = 0; i < bytes; i++)
        switch (text[i]) {
        case '&': fputs("&amp;", out); break;
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '"': fputs("&quot;", out); break;
        case '\n': fputs("&#10;", out); break;
        default: fputc(text[i], out);
        }
}

/* fill="#rrggbb", and its opacity where the colour has one. */
static void put_color(FILE *out, const char *name, const char *color)
{
    if (!color) {
        fprintf(out, " %s=\"none\"", name);
        return;
    }
    fprintf(out, " %s=\"%.7s\"", name, color);
    if (color[0] == '#' && strlen(color) == 9)
        fprintf(out, " %s-opacity=\"%.3g\"", name, (double)strtol(color + 7, NULL, 16) / 255);
}

static void put_pen(FILE *out, const struct svg_pen *pen)
{
    put_color(out, "stroke", pen->color);
    if (pen->color)
        fprintf(out, " stroke-width=\"%g\"%s", pen->width,
                pen->dashed ? " stroke-dasharray=\"5,2\"" : "");
}

void svg_begin_box(struct svg *svg, const char *tooltip)
{
    FILE *out = svg_stream(svg, SVG_BOXES);
    if (!out || !tooltip)
        return;
    fputs("<a xlink:title=\"", out);
    put_escaped_xml(tooltip, strlen(tooltip), out);
    fputs("\">", out);
}

void svg_end_box(struct svg *svg, const char *tooltip)
{
    FILE *out = svg_stream(svg, SVG_BOXES);
    if (out && tooltip)
        fputs("</a>\n", out);
}

void svg_box(struct svg *svg, double left, double top, double right, double bottom,
             const char *fill, const struct svg_pen *pen)
{
    FILE *out = svg_stream(svg, SVG_BOXES);
    if (!out || (!fill && !pen->color))
        return;
    fputs("<polygon", out);
    put_color(out, "fill", fill);
    put_pen(out, pen);
    fprintf(out, " points=\"%g,%g %g,%g %g,%g %g,%g\"/>\n", left, top, right, top, right, bottom,
            left, bottom);
}

void svg_text(struct svg *svg, const struct svg_text *text)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    FILE *out = svg_stream(svg, SVG_BOXES);
    int lines = 1;
    for (const char *at = text->text; out && *at; at++)
        lines += *at == '\n';
    double y = text->y + text->font * (BASELINE - LINE * (lines - 1) / 2);
    for (const char *line = text->text, *end; out && *line; line = end + (*end == '\n')) {
        end = line + strcspn(line, "\n");
        fprintf(out,
                "<text text-anchor=\"%s\" x=\"%g\" y=\"%g\" font-family=\"Helvetica,sans-Serif\"%s "
                "font-size=\"%.2f\"",
                anchors[text->align], text->x, y, text->bold ? " font-weight=\"bold\"" : "",
                text->font);
        put_color(out, "fill", text->color);
        fputs(">", out);
        put_escaped_xml(line, (size_t)(end - line), out);
        fputs("</text>\n", out);
        y += LINE * text->font;
    }
}

void svg_points(struct svg *svg, const double *points, size_t count, bool fill,
                const struct svg_pen *pen)
{
    FILE *out = svg_stream(svg, SVG_UNDER);
    if (!out)
        return;
    fprintf(out, "<%s", fill ? "polygon" : "polyline");
    put_color(out, "fill", fill ? pen->color : NULL);
    put_pen(out, pen);
    fputs(" points=\"", out);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s%.1f,%.1f", i ? " " : "", points[2 * i], points[2 * i + 1]);
    fputs("\"/>\n", out);
}

void svg_arrow(struct svg *svg, const double curve[8], const double tip[2], double head,
               const struct svg_pen *pen)
{
    FILE *out = svg_stream(svg, SVG_ARROWS);
    const double length =
        sqrt((tip[0] - curve[6]) * (tip[0] - curve[6]) + (tip[1] - curve[7]) * (tip[1] - curve[7]));
    if (!out || length <= 0)
        return;
    const double across_x = -(tip[1] - curve[7]) / length * head,
                 across_y = (tip[0] - curve[6]) / length * head;
    fputs("<path fill=\"none\"", out);
    put_pen(out, pen);
    fprintf(out, " d=\"M%.1f,%.1fC%.1f,%.1f %.1f,%.1f %.1f,%.1f\"/>\n<polygon", curve[0], curve[1],
            curve[2], curve[3], curve[4], curve[5], curve[6], curve[7]);
    put_color(out, "fill", pen->color);
    put_color(out, "stroke", pen->color);
    fprintf(out, " stroke-width=\"%g\" points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f\"/>\n", pen->width,
            curve[6] + across_x, curve[7] + across_y, tip[0], tip[1], curve[6] - across_x,
            curve[7] - across_y);
}

char *svg_close(struct svg *svg, const char *ground, size_t *bytes)
{
    struct text_stream whole;
    bool opened = text_open(&whole), good = opened && !svg->failed;
    if (opened) {
        fprintf(
            whole.out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n"
            "<svg width=\"%.0fpt\" height=\"%.0fpt\"\n viewBox=\"0.00 0.00 %.2f %.2f\" "
            "xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\">\n"
            "<rect width=\"%g\" height=\"%g\"",
            svg->width, svg->height, svg->width, svg->height, svg->width, svg->height);
        put_color(whole.out, "fill", ground);
        fputs("/>\n", whole.out);
    }
    for (int layer = 0; layer < SVG_LAYERS; layer++) {
        size_t length = 0;
        if (!svg->layers[layer].out)
            continue;
        char *text = text_close(&svg->layers[layer], good, &length);
        good = good && text && fwrite(text, 1, length, whole.out) == length;
        free(text);
    }
    if (good)
        fputs("</svg>\n", whole.out);
    return opened ? text_close(&whole, good, bytes) : NULL;
}
