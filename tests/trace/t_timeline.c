/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_timeline.c - timeline pictures of a made-up but plausible run: a sparse training pipeline of
 * depth 3 on three streams, clock-driven, as a small simulation in this file gives it. SWSIM_TEMP=DIR
 * keeps the pictures.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/harness.h"
#include "tests/tap.h"
#include "trace/timeline.h"

/* Graphviz keeps its plugins and fonts until the process ends; not ours to free. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libgvc\nleak:libgvplugin\nleak:libfontconfig\nleak:libpango\nleak:libcairo\n"
           "leak:libglib\nleak:libgobject\nleak:libcgraph\nleak:libltdl\nleak:libexpat\n";
}

/* ---- a run ----------------------------------------------------------------------------------- */

enum { TASKS = 8, STREAMS = 3, THREADS = 2, DEPTH = 3 };
enum { H2D, DIST_START, DIST_WAIT, ZERO_GRAD, WAIT_BATCH, FORWARD, BACKWARD, STEP };

struct sketch_task {
    const char *name;
    int stage, stream, thread;
    int64_t time_us;
    int on; /* the task it depends on, -1: none */
};

static const char *const stream_names[STREAMS] = {"memcpy", "data_dist", "main"};
static const char *const thread_names[THREADS] = {"default", "dist"};

/* In enqueue order. */
static const struct sketch_task tasks[TASKS] = {
    [H2D] = {"H2D", 0, 0, 0, 3000, -1},
    [DIST_START] = {"InputDistStart", 1, 1, 1, 400, H2D},
    [DIST_WAIT] = {"InputDistWait", 1, 1, 1, 2500, DIST_START},
    [ZERO_GRAD] = {"ZeroGrad", 2, 2, 0, 20, -1},
    [WAIT_BATCH] = {"WaitBatch", 2, 2, 0, 5, DIST_WAIT},
    [FORWARD] = {"Forward", 2, 2, 0, 4000, WAIT_BATCH},
    [BACKWARD] = {"Backward", 2, 2, 0, 5000, FORWARD},
    [STEP] = {"OptimizerStep", 2, 2, 0, 600, BACKWARD},
};

struct sketch {
    struct trace *trace;
    int rank, iterations;
    int streams[STREAMS], threads[THREADS]; /* agents */
    int64_t stream_ns[STREAMS], thread_ns[THREADS];
    int64_t end_ns[64][TASKS]; /* by iteration */
    int spans[64][TASKS];
};

static int add_span(struct sketch *sketch, int agent, enum span_kind kind, const char *task,
                    int64_t iteration, int64_t start_ns, int64_t end_ns, const char *cause)
{
    const struct trace_span span = {agent, kind, task, iteration, start_ns, end_ns, cause};
    return trace_add_span(sketch->trace, &span);
}

/* The CPU part on the task's thread, then the device part as soon as its stream and input allow. */
static void run_task(struct sketch *sketch, int id, int iteration)
{
    const struct sketch_task *task = &tasks[id];
    char cause[64];
    int64_t *thread_ns = &sketch->thread_ns[task->thread];
    int64_t *stream_ns = &sketch->stream_ns[task->stream];
    int64_t host_ns = 40000 + 10000 * ((id * 7 + iteration) % 3);
    int host = add_span(sketch, sketch->threads[task->thread], SPAN_HOST, task->name, iteration,
                        *thread_ns, *thread_ns + host_ns, NULL);
    *thread_ns += host_ns;
    int64_t start_ns = *thread_ns;
    snprintf(cause, sizeof cause, "launch");
    if (task->on >= 0 && sketch->end_ns[iteration][task->on] > start_ns) {
        start_ns = sketch->end_ns[iteration][task->on];
        snprintf(cause, sizeof cause, "%s %d", tasks[task->on].name, iteration);
    }
    if (start_ns > *stream_ns)
        add_span(sketch, sketch->streams[task->stream], SPAN_WAIT, task->name, iteration,
                 *stream_ns, start_ns, cause);
    start_ns = start_ns > *stream_ns ? start_ns : *stream_ns;
    int64_t jitter_ns = 1000 * task->time_us / 100 * ((iteration * 5 + id * 3 + sketch->rank) % 11);
    int64_t end_ns = start_ns + 1000 * task->time_us + jitter_ns;
    int span = add_span(sketch, sketch->streams[task->stream], SPAN_DEVICE, task->name, iteration,
                        start_ns, end_ns, NULL);
    *stream_ns = sketch->end_ns[iteration][id] = end_ns;
    sketch->spans[iteration][id] = span;
    trace_add_edge(sketch->trace, host, span, EDGE_LAUNCH);
    if (task->on >= 0)
        trace_add_edge(sketch->trace, sketch->spans[iteration][task->on], span, EDGE_DEPENDENCE);
}

