/* SPDX-License-Identifier: Apache-2.0 */
/* compare.c - see compare.h. */
#include "compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert_index.h"
#include "base/sort.h"
#include "base/array.h"
#include "account.h"
#include "explained.h"
#include "plan/text/parse.h"
#include "sim/engine/observe.h"
#include "measured_program.h"
#include "foretold.h"

enum { ITERATIONS = 100 /* of the prediction of a job that was imported as a pipeline */ };

/* ---- tasks ----------------------------------------------------------------------------------- */

static struct compared_task *compare_find_task(struct compared_stream *stream, const char *name)
{
    for (size_t i = 0; i < stream->task_count; i++)
        if (strcmp(stream->tasks[i].name, name) == 0)
            return &stream->tasks[i];
    return NULL;
}

/* The parts of both accounts: at most as many as they have together. */
static bool compare_add_parts(struct compared_stream *stream, const struct account_parts *parts,
                              bool measured, struct arena *arena)
{
    for (size_t i = 0; i < parts->count; i++) {
        const struct account_part *part = &parts->items[i];
        struct compared_task *task = compare_find_task(stream, part->name);
        if (!task) {
            const char *name = arena_strdup(arena, part->name);
            if (!name)
                return false;
            task = &stream->tasks[stream->task_count++];
            *task = (struct compared_task){.name = name};
        }
        *(measured ? &task->measured_ns : &task->predicted_ns) += part->ns;
        *(measured ? &task->measured_count : &task->predicted_count) += part->count;
    }
    return true;
}

static const struct account_stream *find_account(const struct run_account *account,
                                                 const char *name)
{
    for (size_t i = 0; i < account->stream_count; i++)
        if (strcmp(account->streams[i].name, name) == 0)
            return &account->streams[i];
    return NULL;
}

static double longer_of(const struct compared_task *task)
{
    return task->measured_ns > task->predicted_ns ? task->measured_ns : task->predicted_ns;
}

static int compare_by_time(const void *left, const void *right)
{
    return compare_double(longer_of(right), longer_of(left));
}

static bool compare_add_stream(struct compared_stream *stream, const struct run_account *measured,
                               const struct run_account *predicted, struct arena *arena)
{
    static const struct account_parts none = {0};
    const struct account_stream *before = find_account(measured, stream->name);
    const struct account_stream *after = find_account(predicted, stream->name);
    const struct account_parts *a = before ? &before->tasks : &none;
    const struct account_parts *b = after ? &after->tasks : &none;
    stream->tasks = ARENA_ARRAY(arena, a->count + b->count + 1, struct compared_task);
    if (!stream->tasks || !compare_add_parts(stream, a, true, arena) ||
        !compare_add_parts(stream, b, false, arena))
        return false;
    SORT(stream->tasks, stream->task_count, compare_by_time);
    return true;
}

/* Fills the tasks of out->streams: those of the account of `measured`, whose spans are sorted and whole, and of one
   prediction of `plan`, where they have names in common; names live in `arena`. Memory of the prediction is in the trace's
   arena. */
static enum status compare_tasks(struct trace *measured, const struct plan *plan,
                                 const struct program_options *options, uint64_t seed,
                                 struct arena *arena, struct comparison *out, struct diag *diag)
{
    struct trace predicted;
    struct run_account before, after;
    bool varies;
    enum status status = foretell(plan, options, seed, measured->arena, &predicted, &varies, diag);
    const bool by_steps =
        status == STATUS_OK && account_has_steps(measured) && account_has_steps(&predicted);
    if (status == STATUS_OK)
        status = account_make(measured, by_steps, &before, diag);
    if (status == STATUS_OK)
        status = account_make(&predicted, by_steps, &after, diag);
    out->by_steps = by_steps;
    for (size_t i = 0; status == STATUS_OK && i < out->stream_count; i++)
        if (!compare_add_stream(&out->streams[i], &before, &after, arena))
            status = diag_no_memory(diag);
    /* Without a name in common there is nothing to compare. */
    bool alike = false;
    for (size_t s = 0; s < out->stream_count; s++)
        for (size_t i = 0; i < out->streams[s].task_count; i++)
            alike |= out->streams[s].tasks[i].measured_count > 0 &&
                     out->streams[s].tasks[i].predicted_count > 0;
    for (size_t s = 0; s < out->stream_count && !alike; s++)
        out->streams[s].task_count = 0;
    for (size_t s = 0; s < out->stream_count; s++)
        for (size_t t = 0; t < plan->pipeline.task_count; t++) {
            const struct task *task = &plan->pipeline.tasks[t];
            struct compared_task *found = compare_find_task(&out->streams[s], task->name);
            if (found)
                found->meets = task->work.comm >= 0;
        }
    return status;
}

