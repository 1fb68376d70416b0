/*
 * account.c - every nanosecond of every stream goes somewhere.
 *
 * A lane says what a stream is doing and since when. At the end of an instant the lanes of the
 * touched ranks are looked at; where the answer has changed, the time since then is booked under
 * the old one. So intervals neither overlap nor leave gaps.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/automaton.h"
#include "sim/simulation.h"

enum { FIRST_CAP = 8 };

/* The place of a stall among the account's blames, new or old; -1: memory is exhausted. */
static int find_blame(struct stream_account *account, const struct stall *stall)
{
    for (int i = 0; i < account->blame_count; i++)
        if (account->blames[i].stall.cause == stall->cause &&
            account->blames[i].stall.who == stall->who)
            return i;
    if (account->blame_count == account->blame_cap) {
        int cap = account->blame_cap ? 2 * account->blame_cap : FIRST_CAP;
        struct blame *blames = realloc(account->blames, (size_t)cap * sizeof *blames);
        if (!blames)
            return -1;
        account->blames = blames;
        account->blame_cap = cap;
    }
    account->blames[account->blame_count] = (struct blame){*stall, 0};
    return account->blame_count++;
}

bool stream_account_blame(struct stream_account *account, const struct stall *stall, int64_t ns)
{
    int blame = find_blame(account, stall);
    if (blame >= 0)
        account->blames[blame].ns += ns;
    return blame >= 0;
}

static int compare_blames(const void *a, const void *b)
{
    const struct blame *x = a, *y = b;
    if (x->stall.cause != y->stall.cause)
        return x->stall.cause < y->stall.cause ? -1 : 1;
    return (x->stall.who > y->stall.who) - (x->stall.who < y->stall.who);
}

void stream_account_finish(struct stream_account *account)
{
    int kept = 0;
    memset(account->stall_ns, 0, sizeof account->stall_ns);
    for (int i = 0; i < account->blame_count; i++) {
        account->stall_ns[account->blames[i].stall.cause] += account->blames[i].ns;
        if (account->blames[i].ns)
            account->blames[kept++] = account->blames[i];
    }
    account->blame_count = kept;
    if (kept)
        qsort(account->blames, (size_t)kept, sizeof *account->blames, compare_blames);
}

/* An observer hears of a wait when it is over. */
static void tell(struct simulation *sim, int stream)
{
    const struct simulate_observer *observer = sim->options->observer;
    const struct lane *lane = &sim->lanes[stream];
    if (!observer || !observer->span || sim->status != STATUS_OK || lane->blame == LANE_BUSY ||
        lane->since_ns == sim->now_ns)
        return;
    const struct simulate_span span = {
        .kind = SIMULATE_STALL,
        .agent = program_stream_agent(sim->program, stream),
        .op = -1,
        .iteration = -1,
        .start_ns = lane->since_ns,
        .end_ns = sim->now_ns,
        .stall = sim->result.streams[stream].blames[lane->blame].stall,
    };
    if (!observer->span(observer->context, &span))
        sim->status = STATUS_SYSTEM;
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
    int blame = LANE_BUSY;
    if (doing.cause != STALL_BUSY) {
        blame = find_blame(&sim->result.streams[stream], &doing);
        if (blame < 0) {
            simulation_fail(sim, diag_no_memory(sim->diag));
            return;
        }
    }
    if (blame == sim->lanes[stream].blame)
        return;
    tell(sim, stream);
    account_switch(sim, stream, blame);
    if (sim->recording)
        recording_lane(sim->recording, stream, blame);
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
        tell(sim, s);
        account_switch(sim, s, LANE_BUSY);
        stream_account_finish(&sim->result.streams[s]);
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
