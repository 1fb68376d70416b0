/* SPDX-License-Identifier: Apache-2.0 */
/* happens_before.c - see happens_before.h. */
#include "happens_before.h"

#include <string.h>

#include "clocks.h"

static inline size_t row_bytes(const struct work_state *w)
{
    return (size_t)w->p->at.row_words * sizeof(uint64_t);
}

/* Ticks of one, two or four bytes: functions that are given their size as a constant are made for each. */
#define FOR_SIZE_OF_TICKS(p, call)                                                                 \
    switch ((p)->at.tick_bytes) {                                                                  \
    case 1: call(1); break;                                                                        \
    case 2: call(2); break;                                                                        \
    default: call(4); break;                                                                       \
    }
#define MADE_FOR_SIZE static inline __attribute__((always_inline))

MADE_FOR_SIZE int32_t tick_at(const void *ticks, size_t i, int bytes)
{
    return bytes == 1   ? ((const int8_t *)ticks)[i]
           : bytes == 2 ? ((const int16_t *)ticks)[i]
                        : ((const int32_t *)ticks)[i];
}

MADE_FOR_SIZE void put_tick(void *ticks, size_t i, int bytes, int32_t tick)
{
    if (bytes == 1)
        ((int8_t *)ticks)[i] = (int8_t)tick;
    else if (bytes == 2)
        ((int16_t *)ticks)[i] = (int16_t)tick;
    else
        ((int32_t *)ticks)[i] = tick;
}

static int32_t row_tick(const struct work_state *w, int index, int column)
{
    return tick_at(row(w->p, w->c, index), (size_t)column, w->p->at.tick_bytes);
}

static void put_row_tick(struct work_state *w, int index, int column, int32_t tick)
{
    put_tick(row(w->p, w->c, index), (size_t)column, w->p->at.tick_bytes, tick);
}

/* At a place of `last`. */
static int32_t last_tick(const struct work_state *w, int place)
{
    return tick_at(last_ticks(w->p, w->c), (size_t)place, w->p->at.tick_bytes);
}

static void put_last_tick(struct work_state *w, int place, int32_t tick)
{
    put_tick(last_ticks(w->p, w->c), (size_t)place, w->p->at.tick_bytes, tick);
}

/* A row has lost ticks, if any: others may now be numbered alike. */
static inline void note_lost(struct work_state *w, bool any)
{
    if (any)
        w->c[w->p->at.loose] = 1;
}

MADE_FOR_SIZE void join_ticks(struct work_state *w, void *to, const void *from, int bytes)
{
    const size_t count = row_bytes(w) / (size_t)bytes;
    int32_t lost = 0;
    for (size_t i = 0; i < count; i++) {
        int32_t a = tick_at(to, i, bytes), b = tick_at(from, i, bytes);
        lost |= a < b ? a : 0;
        put_tick(to, i, bytes, a < b ? b : a);
    }
    note_lost(w, lost);
}

void hb_join(struct work_state *w, int to, int from)
{
    if (w->clocks) {
        clocks_join(w->clocks, to, from);
        return;
    }
#define JOIN(bytes) join_ticks(w, row(w->p, w->c, to), row(w->p, w->c, from), bytes)
    FOR_SIZE_OF_TICKS(w->p, JOIN)
#undef JOIN
}

void hb_copy(struct work_state *w, int to, int from)
{
    if (w->clocks) {
        clocks_copy(w->clocks, to, from);
        return;
    }
    uint64_t *a = row(w->p, w->c, to), lost = 0;
    const uint64_t *b = row(w->p, w->c, from);
    for (int i = 0; i < w->p->at.row_words; i++) {
        lost |= a[i] != b[i] ? a[i] : 0;
        a[i] = b[i];
    }
    note_lost(w, lost);
}

void hb_clear(struct work_state *w, int index)
{
    if (w->clocks) {
        clocks_clear(w->clocks, index);
        return;
    }
    uint64_t *words = row(w->p, w->c, index), lost = 0;
    for (int i = 0; i < w->p->at.row_words; i++) {
        lost |= words[i];
        words[i] = 0;
    }
    note_lost(w, lost);
}

void hb_shift(struct work_state *w, int first, int count)
{
    if (w->clocks)
        clocks_shift(w->clocks, first, count);
    if (!w->p->at.row_words || count == 0)
        return;
    hb_clear(w, first);
    memmove(row(w->p, w->c, first), row(w->p, w->c, first + 1), (size_t)(count - 1) * row_bytes(w));
    memset(row(w->p, w->c, first + count - 1), 0, row_bytes(w));
}

/* ---- ticks numbered anew ---------------------------------------------------------------------- */

