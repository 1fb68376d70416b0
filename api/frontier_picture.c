/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frontier_picture.c - the candidates of a frontier as points: memory to the right, time of a microbatch upwards.
 *
 * The frontier is a staircase: below and left of it there is nothing.
 */
#include "frontier_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "trace/draw.h"

#include "plan/schedules/generate.h"
#include "base/units.h"

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
    TICKS = 8, /* at most so many steps from one to the next */
    DOT = 11,
    LINE = 2,
    ROW = 16,
    FONT = 10,
    LETTER = 8,
    STEP = 2,      /* places that are tried beside a point lie so far apart, */
    REACH = 30,    /* so many of them to the right and up, */
    PLACED = 1000, /* for so many candidates */
    MARK = 3       /* a point whose square is beside it */
};

/* The middle of a candidate's square, in points: its point of the field, or the nearest place beside other squares. */
struct spot {
    double x, y, size;
};

/* The field and what its sides stand for. */
struct frontier_picture_sheet {
    const struct frontier *f;
    struct drawing *drawing;
    double least_bytes, most_bytes, least_ns, most_ns;
    struct spot *spots;        /* [f->count] */
    int number[AXIS_MOST + 1]; /* [schedule + 1], among those that are shown */
};

static void frontier_picture_widen(double *least, double *most)
{
    double margin = *most > *least ? (*most - *least) / 20 : *most / 10 + 1;
    *least = *least > margin ? *least - margin : 0;
    *most += margin;
}

static void find_sides(struct frontier_picture_sheet *sheet)
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
    double limit = (double)machine_same_memory(&f->machine);
    if (f->has_bytes && limit > sheet->most_bytes && limit < sheet->most_bytes * NEAR)
        sheet->most_bytes = limit;
    frontier_picture_widen(&sheet->least_bytes, &sheet->most_bytes);
    frontier_picture_widen(&sheet->least_ns, &sheet->most_ns);
}

static double frontier_picture_x_of(const struct frontier_picture_sheet *sheet, double bytes)
{
    return LEFT + WIDTH * (bytes - sheet->least_bytes) / (sheet->most_bytes - sheet->least_bytes);
}

static double frontier_picture_y_of(const struct frontier_picture_sheet *sheet, double ns)
{
    return TOP + HEIGHT * (sheet->most_ns - ns) / (sheet->most_ns - sheet->least_ns);
}

/* Ticks are at the multiples of a step of 1, 2 or 5 times a power of ten, in a unit that suits the greatest value. */
struct frontier_picture_scale {
    double unit, step;
    const char *name;
    int decimals;
};

/* `names`: of units, each `factor` of the one before it; the first is `unit`. */
static struct frontier_picture_scale frontier_picture_scale_of(const char *const *names, int count,
                                                               double unit, double factor,
                                                               double least, double most)
{
    int n = 0;
    for (; n + 1 < count && most >= unit * factor; n++)
        unit *= factor;
    double rough = (most - least) / unit / TICKS, power = pow(10, floor(log10(rough)));
    double times = rough / power;
    double step = power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
    return (struct frontier_picture_scale){.unit = unit,
                                           .step = step * unit,
                                           .name = names[n],
                                           .decimals =
                                               step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0};
}

static struct frontier_picture_scale scale_of_memory(const struct frontier_picture_sheet *sheet)
{
    static const char *const bytes[] = {" B", " KiB", " MiB", " GiB", " TiB"}, *const none[] = {""};
    return sheet->f->has_bytes
               ? frontier_picture_scale_of(bytes, 5, 1, 1024, sheet->least_bytes, sheet->most_bytes)
               : frontier_picture_scale_of(none, 1, FRONTIER_ACTIVATION, 1, sheet->least_bytes,
                                           sheet->most_bytes);
}

static struct frontier_picture_scale scale_of_time(const struct frontier_picture_sheet *sheet)
{
    static const char *const times[] = {" ns", " us", " ms", " s"};
    return frontier_picture_scale_of(times, 4, 1, 1000, sheet->least_ns, sheet->most_ns);
}

