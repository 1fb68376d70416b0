/* SPDX-License-Identifier: Apache-2.0 */
/* tune_frontier.c - see tune_frontier.h. */
#include "tune_frontier.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "frontier_picture.h"
#include "frontier_shared.h"
#include "mpi_workers.h"
#include "options.h"
#include "plan_out.h"
#include "progress.h"
#include "starter.h"

#include "trace/draw.h"

#include "plan/coverage.h"
#include "plan/hash.h"
#include "plan/json.h"
#include "plan/nearest.h"
#include "plan/print.h"
#include "plan/units.h"

/* ---- values of an axis ----------------------------------------------------------------------- */

struct axis_line {
    enum axis axis;
    struct axis_values *values;
};

static enum status add_value(struct app *app, const struct axis_line *line, int value)
{
    if (line->values->count == AXIS_MOST)
        return diag_error(&app->diag, STATUS_USAGE, "--%s: found more than %d values",
                          axis_key(line->axis), AXIS_MOST);
    line->values->items[line->values->count++] = value;
    return STATUS_OK;
}

/* Layers of each stage are no word. */
static const char *word_of(enum axis axis, int value)
{
    return axis == AXIS_BALANCE && value == BALANCE_LISTED ? NULL : axis_word(axis, value);
}

static enum status add_word(struct app *app, const struct axis_line *line, const char *word)
{
    struct nearest nearest = {.found = word};
    enum status status = STATUS_OK;
    bool all = strcmp(word, "all") == 0, known = all;
    for (int value = 0; status == STATUS_OK && word_of(line->axis, value); value++) {
        const char *name = word_of(line->axis, value);
        nearest_try(&nearest, name);
        if (!all && strcmp(name, word) != 0)
            continue;
        known = true;
        status = add_value(app, line, value);
    }
    if (known)
        return status;
    return diag_error(&app->diag, STATUS_USAGE, "--%s: found '%s'%s", axis_key(line->axis), word,
                      nearest_hint(&nearest, '\'', &app->arena));
}

static enum status parse_item(struct app *app, const char *item, const char *value, void *context)
{
    const struct axis_line *line = context;
    char what[32];
    int64_t number;
    snprintf(what, sizeof what, "--%s", axis_key(line->axis));
    if (value)
        return diag_error(&app->diag, STATUS_USAGE, "%s: found '%s=', expected values alone", what,
                          item);
    if (axis_has_words(line->axis))
        return add_word(app, line, item);
    if (line->axis == AXIS_HELD && strcmp(item, axis_word(AXIS_HELD, HELD_FIT)) == 0)
        return add_value(app, line, HELD_FIT);
    enum status status = options_integer(app, what, item, 1, PLAN_MAX_MICROBATCHES, &number);
    return status == STATUS_OK ? add_value(app, line, (int)number) : status;
}

enum status frontier_parse_axis(struct app *app, enum axis axis, const char *text,
                                struct axis_values *out)
{
    struct axis_line line = {axis, out};
    out->count = 0;
    return options_each(app, text, parse_item, &line);
}

/* ---- as text --------------------------------------------------------------------------------- */

/* The number of an axis as people count it; 0: the schedule's own. */
static int number_of(const struct frontier *f, const struct candidate *candidate, enum axis axis)
{
    switch (axis) {
    case AXIS_MICROBATCHES: return frontier_microbatches(f, candidate);
    case AXIS_HELD: return frontier_held(candidate);
    case AXIS_SCHEDULE:
    case AXIS_SIZE:
    case AXIS_CHUNKS:
    case AXIS_GROUP:
    case AXIS_BALANCE:
    case AXIS_CHECKPOINT:
    case AXIS_CHANNEL:
    case AXES: break;
    }
    return candidate->at[axis];
}

/* Do the candidates differ there? */
static bool varies(const struct frontier *f, enum axis axis)
{
    for (size_t i = 1; i < f->count; i++)
        if (f->candidates[i].fate != FATE_IMPOSSIBLE &&
            number_of(f, &f->candidates[i], axis) != number_of(f, &f->candidates[0], axis))
            return true;
    return false;
}

