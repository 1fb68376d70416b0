/* SPDX-License-Identifier: Apache-2.0 */
/* chakra.c - see chakra.h: threads are walked in an order in which each flag is set before it is awaited. */
#include "chakra.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/assert_index.h"

/* Numbers of fields, and their kinds on the wire (protobuf's encoding). */
enum { WIRE_VARINT = 0, WIRE_BYTES = 2 };
enum { NODE_ID = 1, NODE_NAME, NODE_TYPE, NODE_CTRL_DEPS, NODE_DATA_DEPS, NODE_DURATION = 7 };
enum { NODE_ATTR = 10, GLOBAL_VERSION = 1, GLOBAL_ATTR = 2 };
enum {
    ATTR_NAME = 1,
    ATTR_INT = 9,
    ATTR_INTS = 10,
    ATTR_BOOL = 27,
    ATTR_TEXT = 29,
    ATTR_TEXTS = 30
};

/* Of a rank. */
struct chakra_rank {
    struct chakra_bytes file;
    uint64_t next_id;
    uint64_t *last; /* per plan->streams: the last node of the device; 0: none */
    struct ids {
        uint64_t *items;
        size_t count, cap;
    } * pending;     /* per plan->streams: what it waits for */
    uint64_t *event; /* per plan->events: the node behind which it was recorded */
    uint64_t *flag;  /* per plan->flags: the node that set it, where that is on this rank */
};

struct chakra_writer {
    const struct plan *plan;
    struct arena *arena;
    struct chakra_rank *ranks;
    bool *set;                      /* per plan->flags */
    size_t *next;                   /* per thread: its next operation */
    uint64_t *last_call;            /* per thread */
    struct chakra_bytes node, attr; /* under way */
    bool no_memory;
};

/* ---- protobuf -------------------------------------------------------------------------------- */

static void put_byte(struct chakra_writer *w, struct chakra_bytes *out, unsigned char byte)
{
    if (ARENA_GROW(w->arena, out->items, out->count, out->cap))
        out->items[out->count++] = byte;
    else
        w->no_memory = true;
}

static void put_varint(struct chakra_writer *w, struct chakra_bytes *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        put_byte(w, out, (unsigned char)(value | 0x80));
    put_byte(w, out, (unsigned char)value);
}

static void put_bytes(struct chakra_writer *w, struct chakra_bytes *out, const void *bytes,
                      size_t count)
{
    for (size_t i = 0; i < count; i++)
        put_byte(w, out, ((const unsigned char *)bytes)[i]);
}

static void chakra_put_number(struct chakra_writer *w, struct chakra_bytes *out, unsigned field,
                              uint64_t value)
{
    put_varint(w, out, field << 3 | WIRE_VARINT);
    put_varint(w, out, value);
}

static void chakra_put_piece(struct chakra_writer *w, struct chakra_bytes *out, unsigned field,
                             const void *bytes, size_t count)
{
    put_varint(w, out, field << 3 | WIRE_BYTES);
    put_varint(w, out, count);
    put_bytes(w, out, bytes, count);
}

static void chakra_put_text(struct chakra_writer *w, struct chakra_bytes *out, unsigned field,
                            const char *text)
{
    chakra_put_piece(w, out, field, text, strlen(text));
}

static void begin_attribute(struct chakra_writer *w, const char *name)
{
    w->attr.count = 0;
    chakra_put_text(w, &w->attr, ATTR_NAME, name);
}

/* An attribute is field 10 of a node and field 2 of the metadata. */
static unsigned attribute_field(const struct chakra_writer *w, const struct chakra_bytes *out)
{
    return out == &w->node ? NODE_ATTR : GLOBAL_ATTR;
}

static void end_attribute(struct chakra_writer *w, struct chakra_bytes *out)
{
    chakra_put_piece(w, out, attribute_field(w, out), w->attr.items, w->attr.count);
}

static void put_text_attribute(struct chakra_writer *w, struct chakra_bytes *out, const char *name,
                               const char *text)
{
    if (!text)
        return;
    begin_attribute(w, name);
    chakra_put_text(w, &w->attr, ATTR_TEXT, text);
    end_attribute(w, out);
}

