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
#include <stdlib.h>

#include "check/one_run.h"
#include "check/verify.h"
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

int main(void)
{
    uint64_t seed = env_seed(), plans = (uint64_t)env_plans(QUICK, LONG);
    for (int wide = 0; wide < 2; wide++) {
        check_form(RANDOM_THREADS, wide, seed, plans / 2);
        check_form(RANDOM_PROGRAMS, wide, seed, plans / 2);
    }
    return tap_done();
}
