/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input.h - files that are read.
 *
 * A pipe with a name may be there before the process that writes to it: it is waited for, for 10 seconds. Where that
 * process is, its silence is not limited.
 */
#ifndef SWSIM_INPUT_H
#define SWSIM_INPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "diag.h"
#include "status.h"

/* A descriptor to read from; -1 with a message that names `path`. */
int input_open(const char *path, struct diag *diag);
/* The same as a stream, NULL on failure. */
FILE *input_open_stream(const char *path, struct diag *diag);

/* True if there is a file of this name that can be read more than once. */
bool input_is_ordinary(const char *path);

/* Descriptors 0, 1 and 2 that were closed when the program began fail from now on, whatever is read and written: a
   file that is opened does not become standard output. False: errno says why. */
bool input_keep_streams(void);

#endif
