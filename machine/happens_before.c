/* SPDX-License-Identifier: Apache-2.0 */
/* happens_before.c - see happens_before.h. */
#include "happens_before.h"

#include <string.h>

#include "clocks.h"

static inline size_t row_bytes(const struct work_state *w)
{
    return (size_t)w->p->at.row_words * sizeof(uint64_t);
}

void hb_join(struct work_state *w, int to, int from)
{
    if (w->clocks) {
        clocks_join(w->clocks, to, from);
        return;
    }
    uint64_t *a = row(w->p, w->c, to);
    const uint64_t *b = row(w->p, w->c, from);
    for (int i = 0; i < w->p->at.row_words; i++)
        a[i] |= b[i];
}

void hb_copy(struct work_state *w, int to, int from)
{
    if (w->clocks)
        clocks_copy(w->clocks, to, from);
    else if (w->p->at.row_words)
        memcpy(row(w->p, w->c, to), row(w->p, w->c, from), row_bytes(w));
}

void hb_clear(struct work_state *w, int index)
{
    if (w->clocks)
        clocks_clear(w->clocks, index);
    else if (w->p->at.row_words)
        memset(row(w->p, w->c, index), 0, row_bytes(w));
}

void hb_shift(struct work_state *w, int first, int count)
{
    if (w->clocks)
        clocks_shift(w->clocks, first, count);
    if (!w->p->at.row_words || count == 0)
        return;
    memmove(row(w->p, w->c, first), row(w->p, w->c, first + 1), (size_t)(count - 1) * row_bytes(w));
    hb_clear(w, first + count - 1);
}

static inline bool test(const uint64_t *bits, int bit)
{
    return bits[bit / 64] >> (bit % 64) & 1;
}

static inline void happens_before_set(uint64_t *bits, int bit)
{
    bits[bit / 64] |= UINT64_C(1) << (bit % 64);
}

/* The first bit of a buffer's instance. */
static int first_bit(const struct program *p, const struct buffer_desc *buffer, int64_t iteration)
{
    if (buffer->record_first < p->shared_records)
        return buffer->record_first;
    return buffer->record_first + (int)(iteration % p->window) * p->period_records;
}

/* Clear a dead access in every row, so that equal knowledge is equal memory. The marks of buffers (the
   last rows) are no knowledge and stay. */
static void happens_before_forget(struct work_state *w, int bit)
{
    const struct layout *at = &w->p->at;
    uint64_t *bits = row(w->p, w->c, 0) + bit / 64;
    uint64_t mask = ~(UINT64_C(1) << (bit % 64));
    for (int r = 0; r < at->row_marked; r++)
        bits[(ptrdiff_t)r * at->row_words] &= mask;
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
    int base = first_bit(p, buffer, iteration);
    uint64_t *live = row(p, w->c, p->at.row_live), *known = row(p, w->c, self);
    int own = -1;
    bool written = access->write || buffer->initialised; /* the last write is live */
    for (int k = 0; k < buffer->record_count; k++) {
        const struct record *record = &p->records[buffer->record_first + k];
        int bit = base + k;
        if (record->alloc) {
            check_allocation(w, access->buffer, record, test(live, bit) && test(known, bit));
            continue;
        }
        if (record->agent == agent && record->write == access->write)
            own = bit;
        if (!test(live, bit) || !(record->write || access->write))
            continue;
        written |= record->write;
        if (!test(known, bit))
            report_race(w, access->buffer, record); /* the other access stays live: either order
                                                       leads to the same state */
        else if (access->write)
            happens_before_forget(
                w, bit); /* an access ordered after this write is ordered after that one */
    }
    assert(own >= 0);
    if (!written)
        report_unwritten(w, access->buffer);
    happens_before_forget(w, own);
    happens_before_set(live, own);
    happens_before_set(known, own);
}

/* The access in a run with clocks. */
static void access_tick(struct work_state *w, const struct access *access, int self, int agent)
{
    const struct program *p = w->p;
    const struct buffer_desc *buffer = &p->buffers[access->buffer];
    int record = -1;
    for (int i = buffer->record_first; i < buffer->record_first + buffer->record_count; i++) {
        const struct record *now = &p->records[i];
        if (now->alloc)
            check_allocation(w, access->buffer, now, clocks_knows(w->clocks, i, self));
        else if (now->agent == agent && now->write == access->write)
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

void hb_allocated(struct work_state *w, int buffer, int self)
{
    const struct program *p = w->p;
    const struct buffer_desc *desc = &p->buffers[buffer];
    for (int k = 0; hb_is_kept(w) && k < desc->record_count; k++) {
        int bit = desc->record_first + k;
        if (!p->records[bit].alloc)
            continue;
        if (w->clocks) {
            clocks_allocate(w->clocks, bit, self);
            continue;
        }
        happens_before_set(row(p, w->c, p->at.row_live), bit);
        happens_before_set(row(p, w->c, self), bit);
    }
}

void hb_forget_iteration(struct work_state *w, int rank, int64_t iteration)
{
    const struct program *p = w->p;
    if (!p->at.row_words || !p->period_records)
        return;
    for (int b = 0; b < p->buffer_count; b++) {
        const struct buffer_desc *buffer = &p->buffers[b];
        if (buffer->rank != rank || buffer->record_first < p->shared_records)
            continue;
        int base = first_bit(p, buffer, iteration);
        for (int k = 0; k < buffer->record_count; k++)
            if (test(row(p, w->c, p->at.row_live), base + k))
                happens_before_forget(w, base + k);
    }
}

bool hb_unknown_access(struct work_state *w, int buffer, int self, int except, int agent,
                       int *other)
{
    const struct program *p = w->p;
    const struct buffer_desc *desc = &p->buffers[buffer];
    if (w->clocks) {
        int unknown = clocks_unknown(w->clocks, desc, self, except, agent);
        *other = unknown >= 0 ? p->records[unknown].agent : *other;
        return unknown >= 0;
    }
    for (int k = 0; k < desc->record_count; k++) {
        int bit = desc->record_first + k;
        if (!p->records[bit].alloc && test(row(p, w->c, p->at.row_live), bit) &&
            !test(row(p, w->c, self), bit) && !test(row(p, w->c, except), bit) &&
            p->records[bit].agent != agent) {
            *other = p->records[bit].agent;
            return true;
        }
    }
    return false;
}

void hb_mark(struct work_state *w, int index, int buffer, int agent)
{
    const struct buffer_desc *desc = &w->p->buffers[buffer];
    if (w->clocks) {
        clocks_mark(w->clocks, index, agent);
        return;
    }
    for (int k = 0; k < desc->record_count; k++)
        if (w->p->records[desc->record_first + k].agent == agent)
            happens_before_set(row(w->p, w->c, index), desc->record_first + k);
}

bool hb_is_marked(struct work_state *w, int index, int buffer, int agent)
{
    const struct buffer_desc *desc = &w->p->buffers[buffer];
    if (w->clocks)
        return clocks_is_marked(w->clocks, index, agent);
    for (int k = 0; k < desc->record_count; k++)
        if (w->p->records[desc->record_first + k].agent == agent &&
            test(row(w->p, w->c, index), desc->record_first + k))
            return true;
    return false;
}