static int memory_width(const struct frontier *f)
{
    return f->has_bytes ? (int)strlen("2.39 GiB") : (int)strlen("activations");
}

static void print_choice(const struct frontier *f, const struct candidate *candidate)
{
    for (int a = 0; a < AXES; a++) {
        bool words = axis_has_words((enum axis)a);
        int width = a == AXIS_SCHEDULE ? 23 : 12, number;
        if (a != AXIS_SCHEDULE && !varies(f, (enum axis)a))
            continue;
        if (words)
            printf("  %-*s", width, axis_word((enum axis)a, candidate->at[a]));
        else if ((number = number_of(f, candidate, (enum axis)a)) > 0)
            printf("  %*d", width, number);
        else
            printf("  %*s", width, "-");
    }
}

static void print_head(const struct frontier *f)
{
    for (int a = 0; a < AXES; a++)
        if (a == AXIS_SCHEDULE || varies(f, (enum axis)a))
            printf(axis_has_words((enum axis)a) ? "  %-*s" : "  %*s", a == AXIS_SCHEDULE ? 23 : 12,
                   axis_key((enum axis)a));
    printf("  %9s  %9s  %7s  %*s", "step", varies(f, AXIS_SIZE) ? "a sample" : "a microb.",
           "bubble", memory_width(f), f->has_bytes ? "memory" : "activations");
    printf("%s\n", f->options->memory_bytes >= 0 && f->has_bytes ? "      left" : "");
}

static void show_memory(const struct frontier *f, int64_t bytes, char out[UNITS_TEXT])
{
    if (f->has_bytes)
        units_show_bytes((double)bytes, out);
    else
        snprintf(out, UNITS_TEXT, "%.4g", (double)bytes / FRONTIER_ACTIVATION);
}

/* Memory of a rank beside the bytes that it holds. */
static void print_left(const struct frontier *f, const struct candidate *candidate)
{
    char left[UNITS_TEXT] = "";
    if (f->options->memory_bytes >= 0 && f->has_bytes)
        show_memory(f, f->options->memory_bytes - candidate->bytes, left);
    printf(*left ? "  %8s\n" : "%s\n", left);
}

static void print_candidate(const struct frontier *f, const struct candidate *candidate)
{
    char step[UNITS_TEXT], each[UNITS_TEXT], memory[UNITS_TEXT];
    int samples = varies(f, AXIS_SIZE) ? f->size : 1;
    print_choice(f, candidate);
    show_memory(f, candidate->bytes, memory);
    if (candidate->fate == FATE_PROVED) {
        units_show_time(candidate->step_ns, step);
        units_show_time(candidate->microbatch_ns / samples, each);
        printf("  %9s  %9s  %6.2f%%  %*s", step, each, 100 * candidate->bubble, memory_width(f),
               memory);
        print_left(f, candidate);
        return;
    }
    printf("  %9s  %9s  %7s  %*s  %s%s%s\n", "-", "-", "-", memory_width(f), memory,
           fate_key(candidate->fate), candidate->fate == FATE_VIOLATED ? ": " : "",
           candidate->fate == FATE_VIOLATED ? property_key(candidate->violated) : "");
}

/* The candidates stand in order: the first of a schedule is its best. */
static void print_schedules(const struct frontier *f)
{
    for (size_t i = 0; i < f->count; i++) {
        const struct candidate *candidate = &f->candidates[i];
        bool first = candidate->fate > FATE_IMPOSSIBLE && !candidate->frontier;
        for (size_t j = 0; first && j < i; j++)
            first = f->candidates[j].at[AXIS_SCHEDULE] != candidate->at[AXIS_SCHEDULE];
        if (first)
            print_candidate(f, candidate);
    }
}

static void print_counts(const struct frontier *f)
{
    size_t tried = f->count - f->fates[FATE_IMPOSSIBLE] - f->fates[FATE_UNTRIED];
    printf("\ntried %zu candidates: %zu proved", tried, f->fates[FATE_PROVED]);
    for (int fate = FATE_PROVED - 1; fate > FATE_IMPOSSIBLE; fate--)
        if (f->fates[fate])
            printf(", %zu %s", f->fates[fate], fate_key((enum fate)fate));
    printf("\n");
}

