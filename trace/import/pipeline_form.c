/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_form.c - see pipeline_form.h: the plan around tasks and dependences. */
#include "pipeline_form.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/assert_index.h"
#include "base/sort.h"

#include "pieces_internal.h"
#include "pipeline_internal.h"

/*
 * The pieces of a step as tasks: their names, times and streams, and how ranks differ in them.
 */

#define WAIT_STREAM "wait" /* of tasks that only wait for others */

static int pipeline_section(const struct pipeline_form_writer *writer, const char *name);

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
    ASSERT_INDEX(at, writer->pieces->count);
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
    ASSERT_INDEX(at, writer->pieces->count);
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
    ASSERT_INDEX(at, writer->plan->pipeline.task_count);
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

/* Each is a part of the plan. pipeline_tasks: STATUS_INPUT for ranks that are not alike; the others: false without
   memory. */
static enum status pipeline_tasks(struct pipeline_form_writer *writer, struct diag *diag)
{
    const enum status status = check_meetings(writer, diag);
    if (status != STATUS_OK)
        return status;
    return pipeline_tasks_add_tasks(writer) && add_overrides(writer) ? STATUS_OK
                                                                     : diag_no_memory(diag);
}

/* ---- The stages of tasks, and what they depend on ----------------------------------------------- */

/* The section of this name; -1. */
static int pipeline_section(const struct pipeline_form_writer *writer, const char *name)
{
    for (size_t i = 0; i < writer->sections->count; i++)
        if (strcmp(writer->sections->items[i].name, name) == 0)
            return (int)i;
    return -1;
}

/* ---- stages ---------------------------------------------------------------------------------- */

/* Sections of TorchRec's pipelines and how many batches they are ahead of the forward. */
static const struct known_section {
    const char *name;
    int ahead;
} torchrec_sections[] = {
    {"load_batch", 2},       {"copy_batch_to_gpu", 2},      {"enqueue_batch", 2},
    {"sparse_data_dist", 1}, {"start_sparse_data_dist", 1}, {"wait_sparse_data_dist", 1},
    {"prefetch", 1},         {"start_embedding_lookup", 1},
};

static int ahead_by_name(const char *name)
{
    for (size_t i = 0; i < sizeof torchrec_sections / sizeof *torchrec_sections; i++)
        if (strcmp(name, torchrec_sections[i].name) == 0)
            return torchrec_sections[i].ahead;
    return 0;
}

/* True if it has a forward and sections of TorchRec's pipelines that are ahead of it. */
static bool pipeline_is_torchrec(const struct pipeline_form_writer *writer)
{
    bool ahead = false;
    for (size_t i = 0; i < writer->sections->count; i++)
        ahead |= ahead_by_name(writer->sections->items[i].name) > 0;
    return ahead && pipeline_section(writer, "forward") >= 0;
}

/* The least number that an annotation has, and the most; false: fewer than two have one. */
static bool number_range(const struct sections *sections, int64_t *least, int64_t *most)
{
    int count = 0;
    *least = INT64_MAX;
    *most = 0;
    for (size_t i = 0; i < sections->count; i++) {
        const int64_t number = sections->items[i].number;
        if (number < 0)
            continue;
        *least = number < *least ? number : *least;
        *most = number > *most ? number : *most;
        count++;
    }
    return count > 1 && *most > *least && *most - *least <= 8;
}

/* The number of batches that a section is ahead of the last one. */
static void find_stages(struct pipeline_form_writer *writer)
{
    const struct sections *sections = writer->sections;
    int64_t least, most;
    const bool numbered = number_range(sections, &least, &most);
    const bool torchrec = pipeline_section(writer, "forward") >= 0;
    int deepest = 0;
    for (size_t i = 0; i < sections->count; i++) {
        const struct section *section = &sections->items[i];
        int ahead = torchrec && !numbered ? ahead_by_name(section->name) : 0;
        if (numbered && section->number >= 0)
            ahead = (int)(section->number - least);
        writer->stage[i] = ahead;
        deepest = ahead > deepest ? ahead : deepest;
    }
    for (size_t i = 0; i < sections->count; i++)
        writer->stage[i] = deepest - writer->stage[i];
}

