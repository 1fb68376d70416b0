/* pieces.c - see pieces.h: slots of works, cuts between them, pieces in order, their times and dependences. */
#include "pieces.h"

#include <stdlib.h>
#include <string.h>

struct wait_slot {
    int section;
    int *calls; /* per step, or -1 */
    bool kept;
};

struct search {
    const struct job_rank *rank;
    const struct evidence *evidence;
    const struct sections *sections;
    struct arena *arena;
    struct pieces *out;
    int steps, streams;
    int64_t long_ns;
    int *base;    /* per section and stream: its first slot; one more at the end */
    int *slot_of; /* per work; -1: in no step */
    int *work_at; /* per slot and step; -1 */
    int *before;  /* per work: the one before it on its stream; -1 */
    int64_t *sum; /* per work: the time of all works of its stream up to its end */
    bool *cut;    /* per slot: a piece begins */
    bool *
        beside; /* per slot: the piece that ends in front of it is one whose launches went on beside it */
    int slots;
    int *piece_of; /* per slot */
    struct wait_slot *waits;
    size_t wait_count, wait_cap, piece_cap;
};

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- where works are --------------------------------------------------------------------------- */

static int *filled(struct arena *arena, size_t count, int value)
{
    int *items = ARENA_ARRAY(arena, count + 1, int);
    for (size_t i = 0; items && i < count; i++)
        items[i] = value;
    return items;
}

/* The places of a stream's works: step * sections + section, or -1. One without a launch is where the one before is. */
static void place_stream(const struct search *search, int stream, int *place)
{
    const struct job_rank *rank = search->rank;
    const struct job_stream *s = &rank->streams[stream];
    int last = -1;
    for (int i = 0; i < s->count; i++) {
        const int work = rank->by_stream[s->first + i];
        const int call = rank->works[work].call;
        int step, section;
        if (call >= 0)
            last = sections_at(search->sections, rank->calls[call].start_ns, &step, &section)
                       ? step * (int)search->sections->count + section
                       : -1;
        place[work] = last;
    }
}

/* The most works of a step in each section and stream, as the numbers of their slots. */
static bool number_slots(struct search *search, const int *place)
{
    const size_t sections = search->sections->count, streams = (size_t)search->streams;
    int *count = filled(search->arena, (size_t)search->steps * sections * streams, 0);
    search->base = filled(search->arena, sections * streams + 1, 0);
    if (!count || !search->base)
        return false;
    for (size_t w = 0; w < search->rank->work_count; w++)
        if (place[w] >= 0)
            count[(size_t)place[w] * streams + (size_t)search->rank->works[w].stream]++;
    for (size_t i = 0; i < sections * streams; i++) {
        int most = 0;
        for (int step = 0; step < search->steps; step++) {
            const int here = count[(size_t)step * sections * streams + i];
            most = here > most ? here : most;
        }
        search->base[i] = search->slots;
        search->slots += most;
    }
    search->base[sections * streams] = search->slots;
    return true;
}

static bool fill_slots(struct search *search)
{
    const struct job_rank *rank = search->rank;
    const int sections = (int)search->sections->count;
    int *place = filled(search->arena, rank->work_count, -1);
    search->slot_of = filled(search->arena, rank->work_count, -1);
    search->before = filled(search->arena, rank->work_count, -1);
    search->sum = ARENA_ARRAY(search->arena, rank->work_count + 1, int64_t);
    if (!place || !search->slot_of || !search->before || !search->sum)
        return false;
    for (int s = 0; s < search->streams; s++)
        place_stream(search, s, place);
    if (!number_slots(search, place))
        return false;
    search->work_at = filled(search->arena, (size_t)search->slots * (size_t)search->steps, -1);
    search->cut = ARENA_ARRAY(search->arena, (size_t)search->slots + 1, bool);
    search->beside = ARENA_ARRAY(search->arena, (size_t)search->slots + 1, bool);
    if (!search->work_at || !search->cut || !search->beside)
        return false;
    for (int s = 0; s < search->streams; s++) {
        int here = -1, next = 0;
        const int *works = &rank->by_stream[rank->streams[s].first];
        for (int i = 0; i < rank->streams[s].count; i++) {
            search->before[works[i]] = i > 0 ? works[i - 1] : -1;
            search->sum[works[i]] = rank->works[works[i]].end_ns - rank->works[works[i]].start_ns +
                                    (i > 0 ? search->sum[works[i - 1]] : 0);
            next = place[works[i]] == here ? next + 1 : 0;
            here = place[works[i]];
            if (here < 0)
                continue;
            const int slot = search->base[here % sections * search->streams + s] + next;
            search->slot_of[works[i]] = slot;
            search->work_at[(size_t)slot * (size_t)search->steps + (size_t)(here / sections)] =
                works[i];
        }
    }
    return true;
}

