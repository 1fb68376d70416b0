/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_repair.c - repairs and minimised counterexamples.
 *
 *     kinds      every kind of edit is proposed for some plan, and what it makes of it parses,
 *                prints the same again, differs, and has a text
 *     repairs    whatever is suggested for a random plan is proved when its text is verified anew,
 *                in full and without reduction where that finishes
 *     witnesses  a minimised counterexample is never longer and still is one
 *     diffs      hunks against ones worked out by hand
 *
 * Plan `i` of a run comes from SWSIM_SEED + i; SWSIM_LONG=1 asks for more plans.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "improve/diff.h"
#include "improve/edits.h"
#include "check/shorten.h"
#include "base/stopwatch.h"
#include "improve/repair.h"
#include "plan/text/parse.h"
#include "plan/text/print.h"
#include "tests/harness.h"
#include "tests/random_plan.h"
#include "tests/tap.h"

enum { QUICK = 60, LONG = 3000, STATES = 3000, CANDIDATES = 150, MAX_COMPLAINTS = 8 };

static int complaints;

static void complain(uint64_t seed, const char *what, const char *detail, const char *text)
{
    if (complaints++ >= MAX_COMPLAINTS)
        return;
    tap_note("SWSIM_SEED=%" PRIu64 ": %s: %s", seed, what, detail ? detail : "");
    tap_note("%s", text);
}

static bool parse(const char *text, struct plan *out)
{
    struct diag diag;
    diag_init(&diag);
    bool parsed = plan_parse("plan.yaml", text, strlen(text), out, &diag) == STATUS_OK;
    diag_fini(&diag);
    return parsed;
}

/* ---- kinds of edits -------------------------------------------------------------------------- */

struct op_stats {
    int seen[EDIT_COUNT], made[EDIT_COUNT];
};

static bool same_when_printed_again(const char *text)
{
    struct plan plan;
    if (!parse(text, &plan))
        return false;
    char *again = text_of_plan(&plan);
    bool same = again && strcmp(again, text) == 0;
    free(again);
    plan_fini(&plan);
    return same;
}

/* A plan that an edit made ill-formed (a cycle, say) is no failure: it is never tried. */
static void check_edit(const char *text, const struct edit *edit, struct op_stats *op_stats)
{
    struct plan plan;
    struct diag diag;
    struct arena arena;
    if (!parse(text, &plan))
        return;
    edits_number(&plan);
    edits_fold(&plan);
    diag_init(&diag);
    arena_init(&arena, 0);
    op_stats->seen[edit->kind]++;
    const char *words = edit_describe(&plan, edit, &arena);
    if (!words || !*words)
        complain(0, "an edit without words", edit_key(edit->kind), text);
    bool applied = edit_apply(&plan, edit, &diag) == STATUS_OK;
    char *after = applied ? text_of_plan(&plan) : NULL;
    struct plan reparsed;
    if (!after) {
        complain(0, "an edit that cannot be made", words, text);
    } else if (parse(after, &reparsed)) {
        plan_fini(&reparsed);
        op_stats->made[edit->kind] += strcmp(after, text) != 0;
        if (!same_when_printed_again(after))
            complain(0, "an edit whose text is not canonical", words, after);
    }
    free(after);
    plan_fini(&plan);
    arena_fini(&arena);
    diag_fini(&diag);
}

/* Everything in the plan is a suspect: then every edit there is for it is proposed. */
static bool suspect_all(const struct plan *plan, enum property property, struct arena *arena,
                        struct suspects *out)
{
    size_t count = plan->pipeline.task_count;
    for (size_t t = 0; t < plan->thread_count; t++)
        count += plan->threads[t].op_count;
    for (int rank = 0; plan->programs.ranks && rank < plan->ranks; rank++)
        count += plan->programs.ranks[rank].count;
    *out =
        (struct suspects){.property = property, .items = ARENA_ARRAY(arena, count, struct suspect)};
    if (!out->items)
        return false;
    for (size_t t = 0; t < plan->pipeline.task_count; t++)
        out->items[out->count++] = (struct suspect){.task = (int)t};
    for (size_t t = 0; t < plan->thread_count; t++)
        for (size_t i = 0; i < plan->threads[t].op_count; i++)
            out->items[out->count++] = (struct suspect){-1, plan->threads[t].ops[i].mark, 0, 0};
    for (int rank = 0; plan->programs.ranks && rank < plan->ranks; rank++)
        for (size_t i = 0; i < plan->programs.ranks[rank].count; i++)
            out->items[out->count++] =
                (struct suspect){-1, plan->programs.ranks[rank].actions[i].mark, 0, 0};
    return true;
}

