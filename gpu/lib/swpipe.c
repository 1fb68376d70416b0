/* SPDX-License-Identifier: Apache-2.0 */
/*
 * swpipe.c - see swpipe.h: the calls of the public library, in terms of engines (gpu/lib/engine.h).
 *
 *     IDLE --fill--> FILLED --progress: end--> ENDED --fill--> ...
 *       ^              |  `--something failed--> BROKEN
 *       `----drain-----+---------drain-------------'
 */
#include "gpu/exec/graph.h"
#include "group.h"
#include "proof_at_open.h"
#include "swpipe_impl.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/swsim.h"
#include "plan/parse.h"

#define WAIT_TIMEOUT_NS     INT64_C(30000000000)
#define PROGRESS_TIMEOUT_NS INT64_C(60000000000)

/* ---- what went wrong ------------------------------------------------------------------------- */

const char *swpipe_status_name(enum swpipe_status status)
{
    static const char *const names[] = {"ok",    "end",   "failed", "timeout",
                                        "usage", "input", "system"};
    return status >= SWPIPE_OK && status <= SWPIPE_SYSTEM ? names[status] : "unknown";
}

enum swpipe_status status_for_caller(enum status status)
{
    switch (status) {
    case STATUS_OK: return SWPIPE_OK;
    case STATUS_VIOLATED: return SWPIPE_FAILED;
    case STATUS_LIMIT: return SWPIPE_TIMEOUT;
    case STATUS_USAGE: return SWPIPE_USAGE;
    case STATUS_INPUT: return SWPIPE_INPUT;
    case STATUS_SYSTEM: break;
    }
    return SWPIPE_SYSTEM;
}

/* The first error of the call, with its place in the plan if it has one. */
static void describe(struct swpipe *pipe)
{
    diag_first_error(&pipe->diag, pipe->error, sizeof pipe->error);
}

bool pipe_enter(struct swpipe *pipe)
{
    if (!pipe || atomic_exchange(&pipe->entered, true))
        return false;
    device_note_caller(pipe->device, &pipe->caller);
    return true;
}

static void leave(struct swpipe *pipe)
{
    device_restore_caller(pipe->device, &pipe->caller);
    atomic_store(&pipe->entered, false);
}

enum swpipe_status swpipe_finish(struct swpipe *pipe, enum status status)
{
    if (status)
        describe(pipe);
    diag_fini(&pipe->diag);
    diag_init(&pipe->diag);
    leave(pipe);
    return status_for_caller(status);
}

const char *swpipe_error(const struct swpipe *pipe)
{
    return pipe ? pipe->error : "out of memory";
}

/* ---- the device ------------------------------------------------------------------------------ */

/* Work that does not end keeps its memory. */
static void tell_kept(const struct swpipe *pipe, int rank)
{
    const int64_t bytes = device_kept_bytes(pipe->devices[rank]);
    char text[200];
    if (bytes == 0 || !pipe->message)
        return;
    snprintf(text, sizeof text,
             "rank %d: %" PRId64 " bytes stay allocated until the process ends: the GPU has work "
             "that does not end and may use them\n",
             rank, bytes);
    pipe->message(pipe->message_arg, text);
}

static void close_device(struct swpipe *pipe)
{
    own_close_events(pipe);
    for (int i = 0; pipe->shortcuts && i < pipe->ranks * (int)pipe->plan.pipeline.task_count; i++)
        shortcut_forget(&pipe->shortcuts[i], &pipe->tasks[i % (int)pipe->plan.pipeline.task_count]);
    for (int rank = pipe->first_rank; rank < pipe->first_rank + pipe->device_count; rank++) {
        pool_fini(&pipe->pools[rank]);
        tell_kept(pipe, rank);
        device_close(pipe->devices[rank]);
    }
    pipe->device_count = 0;
    if (pipe->world)
        device_world_close(pipe->world);
    pipe->world = NULL;
}

static enum status open_device(struct swpipe *pipe)
{
    const struct device_config config = {
        .kind = pipe->device,
        .ranks = pipe->ranks,
        .first_rank = pipe->first_rank,
        .local_ranks = pipe->local_ranks,
        .rendezvous = pipe->group ? pipe->group->rendezvous : NULL,
        .meet_ns = pipe->group && pipe->group->patience_ns != RENDEZVOUS_FOREVER
                       ? pipe->group->patience_ns
                       : 0,
        .gpu = pipe->gpu,
        .own = own_for_device(&pipe->own),
        .sm_slots = pipe->device == DEVICE_KIND_HOST ? pipe->plan.machine.sm_slots : 0,
        .share_device = pipe->plan.machine.share_device};
    if (pipe->world)
        return STATUS_OK;
    enum status status = device_world_open(&config, &pipe->world, &pipe->diag);
    if (!status && pipe->group)
        group_new_world(pipe->group);
    for (int rank = pipe->first_rank; rank < pipe->first_rank + pipe->local_ranks && !status;
         rank++) {
        status = device_open(pipe->world, rank, &pipe->devices[rank], &pipe->diag);
        if (status)
            break;
        if (!pool_init(&pipe->pools[rank], pipe->devices[rank])) {
            device_close(pipe->devices[rank]);
            status = diag_no_memory(&pipe->diag);
            break;
        }
        pipe->device_count++;
    }
    if (!status)
        status = own_open_events(pipe);
    if (status)
        close_device(pipe);
    return status;
}

