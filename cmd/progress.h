/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - one line of progress of long work, on standard error.
 *
 * Shown only on a terminal and without --quiet, not before half a second and a few times a second
 * after that. progress_clear wipes it before anything else is printed.
 */
#ifndef SWSIM_PROGRESS_H
#define SWSIM_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "app.h"

struct progress {
    bool wanted, shown;
    int64_t next_ns;
};

void progress_init(struct progress *progress, const struct app *app);
/* Show the line if it is time to. */
void progress_show(struct progress *progress, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void progress_clear(struct progress *progress);

#endif
