/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program_words.c - a program as text: the names of agents, objects and operations, and swsim lower's listing.
 */
#include "program.h"

#include <inttypes.h>
#include <string.h>

#include "plan/group_names.h"
#include "plan/keywords.h"
#include "base/units.h"

/* The steps of a kernel have a thread of their own. */
static void agent_thread_name(const struct thread_desc *thread, const char *rank, char *buf,
                              size_t cap)
{
    const size_t prefix = strlen(PROGRAM_KERNEL_OF);
    if (thread->kind == THREAD_CALLBACK && strncmp(thread->name, PROGRAM_KERNEL_OF, prefix) == 0)
        snprintf(buf, cap, "%skernel on stream %s", rank, thread->name + prefix);
    else
        snprintf(buf, cap, "%sthread %s", rank, thread->name);
}

const char *program_agent_name(const struct program *program, int agent, char *buf, size_t cap)
{
    const struct agent *desc = &program->agents[agent];
    char rank[32] = "";
    if (program->ranks > 1 && desc->rank >= 0)
        snprintf(rank, sizeof rank, "rank %d ", program_stood_for(program, desc->rank));
    switch (desc->kind) {
    case AGENT_DATA: snprintf(buf, cap, "data loader"); break;
    case AGENT_THREAD:
        if (program->threads[desc->index].kind == THREAD_DRIVER)
            snprintf(buf, cap, "%sdriver", rank);
        else
            agent_thread_name(&program->threads[desc->index], rank, buf, cap);
        break;
    case AGENT_STREAM:
        snprintf(buf, cap, "%sstream %s", rank, program->streams[desc->index].name);
        break;
    case AGENT_COMM: snprintf(buf, cap, "communicator %s", program->comms[desc->index].name); break;
    case AGENT_FAULT: snprintf(buf, cap, "fault"); break;
    case AGENT_WATCHDOG:
        snprintf(buf, cap, "%swatchdog%s%s", rank, desc->rank < 0 ? "" : " of ",
                 desc->rank < 0 ? "" : program->comms[desc->index].name);
        break;
    }
    return buf;
}

const char *program_object_name(const struct program *program, const struct op *op)
{
    if ((op->kind == OP_SYNC || op->kind == OP_QUERY) && op->sync != SYNC_EVENT)
        return NULL;
    switch (op_operand(op->kind)) {
    case OPERAND_EVENT: return program->event_names[op->object];
    case OPERAND_FLAG: return program->flag_names[op->object];
    case OPERAND_QUEUE: return program->queue_names[op->object];
    case OPERAND_LOCK: return program->lock_names[op->object];
    case OPERAND_BUFFER: return program->buffers[op->object].name;
    case OPERAND_COMM: return program->comms[op->object].name;
    case OPERAND_BARRIER: /* lowered to flags */
    case OPERAND_TURN:
    case OPERAND_SUBMISSION:
    case OPERAND_NONE: break;
    }
    return NULL;
}

const char *program_op_label(const struct program *program, const struct op *op, int64_t iteration,
                             char *buf, size_t cap)
{
    if (op->task >= 0)
        snprintf(buf, cap, "%s(%" PRId64 ")", program->plan->pipeline.tasks[op->task].name,
                 iteration);
    else if (op_role(op->kind) == ROLE_STEP) { /* its name is the object's */
        snprintf(buf, cap, "%s %s", op_key(op->kind), program_object_name(program, op));
        return buf;
    } else if (op->kind == OP_GROUP && op->part_count > 0) {
        const struct part *part = &program->parts[op->part_first];
        const struct channel *channel = &program->channels[part->channel];
        group_message_name(part->send, program->names.items[part->tag],
                           part->send ? channel->to : channel->from, op->part_count > 1, buf, cap);
    } else if (op->name >= 0)
        snprintf(buf, cap, "%s", program->names.items[op->name]);
    else
        snprintf(buf, cap, "%s", op_key(op->kind));
    if (op->iteration >= 0) {
        const size_t length = strlen(buf);
        snprintf(buf + length, cap - length, "(%d)", op->iteration);
    }
    return buf;
}

