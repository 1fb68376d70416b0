/* SPDX-License-Identifier: Apache-2.0 */
/*
 * colors.h - names and their colours in a picture.
 *
 * A name has the same colour in every picture of a plan, whatever part of a run is shown: it starts from a number made
 * of the name, and where two names want the same one they are settled in the order of the alphabet. Names of the plan go
 * first, so that others, which only some part of the run has, leave theirs alone.
 * Of very many names those that differ in digits only, such as 0F3 and 1F4, are one.
 * All memory is the arena's, names are not copied.
 */
#ifndef SWSIM_COLORS_H
#define SWSIM_COLORS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/table.h"
#include "trace.h"

struct named_color {
    const char *name;
    int color; /* for draw_fill and draw_border */
    int group; /* the item whose colour it has: its own number, or that of its name without digits */
};

struct colors {
    struct arena *arena;
    struct named_color *items; /* in the order in which they were added */
    size_t count, cap;
    struct table names; /* of the items */
    size_t settled;
    int used[32]; /* names of each colour */
};

void colors_init(struct colors *colors, struct arena *arena);
/* The number of the name's item, which is new or not; -1: out of memory. */
int colors_add(struct colors *colors, const char *name);
/* -1: not there. */
int colors_find(const struct colors *colors, const char *name);
/* The item whose colour and name in a legend `name` has; -1: not there. */
int colors_group(const struct colors *colors, const char *name);
/* Give colours to the names that have none. */
void colors_settle(struct colors *colors);

/* Names of the work of the plan that a run kept, then those of its spans, settled in this order. False: out of memory. */
bool colors_add_run(struct colors *colors, const struct trace *trace);

#endif