/* STATUS_SYSTEM: its trace could not be written. */
static enum status close_engine(struct swpipe *pipe, struct engine *engine)
{
    bool usable = true;
    enum status status = engine->pipe ? engine_close(engine, &usable, &pipe->diag) : STATUS_OK;
    if (!usable)
        close_device(pipe);
    return status;
}

enum status swpipe_close_serial(struct swpipe *pipe)
{
    return close_engine(pipe, &pipe->serial);
}

/* The engine that is wanted, with the other one closed. */
static enum status need_engine(struct swpipe *pipe, bool serial)
{
    struct engine *engine = serial ? &pipe->serial : &pipe->pipelined;
    enum status status = close_engine(pipe, serial ? &pipe->pipelined : &pipe->serial);
    if (!status)
        status = own_check(pipe);
    if (!status)
        status = open_device(pipe);
    if (!status && !engine->pipe) {
        status = engine_open(engine, pipe, serial, &pipe->diag);
        if (status)
            (void)close_engine(pipe, engine); /* nothing of it ran */
    }
    return status;
}

/* ---- open and close -------------------------------------------------------------------------- */

int swpipe_find_task(const struct swpipe *pipe, const char *name)
{
    for (size_t t = 0; t < pipe->plan.pipeline.task_count; t++)
        if (strcmp(pipe->plan.pipeline.tasks[t].name, name) == 0)
            return (int)t;
    return -1;
}

static enum status take_tasks(struct swpipe *pipe, const struct swpipe_config *config)
{
    for (size_t i = 0; i < config->task_count; i++) {
        const struct swpipe_task *task = &config->tasks[i];
        int index = task->name ? swpipe_find_task(pipe, task->name) : -1;
        if (index < 0)
            return diag_error(&pipe->diag, STATUS_INPUT, "%s has no task '%s'", pipe->plan.file,
                              task->name ? task->name : "");
        if (pipe->tasks[index].name)
            return diag_error(&pipe->diag, STATUS_INPUT, "task '%s' is given twice", task->name);
        for (size_t k = 0; k < task->io_count; k++)
            if (!task->io[k].capture || !task->io[k].restore)
                return diag_error(&pipe->diag, STATUS_INPUT,
                                  "the io of task '%s' lacks capture or restore", task->name);
        pipe->tasks[index] = *task;
        pipe->tasks[index].name = pipe->plan.pipeline.tasks[index].name;
    }
    return STATUS_OK;
}

static enum status take_device_only(struct swpipe *pipe, const struct swpipe_config *config)
{
    for (size_t i = 0; i < config->device_only_count; i++) {
        int index = swpipe_find_task(pipe, config->device_only[i]);
        if (index < 0)
            return diag_error(&pipe->diag, STATUS_INPUT, "device_only: %s has no task '%s'",
                              pipe->plan.file, config->device_only[i]);
        if (!pipe->tasks[index].function)
            return diag_error(&pipe->diag, STATUS_INPUT, "device_only: task '%s' has no function",
                              config->device_only[i]);
        pipe->device_only[index] = true;
    }
    return STATUS_OK;
}

/* cudaMemcpyAsync does not return from such a copy before the stream has come to it; where that waits for another rank, the
   other workers must go on. */
static enum status refuse_blocking_copies(struct swpipe *pipe)
{
    const struct pipeline *pipeline = &pipe->plan.pipeline;
    if (!pipe->on_caller || pipe->device != DEVICE_KIND_CUDA || pipe->ranks == 1)
        return STATUS_OK;
    for (size_t t = 0; t < pipeline->task_count; t++)
        for (int rank = 0; rank < pipe->ranks; rank++)
            if (plan_task(&pipe->plan, rank, (int)t)->work.pageable)
                return diag_error(&pipe->diag, STATUS_INPUT,
                                  "%s: the copy %s of pageable memory blocks its thread, and with "
                                  "SWPIPE_CALLER there is one for all: expected pinned memory, or "
                                  "SWPIPE_WORKERS",
                                  pipe->plan.file, pipeline->tasks[t].name);
    return STATUS_OK;
}

/* The io arrays are the caller's only until open returns. */
static enum status copy_io(struct swpipe *pipe)
{
    for (size_t t = 0; t < pipe->plan.pipeline.task_count; t++) {
        struct swpipe_task *task = &pipe->tasks[t];
        if (task->io_count == 0)
            continue;
        struct swpipe_io *io = ARENA_ARRAY(&pipe->plan.arena, task->io_count, struct swpipe_io);
        if (!io)
            return diag_no_memory(&pipe->diag);
        memcpy(io, task->io, task->io_count * sizeof *io);
        task->io = io;
    }
    return STATUS_OK;
}