/*
 * Of an agent's live accesses a row knows those up to a tick. So the rows are a chain of sets; the state can tell apart
 * only the sets that some row has. The new tick of a row is the place of its set in this chain, that of an access the place
 * of the first set that has it. Two states are the same afterwards exactly if the same rows know the same live accesses.
 */

enum { IS_LIVE = 1, IS_KNOWN = 2 };

static int column_of_record(const struct program *p, int record)
{
    return p->at.column[p->records[record].agent];
}

/* Most rows are empty, the places in streams first of all. */
static bool is_empty_piece(const uint64_t *words)
{
    return (words[0] | words[1] | words[2] | words[3] | words[4] | words[5] | words[6] |
            words[7]) == 0;
}

/* The next word of the rows that is not zero, from `at`; `count`: there is none. */
static size_t next_used_word(const uint64_t *words, size_t at, size_t count)
{
    for (; at + 8 <= count && is_empty_piece(words + at);)
        at += 8;
    while (at < count && words[at] == 0)
        at++;
    return at;
}

/* `room`: what to note of, or to put instead of, each tick of each column. */
typedef void tick_visit(void *ticks, size_t i, int bytes, int32_t *room);

MADE_FOR_SIZE void note_live(void *ticks, size_t i, int bytes, int32_t *room)
{
    room[tick_at(ticks, i, bytes)] |= IS_LIVE;
}

MADE_FOR_SIZE void note_known(void *ticks, size_t i, int bytes, int32_t *room)
{
    room[tick_at(ticks, i, bytes)] |= IS_KNOWN;
}

MADE_FOR_SIZE void take_new(void *ticks, size_t i, int bytes, int32_t *room)
{
    put_tick(ticks, i, bytes, room[tick_at(ticks, i, bytes)]);
}

/* Those of a buffer with several instances, from `place` on. Returns the place behind them. */
MADE_FOR_SIZE size_t visit_ring(const struct program *p, const struct buffer_desc *buffer,
                                void *last, int bytes, int32_t *room, tick_visit *visit,
                                size_t place)
{
    assert(buffer->period <= 1 || place == (size_t)buffer->ring_first);
    for (int instance = 0; buffer->period > 1 && instance < buffer->period; instance++)
        for (int k = 0; k < buffer->record_count; k++, place++)
            if (tick_at(last, place, bytes))
                visit(last, place, bytes,
                      room + p->at.column_ticks[column_of_record(p, buffer->record_first + k)]);
    return place;
}

/* All ticks of accesses but 0. */
MADE_FOR_SIZE void visit_last(const struct program *p, int32_t *c, int bytes, int32_t *room,
                              tick_visit *visit)
{
    void *last = last_ticks(p, c);
    size_t place = 0;
    for (int i = 0; i < p->shared_records; i++, place++)
        if (tick_at(last, place, bytes))
            visit(last, place, bytes, room + p->at.column_ticks[column_of_record(p, i)]);
    for (int b = 0; p->ring_records && b < p->buffer_count; b++)
        place = visit_ring(p, &p->buffers[b], last, bytes, room, visit, place);
    for (int instance = 0; instance < p->window && p->period_records; instance++)
        for (int i = p->shared_records; i < p->record_count; i++, place++)
            if (tick_at(last, place, bytes))
                visit(last, place, bytes, room + p->at.column_ticks[column_of_record(p, i)]);
}

/* All ticks of rows but 0. */
MADE_FOR_SIZE void visit_rows(const struct program *p, int32_t *c, int bytes, int32_t *room,
                              tick_visit *visit)
{
    const size_t width = (size_t)p->at.row_words, in_word = sizeof(uint64_t) / (size_t)bytes;
    const size_t count = (size_t)p->at.rows * width;
    uint64_t *words = row(p, c, 0);
    for (size_t at = 0; (at = next_used_word(words, at, count)) < count; at++) {
        const int *first = p->at.column_ticks + at % width * in_word;
        for (size_t i = 0; i < in_word; i++)
            if (tick_at(words + at, i, bytes))
                visit(words + at, i, bytes, room + first[i]);
    }
}

/* In the room of a column, whose agent has made `now` accesses: the new ticks instead. True if one is another one. */
static bool number_ticks(int32_t *room, int now)
{
    int sets = 0;
    bool grows = false, changes = false;
    for (int tick = 1; tick <= now; tick++) {
        bool known = room[tick] & IS_KNOWN;
        grows |= room[tick] & IS_LIVE;
        room[tick] = sets + grows;
        changes |= room[tick] != tick;
        if (known && grows) {
            sets++;
            grows = false;
        }
    }
    assert(!grows); /* its own row knows them all */
    return changes;
}

