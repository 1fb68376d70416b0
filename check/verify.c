/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.c - see verify.h.
 *
 * A plan is verified by strategies, one after the other; the table `strategies` near the end of this file says which there
 * are, in which order they are asked, what each may decide and why that is sound. A verification (struct verification)
 * has the properties that are asked for and those that are still open. A strategy that applies decides some of the open
 * ones and writes their outcomes and stories into the report. What the report says of the plan as a whole is written once,
 * by report_program.
 */
#include "verify.h"

#include "early.h"
#include "faults.h"
#include "few_ranks.h"
#include "many_ranks.h"
#include "many_times.h"
#include "messages.h"
#include "one_run.h"
#include "scout.h"
#include "shorten.h"
#include "base/stopwatch.h"
#include "base/work_limit.h"
#include "structure.h"
#include "machine/memory.h"
#include "machine/straight.h"
#include "machine/lower/rank_programs.h"
#include "plan/schedules/parallel.h"
#include "base/sort.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* How long a search for the rest goes on after the first violation, in machine steps, unless the caller
   limits the states. */
enum { FEW = 2, STEPS_BEHIND = 1 << 18, PROBE_STEPS = 1 << 16, AGENTS = 32 };

const char *verdict_key(enum verdict verdict)
{
    static const char *const keys[] = {"proved", "violated", "undecided"};
    return keys[verdict];
}

#define BIT(property) (1u << PROPERTY_##property)
enum { EVERY = (1u << PROPERTY_COUNT) - 1 };

/* Where accesses race these two are undefined. */
static const unsigned values = BIT(VALUE) | BIT(SERIAL);
/* Properties that need knowledge of accesses. */
static const unsigned needs_knowledge = BIT(RACE) | BIT(LIFETIME) | BIT(VALUE);

/* Programs that strategies want of the plan. */
enum program_kind {
    ORDINARY,
    WITH_CLOCKS, /* knowledge beside the states of one run, so that states need no room for it */
    PROGRAM_KINDS
};

struct verification {
    const struct plan *plan;
    const struct verify_options *options;
    int ranks; /* 0: those that the plan names one by one */
    struct program *programs
        [PROGRAM_KINDS]; /* built when a strategy wants them; else NULL. The ordinary one has two ranks
                                                where these are enough, until it is known that they are not */
    unsigned asked;      /* bits of the properties */
    unsigned proved;     /* of these and of what may hide them: without a search */
    unsigned searched; /* by a search */
    unsigned open;     /* asked, and no strategy was asked for them yet */
    bool done;         /* no further strategy is asked */
    struct verify_report *report;
    struct diag *diag;
};

static struct search_watch new_watch(const struct verification *v)
{
    return (struct search_watch){.until_ns = v->options->limits.until_ns,
                                 .interrupted = v->options->interrupted};
}

/* Building hears the limits, too. One that a small program would exceed is meant for the search. */
static enum status build_within_limits(const struct verification *v, struct program_options built,
                                       struct program **out)
{
    const size_t least_bytes = (size_t)64 << 20, most_bytes = v->options->limits.mem_bytes;
    const int64_t least_ns = stopwatch_now_ns() + 1000000000;
    struct search_watch watch = new_watch(v);
    struct work_limit limit;
    if (watch.until_ns && watch.until_ns < least_ns)
        watch.until_ns = least_ns;
    work_limit_init(&limit, most_bytes ? max_size(most_bytes, least_bytes) : 0, &watch);
    built.limit = &limit;
    return program_build(v->plan, &built, out, v->diag);
}

static const struct expectation *expected(const struct plan *plan, enum driver driver)
{
    return driver == DRIVER_DATAFLOW ? &plan->expect_dataflow : &plan->expect;
}

static bool asks_about_faults(const struct plan *plan, const struct verify_options *options,
                              enum driver driver)
{
    return options->faults ||
           (!options->properties && expected(plan, driver)->named[PROPERTY_FAULTS]);
}

/* True if one pipeline is built, which stands for all. A proof of it is one of any number (doc/checker.md, "One
   pipeline for all"). */
static bool one_pipeline_may_do(const struct verification *v)
{
    return v->plan->form == FORM_PROGRAMS && v->ranks == 0 && parallel_replicas_are_alike(v->plan);
}

static enum status build_kind(struct verification *v, enum program_kind kind, int ranks)
{
    const struct verify_options *options = v->options;
    struct program_options built = options->program;
    built.ranks = ranks;
    built.no_knowledge = options->properties && !(options->properties & (needs_knowledge | values));
    built.clocks = kind == WITH_CLOCKS && !built.no_knowledge;
    built.any_size = v->plan->form == FORM_PIPELINE; /* structure makes no states */
    built.straight = kind == WITH_CLOCKS && !v->asked;
    if (kind == WITH_CLOCKS && !v->asked && one_pipeline_may_do(v)) {
        built.few = 1;
        built.stands_for = plan_rank_count(v->plan);
    }
    return build_within_limits(v, built, &v->programs[kind]);
}

/* True if a proof by structure of two ranks may be one of all. What else is asked wants all ranks. */
static bool few_ranks_may_do(const struct verification *v)
{
    const unsigned properties = v->options->properties;
    return v->ranks > FEW && v->ranks <= PLAN_MAX_RANKS && !v->options->no_reduction &&
           !asks_about_faults(v->plan, v->options, v->options->program.driver) &&
           !(properties & BIT(FAULTS)) && plan_is_for_any_ranks(v->plan);
}

