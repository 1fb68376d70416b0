/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_tune.c - `swsim tune`: find a better plan and show the differences. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "mpi_workers.h"
#include "hardware_choice.h"
#include "options.h"
#include "plan_out.h"
#include "starter.h"

#include "api/frontier_report.h"
#include "api/profiled.h"
#include "api/tuning.h"
#include "api/unexplained.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/sort.h"
#include "base/units.h"
#include "check/verify.h"
#include "improve/frontier.h"
#include "plan/text/parse.h"
#include "plan/text/print.h"
#include "sim/predict/predict.h"
#include "sim/predict/result_wire.h"
#include "trace/draw.h"

enum { CHOICE_STATES = 1000000 };

static void cmd_tune_show_progress(void *arg, const struct tune_progress *now)
{
    char time[UNITS_TEXT] = "unknown";
    if (isfinite(now->period_ns))
        units_show_time(now->period_ns, time);
    progress_show(arg, "%" PRIu64 " candidates, an iteration takes %s", now->candidates, time);
}

/* ---- the work -------------------------------------------------------------------------------- */

static enum status cmd_tune_show(struct app *app, const struct tuning *o)
{
    struct json json;
    if (!app->json) {
        tuning_print(o, app->quiet, stdout);
        return STATUS_OK;
    }
    json_open(&json, stdout);
    tuning_write(o, &json);
    return json_close(&json, &app->diag);
}

/* Print the result. With -o - standard output is the plan itself. */
static enum status cmd_tune_report(struct app *app, const char *path, const struct tuning *o)
{
    enum status status = STATUS_OK;
    if (!path || strcmp(path, "-") != 0)
        status = cmd_tune_show(app, o);
    if (status == STATUS_OK && path)
        status = app_write_file(app, path, o->after.text);
    return status == STATUS_OK && o->unfit ? STATUS_VIOLATED : status;
}

static enum status cmd_tune_search(struct app *app, struct tune *tune, const char *path)
{
    struct tuning found;
    enum status status = tuning_make(tune, &app->arena, &found, &app->diag);
    if (status != STATUS_OK)
        return status;
    status = cmd_tune_report(app, path, &found);
    tuning_fini(&found);
    return status;
}

static enum status cmd_tune_host(struct app *app, struct tune_options *options,
                                 const struct plan *plan, const char *path)
{
    struct tuning found;
    struct progress progress;
    options->progress = cmd_tune_show_progress;
    options->progress_arg = &progress;
    progress_init(&progress, app);
    enum status status = tuning_make_host(plan, options, &app->arena, &found, &app->diag);
    progress_clear(&progress);
    if (status != STATUS_OK)
        return status;
    status = cmd_tune_report(app, path, &found);
    tuning_fini(&found);
    return status;
}

static enum status cmd_tune_plan(struct app *app, struct tune_options *options,
                                 const struct plan *plan, const char *path)
{
    struct tune tune;
    struct progress progress;
    options->progress = cmd_tune_show_progress;
    options->progress_arg = &progress;
    progress_init(&progress, app);
    enum status status = tune_open(plan, options, &tune, &app->diag);
    if (status != STATUS_OK)
        return status;
    status = tuning_check(&tune, &app->diag);
    if (status == STATUS_OK)
        status = cmd_tune_search(app, &tune, path);
    progress_clear(&progress);
    tune_close(&tune);
    return status;
}

/* ---- rank programs: the frontier of time against memory, divided among processes --------------- */

struct frontier_request {
    struct frontier_options options;
    const char *plan_path, *picture_path; /* files to write; NULL: none */
};

/*
 * The candidates of a frontier, divided among the processes of mpirun or srun.
 *
 * Candidate n is tried by rank n mod size, and goes to rank 0 as it is in memory.
 */

/* Candidates of a rank. */
static size_t frontier_part_of(const struct frontier *f, const struct result_wire *wire, int rank)
{
    size_t size = (size_t)wire->size, first = (size_t)rank;
    return f->count > first ? (f->count - first + size - 1) / size : 0;
}

