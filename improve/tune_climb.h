/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune_climb.h - shared by the files of the search.
 *
 *     tune_search.c   starts, climbing, restarts
 *     tune_moves.c    the moves from a candidate to its neighbours, numbered
 */
#ifndef SWSIM_TUNE_CLIMB_H
#define SWSIM_TUNE_CLIMB_H

#include "tune.h"

#include <string.h>

enum { TOPS = 4, RULES = ORDER_EXPLICIT };

/* The best candidates that are different, best first. */
struct tops {
    int *cells[TOPS];
    struct tune_score scores[TOPS];
    int count;
};

struct tune_climb {
    struct tune *tune;
    struct diag *diag;
    int *block;    /* per task: the least task of its block */
    int *position; /* per task: of its block, in the order they are cut in */
    int *offset;   /* per task: stages behind the first of its block, as given */
    int *place;    /* per task: in the topological order */
    int *last;     /* per task: the place of the last task of its block */
    int blocks;
    int *current, *candidate, *order; /* cells, cells, tasks */
    struct tune_score current_score;
    struct tops tops;
    uint64_t random; /* state of the generator */
};

static inline int *climb_row(const struct tune_climb *s, int *cells, enum tune_row which)
{
    return cells + tune_at(s->tune, which);
}

static inline void climb_copy(const struct tune_climb *s, int *to, const int *from)
{
    memcpy(to, from, s->tune->cells * sizeof *to);
}

static inline void climb_set_rule(const struct tune_climb *s, int *cells, int rule)
{
    cells[tune_rule_at(s->tune)] = rule;
    memset(climb_row(s, cells, TUNE_ORDER), 0, s->tune->tasks * sizeof *cells);
}

/* How many moves there are. */
size_t moves_count(const struct tune_climb *s);

/* Change s->candidate by move `number` of all. *possible: the result is still a plan. */
enum status moves_make(struct tune_climb *s, size_t number, bool *possible);

#endif
