/* SPDX-License-Identifier: Apache-2.0 */
/*
 * time_limits.c - see time_limits.h. A simulation is watched step by step. The operations of a member of a communicator end in
 * the order of their calls, so the calls that have not ended are a queue for each member.
 */
#include "time_limits.h"

#include <assert.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/assert_index.h"

struct limited_call {
    int op;
    int64_t iteration, called_ns;
};

/* The calls of a member: those from `first` on have not ended. */
struct member_calls {
    struct limited_call *items;
    size_t first, count, cap;
};

struct time_watch {
    const struct program *program;
    struct member_calls *members;
    struct time_overrun *out;
    struct diag *diag;
};

static void note_overrun(struct time_watch *watch, int comm, const struct limited_call *call,
                         int rank, int64_t taken_ns)
{
    struct time_overrun *out = watch->out;
    ASSERT_INDEX(comm, watch->program->comm_count);
    const int64_t limit_ns = watch->program->comms[comm].time_limit_ns;
    if (taken_ns >= 0 && taken_ns <= limit_ns)
        return;
    if (out->limit_ns == 0 || call->called_ns + limit_ns < out->called_ns + out->limit_ns)
        *out = (struct time_overrun){.op = call->op,
                                     .rank = rank,
                                     .iteration = call->iteration,
                                     .called_ns = call->called_ns,
                                     .taken_ns = taken_ns,
                                     .limit_ns = limit_ns};
}

static bool limited_call_begins(struct time_watch *watch, const struct effect *effect,
                                int64_t now_ns)
{
    const struct op *op = &watch->program->ops[effect->op];
    const struct comm_desc *comm = &watch->program->comms[op->comm];
    struct member_calls *calls = &watch->members[comm->first_member + op->member];
    if (comm->time_limit_ns == 0)
        return true;
    if (calls->first == calls->count)
        calls->first = calls->count = 0;
    if (!ARRAY_GROW(calls->items, calls->count, calls->cap))
        return false;
    calls->items[calls->count++] = (struct limited_call){effect->op, effect->iteration, now_ns};
    return true;
}

static void limited_call_ends(struct time_watch *watch, int comm, int member, int64_t now_ns)
{
    const struct comm_desc *desc = &watch->program->comms[comm];
    struct member_calls *calls = &watch->members[desc->first_member + member];
    if (desc->time_limit_ns == 0)
        return;
    assert(calls->first < calls->count);
    const struct limited_call *call = &calls->items[calls->first++];
    note_overrun(watch, comm, call, desc->members[member], now_ns - call->called_ns);
}

static bool watch_step(void *context, int64_t now_ns, struct transition transition,
                       const struct effect *effect)
{
    struct time_watch *watch = context;
    const struct program *p = watch->program;
    const struct agent *agent = &p->agents[transition.agent];
    if (agent->kind == AGENT_COMM)
        for (int m = 0; m < p->comms[agent->index].count; m++)
            limited_call_ends(watch, agent->index, m, now_ns);
    if (effect->op < 0 || p->ops[effect->op].comm < 0)
        return true;
    const struct op *op = &p->ops[effect->op];
    if (agent->kind == AGENT_STREAM && effect->kind == EFFECT_FINISH)
        limited_call_ends(watch, op->comm, op->member, now_ns);
    if (agent->kind == AGENT_THREAD && effect->kind == EFFECT_HOST && !effect->takes &&
        !limited_call_begins(watch, effect, now_ns)) {
        diag_no_memory(watch->diag);
        return false;
    }
    return true;
}

/* What has been called and never ends. */
static void note_endless(struct time_watch *watch)
{
    const struct program *p = watch->program;
    for (int c = 0; c < p->comm_count; c++)
        for (int m = 0; m < p->comms[c].count; m++) {
            const struct member_calls *calls = &watch->members[p->comms[c].first_member + m];
            if (calls->first < calls->count)
                note_overrun(watch, c, &calls->items[calls->first], p->comms[c].members[m], -1);
        }
}

enum status time_limits_find(const struct program *program, const struct timing *timing,
                             const struct simulate_options *options, struct time_overrun *out,
                             struct diag *diag)
{
    bool limited = false;
    *out = (struct time_overrun){0};
    for (int c = 0; c < program->comm_count; c++)
        limited |= program->comms[c].time_limit_ns > 0;
    if (!limited)
        return STATUS_OK;
    struct time_watch watch = {
        program, calloc((size_t)program->member_count + 1, sizeof *watch.members), out, diag};
    if (!watch.members)
        return diag_no_memory(diag);
    const struct simulate_observer observer = {.context = &watch, .step = watch_step};
    struct simulate_options watched = *options;
    struct simulation_result result;
    watched.observer = &observer;
    enum status status = simulate_run(program, timing, &watched, &result, diag);
    if (status == STATUS_OK) {
        note_endless(&watch);
        simulation_fini(&result);
    }
    for (int m = 0; m < program->member_count; m++)
        free(watch.members[m].items);
    free(watch.members);
    return status;
}
