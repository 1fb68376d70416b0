/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_dry.c - `swsim dry`: record --device=none, import and verify in one, told in a screen. */
#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "app.h"
#include "options.h"

#include "base/system_words.h"

enum { HEAD_LINES = 2, TAIL_LINES = 12, MOST_ARGUMENTS = 16, UNDECIDED = 4 };

extern char **environ;

struct dry_run {
    struct app *app;
    const char *recording, *plan, *like; /* where they are left */
    const char *device;
    const char *hardware, *max_step; /* NULL: no prediction; no limit */
    char *ranks;                     /* --ranks=N; NULL: those of the recording */
    bool values, host_accesses;
    char **program;
    size_t program_count;
};

/* The verb of this program, in a process of its own; `output`: where its stdout goes, NULL: to ours. */
static enum status dry_call(const struct dry_run *run, char **arguments, FILE *output, int *code,
                            struct rusage *usage)
{
    struct app *app = run->app;
    posix_spawn_file_actions_t actions;
    pid_t child;
    int how;
    fflush(NULL);
    posix_spawn_file_actions_init(&actions);
    if (output)
        posix_spawn_file_actions_adddup2(&actions, fileno(output), STDOUT_FILENO);
    const int error = posix_spawn(&child, "/proc/self/exe", &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error)
        return diag_error(&app->diag, STATUS_SYSTEM, "cannot start swsim %s: %s", arguments[1],
                          system_words(error));
    while (wait4(child, &how, 0, usage) < 0)
        if (errno != EINTR)
            return diag_error(&app->diag, STATUS_SYSTEM, "cannot wait for swsim %s: %s",
                              arguments[1], system_words(errno));
    *code = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
    return STATUS_OK;
}

/* The program's end is the user's to judge: what was recorded up to it is looked at all the same. */
static enum status dry_record(const struct dry_run *run)
{
    struct app *app = run->app;
    char **arguments = ARENA_ARRAY(&app->arena, MOST_ARGUMENTS + run->program_count, char *);
    char *device = arena_printf(&app->arena, "--device=%s", run->device);
    size_t count = 0;
    int code;
    struct rusage usage = {0};
    const time_t begin = time(NULL);
    if (!arguments || !device)
        return diag_no_memory(&app->diag);
    arguments[count++] = "swsim";
    arguments[count++] = "record";
    arguments[count++] = device;
    if (run->values)
        arguments[count++] = "--values";
    if (run->host_accesses)
        arguments[count++] = "--host-accesses";
    arguments[count++] = "-o";
    arguments[count++] = (char *)(uintptr_t)run->recording;
    arguments[count++] = "--";
    for (size_t i = 0; i < run->program_count; i++)
        arguments[count++] = run->program[i];
    arguments[count] = NULL;
    const enum status status = dry_call(run, arguments, NULL, &code, &usage);
    if (status == STATUS_OK)
        diag_note(&app->diag, "the run took %lld s, its largest process %ld MiB",
                  (long long)(time(NULL) - begin), usage.ru_maxrss >> 10);
    if (status != STATUS_OK || access(run->recording, F_OK) == 0)
        return status;
    return diag_error(&app->diag, STATUS_INPUT, "nothing was recorded");
}

static enum status dry_import(const struct dry_run *run, const char *plan)
{
    char *arguments[] = {"swsim",
                         "import",
                         "-q",
                         plan == run->like ? "--repeat=like" : "--repeat=same",
                         "-o",
                         (char *)(uintptr_t)plan,
                         (char *)(uintptr_t)run->recording,
                         NULL};
    int code;
    const enum status status = dry_call(run, arguments, NULL, &code, NULL);
    if (status != STATUS_OK || code == 0)
        return status;
    return diag_error(&run->app->diag, STATUS_INPUT, "no plan could be made of %s", run->recording);
}

