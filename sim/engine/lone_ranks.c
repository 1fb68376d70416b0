/* SPDX-License-Identifier: Apache-2.0 */
/* lone_ranks.c - see lone_ranks.h. */
#include "lone_ranks.h"

#include <stdlib.h>
#include <string.h>

#include "memo.h"
#include "base/assert_index.h"

/* So many iterations a rank may be ahead of others, where no collective holds it. Ranks with the same times share a memo, and
   memos take memory: ranks with times of more kinds are simulated together. */
enum { LONE_AHEAD = 1024, LONE_KINDS = 8 };

/* An operation of a collective as long as some rank has yet to come to it. */
struct gathering {
    int come, op;
    int64_t iteration, last_ns, longest_ns;
};

struct lone_rank {
    struct lone_ranks *all;
    struct simulation sim;
    struct simulate_options options;
    struct timing timing;
    const struct simulation *fellow; /* the first of its kind; NULL: this one is */
    struct coming {
        int64_t came_ns;
        int64_t
            due_ns; /* it is over not before; INT64_MAX: it is at no operation, or all have come */
        bool
            sudden; /* all have come, and it is over then, unless the rank does something else at that time */
    } * comings;      /* per communicator */
    int64_t *peer_ns; /* per stream: waited for others */
    bool prepared;
};

struct lone_ranks {
    const struct program *whole;
    struct program *one;
    struct lone_rank *ranks;
    struct lone_rank *kinds[LONE_KINDS]; /* the first ranks with their times */
    int kind_count;
    struct gathering *gatherings; /* per communicator */
    struct iterations iterations;
    struct in_flight in_flight;   /* on rank 0 */
    struct stream_account *known; /* struct stalls */
    struct arena arena;
    int *agents; /* those of rank r: agents[places[agent_count] * r ..], in their order */
    int *
        places; /* per agent of the one program: its place in this order; behind them how many there are */
    int64_t met;
    bool given_up;
};

/* ---- gatherings --------------------------------------------------------------------------------- */

static void lone_rank_look_ahead(struct lone_rank *rank)
{
    rank->sim.horizon_ns = INT64_MAX;
    for (int c = 0; c < rank->all->one->comm_count; c++)
        rank->sim.horizon_ns = min_i64(rank->sim.horizon_ns, rank->comings[c].due_ns);
}

static void lone_rank_retime(struct lone_rank *rank, int comm, int64_t end_ns)
{
    events_retime(&rank->sim.clocks.events, program_comm_agent(rank->all->one, comm), end_ns);
}

/* What takes no time ends when the last rank comes, behind all that others do at that time: these do not know yet whether
   they do anything then. */
static void lone_ranks_meet(struct lone_ranks *all, int comm)
{
    struct gathering *gathering = &all->gatherings[comm];
    const int64_t end_ns = gathering->last_ns + gathering->longest_ns;
    for (int r = 0; r < all->whole->ranks; r++) {
        struct lone_rank *rank = &all->ranks[r];
        struct coming *coming = &rank->comings[comm];
        rank->peer_ns[all->one->ops[gathering->op].stream] += gathering->last_ns - coming->came_ns;
        coming->sudden = gathering->longest_ns == 0 && coming->came_ns < end_ns;
        if (coming->sudden || coming->due_ns != end_ns)
            lone_rank_retime(rank, comm, end_ns + coming->sudden);
        coming->due_ns = coming->sudden ? end_ns : INT64_MAX;
        lone_rank_look_ahead(rank);
    }
    all->met++;
    *gathering = (struct gathering){0};
}

/* The rank has come to where a collective ends suddenly. False: with something else. */
static bool lone_rank_sees(struct lone_rank *rank)
{
    for (int c = 0; c < rank->all->one->comm_count; c++) {
        struct coming *coming = &rank->comings[c];
        if (!coming->sudden || coming->due_ns != rank->sim.horizon_ns)
            continue;
        if (events_next_ns(&rank->sim.clocks.events) <= coming->due_ns)
            return false;
        lone_rank_retime(rank, c, coming->due_ns);
        *coming = (struct coming){.due_ns = INT64_MAX};
        lone_rank_look_ahead(rank);
        return true;
    }
    return true;
}

