/* SPDX-License-Identifier: Apache-2.0 */
/* chakra.c - see chakra.h: messages of protobuf, one after the other. */
#include "chakra.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/sort.h"
#include "base/table.h"
#include "plan/text/chakra.h"

enum {
    CHAKRA_MOST_BYTES = 1024 * 1024 * 1024
};                                   /* of a file; the message that refuses more names it */
enum { CHAKRA_MOST_NS = INT32_MAX }; /* microseconds of a node */

/* A piece of a message. */
struct pb {
    const unsigned char *at, *end;
    bool bad;
};

struct pb_field {
    unsigned number, wire;
    uint64_t value;  /* wire 0 */
    struct pb piece; /* wire 2 */
};

struct chakra_attributes {
    struct chakra_attribute {
        const char *name;
        const char *text; /* NULL: it is none */
        int64_t number;
        const char **texts;
        size_t text_count, text_cap;
        int *ints;
        size_t int_count, int_cap;
    } * items;
    size_t count, cap;
};

struct chakra_item {
    uint64_t id;
    int type;
    const char *name;
    int64_t duration_ns;
    uint64_t *deps; /* data */
    size_t dep_count, dep_cap;
    struct chakra_attributes attributes;
    int stream,
        op; /* without calls: its stream, and whether its event is recorded: plan->events, -1 */
};

struct chakra_reader {
    struct job *job;
    struct arena *arena;
    struct diag *diag;
    const char *file;
    int number; /* of the rank */
    struct chakra_item *items;
    size_t count, cap;
    struct chakra_attributes head;
    struct job_thread **threads; /* of the rank */
    size_t thread_count, thread_cap;
    bool no_memory;
};

/* ---- protobuf -------------------------------------------------------------------------------- */

static uint64_t pb_varint(struct pb *pb)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (pb->at == pb->end)
            break;
        const unsigned char byte = *pb->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
    pb->bad = true;
    return 0;
}

/* The next field; false at the end and where the message is damaged. */
static bool pb_next(struct pb *pb, struct pb_field *out)
{
    if (pb->bad || pb->at == pb->end)
        return false;
    const uint64_t key = pb_varint(pb);
    out->number = (unsigned)(key >> 3);
    out->wire = key & 7;
    if (out->wire == 0)
        out->value = pb_varint(pb);
    const uint64_t length = out->wire == 2   ? pb_varint(pb)
                            : out->wire == 1 ? 8
                            : out->wire == 5 ? 4
                                             : 0;
    if ((out->wire != 0 && length > (uint64_t)(pb->end - pb->at)) ||
        (out->wire > 2 && out->wire != 5))
        pb->bad = true;
    if (pb->bad)
        return false;
    out->piece = (struct pb){.at = pb->at, .end = pb->at + length};
    if (out->wire != 0)
        pb->at += length;
    return true;
}

