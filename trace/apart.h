/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apart.h - work with libraries that end the process when memory is short, in a process of its own.
 *
 * Graphviz, Pango and GLib abort, dereference NULL or call exit when they are refused memory, a file or a thread. A
 * picture is therefore drawn by a child process, which hands back its bytes; however it ends, its parent goes on and
 * has a message. The child dies with its parent, and after a time: the same libraries read and parse for ever a file
 * that they cannot read.
 */
#ifndef SWSIM_APART_H
#define SWSIM_APART_H

#include <stddef.h>

#include "plan/diag.h"
#include "plan/status.h"

/* Make `*bytes` bytes, which nobody need free. */
typedef enum status apart_work(void *context, char **data, size_t *bytes, struct diag *diag);

/* Do the work in a child, for at most `limit_s` seconds; on success the caller frees *data. Messages of the libraries on standard error are warnings,
   or the reason of a failure. STATUS_SYSTEM where the child cannot be started or does not come to its end;
   else the status and the error of `work`. `subject` names the result in messages. */
enum status apart_run(apart_work *work, void *context, const char *subject, unsigned limit_s,
                      char **data, size_t *bytes, struct diag *diag);

#endif
