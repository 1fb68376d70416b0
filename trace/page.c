/* SPDX-License-Identifier: Apache-2.0 */
/* page.c - see page.h. */
#include "page.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/assert_index.h"
#include "base/json.h"
#include "base/sort.h"
#include "base/text_stream.h"

#include "page_chart.h"
#include "page_column.h"
#include "timeline_view.h"
#include "trace.h"

/* ---- the critical path ----------------------------------------------------------------------- */

/*
 * The chain of work that decided when a run was over, from its trace alone.
 *
 * The simulator finds the same path from its own steps (sim/predict/critical_path.h), which a store does not keep. A run of
 * which only the trace is left, a measured one above all, has this one. On predicted runs both are equal. In a measured run
 * a gap may be left: nothing that is recorded was over at its end.
 */

/* Edges by the span they lead to, and work by its end. */
struct inward {
    size_t *first; /* per span, and one behind the last */
    int *from;
    int *ends;
    size_t end_count;
};

static bool page_sort_edges(const struct trace *trace, struct arena *arena, struct inward *out)
{
    size_t *next = ARENA_ARRAY(arena, trace->span_count + 1, size_t);
    out->first = ARENA_ARRAY(arena, trace->span_count + 2, size_t);
    out->from = ARENA_ARRAY(arena, trace->edge_count + 1, int);
    if (!next || !out->first || !out->from)
        return false;
    for (size_t i = 0; i < trace->edge_count; i++)
        out->first[trace->edges[i].to + 1]++;
    for (size_t s = 0; s < trace->span_count; s++) {
        out->first[s + 1] += out->first[s];
        next[s] = out->first[s];
    }
    for (size_t i = 0; i < trace->edge_count; i++)
        out->from[next[trace->edges[i].to]++] = trace->edges[i].from;
    return true;
}

static bool page_is_work(const struct trace_span *span)
{
    return span->kind == SPAN_DEVICE || span->kind == SPAN_HOST;
}

static int page_compare_ends(const void *left, const void *right, void *context)
{
    const struct trace_span *spans = context, *a = &spans[*(const int *)left],
                            *b = &spans[*(const int *)right];
    return compare_i64(a->end_ns, b->end_ns);
}

static bool sort_ends(const struct trace *trace, struct arena *arena, struct inward *out)
{
    out->ends = ARENA_ARRAY(arena, trace->span_count + 1, int);
    out->end_count = 0;
    for (size_t i = 0; out->ends && i < trace->span_count; i++)
        if (page_is_work(&trace->spans[i]))
            out->ends[out->end_count++] = (int)i;
    if (out->ends)
        SORT_BY(out->ends, out->end_count, page_compare_ends, trace->spans);
    return out->ends != NULL;
}

static int find_last(const struct trace *trace)
{
    int last = -1;
    for (size_t i = 0; i < trace->span_count; i++)
        if (page_is_work(&trace->spans[i]) &&
            (last < 0 || trace->spans[i].end_ns > trace->spans[last].end_ns))
            last = (int)i;
    return last;
}

/* Work leads to later work only, so that the walk ends: it begins earlier, or at the same time and is no shorter. */
static bool is_earlier(const struct trace_span *a, const struct trace_span *b)
{
    return page_is_work(a) &&
           (a->start_ns < b->start_ns || (a->start_ns == b->start_ns && a->end_ns < b->end_ns));
}

/* Work of the same rank is more likely to be the cause than that of another; a gap is between ranks as a rule. */
static int find_ending(const struct trace *trace, const struct inward *inward, int span)
{
    const struct trace_span *spans = trace->spans, *late = &spans[span];
    size_t low =
        SORT_FIRST(i, 0, inward->end_count, spans[inward->ends[i]].end_ns >= late->start_ns);
    int best = -1;
    for (; low < inward->end_count && spans[inward->ends[low]].end_ns == late->start_ns; low++) {
        int from = inward->ends[low];
        bool near = trace->agents[spans[from].agent].rank == trace->agents[late->agent].rank;
        if (is_earlier(&spans[from], late) && (best < 0 || near))
            best = from;
    }
    return best;
}

