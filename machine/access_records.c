/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access_records.c - which agents read, write and allocate which buffers.
 *
 * Every (buffer, agent, read, write or allocation) that the program can do gets one bit of a state. Shared buffers come
 * first, then those of one iteration, which are repeated for each iteration of the window.
 */
#include "lower.h"

#include <stdlib.h>

#include "plan/large_pages.h"

/* Which agent performs an operation's accesses: the stream it runs on, else the thread. */
static int access_agent(const struct program *program, const struct op *op, int thread)
{
    return op->stream >= 0 ? program_stream_agent(program, op->stream)
                           : program_thread_agent(program, thread);
}

static void note_record(struct program *program, struct record record)
{
    program->records[program->record_count++] = record;
}

static int compare_records(const void *a, const void *b)
{
    const struct record *x = a, *y = b;
    if (x->buffer != y->buffer)
        return x->buffer < y->buffer ? -1 : 1;
    if (x->agent != y->agent)
        return x->agent < y->agent ? -1 : 1;
    return x->alloc == y->alloc ? (int)x->write - (int)y->write : (int)x->alloc - (int)y->alloc;
}

/* Sorted records, each once. */
static void remove_twins(struct program *program)
{
    struct record *records = program->records;
    int kept = 0;
    for (int i = 0; i < program->record_count; i++)
        if (i == 0 || compare_records(&records[kept - 1], &records[i]) != 0)
            records[kept++] = records[i];
    program->record_count = kept;
}

static void note_accesses(struct program *program)
{
    for (size_t b = 0; b < program->body_count; b++) {
        const struct body *body = &program->bodies[b];
        for (int i = 0; i < body->count; i++) {
            const struct op *op = &program->ops[body->first + i];
            for (int k = 0; k < op->access_count; k++) {
                const struct access *access = &program->accesses[op->access_first + k];
                note_record(program,
                            (struct record){.buffer = access->buffer,
                                            .agent = access_agent(program, op, body->thread),
                                            .write = access->write});
            }
        }
    }
}

static void note_allocations(struct program *program)
{
    for (size_t i = 0; i < program->op_count; i++) {
        const struct op *op = &program->ops[i];
        if (op->kind == OP_ALLOC)
            note_record(program, (struct record){.buffer = op->object,
                                                 .agent = program_stream_agent(program, op->stream),
                                                 .alloc = true});
    }
}

/* Few are in order after fewer comparisons than the library makes. */
static void sort_records(struct record *records, size_t count)
{
    enum { FEW = 16 };
    if (count > FEW) {
        qsort(records, count, sizeof *records, compare_records);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        const struct record moved = records[i];
        size_t at = i;
        for (; at > 0 && compare_records(&records[at - 1], &moved) > 0; at--)
            records[at] = records[at - 1];
        records[at] = moved;
    }
}

/* Into `to`, by buffer, then by the rest: a buffer has few. `first`: zeros, one a buffer and two more. */
static void sort_by_buffer(const struct program *program, const struct record *from,
                           struct record *to, int *first)
{
    for (int i = 0; i < program->record_count; i++)
        first[from[i].buffer + 2]++;
    for (int b = 0; b < program->buffer_count; b++)
        first[b + 2] += first[b + 1];
    for (int i = 0; i < program->record_count; i++)
        to[first[from[i].buffer + 1]++] = from[i];
    for (int b = 0; b < program->buffer_count; b++)
        sort_records(to + first[b], (size_t)(first[b + 1] - first[b]));
}

/* Shared buffers come first, then those of one iteration. */
static void place_records(struct program *program, const struct record *from)
{
    int count = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < program->record_count; i++) {
            struct buffer_desc *buffer = &program->buffers[from[i].buffer];
            if ((buffer->scope == SCOPE_ITERATION && program->tasks) != (pass == 1))
                continue;
            if (buffer->record_count++ == 0)
                buffer->record_first = count;
            program->records[count++] = from[i];
        }
        if (pass == 0)
            program->shared_records = count;
    }
    program->period_records = count - program->shared_records;
}

static size_t most_records(const struct program *program)
{
    size_t count = 0;
    for (size_t b = 0; b < program->body_count; b++)
        for (int i = 0; i < program->bodies[b].count; i++)
            count += (size_t)program->ops[program->bodies[b].first + i].access_count;
    for (size_t i = 0; i < program->op_count; i++)
        count += program->ops[i].kind == OP_ALLOC;
    return count;
}

enum status access_records_list(struct lowering *lowering)
{
    struct program *program = lowering->program;
    for (size_t i = 0; i < program->op_count; i++)
        if (program->ops[i].kind == OP_ALLOC)
            program->buffers[program->ops[i].object].allocated = true;
    size_t most = most_records(program) + 1;
    struct record *noted = large_calloc(most, sizeof *noted),
                  *sorted = large_calloc(most, sizeof *sorted);
    int *first = calloc((size_t)program->buffer_count + 2, sizeof *first);
    bool good = noted && sorted && first;
    if (good) {
        program->records = noted;
        note_accesses(program);
        if (program->record_count > 0)
            note_allocations(program);
        sort_by_buffer(program, noted, sorted, first);
        program->records = sorted;
        remove_twins(program);
        size_t count = (size_t)program->record_count + 1;
        program->records = ARENA_ARRAY(&program->arena, count, struct record);
        good = program->records != NULL;
    }
    if (good)
        place_records(program, sorted);
    free(noted);
    free(sorted);
    free(first);
    return good ? STATUS_OK : diag_no_memory(lowering->diag);
}
