/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_delivery.c - see host_delivery.h.
 */
#include "host_delivery.h"

#include <string.h>

static const char *sent_by(const struct delivery *all, int place)
{
    return place == all->taker ? all->own_sent : all->sent[place];
}

static char *received_by(const struct delivery *all, int place)
{
    return place == all->taker ? all->own_received : all->received[place];
}

/* Sums of f32, of two members in a pass: half as many passes over the sums. */
static void add_up_singles(const struct delivery *all, size_t offset, size_t count, float *sums)
{
    const float *x[2];
    int from = 0;
    if (all->count == 1)
        memset(sums, 0, count * sizeof *sums);
    while (from < all->count) {
        const int first = from, pair = from + 1 < all->count ? 2 : 1;
        for (int i = 0; i < pair; i++)
            x[i] = (const float *)(const void *)(sent_by(all, from++) + offset);
        if (pair == 1)
            host_add(sums, x[0], count);
        else if (first == 0)
            host_sum_two(sums, x[0], x[1], count);
        else
            host_add_two(sums, x[0], x[1], count);
    }
}

/* The sums over all members of `count` numbers at `offset`, in order of place: the same on every
 * run. */
static void host_delivery_add_up(const struct delivery *all, size_t offset, size_t count,
                                 union number_sums *sums)
{
    if (all->number == NUMBER_F32) {
        add_up_singles(all, offset, count, sums->real);
        return;
    }
    memset(sums, 0, sizeof *sums);
    for (int from = 0; from < all->count; from++)
        number_add(all->number, sums, sent_by(all, from) + offset, count);
}

/* Sums of bytes [begin, end) of what was sent, to `first` .. `last` members, at the same place less
   `shift`. In place is safe: a piece is read from all before it is written to any. */
static void host_delivery_reduce(const struct delivery *all, size_t begin, size_t end, int first,
                                 int last, size_t shift)
{
    union number_sums sums;
    size_t size = (size_t)number_bytes(all->number), most = NUMBER_SUMS * size;
    for (size_t at = begin; at < end; at += most) {
        size_t bytes = end - at < most ? end - at : most;
        host_delivery_add_up(all, at, bytes / size, &sums);
        for (int to = first; to <= last; to++)
            number_store(all->number, &sums, received_by(all, to) + (at - shift), bytes / size);
    }
}

/* Of so many bytes, which move together. */
static size_t pieces_of(size_t bytes)
{
    return (bytes + DELIVERY_PIECE - 1) / DELIVERY_PIECE;
}

/* Bytes that lie together: the block from one member for another one, or all. */
static size_t stretch_bytes(const struct delivery *all)
{
    bool blocks = all->kind == COLLECTIVE_ALL_TO_ALL || all->kind == COLLECTIVE_ALL_GATHER;
    return all->bytes / (blocks ? (size_t)all->count : 1);
}

size_t delivery_pieces(const struct delivery *all)
{
    const size_t count = (size_t)all->count, pieces = pieces_of(stretch_bytes(all));
    if (all->bytes == 0)
        return 0;
    switch (all->kind) {
    case COLLECTIVE_ALL_TO_ALL:
    case COLLECTIVE_ALL_GATHER: return count * count * pieces;
    case COLLECTIVE_BROADCAST: return count * pieces;
    case COLLECTIVE_ALL_REDUCE: return pieces;
    case COLLECTIVE_REDUCE_SCATTER: return count; /* blocks */
    case COLLECTIVE_BARRIER: break;
    }
    return 0;
}

/* A block from one member to another; one that a member has kept is where it belongs. */
static void move_block(const struct delivery *all, int from, int to, size_t at, size_t bytes)
{
    const size_t block = all->bytes / (size_t)all->count;
    if (from != to || !all->kept[from])
        host_comm_move_bytes(received_by(all, to) + (size_t)from * block + at,
                             sent_by(all, from) + (size_t)to * block + at, bytes);
}

