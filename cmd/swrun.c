/* SPDX-License-Identifier: Apache-2.0 */
/*
 * swrun.c - run a plan, on threads or on a GPU; or replay a counterexample of one.
 *
 * The first SIGINT or SIGTERM lets the iterations in flight finish, the second stops at once.
 */
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "app.h"
#include "launch.h"
#include "library_runs.h"
#include "measured.h"
#include "options.h"
#include "replayed.h"
#include "starter.h"

#include "improve/found.h"
#include "machine/memory.h"
#include "base/nearest.h"
#include "plan/text/parse.h"
#include "plan/text/print.h"

#define REPLAY_TIMEOUT_NS INT64_C(2000000000)

static atomic_int stop_wish = RUNTIME_GO;

static void on_signal(int signal)
{
    (void)signal;
    int wish = atomic_load(&stop_wish);
    atomic_store(&stop_wish, wish == RUNTIME_GO ? RUNTIME_DRAIN : RUNTIME_ABORT);
}

static void catch_signals(void)
{
    interrupts_handle(on_signal, SA_RESTART);
}

struct run_request {
    struct runtime_options runtime;
    struct launch launch;
    bool processes; /* one a rank */
    bool stats, progress;
    struct warnings warnings; /* about the plan */
    bool werror;              /* they are violations */
    struct text_list shortcuts;
    int driver;          /* enum driver_choice */
    const char *witness; /* a store; NULL: a plan is run */
    int64_t run;         /* in it */
    const struct arguments *arguments;
};

/* ---- the plan -------------------------------------------------------------------------------- */

static enum status unknown_task(struct app *app, const struct plan *plan, const char *name)
{
    struct nearest nearest = {.found = name};
    for (size_t i = 0; i < plan->pipeline.task_count; i++)
        nearest_try(&nearest, plan->pipeline.tasks[i].name);
    return diag_error(&app->diag, STATUS_USAGE, "--shortcut: %s has no task '%s'%s", plan->name,
                      name, nearest_hint(&nearest, '\'', &app->arena));
}

static enum status check_shortcuts(struct app *app, const struct run_request *request,
                                   const struct plan *plan)
{
    if (request->shortcuts.count > 0 && plan->form != FORM_PIPELINE)
        return diag_error(&app->diag, STATUS_USAGE,
                          "--shortcut: only plans of the pipeline form have tasks");
    if (request->shortcuts.count > 0 && request->processes)
        return diag_error(&app->diag, STATUS_USAGE,
                          "--shortcut: the results are kept in one process, but every rank is to "
                          "have its own");
    for (size_t i = 0; i < request->shortcuts.count; i++)
        if (plan_find_task(plan, request->shortcuts.items[i]) < 0)
            return unknown_task(app, plan, request->shortcuts.items[i]);
    return STATUS_OK;
}

/* ---- the run --------------------------------------------------------------------------------- */

static enum status swrun_show(struct app *app, const struct measured *measured)
{
    if (!app->json) {
        measured_print(measured, app->quiet, app_color(app, stdout), stdout);
        return STATUS_OK;
    }
    struct json json;
    json_open(&json, stdout);
    measured_write(measured, &json);
    return json_close(&json, &app->diag);
}

/* A run that broke a property has failed, even if it came to its end. */
static enum status swrun_judge(const struct runtime_result *result)
{
    for (int p = 0; p < PROPERTY_COUNT; p++)
        if (result->violations[p])
            return STATUS_VIOLATED;
    return STATUS_OK;
}

static enum status run_shortcut(struct app *app, struct run_request *request,
                                const struct plan *plan, const struct runtime_options *options)
{
    const struct shortcut_run how = {request->shortcuts.items, request->shortcuts.count,
                                     options->stop};
    const struct runtime_result *result;
    struct swpipe *pipe;
    enum status status = shortcut_run(app, plan, options, &how, &pipe, &result);
    if (result && (status == STATUS_OK || status == STATUS_VIOLATED))
        status = app_worse(status, swrun_judge(result));
    if (result && (status == STATUS_OK || status == STATUS_VIOLATED))
        status = app_worse(status,
                           swrun_show(app, &(struct measured){plan, options, result, request->stats,
                                                              &request->warnings}));
    shortcut_close(pipe);
    return status;
}

/* A run that computed something else than a serial one is a failure, unless the plan means it: the replay saw stale reads,
   and none staler than `staleness` allows. */
