/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.c - see verify.h.
 *
 * First the proofs by structure (structure.h), then up to three searches for the rest: one over
 * everything; for each violated property one that asks whether any run avoids it (always or some),
 * and one that looks for a shorter counterexample (shorten.h).
 */
#include "verify.h"

#include "early.h"
#include "faults.h"
#include "messages.h"
#include "one_run.h"
#include "scout.h"
#include "shorten.h"
#include "stopwatch.h"
#include "structure.h"
#include "machine/memory.h"
#include "machine/lower/rank_programs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* How long a search for the rest goes on after the first violation, in machine steps, unless the caller
   limits the states. */
enum { STEPS_BEHIND = 1 << 18, PROBE_STEPS = 1 << 16, AGENTS = 32 };

const char *verdict_key(enum verdict verdict)
{
    static const char *const keys[] = {"proved", "violated", "undecided"};
    return keys[verdict];
}

static const char behind_mismatch[] = "behind a mismatch; --property=mismatch shows it";

static unsigned bit(enum property property)
{
    return 1u << property;
}

/* Where accesses race these two are undefined. */
static const unsigned values = 1u << PROPERTY_VALUE | 1u << PROPERTY_SERIAL;

static bool is_violated(enum outcome outcome)
{
    return outcome == OUTCOME_SOME || outcome == OUTCOME_ALWAYS;
}

/* By how much a step of this program costs more than one of a small program. */
static unsigned dearness(const struct program *program)
{
    return 1 + (unsigned)program->agent_count / AGENTS;
}

