/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.c - see trace.h: growing arrays in an arena, and a table of names: there are few names (tasks,
 * agents, causes) and many references to them.
 */
#include "trace.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/sort.h"

/* ---- texts ----------------------------------------------------------------------------------- */

#define X(name, text) text,

const char *run_kind_text(enum run_kind kind)
{
    static const char *const texts[] = {RUN_KIND_LIST(X)};
    assert((size_t)kind < sizeof texts / sizeof *texts);
    return texts[kind];
}

const char *run_driver_text(enum run_driver driver)
{
    static const char *const texts[] = {RUN_DRIVER_LIST(X)};
    assert((size_t)driver < sizeof texts / sizeof *texts);
    return texts[driver];
}

const char *trace_agent_kind_text(enum trace_agent_kind kind)
{
    static const char *const texts[] = {TRACE_AGENT_KIND_LIST(X)};
    assert((size_t)kind < sizeof texts / sizeof *texts);
    return texts[kind];
}

const char *span_kind_text(enum span_kind kind)
{
    static const char *const texts[] = {SPAN_KIND_LIST(X)};
    assert((size_t)kind < sizeof texts / sizeof *texts);
    return texts[kind];
}

const char *edge_kind_text(enum edge_kind kind)
{
    static const char *const texts[] = {EDGE_KIND_LIST(X)};
    assert((size_t)kind < sizeof texts / sizeof *texts);
    return texts[kind];
}
#undef X

const char *run_finished_text(enum run_finished finished)
{
    switch (finished) {
    case RUN_OPEN: return "open";
    case RUN_FINISHED: return "finished";
    case RUN_INTERRUPTED: break;
    }
    return "interrupted";
}

/* ---- names ----------------------------------------------------------------------------------- */

const char *trace_intern(struct trace *trace, const char *text)
{
    if (!text)
        return NULL;
    const uint64_t hash = table_hash_text(text);
    const uint32_t found =
        TABLE_FIND(&trace->names, hash, i, strcmp(trace->interned[i], text) == 0);
    if (found != TABLE_NONE)
        return trace->interned[found];
    assert(trace->interned_count == trace->names.count);
    const char *copy = arena_strdup(trace->arena, text);
    if (!copy ||
        !ARENA_GROW(trace->arena, trace->interned, trace->interned_count, trace->interned_cap) ||
        !table_add_in(&trace->names, trace->arena, hash, trace->interned_count))
        return NULL;
    trace->interned[trace->interned_count++] = copy;
    return copy;
}

/* Replace *text by the trace's copy; NULL stays NULL. */
static bool trace_own(struct trace *trace, const char **text)
{
    if (!*text)
        return true;
    *text = trace_intern(trace, *text);
    return *text != NULL;
}

/* ---- building -------------------------------------------------------------------------------- */

void trace_init(struct trace *trace, struct arena *arena)
{
    *trace = (struct trace){.arena = arena, .run = -1};
    trace->info.plan_name = trace->info.plan_text = trace->info.device = "";
}

bool trace_set_info(struct trace *trace, const struct run_info *info)
{
    struct run_info copy = *info;
    copy.plan_name = arena_strdup(trace->arena, info->plan_name ? info->plan_name : "");
    copy.plan_text = arena_strdup(trace->arena, info->plan_text ? info->plan_text : "");
    copy.device = arena_strdup(trace->arena, info->device ? info->device : "");
    copy.note = info->note ? arena_strdup(trace->arena, info->note) : NULL;
    if (!copy.plan_name || !copy.plan_text || !copy.device || (info->note && !copy.note))
        return false;
    trace->info = copy;
    return true;
}

