/* SPDX-License-Identifier: Apache-2.0 */
/* text_stream.c - see text_stream.h: a stream of fopencookie over an array that doubles. */
#include "text_stream.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Room for `more` bytes and a zero. */
static bool text_stream_grow(struct text_stream *stream, size_t more)
{
    size_t cap = stream->cap ? stream->cap : 1024;
    if (more > SIZE_MAX / 4 - stream->bytes)
        return false;
    while (cap < stream->bytes + more + 1)
        cap *= 2;
    char *grown = cap == stream->cap ? stream->text : realloc(stream->text, cap);
    if (!grown)
        return false;
    stream->text = grown;
    stream->cap = cap;
    return true;
}

/* 0 is how such a function says that it failed. */
static ssize_t text_stream_add(void *cookie, const char *data, size_t bytes)
{
    struct text_stream *stream = cookie;
    if (stream->failed || !text_stream_grow(stream, bytes)) {
        stream->failed = true;
        return 0;
    }
    memcpy(stream->text + stream->bytes, data, bytes);
    stream->bytes += bytes;
    stream->text[stream->bytes] = '\0';
    return (ssize_t)bytes;
}

bool text_open(struct text_stream *stream)
{
    *stream = (struct text_stream){0};
    if (text_stream_grow(stream, 0))
        stream->out = fopencookie(stream, "w", (cookie_io_functions_t){.write = text_stream_add});
    if (!stream->out) {
        free(stream->text);
        return false;
    }
    stream->text[0] = '\0';
    return true;
}

char *text_close(struct text_stream *stream, bool keep, size_t *bytes)
{
    bool whole = !ferror(stream->out);
    whole = fclose(stream->out) == 0 && whole && !stream->failed;
    char *text = stream->text;
    if (keep && whole && bytes)
        *bytes = stream->bytes;
    *stream = (struct text_stream){0};
    if (keep && whole)
        return text;
    free(text);
    return NULL;
}