static void print_frontier(const struct app *app, const struct frontier *f)
{
    printf("%s, %d ranks, %d stages, %d microbatches\n", f->plan->name, f->ranks, f->stages,
           f->microbatches);
    if (f->fates[FATE_PROVED]) {
        printf("\nthe frontier: nothing is as fast with less memory\n");
        print_head(f);
        for (size_t i = 0; i < f->count && f->candidates[i].frontier; i++)
            print_candidate(f, &f->candidates[i]);
    }
    if (!app->quiet) {
        printf("\nother schedules, the best of each\n");
        print_schedules(f);
    }
    print_counts(f);
    if (!f->fates[FATE_PROVED])
        printf("no candidate is proved and within the limits\n");
}

/* ---- as JSON --------------------------------------------------------------------------------- */

static void write_candidate(const struct frontier *f, const struct candidate *candidate,
                            struct json *json)
{
    json_begin_object(json);
    for (int a = 0; a < AXES; a++) {
        const char *key = axis_key((enum axis)a);
        if (axis_has_words((enum axis)a))
            json_put_string(json, key, axis_word((enum axis)a, candidate->at[a]));
        else
            json_put_int(json, key, number_of(f, candidate, (enum axis)a));
    }
    json_put_string(json, "verdict", fate_key(candidate->fate));
    if (candidate->fate == FATE_VIOLATED)
        json_put_string(json, "violated", property_key(candidate->violated));
    json_put_bool(json, "frontier", candidate->frontier);
    json_put_double(json, "step_ns", candidate->step_ns);
    json_put_double(json, "microbatch_ns", candidate->microbatch_ns);
    json_put_double(json, "sample_ns", candidate->microbatch_ns / f->size);
    json_put_double(json, "bubble_rate", candidate->bubble);
}

static void put_bytes(const struct frontier *f, const struct candidate *candidate,
                      struct json *json)
{
    json_put_int(json, "bytes", candidate->bytes);
    if (f->options->memory_bytes >= 0)
        json_put_int(json, "left_bytes", f->options->memory_bytes - candidate->bytes);
}