/* ---- which runs ------------------------------------------------------------------------------ */

struct compared_entry {
    int64_t id;
    struct run_info info;
    bool serial;
};

struct compare_listing {
    struct arena *arena;
    struct compared_entry *entries; /* finished measured runs, oldest first */
    size_t count, cap;
    bool no_memory;
};

static void list_run(const struct store_run *run, void *context)
{
    struct compare_listing *listing = context;
    if (run->info.kind != RUN_MEASURED || run->info.finished != RUN_FINISHED)
        return;
    if (!ARENA_GROW(listing->arena, listing->entries, listing->count, listing->cap)) {
        listing->no_memory = true;
        return;
    }
    struct compared_entry *entry = &listing->entries[listing->count++];
    *entry = (struct compared_entry){run->id, run->info, profile_is_serial(&run->info)};
    entry->info.plan_name = arena_strdup(listing->arena, run->info.plan_name);
    entry->info.plan_text = arena_strdup(listing->arena, run->info.plan_text);
    entry->info.device = arena_strdup(listing->arena, run->info.device);
    entry->info.note = NULL;
    listing->no_memory |= !entry->info.plan_name || !entry->info.plan_text || !entry->info.device;
}

/* The newest serial run that can stand for this one; NULL: none. */
static const struct compared_entry *find_serial(const struct compare_listing *listing,
                                                const struct compared_entry *run)
{
    for (size_t i = listing->count; i-- > 0;) {
        const struct compared_entry *entry = &listing->entries[i];
        if (entry->serial && strcmp(entry->info.plan_text, run->info.plan_text) == 0 &&
            strcmp(entry->info.device, run->info.device) == 0 &&
            entry->info.ranks == run->info.ranks)
            return entry;
    }
    return NULL;
}

static bool compare_is_wanted(const struct compared_entry *entry,
                              const struct compare_options *options)
{
    return !entry->serial && (options->run < 0 || entry->id == options->run) &&
           (!options->plan || strcmp(options->plan, entry->info.plan_text) == 0);
}

/* ---- measured -------------------------------------------------------------------------------- */

static int compare_by_number(const void *a, const void *b)
{
    const struct trace_iteration *x = a, *y = b;
    return compare_then(compare_i64(x->number, y->number), compare_i64(x->retire_ns, y->retire_ns));
}

/* Iterations as the simulator reckons them. */
static enum status measure_iterations(const struct program *program, const struct trace *trace,
                                      struct iteration_figures *out, struct diag *diag)
{
    struct iterations iterations;
    int64_t *next = calloc((size_t)program->ranks, sizeof *next);
    enum status status = STATUS_OK;
    if (!next || !iterations_init(&iterations, program->ends, program->ranks, program->depth, 0)) {
        free(next);
        return diag_no_memory(diag);
    }
    SORT(trace->iterations, trace->iteration_count, compare_by_number);
    for (size_t i = 0; status == STATUS_OK && i < trace->iteration_count; i++) {
        const struct trace_iteration *one = &trace->iterations[i];
        bool known = one->rank >= 0 && one->rank < program->ranks &&
                     one->number == next[one->rank] && one->number < program->ends[one->rank];
        if (!known)
            status = diag_error(diag, STATUS_INPUT,
                                "run %" PRId64 ": found iteration %" PRId64
                                " of rank %d, which is not the next of its plan",
                                trace->run, one->number, one->rank);
        else if (!iterations_finished(&iterations, one->rank, next[one->rank]++, one->retire_ns))
            status = diag_no_memory(diag);
    }
    if (status == STATUS_OK)
        iterations_figures(&iterations, out);
    iterations_fini(&iterations);
    free(next);
    return status;
}

