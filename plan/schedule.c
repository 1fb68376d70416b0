/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule.c - see schedule.h.
 *
 * Each table is measured first and written second; text and JSON walk the same arrays.
 */
#include "schedule.h"

#include <stdlib.h>
#include <string.h>

#include "base/columns.h"
#include "hang.h"
#include "base/json.h"
#include "keywords.h"
#include "order.h"

static enum status need_pipeline(const struct plan *plan, const char *what, struct diag *diag)
{
    if (plan->form == FORM_PIPELINE)
        return STATUS_OK;
    return diag_error(diag, STATUS_INPUT,
                      "%s has no %s: it is a plan of %s, only one with `schedule:` has stages",
                      plan->file ? plan->file : plan->name, what,
                      plan->form == FORM_PROGRAMS ? "rank programs" : "host threads");
}

/* ---- columns --------------------------------------------------------------------------------- */

static void put_left(FILE *out, const char *text, int width)
{
    fprintf(out, "%s%*s", text, columns_fill(text, width), "");
}

static void put_rule(FILE *out, int width)
{
    while (width-- > 0)
        fputc('-', out);
}

static int number_width(int64_t number)
{
    return snprintf(NULL, 0, "%lld", (long long)number);
}

static const char *schedule_stream_name(const struct plan *plan, const struct task *task)
{
    return task->stream >= 0 ? plan->streams.items[task->stream] : "-";
}

static const char *schedule_group_name(const struct plan *plan, const struct task *task)
{
    return task->group >= 0 ? plan->groups.items[task->group] : "-";
}

/* ---- period x task --------------------------------------------------------------------------- */

struct schedule_columns {
    int index, task, thread, stream, period;
};

static struct schedule_columns measure_schedule(const struct plan *plan, int periods)
{
    const struct pipeline *pipeline = &plan->pipeline;
    struct schedule_columns width = {.index = 2, .task = 4, .thread = 6, .stream = 6, .period = 2};
    int last = pipeline->task_count ? (int)pipeline->task_count - 1 : 0;
    if (width.index < number_width(last))
        width.index = number_width(last);
    for (size_t i = 0; i < pipeline->task_count; i++) {
        columns_widen(&width.task, pipeline->tasks[i].name);
        columns_widen(&width.thread, schedule_group_name(plan, &pipeline->tasks[i]));
        columns_widen(&width.stream, schedule_stream_name(plan, &pipeline->tasks[i]));
    }
    if (periods > 0)
        width.period = 1 + number_width(periods - 1);
    return width;
}

static void print_schedule_head(const struct schedule_columns *width, int periods, FILE *out)
{
    fprintf(out, "%*s  %-*s  %-*s  %-*s  |", width->index, "#", width->task, "Task", width->thread,
            "Thread", width->stream, "Stream");
    for (int p = 0; p < periods; p++)
        fprintf(out, "  %*sP%d", width->period - 1 - number_width(p), "", p);
    fputc('\n', out);
    const int rules[] = {width->index, width->task, width->thread, width->stream};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        put_rule(out, rules[i]);
        fputs("  ", out);
    }
    fputc('+', out);
    for (int p = 0; p < periods; p++) {
        fputs("  ", out);
        put_rule(out, width->period);
    }
    fputc('\n', out);
}

static void print_schedule_row(const struct plan *plan, const struct schedule_columns *width,
                               int index, const struct task *task, int periods, bool skipped,
                               FILE *out)
{
    fprintf(out, "%*d  ", width->index, index);
    put_left(out, task->name, width->task);
    fputs("  ", out);
    put_left(out, schedule_group_name(plan, task), width->thread);
    fputs("  ", out);
    put_left(out, schedule_stream_name(plan, task), width->stream);
    fputs("  |", out);
    for (int p = 0; p < periods; p++) {
        if (skipped || p < task->stage)
            fprintf(out, "  %*s", width->period, skipped ? "." : "--");
        else
            fprintf(out, "  %*si%d", width->period - 1 - number_width(p - task->stage), "",
                    p - task->stage);
    }
    fputc('\n', out);
}

/* The rows' tasks, from malloc; NULL on failure, which is then in `diag` and *status. */
static int *schedule_rows(const struct plan *plan, enum status *status, struct diag *diag)
{
    *status = need_pipeline(plan, "schedule table", diag);
    if (*status != STATUS_OK)
        return NULL;
    int *rows = calloc(plan->pipeline.task_count + 1, sizeof *rows);
    if (!rows) {
        *status = diag_no_memory(diag);
        return NULL;
    }
    *status = order_stage_descending(plan, 0, rows, diag);
    if (*status == STATUS_OK)
        return rows;
    free(rows);
    return NULL;
}

