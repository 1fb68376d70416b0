/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile_steps.c - what the operations of an imported job took in each of its steps.
 *
 * An import stores the measured run with its plan, whose operations have the times of the whole trace, the device's own
 * gaps in front of them, and of a collective the least of its ranks. An operation of one step has others like it in the
 * other steps: with the same rank, stream and name, and the same number among them within the step. Their times are its
 * distribution. CPU times stay as the plan has them.
 *
 * Operations and spans are listed by (rank, stream, name, order). Where a plan has as many operations as the run has
 * spans of the same three, the n-th of them are the same; where it has fewer, as of one step, its n-th is
 * the n-th of a step.
 */
#include "profile.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert_index.h"
#include "base/sort.h"
#include "plan/text/parse.h"

enum { NO_STEP = -1, FEWEST_STEPS = 2 };

/* An operation of a plan, or a span of the run. */
struct step_place {
    int rank, stream, name; /* names->items */
    size_t order;
    int step;           /* of a span: trace->iterations; NO_STEP */
    int nth;            /* of a span: among its like within its step */
    struct host_op *op; /* of a plan */
};

struct step_places {
    struct step_place *items;
    size_t count;
};

/* A time of an operation: the `nth` of its like within a step. */
struct step_time {
    int nth;
    int64_t ns;
};

struct steps_reader {
    struct profile *profile;
    struct names names;
    struct arena scratch;
    struct trace trace;
    struct plan measured;                  /* of the run */
    struct step_places own, others, spans; /* of the plan; of `measured`; of the trace */
    struct diag *diag;
};

bool profile_is_imported(const struct run_info *info)
{
    return info->kind == RUN_MEASURED && info->note && strcmp(info->note, RUN_NOTE_IMPORTED) == 0;
}

static int profile_steps_compare_kinds(const struct step_place *a, const struct step_place *b)
{
    return compare_then(
        compare_then(compare_int(a->rank, b->rank), compare_int(a->stream, b->stream)),
        compare_int(a->name, b->name));
}

static int profile_steps_compare_places(const void *left, const void *right)
{
    const struct step_place *a = left, *b = right;
    return compare_then(profile_steps_compare_kinds(a, b), compare_size(a->order, b->order));
}

/* ---- lists ----------------------------------------------------------------------------------- */

static bool profile_steps_add_place(struct steps_reader *reader, struct step_places *places,
                                    int rank, const char *stream, const char *name,
                                    struct host_op *op)
{
    struct step_place *place = &places->items[places->count];
    *place = (struct step_place){.rank = rank,
                                 .stream = names_intern(&reader->names, &reader->scratch, stream),
                                 .name = names_intern(&reader->names, &reader->scratch, name),
                                 .order = places->count,
                                 .step = NO_STEP,
                                 .op = op};
    places->count++;
    return place->stream >= 0 && place->name >= 0;
}

static bool works_on_device(const struct host_op *op)
{
    return (op->kind == OP_LAUNCH || op->kind == OP_COPY || op->kind == OP_COLLECTIVE) &&
           op->name && op->stream >= 0 && !host_op_is_graph(op);
}

static bool list_operations(struct steps_reader *reader, const struct plan *plan,
                            struct step_places *places)
{
    size_t count = 0;
    for (size_t t = 0; t < plan->thread_count; t++)
        count += plan->threads[t].op_count;
    places->items = ARENA_ARRAY(&reader->scratch, count + 1, struct step_place);
    if (!places->items)
        return false;
    for (size_t t = 0; t < plan->thread_count; t++)
        for (size_t i = 0; i < plan->threads[t].op_count; i++) {
            struct host_op *op = &plan->threads[t].ops[i];
            if (works_on_device(op) &&
                !profile_steps_add_place(reader, places, plan->threads[t].rank,
                                         plan->streams.items[op->stream], op->name, op))
                return false;
        }
    SORT(places->items, places->count, profile_steps_compare_places);
    return true;
}

/* When each span was launched, or else began. */
static int64_t *launch_times(struct steps_reader *reader)
{
    const struct trace *trace = &reader->trace;
    int64_t *times = ARENA_ARRAY(&reader->scratch, trace->span_count + 1, int64_t);
    for (size_t i = 0; times && i < trace->span_count; i++)
        times[i] = trace->spans[i].start_ns;
    for (size_t i = 0; times && i < trace->edge_count; i++)
        if (trace->edges[i].kind == EDGE_LAUNCH)
            times[trace->edges[i].to] = trace->spans[trace->edges[i].from].start_ns;
    return times;
}

static bool is_in_step(const struct trace *trace, size_t step, int rank, int64_t time_ns)
{
    ASSERT_INDEX(step, trace->iteration_count);
    const struct trace_iteration *it = &trace->iterations[step];
    return it->rank == rank && time_ns >= it->start_ns && time_ns < it->retire_ns;
}

