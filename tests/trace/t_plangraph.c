/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_plangraph.c - the picture of a plan's dependences. SWSIM_TEMP=DIR keeps the pictures.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"
#include "tests/harness.h"
#include "tests/tap.h"
#include "trace/plangraph.h"

/* Graphviz keeps its plugins and fonts until the process ends; not ours to free. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libgvc\nleak:libgvplugin\nleak:libfontconfig\nleak:libpango\nleak:libcairo\n"
           "leak:libglib\nleak:libgobject\nleak:libcgraph\nleak:libltdl\nleak:libexpat\n";
}

/* A plan of three streams; the names are chosen to trip over. */
static void build_plan(struct plan *plan)
{
    static const char *stream_names[] = {"memcpy", "data_dist", "main", "<unused>"};
    static const char *group_names[] = {"default"};
    static struct task tasks[] = {
        {.name = "H2D", .stage = 0, .stream = 0, .time_ns = 3000000},
        {.name = "InputDistStart", .stage = 1, .stream = 1, .time_ns = 400000},
        {.name = "Input \"Dist\" <Wait>", .stage = 1, .stream = 1, .globally_ordered = true},
        {.name = "Forward & more", .stage = 2, .stream = 2, .time_ns = 4000000},
        {.name = "Backward\\N", .stage = 2, .stream = 2, .time_ns = 5000000},
        {.name = "OptimizerStep", .stage = 2, .stream = 2, .time_ns = 600000},
        {.name = "Host", .stage = 3, .stream = -1, .host_time_ns = 5000},
    };
    static struct dep deps[] = {{.task = 1, .on = 0},
                                {.task = 2, .on = 1},
                                {.task = 3, .on = 2},
                                {.task = 4, .on = 3},
                                {.task = 5, .on = 4},
                                {.task = 6, .on = 5},
                                {.task = 3, .on = 5, .distance = 1}};
    *plan = (struct plan){.name = "Sparse & \"dense\"", .form = FORM_PIPELINE, .ranks = 1};
    plan->streams = (struct names){.items = stream_names, .count = 4, .cap = 4};
    plan->groups = (struct names){.items = group_names, .count = 1, .cap = 1};
    plan->pipeline.tasks = tasks;
    plan->pipeline.task_count = sizeof tasks / sizeof *tasks;
    plan->pipeline.deps = deps;
    plan->pipeline.dep_count = sizeof deps / sizeof *deps;
    plan->pipeline.intra_count = plan->pipeline.dep_count - 1;
}

/* Two threads of a rank and one of another: an event, a flag, a queue between them. */
static void build_threads(struct plan *plan)
{
    static const char *streams[] = {"comm", "main"}, *events[] = {"ready"}, *flags[] = {"go"};
    static struct queue queues[] = {{.name = "batches", .capacity = 2}};
    static struct host_op loader[] = {
        {.kind = OP_COPY, .name = "h2d", .stream = 0, .object = -1},
        {.kind = OP_RECORD, .stream = 0, .object = 0},
        {.kind = OP_PUT, .stream = -1, .object = 0},
    };
    static struct host_op trainer[] = {
        {.kind = OP_GET, .stream = -1, .object = 0},
        {.kind = OP_WAIT, .stream = 1, .object = 0},
        {.kind = OP_LAUNCH, .name = "forward", .stream = 1, .object = -1},
        {.kind = OP_SIGNAL, .stream = -1, .object = 0},
        {.kind = OP_SYNC, .sync = SYNC_DEVICE, .stream = -1, .object = -1},
    };
    static struct host_op other[] = {
        {.kind = OP_AWAIT, .stream = -1, .object = 0},
        {.kind = OP_WAIT, .stream = 1, .object = 0}, /* its own rank's event: no arrow */
    };
    static struct host_thread threads[] = {
        {.rank = 0, .name = "loader", .ops = loader, .op_count = 3},
        {.rank = 0, .name = "trainer", .ops = trainer, .op_count = 5},
        {.rank = 1, .name = "trainer", .ops = other, .op_count = 2},
    };
    *plan = (struct plan){.name = "Loader and trainer", .form = FORM_THREADS, .ranks = 2};
    plan->streams = (struct names){.items = streams, .count = 2, .cap = 2};
    plan->events = (struct names){.items = events, .count = 1, .cap = 1};
    plan->flags = (struct names){.items = flags, .count = 1, .cap = 1};
    plan->queues = queues;
    plan->queue_count = 1;
    plan->threads = threads;
    plan->thread_count = 3;
}

static void render(const struct plan *plan, const char *name, enum status want, const char *part)
{
    struct diag diag;
    diag_init(&diag);
    tap_is_int(plangraph_render(plan, false, &(struct draw_target){.path = path_temp(name)}, &diag),
               want, "%s", name);
    if (want == STATUS_OK)
        tap_is_int((long long)diag.errors, 0, "without an error");
    else
        tap_ok(diag.errors == 1 && strstr(diag.messages[0].text, part), "saying '%s'", part);
    if (diag.count)
        tap_note("%s", diag.messages[0].text);
    diag_fini(&diag);
}

static int lines_with(const char *name, const char *part)
{
    char line[4096];
    int found = 0;
    FILE *file = fopen(path_temp(name), "r");
    while (file && fgets(line, sizeof line, file))
        found += strstr(line, part) != NULL;
    if (file)
        fclose(file);
    return found;
}

static bool contains(const char *name, const char *part)
{
    return lines_with(name, part) > 0;
}

int main(void)
{
    struct plan plan;
    build_plan(&plan);
    render(&plan, "plan.svg", STATUS_OK, "");
    tap_ok(contains("plan.svg", ">OptimizerStep<"), "a task stands in it");
    tap_ok(contains("plan.svg", ">stage 0, 3ms<"), "with its stage and time");
    tap_ok(contains("plan.svg", ">Backward\\N<"), "and its very name");
    tap_ok(contains("plan.svg", ">data_dist<"), "a stream stands in it");
    tap_ok(!contains("plan.svg", "unused"), "but not one without tasks");
    tap_ok(contains("plan.svg", ">i+1<"), "a distance is said");
    render(&plan, "plan.png", STATUS_OK, "");
    render(&plan, "plan.dot", STATUS_OK, "");
    tap_ok(contains("plan.dot", "dashed"), "it is dashed");
    render(&plan, "plan.txt", STATUS_USAGE, "expected .svg");
    render(&plan, "no/plan.svg", STATUS_SYSTEM, "No such file");
    plan.form = FORM_PROGRAMS;
    render(&plan, "programs.svg", STATUS_INPUT, "no task graph");
    plan.form = FORM_PIPELINE;
    plan.pipeline.task_count = PLANGRAPH_MAX_NODES + 1;
    render(&plan, "large.svg", STATUS_LIMIT, "too large");
    build_threads(&plan);
    render(&plan, "threads.svg", STATUS_OK, "");
    tap_ok(contains("threads.svg", ">r0.loader<"), "a thread has its row");
    tap_ok(contains("threads.svg", ">sync device<"), "an operation its words");
    tap_ok(contains("threads.svg", ">put batches<"), "and the name of its object");
    render(&plan, "threads.dot", STATUS_OK, "");
    tap_is_int(lines_with("threads.dot", "style=dashed"), 3, "an event, a flag and a queue join");
    render(&plan, "threads.png", STATUS_OK, "");
    return tap_done();
}
