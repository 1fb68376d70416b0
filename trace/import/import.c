/* SPDX-License-Identifier: Apache-2.0 */
/* import.c - see import.h. */
#include "import.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chakra.h"
#include "execution.h"
#include "files.h"
#include "flight.h"
#include "kineto.h"
#include "meetings.h"
#include "nsys.h"
#include "standstill.h"

#include "base/sort.h"
#include "trace/job/host_form.h"
#include "base/units.h"

static enum status import_read_file(const struct import_file *file, struct job *job,
                                    struct diag *diag)
{
    struct bytes *bytes;
    if (file->format == FORMAT_NSYS)
        return nsys_read(file->path, job, diag);
    enum status status = bytes_open(file->path, &bytes, diag);
    if (status != STATUS_OK)
        return status;
    status = kineto_read(bytes, job, diag);
    bytes_close(bytes);
    return status;
}

static int import_by_number(const void *left, const void *right)
{
    const struct job_rank *a = left, *b = right;
    return compare_i64(a->number, b->number);
}

/* All that say of how many ranks their job is say the same. */
static enum status check_worlds(const struct job *job, struct diag *diag)
{
    const struct job_rank *first = NULL;
    for (size_t i = 0; i < job->rank_count; i++) {
        const struct job_rank *rank = &job->ranks[i];
        if (first && rank->world >= 0 && rank->world != first->world)
            return diag_error(
                diag, STATUS_INPUT,
                "%s and %s do not belong together: one is of a job of %lld ranks, the "
                "other of %lld",
                first->file, rank->file, (long long)first->world, (long long)rank->world);
        if (rank->world >= 0 && rank->number >= rank->world)
            return diag_error(diag, STATUS_INPUT,
                              "%s: it says that it is rank %lld of a job of %lld ranks", rank->file,
                              (long long)rank->number, (long long)rank->world);
        first = !first && rank->world >= 0 ? rank : first;
    }
    return STATUS_OK;
}

/* Files that all name a rank of their own stand in its order. */
static enum status order_ranks(struct job *job, struct diag *diag)
{
    for (size_t i = 0; i < job->rank_count; i++)
        if (job->ranks[i].number < 0)
            return STATUS_OK;
    SORT(job->ranks, job->rank_count, import_by_number);
    for (size_t i = 1; i < job->rank_count; i++)
        if (job->ranks[i].number == job->ranks[i - 1].number)
            return diag_error(diag, STATUS_INPUT,
                              "%s and %s do not belong together: both say that they are rank %lld",
                              job->ranks[i - 1].file, job->ranks[i].file,
                              (long long)job->ranks[i].number);
    return STATUS_OK;
}

/* ---- chosen ranks ---------------------------------------------------------------------------- */

/* True if the rank is wanted. One without a number has that of its place. */
static bool import_is_wanted(const struct import_options *options, int64_t number, size_t place)
{
    const int64_t rank = number >= 0 ? number : (int64_t)place;
    for (size_t i = 0; i < options->rank_count; i++)
        if (rank >= options->ranks[i].first && rank <= options->ranks[i].last)
            return true;
    return options->rank_count == 0;
}

/* Ends the ranks from `first` on that are not wanted. *seen counts all that were read. */
static void drop_unwanted(struct job *job, size_t first, const struct import_options *options,
                          size_t *seen)
{
    for (size_t i = first; i < job->rank_count; (*seen)++) {
        if (import_is_wanted(options, job->ranks[i].number, *seen))
            i++;
        else
            job_drop_rank(job, i);
    }
}

static enum status refuse_ranks(struct diag *diag)
{
    return diag_error(diag, STATUS_INPUT, "--ranks: no file is of one of these ranks");
}

/* ---- traces ---------------------------------------------------------------------------------- */

static enum status import_read_ranks(const struct import_files *files,
                                     const struct import_options *options, struct job *job,
                                     struct diag *diag)
{
    enum status status = STATUS_OK;
    size_t seen = 0;
    for (size_t i = 0; status == STATUS_OK && i < files->count; i++) {
        const size_t first = job->rank_count;
        if (files->items[i].format == FORMAT_EXECUTION)
            continue;
        status = import_read_file(&files->items[i], job, diag);
        if (status == STATUS_OK)
            drop_unwanted(job, first, options, &seen);
    }
    return status == STATUS_OK && job->rank_count == 0 ? refuse_ranks(diag) : status;
}

static size_t count_executions(const struct import_files *files)
{
    size_t count = 0;
    for (size_t i = 0; i < files->count; i++)
        count += files->items[i].format == FORMAT_EXECUTION;
    return count;
}

