/* SPDX-License-Identifier: Apache-2.0 */
/*
 * canonical.c - states with equal futures get equal memory.
 *
 * Two kinds of numbers make equal situations differ: iteration numbers, which only grow, and counters
 * of finished work. Iterations are shifted so that the oldest iteration of all ranks is never above
 * program->history (the rules treat all iterations before it alike). Arrays indexed by iteration
 * mod n are rotated by the same shift. Ticks of accesses are numbered anew (happens_before.c). Counters are reduced to count from the first open item, and the
 * rings of the streams are rotated to begin with their heads.
 */
#include <string.h>

#include "happens_before.h"
#include "base/sort.h"
#include "machine_internal.h"

enum { PIECE = 256 };

/* Of `count` elements `stride` bytes apart the first `size` bytes: those of element i move to element
   (i - by) mod count. */
static void rotate_piece(char *bytes, int count, size_t stride, size_t size, int by)
{
    char saved[PIECE];
    /* juggling: follow each cycle once */
    int cycles = count, step = by;
    while (step) {
        int rest = cycles % step;
        cycles = step;
        step = rest;
    }
    for (int start = 0; start < cycles; start++) {
        memcpy(saved, bytes + (size_t)start * stride, size);
        int to = start;
        for (;;) {
            int from = to + by < count ? to + by : to + by - count;
            if (from == start)
                break;
            memcpy(bytes + (size_t)to * stride, bytes + (size_t)from * stride, size);
            to = from;
        }
        memcpy(bytes + (size_t)to * stride, saved, size);
    }
}

/* Rotate `count` elements of `size` bytes so that element i moves to (i - by) mod count. */
static void canonical_rotate(void *array, int count, size_t size, int by)
{
    by %= count;
    for (size_t at = 0; by && at < size; at += PIECE)
        rotate_piece((char *)array + at, count, size, size - at < PIECE ? size - at : PIECE, by);
}

static void rotate_rows(const struct program *p, int32_t *c, int first, int families, int count,
                        int by)
{
    for (int f = 0; f < families; f++)
        canonical_rotate(row(p, c, first + f * count), count,
                         (size_t)p->at.row_words * sizeof(uint64_t), by);
}

/* The last accesses to iteration i's buffers move to those of iteration i - by: those of all buffers of scope iteration, then
   those of each ring. */
static void rotate_last(const struct program *p, int32_t *c, int by)
{
    const size_t bytes = (size_t)p->at.tick_bytes;
    if (p->at.row_words && p->period_records)
        canonical_rotate((char *)last_ticks(p, c) +
                             (size_t)(p->shared_records + p->ring_records) * bytes,
                         p->window, (size_t)p->period_records * bytes, by);
    for (int b = 0; p->at.row_words && p->ring_records && b < p->buffer_count; b++) {
        const struct buffer_desc *buffer = &p->buffers[b];
        if (buffer->period > 1 && buffer->record_count > 0)
            canonical_rotate((char *)last_ticks(p, c) + (size_t)buffer->ring_first * bytes,
                             buffer->period, (size_t)buffer->record_count * bytes, by);
    }
}

static void shift_rank(const struct program *p, int32_t *c, int rank, int by)
{
    int32_t *state = rank_cells(p, c, rank);
    state[RANK_OLDEST] -= by;
    state[RANK_ADMITTED] -= by;
    state[RANK_FINISHED] -= by;
    if (p->driver == DRIVER_CLOCK)
        state[RANK_PERIOD] -= by;
    if (state[RANK_END] >= 0)
        state[RANK_END] -= by;
    int tickets = by * p->ordered_tasks[rank];
    state[RANK_SERVED] -= tickets;
    if (p->driver == DRIVER_CLOCK || p->plan->pipeline.ticket_at == TICKET_AT_FIRE)
        state[RANK_NEXT_TICKET] -= tickets;
    for (int task = 0; p->options.serial && task < p->tasks; task++)
        if (plan_task(p->plan, rank, task)->writes.count > 0)
            c[p->at.made + rank * p->tasks + task] -= by;
    canonical_rotate(window_cells(p, c, rank, 0), p->window, WINDOW_CELLS * sizeof(int32_t), by);
    for (int task = 0; task < p->tasks; task++)
        canonical_rotate(fired_cell(p, c, rank, task, 0), p->window, sizeof(int32_t), by);
}

static void shift_thread(const struct program *p, int32_t *c, int thread, int by)
{
    int32_t *state = thread_cells(p, c, thread);
    int rank = p->threads[thread].rank;
    int tickets = by * p->ordered_tasks[rank];
    bool busy = state[THREAD_BODY] >= 0;
    bool ordered = busy && p->ticket_position[state[THREAD_BODY]] >= 0;
    if (busy)
        state[THREAD_ITER] -= by;
    if (ordered)
        state[THREAD_TICKET] -= tickets;
    for (int k = 0; k < state[THREAD_COUNT]; k++) {
        int32_t *entry = entry_cells(p, c, thread, k);
        entry[ENTRY_ITER] -= by;
        if (p->ticket_position[rank * p->tasks + entry[ENTRY_TASK]] >= 0)
            entry[ENTRY_TICKET] -= tickets;
    }
}

