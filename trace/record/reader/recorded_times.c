/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded_times.c - when the device did what a process pushed, on the host's clock: records of CUPTI in a recording.
 *
 * A record has a correlation, which belongs to the number of a call (PUSHED_AS); the call's own item comes behind that number
 * (PUSH). CUPTI's clock is mapped piece by piece: a straight line between two ties (CLOCK), before the first and behind
 * the last one the line through both.
 */
#include "recorded_internal.h"

#include <stdlib.h>

struct tie {
    uint64_t there_ns;
    int64_t here_ns;
};

struct alias {
    uint64_t correlation, number;
};

struct reading {
    struct recorded_job *job;
    struct recorded_process *process;
    struct tie *ties;
    struct alias *aliases;
    size_t tie_count, alias_count;
};

/* ---- the items -------------------------------------------------------------------------------- */

static size_t count_items(const struct tapes *tapes, enum recording_kind kind)
{
    size_t count = 0;
    for (size_t t = 0; t < tapes->thread_count; t++)
        for (size_t i = 0; i < tapes->threads[t].count; i++)
            count += tapes->threads[t].items[i]->kind == kind;
    return count;
}

static void take(struct reading *reading, const struct recording_item *item)
{
    struct recorded_times *times = &reading->process->times;
    const uint64_t *word = item->word;
    switch ((enum recording_kind)item->kind) {
    case RECORDING_CLOCK:
        reading->ties[reading->tie_count++] = (struct tie){word[0], (int64_t)word[1]};
        break;
    case RECORDING_PUSHED_AS:
        reading->aliases[reading->alias_count++] = (struct alias){word[1], word[0]};
        break;
    case RECORDING_DEVICE_OP:
        if (word[4] == 0 || word[5] < word[4])
            break; /* CUPTI has no times of it */
        times->items[times->count++] =
            (struct recorded_span){.push = word[0],
                                   .node = word[6],
                                   .start_ns = (int64_t)(word[4] & INT64_MAX),
                                   .end_ns = (int64_t)(word[5] & INT64_MAX)};
        break;
    case RECORDING_LOST: times->lost += word[0] < UINT32_MAX ? word[0] : UINT32_MAX; break;
    default: break;
    }
}

static bool take_all(struct reading *reading)
{
    const struct tapes *tapes = &reading->process->tapes;
    struct arena *arena = reading->job->arena;
    reading->ties = ARENA_ARRAY(arena, count_items(tapes, RECORDING_CLOCK) + 1, struct tie);
    reading->aliases =
        ARENA_ARRAY(arena, count_items(tapes, RECORDING_PUSHED_AS) + 1, struct alias);
    reading->process->times.items =
        ARENA_ARRAY(arena, count_items(tapes, RECORDING_DEVICE_OP) + 1, struct recorded_span);
    if (!reading->ties || !reading->aliases || !reading->process->times.items)
        return false;
    for (size_t t = 0; t < tapes->thread_count; t++)
        for (size_t i = 0; i < tapes->threads[t].count; i++)
            take(reading, tapes->threads[t].items[i]);
    return true;
}

/* ---- calls ------------------------------------------------------------------------------------ */

static int by_correlation(const void *left, const void *right)
{
    const struct alias *a = left, *b = right;
    return (a->correlation > b->correlation) - (a->correlation < b->correlation);
}

/* Correlations become numbers of calls; 0: that of no recorded call. */
static void name_calls(struct reading *reading)
{
    struct recorded_times *times = &reading->process->times;
    if (reading->alias_count > 1)
        qsort(reading->aliases, reading->alias_count, sizeof *reading->aliases, by_correlation);
    for (size_t i = 0; i < times->count; i++) {
        const struct alias key = {.correlation = times->items[i].push};
        const struct alias *found = reading->alias_count > 0
                                        ? bsearch(&key, reading->aliases, reading->alias_count,
                                                  sizeof *reading->aliases, by_correlation)
                                        : NULL;
        times->items[i].push = found ? found->number : 0;
    }
}