static void deliver_piece(const struct delivery *all, size_t piece)
{
    const size_t stretch = stretch_bytes(all), pieces = pieces_of(stretch);
    const size_t block = all->bytes / (size_t)all->count;
    const size_t at = piece % pieces * DELIVERY_PIECE, pair = piece / pieces;
    const size_t bytes = stretch - at < DELIVERY_PIECE ? stretch - at : DELIVERY_PIECE;
    int to = (int)(pair / (size_t)all->count), from = (int)(pair % (size_t)all->count);
    switch (all->kind) {
    case COLLECTIVE_ALL_TO_ALL: move_block(all, from, to, at, bytes); break;
    case COLLECTIVE_ALL_GATHER:
        host_comm_move_bytes(all->received[to] + (size_t)from * block + at, all->sent[from] + at,
                             bytes);
        break;
    case COLLECTIVE_BROADCAST:
        host_comm_move_bytes(all->received[pair] + at, all->sent[all->root] + at, bytes);
        break;
    case COLLECTIVE_ALL_REDUCE:
        host_delivery_reduce(all, at, at + bytes, 0, all->count - 1, 0);
        break;
    case COLLECTIVE_REDUCE_SCATTER:
        to = (int)piece;
        host_delivery_reduce(all, piece * block, (piece + 1) * block, to, to, piece * block);
        break;
    case COLLECTIVE_BARRIER: break;
    }
}

bool delivery_goes_on(const struct piecework *work)
{
    return atomic_load_explicit(&work->next, memory_order_relaxed) < work->count;
}

void delivery_move_pieces(struct piecework *work)
{
    size_t piece;
    while ((piece = atomic_fetch_add_explicit(&work->next, 1, memory_order_relaxed)) < work->count)
        deliver_piece(work->all, piece);
}

size_t delivery_given(const struct delivery *all, int place)
{
    size_t bytes = all->bytes, block = bytes / (size_t)all->count;
    switch (all->kind) {
    case COLLECTIVE_ALL_TO_ALL:
    case COLLECTIVE_REDUCE_SCATTER: return block * (size_t)all->count;
    case COLLECTIVE_ALL_GATHER: return block;
    case COLLECTIVE_ALL_REDUCE: return bytes;
    case COLLECTIVE_BROADCAST: return place == all->root ? bytes : 0;
    case COLLECTIVE_BARRIER: break;
    }
    return 0;
}

size_t delivery_got(const struct delivery *all)
{
    size_t bytes = all->bytes, block = bytes / (size_t)all->count;
    switch (all->kind) {
    case COLLECTIVE_ALL_TO_ALL:
    case COLLECTIVE_ALL_GATHER: return block * (size_t)all->count;
    case COLLECTIVE_REDUCE_SCATTER: return block;
    case COLLECTIVE_ALL_REDUCE:
    case COLLECTIVE_BROADCAST: return bytes;
    case COLLECTIVE_BARRIER: break;
    }
    return 0;
}

struct host_delivery_interval delivery_share(size_t bytes, int members, int place)
{
    enum { LINE = 64 }; /* bytes of a cache line, which one member writes */
    const size_t lines = (bytes + LINE - 1) / LINE, count = (size_t)members;
    const size_t share = (lines + count - 1) / count * LINE, begin = (size_t)place * share;
    if (begin >= bytes)
        return (struct host_delivery_interval){bytes, bytes};
    return (struct host_delivery_interval){begin, begin + share < bytes ? begin + share : bytes};
}

/* Of sums that all get, one member's share, for all of them: no other one reads or writes these bytes. */
static void delivery_add_share(const struct delivery *all, int place)
{
    const struct host_delivery_interval share = delivery_share(all->bytes, all->count, place);
    if (share.begin < share.end)
        host_delivery_reduce(all, share.begin, share.end, 0, all->count - 1, 0);
}

void delivery_take(const struct delivery *all, int to)
{
    const size_t block = all->bytes / (size_t)all->count, mine = (size_t)to * block;
    char *out = received_by(all, to);
    switch (all->kind) {
    case COLLECTIVE_ALL_TO_ALL:
        for (int from = 0; from < all->count; from++)
            move_block(all, from, to, 0, block);
        break;
    case COLLECTIVE_ALL_GATHER:
        for (int from = 0; from < all->count; from++)
            host_comm_move_bytes(out + (size_t)from * block, sent_by(all, from), block);
        break;
    case COLLECTIVE_BROADCAST:
        host_comm_move_bytes(out, sent_by(all, all->root), all->bytes);
        break;
    case COLLECTIVE_REDUCE_SCATTER:
        host_delivery_reduce(all, mine, mine + block, to, to, mine);
        break;
    case COLLECTIVE_ALL_REDUCE:
        if (all->alone)
            host_delivery_reduce(all, 0, all->bytes, to, to, 0);
        else
            delivery_add_share(all, to);
        break;
    case COLLECTIVE_BARRIER: break;
    }
}
