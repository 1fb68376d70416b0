/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_spec.h - DB[:RUN] on a command line: a run of a trace store.
 */
#ifndef SWSIM_RUN_SPEC_H
#define SWSIM_RUN_SPEC_H

#include "app.h"

/* Does it name a run, DB:RUN? A name with a colon in it is a name if such a file is there. */
bool run_spec_has_run(const char *spec);

/* *out_path lives in the app's arena or is `spec`; *out_run is STORE_LATEST where none is named. `option` names the
   argument in messages. */
enum status run_spec_parse(struct app *app, const char *option, const char *spec,
                           const char **out_path, int64_t *out_run);

/* Does the file begin as an SQLite database does? "-" does not. STATUS_SYSTEM where it cannot be read. */
enum status run_spec_is_store(struct app *app, const char *path, bool *out);

#endif
