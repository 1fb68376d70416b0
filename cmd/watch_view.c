/* SPDX-License-Identifier: Apache-2.0 */
/* watch_view.c - see watch_view.h. */
#include "watch_view.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/columns.h"
#include "base/printable.h"
#include "base/units.h"

enum { BAR = 24, NAME = 64, LINE = 512, QUIET_NS = 2000000000 };

/* A stream, or the streams of one name on all ranks. */
struct row {
    const char *name;
    int rank, ranks, least_rank;
    double share, least, greatest; /* busy; the mean */
    const struct progress_work *work;
};

static double share_of(const struct run_progress *now, int64_t busy_ns)
{
    int64_t window_ns = now->to_ns - now->from_ns;
    double share = window_ns > 0 ? (double)busy_ns / (double)window_ns : 0;
    return share > 1 ? 1 : share; /* an imported stream may do two things at once */
}

/* The row that has the agent's name already; NULL: none, or ranks have rows of their own. */
static struct row *row_named(struct row *rows, size_t count, const char *name, bool folds)
{
    for (size_t i = 0; i < count && folds; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

static void join(struct row *row, int rank, double share)
{
    row->share = (row->share * row->ranks + share) / (row->ranks + 1);
    row->ranks++;
    row->greatest = fmax(row->greatest, share);
    if (share < row->least) {
        row->least = share;
        row->least_rank = rank;
    }
}

static size_t find_rows(const struct watch_look *look, struct row *rows)
{
    size_t count = 0;
    const struct progress_run *run = look->run;
    for (size_t i = 0; i < run->agent_count; i++) {
        const struct progress_agent *agent = &run->agents[i];
        const struct progress_work *work = &look->now->work[i];
        double share = share_of(look->now, work->busy_ns);
        struct row *same = row_named(rows, count, agent->name, run->rank_count > WATCH_RANKS);
        if (same)
            join(same, agent->rank, share);
        else
            rows[count++] =
                (struct row){agent->name, agent->rank, 1, agent->rank, share, share, share, work};
    }
    return count;
}

/* `comma` stands between the name and the rank. */
static void name_row(const struct watch_look *look, const struct row *row, const char *comma,
                     char name[NAME])
{
    const bool several = look->run->rank_count > 1;
    const int bytes = printable_fit(row->name, row->ranks > 1 || several ? 40 : 60);
    if (row->ranks > 1)
        snprintf(name, NAME, "%.*s%s %d ranks", bytes, row->name, comma, row->ranks);
    else if (several)
        snprintf(name, NAME, "%.*s%s rank %d", bytes, row->name, comma, row->rank);
    else
        snprintf(name, NAME, "%.*s", bytes, row->name);
}

/* ---- iterations ------------------------------------------------------------------------------ */

static bool has_iterations(const struct watch_look *look)
{
    return look->now->done > 0 || look->now->wanted > 0;
}

/* Iterations a second, since the start. */
static double rate_of(const struct run_progress *now)
{
    int64_t lasts_ns = now->finished == RUN_OPEN ? now->newest_ns : now->duration_ns;
    return lasts_ns > 0 ? (double)now->done * 1e9 / (double)lasts_ns : 0;
}

/* -1: it is not known. */
static double left_of(const struct run_progress *now)
{
    bool known = now->finished == RUN_OPEN && now->wanted > now->done && rate_of(now) > 0;
    return known ? (double)(now->wanted - now->done) * 1e9 / rate_of(now) : -1;
}

/* "120 of 5000 iterations, 412/s; the last 32 took 2.43 ms each; 9 s left" */
static void print_iterations(const struct run_progress *now, char line[LINE])
{
    char each[UNITS_TEXT], left[UNITS_TEXT];
    int at = snprintf(line, LINE, "%" PRId64, now->done);
    if (now->wanted > 0)
        at += snprintf(line + at, LINE - (size_t)at, " of %" PRId64, now->wanted);
    at += snprintf(line + at, LINE - (size_t)at, " iterations");
    if (now->done > 0)
        at += snprintf(line + at, LINE - (size_t)at, ", %.3g/s", rate_of(now));
    if (now->iteration_ns > 0) {
        units_show_time((double)now->iteration_ns, each);
        at += snprintf(line + at, LINE - (size_t)at, "; the last %" PRId64 " took %s each",
                       now->averaged, each);
    }
    if (left_of(now) < 0)
        return;
    units_show_time(left_of(now), left);
    snprintf(line + at, LINE - (size_t)at, "; %s left", left);
}

/* ---- the block of a terminal ----------------------------------------------------------------- */

static void put(const struct watch_sheet *sheet, const char *line)
{
    fprintf(sheet->out, "%s%.*s%s\n", sheet->before, columns_fit(line, sheet->width), line,
            sheet->after);
}

static void print_head(const struct watch_look *look, char line[LINE])
{
    char lasts[UNITS_TEXT], quiet[UNITS_TEXT];
    const struct run_info *info = &look->run->info;
    const struct run_progress *now = look->now;
    bool open = now->finished == RUN_OPEN, silent = open && look->quiet_ns >= QUIET_NS;
    units_show_time((double)(open ? now->newest_ns : now->duration_ns), lasts);
    units_show_time((double)look->quiet_ns, quiet);
    snprintf(line, LINE, "%.*s, run %" PRId64 ", %s, %s %s%s%s%s%.*s",
             printable_fit(info->plan_name, 80), info->plan_name, look->run->run,
             run_kind_text(info->kind),
             open                            ? "at"
             : now->finished == RUN_FINISHED ? "finished after"
                                             : "interrupted after",
             lasts, silent ? ", nothing written for " : "", silent ? quiet : "",
             *info->device ? ", on " : "", printable_fit(info->device, 60), info->device);
}

/* "forward 51%, backward 32%", or of several ranks how they differ. */
static void print_doing(const struct run_progress *now, const struct row *row, char *line,
                        size_t cap)
{
    line[0] = '\0';
    if (row->ranks > 1) {
        snprintf(line, cap, "%.0f%% (rank %d) to %.0f%%", 100 * row->least, row->least_rank,
                 100 * row->greatest);
        return;
    }
    for (int i = 0, at = 0; i < row->work->task_count && at < (int)cap; i++) {
        const struct progress_task *task = &row->work->tasks[i];
        at +=
            snprintf(line + at, cap - (size_t)at, "%s%.*s %.0f%%", i ? ", " : "",
                     printable_fit(task->name, 40), task->name, 100 * share_of(now, task->busy_ns));
    }
    line[printable_fit(line, (int)cap)] = '\0'; /* where it was cut */
}

static void print_row(const struct watch_look *look, const struct row *row, int width,
                      char line[LINE])
{
    char name[NAME], bar[BAR + 1], doing[LINE / 2];
    int filled = (int)lround(row->share * BAR);
    memset(bar, '#', (size_t)filled);
    memset(bar + filled, '.', (size_t)(BAR - filled));
    bar[BAR] = '\0';
    name_row(look, row, ",", name);
    print_doing(look->now, row, doing, sizeof doing);
    snprintf(line, LINE, "  %s%*s  %5.1f%%  %s%s%s", name, columns_fill(name, width), "",
             100 * row->share, bar, *doing ? "  " : "", doing);
}

static int widest(const struct watch_look *look, const struct row *rows, size_t count)
{
    char name[NAME];
    int width = 0;
    for (size_t i = 0; i < count; i++) {
        name_row(look, &rows[i], ",", name);
        columns_widen(&width, name);
    }
    return width;
}

int watch_view_block(const struct watch_look *look, const struct watch_sheet *sheet,
                     struct arena *scratch)
{
    char line[LINE];
    int lines = 1;
    struct row *rows = ARENA_ARRAY(scratch, look->run->agent_count + 1, struct row);
    size_t count = rows ? find_rows(look, rows) : 0;
    print_head(look, line);
    put(sheet, line);
    if (has_iterations(look)) {
        print_iterations(look->now, line);
        put(sheet, line);
        lines++;
    }
    for (size_t i = 0; i < count && lines < sheet->height; i++, lines++) {
        print_row(look, &rows[i], widest(look, rows, count), line);
        if (i + 1 < count && lines + 1 == sheet->height)
            snprintf(line, sizeof line, "  and %zu more", count - i);
        put(sheet, line);
    }
    return lines;
}

/* ---- one line -------------------------------------------------------------------------------- */

void watch_view_line(const struct watch_look *look, struct arena *scratch, FILE *out)
{
    char line[LINE], name[NAME], time[UNITS_TEXT];
    struct row *rows = ARENA_ARRAY(scratch, look->run->agent_count + 1, struct row);
    size_t count = rows ? find_rows(look, rows) : 0;
    units_show_time((double)look->now->newest_ns, time);
    fprintf(out, "at %s", time);
    if (has_iterations(look)) {
        print_iterations(look->now, line);
        fprintf(out, ": %s", line);
    }
    for (size_t i = 0; i < count; i++) {
        name_row(look, &rows[i], "", name);
        fprintf(out, "%s %s %.0f%%", i ? "," : ";", name, 100 * rows[i].share);
    }
    fputc('\n', out);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void write_agent(const struct run_progress *now, const struct progress_agent *agent,
                        const struct progress_work *work, struct json *json)
{
    json_begin_object(json);
    json_put_int(json, "rank", agent->rank);
    json_put_string(json, agent->kind == TRACE_STREAM ? "stream" : "thread", agent->name);
    json_put_double(json, "busy", share_of(now, work->busy_ns));
    json_begin_array_at(json, "tasks");
    for (int i = 0; i < work->task_count; i++) {
        json_begin_object(json);
        json_put_string(json, "task", work->tasks[i].name);
        json_put_double(json, "busy", share_of(now, work->tasks[i].busy_ns));
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
}

/* A number that is not known is null. */
static void put_known(struct json *json, const char *key, int64_t number, bool known)
{
    json_key(json, key);
    known ? json_int(json, number) : json_null(json);
}

void watch_view_json(const struct watch_look *look, struct json *json)
{
    const struct run_progress *now = look->now;
    json_begin_document(json, DOCUMENT_LOOK);
    json_put_int(json, "run", look->run->run);
    json_put_string(json, "plan", look->run->info.plan_name);
    json_put_string(json, "kind", run_kind_text(look->run->info.kind));
    json_put_string(json, "state", run_finished_text(now->finished));
    json_put_int(json, "time_ns", now->finished == RUN_OPEN ? now->newest_ns : now->duration_ns);
    json_put_int(json, "quiet_ns", look->quiet_ns);
    json_put_int(json, "iterations", now->done);
    put_known(json, "iterations_wanted", now->wanted, now->wanted > 0);
    put_known(json, "iteration_ns", now->iteration_ns, now->iteration_ns > 0);
    json_put_double(json, "iterations_per_s", rate_of(now));
    put_known(json, "left_ns", (int64_t)left_of(now), left_of(now) >= 0);
    json_put_int(json, "window_ns", now->to_ns - now->from_ns);
    json_begin_array_at(json, "streams");
    for (size_t i = 0; i < look->run->agent_count; i++)
        write_agent(now, &look->run->agents[i], &now->work[i], json);
    json_end_array(json);
    json_end_object(json);
}
