/* import.c - see import.h. */
#include "import.h"

#include <stdlib.h>
#include <string.h>

#include "kineto.h"
#include "meetings.h"

/* What the first bytes of a file say about the rest. */
static enum status recognise(const char *path, struct diag *diag)
{
    static const char sqlite[] = "SQLite format 3";
    char head[64];
    size_t got;
    struct bytes *bytes;
    enum status status = bytes_open(path, &bytes, diag);
    if (status != STATUS_OK)
        return status;
    status = bytes_read(bytes, head, sizeof head, &got, diag);
    bytes_close(bytes);
    if (status != STATUS_OK)
        return status;
    if (got == 0)
        return diag_error(diag, STATUS_INPUT, "%s: the file is empty", path);
    if (got >= sizeof sqlite && memcmp(head, sqlite, sizeof sqlite) == 0)
        return diag_error(diag, STATUS_INPUT,
                          "%s: a file of SQLite; exports of Nsight Systems cannot be read yet",
                          path);
    size_t i = 0;
    while (i < got && strchr(" \t\r\n", head[i]) && head[i])
        i++;
    if (i < got && (head[i] == '{' || head[i] == '['))
        return STATUS_OK;
    return diag_error(diag, STATUS_INPUT, "%s: neither JSON nor compressed JSON: no trace", path);
}

static enum status read_file(const char *path, struct job *job, struct diag *diag)
{
    struct bytes *bytes;
    enum status status = recognise(path, diag);
    if (status == STATUS_OK)
        status = bytes_open(path, &bytes, diag);
    if (status != STATUS_OK)
        return status;
    status = kineto_read(bytes, job, diag);
    bytes_close(bytes);
    return status;
}

static int by_number(const void *left, const void *right)
{
    const struct job_rank *a = left, *b = right;
    return (a->number > b->number) - (a->number < b->number);
}

/* Files that all name a rank of their own stand in its order. */
static enum status order_ranks(struct job *job, struct diag *diag)
{
    for (size_t i = 0; i < job->rank_count; i++)
        if (job->ranks[i].number < 0)
            return STATUS_OK;
    qsort(job->ranks, job->rank_count, sizeof *job->ranks, by_number);
    for (size_t i = 1; i < job->rank_count; i++)
        if (job->ranks[i].number == job->ranks[i - 1].number)
            return diag_error(diag, STATUS_INPUT,
                              "%s and %s do not belong together: both say that they are rank %lld",
                              job->ranks[i - 1].file, job->ranks[i].file,
                              (long long)job->ranks[i].number);
    return STATUS_OK;
}

static enum status read_files(const char *const *paths, size_t count,
                              const struct import_options *options, struct job *job,
                              struct diag *diag)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        status = read_file(paths[i], job, diag);
    if (status == STATUS_OK)
        status = order_ranks(job, diag);
    if (status == STATUS_OK && options->steps_given)
        status = job_keep_steps(job, options->first_step, options->last_step, diag);
    if (status == STATUS_OK)
        status = job_finish(job, diag);
    if (status == STATUS_OK && job->rank_count > 1)
        status = meetings_align(job, diag);
    return status;
}

static enum status find_evidence(struct imported *imported, struct diag *diag)
{
    imported->evidence = calloc(imported->job.rank_count, sizeof *imported->evidence);
    if (!imported->evidence)
        return diag_no_memory(diag);
    enum status status = STATUS_OK;
    for (size_t r = 0; status == STATUS_OK && r < imported->job.rank_count; r++)
        status = evidence_find(&imported->job.ranks[r], &imported->evidence[r], diag);
    return status;
}

enum status import_files(const char *const *paths, size_t count,
                         const struct import_options *options, struct imported *out,
                         struct diag *diag)
{
    struct imported imported = {0};
    job_init(&imported.job);
    plan_init(&imported.plan);
    enum status status = read_files(paths, count, options, &imported.job, diag);
    if (status == STATUS_OK)
        status = find_evidence(&imported, diag);
    if (status == STATUS_OK)
        status = host_form(&imported.job, imported.evidence, &options->form, &imported.plan, diag);
    if (status == STATUS_OK)
        *out = imported;
    else
        import_fini(&imported);
    return status;
}

void import_fini(struct imported *imported)
{
    for (size_t r = 0; imported->evidence && r < imported->job.rank_count; r++)
        evidence_fini(&imported->evidence[r]);
    free(imported->evidence);
    job_fini(&imported->job);
    plan_fini(&imported->plan);
}
