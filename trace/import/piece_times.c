/* SPDX-License-Identifier: Apache-2.0 */
/* piece_times.c - the times of pieces, by a clock that follows the thread through each step. */
#include "pieces_internal.h"

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

static void walk_work(struct piece_search *search, struct piece *piece, int step, int64_t *clock)
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
        const bool own =
            (cause != IDLE_NOTHING || search->opaque) && !(cause == IDLE_LAUNCH && piece->beside);
        if (end != INT64_MIN && w->start_ns > end && own)
            busy += w->start_ns - end;
        const int64_t from = later_of(w->start_ns, end);
        const struct meeting *meeting = pieces_meeting(search, work);
        const int64_t own_ns = w->end_ns > from ? w->end_ns - from : 0;
        busy += meeting && meeting->time_ns < own_ns ? meeting->time_ns : own_ns;
        end = later_of(end, w->end_ns);
    }
    piece->start_ns[step] = search->rank->works[first].start_ns;
    piece->end_ns[step] = end;
    piece->time_ns[step] = busy;
}

/* A thread that waits goes on when the work has ended. CPU time before it belongs to the piece in front. */
static void walk_wait(struct piece_search *search, size_t at, int step, int64_t *clock)
{
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
            case PIECE_WORK: walk_work(search, piece, step, &clock); break;
            case PIECE_WAIT: walk_wait(search, i, step, &clock); break;
            case PIECE_HOST:
                piece->host_ns[step] = later_of(0, s->begin_ns[piece->section + 1] - clock);
                clock = later_of(clock, s->begin_ns[piece->section + 1]);
                break;
            }
        }
    }
}

static int64_t mean(const struct piece_search *search, const int64_t *values)
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
            mean(search, piece->host_ns) <= search->long_ns)
            continue;
        out->items[kept++] = *piece;
    }
    out->count = kept;
}
