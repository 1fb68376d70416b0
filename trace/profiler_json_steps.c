/* SPDX-License-Identifier: Apache-2.0 */
/* profiler_json_steps.c - iterations as steps of the profiler, which do not overlap, and as a counter of those in flight. */
#include "profiler_json_internal.h"

#include <inttypes.h>

static bool has_launches(const struct profiler_writer *writer, int rank)
{
    for (size_t i = 0; i < writer->trace->span_count; i++)
        if (writer->calls[i].from >= 0 && profiler_agent_of(writer, (int)i)->rank == rank)
            return true;
    return false;
}

/* The last work of a thread of this rank. */
static int64_t host_end(const struct profiler_writer *writer, int rank)
{
    int64_t end_ns = 0;
    for (size_t i = 0; i < writer->trace->span_count; i++) {
        const struct trace_agent *agent = profiler_agent_of(writer, (int)i);
        if (agent->rank == rank && agent->kind != TRACE_STREAM &&
            writer->trace->spans[i].end_ns > end_ns)
            end_ns = writer->trace->spans[i].end_ns;
    }
    return end_ns;
}

static void write_step(struct profiler_writer *writer, const struct trace_iteration *iteration,
                       int64_t start_ns, int64_t end_ns)
{
    char name[64];
    snprintf(name, sizeof name, "ProfilerStep#%" PRId64, iteration->number);
    profiler_begin_event(writer, "X", "user_annotation", name);
    profiler_put_row(writer, profiler_host_pid(writer, iteration->rank), STEPS_ROW);
    profiler_put_time(writer, start_ns, end_ns > start_ns ? end_ns : start_ns);
    profiler_end_event(writer);
}

/* When threads begin the first work of each of these iterations. */
static bool find_starts(struct profiler_writer *writer, const struct trace_iteration *first,
                        size_t count, int64_t *starts)
{
    for (size_t i = 0; i < count; i++)
        starts[i] = INT64_MAX;
    for (size_t i = 0; i < writer->trace->span_count; i++) {
        const struct trace_span *span = &writer->trace->spans[i];
        const int64_t place = span->iteration - first->number;
        if (profiler_agent_of(writer, (int)i)->rank == first->rank && span->kind == SPAN_HOST &&
            place >= 0 && place < (int64_t)count && span->start_ns < starts[place])
            starts[place] = span->start_ns;
    }
    for (size_t i = 0; i < count; i++)
        if (starts[i] == INT64_MAX)
            return false;
    return true;
}

/* Iterations overlap; steps do not. */
static enum status write_steps(struct profiler_writer *writer, const struct trace_iteration *first,
                               size_t count, struct diag *diag)
{
    int64_t *starts = ARENA_ARRAY(&writer->arena, count, int64_t);
    if (!starts)
        return diag_no_memory(diag);
    if (!find_starts(writer, first, count, starts))
        return STATUS_OK;
    for (size_t i = 0; i < count; i++)
        write_step(writer, &first[i], starts[i],
                   i + 1 < count ? starts[i + 1] : host_end(writer, first->rank));
    return STATUS_OK;
}

static void write_count(struct profiler_writer *writer, int rank, int64_t at_ns, size_t count)
{
    profiler_begin_event(writer, "C", NULL, "iterations in flight");
    json_put_int(&writer->json, "pid", profiler_host_pid(writer, rank));
    json_put_thousandths(&writer->json, "ts", at_ns);
    json_begin_object_at(&writer->json, "args");
    json_put_int(&writer->json, "iterations", (int64_t)count);
    json_end_object(&writer->json);
    profiler_end_event(writer);
}

/* Iterations begin and retire in the order of their numbers. */
static void write_counts(struct profiler_writer *writer, const struct trace_iteration *first,
                         size_t count)
{
    size_t begun = 0, retired = 0;
    while (retired < count) {
        const bool begins =
            begun < count && (begun == retired || first[begun].start_ns < first[retired].retire_ns);
        const int64_t at_ns = begins ? first[begun].start_ns : first[retired].retire_ns;
        begun += begins;
        retired += !begins;
        write_count(writer, first->rank, at_ns, begun - retired);
    }
}

/* The iterations from `at` on that are neighbours of one rank: where only a part of a run was loaded, its first and
   its last iteration stand alone. */
static size_t neighbours(const struct trace *trace, size_t at)
{
    size_t count = 1;
    while (at + count < trace->iteration_count &&
           trace->iterations[at + count].rank == trace->iterations[at].rank &&
           trace->iterations[at + count].number == trace->iterations[at].number + (int64_t)count)
        count++;
    return count;
}

static size_t iterations_of(const struct trace *trace, int rank)
{
    size_t count = 0;
    for (size_t i = 0; i < trace->iteration_count; i++)
        count += trace->iterations[i].rank == rank;
    return count;
}

enum status profiler_write_iterations(struct profiler_writer *writer, struct diag *diag)
{
    const struct trace *trace = writer->trace;
    int64_t first_ns, last_ns;
    size_t count;
    enum status status = STATUS_OK;
    trace_range(trace, &first_ns, &last_ns);
    for (size_t i = 0; i < trace->iteration_count && status == STATUS_OK; i += count) {
        const struct trace_iteration *first = &trace->iterations[i];
        count = neighbours(trace, i);
        if ((writer->options->one_rank && first->rank != writer->options->rank) ||
            writer->options->hide_threads || first[count - 1].retire_ns < first_ns ||
            first->start_ns > last_ns)
            continue;
        if (has_launches(writer, first->rank))
            status = write_steps(writer, first, count, diag);
        if (count == iterations_of(trace, first->rank))
            write_counts(writer, first, count);
    }
    return status;
}
