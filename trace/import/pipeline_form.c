/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_form.c - see pipeline_form.h: the plan around tasks and dependences. */
#include "pipeline_form.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline_internal.h"

/* How far apart the ranks begin their first steps; 0 where a rank has none of the profiler. */
static int64_t beginnings_apart(const struct job *job)
{
    int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;
    for (size_t r = 0; r < job->rank_count; r++) {
        const struct job_rank *rank = &job->ranks[r];
        if (!rank->stepped)
            return 0;
        first_ns = rank->steps_begin_ns < first_ns ? rank->steps_begin_ns : first_ns;
        last_ns = rank->steps_begin_ns > last_ns ? rank->steps_begin_ns : last_ns;
    }
    return last_ns - first_ns;
}

/* Ranks that come late let the others wait in the steps of the trace, which steps that follow each other do not. */
static const char *with_beginnings(const char *kept, const struct job *job,
                                   const struct sections *sections, struct arena *arena)
{
    const int64_t apart_ns = beginnings_apart(job);
    if (!kept || apart_ns <= sections->period_ns / SECTION_LONG)
        return kept;
    return arena_printf(arena,
                        "%s; the ranks begin their first step %.3f ms apart, so the mean includes "
                        "waiting for the last rank",
                        kept, (double)apart_ns / 1e6);
}

static const char *pipeline_form_about(const struct job *job, const struct sections *sections,
                                       size_t ranks, struct arena *arena)
{
    const char *of_ranks = ranks > 1 ? arena_printf(arena, " of %zu ranks", ranks) : "";
    if (!of_ranks)
        return NULL;
    const char *kept = arena_printf(
        arena, "%zu annotation%s %.1f%% of a step of %.3f ms (mean of %zu%s)",
        sections->annotation_count, sections->annotation_count == 1 ? " covers" : "s cover",
        sections->annotated / 1e4, (double)sections->period_ns / 1e6, sections->step_count,
        of_ranks);
    kept = with_beginnings(kept, job, sections, arena);
    if (!kept || sections->left_out == 0)
        return kept;
    return arena_printf(arena, "%s; %zu step%s with other annotations than most %s left out", kept,
                        sections->left_out, sections->left_out == 1 ? "" : "s",
                        sections->left_out == 1 ? "is" : "are");
}

static int busiest_stream(const struct turns *turns)
{
    int best = 0;
    for (int s = 1; s < (int)turns->rank.stream_count; s++)
        if (turns->evidence.streams[s].busy_ns > turns->evidence.streams[best].busy_ns)
            best = s;
    return best;
}

static enum status pipeline_form_write_plan(struct pipeline_form_writer *writer,
                                            const struct pipeline_form_options *options,
                                            struct arena *arena, struct diag *diag)
{
    struct plan *plan = writer->plan;
    struct pipeline *pipeline = &plan->pipeline;
    plan->form = FORM_PIPELINE;
    plan->ranks = (int)writer->turns->count;
    plan->on_failure = ON_FAILURE_GROUP_ABORT;
    plan->name = arena_strdup(&plan->arena, options->name);
    plan->about =
        pipeline_form_about(writer->job, writer->sections, writer->turns->count, &plan->arena);
    pipeline->driver = PLAN_DRIVER_CLOCK;
    pipeline->driver_given = true;
    writer->stage = ARENA_ARRAY(&plan->arena, writer->sections->count, int);
    if (!plan->name || !plan->about || !writer->stage)
        return diag_no_memory(diag);
    writer->busiest = busiest_stream(writer->turns);
    if (!pipeline_stages(writer, arena))
        return diag_no_memory(diag);
    const enum status status = pipeline_tasks(writer, diag);
    if (status != STATUS_OK)
        return status;
    return pipeline_deps(writer) && pipeline_buffers(writer, arena) ? STATUS_OK
                                                                    : diag_no_memory(diag);
}