static enum status read_plan(struct swpipe *pipe, const struct swpipe_config *config)
{
    const char *file = config->plan_file ? config->plan_file : "plan";
    enum status status =
        config->plan_text ? plan_parse(file, config->plan_text, strlen(config->plan_text),
                                       &pipe->plan, &pipe->diag)
        : config->plan_file
            ? plan_read(file, &pipe->plan, &pipe->diag)
            : diag_error(&pipe->diag, STATUS_USAGE, "neither plan_file nor plan_text is given");
    pipe->has_plan = !status;
    if (!status && pipe->plan.form != FORM_PIPELINE)
        status = diag_error(&pipe->diag, STATUS_INPUT,
                            "%s: expected a plan of the pipeline form (schedule:)", file);
    return status;
}

/* This process has one rank of the plan. */
static enum status take_group(struct swpipe *pipe, const struct swpipe_config *config)
{
    struct swpipe_group *group = config->group;
    if (!group->rendezvous)
        return diag_error(&pipe->diag, STATUS_USAGE, "the group has not come together: %s",
                          group->error);
    if (group->in_use)
        return diag_error(&pipe->diag, STATUS_USAGE,
                          "another pipeline of this group is open: close it first");
    if (group->size != pipe->ranks)
        return diag_error(&pipe->diag, STATUS_INPUT,
                          "%s has %d ranks, the group %d: 'ranks' of the configuration can say so",
                          pipe->plan.file, pipe->ranks, group->size);
    if (pipe->plan.machine.share_device)
        return diag_error(&pipe->diag, STATUS_INPUT,
                          "%s: ranks that share a device (share_device) cannot be processes",
                          pipe->plan.file);
    group->in_use = true;
    pipe->group = group;
    pipe->first_rank = group->rank;
    return STATUS_OK;
}

/* A count without its array, and numbers that name nothing. */
static enum status check_config(struct swpipe *pipe, const struct swpipe_config *config)
{
    const struct {
        const char *name;
        bool given;
        size_t count;
    } arrays[] = {{"tasks", config->tasks, config->task_count},
                  {"device_only", config->device_only, config->device_only_count},
                  {"own.streams", config->own.streams, config->own.stream_count},
                  {"own.comms", config->own.comms, config->own.comm_count}};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        if (arrays[i].count && !arrays[i].given)
            return diag_error(&pipe->diag, STATUS_USAGE, "%s is NULL, but its count is %zu",
                              arrays[i].name, arrays[i].count);
    for (size_t i = 0; i < config->task_count; i++)
        if (config->tasks[i].io_count && !config->tasks[i].io)
            return diag_error(
                &pipe->diag, STATUS_USAGE, "io of task '%s' is NULL, but its count is %zu",
                config->tasks[i].name ? config->tasks[i].name : "", config->tasks[i].io_count);
    for (size_t i = 0; i < config->device_only_count; i++)
        if (!config->device_only[i])
            return diag_error(&pipe->diag, STATUS_USAGE, "device_only: name %zu is NULL", i);
    /* as numbers: other languages have no enumerations of C */
    int driver = (int)config->driver, device = (int)config->device, graph = (int)config->graph,
        threads = (int)config->threads;
    if (threads < 0 || threads > SWPIPE_CALLER)
        return diag_error(&pipe->diag, STATUS_USAGE, "threads is %d: expected at most %d", threads,
                          SWPIPE_CALLER);
    if (threads == SWPIPE_CALLER && config->spin_ns)
        return diag_error(&pipe->diag, STATUS_USAGE,
                          "spin_ns is %" PRId64
                          ", but no thread waits for another one: the caller's calls all functions",
                          config->spin_ns);
    if (driver < 0 || driver > SWPIPE_DATAFLOW || device < 0 || device > SWPIPE_CUDA || graph < 0 ||
        graph > SWPIPE_GRAPH_REQUIRE)
        return diag_error(&pipe->diag, STATUS_USAGE,
                          "driver, device or graph is %d, %d, %d: expected at most %d, %d, %d",
                          driver, device, graph, SWPIPE_DATAFLOW, SWPIPE_CUDA,
                          SWPIPE_GRAPH_REQUIRE);
    if (config->own.allocator.release && !config->own.allocator.alloc)
        return diag_error(
            &pipe->diag, STATUS_USAGE,
            "own.allocator has a release, but no alloc: the library's memory is its own");
    const struct {
        const char *name;
        int64_t found, least;
    } numbers[] = {{"ranks", config->ranks, 0},
                   {"max_depth", config->max_depth, 0},
                   {"gpu", config->gpu, 0},
                   {"wait_timeout_ns", config->wait_timeout_ns, -1},
                   {"progress_timeout_ns", config->progress_timeout_ns, -1},
                   {"spin_ns", config->spin_ns, -1},
                   {"proof_limit_ns", config->proof_limit_ns, -1}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].found < numbers[i].least)
            return diag_error(&pipe->diag, STATUS_USAGE,
                              "%s is %" PRId64 ": expected at least %" PRId64, numbers[i].name,
                              numbers[i].found, numbers[i].least);
    if (config->ranks > PLAN_MAX_RANKS || config->max_depth > PLAN_MAX_DEPTH)
        return diag_error(&pipe->diag, STATUS_USAGE,
                          "ranks or max_depth is %d, %d: expected at most %d, %d", config->ranks,
                          config->max_depth, PLAN_MAX_RANKS, PLAN_MAX_DEPTH);
    return STATUS_OK;
}

