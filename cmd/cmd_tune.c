/* cmd_tune.c - `swsim tune`: find a better plan and show the differences. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "action_times.h"
#include "app.h"
#include "interrupts.h"
#include "options.h"
#include "profiled.h"
#include "progress.h"
#include "tune_frontier.h"
#include "improve/tune.h"

#include "improve/diff.h"
#include "plan/coverage.h"
#include "plan/json.h"
#include "plan/parse.h"
#include "plan/units.h"

enum { CONTEXT = 3, MAX_PARTS = 12, MOST_SAMPLES = 1 << 20 };

/* The given plan, the best that was found, and how they differ. */
struct tuning {
    const struct tune *tune;
    struct tune_result before, after;
    const char **changes; /* NULL ends the list */
    const char *diff;
    bool better;
};

static void show_progress(void *arg, const struct tune_progress *now)
{
    char time[UNITS_TEXT] = "unknown";
    if (isfinite(now->period_ns))
        units_show_time(now->period_ns, time);
    progress_show(arg, "%" PRIu64 " candidates, an iteration takes %s", now->candidates, time);
}

/* ---- as text --------------------------------------------------------------------------------- */

static const char *show_time(double ns, char out[UNITS_TEXT])
{
    if (!isfinite(ns))
        return "unknown";
    units_show_time(ns, out);
    return out;
}

static const char *show_bytes(int64_t bytes, char out[UNITS_TEXT])
{
    units_show_bytes((double)bytes, out);
    return out;
}

/* The tasks of the critical cycle, which limits the period, in order of time. */
static void print_cycle(const char *what, const struct tune_result *result)
{
    const struct steady *steady = &result->steady;
    if (steady->kind != STEADY_EXACT || steady->part_count == 0)
        return;
    printf("  %-18s", what);
    for (int i = 0; i < steady->part_count && i < MAX_PARTS; i++) {
        const struct steady_part *part = &steady->parts[i];
        const char *name =
            part->kind == EVENT_DRIVER ? "driver" : result->plan.pipeline.tasks[part->task].name;
        printf("%s%s%s", i ? " -> " : "", part->kind == EVENT_HOST ? "launch of " : "", name);
    }
    printf("%s\n", steady->part_count > MAX_PARTS ? " -> ..." : "");
}

static void print_table(const struct tuning *o)
{
    const struct tune_result *a = &o->before, *b = &o->after;
    char x[UNITS_TEXT], y[UNITS_TEXT];
    printf("  %-18s%-12s%s\n", "", "before", "after");
    printf("  %-18s%-12s%s", "verdict", verdict_key(a->verdict), verdict_key(b->verdict));
    printf("\n  %-18s%-12s%s", o->tune->exact ? "iteration" : "iteration, about",
           show_time(a->period_ns, x), show_time(b->period_ns, y));
    if (o->better && a->period_ns > b->period_ns)
        printf("  (%.1f%% less)", 100 * (1 - b->period_ns / a->period_ns));
    printf("\n  %-18s%-12d%d\n", "in flight", a->depth, b->depth);
    printf("  %-18s%-12s%s\n", "bytes of a rank", show_bytes(a->bytes, x), show_bytes(b->bytes, y));
    printf("  %-18s%-12d%d\n", "streams", a->streams, b->streams);
    printf("  %-18s%-12d%d\n", "thread groups", a->groups, b->groups);
    print_cycle("limited by", a);
    if (o->better)
        print_cycle("after that by", b);
}

static void print_counts(const struct tune *tune)
{
    const struct tune_counts *counts = &tune->counts;
    printf("  %-18s%" PRIu64 " candidates: %" PRIu64 " proved, %" PRIu64 " predicted", "tried",
           counts->tried, counts->proved, counts->predicted);
    if (counts->stale)
        printf(", %" PRIu64 " faster ones have other results", counts->stale);
    putchar('\n');
}

static void print_tuning(struct app *app, const struct tuning *o)
{
    const struct tune *tune = o->tune;
    printf("%s, %s driver\n\n", tune->given.name, driver_key(tune->options->driver));
    print_table(o);
    print_counts(tune);
    if (!o->better) {
        printf("\n%s\n", tune->first_score.unfit ? "no candidate is proved and within the limits"
                                                 : "no candidate is better than the plan");
        return;
    }
    printf("\nchanges\n");
    for (const char **change = o->changes; *change; change++)
        printf("  %s\n", *change);
    if (!app->quiet)
        printf("\n--- %s\n+++ tuned.yaml\n%s", tune->given.name, o->diff);
}