/* The task of each work, rank by rank. */
static bool pipeline_form_list_tasks(const struct pipeline_form_writer *writer, struct arena *kept,
                                     int ***out)
{
    const struct turns *turns = writer->turns;
    int **tasks = ARENA_ARRAY(kept, turns->count, int *);
    for (size_t r = 0; tasks && r < turns->count; r++) {
        const size_t count = turns->ranks[r].work_count;
        const size_t first = (size_t)(turns->ranks[r].works - turns->rank.works);
        tasks[r] = ARENA_ARRAY(kept, count + 1, int);
        if (!tasks[r])
            return false;
        memcpy(tasks[r], writer->pieces->of_work + first, count * sizeof **tasks);
    }
    *out = tasks;
    return tasks != NULL;
}

static enum status find_pieces(struct pipeline_form_writer *writer,
                               const struct pipeline_form_options *options, struct arena *arena,
                               struct diag *diag)
{
    struct sections sections;
    struct pieces pieces;
    const struct turns *turns = writer->turns;
    enum status status =
        sections_find(writer->job, turns->ranks, turns->count, arena, &sections, diag);
    if (status != STATUS_OK)
        return status;
    if (!pieces_find(turns, &sections, options->detail, options->opaque, arena, &pieces))
        return diag_no_memory(diag);
    if (pieces.count > PLAN_MAX_TASKS)
        return diag_error(diag, STATUS_INPUT,
                          "%s: found %zu pieces of a step, expected at most %d: its annotations "
                          "are too many for a pipeline",
                          turns->rank.file, pieces.count, PLAN_MAX_TASKS);
    writer->sections = &sections;
    writer->pieces = &pieces;
    status = pipeline_form_write_plan(writer, options, arena, diag);
    return status == STATUS_OK && !pipeline_form_list_tasks(writer, writer->kept, writer->tasks)
               ? diag_no_memory(diag)
               : status;
}

/* Messages between ranks, and work of the host. */
static enum status pipeline_form_check_rank(const struct job_rank *rank, bool several,
                                            struct diag *diag)
{
    for (size_t i = 0; i < rank->work_count && (rank->is_host || several); i++)
        if (rank->works[i].is_message)
            return diag_error(diag, STATUS_INPUT,
                              "%s: it has messages between ranks, and the ranks of a pipeline are "
                              "alike: --form=host takes them",
                              rank->file);
    if (rank->is_host && rank->work_count == 0)
        return diag_error(diag, STATUS_INPUT,
                          "%s: it has neither work of a GPU nor operations of gloo, of which a "
                          "pipeline's tasks are made: --form=host takes it",
                          rank->file);
    if (rank->is_host)
        diag_note(diag,
                  "%s: in this form a layer is CPU time (host_time), which predict --what-if "
                  "changes only in "
                  "tasks without a collective; with --form=host it changes every layer",
                  rank->file);
    return STATUS_OK;
}

static enum status pipeline_form_take_turns(struct pipeline_form_writer *writer,
                                            const struct evidence *evidence,
                                            const struct pipeline_form_options *options,
                                            struct arena *arena, struct diag *diag)
{
    struct meetings meetings = {0};
    struct turns turns;
    enum status status = meetings_find(writer->job, writer->plan, &meetings, diag);
    if (status == STATUS_OK && !turns_take(writer->job, evidence, &meetings, arena, &turns))
        status = diag_no_memory(diag);
    meetings_fini(&meetings);
    writer->turns = &turns;
    return status == STATUS_OK ? find_pieces(writer, options, arena, diag) : status;
}

enum status pipeline_form(const struct job *job, const struct evidence *evidence,
                          const struct pipeline_form_options *options, struct arena *kept,
                          struct plan *out, int ***out_tasks, struct diag *diag)
{
    struct plan plan;
    struct arena arena;
    enum status status = STATUS_OK;
    for (size_t r = 0; status == STATUS_OK && r < job->rank_count; r++)
        status = pipeline_form_check_rank(&job->ranks[r], job->rank_count > 1, diag);
    if (status != STATUS_OK)
        return status;
    plan_init(&plan);
    arena_init(&arena, 0);
    struct pipeline_form_writer writer = {
        .job = job, .evidence = evidence, .plan = &plan, .kept = kept, .tasks = out_tasks};
    status = pipeline_form_take_turns(&writer, evidence, options, &arena, diag);
    arena_fini(&arena);
    if (status == STATUS_OK)
        *out = plan;
    else
        plan_fini(&plan);
    return status;
}
