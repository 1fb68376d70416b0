/* SPDX-License-Identifier: Apache-2.0 */
/* witness.c - see witness.h. */
#include "witness.h"

#include <assert.h>
#include <string.h>
#include <time.h>

#include "api/telling.h"
#include "api/verdict.h"
#include "plan/text/print.h"
#include "trace/store.h"
#include "trace/timeline.h"
#include "base/assert_index.h"

/* A counterexample on its way to a picture or a store. */
struct witness {
    struct app *app;
    const struct plan *plan;
    const struct program_options *options;
    const struct verify_report *report;
    enum property property;
    const struct story *story;
};

/* ---- as a trace: one step a nanosecond ------------------------------------------------------- */

static enum trace_agent_kind lane_kind(enum agent_kind kind, const char *name)
{
    switch (kind) {
    case AGENT_STREAM:
    case AGENT_COMM: return TRACE_STREAM;
    case AGENT_DATA:
    case AGENT_FAULT:
    case AGENT_WATCHDOG: return TRACE_DRIVER;
    case AGENT_THREAD: break;
    }
    return strcmp(name, "driver") == 0 ? TRACE_DRIVER : TRACE_THREAD;
}

/* "rank 1 stream memcpy" is lane "memcpy" of the streams of rank 1. */
static const char *lane_name(const char *agent)
{
    static const char *const words[] = {"stream ", "thread "};
    if (strncmp(agent, "rank ", 5) == 0) {
        agent += 5 + strspn(agent + 5, "0123456789");
        agent += *agent == ' ';
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncmp(agent, words[i], strlen(words[i])) == 0)
            return agent + strlen(words[i]);
    return agent;
}

/* The lane of an agent, made on first use; `index` orders them as the program does. */
static int lane(struct trace *trace, int rank, enum agent_kind agent_kind, const char *agent,
                int index)
{
    const char *name = lane_name(agent);
    enum trace_agent_kind kind = lane_kind(agent_kind, name);
    rank = rank < 0 ? 0 : rank;
    int found = trace_find_agent(trace, rank, kind, name);
    return found >= 0 ? found : trace_add_agent(trace, rank, kind, name, index);
}

/* When the work that a stream starts in step `start` ends: behind the step that finishes it. */
static size_t work_end(const struct story *story, size_t start)
{
    ASSERT_INDEX(start, story->step_count);
    for (size_t i = start + 1; i < story->step_count; i++)
        if (story->steps[i].agent_index == story->steps[start].finished_by &&
            story->steps[i].kind == EFFECT_FINISH)
            return i + 1;
    return story->step_count;
}

static bool witness_add_span(const struct witness *witness, size_t i, struct trace *trace)
{
    const struct story *story = witness->story;
    const struct story_step *step = &story->steps[i];
    assert(i < story->step_count);
    struct trace_span span = {
        .agent = lane(trace, step->rank, step->agent_kind, step->agent, step->agent_index),
        .kind = step->kind == EFFECT_HOST ? SPAN_HOST : SPAN_DEVICE,
        .task = step->task ? step->task : telling_label(step),
        .iteration = witness->report->finite || !step->task ? -1 : step->iteration,
        .start_ns = (int64_t)i,
        .end_ns = step->kind == EFFECT_START ? (int64_t)work_end(story, i) : (int64_t)i + 1,
    };
    return span.agent >= 0 && trace_add_span(trace, &span) >= 0;
}

static bool witness_add_step(const struct witness *witness, size_t i, struct trace *trace)
{
    ASSERT_INDEX(i, witness->story->step_count);
    const struct story_step *step = &witness->story->steps[i];
    const struct trace_step row = {
        .seq = (int64_t)i,
        .rank = step->rank,
        .agent = step->agent,
        .op = step->action,
        .task = step->task,
        .iteration = witness->report->finite || !step->task ? -1 : step->iteration,
        .time_ns = (int64_t)i,
    };
    return trace_add_step(trace, &row) >= 0;
}

/* True if the stream has started something that step `i` finishes. Then they are one box. */
static bool is_second_half(const struct story *story, size_t i)
{
    bool begun = false;
    ASSERT_INDEX(i, story->step_count);
    for (size_t k = 0; k < i && story->steps[i].kind == EFFECT_FINISH && !begun; k++)
        begun = story->steps[k].agent_index == story->steps[i].agent_index &&
                story->steps[k].kind == EFFECT_START;
    return begun;
}