/* A byte says that the rank has failed. */
static enum status send_part(const struct frontier *f, const struct result_wire *wire, bool failed,
                             struct diag *diag)
{
    size_t count = frontier_part_of(f, wire, wire->rank);
    struct candidate *part = ARENA_ARRAY(f->arena, count + 1, struct candidate);
    if (!part || failed) {
        enum status status = wire->send(wire->context, "", 1, diag);
        return part ? status : diag_no_memory(diag);
    }
    for (size_t i = 0; i < count; i++)
        part[i] = f->candidates[(size_t)wire->rank + i * (size_t)wire->size];
    return wire->send(wire->context, part, count * sizeof *part, diag);
}

static enum status frontier_take_part(struct frontier *f, const struct result_wire *wire, int from,
                                      struct diag *diag)
{
    size_t count = frontier_part_of(f, wire, from), bytes;
    void *data;
    enum status status = wire->receive(wire->context, from, &data, &bytes, diag);
    if (status != STATUS_OK)
        return status;
    const struct candidate *part = data;
    if (bytes != count * sizeof *part)
        status = diag_error(diag, STATUS_SYSTEM, "rank %d could not try its candidates", from);
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        f->candidates[(size_t)from + i * (size_t)wire->size] = part[i];
    free(data);
    return status;
}

/* Try all; NULL: this process does it alone. On rank 0 all candidates have been tried then, on the others those of
   the rank. */
static enum status frontier_try_all(struct frontier *f, const struct result_wire *wire,
                                    struct diag *diag)
{
    if (!wire)
        return frontier_try(f, 0, 1, diag);
    enum status status = wire->begin(wire->context, diag);
    if (status != STATUS_OK)
        return status;
    status = frontier_try(f, (size_t)wire->rank, (size_t)wire->size, diag);
    if (wire->rank > 0) {
        enum status sent = send_part(f, wire, status != STATUS_OK, diag);
        return status == STATUS_OK ? sent : status;
    }
    for (int from = 1; from < wire->size; from++) { /* all are heard */
        enum status taken = frontier_take_part(f, wire, from, diag);
        status = status == STATUS_OK ? taken : status;
    }
    return status;
}

/* ---- rank programs: the work ------------------------------------------------------------------ */

static void frontier_show_progress(void *arg, size_t done, size_t count)
{
    progress_show(arg, "%zu of %zu candidates", done, count);
}

static enum status frontier_write_plan(struct app *app, const struct frontier *f, const char *path)
{
    struct plan plan;
    bool found;
    if (!path)
        return STATUS_OK;
    enum status status = frontier_best(f, &plan, &found, &app->diag);
    return status == STATUS_OK && found ? plan_write_file(app, &plan, PLAN_YAML, path) : status;
}

static enum status frontier_show(struct app *app, const struct frontier *f)
{
    struct json json;
    if (!app->json) {
        frontier_print(f, app->quiet, stdout);
        return STATUS_OK;
    }
    json_open(&json, stdout);
    frontier_write(f, &json);
    return json_close(&json, &app->diag);
}

static enum status frontier_report(struct app *app, const struct frontier_request *request,
                                   const struct frontier *f)
{
    enum status status = STATUS_OK;
    bool only_plan = request->plan_path && strcmp(request->plan_path, "-") == 0;
    frontier_warn(f, &app->diag);
    if (!only_plan)
        status = frontier_show(app, f);
    if (status == STATUS_OK)
        status = frontier_write_plan(app, f, request->plan_path);
    if (status == STATUS_OK && request->picture_path)
        status = frontier_draw(f, request->picture_path, &app->diag);
    return status == STATUS_OK && !f->fates[FATE_PROVED] ? STATUS_VIOLATED : status;
}