/* Of what the span needed, that which was over last; -1: nothing. */
static int find_need(const struct trace *trace, const struct inward *inward, const int *before,
                     int span)
{
    const struct trace_span *spans = trace->spans;
    int best =
        before[span] >= 0 && is_earlier(&spans[before[span]], &spans[span]) ? before[span] : -1;
    for (size_t i = inward->first[span]; i < inward->first[span + 1]; i++) {
        int from = inward->from[i];
        if (is_earlier(&spans[from], &spans[span]) &&
            (best < 0 || spans[from].end_ns >= spans[best].end_ns))
            best = from;
    }
    return best;
}

/* Edges lead neither from device to host nor from rank to rank, and know no order of a communicator: where they
   leave a gap, work that was over at the very start fills it. */
static int find_cause(const struct trace *trace, const struct inward *inward, const int *before,
                      int span)
{
    int need = find_need(trace, inward, before, span);
    ASSERT_INDEX(span, trace->span_count);
    bool gap = need < 0 || trace->spans[need].end_ns < trace->spans[span].start_ns;
    int ending = gap ? find_ending(trace, inward, span) : -1;
    return ending >= 0 ? ending : need;
}

/* Indices of spans in the order of time, in `arena`; `before`: for each span the work in front of it on its agent, -1:
   none. Waits are on no path. False: out of memory. */
static bool page_path_find(const struct trace *trace, const int *before, struct arena *arena,
                           int **path, size_t *count)
{
    struct inward inward;
    size_t length = 0;
    if (!page_sort_edges(trace, arena, &inward) || !sort_ends(trace, arena, &inward))
        return false;
    int last = find_last(trace);
    for (int span = last; span >= 0; span = find_cause(trace, &inward, before, span))
        length++;
    *path = ARENA_ARRAY(arena, length + 1, int);
    *count = length;
    for (int span = last; *path && span >= 0; span = find_cause(trace, &inward, before, span))
        (*path)[--length] = span;
    return *path != NULL;
}

/* The files page.html and page.js, made at build. */
static const unsigned char page_html[] = {
#include "trace/page_html.inc"
};
static const unsigned char page_js[] = {
#include "trace/page_js.inc"
};

/* Of waits. */
struct cause {
    const char *words;
    int look; /* of timeline_waits */
};

/* A run with the order in which its spans are written. */
struct leaf {
    const struct trace *trace;
    const struct timeline_options *options;
    const char *title;
    struct timeline_key *key;
    struct arena *arena;
    int *order;    /* spans that are shown, agent by agent, by their start */
    size_t count;  /* of them */
    int *place;    /* of each span in `order`; -1: not shown */
    size_t *first; /* of each agent in `order` */
    int *before;   /* per span: the work in front of it on its agent; -1: none */
    int *
        like; /* per rank: the lowest one that did the same at the same times, which stands for it */
    int rank_count;
    const char **groups; /* per rank: "ranks 0-63 alike:"; NULL: it is alone */
    struct cause *causes;
    size_t cause_count, cause_cap;
    int *cause_of; /* per span; 0: none, else 1 + the cause */
};

static bool page_is_wanted(const struct leaf *leaf, size_t agent)
{
    const struct timeline_options *options = leaf->options;
    ASSERT_INDEX(agent, leaf->trace->agent_count);
    return !options->shows || options->shows(options->context, &leaf->trace->agents[agent]);
}

/* One rank is embedded for all that are alike. */
static bool page_is_shown(const struct leaf *leaf, size_t agent)
{
    ASSERT_INDEX(agent, leaf->trace->agent_count);
    int rank = leaf->trace->agents[agent].rank;
    return page_is_wanted(leaf, agent) && leaf->like[rank] == rank;
}

