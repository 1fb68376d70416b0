/* SPDX-License-Identifier: Apache-2.0 */
/* measured.c - see measured.h. */
#include "measured.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/columns.h"
#include "base/printable.h"
#include "base/units.h"
#include "gpu/record/op_stats.h"
#include "plan/plan.h"
#include "trace/step_bar.h"

/* ---- the streams ----------------------------------------------------------------------------- */

/* The streams of a real run for people: a row for those that are busy alike, and a step in one line. */

enum { BAR = 20 };

/* Of the time of the run. */
static double measured_busy(const struct runtime_result *result,
                            const struct runtime_stream *stream)
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

static size_t measured_find_rows(const struct runtime_result *result, bool average,
                                 struct stream_row *rows)
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
static const char *measured_row_name(const struct runtime_result *result,
                                     const struct stream_row *row, bool ranks, struct arena *arena)
{
    const struct runtime_stream *stream = &result->streams[row->first];
    int of_name = 0;
    assert(row->count >= 1);
    for (size_t i = 0; i < result->stream_count; i++)
        of_name += strcmp(result->streams[i].name, stream->name) == 0;
    if (!ranks || row->count == of_name)
        return stream->name;
    if (row->count == 1)
        return arena_printf(arena, "%s, rank %d", stream->name, stream->rank);
    return arena_printf(arena, "%s, rank %d + %d alike", stream->name, stream->rank,
                        row->count - 1);
}

static void measured_print_row(const char *name, int width, double share, FILE *out)
{
    int filled = (int)lround(fmin(share, 1) * BAR);
    fprintf(out, "  %s%*s  %5.1f%%  %.*s%.*s\n", name, columns_fill(name, width), "", 100 * share,
            filled, "####################", BAR - filled, "....................");
}

