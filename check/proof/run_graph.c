/* SPDX-License-Identifier: Apache-2.0 */
/* run_graph.c - see run_graph.h: one walk over the operations, and one over the users of each object. */
#include "run_graph.h"
#include "base/array.h"
#include "base/assert_index.h"
#include "base/sort.h"

enum graph_use { STREAM, MEMBER, RANK_CALL, HW_QUEUE, LOCK, EVENT, CALL, PUT, GET, USES };

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
    [CALL] = {"several threads of a rank use one communicator", false, false, RUN_EXECUTE},
    [PUT] = {"several threads put into one queue", false, false, RUN_EXECUTE},
    [GET] = {"several threads get from one queue", false, false, RUN_EXECUTE},
};

/* True if the operation waits only for its objects, for room and for partners. */
static bool is_plain(const struct op *op)
{
    switch (op_operand(op->kind)) {
    case OPERAND_NONE:
    case OPERAND_EVENT:
    case OPERAND_BUFFER: return true;
    case OPERAND_FLAG:
    case OPERAND_QUEUE:
    case OPERAND_LOCK: return !op_pushes(op->kind);
    case OPERAND_BARRIER:
    case OPERAND_COMM:
    case OPERAND_TURN:
    case OPERAND_SUBMISSION: break;
    }
    return false;
}

enum { NEVER = -1, OFTEN = -2 };

struct run_graph_builder {
    struct run_graph *g;
    const struct program *p;
    struct lists_lists lists[USES]; /* operations by the object they use so */
    int *last_push, *last_record;   /* per stream, per event: so far in the walk */
    int *caller;                    /* per body: the callback it belongs to, -1: none */
    int *setter;                    /* per flag: the operation that sets it, NEVER or OFTEN */
    int *meeting;                   /* per operation: that of a collective */
};

static void run_graph_refuse(struct run_graph *g, const char *why)
{
    if (!g->refusal)
        g->refusal = why;
}

static int *no_items(struct run_graph *g, size_t count)
{
    int *items = ARENA_ARRAY(g->arena, count + 1, int);
    for (size_t i = 0; items && i < count; i++)
        items[i] = -1;
    return items;
}

/* The object that an operation uses so; -1: none. */
static int run_graph_object_of(const struct program *p, const struct op *op, enum graph_use use)
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
    case CALL: return op_ends_together(op->kind) ? run_graph_object_of(p, op, MEMBER) : -1;
    case PUT: return op_gives_to(op->kind, OPERAND_QUEUE) ? op->object : -1;
    case GET: return op_takes_from(op->kind, OPERAND_QUEUE) ? op->object : -1;
    case USES: break;
    }
    return -1;
}

static int object_count(const struct program *p, enum graph_use use)
{
    const int counts[USES] = {p->stream_count,   p->member_count, p->ranks,
                              p->hw_queue_count, p->lock_count,   p->event_families,
                              p->member_count,   p->queue_count,  p->queue_count};
    return counts[use];
}

/* ---- waits ------------------------------------------------------------------------------------- */

static void run_graph_add_wait(struct run_graph *g, int64_t event, int64_t awaited, bool known)
{
    if (ARENA_REGROW(g->arena, g->waits, g->count, g->cap))
        g->waits[g->count++] = (struct run_wait){event, awaited, known};
}

static void after(struct run_graph *g, int64_t event, int op, enum run_part part, bool known)
{
    if (op >= 0)
        run_graph_add_wait(g, event, run_event(g, op, part), known);
}

/* The users of an object come in order, from one body. */
static void run_graph_use_object(struct run_graph_builder *b, enum graph_use use, int object)
{
    const struct lists_lists *users = &b->lists[use];
    for (int i = users->first[object], last = -1; i < users->first[object + 1]; i++) {
        int op = users->items[i];
        if (last >= 0 && b->g->body[last] != b->g->body[op])
            run_graph_refuse(b->g, rules[use].several);
        if (use == LOCK &&
            op_takes(b->p->ops[op].kind) != (last < 0 || op_gives(b->p->ops[last].kind)))
            run_graph_refuse(
                b->g, "a thread takes a lock that it holds, or releases one that it does not");
        if (rules[use].behind)
            after(b->g, run_event(b->g, op, RUN_START), last, rules[use].before, rules[use].known);
        last = op;
    }
}