/* In iterations; negative where the stages contradict it. */
static int iteration_distance(const struct pipeline_form_writer *writer,
                              const struct piece_dep *dep)
{
    const struct piece *items = writer->pieces->items;
    return dep->distance + writer->stage[items[dep->on].section] -
           writer->stage[items[dep->task].section];
}

/* Stages that the trace contradicts are none; what is inferred is dropped where the stages contradict it. */
static void drop_contradicted_stages(struct pipeline_form_writer *writer)
{
    bool contradicted = false;
    for (size_t i = 0; i < writer->pieces->dep_count; i++)
        contradicted |= writer->pieces->deps[i].told &&
                        iteration_distance(writer, &writer->pieces->deps[i]) < 0;
    for (size_t i = 0; contradicted && i < writer->sections->count; i++)
        writer->stage[i] = 0;
}

static bool pipeline_stages(struct pipeline_form_writer *writer, struct arena *arena)
{
    struct pipeline *pipeline = &writer->plan->pipeline;
    bool told;
    if (!pipeline_access_stages(writer, arena, &told))
        return false;
    if (!told)
        find_stages(writer);
    drop_contradicted_stages(writer);
    for (size_t i = 0; i < writer->sections->count; i++)
        pipeline->depth =
            writer->stage[i] >= pipeline->depth ? writer->stage[i] + 1 : pipeline->depth;
    return true;
}

/* ---- dependences ----------------------------------------------------------------------------- */

/* Those within an iteration come first. */
bool pipeline_add_dep(struct pipeline_form_writer *writer, int task, int on, int distance)
{
    struct pipeline *pipeline = &writer->plan->pipeline;
    for (size_t i = 0; i < pipeline->dep_count; i++) {
        const struct dep *dep = &pipeline->deps[i];
        if (dep->task == task && dep->on == on && dep->distance == distance)
            return true;
    }
    if (!ARENA_GROW(&writer->plan->arena, pipeline->deps, pipeline->dep_count, writer->dep_cap))
        return false;
    struct dep *at = &pipeline->deps[distance == 0 ? pipeline->intra_count++ : pipeline->dep_count];
    pipeline->deps[pipeline->dep_count++] = *at;
    *at = (struct dep){task, on, distance, {0}};
    return true;
}

/* Once each; a negative distance is none. */
static bool pipeline_deps_add_dep(struct pipeline_form_writer *writer, int task, int on,
                                  int distance)
{
    struct pipeline *pipeline = &writer->plan->pipeline;
    for (size_t i = 0; i < pipeline->dep_count; i++)
        if (pipeline->deps[i].task == task && pipeline->deps[i].on == on)
            return true;
    return distance < 0 || distance > PLAN_MAX_DISTANCE ||
           pipeline_add_dep(writer, task, on, distance);
}

static int stage_of(const struct pipeline_form_writer *writer, size_t at)
{
    ASSERT_INDEX(at, writer->pieces->count);
    return writer->stage[writer->pieces->items[at].section];
}

/* True if `task` always began after `on` of the step before had ended. */
static bool pipeline_deps_follows(const struct pipeline_form_writer *writer, size_t task, size_t on)
{
    const struct section_step *steps = writer->sections->steps;
    ASSERT_INDEX(on, writer->pieces->count);
    ASSERT_INDEX(task, writer->pieces->count);
    const struct piece *a = &writer->pieces->items[task], *b = &writer->pieces->items[on];
    for (size_t s = 1; s < writer->sections->step_count; s++)
        if (steps[s].place == steps[s - 1].place + 1 && a->start_ns[s] > 0 &&
            b->end_ns[s - 1] > a->start_ns[s])
            return false;
    return true;
}

/* True if it is the last work of its stream and stage. */
static bool ends_stage(const struct pipeline_form_writer *writer, size_t at)
{
    const struct pieces *pieces = writer->pieces;
    ASSERT_INDEX(at, pieces->count);
    if (pieces->items[at].kind != PIECE_WORK)
        return false;
    for (size_t i = at + 1; i < pieces->count; i++)
        if (pieces->items[i].stream == pieces->items[at].stream &&
            stage_of(writer, i) == stage_of(writer, at))
            return false;
    return true;
}

