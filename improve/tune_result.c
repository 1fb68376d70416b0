/* SPDX-License-Identifier: Apache-2.0 */
/* tune_result.c - see tune.h: the plan that was found, judged from its text, and its changes in words. */
#include "tune.h"

#include <math.h>
#include <string.h>

#include "edits.h"
#include "plan/text/print.h"
#include "base/array.h"

enum { STALE_MAX = 4 }; /* iterations by which a result may be found stale */

static bool tune_result_is_taken(const struct names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i], name) == 0)
            return true;
    return false;
}

/* A spare stream or thread group that is used is named after its first task. */
static bool name_spares(struct tune *tune, struct names *names, const int *used)
{
    struct plan *work = &tune->work;
    for (size_t t = 0; t < tune->tasks; t++) {
        const char *task = work->pipeline.tasks[t].name, *name = task;
        if (*names->items[used[t]] != '\n')
            continue;
        for (int number = 2; name && tune_result_is_taken(names, name); number++)
            name = arena_printf(&work->arena, "%s_%d", task, number);
        if (!name)
            return false;
        names->items[used[t]] = name;
    }
    return true;
}

/* tune->work becomes the plan of `cells`, all names in place. */
static bool finish_work(struct tune *tune, const int *cells)
{
    tune_apply(tune, cells);
    return name_spares(tune, &tune->work.streams, cells + tune_at(tune, TUNE_STREAM)) &&
           name_spares(tune, &tune->work.groups, cells + tune_at(tune, TUNE_GROUP));
}

static enum status judge_result(struct tune *tune, struct tune_result *out, struct diag *diag)
{
    struct verify_report report;
    enum status status =
        tune_verify(&out->plan, tune->options, tune->options->driver, false, 0, &report, diag);
    if (status != STATUS_OK)
        return status;
    out->verdict = report.verdict;
    verify_fini(&report);
    return tune_find_period(&out->plan, tune->options, tune->way, tune->exact, &out->steady,
                            &out->period_ns, diag);
}

static void set_staleness(struct tune *tune, int iterations)
{
    for (size_t i = 0; i < tune->given.buffer_count; i++) {
        int given = tune->given.buffers[i].staleness;
        bool shared = tune->given.buffers[i].scope == SCOPE_SHARED;
        tune->work.buffers[i].staleness = shared && iterations > given ? iterations : given;
    }
}

/* With allow_stale the plan that was found says how stale its reads are: the least `staleness:` of its shared
   buffers with which it is proved, or the given one if there is none. */
static enum status declare_staleness(struct tune *tune, struct diag *diag)
{
    bool proved = false;
    enum status status = STATUS_OK;
    for (int iterations = 0; status == STATUS_OK && !proved && iterations <= STALE_MAX;
         iterations++) {
        struct verify_report report;
        set_staleness(tune, iterations);
        status = tune_verify(&tune->work, tune->options, tune->options->driver, false, tune->states,
                             &report, diag);
        if (status == STATUS_OK) {
            proved = report.verdict == VERDICT_PROVED;
            verify_fini(&report);
        }
    }
    if (!proved)
        set_staleness(tune, 0);
    return status;
}

/* Runs and profiles of the two plans are told apart by it. */
const char *tune_name(const char *name, struct arena *arena)
{
    static const char suffix[] = "_tuned";
    const size_t length = strlen(name), more = sizeof suffix - 1;
    bool has = length >= more && strcmp(name + length - more, suffix) == 0;
    return has || length + more > PLAN_MAX_NAME ? name : arena_printf(arena, "%s%s", name, suffix);
}

enum status tune_examine(struct tune *tune, const int *cells, struct tune_result *out,
                         struct diag *diag)
{
    *out = (struct tune_result){.period_ns = NAN,
                                .depth = tune_depth(tune, cells),
                                .streams = tune_count_used(tune, cells, TUNE_STREAM, 0),
                                .groups = tune_count_used(tune, cells, TUNE_GROUP, 0)};
    out->in_flight = tune_in_flight(tune, out->depth);
    out->bytes = tune_bytes(tune, out->depth);
    bool given = memcmp(cells, tune->first, tune->cells * sizeof *cells) == 0;
    if (!given && !finish_work(tune, cells))
        return diag_no_memory(diag);
    if (!given && !(tune->work.name = tune_name(tune->given.name, &tune->work.arena)))
        return diag_no_memory(diag);
    enum status status = STATUS_OK;
    if (!given && tune->options->allow_stale)
        status = declare_staleness(tune, diag);
    if (status != STATUS_OK)
        return status;
    status = plan_copy(given ? &tune->given : &tune->work, TUNE_NAME, &out->plan, &out->text, diag);
    if (status != STATUS_OK)
        return status;
    status = judge_result(tune, out, diag);
    if (status != STATUS_OK)
        plan_fini(&out->plan);
    return status;
}

