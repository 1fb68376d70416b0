/* SPDX-License-Identifier: Apache-2.0 */
/* tune_host.c - see tune_host.h. */
#include "tune_host.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "edits.h"
#include "plan/coverage.h"
#include "plan/text/parse.h"
#include "plan/text/print.h"
#include "sim/engine/simulate.h"
#include "base/array.h"
#include "base/hash.h"
#include "base/sort.h"
#include "base/table.h"

enum {
    STATES = 200, /* for a candidate, if the given plan needed none */
    EFFORTS = 4   /* times as many as the given plan needed */
};
#define QUANTUM 0.001 /* share of the given time: runs closer than this are equal */

/* The result of one run of a plan. */
struct host_run {
    double ns;
    uint64_t view;
    bool complete;
};

struct host_candidate {
    const char *text, *change;
    struct host_run run;
};

struct host_tuner {
    const struct tune_options *options;
    struct arena *arena;
    struct tune_host *out;
    struct diag *diag;
    const char *best; /* the text of the best plan */
    struct host_run given, best_run;
    uint64_t budget, states, round;
    uint64_t *seen; /* hashes of the texts tried */
    size_t seen_count, seen_cap;
    struct table known; /* of seen */
    const char **changes;
    size_t change_count, change_cap;
    struct host_candidate *shorter; /* of this round */
    size_t shorter_count, shorter_cap;
};

/* ---- a run ------------------------------------------------------------------------------------- */

struct host_watcher {
    const struct program *program;
    uint64_t *writes; /* per program buffer: a hash of its writes so far */
    uint64_t reads;   /* a sum: reads between two writes have no order */
};

/* A number of the operation that stays the same wherever it stands in the plan. */
static uint64_t identity(const struct program *p, const struct op *op, int rank)
{
    const char *name = op->name >= 0 ? p->names.items[op->name] : op_key(op->kind);
    return hash_three(hash_bytes(name, strlen(name)), (uint64_t)rank,
                      (uint64_t)(op->iteration + 1));
}

static bool tune_host_watch(void *context, int64_t time_ns, struct transition transition,
                            const struct effect *effect)
{
    struct host_watcher *w = context;
    const struct program *p = w->program;
    const struct op *op = effect->op >= 0 ? &p->ops[effect->op] : NULL;
    (void)time_ns;
    if (!op || effect->kind != (op_pushes(op->kind) ? EFFECT_START : EFFECT_HOST))
        return true;
    const uint64_t who = identity(p, op, p->agents[transition.agent].rank);
    for (int writes = 0; writes < 2; writes++) /* an operation reads before it writes */
        for (int k = 0; k < op->access_count; k++) {
            const struct access *access = &p->accesses[op->access_first + k];
            if (access->write != (writes == 1))
                continue;
            uint64_t *written = &w->writes[access->buffer];
            if (access->write)
                *written = hash_three(*written, who, 1);
            else
                w->reads += hash_three(*written, who, 0);
        }
    return true;
}

/* The buffers are numbered by their first use, so their hashes are added up. */
static uint64_t view_of(const struct host_watcher *w)
{
    const struct program *p = w->program;
    uint64_t view = w->reads;
    for (int b = 0; b < p->buffer_count; b++)
        view += hash_three(w->writes[b], hash_bytes(p->buffers[b].name, strlen(p->buffers[b].name)),
                           (uint64_t)p->buffers[b].rank);
    return view;
}

static enum status run_program(const struct program *program, const struct tune_options *tune,
                               struct host_run *out, struct diag *diag)
{
    struct timing timing;
    struct simulation_result result;
    struct host_watcher w = {.program = program};
    const struct simulate_observer observer = {.context = &w, .step = tune_host_watch};
    const struct simulate_options options = {
        .seed = tune->seed, .observer = &observer, .interrupted = tune_own_interrupt(tune)};
    w.writes = calloc((size_t)program->buffer_count + 1, sizeof *w.writes);
    if (!w.writes)
        return diag_no_memory(diag);
    enum status status = timing_init(&timing, program, NULL, 0, diag);
    if (status == STATUS_OK) {
        status = simulate_run(program, &timing, &options, &result, diag);
        timing_fini(&timing);
    }
    if (status == STATUS_OK) {
        *out =
            (struct host_run){(double)result.makespan_ns, view_of(&w), result.blocked_count == 0};
        simulation_fini(&result);
    }
    free(w.writes);
    return status;
}

static enum status run_plan(const struct plan *plan, const struct tune_options *tune,
                            struct host_run *out, struct diag *diag)
{
    const struct program_options options = {.driver = DRIVER_NONE,
                                            .iterations = -1,
                                            .no_knowledge = true,
                                            .interrupted = tune_own_interrupt(tune)};
    struct program *program;
    enum status status = program_build(plan, &options, &program, diag);
    if (status != STATUS_OK)
        return status;
    status = run_program(program, tune, out, diag);
    program_close(program);
    return status;
}