/* A text without what would act instead of being seen, cut off as names are. */
static const char *pb_text(struct chakra_reader *reader, const struct pb *piece)
{
    char *text = ARENA_ARRAY(reader->arena, (size_t)(piece->end - piece->at) + 1, char);
    if (!text) {
        reader->no_memory = true;
        return "";
    }
    memcpy(text, piece->at, (size_t)(piece->end - piece->at));
    text[piece->end - piece->at] = 0;
    const int name = job_intern(reader->job, text);
    reader->no_memory |= name < 0;
    return name >= 0 ? reader->job->names.items[name] : "";
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void chakra_add_int(struct chakra_reader *reader, struct chakra_attribute *out,
                           uint64_t value)
{
    if (ARENA_GROW(reader->arena, out->ints, out->int_count, out->int_cap))
        out->ints[out->int_count++] = value <= INT_MAX ? (int)value : -1;
    else
        reader->no_memory = true;
}

/* Lists of texts and of whole numbers, packed or not. */
static bool chakra_read_values(struct chakra_reader *reader, struct pb list,
                               struct chakra_attribute *out, bool texts)
{
    struct pb_field field;
    while (pb_next(&list, &field)) {
        if (field.number != 1)
            continue;
        if (texts && field.wire == 2) {
            if (!ARENA_GROW(reader->arena, out->texts, out->text_count, out->text_cap))
                reader->no_memory = true;
            else
                out->texts[out->text_count++] = pb_text(reader, &field.piece);
        } else if (field.wire == 0) {
            chakra_add_int(reader, out, field.value);
        } else if (!texts && field.wire == 2) {
            while (!field.piece.bad && field.piece.at < field.piece.end)
                chakra_add_int(reader, out, pb_varint(&field.piece));
            list.bad |= field.piece.bad;
        }
    }
    return !list.bad;
}

static bool chakra_read_attribute(struct chakra_reader *reader, struct pb message,
                                  struct chakra_attributes *out)
{
    enum { NAME = 1, FIRST = 7, INTS = 10, TEXT = 29, TEXTS = 30 };
    struct pb_field field;
    struct chakra_attribute own = {.name = ""};
    bool ok = true;
    while (pb_next(&message, &field)) {
        if (field.number == NAME && field.wire == 2)
            own.name = pb_text(reader, &field.piece);
        else if (field.number == TEXT && field.wire == 2)
            own.text = pb_text(reader, &field.piece);
        else if (field.number >= FIRST && field.wire == 0)
            own.number = (int64_t)field.value;
        else if ((field.number == INTS || field.number == TEXTS) && field.wire == 2)
            ok = chakra_read_values(reader, field.piece, &own, field.number == TEXTS) && ok;
    }
    if (!ARENA_GROW(reader->arena, out->items, out->count, out->cap)) {
        reader->no_memory = true;
        return false;
    }
    out->items[out->count++] = own;
    return ok && !message.bad;
}

static const struct chakra_attribute *chakra_find(const struct chakra_attributes *list,
                                                  const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0)
            return &list->items[i];
    return NULL;
}

static const char *chakra_text(const struct chakra_item *item, const char *name)
{
    const struct chakra_attribute *found = chakra_find(&item->attributes, name);
    return found ? found->text : NULL;
}

static int64_t chakra_number(const struct chakra_attributes *list, const char *name,
                             int64_t otherwise)
{
    const struct chakra_attribute *found = chakra_find(list, name);
    return found && !found->text ? found->number : otherwise;
}

static void chakra_add_dep(struct chakra_reader *reader, struct chakra_item *item, uint64_t id)
{
    if (ARENA_GROW(reader->arena, item->deps, item->dep_count, item->dep_cap))
        item->deps[item->dep_count++] = id;
    else
        reader->no_memory = true;
}

static bool chakra_read_node(struct chakra_reader *reader, struct pb message)
{
    enum { ID = 1, NAME, TYPE, CTRL, DATA, DURATION = 7, ATTR = 10 };
    struct chakra_item item = {.name = "node", .stream = -1, .op = -1};
    struct pb_field field;
    uint64_t micros = 0;
    bool ok = true;
    while (pb_next(&message, &field)) {
        if (field.number == ID && field.wire == 0)
            item.id = field.value;
        else if (field.number == NAME && field.wire == 2)
            item.name = pb_text(reader, &field.piece);
        else if (field.number == TYPE && field.wire == 0)
            item.type = field.value < 16 ? (int)field.value : 0;
        else if (field.number == DURATION && field.wire == 0)
            micros = field.value;
        else if (field.number == ATTR && field.wire == 2)
            ok = chakra_read_attribute(reader, field.piece, &item.attributes) && ok;
        else if (field.number == DATA && field.wire == 0)
            chakra_add_dep(reader, &item, field.value);
        while (field.number == DATA && field.wire == 2 && !field.piece.bad &&
               field.piece.at < field.piece.end)
            chakra_add_dep(reader, &item, pb_varint(&field.piece));
    }
    item.duration_ns = chakra_number(&item.attributes, "duration_ns", -1);
    if (item.duration_ns < 0 || item.duration_ns / 1000 > CHAKRA_MOST_NS)
        item.duration_ns = (int64_t)(micros < CHAKRA_MOST_NS ? micros : CHAKRA_MOST_NS) * 1000;
    if (!ARENA_GROW(reader->arena, reader->items, reader->count, reader->cap)) {
        reader->no_memory = true;
        return false;
    }
    reader->items[reader->count++] = item;
    return ok && !message.bad;
}

