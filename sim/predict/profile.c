/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.c - see profile.h.
 *
 * Spans become samples, one for each (kind, task, iteration, rank); after a sort neighbours that have
 * all four in common are one sample, and members of a collective stand side by side. A second sort,
 * by (kind, task, rank, duration), makes each part a run of samples.
 */
#include "profile.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert_index.h"
#include "base/table.h"
#include "base/sort.h"
#include "plan/ops.h"
#include "plan/text/parse.h"
#include "base/list_key.h"

struct sample {
    enum profile_kind kind;
    int task, rank;
    int64_t iteration;
    int64_t start_ns, end_ns; /* from the first to the last of its spans */
    int64_t ns;               /* it took */
};

struct samples {
    struct sample *items;
    size_t count;
};

const char *profile_words(enum profile_kind kind)
{
    static const char *const words[] = {PROFILE_PART_LIST(LIST_KEY)};
    return words[kind];
}

bool profile_is_serial(const struct run_info *info)
{
    return info->kind == RUN_MEASURED && info->note && strcmp(info->note, RUN_NOTE_SERIAL) == 0;
}

/* ---- which run ------------------------------------------------------------------------------- */

struct wanted {
    const char *plan;
    int64_t run; /* -1: none found yet */
    bool pipelined;
};

static void profile_look_at_run(const struct store_run *run, void *context)
{
    struct wanted *wanted = context;
    const struct run_info *info = &run->info;
    if (strcmp(info->plan_name, wanted->plan) != 0 || info->kind != RUN_MEASURED)
        return;
    const bool useful = profile_is_serial(info) || profile_is_imported(info);
    if (useful && info->finished == RUN_FINISHED)
        wanted->run = run->id;
    wanted->pipelined |= !useful;
}

static enum status profile_find_run(struct store *store, const struct plan *plan, int64_t *out_run,
                                    struct diag *diag)
{
    struct wanted wanted = {.plan = plan->name, .run = -1};
    enum status status = store_list_runs(store, profile_look_at_run, &wanted, diag);
    if (status != STATUS_OK)
        return status;
    if (wanted.run < 0) {
        diag_error(
            diag, STATUS_INPUT, "the trace store has no finished serial run of %s%s", plan->name,
            wanted.pipelined ? ", only runs in which tasks overlap and wait for each other" : "");
        diag_note(diag,
                  "'swrun --serial --db FILE PLAN' adds one, so does a program that calls "
                  "swpipe_record and swpipe_run_serial, 'swsim import --form=pipeline --db FILE "
                  "TRACE' another");
        return STATUS_INPUT;
    }
    *out_run = wanted.run;
    return STATUS_OK;
}

