/* SPDX-License-Identifier: Apache-2.0 */
/* pieces.c - see pieces.h: pieces in order, and the small ones as part of those in front of them. */
#include <assert.h>
#include <stdlib.h>

#include "pieces_internal.h"

#include "base/array.h"
#include "base/assert_index.h"
#include "base/sort.h"

/* ---- pieces in order ----------------------------------------------------------------------------- */

static struct piece *pieces_add_piece(struct piece_search *search, enum piece_kind kind,
                                      int section)
{
    struct pieces *out = search->out;
    if (!ARENA_GROW(search->arena, out->items, out->count, search->piece_cap))
        return NULL;
    struct piece *piece = &out->items[out->count];
    *piece = (struct piece){.kind = kind, .section = section, .stream = -1, .wait = -1};
    int64_t **tables[] = {&piece->host_ns, &piece->after_ns, &piece->time_ns, &piece->start_ns,
                          &piece->end_ns};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (!(*tables[i] = ARENA_ARRAY(search->arena, (size_t)search->steps, int64_t)))
            return NULL;
    out->count++;
    return piece;
}

/* When a piece begins on the CPU, since its step began; INT64_MAX: it does not in this step. */
static int64_t host_begin(const struct piece_search *search, const struct piece *piece, int step)
{
    ASSERT_INDEX(step, search->sections->step_count);
    const struct section_step *s = &search->sections->steps[step];
    int call = -1;
    if (piece->kind == PIECE_HOST)
        return s->begin_ns[piece->section + 1] - s->begin_ns[0];
    if (piece->kind == PIECE_WAIT) {
        call = search->waits[piece->wait].calls[step];
    } else {
        const int work = pieces_first_work(search, piece, step);
        call = work >= 0 ? search->rank->works[work].call : -1;
    }
    return call >= 0 ? search->rank->calls[call].start_ns - s->begin_ns[0] : INT64_MAX;
}

static double mean_begin(const struct piece_search *search, const struct piece *piece)
{
    double sum = 0;
    int count = 0;
    for (int step = 0; step < search->steps; step++) {
        const int64_t begin = host_begin(search, piece, step);
        if (begin == INT64_MAX)
            continue;
        sum += (double)begin;
        count++;
    }
    return count > 0 ? sum / count : 0;
}

/* By section; then by the time on the CPU; a copy that blocks comes before its wait, the rest of a section last. */
static int compare_pieces(const void *left, const void *right, void *context)
{
    const struct piece_search *search = context;
    const struct piece *a = left, *b = right;
    if (a->section != b->section)
        return a->section - b->section;
    if (a->kind != b->kind && (a->kind == PIECE_HOST || b->kind == PIECE_HOST))
        return a->kind == PIECE_HOST ? 1 : -1;
    const double first = mean_begin(search, a), second = mean_begin(search, b);
    if (first != second)
        return first < second ? -1 : 1;
    return a->kind != b->kind ? (int)a->kind - (int)b->kind : a->first_slot - b->first_slot;
}

static bool list_comms(const struct piece_search *search, struct piece *piece, int slot)
{
    piece->comm = pieces_filled(search->arena, (size_t)search->steps, -1);
    for (int step = 0; piece->comm && step < search->steps; step++) {
        const int work = pieces_work_at(search, slot, step);
        const struct meetings_meeting *meeting = work >= 0 ? pieces_meeting(search, work) : NULL;
        piece->comm[step] = meeting ? meeting->comm : -1;
    }
    return piece->comm != NULL;
}

static bool add_work_piece(struct piece_search *search, int section, int stream, int first, int end)
{
    struct piece *piece = pieces_add_piece(search, PIECE_WORK, section);
    if (!piece)
        return false;
    piece->stream = stream;
    piece->first_slot = first;
    piece->slot_count = end - first;
    assert(first < end && end <= search->slots);
    piece->beside = search->beside[end];
    for (int step = 0; step < search->steps && end - first == 1; step++) {
        const int work = pieces_work_at(search, first, step);
        if (work < 0)
            continue;
        piece->is_collective = search->rank->works[work].is_collective;
        piece->collective = search->rank->works[work].collective;
    }
    return !piece->is_collective || list_comms(search, piece, first);
}

