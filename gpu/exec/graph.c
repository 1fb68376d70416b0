/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.c - see graph.h: the conditions, the order, capture, submit and launch, the end.
 *
 * The order of a period's tasks is found once, by repeated choice of the first task in enqueue order that is
 * the next of its worker, has its ticket's turn, and has its dependences within the period done. Dependences
 * on earlier periods are submitted when a period begins. A task that is never chosen waits for a later period
 * or for itself: then one launch cannot hold the period.
 */
#include "graph.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert_index.h"

/* The graph of the periods that are `phase` mod phases. */
struct phase {
    struct device_graph *handle; /* NULL: not captured yet */
    int *places;                 /* [stamps of the graph]: where in it they are */
};

struct graph_kept {
    int thread;
    struct instance instance;
};

enum activity { IDLE, EXPECTING, CAPTURING, REPLAYING };

struct rank_graphs {
    int phases;
    struct phase *items; /* [phases] */
    int *order;          /* [tasks]: in which they are submitted */
    int max_stage;       /* of this rank */
    struct device_stream **streams;
    size_t stream_count;
    struct device_buffer *numbers; /* pinned: [tasks][phases] of DIGEST_BYTES */

    _Atomic(enum activity)
        activity;            /* the driver's; workers that are not handed a graph look at it */
    struct graph_kept *kept; /* [tasks] of the period being handed out */
    struct phase *now;       /* CAPTURING, REPLAYING */
    int64_t first;           /* REPLAYING: number of the graph's first operation */
    struct stamp **stamps;
    size_t stamp_count; /* of the period so far */

    bool given_up;
    char why[400];
    int64_t captured, launches, periods;
};

/* ---- conditions ------------------------------------------------------------------------------ */

static const struct task *graph_task_of(const struct program *p, int rank, int task)
{
    return plan_task(p->plan, rank, task);
}

/* Whether the dependence's instance is one of a period before (< 0), of the same one (0), or of a later one (> 0). */
static int period_of(const struct program *p, int rank, int task, const struct edge *on)
{
    return graph_task_of(p, rank, on->task)->stage - graph_task_of(p, rank, task)->stage -
           on->distance;
}

static bool graph_is_ready(const struct program *p, int rank, int task, const bool *done)
{
    ASSERT_INDEX(task, p->tasks);
    const struct edge_list *depends = &p->depends[task];
    for (int i = 0; i < depends->count; i++) {
        int period = period_of(p, rank, task, &depends->items[i]);
        if (period > 0 || (period == 0 && !done[depends->items[i].task]))
            return false;
    }
    return true;
}

/* True if this task must come first, because it is before `task` in the same queue, or in the order of tickets. */
static bool graph_comes_first(const struct program *p, int rank, int before, int task)
{
    const int *worker = p->worker + rank * p->tasks, *ticket = p->ticket_position + rank * p->tasks;
    return worker[before] == worker[task] || (ticket[before] >= 0 && ticket[task] >= 0);
}

/* The next task of the period; -1: none can be. */
static int next_task(const struct program *p, int rank, const bool *done)
{
    for (int k = 0; k < p->tasks; k++) {
        int task = p->order[rank][k];
        bool held = done[task] || !graph_is_ready(p, rank, task, done);
        for (int i = 0; i < k && !held; i++)
            held = !done[p->order[rank][i]] && graph_comes_first(p, rank, p->order[rank][i], task);
        if (!held)
            return task;
    }
    return -1;
}

/* False: `done` says how far it came. */
static bool find_order(const struct program *p, int rank, bool *done, int *order)
{
    for (int k = 0; k < p->tasks; k++) {
        int task = next_task(p, rank, done);
        if (task < 0)
            return false;
        done[task] = true;
        order[k] = task;
    }
    return true;
}

/* The agents that a period without an order waits for. */
static void tell_stuck(const struct program *p, int rank, const bool *done,
                       struct rank_graphs *graphs)
{
    const struct task *tasks = p->plan->pipeline.tasks;
    for (int task = 0; task < p->tasks; task++)
        for (int i = 0; i < p->depends[task].count; i++) {
            const struct edge *on = &p->depends[task].items[i];
            if (done[task] || period_of(p, rank, task, on) <= 0)
                continue;
            snprintf(graphs->why, sizeof graphs->why, "%s waits for %s of a later period",
                     tasks[task].name, tasks[on->task].name);
            return;
        }
    snprintf(graphs->why, sizeof graphs->why,
             "the tasks of a period wait for each other in the order they are handed out in");
}

