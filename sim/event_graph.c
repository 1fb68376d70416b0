/*
 * event_graph.c - see event_graph.h.
 *
 * The builder executes one period of every rank symbolically: it goes through the bodies of the
 * tasks in enqueue order and does what the machine would do, with a cursor (an event and an offset)
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
#include "sim/event_graph.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { NONE = -1 };

/* A time: `offset_ns` after an event, of `height` periods ago. */
struct cursor {
    int event; /* < 0: slot ~event */
    int height;
    int64_t offset_ns;
};

/* A collective that all members of a communicator take part in. */
struct joint {
    int event; /* NONE: no member has come to it in the walk */
    int stage; /* by which the event's period is counted */
    int64_t longest_ns;
};

struct builder {
    const struct program *p;
    const struct timing *timing;
    struct arena scratch;
    struct event_graph out;
    size_t edge_cap, event_cap, closed_cap;
    bool *closed;            /* per event: something depends on it */
    struct joint *joints;    /* per communicator and task */
    int *positions;          /* per rank and task: in enqueue order */
    int *stream_threads;     /* who pushes; NONE: nobody */
    int *items, *first_item; /* per stream: pushed by an iteration; its first slot */
    int *walked;             /* per stream: items of the period walked so far */
    struct cursor *pushed;   /* per stream: the thread, when it pushed last */
    struct cursor *slots;
    int slot_threads, slot_streams, slot_members, slot_served, slot_events, slot_signals;
    int slot_count;
};

/* Where the walk is. */
struct place {
    int rank, task, stage, thread;
};

/* ---- is there an event graph? ---------------------------------------------------------------- */

