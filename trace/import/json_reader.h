/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_reader.h - reads JSON of any size piece by piece: bytes in, tokens out.
 *
 * The caller asks for one token after the other, and passes over values that it does not need. Memory
 * is one buffer, as large as the longest string or number, at most JSON_MAX_TOKEN bytes; nesting has a limit
 * too. Every byte is checked against the grammar (RFC 8259), also of values that are passed over. Wider than the
 * grammar, because writers of traces are: NaN, Infinity and -Infinity are read as null, control characters may
 * stand in strings, and bytes in strings that are no UTF-8 read as '?'. A byte order mark in front of the text is
 * passed over, and the ']' of an outermost array may be missing where the caller says so.
 *
 *     for (token = json_next(r); token == JSON_KEY; token = json_next(r))    the members of an object
 *         if (json_text_is(r, "ts")) ... json_next(r) ...
 *         else json_skip(r);
 *
 * The first error is described in `diag`, with the number of the byte where it stands; from then on every token
 * is JSON_FAILED. So callers may test for it once.
 */
#ifndef SWSIM_JSON_READER_H
#define SWSIM_JSON_READER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "trace/job/bytes.h"

enum { JSON_MAX_NESTING = 256, JSON_MAX_TOKEN = 64 * 1024 * 1024, JSON_MARK_BYTES = 3 };

enum json_token {
    JSON_FAILED,
    JSON_DONE, /* the end of the text, behind one value and white space */
    JSON_OBJECT,
    JSON_OBJECT_END,
    JSON_ARRAY,
    JSON_ARRAY_END,
    JSON_KEY,
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL
};

struct json_reader {
    struct bytes *bytes;
    struct diag *diag;
    enum status status; /* STATUS_OK until the first failure */
    char *buffer;
    size_t cap;
    char *at, *end;
    bool at_end;       /* nothing is behind `end` */
    uint64_t consumed; /* bytes in front of the buffer */
    int state;
    int depth;
    bool in_object[JSON_MAX_NESTING];
    bool
        end_is_optional; /* set by the caller: an outermost array may end with the text, without ']' */
    bool has_no_end;     /* it did */
    const char *text;    /* of a key, string or number; not terminated, gone with the next token */
    size_t length;
};

/* The bytes of UTF-8's byte order mark at the beginning of a text; 0: it has none. */
static inline size_t json_mark_length(const char *text, size_t length)
{
    return length >= JSON_MARK_BYTES && memcmp(text, "\xef\xbb\xbf", JSON_MARK_BYTES) == 0
               ? JSON_MARK_BYTES
               : 0;
}

/* Reads what `bytes` still holds. The reader owns its buffer; json_reader_close ends it, not `bytes`. */
enum status json_reader_open(struct json_reader *reader, struct bytes *bytes, struct diag *diag);
void json_reader_close(struct json_reader *reader);

enum json_token json_next(struct json_reader *reader);

/* Passes over the next value, with all that is in it. In front of the end of an array or object, passes over
   nothing but that end. Returns false after a failure. */
bool json_skip(struct json_reader *reader);
/* Passes over the rest of the object or array whose beginning was the last token. */
bool json_skip_rest(struct json_reader *reader, enum json_token begun);

/* The next value, where it is a text or a number: as a text, cut off where `cap` is too small; as a number times 10^places,
   maybe one in quotes. Of anything else nothing is taken. False after a failure. */
bool json_take_text(struct json_reader *reader, char *out, size_t cap);
bool json_take_number(struct json_reader *reader, int places, int64_t *out);
/* The text of the last token. */
void json_copy_text(const struct json_reader *reader, char *out, size_t cap);

/* Describe the text as not what the caller expects; returns STATUS_INPUT. Later tokens are JSON_FAILED. */
enum status json_refuse(struct json_reader *reader, const char *expected);

static inline bool json_text_is(const struct json_reader *reader, const char *text)
{
    const size_t length = strlen(text);
    return reader->length == length && memcmp(reader->text, text, length) == 0;
}

/*
 * The decimal number `text` times 10^`places` as a whole number, rounded half away from zero: with 3 places,
 * microseconds become nanoseconds. No double is involved, so every digit counts. False: no number, or
 * not within int64_t.
 */
bool decimal_scaled(const char *text, size_t length, int places, int64_t *out);

#endif
