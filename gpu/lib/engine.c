/* SPDX-License-Identifier: Apache-2.0 */
/* engine.c - see engine.h. */
#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/keywords.h"

#include "gpu/exec/graph.h"
#include "swpipe_impl.h"

enum { MANY_ITERATIONS = 1 << 30 }; /* the most a program can have: the data ends before */

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
    if (engine->pipe->on_caller)
        device_restore_caller(engine->pipe->device, &engine->pipe->caller);
}

/* A thread of tasks begins, or ends. */
static bool begin_thread(void *arg, struct run_thread *self)
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

static void end_thread(void *arg, struct run_thread *self)
{
    struct engine *engine = arg;
    const struct swpipe_hooks *hooks = &engine->pipe->hooks;
    if (!hooks->stopped)
        return;
    enter_on_caller(engine, self->rank);
    hooks->stopped(hooks->arg, self->rank, engine->program->threads[self->index].name);
    leave_on_caller(engine);
}

static int run_task(struct swpipe_context *context)
{
    const struct swpipe_task *task = &context->engine->pipe->tasks[context->task];
    return task->function ? task->function(context, task->arg) : swpipe_work(context);
}

static int run_or_restore(struct swpipe_context *context)
{
    const struct engine *engine = context->engine;
    const struct swpipe_task *task = &engine->pipe->tasks[context->task];
    struct shortcut *shortcut = shortcut_of(engine, context->self->rank, context->task);
    if (shortcut->on && shortcut->saved)
        return shortcut_restore(shortcut, context, task);
    int failed = run_task(context);
    return failed || !shortcut->on ? failed : shortcut_save(shortcut, context, task);
}

static struct iteration *iteration_of(const struct engine *engine, int rank, int64_t iteration)
{
    int window = engine->program->window, here = rank - engine->pipe->first_rank;
    return &engine->iterations[here * window + (int)(iteration % window)];
}

static bool call_task(void *arg, struct run_thread *self, int task, int64_t iteration)
{
    struct engine *engine = arg;
    struct swpipe_context context = {.engine = engine,
                                     .self = self,
                                     .iteration = iteration_of(engine, self->rank, iteration),
                                     .task = task};
    enter_on_caller(engine, self->rank);
    int failed = run_or_restore(&context);
    leave_on_caller(engine);
    if (failed)
        run_fail(self->run, STATUS_VIOLATED, "%s(%lld) of rank %d failed: %s",
                 engine->program->plan->pipeline.tasks[task].name,
                 (long long)context.iteration->number, self->rank,
                 context.why[0] ? context.why : "its function says no more");
    return !failed && !run_stopped(self->run);
}

struct device_stream *engine_stream(const struct engine *engine, int rank, int task)
{
    const struct program *p = engine->program;
    const struct body *body = &p->bodies[rank * p->tasks + task];
    for (int i = 0; i < body->count; i++) /* every task records its event there */
        if (program_records_task(&p->ops[body->first + i]))
            return engine->run.streams[p->ops[body->first + i].stream].handle;
    return NULL;
}

/* ---- open ------------------------------------------------------------------------------------ */

static enum status open_contexts(struct engine *engine, struct diag *diag)
{
    const struct swpipe *pipe = engine->pipe;
    int ranks = pipe->local_ranks, window = engine->program->window;
    engine->iterations = calloc((size_t)(ranks * window), sizeof *engine->iterations);
    engine->feeds = calloc((size_t)ranks, sizeof *engine->feeds);
    if (!engine->iterations || !engine->feeds)
        return diag_no_memory(diag);
    for (int i = 0; i < ranks * window; i++, engine->iteration_count++)
        if (!iteration_init(&engine->iterations[i], pipe->first_rank + i / window,
                            &pipe->pools[pipe->first_rank + i / window]))
            return diag_no_memory(diag);
    for (int i = 0; i < ranks; i++)
        engine->feeds[i].prepared = -1;
    return STATUS_OK;
}

static enum status open_run(struct engine *engine, bool serial, struct diag *diag)
{
    struct swpipe *pipe = engine->pipe;
    engine->functions = (struct run_functions){.has = has_function,
                                               .call = call_task,
                                               .skips = skips,
                                               .is_device_only = is_device_only,
                                               .begin_thread = begin_thread,
                                               .end_thread = end_thread,
                                               .arg = engine};
    struct run_config config = {.device = pipe->device,
                                .serial = serial,
                                .timed = true,
                                .world = pipe->world,
                                .rendezvous = pipe->group ? pipe->group->rendezvous : NULL,
                                .devices = pipe->devices,
                                .driven = true,
                                .on_caller = pipe->on_caller,
                                .wait_ns = pipe->wait_ns,
                                .spin_ns = pipe->spin_ns,
                                .graph = serial ? RUNTIME_GRAPH_OFF : pipe->graph,
                                .functions = &engine->functions};
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
    if (!by)
        return diag_no_memory(diag);
    for (size_t t = 0; t < count; t++)
        by[t] = done_by(pipe, t);
    return recording_plan(&pipe->plan, by, &engine->arena, &engine->plan) ? STATUS_OK
                                                                          : diag_no_memory(diag);
}

