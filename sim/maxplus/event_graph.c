/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_graph.c - see event_graph.h.
 *
 * The builder executes one period of every rank symbolically: it goes through the bodies of the
 * tasks in enqueue order and does what the machine would do, with a cursor (an event_ref)
 * in place of each clock: where a thread is, when the last item of a stream is through, when a
 * communicator is free. What a period takes over from the one before, and events of instances that
 * come later in the walk, are slots; edges out of slots are resolved when the walk is over.
 *
 *     thread   --B--[CPU part]--push------------B'--     B  begins: predecessor, signals, ticket
 *                                 |                      S  starts: push, predecessor, events
 *     stream   ----------wait-----S--[work]--record--
 *
 * An event stays open to further causes until something depends on it, so that waits and the work
 * behind them need only one.
 */
#include "event_graph.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/array.h"
#include "base/assert_index.h"

enum { NONE = -1 };

/* A time: when an event happens or, with `end`, when what it begins is over, `height` periods ago. */
struct event_ref {
    int event;
    int height;
    bool end;
};

/* Where the walk is. */
struct walk_place {
    int rank, task, stage, thread;
};

/* The operations of a rank, in enqueue order: begins as {.rank = rank}. */
struct op_scan {
    int rank, position, next;
    struct walk_place place; /* of the operation that event_graph_next returned last */
};

/* A collective that all members of a communicator take part in. */
struct joint {
    int event; /* NONE: no member has come to it in the walk */
    int stage; /* by which the event's period is counted */
};

struct graph_builder {
    const struct program *p;
    const struct timing *timing;
    struct arena scratch;
    struct event_graph out;
    size_t edge_cap, link_cap, event_cap, closed_cap, op_cap;
    bool *closed;             /* per event: something depends on it */
    struct joint *joints;     /* per communicator and task */
    int *positions;           /* per rank and task: in enqueue order */
    int *stream_threads;      /* the thread that pushes; NONE: none */
    int *items, *first_item;  /* per stream: pushed by an iteration; its first slot */
    int *walked;              /* per stream: items of the period walked so far */
    struct event_ref *pushed; /* per stream: the thread, when it pushed last */
    struct event_ref *slots;
    int64_t *mean_ns; /* per event */
    int slot_threads, slot_streams, slot_members, slot_served, slot_events, slot_signals;
    int slot_count;
};

static inline struct event_ref ref_at(int event)
{
    return (struct event_ref){event, 0, false};
}

/* ---- operations in enqueue order --------------------------------------------------------------- */

static const struct body *body_of(const struct program *p, int rank, int task)
{
    return &p->bodies[rank * p->tasks + task];
}

/* The next operation of the scan; NULL: that was the last. */
static const struct op *next_op(const struct graph_builder *b, struct op_scan *scan)
{
    const struct program *p = b->p;
    for (; scan->position < p->tasks; scan->position++, scan->next = 0) {
        int task = p->order[scan->rank][scan->position];
        const struct body *body = body_of(p, scan->rank, task);
        if (scan->next >= body->count)
            continue;
        scan->place =
            (struct walk_place){scan->rank, task, plan_task(p->plan, scan->rank, task)->stage,
                                p->worker[scan->rank * p->tasks + task]};
        return &p->ops[body->first + scan->next++];
    }
    return NULL;
}

/* ---- the machine and the stages -------------------------------------------------------------- */

/* The plan has no event graph, because of this. Returns false. */
__attribute__((format(printf, 2, 3))) static bool refuse_graph(struct graph_builder *b,
                                                               const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(b->out.why, sizeof b->out.why, format, args);
    va_end(args);
    return false;
}

/* True if the periods of the fill and the depth fit every rank's stages. */
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

