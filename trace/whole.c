/* SPDX-License-Identifier: Apache-2.0 */
/* whole.c - see whole.h. */
#include "whole.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- PNG ------------------------------------------------------------------------------------- */

static uint32_t big_endian(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* CRC-32 of the PNG specification, appendix D, four bits at a time. */
static uint32_t png_checksum(const unsigned char *bytes, size_t count)
{
    uint32_t table[16], crc = UINT32_MAX;
    for (uint32_t i = 0; i < 16; i++) {
        table[i] = i;
        for (int bit = 0; bit < 4; bit++)
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? UINT32_C(0xedb88320) : 0);
    }
    for (size_t i = 0; i < count; i++) {
        crc = crc >> 4 ^ table[(crc ^ bytes[i]) & 15];
        crc = crc >> 4 ^ table[(crc ^ bytes[i] >> 4) & 15];
    }
    return ~crc;
}

bool whole_png(const char *data, size_t bytes)
{
    enum {
        TYPE = 4,
        FRAME = 12
    }; /* of a chunk: the length before the type; length, type and checksum */
    static const char signature[] = "\x89PNG\r\n\x1a\n";
    const unsigned char *at = (const unsigned char *)data;
    size_t left = bytes;
    if (left < sizeof signature - 1 || memcmp(at, signature, sizeof signature - 1) != 0)
        return false;
    at += sizeof signature - 1;
    left -= sizeof signature - 1;
    while (left >= FRAME) {
        const size_t length = big_endian(at);
        if (length > left - FRAME ||
            png_checksum(at + TYPE, 4 + length) != big_endian(at + TYPE + 4 + length))
            return false;
        left -= FRAME + length;
        if (memcmp(at + TYPE, "IEND", 4) == 0)
            return left == 0;
        at += FRAME + length;
    }
    return false;
}

/* ---- PDF and SVG ------------------------------------------------------------------------------ */

static size_t without_line_ends(const char *data, size_t bytes)
{
    while (bytes > 0 && (data[bytes - 1] == '\n' || data[bytes - 1] == '\r'))
        bytes--;
    return bytes;
}

static bool whole_ends_with(const char *data, size_t bytes, const char *end)
{
    const size_t length = strlen(end);
    return bytes >= length && memcmp(data + bytes - length, end, length) == 0;
}

bool whole_pdf(const char *data, size_t bytes)
{
    enum { TAIL = 64 };
    static const char head[] = "%PDF-", key[] = "startxref", table[] = "xref";
    char tail[TAIL + 1], *digits_end;
    bytes = without_line_ends(data, bytes);
    if (bytes < TAIL || memcmp(data, head, sizeof head - 1) != 0 ||
        !whole_ends_with(data, bytes, "%%EOF"))
        return false;
    memcpy(tail, data + bytes - TAIL, TAIL);
    tail[TAIL] = '\0';
    const char *found = memmem(tail, TAIL, key, sizeof key - 1);
    const size_t place = found ? strtoull(found + sizeof key - 1, &digits_end, 10) : 0;
    if (place == 0 || place >= bytes - TAIL)
        return false;
    return memcmp(data + place, table, sizeof table - 1) == 0 ||
           (data[place] >= '0' && data[place] <= '9'); /* the number of an object: a stream */
}

bool whole_svg(const char *data, size_t bytes)
{
    return whole_ends_with(data, without_line_ends(data, bytes), "</svg>");
}