static enum status take_options(struct swpipe *pipe, const struct swpipe_config *config)
{
    /* first: a refused pipeline can be asked swpipe_verify */
    pipe->driver = config->driver == SWPIPE_DATAFLOW ? DRIVER_DATAFLOW : DRIVER_CLOCK;
    pipe->device = config->device == SWPIPE_CUDA ? DEVICE_KIND_CUDA : DEVICE_KIND_HOST;
    if (config->max_depth && config->driver != SWPIPE_DATAFLOW)
        return diag_error(
            &pipe->diag, STATUS_USAGE,
            "max_depth is %d, but only the data-flow driver has one: under the clock the "
            "plan's stages say how many iterations are in flight",
            config->max_depth);
    pipe->ranks = config->ranks ? config->ranks : pipe->plan.ranks;
    if (pipe->ranks > pipe->plan.ranks && pipe->plan.machine.share_device)
        return diag_error(&pipe->diag, STATUS_INPUT,
                          "share_device names the devices of %d ranks, there are %d",
                          pipe->plan.ranks, pipe->ranks);
    enum status status = config->group ? take_group(pipe, config) : STATUS_OK;
    if (status)
        return status;
    pipe->local_ranks = pipe->group ? 1 : pipe->ranks;
    pipe->max_depth = config->max_depth;
    pipe->spin_ns = config->spin_ns;
    pipe->on_caller = config->threads == SWPIPE_CALLER;
    pipe->graph = config->graph == SWPIPE_GRAPH_REQUIRE ? RUNTIME_GRAPH_REQUIRE
                  : config->graph == SWPIPE_GRAPH_AUTO  ? RUNTIME_GRAPH_AUTO
                                                        : RUNTIME_GRAPH_OFF;
    pipe->hooks = config->hooks;
    status = policy_take(pipe, &config->policy);
    pipe->gpu = config->gpu > 0 ? config->gpu : DEVICE_GPU_CURRENT;
    pipe->wait_ns = config->wait_timeout_ns == -1 ? 0
                    : config->wait_timeout_ns     ? config->wait_timeout_ns
                                                  : WAIT_TIMEOUT_NS;
    pipe->message = config->message;
    pipe->message_arg = config->message_arg;
    pipe->progress_ns = config->progress_timeout_ns == -1 ? DEVICE_FOREVER
                        : config->progress_timeout_ns     ? config->progress_timeout_ns
                                                          : PROGRESS_TIMEOUT_NS;
    return status;
}

static enum status make_tables(struct swpipe *pipe)
{
    size_t tasks = pipe->plan.pipeline.task_count;
    pipe->tasks = calloc(tasks, sizeof *pipe->tasks);
    pipe->device_only = calloc(tasks, sizeof *pipe->device_only);
    pipe->shortcuts = calloc((size_t)pipe->ranks * tasks, sizeof *pipe->shortcuts);
    pipe->devices = calloc((size_t)pipe->ranks, sizeof(struct device *));
    pipe->pools = calloc((size_t)pipe->ranks, sizeof *pipe->pools);
    pipe->exposed = calloc(tasks, sizeof *pipe->exposed);
    pipe->results = calloc((size_t)pipe->ranks, sizeof(void *));
    if (!pipe->tasks || !pipe->device_only || !pipe->shortcuts || !pipe->devices || !pipe->pools ||
        !pipe->exposed || !pipe->results)
        return diag_no_memory(&pipe->diag);
    return STATUS_OK;
}

static bool is_set(const char *variable, const char *value)
{
    const char *is = getenv(variable);
    return is && strcmp(is, value) == 0;
}

/* The waits of a push that no plan tells of. */
static void warn_of_environment(const struct swpipe *pipe, const struct swpipe_config *config)
{
    bool meets = pipe->ranks > 1 && pipe->plan.comm_count > 0;
    if (!config->message || pipe->device != DEVICE_KIND_CUDA || !meets)
        return;
    if (!is_set("NCCL_RUNTIME_CONNECT", "0"))
        config->message(config->message_arg,
                        "NCCL_RUNTIME_CONNECT is not 0: the first collective on a communicator "
                        "waits for the other ranks, which the proof does not know; see "
                        "swpipe_set_environment\n");
    if (config->task_count > 0 && !is_set("CUDA_MODULE_LOADING", "EAGER"))
        config->message(config->message_arg,
                        "CUDA_MODULE_LOADING is not EAGER: a kernel of a function that has not "
                        "been loaded before may wait for collectives at its first launch, which "
                        "the proof does not know; see swpipe(3)\n");
}

static enum status set_up(struct swpipe *pipe, const struct swpipe_config *config)
{
    enum status status = config
                             ? check_config(pipe, config)
                             : diag_error(&pipe->diag, STATUS_USAGE, "no configuration is given");
    if (!status)
        status = read_plan(pipe, config);
    if (!status)
        status = take_options(pipe, config);
    if (!status)
        status = proof_at_open(pipe, config);
    if (!status)
        status = own_open(pipe, &config->own);
    if (!status)
        status = make_tables(pipe);
    if (!status)
        status = take_tasks(pipe, config);
    if (!status)
        status = take_device_only(pipe, config);
    if (!status)
        status = refuse_blocking_copies(pipe);
    if (!status)
        status = copy_io(pipe);
    if (!status)
        warn_of_environment(pipe, config);
    /* an error of the plan shows now, not when the pipeline is filled */
    if (!status)
        status = need_engine(pipe, false);
    pipe->open = !status;
    return status;
}

