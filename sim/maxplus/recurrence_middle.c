/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recurrence_middle.c - the middle of a run, where a period is like any other; see
 * recurrence_internal.h.
 *
 * Durations are drawn a run of iterations at a time (timing.h) and lie one behind the other. Those of a
 * later stage are of earlier iterations, so the end of the run before stays in front:
 *
 *     drawn_from                                    place p - drawn_from belongs to period p
 *        | last run's end |     this run            |
 *        | stage - first  |  run_length iterations  |
 *
 * A block: first the stretches are added up. Then the steps are taken, period by period: this is the
 * recursion proper. Then come the ends it has left out, and at last the accounts.
 */
#include "recurrence_internal.h"

#include <string.h>

#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3") /* loops over lanes and blocks are to be vectorised */
#endif

/* ---- where everything is --------------------------------------------------------------------- */

static struct source source_of(const struct runner *run, const struct place *place)
{
    return (struct source){at_column(run, *place), place->plus_ns};
}

/* Where a step finds its stretch, at the beginning of the draws if it is one of them. */
static void place_stretch(const struct runner *run, int stretch, struct move *move)
{
    move->drawn = false;
    move->stretch = zeros_at(run);
    if (stretch == NONE)
        return;
    move->drawn = run->r->stretches[stretch].count == 1;
    move->stretch = stretch_at(run, stretch);
    if (move->drawn)
        move->drawn_from = drawn_at(run, run->r->parts[run->r->stretches[stretch].first]);
}

/* The last result of the move before is at hand; before the first one comes the last one, a period ago. */
static size_t at_hand(const struct runner *run, int index)
{
    int before = index ? index - 1 : run->r->step_count - 1;
    const struct step *step = &run->r->steps[before];
    const struct place end = {step->end == NONE ? step->start : step->end, index ? 0 : 1, 0};
    return at_column(run, end);
}

/* Two sources stand in the move itself, since most have no more; of one that has fewer the others are
   zeros. */
static void place_sources(struct runner *run, int index)
{
    const struct step *step = &run->r->steps[index];
    struct move *move = &run->moves[index];
    size_t hand = at_hand(run, index);
    int followed = NONE, placed = 0;
    for (int k = step->first; k < step->first + step->count; k++)
        if (source_of(run, &run->r->sources[k]).at == hand && run->r->sources[k].plus_ns == 0)
            followed = k;
    move->follows = followed != NONE;
    move->a = move->b = (struct source){zeros_at(run), 0};
    move->first = step->first;
    for (int k = step->first; k < step->first + step->count; k++) {
        struct source *near[] = {move->follows ? &move->b : &move->a, &move->b};
        if (k == followed)
            continue;
        if (placed < (move->follows ? 1 : 2))
            *near[placed++] = source_of(run, &run->r->sources[k]);
        else
            run->sources[move->first + move->count++] = source_of(run, &run->r->sources[k]);
    }
}

void recurrence_prepare_middle(struct runner *run)
{
    const struct recurrence *r = run->r;
    size_t scratch = zeros_at(run) + BLOCK;
    for (int i = 0; i < r->step_count; i++) {
        const struct step *step = &r->steps[i];
        struct move *move = &run->moves[i];
        const struct place start = {step->start, 0, 0}, end = {step->end, 0, 0};
        *move = (struct move){.start = step->start == NONE ? scratch : at_column(run, start),
                              .end = step->end == NONE ? scratch : at_column(run, end)};
        place_sources(run, i);
        place_stretch(run, step->stretch, move);
    }
}

/* ---- draws ----------------------------------------------------------------------------------- */

/* The run of an operation that `iteration` begins. */
static void draw_op(struct runner *run, int op, int64_t iteration, int64_t *out)
{
    const struct simulate_options *options = run->options;
    if (run->lanes == 1)
        timing_draw_run(run->r->timing, op, iteration, options->seed, options->replication, out);
    else
        timing_draw_across(run->r->timing, op, iteration, options->seed, options->replication,
                           (int64_t(*)[RANDOM_LANES])out);
}

static void draw_duration(struct runner *run, int d, int64_t iteration)
{
    const struct recurrence *r = run->r;
    const struct duration *duration = &r->durations[d];
    int numbers = run->run_length * run->lanes;
    size_t kept = (size_t)(duration->stage - r->first_stage) * (size_t)run->lanes;
    int64_t *from = run->columns + drawn_at(run, d), *out = from + kept;
    memmove(from, from + numbers, kept * sizeof *from);
    if (duration->op_count == 1) {
        draw_op(run, r->graph.ops[duration->op_first], iteration, out);
        return;
    }
    for (int i = 0; i < numbers; i++)
        out[i] = duration->constant_ns;
    for (int i = 0; i < duration->op_count; i++) {
        int op = r->graph.ops[duration->op_first + i];
        if (r->timing->ops[op].draw < 0)
            continue;
        draw_op(run, op, iteration, run->one_draw);
        take_later(out, run->one_draw, numbers);
    }
}