static enum status profile_check_run(const struct trace *trace, struct diag *diag)
{
    const struct run_info *info = &trace->info;
    const char *what = info->kind != RUN_MEASURED ? "is not measured"
                       : !profile_is_serial(info) && !profile_is_imported(info)
                           ? "is not serial: its tasks overlap"
                       : info->finished != RUN_FINISHED ? "did not come to its end"
                       : info->ranks < 1                ? "has no rank"
                                                        : NULL;
    if (!what)
        return STATUS_OK;
    return diag_error(diag, STATUS_INPUT,
                      "run %" PRId64 " of %s %s; expected a finished run of 'swrun --serial'",
                      trace->run, info->plan_name, what);
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Equal names of a trace are equal pointers, by which a task is found. */
struct task_names {
    const char **texts; /* per task: the trace's copy of its name */
    struct table table;
};

/* In the trace's arena. False: memory is exhausted. */
static bool profile_index_names(struct task_names *names, struct trace *trace,
                                const struct plan *plan)
{
    size_t count = plan->pipeline.task_count;
    *names = (struct task_names){.texts = ARENA_ARRAY(trace->arena, count + 1, const char *)};
    for (size_t i = 0; names->texts && i < count; i++) {
        const char *text = names->texts[i] = trace_intern(trace, plan->pipeline.tasks[i].name);
        if (!text || !table_add_in(&names->table, trace->arena, table_hash_pointer(text), i))
            return false;
    }
    return names->texts != NULL;
}

/* -1: there is no such task. */
static int find_name(const struct task_names *names, const char *text)
{
    const uint32_t task =
        TABLE_FIND(&names->table, table_hash_pointer(text), i, names->texts[i] == text);
    return task == TABLE_NONE ? -1 : (int)task;
}

static bool make_sample(const struct trace *trace, const struct trace_span *span,
                        const struct task_names *names, struct sample *out)
{
    int task = find_name(names, span->task);
    if (span->kind == SPAN_WAIT || span->kind == SPAN_PASS || task < 0 || span->iteration < 0)
        return false;
    *out = (struct sample){
        .kind = span->kind == SPAN_HOST ? PROFILE_HOST : PROFILE_DEVICE,
        .task = task,
        .rank = trace->agents[span->agent].rank,
        .iteration = span->iteration,
        .start_ns = span->start_ns,
        .end_ns = span->end_ns,
        .ns = span->end_ns - span->start_ns,
    };
    return out->rank >= 0 && out->rank < trace->info.ranks;
}

/* ---- CPU parts from steps -------------------------------------------------------------------- */

/* The one thread of a rank that does its tasks, and what it has in hand. */
struct worker {
    size_t span, spans_end; /* its spans from here on are not looked at yet */
    int threads;
    bool busy;
    int64_t start_ns;
};

/* The spans of an agent stand together, in the order of their starts. */
static void profile_find_workers(const struct trace *trace, struct worker *workers)
{
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct trace_agent *agent = &trace->agents[trace->spans[i].agent];
        bool first = i == 0 || trace->spans[i - 1].agent != trace->spans[i].agent;
        if (agent->kind != TRACE_THREAD || agent->rank < 0 || agent->rank >= trace->info.ranks)
            continue;
        struct worker *worker = &workers[agent->rank];
        worker->threads += first;
        worker->span = first ? i : worker->span;
        worker->spans_end = i + 1;
    }
}

/* How much of the time from worker->start_ns to `end_ns` it waited. */
static int64_t waited_ns(const struct trace *trace, struct worker *worker, int64_t end_ns)
{
    int64_t sum_ns = 0;
    for (; worker->span < worker->spans_end; worker->span++) {
        const struct trace_span *span = &trace->spans[worker->span];
        if (span->start_ns >= end_ns)
            break;
        if (span->kind == SPAN_WAIT && span->start_ns >= worker->start_ns)
            sum_ns += (span->end_ns < end_ns ? span->end_ns : end_ns) - span->start_ns;
    }
    return sum_ns;
}

/* An instance is in hand from `take` to `complete`. False: not one thread a rank does it all. */
static bool sample_steps(const struct trace *trace, const struct task_names *names,
                         struct worker *workers, struct samples *samples)
{
    profile_find_workers(trace, workers);
    for (int rank = 0; rank < trace->info.ranks; rank++)
        if (workers[rank].threads != 1)
            return false;
    for (size_t i = 0; i < trace->step_count; i++) {
        const struct trace_step *step = &trace->steps[i];
        int task = find_name(names, step->task);
        if (step->rank < 0 || step->rank >= trace->info.ranks || task < 0 || step->iteration < 0)
            continue;
        struct worker *worker = &workers[step->rank];
        if (strcmp(step->op, "take") == 0) {
            worker->busy = true;
            worker->start_ns = step->time_ns;
        } else if (worker->busy && strcmp(step->op, op_key(OP_COMPLETE)) == 0) {
            int64_t ns = step->time_ns - worker->start_ns - waited_ns(trace, worker, step->time_ns);
            worker->busy = false;
            samples->items[samples->count++] = (struct sample){
                .kind = PROFILE_HOST,
                .task = task,
                .rank = step->rank,
                .iteration = step->iteration,
                .start_ns = worker->start_ns,
                .end_ns = step->time_ns,
                .ns = ns > 0 ? ns : 0,
            };
        }
    }
    return true;
}