static enum status have_all_ranks(struct verification *v)
{
    struct program **program = &v->programs[ORDINARY];
    if (v->ranks == 0 || (*program)->ranks == v->ranks)
        return STATUS_OK;
    program_close(*program);
    *program = NULL;
    return build_kind(v, ORDINARY, v->ranks);
}

/* True if the caller wants one violation and has it. */
static bool has_enough(const struct verification *v)
{
    return v->options->quick && v->report->verdict == VERDICT_VIOLATED;
}

/* ---- what hides what ------------------------------------------------------------------------- */

/* The properties whose violation may keep a run from violating one of `asked`: a run that hangs does
   not reach the drain, no run is followed beyond a mismatch, and a race leaves it to chance what is read. */
static unsigned hiders(unsigned asked)
{
    unsigned hiding = asked ? BIT(MISMATCH) : 0;
    hiding |= asked & values ? BIT(RACE) | BIT(LIFETIME) : 0;
    return asked & BIT(DRAIN) ? hiding | BIT(DEADLOCK) : hiding;
}

/* The properties that are not proved by runs that do not violate them, because a violation of `found` ended or spoilt
   other runs. */
static unsigned hidden_by(unsigned found)
{
    if (found & BIT(MISMATCH))
        return ~0u;
    unsigned hidden = found & (BIT(RACE) | BIT(LIFETIME)) ? values : 0;
    return found & BIT(DEADLOCK) ? hidden | BIT(DRAIN) : hidden;
}

static const char *what_hides(unsigned found)
{
    return found & BIT(MISMATCH)   ? "behind a mismatch; --property=mismatch shows it"
           : found & BIT(RACE)     ? "behind a race; --property=race shows it"
           : found & BIT(LIFETIME) ? "behind a reuse of memory; --property=lifetime shows it"
                                   : "behind a deadlock; --property=deadlock shows it";
}

/* A plan that hangs before the end of its data hangs after it as well, and one that races computes something
   else at times: that is one finding. */
static unsigned findings(const struct search_result *result)
{
    unsigned found = result->found;
    if (found & (BIT(DEADLOCK) | BIT(MISMATCH)))
        found &= ~BIT(DRAIN);
    if (found & (BIT(RACE) | BIT(LIFETIME)))
        found &= ~values;
    return found;
}

/* ---- the report ------------------------------------------------------------------------------ */

static void set_outcomes(struct verify_report *report, unsigned proved)
{
    for (int p = 0; p < PROPERTY_COUNT; p++)
        report->outcome[p] = proved & 1u << p ? OUTCOME_PROVED : OUTCOME_UNDECIDED;
}

/* True if this violation is now the one to show first: there was none, or it `leads` those of later properties. */
static bool verify_add_violation(struct verify_report *report, enum property property,
                                 enum outcome outcome, bool leads)
{
    bool first = report->verdict != VERDICT_VIOLATED || (leads && report->first > property);
    assert(outcome_is_violation(outcome));
    report->verdict = VERDICT_VIOLATED;
    report->outcome[property] = outcome;
    if (first)
        report->first = property;
    return first;
}

static bool names_driver(const struct plan *plan, enum driver driver)
{
    return plan->form == FORM_PIPELINE && plan->pipeline.driver_given &&
           driver == (plan->pipeline.driver == PLAN_DRIVER_CLOCK ? DRIVER_CLOCK : DRIVER_DATAFLOW);
}

/* What does not depend on who decided. Ranks may have data for different numbers of iterations; a program without
   iterations has no serial run. */
static void report_program(const struct verification *v)
{
    const struct program *program =
        v->programs[ORDINARY] ? v->programs[ORDINARY] : v->programs[WITH_CLOCKS];
    struct verify_report *report = v->report;
    report->asked = v->asked;
    report->driver = program->driver;
    report->driver_named = names_driver(v->plan, program->driver);
    report->ranks = v->ranks ? v->ranks : program_all_ranks(program);
    report->finite = program->tasks == 0;
    report->repeated = plan_repeats(v->plan);
    report->any_ranks =
        v->proved && !v->searched && !(v->asked & BIT(FAULTS)) && plan_is_for_any_ranks(v->plan);
    report->most_in_flight = program->most_in_flight;
    report->most_bytes = program_bytes(program, program->most_in_flight);
    for (int s = 0; s < program->stream_count; s++)
        if (program->streams[s].cap > report->launch_queue)
            report->launch_queue = program->streams[s].cap;
    for (int rank = 0; program->tasks && rank < program->ranks; rank++) {
        int64_t end = program->ends[rank];
        if (rank == 0 || end < report->iterations)
            report->iterations = end;
        if (rank == 0 || end > report->most_iterations)
            report->most_iterations = end;
    }
    if (program->tasks)
        return;
    report->outcome[PROPERTY_SERIAL] = OUTCOME_NONE;
    if (v->asked)
        return;
    report->verdict = VERDICT_UNDECIDED;
    report->limit = "serial: a plan without iterations has no serial run";
}

/* ---- searches -------------------------------------------------------------------------------- */

/* A step takes about so many times as long as one of a small program. */
static unsigned step_cost(const struct program *program)
{
    return 1 + (unsigned)program->agent_count / AGENTS;
}

/* Options that all searches of a program share. */
static struct search_options base_options(const struct program *program,
                                          const struct verify_options *options, struct early *early)
{
    struct search_limits limits = options->limits;
    limits.steps_behind = limits.states ? 0 : STEPS_BEHIND / step_cost(program);
    return (struct search_options){.reduction = !options->no_reduction,
                                   .properties = options->properties ? options->properties : EVERY,
                                   .limits = limits,
                                   .threads = options->threads,
                                   .interrupted = options->interrupted,
                                   .going_on = early ? early_look : NULL,
                                   .going_on_arg = early,
                                   .progress = options->progress,
                                   .bitstate_bytes = options->bitstate_bytes,
                                   .progress_arg = options->progress_arg};
}

