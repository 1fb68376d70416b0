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
#include <stdlib.h>
#include <string.h>

#include "event_graph_internal.h"

static const struct event_ref no_ref = {EVENT_NONE, 0, false};

/* ---- operations in enqueue order --------------------------------------------------------------- */

static const struct body *body_of(const struct program *p, int rank, int task)
{
    return &p->bodies[rank * p->tasks + task];
}

const struct op *event_graph_next(const struct builder *b, struct scan *scan)
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

/* ---- events and edges ------------------------------------------------------------------------ */

static int new_event(struct builder *b, enum event_kind kind, const struct place *place)
{
    size_t count = (size_t)b->out.event_count;
    if (!arena_grow(&b->out.arena, (void **)&b->out.events, count, &b->event_cap,
                    sizeof *b->out.events) ||
        !arena_grow(&b->scratch, (void **)&b->closed, count, &b->closed_cap, sizeof *b->closed))
        return 0; /* the arena remembers */
    b->out.events[count] = (struct event){kind, place->rank, place->task, place->stage, 0, 0};
    b->closed[count] = false;
    return b->out.event_count++;
}

/* `event` takes as long as this operation, too. All its operations are named in a row. */
static void add_op(struct builder *b, int event, const struct op *op)
{
    if (b->out.event_count == 0 ||
        !arena_grow(&b->out.arena, (void **)&b->out.ops, (size_t)b->out.op_count, &b->op_cap,
                    sizeof *b->out.ops))
        return;
    struct event *taker = &b->out.events[event];
    if (taker->op_count++ == 0)
        taker->op_first = b->out.op_count;
    b->out.ops[b->out.op_count++] = (int)(op - b->p->ops);
}

/* `event` is not before `from`, of `height` periods ago; `lane` as in event_link. */
static void add_cause(struct builder *b, struct event_ref from, int event, int height, int lane)
{
    size_t count = (size_t)b->out.edge_count;
    if (!arena_grow(&b->out.arena, (void **)&b->out.edges, count, &b->edge_cap,
                    sizeof *b->out.edges) ||
        !arena_grow(&b->out.arena, (void **)&b->out.links, count, &b->link_cap,
                    sizeof *b->out.links))
        return;
    if (from.event >= 0 && b->out.event_count > 0)
        b->closed[from.event] = true;
    b->out.links[count] = (struct event_link){from.end, lane, NONE};
    b->out.edges[b->out.edge_count++] =
        (struct ratio_edge){from.event, event, from.height + height, 0};
}

/* The slot's final cursor, of `height` periods ago. */
static struct event_ref of_slot(int slot, int height)
{
    return (struct event_ref){~slot, height, false};
}

static bool is_open(const struct builder *b, const struct event_ref *at)
{
    return at->event >= 0 && at->height == 0 && !at->end && b->out.event_count > 0 &&
           !b->closed[at->event];
}

/* Move the cursor of a lane to the later of both. */
static void join(struct builder *b, int lane, struct event_ref other, int other_lane,
                 enum event_kind kind, const struct place *place)
{
    struct event_ref *at = &b->slots[lane];
    if (!is_open(b, at)) {
        int event = new_event(b, kind, place);
        add_cause(b, *at, event, 0, lane);
        *at = ref_at(event);
    }
    add_cause(b, other, at->event, 0, other_lane);
}

/* The lane goes on when this operation, too, is over. */
static void spend(struct builder *b, int lane, const struct op *op, enum event_kind kind,
                  const struct place *place)
{
    struct event_ref *at = &b->slots[lane];
    bool fresh = at->event >= 0 && at->height == 0 && !at->end && b->out.event_count > 0 &&
                 b->out.events[at->event].op_count == 0;
    if (!fresh) {
        int event = new_event(b, kind, place);
        add_cause(b, *at, event, 0, lane);
        *at = ref_at(event);
    }
    add_op(b, at->event, op);
    at->end = true;
    if (b->out.event_count > 0)
        b->closed[at->event] = true;
}

