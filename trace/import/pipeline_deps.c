/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_deps.c - the stages of tasks, and what they depend on. */
#include <string.h>

#include "pipeline_internal.h"

#include "base/array.h"

int pipeline_section(const struct pipeline_form_writer *writer, const char *name)
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

bool pipeline_is_torchrec(const struct pipeline_form_writer *writer)
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

bool pipeline_stages(struct pipeline_form_writer *writer, struct arena *arena)
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
    return writer->stage[writer->pieces->items[at].section];
}

/* True if `task` always began after `on` of the step before had ended. */
static bool pipeline_deps_follows(const struct pipeline_form_writer *writer, size_t task, size_t on)
{
    const struct section_step *steps = writer->sections->steps;
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

bool pipeline_deps(struct pipeline_form_writer *writer)
{
    return add_shown(writer, true) && add_stage_deps(writer) && add_orders(writer, true) &&
           add_shown(writer, false) && add_orders(writer, false);
}