static bool data_are_open(const struct program *program)
{
    bool open = false;
    for (int rank = 0; program->tasks && rank < program->ranks; rank++)
        open |= program->ends[rank] < 0;
    return open;
}

/* Find out whether there is a run that avoids the violation. "Some" if the search for one reaches a limit, and then
   *open. A bitstate search has too many states for it. A mismatch may end a run before the violation in one order of
   independent steps and not in another, so where there is one reduction cannot answer. */
static enum status verify_always_or_some(const struct program *program,
                                         const struct search_options *common, bool mismatches,
                                         enum property property, enum outcome *out, bool *open,
                                         struct diag *diag)
{
    *out = OUTCOME_SOME;
    *open = true;
    if (common->bitstate_bytes)
        return STATUS_OK;
    struct search_options search = *common;
    search.limits.steps = common->limits.steps_behind;
    search.properties = 1u << property;
    search.cut_at = 1u << property;
    search.endless = data_are_open(program) && property != PROPERTY_DRAIN;
    if (mismatches && search.reduction && property != PROPERTY_MISMATCH)
        search.reduction = false;
    if (search.reduction != common->reduction) {
        search.limits.states = 0;
        search.limits.steps = STEPS_BEHIND;
    }
    struct search_result result;
    enum status status = search_run(program, &search, &result, diag);
    if (status != STATUS_OK)
        return status;
    *out = result.complete && !result.avoided ? OUTCOME_ALWAYS : OUTCOME_SOME;
    *open = !result.complete && !result.avoided;
    search_result_fini(&result);
    return STATUS_OK;
}

/* `proved`: without the search; `asked`: what the search was made for. */
static void judge_search(struct verify_report *report, unsigned proved, unsigned asked,
                         const struct search_result *result)
{
    unsigned hidden = hidden_by(result->found);
    unsigned now = (proved | (result->complete ? asked : 0)) & ~hidden;
    report->verdict = (asked | proved) & ~now ? VERDICT_UNDECIDED : VERDICT_PROVED;
    set_outcomes(report, now);
    if (asked & hidden & ~findings(result))
        report->hidden = what_hides(result->found);
}

static enum status report_search(const struct search_result *result, struct verify_report *report,
                                 struct diag *diag)
{
    report->limit = result->limit;
    report->bitstate = result->coverage > 0 && result->limit == SEARCH_BITSTATE;
    report->no_memory = result->no_memory;
    report->states = result->states;
    report->transitions = result->transitions;
    report->peak_bytes = result->peak_bytes;
    if (!report->bitstate)
        return STATUS_OK;
    char text[64];
    snprintf(text, sizeof text, "bitstate: about %.4g%% coverage", 100 * result->coverage);
    report->limit = arena_strdup(&report->arena, text);
    return report->limit ? STATUS_OK : diag_no_memory(diag);
}

/* The story that is shown is that of the first property, so it is the first to be made shorter. */
static enum status explain_findings(const struct program *program,
                                    const struct search_options *common, bool any_witness,
                                    struct search_result *result, struct verify_report *report,
                                    struct diag *diag)
{
    unsigned found = findings(result) & common->properties;
    enum status status = STATUS_OK;
    struct shorten_budget budget;
    shorten_begin(&budget);
    for (int p = 0; p < PROPERTY_COUNT && status == STATUS_OK; p++) {
        enum property property = (enum property)p;
        enum outcome outcome = OUTCOME_SOME;
        bool open;
        if (!(found & 1u << p))
            continue;
        status = verify_always_or_some(program, common, result->found & BIT(MISMATCH), property,
                                       &outcome, &open, diag);
        verify_add_violation(report, property, outcome, false);
        report->maybe_always |= open ? 1u << p : 0;
        if (status == STATUS_OK && !any_witness)
            status =
                shorten_path(program, common, property, &budget, &result->witness[property], diag);
        if (status == STATUS_OK)
            status = explain_path(program, property, &result->witness[property], &report->arena,
                                  &report->stories[property], diag);
    }
    return status;
}

/* The quick answer: one violation and its suspects. */
static enum status find_suspects(const struct program *program, unsigned asked,
                                 const struct search_result *result, struct verify_report *report,
                                 struct diag *diag)
{
    unsigned found = findings(result) & asked;
    for (int p = 0; p < PROPERTY_COUNT; p++) {
        if (!(found & 1u << p))
            continue;
        verify_add_violation(report, (enum property)p, OUTCOME_SOME, false);
        report->maybe_always |= 1u << p;
        return suspects_find(program, report->first, &result->witness[p], &report->arena,
                             &report->suspects, diag);
    }
    return STATUS_OK;
}

/* The search leaves out violations that single runs have found; afterwards they count as found by it. */
static void add_scouted(struct search_result *scouted, struct search_result *result)
{
    if (scouted->found && result->states == 0) {
        result->states += scouted->states;
        result->transitions += scouted->transitions;
    }
    for (int p = 0; p < PROPERTY_COUNT; p++) {
        if (!(scouted->found & ~result->found & 1u << p))
            continue;
        result->witness[p] = scouted->witness[p];
        result->found |= 1u << p;
        scouted->witness[p] = (struct search_path){0};
    }
}