static int work_at(const struct search *search, int slot, int step)
{
    return search->work_at[(size_t)slot * (size_t)search->steps + (size_t)step];
}

/* ---- waits of threads ---------------------------------------------------------------------------- */

/* How long a call waits for the device. */
static int64_t blocked_ns(const struct search *search, int at)
{
    const struct job_call *call = &search->rank->calls[at];
    const int work = search->evidence->waits[at].work;
    const int64_t until = work >= 0 ? search->rank->works[work].end_ns : 0;
    const int64_t end = until < call->end_ns ? until : call->end_ns;
    return end > call->start_ns ? end - call->start_ns : 0;
}

static struct wait_slot *wait_slot(struct search *search, int section, int number)
{
    for (size_t i = 0; i < search->wait_count; i++)
        if (search->waits[i].section == section && number-- == 0)
            return &search->waits[i];
    if (!arena_grow(search->arena, (void **)&search->waits, search->wait_count, &search->wait_cap,
                    sizeof *search->waits))
        return NULL;
    struct wait_slot *slot = &search->waits[search->wait_count];
    *slot = (struct wait_slot){.section = section};
    slot->calls = filled(search->arena, (size_t)search->steps, -1);
    if (!slot->calls)
        return NULL;
    search->wait_count++;
    return slot;
}

/* The waits of each section, by their place in it. */
static bool fill_waits(struct search *search)
{
    enum { MOST = 256 }; /* of a section: one that polls has no structure */
    const size_t sections = search->sections->count;
    int *count = filled(search->arena, (size_t)search->steps * sections, 0);
    for (size_t i = 0; count && i < search->rank->call_count; i++) {
        int step, section;
        if (search->evidence->waits[i].work < 0 ||
            !sections_at(search->sections, search->rank->calls[i].start_ns, &step, &section))
            continue;
        int *number = &count[(size_t)step * sections + (size_t)section];
        if (*number == MOST)
            continue;
        struct wait_slot *slot = wait_slot(search, section, (*number)++);
        if (!slot)
            return false;
        slot->calls[step] = (int)i;
    }
    return count != NULL;
}

/* ---- cuts ---------------------------------------------------------------------------------------- */

static bool is_event(enum idle cause)
{
    return cause == IDLE_EVENT_ID || cause == IDLE_EVENT_CALL || cause == IDLE_EVENT_TIME ||
           cause == IDLE_RESIDENCY;
}

static int64_t push_time(const struct search *search, int work)
{
    const struct job_work *w = &search->rank->works[work];
    if (w->call < 0)
        return INT64_MIN;
    if (search->evidence->reasons[work].cause == IDLE_LAUNCH)
        return w->start_ns;
    const int64_t usual = search->rank->calls[w->call].start_ns + search->evidence->latency_ns;
    return usual < w->start_ns ? usual : w->start_ns;
}

/* The idle time in front of a work, after the one before it and, for an event, after its push. */
static int64_t idle_before(const struct search *search, int work)
{
    const int before = search->before[work];
    int64_t from = before >= 0 ? search->rank->works[before].end_ns : INT64_MIN;
    if (search->evidence->reasons[work].cause != IDLE_LAUNCH)
        from = later(from, push_time(search, work));
    const int64_t start = search->rank->works[work].start_ns;
    return from == INT64_MIN || from > start ? 0 : start - from;
}

