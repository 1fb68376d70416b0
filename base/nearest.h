/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nearest.h - "did you mean ...?": the known word that is most like an unknown one.
 *
 * The distance is Levenshtein's, where a swap of neighbours counts once. A suggestion is at most one change
 * for every three letters away, and one more. Nothing is owned: the texts are the caller's.
 */
#ifndef SWSIM_NEAREST_H
#define SWSIM_NEAREST_H

#include "arena.h"

/* Starts with `found` alone; `best` is NULL while no candidate is near. Of equally near ones the first. */
struct nearest {
    const char *found, *best;
    int distance;
};

void nearest_try(struct nearest *nearest, const char *candidate);

/* "; did you mean 'x'?" with this quotation mark; "" where nothing is near. */
const char *nearest_hint(const struct nearest *nearest, char quote, struct arena *arena);

#endif