static void check_edits_of(const char *source, struct op_stats *op_stats)
{
    struct plan plan;
    if (!parse(source, &plan)) {
        complain(0, "a plan of this test that does not parse", "", source);
        return;
    }
    char *text = text_of_plan(&plan);
    plan_fini(&plan);
    if (!text || !parse(text, &plan)) {
        complain(0, "a plan of this test that does not print", "", source);
        free(text);
        return;
    }
    edits_number(&plan);
    edits_fold(&plan);
    static const enum property properties[] = {PROPERTY_DEADLOCK, PROPERTY_LIFETIME,
                                               PROPERTY_FAULTS, PROPERTY_VALUE};
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
        struct arena arena;
        struct diag diag;
        struct suspects suspects;
        struct edit_list edits = {0};
        arena_init(&arena, 0);
        diag_init(&diag);
        if (!suspect_all(&plan, properties[i], &arena, &suspects) ||
            edits_list(&plan, &suspects, NULL, &arena, &edits, &diag) != STATUS_OK)
            complain(0, "no list of edits", "", text);
        for (size_t k = 0; k < edits.count; k++) {
            check_edit(text, &edits.items[k], op_stats);
            if (k > 0 && edits.items[k].cost < edits.items[k - 1].cost)
                complain(0, "a list out of order", edit_key(edits.items[k].kind), text);
        }
        /* Those of swsim tune are of host programs, and in no order. */
        if (plan.form == FORM_THREADS && i == 0 &&
            edits_list_faster(&plan, NULL, &arena, &edits, &diag) != STATUS_OK)
            complain(0, "no list of faster edits", "", text);
        for (size_t k = 0; plan.form == FORM_THREADS && i == 0 && k < edits.count; k++)
            check_edit(text, &edits.items[k], op_stats);
        diag_fini(&diag);
        arena_fini(&arena);
    }
    plan_fini(&plan);
    free(text);
}

static bool is_over(const void *left)
{
    int *calls = *(int *const *)left;
    return --*calls < 0;
}

/* A list that has to end early is a part of the whole one, in order. */
static void test_early_end(const char *source)
{
    struct plan plan;
    struct arena arena;
    struct diag diag;
    struct suspects suspects;
    struct edit_list whole = {0}, part = {0};
    arena_init(&arena, 0);
    diag_init(&diag);
    if (!parse(source, &plan))
        abort();
    edits_number(&plan);
    edits_fold(&plan);
    int calls = 2, *const left = &calls;
    const struct edits_end end = {is_over, &left};
    if (!suspect_all(&plan, PROPERTY_DEADLOCK, &arena, &suspects) ||
        edits_list(&plan, &suspects, NULL, &arena, &whole, &diag) != STATUS_OK ||
        edits_list(&plan, &suspects, &end, &arena, &part, &diag) != STATUS_OK)
        abort();
    tap_ok(calls < 0 && part.count > 0 && part.count < whole.count,
           "a list that ends early has %zu of %zu edits", part.count, whole.count);
    plan_fini(&plan);
    arena_fini(&arena);
    diag_fini(&diag);
}

static const char pipeline_text[] =
    "swplan: 1\nname: p\nranks: 2\nmax_depth: 3\nnum_slots: 5\nenqueue_order: stage-ascending\n"
    "retire: submit\nelide_same_stream: true\nticket_at: fire\nforget_done: retire\n"
    "retired_dep: skip\nslot_reset: submit\nbatches: [3, 4]\n"
    "machine: {sm_slots: 1, hw_queues: 1, launch_queue: 4, first_use_blocks: true, lazy_load: "
    "true}\n"
    "comms: {dp: all}\n"
    "schedule:\n"
    "  A: {stage: 0, stream: s, holds: [gil, driver], reads: [w], writes: [b]}\n"
    "  B: {stage: 1, stream: t, thread_group: g, reads: [b], writes: [w],\n"
    "      work: {collective: all_reduce, comm: dp, bytes: 1MiB}}\n"
    "  C: {stage: 1, stream: t, holds: [driver, gil], globally_ordered: true}\n"
    "intra_iter_deps:\n  - [B, A]\n"
    "inter_iter_deps:\n  - [A, C, 2]\n"
    "rank_overrides:\n  1: {enqueue_order: [C, B, A]}\n"
    "buffers: {b: {scope: iteration, bytes: 1MiB}}\n";

