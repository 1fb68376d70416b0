/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensors.h - what the actions of rank programs read and write: the one table of it.
 *
 * Lowering makes buffers, accesses and waits of these tensors, so the machine judges lists of actions as it judges
 * any program: a pass that finds no tensor violates `value`, one without an order behind it is a race.
 */
#ifndef SWSIM_TENSORS_H
#define SWSIM_TENSORS_H

#include <stdbool.h>

#include "plan/plan.h"

struct tensor_use {
    struct tensor tensor;
    bool write;
};

enum { ACTION_MOST_USES = 8 };

struct action;

/* The tensors an action uses in a model of the stages from `first` to before `end`, reads first; returns how many. The first
   stage reads no activation and the last one no gradient: these come from outside. Composites, by their parts, and
   idle ones: 0. Only tensors of `kinds`, a bit each. */
enum { ALL_TENSORS = (1 << TENSOR_COUNT) - 1 };
int action_uses(const struct action *action, int first, int end, unsigned kinds,
                struct tensor_use uses[ACTION_MOST_USES]);

bool tensor_has_microbatch(enum tensor_kind kind);
const char *tensor_text(enum tensor_kind kind);

#endif
