/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_random_plans.c - random plans on which two ways of finding the same answer must agree.
 *
 *     walks      the tree of states gives a state back, canonical states have the same future, and
 *                every step called free commutes with every step of others; what a walk violates is
 *                not proved, and a walk that violates nothing refutes "always"
 *     verdicts   a search with reduction (and structure) and one without find the same violations,
 *                in some or in all interleavings, for any number of iterations and for two
 *     searches   so do the two searches alone, where structure has nothing to say
 *     witnesses  a counterexample ends in the violation it is for
 *     numbers    what some number of iterations violates, any number violates; so what is proved
 *                for any number is proved for each that is tried
 *
 * Half of the plans are small ones, of which most can be searched without reduction; the other half
 * draws from every key of the plan file (random_wide.c), and what is too big for the budget is
 * counted apart. Enough of each form must have been compared, and every key at least once.
 *
 * Plan `i` of a run comes from SWSIM_SEED + i, so that a failure printed with its seed is repeated
 * by `SWSIM_SEED=<seed> SWSIM_PLANS=1`. SWSIM_LONG=1 asks for more plans.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/leaves.h"
#include "check/tree.h"
#include "check/verify.h"
#include "base/hash.h"
#include "tests/harness.h"
#include "tests/random_plan.h"
#include "tests/tap.h"

enum { QUICK = 200, LONG = 12000 };

/* States a search may take: of one in BIG_EVERY plans more. Without reduction rank programs are
   bigger than the others, but they are searched once and not for several numbers of iterations. */
enum { BIG_EVERY = 24, BIG_STATES = 40000 };
static const uint64_t form_states[RANDOM_FORMS] = {
    [RANDOM_PIPELINE] = 3000, [RANDOM_THREADS] = 4000, [RANDOM_PROGRAMS] = 12000};

/* How many of a hundred verdicts must have been compared, small plans and wide ones. */
static const int enough[RANDOM_FORMS][2] = {
    [RANDOM_PIPELINE] = {40, 25}, [RANDOM_THREADS] = {70, 60}, [RANDOM_PROGRAMS] = {30, 15}};
enum { WALKS = 3, WALK_STEPS = 60, WALK_END = 600, MAX_COMPLAINTS = 10 };

static const unsigned stuck = 1u << PROPERTY_DEADLOCK | 1u << PROPERTY_DRAIN;

struct bench {
    uint64_t seed, draws;
    uint64_t limit;   /* states a search may take */
    const char *text; /* the plan at work */
    const struct program *program;
    struct state *one, *two, *three;
    struct budget budget;
    struct tree tree;
    struct cursor cursor;
    unsigned walk_violated; /* what some walk of this program did */
    bool walk_hung;
    unsigned walk_avoided; /* what some walk to the end did not do */
    bool compared_this;    /* with reduction and without, for any number of iterations */
    int complaints;
    int built, states, commuted, searched, compared, skipped, violated, proved, witnesses, numbers,
        keys;
    int *key_compared; /* per key of `keys` */
};