/* The source of a work's edges that ends last; -1. */
static int last_source(const struct search *search, int work)
{
    const struct evidence *evidence = search->evidence;
    size_t low = 0, high = evidence->edge_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (evidence->edges[middle].work < work)
            low = middle + 1;
        else
            high = middle;
    }
    int best = -1;
    for (; low < evidence->edge_count && evidence->edges[low].work == work; low++) {
        const int source = evidence->edges[low].source;
        if (best < 0 || search->rank->works[source].end_ns > search->rank->works[best].end_ns)
            best = source;
    }
    return best;
}

static void cut_behind(struct search *search, int work)
{
    if (work >= 0 && search->slot_of[work] >= 0)
        search->cut[search->slot_of[work] + 1] = true;
}

/* Cuts at a slot that events delay for long, and around a long collective. */
static void cut_slot(struct search *search, int slot)
{
    int64_t delayed = 0, collective = 0;
    for (int step = 0; step < search->steps; step++) {
        const int work = work_at(search, slot, step);
        if (work < 0)
            continue;
        const struct job_work *w = &search->rank->works[work];
        if (is_event(search->evidence->reasons[work].cause))
            delayed += idle_before(search, work);
        collective += w->is_collective ? w->end_ns - w->start_ns : 0;
    }
    const bool is_long = collective > search->long_ns * search->steps;
    if (!is_long && delayed <= search->long_ns * search->steps)
        return;
    search->cut[slot] = true;
    if (is_long)
        search->cut[slot + 1] = true;
    for (int step = 0; step < search->steps; step++) {
        const int work = work_at(search, slot, step);
        if (work >= 0)
            cut_behind(search, last_source(search, work));
    }
}

/* The work that the call of a wait waits for in a step; -1. */
static int waited_work(const struct search *search, const struct wait_slot *wait, int step)
{
    const int call = step >= 0 ? wait->calls[step] : -1;
    return call >= 0 ? search->evidence->waits[call].work : -1;
}

/* The work of its stream that a wait is for, since the wait that was kept before it, or since its own one of the step
   before: how long the thread may have to wait if the rest of the step becomes shorter. */
static int64_t waited_for(const struct search *search, const struct wait_slot *wait, int step)
{
    const struct job_work *works = search->rank->works;
    const int work = waited_work(search, wait, step);
    if (work < 0)
        return 0;
    const int earlier = waited_work(search, wait, step - 1);
    int64_t since =
        earlier >= 0 && works[earlier].stream == works[work].stream ? search->sum[earlier] : 0;
    for (const struct wait_slot *other = search->waits; other < search->waits + search->wait_count;
         other++) {
        const int kept = other->kept ? waited_work(search, other, step) : -1;
        if (kept >= 0 && works[kept].stream == works[work].stream &&
            search->sum[kept] <= search->sum[work])
            since = later(since, search->sum[kept]);
    }
    return search->sum[work] - since;
}

/* After a long wait all streams begin anew, in the first step that has it; the work that it is for is the last one of
   its piece. */
static void cut_wait(struct search *search, struct wait_slot *wait)
{
    int64_t blocked = 0, behind = 0;
    int step = -1;
    for (int s = 0; s < search->steps; s++) {
        blocked += wait->calls[s] >= 0 ? blocked_ns(search, wait->calls[s]) : 0;
        behind += waited_for(search, wait, s);
        step = step < 0 && wait->calls[s] >= 0 ? s : step;
    }
    wait->kept =
        blocked > search->long_ns * search->steps || behind > search->long_ns * search->steps;
    if (!wait->kept)
        return;
    const int64_t begin = search->rank->calls[wait->calls[step]].start_ns;
    for (int stream = 0; stream < search->streams; stream++) {
        const int *base = &search->base[wait->section * search->streams + stream];
        for (int slot = base[0]; slot < base[1]; slot++) {
            const int work = work_at(search, slot, step);
            const int call = work >= 0 ? search->rank->works[work].call : -1;
            if (call < 0 || search->rank->calls[call].start_ns <= begin)
                continue;
            search->cut[slot] = true;
            break;
        }
    }
    for (int s = 0; s < search->steps; s++)
        if (wait->calls[s] >= 0)
            cut_behind(search, search->evidence->waits[wait->calls[s]].work);
}

/* The end of the piece that begins at `slot`. */
static int piece_end(const struct search *search, int slot, int end)
{
    slot++;
    while (slot < end && !search->cut[slot])
        slot++;
    return slot;
}