static enum status frontier_search(struct app *app, struct frontier_request *request,
                                   const struct plan *plan, const struct result_wire *wire)
{
    struct frontier frontier;
    struct progress progress;
    request->options.progress = frontier_show_progress;
    request->options.progress_arg = &progress;
    progress_init(&progress, app);
    enum status status = frontier_open(plan, &request->options, &app->arena, &frontier, &app->diag);
    if (status == STATUS_OK)
        status = frontier_try_all(&frontier, wire, &app->diag);
    progress_clear(&progress);
    if (status != STATUS_OK || app->silent)
        return status;
    frontier_sort(&frontier);
    return frontier_report(app, request, &frontier);
}

/* Plan and choices are the same on all processes. */
static enum status frontier_agree(struct app *app, const struct frontier_options *options,
                                  const struct plan *plan, struct mpi_workers *workers)
{
    const char *text;
    enum status status = plan_text_in(plan, &app->arena, &text, &app->diag);
    if (status != STATUS_OK)
        return status;
    uint64_t digest = hash_bytes(text, strlen(text));
    digest = hash_mix(digest ^ hash_bytes(options->axes, sizeof options->axes));
    digest = hash_mix(digest ^ hash_bytes(&options->samples, sizeof options->samples));
    digest = hash_mix(digest ^ hash_bytes(&options->half_size, sizeof options->half_size));
    mpi_workers_agree(workers, hash_mix(digest ^ (uint64_t)options->memory_bytes));
    return STATUS_OK;
}

/* Search, print, write. STATUS_VIOLATED where no candidate is proved and within the limits. */
static enum status frontier_tune(struct app *app, struct frontier_request *request,
                                 const struct plan *plan)
{
    struct starter starter;
    struct mpi_workers *workers;
    enum draw_format format;
    starter_find(&starter);
    enum status status = starter.rank > 0 ? app_silence(app) : STATUS_OK;
    if (status != STATUS_OK || !mpi_workers_open(app, &starter, &workers))
        return status;
    if (request->picture_path)
        status = draw_format_of(request->picture_path, &format, &app->diag);
    if (status == STATUS_OK)
        status = frontier_check_samples(&request->options, plan, &app->diag);
    if (status == STATUS_OK && workers)
        status = frontier_agree(app, &request->options, plan, workers);
    if (status == STATUS_OK)
        status = frontier_search(app, request, plan, workers ? mpi_workers_wire(workers) : NULL);
    return mpi_workers_close(workers, app, status);
}

/* ---- the command line ------------------------------------------------------------------------ */

static enum status parse_memory(struct app *app, const char *text, int64_t *bytes)
{
    const char *what;
    if (units_parse_bytes(text, bytes, &what))
        return STATUS_OK;
    return diag_error(&app->diag, STATUS_USAGE, "--memory: found '%s', %s", text, what);
}

static const char about[] =
    "Search for a better plan. Only candidates that the checker proves are kept.\n"
    "\n"
    "Pipeline form: stages, streams, thread groups, enqueue order and depth, for a shorter\n"
    "iteration. The period is the exact one where there is one, else that of a short simulation.\n"
    "Among equally fast plans the one with the fewest stages wins, then streams, thread groups\n"
    "and changes count.\n"
    "\n"
    "Dependences, buffers and work stay as they are, and so do the results: every read of a\n"
    "shared buffer sees the same write as before, and writes keep their order. --allow-stale\n"
    "lifts that. A plan that names no shared buffer keeps the order of work on each stream.\n"
    "\n"
    "In the model streams and threads overlap freely unless tasks say `sm:`; use --keep where\n"
    "the machine cannot do that. --memory limits the bytes of a rank: its shared buffers and\n"
    "those of every iteration in flight. With --profile every task takes its mean time of a\n"
    "serial run or of an import with --form=pipeline, on the slowest rank, and the written plan\n"
    "has these times, and its machine's cores where it was computed on the host. SIGINT ends the\n"
    "search early.\n"
    "\n"
    "Recordings: --hardware gives them times. Waits and synchronisations that go, other orders\n"
    "and streams are tried. Of several recordings, of a program with other arguments, each is\n"
    "verified and predicted, and the fastest that is proved stands first.\n"
    "\n"
    "Rank programs: every schedule of 'swsim generate' on the plan's ranks, with the values\n"
    "of the options from --schedule on, each LIST separated by commas ('all': every word).\n"
    "The frontier of time against memory is printed. A microbatch keeps its size, the model its\n"
    "layers: with more chunks a rank, stages are smaller.";

