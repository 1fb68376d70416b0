/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_schema.h - the keys of plans as a JSON Schema (draft-07), so that editors complete and check plans.
 *
 * It is made of the tables by which plans are read and printed: keys, kinds of values, words, ranges, defaults and a line
 * about each key. Rules between several keys are not in it: the parser has these.
 */
#ifndef SWSIM_PLAN_SCHEMA_H
#define SWSIM_PLAN_SCHEMA_H

#include "base/json.h"

/* Write the schema as one value. */
void plan_schema_write(struct json *json);

#endif
