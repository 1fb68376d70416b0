/* SPDX-License-Identifier: Apache-2.0 */
/* two_runs.c - see two_runs.h: the two runs are found or made, and held against each other. */
#include "two_runs.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/unexplained.h"
#include "base/input.h"
#include "base/json.h"
#include "base/printable.h"
#include "base/units.h"
#include "improve/found.h"
#include "plan/coverage.h"
#include "plan/strip_device_rules.h"
#include "plan/text/parse.h"
#include "sim/predict/difference.h"
#include "sim/predict/explained.h"
#include "sim/predict/foretold.h"
#include "trace/import/files.h"
#include "trace/import/import.h"
#include "trace/import/record.h"

#include "app.h"

/* ---- as text --------------------------------------------------------------------------------- */

/*
 * Two runs held against each other, as tables, as sentences, as JSON.
 */

struct compared_run {
    const char *store; /* path; NULL: a prediction made just now */
    struct trace trace;
    struct run_account account;
};

/* ---- as JSON --------------------------------------------------------------------------------- */

/* Two runs and their difference as JSON. */

static void two_runs_write_run(const char *key, const struct compared_run *run, struct json *json)
{
    const struct run_info *info = &run->trace.info;
    json_begin_object_at(json, key);
    json_put_string(json, "store", run->store);
    json_put_known(json, "run", run->trace.run, run->store && run->trace.run >= 0);
    json_put_string(json, "plan", info->plan_name);
    json_put_string(json, "kind", run_kind_text(info->kind));
    json_put_string(json, "device", info->device);
    json_put_int(json, "ranks", info->ranks);
    json_put_double(json, "steps", run->account.steps);
    json_put_int(json, "replications", run->account.replications);
    json_put_double(json, "step_ns", run->account.step_ns);
    json_end_object(json);
}

static void two_runs_write_row(const struct difference_row *row, struct json *json)
{
    json_begin_object(json);
    json_put_string(json, "kind", row->cause ? "idle" : "task");
    json_put_string(json, "name", row->name);
    json_put_string(json, "cause", row->cause);
    json_put_string(json, "waits_for", row->waits_for);
    json_put_double(json, "first_ns", row->before_ns);
    json_put_double(json, "second_ns", row->after_ns);
    json_put_double(json, "change_ns", difference_change(row));
    json_put_double(json, "first_count", row->before_count);
    json_put_double(json, "second_count", row->after_count);
    json_put_double(json, "waited_for_change_ns", row->itself_ns);
    json_end_object(json);
}

static void two_runs_write_stream(const struct difference_stream *stream, struct json *json)
{
    json_begin_object(json);
    json_put_string(json, "first", stream->before ? stream->before->name : NULL);
    json_put_string(json, "second", stream->after ? stream->after->name : NULL);
    json_put_double(json, "first_busy_ns", stream->before ? stream->before->busy_ns : 0);
    json_put_double(json, "second_busy_ns", stream->after ? stream->after->busy_ns : 0);
    json_begin_array_at(json, "rows");
    for (size_t i = 0; i < stream->row_count; i++)
        two_runs_write_row(&stream->rows[i], json);
    json_end_array(json);
    json_end_object(json);
}

static enum status two_runs_write(const struct compared_run *first,
                                  const struct compared_run *second,
                                  const struct difference *difference, FILE *out, struct diag *diag)
{
    struct json json;
    json_open(&json, out);
    json_begin_document(&json, DOCUMENT_TWO_RUNS);
    two_runs_write_run("first", first, &json);
    two_runs_write_run("second", second, &json);
    json_key(&json, "by_steps");
    json_bool(&json, difference->by_steps);
    json_put_double(&json, "change_ns", difference->after_ns - difference->before_ns);
    json_put_double(&json, "left_ns", difference->left_ns);
    json_put_double(&json, "uncaused_ns", difference->uncaused_ns);
    json_begin_array_at(&json, "streams");
    for (size_t i = 0; i < difference->stream_count; i++)
        two_runs_write_stream(&difference->streams[i], &json);
    json_end_array(&json);
    json_end_object(&json);
    return json_close(&json, diag);
}

enum {
    MOST_ROWS = 12,  /* of a stream, in full */
    MOST_BESIDE = 5, /* of all other streams */
    MOST_SHARE = 10, /* more is no share of a difference: parts of it cancel */
    SENTENCE = 800
};

