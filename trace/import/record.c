/* SPDX-License-Identifier: Apache-2.0 */
/* record.c - see record.h. */
#include "record.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

#include "innermost.h"
#include "meetings.h"
#include "steps.h"

#include "base/array.h"
#include "base/assert_index.h"
#include "base/sort.h"
#include "plan/schedules/actions.h"
#include "plan/text/print.h"
#include "trace/job/call_names.h"
#include "trace/job/job.h"
#include "trace/trace.h"

struct pass_found {
    int name; /* job->names */
    int64_t start_ns, end_ns;
};

struct passes {
    struct pass_found *items; /* by start */
    size_t count, cap;
};

/*
 * When a rank did the passes of its microbatches, by annotations that name them (plan/schedules/actions.h).
 *
 * A pass lasts from the first to the last kernel launched while its annotation was open, on whatever thread: a
 * backward pass is launched by autograd's thread, which has no annotation. Kernels of messages and collectives
 * do not count, for they begin by waiting; copies do where there is no kernel. Where a name has no launch, as in
 * a trace without calls, the profiler's annotation of the device is the pass, as far as its stream computes in it.
 * In a trace without a device the pass is the annotation itself.
 */

/* An annotation of the host, and when the kernels and copies launched in it ran; first > last: there are none. */
struct record_opened {
    int name;
    int64_t start_ns, end_ns;
    int64_t first_ns, last_ns; /* of kernels */
    int64_t first_copy_ns, last_copy_ns;
};

struct record_finder {
    const struct job *job;
    const struct job_rank *rank;
    struct record_opened *opened; /* by start */
    size_t count;
    bool *is_pass;   /* per name */
    bool *is_placed; /* likewise: work of it was found */
    struct passes *out;
};

static bool passes_add(struct passes *passes, int name, int64_t start_ns, int64_t end_ns)
{
    if (!ARRAY_GROW(passes->items, passes->count, passes->cap))
        return false;
    passes->items[passes->count++] = (struct pass_found){name, start_ns, end_ns};
    return true;
}

static int record_compare_passes(const void *left, const void *right)
{
    const struct pass_found *a = left, *b = right;
    return compare_i64(a->start_ns, b->start_ns);
}

static int compare_opened(const void *left, const void *right)
{
    const struct record_opened *a = left, *b = right;
    return compare_i64(a->start_ns, b->start_ns);
}

/* ---- what names a pass ----------------------------------------------------------------------- */

static bool read_names(struct record_finder *finder)
{
    const struct names *names = &finder->job->names;
    struct arena arena;
    struct action action;
    finder->is_pass = calloc(names->count + 1, sizeof *finder->is_pass);
    finder->is_placed = calloc(names->count + 1, sizeof *finder->is_placed);
    if (!finder->is_pass || !finder->is_placed)
        return false;
    arena_init(&arena, 0);
    for (size_t i = 0; i < names->count; i++)
        finder->is_pass[i] = pass_name_read(names->items[i], &arena, &action);
    const bool ok = !arena.failed;
    arena_fini(&arena);
    return ok;
}

static size_t count_named(const struct record_finder *finder)
{
    size_t count = 0;
    for (size_t i = 0; i < finder->rank->range_count; i++)
        count += finder->is_pass[finder->rank->ranges[i].name];
    return count;
}

static bool open_ranges(struct record_finder *finder)
{
    const struct job_rank *rank = finder->rank;
    finder->opened = malloc((count_named(finder) + 1) * sizeof *finder->opened);
    for (size_t i = 0; finder->opened && i < rank->range_count; i++)
        if (finder->is_pass[rank->ranges[i].name])
            finder->opened[finder->count++] =
                (struct record_opened){.name = rank->ranges[i].name,
                                       .start_ns = rank->ranges[i].start_ns,
                                       .end_ns = rank->ranges[i].end_ns,
                                       .first_ns = INT64_MAX,
                                       .last_ns = INT64_MIN,
                                       .first_copy_ns = INT64_MAX,
                                       .last_copy_ns = INT64_MIN};
    if (finder->count)
        SORT(finder->opened, finder->count, compare_opened);
    return finder->opened != NULL;
}