int swpipe_set_environment(void)
{
    return device_set_environment();
}

enum swpipe_status swpipe_open(const struct swpipe_config *config, struct swpipe **out)
{
    struct swpipe *pipe = out ? calloc(1, sizeof *pipe) : NULL;
    if (!out)
        return SWPIPE_USAGE;
    *out = pipe;
    if (!pipe)
        return SWPIPE_SYSTEM;
    diag_init(&pipe->diag);
    if (config &&
        config->device == SWPIPE_CUDA) /* known before the call is, which looks at its GPU */
        pipe->device = DEVICE_KIND_CUDA;
    (void)pipe_enter(pipe);
    return swpipe_finish(pipe, set_up(pipe, config));
}

void swpipe_close(struct swpipe *pipe)
{
    if (!pipe)
        return;
    if (!pipe_enter(pipe)) {
        if (pipe->message)
            pipe->message(pipe->message_arg,
                          "swpipe_close within a call of the pipeline: it stays open\n");
        return;
    }
    (void)close_engine(pipe, &pipe->pipelined); /* swpipe_drain has reported a failed trace */
    (void)close_engine(pipe, &pipe->serial);
    close_device(pipe);
    own_forget_events(pipe);
    leave(pipe);
    if (pipe->group)
        pipe->group->in_use = false;
    recorded_fini(&pipe->recorded);
    free(pipe->db);
    free(pipe->tasks);
    free(pipe->device_only);
    free(pipe->shortcuts);
    free(pipe->devices);
    free(pipe->pools);
    free(pipe->exposed);
    free(pipe->results);
    swsim_free(pipe->answer);
    if (pipe->has_plan)
        plan_fini(&pipe->plan);
    diag_fini(&pipe->diag);
    free(pipe);
}

int swpipe_depth(const struct swpipe *pipe)
{
    return pipe && pipe->open ? pipe->depth : -1;
}

int swpipe_task_count(const struct swpipe *pipe)
{
    return pipe && pipe->open ? (int)pipe->plan.pipeline.task_count : -1;
}

int swpipe_rank_count(const struct swpipe *pipe)
{
    return pipe && pipe->open ? pipe->ranks : -1;
}

const char *swpipe_task_name(const struct swpipe *pipe, int task)
{
    return task >= 0 && task < swpipe_task_count(pipe) ? pipe->plan.pipeline.tasks[task].name
                                                       : NULL;
}

int swpipe_in_flight(const struct swpipe *pipe)
{
    return pipe && pipe->pipelined.has_threads ? engine_in_flight(&pipe->pipelined) : 0;
}

void *swpipe_result(const struct swpipe *pipe, int rank)
{
    return pipe && pipe->results && rank >= 0 && rank < pipe->ranks ? pipe->results[rank] : NULL;
}

int64_t swpipe_graph_launches(const struct swpipe *pipe)
{
    if (!pipe)
        return 0;
    const struct engine *engine = &pipe->pipelined;
    return pipe->graph_launches + (engine->has_run ? graph_launches(&engine->run) : 0);
}

/* ---- pipelined ------------------------------------------------------------------------------- */

enum status swpipe_must_be_open(struct swpipe *pipe)
{
    return pipe->open ? STATUS_OK
                      : diag_error(&pipe->diag, STATUS_USAGE, "the pipeline did not open");
}

static enum status must_not_be_filled(struct swpipe *pipe, const char *what)
{
    enum status status = swpipe_must_be_open(pipe);
    if (!status && (pipe->state == PIPE_FILLED || pipe->state == PIPE_BROKEN))
        status = diag_error(&pipe->diag, STATUS_USAGE,
                            "%s while the pipeline is filled: drain it first", what);
    return status;
}

static enum status break_pipe(struct swpipe *pipe, enum status status)
{
    if (status)
        pipe->state = PIPE_BROKEN;
    return status;
}

static enum status need_source(struct swpipe *pipe, const struct swpipe_source *source,
                               const char *what)
{
    return source && source->next ? STATUS_OK
                                  : diag_error(&pipe->diag, STATUS_USAGE,
                                               "%s needs a source with a function `next`", what);
}

static enum status fill(struct swpipe *pipe, const struct swpipe_source *source)
{
    enum status status = must_not_be_filled(pipe, "fill");
    if (!status)
        status = need_source(pipe, source, "fill");
    if (!status && pipe->db) /* a run of its own, with the short-cuts of now */
        status = close_engine(pipe, &pipe->pipelined);
    if (!status)
        status = need_engine(pipe, false);
    if (!status && pipe->group)
        status = group_begin_run(pipe->group, &pipe->diag);
    if (status)
        return status;
    pipe->state = PIPE_FILLED;
    return break_pipe(pipe,
                      engine_advance(&pipe->pipelined, source, pipe->progress_ns, &pipe->diag));
}