/* Options that all searches of a program share. */
static struct search_options base_options(const struct program *program,
                                          const struct verify_options *options, struct early *early)
{
    struct search_limits limits = options->limits;
    limits.steps_behind = limits.states ? 0 : STEPS_BEHIND / dearness(program);
    return (struct search_options){.reduction = !options->no_reduction,
                                   .properties = options->properties ? options->properties
                                                                     : (1u << PROPERTY_COUNT) - 1,
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

/* Is there a run that avoids the violation? "Some" if the search for one reaches a limit. A bitstate
   search has too many states for it. A mismatch may end a run before the violation in one order of
   independent steps and not in another, so where there is one reduction cannot answer. */
static enum status always_or_some(const struct program *program,
                                  const struct search_options *common, bool mismatches,
                                  enum property property, enum outcome *out, struct diag *diag)
{
    *out = OUTCOME_SOME;
    if (common->bitstate_bytes)
        return STATUS_OK;
    struct search_options search = *common;
    search.limits.steps = common->limits.steps_behind;
    search.properties = bit(property);
    search.cut_at = bit(property);
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
    search_result_fini(&result);
    return STATUS_OK;
}

/* The properties whose violation may keep a run from violating one of `asked`: a run that hangs does
   not reach the drain, no run is followed beyond a mismatch, and a race leaves it to chance what is read. */
static unsigned hiders(unsigned asked)
{
    unsigned hiding = asked ? bit(PROPERTY_MISMATCH) : 0;
    hiding |= asked & values ? bit(PROPERTY_RACE) | bit(PROPERTY_LIFETIME) : 0;
    return asked & bit(PROPERTY_DRAIN) ? hiding | bit(PROPERTY_DEADLOCK) : hiding;
}

/* The properties that runs without a violation of them do not prove, as these were found. */
static unsigned hidden_by(unsigned found)
{
    if (found & bit(PROPERTY_MISMATCH))
        return ~0u;
    unsigned hidden = found & (bit(PROPERTY_RACE) | bit(PROPERTY_LIFETIME)) ? values : 0;
    return found & bit(PROPERTY_DEADLOCK) ? hidden | bit(PROPERTY_DRAIN) : hidden;
}

static const char *what_hides(unsigned found)
{
    if (found & bit(PROPERTY_MISMATCH))
        return behind_mismatch;
    if (found & bit(PROPERTY_RACE))
        return "behind a race; --property=race shows it";
    if (found & bit(PROPERTY_LIFETIME))
        return "behind a reuse of memory; --property=lifetime shows it";
    return "behind a deadlock; --property=deadlock shows it";
}

/* A plan that hangs before the end of its data hangs after it as well, and one that races computes something
   else at times: that is one finding. */
static unsigned findings(const struct search_result *result)
{
    unsigned found = result->found;
    if (found & (bit(PROPERTY_DEADLOCK) | bit(PROPERTY_MISMATCH)))
        found &= ~bit(PROPERTY_DRAIN);
    if (found & (bit(PROPERTY_RACE) | bit(PROPERTY_LIFETIME)))
        found &= ~values;
    return found;
}

/* `by_structure`: proved without the search; `asked`: what the search was made for. */
static void judge(struct verify_report *report, unsigned by_structure, unsigned asked,
                  const struct search_result *result)
{
    unsigned hidden = hidden_by(result->found);
    unsigned proved = (by_structure | (result->complete ? asked : 0)) & ~hidden;
    report->verdict = (asked | by_structure) & ~proved ? VERDICT_UNDECIDED : VERDICT_PROVED;
    for (int p = 0; p < PROPERTY_COUNT; p++)
        report->outcome[p] = proved & 1u << p ? OUTCOME_PROVED : OUTCOME_UNDECIDED;
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
        if (!(found & bit(property)))
            continue;
        if (report->verdict != VERDICT_VIOLATED)
            report->first = property;
        report->verdict = VERDICT_VIOLATED;
        status = always_or_some(program, common, result->found & bit(PROPERTY_MISMATCH), property,
                                &report->outcome[property], diag);
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
        report->verdict = VERDICT_VIOLATED;
        report->first = (enum property)p;
        report->outcome[p] = OUTCOME_SOME;
        return suspects_find(program, report->first, &result->witness[p], &report->arena,
                             &report->suspects, diag);
    }
    return STATUS_OK;
}

/* ---- failure safety -------------------------------------------------------------------------- */

static const struct expectation *expected(const struct plan *plan, enum driver driver)
{
    return driver == DRIVER_DATAFLOW ? &plan->expect_dataflow : &plan->expect;
}

/* Does the caller ask about failure safety, or does the plan expect an outcome of it? */
static bool asks_for_faults(const struct program *program, const struct verify_options *options)
{
    return options->faults || options->properties & bit(PROPERTY_FAULTS) ||
           (!options->properties &&
            expected(program->plan, program->driver)->named[PROPERTY_FAULTS]);
}

static void report_faults(struct verify_report *report, const struct faults_answer *answer)
{
    report->outcome[PROPERTY_FAULTS] = answer->outcome;
    report->searched |= answer->states > 0;
    report->states += answer->states;
    report->transitions += answer->transitions;
    if (answer->peak_bytes > report->peak_bytes)
        report->peak_bytes = answer->peak_bytes;
    if (report->verdict == VERDICT_VIOLATED || answer->outcome == OUTCOME_PROVED)
        return;
    report->verdict = VERDICT_UNDECIDED;
    if (answer->limit)
        report->limit = answer->limit;
    if (is_violated(answer->outcome)) {
        report->verdict = VERDICT_VIOLATED;
        report->first = PROPERTY_FAULTS;
    }
}

/* A plan that hangs or mismatches without a fault does so after a fault as well, and is not asked.
   `program` was built from `plan`. */
static enum status judge_faults(const struct plan *plan, const struct program *program,
                                const struct verify_options *options, struct verify_report *report,
                                struct diag *diag)
{
    const enum outcome *outcome = report->outcome;
    if (is_violated(outcome[PROPERTY_DEADLOCK]) || is_violated(outcome[PROPERTY_DRAIN]) ||
        is_violated(outcome[PROPERTY_MISMATCH]))
        return STATUS_OK;
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
    enum status status = faults_judge(plan, program, &faults, &answer, diag);
    if (status != STATUS_OK)
        return status;
    report_faults(report, &answer);
    if (is_violated(answer.outcome) && options->quick)
        status = suspects_find(answer.program, PROPERTY_FAULTS, &answer.witness, &report->arena,
                               &report->suspects, diag);
    else if (is_violated(answer.outcome))
        status = explain_path(answer.program, PROPERTY_FAULTS, &answer.witness, &report->arena,
                              &report->stories[PROPERTY_FAULTS], diag);
    faults_fini(&answer);
    return status;
}

/* ---- properties that structure does not prove ------------------------------------------------ */

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

/* Search for the properties `asked`, if any, and for what may hide them; those `by_structure` are
   proved. */
static enum status search_program(const struct program *program,
                                  const struct verify_options *options, unsigned by_structure,
                                  unsigned asked, struct verify_report *report, struct diag *diag)
{
    struct early early;
    struct search_result result = {.complete = true}, scouted;
    struct search_watch watch = {.until_ns = options->limits.until_ns,
                                 .interrupted = options->interrupted};
    bool scouts = program->tasks > 0 && !options->no_reduction;
    enum status status = scout_runs(program, scouts ? asked & values : 0, &watch, &scouted, diag);
    if (status != STATUS_OK)
        return status;
    early_begin(&early, program, asked, options->found, options->found_arg);
    struct search_options common = base_options(program, options, &early), search = common;
    common.properties = asked;
    search.probe_steps = options->no_reduction ? 0 : PROBE_STEPS / dearness(program);
    search.properties = (asked & ~scouted.found) | (hiders(asked) & ~by_structure);
    search.stop_when_all = by_structure ? asked & ~scouted.found : 0;
    search.moot = values;
    search.moot_by = bit(PROPERTY_RACE) | bit(PROPERTY_LIFETIME);
    search.stop_at = options->quick ? asked : 0;
    report->searched = search.properties || scouted.found;
    if (search.properties)
        status = search_run(program, &search, &result, diag);
    if (status == STATUS_OK)
        add_scouted(&scouted, &result);
    search_result_fini(&scouted);
    if (status != STATUS_OK)
        return status;
    judge(report, by_structure, asked, &result);
    status = report_search(&result, report, diag);
    early.result = &result;
    if (status == STATUS_OK)
        status = options->quick ? find_suspects(program, asked, &result, report, diag)
                                : explain_findings(program, &common, options->any_witness, &result,
                                                   report, diag);
    search_result_fini(&result);
    return status;
}

/* ---- independent ranks ----------------------------------------------------------------------- */

/* A violation of one part violates the whole, and always if it does so in the part. The whole is proved
   if every part is. */
static enum outcome worse(enum outcome a, enum outcome b)
{
    static const int rank[] = {[OUTCOME_NONE] = 0,
                               [OUTCOME_PROVED] = 0,
                               [OUTCOME_UNDECIDED] = 1,
                               [OUTCOME_SOME] = 2,
                               [OUTCOME_ALWAYS] = 3};
    return rank[a] >= rank[b] ? a : b;
}

static void add_part(struct verify_report *whole, const struct verify_report *part)
{
    bool first = part->verdict == VERDICT_VIOLATED &&
                 (whole->verdict != VERDICT_VIOLATED || part->first < whole->first);
    for (int p = 0; p < PROPERTY_COUNT; p++) {
        if (!is_violated(whole->outcome[p]))
            whole->stories[p] = part->stories[p];
        whole->outcome[p] = worse(whole->outcome[p], part->outcome[p]);
    }
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
    whole->peak_bytes = part->peak_bytes > whole->peak_bytes ? part->peak_bytes : whole->peak_bytes;
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
static enum status verify_part(const struct plan *plan, const struct program *whole, int rank,
                               const struct verify_options *options, unsigned by_structure,
                               unsigned searched, struct verify_report *report,
                               struct verify_report *out, struct diag *diag)
{
    struct program *program;
    struct program_options built = whole->options;
    struct verify_report part = {.arena = report->arena};
    built.part = rank + 1;
    enum status status = program_build(plan, &built, &program, diag);
    if (status != STATUS_OK)
        return status;
    status = search_program(program, options, by_structure, searched, &part, diag);
    program_close(program);
    report->arena = part.arena;
    if (status == STATUS_OK)
        add_part(report, &part);
    *out = part;
    return status;
}

/* Are all ranks equal and without communicators? Then the result of one holds for all. */
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

/* Independent ranks are verified apart: their steps interleave in very many ways without effect, and
   the hang of one does not end the others. */
static enum status verify_parts(const struct plan *plan, const struct program *program,
                                const struct verify_options *options, unsigned by_structure,
                                unsigned searched, struct verify_report *report, struct diag *diag)
{
    enum status status = STATUS_OK;
    report->verdict = VERDICT_PROVED;
    for (int p = 0; p < PROPERTY_COUNT; p++)
        report->outcome[p] =
            (by_structure | searched) & 1u << p ? OUTCOME_PROVED : OUTCOME_UNDECIDED;
    int mismatching = 0;
    unsigned there = 0;
    for (int rank = 0; rank < program->ranks && status == STATUS_OK; rank++) {
        struct verify_report part = {0};
        if (program->fellows[rank] == rank)
            status = verify_part(plan, program, rank, options, by_structure, searched, report,
                                 &part, diag);
        if (is_violated(part.outcome[PROPERTY_MISMATCH])) {
            mismatching++;
            there = always_violated(&part);
        }
        if (ranks_are_one(program) || (options->quick && report->verdict == VERDICT_VIOLATED))
            break;
    }
    weaken_always(report, mismatching, there);
    return status;
}

/* ---- programs too big for knowledge in their states ------------------------------------------ */

/* Properties that need knowledge of accesses. */
static const unsigned needs_knowledge =
    1u << PROPERTY_RACE | 1u << PROPERTY_LIFETIME | 1u << PROPERTY_VALUE;

static enum status tell_found(const struct program *program, const struct verify_options *options,
                              const struct one_run *run, enum property property,
                              struct verify_report *report, struct diag *diag)
{
    if (report->verdict != VERDICT_VIOLATED || report->first > property)
        report->first = property;
    report->verdict = VERDICT_VIOLATED;
    report->outcome[property] = run->alone ? OUTCOME_ALWAYS : OUTCOME_SOME;
    if (options->quick)
        return suspects_find(program, property, &run->path[property], &report->arena,
                             &report->suspects, diag);
    return explain_path(program, property, &run->path[property], &report->arena,
                        &report->stories[property], diag);
}

static enum status judge_one_run(const struct program *program,
                                 const struct verify_options *options, unsigned asked,
                                 const struct one_run *run, struct verify_report *report,
                                 struct diag *diag)
{
    unsigned seen = run->found | (run->mismatch ? bit(PROPERTY_MISMATCH) : 0);
    unsigned hidden = hidden_by(seen), told = run->found & ~(hidden & values);
    bool proved = run->alone && !run->mismatch;
    enum status status = STATUS_OK;
    for (int p = PROPERTY_COUNT - 1; p >= 0 && status == STATUS_OK; p--) {
        if (!(asked & 1u << p))
            continue;
        if (told & 1u << p)
            status = tell_found(program, options, run, (enum property)p, report, diag);
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

/* Rank programs that are too big for knowledge in the states of a search. */
static enum status judge_apart(const struct plan *plan, const struct verify_options *options,
                               unsigned asked, struct verify_report *report, struct diag *diag)
{
    struct program_options built = options->program;
    struct program *program;
    struct search_watch watch = {.until_ns = options->limits.until_ns,
                                 .interrupted = options->interrupted};
    struct one_run run;
    built.clocks = true;
    enum status status = program_build(plan, &built, &program, diag);
    if (status != STATUS_OK)
        return status;
    status = one_run_take(program, &watch, &run, diag);
    if (status == STATUS_OK) {
        status = judge_one_run(program, options, asked, &run, report, diag);
        one_run_fini(&run);
    }
    program_close(program);
    return status;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* A finding without steps: the story told first is that of another violation, if there is one. */
static enum status judge_messages(const struct program *program, struct verify_report *report,
                                  struct diag *diag)
{
    int lone;
    enum status status = messages_find_lone(program, &lone, diag);
    if (status != STATUS_OK)
        return status;
    report->outcome[PROPERTY_MESSAGE] = lone < 0 ? OUTCOME_PROVED : OUTCOME_ALWAYS;
    if (lone < 0)
        return STATUS_OK;
    if (report->verdict != VERDICT_VIOLATED) {
        report->first = PROPERTY_MESSAGE;
        report->suspects =
            (struct suspects){.property = PROPERTY_MESSAGE, .fingerprint = (uint64_t)lone + 1};
    }
    report->verdict = VERDICT_VIOLATED;
    report->stories[PROPERTY_MESSAGE].sentence = messages_tell(program, lone, &report->arena);
    return report->stories[PROPERTY_MESSAGE].sentence ? STATUS_OK : diag_no_memory(diag);
}

/* ---- memory of programs without iterations --------------------------------------------------- */

static enum status tell_memory(const char *sentence, struct verify_report *report,
                               struct diag *diag)
{
    struct story *story = &report->stories[PROPERTY_BOUND];
    if (report->verdict != VERDICT_VIOLATED || report->first > PROPERTY_BOUND) {
        report->first = PROPERTY_BOUND;
        report->suspects = (struct suspects){.property = PROPERTY_BOUND, .fingerprint = 1};
    }
    report->verdict = VERDICT_VIOLATED;
    report->outcome[PROPERTY_BOUND] = OUTCOME_ALWAYS;
    *story = (struct story){.sentence = sentence};
    return sentence ? STATUS_OK : diag_no_memory(diag);
}

static enum status judge_memory(const struct plan *plan, const struct program *program,
                                struct verify_report *report, struct diag *diag)
{
    const char *sentence;
    enum status status = memory_tell(plan, program, &report->arena, &sentence, diag);
    return status == STATUS_OK && sentence ? tell_memory(sentence, report, diag) : status;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool names_driver(const struct plan *plan, enum driver driver)
{
    return plan->form == FORM_PIPELINE && plan->pipeline.driver_given &&
           driver == (plan->pipeline.driver == PLAN_DRIVER_CLOCK ? DRIVER_CLOCK : DRIVER_DATAFLOW);
}

/* The order of a serial run is compared where structure does not prove it; that takes room in a state. */
static enum status search_whole(const struct plan *plan, const struct program *program,
                                const struct verify_options *options, unsigned by_structure,
                                unsigned searched, struct verify_report *report, struct diag *diag)
{
    struct program *compared = NULL;
    struct program_options built = program->options;
    built.serial = true;
    enum status status = searched ? program_fits(program, diag) : STATUS_OK;
    if (status == STATUS_OK && searched & bit(PROPERTY_SERIAL)) {
        status = program_build(plan, &built, &compared, diag);
        program = compared;
    }
    if (status != STATUS_OK)
        return status;
    if (searched && has_parts(program))
        status = verify_parts(plan, program, options, by_structure, searched, report, diag);
    else
        status = search_program(program, options, by_structure, searched, report, diag);
    if (compared)
        program_close(compared);
    return status;
}

/* The properties to decide: a plan without iterations has no serial run. */
static unsigned find_asked(const struct program *program, const struct verify_options *options,
                           bool faults)
{
    unsigned asked = base_options(program, options, NULL).properties;
    if (program->tasks == 0)
        asked &= ~bit(PROPERTY_SERIAL);
    if (faults) /* needs to know whether the plan hangs without a fault */
        asked |= bit(PROPERTY_DEADLOCK) | bit(PROPERTY_DRAIN) | bit(PROPERTY_MISMATCH);
    return asked;
}

/* Without iterations there is no serial run. */
static void leave_out_serial(struct verify_report *report, unsigned asked)
{
    report->outcome[PROPERTY_SERIAL] = OUTCOME_NONE;
    if (asked)
        return;
    report->verdict = VERDICT_UNDECIDED;
    report->limit = "serial: a plan without iterations has no serial run";
}

static void report_in_flight(const struct program *program, struct verify_report *report)
{
    report->most_in_flight = program->most_in_flight;
    report->most_bytes = program->shared_bytes + program->most_in_flight * program->iteration_bytes;
    for (int s = 0; s < program->stream_count; s++)
        if (program->streams[s].cap > report->launch_queue)
            report->launch_queue = program->streams[s].cap;
}

/* Ranks may have data for different numbers of iterations. */
static void report_data(const struct program *program, struct verify_report *report)
{
    report->iterations = report->most_iterations = program->ends[0];
    for (int rank = 1; rank < program->ranks; rank++) {
        int64_t end = program->ends[rank];
        report->iterations = end < report->iterations ? end : report->iterations;
        report->most_iterations = end > report->most_iterations ? end : report->most_iterations;
    }
}

static enum status verify_program(const struct plan *plan, const struct program *program,
                                  const struct verify_options *options,
                                  struct verify_report *report, struct diag *diag)
{
    bool faults = asks_for_faults(program, options);
    unsigned by_structure = 0, asked = find_asked(program, options, faults);
    struct search_watch watch = {.until_ns = options->limits.until_ns,
                                 .interrupted = options->interrupted};
    enum status status = STATUS_OK;
    if (!options->no_reduction)
        status = structure_proves(program, &watch, &by_structure, diag);
    if (status != STATUS_OK)
        return status;
    by_structure &= asked | hiders(asked & ~by_structure);
    if (!program_asks_bound(program)) /* nothing can violate it */
        by_structure |= bit(PROPERTY_BOUND) & asked;
    unsigned searched = asked & ~by_structure & ~bit(PROPERTY_FAULTS);
    searched &= ~bit(PROPERTY_MESSAGE);
    unsigned apart = program->untracked ? searched & needs_knowledge : 0;
    searched &= ~apart;
    status = search_whole(plan, program, options, by_structure, searched, report, diag);
    if (program->tasks == 0 && status == STATUS_OK)
        leave_out_serial(report, asked);
    if (program->tasks)
        report_data(program, report);
    report->finite = program->tasks == 0;
    report->repeated = plan_repeats(plan);
    report->ranks = program->ranks;
    report_in_flight(program, report);
    report->any_ranks = by_structure && !searched && !faults && structure_is_for_any_ranks(program);
    report->asked = (asked & ~bit(PROPERTY_FAULTS)) | (faults ? bit(PROPERTY_FAULTS) : 0);
    report->driver = program->driver;
    report->driver_named = names_driver(plan, program->driver);
    if (status == STATUS_OK && asked & bit(PROPERTY_BOUND))
        status = judge_memory(plan, program, report, diag);
    if (status == STATUS_OK && asked & bit(PROPERTY_MESSAGE))
        status = judge_messages(program, report, diag);
    if (status == STATUS_OK && apart && !(options->quick && report->verdict == VERDICT_VIOLATED))
        status = judge_apart(plan, options, apart, report, diag);
    if (status == STATUS_OK && faults && !(options->quick && report->verdict == VERDICT_VIOLATED))
        status = judge_faults(plan, program, options, report, diag);
    return status;
}

/* ---- big schedules --------------------------------------------------------------------------- */

/* Rank programs that are too big for knowledge in states are first tried with clocks beside one: where all steps
   commute and nothing is violated, one run decides everything. */
static bool tries_one_run(const struct plan *plan, const struct verify_options *options)
{
    const struct search_limits *limits = &options->limits;
    return plan->form == FORM_PROGRAMS && !options->no_reduction && !options->bitstate_bytes &&
           !limits->states && !limits->steps && rank_programs_are_big(plan);
}

static void report_one_run(const struct program *program, unsigned asked, const struct one_run *run,
                           struct verify_report *report)
{
    for (int p = 0; p < PROPERTY_COUNT; p++)
        report->outcome[p] = asked & 1u << p ? OUTCOME_PROVED : OUTCOME_UNDECIDED;
    report->verdict = VERDICT_PROVED;
    report->searched = report->finite = true;
    report->states = 1;
    report->transitions = run->steps;
    report->peak_bytes = program->at.bytes;
    report->ranks = program->ranks;
    report->asked = asked;
    report_in_flight(program, report);
    leave_out_serial(report, asked);
}

/* No time is left for a search: another program is not built for one. */
static void report_no_time(const struct program *program, unsigned asked,
                           const struct search_watch *watch, struct verify_report *report)
{
    for (int p = 0; p < PROPERTY_COUNT; p++)
        report->outcome[p] = OUTCOME_UNDECIDED;
    if (asked & bit(PROPERTY_MESSAGE)) /* by the plan, before the run */
        report->outcome[PROPERTY_MESSAGE] = OUTCOME_PROVED;
    if (asked & bit(PROPERTY_BOUND) && !program_asks_bound(program))
        report->outcome[PROPERTY_BOUND] = OUTCOME_PROVED;
    report->verdict = VERDICT_UNDECIDED;
    report->limit = watch_interrupted(watch) ? "interrupted" : "time";
    report->searched = report->finite = true;
    report->peak_bytes = program->at.bytes;
    report->ranks = program->ranks;
    report->asked = asked;
    report_in_flight(program, report);
    leave_out_serial(report, asked);
}

/* Is the run all there is, and is nothing wrong with it? */
static bool decides(const struct one_run *run)
{
    return run->alone && run->done && run->seen == 0;
}

static enum status prove_by_one_run(const struct plan *plan, const struct program *program,
                                    const struct verify_options *options,
                                    struct verify_report *report, bool *decided, struct diag *diag)
{
    struct search_watch watch = {.until_ns = options->limits.until_ns,
                                 .interrupted = options->interrupted};
    struct one_run run;
    int lone = -1;
    unsigned asked = find_asked(program, options, false) & ~bit(PROPERTY_FAULTS);
    *decided = false;
    enum status status = messages_find_lone(program, &lone, diag);
    if (status != STATUS_OK || lone >= 0 || asks_for_faults(program, options) || !asked)
        return status;
    status = one_run_take(program, &watch, &run, diag);
    if (status != STATUS_OK)
        return status;
    bool proves = decides(&run), late = !proves && watch_over(&watch);
    if (proves)
        report_one_run(program, asked, &run, report);
    else if (late)
        report_no_time(program, asked, &watch, report);
    one_run_fini(&run);
    *decided = proves || late;
    if (proves && asked & bit(PROPERTY_BOUND))
        status = judge_memory(plan, program, report, diag);
    return status;
}

static enum status build_and_verify(const struct plan *plan, const struct verify_options *options,
                                    bool at_once, struct verify_report *report, bool *decided,
                                    struct diag *diag)
{
    struct program *program;
    struct program_options built = options->program;
    built.no_knowledge = options->properties && !(options->properties & (needs_knowledge | values));
    built.clocks = at_once && !built.no_knowledge;
    built.any_size = plan->form == FORM_PIPELINE; /* structure makes no states */
    enum status status = program_build(plan, &built, &program, diag);
    if (status != STATUS_OK)
        return status;
    *decided = true;
    struct timespec start = stopwatch_start();
    status = at_once ? prove_by_one_run(plan, program, options, report, decided, diag)
                     : verify_program(plan, program, options, report, diag);
    report->seconds += stopwatch_seconds(&start);
    program_close(program);
    return status;
}

enum status verify_plan(const struct plan *plan, const struct verify_options *options,
                        struct verify_report *out, struct diag *diag)
{
    bool decided = false;
    enum status status = STATUS_OK;
    *out = (struct verify_report){0};
    arena_init(&out->arena, 0);
    out->plan = arena_strdup(&out->arena, plan->name);
    out->file = arena_strdup(&out->arena, plan->file);
    if (!out->plan || !out->file)
        status = diag_no_memory(diag);
    if (status == STATUS_OK && tries_one_run(plan, options))
        status = build_and_verify(plan, options, true, out, &decided, diag);
    if (status == STATUS_OK && !decided)
        status = build_and_verify(plan, options, false, out, &decided, diag);
    if (status != STATUS_OK)
        verify_fini(out);
    return status;
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
        bool same = !is_violated(got);
        const char *wanted = "no violation";
        if (expect->named[p]) {
            same = expect->any_violation[p] ? is_violated(got) : got == want;
            wanted = expect->any_violation[p] ? "violated" : outcome_key(want);
        } else if (same && got == OUTCOME_UNDECIDED && report->limit && p != PROPERTY_FAULTS) {
            same = false; /* an unfinished search does not agree */
            wanted = "proved";
        }
        if (same)
            continue;
        agree = false;
        diag_note(diag, "%s, driver %s: %s is %s, the plan expects %s", plan->file,
                  driver_key(report->driver), property_key((enum property)p), outcome_key(got),
                  wanted);
    }
    return agree;
}
