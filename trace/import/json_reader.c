/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_reader.c - the grammar as a state between two tokens, and a window of the text.
 *
 * A token is read within the window. Where the window ends inside of one, the window moves: what there is of the
 * token goes to its front, more bytes come behind it, and the token is read again. Behind the window stand
 * PADDING bytes of zero, so a loop may look eight bytes ahead.
 */
#include "json_reader.h"

#include <stdlib.h>

enum { FIRST_WINDOW = 256 * 1024, PADDING = 8 };

/* The token that the grammar allows next. */
enum {
    WANT_VALUE,
    WANT_FIRST_VALUE, /* or the end of the array */
    WANT_FIRST_KEY,   /* or the end of the object */
    WANT_COMMA,       /* or the end of what is open */
    WANT_NOTHING      /* the text is over */
};

static enum json_token json_reader_fail(struct json_reader *reader, enum status status)
{
    reader->status = status;
    return JSON_FAILED;
}

static unsigned long long json_reader_position(const struct json_reader *reader, const char *at)
{
    return reader->consumed + (uint64_t)(at - reader->buffer) + 1;
}

static enum json_token wrong(struct json_reader *reader, const char *at, const char *what)
{
    if (reader->status != STATUS_OK)
        return JSON_FAILED;
    return json_reader_fail(reader, diag_error(reader->diag, STATUS_INPUT, "%s: byte %llu: %s",
                                               bytes_name(reader->bytes),
                                               json_reader_position(reader, at), what));
}

enum status json_refuse(struct json_reader *reader, const char *expected)
{
    if (reader->status == STATUS_OK)
        json_reader_fail(reader, diag_error(reader->diag, STATUS_INPUT,
                                            "%s: byte %llu: expected %s", bytes_name(reader->bytes),
                                            json_reader_position(reader, reader->at), expected));
    return reader->status;
}

/* ---- the window ------------------------------------------------------------------------------ */

static bool json_reader_widen(struct json_reader *reader)
{
    if (reader->cap >= JSON_MAX_TOKEN) {
        wrong(reader, reader->at, "a string or number is longer than 64 MiB");
        return false;
    }
    const size_t cap = reader->cap * 2;
    char *buffer = realloc(reader->buffer, cap + PADDING);
    if (!buffer) {
        json_reader_fail(reader, diag_no_memory(reader->diag));
        return false;
    }
    reader->at = buffer + (reader->at - reader->buffer);
    reader->end = buffer + (reader->end - reader->buffer);
    reader->buffer = buffer;
    reader->cap = cap;
    return true;
}

/* More text behind `at`. False at the end of the text and after a failure. */
static bool more(struct json_reader *reader)
{
    if (reader->at_end || reader->status != STATUS_OK)
        return false;
    const size_t kept = (size_t)(reader->end - reader->at);
    if (kept == reader->cap && !json_reader_widen(reader))
        return false;
    memmove(reader->buffer, reader->at, kept);
    reader->consumed += (uint64_t)(reader->at - reader->buffer);
    reader->at = reader->buffer;
    reader->end = reader->buffer + kept;
    size_t got;
    enum status status =
        bytes_read(reader->bytes, reader->buffer + kept, reader->cap - kept, &got, reader->diag);
    if (status != STATUS_OK) {
        json_reader_fail(reader, status);
        return false;
    }
    reader->end += got;
    memset(reader->end, 0, PADDING);
    reader->at_end = got == 0;
    return got > 0;
}

enum status json_reader_open(struct json_reader *reader, struct bytes *bytes, struct diag *diag)
{
    *reader = (struct json_reader){.bytes = bytes, .diag = diag, .cap = FIRST_WINDOW};
    reader->buffer = malloc(FIRST_WINDOW + PADDING);
    if (!reader->buffer)
        return diag_no_memory(diag);
    reader->at = reader->end = reader->buffer;
    memset(reader->end, 0, PADDING);
    while (reader->end - reader->at < JSON_MARK_BYTES && more(reader))
        continue;
    reader->at += json_mark_length(reader->at, (size_t)(reader->end - reader->at));
    return STATUS_OK;
}

void json_reader_close(struct json_reader *reader)
{
    free(reader->buffer);
    reader->buffer = NULL;
}

