/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value.h - a small document of data as a tree: what JSON and the harmless part of pickle can say.
 */
#ifndef SWSIM_VALUE_H
#define SWSIM_VALUE_H

#include "trace/job/bytes.h"
#include "base/arena.h"

/* Of a document that is kept as a whole; the message that refuses more names it. */
enum { VALUE_MAX_BYTES = 256 * 1024 * 1024 };

enum value_kind {
    VALUE_NONE,
    VALUE_BOOL,
    VALUE_INT,
    VALUE_REAL,
    VALUE_TEXT,
    VALUE_LIST,
    VALUE_DICT
};

struct value {
    enum value_kind kind;
    int64_t number;       /* BOOL, INT */
    const char *text;     /* TEXT */
    struct value **items; /* LIST; DICT: key, value, key, value, ... */
    size_t count, cap;    /* of items */
};

/* All of it lives in `arena`. STATUS_INPUT for a text that is no JSON, or no pickle of data: one that would
   call code, also to make an object, is refused. */
enum status value_read_json(struct bytes *bytes, struct arena *arena, struct value **out,
                            struct diag *diag);
enum status value_read_pickle(struct bytes *bytes, struct arena *arena, struct value **out,
                              struct diag *diag);

/* A member of a dict by its key; NULL: `value` is NULL or no dict, or has none. */
const struct value *value_get(const struct value *value, const char *key);
/* An integer, also one in a text; `otherwise` where it is none. */
int64_t value_int(const struct value *value, int64_t otherwise);
/* A text; NULL where it is none. */
const char *value_text(const struct value *value);
/* The items of a list; 0 where it is none. */
size_t value_count(const struct value *value);

#endif
