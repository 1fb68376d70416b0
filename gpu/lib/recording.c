/* SPDX-License-Identifier: Apache-2.0 */
/* recording.c - see engine.h. */
#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/sort.h"
#include "plan/text/print.h"
#include "swpipe_impl.h"

/* ---- the plan that is kept ------------------------------------------------------------------- */

/* A copy of the tasks, each as what does it: a copy of kept results meets no peer. */
static struct task *adapted(const struct task *tasks, size_t count, const enum done_by *by,
                            struct arena *arena)
{
    struct task *copy = ARENA_ARRAY(arena, count, struct task);
    for (size_t t = 0; copy && t < count; t++) {
        copy[t] = tasks[t];
        if (by[t] != BY_PLAN)
            copy[t].sm = 0;
        if (by[t] == BY_COPY && copy[t].work.comm >= 0)
            copy[t].work = (struct work){.kind = WORK_SPIN, .comm = -1};
    }
    return copy;
}

bool recording_plan(const struct plan *plan, const enum done_by *by, struct arena *arena,
                    struct plan *out)
{
    struct pipeline *pipeline = &out->pipeline;
    bool any = false;
    *out = *plan;
    for (size_t t = 0; t < pipeline->task_count; t++)
        any = any || by[t] != BY_PLAN;
    if (!any)
        return true;
    out->machine.lazy_load = false;
    pipeline->tasks = adapted(pipeline->tasks, pipeline->task_count, by, arena);
    struct rank_override *overrides =
        ARENA_ARRAY(arena, pipeline->override_count + 1, struct rank_override);
    if (!pipeline->tasks || !overrides)
        return false;
    for (size_t i = 0; i < pipeline->override_count; i++) {
        overrides[i] = pipeline->overrides[i];
        if (!overrides[i].tasks)
            continue;
        overrides[i].tasks = adapted(overrides[i].tasks, pipeline->task_count, by, arena);
        if (!overrides[i].tasks)
            return false;
    }
    pipeline->overrides = overrides;
    return true;
}

/* True if a short-cut of a collective or message has still to keep its results. */
static bool keeps_meeting(const struct swpipe *pipe)
{
    size_t count = pipe->plan.pipeline.task_count, first = (size_t)pipe->first_rank * count;
    for (size_t i = first; i < first + (size_t)pipe->local_ranks * count; i++)
        if (pipe->shortcuts[i].on && !pipe->shortcuts[i].saved &&
            pipe->plan.pipeline.tasks[i % count].work.comm >= 0)
            return true;
    return false;
}

/* ---- start ----------------------------------------------------------------------------------- */

/* Called on the journal's thread: a run that cannot be recorded must stop. */
static void on_failure(void *arg, enum status status, const char *why)
{
    run_fail(arg, status, "%s", why);
}

enum status recording_open(struct recording_recording *recording, struct engine *engine,
                           bool serial, const char *path, struct diag *diag)
{
    struct swpipe *pipe = engine->pipe;
    struct run *run = &engine->run;
    recording->ends = calloc((size_t)pipe->ranks, sizeof *recording->ends);
    recording->device = strdup(device_description(pipe->devices[pipe->first_rank]));
    locale_t before = c_locale_begin();
    enum status status = recording->ends && recording->device
                             ? plan_text(&engine->plan, &recording->plan_text, diag)
                             : diag_no_memory(diag);
    c_locale_end(before);
    if (status)
        return status;
    recording->options = (struct runtime_options){.device = pipe->device,
                                                  .driver = pipe->driver,
                                                  .iterations = -1,
                                                  .ranks = pipe->ranks,
                                                  .serial = serial,
                                                  .replay = !keeps_meeting(pipe),
                                                  .db = path[0] ? path : NULL,
                                                  .is_function = engine->is_function,
                                                  .plan_text = recording->plan_text};
    if (pipe->group)
        status = group_recording_open(&recording->shared, pipe->group, run, &recording->options,
                                      recording->device, diag);
    if (status)
        return status;
    const struct journal_config config = {.program = engine->program,
                                          .options = &recording->options,
                                          .world = run->world,
                                          .devices = pipe->devices,
                                          .rendezvous =
                                              pipe->group ? pipe->group->rendezvous : NULL,
                                          .failed = on_failure,
                                          .arg = run};
    status = journal_open(&config, &recording->journal, diag);
    if (status)
        return status;
    run->journal = recording->journal;
    for (int t = 0; t < engine->program->thread_count; t++)
        run->threads[t].log = journal_log(run->journal, t);
    recording->start_ns = run_now(run);
    return STATUS_OK;
}

/* ---- end ------------------------------------------------------------------------------------- */

void recording_stop(struct recording_recording *recording, struct engine *engine)
{
    struct run *run = &engine->run;
    if (!recording->journal)
        return;
    recording->duration_ns = run_now(run) - recording->start_ns;
    recording->complete = !run_stopped(run);
    for (int rank = 0; rank < engine->program->ranks; rank++)
        recording->ends[rank] = policy_admitted(run->policy, rank);
    journal_stop(recording->journal);
    if (recording->shared.group)
        group_recording_stop(&recording->shared, recording->complete,
                             recording->ends[engine->pipe->first_rank], recording->duration_ns);
}

/* Replay and figures. Errors in `said` are the run's, not this call's, unless they are of the system. */
static enum status recording_judge(struct recording_recording *recording, struct recorded *out,
                                   struct diag *said)
{
    struct journal_end end = {.complete = recording->complete,
                              .ends = recording->ends,
                              .duration_ns = recording->duration_ns};
    for (int rank = 0; rank < recording->options.ranks; rank++)
        end.iterations = max_i64(end.iterations, recording->ends[rank]);
    recorded_fini(out);
    out->result.run = -1;
    out->result.finished = recording->complete;
    out->result.duration_ns = recording->duration_ns;
    arena_init(&out->result.arena, 0);
    out->is = true;
    out->result.device = arena_strdup(&out->result.arena, recording->device);
    if (!out->result.device)
        return diag_no_memory(said);
    if (recording->shared.group) {
        out->elsewhere = !recording->shared.keeper;
        return group_recording_close(&recording->shared, &out->result, out->why, sizeof out->why,
                                     said);
    }
    enum status status = journal_end(recording->journal, &end, &out->result, said);
    if (status != STATUS_VIOLATED)
        return status;
    for (size_t i = 0; i < said->count && !out->why[0]; i++)
        if (said->messages[i].severity == SEVERITY_ERROR)
            snprintf(out->why, sizeof out->why, "%s", said->messages[i].text);
    return STATUS_OK;
}

enum status recording_close(struct recording_recording *recording, struct recorded *out,
                            struct diag *diag)
{
    enum status status = STATUS_OK;
    struct diag said;
    if (recording->journal) {
        diag_init(&said);
        status = recording_judge(recording, out, &said);
        if (status)
            diag_error(diag, status, "%s", diag_first_text(&said));
        diag_fini(&said);
    } else if (recording->shared.group) {
        group_recording_drop(&recording->shared);
    }
    journal_close(recording->journal);
    free(recording->plan_text);
    free(recording->device);
    free(recording->ends);
    *recording = (struct recording_recording){0};
    return status;
}

void recorded_fini(struct recorded *recorded)
{
    if (recorded->is)
        runtime_result_fini(&recorded->result);
    *recorded = (struct recorded){0};
}
