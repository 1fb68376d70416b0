/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_faults.c - failure safety: three ways of finding the same answer must agree, and a few programs by
 * hand.
 *
 *     structure    what it proves, a search of every interleaving with every fault does not refute
 *     injection    what it finds, that search finds as well
 *     witnesses    every step can be taken, one of them is a fault, and the end leaves somebody blocked
 *     flags        the same for small host programs whose streams wait for flags, of which the structure proves none
 *     no faults    a program built for the question but without a fault has the states of one that
 *                  is not
 *
 * Random plans of every form, with few iterations, each under none, wake and abort. Prints its seed;
 * SWSIM_SEED sets it, SWSIM_PLANS their number, SWSIM_LONG=1 asks for more.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "check/faults.h"
#include "check/verify.h"
#include "plan/keywords.h"
#include "plan/text/parse.h"
#include "tests/harness.h"
#include "tests/random_plan.h"
#include "tests/tap.h"

enum { QUICK = 60, LONG = 1500, QUICK_STATES = 4000, LONG_STATES = 60000, MAX_COMPLAINTS = 5 };

static const unsigned hangs =
    1u << PROPERTY_DEADLOCK | 1u << PROPERTY_DRAIN | 1u << PROPERTY_MISMATCH;

struct bench {
    uint64_t seed;
    const char *text;
    struct search_limits limits;
    int complaints, asked, structure, structure_and_search, violated, witnesses, adopted;
};

static void complain(struct bench *bench, const char *what)
{
    if (bench->complaints++ >= MAX_COMPLAINTS)
        return;
    tap_note("SWSIM_SEED=%" PRIu64 ": %s", bench->seed, what);
    tap_note("%s", bench->text);
}

static bool is_violated(enum outcome outcome)
{
    return outcome == OUTCOME_SOME || outcome == OUTCOME_ALWAYS;
}

static struct program *build(struct bench *bench, const struct plan *plan,
                             struct program_options options)
{
    struct program *program = NULL;
    struct diag diag;
    diag_init(&diag);
    if (program_build(plan, &options, &program, &diag) != STATUS_OK)
        complain(bench, "the program cannot be built");
    diag_fini(&diag);
    return program;
}

/* ---- witnesses ------------------------------------------------------------------------------- */

static bool is_enabled(const struct program *p, const struct state *state, struct transition step)
{
    return machine_agent_enabled(p, state, step.agent) > step.choice;
}

static void check_witness(struct bench *bench, const struct faults_answer *answer)
{
    const struct program *p = answer->program;
    struct state *state = machine_state(p);
    int faults = 0;
    for (size_t i = 0; i < answer->witness.count; i++) {
        struct transition step = answer->witness.steps[i];
        if (!is_enabled(p, state, step))
            complain(bench, "a step of the witness cannot be taken");
        faults += p->agents[step.agent].kind == AGENT_FAULT;
        machine_step(p, state, step, NULL);
    }
    if (faults != 1)
        complain(bench, "a witness without exactly one fault");
    if (!machine_never_woken(p, state))
        complain(bench, "a witness that leaves nobody blocked");
    bench->witnesses++;
    machine_free(state);
}

/* ---- the plain program inside the one with faults -------------------------------------------- */

/* Step both side by side, always the first agent that can: the same steps, and adopting the one
   state gives the other. */
static void check_adoption(struct bench *bench, const struct program *plain,
                           const struct program *faulty)
{
    struct state *one = machine_state(plain), *two = machine_state(faulty);
    struct state *adopted = machine_state(faulty);
    for (int k = 0, agent = 0; k < 200 && agent < plain->agent_count; k++) {
        machine_state_from_plain(faulty, adopted, plain, one);
        if (memcmp(adopted->cells, two->cells, faulty->at.bytes) != 0)
            complain(bench, "the state of the program with faults is another one");
        for (agent = 0; agent < plain->agent_count; agent++) {
            if (!machine_agent_enabled(plain, one, agent))
                continue;
            machine_step(plain, one, (struct transition){agent, 0}, NULL);
            machine_step(faulty, two, (struct transition){agent, 0}, NULL);
            break;
        }
    }
    bench->adopted++;
    machine_free(one);
    machine_free(two);
    machine_free(adopted);
}