enum status engine_open(struct engine *engine, struct swpipe *pipe, bool serial, struct diag *diag)
{
    const struct program_options build = {.driver = serial ? DRIVER_CLOCK : pipe->driver,
                                          .iterations = MANY_ITERATIONS,
                                          .ranks = pipe->ranks,
                                          .max_depth = serial ? 0 : pipe->max_depth};
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
        pipe->depth = engine->program->depth;
    if (!status)
        status = open_contexts(engine, diag);
    if (!status)
        status = open_run(engine, serial, diag);
    return status;
}

/* The ranks of this process: [first, end). */
static int first_rank(const struct engine *engine)
{
    return engine->pipe->first_rank;
}

static int end_rank(const struct engine *engine)
{
    return engine->pipe->first_rank + engine->pipe->local_ranks;
}

static int64_t deadline(const struct engine *engine, int64_t limit_ns)
{
    return device_deadline(run_idle_now(&engine->run), limit_ns);
}

/* The threads end; where work is in flight, with an abort. */
static void stop_threads(struct engine *engine)
{
    bool through = true;
    for (int rank = first_rank(engine); rank < end_rank(engine); rank++) {
        int64_t iteration;
        struct run_thread *driver = &engine->run.threads[engine->program->driver_thread[rank]];
        through = through && drive_next(driver, &iteration) != POLICY_RETIRE &&
                  pump_through(driver, deadline(engine, engine->pipe->progress_ns));
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
        engine->pipe->graph_launches += graph_launches(&engine->run);
        run_close(&engine->run);
    }
    enum status status = recording_close(&engine->recording, &engine->pipe->recorded, diag);
    for (int i = 0; i < engine->iteration_count; i++)
        iteration_fini(&engine->iterations[i]);
    free(engine->iterations);
    free(engine->feeds);
    policy_words_fini(&engine->policy);
    program_close(engine->program);
    if (engine->has_variant)
        variant_fini(&engine->variant);
    arena_fini(&engine->arena);
    *engine = (struct engine){0};
    return status;
}

/* ---- driving --------------------------------------------------------------------------------- */

static struct run_thread *driver_of(struct engine *engine, int rank)
{
    return &engine->run.threads[engine->program->driver_thread[rank]];
}

/* Why the run stopped. */
static enum status failure(struct engine *engine, struct diag *diag)
{
    struct run *run = &engine->run;
    pthread_mutex_lock(&run->lock);
    enum status status = run->failure ? run->failure : STATUS_SYSTEM;
    diag_error(diag, status, "%s", run->failure ? run->failure_text : "the pipeline was stopped");
    run_unlock(run);
    return status;
}

/* A batch that no iteration begins with. */
static void give_back(const struct engine *engine, int rank, void *batch)
{
    const struct swpipe_hooks *hooks = &engine->pipe->hooks;
    if (hooks->release)
        hooks->release(hooks->arg, rank, batch);
}

static void prepare(struct engine *engine, int rank, int64_t admitted, int64_t number, void *batch)
{
    struct iteration *iteration = iteration_of(engine, rank, admitted);
    iteration_clear(iteration); /* its device work is over: see make_room */
    iteration->number = number;
    iteration->batch = batch;
    engine->feeds[rank - engine->pipe->first_rank].prepared = admitted;
}

int engine_next(const struct swpipe_source *source, int rank, void **batch)
{
    int answer = source->next(source->arg, rank, batch);
    return answer == 0 || answer == 1 ? answer : -1;
}

/* Have the next iteration's context ready, if there is data for one; false: the source failed. */
static bool fetch(struct engine *engine, int rank, int64_t admitted,
                  const struct swpipe_source *source)
{
    struct feed *feed = &engine->feeds[rank - engine->pipe->first_rank];
    void *batch = NULL;
    if (feed->ended || feed->prepared == admitted)
        return true;
    int more = source ? engine_next(source, rank, &batch) : 0;
    if (more < 0) {
        run_fail(&engine->run, STATUS_VIOLATED, "the source failed for iteration %lld of rank %d",
                 (long long)admitted, rank);
        return false;
    }
    if (engine->pipe->group) {
        bool all;
        bool agreed = group_agree(engine->pipe->group, &engine->run, admitted, !more, &all);
        if (more && !(agreed && all))
            give_back(engine, rank, batch);
        if (!agreed)
            return false;
        more = all;
    }
    if (more) {
        prepare(engine, rank, admitted, admitted, batch);
        if (engine->pipe->hooks.release)
            iteration_of(engine, rank, admitted)->owner = &engine->pipe->hooks;
    } else {
        feed->ended = true;
        drive_end_data(driver_of(engine, rank));
        if (engine->pipe->group)
            group_end_run(engine->pipe->group, admitted);
    }
    return true;
}