/* The first work of a batch in a stage begins after the last ones of the stage before: what they copied and sent is
   there. Where an execution trace tells what they copied this is not supposed. */
static bool add_stage_deps(struct pipeline_form_writer *writer)
{
    const struct pieces *pieces = writer->pieces;
    for (size_t r = 0; r < writer->job->rank_count; r++)
        if (writer->job->ranks[r].execution)
            return true;
    for (int stage = 1; stage < writer->plan->pipeline.depth; stage++) {
        size_t first = 0;
        while (first < pieces->count &&
               (pieces->items[first].kind != PIECE_WORK || stage_of(writer, first) != stage))
            first++;
        for (size_t i = 0; first < pieces->count && i < pieces->count; i++)
            if (stage_of(writer, i) == stage - 1 && ends_stage(writer, i) &&
                pipeline_deps_follows(writer, first, i) &&
                !pipeline_deps_add_dep(writer, (int)first, (int)i, 0))
                return false;
    }
    return true;
}

/* Those that the trace shows. */
static bool add_shown(struct pipeline_form_writer *writer, bool intra)
{
    for (size_t i = 0; i < writer->pieces->dep_count; i++) {
        const struct piece_dep *dep = &writer->pieces->deps[i];
        const int distance = iteration_distance(writer, dep);
        if ((distance == 0) == intra &&
            !pipeline_deps_add_dep(writer, dep->task, dep->on, distance))
            return false;
    }
    return true;
}

/* The piece behind this one on its stream, maybe of the next step (`*distance` 1); -1: none but itself. */
static int pipeline_deps_next_on_stream(const struct pipeline_form_writer *writer, int at,
                                        int *distance)
{
    const struct pieces *pieces = writer->pieces;
    const int count = (int)pieces->count;
    for (int k = 1; k < count; k++) {
        const int next = (at + k) % count;
        *distance = at + k >= count;
        if (pieces->items[next].kind == PIECE_WORK &&
            pieces->items[next].stream == pieces->items[at].stream)
            return next;
    }
    return -1;
}

/* Keeps the order of a stream or thread that waited, also when a task gets another stream or thread. */
static bool add_orders(struct pipeline_form_writer *writer, bool intra)
{
    const struct pieces *pieces = writer->pieces;
    for (int i = 0; i < (int)pieces->count; i++) {
        const struct piece *piece = &pieces->items[i];
        struct piece_dep dep = {.on = i};
        dep.task =
            piece->kind == PIECE_WORK ? pipeline_deps_next_on_stream(writer, i, &dep.distance) : -1;
        const int along = dep.task >= 0 ? iteration_distance(writer, &dep) : -1;
        if (dep.task >= 0 && (along == 0) == intra &&
            !pipeline_deps_add_dep(writer, dep.task, i, along))
            return false;
        const bool waited = piece->sync_after || piece->kind == PIECE_WAIT;
        dep = (struct piece_dep){.task = i + 1, .on = i};
        if (!waited || i + 1 == (int)pieces->count)
            continue;
        const int behind = iteration_distance(writer, &dep);
        if ((behind == 0) == intra && !pipeline_deps_add_dep(writer, dep.task, i, behind))
            return false;
    }
    return true;
}

static bool pipeline_deps(struct pipeline_form_writer *writer)
{
    return add_shown(writer, true) && add_stage_deps(writer) && add_orders(writer, true) &&
           add_shown(writer, false) && add_orders(writer, false);
}

/*
 * What the sections of TorchRec's pipelines read and write, so that races have something to be about.
 *
 * A buffer is in the plan where dependences and streams order all that use it as a serial run does. A job that came to its
 * end has computed what it should, so where its trace shows no order the evidence is missing, and the plan says
 * so (`unrecorded`).
 */

/* The work of a section: the first reads; the last of all, or of the first one's stream, writes. */
enum used { FIRST, LAST, LAST_OF_STREAM };

