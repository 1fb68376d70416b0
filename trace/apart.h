/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apart.h - work with libraries that end the process when memory is short, in a process of its own.
 *
 * Graphviz, Pango and GLib abort, dereference NULL or call exit when they are refused memory, a file or a thread. A
 * picture is therefore drawn by a child process, which hands back its bytes; however it ends, its parent goes on and
 * has a message. The child dies with its parent, and after a time: the same libraries read and parse for ever a file
 * that they cannot read.
 *
 * They also go on without a letter, a font or a whole plugin, and say nothing. A result that does not show whether all
 * is in it, such as an image of pixels, is therefore made by two children at a time, and is taken if they agree.
 */
#ifndef SWSIM_APART_H
#define SWSIM_APART_H

#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"
#include "base/status.h"

/* Make `*bytes` bytes, which nobody need free. */
typedef enum status apart_work(void *context, char **data, size_t *bytes, struct diag *diag);

/* Are two results of one work the same? What need not be the same may be changed. */
typedef bool apart_same(char *a, size_t a_bytes, char *b, size_t b_bytes);

/* Do the work in a child, for at most `limit_s` seconds; with `same` in two of them, whose results must be the same. On
   success the caller frees *data. Messages of the libraries on standard error are warnings, or the reason of a failure.
   STATUS_SYSTEM where a child cannot be started or does not come to its end, or two results differ; else the status
   and the error of `work`. `subject` names the result in messages. */
enum status apart_run(apart_work *work, void *context, const char *subject, unsigned limit_s,
                      apart_same *same, char **data, size_t *bytes, struct diag *diag);

#endif
