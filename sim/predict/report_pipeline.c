/* SPDX-License-Identifier: Apache-2.0 */
/* report_pipeline.c - the ranks of rank programs, for people and as JSON. */

#include "pipeline_figures.h"
#include "report_internal.h"
#include "base/assert_index.h"

enum { MOST_ROWS = 24 };

static int64_t span_of(const struct rank_figures *rank)
{
    return rank->last_ns - rank->first_ns;
}

static double report_pipeline_rate_of(const struct rank_figures *rank)
{
    return span_of(rank) ? 1 - (double)rank->busy_ns / (double)span_of(rank) : 0;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void report_pipeline_print_bytes(int64_t bytes, FILE *out)
{
    char text[UNITS_TEXT];
    units_show_bytes((double)bytes, text);
    fprintf(out, "  %10s", text);
}

static void report_pipeline_print_share(int64_t ns, int64_t whole, FILE *out)
{
    if (ns)
        fprintf(out, "  %7.1f%%", 100 * (double)ns / (double)whole);
    else
        fprintf(out, "  %8s", "-");
}

/* Of a rank alone; one for all stands in the head. */
static void report_pipeline_print_limit(int64_t limit, FILE *out)
{
    char text[UNITS_TEXT];
    units_show_bytes((double)limit, text);
    fprintf(out, "  of %s", text);
}

static void report_pipeline_print_rank(const struct prediction *prediction, int number, FILE *out)
{
    const struct pipeline_figures *figures = prediction->pipeline;
    ASSERT_INDEX(number, figures->rank_count);
    const struct rank_figures *rank = &figures->ranks[number];
    int64_t limit = machine_memory(&prediction->program->plan->machine, number);
    char span[UNITS_TEXT];
    units_show_time((double)span_of(rank), span);
    fprintf(out, "  %4d  %9s", number, span);
    report_pipeline_print_share(rank->busy_ns, span_of(rank), out);
    for (int wait = 0; wait < PIPELINE_WAITS; wait++)
        report_pipeline_print_share(rank->idle_ns[wait], span_of(rank), out);
    if (figures->has_bytes) {
        report_pipeline_print_bytes(rank->memory.fixed, out);
        report_pipeline_print_bytes(rank->memory.most_activations, out);
        report_pipeline_print_bytes(rank->memory.most, out);
        if (limit && !machine_same_memory(&prediction->program->plan->machine))
            report_pipeline_print_limit(limit, out);
        if (limit && rank->memory.most > limit) {
            char text[UNITS_TEXT];
            units_show_bytes((double)(rank->memory.most - limit), text);
            fprintf(out, "  does not fit, by %s", text);
        }
    }
    fputc('\n', out);
}

static void report_pipeline_print_head(const struct prediction *prediction, FILE *out)
{
    char limit[UNITS_TEXT];
    int64_t bytes = machine_same_memory(&prediction->program->plan->machine);
    fprintf(out, "\n  %4s  %9s  %8s%-40s", "rank", "span", "busy", "  idle, waiting for a");
    if (prediction->pipeline->has_bytes)
        fprintf(out, "  %10s  %10s  %10s", "weights,", "", "most of");
    fprintf(out, "\n  %4s  %9s  %8s  %8s  %8s  %8s  %8s", "", "", "", "pass", "channel", "transfer",
            "other");
    if (prediction->pipeline->has_bytes) {
        fprintf(out, "  %10s  %10s  %10s", "state", "activation", "all");
        units_show_bytes((double)bytes, limit);
        if (bytes)
            fprintf(out, "  of %s", limit);
    }
    fputc('\n', out);
}

/* A pipeline longer than the screen: its first and its last ranks. */
void report_print_pipeline(const struct prediction *prediction, FILE *out)
{
    const struct pipeline_figures *figures = prediction->pipeline;
    if (!figures || prediction->blocked_count)
        return;
    report_pipeline_print_head(prediction, out);
    for (int rank = 0; rank < figures->rank_count; rank++) {
        if (figures->rank_count > MOST_ROWS && rank == MOST_ROWS / 2) {
            rank = figures->rank_count - MOST_ROWS / 2;
            fprintf(out, "  ... %d more: --json has them\n", figures->rank_count - MOST_ROWS);
        }
        report_pipeline_print_rank(prediction, rank, out);
    }
}

/* The bubble as the zero-bubble papers have it: of the longest span, from a rank's first pass to its last. */
void report_print_span(const struct prediction *prediction, FILE *out)
{
    const struct pipeline_figures *figures = prediction->pipeline;
    char span[UNITS_TEXT];
    if (!figures || prediction->blocked_count)
        return;
    const struct rank_figures *longest = &figures->ranks[figures->longest];
    if (span_of(longest) == 0)
        return;
    units_show_time((double)span_of(longest), span);
    fprintf(out, "\n  span        %s from the first pass to the last of rank %d, %.2f%% of it idle",
            span, figures->longest, 100 * report_pipeline_rate_of(longest));
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void write_memory(const struct rank_figures *rank, struct json *json)
{
    const struct rank_memory *memory = &rank->memory;
    json_begin_object_at(json, "memory");
    json_put_int(json, "most_bytes", memory->most);
    json_put_int(json, "at_action", (int64_t)memory->column);
    json_put_int(json, "weights_and_state_bytes", memory->fixed);
    json_put_int(json, "activations_bytes", memory->at[MEMORY_ACTIVATIONS]);
    json_put_int(json, "messages_bytes", memory->at[MEMORY_MESSAGES]);
    json_put_int(json, "parameters_bytes", memory->at[MEMORY_PARAMETERS]);
    json_put_int(json, "most_activations_bytes", memory->most_activations);
    json_begin_array_at(json, "over_time");
    for (int i = 0; i < rank->held.count; i++) {
        json_begin_object(json);
        json_put_int(json, "time_ns", rank->held.points[i].time_ns);
        json_put_int(json, "bytes", rank->held.points[i].bytes);
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
}

static void report_pipeline_write_rank(const struct rank_figures *rank, int number, bool bytes,
                                       struct json *json)
{
    json_begin_object(json);
    json_put_int(json, "rank", number);
    json_put_int(json, "first_ns", rank->first_ns);
    json_put_int(json, "last_ns", rank->last_ns);
    json_put_int(json, "span_ns", span_of(rank));
    json_put_int(json, "busy_ns", rank->busy_ns);
    json_begin_object_at(json, "idle_ns");
    for (int wait = 0; wait < PIPELINE_WAITS; wait++)
        json_put_int(json, pipeline_wait_key((enum pipeline_wait)wait), rank->idle_ns[wait]);
    json_end_object(json);
    if (bytes)
        write_memory(rank, json);
    json_end_object(json);
}

void report_write_pipeline(const struct prediction *prediction, struct json *json)
{
    const struct pipeline_figures *figures = prediction->pipeline;
    if (!figures)
        return;
    const struct rank_figures *longest = &figures->ranks[figures->longest];
    json_begin_object_at(json, "pipeline");
    json_put_int(json, "span_ns", span_of(longest));
    json_put_int(json, "span_rank", figures->longest);
    json_put_double(json, "bubble_rate", report_pipeline_rate_of(longest));
    json_begin_array_at(json, "ranks");
    for (int rank = 0; rank < figures->rank_count; rank++)
        report_pipeline_write_rank(&figures->ranks[rank], rank, figures->has_bytes, json);
    json_end_array(json);
    json_end_object(json);
}
