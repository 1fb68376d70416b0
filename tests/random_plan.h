/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random_plan.h - small random plans of every form, as text, for tests that compare two ways of
 * finding the same answer.
 *
 * The same seed and form give the same text on every machine. The plans are well-formed: the parser
 * and the lowering take every one of them. They are small enough that a search without reduction
 * finishes for most, and bad enough that every property is violated now and then. Wide ones leave
 * nothing out.
 */
#ifndef SWSIM_RANDOM_PLAN_H
#define SWSIM_RANDOM_PLAN_H

#include <stdint.h>

enum { RANDOM_MAX_RANKS = 3 };
enum random_form { RANDOM_PIPELINE, RANDOM_THREADS, RANDOM_PROGRAMS, RANDOM_FORMS };

/* "pipeline", "threads", "programs" */
const char *random_form_key(enum random_form form);

/* A plan's text; the caller frees it. NULL when memory is exhausted. */
char *random_plan(uint64_t seed, enum random_form form);
char *random_pipeline(uint64_t seed);
char *random_threads(uint64_t seed);
char *random_programs(uint64_t seed);

/* Of a host program: one in `share` of the signals and awaits of its threads is done by a stream in their place. Frees `text`. */
char *random_steps(char *text, uint64_t seed, int share);
/* Half of these host programs with values: one in `share` of the uses of flags by a thread or a stream sets, adds, clears, or
   waits for a value. Takes `text`, and gives a text that the caller frees. */
char *random_values(char *text, uint64_t seed, int share);
/* Now and then the same host program with aborts of communicators behind calls of them. Frees `text`. */
char *random_aborts(char *text, uint64_t seed);
/* A third of these host programs with questions, and with operations in branches. Takes `text`, and gives a text that the
   caller frees. */
char *random_branches(char *text, uint64_t seed);
/* Now and then the same host programs with what each thread does in a repeat. Takes `text`, and gives a text that the
   caller frees. */
char *random_repeat(char *text, uint64_t seed);

/* The same from every key that can change a verdict (random_wide.c): one to three ranks, up to four
   tasks or threads, every operation, knob and kind of work, in any mixture. Many of these are too
   big to be searched without reduction. */
char *random_wide_plan(uint64_t seed, enum random_form form);

#endif