/* ---- which options are for which form -------------------------------------------------------- */

struct tune_line {
    int driver;
    int64_t budget, depth, seed; /* seed -1: not given */
    int64_t samples, half_size, cores;
    bool allow_stale, opaque;
    const char *keep, *memory, *profile, *times, *path, *picture;
    const char *axes[AXES];
    struct hardware_choice hardware;
};

static enum status cmd_tune_refuse(struct app *app, const struct plan *plan, const char *option,
                                   const char *form)
{
    return diag_error(&app->diag, STATUS_USAGE, "%s: found --%s, but it is for %s only", plan->file,
                      option, form);
}

static enum status cmd_tune_threads(struct app *app, const struct tune_line *line,
                                    struct plan *plan, struct tune_options *wanted)
{
    const struct {
        const char *name;
        bool given;
    } others[] = {{"driver", line->driver != DRIVER_NOT_GIVEN},
                  {"memory", line->memory},
                  {"max-depth", line->depth},
                  {"profile", line->profile}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].given)
            return cmd_tune_refuse(app, plan, others[i].name, "the pipeline form");
    return cmd_tune_host(app, wanted, plan, line->path);
}

static enum status cmd_tune_pipeline(struct app *app, const struct tune_line *line,
                                     struct plan *plan, struct tune_options *wanted)
{
    enum status status = STATUS_OK;
    for (int a = 0; a < AXES; a++)
        if (line->axes[a])
            return cmd_tune_refuse(app, plan, axis_key((enum axis)a), "rank programs");
    const struct {
        const char *name;
        bool given;
    } others[] = {{"picture", line->picture},
                  {"samples", line->samples},
                  {"half-size", line->half_size},
                  {"times", line->times}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].given)
            return cmd_tune_refuse(app, plan, others[i].name, "rank programs");
    wanted->candidates = (uint64_t)line->budget;
    wanted->depth = (int)line->depth;
    wanted->seed = line->seed < 0 ? 1 : (uint64_t)line->seed;
    wanted->allow_stale = line->allow_stale;
    if (line->keep)
        status = option_kept(app_reader(app), line->keep, &wanted->kept);
    if (status != STATUS_OK)
        return status;
    if (plan->form == FORM_THREADS)
        return cmd_tune_threads(app, line, plan, wanted);
    int driver = app_driver(app, plan, line->driver, CLOCK_ONLY);
    wanted->driver = driver == CLOCK_ONLY ? DRIVER_CLOCK : DRIVER_DATAFLOW;
    if (line->profile)
        status = profiled_set_times(app_reader(app), line->profile, app->quiet, plan);
    return status == STATUS_OK ? cmd_tune_plan(app, wanted, plan, line->path) : status;
}

static enum status cmd_tune_programs(struct app *app, const struct tune_line *line,
                                     struct plan *plan, const struct tune_options *wanted)
{
    const struct {
        const char *name;
        bool given;
    } others[] = {{"driver", line->driver != DRIVER_NOT_GIVEN},
                  {"max-depth", line->depth},
                  {"keep", line->keep},
                  {"allow-stale", line->allow_stale},
                  {"budget", line->budget},
                  {"seed", line->seed >= 0}};
    struct frontier_request request = {.options = {.memory_bytes = wanted->memory_bytes,
                                                   .samples = (int)line->samples,
                                                   .half_size = (int)line->half_size,
                                                   .interrupted = wanted->interrupted},
                                       .plan_path = line->path,
                                       .picture_path = line->picture};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].given)
            return cmd_tune_refuse(app, plan, others[i].name, "the pipeline form");
    for (int a = 0; status == STATUS_OK && a < AXES; a++)
        if (line->axes[a])
            status = option_axis(app_reader(app), a, line->axes[a], &request.options.axes[a]);
    if (status == STATUS_OK && line->times)
        status = option_times(app_reader(app), line->times, plan);
    if (status != STATUS_OK)
        return status;
    if (!line->profile)
        return frontier_tune(app, &request, plan);
    struct profile profile;
    status = profiled_read(app_reader(app), line->profile, plan, 0, app->quiet, &profile);
    if (status != STATUS_OK)
        return status;
    status = frontier_tune(app, &request, &profile.plan);
    profile_fini(&profile);
    return status;
}