/* Nothing may be added to what this is the time of. */
static struct event_ref closed(struct builder *b, struct event_ref at)
{
    if (at.event >= 0 && b->out.event_count > 0)
        b->closed[at.event] = true;
    return at;
}

static bool same_cursor(const struct event_ref *a, const struct event_ref *b)
{
    return a->event == b->event && a->height == b->height && a->end == b->end;
}

static struct event_ref *thread_slot(struct builder *b, int thread)
{
    return &b->slots[b->slot_threads + thread];
}

static struct event_ref *stream_slot(struct builder *b, int stream)
{
    return &b->slots[b->slot_streams + stream];
}

static void note(struct builder *b, const struct place *place, struct note what)
{
    struct notes *notes = &b->notes[place->thread];
    if (!arena_grow(&b->scratch, (void **)&notes->items, notes->count, &notes->cap,
                    sizeof *notes->items))
        return;
    what.task = place->task;
    what.begin = b->begin;
    notes->items[notes->count++] = what;
}

static void note_push(struct builder *b, const struct op *op, const struct place *place,
                      struct item what)
{
    struct items *items = &b->pushes[op->stream];
    if (!arena_grow(&b->scratch, (void **)&items->items, items->count, &items->cap,
                    sizeof *items->items))
        return;
    what.task = place->task;
    what.begin = b->begin;
    what.noted = b->notes[place->thread].count;
    what.pushed = *thread_slot(b, place->thread);
    items->items[items->count++] = what;
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
    struct event_ref through = of_slot(b->first_item[stream] + item, periods);
    int own = b->first_item[stream] + b->walked[stream] - b->slot_items;
    join(b, b->slot_threads + place->thread, through, NONE, EVENT_HOST, place);
    if (!b->out.arena.failed)
        b->out.links[b->out.edge_count - 1].place = own;
    note(b, place, (struct note){.kind = NOTE_PLACE, .until = through, .on = stream, .item = own});
}

/* The item is through when its stream's cursor says. */
static void end_item(struct builder *b, const struct op *op, const struct place *place)
{
    int stream = op->stream, slot = b->first_item[stream] + b->walked[stream]++;
    if (!is_bounded(b->p, stream, b->items[stream]))
        return;
    b->slots[slot] = closed(b, *stream_slot(b, stream));
    b->out.items[slot - b->slot_items] = (struct event_item){
        stream, place->stage, op->kind == OP_WAIT ? op->distance : 0, b->slots[slot]};
}

/* By how many periods the instance of `on` this operation looks at is older, and whether it is
   anyway before this one for a thread that does all in enqueue order. */
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
    struct event_ref signal = of_slot(b->slot_signals + op->object, age);
    join(b, b->slot_threads + place->thread, signal, NONE, EVENT_HOST, place);
    note(b, place,
         (struct note){.kind = NOTE_AWAIT, .until = signal, .on = op->object % b->p->tasks});
}

static void walk_wait(struct builder *b, const struct op *op, const struct place *place)
{
    const struct program *p = b->p;
    bool before;
    int age = age_of(b, op, place, &before), on = op->object % p->tasks;
    int plan_stream = plan_task(p->plan, place->rank, on)->stream;
    int lane = b->slot_streams + op->stream;
    struct event_ref event = of_slot(b->slot_events + op->object, age);
    take_place(b, op->stream, place);
    if (is_bounded(p, op->stream, b->items[op->stream]))
        join(b, lane, *thread_slot(b, place->thread), NONE, EVENT_DEVICE, place);
    if (!before || plan_stream != p->streams[op->stream].plan_stream) {
        note_push(b, op, place, (struct item){.kind = ITEM_WAIT, .until = event, .on = on});
        join(b, lane, event, NONE, EVENT_DEVICE, place);
    }
    end_item(b, op, place);
}

static void walk_ticket(struct builder *b, const struct place *place)
{
    int served = b->slot_served + place->rank;
    struct event_ref turn = b->slots[served];
    join(b, b->slot_threads + place->thread, turn, served, EVENT_HOST, place);
    note(b, place, (struct note){.kind = NOTE_TICKET, .until = turn});
}

