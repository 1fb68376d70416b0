/* run_graph.c - see run_graph.h. */
#include "run_graph.h"

/* ---- lists by object --------------------------------------------------------------------------- */

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

static void refuse(struct run_graph *g, const char *why)
{
    if (!g->refusal)
        g->refusal = why;
}

/* Each object is used by one body, so the order of its list is that of every run. */
static void need_one_body(struct run_graph *g, const struct run_lists *lists, int objects,
                          const char *why)
{
    for (int object = 0; object < objects; object++)
        for (int i = lists->first[object] + 1; i < lists->first[object + 1]; i++)
            if (g->body[lists->items[i]] != g->body[lists->items[i - 1]])
                refuse(g, why);
}

/* previous[i]: the item before i in its list. */
static void link_lists(const struct run_lists *lists, int objects, int *previous)
{
    for (int object = 0; object < objects; object++)
        for (int i = lists->first[object] + 1; i < lists->first[object + 1]; i++)
            previous[lists->items[i]] = lists->items[i - 1];
}

static int *no_items(struct run_graph *g, size_t count)
{
    int *items = ARENA_ARRAY(&g->arena, count + 1, int);
    for (size_t i = 0; items && i < count; i++)
        items[i] = -1;
    return items;
}

enum key { BY_STREAM, BY_PUT, BY_GET, BY_MEMBER, BY_RANK, BY_HW_QUEUE, BY_LOCK, BY_EVENT, BY_FLAG };

static int key_of(const struct run_graph *g, const struct op *op, enum key key)
{
    const struct program *p = g->program;
    switch (key) {
    case BY_STREAM: return op_pushes(op->kind) ? op->stream : -1;
    case BY_PUT: return op->kind == OP_PUT ? op->object : -1;
    case BY_GET: return op->kind == OP_GET ? op->object : -1;
    case BY_MEMBER:
        return op_uses_comm(op->kind) ? p->comms[op->comm].first_member + op->member : -1;
    case BY_RANK:
        return op_uses_comm(op->kind) && p->plan->machine.launch_order_implicit
                   ? p->streams[op->stream].rank
                   : -1;
    case BY_HW_QUEUE: return op_pushes(op->kind) ? p->streams[op->stream].hw_queue : -1;
    case BY_LOCK: return op_operand(op->kind) == OPERAND_LOCK ? op->object : -1;
    case BY_EVENT:
        return op_operand(op->kind) == OPERAND_EVENT &&
                       (op->kind != OP_SYNC || op->sync == SYNC_EVENT)
                   ? op->object
                   : -1;
    case BY_FLAG: return op->kind == OP_SIGNAL ? op->object : -1;
    }
    return -1;
}

static struct run_lists list_ops(struct run_graph *g, enum key key, int objects, const char *why)
{
    const struct program *p = g->program;
    int *keys = no_items(g, p->op_count);
    for (size_t i = 0; keys && i < p->op_count; i++)
        keys[i] = key_of(g, &p->ops[i], key);
    struct run_lists lists = list_by(g, keys, keys ? p->op_count : 0, objects);
    if (!g->arena.failed && why)
        need_one_body(g, &lists, objects, why);
    return lists;
}

/* ---- what is bound to what --------------------------------------------------------------------- */

/* A wait or a sync means the last record before it. */
static void bind_events(struct run_graph *g, const struct run_lists *events)
{
    for (int event = 0; event < g->program->event_families; event++)
        for (int i = events->first[event], last = -1; i < events->first[event + 1]; i++) {
            int op = events->items[i];
            if (g->program->ops[op].kind == OP_RECORD)
                last = op;
            else
                g->bound[op] = last;
        }
}

static void bind_flags(struct run_graph *g, const struct run_lists *flags)
{
    const struct program *p = g->program;
    for (size_t i = 0; i < p->op_count; i++) {
        const struct op *op = &p->ops[i];
        if (op->kind != OP_AWAIT)
            continue;
        int first = flags->first[op->object], count = flags->first[op->object + 1] - first;
        if (count != 1)
            refuse(g, count ? "a flag is set more than once" : "a flag is never set");
        else
            g->bound[i] = flags->items[first];
    }
}

