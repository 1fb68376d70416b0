/* SPDX-License-Identifier: Apache-2.0 */
/*
 * observe.c - see observe.h.
 *
 * It is a simulation whose clock is the log: the tables beside the state are the simulator's
 * (simulation.h), but nothing is drawn and no event is due. Only the pipeline form is replayed here,
 * whose streams' causes need the instances in hand and how many of each task were submitted.
 */
#include "observe.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert_index.h"
#include "base/table.h"
#include "simulation.h"

enum { NAME = 160 };

struct observation {
    struct simulation sim;
    struct trace *trace;
    const char *
        *names; /* per agent: the trace's copy of its name; NULL: it is neither thread nor stream */
    struct table by_name; /* agents, by the addresses of those */
    struct now {
        struct stall doing; /* cause STALL_BUSY: work */
        int64_t since_ns;
    } * lanes; /* per stream */
    struct observed result;
    observe_watcher *watcher;
    void *context;
};

/* ---- names ----------------------------------------------------------------------------------- */

static bool observe_index_names(struct observation *seen)
{
    const struct program *p = seen->sim.program;
    char text[NAME];
    for (int agent = 0; agent < p->agent_count; agent++) {
        if (p->agents[agent].kind != AGENT_THREAD && p->agents[agent].kind != AGENT_STREAM)
            continue;
        const char *name =
            trace_intern(seen->trace, program_agent_name(p, agent, text, sizeof text));
        seen->names[agent] = name;
        if (!name || !table_add(&seen->by_name, table_hash_pointer(name), (size_t)agent))
            return false;
    }
    return true;
}

