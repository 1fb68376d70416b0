/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_tasks.c - the pieces of a step as tasks: their names, times and streams, and how ranks differ in them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline_internal.h"

#include "base/sort.h"

#define WAIT_STREAM "wait" /* of tasks that only wait for others */

/* ---- names ----------------------------------------------------------------------------------- */

static const char *piece_word(const struct piece *piece)
{
    switch (piece->kind) {
    case PIECE_WAIT: return "wait";
    case PIECE_HOST: return "host";
    case PIECE_WORK: break;
    }
    return piece->is_collective ? collective_key(piece->collective) : NULL;
}

/* The piece that has the section's name: the one with the most time on the device, else the first. */
static size_t pipeline_tasks_head_of(const struct pipeline_form_writer *writer, int section)
{
    const struct pieces *pieces = writer->pieces;
    size_t best = pieces->count;
    int64_t most = -1;
    for (size_t i = 0; i < pieces->count; i++) {
        const struct piece *piece = &pieces->items[i];
        int64_t sum = 0;
        if (piece->section != section)
            continue;
        for (size_t s = 0; s < writer->sections->step_count && !piece_word(piece); s++)
            sum += piece->time_ns[s] + 1;
        if (sum > most) {
            most = sum;
            best = i;
        }
    }
    return best;
}

static const char *pipeline_tasks_task_name(const struct pipeline_form_writer *writer, size_t at)
{
    const struct piece *piece = &writer->pieces->items[at];
    const char *section = writer->sections->items[piece->section].name;
    const char *word = piece_word(piece);
    struct arena *arena = &writer->plan->arena;
    if (at == pipeline_tasks_head_of(writer, piece->section))
        return arena_strdup(arena, section);
    const char *base = word ? arena_printf(arena, "%s.%s", section, word) : section;
    const char *name = base;
    for (int number = 2;
         name && (pipeline_section(writer, name) >= 0 || plan_find_task(writer->plan, name) >= 0);
         number++)
        name = arena_printf(arena, "%s.%d", base, number);
    return name;
}
/* ---- times ----------------------------------------------------------------------------------- */

/* Steps whose times a task has: those of all ranks, or of one. */
struct pipeline_tasks_span {
    size_t first, count;
};

static struct pipeline_tasks_span all_steps(const struct pipeline_form_writer *writer)
{
    return (struct pipeline_tasks_span){0, writer->sections->step_count};
}

static struct pipeline_tasks_span pipeline_tasks_steps_of(const struct pipeline_form_writer *writer,
                                                          int rank)
{
    const struct sections *sections = writer->sections;
    struct pipeline_tasks_span span = {0};
    while (sections->steps[span.first].rank != rank)
        span.first++;
    while (span.first + span.count < sections->step_count &&
           sections->steps[span.first + span.count].rank == rank)
        span.count++;
    return span;
}

/* Factors of the mean in order, at most MOST of them, in thousandths. */
static bool put_factors(struct arena *arena, const int64_t *values, size_t count, int64_t mean,
                        struct dist *out)
{
    enum { MOST = 32 };
    const size_t kept = count < MOST ? count : MOST;
    int64_t *sorted = ARENA_ARRAY(arena, count, int64_t);
    double *factors = ARENA_ARRAY(arena, kept, double);
    if (!sorted || !factors)
        return false;
    memcpy(sorted, values, count * sizeof *sorted);
    sort_i64(sorted, count);
    for (size_t i = 0; i < kept; i++)
        factors[i] =
            round((double)sorted[(2 * i + 1) * count / (2 * kept)] / (double)mean * 1e3) / 1e3;
    *out = (struct dist){.kind = DIST_EMPIRICAL, .factors = factors, .factor_count = kept};
    return true;
}

static int64_t pipeline_tasks_mean(const int64_t *values, struct pipeline_tasks_span span)
{
    int64_t sum = 0;
    for (size_t i = 0; i < span.count; i++)
        sum += values[span.first + i];
    return sum / (int64_t)span.count;
}

/* The distribution of times that differ by more than 1%. */
static bool put_jitter(struct pipeline_form_writer *writer, const int64_t *values,
                       struct pipeline_tasks_span span, struct dist *out)
{
    int64_t least = INT64_MAX, most = 0;
    for (size_t i = span.first; i < span.first + span.count; i++) {
        least = values[i] < least ? values[i] : least;
        most = values[i] > most ? values[i] : most;
    }
    const int64_t middle = pipeline_tasks_mean(values, span);
    return middle == 0 || most - least <= middle / 100 ||
           put_factors(&writer->plan->arena, values + span.first, span.count, middle, out);
}

