/* pipeline_form.c - see pipeline_form.h: names, stages, times and dependences of the tasks. */
#include "pipeline_form.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pieces.h"

#define WAIT_STREAM "wait" /* of tasks that only wait for others */

struct writer {
    const struct job *job;
    const struct job_rank *rank;
    const struct sections *sections;
    const struct pieces *pieces;
    struct plan *plan;
    size_t dep_cap;
    int busiest; /* rank->streams: CPU work is beside this one */
    int *stage;  /* per section */
};

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
static size_t head_of(const struct writer *writer, int section)
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

static int find_section(const struct writer *writer, const char *name)
{
    for (size_t i = 0; i < writer->sections->count; i++)
        if (strcmp(writer->sections->items[i].name, name) == 0)
            return (int)i;
    return -1;
}

static const char *task_name(const struct writer *writer, size_t at)
{
    const struct piece *piece = &writer->pieces->items[at];
    const char *section = writer->sections->items[piece->section].name;
    const char *word = piece_word(piece);
    struct arena *arena = &writer->plan->arena;
    if (at == head_of(writer, piece->section))
        return arena_strdup(arena, section);
    const char *base = word ? arena_printf(arena, "%s.%s", section, word) : section;
    const char *name = base;
    for (int number = 2;
         name && (find_section(writer, name) >= 0 || plan_find_task(writer->plan, name) >= 0);
         number++)
        name = arena_printf(arena, "%s.%d", base, number);
    return name;
}

/* ---- times ----------------------------------------------------------------------------------- */

static int compare_times(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
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
    qsort(sorted, count, sizeof *sorted, compare_times);
    for (size_t i = 0; i < kept; i++)
        factors[i] =
            round((double)sorted[(2 * i + 1) * count / (2 * kept)] / (double)mean * 1e3) / 1e3;
    *out = (struct dist){.kind = DIST_EMPIRICAL, .factors = factors, .factor_count = kept};
    return true;
}

static int64_t mean(const struct writer *writer, const int64_t *values)
{
    const size_t count = writer->sections->step_count;
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (int64_t)count;
}

/* The distribution of times that differ by more than 1%. */
static bool put_jitter(struct writer *writer, const int64_t *values, struct dist *out)
{
    const size_t count = writer->sections->step_count;
    int64_t least = INT64_MAX, most = 0;
    for (size_t i = 0; i < count; i++) {
        least = values[i] < least ? values[i] : least;
        most = values[i] > most ? values[i] : most;
    }
    const int64_t middle = mean(writer, values);
    return middle == 0 || most - least <= middle / 100 ||
           put_factors(&writer->plan->arena, values, count, middle, out);
}

/* Both CPU parts have one draw. */
static bool put_host_times(struct writer *writer, const struct piece *piece, struct task *task)
{
    const size_t count = writer->sections->step_count;
    int64_t *sums = ARENA_ARRAY(&writer->plan->arena, count, int64_t);
    if (!sums)
        return false;
    for (size_t i = 0; i < count; i++)
        sums[i] = piece->host_ns[i] + piece->after_ns[i];
    task->host_time_ns = mean(writer, piece->host_ns);
    task->host_after_ns = mean(writer, piece->after_ns);
    return put_jitter(writer, sums, &task->host_jitter);
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static int busiest_stream(const struct job_rank *rank, const struct evidence *evidence)
{
    int best = 0;
    for (int s = 1; s < (int)rank->stream_count; s++)
        if (evidence->streams[s].busy_ns > evidence->streams[best].busy_ns)
            best = s;
    return best;
}

static int plan_stream(struct writer *writer, const struct piece *piece)
{
    struct arena *arena = &writer->plan->arena;
    const int stream = piece->kind == PIECE_WORK ? piece->stream : writer->busiest;
    const char *name = WAIT_STREAM;
    if (piece->kind != PIECE_WAIT)
        name = arena_printf(arena, "s%lld", (long long)writer->rank->streams[stream].number);
    return name ? names_intern(&writer->plan->streams, arena, name) : -1;
}

static bool add_task(struct writer *writer, size_t at)
{
    struct pipeline *pipeline = &writer->plan->pipeline;
    const struct piece *piece = &writer->pieces->items[at];
    struct task task = {.name = task_name(writer, at), .stage = writer->stage[piece->section]};
    task.stream = plan_stream(writer, piece);
    task.group = names_intern(&writer->plan->groups, &writer->plan->arena, PLAN_IMPLICIT_GROUP);
    task.work = (struct work){.comm = -1, .peer = -1, .root = -1};
    if (piece->kind != PIECE_WORK)
        task.work.kind = WORK_HOST;
    if (piece->kind == PIECE_WAIT)
        task.host_sync = HOST_SYNC_STREAM;
    if (piece->sync_after)
        task.sync_after = HOST_SYNC_STREAM;
    task.time_ns = mean(writer, piece->time_ns);
    if (!task.name || task.stream < 0 || task.group < 0 ||
        !put_jitter(writer, piece->time_ns, &task.jitter) || !put_host_times(writer, piece, &task))
        return false;
    pipeline->tasks[pipeline->task_count++] = task;
    return true;
}

static bool add_tasks(struct writer *writer)
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
        if (!add_task(writer, i))
            return false;
    }
    return true;
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

