/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profiler_json_internal.h - what the files that write a profiler's trace share: profiler_json.c (work, calls, names) and
 * profiler_json_steps.c (iterations as steps of the profiler and as a counter).
 */
#ifndef SWSIM_PROFILER_JSON_INTERNAL_H
#define SWSIM_PROFILER_JSON_INTERNAL_H

#include "base/arena.h"
#include "base/json.h"

#include "profiler_json.h"

enum {
    FIRST_STREAM = 7, /* PyTorch's own stream; HolisticTraceAnalysis takes 0 for none */
    STEPS_ROW = 0,    /* of a host; its threads follow */
    /* HolisticTraceAnalysis with pandas 3 keeps places in the file in a column as wide as the largest correlation. */
    FIRST_CORRELATION = 100000,
    NAME_TEXT = 512
};

/* A span as the end of a launch. */
struct profiler_call {
    int from;         /* the span of the thread; -1: none */
    int place, count; /* among the launches of that span */
};

struct profiler_writer {
    const struct trace *trace;
    const struct profiler_json_options *options;
    struct arena arena;
    struct json json;
    FILE *out;
    struct work_names names;
    struct profiler_call *calls; /* per span */
    int *rows;                   /* per agent: its tid */
    int ranks;
    bool filled; /* an event has been written */
};

static inline const struct trace_agent *profiler_agent_of(const struct profiler_writer *writer,
                                                          int span)
{
    return &writer->trace->agents[writer->trace->spans[span].agent];
}

/* The process of a rank's host. */
static inline int profiler_host_pid(const struct profiler_writer *writer, int rank)
{
    return writer->ranks + rank;
}

/* An event: its head, its process and row, its times, and its end. */
void profiler_begin_event(struct profiler_writer *writer, const char *phase, const char *category,
                          const char *name);
void profiler_put_row(struct profiler_writer *writer, int pid, int tid);
void profiler_put_time(struct profiler_writer *writer, int64_t start_ns, int64_t end_ns);
void profiler_end_event(struct profiler_writer *writer);

/* The iterations that are loaded. */
enum status profiler_write_iterations(struct profiler_writer *writer, struct diag *diag);

#endif