/* The keys that may change a verdict: each must have been in a plan that was compared. */
static const char *const keys[] = {
    /* every form */
    "scope: iteration", "on_failure: none", "on_failure: wake", "on_failure: abort",
    "on_failure: group_abort", "{abort: ", "scope: shared", "comm: half", "comm: C",
    /* the machine */
    "sm_slots:", "hw_queues:", "launch_queue:", "launch_latency:", "launch_lock:",
    "first_use_blocks:", "launch_order_implicit:", "lazy_load:", "launch_blocking:",
    "alloc_may_sync:", "memory:", "copy_engines:", "cores:", "eager_messages: {", "eager_bytes: {",
    "legacy: true", "blocking: false", "hw_queue: 0", "share_device:",
    /* pipeline */
    "pipeline_depth:", "max_depth: 1", "max_depth: 2", "max_depth: 3", "max_depth: 4",
    "max_depth: 5", "max_depth: 6", "max_depth: 7", "max_depth: 8",
    "num_slots:", "enqueue_order: ready-first", "enqueue_order: stage-descending",
    "enqueue_order: stage-ascending", "enqueue_order: [", "retire: device", "retire: submit",
    "retire: last-task", "elide_same_stream: true", "elide_same_stream: false", "ticket_at: fire",
    "ticket_at: iteration", "forget_done: retire", "forget_done: false", "retired_dep: skip",
    "retired_dep: wait", "slot_reset: submit", "slot_reset: admit",
    "batches:", "rank_overrides:", "inter_iter_deps: [[", "intra_iter_deps: [[",
    /* a task */
    "stage: 2", "stream: s2", "thread_group: g2", "globally_ordered: true",
    "host_time:", "jitter:", "host_jitter:", "sm: 1", "sm: 2",
    "reads:", "writes:", "host_sync: stream", "host_sync: device",
    "host_after:", "sync_after: stream", "sync_after: device", "holds: [m]", "holds: [n, m]",
    "copy: h2d", "pageable: true", "collective: all_to_all", "collective: barrier", "work: {send",
    "work: {recv", "work: {gemm", "work: {gather", "work: {axpy", "work: {spin", "work: {host",
    /* rank programs */
    "programs:", "fragment: true", "generate:", "fifo: rank", "fifo: pair", "fifo: direction",
    "fifo: edge", "batch: true", "eager_messages: 1", "eager_bytes: 1KiB", "UNSHARD", "RESHARD",
    "REDUCE_GRAD", "fsdp: {replicas: 2", "parallel: {tp: 2", "dp: 2, grad_reduce: overlap",
    "grad_reduce: stage", "embedding: last", "embedding: first", "ranks: {1: {grad_reduce: end",
    "0I0", "0W0", "OVERLAP_F_B", "0SEND_F0", "1RECV_F0", "1SEND_B0", "0RECV_B0", "0WAIT_SEND_F0",
    "1WAIT_SEND_B0", "WAIT_REDUCE_GRAD",
    /* host programs */
    "- {host:", "- {compute:", "- {launch:", "- {copy:", "- {collective:", "- {group:",
    "- repeat: 2", "- repeat: 3", "time: [1us, 2us]", "- {record:", "- {wait:", "- {sync: stream",
    "- {sync: event", "- {sync: device", "- {signal:", "- {await:", "- {put:", "- {get:",
    "- {lock:", "- {unlock:", "- {barrier:", "- {ticket:", "- {serve:", "- {callback:", "- {alloc:",
    "- {host_alloc:", "- {free:", "- {record_stream:", "op: broadcast", "root: 0", "root: 1",
    "group: [{collective:", "comm: B, stream: u",
    "sm: 1, body: [{signal:", "sm: 1, body: [{await:", "graph: true",
    "async: true, work:", "async: false", "device: 1", "wait: r", "[r1.b]",
    "{collective: c0, device:"};
enum { KEY_COUNT = sizeof keys / sizeof *keys };

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

/* The values read where accesses race. */
static unsigned left_to_chance(unsigned violated)
{
    bool races = violated & (1u << PROPERTY_RACE | 1u << PROPERTY_LIFETIME);
    return races ? 1u << PROPERTY_VALUE | 1u << PROPERTY_SERIAL : 0;
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
    uint64_t root, again;
    machine_copy(p, &bench->cursor.work, bench->one);
    bool stored = cursor_store(&bench->cursor, &root) == STATUS_OK;
    cursor_load(&bench->cursor, 0);
    machine_copy(p, &bench->cursor.work, bench->one);
    stored &= cursor_store(&bench->cursor, &again) == STATUS_OK;
    cursor_load(&bench->cursor, root);
    if (!stored || again != root ||
        memcmp(bench->one->cells, bench->cursor.node.cells, p->at.bytes) != 0)
        complain(bench, "tree", "a state comes back changed");
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
   search follows it by other means. */
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
    unsigned ignored = 1u << PROPERTY_BOUND | left_to_chance(violated | violated_too);
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
        if (steps[i].agent ? !machine_step_free(bench->program, state, steps[i].agent)
                           : !bench->program->data_free)
            continue;
        for (int k = 0; k < count; k++)
            if (steps[k].agent != steps[i].agent)
                check_commutes(bench, state, steps[i], steps[k]);
    }
}

/* A walk is over: what has it shown? One that a mismatch ended says nothing of its end. */
static void note_end(struct bench *bench, const struct state *state, unsigned violated)
{
    bench->walk_violated |= violated;
    if (violated & 1u << PROPERTY_MISMATCH)
        return;
    if (machine_done(bench->program, state))
        bench->walk_avoided |= ~violated;
    else
        bench->walk_hung = true;
}

