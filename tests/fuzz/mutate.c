/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutate.c - see mutate.h.
 *
 * An input is cut into spans: words, numbers, single other characters, or lines. A mutation takes one of the spans and
 * puts something in its place: a word of the tables, another span of the input, a number at some limit, nothing, or
 * itself twice.
 */
#include "mutate.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *const words[] = {
#include "tests/fuzz/words.inc"
};

static const char *const numbers[] = {
    "0",     "1",     "2",     "3",          "4",          "7",
    "8",     "63",    "64",    "65",         "254",        "255",
    "256",   "1023",  "1024",  "1025",       "4096",       "65535",
    "65536", "-1",    "-0",    "00",         "1e9",        "0.5",
    "0x10",  "1.0",   "99999", "2147483647", "2147483648", "9223372036854775807",
    "1ns",   "0.2ms", "5us",   "3s",         "64MiB",      "9223372036854775808",
    "50%",   "1e308", "nan",   "4294967296", "1048576",    "18446744073709551616",
};

/* The characters between words. */
static const char *const marks[] = {": ", ", ",   "[",  "]",  "{",  "}", "\n", "\n  ", "\n    ",
                                    "- ", "#",    "\"", "'",  "|",  ">", "&a", "*a",   "!!x",
                                    "\t", "(",    ")",  ";",  "=",  "%", "+",  "---",  "null",
                                    "\\", "\r\n", "~",  "? ", "[]", "{}"};

#define COUNT(array) (sizeof(array) / sizeof *(array))

struct span {
    size_t begin, end;
};

struct draw {
    uint64_t state;
};