static inline bool json_reader_is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* The first byte that is no white space; 0 at the end of the text. */
static inline char skip_space(struct json_reader *reader)
{
    do {
        while (json_reader_is_space(*reader->at))
            reader->at++;
        if (reader->at < reader->end)
            return *reader->at;
    } while (more(reader));
    return 0;
}

static enum json_token ended(struct json_reader *reader)
{
    if (reader->status != STATUS_OK)
        return JSON_FAILED;
    return wrong(reader, reader->end, "the JSON text ends before it is complete");
}

/* The text is over behind a value or its comma. */
static enum json_token ended_behind_value(struct json_reader *reader)
{
    const bool in_list = reader->depth == 1 && !reader->in_object[0];
    if (reader->status != STATUS_OK || !reader->end_is_optional || !in_list)
        return ended(reader);
    reader->has_no_end = true;
    reader->depth = 0;
    reader->state = WANT_NOTHING;
    return JSON_ARRAY_END;
}

/* ---- strings --------------------------------------------------------------------------------- */

/* Nonzero where one of the eight bytes is '"', '\\' or beyond ASCII. */
static inline uint64_t special_bytes(uint64_t word)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones * 0x80;
    const uint64_t quote = word ^ ones * '"', slash = word ^ ones * '\\';
    return (((quote - ones) & ~quote) | ((slash - ones) & ~slash) | word) & highs;
}

static inline char *plain_end(char *at, const char *end)
{
    while (at < end) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        if (special_bytes(word) != 0)
            break;
        at += sizeof word;
    }
    if (at >= end)
        return NULL;
    while (at < end && *at != '"' && *at != '\\' && (unsigned char)*at < 0x80)
        at++;
    return at < end ? at : NULL;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The four digits of \uXXXX; -1: they are none. */
static int hex_four(const char *at)
{
    int value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(at[i]);
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

static char *put_utf8(char *to, int code)
{
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    } else {
        *to++ = (char)(0xf0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 0x3f));
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    }
    return to;
}

/* The bytes of the character of UTF-8 at `at`, of which `left` are there; 0: it is none (RFC 3629). */
static size_t utf8_length(const unsigned char *at, size_t left)
{
    const unsigned char first = at[0];
    const size_t length = first < 0xc2   ? 0
                          : first < 0xe0 ? 2
                          : first < 0xf0 ? 3
                          : first < 0xf5 ? 4
                                         : 0;
    if (length == 0 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    const bool overlong = (first == 0xe0 && at[1] < 0xa0) || (first == 0xf0 && at[1] < 0x90);
    const bool beyond = (first == 0xed && at[1] >= 0xa0) || (first == 0xf4 && at[1] >= 0x90);
    return overlong || beyond ? 0 : length;
}

/* \uXXXX at `from`, behind the u; half of a pair without the other half is '?'. Returns what is behind it. */
static const char *decode_unicode(const char *from, const char *end, char **to)
{
    int code = hex_four(from);
    from += 4;
    if (code >= 0xd800 && code < 0xdc00 && end - from >= 6 && from[0] == '\\' && from[1] == 'u') {
        const int low = hex_four(from + 2);
        if (low >= 0xdc00 && low < 0xe000) {
            *to = put_utf8(*to, 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00));
            return from + 6;
        }
    }
    *to = put_utf8(*to, code >= 0xd800 && code < 0xe000 ? '?' : code);
    return from;
}

static const char escape_letters[] = "\"\\/bfnrt", escape_values[] = "\"\\/\b\f\n\r\t";

/* The text between `from` and `end` without escapes, in its own place; it has been checked. */
static size_t decode(char *from, const char *end)
{
    char *to = from;
    const char *at = from;
    while (at < end) {
        if (*at == '\\' && at[1] == 'u') {
            at = decode_unicode(at + 2, end, &to);
        } else if (*at == '\\') {
            *to++ = escape_values[strchr(escape_letters, at[1]) - escape_letters];
            at += 2;
        } else if ((unsigned char)*at < 0x80) {
            *to++ = *at++;
        } else {
            size_t length = utf8_length((const unsigned char *)at, (size_t)(end - at));
            if (length == 0)
                *to++ = '?', at++;
            for (; length > 0; length--)
                *to++ = *at++;
        }
    }
    return (size_t)(to - from);
}