/* The first steps with everything that can be checked about them, then on to the end, if it comes. */
static bool walk(struct bench *bench)
{
    const struct program *p = bench->program;
    struct state *state = machine_state(p);
    struct transition *steps = calloc(machine_most_transitions(p), sizeof *steps);
    bool ok = state && steps, on = ok;
    unsigned violated = 0;
    for (int n = 0; on && n < WALK_END; n++) {
        int count = machine_enabled(p, state, steps);
        if (count == 0)
            break;
        struct transition step = steps[draw(bench) % (uint64_t)count];
        struct effect effect;
        if (n < WALK_STEPS) {
            bench->states++;
            check_steps(bench, state, steps, count);
            check_canonical(bench, state, step);
        }
        machine_step(p, state, step, &effect);
        violated |= effect.violated;
        on = !(effect.violated & 1u << PROPERTY_MISMATCH);
    }
    bench->walk_violated |= violated;
    if (ok && (!on || machine_enabled(p, state, steps) == 0))
        note_end(bench, state, violated);
    free(steps);
    machine_free(state);
    return ok;
}

static bool open_tree(struct bench *bench)
{
    struct tree_order order;
    budget_init(&bench->budget, SIZE_MAX);
    bool ok = leaves_by_agent(bench->program, &bench->budget, &order) == STATUS_OK &&
              tree_open(&bench->tree, bench->program, &order, false, &bench->budget) == STATUS_OK &&
              cursor_open(&bench->cursor, &bench->tree) == STATUS_OK;
    leaves_free(&order, &bench->budget);
    return ok;
}