/* Indices are ints. */
#define GROW(trace, what)                                                                          \
    ((trace)->what##_count < INT_MAX &&                                                            \
     ARENA_GROW((trace)->arena, (trace)->what##s, (trace)->what##_count, (trace)->what##_cap))

int trace_add_agent(struct trace *trace, int rank, enum trace_agent_kind kind, const char *name,
                    int position)
{
    struct trace_agent agent = {rank, kind, name, position};
    if (!trace_own(trace, &agent.name) || !GROW(trace, agent))
        return -1;
    assert(rank >= 0);
    trace->agents[trace->agent_count] = agent;
    return (int)trace->agent_count++;
}

int trace_add_span(struct trace *trace, const struct trace_span *span)
{
    assert(span->agent >= 0 && (size_t)span->agent < trace->agent_count);
    assert(span->start_ns <= span->end_ns);
    struct trace_span copy = *span;
    if (!trace_own(trace, &copy.task) || !trace_own(trace, &copy.cause) || !GROW(trace, span))
        return -1;
    trace->spans[trace->span_count] = copy;
    return (int)trace->span_count++;
}

int trace_add_edge(struct trace *trace, int from_span, int to_span, enum edge_kind kind)
{
    assert(from_span >= 0 && (size_t)from_span < trace->span_count);
    assert(to_span >= 0 && (size_t)to_span < trace->span_count);
    if (!GROW(trace, edge))
        return -1;
    trace->edges[trace->edge_count] = (struct trace_edge){from_span, to_span, kind};
    return (int)trace->edge_count++;
}

int trace_add_iteration(struct trace *trace, const struct trace_iteration *iteration)
{
    if (!GROW(trace, iteration))
        return -1;
    trace->iterations[trace->iteration_count] = *iteration;
    return (int)trace->iteration_count++;
}

int trace_add_step(struct trace *trace, const struct trace_step *step)
{
    struct trace_step copy = *step;
    if (!trace_own(trace, &copy.agent) || !trace_own(trace, &copy.op) ||
        !trace_own(trace, &copy.task) || !GROW(trace, step))
        return -1;
    trace->steps[trace->step_count] = copy;
    return (int)trace->step_count++;
}

int trace_add_stat(struct trace *trace, const char *key, double value)
{
    struct trace_stat stat = {key, value};
    if (!trace_own(trace, &stat.key) || !GROW(trace, stat))
        return -1;
    trace->stats[trace->stat_count] = stat;
    return (int)trace->stat_count++;
}

const struct trace_stat *trace_find_stat(const struct trace *trace, const char *key)
{
    for (size_t i = 0; i < trace->stat_count; i++)
        if (strcmp(trace->stats[i].key, key) == 0)
            return &trace->stats[i];
    return NULL;
}

/* ---- sorting and looking --------------------------------------------------------------------- */

struct sort_key {
    int agent, index;
    int64_t start_ns, end_ns;
};

static int trace_compare_keys(const void *left, const void *right)
{
    const struct sort_key *a = left, *b = right;
    return compare_then(compare_int(a->agent, b->agent),
                        compare_then(compare_i64(a->start_ns, b->start_ns),
                                     compare_then(compare_i64(a->end_ns, b->end_ns),
                                                  compare_int(a->index, b->index))));
}

static int trace_compare_edges(const void *left, const void *right)
{
    const struct trace_edge *a = left, *b = right;
    return compare_then(
        compare_int(a->from, b->from),
        compare_then(compare_int(a->to, b->to), compare_int((int)a->kind, (int)b->kind)));
}

void trace_sort_edges(struct trace *trace)
{
    SORT(trace->edges, trace->edge_count, trace_compare_edges);
}

/* With --enable-checks: numbers of agents and spans are there, texts and lines can be found. */
static void trace_check(const struct trace *trace)
{
#ifdef SWSIM_CHECKS
    for (size_t i = 0; i < trace->span_count; i++)
        assert((size_t)trace->spans[i].agent < trace->agent_count);
    for (size_t i = 0; i < trace->edge_count; i++) {
        assert((size_t)trace->edges[i].from < trace->span_count);
        assert((size_t)trace->edges[i].to < trace->span_count);
    }
    assert(trace->interned_count == trace->names.count &&
           trace->interned_count <= trace->interned_cap);
    assert(trace->idle_count == trace->idle_table.count && trace->idle_count <= trace->idle_cap);
    table_check(&trace->names);
    table_check(&trace->idle_table);
#else
    (void)trace;
#endif
}

bool trace_sort(struct trace *trace)
{
    trace_check(trace);
    size_t count = trace->span_count;
    if (count == 0)
        return true;
    struct sort_key *keys = malloc(count * sizeof *keys);
    struct trace_span *old = malloc(count * sizeof *old);
    int *moved = malloc(count * sizeof *moved);
    bool ok = keys && old && moved;
    if (ok) {
        for (size_t i = 0; i < count; i++) {
            const struct trace_span *span = &trace->spans[i];
            keys[i] = (struct sort_key){span->agent, (int)i, span->start_ns, span->end_ns};
        }
        qsort(keys, count, sizeof *keys, trace_compare_keys);
        memcpy(old, trace->spans, count * sizeof *old);
        for (size_t i = 0; i < count; i++) {
            trace->spans[i] = old[keys[i].index];
            moved[keys[i].index] = (int)i;
        }
        for (size_t i = 0; i < trace->edge_count; i++) {
            trace->edges[i].from = moved[trace->edges[i].from];
            trace->edges[i].to = moved[trace->edges[i].to];
        }
        trace_sort_edges(trace);
    }
    free(keys);
    free(old);
    free(moved);
    return ok;
}

bool trace_drop_waits(struct trace *trace, enum trace_agent_kind kind)
{
    int *moved = malloc((trace->span_count + 1) * sizeof *moved);
    size_t spans = 0, edges = 0;
    if (!moved)
        return false;
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct trace_span *span = &trace->spans[i];
        bool drop = span->kind == SPAN_WAIT && trace->agents[span->agent].kind == kind;
        moved[i] = drop ? -1 : (int)spans;
        if (!drop)
            trace->spans[spans++] = *span;
    }
    for (size_t i = 0; i < trace->edge_count; i++) {
        const struct trace_edge *edge = &trace->edges[i];
        assert((size_t)edge->from < trace->span_count && (size_t)edge->to < trace->span_count);
        const struct trace_edge kept = {moved[edge->from], moved[edge->to], edge->kind};
        if (kept.from >= 0 && kept.to >= 0)
            trace->edges[edges++] = kept;
    }
    trace->span_count = spans;
    trace->edge_count = edges;
    free(moved);
    return true;
}

int trace_find_agent(const struct trace *trace, int rank, enum trace_agent_kind kind,
                     const char *name)
{
    for (size_t i = 0; i < trace->agent_count; i++) {
        const struct trace_agent *agent = &trace->agents[i];
        if (agent->rank == rank && agent->kind == kind && strcmp(agent->name, name) == 0)
            return (int)i;
    }
    return -1;
}

void trace_range(const struct trace *trace, int64_t *out_start_ns, int64_t *out_end_ns)
{
    int64_t start_ns = trace->span_count ? INT64_MAX : 0,
            end_ns = trace->span_count ? INT64_MIN : 0;
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct trace_span *span = &trace->spans[i];
        start_ns = span->start_ns < start_ns ? span->start_ns : start_ns;
        end_ns = span->end_ns > end_ns ? span->end_ns : end_ns;
    }
    *out_start_ns = start_ns;
    *out_end_ns = end_ns;
}