/* ---- accounts -------------------------------------------------------------------------------- */

static struct compared_stream *compare_find_stream(struct comparison *out, const char *name)
{
    for (size_t i = 0; i < out->stream_count; i++)
        if (strcmp(out->streams[i].name, name) == 0)
            return &out->streams[i];
    return NULL;
}

static bool compare_list_streams(const struct program *p, struct arena *arena,
                                 struct comparison *out)
{
    out->streams = ARENA_ARRAY(arena, (size_t)p->stream_count + 1, struct compared_stream);
    for (int s = 0; out->streams && s < p->stream_count; s++) {
        if (compare_find_stream(out, p->streams[s].name))
            continue;
        const char *name = arena_strdup(arena, p->streams[s].name);
        if (!name)
            return false;
        out->streams[out->stream_count++].name = name;
    }
    return out->streams;
}

/* One stream's part in the mean over those of its name. */
static double compare_weight(const struct program *p, int stream, int64_t total_ns)
{
    int same = 0;
    ASSERT_INDEX(stream, p->stream_count);
    for (int s = 0; s < p->stream_count; s++)
        same += strcmp(p->streams[s].name, p->streams[stream].name) == 0;
    return total_ns > 0 ? 1 / ((double)total_ns * same) : 0;
}

static void compare_add_account(struct compared_account *account, double share, int64_t busy_ns,
                                const int64_t stall_ns[STALL_COUNT])
{
    account->busy += share * (double)busy_ns;
    for (int i = 0; i < STALL_COUNT; i++)
        account->stall[i] += share * (double)stall_ns[i];
}

static enum status measure_accounts(const struct program *p, struct trace *trace,
                                    struct comparison *out, struct diag *diag)
{
    struct observed observed;
    if (!out->accounted)
        return STATUS_OK;
    enum status status = observe(p, trace, NULL, NULL, &observed, diag);
    if (status != STATUS_OK)
        return status;
    for (int s = 0; s < p->stream_count; s++)
        compare_add_account(&compare_find_stream(out, p->streams[s].name)->measured,
                            compare_weight(p, s, observed.end_ns - observed.start_ns),
                            observed.streams[s].busy_ns, observed.streams[s].stall_ns);
    observed_fini(&observed);
    return STATUS_OK;
}

/* ---- one run --------------------------------------------------------------------------------- */

static enum status compare_measure(const struct program *program, struct trace *trace,
                                   struct arena *arena, struct comparison *out, struct diag *diag)
{
    struct iteration_figures iteration;
    enum status status = measure_iterations(program, trace, &iteration, diag);
    if (status != STATUS_OK)
        return status;
    out->measured_ns = iteration.mean;
    out->depth = program->depth;
    if (!compare_list_streams(program, arena, out))
        return diag_no_memory(diag);
    return measure_accounts(program, trace, out, diag);
}

static bool compare_is_interrupted(const struct compare_options *options)
{
    return options->interrupted && atomic_load(options->interrupted);
}

