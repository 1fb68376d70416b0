/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collectives.c - see swpipe_collectives.h.
 *
 *     one process, or cuda     the user's memory is named, or wrapped: the device works on it
 *     host, several processes  user --copy--> shared memory --> shared memory --copy--> user
 *
 * The memory of user space cannot be mapped elsewhere, so it is copied, in stream order. Wrappers, copies and
 * shared memory belong to the iteration, whose device work is done when it is cleared.
 */
#include "swpipe_collectives.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/exec/graph.h"
#include "swpipe_impl.h"

/* One side of a call: memory of the user, and where the device finds it. */
struct side {
    void *user;
    size_t bytes;
    struct device_buffer *buffer; /* NULL: no bytes */
    bool staged;                  /* `buffer` is shared memory in its place */
    char name[40];                /* of that, among the iteration's values; no user can have it */
};

struct collectives_request {
    struct swpipe_context *context;
    struct device_stream *stream;
    struct device_comm *comm;
    const struct comm_desc *desc;
    size_t number_bytes;
    int peer; /* the place of a message's other end; -1: all places take part */
    enum number number;
    struct diag diag;
};

/* ---- the communicator ------------------------------------------------------------------------ */

/* True if the plan gives it to this task. */
static bool task_has(const struct program *p, int rank, int task, int comm)
{
    const struct body *body = &p->bodies[rank * p->tasks + task];
    for (int i = 0; i < body->count; i++)
        if (p->ops[body->first + i].comm == comm)
            return true;
    return false;
}

/* The index of the task's communicator of this name; -1: none, -2: several, and none is named. */
static int collectives_find_comm(const struct swpipe_context *context, const char *name)
{
    if (!context)
        return -1;
    const struct program *p = context->engine->program;
    int rank = context->self->rank, found = -1;
    for (int c = 0; c < p->comm_count; c++) {
        if ((name && strcmp(p->comms[c].name, name) != 0) || !task_has(p, rank, context->task, c))
            continue;
        if (found >= 0)
            return -2;
        found = c;
    }
    return found;
}

static int collectives_place_in(const struct comm_desc *desc, int rank)
{
    for (int i = 0; i < desc->count; i++)
        if (desc->members[i] == rank)
            return i;
    return -1;
}

int swpipe_comm_size(struct swpipe_context *context, const char *comm)
{
    int c = collectives_find_comm(context, comm);
    return c < 0 ? -1 : context->engine->program->comms[c].count;
}

int swpipe_comm_place(struct swpipe_context *context, const char *comm)
{
    int c = collectives_find_comm(context, comm);
    return c < 0 ? -1
                 : collectives_place_in(&context->engine->program->comms[c], context->self->rank);
}

void *swpipe_comm_handle(struct swpipe_context *context, const char *comm)
{
    int c = collectives_find_comm(context, comm);
    if (c < 0 || !called_pushes(context->self))
        return NULL;
    const int rank = context->self->rank;
    const struct comm_desc *desc = &context->engine->program->comms[c];
    return device_comm_handle(
        context->self->run->comms[desc->first_member + collectives_place_in(desc, rank)]);
}

/* ---- begin and end --------------------------------------------------------------------------- */

static const char *collectives_task_name(const struct swpipe_context *context)
{
    return context->engine->program->plan->pipeline.tasks[context->task].name;
}

static bool collectives_begin(struct collectives_request *call, struct swpipe_context *context,
                              const char *comm, enum swpipe_number number)
{
    if (!context)
        return false;
    const struct program *p = context->engine->program;
    int c = collectives_find_comm(context, comm), rank = context->self->rank;
    diag_init(&call->diag);
    if (graph_captures(context->self->run, rank)) {
        swpipe_fail(context, "a device_only function cannot call collectives on its own memory");
        return false;
    }
    if (c < 0 && comm) {
        swpipe_fail(context, "the plan does not give communicator '%s' to %s", comm,
                    collectives_task_name(context));
        return false;
    }
    if (c < 0) {
        swpipe_fail(context, "the plan gives %s %s communicator%s", collectives_task_name(context),
                    c == -1 ? "no" : "more than one", c == -1 ? "" : ", and none is named");
        return false;
    }
    if (number < SWPIPE_F32 || number > SWPIPE_I64) {
        swpipe_fail(context, "there is no type of numbers %d", (int)number);
        return false;
    }
    const struct comm_desc *desc = &p->comms[c];
    call->context = context;
    call->desc = desc;
    call->stream = engine_stream(context->engine, rank, context->task);
    call->comm = context->self->run->comms[desc->first_member + collectives_place_in(desc, rank)];
    call->peer = -1;
    call->number = (enum number)number;
    call->number_bytes = (size_t)number_bytes(call->number);
    return called_pushes(context->self);
}