static bool chakra_read_head(struct chakra_reader *reader, struct pb message)
{
    enum { ATTR = 2 };
    struct pb_field field;
    bool ok = true;
    while (pb_next(&message, &field))
        if (field.number == ATTR && field.wire == 2)
            ok = chakra_read_attribute(reader, field.piece, &reader->head) && ok;
    return ok && !message.bad;
}

static enum status chakra_refuse(const struct chakra_reader *reader, size_t at, const char *what)
{
    return diag_error(reader->diag, STATUS_INPUT, "%s: byte %zu: %s", reader->file, at, what);
}

static enum status chakra_read_messages(struct chakra_reader *reader, const unsigned char *bytes,
                                        size_t count)
{
    struct pb all = {.at = bytes, .end = bytes + count};
    for (bool first = true; all.at < all.end; first = false) {
        const size_t begin = (size_t)(all.at - bytes);
        const uint64_t length = pb_varint(&all);
        if (all.bad || length > (uint64_t)(all.end - all.at))
            return chakra_refuse(reader, begin, "the trace ends before its last node does");
        const struct pb message = {.at = all.at, .end = all.at + length};
        if (!(first ? chakra_read_head(reader, message) : chakra_read_node(reader, message)))
            return reader->no_memory
                       ? diag_no_memory(reader->diag)
                       : chakra_refuse(reader, begin, "a node is not a message of Chakra's format");
        all.at += length;
    }
    if (reader->count == 0)
        return chakra_refuse(reader, count, "a trace without nodes");
    return reader->no_memory ? diag_no_memory(reader->diag) : STATUS_OK;
}

/* ---- what the nodes name ---------------------------------------------------------------------- */

static int chakra_named(struct chakra_reader *reader, struct names *names, const char *name)
{
    const int index = names_intern(names, &reader->job->plan.arena, name);
    reader->no_memory |= index < 0;
    return index;
}

/* The communicator of a group, by the members that the metadata list; else of all ranks. */
static int chakra_comm(struct chakra_reader *reader, const char *name)
{
    struct plan *plan = &reader->job->plan;
    char key[PLAN_MAX_NAME + 32];
    for (size_t i = 0; i < plan->comm_count; i++)
        if (strcmp(plan->comms[i].name, name) == 0)
            return (int)i;
    snprintf(key, sizeof key, "process_group.%s", name);
    const struct chakra_attribute *members = chakra_find(&reader->head, key);
    struct comm *comms = ARENA_ARRAY(&plan->arena, plan->comm_count + 1, struct comm);
    if (!comms) {
        reader->no_memory = true;
        return -1;
    }
    if (plan->comm_count > 0)
        memcpy(comms, plan->comms, plan->comm_count * sizeof *comms);
    plan->comms = comms;
    struct comm *comm = &comms[plan->comm_count];
    *comm = (struct comm){.name = name, .declared = true};
    comm->member_count = members ? members->int_count : (size_t)plan->ranks;
    comm->members = ARENA_ARRAY(&plan->arena, comm->member_count + 1, int);
    reader->no_memory |= !comm->members;
    for (size_t i = 0; comm->members && i < comm->member_count; i++)
        comm->members[i] = members ? members->ints[i] : (int)i;
    return (int)plan->comm_count++;
}

static struct host_op *chakra_add(struct chakra_reader *reader, struct job_thread *thread,
                                  enum op_kind kind)
{
    struct host_op *op = job_add_op(reader->job, thread, kind);
    reader->no_memory |= !op;
    return op;
}

static void chakra_list(struct chakra_reader *reader, const struct chakra_item *item,
                        const char *name, struct index_list *out)
{
    const struct chakra_attribute *list = chakra_find(&item->attributes, name);
    if (!list || list->text_count == 0)
        return;
    out->items = ARENA_ARRAY(&reader->job->plan.arena, list->text_count, int);
    reader->no_memory |= !out->items;
    for (size_t i = 0; out->items && i < list->text_count; i++) {
        out->items[i] = job_buffer(reader->job, list->texts[i]);
        reader->no_memory |= out->items[i] < 0;
        out->count++;
    }
}