/* Leave out what single runs and the search with two ranks have found. Behind a mismatch nothing more is proved. Behind another
   violation the search goes on as long as behind one of its own; those of `values` are found in almost any run, and do not count. */
static void leave_out_found(struct search_options *search, const struct search_options *common,
                            unsigned found)
{
    search->properties = found & BIT(MISMATCH) ? 0 : search->properties & ~found;
    if (found & ~values && common->limits.steps_behind)
        search->limits.steps = common->limits.steps_behind;
}

/* Search for v->searched, and for what may hide it. */
static enum status search_program(const struct verification *v, const struct program *program,
                                  struct verify_report *report)
{
    const struct verify_options *options = v->options;
    const unsigned asked = v->searched;
    struct early early;
    struct search_result result = {.complete = true}, scouted;
    struct search_watch watch = new_watch(v);
    bool scouts = program->tasks > 0 && !options->no_reduction;
    enum status status =
        scout_runs(program, scouts ? asked & values : 0, &watch, &scouted, v->diag);
    if (status != STATUS_OK)
        return status;
    early_begin(&early, program, asked, options->found, options->found_arg);
    struct search_options common = base_options(program, options, &early), search = common;
    common.properties = asked;
    search.probe_steps = options->no_reduction ? 0 : PROBE_STEPS / step_cost(program);
    search.properties = (asked & ~scouted.found) | (hiders(asked) & ~v->proved);
    if (search.properties && !options->no_reduction && !options->bitstate_bytes)
        status = few_ranks_find(program, &search, &scouted, v->diag);
    leave_out_found(&search, &common, scouted.found);
    search.stop_when_all = v->proved ? asked & ~scouted.found : 0;
    search.moot = values;
    search.moot_by = BIT(RACE) | BIT(LIFETIME);
    search.stop_at = options->quick ? asked : 0;
    report->searched = search.properties || scouted.found;
    if (status == STATUS_OK && search.properties)
        status = search_run(program, &search, &result, v->diag);
    if (status == STATUS_OK)
        add_scouted(&scouted, &result);
    search_result_fini(&scouted);
    if (status != STATUS_OK)
        return status;
    judge_search(report, v->proved, asked, &result);
    status = report_search(&result, report, v->diag);
    early.result = &result;
    if (status == STATUS_OK)
        status = options->quick ? find_suspects(program, asked, &result, report, v->diag)
                                : explain_findings(program, &common, options->any_witness, &result,
                                                   report, v->diag);
    search_result_fini(&result);
    return status;
}

/* ---- independent ranks ----------------------------------------------------------------------- */

/* A violation of one part violates the whole, and always if it does so in the part. The whole is proved
   if every part is. */
static enum outcome verify_worse(enum outcome a, enum outcome b)
{
    static const int rank[] = {[OUTCOME_NONE] = 0,
                               [OUTCOME_PROVED] = 0,
                               [OUTCOME_UNDECIDED] = 1,
                               [OUTCOME_SOME] = 2,
                               [OUTCOME_ALWAYS] = 3};
    return rank[a] >= rank[b] ? a : b;
}

static void verify_add_part(struct verify_report *whole, const struct verify_report *part)
{
    bool first = part->verdict == VERDICT_VIOLATED &&
                 (whole->verdict != VERDICT_VIOLATED || part->first < whole->first);
    for (int p = 0; p < PROPERTY_COUNT; p++) {
        if (!outcome_is_violation(whole->outcome[p]))
            whole->stories[p] = part->stories[p];
        whole->outcome[p] = verify_worse(whole->outcome[p], part->outcome[p]);
    }
    whole->maybe_always |= part->maybe_always;
    if (first) {
        whole->first = part->first;
        whole->suspects = part->suspects;
    }
    if (part->verdict == VERDICT_VIOLATED || whole->verdict == VERDICT_PROVED)
        whole->verdict = part->verdict;
    whole->limit = whole->limit ? whole->limit : part->limit;
    whole->hidden = whole->hidden ? whole->hidden : part->hidden;
    whole->searched |= part->searched;
    whole->bitstate |= part->bitstate;
    whole->no_memory |= part->no_memory;
    whole->states += part->states;
    whole->transitions += part->transitions;
    whole->peak_bytes = max_size(whole->peak_bytes, part->peak_bytes);
}

/* A violation of every run of a part may be avoided by a run of the whole, if another part mismatches first: that
   ends it. `mismatching` parts do; `there`: what every run of the only one violates. */
static void weaken_always(struct verify_report *whole, int mismatching, unsigned there)
{
    for (int p = 0; p < PROPERTY_COUNT && mismatching > 0; p++)
        if (p != PROPERTY_MISMATCH && whole->outcome[p] == OUTCOME_ALWAYS &&
            (mismatching > 1 || !(there & 1u << p)))
            whole->outcome[p] = OUTCOME_SOME;
}

static unsigned always_violated(const struct verify_report *report)
{
    unsigned always = 0;
    for (int p = 0; p < PROPERTY_COUNT; p++)
        always |= report->outcome[p] == OUTCOME_ALWAYS ? 1u << p : 0;
    return always;
}

/* The texts of the part are in the arena of the whole. */
static enum status verify_part(const struct verification *v, const struct program *whole, int rank,
                               struct verify_report *out)
{
    struct program *program;
    struct program_options built = whole->options;
    struct verify_report part = {.arena = v->report->arena};
    built.part = rank + 1;
    enum status status = build_within_limits(v, built, &program);
    if (status != STATUS_OK)
        return status;
    status = search_program(v, program, &part);
    program_close(program);
    v->report->arena = part.arena;
    if (status == STATUS_OK)
        verify_add_part(v->report, &part);
    *out = part;
    return status;
}