/* The mean idle time in front of a slot that its launch causes. */
static int64_t launch_idle(const struct search *search, int slot)
{
    int64_t sum = 0;
    for (int step = 0; step < search->steps; step++) {
        const int work = work_at(search, slot, step);
        if (work >= 0 && search->evidence->reasons[work].cause == IDLE_LAUNCH)
            sum += idle_before(search, work);
    }
    return sum / search->steps;
}

/* Cuts a run that launches delay for long at the last work that one delays. */
static void cut_launched(struct search *search, int first, int end)
{
    enum { NOTABLE_NS = 2000 };
    int64_t sum = 0;
    int last = -1;
    for (int slot = first + 1; slot < end; slot++) {
        const int64_t idle = launch_idle(search, slot);
        sum += idle;
        last = idle > NOTABLE_NS ? slot : last;
    }
    if (last > 0 && sum > search->long_ns)
        search->cut[last] = search->beside[last] = true;
}

static void find_cuts(struct search *search)
{
    for (int slot = 0; slot < search->slots; slot++)
        cut_slot(search, slot);
    for (size_t i = 0; i < search->wait_count; i++)
        cut_wait(search, &search->waits[i]);
    const int runs = (int)search->sections->count * search->streams;
    for (int run = 0; run < runs; run++)
        for (int slot = search->base[run]; slot < search->base[run + 1];) {
            const int end = piece_end(search, slot, search->base[run + 1]);
            cut_launched(search, slot, end);
            slot = end;
        }
}

/* ---- pieces in order ----------------------------------------------------------------------------- */

static struct piece *add_piece(struct search *search, enum piece_kind kind, int section)
{
    struct pieces *out = search->out;
    if (!arena_grow(search->arena, (void **)&out->items, out->count, &search->piece_cap,
                    sizeof *out->items))
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

/* The first work of a piece in a step; -1. */
static int first_work(const struct search *search, const struct piece *piece, int step)
{
    for (int i = 0; i < piece->slot_count; i++) {
        const int work = work_at(search, piece->first_slot + i, step);
        if (work >= 0)
            return work;
    }
    return -1;
}

/* When a piece begins on the CPU, since its step began; INT64_MAX: it does not in this step. */
static int64_t host_begin(const struct search *search, const struct piece *piece, int step)
{
    const struct section_step *s = &search->sections->steps[step];
    int call = -1;
    if (piece->kind == PIECE_HOST)
        return s->begin_ns[piece->section + 1] - s->begin_ns[0];
    if (piece->kind == PIECE_WAIT) {
        call = search->waits[piece->wait].calls[step];
    } else {
        const int work = first_work(search, piece, step);
        call = work >= 0 ? search->rank->works[work].call : -1;
    }
    return call >= 0 ? search->rank->calls[call].start_ns - s->begin_ns[0] : INT64_MAX;
}

static double mean_begin(const struct search *search, const struct piece *piece)
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
    const struct search *search = context;
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

static bool add_work_piece(struct search *search, int section, int stream, int first, int end)
{
    struct piece *piece = add_piece(search, PIECE_WORK, section);
    if (!piece)
        return false;
    piece->stream = stream;
    piece->first_slot = first;
    piece->slot_count = end - first;
    piece->beside = search->beside[end];
    for (int step = 0; step < search->steps && end - first == 1; step++) {
        const int work = work_at(search, first, step);
        if (work < 0)
            continue;
        piece->is_collective = search->rank->works[work].is_collective;
        piece->collective = search->rank->works[work].collective;
    }
    return true;
}

static bool add_run(struct search *search, int section, int stream)
{
    const int run = section * search->streams + stream;
    for (int slot = search->base[run]; slot < search->base[run + 1];) {
        const int end = piece_end(search, slot, search->base[run + 1]);
        if (!add_work_piece(search, section, stream, slot, end))
            return false;
        slot = end;
    }
    return true;
}

static bool list_pieces(struct search *search)
{
    for (int section = 0; section < (int)search->sections->count; section++) {
        for (int stream = 0; stream < search->streams; stream++)
            if (!add_run(search, section, stream))
                return false;
        if (!add_piece(search, PIECE_HOST, section))
            return false;
    }
    for (size_t i = 0; i < search->wait_count; i++) {
        struct piece *piece =
            search->waits[i].kept ? add_piece(search, PIECE_WAIT, search->waits[i].section) : NULL;
        if (search->waits[i].kept && !piece)
            return false;
        if (piece)
            piece->wait = (int)i;
    }
    qsort_r(search->out->items, search->out->count, sizeof *search->out->items, compare_pieces,
            search);
    return true;
}

/* ---- times --------------------------------------------------------------------------------------- */

static void walk_work(struct search *search, struct piece *piece, int step, int64_t *clock)
{
    int64_t end = INT64_MIN, busy = 0;
    const int first = first_work(search, piece, step);
    piece->host_ns[step] = piece->after_ns[step] = piece->time_ns[step] = 0;
    if (first < 0)
        return;
    const int64_t pushed = push_time(search, first);
    if (pushed > *clock) {
        piece->host_ns[step] = pushed - *clock;
        *clock = pushed;
    }
    for (int i = 0; i < piece->slot_count; i++) {
        const int work = work_at(search, piece->first_slot + i, step);
        if (work < 0)
            continue;
        const struct job_work *w = &search->rank->works[work];
        const enum idle cause = search->evidence->reasons[work].cause;
        const bool own = cause != IDLE_NOTHING && !(cause == IDLE_LAUNCH && piece->beside);
        if (end != INT64_MIN && w->start_ns > end && own)
            busy += w->start_ns - end;
        const int64_t from = later(w->start_ns, end);
        busy += w->end_ns > from ? w->end_ns - from : 0;
        end = later(end, w->end_ns);
    }
    piece->start_ns[step] = search->rank->works[first].start_ns;
    piece->end_ns[step] = end;
    piece->time_ns[step] = busy;
}

/* A thread that waits goes on when the work has ended. CPU time before it belongs to the piece in front. */
static void walk_wait(struct search *search, size_t at, int step, int64_t *clock)
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
    *clock = later(*clock, call->start_ns + blocked_ns(search, wait));
}

