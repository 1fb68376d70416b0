/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_replay.c - the judge of real runs, without one: random walks of the machine are logged as a run
 * would log them. The replay must find every walk legal, in one go and in pieces, and must not find
 * legal what a clock contradicts, what is missing, and what never was.
 */
#include "gpu/record/replay.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "plan/text/parse.h"
#include "tests/tap.h"

enum {
    MAX_STEPS = 4000,
    MAX_STREAMS = 16,
    MAX_ITEMS = 256,
    STEP_NS = 100,
    WALKS = 40,
    HELD_UP_WALKS = 400
};

static const char PIPELINE[] =
    "swplan: 1\n"
    "ranks: 2\n"
    "schedule:\n"
    "  Copy: {stage: 0, stream: memcpy, writes: [x], work: {copy: h2d, bytes: 1KiB}}\n"
    "  Meet: {stage: 1, stream: comm, reads: [x], writes: [y], globally_ordered: true,\n"
    "         thread_group: other, work: {collective: all_to_all, comm: dp, bytes: 1KiB}}\n"
    "  Use: {stage: 1, host_time: 1us, reads: [y]}\n"
    "intra_iter_deps: [[Meet, Copy], [Use, Meet]]\n"
    "buffers: {x: {scope: iteration}, y: {scope: iteration}}\n";

static const char THREADS[] =
    "swplan: 1\n"
    "comms: {pair: [0, 1]}\n"
    "queues: {q: 1}\n"
    "threads:\n"
    "  r0.a:\n"
    "    - {launch: make, stream: s, writes: [x]}\n"
    "    - {record: made, stream: s}\n"
    "    - {signal: recorded}\n"
    "    - {lock: m}\n"
    "    - {unlock: m}\n"
    "    - {put: q}\n"
    "    - {group: [{send: t, peer: 1}, {recv: u, peer: 1}], comm: pair, stream: s}\n"
    "    - {callback: f, stream: s, body: [{signal: called}, {host: 1us}]}\n"
    "  r0.b:\n"
    "    - {await: recorded}\n"
    "    - {wait: made, stream: t}\n"
    "    - {launch: use, stream: t, reads: [x]}\n"
    "    - {lock: m}\n"
    "    - {unlock: m}\n"
    "    - {get: q}\n"
    "    - {await: called}\n"
    "    - {sync: device}\n"
    "  r1.c:\n"
    "    - {group: [{recv: t, peer: 0}, {send: u, peer: 0}], comm: pair, stream: s}\n"
    "    - {sync: stream, stream: s}\n";

/* Waits of the host while other threads push; the last one sees all. */
static const char WAITS[] =
    "swplan: 1\n"
    "threads:\n"
    "  r0.a: [{launch: a1, stream: s}, {launch: a2, stream: s}, {record: e, stream: s}, {signal: "
    "fa},\n"
    "         {launch: a3, stream: s}, {signal: ga}]\n"
    "  r0.b: [{launch: b1, stream: t}, {await: fa}, {record: e, stream: t}, {launch: b2, stream: "
    "t},\n"
    "         {signal: gb}]\n"
    "  r0.c: [{sync: device}, {sync: stream, stream: s}, {await: fa}, {sync: event, event: e},\n"
    "         {sync: device}, {await: ga}, {await: gb}, {await: hd}, {sync: device}]\n"
    "  r1.d: [{launch: d1, stream: s}, {launch: d2, stream: t}, {signal: hd}]\n"
    "  r1.e: [{sync: device}, {sync: stream, stream: t}, {await: hd}, {sync: device}]\n";

/* The program of a plan that is right. The caller closes both. */
static struct program *open_text(const char *text, struct plan *plan,
                                 const struct program_options *options)
{
    const struct program_options none = {0};
    struct program *program = NULL;
    struct diag diag;
    diag_init(&diag);
    if (plan_parse("t.yaml", text, strlen(text), plan, &diag) ||
        program_build(plan, options ? options : &none, &program, &diag)) {
        diag_print(&diag, "t_replay", false, stderr);
        abort();
    }
    diag_fini(&diag);
    return program;
}

/* ---- a walk and its log ---------------------------------------------------------------------- */

struct walk {
    const struct program *program;
    struct state *state;
    struct transition *enabled;
    uint64_t seed, draws;
    struct replay_step steps[MAX_STEPS];
    size_t count;
    int64_t now_ns;
    int64_t pushes[2];                       /* per rank */
    int64_t numbers[MAX_STREAMS][MAX_ITEMS]; /* of the work in each stream, oldest first */
    size_t queued[MAX_STREAMS];
};