/* ---- preparation ----------------------------------------------------------------------------- */

/* To the nanosecond: the page zooms. */
static bool fold_ranks(struct leaf *leaf, struct view *view)
{
    const struct trace *trace = leaf->trace;
    trace_range(trace, &view->start_ns, &view->end_ns);
    view->range_ns = view->end_ns - view->start_ns > 0 ? view->end_ns - view->start_ns : 1;
    view->right_pt = (double)view->range_ns;
    view->lanes.of_agent = ARENA_ARRAY(leaf->arena, trace->agent_count + 1, int);
    if (!view->lanes.of_agent)
        return false;
    for (size_t a = 0; a < trace->agent_count; a++) {
        view->lanes.of_agent[a] = page_is_wanted(leaf, a) ? 0 : -1;
        if (trace->agents[a].rank >= view->rank_count)
            view->rank_count = trace->agents[a].rank + 1;
    }
    leaf->groups = ARENA_ARRAY(leaf->arena, (size_t)view->rank_count + 1, const char *);
    if (!leaf->groups || !timeline_fold(view))
        return false;
    leaf->like = view->like;
    leaf->rank_count = view->rank_count;
    for (int rank = 0; rank < view->rank_count && trace->info.kind == RUN_WITNESS; rank++)
        view->like[rank] = rank; /* each step is one of its agent */
    for (int rank = 0; rank < view->rank_count; rank++)
        if (view->like[rank] == rank)
            leaf->groups[rank] = timeline_group_name(view, rank);
    return true;
}

/* The agent of the rank that stands for another; its own place among the agents of its rank. */
static size_t stand_in(const struct leaf *leaf, size_t agent)
{
    const struct trace_agent *agents = leaf->trace->agents, *it = &agents[agent];
    for (size_t a = 0; a < leaf->trace->agent_count; a++)
        if (agents[a].rank == leaf->like[it->rank] && agents[a].kind == it->kind &&
            strcmp(agents[a].name, it->name) == 0)
            return a;
    return agent;
}

/* Work of a rank that is not embedded has the place of the same work of the rank that stands for it, so that paths may
   lead through it. */
static void place_like(struct leaf *leaf, const struct view *view, size_t agent)
{
    size_t other = stand_in(leaf, agent), to = view->first[other];
    for (size_t at = view->first[agent]; at < view->first[agent + 1]; at++) {
        int span = view->order[at];
        if (leaf->trace->spans[span].kind == SPAN_WAIT)
            continue;
        while (to < view->first[other + 1] && leaf->trace->spans[view->order[to]].kind == SPAN_WAIT)
            to++;
        if (to < view->first[other + 1])
            leaf->place[span] = leaf->place[view->order[to++]];
    }
}

static bool order_spans(struct leaf *leaf)
{
    const struct trace *trace = leaf->trace;
    struct view view = {.trace = trace, .arena = leaf->arena};
    leaf->order = ARENA_ARRAY(leaf->arena, trace->span_count + 1, int);
    leaf->place = ARENA_ARRAY(leaf->arena, trace->span_count + 1, int);
    leaf->before = ARENA_ARRAY(leaf->arena, trace->span_count + 1, int);
    leaf->first = ARENA_ARRAY(leaf->arena, trace->agent_count + 1, size_t);
    if (leaf->arena->failed || !timeline_order(&view) || !fold_ranks(leaf, &view))
        return false;
    for (size_t a = 0; a < trace->agent_count; a++) {
        int last = -1;
        leaf->first[a] = leaf->count;
        for (size_t at = view.first[a]; at < view.first[a + 1]; at++) {
            int span = view.order[at];
            leaf->before[span] = last;
            last = trace->spans[span].kind != SPAN_WAIT ? span : last;
            leaf->place[span] = page_is_shown(leaf, a) ? (int)leaf->count : -1;
            if (page_is_shown(leaf, a))
                leaf->order[leaf->count++] = span;
        }
    }
    for (size_t a = 0; a < trace->agent_count; a++)
        if (page_is_wanted(leaf, a) && !page_is_shown(leaf, a))
            place_like(leaf, &view, a);
    return true;
}

