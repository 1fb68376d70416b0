/* SPDX-License-Identifier: Apache-2.0 */
/* run_graph.c - see run_graph.h. One walk over the operations counts what each event waits for, a second one stores it. */
#include "run_graph.h"

enum use { STREAM, MEMBER, RANK_CALL, HW_QUEUE, LOCK, EVENT, RECORD, CALL, PUT, GET, USES };

/* Of an object one body uses, the order is that of its operations: what each of them starts behind, and what it learns. */
static const struct {
    const char *several; /* why runs differ where several bodies use the object */
    bool behind, known;
    enum run_part before;
} rules[USES] = {
    [STREAM] = {"several threads push to one stream", true, true, RUN_DONE},
    [MEMBER] = {"several threads of a rank use one communicator", true, false, RUN_DONE},
    [RANK_CALL] = {"several threads of a rank use communicators", true, false, RUN_START},
    [HW_QUEUE] = {"several threads share a hardware queue", true, false, RUN_START},
    [LOCK] = {"several threads take one lock", false, false, RUN_EXECUTE},
    [EVENT] = {"several threads use one event", false, false, RUN_EXECUTE},
    [RECORD] = {"several threads use one event", false, false, RUN_EXECUTE},
    [CALL] = {"several threads of a rank use one communicator", false, false, RUN_EXECUTE},
    [PUT] = {"several threads put into one queue", false, false, RUN_EXECUTE},
    [GET] = {"several threads get from one queue", false, false, RUN_EXECUTE},
};

enum { NEVER = -1, OFTEN = -2 };

struct builder {
    struct run_graph *g;
    const struct program *p;
    int *last[USES]; /* per object: the last operation that used it */
    int *caller;     /* per body: the callback it belongs to, -1: none */
    int *setter;     /* per flag: the operation that sets it, NEVER or OFTEN */
    int *owner;      /* per part: its operation */
    int *credit;     /* per part: the part of the other side that must have started, -1: none */
    struct run_lists pushes, calls, puts, gets;
};

static void refuse(struct run_graph *g, const char *why)
{
    if (!g->refusal)
        g->refusal = why;
}

static int *no_items(struct run_graph *g, size_t count)
{
    int *items = ARENA_ARRAY(&g->arena, count + 1, int);
    for (size_t i = 0; items && i < count; i++)
        items[i] = -1;
    return items;
}

/* A counting sort: keys[i] is the object of item i, -1: none. */
static struct run_lists list_by(struct run_graph *g, const int *keys, size_t count, int objects)
{
    struct run_lists lists = {ARENA_ARRAY(&g->arena, (size_t)objects + 2, int),
                              ARENA_ARRAY(&g->arena, count + 1, int)};
    if (g->arena.failed)
        return lists;
    for (size_t i = 0; i < count; i++)
        lists.first[keys[i] + 2] += keys[i] >= 0;
    for (int object = 2; object <= objects + 1; object++)
        lists.first[object] += lists.first[object - 1];
    for (size_t i = 0; i < count; i++)
        if (keys[i] >= 0)
            lists.items[lists.first[keys[i] + 1]++] = (int)i;
    return lists;
}

/* The object that an operation uses so; -1: none. */
static int object_of(const struct program *p, const struct op *op, enum use use)
{
    bool pushes = op_pushes(op->kind), calls = op_uses_comm(op->kind);
    switch (use) {
    case STREAM: return pushes ? op->stream : -1;
    case MEMBER: return calls ? p->comms[op->comm].first_member + op->member : -1;
    case RANK_CALL:
        return calls && p->plan->machine.launch_order_implicit ? p->streams[op->stream].rank : -1;
    case HW_QUEUE: return pushes ? p->streams[op->stream].hw_queue : -1;
    case LOCK: return op_operand(op->kind) == OPERAND_LOCK ? op->object : -1;
    case EVENT: /* a wait for a load names a kernel */
        return op_operand(op->kind) == OPERAND_EVENT && op->sync != SYNC_LOAD ? op->object : -1;
    case RECORD: return op->kind == OP_RECORD ? op->object : -1;
    case CALL: return op->kind == OP_COLLECTIVE ? object_of(p, op, MEMBER) : -1;
    case PUT: return op->kind == OP_PUT ? op->object : -1;
    case GET: return op->kind == OP_GET ? op->object : -1;
    case USES: break;
    }
    return -1;
}

