/* SPDX-License-Identifier: Apache-2.0 */
/* app.c - see app.h. */
#include "app.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "improve/found.h"
#include "base/input.h"
#include "base/json.h"
#include "base/output.h"
#include "base/system_words.h"
#include "base/wrap.h"
#include "plan/text/parse.h"
#include "plan/text/warnings.h"

#include "starter.h"
#include "base/stopwatch.h"

static void do_nothing(int signal)
{
    (void)signal;
}

static void keep_streams(const char *program)
{
    if (input_keep_streams())
        return;
    fprintf(stderr, "%s: error: cannot replace a closed standard stream: %s\n", program,
            system_words(errno));
    exit(status_exit_code(STATUS_SYSTEM));
}

void app_init(struct app *app, const char *program)
{
    keep_streams(program);
    /* A write beyond `ulimit -f` fails like any other, in place of ending the process. Programs that it starts do not
       inherit a handler. */
    struct sigaction action = {.sa_handler = do_nothing, .sa_flags = SA_RESTART};
    (void)sigaction(SIGXFSZ, &action, NULL);
    *app = (struct app){.program = program};
    arena_init(&app->arena, 0);
    diag_init(&app->diag);
}

/* Launchers give a process a terminal of its own and pass on what it writes, perhaps into a file. */
static bool has_launcher(void)
{
    struct starter starter;
    starter_find(&starter);
    return starter.size > 0;
}

bool app_color(const struct app *app, FILE *file)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    if (app->color != COLOR_AUTO)
        return app->color == COLOR_ALWAYS;
    if ((no_color && *no_color) || (term && strcmp(term, "dumb") == 0))
        return false;
    return isatty(file == stdout ? STDOUT_FILENO : fileno(file)) == 1 && !has_launcher();
}

void app_fit_terminal(void)
{
    enum { LEAST = 40 };
    struct winsize size;
    if (isatty(STDOUT_FILENO) != 1 || has_launcher() ||
        ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < LEAST)
        return;
    FILE *wrapped = wrap_open(stdout, size.ws_col);
    if (wrapped) /* else long lines are broken by the terminal */
        stdout = wrapped;
}

/* --json: the errors so far are an object of their own, beside the messages for people. */
static void write_errors(const struct app *app)
{
    if (app->json && !app->silent && diag_has_error(&app->diag))
        json_write_errors(&app->diag, stdout);
}

static void print_messages(struct app *app)
{
    if (!app->silent)
        diag_print(&app->diag, app->program, app_color(app, stderr), stderr);
    if (!app->write_errno)
        app->write_errno = app->diag.stdout_errno;
    diag_fini(&app->diag);
    diag_init(&app->diag);
}

void app_report(struct app *app)
{
    write_errors(app);
    (void)diag_flush(&app->diag, stdout, ""); /* app_close says it */
    app->told |= diag_has_error(&app->diag);
    app->lost_memory |= app->diag.out_of_memory;
    print_messages(app);
}

enum status app_silence(struct app *app)
{
    app->silent = true;
    if (!freopen("/dev/null", "w", stdout))
        return diag_error(&app->diag, STATUS_SYSTEM, "cannot open /dev/null: %s",
                          system_words(errno));
    return STATUS_OK;
}

