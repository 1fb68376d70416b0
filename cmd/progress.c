/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c - see progress.h. */
#include "progress.h"

#include <stdarg.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_NS = 500000000, EVERY_NS = 200000000 };

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void progress_init(struct progress *progress, const struct app *app)
{
    *progress =
        (struct progress){.wanted = !app->quiet && !app->silent && isatty(STDERR_FILENO) == 1,
                          .next_ns = now_ns() + FIRST_NS};
}

void progress_show(struct progress *progress, const char *format, ...)
{
    if (!progress->wanted)
        return;
    int64_t now = now_ns();
    if (now < progress->next_ns)
        return;
    progress->next_ns = now + EVERY_NS;
    progress->shown = true;
    va_list args;
    va_start(args, format);
    fputs("\r\033[K", stderr);
    vfprintf(stderr, format, args);
    fflush(stderr);
    va_end(args);
}

void progress_clear(struct progress *progress)
{
    if (progress->shown)
        fputs("\r\033[K", stderr);
    progress->shown = false;
}
