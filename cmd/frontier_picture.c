/* SPDX-License-Identifier: Apache-2.0 */
/* frontier_picture.c - see frontier_picture.h. */
#include "frontier_picture.h"

#include <stdio.h>
#include <string.h>

#include "trace/draw.h"

#include "plan/generate.h"
#include "plan/units.h"

#define INK   "#333333"
#define FAINT "#dddddd"
#define LIMIT "#c62828"
#define NEAR  1.25 /* a limit that is so much more than what is held is drawn, too */

enum {
    WIDTH = 480, /* of the field, in points */
    HEIGHT = 320,
    LEFT = 70,
    TOP = 50,
    BOTTOM = 50,
    LEGEND = 170,
    TICKS = 4,
    DOT = 7,
    LINE = 2,
    ROW = 16,
    FONT = 10,
    NAME = 140 /* of the longest name */
};

/* The field and what its sides stand for. */
struct sheet {
    const struct frontier *f;
    struct drawing *drawing;
    double least_bytes, most_bytes, least_ns, most_ns;
};

static void widen(double *least, double *most)
{
    double margin = *most > *least ? (*most - *least) / 20 : *most / 10 + 1;
    *least = *least > margin ? *least - margin : 0;
    *most += margin;
}

static void find_sides(struct sheet *sheet)
{
    const struct frontier *f = sheet->f;
    bool first = true;
    for (size_t i = 0; i < f->count; i++) {
        const struct candidate *c = &f->candidates[i];
        double bytes = (double)c->bytes, ns = c->microbatch_ns;
        if (c->fate != FATE_PROVED)
            continue;
        sheet->least_bytes = first || bytes < sheet->least_bytes ? bytes : sheet->least_bytes;
        sheet->most_bytes = first || bytes > sheet->most_bytes ? bytes : sheet->most_bytes;
        sheet->least_ns = first || ns < sheet->least_ns ? ns : sheet->least_ns;
        sheet->most_ns = first || ns > sheet->most_ns ? ns : sheet->most_ns;
        first = false;
    }
    double limit = (double)f->options->memory_bytes;
    if (f->has_bytes && limit > sheet->most_bytes && limit < sheet->most_bytes * NEAR)
        sheet->most_bytes = limit;
    widen(&sheet->least_bytes, &sheet->most_bytes);
    widen(&sheet->least_ns, &sheet->most_ns);
}

static double x_of(const struct sheet *sheet, double bytes)
{
    return LEFT + WIDTH * (bytes - sheet->least_bytes) / (sheet->most_bytes - sheet->least_bytes);
}

static double y_of(const struct sheet *sheet, double ns)
{
    return TOP + HEIGHT * (sheet->most_ns - ns) / (sheet->most_ns - sheet->least_ns);
}

static void show_memory(const struct frontier *f, double bytes, char out[UNITS_TEXT])
{
    if (f->has_bytes)
        units_show_bytes(bytes, out);
    else
        snprintf(out, UNITS_TEXT, "%.3g", bytes / FRONTIER_ACTIVATION);
}

/* ---- the field ------------------------------------------------------------------------------- */

static void draw_bar(const struct sheet *sheet, double x, double y, double width, double height,
                     const char *color)
{
    draw_box(sheet->drawing,
             &(struct draw_box){
                 .x_pt = x, .y_pt = y, .width_pt = width, .height_pt = height, .fill = color});
}

static void put_text(const struct sheet *sheet, double x, double y, enum draw_align align,
                     const char *text)
{
    draw_text(
        sheet->drawing,
        &(struct draw_text){
            .x_pt = x, .y_pt = y, .align = align, .text = text, .color = INK, .font_pt = FONT});
}

static void draw_ticks(const struct sheet *sheet)
{
    for (int i = 0; i <= TICKS; i++) {
        char text[UNITS_TEXT];
        double bytes = sheet->least_bytes + (sheet->most_bytes - sheet->least_bytes) * i / TICKS;
        double ns = sheet->least_ns + (sheet->most_ns - sheet->least_ns) * i / TICKS;
        draw_bar(sheet, x_of(sheet, bytes), TOP, 1, HEIGHT, FAINT);
        draw_bar(sheet, LEFT, y_of(sheet, ns), WIDTH, 1, FAINT);
        show_memory(sheet->f, bytes, text);
        put_text(sheet, x_of(sheet, bytes), TOP + HEIGHT + 12, DRAW_CENTER, text);
        units_show_time(ns, text);
        put_text(sheet, LEFT - 6, y_of(sheet, ns), DRAW_RIGHT, text);
    }
}

static void draw_words(const struct sheet *sheet)
{
    const struct frontier *f = sheet->f;
    char title[256];
    snprintf(title, sizeof title, "%s: time of a microbatch against memory of a rank",
             f->plan->name);
    draw_text(sheet->drawing, &(struct draw_text){.x_pt = LEFT,
                                                  .y_pt = TOP / 2,
                                                  .align = DRAW_LEFT,
                                                  .text = title,
                                                  .color = INK,
                                                  .font_pt = FONT + 3,
                                                  .bold = true});
    put_text(sheet, LEFT + WIDTH / 2.0, TOP + HEIGHT + 32, DRAW_CENTER,
             f->has_bytes ? "most bytes of a rank" : "most activations of a rank");
}

/* ---- the candidates -------------------------------------------------------------------------- */

/* No greys, which look alike: those are the field's. Behind the light colours come the dark ones. */
static const char *color_of(int schedule)
{
    enum { PERIOD = 9, COLORED = 16 }; /* every ninth is grey */
    int n = (schedule + 1) % (2 * COLORED), nth = n % COLORED;
    int color = nth + nth / (PERIOD - 1);
    return n < COLORED ? draw_fill(color) : draw_border(color);
}

