/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text_stream.h - a stream whose text is kept in memory, and that notices when memory runs out.
 *
 * As open_memstream, but for its failures: there a text that could not grow ends early without an error.
 * The text belongs to the stream until text_close hands it over; the caller frees it.
 */
#ifndef SWSIM_TEXT_STREAM_H
#define SWSIM_TEXT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct text_stream {
    FILE *out; /* to write to */
    char *text;
    size_t bytes, cap;
    bool failed; /* out of memory */
};

/* False: out of memory. The stream must stay where it is until it is closed. */
bool text_open(struct text_stream *stream);

/* The whole text, with a zero behind it, to be freed; NULL: out of memory. `bytes` may be NULL. Without `keep` nothing
   is kept, and the result is NULL. */
char *text_close(struct text_stream *stream, bool keep, size_t *bytes);

#endif
