/* cmd_render.c - `swsim render`: a run of a trace store as a timeline, a plan as a graph. */
#include <stdlib.h>
#include <string.h>

#include "action_times.h"
#include "app.h"
#include "channels.h"
#include "gzip.h"
#include "options.h"
#include "run_spec.h"

#include "api/render_schedule.h"
#include "plan/output.h"
#include "plan/text_stream.h"
#include "sim/predict/stalls.h"
#include "trace/plangraph.h"
#include "trace/schedule_picture.h"
#include "trace/profiler_json.h"
#include "trace/timeline.h"

enum { MAX_STEPS = 400000 /* that a picture takes through the machine */ };

enum shape { SHAPE_AUTO, SHAPE_SCHEDULE, SHAPE_TIMELINE }; /* of --as */

struct render_options {
    const char *output, *title;
    int64_t run, from, to;
    int arrows;  /* enum timeline_arrows */
    int palette; /* enum palette; -1: not given */
    int p2p;     /* as of channels_choose */
    int shape;   /* enum shape */
    const char *times;
    int64_t rank; /* -1: all */
    bool all, no_threads;
};

static bool ends_with(const char *path, const char *suffix)
{
    const size_t length = strlen(path), end = strlen(suffix);
    return length > end && strcmp(path + length - end, suffix) == 0;
}

static bool wants_json(const char *path)
{
    return strcmp(path, "-") == 0 || ends_with(path, ".json") || ends_with(path, ".json.gz");
}

/* The steps explain why streams were idle; a later part of a long run would need too many of them. */
static enum status add_stalls(struct app *app, struct store *store, struct trace *trace)
{
    int64_t first_ns, last_ns;
    enum status status = store_load_first_steps(store, trace, MAX_STEPS, &app->diag);
    if (status != STATUS_OK || trace->step_count == 0)
        return status;
    trace_range(trace, &first_ns, &last_ns);
    if (trace->step_count == MAX_STEPS && trace->steps[MAX_STEPS - 1].time_ns < last_ns) {
        diag_note(&app->diag,
                  "why streams were idle is not shown: that is found from the first %d steps of a "
                  "run, and these end before",
                  MAX_STEPS);
        return STATUS_OK;
    }
    return stalls_add(trace, &app->diag);
}

/* Load the iterations and why streams were idle. */
static enum status load(struct app *app, struct store *store, int64_t run, int64_t from, int64_t to,
                        struct trace *trace)
{
    enum status status = store_load(store, run, from, to, &app->arena, trace, &app->diag);
    if (status == STATUS_OK && trace->info.kind == RUN_WITNESS)
        return store_load_steps(store, trace, &app->diag);
    if (status == STATUS_OK && stalls_known(&trace->info))
        return add_stalls(app, store, trace);
    return status;
}

static enum status save_compressed(struct app *app, const char *path, const char *text,
                                   size_t bytes)
{
    size_t packed_bytes;
    char *packed = gzip_text(text, bytes, &packed_bytes);
    enum status status =
        packed ? output_write(path, packed, packed_bytes, &app->diag) : diag_no_memory(&app->diag);
    free(packed);
    return status;
}

static enum status write_compressed(struct app *app, const struct trace *trace,
                                    const struct profiler_json_options *json, const char *path)
{
    struct text_stream stream;
    size_t bytes;
    if (!text_open(&stream))
        return diag_no_memory(&app->diag);
    enum status status = profiler_json_write(trace, json, stream.out, &app->diag);
    char *text = text_close(&stream, status == STATUS_OK, &bytes);
    if (status == STATUS_OK)
        status = text ? save_compressed(app, path, text, bytes) : diag_no_memory(&app->diag);
    free(text);
    return status;
}