/* What the operations access, where execution traces tell it. */
static enum status import_accesses(const struct import_files *files, size_t count, bool settle,
                                   struct job *job, struct diag *diag)
{
    struct execution *items = ARENA_ARRAY(&job->arena, count + 1, struct execution);
    enum status status = items ? STATUS_OK : diag_no_memory(diag);
    size_t read = 0;
    for (size_t i = 0; status == STATUS_OK && i < files->count; i++) {
        struct bytes *bytes;
        if (files->items[i].format != FORMAT_EXECUTION)
            continue;
        status = bytes_open(files->items[i].path, &bytes, diag);
        if (status != STATUS_OK)
            return status;
        status = execution_read(bytes, &job->arena, &items[read++], diag);
        bytes_close(bytes);
    }
    return status == STATUS_OK ? execution_join(job, items, count, settle, diag) : status;
}

static enum status read_files(const struct import_files *files,
                              const struct import_options *options, struct job *job,
                              struct diag *diag)
{
    const size_t executions = count_executions(files);
    if (executions == files->count)
        return diag_error(diag, STATUS_INPUT,
                          "%s: an execution trace, which has no times of a device: "
                          "import the trace of torch.profiler of the same run beside it",
                          files->items[0].path);
    job->wants_operators = executions > 0;
    enum status status = import_read_ranks(files, options, job, diag);
    if (status == STATUS_OK)
        status = check_worlds(job, diag);
    if (status == STATUS_OK)
        status = order_ranks(job, diag);
    if (status == STATUS_OK && options->steps_given)
        status = job_keep_steps(job, options->first_step, options->last_step, diag);
    if (status == STATUS_OK)
        status = job_finish(job, diag);
    if (status == STATUS_OK && job->rank_count > 1)
        status = meetings_align(job, diag);
    if (status == STATUS_OK && executions > 0)
        status = import_accesses(files, executions, options->kind == IMPORT_HOST, job, diag);
    return status;
}

/* True if ids of the calls of a thread fall where its times rise. */
static bool is_reversed(const struct job_rank *rank)
{
    enum { FEWEST = 16 };
    size_t falls = 0, rises = 0;
    for (size_t i = 1; i < rank->call_count; i++) {
        const struct job_call *a = &rank->calls[i - 1], *b = &rank->calls[i];
        if (a->thread != b->thread || a->start_ns == b->start_ns)
            continue;
        falls += b->correlation < a->correlation;
        rises += b->correlation > a->correlation;
    }
    return falls >= FEWEST && falls / 9 >= rises;
}

/* Launches of kernels, of which none was recorded. */
static enum status import_check_kernels(const struct job *job, const struct job_rank *rank,
                                        struct diag *diag)
{
    size_t launches = 0;
    for (size_t i = 0; i < rank->work_count; i++)
        if (rank->works[i].class == CLASS_KERNEL)
            return STATUS_OK;
    for (size_t i = 0; i < rank->call_count; i++)
        launches += strstr(job->names.items[rank->calls[i].name], "LaunchKernel") != NULL;
    if (launches == 0)
        return STATUS_OK;
    return diag_error(diag, STATUS_INPUT,
                      "%s: its threads launch kernels (%zu times), and no kernel is recorded in it",
                      rank->file, launches);
}

/* Most work is over before the call that pushed it. */
static enum status import_check_order(const struct job_rank *rank, const struct evidence *evidence,
                                      struct diag *diag)
{
    const size_t launched = rank->work_count - evidence->unlaunched;
    if (!rank->is_host && is_reversed(rank))
        return diag_error(diag, STATUS_INPUT,
                          "%s: its times run backwards: later calls of a thread have earlier ids",
                          rank->file);
    if (2 * evidence->backwards <= launched)
        return STATUS_OK;
    return diag_error(diag, STATUS_INPUT,
                      "%s: its times run backwards: %zu of %zu operations of the device end before "
                      "the call that launches them",
                      rank->file, evidence->backwards, launched);
}

static enum status find_evidence(struct imported *imported, struct diag *diag)
{
    imported->evidence = calloc(imported->job.rank_count, sizeof *imported->evidence);
    if (!imported->evidence)
        return diag_no_memory(diag);
    enum status status = STATUS_OK;
    for (size_t r = 0; status == STATUS_OK && r < imported->job.rank_count; r++) {
        status = evidence_find(&imported->job.ranks[r], &imported->evidence[r], diag);
        if (status == STATUS_OK)
            status = import_check_order(&imported->job.ranks[r], &imported->evidence[r], diag);
        if (status == STATUS_OK)
            status = import_check_kernels(&imported->job, &imported->job.ranks[r], diag);
    }
    return status;
}