MADE_FOR_SIZE void renumber_ticks(const struct program *p, int32_t *c, int bytes)
{
    const struct layout *at = &p->at;
    int32_t *room = (int32_t *)(void *)((char *)c + at->room_at);
    bool changes = false;
    visit_last(p, c, bytes, room, note_live);
    visit_rows(p, c, bytes, room, note_known);
    for (int column = 0; column < at->columns; column++)
        changes |= number_ticks(room + at->column_ticks[column],
                                tick_at(row(p, c, at->column_row[column]), (size_t)column, bytes));
    if (changes) {
        visit_last(p, c, bytes, room, take_new);
        visit_rows(p, c, bytes, room, take_new);
    }
    memset(room, 0, (size_t)at->column_ticks[at->columns] * sizeof *room);
}

void hb_renumber(const struct program *p, int32_t *c)
{
    if (!c[p->at.loose])
        return;
    c[p->at.loose] = 0;
#define RENUMBER(bytes) renumber_ticks(p, c, bytes)
    FOR_SIZE_OF_TICKS(p, RENUMBER)
#undef RENUMBER
}

/* ---- accesses -------------------------------------------------------------------------------- */

/* The next tick of an agent, which its own row knows. */
static int32_t next_tick(struct work_state *w, int column, int self)
{
    const struct layout *at = &w->p->at;
    assert(self == at->column_row[column]);
    if (row_tick(w, self, column) + 1 == at->column_ticks[column + 1] - at->column_ticks[column])
        hb_renumber(w->p, w->c);
    int32_t now = row_tick(w, self, column) + 1;
    put_row_tick(w, self, column, now);
    w->c[at->loose] = 1;
    return now;
}

/* The first of a buffer's instance in `last`. */
static int first_of(const struct program *p, const struct buffer_desc *buffer, int64_t iteration)
{
    if (buffer->period > 1)
        return buffer->ring_first + (int)(iteration % buffer->period) * buffer->record_count;
    if (buffer->record_first < p->shared_records)
        return buffer->record_first;
    return p->ring_records + buffer->record_first +
           (int)(iteration % p->window) * p->period_records;
}

/* True if an access at this tick, which a row knows up to `known`, is live and known (is_known), or live and not
   known. */
static bool is_known(int32_t tick, int32_t known)
{
    return tick > 0 && tick <= known;
}

static bool is_unknown(int32_t tick, int32_t known)
{
    return tick > known;
}

static void report_race(struct work_state *w, int buffer, const struct record *other)
{
    if (w->e->violated & (1u << PROPERTY_RACE))
        return;
    w->e->violated |= 1u << PROPERTY_RACE;
    w->e->race = (struct other_access){
        .buffer = buffer, .agent = other->agent, .write = other->write, .op = -1};
}

/* An access to a buffer that the plan allocates comes after the allocation took effect, or it may meet the
   last accesses of the memory's former owner. */
static void check_allocation(struct work_state *w, int buffer, const struct record *allocation,
                             bool known)
{
    if (known || w->e->violated & (1u << PROPERTY_LIFETIME))
        return;
    w->e->violated |= 1u << PROPERTY_LIFETIME;
    w->e->lifetime = (struct other_access){
        .buffer = buffer, .agent = allocation->agent, .early = true, .op = -1};
}

/* A read of a buffer instance that no write has been made to. */
static void report_unwritten(struct work_state *w, int buffer)
{
    if (w->e->violated & (1u << PROPERTY_VALUE))
        return;
    w->e->violated |= 1u << PROPERTY_VALUE;
    w->e->unwritten = buffer;
}

static void access_once(struct work_state *w, const struct access *access, int64_t iteration,
                        int self, int agent)
{
    const struct program *p = w->p;
    const struct buffer_desc *buffer = &p->buffers[access->buffer];
    const struct record *records = p->records + buffer->record_first;
    int base = first_of(p, buffer, iteration), own = -1;
    bool written = access->write || buffer->initialised; /* the last write is live */
    for (int k = 0; k < buffer->record_count; k++) {
        const struct record *record = &records[k];
        int32_t last = last_tick(w, base + k);
        int32_t knows = row_tick(w, self, p->at.column[record->agent]);
        if (record->kind == RECORD_ALLOCATED)
            check_allocation(w, access->buffer, record, is_known(last, knows));
        if (record->kind != RECORD_ACCESS)
            continue;
        if (record->agent == agent && record->write == access->write)
            own = k;
        if (!last || !(record->write || access->write))
            continue;
        written |= record->write;
        if (is_unknown(last, knows))
            report_race(w, access->buffer, record); /* the other access stays live: either order
                                                       leads to the same state */
        else if (access->write)
            put_last_tick(w, base + k,
                          0); /* an access ordered after this write is ordered after that one */
    }
    assert(own >= 0);
    if (!written)
        report_unwritten(w, access->buffer);
    put_last_tick(w, base + own, 0);
    put_last_tick(w, base + own, next_tick(w, p->at.column[agent], self));
}

