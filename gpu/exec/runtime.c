/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime.c - see runtime.h: one run from plan to result.
 *
 *     plan -> variant (what the device can do; serial) -> program -> run -> journal -> result
 *                                                            `-> reference run -> same results?
 *
 * The reference that results are compared with is a serial run that only moves data.
 */
#include "runtime.h"
#include "graph.h"
#include "layers.h"
#include "ranks.h"
#include "run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plan/order.h"
#include "plan/strip_device_rules.h"

/* ---- the plan as it is run ------------------------------------------------------------------- */

static struct task *serial_tasks(struct arena *arena, const struct task *tasks, size_t count)
{
    struct task *copy = ARENA_ARRAY(arena, count, struct task);
    for (size_t i = 0; copy && i < count; i++) {
        copy[i] = tasks[i];
        copy[i].stage = copy[i].stream = copy[i].group = 0;
    }
    return copy;
}

static bool serial_overrides(struct arena *arena, struct pipeline *pipeline)
{
    struct rank_override *copy = ARENA_ARRAY(arena, pipeline->override_count, struct rank_override);
    for (size_t i = 0; copy && i < pipeline->override_count; i++) {
        copy[i] = pipeline->overrides[i];
        copy[i].has_order = false;
        if (copy[i].tasks)
            copy[i].tasks = serial_tasks(arena, copy[i].tasks, pipeline->task_count);
        if (pipeline->overrides[i].tasks && !copy[i].tasks)
            return false;
    }
    pipeline->overrides = copy;
    return copy;
}

/* One task after another, on one stream a rank. */
static enum status runtime_make_serial(struct variant *variant, const struct plan *plan,
                                       struct diag *diag)
{
    struct pipeline *pipeline = &variant->plan.pipeline;
    const char **name = ARENA_ARRAY(&variant->arena, 1, const char *);
    int *order = ARENA_ARRAY(&variant->arena, pipeline->task_count, int);
    pipeline->tasks = serial_tasks(&variant->arena, pipeline->tasks, pipeline->task_count);
    if (!name || !order || !pipeline->tasks || !serial_overrides(&variant->arena, pipeline))
        return diag_no_memory(diag);
    enum status status = order_topological(plan, order, diag);
    if (status)
        return status;
    pipeline->order = (struct order_spec){.kind = ORDER_EXPLICIT,
                                          .tasks = {.items = order, .count = pipeline->task_count}};
    pipeline->depth = pipeline->max_depth = 1;
    pipeline->num_slots_given = false;
    pipeline->retire = RETIRE_DEVICE;
    pipeline->slot_reset = SLOT_RESET_ADMIT;
    pipeline->elide_same_stream = false;
    variant->plan.machine.launch_queue = 0;
    *name = "serial";
    variant->plan.streams = (struct names){.items = name, .count = 1};
    variant->plan.groups = variant->plan.streams;
    return STATUS_OK;
}

enum status variant_init(struct variant *variant, const struct plan *plan, bool serial,
                         enum device_kind device, struct diag *diag)
{
    variant->plan = *plan;
    arena_init(&variant->arena, 0);
    if (!plan_strip_device_rules(&variant->plan, &variant->arena, device == DEVICE_KIND_CUDA, diag))
        return diag_no_memory(diag);
    return serial ? runtime_make_serial(variant, plan, diag) : STATUS_OK;
}

void variant_for_graphs(struct variant *variant)
{
    if (variant->plan.form == FORM_PIPELINE && variant->plan.pipeline.retire == RETIRE_SUBMIT)
        variant->plan.pipeline.retire = RETIRE_DEVICE;
}

void variant_fini(struct variant *variant)
{
    arena_fini(&variant->arena);
}

/* ---- blocked agents, without a machine ------------------------------------------------------- */

static bool runtime_describe_place(const struct run *run, const struct run_thread *thread,
                                   int64_t at, struct arena *arena, struct runtime_blocked *out)
{
    const struct program *p = run->program;
    char name[160], subject[160];
    program_agent_name(p, program_thread_agent(p, thread->index), name, sizeof name);
    out->rank = thread->rank;
    out->agent = arena_strdup(arena, name);
    if (p->threads[thread->index].kind == THREAD_DRIVER) {
        out->waits_for = arena_printf(arena, "waits for iteration %" PRId64 " to finish", at);
        return out->agent && out->waits_for;
    }
    const struct op *op = &p->ops[at >> 32];
    program_op_subject(p, op, at & INT32_MAX, subject, sizeof subject);
    out->waits_for = arena_printf(arena, "is at '%s' of %s", op_key(op->kind), subject);
    return out->agent && out->waits_for;
}

static enum status tell_places(struct run *run, struct runtime_result *result, struct diag *diag)
{
    int count = run->program->thread_count;
    result->blocked = ARENA_ARRAY(&result->arena, (size_t)count + 1, struct runtime_blocked);
    if (!result->blocked)
        return diag_no_memory(diag);
    for (int t = 0; t < count; t++) {
        int64_t at = atomic_load(&run->threads[t].at);
        if (at >= 0 && run_has(run, run->threads[t].rank) &&
            !runtime_describe_place(run, &run->threads[t], at, &result->arena,
                                    &result->blocked[result->blocked_count++]))
            return diag_no_memory(diag);
    }
    return STATUS_OK;
}

static int64_t timeout_of(const struct runtime_options *options)
{
    return options->timeout_ns ? options->timeout_ns : RUNTIME_TIMEOUT_NS;
}

/* ---- a run ----------------------------------------------------------------------------------- */

static enum status open_journal(struct run *run, const struct runtime_options *options,
                                struct device ***devices, struct diag *diag)
{
    const struct program *p = run->program;
    *devices = calloc((size_t)p->ranks, sizeof **devices);
    if (!*devices)
        return diag_no_memory(diag);
    for (int rank = 0; rank < p->ranks; rank++)
        (*devices)[rank] = run->ranks[rank].device;
    const struct journal_config config = {.program = p,
                                          .options = options,
                                          .world = run->world,
                                          .devices = *devices,
                                          .rendezvous = run->config.rendezvous};
    enum status status = journal_open(&config, &run->journal, diag);
    for (int t = 0; t < p->thread_count && !status; t++)
        run->threads[t].log = journal_log(run->journal, t);
    return status;
}

/* Start to end; *end says how it ended. */
static enum status runtime_perform(struct run *run, enum watch_end *end, struct diag *diag)
{
    enum status status = run_start_threads(run, diag);
    *end = WATCH_FAILED;
    if (!status) {
        *end = watch_run(run, diag);
        status = *end == WATCH_FAILED                         ? run->failure
                 : *end == WATCH_HUNG || *end == WATCH_BEREFT ? STATUS_VIOLATED
                                                              : STATUS_OK;
    }
    run_join(run);
    return status;
}

static enum status runtime_first_of(enum status a, enum status b)
{
    return a ? a : b;
}

static enum status runtime_interrupted(const struct run *run, struct diag *diag)
{
    bool drained = !atomic_load(&run->stopped);
    return diag_error(diag, STATUS_VIOLATED, "interrupted%s",
                      drained ? ": what was in flight has finished" : "");
}

/* Where the run came to, and with replay whether it got there legally. */
static enum status runtime_conclude(struct run *run, enum watch_end end, int64_t duration_ns,
                                    struct runtime_result *result, struct diag *diag)
{
    const struct program *p = run->program;
    int64_t *ends = calloc((size_t)p->ranks, sizeof *ends);
    if (!ends)
        return diag_no_memory(diag);
    for (int rank = 0; rank < p->ranks; rank++)
        ends[rank] = run->ranks[rank].end;
    result->finished = end == WATCH_FINISHED;
    result->interrupted = end == WATCH_INTERRUPTED;
    result->hung = end == WATCH_HUNG;
    result->peer_died = end == WATCH_BEREFT;
    result->local.complete = !atomic_load(&run->stopped);
    result->local.end = ends[run_first_rank(run)];
    result->duration_ns = duration_ns;
    const struct journal_end how = {.complete = !atomic_load(&run->stopped),
                                    .interrupted = result->interrupted,
                                    .ends = ends,
                                    .duration_ns = duration_ns};
    enum status status = journal_end(run->journal, &how, result, diag);
    free(ends);
    if ((result->hung || result->peer_died) && result->blocked_count == 0 &&
        (!status || status == STATUS_VIOLATED)) {
        enum status told = tell_places(run, result, diag);
        status = told ? told : status;
    }
    return status;
}

/* Operations are counted from the start of the run; opening it has pushed one to each stream. */
static enum status runtime_inject(struct run *run, const struct runtime_options *options,
                                  struct diag *diag)
{
    int64_t number = options->inject.number;
    if (!options->inject.given || !run_has(run, options->inject.rank))
        return STATUS_OK;
    for (int s = 0; s < run->program->stream_count; s++)
        number += run->program->streams[s].rank == options->inject.rank;
    number += layers_pushes(run);
    return device_inject(run->ranks[options->inject.rank].device, number, STATUS_VIOLATED, diag);
}

/* All ranks start together; the keeper of the log is informed first. */
static enum status begin_together(struct run *run, struct diag *diag)
{
    struct rendezvous *rendezvous = run->config.rendezvous;
    const char *device = device_description(run->ranks[run_first_rank(run)].device);
    if (!rendezvous)
        return STATUS_OK;
    if (rendezvous_rank(rendezvous) == 0) {
        atomic_store(&rendezvous_board(rendezvous)->start_ns, run_now(run));
        if (!rank_report_send(rendezvous, REPORT_BEGIN, 0, device, strlen(device) + 1))
            return diag_error(diag, STATUS_SYSTEM, "the launcher of the ranks has ended");
    }
    return rendezvous_barrier(rendezvous, RENDEZVOUS_FOREVER, diag);
}

/* The run proper. `results` is set when it is to be compared and finished. */
static enum status runtime_run_recorded(struct run *run, const struct runtime_options *options,
                                        struct runtime_result *result, struct results *results,
                                        struct diag *diag)
{
    struct device **devices = NULL;
    enum watch_end end = WATCH_FAILED;
    enum status status = open_journal(run, options, &devices, diag);
    if (!status)
        status = runtime_inject(run, options, diag);
    if (!status)
        status = begin_together(run, diag);
    if (status)
        goto out;
    int64_t start_ns = run_now(run);
    status = runtime_perform(run, &end, diag);
    int64_t duration_ns = run_now(run) - start_ns;
    journal_stop(run->journal);
    enum status concluded = runtime_conclude(run, end, duration_ns, result, diag);
    status = runtime_first_of(status, concluded);
    if (status == STATUS_OK && end == WATCH_INTERRUPTED)
        status = runtime_interrupted(run, diag);
    if (end == WATCH_FINISHED && run->config.digest && concluded == STATUS_OK)
        status = runtime_first_of(status, data_results(run, results, diag));
    if (end == WATCH_FINISHED && run->layers && options->compare &&
        (concluded == STATUS_OK || concluded == STATUS_VIOLATED))
        status = runtime_first_of(status, layers_judge(run, &result->arithmetic, diag));
    result->matches_serial = result->arithmetic.equal;
out:
    if (run->journal)
        journal_stop(run->journal); /* it looks at the devices */
    free(devices);
    return status;
}

/* ---- the reference --------------------------------------------------------------------------- */

/* The plan as it is run serially. What there is to note of it the run has noted. */
static enum status serial_variant(const struct plan *plan, enum device_kind device,
                                  struct variant *out, struct diag *diag)
{
    struct diag own;
    diag_init(&own);
    enum status status = variant_init(out, plan, true, device, &own);
    if (status)
        diag_take(diag, &own);
    diag_fini(&own);
    return status;
}

static enum status run_reference(const struct plan *plan, const struct runtime_options *options,
                                 int instances, struct results *out, struct diag *diag)
{
    struct variant variant;
    struct program *program = NULL;
    struct run run = {0};
    enum watch_end end;
    enum status status = serial_variant(plan, options->device, &variant, diag);
    const struct program_options build = {
        .driver = DRIVER_CLOCK, .iterations = options->iterations, .ranks = options->ranks};
    const struct run_config config = {.mode = RUN_REFERENCE,
                                      .device = options->device,
                                      .serial = true,
                                      .digest = true,
                                      .rendezvous = options->rendezvous,
                                      .instances = instances,
                                      .timeout_ns = timeout_of(options),
                                      .stop = options->stop};
    if (!status)
        status = program_build(&variant.plan, &build, &program, diag);
    if (!status) {
        status = run_open(&run, program, &config, diag);
        if (!status)
            status = runtime_perform(&run, &end, diag);
        if (!status && end == WATCH_INTERRUPTED)
            status = runtime_interrupted(&run, diag);
        if (!status)
            status = data_results(&run, out, diag);
        run_close(&run);
    }
    program_close(program);
    variant_fini(&variant);
    return status;
}

/* Any run of the program; false: memory is exhausted. */
static bool take_steps(const struct program *p, bool *ends)
{
    struct state *state = machine_state(p);
    struct transition *steps = calloc(machine_most_transitions(p), sizeof *steps);
    const bool ready = state && steps;
    struct effect effect;
    while (ready && machine_enabled(p, state, steps) > 0)
        machine_step(p, state, steps[0], &effect);
    *ends = ready && machine_done(p, state);
    free(steps);
    machine_free(state);
    return ready;
}

/* Find out whether a serial run comes to its end. Sends and receives may need another order of tasks than the one that
   all ranks have in it. What two iterations leave is what all do. */
static enum status find_serial_end(const struct plan *plan, const struct runtime_options *options,
                                   bool *ends, struct diag *diag)
{
    enum { ITERATIONS = 2 };
    struct variant variant;
    struct program *program = NULL;
    const struct program_options build = {
        .driver = DRIVER_CLOCK,
        .iterations = options->iterations < ITERATIONS ? options->iterations : ITERATIONS,
        .ranks = options->ranks,
        .no_knowledge = true};
    enum status status = serial_variant(plan, options->device, &variant, diag);
    if (!status)
        status = program_build(&variant.plan, &build, &program, diag);
    if (!status && !take_steps(program, ends))
        status = diag_no_memory(diag);
    program_close(program);
    variant_fini(&variant);
    return status;
}

/* The first place where they differ, -1: nowhere. */
static int64_t find_difference(const struct results *a, const struct results *b)
{
    for (size_t i = 0; i < a->digests + a->buffers; i++)
        if (memcmp(a->floats + i * DIGEST_FLOATS, b->floats + i * DIGEST_FLOATS, DIGEST_BYTES) != 0)
            return (int64_t)i;
    return -1;
}

static void note_difference(const struct program *p, int64_t at, struct diag *diag)
{
    int64_t digests = (int64_t)p->ranks * p->tasks;
    if (at < digests)
        diag_note(diag, "rank %d: %s read something else than in a serial run",
                  (int)(at / p->tasks), p->plan->pipeline.tasks[at % p->tasks].name);
    else
        diag_note(diag, "rank %d: buffer %s holds something else than after a serial run",
                  p->buffers[at - digests].rank, p->buffers[at - digests].name);
}

static enum status runtime_compare(const struct plan *plan, const struct run *run,
                                   const struct runtime_options *options,
                                   const struct results *results, struct runtime_result *result,
                                   struct diag *diag)
{
    struct results expected = {0};
    bool ends;
    enum status status = find_serial_end(plan, options, &ends, diag);
    if (status)
        return status;
    if (!ends) {
        diag_note(
            diag,
            "the results are not compared: a serial run, each rank's tasks one after the other in "
            "topological order, ties by name, hangs");
        return STATUS_OK;
    }
    status = run_reference(plan, options, run->config.instances, &expected, diag);
    if (status)
        return status;
    int64_t at = find_difference(results, &expected);
    result->matches_serial = at < 0 ? ANSWER_YES : ANSWER_NO;
    if (at >= 0)
        note_difference(run->program, at, diag);
    free(expected.floats);
    return STATUS_OK;
}

/* ---- a run forced into an order -------------------------------------------------------------- */

/* The witness is a run of the whole machine; what the host device does not imitate it cannot follow. */
static enum status check_witness(const struct plan *plan, const struct runtime_options *options,
                                 struct diag *diag)
{
    const char *knob = plan->machine.hw_queues > 0           ? "machine.hw_queues"
                       : plan->machine.launch_order_implicit ? "machine.launch_order_implicit"
                       : plan->programs.eager_messages > 0   ? "p2p.eager_messages"
                       : plan->programs.eager_bytes > 0      ? "p2p.eager_bytes"
                                                             : NULL;
    for (size_t c = 0; c < plan->comm_count && !knob; c++)
        knob = plan->comms[c].eager_messages > 0 ? "machine.eager_messages"
               : plan->comms[c].eager_bytes > 0  ? "machine.eager_bytes"
                                                 : NULL;
    if (options->device != DEVICE_KIND_HOST)
        return diag_error(diag, STATUS_USAGE,
                          "a witness can be replayed on the host device only, not on %s",
                          device_kind_key(options->device));
    if (knob)
        return diag_error(diag, STATUS_USAGE,
                          "%s: the plan sets %s, which the host device does not imitate: this "
                          "witness cannot be replayed",
                          plan->name, knob);
    return STATUS_OK;
}

/* The witness's data loader decides the end as it goes on; the run has to know it from the start. Where
   the data does not end there is one iteration more than was asked for. */
static int64_t witness_iterations(const struct runtime_options *options)
{
    const struct runtime_witness *witness = options->witness;
    int64_t iterations = 0, more = 1;
    if (options->iterations >= 0)
        return options->iterations;
    for (size_t i = 0; i < witness->count; i++) {
        if (witness->steps[i].agent != 0)
            continue;
        iterations += witness->steps[i].choice == 0;
        more = witness->steps[i].choice == 0;
    }
    return iterations + more;
}

/* How far the run followed its witness. */
static enum status tell_forced(const struct program *p, struct gate *gate,
                               struct runtime_result *result, struct diag *diag)
{
    char name[160];
    int agent = gate_turn(gate);
    result->forced = gate_taken(gate);
    result->to_force = gate_steps(gate);
    if (agent >= 0)
        result->forced_agent =
            arena_strdup(&result->arena, program_agent_name(p, agent, name, sizeof name));
    return agent < 0 || result->forced_agent ? STATUS_OK : diag_no_memory(diag);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* On a CUDA device host functions run one at a time, so a kernel that waits for another cannot be one. A run aborts all its
   communicators together, when it fails. */
static enum status runtime_check_kernels(const struct plan *plan,
                                         const struct runtime_options *options, struct diag *diag)
{
    for (size_t t = 0; t < plan->thread_count; t++)
        for (size_t i = 0; i < plan->threads[t].op_count; i++) {
            const struct host_op *op = &plan->threads[t].ops[i];
            if (op->kind == OP_ABORT)
                return plan_error_at(plan, diag, op->mark,
                                     "found \"abort\", expected none: a run aborts its "
                                     "communicators when it fails");
            if (options->device == DEVICE_KIND_CUDA && op->kind == OP_LAUNCH && op->body_count > 0)
                return plan_error_at(plan, diag, op->mark,
                                     "found a kernel with a body, which only the host device can "
                                     "run, expected a launch without one");
        }
    return STATUS_OK;
}

static enum status runtime_check_options(const struct plan *plan,
                                         const struct runtime_options *options, struct diag *diag)
{
    int ranks = options->ranks ? options->ranks : plan_rank_count(plan);
    if (options->serial && plan->form != FORM_PIPELINE)
        return diag_error(diag, STATUS_USAGE,
                          "%s: only plans of the pipeline form can run serially", plan->name);
    if (options->serial && options->graph)
        return diag_error(diag, STATUS_USAGE,
                          "%s: a serial run is what others are measured by, and has no graphs",
                          plan->name);
    if (options->inject.given && (options->inject.rank < 0 || options->inject.rank >= ranks))
        return diag_error(diag, STATUS_USAGE, "no rank %d to inject a failure into",
                          options->inject.rank);
    return runtime_check_kernels(plan, options, diag);
}

/* A program that can be run, and the run of it. */
static enum status runtime_run_program(const struct plan *plan, const struct program *program,
                                       const struct runtime_options *options,
                                       struct runtime_result *result, struct diag *diag)
{
    struct run run;
    struct results results = {0};
    struct gate *gate = NULL;
    if (options->witness) {
        enum status opened =
            gate_open(program, options->witness->steps, options->witness->count, &gate, diag);
        if (opened)
            return opened;
    }
    const struct run_config config = {.mode = gate ? RUN_FORCED : RUN_TIMED,
                                      .device = options->device,
                                      .serial = options->serial,
                                      .digest =
                                          options->compare && program->tasks && !options->serial,
                                      .rendezvous = options->rendezvous,
                                      .graph = options->graph,
                                      .timeout_ns = timeout_of(options),
                                      .stop = options->stop,
                                      .seed = options->seed,
                                      .gate = gate};
    enum status status = run_open(&run, program, &config, diag);
    if (!status) {
        result->device = arena_strdup(&result->arena,
                                      device_description(run.ranks[run_first_rank(&run)].device));
        status = result->device ? runtime_run_recorded(&run, options, result, &results, diag)
                                : diag_no_memory(diag);
    }
    if (!status || status == STATUS_VIOLATED)
        graph_report(&run, result, diag);
    struct journal *journal = run.journal;
    run_close(&run);
    journal_close(journal); /* after the last callback of the device */
    if (gate && (!status || status == STATUS_VIOLATED))
        status = runtime_first_of(tell_forced(program, gate, result, diag), status);
    gate_close(gate);
    if (!status && results.floats)
        status = runtime_compare(plan, &run, options, &results, result, diag);
    free(results.floats);
    return status;
}

bool runtime_may_be_stale(const struct plan *plan)
{
    for (size_t b = 0; b < plan->buffer_count; b++)
        if (plan->buffers[b].staleness > 0)
            return true;
    return false;
}

enum status runtime_build(const struct plan *plan, const struct runtime_options *options,
                          struct variant *variant, struct program **out, struct diag *diag)
{
    const struct program_options build = {
        .driver = options->serial ? DRIVER_CLOCK : options->driver,
        .iterations = options->iterations,
        .ranks = options->ranks,
        .max_depth = options->serial ? 0 : options->max_depth,
        .serial = !options->serial &&
                  (options->witness || (options->replay && runtime_may_be_stale(plan))),
    };
    enum status status = variant_init(variant, plan, options->serial, options->device, diag);
    if (!status && options->graph)
        variant_for_graphs(variant);
    return status ? status : program_build(&variant->plan, &build, out, diag);
}

enum status runtime_run(const struct plan *plan, const struct runtime_options *wanted,
                        struct runtime_result *out, struct diag *diag)
{
    struct variant variant;
    struct program *program = NULL;
    struct runtime_result result = {.run = -1};
    struct runtime_options known = *wanted;
    const struct runtime_options *options = &known;
    enum status status = runtime_check_options(plan, options, diag);
    if (!status && options->witness)
        status = check_witness(plan, options, diag);
    if (status)
        return status;
    if (options->witness)
        known.iterations = witness_iterations(options);
    arena_init(&result.arena, 0);
    status = runtime_build(plan, options, &variant, &program, diag);
    if (!status && options->rendezvous && rendezvous_size(options->rendezvous) != program->ranks)
        status = diag_error(diag, STATUS_USAGE, "%s has %d ranks, but %d processes were started",
                            plan->name, program->ranks, rendezvous_size(options->rendezvous));
    if (!status)
        status = runtime_run_program(plan, program, options, &result, diag);
    program_close(program);
    variant_fini(&variant);
    if (status == STATUS_OK || status == STATUS_VIOLATED)
        *out = result;
    else
        runtime_result_fini(&result);
    return status;
}

void runtime_result_fini(struct runtime_result *result)
{
    arena_fini(&result->arena);
}
