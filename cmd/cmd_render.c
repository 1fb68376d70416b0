/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_render.c - `swsim render`: runs of trace stores as timelines, schedules as rows of passes, a plan as a graph. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "api/channels.h"
#include "api/render.h"
#include "base/assert_index.h"
#include "base/output.h"
#include "base/text_stream.h"
#include "base/units.h"
#include "trace/page.h"
#include "trace/plangraph.h"
#include "trace/profiler_json.h"
#include "trace/schedule_picture.h"
#include "trace/timeline.h"

#include "app.h"
#include "options.h"
#include "render_choice.h"

/* ---- gzip ------------------------------------------------------------------------------------ */

/* A text as a file of gzip(1). */

enum {
    GZIP_FORMAT = 15 + 16, /* the largest window; with the header of gzip */
    MEMORY_LEVEL = 8,      /* the default of zlib */
    PIECE = 1 << 30        /* zlib counts in unsigned int */
};

static uInt cmd_render_piece(size_t left)
{
    return left < PIECE ? (uInt)left : PIECE;
}

/* `text` compressed, which the caller frees, and its bytes. NULL: no memory. */
static char *gzip_text(const char *text, size_t bytes, size_t *out_bytes)
{
    z_stream stream = {0};
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_FORMAT, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return NULL;
    const size_t cap = deflateBound(&stream, bytes);
    char *out = malloc(cap);
    size_t read = 0, written = 0;
    int answer = out ? Z_OK : Z_MEM_ERROR;
    while (answer == Z_OK) {
        const uInt in = cmd_render_piece(bytes - read), room = cmd_render_piece(cap - written);
        stream.next_in = (z_const Bytef *)(uintptr_t)(text + read);
        stream.avail_in = in;
        stream.next_out = (Bytef *)out + written;
        stream.avail_out = room;
        answer = deflate(&stream, read + in == bytes ? Z_FINISH : Z_NO_FLUSH);
        read += in - stream.avail_in;
        written += room - stream.avail_out;
    }
    deflateEnd(&stream);
    if (answer != Z_STREAM_END) {
        free(out);
        return NULL;
    }
    *out_bytes = written;
    return out;
}

enum { MOST_SUBJECTS = 2 };
static const double usual_font_pt = 9;

enum shape { SHAPE_AUTO, SHAPE_SCHEDULE, SHAPE_TIMELINE }; /* of --as */

/* Of --format. */
#define FORMATS "auto|svg|png|pdf|dot|json|html"
enum picture_format {
    FORMAT_AUTO,
    FORMAT_SVG,
    FORMAT_PNG,
    FORMAT_PDF,
    FORMAT_DOT,
    FORMAT_JSON,
    FORMAT_HTML
};

struct render_options {
    const char *output, *title;
    int64_t run, width, font_size;
    int format;  /* enum picture_format */
    int arrows;  /* enum timeline_arrows */
    int palette; /* enum palette; -1: not given */
    int p2p;     /* as of channels_choose */
    int shape;   /* enum shape */
    int theme;   /* enum theme */
    const char *times, *time, *iterations;
    struct render_choice choice;
    int only_rank; /* -1: not one */
    bool all, grey;
};

/* One thing to draw: a schedule or a run. `written`: a plan's graph or JSON, which needs neither. */
struct subject {
    bool written, is_chart;
    const char *source; /* as the command line names it, without folders */
    struct chart chart;
    struct trace trace;
    const char *note; /* of a page: the part that it shows; NULL: the whole */
};

struct rendering {
    const struct render_options *options;
    const struct arguments *arguments;
    const char *path; /* of the subject */
    int64_t run;      /* of the store that is open */
    bool alone;       /* the only subject */
    struct subject *subject;
};

static bool cmd_render_ends_with(const char *path, const char *suffix)
{
    const size_t length = strlen(path), end = strlen(suffix);
    return length > end && strcmp(path + length - end, suffix) == 0;
}

