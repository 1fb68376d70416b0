/* SPDX-License-Identifier: Apache-2.0 */
/* print_threads.c - host programs in canonical text: one operation a line. */
#include <assert.h>
#include <string.h>

#include "plan/keywords.h"
#include "print_internal.h"

static void put_part(struct printer *printer, const struct p2p_part *part)
{
    static const struct index_list none = {0};
    const struct plan *plan = printer->plan;
    open_map(printer, FLOW);
    put_pair_text(printer,
                  part->is_collective ? "collective"
                  : part->send        ? "send"
                                      : "recv",
                  part->tag);
    if (part->is_collective) {
        put_pair_keyword(printer, "op", keywords_collective, part->collective,
                         COLLECTIVE_ALL_REDUCE);
        put_pair_number(printer, "root", part->root, -1);
    } else
        put_pair_number(printer, "peer", part->peer, -1);
    put_pair_text(printer, "comm", part->comm >= 0 ? plan->comms[part->comm].name : NULL);
    put_pair_name(printer, "stream", &plan->streams, part->stream, -1);
    put_pair_number(printer, "device", part->device - 1, -1);
    put_pair_bytes(printer, "bytes", part->bytes, 0);
    put_pair_buffers(printer, "reads", &part->reads, &none);
    put_pair_buffers(printer, "writes", &part->writes, &none);
    close_map(printer);
}

static void put_parts(struct printer *printer, const struct host_op *op)
{
    open_list(printer, FLOW);
    for (size_t i = 0; i < op->part_count; i++) {
        put_part(printer, &op->parts[i]);
    }
    close_list(printer);
}

/* The flag ready(0) of an iteration is printed as `ready`: the body of a repeat is printed once. */
static const char *flag_name(struct printer *printer, const char *name)
{
    const char *number = strrchr(name, '(');
    return number ? arena_strndup(&printer->scratch, name, (size_t)(number - name)) : name;
}

/* With the rank of another one's: r1.copied. */
static const char *object_name(struct printer *printer, const struct host_op *op)
{
    const char *name = plan_object_name(printer->plan, op);
    if (op->iteration > 0 && op_operand(op->kind) == OPERAND_FLAG)
        return flag_name(printer, name);
    return op->object_rank > 0
               ? arena_printf(&printer->scratch, "r%d.%s", op->object_rank - 1, name)
               : name;
}

/* One time, or those of the iterations. */
static void put_times(struct printer *printer, int64_t time_ns, const struct time_list *list)
{
    if (!list) {
        put_time(printer, time_ns);
        return;
    }
    open_list(printer, FLOW);
    for (size_t i = 0; i < list->count; i++)
        put_time(printer, list->items[i]);
    close_list(printer);
}

static void put_pair_times(struct printer *printer, const char *key, int64_t time_ns,
                           const struct time_list *list)
{
    if (!list && time_ns == 0)
        return;
    put_word(printer, key);
    put_times(printer, time_ns, list);
}

/* The value of the key that names the operation. */
static void put_head(struct printer *printer, const struct host_op *op)
{
    switch (op->kind) {
    case OP_HOST: put_times(printer, op->time_ns, op->times); break;
    case OP_COMPUTE:
    case OP_LAUNCH:
    case OP_COLLECTIVE:
    case OP_CALLBACK: put_text(printer, op->name); break;
    case OP_COPY: put_word(printer, direction_key(op->direction)); break;
    case OP_GROUP: put_parts(printer, op); break;
    case OP_SYNC: put_word(printer, keywords_sync[op->sync]); break;
    case OP_TICKET:
    case OP_SERVE: put_number(printer, op->ticket); break;
    case OP_RECORD:
    case OP_WAIT:
    case OP_SIGNAL:
    case OP_AWAIT:
    case OP_PUT:
    case OP_GET:
    case OP_LOCK:
    case OP_UNLOCK:
    case OP_BARRIER:
    case OP_ALLOC:
    case OP_FREE:
    case OP_RECORD_STREAM: put_text(printer, object_name(printer, op)); break;
    case OP_COMPLETE: assert(0 && "an operation that is in no plan"); break;
    }
}

static void put_process_group(struct printer *printer, const struct process_group *group)
{
    put_word(printer, "async");
    put_word(printer, group->async ? "true" : "false");
    if (group->named)
        put_pair_name(printer, "work", &printer->plan->events, group->done, -1);
}