static void check_locks(struct run_graph *g, const struct run_lists *locks)
{
    for (int lock = 0; lock < g->program->lock_count; lock++)
        for (int i = locks->first[lock]; i < locks->first[lock + 1]; i++) {
            bool even = (i - locks->first[lock]) % 2 == 0;
            if (g->program->ops[locks->items[i]].kind != (even ? OP_LOCK : OP_UNLOCK))
                refuse(g, "a thread takes a lock that it holds, or releases one that it does not");
        }
}

/* The n-th get waits for the n-th put; a put, where the queue is full, for the get that makes room. */
static void check_queues(struct run_graph *g)
{
    const struct program *p = g->program;
    for (int q = 0; q < p->queue_count; q++) {
        int puts = g->puts.first[q + 1] - g->puts.first[q];
        int gets = g->gets.first[q + 1] - g->gets.first[q];
        if (gets > puts || puts - gets > p->queue_caps[q])
            refuse(g, "a put or a get of a queue has no partner");
    }
}

/* The n-th collectives of all members of a communicator meet. */
static void match_collectives(struct run_graph *g)
{
    const struct program *p = g->program;
    int *count = ARENA_ARRAY(&g->arena, (size_t)p->member_count + 1, int), meetings = 0;
    for (size_t i = 0; count && i < p->op_count; i++)
        if (p->ops[i].kind == OP_COLLECTIVE)
            g->meeting[i] = count[key_of(g, &p->ops[i], BY_MEMBER)]++;
    int *first = ARENA_ARRAY(&g->arena, (size_t)p->comm_count + 1, int);
    for (int c = 0; first && count && c < p->comm_count; c++) {
        const struct comm_desc *comm = &p->comms[c];
        first[c] = meetings;
        meetings += count[comm->first_member];
        for (int m = 1; m < comm->count; m++)
            if (count[comm->first_member + m] != count[comm->first_member])
                refuse(g, "the members of a communicator call different numbers of collectives");
    }
    if (g->arena.failed || g->refusal)
        return;
    for (size_t i = 0; i < p->op_count; i++)
        if (p->ops[i].kind == OP_COLLECTIVE)
            g->meeting[i] += first[p->ops[i].comm];
    g->meeting_count = meetings;
    g->meetings = list_by(g, g->meeting, p->op_count, meetings);
}

/* A send is met once only so many of its channel, it the last, are not received as may be on credit. */
static void match_channel(struct run_graph *g, int channel)
{
    const struct program *p = g->program;
    const struct comm_desc *comm = &p->comms[p->channels[channel].comm];
    const int *sends = &g->sends.items[g->sends.first[channel]];
    const int *receives = &g->receives.items[g->receives.first[channel]];
    int count = g->sends.first[channel + 1] - g->sends.first[channel], oldest = 0;
    bool to_itself = p->channels[channel].from == p->channels[channel].to;
    if (count != g->receives.first[channel + 1] - g->receives.first[channel]) {
        refuse(g, "a message is sent or received without a partner");
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
        g->credit[receives[k]] = sends[k];
        g->credit[sends[k]] = credit <= k ? receives[k - credit] : -1;
    }
}

static void match_messages(struct run_graph *g)
{
    const struct program *p = g->program;
    int *sends = no_items(g, p->part_count), *receives = no_items(g, p->part_count);
    for (size_t i = 0; sends && receives && i < p->op_count; i++)
        for (int k = 0; k < p->ops[i].part_count; k++) {
            int part = p->ops[i].part_first + k;
            (p->parts[part].send ? sends : receives)[part] = p->parts[part].channel;
            g->owner[part] = (int)i;
        }
    if (g->arena.failed)
        return;
    g->sends = list_by(g, sends, p->part_count, p->channel_count);
    g->receives = list_by(g, receives, p->part_count, p->channel_count);
    for (int c = 0; !g->arena.failed && c < p->channel_count; c++)
        match_channel(g, c);
}

