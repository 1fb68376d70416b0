/*
 * recurrence_middle.c - the middle of a run, where a period is like any other; see
 * recurrence_internal.h.
 *
 * First the durations of the block are drawn. Then the steps, one an event in the order of their
 * causes, are taken period by period: this is the recursion proper. At last the accounts are added up.
 */
#include "sim/recurrence_internal.h"

#include <string.h>

#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3") /* loops over lanes and blocks are to be vectorised */
#endif

/* Offsets, and durations that stay; those of number NONE are zero. */
void recurrence_prepare_middle(struct runner *run)
{
    const struct recurrence *r = run->r;
    for (int i = 0; i < r->step_count; i++) {
        const struct step *step = &r->steps[i];
        size_t start = at_column(run, (struct place){step->column, 0});
        bool takes_time = step->duration != NONE;
        run->moves[i] = (struct move){start,
                                      takes_time ? start + run->stride : start,
                                      duration_at(run, step->duration),
                                      step->first,
                                      0,
                                      0};
        for (int k = step->first; k < step->first + step->count; k++) {
            size_t source = at_column(run, r->sources[k]);
            if (i > 0 && source == run->moves[i - 1].end)
                run->moves[i].carry = -1;
            else
                run->offsets[step->first + run->moves[i].count++] = source;
        }
    }
    for (int d = 0; d < r->duration_count; d++)
        for (int j = 0; j < BLOCK * run->lanes; j++)
            run->columns[duration_at(run, d) + (size_t)j] = r->durations[d].constant_ns;
}

/* ---- draws ----------------------------------------------------------------------------------- */

/* The draws of an operation for the run an iteration is in. */
static const int64_t *draw_run(struct runner *run, int op, int64_t iteration)
{
    const struct timing *timing = run->r->timing;
    const struct simulate_options *options = run->options;
    struct drawn *drawn = &run->drawn[timing->ops[op].draw];
    int64_t number = iteration / RANDOM_RUN;
    int place = (int)(number % 2);
    if (drawn->run[place] == number)
        return drawn->ns[place];
    drawn->run[place] = number;
    if (run->lanes == 1)
        timing_draw_run(timing, op, iteration, options->seed, options->replication,
                        drawn->ns[place]);
    else
        timing_draw_across(timing, op, iteration, options->seed, options->replication,
                           (int64_t(*)[RANDOM_LANES])drawn->ns[place]);
    return drawn->ns[place];
}

/* The block's draws of one operation: the end of one run and the beginning of the next. */
static void draw_op(struct runner *run, const struct duration *duration, int op, int64_t period,
                    bool alone, int64_t *out)
{
    for (int64_t done = 0; done < BLOCK;) {
        int64_t iteration = period + done - duration->stage, from = iteration % RANDOM_RUN;
        int64_t count = RANDOM_RUN - from < BLOCK - done ? RANDOM_RUN - from : BLOCK - done;
        const int64_t *in = draw_run(run, op, iteration) + from * run->lanes;
        size_t numbers = (size_t)(count * run->lanes);
        if (alone)
            memcpy(out + done * run->lanes, in, numbers * sizeof *out);
        else
            take_later(out + done * run->lanes, in, (int)numbers);
        done += count;
    }
}

static void draw_block(struct runner *run, int64_t period)
{
    const struct recurrence *r = run->r;
    for (int d = 0; d < r->duration_count; d++) {
        const struct duration *duration = &r->durations[d];
        int64_t *out = run->columns + duration_at(run, d);
        bool alone = duration->op_count == 1;
        if (!duration->varies)
            continue;
        for (int j = 0; !alone && j < BLOCK * run->lanes; j++)
            out[j] = duration->constant_ns;
        for (int i = 0; i < duration->op_count; i++) {
            int op = r->graph.ops[duration->op_first + i];
            if (r->timing->ops[op].dist)
                draw_op(run, duration, op, period, alone, out);
        }
    }
}

/* ---- the recursion --------------------------------------------------------------------------- */

