/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_reduce.c - what may be left out of a search.
 *
 *     sets      a set of agents: in, out, emptied
 *     enablers  an agent whose step lets a blocked one go on was named by machine_enablers
 *     stubborn  from a set closed under machine_conflicts and machine_enablers: whatever the agents
 *               outside of it do, its blocked members stay blocked and the steps of the others
 *               commute with what was done
 *     paces     what makes less in flight on a rank is named to the threads that count it there, and they to it
 *     ready     the ready set lists those agents that can step, in chains of free steps and in any run
 *     rows      what the columns of a row of the table of operations say fits together
 *     counts    plans whose reduced search must not grow, and must find what the whole one does
 *     mutants   with SWSIM_LONG=1: each use of an operation, and each way of an operand, left out in turn; and each role,
 *               each kind of operand and each reason to wait in place of that of the operation's row. One of the checks
 *               above, or a simulation of the same plans, must notice; what none can notice is listed with the reason
 *
 * The middle ones walk at random through random plans; SWSIM_SEED and SWSIM_PLANS as in
 * t_random_plans, SWSIM_LONG=1 asks for more.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check/reduce.h"
#include "machine/uses.h"
#include "sim/engine/simulate.h"
#include "check/verify.h"
#include "base/hash.h"
#include "plan/text/parse.h"
#include "tests/harness.h"
#include "tests/random_plan.h"
#include "tests/tap.h"

enum { QUICK = 200, LONG = 10000, WALKS = 3, WALK_STEPS = 50, OUTSIDE_STEPS = 12 };
enum { WIDE_EVERY = 3 }; /* so many plans are one that draws from every key */
enum { MAX_COMPLAINTS = 6 };

struct bench {
    uint64_t seed, draws;
    const char *text;
    const struct program *program;
    struct state *state, *one, *two, *outside;
    struct transition *steps;
    struct agent_set set;
    int enabled, members, commuted, paced, chains; /* what was tried */
    int complaints;
    bool quiet; /* faults are looked for */
};

static uint64_t draw(struct bench *bench)
{
    return hash_mix(bench->seed + UINT64_C(0x9e3779b97f4a7c15) * ++bench->draws);
}

static void complain(struct bench *bench, const char *what, int agent, int other)
{
    char a[160], b[160];
    if (bench->complaints++ >= MAX_COMPLAINTS || bench->quiet)
        return;
    tap_note("SWSIM_SEED=%" PRIu64 ": %s: %s, %s", bench->seed, what,
             program_agent_name(bench->program, agent, a, sizeof a),
             program_agent_name(bench->program, other, b, sizeof b));
    tap_note("%s", bench->text);
}

/* ---- sets ------------------------------------------------------------------------------------ */

static void test_sets(void)
{
    struct agent_set set;
    if (!agent_set_init(&set, 5)) {
        tap_ok(0, "a set is made");
        return;
    }
    agent_set_add(&set, 3);
    agent_set_add(&set, 0);
    agent_set_add(&set, 3);
    tap_ok(set.count == 2 && set.members[0] == 3 && set.members[1] == 0, "each member once");
    tap_ok(agent_set_has(&set, 3) && !agent_set_has(&set, 4), "who is in");
    set.now = UINT32_MAX - 1;
    agent_set_clear(&set, 5);
    agent_set_add(&set, 4);
    agent_set_clear(&set, 5);
    tap_ok(set.count == 0 && !agent_set_has(&set, 4) && !agent_set_has(&set, 3),
           "nobody, also when the stamps begin anew");
    agent_set_fini(&set);
}

/* ---- enablers -------------------------------------------------------------------------------- */

/* Every step of another agent after which `blocked` can go on must be one of an enabler. */
static void check_enablers(struct bench *bench, int blocked, int count)
{
    const struct program *p = bench->program;
    agent_set_clear(&bench->set, p->agent_count);
    machine_enablers(p, bench->state, blocked, &bench->set);
    for (int i = 0; i < count; i++) {
        machine_copy(p, bench->one, bench->state);
        machine_step(p, bench->one, bench->steps[i], NULL);
        if (!machine_agent_enabled(p, bench->one, blocked))
            continue;
        bench->enabled++;
        if (!agent_set_has(&bench->set, bench->steps[i].agent))
            complain(bench, "is let go on by", blocked, bench->steps[i].agent);
    }
}

/* ---- stubborn sets --------------------------------------------------------------------------- */

static bool same_canonical(const struct program *p, struct state *a, struct state *b)
{
    machine_canonical(p, a);
    machine_canonical(p, b);
    return memcmp(a->cells, b->cells, p->at.bytes) == 0;
}

static unsigned step(const struct program *p, struct state *state, int agent)
{
    struct effect effect;
    machine_step(p, state, (struct transition){agent, 0}, &effect);
    return effect.violated;
}

/* The number of iterations in flight is apart: see `enum pace`. So are values where accesses race. Behind a mismatch nothing counts. */
static void check_commutes(struct bench *bench, const struct state *from, int member, int other)
{
    const struct program *p = bench->program;
    const unsigned mismatch = 1u << PROPERTY_MISMATCH;
    const unsigned races = 1u << PROPERTY_RACE | 1u << PROPERTY_LIFETIME;
    const unsigned values = 1u << PROPERTY_VALUE | 1u << PROPERTY_SERIAL;
    machine_copy(p, bench->one, from);
    machine_copy(p, bench->two, from);
    unsigned first = step(p, bench->one, member), second = step(p, bench->two, other);
    bench->commuted++;
    if (!machine_agent_enabled(p, bench->one, other) ||
        !machine_agent_enabled(p, bench->two, member)) {
        complain(bench, "one disables the other", member, other);
        return;
    }
    first |= step(p, bench->one, other);
    second |= step(p, bench->two, member);
    unsigned counted = ~(1u << PROPERTY_BOUND) & ~((first | second) & races ? values : 0);
    if ((first & counted) != (second & counted))
        complain(bench, "show different violations", member, other);
    else if (!(first & mismatch) && !same_canonical(p, bench->one, bench->two))
        complain(bench, "lead to different states", member, other);
}