static bool refuse(struct builder *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool refuse(struct builder *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(b->out.why, sizeof b->out.why, format, args);
    va_end(args);
    return false;
}

static const struct body *body_of(const struct program *p, int rank, int task)
{
    return &p->bodies[rank * p->tasks + task];
}

static bool pushes(const struct op *op)
{
    static const bool table[] = {
#define X(name, key, pushes_) pushes_,
        OP_LIST(X)
#undef X
    };
    return table[op->kind];
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

static bool may_apply(struct builder *b)
{
    const struct program *p = b->p;
    const struct machine_spec *machine = &p->plan->machine;
    if (p->tasks == 0)
        return refuse(b, "only pipelines have a steady state");
    if (p->driver != DRIVER_CLOCK)
        return refuse(b, "only the clock driver hands out work in a fixed order");
    if (b->timing->varies)
        return refuse(b, "durations vary");
    if (machine->sm_slots || p->hw_queue_count)
        return refuse(b, "streams compete for %s",
                      machine->sm_slots ? "residency slots" : "hardware queues");
    if (machine->lazy_load || machine->first_use_blocks || machine->launch_order_implicit)
        return refuse(b, "machine.%s is not part of the event graph",
                      machine->lazy_load          ? "lazy_load"
                      : machine->first_use_blocks ? "first_use_blocks"
                                                  : "launch_order_implicit");
    for (int rank = 1; rank < p->ranks; rank++)
        if (p->ends[rank] != p->ends[0])
            return refuse(b, "ranks have different amounts of data");
    if (!stages_fit(p))
        return refuse(b, "a rank has stages the other ranks do not have");
    if (!p->slots_safe)
        return refuse(b, "slots of signals and events may be reused too early");
    bool never_full = p->plan->pipeline.retire == RETIRE_DEVICE && machine->launch_queue == 0;
    if (p->plan->pipeline.retired_dep == RETIRED_DEP_SKIP && !never_full)
        return refuse(b, "which dependences are skipped depends on the timing");
    return true;
}

/* The i-th operation of all those of a rank, in enqueue order: for loops over what happens. */
struct scan {
    int rank, position, next;
    struct place place;
};

static const struct op *scan_next(const struct builder *b, struct scan *scan)
{
    const struct program *p = b->p;
    for (; scan->position < p->tasks; scan->position++, scan->next = 0) {
        int task = p->order[scan->rank][scan->position];
        const struct body *body = body_of(p, scan->rank, task);
        if (scan->next >= body->count)
            continue;
        scan->place = (struct place){scan->rank, task, plan_task(p->plan, scan->rank, task)->stage,
                                     p->worker[scan->rank * p->tasks + task]};
        return &p->ops[body->first + scan->next++];
    }
    return NULL;
}

/* One thread may use what others could use at another time. */
static bool claim(int *owner, int thread)
{
    if (*owner == NONE)
        *owner = thread;
    return *owner == thread;
}

/* Who issues collectives, per member of a communicator: one thread, or all of them in turn. */
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

/* What order threads get to a stream, lock or communicator in must not depend on the timing. */
static bool orders_are_fixed(struct builder *b, int *locks, struct issuers *members)
{
    const struct program *p = b->p;
    const struct op *op;
    for (int rank = 0; rank < p->ranks; rank++) {
        int worker = NONE;
        bool one_worker = true;
        for (int task = 0; task < p->tasks; task++)
            one_worker &= claim(&worker, p->worker[rank * p->tasks + task]);
        for (struct scan scan = {.rank = rank}; (op = scan_next(b, &scan));) {
            int thread = scan.place.thread;
            if (op->kind == OP_GROUP)
                return refuse(b, "sends and receives are not part of the event graph");
            if (pushes(op) && !claim(&b->stream_threads[op->stream], thread))
                return refuse(b, "several threads push to stream %s", p->streams[op->stream].name);
            if (op->kind == OP_LOCK && !claim(&locks[op->object], thread))
                return refuse(b, "threads compete for lock %s", p->lock_names[op->object]);
            if (op->kind == OP_SYNC && op->sync != SYNC_STREAM && !one_worker)
                return refuse(b, "several threads submit to a device that one of them waits for");
            if (op->kind == OP_COLLECTIVE &&
                !note_issuer(&members[p->comms[op->comm].first_member + op->member], thread,
                             plan_task(p->plan, rank, op->task)->globally_ordered))
                return refuse(b, "several threads issue collectives of communicator %s",
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
    for (struct scan scan = {.rank = rank}; (op = scan_next(b, &scan));) {
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
           a->op->bytes == b->op->bytes && a->op->work->collective == b->op->work->collective;
}

static bool collectives_agree(struct builder *b, struct follower *first, struct follower *other)
{
    const struct program *p = b->p;
    for (int c = 0; c < p->comm_count; c++) {
        const struct comm_desc *comm = &p->comms[c];
        find_followers(b, c, comm->members[0], first);
        for (int m = 1; m < comm->count; m++) {
            find_followers(b, c, comm->members[m], other);
            for (int task = 0; task < p->tasks; task++)
                if (!same_followers(&first[task], &other[task]))
                    return refuse(b, "ranks disagree about the collectives of communicator %s",
                                  comm->name);
        }
    }
    return true;
}

/* ---- events and edges ------------------------------------------------------------------------ */

static int new_event(struct builder *b, enum event_kind kind, int rank, int task)
{
    size_t count = (size_t)b->out.event_count;
    if (!arena_grow(&b->out.arena, (void **)&b->out.events, count, &b->event_cap,
                    sizeof *b->out.events) ||
        !arena_grow(&b->scratch, (void **)&b->closed, count, &b->closed_cap, sizeof *b->closed))
        return 0; /* the arena remembers */
    b->out.events[count] = (struct event){kind, rank, task};
    b->closed[count] = false;
    return b->out.event_count++;
}

/* `event` is not before `from`, of `height` periods ago. */
static void add_cause(struct builder *b, struct cursor from, int event, int height)
{
    if (!arena_grow(&b->out.arena, (void **)&b->out.edges, (size_t)b->out.edge_count, &b->edge_cap,
                    sizeof *b->out.edges))
        return;
    if (from.event >= 0 && b->out.event_count > 0)
        b->closed[from.event] = true;
    b->out.edges[b->out.edge_count++] =
        (struct ratio_edge){from.event, event, from.height + height, from.offset_ns};
}

/* The slot's final cursor, of `height` periods ago. */
static struct cursor of_slot(int slot, int height)
{
    return (struct cursor){~slot, height, 0};
}

static struct cursor at_event(int event)
{
    return (struct cursor){event, 0, 0};
}

static bool is_open(const struct builder *b, const struct cursor *at)
{
    return at->event >= 0 && at->height == 0 && at->offset_ns == 0 && b->out.event_count > 0 &&
           !b->closed[at->event];
}

/* Move `at` to the later of both; `kind` is that of the event this may need. */
static void join(struct builder *b, struct cursor *at, struct cursor other, enum event_kind kind,
                 const struct place *place)
{
    if (!is_open(b, at)) {
        int event = new_event(b, kind, place->rank, place->task);
        add_cause(b, *at, event, 0);
        *at = at_event(event);
    }
    add_cause(b, other, at->event, 0);
}

/* Nothing may be added to what this is the time of. */
static struct cursor closed(struct builder *b, struct cursor at)
{
    if (at.event >= 0 && b->out.event_count > 0)
        b->closed[at.event] = true;
    return at;
}

static bool same_cursor(const struct cursor *a, const struct cursor *b)
{
    return a->event == b->event && a->height == b->height && a->offset_ns == b->offset_ns;
}

static struct cursor *thread_slot(struct builder *b, int thread)
{
    return &b->slots[b->slot_threads + thread];
}

static struct cursor *stream_slot(struct builder *b, int stream)
{
    return &b->slots[b->slot_streams + stream];
}

/* ---- what operations do ---------------------------------------------------------------------- */

/* Can a push to this stream find it full? */
static bool is_bounded(const struct program *p, int stream, int items)
{
    return p->plan->pipeline.retire != RETIRE_DEVICE || p->streams[stream].cap < items * p->depth;
}

/* A place in the stream's queue is free when the item that many before is through. */
static void take_place(struct builder *b, int stream, const struct place *place)
{
    int items = b->items[stream], item = b->walked[stream] - b->p->streams[stream].cap;
    if (!is_bounded(b->p, stream, items))
        return;
    int periods = 0;
    for (; item < 0; item += items)
        periods++;
    join(b, thread_slot(b, place->thread), of_slot(b->first_item[stream] + item, periods),
         EVENT_HOST, place);
}

/* The item is through when its stream's cursor says. */
static void end_item(struct builder *b, int stream)
{
    if (is_bounded(b->p, stream, b->items[stream]))
        b->slots[b->first_item[stream] + b->walked[stream]] = closed(b, *stream_slot(b, stream));
    b->walked[stream]++;
}

/* By how many periods the instance of `on` this operation looks at is older, and whether it is
   anyway before this one for whoever does all in enqueue order. */
static int age_of(const struct builder *b, const struct op *op, const struct place *place,
                  bool *before)
{
    int tasks = b->p->tasks, on = op->object % tasks, first = place->rank * tasks;
    int age = place->stage - plan_task(b->p->plan, place->rank, on)->stage + op->distance;
    *before = age > 0 || (age == 0 && b->positions[first + on] < b->positions[first + place->task]);
    return age;
}

static void walk_await(struct builder *b, const struct op *op, const struct place *place)
{
    bool before;
    int age = age_of(b, op, place, &before);
    if (before && b->p->worker[op->object] == place->thread)
        return;
    join(b, thread_slot(b, place->thread), of_slot(b->slot_signals + op->object, age), EVENT_HOST,
         place);
}

static void walk_wait(struct builder *b, const struct op *op, const struct place *place)
{
    const struct program *p = b->p;
    bool before;
    int age = age_of(b, op, place, &before), on = op->object % p->tasks;
    int plan_stream = plan_task(p->plan, place->rank, on)->stream;
    take_place(b, op->stream, place);
    if (is_bounded(p, op->stream, b->items[op->stream]))
        join(b, stream_slot(b, op->stream), *thread_slot(b, place->thread), EVENT_DEVICE, place);
    if (!before || plan_stream != p->streams[op->stream].plan_stream)
        join(b, stream_slot(b, op->stream), of_slot(b->slot_events + op->object, age), EVENT_DEVICE,
             place);
    end_item(b, op->stream);
}

static void walk_ticket(struct builder *b, const struct place *place)
{
    join(b, thread_slot(b, place->thread), b->slots[b->slot_served + place->rank], EVENT_HOST,
         place);
}

static void walk_sync(struct builder *b, const struct op *op, const struct place *place)
{
    for (int s = 0; s < b->p->stream_count; s++)
        if (op->sync == SYNC_STREAM ? s == op->stream : b->p->streams[s].rank == place->rank)
            join(b, thread_slot(b, place->thread), *stream_slot(b, s), EVENT_HOST, place);
}

static void walk_work(struct builder *b, const struct op *op, const struct place *place)
{
    struct cursor *stream = stream_slot(b, op->stream);
    take_place(b, op->stream, place);
    b->pushed[op->stream] = closed(b, *thread_slot(b, place->thread));
    join(b, stream, b->pushed[op->stream], EVENT_DEVICE, place);
    stream->offset_ns += b->timing->ops[op - b->p->ops].mean_ns;
    closed(b, *stream);
    end_item(b, op->stream);
}

/* All members are in it for as long as the slowest. */
static void walk_collective(struct builder *b, const struct op *op, const struct place *place)
{
    struct joint *joint = &b->joints[op->comm * b->p->tasks + op->task];
    struct cursor *stream = stream_slot(b, op->stream);
    struct cursor *member =
        &b->slots[b->slot_members + b->p->comms[op->comm].first_member + op->member];
    if (joint->event == NONE) {
        bool shared = b->p->comms[op->comm].count > 1;
        joint->event = new_event(b, EVENT_DEVICE, shared ? NONE : place->rank, place->task);
        joint->stage = place->stage;
    }
    int shift = joint->stage - place->stage;
    take_place(b, op->stream, place);
    b->pushed[op->stream] = closed(b, *thread_slot(b, place->thread));
    add_cause(b, b->pushed[op->stream], joint->event, shift);
    add_cause(b, *stream, joint->event, shift);
    if (!same_cursor(member, stream))
        add_cause(b, *member, joint->event, shift);
    *stream = *member = (struct cursor){joint->event, -shift, joint->longest_ns};
    closed(b, *stream);
    end_item(b, op->stream);
}

static void walk_record(struct builder *b, const struct op *op, const struct place *place)
{
    struct cursor *stream = stream_slot(b, op->stream);
    take_place(b, op->stream, place);
    if (!same_cursor(thread_slot(b, place->thread), &b->pushed[op->stream])) {
        b->pushed[op->stream] = closed(b, *thread_slot(b, place->thread));
        join(b, stream, b->pushed[op->stream], EVENT_DEVICE, place);
    }
    b->slots[b->slot_events + op->object] = closed(b, *stream);
    end_item(b, op->stream);
}

static void walk_op(struct builder *b, const struct op *op, const struct place *place)
{
    struct cursor *thread = thread_slot(b, place->thread);
    switch (op->kind) {
    case OP_AWAIT: walk_await(b, op, place); break;
    case OP_WAIT: walk_wait(b, op, place); break;
    case OP_TICKET: walk_ticket(b, place); break;
    case OP_SERVE: b->slots[b->slot_served + place->rank] = closed(b, *thread); break;
    case OP_SYNC: walk_sync(b, op, place); break;
    case OP_HOST: thread->offset_ns += b->timing->ops[op - b->p->ops].mean_ns; break;
    case OP_LAUNCH:
    case OP_COPY: walk_work(b, op, place); break;
    case OP_COLLECTIVE: walk_collective(b, op, place); break;
    case OP_RECORD: walk_record(b, op, place); break;
    case OP_SIGNAL: b->slots[b->slot_signals + op->object] = closed(b, *thread); break;
    default: break; /* an uncontended lock, the end of an instance: no time */
    }
}

/* ---- a period -------------------------------------------------------------------------------- */

/* Period p is enqueued when iteration p - depth has retired and the window has room. */
static void add_driver(struct builder *b, int rank, int driver)
{
    const struct program *p = b->p;
    enum retire_rule retire = p->plan->pipeline.retire;
    add_cause(b, at_event(driver), driver, 1);
    for (int task = 0; task < p->tasks; task++) {
        int family = rank * p->tasks + task, stage = plan_task(p->plan, rank, task)->stage;
        int slot = retire == RETIRE_DEVICE ? b->slot_events : b->slot_signals;
        add_cause(b, of_slot(slot + family, p->periods - stage), driver, 0);
        if (retire != RETIRE_DEVICE)
            add_cause(b, of_slot(b->slot_events + family, p->min_stage + p->window - stage), driver,
                      0);
    }
}

static void walk_rank(struct builder *b, int rank)
{
    const struct op *op;
    int driver = new_event(b, EVENT_DRIVER, rank, NONE), task = NONE;
    add_driver(b, rank, driver);
    for (struct scan scan = {.rank = rank}; (op = scan_next(b, &scan));) {
        const struct place *place = &scan.place;
        if (place->task != task) { /* the worker takes the instance */
            struct cursor *thread = thread_slot(b, place->thread);
            bool first = thread->event < 0;
            int begin = new_event(b, EVENT_HOST, rank, place->task);
            add_cause(b, *thread, begin, 0);
            if (first)
                add_cause(b, at_event(driver), begin, 0);
            *thread = at_event(begin);
            task = place->task;
        }
        walk_op(b, op, place);
    }
}

/* Edges out of slots lead out of what became of them. A slot nothing has happened to says nothing. */
static void resolve_slots(struct builder *b)
{
    struct event_graph *out = &b->out;
    int kept = 0;
    for (int e = 0; e < out->edge_count; e++) {
        struct ratio_edge edge = out->edges[e];
        if (edge.from < 0) {
            const struct cursor *slot = &b->slots[~edge.from];
            if (slot->event < 0)
                continue;
            edge.from = slot->event;
            edge.height += slot->height;
            edge.weight_ns += slot->offset_ns;
        }
        out->edges[kept++] = edge;
    }
    out->edge_count = kept;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void count_items(struct builder *b)
{
    const struct program *p = b->p;
    const struct op *op;
    for (int rank = 0; rank < p->ranks; rank++)
        for (struct scan scan = {.rank = rank}; (op = scan_next(b, &scan));) {
            b->positions[rank * p->tasks + scan.place.task] = scan.position;
            if (pushes(op))
                b->items[op->stream]++;
            if (op->kind != OP_COLLECTIVE)
                continue;
            struct joint *joint = &b->joints[op->comm * p->tasks + op->task];
            int64_t mean_ns = b->timing->ops[op - p->ops].mean_ns;
            if (mean_ns > joint->longest_ns)
                joint->longest_ns = mean_ns;
        }
}

static bool make_slots(struct builder *b)
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
        b->slot_count += is_bounded(p, s, b->items[s]) ? b->items[s] : 0;
    }
    b->slots = ARENA_ARRAY(&b->scratch, (size_t)b->slot_count, struct cursor);
    for (int i = 0; b->slots && i < b->slot_count; i++)
        b->slots[i] = of_slot(i, 1);
    return b->slots != NULL;
}

static bool make_tables(struct builder *b)
{
    const struct program *p = b->p;
    size_t streams = (size_t)p->stream_count;
    size_t joints = (size_t)p->comm_count * (size_t)p->tasks;
    b->joints = ARENA_ARRAY(&b->scratch, joints, struct joint);
    b->positions = ARENA_ARRAY(&b->scratch, (size_t)p->ranks * (size_t)p->tasks, int);
    b->stream_threads = ARENA_ARRAY(&b->scratch, streams, int);
    b->items = ARENA_ARRAY(&b->scratch, streams, int);
    b->first_item = ARENA_ARRAY(&b->scratch, streams, int);
    b->walked = ARENA_ARRAY(&b->scratch, streams, int);
    b->pushed = ARENA_ARRAY(&b->scratch, streams, struct cursor);
    if (b->scratch.failed)
        return false;
    for (size_t i = 0; i < joints; i++)
        b->joints[i].event = NONE;
    for (size_t s = 0; s < streams; s++) {
        b->stream_threads[s] = NONE;
        b->pushed[s] = of_slot(0, 0);
    }
    count_items(b);
    return make_slots(b);
}

/* false: there is no event graph, or no memory. */
static bool applies(struct builder *b)
{
    const struct program *p = b->p;
    size_t tasks = (size_t)p->tasks;
    if (!may_apply(b) || !make_tables(b))
        return false;
    int *locks = ARENA_ARRAY(&b->scratch, (size_t)p->lock_count, int);
    struct issuers *members = ARENA_ARRAY(&b->scratch, (size_t)p->member_count, struct issuers);
    struct follower *first = ARENA_ARRAY(&b->scratch, tasks, struct follower);
    struct follower *other = ARENA_ARRAY(&b->scratch, tasks, struct follower);
    if (b->scratch.failed)
        return false;
    for (int i = 0; i < p->lock_count; i++)
        locks[i] = NONE;
    for (int i = 0; i < p->member_count; i++)
        members[i].thread = NONE;
    return orders_are_fixed(b, locks, members) && collectives_agree(b, first, other);
}

enum status event_graph_build(const struct program *program, const struct timing *timing,
                              struct event_graph *out, struct diag *diag)
{
    struct builder b = {.p = program, .timing = timing};
    arena_init(&b.scratch, 0);
    arena_init(&b.out.arena, 0);
    bool good = applies(&b);
    for (int rank = 0; good && rank < program->ranks; rank++)
        walk_rank(&b, rank);
    bool failed = b.scratch.failed || b.out.arena.failed;
    if (good && !failed)
        resolve_slots(&b);
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

/* ---- the steady state ------------------------------------------------------------------------ */

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static bool same_part(const struct steady_part *a, const struct steady_part *b)
{
    return a->kind == b->kind && a->rank == b->rank && a->task == b->task;
}

/* The cycle in words begins at the driver if it is on it, else at the least event. */
static int first_edge(const struct event_graph *graph, const struct cycle_ratio *ratio)
{
    int first = 0;
    for (int i = 1; i < ratio->length; i++)
        if (graph->edges[ratio->cycle[i]].from < graph->edges[ratio->cycle[first]].from)
            first = i;
    for (int i = 0; i < ratio->length; i++)
        if (graph->events[graph->edges[ratio->cycle[i]].from].kind == EVENT_DRIVER)
            return i;
    return first;
}

/* What takes no time is left out, except from a deadlock. */
static enum status list_parts(struct steady *steady, const struct event_graph *graph,
                              const struct cycle_ratio *ratio, struct diag *diag)
{
    int first = first_edge(graph, ratio);
    steady->parts = calloc((unsigned)ratio->length, sizeof *steady->parts);
    if (!steady->parts)
        return diag_no_memory(diag);
    struct steady_part *last = NULL;
    for (int i = 0; i < ratio->length; i++) {
        const struct ratio_edge *edge = &graph->edges[ratio->cycle[(first + i) % ratio->length]];
        const struct event *event = &graph->events[edge->from];
        struct steady_part part = {event->kind, event->rank, event->task, edge->weight_ns};
        if (ratio->kind == RATIO_FOUND && part.ns == 0 && part.kind != EVENT_DRIVER)
            continue;
        if (last && same_part(last, &part)) {
            last->ns += part.ns;
            continue;
        }
        last = &steady->parts[steady->part_count++];
        *last = part;
    }
    return STATUS_OK;
}

static enum status describe(struct steady *steady, const struct event_graph *graph,
                            const struct cycle_ratio *ratio, struct diag *diag)
{
    if (ratio->kind == RATIO_FOUND) {
        int64_t divisor = common_divisor(ratio->weight_ns, ratio->height);
        steady->kind = STEADY_EXACT;
        steady->num_ns = ratio->weight_ns / divisor;
        steady->den = ratio->height / divisor;
        steady->iterations = ratio->height;
    } else {
        assert(ratio->kind == RATIO_DEADLOCK); /* the driver alone is a cycle */
        steady->kind = STEADY_DEADLOCK;
    }
    return list_parts(steady, graph, ratio, diag);
}

enum status steady_find(const struct program *program, const struct timing *timing,
                        struct steady *out, struct diag *diag)
{
    struct event_graph graph;
    struct cycle_ratio ratio = {0};
    struct steady steady = {.kind = STEADY_UNKNOWN};
    enum status status = event_graph_build(program, timing, &graph, diag);
    if (status != STATUS_OK)
        return status;
    if (*graph.why) {
        snprintf(steady.why, sizeof steady.why, "%s", graph.why);
    } else {
        const struct ratio_graph plain = {graph.event_count, graph.edge_count, graph.edges};
        status = cycle_ratio_find(&plain, &ratio, diag);
        if (status == STATUS_OK)
            status = describe(&steady, &graph, &ratio, diag);
        cycle_ratio_fini(&ratio);
    }
    event_graph_fini(&graph);
    if (status == STATUS_OK)
        *out = steady;
    else
        steady_fini(&steady);
    return status;
}

void steady_fini(struct steady *steady)
{
    free(steady->parts);
    *steady = (struct steady){0};
}