/* False: the task fails with what is in `diag`. */
static int end(struct collectives_request *call, bool done)
{
    if (!done && !call->context->why[0])
        swpipe_fail(call->context, "%s", diag_first_text(&call->diag));
    diag_fini(&call->diag);
    return done ? 0 : -1;
}

/* It ends with the iteration. */
static bool collectives_keep(struct collectives_request *call, void *content,
                             void (*release)(void *content))
{
    if (iteration_keep(call->context->iteration, content, release))
        return true;
    release(content);
    return false;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void unwrap(void *buffer)
{
    device_unwrap(buffer);
}

struct copy {
    void *to;
    const void *from;
    size_t bytes;
};

static void collectives_run_copy(void *arg)
{
    const struct copy *copy = arg;
    memcpy(copy->to, copy->from, copy->bytes);
}

static bool collectives_push_copy(struct collectives_request *call, void *to, const void *from,
                                  size_t bytes)
{
    struct copy *copy = malloc(sizeof *copy);
    if (!copy)
        return false;
    *copy = (struct copy){to, from, bytes};
    const struct device_op op = {.kind = DEVICE_OP_CALLBACK,
                                 .label = collectives_task_name(call->context),
                                 .callback = {.run = collectives_run_copy, .arg = copy}};
    return collectives_keep(call, copy, free) &&
           device_push(call->stream, &op, NULL, &call->diag) == STATUS_OK;
}

/* Bytes that another process must reach, in memory that it can map; for a send, with their content. */
static bool stage(struct collectives_request *call, struct side *side, bool sends)
{
    static _Atomic uint64_t last;
    snprintf(side->name, sizeof side->name, "\001stage %llx", (unsigned long long)++last);
    struct block *block = iteration_alloc(call->context->iteration, side->name, side->bytes,
                                          call->context->task, call->stream, &call->diag);
    if (!block)
        return false;
    side->buffer = block->buffer;
    side->staged = true;
    return !sends ||
           collectives_push_copy(call, device_address(block->buffer), side->user, side->bytes);
}

static bool collectives_reach(struct collectives_request *call, struct side *side, bool sends)
{
    const struct swpipe *pipe = call->context->engine->pipe;
    if (side->bytes == 0)
        return true;
    if (pipe->group && pipe->device == DEVICE_KIND_HOST)
        return stage(call, side, sends);
    return device_wrap(pipe->devices[call->context->self->rank], side->user, side->bytes,
                       &side->buffer, &call->diag) == STATUS_OK &&
           collectives_keep(call, side->buffer, unwrap);
}

/* Received data go to the user; the shared memory may be used again behind that. */
static bool collectives_deliver(struct collectives_request *call, struct side *side, bool received)
{
    bool done = true;
    if (side->staged && received)
        done = collectives_push_copy(call, side->user, device_address(side->buffer), side->bytes);
    if (side->staged)
        iteration_unset(call->context->iteration, side->name, call->stream);
    return done;
}

static bool apart(const struct side *a, const struct side *b)
{
    uintptr_t x = (uintptr_t)a->user, y = (uintptr_t)b->user;
    return x <= y ? a->bytes <= y - x : b->bytes <= x - y;
}

/* True if there is memory, and none of it on both sides. `in_place`: the two lie as the kind of call allows. */
static bool check_sides(struct collectives_request *call, const struct side *send,
                        const struct side *recv, bool in_place)
{
    const struct side *const sides[] = {send, recv};
    for (int i = 0; i < 2; i++)
        if (sides[i]->bytes && !sides[i]->user) {
            swpipe_fail(call->context, "the memory to %s is NULL, expected %zu bytes",
                        i ? "receive" : "send", sides[i]->bytes);
            return false;
        }
    if (in_place || apart(send, recv))
        return true;
    swpipe_fail(call->context, "the memory to send and the memory to receive overlap");
    return false;
}

/* *bytes of `count` numbers; false: more than there can be. */
static bool count_bytes(struct collectives_request *call, size_t count, size_t *bytes)
{
    if (!__builtin_mul_overflow(count, call->number_bytes, bytes) && *bytes <= INT64_MAX)
        return true;
    swpipe_fail(call->context, "%zu numbers of %zu bytes are more than memory can hold", count,
                call->number_bytes);
    return false;
}

/* NCCL takes no part in what has no bytes; on the host device all meet, and one with other counts is told. */
static bool is_nothing(const struct collectives_request *call, size_t count)
{
    return count == 0 && call->context->engine->pipe->device != DEVICE_KIND_HOST;
}

/* The device compares them: where one rank leaves a call out, its later ones would meet those of other iterations. */
static int64_t collectives_iteration(const struct collectives_request *call)
{
    return call->context->self->current.iteration + 1;
}

static struct device_ref at(const struct side *side, size_t offset)
{
    return (struct device_ref){side->buffer, offset};
}

/* ---- collectives ----------------------------------------------------------------------------- */

/* `send` and `recv` have the user's memory and bytes; `bytes` as struct device_collective counts. */
static bool collectives_push_collective(struct collectives_request *call, enum collective_kind kind,
                                        struct side *send, struct side *recv, size_t bytes,
                                        int root)
{
    if (is_nothing(call, bytes))
        return true;
    bool in_place = send->user == recv->user && send->bytes == recv->bytes;
    bool own = device_comm_takes_own(call->comm, bytes);
    struct device_staging staging = {0};
    if (!own && !collectives_reach(call, send, false))
        return false;
    if (in_place)
        recv->buffer = send->buffer;
    else if (!own && !collectives_reach(call, recv, false))
        return false;
    if (own || send->staged)
        staging.from = send->user, staging.from_bytes = send->bytes;
    if (own || recv->staged || (in_place && send->staged))
        staging.to = recv->user, staging.to_bytes = recv->bytes;
    const struct device_op op = {.kind = DEVICE_OP_COLLECTIVE,
                                 .label = collectives_task_name(call->context),
                                 .collective = {.comm = call->comm,
                                                .kind = kind,
                                                .root = root,
                                                .number = call->number,
                                                .bytes = (int64_t)bytes,
                                                .iteration = collectives_iteration(call),
                                                .send = at(send, 0),
                                                .recv = at(recv, 0),
                                                .staging = staging}};
    return device_push(call->stream, &op, NULL, &call->diag) == STATUS_OK &&
           collectives_deliver(call, send, false) && collectives_deliver(call, recv, false);
}

/* One with as many bytes on each side as said; `bytes` is the larger. */
static int collective(struct swpipe_context *context, const char *comm, enum collective_kind kind,
                      const void *send, void *recv, size_t count, enum swpipe_number number,
                      int root)
{
    struct collectives_request call = {0};
    bool done = collectives_begin(&call, context, comm, number);
    if (!done)
        return -1;
    bool blocks = kind == COLLECTIVE_ALL_TO_ALL || kind == COLLECTIVE_ALL_GATHER ||
                  kind == COLLECTIVE_REDUCE_SCATTER;
    size_t members = blocks ? (size_t)call.desc->count : 1, numbers, bytes, whole;
    if (__builtin_mul_overflow(count, members, &numbers))
        numbers = SIZE_MAX;
    if (!count_bytes(&call, numbers, &bytes))
        return end(&call, false);
    whole = bytes / members; /* of one block */
    if (root < 0 || root >= call.desc->count) {
        swpipe_fail(context, "there is no place %d among %d members", root, call.desc->count);
        return end(&call, false);
    }
    root = call.desc->members[root];
    bool sends = kind != COLLECTIVE_BROADCAST || root == context->self->rank;
    /* NULL where nothing is read: the device does not look at it */
    struct side from = {.user = (void *)(uintptr_t)send,
                        .bytes = !sends                          ? 0
                                 : kind == COLLECTIVE_ALL_GATHER ? whole
                                                                 : bytes},
                to = {.user = recv, .bytes = kind == COLLECTIVE_REDUCE_SCATTER ? whole : bytes};
    size_t place = (size_t)collectives_place_in(call.desc, context->self->rank);
    uintptr_t at_send = (uintptr_t)send, at_recv = (uintptr_t)recv;
    bool in_place = kind == COLLECTIVE_ALL_GATHER ? at_send == at_recv + place * whole
                    : kind == COLLECTIVE_REDUCE_SCATTER
                        ? at_recv == at_send + place * whole
                        : kind != COLLECTIVE_ALL_TO_ALL && send == recv;
    return end(&call, check_sides(&call, &from, &to, in_place) &&
                          collectives_push_collective(&call, kind, &from, &to, bytes, root));
}

int swpipe_all_reduce(struct swpipe_context *context, const char *comm, const void *send,
                      void *recv, size_t count, enum swpipe_number number)
{
    return collective(context, comm, COLLECTIVE_ALL_REDUCE, send, recv, count, number, 0);
}

int swpipe_all_gather(struct swpipe_context *context, const char *comm, const void *send,
                      void *recv, size_t count, enum swpipe_number number)
{
    return collective(context, comm, COLLECTIVE_ALL_GATHER, send, recv, count, number, 0);
}

int swpipe_reduce_scatter(struct swpipe_context *context, const char *comm, const void *send,
                          void *recv, size_t count, enum swpipe_number number)
{
    return collective(context, comm, COLLECTIVE_REDUCE_SCATTER, send, recv, count, number, 0);
}

int swpipe_broadcast(struct swpipe_context *context, const char *comm, const void *send, void *recv,
                     size_t count, enum swpipe_number number, int root)
{
    return collective(context, comm, COLLECTIVE_BROADCAST, send, recv, count, number, root);
}

int swpipe_all_to_all(struct swpipe_context *context, const char *comm, const void *send,
                      void *recv, size_t count, enum swpipe_number number)
{
    return collective(context, comm, COLLECTIVE_ALL_TO_ALL, send, recv, count, number, 0);
}

/* ---- messages -------------------------------------------------------------------------------- */

/* *bytes of all blocks; false: more than there can be. */
static bool sum_bytes(struct collectives_request *call, const size_t *counts, size_t *bytes)
{
    size_t sum = 0;
    for (int i = 0; i < call->desc->count; i++)
        if (__builtin_add_overflow(sum, counts[i], &sum))
            sum = SIZE_MAX;
    return count_bytes(call, sum, bytes);
}

/* Of a message the other places have no part; of an exchange those without bytes have one that carries nothing. The
   devices keep copies. */
static size_t collectives_add_parts(const struct collectives_request *call,
                                    struct device_p2p *parts, const struct side *side,
                                    const size_t *counts, bool send)
{
    size_t offset = 0, count = 0;
    for (int i = 0; i < call->desc->count && counts; i++) {
        size_t bytes = counts[i] * call->number_bytes;
        if ((call->peer < 0 || call->peer == i) && !is_nothing(call, bytes))
            parts[count++] =
                (struct device_p2p){.send = send,
                                    .peer = call->desc->members[i],
                                    .bytes = (int64_t)bytes,
                                    .iteration = call->peer < 0 ? collectives_iteration(call) : 0,
                                    .data = at(side, offset)};
        offset += bytes;
    }
    return count;
}

static bool push_parts(struct collectives_request *call, struct side *send,
                       const size_t *send_counts, struct side *recv, const size_t *recv_counts)
{
    struct device_p2p *parts = calloc(2 * (size_t)call->desc->count, sizeof *parts);
    if (!parts || !collectives_reach(call, send, true) || !collectives_reach(call, recv, false)) {
        free(parts);
        return false;
    }
    size_t count = collectives_add_parts(call, parts, send, send_counts, true);
    count += collectives_add_parts(call, parts + count, recv, recv_counts, false);
    const struct device_op op = {.kind = DEVICE_OP_GROUP,
                                 .label = collectives_task_name(call->context),
                                 .group = {call->comm, parts, count}};
    bool done = count == 0 || device_push(call->stream, &op, NULL, &call->diag) == STATUS_OK;
    free(parts);
    return done && collectives_deliver(call, send, false) && collectives_deliver(call, recv, true);
}

/* A rank knows both ends of what it sends itself; the others would wait for it while it has failed. */
static bool collectives_keeps_own(const struct collectives_request *call, const size_t *send_counts,
                                  const size_t *recv_counts)
{
    const int place = collectives_place_in(call->desc, call->context->self->rank);
    if (send_counts[place] == recv_counts[place])
        return true;
    swpipe_fail(call->context, "rank %d sends %zu numbers to itself, and receives %zu from itself",
                call->context->self->rank, send_counts[place], recv_counts[place]);
    return false;
}

int swpipe_all_to_all_v(struct swpipe_context *context, const char *comm, const void *send,
                        const size_t *send_counts, void *recv, const size_t *recv_counts,
                        enum swpipe_number number)
{
    struct collectives_request call = {0};
    if (!collectives_begin(&call, context, comm, number))
        return -1;
    struct side from = {.user = (void *)(uintptr_t)send}, to = {.user = recv};
    if (!send_counts || !recv_counts) {
        swpipe_fail(context, "the counts to %s are NULL, expected one for each of %d members",
                    send_counts ? "receive" : "send", call.desc->count);
        return end(&call, false);
    }
    return end(&call, sum_bytes(&call, send_counts, &from.bytes) &&
                          sum_bytes(&call, recv_counts, &to.bytes) &&
                          collectives_keeps_own(&call, send_counts, recv_counts) &&
                          check_sides(&call, &from, &to, false) &&
                          push_parts(&call, &from, send_counts, &to, recv_counts));
}

/* One message: counts of all places but one are 0. */
static int message(struct swpipe_context *context, const char *comm, void *data, size_t count,
                   enum swpipe_number number, int peer, bool send)
{
    struct collectives_request call = {0};
    if (!collectives_begin(&call, context, comm, number))
        return -1;
    if (peer < 0 || peer >= call.desc->count || call.desc->members[peer] == context->self->rank) {
        swpipe_fail(context, "there is no other member at place %d", peer);
        return end(&call, false);
    }
    size_t *counts = calloc((size_t)call.desc->count, sizeof *counts);
    if (!counts)
        return end(&call, false);
    counts[peer] = count;
    call.peer = peer;
    struct side side = {.user = data}, none = {0};
    bool done = count_bytes(&call, count, &side.bytes) &&
                (send ? check_sides(&call, &side, &none, false) &&
                            push_parts(&call, &side, counts, &none, NULL)
                      : check_sides(&call, &none, &side, false) &&
                            push_parts(&call, &none, NULL, &side, counts));
    free(counts);
    return end(&call, done);
}

int swpipe_send(struct swpipe_context *context, const char *comm, const void *data, size_t count,
                enum swpipe_number number, int peer)
{
    return message(context, comm, (void *)(uintptr_t)data, count, number, peer, true);
}

int swpipe_receive(struct swpipe_context *context, const char *comm, void *data, size_t count,
                   enum swpipe_number number, int peer)
{
    return message(context, comm, data, count, number, peer, false);
}

int swpipe_sync(struct swpipe_context *context)
{
    if (!context)
        return -1;
    const struct engine *engine = context->engine;
    const struct run *run = context->self->run;
    int64_t limit_ns = run->config.wait_ns;
    struct diag diag;
    if (run_is_on_caller(run) && run_last_rank(run) - run_first_rank(run) > 1)
        return swpipe_fail(context,
                           "swpipe_sync: the stream may wait for functions of other ranks, which "
                           "this thread calls as well (SWPIPE_CALLER)");
    diag_init(&diag);
    bool done =
        device_stream_sync(engine_stream(engine, context->self->rank, context->task),
                           limit_ns ? device_deadline(run_now(run), limit_ns) : DEVICE_FOREVER,
                           &diag) == STATUS_OK;
    if (!done)
        swpipe_fail(context, "%s", diag_first_text(&diag));
    diag_fini(&diag);
    return done ? 0 : -1;
}