static void chakra_accesses(struct chakra_reader *reader, const struct chakra_item *item,
                            struct host_op *op)
{
    struct host_accesses found = {{0}, {0}};
    chakra_list(reader, item, "reads", &found.reads);
    chakra_list(reader, item, "writes", &found.writes);
    if (found.reads.count + found.writes.count == 0)
        return;
    if (host_op_make_accesses(op, &reader->job->plan.arena))
        *op->accesses = found;
    else
        reader->no_memory = true;
}

static enum collective_kind chakra_collective_kind(const struct chakra_item *item)
{
    switch (chakra_number(&item->attributes, "comm_type", 0)) {
#define X(name, number)                                                                            \
    case number: return COLLECTIVE_##name;
        CHAKRA_COLLECTIVE_LIST(X)
#undef X
    default: return COLLECTIVE_ALL_REDUCE; /* reduce */
    }
}

static int64_t chakra_bytes_of(const struct chakra_item *item, const char *name)
{
    const int64_t bytes = chakra_number(&item->attributes, name, 0);
    return bytes > 0 && bytes < INT64_C(1) << 48 ? bytes : 0;
}

/* A message to or from another rank of the plan; false: there is no such rank. */
static bool chakra_add_part(struct chakra_reader *reader, const struct chakra_item *item,
                            struct host_op *op)
{
    const bool send = item->type == CHAKRA_SEND;
    const int64_t peer = chakra_number(&item->attributes, send ? "comm_dst" : "comm_src", -1);
    if (peer < 0 || peer >= reader->job->plan.ranks || peer == reader->number)
        return false;
    struct p2p_part *parts =
        ARENA_ARRAY(&reader->job->plan.arena, op->part_count + 1, struct p2p_part);
    if (!parts) {
        reader->no_memory = true;
        return true;
    }
    if (op->part_count > 0)
        memcpy(parts, op->parts, op->part_count * sizeof *parts);
    struct p2p_part *part = &parts[op->part_count++];
    *part = (struct p2p_part){.tag = item->name,
                              .send = send,
                              .peer = (int)peer,
                              .root = -1,
                              .comm = -1,
                              .stream = -1,
                              .bytes = chakra_bytes_of(item, "comm_size")};
    chakra_list(reader, item, "reads", &part->reads);
    chakra_list(reader, item, "writes", &part->writes);
    op->parts = parts;
    return true;
}

/* The work of a call, or that of a trace without calls. */
static bool chakra_fill_work(struct chakra_reader *reader, const struct chakra_item *item,
                             struct host_op *op)
{
    const char *group = chakra_text(item, "pg_name"), *direction = chakra_text(item, "direction");
    op->time_ns = item->duration_ns;
    op->sm = (int)chakra_number(&item->attributes, "sm", 0);
    if (op->sm < 0 || op->sm > PLAN_MAX_RANKS)
        op->sm = 0;
    if (op->kind == OP_COLLECTIVE || op->kind == OP_GROUP)
        op->comm = chakra_comm(reader, group ? group : "world");
    if (op->kind == OP_GROUP)
        return chakra_add_part(reader, item, op);
    if (op->kind == OP_COLLECTIVE) {
        op->collective = chakra_collective_kind(item);
        op->bytes = chakra_bytes_of(item, "comm_size");
        const int64_t root = chakra_number(&item->attributes, "root", -1);
        op->root = root >= 0 && root < reader->job->plan.ranks ? (int)root : -1;
    }
    if (op->kind == OP_COPY) {
        op->bytes = chakra_bytes_of(item, "bytes");
        op->direction = DIRECTION_D2D;
        for (int d = 0; direction && d <= DIRECTION_D2D; d++)
            if (strcmp(direction, direction_key((enum direction)d)) == 0)
                op->direction = (enum direction)d;
    }
    chakra_accesses(reader, item, op);
    return true;
}

/* ---- our own traces --------------------------------------------------------------------------- */