static void show_tick(const struct frontier_picture_scale *scale, double value,
                      char out[UNITS_TEXT])
{
    snprintf(out, UNITS_TEXT, "%.*f%s", scale->decimals, value / scale->unit, scale->name);
}

/* ---- the field ------------------------------------------------------------------------------- */

static void draw_bar(const struct frontier_picture_sheet *sheet, double x, double y, double width,
                     double height, const char *color)
{
    draw_box(sheet->drawing,
             &(struct draw_box){
                 .x_pt = x, .y_pt = y, .width_pt = width, .height_pt = height, .fill = color});
}

static void frontier_picture_put_text(const struct frontier_picture_sheet *sheet, double x,
                                      double y, enum draw_align align, const char *text)
{
    draw_text(
        sheet->drawing,
        &(struct draw_text){
            .x_pt = x, .y_pt = y, .align = align, .text = text, .color = INK, .font_pt = FONT});
}

/* The nth tick from `least` on; false: it is beyond `most`. */
static bool find_tick(const struct frontier_picture_scale *scale, double least, double most, int n,
                      double *out)
{
    *out = (ceil(least / scale->step) + n) * scale->step;
    return n <= TICKS && *out <= most;
}

static void draw_ticks(const struct frontier_picture_sheet *sheet)
{
    char text[UNITS_TEXT];
    struct frontier_picture_scale x = scale_of_memory(sheet), y = scale_of_time(sheet);
    double at;
    for (int n = 0; find_tick(&x, sheet->least_bytes, sheet->most_bytes, n, &at); n++) {
        draw_bar(sheet, frontier_picture_x_of(sheet, at), TOP, 1, HEIGHT, FAINT);
        show_tick(&x, at, text);
        frontier_picture_put_text(sheet, frontier_picture_x_of(sheet, at), TOP + HEIGHT + 12,
                                  DRAW_CENTER, text);
    }
    for (int n = 0; find_tick(&y, sheet->least_ns, sheet->most_ns, n, &at); n++) {
        draw_bar(sheet, LEFT, frontier_picture_y_of(sheet, at), WIDTH, 1, FAINT);
        show_tick(&y, at, text);
        frontier_picture_put_text(sheet, LEFT - 6, frontier_picture_y_of(sheet, at), DRAW_RIGHT,
                                  text);
    }
    draw_bar(sheet, LEFT, TOP, 1, HEIGHT, INK);
    draw_bar(sheet, LEFT, TOP + HEIGHT, WIDTH, 1, INK);
}

static void draw_words(const struct frontier_picture_sheet *sheet)
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
    frontier_picture_put_text(sheet, LEFT + WIDTH / 2.0, TOP + HEIGHT + 32, DRAW_CENTER,
                              f->has_bytes ? "most bytes of a rank" : "most activations of a rank");
}

/* ---- the candidates -------------------------------------------------------------------------- */

static bool frontier_picture_is_shown(const struct frontier *f, int schedule, bool frontier)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->candidates[i].fate == FATE_PROVED &&
            f->candidates[i].at[AXIS_SCHEDULE] == schedule &&
            (f->candidates[i].frontier || !frontier))
            return true;
    return false;
}

static void frontier_picture_describe(const struct candidate *candidate, char *out, size_t size)
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

/* A square of the schedule's colour with its letter: the light colours, then the same ones dark. */
static void draw_square(const struct frontier_picture_sheet *sheet, double x, double y, double size,
                        const struct candidate *candidate, int schedule)
{
    enum { COLORS = 8, LETTERS = 26 }; /* the ninth is grey */
    char words[256] = "", letter[2] = "";
    int number = sheet->number[schedule + 1];
    bool dark = number / COLORS % 2;
    letter[0] = (char)('a' + number % LETTERS);
    if (candidate)
        frontier_picture_describe(candidate, words, sizeof words);
    draw_box(
        sheet->drawing,
        &(struct draw_box){.x_pt = x - size / 2,
                           .y_pt = y - size / 2,
                           .width_pt = size,
                           .height_pt = size,
                           .fill = dark ? draw_border(number % COLORS) : draw_fill(number % COLORS),
                           .border = candidate && candidate->frontier ? INK : FAINT,
                           .label = letter,
                           .text_color = dark ? "#ffffff" : INK,
                           .font_pt = LETTER,
                           .tooltip = candidate ? words : NULL});
}

