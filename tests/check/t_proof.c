/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_proof.c - certificates and swcheck's judgement of them, on random plans of every form.
 *
 *     whatever a certificate covers, the search does not refute: certificates are asked for everything, of all plans
 *     what the search proves by structure or by one run has a certificate
 *     a certificate of another plan is refused, and with its hash changed where that plan violates what it claims
 *     the certificate of a plan, with its hash changed, where words or lines of the plan are changed: the same
 *     whatever closed sets of agents a writer of reduced states takes, it proves nothing that the search refutes
 *     a certificate with a word left out, doubled or changed is refused, or is another proof; reading it ends
 *
 * Plan `i` of a run comes from SWSIM_SEED + i. SWSIM_LONG=1 asks for more plans.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "improve/found.h"
#include "check/certify.h"
#include "check/verify.h"
#include "base/hash.h"
#include "plan/text/parse.h"
#include "tests/closed_sets.h"
#include "tests/fuzz/mutate.h"
#include "tests/harness.h"
#include "tests/mutants.h"
#include "tests/random_plan.h"
#include "tests/tame_plan.h"
#include "tests/tap.h"

enum {
    QUICK = 60,
    LONG = 4000,
    MAX_STATES = 3000,
    LISTED = 1000,
    MUTANTS = 25,
    CHANGES = 40,
    DRAWS = 3,
    DRAWN = 300
};

struct bench {
    uint64_t seed;
    const char *text, *driver;
    int plans, covered, missing, false_proofs, accepted, refused, wrong_deletions, foreign,
        believed, drawn;
    char *last; /* a certificate of an earlier plan */
};

static void complain(struct bench *bench, int *count, const char *what, const char *detail)
{
    if ((*count)++ > 2)
        return;
    tap_note("SWSIM_SEED=%" PRIu64 ", driver %s: %s %s", bench->seed, bench->driver, what, detail);
    tap_note("%s", bench->text);
}

/* ---- other plans' certificates ------------------------------------------------------------------- */

static char *with_hash(const char *text, uint64_t hash)
{
    char *copy = strdup(text), hex[17];
    snprintf(hex, sizeof hex, "%016" PRIx64, hash);
    char *at = copy ? strstr(copy, "plan ") : NULL;
    if (at)
        memcpy(at + 5, hex, 16);
    return copy;
}

static bool is_violated(enum outcome outcome)
{
    return outcome == OUTCOME_SOME || outcome == OUTCOME_ALWAYS;
}

static unsigned violated_of(const struct verify_report *report)
{
    unsigned violated = 0;
    for (int p = 0; p < PROPERTY_COUNT; p++)
        violated |= is_violated(report->outcome[p]) ? 1u << p : 0;
    return violated;
}

/* The certificate of an earlier plan: refused, and with the right hash not believed if it is wrong. */
static void try_foreign(struct bench *bench, const struct plan *plan,
                        const struct verify_report *report, struct diag *diag)
{
    struct proof_result result;
    unsigned proves;
    uint64_t hash;
    if (!bench->last || proof_hash(plan, &hash, diag) != STATUS_OK)
        return;
    char *patched = with_hash(bench->last, hash);
    if (!patched || strcmp(patched, bench->last) == 0) {
        free(patched);
        return;
    }
    if (mutants_check(plan, bench->last, &result, &proves, diag))
        complain(bench, &bench->foreign, "another plan's certificate is accepted:", bench->last);
    if (mutants_check(plan, patched, &result, &proves, diag) &&
        result.options.driver == report->driver && proves & violated_of(report))
        complain(bench, &bench->false_proofs, "a foreign certificate is believed:", patched);
    free(patched);
}

/* ---- the plan changed -------------------------------------------------------------------------- */

/* A certificate that is accepted for a plan, and what a search says of it. */
static void try_claim(struct bench *bench, const struct plan *plan, const char *certificate,
                      struct diag *diag)
{
    struct proof_result result;
    struct verify_report report;
    unsigned proves;
    uint64_t hash;
    char *patched =
        proof_hash(plan, &hash, diag) == STATUS_OK ? with_hash(certificate, hash) : NULL;
    if (patched && strcmp(patched, certificate) != 0 &&
        mutants_check(plan, patched, &result, &proves, diag)) {
        const struct verify_options options = {.program = result.options,
                                               .any_witness = true,
                                               .faults = proves & 1u << PROPERTY_FAULTS,
                                               .limits = {.states = MAX_STATES}};
        bench->believed++;
        if (verify_plan(plan, &options, &report, diag) == STATUS_OK) {
            if (proves & violated_of(&report))
                complain(bench, &bench->false_proofs, "of a changed plan is believed:", patched);
            verify_fini(&report);
        }
    }
    free(patched);
}