/* Changes below this share of the greatest one are not told one by one. */
#define TOLD 0.01

/* Runs that differ by less take as long. */
#define SAME 0.005

/* "+3.10 ms", as wide as a column */
static const char *show_change(double ns, char out[UNITS_TEXT + 1])
{
    char text[UNITS_TEXT];
    units_show_time(fabs(ns), text);
    snprintf(out, UNITS_TEXT + 1, "%s%s", fabs(ns) < 0.5 ? "" : ns < 0 ? "-" : "+", text);
    return out;
}

static const char *show_share(double part, double whole, char out[UNITS_TEXT])
{
    if (!isfinite(part / whole) || fabs(part) > MOST_SHARE * fabs(whole))
        snprintf(out, UNITS_TEXT, "-");
    else
        snprintf(out, UNITS_TEXT, "%.0f%%", 100 * part / whole);
    return out;
}

/* ---- what is compared ------------------------------------------------------------------------ */

static void two_runs_print_run(const char *which, const struct compared_run *run, FILE *out)
{
    const struct run_info *info = &run->trace.info;
    if (run->store) {
        fprintf(out, "%s  ", which);
        if (run->trace.run >= 0)
            fprintf(out, "run %" PRId64 " of ", run->trace.run);
        printable_put(run->store, false, out);
        fprintf(out, ": %s, %s%s%s", info->plan_name, run_kind_text(info->kind),
                *info->device ? ", " : "", info->device);
    } else {
        fprintf(out, "%s  prediction of %s", which, info->plan_name);
    }
    if (info->ranks > 1)
        fprintf(out, ", %d ranks", info->ranks);
    if (run->account.by_steps)
        fprintf(out, ", %.0f step%s", run->account.steps, run->account.steps > 1 ? "s" : "");
    if (run->account.replications > 1)
        fprintf(out, ", mean of %d replications", run->account.replications);
    fputc('\n', out);
}

static const char *unit_of(const struct difference *difference)
{
    return difference->by_steps ? "a step" : "the whole run";
}

