/* SPDX-License-Identifier: Apache-2.0 */
/* innermost.c - see innermost.h: nested ranges, flattened with a stack. */
#include "innermost.h"

#include <stdlib.h>
#include <string.h>

#include "trace/job/call_names.h"
#include "base/sort.h"

struct nested {
    int thread, name;
    int64_t start_ns, end_ns;
};

struct flattener {
    struct nested *items;
    size_t count;
    size_t *open; /* the ranges around the present time, the innermost last */
    size_t depth, written;
    int64_t now_ns;
    struct innermost *out;
};

/* By thread, then by start, the outer one first. */
static int compare_nested(const void *left, const void *right)
{
    const struct nested *a = left, *b = right;
    return compare_then(
        compare_int(a->thread, b->thread),
        compare_then(compare_i64(a->start_ns, b->start_ns), compare_i64(b->end_ns, a->end_ns)));
}

static bool blocks(const struct job_call *call)
{
    return call->kind == CALL_SYNC_STREAM || call->kind == CALL_SYNC_EVENT ||
           call->kind == CALL_SYNC_DEVICE;
}

static void innermost_collect(const struct job *job, const struct job_rank *rank,
                              struct flattener *flat)
{
    int64_t number;
    for (size_t i = 0; i < rank->range_count; i++) {
        const struct job_range *range = &rank->ranges[i];
        const bool of_gloo = strncmp(job->names.items[range->name], "gloo:", 5) == 0;
        if (!range_is_step(job->names.items[range->name], &number) && !(rank->is_host && of_gloo))
            flat->items[flat->count++] =
                (struct nested){range->thread, range->name, range->start_ns, range->end_ns};
    }
    for (size_t i = 0; i < rank->call_count; i++) {
        const struct job_call *call = &rank->calls[i];
        if (blocks(call) && !rank->is_host)
            flat->items[flat->count++] =
                (struct nested){call->thread, call->name, call->start_ns, call->end_ns};
    }
    if (flat->count)
        SORT(flat->items, flat->count, compare_nested);
}

/* The innermost range goes on until `end_ns`. */
static void write_until(struct flattener *flat, int64_t end_ns)
{
    if (flat->depth && end_ns > flat->now_ns)
        flat->out->stretches[flat->written++] = (struct innermost_stretch){
            flat->items[flat->open[flat->depth - 1]].name, flat->now_ns, end_ns};
    if (end_ns > flat->now_ns)
        flat->now_ns = end_ns;
}

/* End the ranges that end by this time. */
static void close_until(struct flattener *flat, int64_t time_ns)
{
    while (flat->depth && flat->items[flat->open[flat->depth - 1]].end_ns <= time_ns) {
        write_until(flat, flat->items[flat->open[flat->depth - 1]].end_ns);
        flat->depth--;
    }
}

static void flatten(struct flattener *flat, int threads)
{
    size_t at = 0;
    for (int thread = 0; thread < threads; thread++) {
        flat->out->first[thread] = (int)flat->written;
        flat->now_ns = INT64_MIN;
        for (; at < flat->count && flat->items[at].thread == thread; at++) {
            close_until(flat, flat->items[at].start_ns);
            write_until(flat, flat->items[at].start_ns);
            flat->now_ns = flat->items[at].start_ns;
            flat->open[flat->depth++] = at;
        }
        close_until(flat, INT64_MAX);
    }
    flat->out->first[threads] = (int)flat->written;
}

bool innermost_find(const struct job *job, const struct job_rank *rank, struct innermost *out)
{
    const size_t most = rank->range_count + rank->call_count + 1;
    const int threads = (int)rank->threads.count;
    struct flattener flat = {.out = out};
    *out = (struct innermost){0};
    flat.items = malloc(most * sizeof *flat.items);
    flat.open = malloc(most * sizeof *flat.open);
    out->stretches = malloc(2 * most * sizeof *out->stretches);
    out->first = calloc((size_t)threads + 1, sizeof *out->first);
    const bool ok = flat.items && flat.open && out->stretches && out->first;
    if (ok) {
        innermost_collect(job, rank, &flat);
        flatten(&flat, threads);
    }
    free(flat.items);
    free(flat.open);
    return ok;
}

void innermost_fini(struct innermost *innermost)
{
    free(innermost->stretches);
    free(innermost->first);
    *innermost = (struct innermost){0};
}

/* The first stretch of a thread that ends after this time. */
static int first_after(const struct innermost *innermost, int thread, int64_t time_ns)
{
    return SORT_FIRST(i, innermost->first[thread], innermost->first[thread + 1],
                      innermost->stretches[i].end_ns > time_ns);
}

int innermost_name(const struct innermost *innermost, int thread, int64_t start_ns, int64_t end_ns)
{
    int best = -1;
    int64_t best_ns = 0, run_ns = 0;
    const int end = innermost->first[thread + 1];
    for (int i = first_after(innermost, thread, start_ns);
         i < end && innermost->stretches[i].start_ns < end_ns; i++) {
        const struct innermost_stretch *stretch = &innermost->stretches[i];
        const int64_t from_ns = stretch->start_ns > start_ns ? stretch->start_ns : start_ns;
        const int64_t to_ns = stretch->end_ns < end_ns ? stretch->end_ns : end_ns;
        const bool goes_on = i > 0 && run_ns > 0 && stretch[-1].name == stretch->name;
        run_ns = (goes_on ? run_ns : 0) + to_ns - from_ns;
        if (run_ns > best_ns) {
            best_ns = run_ns;
            best = stretch->name;
        }
    }
    return 2 * best_ns >= end_ns - start_ns ? best : -1;
}
