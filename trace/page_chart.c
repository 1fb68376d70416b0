/* SPDX-License-Identifier: Apache-2.0 */
/* page_chart.c - see page_chart.h. Passes that look alike share a name: those of one kind and chunk. */
#include "page_chart.h"

#include "base/array.h"
#include "page_column.h"
#include "schedule_sheet.h"

/* One way that passes look. */
struct page_style {
    enum chart_kind kind;
    int chunk, other_chunk;
};

/* The passes of all ranks, one after the other. */
struct page_chart {
    const struct chart *chart;
    const struct chart_pass **passes;
    int *style_of; /* per pass */
    size_t count;
    struct page_style *styles;
    size_t style_count, style_cap;
    const struct chart_level **levels;
    size_t level_count;
};

/* The place of the pass's style among those so far; -1: out of memory. */
static int page_style_of(struct page_chart *it, const struct chart_pass *pass, struct arena *arena)
{
    const bool plain = pass->kind == CHART_OPTIMIZER;
    const struct page_style style = {pass->kind, plain ? 0 : pass->chunk,
                                     pass->kind == CHART_OVERLAP ? pass->other_chunk : 0};
    for (size_t i = 0; i < it->style_count; i++)
        if (it->styles[i].kind == style.kind && it->styles[i].chunk == style.chunk &&
            it->styles[i].other_chunk == style.other_chunk)
            return (int)i;
    if (!ARENA_GROW(arena, it->styles, it->style_count, it->style_cap))
        return -1;
    it->styles[it->style_count] = style;
    return (int)it->style_count++;
}

static bool page_chart_collect(struct page_chart *it, struct arena *arena)
{
    const struct chart *chart = it->chart;
    size_t passes = 0, levels = 0;
    for (int r = 0; r < chart->rank_count; r++) {
        passes += chart->ranks[r].count;
        levels += chart->ranks[r].level_count;
    }
    it->passes = ARENA_ARRAY(arena, passes + 1, const struct chart_pass *);
    it->style_of = ARENA_ARRAY(arena, passes + 1, int);
    it->levels = ARENA_ARRAY(arena, levels + 1, const struct chart_level *);
    if (!it->passes || !it->style_of || !it->levels)
        return false;
    for (int r = 0; r < chart->rank_count; r++) {
        const struct chart_rank *rank = &chart->ranks[r];
        for (size_t i = 0; i < rank->count; i++) {
            const int style = page_style_of(it, &rank->passes[i], arena);
            if (style < 0)
                return false;
            it->style_of[it->count] = style;
            it->passes[it->count++] = &rank->passes[i];
        }
        for (size_t i = 0; i < rank->level_count; i++)
            it->levels[it->level_count++] = &rank->levels[i];
    }
    return true;
}

/* ---- columns --------------------------------------------------------------------------------- */

static int64_t chart_start(const void *context, size_t at)
{
    return ((const struct page_chart *)context)->passes[at]->start_ns;
}

static int64_t chart_length(const void *context, size_t at)
{
    const struct chart_pass *pass = ((const struct page_chart *)context)->passes[at];
    return pass->end_ns - pass->start_ns;
}

static int64_t chart_name(const void *context, size_t at)
{
    return ((const struct page_chart *)context)->style_of[at];
}

/* 0: it is of no microbatch. */
static int64_t chart_number(const void *context, size_t at)
{
    const struct chart_pass *pass = ((const struct page_chart *)context)->passes[at];
    return pass->kind == CHART_OPTIMIZER ? 0 : 1 + pass->microbatch;
}

static int64_t chart_other(const void *context, size_t at)
{
    const struct chart_pass *pass = ((const struct page_chart *)context)->passes[at];
    return pass->kind == CHART_OVERLAP ? 1 + pass->other_microbatch : 0;
}

static int64_t level_time(const void *context, size_t at)
{
    return ((const struct page_chart *)context)->levels[at]->time_ns;
}

static int64_t level_bytes(const void *context, size_t at)
{
    return ((const struct page_chart *)context)->levels[at]->bytes;
}

/* ---- members --------------------------------------------------------------------------------- */

static void chart_agents(const struct chart *chart, struct json *json)
{
    char name[32];
    size_t first = 0;
    json_begin_array_at(json, "agents");
    for (int r = 0; r < chart->rank_count; r++) {
        snprintf(name, sizeof name, "rank %d", r);
        json_begin_object(json);
        json_put_int(json, "rank", r);
        json_put_string(json, "kind", "rank");
        json_put_string(json, "name", name);
        json_put_int(json, "first", (int64_t)first);
        json_end_object(json);
        first += chart->ranks[r].count;
    }
    json_end_array(json);
}