void lone_rank_comes(struct simulation *sim, int op, int64_t iteration, int64_t ns)
{
    struct lone_rank *rank = sim->lone;
    struct lone_ranks *all = rank->all;
    ASSERT_INDEX(op, all->one->op_count);
    const int comm = all->one->ops[op].comm;
    struct gathering *gathering = &all->gatherings[comm];
    if (gathering->come == 0)
        *gathering = (struct gathering){.op = op, .iteration = iteration};
    all->given_up |= gathering->op != op || gathering->iteration != iteration;
    gathering->last_ns = max_i64(gathering->last_ns, sim->now_ns);
    gathering->longest_ns = max_i64(gathering->longest_ns, ns);
    rank->comings[comm] = (struct coming){sim->now_ns, sim->now_ns + ns, false};
    sim->horizon_ns = min_i64(sim->horizon_ns, sim->now_ns + ns);
    if (++gathering->come == all->whole->ranks)
        lone_ranks_meet(all, comm);
}

/* ---- one program for all ---------------------------------------------------------------------- */

/* True if the tasks of two ranks differ in their times at most. An override starts as a copy of the task of all ranks, so
   bytes are compared, whatever members a task has; a list that is stated again counts as another one. */
static bool lone_ranks_do_same(const struct task *own, const struct task *usual)
{
    struct task timed;
    memcpy(&timed, own, sizeof timed);
#define AS_USUAL(member) memcpy(&timed.member, &usual->member, sizeof timed.member)
    AS_USUAL(mark);
    AS_USUAL(time_ns);
    AS_USUAL(host_time_ns);
    AS_USUAL(host_after_ns);
    AS_USUAL(jitter);
    AS_USUAL(host_jitter);
    AS_USUAL(work.time_ns);
#undef AS_USUAL
    return memcmp(&timed, usual, sizeof timed) == 0;
}

/* True if the ranks differ in their times at most, and each meets the others as if it were alone. */
static bool lone_ranks_meet_alone(const struct plan *plan)
{
    struct plan usual = *plan;
    const struct pipeline *pipeline = &plan->pipeline;
    usual.pipeline.override_count = 0;
    for (size_t i = 0; i < pipeline->override_count; i++) {
        const struct task *own = pipeline->overrides[i].tasks;
        if (pipeline->overrides[i].has_order)
            return false;
        for (size_t t = 0; own && t < pipeline->task_count; t++)
            if (!lone_ranks_do_same(&own[t], &pipeline->tasks[t]))
                return false;
    }
    return plan_ranks_meet_alone(&usual);
}

/* True if nothing else of the simulation asks for the ranks together. */
static bool lone_ranks_may(const struct program *p, const struct simulate_options *options)
{
    const struct simulate_observer *observer = options->observer;
    return p->tasks > 0 && p->ranks > 1 && !options->forgetful &&
           p->plan->machine.launch_latency_ns == 0 && lone_ranks_meet_alone(p->plan) &&
           !(observer &&
             (observer->span || observer->work || observer->iteration || observer->step));
}

static int lone_rank_lock(const struct lone_ranks *all, int rank, int lock)
{
    return rank * all->one->lock_count + lock;
}

/* True if the bodies of a rank are those of the program of one rank. */
static bool lone_rank_is_alike(const struct lone_ranks *all, int rank)
{
    const struct program *p = all->whole, *one = all->one;
    const int streams = one->rank_first[1] - one->rank_first[0];
    if (p->rank_first[rank + 1] - p->rank_first[rank] != streams || p->ends[rank] != one->ends[0])
        return false;
    for (int task = 0; task < p->tasks; task++) {
        const struct body *mine = &p->bodies[rank * p->tasks + task], *its = &one->bodies[task];
        if (mine->count != its->count)
            return false;
        for (int i = 0; i < mine->count; i++) {
            const struct op *op = &p->ops[mine->first + i], *alike = &one->ops[its->first + i];
            if (op->kind != alike->kind || op->comm != alike->comm ||
                (op_operand(op->kind) == OPERAND_LOCK &&
                 op->object != lone_rank_lock(all, rank, alike->object)))
                return false;
        }
    }
    return true;
}

static bool lone_ranks_have_same_times(const struct lone_rank *a, const struct lone_rank *b)
{
    bool same = true;
    for (size_t i = 0; same && i < a->all->one->op_count; i++)
        same = a->timing.ops[i].mean_ns == b->timing.ops[i].mean_ns &&
               (a->timing.ops[i].draw < 0) == (b->timing.ops[i].draw < 0);
    return same;
}

