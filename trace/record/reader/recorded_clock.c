/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded_clock.c - the times of a recording's operations, from what the device measured and when its calls were made.
 *
 *     call        |--took--|
 *     device                   |==== its work ====|     start and end as measured
 *     stream   ...work before|                          ready: all before it has ended
 *
 * Where the stream was idle the work began a launch latency after its push; where it was not, what lies between `ready` and
 * its start is the device's own and counts as its time. A wait takes as long as what it waits for; only the time behind
 * that is the CPU's. The work of several ranks begins with the last of them: its time is the least over the ranks.
 *
 * The device's times are records of CUPTI. A record has a correlation, which belongs to the number of a call (PUSHED_AS); the
 * call's own item comes behind that number (PUSH). CUPTI's clock is mapped piece by piece: a straight line between two ties
 * (CLOCK), before the first and behind the last one the line through both.
 */
#include "recorded_internal.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/sort.h"

/* Clocks that are tied well disagree by less. */
#define TRUSTED_NS 100000

void recorded_clock_contradict(struct recorded_job *job, int64_t by_ns)
{
    job->contradiction_ns = max_i64(job->contradiction_ns, by_ns);
}

/* ---- measured times -------------------------------------------------------------------------- */

struct recorded_clock_tie {
    uint64_t there_ns;
    int64_t here_ns;
};

struct alias {
    uint64_t correlation, number;
};

struct recorded_clock_reading {
    struct recorded_job *job;
    struct recorded_process *process;
    struct recorded_clock_tie *ties;
    struct alias *aliases;
    size_t tie_count, alias_count;
};

/* ---- the items -------------------------------------------------------------------------------- */

static size_t recorded_clock_count_items(const struct tapes *tapes, enum recording_kind kind)
{
    size_t count = 0;
    for (size_t t = 0; t < tapes->thread_count; t++)
        for (size_t i = 0; i < tapes->threads[t].count; i++)
            count += tapes->threads[t].items[i]->kind == kind;
    return count;
}