/* Behind the causes so far. */
static bool page_add_cause(struct leaf *leaf, const struct cause *cause)
{
    if (!ARENA_GROW(leaf->arena, leaf->causes, leaf->cause_count, leaf->cause_cap))
        return false;
    leaf->causes[leaf->cause_count++] = *cause;
    return true;
}

/* Causes of waits are few. A wait of the same words on another kind of agent may look otherwise, which is another one. */
static bool find_causes(struct leaf *leaf)
{
    const struct trace *trace = leaf->trace;
    leaf->cause_of = ARENA_ARRAY(leaf->arena, trace->span_count + 1, int);
    if (!leaf->cause_of)
        return false;
    struct colors seen;
    colors_init(&seen, leaf->arena);
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct trace_span *span = &trace->spans[i];
        if (span->kind != SPAN_WAIT || leaf->place[i] < 0)
            continue;
        const struct cause cause = {span->cause ? span->cause : "something unknown",
                                    timeline_look(trace, span)};
        const char *name = arena_printf(leaf->arena, "%d%s", cause.look, cause.words);
        int found = name ? colors_add(&seen, name) : -1;
        if (found < 0 || ((size_t)found == leaf->cause_count && !page_add_cause(leaf, &cause)))
            return false;
        leaf->cause_of[i] = found + 1;
    }
    return true;
}

/* ---- columns --------------------------------------------------------------------------------- */

static const struct trace_span *page_span(const void *context, size_t at)
{
    const struct leaf *leaf = context;
    return &leaf->trace->spans[leaf->order[at]];
}

static int64_t page_start_of(const void *context, size_t at)
{
    return page_span(context, at)->start_ns;
}

static int64_t page_length_of(const void *context, size_t at)
{
    const struct trace_span *span = page_span(context, at);
    return span->end_ns - span->start_ns;
}

/* Behind the empty name, which is the first. */
static int64_t page_name_of(const void *context, size_t at)
{
    const struct leaf *leaf = context;
    const char *task = page_span(context, at)->task;
    return task ? colors_find(&leaf->key->colors, task) + 1 : 0;
}

/* 0: it is of none. */
static int64_t page_iteration_of(const void *context, size_t at)
{
    return page_span(context, at)->iteration + 1;
}

static int64_t page_cause_of(const void *context, size_t at)
{
    const struct leaf *leaf = context;
    return leaf->cause_of[leaf->order[at]];
}

static int64_t page_place_of(const void *context, size_t at)
{
    return ((const int *)context)[at];
}

static void write_columns(const struct leaf *leaf, struct json *json)
{
    page_column_write(json, "starts", leaf->count, page_start_of, leaf);
    page_column_write(json, "lengths", leaf->count, page_length_of, leaf);
    page_column_write(json, "names_of", leaf->count, page_name_of, leaf);
    page_column_write(json, "iterations_of", leaf->count, page_iteration_of, leaf);
    page_column_write(json, "causes_of", leaf->count, page_cause_of, leaf);
}

