/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_import.c - `swsim import`: a trace of a real job becomes a plan. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>

#include "app.h"
#include "options.h"
#include "plan_out.h"

#include "base/json.h"
#include "base/units.h"
#include "trace/import/import.h"
#include "trace/import/record.h"
#include "trace/store.h"
#include "sim/predict/difference.h"
#include "sim/predict/foretold.h"
#include "sim/predict/predict.h"

/* ---- whether the plan of an import takes as long as its trace says --------------------------- */

/*
 * The whole run is predicted first; where it is off, both runs are accounted for. A prediction of a large trace
 * takes as much memory as the trace does. So the trace may be freed before the prediction, and the account reads
 * the files again.
 */

/* Reads the files again, for the run that was measured. */
struct replay_source {
    const char *const *paths;
    size_t count;
    const struct import_options *options;
};

#define REPLAY_WARNED  0.05
#define REPLAY_REFUSED 0.20

static int64_t measured_ns(const struct job *job)
{
    int64_t last_ns = 0;
    for (size_t r = 0; r < job->rank_count; r++)
        last_ns = job->ranks[r].end_ns > last_ns ? job->ranks[r].end_ns : last_ns;
    return last_ns;
}

static enum status replay_time(const struct plan *plan, double *out, struct diag *diag)
{
    const struct predict_options options = {.program = {.driver = DRIVER_NONE},
                                            .seed = 1,
                                            .replications = 1,
                                            .threads = 1,
                                            .exposed = EXPOSED_NEVER};
    struct prediction prediction;
    const enum status status = predict(plan, &options, &prediction, diag);
    if (status != STATUS_OK)
        return status;
    *out = prediction.blocked_count > 0 ? NAN : (double)prediction.total_ns;
    prediction_fini(&prediction);
    return STATUS_OK;
}

/* Both runs, with what they differ in. */
static enum status compare_runs(struct app *app, const struct imported *imported,
                                struct difference *out, struct diag *quiet)
{
    const struct program_options options = {.driver = DRIVER_NONE};
    struct run_account before, after;
    struct trace measured, replayed;
    bool varies;
    trace_init(&measured, &app->arena);
    enum status status = import_record(imported, &measured, quiet);
    if (status == STATUS_OK && !trace_sort(&measured))
        status = STATUS_SYSTEM;
    if (status == STATUS_OK)
        status = foretell(&imported->plan, &options, 1, &app->arena, &replayed, &varies, quiet);
    if (status == STATUS_OK)
        status = account_make(&measured, false, &before, quiet);
    if (status == STATUS_OK)
        status = account_make(&replayed, false, &after, quiet);
    return status == STATUS_OK ? difference_make(&before, &after, &app->arena, out, quiet) : status;
}

/* "; the largest difference: stream s7, GEMM, 3 ms instead of 2 ms", or nothing where none can be told. */
static const char *largest_difference(struct app *app, const struct replay_source *source)
{
    struct imported imported;
    struct difference difference = {0};
    struct diag quiet;
    const char *text = NULL;
    diag_init(&quiet);
    if (import_files(source->paths, source->count, source->options, &imported, &quiet) ==
        STATUS_OK) {
        const enum status status = compare_runs(app, &imported, &difference, &quiet);
        if (status == STATUS_OK && difference.stream_count > 0 &&
            difference.streams[0].row_count > 0) {
            const struct difference_row *row = &difference.streams[0].rows[0];
            const struct account_stream *stream = difference.streams[0].before;
            char was[UNITS_TEXT], is[UNITS_TEXT];
            units_show_time(row->before_ns, was);
            units_show_time(row->after_ns, is);
            text = arena_printf(&app->arena,
                                "; the largest difference, on stream %s: %s%s, %s instead of %s",
                                stream ? stream->name : difference.streams[0].after->name,
                                row->cause ? "idle for " : "", row->name, is, was);
        }
        import_fini(&imported);
    }
    diag_fini(&quiet);
    return text ? text : "";
}

