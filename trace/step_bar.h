/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_bar.h - a step in one line of text: what a stream was busy with, each name as wide as its share of the time.
 *
 *     |EmbLookup|Outp|Forward-------|Backward------------|Gra|Em|Op|.....
 *
 * Always STEP_BAR_CELLS characters wide; dots are idle time. In colour the parts have grounds instead of bars.
 */
#ifndef SWSIM_STEP_BAR_H
#define SWSIM_STEP_BAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { STEP_BAR_CELLS = 60, STEP_BAR_PARTS = 64 /* most that can be seen, and a few more */ };

struct step_part {
    const char *name; /* borrowed */
    double share;     /* of the step, from 0 to 1 */
};

struct step_bar {
    struct step_part parts[STEP_BAR_PARTS];
    size_t count;
};

/* Add to the part of this name, which is new at the end. Names beyond the last part are of one part, "others". */
void step_bar_add(struct step_bar *bar, const char *name, double share);

/* So that all parts together are this share of the step. */
void step_bar_scale(struct step_bar *bar, double share);

/* The bar, without a new line. */
void step_bar_print(const struct step_bar *bar, bool color, FILE *out);

#endif
