/* SPDX-License-Identifier: Apache-2.0 */
/*
 * configure.c - what a configuration says, checked and taken over: the plan, its proof, options, functions of tasks.
 */
#include "group.h"
#include "swpipe_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "plan/text/parse.h"

#define WAIT_TIMEOUT_NS     INT64_C(30000000000)
#define PROGRESS_TIMEOUT_NS INT64_C(60000000000)

/* ---- validity ------------------------------------------------------------------------------ */

/* A count without its array. */
static enum status check_arrays(struct swpipe *pipe, const struct swpipe_config *config)
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
    return STATUS_OK;
}

/* Words that name nothing, as numbers: other languages have no enumerations of C. */
static enum status configure_check_words(struct swpipe *pipe, const struct swpipe_config *config)
{
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
    for (size_t i = 0; i < sizeof config->reserved / sizeof *config->reserved; i++)
        if (config->reserved[i])
            return diag_error(
                &pipe->diag, STATUS_USAGE,
                "reserved[%zu] is not NULL: a later version of swpipe.h has a member there", i);
    if (config->own.allocator.release && !config->own.allocator.alloc)
        return diag_error(
            &pipe->diag, STATUS_USAGE,
            "own.allocator has a release, but no alloc: the library's memory is its own");
    return STATUS_OK;
}

static enum status check_numbers(struct swpipe *pipe, const struct swpipe_config *config)
{
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

/* ---- plan and options ------------------------------------------------------------------------ */

static enum status configure_read_plan(struct swpipe *pipe, const struct swpipe_config *config)
{
    const char *file = config->plan_file ? config->plan_file : "plan";
    locale_t before = c_locale_begin();
    enum status status =
        config->plan_text ? plan_parse(file, config->plan_text, strlen(config->plan_text),
                                       &pipe->plan, &pipe->diag)
        : config->plan_file
            ? plan_read(file, &pipe->plan, &pipe->diag)
            : diag_error(&pipe->diag, STATUS_USAGE, "neither plan_file nor plan_text is given");
    c_locale_end(before);
    pipe->has_plan = !status;
    if (!status && pipe->plan.form != FORM_PIPELINE)
        status = diag_error(&pipe->diag, STATUS_INPUT,
                            "%s: expected a plan of the pipeline form (schedule:)", file);
    return status;
}

/* This process has one rank of the plan. */
static enum status configure_take_group(struct swpipe *pipe, const struct swpipe_config *config)
{
    struct swpipe_group *group = config->group;
    if (group_must_be_here(group, &pipe->diag))
        return STATUS_USAGE;
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
    if (pipe->plan.machine.first_use_blocks && pipe->device == DEVICE_KIND_HOST)
        return diag_error(&pipe->diag, STATUS_INPUT,
                          "%s: ranks whose first use blocks (first_use_blocks) are threads of one "
                          "process on the host device: they cannot be a group",
                          pipe->plan.file);
    group->in_use = true;
    pipe->group = group;
    pipe->first_rank = group->rank;
    return STATUS_OK;
}

/* A policy must be able to have an effect. */
static enum status take_policy(struct swpipe *pipe, const struct swpipe_policy *given)
{
    pipe->policy = *given;
    if (!given->choose)
        return STATUS_OK;
    if (pipe->driver != DRIVER_DATAFLOW)
        return diag_error(
            &pipe->diag, STATUS_USAGE,
            "a policy needs the data-flow driver: the clock driver's order is the plan's");
    if (pipe->plan.groups.count < 2)
        return diag_error(&pipe->diag, STATUS_INPUT,
                          "%s: a policy chooses among thread groups, and this plan has one",
                          pipe->plan.file);
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
    enum status status = config->group ? configure_take_group(pipe, config) : STATUS_OK;
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
    status = take_policy(pipe, &config->policy);
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

/* ---- tasks ----------------------------------------------------------------------------------- */

static enum status configure_make_tables(struct swpipe *pipe)
{
    size_t tasks = pipe->plan.pipeline.task_count;
    pipe->tasks = calloc(tasks, sizeof *pipe->tasks);
    pipe->device_only = calloc(tasks, sizeof *pipe->device_only);
    pipe->shortcuts = calloc((size_t)pipe->ranks * tasks, sizeof *pipe->shortcuts);
    pipe->devices = calloc((size_t)pipe->ranks, sizeof(struct device *));
    pipe->pools = calloc((size_t)pipe->ranks, sizeof *pipe->pools);
    pipe->exposed = calloc(tasks, sizeof *pipe->exposed);
    pipe->results = calloc((size_t)pipe->ranks, sizeof *pipe->results);
    if (!pipe->tasks || !pipe->device_only || !pipe->shortcuts || !pipe->devices || !pipe->pools ||
        !pipe->exposed || !pipe->results)
        return diag_no_memory(&pipe->diag);
    return STATUS_OK;
}

static enum status take_tasks(struct swpipe *pipe, const struct swpipe_config *config)
{
    for (size_t i = 0; i < config->task_count; i++) {
        const struct swpipe_task *task = &config->tasks[i];
        if (!task->name)
            return diag_error(&pipe->diag, STATUS_USAGE, "tasks: the name of task %zu is NULL", i);
        int index = swpipe_find_task(pipe, task->name);
        if (index < 0)
            return swpipe_no_task(pipe, "", task->name);
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
            return swpipe_no_task(pipe, "device_only: ", config->device_only[i]);
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

/* ---- the whole ------------------------------------------------------------------------------- */

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

enum status swpipe_configure(struct swpipe *pipe, const struct swpipe_config *config)
{
    enum status status =
        config ? STATUS_OK : diag_error(&pipe->diag, STATUS_USAGE, "no configuration is given");
    if (!status)
        status = check_arrays(pipe, config);
    if (!status)
        status = configure_check_words(pipe, config);
    if (!status)
        status = check_numbers(pipe, config);
    if (!status)
        status = configure_read_plan(pipe, config);
    if (!status)
        status = take_options(pipe, config);
    if (!status && pipe->group)
        status = group_open_same(pipe->group, pipe, &pipe->diag);
    if (!status)
        status = proof_at_open(pipe, config);
    if (!status)
        status = own_open(pipe, &config->own);
    if (!status)
        status = configure_make_tables(pipe);
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
    return status;
}
