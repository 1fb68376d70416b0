/* SPDX-License-Identifier: Apache-2.0 */
/*
 * telling.h - the lines of a story: steps that belong together are one.
 *
 * One line has: the data of an iteration and the driver's step with it; the steps by which a worker submits an instance;
 * the start and the end of the same work; or the pushes of one thread in a row. Steps that many ranks or iterations take
 * alike are told once.
 */
#ifndef SWSIM_TELLING_H
#define SWSIM_TELLING_H

#include <stdbool.h>
#include <stdio.h>

#include "check/explain.h"

enum { TELLING_RANGE = 48 };

struct telling {
    size_t first, last; /* steps */
    int pushes;         /* pushes or submissions in a row, if there are several; else 0 */
    size_t same,
        times; /* times > 0: no line of its own: that many times more the `same` lines before, with other
                           numbers */
};

/* The lines, at most as many as steps, which is what `out` has room for; `whole`: each step is one, else those that have no
   part in what goes wrong are left out. Returns their number. */
size_t telling_all(const struct story *story, bool whole, struct telling *out);

/* Stretches of lines that come several times in a row are told once; the last lines, where something goes wrong, and
   faults stay. Returns the number of lines that are left. Memory is the arena's; without any, nothing is folded. */
size_t telling_fold(const struct story *story, struct telling *lines, size_t count,
                    struct arena *arena);

/* "7" or "8-15". Returns its length. */
int telling_range(const struct telling *telling, char out[TELLING_RANGE]);

/* Prints the action of the steps and ends the line. */
void telling_print(const struct story *story, const struct telling *telling, FILE *out);

/* A step in words, without the verb of a start. */
const char *telling_label(const struct story_step *step);

#endif