/* A sync with a stream or a device knows what it waits for only if no other body pushes there. */
static void check_syncs(struct run_graph *g)
{
    const struct program *p = g->program;
    for (size_t i = 0; i < p->op_count; i++) {
        const struct op *op = &p->ops[i];
        int rank = program_sync_rank(p, p->bodies[g->body[i]].thread, op);
        for (int k = p->rank_first[rank]; op->kind == OP_SYNC && k < p->rank_first[rank + 1]; k++) {
            int stream = p->rank_streams[k], first = g->pushes.first[stream];
            if (op->sync == SYNC_EVENT || (op->sync == SYNC_STREAM && stream != op->stream))
                continue;
            if (first < g->pushes.first[stream + 1] &&
                g->body[g->pushes.items[first]] != g->body[i])
                refuse(g, "a thread waits for a stream that another one pushes to");
        }
    }
}

static void find_bodies(struct run_graph *g)
{
    const struct program *p = g->program;
    for (size_t b = 0; b < p->body_count; b++)
        for (int k = 0; k < p->bodies[b].count; k++) {
            int op = p->bodies[b].first + k;
            g->body[op] = (int)b;
            if (p->ops[op].kind == OP_CALLBACK)
                g->caller[p->ops[op].object] = op;
            if (op_operand(p->ops[op].kind) == OPERAND_TURN)
                refuse(g, "turns are taken with tickets");
            if (p->plan->machine.sm_slots > 0 && p->ops[op].sm > 0)
                refuse(g, "work competes for residency slots");
        }
}

static void find_places(struct run_graph *g, const struct run_lists *lists, int objects)
{
    for (int object = 0; object < objects; object++)
        for (int i = lists->first[object]; i < lists->first[object + 1]; i++)
            g->place[lists->items[i]] = i - lists->first[object];
}

static void find_lists(struct run_graph *g)
{
    const struct program *p = g->program;
    g->pushes = list_ops(g, BY_STREAM, p->stream_count, "several threads push to one stream");
    g->puts = list_ops(g, BY_PUT, p->queue_count, "several threads put into one queue");
    g->gets = list_ops(g, BY_GET, p->queue_count, "several threads get from one queue");
    struct run_lists members =
        list_ops(g, BY_MEMBER, p->member_count, "several threads of a rank use one communicator");
    struct run_lists ranks =
        list_ops(g, BY_RANK, p->ranks, "several threads of a rank use communicators");
    struct run_lists hw_queues =
        list_ops(g, BY_HW_QUEUE, p->hw_queue_count, "several threads share a hardware queue");
    struct run_lists locks = list_ops(g, BY_LOCK, p->lock_count, "several threads take one lock");
    struct run_lists events =
        list_ops(g, BY_EVENT, p->event_families, "several threads use one event");
    struct run_lists flags = list_ops(g, BY_FLAG, p->flag_families, NULL);
    if (g->arena.failed)
        return;
    find_places(g, &g->pushes, p->stream_count);
    find_places(g, &g->puts, p->queue_count);
    find_places(g, &g->gets, p->queue_count);
    link_lists(&members, p->member_count, g->turn);
    link_lists(&ranks, p->ranks, g->call);
    link_lists(&hw_queues, p->hw_queue_count, g->queued);
    bind_events(g, &events);
    bind_flags(g, &flags);
    check_locks(g, &locks);
    check_queues(g);
}