static void close_set(struct bench *bench, int seed)
{
    const struct program *p = bench->program;
    agent_set_clear(&bench->set, p->agent_count);
    agent_set_add(&bench->set, seed);
    for (int i = 0; i < bench->set.count; i++)
        if (machine_agent_enabled(p, bench->state, bench->set.members[i]))
            machine_conflicts(p, bench->state, bench->set.members[i], &bench->set);
        else
            machine_enablers(p, bench->state, bench->set.members[i], &bench->set);
}

/* An agent outside of the set that can step, or -1. The data loader is never one: while it is asked
   nothing else is explored. */
static int someone_outside(struct bench *bench, const struct state *state)
{
    const struct program *p = bench->program;
    int count = machine_enabled(p, state, bench->steps), kept = 0;
    for (int i = 0; i < count; i++)
        if (bench->steps[i].agent && !agent_set_has(&bench->set, bench->steps[i].agent))
            bench->steps[kept++] = bench->steps[i];
    return kept ? bench->steps[draw(bench) % (uint64_t)kept].agent : -1;
}

static void check_stubborn(struct bench *bench, int seed)
{
    const struct program *p = bench->program;
    close_set(bench, seed);
    machine_copy(p, bench->outside, bench->state);
    for (int n = 0; n < OUTSIDE_STEPS; n++) {
        int other = someone_outside(bench, bench->outside);
        if (other < 0)
            return;
        for (int i = 0; i < bench->set.count; i++) {
            int member = bench->set.members[i];
            bool could = machine_agent_enabled(p, bench->state, member);
            bench->members++;
            if (could && machine_agent_enabled(p, bench->outside, member))
                check_commutes(bench, bench->outside, member, other);
            else if (could != (machine_agent_enabled(p, bench->outside, member) > 0))
                complain(bench, could ? "no longer can" : "now can", member, other);
        }
        if (step(p, bench->outside, other) & 1u << PROPERTY_MISMATCH)
            return;
    }
}

/* ---- paces ----------------------------------------------------------------------------------- */

/* How much the next step of this agent, in the state, finds in flight; 0: no more than is allowed. */
static int64_t counted(struct bench *bench, struct state *state, int agent)
{
    struct effect effect;
    if (!machine_agent_enabled(bench->program, state, agent))
        return 0;
    machine_step(bench->program, state, (struct transition){agent, 0}, &effect);
    return effect.violated & 1u << PROPERTY_BOUND ? effect.found : 0;
}

/* The agent counts what is in flight on the rank, and finds less of it behind a step of `other`: whoever of the two is in a
   stubborn set, the other one belongs into it. */
static void check_named(struct bench *bench, int agent, int rank, int other)
{
    const struct program *p = bench->program;
    bench->paced++;
    agent_set_clear(&bench->set, p->agent_count);
    machine_counting_threads(p, bench->state, other, &bench->set);
    machine_conflicts(p, bench->state, other, &bench->set);
    if (!agent_set_has(&bench->set, agent))
        complain(bench, "counts what becomes less by a step of", agent, other);
    agent_set_clear(&bench->set, p->agent_count);
    machine_finishers(p, rank, &bench->set);
    machine_conflicts(p, bench->state, agent, &bench->set);
    if (!agent_set_has(&bench->set, other))
        complain(bench, "finishes what is counted by", other, agent);
}

static void check_paces(struct bench *bench, int count)
{
    const struct program *p = bench->program;
    for (int i = 0; i < count; i++) {
        const int agent = bench->steps[i].agent,
                  rank = machine_counted_rank(p, bench->state, agent);
        if (rank < 0 || bench->steps[i].choice)
            continue;
        machine_copy(p, bench->one, bench->state);
        const int64_t before = counted(bench, bench->one, agent);
        for (int k = 0; before && k < count; k++) {
            if (bench->steps[k].agent == agent)
                continue;
            machine_copy(p, bench->one, bench->state);
            machine_step(p, bench->one, bench->steps[k], NULL);
            if (machine_agent_enabled(p, bench->one, agent) &&
                counted(bench, bench->one, agent) < before)
                check_named(bench, agent, rank, bench->steps[k].agent);
        }
    }
}

/* ---- walks ----------------------------------------------------------------------------------- */

static void check_state(struct bench *bench)
{
    const struct program *p = bench->program;
    if (machine_agent_enabled(p, bench->state, 0))
        return;
    int count = machine_enabled(p, bench->state, bench->steps);
    check_paces(bench, count);
    for (int agent = 1; agent < p->agent_count; agent++)
        if (!machine_agent_enabled(p, bench->state, agent))
            check_enablers(bench, agent, count);
    for (int seed = 1; seed < p->agent_count; seed++)
        if (machine_agent_enabled(p, bench->state, seed))
            check_stubborn(bench, seed);
}

static void walk(struct bench *bench)
{
    const struct program *p = bench->program;
    machine_reset(p, bench->state);
    for (int n = 0; n < WALK_STEPS; n++) {
        check_state(bench);
        int count = machine_enabled(p, bench->state, bench->steps);
        if (count == 0)
            return;
        struct effect effect;
        machine_step(p, bench->state, bench->steps[draw(bench) % (uint64_t)count], &effect);
        if (effect.violated & 1u << PROPERTY_MISMATCH)
            return;
    }
}

/* ---- the ready set --------------------------------------------------------------------------- */

/* Every agent with a free step is listed, and no other; the same for choices, unless `free_only`. */
static void check_listed(struct bench *bench, const struct ready_set *ready, const bool *listed)
{
    const struct program *p = bench->program;
    for (int agent = 1; agent < p->agent_count; agent++) {
        bool can = machine_agent_enabled(p, bench->state, agent);
        bool free_step = can && machine_step_free(p, bench->state, agent);
        bool choice = ready->readiness[agent] == READY_CHOICE;
        if (free_step != listed[agent] || (!ready->free_only && (can && !free_step) != choice))
            complain(bench, can ? "can step, not as listed" : "is listed and cannot", agent, agent);
    }
}