/* True if all ranks are equal and without communicators: the result of one holds for all. */
static bool ranks_are_one(const struct program *program)
{
    const struct pipeline *pipeline = &program->plan->pipeline;
    return program->comm_count == 0 && pipeline->override_count == 0 && !pipeline->batches;
}

static bool has_parts(const struct program *program)
{
    for (int rank = 0; rank < program->ranks; rank++)
        if (program->fellows[rank] != 0)
            return true;
    return false;
}

static enum status search_parts(const struct verification *v, const struct program *program)
{
    enum status status = STATUS_OK;
    int mismatching = 0;
    unsigned there = 0;
    v->report->verdict = VERDICT_PROVED;
    set_outcomes(v->report, v->proved | v->searched);
    for (int rank = 0; rank < program->ranks && status == STATUS_OK; rank++) {
        struct verify_report part = {0};
        if (program->fellows[rank] == rank)
            status = verify_part(v, program, rank, &part);
        if (outcome_is_violation(part.outcome[PROPERTY_MISMATCH])) {
            mismatching++;
            there = always_violated(&part);
        }
        if (ranks_are_one(program) || has_enough(v))
            break;
    }
    weaken_always(v->report, mismatching, there);
    return status;
}

static bool wants_search(const struct verification *v)
{
    const unsigned apart = v->programs[ORDINARY]->untracked ? needs_knowledge : 0;
    return v->open & ~apart & ~(BIT(MESSAGE) | BIT(FAULTS));
}

/* The order of a serial run is compared where structure does not prove it; that takes room in a state. */
static enum status search_whole(struct verification *v)
{
    const struct program *program = v->programs[ORDINARY];
    struct program *compared = NULL;
    struct program_options built = program->options;
    built.serial = true;
    v->searched = v->open & ~(BIT(MESSAGE) | BIT(FAULTS));
    if (program->untracked)
        v->searched &= ~needs_knowledge;
    enum status status = program_fits(program, v->diag);
    if (status == STATUS_OK && v->searched & BIT(SERIAL)) {
        status = build_within_limits(v, built, &compared);
        program = compared;
    }
    if (status == STATUS_OK)
        status =
            has_parts(program) ? search_parts(v, program) : search_program(v, program, v->report);
    if (compared)
        program_close(compared);
    v->open &= ~v->searched;
    return status;
}

/* ---- proofs without a search ----------------------------------------------------------------- */

static bool always(const struct verification *v)
{
    (void)v;
    return true;
}

static enum status prove_by_structure(struct verification *v)
{
    const struct program *program = v->programs[ORDINARY];
    struct search_watch watch = new_watch(v);
    unsigned proved = 0;
    if (!v->options->no_reduction) {
        enum status status = structure_proves(program, &watch, &proved, v->diag);
        if (status != STATUS_OK)
            return status;
    }
    const bool plain = proved != 0; /* nothing is sent */
    proved &= v->asked | hiders(v->asked & ~proved);
    if (!program_asks_bound(program)) /* nothing can violate it */
        proved |= BIT(BOUND) & v->asked;
    v->proved = proved;
    v->open &= ~proved;
    v->report->verdict = VERDICT_PROVED;
    set_outcomes(v->report, proved);
    return plain && !(v->open & ~BIT(MESSAGE)) ? STATUS_OK : have_all_ranks(v);
}

/* ---- one run with clocks --------------------------------------------------------------------- */

static enum status tell_found(const struct verification *v, const struct program *program,
                              const struct one_run *run, enum property property)
{
    struct verify_report *report = v->report;
    verify_add_violation(report, property, run->alone ? OUTCOME_ALWAYS : OUTCOME_SOME, true);
    report->maybe_always |= run->alone ? 0 : 1u << property;
    if (v->options->quick)
        return suspects_find(program, property, &run->path[property], &report->arena,
                             &report->suspects, v->diag);
    return explain_path(program, property, &run->path[property], &report->arena,
                        &report->stories[property], v->diag);
}

static enum status judge_one_run(const struct verification *v, const struct program *program,
                                 unsigned asked, const struct one_run *run)
{
    struct verify_report *report = v->report;
    unsigned seen = run->found | (run->mismatch ? BIT(MISMATCH) : 0);
    unsigned hidden = hidden_by(seen), told = run->found & ~(hidden & values);
    bool proved = run->alone && !run->mismatch;
    enum status status = STATUS_OK;
    for (int p = PROPERTY_COUNT - 1; p >= 0 && status == STATUS_OK; p--) {
        if (!(asked & 1u << p))
            continue;
        if (told & 1u << p)
            status = tell_found(v, program, run, (enum property)p);
        else
            report->outcome[p] = proved && !(hidden & 1u << p) ? OUTCOME_PROVED : OUTCOME_UNDECIDED;
    }
    if ((proved && !(asked & hidden & ~seen)) || report->verdict == VERDICT_VIOLATED)
        return status;
    report->verdict = VERDICT_UNDECIDED;
    report->hidden = run->alone || run->mismatch
                         ? what_hides(seen)
                         : "race: too many actions, whose order is not determined";
    return status;
}

static bool lacks_knowledge(const struct verification *v)
{
    return v->open & needs_knowledge && v->programs[ORDINARY]->untracked && !has_enough(v);
}