static bool machine_is_simple(struct graph_builder *b)
{
    const struct program *p = b->p;
    const struct machine_spec *machine = &p->plan->machine;
    if (p->tasks == 0)
        return refuse_graph(b, "only pipelines have a steady state");
    if (p->driver != DRIVER_CLOCK)
        return refuse_graph(b, "only the clock driver hands out work in a fixed order");
    const char *shared = sharing_why(p, &b->scratch);
    if (shared)
        return refuse_graph(b, "streams share %s: how long work takes depends on what else runs",
                            shared);
    if (machine->sm_slots || p->hw_queue_count)
        return refuse_graph(b, "streams compete for %s",
                            machine->sm_slots ? "residency slots" : "hardware queues");
    if (plan_legacy_stream(p->plan))
        return refuse_graph(b, "the legacy stream's waits are not part of the event graph");
    if (machine->lazy_load || machine->first_use_blocks || machine->launch_order_implicit ||
        machine->launch_lock)
        return refuse_graph(b, "machine.%s is not part of the event graph",
                            machine->lazy_load          ? "lazy_load"
                            : machine->first_use_blocks ? "first_use_blocks"
                            : machine->launch_lock      ? "launch_lock"
                                                        : "launch_order_implicit");
    if (machine->launch_latency_ns)
        return refuse_graph(b, "machine.launch_latency is not part of the event graph");
    for (int rank = 1; rank < p->ranks; rank++)
        if (p->ends[rank] != p->ends[0])
            return refuse_graph(b, "ranks have different amounts of data");
    if (!stages_fit(p))
        return refuse_graph(b, "a rank has stages the other ranks do not have");
    if (!p->slots_safe)
        return refuse_graph(b, "slots of signals and events may be reused too early");
    bool never_full = p->plan->pipeline.retire == RETIRE_DEVICE && machine->launch_queue == 0;
    if (p->plan->pipeline.retired_dep == RETIRED_DEP_SKIP && !never_full)
        return refuse_graph(b, "which dependences are skipped depends on the timing");
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

static bool event_graph_find_owners(struct graph_builder *b, struct owners *out)
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
static bool orders_are_fixed(struct graph_builder *b, const struct owners *owners)
{
    const struct program *p = b->p;
    const struct op *op;
    for (int rank = 0; rank < p->ranks; rank++) {
        int worker = NONE;
        bool one_worker = true;
        for (int task = 0; task < p->tasks; task++)
            one_worker &= claim(&worker, p->worker[rank * p->tasks + task]);
        for (struct op_scan scan = {.rank = rank}; (op = next_op(b, &scan));) {
            int thread = scan.place.thread;
            if (op_uses_comm(op->kind) && !op_ends_together(op->kind))
                return refuse_graph(b, "sends and receives are not part of the event graph");
            if (op_pushes(op->kind) && !claim(&b->stream_threads[op->stream], thread))
                return refuse_graph(b, "several threads push to stream %s",
                                    p->streams[op->stream].name);
            if (op_takes_from(op->kind, OPERAND_LOCK) && !claim(&owners->locks[op->object], thread))
                return refuse_graph(b, "threads compete for lock %s", p->lock_names[op->object]);
            if (op_syncs(op->kind) && op->sync != SYNC_STREAM && op->sync != SYNC_STAGED &&
                !one_worker)
                return refuse_graph(
                    b, "several threads submit to a device that one of them waits for");
            if (op_ends_together(op->kind) &&
                !note_issuer(&owners->members[p->comms[op->comm].first_member + op->member], thread,
                             plan_task(p->plan, rank, op->task)->globally_ordered))
                return refuse_graph(b, "several threads issue collectives of communicator %s",
                                    p->comms[op->comm].name);
        }
    }
    return true;
}

/* ---- whether all members issue the same collectives ---------------------------------------------- */

/* Which operation a collective is followed by, and how many iterations on. */
struct follower {
    const struct op *op; /* NULL: this collective is not issued */
    const struct op *next;
    int iterations;
};

/* In the endless sequence of a rank's collectives of one communicator. */
static void find_followers(const struct graph_builder *b, int comm, int rank, struct follower *out)
{
    const struct op *op, *first = NULL, *last = NULL;
    int first_stage = 0, last_stage = 0;
    for (int task = 0; task < b->p->tasks; task++)
        out[task] = (struct follower){0};
    for (struct op_scan scan = {.rank = rank}; (op = next_op(b, &scan));) {
        if (!op_ends_together(op->kind) || op->comm != comm)
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

static bool collectives_agree(struct graph_builder *b)
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
                    return refuse_graph(
                        b, "ranks disagree about the collectives of communicator %s", comm->name);
        }
    }
    return true;
}

