/* import.c - see import.h. */
#include "import.h"

#include <stdlib.h>

#include "flight.h"
#include "formats.h"
#include "kineto.h"
#include "meetings.h"
#include "nsys.h"

static enum status read_file(const char *path, enum format format, struct job *job,
                             struct diag *diag)
{
    struct bytes *bytes;
    if (format == FORMAT_NSYS)
        return nsys_read(path, job, diag);
    enum status status = bytes_open(path, &bytes, diag);
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

static enum status read_files(const char *const *paths, const enum format *formats, size_t count,
                              const struct import_options *options, struct job *job,
                              struct diag *diag)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        status = read_file(paths[i], formats[i], job, diag);
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

static enum status import_traces(const char *const *paths, const enum format *formats, size_t count,
                                 const struct import_options *options, struct imported *imported,
                                 struct diag *diag)
{
    enum status status = read_files(paths, formats, count, options, &imported->job, diag);
    if (status == STATUS_OK)
        status = find_evidence(imported, diag);
    if (status == STATUS_OK)
        status =
            host_form(&imported->job, imported->evidence, &options->form, &imported->plan, diag);
    return status;
}

/* ---- dumps ----------------------------------------------------------------------------------- */

static enum status read_dump(const char *path, enum format format, struct arena *arena,
                             struct flight_dump *out, struct diag *diag)
{
    struct bytes *bytes;
    struct value *root = NULL;
    enum status status = bytes_open(path, &bytes, diag);
    if (status != STATUS_OK)
        return status;
    status = format == FORMAT_DUMP ? value_read_json(bytes, arena, &root, diag)
                                   : value_read_pickle(bytes, arena, &root, diag);
    bytes_close(bytes);
    if (status == STATUS_OK && !flight_is_dump(root))
        status = diag_error(diag, STATUS_INPUT, "%s: no dump of the flight recorder", path);
    *out = (struct flight_dump){path, flight_rank(root, path), root};
    return status;
}

static enum status import_dumps(const char *const *paths, const enum format *formats, size_t count,
                                const struct import_options *options, struct imported *imported,
                                struct diag *diag)
{
    struct arena *arena = &imported->job.arena;
    struct flight_dump *dumps = ARENA_ARRAY(arena, count, struct flight_dump);
    enum status status = dumps ? STATUS_OK : diag_no_memory(diag);
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        status = read_dump(paths[i], formats[i], arena, &dumps[i], diag);
    return status == STATUS_OK ? flight_plan(dumps, count, &options->flight, &imported->plan, diag)
                               : status;
}

/* ---- both ------------------------------------------------------------------------------------ */

/* All files are traces, or all are dumps. */
static enum status recognise_all(const char *const *paths, size_t count, enum format *formats,
                                 struct diag *diag)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        status = format_recognise(paths[i], &formats[i], diag);
        if (status == STATUS_OK && format_is_trace(formats[i]) != format_is_trace(formats[0]))
            status =
                diag_error(diag, STATUS_INPUT,
                           "%s and %s do not belong together: one is a trace, the other a dump",
                           paths[0], paths[i]);
    }
    return status;
}

enum status import_files(const char *const *paths, size_t count,
                         const struct import_options *options, struct imported *out,
                         struct diag *diag)
{
    struct imported imported = {0};
    job_init(&imported.job);
    plan_init(&imported.plan);
    enum format *formats = ARENA_ARRAY(&imported.job.arena, count, enum format);
    enum status status =
        formats ? recognise_all(paths, count, formats, diag) : diag_no_memory(diag);
    if (status == STATUS_OK && format_is_trace(formats[0]))
        status = import_traces(paths, formats, count, options, &imported, diag);
    else if (status == STATUS_OK)
        status = import_dumps(paths, formats, count, options, &imported, diag);
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