/* ---- a candidate ------------------------------------------------------------------------------- */

static bool tune_host_is_over(const void *arg)
{
    const struct host_tuner *tuner = arg;
    const atomic_bool *interrupted = tuner->options->interrupted;
    return tuner->budget <= tuner->out->counts.tried || (interrupted && atomic_load(interrupted));
}

static bool tune_host_is_known(struct host_tuner *tuner, const char *text)
{
    const uint64_t hash = hash_bytes(text, strlen(text));
    if (TABLE_FIND(&tuner->known, hash, i, tuner->seen[i] == hash) != TABLE_NONE)
        return true;
    if (ARENA_GROW(tuner->arena, tuner->seen, tuner->seen_count, tuner->seen_cap) &&
        table_add_in(&tuner->known, tuner->arena, hash, tuner->seen_count))
        tuner->seen[tuner->seen_count++] = hash;
    return false;
}

static enum status read_folded(const char *text, struct plan *out, struct diag *diag)
{
    enum status status = plan_parse(TUNE_NAME, text, strlen(text), out, diag);
    if (status != STATUS_OK)
        return status;
    edits_number(out);
    edits_fold(out);
    return STATUS_OK;
}

/* The best plan with the edit, as text. */
static enum status change_text(struct host_tuner *tuner, const struct edit *edit, const char **out)
{
    struct plan changed;
    enum status status = read_folded(tuner->best, &changed, tuner->diag);
    if (status != STATUS_OK)
        return status;
    status = edit_apply(&changed, edit, tuner->diag);
    if (status == STATUS_OK)
        status = plan_text_in(&changed, tuner->arena, out, tuner->diag);
    plan_fini(&changed);
    return status;
}

/* The run of a text; a plan that cannot be read, or has no run, has none that is complete. */
static enum status run_text(const struct host_tuner *tuner, const char *text, struct host_run *out)
{
    struct plan plan;
    struct diag unused;
    *out = (struct host_run){0};
    diag_init(&unused);
    enum status status = plan_parse(TUNE_NAME, text, strlen(text), &plan, &unused);
    if (status == STATUS_OK) {
        status = run_plan(&plan, tuner->options, out, &unused);
        plan_fini(&plan);
    }
    diag_fini(&unused);
    return status == STATUS_SYSTEM ? diag_no_memory(tuner->diag) : STATUS_OK;
}

/* Candidates that are shorter are kept, for questions that cost more. */
static enum status tune_host_try(struct host_tuner *tuner, const struct plan *best,
                                 const struct edit *edit)
{
    struct host_candidate candidate = {.change = edit_describe(best, edit, tuner->arena)};
    enum status status = change_text(tuner, edit, &candidate.text);
    if (status != STATUS_OK || tune_host_is_known(tuner, candidate.text))
        return status;
    tuner->out->counts.tried++;
    status = run_text(tuner, candidate.text, &candidate.run);
    if (status != STATUS_OK || !candidate.run.complete)
        return status;
    tuner->out->counts.predicted++;
    if (candidate.run.ns > tuner->best_run.ns - QUANTUM * tuner->given.ns)
        return STATUS_OK;
    if (candidate.run.view != tuner->given.view && !tuner->options->allow_stale) {
        tuner->out->counts.stale++;
        return STATUS_OK;
    }
    if (!candidate.change ||
        !ARENA_GROW(tuner->arena, tuner->shorter, tuner->shorter_count, tuner->shorter_cap))
        return diag_no_memory(tuner->diag);
    tuner->shorter[tuner->shorter_count++] = candidate;
    return STATUS_OK;
}

static enum status prove_text(struct host_tuner *tuner, const char *text, bool *proved)
{
    struct plan plan;
    struct verify_report report;
    struct diag unused;
    *proved = false;
    diag_init(&unused);
    enum status status = plan_parse(TUNE_NAME, text, strlen(text), &plan, &unused);
    if (status == STATUS_OK) {
        status =
            tune_verify(&plan, tuner->options, DRIVER_NONE, true, tuner->states, &report, &unused);
        if (status == STATUS_OK) {
            *proved = report.verdict == VERDICT_PROVED;
            verify_fini(&report);
        }
        plan_fini(&plan);
    }
    diag_fini(&unused);
    tuner->out->counts.proved += *proved;
    return status == STATUS_SYSTEM ? diag_no_memory(tuner->diag) : STATUS_OK;
}

/* ---- the search -------------------------------------------------------------------------------- */