/* The step of that time; `before` is that of the span before, and mostly it. */
static int profile_steps_step_at(const struct trace *trace, int rank, int64_t time_ns, int before)
{
    if (before != NO_STEP && is_in_step(trace, (size_t)before, rank, time_ns))
        return before;
    for (size_t i = 0; i < trace->iteration_count; i++)
        if (is_in_step(trace, i, rank, time_ns))
            return (int)i;
    return NO_STEP;
}

/* Spans of an agent stand in the order of their starts. */
static bool list_spans(struct steps_reader *reader)
{
    const struct trace *trace = &reader->trace;
    const int64_t *launched = launch_times(reader);
    int step = NO_STEP;
    reader->spans.items = ARENA_ARRAY(&reader->scratch, trace->span_count + 1, struct step_place);
    if (!launched || !reader->spans.items)
        return false;
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct trace_span *span = &trace->spans[i];
        const struct trace_agent *agent = &trace->agents[span->agent];
        if (span->kind != SPAN_DEVICE || agent->kind != TRACE_STREAM || !span->task)
            continue;
        if (!profile_steps_add_place(reader, &reader->spans, agent->rank, agent->name, span->task,
                                     NULL))
            return false;
        step = profile_steps_step_at(trace, agent->rank, launched[i], step);
        reader->spans.items[reader->spans.count - 1].step = step;
    }
    SORT(reader->spans.items, reader->spans.count, profile_steps_compare_places);
    return true;
}

/* ---- groups of equals ------------------------------------------------------------------------ */

/* The places like `kind` in a sorted list. */
static struct step_places profile_steps_find_kind(const struct step_places *places,
                                                  const struct step_place *kind)
{
    const size_t low =
        SORT_FIRST(i, 0, places->count, profile_steps_compare_kinds(&places->items[i], kind) >= 0);
    struct step_places found = {.items = &places->items[low]};
    while (low + found.count < places->count &&
           profile_steps_compare_kinds(&places->items[low + found.count], kind) == 0)
        found.count++;
    return found;
}

static int compare_times(const void *left, const void *right)
{
    const struct step_time *a = left, *b = right;
    return compare_then(compare_int(a->nth, b->nth), compare_i64(a->ns, b->ns));
}

static bool shares_time(const struct plan *plan, int rank, const struct host_op *op)
{
    const struct comm *comm = op->kind == OP_COLLECTIVE ? &plan->comms[op->comm] : NULL;
    return comm && rank != (comm->members ? comm->members[0] : 0);
}

/* A collective takes as long as its slowest member: its lowest has the distribution, the others no time. */
static bool set_operation(struct steps_reader *reader, const struct step_place *place,
                          const struct step_time *times, size_t count)
{
    struct profile *profile = reader->profile;
    double sum_ns = 0;
    int64_t *ns = ARENA_ARRAY(&profile->arena, count, int64_t);
    for (size_t i = 0; ns && i < count; i++) {
        ns[i] = times[i].ns;
        sum_ns += (double)ns[i];
    }
    const struct profile_part part = {.ns = ns, .count = count};
    profile->drawn++;
    struct host_details *details = host_op_own_details(place->op, &profile->arena);
    if (!details)
        return false;
    details->jitter = (struct dist){0};
    place->op->time_ns =
        shares_time(&profile->plan, place->rank, place->op) ? 0 : llround(sum_ns / (double)count);
    return ns && (ns[0] == ns[count - 1] ||
                  profile_make_dist(&profile->arena, &part, place->op->time_ns, &details->jitter));
}

/* The times of the nth of a step; *count of them. */
static const struct step_time *profile_steps_find_times(const struct step_time *times, size_t all,
                                                        int nth, size_t *count)
{
    const size_t low = SORT_FIRST(i, 0, all, times[i].nth >= nth);
    *count = 0;
    while (low + *count < all && times[low + *count].nth == nth)
        ++*count;
    return &times[low];
}

/* The times of the operations of one kind in the steps, sorted; *most of them in one step. NULL without memory; the
   caller frees them. */
static struct step_time *times_of_kind(const struct step_places *others,
                                       const struct step_places *spans, size_t *count, int *most)
{
    struct step_time *times = malloc((spans->count + 1) * sizeof *times);
    *count = 0;
    *most = 0;
    for (size_t i = 0; times && i < spans->count; i++) {
        const struct step_place *span = &spans->items[i];
        if (span->step == NO_STEP)
            continue;
        times[(*count)++] = (struct step_time){span->nth, others->items[i].op->time_ns};
        *most = span->nth >= *most ? span->nth + 1 : *most;
    }
    if (times)
        SORT(times, *count, compare_times);
    return times;
}