bool run_graph_open(struct run_graph *g, const struct program *p)
{
    *g = (struct run_graph){.program = p};
    g->body = no_items(g, p->op_count);
    g->caller = no_items(g, p->body_count);
    g->place = no_items(g, p->op_count);
    g->bound = no_items(g, p->op_count);
    g->turn = no_items(g, p->op_count);
    g->call = no_items(g, p->op_count);
    g->queued = no_items(g, p->op_count);
    g->meeting = no_items(g, p->op_count);
    g->owner = no_items(g, p->part_count);
    g->credit = no_items(g, p->part_count);
    if (g->arena.failed)
        return false;
    find_bodies(g);
    find_lists(g);
    if (!g->arena.failed)
        match_collectives(g);
    if (!g->arena.failed)
        match_messages(g);
    if (!g->arena.failed)
        check_syncs(g);
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
    int64_t meetings = run_meeting(g, 0);
    if (first >= meetings || second >= meetings || first == second)
        return false;
    int a = (int)(first / RUN_PARTS), b = (int)(second / RUN_PARTS);
    bool host = first % RUN_PARTS == RUN_EXECUTE;
    if (host != (second % RUN_PARTS == RUN_EXECUTE))
        return false;
    if (host)
        return g->body[a] == g->body[b] && a < b;
    return op_pushes(g->program->ops[a].kind) && op_pushes(g->program->ops[b].kind) &&
           g->program->ops[a].stream == g->program->ops[b].stream &&
           (g->place[a] < g->place[b] || (a == b && first < second));
}

/* ---- waits ------------------------------------------------------------------------------------- */

struct visitor {
    const struct run_graph *graph;
    run_visit *visit;
    void *context;
};

static bool after(const struct visitor *v, int op, enum run_part part, bool known)
{
    return op < 0 || v->visit(v->context, run_event(v->graph, op, part), known);
}

/* The last push to a stream by an operation in front of this one; -1: none. */
static int last_push(const struct run_graph *g, int stream, int before)
{
    int low = g->pushes.first[stream], high = g->pushes.first[stream + 1];
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (g->pushes.items[middle] < before)
            low = middle + 1;
        else
            high = middle;
    }
    return low > g->pushes.first[stream] ? g->pushes.items[low - 1] : -1;
}

/* An operation that only may wait is said to wait, and to learn nothing. */
static bool after_sync(const struct visitor *v, int op)
{
    const struct program *p = v->graph->program;
    const struct op *sync = &p->ops[op];
    const struct body *body = &p->bodies[v->graph->body[op]];
    int rank = program_sync_rank(p, body->thread, sync);
    bool chosen =
        op > body->first && p->ops[op - 1].kind == OP_SYNC && p->ops[op - 1].sync == SYNC_RETRY;
    if (sync->sync == SYNC_RETRY)
        return true;
    if (sync->sync == SYNC_EVENT)
        return after(v, v->graph->bound[op], RUN_DONE, true);
    bool known = sync->sync != SYNC_LOAD && !chosen;
    for (int k = p->rank_first[rank]; k < p->rank_first[rank + 1]; k++)
        if ((sync->sync != SYNC_STREAM || p->rank_streams[k] == sync->stream) &&
            !after(v, last_push(v->graph, p->rank_streams[k], op), RUN_DONE, known))
            return false;
    return true;
}

static int item_of(const struct run_lists *lists, int object, int k)
{
    bool there = k >= 0 && lists->first[object] + k < lists->first[object + 1];
    return there ? lists->items[lists->first[object] + k] : -1;
}

static bool after_host_wait(const struct visitor *v, int index)
{
    const struct run_graph *g = v->graph;
    const struct op *op = &g->program->ops[index];
    int place = g->place[index];
    switch (op->kind) {
    case OP_SYNC: return after_sync(v, index);
    case OP_AWAIT: return after(v, g->bound[index], RUN_EXECUTE, true);
    case OP_GET: return after(v, item_of(&g->puts, op->object, place), RUN_EXECUTE, true);
    case OP_PUT:
        return after(v, item_of(&g->gets, op->object, place - g->program->queue_caps[op->object]),
                     RUN_EXECUTE, true);
    case OP_HOST:
    case OP_COMPUTE:
    case OP_SIGNAL:
    case OP_LOCK: /* of one body, which does not hold it */
    case OP_UNLOCK:
    case OP_FREE:
    case OP_RECORD_STREAM: return true;
    case OP_LAUNCH:
    case OP_COPY:
    case OP_COLLECTIVE:
    case OP_GROUP:
    case OP_CALLBACK:
    case OP_RECORD:
    case OP_WAIT:
    case OP_ALLOC: /* room in the stream */
        return after(v,
                     item_of(&g->pushes, op->stream, place - g->program->streams[op->stream].cap),
                     RUN_DONE, false);
    case OP_TICKET: /* refused, or not in these programs */
    case OP_SERVE:
    case OP_BARRIER:
    case OP_COMPLETE: break;
    }
    return false;
}