const char *program_flag_words(const struct program *program, const struct op *op, char *buf,
                               size_t cap)
{
    const char *name = program->flag_names[op->object];
    const int value = op->value;
    if (!program->flag_counts[op->object])
        snprintf(buf, cap, "%s", name);
    else
        switch (op->flag_rule) {
        case FLAG_SETS: snprintf(buf, cap, "%s to %d", name, value); break;
        case FLAG_ADDS:
            snprintf(buf, cap, "%s to %d %s", name, value < 0 ? -value : value,
                     value < 0 ? "less" : "more");
            break;
        case FLAG_AT_LEAST: snprintf(buf, cap, "%s at %d or more", name, value); break;
        case FLAG_EQUALS: snprintf(buf, cap, "%s at %d", name, value); break;
        case FLAG_TAKES: snprintf(buf, cap, "%d of %s", value, name); break;
        }
    return buf;
}

const char *program_op_title(const struct program *program, const struct op *op, int64_t iteration,
                             char *buf, size_t cap)
{
    const int length = op->at > 0 ? snprintf(buf, cap, "%s ", program->names.items[op->at - 1]) : 0;
    if ((size_t)length < cap)
        program_op_subject(program, op, iteration, buf + length, cap - (size_t)length);
    return buf;
}

/* "copy of x and others": the buffers that it reads, or writes. */
static size_t copy_side(const struct program *program, const struct op *op, bool write,
                        const char *word, char *buf, size_t cap)
{
    int count = 0;
    const char *first = NULL;
    for (int i = 0; i < op->access_count; i++) {
        const struct access *access = &program->accesses[op->access_first + i];
        if (access->write == write && count++ == 0)
            first = program->buffers[access->buffer].name;
    }
    if (!first || cap == 0)
        return 0;
    const int used = snprintf(buf, cap, " %s %s%s", word, first, count > 1 ? " and others" : "");
    return (size_t)used < cap ? (size_t)used : cap - 1;
}

static void copy_subject(const struct program *program, const struct op *op, char *buf, size_t cap)
{
    size_t begin = (size_t)snprintf(buf, cap, "%s", op_key(op->kind)), at = begin;
    at += copy_side(program, op, false, "of", buf + at, cap - at);
    at += copy_side(program, op, true, "to", buf + at, cap - at);
    if (at == begin)
        snprintf(buf + at, cap - at, " %s", keywords_direction[op->given->work->direction]);
}

const char *program_op_subject(const struct program *program, const struct op *op,
                               int64_t iteration, char *buf, size_t cap)
{
    const bool message = op->kind == OP_GROUP && op->part_count > 0;
    const bool unnamed = op->kind == OP_COPY && op->name < 0;
    if (op->task >= 0 || (!message && !unnamed))
        return program_op_label(program, op, iteration, buf, cap);
    struct op once = *op;
    once.iteration = -1;
    if (message)
        program_op_label(program, &once, iteration, buf, cap);
    else
        copy_subject(program, op, buf, cap);
    const size_t length = strlen(buf);
    if (op->iteration >= 0)
        snprintf(buf + length, cap - length, message ? ", iteration %d" : "(%d)", op->iteration);
    return buf;
}

static void program_words_print_object(FILE *out, const char *name, const struct op *op,
                                       const char *task)
{
    enum op_operand kind = op_operand(op->kind);
    if (!task || (kind != OPERAND_EVENT && kind != OPERAND_FLAG))
        fprintf(out, " %s", name);
    else if (op->distance > 0)
        fprintf(out, " %s(i-%d)", name, op->distance);
    else
        fprintf(out, " %s(i)", name);
}

static void print_operands(const struct program *program, const struct op *op, FILE *out)
{
    const char *task =
        op->task >= 0 && op->distance >= 0 ? program->plan->pipeline.tasks[op->task].name : NULL;
    const char *object = program_object_name(program, op);
    char device[32] = "device", flag[160];
    if (program->is_crossed && op->device >= 0)
        snprintf(device, sizeof device, "device of rank %d", op->device);
    if (object && !task && op_operand(op->kind) == OPERAND_FLAG)
        fprintf(out, " %s", program_flag_words(program, op, flag, sizeof flag));
    else if (object)
        program_words_print_object(out, object, op, task);
    else if (op->kind == OP_SYNC || op->kind == OP_QUERY)
        fprintf(out, " %s",
                op->sync == SYNC_DEVICE   ? device
                : op->sync == SYNC_LOAD   ? "load"
                : op->sync == SYNC_RETRY  ? "if memory lacks:"
                : op->sync == SYNC_STAGED ? "if the copy waits:"
                                          : "stream");
    else if (op->name >= 0)
        fprintf(out, " %s%s", program->names.items[op->name], task ? "(i)" : "");
    if (op_operand(op->kind) == OPERAND_TURN && op->ticket >= 0)
        fprintf(out, " %d", op->ticket);
    for (int i = 0; i < op->part_count; i++) {
        const struct part *part = &program->parts[op->part_first + i];
        const struct channel *channel = &program->channels[part->channel];
        fprintf(out, " %s %s %s %d", part->send ? "send" : "recv", program->names.items[part->tag],
                part->send ? "->" : "<-", part->send ? channel->to : channel->from);
    }
}