/* ---- as JSON --------------------------------------------------------------------------------- */

static void write_result(struct json *json, const char *key, const struct tune_result *result)
{
    json_begin_object_at(json, key);
    json_put_string(json, "verdict", verdict_key(result->verdict));
    json_put_double(json, "period_ns", result->period_ns);
    json_put_int(json, "depth", result->depth);
    json_put_int(json, "bytes", result->bytes);
    json_put_int(json, "streams", result->streams);
    json_put_int(json, "thread_groups", result->groups);
    json_begin_array_at(json, "critical_cycle");
    for (int i = 0; result->steady.kind == STEADY_EXACT && i < result->steady.part_count; i++) {
        const struct steady_part *part = &result->steady.parts[i];
        json_string(json, part->kind == EVENT_DRIVER
                              ? "driver"
                              : result->plan.pipeline.tasks[part->task].name);
    }
    json_end_array(json);
    json_end_object(json);
}

static enum status write_tuning(struct app *app, const struct tuning *o)
{
    const struct tune *tune = o->tune;
    struct json json;
    json_open(&json, stdout);
    json_begin_object(&json);
    json_put_string(&json, "plan", tune->given.name);
    json_put_string(&json, "driver", driver_key(tune->options->driver));
    json_put_int(&json, "seed", (int64_t)tune->options->seed);
    json_put_bool(&json, "exact", tune->exact);
    json_put_bool(&json, "better", o->better);
    json_put_bool(&json, "interrupted", tune_is_interrupted(tune));
    json_put_int(&json, "candidates", (int64_t)tune->counts.tried);
    json_put_int(&json, "proved", (int64_t)tune->counts.proved);
    json_put_int(&json, "predicted", (int64_t)tune->counts.predicted);
    json_put_int(&json, "stale", (int64_t)tune->counts.stale);
    write_result(&json, "before", &o->before);
    write_result(&json, "after", &o->after);
    json_begin_array_at(&json, "changes");
    for (const char **change = o->changes; *change; change++)
        json_string(&json, *change);
    json_end_array(&json);
    json_put_string(&json, "diff", o->diff);
    json_end_object(&json);
    return json_close(&json, &app->diag);
}

/* ---- the work -------------------------------------------------------------------------------- */

static enum status save(struct app *app, const char *path, const struct tuning *o)
{
    return path ? app_write_file(app, path, o->after.text) : STATUS_OK;
}

/* The search proves plans in memory; this is the proof of the printed plan. */
static enum status check_result(struct app *app, const struct tuning *o)
{
    if (!o->better || o->after.verdict == VERDICT_PROVED)
        return STATUS_OK;
    return diag_error(&app->diag, STATUS_LIMIT, "%s: the tuned plan is %s when read again",
                      o->tune->given.name, verdict_key(o->after.verdict));
}

/* Print the result. With -o - standard output is the plan itself. */
static enum status report(struct app *app, const char *path, struct tuning *o)
{
    enum status status = check_result(app, o);
    if (status != STATUS_OK)
        return status;
    if (!path || strcmp(path, "-") != 0) {
        if (app->json)
            status = write_tuning(app, o);
        else
            print_tuning(app, o);
    }
    if (status == STATUS_OK)
        status = save(app, path, o);
    if (status == STATUS_OK && !o->better && o->tune->first_score.unfit)
        status = STATUS_VIOLATED;
    return status;
}

static void warn(struct app *app, const struct tune *tune)
{
    const char *name = tune->given.name;
    if (tune->verdict != VERDICT_PROVED)
        diag_warn(&app->diag, "%s is %s as given: only proved plans are kept", name,
                  verdict_key(tune->verdict));
    coverage_warn(&tune->given, &app->diag);
    if (tune->options->memory_bytes >= 0 && tune->iteration_bytes + tune->shared_bytes == 0)
        diag_warn(&app->diag, "%s gives no buffer a size: --memory limits nothing", name);
}

/* A plan that hangs has no view to compare with. */
static enum status check_view(struct app *app, const struct tune *tune)
{
    if (tune->has_view || tune->options->allow_stale)
        return STATUS_OK;
    diag_error(&app->diag, STATUS_VIOLATED, "%s hangs: its results are unknown", tune->given.name);
    diag_note(&app->diag,
              "'swsim verify --fix=FILE' repairs it; --allow-stale accepts other results");
    return STATUS_VIOLATED;
}