/* The agent that takes this step in the machine: a collective's end is its communicator's. -1: none. */
static int stepping_agent(const struct observation *seen, const struct trace_step *step)
{
    const struct simulation *sim = &seen->sim;
    const struct program *p = sim->program;
    const uint32_t found = TABLE_FIND(&seen->by_name, table_hash_pointer(step->agent), i,
                                      seen->names[i] == step->agent);
    if (found == TABLE_NONE)
        return -1;
    int64_t iteration;
    int agent = (int)found, op = machine_current_op(p, sim->state, agent, &iteration);
    if (p->agents[agent].kind == AGENT_STREAM && op >= 0 && op_ends_together(p->ops[op].kind) &&
        machine_stream_running(p, sim->state, p->agents[agent].index))
        agent = program_comm_agent(p, p->ops[op].comm);
    return machine_agent_enabled(p, sim->state, agent) ? agent : -1;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* The work that a thread has in hand and has submitted, for idle_cause.c. */
static void note_thread(struct simulation *sim, int agent, int op, const struct effect *effect)
{
    const struct program *p = sim->program;
    ASSERT_INDEX(agent, p->agent_count);
    int thread = p->agents[agent].index, rank = p->agents[agent].rank;
    if (p->threads[thread].kind != THREAD_WORKER)
        return;
    if (op < 0) { /* it has taken an instance; not every operation of the body names its task */
        for (op = effect->op; p->ops[op].task < 0;)
            op++;
        sim->pipeline.hands[thread] =
            (struct hand){.task = p->ops[op].task, .iteration = effect->iteration};
    } else if (program_records_task(&p->ops[op])) {
        sim->pipeline.submitted[rank * p->tasks + p->ops[op].task]++;
    } else if (op_ends_submission(p->ops[op].kind)) {
        sim->pipeline.hands[thread].task = -1;
    }
}

static enum status observe_take_step(struct observation *seen, const struct trace_step *step,
                                     struct diag *diag)
{
    struct simulation *sim = &seen->sim;
    const struct program *p = sim->program;
    int agent = stepping_agent(seen, step);
    if (agent < 0)
        return diag_error(diag, STATUS_INPUT,
                          "run %" PRId64 ": the plan cannot take its step %" PRId64 ", '%s' of %s",
                          seen->trace->run, step->seq, step->op, step->agent);
    int64_t iteration;
    int op = machine_current_op(p, sim->state, agent, &iteration);
    struct effect effect;
    machine_step(p, sim->state, (struct transition){agent, 0}, &effect);
    if (p->agents[agent].kind == AGENT_THREAD)
        note_thread(sim, agent, op, &effect);
    return STATUS_OK;
}

/* ---- what streams are doing ------------------------------------------------------------------ */

/* True if everything has come that a started operation meets. */
static bool has_met(const struct simulation *sim, int stream)
{
    const struct program *p = sim->program;
    int64_t iteration;
    int agent = program_stream_agent(p, stream);
    const struct op *op = &p->ops[machine_current_op(p, sim->state, agent, &iteration)];
    if (op->comm < 0)
        return true;
    if (op_ends_together(op->kind))
        agent = program_comm_agent(p, op->comm);
    return machine_agent_enabled(p, sim->state, agent);
}

static struct stall observe_doing_now(struct simulation *sim, int stream)
{
    const struct program *p = sim->program;
    if (machine_stream_running(p, sim->state, stream))
        return (struct stall){has_met(sim, stream) ? STALL_BUSY : STALL_PEER, STALL_ON_NONE};
    if (machine_agent_enabled(p, sim->state, program_stream_agent(p, stream)))
        return (struct stall){STALL_HOST, STALL_ON_NONE};
    int common;
    bool chained;
    return cause_of_idleness(sim, stream, &common, &chained);
}

static bool observe_book(struct observation *seen, int stream, int64_t now_ns)
{
    const struct now *lane = &seen->lanes[stream];
    struct observed_stream *account = &seen->result.streams[stream];
    int64_t ns = now_ns - lane->since_ns;
    if (lane->doing.cause == STALL_BUSY) {
        account->busy_ns += ns;
        return true;
    }
    account->stall_ns[lane->doing.cause] += ns;
    return !seen->watcher || ns == 0 ||
           seen->watcher(seen->context, stream, lane->since_ns, now_ns, &lane->doing);
}

/* The activity of all agents from `now_ns` on. A thread that can go on and has not is taking its time. */
static bool observe_look(struct observation *seen, int64_t now_ns)
{
    struct simulation *sim = &seen->sim;
    const struct program *p = sim->program;
    account_derive(sim);
    sim->stalls.chain_stamp++;
    for (int t = 0; t < p->thread_count; t++) {
        int agent = program_thread_agent(p, t);
        sim->clocks.timers[agent] =
            machine_agent_enabled(p, sim->state, agent) ? TIMER_RUNNING : TIMER_NONE;
    }
    for (int s = 0; s < p->stream_count; s++) {
        struct now *lane = &seen->lanes[s];
        struct stall doing = observe_doing_now(sim, s);
        if (doing.cause == lane->doing.cause && doing.on == lane->doing.on)
            continue;
        if (!observe_book(seen, s, now_ns))
            return false;
        *lane = (struct now){doing, now_ns};
    }
    return true;
}

static enum status observe_follow(struct observation *seen, struct diag *diag)
{
    const struct trace *trace = seen->trace;
    struct observed *result = &seen->result;
    result->start_ns = trace->steps[0].time_ns;
    result->end_ns = trace->steps[trace->step_count - 1].time_ns;
    for (int s = 0; s < seen->sim.program->stream_count; s++)
        seen->lanes[s] = (struct now){{STALL_BUSY, STALL_ON_NONE}, result->start_ns};
    for (size_t i = 0; i < trace->step_count; i++) {
        enum status status = observe_take_step(seen, &trace->steps[i], diag);
        if (status != STATUS_OK)
            return status;
        bool last_of_instant =
            i + 1 == trace->step_count || trace->steps[i + 1].time_ns > trace->steps[i].time_ns;
        if (last_of_instant && !observe_look(seen, trace->steps[i].time_ns))
            return STATUS_SYSTEM;
    }
    for (int s = 0; s < seen->sim.program->stream_count; s++)
        if (!observe_book(seen, s, result->end_ns))
            return STATUS_SYSTEM;
    return STATUS_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static bool observe_allocate(struct observation *seen)
{
    const struct program *p = seen->sim.program;
    seen->names = calloc((size_t)p->agent_count + 1, sizeof *seen->names);
    seen->lanes = calloc((size_t)p->stream_count + 1, sizeof *seen->lanes);
    seen->result.streams = calloc((size_t)p->stream_count + 1, sizeof *seen->result.streams);
    return seen->names && seen->lanes && seen->result.streams && observe_index_names(seen);
}

enum status observe(const struct program *program, struct trace *trace, observe_watcher *watcher,
                    void *context, struct observed *out, struct diag *diag)
{
    const struct simulate_options options = {0};
    struct observation seen = {.trace = trace, .watcher = watcher, .context = context};
    struct timing timing;
    if (trace->step_count == 0)
        return diag_error(diag, STATUS_INPUT,
                          "run %" PRId64 " has no steps: it was made with --no-check", trace->run);
    enum status status = timing_init(&timing, program, NULL, 0, diag);
    if (status != STATUS_OK)
        return status;
    status = prepare(&seen.sim, program, &timing, &options, diag);
    if (status == STATUS_OK && !observe_allocate(&seen))
        status = diag_no_memory(diag);
    if (status == STATUS_OK) {
        /* A step took effect at its time or before; so none is later than any that follows it. */
        for (size_t i = trace->step_count - 1; i > 0; i--)
            if (trace->steps[i - 1].time_ns > trace->steps[i].time_ns)
                trace->steps[i - 1].time_ns = trace->steps[i].time_ns;
        status = observe_follow(&seen, diag);
    }
    prepare_free(&seen.sim);
    simulation_fini(&seen.sim.result);
    timing_fini(&timing);
    table_fini(&seen.by_name);
    free(seen.names);
    free(seen.lanes);
    if (status == STATUS_OK)
        *out = seen.result;
    else
        observed_fini(&seen.result);
    return status;
}

void observed_fini(struct observed *observed)
{
    free(observed->streams);
    *observed = (struct observed){0};
}