/* ---- what was launched in it ----------------------------------------------------------------- */

/* The annotation that is open at a time, the last of them to begin; NULL: none. */
static struct record_opened *record_open_at(const struct record_finder *finder, int64_t time_ns)
{
    size_t low = SORT_FIRST(i, 0, finder->count, finder->opened[i].start_ns > time_ns);
    struct record_opened *last = low > 0 ? &finder->opened[low - 1] : NULL;
    return last && time_ns < last->end_ns ? last : NULL;
}

static void record_widen(int64_t *first_ns, int64_t *last_ns, const struct job_work *work)
{
    *first_ns = work->start_ns < *first_ns ? work->start_ns : *first_ns;
    *last_ns = work->end_ns > *last_ns ? work->end_ns : *last_ns;
}

static void take_works(struct record_finder *finder)
{
    const struct job_rank *rank = finder->rank;
    for (size_t i = 0; i < rank->work_count; i++) {
        const struct job_work *work = &rank->works[i];
        struct record_opened *opened =
            work->call >= 0 && !work->is_collective
                ? record_open_at(finder, rank->calls[work->call].start_ns)
                : NULL;
        if (opened && work->class == CLASS_KERNEL)
            record_widen(&opened->first_ns, &opened->last_ns, work);
        else if (opened)
            record_widen(&opened->first_copy_ns, &opened->last_copy_ns, work);
    }
}

/* Annotations of steps that were not chosen have no work and are before or behind it. */
static bool add_opened(struct record_finder *finder, const struct record_opened *opened)
{
    const bool kernels = opened->first_ns <= opened->last_ns;
    const bool copies = opened->first_copy_ns <= opened->last_copy_ns;
    finder->is_placed[opened->name] |= kernels || copies;
    if (kernels)
        return passes_add(finder->out, opened->name, opened->first_ns, opened->last_ns);
    if (copies)
        return passes_add(finder->out, opened->name, opened->first_copy_ns, opened->last_copy_ns);
    return !finder->rank->is_host || opened->end_ns <= 0 ||
           opened->start_ns >= finder->rank->end_ns ||
           passes_add(finder->out, opened->name, opened->start_ns > 0 ? opened->start_ns : 0,
                      opened->end_ns);
}

/* ---- the profiler's annotations of the device ------------------------------------------------ */

static const struct job_stream *record_stream_of(const struct job_rank *rank,
                                                 const struct job_mark *mark)
{
    for (size_t i = 0; i < rank->stream_count; i++)
        if (rank->streams[i].own == mark->stream)
            return &rank->streams[i];
    return NULL;
}

/* The first work of a stream that begins at `time_ns` or later. */
static int record_first_from(const struct job_rank *rank, const struct job_stream *stream,
                             int64_t time_ns)
{
    return SORT_FIRST(i, 0, stream->count,
                      rank->works[rank->by_stream[stream->first + i]].start_ns >= time_ns);
}

/* True if the stream of the annotation computes in it. */
static bool find_computed(const struct job_rank *rank, const struct job_mark *mark,
                          int64_t *first_ns, int64_t *last_ns)
{
    const struct job_stream *stream = record_stream_of(rank, mark);
    *first_ns = INT64_MAX;
    *last_ns = INT64_MIN;
    for (int i = stream ? record_first_from(rank, stream, mark->start_ns) : 0;
         stream && i < stream->count; i++) {
        const struct job_work *work = &rank->works[rank->by_stream[stream->first + i]];
        if (work->start_ns >= mark->end_ns)
            break;
        if (!work->is_collective)
            record_widen(first_ns, last_ns, work);
    }
    return *first_ns <= *last_ns;
}

static bool take_marks(struct record_finder *finder)
{
    const struct job_rank *rank = finder->rank;
    int64_t first_ns, last_ns;
    for (size_t i = 0; i < rank->mark_count; i++) {
        const struct job_mark *mark = &rank->marks[i];
        if (!finder->is_placed[mark->name] && find_computed(rank, mark, &first_ns, &last_ns) &&
            !passes_add(finder->out, mark->name, first_ns, last_ns))
            return false;
    }
    return true;
}