static const char host_text[] =
    "swplan: 1\nname: h\ncomms: {x: [0, 1]}\nqueues: {q: 1}\nbuffers: {m: {bytes: 1MiB}}\n"
    "threads:\n"
    "  r0.a:\n"
    "    - {alloc: m, stream: s}\n"
    "    - {launch: k, stream: s, writes: [m]}\n"
    "    - {record: e, stream: s}\n"
    "    - {launch: l, stream: t, reads: [m]}\n"
    "    - {collective: c, comm: x, stream: s}\n"
    "    - {group: [{send: u, peer: 1}], comm: x, stream: s}\n"
    "    - {group: [{recv: v, peer: 1}], comm: x, stream: s}\n"
    "    - {put: q}\n"
    "    - {free: m}\n"
    "  r0.b:\n"
    "    - {get: q}\n"
    "    - {wait: e, stream: s}\n"
    "    - {launch: n, stream: s}\n"
    "    - {lock: l1}\n"
    "    - {sync: stream, stream: s}\n"
    "    - {unlock: l1}\n"
    "  r1.a:\n"
    "    - {collective: c, comm: x, stream: s, bytes: 4KiB}\n"
    "    - {group: [{send: v, peer: 0}], comm: x, stream: s}\n"
    "    - {group: [{recv: u, peer: 0}], comm: x, stream: s}\n";

static const char twins_text[] =
    "swplan: 1\nname: w\ncomms: {x: [0, 1], y: [0, 1]}\nmachine: {eager_messages: {x: "
    "1}}\nthreads:\n"
    "  r0.a:\n    - {launch: k, stream: s}\n    - {collective: c, comm: x, stream: t}\n"
    "    - {group: [{send: u, peer: 1}], comm: x, stream: t}\n"
    "    - {group: [{recv: v, peer: 1}], comm: x, stream: t}\n"
    "  r0.b:\n    - {collective: d, comm: y, stream: t}\n"
    "  r1.a:\n    - {launch: k, stream: s}\n    - {collective: c, comm: x, stream: t}\n"
    "    - {group: [{send: v, peer: 0}], comm: x, stream: t}\n"
    "    - {group: [{recv: u, peer: 0}], comm: x, stream: t}\n"
    "  r1.b:\n    - {collective: d, comm: y, stream: t}\n";

/* A loop whose work reads what the next iteration writes. */
static const char loop_text[] = "swplan: 1\nname: l\nthreads:\n  r0.a:\n"
                                "    - {launch: i, stream: s, writes: [z]}\n"
                                "    - repeat: 3\n      body:\n"
                                "        - {compute: f, writes: [p]}\n"
                                "        - {launch: u, stream: s, reads: [p], writes: [x]}\n"
                                "        - {record: e, stream: s}\n"
                                "        - {launch: v, stream: t, reads: [x]}\n"
                                "    - {launch: w, stream: t, reads: [z]}\n";

static const char programs_text[] =
    "swplan: 1\nname: r\np2p: {eager_messages: 1}\nprograms:\n"
    "  - 0F0 0SEND_F0 0RECV_B0 0B0\n  - 1RECV_F0 1F0 1B0 1SEND_B0\n";

/* A receive twice, a receive and a send left out; a rank that differs from its kin. */
static const char unpaired_text[] = "swplan: 1\nname: u\nprograms:\n"
                                    "  - 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
                                    "  - 1RECV_F0 1RECV_F0 1F0 1B0 1SEND_B0 1F1 1B1\n";