/* Edges to what is shown, from what is shown or stood for. */
static bool write_edges(const struct leaf *leaf, struct json *json)
{
    const struct trace *trace = leaf->trace;
    int *ends[2];
    size_t count = 0;
    for (int end = 0; end < 2; end++)
        ends[end] = ARENA_ARRAY(leaf->arena, trace->edge_count + 1, int);
    if (!ends[0] || !ends[1])
        return false;
    for (size_t i = 0; i < trace->edge_count; i++) {
        const struct trace_edge *edge = &trace->edges[i];
        if (leaf->place[edge->from] < 0 || leaf->place[edge->to] < 0 ||
            !page_is_shown(leaf, (size_t)trace->spans[edge->to].agent))
            continue;
        ends[0][count] = leaf->place[edge->from];
        ends[1][count++] = leaf->place[edge->to];
    }
    page_column_write(json, "edges_from", count, page_place_of, ends[0]);
    page_column_write(json, "edges_to", count, page_place_of, ends[1]);
    return true;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void write_agents(const struct leaf *leaf, struct json *json)
{
    json_begin_array_at(json, "agents");
    for (size_t a = 0; a < leaf->trace->agent_count; a++) {
        const struct trace_agent *agent = &leaf->trace->agents[a];
        if (!page_is_shown(leaf, a))
            continue;
        json_begin_object(json);
        json_put_int(json, "rank", agent->rank);
        if (leaf->groups[agent->rank])
            json_put_string(json, "ranks", leaf->groups[agent->rank]);
        json_put_string(json, "kind", trace_agent_kind_text(agent->kind));
        json_put_string(json, "name", agent->name);
        json_put_int(json, "first", (int64_t)leaf->first[a]);
        json_end_object(json);
    }
    json_end_array(json);
}

static void page_write_names(const struct leaf *leaf, struct json *json)
{
    enum { NAMELESS = 8 }; /* a grey */
    const struct colors *colors = &leaf->key->colors;
    json_begin_array_at(json, "names");
    json_string(json, "");
    for (size_t i = 0; i < colors->count; i++)
        json_string(json, colors->items[i].name);
    json_end_array(json);
    json_begin_array_at(json, "color");
    json_int(json, NAMELESS);
    for (size_t i = 0; i < colors->count; i++)
        json_int(json, colors->items[colors->items[i].group].color);
    json_end_array(json);
    json_begin_array_at(json, "causes");
    for (size_t i = 0; i < leaf->cause_count; i++)
        json_string(json, leaf->causes[i].words);
    json_end_array(json);
    json_begin_array_at(json, "look");
    for (size_t i = 0; i < leaf->cause_count; i++)
        json_int(json, leaf->causes[i].look);
    json_end_array(json);
}

static void page_write_iterations(const struct leaf *leaf, struct json *json)
{
    json_begin_array_at(json, "iterations");
    for (size_t i = 0; i < leaf->trace->iteration_count; i++) {
        const struct trace_iteration *iteration = &leaf->trace->iterations[i];
        bool known = iteration->rank >= 0 && iteration->rank < leaf->rank_count;
        if (known && leaf->like[iteration->rank] != iteration->rank)
            continue;
        json_begin_array(json);
        json_int(json, iteration->rank);
        json_int(json, iteration->number);
        json_int(json, iteration->start_ns);
        json_int(json, iteration->retire_ns);
        json_end_array(json);
    }
    json_end_array(json);
}

static bool page_write_path(const struct leaf *leaf, struct json *json)
{
    int *path;
    size_t count;
    if (!page_path_find(leaf->trace, leaf->before, leaf->arena, &path, &count))
        return false;
    json_begin_array_at(json, "path");
    for (size_t i = 0; i < count; i++)
        if (leaf->place[path[i]] >= 0)
            json_int(json, leaf->place[path[i]]);
    json_end_array(json);
    return true;
}

/* ---- a window of a long run ------------------------------------------------------------------- */

static int64_t page_took(const struct trace_span *span)
{
    return span->end_ns - span->start_ns;
}

static size_t spans_between(const struct trace *trace, int64_t from_ns, int64_t to_ns)
{
    size_t count = 0;
    for (size_t i = 0; i < trace->span_count; i++)
        count += trace->spans[i].end_ns >= from_ns && trace->spans[i].start_ns <= to_ns;
    return count;
}

size_t page_window(const struct trace *trace, int stalls[PAGE_STALLS], int64_t *from_ns,
                   int64_t *to_ns)
{
    size_t count = 0;
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct trace_span *span = &trace->spans[i];
        if (span->kind != SPAN_WAIT || trace->agents[span->agent].kind != TRACE_STREAM ||
            (count == PAGE_STALLS &&
             page_took(span) <= page_took(&trace->spans[stalls[PAGE_STALLS - 1]])))
            continue;
        size_t at = count < PAGE_STALLS ? count++ : PAGE_STALLS - 1;
        for (; at > 0 && page_took(&trace->spans[stalls[at - 1]]) < page_took(span); at--)
            stalls[at] = stalls[at - 1];
        stalls[at] = (int)i;
    }
    trace_range(trace, from_ns, to_ns);
    const int64_t around = count > 0 ? trace->spans[stalls[0]].end_ns : *from_ns;
    int64_t half = *to_ns - *from_ns;
    while (half > 1 && spans_between(trace, *from_ns, *to_ns) > PAGE_MOST_SPANS) {
        half /= 2;
        *from_ns = max_i64(*from_ns, around - half);
        *to_ns = min_i64(*to_ns, around + half);
    }
    return count;
}

