/* SPDX-License-Identifier: Apache-2.0 */
/* innermost.c - see innermost.h: nested ranges, flattened with a stack. */
#include "innermost.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evidence.h"

#include "trace/job/call_names.h"
#include "base/array.h"
#include "base/sort.h"

enum nested_kind { NESTED_RANGE, NESTED_OPERATOR, NESTED_CALL, NESTED_LINE };
struct nested {
    int thread, name;
    enum nested_kind kind;
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
            flat->items[flat->count++] = (struct nested){range->thread, range->name, NESTED_RANGE,
                                                         range->start_ns, range->end_ns};
    }
    for (size_t i = 0; !rank->is_host && i < rank->act_count; i++) {
        const struct job_act *act = &rank->acts[i];
        flat->items[flat->count++] =
            (struct nested){act->thread, act->name, act->is_line ? NESTED_LINE : NESTED_OPERATOR,
                            act->start_ns, act->end_ns};
    }
    for (size_t i = 0; i < rank->call_count; i++) {
        const struct job_call *call = &rank->calls[i];
        const bool is_long = call->end_ns - call->start_ns >= ACT_LEAST_NS;
        if ((blocks(call) || is_long) && !rank->is_host)
            flat->items[flat->count++] = (struct nested){call->thread, call->name, NESTED_CALL,
                                                         call->start_ns, call->end_ns};
    }
    if (flat->count)
        SORT(flat->items, flat->count, compare_nested);
}

/* The name of the innermost of these kinds, from `first` to `last`, that is open; -1: none is. */
static int open_name(const struct flattener *flat, enum nested_kind first, enum nested_kind last)
{
    for (size_t i = flat->depth; i > 0; i--) {
        const struct nested *item = &flat->items[flat->open[i - 1]];
        if (item->kind >= first && item->kind <= last)
            return item->name;
    }
    return -1;
}