/* No rule asks about an older owner any more, so it counts as none. */
static int32_t older(int32_t owner, int by)
{
    return owner < by ? -1 : owner - by;
}

static void shift_slots(const struct program *p, int32_t *c, int by)
{
    int families = p->ranks * p->tasks; /* beyond them are flags without iterations */
    for (int f = 0; f < families; f++) {
        for (int slot = 0; slot < p->slots; slot++) {
            int32_t *event = event_cells(p, c, f * p->slots + slot);
            int32_t *flag = flag_cells(p, c, f * p->slots + slot);
            event[EVENT_OWNER] = older(event[EVENT_OWNER], by);
            flag[FLAG_OWNER] = older(flag[FLAG_OWNER], by);
        }
        canonical_rotate(event_cells(p, c, f * p->slots), p->slots, EVENT_CELLS * sizeof(int32_t),
                         by);
        canonical_rotate(flag_cells(p, c, f * p->slots), p->slots, FLAG_CELLS * sizeof(int32_t),
                         by);
    }
    rotate_rows(p, c, p->at.row_events, families, p->slots, by);
    rotate_rows(p, c, p->at.row_flags, families, p->slots, by);
    rotate_rows(p, c, p->at.row_done, p->ranks, p->window, by);
    rotate_rows(p, c, p->at.row_admit, p->ranks, p->window, by);
}

/* Rotation moved the instances of events, so queued records must name their new places. */
static void shift_items(const struct program *p, int32_t *c, int by)
{
    for (int s = 0; s < p->stream_count; s++)
        for (int k = 0; k < stream_cells(p, c, s)[STREAM_COUNT]; k++) {
            int32_t *item = item_cells(p, c, s, k);
            item[ITEM_ITER] -= by;
            if (op_records(p->ops[item[ITEM_OP]].kind))
                item[ITEM_A] = instance_of(p, &p->ops[item[ITEM_OP]], item[ITEM_ITER]);
        }
    for (int ch = 0; ch < p->channel_count; ch++) {
        int32_t *channel = c + p->at.channels[ch];
        int pending = channel[0] < 0 ? -channel[0] : channel[0];
        for (int k = 0; k < pending; k++)
            channel[1 + k * MESSAGE_CELLS + CHANNEL_ITER] -= by;
    }
}

/* No rule asks about an earlier iteration. With `retire: last-task` other work of a retired one may be left. */
static int32_t first_left(const struct program *p, const int32_t *rank_state)
{
    int32_t oldest = rank_state[RANK_OLDEST], finished = rank_state[RANK_FINISHED];
    bool lags = p->plan->pipeline.retire == RETIRE_LAST_TASK && finished < oldest;
    return (lags ? finished : oldest) - p->history;
}

static void shift(const struct program *p, int32_t *c)
{
    int oldest = INT32_MAX;
    for (int rank = 0; rank < p->ranks; rank++) {
        int32_t first = first_left(p, rank_cells(p, c, rank));
        oldest = first < oldest && p->ends[rank] != 0 ? first : oldest;
    }
    int by = oldest < INT32_MAX ? oldest : 0;
    if (by <= 0)
        return;
    c[0] = c[0] - by > 0 ? c[0] - by : 0;
    for (int rank = 0; rank < p->ranks; rank++)
        if (p->ends[rank] != 0) /* else the rank never acts */
            shift_rank(p, c, rank, by);
    for (int t = 0; t < p->thread_count; t++)
        if (p->threads[t].kind == THREAD_WORKER)
            shift_thread(p, c, t, by);
    shift_slots(p, c, by);
    shift_items(p, c, by);
    rotate_last(p, c, by);
}

/* `count` elements of `size` bytes in a ring of `cap`, the first one at `first`, move to its beginning.
   Unused places are zero. */
static void unwind(void *ring, int cap, size_t size, int first, int count)
{
    char *bytes = ring;
    if (first + count > cap) {
        canonical_rotate(ring, cap, size, first);
        return;
    }
    memmove(bytes, bytes + (size_t)first * size, (size_t)count * size);
    int left = first > count ? first : count; /* the first place that is no longer used */
    memset(bytes + (size_t)left * size, 0, (size_t)(first + count - left) * size);
}

/* The knowledge of queued instances is in their order always. */
static void unwind_entries(const struct program *p, int32_t *c, int thread)
{
    int32_t *state = thread_cells(p, c, thread);
    if (state[THREAD_FIRST] == 0)
        return;
    unwind(state + THREAD_CELLS, p->threads[thread].queue_cap, ENTRY_CELLS * sizeof *state,
           state[THREAD_FIRST], state[THREAD_COUNT]);
    state[THREAD_FIRST] = 0;
}