void tune_result_fini(struct tune_result *result)
{
    steady_fini(&result->steady);
    plan_fini(&result->plan);
}

/* ---- in words -------------------------------------------------------------------------------- */

struct words {
    struct arena *arena;
    const char **lines;
    size_t count, cap;
    bool failed;
};

static void tune_result_add_line(struct words *words, const char *line)
{
    if (!line || !ARENA_GROW(words->arena, words->lines, words->count, words->cap))
        words->failed = true;
    else
        words->lines[words->count++] = line;
}

static void describe_tasks(struct tune *tune, enum tune_row row, enum edit_kind kind,
                           struct words *words)
{
    const int *now = tune->best + tune_at(tune, row);
    const int *before = tune->first + tune_at(tune, row);
    const struct names *names = row == TUNE_GROUP ? &tune->work.groups : &tune->work.streams;
    for (size_t t = 0; t < tune->tasks; t++) {
        const struct edit edit = {.kind = kind, .a = (int)t, .to = now[t]};
        if (now[t] == before[t])
            continue;
        if (row == TUNE_STAGE || (size_t)now[t] + TUNE_SPARES < names->count)
            tune_result_add_line(words, edit_describe(&tune->given, &edit, words->arena));
        else
            tune_result_add_line(words, arena_printf(words->arena, "%s of %s: %s, a new one",
                                                     row == TUNE_GROUP ? "thread_group" : "stream",
                                                     tune->given.pipeline.tasks[t].name,
                                                     names->items[now[t]]));
    }
}

static const char *list_order(struct tune *tune, struct arena *arena)
{
    const int *order = tune->best + tune_at(tune, TUNE_ORDER);
    const char *text = "enqueue_order:";
    for (size_t k = 0; text && k < tune->tasks; k++)
        text = arena_printf(arena, "%s%s%s", text, k ? ", " : " ",
                            tune->given.pipeline.tasks[order[k]].name);
    return text;
}

static void tune_result_describe_order(struct tune *tune, struct words *words)
{
    int rule = tune->best[tune_rule_at(tune)];
    const struct edit edit = {.kind = EDIT_ORDER_RULE, .to = rule};
    size_t bytes = tune->tasks * sizeof(int);
    if (rule == ORDER_EXPLICIT && memcmp(tune->best + tune_at(tune, TUNE_ORDER),
                                         tune->first + tune_at(tune, TUNE_ORDER), bytes) != 0)
        tune_result_add_line(words, list_order(tune, words->arena));
    else if (rule != tune->first[tune_rule_at(tune)])
        tune_result_add_line(words, edit_describe(&tune->given, &edit, words->arena));
}

static void describe_staleness(struct tune *tune, struct words *words)
{
    for (size_t i = 0; i < tune->given.buffer_count; i++) {
        const struct buffer *buffer = &tune->work.buffers[i];
        if (buffer->staleness != tune->given.buffers[i].staleness)
            tune_result_add_line(
                words, arena_printf(words->arena, "staleness of %s: %d instead of %d", buffer->name,
                                    buffer->staleness, tune->given.buffers[i].staleness));
    }
}

const char **tune_describe(struct tune *tune, struct arena *arena)
{
    struct words words = {.arena = arena};
    const struct edit depth = {.kind = EDIT_MAX_DEPTH, .to = tune->best[tune_depth_at(tune)]};
    describe_tasks(tune, TUNE_STAGE, EDIT_STAGE, &words);
    describe_tasks(tune, TUNE_STREAM, EDIT_TASK_STREAM, &words);
    describe_tasks(tune, TUNE_GROUP, EDIT_GROUP, &words);
    tune_result_describe_order(tune, &words);
    if (depth.to != tune->first[tune_depth_at(tune)])
        tune_result_add_line(&words, edit_describe(&tune->given, &depth, arena));
    describe_staleness(tune, &words);
    tune_result_add_line(&words, ""); /* room for the end */
    if (words.failed)
        return NULL;
    words.lines[words.count - 1] = NULL;
    return words.lines;
}