/* ---- the turns of data-flow ------------------------------------------------------------------- */

/* A globally ordered task, and how many iterations it is ahead of the last one in a round. */
struct schedule_turn {
    int task, ahead;
};

/* The turns of a round, which the caller frees; none where a thread waits for them. */
static enum status schedule_turns(const struct plan *plan, struct schedule_turn **out,
                                  size_t *count, struct diag *diag)
{
    const struct pipeline *pipeline = &plan->pipeline;
    struct schedule_turn *turns = calloc(pipeline->task_count + 1, sizeof *turns);
    int *cells = calloc(2 * pipeline->task_count + 1, sizeof *cells);
    int *stage = cells, *order = cells + pipeline->task_count, last = 0;
    *count = 0;
    *out = NULL;
    enum status status = !turns || !cells
                             ? diag_no_memory(diag)
                             : order_pipelined(plan, pipeline->max_depth, stage, order, diag);
    for (size_t k = 0; k < pipeline->task_count && !status; k++) {
        if (pipeline->ticket_at != TICKET_AT_PIPELINED ||
            !plan_task(plan, 0, order[k])->globally_ordered)
            continue;
        turns[(*count)++] = (struct schedule_turn){order[k], stage[order[k]]};
        last = stage[order[k]] > last ? stage[order[k]] : last;
    }
    for (size_t k = 0; k < *count && !status; k++)
        turns[k].ahead = last - turns[k].ahead;
    free(cells);
    if (status)
        free(turns);
    else
        *out = turns;
    return status;
}

static enum status print_turns(const struct plan *plan, FILE *out, struct diag *diag)
{
    size_t count;
    struct schedule_turn *turns;
    enum status status = schedule_turns(plan, &turns, &count, diag);
    if (status)
        return status;
    if (count > 0)
        fputs("It submits globally ordered tasks in this order, for every i:\n ", out);
    for (size_t k = 0; k < count; k++) {
        fprintf(out, " %s(i", plan_task(plan, 0, turns[k].task)->name);
        if (turns[k].ahead > 0)
            fprintf(out, " + %d", turns[k].ahead);
        fputs(k + 1 < count ? ")," : ")\n", out);
    }
    free(turns);
    return STATUS_OK;
}

static enum status write_turns(const struct plan *plan, struct json *json, struct diag *diag)
{
    size_t count;
    struct schedule_turn *turns;
    enum status status = schedule_turns(plan, &turns, &count, diag);
    if (status)
        return status;
    json_begin_array_at(json, "turns");
    for (size_t k = 0; k < count; k++) {
        json_begin_object(json);
        json_put_string(json, "task", plan_task(plan, 0, turns[k].task)->name);
        json_put_int(json, "ahead", turns[k].ahead);
        json_end_object(json);
    }
    json_end_array(json);
    free(turns);
    return STATUS_OK;
}

/* ---- the whole table -------------------------------------------------------------------------- */

int schedule_default_periods(const struct plan *plan)
{
    int periods = plan->pipeline.depth + 2;
    return periods < 5 ? 5 : periods;
}

enum status schedule_print(const struct plan *plan, const struct schedule_view *view, FILE *out,
                           struct diag *diag)
{
    const int periods = view->periods;
    enum status status;
    int *rows = schedule_rows(plan, &status, diag);
    if (!rows)
        return status;
    struct schedule_columns width = measure_schedule(plan, periods);
    print_schedule_head(&width, periods, out);
    for (size_t i = 0; i < plan->pipeline.task_count; i++)
        print_schedule_row(plan, &width, (int)i, plan_task(plan, 0, rows[i]), periods,
                           view->skipped && view->skipped[rows[i]], out);
    free(rows);
    if (!view->dataflow)
        return STATUS_OK;
    fputs("These are the periods of the clock driver. The data-flow driver has none: it "
          "submits a "
          "task\nas soon as what it depends on is submitted.\n",
          out);
    return print_turns(plan, out, diag);
}

static void write_schedule_row(const struct plan *plan, int index, const struct task *task,
                               int periods, struct json *json)
{
    json_begin_object(json);
    json_put_int(json, "index", index);
    json_put_string(json, "task", task->name);
    json_put_string(json, "thread", schedule_group_name(plan, task));
    json_put_string(json, "stream", schedule_stream_name(plan, task));
    json_put_int(json, "stage", task->stage);
    json_begin_array_at(json, "iterations");
    for (int p = 0; p < periods; p++) {
        if (p < task->stage)
            json_null(json);
        else
            json_int(json, p - task->stage);
    }
    json_end_array(json);
    json_end_object(json);
}

