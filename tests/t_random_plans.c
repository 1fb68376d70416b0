/*
 * t_random_plans.c - random plans on which two ways of finding the same answer must agree.
 *
 *     walks      packing gives a state back, canonical states have the same future, and every step
 *                called free commutes with every step of others
 *     verdicts   a search with reduction and one without find the same violations, in some or in
 *                all interleavings
 *     witnesses  a counterexample ends in the violation it is for
 *     numbers    a pipeline that never hangs, however many iterations there are, does not hang for
 *                any number of them
 *
 * Plan `i` of a run comes from SWSIM_SEED + i, so that a failure printed with its seed is repeated
 * by `SWSIM_SEED=<seed> SWSIM_PLANS=1`. SWSIM_LONG=1 asks for more plans.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check/pack.h"
#include "check/verify.h"
#include "core/hash.h"
#include "core/parse.h"
#include "tests/random_plan.h"
#include "tests/tap.h"

enum { QUICK = 300, LONG = 20000, QUICK_STATES = 2500, LONG_STATES = 10000 };
enum { WALKS = 4, WALK_STEPS = 60, MAX_COMPLAINTS = 10 };

static const unsigned stuck = 1u << PROPERTY_DEADLOCK | 1u << PROPERTY_DRAIN;

struct bench {
    uint64_t seed, draws;
    uint64_t limit;   /* states a search may take */
    const char *text; /* the plan at work */
    const struct program *program;
    struct state *one, *two, *three;
    unsigned char *packed, *packed_too;
    int complaints;
    int built, states, commuted, compared, violated, proved, witnesses, numbers;
};

static void complain(struct bench *bench, const char *what, const char *detail)
{
    if (bench->complaints++ >= MAX_COMPLAINTS)
        return;
    tap_note("SWSIM_SEED=%" PRIu64 ": %s: %s", bench->seed, what, detail);
    tap_note("%s", bench->text);
}

static uint64_t draw(struct bench *bench)
{
    return hash_mix(bench->seed + UINT64_C(0x9e3779b97f4a7c15) * ++bench->draws);
}

/* ---- walks ----------------------------------------------------------------------------------- */

static bool same_canonical(struct bench *bench, struct state *a, struct state *b)
{
    const struct program *p = bench->program;
    machine_canonical(p, a);
    machine_canonical(p, b);
    return memcmp(a->cells, b->cells, p->at.bytes) == 0;
}

static void check_canonical(struct bench *bench, const struct state *state,
                            struct transition transition)
{
    const struct program *p = bench->program;
    struct effect effect, effect_too;
    machine_copy(p, bench->one, state);
    machine_copy(p, bench->two, state);
    machine_canonical(p, bench->one);
    machine_copy(p, bench->three, bench->one);
    if (!same_canonical(bench, bench->one, bench->three))
        complain(bench, "canonical", "a second time gives another state");
    size_t length = pack_state(p, bench->one, bench->packed);
    memset(bench->three->cells, 0x5a, p->at.bytes);
    pack_expand(p, bench->packed, bench->three);
    if (length > pack_bound(p) || memcmp(bench->one->cells, bench->three->cells, p->at.bytes) != 0)
        complain(bench, "pack", "a state comes back changed");
    machine_step(p, bench->one, transition, &effect);
    machine_step(p, bench->two, transition, &effect_too);
    if (effect.violated != effect_too.violated || !same_canonical(bench, bench->one, bench->two))
        complain(bench, "canonical", "the same step leads elsewhere");
}

static void describe_pair(struct bench *bench, const struct state *state, struct transition first,
                          struct transition second, const char *what)
{
    char a[320], b[320], detail[700];
    machine_describe(bench->program, state, first, a, sizeof a);
    machine_describe(bench->program, state, second, b, sizeof b);
    snprintf(detail, sizeof detail, "[%s] and [%s] %s", a, b, what);
    complain(bench, "not free", detail);
}

/* `first` is free: whichever of the two is done first, the other can still be done, and both orders
   lead to one state and show the same violations. The number of iterations in flight is apart: the
   search follows it by other means (search.c, lazy_device). */