static enum status judge_values(struct app *app, const struct plan *plan,
                                const struct runtime_result *result)
{
    if (result->matches_serial != ANSWER_NO ||
        (result->stale && result->legal == ANSWER_YES && !result->violations[PROPERTY_SERIAL]))
        return STATUS_OK;
    return diag_error(
        &app->diag, STATUS_VIOLATED, "%s: the results differ from those of a serial run%s",
        plan->name, runtime_may_be_stale(plan) && !result->stale ? ", and no read was stale" : "");
}

/* Memory over its bound in every run, which no step of the replay shows. */
static enum status swrun_judge_memory(struct app *app, const struct plan *plan,
                                      const struct runtime_options *options,
                                      struct runtime_result *result)
{
    struct variant variant;
    struct program *program = NULL;
    struct diag unheard; /* the run has noted what there is to note */
    const char *sentence = NULL;
    if (plan->form == FORM_PIPELINE || !machine_has_memory(&plan->machine) || !options->replay)
        return STATUS_OK;
    diag_init(&unheard);
    enum status status = runtime_build(plan, options, &variant, &program, &unheard);
    if (status == STATUS_OK)
        status = memory_tell(plan, program, &result->arena, &sentence, &app->diag);
    else
        status = diag_no_memory(&app->diag); /* it was built for the run */
    if (sentence)
        result->violations[PROPERTY_BOUND] = sentence;
    program_close(program);
    variant_fini(&variant);
    diag_fini(&unheard);
    return status;
}

static enum status run_driver(struct app *app, struct run_request *request, const struct plan *plan,
                              enum driver driver)
{
    struct runtime_options options = request->runtime;
    struct runtime_result result;
    options.driver = driver;
    if (request->shortcuts.count > 0)
        return run_shortcut(app, request, plan, &options);
    enum status status = request->processes
                             ? launch_run(&request->launch, plan, &options, &result, &app->diag)
                             : runtime_run(plan, &options, &result, &app->diag);
    if (request->processes && !launch_is_spokesman(&request->launch)) {
        app->silent = request->launch.told;
        return status;
    }
    if (status != STATUS_OK && status != STATUS_VIOLATED)
        return status;
    status = app_worse(status, swrun_judge_memory(app, plan, &options, &result));
    status = app_worse(status, swrun_judge(&result));
    enum status shown = swrun_show(
        app, &(struct measured){plan, &options, &result, request->stats, &request->warnings});
    shown = app_worse(shown, judge_values(app, plan, &result));
    runtime_result_fini(&result);
    return app_worse(status, shown);
}

static enum status run_drivers(struct app *app, struct run_request *request,
                               const struct plan *plan)
{
    enum status status =
        options_check_plan(app, request->arguments, plan, request->driver, CLOCK_ONLY);
    if (status != STATUS_OK)
        return status;
    if (plan->form != FORM_PIPELINE)
        return run_driver(app, request, plan, DRIVER_NONE);
    int driver = app_driver(app, plan, request->driver, CLOCK_ONLY);
    if (driver != DATAFLOW_ONLY)
        status = run_driver(app, request, plan, DRIVER_CLOCK);
    if (driver == DATAFLOW_ONLY)
        return run_driver(app, request, plan, DRIVER_DATAFLOW);
    if (driver != BOTH_DRIVERS || (status != STATUS_OK && status != STATUS_VIOLATED))
        return status;
    if (!app->json)
        putchar('\n');
    app_report(app);
    return app_worse(status, run_driver(app, request, plan, DRIVER_DATAFLOW));
}

/* ---- a counterexample ------------------------------------------------------------------------ */

struct loaded_witness {
    int64_t wanted, run;
    struct trace_witness witness;
    struct run_info info;
};

static enum status load_witness(struct app *app, struct store *store, void *context)
{
    struct loaded_witness *out = context;
    return store_load_witness(store, out->wanted, &app->arena, &out->witness, &out->run, &out->info,
                              &app->diag);
}