static struct job_thread *chakra_thread(struct chakra_reader *reader, const char *name)
{
    for (size_t i = 0; i < reader->thread_count; i++)
        if (strcmp(reader->threads[i]->host.name, name) == 0)
            return reader->threads[i];
    struct job_thread *thread = job_add_thread(reader->job, reader->number, name);
    if (!thread ||
        !ARENA_GROW(reader->arena, reader->threads, reader->thread_count, reader->thread_cap)) {
        reader->no_memory = true;
        return NULL;
    }
    reader->threads[reader->thread_count++] = thread;
    return thread;
}

static bool chakra_op_kind(const char *key, enum op_kind *out)
{
    for (size_t i = 0; i < sizeof chakra_ops / sizeof *chakra_ops; i++)
        if (strcmp(key, op_key(chakra_ops[i])) == 0) {
            *out = chakra_ops[i];
            return true;
        }
    return false;
}

/* The call of a thread. False where it lacks what its kind needs. */
static bool chakra_take_call(struct chakra_reader *reader, const struct chakra_item *item,
                             const char *key, struct host_op **out)
{
    struct plan *plan = &reader->job->plan;
    const char *thread = chakra_text(item, "thread"), *stream = chakra_text(item, "stream_name");
    const char *object = chakra_text(item, "object"), *sync = chakra_text(item, "sync");
    enum op_kind kind;
    if (!thread || !chakra_op_kind(key, &kind))
        return false;
    struct job_thread *of = chakra_thread(reader, thread);
    struct host_op *op = of ? chakra_add(reader, of, kind) : NULL;
    if (!op)
        return true;
    op->name = chakra_text(item, "label");
    op->at = chakra_text(item, "at");
    if (stream)
        op->stream = chakra_named(reader, &plan->streams, stream);
    if (kind == OP_HOST) {
        op->time_ns = item->duration_ns;
        chakra_accesses(reader, item, op);
    } else {
        op->host_time_ns = item->duration_ns;
    }
    if (kind == OP_SYNC)
        op->sync = !sync                         ? SYNC_DEVICE
                   : strcmp(sync, "stream") == 0 ? SYNC_STREAM
                   : strcmp(sync, "event") == 0  ? SYNC_EVENT
                                                 : SYNC_DEVICE;
    const bool flag = kind == OP_SIGNAL || kind == OP_AWAIT;
    const bool event = kind == OP_RECORD || kind == OP_WAIT || host_op_syncs(op, SYNC_EVENT);
    if (object && (flag || event))
        op->object = chakra_named(reader, flag ? &plan->flags : &plan->events, object);
    const bool needs_stream = op_is_device_work(kind) || kind == OP_RECORD || kind == OP_WAIT ||
                              host_op_syncs(op, SYNC_STREAM);
    *out = op_is_device_work(kind) ? op : NULL;
    return (!(flag || event) || object) && (!needs_stream || stream);
}

static enum status chakra_take_calls(struct chakra_reader *reader)
{
    struct host_op *open = NULL; /* the call whose work follows; no operation is added between */
    for (size_t i = 0; i < reader->count; i++) {
        const struct chakra_item *item = &reader->items[i];
        const char *key = chakra_text(item, "call");
        const bool good = key    ? chakra_take_call(reader, item, key, &open)
                          : open ? chakra_fill_work(reader, item, open)
                                 : true;
        if (!good)
            return diag_error(reader->diag, STATUS_INPUT,
                              "%s: node %" PRIu64 ": expected the thread, stream, object and other "
                              "rank that its call needs",
                              reader->file, item->id);
    }
    return reader->no_memory ? diag_no_memory(reader->diag) : STATUS_OK;
}

/* ---- traces of others ------------------------------------------------------------------------- */

static int chakra_by_id(const void *left, const void *right)
{
    return compare_u64(((const struct chakra_item *)left)->id,
                       ((const struct chakra_item *)right)->id);
}

static struct chakra_item *chakra_item_of(const struct chakra_reader *reader, uint64_t id)
{
    const size_t at = SORT_FIRST(i, 0, reader->count, reader->items[i].id >= id);
    return at < reader->count && reader->items[at].id == id ? &reader->items[at] : NULL;
}