/* There is an annotation for each stream. */
static void record_join_streams(struct passes *passes)
{
    size_t kept = 0;
    for (size_t i = 0; i < passes->count; i++) {
        const struct pass_found *pass = &passes->items[i];
        struct pass_found *last = kept ? &passes->items[kept - 1] : NULL;
        assert(!last || last->start_ns <= pass->start_ns);
        if (!last || last->name != pass->name || pass->start_ns > last->end_ns)
            passes->items[kept++] = *pass;
        else if (pass->end_ns > last->end_ns)
            last->end_ns = pass->end_ns;
    }
    passes->count = kept;
}

/* ---- all ------------------------------------------------------------------------------------- */

static bool passes_find_all(struct record_finder *finder)
{
    if (!read_names(finder) || !open_ranges(finder))
        return false;
    take_works(finder);
    for (size_t i = 0; i < finder->count; i++)
        if (!add_opened(finder, &finder->opened[i]))
            return false;
    if (!take_marks(finder))
        return false;
    if (finder->out->count)
        SORT(finder->out->items, finder->out->count, record_compare_passes);
    record_join_streams(finder->out);
    return true;
}

/* Of a rank after job_finish; ended by passes_fini, also after a failure. False: no memory. */
static bool passes_find(const struct job *job, const struct job_rank *rank, struct passes *out)
{
    *out = (struct passes){0};
    struct record_finder finder = {.job = job, .rank = rank, .out = out};
    const bool ok = (rank->range_count == 0 && rank->mark_count == 0) || passes_find_all(&finder);
    free(finder.opened);
    free(finder.is_pass);
    free(finder.is_placed);
    return ok;
}

static void passes_fini(struct passes *passes)
{
    free(passes->items);
}

struct record_recorder {
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

static bool record_add_info(const struct imported *imported, struct trace *trace, struct diag *diag)
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
    return compare_i64(a->start_ns, b->start_ns);
}

static void record_take_profiler_steps(struct record_recorder *recorder)
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
        SORT(recorder->steps, recorder->step_count, compare_steps);
    /* Numbers rise: a step that is annotated twice, or counted again, is no other one. */
    size_t kept = 0;
    for (size_t i = 0; i < recorder->step_count; i++)
        if (kept == 0 || recorder->steps[i].number > recorder->steps[kept - 1].number)
            recorder->steps[kept++] = recorder->steps[i];
    recorder->step_count = kept;
}

/* Without the profiler's: those that repeat (steps.h), from 0 on, as the plan has them. */
static bool record_take_repeated(struct record_recorder *recorder)
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

static bool record_find_steps(struct record_recorder *recorder)
{
    recorder->steps = malloc((recorder->rank->range_count + 1) * sizeof *recorder->steps);
    if (!recorder->steps)
        return false;
    record_take_profiler_steps(recorder);
    return recorder->step_count > 0 || record_take_repeated(recorder);
}

/* The step of a time; -1: none. */
static int64_t record_step_of(const struct record_recorder *recorder, int64_t time_ns)
{
    size_t low = SORT_FIRST(i, 0, recorder->step_count, recorder->steps[i].start_ns > time_ns);
    const struct trace_iteration *step = low > 0 ? &recorder->steps[low - 1] : NULL;
    return step && time_ns < step->retire_ns ? step->number : -1;
}

/* The span of a call, on the agent of its thread; true also for one without a span. */
static bool record_add_call(struct record_recorder *recorder, int agent, int at)
{
    ASSERT_INDEX(at, recorder->rank->call_count);
    const struct job_call *call = &recorder->rank->calls[at];
    const bool waits = call->kind == CALL_SYNC_STREAM || call->kind == CALL_SYNC_EVENT ||
                       call->kind == CALL_SYNC_DEVICE;
    if (!waits && call->work_count == 0)
        return true;
    const struct trace_span span = {.agent = agent,
                                    .kind = waits ? SPAN_WAIT : SPAN_HOST,
                                    .task = recorder->imported->job.names.items[call->name],
                                    .iteration = record_step_of(recorder, call->start_ns),
                                    .start_ns = call->start_ns,
                                    .end_ns = call->end_ns,
                                    .cause = waits ? "device" : NULL};
    recorder->span[at] = trace_add_span(recorder->trace, &span);
    return recorder->span[at] >= 0;
}