/* The whole run unless a part is asked for: what reads the file can show a part by itself. */
static enum status write_json(struct app *app, struct store *store,
                              const struct render_options *options)
{
    const struct profiler_json_options json = {
        .no_dependences = options->arrows == TIMELINE_ARROWS_NONE,
        .hide_threads = options->no_threads,
        .one_rank = options->rank >= 0,
        .rank = (int)options->rank,
    };
    struct app_output output;
    struct trace trace;
    enum status status = load(app, store, options->run, options->from, options->to, &trace);
    if (status == STATUS_OK && ends_with(options->output, ".gz"))
        return write_compressed(app, &trace, &json, options->output);
    if (status == STATUS_OK)
        status = app_create(app, options->output, &output);
    if (status != STATUS_OK)
        return status;
    return app_close_file(app, &output,
                          profiler_json_write(&trace, &json, output.file, &app->diag));
}

/* Options of the picture of a schedule alone; `stored`: it has happened. */
static enum status refuse_schedule(struct app *app, const struct render_options *options,
                                   const char *file, bool stored)
{
    const char *found = options->palette >= 0 && !stored     ? "palette"
                        : options->times                     ? "times"
                        : options->p2p != CHANNELS_NOT_GIVEN ? "p2p"
                                                             : NULL;
    return found ? diag_error(&app->diag, STATUS_USAGE,
                              "%s: found --%s, but it is for rank programs only", file, found)
                 : STATUS_OK;
}

static enum status draw_schedule(struct app *app, const struct render_options *options,
                                 struct chart *chart)
{
    const struct draw_target target = {.path = options->output};
    const struct schedule_picture_options picture = {
        .palette = options->palette < 0 ? PALETTE_PYTORCH : (enum palette)options->palette,
        .no_messages = options->arrows == TIMELINE_ARROWS_NONE};
    if (options->title)
        chart->title = options->title;
    return schedule_picture_render(chart, 1, &picture, &target, &app->diag);
}

/* Asked for as one, it is told what it lacks. */
static bool is_schedule(const struct render_options *options, const struct trace *trace)
{
    return options->shape == SHAPE_SCHEDULE ||
           (options->shape == SHAPE_AUTO && render_schedule_fits(trace));
}

static enum status render_run(struct app *app, struct store *store, void *context)
{
    const struct render_options *options = context;
    const struct draw_target target = {.path = options->output};
    enum status refused = refuse_schedule(app, options, "a trace store", true);
    if (refused != STATUS_OK)
        return refused;
    bool some = options->from >= 0 || options->to >= 0;
    struct timeline_options timeline = {
        .range = some           ? TIMELINE_ITERATIONS
                 : options->all ? TIMELINE_ALL
                                : TIMELINE_FIRST,
        .from = options->from >= 0 ? options->from : 0,
        .to = options->to >= 0 ? options->to : INT64_MAX,
        .arrows = (enum timeline_arrows)options->arrows,
        .title = options->title,
        .hide_threads = options->no_threads,
        .one_rank = options->rank >= 0,
        .rank = (int)options->rank,
    };
    struct trace trace;
    bool first = timeline.range == TIMELINE_FIRST;
    if (wants_json(options->output))
        return write_json(app, store, options);
    enum status status = load(app, store, options->run, first ? STORE_FIRST : options->from,
                              first ? TIMELINE_FIRST_ITERATIONS : options->to, &trace);
    if (status != STATUS_OK)
        return status;
    if (is_schedule(options, &trace)) {
        struct chart chart;
        status = render_schedule_run(&trace, &app->arena, &chart, &app->diag);
        return status == STATUS_OK ? draw_schedule(app, options, &chart) : status;
    }
    return timeline_render(&trace, &timeline, &target, &app->diag);
}

static enum status render_plan(struct app *app, struct plan *plan, void *context)
{
    const struct render_options *options = context;
    if (wants_json(options->output))
        return diag_error(&app->diag, STATUS_USAGE,
                          "a plan has no times: 'swsim predict --db=FILE' makes a run of it, which "
                          "can be written as .json");
    if (plan->form != FORM_PROGRAMS) {
        enum status refused = refuse_schedule(app, options, plan->file, false);
        return refused == STATUS_OK
                   ? plangraph_render(plan, &(struct draw_target){.path = options->output},
                                      &app->diag)
                   : refused;
    }
    enum status status = options->times ? action_times_set(app, options->times, plan) : STATUS_OK;
    if (status == STATUS_OK)
        status = channels_choose(app, plan, options->p2p);
    if (status != STATUS_OK)
        return status;
    struct chart chart;
    status = render_schedule_plan(plan, &app->arena, &chart, &app->diag);
    return status == STATUS_OK ? draw_schedule(app, options, &chart) : status;
}