static void log_step(struct walk *walk, struct replay_step step)
{
    if (walk->count == MAX_STEPS)
        abort();
    step.lo_ns = step.hi_ns = step.key_ns = walk->now_ns;
    walk->steps[walk->count++] = step;
}

static bool is_work(enum op_kind kind)
{
    return kind == OP_LAUNCH || kind == OP_COPY || kind == OP_COLLECTIVE || kind == OP_GROUP ||
           kind == OP_CALLBACK;
}

static void log_thread(struct walk *walk, int agent)
{
    const struct program *p = walk->program;
    const struct agent *desc = &p->agents[agent];
    struct replay_step step = {.agent = agent, .op = -1, .task = -1, .number = -1};
    if (p->threads[desc->index].kind == THREAD_DRIVER) {
        bool retires = machine_retires(p, walk->state, agent);
        step.kind = retires ? REPLAY_RETIRE : REPLAY_ENQUEUE;
        step.iteration = retires ? machine_oldest(p, walk->state, desc->rank)
                                 : machine_admitted(p, walk->state, desc->rank) +
                                       machine_admits_next(p, walk->state, desc->rank);
        log_step(walk, step);
        return;
    }
    step.op = machine_current_op(p, walk->state, agent, &step.iteration);
    step.kind = step.op < 0 ? REPLAY_TAKE : REPLAY_OP;
    if (step.op < 0)
        machine_queue(p, walk->state, desc->index, 0, &step.task, &step.iteration);
    else if (is_work(p->ops[step.op].kind) || p->ops[step.op].kind == OP_RECORD ||
             p->ops[step.op].kind == OP_WAIT) {
        int stream = p->ops[step.op].stream;
        step.number = walk->pushes[desc->rank]++;
        if (is_work(p->ops[step.op].kind))
            walk->numbers[stream][walk->queued[stream]++] = step.number;
    }
    log_step(walk, step);
}

static void log_stream(struct walk *walk, int stream, enum replay_kind kind)
{
    const struct program *p = walk->program;
    struct replay_step step = {.kind = kind, .agent = program_stream_agent(p, stream), .task = -1};
    step.op = machine_current_op(p, walk->state, step.agent, &step.iteration);
    step.number = walk->numbers[stream][0];
    log_step(walk, step);
    if (kind == REPLAY_FINISH)
        memmove(walk->numbers[stream], walk->numbers[stream] + 1,
                --walk->queued[stream] * sizeof walk->numbers[stream][0]);
}

/* A collective ends on every member, at slightly different times. */
static void log_comm(struct walk *walk, int comm)
{
    const struct program *p = walk->program;
    for (int s = 0; s < p->stream_count; s++) {
        int64_t iteration;
        int op = machine_current_op(p, walk->state, program_stream_agent(p, s), &iteration);
        if (op >= 0 && p->ops[op].comm == comm && machine_stream_running(p, walk->state, s)) {
            log_stream(walk, s, REPLAY_FINISH);
            walk->now_ns++;
        }
    }
}

static void log_transition(struct walk *walk, struct transition transition)
{
    const struct agent *desc = &walk->program->agents[transition.agent];
    walk->now_ns += STEP_NS;
    switch (desc->kind) {
    case AGENT_THREAD: log_thread(walk, transition.agent); break;
    case AGENT_STREAM:
        log_stream(walk, desc->index,
                   machine_stream_running(walk->program, walk->state, desc->index) ? REPLAY_FINISH
                                                                                   : REPLAY_START);
        break;
    case AGENT_COMM: log_comm(walk, desc->index); break;
    case AGENT_DATA:
    case AGENT_FAULT:
    case AGENT_WATCHDOG: break;
    }
}

/* Walk until nothing is possible; true if that is the end. */
static bool walk_run(struct walk *walk, const struct program *program, uint64_t seed)
{
    *walk = (struct walk){.program = program, .seed = seed};
    walk->state = machine_state(program);
    walk->enabled = calloc(machine_most_transitions(program), sizeof *walk->enabled);
    if (!walk->state || !walk->enabled || program->stream_count > MAX_STREAMS)
        abort();
    for (int count; (count = machine_enabled(program, walk->state, walk->enabled)) > 0;) {
        uint64_t draw = hash_mix(seed + UINT64_C(0x9e3779b97f4a7c15) * ++walk->draws);
        struct transition next = walk->enabled[draw % (uint64_t)count];
        log_transition(walk, next);
        machine_step(program, walk->state, next, NULL);
    }
    bool done = machine_done(program, walk->state);
    machine_free(walk->state);
    free(walk->enabled);
    return done;
}