/* The innermost range goes on until `end_ns`. */
static void write_until(struct flattener *flat, int64_t end_ns)
{
    if (flat->depth && end_ns > flat->now_ns) {
        const struct nested *top = &flat->items[flat->open[flat->depth - 1]];
        flat->out->stretches[flat->written++] = (struct innermost_stretch){
            .name = top->name,
            .within =
                top->kind == NESTED_CALL ? open_name(flat, NESTED_RANGE, NESTED_OPERATOR) : -1,
            .line = top->kind != NESTED_LINE ? open_name(flat, NESTED_LINE, NESTED_LINE) : -1,
            .annotation = open_name(flat, NESTED_RANGE, NESTED_RANGE),
            .start_ns = flat->now_ns,
            .end_ns = end_ns};
    }
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
    const size_t most = rank->range_count + rank->act_count + rank->call_count + 1;
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

int innermost_after(const struct innermost *innermost, int thread, int64_t time_ns)
{
    return SORT_FIRST(i, innermost->first[thread], innermost->first[thread + 1],
                      innermost->stretches[i].end_ns > time_ns);
}

static bool same_place(const struct innermost_stretch *a, const struct innermost_stretch *b)
{
    return a->name == b->name && a->within == b->within && a->line == b->line;
}

/* How much of a stretch lies in this time. */
static int64_t innermost_overlap(const struct innermost_stretch *stretch, int64_t start_ns,
                                 int64_t end_ns)
{
    const int64_t from_ns = stretch->start_ns > start_ns ? stretch->start_ns : start_ns;
    const int64_t to_ns = stretch->end_ns < end_ns ? stretch->end_ns : end_ns;
    return to_ns - from_ns;
}

/* The longest run of stretches of one place, or of one annotation; false where it is less than half of the time. */
static bool innermost_longest(const struct innermost *innermost, int thread, int64_t start_ns,
                              int64_t end_ns, bool by_annotation, struct innermost_stretch *out)
{
    int64_t best_ns = 0, run_ns = 0;
    const struct innermost_stretch *last = NULL;
    const int end = innermost->first[thread + 1];
    for (int i = innermost_after(innermost, thread, start_ns);
         i < end && innermost->stretches[i].start_ns < end_ns; i++) {
        const struct innermost_stretch *stretch = &innermost->stretches[i];
        const bool goes_on = last && (by_annotation ? last->annotation == stretch->annotation
                                                    : same_place(last, stretch));
        run_ns = (goes_on ? run_ns : 0) + innermost_overlap(stretch, start_ns, end_ns);
        last = stretch;
        if (run_ns <= best_ns || (by_annotation && stretch->annotation < 0))
            continue;
        best_ns = run_ns;
        *out = *stretch;
    }
    return best_ns > 0 && 2 * best_ns >= end_ns - start_ns;
}

bool innermost_place(const struct innermost *innermost, int thread, int64_t start_ns,
                     int64_t end_ns, struct innermost_stretch *out)
{
    if (innermost_longest(innermost, thread, start_ns, end_ns, false, out))
        return true;
    if (!innermost_longest(innermost, thread, start_ns, end_ns, true, out))
        return false;
    out->name = out->annotation;
    out->within = out->line = -1;
    return true;
}

void innermost_words(const struct job *job, const struct innermost_stretch *place, char *out,
                     size_t cap)
{
    const struct names *names = &job->names;
    snprintf(out, cap, "%s%s%s%s%s",
             place->name >= 0 ? names->items[place->name] : "code that the trace does not name",
             place->within >= 0 ? " in " : "",
             place->within >= 0 ? names->items[place->within] : "", place->line >= 0 ? ", " : "",
             place->line >= 0 ? names->items[place->line] : "");
}

/* ---- what the host did ------------------------------------------------------------------------- */

static bool share_add(struct host_shares *shares, const struct innermost_stretch *place, int64_t ns)
{
    if (ns <= 0)
        return true;
    if (!ARRAY_GROW(shares->items, shares->count, shares->cap))
        return false;
    shares->items[shares->count++] = (struct host_share){*place, ns};
    shares->all_ns += ns;
    return true;
}

static bool share_add_piece(struct host_shares *shares, const struct innermost *innermost,
                            int thread, int64_t start_ns, int64_t end_ns)
{
    const struct innermost_stretch nowhere = {.name = -1, .within = -1, .line = -1};
    int64_t told_ns = 0;
    for (int i = innermost_after(innermost, thread, start_ns);
         i < innermost->first[thread + 1] && innermost->stretches[i].start_ns < end_ns; i++) {
        const int64_t ns = innermost_overlap(&innermost->stretches[i], start_ns, end_ns);
        told_ns += ns;
        if (!share_add(shares, &innermost->stretches[i], ns))
            return false;
    }
    return share_add(shares, &nowhere, end_ns - start_ns - told_ns);
}

static int share_compare(const void *left, const void *right)
{
    const struct innermost_stretch *a = &((const struct host_share *)left)->place,
                                   *b = &((const struct host_share *)right)->place;
    return compare_then(
        compare_int(a->name, b->name),
        compare_then(compare_int(a->within, b->within), compare_int(a->line, b->line)));
}

static int share_greatest_first(const void *left, const void *right)
{
    const struct host_share *a = left, *b = right;
    return compare_then(compare_i64(b->ns, a->ns), share_compare(left, right));
}

static void share_merge(struct host_shares *shares)
{
    size_t kept = 0;
    SORT(shares->items, shares->count, share_compare);
    for (size_t i = 0; i < shares->count; i++)
        if (kept > 0 && share_compare(&shares->items[kept - 1], &shares->items[i]) == 0)
            shares->items[kept - 1].ns += shares->items[i].ns;
        else
            shares->items[kept++] = shares->items[i];
    shares->count = kept;
    SORT(shares->items, shares->count, share_greatest_first);
}

bool host_shares_find(const struct job *job, const struct job_rank *rank,
                      const struct evidence *evidence, struct host_shares *out)
{
    struct innermost innermost = {0};
    int64_t idle_since_ns = 0;
    *out = (struct host_shares){0};
    bool ok = innermost_find(job, rank, &innermost);
    for (size_t i = 0; ok && i < rank->work_count; i++) {
        const struct job_work *work = &rank->works[i];
        struct idle_piece pieces[IDLE_PIECES];
        const int count = evidence_idle(rank, evidence, (int)i, pieces);
        for (int p = 0; ok && p < count && work->call >= 0; p++) {
            const int64_t from_ns =
                pieces[p].start_ns > idle_since_ns ? pieces[p].start_ns : idle_since_ns;
            if (pieces[p].cause == IDLE_LAUNCH && pieces[p].end_ns > from_ns)
                ok = share_add_piece(out, &innermost, rank->calls[work->call].thread, from_ns,
                                     pieces[p].end_ns);
        }
        idle_since_ns = work->end_ns > idle_since_ns ? work->end_ns : idle_since_ns;
    }
    if (ok && out->count > 0)
        share_merge(out);
    innermost_fini(&innermost);
    return ok;
}

void host_shares_fini(struct host_shares *shares)
{
    free(shares->items);
    *shares = (struct host_shares){0};
}
