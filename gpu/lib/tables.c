/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables.c - the tables of the public library: schedule, stage analysis, exposed times, statistics.
 *
 * Each is written by one function to a FILE; formatting is printing into memory.
 */
#include "swpipe_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/columns.h"
#include "plan/schedule.h"
#include "base/text_stream.h"
#include "gpu/record/op_stats.h"

struct measured_table;
typedef enum status table_writer(struct swpipe *pipe, const struct measured_table *table,
                                 FILE *out);

struct measured_table {
    table_writer *write;
    int periods;
    const struct swpipe_profile *profile;
};

/* ---- schedule and stages --------------------------------------------------------------------- */

/* The plan with " [skip]" behind the names of tasks that are short-cut. */
static enum status mark_skipped(struct swpipe *pipe, struct arena *arena, struct plan *out)
{
    size_t count = pipe->plan.pipeline.task_count;
    struct task *tasks = ARENA_ARRAY(arena, count, struct task);
    if (!tasks)
        return diag_no_memory(&pipe->diag);
    *out = pipe->plan;
    out->pipeline.tasks = tasks;
    for (size_t t = 0; t < count; t++) {
        tasks[t] = pipe->plan.pipeline.tasks[t];
        if (pipe->shortcuts[t].on)
            tasks[t].name = arena_printf(arena, "%s [skip]", tasks[t].name);
        if (!tasks[t].name)
            return diag_no_memory(&pipe->diag);
    }
    return STATUS_OK;
}

static enum status tables_print_rows(struct swpipe *pipe, int periods, struct arena *arena,
                                     FILE *out)
{
    struct plan plan;
    bool *skipped = ARENA_ARRAY(arena, pipe->plan.pipeline.task_count, bool);
    if (!skipped)
        return diag_no_memory(&pipe->diag);
    for (size_t t = 0; t < pipe->plan.pipeline.task_count; t++)
        skipped[t] = pipe->shortcuts[t].on;
    enum status status = mark_skipped(pipe, arena, &plan);
    if (status)
        return status;
    const struct schedule_view view = {periods ? periods : schedule_default_periods(&plan), skipped,
                                       pipe->driver == DRIVER_DATAFLOW};
    return schedule_print(&plan, &view, out, &pipe->diag);
}

static enum status write_schedule(struct swpipe *pipe, const struct measured_table *table,
                                  FILE *out)
{
    struct arena arena;
    if (table->periods < 0 || table->periods > SCHEDULE_MAX_PERIODS)
        return diag_error(&pipe->diag, STATUS_USAGE, "found %d periods, expected 0 to %d",
                          table->periods, SCHEDULE_MAX_PERIODS);
    arena_init(&arena, 0);
    enum status status = tables_print_rows(pipe, table->periods, &arena, out);
    arena_fini(&arena);
    return status;
}

static enum status write_stages(struct swpipe *pipe, const struct measured_table *table, FILE *out)
{
    struct arena arena;
    struct plan plan;
    (void)table;
    arena_init(&arena, 0);
    enum status status = mark_skipped(pipe, &arena, &plan);
    if (!status)
        status = schedule_print_stages(&plan, out, &pipe->diag);
    arena_fini(&arena);
    return status;
}

/* Two kinds of names in brackets: all tasks, or those that are short-cut. */
static void tables_write_names(const struct swpipe *pipe, bool skipped, FILE *out)
{
    const char *comma = "";
    fputc('[', out);
    for (size_t t = 0; t < pipe->plan.pipeline.task_count; t++) {
        if (skipped && !pipe->shortcuts[t].on)
            continue;
        fprintf(out, "%s%s", comma, pipe->plan.pipeline.tasks[t].name);
        comma = ", ";
    }
    fputc(']', out);
}

static enum status write_pipe(struct swpipe *pipe, const struct measured_table *table, FILE *out)
{
    bool clock = pipe->driver == DRIVER_CLOCK;
    int max_depth = pipe->max_depth ? pipe->max_depth : pipe->plan.pipeline.max_depth;
    fprintf(out, "%s(plan=%s, device=%s, ranks=%d, %s=%d, tasks=", clock ? "clock" : "dataflow",
            pipe->plan.name, device_kind_key(pipe->device), pipe->ranks,
            clock ? "depth" : "max_depth", clock ? pipe->plan.pipeline.depth : max_depth);
    tables_write_names(pipe, false, out);
    fputs(", shortcuts=", out);
    tables_write_names(pipe, true, out);
    fputs(")\n\n", out);
    return write_schedule(pipe, table, out);
}

/* ---- exposed times --------------------------------------------------------------------------- */

static void write_line(int width, FILE *out)
{
    for (int i = 0; i < width; i++)
        fputc('-', out);
    fputs("  ------------  ----------\n", out);
}

