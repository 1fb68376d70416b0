/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixed_order.h - which operations of other host threads come before an operation of one, and which behind it, in every run.
 *
 * The order follows from flags that one operation sets and nothing changes again: whoever awaits such a flag comes behind that
 * operation, and behind all that its thread did or learned before. Each thread has a list of the places where it learns more:
 *
 *     thread A   0 push   1 signal f          2 push
 *     thread B   0 push             1 await f         2 push      from 1 on: 2 operations of A are done
 *
 * So operation 1 of A meets none of B from 1 on: these come behind it. The order belongs to the program's arena.
 */
#ifndef SWSIM_FIXED_ORDER_H
#define SWSIM_FIXED_ORDER_H

#include "program.h"

struct fixed_order;

/* NULL: no flag orders two threads, faults may end a thread, branches leave operations out, or the order would take too
   much memory, as arena.failed may tell. */
struct fixed_order *fixed_order_make(struct program *program);

/* How many operations of the body of `other` are done before operation `at` of the body of `thread`, at least. */
int fixed_order_before(const struct fixed_order *order, int thread, int at, int other);

/* The first operation of the body of `other` that is done behind it; INT_MAX: none. */
int fixed_order_behind(const struct fixed_order *order, int thread, int at, int other);

#endif
