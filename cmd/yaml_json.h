/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yaml_json.h - a canonical plan text, which is YAML, as JSON.
 */
#ifndef SWSIM_YAML_JSON_H
#define SWSIM_YAML_JSON_H

#include <stddef.h>

#include "base/diag.h"
#include "base/json.h"

/* Write the one document in `text`. Plain numbers, `true`, `false` and `null` become JSON's own,
   all else strings. Aliases, keys that are no scalars and nesting beyond JSON_MAX_DEPTH are
   refused. */
enum status yaml_write_json(const char *text, size_t length, struct json *json, struct diag *diag);

#endif