/* The durations of the run that begins with this period. Iterations before the first have none. */
static void draw_runs(struct runner *run, int64_t period)
{
    int64_t iteration = period - run->r->first_stage;
    for (int d = 0; iteration >= 0 && d < run->r->duration_count; d++)
        draw_duration(run, d, iteration);
    run->drawn_from = period;
}

/* Those that the first periods need, too. */
static void draw_first(struct runner *run, int64_t period)
{
    const struct recurrence *r = run->r;
    int64_t from = period - (period - r->first_stage) % run->run_length, back = 0;
    for (int d = 0; d < r->duration_count; d++)
        while (r->durations[d].stage - r->first_stage > back)
            back += run->run_length;
    for (int64_t at = from - back; at <= from; at += run->run_length)
        draw_runs(run, at);
}

/* ---- the recursion --------------------------------------------------------------------------- */

static inline __attribute__((always_inline)) void add_stretches(struct runner *run, int values)
{
    const struct recurrence *r = run->r;
    for (int i = 0; i < r->step_count; i++)
        if (run->moves[i].drawn)
            run->moves[i].stretch = run->moves[i].drawn_from + run->drawn_at;
    for (int s = 0; s < r->stretch_count; s++) {
        const struct stretch *stretch = &r->stretches[s];
        if (stretch->count == 1)
            continue;
        int64_t *restrict out = run->columns + stretch_at(run, s);
        for (int k = 0; k < stretch->count; k++) {
            const int64_t *in =
                run->columns + drawn_at(run, r->parts[stretch->first + k]) + run->drawn_at;
            for (int i = 0; i < values; i++)
                out[i] = (k ? out[i] : 0) + in[i];
        }
    }
}

static inline __attribute__((always_inline)) void add_lates(struct runner *run, int values)
{
    const struct recurrence *r = run->r;
    for (const struct late *late = r->lates; late < r->lates + r->late_count; late++) {
        const struct place end = {late->column, 0, 0};
        const int64_t *from = run->columns + at_column(run, late->from);
        const int64_t *ns = run->columns + drawn_at(run, late->duration) + run->drawn_at;
        int64_t *restrict out = run->columns + at_column(run, end), plus_ns = late->from.plus_ns;
        for (int i = 0; i < values; i++)
            out[i] = from[i] + ns[i] + plus_ns;
    }
}

/* A branch, not a choice: only the operations behind the move wait for it. */
#define BRANCH(value) __asm__("" : "+g"(value))

static void advance_one(struct runner *run, int count)
{
    if (run->r->step_count == 0)
        return;
    int64_t *restrict columns = run->columns, before = columns[at_hand(run, 0)];
    const struct move *last = run->moves + run->r->step_count;
    for (size_t j = 0; j < (size_t)count; j++)
        for (const struct move *move = run->moves; move < last; move++) {
            int64_t time = before;
            if (!move->follows) {
                time = columns[move->a.at + j] + move->a.plus_ns;
                BRANCH(time);
            }
            int64_t other = columns[move->b.at + j] + move->b.plus_ns;
            time = other > time ? other : time;
            for (int k = move->first; k < move->first + move->count; k++) {
                other = columns[run->sources[k].at + j] + run->sources[k].plus_ns;
                time = other > time ? other : time;
            }
            before = time + columns[move->stretch + j];
            columns[move->start + j] = time;
            columns[move->end + j] = before;
        }
}

static inline __attribute__((always_inline)) void raise_to(vector *time, const int64_t *columns,
                                                           const struct source *source)
{
    vector other = *(const vector *)(const void *)(columns + source->at) + source->plus_ns;
    vector later = other > *time;
    *time = (other & later) | (*time & ~later);
}

static inline __attribute__((always_inline)) void advance_vectors(struct runner *run, int count)
{
    if (run->r->step_count == 0)
        return;
    int64_t *columns = run->columns;
    const struct move *last = run->moves + run->r->step_count;
    vector before = *(vector *)(void *)(columns + at_hand(run, 0));
    for (int j = 0; j < count; j++, columns += RANDOM_LANES)
        for (const struct move *move = run->moves; move < last; move++) {
            vector time = before;
            if (!move->follows)
                time = *(vector *)(void *)(columns + move->a.at) + move->a.plus_ns;
            raise_to(&time, columns, &move->b);
            for (int k = move->first; k < move->first + move->count; k++)
                raise_to(&time, columns, &run->sources[k]);
            before = time + *(vector *)(void *)(columns + move->stretch);
            *(vector *)(void *)(columns + move->start) = time;
            *(vector *)(void *)(columns + move->end) = before;
        }
}