/* splitmix64 (Steele, Lea, Flood 2014) */
static size_t below(struct draw *draw, size_t limit)
{
    uint64_t z = (draw->state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    z ^= z >> 31;
    return limit ? (size_t)(z % limit) : 0;
}

/* ---- spans ----------------------------------------------------------------------------------- */

static bool is_of_word(uint8_t c)
{
    return isalnum(c) || c == '_' || c == '.' || c == '-' || c >= 0x80;
}

/* The word around a random place, or the character there. */
static struct span some_word(struct draw *draw, const uint8_t *data, size_t size)
{
    size_t at = below(draw, size);
    struct span span = {at, at + 1};
    if (!is_of_word(data[at]))
        return span;
    while (span.begin > 0 && is_of_word(data[span.begin - 1]))
        span.begin--;
    while (span.end < size && is_of_word(data[span.end]))
        span.end++;
    return span;
}

/* The line around a random place, and sometimes some lines behind it. */
static struct span some_lines(struct draw *draw, const uint8_t *data, size_t size)
{
    size_t at = below(draw, size);
    struct span span = {at, at};
    while (span.begin > 0 && data[span.begin - 1] != '\n')
        span.begin--;
    for (size_t lines = below(draw, 4) ? 1 : 1 + below(draw, 6); lines > 0 && span.end < size;
         lines--) {
        while (span.end < size && data[span.end] != '\n')
            span.end++;
        span.end += span.end < size;
    }
    return span;
}

static bool open_bracket(uint8_t c)
{
    return c == '[' || c == '{' || c == '(';
}

static bool close_bracket(uint8_t c)
{
    return c == ']' || c == '}' || c == ')';
}

/* The contents of a pair of brackets, or a list's item within it; a word where there is no bracket. */
static struct span some_item(struct draw *draw, const uint8_t *data, size_t size)
{
    size_t at = below(draw, size), depth = 0;
    while (at < size && !open_bracket(data[at]))
        at++;
    if (at == size)
        return some_word(draw, data, size);
    struct span span = {at + 1, at + 1};
    for (; span.end < size && (depth || !close_bracket(data[span.end])); span.end++) {
        depth += open_bracket(data[span.end]);
        depth -= close_bracket(data[span.end]);
    }
    return span;
}

static struct span some_span(struct draw *draw, const uint8_t *data, size_t size)
{
    switch (below(draw, 5)) {
    case 0:
    case 1: return some_lines(draw, data, size);
    case 2: return some_item(draw, data, size);
    default: return some_word(draw, data, size);
    }
}

/* ---- changes --------------------------------------------------------------------------------- */

/* `with` in place of a span. Returns the new size; the old one where there is no room. `with` is not in `data`. */
static size_t replace(uint8_t *data, size_t size, size_t most, struct span span,
                      const uint8_t *with, size_t length)
{
    size_t rest = size - span.end;
    if (span.begin + length + rest > most)
        return size;
    memmove(data + span.begin + length, data + span.end, rest);
    memcpy(data + span.begin, with, length);
    return span.begin + length + rest;
}

static size_t put_text(struct draw *draw, uint8_t *data, size_t size, size_t most, const char *text,
                       bool keep)
{
    struct span span = some_word(draw, data, size);
    if (keep)
        span.end = span.begin;
    return replace(data, size, most, span, (const uint8_t *)text, strlen(text));
}

enum { CARRIED = 4096 };

/* A span of the input in place of another one, or in front of it. */
static size_t carry(struct draw *draw, uint8_t *data, size_t size, size_t most)
{
    uint8_t carried[CARRIED];
    bool lines = below(draw, 2);
    struct span from = lines ? some_lines(draw, data, size) : some_word(draw, data, size);
    struct span to = lines ? some_lines(draw, data, size) : some_word(draw, data, size);
    size_t length = from.end - from.begin;
    if (length > sizeof carried)
        return size;
    memcpy(carried, data + from.begin, length);
    if (below(draw, 2))
        to.end = to.begin;
    return replace(data, size, most, to, carried, length);
}

static size_t drop(struct draw *draw, uint8_t *data, size_t size, size_t most)
{
    return replace(data, size, most, some_span(draw, data, size), data, 0);
}

static size_t repeat(struct draw *draw, uint8_t *data, size_t size, size_t most)
{
    uint8_t carried[CARRIED];
    struct span span = some_span(draw, data, size);
    size_t length = span.end - span.begin;
    if (length > sizeof carried)
        return size;
    memcpy(carried, data + span.begin, length);
    span.begin = span.end;
    return replace(data, size, most, span, carried, length);
}

/* One more or one less of a number's last digit; of another word, a letter. */
static size_t nudge(struct draw *draw, uint8_t *data, size_t size)
{
    struct span span = some_word(draw, data, size);
    uint8_t *last = &data[span.end - 1];
    if (isdigit(*last))
        *last = (uint8_t)('0' + (*last - '0' + (below(draw, 2) ? 1 : 9)) % 10);
    else if (isalpha(*last))
        *last = (uint8_t)('a' + below(draw, 26));
    return size;
}

/* A key of the tables with a value, as a line of its own with the indentation of its neighbour. */
static size_t add_key(struct draw *draw, uint8_t *data, size_t size, size_t most)
{
    char line[256];
    struct span span = some_lines(draw, data, size);
    size_t indent = 0;
    while (span.begin + indent < span.end && data[span.begin + indent] == ' ' && indent < 16)
        indent++;
    const char *key = words[below(draw, COUNT(words))];
    const char *value =
        below(draw, 2) ? words[below(draw, COUNT(words))] : numbers[below(draw, COUNT(numbers))];
    int length = snprintf(line, sizeof line, "%*s%s: %s\n", (int)indent, "", key, value);
    span.end = span.begin;
    return replace(data, size, most, span, (const uint8_t *)line, (size_t)length);
}

static size_t change(struct draw *draw, uint8_t *data, size_t size, size_t most)
{
    switch (below(draw, 12)) {
    case 0:
    case 1: return put_text(draw, data, size, most, words[below(draw, COUNT(words))], false);
    case 2: return put_text(draw, data, size, most, words[below(draw, COUNT(words))], true);
    case 3:
    case 4: return put_text(draw, data, size, most, numbers[below(draw, COUNT(numbers))], false);
    case 5:
        return put_text(draw, data, size, most, marks[below(draw, COUNT(marks))], below(draw, 2));
    case 6:
    case 7: return carry(draw, data, size, most);
    case 8: return drop(draw, data, size, most);
    case 9: return repeat(draw, data, size, most);
    case 10: return nudge(draw, data, size);
    default: return add_key(draw, data, size, most);
    }
}

size_t mutate_text(uint8_t *data, size_t size, size_t most, uint32_t seed)
{
    struct draw draw = {seed};
    for (size_t changes = 1 + below(&draw, 4); changes > 0 && size > 0; changes--)
        size = change(&draw, data, size, most);
    return size;
}

size_t mutate_mix(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size, uint8_t *out,
                  size_t most, uint32_t seed)
{
    struct draw draw = {seed};
    size_t size = a_size < most ? a_size : most;
    memcpy(out, a, size);
    if (size == 0 || b_size == 0)
        return size;
    struct span from = some_span(&draw, b, b_size), to = some_span(&draw, out, size);
    if (below(&draw, 2))
        to.end = to.begin;
    return replace(out, size, most, to, b + from.begin, from.end - from.begin);
}
