/* SPDX-License-Identifier: Apache-2.0 */
/* page_column.c - see page_column.h. */
#include "page_column.h"

#include <stdio.h>
#include <string.h>

enum { WIDEST = 8 };

/* Base64 of bytes that come in pieces. */
struct base64 {
    FILE *out;
    unsigned char rest[3];
    int count;
};

static void put_three(struct base64 *base64, int bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *b = base64->rest;
    unsigned all = (unsigned)b[0] << 16 | (unsigned)b[1] << 8 | b[2];
    for (int i = 0; i < 4; i++)
        fputc(i <= bytes ? digits[all >> (18 - 6 * i) & 63] : '=', base64->out);
}

static void page_put_bytes(struct base64 *base64, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        base64->rest[base64->count++] = (unsigned char)(value >> (8 * i) & 0xff);
        if (base64->count == 3) {
            put_three(base64, 3);
            base64->count = 0;
        }
    }
}

static void end_base64(struct base64 *base64)
{
    if (base64->count == 0)
        return;
    for (int i = base64->count; i < 3; i++)
        base64->rest[i] = 0;
    put_three(base64, base64->count);
}

static int width_of(size_t count, page_number *number, const void *context)
{
    int width = 1;
    for (size_t i = 0; i < count && width < WIDEST; i++) {
        const int64_t value = number(context, i);
        while (width < WIDEST && (value < 0 || value >> (8 * width) > 0))
            width *= 2;
    }
    return width;
}

/* Written past the JSON writer: the text has nothing to escape. */
void page_column_write(struct json *json, const char *key, size_t count, page_number *number,
                       const void *context)
{
    const int width = width_of(count, number, context);
    struct base64 base64 = {.out = json->out};
    json_key(json, key);
    json->after_key = false;
    fprintf(json->out, "\"%d:", width);
    for (size_t i = 0; i < count; i++) {
        const int64_t value = number(context, i);
        const double real = (double)value;
        uint64_t bits = (uint64_t)value;
        if (width == WIDEST)
            memcpy(&bits, &real, sizeof bits);
        page_put_bytes(&base64, bits, width);
    }
    end_base64(&base64);
    fputc('"', json->out);
}
