/* SPDX-License-Identifier: Apache-2.0 */
/*
 * swpipe.c - see swpipe.h: the calls of the public library, in terms of engines (gpu/lib/engine.h). What the
 * configuration says is taken in configure.c, the calls of functions are in in_task.c.
 *
 *     IDLE --fill--> FILLED --progress: end--> ENDED --fill--> ...
 *       ^              |  `--something failed--> BROKEN
 *       `----drain-----+---------drain-------------'
 */
#include "group.h"
#include "swpipe_impl.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/swsim.h"
#include "base/nearest.h"
#include "base/printable.h"

/* ---- what went wrong ------------------------------------------------------------------------- */

const char *swpipe_status_name(enum swpipe_status status)
{
    static const char *const names[] = {"ok",    "end",   "failed", "timeout",
                                        "usage", "input", "system"};
    return status >= SWPIPE_OK && status <= SWPIPE_SYSTEM ? names[status] : "unknown";
}

const char *swpipe_version(void)
{
    return PACKAGE_VERSION;
}

int swpipe_abi(void)
{
    return LIBRARY_ABI;
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

static pthread_mutex_t describing =
    PTHREAD_MUTEX_INITIALIZER; /* of all pipelines: they seldom fail */

/* True in a child of the process that has it. Its threads, which may have held locks, and its device are not here. */
static bool is_forked(const struct swpipe *pipe)
{
    return pipe->process != getpid();
}

bool pipe_enter(struct swpipe *pipe)
{
    if (!pipe)
        return false;
    if (is_forked(pipe)) {
        snprintf(pipe->error, sizeof pipe->error,
                 "the pipeline belongs to process %ld, of which this one is a fork: open one here",
                 (long)pipe->process);
        return false;
    }
    if (atomic_exchange(&pipe->entered, true))
        return false;
    device_note_caller(pipe->device, pipe->world, &pipe->caller);
    return true;
}

static void pipe_leave(struct swpipe *pipe)
{
    device_restore_caller(pipe->device, &pipe->caller);
    atomic_store(&pipe->entered, false);
}

enum swpipe_status swpipe_finish(struct swpipe *pipe, enum status status)
{
    assert(atomic_load(&pipe->entered));
    if (status) { /* the first error of the call, with its place in the plan if it has one */
        pthread_mutex_lock(&describing);
        diag_first_error(&pipe->diag, pipe->error, sizeof pipe->error);
        pipe->failed_on = pthread_self();
        pthread_mutex_unlock(&describing);
    }
    diag_fini(&pipe->diag);
    diag_init(&pipe->diag);
    pipe_leave(pipe);
    return status_for_caller(status);
}

/* The thread that makes the calls is the one that writes. */
const char *swpipe_error(const struct swpipe *pipe)
{
    static _Thread_local char copy[PIPE_ERROR];
    if (!pipe)
        return "there is no pipeline: memory is exhausted, or swpipe_open has not been called";
    if (is_forked(pipe))
        return pipe->error;
    pthread_mutex_lock(&describing);
    const bool own = pthread_equal(pipe->failed_on, pthread_self());
    if (!own)
        memcpy(copy, pipe->error, sizeof copy);
    pthread_mutex_unlock(&describing);
    return own ? pipe->error : copy;
}

/* ---- the device ------------------------------------------------------------------------------ */

/* Work that does not end keeps its memory. */
static void tell_kept(const struct swpipe *pipe, int rank)
{
    const int64_t bytes = device_kept_bytes(pipe->devices[rank]);
    const int comms = device_kept_comms(pipe->devices[rank]);
    char text[240];
    if ((bytes == 0 && comms == 0) || !pipe->message)
        return;
    snprintf(text, sizeof text,
             "rank %d: %" PRId64
             " bytes and %d communicators stay allocated until the process ends: "
             "the GPU has work that does not end and may use them\n",
             rank, bytes, comms);
    pipe->message(pipe->message_arg, text);
}

static void swpipe_close_device(struct swpipe *pipe)
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

static enum status swpipe_open_device(struct swpipe *pipe)
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
        swpipe_close_device(pipe);
    return status;
}

