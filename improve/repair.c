/* SPDX-License-Identifier: Apache-2.0 */
/* repair.c - see repair.h. */
#include "repair.h"

#include "diff.h"
#include "edits.h"
#include "found.h"
#include "check/dead_writes.h"
#include "base/stopwatch.h"
#include "base/hash.h"
#include "plan/text/parse.h"
#include "plan/text/print.h"
#include "plan/text/rewrite.h"
#include "base/array.h"
#include "base/sort.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXT = 2, BEAM = 20, SHARE = 4, EFFORTS = 4, JUDGEMENTS = 64, MENDED_ONE_DRIVER = 60 };
#define CANDIDATE_BYTES ((size_t)512 << 20)

/* A start for further edits: the given plan, or one that some edits have changed for the better. */
struct partial {
    const char *text;
    const char *change; /* the edits so far, in words; NULL: none */
    int edits, cost;    /* their number, and their total cost */
    bool of_machine;    /* True if one of them is of the machine. */
    struct suspects suspects;
};

/* The cheapest ones of a number of edits, in order of cost. */
struct beam {
    struct partial items[BEAM];
    int count;
};

struct repair_search {
    const struct repair_options *options;
    struct repair *out;
    struct diag *diag;
    const struct plan *plan;
    const char *original;
    uint64_t candidates_left, states_left, steps_left;
    struct timespec start;
    int64_t until_ns;
    uint64_t *seen; /* hashes of the texts tried */
    size_t seen_count, seen_cap;
    struct beam next; /* ways to go on from, one edit longer than the present ones */
    bool partly;      /* the result so far is good for some of the drivers only */
    struct found_memo memo;
    struct dead_writes dead; /* of the given plan */
    struct plan given;       /* its canonical text, read and numbered */
};

/* ---- budget ---------------------------------------------------------------------------------- */

/* The last guard, or the end of the time of the command if it comes first. */
static int64_t end_of_time(const struct repair_options *options, uint64_t candidates)
{
    int64_t all = (int64_t)candidates * REPAIR_MICROSECONDS_A_CANDIDATE * 1000;
    return stopwatch_earlier(options->verify.limits.until_ns, stopwatch_now_ns() + all);
}

static bool repair_is_interrupted(const struct repair_search *search)
{
    const atomic_bool *interrupted = search->options->verify.interrupted;
    return interrupted && atomic_load(interrupted);
}

static bool is_late(const struct repair_search *search)
{
    return stopwatch_now_ns() >= search->until_ns;
}

/* For what takes long beside the judging of candidates: edits_end. */
static bool repair_is_over(const void *arg)
{
    return repair_is_interrupted(arg) || is_late(arg);
}

static bool is_spent(struct repair_search *search)
{
    if (repair_is_interrupted(search))
        search->out->why_not = "it was interrupted";
    else if (is_late(search))
        search->out->why_not = "the time was up";
    else if (search->candidates_left == 0)
        search->out->why_not = "the budget of candidates is spent";
    else if (search->states_left == 0 || search->steps_left == 0)
        search->out->why_not = "the budget of states is spent";
    else
        return false;
    return true;
}

static uint64_t less(uint64_t left, uint64_t used)
{
    return used < left ? left - used : 0;
}

/* ---- texts and plans ------------------------------------------------------------------------- */

static enum status parse_text(const char *text, struct plan *out, struct diag *diag)
{
    enum status status = plan_parse("repaired.yaml", text, strlen(text), out, diag);
    if (status == STATUS_OK)
        edits_number(out);
    return status;
}

/* The same, to be judged: with the lists of a schedule that is found. */
static enum status parse_judged(struct repair_search *search, const char *text, struct plan *out,
                                struct diag *diag)
{
    enum status status = parse_text(text, out, diag);
    if (status != STATUS_OK)
        return status;
    status = found_resolve_with(out, &out->arena, &search->memo, NULL, diag);
    if (status != STATUS_OK)
        plan_fini(out);
    return status;
}