/* Behind the escape at `at`; NULL: it is not there in full, or (with *bad) it is none. */
static char *escape_end(char *at, const char *end, bool *bad)
{
    if (end - at < 2)
        return NULL;
    if (at[1] != 'u') {
        *bad = at[1] == 0 || !strchr(escape_letters, at[1]);
        return *bad ? NULL : at + 2;
    }
    if (end - at < 6)
        return NULL;
    *bad = hex_four(at + 2) < 0;
    return *bad ? NULL : at + 6;
}

/* The quote that ends the string whose text begins at `at`; NULL as above. */
static char *string_end(char *at, const char *end, bool *plain, bool *bad)
{
    while ((at = plain_end(at, end)) && *at != '"') {
        *plain = false;
        if (*at != '\\')
            at++;
        else if (!(at = escape_end(at, end, bad)))
            return NULL;
    }
    return at;
}

/* The string that begins at `at` becomes the text; false after a failure. */
static inline bool read_string(struct json_reader *reader)
{
    bool bad = false;
    for (;;) {
        bool plain = true;
        char *text = reader->at + 1;
        char *quote = string_end(text, reader->end, &plain, &bad);
        if (quote) {
            reader->text = text;
            reader->length = plain ? (size_t)(quote - text) : decode(text, quote);
            reader->at = quote + 1;
            return true;
        }
        if (bad)
            wrong(reader, reader->at, "an unknown escape in the string that begins here");
        else if (more(reader))
            continue;
        else
            ended(reader);
        return false;
    }
}

/* ---- numbers and words ----------------------------------------------------------------------- */

static const char *json_reader_digits(const char *at)
{
    while (*at >= '0' && *at <= '9')
        at++;
    return at;
}

/* Behind the number at `at`; NULL: there is none. The byte behind the window ends it. */
static const char *number_end(const char *at)
{
    at += *at == '-';
    const char *whole = at;
    at = json_reader_digits(at);
    if (at == whole || (*whole == '0' && at > whole + 1))
        return NULL;
    if (*at == '.') {
        const char *fraction = at + 1;
        if ((at = json_reader_digits(fraction)) == fraction)
            return NULL;
    }
    if (*at == 'e' || *at == 'E') {
        at += at[1] == '+' || at[1] == '-' ? 2 : 1;
        const char *exponent = at;
        if ((at = json_reader_digits(exponent)) == exponent)
            return NULL;
    }
    return at;
}

/* As more(); *at stays at its place in the text. */
static bool more_of(struct json_reader *reader, const char **at)
{
    const size_t length = (size_t)(*at - reader->at);
    const bool found = more(reader);
    *at = reader->at + length;
    return found;
}

static enum json_token json_reader_read_number(struct json_reader *reader)
{
    const char *at = reader->at;
    while ((*at >= '0' && *at <= '9') || *at == '.' || *at == '-' || *at == '+' || *at == 'e' ||
           *at == 'E')
        if (++at == reader->end && !more_of(reader, &at))
            break;
    if (reader->status != STATUS_OK)
        return JSON_FAILED;
    if (number_end(reader->at) != at)
        return wrong(reader, reader->at, "not a number");
    reader->text = reader->at;
    reader->length = (size_t)(at - reader->at);
    reader->at += reader->length;
    return JSON_NUMBER;
}

static const struct word {
    const char *text;
    enum json_token token;
} words[] = {{"true", JSON_TRUE}, {"false", JSON_FALSE},   {"null", JSON_NULL},
             {"NaN", JSON_NULL},  {"Infinity", JSON_NULL}, {"-Infinity", JSON_NULL}};

static enum json_token read_word(struct json_reader *reader)
{
    enum { LONGEST = 9 };
    while (reader->end - reader->at < LONGEST && more(reader))
        continue;
    if (reader->status != STATUS_OK)
        return JSON_FAILED;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t length = strlen(words[i].text);
        if ((size_t)(reader->end - reader->at) < length ||
            memcmp(reader->at, words[i].text, length) != 0)
            continue;
        reader->at += length;
        return words[i].token;
    }
    return wrong(reader, reader->at, "expected a value");
}