static bool chakra_is_cpu(const struct chakra_item *item)
{
    return item->type == CHAKRA_METADATA || chakra_number(&item->attributes, "is_cpu_op", 0) != 0;
}

static int chakra_stream_of(struct chakra_reader *reader, const struct chakra_item *item)
{
    char name[PLAN_MAX_NAME + 32];
    const int64_t number = chakra_number(&item->attributes, "stream", -1);
    const char *group = chakra_text(item, "pg_name");
    if (number >= 0)
        snprintf(name, sizeof name, "s%" PRId64, number);
    else if (item->type == CHAKRA_COMP)
        snprintf(name, sizeof name, "compute");
    else
        snprintf(name, sizeof name, "comm.%s", group ? group : "world");
    return chakra_named(reader, &reader->job->plan.streams, name);
}

/* Works that another stream or the host waits for are recorded behind. */
static void chakra_number_events(struct chakra_reader *reader)
{
    char name[32];
    for (size_t i = 0; i < reader->count; i++) {
        struct chakra_item *item = &reader->items[i];
        item->stream = chakra_is_cpu(item) ? -1 : chakra_stream_of(reader, item);
    }
    for (size_t i = 0; i < reader->count; i++)
        for (size_t d = 0; d < reader->items[i].dep_count; d++) {
            struct chakra_item *on = chakra_item_of(reader, reader->items[i].deps[d]);
            if (!on || on->stream < 0 || on->op >= 0 || on->stream == reader->items[i].stream)
                continue;
            snprintf(name, sizeof name, "e%" PRIu64, on->id);
            on->op = chakra_named(reader, &reader->job->plan.events, name);
        }
}

static enum op_kind chakra_kind_of(const struct chakra_item *item)
{
    return item->type == CHAKRA_COLL                                ? OP_COLLECTIVE
           : item->type == CHAKRA_SEND || item->type == CHAKRA_RECV ? OP_GROUP
                                                                    : OP_LAUNCH;
}

static enum status chakra_take_node(struct chakra_reader *reader, struct job_thread *thread,
                                    const struct chakra_item *item)
{
    for (size_t d = 0; d < item->dep_count; d++) {
        const struct chakra_item *on = chakra_item_of(reader, item->deps[d]);
        if (on && on->id >= item->id)
            return diag_error(reader->diag, STATUS_INPUT,
                              "%s: node %" PRIu64 " depends on node %" PRIu64
                              ": expected one with a lower number",
                              reader->file, item->id, on->id);
        if (!on || on->op < 0 || on->stream == item->stream)
            continue;
        struct host_op *wait = chakra_add(reader, thread, item->stream < 0 ? OP_SYNC : OP_WAIT);
        if (!wait)
            continue;
        wait->object = on->op;
        wait->stream = item->stream;
        if (item->stream < 0)
            wait->sync = SYNC_EVENT;
    }
    struct host_op *op =
        chakra_add(reader, thread, item->stream < 0 ? OP_HOST : chakra_kind_of(item));
    if (!op)
        return STATUS_OK;
    op->name = op->kind == OP_GROUP ? NULL : item->name;
    if (item->stream < 0) {
        op->time_ns = item->duration_ns;
        return STATUS_OK;
    }
    op->stream = item->stream;
    if (!chakra_fill_work(reader, item, op))
        return diag_error(reader->diag, STATUS_INPUT,
                          "%s: node %" PRIu64 ": a message whose other rank has no trace",
                          reader->file, item->id);
    struct host_op *record = item->op >= 0 ? chakra_add(reader, thread, OP_RECORD) : NULL;
    if (record) {
        record->object = item->op;
        record->stream = item->stream;
    }
    return STATUS_OK;
}

static enum status chakra_take_nodes(struct chakra_reader *reader)
{
    SORT(reader->items, reader->count, chakra_by_id);
    chakra_number_events(reader);
    struct job_thread *thread = chakra_thread(reader, "main");
    enum status status = thread ? STATUS_OK : diag_no_memory(reader->diag);
    for (size_t i = 0; status == STATUS_OK && i < reader->count; i++)
        status = chakra_take_node(reader, thread, &reader->items[i]);
    return status == STATUS_OK && reader->no_memory ? diag_no_memory(reader->diag) : status;
}