/* True if this text was tried before. Remembers it. */
static bool repair_is_known(struct repair_search *search, const char *text)
{
    uint64_t hash = hash_bytes(text, strlen(text));
    for (size_t i = 0; i < search->seen_count; i++)
        if (search->seen[i] == hash)
            return true;
    if (ARENA_GROW(&search->out->arena, search->seen, search->seen_count, search->seen_cap))
        search->seen[search->seen_count++] = hash;
    return false;
}

/* ---- judging a candidate --------------------------------------------------------------------- */

struct judgement {
    bool proves[REPAIR_MAX_DRIVERS];
    bool all;
    bool failed; /* a violation was found: `suspects` are its */
    struct suspects suspects;
};

static bool keep_suspects(const struct suspects *from, struct arena *arena, struct suspects *out)
{
    *out = *from;
    out->items = ARENA_ARRAY(arena, from->count, struct suspect);
    if (out->items && from->count > 0)
        memcpy(out->items, from->items, from->count * sizeof *out->items);
    return out->items != NULL;
}

static void choose_limits(const struct repair_search *search, struct search_limits *limits)
{
    uint64_t share = search->states_left / SHARE + 1;
    if (limits->states == 0 || limits->states > share)
        limits->states = share;
    limits->steps = search->steps_left / SHARE + 1;
    if (limits->mem_bytes == 0 || limits->mem_bytes > CANDIDATE_BYTES)
        limits->mem_bytes = CANDIDATE_BYTES;
    limits->until_ns = search->until_ns;
}

static enum status repair_ask(struct repair_search *search, const struct plan *plan, int driver,
                              struct judgement *out, struct diag *diag)
{
    struct verify_options options = search->options->verify;
    struct verify_report report;
    options.program.driver = search->options->drivers[driver];
    options.quick = true;
    options.progress = NULL;
    choose_limits(search, &options.limits);
    enum status status = verify_plan(plan, &options, &report, diag);
    if (status != STATUS_OK)
        return status;
    search->out->states += report.states;
    search->states_left = less(search->states_left, report.states);
    search->steps_left = less(search->steps_left, report.transitions);
    out->proves[driver] = report.verdict == VERDICT_PROVED;
    if (report.verdict == VERDICT_VIOLATED && !out->failed) {
        out->failed = true;
        if (!keep_suspects(&report.suspects, &search->out->arena, &out->suspects))
            status = diag_no_memory(diag);
    }
    verify_fini(&report);
    return status;
}

/* Violated drivers first: a candidate that does not help there is judged no further. */
static enum status repair_judge(struct repair_search *search, const struct plan *plan,
                                struct judgement *out, struct diag *diag)
{
    const struct repair_options *options = search->options;
    enum status status = STATUS_OK;
    *out = (struct judgement){.all = true};
    for (int violated = 1; violated >= 0; violated--)
        for (int d = 0; d < options->driver_count && status == STATUS_OK; d++) {
            if (options->violated[d] != violated ||
                (out->failed && !out->proves[0] && !out->proves[1]))
                continue;
            status = repair_ask(search, plan, d, out, diag);
        }
    for (int d = 0; d < options->driver_count; d++)
        out->all &= out->proves[d];
    return status;
}

/* ---- values that are lost -------------------------------------------------------------------- */

/* True if this pair was lost before: what one operation writes is overwritten by the other. */
static bool was_lost(const struct repair_search *search, const struct dead_write *write)
{
    for (size_t i = 0; i < search->dead.count; i++) {
        const struct dead_write *before = &search->dead.items[i];
        if (strcmp(before->buffer, write->buffer) == 0 &&
            strcmp(before->lost.subject, write->lost.subject) == 0 &&
            strcmp(before->over.subject, write->over.subject) == 0)
            return true;
    }
    return false;
}

/* The first operation of this name in a thread of a numbered host program; -1: none. */
static int place_in(const struct plan *plan, size_t thread, const char *subject)
{
    const size_t length = strcspn(subject, "(");
    for (size_t i = 0; thread < plan->thread_count && i < plan->threads[thread].op_count; i++) {
        const struct host_op *op = &plan->threads[thread].ops[i];
        if (op->name && strlen(op->name) == length && strncmp(op->name, subject, length) == 0)
            return (int)op->mark.col;
    }
    return -1;
}

