/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exposed.c - see exposed.h.
 */
#include "exposed.h"

#include <math.h>
#include <stdlib.h>

#include "plan/order.h"

enum { EXPOSED_ITERATIONS = 50, EXPOSED_DEPTHS = 4, EXPOSED_JITTER_ITERATIONS = 1000 };

/* Mean iteration time of a short run. */
static enum status short_run(const struct program *program, const struct timing *timing,
                             uint64_t seed, double *out_ns, struct diag *diag)
{
    struct simulation_result result;
    const struct simulate_options options = {.seed = seed};
    enum status status = simulate_run(program, timing, &options, &result, diag);
    if (status != STATUS_OK)
        return status;
    *out_ns = result.blocked_count ? NAN : result.iteration.mean;
    simulation_fini(&result);
    return STATUS_OK;
}

/* The same random numbers with and without the task, so that only the task makes the difference. */
static enum status expose(const struct program *program, const struct timing *timing, uint64_t seed,
                          double *mean_ns, double *exposed_ns, struct diag *diag)
{
    double with_ns = NAN;
    enum status status = short_run(program, timing, seed, &with_ns, diag);
    *mean_ns = with_ns;
    for (int task = 0; status == STATUS_OK && task < program->tasks; task++) {
        struct timing without;
        double without_ns = NAN;
        status = timing_without(&without, timing, task, diag);
        if (status != STATUS_OK)
            return status;
        status = short_run(program, &without, seed, &without_ns, diag);
        timing_fini(&without);
        exposed_ns[task] = with_ns - without_ns;
    }
    return status;
}

bool exposed_is_wanted(const struct prediction *prediction, const struct predict_options *options)
{
    const struct program *p = prediction->program;
    if (p->tasks == 0 || isnan(prediction->iteration.mean) || options->exposed == EXPOSED_NEVER)
        return false;
    return options->exposed == EXPOSED_ALWAYS ||
           (p->tasks <= PREDICT_EXPOSED_TASKS && p->ranks <= PREDICT_EXPOSED_RANKS);
}

/* A short run of the plan under some driver. */
struct rehearsal {
    struct program *program;
    struct timing timing;
};

static enum status rehearsal_open(struct rehearsal *out, const struct plan *plan,
                                  const struct predict_options *options,
                                  const struct program_options *how, struct diag *diag)
{
    struct rehearsal made;
    struct program_options timed = *how;
    timed.no_knowledge = true;
    enum status status = program_build(plan, &timed, &made.program, diag);
    if (status != STATUS_OK)
        return status;
    status = timing_init(&made.timing, made.program, options->jitter, options->jitter_count, diag);
    if (status == STATUS_OK) {
        status = timing_change(&made.timing, options->times, options->time_count, diag);
        if (status == STATUS_OK) {
            *out = made;
            return STATUS_OK;
        }
        timing_fini(&made.timing);
    }
    program_close(made.program);
    return status;
}

static void rehearsal_close(struct rehearsal *rehearsal)
{
    timing_fini(&rehearsal->timing);
    program_close(rehearsal->program);
}

/* The cost of each task as the plan is run, or with one iteration at a time. */
static enum status find_exposed_in(struct prediction *prediction, const struct plan *plan,
                                   const struct predict_options *options,
                                   const struct program_options *how, double **out, double *mean_ns,
                                   struct diag *diag)
{
    struct rehearsal rehearsal;
    enum status status = rehearsal_open(&rehearsal, plan, options, how, diag);
    if (status != STATUS_OK)
        return status;
    *out = calloc((size_t)rehearsal.program->tasks, sizeof **out);
    if (!*out)
        status = diag_no_memory(diag);
    if (status == STATUS_OK)
        status =
            expose(rehearsal.program, &rehearsal.timing, prediction->seed, mean_ns, *out, diag);
    rehearsal_close(&rehearsal);
    return status;
}

/* All at stage 0: a period is an iteration. */
static struct task *without_stages(struct arena *arena, const struct task *tasks, size_t count)
{
    struct task *copy = ARENA_ARRAY(arena, count, struct task);
    for (size_t i = 0; copy && i < count; i++) {
        copy[i] = tasks[i];
        copy[i].stage = 0;
    }
    return copy;
}

/* The plan with one iteration at a time: the host waits for the device before it begins the next. Threads take their tasks,
   and tickets are given, in one topological order of the dependences within an iteration, so that no thread comes to a
   ticket that it has to give first. */
static enum status make_serial(struct plan *serial, struct arena *arena, struct diag *diag)
{
    struct pipeline *pipeline = &serial->pipeline;
    int *order = ARENA_ARRAY(arena, pipeline->task_count, int);
    struct rank_override *overrides =
        ARENA_ARRAY(arena, pipeline->override_count, struct rank_override);
    pipeline->tasks = without_stages(arena, pipeline->tasks, pipeline->task_count);
    if (!order || !overrides || !pipeline->tasks)
        return diag_no_memory(diag);
    for (size_t i = 0; i < pipeline->override_count; i++) {
        overrides[i] = pipeline->overrides[i];
        overrides[i].has_order = false;
        if (!overrides[i].tasks)
            continue;
        overrides[i].tasks = without_stages(arena, overrides[i].tasks, pipeline->task_count);
        if (!overrides[i].tasks)
            return diag_no_memory(diag);
    }
    pipeline->overrides = overrides;
    pipeline->order = (struct order_spec){.kind = ORDER_EXPLICIT,
                                          .tasks = {.items = order, .count = pipeline->task_count}};
    pipeline->depth = 1;
    pipeline->num_slots_given = false;
    pipeline->retire = RETIRE_DEVICE;
    return order_topological(serial, order, diag);
}

static enum status find_serial_exposed(struct prediction *prediction, const struct plan *plan,
                                       const struct predict_options *options,
                                       struct program_options how, struct diag *diag)
{
    struct arena arena;
    struct plan serial = *plan;
    how.driver = DRIVER_CLOCK;
    how.max_depth = 0;
    arena_init(&arena, 0);
    enum status status = make_serial(&serial, &arena, diag);
    if (status == STATUS_OK)
        status = find_exposed_in(prediction, &serial, options, &how, &prediction->serial_exposed_ns,
                                 &prediction->serial_ns, diag);
    arena_fini(&arena);
    return status;
}

enum status exposed_find(struct prediction *prediction, const struct plan *plan,
                         const struct predict_options *options, struct diag *diag)
{
    struct program_options how = options->program;
    double mean_ns;
    int64_t wanted = EXPOSED_ITERATIONS + EXPOSED_DEPTHS * prediction->program->depth;
    if (prediction->timing.draw_count > 0 && wanted < EXPOSED_JITTER_ITERATIONS)
        wanted = EXPOSED_JITTER_ITERATIONS;
    if (how.iterations > wanted)
        how.iterations = wanted;
    prediction->exposed_iterations = how.iterations;
    enum status status =
        find_exposed_in(prediction, plan, options, &how, &prediction->exposed_ns, &mean_ns, diag);
    return status != STATUS_OK ? status : find_serial_exposed(prediction, plan, options, how, diag);
}