/* The certificate of this plan for plans that differ a little. */
static void try_changes(struct bench *bench, const char *certificate)
{
    const char *text = bench->text;
    size_t length = strlen(text), most = 2 * length + 64;
    char *changed = malloc(most + 1);
    for (uint32_t i = 0; changed && i < CHANGES; i++) {
        struct diag diag;
        struct plan plan;
        diag_init(&diag);
        memcpy(changed, text, length);
        size_t size = mutate_text((uint8_t *)changed, length, most,
                                  (uint32_t)hash_mix(bench->seed * CHANGES + i));
        changed[size] = '\0';
        if (size > 0 && !memchr(changed, '\0', size) &&
            plan_parse("changed.yaml", changed, size, &plan, &diag) == STATUS_OK) {
            bench->text = changed;
            if (found_resolve(&plan, &plan.arena, &diag) == STATUS_OK)
                try_claim(bench, &plan, certificate, &diag);
            bench->text = text;
            plan_fini(&plan);
        }
        diag_fini(&diag);
    }
    free(changed);
}

/* ---- sets that are drawn ------------------------------------------------------------------------- */

static void try_closed_sets(struct bench *bench, const struct plan *plan,
                            const struct program_options *options,
                            const struct verify_report *report, struct diag *diag)
{
    for (uint64_t i = 0; i < DRAWS; i++) {
        struct proof_result result;
        unsigned proves;
        char *text = closed_sets_certify(plan, options, DRAWN, bench->seed * DRAWS + i, diag);
        if (text && mutants_check(plan, text, &result, &proves, diag)) {
            bench->drawn++;
            if (proves & violated_of(report))
                complain(bench, &bench->false_proofs, "a drawn set is believed:", text);
        }
        free(text);
    }
}

/* ---- one plan ---------------------------------------------------------------------------------- */

/* The properties that are proved without a search. */
static unsigned expected_cover(const struct verify_report *report)
{
    unsigned proved = 0;
    for (int p = 0; p < PROPERTY_COUNT; p++)
        proved |= report->outcome[p] == OUTCOME_PROVED ? 1u << p : 0;
    return report->any_ranks && !report->searched ? proved & ~(1u << PROPERTY_FAULTS) : 0;
}

static void compare(struct bench *bench, const struct plan *plan,
                    const struct verify_report *report, const struct certified *certified,
                    struct diag *diag)
{
    unsigned wrong = certified->covers & violated_of(report);
    unsigned left = expected_cover(report) & ~certified->covers;
    bench->plans++;
    bench->covered += certified->covers != 0;
    for (int p = 0; p < PROPERTY_COUNT; p++) {
        if (wrong & 1u << p)
            complain(bench, &bench->false_proofs,
                     "certified and refuted:", property_key((enum property)p));
        if (left & 1u << p)
            complain(bench, &bench->missing, certified->why_not, property_key((enum property)p));
    }
    try_foreign(bench, plan, report, diag);
    if (!certified->text)
        return;
    struct mutants mutants = {.seed = bench->seed, .count = MUTANTS};
    if (!mutants_try(plan, certified->text, certified->covers, &mutants, diag))
        complain(bench, &bench->wrong_deletions, "a mutant is accepted:", mutants.wrong);
    bench->accepted += mutants.accepted;
    bench->refused += mutants.refused;
    free(mutants.wrong);
    try_changes(bench, certified->text);
    free(bench->last);
    bench->last = strdup(certified->text);
}