static bool pieces_add_run(struct piece_search *search, int section, int stream)
{
    const int run = section * search->streams + stream;
    for (int slot = search->base[run]; slot < search->base[run + 1];) {
        const int end = pieces_run_end(search, slot, search->base[run + 1]);
        if (!add_work_piece(search, section, stream, slot, end))
            return false;
        slot = end;
    }
    return true;
}

static bool list_pieces(struct piece_search *search)
{
    for (int section = 0; section < (int)search->sections->count; section++) {
        for (int stream = 0; stream < search->streams; stream++)
            if (!pieces_add_run(search, section, stream))
                return false;
        if (!pieces_add_piece(search, PIECE_HOST, section))
            return false;
    }
    for (size_t i = 0; i < search->wait_count; i++) {
        struct piece *piece = search->waits[i].kept
                                  ? pieces_add_piece(search, PIECE_WAIT, search->waits[i].section)
                                  : NULL;
        if (search->waits[i].kept && !piece)
            return false;
        if (piece)
            piece->wait = (int)i;
    }
    SORT_BY(search->out->items, search->out->count, compare_pieces, search);
    return true;
}

/* ---- pieces that join others --------------------------------------------------------------------- */

/* The only dependence of a piece, on the one in front of it in its section. */
static bool waits_for_front(const struct piece_search *search, size_t at)
{
    const struct pieces *out = search->out;
    size_t deps = 0;
    bool front = false;
    for (size_t i = 0; i < out->dep_count; i++) {
        if (out->deps[i].task != (int)at)
            continue;
        deps++;
        front |= out->deps[i].on == (int)at - 1 && out->deps[i].distance == 0;
    }
    return front && deps == 1;
}

/* True if a piece becomes part of the one in front of it: the rest of its section, or a wait for that one. */
static bool joins_front(const struct piece_search *search, size_t at)
{
    ASSERT_INDEX(at, search->out->count);
    const struct piece *piece = &search->out->items[at];
    if (at == 0 || piece->kind == PIECE_WORK || piece[-1].kind != PIECE_WORK ||
        piece[-1].section != piece->section)
        return false;
    return piece->kind == PIECE_HOST || waits_for_front(search, at);
}

/* Rests and waits become part of the work in front of them, so there are fewer tasks. */
static bool join_pieces(struct piece_search *search)
{
    struct pieces *out = search->out;
    int *number =
        pieces_filled(search->arena, out->count, -1); /* per piece as it was: what it becomes */
    if (!number)
        return false;
    int kept = 0;
    for (size_t i = 0; i < out->count; i++) {
        const bool joined = joins_front(search, i);
        assert(!joined || i > 0);
        number[i] = joined ? number[i - 1] : kept++;
        if (joined) {
            const struct piece *piece = &out->items[i];
            out->items[i - 1].sync_after |= piece->kind == PIECE_WAIT;
            for (int step = 0; step < search->steps && piece->kind == PIECE_HOST; step++)
                out->items[i - 1].after_ns[step] += piece->host_ns[step];
        }
        if (joined && out->items[i].kind == PIECE_WAIT && i + 1 < out->count) {
            /* CPU time behind the wait is in front of the next push. */
            for (int step = 0; step < search->steps; step++)
                out->items[i + 1].host_ns[step] += out->items[i].host_ns[step];
        }
    }
    for (size_t i = 0; i < out->count; i++)
        if (i == 0 || number[i] != number[i - 1])
            out->items[number[i]] = out->items[i];
    const size_t before = out->count;
    out->count = (size_t)kept;
    size_t deps = 0;
    for (size_t i = 0; i < out->dep_count; i++) {
        struct piece_dep dep = out->deps[i];
        assert((size_t)dep.task < before && (size_t)dep.on < before && dep.distance >= 0);
        dep.task = number[dep.task];
        dep.on = number[dep.on];
        if (dep.task != dep.on || dep.distance > 0)
            out->deps[deps++] = dep;
    }
    out->dep_count = deps;
    const size_t count = search->rank->work_count;
    int *of_work = search->out->of_work = pieces_filled(search->arena, count, -1);
    for (size_t w = 0; of_work && w < count; w++)
        if (search->slot_of[w] >= 0)
            of_work[w] = number[search->piece_of[search->slot_of[w]]];
    return of_work != NULL;
}

