/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql.h - files of SQLite with changes that an input describes.
 *
 *     UPDATE span SET end_ns = 9223372036854775807    a line is a statement of SQL; what SQLite refuses is left out
 *     @1234 255                                       then a byte of the file is changed
 */
#ifndef SWSIM_FUZZ_SQL_H
#define SWSIM_FUZZ_SQL_H

#include <stddef.h>
#include <stdint.h>

/* The file of *bytes bytes at `good` with the changes of the text, and its size. The caller frees it with sqlite3_free. */
uint8_t *sql_changed(const void *good, const char *text, size_t *bytes);

#endif