/* The verdict, and the end of a story, where what matters stands. */
static enum status dry_show(const char *plan, FILE *verdict)
{
    char *line = NULL;
    size_t room = 0, lines = 0;
    rewind(verdict);
    while (getline(&line, &room, verdict) > 0)
        lines++;
    rewind(verdict);
    for (size_t i = 0; getline(&line, &room, verdict) > 0; i++) {
        if (i < HEAD_LINES || i + TAIL_LINES >= lines)
            fputs(line, stdout);
        else if (i == HEAD_LINES)
            printf("  ... %zu lines; 'swsim verify %s' has them, and looks for a repair\n",
                   lines - HEAD_LINES - TAIL_LINES, plan);
    }
    free(line);
    return STATUS_OK;
}

/* That of an exit code of a verb, which has told the rest. */
static enum status dry_status(const struct dry_run *run, const char *verb, int code)
{
    if (code == 0 || code == 1 || code == 4)
        return code == 0 ? STATUS_OK : code == 1 ? STATUS_VIOLATED : STATUS_LIMIT;
    return diag_error(&run->app->diag, code == 3 ? STATUS_INPUT : STATUS_SYSTEM,
                      "swsim %s of %s failed; its messages are above", verb, run->plan);
}

/* Which verdicts are shown; of others there is the exit code. A verdict that need not be shown has few states. */
enum dry_shown { SHOWN_ALWAYS, SHOWN_DECIDED, SHOWN_PROVED };
static enum status dry_verify(const struct dry_run *run, const char *plan, enum dry_shown shown,
                              int *code)
{
    struct app *app = run->app;
    char *arguments[7] = {"swsim", "verify", "--no-fix", (char *)(uintptr_t)plan};
    size_t count = 4;
    if (shown != SHOWN_ALWAYS)
        arguments[count++] = "--limit=states=20000";
    arguments[count] = run->ranks;
    FILE *verdict = tmpfile();
    if (!verdict)
        return diag_error(&app->diag, STATUS_SYSTEM, "no temporary file: %s", system_words(errno));
    enum status status = dry_call(run, arguments, verdict, code, NULL);
    if (status == STATUS_OK && (shown == SHOWN_PROVED    ? *code == 0
                                : shown == SHOWN_DECIDED ? *code != UNDECIDED
                                                         : true))
        status = dry_show(plan, verdict);
    fclose(verdict);
    return status;
}

/* Without the order by answers of queries and by NCCL's watchdog a plan has all interleavings of the program, and more, and often
   fewer states: what is proved of it is proved of the program. It is asked where the program's own plan has many states. */
static enum status dry_prove(const struct dry_run *run)
{
    int code = UNDECIDED, like = UNDECIDED;
    enum status status = dry_import(run, run->plan);
    if (status == STATUS_OK)
        status = dry_verify(run, run->plan, SHOWN_DECIDED, &code);
    if (status == STATUS_OK && code == UNDECIDED) {
        status = dry_import(run, run->like);
        if (status == STATUS_OK)
            status = dry_verify(run, run->like, SHOWN_PROVED, &like);
        if (status == STATUS_OK && like == 0)
            diag_note(&run->app->diag,
                      "%s has more interleavings than the program, whose own plan, %s, has many "
                      "states: it is that of swsim import --repeat=like",
                      run->like, run->plan);
        if (status == STATUS_OK && like != 0) {
            unlink(run->like); /* no verdict is about it */
            status = dry_verify(run, run->plan, SHOWN_ALWAYS, &code);
        }
    }
    return status == STATUS_OK ? dry_status(run, "verify", like == 0 ? 0 : code) : status;
}

/* The step and the memory on a GPU. */
static enum status dry_predict(const struct dry_run *run)
{
    struct app *app = run->app;
    char *hardware = arena_printf(&app->arena, "--hardware=%s", run->hardware),
         *most = arena_printf(&app->arena, "--max-step=%s", run->max_step ? run->max_step : "");
    char *arguments[] = {"swsim",
                         "predict",
                         "-q",
                         hardware,
                         (char *)(uintptr_t)run->plan,
                         run->max_step ? most : run->ranks,
                         run->max_step ? run->ranks : NULL,
                         NULL};
    int code;
    if (!hardware || !most)
        return diag_no_memory(&app->diag);
    const enum status status = dry_call(run, arguments, NULL, &code, NULL);
    return status == STATUS_OK ? dry_status(run, "predict", code) : status;
}