/* ---- a counterexample ------------------------------------------------------------------------ */

/* How many steps it has: the blocked agents stand behind the last one. */
static int64_t story_length(const struct trace *trace)
{
    int64_t length = 0;
    for (size_t i = 0; i < trace->span_count; i++)
        if (trace->spans[i].kind != SPAN_WAIT && trace->spans[i].end_ns > length)
            length = trace->spans[i].end_ns;
    return length;
}

/* What happens in each step, whole and without its agent; a step that the store left out has empty texts. */
static bool write_story_steps(const struct leaf *leaf, struct json *json)
{
    const struct trace *trace = leaf->trace;
    const size_t length = (size_t)story_length(trace);
    const struct trace_step **steps =
        ARENA_ARRAY(leaf->arena, length + 1, const struct trace_step *);
    if (!steps)
        return false;
    for (size_t i = 0; i < trace->step_count; i++)
        if (trace->steps[i].seq >= 0 && (size_t)trace->steps[i].seq < length)
            steps[trace->steps[i].seq] = &trace->steps[i];
    json_begin_array_at(json, "steps");
    for (size_t i = 0; i < length; i++) {
        const struct trace_step *step = steps[i];
        const char *text = step ? arena_printf(leaf->arena, "%s %s", step->agent, step->op) : "";
        json_string(json, text ? text : "");
    }
    json_end_array(json);
    json_begin_array_at(json, "short");
    for (size_t i = 0; i < length; i++)
        json_string(json, steps[i] ? steps[i]->op : "");
    json_end_array(json);
    return true;
}

