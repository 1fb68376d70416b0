/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app.h - what every command shares: common options, messages, colours, exit codes.
 *
 * One `struct app` lives as long as the process; a verb gets it, fills its diag and returns a
 * status. app_close prints the messages, makes sure standard output was written and turns the
 * status into the exit code.
 */
#ifndef SWSIM_APP_H
#define SWSIM_APP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "api/driver_choice.h"
#include "api/option_texts.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/text_stream.h"
#include "machine/program.h"
#include "plan/plan.h"
#include "plan/text/warnings.h"
#include "trace/store.h"

enum color_when { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };
enum progress_when { PROGRESS_AUTO, PROGRESS_ALWAYS, PROGRESS_NEVER };

struct app {
    const char *program; /* "swsim" or "swrun" */
    bool json, quiet;
    bool silent;      /* another process prints the results */
    int color;        /* enum color_when; an int so that the option table can set it */
    int progress;     /* enum progress_when, likewise */
    bool told;        /* app_report has printed an error */
    bool lost_memory; /* a message said so already */
    int write_errno;  /* why standard output could not be flushed; 0: it could */
    struct arena arena;
    struct diag diag;
};

void app_init(struct app *app, const char *program);
/* Print the messages, flush and close standard output; returns the exit code. */
int app_close(struct app *app, enum status status);

/* Another process of the job prints: from now on this one prints nothing, and its exit code is 0. */
enum status app_silence(struct app *app);

/* Print and forget the messages so far: with several plans, those of each plan follow its results. */
void app_report(struct app *app);

/* For options with a grammar of their own. */
static inline struct option_reader app_reader(struct app *app)
{
    return (struct option_reader){&app->arena, &app->diag};
}

/* Whether `file`, standard output or error, gets colours. */
bool app_color(const struct app *app, FILE *file);

/* From now on standard output, where it is a terminal, breaks the lines that are wider: for reports, which are sentences and
   tables, and not for what may be copied into a file. */
void app_fit_terminal(void);

/* Of several plans: the highest of the exit codes 2 and 3 wins, then 1, then 4. */
enum status app_worse(enum status a, enum status b);

/* A file that a command writes; "-" is standard output. It is written when it is closed, whole or not at all
   (base/output.h). */
struct app_output {
    const char *path;
    struct text_stream text;
    FILE *file; /* to write to */
};
enum status app_create(struct app *app, const char *path, struct app_output *out);
/* Write it if what was to be written is complete (`status` is STATUS_OK), else leave the file as it was. Returns
   `status`, or that of the failure to write. */
enum status app_close_file(struct app *app, struct app_output *output, enum status status);
/* A whole file at once. */
enum status app_write_file(struct app *app, const char *path, const char *text);

/* Read the plan in `path` ("-" is standard input), search for its lists if it wants that (improve/found.h), hand it to `use`
   and release it; the plan as it is written, without a search; the same with the store that is in `path`. */
typedef enum status plan_use(struct app *app, struct plan *plan, void *context);
typedef enum status store_use(struct app *app, struct store *store, void *context);
enum status app_with_plan(struct app *app, const char *path, plan_use *use, void *context);
enum status app_with_written(struct app *app, const char *path, plan_use *use, void *context);
enum status app_with_store(struct app *app, const char *path, store_use *use, void *context);

/* The driver of a command: as given on its line, else the plan's, else `usual`. A note tells where line and
   plan differ. */
int app_driver(struct app *app, const struct plan *plan, int given, int usual);

/* The options of a verb that builds a program; the usual driver is the clock. */
struct program_request {
    int driver; /* enum driver_choice */
    int64_t iterations, ranks, max_depth;
};
struct program_options app_program_options(struct app *app, const struct program_request *request,
                                           const struct plan *plan);

/* A verb: its own options and arguments in argv, argv[0] being its name. */
typedef enum status verb_run(struct app *app, int argc, char **argv);

verb_run cmd_verify, cmd_predict, cmd_render, cmd_schedule, cmd_stages, cmd_lower, cmd_generate,
    cmd_groups, cmd_export, cmd_why, cmd_compare, cmd_tune, cmd_runs, cmd_import, cmd_record, cmd_dry, cmd_watch, cmd_explain,
    cmd_schema, cmd_mcp;

/* ---- warnings -------------------------------------------------------------------------------- */

/* Tell the warnings about a plan, which each command that proves, predicts or runs it does once. Unless the app is quiet they
   become messages, with their position and line; those from `first` on. */
void warned_tell_from(struct app *app, const struct plan *plan, const struct warnings *warnings,
                      size_t first);

/* Find the warnings about `plan` and tell them. Texts live as long as the app. */
enum status warned_find(struct app *app, const struct plan *plan, struct warnings *out);

/* ---- interrupts ------------------------------------------------------------------------------ */

/*
 * The first SIGINT, SIGTERM or SIGHUP ends long work early, with the results so far; a second one
 * ends the process.
 */

/* From now on the first of these signals only sets the returned flag. */
const atomic_bool *interrupts_catch(void);

/* True if one of these signals has come. */
bool interrupts_seen(void);

/* The same as if one had come; false where they are not caught. */
bool interrupts_send(void);

/* A handler of its own, or SIG_IGN, for these signals; `flags` as for sigaction(). Where SIGHUP is ignored, as
   nohup makes it, it stays so. */
void interrupts_handle(void (*handler)(int), unsigned flags);

/* ---- progress -------------------------------------------------------------------------------- */

/*
 * Progress of long work, on standard error: not before half a second, and a few times a second after that. On a
 * terminal it is one line, which progress_clear wipes before anything else is printed. Elsewhere it is shown with
 * --progress=always, each time as a line that begins with a tab, so that another program can tell it from messages.
 */

struct progress {
    bool wanted, on_terminal, shown;
    int64_t next_ns;
};

void progress_init(struct progress *progress, const struct app *app);
/* Show the line if it is time to. */
void progress_show(struct progress *progress, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void progress_clear(struct progress *progress);

/* ---- stores and plans ------------------------------------------------------------------------ */

/* *out is true if the file of a command line is a trace store: if it begins as an SQLite database does. "-" does not.
   STATUS_SYSTEM where it cannot be read. */
enum status run_spec_is_store(struct app *app, const char *path, bool *out);

#endif