/* In the order of an iteration, buffer by buffer. */
static const struct section_use {
    const char *buffer;
    enum buffer_scope scope;
    const char *section;
    enum used used;
} section_uses[] = {
    {"batch", SCOPE_ITERATION, "load_batch", LAST},
    {"batch", SCOPE_ITERATION, "copy_batch_to_gpu", LAST},
    {"batch", SCOPE_ITERATION, "enqueue_batch", LAST},
    {"batch", SCOPE_ITERATION, "sparse_data_dist", FIRST},
    {"batch", SCOPE_ITERATION, "start_sparse_data_dist", FIRST},
    {"batch", SCOPE_ITERATION, "forward", FIRST},
    {"lengths", SCOPE_ITERATION, "sparse_data_dist", LAST_OF_STREAM},
    {"lengths", SCOPE_ITERATION, "start_sparse_data_dist", LAST_OF_STREAM},
    {"lengths", SCOPE_ITERATION, "wait_sparse_data_dist", FIRST},
    {"features", SCOPE_ITERATION, "sparse_data_dist", LAST},
    {"features", SCOPE_ITERATION, "wait_sparse_data_dist", LAST},
    {"features", SCOPE_ITERATION, "prefetch", FIRST},
    {"features", SCOPE_ITERATION, "start_embedding_lookup", FIRST},
    {"features", SCOPE_ITERATION, "forward", FIRST},
    {"embeddings", SCOPE_ITERATION, "start_embedding_lookup", LAST},
    {"embeddings", SCOPE_ITERATION, "forward", FIRST},
    {"activations", SCOPE_ITERATION, "forward", LAST_OF_STREAM},
    {"activations", SCOPE_ITERATION, "backward", FIRST},
    {"gradients", SCOPE_SHARED, "zero_grad", LAST},
    {"gradients", SCOPE_SHARED, "backward", LAST},
    {"gradients", SCOPE_SHARED, "optimizer", FIRST},
    {"weights", SCOPE_SHARED, "forward", FIRST},
    {"weights", SCOPE_SHARED, "backward", FIRST},
    {"weights", SCOPE_SHARED, "optimizer", LAST},
    {"tables", SCOPE_SHARED, "prefetch", FIRST},
    {"tables", SCOPE_SHARED, "start_embedding_lookup", FIRST},
    {"tables", SCOPE_SHARED, "forward", FIRST},
    {"tables", SCOPE_SHARED, "backward", LAST_OF_STREAM},
};

enum { USE_COUNT = sizeof section_uses / sizeof *section_uses };

/* ---- what comes before what ------------------------------------------------------------------ */

static bool pipeline_buffers_is_work(const struct pipeline_form_writer *writer, int task)
{
    ASSERT_INDEX(task, writer->pieces->count);
    return writer->pieces->items[task].kind == PIECE_WORK;
}

/* True if the push of `a` is before that of `b`. A work of an iteration is pushed in a period, at the place of its
   task. */
static bool is_pushed_before(const struct orders *orders, int a, int b)
{
    const struct task *tasks = orders->writer->plan->pipeline.tasks;
    const int a_task = a % orders->tasks, b_task = b % orders->tasks;
    const int a_period = a / orders->tasks + tasks[a_task].stage;
    const int b_period = b / orders->tasks + tasks[b_task].stage;
    return a_period != b_period ? a_period < b_period : a_task < b_task;
}

static int pipeline_buffers_next_on_stream(const struct orders *orders, int node)
{
    const struct pipeline_form_writer *writer = orders->writer;
    const struct task *tasks = writer->plan->pipeline.tasks;
    const int stream = tasks[node % orders->tasks].stream;
    int best = -1;
    for (int other = 0;
         pipeline_buffers_is_work(writer, node % orders->tasks) && other < 2 * orders->tasks;
         other++)
        if (pipeline_buffers_is_work(writer, other % orders->tasks) &&
            tasks[other % orders->tasks].stream == stream &&
            is_pushed_before(orders, node, other) &&
            (best < 0 || is_pushed_before(orders, other, best)))
            best = other;
    return best;
}