/* The kind of a rank whose times are known. */
static void lone_rank_find_kind(struct lone_rank *rank)
{
    struct lone_ranks *all = rank->all;
    for (int k = 0; k < all->kind_count && !rank->fellow; k++)
        if (lone_ranks_have_same_times(all->kinds[k], rank))
            rank->fellow = &all->kinds[k]->sim;
    if (!rank->fellow && all->kind_count < LONE_KINDS)
        all->kinds[all->kind_count++] = rank;
    else
        all->given_up |= !rank->fellow;
}

/* The durations of a rank, drawn as if it were among the others. */
static bool lone_rank_time(struct lone_rank *rank, const struct timing *timing, int number)
{
    const struct program *p = rank->all->whole, *one = rank->all->one;
    struct timing *own = &rank->timing;
    own->program = one;
    own->copied = true; /* the arena has it */
    own->ops = ARENA_ARRAY(&rank->all->arena, one->op_count, struct op_time);
    own->variation = ARENA_ARRAY(&rank->all->arena, one->op_count, struct op_variation);
    for (int task = 0; !rank->all->arena.failed && task < p->tasks; task++) {
        const struct body *mine = &p->bodies[number * p->tasks + task], *its = &one->bodies[task];
        for (int i = 0; i < mine->count; i++) {
            struct op_time *time = &own->ops[its->first + i];
            *time = timing->ops[mine->first + i];
            if (time->draw < 0)
                continue;
            own->variation[own->draw_count] = timing->variation[time->draw];
            time->draw = own->draw_count++;
        }
    }
    return !rank->all->arena.failed;
}

static enum status lone_rank_open(struct lone_ranks *all, const struct timing *timing,
                                  const struct simulate_options *options, int number,
                                  struct diag *diag)
{
    struct lone_rank *rank = &all->ranks[number];
    rank->all = all;
    rank->options = *options;
    rank->options.observer = number == 0 ? options->observer : NULL;
    rank->options.in_flight = number == 0 && options->in_flight ? &all->in_flight : NULL;
    rank->comings = ARENA_ARRAY(&all->arena, (size_t)all->one->comm_count + 1, struct coming);
    rank->peer_ns = ARENA_ARRAY(&all->arena, (size_t)all->one->stream_count + 1, int64_t);
    if (!lone_rank_time(rank, timing, number))
        return diag_no_memory(diag);
    lone_rank_find_kind(rank);
    for (int c = 0; c < all->one->comm_count; c++)
        rank->comings[c].due_ns = INT64_MAX;
    rank->prepared = true;
    const enum status status = prepare(&rank->sim, all->one, &rank->timing, &rank->options, diag);
    for (int a = 0; status == STATUS_OK && a < all->one->agent_count; a++) {
        const struct agent *agent = &all->one->agents[a];
        const bool timed =
            agent->kind == AGENT_STREAM || agent->kind == AGENT_COMM ||
            (agent->kind == AGENT_THREAD && all->one->threads[agent->index].kind != THREAD_DRIVER);
        if (timed && !events_place(&rank->sim.clocks.events, a))
            return diag_no_memory(diag);
    }
    rank->sim.stalls.known = all->known;
    rank->sim.lone = rank;
    rank->sim.rank = number;
    rank->sim.pipeline.over = &all->iterations;
    all->given_up |= rank->sim.clocks.sharing != NULL;
    return status;
}

/* ---- the run ---------------------------------------------------------------------------------- */

/* The ranks go on as far as they can. False: not one can, or one has failed. */
static bool lone_ranks_go_on(struct lone_ranks *all, bool *over)
{
    int64_t slowest = INT64_MAX;
    bool moved = false;
    *over = true;
    for (int r = 0; r < all->whole->ranks; r++)
        slowest = min_i64(slowest, all->ranks[r].sim.pipeline.newest);
    for (int r = 0; r < all->whole->ranks; r++) {
        struct simulation *sim = &all->ranks[r].sim;
        sim->most = slowest + LONE_AHEAD;
        moved |= sim->clocks.events.count > 0 && !simulation_pauses(sim);
        simulate_go_on(sim);
        if (sim->status == STATUS_OK)
            all->given_up |= !lone_rank_sees(&all->ranks[r]);
        moved |= sim->clocks.events.count > 0 && !simulation_pauses(sim);
        if (sim->status != STATUS_OK || all->given_up)
            return false;
        *over &= sim->clocks.events.count == 0;
    }
    return moved;
}

