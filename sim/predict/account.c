/* SPDX-License-Identifier: Apache-2.0 */
/* account.c - see account.h. Streams are walked gap by gap: work first, then what the waits say of the gaps. */
#include "account.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "base/array.h"
#include "trace/trace.h"

#define BETWEEN "its turn after the work before it"
#define AFTER   "no more work"
#define UNKNOWN "a cause that is not recorded"

/* The part of a rank's time that is looked at. */
struct account_window {
    int64_t start_ns, end_ns;
    double steps;
};

struct account_builder {
    struct trace *trace;
    struct untold {
        struct account_part between, after, unknown;
    } untold; /* idle time that no span tells of */
    struct run_account *out;
    struct account_window *windows; /* per rank */
    int ranks;
};

/* One stream of one rank. */
struct account_walk {
    struct account_builder *builder;
    struct account_stream *stream;
    const struct account_window *window;
    size_t wait, end; /* the next wait that may matter; the end of the agent's spans */
    int agent;
    int64_t last_ns; /* the end of its last work in the whole run */
    bool no_memory;
};

/* ---- windows --------------------------------------------------------------------------------- */

static int highest_rank(const struct trace *trace)
{
    int most = 0;
    for (size_t i = 0; i < trace->agent_count; i++)
        most = max_int(most, trace->agents[i].rank);
    for (size_t i = 0; i < trace->iteration_count; i++)
        most = max_int(most, trace->iterations[i].rank);
    return most;
}

static int by_rank_and_number(const void *left, const void *right)
{
    const struct trace_iteration *a = left, *b = right;
    return compare_then(compare_int(a->rank, b->rank), compare_i64(a->number, b->number));
}

/* The iterations items[0 .. count - 1] of one rank, in order. */
static struct account_window window_of(const struct trace_iteration *items, size_t count)
{
    struct account_window window = {items[0].start_ns, items[count - 1].retire_ns, (double)count};
    bool overlap = false;
    assert(count > 0);
    for (size_t i = 1; i < count; i++)
        overlap |= items[i].start_ns < items[i - 1].retire_ns;
    if (overlap) {
        window.start_ns = items[0].retire_ns;
        window.steps = (double)(count - 1);
    }
    return window;
}

/* A rank without steps of its own lies in those of the others. */
static void find_windows(struct account_builder *builder)
{
    struct account_window whole = {INT64_MAX, INT64_MIN, 1};
    const struct trace *trace = builder->trace;
    if (builder->out->by_steps) {
        SORT(trace->iterations, trace->iteration_count, by_rank_and_number);
        for (size_t i = 0, next; i < trace->iteration_count; i = next) {
            for (next = i; next < trace->iteration_count &&
                           trace->iterations[next].rank == trace->iterations[i].rank;)
                next++;
            builder->windows[trace->iterations[i].rank] =
                window_of(&trace->iterations[i], next - i);
        }
        whole = builder->windows[trace->iterations[0].rank];
    } else {
        trace_range(trace, &whole.start_ns, &whole.end_ns);
        if (whole.start_ns > 0)
            whole.start_ns = 0;
        if (trace->info.duration_ns > whole.end_ns)
            whole.end_ns = trace->info.duration_ns;
    }
    assert(whole.steps > 0);
    for (int r = 0; r < builder->ranks; r++)
        if (builder->windows[r].steps <= 0)
            builder->windows[r] = whole;
}

bool account_has_steps(const struct trace *trace)
{
    bool any = false;
    for (size_t i = 0; i < trace->iteration_count; i++) {
        if (trace->iterations[i].rank < 0)
            return false;
        any |= trace->iterations[i].retire_ns > trace->iterations[i].start_ns;
    }
    return any;
}

/* ---- parts ----------------------------------------------------------------------------------- */

const struct account_part *account_find_task(const struct account_stream *stream, const char *name)
{
    for (size_t i = 0; i < stream->tasks.count; i++)
        if (strcmp(stream->tasks.items[i].name, name) == 0)
            return &stream->tasks.items[i];
    return NULL;
}

/* Names are the trace's: equal ones are one pointer. */
static struct account_part *account_find_part(struct account_walk *walk,
                                              struct account_parts *parts,
                                              const struct account_part *like)
{
    for (size_t i = 0; i < parts->count; i++) {
        struct account_part *part = &parts->items[i];
        if (part->cause == like->cause &&
            (like->cause ? part->waits_for == like->waits_for : part->name == like->name))
            return part;
    }
    if (!ARENA_GROW(walk->builder->trace->arena, parts->items, parts->count, parts->cap)) {
        walk->no_memory = true;
        return NULL;
    }
    parts->items[parts->count] = *like;
    return &parts->items[parts->count++];
}

static void account_add_part(struct account_walk *walk, struct account_parts *parts,
                             const struct account_part *like, int64_t ns, int count)
{
    struct account_part *part = account_find_part(walk, parts, like);
    if (!part)
        return;
    assert(walk->window->steps > 0);
    part->ns += (double)ns / walk->window->steps;
    part->count += count / walk->window->steps;
}

