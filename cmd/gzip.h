/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip.h - a text as a file of gzip(1).
 */
#ifndef SWSIM_GZIP_H
#define SWSIM_GZIP_H

#include <stddef.h>

/* `text` compressed, which the caller frees, and its bytes. NULL: no memory. */
char *gzip_text(const char *text, size_t bytes, size_t *out_bytes);

#endif