/* ---- all of it ----------------------------------------------------------------------------------- */

static bool map_slots(struct piece_search *search)
{
    search->piece_of = pieces_filled(search->arena, (size_t)search->slots, -1);
    for (size_t p = 0; search->piece_of && p < search->out->count; p++)
        for (int i = 0; i < search->out->items[p].slot_count; i++)
            search->piece_of[search->out->items[p].first_slot + i] = (int)p;
    return search->piece_of != NULL;
}

bool pieces_find(const struct turns *turns, const struct sections *sections, int detail,
                 bool opaque, struct arena *arena, struct pieces *out)
{
    struct piece_search search = {.turns = turns,
                                  .rank = &turns->rank,
                                  .evidence = &turns->evidence,
                                  .sections = sections,
                                  .arena = arena,
                                  .out = out,
                                  .opaque = opaque,
                                  .steps = (int)sections->step_count,
                                  .streams = (int)turns->rank.stream_count,
                                  .long_ns = (int64_t)((double)sections->period_ns * detail / 1e6)};
    *out = (struct pieces){0};
    if (!pieces_fill_slots(&search) || !pieces_fill_waits(&search) ||
        !pieces_find_peer_waits(&search))
        return false;
    pieces_find_cuts(&search);
    if (!list_pieces(&search))
        return false;
    pieces_walk(&search);
    pieces_drop_short_rests(&search);
    pieces_walk(&search);
    if (!map_slots(&search) || !pieces_find_deps(&search))
        return false;
    pieces_settle_waits(&search);
    pieces_add_own_gaps(&search);
    return join_pieces(&search);
}

/* The times of pieces, by a clock that follows the thread through each step. */

/* The first work of a piece in a step; -1. */
int pieces_first_work(const struct piece_search *search, const struct piece *piece, int step)
{
    for (int i = 0; i < piece->slot_count; i++) {
        const int work = pieces_work_at(search, piece->first_slot + i, step);
        if (work >= 0)
            return work;
    }
    return -1;
}

bool pieces_own_gap(const struct piece_search *search, int work)
{
    const enum idle cause = search->evidence->reasons[work].cause;
    return cause != IDLE_BEFORE && (cause != IDLE_NOTHING || search->opaque);
}

static void pieces_walk_work(struct piece_search *search, struct piece *piece, int step,
                             int64_t *clock)
{
    int64_t end = INT64_MIN, busy = 0;
    const int first = pieces_first_work(search, piece, step);
    piece->host_ns[step] = piece->after_ns[step] = piece->time_ns[step] = 0;
    if (first < 0)
        return;
    const int64_t pushed = pieces_push_time(search, first);
    if (pushed > *clock) {
        piece->host_ns[step] = pushed - *clock;
        *clock = pushed;
    }
    for (int i = 0; i < piece->slot_count; i++) {
        const int work = pieces_work_at(search, piece->first_slot + i, step);
        if (work < 0)
            continue;
        const struct job_work *w = &search->rank->works[work];
        const enum idle cause = search->evidence->reasons[work].cause;
        const bool own = pieces_own_gap(search, work) && !(cause == IDLE_LAUNCH && piece->beside);
        if (end != INT64_MIN && w->start_ns > end && own)
            busy += w->start_ns - end;
        const int64_t from = later_of(w->start_ns, end);
        const struct meetings_meeting *meeting = pieces_meeting(search, work);
        const int64_t own_ns = w->end_ns > from ? w->end_ns - from : 0;
        busy += meeting && meeting->time_ns < own_ns ? meeting->time_ns : own_ns;
        end = later_of(end, w->end_ns);
    }
    piece->start_ns[step] = search->rank->works[first].start_ns;
    piece->end_ns[step] = end;
    piece->time_ns[step] = busy;
}

