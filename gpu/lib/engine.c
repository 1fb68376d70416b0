/* SPDX-License-Identifier: Apache-2.0 */
/* engine.c - see engine.h. */
#include "engine.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/exec/graph.h"
#include "swpipe_impl.h"

/* ---- the policy of the program -------------------------------------------------------------- */

static int policy_choose(void *arg, int rank, const struct run_choice *choice)
{
    struct policy_words *words = arg;
    const struct engine *engine = words->engine;
    const struct program *p = engine->program;
    struct swpipe_ready *ready = words->ready + rank * p->thread_count;
    for (int i = 0; i < choice->count; i++) {
        const struct run_offer *offer = &choice->offers[i];
        const struct task *task = plan_task(p->plan, rank, offer->task);
        ready[i] = (struct swpipe_ready){.task = task->name,
                                         .stream = p->plan->streams.items[task->stream],
                                         .thread_group = p->threads[offer->thread].name,
                                         .iteration = offer->iteration};
    }
    const struct swpipe_choice asked = {.rank = rank,
                                        .ready = ready,
                                        .ready_count = choice->count,
                                        .running = choice->running,
                                        .in_flight = choice->in_flight,
                                        .max_in_flight = p->depth,
                                        .oldest = choice->oldest,
                                        .may_wait = choice->may_wait};
    return engine->pipe->policy.choose(engine->pipe->policy.arg, &asked);
}

/* *out: NULL without a policy. */
static enum status policy_words_open(struct policy_words *words, struct engine *engine,
                                     const struct run_chooser **out, struct diag *diag)
{
    const struct program *p = engine->program;
    *words = (struct policy_words){.chooser = {policy_choose, words}, .engine = engine};
    *out = NULL;
    if (!engine->pipe->policy.choose)
        return STATUS_OK;
    words->ready = calloc((size_t)p->ranks * (size_t)p->thread_count, sizeof *words->ready);
    *out = &words->chooser;
    return words->ready ? STATUS_OK : diag_no_memory(diag);
}

/* ---- tasks that are functions ---------------------------------------------------------------- */

static struct shortcut *shortcut_of(const struct engine *engine, int rank, int task)
{
    return &engine->pipe->shortcuts[rank * engine->program->tasks + task];
}

/* Also a task without a function, when it is short-cut. */
static bool has_function(void *arg, int task)
{
    const struct engine *engine = arg;
    return engine->pipe->tasks[task].function ||
           shortcut_of(engine, engine->pipe->first_rank, task)->on;
}

static bool skips(void *arg, int rank, int task)
{
    const struct shortcut *shortcut = shortcut_of(arg, rank, task);
    return shortcut->on && shortcut->saved;
}

/* The host restores the results of a short-cut, and calls recorded functions between marks. */
static bool is_device_only(void *arg, int task)
{
    const struct engine *engine = arg;
    return engine->pipe->device_only[task] && !engine->pipe->db &&
           !shortcut_of(engine, engine->pipe->first_rank, task)->on;
}

/* A thread of the library has the rank's GPU as its current one from its start to its end, the caller's has it within
   a function. */
static void enter_on_caller(const struct engine *engine, int rank)
{
    if (engine->pipe->on_caller)
        device_enter(engine->run.ranks[rank].device);
}
static void leave_on_caller(const struct engine *engine)
{
    if (!engine->pipe->on_caller)
        return;
    struct device_caller gpu = engine->pipe->caller;
    gpu.exchange_mode = NULL; /* the call goes on */
    device_restore_caller(engine->pipe->device, &gpu);
}

/* A thread of tasks begins, or ends. */
static bool engine_begin_thread(void *arg, struct run_thread *self)
{
    struct engine *engine = arg;
    const struct swpipe_hooks *hooks = &engine->pipe->hooks;
    const char *group = engine->program->threads[self->index].name;
    device_enter(engine->run.ranks[self->rank].device);
    bool done = !hooks->started || hooks->started(hooks->arg, self->rank, group) == 0;
    leave_on_caller(engine);
    if (done)
        return true;
    run_fail(self->run, STATUS_VIOLATED, "the hook at the start of thread %s of rank %d failed",
             group, self->rank);
    return false;
}

static void engine_end_thread(void *arg, struct run_thread *self)
{
    struct engine *engine = arg;
    const struct swpipe_hooks *hooks = &engine->pipe->hooks;
    if (!hooks->stopped)
        return;
    enter_on_caller(engine, self->rank);
    hooks->stopped(hooks->arg, self->rank, engine->program->threads[self->index].name);
    leave_on_caller(engine);
}

static int run_or_restore(struct swpipe_context *context)
{
    const struct engine *engine = context->engine;
    const struct swpipe_task *task = &engine->pipe->tasks[context->task];
    struct shortcut *shortcut = shortcut_of(engine, context->self->rank, context->task);
    if (shortcut->on && shortcut->saved)
        return shortcut_restore(shortcut, context, task);
    int failed = task->function ? task->function(context, task->arg) : swpipe_work(context);
    return failed || !shortcut->on ? failed : shortcut_save(shortcut, context, task);
}