int app_close(struct app *app, enum status status)
{
    /* A part of the answer is left out: a story, or that a violation happens always. */
    if (app->lost_memory || app->diag.out_of_memory)
        status = app_worse(status, STATUS_SYSTEM);
    /* No failure is silent, also one that its finder forgot to describe. */
    bool unwritten = app->write_errno || app->diag.stdout_errno; /* app_close says that */
    bool failure = status == STATUS_USAGE || status == STATUS_SYSTEM || status == STATUS_INPUT;
    if (failure && !unwritten && !app->told && !diag_has_error(&app->diag))
        diag_error(&app->diag, status, "failed without a described reason (%s): a defect of %s",
                   status_words(status), app->program);
    write_errors(app);
    bool failed = diag_flush(&app->diag, stdout, "") != STATUS_OK;
    int error = app->write_errno ? app->write_errno : app->diag.stdout_errno;
    if (fclose(stdout) != 0 && !failed) {
        failed = true;
        error = errno;
    }
    /* A verb that has described what the system refused has said why its output is not whole. */
    bool described = status == STATUS_SYSTEM && (app->told || diag_has_error(&app->diag));
    if (failed && !described)
        status = diag_error(&app->diag, STATUS_SYSTEM, "cannot write standard output: %s",
                            system_words(error));
    print_messages(app);
    arena_fini(&app->arena);
    /* A launcher ends all processes as soon as one has failed, so a process fails only after the message
       is printed. */
    return app->silent ? 0 : status_exit_code(status);
}

enum status app_worse(enum status a, enum status b)
{
    static const int gravity[] = {
        [STATUS_OK] = 0,    [STATUS_LIMIT] = 1,  [STATUS_VIOLATED] = 2,
        [STATUS_USAGE] = 3, [STATUS_SYSTEM] = 4, [STATUS_INPUT] = 5,
    };
    return gravity[b] > gravity[a] ? b : a;
}

enum status app_create(struct app *app, const char *path, struct app_output *out)
{
    *out = (struct app_output){.path = path, .file = stdout};
    if (strcmp(path, "-") == 0)
        return STATUS_OK;
    if (!text_open(&out->text))
        return diag_no_memory(&app->diag);
    out->file = out->text.out;
    return STATUS_OK;
}

enum status app_close_file(struct app *app, struct app_output *output, enum status status)
{
    size_t bytes;
    if (output->file == stdout)
        return status == STATUS_OK ? diag_flush(&app->diag, stdout, "") : status;
    char *text = text_close(&output->text, status == STATUS_OK, &bytes);
    if (status == STATUS_OK)
        status =
            text ? output_write(output->path, text, bytes, &app->diag) : diag_no_memory(&app->diag);
    free(text);
    return status;
}

enum status app_write_file(struct app *app, const char *path, const char *text)
{
    if (strcmp(path, "-") != 0)
        return output_write(path, text, strlen(text), &app->diag);
    fputs(text, stdout);
    return diag_flush(&app->diag, stdout, "");
}

static enum status with_plan(struct app *app, const char *path, bool as_written, plan_use *use,
                             void *context)
{
    struct plan plan;
    enum status status = plan_read(path, &plan, &app->diag);
    if (status != STATUS_OK)
        return status;
    if (!as_written)
        status = found_resolve(&plan, &plan.arena, &app->diag);
    if (status == STATUS_OK)
        status = use(app, &plan, context);
    plan_fini(&plan);
    return status;
}

enum status app_with_plan(struct app *app, const char *path, plan_use *use, void *context)
{
    return with_plan(app, path, false, use, context);
}

enum status app_with_written(struct app *app, const char *path, plan_use *use, void *context)
{
    return with_plan(app, path, true, use, context);
}

enum status app_with_store(struct app *app, const char *path, store_use *use, void *context)
{
    struct store *store;
    enum status status = store_open(path, false, &store, &app->diag);
    if (status != STATUS_OK)
        return status;
    status = use(app, store, context);
    enum status closed = store_close(store, &app->diag);
    return status != STATUS_OK ? status : closed;
}

int app_driver(struct app *app, const struct plan *plan, int given, int usual)
{
    return driver_choose(plan, given, usual, &app->diag);
}

struct program_options app_program_options(struct app *app, const struct program_request *request,
                                           const struct plan *plan)
{
    int driver = app_driver(app, plan, request->driver, CLOCK_ONLY);
    return (struct program_options){
        .driver = plan->form != FORM_PIPELINE ? DRIVER_NONE
                  : driver == CLOCK_ONLY      ? DRIVER_CLOCK
                                              : DRIVER_DATAFLOW,
        .iterations = request->iterations,
        .ranks = (int)request->ranks,
        .max_depth = (int)request->max_depth,
    };
}

