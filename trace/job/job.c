/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - see job.h. Work is joined with calls by sorting both by the correlation id. */
#include "job.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call_names.h"

#include "base/array.h"
#include "base/printable.h"
#include "base/sort.h"

void job_init(struct job *job)
{
    *job = (struct job){0};
    arena_init(&job->arena, 0);
    plan_init(&job->plan);
}

static void free_rank(struct job_rank *rank)
{
    free(rank->calls);
    free(rank->works);
    free(rank->ranges);
    free(rank->acts);
    free(rank->syncs);
    free(rank->streams);
    free(rank->gloo_events);
    free(rank->marks);
    free(rank->operators);
    free(rank->memories);
    free(rank->accesses);
    free(rank->touches);
    free(rank->pushed);
    free(rank->by_stream);
    free(rank->first_call);
}

void job_fini(struct job *job)
{
    for (size_t i = 0; i < job->rank_count; i++)
        free_rank(&job->ranks[i]);
    free(job->ranks);
    free(job->threads);
    plan_fini(&job->plan);
    arena_fini(&job->arena);
}

struct job_rank *job_add_rank(struct job *job, const char *file)
{
    if (!ARRAY_GROW(job->ranks, job->rank_count, job->rank_cap))
        return NULL;
    struct job_rank *rank = &job->ranks[job->rank_count++];
    *rank = (struct job_rank){
        .file = file, .path = file, .number = -1, .world = -1, .first_device = -1};
    return rank;
}

void job_drop_rank(struct job *job, size_t rank)
{
    assert(rank < job->rank_count);
    free_rank(&job->ranks[rank]);
    job->rank_count--;
    for (size_t i = rank; i < job->rank_count; i++)
        job->ranks[i] = job->ranks[i + 1];
}

int job_intern(struct job *job, const char *name)
{
    char text[PLAN_MAX_NAME + 1];
    size_t length = 0;
    while (*name) {
        unsigned code;
        const size_t bytes = printable_decode(name, &code), kept = printable_acts(code) ? 1 : bytes;
        if (length + kept > PLAN_MAX_NAME)
            break;
        if (printable_acts(code))
            text[length] = '?';
        else
            memcpy(text + length, name, bytes);
        length += kept;
        name += bytes;
    }
    text[length] = 0;
    return names_intern(&job->names, &job->arena, length > 0 ? text : "unnamed");
}