/* True if the given plan has the two writes in the other order, in one thread or in threads of one name. */
static bool is_turned_round(const struct repair_search *search, const struct dead_write *write)
{
    const struct plan *given = &search->given;
    const size_t t = write->lost.mark.line - 1, u = write->over.mark.line - 1;
    if (given->form != FORM_THREADS || t >= given->thread_count || u >= given->thread_count ||
        strcmp(given->threads[t].name, given->threads[u].name) != 0)
        return false;
    const int lost = place_in(given, t, write->lost.subject);
    const int over = place_in(given, u, write->over.subject);
    return lost >= 0 && over >= 0 && over < lost;
}

/* Find out whether a proved candidate always loses a value that the given plan does not lose, or loses the other way
   round. Of a buffer that is read every such value counts, of others only the latter: one of two writes is lost in any
   case. */
static enum status loses_value(struct repair_search *search, const struct plan *plan, bool *loses,
                               struct diag *diag)
{
    struct verify_options options = search->options->verify;
    struct dead_writes dead;
    options.program.driver = search->options->drivers[0];
    enum status status = dead_writes_find(plan, &options, &search->out->arena, &dead, diag);
    *loses = false;
    for (size_t i = 0; status == STATUS_OK && dead.one_order && i < dead.count; i++) {
        const struct dead_write *write = &dead.items[i];
        *loses |= !was_lost(search, write) && (write->read || is_turned_round(search, write));
    }
    return status;
}

/* ---- results --------------------------------------------------------------------------------- */

static void forget_violations(struct expectation *expect)
{
    for (int p = 0; p < PROPERTY_FAULTS; p++)
        if (expect->named[p] &&
            (expect->any_violation[p] || expect->outcome[p] != OUTCOME_PROVED)) {
            expect->named[p] = expect->any_violation[p] = false;
            expect->outcome[p] = OUTCOME_UNDECIDED;
        }
    if (expect->named[PROPERTY_FAULTS]) { /* naming it asks for its proof */
        expect->any_violation[PROPERTY_FAULTS] = false;
        expect->outcome[PROPERTY_FAULTS] = OUTCOME_PROVED;
    }
}

/* The repaired plan does not expect the violations of the given one. */
static enum status repair_set_text(struct repair_search *search, const char *text,
                                   const bool *proves)
{
    struct plan plan;
    enum status status = parse_text(text, &plan, search->diag);
    if (status != STATUS_OK)
        return status;
    for (int d = 0; d < search->options->driver_count; d++)
        if (proves[d])
            forget_violations(search->options->drivers[d] == DRIVER_DATAFLOW ? &plan.expect_dataflow
                                                                             : &plan.expect);
    if (plan.form != FORM_PIPELINE)
        forget_violations(&plan.expect_dataflow);
    status = plan_text_in(&plan, &search->out->arena, &search->out->text, search->diag);
    plan_fini(&plan);
    return status;
}

/* True if the author's text, edited, says what the canonical text says. */
static bool means(struct repair_search *search, const char *edited, const char *canonical)
{
    struct plan plan;
    struct diag unheard;
    char *text = NULL;
    diag_init(&unheard);
    bool same =
        plan_parse(search->plan->file, edited, strlen(edited), &plan, &unheard) == STATUS_OK;
    if (same) {
        same = plan_text(&plan, &text, &unheard) == STATUS_OK && strcmp(text, canonical) == 0;
        plan_fini(&plan);
    }
    free(text);
    search->out->arena.failed |= unheard.out_of_memory;
    diag_fini(&unheard);
    return same;
}

/* The repair as edits of the text that the plan was read from, where that can be done. `canonical` is the repaired
   plan before its expectation is changed. */