/* An operation that only may wait is said to wait, and to learn nothing. With a stream or a device it knows what it waits
   for only if no other body pushes there. */
static void run_graph_add_sync(struct run_graph_builder *b, int index, int64_t execution)
{
    const struct program *p = b->p;
    ASSERT_INDEX(index, p->op_count);
    const struct op *op = &p->ops[index];
    int rank = program_sync_rank(p, p->bodies[b->g->body[index]].thread, op);
    bool chosen = index > p->bodies[b->g->body[index]].first && op_may_sync(&p->ops[index - 1]);
    if (op->sync == SYNC_EVENT) {
        after(b->g, execution, b->last_record[op->object], RUN_DONE, true);
        return;
    }
    for (int k = p->rank_first[rank]; k < p->rank_first[rank + 1]; k++) {
        int stream = p->rank_streams[k], first = b->lists[STREAM].first[stream];
        if ((op->sync == SYNC_STREAM || op->sync == SYNC_STAGED) && stream != op->stream)
            continue;
        if (first < b->lists[STREAM].first[stream + 1] &&
            b->g->body[b->lists[STREAM].items[first]] != b->g->body[index])
            run_graph_refuse(b->g, "a thread waits for a stream that another one pushes to");
        if (!op_may_sync(op))
            after(b->g, execution, b->last_push[stream], RUN_DONE,
                  op->sync != SYNC_LOAD && !chosen);
    }
}

/* Add the waits of a thread, but for room in streams and queues. */
static void add_host_wait(struct run_graph_builder *b, int index, int64_t execution)
{
    ASSERT_INDEX(index, b->p->op_count);
    const struct op *op = &b->p->ops[index];
    if (op_has_branches(op)) {
        run_graph_refuse(b->g, "which branch a thread takes depends on the run");
    } else if (op_syncs(op->kind)) {
        run_graph_add_sync(b, index, execution);
    } else if (op_role(op->kind) == ROLE_STEP) {
        run_graph_refuse(b->g, "a stream sets a flag or waits for one");
    } else if (op_takes_from(op->kind, OPERAND_FLAG)) {
        int setter = b->setter[op->object];
        if (setter < 0)
            run_graph_refuse(b->g, setter == NEVER ? "a flag is never set"
                                                   : "a flag is set more than once");
        after(b->g, execution, setter, RUN_EXECUTE, true);
    } else if (!is_plain(op)) {
        run_graph_refuse(b->g, op_operand(op->kind) == OPERAND_TURN
                                   ? "turns are taken with tickets"
                                   : "it has an operation that no certificate speaks of");
    }
}

static void add_device_waits(struct run_graph_builder *b, int index)
{
    ASSERT_INDEX(index, b->p->op_count);
    const struct op *op = &b->p->ops[index];
    int64_t start = run_event(b->g, index, RUN_START), end = run_event(b->g, index, RUN_DONE);
    after(b->g, start, index, RUN_EXECUTE, true);
    if (op_takes_from(op->kind, OPERAND_EVENT))
        after(b->g, start, b->last_record[op->object], RUN_START, true);
    if (end != start)
        run_graph_add_wait(b->g, end, start, true);
    if (op_role(op->kind) == ROLE_CALL && b->p->bodies[op->object].count > 0)
        after(b->g, end, b->p->bodies[op->object].first + b->p->bodies[op->object].count - 1,
              RUN_EXECUTE, true);
    b->last_push[op->stream] = index;
    if (op_gives_to(op->kind, OPERAND_EVENT))
        b->last_record[op->object] = index;
}

static void run_graph_walk(struct run_graph_builder *b)
{
    for (int i = 0; i < (int)b->p->op_count; i++) {
        int64_t execution = run_event(b->g, i, RUN_EXECUTE);
        if (i > b->p->bodies[b->g->body[i]].first)
            after(b->g, execution, i - 1, RUN_EXECUTE, true);
        else
            after(b->g, execution, b->caller[b->g->body[i]], RUN_START, true);
        add_host_wait(b, i, execution);
        if (op_pushes(b->p->ops[i].kind))
            add_device_waits(b, i);
    }
}