/* True if the plan that --opaque makes has less time without a cause, and this one too much of it. */
static bool opaque_helps(const struct imported *imported)
{
    int most = 0;
    for (size_t r = 0; r < imported->job.rank_count; r++) {
        const int left =
            evidence_unexplained(&imported->job.ranks[r], &imported->evidence[r], true);
        most = left > most ? left : most;
    }
    return plan_is_unexplained(&imported->plan) && most < imported->plan.unexplained.millionths;
}

/* Predicts the plan of host programs that traces became, and notes both times. Off by more than 5% is a warning with the largest difference;
   by more than 20% STATUS_LIMIT, described, unless `force`. A plan that cannot be predicted is a warning. */
static enum status replay_check(struct app *app, const struct imported *imported,
                                const struct replay_source *source, bool force)
{
    const double was_ns = (double)measured_ns(&imported->job);
    double is_ns;
    enum status status = replay_time(&imported->plan, &is_ns, &app->diag);
    if (status != STATUS_OK)
        return status;
    if (isnan(is_ns) || was_ns <= 0) {
        diag_warn(&app->diag, "the plan does not come to its end, and the job did: 'swsim verify' "
                              "shows where it stops");
        return STATUS_OK;
    }
    const double error = is_ns / was_ns - 1;
    char is[UNITS_TEXT], was[UNITS_TEXT];
    units_show_time(is_ns, is);
    units_show_time(was_ns, was);
    if (fabs(error) <= REPLAY_WARNED) {
        diag_note(&app->diag, "replayed %s of %s measured (%+.1f%%)", is, was, 100 * error);
        return STATUS_OK;
    }
    const char *why = largest_difference(app, source);
    if (fabs(error) <= REPLAY_REFUSED || force) {
        diag_warn(
            &app->diag,
            "replayed %s of %s measured (%+.1f%%): predictions of this plan are off by as much%s",
            is, was, 100 * error, why);
        return STATUS_OK;
    }
    return diag_error(
        &app->diag, STATUS_LIMIT,
        "replayed %s of %s measured (%+.1f%%): the plan does not describe the job%s; --%s", is, was,
        100 * error, why,
        opaque_helps(imported) ? "opaque makes idle time without a cause part of the plan"
                               : "force writes it all the same");
}

struct import_request {
    int form;       /* enum import_form */
    int64_t detail; /* of a pipeline, in percent of a step; -1: not given, as those behind it */
    int64_t launch_queue;
    int repeat; /* enum host_calls_repeat */
    struct import_options options;
    const char *steps, *ranks, *path;
    const char *db; /* the store for the measured run; NULL: none */
    bool report, force;
};

/* "A..B" or "A" at the beginning of `text`; returns what is behind it, NULL: it is neither. */
static const char *read_range(const char *text, int64_t *first, int64_t *last)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return NULL;
    *first = *last = strtoll(text, &end, 10);
    if (strncmp(end, "..", 2) == 0) {
        if (!isdigit((unsigned char)end[2]))
            return NULL;
        *last = strtoll(end + 2, &end, 10);
    }
    return *first <= *last ? end : NULL;
}

static enum status parse_steps(struct app *app, const char *text, struct import_options *out)
{
    const char *end = read_range(text, &out->first_step, &out->last_step);
    out->steps_given = true;
    if (end && *end == 0)
        return STATUS_OK;
    return diag_error(&app->diag, STATUS_USAGE, "--steps: found '%s', expected steps such as 5..10",
                      text);
}

/* Ranges with commas between them */
static enum status cmd_import_parse_ranks(struct app *app, const char *text,
                                          struct import_options *out)
{
    struct rank_range *ranges = ARENA_ARRAY(&app->arena, strlen(text) + 1, struct rank_range);
    const char *at = text;
    if (!ranges)
        return diag_no_memory(&app->diag);
    out->ranks = ranges;
    do {
        struct rank_range *range = &ranges[out->rank_count++];
        at = read_range(at, &range->first, &range->last);
    } while (at && *at++ == ',');
    return at && at[-1] == 0
               ? STATUS_OK
               : diag_error(&app->diag, STATUS_USAGE,
                            "--ranks: found '%s', expected ranks such as 0..3,7", text);
}

