/* SPDX-License-Identifier: Apache-2.0 */
/* printable.c - see printable.h. UTF-8 as in RFC 3629: shortest forms only, no surrogates. */
#include "printable.h"

#include <string.h>

enum { LONGEST = 9 /* "\u1fffe", and its end */ };

static bool continues(char byte)
{
    return ((unsigned char)byte & 0xC0) == 0x80;
}

size_t printable_decode(const char *text, unsigned *code)
{
    static const struct {
        unsigned char mask, lead;
        unsigned least;
    } forms[] = {{0x80, 0x00, 0}, {0xE0, 0xC0, 0x80}, {0xF0, 0xE0, 0x800}, {0xF8, 0xF0, 0x10000}};
    unsigned char first = (unsigned char)*text;
    *code = 0;
    for (size_t more = 0; more < sizeof forms / sizeof *forms; more++) {
        if ((first & forms[more].mask) != forms[more].lead)
            continue;
        unsigned value = first & (unsigned char)~forms[more].mask;
        for (size_t i = 1; i <= more; i++) {
            if (!continues(text[i]))
                return 1;
            value = value << 6 | ((unsigned char)text[i] & 0x3F);
        }
        bool good = value >= forms[more].least && value <= 0x10FFFF &&
                    !(value >= 0xD800 && value <= 0xDFFF);
        *code = good ? value : 0;
        return good ? more + 1 : 1;
    }
    return 1;
}

bool printable_acts(unsigned code)
{
    bool control = code < 0x20 || (code >= 0x7F && code <= 0x9F);
    bool direction = code == 0x061C || code == 0x200E || code == 0x200F ||
                     (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
    bool hidden = code == 0x2028 || code == 0x2029 || (code >= 0xFFF9 && code <= 0xFFFB) ||
                  code == 0xFEFF || (code & 0xFFFE) == 0xFFFE;
    return control || direction || hidden;
}

/* One character as it is seen; returns the bytes that it took. */
static size_t printable_show(const char *text, bool lines, char out[LONGEST], size_t *length)
{
    unsigned code;
    size_t bytes = printable_decode(text, &code);
    bool allowed = lines && (*text == '\n' || *text == '\t');
    if (allowed || !printable_acts(code)) {
        memcpy(out, text, bytes);
        *length = bytes;
    } else if (code < 0x80) {
        *length = (size_t)snprintf(out, LONGEST, "\\x%02x", (unsigned char)*text);
    } else {
        *length = (size_t)snprintf(out, LONGEST, "\\u%04x", code);
    }
    return bytes;
}

int printable_fit(const char *text, int most)
{
    int at = 0;
    unsigned code = 0;
    while (text[at]) {
        int bytes = (int)printable_decode(text + at, &code);
        if (code == 0 || at + bytes > most)
            break;
        at += bytes;
    }
    return at;
}

bool printable_is(const char *text, bool lines)
{
    unsigned code;
    for (size_t bytes; *text; text += bytes) {
        bytes = 1;
        if (*text >= ' ' && *text <= '~') /* most of them */
            continue;
        bytes = printable_decode(text, &code);
        if (printable_acts(code) && !(lines && (*text == '\n' || *text == '\t')))
            return false;
    }
    return true;
}

const char *printable_text(struct arena *arena, const char *text, bool lines)
{
    if (!text || printable_is(text, lines))
        return text;
    char *copy = arena_alloc(arena, strlen(text) * (LONGEST - 1) + LONGEST), *at = copy;
    for (size_t length; copy && *text; at += length)
        text += printable_show(text, lines, at, &length);
    return copy; /* the arena's memory is zeroed */
}

void printable_put(const char *text, bool lines, FILE *out)
{
    char shown[LONGEST];
    for (size_t length; *text; fwrite(shown, 1, length, out))
        text += printable_show(text, lines, shown, &length);
}