enum swpipe_status swpipe_fill(struct swpipe *pipe, const struct swpipe_source *source)
{
    if (!pipe_enter(pipe))
        return SWPIPE_USAGE;
    return swpipe_finish(pipe, fill(pipe, source));
}

/* All iterations are retired: the next fill starts anew. */
static enum status finish_run(struct swpipe *pipe)
{
    enum status status = engine_sync(&pipe->pipelined, pipe->progress_ns, &pipe->diag);
    if (status)
        return break_pipe(pipe, status);
    clock_gettime(CLOCK_MONOTONIC, &pipe->idle_at);
    pipe->state = PIPE_ENDED;
    return break_pipe(pipe, close_engine(pipe, &pipe->pipelined));
}

/* *iteration -1: none was left. */
static enum status progress(struct swpipe *pipe, const struct swpipe_source *source,
                            int64_t *iteration)
{
    struct engine *engine = &pipe->pipelined;
    *iteration = -1;
    enum status status = swpipe_must_be_open(pipe);
    if (status || pipe->state == PIPE_ENDED)
        return status;
    if (pipe->state == PIPE_IDLE)
        return diag_error(&pipe->diag, STATUS_USAGE, "progress without fill");
    if (pipe->state == PIPE_BROKEN)
        return diag_error(&pipe->diag, STATUS_USAGE, "progress after a failure: drain first");
    status = source ? need_source(pipe, source, "progress") : STATUS_OK;
    if (status)
        return status;
    status = engine_retire(engine, source, pipe->progress_ns, iteration, &pipe->diag);
    if (!status && *iteration >= 0)
        status = engine_advance(engine, source, pipe->progress_ns, &pipe->diag);
    if (status)
        return break_pipe(pipe, status);
    return *iteration >= 0 ? STATUS_OK : finish_run(pipe);
}

enum swpipe_status swpipe_progress(struct swpipe *pipe, const struct swpipe_source *source,
                                   int64_t *iteration)
{
    int64_t retired;
    if (!pipe_enter(pipe))
        return SWPIPE_USAGE;
    enum swpipe_status status = swpipe_finish(pipe, progress(pipe, source, &retired));
    if (status != SWPIPE_OK)
        return status;
    if (iteration && retired >= 0)
        *iteration = retired;
    return retired >= 0 ? SWPIPE_OK : SWPIPE_END;
}

static enum status drain(struct swpipe *pipe)
{
    int64_t retired = 0;
    enum status status = swpipe_must_be_open(pipe);
    while (!status && pipe->state == PIPE_FILLED)
        status = progress(pipe, NULL, &retired);
    enum status closed = close_engine(pipe, &pipe->pipelined);
    if (pipe->serial.recording.journal && !closed)
        closed = close_engine(pipe, &pipe->serial);
    status = status ? status : closed;
    if (!status)
        pipe->state = PIPE_IDLE;
    else if (pipe->state == PIPE_BROKEN)
        pipe->state = PIPE_IDLE; /* a failure while draining is reported once, then all is clean */
    return status;
}

enum swpipe_status swpipe_drain(struct swpipe *pipe)
{
    if (!pipe_enter(pipe))
        return SWPIPE_USAGE;
    return swpipe_finish(pipe, drain(pipe));
}

static double seconds_between(const struct timespec *start, const struct timespec *end)
{
    return (double)(end->tv_sec - start->tv_sec) + 1e-9 * (double)(end->tv_nsec - start->tv_nsec);
}

static double seconds_since(const struct timespec *start)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return seconds_between(start, &now);
}

enum swpipe_status swpipe_run(struct swpipe *pipe, const struct swpipe_source *source,
                              double *seconds)
{
    struct timespec start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    enum swpipe_status status = swpipe_fill(pipe, source);
    while (status == SWPIPE_OK)
        status = swpipe_progress(pipe, source, NULL);
    if (status != SWPIPE_END)
        return status;
    if (seconds) /* without the end of the threads and of a recording */
        *seconds = seconds_between(&start, &pipe->idle_at);
    pipe->state = PIPE_IDLE;
    return SWPIPE_OK;
}

/* ---- traces ---------------------------------------------------------------------------------- */

static enum status record(struct swpipe *pipe, const char *file)
{
    enum status status = must_not_be_filled(pipe, "recording changes");
    char *copy = file ? strdup(file) : NULL;
    if (!status && file && !copy)
        status = diag_no_memory(&pipe->diag);
    if (!status && pipe->serial.pipe)
        status = close_engine(pipe, &pipe->serial);
    if (status) {
        free(copy);
        return status;
    }
    free(pipe->db);
    pipe->db = copy;
    return STATUS_OK;
}

enum swpipe_status swpipe_record(struct swpipe *pipe, const char *file)
{
    if (!pipe_enter(pipe))
        return SWPIPE_USAGE;
    return swpipe_finish(pipe, record(pipe, file));
}