/* ---- three ways ------------------------------------------------------------------------------ */

static void compare(struct bench *bench, const struct plan *plan, const struct program *plain,
                    const struct program *faulty, bool lives)
{
    struct diag diag;
    struct faults_answer answer;
    struct search_result all;
    bool proved;
    struct faults_options options = {.no_structure = true, .limits = bench->limits};
    struct search_options search = {.properties = 1u << PROPERTY_FAULTS,
                                    .stop_at = 1u << PROPERTY_FAULTS,
                                    .limits = bench->limits};
    diag_init(&diag);
    if (faults_judge(plan, plain, &options, &answer, &diag) != STATUS_OK ||
        search_run(faulty, &search, &all, &diag) != STATUS_OK ||
        faults_proved_by_structure(plain, lives, &proved, &diag) != STATUS_OK)
        abort();
    bool found = all.found != 0;
    if (proved && (found || is_violated(answer.outcome)))
        complain(bench, "proved by structure, but refuted");
    if (answer.outcome == OUTCOME_PROVED && found)
        complain(bench, "proved, but a search finds a violation");
    if (all.complete && is_violated(answer.outcome))
        complain(bench, "violated, but a search of everything finds nothing");
    if (found && !is_violated(answer.outcome))
        complain(bench, "a search finds a violation, the answer is none");
    if (is_violated(answer.outcome))
        check_witness(bench, &answer);
    bench->asked++;
    bench->structure += proved;
    bench->structure_and_search += proved && all.complete;
    bench->violated += is_violated(answer.outcome);
    faults_fini(&answer);
    search_result_fini(&all);
    diag_fini(&diag);
}

/* Does the plan hang by itself? Then there is nothing to ask. */
static bool hangs_anyway(struct bench *bench, const struct plan *plan,
                         const struct program_options *options, bool *lives)
{
    struct diag diag;
    struct verify_report report;
    struct verify_options verify = {
        .program = *options, .properties = hangs, .any_witness = true, .limits = bench->limits};
    diag_init(&diag);
    if (verify_plan(plan, &verify, &report, &diag) != STATUS_OK)
        abort();
    bool bad = report.verdict == VERDICT_VIOLATED;
    *lives = report.verdict == VERDICT_PROVED;
    verify_fini(&report);
    diag_fini(&diag);
    return bad;
}

static void check_plan(struct bench *bench, const struct plan *plan)
{
    struct program_options options = {.iterations = 1 + (int64_t)(bench->seed % 2)};
    if (plan->form == FORM_PIPELINE)
        options.driver = bench->seed % 4 < 2 ? DRIVER_CLOCK : DRIVER_DATAFLOW;
    bool lives;
    if (hangs_anyway(bench, plan, &options, &lives))
        return;
    struct program *plain = build(bench, plan, options);
    options.faults = true;
    struct program *faulty = build(bench, plan, options);
    if (plain && faulty) {
        check_adoption(bench, plain, faulty);
        compare(bench, plan, plain, faulty, lives);
    }
    program_close(plain);
    program_close(faulty);
}

static void check_text(struct bench *bench, char *text, const char *rule)
{
    char *whole = NULL;
    struct plan plan;
    struct diag diag;
    diag_init(&diag);
    if (!text || asprintf(&whole, "%son_failure: %s\n", text, rule) < 0)
        abort();
    bench->text = whole;
    if (plan_parse("random", whole, strlen(whole), &plan, &diag) != STATUS_OK) {
        complain(bench, "the plan cannot be read");
    } else {
        check_plan(bench, &plan);
        plan_fini(&plan);
    }
    diag_fini(&diag);
    free(whole);
    free(text);
}

/* ---- streams that wait for flags -------------------------------------------------------------- */

enum { FLAG_THREADS = 3, FLAG_STEPS = 7, FLAG_RANKS = 2 };

/* One of the two streams of its rank. */
static void put_stream_op(FILE *out, const char *op, uint64_t random)
{
    fprintf(out, "{%s, stream: s%d}", op, (int)(random % 2));
}

/* A host program that does not hang: its operations stand in one order, dealt to its threads, and what waits for a flag comes
   behind what sets it. Both ranks have a communicator, or there is one rank. */