static void walk(struct search *search)
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
                piece->host_ns[step] = later(0, s->begin_ns[piece->section + 1] - clock);
                clock = later(clock, s->begin_ns[piece->section + 1]);
                break;
            }
        }
    }
}

static int64_t mean(const struct search *search, const int64_t *values)
{
    int64_t sum = 0;
    for (int step = 0; step < search->steps; step++)
        sum += values[step];
    return sum / search->steps;
}

/* The rest of a section is a piece where it is long, or where the section has no other one. */
static void drop_short_rests(struct search *search)
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

/* ---- dependences --------------------------------------------------------------------------------- */

enum { FARTHEST = 2 }; /* steps between a work and what it waits for */

/* How often a dependence was seen. */
struct seen {
    int times, told;
};

static size_t dep_index(const struct search *search, int task, int on, int distance)
{
    const size_t count = search->out->count;
    return ((size_t)task * count + (size_t)on) * FARTHEST + (size_t)distance;
}

/* The number of the step that is so many places earlier; -1: it is not there. */
static int step_before(const struct search *search, int step, int distance)
{
    const struct section_step *steps = search->sections->steps;
    const int place = steps[step].place - distance;
    while (step >= 0 && steps[step].place > place)
        step--;
    return step >= 0 && steps[step].place == place ? step : -1;
}

/* The step that a work is in; it is in one. */
static int step_of(const struct search *search, int work)
{
    const int *at = &search->work_at[(size_t)search->slot_of[work] * (size_t)search->steps];
    int step = 0;
    while (at[step] != work)
        step++;
    return step;
}

/* `told`: an event's id or the wait of a thread says so; else it is inferred. */
static void count_dep(const struct search *search, struct seen *counts, int task, int task_step,
                      int source, bool told)
{
    if (source < 0 || search->slot_of[source] < 0)
        return;
    const struct section_step *steps = search->sections->steps;
    const int on = search->piece_of[search->slot_of[source]];
    const int distance = steps[task_step].place - steps[step_of(search, source)].place;
    if (distance < 0 || distance >= FARTHEST || (distance == 0 && on >= task) ||
        search->out->items[on].stream == search->out->items[task].stream)
        return;
    counts[dep_index(search, task, on, distance)].times++;
    counts[dep_index(search, task, on, distance)].told += told;
}