/* How many batches a section is ahead of the last one. */
static void find_stages(struct writer *writer)
{
    const struct sections *sections = writer->sections;
    int64_t least, most;
    const bool numbered = number_range(sections, &least, &most);
    const bool torchrec = find_section(writer, "forward") >= 0;
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
static int iteration_distance(const struct writer *writer, const struct piece_dep *dep)
{
    const struct piece *items = writer->pieces->items;
    return dep->distance + writer->stage[items[dep->on].section] -
           writer->stage[items[dep->task].section];
}

/* Stages that the trace contradicts are none; what is inferred is dropped where the stages contradict it. */
static void drop_contradicted_stages(struct writer *writer)
{
    bool contradicted = false;
    for (size_t i = 0; i < writer->pieces->dep_count; i++)
        contradicted |= writer->pieces->deps[i].told &&
                        iteration_distance(writer, &writer->pieces->deps[i]) < 0;
    for (size_t i = 0; contradicted && i < writer->sections->count; i++)
        writer->stage[i] = 0;
}

/* ---- dependences ----------------------------------------------------------------------------- */

/* Once each; a negative distance is none. */
static bool add_dep(struct writer *writer, int task, int on, int distance)
{
    struct pipeline *pipeline = &writer->plan->pipeline;
    for (size_t i = 0; i < pipeline->dep_count; i++)
        if (pipeline->deps[i].task == task && pipeline->deps[i].on == on)
            return true;
    if (distance < 0 || distance > PLAN_MAX_DISTANCE)
        return true;
    if (!arena_grow(&writer->plan->arena, (void **)&pipeline->deps, pipeline->dep_count,
                    &writer->dep_cap, sizeof *pipeline->deps))
        return false;
    pipeline->deps[pipeline->dep_count++] = (struct dep){task, on, distance, {0}};
    pipeline->intra_count += distance == 0;
    return true;
}

static int stage_of(const struct writer *writer, size_t at)
{
    return writer->stage[writer->pieces->items[at].section];
}

/* Did `task` always begin after `on` of the step before had ended? */
static bool follows(const struct writer *writer, size_t task, size_t on)
{
    const struct section_step *steps = writer->sections->steps;
    const struct piece *a = &writer->pieces->items[task], *b = &writer->pieces->items[on];
    for (size_t s = 1; s < writer->sections->step_count; s++)
        if (steps[s].place == steps[s - 1].place + 1 && a->start_ns[s] > 0 &&
            b->end_ns[s - 1] > a->start_ns[s])
            return false;
    return true;
}

/* Is it the last work of its stream and stage? */
static bool ends_stage(const struct writer *writer, size_t at)
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

/* The first work of a batch in a stage begins after the last ones of the stage before: what they copied and sent is there. */
static bool add_stage_deps(struct writer *writer)
{
    const struct pieces *pieces = writer->pieces;
    for (int stage = 1; stage < writer->plan->pipeline.depth; stage++) {
        size_t first = 0;
        while (first < pieces->count &&
               (pieces->items[first].kind != PIECE_WORK || stage_of(writer, first) != stage))
            first++;
        for (size_t i = 0; first < pieces->count && i < pieces->count; i++)
            if (stage_of(writer, i) == stage - 1 && ends_stage(writer, i) &&
                follows(writer, first, i) && !add_dep(writer, (int)first, (int)i, 0))
                return false;
    }
    return true;
}

/* Those that the trace shows. */
static bool add_shown(struct writer *writer, bool intra)
{
    for (size_t i = 0; i < writer->pieces->dep_count; i++) {
        const struct piece_dep *dep = &writer->pieces->deps[i];
        const int distance = iteration_distance(writer, dep);
        if ((distance == 0) == intra && !add_dep(writer, dep->task, dep->on, distance))
            return false;
    }
    return true;
}

/* The piece behind this one on its stream, maybe of the next step (`*distance` 1); -1: none but itself. */
static int next_on_stream(const struct writer *writer, int at, int *distance)
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
static bool add_orders(struct writer *writer, bool intra)
{
    const struct pieces *pieces = writer->pieces;
    for (int i = 0; i < (int)pieces->count; i++) {
        const struct piece *piece = &pieces->items[i];
        struct piece_dep dep = {.on = i};
        dep.task = piece->kind == PIECE_WORK ? next_on_stream(writer, i, &dep.distance) : -1;
        const int along = dep.task >= 0 ? iteration_distance(writer, &dep) : -1;
        if (dep.task >= 0 && (along == 0) == intra && !add_dep(writer, dep.task, i, along))
            return false;
        const bool waited = piece->sync_after || piece->kind == PIECE_WAIT;
        dep = (struct piece_dep){.task = i + 1, .on = i};
        if (!waited || i + 1 == (int)pieces->count)
            continue;
        const int behind = iteration_distance(writer, &dep);
        if ((behind == 0) == intra && !add_dep(writer, dep.task, i, behind))
            return false;
    }
    return true;
}

/* Those within an iteration come first. */
static bool add_deps(struct writer *writer)
{
    return add_shown(writer, true) && add_stage_deps(writer) && add_orders(writer, true) &&
           add_shown(writer, false) && add_orders(writer, false);
}

/* ---- the plan -------------------------------------------------------------------------------- */

static const char *about(const struct sections *sections, struct arena *arena)
{
    const char *kept =
        arena_printf(arena, "%zu annotations cover %.1f%% of a step of %.3f ms (mean of %zu)",
                     sections->annotation_count, sections->annotated / 1e4,
                     (double)sections->period_ns / 1e6, sections->step_count);
    if (!kept || sections->left_out == 0)
        return kept;
    return arena_printf(arena, "%s; %zu step%s with other annotations than most %s left out", kept,
                        sections->left_out, sections->left_out == 1 ? "" : "s",
                        sections->left_out == 1 ? "is" : "are");
}

static bool write_plan(struct writer *writer, const struct evidence *evidence,
                       const struct pipeline_form_options *options)
{
    struct plan *plan = writer->plan;
    struct pipeline *pipeline = &plan->pipeline;
    plan->form = FORM_PIPELINE;
    plan->ranks = 1;
    plan->on_failure = ON_FAILURE_ABORT;
    plan->name = arena_strdup(&plan->arena, options->name);
    plan->about = about(writer->sections, &plan->arena);
    plan->unexplained.millionths = options->opaque ? 0 : ledger_unexplained(&evidence->total);
    plan->unexplained.given = plan->unexplained.millionths > 0;
    pipeline->driver = PLAN_DRIVER_CLOCK;
    pipeline->driver_given = true;
    writer->stage = ARENA_ARRAY(&plan->arena, writer->sections->count, int);
    if (!plan->name || !plan->about || !writer->stage)
        return false;
    writer->busiest = busiest_stream(writer->rank, evidence);
    find_stages(writer);
    drop_contradicted_stages(writer);
    for (size_t i = 0; i < writer->sections->count; i++)
        pipeline->depth =
            writer->stage[i] >= pipeline->depth ? writer->stage[i] + 1 : pipeline->depth;
    return add_tasks(writer) && add_deps(writer);
}

static enum status find_and_write(struct writer *writer, const struct evidence *evidence,
                                  const struct pipeline_form_options *options, struct arena *arena,
                                  struct diag *diag)
{
    struct sections sections;
    struct pieces pieces;
    enum status status = sections_find(writer->job, writer->rank, arena, &sections, diag);
    if (status != STATUS_OK)
        return status;
    if (!pieces_find(writer->rank, evidence, &sections, options->detail, options->opaque, arena,
                     &pieces))
        return diag_no_memory(diag);
    if (pieces.count > PLAN_MAX_TASKS)
        return diag_error(diag, STATUS_INPUT,
                          "%s: found %zu pieces of a step, expected at most %d: its annotations "
                          "are too many for a pipeline",
                          writer->rank->file, pieces.count, PLAN_MAX_TASKS);
    writer->sections = &sections;
    writer->pieces = &pieces;
    return write_plan(writer, evidence, options) ? STATUS_OK : diag_no_memory(diag);
}

/* Work of the host, with ranks that meet over gloo. */
static enum status check_host(const struct job_rank *rank, struct diag *diag)
{
    if (!rank->is_host)
        return STATUS_OK;
    for (size_t i = 0; i < rank->work_count; i++)
        if (rank->works[i].is_message)
            return diag_error(diag, STATUS_INPUT,
                              "%s: it has messages between ranks, and a pipeline is made of one "
                              "rank: --form=host, with the traces of the others",
                              rank->file);
    diag_note(diag,
              "%s: its layers are CPU time, host_time of a pipeline, and predict --what-if changes "
              "times of a device: --form=host has layers to change",
              rank->file);
    return STATUS_OK;
}

enum status pipeline_form(const struct job *job, const struct evidence *evidence,
                          const struct pipeline_form_options *options, struct plan *out,
                          struct diag *diag)
{
    struct plan plan;
    struct arena arena;
    if (job->rank_count != 1)
        return diag_error(diag, STATUS_INPUT,
                          "%s and %zu more ranks: a pipeline is made of one rank: name one file, "
                          "or one rank with --ranks",
                          job->ranks[0].file, job->rank_count - 1);
    enum status status = check_host(&job->ranks[0], diag);
    if (status != STATUS_OK)
        return status;
    plan_init(&plan);
    arena_init(&arena, 0);
    struct writer writer = {.job = job, .rank = &job->ranks[0], .plan = &plan};
    status = find_and_write(&writer, evidence, options, &arena, diag);
    arena_fini(&arena);
    if (status == STATUS_OK)
        *out = plan;
    else
        plan_fini(&plan);
    return status;
}