static enum status find_races(struct verification *v)
{
    const struct program *program = v->programs[WITH_CLOCKS];
    const unsigned asked = v->open & needs_knowledge;
    struct search_watch watch = new_watch(v);
    struct one_run run;
    enum status status = one_run_take(program, &watch, &run, v->diag);
    if (status != STATUS_OK)
        return status;
    status = judge_one_run(v, program, asked, &run);
    one_run_fini(&run);
    v->open &= ~asked;
    return status;
}

static bool is_big(const struct verification *v)
{
    const struct search_limits *limits = &v->options->limits;
    const int copies = one_pipeline_may_do(v) ? plan_replicas(v->plan) : 1;
    return v->plan->form == FORM_PROGRAMS && !v->options->no_reduction &&
           !v->options->bitstate_bytes && !limits->states && !limits->steps &&
           rank_programs_are_big(v->plan, copies);
}

/* No time is left for a search: no other program is built for one. */
static void report_no_time(const struct verification *v, const struct program *program,
                           const struct search_watch *watch)
{
    unsigned proved = v->asked & BIT(MESSAGE); /* by the plan, before the run */
    if (!program_asks_bound(program))
        proved |= v->asked & BIT(BOUND);
    set_outcomes(v->report, proved);
    v->report->verdict = VERDICT_UNDECIDED;
    v->report->limit = watch_interrupted(watch) ? "interrupted" : "time";
}

static enum status verify_judge_memory(struct verification *v);

static enum status judge_by_one_run(struct verification *v)
{
    const struct program *program = v->programs[WITH_CLOCKS];
    struct verify_report *report = v->report;
    struct search_watch watch = new_watch(v);
    struct one_run run;
    int lone = -1;
    enum status status = messages_find_lone(program, &lone, v->diag);
    if (status != STATUS_OK || lone >= 0 || v->asked & BIT(FAULTS) || !v->asked)
        return status;
    if (program->straight) /* the lowering has found that run, and that all is in order in it */
        run = (struct one_run){
            .alone = true, .done = true, .steps = program->straight->machine_steps};
    else
        status = one_run_take(program, &watch, &run, v->diag);
    if (status != STATUS_OK)
        return status;
    bool proves = run.alone && run.done && run.seen == 0, late = !proves && watch_over(&watch);
    if (proves) {
        set_outcomes(report, v->asked);
        report->verdict = VERDICT_PROVED;
        report->states = 1;
        report->transitions = run.steps;
    } else if (late) {
        report_no_time(v, program, &watch);
    }
    one_run_fini(&run);
    v->done = proves || late;
    if (!v->done)
        return STATUS_OK;
    report->searched = true;
    report->peak_bytes = program->at.bytes;
    return proves && v->asked & BIT(BOUND) ? verify_judge_memory(v) : STATUS_OK;
}

/* The strategies behind it want all ranks. */
static enum status prove_by_one_run(struct verification *v)
{
    const enum status status = judge_by_one_run(v);
    if (!v->done &&
        (v->programs[WITH_CLOCKS]->options.stands_for || v->programs[WITH_CLOCKS]->straight)) {
        program_close(v->programs[WITH_CLOCKS]);
        v->programs[WITH_CLOCKS] = NULL;
    }
    return status;
}

/* ---- facts about the plan -------------------------------------------------------------------- */

static bool asks_bound(const struct verification *v)
{
    return v->asked & BIT(BOUND);
}

/* The memory of programs without iterations. */
static enum status verify_judge_memory(struct verification *v)
{
    const struct program *program =
        v->programs[ORDINARY] ? v->programs[ORDINARY] : v->programs[WITH_CLOCKS];
    struct verify_report *report = v->report;
    const char *sentence;
    enum status status = memory_tell(v->plan, program, &report->arena, &sentence, v->diag);
    if (status != STATUS_OK || !sentence)
        return status;
    if (verify_add_violation(report, PROPERTY_BOUND, OUTCOME_ALWAYS, true))
        report->suspects = (struct suspects){.property = PROPERTY_BOUND, .fingerprint = 1};
    report->stories[PROPERTY_BOUND].sentence = sentence;
    return STATUS_OK;
}

static bool asks_messages(const struct verification *v)
{
    return v->asked & BIT(MESSAGE);
}

/* A finding without steps: the story told first is that of another violation, if there is one. */
static enum status judge_messages(struct verification *v)
{
    const struct program *program = v->programs[ORDINARY];
    struct verify_report *report = v->report;
    int lone;
    enum status status = messages_find_lone(program, &lone, v->diag);
    if (status != STATUS_OK)
        return status;
    v->open &= ~BIT(MESSAGE);
    report->outcome[PROPERTY_MESSAGE] = OUTCOME_PROVED;
    if (lone < 0)
        return STATUS_OK;
    if (verify_add_violation(report, PROPERTY_MESSAGE, OUTCOME_ALWAYS, false))
        report->suspects =
            (struct suspects){.property = PROPERTY_MESSAGE, .fingerprint = (uint64_t)lone + 1};
    report->stories[PROPERTY_MESSAGE].sentence = messages_tell(program, lone, &report->arena);
    return report->stories[PROPERTY_MESSAGE].sentence ? STATUS_OK : diag_no_memory(v->diag);
}

/* ---- failure safety -------------------------------------------------------------------------- */

static bool asks_faults(const struct verification *v)
{
    const enum outcome *outcome = v->report->outcome;
    return v->asked & BIT(FAULTS) && !has_enough(v) &&
           !outcome_is_violation(outcome[PROPERTY_DEADLOCK]) &&
           !outcome_is_violation(outcome[PROPERTY_DRAIN]) &&
           !outcome_is_violation(outcome[PROPERTY_MISMATCH]);
}