static bool set_kind(struct steps_reader *reader, const struct step_places *own,
                     const struct step_places *others, const struct step_places *spans)
{
    const bool same = own->count == spans->count;
    size_t count, found;
    int most;
    /* The number of each span among its like within its step. */
    for (size_t i = 0; i < spans->count; i++) {
        struct step_place *span = &spans->items[i];
        span->nth = i > 0 && span[-1].step == span->step ? span[-1].nth + 1 : 0;
    }
    struct step_time *times = times_of_kind(others, spans, &count, &most);
    bool ok = times != NULL;
    for (size_t i = 0; ok && most > 0 && i < own->count; i++) {
        if (same && spans->items[i].step == NO_STEP)
            continue;
        const int nth = same ? spans->items[i].nth : (int)(i % (size_t)most);
        const struct step_time *of_nth = profile_steps_find_times(times, count, nth, &found);
        ok = set_operation(reader, &own->items[i], of_nth, found);
    }
    free(times);
    return ok;
}

static bool profile_steps_set_all(struct steps_reader *reader)
{
    const struct step_places *own = &reader->own;
    for (size_t first = 0; first < own->count;) {
        const struct step_places same = profile_steps_find_kind(own, &own->items[first]);
        const struct step_places others =
            profile_steps_find_kind(&reader->others, &own->items[first]);
        const struct step_places spans =
            profile_steps_find_kind(&reader->spans, &own->items[first]);
        if (spans.count > 0 && spans.count == others.count &&
            !set_kind(reader, &same, &others, &spans))
            return false;
        first += same.count;
    }
    reader->profile->operations = own->count;
    return true;
}

/* ---- the run --------------------------------------------------------------------------------- */

static void profile_steps_look_at_run(const struct store_run *run, void *context)
{
    struct profile *profile = context;
    if (strcmp(run->info.plan_name, profile->plan.name) == 0 && profile_is_imported(&run->info))
        profile->run = run->id;
}

static enum status profile_steps_find_run(struct store *store, struct profile *profile,
                                          struct diag *diag)
{
    enum status status = store_list_runs(store, profile_steps_look_at_run, profile, diag);
    if (status != STATUS_OK || profile->run >= 0)
        return status;
    return diag_error(
        diag, STATUS_INPUT,
        "the trace store has no imported run of %s: 'swsim import --db FILE' adds one",
        profile->plan.name);
}

static enum status profile_steps_check_run(struct steps_reader *reader)
{
    const struct trace *trace = &reader->trace;
    struct profile *profile = reader->profile;
    profile->iterations = profile_count_steps(trace);
    const char *what = !profile_is_imported(&trace->info)      ? "was not imported from a trace"
                       : reader->measured.form != FORM_THREADS ? "is not of host programs"
                       : profile->iterations < FEWEST_STEPS    ? "has fewer than two steps"
                                                               : NULL;
    return what ? diag_error(reader->diag, STATUS_INPUT, "run %" PRId64 " of %s %s", trace->run,
                             trace->info.plan_name, what)
                : STATUS_OK;
}

/* The plan's own operations, which get other times. */
static bool copy_threads(struct profile *profile)
{
    struct plan *plan = &profile->plan;
    const struct host_thread *threads = plan->threads;
    plan->threads = ARENA_ARRAY(&profile->arena, plan->thread_count + 1, struct host_thread);
    for (size_t t = 0; plan->threads && t < plan->thread_count; t++) {
        const size_t count = threads[t].op_count;
        struct host_op *ops = ARENA_ARRAY(&profile->arena, count + 1, struct host_op);
        if (!ops)
            return false;
        if (count > 0)
            memcpy(ops, threads[t].ops, count * sizeof *ops);
        plan->threads[t] = threads[t];
        plan->threads[t].ops = ops;
    }
    return plan->threads != NULL;
}

static enum status profile_steps_read_run(struct steps_reader *reader)
{
    const char *text = reader->trace.info.plan_text;
    enum status status =
        plan_parse("the run's plan", text, strlen(text), &reader->measured, reader->diag);
    if (status != STATUS_OK)
        return status;
    status = profile_steps_check_run(reader);
    if (status == STATUS_OK && (!copy_threads(reader->profile) ||
                                !list_operations(reader, &reader->profile->plan, &reader->own) ||
                                !list_operations(reader, &reader->measured, &reader->others) ||
                                !list_spans(reader) || !profile_steps_set_all(reader)))
        status = diag_no_memory(reader->diag);
    plan_fini(&reader->measured);
    return status;
}

enum status profile_read_steps(struct store *store, int64_t run, const struct plan *plan,
                               struct profile *out, struct diag *diag)
{
    struct profile profile = {.plan = *plan, .run = run};
    struct steps_reader reader = {.profile = &profile, .diag = diag};
    enum status status = run < 0 ? profile_steps_find_run(store, &profile, diag) : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    arena_init(&profile.arena, 0);
    arena_init(&reader.scratch, 0);
    status =
        store_load(store, profile.run, STORE_ALL, STORE_ALL, &reader.scratch, &reader.trace, diag);
    if (status == STATUS_OK) {
        profile.ranks = reader.trace.info.ranks;
        profile.device = arena_strdup(&profile.arena, reader.trace.info.device);
        status = profile.device ? profile_steps_read_run(&reader) : diag_no_memory(diag);
    }
    arena_fini(&reader.scratch);
    if (status == STATUS_OK)
        *out = profile;
    else
        profile_fini(&profile);
    return status;
}