enum status cmd_render(struct app *app, int argc, char **argv)
{
    struct render_options render = {.run = STORE_LATEST,
                                    .rank = -1,
                                    .from = STORE_ALL,
                                    .to = STORE_ALL,
                                    .palette = -1,
                                    .p2p = CHANNELS_NOT_GIVEN};
    const struct option_spec options[] = {
        {"output", 'o', "FILE",
         "output file: .svg, .png, .pdf, .dot; a run also .json, .json.gz, - (as JSON)",
         OPTION_TEXT, .value = &render.output},
        {"run", 0, "N", "which run of the store (default: the latest)", OPTION_INTEGER,
         .value = &render.run, .max = INT64_MAX},
        {"rank", 0, "N", "only this rank (default: all)", OPTION_INTEGER, .value = &render.rank,
         .max = PLAN_MAX_RANKS - 1},
        {"from", 0, "N", "first iteration to draw (default: the first)", OPTION_INTEGER,
         .value = &render.from, .max = INT64_MAX},
        {"to", 0, "N", "last iteration to draw (default: the first few; .json: the last)",
         OPTION_INTEGER, .value = &render.to, .max = INT64_MAX},
        {"all", 0, NULL, "draw all iterations", OPTION_FLAG, .value = &render.all},
        {"arrows", 0, "auto|none|dependences|all", "arrows (default auto: dependences if few)",
         OPTION_CHOICE, .value = &render.arrows},
        {"times", 0, "F=T,B=T,...", "rank programs: durations of actions (default: the plan's)",
         OPTION_TEXT, .value = &render.times},
        {"p2p", 0, "group|pair|direction|edge",
         "rank programs: channels of messages (default: the plan's)", OPTION_CHOICE,
         .value = &render.p2p},
        {"as", 0, "auto|schedule|timeline",
         "a run whose work are passes: rows of passes, or streams (default auto: passes)",
         OPTION_CHOICE, .value = &render.shape},
        {"palette", 0, "pytorch|dualpipe|zero-bubble|grey",
         "rank programs: colours (default pytorch)", OPTION_CHOICE, .value = &render.palette},
        {"title", 0, "TEXT", "title (default: the plan's name)", OPTION_TEXT,
         .value = &render.title},
        {"no-threads", 0, NULL, "draw streams only", OPTION_FLAG, .value = &render.no_threads},
    };
    const struct command command = {
        .name = "swsim render",
        .arguments = "DB|PLAN",
        .about = "Draw a run in a trace store as a timeline, a counterexample in one as a "
                 "storyboard, a\n"
                 "plan of the pipeline form or host programs as a graph, rank programs as a "
                 "schedule: a\n"
                 "row for each rank, the passes to scale, memory over time beneath.",
        .examples = "  swsim render runs.db --from=10 --to=14 -o run.svg\n"
                    "  swsim render runs.db --rank=0 -o trace.json\n"
                    "  swsim render plans/torchrec/sparse_dist.yaml -o plan.svg\n"
                    "  swsim generate zb_h1 -p4 -m8 | swsim render - -o zb.svg",
        COMMAND_OPTIONS(options),
    };
    struct arguments arguments;
    enum status status;
    if (!options_parse(app, &command, argc, argv, &arguments, &status))
        return status;
    if (!render.output)
        return diag_error(&app->diag, STATUS_USAGE, "missing option: --output=FILE");
    const char *path = arguments.items[0];
    bool store;
    status = run_spec_is_store(app, path, &store);
    if (status != STATUS_OK)
        return status;
    return store ? app_with_store(app, path, render_run, &render)
                 : app_with_plan(app, path, render_plan, &render);
}