enum status schedule_write(const struct plan *plan, int periods, struct json *json,
                           struct diag *diag)
{
    enum status status;
    int *rows = schedule_rows(plan, &status, diag);
    if (!rows)
        return status;
    json_begin_document(json, DOCUMENT_SCHEDULE);
    json_put_string(json, "plan", plan->name);
    json_put_int(json, "depth", plan->pipeline.depth);
    json_put_int(json, "periods", periods);
    json_begin_array_at(json, "rows");
    for (size_t i = 0; i < plan->pipeline.task_count; i++)
        write_schedule_row(plan, (int)i, plan_task(plan, 0, rows[i]), periods, json);
    json_end_array(json);
    status = write_turns(plan, json, diag);
    json_end_object(json);
    free(rows);
    return status;
}

/* ---- stage analysis -------------------------------------------------------------------------- */

/* best[i]: length of the longest such subsequence that ends at i; from[i]: the element before. */
int schedule_longest_decreasing(const int *values, size_t count, int *out)
{
    int *best = calloc(2 * count + 1, sizeof *best);
    if (!best)
        return -1;
    int *from = best + count;
    int last = -1;
    for (size_t i = 0; i < count; i++) {
        best[i] = 1;
        from[i] = -1;
        for (size_t j = 0; j < i; j++) {
            if (values[j] > values[i] && best[j] + 1 > best[i]) {
                best[i] = best[j] + 1;
                from[i] = (int)j;
            }
        }
        if (last < 0 || best[i] > best[last])
            last = (int)i;
    }
    int length = last < 0 ? 0 : best[last];
    for (int i = last, k = length; i >= 0; i = from[i])
        out[--k] = values[i];
    free(best);
    return length;
}

/* One rank's enqueue order. */
struct enqueue {
    int rank;
    const struct order_spec *spec;
    int *tasks;
};

/* The results of the analysis; the arrays are one allocation. */
struct analysis {
    int *topological;
    int *lds;
    int lds_length;
    struct enqueue *enqueues; /* rank 0 first, then the ranks that differ */
    size_t enqueue_count;
};

static void analysis_fini(struct analysis *analysis)
{
    free(analysis->topological);
    free(analysis->enqueues);
}

static enum status fill_enqueue(const struct plan *plan, struct analysis *analysis, int rank,
                                struct diag *diag)
{
    size_t count = plan->pipeline.task_count;
    struct enqueue *enqueue = &analysis->enqueues[analysis->enqueue_count];
    enqueue->rank = rank;
    enqueue->spec = plan_order(plan, rank);
    enqueue->tasks = analysis->lds + (1 + analysis->enqueue_count) * count;
    return order_enqueue(plan, rank, enqueue->tasks, diag);
}

/* Rank 0, and every rank that states an order or has another one. */
static enum status fill_enqueues(const struct plan *plan, struct analysis *analysis,
                                 struct diag *diag)
{
    const struct pipeline *pipeline = &plan->pipeline;
    enum status status = fill_enqueue(plan, analysis, 0, diag);
    analysis->enqueue_count = 1;
    for (size_t i = 0; status == STATUS_OK && i < pipeline->override_count; i++) {
        const struct rank_override *override = &pipeline->overrides[i];
        if (override->rank == 0)
            continue;
        status = fill_enqueue(plan, analysis, override->rank, diag);
        analysis->enqueue_count +=
            override->has_order ||
            memcmp(analysis->enqueues[0].tasks, analysis->enqueues[analysis->enqueue_count].tasks,
                   pipeline->task_count * sizeof(int)) != 0;
    }
    return status;
}

static enum status fill_lds(const struct plan *plan, struct analysis *analysis, struct diag *diag)
{
    size_t count = plan->pipeline.task_count;
    int *stages = analysis->enqueues[0].tasks; /* borrowed until fill_enqueues */
    enum status status = order_stage_descending(plan, 0, stages, diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < count; i++)
        stages[i] = plan_task(plan, 0, stages[i])->stage;
    analysis->lds_length = schedule_longest_decreasing(stages, count, analysis->lds);
    return analysis->lds_length < 0 ? diag_no_memory(diag) : STATUS_OK;
}