static int compare_instances(const struct sample *a, const struct sample *b)
{
    return compare_then(
        compare_then(compare_int((int)a->kind, (int)b->kind), compare_int(a->task, b->task)),
        compare_then(compare_i64(a->iteration, b->iteration), compare_int(a->rank, b->rank)));
}

static int by_instance(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    return compare_then(compare_instances(x, y), compare_i64(x->start_ns, y->start_ns));
}

static int by_duration(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    return compare_then(
        compare_then(compare_int((int)x->kind, (int)y->kind), compare_int(x->task, y->task)),
        compare_then(compare_int(x->rank, y->rank), compare_i64(x->ns, y->ns)));
}

/* Sort by instance; spans of one instance become one sample. */
static void merge_instances(struct samples *samples)
{
    size_t kept = 0;
    SORT(samples->items, samples->count, by_instance);
    for (size_t i = 0; i < samples->count; i++) {
        const struct sample *sample = &samples->items[i];
        struct sample *last = kept ? &samples->items[kept - 1] : NULL;
        if (!last || compare_instances(last, sample) != 0) {
            samples->items[kept++] = *sample;
            continue;
        }
        last->ns += sample->ns;
        last->end_ns = max_i64(last->end_ns, sample->end_ns);
    }
    assert(kept <= samples->count);
    samples->count = kept;
}

static int profile_comm_of(const struct plan *plan, const struct sample *sample)
{
    const struct work *work = &plan_task(plan, sample->rank, sample->task)->work;
    return work->kind == WORK_COLLECTIVE ? work->comm : -1;
}

/* From the start of the last member of `of` among samples[0 .. count) to the mean of their ends. */
static int64_t collective_ns(const struct plan *plan, const struct sample *samples, size_t count,
                             const struct sample *of)
{
    int64_t start_ns = of->start_ns;
    double end_ns = 0;
    int members = 0;
    for (size_t i = 0; i < count; i++) {
        if (profile_comm_of(plan, &samples[i]) != profile_comm_of(plan, of))
            continue;
        start_ns = samples[i].start_ns > start_ns ? samples[i].start_ns : start_ns;
        end_ns += (double)samples[i].end_ns;
        members++;
    }
    assert(members > 0 && "`of` is a member itself");
    int64_t ns = llround(end_ns / members) - start_ns;
    return ns > 0 ? ns : 0;
}

/* A member that came early waited for the others; that is no part of what the collective takes. */
static void trim_collectives(const struct plan *plan, struct samples *samples)
{
    struct sample *items = samples->items;
    for (size_t first = 0, last; first < samples->count; first = last) {
        for (last = first + 1; last < samples->count && items[last].kind == items[first].kind &&
                               items[last].task == items[first].task &&
                               items[last].iteration == items[first].iteration;
             last++)
            ;
        for (size_t i = first; i < last && items[i].kind == PROFILE_DEVICE; i++)
            if (profile_comm_of(plan, &items[i]) >= 0)
                items[i].ns = collective_ns(plan, &items[first], last - first, &items[i]);
    }
}

/* Leave out what warms up; STATUS_INPUT when nothing is left. */
static enum status leave_out_warm_up(struct profile *profile, struct samples *samples,
                                     struct diag *diag)
{
    int64_t iterations = 0;
    size_t kept = 0;
    for (size_t i = 0; i < samples->count; i++)
        if (samples->items[i].iteration >= iterations)
            iterations = samples->items[i].iteration + 1;
    if (samples->count == 0)
        return diag_error(diag, STATUS_INPUT, "run %" PRId64 " measured none of the tasks of %s",
                          profile->run, profile->plan.name);
    profile->warm_up = 1 + iterations / 10;
    profile->iterations = iterations - profile->warm_up;
    if (profile->iterations < 1)
        return diag_error(diag, STATUS_INPUT,
                          "run %" PRId64 " of %s is too short: found %" PRId64
                          " iterations, expected at least 2, the first of which warms up",
                          profile->run, profile->plan.name, iterations);
    for (size_t i = 0; i < samples->count; i++)
        if (samples->items[i].iteration >= profile->warm_up)
            samples->items[kept++] = samples->items[i];
    samples->count = kept;
    return STATUS_OK;
}