/* Times for a recording, which has none. */
static enum status tune_hardware(struct app *app, const struct tune_line *line, struct plan *plan)
{
    struct hardware_times times;
    if (!line->hardware.name)
        return STATUS_OK;
    if (plan->form != FORM_THREADS)
        return cmd_tune_refuse(app, plan, "hardware", "host programs");
    return hardware_times_set(plan, &line->hardware.hardware, &line->hardware.measured, 0, &times,
                              &app->diag);
}

/* ---- several recordings -------------------------------------------------------------------------- */

/* Recordings of one program, with other arguments: which of them is proved, and the fastest. */
struct tune_choice {
    const char *file;
    enum verdict verdict;
    int64_t step_ns; /* -1: it has no steps */
    double total_ns;
};

static enum status choice_predict(struct app *app, const struct plan *plan, struct tune_choice *out)
{
    struct hardware_steps steps = {0};
    const struct simulate_observer observer = {.context = &steps, .work = hardware_steps_work};
    const struct predict_options options = {.seed = 1,
                                            .replications = 1,
                                            .threads = 1,
                                            .exposed = EXPOSED_NEVER,
                                            .observer = &observer,
                                            .begin = hardware_steps_begin};
    struct prediction prediction;
    enum status status = predict(plan, &options, &prediction, &app->diag);
    if (status == STATUS_OK) {
        out->total_ns = prediction.makespan_ns;
        out->step_ns = hardware_steps_median(&steps);
        prediction_fini(&prediction);
    }
    hardware_steps_fini(&steps);
    return status;
}

static enum status choice_judge(struct app *app, const struct tune_line *line, const char *file,
                                struct tune_choice *out)
{
    const struct verify_options options = {.program = {.iterations = -1},
                                           .quick = true,
                                           .limits = {.states = CHOICE_STATES},
                                           .interrupted = interrupts_catch()};
    struct verify_report report;
    struct plan plan;
    *out = (struct tune_choice){.file = file};
    enum status status = plan_read(file, &plan, &app->diag);
    if (status != STATUS_OK)
        return status;
    status = refuse_unexplained(&plan, line->opaque, &app->diag);
    if (status == STATUS_OK && plan.form != FORM_THREADS)
        status = cmd_tune_refuse(app, &plan, "output",
                                 "one plan; several are compared only if "
                                 "they are host programs");
    if (status == STATUS_OK)
        status = tune_hardware(app, line, &plan);
    if (status == STATUS_OK)
        status = verify_plan(&plan, &options, &report, &app->diag);
    if (status == STATUS_OK) {
        out->verdict = report.verdict;
        verify_fini(&report);
        status = choice_predict(app, &plan, out);
    }
    plan_fini(&plan);
    return status;
}

/* Proved ones first, then by the step, or by all where one has no steps. */
static int compare_choices(const void *left, const void *right)
{
    const struct tune_choice *a = left, *b = right;
    const bool steps = a->step_ns >= 0 && b->step_ns >= 0;
    return compare_then(compare_int(a->verdict != VERDICT_PROVED, b->verdict != VERDICT_PROVED),
                        steps ? compare_i64(a->step_ns, b->step_ns)
                              : compare_double(a->total_ns, b->total_ns));
}