/* Both CPU parts have one draw. */
static bool put_host_times(struct pipeline_form_writer *writer, const struct piece *piece,
                           struct pipeline_tasks_span span, struct task *task)
{
    const size_t count = writer->sections->step_count;
    int64_t *sums = ARENA_ARRAY(&writer->plan->arena, count, int64_t);
    if (!sums)
        return false;
    for (size_t i = 0; i < count; i++)
        sums[i] = piece->host_ns[i] + piece->after_ns[i];
    task->host_time_ns = pipeline_tasks_mean(piece->host_ns, span);
    task->host_after_ns = pipeline_tasks_mean(piece->after_ns, span);
    return put_jitter(writer, sums, span, &task->host_jitter);
}

/* A collective of several ranks takes the longest of their draws: as they have one time, it has its mean. */
static bool pipeline_tasks_put_times(struct pipeline_form_writer *writer, const struct piece *piece,
                                     struct pipeline_tasks_span span, struct task *task)
{
    task->jitter = task->host_jitter = (struct dist){0};
    task->time_ns = pipeline_tasks_mean(piece->time_ns, span);
    return (task->work.kind == WORK_COLLECTIVE ||
            put_jitter(writer, piece->time_ns, span, &task->jitter)) &&
           put_host_times(writer, piece, span, task);
}

/* ---- tasks ----------------------------------------------------------------------------------- */

/* The communicator of a piece on these steps; -1: none. */
static int pipeline_tasks_comm_of(const struct piece *piece, struct pipeline_tasks_span span)
{
    int comm = -1;
    for (size_t i = span.first; piece->comm && i < span.first + span.count; i++)
        comm = piece->comm[i] >= 0 ? piece->comm[i] : comm;
    return comm;
}

static struct work pipeline_tasks_work_of(const struct piece *piece,
                                          struct pipeline_tasks_span span)
{
    struct work work = {.comm = pipeline_tasks_comm_of(piece, span), .peer = -1, .root = -1};
    if (piece->kind != PIECE_WORK)
        work.kind = WORK_HOST;
    if (work.comm >= 0) {
        work.kind = WORK_COLLECTIVE;
        work.collective = piece->collective;
    }
    return work;
}

static bool pipeline_tasks_add_task(struct pipeline_form_writer *writer, size_t at)
{
    struct pipeline *pipeline = &writer->plan->pipeline;
    const struct piece *piece = &writer->pieces->items[at];
    struct task task = {.name = pipeline_tasks_task_name(writer, at),
                        .stage = writer->stage[piece->section]};
    struct arena *arena = &writer->plan->arena;
    const int stream = piece->kind == PIECE_WORK ? piece->stream : writer->busiest;
    char text[STREAM_TEXT];
    const char *name = piece->kind == PIECE_WAIT
                           ? WAIT_STREAM
                           : job_stream_name(&writer->turns->rank.streams[stream], text);
    task.stream = names_intern(&writer->plan->streams, arena, name);
    task.group = names_intern(&writer->plan->groups, &writer->plan->arena, PLAN_IMPLICIT_GROUP);
    task.work = pipeline_tasks_work_of(piece, pipeline_tasks_steps_of(writer, 0));
    if (piece->kind == PIECE_WAIT)
        task.host_sync = HOST_SYNC_STREAM;
    if (piece->sync_after)
        task.sync_after = HOST_SYNC_STREAM;
    if (!task.name || task.stream < 0 || task.group < 0 ||
        !pipeline_tasks_put_times(writer, piece, all_steps(writer), &task))
        return false;
    pipeline->tasks[pipeline->task_count++] = task;
    return true;
}

static bool pipeline_tasks_add_tasks(struct pipeline_form_writer *writer)
{
    struct pipeline *pipeline = &writer->plan->pipeline;
    const size_t count = writer->pieces->count;
    pipeline->tasks = ARENA_ARRAY(&writer->plan->arena, count, struct task);
    pipeline->order.tasks.items = ARENA_ARRAY(&writer->plan->arena, count, int);
    if (!pipeline->tasks || !pipeline->order.tasks.items)
        return false;
    pipeline->order.kind = ORDER_EXPLICIT;
    pipeline->order_given = true;
    pipeline->order.tasks.count = count;
    for (size_t i = 0; i < count; i++) {
        pipeline->order.tasks.items[i] = (int)i;
        if (!pipeline_tasks_add_task(writer, i))
            return false;
    }
    return true;
}