/* True if the plan has an event graph: no order of two operations depends on how long others take, and all ranks issue
   the same collectives. Fills stream_threads. false: it has none, or no memory (the arena remembers). */
static bool graph_applies(struct graph_builder *b)
{
    struct owners owners;
    return machine_is_simple(b) && event_graph_find_owners(b, &owners) &&
           orders_are_fixed(b, &owners) && collectives_agree(b);
}

/* ---- events and edges ------------------------------------------------------------------------ */

static int new_event(struct graph_builder *b, enum event_kind kind, const struct walk_place *place)
{
    size_t count = (size_t)b->out.event_count;
    if (!ARENA_GROW(&b->out.arena, b->out.events, count, b->event_cap) ||
        !ARENA_GROW(&b->scratch, b->closed, count, b->closed_cap))
        return 0; /* the arena remembers */
    b->out.events[count] = (struct event_graph_event){kind, place->rank, place->task, 0, 0};
    b->closed[count] = false;
    return b->out.event_count++;
}

/* `event` takes as long as this operation, too. All its operations are named in a row. */
static void event_graph_add_op(struct graph_builder *b, int event, const struct op *op)
{
    if (b->out.event_count == 0 ||
        !ARENA_GROW(&b->out.arena, b->out.ops, b->out.op_count, b->op_cap))
        return;
    struct event_graph_event *taker = &b->out.events[event];
    if (taker->op_count++ == 0)
        taker->op_first = b->out.op_count;
    assert(taker->op_first + taker->op_count == b->out.op_count + 1);
    b->out.ops[b->out.op_count++] = (int)(op - b->p->ops);
}

/* `event` is not before `from`, of `height` periods ago. */
static void event_graph_add_cause(struct graph_builder *b, struct event_ref from, int event,
                                  int height)
{
    size_t count = (size_t)b->out.edge_count;
    if (!ARENA_GROW(&b->out.arena, b->out.edges, count, b->edge_cap) ||
        !ARENA_GROW(&b->out.arena, b->out.links, count, b->link_cap))
        return;
    if (from.event >= 0 && b->out.event_count > 0)
        b->closed[from.event] = true;
    b->out.links[count] = (struct event_link){from.end, false};
    b->out.edges[b->out.edge_count++] =
        (struct ratio_edge){from.event, event, from.height + height, 0};
}

/* The slot's final cursor, of `height` periods ago. */
static struct event_ref of_slot(int slot, int height)
{
    return (struct event_ref){~slot, height, false};
}

static bool event_graph_is_open(const struct graph_builder *b, const struct event_ref *at)
{
    return at->event >= 0 && at->height == 0 && !at->end && b->out.event_count > 0 &&
           !b->closed[at->event];
}

/* Move a cursor to the later of both. */
static void event_graph_join(struct graph_builder *b, struct event_ref *at, struct event_ref other,
                             enum event_kind kind, const struct walk_place *place)
{
    if (!event_graph_is_open(b, at)) {
        int event = new_event(b, kind, place);
        event_graph_add_cause(b, *at, event, 0);
        *at = ref_at(event);
    }
    event_graph_add_cause(b, other, at->event, 0);
}

/* The cursor goes on when this operation, too, is over. */
static void event_graph_spend(struct graph_builder *b, struct event_ref *at, const struct op *op,
                              enum event_kind kind, const struct walk_place *place)
{
    bool fresh = at->event >= 0 && at->height == 0 && !at->end && b->out.event_count > 0 &&
                 b->out.events[at->event].op_count == 0;
    if (!fresh) {
        int event = new_event(b, kind, place);
        event_graph_add_cause(b, *at, event, 0);
        *at = ref_at(event);
    }
    event_graph_add_op(b, at->event, op);
    at->end = true;
    if (b->out.event_count > 0)
        b->closed[at->event] = true;
}

/* Nothing may be added to what this is the time of. */
static struct event_ref closed(struct graph_builder *b, struct event_ref at)
{
    if (at.event >= 0 && b->out.event_count > 0)
        b->closed[at.event] = true;
    return at;
}