static enum status predict_run(const struct plan *plan, const struct compare_options *options,
                               const struct program_options *program, struct comparison *out,
                               struct diag *diag)
{
    const struct predict_options wanted = {.program = *program,
                                           .seed = options->seed,
                                           .replications = options->replications,
                                           .threads = options->threads,
                                           .exposed = EXPOSED_NEVER,
                                           .interrupted = options->interrupted};
    struct prediction prediction;
    enum status status = predict(plan, &wanted, &prediction, diag);
    if (status == STATUS_OK && compare_is_interrupted(options)) { /* after some replications only */
        prediction_fini(&prediction);
        return STATUS_LIMIT;
    }
    if (status != STATUS_OK)
        return status;
    const struct program *p = prediction.program;
    for (int s = 0; s < p->stream_count; s++)
        compare_add_account(&compare_find_stream(out, p->streams[s].name)->predicted,
                            compare_weight(p, s, prediction.total_ns),
                            prediction.streams[s].busy_ns, prediction.streams[s].stall_ns);
    out->predicted_ns = out->whole ? (double)prediction.total_ns / prediction.replications
                                   : prediction.iteration.mean;
    out->error = (out->predicted_ns - out->measured_ns) / out->measured_ns;
    prediction_fini(&prediction);
    return STATUS_OK;
}

/* The run may have had other cores than the serial one. */
static enum status compare_take_cores(struct profile *profile, const struct trace *trace,
                                      struct comparison *out, struct diag *diag)
{
    int cores;
    enum status status = profile_cores(trace, &cores, diag);
    if (cores > 0 && profile->cores > 0)
        profile->plan.machine.cores = cores;
    out->cores = profile->plan.machine.cores;
    out->own_cores = profile->cores > 0;
    return status;
}

static enum status compare_rerun(struct store *store, const struct compare_options *options,
                                 const struct measured_program *measured, struct trace *trace,
                                 struct arena *arena, struct comparison *out, struct diag *diag)
{
    struct profile profile;
    struct plan plan = measured->plan;
    enum status status = compare_measure(measured->program, trace, arena, out, diag);
    if (options->cores > 0)
        plan.machine.cores = options->cores;
    if (status == STATUS_OK)
        status =
            profile_read(store, out->serial_run, &plan, measured->options.ranks, &profile, diag);
    if (status != STATUS_OK)
        return status;
    out->profiled = profile.iterations;
    out->warm_up = profile.warm_up;
    out->missing = profile.missing_count;
    status = compare_take_cores(&profile, trace, out, diag);
    if (status == STATUS_OK)
        status = predict_run(&profile.plan, options, &measured->options, out, diag);
    if (status == STATUS_OK)
        status = compare_tasks(trace, &profile.plan, &measured->options, options->seed, arena, out,
                               diag);
    profile_fini(&profile);
    return status;
}

/* `scratch` is of this run, `arena` of the result. */
static enum status compare_run(struct store *store, const struct compare_options *options,
                               const struct compared_entry *run,
                               const struct compared_entry *serial, struct arena *scratch,
                               struct arena *arena, struct comparison *out, struct diag *diag)
{
    struct trace trace;
    struct measured_program measured;
    enum status status = store_load(store, run->id, STORE_ALL, STORE_ALL, scratch, &trace, diag);
    if (status == STATUS_OK)
        status = store_load_steps(store, &trace, diag);
    if (status == STATUS_OK)
        status = measured_program_open(&measured, &trace, diag);
    if (status != STATUS_OK)
        return status;
    *out = (struct comparison){.run = run->id,
                               .serial_run = serial->id,
                               .plan = run->info.plan_name,
                               .device = run->info.device,
                               .driver = measured.options.driver,
                               .ranks = run->info.ranks,
                               .iterations = measured.options.iterations,
                               .accounted = trace.step_count > 0};
    status = compare_rerun(store, options, &measured, &trace, arena, out, diag);
    measured_program_close(&measured);
    return status;
}

/* ---- a run that its own plan predicts -------------------------------------------------------- */

static void measured_shares(const struct run_account *account, struct comparison *out)
{
    for (size_t i = 0; i < out->stream_count; i++)
        for (int c = 0; c < STALL_COUNT; c++)
            out->streams[i].measured.stall[c] = NAN; /* its causes are those of the ledger */
    for (size_t i = 0; i < account->stream_count; i++) {
        const struct account_stream *measured = &account->streams[i];
        struct compared_stream *stream = compare_find_stream(out, measured->name);
        const double all = measured->busy_ns + measured->idle_ns;
        if (stream && all > 0)
            stream->measured.busy = measured->busy_ns / all;
    }
}