static void account_add_idle(struct account_walk *walk, const struct account_part *like, int64_t ns)
{
    if (ns <= 0)
        return;
    walk->stream->idle_ns += (double)ns / walk->window->steps;
    account_add_part(walk, &walk->stream->idle, like, ns, 0);
}

/* ---- gaps ------------------------------------------------------------------------------------ */

/* Idle time that no span tells of. */
static void add_untold(struct account_walk *walk, int64_t from_ns, int64_t to_ns)
{
    const struct untold *untold = &walk->builder->untold;
    const bool known = walk->builder->trace->idle_count > 0;
    const int64_t middle = min_i64(max_i64(walk->last_ns, from_ns), to_ns);
    account_add_idle(walk, known ? &untold->between : &untold->unknown, middle - from_ns);
    account_add_idle(walk, known ? &untold->after : &untold->unknown, to_ns - middle);
}

/* The stream did nothing between these times. */
static void account_add_gap(struct account_walk *walk, int64_t from_ns, int64_t to_ns)
{
    const struct trace_span *spans = walk->builder->trace->spans;
    int64_t at_ns = from_ns;
    while (walk->wait < walk->end &&
           (spans[walk->wait].kind != SPAN_WAIT || spans[walk->wait].end_ns <= from_ns))
        walk->wait++;
    for (size_t i = walk->wait; i < walk->end && spans[i].start_ns < to_ns; i++) {
        if (spans[i].kind != SPAN_WAIT || spans[i].end_ns <= at_ns)
            continue;
        const int64_t start_ns = max_i64(spans[i].start_ns, at_ns);
        const int64_t end_ns = min_i64(spans[i].end_ns, to_ns);
        add_untold(walk, at_ns, start_ns);
        const struct trace_idle *line =
            trace_find_idle(walk->builder->trace, walk->agent, spans[i].cause);
        struct account_part part = walk->builder->untold.unknown;
        if (spans[i].cause)
            part.name = spans[i].cause;
        if (line)
            part = (struct account_part){
                .name = line->words, .cause = line->cause, .waits_for = line->waits_for};
        account_add_idle(walk, &part, end_ns - start_ns);
        at_ns = end_ns;
    }
    add_untold(walk, at_ns, to_ns);
}

/* ---- streams --------------------------------------------------------------------------------- */

static void walk_stream(struct account_walk *walk, size_t first)
{
    const struct trace *trace = walk->builder->trace;
    const struct account_window *window = walk->window;
    int64_t at_ns = window->start_ns;
    for (size_t i = first; i < walk->end; i++)
        if (trace->spans[i].kind == SPAN_DEVICE && trace->spans[i].end_ns > walk->last_ns)
            walk->last_ns = trace->spans[i].end_ns;
    for (size_t i = first; i < walk->end; i++) {
        const struct trace_span *span = &trace->spans[i];
        const int64_t start_ns = max_i64(span->start_ns, at_ns);
        const int64_t end_ns = min_i64(span->end_ns, window->end_ns);
        if (span->kind != SPAN_DEVICE || end_ns <= start_ns)
            continue;
        if (start_ns > at_ns)
            account_add_gap(walk, at_ns, start_ns);
        const struct account_part part = {.name = span->task ? span->task : "work"};
        const bool begins = span->start_ns >= walk->window->start_ns;
        walk->stream->busy_ns += (double)(end_ns - start_ns) / walk->window->steps;
        account_add_part(walk, &walk->stream->tasks, &part, end_ns - start_ns, begins);
        at_ns = end_ns;
    }
    if (window->end_ns > at_ns)
        account_add_gap(walk, at_ns, window->end_ns);
}

static struct account_stream *account_find_stream(struct run_account *out, struct arena *arena,
                                                  const char *name)
{
    for (size_t i = 0; i < out->stream_count; i++)
        if (out->streams[i].name == name)
            return &out->streams[i];
    if (!ARENA_GROW(arena, out->streams, out->stream_count, out->stream_cap))
        return NULL;
    out->streams[out->stream_count] = (struct account_stream){.name = name};
    return &out->streams[out->stream_count++];
}

static bool account_add_agent(struct account_builder *builder, int agent, size_t first, size_t end)
{
    const struct trace *trace = builder->trace;
    struct account_walk walk = {
        .builder = builder,
        .stream = account_find_stream(builder->out, trace->arena, trace->agents[agent].name),
        .window = &builder->windows[trace->agents[agent].rank],
        .wait = first,
        .end = end,
        .agent = agent,
        .last_ns = INT64_MIN};
    if (!walk.stream)
        return false;
    walk.stream->ranks++;
    walk_stream(&walk, first);
    return !walk.no_memory;
}

static bool account_add_streams(struct account_builder *builder)
{
    const struct trace *trace = builder->trace;
    size_t at = 0;
    for (int agent = 0; agent < (int)trace->agent_count; agent++) {
        size_t end = at;
        while (end < trace->span_count && trace->spans[end].agent == agent)
            end++;
        if (trace->agents[agent].kind == TRACE_STREAM &&
            !account_add_agent(builder, agent, at, end))
            return false;
        at = end;
    }
    return true;
}