static int compare_shorter(const void *a, const void *b)
{
    const struct host_candidate *x = a, *y = b;
    if (x->run.ns != y->run.ns)
        return x->run.ns < y->run.ns ? -1 : 1;
    return strcmp(x->text, y->text);
}

static bool may_try(const struct host_tuner *tuner, const struct edit *edit)
{
    const unsigned kept = tuner->options->kept;
    return !(edit->kind == EDIT_OP_STREAM && kept & 1u << TUNE_KNOB_STREAM) &&
           !(edit->kind == EDIT_MOVE && kept & 1u << TUNE_KNOB_ORDER);
}

/* Drawn without replacement: the i-th place gets one of those behind it. */
static void shuffle(const struct host_tuner *tuner, struct edit_list *edits)
{
    for (size_t i = 0; i + 1 < edits->count; i++) {
        const uint64_t drawn = hash_three(tuner->options->seed, tuner->round, i);
        const size_t k = i + (size_t)(drawn % (edits->count - i));
        const struct edit first = edits->items[i];
        edits->items[i] = edits->items[k];
        edits->items[k] = first;
    }
}

static enum status tune_host_try_all(struct host_tuner *tuner)
{
    struct plan best;
    struct edit_list edits;
    enum status status = read_folded(tuner->best, &best, tuner->diag);
    if (status != STATUS_OK)
        return status;
    const struct edits_end end = {tune_host_is_over, tuner};
    status = edits_list_faster(&best, &end, tuner->arena, &edits, tuner->diag);
    if (status == STATUS_OK)
        shuffle(tuner, &edits);
    for (size_t i = 0; status == STATUS_OK && i < edits.count && !tune_host_is_over(tuner); i++)
        if (may_try(tuner, &edits.items[i]))
            status = tune_host_try(tuner, &best, &edits.items[i]);
    plan_fini(&best);
    return status;
}

/* The shortest that is proved becomes the best; false: there is none. */
static enum status tune_host_keep(struct host_tuner *tuner, bool *kept)
{
    enum status status = STATUS_OK;
    *kept = false;
    SORT(tuner->shorter, tuner->shorter_count, compare_shorter);
    for (size_t i = 0; status == STATUS_OK && !*kept && i < tuner->shorter_count; i++) {
        const struct host_candidate *candidate = &tuner->shorter[i];
        status = prove_text(tuner, candidate->text, kept);
        if (status != STATUS_OK || !*kept)
            continue;
        tuner->best = candidate->text;
        tuner->best_run = candidate->run;
        if (!ARENA_GROW(tuner->arena, tuner->changes, tuner->change_count + 1, tuner->change_cap))
            return diag_no_memory(tuner->diag);
        tuner->changes[tuner->change_count++] = candidate->change;
        tuner->changes[tuner->change_count] = NULL;
    }
    return status;
}

static void tune_host_tell(const struct host_tuner *tuner)
{
    const struct tune_progress now = {tuner->out->counts.tried, tuner->best_run.ns};
    if (tuner->options->progress)
        tuner->options->progress(tuner->options->progress_arg, &now);
}

static enum status tune_host_search(struct host_tuner *tuner)
{
    enum status status = STATUS_OK;
    for (bool kept = true; status == STATUS_OK && kept && !tune_host_is_over(tuner);
         tuner->round++) {
        tuner->shorter_count = 0;
        status = tune_host_try_all(tuner);
        if (status == STATUS_OK)
            status = tune_host_keep(tuner, &kept);
        tune_host_tell(tuner);
    }
    return status;
}

/* ---- the whole --------------------------------------------------------------------------------- */

/* A plan judged from its text. */
static enum status judge_text(const struct host_tuner *tuner, const char *text, int given_streams,
                              struct tune_result *out)
{
    struct verify_report report;
    struct host_run run;
    *out = (struct tune_result){.text = text, .period_ns = NAN};
    enum status status = plan_parse(TUNE_NAME, text, strlen(text), &out->plan, tuner->diag);
    if (status != STATUS_OK)
        return status;
    status = tune_verify(&out->plan, tuner->options, DRIVER_NONE, false, 0, &report, tuner->diag);
    if (status == STATUS_OK) {
        out->verdict = report.verdict;
        verify_fini(&report);
        status = run_plan(&out->plan, tuner->options, &run, tuner->diag);
    }
    if (status != STATUS_OK) {
        plan_fini(&out->plan);
        return status;
    }
    out->period_ns = run.complete ? run.ns : NAN;
    out->streams = (int)out->plan.streams.count - given_streams;
    return STATUS_OK;
}

