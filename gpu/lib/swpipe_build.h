/* SPDX-License-Identifier: Apache-2.0 */
/*
 * swpipe_build.h - a plan made by calls in place of a text; part of swpipe.h.
 *
 *     struct swpipe_plan *plan = swpipe_plan_new("little");
 *     swpipe_plan_task(plan, "Load", "stage", "0");
 *     swpipe_plan_task(plan, "Load", "stream", "memcpy");
 *     swpipe_plan_task(plan, "Forward", "stage", "1");
 *     swpipe_plan_needs(plan, "Forward", "Load", 0);
 *     char *text = swpipe_plan_print(plan);              what swsim export would print
 *     struct swpipe_config config = {.plan_text = text, ...};
 *
 * Keys and values are those of swplan(5): a plan has one meaning and one list of keys, however it was written. So
 * values are given as they stand in a plan: "2", "[batch, ids]", "{collective: all_reduce, comm: dp}". Calls add to the
 * plan in any order; a key that is given again replaces its value. A fault comes out when the plan is
 * printed, with the reason in swpipe_plan_error.
 *
 * Names are any text and need no quotes: the plan's, given to swpipe_plan_new, as those of tasks.
 *
 * Every call returns 0. It returns -1 when memory is exhausted, a name or a value is empty or has a line's end, or a key
 * is no word of letters, digits and _.
 */
#ifndef SWPIPE_BUILD_H
#define SWPIPE_BUILD_H

#ifdef __cplusplus
extern "C" {
#endif
#if defined __GNUC__
#pragma GCC visibility push(default)
#endif

struct swpipe_plan;

/* NULL: memory is exhausted, or `name` cannot be a name. */
struct swpipe_plan *swpipe_plan_new(const char *name);
/* NULL is allowed. */
void swpipe_plan_free(struct swpipe_plan *plan);

/* A key of the plan itself: "ranks", "driver", "retire", "machine", ... */
int swpipe_plan_set(struct swpipe_plan *plan, const char *key, const char *value);
/* A key of a task, a buffer, a stream; the first call for a name makes it. */
int swpipe_plan_task(struct swpipe_plan *plan, const char *task, const char *key,
                     const char *value);
int swpipe_plan_buffer(struct swpipe_plan *plan, const char *buffer, const char *key,
                       const char *value);
int swpipe_plan_stream(struct swpipe_plan *plan, const char *stream, const char *key,
                       const char *value);
/* The ranks of a communicator, as a plan has them: "[0, 2]". */
int swpipe_plan_comm(struct swpipe_plan *plan, const char *comm, const char *ranks);
/* `task` of iteration i needs `on` of iteration i - distance; 0: the same. */
int swpipe_plan_needs(struct swpipe_plan *plan, const char *task, const char *on, int distance);

/* The plan as text, for malloc's free, in the form of `swsim export`. NULL: the calls make no valid plan, and
   swpipe_plan_error has the reason. */
char *swpipe_plan_print(struct swpipe_plan *plan);
/* The reason why the last print returned NULL, with the line that is wrong; "": it returned a text. */
const char *swpipe_plan_error(const struct swpipe_plan *plan);

#if defined __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