static bool witness_add_steps(const struct witness *witness, struct trace *trace)
{
    for (size_t i = 0; i < witness->story->step_count; i++)
        if (!witness_add_step(witness, i, trace) ||
            (!is_second_half(witness->story, i) && !witness_add_span(witness, i, trace)))
            return false;
    return true;
}

/* An agent that is blocked at the end waits in its lane, for one more step. */
static bool witness_add_waits(const struct story *story, struct trace *trace, int *waits)
{
    for (size_t i = 0; i < story->blocked_count; i++) {
        const struct story_blocked *blocked = &story->blocked[i];
        struct trace_span span = {
            .agent = lane(trace, blocked->rank, blocked->agent_kind, blocked->agent,
                          blocked->agent_index),
            .kind = SPAN_WAIT,
            .iteration = -1,
            .start_ns = (int64_t)story->step_count,
            .end_ns = (int64_t)story->step_count + 1,
            .cause = blocked->waits_for,
        };
        waits[i] = span.agent >= 0 ? trace_add_span(trace, &span) : -1;
        if (waits[i] < 0)
            return false;
    }
    return true;
}

/* The box of a step, or of the work that the step starts; -1: none. */
static int span_of_step(const struct trace *trace, int64_t step)
{
    for (size_t i = 0; i < trace->span_count; i++)
        if (trace->spans[i].start_ns == step)
            return (int)i;
    return -1;
}

/* A race is between the step of the other access and the last one. */
static bool add_race(const struct story *story, struct trace *trace)
{
    if (story->other_step < 0)
        return true;
    assert((size_t)story->other_step < story->step_count);
    int from = span_of_step(trace, story->other_step);
    int to = span_of_step(trace, (int64_t)story->step_count - 1);
    return from < 0 || to < 0 || trace_add_edge(trace, from, to, EDGE_RACE) >= 0;
}

static bool witness_add_blocked(const struct witness *witness, struct trace *trace)
{
    const struct story *story = witness->story;
    int *waits = ARENA_ARRAY(trace->arena, story->blocked_count + 1, int);
    if (!waits || !witness_add_waits(story, trace, waits))
        return false;
    for (size_t i = 0; i < story->blocked_count; i++) {
        int on = story->blocked[i].on;
        assert(on < (int)story->blocked_count);
        bool cycle = on >= 0 && story->blocked[i].in_cycle && story->blocked[on].in_cycle;
        if (on >= 0 &&
            trace_add_edge(trace, waits[i], waits[on], cycle ? EDGE_CYCLE : EDGE_BLOCKED) < 0)
            return false;
    }
    return true;
}

static bool set_info(const struct witness *witness, const char *plan_text, struct trace *trace)
{
    static const enum run_driver drivers[] = {[DRIVER_NONE] = RUN_DRIVER_NONE,
                                              [DRIVER_CLOCK] = RUN_DRIVER_CLOCK,
                                              [DRIVER_DATAFLOW] = RUN_DRIVER_DATAFLOW};
    const struct verify_report *report = witness->report;
    int ranks = witness->options->ranks;
    assert((size_t)report->driver < sizeof drivers / sizeof *drivers);
    const struct run_info info = {
        .kind = RUN_WITNESS,
        .plan_name = report->plan,
        .plan_text = plan_text,
        .driver = drivers[report->driver],
        .ranks = ranks ? ranks : plan_rank_count(witness->plan),
        .created_unix_s = (int64_t)time(NULL),
        .duration_ns = (int64_t)witness->story->step_count,
        .finished = RUN_INTERRUPTED,
        .note = arena_printf(trace->arena, "%s: %s", property_key(witness->property),
                             witness->story->sentence),
    };
    return info.note && trace_set_info(trace, &info);
}

/* `plan_text`: NULL for a picture. */
static enum status make_trace(const struct witness *witness, const char *plan_text,
                              struct trace *trace)
{
    trace_init(trace, &witness->app->arena);
    if (!set_info(witness, plan_text, trace) || !witness_add_steps(witness, trace) ||
        !witness_add_blocked(witness, trace) || !add_race(witness->story, trace) ||
        !trace_sort(trace))
        return diag_no_memory(&witness->app->diag);
    return STATUS_OK;
}

/* ---- in a store ------------------------------------------------------------------------------ */

