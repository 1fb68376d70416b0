/* SPDX-License-Identifier: Apache-2.0 */
/*
 * span_words.h - the names of what a simulation did, as stores and pictures have them.
 */
#ifndef SWSIM_SPAN_WORDS_H
#define SWSIM_SPAN_WORDS_H

#include <string.h>

#include "sim/engine/simulate.h"

/* The name of a span's operation: its task, else its subject, of all iterations of a repeat; in `buf` or the plan. NULL for a
   stall. */
static inline const char *span_task(const struct program *p, const struct simulate_span *span,
                                    char *buf, size_t cap)
{
    if (span->kind == SIMULATE_STALL)
        return NULL;
    const struct op *op = &p->ops[span->op];
    if (op->task >= 0)
        return p->plan->pipeline.tasks[op->task].name;
    program_op_subject(p, op, span->iteration, buf, cap);
    char *number = op->iteration >= 0 ? strrchr(buf, '(') : NULL;
    if (number)
        *number = 0;
    return buf;
}

/* Its iteration; of a host program that of its repeat. */
static inline int64_t span_iteration(const struct program *p, const struct simulate_span *span)
{
    const bool repeated = span->kind != SIMULATE_STALL && p->ops[span->op].iteration >= 0;
    return repeated ? p->ops[span->op].iteration : span->iteration;
}

#endif
