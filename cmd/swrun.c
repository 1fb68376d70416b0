/*
 * swrun.c - make a plan happen, on threads or on a GPU.
 *
 * The first SIGINT or SIGTERM lets what is in flight finish, the second stops at once.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "measured.h"
#include "options.h"

#include "core/parse.h"
#include "core/print.h"

enum { CLOCK_ONLY, DATAFLOW_ONLY, BOTH };

static atomic_int stop_wish = RUNTIME_GO;

static void on_signal(int signal)
{
    (void)signal;
    int wish = atomic_load(&stop_wish);
    atomic_store(&stop_wish, wish == RUNTIME_GO ? RUNTIME_DRAIN : RUNTIME_ABORT);
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

struct request {
    struct runtime_options runtime;
    struct text_list shortcuts;
    int driver; /* CLOCK_ONLY, DATAFLOW_ONLY, BOTH or, not said, -1 */
};

/* ---- the plan -------------------------------------------------------------------------------- */

static enum status unknown_task(struct app *app, const struct plan *plan, const char *name)
{
    size_t count = plan->pipeline.task_count;
    const char **names = ARENA_ARRAY(&app->arena, count + 1, const char *);
    if (!names)
        return diag_no_memory(&app->diag);
    for (size_t i = 0; i < count; i++)
        names[i] = plan->pipeline.tasks[i].name;
    const char *nearest = options_nearest(name, names, count);
    return diag_error(&app->diag, STATUS_USAGE, "--shortcut: %s has no task '%s'%s%s%s", plan->name,
                      name, nearest ? "; did you mean '" : "", nearest ? nearest : "",
                      nearest ? "'?" : "");
}

/* The task stays where it is in the order of things, but does nothing. */
static void empty_task(struct task *task)
{
    task->time_ns = task->host_time_ns = 0;
    task->sm = 0;
    task->host_sync = HOST_SYNC_NONE;
    if (task->work.kind != WORK_HOST)
        task->work = (struct work){.kind = WORK_SPIN, .comm = -1};
    else
        task->work.time_ns = 0;
}

static enum status shortcut(struct app *app, struct plan *plan, const char *name)
{
    int task = plan_find_task(plan, name);
    if (plan->form != FORM_PIPELINE)
        return diag_error(&app->diag, STATUS_USAGE,
                          "--shortcut: only plans of the pipeline form have tasks");
    if (task < 0)
        return unknown_task(app, plan, name);
    empty_task(&plan->pipeline.tasks[task]);
    for (size_t i = 0; i < plan->pipeline.override_count; i++)
        if (plan->pipeline.overrides[i].tasks)
            empty_task(&plan->pipeline.overrides[i].tasks[task]);
    return STATUS_OK;
}

/* The canonical text, from malloc, for the store. */
static enum status print_plan(struct app *app, const struct plan *plan, char **out)
{
    char *text = NULL;
    size_t length;
    FILE *memory = open_memstream(&text, &length);
    if (!memory)
        return diag_no_memory(&app->diag);
    enum status status = plan_print(plan, memory, &app->diag);
    if (fclose(memory) != 0 && status == STATUS_OK)
        status = diag_no_memory(&app->diag);
    if (status == STATUS_OK)
        *out = text;
    else
        free(text);
    return status;
}

/* ---- the run --------------------------------------------------------------------------------- */

static enum status show(struct app *app, const struct measured *measured)
{
    if (!app->json) {
        measured_print(measured, app->quiet, stdout);
        return STATUS_OK;
    }
    struct json json;
    json_open(&json, stdout);
    measured_write(measured, &json);
    return json_close(&json, &app->diag);
}

static enum status run_driver(struct app *app, const struct request *request,
                              const struct plan *plan, enum driver driver)
{
    struct runtime_options options = request->runtime;
    struct runtime_result result;
    options.driver = driver;
    enum status status = runtime_run(plan, &options, &result, &app->diag);
    if (status != STATUS_OK && status != STATUS_VIOLATED)
        return status;
    enum status shown = show(app, &(struct measured){plan, &options, &result});
    runtime_result_fini(&result);
    return app_worse(status, shown);
}