static char *flag_plan(uint64_t seed, bool has_comm)
{
    char *text = NULL, *body[FLAG_THREADS] = {NULL};
    size_t length, lengths[FLAG_THREADS];
    FILE *out = open_memstream(&text, &length), *bodies[FLAG_THREADS];
    int flags = 0;
    for (int t = 0; t < FLAG_THREADS; t++) {
        bodies[t] = open_memstream(&body[t], &lengths[t]);
        if (!bodies[t])
            abort();
        fprintf(bodies[t], "  r%d.t%d: [", has_comm ? t % FLAG_RANKS : 0, t);
        if (has_comm && t < FLAG_RANKS)
            fputs("{collective: x, comm: all, stream: s0}, ", bodies[t]);
    }
    for (int step = 0; step < FLAG_STEPS; step++) {
        const uint64_t random = hash_mix(seed * FLAG_STEPS + (uint64_t)step);
        FILE *to = bodies[random % FLAG_THREADS];
        char op[32];
        const int flag = flags > 0 ? (int)(random / 16 % (uint64_t)flags) : -1;
        switch (random / 3 % 7) {
        case 0: fputs("{host: 1ms}", to); break;
        case 1: put_stream_op(to, "launch: k", random / 64); break;
        case 2: fprintf(to, "{signal: f%d}", flags++); break;
        case 3:
            snprintf(op, sizeof op, "write: f%d", flags++);
            put_stream_op(to, op, random / 64);
            break;
        case 4: fputs("{sync: device}", to); break;
        default:
            snprintf(op, sizeof op, "wait_flag: f%d", flag);
            if (flag >= 0)
                put_stream_op(to, op, random / 64);
            else
                fputs("{host: 1ms}", to);
        }
        fputs(", ", to);
    }
    fputs(has_comm ? "swplan: 1\ncomms: {all: [0, 1]}\nthreads:\n" : "swplan: 1\nthreads:\n", out);
    for (int t = 0; t < FLAG_THREADS; t++) {
        fputs("{sync: device}]\n", bodies[t]);
        if (fclose(bodies[t]) != 0)
            abort();
        fputs(body[t], out);
        free(body[t]);
    }
    return fclose(out) == 0 ? text : NULL;
}

static void random_flags(uint64_t seed, uint64_t plans, bool is_long)
{
    for (int has_comm = 0; has_comm < 2; has_comm++) {
        const char *rule = has_comm ? "abort" : "wake";
        struct bench bench = {.limits.states = is_long ? LONG_STATES : QUICK_STATES};
        int waiting = 0, refuted = 0;
        for (uint64_t i = 0; i < plans; i++) {
            bench.seed = seed + i;
            char *text = flag_plan(bench.seed, has_comm);
            if (!text)
                abort();
            const bool waits = strstr(text, "wait_flag") != NULL;
            const int violated = bench.violated, proved = bench.structure;
            check_text(&bench, text, rule);
            waiting += waits;
            refuted += waits && bench.violated > violated;
            if (waits && bench.structure > proved)
                complain(&bench, "proved by structure, though a stream waits for a flag");
        }
        tap_note("streams wait for flags, %s: %d asked, %d of them wait, %d of these violated",
                 rule, bench.asked, waiting, refuted);
        tap_ok(bench.complaints == 0 && refuted > 0 && bench.structure > 0,
               "streams that wait for flags, on_failure %s: all ways agree", rule);
    }
}

static void random_plans(uint64_t seed, uint64_t plans, bool is_long)
{
    for (int form = 0; form < RANDOM_FORMS; form++)
        for (int rule = 0; keywords_on_failure[rule]; rule++) {
            struct bench bench = {.limits.states = is_long ? LONG_STATES : QUICK_STATES};
            for (uint64_t i = 0; i < plans; i++) {
                bench.seed = seed + i;
                check_text(&bench, random_plan(bench.seed, (enum random_form)form),
                           keywords_on_failure[rule]);
            }
            const char *key = random_form_key((enum random_form)form);
            tap_note("%s, %s: %d asked, %d violated, %d proved by structure and by search, %d "
                     "witnesses",
                     key, keywords_on_failure[rule], bench.asked, bench.violated,
                     bench.structure_and_search, bench.witnesses);
            tap_ok(bench.complaints == 0 && bench.asked > 0, "%s, on_failure %s: all ways agree",
                   key, keywords_on_failure[rule]);
        }
}