/* The access in a run with clocks. */
static void access_tick(struct work_state *w, const struct access *access, int self, int agent)
{
    const struct program *p = w->p;
    const struct buffer_desc *buffer = &p->buffers[access->buffer];
    int record = -1;
    for (int i = buffer->record_first; i < buffer->record_first + buffer->record_count; i++) {
        const struct record *now = &p->records[i];
        if (now->kind == RECORD_ALLOCATED)
            check_allocation(w, access->buffer, now, clocks_knows(w->clocks, i, self));
        else if (now->kind == RECORD_ACCESS && now->agent == agent && now->write == access->write)
            record = i;
    }
    assert(record >= 0);
    if (!access->write && !buffer->initialised && !clocks_written(w->clocks, buffer))
        report_unwritten(w, access->buffer);
    int unknown = clocks_access(w->clocks, buffer, record, self);
    if (unknown >= 0)
        report_race(w, access->buffer, &p->records[unknown]);
}

void hb_access(struct work_state *w, const struct op *op, int64_t iteration, int self, int agent)
{
    if (!hb_is_kept(w))
        return;
    if (w->p->tasks == 0 && op->iteration >= 0)
        iteration = op->iteration;       /* of its repeat */
    for (int pass = 0; pass < 2; pass++) /* an operation reads before it writes */
        for (int k = 0; k < op->access_count; k++) {
            const struct access *access = &w->p->accesses[op->access_first + k];
            if (access->write != (pass == 1))
                continue;
            if (w->clocks)
                access_tick(w, access, self, agent);
            else
                access_once(w, access, iteration, self, agent);
        }
}

void hb_allocated(struct work_state *w, int buffer, enum knowledge_of kind, int self)
{
    const struct program *p = w->p;
    const struct buffer_desc *desc = &p->buffers[buffer];
    assert(kind != RECORD_ACCESS);
    for (int k = 0; hb_is_kept(w) && k < desc->record_count; k++) {
        int record = desc->record_first + k;
        if (p->records[record].kind != kind)
            continue;
        if (w->clocks)
            clocks_allocate(w->clocks, record, self);
        else
            put_last_tick(w, record, next_tick(w, column_of_record(p, record), self));
    }
}

bool hb_knows_call(struct work_state *w, int buffer, int self)
{
    const struct program *p = w->p;
    const struct buffer_desc *desc = &p->buffers[buffer];
    for (int i = desc->record_first; i < desc->record_first + desc->record_count; i++)
        if (hb_is_kept(w) && p->records[i].kind == RECORD_CALLED)
            return w->clocks ? clocks_knows(w->clocks, i, self)
                             : is_known(last_tick(w, i), row_tick(w, self, column_of_record(p, i)));
    return true;
}

void hb_forget_iteration(struct work_state *w, int rank, int64_t iteration)
{
    const struct program *p = w->p;
    int count = p->period_records ? (int)p->plan->buffer_count : 0, first = rank * count;
    for (int b = first; p->at.row_words && b < first + count; b++) {
        const struct buffer_desc *buffer = &p->buffers[b];
        assert(buffer->rank == rank);
        if (buffer->record_first < p->shared_records)
            continue;
        w->c[p->at.loose] = 1;
        for (int k = 0; k < buffer->record_count; k++)
            put_last_tick(w, first_of(p, buffer, iteration) + k, 0);
    }
}

bool hb_unknown_access(struct work_state *w, int buffer, int self, int agent, int *other)
{
    const struct program *p = w->p;
    const struct buffer_desc *desc = &p->buffers[buffer];
    for (int i = desc->record_first; i < desc->record_first + desc->record_count; i++) {
        const struct record *record = &p->records[i];
        if (record->kind != RECORD_ACCESS || record->agent == agent ||
            machine_is_recorded(p, w->c, buffer, record->agent))
            continue;
        bool unknown = w->clocks
                           ? clocks_is_made(w->clocks, i) && !clocks_knows(w->clocks, i, self)
                           : is_unknown(last_tick(w, i), row_tick(w, self, column_of_record(p, i)));
        if (!unknown)
            continue;
        *other = record->agent;
        return true;
    }
    return false;
}