static enum status lone_ranks_status(const struct lone_ranks *all)
{
    enum status status = STATUS_OK;
    for (int r = 0; status == STATUS_OK && r < all->whole->ranks; r++)
        status = all->ranks[r].sim.status;
    return status;
}

/* False: they cannot be simulated alone after all. */
static bool lone_ranks_simulate(struct lone_ranks *all)
{
    bool over = false;
    for (int r = 0; r < all->whole->ranks; r++)
        simulate_begin(&all->ranks[r].sim, all->ranks[r].fellow);
    while (!over && lone_ranks_go_on(all, &over))
        ;
    for (int r = 0; over && r < all->whole->ranks; r++)
        over = machine_done(all->one, all->ranks[r].sim.state);
    return over;
}

/* ---- the figures of all ------------------------------------------------------------------------ */

/* The same agent of the program of all ranks. */
static int lone_rank_agent(const struct lone_ranks *all, int rank, int agent)
{
    const struct program *one = all->one;
    ASSERT_INDEX(agent, one->agent_count);
    if (one->agents[agent].kind == AGENT_COMM)
        return program_comm_agent(all->whole, one->agents[agent].index);
    return one->agents[agent].rank < 0
               ? agent
               : all->agents[rank * all->places[one->agent_count] + all->places[agent]];
}

static struct stall lone_rank_stall(const struct lone_ranks *all, int rank, struct stall stall)
{
    const enum held held = (enum held)(stall.on % HELD_KINDS);
    const int object = stall.on / HELD_KINDS;
    if (stall.on < 0 && stall.on != STALL_ON_NONE)
        stall.on = ~lone_rank_agent(all, rank, ~stall.on);
    else if (stall.cause == STALL_RESOURCE && stall.on >= 0 && held == HELD_LOCK)
        stall = stall_for_resource(held, lone_rank_lock(all, rank, object));
    else if (stall.cause == STALL_RESOURCE && stall.on >= 0 && held != HELD_COMM)
        stall = stall_for_resource(held, lone_rank_agent(all, rank, object));
    return stall;
}

static bool lone_rank_account(const struct lone_ranks *all, int number, int stream,
                              struct stream_account *out)
{
    const struct lone_rank *rank = &all->ranks[number];
    ASSERT_INDEX(stream, rank->sim.result.stream_count);
    const struct stream_account *own = &rank->sim.result.streams[stream];
    const struct stall peer = {STALL_PEER, STALL_ON_NONE};
    out->busy_ns = own->busy_ns - rank->peer_ns[stream];
    for (int i = 0; i < own->blame_count; i++) {
        const struct stall stall = lone_rank_stall(all, number, own->blames[i].stall);
        if (!stream_account_blame(out, &stall, own->blames[i].ns))
            return false;
    }
    if (!stream_account_blame(out, &peer, rank->peer_ns[stream]))
        return false;
    stream_account_finish(out);
    return true;
}

/* Every rank's simulation goes on idly up to the end of all. False: memory is exhausted. */
static bool lone_ranks_sum_up(struct lone_ranks *all, struct simulation_result *out)
{
    const struct program *p = all->whole, *one = all->one;
    int64_t admitted_ns = 0;
    *out = (struct simulation_result){.stream_count = p->stream_count};
    out->streams = calloc((size_t)p->stream_count + 1, sizeof *out->streams);
    for (int r = 0; r < p->ranks; r++)
        out->makespan_ns = max_i64(out->makespan_ns, all->ranks[r].sim.now_ns);
    for (int r = 0; out->streams && r < p->ranks; r++) {
        struct simulation *sim = &all->ranks[r].sim;
        sim->now_ns = out->makespan_ns;
        account_close(sim);
        for (int s = 0; s < one->stream_count; s++) {
            const int agent = lone_rank_agent(all, r, program_stream_agent(one, s));
            if (!lone_rank_account(all, r, s, &out->streams[p->agents[agent].index]))
                return false;
        }
        out->steps += sim->result.steps;
        out->looks += sim->result.looks;
        out->tasks += sim->result.tasks;
        out->violated |= sim->result.violated;
        out->in_flight_ns += sim->result.in_flight_ns;
        out->in_flight_max = max_i64(out->in_flight_max, sim->result.in_flight_max);
        admitted_ns = max_i64(admitted_ns, sim->pipeline.last_admission_ns);
    }
    out->steps -= all->met * (p->ranks - 1); /* the end of a collective is one step */
    out->in_flight_bytes_max = program_bytes(p, out->in_flight_max);
    iterations_figures(&all->iterations, &out->iteration);
    out->fill_ns = all->iterations.first_over_ns;
    out->drain_ns = out->makespan_ns - admitted_ns;
    return out->streams;
}

