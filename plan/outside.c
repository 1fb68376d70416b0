/* SPDX-License-Identifier: Apache-2.0 */
/* outside.c - see outside.h. */
#include "outside.h"

static void note_made(const struct plan *plan, const struct index_list *writes, bool *outside)
{
    for (size_t i = 0; i < writes->count; i++)
        outside[writes->items[i]] = plan->buffers[writes->items[i]].input;
}

static void note_ops(const struct plan *plan, const struct host_op *ops, size_t count,
                     bool *outside)
{
    for (size_t i = 0; i < count; i++) {
        const struct host_op *op = &ops[i];
        note_made(plan, &op->writes, outside);
        for (size_t k = 0; k < op->part_count; k++)
            note_made(plan, &op->parts[k].writes, outside);
        if (op->kind == OP_ALLOC)
            outside[op->object] = plan->buffers[op->object].input;
        note_ops(plan, op->body, op->body_count, outside);
    }
}

void outside_find(const struct plan *plan, bool *outside)
{
    for (size_t b = 0; b < plan->buffer_count; b++)
        outside[b] = plan->buffers[b].input ||
                     (!plan->inputs_given && plan->buffers[b].scope == SCOPE_SHARED);
    if (plan->form != FORM_THREADS || plan->inputs_given)
        return;
    for (size_t i = 0; i < plan->thread_count; i++)
        note_ops(plan, plan->threads[i].ops, plan->threads[i].op_count, outside);
    for (size_t i = 0; i < plan->graph_count; i++)
        note_ops(plan, plan->graphs[i].ops, plan->graphs[i].op_count, outside);
}
