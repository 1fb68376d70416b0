/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_one_run.c - races, lifetimes and values by one run with vector clocks, against the search with knowledge in its states.
 *
 * On random host and rank programs that the search can decide: a race of the one run is found by the search, and
 * where every run is a reordering of the one a race that the search finds is a race of the one.
 *
 * Plan `i` of a run comes from SWSIM_SEED + i. SWSIM_LONG=1 asks for more plans.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "check/one_run.h"
#include "check/verify.h"
#include "plan/schedules/parallel.h"
#include "plan/text/parse.h"
#include "tests/harness.h"
#include "tests/random_plan.h"
#include "tests/tap.h"

enum { QUICK = 300, LONG = 10000, MAX_STATES = 3000 };

struct bench {
    uint64_t seed;
    const char *text;
    int complaints, alone, chosen, races, lifetimes, values;
};

static void complain(struct bench *bench, const struct one_run *run, enum property property,
                     enum outcome outcome)
{
    if (bench->complaints++ > 5)
        return;
    tap_note("SWSIM_SEED=%" PRIu64 ": %s: %s one run %s it; the search says %s", bench->seed,
             property_key(property), run->alone ? "the" : "a chosen",
             run->found & 1u << property ? "has" : "lacks", outcome_key(outcome));
    tap_note("%s", bench->text);
}

static void compare(struct bench *bench, const struct one_run *run,
                    const struct verify_report *report)
{
    static const enum property compared[] = {PROPERTY_RACE, PROPERTY_LIFETIME, PROPERTY_VALUE};
    bool chance = run->found & (1u << PROPERTY_RACE | 1u << PROPERTY_LIFETIME);
    bool mismatch = report->outcome[PROPERTY_MISMATCH] == OUTCOME_SOME ||
                    report->outcome[PROPERTY_MISMATCH] == OUTCOME_ALWAYS;
    for (int i = 0; i < 3 && !report->limit; i++) {
        enum outcome outcome = report->outcome[compared[i]];
        bool found = outcome == OUTCOME_SOME || outcome == OUTCOME_ALWAYS;
        bool has = run->found & 1u << compared[i];
        if (compared[i] == PROPERTY_VALUE && (chance || outcome == OUTCOME_UNDECIDED))
            continue; /* left to chance */
        if (outcome == OUTCOME_UNDECIDED && mismatch)
            continue; /* behind a mismatch, at which the search ends */
        if (has ? !found : found && run->alone)
            complain(bench, run, compared[i], outcome);
    }
    bench->alone += run->alone;
    bench->chosen += !run->alone;
    bench->races += run->found & 1u << PROPERTY_RACE ? 1 : 0;
    bench->lifetimes += run->found & 1u << PROPERTY_LIFETIME ? 1 : 0;
    bench->values += !chance && run->found & 1u << PROPERTY_VALUE ? 1 : 0;
}

static enum status check_plan(void *context, const struct plan *plan, enum driver driver,
                              struct diag *diag)
{
    struct bench *bench = context;
    struct program_options built = {.driver = driver, .iterations = -1, .clocks = true};
    struct verify_options options = {
        .program.iterations = -1, .any_witness = true, .limits = {.states = MAX_STATES}};
    struct search_watch watch = {0};
    struct program *program;
    struct one_run run;
    struct verify_report report;
    enum status status = program_build(plan, &built, &program, diag);
    if (status != STATUS_OK)
        return status;
    status = one_run_take(program, &watch, &run, diag);
    if (status == STATUS_OK) {
        status = verify_plan(plan, &options, &report, diag);
        if (status == STATUS_OK) {
            compare(bench, &run, &report);
            verify_fini(&report);
        }
        one_run_fini(&run);
    }
    program_close(program);
    return status;
}

static void check_text(struct bench *bench, char *text)
{
    bench->text = text;
    bench->complaints += !plan_try(text, check_plan, bench);
    free(text);
}

static void check_form(enum random_form form, bool wide, uint64_t seed, uint64_t plans)
{
    struct bench bench = {0};
    for (uint64_t i = 0; i < plans; i++) {
        bench.seed = seed + i;
        check_text(&bench, (wide ? random_wide_plan : random_plan)(bench.seed, form));
    }
    tap_ok(bench.complaints == 0 && bench.alone > 0,
           "%s%s: %d of one order, %d with a choice, %d with a race, %d with a lifetime, %d with a "
           "value",
           wide ? "wide " : "", random_form_key(form), bench.alone, bench.chosen, bench.races,
           bench.lifetimes, bench.values);
}

/* ---- one pipeline for all -------------------------------------------------------------------- */

