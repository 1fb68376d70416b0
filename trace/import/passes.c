/* SPDX-License-Identifier: Apache-2.0 */
/* passes.c - see passes.h. */
#include "passes.h"

#include <stdlib.h>

#include "plan/schedules/pass_names.h"

/* An annotation of the host and the work launched in it; first > last: none. */
struct opened {
    int name;
    int64_t start_ns, end_ns;
    int64_t first_ns, last_ns; /* of kernels */
    int64_t first_copy_ns, last_copy_ns;
};

struct finder {
    const struct job *job;
    const struct job_rank *rank;
    struct opened *opened; /* by start */
    size_t count;
    bool *is_pass;   /* per name */
    bool *is_placed; /* likewise: work of it was found */
    struct passes *out;
};

static bool add(struct passes *passes, int name, int64_t start_ns, int64_t end_ns)
{
    if (passes->count == passes->cap) {
        const size_t cap = passes->cap ? 2 * passes->cap : 64;
        void *items = realloc(passes->items, cap * sizeof *passes->items);
        if (!items)
            return false;
        passes->items = items;
        passes->cap = cap;
    }
    passes->items[passes->count++] = (struct pass_found){name, start_ns, end_ns};
    return true;
}

static int compare_passes(const void *left, const void *right)
{
    const struct pass_found *a = left, *b = right;
    return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static int compare_opened(const void *left, const void *right)
{
    const struct opened *a = left, *b = right;
    return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* ---- what names a pass ----------------------------------------------------------------------- */

static bool read_names(struct finder *finder)
{
    const struct names *names = &finder->job->names;
    struct arena arena;
    struct action action;
    finder->is_pass = calloc(names->count + 1, sizeof *finder->is_pass);
    finder->is_placed = calloc(names->count + 1, sizeof *finder->is_placed);
    if (!finder->is_pass || !finder->is_placed)
        return false;
    arena_init(&arena, 0);
    for (size_t i = 0; i < names->count; i++)
        finder->is_pass[i] = pass_name_read(names->items[i], &arena, &action);
    const bool ok = !arena.failed;
    arena_fini(&arena);
    return ok;
}

static size_t count_named(const struct finder *finder)
{
    size_t count = 0;
    for (size_t i = 0; i < finder->rank->range_count; i++)
        count += finder->is_pass[finder->rank->ranges[i].name];
    return count;
}

static bool open_ranges(struct finder *finder)
{
    const struct job_rank *rank = finder->rank;
    finder->opened = malloc((count_named(finder) + 1) * sizeof *finder->opened);
    for (size_t i = 0; finder->opened && i < rank->range_count; i++)
        if (finder->is_pass[rank->ranges[i].name])
            finder->opened[finder->count++] = (struct opened){.name = rank->ranges[i].name,
                                                              .start_ns = rank->ranges[i].start_ns,
                                                              .end_ns = rank->ranges[i].end_ns,
                                                              .first_ns = INT64_MAX,
                                                              .last_ns = INT64_MIN,
                                                              .first_copy_ns = INT64_MAX,
                                                              .last_copy_ns = INT64_MIN};
    if (finder->count)
        qsort(finder->opened, finder->count, sizeof *finder->opened, compare_opened);
    return finder->opened != NULL;
}

/* ---- what was launched in it ----------------------------------------------------------------- */

/* The annotation that is open at a time, the last of them to begin; NULL: none. */
static struct opened *open_at(const struct finder *finder, int64_t time_ns)
{
    size_t low = 0, high = finder->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (finder->opened[middle].start_ns <= time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    struct opened *last = low > 0 ? &finder->opened[low - 1] : NULL;
    return last && time_ns < last->end_ns ? last : NULL;
}

static void widen(int64_t *first_ns, int64_t *last_ns, const struct job_work *work)
{
    *first_ns = work->start_ns < *first_ns ? work->start_ns : *first_ns;
    *last_ns = work->end_ns > *last_ns ? work->end_ns : *last_ns;
}

static void take_works(struct finder *finder)
{
    const struct job_rank *rank = finder->rank;
    for (size_t i = 0; i < rank->work_count; i++) {
        const struct job_work *work = &rank->works[i];
        struct opened *opened = work->call >= 0 && !work->is_collective
                                    ? open_at(finder, rank->calls[work->call].start_ns)
                                    : NULL;
        if (opened && work->class == CLASS_KERNEL)
            widen(&opened->first_ns, &opened->last_ns, work);
        else if (opened)
            widen(&opened->first_copy_ns, &opened->last_copy_ns, work);
    }
}

/* Annotations of steps that were not chosen have no work and are before or behind it. */
static bool add_opened(struct finder *finder, const struct opened *opened)
{
    const bool kernels = opened->first_ns <= opened->last_ns;
    const bool copies = opened->first_copy_ns <= opened->last_copy_ns;
    finder->is_placed[opened->name] |= kernels || copies;
    if (kernels)
        return add(finder->out, opened->name, opened->first_ns, opened->last_ns);
    if (copies)
        return add(finder->out, opened->name, opened->first_copy_ns, opened->last_copy_ns);
    return !finder->rank->is_host || opened->end_ns <= 0 ||
           opened->start_ns >= finder->rank->end_ns ||
           add(finder->out, opened->name, opened->start_ns > 0 ? opened->start_ns : 0,
               opened->end_ns);
}

/* ---- the profiler's annotations of the device ------------------------------------------------ */

static const struct job_stream *stream_of(const struct job_rank *rank, const struct job_mark *mark)
{
    for (size_t i = 0; i < rank->stream_count; i++)
        if (rank->streams[i].own == mark->stream)
            return &rank->streams[i];
    return NULL;
}

/* The first work of a stream that begins at `time_ns` or later. */
static int first_from(const struct job_rank *rank, const struct job_stream *stream, int64_t time_ns)
{
    int low = 0, high = stream->count;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (rank->works[rank->by_stream[stream->first + middle]].start_ns < time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Does its stream compute in it? */
static bool find_computed(const struct job_rank *rank, const struct job_mark *mark,
                          int64_t *first_ns, int64_t *last_ns)
{
    const struct job_stream *stream = stream_of(rank, mark);
    *first_ns = INT64_MAX;
    *last_ns = INT64_MIN;
    for (int i = stream ? first_from(rank, stream, mark->start_ns) : 0; stream && i < stream->count;
         i++) {
        const struct job_work *work = &rank->works[rank->by_stream[stream->first + i]];
        if (work->start_ns >= mark->end_ns)
            break;
        if (!work->is_collective)
            widen(first_ns, last_ns, work);
    }
    return *first_ns <= *last_ns;
}

static bool take_marks(struct finder *finder)
{
    const struct job_rank *rank = finder->rank;
    int64_t first_ns, last_ns;
    for (size_t i = 0; i < rank->mark_count; i++) {
        const struct job_mark *mark = &rank->marks[i];
        if (!finder->is_placed[mark->name] && find_computed(rank, mark, &first_ns, &last_ns) &&
            !add(finder->out, mark->name, first_ns, last_ns))
            return false;
    }
    return true;
}

/* There is an annotation for each stream. */
static void join_streams(struct passes *passes)
{
    size_t kept = 0;
    for (size_t i = 0; i < passes->count; i++) {
        const struct pass_found *pass = &passes->items[i];
        struct pass_found *last = kept ? &passes->items[kept - 1] : NULL;
        if (!last || last->name != pass->name || pass->start_ns > last->end_ns)
            passes->items[kept++] = *pass;
        else if (pass->end_ns > last->end_ns)
            last->end_ns = pass->end_ns;
    }
    passes->count = kept;
}

/* ---- all ------------------------------------------------------------------------------------- */

static bool find(struct finder *finder)
{
    if (!read_names(finder) || !open_ranges(finder))
        return false;
    take_works(finder);
    for (size_t i = 0; i < finder->count; i++)
        if (!add_opened(finder, &finder->opened[i]))
            return false;
    if (!take_marks(finder))
        return false;
    if (finder->out->count)
        qsort(finder->out->items, finder->out->count, sizeof *finder->out->items, compare_passes);
    join_streams(finder->out);
    return true;
}

bool passes_find(const struct job *job, const struct job_rank *rank, struct passes *out)
{
    *out = (struct passes){0};
    struct finder finder = {.job = job, .rank = rank, .out = out};
    const bool ok = (rank->range_count == 0 && rank->mark_count == 0) || find(&finder);
    free(finder.opened);
    free(finder.is_pass);
    free(finder.is_placed);
    return ok;
}

void passes_fini(struct passes *passes)
{
    free(passes->items);
}