/* `count` periods, in the columns; then the account can be made. */
static inline __attribute__((always_inline)) void advance_any(struct runner *run, int count)
{
    add_stretches(run, count * run->lanes);
    if (run->lanes == 1)
        advance_one(run, count);
    else
        advance_vectors(run, count);
    add_lates(run, count * run->lanes);
}

/* ---- for three levels of the instruction set ------------------------------------------------- */

#define DEFINE_ADVANCE(NAME, ATTRIBUTE)                                                            \
    ATTRIBUTE static void advance_##NAME(struct runner *run, int count)                            \
    {                                                                                              \
        advance_any(run, count);                                                                   \
    }

DEFINE_ADVANCE(plain, )
#if defined __x86_64__
DEFINE_ADVANCE(avx2, __attribute__((target("avx2"))))
DEFINE_ADVANCE(avx512, __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw"))))
#endif

static void advance(struct runner *run, int count)
{
#if defined __x86_64__
    if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        advance_avx512(run, count);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        advance_avx2(run, count);
        return;
    }
#endif
    advance_plain(run, count);
}

/* ---- between the edges and the middle -------------------------------------------------------- */

/* The columns' history, from the ring. */
static void enter_columns(struct runner *run, int64_t period)
{
    const struct recurrence *r = run->r;
    size_t bytes = (size_t)run->lanes * sizeof *run->columns;
    for (int v = 0; v < r->graph.event_count; v++)
        for (int h = 1; h <= r->history; h++)
            for (int end = 0; end <= 1; end++) {
                const struct place place = {end ? r->ends[v] : r->starts[v], h, 0};
                if (place.column != NONE)
                    memcpy(run->columns + at_column(run, place),
                           recurrence_edge_time(run, v, period - h, end), bytes);
            }
}

/* A time of all lanes. */
static void fetch(const struct runner *run, const struct place *place, int64_t *out)
{
    const int64_t *in = run->columns + at_column(run, *place);
    for (int l = 0; l < run->lanes; l++)
        out[l] = in[l] + place->plus_ns;
}

/* The ring, and since when streams have been idle, from the columns before `period`; they have been
   moved so that their history is what is before it. */
static void leave_columns(struct runner *run, int64_t period)
{
    const struct recurrence *r = run->r;
    for (int v = 0; v < r->graph.event_count; v++)
        for (int h = 1; h <= r->reach; h++)
            for (int end = 0; end <= 1; end++) {
                struct origin origin = recurrence_resolve(r, (struct event_ref){v, h, end});
                const struct place place = {origin.ref.end ? r->ends[origin.ref.event]
                                                           : r->starts[origin.ref.event],
                                            origin.ref.height, origin.plus_ns};
                fetch(run, &place, recurrence_edge_time(run, v, period - h, end));
            }
    for (int w = 0; w < r->graph.work_count; w++) {
        const struct event_work *work = &r->graph.works[w];
        run->pending_count[work->stream] = 0;
        memcpy(&run->since_ns[work->stream * run->lanes],
               recurrence_edge_time(run, work->done.event, period - 1 - work->done.height,
                                    work->done.end),
               (size_t)run->lanes * sizeof *run->since_ns);
    }
}

static void keep_history(struct runner *run, int count)
{
    const struct recurrence *r = run->r;
    for (int c = 0; c < r->column_count; c++) {
        int64_t *column = run->columns + (size_t)c * run->stride;
        memmove(column, column + count * run->lanes,
                (size_t)(r->history * run->lanes) * sizeof *column);
    }
}

/* How many periods the next block has: as many as fit, and no more than have been drawn. */
static int block_length(const struct runner *run, int64_t period)
{
    int64_t left = run->r->last - period, drawn = run->drawn_from + run->run_length - period;
    int64_t count = BLOCK / run->lanes < left ? BLOCK / run->lanes : left;
    count = drawn < count ? drawn : count;
    return (int)(run->lanes == 1 ? count / SUMS * SUMS : count); /* values are added up in SUMS */
}

void recurrence_run_middle(struct runner *run)
{
    const struct recurrence *r = run->r;
    enter_columns(run, r->first);
    draw_first(run, r->first);
    for (int64_t period = r->first; !run->stopped && !run->unclear;) {
        if (period == run->drawn_from + run->run_length)
            draw_runs(run, period);
        int count = block_length(run, period);
        if (count == 0)
            break;
        run->drawn_at = (size_t)(period - run->drawn_from) * (size_t)run->lanes;
        advance(run, count);
        recurrence_book(run, count * run->lanes);
        recurrence_note_periods(run, period, count, period);
        keep_history(run, count);
        period += count;
        run->reached = period;
    }
    leave_columns(run, run->reached);
}