struct iteration *engine_iteration(const struct engine *engine, int rank, int64_t iteration)
{
    int places = engine->places, here = rank - engine->pipe->first_rank;
    assert(iteration >= 0 && here >= 0 && here < engine->pipe->local_ranks);
    return &engine->iterations[here * places + (int)(iteration % places)];
}

static bool call_task(void *arg, struct run_thread *self, int task, int64_t iteration)
{
    struct engine *engine = arg;
    struct swpipe_context context; /* of `why` the first byte alone: it is called for each task */
    context.engine = engine;
    context.self = self;
    context.iteration = engine_iteration(engine, self->rank, iteration);
    context.task = task;
    context.why[0] = '\0';
    enter_on_caller(engine, self->rank);
    int failed = run_or_restore(&context);
    leave_on_caller(engine);
    if (failed)
        run_fail(self->run, STATUS_VIOLATED, "%s(%lld) of rank %d failed: %s",
                 engine->program->plan->pipeline.tasks[task].name,
                 (long long)context.iteration->number, self->rank,
                 context.why[0] ? context.why : "its function gave no reason");
    return !failed && !run_stopped(self->run);
}

struct device_stream *engine_stream(const struct engine *engine, int rank, int task)
{
    const int stream = engine->task_stream[rank * engine->program->tasks + task];
    return stream >= 0 ? engine->run.streams[stream].handle : NULL;
}

/* ---- open ------------------------------------------------------------------------------------ */

/* Every task of a plan records its event. */
static bool find_streams(struct engine *engine)
{
    const struct program *p = engine->program;
    const int bodies = p->ranks * p->tasks;
    engine->task_stream = ARENA_ARRAY(&engine->arena, (size_t)bodies, int);
    for (int body = 0; engine->task_stream && body < bodies; body++) {
        const struct body *what = &p->bodies[body];
        engine->task_stream[body] = -1;
        for (int i = what->count; i-- > 0;)
            if (program_records_task(&p->ops[what->first + i]))
                engine->task_stream[body] = p->ops[what->first + i].stream;
    }
    return engine->task_stream;
}

static enum status open_contexts(struct engine *engine, bool serial, struct diag *diag)
{
    const struct swpipe *pipe = engine->pipe;
    int ranks = pipe->local_ranks, places = engine->program->most_in_flight;
    engine->places = places;
    engine->iterations = calloc((size_t)(ranks * places), sizeof *engine->iterations);
    if (!engine->iterations || !find_streams(engine))
        return diag_no_memory(diag);
    for (int i = 0; i < ranks * places; i++, engine->iteration_count++)
        if (!iteration_init(&engine->iterations[i], pipe->first_rank + i / places,
                            &pipe->pools[pipe->first_rank + i / places]))
            return diag_no_memory(diag);
    return turns_open(engine, serial, diag);
}

static enum status open_run(struct engine *engine, bool serial, struct diag *diag)
{
    struct swpipe *pipe = engine->pipe;
    engine->functions = (struct run_functions){.has = has_function,
                                               .call = call_task,
                                               .skips = skips,
                                               .is_device_only = is_device_only,
                                               .begin_thread = engine_begin_thread,
                                               .end_thread = engine_end_thread,
                                               .arg = engine};
    struct run_config config = {.mode = pipe->on_caller ? RUN_ON_CALLER : RUN_DRIVEN,
                                .device = pipe->device,
                                .serial = serial,
                                .rendezvous = pipe->group ? pipe->group->rendezvous : NULL,
                                .graph = serial ? RUNTIME_GRAPH_OFF : pipe->graph,
                                .world = pipe->world,
                                .devices = pipe->devices,
                                .functions = &engine->functions,
                                .wait_ns = pipe->wait_ns,
                                .spin_ns = pipe->spin_ns};
    enum status status =
        serial ? STATUS_OK : policy_words_open(&engine->policy, engine, &config.chooser, diag);
    if (status)
        return status;
    engine->has_run = true;
    status = run_open(&engine->run, engine->program, &config, diag);
    if (status)
        return status;
    if (pipe->db)
        status = recording_open(&engine->recording, engine, serial, pipe->db, diag);
    if (status)
        return status;
    engine->has_threads = true;
    status = run_start_threads(&engine->run, diag);
    return status || !pipe->group ? status
                                  : watch_open(&engine->watch, pipe->group, &engine->run, diag);
}

