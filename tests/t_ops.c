/* SPDX-License-Identifier: Apache-2.0 */
/* t_ops.c - the table of operations agrees with itself: a new row is held against what others ask it. */
#include <string.h>

#include "plan/ops.h"
#include "tap.h"

static bool says(enum op_kind kind, const char *letter)
{
    return strstr(op_words(kind), letter) != NULL;
}

/* A sentence about an operation names the objects that it has, and no others. */
static void test_words(enum op_kind kind)
{
    const char *key = op_key(kind);
    enum op_operand operand = op_operand(kind);
    bool has_object = operand != OPERAND_NONE && operand != OPERAND_TURN;
    tap_is_int(says(kind, "%o"), has_object, "%s: the words name its object", key);
    tap_is_int(says(kind, "%c"), op_uses_comm(kind), "%s: the words name its communicator", key);
    tap_ok(says(kind, "%s") || !op_pushes(kind), "%s: the words name the stream of a push", key);
    tap_ok(says(kind, "%n") || has_object, "%s: the words tell it from others", key);
    const char *pushed = op_pushed(kind);
    tap_is_int(pushed != NULL, op_pushes(kind), "%s: a push has words for what it pushes", key);
    tap_ok(!pushed || strstr(pushed, has_object ? "%o" : "%n"), "%s: which tell it from others",
           key);
}

/* Each thing that an operation waits for is given by one. */
static void test_waits(enum op_kind kind)
{
    const char *key = op_key(kind);
    bool given = false;
    for (int other = 0; other < OP_COUNT; other++)
        given |=
            op_operand((enum op_kind)other) == op_operand(kind) && op_gives((enum op_kind)other);
    tap_ok(!op_takes(kind) || given, "%s: another operation gives what it takes", key);
    tap_ok(op_waits(kind) == WAITS_NEVER || op_operand(kind) != OPERAND_NONE,
           "%s: it waits for an object", key);
    tap_ok(op_waits(kind) == WAITS_NEVER || op_role(kind) == ROLE_CONTROL,
           "%s: no work and no push waits for others", key);
}

static void test_key(enum op_kind kind)
{
    int same = 0;
    for (int other = 0; other < OP_COUNT; other++)
        same += strcmp(op_key((enum op_kind)other), op_key(kind)) == 0;
    tap_is_int(same, 1, "%s: no other operation has its key", op_key(kind));
}

int main(void)
{
    for (int kind = 0; kind < OP_COUNT; kind++) {
        test_key((enum op_kind)kind);
        test_words((enum op_kind)kind);
        test_waits((enum op_kind)kind);
    }
    return tap_done();
}