/* A pass whose input is neither sent nor received. */
static const char missing_text[] = "swplan: 1\nname: m\nprograms:\n"
                                   "  - 0F0 0SEND_F0 0F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
                                   "  - 1RECV_F0 1F0 1B0 1SEND_B0 1F1 1B1 1SEND_B1\n";
static const char differing_text[] =
    "swplan: 1\nname: d\nparallel: {dp: 2, grad_reduce: end, ranks: {1: {grad_reduce: overlap}}}\n"
    "generate: {schedule: 1f1b, ranks: 2, microbatches: 2}\n";

static void test_kinds(void)
{
    struct op_stats op_stats = {0};
    check_edits_of(pipeline_text, &op_stats);
    check_edits_of(host_text, &op_stats);
    check_edits_of(twins_text, &op_stats);
    check_edits_of(loop_text, &op_stats);
    check_edits_of(programs_text, &op_stats);
    check_edits_of(unpaired_text, &op_stats);
    check_edits_of(missing_text, &op_stats);
    check_edits_of(differing_text, &op_stats);
    for (int kind = 0; kind < EDIT_COUNT; kind++)
        tap_ok(op_stats.made[kind] > 0, "%s: proposed %d times, %d changed a plan",
               edit_key((enum edit_kind)kind), op_stats.seen[kind], op_stats.made[kind]);
    tap_ok(complaints == 0, "every edited plan parses and prints the same again");
}

/* ---- repairs of random plans ----------------------------------------------------------------- */

struct counts {
    int violated, repaired, checked, witnesses, shortened;
};

static enum status verify(const struct plan *plan, enum driver driver, bool no_reduction,
                          uint64_t states, struct verify_report *out)
{
    struct diag diag;
    diag_init(&diag);
    struct verify_options options = {.program = {.driver = driver, .iterations = -1},
                                     .no_reduction = no_reduction,
                                     .any_witness = true,
                                     .limits = {.states = states}};
    enum status status = verify_plan(plan, &options, out, &diag);
    diag_fini(&diag);
    return status;
}

static bool is_violated(const struct plan *plan, enum driver driver)
{
    struct verify_report report;
    if (verify(plan, driver, false, STATES, &report) != STATUS_OK)
        return false;
    bool violated = report.verdict == VERDICT_VIOLATED;
    verify_fini(&report);
    return violated;
}

/* Verify the suggestion from its text, as a user would. */
static void check_repair(uint64_t seed, const char *source, const struct repair *repair,
                         const struct repair_options *options, struct counts *counts)
{
    struct plan plan;
    if (!parse(repair->text, &plan)) {
        complain(seed, "a repair that does not parse", repair->change, repair->text);
        return;
    }
    for (int d = 0; d < options->driver_count; d++)
        for (int plain = 0; repair->proves[d] && plain < 2; plain++) {
            struct verify_report report;
            uint64_t states = plain ? 10 * STATES : 0;
            if (verify(&plan, options->drivers[d], plain, states, &report) != STATUS_OK) {
                complain(seed, "a repair that cannot be verified", repair->change, source);
                continue;
            }
            if (report.verdict != VERDICT_PROVED && !(plain && report.limit))
                complain(seed, "a repair that is none", repair->change, source);
            counts->checked++;
            verify_fini(&report);
        }
    plan_fini(&plan);
}

static void repair_plan(uint64_t seed, const char *text, const struct plan *plan,
                        struct counts *counts)
{
    bool pipeline = plan->form == FORM_PIPELINE;
    struct repair_options options = {
        .verify = {.program = {.iterations = -1}, .limits = {.states = STATES}},
        .drivers = {pipeline ? DRIVER_CLOCK : DRIVER_NONE, DRIVER_DATAFLOW},
        .driver_count = pipeline ? 2 : 1,
        .candidates = CANDIDATES};
    bool any = false;
    for (int d = 0; d < options.driver_count; d++)
        any |= options.violated[d] = is_violated(plan, options.drivers[d]);
    if (!any)
        return;
    struct diag diag;
    struct repair repair;
    diag_init(&diag);
    counts->violated++;
    if (repair_find(plan, &options, &repair, &diag) != STATUS_OK) {
        complain(seed, "no answer", diag.count ? diag.messages[0].text : "", text);
    } else {
        counts->repaired += repair.found;
        if (repair.found)
            check_repair(seed, text, &repair, &options, counts);
        else if (!repair.why_not)
            complain(seed, "no repair and no reason", "", text);
        repair_fini(&repair);
    }
    diag_fini(&diag);
}

