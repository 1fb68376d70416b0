/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replace_file.h - a file gets another text, whole or not at all.
 */
#ifndef SWSIM_REPLACE_FILE_H
#define SWSIM_REPLACE_FILE_H

#include "app.h"

/* The file must still hold `known`; it is then replaced as base/output.h says. STATUS_USAGE: it is standard input or
   no ordinary file; STATUS_INPUT: it has changed; STATUS_SYSTEM. */
enum status replace_file(struct app *app, const char *path, const char *known, const char *text);

#endif
