/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clocks.c - see clocks.h.
 *
 * Rows that know the same share a clock. Clocks are numbers into one block of memory, from 1; 0: nothing is known. There
 * are millions of rows.
 */
#include "clocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/large_pages.h"

struct clock {
    union {
        int holders;
        uint32_t next; /* of those unused; 0: none */
    };
    int rank;         /* where only a rank's own accesses are known: that rank */
    uint32_t ticks[]; /* per column */
};

/* A record that waits are bound to. */
struct expected {
    uint32_t waits;
    uint32_t known; /* a clock */
};

struct clocks {
    const struct program *program;
    int columns, *column; /* per agent: its column, -1: it makes no access */
    int *taken;           /* per rank: columns so far, while they are numbered */
    int row_count, expected_count;
    uint32_t *rows;      /* clocks */
    uint32_t *last;      /* per record: the tick of its last access, 0: none */
    uint32_t *now;       /* per agent: its ticks so far */
    int *first_expected; /* per stream, in `expected`: a place for each of its pushes */
    struct expected *expected;
    char *pool; /* the clocks, number 0 unused */
    size_t pool_bytes;
    uint32_t made, unused; /* numbers so far; the first of those given back */
    bool own_rank;         /* see clocks_limit */
    bool failed;
};

/* ---- rows that are kept once ----------------------------------------------------------------- */

static size_t clock_bytes(const struct clocks *clocks)
{
    return sizeof(struct clock) + (size_t)clocks->columns * sizeof(uint32_t);
}

/* Valid until another one is made. */
static struct clock *clock_at(const struct clocks *clocks, uint32_t number)
{
    return (void *)(clocks->pool + (size_t)number * clock_bytes(clocks));
}

static void clocks_drop(struct clocks *clocks, uint32_t *place)
{
    struct clock *clock = clock_at(clocks, *place);
    if (*place && --clock->holders == 0) {
        clock->next = clocks->unused;
        clocks->unused = *place;
    }
    *place = 0;
}

static void clocks_share(struct clocks *clocks, uint32_t *place, uint32_t number)
{
    if (number)
        clock_at(clocks, number)->holders++;
    clocks_drop(clocks, place);
    *place = number;
}

/* Room for one more clock at the end of the pool. */
static bool grow_pool(struct clocks *clocks)
{
    size_t needed = ((size_t)clocks->made + 2) * clock_bytes(clocks);
    if (needed <= clocks->pool_bytes)
        return true;
    char *grown = clocks->made < UINT32_MAX - 2 ? realloc(clocks->pool, 2 * needed) : NULL;
    if (!grown)
        return false;
    clocks->pool = grown;
    clocks->pool_bytes = 2 * needed;
    return true;
}

/* A number for a clock of undefined contents with one holder; 0: memory is exhausted. */
static uint32_t make_clock(struct clocks *clocks)
{
    uint32_t number = clocks->unused;
    if (number) {
        clocks->unused = clock_at(clocks, number)->next;
    } else if (grow_pool(clocks)) {
        number = ++clocks->made;
    } else {
        clocks->failed = true;
        return 0;
    }
    clock_at(clocks, number)->holders = 1;
    return number;
}

/* The clock at `place`, held by no other, for accesses of `rank`; NULL: memory is exhausted. */
static struct clock *clocks_own(struct clocks *clocks, uint32_t *place, int rank)
{
    if (*place && clock_at(clocks, *place)->holders == 1)
        return clock_at(clocks, *place);
    uint32_t number = make_clock(clocks);
    if (!number)
        return NULL;
    const size_t ticks = (size_t)clocks->columns * sizeof(uint32_t);
    struct clock *clock = clock_at(clocks, number);
    clock->rank = rank;
    if (*place)
        memcpy(clock->ticks, clock_at(clocks, *place)->ticks, ticks);
    else
        memset(clock->ticks, 0, ticks);
    clocks_drop(clocks, place);
    *place = number;
    return clock;
}

static bool knows_all(const struct clocks *clocks, uint32_t number, uint32_t other)
{
    const uint32_t *ticks = clock_at(clocks, number)->ticks;
    const uint32_t *others = clock_at(clocks, other)->ticks;
    for (int i = 0; i < clocks->columns; i++)
        if (ticks[i] < others[i])
            return false;
    return true;
}

/* The rank whose thread or stream has the row; -1: neither has it. */
static int clocks_rank_of_row(const struct clocks *clocks, int row)
{
    const struct program *p = clocks->program;
    if (row >= p->at.row_threads && row < p->at.row_threads + p->thread_count)
        return p->threads[row - p->at.row_threads].rank;
    if (row >= p->at.row_streams && row < p->at.row_streams + p->stream_count)
        return p->streams[row - p->at.row_streams].rank;
    return -1;
}