/* ---- the clock -------------------------------------------------------------------------------- */

static int by_time(const void *left, const void *right)
{
    const struct tie *a = left, *b = right;
    return (a->there_ns > b->there_ns) - (a->there_ns < b->there_ns);
}

static int64_t on_line(const struct tie *a, const struct tie *b, int64_t there_ns)
{
    const double width = (double)(b->there_ns - a->there_ns);
    const double rate = width > 0 ? (double)(b->here_ns - a->here_ns) / width : 1;
    const double since = (double)(there_ns - (int64_t)a->there_ns) * rate;
    return since > -2e18 && since < 2e18 ? a->here_ns + (int64_t)since : a->here_ns;
}

static int64_t to_host_anyhow(const struct reading *reading, int64_t there_ns)
{
    const struct tie *first = reading->ties, *last = first + reading->tie_count - 1;
    size_t low = 0, high = reading->tie_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if ((int64_t)first[middle].there_ns <= there_ns)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return on_line(first, last, there_ns);
    if (low == reading->tie_count)
        return last->here_ns + on_line(first, last, there_ns) -
               on_line(first, last, (int64_t)last->there_ns);
    return on_line(&first[low - 1], &first[low], there_ns);
}

static int64_t to_host(const struct reading *reading, int64_t there_ns)
{
    const int64_t here_ns = to_host_anyhow(reading, there_ns);
    return here_ns < 0 ? 0 : here_ns > INT64_MAX / 2 ? INT64_MAX / 2 : here_ns;
}

/* Ties that let the host's clock go back while the device's goes on contradict each other: no time passes between them. */
static void put_span_on_host(const struct reading *reading, struct recorded_span *span)
{
    span->start_ns = to_host(reading, span->start_ns);
    span->end_ns = to_host(reading, span->end_ns);
    recorded_clock_contradict(reading->job, span->start_ns - span->end_ns);
    if (span->end_ns < span->start_ns)
        span->end_ns = span->start_ns;
}

/* False: nothing ties the clocks, and times say nothing. */
static bool put_on_host(struct reading *reading)
{
    struct recorded_times *times = &reading->process->times;
    if (reading->tie_count == 0)
        return false;
    qsort(reading->ties, reading->tie_count, sizeof *reading->ties, by_time);
    for (size_t i = 0; i < reading->tie_count; i++)
        if (reading->ties[i].here_ns < 0 || reading->ties[i].here_ns > INT64_MAX / 4 ||
            reading->ties[i].there_ns > INT64_MAX / 2)
            return false;
    for (size_t i = 0; i < times->count; i++)
        put_span_on_host(reading, &times->items[i]);
    return true;
}

/* ---- all -------------------------------------------------------------------------------------- */

static int by_call(const void *left, const void *right)
{
    const struct recorded_span *a = left, *b = right;
    if (a->push != b->push)
        return a->push < b->push ? -1 : 1;
    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

bool recorded_times_read(struct recorded_job *job, struct recorded_process *process)
{
    struct reading reading = {.job = job, .process = process};
    struct recorded_times *times = &process->times;
    if (!take_all(&reading))
        return false;
    name_calls(&reading);
    if (!put_on_host(&reading))
        times->count = 0;
    if (times->count > 1)
        qsort(times->items, times->count, sizeof *times->items, by_call);
    while (times->unasked < times->count && times->items[times->unasked].push == 0)
        times->unasked++;
    job->timed |= times->count > times->unasked;
    return true;
}

size_t recorded_times_find(const struct recorded_process *process, uint64_t push,
                           const struct recorded_span **out)
{
    const struct recorded_times *times = &process->times;
    size_t low = 0, high = times->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (times->items[middle].push < push)
            low = middle + 1;
        else
            high = middle;
    }
    *out = &times->items[low];
    for (high = low; high < times->count && times->items[high].push == push;)
        high++;
    return push > 0 ? high - low : 0;
}