#define ADD(rank, what, item)                                                                      \
    (ARRAY_GROW((rank)->what##s, (rank)->what##_count, (rank)->what##_cap) &&                      \
     ((rank)->what##s[(rank)->what##_count++] = *(item), true))

/* Ids are unsigned, of 32 bits; a file that shows them signed has negative ones. -1 is none. */
static int64_t unsigned_id(int64_t id)
{
    return id < -1 && id >= INT32_MIN ? id + (INT64_C(1) << 32) : id;
}

bool job_add_call(struct job_rank *rank, const struct job_call *call)
{
    struct job_call own = *call;
    own.correlation = unsigned_id(call->correlation);
    return ADD(rank, call, &own);
}

bool job_add_work(struct job_rank *rank, const struct job_work *work)
{
    struct job_work own = *work;
    own.correlation = unsigned_id(work->correlation);
    return ADD(rank, work, &own);
}

bool job_add_range(struct job_rank *rank, const struct job_range *range)
{
    return ADD(rank, range, range);
}

bool job_add_act(struct job_rank *rank, const struct job_act *act)
{
    return ADD(rank, act, act);
}

bool job_add_sync(struct job_rank *rank, const struct job_sync *sync)
{
    struct job_sync own = *sync;
    own.correlation = unsigned_id(sync->correlation);
    own.record = unsigned_id(sync->record);
    return ADD(rank, sync, &own);
}

bool job_add_operator(struct job_rank *rank, const struct job_operator *item)
{
    return ADD(rank, operator, item);
}

bool job_add_gloo_event(struct job_rank *rank, const struct job_gloo_event *event)
{
    return ADD(rank, gloo_event, event);
}

bool job_add_mark(struct job_rank *rank, const struct job_mark *mark)
{
    return ADD(rank, mark, mark);
}

/* The largest numbers of a stream and a device. Streams that are told by their handles, which are larger, have the rest
   of the handle by the largest number. */
static const int64_t most_number = INT64_C(1) << 60;
enum { NEXT_DEVICE = 100000, MOST_DEVICE = 4095 };

int job_stream(struct job_rank *rank, int64_t device, int64_t number)
{
    device = device < 0 || device > MOST_DEVICE ? 0 : device;
    number = number < -most_number || number > most_number ? number % most_number : number;
    if (rank->first_device < 0)
        rank->first_device = device;
    const struct job_stream stream = {.number =
                                          number + (device - rank->first_device) * NEXT_DEVICE,
                                      .device = device,
                                      .own = number};
    for (size_t i = 0; i < rank->stream_count; i++)
        if (rank->streams[i].number == stream.number)
            return (int)i;
    return ADD(rank, stream, &stream) ? (int)rank->stream_count - 1 : -1;
}

const char *job_stream_name(const struct job_stream *stream, char text[STREAM_TEXT])
{
    snprintf(text, STREAM_TEXT, "s%" PRId64, stream->number);
    return stream->name ? stream->name : text;
}

bool job_times_are_sane(int64_t start_ns, int64_t end_ns)
{
    const int64_t most_ns = INT64_C(3) * 1000 * 1000 * 1000 * 1000 * 1000 * 1000; /* 95 years */
    return start_ns >= -most_ns && start_ns <= end_ns && end_ns <= most_ns;
}

void job_leave_out(struct job_reversed *reversed, const char *name)
{
    if (reversed->count++ == 0)
        snprintf(reversed->first, sizeof reversed->first, "%s", name);
}

enum status job_check_reversed(const struct job_reversed *reversed, size_t kept, const char *file,
                               struct diag *diag)
{
    enum { ONE_OF = 10 };
    const size_t count = reversed->count, all = count + kept;
    if (count > 1 && count > all / ONE_OF)
        return diag_error(diag, STATUS_INPUT,
                          "%s: %zu of its %zu events end before they begin or have no time, first "
                          "'%s': expected fewer than one in %d",
                          file, count, all, reversed->first, (int)ONE_OF);
    if (count > 0)
        diag_warn(
            diag,
            "%s: events that end before they begin, or have no time, are left out: %zu, first '%s'",
            file, count, reversed->first);
    return STATUS_OK;
}

/* ---- sorting and joining --------------------------------------------------------------------- */

/* Of two calls that begin together the one around the other comes first. */
static int compare_calls(const void *left, const void *right)
{
    const struct job_call *a = left, *b = right;
    int order = compare_i64(a->thread, b->thread);
    order = order ? order : compare_i64(a->start_ns, b->start_ns);
    order = order ? order : compare_i64(b->end_ns, a->end_ns);
    order = order ? order : compare_i64(a->correlation, b->correlation);
    return order ? order : compare_i64(a->name, b->name);
}

static int compare_works(const void *left, const void *right)
{
    const struct job_work *a = left, *b = right;
    int order = compare_i64(a->start_ns, b->start_ns);
    order = order ? order : compare_i64(a->end_ns, b->end_ns);
    order = order ? order : compare_i64(a->correlation, b->correlation);
    order = order ? order : compare_i64(a->stream, b->stream);
    return order ? order : compare_i64(a->name, b->name);
}

static int compare_syncs(const void *left, const void *right)
{
    const struct job_sync *a = left, *b = right;
    return compare_i64(a->correlation, b->correlation);
}

static int job_compare_keys(const void *left, const void *right)
{
    const struct job_key *a = left, *b = right;
    int order = compare_i64(a->correlation, b->correlation);
    return order ? order : compare_i64(a->call, b->call);
}

struct job_key *job_key_calls(const struct job_rank *rank)
{
    struct job_key *keys = malloc((rank->call_count + 1) * sizeof *keys);
    if (!keys)
        return NULL;
    for (size_t i = 0; i < rank->call_count; i++)
        keys[i] = (struct job_key){rank->calls[i].correlation, (int)i};
    SORT(keys, rank->call_count, job_compare_keys);
    return keys;
}

size_t job_find_key(const struct job_key *keys, size_t count, int64_t correlation)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (keys[middle].correlation < correlation)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The call with this id that began at or before `start_ns`, the last of them; of nested calls (a runtime call
   within its driver call) the outer one. -1: none has the id. */
static int find_call(const struct job_rank *rank, const struct job_key *keys, int64_t correlation)
{
    const size_t at = job_find_key(keys, rank->call_count, correlation);
    const bool found = at < rank->call_count && keys[at].correlation == correlation;
    return found && correlation > 0 ? keys[at].call : -1;
}

static bool join_works(struct job_rank *rank)
{
    struct job_key *keys = job_key_calls(rank);
    rank->pushed = malloc((rank->work_count + 1) * sizeof *rank->pushed);
    if (!keys || !rank->pushed) {
        free(keys);
        return false;
    }
    for (size_t i = 0; i < rank->work_count; i++) {
        struct job_work *work = &rank->works[i];
        work->call = find_call(rank, keys, work->correlation);
        if (work->call >= 0)
            rank->calls[work->call].work_count++;
    }
    free(keys);
    int next = 0;
    for (size_t i = 0; i < rank->call_count; i++) {
        rank->calls[i].first_work = next;
        next += rank->calls[i].work_count;
        rank->calls[i].work_count = 0;
    }
    for (size_t i = 0; i < rank->work_count; i++) {
        if (rank->works[i].call < 0)
            continue;
        struct job_call *call = &rank->calls[rank->works[i].call];
        rank->pushed[call->first_work + call->work_count++] = (int)i;
    }
    return true;
}

static void join_syncs(struct job_rank *rank)
{
    SORT(rank->syncs, rank->sync_count, compare_syncs);
    for (size_t i = 0; i < rank->call_count; i++) {
        const struct job_sync key = {.correlation = rank->calls[i].correlation};
        const struct job_sync *found =
            rank->sync_count == 0
                ? NULL
                : bsearch(&key, rank->syncs, rank->sync_count, sizeof *rank->syncs, compare_syncs);
        rank->calls[i].sync = found ? (int)(found - rank->syncs) : -1;
    }
}

static bool job_list_streams(struct job_rank *rank)
{
    rank->by_stream = malloc((rank->work_count + 1) * sizeof *rank->by_stream);
    if (!rank->by_stream)
        return false;
    for (size_t i = 0; i < rank->work_count; i++)
        rank->streams[rank->works[i].stream].count++;
    int next = 0;
    for (size_t i = 0; i < rank->stream_count; i++) {
        rank->streams[i].first = next;
        next += rank->streams[i].count;
        rank->streams[i].count = 0;
    }
    for (size_t i = 0; i < rank->work_count; i++) {
        struct job_stream *stream = &rank->streams[rank->works[i].stream];
        rank->by_stream[stream->first + stream->count++] = (int)i;
    }
    return true;
}

static bool list_threads(struct job_rank *rank)
{
    rank->first_call = calloc(rank->threads.count + 1, sizeof *rank->first_call);
    if (!rank->first_call)
        return false;
    for (size_t i = 0; i < rank->call_count; i++)
        rank->first_call[rank->calls[i].thread + 1]++;
    for (size_t i = 0; i < rank->threads.count; i++)
        rank->first_call[i + 1] += rank->first_call[i];
    return true;
}

static size_t leave_out_works(struct job_work *works, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || works[i].end_ns == works[i].start_ns ||
            compare_works(&works[kept - 1], &works[i]) != 0)
            works[kept++] = works[i];
    return kept;
}

static void leave_out_duplicates(struct job_rank *rank, struct diag *diag)
{
    const size_t before = rank->call_count + rank->work_count;
    /* A thread does one call after the other and a stream one work, so equal ones that take time are one; so are calls of one
       id. */
    size_t kept = 0;
    for (size_t i = 0; i < rank->call_count; i++) {
        const bool told =
            rank->calls[i].end_ns > rank->calls[i].start_ns || rank->calls[i].correlation > 0;
        if (kept == 0 || !told || compare_calls(&rank->calls[kept - 1], &rank->calls[i]) != 0)
            rank->calls[kept++] = rank->calls[i];
    }
    rank->call_count = kept;
    rank->work_count = leave_out_works(rank->works, rank->work_count);
    rank->duplicated = before - rank->call_count - rank->work_count;
    if (rank->duplicated > 0)
        diag_warn(diag,
                  "%s: repeated calls and operations of the device count once: "
                  "%zu are left out",
                  rank->file, rank->duplicated);
}

/* An array that will not grow any more takes no more room than it needs. */
#define JOB_TRIM(items, count, cap)                                                                \
    do {                                                                                           \
        void *trimmed_ = (count) < (cap) ? realloc(items, ((count) + 1) * sizeof *(items)) : NULL; \
        if (trimmed_) {                                                                            \
            (items) = trimmed_;                                                                    \
            (cap) = (count) + 1;                                                                   \
        }                                                                                          \
    } while (0)

static bool finish_rank(struct job_rank *rank, struct diag *diag)
{
    JOB_TRIM(rank->calls, rank->call_count, rank->call_cap);
    JOB_TRIM(rank->works, rank->work_count, rank->work_cap);
    SORT(rank->calls, rank->call_count, compare_calls);
    SORT(rank->works, rank->work_count, compare_works);
    leave_out_duplicates(rank, diag);
    if (!join_works(rank) || !job_list_streams(rank) || !list_threads(rank))
        return false;
    join_syncs(rank);
    return true;
}

/* ---- times ----------------------------------------------------------------------------------- */

static int64_t earliest(const struct job_rank *rank)
{
    int64_t first = rank->stepped ? rank->steps_begin_ns : INT64_MAX;
    for (size_t i = 0; i < rank->call_count; i++)
        first = rank->calls[i].start_ns < first ? rank->calls[i].start_ns : first;
    for (size_t i = 0; i < rank->work_count; i++)
        first = rank->works[i].start_ns < first ? rank->works[i].start_ns : first;
    return first;
}

#define SHIFT(items, count, by)                                                                    \
    for (size_t i_ = 0; i_ < (count); i_++) {                                                      \
        (items)[i_].start_ns -= (by);                                                              \
        (items)[i_].end_ns -= (by);                                                                \
    }

void job_shift(struct job_rank *rank, int64_t by_ns)
{
    SHIFT(rank->calls, rank->call_count, by_ns)
    SHIFT(rank->works, rank->work_count, by_ns)
    SHIFT(rank->ranges, rank->range_count, by_ns)
    SHIFT(rank->acts, rank->act_count, by_ns)
    SHIFT(rank->gloo_events, rank->gloo_event_count, by_ns)
    SHIFT(rank->marks, rank->mark_count, by_ns)
    SHIFT(rank->operators, rank->operator_count, by_ns)
    rank->steps_begin_ns -= by_ns;
    rank->steps_end_ns -= by_ns;
}

static int64_t latest(const struct job_rank *rank)
{
    int64_t last = rank->stepped ? rank->steps_end_ns : INT64_MIN;
    for (size_t i = 0; i < rank->call_count; i++)
        last = rank->calls[i].end_ns > last ? rank->calls[i].end_ns : last;
    for (size_t i = 0; i < rank->work_count; i++)
        last = rank->works[i].end_ns > last ? rank->works[i].end_ns : last;
    return last;
}

void job_begin_at_zero(struct job *job)
{
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < job->rank_count; i++) {
        const int64_t begin = earliest(&job->ranks[i]);
        first = begin < first ? begin : first;
    }
    for (size_t i = 0; i < job->rank_count; i++) {
        job_shift(&job->ranks[i], first);
        job->ranks[i].end_ns = latest(&job->ranks[i]);
    }
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* The steps of a rank: which it has, and the time of the wanted ones. */
struct steps {
    int64_t first, last; /* recorded; first > last: none */
    int64_t begin_ns, end_ns;
    bool has_first, has_last; /* of the wanted ones */
    int thread;
};

static struct steps job_find_steps(const struct job *job, const struct job_rank *rank,
                                   int64_t first, int64_t last)
{
    struct steps steps = {
        .first = INT64_MAX, .last = INT64_MIN, .begin_ns = INT64_MAX, .end_ns = INT64_MIN};
    for (size_t i = 0; i < rank->range_count; i++) {
        const struct job_range *range = &rank->ranges[i];
        int64_t number;
        if (!range_is_step(job->names.items[range->name], &number))
            continue;
        steps.first = number < steps.first ? number : steps.first;
        steps.last = number > steps.last ? number : steps.last;
        steps.has_first |= number == first;
        steps.has_last |= number == last;
        steps.thread = range->thread;
        if (number < first || number > last)
            continue;
        steps.begin_ns = range->start_ns < steps.begin_ns ? range->start_ns : steps.begin_ns;
        steps.end_ns = range->end_ns > steps.end_ns ? range->end_ns : steps.end_ns;
    }
    return steps;
}

static void job_keep_times(struct job_rank *rank, const struct steps *steps)
{
    rank->stepped = true;
    rank->stepper = steps->thread;
    rank->steps_begin_ns = steps->begin_ns;
    rank->steps_end_ns = steps->end_ns;
}

/* ---- the end ----------------------------------------------------------------------------------- */

/* Longer ones have a time that is none; and sums of so many times would not be within an int64_t. */
static const int64_t longest_rank_ns = INT64_C(24) * 3600 * 1000 * 1000 * 1000;

static enum status job_check_rank(const struct job_rank *rank, struct diag *diag)
{
    if (rank->work_count == 0 && (!rank->is_host || rank->call_count == 0))
        return diag_error(diag, STATUS_INPUT, "%s: no work of a GPU is recorded in it", rank->file);
    const int64_t begin_ns = earliest(rank), end_ns = latest(rank);
    if (end_ns - begin_ns > longest_rank_ns)
        return diag_error(
            diag, STATUS_INPUT,
            "%s: its first and last time are %.3g hours apart, so they are not from one clock",
            rank->file, (double)(end_ns - begin_ns) / 3.6e12);
    return STATUS_OK;
}

#ifdef SWSIM_CHECKS
/* What job_finish promises: calls by thread, works by start, each work among those of its call and of its stream once. */
static void check_finished(const struct job_rank *rank)
{
    for (size_t i = 0; i < rank->call_count; i++) {
        const struct job_call *call = &rank->calls[i];
        assert(call->thread >= 0 && (size_t)call->thread < rank->threads.count);
        assert((int)i >= rank->first_call[call->thread]);
        assert((int)i < rank->first_call[call->thread + 1]);
        assert(i == 0 || compare_calls(call - 1, call) <= 0);
        assert(call->sync < (int)rank->sync_count);
        for (int k = 0; k < call->work_count; k++)
            assert(rank->works[rank->pushed[call->first_work + k]].call == (int)i);
    }
    for (size_t i = 0; i < rank->work_count; i++) {
        assert(i == 0 || compare_works(&rank->works[i - 1], &rank->works[i]) <= 0);
        assert(rank->works[i].call < (int)rank->call_count);
    }
    size_t works = 0;
    for (size_t s = 0; s < rank->stream_count; works += (size_t)rank->streams[s++].count)
        for (int i = 0; i < rank->streams[s].count; i++)
            assert(rank->works[rank->by_stream[rank->streams[s].first + i]].stream == (int)s);
    assert(works == rank->work_count);
}
#endif

enum status job_finish(struct job *job, struct diag *diag)
{
    for (size_t i = 0; i < job->rank_count; i++) {
        /* Host work before the first call, and behind the last, is there where a step tells of it. */
        struct job_rank *rank = &job->ranks[i];
        const struct steps steps = job_find_steps(job, rank, INT64_MIN, INT64_MAX);
        if (!rank->stepped && steps.first <= steps.last)
            job_keep_times(rank, &steps);
        enum status status = job_check_rank(&job->ranks[i], diag);
        if (status != STATUS_OK)
            return status;
        if (!finish_rank(&job->ranks[i], diag))
            return diag_no_memory(diag);
#ifdef SWSIM_CHECKS
        check_finished(&job->ranks[i]);
#endif
    }
    job_begin_at_zero(job);
    return STATUS_OK;
}

/* ---- chosen steps ------------------------------------------------------------------------------ */

static enum status refuse_steps(const struct job_rank *rank, const struct steps *steps,
                                int64_t first, int64_t last, struct diag *diag)
{
    if (steps->first > steps->last)
        return diag_error(diag, STATUS_INPUT, "%s: no step of the profiler is recorded in it",
                          rank->file);
    return diag_error(diag, STATUS_INPUT,
                      "%s: the steps %lld to %lld are recorded in it, not %lld to %lld", rank->file,
                      (long long)steps->first, (long long)steps->last, (long long)first,
                      (long long)last);
}

/* Which call pushed each work; -1: none that is recorded. *first_id: the least id of a call, as ids rise with time. */
static bool job_find_pushers(struct job_rank *rank, int64_t *first_id)
{
    struct job_key *keys = job_key_calls(rank);
    if (!keys)
        return false;
    const size_t first = job_find_key(keys, rank->call_count, 1);
    *first_id = first < rank->call_count ? keys[first].correlation : 0;
    for (size_t i = 0; i < rank->work_count; i++)
        rank->works[i].call = find_call(rank, keys, rank->works[i].correlation);
    free(keys);
    return true;
}

static void keep_calls(struct job_rank *rank, const struct steps *steps)
{
    size_t kept = 0;
    for (size_t i = 0; i < rank->call_count; i++)
        if (rank->calls[i].start_ns >= steps->begin_ns && rank->calls[i].start_ns < steps->end_ns)
            rank->calls[kept++] = rank->calls[i];
    rank->call_count = kept;
}

/* Calls within the steps, the work that they pushed, and work without a recorded push that begins within the steps. Of
   that, work that was pushed before the first recorded call is of an earlier step. */
static enum status keep_between(struct job_rank *rank, const struct steps *steps, struct diag *diag)
{
    int64_t first_id;
    if (!job_find_pushers(rank, &first_id))
        return diag_no_memory(diag);
    keep_calls(rank, steps);
    struct job_key *keys = job_key_calls(rank);
    if (!keys)
        return diag_no_memory(diag);
    size_t kept = 0, earlier = 0;
    for (size_t i = 0; i < rank->work_count; i++) {
        const struct job_work *work = &rank->works[i];
        const bool within =
            work->call < 0 && work->start_ns >= steps->begin_ns && work->start_ns < steps->end_ns;
        const bool early = work->correlation > 0 && work->correlation < first_id;
        earlier += within && early;
        if ((within && !early) || find_call(rank, keys, work->correlation) >= 0)
            rank->works[kept++] = *work;
    }
    rank->work_count = kept;
    free(keys);
    if (earlier > 0)
        diag_warn(diag,
                  "%s: operations of the device that run within the steps and were launched before "
                  "the first call of the trace are left out: %zu",
                  rank->file, earlier);
    return STATUS_OK;
}

enum status job_keep_steps(struct job *job, int64_t first, int64_t last, struct diag *diag)
{
    for (size_t i = 0; i < job->rank_count; i++) {
        struct job_rank *rank = &job->ranks[i];
        const struct steps steps = job_find_steps(job, rank, first, last);
        if (!steps.has_first || !steps.has_last)
            return refuse_steps(rank, &steps, first, last, diag);
        const enum status status = keep_between(rank, &steps, diag);
        if (status != STATUS_OK)
            return status;
        job_keep_times(rank, &steps);
    }
    return STATUS_OK;
}

/* ---- threads --------------------------------------------------------------------------------- */

struct job_thread *job_add_thread(struct job *job, int rank, const char *name)
{
    struct job_thread *thread = ARENA_ARRAY(&job->arena, 1, struct job_thread);
    if (!thread || !ARRAY_GROW(job->threads, job->thread_count, job->thread_cap))
        return NULL;
    *thread = (struct job_thread){.host = {.rank = rank, .name = name}};
    job->threads[job->thread_count++] = thread;
    return thread;
}

int job_buffer(struct job *job, const char *name)
{
    struct plan *plan = &job->plan;
    const int buffer = names_intern(&job->buffers, &plan->arena, name);
    if (buffer < 0 || (size_t)buffer < plan->buffer_count)
        return buffer;
    if (!ARENA_GROW(&plan->arena, plan->buffers, plan->buffer_count, job->buffer_cap))
        return -1;
    plan->buffers[plan->buffer_count++] =
        (struct buffer){.name = job->buffers.items[buffer], .scope = SCOPE_SHARED};
    return buffer;
}

bool job_list_index(struct arena *arena, struct index_list *list, int index)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i] == index)
            return true;
    int *items = ARENA_ARRAY(arena, list->count + 1, int);
    if (!items)
        return false;
    if (list->count > 0)
        memcpy(items, list->items, list->count * sizeof *items);
    items[list->count++] = index;
    list->items = items;
    return true;
}