/* A pipeline in groups of every kind, good or bad, with room for all work or for little; the caller frees it. */
static char *random_groups(uint64_t seed)
{
    static const char *const orders[] = {"tp-cp-dp-pp", "tp-cp-pp-dp", "pp-dp-cp-tp"},
                             *const reduces[] = {"none", "stage", "overlap", "end"},
                             *const schedules[] = {"1f1b", "gpipe", "interleaved_1f1b", "zb_h1"},
                             *const fifos[] = {"pair", "direction", "edge", "all"},
                             *const machines[] = {"", "machine: {sm_slots: 1}\n",
                                                  "machine: {hw_queues: 1}\n",
                                                  "machine: {launch_queue: 2}\n",
                                                  "machine: {sm_slots: 2, launch_queue: 3}\n"};
    uint64_t words = hash_mix(seed + 1);
    int drawn[12];
    static const int most[12] = {2, 2, 3, 3, 4, 4, 4, 5, 2, 2, 2, 3};
    for (int i = 0; i < 12; i++) {
        words = hash_mix(words);
        drawn[i] = (int)(words % (uint64_t)most[i]);
    }
    char *text = NULL;
    const bool chunked = drawn[5] == 2;
    if (asprintf(&text,
                 "swplan: 1\nname: groups\n%sp2p: {fifo: %s}\n"
                 "parallel:\n  {tp: %d, cp: %d, dp: %d, order: %s, grad_reduce: %s,\n"
                 "   embedding: %s, costs: {tp: {overlap: %s}, cp: {overlap: %s}}}\n"
                 "times: {F: 1ms, B: 2ms, I: 1ms, W: 1ms}\n"
                 "generate: {schedule: %s, ranks: 2, %smicrobatches: %d}\n",
                 machines[drawn[7]], fifos[drawn[6]], 1 + drawn[0], 1 + drawn[1], 1 + drawn[2],
                 orders[drawn[3]], reduces[drawn[4]], drawn[8] ? "last" : "none",
                 drawn[9] ? "true" : "false", drawn[10] ? "true" : "false", schedules[drawn[5]],
                 chunked ? "chunks: 2, " : "", 2 + 2 * drawn[11]) < 0)
        return NULL;
    return text;
}

struct stand_in {
    int plans, proved, refused, wrong;
};

/* Is it proved by one run, of one pipeline or of all ranks? */
static enum status proves(const struct plan *plan, bool one, bool *out, struct diag *diag)
{
    struct program_options built = {.iterations = -1, .clocks = true};
    struct search_watch watch = {0};
    struct program *program;
    struct one_run run;
    if (one) {
        built.few = 1;
        built.stands_for = plan_rank_count(plan);
    }
    enum status status = program_build(plan, &built, &program, diag);
    if (status != STATUS_OK)
        return status;
    status = one_run_take(program, &watch, &run, diag);
    if (status == STATUS_OK) {
        *out = run.alone && run.done && run.seen == 0;
        one_run_fini(&run);
    }
    program_close(program);
    return status;
}

/* A proof of one pipeline is one of all: where it is given, one run of all ranks and a search of them agree. */
static void test_one_pipeline(void)
{
    struct stand_in counts = {0};
    struct diag diag;
    const uint64_t seed = env_seed();
    diag_init(&diag);
    for (uint64_t i = 0; i < (uint64_t)env_plans(200, 5000); i++) {
        char *text = random_groups(seed + i);
        struct plan plan;
        bool one = false, all = false;
        if (!text || plan_parse("groups.yaml", text, strlen(text), &plan, &diag) != STATUS_OK) {
            free(text);
            continue;
        }
        counts.plans++;
        if (parallel_replicas_are_alike(&plan) &&
            (proves(&plan, true, &one, &diag) != STATUS_OK ||
             (one && proves(&plan, false, &all, &diag) != STATUS_OK)))
            tap_ok(0, "seed %" PRIu64 ": %s", seed + i, diag.messages[0].text);
        if (one) {
            const struct verify_options options = {
                .program.iterations = -1, .any_witness = true, .limits = {.states = MAX_STATES}};
            struct verify_report report;
            if (verify_plan(&plan, &options, &report, &diag) == STATUS_OK) {
                all &= report.verdict != VERDICT_VIOLATED;
                verify_fini(&report);
            }
        }
        counts.proved += one;
        counts.refused += !one;
        counts.wrong += one && !all;
        if (one && !all && counts.wrong < 4)
            tap_note("SWSIM_SEED=%" PRIu64 "\n%s", seed + i, text);
        plan_fini(&plan);
        free(text);
    }
    diag_fini(&diag);
    tap_is_int(counts.wrong, 0, "a proof of one pipeline is one of all: %d of %d plans",
               counts.proved, counts.plans);
    tap_ok(counts.proved > 20 && counts.refused > 20, "and %d have none", counts.refused);
}

int main(void)
{
    uint64_t seed = env_seed(), plans = (uint64_t)env_plans(QUICK, LONG);
    for (int wide = 0; wide < 2; wide++) {
        check_form(RANDOM_THREADS, wide, seed, plans / 2);
        check_form(RANDOM_PROGRAMS, wide, seed, plans / 2);
    }
    test_one_pipeline();
    return tap_done();
}