static enum status edit_original(struct repair_search *search, const char *canonical)
{
    struct repair *out = search->out;
    const char *mine = search->plan->text, *shown = NULL;
    out->edited = NULL;
    if (mine) {
        out->edited = rewrite_text(mine, search->original, out->text, &out->arena);
        shown = rewrite_text(mine, search->original, canonical, &out->arena);
    }
    if (!shown || !out->edited || !means(search, out->edited, out->text))
        out->edited = NULL;
    out->diff = out->edited ? diff_unified(mine, shown, CONTEXT, &out->arena)
                            : diff_unified(search->original, canonical, CONTEXT, &out->arena);
    return out->diff && !out->arena.failed ? STATUS_OK : diag_no_memory(search->diag);
}

static enum status keep_result(struct repair_search *search, const struct partial *partial,
                               const char *text, const char *change, const struct edit *edit,
                               const struct judgement *judgement)
{
    struct repair *out = search->out;
    out->found = true;
    out->edits = partial->edits + 1;
    out->change = change;
    out->weakens = edit->weakens;
    out->of_machine = partial->of_machine || edit_is_of_machine(edit);
    memcpy(out->proves, judgement->proves, sizeof out->proves);
    search->partly = !judgement->all;
    enum status status = repair_set_text(search, text, judgement->proves);
    return status == STATUS_OK ? edit_original(search, text) : status;
}

static bool helps_somewhere(const struct judgement *judgement)
{
    return judgement->proves[0] || judgement->proves[1];
}

static void insert_partial(struct beam *beam, const struct partial *partial)
{
    int at = beam->count;
    while (at > 0 && beam->items[at - 1].cost > partial->cost)
        at--;
    if (at == BEAM)
        return;
    beam->count += beam->count < BEAM;
    memmove(&beam->items[at + 1], &beam->items[at],
            (size_t)(beam->count - at - 1) * sizeof *beam->items);
    beam->items[at] = *partial;
    assert(at == 0 || beam->items[at - 1].cost <= partial->cost);
    assert(at + 1 == beam->count || beam->items[at + 1].cost > partial->cost);
}

/* A candidate that is violated in another way than before is a start for further edits; best is one
   that is proved under one driver. */
static void keep_partial(struct repair_search *search, const struct partial *partial,
                         const char *text, const char *change, const struct edit *edit,
                         const struct judgement *judgement)
{
    if (edit->alone || !judgement->failed || partial->edits + 1 == REPAIR_MAX_EDITS ||
        judgement->suspects.fingerprint == partial->suspects.fingerprint)
        return;
    int cost = partial->cost + edit->cost - (helps_somewhere(judgement) ? MENDED_ONE_DRIVER : 0);
    insert_partial(&search->next, &(struct partial){
                                      .text = text,
                                      .change = change,
                                      .edits = partial->edits + 1,
                                      .cost = cost,
                                      .of_machine = partial->of_machine || edit_is_of_machine(edit),
                                      .suspects = judgement->suspects,
                                  });
}

/* ---- trying ---------------------------------------------------------------------------------- */

/* The text that `edit` makes of `partial`; NULL if it was tried before. */
static enum status make_candidate(struct repair_search *search, const struct partial *partial,
                                  const struct edit *edit, const char **text, const char **change,
                                  struct diag *diag)
{
    struct arena *arena = &search->out->arena;
    struct plan plan;
    enum status status = parse_text(partial->text, &plan, diag);
    if (status != STATUS_OK)
        return status;
    edits_fold(&plan);
    *change = edit_describe(&plan, edit, arena);
    if (*change && partial->change)
        *change = arena_printf(arena, "%s; and %s", partial->change, *change);
    status = *change ? edit_apply(&plan, edit, diag) : diag_no_memory(diag);
    if (status == STATUS_OK)
        status = plan_text_in(&plan, arena, text, diag);
    plan_fini(&plan);
    if (status == STATUS_OK && repair_is_known(search, *text))
        *text = NULL;
    return status;
}

