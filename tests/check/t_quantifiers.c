/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_quantifiers.c - always, some or never: the answers of the checker against all runs of small random plans.
 *
 * The oracle here knows the machine and nothing of the search. It passes every pair of a state and the set of
 * properties violated on the way to it, without reduction, and notes that set wherever a run ends: at its end,
 * in a hang, at a mismatch. A property that is in all of these sets is violated always, in some of them sometimes,
 * in none of them never.
 *
 * Plan `i` of a run comes from SWSIM_SEED + i, so that a failure printed with its seed is repeated
 * by `SWSIM_SEED=<seed> SWSIM_PLANS=1`. SWSIM_LONG=1 asks for more plans.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/verify.h"
#include "base/hash.h"
#include "tests/harness.h"
#include "tests/random_plan.h"
#include "tests/tap.h"

enum { QUICK = 240, LONG = 9000, MAX_PAIRS = 6000, TABLE = 1 << 14, MAX_COMPLAINTS = 10 };
enum { ITERATIONS = 2 };

static const unsigned all_properties = (1u << PROPERTY_COUNT) - 1;

/* A state and the properties violated on some way to it. */
struct pair {
    unsigned violated;
    char *cells;
};

struct oracle {
    const struct program *program;
    struct state *state;
    struct pair *pairs; /* all found; the first `done` have been expanded */
    int count, done;
    int *table;          /* of hashes: place in `pairs` + 1 */
    unsigned every, any; /* violated in every run, in any run */
    bool too_big;
};

static uint64_t pair_hash(const struct oracle *oracle, unsigned violated, const void *cells)
{
    return hash_mix(hash_bytes(cells, oracle->program->at.bytes) + violated);
}

static void add_pair(struct oracle *oracle, unsigned violated)
{
    size_t bytes = oracle->program->at.bytes;
    machine_canonical(oracle->program, oracle->state);
    uint64_t at = pair_hash(oracle, violated, oracle->state->cells) % TABLE;
    for (; oracle->table[at]; at = (at + 1) % TABLE) {
        const struct pair *pair = &oracle->pairs[oracle->table[at] - 1];
        if (pair->violated == violated && memcmp(pair->cells, oracle->state->cells, bytes) == 0)
            return;
    }
    char *cells = oracle->count < MAX_PAIRS ? malloc(bytes) : NULL;
    if (!cells) {
        oracle->too_big = true;
        return;
    }
    memcpy(cells, oracle->state->cells, bytes);
    oracle->pairs[oracle->count] = (struct pair){violated, cells};
    oracle->table[at] = ++oracle->count;
}

static void note_end(struct oracle *oracle, unsigned violated)
{
    oracle->every &= violated;
    oracle->any |= violated;
}

/* Properties violated because no agent can step. */
static unsigned judge_end(const struct program *p, const struct state *state)
{
    int64_t wanted, found;
    unsigned violated = machine_done(p, state) ? 0 : 1u << PROPERTY_DEADLOCK;
    for (int agent = 0; violated && agent < p->agent_count; agent++)
        if (machine_stale_wait(p, state, agent, &wanted, &found))
            violated |= 1u << PROPERTY_SLOT;
    return violated;
}

static void expand(struct oracle *oracle, const struct pair *pair, struct transition *steps)
{
    const struct program *p = oracle->program;
    memcpy(oracle->state->cells, pair->cells, p->at.bytes);
    int count = machine_enabled(p, oracle->state, steps);
    if (count == 0)
        note_end(oracle, pair->violated | judge_end(p, oracle->state));
    for (int i = 0; i < count; i++) {
        struct effect effect;
        memcpy(oracle->state->cells, pair->cells, p->at.bytes);
        machine_step(p, oracle->state, steps[i], &effect);
        unsigned violated = pair->violated | effect.violated;
        if (violated & 1u << PROPERTY_MISMATCH)
            note_end(oracle, violated);
        else
            add_pair(oracle, violated);
    }
}

static void oracle_run(struct oracle *oracle, const struct program *program)
{
    *oracle = (struct oracle){.program = program, .every = all_properties};
    struct transition *steps = calloc(machine_most_transitions(program), sizeof *steps);
    oracle->state = machine_state(program);
    oracle->pairs = calloc(MAX_PAIRS, sizeof *oracle->pairs);
    oracle->table = calloc(TABLE, sizeof *oracle->table);
    if (!steps || !oracle->state || !oracle->pairs || !oracle->table)
        abort();
    add_pair(oracle, 0);
    while (oracle->done < oracle->count && !oracle->too_big)
        expand(oracle, &oracle->pairs[oracle->done++], steps);
    for (int i = 0; i < oracle->count; i++)
        free(oracle->pairs[i].cells);
    free(oracle->table);
    free(oracle->pairs);
    free(steps);
    machine_free(oracle->state);
}

/* ---- one plan -------------------------------------------------------------------------------- */

struct bench {
    uint64_t seed;
    const char *text;
    int complaints, compared, skipped;
    int seen[OUTCOME_COUNT];
};