/* ---- a replay -------------------------------------------------------------------------------- */

struct verdict {
    bool legal;
    char reason[1000];
    int64_t taken, observed;
};

static void count_steps(void *arg, const struct replay_step *step)
{
    (void)step;
    *(int64_t *)arg += 1;
}

/* Add the steps agent by agent, as a journal does, and judge; in pieces: `pieces` of the log at a
   time. */
static struct verdict judge(const struct walk *walk, size_t pieces, bool complete)
{
    const struct program *p = walk->program;
    struct verdict verdict = {0};
    struct replay *replay = replay_open(p, 0, count_steps, &verdict.observed);
    if (!replay)
        abort();
    for (size_t piece = 0; piece < pieces; piece++) {
        size_t first = walk->count * piece / pieces, last = walk->count * (piece + 1) / pieces;
        for (int agent = 0; agent < p->agent_count; agent++)
            for (size_t i = first; i < last; i++)
                if (walk->steps[i].agent == agent && !replay_add(replay, &walk->steps[i]))
                    abort();
        if (last > first)
            replay_advance(replay, walk->steps[last - 1].key_ns, INT64_MAX);
    }
    verdict.legal = replay_finish(replay, complete);
    verdict.taken = replay_taken(replay);
    snprintf(verdict.reason, sizeof verdict.reason, "%s", replay_reason(replay));
    replay_close(replay);
    return verdict;
}

static int find_step(const struct walk *walk, enum replay_kind kind, const char *name,
                     int64_t iteration)
{
    const struct program *p = walk->program;
    char subject[160], wanted[160];
    for (size_t i = 0; i < walk->count; i++) {
        const struct replay_step *step = &walk->steps[i];
        if (step->kind != kind || step->op < 0 || p->agents[step->agent].rank != 0)
            continue;
        program_op_subject(p, &p->ops[step->op], step->iteration, subject, sizeof subject);
        snprintf(wanted, sizeof wanted, p->tasks ? "%s(%" PRId64 ")" : "%s", name, iteration);
        if (strcmp(subject, wanted) == 0)
            return (int)i;
    }
    abort();
}

