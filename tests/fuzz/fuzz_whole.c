/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_whole.c - a small plan all the way: lowered, verified and predicted, within limits.
 *
 * The interpreters are held against each other: what is proved free of deadlocks must not block when simulated, and
 * the fast engine must find the times of the event-driven one. Plans that would take milliseconds are left out.
 */
#include <stdlib.h>
#include <string.h>

#include "check/verify.h"
#include "improve/found.h"
#include "plan/text/parse.h"
#include "sim/predict/predict.h"
#include "sim/predict/report.h"
#include "targets.h"

enum {
    MOST_RANKS = 4,
    MOST_TASKS = 8,
    MOST_OPS = 64,
    MOST_SLOTS = 8,
    MOST_ACTIONS = 64,
    MOST_STATES = 200,
    MOST_STEPS = 4000,
    ITERATIONS = 3,
    STORIES = 16, /* one input of so many gets its counterexamples told */
    MEGABYTE = 1 << 20
};

/* ---- which plans are small -------------------------------------------------------------------- */

static bool is_small_pipeline(const struct plan *plan)
{
    const struct pipeline *pipeline = &plan->pipeline;
    if (pipeline->task_count > MOST_TASKS || pipeline->depth > MOST_SLOTS ||
        pipeline->max_depth > MOST_SLOTS || pipeline->num_slots > MOST_SLOTS)
        return false;
    for (size_t i = 0; i < pipeline->dep_count; i++)
        if (pipeline->deps[i].distance > MOST_SLOTS)
            return false;
    for (size_t i = 0; i < pipeline->batch_count; i++)
        if (pipeline->batches[i] > ITERATIONS)
            return false;
    return true;
}

static bool is_small_program(const struct plan *plan)
{
    const struct generate_spec *generate = &plan->programs.generate;
    int64_t actions = 0;
    if (generate->given)
        return (int64_t)generate->ranks * generate->microbatches *
                   (generate->chunks ? generate->chunks : 2) <=
               MOST_ACTIONS;
    for (int rank = 0; rank < plan->ranks; rank++)
        for (size_t i = 0; i < plan->programs.ranks[rank].count; i++)
            actions += plan->programs.ranks[rank].actions[i].parts ? 1 + ACTION_PARTS : 1;
    return actions <= MOST_ACTIONS;
}

static size_t count_ops(const struct host_op *ops, size_t count)
{
    size_t all = count;
    for (size_t i = 0; i < count; i++)
        all +=
            (host_op_may_have_body(ops[i].kind) ? count_ops(ops[i].body, ops[i].body_count) : 0) +
            host_op_part_count(&ops[i]);
    return all;
}

static bool are_small_threads(const struct plan *plan)
{
    size_t captured = 0, ops = 0;
    for (size_t i = 0; i < plan->graph_count; i++)
        captured += count_ops(plan->graphs[i].ops, plan->graphs[i].op_count);
    for (size_t i = 0; i < plan->thread_count; i++)
        ops += count_ops(plan->threads[i].ops, plan->threads[i].op_count);
    return ops <= MOST_OPS && captured <= MOST_TASKS;
}

static bool is_small(const struct plan *plan)
{
    if (plan_rank_count(plan) > MOST_RANKS || plan->machine.launch_queue > MOST_OPS)
        return false;
    switch (plan->form) {
    case FORM_PIPELINE: return is_small_pipeline(plan);
    case FORM_PROGRAMS: return is_small_program(plan);
    case FORM_THREADS: return are_small_threads(plan);
    }
    return false;
}

/* ---- verdict and prediction -------------------------------------------------------------------- */

/* Is it proved that no run blocks, neither while data come nor after their end? */
static bool verify(const struct plan *plan, enum driver driver, bool story)
{
    struct diag diag;
    struct verify_report report;
    struct verify_options options = {
        .program = {.driver = driver, .iterations = -1},
        .any_witness = true,
        .quick = !story,
        .limits = {.states = MOST_STATES, .steps = MOST_STEPS, .mem_bytes = 64 * MEGABYTE}};
    bool flows = false;
    fuzz_diag_begin(&diag);
    enum status status = verify_plan(plan, &options, &report, &diag);
    if (status == STATUS_OK) {
        flows = report.outcome[PROPERTY_DEADLOCK] == OUTCOME_PROVED &&
                report.outcome[PROPERTY_DRAIN] == OUTCOME_PROVED;
        if (!verify_as_expected(plan, &report, &diag))
            status = STATUS_VIOLATED; /* which errors tell */
        verify_fini(&report);
    }
    fuzz_diag_end(&diag, status == STATUS_OK);
    return flows;
}

static bool predict_plan(const struct plan *plan, enum driver driver, struct prediction *out)
{
    struct diag diag;
    struct predict_options options = {.program = {.driver = driver, .iterations = ITERATIONS},
                                      .seed = 1,
                                      .replications = 1,
                                      .threads = 1,
                                      .exposed = EXPOSED_NEVER};
    if (plan->form != FORM_PIPELINE)
        options.program.iterations = -1;
    fuzz_diag_begin(&diag);
    enum status status = predict(plan, &options, out, &diag);
    fuzz_diag_end(&diag, status == STATUS_OK);
    return status == STATUS_OK;
}

static void report(const struct prediction *prediction)
{
    struct diag diag;
    struct json json;
    const struct report_row row = {0};
    fuzz_diag_begin(&diag);
    json_open(&json, fuzz_sink());
    FUZZ_EXPECT(report_print(prediction, false, false, fuzz_sink(), &diag) == STATUS_OK);
    FUZZ_EXPECT(report_write(prediction, &row, &json, &diag) == STATUS_OK);
    fuzz_diag_end(&diag, true);
}

static void judge(const struct plan *plan, enum driver driver, bool story)
{
    struct prediction prediction;
    bool flows = verify(plan, driver, story);
    if (!predict_plan(plan, driver, &prediction))
        return;
    FUZZ_EXPECT(!flows || prediction.blocked_count == 0);
    report(&prediction);
    prediction_fini(&prediction);
}

void fuzz_whole(const uint8_t *data, size_t size)
{
    struct diag diag;
    struct plan plan;
    diag_init(&diag);
    if (plan_parse("fuzz.yaml", (const char *)data, size, &plan, &diag) == STATUS_OK) {
        bool small = is_small(&plan), story = size % STORIES == 0;
        small = small && found_resolve(&plan, &plan.arena, &diag) == STATUS_OK;
        if (small && plan.form == FORM_PIPELINE) {
            judge(&plan, DRIVER_CLOCK, story);
            judge(&plan, DRIVER_DATAFLOW, story);
        } else if (small) {
            judge(&plan, DRIVER_NONE, story);
        }
        plan_fini(&plan);
    }
    diag_fini(&diag);
}