/* Options that some kinds of files have no use for, or what they are by default. */
static void set_given(struct import_request *request)
{
    struct import_options *options = &request->options;
    enum { DETAIL = 2, LAUNCH_QUEUE = 1024, PERCENT = 10000 };
    options->detail_given = request->detail >= 0;
    options->pipeline.detail = (int)(options->detail_given ? request->detail : DETAIL) * PERCENT;
    options->launch_queue_given = request->launch_queue >= 0;
    options->form.launch_queue = options->launch_queue_given ? request->launch_queue : LAUNCH_QUEUE;
    options->repeat_given = request->repeat >= 0;
    options->form.repeat = options->repeat_given ? request->repeat : REPEAT_SAME;
}

/* The plan's name: that of the file or folder, without those around it and without suffixes. */
static const char *cmd_import_name_of(struct app *app, const char *path)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    const char *base = path + end;
    while (base > path && base[-1] != '/')
        base--;
    const size_t length = strcspn(base, "./");
    return arena_strndup(&app->arena, length > 0 ? base : "import", length > 0 ? length : 6);
}

/* The run of a recording is there already. */
static enum status store_run(struct app *app, struct store *store, const struct imported *imported,
                             struct trace *run)
{
    enum status status =
        imported->job.rank_count > 0 ? import_record(imported, run, &app->diag) : STATUS_OK;
    return status == STATUS_OK ? store_write_trace(store, run, NULL, &app->diag) : status;
}

/* The plan, and the measured run in a store that is made if it is not there. A store that cannot be had leaves no plan. */
static enum status write_results(struct app *app, const struct import_request *request,
                                 const struct imported *imported, struct trace *run)
{
    struct store *store;
    if (!request->db)
        return request->path ? plan_write_file(app, &imported->plan, PLAN_YAML, request->path)
                             : STATUS_OK;
    enum status status = store_open(request->db, true, &store, &app->diag);
    if (status != STATUS_OK)
        return status;
    status = store_run(app, store, imported, run);
    if (status == STATUS_OK && request->path)
        status = plan_write_file(app, &imported->plan, PLAN_YAML, request->path);
    enum status closed = store_close(store, &app->diag);
    return status != STATUS_OK ? status : closed;
}

static enum status cmd_import_report(struct app *app, const struct imported *imported)
{
    struct json json;
    if (!app->json) {
        import_report(imported, stdout);
        return STATUS_OK;
    }
    json_open(&json, stdout);
    json_begin_document(&json, DOCUMENT_IMPORT);
    json_put_string(&json, "plan", imported->plan.name);
    json_put_double(&json, "unexplained", imported->plan.unexplained.millionths / 1e6);
    import_report_json(imported, &json);
    json_end_object(&json);
    return json_close(&json, &app->diag);
}