/* A thread that waits goes on when the work has ended. CPU time before it belongs to the piece in front. */
static void pieces_walk_wait(struct piece_search *search, size_t at, int step, int64_t *clock)
{
    ASSERT_INDEX(at, search->out->count);
    struct piece *piece = &search->out->items[at], *front = at > 0 ? piece - 1 : NULL;
    const int wait = search->waits[piece->wait].calls[step];
    piece->host_ns[step] = 0;
    if (wait < 0)
        return;
    const struct job_call *call = &search->rank->calls[wait];
    if (front && call->start_ns > *clock)
        (front->kind == PIECE_WORK ? front->after_ns : front->host_ns)[step] +=
            call->start_ns - *clock;
    *clock = later_of(*clock, call->start_ns + pieces_blocked_ns(search, wait));
}

void pieces_walk(struct piece_search *search)
{
    for (int step = 0; step < search->steps; step++) {
        const struct section_step *s = &search->sections->steps[step];
        int64_t clock = s->begin_ns[0];
        for (size_t i = 0; i < search->out->count; i++) {
            struct piece *piece = &search->out->items[i];
            switch (piece->kind) {
            case PIECE_WORK: pieces_walk_work(search, piece, step, &clock); break;
            case PIECE_WAIT: pieces_walk_wait(search, i, step, &clock); break;
            case PIECE_HOST:
                piece->host_ns[step] = later_of(0, s->begin_ns[piece->section + 1] - clock);
                clock = later_of(clock, s->begin_ns[piece->section + 1]);
                break;
            }
        }
    }
}

static int64_t pieces_mean(const struct piece_search *search, const int64_t *values)
{
    int64_t sum = 0;
    for (int step = 0; step < search->steps; step++)
        sum += values[step];
    return sum / search->steps;
}

/* The rest of a section is a piece where it is long, or where the section has no other one. */
void pieces_drop_short_rests(struct piece_search *search)
{
    struct pieces *out = search->out;
    size_t kept = 0;
    for (size_t i = 0; i < out->count; i++) {
        const struct piece *piece = &out->items[i];
        const bool alone = kept == 0 || out->items[kept - 1].section != piece->section;
        if (piece->kind == PIECE_HOST && !alone && i + 1 < out->count &&
            pieces_mean(search, piece->host_ns) <= search->long_ns)
            continue;
        out->items[kept++] = *piece;
    }
    out->count = kept;
}

/* When ranks wait for each other: time that is no rank's own. */

/* Works are in the order of their starts, rank by rank, and the ranks' times follow each other (turns.h). */
bool pieces_find_peer_waits(struct piece_search *search)
{
    const struct job_rank *rank = search->rank;
    struct peer_wait *waits = search->peer_waits =
        ARENA_ARRAY(search->arena, rank->work_count + 1, struct peer_wait);
    for (size_t w = 0; waits && w < rank->work_count; w++) {
        const struct meetings_meeting *meeting = pieces_meeting(search, (int)w);
        const int64_t start_ns = rank->works[w].start_ns;
        const int64_t end_ns = meeting ? rank->works[w].end_ns - meeting->time_ns : start_ns;
        struct peer_wait *last =
            search->peer_wait_count > 0 ? &waits[search->peer_wait_count - 1] : NULL;
        if (end_ns <= start_ns)
            continue;
        if (last && start_ns <= last->end_ns)
            last->end_ns = later_of(last->end_ns, end_ns);
        else
            waits[search->peer_wait_count++] = (struct peer_wait){start_ns, end_ns};
    }
    return waits != NULL;
}

int64_t pieces_peer_ns(const struct piece_search *search, int64_t from_ns, int64_t until_ns)
{
    size_t low = SORT_FIRST(i, 0, search->peer_wait_count, search->peer_waits[i].end_ns > from_ns);
    int64_t sum = 0;
    for (; low < search->peer_wait_count && search->peer_waits[low].start_ns < until_ns; low++) {
        const struct peer_wait *wait = &search->peer_waits[low];
        sum +=
            (wait->end_ns < until_ns ? wait->end_ns : until_ns) - later_of(wait->start_ns, from_ns);
    }
    return sum;
}
