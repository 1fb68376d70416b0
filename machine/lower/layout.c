/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c - computes the layout of a state; the drawing is in machine_internal.h. */
#include "lower.h"
#include "machine/machine_internal.h"

static int take(int *at, int64_t cells, bool *too_big)
{
    int start = *at;
    if (cells > INT32_MAX / 4 - *at)
        *too_big = true;
    else
        *at += (int)cells;
    return start;
}

static bool allocate_tables(struct program *program)
{
    struct layout *at = &program->at;
    struct arena *arena = &program->arena;
    at->threads = ARENA_ARRAY(arena, (size_t)program->thread_count, int);
    at->row_entries = ARENA_ARRAY(arena, (size_t)program->thread_count, int);
    at->streams = ARENA_ARRAY(arena, (size_t)program->stream_count, int);
    at->row_items = ARENA_ARRAY(arena, (size_t)program->stream_count, int);
    at->channels = ARENA_ARRAY(arena, (size_t)program->channel_count, int);
    at->hw_queues = ARENA_ARRAY(arena, (size_t)program->hw_queue_count, int);
    at->row_queues = ARENA_ARRAY(arena, (size_t)program->queue_count, int);
    at->row_channels = ARENA_ARRAY(arena, (size_t)program->channel_count, int);
    return !arena->failed;
}

/* Does it allocate or free a buffer? */
static bool uses_memory(const struct program *program)
{
    for (size_t i = 0; i < program->op_count; i++)
        if (op_operand(program->ops[i].kind) == OPERAND_BUFFER)
            return true;
    return false;
}

static void lay_out_cells(struct program *program, bool *too_big)
{
    struct layout *at = &program->at;
    int next = 1;
    int64_t ranks = program->ranks, instances = program->slots;
    at->ranks = take(&next, ranks * RANK_CELLS, too_big);
    at->windows = take(&next, program->tasks ? ranks * program->window * WINDOW_CELLS : 0, too_big);
    at->fired = take(&next, ranks * program->tasks * program->window, too_big);
    for (int t = 0; t < program->thread_count; t++)
        at->threads[t] = take(
            &next, THREAD_CELLS + (int64_t)program->threads[t].queue_cap * ENTRY_CELLS, too_big);
    for (int s = 0; s < program->stream_count; s++)
        at->streams[s] =
            take(&next, STREAM_CELLS + (int64_t)program->streams[s].cap * ITEM_CELLS, too_big);
    at->members = take(&next, (int64_t)program->member_count * MEMBER_CELLS, too_big);
    for (int c = 0; c < program->channel_count; c++)
        at->channels[c] =
            take(&next, 1 + (int64_t)program->channels[c].cap * MESSAGE_CELLS, too_big);
    for (int h = 0; h < program->hw_queue_count; h++)
        at->hw_queues[h] = take(&next, 1 + program->hw_cap, too_big);
    at->events = take(&next, program->event_families * instances * EVENT_CELLS, too_big);
    at->flags = take(&next, program->flag_families * instances * FLAG_CELLS, too_big);
    at->queues = take(&next, program->queue_count, too_big);
    at->locks = take(&next, program->lock_count, too_big);
    bool loads = program->plan->machine.lazy_load;
    at->kernels = take(&next, loads ? ranks * program->kernel_count : 0, too_big);
    at->buffers = take(
        &next, uses_memory(program) ? program->buffer_count * (int64_t)BUFFER_CELLS : 0, too_big);
    at->awaited = take(&next, program->awaited_count, too_big);
    bool faults = program->options.faults;
    at->faults = take(&next, faults ? 1 + ranks + program->comm_count : 0, too_big);
    at->made = take(&next, program->options.serial ? ranks * program->tasks : 0, too_big);
    at->cells = next;
}

static void lay_out_rows(struct program *program, bool *too_big)
{
    struct layout *at = &program->at;
    int64_t bits = program->shared_records + (int64_t)program->period_records * program->window;
    int next = 0;
    if (bits == 0 || program->options.no_knowledge)
        return;
    at->row_words = program->options.clocks ? 0 : (int)((bits + 63) / 64);
    int64_t ranks = program->ranks, instances = program->slots;
    at->row_live = take(&next, 1, too_big);
    at->row_threads = take(&next, program->thread_count, too_big);
    at->row_streams = take(&next, program->stream_count, too_big);
    for (int s = 0; s < program->stream_count; s++)
        at->row_items[s] = take(&next, program->streams[s].cap, too_big);
    at->row_events = take(&next, program->event_families * instances, too_big);
    at->row_flags = take(&next, program->flag_families * instances, too_big);
    at->row_locks = take(&next, program->lock_count, too_big);
    at->row_tickets = take(&next, ranks, too_big);
    at->row_done = take(&next, ranks * program->window, too_big);
    at->row_admit = take(&next, ranks * program->window, too_big);
    for (int t = 0; t < program->thread_count; t++)
        at->row_entries[t] = take(&next, program->threads[t].queue_cap, too_big);
    for (int q = 0; q < program->queue_count; q++)
        at->row_queues[q] = take(&next, program->queue_caps[q], too_big);
    for (int c = 0; c < program->channel_count; c++)
        at->row_channels[c] = take(&next, program->channels[c].cap, too_big);
    at->row_marked = take(&next, program->has_lifetimes ? program->buffer_count : 0, too_big);
    at->rows = next;
}

enum status program_lay_out(struct program *program, struct diag *diag)
{
    if (!allocate_tables(program))
        return diag_no_memory(diag);
    for (size_t i = 0; i < program->op_count; i++)
        program->has_lifetimes |= program->ops[i].kind == OP_FREE;
    bool too_big = false;
    lay_out_cells(program, &too_big);
    lay_out_rows(program, &too_big);
    struct layout *at = &program->at;
    at->rows_at = ((size_t)at->cells * sizeof(int32_t) + 7) / 8 * 8;
    at->bytes = at->rows_at + (size_t)at->rows * (size_t)at->row_words * sizeof(uint64_t);
    program->fits = !too_big && at->bytes <= (size_t)1 << 31;
    bool any_size = program->options.any_size;
    program->options.any_size = false;
    return any_size ? STATUS_OK : program_fits(program, diag);
}

enum status program_fits(const struct program *program, struct diag *diag)
{
    if (program->fits)
        return STATUS_OK;
    return diag_error(
        diag, STATUS_INPUT,
        "%s: one state of this plan would take more than 2 GiB: expected a smaller plan",
        program->plan->file);
}