/* ---- all together ---------------------------------------------------------------------------- */

/* A count is a sum of shares of a step: 656, not 655.9999999999905. */
static double whole_millionths(double count)
{
    return round(count * 1e6) / 1e6;
}

static void take_mean(struct account_parts *parts, int ranks)
{
    for (size_t i = 0; i < parts->count; i++) {
        parts->items[i].ns /= ranks;
        parts->items[i].count = whole_millionths(parts->items[i].count / ranks);
    }
}

static void take_means(struct account_builder *builder)
{
    struct run_account *out = builder->out;
    for (size_t i = 0; i < out->stream_count; i++) {
        struct account_stream *stream = &out->streams[i];
        stream->busy_ns /= stream->ranks;
        stream->idle_ns /= stream->ranks;
        take_mean(&stream->tasks, stream->ranks);
        take_mean(&stream->idle, stream->ranks);
    }
    for (int r = 0; r < builder->ranks; r++) {
        const struct account_window *window = &builder->windows[r];
        out->steps += window->steps / builder->ranks;
        out->step_ns +=
            (double)(window->end_ns - window->start_ns) / window->steps / builder->ranks;
    }
}

/* Names are the trace's own, as those of its spans. */
static void name_untold(struct account_builder *builder)
{
    struct trace *trace = builder->trace;
    builder->untold.between = (struct account_part){.name = trace_intern(trace, BETWEEN),
                                                    .cause = trace_intern(trace, LEDGER_ORDER)};
    builder->untold.after = (struct account_part){.name = trace_intern(trace, AFTER),
                                                  .cause = trace_intern(trace, "no_more_data")};
    builder->untold.unknown = (struct account_part){
        .name = trace_intern(trace, UNKNOWN), .cause = trace_intern(trace, ACCOUNT_NOT_RECORDED)};
}

enum status account_make(struct trace *trace, bool by_steps, struct run_account *out,
                         struct diag *diag)
{
    struct run_account account = {.by_steps = by_steps, .replications = 1};
    struct account_builder builder = {
        .trace = trace, .out = &account, .ranks = highest_rank(trace) + 1};
    builder.windows = ARENA_ARRAY(trace->arena, (size_t)builder.ranks, struct account_window);
    name_untold(&builder);
    if (!builder.windows || trace->arena->failed)
        return diag_no_memory(diag);
    find_windows(&builder);
    for (size_t i = 0; i < trace->idle_count; i++)
        account.modelled |= strcmp(trace->idles[i].word, LEDGER_BY_MODEL) == 0;
    if (!account_add_streams(&builder))
        return diag_no_memory(diag);
    take_means(&builder);
    *out = account;
    return STATUS_OK;
}

/* ---- several runs ---------------------------------------------------------------------------- */

static bool same_part(const struct account_part *a, const struct account_part *b)
{
    return equal_text(a->name, b->name) && equal_text(a->cause, b->cause) &&
           equal_text(a->waits_for, b->waits_for);
}

static void account_blend(double *mean, int runs, double further)
{
    *mean = (*mean * runs + further) / (runs + 1);
}

/* Parts of either; one that is not there takes no time. */
static bool blend_parts(struct account_parts *parts, int runs, const struct account_parts *further,
                        struct arena *arena)
{
    const size_t before = parts->count;
    for (size_t i = 0; i < before; i++) {
        account_blend(&parts->items[i].ns, runs, 0);
        account_blend(&parts->items[i].count, runs, 0);
    }
    for (size_t k = 0; k < further->count; k++) {
        const struct account_part *part = &further->items[k];
        size_t i = 0;
        while (i < before && !same_part(&parts->items[i], part))
            i++;
        if (i == before) {
            if (!ARENA_GROW(arena, parts->items, parts->count, parts->cap))
                return false;
            i = parts->count++;
            parts->items[i] = *part;
            parts->items[i].ns = parts->items[i].count = 0;
        }
        parts->items[i].ns += part->ns / (runs + 1);
        parts->items[i].count += part->count / (runs + 1);
    }
    return true;
}

bool account_add(struct run_account *sum, int runs, const struct run_account *further,
                 struct arena *arena)
{
    account_blend(&sum->step_ns, runs, further->step_ns);
    account_blend(&sum->steps, runs, further->steps);
    for (size_t i = 0; i < sum->stream_count && i < further->stream_count; i++) {
        struct account_stream *stream = &sum->streams[i];
        const struct account_stream *other = &further->streams[i];
        account_blend(&stream->busy_ns, runs, other->busy_ns);
        account_blend(&stream->idle_ns, runs, other->idle_ns);
        if (!blend_parts(&stream->tasks, runs, &other->tasks, arena) ||
            !blend_parts(&stream->idle, runs, &other->idle, arena))
            return false;
    }
    sum->replications = runs + 1;
    return true;
}