/* ---- all of it --------------------------------------------------------------------------------- */

/* Where the agents of the one program are among those of all. False: they differ, or memory is exhausted. */
static bool lone_ranks_find_agents(struct lone_ranks *all)
{
    const struct program *p = all->whole, *one = all->one;
    int count = 0, *found = ARENA_ARRAY(&all->arena, (size_t)p->ranks + 1, int);
    all->places = ARENA_ARRAY(&all->arena, (size_t)one->agent_count + 1, int);
    for (int agent = 0; all->places && agent < one->agent_count; agent++)
        all->places[agent] = one->agents[agent].rank < 0 ? -1 : count++;
    all->agents = ARENA_ARRAY(&all->arena, (size_t)count * (size_t)p->ranks + 1, int);
    if (all->arena.failed)
        return false;
    all->places[one->agent_count] = count;
    for (int agent = 0; agent < p->agent_count; agent++) {
        const int rank = p->agents[agent].rank;
        if (rank >= 0 && found[rank] < count)
            all->agents[rank * count + found[rank]] = agent;
        found[rank < 0 ? p->ranks : rank]++;
    }
    for (int rank = 0; rank < p->ranks; rank++)
        if (found[rank] != count || !lone_rank_is_alike(all, rank))
            return false;
    for (int agent = 0; agent < one->agent_count; agent++)
        for (int rank = 0; rank < p->ranks; rank++)
            if (p->agents[lone_rank_agent(all, rank, agent)].kind != one->agents[agent].kind)
                return false;
    return one->comm_count == p->comm_count;
}

static enum status lone_ranks_open(struct lone_ranks *all, const struct timing *timing,
                                   const struct simulate_options *options, struct diag *diag)
{
    const struct program *p = all->whole;
    struct program_options how = p->options;
    how.ranks = how.few = 1;
    how.stands_for = p->ranks;
    how.no_knowledge = true;
    enum status status = program_build(p->plan, &how, &all->one, diag);
    if (status != STATUS_OK)
        return status;
    all->given_up = !lone_ranks_find_agents(all);
    all->ranks = ARENA_ARRAY(&all->arena, (size_t)p->ranks, struct lone_rank);
    all->known =
        ARENA_ARRAY(&all->arena, (size_t)all->one->stream_count + 1, struct stream_account);
    all->gatherings = ARENA_ARRAY(&all->arena, (size_t)p->comm_count + 1, struct gathering);
    if (all->arena.failed ||
        !iterations_init(&all->iterations, p->ends, p->ranks, p->depth, options->seed))
        return diag_no_memory(diag);
    for (int r = 0; r < p->ranks && !all->given_up && status == STATUS_OK; r++)
        status = lone_rank_open(all, timing, options, r, diag);
    return status;
}

static void lone_ranks_close(struct lone_ranks *all)
{
    for (int r = 0; all->ranks && r < all->whole->ranks; r++)
        if (all->ranks[r].prepared) {
            prepare_free(&all->ranks[r].sim);
            simulation_fini(&all->ranks[r].sim.result);
        }
    for (int s = 0; all->known && s < all->one->stream_count; s++)
        stream_account_free(&all->known[s]);
    iterations_fini(&all->iterations);
    if (all->one)
        program_close(all->one);
    arena_fini(&all->arena);
}

enum status lone_ranks_run(const struct program *program, const struct timing *timing,
                           const struct simulate_options *options, struct simulation_result *out,
                           bool *done, struct diag *diag)
{
    struct lone_ranks all = {.whole = program};
    struct simulation_result result = {0};
    *done = false;
    if (!lone_ranks_may(program, options))
        return STATUS_OK;
    arena_init(&all.arena, 0);
    enum status status = lone_ranks_open(&all, timing, options, diag);
    if (status == STATUS_OK && !all.given_up) {
        *done = lone_ranks_simulate(&all);
        status = lone_ranks_status(&all);
    }
    if (status == STATUS_OK && *done && !lone_ranks_sum_up(&all, &result))
        status = diag_no_memory(diag);
    if (status == STATUS_OK && *done && options->in_flight)
        *options->in_flight = all.in_flight;
    lone_ranks_close(&all);
    if (status == STATUS_OK && *done)
        *out = result;
    else
        simulation_fini(&result);
    return status;
}