static void list_news(const struct ready_set *ready, bool *listed)
{
    for (int i = 0; i < ready->news_count; i++)
        listed[ready->news[i]] |= ready->readiness[ready->news[i]] == READY_FREE;
}

/* Take steps, free or, unless `free_only`, of any agent, until none is left. */
static void check_chain(struct bench *bench, bool free_only)
{
    const struct program *p = bench->program;
    struct ready_set ready;
    bool *listed = calloc((size_t)p->agent_count, sizeof *listed);
    bool ok = ready_init(&ready, p, free_only) && listed;
    machine_reset(p, bench->state);
    if (ok)
        ready_begin(&ready, bench->state);
    for (int n = 0; ok && n < 4 * WALK_STEPS; n++) {
        list_news(&ready, listed);
        check_listed(bench, &ready, listed);
        int count = 0;
        for (int agent = 1; agent < p->agent_count; agent++)
            if (listed[agent] || (!free_only && ready.readiness[agent] == READY_CHOICE))
                bench->steps[count++] = (struct transition){agent, 0};
        if (count == 0)
            break;
        int agent = bench->steps[draw(bench) % (uint64_t)count].agent;
        listed[agent] = false;
        ready_acts(&ready, bench->state, agent);
        if (step(p, bench->state, agent) & 1u << PROPERTY_MISMATCH)
            break;
        ready_acted(&ready, bench->state);
        bench->chains++;
    }
    ready_fini(&ready);
    free(listed);
}

/* ---- random plans ---------------------------------------------------------------------------- */

static bool begin(struct bench *bench, const struct program *program)
{
    bench->program = program;
    bench->state = machine_state(program);
    bench->one = machine_state(program);
    bench->two = machine_state(program);
    bench->outside = machine_state(program);
    bench->steps = calloc(machine_most_transitions(program), sizeof *bench->steps);
    return agent_set_init(&bench->set, program->agent_count) && bench->state && bench->one &&
           bench->two && bench->outside && bench->steps;
}

static void end(struct bench *bench)
{
    machine_free(bench->state);
    machine_free(bench->one);
    machine_free(bench->two);
    machine_free(bench->outside);
    free(bench->steps);
    agent_set_fini(&bench->set);
}

/* The plan where next to nothing may be in flight: then each count shows what it finds. */
static struct plan tight_plan(const struct plan *plan)
{
    static const int64_t one_byte[] = {1};
    struct plan tight = *plan;
    tight.machine.memory = (struct cost_list){.items = (int64_t *)(uintptr_t)one_byte, .count = 1};
    tight.pipeline.max_in_flight = plan->form == FORM_PIPELINE;
    return tight;
}

static void check_driver(struct bench *bench, const struct plan *given, enum driver driver)
{
    const struct plan tight = tight_plan(given), *plan = draw(bench) % 2 ? given : &tight;
    struct program *program;
    struct diag diag;
    struct program_options options = {
        .driver = driver, .iterations = draw(bench) % 2 ? -1 : 2, .serial = true};
    diag_init(&diag);
    if (program_build(plan, &options, &program, &diag) == STATUS_OK) {
        if (begin(bench, program)) {
            for (int n = 0; n < WALKS; n++)
                walk(bench);
            check_chain(bench, true);
            check_chain(bench, false);
        } else {
            tap_ok(0, "memory for a walk");
        }
        end(bench);
        program_close(program);
    }
    diag_fini(&diag);
}

static void check_plan(struct bench *bench, enum random_form form)
{
    struct plan plan;
    char *text = (bench->seed % WIDE_EVERY ? random_plan : random_wide_plan)(bench->seed, form);
    if (form == RANDOM_THREADS && bench->seed % WIDE_EVERY)
        text = random_aborts(text, bench->seed);
    bench->text = text;
    bench->draws = 0;
    if (text && plan_of_text(text, &plan)) {
        check_driver(bench, &plan, form == RANDOM_PIPELINE ? DRIVER_CLOCK : DRIVER_NONE);
        if (form == RANDOM_PIPELINE)
            check_driver(bench, &plan, DRIVER_DATAFLOW);
        plan_fini(&plan);
    } else {
        complain(bench, "is refused", 0, 0);
    }
    free(text);
}

static void test_random_plans(void)
{
    uint64_t seed = env_seed(), plans = (uint64_t)env_plans(QUICK, LONG);
    for (int form = 0; form < RANDOM_FORMS; form++) {
        struct bench bench = {0};
        for (uint64_t i = 0; i < plans; i++) {
            bench.seed = seed + i;
            check_plan(&bench, (enum random_form)form);
        }
        tap_note("%d agents let go on, %d members and %d pairs of steps, %d less in flight, "
                 "%d steps of chains",
                 bench.enabled, bench.members, bench.commuted, bench.paced, bench.chains);
        tap_ok(bench.complaints == 0 && bench.members > 0, "%s: nobody outside interferes",
               random_form_key((enum random_form)form));
    }
}

/* ---- plans of our own ------------------------------------------------------------------------ */

struct example {
    const char *what;
    unsigned most; /* states the reduced search may take; 0: only walk */
    enum driver driver;
    const char *plan;
};