/* Without the question for faults the other properties may be proved for any number of ranks. */
static enum status verify_twice(const struct plan *plan, const struct verify_options *options,
                                struct verify_report *report, struct diag *diag)
{
    struct verify_options faulty = *options;
    struct verify_report with_faults;
    faulty.faults = true;
    enum status status = verify_plan(plan, &faulty, &with_faults, diag);
    if (status != STATUS_OK)
        return status;
    enum outcome outcome = with_faults.outcome[PROPERTY_FAULTS];
    verify_fini(&with_faults);
    status = verify_plan(plan, options, report, diag);
    if (status == STATUS_OK)
        report->outcome[PROPERTY_FAULTS] = outcome;
    return status;
}

static enum status check_plan(struct bench *bench, const struct plan *plan, enum driver driver,
                              struct diag *diag)
{
    const struct program_options program = {.driver = driver, .iterations = -1};
    const struct verify_options options = {
        .program = program, .any_witness = true, .limits = {.states = MAX_STATES}};
    const unsigned all = ((1u << PROPERTY_COUNT) - 1);
    struct search_watch watch = {0};
    struct verify_report report;
    struct certified certified;
    bench->driver = driver_key(driver);
    enum status status = verify_twice(plan, &options, &report, diag);
    if (status != STATUS_OK)
        return status;
    status = certify_plan(plan, &program, all, LISTED, &watch, &certified, diag);
    if (status == STATUS_OK) {
        compare(bench, plan, &report, &certified, diag);
        try_closed_sets(bench, plan, &program, &report, diag);
        free(certified.text);
    }
    verify_fini(&report);
    return status;
}

static void check_drivers(struct bench *bench, char *text, struct diag *diag)
{
    struct plan plan;
    bench->text = text;
    enum status status =
        text ? plan_parse("random.yaml", text, strlen(text), &plan, diag) : diag_no_memory(diag);
    if (status == STATUS_OK) {
        bool pipeline = plan.form == FORM_PIPELINE;
        status = found_resolve(&plan, &plan.arena, diag);
        if (status == STATUS_OK)
            status = check_plan(bench, &plan, pipeline ? DRIVER_CLOCK : DRIVER_NONE, diag);
        if (status == STATUS_OK && pipeline)
            status = check_plan(bench, &plan, DRIVER_DATAFLOW, diag);
        plan_fini(&plan);
    }
    if (status != STATUS_OK) {
        complain(bench, &bench->missing, "cannot be checked", "");
        diag_tell(diag);
    }
    free(text);
}

static char *draw(int kind, uint64_t seed)
{
    switch (kind) {
    case 0: return random_plan(seed, RANDOM_PIPELINE);
    case 1: return random_plan(seed, RANDOM_THREADS);
    case 2: return random_plan(seed, RANDOM_PROGRAMS);
    case 3: return random_wide_plan(seed, RANDOM_PIPELINE);
    case 4: return random_wide_plan(seed, RANDOM_THREADS);
    case 5: return random_wide_plan(seed, RANDOM_PROGRAMS);
    default: return tame_plan(seed);
    }
}

static void check_kind(int kind, const char *name, uint64_t seed, uint64_t plans)
{
    struct bench bench = {0};
    for (uint64_t i = 0; i < plans; i++) {
        struct diag diag;
        diag_init(&diag);
        bench.seed = seed + i;
        check_drivers(&bench, draw(kind, bench.seed), &diag);
        diag_fini(&diag);
    }
    tap_ok(bench.false_proofs == 0, "%s: %d of %d plans certified, nothing that is refuted", name,
           bench.covered, bench.plans);
    tap_note(
        "%s: accepted are %d certificates of plans that were changed, %d with sets that are drawn",
        name, bench.believed, bench.drawn);
    tap_ok(bench.missing == 0, "%s: what structure alone decides has a certificate", name);
    tap_ok(bench.foreign == 0, "%s: certificates of other plans are refused", name);
    tap_ok(bench.wrong_deletions == 0, "%s: %d mutants refused, %d with another number still hold",
           name, bench.refused, bench.accepted);
    free(bench.last);
}

int main(void)
{
    static const char *const names[] = {"pipelines",      "threads",      "programs",
                                        "wide pipelines", "wide threads", "wide programs",
                                        "tame pipelines"};
    uint64_t seed = env_seed(), plans = (uint64_t)env_plans(QUICK, LONG);
    for (int kind = 0; kind < (int)(sizeof names / sizeof *names); kind++)
        check_kind(kind, names[kind], seed, plans);
    return tap_done();
}
