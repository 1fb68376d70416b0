/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tap.h - the Test Anything Protocol for our C tests: one line on standard output for each case.
 *
 * A test's main makes its checks and ends with `return tap_done();`. A failed check never stops the
 * test: it prints `not ok`, says why in comment lines and is counted. Descriptions are printf
 * formats without a final newline. For one thread; the counters live in tap.c.
 */
#ifndef SWSIM_TAP_H
#define SWSIM_TAP_H

/* One case: passed when `cond` is not 0. */
void tap_ok(int cond, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* One case: passed when `got` equals `want`; says both when it does not. A NULL string equals only
   NULL. */
void tap_is_int(long long got, long long want, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void tap_is_str(const char *got, const char *want, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* One case that could not be tried here, and why. */
void tap_skip(const char *why);

/* A comment in the log. */
void tap_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* In a fork: the cases of the parent are not this process's. */
void tap_forget(void);

/* Print the plan. Returns the exit status for main: 0 when at least one case ran and none failed. */
int tap_done(void);

#endif