/* ---- places of squares ----------------------------------------------------------------------- */

static bool frontier_picture_is_free(const struct frontier_picture_sheet *sheet, size_t placed,
                                     const struct spot *spot)
{
    if (spot->x < LEFT || spot->x > LEFT + WIDTH || spot->y < TOP || spot->y > TOP + HEIGHT)
        return false;
    for (size_t i = 0; i < placed; i++) {
        const struct spot *other = &sheet->spots[i];
        double apart = (other->size + spot->size) / 2;
        if (sheet->f->candidates[i].fate == FATE_PROVED && fabs(other->x - spot->x) < apart &&
            fabs(other->y - spot->y) < apart)
            return false;
    }
    return true;
}

/* The nearest place that is free, not faster and not with less memory: it would look better than it is. Where there is none in
   reach, the point itself. */
static struct spot find_spot(const struct frontier_picture_sheet *sheet, size_t placed,
                             struct spot at)
{
    struct spot best = at;
    double least = INFINITY;
    if (placed >= PLACED || frontier_picture_is_free(sheet, placed, &at))
        return at;
    for (int up = 0; up <= REACH; up++)
        for (int right = 0; right <= REACH; right++) {
            struct spot spot = {at.x + STEP * right, at.y - STEP * up, at.size};
            double far = hypot(right, up);
            if (far < least && frontier_picture_is_free(sheet, placed, &spot)) {
                least = far;
                best = spot;
            }
        }
    return best;
}

/* The frontier's first, which are listed first. */
static void place_squares(struct frontier_picture_sheet *sheet)
{
    for (size_t i = 0; i < sheet->f->count; i++) {
        const struct candidate *candidate = &sheet->f->candidates[i];
        if (candidate->fate == FATE_PROVED)
            sheet->spots[i] =
                find_spot(sheet, i,
                          (struct spot){frontier_picture_x_of(sheet, (double)candidate->bytes),
                                        frontier_picture_y_of(sheet, candidate->microbatch_ns),
                                        candidate->frontier ? DOT + 3 : DOT});
    }
}

/* A square beside its point has a line to it: to the side, then up or down. */
static void draw_leader(const struct frontier_picture_sheet *sheet, double x, double y,
                        const struct spot *spot)
{
    if (spot->x == x && spot->y == y)
        return;
    draw_bar(sheet, x - MARK / 2.0, y - MARK / 2.0, MARK, MARK, INK);
    draw_bar(sheet, fmin(x, spot->x), y, fabs(spot->x - x), 0.5, INK);
    draw_bar(sheet, spot->x, fmin(y, spot->y), 0.5, fabs(spot->y - y), INK);
}

/* From each point to the right as far as the next one, then down to it. */
static void draw_stairs(const struct frontier_picture_sheet *sheet)
{
    const struct frontier *f = sheet->f;
    for (size_t i = 0; i < f->count && f->candidates[i].frontier; i++) {
        const struct candidate *here = &f->candidates[i], *next = here + 1;
        bool last = i + 1 == f->count || !next->frontier;
        double x = frontier_picture_x_of(sheet, (double)here->bytes),
               y = frontier_picture_y_of(sheet, here->microbatch_ns);
        double end = last ? LEFT + WIDTH : frontier_picture_x_of(sheet, (double)next->bytes);
        draw_bar(sheet, x, y - LINE / 2.0, end - x, LINE, INK);
        if (!last)
            draw_bar(sheet, end - LINE / 2.0, y, LINE,
                     frontier_picture_y_of(sheet, next->microbatch_ns) - y, INK);
    }
}

