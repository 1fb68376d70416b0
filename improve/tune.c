/* SPDX-License-Identifier: Apache-2.0 */
/* tune.c - see tune.h: candidates and how they are judged. */
#include "tune.h"

#include "tune_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/text/print.h"
#include "base/stopwatch.h"
#include "base/hash.h"
#include "plan/order.h"
#include "sim/predict/predict.h"
#include "base/list_key.h"

enum {
    ITERATIONS = 200, /* of a simulation */
    STATES = 200,     /* for a candidate, if the given plan needed none */
    EFFORTS = 4       /* times as many as the given plan needed */
};
#define CANDIDATE_BYTES ((size_t)256 << 20)
#define QUANTUM         0.001 /* share of the given period: simulated ones closer than this are equal */

const char *tune_knob_key(enum tune_knob knob)
{
    static const char *const keys[] = {TUNE_KNOB_LIST(LIST_KEY)};
    return keys[knob];
}

static enum driver other_driver(enum driver driver)
{
    return driver == DRIVER_CLOCK ? DRIVER_DATAFLOW : DRIVER_CLOCK;
}

/* ---- a candidate and its plan ---------------------------------------------------------------- */

static void read_cells(struct tune *tune, int *cells)
{
    const struct pipeline *given = &tune->given.pipeline;
    for (size_t t = 0; t < tune->tasks; t++) {
        cells[tune_at(tune, TUNE_STAGE) + t] = given->tasks[t].stage;
        cells[tune_at(tune, TUNE_STREAM) + t] = given->tasks[t].stream;
        cells[tune_at(tune, TUNE_GROUP) + t] = given->tasks[t].group;
        cells[tune_at(tune, TUNE_ORDER) + t] =
            given->order.kind == ORDER_EXPLICIT ? given->order.tasks.items[t] : 0;
    }
    cells[tune_rule_at(tune)] = (int)given->order.kind;
    cells[tune_depth_at(tune)] = given->max_depth;
}

static void set_task(struct task *to, const struct task *given, const struct task *plain,
                     const int *stage, const int *stream, const int *group)
{
    to->stage = given->stage == plain->stage ? *stage : given->stage;
    to->stream = given->stream == plain->stream ? *stream : given->stream;
    to->group = given->group == plain->group ? *group : given->group;
}

/* Where a rank differs from the others in a choice it keeps its own. Returns the highest stage. */
static int apply_tasks(struct tune *tune, const int *cells)
{
    const int *stages = cells + tune_at(tune, TUNE_STAGE);
    const int *streams = cells + tune_at(tune, TUNE_STREAM);
    const int *groups = cells + tune_at(tune, TUNE_GROUP);
    const struct pipeline *given = &tune->given.pipeline;
    struct pipeline *work = &tune->work.pipeline;
    int highest = 0;
    for (size_t t = 0; t < tune->tasks; t++) {
        const struct task *plain = &given->tasks[t];
        set_task(&work->tasks[t], plain, plain, &stages[t], &streams[t], &groups[t]);
        highest = work->tasks[t].stage > highest ? work->tasks[t].stage : highest;
        for (size_t k = 0; k < work->override_count; k++) {
            if (!work->overrides[k].tasks)
                continue;
            struct task *to = &work->overrides[k].tasks[t];
            set_task(to, &given->overrides[k].tasks[t], plain, &stages[t], &streams[t], &groups[t]);
            highest = to->stage > highest ? to->stage : highest;
        }
    }
    return highest;
}

void tune_apply(struct tune *tune, const int *cells)
{
    struct pipeline *work = &tune->work.pipeline;
    work->depth = apply_tasks(tune, cells) + 1;
    work->max_depth = cells[tune_depth_at(tune)];
    work->max_depth_given = tune->given.pipeline.max_depth_given;
    if (!work->max_depth_given && tune->options->driver == DRIVER_CLOCK)
        work->max_depth = work->depth; /* its default */
    work->max_depth_given |= work->max_depth != work->depth;
    work->order = (struct order_spec){.kind = (enum order_kind)cells[tune_rule_at(tune)]};
    work->order_given = work->order.kind != ORDER_READY_FIRST;
    if (work->order.kind != ORDER_EXPLICIT)
        return;
    memcpy(tune->listed, cells + tune_at(tune, TUNE_ORDER), tune->tasks * sizeof *cells);
    work->order.tasks = (struct index_list){.items = tune->listed, .count = tune->tasks};
}