static enum status analyse(const struct plan *plan, struct analysis *analysis, struct diag *diag)
{
    *analysis = (struct analysis){0};
    enum status status = need_pipeline(plan, "stage analysis", diag);
    if (status != STATUS_OK)
        return status;
    size_t count = plan->pipeline.task_count, orders = 1 + plan->pipeline.override_count;
    analysis->topological = calloc((2 + orders) * count + 1, sizeof(int));
    analysis->enqueues = calloc(orders, sizeof *analysis->enqueues);
    if (!analysis->topological || !analysis->enqueues) {
        analysis_fini(analysis);
        return diag_no_memory(diag);
    }
    analysis->lds = analysis->topological + count;
    analysis->enqueues[0].tasks = analysis->lds + count;
    status = order_topological(plan, analysis->topological, diag);
    if (status == STATUS_OK)
        status = fill_lds(plan, analysis, diag);
    if (status == STATUS_OK)
        status = fill_enqueues(plan, analysis, diag);
    if (status != STATUS_OK)
        analysis_fini(analysis);
    return status;
}

/* Whether the task pushes work to a stream, or is done when its CPU part is. */
static const char *task_type(const struct plan *plan, const struct task *task)
{
    return task->work.kind == WORK_HOST || plan_is_only_cpu(plan, task) ? "host" : "stream";
}

static const char *schedule_order_text(enum order_kind kind)
{
    return kind == ORDER_EXPLICIT ? "as listed" : keywords_order[kind];
}

static int task_column(const struct plan *plan)
{
    int width = 4;
    for (size_t i = 0; i < plan->pipeline.task_count; i++)
        columns_widen(&width, plan->pipeline.tasks[i].name);
    return width;
}

static void print_topological(const struct plan *plan, const struct analysis *analysis, FILE *out)
{
    int width = task_column(plan);
    fputs("Tasks (topological order)\n", out);
    fprintf(out, "%4s  %-*s  %4s  %5s  %s\n", "Pos", width, "Task", "Idx", "Stage", "Type");
    put_rule(out, width + 27);
    fputc('\n', out);
    for (size_t i = 0; i < plan->pipeline.task_count; i++) {
        const struct task *task = plan_task(plan, 0, analysis->topological[i]);
        fprintf(out, "%4zu  ", i);
        put_left(out, task->name, width);
        fprintf(out, "  %4d  %5d  %s\n", analysis->topological[i], task->stage,
                task_type(plan, task));
    }
}

static void print_lds(const struct plan *plan, const struct analysis *analysis, FILE *out)
{
    int depth = plan->pipeline.depth;
    fprintf(out, "\nLDS = %d (example: (", analysis->lds_length);
    for (int i = 0; i < analysis->lds_length; i++)
        fprintf(out, "%s%d", i ? ", " : "", analysis->lds[i]);
    fprintf(out, "))\nPipeline depth = %d\n", depth);
    if (analysis->lds_length == depth)
        fputs("LDS == depth (Dilworth-optimal)\n", out);
    else
        fprintf(out, "LDS < depth (not Dilworth-optimal): %d of the %d stages have no task\n",
                depth - analysis->lds_length, depth);
}

static void print_enqueue(const struct plan *plan, const struct enqueue *enqueue, FILE *out)
{
    int width = task_column(plan), stalls = 0;
    if (enqueue->rank == 0)
        fprintf(out, "\nEnqueue order (%s)\n", schedule_order_text(enqueue->spec->kind));
    else
        fprintf(out, "\nEnqueue order of rank %d (%s)\n", enqueue->rank,
                schedule_order_text(enqueue->spec->kind));
    fprintf(out, "%4s  %-*s  %5s  %5s  %s\n", "Pos", width, "Task", "Stage", "Stall", "Stream");
    put_rule(out, width + 30);
    fputc('\n', out);
    for (size_t i = 0; i < plan->pipeline.task_count; i++) {
        const struct task *task = plan_task(plan, enqueue->rank, enqueue->tasks[i]);
        int cost = order_stall_cost(plan, enqueue->rank, enqueue->tasks[i]);
        stalls += cost;
        fprintf(out, "%4zu  ", i);
        put_left(out, task->name, width);
        fprintf(out, "  %5d  %5d  %s\n", task->stage, cost, schedule_stream_name(plan, task));
    }
    fprintf(out, "Stall costs: %d (waits of a stream for another within one period)\n", stalls);
}