bool orders_add(struct orders *orders, struct arena *arena, const struct dep *dep)
{
    if (!ARENA_GROW(arena, orders->deps, orders->dep_count, orders->dep_cap))
        return false;
    orders->deps[orders->dep_count] =
        (struct order_dep){dep->task, dep->distance, orders->first_dep[dep->on]};
    orders->first_dep[dep->on] = (int)orders->dep_count++;
    return true;
}

static bool pipeline_buffers_prepare(struct orders *orders, struct arena *arena)
{
    const struct pipeline *pipeline = &orders->writer->plan->pipeline;
    const size_t nodes = 2 * (size_t)orders->tasks;
    orders->next = ARENA_ARRAY(arena, nodes + 1, int);
    orders->reached = ARENA_ARRAY(arena, nodes + 1, bool);
    orders->open = ARENA_ARRAY(arena, nodes + 1, int);
    orders->first_dep = pieces_filled(arena, (size_t)orders->tasks, -1);
    if (!orders->next || !orders->reached || !orders->open || !orders->first_dep)
        return false;
    for (size_t i = 0; i < pipeline->dep_count; i++)
        if (!orders_add(orders, arena, &pipeline->deps[i]))
            return false;
    for (int node = 0; node < (int)nodes; node++)
        orders->next[node] = pipeline_buffers_next_on_stream(orders, node);
    return true;
}

static void pipeline_buffers_reach(struct orders *orders, int node, size_t *open)
{
    if (node < 0 || orders->reached[node])
        return;
    orders->reached[node] = true;
    orders->open[(*open)++] = node;
}

bool orders_come_after(struct orders *orders, int to, int from)
{
    const bool within = to < orders->tasks;
    size_t open = 0;
    memset(orders->reached, 0, 2 * (size_t)orders->tasks * sizeof *orders->reached);
    pipeline_buffers_reach(orders, from, &open);
    while (open > 0 && !orders->reached[to]) {
        const int node = orders->open[--open];
        const int task = node % orders->tasks, iteration = node / orders->tasks;
        if (!within)
            pipeline_buffers_reach(orders, orders->next[node], &open);
        for (int i = orders->first_dep[task]; i >= 0; i = orders->deps[i].next) {
            const int at = iteration + orders->deps[i].distance;
            if (at < 2 - within)
                pipeline_buffers_reach(orders, at * orders->tasks + orders->deps[i].task, &open);
        }
    }
    return orders->reached[to];
}

/* ---- buffers --------------------------------------------------------------------------------- */

/* -1: the section has no work. */
static int pipeline_buffers_work_of(const struct pipeline_form_writer *writer, int section,
                                    enum used used)
{
    const struct piece *items = writer->pieces->items;
    int found = -1;
    for (int i = 0; i < (int)writer->pieces->count; i++) {
        const bool better = found < 0 || used == LAST ||
                            (used == LAST_OF_STREAM && items[i].stream == items[found].stream);
        if (items[i].section == section && pipeline_buffers_is_work(writer, i) && better)
            found = i;
    }
    return found;
}

/* The exchange's buffer is written when the section that waits for it has ended, if there is one with work. */
static bool is_left_to_wait(const struct pipeline_form_writer *writer,
                            const struct section_use *row)
{
    const int wait = pipeline_section(writer, "wait_sparse_data_dist");
    return strcmp(row->buffer, "features") == 0 && strcmp(row->section, "sparse_data_dist") == 0 &&
           wait >= 0 && pipeline_buffers_work_of(writer, wait, FIRST) >= 0;
}

/* The tasks that use the buffer of section_uses[first], in their order; returns the row behind those of it. */
static size_t pipeline_buffers_list_uses(const struct pipeline_form_writer *writer, size_t first,
                                         struct buffer_use *uses, size_t *count)
{
    size_t row = first;
    *count = 0;
    for (; row < USE_COUNT && strcmp(section_uses[row].buffer, section_uses[first].buffer) == 0;
         row++) {
        const int section = pipeline_section(writer, section_uses[row].section);
        const int task =
            section < 0 ? -1 : pipeline_buffers_work_of(writer, section, section_uses[row].used);
        const bool writes = section_uses[row].used != FIRST;
        if (task >= 0 && !is_left_to_wait(writer, &section_uses[row]))
            uses[(*count)++] = (struct buffer_use){task, !writes, writes};
    }
    return row;
}

