/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page_column.h - columns of numbers in the data of a page: "4:" and base64 of little-endian numbers of so many bytes.
 *
 * A column has the fewest bytes a number, 1, 2, 4 or 8, that its largest one needs; those of 8 are doubles, as JavaScript has
 * them, and only they may be negative.
 */
#ifndef SWSIM_PAGE_COLUMN_H
#define SWSIM_PAGE_COLUMN_H

#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

typedef int64_t page_number(const void *context, size_t at);

/* A member of the object that is open in `json`: `count` numbers. */
void page_column_write(struct json *json, const char *key, size_t count, page_number *number,
                       const void *context);

#endif