static enum status repair_try_candidate(struct repair_search *search, const struct partial *partial,
                                        const struct edit *edit, struct diag *diag)
{
    const char *text = NULL, *change = NULL;
    enum status status = make_candidate(search, partial, edit, &text, &change, diag);
    if (status != STATUS_OK || !text)
        return status;
    struct plan plan;
    status = parse_judged(search, text, &plan, diag);
    if (status != STATUS_OK)
        return status;
    search->candidates_left--;
    search->out->candidates++;
    struct judgement judgement;
    bool loses = false;
    status = repair_judge(search, &plan, &judgement, diag);
    if (status == STATUS_OK && helps_somewhere(&judgement))
        status = loses_value(search, &plan, &loses, diag);
    plan_fini(&plan);
    if (status != STATUS_OK || loses)
        return status;
    keep_partial(search, partial, text, change, edit, &judgement);
    if (judgement.all || (helps_somewhere(&judgement) && !search->out->found))
        return keep_result(search, partial, text, change, edit, &judgement);
    return STATUS_OK;
}

static void repair_report_progress(const struct repair_search *search)
{
    const struct repair_options *options = search->options;
    if (options->progress)
        options->progress(options->progress_arg,
                          &(struct repair_progress){search->out->candidates, search->out->states,
                                                    stopwatch_seconds(&search->start)});
}

/* A plan that an edit made ill-formed is no candidate; the messages of the parser are dropped. */
static enum status try_edit(struct repair_search *search, const struct partial *partial,
                            const struct edit *edit)
{
    struct diag diag;
    diag_init(&diag);
    enum status status = repair_try_candidate(search, partial, edit, &diag);
    bool no_memory = status == STATUS_SYSTEM || diag.out_of_memory || search->out->arena.failed;
    diag_fini(&diag);
    repair_report_progress(search);
    return no_memory ? diag_no_memory(search->diag) : STATUS_OK;
}

static bool repair_is_finished(const struct repair_search *search)
{
    return search->out->found && !search->partly;
}

/* All edits of one plan, at most `most` of them. */
static enum status try_edits(struct repair_search *search, const struct partial *partial,
                             uint64_t most)
{
    struct plan plan;
    struct edit_list edits;
    enum status status = parse_text(partial->text, &plan, search->diag);
    if (status != STATUS_OK)
        return status;
    edits_fold(&plan);
    const struct edits_end end = {repair_is_over, search};
    status = edits_list(&plan, &partial->suspects, &end, &search->out->arena, &edits, search->diag);
    uint64_t before = search->out->candidates;
    for (size_t i = 0; status == STATUS_OK && i < edits.count && !repair_is_finished(search); i++) {
        if (search->out->candidates - before >= most || is_spent(search))
            break;
        if (!partial->change || !edits.items[i].alone)
            status = try_edit(search, partial, &edits.items[i]);
    }
    plan_fini(&plan);
    return status;
}

/* Try the edits of every plan of the beam. They share the part of the budget for this number of edits:
   half of the rest, all of it for the last number. */
static enum status try_beam(struct repair_search *search, const struct beam *beam, int edits)
{
    enum status status = STATUS_OK;
    uint64_t kept = edits == REPAIR_MAX_EDITS ? 0 : search->candidates_left / 2;
    for (int i = 0; i < beam->count && status == STATUS_OK && !repair_is_finished(search); i++) {
        uint64_t left = search->candidates_left > kept ? search->candidates_left - kept : 0;
        if (!is_spent(search))
            status = try_edits(search, &beam->items[i], left / (uint64_t)(beam->count - i) + 1);
    }
    return status;
}

static enum status try_more_edits(struct repair_search *search)
{
    struct beam *now = ARENA_NEW(&search->out->arena, struct beam);
    enum status status = now ? STATUS_OK : diag_no_memory(search->diag);
    for (int edits = 2; edits <= REPAIR_MAX_EDITS && status == STATUS_OK; edits++) {
        if (repair_is_finished(search))
            break;
        *now = search->next;
        search->next.count = 0;
        status = try_beam(search, now, edits);
    }
    return status;
}