/* ---- the file --------------------------------------------------------------------------------- */

/* What is known of the whole job. */
static enum status chakra_take_head(struct chakra_reader *reader, const char *name)
{
    static const char group[] = "process_group.";
    struct plan *plan = &reader->job->plan;
    const int64_t rank = chakra_number(&reader->head, "rank", reader->number);
    const struct chakra_attribute *told = chakra_find(&reader->head, "plan"),
                                  *inputs = chakra_find(&reader->head, "inputs"),
                                  *unrecorded = chakra_find(&reader->head, "unrecorded");
    if (rank != reader->number)
        return diag_error(reader->diag, STATUS_INPUT,
                          "%s: it says that it is rank %" PRId64
                          ", and stands at the place of rank %d",
                          reader->file, rank, reader->number);
    const int64_t queue = chakra_number(&reader->head, "launch_queue", 0);
    plan->machine.launch_queue = queue > 0 && queue <= PLAN_MAX_IN_FLIGHT ? (int)queue : 0;
    plan->name = arena_strdup(&plan->arena, name                 ? name
                                            : told && told->text ? told->text
                                                                 : "chakra");
    const int64_t dark = chakra_number(&reader->head, "unexplained", -1);
    if (dark >= 0 && dark <= 1000 * 1000)
        plan->unexplained = (struct share){.given = true, .millionths = (int)dark};
    for (size_t i = 0; i < reader->head.count; i++)
        if (strncmp(reader->head.items[i].name, group, sizeof group - 1) == 0)
            chakra_comm(reader, reader->head.items[i].name + sizeof group - 1);
    plan->inputs_given |= inputs != NULL;
    for (size_t i = 0; inputs && i < inputs->text_count; i++) {
        const int buffer = job_buffer(reader->job, inputs->texts[i]);
        reader->no_memory |= buffer < 0;
        if (buffer >= 0)
            plan->buffers[buffer].input = true;
    }
    for (size_t i = 0; unrecorded && i + 1 < unrecorded->text_count; i += 2)
        reader->no_memory |=
            !plan_add_unrecorded(plan, unrecorded->texts[i], unrecorded->texts[i + 1]);
    return reader->no_memory || !plan->name ? diag_no_memory(reader->diag) : STATUS_OK;
}

static enum status chakra_load(struct bytes *bytes, unsigned char **out, size_t *count,
                               struct diag *diag)
{
    size_t cap = 0, got = 0;
    enum status status = STATUS_OK;
    *out = NULL;
    *count = 0;
    do {
        if (*count > CHAKRA_MOST_BYTES)
            return diag_error(diag, STATUS_INPUT, "%s: a trace of Chakra of more than 1 GiB",
                              bytes_name(bytes));
        if (!ARRAY_RESERVE(*out, *count + 65536, cap))
            return diag_no_memory(diag);
        status = bytes_read(bytes, *out + *count, cap - *count, &got, diag);
        *count += got;
    } while (status == STATUS_OK && got > 0);
    return status;
}

enum status chakra_read(struct bytes *bytes, int number, const char *name, struct job *job,
                        struct diag *diag)
{
    struct chakra_reader reader = {.job = job,
                                   .arena = &job->arena,
                                   .diag = diag,
                                   .file = bytes_name(bytes),
                                   .number = number};
    unsigned char *text;
    size_t count;
    enum status status = chakra_load(bytes, &text, &count, diag);
    if (status == STATUS_OK)
        status = chakra_read_messages(&reader, text, count);
    free(text);
    if (status == STATUS_OK)
        status = chakra_take_head(&reader, name);
    bool calls = false;
    for (size_t i = 0; status == STATUS_OK && i < reader.count; i++)
        calls |= chakra_text(&reader.items[i], "call") != NULL;
    if (status == STATUS_OK)
        status = calls ? chakra_take_calls(&reader) : chakra_take_nodes(&reader);
    return status;
}