static void walk_serve(struct builder *b, const struct place *place)
{
    struct event_ref end = closed(b, *thread_slot(b, place->thread));
    b->slots[b->slot_served + place->rank] = end;
    b->serves[place->rank * b->p->tasks + place->task] = end;
}

static void walk_host(struct builder *b, const struct op *op, const struct place *place)
{
    int lane = b->slot_threads + place->thread;
    spend(b, lane, op, EVENT_HOST, place);
    note(b, place, (struct note){.kind = NOTE_HOST, .until = b->slots[lane]});
}

static void walk_sync(struct builder *b, const struct op *op, const struct place *place)
{
    for (int s = 0; s < b->p->stream_count && !op_may_sync(op); s++)
        if (op->sync == SYNC_STREAM ? s == op->stream : b->p->streams[s].rank == place->rank)
            join(b, b->slot_threads + place->thread, *stream_slot(b, s), NONE, EVENT_HOST, place);
}

static void walk_work(struct builder *b, const struct op *op, const struct place *place)
{
    struct event_ref *stream = stream_slot(b, op->stream);
    int lane = b->slot_streams + op->stream;
    take_place(b, op->stream, place);
    b->pushed[op->stream] = closed(b, *thread_slot(b, place->thread));
    join(b, lane, b->pushed[op->stream], NONE, EVENT_DEVICE, place);
    spend(b, lane, op, EVENT_DEVICE, place);
    note_push(b, op, place, (struct item){.kind = ITEM_WORK, .until = *stream, .member = no_ref});
    end_item(b, op, place);
}

/* The operation of each member. */
static void add_joint_ops(struct builder *b, const struct op *op, int event)
{
    const struct program *p = b->p;
    const struct comm_desc *comm = &p->comms[op->comm];
    for (int m = 0; m < comm->count; m++) {
        const struct body *body = body_of(p, comm->members[m], op->task);
        for (int i = body->first; i < body->first + body->count; i++)
            if (p->ops[i].kind == OP_COLLECTIVE)
                add_op(b, event, &p->ops[i]);
    }
}

/* All members are in it for as long as the slowest. */
static void walk_collective(struct builder *b, const struct op *op, const struct place *place)
{
    struct joint *joint = &b->joints[op->comm * b->p->tasks + op->task];
    struct event_ref *stream = stream_slot(b, op->stream);
    int lane = b->slot_members + b->p->comms[op->comm].first_member + op->member;
    struct event_ref *member = &b->slots[lane], free_at = *member;
    if (joint->event == NONE) {
        struct place shared = *place;
        shared.rank = b->p->comms[op->comm].count > 1 ? NONE : place->rank;
        joint->event = new_event(b, EVENT_DEVICE, &shared);
        joint->stage = place->stage;
        add_joint_ops(b, op, joint->event);
    }
    int shift = joint->stage - place->stage;
    take_place(b, op->stream, place);
    b->pushed[op->stream] = closed(b, *thread_slot(b, place->thread));
    add_cause(b, b->pushed[op->stream], joint->event, shift, NONE);
    add_cause(b, *stream, joint->event, shift, b->slot_streams + op->stream);
    add_cause(b, *member, joint->event, shift, lane);
    *stream = *member = (struct event_ref){joint->event, -shift, true};
    closed(b, *stream);
    note_push(b, op, place,
              (struct item){.kind = ITEM_WORK,
                            .until = *stream,
                            .member = free_at,
                            .lane = lane,
                            .comm = op->comm});
    end_item(b, op, place);
}

static void walk_record(struct builder *b, const struct op *op, const struct place *place)
{
    struct event_ref *stream = stream_slot(b, op->stream);
    take_place(b, op->stream, place);
    if (!same_cursor(thread_slot(b, place->thread), &b->pushed[op->stream])) {
        b->pushed[op->stream] = closed(b, *thread_slot(b, place->thread));
        join(b, b->slot_streams + op->stream, b->pushed[op->stream], NONE, EVENT_DEVICE, place);
    }
    b->slots[b->slot_events + op->object] = closed(b, *stream);
    const struct task *task = plan_task(b->p->plan, place->rank, place->task);
    bool late = task->host_after_ns > 0 && task->work.kind != WORK_HOST;
    note_push(b, op, place,
              (struct item){.kind = late ? ITEM_LATE_RECORD : ITEM_RECORD,
                            .until = *stream,
                            .member = no_ref});
    end_item(b, op, place);
}