static enum status search(struct app *app, struct tune *tune, const char *path)
{
    struct tuning o = {.tune = tune};
    enum status status = tune_search(tune, &app->diag);
    if (status != STATUS_OK)
        return status;
    o.better = tune_found(tune);
    if (tune_is_interrupted(tune))
        diag_warn(&app->diag, "%s: interrupted: this is the best candidate so far",
                  tune->given.name);
    status = tune_examine(tune, tune->first, &o.before, &app->diag);
    if (status != STATUS_OK)
        return status;
    status = tune_examine(tune, tune->best, &o.after, &app->diag);
    if (status == STATUS_OK) {
        o.changes = tune_describe(tune, &app->arena);
        o.diff = diff_unified(o.before.text, o.after.text, CONTEXT, &app->arena);
        status = o.changes && o.diff ? report(app, path, &o) : diag_no_memory(&app->diag);
        tune_result_fini(&o.after);
    }
    tune_result_fini(&o.before);
    return status;
}

static enum status tune_plan(struct app *app, struct tune_options *options, const struct plan *plan,
                             const char *path)
{
    struct tune tune;
    struct progress progress;
    options->progress = show_progress;
    options->progress_arg = &progress;
    progress_init(&progress, app);
    enum status status = tune_open(plan, options, &tune, &app->diag);
    if (status != STATUS_OK)
        return status;
    warn(app, &tune);
    status = check_view(app, &tune);
    if (status == STATUS_OK)
        status = search(app, &tune, path);
    progress_clear(&progress);
    tune_close(&tune);
    return status;
}

/* ---- the command line ------------------------------------------------------------------------ */

/* "stream,group": the choices to keep. */
static enum status parse_kept(struct app *app, const char *item, const char *value, void *kept)
{
    for (int k = 0; k < TUNE_KNOBS; k++)
        if (!value && strcmp(tune_knob_key((enum tune_knob)k), item) == 0) {
            *(unsigned *)kept |= 1u << k;
            return STATUS_OK;
        }
    return diag_error(&app->diag, STATUS_USAGE,
                      "--keep: found '%s', expected stage, stream, group, order or depth", item);
}

static enum status parse_memory(struct app *app, const char *text, int64_t *bytes)
{
    const char *what;
    if (units_parse_bytes(text, bytes, &what))
        return STATUS_OK;
    return diag_error(&app->diag, STATUS_USAGE, "--memory: found '%s', %s", text, what);
}

static const char about[] =
    "Search a better plan. Only candidates that the checker proves are kept.\n"
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
    "serial run, on the slowest rank, and the written plan has these times. SIGINT ends the\n"
    "search early.\n"
    "\n"
    "Rank programs: every schedule of 'swsim generate' on the plan's ranks, with the values\n"
    "of the options from --schedule on, each LIST separated by commas ('all': every word).\n"
    "The frontier of time against memory is printed. A microbatch keeps its size, the model its\n"
    "layers: with more chunks a rank, stages are smaller.";

/* ---- which options are for which form -------------------------------------------------------- */

struct tune_line {
    int driver;
    int64_t budget, depth, seed; /* seed -1: not given */
    int64_t samples, half_size;
    bool allow_stale;
    const char *keep, *memory, *profile, *times, *path, *picture;
    const char *axes[AXES];
};

static enum status refuse(struct app *app, const struct plan *plan, const char *option,
                          const char *form)
{
    return diag_error(&app->diag, STATUS_USAGE, "%s: found --%s, but it is for %s only", plan->file,
                      option, form);
}

static enum status tune_pipeline(struct app *app, const struct tune_line *line, struct plan *plan,
                                 struct tune_options *wanted)
{
    enum status status = STATUS_OK;
    for (int a = 0; a < AXES; a++)
        if (line->axes[a])
            return refuse(app, plan, axis_key((enum axis)a), "rank programs");
    const struct {
        const char *name;
        bool given;
    } others[] = {{"picture", line->picture},
                  {"samples", line->samples},
                  {"half-size", line->half_size},
                  {"times", line->times}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].given)
            return refuse(app, plan, others[i].name, "rank programs");
    wanted->candidates = (uint64_t)line->budget;
    wanted->depth = (int)line->depth;
    wanted->seed = line->seed < 0 ? 1 : (uint64_t)line->seed;
    wanted->allow_stale = line->allow_stale;
    if (line->keep)
        status = options_each(app, line->keep, parse_kept, &wanted->kept);
    if (status != STATUS_OK)
        return status;
    int driver = app_driver(app, plan, line->driver, CLOCK_ONLY);
    wanted->driver = driver == CLOCK_ONLY ? DRIVER_CLOCK : DRIVER_DATAFLOW;
    if (line->profile)
        status = profiled_set_times(app, line->profile, plan);
    return status == STATUS_OK ? tune_plan(app, wanted, plan, line->path) : status;
}