static void choice_print(const struct tune_choice *choices, size_t count)
{
    printf("  %-10s  %-10s  %-10s  recording\n", "verdict", "step", "total");
    for (size_t i = 0; i < count; i++) {
        char step[UNITS_TEXT] = "-", total[UNITS_TEXT];
        if (choices[i].step_ns >= 0)
            units_show_time((double)choices[i].step_ns, step);
        units_show_time(choices[i].total_ns, total);
        printf("  %-10s  %-10s  %-10s  %s\n", verdict_key(choices[i].verdict), step, total,
               choices[i].file);
    }
}

/* STATUS_VIOLATED: none is proved. */
static enum status tune_choices(struct app *app, const struct tune_line *line,
                                const struct arguments *files)
{
    const size_t count = (size_t)files->count;
    struct tune_choice *choices = ARENA_ARRAY(&app->arena, count, struct tune_choice);
    enum status status = choices ? STATUS_OK : diag_no_memory(&app->diag);
    if (line->path)
        return diag_error(&app->diag, STATUS_USAGE,
                          "found --output for several recordings, of which one is chosen");
    if (app->json)
        return diag_error(&app->diag, STATUS_USAGE,
                          "found --json for several recordings, whose table is a text");
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        status = choice_judge(app, line, files->items[i], &choices[i]);
    if (status != STATUS_OK)
        return status;
    SORT(choices, count, compare_choices);
    choice_print(choices, count);
    return choices[0].verdict == VERDICT_PROVED ? STATUS_OK : STATUS_VIOLATED;
}

static enum status tune_file(struct app *app, const struct tune_line *line, const char *path)
{
    struct tune_options wanted = {.memory_bytes = -1};
    struct plan plan;
    enum status status = STATUS_OK;
    if (line->memory)
        status = parse_memory(app, line->memory, &wanted.memory_bytes);
    if (status == STATUS_OK)
        status = plan_read(path, &plan, &app->diag);
    if (status != STATUS_OK)
        return status;
    if (line->cores > 0)
        plan.machine.cores = (int)line->cores;
    wanted.interrupted = interrupts_catch();
    status = refuse_unexplained(&plan, line->opaque, &app->diag);
    if (status == STATUS_OK)
        status = tune_hardware(app, line, &plan);
    if (status == STATUS_OK && plan.form == FORM_PROGRAMS)
        status = cmd_tune_programs(app, line, &plan, &wanted);
    else if (status == STATUS_OK)
        status = cmd_tune_pipeline(app, line, &plan, &wanted);
    plan_fini(&plan);
    return status;
}