struct host_op *job_add_op(struct job *job, struct job_thread *thread, enum op_kind kind)
{
    struct host_thread *host = &thread->host;
    if (!ARENA_REGROW(&job->plan.arena, host->ops, host->op_count, thread->op_cap))
        return NULL;
    struct host_op *op = &host->ops[host->op_count++];
    *op = host_op_make(kind);
    return op;
}

int64_t job_pass_time(struct job_thread *thread, int64_t until_ns)
{
    const int64_t passes = until_ns > thread->clock_ns ? until_ns - thread->clock_ns : 0;
    thread->clock_ns += passes;
    return passes;
}

bool job_add_time(struct job *job, struct job_thread *thread, int64_t until_ns, const char *name)
{
    const int64_t passes = job_pass_time(thread, until_ns);
    struct host_op *op = passes > 0 ? job_add_op(job, thread, OP_HOST) : NULL;
    if (!op)
        return passes == 0;
    op->time_ns = passes;
    op->name = name;
    return true;
}

#ifdef SWSIM_CHECKS
static void check_index(int index, size_t count)
{
    assert(index >= -1 && (index < 0 || (size_t)index < count));
}

static void check_buffers(const struct plan *plan, const struct index_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        assert(list->items[i] >= 0 && (size_t)list->items[i] < plan->buffer_count);
}