static void check_commutes(struct bench *bench, const struct state *state, struct transition first,
                           struct transition second)
{
    const struct program *p = bench->program;
    struct effect effect;
    unsigned violated = 0, violated_too = 0;
    machine_copy(p, bench->one, state);
    machine_step(p, bench->one, first, &effect);
    violated |= effect.violated;
    if (machine_agent_enabled(p, bench->one, second.agent) <= second.choice) {
        describe_pair(bench, state, first, second, "the free step disables the other");
        return;
    }
    machine_step(p, bench->one, second, &effect);
    violated |= effect.violated;
    machine_copy(p, bench->two, state);
    machine_step(p, bench->two, second, &effect);
    violated_too |= effect.violated;
    if (!machine_agent_enabled(p, bench->two, first.agent) ||
        (first.agent && !machine_step_free(p, bench->two, first.agent))) {
        describe_pair(bench, state, first, second, "the other disables the free step");
        return;
    }
    machine_step(p, bench->two, first, &effect);
    violated_too |= effect.violated;
    bench->commuted++;
    unsigned ignored = 1u << PROPERTY_BOUND;
    if ((violated & ~ignored) != (violated_too & ~ignored))
        describe_pair(bench, state, first, second, "show different violations");
    else if (!(violated & 1u << PROPERTY_MISMATCH) &&
             !same_canonical(bench, bench->one, bench->two))
        describe_pair(bench, state, first, second, "lead to different states");
}

static void check_steps(struct bench *bench, const struct state *state,
                        const struct transition *steps, int count)
{
    for (int i = 0; i < count; i++) {
        if (steps[i].agent && !machine_step_free(bench->program, state, steps[i].agent))
            continue;
        for (int k = 0; k < count; k++)
            if (steps[k].agent != steps[i].agent)
                check_commutes(bench, state, steps[i], steps[k]);
    }
}

static bool walk(struct bench *bench)
{
    const struct program *p = bench->program;
    struct state *state = machine_state(p);
    struct transition *steps = calloc((size_t)p->agent_count + 1, sizeof *steps);
    bool ok = state && steps;
    for (int n = 0; ok && n < WALK_STEPS; n++) {
        int count = machine_enabled(p, state, steps);
        if (count == 0)
            break;
        struct transition step = steps[draw(bench) % (uint64_t)count];
        struct effect effect;
        bench->states++;
        check_steps(bench, state, steps, count);
        check_canonical(bench, state, step);
        machine_step(p, state, step, &effect);
        if (effect.violated & 1u << PROPERTY_MISMATCH)
            break;
    }
    free(steps);
    machine_free(state);
    return ok;
}