/* The order of what is not declared is not known, and a branch that one run takes another may not take. */
static enum status tune_host_check(const struct plan *plan, struct diag *diag)
{
    struct coverage coverage;
    for (size_t t = 0; t < plan->thread_count; t++)
        for (size_t i = 0; i < plan->threads[t].op_count; i++)
            if (plan->threads[t].ops[i].has_branches)
                return plan_error_at(
                    plan, diag, plan->threads[t].ops[i].mark,
                    "found branches, expected none: the results of a plan to be tuned "
                    "are those of one run");
    enum status status = coverage_find(plan, &coverage, diag);
    if (status != STATUS_OK || coverage.declared == coverage.all)
        return status;
    status = coverage_tell_undeclared(plan, &coverage, diag);
    diag_note(diag,
              "which order matters is known of declared accesses only: all work of host programs "
              "that are tuned declares what it reads and writes");
    return status;
}

/* The expectations of another plan: no violation. */
static enum status finish_text(struct host_tuner *tuner, const char **out)
{
    struct plan plan;
    enum status status =
        plan_parse(TUNE_NAME, tuner->best, strlen(tuner->best), &plan, tuner->diag);
    if (status != STATUS_OK)
        return status;
    tune_expect_no_violation(&plan.expect);
    plan.name = tune_name(plan.name, &plan.arena);
    status = plan.name ? plan_text_in(&plan, tuner->arena, out, tuner->diag)
                       : diag_no_memory(tuner->diag);
    plan_fini(&plan);
    return status;
}

static enum status judge_given_text(struct host_tuner *tuner, const struct plan *plan)
{
    struct verify_report report;
    enum status status = run_plan(plan, tuner->options, &tuner->given, tuner->diag);
    if (status != STATUS_OK)
        return status;
    if (!tuner->given.complete)
        return diag_error(tuner->diag, STATUS_VIOLATED, "%s hangs: its results are unknown",
                          plan->name);
    tuner->best_run = tuner->given;
    status = tune_verify(plan, tuner->options, DRIVER_NONE, true, 0, &report, tuner->diag);
    if (status != STATUS_OK)
        return status;
    tuner->states = EFFORTS * report.states > STATES ? EFFORTS * report.states : STATES;
    tuner->out->unfit = report.verdict != VERDICT_PROVED;
    if (tuner->out->unfit)
        diag_warn(tuner->diag, "%s is %s as given: only proved plans are kept", plan->name,
                  verdict_key(report.verdict));
    verify_fini(&report);
    return STATUS_OK;
}

static enum status tune_host_finish(struct host_tuner *tuner, const char *given, int streams)
{
    struct tune_host *out = tuner->out;
    const char *text = given;
    const atomic_bool *interrupted = tuner->options->interrupted;
    out->better = tuner->change_count > 0;
    out->interrupted = interrupted && atomic_load(interrupted);
    out->unfit = out->unfit && !out->better;
    out->changes = tuner->changes;
    enum status status = out->better ? finish_text(tuner, &text) : STATUS_OK;
    if (status == STATUS_OK)
        status = judge_text(tuner, given, streams, &out->before);
    if (status != STATUS_OK)
        return status;
    status = judge_text(tuner, text, streams, &out->after);
    if (status == STATUS_OK && out->better && out->after.verdict != VERDICT_PROVED) {
        status = diag_error(tuner->diag, STATUS_LIMIT, "%s: the tuned plan is %s when read again",
                            out->before.plan.name, verdict_key(out->after.verdict));
        tune_result_fini(&out->after);
    }
    if (status != STATUS_OK)
        tune_result_fini(&out->before);
    return status;
}

enum status tune_host(const struct plan *plan, const struct tune_options *options,
                      struct arena *arena, struct tune_host *out, struct diag *diag)
{
    struct host_tuner tuner = {.options = options,
                               .arena = arena,
                               .out = out,
                               .diag = diag,
                               .budget = options->candidates ? options->candidates
                                                             : TUNE_SIMULATED_CANDIDATES};
    const char *given;
    *out = (struct tune_host){0};
    tuner.changes = ARENA_ARRAY(arena, 1, const char *);
    tuner.change_cap = 0;
    enum status status = tuner.changes ? tune_host_check(plan, diag) : diag_no_memory(diag);
    if (status == STATUS_OK)
        status = plan_text_in(plan, arena, &given, diag);
    if (status != STATUS_OK)
        return status;
    tuner.best = given;
    tune_host_is_known(&tuner, given);
    status = judge_given_text(&tuner, plan);
    if (status == STATUS_OK)
        status = tune_host_search(&tuner);
    return status == STATUS_OK ? tune_host_finish(&tuner, given, (int)plan->streams.count) : status;
}

void tune_host_fini(struct tune_host *tune)
{
    tune_result_fini(&tune->before);
    tune_result_fini(&tune->after);
}