static bool check_walks(struct bench *bench)
{
    const struct program *p = bench->program;
    bench->one = machine_state(p);
    bench->two = machine_state(p);
    bench->three = machine_state(p);
    bool ok = bench->one && bench->two && bench->three && open_tree(bench);
    for (int n = 0; ok && n < WALKS; n++)
        ok = walk(bench);
    cursor_close(&bench->cursor);
    tree_close(&bench->tree);
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
   been seen before; then only the mismatch itself is compared. */
static void compare(struct bench *bench, const struct verify_report *with,
                    const struct verify_report *without)
{
    bool mismatch = is_violated(without->outcome[PROPERTY_MISMATCH]);
    for (int p = 0; p < PROPERTY_COUNT; p++) {
        if (p == PROPERTY_FAULTS || (mismatch && p != PROPERTY_MISMATCH))
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

/* `with` has been asked with reduction: ask again without. */
static enum status check_verdicts(struct bench *bench, const struct plan *plan,
                                  const struct verify_report *with, struct diag *diag)
{
    struct verify_report without;
    enum status status = verify(bench, plan, with->driver, with->finite ? -1 : with->iterations,
                                true, &without, diag);
    if (status != STATUS_OK)
        return status;
    if (!with->limit && !without.limit) {
        compare(bench, with, &without);
        bench->compared_this = true;
    } else {
        bench->skipped++;
        if (!without.limit)
            complain(bench, "verdicts", "the search with reduction is the bigger one");
    }
    verify_fini(&without);
    return STATUS_OK;
}

/* Walks against the search. */
static void check_against_walks(struct bench *bench, const struct verify_report *report, bool open)
{
    if (report->limit || is_violated(report->outcome[PROPERTY_MISMATCH]))
        return;
    for (int p = 0; p < PROPERTY_COUNT; p++) {
        if (p == PROPERTY_MESSAGE || (p == PROPERTY_BOUND && report->finite))
            continue; /* no step shows it */
        char detail[120];
        snprintf(detail, sizeof detail, "driver %s: %s is %s, a walk shows otherwise",
                 driver_key(report->driver), property_key((enum property)p),
                 outcome_key(report->outcome[p]));
        bool seen = bench->walk_violated & 1u << p, avoided = bench->walk_avoided & 1u << p;
        bool any_run = !open || p == PROPERTY_DRAIN; /* else "always" speaks of endless runs */
        if ((seen && report->outcome[p] == OUTCOME_PROVED) ||
            (avoided && any_run && report->outcome[p] == OUTCOME_ALWAYS))
            complain(bench, "walk", detail);
    }
    if (bench->walk_hung && !hangs(report))
        complain(bench, "walk", "it hangs, which the search did not find");
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

/* The two searches themselves, without what structure proves: the same violations, and the same answer
   to whether some run ends well. */
static void compare_searches(struct bench *bench, const struct search_result *with,
                             const struct search_result *without)
{
    unsigned mismatch = 1u << PROPERTY_MISMATCH;
    unsigned found = with->found | without->found;
    unsigned asked = found & mismatch ? mismatch : ~left_to_chance(found);
    bool same = (with->found & asked) == (without->found & asked) &&
                (asked == mismatch || with->ends_well == without->ends_well);
    char detail[160];
    snprintf(detail, sizeof detail,
             "driver %s: found %#x, %s with reduction; found %#x, %s without",
             driver_key(bench->program->driver), with->found,
             with->ends_well ? "some end well" : "none ends well", without->found,
             without->ends_well ? "some end well" : "none ends well");
    if (!same)
        complain(bench, "searches", detail);
    bench->searched++;
}

static enum status search(struct bench *bench, bool reduction, struct search_result *out,
                          struct diag *diag)
{
    struct search_options options = {.reduction = reduction,
                                     .properties = (1u << PROPERTY_COUNT) - 1,
                                     .limits = {.states = bench->limit / 2}};
    enum status status = search_run(bench->program, &options, out, diag);
    if (status != STATUS_OK)
        return status;
    struct state *state = machine_state(bench->program);
    for (int p = 0; state && p < PROPERTY_COUNT; p++)
        if (out->found & 1u << p)
            replay(bench, (enum property)p, &out->witness[p], state);
    if (!state) {
        search_result_fini(out);
        return diag_no_memory(diag);
    }
    machine_free(state);
    return STATUS_OK;
}

static enum status check_searches(struct bench *bench, struct diag *diag)
{
    struct search_result with, without;
    enum status status = search(bench, true, &with, diag);
    if (status != STATUS_OK)
        return status;
    status = search(bench, false, &without, diag);
    if (status == STATUS_OK) {
        if (with.complete && without.complete)
            compare_searches(bench, &with, &without);
        search_result_fini(&without);
    }
    search_result_fini(&with);
    return status;
}

/* ---- numbers of iterations ------------------------------------------------------------------- */

/* Violated for `some` number of iterations and proved for any? Deadlock and drain are told apart by
   whether there was data to come, which a small number changes. */
static void check_number(struct bench *bench, const struct verify_report *any,
                         const struct verify_report *some)
{
    if (some->limit || is_violated(some->outcome[PROPERTY_MISMATCH]) !=
                           is_violated(any->outcome[PROPERTY_MISMATCH])) {
        if (!some->limit && is_violated(some->outcome[PROPERTY_MISMATCH]))
            complain(bench, "numbers", "mismatch for some number of iterations, not for any");
        return;
    }
    bench->numbers++;
    if (hangs(some) && !hangs(any))
        complain(bench, "numbers", "hangs for some number of iterations, not for any");
    for (int p = 0; p < PROPERTY_COUNT; p++) {
        bool hang = stuck & 1u << p;
        char detail[120];
        snprintf(detail, sizeof detail,
                 "driver %s: %s is %s for %" PRId64 " iterations, else proved",
                 driver_key(any->driver), property_key((enum property)p),
                 outcome_key(some->outcome[p]), some->iterations);
        if (!hang && is_violated(some->outcome[p]) && any->outcome[p] == OUTCOME_PROVED)
            complain(bench, "numbers", detail);
    }
}

static enum status check_numbers(struct bench *bench, const struct plan *plan,
                                 const struct verify_report *any, struct diag *diag)
{
    static const int numbers[] = {0, 1, 2, 4, 7};
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < sizeof numbers / sizeof *numbers; i++) {
        struct verify_report some;
        status = verify(bench, plan, any->driver, numbers[i], false, &some, diag);
        if (status != STATUS_OK)
            break;
        if (!any->limit)
            check_number(bench, any, &some);
        if (numbers[i] == 2)
            status = check_verdicts(bench, plan, &some, diag);
        verify_fini(&some);
    }
    return status;
}

/* ---- one plan -------------------------------------------------------------------------------- */

static enum status check_program(struct bench *bench, const struct plan *plan, enum driver driver,
                                 struct diag *diag)
{
    struct program_options options = {.driver = driver, .iterations = -1, .serial = true};
    struct program *program;
    enum status status = program_build(plan, &options, &program, diag);
    if (status != STATUS_OK)
        return status;
    bench->program = program;
    bench->built++;
    bench->walk_violated = bench->walk_avoided = 0;
    bench->walk_hung = false;
    if (!check_walks(bench))
        status = diag_no_memory(diag);
    if (status == STATUS_OK)
        status = check_searches(bench, diag);
    program_close(program);
    return status;
}

static enum status check_driver(void *context, const struct plan *plan, enum driver driver,
                                struct diag *diag)
{
    struct bench *bench = context;
    bool open = plan->form == FORM_PIPELINE && !plan->pipeline.batches;
    struct verify_report any;
    enum status status = check_program(bench, plan, driver, diag);
    if (status == STATUS_OK)
        status = verify(bench, plan, driver, -1, false, &any, diag);
    if (status != STATUS_OK)
        return status;
    check_against_walks(bench, &any, open);
    status = check_verdicts(bench, plan, &any, diag);
    if (status == STATUS_OK && open)
        status = check_numbers(bench, plan, &any, diag);
    verify_fini(&any);
    return status;
}

static void count_keys(struct bench *bench)
{
    for (int k = 0; k < KEY_COUNT; k++)
        bench->key_compared[k] += strstr(bench->text, keys[k]) != NULL;
}

static void check_plan(struct bench *bench, enum random_form form, bool wide)
{
    char *text = (wide ? random_wide_plan : random_plan)(bench->seed, form);
    if (!wide && form == RANDOM_THREADS)
        text = random_aborts(text, bench->seed);
    bench->text = text;
    bench->draws = 0;
    bench->compared_this = false;
    if (!plan_try(text, check_driver, bench))
        complain(bench, "plan", "not read or not checked");
    else if (bench->compared_this)
        count_keys(bench);
    free(text);
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Plans on which the two once disagreed. */
static const uint64_t known[] = {100126,  8000357, 9000535,        9000946,
                                 9001522, 9001541, 179528939000010};
enum { KNOWN = sizeof known / sizeof *known };

static void check_form(enum random_form form, bool wide, uint64_t seed, uint64_t plans,
                       int *key_compared)
{
    struct bench bench = {.key_compared = key_compared};
    char key[40];
    snprintf(key, sizeof key, "%s%s", wide ? "wide " : "", random_form_key(form));
    for (uint64_t i = 0; i < plans + KNOWN; i++) {
        bench.seed = i < plans ? seed + i : known[i - plans];
        bench.limit = bench.seed % BIG_EVERY == 0 ? BIG_STATES : form_states[form];
        check_plan(&bench, form, wide);
    }
    tap_note("%s: %d programs, %d states walked, %d pairs of steps, %d verdicts compared (%d "
             "violated, %d proved), %d too big, %d pairs of searches, %d witnesses, %d numbers of "
             "iterations",
             key, bench.built, bench.states, bench.commuted, bench.compared, bench.violated,
             bench.proved, bench.skipped, bench.searched, bench.witnesses, bench.numbers);
    tap_ok(bench.complaints == 0, "%s: all ways agree", key);
    int asked = bench.compared + bench.skipped, wanted = plans < 1000 ? 1 : enough[form][wide];
    tap_ok(plans < 10 || 100 * bench.compared >= wanted * asked,
           "%s: %d of %d verdicts compared, at least %d%% are wanted", key, bench.compared, asked,
           wanted);
}

/* Of few plans some keys may be missing by chance. */
static void check_keys(const int *compared, uint64_t plans)
{
    int missing = 0, least = 0;
    for (int k = 0; k < KEY_COUNT; k++) {
        least = compared[k] < compared[least] ? k : least;
        missing += compared[k] == 0;
        if (compared[k] == 0)
            tap_note("not in a plan that was compared: %s", keys[k]);
    }
    tap_ok(missing == 0 || plans < 10000, "%d keys of plans compared, \"%s\" least often: %d times",
           KEY_COUNT, keys[least], compared[least]);
}

int main(void)
{
    uint64_t seed = env_seed(), plans = (uint64_t)env_plans(QUICK, LONG);
    int key_compared[KEY_COUNT] = {0};
    for (int form = 0; form < RANDOM_FORMS; form++)
        for (int wide = 0; wide < 2; wide++) {
            uint64_t share = form == RANDOM_PROGRAMS ? (plans + 9) / 10 : (plans + 4) / 5;
            check_form((enum random_form)form, wide, seed, share, key_compared);
        }
    check_keys(key_compared, plans);
    return tap_done();
}