/* STATUS_SYSTEM: its trace could not be written. */
static enum status close_engine(struct swpipe *pipe, struct engine *engine)
{
    assert(!engine->pipe || engine->pipe == pipe);
    bool usable = true;
    enum status status = engine->pipe ? engine_close(engine, &usable, &pipe->diag) : STATUS_OK;
    if (!usable)
        swpipe_close_device(pipe);
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
        status = swpipe_open_device(pipe);
    if (!status && !engine->pipe) {
        status = engine_open(engine, pipe, serial, &pipe->diag);
        if (status)
            (void)close_engine(pipe, engine); /* nothing of it ran */
    }
    assert(!pipe->serial.pipe || !pipe->pipelined.pipe); /* a communicator is opened once */
    assert(status || (engine->pipe && pipe->world && pipe->device_count == pipe->local_ranks));
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

enum status swpipe_no_task(struct swpipe *pipe, const char *where, const char *name)
{
    struct nearest nearest = {.found = name};
    struct arena arena;
    char all[400] = "";
    size_t used = 0;
    for (size_t t = 0; t < pipe->plan.pipeline.task_count; t++) {
        const char *task = pipe->plan.pipeline.tasks[t].name;
        nearest_try(&nearest, task);
        if (used < sizeof all)
            used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", t ? ", " : "", task);
    }
    arena_init(&arena, 0);
    const char *hint = nearest_hint(&nearest, '\'', &arena);
    enum status status =
        *hint
            ? diag_error(&pipe->diag, STATUS_INPUT, "%s%s has no task '%s'%s", where,
                         pipe->plan.file, name, hint)
            : diag_error(&pipe->diag, STATUS_INPUT, "%s%s has no task '%s', expected one of: %.*s",
                         where, pipe->plan.file, name, printable_fit(all, sizeof all), all);
    arena_fini(&arena);
    return status;
}

/* An error of the plan shows now, not when the pipeline is filled. */
static enum status swpipe_open_all(struct swpipe *pipe, const struct swpipe_config *config)
{
    enum status status = swpipe_configure(pipe, config);
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
    pipe->process = getpid();
    if (config &&
        config->device == SWPIPE_CUDA) /* known before the call is, which looks at its GPU */
        pipe->device = DEVICE_KIND_CUDA;
    (void)pipe_enter(pipe);
    return swpipe_finish(pipe, swpipe_open_all(pipe, config));
}

void swpipe_close(struct swpipe *pipe)
{
    if (!pipe || is_forked(pipe))
        return;
    if (!pipe_enter(pipe)) {
        if (pipe->message)
            pipe->message(pipe->message_arg,
                          "swpipe_close within a call of the pipeline: it stays open\n");
        return;
    }
    (void)close_engine(pipe, &pipe->pipelined); /* swpipe_drain has reported a failed trace */
    (void)close_engine(pipe, &pipe->serial);
    swpipe_close_device(pipe);
    own_forget_events(pipe);
    pipe_leave(pipe);
    struct swpipe_group *group = pipe->group;
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
    if (!group)
        return;
    group->in_use = false;
    if (group->left)
        swpipe_leave(group);
}

int swpipe_depth(const struct swpipe *pipe)
{
    return pipe && pipe->open ? atomic_load(&pipe->depth) : -1;
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
    return pipe ? atomic_load(&pipe->in_flight) : 0;
}

void *swpipe_result(const struct swpipe *pipe, int rank)
{
    return pipe && pipe->open && rank >= 0 && rank < pipe->ranks ? atomic_load(&pipe->results[rank])
                                                                 : NULL;
}

int64_t swpipe_graph_launches(const struct swpipe *pipe)
{
    return pipe ? atomic_load(&pipe->graph_launches) : 0;
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

static enum status pipe_fill(struct swpipe *pipe, const struct swpipe_source *source)
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
    return swpipe_finish(pipe, pipe_fill(pipe, source));
}

/* All iterations are retired: the next fill starts anew. */
static enum status finish_run(struct swpipe *pipe)
{
    assert(pipe->state == PIPE_FILLED);
    enum status status = engine_sync(&pipe->pipelined, pipe->progress_ns, &pipe->diag);
    if (status)
        return break_pipe(pipe, status);
    clock_gettime(CLOCK_MONOTONIC, &pipe->idle_at);
    pipe->state = PIPE_ENDED;
    return break_pipe(pipe, close_engine(pipe, &pipe->pipelined));
}

/* *iteration -1: none was left. */
static enum status pipe_progress(struct swpipe *pipe, const struct swpipe_source *source,
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
    enum swpipe_status status = swpipe_finish(pipe, pipe_progress(pipe, source, &retired));
    if (status != SWPIPE_OK)
        return status;
    if (iteration && retired >= 0)
        *iteration = retired;
    return retired >= 0 ? SWPIPE_OK : SWPIPE_END;
}

static enum status pipe_drain(struct swpipe *pipe)
{
    int64_t retired = 0;
    enum status status = swpipe_must_be_open(pipe);
    while (!status && pipe->state == PIPE_FILLED)
        status = pipe_progress(pipe, NULL, &retired);
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
    return swpipe_finish(pipe, pipe_drain(pipe));
}

static double seconds_between(const struct timespec *start, const struct timespec *end)
{
    return (double)(end->tv_sec - start->tv_sec) + 1e-9 * (double)(end->tv_nsec - start->tv_nsec);
}

enum swpipe_status swpipe_run(struct swpipe *pipe, const struct swpipe_source *source,
                              double *seconds)
{
    struct timespec start;
    int64_t iteration = 0;
    if (!pipe_enter(pipe))
        return SWPIPE_USAGE;
    clock_gettime(CLOCK_MONOTONIC, &start);
    enum status status = pipe_fill(pipe, source);
    while (!status && iteration >= 0)
        status = pipe_progress(pipe, source, &iteration);
    if (!status)
        pipe->state = PIPE_IDLE;
    if (!status && seconds) /* without the end of the threads and of a recording */
        *seconds = seconds_between(&start, &pipe->idle_at);
    return swpipe_finish(pipe, status);
}

/* ---- traces ---------------------------------------------------------------------------------- */

static enum status pipe_record(struct swpipe *pipe, const char *file)
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
    return swpipe_finish(pipe, pipe_record(pipe, file));
}