/* ---- by hand --------------------------------------------------------------------------------- */

/* iterations: -1 any number; then by structure where it can be, else by searching everything. */
static void judge_text(const char *text, int64_t iterations, enum outcome wanted, const char *what)
{
    struct diag diag;
    struct plan plan;
    struct verify_report report;
    struct verify_options options = {
        .faults = true, .no_reduction = iterations >= 0, .program.iterations = iterations};
    diag_init(&diag);
    if (plan_parse("plan", text, strlen(text), &plan, &diag) != STATUS_OK ||
        verify_plan(&plan, &options, &report, &diag) != STATUS_OK)
        abort();
    tap_is_str(outcome_key(report.outcome[PROPERTY_FAULTS]), outcome_key(wanted), "%s", what);
    verify_fini(&report);
    plan_fini(&plan);
    diag_fini(&diag);
}

static void by_hand(void)
{
    static const char two_collectives[] =
        "swplan: 1\nranks: 2\nschedule:\n"
        "  A: {stage: 0, stream: s, work: {collective: all_reduce, comm: dp, bytes: 1KiB}}\n"
        "  B: {stage: 1, stream: s, work: {collective: all_to_all, comm: dp, bytes: 2KiB}}\n"
        "intra_iter_deps: [[B, A]]\n";
    judge_text("swplan: 1\nthreads:\n"
               "  r0.a: [{host: 1ms}, {signal: f}]\n"
               "  r0.b: [{await: f}]\n",
               -1, OUTCOME_ALWAYS, "host programs tell nobody by default");
    judge_text("swplan: 1\non_failure: wake\nthreads:\n"
               "  r0.a: [{host: 1ms}, {signal: f}]\n"
               "  r1.b: [{await: f}]\n",
               -1, OUTCOME_SOME, "waking one's own rank does not help another");
    judge_text("swplan: 1\non_failure: abort\nthreads:\n"
               "  r0.a: [{host: 1ms}, {signal: f}]\n"
               "  r1.b: [{await: f}]\n",
               -1, OUTCOME_SOME, "nor does a watchdog where there is no communicator");
    judge_text("swplan: 1\non_failure: abort\nthreads:\n"
               "  r0.a: [{collective: x, comm: dp}, {sync: device}, {host: 1ms}, {signal: f}]\n"
               "  r1.b: [{collective: x, comm: dp}, {sync: device}, {await: f}]\n"
               "comms: {dp: [0, 1]}\n",
               -1, OUTCOME_PROVED, "it does where there is one");
    judge_text("swplan: 1\nthreads:\n"
               "  r0.a: [{callback: c, stream: s, body: [{lock: l}, {host: 1ms}, {unlock: l}]}, "
               "{sync: device}]\n"
               "  r0.b: [{lock: l}, {unlock: l}]\n",
               -1, OUTCOME_SOME, "a callback that fails returns, but keeps its lock");
    judge_text("swplan: 1\nthreads:\n"
               "  r0.a: [{await: f}]\n",
               -1, OUTCOME_UNDECIDED, "what hangs anyway is not asked");
    judge_text("swplan: 1\nranks: 2\nschedule:\n"
               "  A: {stage: 0, work: {collective: all_reduce, comm: dp, bytes: 1KiB}}\n",
               -1, OUTCOME_PROVED, "pipelines have a watchdog by default");
    judge_text("swplan: 1\nranks: 2\non_failure: none\nschedule:\n"
               "  A: {stage: 0}\n",
               -1, OUTCOME_SOME, "a rank whose neighbour goes on for ever hangs all the same");
    judge_text(two_collectives, -1, OUTCOME_PROVED,
               "ranks that end apart are aborted, whatever meets what");
    judge_text(two_collectives, 2, OUTCOME_PROVED, "so says a search of everything");
}

int main(void)
{
    by_hand();
    random_plans(env_seed(), (uint64_t)env_plans(QUICK, LONG), env_is_long());
    random_flags(env_seed(), (uint64_t)env_plans(QUICK, LONG), env_is_long());
    return tap_done();
}
