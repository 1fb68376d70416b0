/* tap.c - see tap.h. The plan line comes last, so that a test need not count its cases. */
#include "tap.h"

#include <stdarg.h>
#include <stdio.h>
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

/* Every line of a longer text must be a comment of its own. */
static void note_text(const char *label, const char *text)
{
    if (!text) {
        tap_note("%s NULL", label);
        return;
    }
    for (;;) {
        size_t length = strcspn(text, "\n");
        tap_note("%s '%.*s'", label, (int)length, text);
        text += length;
        if (*text++ == '\0')
            return;
    }
}

void tap_is_str(const char *got, const char *want, const char *fmt, ...)
{
    int equal = got && want ? strcmp(got, want) == 0 : got == want;
    va_list args;
    va_start(args, fmt);
    report(equal, fmt, args);
    va_end(args);
    if (!equal) {
        note_text("got ", got);
        note_text("want", want);
    }
}

void tap_skip(const char *why)
{
    printf("ok %d # SKIP %s\n", ++cases, why);
    fflush(stdout);
}

void tap_note(const char *fmt, ...)
{
    va_list args;
    fputs("# ", stdout);
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

int tap_done(void)
{
    printf("1..%d\n", cases);
    if (failures)
        tap_note("%d of %d failed", failures, cases);
    return cases == 0 || failures != 0;
}