static bool has_parts(const struct program *p)
{
    for (int rank = 0; rank < p->ranks; rank++)
        if (p->fellows[rank] != 0)
            return true;
    return false;
}

/* Properties whose violation leaves values to chance. */
static const unsigned disorder = 1u << PROPERTY_RACE | 1u << PROPERTY_LIFETIME;

/* The oracle's knowledge. Of ranks apart the first to hang counts, which is not the end of a run of all of them. */
static bool agrees(const struct oracle *oracle, enum property property, enum outcome answer)
{
    bool every = oracle->every & 1u << property, any = oracle->any & 1u << property;
    bool mismatch = oracle->any & 1u << PROPERTY_MISMATCH;
    bool is_value = property == PROPERTY_VALUE || property == PROPERTY_SERIAL;
    if (property == PROPERTY_DEADLOCK && mismatch && has_parts(oracle->program))
        return answer != OUTCOME_ALWAYS || every;
    switch (answer) {
    case OUTCOME_UNDECIDED: return mismatch || (is_value && (oracle->any & disorder));
    case OUTCOME_PROVED: return !any;
    case OUTCOME_SOME: return any && (!every || mismatch);
    case OUTCOME_ALWAYS: return every;
    case OUTCOME_NONE: return property == PROPERTY_SERIAL && oracle->program->tasks == 0;
    case OUTCOME_COUNT: break;
    }
    return false;
}

static void compare(struct bench *bench, const struct oracle *oracle,
                    const struct verify_report *report)
{
    bool pipeline = oracle->program->tasks > 0;
    for (int p = 0; p < PROPERTY_COUNT; p++) {
        enum property property = (enum property)p;
        bool hang = property == PROPERTY_DEADLOCK || property == PROPERTY_DRAIN;
        if (property == PROPERTY_FAULTS || property == PROPERTY_MESSAGE ||
            property == PROPERTY_DRAIN || (pipeline && hang) ||
            (!pipeline && property == PROPERTY_BOUND))
            continue;
        bench->seen[report->outcome[p]]++;
        if (agrees(oracle, property, report->outcome[p]) || bench->complaints++ >= MAX_COMPLAINTS)
            continue;
        tap_note("SWSIM_SEED=%" PRIu64 ": driver %s: %s is %s; it is violated in %s runs",
                 bench->seed, driver_key(report->driver), property_key(property),
                 outcome_key(report->outcome[p]),
                 oracle->every & 1u << p ? "all"
                 : oracle->any & 1u << p ? "some"
                                         : "no");
        tap_note("%s", bench->text);
    }
    bench->compared++;
}

static enum status check_driver(void *context, const struct plan *plan, enum driver driver,
                                struct diag *diag)
{
    struct bench *bench = context;
    struct verify_options options = {.program = {.driver = driver, .iterations = ITERATIONS},
                                     .any_witness = true,
                                     .limits = {.states = MAX_PAIRS}};
    struct program *program;
    struct verify_report report;
    struct program_options built = options.program;
    built.serial = true;
    enum status status = program_build(plan, &built, &program, diag);
    if (status != STATUS_OK)
        return status;
    struct oracle oracle;
    oracle_run(&oracle, program);
    if (!oracle.too_big)
        status = verify_plan(plan, &options, &report, diag);
    if (oracle.too_big || (status == STATUS_OK && report.limit))
        bench->skipped++;
    else if (status == STATUS_OK)
        compare(bench, &oracle, &report);
    if (status == STATUS_OK && !oracle.too_big)
        verify_fini(&report);
    program_close(program);
    return status;
}

static void check_plan(struct bench *bench, enum random_form form, bool wide)
{
    char *text = (wide ? random_wide_plan : random_plan)(bench->seed, form);
    bench->text = text;
    bench->complaints += !plan_try(text, check_driver, bench);
    free(text);
}

static void check_form(enum random_form form, bool wide, uint64_t seed, uint64_t plans)
{
    struct bench bench = {0};
    for (uint64_t i = 0; i < plans; i++) {
        bench.seed = seed + i;
        check_plan(&bench, form, wide);
    }
    tap_ok(bench.complaints == 0 && bench.compared > 0,
           "%s%s: %d programs as the oracle says, %d too big; answers: %d proved, %d some, %d "
           "always, %d undecided",
           wide ? "wide " : "", random_form_key(form), bench.compared, bench.skipped,
           bench.seen[OUTCOME_PROVED], bench.seen[OUTCOME_SOME], bench.seen[OUTCOME_ALWAYS],
           bench.seen[OUTCOME_UNDECIDED]);
}

int main(void)
{
    uint64_t seed = env_seed(), plans = (uint64_t)env_plans(QUICK, LONG);
    for (int wide = 0; wide < 2; wide++) {
        check_form(RANDOM_THREADS, wide, seed, plans / 3 + 1);
        check_form(RANDOM_PIPELINE, wide, seed, plans / 12 + 1);
        check_form(RANDOM_PROGRAMS, wide, seed, plans / 12 + 1);
    }
    return tap_done();
}