/* What a thread of a job on CPUs does: its innermost annotation, or the operation that it waits for. */
static bool record_add_stretches(struct record_recorder *recorder, int agent, int thread)
{
    const struct innermost *innermost = &recorder->innermost;
    for (int i = innermost->first[thread]; i < innermost->first[thread + 1]; i++) {
        const struct innermost_stretch *stretch = &innermost->stretches[i];
        const struct trace_span span = {.agent = agent,
                                        .kind = SPAN_HOST,
                                        .task = recorder->imported->job.names.items[stretch->name],
                                        .iteration = record_step_of(recorder, stretch->start_ns),
                                        .start_ns = stretch->start_ns,
                                        .end_ns = stretch->end_ns};
        if (trace_add_span(recorder->trace, &span) < 0)
            return false;
    }
    return true;
}

static bool record_add_threads(struct record_recorder *recorder)
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
            if (!record_add_call(recorder, agent, i))
                return false;
        if (rank->is_host && !record_add_stretches(recorder, agent, thread))
            return false;
    }
    return true;
}

/* The thing that a stream waited for, as a tooltip of a picture goes on after "waits for". */
static const char *idle_text(const struct record_recorder *recorder, int at, enum idle cause,
                             const char *waits_for, char text[2 * WORDS])
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
        snprintf(text, 2 * WORDS, "its launch by the host%s%s", waits_for ? ", which is in " : "",
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
    case IDLE_BEFORE: snprintf(text, WORDS, "work from before the trace begins"); break;
    case IDLE_NOTHING:
    case IDLE_COUNT: snprintf(text, WORDS, "nothing that the trace tells"); break;
    }
    return text;
}

/* The work that a stream waits for; of a launch the place of its thread, in `text`. NULL: none is known. */
static const char *record_waited_for(const struct record_recorder *recorder, int at,
                                     const struct idle_piece *piece, char text[WORDS])
{
    const struct job_rank *rank = recorder->rank;
    const struct job *job = &recorder->imported->job;
    const int source = recorder->imported->evidence[recorder->number].reasons[at].source;
    ASSERT_INDEX(at, rank->work_count);
    const int call = rank->works[at].call;
    if (piece->cause == IDLE_LAUNCH && call >= 0) {
        struct innermost_stretch place;
        if (!innermost_place(&recorder->innermost, rank->calls[call].thread, piece->start_ns,
                             piece->end_ns, &place))
            return NULL;
        innermost_words(job, &place, text, WORDS);
        return text;
    }
    const bool waits = piece->cause != IDLE_LAUNCH && piece->cause != IDLE_ORDER && source >= 0;
    return waits ? job->names.items[rank->works[source].name] : NULL;
}