/* One for each kind of conflict and of waiting that random plans seldom show. */
static const struct example examples[] = {
    {"one residency slot", 2, DRIVER_NONE,
     "swplan: 1\nmachine: {sm_slots: 1}\nthreads:\n"
     "  r0.a: [{launch: k, stream: s, sm: 1}, {launch: k, stream: t, sm: 1}]\n"},
    {"one hardware queue", 21, DRIVER_NONE,
     "swplan: 1\nmachine: {hw_queues: 1}\nthreads:\n"
     "  r0.a: [{launch: k, stream: s}, {launch: k, stream: s}, {sync: stream, stream: s}]\n"
     "  r0.b: [{launch: k, stream: t}, {launch: k, stream: t}, {sync: stream, stream: t}]\n"
     "  r0.c: [{launch: k, stream: u}, {launch: k, stream: u}, {sync: stream, stream: u}]\n"},
    {"three threads on one stream", 21, DRIVER_NONE,
     "swplan: 1\nthreads:\n"
     "  r0.a: [{launch: k, stream: s}, {launch: l, stream: s}, {launch: m, stream: t}]\n"
     "  r0.b: [{launch: k, stream: s}, {launch: l, stream: s}, {launch: m, stream: u}]\n"
     "  r0.c: [{launch: k, stream: s}, {launch: l, stream: s}, {launch: m, stream: v}]\n"},
    {"two threads on one communicator", 4, DRIVER_NONE,
     "swplan: 1\ncomms: {A: [0, 1]}\nthreads:\n"
     "  r0.a: [{collective: x, comm: A, stream: s}]\n"
     "  r0.b: [{collective: y, comm: A, stream: t}]\n"
     "  r1.a: [{collective: x, comm: A, stream: s}]\n"
     "  r1.b: [{collective: y, comm: A, stream: t}]\n"},
    {"a stream that waits for another's flag", 30, DRIVER_NONE,
     "swplan: 1\nthreads:\n"
     "  r0.a: [{wait_flag: f, stream: s}, {sync: stream, stream: s}, {launch: k, stream: u}]\n"
     "  r0.b: [{launch: l, stream: u}]\n"
     "  r0.c: [{launch: m, stream: t}, {write: f, stream: t}]\n"},
    {"three locks in a ring", 18, DRIVER_NONE,
     "swplan: 1\nthreads:\n"
     "  r0.a: [{lock: l}, {lock: m}, {unlock: m}, {unlock: l}, {lock: l}, {unlock: l}]\n"
     "  r0.b: [{lock: m}, {lock: n}, {unlock: n}, {unlock: m}, {lock: m}, {unlock: m}]\n"
     "  r0.c: [{lock: n}, {lock: l}, {unlock: l}, {unlock: n}, {lock: n}, {unlock: n}]\n"},
    {"a lock somebody else releases", 6, DRIVER_NONE,
     "swplan: 1\nthreads:\n"
     "  r0.a: [{lock: m}, {lock: m}, {unlock: m}]\n"
     "  r0.b: [{unlock: m}, {lock: m}, {unlock: m}]\n"},
    {"a count that one of two acquires", 0, DRIVER_NONE,
     "swplan: 1\nthreads:\n"
     "  r0.a: [{signal: f}]\n  r0.b: [{acquire: f}]\n  r0.c: [{acquire: f}]\n"},
    {"an event that is recorded anew", 6, DRIVER_NONE,
     "swplan: 1\nqueues: {q: 1}\nthreads:\n"
     "  r0.a: [{callback: c, stream: s, body: [{await: f}]}, {record: e, stream: s}, {signal: g}, "
     "{sync: event, event: e}, {signal: f}]\n"
     "  r0.b: [{await: g}, {record: e, stream: t}, {record: e, stream: s}]\n"},
    {"two threads allocate", 8, DRIVER_NONE,
     "swplan: 1\nthreads:\n"
     "  r0.a: [{alloc: x, stream: s}, {launch: k, stream: s, writes: [x]}, {free: x}]\n"
     "  r0.b: [{alloc: y, stream: s}, {launch: k, stream: t, writes: [y]}, {launch: l, stream: "
     "t}]\n"},
    {"memory that another thread marks", 0, DRIVER_NONE,
     "swplan: 1\nthreads:\n"
     "  r0.a: [{alloc: x, stream: s}, {signal: f}, {launch: k, stream: t, writes: [x]}, "
     "{free: x}, {alloc: y, stream: s}]\n"
     "  r0.b: [{await: f}, {record_stream: x, stream: t}]\n"},
    {"one turn taken by two", 0, DRIVER_NONE,
     "swplan: 1\nthreads:\n"
     "  r0.a: [{ticket: 0}, {serve: 0}]\n  r0.b: [{ticket: 0}, {serve: 0}]\n"},
    {"turns taken out of order", 7, DRIVER_NONE,
     "swplan: 1\nthreads:\n"
     "  r0.a: [{ticket: 1}, {serve: 1}]\n  r0.b: [{ticket: 0}, {serve: 0}]\n"
     "  r0.c: [{ticket: 2}, {serve: 2}]\n"},
    {"two putters, two getters", 8, DRIVER_NONE,
     "swplan: 1\nqueues: {q: 1}\nthreads:\n"
     "  r0.a: [{put: q}, {put: q}]\n  r0.b: [{put: q}]\n  r0.c: [{get: q}, {get: q}]\n"
     "  r0.d: [{get: q}]\n"},
    {"an event that is asked for twice", 5, DRIVER_NONE,
     "swplan: 1\nthreads:\n"
     "  r0.a: [{launch: k, stream: s, writes: [x]}, {record: e, stream: s}, {signal: f},\n"
     "    {query: event, event: e, then: [{compute: c, reads: [x]}]}]\n"
     "  r0.b: [{await: f}, {query: event, event: e, else: [{sync: device}]},\n"
     "    {compute: d, reads: [x]}]\n"},
    {"a flag and a queue that are asked for", 11, DRIVER_NONE,
     "swplan: 1\nqueues: {q: 1}\nthreads:\n"
     "  r0.a: [{compute: m, writes: [x]}, {signal: f}, {put: q}]\n"
     "  r0.b: [{query: flag, flag: f, then: [{compute: c, reads: [x]}]},\n"
     "    {query: queue, queue: q, then: [{get: q}], else: [{choose: luck, then: [{signal: "
     "g}]}]}]\n"},
    {"a lock that two try and a third takes", 18, DRIVER_NONE,
     "swplan: 1\nthreads:\n"
     "  r0.a: [{lock: m, then: [{compute: c, writes: [x]}, {unlock: m}]}]\n"
     "  r0.b: [{lock: m, then: [{unlock: m}], else: [{compute: d, reads: [y]}]}]\n"
     "  r0.c: [{lock: m}, {compute: e, writes: [x]}, {unlock: m}]\n"},
    {"the end of several submissions", 76, DRIVER_DATAFLOW,
     "swplan: 1\nmax_depth: 1\nretire: device\nticket_at: fire\nschedule:\n"
     "  A: {stage: 0, stream: s, thread_group: g}\n  B: {stage: 0, stream: t, thread_group: h}\n"
     "  C: {stage: 1, stream: s, thread_group: i, globally_ordered: true}\n"
     "  D: {stage: 1, stream: t, thread_group: j, globally_ordered: true}\n"
     "intra_iter_deps: [[C, A], [D, B]]\n"},
    {"slots looked at too late", 2541, DRIVER_DATAFLOW,
     "swplan: 1\nmax_depth: 2\nretire: last-task\nschedule:\n"
     "  A: {stage: 0, stream: s, thread_group: g}\n  B: {stage: 0, stream: t, thread_group: h}\n"
     "  C: {stage: 1, stream: t, thread_group: h}\n"
     "intra_iter_deps: [[C, A]]\ninter_iter_deps: [[B, A, 1]]\n"},
    {"dependences that are skipped", 2707, DRIVER_CLOCK,
     "swplan: 1\nretired_dep: skip\nretire: submit\nschedule:\n"
     "  A: {stage: 0, stream: s, thread_group: g}\n  B: {stage: 1, stream: t, thread_group: h}\n"
     "intra_iter_deps: [[B, A]]\ninter_iter_deps: [[A, B, 1]]\n"},
    {"retired before it was submitted", 0, DRIVER_CLOCK,
     "swplan: 1\nretired_dep: skip\nretire: last-task\nschedule:\n"
     "  A: {stage: 0, stream: s, thread_group: g}\n  B: {stage: 0, stream: t, thread_group: h}\n"
     "inter_iter_deps: [[B, A, 1]]\n"},
    {"residency in a pipeline", 73, DRIVER_CLOCK,
     "swplan: 1\nmachine: {sm_slots: 2}\nschedule:\n"
     "  A: {stage: 0, stream: s, thread_group: g, sm: 1}\n"
     "  B: {stage: 0, stream: t, thread_group: g, sm: 2}\n"
     "  C: {stage: 1, stream: u, thread_group: g, sm: 1}\n"
     "intra_iter_deps: [[C, A]]\n"},
    {"threads that flags order, on blocking streams", 1, DRIVER_NONE,
     "swplan: 1\nstreams: {d: {legacy: true}}\nthreads:\n"
     "  r0.a: [{launch: A, stream: d}, {launch: B, stream: s}, {signal: f}, {await: g}, "
     "{launch: C, stream: d}, {record: e, stream: s}, {signal: h}]\n"
     "  r0.b: [{await: f}, {launch: D, stream: s}, {launch: E, stream: d}, {signal: g}, "
     "{await: h}, {launch: F, stream: s}, {signal: i}]\n"
     "  r0.c: [{await: i}, {wait: e, stream: t}, {launch: G, stream: t}]\n"},
    {"a lock, where flags order some of its users", 5, DRIVER_NONE,
     "swplan: 1\nthreads:\n"
     "  r0.a: [{lock: m}, {launch: A, stream: s}, {unlock: m}, {signal: f}, {lock: m}, {unlock: "
     "m}]\n"
     "  r0.b: [{await: f}, {lock: m}, {launch: B, stream: s}, {unlock: m}, {signal: g}]\n"
     "  r0.c: [{await: g}, {lock: m}, {launch: C, stream: s}, {unlock: m}]\n"},
    {"a flag that two threads set", 0, DRIVER_NONE,
     "swplan: 1\nthreads:\n"
     "  r0.a: [{launch: A, stream: s}, {signal: f}]\n  r0.b: [{launch: B, stream: s}, {signal: "
     "f}]\n"
     "  r0.c: [{await: f}, {launch: C, stream: s}]\n"},
    {"copies that may wait, and nothing is in front of them", 2, DRIVER_NONE,
     "swplan: 1\nthreads:\n"
     "  r0.a: [{copy: h2d, stream: s, pageable: true}, {launch: A, stream: s}, {copy: h2d, stream: "
     "t, "
     "pageable: true}, {copy: h2d, stream: s, pageable: true}, {launch: B, stream: t}]\n"
     "  r1.a: [{copy: h2d, stream: s, pageable: true}, {copy: h2d, stream: t, pageable: true}]\n"},
    {"copies that may wait, and for one of them another thread", 0, DRIVER_NONE,
     "swplan: 1\ncomms: {c: [0, 1]}\nthreads:\n"
     "  r0.a: [{copy: h2d, stream: s, pageable: true, writes: [x]}, {collective: A, comm: c, "
     "stream: "
     "t}, {launch: U, stream: t, reads: [x]}]\n"
     "  r1.a: [{collective: A, comm: c, stream: s}, {copy: h2d, stream: s, pageable: true}]\n"
     "  r0.b: [{copy: h2d, stream: s, pageable: true}, {launch: B, stream: s}]\n"},
};
enum { EXAMPLES = sizeof examples / sizeof *examples, EXAMPLE_ROUNDS = 20 };

