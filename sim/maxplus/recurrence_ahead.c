/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recurrence_ahead.c - what is in flight where the host runs ahead of the device: an iteration is retired when
 * it is submitted and over when the device, too, is through with it; see recurrence_internal.h.
 *
 *     driver    admits 4     admits 5      admits 6          period p admits, and retires depth before
 *     device         over 1         over 2         over 3    periods whose iterations are over: next
 *
 * How many are in flight at an admission depends on what is over by then. Of things at the same instant times
 * do not tell the order. It is known where the driver waited for the end, or where only a submission was
 * lacking, which the driver waits for. Else it is unclear, and the machine has to tell.
 */
#include "recurrence_internal.h"

/* ---- making it ------------------------------------------------------------------------------- */

/* After how many periods is what the driver retires over for sure? One more than can be asked: never. What
   other ranks do is left out, so that the search of a rank does not grow with their number: a longer answer
   than the true one is a tie that the machine decides. */
static int find_passed(struct recurrence *r, int rank)
{
    int periods =
        recurrence_periods_behind(r, rank, r->graph.finishes[rank], r->graph.drivers[rank]);
    return periods <= r->reach ? periods : INT32_MAX;
}

bool recurrence_make_ahead(struct recurrence *r)
{
    size_t ranks = (size_t)r->program->ranks;
    r->finishes = ARENA_ARRAY(&r->arena, ranks, struct place);
    r->passed = ARENA_ARRAY(&r->arena, ranks, int);
    for (int rank = 0; !r->arena.failed && rank < r->program->ranks; rank++) {
        r->finishes[rank] =
            recurrence_place(r, (struct event_ref){r->graph.finishes[rank], 0, false});
        r->passed[rank] = find_passed(r, rank);
    }
    return !r->arena.failed;
}

/* ---- in a run -------------------------------------------------------------------------------- */

/* More cannot be unfinished. */
static int ring_length(const struct runner *run)
{
    return run->r->program->window + run->r->program->periods + 2;
}

bool recurrence_open_ahead(struct runner *run)
{
    size_t count = (size_t)run->r->program->ranks * (size_t)run->lanes;
    run->ahead = ARENA_ARRAY(&run->arena, count, struct ahead);
    run->finish_ns = ARENA_ARRAY(&run->arena, count * (size_t)ring_length(run), int64_t);
    run->retire_ns = ARENA_ARRAY(&run->arena, count * (size_t)ring_length(run), int64_t);
    for (size_t i = 0; run->ahead && i < count; i++)
        run->ahead[i] = (struct ahead){run->r->program->periods, NONE};
    return !run->arena.failed;
}

static int64_t time_of(const struct runner *run, int event, const struct place *place,
                       int64_t period, int64_t block, int lane)
{
    if (block < 0)
        return recurrence_edge_time(run, event, period, false)[lane];
    size_t at = at_column(run, *place) + (size_t)(period - block) * (size_t)run->lanes;
    return run->columns[at + (size_t)lane] + place->plus_ns;
}

int64_t recurrence_driver_ns(const struct runner *run, int rank, int64_t period, int64_t block,
                             int lane)
{
    return time_of(run, run->r->graph.drivers[rank], &run->r->drivers[rank], period, block, lane);
}

int64_t recurrence_finish_ns(const struct runner *run, int rank, int64_t period, int64_t block,
                             int lane)
{
    if (!recurrence_retires(run->r, period))
        return 0;
    return time_of(run, run->r->graph.finishes[rank], &run->r->finishes[rank], period, block, lane);
}

static void note_point(struct runner *run, int change, int64_t time_ns)
{
    run->in_flight += change;
    const struct in_flight_point now = {
        time_ns, run->in_flight, run->in_flight * recurrence_iteration_bytes(run->r->program)};
    if (run->options->in_flight)
        in_flight_change(run->options->in_flight, &now);
}

/* One rank in one lane. */
struct step_at {
    int rank, lane;
    int64_t period, now_ns;
    size_t index;
};

static size_t ring_place(const struct runner *run, const struct step_at *at, int64_t period)
{
    size_t length = (size_t)ring_length(run);
    return at->index * length + (size_t)(period % (int64_t)length);
}

/* The iteration that the driver retired in that period: is it over before it goes on now? */
static bool is_over(struct runner *run, const struct step_at *at, int64_t period, int64_t over_ns)
{
    if (over_ns != at->now_ns)
        return over_ns < at->now_ns;
    run->unclear |= at->period - period < run->r->passed[at->rank] &&
                    run->finish_ns[ring_place(run, at, period)] == at->now_ns;
    return true;
}

/* Those that are over by now; with `all` the others, too. */
static void pass(struct runner *run, const struct step_at *at, bool all)
{
    struct ahead *ahead = &run->ahead[at->index];
    for (; ahead->next <= at->period; ahead->next++) {
        size_t place = ring_place(run, at, ahead->next);
        int64_t over_ns = run->finish_ns[place] > run->retire_ns[place] ? run->finish_ns[place]
                                                                        : run->retire_ns[place];
        if (!all && !is_over(run, at, ahead->next, over_ns))
            return;
        if (at->rank == 0 && at->lane == 0)
            note_point(run, -1, over_ns);
    }
}

static void retire(struct runner *run, const struct step_at *at, int64_t finish_ns)
{
    struct ahead *ahead = &run->ahead[at->index];
    int64_t over_ns = finish_ns > at->now_ns ? finish_ns : at->now_ns;
    run->unclear |= over_ns == ahead->admitted_ns || at->period - ahead->next >= ring_length(run);
    run->finish_ns[ring_place(run, at, at->period)] = finish_ns;
    run->retire_ns[ring_place(run, at, at->period)] = at->now_ns;
    run->in_flight_ns[at->lane] += (uint64_t)over_ns;
}

static void admit(struct runner *run, const struct step_at *at)
{
    const struct recurrence *r = run->r;
    struct ahead *ahead = &run->ahead[at->index];
    int64_t number = at->period - r->program->min_stage;
    int64_t in_flight = number + 1 - (ahead->next - r->program->periods);
    ahead->admitted_ns = at->now_ns;
    run->in_flight_ns[at->lane] -= (uint64_t)at->now_ns;
    if (in_flight > run->in_flight_max[at->lane])
        run->in_flight_max[at->lane] = in_flight;
    if (number == r->iterations - 1 && at->now_ns > run->admitted_ns[at->lane])
        run->admitted_ns[at->lane] = at->now_ns;
    if (at->rank == 0 && at->lane == 0)
        note_point(run, 1, at->now_ns);
}

void recurrence_note_ahead(struct runner *run, int64_t period, int64_t block)
{
    const struct recurrence *r = run->r;
    bool admits = recurrence_admits(r, period);
    for (int rank = 0; rank < r->program->ranks; rank++)
        for (int lane = 0; lane < run->lanes; lane++) {
            const struct step_at at = {rank, lane, period,
                                       recurrence_driver_ns(run, rank, period, block, lane),
                                       (size_t)(rank * run->lanes + lane)};
            if (recurrence_retires(r, period))
                retire(run, &at, recurrence_finish_ns(run, rank, period, block, lane));
            pass(run, &at, !admits);
            if (admits)
                admit(run, &at);
        }
}
