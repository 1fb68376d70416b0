/* SPDX-License-Identifier: Apache-2.0 */
/*
 * witness.h - counterexamples in files: as text, as JSON, as a picture, and as runs of a trace store
 * that `swsim render` draws and `swrun --replay` repeats.
 */
#ifndef SWSIM_WITNESS_H
#define SWSIM_WITNESS_H

#include "app.h"

#include "api/verdict.h"

/* True if the file holds many. A store does: every violation of every plan is added to it. */
bool witness_keeps_all(const char *path);

/* Write the violation in the view's report about `plan` under `options`; the suffix decides the format: .txt,
   .json, a picture (.svg, .png, .dot) of the first violation, or a trace store (.db). */
enum status witness_save(struct app *app, const struct plan *plan,
                         const struct program_options *options, const struct verdict_view *view,
                         const char *path);

#endif