static void walk_op(struct builder *b, const struct op *op, const struct place *place)
{
    struct event_ref *thread = thread_slot(b, place->thread);
    switch (op->kind) {
    case OP_AWAIT: walk_await(b, op, place); break;
    case OP_WAIT: walk_wait(b, op, place); break;
    case OP_TICKET: walk_ticket(b, place); break;
    case OP_SERVE: walk_serve(b, place); break;
    case OP_SYNC: walk_sync(b, op, place); break;
    case OP_HOST: walk_host(b, op, place); break;
    case OP_LAUNCH:
    case OP_COPY: walk_work(b, op, place); break;
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
    case OP_ALLOC:
    case OP_FREE:
    case OP_RECORD_STREAM: assert(0 && "an operation that no event graph has"); break;
    }
}

/* ---- a period -------------------------------------------------------------------------------- */

/* Period p is enqueued when iteration p - depth has retired and the window has room. */
static void add_driver(struct builder *b, int rank, int driver)
{
    const struct program *p = b->p;
    enum retire_rule retire = p->plan->pipeline.retire;
    add_cause(b, ref_at(driver), driver, 1, b->slot_count + rank);
    for (int task = 0; task < p->tasks; task++) {
        int family = rank * p->tasks + task, stage = plan_task(p->plan, rank, task)->stage;
        int slot = retire == RETIRE_DEVICE ? b->slot_events : b->slot_signals;
        add_cause(b, of_slot(slot + family, p->periods - stage), driver, 0, NONE);
        if (retire != RETIRE_DEVICE)
            add_cause(b, of_slot(b->slot_events + family, p->min_stage + p->window - stage), driver,
                      0, NONE);
    }
}

/* The device is through with the iteration that the driver retires in this period, or later. */
static void add_finish(struct builder *b, int rank)
{
    const struct program *p = b->p;
    int finish = new_event(b, EVENT_HOST, &(struct place){rank, NONE, p->periods, NONE});
    b->out.finishes[rank] = finish;
    for (int task = 0; task < p->tasks; task++) {
        int stage = plan_task(p->plan, rank, task)->stage;
        add_cause(b, of_slot(b->slot_events + rank * p->tasks + task, p->periods - stage), finish,
                  0, NONE);
    }
}

static void walk_rank(struct builder *b, int rank)
{
    const struct op *op;
    int driver = new_event(b, EVENT_DRIVER, &(struct place){rank, NONE, 0, NONE}), task = NONE;
    b->out.drivers[rank] = driver;
    add_driver(b, rank, driver);
    for (struct scan scan = {.rank = rank}; (op = event_graph_next(b, &scan));) {
        const struct place *place = &scan.place;
        if (place->task != task) { /* the worker takes the instance */
            struct event_ref *thread = thread_slot(b, place->thread);
            bool first = thread->event < 0;
            b->begin = new_event(b, EVENT_HOST, place);
            add_cause(b, *thread, b->begin, 0, b->slot_threads + place->thread);
            add_cause(b, ref_at(driver), b->begin, 0, first ? EVENT_WAIT : EVENT_SPARE);
            *thread = ref_at(b->begin);
            task = place->task;
        }
        walk_op(b, op, place);
    }
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* The history of a slot. false: nothing has happened to it. */
static bool resolve(const struct builder *b, struct event_ref *ref)
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
    const struct event *of = &graph->events[event];
    for (int i = 0; i < of->op_count; i++) {
        int64_t mean_ns = timing_mean(timing, graph->ops[of->op_first + i]);
        longest_ns = mean_ns > longest_ns ? mean_ns : longest_ns;
    }
    return longest_ns;
}