/* The options under which the witness was found, and its steps. */
static enum status replay_options(struct app *app, const struct run_request *request,
                                  const struct trace_witness *witness, const struct run_info *info,
                                  struct runtime_options *out)
{
    static const enum driver drivers[] = {[RUN_DRIVER_NONE] = DRIVER_NONE,
                                          [RUN_DRIVER_CLOCK] = DRIVER_CLOCK,
                                          [RUN_DRIVER_DATAFLOW] = DRIVER_DATAFLOW};
    if (strcmp(witness->property, property_key(PROPERTY_FAULTS)) == 0)
        return diag_error(
            &app->diag, STATUS_USAGE,
            "%s: a witness of '%s' cannot be replayed: swrun stops all ranks after a failure",
            info->plan_name, witness->property);
    struct transition *steps = ARENA_ARRAY(&app->arena, witness->move_count + 1, struct transition);
    struct runtime_witness *forced = ARENA_ARRAY(&app->arena, 1, struct runtime_witness);
    if (!steps || !forced)
        return diag_no_memory(&app->diag);
    for (size_t i = 0; i < witness->move_count; i++)
        steps[i] = (struct transition){witness->moves[i].agent, witness->moves[i].choice};
    *forced = (struct runtime_witness){steps, witness->move_count};
    *out = request->runtime;
    out->driver = drivers[info->driver];
    out->iterations = witness->iterations;
    out->ranks = witness->ranks;
    out->max_depth = witness->max_depth;
    out->witness = forced;
    out->replay = true;
    out->compare = strcmp(witness->property, property_key(PROPERTY_RACE)) == 0;
    out->plan_text = info->plan_text;
    if (out->timeout_ns == 0)
        out->timeout_ns = REPLAY_TIMEOUT_NS;
    return STATUS_OK;
}

static enum status show_replayed(struct app *app, const struct replayed *replayed)
{
    struct json json;
    if (!app->json) {
        replayed_print(replayed, stdout);
        return STATUS_OK;
    }
    json_open(&json, stdout);
    replayed_write(replayed, &json);
    return json_close(&json, &app->diag);
}

/* A violation that the run shows is what was asked for. */
static enum status replay_plan(struct app *app, const struct run_request *request,
                               const struct plan *plan, struct replayed *replayed)
{
    struct runtime_options options;
    struct runtime_result result;
    struct diag heard; /* what the run reports is no error where it was to happen */
    diag_init(&heard);
    enum status status = replay_options(app, request, replayed->witness, replayed->info, &options);
    if (status == STATUS_OK)
        status = runtime_run(plan, &options, &result, &heard);
    if (status != STATUS_OK && status != STATUS_VIOLATED) {
        diag_take(&app->diag, &heard);
        return status;
    }
    replayed->result = &result;
    enum replayed_outcome outcome = replayed_outcome(replayed);
    if (replayed_confirms(outcome))
        diag_soften(&heard);
    diag_take(&app->diag, &heard);
    status = show_replayed(app, replayed);
    if (!replayed_confirms(outcome))
        status = app_worse(status, STATUS_VIOLATED);
    if (!replayed_confirms(outcome) && !result.interrupted)
        diag_error(&app->diag, STATUS_VIOLATED,
                   "%s: the device did not do what witness %" PRId64 " says", plan->name,
                   replayed->run);
    runtime_result_fini(&result);
    return status;
}

static enum status replay_witness(struct app *app, const struct run_request *request)
{
    struct loaded_witness loaded = {.wanted = request->run};
    struct plan plan;
    enum status status = app_with_store(app, request->witness, load_witness, &loaded);
    if (status != STATUS_OK)
        return status;
    struct replayed replayed = {.path = request->witness,
                                .run = loaded.run,
                                .info = &loaded.info,
                                .witness = &loaded.witness};
    const char *name =
        arena_printf(&app->arena, "%s, run %" PRId64, request->witness, replayed.run);
    if (!name)
        return diag_no_memory(&app->diag);
    status =
        plan_parse(name, loaded.info.plan_text, strlen(loaded.info.plan_text), &plan, &app->diag);
    if (status != STATUS_OK)
        return status;
    catch_signals();
    status = found_resolve(&plan, &plan.arena, &app->diag);
    if (status == STATUS_OK)
        status = replay_plan(app, request, &plan, &replayed);
    plan_fini(&plan);
    return status;
}