/* Accesses are ordered by waits: where the trace does not tell which, the verdict says so. */
static bool mark_guessed_order(const struct job *job, const struct evidence *evidence,
                               struct plan *plan)
{
    size_t guessed = 0;
    bool silent = false;
    for (size_t r = 0; r < job->rank_count; r++) {
        const struct job_rank *rank = &job->ranks[r];
        if (!rank->execution)
            continue;
        silent |= rank->is_host && !rank->has_waits;
        for (size_t i = 0; i < evidence[r].edge_count; i++)
            guessed += evidence[r].edges[i].word != IDLE_EVENT_ID;
    }
    return (guessed == 0 ||
            plan_add_unrecorded(plan,
                                arena_printf(&plan->arena, "the event%s of %zu wait%s",
                                             units_plural(guessed), guessed, units_plural(guessed)),
                                "inferred from calls and times (enable_cuda_sync_events records "
                                "them)")) &&
           (!silent || plan_add_unrecorded(plan, "accesses of threads",
                                           "their waits are not recorded (with_stack=True)"));
}

/* Gaps in every verdict about the plan: ranks without a trace, operations that were left out. */
static bool mark_unrecorded(const struct job *job, struct plan *plan)
{
    size_t unasked = 0, assumed = 0, alone = 0;
    for (size_t r = 0; r < job->rank_count; r++) {
        alone += job->ranks[r].is_host && job->ranks[r].work_count == 0;
        unasked += job->ranks[r].unasked_count;
        assumed += job->ranks[r].assumed_count;
    }
    int64_t world = -1;
    for (size_t r = 0; r < job->rank_count; r++)
        world = job->ranks[r].world > world ? job->ranks[r].world : world;
    const int64_t missing = world - (int64_t)job->rank_count;
    bool ok =
        missing <= 0 ||
        plan_add_unrecorded(
            plan, arena_printf(&plan->arena, "%" PRId64 " of %" PRId64 " ranks", missing, world),
            "no trace of them");
    return ok &&
           (alone == 0 ||
            plan_add_unrecorded(plan, "work of a device", "the trace has CPU time alone")) &&
           (unasked == 0 ||
            plan_add_unrecorded(plan,
                                arena_printf(&plan->arena, "%zu operation%s of gloo", unasked,
                                             units_plural(unasked)),
                                "no operator of the trace asks for them")) &&
           (assumed == 0 ||
            plan_add_unrecorded(plan,
                                arena_printf(&plan->arena, "the process group%s of %zu message%s",
                                             units_plural(assumed), assumed, units_plural(assumed)),
                                "that of all ranks is assumed"));
}

/* Of the rank with the most of it. */
static void mark_unexplained(const struct imported *imported, bool opaque, struct plan *plan)
{
    const struct job *job = &imported->job;
    for (size_t r = 0; r < job->rank_count; r++) {
        const int own = evidence_unexplained(&job->ranks[r], &imported->evidence[r], opaque);
        if (own > plan->unexplained.millionths)
            plan->unexplained = (struct share){.millionths = own, .given = true};
    }
}

static enum status import_traces(const struct import_files *files,
                                 const struct import_options *options, struct imported *imported,
                                 struct diag *diag)
{
    enum status status = read_files(files, options, &imported->job, diag);
    if (status == STATUS_OK)
        status = find_evidence(imported, diag);
    if (status != STATUS_OK)
        return status;
    status = options->kind == IMPORT_PIPELINE
                 ? pipeline_form(&imported->job, imported->evidence, &options->pipeline,
                                 &imported->job.arena, &imported->plan, &imported->tasks, diag)
                 : host_calls(&imported->job, imported->evidence, &options->form, diag);
    if (status == STATUS_OK && options->kind == IMPORT_HOST)
        status = host_form(&imported->job, &imported->plan, diag);
    if (status == STATUS_OK)
        mark_unexplained(imported, options->form.opaque, &imported->plan);
    return status == STATUS_OK &&
                   !(mark_unrecorded(&imported->job, &imported->plan) &&
                     mark_guessed_order(&imported->job, imported->evidence, &imported->plan))
               ? diag_no_memory(diag)
               : status;
}

/* ---- dumps ----------------------------------------------------------------------------------- */