enum swpipe_status swpipe_recorded(struct swpipe *pipe, struct swpipe_recorded *out)
{
    if (!pipe || !out || !pipe->recorded.is)
        return SWPIPE_USAGE; /* the error of the call before this one stays */
    const struct recorded *recorded = &pipe->recorded;
    const struct runtime_result *result = &recorded->result;
    *out = (struct swpipe_recorded){.run = result->run,
                                    .iterations = result->iterations,
                                    .steps = result->steps,
                                    .legal = result->legal == ANSWER_YES  ? 1
                                             : result->legal == ANSWER_NO ? 0
                                                                          : -1,
                                    .why = recorded->why,
                                    .seconds = 1e-9 * (double)result->duration_ns,
                                    .iteration_seconds = 1e-9 * result->iteration.mean_ns};
    return SWPIPE_OK;
}

/* ---- serial ---------------------------------------------------------------------------------- */

/* After a failure nothing is kept: the next call starts anew. */
static enum status close_on_failure(struct swpipe *pipe, enum status status)
{
    if (status)
        (void)close_engine(pipe, &pipe->serial);
    return status;
}

static enum status one_serial(struct swpipe *pipe, void *const *batches, int64_t iteration)
{
    enum status status = must_not_be_filled(pipe, "a serial iteration");
    if (!status && iteration < 0)
        status = diag_error(&pipe->diag, STATUS_USAGE, "iteration %lld: expected 0 or more",
                            (long long)iteration);
    if (!status)
        status = need_engine(pipe, true);
    if (status)
        return status;
    return close_on_failure(
        pipe, engine_single(&pipe->serial, batches, iteration, pipe->progress_ns, &pipe->diag));
}

enum swpipe_status swpipe_run_one_serial(struct swpipe *pipe, void *const *batches,
                                         int64_t iteration)
{
    if (!pipe_enter(pipe))
        return SWPIPE_USAGE;
    return swpipe_finish(pipe, one_serial(pipe, batches, iteration));
}

static void release_batches(struct swpipe *pipe, void *const *batches, int count)
{
    for (int i = 0; i < count && pipe->hooks.release; i++)
        pipe->hooks.release(pipe->hooks.arg, pipe->first_rank + i, batches[i]);
}

/* Batches for all ranks, *taken of them; *more is false when one of them has none. */
static enum status next_batches(struct swpipe *pipe, const struct swpipe_source *source,
                                void **batches, int64_t iteration, int *taken, bool *more)
{
    *more = true;
    for (*taken = 0; *taken < pipe->local_ranks && *more; *taken += *more) {
        int rank = pipe->first_rank + *taken, answer = engine_next(source, rank, &batches[*taken]);
        if (answer < 0)
            return diag_error(&pipe->diag, STATUS_VIOLATED, "the source failed on rank %d", rank);
        *more = answer > 0;
    }
    return !pipe->group || engine_agree(&pipe->serial, iteration, !*more, more, &pipe->diag)
               ? STATUS_OK
               : STATUS_VIOLATED;
}

static enum status run_serial(struct swpipe *pipe, const struct swpipe_source *source)
{
    enum status status = need_source(pipe, source, "a serial run");
    if (status)
        return status;
    void **batches = calloc((size_t)pipe->ranks + 1, sizeof(void *));
    status = batches ? STATUS_OK : diag_no_memory(&pipe->diag);
    bool more = true;
    int taken = 0;
    if (!status && pipe->group)
        status = group_begin_run(pipe->group, &pipe->diag);
    for (int64_t iteration = 0; !status && more; iteration++) {
        status = next_batches(pipe, source, batches, iteration, &taken, &more);
        if (!status && more)
            status = one_serial(pipe, batches, iteration);
        else if (!status && pipe->group)
            group_end_run(pipe->group, iteration);
        release_batches(pipe, batches, taken);
        taken = 0;
    }
    free(batches);
    return status;
}

enum swpipe_status swpipe_run_serial(struct swpipe *pipe, const struct swpipe_source *source,
                                     double *seconds)
{
    struct timespec start;
    if (!pipe_enter(pipe))
        return SWPIPE_USAGE;
    enum status status = must_not_be_filled(pipe, "a serial run");
    if (!status)
        status = need_engine(pipe, true);
    clock_gettime(CLOCK_MONOTONIC, &start);
    if (!status)
        status = run_serial(pipe, source);
    if (!status && seconds)
        *seconds = seconds_since(&start);
    return swpipe_finish(pipe, status);
}

/* ---- short-cuts ------------------------------------------------------------------------------ */

static enum status set_shortcut(struct swpipe *pipe, const char *name, bool on)
{
    enum status status = must_not_be_filled(pipe, "a short-cut changes");
    if (status)
        return status;
    int tasks = (int)pipe->plan.pipeline.task_count,
        only = name ? swpipe_find_task(pipe, name) : -1;
    if (name && only < 0)
        return diag_error(&pipe->diag, STATUS_INPUT, "%s has no task '%s'", pipe->plan.file, name);
    if (pipe->serial.recording.journal) /* what was recorded so far is a run without the change */
        status = close_engine(pipe, &pipe->serial);
    if (status)
        return status;
    if (pipe->graph) /* which tasks a graph may have is asked when it opens */
        status = close_engine(pipe, &pipe->pipelined);
    if (status)
        return status;
    for (int i = 0; i < pipe->ranks * tasks; i++) {
        if (name && i % tasks != only)
            continue;
        pipe->shortcuts[i].on = on;
        if (!on)
            shortcut_forget(&pipe->shortcuts[i], &pipe->tasks[i % tasks]);
    }
    return STATUS_OK;
}