/* The k-th of a list waits for the k-th of the other, less `lag`. */
static void add_nth(struct run_graph_builder *b, enum graph_use waiting, enum graph_use awaited,
                    int object, int lag, enum run_part part)
{
    const int *first = b->lists[waiting].first + object;
    for (int k = lag; k < first[1] - first[0]; k++)
        after(b->g, run_event(b->g, b->lists[waiting].items[first[0] + k], RUN_EXECUTE),
              b->lists[awaited].items[b->lists[awaited].first[object] + k - lag], part,
              part == RUN_EXECUTE);
}

/* Room in a stream, items of a queue and room in it. */
static void add_rooms(struct run_graph_builder *b)
{
    for (int s = 0; s < b->p->stream_count; s++)
        add_nth(b, STREAM, STREAM, s, b->p->streams[s].cap, RUN_DONE);
    for (int q = 0; q < b->p->queue_count; q++) {
        const int *puts = b->lists[PUT].first + q, *gets = b->lists[GET].first + q;
        int left = puts[1] - puts[0] - (gets[1] - gets[0]);
        if (left < 0 || left > b->p->queue_caps[q]) {
            run_graph_refuse(b->g, "a put or a get of a queue has no partner");
            continue;
        }
        add_nth(b, GET, PUT, q, 0, RUN_EXECUTE);
        add_nth(b, PUT, GET, q, b->p->queue_caps[q], RUN_EXECUTE);
    }
}

/* ---- partners ---------------------------------------------------------------------------------- */

/* The n-th collectives of all members of a communicator meet. */
static void match_collectives(struct run_graph_builder *b)
{
    struct run_graph *g = b->g;
    for (int c = 0; c < b->p->comm_count; c++) {
        const int *first = &b->lists[CALL].first[b->p->comms[c].first_member];
        int count = first[1] - first[0];
        for (int m = 0; m < b->p->comms[c].count; m++) {
            if (first[m + 1] - first[m] != count)
                run_graph_refuse(
                    g, "the members of a communicator call different numbers of collectives");
            for (int k = 0; k < first[m + 1] - first[m]; k++)
                b->meeting[b->lists[CALL].items[first[m] + k]] =
                    k < count ? g->meeting_count + k : -1;
        }
        g->meeting_count += count;
    }
    g->meetings = lists_by(g->arena, b->meeting, b->p->op_count, g->meeting_count);
}

/* All members have started; those whose data all get are known to all. */
static void add_meetings(struct run_graph *g)
{
    const struct op *ops = g->program->ops;
    for (int m = 0; m < g->meeting_count; m++)
        for (int i = g->meetings.first[m]; i < g->meetings.first[m + 1]; i++) {
            int member = g->meetings.items[i];
            bool known = ops[member].given->root_count == 0;
            for (int k = 0; k < ops[member].given->root_count; k++)
                known |= ops[member].given->roots[k] == ops[member].member;
            after(g, run_meeting(g, m), member, RUN_START, known);
            run_graph_add_wait(g, run_event(g, member, RUN_DONE), run_meeting(g, m), true);
            if (!op_same_collective(&ops[g->meetings.items[g->meetings.first[m]]], &ops[member]))
                run_graph_refuse(g, "operations that meet are not alike");
        }
}

/* The n-th send and receive of a channel meet. The receiver learns from the sender, and under rendezvous the sender from the
   receiver. A send is met once only so many of its channel, it the last, are not received as may be on credit. */
static void match_channel(struct run_graph_builder *b, const int *owner, const int *sends,
                          const int *receives, int count)
{
    const struct part *parts = b->p->parts;
    const struct channel *channel = &b->p->channels[parts[*sends].channel];
    const struct comm_desc *comm = &b->p->comms[channel->comm];
    const bool rendezvous = comm->eager_messages == 0 && comm->eager_bytes == 0;
    int64_t bytes = 0;
    for (int k = 0, oldest = 0; k < count; k++) {
        const struct part *send = &parts[sends[k]], *receive = &parts[receives[k]];
        bytes += send->bytes;
        while (oldest <= k && bytes > comm->eager_bytes)
            bytes -= parts[sends[oldest++]].bytes;
        int credit = comm->eager_bytes > 0 ? k + 1 - oldest : 0;
        credit = max_int(credit, comm->eager_messages);
        credit = channel->from == channel->to ? 0 : credit;
        after(b->g, run_event(b->g, owner[receives[k]], RUN_DONE), owner[sends[k]], RUN_START,
              true);
        if (credit <= k)
            after(b->g, run_event(b->g, owner[sends[k]], RUN_DONE), owner[receives[k - credit]],
                  RUN_START, rendezvous);
        if (!part_same_message(send, receive))
            run_graph_refuse(b->g, "operations that meet are not alike");
    }
}