static enum status tune_programs(struct app *app, const struct tune_line *line, struct plan *plan,
                                 const struct tune_options *wanted)
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
            return refuse(app, plan, others[i].name, "the pipeline form");
    for (int a = 0; status == STATUS_OK && a < AXES; a++)
        if (line->axes[a])
            status =
                frontier_parse_axis(app, (enum axis)a, line->axes[a], &request.options.axes[a]);
    if (status == STATUS_OK && line->times)
        status = action_times_set(app, line->times, plan);
    if (status != STATUS_OK)
        return status;
    if (!line->profile)
        return frontier_tune(app, &request, plan);
    struct profile profile;
    status = profiled_read(app, line->profile, plan, 0, &profile);
    if (status != STATUS_OK)
        return status;
    status = frontier_tune(app, &request, &profile.plan);
    profile_fini(&profile);
    return status;
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
    wanted.interrupted = interrupts_catch();
    if (plan.form == FORM_PROGRAMS)
        status = tune_programs(app, line, &plan, &wanted);
    else
        status = tune_pipeline(app, line, &plan, &wanted);
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
        {"keep", 0, "LIST", "leave these as they are: stage,stream,group,order,depth", OPTION_TEXT,
         .value = &line.keep},
        {"allow-stale", 0, NULL, "reads of shared buffers may see older or newer writes",
         OPTION_FLAG, .value = &line.allow_stale},
        {"budget", 0, "N", "candidates to try (default 10000; 1000 if they are simulated)",
         OPTION_INTEGER, .value = &line.budget, .min = 1, .max = TUNE_MOST_CANDIDATES},
        {"seed", 0, "S", "of the search and of all random numbers (default 1)", OPTION_INTEGER,
         .value = &line.seed, .max = INT64_MAX},
        {"profile", 0, "FILE[:RUN]", "measured times: a serial run in a trace store", OPTION_TEXT,
         .value = &line.profile},
        {"times", 0, "F=T,B=T,...", "rank programs: durations of actions (default: the plan's)",
         OPTION_TEXT, .value = &line.times},
        {"schedule", 0, "LIST", "rank programs: schedules to try (default: all)", OPTION_TEXT,
         .value = &line.axes[AXIS_SCHEDULE]},
        {"microbatches", 0, "LIST", "microbatches in a step (default: the plan's)", OPTION_TEXT,
         .value = &line.axes[AXIS_MICROBATCHES]},
        {"size", 0, "LIST", "samples in a microbatch; the step keeps its samples", OPTION_TEXT,
         .value = &line.axes[AXIS_SIZE]},
        {"samples", 0, "N", "those of a microbatch of the plan (default: its model's, else 1)",
         OPTION_INTEGER, .value = &line.samples, .min = 1, .max = MOST_SAMPLES},
        {"half-size", 0, "N", "samples at which passes have half their best speed (default 0)",
         OPTION_INTEGER, .value = &line.half_size, .max = MOST_SAMPLES},
        {"chunks", 0, "LIST", "stages a rank (default: the plan's, 1 and 2)", OPTION_TEXT,
         .value = &line.axes[AXIS_CHUNKS]},
        {"group", 0, "LIST", "microbatches in a row, besides the schedule's own", OPTION_TEXT,
         .value = &line.axes[AXIS_GROUP]},
        {"held", 0, "LIST", "zb_1p and its kin: activations a rank may hold, or fit", OPTION_TEXT,
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
        .arguments = "PLAN",
        .about = about,
        .examples = "  swsim tune plans/torchrec/sparse_dist.yaml\n"
                    "  swsim tune --memory=80MiB --keep=stream,group -o better.yaml plan.yaml\n"
                    "  swsim tune --microbatches=8,16 --picture=frontier.svg pipeline.yaml",
        COMMAND_OPTIONS(options),
    };
    struct arguments arguments;
    enum status status;
    if (!options_parse(app, &command, argc, argv, &arguments, &status))
        return status;
    return tune_file(app, &line, arguments.items[0]);
}