/* A run is of one plan: the argument's or a witness's. */
static enum status check_plan(struct app *app, const struct run_request *request, const char *path)
{
    if (!request->witness && request->run != STORE_LATEST)
        return diag_error(&app->diag, STATUS_USAGE, "--run needs a store: --replay=FILE");
    if (request->runtime.durable && !request->runtime.db)
        return diag_error(&app->diag, STATUS_USAGE, "--durable needs a store: --db=FILE");
    if (!request->witness && !path)
        return diag_error(&app->diag, STATUS_USAGE,
                          "missing argument: swrun [OPTION]... PLAN|--replay=FILE");
    if (request->witness && path)
        return diag_error(&app->diag, STATUS_USAGE,
                          "--replay: found plan '%s', but a witness contains its plan", path);
    return STATUS_OK;
}

/* ---- where the ranks are ---------------------------------------------------------------------- */

/* Threads of this process, or processes; under mpirun and srun the latter, and rank 0 prints. */
static enum status choose_launch(struct app *app, struct run_request *request, bool one_process)
{
    struct runtime_options *runtime = &request->runtime;
    struct launch *launch = &request->launch;
    bool named = launch->name;
    enum status status = one_process ? STATUS_OK : launch_find(launch, &app->diag);
    if (status != STATUS_OK)
        return status;
    launch->wish = &stop_wish;
    if (named && (launch->size < 1 || one_process))
        return diag_error(
            &app->diag, STATUS_USAGE,
            "--rendezvous is for ranks that mpirun or srun has started, and there are none%s",
            one_process ? ", without --one-process" : "");
    if (launch->size < 2 || one_process) {
        launch->size = 0;
        app->silent = false;
        return STATUS_OK;
    }
    if (launch->size > PLAN_MAX_RANKS)
        return diag_error(&app->diag, STATUS_USAGE,
                          "found %d processes started together, expected at most %d ranks",
                          launch->size, PLAN_MAX_RANKS);
    request->processes = true;
    if (runtime->ranks == 0)
        runtime->ranks = launch->size;
    return STATUS_OK;
}

/* A GPU has one rank a process. */
static enum status choose_processes(struct app *app, struct run_request *request,
                                    const struct plan *plan, bool one_process)
{
    const struct runtime_options *runtime = &request->runtime;
    int ranks = runtime->ranks ? runtime->ranks : plan_rank_count(plan);
    if (runtime->device != DEVICE_KIND_CUDA || ranks < 2)
        return STATUS_OK;
    if (one_process)
        return diag_error(&app->diag, STATUS_USAGE,
                          "--one-process: the cuda device needs a process for each of %d ranks",
                          ranks);
    request->processes = true;
    return STATUS_OK;
}

static enum status swrun_read_plan(struct app *app, const struct run_request *request,
                                   const char *path, struct plan *plan)
{
    if (request->launch.size && strcmp(path, "-") == 0)
        return diag_error(&app->diag, STATUS_USAGE,
                          "found '-', but standard input is that of rank 0 alone: expected a file "
                          "that all ranks can read");
    return plan_read(path, plan, &app->diag);
}

/* A failure of this rank alone is reported to rank 0, which prints it. */
static enum status run_file(struct app *app, struct run_request *request, const char *path,
                            bool one_process)
{
    struct plan plan;
    enum status status = swrun_read_plan(app, request, path, &plan);
    if (status != STATUS_OK) {
        launch_report_failure(&request->launch, status, &app->diag);
        return status;
    }
    status = choose_processes(app, request, &plan, one_process);
    if (status == STATUS_OK) {
        catch_signals();
        status = warned_find(app, &plan, &request->warnings);
    }
    if (status == STATUS_OK)
        status = found_resolve(&plan, &plan.arena, &app->diag);
    if (status == STATUS_OK)
        status = check_shortcuts(app, request, &plan);
    if (status == STATUS_OK && request->runtime.db)
        status = plan_kept_text_in(&plan, &app->arena, &request->runtime.plan_text, &app->diag);
    if (status == STATUS_OK)
        status = run_drivers(app, request, &plan);
    if (request->werror && request->warnings.count)
        status = app_worse(status, STATUS_VIOLATED);
    plan_fini(&plan);
    return status;
}

/* ---- progress -------------------------------------------------------------------------------- */

/* At once, so that a reader knows what a crash cannot take back. */
static void tell_iteration(void *arg, int64_t iteration)
{
    const struct app *app = arg;
    struct json json;
    if (app->json) {
        json_open(&json, stdout);
        json_begin_document(&json, DOCUMENT_PROGRESS);
        json_put_int(&json, "iteration", iteration);
        json_end_object(&json);
    } else {
        printf("iteration %" PRId64 "\n", iteration);
    }
    fflush(stdout);
}

