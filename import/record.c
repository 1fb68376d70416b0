/* record.c - see record.h. */
#include "record.h"

#include <stdlib.h>
#include <time.h>

#include "call_names.h"

#include "plan/print.h"

struct recorder {
    const struct imported *imported;
    const struct job_rank *rank;
    struct trace *trace;
    int number; /* of the rank */
    int *span;  /* per call; -1: none */
};

static bool add_info(const struct imported *imported, struct trace *trace, struct diag *diag)
{
    const char *text;
    if (plan_text_in(&imported->plan, trace->arena, &text, diag) != STATUS_OK)
        return false;
    struct run_info info = {.kind = RUN_MEASURED,
                            .plan_name = imported->plan.name,
                            .plan_text = text,
                            .device = "profiler",
                            .driver = RUN_DRIVER_NONE,
                            .ranks = imported->plan.ranks,
                            .created_unix_s = (int64_t)time(NULL),
                            .finished = RUN_FINISHED,
                            .note = "imported"};
    for (size_t r = 0; r < imported->job.rank_count; r++)
        if (imported->job.ranks[r].end_ns > info.duration_ns)
            info.duration_ns = imported->job.ranks[r].end_ns;
    return trace_set_info(trace, &info);
}

/* The span of a call, on the agent of its thread; true also for one without a span. */
static bool add_call(struct recorder *recorder, int agent, int at)
{
    const struct job_call *call = &recorder->rank->calls[at];
    const bool waits = call->kind == CALL_SYNC_STREAM || call->kind == CALL_SYNC_EVENT ||
                       call->kind == CALL_SYNC_DEVICE;
    if (!waits && call->work_count == 0)
        return true;
    const struct trace_span span = {.agent = agent,
                                    .kind = waits ? SPAN_WAIT : SPAN_HOST,
                                    .task = recorder->imported->job.names.items[call->name],
                                    .iteration = -1,
                                    .start_ns = call->start_ns,
                                    .end_ns = call->end_ns,
                                    .cause = waits ? "device" : NULL};
    recorder->span[at] = trace_add_span(recorder->trace, &span);
    return recorder->span[at] >= 0;
}

static bool add_threads(struct recorder *recorder)
{
    const struct job_rank *rank = recorder->rank;
    for (int thread = 0; thread < (int)rank->threads.count; thread++) {
        char name[32];
        snprintf(name, sizeof name, "t%d", thread);
        if (rank->first_call[thread] == rank->first_call[thread + 1])
            continue;
        const int agent =
            trace_add_agent(recorder->trace, recorder->number, TRACE_THREAD, name, thread);
        if (agent < 0)
            return false;
        for (int i = rank->first_call[thread]; i < rank->first_call[thread + 1]; i++)
            if (!add_call(recorder, agent, i))
                return false;
    }
    return true;
}

static bool add_work(struct recorder *recorder, int agent, int at)
{
    const struct job_work *work = &recorder->rank->works[at];
    const struct trace_span span = {.agent = agent,
                                    .kind = SPAN_DEVICE,
                                    .task = recorder->imported->job.names.items[work->name],
                                    .iteration = -1,
                                    .start_ns = work->start_ns,
                                    .end_ns = work->end_ns};
    const int number = trace_add_span(recorder->trace, &span);
    const int launch = work->call >= 0 ? recorder->span[work->call] : -1;
    return number >= 0 &&
           (launch < 0 || trace_add_edge(recorder->trace, launch, number, EDGE_LAUNCH) >= 0);
}

static bool add_streams(struct recorder *recorder)
{
    const struct job_rank *rank = recorder->rank;
    for (int stream = 0; stream < (int)rank->stream_count; stream++) {
        char name[32];
        snprintf(name, sizeof name, "s%lld", (long long)rank->streams[stream].number);
        if (rank->streams[stream].count == 0)
            continue;
        const int agent =
            trace_add_agent(recorder->trace, recorder->number, TRACE_STREAM, name, stream);
        if (agent < 0)
            return false;
        for (int i = 0; i < rank->streams[stream].count; i++)
            if (!add_work(recorder, agent, rank->by_stream[rank->streams[stream].first + i]))
                return false;
    }
    return true;
}

static bool add_steps(struct recorder *recorder)
{
    const struct job_rank *rank = recorder->rank;
    for (size_t i = 0; i < rank->range_count; i++) {
        const struct job_range *range = &rank->ranges[i];
        struct trace_iteration step = {
            .rank = recorder->number, .start_ns = range->start_ns, .retire_ns = range->end_ns};
        if (!range_is_step(recorder->imported->job.names.items[range->name], &step.number) ||
            range->end_ns <= 0 || range->start_ns >= rank->end_ns)
            continue;
        step.start_ns = step.start_ns > 0 ? step.start_ns : 0;
        if (trace_add_iteration(recorder->trace, &step) < 0)
            return false;
    }
    return true;
}

static bool add_stats(const struct imported *imported, struct trace *trace)
{
    for (int i = 0; i < IDLE_COUNT; i++) {
        char key[64];
        double sum = 0;
        for (size_t r = 0; r < imported->job.rank_count; r++)
            sum += (double)imported->evidence[r].total.idle_ns[i];
        snprintf(key, sizeof key, "idle_%s_ns", idle_key((enum idle)i));
        if (trace_add_stat(trace, key, sum) < 0)
            return false;
    }
    return true;
}

static bool add_rank(const struct imported *imported, size_t r, struct trace *trace)
{
    struct recorder recorder = {
        .imported = imported, .rank = &imported->job.ranks[r], .trace = trace, .number = (int)r};
    recorder.span = malloc((recorder.rank->call_count + 1) * sizeof *recorder.span);
    if (!recorder.span)
        return false;
    for (size_t i = 0; i < recorder.rank->call_count; i++)
        recorder.span[i] = -1;
    const bool ok = add_threads(&recorder) && add_streams(&recorder) && add_steps(&recorder);
    free(recorder.span);
    return ok;
}

enum status import_record(const struct imported *imported, struct trace *trace, struct diag *diag)
{
    const size_t before = diag->errors;
    bool ok = add_info(imported, trace, diag) && add_stats(imported, trace);
    for (size_t r = 0; ok && r < imported->job.rank_count; r++)
        ok = add_rank(imported, r, trace);
    if (ok && trace_sort(trace))
        return STATUS_OK;
    return diag->errors > before ? STATUS_SYSTEM : diag_no_memory(diag);
}