static void set_time(struct replay_step *step, int64_t ns)
{
    step->lo_ns = step->hi_ns = step->key_ns = ns;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_walks(const struct program *program, const char *what)
{
    static struct walk walk;
    int legal = 0, in_pieces = 0, all_taken = 0;
    struct verdict last = {0};
    for (uint64_t seed = 1; seed <= WALKS; seed++) {
        if (!walk_run(&walk, program, seed))
            abort();
        struct verdict whole = judge(&walk, 1, true), parts = judge(&walk, 7, true);
        legal += whole.legal;
        in_pieces += parts.legal;
        all_taken += whole.taken == (int64_t)walk.count;
        last = whole.legal ? parts : whole;
    }
    tap_is_int(legal, WALKS, "%s: walks of the machine are legal", what);
    tap_is_int(in_pieces, WALKS, "%s: also when the log comes in pieces", what);
    tap_is_int(all_taken, WALKS, "%s: every step is taken", what);
    tap_ok(last.observed > 0 && last.observed <= last.taken, "%s: and observed", what);
    if (last.reason[0])
        tap_note("%s", last.reason);
}

static void test_wrong_clock(const struct program *program)
{
    static struct walk walk;
    walk_run(&walk, program, 1);
    int start = find_step(&walk, REPLAY_START, "Meet", 1);
    int before = find_step(&walk, REPLAY_FINISH, "Copy", 1);
    int64_t true_ns = walk.steps[start].hi_ns;
    set_time(&walk.steps[start], walk.steps[before].lo_ns - STEP_NS / 2);
    struct verdict verdict = judge(&walk, 1, true);
    tap_ok(!verdict.legal, "a stream that did not wait for an event is found out");
    tap_ok(strstr(verdict.reason, "started Meet(1)") != NULL, "with the step: %s", verdict.reason);
    walk.steps[start].hi_ns = true_ns;
    tap_ok(judge(&walk, 1, true).legal, "not so when the clock leaves room");
}

/* Of a collective in a function only the span is known. That serves the communicator, not who waits for the function. */
static void test_span(const struct program *program)
{
    static struct walk walk;
    walk_run(&walk, program, 1);
    int start = find_step(&walk, REPLAY_START, "Use", 1);
    int64_t end_ns = walk.steps[find_step(&walk, REPLAY_FINISH, "Meet", 1)].hi_ns;
    for (size_t i = 0; i < walk.count; i++) {
        struct replay_step *step = &walk.steps[i];
        if (step->kind == REPLAY_FINISH && program->ops[step->op].comm >= 0)
            step->lo_ns -= STEP_NS;
    }
    tap_ok(judge(&walk, 1, true).legal, "collectives that may have ended earlier");
    set_time(&walk.steps[start], end_ns - STEP_NS / 2);
    struct verdict verdict = judge(&walk, 1, true);
    tap_ok(!verdict.legal && strstr(verdict.reason, "started Use(1)"),
           "a stream that did not wait for the function is found out: %s", verdict.reason);
}

static void test_missing(const struct program *program)
{
    static struct walk walk;
    walk_run(&walk, program, 2);
    walk.count--;
    tap_ok(judge(&walk, 1, false).legal, "a log that stops early is legal");
    struct verdict verdict = judge(&walk, 1, true);
    tap_ok(!verdict.legal && strstr(verdict.reason, "the run ended"), "but not complete: %s",
           verdict.reason);
    walk_run(&walk, program, 2);
    int retire = 0;
    while (walk.steps[retire].kind != REPLAY_RETIRE)
        retire++;
    walk.steps[retire].iteration = 5;
    verdict = judge(&walk, 1, true);
    tap_ok(!verdict.legal && strstr(verdict.reason, "retired iteration 5"), "a wrong iteration: %s",
           verdict.reason);
}

/* Steps that come behind what was taken are counted by how far, and a wider tolerance is kept. */
static void test_late(const struct program *program)
{
    static struct walk walk;
    walk_run(&walk, program, 1);
    struct replay *replay = replay_open(program, 0, NULL, NULL);
    if (!replay || !replay_add(replay, &walk.steps[0]))
        abort();
    replay_advance(replay, walk.steps[0].hi_ns, 100);
    tap_is_int(replay_late_ns(replay), 0, "no step was late");
    replay_advance(replay, walk.steps[1].hi_ns + 7, 100);
    replay_add(replay, &walk.steps[1]);
    tap_is_int(replay_late_ns(replay), 7, "one was");
    replay_close(replay);
    replay = replay_open(program, 0, NULL, NULL);
    int start = find_step(&walk, REPLAY_START, "Meet", 1);
    int64_t true_ns = walk.steps[start].hi_ns;
    set_time(&walk.steps[start],
             walk.steps[find_step(&walk, REPLAY_FINISH, "Copy", 1)].lo_ns - STEP_NS / 2);
    replay_tolerate(replay, true_ns - walk.steps[start].hi_ns);
    replay_tolerate(replay, 0);
    for (size_t i = 0; i < walk.count; i++)
        replay_add(replay, &walk.steps[i]);
    tap_ok(replay_finish(replay, true), "clocks that are known to differ: %s",
           replay_reason(replay));
    replay_close(replay);
}

static void test_push_order(const struct program *program)
{
    static struct walk walk;
    walk_run(&walk, program, 3);
    int one = find_step(&walk, REPLAY_OP, "Copy", 0), other = -1;
    for (size_t i = 0; i < walk.count && other < 0; i++) /* a push of another thread of the rank */
        if (walk.steps[i].kind == REPLAY_OP && walk.steps[i].number > walk.steps[one].number &&
            walk.steps[i].agent != walk.steps[one].agent &&
            program->agents[walk.steps[i].agent].rank == 0)
            other = (int)i;
    int64_t number = walk.steps[one].number;
    walk.steps[one].number = walk.steps[other].number;
    walk.steps[other].number = number;
    tap_ok(!judge(&walk, 1, true).legal, "the device's order of pushes is the machine's");
}

static int find_group(const struct walk *walk, enum replay_kind kind, int rank)
{
    const struct program *p = walk->program;
    for (size_t i = 0; i < walk->count; i++)
        if (walk->steps[i].kind == kind && p->agents[walk->steps[i].agent].rank == rank &&
            p->ops[walk->steps[i].op].kind == OP_GROUP)
            return (int)i;
    abort();
}

/* A run that was stopped when one side of an exchange had finished: the other side has started, but the
   log does not say so. */
static void test_optional(const struct program *program)
{
    static struct walk walk;
    uint64_t seed = 1;
    do
        walk_run(&walk, program, seed++);
    while (find_group(&walk, REPLAY_FINISH, 1) > find_group(&walk, REPLAY_FINISH, 0));
    int start = find_group(&walk, REPLAY_START, 0);
    struct replay_step step = walk.steps[start];
    walk.count = (size_t)find_group(&walk, REPLAY_FINISH, 1) + 1;
    memmove(&walk.steps[start], &walk.steps[start + 1],
            (--walk.count - (size_t)start) * sizeof *walk.steps);
    tap_ok(!judge(&walk, 1, false).legal,
           "without the other side's start an exchange cannot finish");
    step.optional = true;
    step.hi_ns = step.key_ns = INT64_MAX;
    walk.steps[walk.count++] = step;
    tap_ok(judge(&walk, 1, false).legal, "an unseen start is taken when it is needed");
    step.iteration = 77;
    walk.steps[walk.count - 1] = step;
    tap_ok(!judge(&walk, 1, false).legal, "and not something else in its place");
}

static void test_settle(void)
{
    static const char text[] = "swplan: 1\n"
                               "comms: {pair: [0, 1]}\n"
                               "threads:\n"
                               "  r0.a: [{group: [{send: x, peer: 1}], comm: pair, stream: s}]\n"
                               "  r1.b: [{await: never}]\n";
    struct plan plan;
    char wait[320];
    struct program *program = open_text(text, &plan, NULL);
    struct replay *replay = replay_open(program, 0, NULL, NULL);
    struct replay_step push = {
        .kind = REPLAY_OP, .agent = program_thread_agent(program, 0), .task = -1};
    if (!replay || !replay_add(replay, &push))
        abort();
    tap_ok(replay_finish(replay, false), "a run that hung is legal so far");
    tap_ok(replay_settle(replay), "no agent can go on once the streams have started");
    machine_describe_wait(program, replay_state(replay), program_stream_agent(program, 0), wait,
                          sizeof wait);
    tap_ok(strstr(wait, "waits for rank 1 thread b") != NULL,
           "the machine says for which agent: %s", wait);
    replay_close(replay);
    program_close(program);
    plan_fini(&plan);
}

/* ---- a wait of the host while another thread pushes -------------------------------------------- */

/* A thread says when it calls a wait, the device takes the call later: behind a kernel that hangs, here. */
static void test_settle_wait(void)
{
    static const char text[] = "swplan: 1\n"
                               "threads:\n"
                               "  r0.a: [{sync: stream, stream: s}, {signal: f}]\n"
                               "  r0.b: [{callback: k, stream: s, body: [{await: f}]}]\n";
    enum { SYNC, SIGNAL, CALLBACK };
    struct plan plan;
    struct program *program = open_text(text, &plan, NULL);
    for (int later = 0; later < 2; later++) {
        struct replay *replay = replay_open(program, 0, NULL, NULL);
        struct replay_step call = {.kind = REPLAY_OP,
                                   .agent = program_thread_agent(program, 0),
                                   .op = SYNC,
                                   .task = -1,
                                   .number = -1};
        struct replay_step push = {.kind = REPLAY_OP,
                                   .agent = program_thread_agent(program, 1),
                                   .op = CALLBACK,
                                   .task = -1,
                                   .lo_ns = STEP_NS,
                                   .hi_ns = STEP_NS,
                                   .key_ns = STEP_NS};
        if (!replay || !replay_add(replay, &call) || (later && !replay_add(replay, &push)))
            abort();
        tap_ok(replay_finish(replay, false), "a run that hung is legal so far");
        tap_is_int(replay_settle(replay), later,
                   later ? "a wait that did not end may be for what came behind its call"
                         : "a wait for nothing ends");
        replay_close(replay);
    }
    program_close(program);
    plan_fini(&plan);
}

static void put_step(struct walk *walk, enum replay_kind kind, int agent, int op, int64_t number)
{
    struct replay_step step = {
        .kind = kind, .agent = agent, .op = op, .task = -1, .number = number};
    walk->now_ns += STEP_NS;
    log_step(walk, step);
}

/* The device of this run returns from the wait while the kernel that came meanwhile runs. */
static void test_overtaken(void)
{
    static const char text[] = "swplan: 1\n"
                               "threads:\n"
                               "  r0.a: [{launch: x, stream: s}, {sync: device}]\n"
                               "  r0.b: [{launch: y, stream: t}]\n";
    enum { LAUNCH_X, SYNC, LAUNCH_Y };
    static struct walk walk;
    struct plan plan;
    struct program *program = open_text(text, &plan, NULL);
    const int a = program_thread_agent(program, 0), b = program_thread_agent(program, 1);
    const int s = program_stream_agent(program, 0), t = program_stream_agent(program, 1);
    walk = (struct walk){.program = program};
    put_step(&walk, REPLAY_OP, a, LAUNCH_X, 0);
    put_step(&walk, REPLAY_START, s, LAUNCH_X, 0);
    put_step(&walk, REPLAY_OP, a, SYNC, -1); /* the call */
    const size_t call = walk.count - 1;
    put_step(&walk, REPLAY_OP, b, LAUNCH_Y, 1);
    put_step(&walk, REPLAY_START, t, LAUNCH_Y, 1);
    const size_t start = walk.count - 1;
    put_step(&walk, REPLAY_FINISH, s, LAUNCH_X, 0);
    put_step(&walk, REPLAY_OP, a, SYNC, -1);
    put_step(&walk, REPLAY_FINISH, t, LAUNCH_Y, 1);
    struct verdict verdict = judge(&walk, 1, true);
    tap_ok(verdict.legal, "a wait for the device ends while what came behind its call runs: %s",
           verdict.reason);
    set_time(&walk.steps[call], walk.steps[start].hi_ns + 1);
    tap_ok(!judge(&walk, 1, true).legal, "not while what came before its call does");
    program_close(program);
    plan_fini(&plan);
}

/* ---- the order of pushes and waits that the clock leaves open ------------------------------------------------ */

/* A log by hand: a host step, a push with its number, or a start or finish on the stream of `op`. Questions are answered
   with no. */
struct line {
    enum replay_kind kind;
    int thread, op, number;
    int64_t lo_ns, hi_ns;
};

static struct verdict judge_log(const char *text, const struct line *log, size_t count)
{
    static struct walk walk;
    struct plan plan;
    struct program *program = open_text(text, &plan, NULL);
    walk = (struct walk){.program = program};
    for (size_t i = 0; i < count; i++) {
        int agent = log[i].kind == REPLAY_OP
                        ? program_thread_agent(program, log[i].thread)
                        : program_stream_agent(program, program->ops[log[i].op].stream);
        put_step(&walk, log[i].kind, agent, log[i].op, log[i].number);
        struct replay_step *step = &walk.steps[i];
        step->lo_ns = log[i].lo_ns;
        step->hi_ns = log[i].hi_ns;
        step->no = log[i].kind == REPLAY_OP && op_asks(program->ops[log[i].op].kind);
        step->key_ns = log[i].kind == REPLAY_START ? log[i].lo_ns : log[i].hi_ns;
    }
    struct verdict verdict = judge(&walk, 1, true);
    program_close(program);
    plan_fini(&plan);
    return verdict;
}

/* `x` and `z` are pushed by calls that return long after their effect. Something on the device of `x` says how early
   that was; `z`, on another rank, must not be taken as early for it, for a wait that did not see it. */
static void test_late_return(bool by_push)
{
    static const char text[] = "swplan: 1\n"
                               "threads:\n"
                               "  r0.a: [{launch: x, stream: s}]\n"
                               "  r0.b: [{launch: y, stream: t}]\n"
                               "  r1.c: [{launch: z, stream: s}]\n"
                               "  r1.d: [{sync: device}]\n";
    enum { X, Y, Z, SYNC };
    const int64_t x_ns = by_push ? 950 : 200;
    const struct line log[] = {{REPLAY_OP, 0, X, 0, 100, 900},
                               {REPLAY_OP, 1, Y, 1, 200, by_push ? 300 : 910},
                               {REPLAY_OP, 2, Z, 0, 100, 800},
                               {REPLAY_OP, 3, SYNC, -1, 500, 500},
                               {REPLAY_OP, 3, SYNC, -1, 500, 600},
                               {REPLAY_START, 0, X, 0, x_ns, x_ns + 10},
                               {REPLAY_FINISH, 0, X, 0, x_ns + 10, x_ns + 10},
                               {REPLAY_START, 0, Y, 1, 970, 980},
                               {REPLAY_FINISH, 0, Y, 1, 980, 980},
                               {REPLAY_START, 0, Z, 0, 850, 950},
                               {REPLAY_FINISH, 0, Z, 0, 950, 950}};
    struct verdict verdict = judge_log(text, log, sizeof log / sizeof log[0]);
    tap_ok(verdict.legal, "a call that returned late, behind %s: %s",
           by_push ? "the next push" : "the start of what it pushed", verdict.reason);
}

/* `w` is pushed behind `z`. Where the clock has it before the wait's call, so was `z`, whenever its call returned; and
   a wait that ended before `z` did is found out, whichever order is tried. */
static void test_no_order(int64_t w_ns, bool legal)
{
    static const char text[] = "swplan: 1\n"
                               "threads:\n"
                               "  r0.c: [{launch: z, stream: s}]\n"
                               "  r0.e: [{launch: w, stream: t}]\n"
                               "  r0.d: [{sync: device}]\n";
    enum { Z, W, SYNC };
    const struct line log[] = {
        {REPLAY_OP, 0, Z, 0, 100, 800},     {REPLAY_OP, 1, W, 1, w_ns, w_ns},
        {REPLAY_OP, 2, SYNC, -1, 500, 500}, {REPLAY_OP, 2, SYNC, -1, 500, 600},
        {REPLAY_START, 0, Z, 0, 850, 950},  {REPLAY_FINISH, 0, Z, 0, 950, 950},
        {REPLAY_START, 0, W, 1, 970, 980},  {REPLAY_FINISH, 0, W, 1, 980, 980}};
    struct verdict verdict = judge_log(text, log, sizeof log / sizeof log[0]);
    tap_ok(verdict.legal == legal, "a wait that ended before what was pushed %s its call: %s",
           legal ? "behind" : "before", verdict.reason);
}

/* The last record before the call is the one that is waited for; the call that made it returned later. */
static void test_late_record(int64_t y_end_ns, bool legal)
{
    static const char text[] =
        "swplan: 1\n"
        "threads:\n"
        "  r0.a: [{launch: x, stream: s}, {record: e, stream: s}, {signal: f}]\n"
        "  r0.b: [{launch: y, stream: t}, {await: f}, {record: e, stream: t}]\n"
        "  r0.c: [{await: f}, {sync: event, event: e}]\n";
    enum { X, RECORD_X, SIGNAL, Y, AWAIT_B, RECORD_Y, AWAIT_C, SYNC };
    const struct line log[] = {{REPLAY_OP, 0, X, 0, 100, 100},
                               {REPLAY_OP, 0, RECORD_X, 2, 120, 120},
                               {REPLAY_OP, 0, SIGNAL, -1, 130, 130},
                               {REPLAY_OP, 1, Y, 1, 110, 110},
                               {REPLAY_OP, 1, AWAIT_B, -1, 140, 140},
                               {REPLAY_OP, 1, RECORD_Y, 3, 200, 800},
                               {REPLAY_OP, 2, AWAIT_C, -1, 140, 140},
                               {REPLAY_OP, 2, SYNC, -1, 500, 500},
                               {REPLAY_OP, 2, SYNC, -1, 500, 600},
                               {REPLAY_START, 0, X, 0, 105, 900},
                               {REPLAY_FINISH, 0, X, 0, 900, 900},
                               {REPLAY_START, 0, Y, 1, 115, y_end_ns},
                               {REPLAY_FINISH, 0, Y, 1, y_end_ns, y_end_ns}};
    struct verdict verdict = judge_log(text, log, sizeof log / sizeof log[0]);
    tap_ok(verdict.legal == legal, "a wait for an event that ended %s both records: %s",
           legal ? "between" : "before", verdict.reason);
}

/* A start that is seen while its work goes on has no latest time. A question that was asked behind what the start led to
   does not come before the start. */
static void test_late_questions(void)
{
    static const char of_device[] = "swplan: 1\n"
                                    "threads:\n"
                                    "  r0.a: [{launch: x, stream: s}]\n"
                                    "  r0.b: [{launch: y, stream: t}, {sync: stream, stream: t}]\n"
                                    "  r0.c: [{query: device, else: []}]\n";
    static const char of_flag[] = "swplan: 1\n"
                                  "flags: {f: {}}\n"
                                  "threads:\n"
                                  "  r0.a: [{write: f, stream: s}]\n"
                                  "  r0.b: [{await: f}, {clear: f}]\n"
                                  "  r0.c: [{query: flag, flag: f, else: []}]\n";
    enum { X, Y, SYNC, ASK, WRITE = 0, AWAIT, CLEAR, ASK_FLAG };
    const struct line device_log[] = {
        {REPLAY_OP, 0, X, 0, 100, 100},          {REPLAY_OP, 1, Y, 1, 110, 110},
        {REPLAY_OP, 1, SYNC, -1, 150, 210},      {REPLAY_OP, 2, ASK, -1, 500, 510},
        {REPLAY_START, 0, X, 0, 105, INT64_MAX}, {REPLAY_FINISH, 0, X, 0, 900, 900},
        {REPLAY_START, 0, Y, 1, 115, INT64_MAX}, {REPLAY_FINISH, 0, Y, 1, 200, 200},
    };
    const struct line flag_log[] = {
        {REPLAY_OP, 0, WRITE, 0, 100, 100},          {REPLAY_OP, 1, AWAIT, -1, 200, 200},
        {REPLAY_OP, 1, CLEAR, -1, 210, 210},         {REPLAY_OP, 2, ASK_FLAG, -1, 500, 510},
        {REPLAY_START, 0, WRITE, 0, 105, INT64_MAX}, {REPLAY_FINISH, 0, WRITE, 0, 300, 300},
    };
    struct verdict verdict =
        judge_log(of_device, device_log, sizeof device_log / sizeof device_log[0]);
    tap_ok(verdict.legal, "a question about the device, behind what ended: %s", verdict.reason);
    verdict = judge_log(of_flag, flag_log, sizeof flag_log / sizeof flag_log[0]);
    tap_ok(verdict.legal, "a question about a flag, behind its being cleared: %s", verdict.reason);
}

/* A thread that is held up behind a push goes on just before its next step. */
static void hold_up(struct walk *walk, uint64_t seed)
{
    for (size_t i = 0; i < walk->count; i++) {
        struct replay_step *step = &walk->steps[i];
        size_t next = i + 1;
        while (next < walk->count && walk->steps[next].agent != step->agent)
            next++;
        if (step->kind == REPLAY_OP && step->number >= 0 && hash_mix(seed + i) % 3 > 0)
            step->hi_ns = step->key_ns =
                next < walk->count ? walk->steps[next].lo_ns - 1 : walk->now_ns + STEP_NS;
    }
}

/* Threads that wait for a device to which others push. With early ends of its waits no order is left. */
static void test_held_up(const struct program *program)
{
    static struct walk walk;
    int legal = 0, in_pieces = 0, all_observed = 0, found_out = 0, early = 0;
    struct verdict last = {0};
    for (uint64_t seed = 1; seed <= HELD_UP_WALKS; seed++) {
        if (!walk_run(&walk, program, seed))
            abort();
        hold_up(&walk, seed);
        struct verdict whole = judge(&walk, 1, true), parts = judge(&walk, 7, true);
        legal += whole.legal;
        in_pieces += parts.legal;
        all_observed += whole.observed == whole.taken && parts.observed == whole.taken;
        if (!whole.legal || !parts.legal)
            last = whole.legal ? parts : whole;
        for (size_t i = walk.count;
             i-- > 0;) { /* the last operation of a stream, and the wait behind it */
            struct replay_step *step = &walk.steps[i];
            if (step->kind != REPLAY_FINISH || program->ops[step->op].name < 0)
                continue;
            step->lo_ns = step->hi_ns = step->key_ns = walk.now_ns + STEP_NS;
            break;
        }
        found_out += !judge(&walk, 1, true).legal;
        early++;
    }
    tap_is_int(legal, HELD_UP_WALKS, "walks with threads held up behind their pushes are legal");
    tap_is_int(in_pieces, HELD_UP_WALKS, "also in pieces");
    tap_is_int(all_observed, HELD_UP_WALKS, "each step is observed once");
    tap_is_int(found_out, early,
               "a wait at the end that had ended before the last operation is found out");
    if (last.reason[0])
        tap_note("%s", last.reason);
}

static void test_program(const char *text, const char *what, enum driver driver)
{
    struct plan plan;
    const struct program_options options = {.driver = driver, .iterations = 4};
    struct program *program = open_text(text, &plan, &options);
    test_walks(program, what);
    if (driver != DRIVER_NONE) {
        test_wrong_clock(program);
        test_span(program);
        test_missing(program);
        test_late(program);
        test_push_order(program);
    } else if (text == WAITS) {
        test_held_up(program);
    } else {
        test_optional(program);
    }
    program_close(program);
    plan_fini(&plan);
}

int main(void)
{
    test_program(PIPELINE, "clock", DRIVER_CLOCK);
    test_program(PIPELINE, "data-flow", DRIVER_DATAFLOW);
    test_program(THREADS, "host program", DRIVER_NONE);
    test_program(WAITS, "waits", DRIVER_NONE);
    test_settle();
    test_settle_wait();
    test_overtaken();
    test_late_return(true);
    test_late_return(false);
    test_no_order(300, false);
    test_no_order(840, true);
    test_late_record(550, true);
    test_late_record(650, false);
    test_late_questions();
    return tap_done();
}
