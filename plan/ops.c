/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c - names of operations, properties and outcomes; see ops.h. */
#include "ops.h"

const struct op_row op_table[OP_COUNT] = {
#define X(name, key_, role_, operand_, use_, waits_, words_, pushed_)                              \
    {.key = key_,                                                                                  \
     .words = words_,                                                                              \
     .pushed = pushed_,                                                                            \
     .role = ROLE_##role_,                                                                         \
     .operand = OPERAND_##operand_,                                                                \
     .use = use_,                                                                                  \
     .waits = WAITS_##waits_},
    OP_LIST(X)
#undef X
};

const char *property_key(enum property property)
{
    static const char *const keys[] = {
#define X(name, key) key,
        PROPERTY_LIST(X)
#undef X
    };
    return keys[property];
}

const char *outcome_key(enum outcome outcome)
{
    static const char *const keys[] = {
#define X(name, key) key,
        OUTCOME_LIST(X)
#undef X
    };
    return keys[outcome];
}
