/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access_records.c - which agents read, write and allocate which buffers.
 *
 * Every (buffer, agent, read, write or allocation) that the program can do gets one bit of a state. Shared buffers come
 * first, then those of one iteration, which are repeated for each iteration of the window.
 */
#include "lower.h"

#include <stdlib.h>

#include "base/large_pages.h"

/* Which agent performs an operation's accesses: the stream it runs on, else the thread. */
static int access_agent(const struct program *program, const struct op *op, int thread)
{
    return op->stream >= 0 ? program_stream_agent(program, op->stream)
                           : program_thread_agent(program, thread);
}

/* Records by buffer: counted first, and then put where those of their buffer go. */
struct listing {
    int *first; /* per buffer, then the end; two behind while counting, one while putting */
    struct record *records; /* NULL: they are counted */
    size_t count;
};

static void note_record(struct listing *listing, struct record record)
{
    if (listing->records)
        listing->records[listing->first[record.buffer + 1]++] = record;
    else
        listing->first[record.buffer + 2]++;
    listing->count++;
}

static void note_op(const struct program *program, struct listing *listing, const struct op *op,
                    int thread)
{
    for (int k = 0; k < op->access_count; k++) {
        const struct access *access = &program->accesses[op->access_first + k];
        note_record(listing, (struct record){.buffer = access->buffer,
                                             .agent = access_agent(program, op, thread),
                                             .write = access->write});
    }
    if (op->kind == OP_ALLOC)
        note_record(listing, (struct record){.buffer = op->object,
                                             .agent = program_stream_agent(program, op->stream),
                                             .alloc = true});
}

static void note_all(const struct program *program, struct listing *listing)
{
    listing->count = 0;
    for (size_t b = 0; b < program->body_count; b++)
        for (int i = 0; i < program->bodies[b].count; i++)
            note_op(program, listing, &program->ops[program->bodies[b].first + i],
                    program->bodies[b].thread);
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

/* Those of a buffer in order, each once; a buffer has few. Returns how many are left. */
static int sort_by_buffer(const struct program *program, struct listing *listing)
{
    struct record *records = listing->records;
    int kept = 0;
    for (int b = 0; b < program->buffer_count; b++) {
        int from = listing->first[b], end = listing->first[b + 1];
        sort_records(records + from, (size_t)(end - from));
        for (int i = from; i < end; i++)
            if (i == from || compare_records(&records[kept - 1], &records[i]) != 0)
                records[kept++] = records[i];
    }
    return kept;
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

static void find_allocated(struct program *program)
{
    for (size_t i = 0; i < program->op_count; i++)
        if (program->ops[i].kind == OP_ALLOC)
            program->buffers[program->ops[i].object].allocated = true;
}

/* All records of a program with accesses, sorted; false: memory is exhausted. */
static bool list_sorted(struct program *program, struct listing *listing)
{
    note_all(program, listing);
    for (int b = 0; b < program->buffer_count; b++)
        listing->first[b + 2] += listing->first[b + 1];
    listing->records = large_calloc(listing->count + 1, sizeof *listing->records);
    if (!listing->records)
        return false;
    note_all(program, listing);
    program->record_count = sort_by_buffer(program, listing);
    program->records =
        ARENA_ARRAY(&program->arena, (size_t)program->record_count + 1, struct record);
    if (program->records)
        place_records(program, listing->records);
    return program->records != NULL;
}

enum status access_records_list(struct lowering *lowering)
{
    struct program *program = lowering->program;
    find_allocated(program);
    if (program->access_count == 0)
        return STATUS_OK;
    struct listing listing = {0};
    listing.first = calloc((size_t)program->buffer_count + 2, sizeof *listing.first);
    bool good = listing.first && list_sorted(program, &listing);
    free(listing.first);
    free(listing.records);
    return good ? STATUS_OK : diag_no_memory(lowering->diag);
}