static void unwind_items(const struct program *p, int32_t *c, int stream)
{
    int32_t *state = stream_cells(p, c, stream);
    int first = state[STREAM_FIRST], count = state[STREAM_COUNT], cap = p->streams[stream].cap;
    if (first == 0)
        return;
    unwind(state + STREAM_CELLS, cap, ITEM_CELLS * sizeof *state, first, count);
    if (p->at.row_words)
        unwind(row(p, c, p->at.row_items[stream]), cap, (size_t)p->at.row_words * sizeof(uint64_t),
               first, count);
    state[STREAM_FIRST] = 0;
}

/* A position waited for counts from the head of that stream; a wait that is over waits for none. */
static void renumber_wait(const struct program *p, int32_t *c, int32_t *item)
{
    if (item[ITEM_A] < 0)
        return;
    item[ITEM_B] -= stream_cells(p, c, item[ITEM_A])[STREAM_DONE];
    if (item[ITEM_B] < 0) {
        item[ITEM_A] = -1;
        item[ITEM_B] = 0;
    }
}

/* What its stream, or a recorded one, has come past is over: no rule asks when. */
static void renumber_buffer(const struct program *p, int32_t *c, int index)
{
    int32_t *buffer = buffer_cells(p, c, index);
    int32_t done =
        buffer[BUFFER_STREAM] ? stream_cells(p, c, buffer[BUFFER_STREAM] - 1)[STREAM_DONE] : 0;
    buffer[BUFFER_TAKEN_AT] = max_int(buffer[BUFFER_TAKEN_AT] - done, 0);
    buffer[BUFFER_FREED_AT] = max_int(buffer[BUFFER_FREED_AT] - done, 0);
    for (int i = p->recorded_of[index]; i >= 0; i = p->recorded[i].next) {
        int32_t *recorded = c + p->at.recorded + i;
        int32_t until = *recorded - stream_cells(p, c, p->recorded[i].stream)[STREAM_DONE];
        if (*recorded >= RECORDED_UNTIL)
            *recorded = until > RECORDED_UNTIL ? until : RECORDED;
    }
}

/* True if all counters of finished and started work are zero. */
static bool is_renumbered(const struct program *p, int32_t *c)
{
    int32_t done = 0;
    for (int s = 0; s < p->stream_count; s++)
        done |= stream_cells(p, c, s)[STREAM_DONE];
    for (int m = 0; m < p->member_count; m++)
        done |= c[p->at.members + m * MEMBER_CELLS + MEMBER_FINISHED];
    for (int rank = 0; rank < p->ranks; rank++)
        done |= rank_cells(p, c, rank)[RANK_COMM_STARTED];
    return done == 0;
}

/* Positions in streams count from the head, issue numbers from the finished or started ones. */
static void renumber(const struct program *p, int32_t *c)
{
    for (int s = 0; s < p->stream_count; s++) {
        int rank = p->streams[s].rank;
        for (int k = 0; k < stream_cells(p, c, s)[STREAM_COUNT]; k++) {
            int32_t *item = item_cells(p, c, s, k);
            const struct op *op = &p->ops[item[ITEM_OP]];
            if (op_waits_for_record(op->kind))
                renumber_wait(p, c, item);
            if (op->comm >= 0) {
                item[ITEM_A] -= member_cells(p, c, op)[MEMBER_FINISHED];
                item[ITEM_C] -= rank_cells(p, c, rank)[RANK_COMM_STARTED];
            }
        }
    }
    for (int e = 0; e < p->event_families * p->slots; e++) {
        int32_t *event = event_cells(p, c, e);
        if (event[EVENT_STREAM] >= 0)
            event[EVENT_POS] -= stream_cells(p, c, event[EVENT_STREAM])[STREAM_DONE];
    }
    for (int b = 0; p->has_lifetimes && b < p->buffer_count; b++)
        renumber_buffer(p, c, b);
    for (int k = 0; k < p->awaited_count; k++)
        if (c[p->at.awaited + k] > 0)
            c[p->at.awaited + k] -= stream_cells(p, c, p->awaited[k].stream)[STREAM_DONE];
    for (int m = 0; m < p->member_count; m++) {
        int32_t *member = c + p->at.members + m * MEMBER_CELLS;
        member[MEMBER_ISSUED] -= member[MEMBER_FINISHED];
        member[MEMBER_FINISHED] = 0;
    }
    for (int rank = 0; rank < p->ranks; rank++) {
        int32_t *state = rank_cells(p, c, rank);
        state[RANK_COMM_ISSUED] -= state[RANK_COMM_STARTED];
        state[RANK_COMM_STARTED] = 0;
    }
    for (int s = 0; s < p->stream_count; s++) {
        unwind_items(p, c, s);
        stream_cells(p, c, s)[STREAM_DONE] = 0;
    }
}

void machine_canonical(const struct program *p, struct state *state)
{
    if (p->tasks)
        shift(p, state->cells);
    for (int thread = 0; p->tasks && thread < p->thread_count; thread++)
        if (p->threads[thread].kind == THREAD_WORKER)
            unwind_entries(p, state->cells, thread);
    if (!is_renumbered(p, state->cells))
        renumber(p, state->cells);
    if (p->at.row_words)
        hb_renumber(p, state->cells);
}