static enum status import(struct app *app, const struct import_request *request,
                          const struct arguments *files, struct trace *run)
{
    struct imported imported;
    const struct replay_source source = {(const char *const *)files->items, (size_t)files->count,
                                         &request->options};
    enum status status =
        import_files(source.paths, source.count, source.options, &imported, &app->diag);
    if (status != STATUS_OK)
        return status;
    if (imported.plan.about)
        diag_note(&app->diag, "%s", imported.plan.about);
    if (request->db && imported.dumps.rank_count > 0)
        status = diag_error(&app->diag, STATUS_USAGE, "--db: a dump has no measured run");
    if (request->report && imported.job.rank_count == 0 && imported.dumps.rank_count == 0)
        status =
            diag_error(&app->diag, STATUS_USAGE, "--report: only traces and dumps have a ledger");
    if (!request->db && !request->report)
        import_forget(&imported);
    if (status == STATUS_OK && imported.job.rank_count > 0 &&
        request->options.kind == IMPORT_HOST && !request->options.form.without)
        status = replay_check(app, &imported, &source, request->force || !request->path);
    if (status == STATUS_OK && plan_is_unexplained(&imported.plan))
        diag_warn(
            &app->diag,
            "for %.0f%% of its time the device is idle and the trace has no cause, or operations "
            "of "
            "one stream overlap so long: a prediction of this plan would not be that of the job "
            "(--opaque makes that time part of the plan, --report shows it)",
            imported.plan.unexplained.millionths / 1e4);
    if (status == STATUS_OK)
        status = write_results(app, request, &imported, run);
    if (status == STATUS_OK && request->report)
        status = cmd_import_report(app, &imported);
    import_fini(&imported);
    return status;
}