static void measured_print_rows(const struct runtime_result *result, struct stream_row *rows,
                                struct arena *arena, FILE *out)
{
    size_t count = measured_find_rows(result, false, rows);
    bool ranks = false, average = count > MOST_ROWS;
    int width = (int)strlen("stream");
    if (average)
        count = measured_find_rows(result, true, rows);
    for (size_t i = 0; i < result->stream_count; i++)
        ranks |= result->streams[i].rank > 0;
    const char **names = ARENA_ARRAY(arena, count + 1, const char *);
    for (size_t r = 0; names && r < count; r++) {
        const char *name = measured_row_name(result, &rows[r], ranks, arena);
        names[r] = name ? name : result->streams[rows[r].first].name;
        columns_widen(&width, names[r]);
    }
    fprintf(out, "\n  %-*s  %6s%s\n", width, "stream", "busy",
            average ? "  (means over the ranks; --json has each)" : "");
    for (size_t r = 0; names && r < count; r++)
        measured_print_row(names[r], width, rows[r].sum / rows[r].count, out);
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

static void measured_add_tasks(const struct measured *measured, const char *stream,
                               struct step_bar *bar)
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

static void measured_add_passes(const struct runtime_result *result, struct step_bar *bar)
{
    static const char *const passes[][2] = {{"forward_chunk", "F"},  {"backward_chunk", "B"},
                                            {"backward_input", "I"}, {"backward_weight", "W"},
                                            {"overlap_f_b", "F+B"},  {"optimizer", "optimizer"}};
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
        add_stat(result, passes[i][0], passes[i][1], bar);
}

/* The work of the computing stream, as predict shows it; nothing of host programs, and of pipelines whose
   tasks all ran on streams without one. */
static void measured_print_step(const struct measured *measured, bool color, FILE *out)
{
    const struct runtime_result *result = measured->result;
    const char *stream = computing_stream(result);
    struct step_bar bar = {.count = 0};
    if (!stream || measured->plan->form == FORM_THREADS)
        return;
    if (measured->plan->form == FORM_PIPELINE)
        measured_add_tasks(measured, stream, &bar);
    else
        measured_add_passes(result, &bar);
    if (bar.count == 0)
        return;
    step_bar_scale(&bar, busy_by_name(result, stream));
    fputs("  step        ", out);
    step_bar_print(&bar, color, out);
    fprintf(out, "  %s%s\n", stream,
            result->streams[result->stream_count - 1].rank > 0 ? ", mean of the ranks" : "");
}

static const char *ending(const struct runtime_result *result)
{
    if (result->finished)
        return "finished";
    if (result->peer_died)
        return "rank gone";
    return result->hung ? "hung" : result->interrupted ? "interrupted" : "failed";
}

/* Iterations a second; 0 where the time of one is not known. */
static double throughput(const struct runtime_result *result)
{
    return result->iteration.mean_ns > 0 ? 1e9 / result->iteration.mean_ns : 0;
}

/* ---- text ------------------------------------------------------------------------------------ */

static const char *measured_show(double ns, char out[UNITS_TEXT])
{
    units_show_time(ns, out);
    return out;
}

static void measured_print_head(const struct measured *measured, FILE *out)
{
    const struct runtime_options *options = measured->options;
    const struct plan *plan = measured->plan;
    int ranks = options->ranks ? options->ranks : plan_rank_count(plan);
    fputs(plan->name, out);
    if (options->serial)
        fputs(", serial", out);
    else if (options->driver != DRIVER_NONE)
        fprintf(out, ", %s driver", driver_key(options->driver));
    if (ranks > 1)
        fprintf(out, ", %d ranks", ranks);
    if (plan->form == FORM_PIPELINE) {
        /* Ranks with less data, or of a run that hung, have made fewer. */
        const struct runtime_result *result = measured->result;
        fprintf(out, ", %" PRId64, result->iterations);
        if (result->most_iterations > result->iterations)
            fprintf(out, " to %" PRId64, result->most_iterations);
        fputs(" iterations", out);
    }
    fprintf(out, ", on %s\n\n", measured->result->device);
}

static void measured_print_times(const struct runtime_result *result, FILE *out)
{
    char mean[UNITS_TEXT], p50[UNITS_TEXT], p95[UNITS_TEXT], p99[UNITS_TEXT];
    if (result->iteration.mean_ns <= 0)
        return;
    fprintf(out, "  iteration   %s   p50 %s   p95 %s   p99 %s\n",
            measured_show(result->iteration.mean_ns, mean),
            measured_show(result->iteration.p50_ns, p50),
            measured_show(result->iteration.p95_ns, p95),
            measured_show(result->iteration.p99_ns, p99));
    fprintf(out, "  throughput  %.4g iterations/s\n", throughput(result));
    if (result->serial_ns > 0)
        fprintf(out, "  serial      %s, the sum of the tasks: %.3gx as long\n",
                measured_show((double)result->serial_ns, mean),
                (double)result->serial_ns / result->iteration.mean_ns);
}

static void measured_print_totals(const struct measured *measured, FILE *out)
{
    const struct runtime_result *result = measured->result;
    char total[UNITS_TEXT], fill[UNITS_TEXT], drain[UNITS_TEXT];
    fprintf(out, "  total       %s", measured_show((double)result->duration_ns, total));
    if (measured->plan->form == FORM_PIPELINE)
        fprintf(out, "   fill %s   drain %s", measured_show((double)result->fill_ns, fill),
                measured_show((double)result->drain_ns, drain));
    fputc('\n', out);
    if (result->graph.periods > 0)
        fprintf(out,
                "  graphs      %" PRId64 " of %" PRId64 " periods by one launch each, %" PRId64
                " graphs\n",
                result->graph.launches, result->graph.periods, result->graph.graphs);
    if (result->held_ns > result->duration_ns / 100)
        fprintf(out, "  held        %s: threads waited for the writer of the trace, in all\n",
                measured_show((double)result->held_ns, total));
    if (result->clock_error_ns > 0)
        fprintf(out, "  clock       CUDA events, within %s of the host's clock\n",
                measured_show((double)result->clock_error_ns, total));
    if (!result->finished)
        fprintf(out, "  end         %s\n", ending(result));
}

/* Nine digits tell any two numbers of 32 bits apart. */
static void print_difference(const struct runtime_arithmetic *arithmetic, FILE *out)
{
    const struct runtime_difference *first = &arithmetic->first;
    fprintf(out, "              rank %d, stage %d, ", first->rank, first->stage);
    if (first->microbatch >= 0)
        fprintf(out, "loss of microbatch %d", first->microbatch);
    else if (first->row < 0)
        fprintf(out, "layer %d, bias %d", first->layer, first->column);
    else
        fprintf(out, "layer %d, weight %d, %d", first->layer, first->row, first->column);
    fprintf(out, ": %.9g, serial %.9g\n", (double)first->found, (double)first->expected);
}

static void print_arithmetic(const struct runtime_arithmetic *arithmetic, FILE *out)
{
    const char *what = arithmetic->gradients ? "gradients" : "losses";
    int64_t numbers = arithmetic->gradients ? arithmetic->gradients : arithmetic->losses;
    if (arithmetic->losses > 0)
        fprintf(out, "  loss        %.6g, the mean of %" PRId64 " microbatch%s\n",
                arithmetic->loss_sum / (double)arithmetic->losses, arithmetic->losses,
                arithmetic->losses == 1 ? "" : "es");
    if (arithmetic->equal == ANSWER_YES) {
        fprintf(out,
                "  %-10s  equal the serial ones, bit for bit (%" PRId64 " values, %" PRId64
                " bytes)\n",
                what, numbers, numbers * (int64_t)sizeof(float));
        return;
    }
    fprintf(out,
            "  %-10s  DIFFERENT from the serial ones: %" PRId64 " of %" PRId64 " values, first\n",
            what, arithmetic->different, arithmetic->gradients + arithmetic->losses);
    print_difference(arithmetic, out);
}

static void print_answers(const struct measured *measured, FILE *out)
{
    const struct runtime_result *result = measured->result;
    if (result->legal == ANSWER_YES)
        fprintf(out,
                "  legal       yes: the plan allows every one of the %" PRId64 " recorded steps\n",
                result->steps);
    else if (result->legal == ANSWER_NO)
        fputs("  legal       no\n", out);
    if (result->arithmetic.equal != ANSWER_UNKNOWN)
        print_arithmetic(&result->arithmetic, out);
    else if (result->matches_serial != ANSWER_UNKNOWN)
        fprintf(out, "  results     %s those of a serial run%s\n",
                result->matches_serial == ANSWER_YES ? "the same as" : "DIFFERENT from",
                result->matches_serial == ANSWER_NO && result->stale &&
                        !result->violations[PROPERTY_SERIAL]
                    ? ": reads were stale, as the plan allows"
                    : "");
    for (int p = 0; p < PROPERTY_COUNT; p++)
        if (result->violations[p])
            fprintf(out, "  %-10s  %s\n", property_key((enum property)p), result->violations[p]);
    if (result->run < 0)
        return;
    fprintf(out, "  stored      run %" PRId64 " in ", result->run);
    printable_put(measured->options->db, false, out);
    fputc('\n', out);
}

static void measured_print_blocked(const struct runtime_result *result, FILE *out)
{
    if (result->blocked_count > 0)
        fputs("\n  blocked:\n", out);
    for (size_t i = 0; i < result->blocked_count; i++)
        fprintf(out, "    %s %s\n", result->blocked[i].agent, result->blocked[i].waits_for);
}

void measured_print(const struct measured *measured, bool quiet, bool color, FILE *out)
{
    measured_print_head(measured, out);
    measured_print_times(measured->result, out);
    measured_print_totals(measured, out);
    if (!quiet)
        measured_print_step(measured, color, out);
    print_answers(measured, out);
    if (!quiet) {
        /* Writes nothing where there are no streams. */
        const struct runtime_result *result = measured->result;
        struct arena arena;
        arena_init(&arena, 0);
        struct stream_row *rows = ARENA_ARRAY(&arena, result->stream_count + 1, struct stream_row);
        if (rows && result->stream_count > 0)
            measured_print_rows(result, rows, &arena, out);
        arena_fini(&arena);
    }
    if (measured->stats) {
        fputc('\n', out);
        op_stats_print(measured->result->stats, measured->result->stat_count, out);
    }
    measured_print_blocked(measured->result, out);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

void measured_put_answer(struct json *json, const char *key, enum answer answer)
{
    json_key(json, key);
    if (answer == ANSWER_UNKNOWN)
        json_null(json);
    else
        json_bool(json, answer == ANSWER_YES);
}

static void put_busy(struct json *json, const char *stream, double share)
{
    json_begin_object_at(json, stream);
    json_put_double(json, "busy", share);
    json_end_object(json);
}

/* Each name at its first stream, with the mean over all that have it. */
static void measured_write_streams(const struct runtime_result *result, struct json *json)
{
    json_begin_object_at(json, "streams");
    for (size_t i = 0; i < result->stream_count; i++) {
        double sum = 0;
        int count = 0;
        size_t first = i;
        for (size_t k = 0; k < result->stream_count; k++) {
            if (strcmp(result->streams[k].name, result->streams[i].name) != 0)
                continue;
            first = k < first ? k : first;
            sum += measured_busy(result, &result->streams[k]);
            count++;
        }
        if (first == i)
            put_busy(json, result->streams[i].name, sum / count);
    }
    json_end_object(json);
}

static void measured_write_ranks(const struct runtime_result *result, int ranks, struct json *json)
{
    json_begin_array_at(json, "ranks");
    for (int rank = 0; rank < ranks; rank++) {
        json_begin_object(json);
        json_put_int(json, "rank", rank);
        json_begin_object_at(json, "streams");
        for (size_t i = 0; i < result->stream_count; i++)
            if (result->streams[i].rank == rank)
                put_busy(json, result->streams[i].name, measured_busy(result, &result->streams[i]));
        json_end_object(json);
        json_end_object(json);
    }
    json_end_array(json);
}

void measured_write_blocked(const struct runtime_result *result, struct json *json)
{
    json_begin_array_at(json, "blocked");
    for (size_t i = 0; i < result->blocked_count; i++) {
        json_begin_object(json);
        json_put_int(json, "rank", result->blocked[i].rank);
        json_put_string(json, "agent", result->blocked[i].agent);
        json_put_string(json, "waits_for", result->blocked[i].waits_for);
        json_end_object(json);
    }
    json_end_array(json);
}

static void measured_write_stats(const struct runtime_result *result, struct json *json)
{
    json_begin_object_at(json, "stats");
    for (size_t i = 0; i < result->stat_count; i++) {
        json_begin_object_at(json, result->stats[i].name);
        json_put_int(json, "calls", result->stats[i].calls);
        json_put_int(json, "device_ns", result->stats[i].device_ns);
        json_put_int(json, "host_ns", result->stats[i].host_ns);
        json_end_object(json);
    }
    json_end_object(json);
}

static void write_figures(const struct runtime_result *result, struct json *json)
{
    json_put_int(json, "iterations", result->iterations);
    json_put_int(json, "tasks", result->tasks);
    json_put_int(json, "steps", result->steps);
    json_put_double(json, "seconds", 1e-9 * (double)result->duration_ns);
    json_put_double(json, "held_seconds", 1e-9 * (double)result->held_ns);
    json_put_int(json, "clock_error_ns", result->clock_error_ns);
    const struct runtime_times *times = &result->iteration;
    json_begin_object_at(json, "iteration_ns");
    json_put_double(json, "mean", times->mean_ns);
    json_put_double(json, "p50", times->p50_ns);
    json_put_double(json, "p95", times->p95_ns);
    json_put_double(json, "p99", times->p99_ns);
    json_end_object(json);
    json_put_double(json, "throughput_per_s", throughput(result));
    json_put_int(json, "fill_ns", result->fill_ns);
    json_put_int(json, "drain_ns", result->drain_ns);
    json_put_int(json, "makespan_ns", result->duration_ns);
    json_put_int(json, "serial_ns", result->serial_ns);
    json_put_int(json, "periods", result->graph.periods);
    json_put_int(json, "graph_launches", result->graph.launches);
    json_put_int(json, "graphs", result->graph.graphs);
}

static void write_difference(const struct runtime_difference *first, struct json *json)
{
    json_begin_object_at(json, "first_difference");
    json_put_int(json, "rank", first->rank);
    json_put_int(json, "stage", first->stage);
    if (first->microbatch >= 0) {
        json_put_int(json, "microbatch", first->microbatch);
    } else {
        json_put_int(json, "layer", first->layer);
        json_put_string(json, "of", first->row < 0 ? "bias" : "weight");
        if (first->row >= 0)
            json_put_int(json, "row", first->row);
        json_put_int(json, "column", first->column);
    }
    json_put_double(json, "found", (double)first->found);
    json_put_double(json, "serial", (double)first->expected);
    json_end_object(json);
}

static void write_arithmetic(const struct runtime_arithmetic *arithmetic, struct json *json)
{
    if (arithmetic->equal == ANSWER_UNKNOWN)
        return;
    json_begin_object_at(json, "arithmetic");
    json_put_bool(json, "equal", arithmetic->equal == ANSWER_YES);
    json_put_int(json, "gradients", arithmetic->gradients);
    json_put_int(json, "bytes", arithmetic->gradients * (int64_t)sizeof(float));
    json_put_int(json, "losses", arithmetic->losses);
    json_put_double(json, "loss", arithmetic->loss_sum / (double)arithmetic->losses);
    json_begin_array_at(json, "each_loss");
    for (int64_t i = 0; i < arithmetic->losses && i < ARITHMETIC_LOSSES; i++)
        json_double(json, (double)arithmetic->each_loss[i]);
    json_end_array(json);
    json_put_int(json, "different", arithmetic->different);
    if (arithmetic->different > 0)
        write_difference(&arithmetic->first, json);
    json_end_object(json);
}

void measured_write(const struct measured *measured, struct json *json)
{
    const struct runtime_result *result = measured->result;
    const struct runtime_options *options = measured->options;
    int ranks = options->ranks ? options->ranks : plan_rank_count(measured->plan);
    json_begin_document(json, DOCUMENT_MEASURED);
    json_put_string(json, "plan", measured->plan->name);
    json_put_string(json, "driver", driver_key(options->driver));
    json_put_bool(json, "serial", options->serial);
    json_put_string(json, "device", device_kind_key(options->device));
    json_put_string(json, "device_name", result->device);
    json_put_string(json, "end", ending(result));
    write_figures(result, json);
    measured_write_streams(result, json);
    if (ranks > 1)
        measured_write_ranks(result, ranks, json);
    if (measured->stats)
        measured_write_stats(result, json);
    json_put_known(json, "run", result->run, result->run >= 0);
    measured_put_answer(json, "legal", result->legal);
    measured_put_answer(json, "results_match_serial", result->matches_serial);
    json_put_bool(json, "stale_reads", result->stale);
    write_arithmetic(&result->arithmetic, json);
    json_begin_object_at(json, "violations");
    for (int p = 0; p < PROPERTY_COUNT; p++)
        if (result->violations[p])
            json_put_string(json, property_key((enum property)p), result->violations[p]);
    json_end_object(json);
    measured_write_blocked(result, json);
    warnings_write(measured->warnings, measured->plan->file, json);
    json_end_object(json);
}