static void retire(struct sketch *sketch, int iteration)
{
    char cause[32];
    int64_t start_ns = sketch->end_ns[iteration][H2D] - 1000 * tasks[H2D].time_us;
    int64_t retire_ns = sketch->end_ns[iteration][STEP];
    snprintf(cause, sizeof cause, "iteration %d", iteration);
    for (int i = 0; i < THREADS; i++) {
        if (retire_ns > sketch->thread_ns[i])
            add_span(sketch, sketch->threads[i], SPAN_WAIT, NULL, -1, sketch->thread_ns[i],
                     retire_ns, cause);
        sketch->thread_ns[i] = retire_ns > sketch->thread_ns[i] ? retire_ns : sketch->thread_ns[i];
    }
    trace_add_iteration(sketch->trace,
                        &(struct trace_iteration){sketch->rank, iteration, start_ns, retire_ns});
}

static void run_rank(struct trace *trace, int rank, int iterations)
{
    struct sketch sketch = {.trace = trace, .rank = rank, .iterations = iterations};
    for (int i = 0; i < STREAMS; i++)
        sketch.streams[i] = trace_add_agent(trace, rank, TRACE_STREAM, stream_names[i], i);
    for (int i = 0; i < THREADS; i++)
        sketch.threads[i] = trace_add_agent(trace, rank, TRACE_THREAD, thread_names[i], i);
    for (int period = 0; period < iterations + DEPTH - 1; period++) {
        if (period >= DEPTH)
            retire(&sketch, period - DEPTH);
        for (int id = 0; id < TASKS; id++) {
            int iteration = period - tasks[id].stage;
            if (iteration >= 0 && iteration < iterations)
                run_task(&sketch, id, iteration);
        }
    }
    retire(&sketch, iterations - 1);
}

static void build_run(struct trace *trace, struct arena *arena, int ranks, int iterations)
{
    trace_init(trace, arena);
    trace_set_info(trace, &(struct run_info){
                              .kind = RUN_SIMULATED,
                              .plan_name = "TrainPipelineSparseDist",
                              .driver = RUN_DRIVER_CLOCK,
                              .ranks = ranks,
                              .seed = 1,
                              .iterations_wanted = iterations,
                              .finished = RUN_FINISHED,
                          });
    for (int rank = 0; rank < ranks; rank++)
        run_rank(trace, rank, iterations);
    trace_sort(trace);
}

/* ---- pictures -------------------------------------------------------------------------------- */

static long file_size(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? (long)info.st_size : -1;
}

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        count++;
    return count;
}

static bool is_of_rank_2(void *context, const struct trace_agent *agent)
{
    (void)context;
    return agent->rank == 2;
}

static bool render(const struct trace *trace, struct timeline_options options, const char *name)
{
    struct diag diag;
    diag_init(&diag);
    enum status status =
        timeline_render(trace, 1, &options, &(struct draw_target){.path = path_temp(name)}, &diag);
    tap_ok(status == STATUS_OK && diag.errors == 0, "%s is drawn", name);
    if (diag.count)
        tap_note("%s", diag.messages[0].text);
    diag_fini(&diag);
    return status == STATUS_OK;
}

static void refused(const struct trace *trace, struct timeline_options options, const char *path,
                    enum status want, const char *part)
{
    struct diag diag;
    diag_init(&diag);
    enum status status =
        timeline_render(trace, 1, &options, &(struct draw_target){.path = path}, &diag);
    tap_is_int(status, want, "%s is refused", path);
    tap_ok(diag.errors == 1 && strstr(diag.messages[0].text, part), "saying '%s'", part);
    if (diag.count)
        tap_note("%s", diag.messages[0].text);
    diag_fini(&diag);
}

static void test_svg(const struct trace *trace)
{
    if (!render(trace, (struct timeline_options){0}, "first.svg"))
        return;
    char *svg = file_text(path_temp("first.svg"));
    tap_ok(count_of(svg, ">Forward 5<") == 1, "the last of the first six iterations has its label");
    tap_ok(count_of(svg, ">TrainPipelineSparseDist<") == 1, "the title is the plan's name");
    tap_ok(strstr(svg, "xlink:title=\"Forward 0; rank 0 stream main; ") != NULL,
           "boxes have tooltips");
    tap_ok(!strstr(svg, "<image") && !strstr(svg, "href=\"http"), "the file needs no other file");
    tap_ok(file_size(path_temp("first.svg")) < 300000, "six iterations take less than 300 kB (%ld)",
           file_size(path_temp("first.svg")));
    free(svg);
}