/* The demand of the plan that a period launched at once cannot meet; NULL: none. */
static const char *obstacle_of_plan(const struct run *run)
{
    const struct program *p = run->program;
    const struct pipeline *pipeline = &p->plan->pipeline;
    const struct machine_spec *machine = &p->plan->machine;
    if (p->tasks == 0)
        return "only plans of the pipeline form have periods";
    if (p->driver != DRIVER_CLOCK)
        return "the data-flow driver has no periods";
    if (run_is_forced(run))
        return "a witness is replayed step by step";
    if (pipeline->retire != RETIRE_DEVICE)
        return "retire is not 'device': a graph would be launched again while it may still run";
    if (pipeline->slot_reset != SLOT_RESET_ADMIT)
        return "slot_reset is not 'admit': the slots of a period change while it is submitted";
    if (!p->slots_safe)
        return "num_slots is too small: a period may find the slots of another one";
    if (pipeline->retired_dep != RETIRED_DEP_WAIT)
        return "retired_dep is 'skip': what a period waits for depends on what has been retired";
    if (machine->launch_queue > 0)
        return "machine.launch_queue: a launch queue does not hold a whole period";
    if (machine->first_use_blocks)
        return "machine.first_use_blocks: threads of several ranks meet inside a period";
    if (plan_legacy_stream(p->plan))
        return "streams: a capture does not end before the legacy stream waits for another";
    if (machine->lazy_load)
        return "machine.lazy_load: the host waits for an idle device inside a period";
    return NULL;
}

/* Why an operation cannot be part of a launch; NULL: it can. */
static const char *obstacle_of_op(const struct run *run, const struct op *op)
{
    const struct run_functions *functions = run->config.functions;
    if (op->kind == OP_SYNC)
        return "the host waits for the device in it (host_sync, sync_after, or a pageable copy)";
    if (run_has_function(run, op->task) && !functions->is_device_only(functions->arg, op->task))
        return "its function is not said to be device_only, or the run is recorded";
    return NULL;
}

/* The reason why this rank can have no graphs goes to `why`; false: there is none. */
static bool obstacle_of_rank(const struct run *run, int rank, char *why, size_t size)
{
    const struct program *p = run->program;
    for (int task = 0; task < p->tasks; task++) {
        const struct body *body = &p->bodies[rank * p->tasks + task];
        if (plan_task(p->plan, rank, task)->host_after_ns > 0) {
            snprintf(why, size, "%s: CPU work goes on beside its device work (host_after)",
                     p->plan->pipeline.tasks[task].name);
            return true;
        }
        for (int i = 0; i < body->count; i++) {
            const char *obstacle = obstacle_of_op(run, &p->ops[body->first + i]);
            if (!obstacle)
                continue;
            snprintf(why, size, "%s: %s", p->plan->pipeline.tasks[task].name, obstacle);
            return true;
        }
    }
    return false;
}

static int phases_of(const struct run *run)
{
    const struct program *p = run->program;
    bool alternates = false;
    for (size_t i = 0; i < p->op_count; i++)
        alternates = alternates || work_alternates(run, &p->ops[i]);
    return p->slots % 2 && alternates ? 2 * p->slots : p->slots;
}

/* ---- open and close -------------------------------------------------------------------------- */

static int op_count(const struct program *p, int rank)
{
    int count = 0;
    for (int task = 0; task < p->tasks; task++)
        count += p->bodies[rank * p->tasks + task].count;
    return count;
}

/* False: no memory. */
static bool graph_allocate(const struct run *run, int rank, struct rank_graphs *graphs)
{
    const struct program *p = run->program;
    size_t tasks = (size_t)p->tasks, ops = (size_t)op_count(p, rank);
    graphs->phases = phases_of(run);
    graphs->items = calloc((size_t)graphs->phases, sizeof *graphs->items);
    graphs->order = calloc(tasks, sizeof *graphs->order);
    graphs->kept = calloc(tasks, sizeof *graphs->kept);
    graphs->stamps = calloc(ops, sizeof(struct stamp *));
    graphs->streams = calloc((size_t)p->stream_count, sizeof(struct device_stream *));
    return graphs->items && graphs->order && graphs->kept && graphs->stamps && graphs->streams;
}