static enum status measure_account(const struct plan *plan, const struct program_options *options,
                                   struct trace *trace, struct arena *arena, struct comparison *out,
                                   struct diag *diag)
{
    struct run_account account;
    struct program *program;
    enum status status = account_make(trace, !out->whole, &account, diag);
    if (status == STATUS_OK)
        status = program_build(plan, options, &program, diag);
    if (status != STATUS_OK)
        return status;
    out->measured_ns = account.step_ns;
    out->accounted = true;
    if (!compare_list_streams(program, arena, out))
        status = diag_no_memory(diag);
    else
        measured_shares(&account, out);
    program_close(program);
    return status;
}

static enum status compare_predict_own(const struct compare_options *options,
                                       const struct plan *plan, struct trace *trace,
                                       struct arena *arena, struct comparison *out,
                                       struct diag *diag)
{
    const struct program_options own = {
        .driver = out->driver,
        .iterations = out->whole ? 0 : ITERATIONS,
        .ranks = plan->form == FORM_PIPELINE ? trace->info.ranks : 0,
    };
    enum status status = measure_account(plan, &own, trace, arena, out, diag);
    if (status == STATUS_OK)
        status = predict_run(plan, options, &own, out, diag);
    return status == STATUS_OK ? compare_tasks(trace, plan, &own, options->seed, arena, out, diag)
                               : status;
}

/* Why its plan says nothing of the run; NULL: it does. */
static const char *unlike(const struct plan *plan, const struct trace *trace, bool opaque)
{
    if (plan_is_unexplained(plan) && !opaque)
        return "its device was idle for more than 5% of the time without a cause; --opaque "
               "compares it all the same";
    if (plan->form == FORM_PIPELINE && !account_has_steps(trace))
        return "its plan holds the times of one step, and no steps are recorded";
    return NULL;
}

