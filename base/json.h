/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - write JSON to a stream, piece by piece.
 *
 * Every value at the top is one line, so that several make JSON Lines. Inside an object each value
 * follows its json_key; json_put_x does both at once. Wrong nesting is a bug of the caller and
 * asserted. Text that is not valid UTF-8 is written with U+FFFD in place of each bad byte; doubles
 * as the shortest text that reads back as the same number, and as null when they are not finite,
 * because JSON has no word for them. The writer owns nothing: the caller closes `out`. A failed
 * write is remembered by the FILE and reported once, by json_close.
 */
#ifndef SWSIM_JSON_H
#define SWSIM_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "diag.h"
#include "documents.h"

enum { JSON_MAX_DEPTH = 16, JSON_DOUBLE_TEXT = 32 };

struct json {
    FILE *out;
    int depth;
    struct {
        bool object, filled;
    } levels[JSON_MAX_DEPTH];
    bool after_key;
};

void json_open(struct json *json, FILE *out);
/* Flush, as diag_flush. */
enum status json_close(struct json *json, struct diag *diag);

/* An object at the top; its first key is "schema" (documents.h). */
void json_begin_document(struct json *json, enum document document);
void json_begin_object(struct json *json);
void json_end_object(struct json *json);
void json_begin_array(struct json *json);
void json_end_array(struct json *json);

void json_key(struct json *json, const char *key);
/* Behind a key. */
void json_begin_object_at(struct json *json, const char *key);
void json_begin_array_at(struct json *json, const char *key);
void json_string(struct json *json, const char *text); /* NULL writes null */
void json_int(struct json *json, int64_t value);
void json_double(struct json *json, double value);
void json_bool(struct json *json, bool value);
void json_null(struct json *json);

void json_put_string(struct json *json, const char *key, const char *text);
void json_put_int(struct json *json, const char *key, int64_t value);
/* null where it is not known. */
void json_put_known(struct json *json, const char *key, int64_t value, bool known);
void json_put_double(struct json *json, const char *key, double value);
/* value / 1000, exactly. */
void json_put_thousandths(struct json *json, const char *key, int64_t value);
void json_put_bool(struct json *json, const char *key, bool value);

/* The shortest text that strtod reads back as `value`, "null" when it is not finite. */
void json_print_double(double value, char out[JSON_DOUBLE_TEXT]);

/* An object `errors` with the errors of a command. */
void json_write_errors(const struct diag *diag, FILE *out);

#endif