enum status cmd_import(struct app *app, int argc, char **argv)
{
    struct import_request request = {.repeat = -1, .launch_queue = -1, .detail = -1};
    const struct option_spec options[] = {
        {"output", 'o', "PLAN", "the plan's file (default: standard output)", OPTION_TEXT,
         .value = &request.path},
        {"form", 0, "host|pipeline",
         "host programs (the default), or a pipeline whose tasks are the annotations of a step",
         OPTION_CHOICE, .value = &request.form},
        {"detail", 0, "N",
         "pipelines: a part that takes more than N% of a step becomes a task (default 2)",
         OPTION_INTEGER, .value = &request.detail, .max = 100},
        {"repeat", 0, "same|like|never",
         "host programs and recordings: equal steps become one step that is repeated (same, the "
         "default); like: also if their streams wait differently, or by luck",
         OPTION_CHOICE, .value = &request.repeat},
        {"steps", 0, "A..B", "only these steps of the profiler (default: the whole trace)",
         OPTION_TEXT, .value = &request.steps},
        {"ranks", 0, "LIST", "only these ranks, as in 0..3,7 (default: all)", OPTION_TEXT,
         .value = &request.ranks},
        {"report", 0, NULL,
         "print the ledger: why streams are idle, and how that is known; of dumps: the calls",
         OPTION_FLAG, .value = &request.report},
        {"force", 0, NULL, "write the plan even if its predicted time is off by more than 20%",
         OPTION_FLAG, .value = &request.force},
        {"db", 0, "FILE", "store the measured run, for runs, compare and render", OPTION_TEXT,
         .value = &request.db},
        {"opaque", 0, NULL, "idle time without a cause becomes work named 'opaque'", OPTION_FLAG,
         .value = &request.options.form.opaque},
        {"host-waits", 0, NULL, "dumps: the host waits for each operation (default: for none)",
         OPTION_FLAG, .value = &request.options.flight.host_waits},
        {"pair-streams", 0, NULL,
         "dumps: messages in no batch run on a stream of their two ranks, as without device_id",
         OPTION_FLAG, .value = &request.options.flight.pair_streams},
        {"sm-slots", 0, "N",
         "dumps, recordings: operations of NCCL that run at once on a rank (default 0: any number)",
         OPTION_INTEGER, .value = &request.options.flight.sm_slots, .max = PLAN_MAX_RANKS},
        {"launch-order", 0, NULL,
         "dumps, recordings: operations of NCCL on a rank run in the order of their launches",
         OPTION_FLAG, .value = &request.options.flight.launch_order},
        {"order", 0, "waits|locks|seen",
         "recordings: the order of threads is that in which they waited for each other, and locks "
         "exclude each other (waits, the default); also that of their locks; that of their calls "
         "in time (seen)",
         OPTION_CHOICE, .value = &request.options.recorded.order},
        {"queries", 0, "seen|loops|wait|none",
         "recordings: queries are answered as in the run (seen, the default); the program asks "
         "until "
         "the answer is yes, if it did nothing else meanwhile (loops) or always (wait); a yes "
         "orders "
         "nothing if another run need not have it (none)",
         OPTION_CHOICE, .value = &request.options.recorded.queries},
        {"structs", 0, "write|read",
         "recordings: kernels may write what structs among their arguments point to (the default), "
         "or only read it",
         OPTION_CHOICE, .value = &request.options.recorded.structs},
        {"launch-queue", 0, "N",
         "host programs: launches that a stream holds, a graph being one (default 1024; 0: any "
         "number)",
         OPTION_INTEGER, .value = &request.launch_queue, .max = PLAN_MAX_IN_FLIGHT},
        {"without", 0, "NAME",
         "host programs: the host takes no time in what has this name in the ledger: a call, an "
         "operator, an annotation, a line of Python",
         OPTION_TEXT, .value = &request.options.form.without},
        {"name", 0, "NAME", "name of the plan (default: that of the first file)", OPTION_TEXT,
         .value = &request.options.form.name},
    };
    const struct command command = {
        .name = "swsim import",
        .arguments = "FILE|FOLDER...",
        .about =
            "Turn the trace of a real job into a plan of host programs: what its threads "
            "called, what\n"
            "the streams of its device did, and what waited for what. FILE is a trace of "
            "PyTorch's\n"
            "profiler (Kineto, Chrome JSON), an export of Nsight Systems (SQLite), compressed "
            "or not, or\n"
            "a dump of a hang by PyTorch's flight recorder (pickle or JSON), or a recording of "
            "'swsim\n"
            "record'. Several files, those of a folder, and several processes in one file are "
            "ranks of one job.\n"
            "\n"
            "The trace does not say everything: an event without an id is found by the order "
            "of calls\n"
            "or by time. With --report a ledger lists the causes of each stream's idle time, and "
            "what each\n"
            "is known from. If more than 5% of the time has no cause, import warns and 'swsim "
            "predict'\n"
            "refuses the plan.",
        .examples = "  swsim import -o job.yaml trace.json.gz\n"
                    "  swsim import --form=pipeline -o job.yaml trace.json.gz\n"
                    "  swsim import --report rank*.json.gz\n"
                    "  swsim import --steps=5..6 trace.json | swsim verify -\n"
                    "  swsim import recording.swr | swsim verify -\n"
                    "  swsim import --host-waits /tmp/nccl_trace_rank_* | swsim verify -",
        COMMAND_OPTIONS(options),
        .more_arguments = PLAN_MAX_RANKS - 1,
    };
    struct arguments files;
    enum status status = STATUS_OK;
    if (!options_parse(app, &command, argc, argv, &files, &status))
        return status;
    if (request.steps)
        status = parse_steps(app, request.steps, &request.options);
    if (status == STATUS_OK && request.ranks)
        status = cmd_import_parse_ranks(app, request.ranks, &request.options);
    if (status != STATUS_OK)
        return status;
    if (!request.options.form.name)
        request.options.form.name = cmd_import_name_of(app, files.items[0]);
    if (!request.path && !request.report && !request.db)
        request.path = "-";
    request.options.recorded.name = request.options.flight.name = request.options.pipeline.name =
        request.options.form.name;
    request.options.recorded.sm_slots = request.options.flight.sm_slots;
    request.options.recorded.launch_order = request.options.flight.launch_order;
    request.options.kind = (enum import_form)request.form;
    request.options.pipeline.opaque = request.options.form.opaque;
    set_given(&request);
    request.options.recorded.folds = request.options.form.repeat != REPEAT_NEVER;
    request.options.recorded.without_luck = request.options.form.repeat == REPEAT_LIKE;
    if (!request.options.form.name)
        return diag_no_memory(&app->diag);
    struct trace run;
    struct arena arena;
    arena_init(&arena, 0);
    trace_init(&run, &arena);
    request.options.recorded.run = request.db ? &run : NULL;
    status = import(app, &request, &files, &run);
    arena_fini(&arena);
    return status;
}