enum status tune_order(struct tune *tune, const int *cells, int *out, struct diag *diag)
{
    tune_apply(tune, cells);
    struct order_spec order = tune->work.pipeline.order;
    if (order.kind != ORDER_EXPLICIT)
        return order_enqueue(&tune->work, 0, out, diag);
    memcpy(out, order.tasks.items, order.tasks.count * sizeof *out);
    return STATUS_OK;
}

int tune_depth(const struct tune *tune, const int *cells)
{
    if (tune->options->driver == DRIVER_DATAFLOW)
        return cells[tune_depth_at(tune)];
    int highest = 0;
    for (size_t t = 0; t < tune->tasks; t++)
        if (cells[tune_at(tune, TUNE_STAGE) + t] > highest)
            highest = cells[tune_at(tune, TUNE_STAGE) + t];
    return highest + 1;
}

/* As program->most_in_flight: without machine.launch_queue two retired iterations more than the depth, and where other tasks
   than the last may be unfinished three more. */
int tune_in_flight(const struct tune *tune, int depth)
{
    const enum retire_rule retire = tune->given.pipeline.retire;
    if (retire == RETIRE_DEVICE)
        return depth;
    if (tune->given.machine.launch_queue)
        return depth + tune->most_retired;
    return 2 * depth + (retire == RETIRE_LAST_TASK ? 5 : 2);
}

int64_t tune_bytes(const struct tune *tune, int depth)
{
    return tune->shared_bytes + tune_in_flight(tune, depth) * tune->iteration_bytes;
}

static bool tune_is_within(const struct tune *tune, int depth)
{
    int64_t memory = tune->options->memory_bytes;
    return depth <= tune->depth_limit && (memory < 0 || tune_bytes(tune, depth) <= memory);
}

/* ---- scores ---------------------------------------------------------------------------------- */

bool tune_is_better(const struct tune_score *a, const struct tune_score *b)
{
    if (a->unfit != b->unfit)
        return b->unfit;
    if (a->period_ps != b->period_ps)
        return a->period_ps < b->period_ps;
    if (a->depth != b->depth)
        return a->depth < b->depth;
    if (a->streams != b->streams)
        return a->streams < b->streams;
    if (a->groups != b->groups)
        return a->groups < b->groups;
    return a->changes < b->changes;
}

int tune_count_used(const struct tune *tune, const int *cells, enum tune_row row, int least)
{
    const int *items = cells + tune_at(tune, row);
    int used = 0;
    for (size_t t = 0; t < tune->tasks; t++) {
        size_t before = 0;
        while (before < t && items[before] != items[t])
            before++;
        used += before == t && items[t] >= least;
    }
    return used;
}

static void score_cells(const struct tune *tune, const int *cells, double period_ps,
                        struct tune_score *out)
{
    *out = (struct tune_score){
        .period_ps = period_ps,
        .depth = tune_depth(tune, cells),
        .streams = tune_count_used(tune, cells, TUNE_STREAM, tune->streams - TUNE_SPARES),
        .groups = tune_count_used(tune, cells, TUNE_GROUP, tune->groups - TUNE_SPARES)};
    for (size_t i = 0; i < tune->cells; i++)
        out->changes += cells[i] != tune->first[i];
}

/* ---- proof ----------------------------------------------------------------------------------- */

const atomic_bool *tune_own_interrupt(const struct tune_options *options)
{
    return options->interrupted && atomic_load(options->interrupted) ? NULL : options->interrupted;
}

enum status tune_verify(const struct plan *plan, const struct tune_options *options,
                        enum driver driver, bool quick, uint64_t states, struct verify_report *out,
                        struct diag *diag)
{
    const int64_t answer_ns = 300000000;
    const atomic_bool *interrupted = tune_own_interrupt(options);
    const bool late = options->interrupted && !interrupted;
    /* A candidate is compared with the given plan, which may be stale on purpose; not with a serial run. */
    const unsigned all = (1u << PROPERTY_COUNT) - 1;
    const struct verify_options wanted = {
        .program = {.driver = driver, .iterations = -1},
        .properties = all & ~(1u << PROPERTY_FAULTS | (quick ? 1u << PROPERTY_SERIAL : 0)),
        .quick = quick,
        .interrupted = interrupted,
        .limits = {.states = states,
                   .mem_bytes = quick ? CANDIDATE_BYTES : 0,
                   .until_ns = late ? stopwatch_until(answer_ns) : 0}};
    return verify_plan(plan, &wanted, out, diag);
}

