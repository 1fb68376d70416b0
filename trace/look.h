/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look.h - colours of a picture for a light sheet, a dark one, and for paper.
 *
 * Pictures name the colours of a light sheet; all of them pass through here when they are drawn. On a dark sheet greys
 * are turned round, areas are dark and keep their hue, words and lines are light; on paper, greys are black or white; in black and white a colour is a grey
 * as light as it was, and the colours for things that are told apart (draw_fill) are greys at equal distances.
 */
#ifndef SWSIM_LOOK_H
#define SWSIM_LOOK_H

#include <stdbool.h>

#define THEME_LIST(X) X(LIGHT, "light") X(DARK, "dark") X(PAPER, "paper")
enum theme {
#define X(name, key) THEME_##name,
    THEME_LIST(X)
#undef X
};

/* All zero: light, colours, the usual size. */
struct look {
    enum theme theme;
    bool grey;
    double scale; /* of all lengths and fonts; 0: 1 */
};

enum { LOOK_COLOR = 12 };

/* An area is dark on a dark sheet, words and lines on it are light. */
enum look_use { LOOK_AREA, LOOK_INK };

/* The colour to draw where the picture says `color`: "#rrggbb" or "#rrggbbaa", anything else stays as it is. */
const char *look_color(const struct look *look, enum look_use use, const char *color,
                       char out[LOOK_COLOR]);

#endif