static enum status read_dump(const struct import_file *file, struct arena *arena,
                             struct flight_dump *out, struct diag *diag)
{
    struct bytes *bytes;
    struct value *root = NULL;
    enum status status = bytes_open(file->path, &bytes, diag);
    if (status != STATUS_OK)
        return status;
    status = file->format == FORMAT_DUMP ? value_read_json(bytes, arena, &root, diag)
                                         : value_read_pickle(bytes, arena, &root, diag);
    bytes_close(bytes);
    if (status == STATUS_OK && !flight_is_dump(root))
        status =
            diag_error(diag, STATUS_INPUT, "%s: not a dump of the flight recorder", file->path);
    *out = (struct flight_dump){file->path, flight_rank(root, file->path), root};
    return status;
}

static enum status read_standstill(const struct import_file *file, struct arena *arena,
                                   struct standstill *out, struct diag *diag)
{
    struct bytes *bytes;
    enum status status = bytes_open(file->path, &bytes, diag);
    if (status != STATUS_OK)
        return status;
    status = standstill_read(bytes, file->format, arena, out, diag);
    bytes_close(bytes);
    return status;
}

static enum status import_dumps(const struct import_files *files,
                                const struct import_options *options, struct imported *imported,
                                struct diag *diag)
{
    struct arena *arena = &imported->job.arena;
    struct flight_dump *dumps = ARENA_ARRAY(arena, files->count, struct flight_dump);
    struct standstill *standstill = ARENA_ARRAY(arena, 1, struct standstill);
    enum status status = dumps && standstill ? STATUS_OK : diag_no_memory(diag);
    size_t count = 0, others = 0;
    if (status == STATUS_OK)
        *standstill = (struct standstill){0};
    for (size_t i = 0; status == STATUS_OK && i < files->count; i++) {
        if (format_is_standstill(files->items[i].format)) {
            status = read_standstill(&files->items[i], arena, standstill, diag);
            others++;
            continue;
        }
        status = read_dump(&files->items[i], arena, &dumps[count], diag);
        if (status == STATUS_OK && import_is_wanted(options, dumps[count].rank, i - others))
            count++;
    }
    if (status == STATUS_OK && !standstill_tell(standstill, arena, diag))
        status = diag_no_memory(diag);
    if (status == STATUS_OK && others == files->count) {
        status = standstill_threads(standstill, options->flight.name, &imported->job, diag);
        return status == STATUS_OK ? host_form(&imported->job, &imported->plan, diag) : status;
    }
    if (status == STATUS_OK && count == 0)
        status = refuse_ranks(diag);
    if (status == STATUS_OK)
        status = flight_read(dumps, count, arena, &imported->dumps, diag);
    if (status == STATUS_OK)
        imported->dumps.standstill = standstill;
    if (status == STATUS_OK)
        status = flight_threads(&imported->dumps, &options->flight, &imported->job, diag);
    return status == STATUS_OK ? host_form(&imported->job, &imported->plan, diag) : status;
}

/* ---- recordings ------------------------------------------------------------------------------- */

static enum status import_recordings(const struct import_files *files,
                                     const struct import_options *options,
                                     struct imported *imported, struct diag *diag)
{
    const char **paths = ARENA_ARRAY(&imported->job.arena, files->count, const char *);
    if (!paths)
        return diag_no_memory(diag);
    for (size_t i = 0; i < files->count; i++)
        paths[i] = files->items[i].path;
    return recorded_plan(paths, files->count, &options->recorded, &imported->plan, diag);
}

/* ---- traces of Chakra -------------------------------------------------------------------------- */

static enum status import_chakra(const struct import_files *files,
                                 const struct import_options *options, struct imported *imported,
                                 struct diag *diag)
{
    enum status status = STATUS_OK;
    if (files->count > PLAN_MAX_RANKS)
        return diag_error(diag, STATUS_INPUT, "found %zu ranks, expected at most %d", files->count,
                          PLAN_MAX_RANKS);
    imported->job.plan.ranks = (int)files->count;
    for (size_t i = 0; status == STATUS_OK && i < files->count; i++) {
        struct bytes *bytes;
        status = bytes_open(files->items[i].path, &bytes, diag);
        if (status != STATUS_OK)
            return status;
        status = chakra_read(bytes, (int)i, options->form.name, &imported->job, diag);
        bytes_close(bytes);
    }
    return status == STATUS_OK ? host_form(&imported->job, &imported->plan, diag) : status;
}

/* ---- options that a kind of file has no use for ------------------------------------------------- */