/* Find out whether tune->work is proved. A plan that cannot be checked is not. */
static enum status tune_prove(struct tune *tune, enum driver driver, bool *proved)
{
    struct verify_report report;
    struct diag unused;
    diag_init(&unused);
    enum status status =
        tune_verify(&tune->work, tune->options, driver, true, tune->states, &report, &unused);
    *proved = status == STATUS_OK && report.verdict == VERDICT_PROVED;
    if (status == STATUS_OK)
        verify_fini(&report);
    diag_fini(&unused);
    return status == STATUS_SYSTEM ? status : STATUS_OK;
}

/* ---- prediction ------------------------------------------------------------------------------ */

/* The exact steady state of a plan, found in one of the ways up to `last`; kind UNKNOWN where that finds
   none or durations vary. */
static enum status find_steady(const struct plan *plan, const struct tune_options *tune,
                               enum steady_way last, struct steady *out, struct diag *diag)
{
    const struct program_options options = {.driver = tune->driver,
                                            .iterations = ITERATIONS,
                                            .no_knowledge = true,
                                            .interrupted = tune_own_interrupt(tune)};
    struct program *program;
    struct timing timing;
    *out = (struct steady){.kind = STEADY_UNKNOWN};
    enum status status = program_build(plan, &options, &program, diag);
    if (status != STATUS_OK)
        return status;
    status = timing_init(&timing, program, NULL, 0, diag);
    if (status == STATUS_OK) {
        if (timing.draw_count == 0)
            status = steady_find_by(program, &timing, last, out, diag);
        timing_fini(&timing);
    }
    program_close(program);
    return status;
}

static enum status simulate_period(const struct plan *plan, const struct tune_options *options,
                                   double *out_ns, struct diag *diag)
{
    const struct predict_options wanted = {
        .program = {.driver = options->driver, .iterations = ITERATIONS},
        .seed = options->seed,
        .replications = 1,
        .threads = 1,
        .exposed = EXPOSED_NEVER,
        .interrupted = tune_own_interrupt(options)};
    struct prediction prediction;
    enum status status = predict(plan, &wanted, &prediction, diag);
    if (status != STATUS_OK)
        return status;
    *out_ns = prediction.blocked_count ? NAN : prediction.iteration.mean;
    prediction_fini(&prediction);
    return STATUS_OK;
}

enum status tune_find_period(const struct plan *plan, const struct tune_options *options,
                             enum steady_way last, bool only_exact, struct steady *steady,
                             double *out_ns, struct diag *diag)
{
    enum status status = find_steady(plan, options, last, steady, diag);
    *out_ns = NAN;
    if (status == STATUS_OK && steady->kind == STEADY_EXACT)
        *out_ns = (double)steady->num_ns / (double)steady->den;
    else if (status == STATUS_OK && steady->kind == STEADY_UNKNOWN && !only_exact)
        status = simulate_period(plan, options, out_ns, diag);
    return status;
}

/* Of tune->work, rounded: exact periods to picoseconds, simulated ones to a multiple of the quantum. */
static enum status predict_work(struct tune *tune, double *out_ps)
{
    struct steady steady;
    struct diag unused;
    double ns = NAN;
    diag_init(&unused);
    enum status status =
        tune_find_period(&tune->work, tune->options, tune->way, tune->exact, &steady, &ns, &unused);
    if (status == STATUS_OK)
        steady_fini(&steady);
    diag_fini(&unused);
    *out_ps = tune->quantum_ps > 0 ? round(ns * 1e3 / tune->quantum_ps) * tune->quantum_ps
                                   : round(ns * 1e3);
    return status == STATUS_SYSTEM ? status : STATUS_OK;
}

/* ---- judging --------------------------------------------------------------------------------- */

bool tune_is_interrupted(const struct tune *tune)
{
    return tune->options->interrupted && atomic_load(tune->options->interrupted);
}

bool tune_is_spent(const struct tune *tune)
{
    return tune->counts.tried >= tune->budget || tune_is_interrupted(tune);
}

/* True if it was seen before. Remembers it. There is room for twice the budget. */
static bool tune_is_known(struct tune *tune, const int *cells)
{
    uint64_t hash = hash_bytes(cells, tune->cells * sizeof *cells) | 1;
    size_t at = hash & tune->seen_mask;
    for (; tune->seen[at]; at = (at + 1) & tune->seen_mask)
        if (tune->seen[at] == hash)
            return true;
    tune->seen[at] = hash;
    return false;
}

static int64_t view_iterations(const struct tune *tune)
{
    int deepest = tune->depth_limit;
    if (tune->given.pipeline.depth > deepest)
        deepest = tune->given.pipeline.depth;
    return 2 * deepest + 2;
}