static enum status tables_write_profile(struct swpipe *pipe, const struct measured_table *table,
                                        FILE *out)
{
    const struct swpipe_profile *profile = table->profile;
    int width = 4;
    if (!profile || (profile->task_count && !profile->tasks))
        return diag_error(&pipe->diag, STATUS_USAGE, "there is no profile");
    double sum = 0, baseline = profile->baseline_seconds;
    for (size_t i = 0; i < profile->task_count; i++)
        columns_widen(&width, profile->tasks[i].task);
    fprintf(out, "Baseline serial iteration: %.3f ms\n\n", 1e3 * baseline);
    fprintf(out, "%-*s  %12s  %10s\n", width, "Task", "Exposed", "% baseline");
    write_line(width, out);
    for (size_t i = 0; i < profile->task_count; i++) {
        const struct swpipe_exposed *task = &profile->tasks[i];
        const int fill = columns_fill(task->task, width);
        if (task->seconds < 0) {
            fprintf(out, "%s%*s  %12s\n", task->task, fill, "", "skipped");
            continue;
        }
        sum += task->seconds;
        fprintf(out, "%s%*s  %9.3f ms  %9.1f%%\n", task->task, fill, "", 1e3 * task->seconds,
                100 * task->seconds / baseline);
    }
    write_line(width, out);
    fprintf(out, "%-*s  %9.3f ms  %9.1f%%\n", width, "SUM", 1e3 * sum, 100 * sum / baseline);
    return STATUS_OK;
}

/* ---- statistics ------------------------------------------------------------------------------ */

static enum status tables_write_stats(struct swpipe *pipe, const struct measured_table *table,
                                      FILE *out)
{
    const struct recorded *recorded = &pipe->recorded;
    (void)table;
    if (!recorded->is)
        return diag_error(&pipe->diag, STATUS_USAGE, "no run has been recorded to its end");
    if (recorded->elsewhere)
        return diag_error(&pipe->diag, STATUS_USAGE,
                          "the figures of a group's run are in the process of rank 0");
    op_stats_print(recorded->result.stats, recorded->result.stat_count, out);
    return STATUS_OK;
}

/* ---- printing and formatting ----------------------------------------------------------------- */

static enum swpipe_status tables_print(struct swpipe *pipe, struct measured_table table, FILE *out)
{
    if (!pipe_enter(pipe))
        return SWPIPE_USAGE;
    enum status status = swpipe_must_be_open(pipe);
    if (!status && !out)
        status = diag_error(&pipe->diag, STATUS_USAGE, "the file for the table is NULL");
    locale_t before = c_locale_begin();
    if (!status)
        status = table.write(pipe, &table, out);
    c_locale_end(before);
    if (!status && (fflush(out) != 0 || ferror(out)))
        status = diag_error(&pipe->diag, STATUS_SYSTEM, "the table could not be written");
    return swpipe_finish(pipe, status);
}

static char *format(struct swpipe *pipe, struct measured_table table)
{
    struct text_stream stream;
    bool is = text_open(&stream);
    enum swpipe_status status = is ? tables_print(pipe, table, stream.out) : SWPIPE_OK;
    char *text = is ? text_close(&stream, status == SWPIPE_OK, NULL) : NULL;
    if (status == SWPIPE_OK && !text && pipe_enter(pipe))
        swpipe_finish(pipe, diag_no_memory(&pipe->diag));
    return text;
}

char *swpipe_format_schedule(struct swpipe *pipe, int periods)
{
    return format(pipe, (struct measured_table){.write = write_schedule, .periods = periods});
}

char *swpipe_format_stage_analysis(struct swpipe *pipe)
{
    return format(pipe, (struct measured_table){.write = write_stages});
}

char *swpipe_format_profile(struct swpipe *pipe, const struct swpipe_profile *profile)
{
    return format(pipe, (struct measured_table){.write = tables_write_profile, .profile = profile});
}

char *swpipe_format_stats(struct swpipe *pipe)
{
    return format(pipe, (struct measured_table){.write = tables_write_stats});
}

char *swpipe_format(struct swpipe *pipe)
{
    return format(pipe, (struct measured_table){.write = write_pipe});
}

enum swpipe_status swpipe_print_schedule(struct swpipe *pipe, int periods, FILE *out)
{
    return tables_print(pipe, (struct measured_table){.write = write_schedule, .periods = periods},
                        out);
}

enum swpipe_status swpipe_print_stage_analysis(struct swpipe *pipe, FILE *out)
{
    return tables_print(pipe, (struct measured_table){.write = write_stages}, out);
}

enum swpipe_status swpipe_print_profile(struct swpipe *pipe, const struct swpipe_profile *profile,
                                        FILE *out)
{
    return tables_print(
        pipe, (struct measured_table){.write = tables_write_profile, .profile = profile}, out);
}

enum swpipe_status swpipe_print_stats(struct swpipe *pipe, FILE *out)
{
    return tables_print(pipe, (struct measured_table){.write = tables_write_stats}, out);
}

enum swpipe_status swpipe_print(struct swpipe *pipe, FILE *out)
{
    return tables_print(pipe, (struct measured_table){.write = write_pipe}, out);
}
