/* ops.c - names of operations, properties and outcomes; see ops.h. */
#include "ops.h"

const char *op_key(enum op_kind kind)
{
    static const char *const keys[] = {
#define X(name, key, pushes) key,
        OP_LIST(X)
#undef X
    };
    return keys[kind];
}

bool op_pushes(enum op_kind kind)
{
    static const bool pushes[] = {
#define X(name, key, pushes_) pushes_,
        OP_LIST(X)
#undef X
    };
    return pushes[kind];
}

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