bool engine_agree(struct engine *engine, int64_t number, bool ended, bool *all, struct diag *diag)
{
    if (group_agree(engine->pipe->group, &engine->run, number, ended, all))
        return true;
    (void)failure(engine, diag);
    return false;
}

static enum status advance_rank(struct engine *engine, int rank, const struct swpipe_source *source,
                                int64_t limit_ns, struct diag *diag)
{
    struct run_thread *driver = driver_of(engine, rank);
    int64_t iteration;
    while (drive_next(driver, &iteration) == POLICY_ENQUEUE) {
        int64_t admitted = drive_admitted(driver);
        if (!drive_make_room(driver, admitted, deadline(engine, limit_ns)) ||
            !fetch(engine, rank, admitted, source))
            return failure(engine, diag);
        if (drive_next(driver, &iteration) == POLICY_ENQUEUE && !drive_enqueue(driver))
            return failure(engine, diag);
    }
    (void)pump_rank(&engine->run,
                    rank); /* what the retirement has made possible, if nothing was enqueued */
    return run_stopped(&engine->run) ? failure(engine, diag) : STATUS_OK;
}

enum status engine_advance(struct engine *engine, const struct swpipe_source *source,
                           int64_t limit_ns, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int rank = first_rank(engine); rank < end_rank(engine) && !status; rank++)
        status = advance_rank(engine, rank, source, limit_ns, diag);
    return status;
}

/* Once: a result is handed out that the device may still be at. */
static void tell_early_result(struct swpipe *pipe, enum retire_rule rule)
{
    char text[512];
    if (pipe->told_early || !pipe->message || rule == RETIRE_DEVICE)
        return;
    pipe->told_early = true;
    snprintf(text, sizeof text,
             "%s: a result (swpipe_set_result) is handed out when its iteration is retired, which "
             "under 'retire: %s' is not when its device work is done: what the device computes may "
             "be missing in it; 'retire: device' in the plan waits for that\n",
             pipe->plan.file, keywords_retire[rule]);
    pipe->message(pipe->message_arg, text);
}

static void tell_retired(struct engine *engine, const struct iteration *iteration)
{
    if (iteration->result)
        tell_early_result(engine->pipe, engine->program->plan->pipeline.retire);
    const struct swpipe_hooks *hooks = &engine->pipe->hooks;
    const struct swpipe_retired retired = {iteration->number, iteration->rank, iteration->batch,
                                           iteration->result};
    engine->pipe->results[iteration->rank] = iteration->result;
    if (hooks->retired)
        hooks->retired(hooks->arg, &retired);
}

int engine_in_flight(const struct engine *engine)
{
    int rank = engine->pipe->first_rank;
    struct run_thread *driver = &engine->run.threads[engine->program->driver_thread[rank]];
    return (int)(drive_admitted(driver) - engine->retired);
}

enum status engine_retire(struct engine *engine, int64_t limit_ns, int64_t *iteration,
                          struct diag *diag)
{
    bool finished = engine->program->plan->pipeline.retire == RETIRE_DEVICE;
    int64_t until_ns = deadline(engine, limit_ns);
    *iteration = -1;
    for (int rank = first_rank(engine); rank < end_rank(engine); rank++) {
        struct run_thread *driver = driver_of(engine, rank);
        int64_t oldest;
        if (drive_next(driver, &oldest) != POLICY_RETIRE)
            continue;
        if (!drive_retire(driver, oldest, until_ns))
            return failure(engine, diag);
        struct iteration *context = iteration_of(engine, rank, oldest);
        *iteration = context->number;
        engine->retired += rank == first_rank(engine);
        tell_retired(engine, context);
        if (finished)
            iteration_clear(context);
        if (engine->recording.journal)
            journal_throttle(engine->recording.journal);
    }
    return STATUS_OK;
}

enum status engine_single(struct engine *engine, void *const *batches, int64_t number,
                          int64_t limit_ns, struct diag *diag)
{
    int64_t iteration;
    for (int rank = first_rank(engine); rank < end_rank(engine); rank++) {
        struct run_thread *driver = driver_of(engine, rank);
        int64_t admitted = drive_admitted(driver);
        if (!drive_make_room(driver, admitted, deadline(engine, limit_ns)))
            return failure(engine, diag);
        prepare(engine, rank, admitted, number,
                batches ? batches[rank - first_rank(engine)] : NULL);
        if (!drive_enqueue(driver))
            return failure(engine, diag);
    }
    return engine_retire(engine, limit_ns, &iteration, diag);
}

enum status engine_sync(struct engine *engine, int64_t limit_ns, struct diag *diag)
{
    int64_t until_ns = deadline(engine, limit_ns);
    for (int rank = first_rank(engine); rank < end_rank(engine); rank++)
        if (!drive_sync(driver_of(engine, rank), until_ns))
            return failure(engine, diag);
    return STATUS_OK;
}