/* The names of the two runs, and the time of a step of each. */
static void two_runs_print_head(const struct compared_run *first, const struct compared_run *second,
                                const struct difference *difference, FILE *out)
{
    char before[UNITS_TEXT], after[UNITS_TEXT];
    const double change = difference->after_ns - difference->before_ns;
    two_runs_print_run("first ", first, out);
    two_runs_print_run("second", second, out);
    units_show_time(difference->before_ns, before);
    units_show_time(difference->after_ns, after);
    fprintf(out, "%s takes %s in the first, %s in the second (%+.1f%%)\n", unit_of(difference),
            before, after, 100 * change / difference->before_ns);
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Both names where they differ. */
static void two_runs_stream_name(const struct difference_stream *stream, char *out, size_t cap)
{
    const char *before = stream->before ? stream->before->name : NULL;
    const char *after = stream->after ? stream->after->name : NULL;
    assert(before || after);
    if (!before || !after)
        snprintf(out, cap, "%s (%s only)", before ? before : after, before ? "first" : "second");
    else if (strcmp(before, after) == 0)
        snprintf(out, cap, "%s", before);
    else
        snprintf(out, cap, "%s / %s", before, after);
}

static void two_runs_print_line(const char *name, double before_ns, double after_ns, FILE *out)
{
    char before[UNITS_TEXT], after[UNITS_TEXT], change[UNITS_TEXT + 1];
    units_show_time(before_ns, before);
    units_show_time(after_ns, after);
    fprintf(out, "%10s  %10s  %11s  %s\n", before, after, show_change(after_ns - before_ns, change),
            name);
}

/* ---- folded rows ----------------------------------------------------------------------------- */

/* "0F3" is "*F*": numbers are left out. */
static const char *pattern_of(const char *name, struct arena *arena)
{
    char *out = arena_strdup(arena, name), *end = out;
    for (const char *c = name; out && *c; c++) {
        bool digit = *c >= '0' && *c <= '9', first = c == name || c[-1] < '0' || c[-1] > '9';
        if (!digit)
            *end++ = *c;
        else if (first)
            *end++ = '*';
    }
    if (end)
        *end = '\0';
    return out;
}

static int two_runs_greatest_first(const void *left, const void *right)
{
    const struct difference_row *a = left, *b = right;
    const double x = fabs(difference_change(a)), y = fabs(difference_change(b));
    return x != y ? (x < y) - (x > y) : strcmp(a->name, b->name);
}

/* `patterns`: beside the rows. One of a single task has the name of the task. */
static void two_runs_add_row(struct difference_row *rows, const char **patterns, size_t *count,
                             const struct difference_row *row, const char *pattern)
{
    size_t at = 0;
    while (at < *count && strcmp(patterns[at], pattern) != 0)
        at++;
    if (at == *count) {
        patterns[at] = pattern;
        rows[(*count)++] = (struct difference_row){.name = row->name};
    } else {
        rows[at].name = pattern;
    }
    rows[at].before_ns += row->before_ns;
    rows[at].after_ns += row->after_ns;
}

/* Tasks whose names differ in numbers only, such as passes, are one row where there are too many for rows of their own. */
static const struct difference_row *fold_tasks(const struct difference_stream *stream,
                                               struct arena *arena, size_t *count)
{
    size_t tasks = 0, folded = 0;
    for (size_t i = 0; i < stream->row_count; i++)
        tasks += stream->rows[i].cause == NULL;
    *count = stream->row_count;
    if (tasks <= MOST_ROWS)
        return stream->rows;
    struct difference_row *rows = ARENA_ARRAY(arena, tasks, struct difference_row);
    const char **patterns = ARENA_ARRAY(arena, tasks, const char *);
    if (!rows || !patterns)
        return stream->rows;
    for (size_t i = 0; i < stream->row_count; i++) {
        const struct difference_row *row = &stream->rows[i];
        const char *pattern = row->cause ? NULL : pattern_of(row->name, arena);
        if (pattern)
            two_runs_add_row(rows, patterns, &folded, row, pattern);
    }
    qsort(rows, folded, sizeof *rows, two_runs_greatest_first);
    *count = folded;
    return rows;
}

static bool two_runs_is_small(const struct difference_row *row, double whole_ns)
{
    return fmax(row->before_ns, row->after_ns) < 0.001 * whole_ns;
}

/* Of one kind: tasks, or causes of idle time. */
static void two_runs_print_rows(const struct difference *difference,
                                const struct difference_row *rows, size_t count, bool causes,
                                FILE *out)
{
    const double whole_ns = fmax(difference->before_ns, difference->after_ns);
    double before_ns = 0, after_ns = 0;
    int small = 0, shown = 0;
    char name[SENTENCE];
    for (size_t i = 0; i < count; i++) {
        const struct difference_row *row = &rows[i];
        if ((row->cause != NULL) != causes)
            continue;
        if (two_runs_is_small(row, whole_ns) || shown >= MOST_ROWS) {
            before_ns += row->before_ns;
            after_ns += row->after_ns;
            small++;
            continue;
        }
        snprintf(name, sizeof name, "    %s%s", causes ? "idle: " : "", row->name);
        two_runs_print_line(name, row->before_ns, row->after_ns, out);
        shown++;
    }
    snprintf(name, sizeof name, "    %s%d %s", causes ? "idle: " : "", small,
             !shown       ? "in all"
             : small == 1 ? "other"
                          : "others");
    if (small)
        two_runs_print_line(name, before_ns, after_ns, out);
}

/* Every stream's work by task and idle time by cause; `quiet`: without tasks and causes. */
static void two_runs_print(const struct difference *difference, bool quiet, FILE *out)
{
    struct arena arena;
    arena_init(&arena, 0);
    fprintf(out, "\n%10s  %10s  %11s\n", "First", "Second", "Change");
    for (size_t i = 0; i < difference->stream_count; i++) {
        const struct difference_stream *stream = &difference->streams[i];
        char name[SENTENCE], line[SENTENCE + 32];
        two_runs_stream_name(stream, name, sizeof name);
        snprintf(line, sizeof line, "stream %s, busy", name);
        two_runs_print_line(line, stream->before ? stream->before->busy_ns : 0,
                            stream->after ? stream->after->busy_ns : 0, out);
        if (quiet)
            continue;
        two_runs_print_rows(difference, stream->rows, stream->row_count, true, out);
        size_t count;
        const struct difference_row *rows = fold_tasks(stream, &arena, &count);
        two_runs_print_rows(difference, rows, count, false, out);
    }
    arena_fini(&arena);
}

/* ---- sentences ------------------------------------------------------------------------------- */

/* "3.10 ms longer" */
static const char *longer(double ns, char out[UNITS_TEXT + 8])
{
    char text[UNITS_TEXT];
    units_show_time(fabs(ns), text);
    snprintf(out, UNITS_TEXT + 8, "%s %s", text, ns < 0 ? "less" : "longer");
    return out;
}

static void say_task(const struct difference_row *row, char out[SENTENCE])
{
    char before[UNITS_TEXT], after[UNITS_TEXT], change[UNITS_TEXT + 8];
    units_show_time(row->before_ns, before);
    units_show_time(row->after_ns, after);
    if (row->before_ns <= 0)
        snprintf(out, SENTENCE, "%s is new, and takes %s", row->name, after);
    else if (row->after_ns <= 0)
        snprintf(out, SENTENCE, "%s is gone, and took %s", row->name, before);
    else if (fabs(row->after_count - row->before_count) > 0.02 * row->before_count)
        snprintf(out, SENTENCE, "%s takes %s (%s, was %s): it runs %.3g times, was %.3g", row->name,
                 longer(difference_change(row), change), after, before, row->after_count,
                 row->before_count);
    else
        snprintf(out, SENTENCE, "%s takes %s (%s, was %s)", row->name,
                 longer(difference_change(row), change), after, before);
}

/* The words of the simulator are no end of a sentence that begins "waits for". */
static void say_idle(const struct difference_row *row, bool modelled, char out[SENTENCE])
{
    char before[UNITS_TEXT], after[UNITS_TEXT], change[UNITS_TEXT + 8], itself[UNITS_TEXT + 8];
    const double change_ns = difference_change(row);
    const char *words = modelled ? difference_cause_words(row->cause) : row->name;
    units_show_time(row->before_ns, before);
    units_show_time(row->after_ns, after);
    int length = snprintf(out, SENTENCE, "it waits %s for %s%s%s (%s, was %s)",
                          longer(change_ns, change), words, modelled && row->waits_for ? ", " : "",
                          modelled && row->waits_for ? row->waits_for : "", after, before);
    if (length < SENTENCE && row->waits_for && row->itself_ns * change_ns > 0 &&
        fabs(row->itself_ns) >= 0.25 * fabs(change_ns))
        snprintf(out + length, (size_t)(SENTENCE - length), "; %s itself takes %s", row->waits_for,
                 longer(row->itself_ns, itself));
}

/* `stream`: not the main one; its changes are no part of `whole_ns`. */
static void print_sentence(const char *stream, const struct difference_row *row, bool modelled,
                           double whole_ns, FILE *out)
{
    char sentence[SENTENCE], change[UNITS_TEXT + 1], share[UNITS_TEXT];
    if (row->cause)
        say_idle(row, modelled, sentence);
    else
        say_task(row, sentence);
    fprintf(out, "  %11s  %5s  %s%s%s\n", show_change(difference_change(row), change),
            stream ? "" : show_share(difference_change(row), whole_ns, share), stream ? stream : "",
            stream ? ": " : "", sentence);
}

/* The rows of the main stream, which add up. */
static void explain_main(const struct difference *difference, bool modelled, FILE *out)
{
    const struct difference_stream *stream = &difference->streams[0];
    const double whole_ns = difference->after_ns - difference->before_ns;
    double rest_ns = 0;
    size_t rest = 0;
    char change[UNITS_TEXT + 1], share[UNITS_TEXT];
    for (size_t i = 0; i < stream->row_count; i++) {
        const double row_ns = difference_change(&stream->rows[i]);
        if (i < MOST_ROWS && fabs(row_ns) >= TOLD * fabs(difference_change(&stream->rows[0])) &&
            fabs(row_ns) >= 0.5) {
            print_sentence(NULL, &stream->rows[i], modelled, whole_ns, out);
            continue;
        }
        rest += fabs(row_ns) >= 0.5;
        rest_ns += row_ns;
    }
    if (rest)
        fprintf(out, "  %11s  %5s  %zu smaller change%s\n", show_change(rest_ns, change),
                show_share(rest_ns, whole_ns, share), rest, rest == 1 ? "" : "s");
}

static void explain_rest(const struct difference *difference, FILE *out)
{
    const double whole_ns = difference->after_ns - difference->before_ns;
    char sum[UNITS_TEXT + 1], left[UNITS_TEXT + 1];
    show_change(whole_ns - difference->left_ns, sum);
    show_change(difference->left_ns, left);
    if (fabs(difference->left_ns) <= 1 + 1e-6 * fabs(whole_ns))
        fprintf(out, "  %11s         in all: the whole difference\n", sum);
    else
        fprintf(out,
                "  %11s         in all; %s is left unexplained: not every rank has this stream\n",
                sum, left);
    if (fabs(difference->uncaused_ns) >= 0.5)
        fprintf(out, "  of this %s is idle time for which the runs' records have no cause\n",
                show_change(difference->uncaused_ns, left));
}

/* Changes of the other streams. */
static void explain_beside(const struct difference *difference, bool modelled, FILE *out)
{
    const double whole_ns = difference->after_ns - difference->before_ns;
    const double least_ns = fmax(0.1 * fabs(whole_ns), 0.005 * difference->before_ns);
    int told = 0;
    for (size_t s = 1; s < difference->stream_count && told < MOST_BESIDE; s++) {
        const struct difference_stream *stream = &difference->streams[s];
        for (size_t i = 0; i < stream->row_count && told < MOST_BESIDE; i++) {
            const struct difference_row *row = &stream->rows[i];
            char name[SENTENCE];
            if (fabs(difference_change(row)) < least_ns || (row->cause && i > 0))
                continue;
            two_runs_stream_name(stream, name, sizeof name);
            if (told++ == 0)
                fprintf(out, "beside it, at the same time:\n");
            print_sentence(name, row, modelled, 0, out);
        }
    }
}

/* The causes of the difference in sentences, the greatest first. */
static void two_runs_explain(const struct compared_run *first, const struct compared_run *second,
                             const struct difference *difference, FILE *out)
{
    const bool modelled = first->account.modelled || second->account.modelled;
    const double whole_ns = difference->after_ns - difference->before_ns;
    char name[SENTENCE], change[UNITS_TEXT + 8];
    two_runs_stream_name(&difference->streams[0], name, sizeof name);
    if (fabs(whole_ns) < SAME * difference->before_ns)
        fprintf(
            out,
            "\nBoth take about as long (the second %s). On stream %s, which has the most work:\n",
            longer(whole_ns, change), name);
    else
        fprintf(out, "\n%s of the second takes %s. Stream %s has the most work, and tells why:\n",
                unit_of(difference), longer(whole_ns, change), name);
    explain_main(difference, modelled, out);
    explain_rest(difference, out);
    explain_beside(difference, modelled, out);
}

enum { ITERATIONS = 100 /* of a prediction, where the run does not say */ };

struct comparer {
    struct app *app;
    const struct two_runs *request;
    struct compared_run first, second;
};

/* ---- a run of a store ------------------------------------------------------------------------ */

/* True if the spec is the path of a trace, or of a folder of traces. */
static enum status two_runs_is_trace(struct app *app, const char *spec, bool *out)
{
    struct stat info;
    enum format format;
    *out = stat(spec, &info) == 0 && S_ISDIR(info.st_mode);
    if (*out || access(spec, F_OK) != 0 || !input_is_ordinary(spec))
        return STATUS_OK;
    bool sqlite;
    enum status status = run_spec_is_store(app, spec, &sqlite);
    if (status != STATUS_OK || sqlite)
        return status;
    status = format_recognise(spec, &format, &app->diag);
    *out = status == STATUS_OK && format_is_trace(format);
    return status;
}

static enum status read_trace_of_job(struct app *app, const char *path, const char *without,
                                     struct imported *out)
{
    enum { LAUNCH_QUEUE = 1024 };
    const char *slash = strrchr(path, '/');
    const char *name = slash && slash[1] ? slash + 1 : path;
    const struct import_options options = {.form = {.name = name,
                                                    .launch_queue = LAUNCH_QUEUE,
                                                    .repeat = REPEAT_SAME,
                                                    .without = without},
                                           .flight = {.name = name},
                                           .recorded = {.name = name}};
    return import_files(&path, 1, &options, out, &app->diag);
}

enum status two_runs_plan_without(struct app *app, const char *spec, const char *without,
                                  struct plan *out)
{
    struct imported imported;
    bool is_trace;
    enum status status = two_runs_is_trace(app, spec, &is_trace);
    if (status == STATUS_OK && !is_trace)
        status = diag_error(&app->diag, STATUS_INPUT, "%s: not a trace of a job", spec);
    if (status == STATUS_OK)
        status = read_trace_of_job(app, spec, without, &imported);
    if (status != STATUS_OK)
        return status;
    *out = imported.plan;
    arena_adopt(&out->arena, &imported.job.arena); /* names of its work are those of the job */
    plan_init(&imported.plan);
    import_fini(&imported);
    return STATUS_OK;
}

/* The measured run of an import, which keeps its plan. */
static enum status two_runs_import(struct app *app, const char *path, struct trace *out)
{
    struct imported imported;
    enum status status = read_trace_of_job(app, path, NULL, &imported);
    if (status != STATUS_OK)
        return status;
    trace_init(out, &app->arena);
    status = imported.job.rank_count == 0
                 ? diag_error(&app->diag, STATUS_INPUT, "%s: it has no measured run", path)
                 : import_record(&imported, out, &app->diag);
    import_fini(&imported);
    return status;
}

enum status two_runs_load(struct app *app, const char *spec, struct trace *out, const char **path)
{
    struct store *store;
    int64_t run;
    bool is_trace;
    enum status status = two_runs_is_trace(app, spec, &is_trace);
    *path = spec;
    if (status == STATUS_OK && is_trace)
        return two_runs_import(app, spec, out);
    if (status == STATUS_OK)
        status = option_run(app_reader(app), "RUN", spec, path, &run);
    if (status == STATUS_OK)
        status = store_open(*path, false, &store, &app->diag);
    if (status != STATUS_OK)
        return status;
    status = explained_load(store, run, &app->arena, out, &app->diag);
    enum status closed = store_close(store, &app->diag);
    return status != STATUS_OK ? status : closed;
}

static enum status two_runs_read_run(struct app *app, const char *spec, struct compared_run *out)
{
    enum status status = two_runs_load(app, spec, &out->trace, &out->store);
    if (status == STATUS_OK && out->trace.info.kind == RUN_WITNESS)
        return diag_error(&app->diag, STATUS_INPUT,
                          "run %" PRId64 " is a counterexample: it has steps and no times",
                          out->trace.run);
    return status;
}

/* ---- a prediction ---------------------------------------------------------------------------- */

static int depth_of(const struct trace *trace)
{
    const struct trace_stat *depth = trace_find_stat(trace, RUN_STAT_DEPTH);
    return depth ? (int)depth->value : 0;
}

/* As the run was made, as far as it tells. */
static struct program_options options_like(struct app *app, const struct plan *plan,
                                           const struct trace *trace)
{
    const struct run_info *info = &trace->info;
    const struct program_request request = {
        .driver = info->driver == RUN_DRIVER_CLOCK      ? CLOCK_ONLY
                  : info->driver == RUN_DRIVER_DATAFLOW ? DATAFLOW_ONLY
                                                        : DRIVER_NOT_GIVEN,
        .iterations = info->iterations_wanted > 0 ? info->iterations_wanted : ITERATIONS,
        .ranks = plan->form == FORM_PIPELINE ? info->ranks : 0,
        .max_depth = info->driver == RUN_DRIVER_DATAFLOW ? depth_of(trace) : 0,
    };
    return app_program_options(app, &request, plan);
}

static enum status make_accounts(struct comparer *comparer)
{
    struct compared_run *first = &comparer->first, *second = &comparer->second;
    struct diag *diag = &comparer->app->diag;
    const bool by_steps = account_has_steps(&first->trace) && account_has_steps(&second->trace);
    enum status status = account_make(&first->trace, by_steps, &first->account, diag);
    return status == STATUS_OK ? account_make(&second->trace, by_steps, &second->account, diag)
                               : status;
}

/* A plan_use. */
static enum status predict_second(struct app *app, struct plan *plan, void *context)
{
    struct comparer *comparer = context;
    const struct trace *like = &comparer->first.trace;
    struct plan device = *plan; /* as the run's device took it */
    if (comparer->request->cores > 0)
        device.machine.cores = comparer->request->cores;
    const bool cuda = strncmp(like->info.device, "cuda", strlen("cuda")) == 0;
    enum status status = refuse_unexplained(plan, comparer->request->opaque, &app->diag);
    if (status != STATUS_OK)
        return status;
    coverage_warn(plan, &app->diag);
    if (like->info.kind == RUN_MEASURED && like->info.driver != RUN_DRIVER_NONE &&
        !plan_strip_device_rules(&device, &app->arena, cuda, NULL))
        return diag_no_memory(&app->diag);
    const struct program_options options = options_like(app, &device, like);
    const uint64_t seed = comparer->request->seed;
    struct compared_run *second = &comparer->second;
    bool varies;
    status = foretell(&device, &options, seed, &app->arena, &second->trace, &varies, &app->diag);
    if (status == STATUS_OK)
        status = make_accounts(comparer);
    return status == STATUS_OK && varies
               ? foretell_more(&device, &options, seed, comparer->request->replications,
                               &app->arena, &second->account, &app->diag)
               : status;
}

enum status two_runs_plan(struct app *app, const struct trace *trace, struct plan *out)
{
    const char *text = trace->info.plan_text;
    const char *name = arena_printf(&app->arena, "plan of run %" PRId64, trace->run);
    if (!name)
        return diag_no_memory(&app->diag);
    if (!*text)
        return diag_error(&app->diag, STATUS_INPUT, "run %" PRId64 " keeps no plan to predict",
                          trace->run);
    enum status status = plan_parse(name, text, strlen(text), out, &app->diag);
    if (status != STATUS_OK)
        return status;
    status = found_resolve(out, &out->arena, &app->diag);
    if (status != STATUS_OK)
        plan_fini(out);
    return status;
}

/* The plan that the first run keeps. */
static enum status two_runs_predict_own(struct comparer *comparer)
{
    struct plan plan;
    enum status status = two_runs_plan(comparer->app, &comparer->first.trace, &plan);
    if (status != STATUS_OK)
        return status;
    status = predict_second(comparer->app, &plan, comparer);
    plan_fini(&plan);
    return status;
}

static enum status find_second(struct comparer *comparer)
{
    struct app *app = comparer->app;
    const char *second = comparer->request->second;
    bool store = second && option_has_run(second), is_trace = false;
    if (!second)
        return two_runs_predict_own(comparer);
    enum status status = store ? STATUS_OK : run_spec_is_store(app, second, &store);
    if (status == STATUS_OK && !store)
        status = two_runs_is_trace(app, second, &is_trace);
    if (status != STATUS_OK)
        return status;
    store |= is_trace;
    if (store && comparer->request->cores > 0)
        return diag_error(&app->diag, STATUS_USAGE,
                          "found --cores, but neither of two runs of stores is predicted");
    if (!store)
        return app_with_plan(app, second, predict_second, comparer);
    status = two_runs_read_run(app, second, &comparer->second);
    return status == STATUS_OK ? make_accounts(comparer) : status;
}

/* ---- both ------------------------------------------------------------------------------------ */

static enum status two_runs_show(struct comparer *comparer, const struct difference *difference)
{
    struct app *app = comparer->app;
    if (app->json)
        return two_runs_write(&comparer->first, &comparer->second, difference, stdout, &app->diag);
    two_runs_print_head(&comparer->first, &comparer->second, difference, stdout);
    if (comparer->request->diff)
        two_runs_explain(&comparer->first, &comparer->second, difference, stdout);
    else
        two_runs_print(difference, app->quiet, stdout);
    return STATUS_OK;
}

static enum status check_limit(struct comparer *comparer, const struct difference *difference)
{
    const double error = fabs(difference->after_ns - difference->before_ns) / difference->before_ns;
    if (!(error > comparer->request->limit))
        return STATUS_OK;
    return diag_error(&comparer->app->diag, STATUS_VIOLATED,
                      "the runs differ by %.1f%%, expected at most %.1f%%", 100 * error,
                      100 * comparer->request->limit);
}

enum status two_runs_compare(struct app *app, const struct two_runs *request)
{
    struct comparer comparer = {.app = app, .request = request};
    struct difference difference;
    enum status status = two_runs_read_run(app, request->first, &comparer.first);
    if (status == STATUS_OK)
        status = find_second(&comparer);
    if (status == STATUS_OK)
        status = difference_make(&comparer.first.account, &comparer.second.account, &app->arena,
                                 &difference, &app->diag);
    if (status == STATUS_OK)
        status = two_runs_show(&comparer, &difference);
    return status == STATUS_OK ? check_limit(&comparer, &difference) : status;
}