/* The most that a rank may hold, where the field reaches so far. */
static void frontier_picture_draw_limit(const struct frontier_picture_sheet *sheet)
{
    const struct frontier *f = sheet->f;
    double x = frontier_picture_x_of(sheet, (double)machine_same_memory(&f->machine));
    if (!f->has_bytes || !machine_same_memory(&f->machine) || x <= LEFT || x >= LEFT + WIDTH)
        return;
    draw_bar(sheet, x, TOP, 1, HEIGHT, LIMIT);
    frontier_picture_put_text(sheet, x, TOP - FONT / 2.0 - 2, DRAW_CENTER, "limit");
}

/* Bold: on the frontier. */
static void draw_legend(const struct frontier_picture_sheet *sheet)
{
    double x = LEFT + WIDTH + 20 + DOT / 2.0, y = TOP + DOT / 2.0;
    for (int s = FRONTIER_AS_GIVEN; s < AXIS_MOST && (s < 0 || generate_name((size_t)s)); s++) {
        if (!frontier_picture_is_shown(sheet->f, s, false))
            continue;
        draw_square(sheet, x, y, DOT, NULL, s);
        draw_text(sheet->drawing,
                  &(struct draw_text){.x_pt = x + DOT,
                                      .y_pt = y,
                                      .align = DRAW_LEFT,
                                      .text = axis_word(AXIS_SCHEDULE, s),
                                      .color = INK,
                                      .font_pt = FONT,
                                      .bold = frontier_picture_is_shown(sheet->f, s, true)});
        y += ROW;
    }
}

/* The frontier above the others. */
static void frontier_picture_draw_all(const struct frontier_picture_sheet *sheet)
{
    draw_words(sheet);
    if (sheet->f->fates[FATE_PROVED] == 0)
        return;
    draw_ticks(sheet);
    frontier_picture_draw_limit(sheet);
    draw_stairs(sheet);
    for (size_t i = sheet->f->count; i-- > 0;)
        if (sheet->f->candidates[i].fate == FATE_PROVED) {
            const struct candidate *candidate = &sheet->f->candidates[i];
            const struct spot *spot = &sheet->spots[candidate - sheet->f->candidates];
            draw_leader(sheet, frontier_picture_x_of(sheet, (double)candidate->bytes),
                        frontier_picture_y_of(sheet, candidate->microbatch_ns), spot);
            draw_square(sheet, spot->x, spot->y, spot->size, candidate,
                        candidate->at[AXIS_SCHEDULE]);
        }
    draw_legend(sheet);
}

static enum status frontier_picture_draw_body_of(void *context, const struct draw_target *target,
                                                 char **data, size_t *bytes, struct diag *diag)
{
    struct frontier_picture_sheet sheet = {.f = context};
    enum status status = draw_open_placed(target, LEFT + WIDTH + LEGEND, TOP + HEIGHT + BOTTOM,
                                          &sheet.drawing, diag);
    if (status != STATUS_OK)
        return status;
    sheet.spots = calloc(sheet.f->count + 1, sizeof *sheet.spots);
    if (sheet.spots) {
        find_sides(&sheet);
        int next = 0;
        for (int s = FRONTIER_AS_GIVEN; s < AXIS_MOST && (s < 0 || generate_name((size_t)s)); s++)
            if (frontier_picture_is_shown(sheet.f, s, false))
                sheet.number[s + 1] = next++;
        place_squares(&sheet);
        frontier_picture_draw_all(&sheet);
    }
    status = sheet.spots ? draw_finish(sheet.drawing, data, bytes, diag) : diag_no_memory(diag);
    draw_close(sheet.drawing);
    free(sheet.spots);
    return status;
}

enum status frontier_draw(const struct frontier *frontier, const char *path, struct diag *diag)
{
    struct frontier shown = *frontier;
    return draw_picture(&(struct draw_target){.path = path}, frontier_picture_draw_body_of, &shown,
                        diag);
}