static bool walk_in(struct bench *bench, const struct example *example)
{
    struct plan plan;
    bool read = plan_of_text(example->plan, &plan);
    bench->text = example->plan;
    for (int round = 0; read && round < EXAMPLE_ROUNDS; round++) {
        bench->seed = (uint64_t)round;
        check_driver(bench, &plan, example->driver);
    }
    if (read)
        plan_fini(&plan);
    return read;
}

static void walk_example(const struct example *example)
{
    struct bench bench = {0};
    bool read = walk_in(&bench, example);
    tap_ok(read && bench.complaints == 0, "%s: nobody outside interferes", example->what);
}

/* Steps of others than the thread that frees memory make less in flight. */
static const struct example paced_examples[] = {
    {"memory that is free when a kernel of the same hardware queue starts", 0, DRIVER_NONE,
     "swplan: 1\nmachine: {hw_queues: 1}\nbuffers: {x: {bytes: 1KiB}, y: {bytes: 1KiB}}\nthreads:\n"
     "  r0.a: [{alloc: x, stream: s}, {launch: k, stream: t}, {record: e, stream: s}, {free: x, "
     "stream: s}]\n"
     "  r0.b: [{alloc: y, stream: u}]\n"},
    {"memory that is free when another rank's kernel has ended", 0, DRIVER_NONE,
     "swplan: 1\nbuffers: {x: {bytes: 1KiB}, y: {bytes: 1KiB}}\nthreads:\n"
     "  r0.a: [{alloc: x, stream: s}, {launch: k, device: 1, stream: t}, {record: e, device: 1, "
     "stream: t},\n"
     "    {wait: r1.e, stream: s}, {free: x, stream: s}, {signal: f}]\n"
     "  r0.b: [{await: f}, {alloc: y, stream: u}]\n  r1.c: [{launch: l, stream: v}]\n"},
};