/* False: memory. A collective has an operation and edges a rank, so its duration is found once. */
static bool find_means(struct builder *b)
{
    b->mean_ns = ARENA_ARRAY(&b->scratch, (size_t)b->out.event_count, int64_t);
    for (int e = 0; b->mean_ns && e < b->out.event_count; e++)
        b->mean_ns[e] = event_graph_mean_ns(&b->out, b->timing, e);
    return b->mean_ns != NULL;
}

static void resolve_slots(struct builder *b)
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
        out->links[kept++] = (struct event_link){from.end, out->links[e].lane, out->links[e].place};
    }
    out->edge_count = kept;
    for (int i = 0; i < out->item_count; i++)
        resolve(b, &out->items[i].through);
    for (int w = 0; w < out->work_count; w++) {
        struct event_work *work = &out->works[w];
        resolve(b, &work->done);
        int first = work->first, count = 0;
        for (int i = first; i < first + work->count; i++) {
            struct event_idle idle = out->idles[i];
            if (!resolve(b, &idle.until) ||
                (idle.pushed.event != EVENT_NONE && !resolve(b, &idle.pushed)))
                continue;
            out->idles[first + count++] = idle;
        }
        work->count = count;
    }
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void count_items(struct builder *b)
{
    const struct program *p = b->p;
    const struct op *op;
    for (int rank = 0; rank < p->ranks; rank++)
        for (struct scan scan = {.rank = rank}; (op = event_graph_next(b, &scan));) {
            b->positions[rank * p->tasks + scan.place.task] = scan.position;
            if (op_pushes(op->kind))
                b->items[op->stream]++;
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
    b->slot_items = b->slot_count;
    for (int s = 0; s < p->stream_count; s++) {
        b->first_item[s] = b->slot_count;
        b->slot_count += is_bounded(p, s, b->items[s]) ? b->items[s] : 0;
    }
    b->slots = ARENA_ARRAY(&b->scratch, (size_t)b->slot_count, struct event_ref);
    for (int i = 0; b->slots && i < b->slot_count; i++)
        b->slots[i] = of_slot(i, 1);
    b->out.item_count = b->slot_count - b->slot_items;
    b->out.items = ARENA_ARRAY(&b->out.arena, (size_t)b->out.item_count + 1, struct event_item);
    return b->slots && b->out.items;
}

static bool make_tables(struct builder *b)
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
    b->notes = ARENA_ARRAY(&b->scratch, (size_t)p->thread_count, struct notes);
    b->pushes = ARENA_ARRAY(&b->scratch, streams, struct items);
    b->serves = ARENA_ARRAY(&b->scratch, (size_t)p->ranks * (size_t)p->tasks, struct event_ref);
    b->out.drivers = ARENA_ARRAY(&b->out.arena, (size_t)p->ranks, int);
    b->out.finishes = ARENA_ARRAY(&b->out.arena, (size_t)p->ranks, int);
    if (b->scratch.failed || b->out.arena.failed)
        return false;
    for (int i = 0; i < p->ranks * p->tasks; i++)
        b->serves[i].event = EVENT_NONE;
    for (size_t i = 0; i < joints; i++)
        b->joints[i].event = NONE;
    for (size_t s = 0; s < streams; s++) {
        b->pushed[s] = of_slot(0, 0);
    }
    count_items(b);
    return make_slots(b);
}

enum status event_graph_build(const struct program *program, const struct timing *timing,
                              bool reasons, struct event_graph *out, struct diag *diag)
{
    struct builder b = {.p = program, .timing = timing};
    arena_init(&b.scratch, 0);
    arena_init(&b.out.arena, 0);
    bool good = event_graph_applies(&b) && make_tables(&b);
    for (int rank = 0; good && rank < program->ranks; rank++)
        walk_rank(&b, rank);
    bool ahead = reasons && program->plan->pipeline.retire == RETIRE_SUBMIT;
    for (int rank = 0; good && ahead && rank < program->ranks; rank++)
        add_finish(&b, rank);
    if (good && reasons && !b.scratch.failed && !b.out.arena.failed)
        event_graph_tell(&b);
    bool failed = b.scratch.failed || b.out.arena.failed || (good && !find_means(&b));
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
