/* SPDX-License-Identifier: Apache-2.0 */
/* sql.c - see sql.h. */
#include "sql.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "targets.h"

enum { MOST_CELL = 4096, MOST_OPCODES = 200000 };

/* Statements touch only this database, and cost little. */
static int authorize(void *context, int action, const char *a, const char *b, const char *c,
                     const char *d)
{
    (void)context;
    (void)a;
    (void)c;
    (void)d;
    if (action == SQLITE_FUNCTION && b && strstr(b, "blob"))
        return SQLITE_DENY;
    return action == SQLITE_ATTACH || action == SQLITE_PRAGMA || action == SQLITE_RECURSIVE
               ? SQLITE_DENY
               : SQLITE_OK;
}

static int too_long(void *context)
{
    (void)context;
    return 1;
}

/* Run the statements among the lines. */
static void change_rows(sqlite3 *db, char *text)
{
    char *rest = NULL;
    sqlite3_set_authorizer(db, authorize, NULL);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, MOST_CELL);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        sqlite3_progress_handler(db, MOST_OPCODES, too_long, NULL);
        if (*line != '@')
            (void)sqlite3_exec(db, line, NULL, NULL, NULL);
    }
    if (!sqlite3_get_autocommit(db))
        (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
}

static void change_bytes(const char *text, uint8_t *data, size_t bytes)
{
    for (const char *at = strchr(text, '@'); at; at = strchr(at + 1, '@')) {
        unsigned long place;
        unsigned value;
        if (sscanf(at + 1, "%lu %u", &place, &value) == 2 && place < bytes)
            data[place] = (uint8_t)value;
    }
}

uint8_t *sql_changed(const void *good, const char *text, size_t *bytes)
{
    sqlite3 *db;
    sqlite3_int64 size = (sqlite3_int64)*bytes;
    void *copy = sqlite3_malloc64(*bytes);
    char *lines = strdup(text);
    FUZZ_EXPECT(copy && lines && sqlite3_open(":memory:", &db) == SQLITE_OK);
    memcpy(copy, good, *bytes);
    FUZZ_EXPECT(sqlite3_deserialize(db, "main", copy, size, size,
                                    SQLITE_DESERIALIZE_FREEONCLOSE |
                                        SQLITE_DESERIALIZE_RESIZEABLE) == SQLITE_OK);
    change_rows(db, lines);
    free(lines);
    uint8_t *data = sqlite3_serialize(db, "main", &size, 0);
    sqlite3_close(db);
    FUZZ_EXPECT(data);
    change_bytes(text, data, (size_t)size);
    *bytes = (size_t)size;
    return data;
}
