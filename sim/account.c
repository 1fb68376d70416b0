/*
 * account.c - every nanosecond of every stream goes somewhere.
 *
 * A lane says what a stream is doing and since when. At the end of an instant the lanes of the
 * touched ranks are looked at; where the answer has changed, the time since then is booked under
 * the old one. So intervals neither overlap nor leave gaps.
 */
#include <stdlib.h>

#include "sim/simulation.h"

enum { FIRST_CAP = 8 };

static bool same(const struct stall *a, const struct stall *b)
{
    return a->cause == b->cause && a->who == b->who;
}

bool stream_account_blame(struct stream_account *account, const struct stall *stall, int64_t ns)
{
    for (int i = 0; i < account->blame_count; i++)
        if (same(&account->blames[i].stall, stall)) {
            account->blames[i].ns += ns;
            return true;
        }
    if (account->blame_count == account->blame_cap) {
        int cap = account->blame_cap ? 2 * account->blame_cap : FIRST_CAP;
        struct blame *blames = realloc(account->blames, (size_t)cap * sizeof *blames);
        if (!blames)
            return false;
        account->blames = blames;
        account->blame_cap = cap;
    }
    account->blames[account->blame_count++] = (struct blame){*stall, ns};
    return true;
}

static void tell(struct simulation *sim, int stream, const struct lane *lane)
{
    const struct simulate_observer *observer = sim->options->observer;
    if (!observer || !observer->span || sim->status != STATUS_OK)
        return;
    const struct simulate_span span = {
        .kind = SIMULATE_STALL,
        .agent = program_stream_agent(sim->program, stream),
        .op = -1,
        .iteration = -1,
        .start_ns = lane->since_ns,
        .end_ns = sim->now_ns,
        .stall = lane->doing,
    };
    if (!observer->span(observer->context, &span))
        sim->status = STATUS_SYSTEM;
}

/* Book the time since the lane last changed. */
static void book(struct simulation *sim, int stream)
{
    const struct lane *lane = &sim->lanes[stream];
    struct stream_account *account = &sim->result.streams[stream];
    int64_t ns = sim->now_ns - lane->since_ns;
    if (ns == 0)
        return;
    if (lane->doing.cause == STALL_BUSY) {
        account->busy_ns += ns;
        return;
    }
    account->stall_ns[lane->doing.cause] += ns;
    if (!stream_account_blame(account, &lane->doing, ns) && sim->status == STATUS_OK)
        sim->status = diag_no_memory(sim->diag);
    tell(sim, stream, lane);
}

static struct stall doing_now(struct simulation *sim, int stream)
{
    static const struct stall busy = {STALL_BUSY, STALL_NOBODY};
    if (!machine_stream_running(sim->program, sim->state, stream))
        return cause_of_idleness(sim, stream);
    int64_t iteration;
    int agent = program_stream_agent(sim->program, stream);
    int op = machine_current_op(sim->program, sim->state, agent, &iteration);
    bool meets = sim->program->ops[op].comm >= 0;
    return meets && sim->timers[agent] == TIMER_NONE ? cause_of_idleness(sim, stream) : busy;
}

static void look_at(struct simulation *sim, int stream)
{
    struct stall doing = doing_now(sim, stream);
    struct lane *lane = &sim->lanes[stream];
    if (same(&doing, &lane->doing))
        return;
    book(sim, stream);
    *lane = (struct lane){doing, sim->now_ns};
}

void account_touched(struct simulation *sim)
{
    const struct program *p = sim->program;
    for (int i = 0; i < sim->touched_count; i++) {
        int rank = sim->touched_ranks[i];
        sim->touched[rank] = false;
        for (int k = sim->rank_first[rank]; k < sim->rank_first[rank + 1]; k++) {
            const struct agent *who = &p->agents[sim->rank_agents[k]];
            if (who->kind == AGENT_STREAM)
                look_at(sim, who->index);
        }
    }
    sim->touched_count = 0;
}

void account_close(struct simulation *sim)
{
    account_touched(sim);
    for (int s = 0; s < sim->program->stream_count; s++) {
        book(sim, s);
        sim->lanes[s].since_ns = sim->now_ns;
    }
}

bool account_check(const struct simulation *sim)
{
    for (int s = 0; s < sim->program->stream_count; s++) {
        const struct stream_account *account = &sim->result.streams[s];
        int64_t sum = account->busy_ns, blamed = 0;
        for (int i = 0; i < STALL_COUNT; i++)
            sum += account->stall_ns[i];
        for (int i = 0; i < account->blame_count; i++)
            blamed += account->blames[i].ns;
        if (sum != sim->result.makespan_ns || blamed != sum - account->busy_ns)
            return false;
    }
    return true;
}
