/* SPDX-License-Identifier: Apache-2.0 */
/* recorded.c - see recorded.h. */
#include "recorded_internal.h"

#include "trace/job/host_form.h"

#include <stdlib.h>
#include <string.h>

#include "plan/text/parse.h"
#include "plan/text/print.h"
#include "base/sort.h"

/* Ranks that are told have their order; others that of their process numbers. */
static int recorded_by_rank(const void *left, const void *right)
{
    const struct tapes *a = &((const struct recorded_process *)left)->tapes,
                       *b = &((const struct recorded_process *)right)->tapes;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    return strcmp(a->path, b->path); /* one process, program after program */
}

/* A file of which only the path is given is open while it is read. */
struct source {
    const char *const *paths; /* NULL: the files are open */
    struct bytes *const *files;
    size_t count;
};

static enum status recorded_read_all(struct recorded_job *job, const struct source *source)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < source->count; i++) {
        struct tapes *tapes = &job->processes[i].tapes;
        job->processes[i] = (struct recorded_process){0};
        status = source->paths ? tapes_read_file(source->paths[i], job->arena, tapes, job->diag)
                               : tapes_read(source->files[i], job->arena, tapes, job->diag);
    }
    job->process_count = source->count;
    if (status == STATUS_OK)
        SORT(job->processes, source->count, recorded_by_rank);
    for (size_t i = 0; status == STATUS_OK && i < source->count; i++)
        status = recorded_walk(job, &job->processes[i]);
    return status;
}

/* A program may do what a plan has no words for. The parser of plans finds it. */
static enum status recorded_refuse(const char *path, const struct diag *why, struct diag *diag)
{
    for (size_t i = 0; i < why->count; i++)
        if (why->messages[i].severity == SEVERITY_ERROR)
            return diag_error(
                diag, STATUS_INPUT, "%s: a plan cannot express what was recorded: %s (%s)", path,
                why->messages[i].text, why->messages[i].source ? why->messages[i].source : "");
    return diag_no_memory(diag);
}

static enum status recorded_check_words(const struct plan *plan, const char *path,
                                        struct diag *diag)
{
    struct plan again;
    struct diag why;
    char *text = NULL;
    diag_init(&why);
    enum status status = plan_text(plan, &text, &why);
    if (status == STATUS_OK)
        status = plan_parse(path, text, strlen(text), &again, &why);
    if (status == STATUS_OK)
        plan_fini(&again);
    else
        status = recorded_refuse(path, &why, diag);
    diag_fini(&why);
    free(text);
    return status;
}

static enum status read_threads(struct recorded_job *job, const struct source *source)
{
    job->processes = ARENA_ARRAY(job->arena, source->count, struct recorded_process);
    enum status status =
        job->processes ? recorded_read_all(job, source) : diag_no_memory(job->diag);
    return status == STATUS_OK && !recorded_write(job) ? diag_no_memory(job->diag) : status;
}

/* What only the whole plan tells. */
static enum status recorded_finish(struct recorded_job *job)
{
    const char *path = job->processes[0].tapes.path;
    if (job->plan->thread_count == 0)
        return diag_error(job->diag, STATUS_INPUT, "%s: no thread pushes work or waits for any",
                          path);
    if (job->options->folds && !job->options->run &&
        !recorded_fold(job->plan, job->options->without_luck, &job->folded))
        return diag_no_memory(job->diag);
    const enum status status = recorded_check_words(job->plan, path, job->diag);
    return status == STATUS_OK && job->options->run ? recorded_run(job) : status;
}

static enum status recorded_make_plan_by(const struct source *source,
                                         const struct recorded_options *options, bool by_tensors,
                                         struct plan *out, bool *folded, struct diag *diag)
{
    struct job threads;
    struct plan plan;
    job_init(&threads);
    plan_init(&plan);
    struct recorded_job job = {.out = &threads,
                               .plan = &threads.plan,
                               .arena = &threads.plan.arena,
                               .diag = diag,
                               .options = options,
                               .by_tensors = by_tensors};
    enum status status = read_threads(&job, source);
    if (status == STATUS_OK)
        status = host_form(&threads, &plan, diag);
    job.plan = &plan;
    job.arena = &plan.arena;
    if (status == STATUS_OK)
        status = recorded_finish(&job);
    *folded = job.folded;
    if (status == STATUS_OK)
        *out = plan;
    else
        plan_fini(&plan);
    job_fini(&threads);
    return status;
}

/* Addresses are given out again and again, tensors once: where no steps are folded the plan has addresses, which makes it
   have fewer states. Without luck the order of two tensors may be that of an answer which the plan leaves out. */
static enum status recorded_make_plan(const struct source *source,
                                      const struct recorded_options *options, struct plan *out,
                                      struct diag *diag)
{
    const bool by_tensors = options->folds && !options->run;
    bool folded;
    const enum status status =
        recorded_make_plan_by(source, options, by_tensors, out, &folded, diag);
    if (status != STATUS_OK || !by_tensors || folded || options->without_luck)
        return status;
    plan_fini(out);
    return recorded_make_plan_by(source, options, false, out, &folded, diag);
}

enum status recorded_plan(const char *const *paths, size_t count,
                          const struct recorded_options *options, struct plan *out,
                          struct diag *diag)
{
    return recorded_make_plan(&(struct source){paths, NULL, count}, options, out, diag);
}

enum status recorded_plan_of(struct bytes *const *files, size_t count,
                             const struct recorded_options *options, struct plan *out,
                             struct diag *diag)
{
    return recorded_make_plan(&(struct source){NULL, files, count}, options, out, diag);
}