static bool before_execution(const struct visitor *v, int op)
{
    const struct run_graph *g = v->graph;
    int body = g->body[op];
    bool begun = op > g->program->bodies[body].first ? after(v, op - 1, RUN_EXECUTE, true)
                                                     : after(v, g->caller[body], RUN_START, true);
    return begun && after_host_wait(v, op);
}

static bool before_start(const struct visitor *v, int op)
{
    const struct run_graph *g = v->graph;
    return after(v, op, RUN_EXECUTE, true) &&
           after(v, item_of(&g->pushes, g->program->ops[op].stream, g->place[op] - 1), RUN_DONE,
                 true) &&
           after(v, g->program->ops[op].kind == OP_WAIT ? g->bound[op] : -1, RUN_START, true) &&
           after(v, g->turn[op], RUN_DONE, false) && after(v, g->call[op], RUN_START, false) &&
           after(v, g->queued[op], RUN_START, false);
}

/* A receiver learns from its sender, and under rendezvous the sender from its receiver. */
static bool after_message(const struct visitor *v, int part)
{
    const struct run_graph *g = v->graph;
    const struct program *p = g->program;
    const struct comm_desc *comm = &p->comms[p->channels[p->parts[part].channel].comm];
    bool rendezvous = comm->eager_messages == 0 && comm->eager_bytes == 0;
    return g->credit[part] < 0 ||
           after(v, g->owner[g->credit[part]], RUN_START, !p->parts[part].send || rendezvous);
}

static bool before_end(const struct visitor *v, int index)
{
    const struct run_graph *g = v->graph;
    const struct program *p = g->program;
    const struct op *op = &p->ops[index];
    bool good = after(v, index, RUN_START, true);
    if (op->kind == OP_COLLECTIVE)
        good = good && v->visit(v->context, run_meeting(g, g->meeting[index]), true);
    for (int k = 0; good && k < op->part_count; k++)
        good = after_message(v, op->part_first + k);
    if (op->kind == OP_CALLBACK && p->bodies[op->object].count > 0)
        good = good && after(v, p->bodies[op->object].first + p->bodies[op->object].count - 1,
                             RUN_EXECUTE, true);
    return good;
}

/* All members have started; those whose data all get are known to all. */
static bool before_meeting(const struct visitor *v, int meeting)
{
    const struct run_lists *meetings = &v->graph->meetings;
    for (int i = meetings->first[meeting]; i < meetings->first[meeting + 1]; i++) {
        const struct op *op = &v->graph->program->ops[meetings->items[i]];
        bool known = op->given->root_count == 0;
        for (int k = 0; k < op->given->root_count; k++)
            known |= op->given->roots[k] == op->member;
        if (!after(v, meetings->items[i], RUN_START, known))
            return false;
    }
    return true;
}

bool run_each_wait(const struct run_graph *g, int64_t event, run_visit *visit, void *context)
{
    const struct visitor v = {g, visit, context};
    if (event >= run_meeting(g, 0))
        return before_meeting(&v, (int)(event - run_meeting(g, 0)));
    int op = (int)(event / RUN_PARTS);
    bool pushed = op_pushes(g->program->ops[op].kind);
    switch ((enum run_part)(event % RUN_PARTS)) {
    case RUN_EXECUTE: return before_execution(&v, op);
    case RUN_START: return !pushed || before_start(&v, op);
    case RUN_DONE: return !pushed || op_is_mark(g->program->ops[op].kind) || before_end(&v, op);
    case RUN_PARTS: break;
    }
    return false;
}