static void match_messages(struct run_graph_builder *b)
{
    const struct program *p = b->p;
    int *owner = no_items(b->g, p->part_count), *send_keys = no_items(b->g, p->part_count),
        *receive_keys = no_items(b->g, p->part_count);
    for (size_t i = 0; !b->g->arena->failed && i < p->op_count; i++)
        for (int k = 0; k < p->ops[i].part_count; k++) {
            int part = p->ops[i].part_first + k;
            (p->parts[part].send ? send_keys : receive_keys)[part] = p->parts[part].channel;
            owner[part] = (int)i;
        }
    const struct lists_lists sends =
                                 lists_by(b->g->arena, send_keys, p->part_count, p->channel_count),
                             receives = lists_by(b->g->arena, receive_keys, p->part_count,
                                                 p->channel_count);
    for (int c = 0; !b->g->arena->failed && c < p->channel_count; c++) {
        int count = sends.first[c + 1] - sends.first[c];
        if (count != receives.first[c + 1] - receives.first[c])
            run_graph_refuse(b->g, "a message is sent or received without a partner");
        else if (count > 0)
            match_channel(b, owner, sends.items + sends.first[c],
                          receives.items + receives.first[c], count);
    }
}

/* ---- the whole --------------------------------------------------------------------------------- */

static void find_bodies(struct run_graph_builder *b)
{
    const struct program *p = b->p;
    for (size_t k = 0; k < p->body_count; k++)
        for (int op = p->bodies[k].first; op < p->bodies[k].first + p->bodies[k].count; op++) {
            int object = p->ops[op].object;
            b->g->body[op] = (int)k;
            if (op_role(p->ops[op].kind) == ROLE_CALL)
                b->caller[object] = op;
            if (op_operand(p->ops[op].kind) == OPERAND_FLAG && p->flag_counts[object])
                run_graph_refuse(b->g, "a flag has other values than set and not set");
            if (op_gives_to(p->ops[op].kind, OPERAND_FLAG))
                b->setter[object] = b->setter[object] == NEVER ? op : OFTEN;
            if (p->plan->machine.sm_slots > 0 && p->ops[op].sm > 0)
                run_graph_refuse(b->g, "work competes for residency slots");
        }
}

/* False: memory is exhausted. */
static bool run_graph_open_tables(struct run_graph_builder *b)
{
    const struct program *p = b->p;
    int *keys = no_items(b->g, p->op_count);
    b->g->body = no_items(b->g, p->op_count);
    b->meeting = no_items(b->g, p->op_count);
    b->caller = no_items(b->g, p->body_count);
    b->setter = no_items(b->g, (size_t)p->flag_families);
    b->last_push = no_items(b->g, (size_t)p->stream_count);
    b->last_record = no_items(b->g, (size_t)p->event_families);
    for (int use = 0; use < USES; use++) {
        for (size_t i = 0; keys && i < p->op_count; i++)
            keys[i] = run_graph_object_of(p, &p->ops[i], (enum graph_use)use);
        b->lists[use] = lists_by(b->g->arena, keys, keys ? p->op_count : 0,
                                 object_count(p, (enum graph_use)use));
    }
    return !b->g->arena->failed;
}

bool run_graph_open(struct run_graph *g, const struct program *p, struct arena *arena)
{
    struct run_graph_builder b = {.g = g, .p = p};
    *g = (struct run_graph){.program = p, .arena = arena};
    if (!run_graph_open_tables(&b))
        return false;
    find_bodies(&b);
    match_collectives(&b);
    match_messages(&b);
    if (arena->failed || g->refusal)
        return !arena->failed;
    run_graph_walk(&b);
    for (int use = 0; use < USES; use++)
        for (int object = 0; object < object_count(p, (enum graph_use)use); object++)
            run_graph_use_object(&b, (enum graph_use)use, object);
    add_rooms(&b);
    add_meetings(g);
    return !arena->failed;
}

/* ---- events ------------------------------------------------------------------------------------ */

int64_t run_event(const struct run_graph *g, int op, enum run_part part)
{
    ASSERT_INDEX(op, g->program->op_count);
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
    ASSERT_INDEX(op, g->program->op_count);
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