/* An import, and a run of host programs: the times are in its plan. *left_out: why it is not compared. */
static enum status compare_own(struct store *store, const struct compare_options *options,
                               const struct compared_entry *run, struct arena *scratch,
                               struct arena *arena, struct comparison *out, const char **left_out,
                               struct diag *diag)
{
    struct trace trace;
    struct plan plan;
    enum status status = explained_load(store, run->id, scratch, &trace, diag);
    const char *name = arena_printf(scratch, "plan of run %" PRId64, run->id);
    if (status == STATUS_OK && !name)
        status = diag_no_memory(diag);
    const char *text = run->info.plan_text;
    if (status == STATUS_OK)
        status = plan_parse(name, text, strlen(text), &plan, diag);
    if (status != STATUS_OK)
        return status;
    const bool pipeline = plan.form == FORM_PIPELINE;
    *out = (struct comparison){.run = run->id,
                               .serial_run = run->id,
                               .plan = run->info.plan_name,
                               .device = run->info.device,
                               .driver = pipeline ? DRIVER_CLOCK : DRIVER_NONE,
                               .whole = !pipeline,
                               .ranks = run->info.ranks,
                               .iterations = 1};
    if (options->cores > 0)
        plan.machine.cores = options->cores;
    out->cores = plan.machine.cores;
    *left_out = unlike(&plan, &trace, options->opaque);
    if (!*left_out)
        status = compare_predict_own(options, &plan, &trace, arena, out, diag);
    plan_fini(&plan);
    return status;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static bool compare_sum_up(struct compared *compared)
{
    size_t count = 0;
    double *errors = ARENA_ARRAY(&compared->arena, compared->run_count + 1, double);
    if (!errors)
        return false;
    for (size_t i = 0; i < compared->run_count; i++)
        if (!isnan(compared->runs[i].error))
            errors[count++] = fabs(compared->runs[i].error);
    compared->median_error = compared->worst_error = NAN;
    if (count == 0)
        return true;
    sort_double(errors, count);
    compared->median_error = (errors[(count - 1) / 2] + errors[count / 2]) / 2;
    compared->worst_error = errors[count - 1];
    return true;
}

static enum status compare_entry(struct store *store, const struct compare_options *options,
                                 const struct compare_listing *listing,
                                 const struct compared_entry *run, struct compared *out,
                                 struct diag *diag)
{
    const bool own = run->info.driver == RUN_DRIVER_NONE;
    const struct compared_entry *serial = own ? NULL : find_serial(listing, run);
    struct comparison *next = &out->runs[out->run_count];
    const char *why = NULL;
    struct arena scratch;
    arena_init(&scratch, 0);
    enum status status = STATUS_OK;
    if (own)
        status = compare_own(store, options, run, &scratch, &out->arena, next, &why, diag);
    else if (serial)
        status = compare_run(store, options, run, serial, &scratch, &out->arena, next, diag);
    else
        why = arena_printf(&scratch,
                           "no serial run of this plan on %s with as many ranks ('swrun --serial "
                           "--db')",
                           run->info.device);
    if (status == STATUS_OK && scratch.failed)
        status = diag_no_memory(diag);
    else if (status == STATUS_OK && why) {
        diag_note(diag, "run %" PRId64 ", %s: left out: %s", run->id, run->info.plan_name, why);
        out->unmatched++;
    } else if (status == STATUS_OK)
        out->run_count++;
    arena_fini(&scratch);
    return status;
}

static enum status check_found(const struct compared *compared,
                               const struct compare_options *options, struct diag *diag)
{
    if (compared->run_count)
        return STATUS_OK;
    if (compared->unmatched)
        return diag_error(diag, STATUS_INPUT,
                          "nothing to compare with: every run is left out, for the reason in its "
                          "note");
    if (options->run >= 0)
        return diag_error(diag, STATUS_INPUT, "run %" PRId64 " is no finished, measured run%s",
                          options->run, options->plan ? " with this plan" : "");
    diag_error(diag, STATUS_INPUT, "found no finished, measured run%s",
               options->plan ? " with this plan" : "");
    diag_note(diag, "DB:RUN compares any other run with its prediction");
    return STATUS_INPUT;
}

static enum status compare_all(struct store *store, const struct compare_options *options,
                               struct compared *out, struct diag *diag)
{
    struct compare_listing listing = {.arena = &out->arena};
    enum status status = store_list_runs(store, list_run, &listing, diag);
    if (status != STATUS_OK)
        return status;
    out->runs = ARENA_ARRAY(&out->arena, listing.count + 1, struct comparison);
    if (listing.no_memory || !out->runs)
        return diag_no_memory(diag);
    for (size_t i = 0; status == STATUS_OK && i < listing.count; i++)
        if (compare_is_wanted(&listing.entries[i], options))
            status = compare_entry(store, options, &listing, &listing.entries[i], out, diag);
    out->interrupted = status == STATUS_LIMIT && compare_is_interrupted(options);
    if (out->interrupted)
        status = out->run_count
                     ? STATUS_OK
                     : diag_error(diag, STATUS_LIMIT, "interrupted before a run was compared");
    if (status == STATUS_OK)
        status = check_found(out, options, diag);
    if (status == STATUS_OK && !compare_sum_up(out))
        status = diag_no_memory(diag);
    return status;
}

enum status compare_store(struct store *store, const struct compare_options *options,
                          struct compared *out, struct diag *diag)
{
    struct compared compared = {.run_count = 0};
    arena_init(&compared.arena, 0);
    enum status status = compare_all(store, options, &compared, diag);
    if (status == STATUS_OK)
        *out = compared;
    else
        compared_fini(&compared);
    return status;
}

void compared_fini(struct compared *compared)
{
    arena_fini(&compared->arena);
    *compared = (struct compared){0};
}