static int object_count(const struct program *p, enum use use)
{
    const int counts[USES] = {
        p->stream_count,   p->member_count,   p->ranks,        p->hw_queue_count, p->lock_count,
        p->event_families, p->event_families, p->member_count, p->queue_count,    p->queue_count};
    return counts[use];
}

static struct run_lists list_ops(struct builder *b, enum use use)
{
    int *keys = no_items(b->g, b->p->op_count);
    for (size_t i = 0; keys && i < b->p->op_count; i++)
        keys[i] = object_of(b->p, &b->p->ops[i], use);
    return list_by(b->g, keys, keys ? b->p->op_count : 0, object_count(b->p, use));
}

/* ---- waits ------------------------------------------------------------------------------------- */

/* In the first walk they are counted. */
static void add_wait(struct run_graph *g, int64_t event, int64_t awaited, bool known)
{
    if (g->waits)
        g->waits[g->first[event + 1]++] = (struct run_wait){awaited, known};
    else
        g->first[event + 2]++;
}

static void after(struct run_graph *g, int64_t event, int op, enum run_part part, bool known)
{
    if (op >= 0)
        add_wait(g, event, run_event(g, op, part), known);
}

static void use_objects(struct builder *b, int index)
{
    const struct op *op = &b->p->ops[index];
    for (int use = 0; use < USES; use++) {
        int object = object_of(b->p, op, (enum use)use);
        if (object < 0)
            continue;
        int *last = &b->last[use][object];
        if (*last >= 0 && b->g->body[*last] != b->g->body[index])
            refuse(b->g, rules[use].several);
        if (use == LOCK &&
            (op->kind == OP_LOCK) != (*last < 0 || b->p->ops[*last].kind == OP_UNLOCK))
            refuse(b->g, "a thread takes a lock that it holds, or releases one that it does not");
        if (rules[use].behind)
            after(b->g, run_event(b->g, index, RUN_START), *last, rules[use].before,
                  rules[use].known);
        *last = index;
    }
}

/* An operation that only may wait is said to wait, and to learn nothing. With a stream or a device it knows what it waits
   for only if no other body pushes there. */
static void add_sync(struct builder *b, int index)
{
    const struct program *p = b->p;
    const struct op *op = &p->ops[index];
    int rank = program_sync_rank(p, p->bodies[b->g->body[index]].thread, op);
    bool chosen = index > p->bodies[b->g->body[index]].first && p->ops[index - 1].kind == OP_SYNC &&
                  p->ops[index - 1].sync == SYNC_RETRY;
    if (op->sync == SYNC_EVENT) {
        after(b->g, run_event(b->g, index, RUN_EXECUTE), b->last[RECORD][op->object], RUN_DONE,
              true);
        return;
    }
    for (int k = p->rank_first[rank]; k < p->rank_first[rank + 1]; k++) {
        int stream = p->rank_streams[k], first = b->pushes.first[stream];
        if (op->sync == SYNC_STREAM && stream != op->stream)
            continue;
        if (first < b->pushes.first[stream + 1] &&
            b->g->body[b->pushes.items[first]] != b->g->body[index])
            refuse(b->g, "a thread waits for a stream that another one pushes to");
        if (op->sync != SYNC_RETRY)
            after(b->g, run_event(b->g, index, RUN_EXECUTE), b->last[STREAM][stream], RUN_DONE,
                  op->sync != SYNC_LOAD && !chosen);
    }
}