/* One rank's own: STATUS_USAGE with the reason in `why` when its tasks stand in each other's way. */
static enum status graph_prepare(const struct run *run, int rank, struct rank_graphs *graphs)
{
    const struct program *p = run->program;
    bool *done = calloc((size_t)p->tasks, sizeof *done);
    if (!done || !graph_allocate(run, rank, graphs)) {
        free(done);
        return STATUS_SYSTEM;
    }
    bool found = find_order(p, rank, done, graphs->order);
    if (!found)
        tell_stuck(p, rank, done, graphs);
    free(done);
    for (int task = 0; task < p->tasks; task++)
        if (graph_task_of(p, rank, task)->stage > graphs->max_stage)
            graphs->max_stage = graph_task_of(p, rank, task)->stage;
    for (int s = 0; s < p->stream_count; s++)
        if (p->streams[s].rank == rank)
            graphs->streams[graphs->stream_count++] = run->streams[s].handle;
    return found ? STATUS_OK : STATUS_USAGE;
}

static enum status graph_open_rank(struct run *run, int rank, char *why, size_t size,
                                   struct diag *diag)
{
    const struct program *p = run->program;
    struct rank_graphs *graphs = calloc(1, sizeof *graphs);
    if (!graphs)
        return diag_no_memory(diag);
    run->ranks[rank].graphs = graphs;
    enum status status = graph_prepare(run, rank, graphs);
    if (status == STATUS_SYSTEM)
        return diag_no_memory(diag);
    if (status) {
        snprintf(why, size, "%s", graphs->why);
        return status;
    }
    return device_alloc(run->ranks[rank].device, MEMORY_PINNED,
                        (size_t)(p->tasks * graphs->phases) * DIGEST_BYTES, &graphs->numbers, diag);
}

/* STATUS_USAGE: the reason is in `why`. */
static enum status graph_open_ranks(struct run *run, char *why, size_t size, struct diag *diag)
{
    const char *obstacle = obstacle_of_plan(run);
    enum status status = STATUS_OK;
    if (!obstacle && phases_of(run) > GRAPH_MAX_PHASES) {
        snprintf(why, size, "its iterations take turns in %d places, more than %d graphs",
                 phases_of(run), GRAPH_MAX_PHASES);
        return STATUS_USAGE;
    }
    if (obstacle) {
        snprintf(why, size, "%s", obstacle);
        return STATUS_USAGE;
    }
    for (int rank = run_first_rank(run); rank < run_last_rank(run) && !status; rank++) {
        if (obstacle_of_rank(run, rank, why, size))
            return STATUS_USAGE;
        status = graph_open_rank(run, rank, why, size, diag);
    }
    return status;
}

static void close_rank(struct rank_graphs *graphs)
{
    if (!graphs)
        return;
    for (int i = 0; graphs->items && i < graphs->phases; i++) {
        device_graph_close(graphs->items[i].handle);
        free(graphs->items[i].places);
    }
    device_free(graphs->numbers);
    free(graphs->items);
    free(graphs->order);
    free(graphs->kept);
    free(graphs->streams);
    free(graphs->stamps);
    free(graphs);
}

void graph_close(struct run *run)
{
    for (int rank = 0; run->ranks && rank < run->program->ranks; rank++) {
        close_rank(run->ranks[rank].graphs);
        run->ranks[rank].graphs = NULL;
    }
}

enum status graph_open(struct run *run, struct diag *diag)
{
    char why[400] = "";
    if (run->config.graph == RUNTIME_GRAPH_OFF)
        return STATUS_OK;
    enum status status = graph_open_ranks(run, why, sizeof why, diag);
    if (status != STATUS_USAGE) {
        run->config.instances = status ? run->config.instances : run->program->slots;
        return status;
    }
    graph_close(run);
    if (run->config.graph == RUNTIME_GRAPH_REQUIRE)
        return diag_error(diag, STATUS_USAGE, "%s: no graphs: %s", run->program->plan->name, why);
    diag_note(diag, "no graphs: %s", why);
    return STATUS_OK;
}

int64_t graph_launches(const struct run *run)
{
    int64_t launches = 0;
    for (int rank = 0; run->ranks && rank < run->program->ranks; rank++)
        launches += run->ranks[rank].graphs ? run->ranks[rank].graphs->launches : 0;
    return launches;
}

