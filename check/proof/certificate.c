/* SPDX-License-Identifier: Apache-2.0 */
/* certificate.c - see certificate.h. */
#include "certificate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool certificate_refuse(struct certificate *c, const char *format, ...)
{
    if (c->refused)
        return false;
    c->refused = true;
    va_list arguments;
    va_start(arguments, format);
    size_t length = (size_t)snprintf(c->why, sizeof c->why, "line %" PRId64 ": ", c->line);
    vsnprintf(c->why + length, sizeof c->why - length, format, arguments);
    va_end(arguments);
    return false;
}

static bool certificate_is_space(char character)
{
    return character == ' ' || character == '\n';
}

/* The next word; empty at the end. */
static size_t find_word(struct certificate *c)
{
    for (; c->at < c->end && certificate_is_space(*c->at); c->at++)
        c->line += *c->at == '\n';
    size_t length = 0;
    while (c->at + length < c->end && !certificate_is_space(c->at[length]))
        length++;
    return length;
}

bool certificate_accept(struct certificate *c, const char *word)
{
    size_t length = find_word(c);
    if (c->refused || length != strlen(word) || memcmp(c->at, word, length) != 0)
        return false;
    c->at += length;
    return true;
}

bool certificate_expect(struct certificate *c, const char *word)
{
    return certificate_accept(c, word) || certificate_refuse(c, "expected '%s'", word);
}

bool certificate_number(struct certificate *c, const char *word, int64_t least, int64_t most,
                        int64_t *out)
{
    if (word && !certificate_expect(c, word))
        return false;
    size_t length = find_word(c), i = length > 0 && *c->at == '-';
    int64_t value = 0;
    bool good = !c->refused && i < length;
    for (; good && i < length; i++) {
        good = c->at[i] >= '0' && c->at[i] <= '9' && value <= CERTIFICATE_MOST;
        value = good ? 10 * value + (c->at[i] - '0') : 0;
    }
    value = good && *c->at == '-' ? -value : value;
    const bool fits = good && value >= least && value <= most;
    if (!fits && least == most)
        return certificate_refuse(c, "expected the number %" PRId64, least);
    if (!fits)
        return certificate_refuse(c, "expected a number from %" PRId64 " to %" PRId64, least, most);
    c->at += length;
    *out = value;
    return true;
}

bool certificate_index(struct certificate *c, const char *word, int64_t count, int *out)
{
    int64_t value;
    if (!certificate_number(c, word, 0, count - 1, &value))
        return false;
    *out = (int)value;
    return true;
}