static void test_paces(void)
{
    for (size_t i = 0; i < sizeof paced_examples / sizeof *paced_examples; i++) {
        struct bench bench = {0};
        bool read = walk_in(&bench, &paced_examples[i]);
        tap_ok(read && bench.complaints == 0 && bench.paced > 0, "%s: named %d times",
               paced_examples[i].what, bench.paced);
    }
}

static bool verify(const struct plan *plan, enum driver driver, bool no_reduction,
                   struct verify_report *report)
{
    struct diag diag;
    struct verify_options options = {.program = {.driver = driver, .iterations = -1},
                                     .no_reduction = no_reduction,
                                     .any_witness = true};
    diag_init(&diag);
    bool ok = verify_plan(plan, &options, report, &diag) == STATUS_OK;
    diag_fini(&diag);
    return ok;
}

/* Few states, and no other outcome than without reduction. */
static void count_states(const char *what, const char *text, enum driver driver, unsigned most)
{
    struct plan plan;
    struct verify_report with, without;
    if (!plan_of_text(text, &plan))
        return;
    if (verify(&plan, driver, false, &with)) {
        tap_ok(with.states <= most, "%s: %" PRIu64 " states, at most %u", what, with.states, most);
        if (verify(&plan, driver, true, &without)) {
            bool mismatch = without.outcome[PROPERTY_MISMATCH] != OUTCOME_PROVED;
            bool same = memcmp(with.outcome, without.outcome, sizeof with.outcome) == 0;
            tap_ok(mismatch ? with.outcome[PROPERTY_MISMATCH] == without.outcome[PROPERTY_MISMATCH]
                            : same,
                   "%s: the same as the whole search (%" PRIu64 " states)", what, without.states);
            verify_fini(&without);
        }
        verify_fini(&with);
    }
    plan_fini(&plan);
}

/* Six ranks in groups of two and of three, one residency slot: each rank may start its two
   collectives in either order, unless the second waits for the first (torchrec#3849). */
static char *two_groupings(bool waits)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    if (!out)
        return NULL;
    fputs("swplan: 1\nmachine: {sm_slots: 1}\ncomms: {a0: [0, 3], a1: [1, 4], a2: [2, 5], b0: [0, "
          "1, 2], b1: [3, 4, 5]}\nthreads:\n",
          out);
    for (int rank = 0; rank < 6; rank++)
        fprintf(out,
                "  r%d.main:\n    - {collective: x, comm: a%d, stream: s, sm: 1}\n%s"
                "    - {collective: y, comm: b%d, stream: t, sm: 1}\n",
                rank, rank % 3,
                waits ? "    - {record: e, stream: s}\n    - {wait: e, stream: t}\n" : "",
                rank / 3);
    return fclose(out) == 0 ? text : NULL;
}