/* The objects that a thread waits for besides room in streams and queues. */
static void add_host_wait(struct builder *b, int index)
{
    const struct op *op = &b->p->ops[index];
    switch (op->kind) {
    case OP_SYNC: add_sync(b, index); break;
    case OP_AWAIT:
        if (b->setter[op->object] < 0)
            refuse(b->g, b->setter[op->object] == NEVER ? "a flag is never set"
                                                        : "a flag is set more than once");
        after(b->g, run_event(b->g, index, RUN_EXECUTE), b->setter[op->object], RUN_EXECUTE, true);
        break;
    case OP_TICKET:
    case OP_SERVE: refuse(b->g, "turns are taken with tickets"); break;
    case OP_BARRIER:
    case OP_COMPLETE: refuse(b->g, "it has an operation that no certificate speaks of"); break;
    case OP_PUT: /* the two ends of a queue: add_rooms */
    case OP_GET:
    case OP_LOCK: /* of one body, which does not hold it */
    case OP_UNLOCK:
    case OP_HOST:
    case OP_COMPUTE:
    case OP_SIGNAL:
    case OP_FREE:
    case OP_RECORD_STREAM:
    case OP_LAUNCH:
    case OP_COPY:
    case OP_COLLECTIVE:
    case OP_GROUP:
    case OP_CALLBACK:
    case OP_RECORD:
    case OP_WAIT:
    case OP_ALLOC: break;
    }
}

/* A receiver learns from its sender, and under rendezvous the sender from its receiver. */
static void add_message(struct builder *b, int64_t end, int part)
{
    const struct part *message = &b->p->parts[part];
    const struct comm_desc *comm = &b->p->comms[b->p->channels[message->channel].comm];
    bool rendezvous = comm->eager_messages == 0 && comm->eager_bytes == 0;
    if (b->credit[part] >= 0)
        after(b->g, end, b->owner[b->credit[part]], RUN_START, !message->send || rendezvous);
}

static void add_device_waits(struct builder *b, int index)
{
    const struct op *op = &b->p->ops[index];
    int64_t start = run_event(b->g, index, RUN_START), end = run_event(b->g, index, RUN_DONE);
    after(b->g, start, index, RUN_EXECUTE, true);
    if (op->kind == OP_WAIT)
        after(b->g, start, b->last[RECORD][op->object], RUN_START, true);
    if (end != start)
        add_wait(b->g, end, start, true);
    if (op->kind == OP_COLLECTIVE)
        add_wait(b->g, end, run_meeting(b->g, b->g->meeting[index]), true);
    for (int k = 0; k < op->part_count; k++)
        add_message(b, end, op->part_first + k);
    if (op->kind == OP_CALLBACK && b->p->bodies[op->object].count > 0)
        after(b->g, end, b->p->bodies[op->object].first + b->p->bodies[op->object].count - 1,
              RUN_EXECUTE, true);
}

/* The k-th of a list waits for the k-th of the other, less `lag`. */
static void add_nth(struct run_graph *g, const struct run_lists *waiting,
                    const struct run_lists *awaited, int object, int lag, enum run_part part)
{
    int count = waiting->first[object + 1] - waiting->first[object];
    for (int k = lag; k < count; k++)
        after(g, run_event(g, waiting->items[waiting->first[object] + k], RUN_EXECUTE),
              awaited->items[awaited->first[object] + k - lag], part, part == RUN_EXECUTE);
}

/* Room in a stream, items of a queue and room in it. */
static void add_rooms(struct builder *b)
{
    const struct program *p = b->p;
    for (int s = 0; s < p->stream_count; s++)
        add_nth(b->g, &b->pushes, &b->pushes, s, p->streams[s].cap, RUN_DONE);
    for (int q = 0; q < p->queue_count; q++) {
        int puts = b->puts.first[q + 1] - b->puts.first[q];
        int gets = b->gets.first[q + 1] - b->gets.first[q];
        if (gets > puts || puts - gets > p->queue_caps[q]) {
            refuse(b->g, "a put or a get of a queue has no partner");
            continue;
        }
        add_nth(b->g, &b->gets, &b->puts, q, 0, RUN_EXECUTE);
        add_nth(b->g, &b->puts, &b->gets, q, p->queue_caps[q], RUN_EXECUTE);
    }
}