static enum status has_same_view(struct tune *tune, bool *same)
{
    uint64_t view = 0;
    bool complete = false;
    struct diag unused;
    *same = true;
    if (!tune->has_view)
        return STATUS_OK;
    diag_init(&unused);
    enum status status = tune_view(&tune->given, &tune->work, tune->options->driver,
                                   view_iterations(tune), &view, &complete, &unused);
    diag_fini(&unused);
    *same = status == STATUS_OK && complete && view == tune->view;
    return status == STATUS_SYSTEM ? status : STATUS_OK;
}

/* The expensive questions, for a candidate that would be kept. */
static enum status confirm(struct tune *tune, bool *kept)
{
    enum status status = STATUS_OK;
    *kept = true;
    if (tune->has_other)
        status = tune_prove(tune, other_driver(tune->options->driver), kept);
    if (status == STATUS_OK && *kept) {
        status = has_same_view(tune, kept);
        tune->counts.stale += status == STATUS_OK && !*kept;
    }
    return status;
}

enum status tune_judge(struct tune *tune, const int *cells, const struct tune_score *bar,
                       struct tune_score *score, bool *kept, struct diag *diag)
{
    bool proved;
    double period_ps;
    *kept = false;
    if (tune_is_spent(tune) || !tune_is_within(tune, tune_depth(tune, cells)) ||
        tune_is_known(tune, cells))
        return STATUS_OK;
    tune->counts.tried++;
    tune_apply(tune, cells);
    enum status status = tune_prove(tune, tune->options->driver, &proved);
    if (status != STATUS_OK)
        return diag_no_memory(diag);
    tune->counts.proved += proved;
    if (!proved)
        return STATUS_OK;
    status = predict_work(tune, &period_ps);
    if (status != STATUS_OK)
        return diag_no_memory(diag);
    if (isnan(period_ps))
        return STATUS_OK;
    tune->counts.predicted++;
    score_cells(tune, cells, period_ps, score);
    if (!tune_is_better(score, bar))
        return STATUS_OK;
    return confirm(tune, kept) == STATUS_OK ? STATUS_OK : diag_no_memory(diag);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Room for the streams and thread groups that the plan does not have yet. */
static bool add_spares(struct tune *tune)
{
    struct plan *work = &tune->work;
    for (int i = 0; i < TUNE_SPARES; i++) {
        const char *name = arena_printf(&work->arena, "\n%d", i); /* no plan has such a name */
        if (!name || names_intern(&work->streams, &work->arena, name) < 0 ||
            names_intern(&work->groups, &work->arena, name) < 0)
            return false;
    }
    tune->streams = (int)work->streams.count;
    tune->groups = (int)work->groups.count;
    return true;
}

/* Violations that are expected of the given plan are none of another one; the rest is. */
void tune_expect_no_violation(struct expectation *expect)
{
    if (expect->given)
        *expect = (struct expectation){.given = true,
                                       .covers_all = expect->covers_all,
                                       .below_ns = expect->below_ns,
                                       .named[PROPERTY_FAULTS] = expect->named[PROPERTY_FAULTS],
                                       .outcome[PROPERTY_FAULTS] = expect->named[PROPERTY_FAULTS]
                                                                       ? OUTCOME_PROVED
                                                                       : OUTCOME_UNDECIDED};
}

static enum status copy_plan(struct tune *tune, const struct plan *plan, struct diag *diag)
{
    const char *text;
    enum status status = plan_copy(plan, TUNE_NAME, &tune->given, &text, diag);
    if (status != STATUS_OK)
        return status;
    status = plan_copy(plan, TUNE_NAME, &tune->work, &text, diag);
    if (status != STATUS_OK)
        plan_fini(&tune->given);
    return status;
}

static enum status tune_allocate(struct tune *tune, struct diag *diag)
{
    size_t room = 1024;
    tune->tasks = tune->given.pipeline.task_count;
    tune->cells = TUNE_ROWS * tune->tasks + 2;
    while (room < 2 * (tune->budget + 2 * tune->cells + 16))
        room *= 2;
    tune->seen_mask = room - 1;
    tune->seen = calloc(room, sizeof *tune->seen);
    tune->first = calloc(2 * tune->cells + tune->tasks, sizeof *tune->first);
    if (!tune->seen || !tune->first || !add_spares(tune))
        return diag_no_memory(diag);
    tune->best = tune->first + tune->cells;
    tune->listed = tune->best + tune->cells;
    return STATUS_OK;
}

/* Verify the given plan under both drivers. */
static enum status judge_given(struct tune *tune, struct diag *diag)
{
    struct verify_report report;
    enum status status =
        tune_verify(&tune->given, tune->options, tune->options->driver, true, 0, &report, diag);
    if (status != STATUS_OK)
        return status;
    tune->verdict = report.verdict;
    tune->states = EFFORTS * report.states > STATES ? EFFORTS * report.states : STATES;
    verify_fini(&report);
    status = tune_verify(&tune->given, tune->options, other_driver(tune->options->driver), true,
                         tune->states, &report, diag);
    if (status != STATUS_OK)
        return status;
    tune->has_other = report.verdict == VERDICT_PROVED;
    verify_fini(&report);
    return STATUS_OK;
}

/* Its bytes, its period, its view. */
static enum status measure_given(struct tune *tune, struct diag *diag)
{
    const struct program_options options = {.driver = tune->options->driver,
                                            .iterations = 1,
                                            .interrupted = tune_own_interrupt(tune->options)};
    struct program *program;
    struct steady steady;
    double period_ns = NAN;
    enum status status = program_build(&tune->given, &options, &program, diag);
    if (status != STATUS_OK)
        return status;
    tune->iteration_bytes = program->iteration_bytes;
    tune->most_retired = program->most_in_flight - program->depth;
    tune->shared_bytes = program->shared_bytes;
    program_close(program);
    status = tune_find_period(&tune->given, tune->options, STEADY_BY_RECURRENT_STATE, false,
                              &steady, &period_ns, diag);
    if (status != STATUS_OK)
        return status;
    tune->exact = steady.kind != STEADY_UNKNOWN && !sharing_asked(&tune->given);
    tune->way = steady.kind == STEADY_EXACT && steady.way != STEADY_BY_RECURRENT_STATE
                    ? STEADY_BY_CAUSES
                    : STEADY_BY_RECURRENT_STATE;
    steady_fini(&steady);
    if (!tune->exact && period_ns > 0)
        tune->quantum_ps = QUANTUM * period_ns * 1e3;
    if (!tune->options->allow_stale)
        status = tune_view(&tune->given, &tune->given, tune->options->driver, view_iterations(tune),
                           &tune->view, &tune->has_view, diag);
    return status;
}

static void tune_set_limits(struct tune *tune)
{
    const struct pipeline *given = &tune->given.pipeline;
    bool dataflow = tune->options->driver == DRIVER_DATAFLOW;
    int depth = dataflow ? given->max_depth : given->depth;
    tune->depth_limit = tune->options->depth                          ? tune->options->depth
                        : tune->options->kept & 1u << TUNE_KNOB_DEPTH ? depth
                        : depth > TUNE_DEPTH                          ? depth
                                                                      : TUNE_DEPTH;
}

static enum status score_given(struct tune *tune, struct diag *diag)
{
    double period_ps;
    read_cells(tune, tune->first);
    memcpy(tune->best, tune->first, tune->cells * sizeof *tune->best);
    tune_apply(tune, tune->first);
    if (predict_work(tune, &period_ps) != STATUS_OK)
        return diag_no_memory(diag);
    score_cells(tune, tune->first, period_ps, &tune->first_score);
    tune->first_score.unfit = tune->verdict != VERDICT_PROVED || isnan(period_ps) ||
                              !tune_is_within(tune, tune_depth(tune, tune->first));
    tune->best_score = tune->first_score;
    tune_is_known(tune, tune->first);
    return STATUS_OK;
}

enum status tune_open(const struct plan *plan, const struct tune_options *options, struct tune *out,
                      struct diag *diag)
{
    if (plan->form != FORM_PIPELINE)
        return diag_error(
            diag, STATUS_INPUT,
            "%s: found host programs or rank programs, expected the pipeline form (`schedule:`)",
            plan->file);
    *out = (struct tune){.options = options};
    enum status status = copy_plan(out, plan, diag);
    if (status != STATUS_OK)
        return status;
    tune_set_limits(out);
    tune_expect_no_violation(&out->work.expect);
    tune_expect_no_violation(&out->work.expect_dataflow);
    status = judge_given(out, diag);
    if (status == STATUS_OK)
        status = measure_given(out, diag);
    out->budget = options->candidates ? options->candidates
                  : out->exact        ? TUNE_CANDIDATES
                                      : TUNE_SIMULATED_CANDIDATES;
    if (status == STATUS_OK)
        status = tune_allocate(out, diag);
    if (status == STATUS_OK)
        status = score_given(out, diag);
    if (status != STATUS_OK)
        tune_close(out);
    return status;
}

void tune_close(struct tune *tune)
{
    free(tune->seen);
    free(tune->first);
    plan_fini(&tune->given);
    plan_fini(&tune->work);
}

bool tune_found(const struct tune *tune)
{
    return tune_is_better(&tune->best_score, &tune->first_score);
}
