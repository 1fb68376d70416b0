/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recurrence_account.c - why streams are idle, in a block of periods; see recurrence_internal.h.
 *
 * Each reason of each piece of work is gone through over the whole block before the next one, so that the
 * loops take vectors. `at` is the time up to which it is known why the stream was idle:
 *
 *     end of the piece before -- reason -- at -- reason -- at -- begin of the piece
 *
 * The time booked for a reason is the sum of `at` after it less that before it.
 */
#include "recurrence_internal.h"

#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3") /* loops over lanes and blocks are to be vectorised */
#endif

/* Larger graphs are not searched for reasons that can be left out. */
enum { MOST_BOUNDED = 1 << 20 };

/* ---- accounts -------------------------------------------------------------------------------- */

/* Finds a slot by its reason. Works come stream by stream, so a place is of the stream it names. */
struct slot_finder {
    int least, width; /* of what stalls name: least .. least + width - 2; NONE comes first */
    struct found {
        int stream, slot;
    } * places; /* [STALL_COUNT * width] */
    int *last;  /* per stream: the end of its list */
};

static struct found *place_of(const struct slot_finder *finder, struct stall stall)
{
    int on = stall.on == STALL_ON_NONE ? 0 : stall.on - finder->least + 1;
    return &finder->places[(size_t)stall.cause * (size_t)finder->width + (size_t)on];
}

static bool open_finder(struct slot_finder *finder, struct recurrence *r)
{
    int most = 0, least = 0;
    for (int i = 0; i < r->graph.idle_count; i++) {
        int on = r->graph.idles[i].why.on;
        most = on > most ? on : most;
        least = on < least && on != STALL_ON_NONE ? on : least;
    }
    finder->least = least;
    finder->width = most - least + 2;
    size_t places = (size_t)STALL_COUNT * (size_t)finder->width;
    finder->places = ARENA_ARRAY(&r->arena, places, struct found);
    finder->last = ARENA_ARRAY(&r->arena, (size_t)r->program->stream_count, int);
    for (size_t i = 0; finder->places && i < places; i++)
        finder->places[i].stream = NONE;
    return !r->arena.failed;
}

static int add_slot(struct recurrence *r, struct slot_finder *finder, int stream,
                    struct stall stall)
{
    int slot = r->slot_count++;
    r->sums[slot] = (struct slot){stream, stall, NONE};
    if (slot != stream) /* the list of a stream begins with slot number `stream` */
        r->sums[finder->last[stream]].next = slot;
    return finder->last[stream] = slot;
}

/* The first two slots of every stream are known by number. */
static void add_first_slots(struct recurrence *r, struct slot_finder *finder)
{
    for (int s = 0; s < r->program->stream_count; s++)
        add_slot(r, finder, s, (struct stall){STALL_NO_MORE_DATA, STALL_ON_NONE});
    for (int s = 0; s < r->program->stream_count; s++)
        add_slot(r, finder, s, (struct stall){STALL_CLOCK, STALL_ON_NONE});
}

static int find_slot(struct recurrence *r, struct slot_finder *finder, int stream,
                     struct stall stall)
{
    if (stall.on == STALL_ON_NONE && stall.cause == STALL_NO_MORE_DATA)
        return stream;
    if (stall.on == STALL_ON_NONE && stall.cause == STALL_CLOCK)
        return r->program->stream_count + stream;
    struct found *place = place_of(finder, stall);
    if (place->stream != stream)
        *place = (struct found){stream, add_slot(r, finder, stream, stall)};
    return place->slot;
}

/* Reasons that can never be later than what came before them in their list need no booking. */
static bool is_idle_for(struct recurrence *r, const struct event_idle *idle,
                        struct event_ref *passed, int *passed_count)
{
    if ((int64_t)r->graph.edge_count * (r->graph.idle_count + 1) <= MOST_BOUNDED &&
        recurrence_is_bounded(r, NONE, idle->until, passed, *passed_count))
        return false;
    if (idle->why.cause != STALL_CLOCK || idle->pushed.event == EVENT_NONE)
        passed[(*passed_count)++] = idle->until;
    return true;
}

static void add_reason(struct recurrence *r, const struct event_idle *idle, int slot)
{
    bool bounded = idle->why.cause == STALL_CLOCK && idle->pushed.event != EVENT_NONE;
    r->reasons[r->reason_count++] = (struct reason){
        recurrence_place(r, idle->until),
        bounded ? recurrence_place(r, idle->pushed) : (struct place){NONE, 0, 0}, slot};
}

static void make_piece(struct recurrence *r, struct slot_finder *finder, int index, int before,
                       int periods, struct event_ref *passed)
{
    const struct event_work *work = &r->graph.works[index];
    struct piece *piece = &r->pieces[index];
    bool takes_time = work->takes_time && work->done.end;
    int passed_count = 1;
    passed[0] = r->graph.works[before].done;
    passed[0].height += periods;
    *piece = (struct piece){.before = recurrence_place(r, passed[0]),
                            .stream = work->stream,
                            .first = r->reason_count,
                            .busy_ns = takes_time ? r->constant_ns[work->done.event] : 0,
                            .duration = takes_time ? r->duration[work->done.event] : NONE};
    for (int i = work->first; i < work->first + work->count; i++) {
        const struct event_idle *idle = &r->graph.idles[i];
        r->slots[i] = find_slot(r, finder, work->stream, idle->why);
        if (is_idle_for(r, idle, passed, &passed_count))
            add_reason(r, idle, r->slots[i]);
    }
    piece->count = r->reason_count - piece->first;
}