/* True if the clock is of no use in this row: it knows of accesses of another rank than the row's. */
static bool is_foreign(const struct clocks *clocks, int row, uint32_t number)
{
    if (!clocks->own_rank || !number)
        return false;
    int rank = clocks_rank_of_row(clocks, row);
    if (rank < 0 && clocks->rows[row])
        rank = clock_at(clocks, clocks->rows[row])->rank;
    return rank >= 0 && clock_at(clocks, number)->rank != rank;
}

static void clocks_learn(struct clocks *clocks, uint32_t *place, uint32_t from)
{
    if (!from || *place == from || (*place && knows_all(clocks, *place, from)))
        return;
    if (!*place || knows_all(clocks, from, *place)) {
        clocks_share(clocks, place, from);
        return;
    }
    struct clock *clock = clocks_own(clocks, place, clock_at(clocks, from)->rank);
    const struct clock *other = clock_at(clocks, from);
    for (int i = 0; clock && i < clocks->columns; i++)
        if (clock->ticks[i] < other->ticks[i])
            clock->ticks[i] = other->ticks[i];
}

void clocks_join(struct clocks *clocks, int to, int from)
{
    if (!is_foreign(clocks, to, clocks->rows[from]))
        clocks_learn(clocks, &clocks->rows[to], clocks->rows[from]);
}

void clocks_copy(struct clocks *clocks, int to, int from)
{
    bool apart = clocks->own_rank && clocks_rank_of_row(clocks, to) >= 0 &&
                 clocks_rank_of_row(clocks, from) != clocks_rank_of_row(clocks, to);
    if (to != from && !apart)
        clocks_share(clocks, &clocks->rows[to], clocks->rows[from]);
}

void clocks_clear(struct clocks *clocks, int row)
{
    clocks_drop(clocks, &clocks->rows[row]);
}

void clocks_shift(struct clocks *clocks, int first, int count)
{
    if (count == 0)
        return;
    clocks_drop(clocks, &clocks->rows[first]);
    memmove(&clocks->rows[first], &clocks->rows[first + 1],
            (size_t)(count - 1) * sizeof *clocks->rows);
    clocks->rows[first + count - 1] = 0;
}

/* ---- accesses -------------------------------------------------------------------------------- */

/* Number `record` happens once more. */
static void tick(struct clocks *clocks, int record, int self)
{
    int agent = clocks->program->records[record].agent, column = clocks->column[agent];
    struct clock *clock =
        clocks_own(clocks, &clocks->rows[self], clocks->program->agents[agent].rank);
    clocks->last[record] = ++clocks->now[agent];
    if (clock)
        clock->ticks[column] = clocks->now[agent];
}

int clocks_access(struct clocks *clocks, const struct buffer_desc *buffer, int record, int self)
{
    const struct record *records = clocks->program->records, *access = &records[record];
    const struct clock *known = clocks->rows[self] ? clock_at(clocks, clocks->rows[self]) : NULL;
    int unknown = -1;
    for (int i = buffer->record_first; i < buffer->record_first + buffer->record_count; i++) {
        if (clocks->last[i] == 0 || records[i].kind != RECORD_ACCESS ||
            !(records[i].write || access->write))
            continue;
        uint32_t tick = known ? known->ticks[clocks->column[records[i].agent]] : 0;
        if (unknown < 0 && clocks->last[i] > tick)
            unknown = i;
    }
    tick(clocks, record, self);
    return unknown;
}

bool clocks_written(const struct clocks *clocks, const struct buffer_desc *buffer)
{
    for (int i = buffer->record_first; i < buffer->record_first + buffer->record_count; i++)
        if (clocks->program->records[i].write && clocks->last[i] > 0)
            return true;
    return false;
}

/* ---- memory ---------------------------------------------------------------------------------- */

void clocks_allocate(struct clocks *clocks, int record, int self)
{
    tick(clocks, record, self);
}

static uint32_t ticks_of(const struct clocks *clocks, int row, int agent)
{
    int column = clocks->column[agent];
    uint32_t number = clocks->rows[row];
    return number && column >= 0 ? clock_at(clocks, number)->ticks[column] : 0;
}

bool clocks_knows(const struct clocks *clocks, int record, int self)
{
    uint32_t last = clocks->last[record];
    return last > 0 && last <= ticks_of(clocks, self, clocks->program->records[record].agent);
}