static bool same_cursor(const struct event_ref *a, const struct event_ref *b)
{
    return a->event == b->event && a->height == b->height && a->end == b->end;
}

static struct event_ref *thread_slot(struct graph_builder *b, int thread)
{
    return &b->slots[b->slot_threads + thread];
}

static struct event_ref *stream_slot(struct graph_builder *b, int stream)
{
    return &b->slots[b->slot_streams + stream];
}

/* ---- what operations do ---------------------------------------------------------------------- */

/* True if a push to this stream can find it full. */
static bool event_graph_is_bounded(const struct program *p, int stream, int items)
{
    ASSERT_INDEX(stream, p->stream_count);
    return p->plan->pipeline.retire != RETIRE_DEVICE || p->streams[stream].cap < items * p->depth;
}

/* A place in the stream's queue is free when the item that many before is through. */
static void take_place(struct graph_builder *b, int stream, const struct walk_place *place)
{
    int items = b->items[stream], item = b->walked[stream] - b->p->streams[stream].cap;
    if (!event_graph_is_bounded(b->p, stream, items))
        return;
    int periods = 0;
    for (; item < 0; item += items)
        periods++;
    struct event_ref through = of_slot(b->first_item[stream] + item, periods);
    event_graph_join(b, thread_slot(b, place->thread), through, EVENT_HOST, place);
}

/* The item is through when its stream's cursor says. */
static void end_item(struct graph_builder *b, int stream)
{
    int slot = b->first_item[stream] + b->walked[stream]++;
    if (event_graph_is_bounded(b->p, stream, b->items[stream]))
        b->slots[slot] = closed(b, *stream_slot(b, stream));
}

/* By how many periods the instance of `on` this operation looks at is older, and whether it is
   anyway before this one for a thread that does all in enqueue order. */
static int age_of(const struct graph_builder *b, const struct op *op,
                  const struct walk_place *place, bool *before)
{
    int tasks = b->p->tasks, on = op->object % tasks, first = place->rank * tasks;
    int age = place->stage - plan_task(b->p->plan, place->rank, on)->stage + op->distance;
    *before = age > 0 || (age == 0 && b->positions[first + on] < b->positions[first + place->task]);
    return age;
}

static void walk_await(struct graph_builder *b, const struct op *op, const struct walk_place *place)
{
    bool before;
    int age = age_of(b, op, place, &before);
    if (before && b->p->worker[op->object] == place->thread)
        return;
    event_graph_join(b, thread_slot(b, place->thread), of_slot(b->slot_signals + op->object, age),
                     EVENT_HOST, place);
}

static void event_graph_walk_wait(struct graph_builder *b, const struct op *op,
                                  const struct walk_place *place)
{
    const struct program *p = b->p;
    bool before;
    int age = age_of(b, op, place, &before), on = op->object % p->tasks;
    int plan_stream = plan_task(p->plan, place->rank, on)->stream;
    struct event_ref *stream = stream_slot(b, op->stream);
    take_place(b, op->stream, place);
    if (event_graph_is_bounded(p, op->stream, b->items[op->stream]))
        event_graph_join(b, stream, *thread_slot(b, place->thread), EVENT_DEVICE, place);
    if (!before || plan_stream != p->streams[op->stream].plan_stream)
        event_graph_join(b, stream, of_slot(b->slot_events + op->object, age), EVENT_DEVICE, place);
    end_item(b, op->stream);
}

static void walk_sync(struct graph_builder *b, const struct op *op, const struct walk_place *place)
{
    for (int s = 0; s < b->p->stream_count && !op_may_sync(op); s++)
        if (op->sync == SYNC_STREAM ? s == op->stream : b->p->streams[s].rank == place->rank)
            event_graph_join(b, thread_slot(b, place->thread), *stream_slot(b, s), EVENT_HOST,
                             place);
}

static void event_graph_walk_work(struct graph_builder *b, const struct op *op,
                                  const struct walk_place *place)
{
    struct event_ref *stream = stream_slot(b, op->stream);
    take_place(b, op->stream, place);
    b->pushed[op->stream] = closed(b, *thread_slot(b, place->thread));
    event_graph_join(b, stream, b->pushed[op->stream], EVENT_DEVICE, place);
    event_graph_spend(b, stream, op, EVENT_DEVICE, place);
    end_item(b, op->stream);
}