static void advance_one(struct runner *run, int count)
{
    int64_t *restrict columns = run->columns, before = 0;
    const struct move *last = run->moves + run->r->step_count;
    for (size_t j = 0; j < (size_t)count; j++)
        for (const struct move *move = run->moves; move < last; move++) {
            const size_t *source = run->offsets + move->first;
            int64_t time = before & move->carry;
            for (int k = 0; k < move->count; k++) {
                int64_t other = columns[source[k] + j];
                time = other > time ? other : time;
            }
            before = time + columns[move->duration + j];
            columns[move->start + j] = time;
            columns[move->end + j] = before;
        }
}

typedef int64_t vector __attribute__((vector_size(8 * RANDOM_LANES), aligned(8), may_alias));

static inline __attribute__((always_inline)) void advance_vectors(struct runner *run, int count)
{
    vector *restrict columns = (vector *)(void *)run->columns, before = {0};
    const struct move *last = run->moves + run->r->step_count;
    for (size_t j = 0; j < (size_t)count; j++)
        for (const struct move *move = run->moves; move < last; move++) {
            const size_t *source = run->offsets + move->first;
            vector time = before & move->carry;
            for (int k = 0; k < move->count; k++) {
                vector other = columns[source[k] / RANDOM_LANES + j], later = other > time;
                time = (other & later) | (time & ~later);
            }
            before = time + columns[move->duration / RANDOM_LANES + j];
            columns[move->start / RANDOM_LANES + j] = time;
            columns[move->end / RANDOM_LANES + j] = before;
        }
}

/* ---- for three levels of the instruction set ------------------------------------------------- */

#define DEFINE_ADVANCE(NAME, ATTRIBUTE)                                                            \
    ATTRIBUTE static void advance_##NAME(struct runner *run, int count)                            \
    {                                                                                              \
        advance_vectors(run, count);                                                               \
    }

DEFINE_ADVANCE(plain, )
#if defined __x86_64__
DEFINE_ADVANCE(avx2, __attribute__((target("avx2"))))
DEFINE_ADVANCE(avx512, __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw"))))
#endif

static void advance(struct runner *run, int count)
{
    if (run->lanes == 1) {
        advance_one(run, count);
        return;
    }
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
    for (int v = 0; v < r->graph.event_count; v++)
        for (int h = 1; r->columns[v] != NONE && h <= r->history; h++) {
            const struct place place = {r->columns[v], h};
            size_t bytes = (size_t)run->lanes * sizeof *run->columns;
            int64_t *to = run->columns + at_column(run, place);
            memcpy(to, recurrence_edge_time(run, v, period - h, false), bytes);
            if (r->graph.events[v].op_count)
                memcpy(to + run->stride, recurrence_edge_time(run, v, period - h, true), bytes);
        }
}

/* The ring, and since when streams have been idle, from the columns before `period`; they have been
   moved so that their history is what is before it. */
static void leave_columns(struct runner *run, int64_t period)
{
    const struct recurrence *r = run->r;
    size_t bytes = (size_t)run->lanes * sizeof *run->columns;
    for (int v = 0; v < r->graph.event_count; v++)
        for (int h = 1; h <= r->history; h++)
            for (int end = 0; end <= 1; end++) {
                struct event_ref ref = recurrence_resolve(r, (struct event_ref){v, h, end});
                const struct place place = {r->columns[ref.event] + ref.end, ref.height};
                memcpy(recurrence_edge_time(run, v, period - h, end),
                       run->columns + at_column(run, place), bytes);
            }
    for (int w = 0; w < r->graph.work_count; w++) {
        const struct event_work *work = &r->graph.works[w];
        run->pending_count[work->stream] = 0;
        memcpy(&run->since_ns[work->stream * run->lanes],
               recurrence_edge_time(run, work->done.event, period - 1 - work->done.height,
                                    work->done.end),
               bytes);
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

void recurrence_run_middle(struct runner *run)
{
    const struct recurrence *r = run->r;
    enter_columns(run, r->first);
    for (int64_t period = r->first; period < r->last && !run->stopped;) {
        int count = r->last - period < BLOCK ? (int)(r->last - period) / SUMS * SUMS : BLOCK;
        if (count == 0)
            break;
        draw_block(run, period);
        advance(run, count);
        recurrence_book(run, count * run->lanes);
        recurrence_note_periods(run, period, count, period);
        keep_history(run, count);
        period += count;
        run->reached = period;
    }
    leave_columns(run, run->reached);
}