bool clocks_is_made(const struct clocks *clocks, int record)
{
    return clocks->last[record] > 0;
}

/* ---- events ---------------------------------------------------------------------------------- */

static struct expected *find_expected(struct clocks *clocks, int stream, int position)
{
    return &clocks->expected[clocks->first_expected[stream] + position];
}

void clocks_expect(struct clocks *clocks, int stream, int position)
{
    find_expected(clocks, stream, position)->waits++;
}

void clocks_reach(struct clocks *clocks, int stream, int position, int self)
{
    struct expected *expected = find_expected(clocks, stream, position);
    if (expected->waits > 0)
        clocks_share(clocks, &expected->known, clocks->rows[self]);
}

void clocks_receive(struct clocks *clocks, int stream, int position, int self)
{
    struct expected *expected = find_expected(clocks, stream, position);
    clocks_learn(clocks, &clocks->rows[self], expected->known);
    if (--expected->waits == 0)
        clocks_drop(clocks, &expected->known);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* The agents of all ranks, or of each one, from 0. */
static void number_columns(struct clocks *clocks)
{
    const struct program *p = clocks->program;
    clocks->columns = 0;
    memset(clocks->taken, 0, (size_t)p->ranks * sizeof *clocks->taken);
    for (int agent = 0; agent < p->agent_count; agent++)
        clocks->column[agent] = -1;
    for (int i = 0; i < p->record_count; i++) {
        int agent = p->records[i].agent;
        int *taken = &clocks->taken[clocks->own_rank ? p->agents[agent].rank : 0];
        if (clocks->column[agent] >= 0)
            continue;
        clocks->column[agent] = (*taken)++;
        if (*taken > clocks->columns)
            clocks->columns = *taken;
    }
}

void clocks_limit(struct clocks *clocks, bool own_rank)
{
    clocks->own_rank = own_rank && !clocks->program->is_crossed;
    number_columns(clocks);
}

/* Every operation is executed once at most. */
static void clocks_count_pushes(struct clocks *clocks)
{
    const struct program *p = clocks->program;
    int *first = clocks->first_expected;
    for (size_t i = 0; i < p->op_count; i++)
        if (op_pushes(p->ops[i].kind))
            first[p->ops[i].stream + 1]++;
    for (int s = 0; s < p->stream_count; s++)
        first[s + 1] += first[s];
    clocks->expected_count = first[p->stream_count];
}

struct clocks *clocks_open(const struct program *program)
{
    struct clocks *clocks = calloc(1, sizeof *clocks);
    if (!clocks)
        return NULL;
    clocks->program = program;
    clocks->row_count = program->at.rows;
    clocks->column = calloc((size_t)program->agent_count, sizeof *clocks->column);
    clocks->taken = calloc((size_t)program->ranks + 1, sizeof *clocks->taken);
    clocks->rows = large_calloc((size_t)program->at.rows + 1, sizeof *clocks->rows);
    clocks->last = large_calloc((size_t)program->record_count + 1, sizeof *clocks->last);
    clocks->now = calloc((size_t)program->agent_count, sizeof *clocks->now);
    clocks->first_expected =
        calloc((size_t)program->stream_count + 1, sizeof *clocks->first_expected);
    if (clocks->column && clocks->taken && clocks->first_expected) {
        number_columns(clocks);
        clocks_count_pushes(clocks);
        clocks->expected =
            large_calloc((size_t)clocks->expected_count + 1, sizeof *clocks->expected);
    }
    if (clocks->expected && clocks->rows && clocks->last && clocks->now)
        return clocks;
    clocks_close(clocks);
    return NULL;
}

void clocks_reset(struct clocks *clocks)
{
    const struct program *p = clocks->program;
    memset(clocks->rows, 0, (size_t)clocks->row_count * sizeof *clocks->rows);
    memset(clocks->expected, 0, (size_t)clocks->expected_count * sizeof *clocks->expected);
    memset(clocks->last, 0, (size_t)p->record_count * sizeof *clocks->last);
    memset(clocks->now, 0, (size_t)p->agent_count * sizeof *clocks->now);
    clocks->made = clocks->unused = 0;
}

void clocks_close(struct clocks *clocks)
{
    if (!clocks)
        return;
    free(clocks->column);
    free(clocks->taken);
    free(clocks->rows);
    free(clocks->last);
    free(clocks->now);
    free(clocks->first_expected);
    free(clocks->expected);
    free(clocks->pool);
    free(clocks);
}

bool clocks_failed(const struct clocks *clocks)
{
    return clocks->failed;
}