/* Steps of a body are done on the device of the operation around it. */
static void put_op(struct printer *printer, const struct host_op *op, bool in_body)
{
    static const struct index_list none = {0};
    static const struct dist constant = {0};
    static const struct shares nothing = {{0}, {0}, {0}};
    const struct plan *plan = printer->plan;
    bool labelled = op->kind == OP_HOST || op->kind == OP_COPY;
    bool collective = op->kind == OP_COLLECTIVE;
    open_map(printer, FLOW);
    put_word(printer, op_key(op->kind));
    put_head(printer, op);
    put_pair_text(printer, "name", labelled ? op->name : NULL);
    put_pair_text(printer, "comm", op->comm >= 0 ? plan->comms[op->comm].name : NULL);
    if (op->stream >= 0)
        put_pair_name(printer, "stream", &plan->streams, op->stream,
                      op->kind == OP_FREE ? -1 : printer->default_stream);
    if (!in_body)
        put_pair_number(printer, "device", op->device - 1, -1);
    if (op->kind == OP_SYNC && op->sync == SYNC_EVENT)
        put_pair_text(printer, "event", object_name(printer, op));
    put_pair_keyword(printer, "op", keywords_collective, op->collective,
                     collective ? COLLECTIVE_ALL_REDUCE : op->collective);
    if (collective)
        put_pair_number(printer, "root", op->work.root, -1);
    put_pair_bytes(printer, "bytes", op->bytes, 0);
    put_pair_bool(printer, "graph", op->is_graph, false);
    put_pair_bool(printer, "pageable", op->pageable, false);
    put_pair_bool(printer, "external", op->external, false);
    if (op->kind != OP_HOST)
        put_pair_times(printer, "time", op->time_ns, op->times);
    put_pair_times(printer, "host_time", op->host_time_ns, op->host_times);
    put_pair_dist(printer, "jitter", &op->jitter, &constant);
    put_pair_number(printer, "sm", op->sm, 0);
    put_pair_shares(printer, "shares", &op->shares, &nothing);
    put_pair_buffers(printer, "reads", &op->reads, &none);
    put_pair_buffers(printer, "writes", &op->writes, &none);
    if (op->kind == OP_LAUNCH && op->work.kind != WORK_NONE)
        put_work(printer, &op->work);
    if (op->process_group)
        put_process_group(printer, op->process_group);
    if (op->kind == OP_CALLBACK || op->body_count > 0) {
        put_word(printer, "body");
        open_list(printer, FLOW);
        for (size_t i = 0; i < op->body_count; i++)
            put_op(printer, &op->body[i], true);
        close_list(printer);
    }
    close_map(printer);
}

/* 1 + the highest rank named: the default of the parser. */
static int named_ranks(const struct plan *plan)
{
    int highest = 0;
    for (size_t i = 0; i < plan->thread_count; i++)
        if (plan->threads[i].rank > highest)
            highest = plan->threads[i].rank;
    for (size_t i = 0; i < plan->comm_count; i++)
        for (size_t k = 0; k < plan->comms[i].member_count; k++)
            if (plan->comms[i].members[k] > highest)
                highest = plan->comms[i].members[k];
    return highest + 1;
}

static void print_graphs(struct printer *printer)
{
    const struct plan *plan = printer->plan;
    if (plan->graph_count == 0)
        return;
    put_word(printer, "graphs");
    open_map(printer, BLOCK);
    for (size_t i = 0; i < plan->graph_count; i++) {
        put_text(printer, plan->graphs[i].name);
        open_list(printer, BLOCK);
        for (size_t k = 0; k < plan->graphs[i].op_count; k++)
            put_op(printer, &plan->graphs[i].ops[k], false);
        close_list(printer);
    }
    close_map(printer);
}

static void put_repeat(struct printer *printer, const struct host_thread *thread,
                       const struct repeat *repeat)
{
    open_map(printer, BLOCK);
    put_pair_number(printer, "repeat", repeat->times, 0);
    put_word(printer, "body");
    open_list(printer, BLOCK);
    for (size_t k = 0; k < repeat->length; k++)
        put_op(printer, &thread->ops[repeat->first + k], false);
    close_list(printer);
    close_map(printer);
}

static void put_thread(struct printer *printer, const struct host_thread *thread)
{
    size_t next = 0;
    open_list(printer, BLOCK);
    for (size_t k = 0; k < thread->op_count; k++) {
        if (next == thread->repeat_count || k < thread->repeats[next].first) {
            put_op(printer, &thread->ops[k], false);
            continue;
        }
        const struct repeat *repeat = &thread->repeats[next++];
        put_repeat(printer, thread, repeat);
        k += repeat->length * (size_t)repeat->times - 1;
    }
    close_list(printer);
}

void print_threads(struct printer *printer)
{
    const struct plan *plan = printer->plan;
    put_pair_number(printer, "ranks", plan->ranks, named_ranks(plan));
    print_machine(printer);
    print_comms(printer);
    print_streams(printer);
    print_queues(printer);
    print_buffers(printer);
    print_graphs(printer);
    put_word(printer, "threads");
    open_map(printer, BLOCK);
    for (size_t i = 0; i < plan->thread_count; i++) {
        const struct host_thread *thread = &plan->threads[i];
        put_text(printer, arena_printf(&printer->scratch, "r%d.%s", thread->rank, thread->name));
        put_thread(printer, thread);
    }
    close_map(printer);
    print_inputs(printer);
}