bool recurrence_make_pieces(struct recurrence *r)
{
    const struct event_graph *g = &r->graph;
    size_t idles = (size_t)g->idle_count, streams = (size_t)r->program->stream_count;
    r->pieces = ARENA_ARRAY(&r->arena, (size_t)g->work_count + 1, struct piece);
    r->reasons = ARENA_ARRAY(&r->arena, idles + 1, struct reason);
    r->slots = ARENA_ARRAY(&r->arena, idles + 1, int);
    r->sums = ARENA_ARRAY(&r->arena, idles + 2 * streams + 1, struct slot);
    struct event_ref *passed = ARENA_ARRAY(&r->arena, idles + 2, struct event_ref);
    struct slot_finder finder;
    if (r->arena.failed || !open_finder(&finder, r))
        return false;
    add_first_slots(r, &finder);
    for (int first = 0, next; first < g->work_count; first = next) {
        for (next = first; next < g->work_count && g->works[next].stream == g->works[first].stream;)
            next++;
        for (int w = first; w < next; w++)
            make_piece(r, &finder, w, w == first ? next - 1 : w - 1, w == first, passed);
    }
    return true;
}

/* ---- accounts of a block --------------------------------------------------------------------- */

/* A place's values from the block's first on. */
struct values {
    const int64_t *at;
    int64_t plus_ns;
};

static inline __attribute__((always_inline)) struct values values_of(const struct runner *run,
                                                                     const struct place *place)
{
    return (struct values){run->columns + at_column(run, *place), place->plus_ns};
}

/* The stream is idle from at[i] until the time given, but no longer than `pushed`. Adds up the new
   at[i]: the sums before and after tell how long the stream was idle. Sums of times may wrap
   around; their differences are right. */
static inline __attribute__((always_inline)) void move_on(int64_t *restrict at, struct values until,
                                                          const struct values *pushed, int count,
                                                          uint64_t sums[SUMS])
{
    uint64_t partial[SUMS] = {0};
    for (int i = 0; i < count; i += SUMS)
        for (int l = 0; l < SUMS; l++) {
            int64_t time = until.at[i + l] + until.plus_ns;
            if (pushed) {
                int64_t bound = pushed->at[i + l] + pushed->plus_ns;
                time = bound < time ? bound : time;
            }
            time = time > at[i + l] ? time : at[i + l];
            at[i + l] = time;
            partial[l] += (uint64_t)time;
        }
    for (int l = 0; l < SUMS; l++)
        sums[l] = partial[l];
}

static inline __attribute__((always_inline)) void
begin_piece(int64_t *restrict at, struct values before, int count, uint64_t sums[SUMS])
{
    uint64_t partial[SUMS] = {0};
    for (int i = 0; i < count; i += SUMS)
        for (int l = 0; l < SUMS; l++) {
            at[i + l] = before.at[i + l] + before.plus_ns;
            partial[l] += (uint64_t)at[i + l];
        }
    for (int l = 0; l < SUMS; l++)
        sums[l] = partial[l];
}

static inline __attribute__((always_inline)) void book_busy(struct runner *run,
                                                            const struct piece *piece, int count)
{
    int64_t *busy = &run->busy[piece->stream * SUMS], partial[SUMS] = {0};
    if (piece->duration == NONE) {
        for (int l = 0; l < SUMS; l++)
            busy[l] += count / SUMS * piece->busy_ns;
        return;
    }
    const int64_t *drawn = run->columns + drawn_at(run, piece->duration) + run->drawn_at;
    for (int i = 0; i < count; i += SUMS)
        for (int l = 0; l < SUMS; l++)
            partial[l] += drawn[i + l];
    for (int l = 0; l < SUMS; l++)
        busy[l] += partial[l];
}

static inline __attribute__((always_inline)) void
book_reason(struct runner *run, const struct reason *reason, int count, uint64_t so_far[SUMS])
{
    const struct values until = values_of(run, &reason->until);
    int64_t *idle = &run->sums[reason->slot * SUMS];
    uint64_t sums[SUMS];
    if (reason->pushed.column == NONE) {
        move_on(run->at, until, NULL, count, sums);
    } else {
        const struct values pushed = values_of(run, &reason->pushed);
        move_on(run->at, until, &pushed, count, sums);
    }
    for (int l = 0; l < SUMS; l++) {
        idle[l] += (int64_t)(sums[l] - so_far[l]);
        so_far[l] = sums[l];
    }
}

/* `count` values a column, a multiple of SUMS. */
static inline __attribute__((always_inline)) void book_all(struct runner *run, int count)
{
    const struct recurrence *r = run->r;
    for (int w = 0; w < r->graph.work_count; w++) {
        const struct piece *piece = &r->pieces[w];
        uint64_t so_far[SUMS];
        if (piece->count)
            begin_piece(run->at, values_of(run, &piece->before), count, so_far);
        for (int i = piece->first; i < piece->first + piece->count; i++)
            book_reason(run, &r->reasons[i], count, so_far);
        book_busy(run, piece, count);
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