enum swpipe_status swpipe_enable_shortcut(struct swpipe *pipe, const char *task)
{
    if (!pipe_enter(pipe))
        return SWPIPE_USAGE;
    return swpipe_finish(pipe, task ? set_shortcut(pipe, task, true)
                                    : diag_error(&pipe->diag, STATUS_USAGE, "no task is named"));
}

enum swpipe_status swpipe_disable_shortcut(struct swpipe *pipe, const char *task)
{
    if (!pipe_enter(pipe))
        return SWPIPE_USAGE;
    return swpipe_finish(pipe, set_shortcut(pipe, task, false));
}

/* ---- inside a task --------------------------------------------------------------------------- */

int64_t swpipe_iteration(const struct swpipe_context *context)
{
    return context->iteration->number;
}

int swpipe_rank(const struct swpipe_context *context)
{
    return context->self->rank;
}

/* Not from the release of a value: its iteration is locked. */
static bool may_call(struct swpipe_context *context, const char *function)
{
    if (!iteration_is_releasing(context->iteration))
        return true;
    swpipe_fail(context, "%s: the release of a value cannot use its iteration", function);
    return false;
}

void swpipe_set_result(struct swpipe_context *context, void *result)
{
    if (!may_call(context, "swpipe_set_result"))
        return;
    pthread_mutex_lock(&context->iteration->lock);
    context->iteration->result = result;
    pthread_mutex_unlock(&context->iteration->lock);
}

void *swpipe_batch(const struct swpipe_context *context)
{
    return context->iteration->batch;
}

int swpipe_fail(struct swpipe_context *context, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(context->why, sizeof context->why, format, args);
    va_end(args);
    return -1;
}

static struct device_stream *stream_of(const struct swpipe_context *context)
{
    return engine_stream(context->engine, context->self->rank, context->task);
}

int swpipe_set(struct swpipe_context *context, const char *name, void *value,
               const struct swpipe_kind *kind)
{
    if (!name)
        return swpipe_fail(context, "swpipe_set: the name is NULL");
    if (!may_call(context, "swpipe_set"))
        return -1;
    return iteration_set(context->iteration, name, value, kind, context->task, stream_of(context))
               ? 0
               : -1;
}

void *swpipe_get(struct swpipe_context *context, const char *name)
{
    return name && may_call(context, "swpipe_get") ? iteration_get(context->iteration, name) : NULL;
}

void swpipe_unset(struct swpipe_context *context, const char *name)
{
    if (name && may_call(context, "swpipe_unset"))
        iteration_unset(context->iteration, name, stream_of(context));
}

void *swpipe_alloc(struct swpipe_context *context, const char *name, size_t bytes)
{
    struct diag diag;
    if (!may_call(context, "swpipe_alloc"))
        return NULL;
    if (!name || graph_captures(context->self->run, context->self->rank)) {
        swpipe_fail(context, name ? "a device_only function cannot allocate"
                                  : "swpipe_alloc: the name is NULL");
        return NULL;
    }
    diag_init(&diag);
    struct block *block = iteration_alloc(context->iteration, name, bytes ? bytes : 1,
                                          context->task, stream_of(context), &diag);
    if (!block)
        swpipe_fail(context, "%s", diag.count ? diag.messages[0].text : "out of memory");
    diag_fini(&diag);
    return block ? device_address(block->buffer) : NULL;
}

void *swpipe_buffer(struct swpipe_context *context, const char *name, size_t *bytes)
{
    const struct run *run = context->self->run;
    const struct program *p = run->program;
    for (int b = 0; b < p->buffer_count && name; b++) {
        if (p->buffers[b].rank != context->self->rank || strcmp(p->buffers[b].name, name) != 0 ||
            run->buffers[b].count == 0)
            continue;
        if (bytes)
            *bytes = run->buffers[b].bytes;
        return device_address(data_buffer(run, b, context->self->current.iteration).buffer);
    }
    return NULL;
}

void *swpipe_stream(struct swpipe_context *context)
{
    return called_pushes(context->self) ? device_stream_handle(stream_of(context)) : NULL;
}

int swpipe_launch(struct swpipe_context *context, void (*function)(void *arg), void *arg)
{
    const struct task *task = &context->engine->program->plan->pipeline.tasks[context->task];
    struct device_op op = {
        .kind = DEVICE_OP_CALLBACK, .label = task->name, .callback = {function, arg}};
    struct diag diag;
    diag_init(&diag);
    bool pushed = called_pushes(context->self) &&
                  device_push(stream_of(context), &op, NULL, &diag) == STATUS_OK;
    if (!pushed)
        swpipe_fail(context, "%s", diag.count ? diag.messages[0].text : "out of memory");
    diag_fini(&diag);
    return pushed ? 0 : -1;
}

int swpipe_work(struct swpipe_context *context)
{
    if (called_pushes(context->self) &&
        worker_own_work(context->self, context->task, context->self->current.iteration))
        return 0;
    return swpipe_fail(context, "the plan's work could not be pushed");
}