static bool check_walks(struct bench *bench)
{
    const struct program *p = bench->program;
    bench->one = machine_state(p);
    bench->two = machine_state(p);
    bench->three = machine_state(p);
    bench->packed = malloc(pack_bound(p));
    bool ok = bench->one && bench->two && bench->three && bench->packed;
    for (int n = 0; ok && n < WALKS; n++)
        ok = walk(bench);
    free(bench->packed);
    machine_free(bench->one);
    machine_free(bench->two);
    machine_free(bench->three);
    return ok;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

static bool is_violated(enum outcome outcome)
{
    return outcome == OUTCOME_SOME || outcome == OUTCOME_ALWAYS;
}

static bool hangs(const struct verify_report *report)
{
    return is_violated(report->outcome[PROPERTY_DEADLOCK]) ||
           is_violated(report->outcome[PROPERTY_DRAIN]);
}

/* A mismatch ends a run, and what would have come behind it on another rank may or may not have
   been seen before; then only the mismatch itself is compared. Where one rank hangs and has nothing
   to do with the others, the search with reduction leaves open what these do. */
static void compare(struct bench *bench, const struct verify_report *with,
                    const struct verify_report *without)
{
    bool mismatch = is_violated(without->outcome[PROPERTY_MISMATCH]);
    for (int p = 0; p < PROPERTY_COUNT; p++) {
        if (p == PROPERTY_FAULTS || (mismatch && p != PROPERTY_MISMATCH) ||
            (hangs(with) && with->outcome[p] == OUTCOME_UNDECIDED))
            continue;
        char detail[160];
        snprintf(detail, sizeof detail,
                 "driver %s, %" PRId64 " iterations: %s is %s with reduction, %s without",
                 driver_key(with->driver), with->iterations, property_key((enum property)p),
                 outcome_key(with->outcome[p]), outcome_key(without->outcome[p]));
        if (with->outcome[p] != without->outcome[p])
            complain(bench, "verdicts", detail);
    }
    bench->compared++;
    bench->violated += without->verdict == VERDICT_VIOLATED;
    bench->proved += without->verdict == VERDICT_PROVED;
}

static enum status verify(struct bench *bench, const struct plan *plan, enum driver driver,
                          int64_t iterations, bool no_reduction, struct verify_report *out,
                          struct diag *diag)
{
    struct verify_options options = {.program = {.driver = driver, .iterations = iterations},
                                     .no_reduction = no_reduction,
                                     .any_witness = true,
                                     .limits = {.states = bench->limit}};
    return verify_plan(plan, &options, out, diag);
}

static enum status check_verdicts(struct bench *bench, const struct plan *plan, enum driver driver,
                                  int64_t iterations, struct diag *diag)
{
    struct verify_report with, without;
    enum status status = verify(bench, plan, driver, iterations, false, &with, diag);
    if (status != STATUS_OK)
        return status;
    status = verify(bench, plan, driver, iterations, true, &without, diag);
    if (status == STATUS_OK) {
        if (!with.limit && !without.limit)
            compare(bench, &with, &without);
        else if (with.limit && !without.limit)
            complain(bench, "verdicts", "the search with reduction is the bigger one");
        verify_fini(&without);
    }
    verify_fini(&with);
    return status;
}

/* ---- witnesses ------------------------------------------------------------------------------- */

static void replay(struct bench *bench, enum property property, const struct search_path *path,
                   struct state *state)
{
    const struct program *p = bench->program;
    struct effect effect = {0};
    machine_reset(p, state);
    for (size_t i = 0; i < path->count; i++) {
        if (machine_agent_enabled(p, state, path->steps[i].agent) <= path->steps[i].choice) {
            complain(bench, "witness", "a step that is not possible");
            return;
        }
        machine_step(p, state, path->steps[i], &effect);
    }
    bench->witnesses++;
    bool seen = effect.violated & 1u << property;
    bool end = !seen && !machine_done(p, state);
    for (int agent = 0; end && p->ranks == 1 && agent < p->agent_count; agent++)
        end = machine_agent_enabled(p, state, agent) == 0; /* of several ranks one may hang alone */
    bool at_end = stuck & 1u << property || property == PROPERTY_SLOT;
    if (!seen && !(at_end && end))
        complain(bench, "witness", property_key(property));
}

static enum status check_witnesses(struct bench *bench, struct diag *diag)
{
    for (int reduction = 0; reduction < 2; reduction++) {
        struct search_options options = {.reduction = reduction,
                                         .properties = (1u << PROPERTY_COUNT) - 1,
                                         .limits = {.states = bench->limit / 4}};
        struct search_result result;
        enum status status = search_run(bench->program, &options, &result, diag);
        if (status != STATUS_OK)
            return status;
        struct state *state = machine_state(bench->program);
        for (int p = 0; state && p < PROPERTY_COUNT; p++)
            if (result.found & 1u << p)
                replay(bench, (enum property)p, &result.witness[p], state);
        machine_free(state);
        search_result_fini(&result);
        if (!state)
            return diag_no_memory(diag);
    }
    return STATUS_OK;
}

/* ---- numbers of iterations ------------------------------------------------------------------- */

static enum status check_numbers(struct bench *bench, const struct plan *plan, enum driver driver,
                                 struct diag *diag)
{
    static const int numbers[] = {0, 1, 2, 4, 7};
    struct verify_report any;
    enum status status = verify(bench, plan, driver, -1, false, &any, diag);
    if (status != STATUS_OK)
        return status;
    bool known = !any.limit && !is_violated(any.outcome[PROPERTY_MISMATCH]);
    for (size_t i = 0; status == STATUS_OK && i < sizeof numbers / sizeof *numbers; i++) {
        struct verify_report some;
        status = verify(bench, plan, driver, numbers[i], false, &some, diag);
        if (status != STATUS_OK)
            break;
        bool always = any.outcome[PROPERTY_DEADLOCK] == OUTCOME_ALWAYS && numbers[i] == 7;
        if (known && !some.limit && !is_violated(some.outcome[PROPERTY_MISMATCH])) {
            bench->numbers++;
            if (hangs(&some) && !hangs(&any))
                complain(bench, "numbers", "hangs for some number of iterations, not for any");
            if (always && !hangs(&some))
                complain(bench, "numbers", "always hangs, but not after seven iterations");
        }
        verify_fini(&some);
    }
    verify_fini(&any);
    return status;
}

/* ---- one plan -------------------------------------------------------------------------------- */

static enum status check_driver(struct bench *bench, const struct plan *plan, enum driver driver,
                                struct diag *diag)
{
    struct program *program;
    struct program_options options = {.driver = driver, .iterations = -1};
    enum status status = program_build(plan, &options, &program, diag);
    if (status != STATUS_OK)
        return status;
    bench->program = program;
    bench->built++;
    if (!check_walks(bench))
        status = diag_no_memory(diag);
    if (status == STATUS_OK)
        status = check_witnesses(bench, diag);
    program_close(program);
    if (status == STATUS_OK)
        status = check_verdicts(bench, plan, driver, -1, diag);
    if (status == STATUS_OK && plan->form == FORM_PIPELINE)
        status = check_verdicts(bench, plan, driver, 2, diag);
    if (status == STATUS_OK && plan->form == FORM_PIPELINE && !plan->pipeline.batches)
        status = check_numbers(bench, plan, driver, diag);
    return status;
}

static void check_plan(struct bench *bench, enum random_form form)
{
    char *text = random_plan(bench->seed, form);
    struct diag diag;
    struct plan plan;
    diag_init(&diag);
    bench->text = text;
    bench->draws = 0;
    enum status status =
        text ? plan_parse("random.yaml", text, strlen(text), &plan, &diag) : diag_no_memory(&diag);
    if (status == STATUS_OK) {
        bool pipeline = form == RANDOM_PIPELINE;
        status = check_driver(bench, &plan, pipeline ? DRIVER_CLOCK : DRIVER_NONE, &diag);
        if (status == STATUS_OK && pipeline)
            status = check_driver(bench, &plan, DRIVER_DATAFLOW, &diag);
        plan_fini(&plan);
    }
    if (status != STATUS_OK) {
        complain(bench, "plan", diag.count ? diag.messages[0].text : "refused");
        diag_print(&diag, "t_random_plans", false, stderr);
    }
    diag_fini(&diag);
    free(text);
}

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);
    return value && *value ? strtoull(value, NULL, 0) : otherwise;
}

int main(void)
{
    uint64_t seed = number("SWSIM_SEED", (uint64_t)time(NULL) * 100000);
    bool is_long = number("SWSIM_LONG", 0) == 1;
    uint64_t plans = number("SWSIM_PLANS", is_long ? LONG : QUICK);
    tap_note("SWSIM_SEED=%" PRIu64, seed);
    for (int form = 0; form < RANDOM_FORMS; form++) {
        struct bench bench = {.limit = is_long ? LONG_STATES : QUICK_STATES};
        uint64_t share = form == RANDOM_PROGRAMS ? (plans + 4) / 5 : plans / 5 * 2 + plans % 5;
        for (uint64_t i = 0; i < share; i++) {
            bench.seed = seed + i;
            check_plan(&bench, (enum random_form)form);
        }
        const char *key = random_form_key((enum random_form)form);
        tap_note("%s: %d programs, %d states walked, %d pairs of steps, %d verdicts compared (%d "
                 "violated, %d proved), %d witnesses, %d numbers of iterations",
                 key, bench.built, bench.states, bench.commuted, bench.compared, bench.violated,
                 bench.proved, bench.witnesses, bench.numbers);
        tap_ok(bench.complaints == 0, "%s: all ways agree", key);
    }
    return tap_done();
}
