/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arithmetic.h - `arithmetic:`, the dense layers that a real run of rank programs computes.
 *
 * A stage is some layers y = f(x W + b) of one width; a microbatch has `batch` rows. The last layer of the model is
 * linear, and a loss follows it. gpu/exec/layers.h computes with these numbers. The key changes no verdict;
 * without another size a message carries the bytes of an activation.
 */
#ifndef SWSIM_PLAN_ARITHMETIC_H
#define SWSIM_PLAN_ARITHMETIC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "plan/programs.h"

struct plan;
struct stage_map;
struct stage_cost;

/* Multiplications of a forward pass: on one processor it shall take seconds at most. */
#define ARITHMETIC_MOST_WORK (INT64_C(1) << 30)

/* The numbers of `arithmetic:` for lowered lists of so many ranks of a pipeline, in `arena`; an error where a run cannot compute them. */
enum status arithmetic_resolve(const struct plan *plan, const struct stage_map *map, int ranks,
                               const struct stage_cost *costs, struct arena *arena,
                               struct arithmetic *out, struct diag *diag);

/* Of an activation or a gradient: what a message carries. */
int64_t arithmetic_message_bytes(const struct arithmetic *arithmetic);

#endif