/* All members are in it for as long as the slowest. */
static void walk_collective(struct graph_builder *b, const struct op *op,
                            const struct walk_place *place)
{
    struct joint *joint = &b->joints[op->comm * b->p->tasks + op->task];
    struct event_ref *stream = stream_slot(b, op->stream);
    struct event_ref *member =
        &b->slots[b->slot_members + b->p->comms[op->comm].first_member + op->member];
    if (joint->event == NONE) {
        struct walk_place shared = *place;
        shared.rank = program_comm_rank(b->p, op->comm);
        joint->event = new_event(b, EVENT_DEVICE, &shared);
        joint->stage = place->stage;
        /* The operation of each member. */
        const struct program *p = b->p;
        const struct comm_desc *comm = &p->comms[op->comm];
        for (int m = 0; m < comm->count; m++) {
            const struct body *body = body_of(p, comm->members[m], op->task);
            for (int i = body->first; i < body->first + body->count; i++)
                if (op_ends_together(p->ops[i].kind))
                    event_graph_add_op(b, joint->event, &p->ops[i]);
        }
    }
    int shift = joint->stage - place->stage;
    assert(b->out.arena.failed || b->out.events[joint->event].kind == EVENT_DEVICE);
    take_place(b, op->stream, place);
    b->pushed[op->stream] = closed(b, *thread_slot(b, place->thread));
    event_graph_add_cause(b, b->pushed[op->stream], joint->event, shift);
    event_graph_add_cause(b, *stream, joint->event, shift);
    event_graph_add_cause(b, *member, joint->event, shift);
    *stream = *member = (struct event_ref){joint->event, -shift, true};
    closed(b, *stream);
    end_item(b, op->stream);
}

static void walk_record(struct graph_builder *b, const struct op *op,
                        const struct walk_place *place)
{
    struct event_ref *stream = stream_slot(b, op->stream);
    take_place(b, op->stream, place);
    if (!same_cursor(thread_slot(b, place->thread), &b->pushed[op->stream])) {
        b->pushed[op->stream] = closed(b, *thread_slot(b, place->thread));
        event_graph_join(b, stream, b->pushed[op->stream], EVENT_DEVICE, place);
    }
    b->slots[b->slot_events + op->object] = closed(b, *stream);
    end_item(b, op->stream);
}

static void walk_op(struct graph_builder *b, const struct op *op, const struct walk_place *place)
{
    struct event_ref *thread = thread_slot(b, place->thread);
    struct event_ref *served = &b->slots[b->slot_served + place->rank];
    switch (op->kind) {
    case OP_AWAIT: walk_await(b, op, place); break;
    case OP_WAIT: event_graph_walk_wait(b, op, place); break;
    case OP_TICKET: event_graph_join(b, thread, *served, EVENT_HOST, place); break;
    case OP_SERVE: *served = closed(b, *thread); break;
    case OP_SYNC: walk_sync(b, op, place); break;
    case OP_HOST: event_graph_spend(b, thread, op, EVENT_HOST, place); break;
    case OP_LAUNCH:
    case OP_COPY: event_graph_walk_work(b, op, place); break;
    case OP_COLLECTIVE: walk_collective(b, op, place); break;
    case OP_RECORD: walk_record(b, op, place); break;
    case OP_SIGNAL: b->slots[b->slot_signals + op->object] = closed(b, *thread); break;
    case OP_LOCK: /* uncontended: no time */
    case OP_UNLOCK:
    case OP_COMPLETE: break;
    case OP_COMPUTE:
    case OP_GROUP:
    case OP_CALLBACK:
    case OP_PUT:
    case OP_GET:
    case OP_BARRIER:
    case OP_CLEAR:
    case OP_ACQUIRE:
    case OP_ALLOC:
    case OP_HOST_ALLOC:
    case OP_WRITE:
    case OP_WAIT_FLAG:
    case OP_FREE:
    case OP_ABORT:
    case OP_QUERY:
    case OP_QUERY_FLAG:
    case OP_QUERY_QUEUE:
    case OP_CHOOSE:
    case OP_ELSE:
    case OP_END:
    case OP_RECORD_STREAM: assert(0 && "an operation that no event graph has"); break;
    }
}

