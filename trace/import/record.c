/* SPDX-License-Identifier: Apache-2.0 */
/* record.c - see record.h. */
#include "record.h"

#include <stdlib.h>
#include <time.h>

#include "trace/job/call_names.h"
#include "innermost.h"
#include "meetings.h"
#include "passes.h"
#include "steps.h"

#include "plan/text/print.h"
#include "trace/ledger.h"

struct recorder {
    const struct imported *imported;
    const struct meetings *meetings;
    const struct job_rank *rank;
    struct trace *trace;
    int number;  /* of the rank */
    int *span;   /* per call; -1: none */
    int *device; /* per work */
    struct innermost innermost;
    struct trace_iteration *steps; /* in order of time */
    size_t step_count;
};

enum { WORDS = 320 };

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
                            .note = RUN_NOTE_IMPORTED};
    for (size_t r = 0; r < imported->job.rank_count; r++)
        if (imported->job.ranks[r].end_ns > info.duration_ns)
            info.duration_ns = imported->job.ranks[r].end_ns;
    return trace_set_info(trace, &info);
}

static int compare_steps(const void *left, const void *right)
{
    const struct trace_iteration *a = left, *b = right;
    return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* Numbers rise: a step that is annotated twice, or counted again, is no other one. */
static void keep_rising(struct recorder *recorder)
{
    size_t kept = 0;
    for (size_t i = 0; i < recorder->step_count; i++)
        if (kept == 0 || recorder->steps[i].number > recorder->steps[kept - 1].number)
            recorder->steps[kept++] = recorder->steps[i];
    recorder->step_count = kept;
}

static void take_profiler_steps(struct recorder *recorder)
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
        recorder->steps[recorder->step_count++] = step;
    }
    if (recorder->step_count)
        qsort(recorder->steps, recorder->step_count, sizeof *recorder->steps, compare_steps);
    keep_rising(recorder);
}

/* Without the profiler's: those that repeat (steps.h), from 0 on, as the plan has them. */
static bool take_repeated(struct recorder *recorder)
{
    struct arena arena;
    arena_init(&arena, 0);
    struct step_search search = {
        .job = &recorder->imported->job, .rank = recorder->rank, .arena = &arena};
    const bool ok = steps_find(&search);
    for (size_t i = 0; ok && search.step_count > 1 && i < search.step_count; i++)
        recorder->steps[recorder->step_count++] =
            (struct trace_iteration){.rank = recorder->number,
                                     .number = (int64_t)i,
                                     .start_ns = search.steps[i].begin_ns,
                                     .retire_ns = search.steps[i].end_ns};
    arena_fini(&arena);
    return ok;
}

static bool find_steps(struct recorder *recorder)
{
    recorder->steps = malloc((recorder->rank->range_count + 1) * sizeof *recorder->steps);
    if (!recorder->steps)
        return false;
    take_profiler_steps(recorder);
    return recorder->step_count > 0 || take_repeated(recorder);
}