static void program_words_print_op(const struct program *program, const struct op *op, FILE *out)
{
    fputs(op->is_kernel                                 ? "kernel"
          : op_has_branches(op) && op_may_try(op->kind) ? "try to "
                                                        : "",
          out);
    fputs(op->is_kernel ? "" : op_key(op->kind), out);
    print_operands(program, op, out);
    if (op->comm >= 0)
        fprintf(out, " comm %s", program->comms[op->comm].name);
    if (op->stream >= 0)
        fprintf(out, " on %s", program->streams[op->stream].full_name);
    if (op->time_ns) {
        char time[UNITS_TEXT];
        units_print_time(op->time_ns, time);
        fprintf(out, " %s", time);
    }
    for (int i = 0; i < op->access_count; i++) {
        const struct access *access = &program->accesses[op->access_first + i];
        fprintf(out, " %s %s", access->write ? "writes" : "reads",
                program->buffers[access->buffer].name);
    }
    if (op_has_branches(op))
        fprintf(out, ", else %d further", op->otherwise);
    else if (op->kind == OP_ELSE)
        fprintf(out, ": %d further", op->otherwise);
    if (op->at > 0)
        fprintf(out, " at %s", program->names.items[op->at - 1]);
    fputs(op->free ? "\n" : "  # order can matter\n", out);
}

/* The steps of a callback or of a kernel. */
static void program_words_print_steps(const struct program *program, int index, FILE *out)
{
    const struct body *body = &program->bodies[index];
    for (int i = 0; i < body->count; i++) {
        fputs("      ", out);
        program_words_print_op(program, &program->ops[body->first + i], out);
    }
}

static void program_words_print_body(const struct program *program, int index, FILE *out)
{
    const struct body *body = &program->bodies[index];
    for (int i = 0; i < body->count; i++) {
        const struct op *op = &program->ops[body->first + i];
        fputs("    ", out);
        program_words_print_op(program, op, out);
        if (op_calls_host(op->kind))
            program_words_print_steps(program, op->object, out);
    }
}

static void print_order(const struct program *program, int rank, FILE *out)
{
    const struct task *tasks = program->plan->pipeline.tasks;
    fprintf(out, "  driver %s, ", driver_key(program->driver));
    if (program->driver == DRIVER_CLOCK)
        fprintf(out, "depth %d", program->depth);
    else
        fprintf(out, "max_depth %d", program->depth);
    fprintf(out, ", %d slots, enqueue order", program->slots);
    for (int k = 0; k < program->tasks; k++)
        fprintf(out, "%s %s", k ? "," : "", tasks[program->order[rank][k]].name);
    fputc('\n', out);
    const int *turns =
        program_fires_by_turn(program) ? program->turn_task + rank * program->tasks : NULL;
    for (int k = 0; turns && k < program->ordered_tasks[rank]; k++)
        fprintf(out, "%s %s(i + %d)%s", k ? "," : "  turns", tasks[turns[k]].name,
                program->last_turn_stage - program->turn_stage[turns[k]],
                k + 1 < program->ordered_tasks[rank] ? "" : "\n");
}

enum status program_print(const struct program *program, FILE *out, struct diag *diag)
{
    for (int rank = 0; rank < program->ranks; rank++) {
        fprintf(out, "rank %d\n", rank);
        if (program->tasks)
            print_order(program, rank, out);
        for (int t = 0; t < program->thread_count; t++) {
            const struct thread_desc *thread = &program->threads[t];
            if (thread->rank != rank || thread->kind != THREAD_HOST)
                continue;
            fprintf(out, "  thread %s\n", thread->name);
            program_words_print_body(program, thread->body, out);
        }
        for (int task = 0; task < program->tasks; task++) {
            int index = rank * program->tasks + task;
            fprintf(out, "  task %s, thread %s\n", program->plan->pipeline.tasks[task].name,
                    program->threads[program->worker[index]].name);
            program_words_print_body(program, index, out);
        }
    }
    return diag_flush(diag, out, "the lowered program");
}