static void check_object(const struct plan *plan, const struct host_op *op)
{
    switch (op_operand(op->kind)) {
    case OPERAND_EVENT: check_index(op->object, plan->events.count); break;
    case OPERAND_FLAG: check_index(op->object, plan->flags.count); break;
    case OPERAND_BUFFER: check_index(op->object, plan->buffer_count); break;
    case OPERAND_LOCK: check_index(op->object, plan->locks.count); break;
    default: assert(op->object == -1); break; /* no file tells of the others */
    }
}

static void job_check_part(const struct plan *plan, const struct p2p_part *part)
{
    assert(part->tag && (part->is_collective || (part->peer >= 0 && part->peer < plan->ranks)));
    check_index(part->comm, plan->comm_count);
    check_index(part->stream, plan->streams.count);
    check_buffers(plan, &part->reads);
    check_buffers(plan, &part->writes);
}

static void check_ops(const struct plan *plan, const struct host_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct host_op *op = &ops[i];
        assert(op->time_ns >= 0 && op->host_time_ns >= 0 && host_op_bytes(op) >= 0);
        check_index(op->stream, plan->streams.count);
        check_index(op->comm, plan->comm_count);
        if (host_op_is_graph(op))
            check_index(op->graph, plan->graph_count);
        check_object(plan, op);
        check_buffers(plan, host_op_reads(op));
        check_buffers(plan, host_op_writes(op));
        for (size_t k = 0; k < host_op_part_count(op); k++)
            job_check_part(plan, &op->parts[k]);
        if (host_op_may_have_body(op->kind))
            check_ops(plan, op->body, op->body_count);
    }
}
#endif

void job_check(const struct job *job)
{
    const struct plan *plan = &job->plan;
    assert(plan->thread_count == 0 && plan->ranks > 0);
    for (size_t i = 0; i < job->thread_count; i++) {
        const struct host_thread *host = &job->threads[i]->host;
        assert(host->name && host->rank >= 0 && host->rank < plan->ranks);
        assert(host->op_count <= job->threads[i]->op_cap || host->repeat_count > 0);
#ifdef SWSIM_CHECKS
        check_ops(plan, host->ops, host->op_count);
#endif
    }
#ifdef SWSIM_CHECKS
    for (size_t i = 0; i < plan->graph_count; i++)
        check_ops(plan, plan->graphs[i].ops, plan->graphs[i].op_count);
    for (size_t i = 0; i < plan->comm_count; i++)
        for (size_t k = 0; k < plan->comms[i].member_count; k++)
            assert(plan->comms[i].members[k] >= 0 && plan->comms[i].members[k] < plan->ranks);
#endif
}