static enum status run_drivers(struct app *app, const struct request *request,
                               const struct plan *plan)
{
    if (plan->form != FORM_PIPELINE) {
        if (request->driver >= 0 || request->runtime.serial)
            return diag_error(&app->diag, STATUS_USAGE,
                              "%s: found --%s, but only plans of the pipeline form have that",
                              plan->file, request->driver >= 0 ? "driver" : "serial");
        return run_driver(app, request, plan, DRIVER_NONE);
    }
    enum status status = STATUS_OK;
    if (request->driver != DATAFLOW_ONLY)
        status = run_driver(app, request, plan, DRIVER_CLOCK);
    if (request->driver == DATAFLOW_ONLY)
        return run_driver(app, request, plan, DRIVER_DATAFLOW);
    if (request->driver != BOTH || (status != STATUS_OK && status != STATUS_VIOLATED))
        return status;
    if (!app->json)
        putchar('\n');
    app_report(app);
    return app_worse(status, run_driver(app, request, plan, DRIVER_DATAFLOW));
}

static enum status run_plan(struct app *app, struct request *request, struct plan *plan)
{
    char *text = NULL;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < request->shortcuts.count && status == STATUS_OK; i++)
        status = shortcut(app, plan, request->shortcuts.items[i]);
    if (status == STATUS_OK && request->runtime.db)
        status = print_plan(app, plan, &text);
    request->runtime.plan_text = text;
    if (status == STATUS_OK)
        status = run_drivers(app, request, plan);
    free(text);
    return status;
}

/* ---- the command line ------------------------------------------------------------------------ */

static enum status run(struct app *app, int argc, char **argv)
{
    struct request request = {.driver = -1};
    int device = DEVICE_KIND_HOST;
    int64_t iterations = 100, ranks = 0, max_depth = 0;
    bool no_check = false, profile = false;
    struct runtime_options *runtime = &request.runtime;
    const struct option_spec options[] = {
        {"device", 0, "host|cuda", "threads (the default) or GPUs", OPTION_CHOICE, &device, 0, 0},
        {"driver", 0, "clock|dataflow|both", "pipeline form: which driver (default clock)",
         OPTION_CHOICE, &request.driver, 0, 0},
        {"iterations", 'n', "N", "pipeline form: iterations (default 100)", OPTION_INTEGER,
         &iterations, 0, INT32_MAX},
        {"ranks", 0, "N", "ranks (default: the plan's)", OPTION_INTEGER, &ranks, 1, PLAN_MAX_RANKS},
        {"max-depth", 0, "N", "most iterations in flight, data-flow (default: the plan's)",
         OPTION_INTEGER, &max_depth, 1, PLAN_MAX_DEPTH},
        {"serial", 0, NULL, "one task after another, as a baseline", OPTION_FLAG, &runtime->serial,
         0, 0},
        {"shortcut", 0, "TASK", "leave out what TASK does; may be repeated", OPTION_LIST,
         &request.shortcuts, 0, 0},
        {"profile", 0, NULL, "exposed time of each task (not in this version)", OPTION_FLAG,
         &profile, 0, 0},
        {"db", 0, "FILE", "store the trace", OPTION_TEXT, &runtime->db, 0, 0},
        {"timeout", 0, "DURATION", "give up after so long without progress (default 30s)",
         OPTION_TIME, &runtime->timeout_ns, 0, 0},
        {"no-check", 0, NULL, "no replay through the machine, no comparison of results",
         OPTION_FLAG, &no_check, 0, 0},
    };
    const struct command command = {
        .name = "swrun",
        .arguments = "PLAN",
        .about =
            "Carry PLAN out with real threads, streams, events and communicators, and measure it.\n"
            "Afterwards the run is replayed through the machine that 'swsim verify' explores, and\n"
            "its results are compared with those of a serial run. Interrupt once to let what is "
            "in\n"
            "flight finish, twice to stop at once.",
        .examples = "  swrun plans/torchrec/sparse_dist.yaml\n"
                    "  swrun --device=cuda --driver=dataflow -n 1000 --db=runs.db "
                    "plans/torchrec/base.yaml",
        .options = options,
        .option_count = OPTION_COUNT(options),
        .arguments_min = 1,
        .arguments_max = 1,
    };
    struct arguments arguments;
    struct plan plan;
    enum status status;
    if (!options_parse(app, &command, argc, argv, &arguments, &status))
        return status;
    if (profile)
        return diag_error(&app->diag, STATUS_USAGE, "--profile: not in this version");
    runtime->device = (enum device_kind)device;
    runtime->iterations = iterations;
    runtime->ranks = (int)ranks;
    runtime->max_depth = (int)max_depth;
    runtime->replay = runtime->compare = !no_check;
    runtime->stop = &stop_wish;
    status = plan_read(arguments.items[0], &plan, &app->diag);
    if (status != STATUS_OK)
        return status;
    catch_signals();
    status = run_plan(app, &request, &plan);
    plan_fini(&plan);
    return status;
}

int main(int argc, char **argv)
{
    struct app app;
    app_init(&app, "swrun");
    return app_close(&app, run(&app, argc, argv));
}