static void describe(const struct candidate *candidate, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (int a = 0; a < AXES && used < size; a++) {
        const char *word = axis_word((enum axis)a, candidate->at[a]);
        int wrote = word ? snprintf(out + used, size - used, "%s%s", a ? ", " : "", word)
                         : snprintf(out + used, size - used, ", %s %d", axis_key((enum axis)a),
                                    candidate->at[a]);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}

static void draw_point(const struct sheet *sheet, const struct candidate *candidate)
{
    char words[256];
    int size = candidate->frontier ? DOT + 4 : DOT;
    describe(candidate, words, sizeof words);
    draw_box(sheet->drawing,
             &(struct draw_box){.x_pt = x_of(sheet, (double)candidate->bytes) - size / 2.0,
                                .y_pt = y_of(sheet, candidate->microbatch_ns) - size / 2.0,
                                .width_pt = size,
                                .height_pt = size,
                                .fill = color_of(candidate->at[AXIS_SCHEDULE]),
                                .border = candidate->frontier ? INK : FAINT,
                                .tooltip = words});
}

/* From each point to the right as far as the next one, then down to it. */
static void draw_stairs(const struct sheet *sheet)
{
    const struct frontier *f = sheet->f;
    for (size_t i = 0; i < f->count && f->candidates[i].frontier; i++) {
        const struct candidate *here = &f->candidates[i], *next = here + 1;
        bool last = i + 1 == f->count || !next->frontier;
        double x = x_of(sheet, (double)here->bytes), y = y_of(sheet, here->microbatch_ns);
        double end = last ? LEFT + WIDTH : x_of(sheet, (double)next->bytes);
        draw_bar(sheet, x, y - LINE / 2.0, end - x, LINE, INK);
        if (!last)
            draw_bar(sheet, end - LINE / 2.0, y, LINE, y_of(sheet, next->microbatch_ns) - y, INK);
    }
}

/* Nothing lies left of and below a point of the frontier: its name has room there, lower where the one before has it. */
static void draw_names(const struct sheet *sheet)
{
    const struct frontier *f = sheet->f;
    double lowest = TOP, bottom = TOP + HEIGHT - 3;
    for (size_t i = 0; i < f->count && f->candidates[i].frontier; i++) {
        const struct candidate *here = &f->candidates[i];
        double x = x_of(sheet, (double)here->bytes), y = y_of(sheet, here->microbatch_ns) + FONT;
        bool left = x - LEFT < NAME;
        y = y < lowest ? lowest : y;
        if (y > bottom)
            continue;
        put_text(sheet, left ? x - DOT : x - DOT - 2, left ? y + 2 : y,
                 left ? DRAW_LEFT : DRAW_RIGHT, axis_word(AXIS_SCHEDULE, here->at[AXIS_SCHEDULE]));
        lowest = y + FONT + 2;
    }
}

/* The most that a rank may hold, where the field reaches so far. */
static void draw_limit(const struct sheet *sheet)
{
    const struct frontier *f = sheet->f;
    double x = x_of(sheet, (double)f->options->memory_bytes);
    if (!f->has_bytes || f->options->memory_bytes < 0 || x <= LEFT || x >= LEFT + WIDTH)
        return;
    draw_bar(sheet, x, TOP, 1, HEIGHT, LIMIT);
    put_text(sheet, x, TOP - FONT / 2.0 - 2, DRAW_CENTER, "limit");
}

static bool is_shown(const struct frontier *f, int schedule)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->candidates[i].fate == FATE_PROVED && f->candidates[i].at[AXIS_SCHEDULE] == schedule)
            return true;
    return false;
}

static void draw_legend(const struct sheet *sheet)
{
    double y = TOP;
    for (int s = FRONTIER_AS_GIVEN; s < 0 || generate_name((size_t)s); s++) {
        if (!is_shown(sheet->f, s))
            continue;
        draw_bar(sheet, LEFT + WIDTH + 20, y, DOT, DOT, color_of(s));
        put_text(sheet, LEFT + WIDTH + 34, y + DOT / 2.0, DRAW_LEFT, axis_word(AXIS_SCHEDULE, s));
        y += ROW;
    }
}

/* The frontier above the others. */
static void draw_all(const struct sheet *sheet)
{
    draw_words(sheet);
    if (sheet->f->fates[FATE_PROVED] == 0)
        return;
    draw_ticks(sheet);
    draw_limit(sheet);
    draw_stairs(sheet);
    draw_names(sheet);
    for (size_t i = sheet->f->count; i-- > 0;)
        if (sheet->f->candidates[i].fate == FATE_PROVED)
            draw_point(sheet, &sheet->f->candidates[i]);
    draw_legend(sheet);
}

static enum status draw_body_of(void *context, const struct draw_target *target, char **data,
                                size_t *bytes, struct diag *diag)
{
    struct sheet sheet = {.f = context};
    enum status status = draw_open_placed(target, LEFT + WIDTH + LEGEND, TOP + HEIGHT + BOTTOM,
                                          &sheet.drawing, diag);
    if (status != STATUS_OK)
        return status;
    find_sides(&sheet);
    draw_all(&sheet);
    status = draw_finish(sheet.drawing, data, bytes, diag);
    draw_close(sheet.drawing);
    return status;
}

enum status frontier_draw(const struct frontier *frontier, const char *path, struct diag *diag)
{
    struct frontier shown = *frontier;
    return draw_picture(&(struct draw_target){.path = path}, draw_body_of, &shown, diag);
}