/* A dependence on a later period is no matter of depth: the order of threads decides it. */
static void print_later(const struct plan *plan, FILE *out)
{
    const struct task *tasks = plan_tasks(plan, 0);
    for (size_t i = 0; i < plan->pipeline.dep_count; i++) {
        const struct dep *dep = &plan->pipeline.deps[i];
        const struct task *task = &tasks[dep->task], *on = &tasks[dep->on];
        if (!hang_is_later(plan, 0, dep))
            continue;
        fprintf(out, "\n%s (stage %d) waits for %s (stage %d)", task->name, task->stage, on->name,
                on->stage);
        if (dep->distance > 0)
            fprintf(out, " of the iteration %d before", dep->distance);
        fprintf(out, ", which is handed out in a later period:\n%s\n",
                task->group == on->group
                    ? "a deadlock under the clock driver, since one thread executes both"
                    : "whether that hangs depends on the threads: 'swsim verify' tells");
    }
}

enum status schedule_print_stages(const struct plan *plan, FILE *out, struct diag *diag)
{
    struct analysis analysis;
    enum status status = analyse(plan, &analysis, diag);
    if (status != STATUS_OK)
        return status;
    print_topological(plan, &analysis, out);
    print_lds(plan, &analysis, out);
    for (size_t i = 0; i < analysis.enqueue_count; i++)
        print_enqueue(plan, &analysis.enqueues[i], out);
    print_later(plan, out);
    analysis_fini(&analysis);
    return STATUS_OK;
}

static void write_topological(const struct plan *plan, const struct analysis *analysis,
                              struct json *json)
{
    json_begin_array_at(json, "tasks");
    for (size_t i = 0; i < plan->pipeline.task_count; i++) {
        const struct task *task = plan_task(plan, 0, analysis->topological[i]);
        json_begin_object(json);
        json_put_int(json, "position", (int64_t)i);
        json_put_string(json, "task", task->name);
        json_put_int(json, "index", analysis->topological[i]);
        json_put_int(json, "stage", task->stage);
        json_put_string(json, "type", task_type(plan, task));
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_enqueue(const struct plan *plan, const struct enqueue *enqueue, struct json *json)
{
    json_begin_object(json);
    json_put_int(json, "rank", enqueue->rank);
    json_put_string(json, "rule", schedule_order_text(enqueue->spec->kind));
    json_begin_array_at(json, "order");
    for (size_t i = 0; i < plan->pipeline.task_count; i++) {
        const struct task *task = plan_task(plan, enqueue->rank, enqueue->tasks[i]);
        json_begin_object(json);
        json_put_string(json, "task", task->name);
        json_put_int(json, "stage", task->stage);
        json_put_string(json, "stream", schedule_stream_name(plan, task));
        json_put_int(json, "stall_cost", order_stall_cost(plan, enqueue->rank, enqueue->tasks[i]));
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
}

static void write_later(const struct plan *plan, struct json *json)
{
    const struct task *tasks = plan_tasks(plan, 0);
    json_begin_array_at(json, "later");
    for (size_t i = 0; i < plan->pipeline.dep_count; i++) {
        const struct dep *dep = &plan->pipeline.deps[i];
        if (!hang_is_later(plan, 0, dep))
            continue;
        json_begin_object(json);
        json_put_string(json, "task", tasks[dep->task].name);
        json_put_string(json, "on", tasks[dep->on].name);
        json_put_int(json, "distance", dep->distance);
        json_put_bool(json, "one_thread", tasks[dep->task].group == tasks[dep->on].group);
        json_end_object(json);
    }
    json_end_array(json);
}

enum status schedule_write_stages(const struct plan *plan, struct json *json, struct diag *diag)
{
    struct analysis analysis;
    enum status status = analyse(plan, &analysis, diag);
    if (status != STATUS_OK)
        return status;
    json_begin_document(json, DOCUMENT_STAGES);
    json_put_string(json, "plan", plan->name);
    json_put_int(json, "depth", plan->pipeline.depth);
    json_put_int(json, "lds", analysis.lds_length);
    json_begin_array_at(json, "lds_example");
    for (int i = 0; i < analysis.lds_length; i++)
        json_int(json, analysis.lds[i]);
    json_end_array(json);
    json_put_bool(json, "optimal", analysis.lds_length == plan->pipeline.depth);
    write_topological(plan, &analysis, json);
    json_begin_array_at(json, "enqueue");
    for (size_t i = 0; i < analysis.enqueue_count; i++)
        write_enqueue(plan, &analysis.enqueues[i], json);
    json_end_array(json);
    write_later(plan, json);
    json_end_object(json);
    analysis_fini(&analysis);
    return STATUS_OK;
}