static enum status write_frontier(struct app *app, const struct frontier *f)
{
    struct json json;
    json_open(&json, stdout);
    json_begin_document(&json, DOCUMENT_FRONTIER);
    json_put_string(&json, "plan", f->plan->name);
    json_put_int(&json, "ranks", f->ranks);
    json_put_bool(&json, "assumed_times", !f->has_times);
    json_begin_array_at(&json, "candidates");
    for (size_t i = 0; i < f->count; i++) {
        if (f->candidates[i].fate <= FATE_IMPOSSIBLE)
            continue;
        write_candidate(f, &f->candidates[i], &json);
        if (f->has_bytes)
            put_bytes(f, &f->candidates[i], &json);
        else
            json_put_double(&json, "activations",
                            (double)f->candidates[i].bytes / FRONTIER_ACTIVATION);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_end_object(&json);
    return json_close(&json, &app->diag);
}

/* ---- the work -------------------------------------------------------------------------------- */

static void show_progress(void *arg, size_t done, size_t count)
{
    progress_show(arg, "%zu of %zu candidates", done, count);
}

/* The fastest of all: the last of the frontier. */
static const struct candidate *find_fastest(const struct frontier *f)
{
    const struct candidate *fastest = NULL;
    for (size_t i = 0; i < f->count && f->candidates[i].frontier; i++)
        fastest = &f->candidates[i];
    return fastest;
}

static enum status write_plan(struct app *app, const struct frontier *f, const char *path)
{
    const struct candidate *fastest = find_fastest(f);
    struct app_output output;
    struct plan plan;
    if (!path || !fastest)
        return STATUS_OK;
    enum status status = frontier_plan(f, fastest, f->arena, &plan, &app->diag);
    if (status == STATUS_OK)
        status = app_create(app, path, &output);
    if (status != STATUS_OK)
        return status;
    if (!f->has_bytes) /* what they were counted with is not the plan's */
        plan.programs.stages.stages.of[COST_ACTIVATION] = (struct cost_list){0};
    status = plan_write(app, &plan, PLAN_YAML, output.file);
    return app_close_file(app, &output, status);
}

static enum status report(struct app *app, const struct frontier_request *request,
                          const struct frontier *f)
{
    enum status status = STATUS_OK;
    bool only_plan = request->plan_path && strcmp(request->plan_path, "-") == 0;
    if (!f->has_times)
        diag_warn(&app->diag, "%s gives no times: F, I and W are taken to last 1 ms each",
                  f->plan->name);
    coverage_warn(f->plan, &app->diag);
    if (app->json && !only_plan)
        status = write_frontier(app, f);
    else if (!only_plan)
        print_frontier(app, f);
    if (status == STATUS_OK)
        status = write_plan(app, f, request->plan_path);
    if (status == STATUS_OK && request->picture_path)
        status = frontier_draw(f, request->picture_path, &app->diag);
    return status == STATUS_OK && !f->fates[FATE_PROVED] ? STATUS_VIOLATED : status;
}

static enum status search(struct app *app, struct frontier_request *request,
                          const struct plan *plan, const struct result_wire *wire)
{
    struct frontier frontier;
    struct progress progress;
    request->options.progress = show_progress;
    request->options.progress_arg = &progress;
    progress_init(&progress, app);
    enum status status = frontier_open(plan, &request->options, &app->arena, &frontier, &app->diag);
    if (status == STATUS_OK)
        status = frontier_try_all(&frontier, wire, &app->diag);
    progress_clear(&progress);
    if (status != STATUS_OK || app->silent)
        return status;
    frontier_sort(&frontier);
    if (frontier.fates[FATE_UNTRIED])
        diag_warn(&app->diag, "%s: interrupted: %zu candidates were not tried", plan->name,
                  frontier.fates[FATE_UNTRIED]);
    return report(app, request, &frontier);
}

/* Plan and choices are the same on all processes. */
static enum status agree(struct app *app, const struct frontier_options *options,
                         const struct plan *plan, struct mpi_workers *workers)
{
    const char *text;
    enum status status = plan_text_in(plan, &app->arena, &text, &app->diag);
    if (status != STATUS_OK)
        return status;
    uint64_t digest = hash_bytes(text, strlen(text));
    digest = hash_mix(digest ^ hash_bytes(options->axes, sizeof options->axes));
    digest = hash_mix(digest ^ hash_bytes(&options->samples, sizeof options->samples));
    digest = hash_mix(digest ^ hash_bytes(&options->half_size, sizeof options->half_size));
    mpi_workers_agree(workers, hash_mix(digest ^ (uint64_t)options->memory_bytes));
    return STATUS_OK;
}

static enum status check_samples(struct app *app, const struct frontier_options *options,
                                 const struct plan *plan)
{
    int size = plan->programs.stages.model.microbatch;
    if (!options->samples || !size || options->samples == size)
        return STATUS_OK;
    return diag_error(&app->diag, STATUS_USAGE,
                      "--samples: found %d, expected %d as \"model\" says", options->samples, size);
}

enum status frontier_tune(struct app *app, struct frontier_request *request,
                          const struct plan *plan)
{
    struct starter starter;
    struct mpi_workers *workers;
    enum draw_format format;
    starter_find(&starter);
    enum status status = starter.rank > 0 ? app_silence(app) : STATUS_OK;
    if (status != STATUS_OK || !mpi_workers_open(app, &starter, &workers))
        return status;
    if (request->picture_path)
        status = draw_format_of(request->picture_path, &format, &app->diag);
    if (status == STATUS_OK)
        status = check_samples(app, &request->options, plan);
    if (request->options.memory_bytes < 0 && plan->machine.memory_bytes > 0)
        request->options.memory_bytes = plan->machine.memory_bytes;
    if (status == STATUS_OK && workers)
        status = agree(app, &request->options, plan, workers);
    if (status == STATUS_OK)
        status = search(app, request, plan, workers ? mpi_workers_wire(workers) : NULL);
    return mpi_workers_close(workers, app, status);
}