static void test_two_groupings(void)
{
    for (int waits = 0; waits < 2; waits++) {
        char *text = two_groupings(waits);
        struct plan plan;
        struct verify_report report;
        if (text && plan_of_text(text, &plan)) {
            if (verify(&plan, DRIVER_NONE, false, &report)) {
                tap_is_int(report.outcome[PROPERTY_DEADLOCK], waits ? OUTCOME_PROVED : OUTCOME_SOME,
                           "two groupings of six ranks, %s",
                           waits ? "one after the other" : "in either order");
                tap_ok(report.states <= (waits ? 1 : 100), "in %" PRIu64 " states", report.states);
                verify_fini(&report);
            }
            plan_fini(&plan);
        }
        free(text);
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* A thread waits where it takes something, or gives it to what may have no room: for the device or for other threads. */
static enum op_wait waits_as_used(const struct op_row *row)
{
    const bool room = operand_table[row->operand].has_room;
    if (row->role != ROLE_CONTROL || !(row->uses[AT_CALL] & (room ? TAKES | GIVES : TAKES)))
        return WAITS_NEVER;
    return row->operand == OPERAND_EVENT ? WAITS_DEVICE : WAITS_THREADS;
}

/* Work uses no object, and what is no work uses one. */
static bool fits_together(const struct op_row *row)
{
    const bool used = row->uses[AT_CALL] | row->uses[AT_STREAM], pushes = row->role >= ROLE_MARK,
               works = row->role == ROLE_CPU || row->role == ROLE_DEVICE ||
                       row->role == ROLE_COMM || row->role == ROLE_CALL;
    const bool branches = row->role == ROLE_ASK || row->role == ROLE_BRANCH;
    return used == (row->operand != OPERAND_NONE) && works == (!used && !branches) &&
           row->waits == waits_as_used(row) && pushes == (row->pushed != NULL) &&
           (pushes || !row->uses[AT_STREAM]);
}

static bool rows_fit_together(void)
{
    bool fit = true;
    for (int kind = 0; kind < OP_COUNT; kind++)
        fit &= fits_together(&op_table[kind]);
    return fit;
}

/* ---- mutants --------------------------------------------------------------------------------- */

enum { MUTANT_PLANS = 250, MUTANT_SECONDS = 100, RUNS = 2 * MUTANT_PLANS };

/* The columns of the two tables: a use or a way is left out, of the others each value stands there in turn. */
enum mutant_column { MUTANT_USE, MUTANT_WAY, MUTANT_ROLE, MUTANT_OPERAND, MUTANT_WAITS };

struct mutant {
    enum mutant_column column;
    int row;               /* of op_table; of operand_table for a way */
    enum op_moment moment; /* of a use */
    int value; /* the bit of the use or the way, USE_KINDS: that there is room; else the new value */
};

/* What no step of a random plan can show. */
static const struct {
    struct mutant mutant;
    const char *why;
} equivalent[] = {
    {{MUTANT_USE, OP_ALLOC, AT_STREAM, USE_LOOKS},
     "a mark: accesses are queued or done in any order"},
    {{MUTANT_WAY, OPERAND_LOCK, AT_CALL, USE_GIVES},
     "the holder of a lock is known, and its release conflicts only where a lock is abused"},
    {{MUTANT_USE, OP_BARRIER, AT_CALL, USE_GIVES}, "a barrier is lowered to flags"},
    {{MUTANT_OPERAND, OP_BARRIER, AT_CALL, OPERAND_FLAG}, "a barrier is lowered to flags"},
    {{MUTANT_OPERAND, OP_BARRIER, AT_CALL, OPERAND_QUEUE}, "a barrier is lowered to flags"},
    {{MUTANT_OPERAND, OP_BARRIER, AT_CALL, OPERAND_LOCK}, "a barrier is lowered to flags"},
    {{MUTANT_OPERAND, OP_BARRIER, AT_CALL, OPERAND_TURN}, "a barrier is lowered to flags"},
    {{MUTANT_OPERAND, OP_BARRIER, AT_CALL, OPERAND_BUFFER}, "a barrier is lowered to flags"},
    {{MUTANT_OPERAND, OP_BARRIER, AT_CALL, OPERAND_COMM}, "a barrier is lowered to flags"},
    {{MUTANT_OPERAND, OP_BARRIER, AT_CALL, OPERAND_SUBMISSION}, "a barrier is lowered to flags"},
};
enum { EQUIVALENT = sizeof equivalent / sizeof *equivalent };

static const char *why_equivalent(const struct mutant *mutant)
{
    for (int i = 0; i < EQUIVALENT; i++)
        if (memcmp(&equivalent[i].mutant, mutant, sizeof *mutant) == 0)
            return equivalent[i].why;
    return NULL;
}

/* The tables are constants of the program; a child changes its own copy. */
static void *writable(const void *table, size_t size)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)table / page * page,
                    end = (uintptr_t)table + size;
    return mprotect((void *)first, end - first, PROT_READ | PROT_WRITE) == 0
               ? (void *)(uintptr_t)table
               : NULL;
}

static bool mutate(const struct mutant *mutant)
{
    struct op_row *ops = writable(op_table, sizeof op_table);
    struct operand_row *operands = writable(operand_table, sizeof operand_table);
    if (!ops || !operands)
        return false;
    struct op_row *op = &ops[mutant->row];
    struct operand_row *operand = &operands[mutant->row];
    switch (mutant->column) {
    case MUTANT_USE: op->uses[mutant->moment] &= (unsigned char)~(1u << mutant->value); break;
    case MUTANT_WAY:
        if (mutant->value == USE_KINDS)
            operand->has_room = false;
        else
            operand->way[mutant->value] = WAY_NOTHING;
        break;
    case MUTANT_ROLE: op->role = (enum op_role)mutant->value; break;
    case MUTANT_OPERAND: op->operand = (enum op_operand)mutant->value; break;
    case MUTANT_WAITS: op->waits = (enum op_wait)mutant->value; break;
    }
    return true;
}

/* The end of a run with clocks, and its steps. */
static int64_t simulated(const struct plan *plan, enum driver driver)
{
    const struct program_options options = {.driver = driver,
                                            .iterations = driver == DRIVER_NONE ? -1 : 3};
    const struct simulate_options none = {0};
    struct program *program;
    struct timing timing;
    struct simulation_result result;
    struct diag diag;
    int64_t end = -1;
    diag_init(&diag);
    if (program_build(plan, &options, &program, &diag) == STATUS_OK) {
        if (timing_init(&timing, program, NULL, 0, &diag) == STATUS_OK) {
            if (simulate_run(program, &timing, &none, &result, &diag) == STATUS_OK) {
                end = result.makespan_ns + 1000 * 1000 * result.steps;
                simulation_fini(&result);
            }
            timing_fini(&timing);
        }
        program_close(program);
    }
    diag_fini(&diag);
    return end;
}

static int64_t simulated_text(const char *text, enum driver driver)
{
    struct plan plan;
    int64_t end = -1;
    if (text && plan_of_text(text, &plan)) {
        end = simulated(&plan, driver);
        plan_fini(&plan);
    }
    return end;
}

static int64_t simulated_seed(uint64_t seed, enum random_form form)
{
    char *text = random_plan(seed, form);
    int64_t end = simulated_text(text, form != RANDOM_PIPELINE ? DRIVER_NONE
                                       : seed % 2              ? DRIVER_CLOCK
                                                               : DRIVER_DATAFLOW);
    free(text);
    return end;
}