void graph_report(const struct run *run, struct runtime_result *result, struct diag *diag)
{
    result->graph.launches = graph_launches(run);
    for (int rank = run_first_rank(run); rank < run_last_rank(run); rank++) {
        const struct rank_graphs *graphs = run->ranks[rank].graphs;
        if (!graphs)
            continue;
        result->graph.graphs += graphs->captured;
        result->graph.periods += graphs->periods;
        if (graphs->given_up)
            diag_note(diag, "rank %d: no graphs from a period on: %s", rank, graphs->why);
    }
}

/* ---- the period that comes ------------------------------------------------------------------- */

bool graph_takes(struct run *run, int rank, int64_t admitted)
{
    const struct program *p = run->program;
    const struct rank_graphs *graphs = run->ranks[rank].graphs;
    int64_t before = p->max_distance > 0 ? p->max_distance : 1;
    return graphs && !graphs->given_up && admitted < run->ranks[rank].end &&
           admitted + p->min_stage - graphs->max_stage >= before;
}

bool graph_is_quiet(struct run_thread *driver)
{
    struct run_rank *rank = &driver->run->ranks[driver->rank];
    if (rank->handed_out > 0)
        run_block(driver, &rank->handed_out);
    return rank->handed_out == 0;
}

void graph_expect(struct run *run, int rank, bool as_graph)
{
    struct rank_graphs *graphs = run->ranks[rank].graphs;
    if (!graphs)
        return;
    graphs->periods++;
    graphs->activity = as_graph ? EXPECTING : IDLE;
}

bool graph_keeps(struct run *run, int rank, int thread, const struct instance *instance)
{
    struct rank_graphs *graphs = run->ranks[rank].graphs;
    if (!graphs || graphs->activity != EXPECTING)
        return false;
    assert(run->threads[thread].rank == rank);
    graphs->kept[instance->task] = (struct graph_kept){thread, *instance};
    return true;
}

bool graph_replays(const struct run *run, int rank)
{
    return run->ranks[rank].graphs && run->ranks[rank].graphs->activity == REPLAYING;
}

bool graph_captures(const struct run *run, int rank)
{
    return run->ranks[rank].graphs && run->ranks[rank].graphs->activity == CAPTURING;
}

struct device_ref graph_numbers(const struct run *run, int rank, int task, int64_t iteration)
{
    const struct rank_graphs *graphs = run->ranks[rank].graphs;
    size_t place = (size_t)task * (size_t)graphs->phases + (size_t)(iteration % graphs->phases);
    return (struct device_ref){graphs->numbers, place * (size_t)DIGEST_BYTES};
}

/* ---- capture --------------------------------------------------------------------------------- */

/* The push of an operation, if it is one; its place in the graph is noted where it is to have a stamp. */
static enum status graph_capture_op(struct run_thread *worker, struct rank_graphs *graphs,
                                    const struct op *op, int64_t iteration, struct diag *diag)
{
    struct run *run = worker->run;
    struct device_stream *stream = op->stream >= 0 ? run->streams[op->stream].handle : NULL;
    struct stamp place, *stamp = worker->log ? &place : NULL;
    enum status status = STATUS_OK;
    if (!op_pushes(op->kind))
        return STATUS_OK;
    if (op_is_device_work(op->kind))
        status = work_push(run, op, iteration, stamp, diag);
    else if (op->kind == OP_RECORD)
        status = device_record(stream, run->events[run_instance(run, op, iteration)], stamp, diag);
    else /* a task allocates nothing and has no callbacks */
        status = device_wait(stream, run->events[run_instance(run, op, iteration)], stamp, diag);
    if (!status && stamp)
        graphs->now->places[graphs->stamp_count++] = (int)place.number;
    return status;
}

/* STATUS_VIOLATED without a word: the run has stopped. */
static enum status capture_task(struct run *run, struct rank_graphs *graphs,
                                const struct graph_kept *kept, struct diag *diag)
{
    const struct program *p = run->program;
    const struct run_functions *functions = run->config.functions;
    struct run_thread *worker = &run->threads[kept->thread];
    int task = kept->instance.task;
    bool is_function = run_has_function(run, task);
    const struct body *body = &p->bodies[worker->rank * p->tasks + task];
    enum status status = STATUS_OK;
    worker->current = kept->instance;
    for (int i = 0; i < body->count && !status; i++) {
        const struct op *op = &p->ops[body->first + i];
        if (!is_function || !worker_is_work(op))
            status = graph_capture_op(worker, graphs, op, kept->instance.iteration, diag);
        else if (run->ops[op - p->ops].is_call &&
                 !functions->call(functions->arg, worker, task, kept->instance.iteration))
            status = STATUS_VIOLATED;
    }
    return status;
}