/* All it takes to happen again. */
static enum status witness_describe(const struct witness *witness, struct trace_witness *out)
{
    const struct story *story = witness->story;
    struct arena *arena = &witness->app->arena;
    *out = (struct trace_witness){
        .property = property_key(witness->property),
        .iterations = witness->options->iterations,
        .ranks = witness->options->ranks,
        .max_depth = witness->options->max_depth,
        .moves = ARENA_ARRAY(arena, story->step_count + 1, struct trace_move),
        .move_count = story->step_count,
        .blocked = ARENA_ARRAY(arena, story->blocked_count + 1, struct trace_blocked),
        .blocked_count = story->blocked_count,
    };
    if (!out->moves || !out->blocked)
        return diag_no_memory(&witness->app->diag);
    for (size_t i = 0; i < story->step_count; i++)
        out->moves[i] = (struct trace_move){story->steps[i].agent_index, story->steps[i].choice};
    for (size_t i = 0; i < story->blocked_count; i++) {
        const struct story_blocked *from = &story->blocked[i];
        out->blocked[i] = (struct trace_blocked){from->rank, from->agent, from->waits_for, from->on,
                                                 from->in_cycle};
    }
    return STATUS_OK;
}

static enum status add_to_store(const struct witness *witness, const char *plan_text,
                                struct store *store)
{
    struct diag *diag = &witness->app->diag;
    struct trace trace;
    struct trace_witness row;
    int64_t run = -1;
    enum status status = make_trace(witness, plan_text, &trace);
    if (status == STATUS_OK)
        status = witness_describe(witness, &row);
    if (status == STATUS_OK)
        status = store_write_trace(store, &trace, &run, diag);
    return status == STATUS_OK ? store_add_witness(store, run, &row, diag) : status;
}

/* One run a violated property. */
static enum status store_all(struct witness *witness, const char *path)
{
    struct app *app = witness->app;
    const struct verify_report *report = witness->report;
    struct store *store = NULL;
    const char *text = NULL;
    enum status status = plan_kept_text_in(witness->plan, &app->arena, &text, &app->diag);
    if (status == STATUS_OK)
        status = store_open(path, true, &store, &app->diag);
    for (int p = 0; p < PROPERTY_COUNT && status == STATUS_OK; p++) {
        witness->property = (enum property)p;
        witness->story = &report->stories[p];
        if (outcome_is_violation(report->outcome[p]) || p == (int)report->first)
            status = add_to_store(witness, text, store);
    }
    enum status closed = store_close(store, &app->diag);
    return status != STATUS_OK ? status : closed;
}

/* ---- in a file ------------------------------------------------------------------------------- */

static enum status witness_draw(const struct witness *witness, const char *path)
{
    struct trace trace;
    enum status status = make_trace(witness, NULL, &trace);
    if (status != STATUS_OK)
        return status;
    return timeline_render(&trace, 1, &(struct timeline_options){0},
                           &(struct draw_target){.path = path}, &witness->app->diag);
}

static enum status witness_tell(struct app *app, const struct verdict_view *view, const char *path,
                                bool json_wanted)
{
    enum status status = STATUS_OK;
    struct app_output output;
    if (app_create(app, path, &output) != STATUS_OK)
        return STATUS_SYSTEM;
    if (json_wanted) {
        struct json json;
        json_open(&json, output.file);
        verdict_write(view, &json);
    } else {
        const struct verdict_style style = {.arena = &app->arena,
                                            .diag = &app->diag,
                                            .color = app_color(app, output.file),
                                            .quiet = app->quiet,
                                            .whole = true};
        status = verdict_print(&style, view, output.file);
    }
    return app_close_file(app, &output, status);
}

static bool witness_has_suffix(const char *path, const char *suffix)
{
    size_t length = strlen(path), wanted = strlen(suffix);
    return length > wanted && strcmp(path + length - wanted, suffix) == 0;
}

bool witness_keeps_all(const char *path)
{
    return witness_has_suffix(path, ".db");
}

enum status witness_save(struct app *app, const struct plan *plan,
                         const struct program_options *options, const struct verdict_view *view,
                         const char *path)
{
    const struct verify_report *report = view->report;
    struct witness witness = {app,    plan,          options,
                              report, report->first, &report->stories[report->first]};
    if (witness_keeps_all(path))
        return store_all(&witness, path);
    if (witness_has_suffix(path, ".json") || witness_has_suffix(path, ".txt"))
        return witness_tell(app, view, path, witness_has_suffix(path, ".json"));
    return witness_draw(&witness, path);
}
