/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_ops.c - the table of operations agrees with itself, and random plans leave no operation out.
 *
 * The tests that hold the checker, the simulator and the second reading against each other draw their plans from
 * random_plan.c and random_wide.c. An operation that these do not write is compared by no test, so a row without a
 * random plan fails here. Operations of these plans that are taken to be alike have the same uses.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness.h"
#include "machine/uses.h"
#include "plan/ops.h"
#include "tests/random_plan.h"
#include "tests/tap.h"

static bool says(enum op_kind kind, const char *letter)
{
    return strstr(op_words(kind), letter) != NULL;
}

/* A sentence about an operation names the objects that it has, and no others. */
static void test_words(enum op_kind kind)
{
    const char *key = op_key(kind);
    enum op_operand operand = op_operand(kind);
    bool has_object =
        operand != OPERAND_NONE && operand != OPERAND_TURN && operand != OPERAND_SUBMISSION;
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

/* ---- random plans ---------------------------------------------------------------------------- */

enum { DRAWN_PLANS = 400 };

/* The operations that the bodies of pipelines and of rank programs consist of. Host programs have all that a plan can say. */
static const bool is_in_form[RANDOM_FORMS][OP_COUNT] = {
    [RANDOM_PIPELINE] = {[OP_HOST] = true,
                         [OP_LAUNCH] = true,
                         [OP_COPY] = true,
                         [OP_COLLECTIVE] = true,
                         [OP_GROUP] = true,
                         [OP_RECORD] = true,
                         [OP_WAIT] = true,
                         [OP_SYNC] = true,
                         [OP_SIGNAL] = true,
                         [OP_AWAIT] = true,
                         [OP_LOCK] = true,
                         [OP_UNLOCK] = true,
                         [OP_TICKET] = true,
                         [OP_SERVE] = true,
                         [OP_COMPLETE] = true},
    [RANDOM_PROGRAMS] = {[OP_HOST] = true,
                         [OP_LAUNCH] = true,
                         [OP_COLLECTIVE] = true,
                         [OP_GROUP] = true,
                         [OP_RECORD] = true,
                         [OP_WAIT] = true,
                         [OP_SYNC] = true,
                         [OP_SIGNAL] = true,
                         [OP_AWAIT] = true,
                         [OP_LOCK] = true,
                         [OP_UNLOCK] = true,
                         [OP_ALLOC] = true,
                         [OP_FREE] = true,
                         [OP_RECORD_STREAM] = true},
};

static bool belongs_to(enum op_kind kind, enum random_form form)
{
    return form == RANDOM_THREADS ? kind < (enum op_kind)HOST_OP_COUNT || op_ends_branch(kind)
                                  : is_in_form[form][kind];
}

static void count_host_ops(const struct host_op *ops, size_t count, int *plans)
{
    for (size_t i = 0; i < count; i++) {
        plans[ops[i].kind]++;
        if (host_op_may_have_body(ops[i].kind))
            count_host_ops(ops[i].body, ops[i].body_count, plans);
    }
}

/* Count the operations of a host program as they are written (a barrier is lowered to others), those of the other forms as they
   are lowered. */
static enum status count_ops(void *context, const struct plan *plan, enum driver driver,
                             struct diag *diag)
{
    int *counts = context;
    struct program *program;
    const struct program_options options = {.driver = driver, .iterations = -1};
    for (size_t t = 0; plan->form == FORM_THREADS && t < plan->thread_count; t++)
        count_host_ops(plan->threads[t].ops, plan->threads[t].op_count, counts);
    if (plan->form == FORM_THREADS)
        return STATUS_OK;
    enum status status = program_build(plan, &options, &program, diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < program->op_count; i++)
        counts[program->ops[i].kind]++;
    program_close(program);
    return STATUS_OK;
}

/* Of both writers: the small plans of a form need not have all that the wide ones have. */
static void test_drawn(enum random_form form)
{
    int counts[OP_COUNT] = {0};
    const char *key = random_form_key(form);
    uint64_t seed = env_number("SWSIM_SEED", 1);
    for (uint64_t i = 0; i < DRAWN_PLANS; i++) {
        char *text = (i % 2 ? random_wide_plan : random_plan)(seed + i / 2, form);
        if (!plan_try(text, count_ops, counts))
            tap_ok(0, "%s: plan %" PRIu64 " is read", key, seed + i / 2);
        free(text);
    }
    for (int kind = 0; kind < OP_COUNT; kind++)
        tap_ok((counts[kind] > 0) == belongs_to((enum op_kind)kind, form),
               "%s in %d random plans of form %s: %d times", op_key((enum op_kind)kind),
               DRAWN_PLANS, key, counts[kind]);
}

/* ---- operations that are alike ----------------------------------------------------------------- */

enum { ALIKE_PLANS = 60, MOST_USES = 256 };

struct use_list {
    int object[MOST_USES];
    enum way way[MOST_USES];
    int count;
};

struct likeness {
    int same, pairs, wrong; /* operations and pairs of them */
};

static void note_use(void *arg, int object, enum way way, int tag)
{
    struct use_list *list = arg;
    (void)tag;
    if (list->count == MOST_USES)
        abort();
    list->object[list->count] = object;
    list->way[list->count++] = way;
}

static struct use_list uses_of(const struct program *p, const struct op *op, int thread)
{
    struct use_list list = {.count = 0};
    uses_of_op(p, op, thread, note_use, &list);
    if (op_pushes(op->kind))
        uses_of_start(p, op->stream, op, note_use, &list);
    return list;
}

static bool has_same_uses(const struct program *p, const struct op *a, const struct op *b,
                          int thread)
{
    const struct use_list of_a = uses_of(p, a, thread), of_b = uses_of(p, b, thread);
    bool same = of_a.count == of_b.count;
    for (int i = 0; same && i < of_a.count; i++)
        same = of_a.object[i] == of_b.object[i] && of_a.way[i] == of_b.way[i];
    return same;
}

/* Each operation is like itself, but for one with accesses where each counts; those of a thread that are alike have the same
   uses. */
static enum status compare_uses(void *context, const struct plan *plan, enum driver driver,
                                struct diag *diag)
{
    struct likeness *found = context;
    struct program *p;
    const struct program_options options = {.driver = driver, .iterations = -1};
    enum status status = program_build(plan, &options, &p, diag);
    if (status != STATUS_OK)
        return status;
    for (size_t b = 0; b < p->body_count; b++) {
        const struct body *body = &p->bodies[b];
        const struct op *ops = &p->ops[body->first];
        for (int i = 0; i < body->count; i++) {
            found->same++;
            found->wrong +=
                !uses_alike(p, &ops[i], &ops[i]) && !(ops[i].access_count > 0 && p->is_crossed);
            for (int k = 0; k < i; k++)
                if (uses_alike(p, &ops[k], &ops[i])) {
                    found->pairs++;
                    found->wrong += !has_same_uses(p, &ops[k], &ops[i], body->thread);
                }
        }
    }
    program_close(p);
    return STATUS_OK;
}

static void test_alike(enum random_form form)
{
    struct likeness found = {0};
    const char *key = random_form_key(form);
    uint64_t seed = env_number("SWSIM_SEED", 1);
    for (uint64_t i = 0; i < ALIKE_PLANS; i++) {
        char *text = (i % 2 ? random_wide_plan : random_plan)(seed + i / 2, form);
        if (!plan_try(text, compare_uses, &found))
            tap_ok(0, "%s: plan %" PRIu64 " is built", key, seed + i / 2);
        free(text);
    }
    tap_ok(
        found.same > 0 && found.pairs > 0 && found.wrong == 0,
        "form %s: %d operations are like themselves, %d pairs that are alike have the same uses; "
        "not so: %d",
        key, found.same, found.pairs, found.wrong);
}

int main(void)
{
    for (int kind = 0; kind < OP_COUNT; kind++) {
        test_key((enum op_kind)kind);
        test_words((enum op_kind)kind);
        test_waits((enum op_kind)kind);
    }
    for (int form = 0; form < RANDOM_FORMS; form++)
        test_drawn((enum random_form)form), test_alike((enum random_form)form);
    return tap_done();
}