/* The gaps between works are in the ledger only: pictures have no room for them. */
static bool record_add_piece(struct record_recorder *recorder, int agent, int at,
                             const struct idle_piece *piece)
{
    char text[2 * WORDS], place[WORDS];
    const char *waits_for = record_waited_for(recorder, at, piece, place);
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

static bool record_add_idle(struct record_recorder *recorder, int agent, int at)
{
    struct idle_piece pieces[IDLE_PIECES];
    const int count =
        evidence_idle(recorder->rank, &recorder->imported->evidence[recorder->number], at, pieces);
    for (int i = 0; i < count; i++)
        if (!record_add_piece(recorder, agent, at, &pieces[i]))
            return false;
    return true;
}

/* A rank waits in its collective for those that come later: all but the least time over the ranks. */
static int64_t peer_wait(const struct record_recorder *recorder, int at)
{
    const struct meetings_meeting *meeting = meetings_of(recorder->meetings, recorder->number, at);
    ASSERT_INDEX(at, recorder->rank->work_count);
    const struct job_work *work = &recorder->rank->works[at];
    const int64_t took_ns = work->end_ns - work->start_ns;
    return meeting && meeting->time_ns < took_ns ? took_ns - meeting->time_ns : 0;
}

static bool record_add_peer_wait(struct record_recorder *recorder, int agent, int at,
                                 int64_t wait_ns)
{
    ASSERT_INDEX(at, recorder->rank->work_count);
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
static const char *record_task_name(const struct record_recorder *recorder, int at)
{
    const struct imported *imported = recorder->imported;
    const int task = imported->tasks ? imported->tasks[recorder->number][at] : -1;
    ASSERT_INDEX(at, recorder->rank->work_count);
    return task >= 0 ? imported->plan.pipeline.tasks[task].name
                     : imported->job.names.items[recorder->rank->works[at].name];
}

static bool record_add_work(struct record_recorder *recorder, int agent, int at)
{
    const int64_t wait_ns = peer_wait(recorder, at);
    ASSERT_INDEX(at, recorder->rank->work_count);
    const struct job_work *work = &recorder->rank->works[at];
    const int64_t launched_ns =
        work->call >= 0 ? recorder->rank->calls[work->call].start_ns : work->start_ns;
    const struct trace_span span = {.agent = agent,
                                    .kind = SPAN_DEVICE,
                                    .task = record_task_name(recorder, at),
                                    .iteration = record_step_of(recorder, launched_ns),
                                    .start_ns = work->start_ns + wait_ns,
                                    .end_ns = work->end_ns};
    const int number = trace_add_span(recorder->trace, &span);
    const int launch = work->call >= 0 ? recorder->span[work->call] : -1;
    recorder->device[at] = number;
    return number >= 0 &&
           (launch < 0 || trace_add_edge(recorder->trace, launch, number, EDGE_LAUNCH) >= 0) &&
           record_add_idle(recorder, agent, at) &&
           record_add_peer_wait(recorder, agent, at, wait_ns);
}

static bool record_add_streams(struct record_recorder *recorder)
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
            if (!record_add_work(recorder, agent, rank->by_stream[rank->streams[stream].first + i]))
                return false;
    }
    return true;
}

/* Arrows of a picture, from the work that a stream waited for. */
static bool record_own_add_edges(struct record_recorder *recorder)
{
    const struct evidence *evidence = &recorder->imported->evidence[recorder->number];
    for (size_t i = 0; i < evidence->edge_count; i++)
        if (trace_add_edge(recorder->trace, recorder->device[evidence->edges[i].source],
                           recorder->device[evidence->edges[i].work], EDGE_DEPENDENCE) < 0)
            return false;
    return true;
}

/* The passes of the rank's microbatches, where annotations name them. */
static bool record_add_passes(struct record_recorder *recorder)
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
                                        .iteration = record_step_of(recorder, pass->start_ns),
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

static bool record_add_rank(const struct imported *imported, const struct meetings *meetings,
                            size_t r, struct trace *trace)
{
    ASSERT_INDEX(r, imported->job.rank_count);
    struct record_recorder recorder = {.imported = imported,
                                       .meetings = meetings,
                                       .rank = &imported->job.ranks[r],
                                       .trace = trace,
                                       .number = (int)r};
    recorder.span = malloc((recorder.rank->call_count + 1) * sizeof *recorder.span);
    recorder.device = malloc((recorder.rank->work_count + 1) * sizeof *recorder.device);
    bool ok = record_find_steps(&recorder) &&
              innermost_find(&imported->job, recorder.rank, &recorder.innermost) && recorder.span &&
              recorder.device;
    for (size_t i = 0; ok && i < recorder.rank->call_count; i++)
        recorder.span[i] = -1;
    ok = ok && record_add_threads(&recorder) && record_add_streams(&recorder) &&
         record_add_passes(&recorder) && record_own_add_edges(&recorder);
    for (size_t i = 0; ok && i < recorder.step_count; i++)
        ok = trace_add_iteration(trace, &recorder.steps[i]) >= 0;
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
              record_add_info(imported, trace, diag) && add_stats(imported, trace);
    for (size_t r = 0; ok && r < imported->job.rank_count; r++)
        ok = record_add_rank(imported, &meetings, r, trace);
    meetings_fini(&meetings);
    plan_fini(&comms);
    if (ok && trace_sort(trace))
        return STATUS_OK;
    return diag->errors > before ? STATUS_SYSTEM : diag_no_memory(diag);
}