static bool is_minus_infinity(struct json_reader *reader)
{
    if (reader->end - reader->at < 2)
        more(reader);
    return reader->at[1] == 'I';
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static enum json_token open_level(struct json_reader *reader, bool object)
{
    if (reader->depth == JSON_MAX_NESTING)
        return wrong(reader, reader->at, "objects and arrays are nested more than 256 deep");
    reader->in_object[reader->depth++] = object;
    reader->at++;
    reader->state = object ? WANT_FIRST_KEY : WANT_FIRST_VALUE;
    return object ? JSON_OBJECT : JSON_ARRAY;
}

static void value_is_over(struct json_reader *reader)
{
    reader->state = reader->depth > 0 ? WANT_COMMA : WANT_NOTHING;
}

static enum json_token close_level(struct json_reader *reader)
{
    const bool object = reader->in_object[--reader->depth];
    reader->at++;
    value_is_over(reader);
    return object ? JSON_OBJECT_END : JSON_ARRAY_END;
}

static inline enum json_token json_reader_read_value(struct json_reader *reader, char c)
{
    if (c == '{' || c == '[')
        return open_level(reader, c == '{');
    value_is_over(reader);
    if (c == '"')
        return read_string(reader) ? JSON_STRING : JSON_FAILED;
    if ((c >= '0' && c <= '9') || (c == '-' && !is_minus_infinity(reader)))
        return json_reader_read_number(reader);
    if (c == 0 && reader->at == reader->end)
        return ended(reader);
    return read_word(reader);
}

/* A key and its colon. The text stays where it is unless the colon lies behind the window. */
static inline enum json_token json_reader_read_key(struct json_reader *reader, char c)
{
    if (c != '"')
        return reader->at == reader->end ? ended(reader)
                                         : wrong(reader, reader->at, "expected a key in quotes");
    char *start = reader->at;
    for (;;) {
        bool plain = true, bad = false;
        char *text = start + 1;
        char *quote = string_end(text, reader->end, &plain, &bad);
        char *colon = quote ? quote + 1 : NULL;
        while (colon && json_reader_is_space(*colon))
            colon++;
        if (colon && colon < reader->end) {
            if (*colon != ':')
                return wrong(reader, colon, "expected a ':' behind the key");
            reader->text = text;
            reader->length = plain ? (size_t)(quote - text) : decode(text, quote);
            reader->at = colon + 1;
            reader->state = WANT_VALUE;
            return JSON_KEY;
        }
        if (bad)
            return wrong(reader, start, "an unknown escape in the key that begins here");
        if (!more(reader))
            return ended(reader);
        start = reader->at;
    }
}

/* Behind a value: a comma and what follows it, or the end of what is open. */
static inline enum json_token read_after_value(struct json_reader *reader, char c)
{
    const bool object = reader->in_object[reader->depth - 1];
    if (c == (object ? '}' : ']'))
        return close_level(reader);
    if (c != ',')
        return reader->at == reader->end
                   ? ended_behind_value(reader)
                   : wrong(reader, reader->at,
                           object ? "expected ',' or '}'" : "expected ',' or ']'");
    reader->at++;
    c = skip_space(reader);
    if (c == 0 && reader->at == reader->end)
        return ended_behind_value(reader);
    return object ? json_reader_read_key(reader, c) : json_reader_read_value(reader, c);
}

enum json_token json_next(struct json_reader *reader)
{
    if (reader->status != STATUS_OK)
        return JSON_FAILED;
    const char c = skip_space(reader);
    if (reader->status != STATUS_OK)
        return JSON_FAILED;
    switch (reader->state) {
    case WANT_COMMA: return read_after_value(reader, c);
    case WANT_VALUE: return json_reader_read_value(reader, c);
    case WANT_FIRST_KEY: return c == '}' ? close_level(reader) : json_reader_read_key(reader, c);
    case WANT_FIRST_VALUE:
        return c == ']' ? close_level(reader) : json_reader_read_value(reader, c);
    default:
        return reader->at == reader->end
                   ? JSON_DONE
                   : wrong(reader, reader->at, "the file goes on behind the JSON text");
    }
}

/* Tokens up to the end of the level that is `depth` deep. */
static bool skip_to(struct json_reader *reader, int depth)
{
    while (reader->depth > depth)
        if (json_next(reader) == JSON_FAILED)
            return false;
    return true;
}

bool json_skip(struct json_reader *reader)
{
    const enum json_token token = json_next(reader);
    return token != JSON_FAILED && json_skip_rest(reader, token);
}

bool json_skip_rest(struct json_reader *reader, enum json_token begun)
{
    if (begun == JSON_OBJECT || begun == JSON_ARRAY)
        return skip_to(reader, reader->depth - 1);
    return reader->status == STATUS_OK;
}

/* ---- decimals -------------------------------------------------------------------------------- */

/* The digits of a number without their point: `point` of them stand in front of it. */
struct json_reader_decimal {
    bool negative;
    const char *text;
    size_t length; /* of the digits, with the point among them */
    int64_t exponent;
};

/* The exponent at `at`; beyond a million it is cut off: the value is then 0 or too large anyway. */
static int64_t read_exponent(const char *at, const char *end)
{
    enum { MOST = 1000 * 1000 };
    const bool negative = at < end && *at == '-';
    int64_t value = 0;
    for (at += at < end && (*at == '-' || *at == '+'); at < end && value < MOST; at++)
        value = value * 10 + (*at - '0');
    return negative ? -value : value;
}

static bool split_decimal(const char *text, size_t length, struct json_reader_decimal *out)
{
    char copy[64];
    if (length == 0 || length >= sizeof copy)
        return false;
    memcpy(copy, text, length);
    copy[length] = 0;
    if (number_end(copy) != copy + length)
        return false;
    const char *end = text + length, *e = text;
    while (e < end && *e != 'e' && *e != 'E')
        e++;
    out->negative = *text == '-';
    out->text = text + out->negative;
    out->length = (size_t)(e - out->text);
    out->exponent = e < end ? read_exponent(e + 1, end) : 0;
    return true;
}

static bool append_digit(uint64_t *value, unsigned digit)
{
    return !__builtin_mul_overflow(*value, UINT64_C(10), value) &&
           !__builtin_add_overflow(*value, (uint64_t)digit, value);
}

bool decimal_scaled(const char *text, size_t length, int places, int64_t *out)
{
    struct json_reader_decimal d;
    if (!split_decimal(text, length, &d))
        return false;
    const char *point = memchr(d.text, '.', d.length);
    const size_t whole = point ? (size_t)(point - d.text) : d.length;
    int64_t keep =
        (int64_t)whole + d.exponent + places; /* digits that count; the next one rounds */
    uint64_t value = 0;
    bool round_up = false;
    for (size_t i = 0; i < d.length; i++) {
        if (d.text[i] == '.')
            continue;
        const unsigned digit = (unsigned)(d.text[i] - '0');
        if (keep > 0 && !append_digit(&value, digit))
            return false;
        if (keep == 0)
            round_up = digit >= 5;
        keep--;
    }
    for (; keep > 0 && value > 0; keep--)
        if (!append_digit(&value, 0))
            return false;
    value += round_up;
    if (value > (uint64_t)INT64_MAX)
        return false;
    *out = d.negative ? -(int64_t)value : (int64_t)value;
    return true;
}

void json_copy_text(const struct json_reader *reader, char *out, size_t cap)
{
    const size_t length = reader->length < cap - 1 ? reader->length : cap - 1;
    memcpy(out, reader->text, length);
    out[length] = 0;
}

bool json_take_text(struct json_reader *reader, char *out, size_t cap)
{
    const enum json_token token = json_next(reader);
    if (token == JSON_STRING || token == JSON_NUMBER)
        json_copy_text(reader, out, cap);
    return json_skip_rest(reader, token);
}

bool json_take_number(struct json_reader *reader, int places, int64_t *out)
{
    const enum json_token token = json_next(reader);
    if (token == JSON_STRING || token == JSON_NUMBER)
        decimal_scaled(reader->text, reader->length, places, out);
    return json_skip_rest(reader, token);
}
