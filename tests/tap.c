/* SPDX-License-Identifier: Apache-2.0 */
/* tap.c - see tap.h. The plan line comes last, so that a test need not count its cases. */
#include "tap.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int cases, failures;

static void report(int passed, const char *fmt, va_list args)
{
    cases++;
    failures += !passed;
    printf("%sok %d - ", passed ? "" : "not ", cases);
    vprintf(fmt, args);
    putchar('\n');
    fflush(stdout); /* a crash later must not take this line with it */
}

void tap_ok(int cond, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    report(cond, fmt, args);
    va_end(args);
}

void tap_is_int(long long got, long long want, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    report(got == want, fmt, args);
    va_end(args);
    if (got != want)
        tap_note("got %lld, want %lld", got, want);
}

void tap_is_str(const char *got, const char *want, const char *fmt, ...)
{
    int equal = got && want ? strcmp(got, want) == 0 : got == want;
    va_list args;
    va_start(args, fmt);
    report(equal, fmt, args);
    va_end(args);
    if (!equal) {
        tap_note("got  '%s'", got ? got : "(null)");
        tap_note("want '%s'", want ? want : "(null)");
    }
}

void tap_skip(const char *why)
{
    printf("ok %d # SKIP %s\n", ++cases, why);
    fflush(stdout);
}

/* Every line of a longer text is a comment of its own. */
void tap_note(const char *fmt, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0)
        text = NULL;
    va_end(args);
    for (const char *line = text ? text : fmt; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        printf("# %.*s\n", (int)strcspn(line, "\n"), line);
    }
    free(text);
    fflush(stdout);
}

void tap_forget(void)
{
    cases = failures = 0;
}

int tap_done(void)
{
    printf("1..%d\n", cases);
    if (failures)
        tap_note("%d of %d failed", failures, cases);
    return cases == 0 || failures != 0;
}