/* Results of a task are put back only if all ranks have them. */
static enum done_by done_by(const struct swpipe *pipe, size_t task)
{
    size_t count = pipe->plan.pipeline.task_count;
    int first = pipe->first_rank, last = first + pipe->local_ranks;
    bool on = pipe->shortcuts[(size_t)first * count + task].on, saved = on;
    for (int rank = first; rank < last; rank++)
        saved = saved && pipe->shortcuts[(size_t)rank * count + task].saved;
    return saved && pipe->db ? BY_COPY : on || pipe->tasks[task].function ? BY_FUNCTION : BY_PLAN;
}

/* The plan as it is for the tasks that are functions, or short-cut. */
static enum status adapt_plan(struct engine *engine, struct diag *diag)
{
    const struct swpipe *pipe = engine->pipe;
    size_t count = pipe->plan.pipeline.task_count;
    enum done_by *by = ARENA_ARRAY(&engine->arena, count, enum done_by);
    engine->is_function = ARENA_ARRAY(&engine->arena, count, bool);
    if (!by || !engine->is_function)
        return diag_no_memory(diag);
    for (size_t t = 0; t < count; t++) {
        by[t] = done_by(pipe, t);
        engine->is_function[t] = by[t] != BY_PLAN;
    }
    return recording_plan(&pipe->plan, by, &engine->arena, &engine->plan) ? STATUS_OK
                                                                          : diag_no_memory(diag);
}

enum status engine_open(struct engine *engine, struct swpipe *pipe, bool serial, struct diag *diag)
{
    const struct program_options build = {.driver = serial ? DRIVER_CLOCK : pipe->driver,
                                          .iterations = PLAN_MAX_ITERATIONS,
                                          .ended_by_caller = true,
                                          .ranks = pipe->ranks,
                                          .max_depth = serial ? 0 : pipe->max_depth};
    assert(!engine->pipe && pipe->world);
    *engine = (struct engine){.pipe = pipe};
    arena_init(&engine->arena, 0);
    enum status status = adapt_plan(engine, diag);
    if (status)
        return status;
    engine->has_variant = true;
    status = variant_init(&engine->variant, &engine->plan, serial, pipe->device, diag);
    if (!status && serial && pipe->loose)
        engine->variant.plan.pipeline.retire = RETIRE_SUBMIT;
    if (!status && !serial && pipe->graph)
        variant_for_graphs(&engine->variant);
    if (!status)
        status = program_build(&engine->variant.plan, &build, &engine->program, diag);
    if (!status && !serial)
        atomic_store(&pipe->depth, engine->program->depth);
    if (!status)
        status = open_contexts(engine, serial, diag);
    if (!status)
        status = open_run(engine, serial, diag);
    return status;
}

int engine_first_rank(const struct engine *engine)
{
    return engine->pipe->first_rank;
}

int engine_end_rank(const struct engine *engine)
{
    return engine->pipe->first_rank + engine->pipe->local_ranks;
}

struct run_thread *engine_driver(const struct engine *engine, int rank)
{
    assert(rank >= engine_first_rank(engine) && rank < engine_end_rank(engine));
    return &engine->run.threads[engine->program->driver_thread[rank]];
}

int64_t engine_deadline(const struct engine *engine, int64_t limit_ns)
{
    return device_deadline(run_idle_now(&engine->run), limit_ns);
}

/* The threads end; where work is in flight, with an abort. */
static void stop_threads(struct engine *engine)
{
    bool through = true;
    for (int rank = engine_first_rank(engine); rank < engine_end_rank(engine); rank++) {
        struct run_thread *driver = engine_driver(engine, rank);
        through = through && drive_next(driver).next != POLICY_RETIRE &&
                  pump_through(driver, engine_deadline(engine, engine->pipe->progress_ns));
        drive_leave(driver);
    }
    char why[64] = "the pipeline is closed";
    if (engine->pipe->group)
        snprintf(why, sizeof why, "rank %d has closed its pipeline", engine->pipe->first_rank);
    if (!through)
        run_stop(&engine->run, why);
    run_join(&engine->run);
}

enum status engine_close(struct engine *engine, bool *usable, struct diag *diag)
{
    if (engine->has_threads)
        stop_threads(engine);
    watch_close(&engine->watch);
    recording_stop(&engine->recording, engine);
    *usable = !engine->has_threads || !run_stopped(&engine->run);
    if (engine->has_run) {
        engine->pipe->past_launches += graph_launches(&engine->run);
        run_close(&engine->run);
    }
    if (engine == &engine->pipe->pipelined)
        atomic_store(&engine->pipe->in_flight, 0);
    enum status status = recording_close(&engine->recording, &engine->pipe->recorded, diag);
    for (int i = 0; i < engine->iteration_count; i++)
        iteration_fini(&engine->iterations[i]);
    free(engine->iterations);
    turns_close(engine);
    free(engine->policy.ready);
    program_close(engine->program);
    if (engine->has_variant)
        variant_fini(&engine->variant);
    arena_fini(&engine->arena);
    *engine = (struct engine){0};
    return status;
}
