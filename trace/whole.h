/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whole.h - tells by the structure of its bytes whether the file of a picture is complete.
 *
 * A file that a library stopped writing in the middle is not; what a complete file shows is not looked at.
 */
#ifndef SWSIM_WHOLE_H
#define SWSIM_WHOLE_H

#include <stdbool.h>
#include <stddef.h>

/* True if the bytes are a PNG from its signature to the chunk IEND, each chunk with the checksum that it states (PNG
   specification, section 5). */
bool whole_png(const char *data, size_t bytes);

/* True if the bytes begin as a PDF and end with %%EOF, and the `startxref` before it states where a cross-reference table or
   stream is (ISO 32000-1, section 7.5). */
bool whole_pdf(const char *data, size_t bytes);

/* True if the bytes end with the end tag of the element `svg`. */
bool whole_svg(const char *data, size_t bytes);

#endif