static void tell_recorded(const struct swpipe *pipe, struct swpipe_recorded *out)
{
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
}

enum swpipe_status swpipe_recorded(struct swpipe *pipe, struct swpipe_recorded *out)
{
    if (!pipe_enter(pipe))
        return SWPIPE_USAGE;
    const bool is = out && pipe->recorded.is;
    if (is)
        tell_recorded(pipe, out);
    pipe_leave(pipe); /* the error of the call before this one stays */
    return is ? SWPIPE_OK : SWPIPE_USAGE;
}

/* ---- serial ---------------------------------------------------------------------------------- */

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
    status = engine_single(&pipe->serial, batches, iteration, pipe->progress_ns, &pipe->diag);
    if (status) /* nothing is kept: the next call starts anew */
        (void)close_engine(pipe, &pipe->serial);
    return status;
}

enum swpipe_status swpipe_run_one_serial(struct swpipe *pipe, void *const *batches,
                                         int64_t iteration)
{
    if (!pipe_enter(pipe))
        return SWPIPE_USAGE;
    return swpipe_finish(pipe, one_serial(pipe, batches, iteration));
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
        for (int i = 0; i < taken && pipe->hooks.release; i++)
            pipe->hooks.release(pipe->hooks.arg, pipe->first_rank + i, batches[i]);
        taken = 0;
    }
    free(batches);
    return status;
}

enum swpipe_status swpipe_run_serial(struct swpipe *pipe, const struct swpipe_source *source,
                                     double *seconds)
{
    struct timespec start, end;
    if (!pipe_enter(pipe))
        return SWPIPE_USAGE;
    enum status status = must_not_be_filled(pipe, "a serial run");
    if (!status)
        status = need_engine(pipe, true);
    clock_gettime(CLOCK_MONOTONIC, &start);
    if (!status)
        status = run_serial(pipe, source);
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (!status && seconds)
        *seconds = seconds_between(&start, &end);
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
        return swpipe_no_task(pipe, "", name);
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
