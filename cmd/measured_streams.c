/* SPDX-License-Identifier: Apache-2.0 */
/* measured_streams.c - see measured_streams.h. */
#include "measured_streams.h"

#include <math.h>
#include <string.h>

#include "base/columns.h"
#include "plan/plan.h"
#include "trace/step_bar.h"

enum { BAR = 20 };

double measured_busy(const struct runtime_result *result, const struct runtime_stream *stream)
{
    return result->duration_ns > 0 ? (double)stream->busy_ns / (double)result->duration_ns : 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Streams of one name that one row stands for: busy alike, or all of the name where there are too many rows. */
struct stream_row {
    size_t first; /* of them, in result->streams */
    int count;
    double sum; /* of their busy shares */
};

enum { MOST_ROWS = 24 };
static const double alike = 0.02; /* shares of real runs differ by so much from run to run */

static size_t find_rows(const struct runtime_result *result, bool average, struct stream_row *rows)
{
    size_t count = 0;
    for (size_t i = 0; i < result->stream_count; i++) {
        const struct runtime_stream *stream = &result->streams[i];
        size_t r = 0;
        for (; r < count; r++) {
            const struct runtime_stream *first = &result->streams[rows[r].first];
            if (strcmp(first->name, stream->name) == 0 &&
                (average ||
                 fabs(measured_busy(result, first) - measured_busy(result, stream)) < alike))
                break;
        }
        if (r == count)
            rows[count++] = (struct stream_row){.first = i};
        rows[r].count++;
        rows[r].sum += measured_busy(result, stream);
    }
    return count;
}

/* "compute", "compute, rank 0", "compute, rank 0 + 6 alike". */
static const char *row_name(const struct runtime_result *result, const struct stream_row *row,
                            bool ranks, struct arena *arena)
{
    const struct runtime_stream *stream = &result->streams[row->first];
    int of_name = 0;
    for (size_t i = 0; i < result->stream_count; i++)
        of_name += strcmp(result->streams[i].name, stream->name) == 0;
    if (!ranks || row->count == of_name)
        return stream->name;
    if (row->count == 1)
        return arena_printf(arena, "%s, rank %d", stream->name, stream->rank);
    return arena_printf(arena, "%s, rank %d + %d alike", stream->name, stream->rank,
                        row->count - 1);
}

static void print_row(const char *name, int width, double share, FILE *out)
{
    int filled = (int)lround(fmin(share, 1) * BAR);
    fprintf(out, "  %s%*s  %5.1f%%  %.*s%.*s\n", name, columns_fill(name, width), "", 100 * share,
            filled, "####################", BAR - filled, "....................");
}

static void print_rows(const struct runtime_result *result, struct stream_row *rows,
                       struct arena *arena, FILE *out)
{
    size_t count = find_rows(result, false, rows);
    bool ranks = false, average = count > MOST_ROWS;
    int width = (int)strlen("stream");
    if (average)
        count = find_rows(result, true, rows);
    for (size_t i = 0; i < result->stream_count; i++)
        ranks |= result->streams[i].rank > 0;
    const char **names = ARENA_ARRAY(arena, count + 1, const char *);
    for (size_t r = 0; names && r < count; r++) {
        const char *name = row_name(result, &rows[r], ranks, arena);
        names[r] = name ? name : result->streams[rows[r].first].name;
        columns_widen(&width, names[r]);
    }
    fprintf(out, "\n  %-*s  %6s%s\n", width, "stream", "busy",
            average ? "  (means over the ranks; --json has each)" : "");
    for (size_t r = 0; names && r < count; r++)
        print_row(names[r], width, rows[r].sum / rows[r].count, out);
}

void measured_print_streams(const struct runtime_result *result, FILE *out)
{
    struct arena arena;
    arena_init(&arena, 0);
    struct stream_row *rows = ARENA_ARRAY(&arena, result->stream_count + 1, struct stream_row);
    if (rows && result->stream_count > 0)
        print_rows(result, rows, &arena, out);
    arena_fini(&arena);
}

/* ---- a step in one line ---------------------------------------------------------------------- */

/* The mean over the streams of this name; -1: there is none. */
static double busy_by_name(const struct runtime_result *result, const char *name)
{
    double sum = 0;
    int count = 0;
    for (size_t i = 0; i < result->stream_count; i++)
        if (strcmp(result->streams[i].name, name) == 0) {
            sum += measured_busy(result, &result->streams[i]);
            count++;
        }
    return count ? sum / count : -1;
}

/* "compute", else that of tasks without a stream, else the busiest; NULL: there is none. */
static const char *computing_stream(const struct runtime_result *result)
{
    static const char *const names[] = {"compute", PLAN_IMPLICIT_STREAM};
    const char *busiest = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (busy_by_name(result, names[i]) > 0)
            return names[i];
    for (size_t i = 0; i < result->stream_count; i++)
        if (!busiest ||
            busy_by_name(result, result->streams[i].name) > busy_by_name(result, busiest))
            busiest = result->streams[i].name;
    return busiest;
}

static void add_stat(const struct runtime_result *result, const char *name, const char *shown,
                     struct step_bar *bar)
{
    for (size_t i = 0; i < result->stat_count; i++)
        if (strcmp(result->stats[i].name, name) == 0 && result->stats[i].device_ns > 0)
            step_bar_add(bar, shown, (double)result->stats[i].device_ns);
}

static void add_tasks(const struct measured *measured, const char *stream, struct step_bar *bar)
{
    const struct pipeline *pipeline = &measured->plan->pipeline;
    for (size_t t = 0; t < pipeline->task_count; t++) {
        const struct task *task = &pipeline->tasks[t];
        const char *on =
            task->stream >= 0 ? measured->plan->streams.items[task->stream] : PLAN_IMPLICIT_STREAM;
        if (measured->options->serial || strcmp(on, stream) == 0)
            add_stat(measured->result, task->name, task->name, bar);
    }
}

static void add_passes(const struct runtime_result *result, struct step_bar *bar)
{
    static const char *const passes[][2] = {{"forward_chunk", "F"},  {"backward_chunk", "B"},
                                            {"backward_input", "I"}, {"backward_weight", "W"},
                                            {"overlap_f_b", "F+B"},  {"optimizer", "optimizer"}};
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
        add_stat(result, passes[i][0], passes[i][1], bar);
}

void measured_print_step(const struct measured *measured, bool color, FILE *out)
{
    const struct runtime_result *result = measured->result;
    const char *stream = computing_stream(result);
    struct step_bar bar = {.count = 0};
    if (!stream || measured->plan->form == FORM_THREADS)
        return;
    if (measured->plan->form == FORM_PIPELINE)
        add_tasks(measured, stream, &bar);
    else
        add_passes(result, &bar);
    if (bar.count == 0)
        return;
    step_bar_scale(&bar, busy_by_name(result, stream));
    fputs("  step        ", out);
    step_bar_print(&bar, color, out);
    fprintf(out, "  %s%s\n", stream,
            result->streams[result->stream_count - 1].rank > 0 ? ", mean of the ranks" : "");
}