static bool wants_json(const struct render_options *options)
{
    const char *path = options->output;
    return options->format == FORMAT_JSON ||
           (options->format == FORMAT_AUTO &&
            (strcmp(path, "-") == 0 || cmd_render_ends_with(path, ".json") ||
             cmd_render_ends_with(path, ".json.gz")));
}

static bool wants_page(const struct render_options *options)
{
    return options->format == FORMAT_HTML ||
           (options->format == FORMAT_AUTO && cmd_render_ends_with(options->output, ".html"));
}

static struct draw_target target_of(const struct render_options *options)
{
    static const enum draw_format formats[] = {DRAW_BY_NAME, DRAW_SVG,     DRAW_PNG,    DRAW_PDF,
                                               DRAW_DOT,     DRAW_BY_NAME, DRAW_BY_NAME};
    const struct look look = {.theme = (enum theme)options->theme,
                              .grey = options->grey,
                              .scale = (double)options->font_size / usual_font_pt};
    return (struct draw_target){.path = options->output,
                                .stream = strcmp(options->output, "-") == 0 ? stdout : NULL,
                                .format = formats[options->format],
                                .look = look};
}

/* The part of a run that is asked for, `from` .. `to` unless it is a time. */
static enum status cmd_render_load(struct app *app, struct store *store,
                                   const struct rendering *rendering, int64_t from, int64_t to,
                                   struct trace *trace)
{
    const struct render_choice *choice = &rendering->options->choice;
    const struct run_part part = {from, to, choice->has_time, choice->from_ns, choice->to_ns};
    return render_run_load(store, rendering->run, &part, &app->arena, trace, &app->diag);
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
static enum status cmd_render_write_json(struct app *app, struct store *store,
                                         const struct rendering *rendering)
{
    const struct render_options *options = rendering->options;
    const struct profiler_json_options json = {
        .no_dependences = options->arrows == TIMELINE_ARROWS_NONE,
        .hide_threads = options->choice.no_threads,
        .one_rank = options->only_rank >= 0,
        .rank = options->only_rank,
    };
    struct app_output output;
    struct trace trace;
    if (options->choice.ranks && options->only_rank < 0)
        return diag_error(&app->diag, STATUS_USAGE,
                          "a file in JSON holds one rank or all ranks: expected --rank=N, or none");
    enum status status =
        cmd_render_load(app, store, rendering, options->choice.from, options->choice.to, &trace);
    if (status == STATUS_OK && cmd_render_ends_with(options->output, ".gz"))
        return write_compressed(app, &trace, &json, options->output);
    if (status == STATUS_OK)
        status = app_create(app, options->output, &output);
    if (status != STATUS_OK)
        return status;
    return app_close_file(app, &output,
                          profiler_json_write(&trace, &json, output.file, &app->diag));
}

static enum status check_uses(struct app *app, const struct rendering *rendering,
                              enum render_kind kind)
{
    return render_uses_check(app, rendering->arguments, kind, rendering->path);
}

/* Asked for as one, it is told what it lacks. */
static bool is_schedule(const struct render_options *options, const struct trace *trace)
{
    return options->shape == SHAPE_SCHEDULE ||
           (options->shape == SHAPE_AUTO && render_schedule_fits(trace));
}

/* Which part a timeline shows. */
static enum timeline_range range_of(const struct render_options *options)
{
    const struct render_choice *choice = &options->choice;
    return choice->has_time                       ? TIMELINE_TIME
           : choice->from >= 0 || choice->to >= 0 ? TIMELINE_ITERATIONS
           : options->all                         ? TIMELINE_ALL
                                                  : TIMELINE_FIRST;
}

static enum status load_run(struct app *app, struct store *store, const struct rendering *rendering,
                            struct trace *trace)
{
    const struct render_options *options = rendering->options;
    bool first = !wants_page(options) && range_of(options) == TIMELINE_FIRST;
    return cmd_render_load(app, store, rendering, first ? STORE_FIRST : options->choice.from,
                           first ? TIMELINE_FIRST_ITERATIONS : options->choice.to, trace);
}

/* "10.2 ms at 1.3 s on rank 0 s7 (its launch by the host)" */
static const char *render_stall_words(struct app *app, const struct trace *trace, int stall)
{
    ASSERT_INDEX(stall, trace->span_count);
    const struct trace_span *span = &trace->spans[stall];
    const struct trace_agent *agent = &trace->agents[span->agent];
    char took[UNITS_TEXT], at[UNITS_TEXT];
    units_show_time((double)(span->end_ns - span->start_ns), took);
    units_show_time((double)span->start_ns, at);
    return arena_printf(&app->arena, "%s at %s on rank %d %s%s%s%s", took, at, agent->rank,
                        agent->name, span->cause ? " (" : "", span->cause ? span->cause : "",
                        span->cause ? ")" : "");
}

/* A run that is too large for a page is loaded again, as far as a window around its longest stall shows it. */
static enum status load_window(struct app *app, struct store *store,
                               const struct rendering *rendering, struct subject *subject)
{
    struct trace *trace = &subject->trace;
    int stalls[PAGE_STALLS];
    struct run_part part = {STORE_ALL, STORE_ALL, true, 0, 0};
    char from[UNITS_TEXT], to[UNITS_TEXT];
    const size_t whole = trace->span_count;
    if (whole <= PAGE_MOST_SPANS || rendering->options->all ||
        range_of(rendering->options) != TIMELINE_FIRST)
        return STATUS_OK;
    const size_t count = page_window(trace, stalls, &part.from_ns, &part.to_ns);
    const char *list = "";
    for (size_t i = 0; list && i < count; i++) {
        const char *words = render_stall_words(app, trace, stalls[i]);
        list = words ? arena_printf(&app->arena, "%s%s%s", list, i > 0 ? ", " : "", words) : NULL;
    }
    units_show_time((double)part.from_ns, from);
    units_show_time((double)part.to_ns, to);
    subject->note =
        list ? arena_printf(&app->arena,
                            "%s to %s of the run, around its longest stall; the longest: %s", from,
                            to, list)
             : NULL;
    if (!subject->note)
        return diag_no_memory(&app->diag);
    diag_note(&app->diag,
              "the run has %zu spans, too many for a page: it shows %s to %s, around the longest "
              "stall; --time=A..B shows another part, --all the whole",
              whole, from, to);
    return render_run_load(store, rendering->run, &part, &app->arena, trace, &app->diag);
}

static enum status cmd_render_take_run(struct app *app, struct store *store, void *context)
{
    const struct rendering *rendering = context;
    const struct render_options *options = rendering->options;
    struct subject *subject = rendering->subject;
    enum status status;
    if (wants_json(options)) {
        subject->written = true;
        status = check_uses(app, rendering, RENDER_JSON);
        if (status != STATUS_OK)
            return status;
        return rendering->alone ? cmd_render_write_json(app, store, rendering)
                                : diag_error(&app->diag, STATUS_USAGE,
                                             "a file in JSON holds one run: expected one DB:RUN");
    }
    const bool page = wants_page(options);
    status = load_run(app, store, rendering, &subject->trace);
    if (status != STATUS_OK)
        return status;
    if (subject->trace.info.kind == RUN_WITNESS)
        return check_uses(app, rendering, page ? RENDER_WITNESS_PAGE : RENDER_WITNESS);
    if (!is_schedule(options, &subject->trace)) {
        status = check_uses(app, rendering, page ? RENDER_PAGE : RENDER_TIMELINE);
        return status == STATUS_OK && page ? load_window(app, store, rendering, subject) : status;
    }
    subject->is_chart = true;
    status = check_uses(app, rendering, page ? RENDER_RUN_PAGE : RENDER_RUN_SCHEDULE);
    return status == STATUS_OK
               ? render_schedule_run(&subject->trace, &app->arena, &subject->chart, &app->diag)
               : status;
}

enum { MANY_BOXES = 1000 }; /* Graphviz takes seconds for so many, and minutes for twice as many */

/* A long silence is announced; in .dot nothing is placed. */
static void tell_of_wait(struct app *app, const struct plan *plan, size_t boxes,
                         const struct draw_target *target)
{
    bool placed = target->format != DRAW_DOT && !cmd_render_ends_with(target->path, ".dot") &&
                  !cmd_render_ends_with(target->path, ".gv");
    if (boxes < MANY_BOXES || !placed || app->quiet || app->json)
        return;
    diag_note(
        &app->diag,
        "%s: Graphviz places %zu boxes, which may take minutes; --format=dot writes the graph "
        "at once",
        plan->name, boxes);
    app_report(app);
}

/* The graph as SVG, within a page. */
static enum status graph_page(struct app *app, const struct plan *plan, bool all,
                              const struct rendering *rendering, struct draw_target target)
{
    const struct render_options *options = rendering->options;
    struct text_stream svg;
    struct app_output output;
    size_t bytes;
    if (!text_open(&svg))
        return diag_no_memory(&app->diag);
    target.format = DRAW_SVG;
    target.stream = svg.out;
    enum status status = plangraph_render(plan, all, &target, &app->diag);
    char *text = text_close(&svg, status == STATUS_OK, &bytes);
    if (status == STATUS_OK && !text)
        status = diag_no_memory(&app->diag);
    if (status == STATUS_OK)
        status = app_create(app, options->output, &output);
    if (status == STATUS_OK)
        status = app_close_file(
            app, &output,
            page_write_picture(plan->name, text, bytes, &target.look, output.file, &app->diag));
    free(text);
    return status;
}

static enum status draw_graph(struct app *app, const struct plan *plan,
                              const struct rendering *rendering)
{
    const struct draw_target target = target_of(rendering->options);
    const bool all = rendering->options->all, page = wants_page(rendering->options);
    size_t boxes = 0;
    enum status status = check_uses(app, rendering, page ? RENDER_GRAPH_PAGE : RENDER_GRAPH);
    rendering->subject->written = true;
    if (status != STATUS_OK)
        return status;
    if (!rendering->alone)
        return diag_error(&app->diag, STATUS_USAGE,
                          "%s: a graph has no axis of time to share: 'swsim predict --db=FILE' "
                          "makes a run of the plan",
                          plan->file);
    if (all && plan->form != FORM_THREADS)
        return diag_error(&app->diag, STATUS_USAGE,
                          "%s: found --all, which has no effect on the graph of a pipeline",
                          plan->file);
    status = plangraph_count(plan, all, &boxes, &app->diag);
    if (status != STATUS_OK)
        return status;
    tell_of_wait(app, plan, boxes, &target);
    return page ? graph_page(app, plan, all, rendering, target)
                : plangraph_render(plan, all, &target, &app->diag);
}

static enum status take_plan(struct app *app, struct plan *plan, void *context)
{
    const struct rendering *rendering = context;
    const struct render_options *options = rendering->options;
    if (wants_json(options))
        return diag_error(&app->diag, STATUS_USAGE,
                          "a plan has no times: 'swsim predict --db=FILE' makes a run of it, which "
                          "can be written as .json");
    if (plan->form != FORM_PROGRAMS)
        return draw_graph(app, plan, rendering);
    enum status status =
        check_uses(app, rendering, wants_page(options) ? RENDER_PLAN_PAGE : RENDER_PLAN_SCHEDULE);
    if (status == STATUS_OK && options->shape == SHAPE_TIMELINE)
        return diag_error(&app->diag, STATUS_USAGE,
                          "%s: found --as=timeline, but a plan has no streams in time: "
                          "'swsim predict --db=FILE' makes a run of it",
                          plan->file);
    if (status == STATUS_OK && options->times)
        status = option_times(app_reader(app), options->times, plan);
    if (status == STATUS_OK)
        status = channels_choose(plan, options->p2p, &app->diag);
    if (status != STATUS_OK)
        return status;
    struct subject *subject = rendering->subject;
    subject->is_chart = true;
    status = render_schedule_plan(plan, &app->arena, &subject->chart, &app->diag);
    if (status == STATUS_OK)
        subject->chart.title = arena_strdup(&app->arena, subject->chart.title);
    return status == STATUS_OK && !subject->chart.title ? diag_no_memory(&app->diag) : status;
}

/* ---- drawing --------------------------------------------------------------------------------- */

static const char *own_title(const struct render_options *options, const struct subject *subjects,
                             size_t at)
{
    const struct subject *subject = &subjects[at];
    return options->title && at == 0 ? options->title
           : subject->is_chart       ? subject->chart.title
                                     : subject->trace.info.plan_name;
}

/* The title that was asked for is the first one's, the other has its plan's name; two of one name have their sources
   behind it. */
static const char *title_of(struct app *app, const struct render_options *options,
                            const struct subject *subjects, size_t count, size_t at)
{
    const char *title = own_title(options, subjects, at);
    const char *other = count == 2 ? own_title(options, subjects, 1 - at) : NULL;
    bool alike = title && other && strcmp(title, other) == 0;
    bool apart = alike && strcmp(subjects[0].source, subjects[1].source) != 0;
    return apart ? arena_printf(&app->arena, "%s, %s", title, subjects[at].source) : title;
}

static enum status charts_page(struct app *app, const struct chart *charts, size_t count,
                               enum palette palette, const struct draw_target *target)
{
    struct app_output output;
    enum status status = app_create(app, target->path, &output);
    if (status != STATUS_OK)
        return status;
    return app_close_file(
        app, &output,
        page_write_charts(charts, count, palette, &target->look, output.file, &app->diag));
}

static enum status draw_charts(struct app *app, const struct render_options *options,
                               struct subject *subjects, size_t count)
{
    const struct draw_target target = target_of(options);
    const struct schedule_picture_options picture = {
        .palette = options->palette < 0 ? PALETTE_PYTORCH : (enum palette)options->palette,
        .width_pt = (double)options->width,
        .no_messages = options->arrows == TIMELINE_ARROWS_NONE};
    struct chart charts[MOST_SUBJECTS];
    for (size_t i = 0; i < count; i++) {
        charts[i] = subjects[i].chart;
        charts[i].title = title_of(app, options, subjects, count, i);
    }
    return wants_page(options)
               ? charts_page(app, charts, count, picture.palette, &target)
               : schedule_picture_render(charts, count, &picture, &target, &app->diag);
}

static enum status write_page(struct app *app, const struct trace *traces, size_t count,
                              const struct timeline_options *timeline,
                              const struct draw_target *target)
{
    struct app_output output;
    enum status status = app_create(app, target->path, &output);
    if (status != STATUS_OK)
        return status;
    return app_close_file(
        app, &output, page_write(traces, count, timeline, &target->look, output.file, &app->diag));
}

static enum status draw_timelines(struct app *app, const struct render_options *options,
                                  struct subject *subjects, size_t count)
{
    const struct draw_target target = target_of(options);
    struct render_choice choice = options->choice;
    bool time = choice.has_time;
    const char *titles[MOST_SUBJECTS];
    const struct timeline_options timeline = {
        .range = range_of(options),
        .from = time               ? choice.from_ns
                : choice.from >= 0 ? choice.from
                                   : 0,
        .to = time             ? choice.to_ns
              : choice.to >= 0 ? choice.to
                               : INT64_MAX,
        .arrows = (enum timeline_arrows)options->arrows,
        .width_pt = (double)options->width,
        .titles = titles,
        .note = subjects[0].note,
        .shows = render_choice_shows,
        .context = &choice,
    };
    struct trace traces[MOST_SUBJECTS];
    for (size_t i = 0; i < count; i++) {
        traces[i] = subjects[i].trace;
        titles[i] = title_of(app, options, subjects, count, i);
    }
    return wants_page(options) ? write_page(app, traces, count, &timeline, &target)
                               : timeline_render(traces, count, &timeline, &target, &app->diag);
}

static enum status cmd_render_draw(struct app *app, const struct render_options *options,
                                   struct subject *subjects, size_t count)
{
    if (subjects->written)
        return STATUS_OK;
    if (count == 2 && subjects[0].is_chart != subjects[1].is_chart)
        return diag_error(&app->diag, STATUS_USAGE,
                          "a schedule and a timeline do not stand on one axis: --as chooses");
    return subjects->is_chart ? draw_charts(app, options, subjects, count)
                              : draw_timelines(app, options, subjects, count);
}

static enum status cmd_render_take(struct app *app, const struct render_options *options,
                                   const struct arguments *arguments, int at,
                                   struct subject *subject)
{
    ASSERT_INDEX(at, arguments->count);
    const char *spec = arguments->items[at], *folder = strrchr(spec, '/');
    subject->source = folder ? folder + 1 : spec;
    struct rendering rendering = {.options = options,
                                  .arguments = arguments,
                                  .run = options->run,
                                  .alone = arguments->count == 1,
                                  .subject = subject};
    int64_t run;
    bool store;
    enum status status = option_run(app_reader(app), "run", spec, &rendering.path, &run);
    if (status == STATUS_OK && option_has_run(spec) && options_given(arguments, "run"))
        status = diag_error(&app->diag, STATUS_USAGE, "%s names its run: expected no --run", spec);
    if (status == STATUS_OK && option_has_run(spec))
        rendering.run = run;
    if (status == STATUS_OK)
        status = run_spec_is_store(app, rendering.path, &store);
    if (status != STATUS_OK)
        return status;
    return store ? app_with_store(app, rendering.path, cmd_render_take_run, &rendering)
                 : app_with_written(app, rendering.path, take_plan, &rendering);
}

static enum status render_all(struct app *app, struct render_options *options,
                              const struct arguments *arguments)
{
    struct subject subjects[MOST_SUBJECTS] = {0};
    size_t count = (size_t)arguments->count;
    enum status status = STATUS_OK;
    if (options->time)
        status = render_choice_time(app, options->time, &options->choice);
    if (status == STATUS_OK && options->iterations)
        status = render_choice_iterations(app, options->iterations, &options->choice);
    if (status == STATUS_OK && options->choice.ranks)
        status = render_choice_ranks(app, options->choice.ranks, &options->only_rank);
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = cmd_render_take(app, options, arguments, (int)i, &subjects[i]);
    return status == STATUS_OK ? cmd_render_draw(app, options, subjects, count) : status;
}

enum status cmd_render(struct app *app, int argc, char **argv)
{
    struct render_options render = {.run = STORE_LATEST,
                                    .only_rank = -1,
                                    .choice = {.from = STORE_ALL, .to = STORE_ALL},
                                    .palette = -1,
                                    .p2p = CHANNELS_NOT_GIVEN};
    const struct option_spec options[] = {
        {"output", 'o', "FILE",
         "output file: .svg, .png, .pdf, .dot; a run also .html, .json, .json.gz; -: standard "
         "output",
         OPTION_TEXT, .value = &render.output},
        {"format", 0, FORMATS, "format (default auto: by the file's suffix; -: JSON)",
         OPTION_CHOICE, .value = &render.format},
        {"run", 0, "N", "which run of the store (default: the latest); DB:N says it too",
         OPTION_INTEGER, .value = &render.run, .max = INT64_MAX},
        {"rank", 0, "LIST", "only these ranks: 3 or 0-3,8 (default: all)", OPTION_TEXT,
         .value = &render.choice.ranks},
        {"stream", 0, "LIST",
         "only streams and threads of these names: compute,comm* (default: all)", OPTION_TEXT,
         .value = &render.choice.streams},
        {"time", 0, "A..B", "only this time of a run: 10ms..25ms", OPTION_TEXT,
         .value = &render.time, .excludes = "from to iterations all"},
        {"iterations", 0, "A..B", "only these iterations: 10..14", OPTION_TEXT,
         .value = &render.iterations, .excludes = "from to all"},
        {"from", 0, "N", "first iteration to draw (default: the first)", OPTION_INTEGER,
         .value = &render.choice.from, .max = INT64_MAX},
        {"to", 0, "N", "last iteration to draw (default: the first few; .json: the last)",
         OPTION_INTEGER, .value = &render.choice.to, .max = INT64_MAX},
        {"all", 0, NULL, "all iterations; of host programs, each operation", OPTION_FLAG,
         .value = &render.all},
        {"arrows", 0, "auto|none|dependences|all", "arrows (default auto: dependences if few)",
         OPTION_CHOICE, .value = &render.arrows},
        {"width", 0, "PT",
         "width of the picture in points (default: 1200; a schedule's: as needed)", OPTION_INTEGER,
         .value = &render.width, .min = 400, .max = 20000},
        {"font-size", 0, "PT", "size of labels in points, with all else (default 9)",
         OPTION_INTEGER, .value = &render.font_size, .min = 4, .max = 72},
        {"theme", 0, "light|dark|paper", "colours for a screen or for print (default light)",
         OPTION_CHOICE, .value = &render.theme},
        {"bw", 0, NULL, "greys instead of colours", OPTION_FLAG, .value = &render.grey},
        {"as", 0, "auto|schedule|timeline",
         "a run of passes: as rows of passes, or as streams (default auto: passes)", OPTION_CHOICE,
         .value = &render.shape},
        {"times", 0, "F=T,B=T,...", "rank programs: durations of actions (default: the plan's)",
         OPTION_TEXT, .value = &render.times},
        {"p2p", 0, "group|pair|direction|edge",
         "rank programs: channels of messages (default: the plan's)", OPTION_CHOICE,
         .value = &render.p2p},
        {"palette", 0, "pytorch|dualpipe|zero-bubble|grey",
         "rank programs: colours (default pytorch)", OPTION_CHOICE, .value = &render.palette},
        {"title", 0, "TEXT", "title (default: the plan's name)", OPTION_TEXT,
         .value = &render.title},
        {"no-threads", 0, NULL, "draw streams only", OPTION_FLAG,
         .value = &render.choice.no_threads},
    };
    const struct command command = {
        .name = "swsim render",
        .arguments = "DB[:RUN]|PLAN [DB[:RUN]|PLAN]",
        .about = "Draw a run in a trace store as a timeline, a counterexample in one as a "
                 "storyboard, a\n"
                 "plan of the pipeline form or host programs as a graph, rank programs and their "
                 "runs as\n"
                 "a schedule: a row for each rank, the passes to scale, memory over time beneath. "
                 "Two\n"
                 "runs stand one above the other on one axis.",
        .examples = "  swsim render runs.db --from=10 --to=14 -o run.svg\n"
                    "  swsim render runs.db --rank=0 -o trace.json\n"
                    "  swsim render runs.db -o timeline.html\n"
                    "  swsim render runs.db:1 runs.db:2 --theme=dark -o before-and-after.svg\n"
                    "  swsim render plans/torchrec/sparse_dist.yaml -o plan.svg\n"
                    "  swsim generate zb_h1 -p4 -m8 | swsim render - -o zb.svg",
        .more_arguments = MOST_SUBJECTS - 1,
        COMMAND_OPTIONS(options),
    };
    struct arguments arguments;
    enum status status;
    if (!options_parse(app, &command, argc, argv, &arguments, &status))
        return status;
    if (!render.output)
        return diag_error(&app->diag, STATUS_USAGE, "missing option: --output=FILE");
    return render_all(app, &render, &arguments);
}