/* ---- exposed times --------------------------------------------------------------------------- */

static enum status profile_plan(struct app *app, struct plan *plan, void *options)
{
    return exposure_show(app, plan, options);
}

static enum status profile_file(struct app *app, const struct run_request *request,
                                const char *path, int64_t iterations)
{
    struct exposure_options options = {.device = request->runtime.device,
                                       .ranks = request->runtime.ranks,
                                       .iterations = iterations > 0 ? (int)iterations : 0,
                                       .timeout_ns = request->runtime.timeout_ns};
    return app_with_plan(app, path, profile_plan, &options);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static enum status read_graph(struct app *app, const char *text, enum runtime_graph *out)
{
    if (!text)
        return STATUS_OK;
    *out = strcmp(text, "require") == 0 ? RUNTIME_GRAPH_REQUIRE : RUNTIME_GRAPH_AUTO;
    if (*text == '\0' || strcmp(text, "auto") == 0 || *out == RUNTIME_GRAPH_REQUIRE)
        return STATUS_OK;
    return diag_error(&app->diag, STATUS_USAGE, "--graph: found '%s', expected auto or require",
                      text);
}

/* ---- the command line ------------------------------------------------------------------------ */

/* The command line, where the request has it in another form. */
struct run_line {
    int device;
    int64_t iterations, ranks, max_depth; /* iterations -1: not given */
    bool no_check, profile, one_process;
    const char *graph, *path; /* path NULL: --replay */
    struct arguments arguments;
};

static const char about[] =
    "Run PLAN with real threads, streams, events and communicators, and measure it.\n"
    "Afterwards the run is replayed through the machine that 'swsim verify' explores, and\n"
    "its results are compared with those of a serial run. Interrupt once to let the iterations\n"
    "in flight finish, twice to stop at once.\n"
    "With --replay a counterexample is run instead: real threads are forced through the steps\n"
    "that 'swsim verify --witness=FILE.db' stored, and then run freely.";

static const char examples[] =
    "  swrun plans/torchrec/sparse_dist.yaml\n"
    "  swrun --device=cuda --driver=dataflow -n 1000 --db=runs.db plans/reference/base.yaml\n"
    "  swrun --replay=hang.db   # after: swsim verify --witness=hang.db PLAN";

static bool swrun_parse_line(struct app *app, int argc, char **argv, struct run_request *request,
                             struct run_line *line, enum status *status)
{
    const struct option_spec options[] = {
        {"device", 0, "host|cuda", "threads (the default) or GPUs", OPTION_CHOICE,
         .value = &line->device},
        {"driver", 0, "clock|dataflow|both",
         "pipeline form: which driver (default: the plan's, else clock)", OPTION_CHOICE,
         .value = &request->driver},
        {"iterations", 'n', "N", "pipeline form: iterations (default 100)", OPTION_INTEGER,
         .value = &line->iterations, .max = PLAN_MAX_ITERATIONS},
        {"ranks", 0, "N", "ranks (default: the plan's)", OPTION_INTEGER, .value = &line->ranks,
         .min = 1, .max = PLAN_MAX_RANKS},
        {"processes", 0, NULL, "a process for each rank (cuda with several ranks: always)",
         OPTION_FLAG, .value = &request->processes, .excludes = "one-process"},
        {"one-process", 0, NULL, "all ranks as threads of one process (host: the default)",
         OPTION_FLAG, .value = &line->one_process},
        {"rendezvous", 0, "NAME",
         "under mpirun or srun: name of the ranks' rendezvous (default: the job's name)",
         OPTION_TEXT, .value = &request->launch.name},
        {"max-depth", 0, "N", "most iterations in flight, data-flow (default: the plan's)",
         OPTION_INTEGER, .value = &line->max_depth, .min = 1, .max = PLAN_MAX_DEPTH},
        {"serial", 0, NULL, "one task after another, as a baseline", OPTION_FLAG,
         .value = &request->runtime.serial},
        {"graph", 0, "[auto|require]",
         "launch each steady period as one graph: if the plan allows it (auto), or fail (require)",
         OPTION_TEXT, .value = &line->graph},
        {"shortcut", 0, "TASK",
         "restore TASK's first results instead of running it; may be repeated", OPTION_LIST,
         .value = &request->shortcuts, .excludes = "graph",
         .because = "the host restores the results, a graph cannot"},
        {"profile", 0, NULL, "exposed time of each task: serial runs, each left out in turn",
         OPTION_FLAG, .value = &line->profile,
         .excludes = "driver serial db max-depth graph processes shortcut stats replay",
         .because = "it runs one task after another and stores nothing"},
        {"stats", 0, NULL, "calls and times of each task, or kind of operation", OPTION_FLAG,
         .value = &request->stats},
        {"db", 0, "FILE", "store the trace", OPTION_TEXT, .value = &request->runtime.db},
        {"durable", 0, NULL, "with --db: what is stored survives a crash of the system, too",
         OPTION_FLAG, .value = &request->runtime.durable},
        {"progress", 0, NULL, "name each iteration once it is retired and, with --db, stored",
         OPTION_FLAG, .value = &request->progress, .excludes = "profile shortcut",
         .because = "they repeat iterations"},
        {"replay", 0, "FILE", "force a witness of a store step by step, instead of PLAN",
         OPTION_TEXT, .value = &request->witness,
         .excludes = "driver iterations ranks max-depth processes one-process rendezvous serial "
                     "graph shortcut stats no-check",
         .because = "these are the witness's own; --run, --timeout and --db may be given"},
        {"run", 0, "N", "which run of the store (default: its latest witness)", OPTION_INTEGER,
         .value = &request->run, .max = INT64_MAX},
        {"seed", 0, "S", "seed of the branches that `choose` takes (default 1)", OPTION_INTEGER,
         .value = &request->runtime.seed, .max = INT64_MAX},
        {"timeout", 0, "DURATION",
         "give up after DURATION without progress (default 30s; with --replay 2s)", OPTION_TIME,
         .value = &request->runtime.timeout_ns},
        {"werror", 0, NULL, "exit with 1 where there are warnings about the plan", OPTION_FLAG,
         .value = &request->werror},
        {"no-check", 0, NULL, "no replay through the machine, no comparison of results",
         OPTION_FLAG, .value = &line->no_check},
    };
    const struct command command = {
        .unlimited = true,
        .name = "swrun",
        .arguments = "PLAN|--replay=FILE",
        .about = about,
        .examples = examples,
        COMMAND_OPTIONS(options),
        .argument_optional = true,
    };
    if (!options_parse(app, &command, argc, argv, &line->arguments, status))
        return false;
    app_fit_terminal();
    line->path = line->arguments.count ? line->arguments.items[0] : NULL;
    return true;
}

/* Read the plan or the witness and run it. */
static enum status run_line(struct app *app, struct run_request *request,
                            const struct run_line *line)
{
    if (app->silent && (request->witness || line->profile || line->one_process))
        return STATUS_OK; /* these take one process: that of rank 0 */
    if (request->witness)
        return replay_witness(app, request);
    if (line->profile)
        return profile_file(app, request, line->path, line->iterations);
    enum status status = choose_launch(app, request, line->one_process);
    if (status == STATUS_OK)
        status = run_file(app, request, line->path, line->one_process);
    return status;
}

static enum status swrun_run(struct app *app, int argc, char **argv)
{
    struct run_request request = {.driver = DRIVER_NOT_GIVEN, .run = STORE_LATEST};
    struct run_line line = {.device = DEVICE_KIND_HOST, .iterations = -1};
    struct runtime_options *runtime = &request.runtime;
    runtime->seed = 1;
    struct starter starter;
    enum status status;
    starter_find(&starter);
    app->silent = starter.rank > 0;
    if (!swrun_parse_line(app, argc, argv, &request, &line, &status))
        return status;
    runtime->device = (enum device_kind)line.device;
    request.arguments = &line.arguments;
    runtime->iterations = line.iterations >= 0 ? line.iterations : 100;
    runtime->ranks = (int)line.ranks;
    runtime->max_depth = (int)line.max_depth;
    runtime->replay = runtime->compare = !line.no_check;
    runtime->stop = &stop_wish;
    runtime->retired = request.progress ? tell_iteration : NULL;
    runtime->retired_arg = app;
    status = read_graph(app, line.graph, &runtime->graph);
    if (status == STATUS_OK)
        status = check_plan(app, &request, line.path);
    return status == STATUS_OK ? run_line(app, &request, &line) : status;
}

int main(int argc, char **argv)
{
    struct app app;
    app_init(&app, "swrun");
    return app_close(&app, swrun_run(&app, argc, argv));
}