/* ---- ranks that differ ----------------------------------------------------------------------- */

/* Times within 1% or a microsecond are the same. */
static bool same_time(int64_t a, int64_t b)
{
    enum { SLIGHT_NS = 1000 };
    const int64_t apart = a > b ? a - b : b - a, more = a > b ? a : b;
    return apart <= SLIGHT_NS || apart <= more / 100;
}

static bool same_times(const struct task *a, const struct task *b)
{
    return same_time(a->time_ns, b->time_ns) && same_time(a->host_time_ns, b->host_time_ns) &&
           same_time(a->host_after_ns, b->host_after_ns);
}

/* A task's times on one rank; where all are those of all ranks, they stay so. */
static bool differ_task(struct pipeline_form_writer *writer, size_t at,
                        struct rank_override *overrides, size_t count)
{
    struct task *task = &writer->plan->pipeline.tasks[at];
    const struct piece *piece = &writer->pieces->items[at];
    bool same = true;
    for (size_t r = 0; r < count; r++) {
        struct task *own = &overrides[r].tasks[at];
        const struct pipeline_tasks_span span = pipeline_tasks_steps_of(writer, (int)r);
        *own = *task;
        own->work = pipeline_tasks_work_of(piece, span);
        if (!pipeline_tasks_put_times(writer, piece, span, own))
            return false;
        same &= same_times(own, task);
    }
    for (size_t r = 0; r < count && same; r++) {
        const struct work work = overrides[r].tasks[at].work;
        overrides[r].tasks[at] = *task;
        overrides[r].tasks[at].work = work;
    }
    if (!same)
        *task = overrides[0].tasks[at];
    return true;
}

/* The first rank's tasks are those of the plan, where ranks differ. */
static bool add_overrides(struct pipeline_form_writer *writer)
{
    struct pipeline *pipeline = &writer->plan->pipeline;
    struct arena *arena = &writer->plan->arena;
    const size_t count = writer->turns->count;
    if (count == 1)
        return true;
    struct rank_override *overrides = ARENA_ARRAY(arena, count, struct rank_override);
    for (size_t r = 0; overrides && r < count; r++) {
        overrides[r].rank = (int)r;
        if (!(overrides[r].tasks = ARENA_ARRAY(arena, pipeline->task_count, struct task)))
            return false;
    }
    for (size_t t = 0; overrides && t < pipeline->task_count; t++)
        if (!differ_task(writer, t, overrides, count))
            return false;
    pipeline->overrides = overrides + 1;
    pipeline->override_count = count - 1;
    return overrides != NULL;
}

/* A collective is one of all ranks that are in it. */
static enum status check_meetings(const struct pipeline_form_writer *writer, struct diag *diag)
{
    const struct pieces *pieces = writer->pieces;
    const struct job_rank *ranks = writer->turns->ranks;
    for (size_t i = 0; i < pieces->count; i++) {
        const struct piece *piece = &pieces->items[i];
        const bool meets = pipeline_tasks_comm_of(piece, all_steps(writer)) >= 0;
        for (size_t r = 0; meets && r < writer->turns->count; r++) {
            if (pipeline_tasks_comm_of(piece, pipeline_tasks_steps_of(writer, (int)r)) >= 0)
                continue;
            const size_t other =
                pipeline_tasks_comm_of(piece, pipeline_tasks_steps_of(writer, 0)) >= 0 ? 0 : 1;
            return diag_error(
                diag, STATUS_INPUT,
                "%s and %s are not alike: %s of one meets other ranks where the other "
                "does something else; --ranks chooses ranks for a pipeline",
                ranks[other == r ? 0 : other].file, ranks[r].file,
                writer->sections->items[piece->section].name);
        }
    }
    return STATUS_OK;
}

enum status pipeline_tasks(struct pipeline_form_writer *writer, struct diag *diag)
{
    const enum status status = check_meetings(writer, diag);
    if (status != STATUS_OK)
        return status;
    return pipeline_tasks_add_tasks(writer) && add_overrides(writer) ? STATUS_OK
                                                                     : diag_no_memory(diag);
}