static const char *style_words(const struct chart *chart, const struct page_style *style, char *out,
                               size_t size)
{
    static const char *const words[] = {
#define X(name, text) text,
        CHART_KIND_LIST(X)
#undef X
    };
    const char *part = chart->copies ? "copy" : "chunk";
    if (chart->chunks < 2 || style->kind == CHART_OPTIMIZER)
        snprintf(out, size, "%s", words[style->kind]);
    else if (style->kind == CHART_OVERLAP)
        snprintf(out, size, "%s, %s %d and %d", words[style->kind], part, style->chunk,
                 style->other_chunk);
    else
        snprintf(out, size, "%s, %s %d", words[style->kind], part, style->chunk);
    return out;
}

/* Names and colours; where a palette shows a pair as its parts, their colours stand behind those of the names. */
static void chart_names(const struct page_chart *it, enum palette palette, struct json *json)
{
    const struct chart *chart = it->chart;
    char text[120], fill[PALETTE_COLOR];
    const bool halves = palette != PALETTE_PYTORCH;
    size_t next = it->style_count;
    json_begin_array_at(json, "names");
    for (size_t i = 0; i < it->style_count; i++)
        json_string(json, style_words(chart, &it->styles[i], text, sizeof text));
    json_end_array(json);
    json_begin_array_at(json, "color");
    for (size_t i = 0; i < it->style_count; i++)
        json_int(json, (int64_t)i);
    json_end_array(json);
    json_begin_array_at(json, "paints");
    for (size_t i = 0; i < it->style_count; i++) {
        palette_fill(palette, it->styles[i].kind, it->styles[i].chunk, chart->chunks, fill);
        json_string(json, fill);
    }
    for (size_t i = 0; i < it->style_count && halves; i++) {
        const struct page_style *style = &it->styles[i];
        if (style->kind != CHART_OVERLAP)
            continue;
        palette_fill(palette, CHART_F, style->chunk, chart->chunks, fill);
        json_string(json, fill);
        palette_fill(palette, CHART_B, style->other_chunk, chart->chunks, fill);
        json_string(json, fill);
    }
    json_end_array(json);
    json_begin_array_at(json, "pairs");
    for (size_t i = 0; i < it->style_count; i++) {
        if (it->styles[i].kind != CHART_OVERLAP || !halves) {
            json_null(json);
            continue;
        }
        json_begin_array(json);
        json_int(json, (int64_t)next++);
        json_int(json, (int64_t)next++);
        json_end_array(json);
    }
    json_end_array(json);
}

static void chart_memory(const struct page_chart *it, struct json *json)
{
    const struct chart *chart = it->chart;
    size_t first = 0;
    if (it->level_count == 0)
        return;
    json_begin_object_at(json, "memory");
    json_begin_array_at(json, "first");
    for (int r = 0; r < chart->rank_count; r++) {
        json_int(json, (int64_t)first);
        first += chart->ranks[r].level_count;
    }
    json_end_array(json);
    page_column_write(json, "times", it->level_count, level_time, it);
    page_column_write(json, "bytes", it->level_count, level_bytes, it);
    json_put_int(json, "limit", chart->limit_bytes);
    json_put_int(json, "activation", chart->activation);
    json_end_object(json);
}

bool page_chart_write(const struct chart *chart, enum palette palette, struct arena *arena,
                      struct json *json)
{
    struct page_chart it = {.chart = chart};
    char about[CHART_CAPTION];
    if (!page_chart_collect(&it, arena))
        return false;
    json_begin_object(json);
    json_put_string(json, "form", "schedule");
    json_put_string(json, "title", chart->title);
    json_put_string(json, "about", chart_caption(chart, about));
    json_put_int(json, "end", chart->end_ns);
    json_put_int(json, "unit", chart->unit_ns);
    chart_agents(chart, json);
    chart_names(&it, palette, json);
    json_begin_array_at(json, "iterations");
    json_end_array(json);
    json_begin_array_at(json, "path");
    json_end_array(json);
    page_column_write(json, "starts", it.count, chart_start, &it);
    page_column_write(json, "lengths", it.count, chart_length, &it);
    page_column_write(json, "names_of", it.count, chart_name, &it);
    page_column_write(json, "iterations_of", it.count, chart_number, &it);
    page_column_write(json, "others_of", it.count, chart_other, &it);
    page_column_write(json, "edges_from", 0, chart_name, &it);
    page_column_write(json, "edges_to", 0, chart_name, &it);
    chart_memory(&it, json);
    json_end_object(json);
    return true;
}