/* A recording that is there may be of days of work. */
static enum status dry_place(struct dry_run *run, const char *folder)
{
    struct app *app = run->app;
    run->recording = arena_printf(&app->arena, "%s.swr", folder);
    run->plan = arena_printf(&app->arena, "%s.yaml", folder);
    run->like = arena_printf(&app->arena, "%s.like.yaml", folder);
    if (!run->recording || !run->plan || !run->like)
        return diag_no_memory(&app->diag);
    if (access(run->recording, F_OK) == 0)
        return diag_error(&app->diag, STATUS_SYSTEM,
                          "%s exists already: remove it, or name another place with -o",
                          run->recording);
    return STATUS_OK;
}

enum status cmd_dry(struct app *app, int argc, char **argv)
{
    const char *name = "dry", *device = "none", *hardware = NULL, *max_step = NULL;
    bool values = false, host_accesses = false;
    int64_t ranks = 0;
    const struct option_spec options[] = {
        {"output", 'o', "NAME",
         "leaves the recording in NAME.swr, the plan in NAME.yaml (default dry)", OPTION_TEXT,
         .value = &name},
        {"device", 0, "none[=MODEL[:DEVICES]]", "the same as for swsim record (default none)",
         OPTION_TEXT, .value = &device},
        {"hardware", 0, "NAME|FILE",
         "the same as for swsim predict: how long a step takes on this GPU, and whether the memory "
         "fits",
         OPTION_TEXT, .value = &hardware},
        {"max-step", 0, "TIME", "with --hardware: exit with 1 where a step takes longer",
         OPTION_TEXT, .value = &max_step},
        {"ranks", 0, "N",
         "the same as for swsim verify and predict: the recorded ranks stand for N", OPTION_INTEGER,
         .value = &ranks, .min = 1, .max = PLAN_MAX_RANKS},
        {"values", 0, NULL,
         "the same as for swsim record: PyTorch's operators are computed, on the CPU", OPTION_FLAG,
         .value = &values},
        {"host-accesses", 0, NULL,
         "the same as for swsim record: also what the host does to pinned memory", OPTION_FLAG,
         .value = &host_accesses},
    };
    const struct command command = {
        .unlimited = true,
        .name = "swsim dry",
        .arguments = "-- PROGRAM [ARGUMENT]...",
        .about =
            "Run an unchanged program that uses CUDA, NCCL or PyTorch on this machine, without a "
            "GPU, all\n"
            "its ranks, and say whether its work is ordered in every interleaving: 'swsim record\n"
            "--device=none', 'swsim import' and 'swsim verify' in one. The exit status\n"
            "is that of verify, or 1 where --hardware says no.",
        .examples = "  swsim dry -- torchrun --nproc-per-node=2 train.py\n"
                    "  swsim dry --values -o job -- python train.py --steps 3",
        COMMAND_OPTIONS(options),
        .more_arguments = INT_MAX,
    };
    struct arguments program;
    enum status status = STATUS_OK;
    if (!options_parse(app, &command, argc, argv, &program, &status))
        return status;
    if (max_step && !hardware)
        return diag_error(&app->diag, STATUS_USAGE, "found --max-step without --hardware");
    struct dry_run run = {.app = app,
                          .device = device,
                          .hardware = hardware,
                          .max_step = max_step,
                          .values = values,
                          .host_accesses = host_accesses,
                          .program = program.items,
                          .program_count = (size_t)program.count};
    run.ranks = ranks ? arena_printf(&app->arena, "--ranks=%d", (int)ranks) : NULL;
    if (ranks && !run.ranks)
        return diag_no_memory(&app->diag);
    status = dry_place(&run, name);
    if (status == STATUS_OK)
        status = dry_record(&run);
    if (status == STATUS_OK)
        status = dry_prove(&run);
    if (hardware && (status == STATUS_OK || status == STATUS_VIOLATED || status == STATUS_LIMIT))
        status = app_worse(status, dry_predict(&run));
    return status;
}
