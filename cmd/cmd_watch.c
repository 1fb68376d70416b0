/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_watch.c - `swsim watch`: how far a run is that another process writes to a trace store.
 *
 * The store is open only while it is read, so that the writer can end it as one plain file. Nothing on the
 * terminal is changed that a signal would have to set back: each look moves up over the lines of the last one.
 */
#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/columns.h"
#include "base/json.h"
#include "base/printable.h"
#include "base/units.h"
#include "trace/store_progress.h"

#include "app.h"
#include "options.h"
#include "base/stopwatch.h"

/* ---- what is shown --------------------------------------------------------------------------- */

/*
 * A look at a run that goes on: as the block of lines of a terminal, as one line, as JSON.
 *
 * Up to WATCH_RANKS ranks each stream has a row; beyond that the streams of one name share one, with the least
 * and the greatest share of a rank.
 */

enum { WATCH_RANKS = 4 };

struct watch_look {
    const struct progress_run *run;
    const struct run_progress *now;
    int64_t quiet_ns; /* since something was written */
};

/* A block of lines, none wider than `width`, at most `height` of them; returns how many. Each begins with
   `before` and ends with `after` and a line end. */
struct watch_sheet {
    int width, height;
    const char *before, *after;
    FILE *out;
};

enum { BAR = 24, NAME = 64, LINE = 512, QUIET_NS = 2000000000 };

/* A stream, or the streams of one name on all ranks. */
struct cmd_watch_row {
    const char *name;
    int rank, ranks, least_rank;
    double share, least, greatest; /* busy; the mean */
    const struct progress_work *work;
};

static double cmd_watch_share_of(const struct run_progress *now, int64_t busy_ns)
{
    int64_t window_ns = now->to_ns - now->from_ns;
    double share = window_ns > 0 ? (double)busy_ns / (double)window_ns : 0;
    return share > 1 ? 1 : share; /* an imported stream may do two things at once */
}

