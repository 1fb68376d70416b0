/* SPDX-License-Identifier: Apache-2.0 */
/*
 * large_pages.h - memory for large tables.
 *
 * Tables of a large schedule take gigabytes. On pages of 2 MiB, where the system gives them on request, they are handed
 * out and found with fewer look-ups than on pages of 4 KiB; elsewhere it is plain calloc.
 */
#ifndef SWSIM_LARGE_PAGES_H
#define SWSIM_LARGE_PAGES_H

#include <stddef.h>

/* As calloc; free gives it back. */
void *large_calloc(size_t count, size_t size);

#endif
