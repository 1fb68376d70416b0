/* SPDX-License-Identifier: Apache-2.0 */
/*
 * palette.h - the colours of passes in pictures of schedules.
 */
#ifndef SWSIM_PALETTE_H
#define SWSIM_PALETTE_H

#include "schedule_picture.h"

enum { PALETTE_COLOR = sizeof "#rrggbb" };

/* "#rrggbb": the colour of a kind; the chunks of a rank are shades of it, the first is the darkest. */
void palette_fill(enum palette palette, enum chart_kind kind, int chunk, int chunks,
                  char out[PALETTE_COLOR]);
/* A darker shade of a colour, for its border. */
void palette_border(const char *fill, char out[PALETTE_COLOR]);
/* Black or white, whichever is easier to read on it. */
const char *palette_ink(const char *fill);

#endif