/* All members have started; those whose data all get are known to all. */
static void add_meetings(struct run_graph *g)
{
    for (int m = 0; m < g->meeting_count; m++)
        for (int i = g->meetings.first[m]; i < g->meetings.first[m + 1]; i++) {
            const struct op *op = &g->program->ops[g->meetings.items[i]];
            bool known = op->given->root_count == 0;
            for (int k = 0; k < op->given->root_count; k++)
                known |= op->given->roots[k] == op->member;
            after(g, run_meeting(g, m), g->meetings.items[i], RUN_START, known);
        }
}

static void walk(struct builder *b)
{
    const struct program *p = b->p;
    for (int use = 0; use < USES; use++)
        for (int object = 0; object < object_count(p, (enum use)use); object++)
            b->last[use][object] = -1;
    for (int i = 0; i < (int)p->op_count; i++) {
        const struct body *body = &p->bodies[b->g->body[i]];
        int64_t execution = run_event(b->g, i, RUN_EXECUTE);
        if (i > body->first)
            after(b->g, execution, i - 1, RUN_EXECUTE, true);
        else
            after(b->g, execution, b->caller[b->g->body[i]], RUN_START, true);
        add_host_wait(b, i);
        if (op_pushes(p->ops[i].kind))
            add_device_waits(b, i);
        use_objects(b, i);
    }
    add_rooms(b);
    add_meetings(b->g);
}

/* ---- partners ---------------------------------------------------------------------------------- */

/* The n-th collectives of all members of a communicator meet. */
static void match_collectives(struct builder *b)
{
    struct run_graph *g = b->g;
    const struct program *p = b->p;
    for (int c = 0; c < p->comm_count; c++) {
        const int *first = &b->calls.first[p->comms[c].first_member];
        int count = first[1] - first[0];
        for (int m = 0; m < p->comms[c].count; m++) {
            if (first[m + 1] - first[m] != count) {
                refuse(g, "the members of a communicator call different numbers of collectives");
                return;
            }
            for (int k = 0; k < count; k++)
                g->meeting[b->calls.items[first[m] + k]] = g->meeting_count + k;
        }
        g->meeting_count += count;
    }
    g->meetings = list_by(g, g->meeting, p->op_count, g->meeting_count);
}

/* A send is met once only so many of its channel, it the last, are not received as may be on credit. */
static void match_channel(struct builder *b, int channel)
{
    const struct run_graph *g = b->g;
    const struct program *p = b->p;
    const struct comm_desc *comm = &p->comms[p->channels[channel].comm];
    const int *sends = &g->sends.items[g->sends.first[channel]];
    const int *receives = &g->receives.items[g->receives.first[channel]];
    int count = g->sends.first[channel + 1] - g->sends.first[channel], oldest = 0;
    bool to_itself = p->channels[channel].from == p->channels[channel].to;
    if (count != g->receives.first[channel + 1] - g->receives.first[channel]) {
        refuse(b->g, "a message is sent or received without a partner");
        return;
    }
    int64_t bytes = 0;
    for (int k = 0; k < count; k++) {
        bytes += p->parts[sends[k]].bytes;
        while (oldest <= k && bytes > comm->eager_bytes)
            bytes -= p->parts[sends[oldest++]].bytes;
        int credit = comm->eager_bytes > 0 ? k + 1 - oldest : 0;
        credit = credit > comm->eager_messages ? credit : comm->eager_messages;
        credit = to_itself ? 0 : credit;
        b->credit[receives[k]] = sends[k];
        b->credit[sends[k]] = credit <= k ? receives[k - credit] : -1;
    }
}

static void match_messages(struct builder *b)
{
    const struct program *p = b->p;
    int *sends = no_items(b->g, p->part_count), *receives = no_items(b->g, p->part_count);
    for (size_t i = 0; sends && receives && i < p->op_count; i++)
        for (int k = 0; k < p->ops[i].part_count; k++) {
            int part = p->ops[i].part_first + k;
            (p->parts[part].send ? sends : receives)[part] = p->parts[part].channel;
            b->owner[part] = (int)i;
        }
    if (b->g->arena.failed)
        return;
    b->g->sends = list_by(b->g, sends, p->part_count, p->channel_count);
    b->g->receives = list_by(b->g, receives, p->part_count, p->channel_count);
    for (int c = 0; !b->g->arena.failed && c < p->channel_count; c++)
        match_channel(b, c);
}

