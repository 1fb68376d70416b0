/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_one_run.c - races, lifetimes and values by one run with vector clocks, against the search with knowledge in its states.
 *
 * On random host and rank programs that the search can decide: a race of the one run is found by the search, and
 * where every run is a reordering of the one a race that the search finds is a race of the one. The graph of lists that
 * leave no choice (machine/straight.h) has that run and its dates.
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
#include "machine/straight.h"
#include "plan/schedules/parallel.h"
#include "plan/text/parse.h"
#include "sim/predict/predict.h"
#include "tests/harness.h"
#include "tests/random_plan.h"
#include "tests/tap.h"

enum { QUICK = 300, LONG = 10000, MAX_STATES = 3000 };

struct bench {
    uint64_t seed;
    const char *text;
    int complaints, alone, chosen, races, lifetimes, values, straight, proved;
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

/* ---- lists that leave no choice -------------------------------------------------------------- */

static bool never_ends(void *context, int64_t time_ns, struct transition transition,
                       const struct effect *effect)
{
    (void)context, (void)time_ns, (void)transition, (void)effect;
    return true;
}

static bool same_accounts(const struct stream_account *a, const struct stream_account *b)
{
    bool same = a->busy_ns == b->busy_ns && a->blame_count == b->blame_count &&
                memcmp(a->stall_ns, b->stall_ns, sizeof a->stall_ns) == 0;
    for (int i = 0; same && i < a->blame_count; i++)
        same = a->blames[i].ns == b->blames[i].ns &&
               a->blames[i].stall.cause == b->blames[i].stall.cause &&
               a->blames[i].stall.on == b->blames[i].stall.on;
    return same;
}

static bool same_predictions(const struct prediction *a, const struct prediction *b)
{
    bool same = a->makespan_ns == b->makespan_ns && a->steps == b->steps && a->tasks == b->tasks &&
                a->violated == b->violated && a->program->stream_count == b->program->stream_count;
    for (int s = 0; same && s < a->program->stream_count; s++)
        same = same_accounts(&a->streams[s], &b->streams[s]);
    for (int rank = 0; same && rank < a->pipeline->rank_count; rank++) {
        const struct rank_figures *x = &a->pipeline->ranks[rank], *y = &b->pipeline->ranks[rank];
        same = x->first_ns == y->first_ns && x->last_ns == y->last_ns && x->busy_ns == y->busy_ns &&
               memcmp(x->idle_ns, y->idle_ns, sizeof x->idle_ns) == 0;
    }
    return same;
}

/* The dates of the graph are those of a simulation, which an observer of steps asks for. */
static enum status check_dates(struct bench *bench, const struct plan *plan, struct diag *diag)
{
    const struct simulate_observer observer = {.step = never_ends};
    struct predict_options options = {.replications = 1, .threads = 1};
    struct prediction dated, simulated;
    enum status status = predict(plan, &options, &dated, diag);
    if (status != STATUS_OK)
        return status;
    options.observer = &observer;
    status = predict(plan, &options, &simulated, diag);
    if (status == STATUS_OK) {
        const bool straight = dated.program->straight;
        bench->straight += straight;
        if (straight && !same_predictions(&dated, &simulated) && bench->complaints++ < 5)
            tap_note("SWSIM_SEED=%" PRIu64 ": other dates\n%s", bench->seed, bench->text);
        prediction_fini(&simulated);
    }
    prediction_fini(&dated);
    return status;
}

/* Lists whose graph is made are proved by the one run. */
static enum status check_graph(struct bench *bench, const struct plan *plan,
                               const struct one_run *run, struct diag *diag)
{
    const struct program_options built = {.iterations = -1, .clocks = true, .straight = true};
    struct program *program;
    enum status status = program_build(plan, &built, &program, diag);
    if (status != STATUS_OK)
        return status;
    bench->proved += program->straight != NULL;
    if (program->straight &&
        (!run->alone || !run->done || run->seen ||
         run->steps != program->straight->machine_steps) &&
        bench->complaints++ < 5)
        tap_note("SWSIM_SEED=%" PRIu64 ": a graph, but the run has %u in %" PRIu64 " steps\n%s",
                 bench->seed, run->seen, run->steps, bench->text);
    program_close(program);
    return check_dates(bench, plan, diag);
}

/* ---- against the search ---------------------------------------------------------------------- */

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
    if (status == STATUS_OK && plan->form == FORM_PROGRAMS)
        status = check_graph(bench, plan, &run, diag);
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

/* Draws numbers from 0 to below `most`. */
static void draw(uint64_t seed, const int *most, int count, int *drawn)
{
    uint64_t words = hash_mix(seed + 1);
    for (int i = 0; i < count; i++) {
        words = hash_mix(words);
        drawn[i] = (int)(words % (uint64_t)most[i]);
    }
}

/* A schedule with times of passes and messages; the caller frees it. */
static char *random_schedule(uint64_t seed)
{
    static const char *const schedules[] = {"gpipe",
                                            "1f1b",
                                            "zb_h1",
                                            "zbv",
                                            "dualpipe_v",
                                            "interleaved_1f1b, chunks: 2",
                                            "looped_bfs, chunks: 3",
                                            "1f1b, megatron: odd_even",
                                            "interleaved_1f1b, chunks: 2, megatron: overlap_p2p",
                                            "interleaved_1f1b, chunks: 2, megatron: batch"},
                             *const fifos[] = {"group", "pair", "direction", "edge"};
    static const int most[10] = {10, 4, 4, 3, 9, 9, 9, 3, 5, 2};
    int drawn[10];
    char *text = NULL;
    draw(seed, most, 10, drawn);
    const int ranks = 2 + 2 * (drawn[1] > 2);
    if (asprintf(&text,
                 "swplan: 1\nname: schedule\np2p: {fifo: %s, batch: %s, latency: %dms, bytes: 1KiB,"
                 " bandwidth: 1MB/s}\n"
                 "times: {F: %dms, B: %dms, I: %dms, W: %dms, WAIT_RECV_F: %dms}\n"
                 "generate: {schedule: %s, ranks: %d, microbatches: %d}\n",
                 fifos[drawn[2]], drawn[9] ? "true" : "false", drawn[3], 1 + drawn[4], 1 + drawn[5],
                 1 + drawn[6], drawn[7], drawn[7], schedules[drawn[0]], ranks,
                 2 * ranks + ranks * drawn[8]) < 0)
        return NULL;
    return text;
}

static void check_schedules(uint64_t seed, uint64_t plans)
{
    struct bench bench = {0};
    for (uint64_t i = 0; i < plans; i++) {
        bench.seed = seed + i;
        check_text(&bench, random_schedule(bench.seed));
    }
    tap_ok(bench.complaints == 0 && bench.proved > 10,
           "of %d schedules %d are proved by their graph, %d have dates by it", (int)plans,
           bench.proved, bench.straight);
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
    if (form == RANDOM_PROGRAMS && !wide)
        tap_ok(bench.proved > 0, "%d are proved by their graph, %d have dates by it", bench.proved,
               bench.straight);
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
    static const int most[12] = {2, 2, 3, 3, 4, 4, 4, 5, 2, 2, 2, 3};
    int drawn[12];
    draw(seed, most, 12, drawn);
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
    check_schedules(seed, plans / 3);
    test_one_pipeline();
    return tap_done();
}