/* ---- minimised counterexamples --------------------------------------------------------------- */

static void check_path(uint64_t seed, const char *text, const struct program *program,
                       enum property property, struct search_path *path, struct counts *counts)
{
    struct diag diag;
    bool before = false, after = false;
    size_t length = path->count;
    int64_t effort = 1 << 20;
    struct search_watch watch = {0};
    diag_init(&diag);
    if (minimise_check(program, property, path, &before, &diag) != STATUS_OK ||
        minimise_path(program, property, &effort, &watch, path, &diag) != STATUS_OK ||
        minimise_check(program, property, path, &after, &diag) != STATUS_OK || !before || !after ||
        path->count > length)
        complain(seed, "minimised counterexample", property_key(property), text);
    counts->witnesses++;
    counts->shortened += path->count < length;
    diag_fini(&diag);
}

static void minimise_plan(uint64_t seed, const char *text, const struct plan *plan,
                          enum driver driver, struct counts *counts)
{
    struct program *program;
    struct search_result result;
    struct diag diag;
    diag_init(&diag);
    struct program_options options = {.driver = driver, .iterations = -1};
    struct search_options search = {
        .reduction = true, .properties = (1u << PROPERTY_COUNT) - 1, .limits = {.states = STATES}};
    if (program_build(plan, &options, &program, &diag) == STATUS_OK) {
        if (search_run(program, &search, &result, &diag) == STATUS_OK) {
            for (int p = 0; p < PROPERTY_COUNT; p++)
                if (result.found & 1u << p)
                    check_path(seed, text, program, (enum property)p, &result.witness[p], counts);
            search_result_fini(&result);
        }
        program_close(program);
    }
    diag_fini(&diag);
}

/* ---- random plans ---------------------------------------------------------------------------- */

static void try_random_plan(uint64_t seed, enum random_form form, struct counts *counts)
{
    char *text = random_plan(seed, form);
    struct plan plan;
    if (text && parse(text, &plan)) {
        bool pipeline = plan.form == FORM_PIPELINE;
        minimise_plan(seed, text, &plan, pipeline ? DRIVER_CLOCK : DRIVER_NONE, counts);
        if (pipeline)
            minimise_plan(seed, text, &plan, DRIVER_DATAFLOW, counts);
        repair_plan(seed, text, &plan, counts);
        plan_fini(&plan);
    }
    free(text);
}

static void test_random_plans(void)
{
    uint64_t seed = env_seed(), plans = (uint64_t)env_plans(QUICK, LONG);
    for (int form = 0; form < RANDOM_FORMS; form++) {
        struct counts counts = {0};
        complaints = 0;
        for (uint64_t i = 0; i < plans; i++)
            try_random_plan(seed + i, (enum random_form)form, &counts);
        const char *key = random_form_key((enum random_form)form);
        tap_note("%s: %d violated, %d repaired, %d proofs repeated; %d counterexamples, %d of them "
                 "made shorter",
                 key, counts.violated, counts.repaired, counts.checked, counts.witnesses,
                 counts.shortened);
        tap_ok(complaints == 0, "%s: repairs are repairs, shorter counterexamples are ones", key);
    }
}

/* ---- known repairs, and none ----------------------------------------------------------------- */

static const char scenario[] =
    "swplan: 1\nname: s\nenqueue_order: stage-ascending\nschedule:\n"
    "  FillCache: {stage: 0, stream: prefetch}\n  UpdateRows: {stage: 1}\n"
    "inter_iter_deps:\n  - [FillCache, UpdateRows]\nexpect: {clock: {deadlock: always}, "
    "dataflow: {}}\n";

static bool find(const char *text, const struct repair_options *options, struct repair *out)
{
    struct plan plan;
    struct diag diag;
    if (!parse(text, &plan))
        return false;
    diag_init(&diag);
    enum status status = repair_find(&plan, options, out, &diag);
    diag_fini(&diag);
    plan_fini(&plan);
    return status == STATUS_OK;
}

