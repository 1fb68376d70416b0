/* SPDX-License-Identifier: Apache-2.0 */
/* look.c - see look.h. */
#include "look.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "draw.h"

/* Hue in sixths of the circle; all but it from 0 to 1. */
struct tone {
    double hue, saturation, lightness;
};

static struct tone tone_of(double r, double g, double b)
{
    double most = fmax(r, fmax(g, b)), least = fmin(r, fmin(g, b)), range = most - least;
    struct tone tone = {.lightness = (most + least) / 2};
    if (range < 1e-6)
        return tone;
    tone.saturation = range / (1 - fabs(2 * tone.lightness - 1));
    tone.hue = most == r   ? fmod((g - b) / range + 6, 6)
               : most == g ? (b - r) / range + 2
                           : (r - g) / range + 4;
    return tone;
}

static int look_byte_of(double part)
{
    return (int)(fmin(fmax(part, 0), 1) * 255 + 0.5);
}

/* `alpha` is the rest of the text. */
static const char *write_tone(const struct tone *tone, const char *alpha, char out[LOOK_COLOR])
{
    double range = (1 - fabs(2 * tone->lightness - 1)) * tone->saturation;
    double middle = range * (1 - fabs(fmod(tone->hue, 2) - 1)), least = tone->lightness - range / 2;
    const double parts[6][3] = {{range, middle, 0}, {middle, range, 0}, {0, range, middle},
                                {0, middle, range}, {middle, 0, range}, {range, 0, middle}};
    const double *rgb = parts[(int)tone->hue % 6];
    snprintf(out, LOOK_COLOR, "#%02x%02x%02x%.2s", (unsigned)look_byte_of(rgb[0] + least) & 0xff,
             (unsigned)look_byte_of(rgb[1] + least) & 0xff,
             (unsigned)look_byte_of(rgb[2] + least) & 0xff, alpha);
    return out;
}

/* The greys of things that are told apart: neighbours in the list lie far from one another. */
static bool find_grey(const char *color, double *out)
{
    enum { STRIDE = 7 };
    for (int i = 0; i < DRAW_COLORS; i++) {
        double lightness = 0.93 - 0.5 * (i * STRIDE % DRAW_COLORS) / (DRAW_COLORS - 1);
        if (strcmp(color, draw_fill(i)) == 0) {
            *out = lightness;
            return true;
        }
        if (strcmp(color, draw_border(i)) == 0) {
            *out = lightness - 0.3;
            return true;
        }
    }
    return false;
}

/* Greys of words and lines are black, those of grounds white. */
static void print_on_paper(struct tone *tone)
{
    static const double of_words = 0.55, of_grounds = 0.93;
    if (tone->saturation < 0.05 && tone->lightness < of_words)
        tone->lightness *= 0.5;
    else if (tone->saturation < 0.05 && tone->lightness > of_grounds)
        tone->lightness = 1;
}

/* Pale areas, which stand behind others, stay behind them. */
static void turn_dark(enum look_use use, struct tone *tone)
{
    static const double grey = 0.08, pale = 0.85;
    if (tone->saturation < grey)
        tone->lightness = 1 - 0.89 * tone->lightness;
    else if (use == LOOK_INK)
        tone->lightness = 0.58 + 0.36 * tone->lightness; /* a dark line stays the darker one */
    else if (tone->lightness > pale) {
        tone->lightness = 0.19;
        tone->saturation = fmin(tone->saturation, 0.32);
    } else {
        tone->lightness = 0.06 + 0.48 * tone->lightness;
        tone->saturation *= 0.75;
    }
}

const char *look_color(const struct look *look, enum look_use use, const char *color,
                       char out[LOOK_COLOR])
{
    unsigned r, g, b;
    size_t length = strlen(color);
    bool plain = look->theme == THEME_LIGHT && !look->grey;
    if (plain || (length != 7 && length != 9) || sscanf(color, "#%2x%2x%2x", &r, &g, &b) != 3)
        return color;
    struct tone tone = tone_of(r / 255.0, g / 255.0, b / 255.0);
    if (look->grey) {
        if (!find_grey(color, &tone.lightness))
            tone.lightness = (0.299 * r + 0.587 * g + 0.114 * b) / 255;
        tone.saturation = 0;
    }
    if (look->theme == THEME_DARK)
        turn_dark(use, &tone);
    if (look->theme == THEME_PAPER)
        print_on_paper(&tone);
    return write_tone(&tone, color + 7, out);
}
