/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refused_sql.h - memory of SQLite in a test, of which one allocation is refused. For one file of a program, one thread.
 */
#ifndef SWSIM_TESTS_REFUSED_SQL_H
#define SWSIM_TESTS_REFUSED_SQL_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

static sqlite3_mem_methods plain_memory;
static long before_refusal = -1; /* allocations of SQLite; negative: none is refused */

static bool refuses(void)
{
    return before_refusal >= 0 && before_refusal-- == 0;
}

static void *scarce_malloc(int bytes)
{
    return refuses() ? NULL : plain_memory.xMalloc(bytes);
}

static void *scarce_realloc(void *memory, int bytes)
{
    return refuses() ? NULL : plain_memory.xRealloc(memory, bytes);
}

/* Before SQLite is used: later it takes no other functions. Without its own reserve it asks for each piece. */
static bool refused_sql_begin(void)
{
    sqlite3_config(SQLITE_CONFIG_GETMALLOC, &plain_memory);
    sqlite3_mem_methods scarce = plain_memory;
    scarce.xMalloc = scarce_malloc;
    scarce.xRealloc = scarce_realloc;
    return sqlite3_config(SQLITE_CONFIG_MALLOC, &scarce) == SQLITE_OK &&
           sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0) == SQLITE_OK;
}

#endif
