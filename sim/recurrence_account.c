/*
 * recurrence_account.c - why streams are idle, in a block of periods; see recurrence_internal.h.
 *
 * Each reason of each piece of work is added up over the whole block before the next one, so that the
 * loops take vectors.
 */
#include "sim/recurrence_internal.h"

#include <string.h>

#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3") /* loops over lanes and blocks are to be vectorised */
#endif

/* ---- accounts -------------------------------------------------------------------------------- */

static int find_slot(struct recurrence *r, int stream, struct stall stall)
{
    for (int i = 0; i < r->slot_count; i++)
        if (r->sums[i].stream == stream && r->sums[i].stall.cause == stall.cause &&
            r->sums[i].stall.who == stall.who)
            return i;
    r->sums[r->slot_count] = (struct slot){stream, stall};
    return r->slot_count++;
}

static struct place piece_place(struct recurrence *r, const struct event_work *work, bool end)
{
    struct event_ref ref = work->done;
    if (!end && work->takes_time)
        ref.end = false;
    return recurrence_place(r, ref);
}

static void make_piece(struct recurrence *r, int index, int before, int periods)
{
    const struct event_work *work = &r->graph.works[index];
    struct piece *piece = &r->pieces[index];
    *piece = (struct piece){.begin = piece_place(r, work, false),
                            .end = piece_place(r, work, true),
                            .takes_time = work->takes_time,
                            .stream = work->stream,
                            .first = work->first,
                            .count = work->count};
    struct event_ref last = r->graph.works[before].done;
    last.height += periods;
    piece->before = recurrence_place(r, last);
    for (int i = work->first; i < work->first + work->count; i++) {
        const struct event_idle *idle = &r->graph.idles[i];
        bool bounded = idle->why.cause == STALL_CLOCK && idle->pushed.event != EVENT_NONE;
        r->slots[i] = find_slot(r, work->stream, idle->why);
        r->reasons[i] = (struct reason){
            recurrence_place(r, idle->until),
            bounded ? recurrence_place(r, idle->pushed) : (struct place){NONE, 0}, r->slots[i]};
    }
}

bool recurrence_make_pieces(struct recurrence *r)
{
    const struct event_graph *g = &r->graph;
    size_t idles = (size_t)g->idle_count, streams = (size_t)r->program->stream_count;
    r->pieces = ARENA_ARRAY(&r->arena, (size_t)g->work_count + 1, struct piece);
    r->reasons = ARENA_ARRAY(&r->arena, idles + 1, struct reason);
    r->slots = ARENA_ARRAY(&r->arena, idles + 1, int);
    r->sums = ARENA_ARRAY(&r->arena, idles + 2 * streams + 1, struct slot);
    if (r->arena.failed)
        return false;
    for (int s = 0; s < r->program->stream_count; s++)
        find_slot(r, s, (struct stall){STALL_NO_MORE_DATA, STALL_NOBODY});
    for (int s = 0; s < r->program->stream_count; s++)
        find_slot(r, s, (struct stall){STALL_CLOCK, STALL_NOBODY});
    for (int first = 0, next; first < g->work_count; first = next) {
        for (next = first; next < g->work_count && g->works[next].stream == g->works[first].stream;)
            next++;
        for (int w = first; w < next; w++)
            make_piece(r, w, w == first ? next - 1 : w - 1, w == first);
    }
    return true;
}

/* ---- accounts of a block --------------------------------------------------------------------- */

/* The stream is idle from at[i]: until untils[i], but no longer than pushed[i]. */
static inline __attribute__((always_inline)) void book_reason(int64_t *restrict at,
                                                              const int64_t *untils,
                                                              const int64_t *pushed, int count,
                                                              int64_t sums[SUMS])
{
    int64_t partial[SUMS] = {0};
    for (int i = 0; i < count; i += SUMS)
        for (int l = 0; l < SUMS; l++) {
            int64_t until = untils[i + l];
            if (pushed)
                until = pushed[i + l] < until ? pushed[i + l] : until;
            until = until > at[i + l] ? until : at[i + l];
            partial[l] += until - at[i + l];
            at[i + l] = until;
        }
    for (int l = 0; l < SUMS; l++)
        sums[l] += partial[l];
}

static inline __attribute__((always_inline)) void
book_busy(const int64_t *begin, const int64_t *end, int count, int64_t sums[SUMS])
{
    int64_t partial[SUMS] = {0};
    for (int i = 0; i < count; i += SUMS)
        for (int l = 0; l < SUMS; l++)
            partial[l] += end[i + l] - begin[i + l];
    for (int l = 0; l < SUMS; l++)
        sums[l] += partial[l];
}

static inline __attribute__((always_inline)) void book_all(struct runner *run, int count)
{
    const struct recurrence *r = run->r;
    for (int w = 0; w < r->graph.work_count; w++) {
        const struct piece *piece = &r->pieces[w];
        memcpy(run->at, run->columns + at_column(run, piece->before),
               (size_t)count * sizeof *run->at);
        for (int i = piece->first; i < piece->first + piece->count; i++) {
            const struct reason *reason = &r->reasons[i];
            const int64_t *untils = run->columns + at_column(run, reason->until);
            if (reason->pushed.column == NONE)
                book_reason(run->at, untils, NULL, count, &run->sums[reason->slot * SUMS]);
            else
                book_reason(run->at, untils, run->columns + at_column(run, reason->pushed), count,
                            &run->sums[reason->slot * SUMS]);
        }
        if (piece->takes_time)
            book_busy(run->columns + at_column(run, piece->begin),
                      run->columns + at_column(run, piece->end), count,
                      &run->busy[piece->stream * SUMS]);
    }
}

/* ---- for three levels of the instruction set ------------------------------------------------- */

#define DEFINE_BOOK(NAME, ATTRIBUTE)                                                               \
    ATTRIBUTE static void book_##NAME(struct runner *run, int count)                               \
    {                                                                                              \
        book_all(run, count);                                                                      \
    }

DEFINE_BOOK(plain, )
#if defined __x86_64__
DEFINE_BOOK(avx2, __attribute__((target("avx2"))))
DEFINE_BOOK(avx512, __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw"))))
#endif

void recurrence_book(struct runner *run, int count)
{
#if defined __x86_64__
    if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        book_avx512(run, count);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        book_avx2(run, count);
        return;
    }
#endif
    book_plain(run, count);
}
