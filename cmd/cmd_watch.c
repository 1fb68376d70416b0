/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_watch.c - `swsim watch`: how far a run is that another process writes to a trace store.
 *
 * The store is open only while it is read, so that the writer can end it as one plain file. Nothing on the
 * terminal is changed that a signal would have to set back: each look moves up over the lines of the last one.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "app.h"
#include "interrupts.h"
#include "options.h"
#include "watch_view.h"

enum { EVERY_NS = 1000000000, WINDOW_NS = 1000000000, USUAL_WIDTH = 80, USUAL_HEIGHT = 24 };

struct watch {
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

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reading {
    struct watch *watch;
    struct run_progress *now;
    struct arena *arena;
};

static enum status find_run(struct watch *watch, struct store *store)
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
    const struct reading *reading = context;
    struct watch *watch = reading->watch;
    enum status status = STATUS_OK;
    if (watch->looks == 0)
        status = find_run(watch, store);
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
static int64_t note_change(struct watch *watch, const struct run_progress *now)
{
    int64_t at_ns = clock_ns(CLOCK_MONOTONIC);
    bool changed = watch->looks++ == 0 || now->newest_ns != watch->seen.newest_ns ||
                   now->done != watch->seen.done || now->finished != watch->seen.finished;
    if (changed && watch->looks == 1 && watch->run.start_unix_ns >= 0) {
        int64_t age_ns = clock_ns(CLOCK_REALTIME) - watch->run.start_unix_ns - now->newest_ns;
        at_ns -= age_ns > 0 ? age_ns : 0;
    }
    if (changed) {
        watch->seen = *now;
        watch->changed_ns = at_ns;
    }
    return clock_ns(CLOCK_MONOTONIC) - watch->changed_ns;
}

/* ---- showing --------------------------------------------------------------------------------- */

static struct watch_sheet sheet_of(const struct watch *watch)
{
    struct winsize size;
    if (!watch->terminal)
        return (struct watch_sheet){INT_MAX, INT_MAX, "", "", stdout};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
        size = (struct winsize){.ws_col = USUAL_WIDTH, .ws_row = USUAL_HEIGHT};
    int height = size.ws_row > 3 ? size.ws_row - 1 : 2;
    return (struct watch_sheet){size.ws_col - 1, height, "\r", "\033[K", stdout};
}

static void show_block(struct watch *watch, const struct watch_look *look, struct arena *scratch)
{
    const struct watch_sheet sheet = sheet_of(watch);
    if (watch->terminal && watch->lines > 0)
        printf("\033[%dA", watch->lines);
    watch->lines = watch_view_block(look, &sheet, scratch);
    if (watch->terminal)
        fputs("\033[J", stdout);
}

static enum status show(struct watch *watch, const struct watch_look *look, struct arena *scratch)
{
    struct app *app = watch->app;
    struct json json;
    bool over = look->now->finished != RUN_OPEN;
    if (app->json) {
        json_open(&json, stdout);
        watch_view_json(look, &json);
        return json_close(&json, &app->diag);
    }
    if (over || watch->terminal)
        show_block(watch, look, scratch);
    else if (!app->quiet)
        watch_view_line(look, scratch, stdout);
    return diag_flush(&app->diag, stdout, "");
}

/* ---- watching -------------------------------------------------------------------------------- */

static enum status look(struct watch *watch, bool *over)
{
    struct arena scratch;
    struct run_progress now;
    arena_init(&scratch, 0);
    struct reading reading = {watch, &now, &scratch};
    enum status status = app_with_store(watch->app, watch->path, read_store, &reading);
    if (status == STATUS_OK) {
        const struct watch_look seen = {&watch->run, &now, note_change(watch, &now)};
        status = show(watch, &seen, &scratch);
        *over = now.finished != RUN_OPEN;
        if (status == STATUS_OK && now.finished == RUN_INTERRUPTED)
            status = STATUS_VIOLATED;
    }
    arena_fini(&scratch);
    return status;
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_sec = EVERY_NS / 1000000000, .tv_nsec = EVERY_NS % 1000000000},
              NULL); /* a signal ends it early */
}

/* A first look alone does not tell that nothing comes. */
static enum status watch_on(struct watch *watch)
{
    for (;;) {
        bool over = false;
        enum status status = look(watch, &over);
        if (status != STATUS_OK || over)
            return status;
        int64_t quiet_ns = clock_ns(CLOCK_MONOTONIC) - watch->changed_ns;
        if (watch->looks > 1 && quiet_ns >= watch->timeout_ns)
            return diag_error(&watch->app->diag, STATUS_VIOLATED,
                              "run %" PRId64 " in %s: nothing was written for %" PRId64
                              " s: it was killed, or hangs",
                              watch->run.run, watch->path, quiet_ns / 1000000000);
        if (!interrupts_seen())
            nap();
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
    struct watch watch = {.app = app, .timeout_ns = INT64_C(10000000000)};
    int64_t run = STORE_LATEST;
    const struct option_spec options[] = {
        {"run", 0, "N", "this run (default the newest)", OPTION_INTEGER, .value = &run,
         .max = INT64_MAX},
        {"timeout", 0, "T", "give up when nothing was written for so long (default 10s)",
         OPTION_TIME, .value = &watch.timeout_ns},
    };
    const struct command command = {
        .name = "swsim watch",
        .arguments = "DB",
        .about =
            "Look each second at a run that another process adds to a trace store, swrun --db "
            "for one:\n"
            "iterations done, how many a second, how long one takes, and what each stream did in "
            "the\n"
            "last second. Ends with the run: 0 if it is finished, 1 if it was interrupted or "
            "nothing\n"
            "is written any more. Of a run that is over, the summary.",
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