enum { OF_HOST = 1, OF_PIPELINES = 2, OF_DUMPS = 4, OF_RECORDINGS = 8, OF_CHAKRA = 16 };

static unsigned import_kind_of(enum format format, enum import_form form)
{
    return format == FORMAT_RECORDING ? OF_RECORDINGS
           : format == FORMAT_CHAKRA  ? OF_CHAKRA
           : !format_is_trace(format) ? OF_DUMPS
           : form == IMPORT_PIPELINE  ? OF_PIPELINES
                                      : OF_HOST;
}

static const char *kind_words(unsigned kind)
{
    return kind == OF_HOST        ? "trace as host programs"
           : kind == OF_PIPELINES ? "trace as a pipeline"
           : kind == OF_DUMPS     ? "dump"
           : kind == OF_CHAKRA    ? "trace of Chakra"
                                  : "recording";
}

static enum status import_check_options(const struct import_options *options, unsigned kind,
                                        struct diag *diag)
{
    const struct {
        const char *name;
        bool given;
        unsigned kinds;
    } table[] = {
        {"--form=pipeline", options->kind == IMPORT_PIPELINE, OF_PIPELINES},
        {"--steps", options->steps_given, OF_HOST | OF_PIPELINES},
        {"--opaque", options->form.opaque, OF_HOST | OF_PIPELINES},
        {"--detail", options->detail_given, OF_PIPELINES},
        {"--repeat", options->repeat_given, OF_HOST | OF_RECORDINGS},
        {"--launch-queue", options->launch_queue_given, OF_HOST},
        {"--without", options->form.without != NULL, OF_HOST},
        {"--ranks", options->rank_count > 0, OF_HOST | OF_PIPELINES | OF_DUMPS},
        {"--host-waits", options->flight.host_waits, OF_DUMPS},
        {"--pair-streams", options->flight.pair_streams, OF_DUMPS},
        {"--sm-slots", options->flight.sm_slots > 0, OF_DUMPS | OF_RECORDINGS},
        {"--launch-order", options->flight.launch_order, OF_DUMPS | OF_RECORDINGS},
        {"--order", options->recorded.order != RECORDED_WAITS, OF_RECORDINGS},
        {"--queries", options->recorded.queries != RECORDED_QUERIES_SEEN, OF_RECORDINGS},
        {"--structs", options->recorded.structs != RECORDED_STRUCTS_WRITE, OF_RECORDINGS},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].given && !(table[i].kinds & kind))
            return diag_error(diag, STATUS_USAGE, "%s has no effect on a %s", table[i].name,
                              kind_words(kind));
    return STATUS_OK;
}

/* ---- all of them ------------------------------------------------------------------------------------ */

enum status import_files(const char *const *paths, size_t count,
                         const struct import_options *options, struct imported *out,
                         struct diag *diag)
{
    struct imported imported = {0};
    struct import_files files;
    job_init(&imported.job);
    plan_init(&imported.plan);
    enum status status = files_list(paths, count, &imported.job.arena, &files, diag);
    if (status == STATUS_OK)
        status = import_check_options(options, import_kind_of(files.items[0].format, options->kind),
                                      diag);
    if (status == STATUS_OK && format_is_trace(files.items[0].format))
        status = import_traces(&files, options, &imported, diag);
    else if (status == STATUS_OK && files.items[0].format == FORMAT_RECORDING)
        status = import_recordings(&files, options, &imported, diag);
    else if (status == STATUS_OK && files.items[0].format == FORMAT_CHAKRA)
        status = import_chakra(&files, options, &imported, diag);
    else if (status == STATUS_OK)
        status = import_dumps(&files, options, &imported, diag);
    if (status == STATUS_OK)
        *out = imported;
    else
        import_fini(&imported);
    return status;
}

void import_forget(struct imported *imported)
{
    for (size_t r = 0; imported->evidence && r < imported->job.rank_count; r++) {
        struct job_rank *rank = &imported->job.ranks[r];
        free(rank->calls);
        free(rank->works);
        free(imported->evidence[r].reasons);
        rank->calls = NULL;
        rank->works = NULL;
        imported->evidence[r].reasons = NULL;
        rank->call_count = rank->work_count = 0;
    }
}

void import_fini(struct imported *imported)
{
    for (size_t r = 0; imported->evidence && r < imported->job.rank_count; r++)
        evidence_fini(&imported->evidence[r]);
    free(imported->evidence);
    job_fini(&imported->job);
    plan_fini(&imported->plan);
}