static void find_bodies(struct builder *b)
{
    const struct program *p = b->p;
    for (size_t k = 0; k < p->body_count; k++)
        for (int op = p->bodies[k].first; op < p->bodies[k].first + p->bodies[k].count; op++) {
            int object = p->ops[op].object;
            b->g->body[op] = (int)k;
            if (p->ops[op].kind == OP_CALLBACK)
                b->caller[object] = op;
            if (p->ops[op].kind == OP_SIGNAL)
                b->setter[object] = b->setter[object] == NEVER ? op : OFTEN;
            if (p->plan->machine.sm_slots > 0 && p->ops[op].sm > 0)
                refuse(b->g, "work competes for residency slots");
        }
}

/* ---- the whole --------------------------------------------------------------------------------- */

static void open_tables(struct builder *b)
{
    const struct program *p = b->p;
    b->g->body = no_items(b->g, p->op_count);
    b->g->meeting = no_items(b->g, p->op_count);
    b->caller = no_items(b->g, p->body_count);
    b->setter = no_items(b->g, (size_t)p->flag_families);
    b->owner = no_items(b->g, p->part_count);
    b->credit = no_items(b->g, p->part_count);
    for (int use = 0; use < USES; use++)
        b->last[use] = no_items(b->g, (size_t)object_count(p, (enum use)use));
    b->pushes = list_ops(b, STREAM);
    b->calls = list_ops(b, CALL);
    b->puts = list_ops(b, PUT);
    b->gets = list_ops(b, GET);
}

static void store_waits(struct builder *b)
{
    struct run_graph *g = b->g;
    int64_t events = run_event_count(g);
    g->first = ARENA_ARRAY(&g->arena, (size_t)events + 2, int64_t);
    if (!g->first)
        return;
    walk(b);
    for (int64_t event = 2; event <= events + 1; event++)
        g->first[event] += g->first[event - 1];
    g->waits = ARENA_ARRAY(&g->arena, (size_t)g->first[events + 1] + 1, struct run_wait);
    if (g->waits)
        walk(b);
}

bool run_graph_open(struct run_graph *g, const struct program *p)
{
    *g = (struct run_graph){.program = p};
    struct builder b = {.g = g, .p = p};
    open_tables(&b);
    if (!g->arena.failed)
        find_bodies(&b);
    if (!g->arena.failed)
        match_collectives(&b);
    if (!g->arena.failed)
        match_messages(&b);
    if (!g->arena.failed && !g->refusal)
        store_waits(&b);
    return !g->arena.failed;
}

void run_graph_close(struct run_graph *graph)
{
    arena_fini(&graph->arena);
}

/* ---- events ------------------------------------------------------------------------------------ */

int64_t run_event(const struct run_graph *g, int op, enum run_part part)
{
    bool mark = op_is_mark(g->program->ops[op].kind);
    return (int64_t)op * RUN_PARTS + (mark && part == RUN_DONE ? RUN_START : part);
}

int64_t run_meeting(const struct run_graph *g, int meeting)
{
    return (int64_t)g->program->op_count * RUN_PARTS + meeting;
}

int64_t run_event_count(const struct run_graph *g)
{
    return run_meeting(g, g->meeting_count);
}

int64_t run_access_event(const struct run_graph *g, int op)
{
    return run_event(g, op, op_pushes(g->program->ops[op].kind) ? RUN_START : RUN_EXECUTE);
}

bool run_in_line(const struct run_graph *g, int64_t first, int64_t second)
{
    if (second >= run_meeting(g, 0) || first >= second)
        return false;
    int a = (int)(first / RUN_PARTS), b = (int)(second / RUN_PARTS);
    bool host = first % RUN_PARTS == RUN_EXECUTE;
    const struct op *x = &g->program->ops[a], *y = &g->program->ops[b];
    if (host || second % RUN_PARTS == RUN_EXECUTE)
        return host && second % RUN_PARTS == RUN_EXECUTE && g->body[a] == g->body[b];
    return op_pushes(x->kind) && op_pushes(y->kind) && x->stream == y->stream;
}
