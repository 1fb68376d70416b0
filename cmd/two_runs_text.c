/* SPDX-License-Identifier: Apache-2.0 */
/* two_runs_text.c - see two_runs_text.h: tables and sentences. JSON is in two_runs_json.c. */
#include "two_runs_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/units.h"

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

static void print_run(const char *which, const struct compared_run *run, FILE *out)
{
    const struct run_info *info = &run->trace.info;
    if (run->store) {
        fprintf(out, "%s  run %" PRId64 " of ", which, run->trace.run);
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

void two_runs_print_head(const struct compared_run *first, const struct compared_run *second,
                         const struct difference *difference, FILE *out)
{
    char before[UNITS_TEXT], after[UNITS_TEXT];
    const double change = difference->after_ns - difference->before_ns;
    print_run("first ", first, out);
    print_run("second", second, out);
    units_show_time(difference->before_ns, before);
    units_show_time(difference->after_ns, after);
    fprintf(out, "%s takes %s in the first, %s in the second (%+.1f%%)\n", unit_of(difference),
            before, after, 100 * change / difference->before_ns);
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Both names where they differ. */
static void stream_name(const struct difference_stream *stream, char *out, size_t cap)
{
    const char *before = stream->before ? stream->before->name : NULL;
    const char *after = stream->after ? stream->after->name : NULL;
    if (!before || !after)
        snprintf(out, cap, "%s (%s only)", before ? before : after, before ? "first" : "second");
    else if (strcmp(before, after) == 0)
        snprintf(out, cap, "%s", before);
    else
        snprintf(out, cap, "%s / %s", before, after);
}

static void print_line(const char *name, double before_ns, double after_ns, FILE *out)
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

static int greatest_first(const void *left, const void *right)
{
    const struct difference_row *a = left, *b = right;
    const double x = fabs(difference_change(a)), y = fabs(difference_change(b));
    return x != y ? (x < y) - (x > y) : strcmp(a->name, b->name);
}

/* `patterns`: beside the rows. One of a single task has the name of the task. */
static void add_row(struct difference_row *rows, const char **patterns, size_t *count,
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
            add_row(rows, patterns, &folded, row, pattern);
    }
    qsort(rows, folded, sizeof *rows, greatest_first);
    *count = folded;
    return rows;
}

static bool is_small(const struct difference_row *row, double whole_ns)
{
    return fmax(row->before_ns, row->after_ns) < 0.001 * whole_ns;
}

/* Of one kind: tasks, or causes of idle time. */
static void print_rows(const struct difference *difference, const struct difference_row *rows,
                       size_t count, bool causes, FILE *out)
{
    const double whole_ns = fmax(difference->before_ns, difference->after_ns);
    double before_ns = 0, after_ns = 0;
    int small = 0, shown = 0;
    char name[SENTENCE];
    for (size_t i = 0; i < count; i++) {
        const struct difference_row *row = &rows[i];
        if ((row->cause != NULL) != causes)
            continue;
        if (is_small(row, whole_ns) || shown >= MOST_ROWS) {
            before_ns += row->before_ns;
            after_ns += row->after_ns;
            small++;
            continue;
        }
        snprintf(name, sizeof name, "    %s%s", causes ? "idle: " : "", row->name);
        print_line(name, row->before_ns, row->after_ns, out);
        shown++;
    }
    snprintf(name, sizeof name, "    %s%d %s", causes ? "idle: " : "", small,
             !shown       ? "in all"
             : small == 1 ? "other"
                          : "others");
    if (small)
        print_line(name, before_ns, after_ns, out);
}

void two_runs_print(const struct difference *difference, bool quiet, FILE *out)
{
    struct arena arena;
    arena_init(&arena, 0);
    fprintf(out, "\n%10s  %10s  %11s\n", "First", "Second", "Change");
    for (size_t i = 0; i < difference->stream_count; i++) {
        const struct difference_stream *stream = &difference->streams[i];
        char name[SENTENCE], line[SENTENCE + 32];
        stream_name(stream, name, sizeof name);
        snprintf(line, sizeof line, "stream %s, busy", name);
        print_line(line, stream->before ? stream->before->busy_ns : 0,
                   stream->after ? stream->after->busy_ns : 0, out);
        if (quiet)
            continue;
        print_rows(difference, stream->rows, stream->row_count, true, out);
        size_t count;
        const struct difference_row *rows = fold_tasks(stream, &arena, &count);
        print_rows(difference, rows, count, false, out);
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
            stream_name(stream, name, sizeof name);
            if (told++ == 0)
                fprintf(out, "beside it, at the same time:\n");
            print_sentence(name, row, modelled, 0, out);
        }
    }
}

void two_runs_explain(const struct compared_run *first, const struct compared_run *second,
                      const struct difference *difference, FILE *out)
{
    const bool modelled = first->account.modelled || second->account.modelled;
    const double whole_ns = difference->after_ns - difference->before_ns;
    char name[SENTENCE], change[UNITS_TEXT + 8];
    stream_name(&difference->streams[0], name, sizeof name);
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