/* ---- a period -------------------------------------------------------------------------------- */

/* Period p is enqueued when iteration p - depth has retired and the window has room. */
static void add_driver(struct graph_builder *b, int rank, int driver)
{
    const struct program *p = b->p;
    enum retire_rule retire = p->plan->pipeline.retire;
    event_graph_add_cause(b, ref_at(driver), driver, 1);
    for (int task = 0; task < p->tasks; task++) {
        int family = rank * p->tasks + task, stage = plan_task(p->plan, rank, task)->stage;
        int slot = retire == RETIRE_DEVICE ? b->slot_events : b->slot_signals;
        event_graph_add_cause(b, of_slot(slot + family, p->periods - stage), driver, 0);
        if (retire != RETIRE_DEVICE)
            event_graph_add_cause(
                b, of_slot(b->slot_events + family, p->min_stage + p->window - stage), driver, 0);
    }
}

static void walk_rank(struct graph_builder *b, int rank)
{
    const struct op *op;
    int driver = new_event(b, EVENT_DRIVER, &(struct walk_place){rank, NONE, 0, NONE}), task = NONE;
    add_driver(b, rank, driver);
    for (struct op_scan scan = {.rank = rank}; (op = next_op(b, &scan));) {
        const struct walk_place *place = &scan.place;
        if (place->task != task) { /* the worker takes the instance */
            struct event_ref *thread = thread_slot(b, place->thread);
            bool first = thread->event < 0;
            int begin = new_event(b, EVENT_HOST, place);
            event_graph_add_cause(b, *thread, begin, 0);
            event_graph_add_cause(b, ref_at(driver), begin, 0);
            if (!b->out.arena.failed)
                b->out.links[b->out.edge_count - 1].spare = !first;
            *thread = ref_at(begin);
            task = place->task;
        }
        walk_op(b, op, place);
    }
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* The history of a slot. false: nothing has happened to it. */
static bool resolve(const struct graph_builder *b, struct event_ref *ref)
{
    if (ref->event >= 0)
        return true;
    const struct event_ref *slot = &b->slots[~ref->event];
    *ref = (struct event_ref){slot->event, slot->height + ref->height, slot->end};
    return slot->event >= 0;
}

int64_t event_graph_mean_ns(const struct event_graph *graph, const struct timing *timing, int event)
{
    int64_t longest_ns = 0;
    ASSERT_INDEX(event, graph->event_count);
    const struct event_graph_event *of = &graph->events[event];
    for (int i = 0; i < of->op_count; i++) {
        int64_t mean_ns = timing_mean(timing, graph->ops[of->op_first + i]);
        longest_ns = mean_ns > longest_ns ? mean_ns : longest_ns;
    }
    return longest_ns;
}

/* False: memory. A collective has an operation and edges a rank, so its duration is found once. */
static bool find_means(struct graph_builder *b)
{
    b->mean_ns = ARENA_ARRAY(&b->scratch, (size_t)b->out.event_count, int64_t);
    for (int e = 0; b->mean_ns && e < b->out.event_count; e++)
        b->mean_ns[e] = event_graph_mean_ns(&b->out, b->timing, e);
    return b->mean_ns != NULL;
}

static void resolve_slots(struct graph_builder *b)
{
    struct event_graph *out = &b->out;
    int kept = 0;
    for (int e = 0; e < out->edge_count; e++) {
        struct ratio_edge edge = out->edges[e];
        struct event_ref from = {edge.from, edge.height, out->links[e].end};
        if (!resolve(b, &from))
            continue;
        out->edges[kept] = (struct ratio_edge){from.event, edge.to, from.height,
                                               from.end ? b->mean_ns[from.event] : 0};
        out->links[kept++] = (struct event_link){from.end, out->links[e].spare};
    }
    out->edge_count = kept;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void event_graph_count_items(struct graph_builder *b)
{
    const struct program *p = b->p;
    const struct op *op;
    for (int rank = 0; rank < p->ranks; rank++)
        for (struct op_scan scan = {.rank = rank}; (op = next_op(b, &scan));) {
            b->positions[rank * p->tasks + scan.place.task] = scan.position;
            if (op_pushes(op->kind))
                b->items[op->stream]++;
        }
}

static bool make_slots(struct graph_builder *b)
{
    const struct program *p = b->p;
    int families = p->ranks * p->tasks;
    b->slot_threads = 0;
    b->slot_streams = p->thread_count;
    b->slot_members = b->slot_streams + p->stream_count;
    b->slot_served = b->slot_members + p->member_count;
    b->slot_events = b->slot_served + p->ranks;
    b->slot_signals = b->slot_events + families;
    b->slot_count = b->slot_signals + families;
    for (int s = 0; s < p->stream_count; s++) {
        b->first_item[s] = b->slot_count;
        b->slot_count += event_graph_is_bounded(p, s, b->items[s]) ? b->items[s] : 0;
    }
    b->slots = ARENA_ARRAY(&b->scratch, (size_t)b->slot_count, struct event_ref);
    for (int i = 0; b->slots && i < b->slot_count; i++)
        b->slots[i] = of_slot(i, 1);
    return b->slots != NULL;
}

static bool event_graph_make_tables(struct graph_builder *b)
{
    const struct program *p = b->p;
    size_t streams = (size_t)p->stream_count;
    size_t joints = (size_t)p->comm_count * (size_t)p->tasks;
    b->joints = ARENA_ARRAY(&b->scratch, joints, struct joint);
    b->positions = ARENA_ARRAY(&b->scratch, (size_t)p->ranks * (size_t)p->tasks, int);
    b->items = ARENA_ARRAY(&b->scratch, streams, int);
    b->first_item = ARENA_ARRAY(&b->scratch, streams, int);
    b->walked = ARENA_ARRAY(&b->scratch, streams, int);
    b->pushed = ARENA_ARRAY(&b->scratch, streams, struct event_ref);
    if (b->scratch.failed)
        return false;
    for (size_t i = 0; i < joints; i++)
        b->joints[i].event = NONE;
    for (size_t s = 0; s < streams; s++)
        b->pushed[s] = of_slot(0, 0);
    event_graph_count_items(b);
    return make_slots(b);
}

#ifdef SWSIM_CHECKS
/* Edges lead from an event to an event and events take operations of the program. */
static bool graph_is_sound(const struct program *p, const struct event_graph *graph)
{
    for (int e = 0; e < graph->edge_count; e++) {
        const struct ratio_edge *edge = &graph->edges[e];
        if (edge->from < 0 || edge->from >= graph->event_count || edge->to < 0 ||
            edge->to >= graph->event_count || edge->weight_ns < 0 ||
            (edge->weight_ns > 0 && !graph->links[e].end))
            return false;
    }
    for (int i = 0; i < graph->op_count; i++)
        if (graph->ops[i] < 0 || (size_t)graph->ops[i] >= p->op_count)
            return false;
    for (int v = 0; v < graph->event_count; v++)
        if (graph->events[v].op_count &&
            graph->events[v].op_first + graph->events[v].op_count > graph->op_count)
            return false;
    return true;
}
#endif

enum status event_graph_build(const struct program *program, const struct timing *timing,
                              struct event_graph *out, struct diag *diag)
{
    struct graph_builder b = {.p = program, .timing = timing};
    arena_init(&b.scratch, 0);
    arena_init(&b.out.arena, 0);
    bool good = graph_applies(&b) && event_graph_make_tables(&b);
    for (int rank = 0; good && rank < program->ranks; rank++)
        walk_rank(&b, rank);
    bool failed = b.scratch.failed || b.out.arena.failed || (good && !find_means(&b));
    if (good && !failed)
        resolve_slots(&b);
#ifdef SWSIM_CHECKS
    assert(!good || failed || graph_is_sound(program, &b.out));
#endif
    arena_fini(&b.scratch);
    if (failed) {
        arena_fini(&b.out.arena);
        return diag_no_memory(diag);
    }
    *out = b.out;
    return STATUS_OK;
}

void event_graph_fini(struct event_graph *graph)
{
    arena_fini(&graph->arena);
    *graph = (struct event_graph){0};
}