static void recorded_clock_read_time(struct recorded_clock_reading *reading,
                                     const struct recording_item *item)
{
    struct recorded_times *times = &reading->process->times;
    const uint64_t *word = item->word;
    switch ((enum recording_kind)item->kind) {
    case RECORDING_CLOCK:
        reading->ties[reading->tie_count++] =
            (struct recorded_clock_tie){word[0], (int64_t)word[1]};
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

static bool recorded_clock_read_times(struct recorded_clock_reading *reading)
{
    const struct tapes *tapes = &reading->process->tapes;
    struct arena *arena = reading->job->arena;
    reading->ties = ARENA_ARRAY(arena, recorded_clock_count_items(tapes, RECORDING_CLOCK) + 1,
                                struct recorded_clock_tie);
    reading->aliases = ARENA_ARRAY(
        arena, recorded_clock_count_items(tapes, RECORDING_PUSHED_AS) + 1, struct alias);
    reading->process->times.items = ARENA_ARRAY(
        arena, recorded_clock_count_items(tapes, RECORDING_DEVICE_OP) + 1, struct recorded_span);
    if (!reading->ties || !reading->aliases || !reading->process->times.items)
        return false;
    for (size_t t = 0; t < tapes->thread_count; t++)
        for (size_t i = 0; i < tapes->threads[t].count; i++)
            recorded_clock_read_time(reading, tapes->threads[t].items[i]);
    return true;
}

/* ---- calls ------------------------------------------------------------------------------------ */

static int by_correlation(const void *left, const void *right)
{
    const struct alias *a = left, *b = right;
    return (a->correlation > b->correlation) - (a->correlation < b->correlation);
}

/* Correlations become numbers of calls; 0: that of no recorded call. */
static void name_calls(struct recorded_clock_reading *reading)
{
    struct recorded_times *times = &reading->process->times;
    SORT(reading->aliases, reading->alias_count, by_correlation);
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

static int recorded_clock_by_time(const void *left, const void *right)
{
    const struct recorded_clock_tie *a = left, *b = right;
    return (a->there_ns > b->there_ns) - (a->there_ns < b->there_ns);
}

static int64_t on_line(const struct recorded_clock_tie *a, const struct recorded_clock_tie *b,
                       int64_t there_ns)
{
    const double width = (double)(b->there_ns - a->there_ns);
    const double rate = width > 0 ? (double)(b->here_ns - a->here_ns) / width : 1;
    const double since = (double)(there_ns - (int64_t)a->there_ns) * rate;
    return since > -2e18 && since < 2e18 ? a->here_ns + (int64_t)since : a->here_ns;
}

static int64_t to_host_anyhow(const struct recorded_clock_reading *reading, int64_t there_ns)
{
    const struct recorded_clock_tie *first = reading->ties, *last = first + reading->tie_count - 1;
    const size_t low = SORT_FIRST(i, 0, reading->tie_count, (int64_t)first[i].there_ns > there_ns);
    if (low == 0)
        return on_line(first, last, there_ns);
    if (low == reading->tie_count)
        return last->here_ns + on_line(first, last, there_ns) -
               on_line(first, last, (int64_t)last->there_ns);
    return on_line(&first[low - 1], &first[low], there_ns);
}

static int64_t to_host(const struct recorded_clock_reading *reading, int64_t there_ns)
{
    const int64_t here_ns = to_host_anyhow(reading, there_ns);
    return here_ns < 0 ? 0 : here_ns > INT64_MAX / 2 ? INT64_MAX / 2 : here_ns;
}

/* False: nothing ties the clocks, and times say nothing. */
static bool put_on_host(struct recorded_clock_reading *reading)
{
    struct recorded_times *times = &reading->process->times;
    if (reading->tie_count == 0)
        return false;
    SORT(reading->ties, reading->tie_count, recorded_clock_by_time);
    for (size_t i = 0; i < reading->tie_count; i++)
        if (reading->ties[i].here_ns < 0 || reading->ties[i].here_ns > INT64_MAX / 4 ||
            reading->ties[i].there_ns > INT64_MAX / 2)
            return false;
    for (size_t i = 0; i < times->count; i++) {
        /* Ties that let the host's clock go back while the device's goes on contradict each other: no time passes between them. */
        struct recorded_span *span = &times->items[i];
        span->start_ns = to_host(reading, span->start_ns);
        span->end_ns = to_host(reading, span->end_ns);
        recorded_clock_contradict(reading->job, span->start_ns - span->end_ns);
        if (span->end_ns < span->start_ns)
            span->end_ns = span->start_ns;
    }
    return true;
}

/* ---- all -------------------------------------------------------------------------------------- */

static int recorded_clock_by_call(const void *left, const void *right)
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
    struct recorded_clock_reading reading = {.job = job, .process = process};
    struct recorded_times *times = &process->times;
    if (!recorded_clock_read_times(&reading))
        return false;
    name_calls(&reading);
    if (!put_on_host(&reading))
        times->count = 0;
    SORT(times->items, times->count, recorded_clock_by_call);
    while (times->unasked < times->count && times->items[times->unasked].push == 0)
        times->unasked++;
    job->timed |= times->count > times->unasked;
    return true;
}

size_t recorded_times_find(const struct recorded_process *process, uint64_t push,
                           const struct recorded_span **out)
{
    const struct recorded_times *times = &process->times;
    const size_t low = SORT_FIRST(i, 0, times->count, times->items[i].push >= push);
    size_t high = low;
    *out = &times->items[low];
    while (high < times->count && times->items[high].push == push)
        high++;
    return push > 0 ? high - low : 0;
}

/* ---- the walk --------------------------------------------------------------------------------- */

/* Of the default stream's order: each of its work comes after that of all blocking streams, and theirs after it. */
bool recorded_comes_before(const struct recorded_stream *other,
                           const struct recorded_stream *stream)
{
    const bool legacy = stream->handle == RECORDED_LEGACY;
    return other == stream ||
           (stream->blocking && other->blocking && (legacy || other->handle == RECORDED_LEGACY));
}

int64_t recorded_clock_ready(const struct recorded_process *process, int device,
                             const struct recorded_stream *stream)
{
    int64_t ready_ns = 0;
    if (stream && !stream->blocking)
        return stream->ready_ns;
    for (size_t i = 0; i < process->stream_count; i++) {
        const struct recorded_stream *other = &process->streams[i];
        if (other->device == device && (!stream || recorded_comes_before(other, stream)))
            ready_ns = max_i64(ready_ns, other->ready_ns);
    }
    return ready_ns;
}

/* A time from the end of a push, or the moment when its work began if that was before. */
static int64_t effect_ns(const struct recorded_op *op)
{
    return op->begin_ns + recorded_clock_host_time(op);
}

static bool note_latency(struct recorded_job *job, const struct recorded_op *op)
{
    const struct recorded_device_time *time = &op->device_time;
    if (time->ready_ns > effect_ns(op))
        return true;
    if (!ARENA_GROW(job->arena, job->latencies, job->latency_count, job->latency_cap))
        return false;
    job->latencies[job->latency_count++] = max_i64(time->start_ns - effect_ns(op), 0);
    return true;
}

bool recorded_clock_push(struct recorded_job *job, const struct recorded_process *process,
                         uint64_t push, struct recorded_stream *stream, struct recorded_op *op)
{
    const struct recorded_span *spans;
    struct recorded_device_time *time = &op->device_time;
    const size_t count = recorded_times_find(process, push, &spans);
    op->push = push;
    time->pushes = op->op.kind != OP_CALLBACK;
    if (stream->capture >= 0)
        return true;
    time->ready_ns = recorded_clock_ready(process, stream->device, stream);
    job->pushes += time->pushes;
    job->untimed_pushes += time->pushes && count == 0;
    stream->ready_ns = RECORDED_UNKNOWN_NS;
    if (count == 0)
        return true;
    time->known = true;
    time->start_ns = spans[0].start_ns;
    time->end_ns = spans[0].end_ns;
    for (size_t i = 1; i < count; i++) {
        time->start_ns = spans[i].start_ns < time->start_ns ? spans[i].start_ns : time->start_ns;
        time->end_ns = max_i64(time->end_ns, spans[i].end_ns);
    }
    stream->ready_ns = time->end_ns;
    recorded_clock_contradict(job, op->begin_ns - time->start_ns);
    return note_latency(job, op);
}

void recorded_clock_sync(struct recorded_job *job, struct recorded_op *op, int64_t ready_ns)
{
    op->device_time.ready_ns = ready_ns;
    if (ready_ns < RECORDED_UNKNOWN_NS)
        recorded_clock_contradict(job, ready_ns - op->end_ns);
}

void recorded_clock_graph(struct recorded_job *job, const struct recorded_process *process,
                          uint64_t push, struct recorded_graph *graph)
{
    const struct recorded_span *spans;
    const size_t count = recorded_times_find(process, push, &spans);
    size_t pushes = 0;
    for (size_t i = 0; i < graph->ops.count; i++)
        pushes += graph->ops.items[i].device_time.pushes;
    job->untimed_graphs += count > 0 && pushes != count;
    if (pushes != count)
        return;
    for (size_t i = 0, at = 0; i < graph->ops.count; i++) {
        struct recorded_device_time *time = &graph->ops.items[i].device_time;
        if (!time->pushes)
            continue;
        time->sum_ns += (double)(spans[at].end_ns - spans[at].start_ns);
        time->count++;
        at++;
    }
}

/* ---- the plan --------------------------------------------------------------------------------- */

int64_t recorded_clock_host_time(const struct recorded_op *op)
{
    const struct recorded_device_time *time = &op->device_time;
    const int64_t took_ns = op->end_ns - op->begin_ns;
    const int64_t until_ns = time->known ? time->start_ns - op->begin_ns : took_ns;
    return max_i64(until_ns < took_ns ? until_ns : took_ns, 0);
}

int64_t recorded_clock_time(const struct recorded_op *op)
{
    const struct recorded_device_time *time = &op->device_time;
    const bool meets = time->meets_ns > 0, busy = time->ready_ns > effect_ns(op);
    if (!time->known)
        return time->count > 0 ? (int64_t)(time->sum_ns / (double)time->count) : 0;
    if (meets)
        return time->meets_ns;
    return time->end_ns -
           (busy && time->ready_ns < time->start_ns ? time->ready_ns : time->start_ns);
}

/* The lower quartile: some launches were late for reasons of their own. */
int64_t recorded_clock_latency(struct recorded_job *job)
{
    if (job->latency_count == 0)
        return 0;
    sort_i64(job->latencies, job->latency_count);
    return job->latencies[job->latency_count / 4];
}

/* ---- operations of several ranks -------------------------------------------------------------- */

/* A rank's part in something: the n-th collective of a communicator, or the n-th message from one member to another. */
struct recorded_clock_part {
    int comm, from, to; /* of a collective -1 */
    size_t process;     /* the side */
    int device;
    int64_t begin_ns;
    size_t number; /* among those of this side */
    struct recorded_op *op;
};

struct recorded_clock_parts {
    struct recorded_clock_part *items;
    size_t count, cap;
};

static int own_member(const struct recorded_job *job, int comm, size_t process, int device)
{
    const struct recorded_comm *at = &job->comms[comm];
    for (int i = 0; i < (int)at->size; i++)
        if (at->members[i].known && at->members[i].process == process &&
            at->members[i].device == device)
            return i;
    return -1;
}

static bool recorded_clock_add_part(struct recorded_job *job, struct recorded_clock_parts *parts,
                                    size_t process, struct recorded_op *op, int comm,
                                    const struct p2p_part *message)
{
    struct recorded_clock_part part = {.comm = comm,
                                       .from = -1,
                                       .to = -1,
                                       .process = process,
                                       .device = message ? message->device : op->device,
                                       .begin_ns = op->begin_ns,
                                       .op = op};
    if (message && !message->is_collective) {
        const int own = own_member(job, comm, process, message->device);
        part.from = message->send ? own : message->peer;
        part.to = message->send ? message->peer : own;
    }
    if (!ARENA_GROW(job->arena, parts->items, parts->count, parts->cap))
        return false;
    parts->items[parts->count++] = part;
    return true;
}

static bool recorded_clock_list_parts(struct recorded_job *job, struct recorded_clock_parts *parts)
{
    for (size_t p = 0; p < job->process_count; p++)
        for (size_t t = 0; t < job->processes[p].tapes.thread_count; t++) {
            struct recorded_ops *ops = &job->processes[p].threads[t].ops;
            for (size_t i = 0; i < ops->count; i++) {
                struct recorded_op *op = &ops->items[i];
                if (!op->device_time.known)
                    continue;
                if (op->op.kind == OP_COLLECTIVE &&
                    !recorded_clock_add_part(job, parts, p, op, op->op.comm, NULL))
                    return false;
                for (size_t k = 0; op->op.kind == OP_GROUP && k < op->op.part_count; k++)
                    if (!recorded_clock_add_part(job, parts, p, op, op->op.parts[k].comm,
                                                 &op->op.parts[k]))
                        return false;
            }
        }
    return true;
}

#define COMPARE(field)                                                                             \
    if (a->field != b->field)                                                                      \
    return a->field < b->field ? -1 : 1

static int compare_channel(const struct recorded_clock_part *a, const struct recorded_clock_part *b)
{
    COMPARE(comm);
    COMPARE(from);
    COMPARE(to);
    return 0;
}

static bool is_same_side(const struct recorded_clock_part *a, const struct recorded_clock_part *b)
{
    return compare_channel(a, b) == 0 && a->process == b->process && a->device == b->device;
}

static int by_side(const void *left, const void *right)
{
    const struct recorded_clock_part *a = left, *b = right;
    const int order = compare_channel(a, b);
    if (order != 0)
        return order;
    COMPARE(process);
    COMPARE(device);
    COMPARE(begin_ns);
    return 0;
}

static int recorded_clock_by_number(const void *left, const void *right)
{
    const struct recorded_clock_part *a = left, *b = right;
    const int order = compare_channel(a, b);
    if (order != 0)
        return order;
    COMPARE(number);
    return 0;
}

static int64_t part_ns(const struct recorded_clock_part *part)
{
    return part->op->device_time.end_ns - part->op->device_time.start_ns;
}

/* A group lasts as long as the longest of what it takes part in. */
static void parts_meet(struct recorded_clock_part *parts, size_t count)
{
    int64_t least_ns = INT64_MAX;
    for (size_t i = 0; i < count; i++)
        least_ns = part_ns(&parts[i]) < least_ns ? part_ns(&parts[i]) : least_ns;
    for (size_t i = 0; count > 1 && i < count; i++) {
        int64_t *meets_ns = &parts[i].op->device_time.meets_ns;
        *meets_ns = max_i64(*meets_ns, least_ns);
    }
}

bool recorded_clock_meet(struct recorded_job *job)
{
    struct recorded_clock_parts parts = {0};
    if (!recorded_clock_list_parts(job, &parts))
        return false;
    if (parts.count == 0)
        return true;
    SORT(parts.items, parts.count, by_side);
    for (size_t i = 1; i < parts.count; i++)
        if (is_same_side(&parts.items[i - 1], &parts.items[i]))
            parts.items[i].number = parts.items[i - 1].number + 1;
    SORT(parts.items, parts.count, recorded_clock_by_number);
    for (size_t i = 0, end; i < parts.count; i = end) {
        for (end = i + 1; end < parts.count &&
                          recorded_clock_by_number(&parts.items[i], &parts.items[end]) == 0;)
            end++;
        parts_meet(&parts.items[i], end - i);
    }
    return true;
}

/* ---- warnings --------------------------------------------------------------------------------- */

static void warn_process(const struct recorded_job *job, const struct recorded_process *process)
{
    const struct recorded_times *times = &process->times;
    double unasked_ns = 0;
    for (size_t i = 0; i < times->unasked; i++)
        unasked_ns += (double)(times->items[i].end_ns - times->items[i].start_ns);
    if (times->lost > 0)
        diag_warn(job->diag, "%s: CUPTI lost %" PRIu64 " record%s", process->tapes.path,
                  times->lost, times->lost == 1 ? "" : "s");
    if (times->unasked > 0)
        diag_warn(job->diag,
                  "%s: %zu measured operations of %.3g ms in all belong to no recorded call, and "
                  "are not in the plan",
                  process->tapes.path, times->unasked, unasked_ns / 1e6);
}

void recorded_clock_warn(const struct recorded_job *job)
{
    if (!job->timed)
        return;
    for (size_t i = 0; i < job->process_count; i++)
        warn_process(job, &job->processes[i]);
    if (job->untimed_pushes > 0)
        diag_warn(job->diag,
                  "%zu of %zu operations of devices have no measured time: in a prediction "
                  "they take none",
                  job->untimed_pushes, job->pushes);
    if (job->untimed_graphs > 0)
        diag_warn(job->diag,
                  "%zu launch%s of graphs had another number of operations than their captures: "
                  "their times are not used",
                  job->untimed_graphs, job->untimed_graphs == 1 ? "" : "es");
    if (job->contradiction_ns > TRUSTED_NS)
        diag_warn(job->diag,
                  "measured times contradict the calls by up to %.3g ms: the clocks of device and "
                  "host were not tied well",
                  (double)job->contradiction_ns / 1e6);
}