double trace_mean_iteration_ns(const struct trace *trace)
{
    int rank = INT_MAX;
    for (size_t i = 0; i < trace->iteration_count; i++)
        rank = trace->iterations[i].rank < rank ? trace->iterations[i].rank : rank;
    const struct trace_iteration *first = NULL, *last = NULL;
    for (size_t i = 0; i < trace->iteration_count; i++) {
        const struct trace_iteration *iteration = &trace->iterations[i];
        if (iteration->rank != rank)
            continue;
        first = !first || iteration->number < first->number ? iteration : first;
        last = !last || iteration->number > last->number ? iteration : last;
    }
    if (!first || first->number == last->number)
        return 0;
    return (double)(last->retire_ns - first->retire_ns) / (double)(last->number - first->number);
}

/* ---- idle times ------------------------------------------------------------------------------ */

/* A table of lines, found by agent and words through open addressing. */

static uint64_t hash_line(int agent, const char *words)
{
    return hash_mix((uintptr_t)words + (uint64_t)agent * UINT64_C(0xc2b2ae3d27d4eb4f));
}

/* The number of a line; TABLE_NONE: there is none. */
static uint32_t find_line(const struct trace *trace, int agent, const char *words)
{
    return TABLE_FIND(&trace->idle_table, hash_line(agent, words), i,
                      trace->idles[i].agent == agent && trace->idles[i].words == words);
}

static bool own_texts(struct trace *trace, struct trace_idle *line)
{
    line->cause = trace_intern(trace, line->cause);
    line->word = trace_intern(trace, line->word);
    line->words = trace_intern(trace, line->words);
    const bool named = line->waits_for != NULL;
    line->waits_for = trace_intern(trace, line->waits_for);
    return line->cause && line->word && line->words && (!named || line->waits_for);
}

bool trace_add_idle(struct trace *trace, const struct trace_idle *line)
{
    struct trace_idle copy = *line;
    if (!own_texts(trace, &copy))
        return false;
    const uint32_t found = find_line(trace, copy.agent, copy.words);
    if (found != TABLE_NONE) {
        trace->idles[found].idle_ns += copy.idle_ns;
        return true;
    }
    if (trace->idle_count >= INT_MAX - 1 ||
        !ARENA_GROW(trace->arena, trace->idles, trace->idle_count, trace->idle_cap) ||
        !table_add_in(&trace->idle_table, trace->arena, hash_line(copy.agent, copy.words),
                      trace->idle_count))
        return false;
    trace->idles[trace->idle_count++] = copy;
    return true;
}

const struct trace_idle *trace_find_idle(const struct trace *trace, int agent, const char *words)
{
    const uint32_t found = words ? find_line(trace, agent, words) : TABLE_NONE;
    return found != TABLE_NONE ? &trace->idles[found] : NULL;
}