/* What the simulations end with, without a mutant. */
struct ends {
    int64_t random[RANDOM_FORMS][RUNS], example[EXAMPLES];
};

/* Does a check of the examples or of the first random plans fail? */
static bool fails(const struct ends *ends)
{
    static const enum random_form order[] = {RANDOM_THREADS, RANDOM_PIPELINE, RANDOM_PROGRAMS};
    struct bench bench = {.quiet = true};
    if (!rows_fit_together())
        return true;
    for (int i = 0; i < EXAMPLES && bench.complaints == 0; i++) {
        walk_in(&bench, &examples[i]);
        if (simulated_text(examples[i].plan, examples[i].driver) != ends->example[i])
            return true;
    }
    for (int i = 0; i < RUNS && bench.complaints == 0; i++)
        for (int f = 0; f < RANDOM_FORMS && bench.complaints == 0; f++) {
            bench.seed = (uint64_t)i + 1;
            if (simulated_seed(bench.seed, order[f]) != ends->random[order[f]][i])
                return true;
            if (i < MUTANT_PLANS)
                check_plan(&bench, order[f]);
        }
    return bench.complaints > 0;
}

/* An assertion counts as much as a check that fails, and so does a run that does not end. */
static bool is_noticed(const struct mutant *mutant, const struct ends *ends)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(MUTANT_SECONDS);
        if (!freopen("/dev/null", "w", stderr) || !freopen("/dev/null", "w", stdout) ||
            !mutate(mutant))
            _exit(0);
        _exit(fails(ends) ? 1 : 0);
    }
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && status != 0;
}

static void try_mutant(const struct mutant *mutant, const char *what, const struct ends *ends)
{
    static const char *const uses[] = {"gives", "takes", "sets", "looks", "has room"};
    static const char *const columns[] = {
        [MUTANT_ROLE] = "role", [MUTANT_OPERAND] = "operand", [MUTANT_WAITS] = "reason to wait"};
    const char *why = why_equivalent(mutant), *known = why ? why : "noticed";
    const bool noticed = is_noticed(mutant, ends);
    if (mutant->column <= MUTANT_WAY)
        tap_is_int(noticed, why == NULL, "without \"%s %s %s\": %s", what, uses[mutant->value],
                   mutant->moment == AT_STREAM ? "at the stream" : "at the call", known);
    else
        tap_is_int(noticed, why == NULL, "%s with %s %d: %s", what, columns[mutant->column],
                   mutant->value, known);
}

/* Is there an operation with this use of the operand, and does it conflict with others? */
static bool is_used(int operand, int use)
{
    bool used = false;
    for (int kind = 0; kind < OP_COUNT; kind++)
        used |= (int)op_operand((enum op_kind)kind) == operand &&
                (op_table[kind].uses[AT_CALL] | op_table[kind].uses[AT_STREAM]) >> use & 1;
    return used && operand_table[operand].way[use] != WAY_NOTHING;
}

static void try_values(enum mutant_column column, enum op_kind kind, int own, int count,
                       const struct ends *ends)
{
    for (int value = 0; value < count; value++)
        if (value != own)
            try_mutant(&(struct mutant){column, (int)kind, AT_CALL, value}, op_key(kind), ends);
}

static void try_row(enum op_kind kind, const struct ends *ends)
{
    for (int moment = 0; moment < OP_MOMENTS; moment++)
        for (int use = 0; use < USE_KINDS; use++)
            if (op_uses(kind, (enum op_moment)moment) & 1u << use)
                try_mutant(&(struct mutant){MUTANT_USE, (int)kind, (enum op_moment)moment, use},
                           op_key(kind), ends);
    try_values(MUTANT_ROLE, kind, (int)op_role(kind), ROLE_STEP + 1, ends);
    try_values(MUTANT_OPERAND, kind, (int)op_operand(kind), OPERAND_COUNT, ends);
    try_values(MUTANT_WAITS, kind, (int)op_waits(kind), WAITS_THREADS + 1, ends);
}

static void test_mutants(void)
{
    static struct ends ends;
    for (int form = 0; form < RANDOM_FORMS; form++)
        for (int i = 0; i < RUNS; i++)
            ends.random[form][i] = simulated_seed((uint64_t)i + 1, (enum random_form)form);
    for (int i = 0; i < EXAMPLES; i++)
        ends.example[i] = simulated_text(examples[i].plan, examples[i].driver);
    for (int i = 0; i < EXAMPLES; i++)
        tap_ok(ends.example[i] >= 0, "%s: a run with clocks", examples[i].what);
    for (int kind = 0; kind < OP_COUNT; kind++)
        try_row((enum op_kind)kind, &ends);
    static const char *const operands[OPERAND_COUNT] = {
        [OPERAND_EVENT] = "an event", [OPERAND_FLAG] = "a flag", [OPERAND_QUEUE] = "a queue",
        [OPERAND_LOCK] = "a lock",    [OPERAND_TURN] = "a turn", [OPERAND_BUFFER] = "a buffer"};
    for (int operand = 0; operand < OPERAND_COUNT; operand++)
        for (int use = 0; operands[operand] && use <= USE_KINDS; use++)
            if (use == USE_KINDS ? operand_table[operand].has_room : is_used(operand, use))
                try_mutant(&(struct mutant){MUTANT_WAY, operand, AT_CALL, use}, operands[operand],
                           &ends);
}

int main(void)
{
    test_sets();
    tap_ok(rows_fit_together(), "the columns of the table of operations fit together");
    for (int i = 0; i < EXAMPLES; i++) {
        walk_example(&examples[i]);
        if (examples[i].most)
            count_states(examples[i].what, examples[i].plan, examples[i].driver, examples[i].most);
    }
    test_paces();
    test_two_groupings();
    test_random_plans();
    if (env_is_long())
        test_mutants();
    return tap_done();
}
