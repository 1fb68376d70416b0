/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_graph_scope.c - which plans have an event graph: those in which no order of two operations
 * depends on how long others take, and whose ranks issue the same collectives.
 */
#include <stdarg.h>
#include <stdio.h>

#include "event_graph_internal.h"

/* ---- the machine and the stages -------------------------------------------------------------- */

bool event_graph_refuse(struct builder *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(b->out.why, sizeof b->out.why, format, args);
    va_end(args);
    return false;
}

/* Do the periods of the fill and the depth fit every rank's stages? */
static bool stages_fit(const struct program *p)
{
    for (int rank = 0; rank < p->ranks; rank++)
        for (int task = 0; task < p->tasks; task++) {
            int stage = plan_task(p->plan, rank, task)->stage;
            if (stage < p->min_stage || stage >= p->periods)
                return false;
        }
    return true;
}

static bool machine_is_simple(struct builder *b)
{
    const struct program *p = b->p;
    const struct machine_spec *machine = &p->plan->machine;
    if (p->tasks == 0)
        return event_graph_refuse(b, "only pipelines have a steady state");
    if (p->driver != DRIVER_CLOCK)
        return event_graph_refuse(b, "only the clock driver hands out work in a fixed order");
    const char *shared = sharing_why(p, &b->scratch);
    if (shared)
        return event_graph_refuse(
            b, "streams share %s: how long work takes depends on what else runs", shared);
    if (machine->sm_slots || p->hw_queue_count)
        return event_graph_refuse(b, "streams compete for %s",
                                  machine->sm_slots ? "residency slots" : "hardware queues");
    if (plan_legacy_stream(p->plan))
        return event_graph_refuse(b, "the legacy stream's waits are not part of the event graph");
    if (machine->lazy_load || machine->first_use_blocks || machine->launch_order_implicit ||
        machine->launch_lock)
        return event_graph_refuse(b, "machine.%s is not part of the event graph",
                                  machine->lazy_load          ? "lazy_load"
                                  : machine->first_use_blocks ? "first_use_blocks"
                                  : machine->launch_lock      ? "launch_lock"
                                                              : "launch_order_implicit");
    if (machine->launch_latency_ns)
        return event_graph_refuse(b, "machine.launch_latency is not part of the event graph");
    for (int rank = 1; rank < p->ranks; rank++)
        if (p->ends[rank] != p->ends[0])
            return event_graph_refuse(b, "ranks have different amounts of data");
    if (!stages_fit(p))
        return event_graph_refuse(b, "a rank has stages the other ranks do not have");
    if (!p->slots_safe)
        return event_graph_refuse(b, "slots of signals and events may be reused too early");
    bool never_full = p->plan->pipeline.retire == RETIRE_DEVICE && machine->launch_queue == 0;
    if (p->plan->pipeline.retired_dep == RETIRED_DEP_SKIP && !never_full)
        return event_graph_refuse(b, "which dependences are skipped depends on the timing");
    return true;
}

/* ---- one thread for each stream, lock and communicator ---------------------------------------- */

/* One thread may use what others could use at another time. */
static bool claim(int *owner, int thread)
{
    if (*owner == NONE)
        *owner = thread;
    return *owner == thread;
}

/* The threads that issue collectives, per member of a communicator: one thread, or all of them in turn. */
struct issuers {
    int thread;
    bool several, unordered;
};

static bool note_issuer(struct issuers *issuers, int thread, bool ordered)
{
    issuers->several |= !claim(&issuers->thread, thread);
    issuers->unordered |= !ordered;
    return !(issuers->several && issuers->unordered);
}

/* The threads that come to streams, locks and communicators; NONE: none so far. */
struct owners {
    int *locks;
    struct issuers *members;
};

static bool find_owners(struct builder *b, struct owners *out)
{
    const struct program *p = b->p;
    b->stream_threads = ARENA_ARRAY(&b->scratch, (size_t)p->stream_count, int);
    out->locks = ARENA_ARRAY(&b->scratch, (size_t)p->lock_count, int);
    out->members = ARENA_ARRAY(&b->scratch, (size_t)p->member_count, struct issuers);
    if (b->scratch.failed)
        return false;
    for (int i = 0; i < p->stream_count; i++)
        b->stream_threads[i] = NONE;
    for (int i = 0; i < p->lock_count; i++)
        out->locks[i] = NONE;
    for (int i = 0; i < p->member_count; i++)
        out->members[i].thread = NONE;
    return true;
}