enum status cmd_tune(struct app *app, int argc, char **argv)
{
    struct tune_line line = {.driver = DRIVER_NOT_GIVEN, .seed = -1};
    const struct option_spec options[] = {
        {"driver", 0, "clock|dataflow", "which driver (default: the plan's, else clock)",
         OPTION_CHOICE, .value = &line.driver},
        {"memory", 0, "SIZE", "most bytes a rank may hold (default: any)", OPTION_TEXT,
         .value = &line.memory},
        {"max-depth", 0, "N", "most iterations in flight (default 4, or the plan's if more)",
         OPTION_INTEGER, .value = &line.depth, .min = 1, .max = PLAN_MAX_DEPTH},
        {"cores", 0, "N",
         "cores for the work of all ranks (default: the plan's, with --profile the run's "
         "machine's)",
         OPTION_INTEGER, .value = &line.cores, .min = 1, .max = PLAN_MAX_CORES},
        {"keep", 0, "LIST", "leave these as they are: stage,stream,group,order,depth", OPTION_TEXT,
         .value = &line.keep},
        {"allow-stale", 0, NULL, "reads of shared buffers may see older or newer writes",
         OPTION_FLAG, .value = &line.allow_stale},
        {"opaque", 0, NULL, "tune an import also where more than 5% of its time is unexplained",
         OPTION_FLAG, .value = &line.opaque},
        {"budget", 0, "N", "candidates to try (default 10000; 1000 if they are simulated)",
         OPTION_INTEGER, .value = &line.budget, .min = 1, .max = TUNE_MOST_CANDIDATES},
        {"seed", 0, "S", "of the search and of all random numbers (default 1)", OPTION_INTEGER,
         .value = &line.seed, .max = INT64_MAX},
        {"profile", 0, "FILE[:RUN]", "measured times: a serial run or an import in a trace store",
         OPTION_TEXT, .value = &line.profile},
        HARDWARE_OPTIONS(&line.hardware, "recordings: times of this GPU, as of swsim predict"),
        {"times", 0, "F=T,B=T,...", "rank programs: durations of actions (default: the plan's)",
         OPTION_TEXT, .value = &line.times},
        {"schedule", 0, "LIST", "rank programs: schedules to try (default: all)", OPTION_TEXT,
         .value = &line.axes[AXIS_SCHEDULE]},
        {"microbatches", 0, "LIST", "microbatches in a step (default: the plan's)", OPTION_TEXT,
         .value = &line.axes[AXIS_MICROBATCHES]},
        {"size", 0, "LIST", "samples in a microbatch; the step keeps its samples", OPTION_TEXT,
         .value = &line.axes[AXIS_SIZE]},
        {"samples", 0, "N", "samples in a microbatch of the plan (default: its model's, else 1)",
         OPTION_INTEGER, .value = &line.samples, .min = 1, .max = TUNE_MOST_SAMPLES},
        {"half-size", 0, "N", "samples at which passes have half their best speed (default 0)",
         OPTION_INTEGER, .value = &line.half_size, .max = TUNE_MOST_SAMPLES},
        {"chunks", 0, "LIST", "stages a rank (default: the plan's, 1 and 2)", OPTION_TEXT,
         .value = &line.axes[AXIS_CHUNKS]},
        {"group", 0, "LIST", "microbatches in a row, besides the schedule's own", OPTION_TEXT,
         .value = &line.axes[AXIS_GROUP]},
        {"held", 0, "LIST",
         "zb_1p and others found from costs: activations a rank may hold, or fit", OPTION_TEXT,
         .value = &line.axes[AXIS_HELD]},
        {"balance", 0, "LIST", "of layers: even, found (default: both, and the plan's)",
         OPTION_TEXT, .value = &line.axes[AXIS_BALANCE]},
        {"checkpoint", 0, "LIST", "never, except_last, always (default: all, if inputs have bytes)",
         OPTION_TEXT, .value = &line.axes[AXIS_CHECKPOINT]},
        {"p2p", 0, "LIST", "channels: group, pair, direction, edge (default: the plan's)",
         OPTION_TEXT, .value = &line.axes[AXIS_CHANNEL]},
        {"picture", 0, "FILE", "rank programs: draw time against memory (.svg, .png, .dot)",
         OPTION_TEXT, .value = &line.picture},
        {"output", 'o', "FILE", "write the best plan, or the given one if none is better",
         OPTION_TEXT, .value = &line.path},
    };
    const struct command command = {
        .name = "swsim tune",
        .arguments = "PLAN...",
        .about = about,
        .more_arguments = INT_MAX,
        .examples = "  swsim tune plans/torchrec/sparse_dist.yaml\n"
                    "  swsim tune --memory=80MiB --keep=stream,group -o better.yaml plan.yaml\n"
                    "  swsim tune --hardware=h100-sxm dry.yaml\n"
                    "  swsim tune --hardware=h100-sxm bucket25.yaml bucket100.yaml\n"
                    "  swsim tune --microbatches=8,16 --picture=frontier.svg pipeline.yaml",
        COMMAND_OPTIONS(options),
    };
    struct arguments arguments;
    enum status status;
    if (!options_parse(app, &command, argc, argv, &arguments, &status))
        return status;
    status = hardware_choice_read(app, &line.hardware);
    if (status != STATUS_OK)
        return status;
    return arguments.count > 1 ? tune_choices(app, &line, &arguments)
                               : tune_file(app, &line, arguments.items[0]);
}