static void count_deps(const struct search *search, struct seen *counts)
{
    const struct evidence *evidence = search->evidence;
    for (size_t i = 0; i < evidence->edge_count; i++) {
        const struct edge_found *edge = &evidence->edges[i];
        if (search->slot_of[edge->work] >= 0)
            count_dep(search, counts, search->piece_of[search->slot_of[edge->work]],
                      step_of(search, edge->work), edge->source, edge->word == IDLE_EVENT_ID);
    }
    for (size_t p = 0; p < search->out->count; p++) {
        const struct piece *piece = &search->out->items[p];
        for (int step = 0; piece->kind == PIECE_WAIT && step < search->steps; step++) {
            const int call = search->waits[piece->wait].calls[step];
            if (call >= 0)
                count_dep(search, counts, (int)p, step, evidence->waits[call].work, true);
        }
    }
}

/* Does every step agree that `task` began after `on` had ended, but for the last blocks of work that leaves room? */
static bool agrees(const struct search *search, int task, int on, int distance)
{
    enum { TAIL_NS = 100 * 1000 };
    const struct piece *a = &search->out->items[task], *b = &search->out->items[on];
    for (int step = 0; step < search->steps; step++) {
        const int before = step_before(search, step, distance);
        if (before >= 0 && a->kind == PIECE_WORK && a->start_ns[step] > 0 &&
            b->end_ns[before] > a->start_ns[step] + TAIL_NS)
            return false;
    }
    return true;
}

/* One that waits for the same stream, and more of it: so it waits for this one, too. */
static bool is_implied(const struct search *search, const struct seen *counts, int task, int on,
                       int distance)
{
    const struct piece *items = search->out->items;
    for (int d = 0; d <= distance; d++)
        for (int other = 0; other < (int)search->out->count; other++)
            if (items[other].kind == PIECE_WORK && items[other].stream == items[on].stream &&
                (d < distance || other > on) && counts[dep_index(search, task, other, d)].times > 0)
                return true;
    return false;
}

static bool add_dep(struct search *search, const struct seen *counts, int task, int on,
                    int distance, size_t *cap)
{
    struct pieces *out = search->out;
    const struct seen *seen = &counts[dep_index(search, task, on, distance)];
    if (seen->times == 0 || is_implied(search, counts, task, on, distance))
        return true;
    if (!arena_grow(search->arena, (void **)&out->deps, out->dep_count, cap, sizeof *out->deps))
        return false;
    out->deps[out->dep_count++] =
        (struct piece_dep){task, on, distance, seen->told * 2 > seen->times};
    return true;
}

static bool find_deps(struct search *search)
{
    const int count = (int)search->out->count;
    size_t cap = 0;
    struct seen *counts = ARENA_ARRAY(search->arena, dep_index(search, count, 0, 0), struct seen);
    if (!counts)
        return false;
    count_deps(search, counts);
    for (int task = 0; task < count; task++)
        for (int on = 0; on < count; on++)
            for (int d = 0; d < FARTHEST; d++) {
                struct seen *seen = &counts[dep_index(search, task, on, d)];
                if (seen->times * 2 < search->steps - d || !agrees(search, task, on, d))
                    seen->times = 0;
            }
    for (int task = 0; task < count; task++)
        for (int on = 0; on < count; on++)
            for (int d = 0; d < FARTHEST; d++)
                if (!add_dep(search, counts, task, on, d, &cap))
                    return false;
    return true;
}

/* What a piece waits for besides its dependences, its push and its stream is time of its own. */
static void add_own_gap(struct search *search, int at, int step)
{
    struct piece *piece = &search->out->items[at];
    const int first = first_work(search, piece, step);
    if (piece->kind != PIECE_WORK || first < 0 ||
        search->evidence->reasons[first].cause == IDLE_NOTHING)
        return;
    const int before = search->before[first];
    int64_t ready = push_time(search, first);
    if (before >= 0)
        ready = later(ready, search->rank->works[before].end_ns);
    for (size_t i = 0; i < search->out->dep_count; i++) {
        const struct piece_dep *dep = &search->out->deps[i];
        const int earlier = dep->task == at ? step_before(search, step, dep->distance) : -1;
        if (earlier >= 0)
            ready = later(ready, search->out->items[dep->on].end_ns[earlier]);
    }
    if (ready != INT64_MIN && piece->start_ns[step] > ready)
        piece->time_ns[step] += piece->start_ns[step] - ready;
}

