/* SPDX-License-Identifier: Apache-2.0 */
/* gzip.c - see gzip.h. */
#include "gzip.h"

#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

enum {
    GZIP_FORMAT = 15 + 16, /* the largest window; with the header of gzip */
    MEMORY_LEVEL = 8,      /* the default of zlib */
    PIECE = 1 << 30        /* zlib counts in unsigned int */
};

static uInt piece(size_t left)
{
    return left < PIECE ? (uInt)left : PIECE;
}

char *gzip_text(const char *text, size_t bytes, size_t *out_bytes)
{
    z_stream stream = {0};
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_FORMAT, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return NULL;
    const size_t cap = deflateBound(&stream, bytes);
    char *out = malloc(cap);
    size_t read = 0, written = 0;
    int answer = out ? Z_OK : Z_MEM_ERROR;
    while (answer == Z_OK) {
        const uInt in = piece(bytes - read), room = piece(cap - written);
        stream.next_in = (z_const Bytef *)(uintptr_t)(text + read);
        stream.avail_in = in;
        stream.next_out = (Bytef *)out + written;
        stream.avail_out = room;
        answer = deflate(&stream, read + in == bytes ? Z_FINISH : Z_NO_FLUSH);
        read += in - stream.avail_in;
        written += room - stream.avail_out;
    }
    deflateEnd(&stream);
    if (answer != Z_STREAM_END) {
        free(out);
        return NULL;
    }
    *out_bytes = written;
    return out;
}