/* The order in which threads get to a stream, lock or communicator must not depend on the timing. */
static bool orders_are_fixed(struct builder *b, const struct owners *owners)
{
    const struct program *p = b->p;
    const struct op *op;
    for (int rank = 0; rank < p->ranks; rank++) {
        int worker = NONE;
        bool one_worker = true;
        for (int task = 0; task < p->tasks; task++)
            one_worker &= claim(&worker, p->worker[rank * p->tasks + task]);
        for (struct scan scan = {.rank = rank}; (op = event_graph_next(b, &scan));) {
            int thread = scan.place.thread;
            if (op->kind == OP_GROUP)
                return event_graph_refuse(b, "sends and receives are not part of the event graph");
            if (op_pushes(op->kind) && !claim(&b->stream_threads[op->stream], thread))
                return event_graph_refuse(b, "several threads push to stream %s",
                                          p->streams[op->stream].name);
            if (op->kind == OP_LOCK && !claim(&owners->locks[op->object], thread))
                return event_graph_refuse(b, "threads compete for lock %s",
                                          p->lock_names[op->object]);
            if (op->kind == OP_SYNC && op->sync != SYNC_STREAM && op->sync != SYNC_STAGED &&
                !one_worker)
                return event_graph_refuse(
                    b, "several threads submit to a device that one of them waits for");
            if (op->kind == OP_COLLECTIVE &&
                !note_issuer(&owners->members[p->comms[op->comm].first_member + op->member], thread,
                             plan_task(p->plan, rank, op->task)->globally_ordered))
                return event_graph_refuse(b, "several threads issue collectives of communicator %s",
                                          p->comms[op->comm].name);
        }
    }
    return true;
}

/* ---- do all members issue the same collectives? ---------------------------------------------- */

/* Which operation a collective is followed by, and how many iterations on. */
struct follower {
    const struct op *op; /* NULL: this collective is not issued */
    const struct op *next;
    int iterations;
};

/* In the endless sequence of a rank's collectives of one communicator. */
static void find_followers(const struct builder *b, int comm, int rank, struct follower *out)
{
    const struct op *op, *first = NULL, *last = NULL;
    int first_stage = 0, last_stage = 0;
    for (int task = 0; task < b->p->tasks; task++)
        out[task] = (struct follower){0};
    for (struct scan scan = {.rank = rank}; (op = event_graph_next(b, &scan));) {
        if (op->kind != OP_COLLECTIVE || op->comm != comm)
            continue;
        out[op->task].op = op;
        if (last)
            out[last->task] = (struct follower){last, op, last_stage - scan.place.stage};
        else
            first = op, first_stage = scan.place.stage;
        last = op;
        last_stage = scan.place.stage;
    }
    if (last)
        out[last->task] = (struct follower){last, first, last_stage - first_stage + 1};
}

static bool same_followers(const struct follower *a, const struct follower *b)
{
    if (!a->op || !b->op)
        return a->op == b->op;
    return a->next->task == b->next->task && a->iterations == b->iterations &&
           op_same_collective(a->op, b->op);
}

static bool collectives_agree(struct builder *b)
{
    const struct program *p = b->p;
    struct follower *first = ARENA_ARRAY(&b->scratch, (size_t)p->tasks, struct follower);
    struct follower *other = ARENA_ARRAY(&b->scratch, (size_t)p->tasks, struct follower);
    if (b->scratch.failed)
        return false;
    for (int c = 0; c < p->comm_count; c++) {
        const struct comm_desc *comm = &p->comms[c];
        find_followers(b, c, comm->members[0], first);
        for (int m = 1; m < comm->count; m++) {
            find_followers(b, c, comm->members[m], other);
            for (int task = 0; task < p->tasks; task++)
                if (!same_followers(&first[task], &other[task]))
                    return event_graph_refuse(
                        b, "ranks disagree about the collectives of communicator %s", comm->name);
        }
    }
    return true;
}

bool event_graph_applies(struct builder *b)
{
    struct owners owners;
    return machine_is_simple(b) && find_owners(b, &owners) && orders_are_fixed(b, &owners) &&
           collectives_agree(b);
}
