/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_spec.h - is a file on a command line a trace store or a plan?
 */
#ifndef SWSIM_RUN_SPEC_H
#define SWSIM_RUN_SPEC_H

#include "app.h"

/* Does the file begin as an SQLite database does? "-" does not. STATUS_SYSTEM where it cannot be read. */
enum status run_spec_is_store(struct app *app, const char *path, bool *out);

#endif