static void put_int_attribute(struct chakra_writer *w, struct chakra_bytes *out, const char *name,
                              int64_t value)
{
    begin_attribute(w, name);
    chakra_put_number(w, &w->attr, ATTR_INT, (uint64_t)value);
    end_attribute(w, out);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* One that is no call of a device takes whole microseconds, as Chakra has them; its nanoseconds are an attribute. */
static uint64_t begin_node(struct chakra_writer *w, struct chakra_rank *rank, const char *name,
                           enum chakra_node type, int64_t time_ns)
{
    const uint64_t id = ++rank->next_id;
    w->node.count = 0;
    chakra_put_number(w, &w->node, NODE_ID, id);
    chakra_put_text(w, &w->node, NODE_NAME, name);
    chakra_put_number(w, &w->node, NODE_TYPE, type);
    chakra_put_number(w, &w->node, NODE_DURATION, ((uint64_t)time_ns + 999) / 1000);
    put_int_attribute(w, &w->node, "duration_ns", time_ns);
    return id;
}

static void put_dep(struct chakra_writer *w, unsigned field, uint64_t id)
{
    if (id > 0)
        chakra_put_number(w, &w->node, field, id);
}

static void mark_cpu(struct chakra_writer *w, bool is_cpu)
{
    begin_attribute(w, "is_cpu_op");
    chakra_put_number(w, &w->attr, ATTR_BOOL, is_cpu);
    end_attribute(w, &w->node);
}

static void end_node(struct chakra_writer *w, struct chakra_rank *rank)
{
    put_varint(w, &rank->file, w->node.count);
    put_bytes(w, &rank->file, w->node.items, w->node.count);
}

static const char *chakra_buffer_name(struct chakra_writer *w, const struct host_op *op, int buffer)
{
    ASSERT_INDEX(buffer, w->plan->buffer_count);
    const struct buffer *of = &w->plan->buffers[buffer];
    const int period = buffer_period(of), iteration = op->iteration - 1;
    const char *name =
        period != 1 && iteration >= 0
            ? arena_printf(w->arena, "%s.%d", of->name, period > 1 ? iteration % period : iteration)
            : of->name;
    w->no_memory |= !name;
    return name ? name : "";
}

static void put_buffers(struct chakra_writer *w, const struct host_op *op, const char *name,
                        const struct index_list *list)
{
    struct chakra_bytes texts = {0};
    for (size_t i = 0; i < list->count; i++)
        chakra_put_text(w, &texts, 1, chakra_buffer_name(w, op, list->items[i]));
    if (list->count == 0)
        return;
    begin_attribute(w, name);
    chakra_put_piece(w, &w->attr, ATTR_TEXTS, texts.items, texts.count);
    end_attribute(w, &w->node);
}

static void chakra_put_stream(struct chakra_writer *w, int stream)
{
    put_int_attribute(w, &w->node, "stream", stream);
    ASSERT_INDEX(stream, w->plan->streams.count);
    put_text_attribute(w, &w->node, "stream_name", w->plan->streams.items[stream]);
}

/* What the next operation of the stream comes behind. */
static void put_stream_deps(struct chakra_writer *w, struct chakra_rank *rank, int stream)
{
    struct ids *pending = &rank->pending[stream];
    put_dep(w, NODE_DATA_DEPS, rank->last[stream]);
    for (size_t i = 0; i < pending->count; i++)
        put_dep(w, NODE_DATA_DEPS, pending->items[i]);
}

static bool add_pending(struct chakra_writer *w, struct chakra_rank *rank, int stream, uint64_t id)
{
    struct ids *pending = &rank->pending[stream];
    assert(id <= rank->next_id);
    if (id == 0)
        return true;
    if (!ARENA_GROW(w->arena, pending->items, pending->count, pending->cap))
        return false;
    pending->items[pending->count++] = id;
    return true;
}

static int chakra_collective(enum collective_kind kind)
{
    switch (kind) {
#define X(name, number)                                                                            \
    case COLLECTIVE_##name: return number;
        CHAKRA_COLLECTIVE_LIST(X)
#undef X
    }
    return -1;
}

static void put_group(struct chakra_writer *w, int comm, int64_t bytes)
{
    ASSERT_INDEX(comm, w->plan->comm_count);
    put_text_attribute(w, &w->node, "pg_name", w->plan->comms[comm].name);
    put_int_attribute(w, &w->node, "comm_size", bytes);
}

/* The work of an operation, behind its call. */
static uint64_t put_work(struct chakra_writer *w, struct chakra_rank *rank,
                         const struct host_op *op, uint64_t call)
{
    const bool collective = op->kind == OP_COLLECTIVE;
    const uint64_t id = begin_node(w, rank, op->name ? op->name : op_key(op->kind),
                                   collective ? CHAKRA_COLL : CHAKRA_COMP, op->time_ns);
    put_dep(w, NODE_CTRL_DEPS, call);
    put_dep(w, NODE_DATA_DEPS, call);
    put_stream_deps(w, rank, op->stream);
    mark_cpu(w, false);
    chakra_put_stream(w, op->stream);
    if (collective) {
        put_group(w, op->comm, op->bytes);
        put_int_attribute(w, &w->node, "comm_type", chakra_collective(op->collective));
        if (op->root >= 0)
            put_int_attribute(w, &w->node, "root", op->root);
    }
    if (op->kind == OP_COPY) {
        put_text_attribute(w, &w->node, "direction", direction_key(op->direction));
        put_int_attribute(w, &w->node, "bytes", op->bytes);
    }
    if (op->sm > 0)
        put_int_attribute(w, &w->node, "sm", op->sm);
    put_buffers(w, op, "reads", host_op_reads(op));
    put_buffers(w, op, "writes", host_op_writes(op));
    end_node(w, rank);
    return id;
}

/* The parts of a group are done together: each comes behind what is in front of the group on its stream. */
static void put_parts(struct chakra_writer *w, struct chakra_rank *rank, const struct host_op *op,
                      uint64_t call)
{
    struct ids done = {0};
    for (size_t i = 0; i < op->part_count; i++) {
        const struct p2p_part *part = &op->parts[i];
        const uint64_t id =
            begin_node(w, rank, part->tag, part->send ? CHAKRA_SEND : CHAKRA_RECV, op->time_ns);
        put_dep(w, NODE_CTRL_DEPS, call);
        put_dep(w, NODE_DATA_DEPS, call);
        put_stream_deps(w, rank, op->stream);
        mark_cpu(w, false);
        chakra_put_stream(w, op->stream);
        put_group(w, op->comm, part->bytes);
        put_int_attribute(w, &w->node, part->send ? "comm_dst" : "comm_src", part->peer);
        put_buffers(w, op, "reads", &part->reads);
        put_buffers(w, op, "writes", &part->writes);
        end_node(w, rank);
        if (!ARENA_GROW(w->arena, done.items, done.count, done.cap))
            w->no_memory = true;
        else
            done.items[done.count++] = id;
    }
    rank->last[op->stream] = done.count > 0 ? done.items[0] : rank->last[op->stream];
    rank->pending[op->stream].count = 0;
    for (size_t i = 1; i < done.count; i++)
        w->no_memory |= !add_pending(w, rank, op->stream, done.items[i]);
}

/* ---- operations ------------------------------------------------------------------------------ */

/* What an operation cannot be written for; NULL: it can. */
static const char *unwritable(const struct host_op *op)
{
    const struct host_details *details = host_op_details(op);
    bool known = false;
    for (size_t i = 0; i < sizeof chakra_ops / sizeof *chakra_ops; i++)
        known |= op->kind == chakra_ops[i];
    if (!known)
        return op_key(op->kind);
    if ((op->kind == OP_SIGNAL || op->kind == OP_AWAIT) && op->flag_use.given)
        return "a flag with a value";
    if (op->kind == OP_LAUNCH && (host_op_is_graph(op) || op->body_count > 0 || op->greedy))
        return "a graph, or a kernel of steps";
    for (size_t i = 0; i < host_op_part_count(op); i++)
        if (op->parts[i].is_collective || op->parts[i].comm >= 0 || op->parts[i].stream >= 0)
            return "a group of several communicators";
    return op->device > 0 || op->object_rank > 0           ? "work on the device of another rank"
           : host_op_process_group(op)                     ? "a call of a process group"
           : host_op_is_pageable(op)                       ? "a copy with pageable memory"
           : host_op_is_external(op)                       ? "an external event"
           : details->jitter.kind != DIST_CONSTANT         ? "jitter"
           : op->kind == OP_SYNC && op->sync > SYNC_DEVICE ? "a sync of the machine"
                                                           : NULL;
}

/* Waits for a stream, an event, or all streams. */
static void put_sync_deps(struct chakra_writer *w, struct chakra_rank *rank,
                          const struct host_op *op)
{
    if (op->sync == SYNC_EVENT)
        put_dep(w, NODE_DATA_DEPS, rank->event[op->object]);
    if (op->sync == SYNC_STREAM)
        put_stream_deps(w, rank, op->stream);
    for (size_t s = 0; op->sync == SYNC_DEVICE && s < w->plan->streams.count; s++)
        put_stream_deps(w, rank, (int)s);
}

static const char *object_name(const struct plan *plan, const struct host_op *op)
{
    const bool flag = op->kind == OP_SIGNAL || op->kind == OP_AWAIT;
    const bool event =
        op->kind == OP_RECORD || op->kind == OP_WAIT || host_op_syncs(op, SYNC_EVENT);
    return flag ? plan->flags.items[op->object] : event ? plan->events.items[op->object] : NULL;
}

static void put_call(struct chakra_writer *w, size_t thread, const struct host_op *op)
{
    static const char *const syncs[] = {"stream", "event", "device"};
    const struct plan *plan = w->plan;
    ASSERT_INDEX(thread, plan->thread_count);
    struct chakra_rank *rank = &w->ranks[plan->threads[thread].rank];
    const bool host = op->kind == OP_HOST, pushes = op_is_device_work(op->kind);
    const char *object = object_name(plan, op);
    const uint64_t id = begin_node(w, rank, op->name ? op->name : op_key(op->kind),
                                   host || pushes ? CHAKRA_COMP : CHAKRA_METADATA,
                                   host ? op->time_ns : op->host_time_ns);
    put_dep(w, NODE_CTRL_DEPS, w->last_call[thread]);
    put_dep(w, NODE_DATA_DEPS, w->last_call[thread]);
    if (op->kind == OP_SYNC)
        put_sync_deps(w, rank, op);
    if (op->kind == OP_AWAIT)
        put_dep(w, NODE_DATA_DEPS, rank->flag[op->object]);
    mark_cpu(w, true);
    put_text_attribute(w, &w->node, "call", op_key(op->kind));
    put_text_attribute(w, &w->node, "thread", plan->threads[thread].name);
    put_text_attribute(w, &w->node, "label", op->name);
    put_text_attribute(w, &w->node, "at", op->at);
    put_text_attribute(w, &w->node, "object", object);
    if (op->kind == OP_SYNC)
        put_text_attribute(w, &w->node, "sync", syncs[op->sync]);
    if (op->stream >= 0)
        put_text_attribute(w, &w->node, "stream_name", plan->streams.items[op->stream]);
    if (host) {
        put_buffers(w, op, "reads", host_op_reads(op));
        put_buffers(w, op, "writes", host_op_writes(op));
    }
    end_node(w, rank);
    w->last_call[thread] = id;
    if (op->kind == OP_SIGNAL) {
        w->set[op->object] = true;
        rank->flag[op->object] = id;
    }
    if (op->kind == OP_RECORD)
        rank->event[op->object] = rank->last[op->stream];
    if (op->kind == OP_WAIT)
        w->no_memory |= !add_pending(w, rank, op->stream, rank->event[op->object]);
    if (op->kind == OP_GROUP) {
        put_parts(w, rank, op, id);
    } else if (pushes) {
        const uint64_t work = put_work(w, rank, op, id);
        rank->last[op->stream] = work;
        rank->pending[op->stream].count = 0;
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

static void put_metadata(struct chakra_writer *w, int number)
{
    const struct plan *plan = w->plan;
    struct chakra_bytes head = {0}, list = {0};
    struct chakra_rank *rank = &w->ranks[number];
    chakra_put_text(w, &head, GLOBAL_VERSION, "0.0.4");
    put_text_attribute(w, &head, "plan", plan->name);
    put_int_attribute(w, &head, "rank", number);
    put_int_attribute(w, &head, "world_size", plan->ranks);
    put_int_attribute(w, &head, "launch_queue", plan->machine.launch_queue);
    if (plan->unexplained.given)
        put_int_attribute(w, &head, "unexplained", plan->unexplained.millionths);
    for (size_t c = 0; c < plan->comm_count; c++) {
        const struct comm *comm = &plan->comms[c];
        const char *name = arena_printf(w->arena, "process_group.%s", comm->name);
        struct chakra_bytes members = {0};
        for (int r = 0; r < (comm->members ? (int)comm->member_count : plan->ranks); r++)
            put_varint(w, &members, (uint64_t)(comm->members ? comm->members[r] : r));
        w->no_memory |= !name;
        begin_attribute(w, name ? name : "");
        struct chakra_bytes ints = {0};
        chakra_put_piece(w, &ints, 1, members.items, members.count);
        chakra_put_piece(w, &w->attr, ATTR_INTS, ints.items, ints.count);
        end_attribute(w, &head);
    }
    for (size_t i = 0; i < plan->unrecorded_count; i++) {
        chakra_put_text(w, &list, 1, plan->unrecorded[i].what);
        chakra_put_text(w, &list, 1, plan->unrecorded[i].why);
    }
    begin_attribute(w, "unrecorded");
    chakra_put_piece(w, &w->attr, ATTR_TEXTS, list.items, list.count);
    end_attribute(w, &head);
    list.count = 0;
    for (size_t b = 0; b < plan->buffer_count; b++)
        if (plan->buffers[b].input)
            chakra_put_text(w, &list, 1, plan->buffers[b].name);
    begin_attribute(w, "inputs");
    chakra_put_piece(w, &w->attr, ATTR_TEXTS, list.items, list.count);
    if (plan->inputs_given)
        end_attribute(w, &head);
    put_varint(w, &rank->file, head.count);
    put_bytes(w, &rank->file, head.items, head.count);
}

/* Goes on with a thread until it ends or awaits a flag that nobody has set. True if it did something. */
static bool chakra_walk(struct chakra_writer *w, size_t thread)
{
    ASSERT_INDEX(thread, w->plan->thread_count);
    const struct host_thread *of = &w->plan->threads[thread];
    const size_t begin = w->next[thread];
    for (; w->next[thread] < of->op_count; w->next[thread]++) {
        const struct host_op *op = &of->ops[w->next[thread]];
        if (op->kind == OP_AWAIT && !w->set[op->object])
            break;
        put_call(w, thread, op);
    }
    return w->next[thread] > begin;
}

static enum status chakra_check(const struct plan *plan, struct diag *diag)
{
    if (plan->form != FORM_THREADS)
        return diag_error(
            diag, STATUS_INPUT,
            "%s: expected host programs for Chakra: 'swsim lower' makes them of other "
            "plans",
            plan->name);
    for (size_t t = 0; t < plan->thread_count; t++)
        for (size_t i = 0; i < plan->threads[t].op_count; i++) {
            const struct host_op *op = &plan->threads[t].ops[i];
            const char *what = unwritable(op);
            if (what)
                return plan_error_at(plan, diag, op->mark, "Chakra has no node for %s", what);
        }
    return STATUS_OK;
}

static bool chakra_prepare(struct chakra_writer *w)
{
    const struct plan *plan = w->plan;
    w->ranks = ARENA_ARRAY(w->arena, (size_t)plan->ranks, struct chakra_rank);
    w->set = ARENA_ARRAY(w->arena, plan->flags.count + 1, bool);
    w->next = ARENA_ARRAY(w->arena, plan->thread_count + 1, size_t);
    w->last_call = ARENA_ARRAY(w->arena, plan->thread_count + 1, uint64_t);
    bool ok = w->ranks && w->set && w->next && w->last_call;
    for (int r = 0; ok && r < plan->ranks; r++) {
        struct chakra_rank *rank = &w->ranks[r];
        *rank = (struct chakra_rank){0};
        rank->last = ARENA_ARRAY(w->arena, plan->streams.count + 1, uint64_t);
        rank->pending = ARENA_ARRAY(w->arena, plan->streams.count + 1, struct ids);
        rank->event = ARENA_ARRAY(w->arena, plan->events.count + 1, uint64_t);
        rank->flag = ARENA_ARRAY(w->arena, plan->flags.count + 1, uint64_t);
        ok = rank->last && rank->pending && rank->event && rank->flag;
    }
    return ok;
}

enum status chakra_write(const struct plan *plan, struct arena *arena, struct chakra_bytes **out,
                         struct diag *diag)
{
    struct chakra_writer w = {.plan = plan, .arena = arena};
    const enum status status = chakra_check(plan, diag);
    if (status != STATUS_OK)
        return status;
    struct chakra_bytes *files = ARENA_ARRAY(arena, (size_t)plan->ranks, struct chakra_bytes);
    if (!files || !chakra_prepare(&w))
        return diag_no_memory(diag);
    for (int r = 0; r < plan->ranks; r++)
        put_metadata(&w, r);
    for (bool goes_on = true; goes_on;) {
        goes_on = false;
        for (size_t t = 0; t < plan->thread_count; t++)
            goes_on |= chakra_walk(&w, t);
    }
    for (size_t t = 0; t < plan->thread_count; t++)
        if (w.next[t] < plan->threads[t].op_count)
            return plan_error_at(plan, diag, plan->threads[t].ops[w.next[t]].mark,
                                 "thread %s awaits a flag that no thread sets before it",
                                 plan->threads[t].name);
    for (int r = 0; r < plan->ranks; r++)
        files[r] = w.ranks[r].file;
    if (w.no_memory)
        return diag_no_memory(diag);
    *out = files;
    return STATUS_OK;
}
