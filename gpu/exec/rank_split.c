/* SPDX-License-Identifier: Apache-2.0 */
/* rank_split.c - see rank_split.h. */
#include "rank_split.h"

#include <stdio.h>
#include <stdlib.h>

/* The first user of each flag and queue: its rank + 1, 0 none. */
struct users {
    const struct program *program;
    int *flags, *queues;
    struct diag *diag;
};

static enum status use(struct users *users, int *user, const char *name, int rank)
{
    if (*user != 0 && *user != rank + 1)
        return diag_error(users->diag, STATUS_USAGE,
                          "%s: '%s' is shared by ranks %d and %d, so they cannot be processes "
                          "(--one-process)",
                          users->program->plan->name, name, *user - 1, rank);
    *user = rank + 1;
    return STATUS_OK;
}

/* At `mark` of the plan. */
static enum status refuse(const struct users *users, struct mark mark, const char *text)
{
    return diag_error(
        users->diag, STATUS_USAGE,
        "%s:%u:%u: %s, so the ranks cannot be processes: run it on the host device with "
        "--one-process",
        users->program->plan->file, mark.line, mark.col, text);
}

static enum status check_device(const struct users *users, const struct op *op, int rank)
{
    if (!users->program->is_crossed || !program_op_crosses(users->program, op, rank))
        return STATUS_OK;
    char text[96];
    snprintf(text, sizeof text, "a thread of rank %d uses the device of another rank", rank);
    return refuse(users, op->mark, text);
}

static enum status check_body(struct users *users, const struct body *body, int rank)
{
    const struct program *p = users->program;
    enum status status = STATUS_OK;
    for (int i = 0; i < body->count && !status; i++) {
        const struct op *op = &p->ops[body->first + i];
        if (op_operand(op->kind) == OPERAND_FLAG)
            status = use(users, &users->flags[op->object], p->flag_names[op->object], rank);
        else if (op_operand(op->kind) == OPERAND_QUEUE)
            status = use(users, &users->queues[op->object], p->queue_names[op->object], rank);
        else
            status = check_device(users, op, rank);
    }
    return status;
}

static enum status check_threads(struct users *users)
{
    const struct program *p = users->program;
    enum status status = STATUS_OK;
    for (size_t b = 0; b < p->body_count && !status; b++)
        status = check_body(users, &p->bodies[b], p->threads[p->bodies[b].thread].rank);
    return status;
}

/* In a pipeline each rank has flags and queues of its own. */
enum status rank_split_check(const struct program *program, struct diag *diag)
{
    struct users users = {.program = program, .diag = diag};
    if (program->plan->machine.share_device)
        return refuse(&users, program->plan->machine.share_device_mark,
                      "processes do not share the residency slots of a device (share_device)");
    if (program->tasks > 0)
        return STATUS_OK;
    users.flags = calloc((size_t)program->flag_families + 1, sizeof *users.flags);
    users.queues = calloc((size_t)program->queue_count + 1, sizeof *users.queues);
    enum status status = users.flags && users.queues ? check_threads(&users) : diag_no_memory(diag);
    free(users.flags);
    free(users.queues);
    return status;
}