static void report_faults(struct verify_report *report, const struct faults_answer *answer)
{
    report->outcome[PROPERTY_FAULTS] = answer->outcome;
    report->searched |= answer->states > 0;
    report->states += answer->states;
    report->transitions += answer->transitions;
    if (answer->peak_bytes > report->peak_bytes)
        report->peak_bytes = answer->peak_bytes;
    if (answer->limit)
        report->limit = answer->limit;
    if (report->verdict == VERDICT_VIOLATED || answer->outcome == OUTCOME_PROVED)
        return;
    report->verdict = VERDICT_UNDECIDED;
    if (outcome_is_violation(answer->outcome))
        verify_add_violation(report, PROPERTY_FAULTS, answer->outcome, false);
}

static enum status judge_faults(struct verification *v)
{
    const struct verify_options *options = v->options;
    struct verify_report *report = v->report;
    const enum outcome *outcome = report->outcome;
    struct faults_options faults = {.no_structure = options->no_reduction,
                                    .any_witness = options->any_witness || options->quick,
                                    .lives = outcome[PROPERTY_DEADLOCK] == OUTCOME_PROVED &&
                                             outcome[PROPERTY_DRAIN] == OUTCOME_PROVED &&
                                             outcome[PROPERTY_MISMATCH] == OUTCOME_PROVED,
                                    .limits = options->limits,
                                    .interrupted = options->interrupted,
                                    .progress = options->progress,
                                    .progress_arg = options->progress_arg};
    struct faults_answer answer;
    enum status status = faults_judge(v->plan, v->programs[ORDINARY], &faults, &answer, v->diag);
    if (status != STATUS_OK)
        return status;
    report_faults(report, &answer);
    if (outcome_is_violation(answer.outcome) && options->quick)
        status = suspects_find(answer.program, PROPERTY_FAULTS, &answer.witness, &report->arena,
                               &report->suspects, v->diag);
    else if (outcome_is_violation(answer.outcome))
        status = explain_path(answer.program, PROPERTY_FAULTS, &answer.witness, &report->arena,
                              &report->stories[PROPERTY_FAULTS], v->diag);
    faults_fini(&answer);
    return status;
}

/* ---- the strategies -------------------------------------------------------------------------- */

/* In the order in which they are asked. `decides`: the properties whose outcomes a strategy may write; it leaves those of
   others as they are. The program of its kind is built before a strategy runs; those behind the second one may ask the
   ordinary program whether they apply. */
static const struct strategy {
    enum program_kind program;
    unsigned decides;
    bool (*applies)(const struct verification *v);
    enum status (*run)(struct verification *v);
} strategies[] = {
    /* One run of a big schedule. If all its steps commute every run is a reordering of this one, so what this one does not
       violate is proved. It decides everything, or nothing; a search would need knowledge in its states. */
    {WITH_CLOCKS, EVERY & ~BIT(FAULTS), is_big, prove_by_one_run},
    /* Theorems about the structure of a plan (structure.h, doc/checker.md), and a bound that nothing can exceed. Nothing is
       violated by them. */
    {ORDINARY, EVERY & ~BIT(FAULTS), always, prove_by_structure},
    /* A search over all interleavings, of all ranks together or of independent ones apart, whose steps interleave without
       effect. A complete search proves; what it finds is a run of the machine. It may take back what structure proved where
       a violation hides it, and needs knowledge of accesses in its states for races. */
    {ORDINARY, EVERY & ~(BIT(MESSAGE) | BIT(FAULTS)), wants_search, search_whole},
    /* The bytes that a plan without iterations holds, counted: a fact about every run. */
    {ORDINARY, BIT(BOUND), asks_bound, verify_judge_memory},
    /* Sends and receives without a partner: a fact about the program (messages.h). */
    {ORDINARY, BIT(MESSAGE), asks_messages, judge_messages},
    /* Races of programs too big for knowledge in the states of a search, from one run with clocks. It proves if all steps
       commute; else it knows only what this run shows. */
    {WITH_CLOCKS, BIT(RACE) | BIT(LIFETIME) | BIT(VALUE), lacks_knowledge, find_races},
    /* Faults, once the plan without them is known: one that hangs or mismatches without a fault does so after a fault as
       well, and is not asked (faults.h). */
    {ORDINARY, BIT(FAULTS), asks_faults, judge_faults},
};

/* The properties to decide, and with them what must be known before. A plan without iterations has no serial run. Failure
   safety is asked for by the caller, or if the plan expects an outcome of it. */
static unsigned find_asked(const struct program *program, const struct verify_options *options)
{
    unsigned asked = options->properties ? options->properties : EVERY & ~BIT(FAULTS);
    if (asks_about_faults(program->plan, options, program->driver))
        asked |= BIT(FAULTS);
    if (program->tasks == 0)
        asked &= ~BIT(SERIAL);
    if (asked & BIT(FAULTS)) /* needs to know whether the plan hangs without a fault */
        asked |= BIT(DEADLOCK) | BIT(DRAIN) | BIT(MISMATCH);
    return asked;
}

/* The first program says what is asked. */
static enum status have_program(struct verification *v, enum program_kind kind)
{
    const struct verify_options *options = v->options;
    bool first = !v->programs[ORDINARY] && !v->programs[WITH_CLOCKS];
    if (v->programs[kind])
        return STATUS_OK;
    const int ranks = kind == ORDINARY && few_ranks_may_do(v) ? FEW : v->ranks;
    struct timespec start = stopwatch_start();
    enum status status = build_kind(v, kind, ranks);
    if (status == STATUS_OK && v->programs[kind]->straight) /* the proof, too */
        v->report->seconds += stopwatch_seconds(&start);
    if (status == STATUS_OK && first)
        v->open = v->asked = find_asked(v->programs[kind], options);
    return status;
}

