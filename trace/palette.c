/* SPDX-License-Identifier: Apache-2.0 */
/* palette.c - see palette.h. */
#include "palette.h"

#include <stdio.h>

struct color {
    int r, g, b;
};

/* Conventions of the field; tones are such that text stays legible and neighbours can be told apart without hue. */
static const struct color colors[PALETTES][CHART_KINDS] = {
    [PALETTE_PYTORCH] = {[CHART_F] = {0x6f, 0xa8, 0xdc},
                         [CHART_B] = {0xf4, 0xa2, 0x4c},
                         [CHART_I] = {0x45, 0xb5, 0xaa},
                         [CHART_W] = {0x9c, 0xcf, 0x7b},
                         [CHART_OVERLAP] = {0xb4, 0x9a, 0xd9},
                         [CHART_OPTIMIZER] = {0xf2, 0xd8, 0x5c}},
    [PALETTE_DUALPIPE] = {[CHART_F] = {0xf6, 0xb2, 0x5b},
                          [CHART_B] = {0x8f, 0xc9, 0x6b},
                          [CHART_I] = {0x74, 0xc6, 0xb4},
                          [CHART_W] = {0x6c, 0x9f, 0xd8},
                          [CHART_OVERLAP] = {0xf6, 0xb2, 0x5b},
                          [CHART_OPTIMIZER] = {0xd9, 0xd9, 0xd9}},
    [PALETTE_ZERO_BUBBLE] = {[CHART_F] = {0x8a, 0xb8, 0xf0},
                             [CHART_B] = {0x5f, 0xb8, 0x78},
                             [CHART_I] = {0x8e, 0xd6, 0x9c},
                             [CHART_W] = {0x2f, 0x7d, 0x4a},
                             [CHART_OVERLAP] = {0x8a, 0xb8, 0xf0},
                             [CHART_OPTIMIZER] = {0xf2, 0xd8, 0x5c}},
    [PALETTE_GREY] = {[CHART_F] = {0xdc, 0xdc, 0xdc},
                      [CHART_B] = {0x90, 0x90, 0x90},
                      [CHART_I] = {0xb2, 0xb2, 0xb2},
                      [CHART_W] = {0x70, 0x70, 0x70},
                      [CHART_OVERLAP] = {0xc8, 0xc8, 0xc8},
                      [CHART_OPTIMIZER] = {0xff, 0xff, 0xff}},
};

/* The last chunk of a rank is so much nearer to white: no nearer, or a dark sheet takes it for a ground. */
#define CHUNK_SHARE 0.45

static int blend(int a, int b, double share)
{
    return (int)(a + (b - a) * share + 0.5);
}

static void write_color(struct color color, char out[PALETTE_COLOR])
{
    snprintf(out, PALETTE_COLOR, "#%02x%02x%02x", (unsigned)color.r & 0xff,
             (unsigned)color.g & 0xff, (unsigned)color.b & 0xff);
}

static struct color read_color(const char *text)
{
    unsigned r = 0, g = 0, b = 0;
    sscanf(text, "#%2x%2x%2x", &r, &g, &b);
    return (struct color){(int)r, (int)g, (int)b};
}

void palette_fill(enum palette palette, enum chart_kind kind, int chunk, int chunks,
                  char out[PALETTE_COLOR])
{
    enum { WHITE = 0xff };
    const struct color base = colors[palette][kind];
    double share = chunks > 1 && chunk > 0 ? CHUNK_SHARE * chunk / (chunks - 1) : 0;
    write_color((struct color){blend(base.r, WHITE, share), blend(base.g, WHITE, share),
                               blend(base.b, WHITE, share)},
                out);
}

void palette_border(const char *fill, char out[PALETTE_COLOR])
{
    const struct color base = read_color(fill);
    write_color(
        (struct color){blend(base.r, 0, 0.35), blend(base.g, 0, 0.35), blend(base.b, 0, 0.35)},
        out);
}

const char *palette_ink(const char *fill)
{
    const struct color base = read_color(fill);
    return 0.299 * base.r + 0.587 * base.g + 0.114 * base.b < 130 ? "#ffffff" : "#1a1a1a";
}