/* ---- warnings -------------------------------------------------------------------------------- */

void warned_tell_from(struct app *app, const struct plan *plan, const struct warnings *warnings,
                      size_t first)
{
    for (size_t i = first; i < warnings->count && !app->quiet; i++)
        diag_warn_at(&app->diag, plan->file, plan->text, warnings->items[i].mark, "%s",
                     warnings->items[i].text);
}

enum status warned_find(struct app *app, const struct plan *plan, struct warnings *out)
{
    enum status status = warnings_find(plan, &app->arena, out, &app->diag);
    if (status == STATUS_OK)
        warned_tell_from(app, plan, out, 0);
    return status;
}

/* ---- interrupts ------------------------------------------------------------------------------ */

static atomic_bool interrupted, caught;

static void interrupt(int signal_number)
{
    (void)signal_number;
    atomic_store(&interrupted, true);
}

void interrupts_handle(void (*handler)(int), unsigned flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = (int)flags}, before;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL); /* cannot fail with these arguments */
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, NULL, &before);
    if (before.sa_handler != SIG_IGN) /* as nohup sets it */
        sigaction(SIGHUP, &action, NULL);
}

const atomic_bool *interrupts_catch(void)
{
    atomic_store(&caught, true);
    interrupts_handle(interrupt, SA_RESETHAND);
    return &interrupted;
}

bool interrupts_seen(void)
{
    return atomic_load(&interrupted);
}

bool interrupts_send(void)
{
    atomic_store(&interrupted, atomic_load(&caught));
    return atomic_load(&caught);
}

/* ---- progress -------------------------------------------------------------------------------- */

enum { FIRST_NS = 500000000, EVERY_NS = 200000000 };

void progress_init(struct progress *progress, const struct app *app)
{
    bool on_terminal = isatty(STDERR_FILENO) == 1;
    bool wanted = app->progress == PROGRESS_AUTO ? on_terminal && !app->quiet
                                                 : app->progress == PROGRESS_ALWAYS;
    *progress = (struct progress){.wanted = wanted && !app->silent,
                                  .on_terminal = on_terminal,
                                  .next_ns = stopwatch_now_ns() + FIRST_NS};
}

void progress_show(struct progress *progress, const char *format, ...)
{
    if (!progress->wanted)
        return;
    int64_t now = stopwatch_now_ns();
    if (now < progress->next_ns)
        return;
    progress->next_ns = now + EVERY_NS;
    progress->shown = progress->on_terminal;
    va_list args;
    va_start(args, format);
    fputs(progress->on_terminal ? "\r\033[K" : "\t", stderr);
    vfprintf(stderr, format, args);
    if (!progress->on_terminal)
        fputc('\n', stderr);
    fflush(stderr);
    va_end(args);
}

void progress_clear(struct progress *progress)
{
    if (progress->shown)
        fputs("\r\033[K", stderr);
    progress->shown = false;
}

/* ---- stores and plans ------------------------------------------------------------------------ */

enum status run_spec_is_store(struct app *app, const char *path, bool *out)
{
    static const char magic[16] = "SQLite format 3";
    char head[sizeof magic] = {0};
    *out = false;
    if (strcmp(path, "-") == 0)
        return STATUS_OK;
    if (access(path, F_OK) == 0 && !input_is_ordinary(path))
        return STATUS_OK; /* looking at a pipe would take out of it; whatever reads it says more */
    FILE *file = fopen(path, "rb");
    if (!file)
        return diag_error(&app->diag, STATUS_SYSTEM, "cannot open %s: %s", path,
                          system_words(errno));
    size_t length = fread(head, 1, sizeof head, file);
    int error = ferror(file) ? errno : 0;
    fclose(file);
    *out = length == sizeof head && memcmp(head, magic, sizeof magic) == 0;
    return !error ? STATUS_OK
                  : diag_error(&app->diag, STATUS_SYSTEM, "cannot read %s: %s", path,
                               system_words(error));
}