static void test_ranges(const struct trace *trace)
{
    struct timeline_options options = {.range = TIMELINE_ITERATIONS, .from = 20, .to = 22};
    if (render(trace, options, "middle.svg")) {
        char *svg = file_text(path_temp("middle.svg"));
        tap_ok(strstr(svg, ">Forward 21<") && !strstr(svg, ">Forward 17<") &&
                   !strstr(svg, ">Forward 26<"),
               "iterations 20 to 22, and not much else");
        free(svg);
    }
    options = (struct timeline_options){.range = TIMELINE_TIME, .from = 100000000, .to = 130000000};
    render(trace, options, "time.svg");
    render(trace, (struct timeline_options){.range = TIMELINE_ALL}, "all.svg");
    const char *const title = "Ti<tle> & \\N \"q\"";
    options = (struct timeline_options){.arrows = TIMELINE_ARROWS_ALL, .titles = &title};
    if (render(trace, options, "arrows.svg")) {
        char *svg = file_text(path_temp("arrows.svg"));
        tap_ok(strstr(svg, ">Ti&lt;tle&gt; &amp; \\N &quot;q&quot;<") != NULL,
               "a title is taken as it is");
        free(svg);
    }
    options = (struct timeline_options){.hide_threads = true, .width_pt = 800};
    if (render(trace, options, "streams.svg")) {
        char *svg = file_text(path_temp("streams.svg"));
        tap_ok(!strstr(svg, "thread"), "threads can be left out");
        free(svg);
    }
}

static void test_formats(const struct trace *trace)
{
    unsigned char head[4] = {0};
    if (render(trace, (struct timeline_options){0}, "first.png")) {
        FILE *png = fopen(path_temp("first.png"), "rb");
        tap_ok(png && fread(head, 1, 4, png) == 4 && memcmp(head, "\x89PNG", 4) == 0,
               "a PNG is a PNG");
        if (png)
            fclose(png);
    }
    if (!render(trace, (struct timeline_options){0}, "first.dot"))
        return;
    char command[1024], size[2][128] = {"", "?"};
    snprintf(command, sizeof command, "dot -Tsvg '%s' -o '%s' 2>&1", path_temp("first.dot"),
             path_temp("by_dot.svg"));
    if (system("dot -V >/dev/null 2>&1") != 0) {
        tap_skip("no dot program here");
        return;
    }
    tap_is_int(system(command), 0, "dot draws the DOT text");
    const char *const files[] = {"first.svg", "by_dot.svg"};
    int texts[2];
    for (int i = 0; i < 2; i++) {
        char *svg = file_text(path_temp(files[i]));
        const char *box = strstr(svg, "viewBox");
        snprintf(size[i], sizeof size[i], "%.*s", box ? (int)strcspn(box, ">") : 0, box ? box : "");
        texts[i] = count_of(svg, "<text");
        free(svg);
    }
    tap_is_int(texts[1], texts[0], "with the same texts as we do");
    tap_is_str(size[1], size[0], "in the same size");
}

static void test_refusals(const struct trace *trace)
{
    struct arena arena;
    struct trace empty;
    const struct timeline_options none = {0};
    arena_init(&arena, 0);
    trace_init(&empty, &arena);
    refused(&empty, none, path_temp("empty.svg"), STATUS_INPUT, "no spans");
    refused(trace, none, path_temp("picture.jpeg"), STATUS_USAGE, "expected .svg");
    refused(trace, none, path_temp("no.such/folder.svg"), STATUS_SYSTEM, "No such file");
    refused(trace, (struct timeline_options){.range = TIMELINE_ITERATIONS, .from = 90, .to = 99},
            path_temp("none.svg"), STATUS_INPUT, "no iterations 90 to 99");
    refused(trace, (struct timeline_options){.range = TIMELINE_TIME, .from = -9, .to = -3},
            path_temp("none.svg"), STATUS_INPUT, "in this time");
    refused(trace, (struct timeline_options){.width_pt = 3}, path_temp("none.svg"), STATUS_USAGE,
            "at least");
    refused(trace, (struct timeline_options){.shows = is_of_rank_2}, path_temp("none.svg"),
            STATUS_INPUT, "no rank");
    tap_is_int(file_size(path_temp("none.svg")), -1, "nothing is written then");
    if (access("/dev/full", W_OK) == 0 && symlink("/dev/full", path_temp("full.svg")) == 0)
        refused(trace, none, path_temp("full.svg"), STATUS_SYSTEM, "No space left");
    else
        tap_skip("no /dev/full here");
    arena_fini(&arena);
}