static enum status run_strategy(struct verification *v, const struct strategy *strategy)
{
    enum outcome before[PROPERTY_COUNT];
    memcpy(before, v->report->outcome, sizeof before);
    struct timespec start = stopwatch_start();
    enum status status = strategy->run(v);
    v->report->seconds += stopwatch_seconds(&start);
    for (int p = 0; p < PROPERTY_COUNT; p++)
        assert(strategy->decides & 1u << p || v->report->outcome[p] == before[p]);
    return status;
}

static enum status run_strategies(struct verification *v)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies && !v->done; i++) {
        const struct strategy *strategy = &strategies[i];
        if (!strategy->applies(v))
            continue;
        status = have_program(v, strategy->program);
        if (status == STATUS_OK)
            status = run_strategy(v, strategy);
        if (status != STATUS_OK)
            return status;
    }
    report_program(v);
    return STATUS_OK;
}

static enum status verify_ranks(const struct plan *plan, const struct verify_options *options,
                                struct verify_report *out, struct diag *diag)
{
    struct verification v = {.plan = plan, .options = options, .report = out, .diag = diag};
    v.ranks = options->program.ranks;
    if (v.ranks == 0 && plan->form == FORM_PIPELINE)
        v.ranks = plan->ranks;
    *out = (struct verify_report){0};
    for (int p = 0; p < PROPERTY_COUNT; p++)
        out->stories[p].other_step = -1;
    arena_init(&out->arena, 0);
    out->plan = arena_strdup(&out->arena, plan->name);
    out->file = arena_strdup(&out->arena, plan->file);
    enum status status = out->plan && out->file ? run_strategies(&v) : diag_no_memory(diag);
    for (int kind = 0; kind < PROGRAM_KINDS; kind++)
        if (v.programs[kind])
            program_close(v.programs[kind]);
    if (status != STATUS_OK)
        verify_fini(out);
    return status;
}

/* Host programs of many ranks are asked in parts where a short search of the whole does not end. */
static enum status verify_parts(const struct plan *plan, const struct verify_options *options,
                                struct verify_report *out, struct diag *diag)
{
    struct verify_options first = *options;
    if (!many_ranks_may_do(plan, options))
        return verify_ranks(plan, options, out, diag);
    first.limits.steps = MANY_RANKS_STEPS;
    first.quick = true;
    first.found = NULL;
    enum status status = verify_ranks(plan, &first, out, diag);
    if (status != STATUS_OK)
        return status;
    status = many_ranks_judge(plan, options, out, diag);
    if (status != STATUS_OK) {
        verify_fini(out);
        return status;
    }
    if (out->verdict == VERDICT_PROVED ||
        (options->many_ranks && out->verdict == VERDICT_UNDECIDED))
        return STATUS_OK;
    if (out->verdict == VERDICT_UNDECIDED && options->limits.until_ns &&
        stopwatch_now_ns() >= options->limits.until_ns) {
        out->limit = "time";
        return STATUS_OK;
    }
    verify_fini(out);
    return verify_ranks(plan, options, out, diag);
}

/* Where few iterations of a host program's repeat stand for any number, these are asked first. */
enum status verify_plan(const struct plan *plan, const struct verify_options *options,
                        struct verify_report *out, struct diag *diag)
{
    struct plan few;
    bool no_memory;
    if (!many_times_plan(plan, &few, &no_memory))
        return no_memory ? diag_no_memory(diag) : verify_parts(plan, options, out, diag);
    struct verify_options first = *options;
    const bool all = plan_repeats(plan) == MANY_TIMES_LEAST;
    if (!all)
        first.found = NULL;
    const enum status status = verify_parts(&few, &first, out, diag);
    arena_fini(&few.arena);
    if (status != STATUS_OK)
        return status;
    out->any_times = out->verdict == VERDICT_PROVED && !(out->asked & BIT(FAULTS));
    if (all || out->any_times)
        return STATUS_OK;
    verify_fini(out);
    return verify_parts(plan, options, out, diag);
}

void verify_fini(struct verify_report *report)
{
    arena_fini(&report->arena);
}

bool verify_as_expected(const struct plan *plan, const struct verify_report *report,
                        struct diag *diag)
{
    const struct expectation *expect = expected(plan, report->driver);
    bool agree = true;
    for (int p = 0; expect->given && p < PROPERTY_COUNT; p++) {
        enum outcome got = report->outcome[p], want = expect->outcome[p];
        bool same = !outcome_is_violation(got);
        const char *wanted = "no violation";
        if (expect->named[p]) {
            same = expect->any_violation[p] ? outcome_is_violation(got) : got == want;
            wanted = expect->any_violation[p] ? "violated" : outcome_key(want);
        } else if (same && got == OUTCOME_UNDECIDED && report->limit && p != PROPERTY_FAULTS) {
            same = false; /* an unfinished search does not agree */
            wanted = "proved";
        }
        if (same)
            continue;
        agree = false;
        diag_error_at(diag, plan->file, plan->text, expect->mark,
                      "driver %s: %s is %s, the plan expects %s", driver_key(report->driver),
                      property_key((enum property)p), outcome_key(got), wanted);
    }
    return agree;
}