/* Two uses that the plan does not order; false: it orders all. */
static bool find_unordered(struct orders *orders, const struct buffer_use *uses, size_t count,
                           bool shared, int *a, int *b)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++) {
            *a = uses[i].task;
            *b = uses[k].task;
            if ((!uses[i].writes && !uses[k].writes) || *a == *b)
                continue;
            if ((i < k && !orders_come_after(orders, *b, *a)) ||
                (shared && !orders_come_after(orders, orders->tasks + *b, *a)))
                return true;
        }
    return false;
}

static bool note_unordered(struct plan *plan, const char *buffer, int a, int b)
{
    const struct task *tasks = plan->pipeline.tasks;
    return plan_add_unrecorded(
        plan, arena_printf(&plan->arena, "buffer %s", buffer),
        arena_printf(&plan->arena, "no order of %s and %s is shown", tasks[a].name, tasks[b].name));
}

bool pipeline_add_buffer(struct plan *plan, const struct buffer *buffer,
                         const struct buffer_use *uses, size_t count)
{
    const int index = (int)plan->buffer_count;
    plan->buffers[plan->buffer_count++] = *buffer;
    for (size_t i = 0; i < count; i++) {
        struct task *task = &plan->pipeline.tasks[uses[i].task];
        if ((uses[i].writes && !job_list_index(&plan->arena, &task->writes, index)) ||
            (uses[i].reads && !job_list_index(&plan->arena, &task->reads, index)))
            return false;
    }
    return true;
}

/* The buffer of section_uses[first], if several tasks use it and it is written, an iteration's own one first. */
static bool pipeline_buffers_take_buffer(struct orders *orders, size_t first, size_t *row)
{
    struct plan *plan = orders->writer->plan;
    const bool shared = section_uses[first].scope == SCOPE_SHARED;
    struct buffer_use uses[USE_COUNT];
    size_t count;
    bool written = false;
    int a, b;
    *row = pipeline_buffers_list_uses(orders->writer, first, uses, &count);
    for (size_t i = 0; i < count; i++)
        written |= uses[i].writes && (shared || i == 0);
    if (count < 2 || !written)
        return true;
    if (find_unordered(orders, uses, count, shared, &a, &b))
        return note_unordered(plan, section_uses[first].buffer, a, b);
    const struct buffer buffer = {
        .name = section_uses[first].buffer, .scope = section_uses[first].scope, .declared = true};
    return pipeline_add_buffer(plan, &buffer, uses, count);
}

/* Behind the dependences; `arena` is for its own use. */
static bool pipeline_buffers(struct pipeline_form_writer *writer, struct arena *arena)
{
    struct plan *plan = writer->plan;
    struct orders orders = {.writer = writer, .tasks = (int)plan->pipeline.task_count};
    bool told;
    if (!pipeline_buffers_prepare(&orders, arena) ||
        !pipeline_accesses(writer, &orders, arena, &told))
        return false;
    if (!told && !pipeline_is_torchrec(writer))
        return true;
    if (!told)
        plan->buffers = ARENA_ARRAY(&plan->arena, USE_COUNT, struct buffer);
    if (!plan->buffers)
        return false;
    for (size_t row = told ? USE_COUNT : 0; row < USE_COUNT;)
        if (!pipeline_buffers_take_buffer(&orders, row, &row))
            return false;
    /* All ranks use the same ones. */
    for (size_t i = 0; i < plan->pipeline.override_count; i++)
        for (size_t t = 0; t < plan->pipeline.task_count; t++) {
            plan->pipeline.overrides[i].tasks[t].reads = plan->pipeline.tasks[t].reads;
            plan->pipeline.overrides[i].tasks[t].writes = plan->pipeline.tasks[t].writes;
        }
    return true;
}

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