/* Steps instead of time, tasks without iteration, names that Graphviz might trip over. */
static void test_witness(void)
{
    struct arena arena;
    struct trace trace;
    arena_init(&arena, 0);
    trace_init(&trace, &arena);
    trace_set_info(&trace,
                   &(struct run_info){.kind = RUN_WITNESS, .plan_name = "<b>&amp;\\l", .ranks = 2});
    for (int rank = 0; rank < 2; rank++) {
        int stream = trace_add_agent(&trace, rank, TRACE_STREAM, "\xc3\xbc\"<s>", 0);
        int thread = trace_add_agent(&trace, rank, TRACE_THREAD, "default", 0);
        trace_add_span(&trace, &(struct trace_span){thread, SPAN_HOST, "launch a<b>", -1, rank,
                                                    rank + 1, NULL});
        trace_add_span(&trace, &(struct trace_span){stream, SPAN_DEVICE, "all_reduce & more", 0,
                                                    rank + 2, rank + 4, NULL});
        trace_add_span(&trace, &(struct trace_span){thread, SPAN_WAIT, "sync", -1, rank + 4, 12,
                                                    "rank 1 in \"A\""});
    }
    if (render(&trace, (struct timeline_options){0}, "witness.svg")) {
        char *svg = file_text(path_temp("witness.svg"));
        tap_ok(strstr(svg, ">step 1<") != NULL, "a witness counts steps");
        tap_ok(strstr(svg, ">rank 1 streams<") != NULL, "ranks have headers");
        free(svg);
    }
    arena_fini(&arena);
}

/* The middle of a label, in points from the left; 0: not in the picture. */
static double label_x(const char *svg, const char *label)
{
    static const char before[] = "text-anchor=\"middle\" x=\"";
    char words[64];
    double x = 0;
    snprintf(words, sizeof words, ">%s<", label);
    const char *at = strstr(svg, words);
    for (const char *text = svg; at && (text = strstr(text, before)) && text < at; text++)
        x = strtod(text + strlen(before), NULL);
    return at ? x : 0;
}

/* Measured waits overlap work: on a stream First lasts from 0 to 50, Second from 100 to 150. */
static void test_overlap(void)
{
    static const struct {
        int64_t start_ns, end_ns;
        const char *cause;
    } waits[] = {{20, 100, "launch"}, {60, 120, "resource"}, {105, 145, "hidden"}};
    struct arena arena;
    struct trace trace;
    arena_init(&arena, 0);
    trace_init(&trace, &arena);
    trace_set_info(&trace, &(struct run_info){.kind = RUN_MEASURED, .plan_name = "p", .ranks = 1});
    for (int i = 0; i < 3; i++) {
        int stream =
            trace_add_agent(&trace, 0, TRACE_STREAM, (const char *[]){"a", "b", "c"}[i], i);
        char names[2][16];
        snprintf(names[0], sizeof names[0], "First%d", i);
        snprintf(names[1], sizeof names[1], "Second%d", i);
        for (int k = 0; k < 2; k++)
            trace_add_span(&trace, &(struct trace_span){stream, SPAN_DEVICE, names[k], -1, 100 * k,
                                                        100 * k + 50, NULL});
        trace_add_span(&trace, &(struct trace_span){stream, SPAN_WAIT, NULL, -1, waits[i].start_ns,
                                                    waits[i].end_ns, waits[i].cause});
    }
    trace_sort(&trace);
    if (render(&trace, (struct timeline_options){.range = TIMELINE_ALL}, "overlap.svg")) {
        char *svg = file_text(path_temp("overlap.svg"));
        double first = label_x(svg, "First0"), second = label_x(svg, "Second0");
        double ns = (second - first) / 100; /* middles: 25 and 125 */
        tap_ok(first > 0 && second > first, "works have labels");
        tap_ok(label_x(svg, "launch") > first + 49 * ns && label_x(svg, "launch") < first + 51 * ns,
               "a wait that begins under work has its label behind that");
        tap_ok(label_x(svg, "resource") > first + 54 * ns &&
                   label_x(svg, "resource") < first + 56 * ns,
               "one that ends under work has it in front");
        tap_ok(label_x(svg, "hidden") == 0, "one under work has none");
        free(svg);
    }
    arena_fini(&arena);
}

int main(void)
{
    struct arena arena;
    struct trace one, four;
    arena_init(&arena, 0);
    build_run(&one, &arena, 1, 40);
    build_run(&four, &arena, 4, 8);
    test_svg(&one);
    test_ranges(&one);
    test_formats(&one);
    render(&four, (struct timeline_options){0}, "ranks.svg");
    render(&four, (struct timeline_options){.shows = is_of_rank_2}, "rank2.svg");
    test_witness();
    test_overlap();
    test_refusals(&one);
    arena_fini(&arena);
    return tap_done();
}