/* The row that has the agent's name already; NULL: none, or ranks have rows of their own. */
static struct cmd_watch_row *row_named(struct cmd_watch_row *rows, size_t count, const char *name,
                                       bool folds)
{
    for (size_t i = 0; i < count && folds; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

static size_t cmd_watch_find_rows(const struct watch_look *look, struct cmd_watch_row *rows)
{
    size_t count = 0;
    const struct progress_run *run = look->run;
    for (size_t i = 0; i < run->agent_count; i++) {
        const struct progress_agent *agent = &run->agents[i];
        const struct progress_work *work = &look->now->work[i];
        double share = cmd_watch_share_of(look->now, work->busy_ns);
        struct cmd_watch_row *same =
            row_named(rows, count, agent->name, run->rank_count > WATCH_RANKS);
        if (same) {
            assert(same->ranks >= 1);
            same->share = (same->share * same->ranks + share) / (same->ranks + 1);
            same->ranks++;
            same->greatest = fmax(same->greatest, share);
            if (share < same->least) {
                same->least = share;
                same->least_rank = agent->rank;
            }
        } else
            rows[count++] = (struct cmd_watch_row){agent->name, agent->rank, 1,     agent->rank,
                                                   share,       share,       share, work};
    }
    assert(count <= run->agent_count);
    return count;
}

/* `comma` stands between the name and the rank. */
static void name_row(const struct watch_look *look, const struct cmd_watch_row *row,
                     const char *comma, char name[NAME])
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
static double cmd_watch_rate_of(const struct run_progress *now)
{
    int64_t lasts_ns = now->finished == RUN_OPEN ? now->newest_ns : now->duration_ns;
    return lasts_ns > 0 ? (double)now->done * 1e9 / (double)lasts_ns : 0;
}

/* -1: it is not known. */
static double cmd_watch_left_of(const struct run_progress *now)
{
    bool known = now->finished == RUN_OPEN && now->wanted > now->done && cmd_watch_rate_of(now) > 0;
    return known ? (double)(now->wanted - now->done) * 1e9 / cmd_watch_rate_of(now) : -1;
}

/* "120 of 5000 iterations, 412/s; the last 32 took 2.43 ms each; 9 s left" */
static void cmd_watch_print_iterations(const struct run_progress *now, char line[LINE])
{
    char each[UNITS_TEXT], left[UNITS_TEXT];
    int at = snprintf(line, LINE, "%" PRId64, now->done);
    if (now->wanted > 0)
        at += snprintf(line + at, LINE - (size_t)at, " of %" PRId64, now->wanted);
    at += snprintf(line + at, LINE - (size_t)at, " iterations");
    if (now->done > 0)
        at += snprintf(line + at, LINE - (size_t)at, ", %.3g/s", cmd_watch_rate_of(now));
    if (now->iteration_ns > 0) {
        units_show_time((double)now->iteration_ns, each);
        at += snprintf(line + at, LINE - (size_t)at, "; the last %" PRId64 " took %s each",
                       now->averaged, each);
    }
    if (cmd_watch_left_of(now) < 0)
        return;
    units_show_time(cmd_watch_left_of(now), left);
    snprintf(line + at, LINE - (size_t)at, "; %s left", left);
}

/* ---- the block of a terminal ----------------------------------------------------------------- */

static void cmd_watch_put(const struct watch_sheet *sheet, const char *line)
{
    fprintf(sheet->out, "%s%.*s%s\n", sheet->before, columns_fit(line, sheet->width), line,
            sheet->after);
}

static void cmd_watch_print_head(const struct watch_look *look, char line[LINE])
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
static void print_doing(const struct run_progress *now, const struct cmd_watch_row *row, char *line,
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
        at += snprintf(line + at, cap - (size_t)at, "%s%.*s %.0f%%", i ? ", " : "",
                       printable_fit(task->name, 40), task->name,
                       100 * cmd_watch_share_of(now, task->busy_ns));
    }
    line[printable_fit(line, (int)cap)] = '\0'; /* where it was cut */
}

static void cmd_watch_print_row(const struct watch_look *look, const struct cmd_watch_row *row,
                                int width, char line[LINE])
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

static int widest(const struct watch_look *look, const struct cmd_watch_row *rows, size_t count)
{
    char name[NAME];
    int width = 0;
    for (size_t i = 0; i < count; i++) {
        name_row(look, &rows[i], ",", name);
        columns_widen(&width, name);
    }
    return width;
}

static int watch_view_block(const struct watch_look *look, const struct watch_sheet *sheet,
                            struct arena *scratch)
{
    char line[LINE];
    int lines = 1;
    struct cmd_watch_row *rows =
        ARENA_ARRAY(scratch, look->run->agent_count + 1, struct cmd_watch_row);
    size_t count = rows ? cmd_watch_find_rows(look, rows) : 0;
    cmd_watch_print_head(look, line);
    cmd_watch_put(sheet, line);
    if (has_iterations(look)) {
        cmd_watch_print_iterations(look->now, line);
        cmd_watch_put(sheet, line);
        lines++;
    }
    for (size_t i = 0; i < count && lines < sheet->height; i++, lines++) {
        cmd_watch_print_row(look, &rows[i], widest(look, rows, count), line);
        if (i + 1 < count && lines + 1 == sheet->height)
            snprintf(line, sizeof line, "  and %zu more", count - i);
        cmd_watch_put(sheet, line);
    }
    return lines;
}

/* ---- one line -------------------------------------------------------------------------------- */

static void watch_view_line(const struct watch_look *look, struct arena *scratch, FILE *out)
{
    char line[LINE], name[NAME], time[UNITS_TEXT];
    struct cmd_watch_row *rows =
        ARENA_ARRAY(scratch, look->run->agent_count + 1, struct cmd_watch_row);
    size_t count = rows ? cmd_watch_find_rows(look, rows) : 0;
    units_show_time((double)look->now->newest_ns, time);
    fprintf(out, "at %s", time);
    if (has_iterations(look)) {
        cmd_watch_print_iterations(look->now, line);
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
    json_put_double(json, "busy", cmd_watch_share_of(now, work->busy_ns));
    json_begin_array_at(json, "tasks");
    for (int i = 0; i < work->task_count; i++) {
        json_begin_object(json);
        json_put_string(json, "task", work->tasks[i].name);
        json_put_double(json, "busy", cmd_watch_share_of(now, work->tasks[i].busy_ns));
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
}

static void watch_view_json(const struct watch_look *look, struct json *json)
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
    json_put_known(json, "iterations_wanted", now->wanted, now->wanted > 0);
    json_put_known(json, "iteration_ns", now->iteration_ns, now->iteration_ns > 0);
    json_put_double(json, "iterations_per_s", cmd_watch_rate_of(now));
    json_put_known(json, "left_ns", (int64_t)cmd_watch_left_of(now), cmd_watch_left_of(now) >= 0);
    json_put_int(json, "window_ns", now->to_ns - now->from_ns);
    json_begin_array_at(json, "streams");
    for (size_t i = 0; i < look->run->agent_count; i++)
        write_agent(now, &look->run->agents[i], &now->work[i], json);
    json_end_array(json);
    json_end_object(json);
}

enum { EVERY_NS = 1000000000, WINDOW_NS = 1000000000, USUAL_WIDTH = 80, USUAL_HEIGHT = 24 };

struct cmd_watch_watch {
    struct app *app;
    const char *path;
    int64_t timeout_ns;
    bool terminal;
    int lines;                /* of the last look, on a terminal */
    struct progress_run run;  /* run.run: STORE_LATEST until it is found */
    struct run_progress seen; /* when something was new */
    int64_t changed_ns;       /* on the clock of now_ns */
    int64_t looks;
};

static int64_t unix_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct cmd_watch_reading {
    struct cmd_watch_watch *watch;
    struct run_progress *now;
    struct arena *arena;
};

static enum status cmd_watch_find_run(struct cmd_watch_watch *watch, struct store *store)
{
    struct app *app = watch->app;
    enum status status = progress_find(store, watch->run.run, &app->arena, &watch->run, &app->diag);
    if (status != STATUS_OK || watch->run.info.kind != RUN_WITNESS)
        return status;
    return diag_error(&app->diag, STATUS_INPUT,
                      "run %" PRId64
                      " in %s is a witness, which never ran: 'swsim render' draws it",
                      watch->run.run, watch->path);
}

/* Of the whole run when it is over. */
static enum status read_store(struct app *app, struct store *store, void *context)
{
    const struct cmd_watch_reading *reading = context;
    struct cmd_watch_watch *watch = reading->watch;
    enum status status = STATUS_OK;
    if (watch->looks == 0)
        status = cmd_watch_find_run(watch, store);
    if (status == STATUS_OK)
        status =
            progress_read(store, &watch->run, WINDOW_NS, reading->arena, reading->now, &app->diag);
    if (status == STATUS_OK && reading->now->finished != RUN_OPEN)
        status = progress_read(store, &watch->run, PROGRESS_ALL, reading->arena, reading->now,
                               &app->diag);
    return status;
}

/* The age of the newest work in the store. A run of which nothing has come since the first look may have been
   silent before, as its own clock tells. */
static int64_t note_change(struct cmd_watch_watch *watch, const struct run_progress *now)
{
    int64_t at_ns = stopwatch_now_ns();
    bool changed = watch->looks++ == 0 || now->newest_ns != watch->seen.newest_ns ||
                   now->done != watch->seen.done || now->finished != watch->seen.finished;
    if (changed && watch->looks == 1 && watch->run.start_unix_ns >= 0) {
        int64_t age_ns = unix_now_ns() - watch->run.start_unix_ns - now->newest_ns;
        at_ns -= age_ns > 0 ? age_ns : 0;
    }
    if (changed) {
        watch->seen = *now;
        watch->changed_ns = at_ns;
    }
    return stopwatch_now_ns() - watch->changed_ns;
}

/* ---- showing --------------------------------------------------------------------------------- */

static struct watch_sheet sheet_of(const struct cmd_watch_watch *watch)
{
    struct winsize size;
    if (!watch->terminal)
        return (struct watch_sheet){INT_MAX, INT_MAX, "", "", stdout};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
        size = (struct winsize){.ws_col = USUAL_WIDTH, .ws_row = USUAL_HEIGHT};
    int height = size.ws_row > 3 ? size.ws_row - 1 : 2;
    return (struct watch_sheet){size.ws_col - 1, height, "\r", "\033[K", stdout};
}

static enum status cmd_watch_show(struct cmd_watch_watch *watch, const struct watch_look *look,
                                  struct arena *scratch)
{
    struct app *app = watch->app;
    struct json json;
    bool over = look->now->finished != RUN_OPEN;
    if (app->json) {
        json_open(&json, stdout);
        watch_view_json(look, &json);
        return json_close(&json, &app->diag);
    }
    if (over || watch->terminal) {
        const struct watch_sheet sheet = sheet_of(watch);
        if (watch->terminal && watch->lines > 0)
            printf("\033[%dA", watch->lines);
        watch->lines = watch_view_block(look, &sheet, scratch);
        if (watch->terminal)
            fputs("\033[J", stdout);
    } else if (!app->quiet)
        watch_view_line(look, scratch, stdout);
    return diag_flush(&app->diag, stdout, "");
}

/* ---- watching -------------------------------------------------------------------------------- */

static enum status cmd_watch_look(struct cmd_watch_watch *watch, bool *over)
{
    struct arena scratch;
    struct run_progress now;
    arena_init(&scratch, 0);
    struct cmd_watch_reading reading = {watch, &now, &scratch};
    enum status status = app_with_store(watch->app, watch->path, read_store, &reading);
    if (status == STATUS_OK) {
        const struct watch_look seen = {&watch->run, &now, note_change(watch, &now)};
        status = cmd_watch_show(watch, &seen, &scratch);
        *over = now.finished != RUN_OPEN;
        if (status == STATUS_OK && now.finished == RUN_INTERRUPTED)
            status = STATUS_VIOLATED;
    }
    arena_fini(&scratch);
    return status;
}

static void cmd_watch_nap(void)
{
    nanosleep(&(struct timespec){.tv_sec = EVERY_NS / 1000000000, .tv_nsec = EVERY_NS % 1000000000},
              NULL); /* a signal ends it early */
}

/* A first look alone does not tell that nothing comes. */
static enum status watch_on(struct cmd_watch_watch *watch)
{
    for (;;) {
        bool over = false;
        enum status status = cmd_watch_look(watch, &over);
        if (status != STATUS_OK || over)
            return status;
        int64_t quiet_ns = stopwatch_now_ns() - watch->changed_ns;
        if (watch->looks > 1 && quiet_ns >= watch->timeout_ns)
            return diag_error(&watch->app->diag, STATUS_VIOLATED,
                              "run %" PRId64 " in %s: nothing was written for %" PRId64
                              " s: it was killed, or hangs",
                              watch->run.run, watch->path, quiet_ns / 1000000000);
        if (!interrupts_seen())
            cmd_watch_nap();
        if (interrupts_seen())
            return diag_error(&watch->app->diag, STATUS_LIMIT, "interrupted; the run goes on");
    }
}

static bool smart_terminal(void)
{
    const char *term = getenv("TERM");
    return isatty(STDOUT_FILENO) == 1 && term && strcmp(term, "dumb") != 0;
}

enum status cmd_watch(struct app *app, int argc, char **argv)
{
    struct cmd_watch_watch watch = {.app = app, .timeout_ns = INT64_C(10000000000)};
    int64_t run = STORE_LATEST;
    const struct option_spec options[] = {
        {"run", 0, "N", "this run (default the newest)", OPTION_INTEGER, .value = &run,
         .max = INT64_MAX},
        {"timeout", 0, "T", "give up when nothing was written for so long (default 10s)",
         OPTION_TIME, .value = &watch.timeout_ns},
    };
    const struct command command = {
        .unlimited = true,
        .name = "swsim watch",
        .arguments = "DB",
        .about = "Follow a run that another process adds to a trace store, as swrun --db does. "
                 "Each second\n"
                 "the command shows how many iterations are done, how many a second, how long one "
                 "takes,\n"
                 "and what each stream did in the last second. It ends when the run ends: with 0 "
                 "if the run\n"
                 "is finished, with 1 if it was interrupted or nothing more is written. If the run "
                 "is over\n"
                 "already, its summary is printed.",
        .examples = "  swsim watch runs.db\n"
                    "  swsim watch --json --timeout=60s runs.db",
        COMMAND_OPTIONS(options),
    };
    struct arguments arguments;
    enum status status;
    if (!options_parse(app, &command, argc, argv, &arguments, &status))
        return status;
    watch.path = arguments.items[0];
    watch.run.run = run;
    watch.terminal = !app->json && smart_terminal();
    (void)interrupts_catch();
    return watch_on(&watch);
}
