/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apart.h - work of libraries that may end their process, done in a child process.
 *
 * Graphviz, Pango and GLib abort, dereference NULL or call exit when they are refused memory, a file or a thread. A
 * picture is therefore drawn by a child process, which hands back its bytes; however it ends, its parent goes on and
 * has a message. The child dies with its parent, and after a time: the same libraries read and parse for ever a file
 * that they cannot read.
 */
#ifndef SWSIM_APART_H
#define SWSIM_APART_H

#include <stddef.h>

#include "base/diag.h"
#include "base/status.h"

/* Make `*bytes` bytes, which nobody need free. */
typedef enum status apart_work(void *context, char **data, size_t *bytes, struct diag *diag);

enum { APART_SAID = 4000 };

struct apart_result {
    char *data; /* the caller frees it; a zero stands behind its bytes */
    size_t bytes;
    char said[APART_SAID]; /* the beginning of what the libraries wrote to standard error */
};

/* Do the work in a child, for at most `limit_s` seconds. `subject` names the result in messages. STATUS_SYSTEM where a child
   cannot be started or does not come to its end; else the status and the error of `work`. */
enum status apart_run(apart_work *work, void *context, const char *subject, unsigned limit_s,
                      struct apart_result *out, struct diag *diag);

#endif