/* A plan that takes many steps to be judged has budgets for some candidates like it. */
static void allow_efforts(struct repair_search *search, uint64_t steps)
{
    const int64_t taken_ns = (int64_t)(stopwatch_seconds(&search->start) * 1e9);
    const int64_t until_ns = stopwatch_earlier(search->options->verify.limits.until_ns,
                                               stopwatch_now_ns() + JUDGEMENTS * taken_ns);
    if (search->steps_left < JUDGEMENTS * steps)
        search->steps_left = JUDGEMENTS * steps;
    if (search->until_ns < until_ns)
        search->until_ns = until_ns;
}

/* Judge the canonical text of the plan, to find the suspects of the violation. */
static enum status repair_begin(struct repair_search *search, const struct plan *plan,
                                struct partial *root)
{
    enum status status = plan_text_in(plan, &search->out->arena, &search->original, search->diag);
    if (status != STATUS_OK)
        return status;
    repair_is_known(search, search->original);
    struct plan copy;
    struct judgement judgement;
    status = parse_judged(search, search->original, &copy, search->diag);
    if (status != STATUS_OK)
        return status;
    const uint64_t before = search->steps_left;
    struct verify_options options = search->options->verify;
    options.program.driver = search->options->drivers[0];
    struct diag diag; /* that a program was not built in time is no message: why_not says it */
    diag_init(&diag);
    status = repair_judge(search, &copy, &judgement, &diag);
    if (status == STATUS_OK)
        status = dead_writes_find(&copy, &options, &search->out->arena, &search->dead, &diag);
    if (status == STATUS_LIMIT && repair_is_over(search))
        status = STATUS_OK;
    for (size_t i = 0; status != STATUS_OK && i < diag.count; i++)
        diag_error(search->diag, status, "%s", diag.messages[i].text);
    if (diag.out_of_memory)
        status = diag_no_memory(search->diag);
    diag_fini(&diag);
    search->given = copy;
    const bool in_time = !repair_is_over(search);
    allow_efforts(search, before - search->steps_left);
    *root = (struct partial){.text = search->original, .suspects = judgement.suspects};
    if (status == STATUS_OK && !judgement.failed && (in_time || !is_spent(search)))
        search->out->why_not = "the limit of states for repairs is too low to reach the violation";
    return status;
}

enum status repair_find(const struct plan *plan, const struct repair_options *options,
                        struct repair *out, struct diag *diag)
{
    *out = (struct repair){0};
    arena_init(&out->arena, 0);
    uint64_t candidates = options->candidates ? options->candidates : REPAIR_CANDIDATES;
    struct repair_search *search = ARENA_NEW(&out->arena, struct repair_search);
    if (!search) {
        repair_fini(out);
        return diag_no_memory(diag);
    }
    *search = (struct repair_search){
        .options = options,
        .out = out,
        .plan = plan,
        .diag = diag,
        .candidates_left = candidates,
        .states_left = max_u64(candidates * REPAIR_STATES_A_CANDIDATE, EFFORTS * options->effort),
        .steps_left = REPAIR_LEAST_STEPS + candidates * REPAIR_STEPS_A_CANDIDATE,
        .start = stopwatch_start(),
        .until_ns = end_of_time(options, candidates),
    };
    struct partial root;
    enum status status = found_memo_open(&search->memo, diag);
    if (status == STATUS_OK)
        status = repair_begin(search, plan, &root);
    if (status == STATUS_OK && !out->why_not)
        status = try_edits(search, &root, UINT64_MAX);
    if (status == STATUS_OK && !repair_is_finished(search))
        status = try_more_edits(search);
    if (status == STATUS_OK && !out->found && !out->why_not &&
        !(repair_is_over(search) && is_spent(search)))
        out->why_not = "every edit suggested by the counterexample was tried";
    found_memo_close(&search->memo);
    plan_fini(&search->given);
    if (status != STATUS_OK)
        repair_fini(out);
    return status;
}

void repair_fini(struct repair *repair)
{
    arena_fini(&repair->arena);
}
