/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c - names of operations, properties and outcomes; see ops.h. */
#include "ops.h"
#include "base/list_key.h"

const struct op_row op_table[OP_COUNT] = {
#define X(name, key_, role_, operand_, at_call, at_stream, waits_, words_, pushed_)                \
    {.key = key_,                                                                                  \
     .words = words_,                                                                              \
     .pushed = pushed_,                                                                            \
     .role = ROLE_##role_,                                                                         \
     .operand = OPERAND_##operand_,                                                                \
     .uses = {at_call, at_stream},                                                                 \
     .waits = WAITS_##waits_},
    OP_LIST(X)
#undef X
};

bool op_runs_ahead(enum op_kind kind)
{
    const enum op_operand operand = op_operand(kind);
    switch (op_role(kind)) {
    case ROLE_CPU:
    case ROLE_DEVICE: return true;
    case ROLE_COMM: return kind == OP_COLLECTIVE;
    case ROLE_MARK: return operand == OPERAND_EVENT;
    case ROLE_CONTROL:
        return operand == OPERAND_FLAG || operand == OPERAND_LOCK || operand == OPERAND_TURN ||
               operand == OPERAND_SUBMISSION;
    case ROLE_ASK:
    case ROLE_BRANCH:
    case ROLE_CALL:
    case ROLE_STEP: break;
    }
    return false;
}

const char *property_key(enum property property)
{
    static const char *const keys[] = {PROPERTY_LIST(LIST_KEY)};
    return keys[property];
}

const char *outcome_key(enum outcome outcome)
{
    static const char *const keys[] = {OUTCOME_LIST(LIST_KEY)};
    return keys[outcome];
}