/* Have the device keep what the kept instances push. What fails leaves the phase without a graph. */
static enum status graph_capture(struct run *run, int rank, struct phase *phase, struct diag *diag)
{
    struct rank_graphs *graphs = run->ranks[rank].graphs;
    struct device *device = run->ranks[rank].device;
    if (!phase->places)
        phase->places = calloc((size_t)op_count(run->program, rank), sizeof *phase->places);
    if (!phase->places)
        return diag_no_memory(diag);
    enum status status = device_graph_begin(device, graphs->streams, graphs->stream_count, diag);
    if (status)
        return status;
    assert(graphs->activity == IDLE && !phase->handle);
    graphs->activity = CAPTURING;
    graphs->now = phase;
    graphs->stamp_count = 0;
    for (int k = 0; k < run->program->tasks && !status; k++)
        status = capture_task(run, graphs, &graphs->kept[graphs->order[k]], diag);
    graphs->activity = IDLE;
    enum status ended = device_graph_end(device, status ? NULL : &phase->handle, diag);
    graphs->captured += !status && !ended;
    return status ? status : ended;
}

/* ---- submit and launch ----------------------------------------------------------------------- */

void graph_count(struct run *run, int rank, struct stamp *stamp)
{
    struct rank_graphs *graphs = run->ranks[rank].graphs;
    if (!stamp)
        return;
    assert(graphs->stamp_count < device_graph_stamps(graphs->now->handle));
    stamp->number = graphs->first + graphs->now->places[graphs->stamp_count];
    stamp->pushed_from_ns = stamp->pushed_by_ns = run_now(run); /* the launch is the next step */
    graphs->stamps[graphs->stamp_count++] = stamp;
}

/* The driver does the work of the workers. */
static bool submit(struct run *run, struct rank_graphs *graphs)
{
    bool done = true;
    assert(graphs->activity == IDLE);
    graphs->activity = REPLAYING;
    graphs->stamp_count = 0;
    for (int k = 0; k < run->program->tasks && done; k++) {
        const struct graph_kept *kept = &graphs->kept[graphs->order[k]];
        run->threads[kept->thread].current = kept->instance;
        done = worker_submit(&run->threads[kept->thread]);
    }
    graphs->activity = IDLE;
    return done;
}

static bool launch(struct run *run, int rank, struct phase *phase, struct diag *diag)
{
    struct rank_graphs *graphs = run->ranks[rank].graphs;
    graphs->now = phase;
    if (!run_check(run, device_graph_arm(phase->handle, &graphs->first, diag), diag) ||
        !submit(run, graphs))
        return false;
    assert(graphs->stamp_count == device_graph_stamps(phase->handle));
    graphs->launches++;
    return run_check(run, device_graph_launch(phase->handle, graphs->stamps, diag), diag);
}

/* No graph after all: the workers get what was kept. */
static bool graph_hand_on(struct run *run, int rank, const struct diag *diag)
{
    struct rank_graphs *graphs = run->ranks[rank].graphs;
    graphs->given_up = true;
    snprintf(graphs->why, sizeof graphs->why, "%s",
             diag->count ? diag->messages[0].text : "out of memory");
    pthread_mutex_lock(&run->lock);
    for (int k = 0; k < run->program->tasks; k++) {
        const struct graph_kept *kept = &graphs->kept[run->program->order[rank][k]];
        run_give(run, kept->thread, &kept->instance);
    }
    run_unlock(run);
    return true;
}

bool graph_submit(struct run_thread *driver, int64_t period)
{
    struct run *run = driver->run;
    int rank = driver->rank;
    struct rank_graphs *graphs = run->ranks[rank].graphs;
    struct phase *phase = &graphs->items[period % graphs->phases];
    struct diag diag;
    enum status status = STATUS_OK;
    bool done;
    graphs->activity = IDLE;
    run_unlock(run);
    diag_init(&diag);
    if (!phase->handle)
        status = graph_capture(run, rank, phase, &diag);
    if (!status)
        done = launch(run, rank, phase, &diag);
    else if (run_stopped(run) || device_world_status(run->world, NULL) ||
             run->config.graph == RUNTIME_GRAPH_REQUIRE)
        done = run_check(run, status, &diag);
    else
        done = graph_hand_on(run, rank, &diag);
    diag_fini(&diag);
    pthread_mutex_lock(&run->lock);
    return done;
}
