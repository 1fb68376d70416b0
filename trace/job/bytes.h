/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bytes.h - the bytes of a file from its beginning to its end, inflated if they are compressed.
 *
 * A file of gzip is recognised by its first two bytes; several members one after the other are one
 * text. The memory is that of zlib's window and one buffer, whatever the size of the file. Errors are
 * described in `diag`: a file that cannot be read is STATUS_SYSTEM, one whose compressed data end
 * too early or are damaged STATUS_INPUT.
 */
#ifndef SWSIM_BYTES_H
#define SWSIM_BYTES_H

#include <stddef.h>

#include "base/diag.h"

struct bytes;

/* The file at `path`; the caller ends *out with bytes_close. `path` must outlive it. */
enum status bytes_open(const char *path, struct bytes **out, struct diag *diag);

/* `length` bytes in memory, which must outlive it; compressed or not, as a file. `name` is for messages. */
enum status bytes_open_memory(const char *name, const void *data, size_t length, struct bytes **out,
                              struct diag *diag);

/* The next bytes, at most `cap` > 0; *got is 0 only at the end. */
enum status bytes_read(struct bytes *bytes, void *buffer, size_t cap, size_t *got,
                       struct diag *diag);

const char *bytes_name(const struct bytes *bytes);

void bytes_close(struct bytes *bytes);

#endif