/* The step of a time; -1: none. */
static int64_t step_of(const struct recorder *recorder, int64_t time_ns)
{
    size_t low = 0, high = recorder->step_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (recorder->steps[middle].start_ns <= time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    const struct trace_iteration *step = low > 0 ? &recorder->steps[low - 1] : NULL;
    return step && time_ns < step->retire_ns ? step->number : -1;
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
                                    .iteration = step_of(recorder, call->start_ns),
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

/* The thing that a stream waited for, as a tooltip of a picture goes on after "waits for". */
static const char *idle_text(const struct recorder *recorder, int at, enum idle cause,
                             const char *waits_for, char text[WORDS])
{
    const struct job_rank *rank = recorder->rank;
    const int source = recorder->imported->evidence[recorder->number].reasons[at].source;
    char what[WORDS - 80] = "work that is not recorded", stream[STREAM_TEXT];
    if (source >= 0)
        snprintf(what, sizeof what, "%s on %s",
                 recorder->imported->job.names.items[rank->works[source].name],
                 job_stream_name(&rank->streams[rank->works[source].stream], stream));
    switch (cause) {
    case IDLE_LAUNCH:
        snprintf(text, WORDS, "its launch by the host%s%s", waits_for ? ", which is in " : "",
                 waits_for ? waits_for : "");
        break;
    case IDLE_ORDER: snprintf(text, WORDS, "its turn after the work before it"); break;
    case IDLE_EVENT_ID: snprintf(text, WORDS, "%s (an event, by its id)", what); break;
    case IDLE_EVENT_CALL:
        snprintf(text, WORDS, "%s (an event, by the order of calls)", what);
        break;
    case IDLE_EVENT_TIME: snprintf(text, WORDS, "%s (by time)", what); break;
    case IDLE_RESIDENCY:
        snprintf(text, WORDS, "room on the device beside %s (by time)", what);
        break;
    case IDLE_NOTHING:
    case IDLE_COUNT: snprintf(text, WORDS, "nothing that the trace tells"); break;
    }
    return text;
}

/* The work that a stream waits for; of a launch the place of its thread. NULL: none is known. */
static const char *waited_for(const struct recorder *recorder, int at,
                              const struct idle_piece *piece)
{
    const struct job_rank *rank = recorder->rank;
    const int source = recorder->imported->evidence[recorder->number].reasons[at].source;
    const int call = rank->works[at].call;
    int name = -1;
    if (piece->cause == IDLE_LAUNCH && call >= 0)
        name = innermost_name(&recorder->innermost, rank->calls[call].thread, piece->start_ns,
                              piece->end_ns);
    else if (piece->cause != IDLE_LAUNCH && piece->cause != IDLE_ORDER && source >= 0)
        name = rank->works[source].name;
    return name >= 0 ? recorder->imported->job.names.items[name] : NULL;
}

/* The gaps between works are in the ledger only: pictures have no room for them. */
static bool add_piece(struct recorder *recorder, int agent, int at, const struct idle_piece *piece)
{
    char text[WORDS];
    const char *waits_for = waited_for(recorder, at, piece);
    const struct trace_idle line = {.agent = agent,
                                    .cause = idle_cause(piece->cause),
                                    .word = idle_word(piece->cause),
                                    .waits_for = waits_for,
                                    .words = idle_text(recorder, at, piece->cause, waits_for, text),
                                    .idle_ns = piece->end_ns - piece->start_ns};
    const struct trace_span span = {.agent = agent,
                                    .kind = SPAN_WAIT,
                                    .iteration = -1,
                                    .start_ns = piece->start_ns,
                                    .end_ns = piece->end_ns,
                                    .cause = line.words};
    return trace_add_idle(recorder->trace, &line) &&
           (piece->cause == IDLE_ORDER || trace_add_span(recorder->trace, &span) >= 0);
}

static bool add_idle(struct recorder *recorder, int agent, int at)
{
    struct idle_piece pieces[IDLE_PIECES];
    const int count =
        evidence_idle(recorder->rank, &recorder->imported->evidence[recorder->number], at, pieces);
    for (int i = 0; i < count; i++)
        if (!add_piece(recorder, agent, at, &pieces[i]))
            return false;
    return true;
}

/* A rank waits in its collective for those that come later: all but the least time over the ranks. */
static int64_t peer_wait(const struct recorder *recorder, int at)
{
    const struct meeting *meeting = meetings_of(recorder->meetings, recorder->number, at);
    const struct job_work *work = &recorder->rank->works[at];
    const int64_t took_ns = work->end_ns - work->start_ns;
    return meeting && meeting->time_ns < took_ns ? took_ns - meeting->time_ns : 0;
}

static bool add_peer_wait(struct recorder *recorder, int agent, int at, int64_t wait_ns)
{
    const struct job_work *work = &recorder->rank->works[at];
    const char *name = recorder->imported->job.names.items[work->name];
    char text[WORDS];
    snprintf(text, sizeof text, "other ranks in %s (by the least time over the ranks)", name);
    const struct trace_idle line = {.agent = agent,
                                    .cause = "peer",
                                    .word = "ranks",
                                    .waits_for = name,
                                    .words = text,
                                    .idle_ns = wait_ns};
    const struct trace_span span = {.agent = agent,
                                    .kind = SPAN_WAIT,
                                    .iteration = -1,
                                    .start_ns = work->start_ns,
                                    .end_ns = work->start_ns + wait_ns,
                                    .cause = text};
    return wait_ns == 0 ||
           (trace_add_idle(recorder->trace, &line) && trace_add_span(recorder->trace, &span) >= 0);
}

/* In a pipeline what a work is part of, so that predictions can be held against it. */
static const char *task_name(const struct recorder *recorder, int at)
{
    const struct imported *imported = recorder->imported;
    const int task = imported->tasks ? imported->tasks[recorder->number][at] : -1;
    return task >= 0 ? imported->plan.pipeline.tasks[task].name
                     : imported->job.names.items[recorder->rank->works[at].name];
}

static bool add_work(struct recorder *recorder, int agent, int at)
{
    const int64_t wait_ns = peer_wait(recorder, at);
    const struct job_work *work = &recorder->rank->works[at];
    const int64_t launched_ns =
        work->call >= 0 ? recorder->rank->calls[work->call].start_ns : work->start_ns;
    const struct trace_span span = {.agent = agent,
                                    .kind = SPAN_DEVICE,
                                    .task = task_name(recorder, at),
                                    .iteration = step_of(recorder, launched_ns),
                                    .start_ns = work->start_ns + wait_ns,
                                    .end_ns = work->end_ns};
    const int number = trace_add_span(recorder->trace, &span);
    const int launch = work->call >= 0 ? recorder->span[work->call] : -1;
    recorder->device[at] = number;
    return number >= 0 &&
           (launch < 0 || trace_add_edge(recorder->trace, launch, number, EDGE_LAUNCH) >= 0) &&
           add_idle(recorder, agent, at) && add_peer_wait(recorder, agent, at, wait_ns);
}

static bool add_streams(struct recorder *recorder)
{
    const struct job_rank *rank = recorder->rank;
    for (int stream = 0; stream < (int)rank->stream_count; stream++) {
        char text[STREAM_TEXT];
        const char *name = job_stream_name(&rank->streams[stream], text);
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

/* Arrows of a picture, from the work that a stream waited for. */
static bool add_edges(struct recorder *recorder)
{
    const struct evidence *evidence = &recorder->imported->evidence[recorder->number];
    for (size_t i = 0; i < evidence->edge_count; i++)
        if (trace_add_edge(recorder->trace, recorder->device[evidence->edges[i].source],
                           recorder->device[evidence->edges[i].work], EDGE_DEPENDENCE) < 0)
            return false;
    return true;
}

static bool add_steps(struct recorder *recorder)
{
    for (size_t i = 0; i < recorder->step_count; i++)
        if (trace_add_iteration(recorder->trace, &recorder->steps[i]) < 0)
            return false;
    return true;
}

/* The passes of the rank's microbatches, where annotations name them. */
static bool add_passes(struct recorder *recorder)
{
    struct passes passes;
    bool ok = passes_find(&recorder->imported->job, recorder->rank, &passes);
    const int agent = ok && passes.count ? trace_add_agent(recorder->trace, recorder->number,
                                                           TRACE_SCHEDULE, "passes", 0)
                                         : -1;
    ok = ok && (agent >= 0 || passes.count == 0);
    for (size_t i = 0; ok && i < passes.count; i++) {
        const struct pass_found *pass = &passes.items[i];
        const struct trace_span span = {.agent = agent,
                                        .kind = SPAN_PASS,
                                        .task = recorder->imported->job.names.items[pass->name],
                                        .iteration = step_of(recorder, pass->start_ns),
                                        .start_ns = pass->start_ns,
                                        .end_ns = pass->end_ns};
        ok = trace_add_span(recorder->trace, &span) >= 0;
    }
    passes_fini(&passes);
    return ok;
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

static bool add_rank(const struct imported *imported, const struct meetings *meetings, size_t r,
                     struct trace *trace)
{
    struct recorder recorder = {.imported = imported,
                                .meetings = meetings,
                                .rank = &imported->job.ranks[r],
                                .trace = trace,
                                .number = (int)r};
    recorder.span = malloc((recorder.rank->call_count + 1) * sizeof *recorder.span);
    recorder.device = malloc((recorder.rank->work_count + 1) * sizeof *recorder.device);
    bool ok = find_steps(&recorder) &&
              innermost_find(&imported->job, recorder.rank, &recorder.innermost) && recorder.span &&
              recorder.device;
    for (size_t i = 0; ok && i < recorder.rank->call_count; i++)
        recorder.span[i] = -1;
    ok = ok && add_threads(&recorder) && add_streams(&recorder) && add_passes(&recorder) &&
         add_edges(&recorder) && add_steps(&recorder);
    free(recorder.span);
    free(recorder.steps);
    free(recorder.device);
    innermost_fini(&recorder.innermost);
    return ok;
}

enum status import_record(const struct imported *imported, struct trace *trace, struct diag *diag)
{
    const size_t before = diag->errors;
    struct meetings meetings;
    struct plan comms; /* its communicators are not needed */
    plan_init(&comms);
    bool ok = meetings_find(&imported->job, &comms, &meetings, diag) == STATUS_OK &&
              add_info(imported, trace, diag) && add_stats(imported, trace);
    for (size_t r = 0; ok && r < imported->job.rank_count; r++)
        ok = add_rank(imported, &meetings, r, trace);
    meetings_fini(&meetings);
    plan_fini(&comms);
    if (ok && trace_sort(trace))
        return STATUS_OK;
    return diag->errors > before ? STATUS_SYSTEM : diag_no_memory(diag);
}