/* CPU parts come from the steps where there are any; else, and device parts, from the spans. */
static enum status profile_collect(const struct trace *trace, const struct task_names *names,
                                   struct samples *samples, struct diag *diag)
{
    struct worker *workers = calloc((size_t)trace->info.ranks, sizeof *workers);
    samples->items = malloc((trace->span_count + trace->step_count + 1) * sizeof *samples->items);
    if (!workers || !samples->items) {
        free(workers);
        return diag_no_memory(diag);
    }
    bool stepped = trace->step_count > 0 && sample_steps(trace, names, workers, samples);
    free(workers);
    for (size_t i = 0; i < trace->span_count; i++)
        if (!stepped || trace->spans[i].kind != SPAN_HOST)
            samples->count +=
                make_sample(trace, &trace->spans[i], names, &samples->items[samples->count]);
    return STATUS_OK;
}

static enum status take_samples(struct profile *profile, struct trace *trace,
                                struct samples *samples, struct diag *diag)
{
    const struct plan *plan = &profile->plan;
    struct task_names names;
    if (!profile_index_names(&names, trace, plan))
        return diag_no_memory(diag);
    enum status status = profile_collect(trace, &names, samples, diag);
    if (status == STATUS_OK)
        status = leave_out_warm_up(profile, samples, diag);
    if (status == STATUS_OK) {
        merge_instances(samples);
        trim_collectives(plan, samples);
        SORT(samples->items, samples->count, by_duration);
    }
    return status;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static bool profile_add_part(struct profile *profile, const struct sample *samples, size_t count)
{
    struct profile_part *part = &profile->parts[profile->part_count];
    int64_t *ns = ARENA_ARRAY(&profile->arena, count, int64_t);
    double sum_ns = 0;
    assert(count > 0);
    for (size_t i = 0; ns && i < count; i++) {
        ns[i] = samples[i].ns;
        sum_ns += (double)ns[i];
    }
    *part = (struct profile_part){.kind = samples->kind,
                                  .task = samples->task,
                                  .rank = samples->rank,
                                  .mean_ns = sum_ns / (double)count,
                                  .ns = ns,
                                  .count = count};
    profile->part_count++;
    return ns;
}

static bool make_parts(struct profile *profile, const struct samples *samples)
{
    size_t most = PROFILE_KINDS * profile->plan.pipeline.task_count * (size_t)profile->ranks;
    const struct sample *items = samples->items;
    profile->parts = ARENA_ARRAY(&profile->arena, most + 1, struct profile_part);
    if (!profile->parts)
        return false;
    for (size_t first = 0, last; first < samples->count; first = last) {
        for (last = first + 1;
             last < samples->count && items[last].kind == items[first].kind &&
             items[last].task == items[first].task && items[last].rank == items[first].rank;
             last++)
            ;
        if (!profile_add_part(profile, &items[first], last - first))
            return false;
    }
    return true;
}

static int profile_compare_parts(const void *a, const void *b)
{
    const struct profile_part *x = a, *y = b;
    return compare_then(
        compare_then(compare_int((int)x->kind, (int)y->kind), compare_int(x->task, y->task)),
        compare_int(x->rank, y->rank));
}

/* ---- the plan -------------------------------------------------------------------------------- */

bool profile_make_dist(struct arena *arena, const struct profile_part *part, int64_t mean_ns,
                       struct dist *out)
{
    size_t count = part->count < DIST_MAX_FACTORS ? part->count : DIST_MAX_FACTORS;
    *out = (struct dist){.kind = DIST_CONSTANT};
    if (mean_ns == 0)
        return true;
    double *factors = ARENA_ARRAY(arena, count, double);
    if (!factors)
        return false;
    for (size_t i = 0; i < count; i++) {
        size_t at = (size_t)(((double)i + 0.5) * (double)part->count / (double)count);
        factors[i] = (double)part->ns[at] / (double)mean_ns;
    }
    *out = (struct dist){.kind = DIST_EMPIRICAL, .factors = factors, .factor_count = count};
    return true;
}

/* True if the plan gives the task such a part, as seen from this rank. */
static bool has_part(const struct task *task, enum profile_kind kind)
{
    bool host = task->work.kind == WORK_HOST;
    return kind == PROFILE_DEVICE ? !host : host || task->host_time_ns + task->host_after_ns > 0;
}

static void note_missing(struct profile *profile, enum profile_kind kind, int task, int rank)
{
    profile->missing[profile->missing_count++] =
        (struct profile_part){.kind = kind, .task = task, .rank = rank};
}

static int lowest_member(const struct plan *plan, int comm)
{
    ASSERT_INDEX(comm, plan->comm_count);
    return plan->comms[comm].members ? plan->comms[comm].members[0] : 0;
}

static bool set_part(struct profile *profile, enum profile_kind kind, int task, int rank,
                     struct task *out)
{
    const struct profile_part key = {.kind = kind, .task = task, .rank = rank % profile->ranks};
    const struct profile_part *part =
        bsearch(&key, profile->parts, profile->part_count, sizeof key, profile_compare_parts);
    bool host = kind == PROFILE_HOST;
    struct dist *jitter = host ? &out->host_jitter : &out->jitter;
    if (!part) {
        if (has_part(out, kind))
            note_missing(profile, kind, task, rank);
        return true;
    }
    int64_t mean_ns = llround(part->mean_ns);
    if (out->work.kind == WORK_HOST ? host : !host)
        out->work.time_ns = 0; /* it is in the measured time */
    if (!host && out->work.kind == WORK_COLLECTIVE &&
        rank != lowest_member(&profile->plan, out->work.comm))
        mean_ns = 0;
    if (host)
        plan_set_host_time(out, mean_ns);
    else
        out->time_ns = mean_ns;
    return profile_make_dist(&profile->arena, part, mean_ns, jitter);
}

/* The share that the run says it wanted, unless the plan does. A task of which nothing is said slept. */
static bool set_core_share(struct trace *trace, struct task *out)
{
    const char *key = arena_printf(trace->arena, "%s" RUN_STAT_CORE_SHARE, out->name);
    const struct trace_stat *stat = key ? trace_find_stat(trace, key) : NULL;
    if (key && !out->shares.core.given)
        out->shares.core = (struct share){
            .given = true, .millionths = stat ? (int)lround(stat->value * SHARE_WHOLE) : 0};
    return key;
}

/* All tasks as one rank has them, with the measured times. */
static bool fill_override(struct profile *profile, struct trace *trace, const struct plan *plan,
                          int rank, struct rank_override *out)
{
    size_t count = plan->pipeline.task_count;
    const struct order_spec *order = plan_order(plan, rank);
    *out = (struct rank_override){.rank = rank,
                                  .tasks = ARENA_ARRAY(&profile->arena, count, struct task),
                                  .has_order = order != &plan->pipeline.order,
                                  .order = *order};
    for (size_t i = 0; out->tasks && i < count; i++) {
        out->tasks[i] = *plan_task(plan, rank, (int)i);
        if (profile->cores > 0 && !set_core_share(trace, &out->tasks[i]))
            return false;
        for (int kind = 0; kind < PROFILE_KINDS; kind++)
            if (!set_part(profile, (enum profile_kind)kind, (int)i, rank, &out->tasks[i]))
                return false;
    }
    return out->tasks;
}

static bool profile_make_plan(struct profile *profile, struct trace *trace, const struct plan *plan,
                              int ranks)
{
    size_t count = (size_t)(ranks > plan->ranks ? ranks : plan->ranks);
    size_t most = PROFILE_KINDS * plan->pipeline.task_count * count;
    struct rank_override *overrides = ARENA_ARRAY(&profile->arena, count, struct rank_override);
    profile->missing = ARENA_ARRAY(&profile->arena, most + 1, struct profile_part);
    if (!overrides || !profile->missing)
        return false;
    for (size_t rank = 0; rank < count; rank++)
        if (!fill_override(profile, trace, plan, (int)rank, &overrides[rank]))
            return false;
    profile->plan.pipeline.overrides = overrides;
    profile->plan.pipeline.override_count = count;
    profile->plan.pipeline.overrides_ascend = true;
    return true;
}

/* ---- imported pipelines ---------------------------------------------------------------------- */

/*
 * An import of the pipeline form stores the measured run with its plan, whose tasks have the mean times of the steps and
 * their distributions, without what is waiting (trace/import/pieces.h). These are the parts of the profile; a task is found
 * by its name.
 */

/* A part of a task that takes `mean_ns` with such a distribution. False without memory. */
static bool add_task_part(struct profile *profile, const struct profile_part *key, int64_t mean_ns,
                          const struct dist *jitter)
{
    const size_t count = jitter->kind == DIST_EMPIRICAL ? jitter->factor_count : 1;
    int64_t *ns = ARENA_ARRAY(&profile->arena, count, int64_t);
    if (!ns)
        return false;
    ns[0] = mean_ns;
    for (size_t i = 0; i < count && jitter->kind == DIST_EMPIRICAL; i++)
        ns[i] = llround(jitter->factors[i] * (double)mean_ns);
    sort_i64(ns, count);
    struct profile_part *part = &profile->parts[profile->part_count++];
    *part = *key;
    part->mean_ns = (double)mean_ns;
    part->ns = ns;
    part->count = count;
    return true;
}

/* The CPU or device part of a task as a rank of the run had it. */
static bool profile_take_part(struct profile *profile, const struct plan *measured,
                              const struct profile_part *key, int task)
{
    const struct task *own = plan_task(measured, key->rank, task);
    const bool host = own->work.kind == WORK_HOST;
    const int64_t work_ns = own->work.time_ns;
    if (key->kind == PROFILE_HOST)
        return add_task_part(profile, key,
                             own->host_time_ns + own->host_after_ns + (host ? work_ns : 0),
                             &own->host_jitter);
    return host || add_task_part(profile, key, own->time_ns + work_ns, &own->jitter);
}

static bool take_task_parts(struct profile *profile, const struct plan *measured)
{
    const size_t tasks = profile->plan.pipeline.task_count;
    profile->parts = ARENA_ARRAY(
        &profile->arena, PROFILE_KINDS * tasks * (size_t)profile->ranks + 1, struct profile_part);
    if (!profile->parts)
        return false;
    for (int kind = 0; kind < PROFILE_KINDS; kind++)
        for (size_t t = 0; t < tasks; t++) {
            const int task = plan_find_task(measured, profile->plan.pipeline.tasks[t].name);
            profile->drawn += kind == 0 && task >= 0;
            for (int rank = 0; task >= 0 && rank < profile->ranks; rank++) {
                const struct profile_part key = {
                    .kind = (enum profile_kind)kind, .task = (int)t, .rank = rank};
                if (!profile_take_part(profile, measured, &key, task))
                    return false;
            }
        }
    profile->operations = tasks;
    return true;
}

int64_t profile_count_steps(const struct trace *trace)
{
    int64_t count = 0;
    for (size_t i = 0; i < trace->iteration_count; i++)
        count += trace->iterations[i].rank == trace->iterations[0].rank;
    return count;
}

/* The parts of profile->plan, by (kind, task, rank), with ranks and iterations of the imported run `trace`. STATUS_INPUT
   where that is not of a pipeline or has none of the plan's tasks. */
static enum status profile_take_tasks(struct profile *profile, const struct trace *trace,
                                      struct diag *diag)
{
    const char *text = trace->info.plan_text;
    struct plan measured;
    enum status status = plan_parse("the run's plan", text, strlen(text), &measured, diag);
    if (status != STATUS_OK)
        return status;
    profile->iterations = profile_count_steps(trace);
    if (measured.form != FORM_PIPELINE)
        status = diag_error(diag, STATUS_INPUT,
                            "run %" PRId64 " of %s was imported as host programs: 'swsim import "
                            "--form=pipeline --db FILE' adds one with tasks",
                            trace->run, trace->info.plan_name);
    else if (!take_task_parts(profile, &measured))
        status = diag_no_memory(diag);
    else if (profile->drawn == 0)
        status = diag_error(diag, STATUS_INPUT, "run %" PRId64 " measured none of the tasks of %s",
                            trace->run, profile->plan.name);
    plan_fini(&measured);
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Of a serial run: what its spans and steps took. */
static enum status take_parts(struct profile *profile, struct trace *trace, struct diag *diag)
{
    struct samples samples = {0};
    enum status status = take_samples(profile, trace, &samples, diag);
    if (status == STATUS_OK && !make_parts(profile, &samples))
        status = diag_no_memory(diag);
    free(samples.items);
    return status;
}

enum status profile_cores(const struct trace *trace, int *out, struct diag *diag)
{
    const struct trace_stat *cores = trace_find_stat(trace, RUN_STAT_CORES);
    *out = 0;
    if (!cores)
        return STATUS_OK;
    if (!(cores->value >= 1 && cores->value <= PLAN_MAX_CORES))
        return diag_error(diag, STATUS_INPUT, "run %" PRId64 ": found %g cores, expected 1 to %d",
                          trace->run, cores->value, PLAN_MAX_CORES);
    *out = (int)cores->value;
    return STATUS_OK;
}

const char *profile_describe_cores(int cores, bool own, char buf[PROFILE_CORES_TEXT])
{
    snprintf(buf, PROFILE_CORES_TEXT, "%d core%s%s carr%s the work of all ranks", cores,
             cores == 1 ? "" : "s", own ? " of the run's machine" : "", cores == 1 ? "ies" : "y");
    return buf;
}

static bool is_core_share(const char *key)
{
    const size_t suffix = strlen(RUN_STAT_CORE_SHARE), length = strlen(key);
    return length > suffix && strcmp(key + length - suffix, RUN_STAT_CORE_SHARE) == 0;
}

/* *computed: a task of the run did, and did not sleep. */
static enum status check_core_shares(const struct trace *trace, bool *computed, struct diag *diag)
{
    *computed = false;
    for (size_t i = 0; i < trace->stat_count; i++) {
        const struct trace_stat *stat = &trace->stats[i];
        if (!is_core_share(stat->key))
            continue;
        if (!(stat->value >= 0 && stat->value <= 1))
            return diag_error(diag, STATUS_INPUT,
                              "run %" PRId64 ": found %s %g, expected a share from 0 to 1",
                              trace->run, stat->key, stat->value);
        *computed |= stat->value > 0;
    }
    return STATUS_OK;
}

static enum status profile_take_cores(struct profile *profile, const struct trace *trace,
                                      struct diag *diag)
{
    bool computed;
    int cores;
    if (profile->plan.machine.cores > 0)
        return STATUS_OK;
    enum status status = profile_cores(trace, &cores, diag);
    if (status == STATUS_OK)
        status = check_core_shares(trace, &computed, diag);
    if (status == STATUS_OK && computed)
        profile->plan.machine.cores = profile->cores = cores;
    return status;
}

static enum status read_trace(struct profile *profile, struct trace *trace, int ranks,
                              struct diag *diag)
{
    const struct plan plan = profile->plan;
    enum status status = profile_check_run(trace, diag);
    if (status != STATUS_OK)
        return status;
    profile->run = trace->run;
    profile->ranks = trace->info.ranks;
    profile->device = arena_strdup(&profile->arena, trace->info.device);
    if (!profile->device)
        return diag_no_memory(diag);
    status = profile_take_cores(profile, trace, diag);
    if (status == STATUS_OK)
        status = profile_is_imported(&trace->info) ? profile_take_tasks(profile, trace, diag)
                                                   : take_parts(profile, trace, diag);
    if (status == STATUS_OK && !profile_make_plan(profile, trace, &plan, ranks))
        status = diag_no_memory(diag);
    return status;
}

enum status profile_read(struct store *store, int64_t run, const struct plan *plan, int ranks,
                         struct profile *out, struct diag *diag)
{
    struct profile profile = {.plan = *plan};
    struct arena arena; /* of the trace */
    struct trace trace;
    if (plan->form == FORM_THREADS)
        return profile_read_steps(store, run, plan, out, diag);
    if (plan->form == FORM_PROGRAMS)
        return profile_read_ranks(store, run, plan, out, diag);
    enum status status = run < 0 ? profile_find_run(store, plan, &run, diag) : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    arena_init(&profile.arena, 0);
    arena_init(&arena, 0);
    status = store_load(store, run, STORE_ALL, STORE_ALL, &arena, &trace, diag);
    if (status == STATUS_OK)
        status = store_load_steps(store, &trace, diag);
    if (status == STATUS_OK)
        status = read_trace(&profile, &trace, ranks, diag);
    arena_fini(&arena);
    if (status == STATUS_OK)
        *out = profile;
    else
        profile_fini(&profile);
    return status;
}

void profile_fini(struct profile *profile)
{
    arena_fini(&profile->arena);
    *profile = (struct profile){0};
}

static void note_cores(const struct profile *profile, struct diag *diag)
{
    char text[PROFILE_CORES_TEXT];
    if (profile->cores == 0)
        return;
    diag_note(diag, "%s", profile_describe_cores(profile->cores, true, text));
    if (profile->ranks > profile->cores)
        diag_note(
            diag,
            "%d ranks shared %s in the serial run already, so its times may include waits for a "
            "core, and the prediction may be too long",
            profile->ranks, profile->cores == 1 ? "it" : "them");
}

void profile_note(const struct profile *profile, const char *path, struct diag *diag)
{
    if (profile->plan.form == FORM_PROGRAMS) {
        diag_note(diag,
                  "times from run %" PRId64 " of %s, on %s: %zu of stages and links, medians over "
                  "the microbatches",
                  profile->run, path, profile->device, profile->drawn);
        return;
    }
    if (profile->operations > 0)
        diag_note(diag,
                  "times from run %" PRId64 " of %s, imported: %zu of %zu %s have those of %" PRId64
                  " step%s",
                  profile->run, path, profile->drawn, profile->operations,
                  profile->plan.form == FORM_PIPELINE ? "tasks" : "operations", profile->iterations,
                  profile->iterations == 1 ? "" : "s");
    else
        diag_note(diag,
                  "times from run %" PRId64 " of %s, serial, on %s: %" PRId64
                  " iterations, after %" PRId64 " that warmed up",
                  profile->run, path, profile->device, profile->iterations, profile->warm_up);
    note_cores(profile, diag);
    for (size_t i = 0; i < profile->missing_count; i++) {
        const struct profile_part *missing = &profile->missing[i];
        diag_note(diag, "not measured: the %s of %s on rank %d, so the plan's time is taken",
                  profile_words(missing->kind), profile->plan.pipeline.tasks[missing->task].name,
                  missing->rank);
    }
}