static void test_known(void)
{
    struct repair repair;
    struct repair_options options = {.verify = {.program = {.iterations = -1}},
                                     .drivers = {DRIVER_CLOCK, DRIVER_DATAFLOW},
                                     .violated = {true, false},
                                     .driver_count = 2};
    if (!find(scenario, &options, &repair)) {
        tap_ok(false, "a repair is looked for");
        return;
    }
    tap_ok(repair.found && repair.proves[0] && repair.proves[1] && !repair.weakens,
           "a known deadlock is repaired for both drivers");
    tap_is_int(repair.edits, 1, "by one edit");
    tap_is_str(repair.change, "enqueue_order: ready-first instead of stage-ascending", "this one");
    tap_ok(repair.text && strstr(repair.text, "\nexpect: {}\n"), "its plan expects nothing bad");
    repair_fini(&repair);

    options.candidates = 1;
    if (find(scenario, &options, &repair)) {
        tap_ok(repair.candidates <= 1, "a budget of one candidate is kept");
        repair_fini(&repair);
    }
    options.candidates = 0;
    options.verify.limits.states = 1;
    if (find(scenario, &options, &repair)) {
        tap_ok(!repair.found && repair.why_not, "with a limit of one state nothing is claimed");
        repair_fini(&repair);
    }
    options.verify.limits = (struct search_limits){.until_ns = stopwatch_now_ns()};
    if (find(scenario, &options, &repair)) {
        tap_is_int((int64_t)repair.candidates, 0, "behind the end of the time nothing is tried");
        tap_is_str(repair.why_not, "the time was up", "and that is the reason");
        repair_fini(&repair);
    }
}

/* Five ranks make calls together; rank 3 leaves one out, and is in the one behind it. */
static void test_left_out(void)
{
    char text[4096];
    int length = snprintf(text, sizeof text, "swplan: 1\ncomms: {g: [0, 1, 2, 3, 4]}\nthreads:\n");
    for (int rank = 0; rank < 5; rank++)
        length += snprintf(
            text + length, sizeof text - (size_t)length,
            "  r%d.main:\n"
            "    - {collective: a, comm: g, stream: g, bytes: 4KiB}\n%s"
            "    - {collective: c, comm: g, stream: g, bytes: 2KiB}\n",
            rank, rank == 3 ? "" : "    - {collective: b, comm: g, stream: g, bytes: 8KiB}\n");
    struct repair repair;
    struct repair_options options = {.verify = {.program = {.iterations = -1}},
                                     .drivers = {DRIVER_NONE},
                                     .violated = {true},
                                     .driver_count = 1,
                                     .candidates = 1};
    if (!find(text, &options, &repair)) {
        tap_ok(false, "a call that is left out: a repair is looked for");
        return;
    }
    tap_ok(repair.found, "a call that one rank alone leaves out is the first that is tried");
    tap_ok(repair.found && strstr(repair.change, "add collective b of g"), "it is added");
    repair_fini(&repair);
}

/* ---- diffs ----------------------------------------------------------------------------------- */

static void test_diffs(void)
{
    struct arena arena;
    arena_init(&arena, 0);
    tap_is_str(diff_unified("a\nb\n", "a\nb\n", 2, &arena), "", "equal texts");
    tap_is_str(diff_unified("a\nb\nc\n", "a\nx\nc\n", 1, &arena),
               "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n", "a line replaced");
    tap_is_str(diff_unified("", "a\n", 2, &arena), "@@ -0,0 +1,1 @@\n+a\n", "from nothing");
    tap_is_str(diff_unified("a\n", "", 2, &arena), "@@ -1,1 +0,0 @@\n-a\n", "to nothing");
    tap_is_str(
        diff_unified("k:\n  a\n  b\n  c\n  d\n  e\n", "k:\n  b\n  c\n  d\n  e\n  f\n", 0, &arena),
        "@@ -2,1 +1,0 @@ k:\n-  a\n@@ -6,0 +6,1 @@\n+  f\n", "two hunks, the keys above");
    arena_fini(&arena);
}

int main(void)
{
    test_early_end(host_text);
    test_diffs();
    test_left_out();
    test_kinds();
    test_known();
    test_random_plans();
    return tap_done();
}