static bool write_story(const struct leaf *leaf, struct json *json)
{
    const struct trace *trace = leaf->trace;
    json_begin_object_at(json, "story");
    json_put_string(json, "sentence", trace->info.note ? trace->info.note : "");
    json_begin_array_at(json, "cycle");
    for (size_t i = 0; i < trace->edge_count; i++) {
        const struct trace_edge *edge = &trace->edges[i];
        if (edge->kind != EDGE_CYCLE || leaf->place[edge->from] < 0 || leaf->place[edge->to] < 0)
            continue;
        json_begin_array(json);
        json_int(json, leaf->place[edge->from]);
        json_int(json, leaf->place[edge->to]);
        json_end_array(json);
    }
    json_end_array(json);
    const bool written = write_story_steps(leaf, json);
    json_end_object(json);
    return written;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum status page_write_run(struct leaf *leaf, struct json *json, struct diag *diag)
{
    const struct run_info *info = &leaf->trace->info;
    int64_t start_ns, end_ns;
    if (!order_spans(leaf) || !find_causes(leaf))
        return diag_no_memory(diag);
    if (leaf->count == 0)
        return diag_error(diag, STATUS_INPUT,
                          "nothing to show: the options leave no rank or stream");
    trace_range(leaf->trace, &start_ns, &end_ns);
    const bool story = info->kind == RUN_WITNESS;
    json_begin_object(json);
    json_put_string(json, "form", story ? "story" : "timeline");
    json_put_string(json, "title", leaf->title);
    json_put_string(
        json, "about",
        story && info->note
            ? info->note
            : arena_printf(
                  leaf->arena, "%s%s%s%s%s%s%s", run_kind_text(info->kind),
                  info->device && *info->device ? ", " : "", info->device ? info->device : "",
                  info->driver != RUN_DRIVER_NONE ? ", driver " : "",
                  info->driver != RUN_DRIVER_NONE ? run_driver_text(info->driver) : "",
                  leaf->options->note ? "; " : "", leaf->options->note ? leaf->options->note : ""));
    json_put_int(json, "end", end_ns);
    write_agents(leaf, json);
    page_write_names(leaf, json);
    page_write_iterations(leaf, json);
    write_columns(leaf, json);
    bool written = write_edges(leaf, json);
    if (story) {
        json_begin_array_at(json, "path");
        json_end_array(json);
        written = written && write_story(leaf, json);
    } else {
        written = written && page_write_path(leaf, json);
    }
    json_end_object(json);
    return written && !leaf->arena->failed ? STATUS_OK : diag_no_memory(diag);
}

/* The colours of a theme: of names by their number, of waits by their look. */
static void write_theme(struct json *json, const char *name, enum theme theme, bool grey)
{
    const struct look look = {.theme = theme, .grey = grey};
    char out[LOOK_COLOR];
    json_begin_object_at(json, name);
    json_begin_array_at(json, "fills");
    for (int i = 0; i < DRAW_COLORS; i++)
        json_string(json, look_color(&look, LOOK_AREA, draw_fill(i), out));
    json_end_array(json);
    json_begin_array_at(json, "waits");
    for (int i = 0; i < WAIT_LOOKS; i++)
        json_string(json, look_color(&look, LOOK_AREA, timeline_waits[i].fill, out));
    json_end_array(json);
    json_end_object(json);
}

/* The looks of waits, for the legend. */
static void write_waits(struct json *json)
{
    json_begin_array_at(json, "waits");
    for (int i = 0; i < WAIT_LOOKS; i++)
        json_string(json, timeline_waits[i].words);
    json_end_array(json);
}

/* The runs of a page. */
struct page_request {
    const struct trace *traces; /* or charts; NULL both: a picture */
    const struct chart *charts;
    size_t count;
    const struct timeline_options *options; /* of traces */
    enum palette palette;                   /* of charts */
    const char *title, *about;
    const char *svg; /* of a picture */
    size_t svg_bytes;
};

static enum status write_traces(const struct page_request *request, struct arena *arena,
                                struct json *json, struct diag *diag)
{
    struct timeline_key key = {.arena = arena};
    enum status status = STATUS_OK;
    colors_init(&key.colors, arena);
    for (size_t i = 0; i < request->count; i++)
        if (!timeline_names(&key, &request->traces[i]))
            return diag_no_memory(diag);
    for (size_t i = 0; i < request->count && status == STATUS_OK; i++) {
        struct leaf leaf = {.trace = &request->traces[i],
                            .options = request->options,
                            .title = timeline_title(request->options, request->traces, i),
                            .key = &key,
                            .arena = arena};
        status = page_write_run(&leaf, json, diag);
    }
    return status;
}

static enum status write_data(const struct page_request *request, const struct look *look,
                              struct arena *arena, FILE *out, struct diag *diag)
{
    struct json json;
    enum status status = STATUS_OK;
    json_open(&json, out);
    json_begin_object(&json);
    json_put_string(&json, "title", request->title);
    json_put_string(&json, "about", request->about);
    json_put_bool(&json, "dark", look->theme == THEME_DARK);
    json_put_bool(&json, "light", look->theme == THEME_PAPER);
    write_theme(&json, "onLight", THEME_LIGHT, look->grey);
    write_theme(&json, "onDark", THEME_DARK, look->grey);
    write_waits(&json);
    json_begin_array_at(&json, "runs");
    if (request->traces)
        status = write_traces(request, arena, &json, diag);
    for (size_t i = 0; request->charts && i < request->count; i++)
        if (!page_chart_write(&request->charts[i], request->palette, arena, &json))
            return diag_no_memory(diag);
    if (status != STATUS_OK)
        return status;
    json_end_array(&json);
    json_end_object(&json);
    return STATUS_OK;
}

/* In JSON a '<' stands in texts only. */
static void put_safely(const char *text, size_t bytes, FILE *out)
{
    for (const char *end = text + bytes; text < end;) {
        const char *found = memchr(text, '<', (size_t)(end - text));
        size_t length = (size_t)((found ? found : end) - text);
        fwrite(text, 1, length, out);
        if (found)
            fputs("\\u003c", out);
        text += length + (found != NULL);
    }
}

/* page.html up to a mark, which is skipped; returns what follows. */
static const char *put_until(const char *text, const char *mark, FILE *out)
{
    const char *end = (const char *)page_html + sizeof page_html;
    size_t length = strlen(mark);
    const char *found = memmem(text, (size_t)(end - text), mark, length);
    fwrite(text, 1, (size_t)((found ? found : end) - text), out);
    return found ? found + length : end;
}

/* The element of an SVG file, without what a file has in front of it. */
static void put_svg(const struct page_request *request, FILE *out)
{
    const char *from = memmem(request->svg, request->svg_bytes, "<svg", 4);
    if (from)
        fwrite(from, 1, request->svg_bytes - (size_t)(from - request->svg), out);
}

static enum status page_make(const struct page_request *request, const struct look *look, FILE *out,
                             struct diag *diag)
{
    struct text_stream data;
    struct arena arena;
    size_t bytes = 0;
    if (!text_open(&data))
        return diag_no_memory(diag);
    arena_init(&arena, 0);
    enum status status = write_data(request, look, &arena, data.out, diag);
    char *text = text_close(&data, status == STATUS_OK, &bytes);
    arena_fini(&arena);
    if (status == STATUS_OK && !text)
        status = diag_no_memory(diag);
    if (status == STATUS_OK) {
        const char *rest = put_until((const char *)page_html, "@PICTURE@", out);
        if (request->svg)
            put_svg(request, out);
        rest = put_until(rest, "@DATA@", out);
        put_safely(text, bytes, out);
        rest = put_until(rest, "@SCRIPT@", out);
        fwrite(page_js, 1, sizeof page_js, out);
        put_until(rest, "@END@", out);
    }
    free(text);
    return status;
}

enum status page_write(const struct trace *traces, size_t count,
                       const struct timeline_options *options, const struct look *look, FILE *out,
                       struct diag *diag)
{
    const struct page_request request = {.traces = traces,
                                         .count = count,
                                         .options = options,
                                         .title = timeline_title(options, traces, 0),
                                         .about = ""}; /* each run has its own */
    for (size_t i = 0; i < count && count > 1; i++)
        if (traces[i].info.kind == RUN_WITNESS)
            return diag_error(diag, STATUS_INPUT,
                              "a counterexample has no axis of time to share: draw it alone");
    return page_make(&request, look, out, diag);
}

enum status page_write_charts(const struct chart *charts, size_t count, enum palette palette,
                              const struct look *look, FILE *out, struct diag *diag)
{
    const struct page_request request = {.charts = charts,
                                         .count = count,
                                         .palette = look->grey ? PALETTE_GREY : palette,
                                         .title = charts->title,
                                         .about = ""};
    return page_make(&request, look, out, diag);
}

enum status page_write_picture(const char *title, const char *svg, size_t bytes,
                               const struct look *look, FILE *out, struct diag *diag)
{
    const struct page_request request = {
        .title = title, .about = "the graph of a plan", .svg = svg, .svg_bytes = bytes};
    return page_make(&request, look, out, diag);
}