static void add_own_gaps(struct search *search)
{
    for (int at = 0; at < (int)search->out->count; at++)
        for (int step = 0; step < search->steps; step++)
            add_own_gap(search, at, step);
}

/* The only dependence of a piece, on the one in front of it in its section. */
static bool waits_for_front(const struct search *search, size_t at)
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

/* Does a piece become part of the one in front of it: the rest of its section, or a wait for that one? */
static bool joins_front(const struct search *search, size_t at)
{
    const struct piece *piece = &search->out->items[at];
    if (at == 0 || piece->kind == PIECE_WORK || piece[-1].kind != PIECE_WORK ||
        piece[-1].section != piece->section)
        return false;
    return piece->kind == PIECE_HOST || waits_for_front(search, at);
}

static void join_front(struct search *search, struct piece *front, const struct piece *piece)
{
    front->sync_after |= piece->kind == PIECE_WAIT;
    for (int step = 0; step < search->steps && piece->kind == PIECE_HOST; step++)
        front->after_ns[step] += piece->host_ns[step];
}

/* CPU time behind the wait is in front of the next push. */
static void pass_on(struct search *search, struct piece *next, const struct piece *wait)
{
    for (int step = 0; step < search->steps; step++)
        next->host_ns[step] += wait->host_ns[step];
}

/* Rests and waits become part of the work in front of them, so there are fewer tasks. */
static bool join_pieces(struct search *search)
{
    struct pieces *out = search->out;
    int *number = filled(search->arena, out->count, -1);
    if (!number)
        return false;
    int kept = 0;
    for (size_t i = 0; i < out->count; i++) {
        const bool joined = joins_front(search, i);
        number[i] = joined ? number[i - 1] : kept++;
        if (joined)
            join_front(search, &out->items[i - 1], &out->items[i]);
        if (joined && out->items[i].kind == PIECE_WAIT && i + 1 < out->count)
            pass_on(search, &out->items[i + 1], &out->items[i]);
    }
    for (size_t i = 0; i < out->count; i++)
        if (i == 0 || number[i] != number[i - 1])
            out->items[number[i]] = out->items[i];
    out->count = (size_t)kept;
    size_t deps = 0;
    for (size_t i = 0; i < out->dep_count; i++) {
        struct piece_dep dep = out->deps[i];
        dep.task = number[dep.task];
        dep.on = number[dep.on];
        if (dep.task != dep.on || dep.distance > 0)
            out->deps[deps++] = dep;
    }
    out->dep_count = deps;
    return true;
}

static bool map_slots(struct search *search)
{
    search->piece_of = filled(search->arena, (size_t)search->slots, -1);
    for (size_t p = 0; search->piece_of && p < search->out->count; p++)
        for (int i = 0; i < search->out->items[p].slot_count; i++)
            search->piece_of[search->out->items[p].first_slot + i] = (int)p;
    return search->piece_of != NULL;
}

bool pieces_find(const struct job_rank *rank, const struct evidence *evidence,
                 const struct sections *sections, int detail, struct arena *arena,
                 struct pieces *out)
{
    struct search search = {.rank = rank,
                            .evidence = evidence,
                            .sections = sections,
                            .arena = arena,
                            .out = out,
                            .steps = (int)sections->step_count,
                            .streams = (int)rank->stream_count,
                            .long_ns = (int64_t)((double)sections->period_ns * detail / 1e6)};
    *out = (struct pieces){0};
    if (!fill_slots(&search) || !fill_waits(&search))
        return false;
    find_cuts(&search);
    if (!list_pieces(&search))
        return false;
    walk(&search);
    drop_short_rests(&search);
    walk(&search);
    if (!map_slots(&search) || !find_deps(&search))
        return false;
    add_own_gaps(&search);
    return join_pieces(&search);
}
