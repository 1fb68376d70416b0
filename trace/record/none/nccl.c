/* SPDX-License-Identifier: Apache-2.0 */
/* nccl.c - libnccl.so.2 without a GPU: calls, groups, and what they do in their streams. See nccl.h. */
#include "nccl.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

typedef struct nccl_comm *comm_handle;

struct nccl_operation {
    enum nccl_kind kind;
    bool send;
    int type, operation, root, peer;
    const char *from;
    char *to;
    size_t count;
    comm_handle comm;
    void *stream;
};

/* The operations of a group in one communicator and stream: the work of one kernel. */
struct nccl_call {
    comm_handle comm;
    bool kept; /* a graph has it: it starts again and again */
    uint64_t number;
    size_t at, count;
    enum { CALL_WAITS, CALL_NOTICED, CALL_MOVES } phase;
    size_t left;                     /* transfers that are not done */
    struct nccl_incoming **incoming; /* of a collective, by rank */
    char **parts;
    struct nccl_operation operations[];
};

static comm_handle all_comms; /* by the lock */
static __thread const char *last_words;

static int nccl_wrong(int result, const char *words)
{
    last_words = words;
    return result;
}

/* ---- own operations of reductions ------------------------------------------------------------------------ */

static struct {
    bool used, on_device;
    int type;
    double value;
    const void *at;
} scalars[256];

static double load_scalar(const void *at, int type)
{
    uint32_t wide = 0;
    float value;
    switch (type) {
    case 0: return *(const int8_t *)at;
    case 1: return *(const uint8_t *)at;
    case 2: return *(const int32_t *)at;
    case 3: return *(const uint32_t *)at;
    case 4: return (double)*(const int64_t *)at;
    case 5: return (double)*(const uint64_t *)at;
    case 6: return (double)nccl_half(*(const uint16_t *)at);
    case 7: return (double)*(const float *)at;
    case 8: return *(const double *)at;
    case 9: /* the upper half of a float */
        wide = (uint32_t) * (const uint16_t *)at << 16;
        memcpy(&value, &wide, sizeof value);
        return (double)value;
    default: none_missing("ncclRedOpCreatePreMulSum", "scalars of 8 bits");
    }
}

FACE(int, ncclRedOpCreatePreMulSum,
     (int *out, void *scalar, int type, int residence, comm_handle comm))
{
    for (int i = 0; i < (int)(sizeof scalars / sizeof *scalars); i++)
        if (!__atomic_exchange_n(&scalars[i].used, true, __ATOMIC_ACQ_REL)) {
            scalars[i].type = type;
            scalars[i].on_device = residence == 0;
            scalars[i].at = scalar;
            scalars[i].value = residence == 0 ? 0 : load_scalar(scalar, type);
            *out = NCCL_FIRST_OWN + i;
            return NCCL_OK;
        }
    none_missing("ncclRedOpCreatePreMulSum", "more than 256 operations at a time");
}
FACE(int, ncclRedOpDestroy, (int operation, comm_handle comm))
{
    if (operation >= NCCL_FIRST_OWN)
        __atomic_store_n(&scalars[operation - NCCL_FIRST_OWN].used, false, __ATOMIC_RELEASE);
    return NCCL_OK;
}

/* Each rank multiplies with its own: the sender does, so that the others need not know. */
static void scale(char *out, const char *from, size_t count, int type, int operation)
{
    const int own = operation - NCCL_FIRST_OWN;
    const double factor =
        scalars[own].on_device ? load_scalar(scalars[own].at, type) : scalars[own].value;
    nccl_combine(out, &from, 1, count, type, NCCL_SUM, &factor);
}

/* ---- collectives ------------------------------------------------------------------------------------------- */

static size_t operation_bytes(const struct nccl_operation *o)
{
    return o->count * nccl_type_bytes(o->type);
}

/* What the rank sends to a peer, and what comes of it; 0 bytes: nothing. */
struct nccl_flow {
    size_t from, bytes; /* sent: offset */
    size_t to, received;
    bool into_part; /* received into memory of its own, to be combined */
};
static struct nccl_flow nccl_flow_of(const struct nccl_operation *o, int own, int peer)
{
    const size_t b = operation_bytes(o), p = (size_t)peer * b;
    switch (o->kind) {
    case NCCL_ALL_REDUCE: return (struct nccl_flow){0, b, 0, b, true};
    case NCCL_BROADCAST:
        return (struct nccl_flow){0, own == o->root ? b : 0, 0, peer == o->root ? b : 0, false};
    case NCCL_REDUCE:
        return (struct nccl_flow){0, peer == o->root ? b : 0, 0, own == o->root ? b : 0, true};
    case NCCL_ALL_GATHER: return (struct nccl_flow){0, b, p, b, false};
    case NCCL_REDUCE_SCATTER: return (struct nccl_flow){p, b, 0, b, true};
    case NCCL_ALL_TO_ALL: return (struct nccl_flow){p, b, p, b, false};
    case NCCL_GATHER:
        return (struct nccl_flow){0, peer == o->root ? b : 0, p, own == o->root ? b : 0, false};
    case NCCL_SCATTER:
        return (struct nccl_flow){p, own == o->root ? b : 0, 0, peer == o->root ? b : 0, false};
    case NCCL_MESSAGE: break;
    }
    return (struct nccl_flow){0};
}

static void put_notice(comm_handle comm, const struct nccl_operation *o)
{
    const uint64_t number = ++comm->collectives;
    struct nccl_notice *notice = &comm->shared->boards[comm->rank].notices[number % NCCL_BOARD];
    notice->kind = (int32_t)o->kind;
    notice->type = o->type;
    notice->operation = o->operation < NCCL_FIRST_OWN ? o->operation : NCCL_FIRST_OWN;
    notice->root = o->root;
    notice->count = o->count;
    atomic_store_explicit(&notice->number, number, memory_order_release);
}

static const struct nccl_notice *notice_of(const struct nccl_comm *comm, int rank)
{
    return &comm->shared->boards[rank].notices[comm->collectives % NCCL_BOARD];
}

static bool all_noticed(const struct nccl_comm *comm)
{
    for (int i = 0; i < comm->ranks; i++)
        if (!nccl_has_noticed(comm, i))
            return false;
    return true;
}

/* True if all ranks call the same. */
static bool all_agree(const struct nccl_comm *comm, const struct nccl_operation *o)
{
    const struct nccl_notice *own = notice_of(comm, comm->rank);
    for (int i = 0; i < comm->ranks; i++) {
        const struct nccl_notice *other = notice_of(comm, i);
        if (other->kind == own->kind && other->type == own->type && other->count == own->count &&
            other->operation == own->operation && other->root == own->root)
            continue;
        none_say(
            "NCCL: collective %llu of a communicator of %d: rank %d calls %s of %zu %s%s, rank "
            "%d calls %s of %llu %s; on a GPU that hangs or spoils memory, here no byte is "
            "moved and the run goes on",
            (unsigned long long)comm->collectives, comm->ranks, comm->rank,
            nccl_kind_words(o->kind), o->count, nccl_type_name(o->type),
            other->root != own->root ? " with another root" : "", i,
            nccl_kind_words((unsigned)other->kind), (unsigned long long)other->count,
            nccl_type_name(other->type));
        return false;
    }
    return true;
}

static void nccl_begin_collective_locked(struct nccl_call *call, const struct nccl_operation *o)
{
    comm_handle comm = call->comm;
    const char *from = o->from;
    char *scaled = NULL;
    call->incoming = calloc((size_t)comm->ranks, sizeof(struct nccl_incoming *));
    call->parts = calloc((size_t)comm->ranks, sizeof(char *));
    if (!call->incoming || !call->parts)
        none_missing("NCCL", "there is no memory");
    if (o->operation >= NCCL_FIRST_OWN) {
        const size_t count = o->count * (o->kind == NCCL_REDUCE_SCATTER ? (size_t)comm->ranks : 1);
        scaled = malloc(count * nccl_type_bytes(o->type) + 1);
        if (!scaled)
            none_missing("NCCL", "there is no memory");
        scale(scaled, from, count, o->type, o->operation);
        from = scaled;
    }
    for (int peer = 0; peer < comm->ranks; peer++) {
        const struct nccl_flow flow = nccl_flow_of(o, comm->rank, peer);
        if (peer == comm->rank) {
            if (flow.into_part && scaled && flow.received > 0 &&
                (call->parts[peer] = malloc(flow.received)))
                memcpy(call->parts[peer], from + flow.from, flow.received);
            continue;
        }
        if (flow.bytes > 0)
            nccl_send_locked(comm, peer, o->kind, from + flow.from, flow.bytes, &call->left);
        if (flow.received == 0)
            continue;
        char *to = o->to + flow.to;
        if (flow.into_part && !(to = call->parts[peer] = calloc(1, flow.received)))
            none_missing("NCCL", "there is no memory");
        call->incoming[peer] =
            nccl_receive_locked(comm, peer, o->kind, to, flow.received, &call->left);
    }
    /* what is scaled and too large to be put aside is sent from there */
    if (scaled && call->left == 0)
        free(scaled);
}

static bool received_zero(const struct nccl_call *call, int peer)
{
    return call->incoming[peer] && call->incoming[peer]->zero;
}

static void nccl_combine_parts_locked(const struct nccl_call *call, const struct nccl_operation *o)
{
    const struct nccl_comm *comm = call->comm;
    const struct nccl_flow own = nccl_flow_of(o, comm->rank, comm->rank);
    const char *parts[NCCL_MOST_RANKS];
    const char *from = call->parts[comm->rank] ? call->parts[comm->rank] : o->from + own.from;
    bool zero = !call->parts[comm->rank] && none_is_untouched_locked(from, own.received);
    for (int i = 0; i < comm->ranks; i++) {
        parts[i] = i == comm->rank ? from : received_zero(call, i) ? NULL : call->parts[i];
        zero = zero && (i == comm->rank || !parts[i]);
    }
    if (zero)
        none_clear_locked(o->to, own.received);
    else
        nccl_combine(o->to, parts, comm->ranks, o->count, o->type,
                     o->operation < NCCL_FIRST_OWN ? o->operation : NCCL_SUM, NULL);
}

static void nccl_end_collective_locked(struct nccl_call *call, const struct nccl_operation *o)
{
    const int rank = call->comm->rank;
    const struct nccl_flow own = nccl_flow_of(o, rank, rank);
    assert(call->left == 0 && call->parts); /* all transfers are done */
    if (own.into_part && own.received > 0)
        nccl_combine_parts_locked(call, o);
    else if (own.bytes > 0 && own.received > 0 && o->to + own.to != o->from + own.from)
        none_move_locked(o->to + own.to, o->from + own.from, own.bytes);
    for (int peer = 0; peer < call->comm->ranks; peer++) {
        const struct nccl_incoming *in = call->incoming[peer];
        if (in && in->zero && !call->parts[peer])
            none_clear_locked(in->to, in->bytes);
        free(call->incoming[peer]);
        free(call->parts[peer]);
    }
    free(call->incoming);
    free(call->parts);
    call->incoming = NULL;
    call->parts = NULL;
}

/* ---- messages ------------------------------------------------------------------------------------------------ */

/* The n-th to the own rank goes to the n-th from it. */
static void pass_to_self_locked(const struct nccl_call *call)
{
    size_t at = 0;
    for (size_t i = 0; i < call->count; i++) {
        const struct nccl_operation *send = &call->operations[i];
        if (send->kind != NCCL_MESSAGE || !send->send || send->peer != call->comm->rank)
            continue;
        for (; at < call->count; at++) {
            const struct nccl_operation *receive = &call->operations[at];
            if (receive->kind == NCCL_MESSAGE && !receive->send &&
                receive->peer == call->comm->rank) {
                none_move_locked(receive->to, send->from, operation_bytes(receive));
                at++;
                break;
            }
        }
    }
}

static void nccl_begin_messages_locked(struct nccl_call *call)
{
    assert(call->left == 0 && !call->incoming);
    pass_to_self_locked(call);
    for (size_t i = 0; i < call->count; i++) {
        const struct nccl_operation *o = &call->operations[i];
        if (o->kind != NCCL_MESSAGE || o->peer == call->comm->rank)
            continue;
        if (o->send)
            nccl_send_locked(call->comm, o->peer, NCCL_MESSAGE, o->from, operation_bytes(o),
                             &call->left);
        else
            nccl_receive_locked(call->comm, o->peer, NCCL_MESSAGE, o->to, operation_bytes(o),
                                &call->left);
    }
}

/* ---- the work of a call --------------------------------------------------------------------------------------- */

static void *start_call(void *arg)
{
    const struct nccl_call *call = arg;
    const size_t bytes = sizeof *call + call->count * sizeof *call->operations;
    struct nccl_call *instance = malloc(bytes);
    if (!instance)
        none_missing("NCCL", "there is no memory");
    memcpy(instance, call, bytes);
    instance->number = instance->comm->launched++;
    if (!call->kept)
        free(arg);
    return instance;
}

static void skip_messages(struct nccl_call *call)
{
    while (call->at < call->count && call->operations[call->at].kind == NCCL_MESSAGE)
        call->at++;
}

/* Messages first, all at once; then one collective after the other. `at` is the collective that is under way. */
static bool step_call_locked(struct nccl_call *call)
{
    comm_handle comm = call->comm;
    assert(call->at <= call->count && !call->incoming == !call->parts);
    if (call->phase == CALL_WAITS) {
        if (call->at == 0)
            nccl_begin_messages_locked(call);
        skip_messages(call);
        if (call->at < call->count)
            put_notice(comm, &call->operations[call->at]);
        call->phase = CALL_NOTICED;
    }
    nccl_move_locked(comm);
    if (call->phase == CALL_NOTICED && call->at < call->count) {
        if (!all_noticed(comm))
            return false;
        if (all_agree(comm, &call->operations[call->at]))
            nccl_begin_collective_locked(call, &call->operations[call->at]);
    }
    call->phase = CALL_MOVES;
    nccl_move_locked(comm);
    if (call->left > 0)
        return false;
    if (call->incoming)
        nccl_end_collective_locked(call, &call->operations[call->at]);
    call->at += call->at < call->count;
    skip_messages(call);
    call->phase = CALL_WAITS;
    return call->at >= call->count;
}

static bool step_call(void *instance)
{
    struct nccl_call *call = instance;
    comm_handle comm = call->comm;
    if (!comm->ended && (comm->done != call->number || comm->error))
        return false;
    if (!comm->ended)
        while (!step_call_locked(call))
            if (call->phase != CALL_WAITS) {
                nccl_lost_peer_locked(comm);
                return false;
            }
    comm->done++;
    free(call);
    return true;
}

/* Moves on what was put aside; true if some is left. */
static bool pump_locked(void)
{
    bool left = false;
    for (comm_handle comm = all_comms; comm; comm = comm->next) {
        if (comm->ended)
            continue;
        bool some = false;
        for (int i = 0; i < comm->ranks; i++)
            some = some || comm->out[i];
        if (some)
            nccl_move_locked(comm);
        left = left || some;
    }
    return left;
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static __thread struct {
    int depth;
    struct nccl_operation *items;
    size_t count, cap;
    int result;
    comm_handle joining[64];
    size_t joining_count;
    struct nccl_division {
        comm_handle comm, *out;
        int color, key;
    } divisions[64];
    size_t division_count;
} group;

static void nccl_push(const struct nccl_operation *first, const struct nccl_operation *items,
                      size_t count)
{
    uint64_t id;
    struct none_graph *graph;
    void *const *nodes;
    size_t node_count, own = 0;
    static const struct none_work work = {start_call, step_call};
    struct nccl_call *call = calloc(1, sizeof *call + count * sizeof *items);
    if (!call)
        none_missing("NCCL", "there is no memory");
    call->comm = first->comm;
    call->kept = none_capture_state(first->stream, &id, &graph, &nodes, &node_count) != 0;
    for (size_t i = 0; i < count; i++)
        if (items[i].comm == first->comm && items[i].stream == first->stream)
            call->operations[own++] = items[i];
    assert(own > 0 && own <= count);
    call->count = own;
    if (none_push(first->stream, &work, call) != NONE_OK)
        none_say("NCCL: a call was not taken by its stream");
}

static int nccl_flush_group(void)
{
    for (size_t i = 0; i < group.count; i++) {
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++)
            seen = group.items[k].comm == group.items[i].comm &&
                   group.items[k].stream == group.items[i].stream;
        if (!seen)
            nccl_push(&group.items[i], group.items, group.count);
    }
    group.count = 0;
    return NCCL_OK;
}

static void nccl_sleep(void)
{
    nanosleep(&(struct timespec){0, 200000}, NULL);
}

static void enter_comm(comm_handle comm)
{
    none_lock();
    comm->next = all_comms;
    all_comms = comm;
    none_set_pump_locked(pump_locked);
    if (comm->ranks > 1)
        none_start_clerk_locked();
    none_unlock();
}

static int end_joining(void)
{
    for (size_t i = 0; i < group.joining_count; i++)
        while (!nccl_is_joined(group.joining[i]))
            nccl_sleep();
    group.joining_count = 0;
    return NCCL_OK;
}

static struct nccl_board *nccl_board_of(const struct nccl_comm *comm)
{
    return &comm->shared->boards[comm->rank];
}

static void await_round(const struct nccl_comm *comm, uint64_t round)
{
    for (int i = 0; i < comm->ranks; i++)
        while (atomic_load(&comm->shared->boards[i].round) < round)
            nccl_sleep();
}

static void begin_division(const struct nccl_division *division)
{
    comm_handle comm = division->comm;
    struct nccl_board *board = nccl_board_of(comm);
    comm->divisions++;
    board->color = division->color;
    board->key = division->key;
    atomic_store(&board->round, 2 * comm->divisions - 1);
}

static comm_handle end_division(const struct nccl_division *division)
{
    comm_handle comm = division->comm, made = NULL;
    await_round(comm, 2 * comm->divisions - 1);
    int ranks = 0, rank = 0;
    for (int i = 0; i < comm->ranks; i++) {
        const struct nccl_board *board = &comm->shared->boards[i];
        if (board->color != division->color)
            continue;
        ranks++;
        rank += board->key < division->key || (board->key == division->key && i < comm->rank);
    }
    assert(ranks > 0 && rank < ranks); /* this one has its own color */
    char name[64];
    snprintf(name, sizeof name, "%.34s-%llu-%d", comm->name, (unsigned long long)comm->divisions,
             division->color);
    if (division->color >= 0)
        made = nccl_join(name, ranks, rank);
    atomic_store(&nccl_board_of(comm)->round, 2 * comm->divisions);
    await_round(comm, 2 * comm->divisions);
    if (made)
        enter_comm(made);
    return made;
}

static int end_divisions(void)
{
    int result = NCCL_OK;
    for (size_t i = 0; i < group.division_count; i++)
        begin_division(&group.divisions[i]);
    for (size_t i = 0; i < group.division_count; i++) {
        struct nccl_division *division = &group.divisions[i];
        *division->out = end_division(division);
        if (*division->out)
            group.joining[group.joining_count++] = *division->out;
        else if (division->color >= 0)
            result = NCCL_SYSTEM_ERROR;
    }
    group.division_count = 0;
    return result;
}

static int end_of_group(void)
{
    const int divided = end_divisions();
    end_joining();
    nccl_flush_group();
    const int result = group.result ? group.result : divided;
    group.result = NCCL_OK;
    return result;
}

FACE(int, ncclGroupStart, (void))
{
    group.depth++;
    return NCCL_OK;
}
FACE(int, ncclGroupEnd, (void))
{
    if (group.depth == 0)
        return nccl_wrong(NCCL_INVALID_USAGE, "ncclGroupEnd without ncclGroupStart");
    return --group.depth > 0 ? NCCL_OK : end_of_group();
}
FACE(int, ncclGroupSimulateEnd, (void *info))
{
    none_missing("ncclGroupSimulateEnd", "how long operations take");
}

static int nccl_add(const struct nccl_operation *operation)
{
    if (!operation->comm || nccl_type_bytes(operation->type) == 0)
        return nccl_wrong(NCCL_INVALID_ARGUMENT, "no communicator, or no type");
    if (operation->peer < 0 || operation->peer >= operation->comm->ranks || operation->root < 0 ||
        operation->root >= operation->comm->ranks)
        return nccl_wrong(NCCL_INVALID_ARGUMENT, "a rank that the communicator has not");
    if (group.count == group.cap) {
        const size_t cap = 2 * group.cap + 16;
        struct nccl_operation *grown = realloc(group.items, cap * sizeof *grown);
        if (!grown)
            return nccl_wrong(NCCL_SYSTEM_ERROR, "no memory");
        group.items = grown;
        group.cap = cap;
    }
    group.items[group.count++] = *operation;
    return group.depth > 0 ? NCCL_OK : end_of_group();
}

/* ---- communicators ------------------------------------------------------------------------------------------------- */

struct nccl_id {
    char bytes[128];
};
VALUE(int, ncclGetUniqueId, (struct nccl_id * out),
      (memset(out, 0, sizeof *out),
       getrandom(out->bytes, 12, 0) == 12 ? NCCL_OK : NCCL_SYSTEM_ERROR))
static int nccl_make(comm_handle *out, int ranks, const struct nccl_id *id, int rank)
{
    char name[64] = "/swsim-";
    for (size_t i = 0; i < 12; i++)
        snprintf(name + 7 + 2 * i, 3, "%02x", (unsigned char)id->bytes[i]);
    *out = nccl_join(name, ranks, rank);
    if (!*out)
        return nccl_wrong(NCCL_SYSTEM_ERROR, "the communicator cannot be made");
    enter_comm(*out);
    if (group.joining_count == sizeof group.joining / sizeof *group.joining)
        none_missing("NCCL", "a group that makes more than 64 communicators");
    group.joining[group.joining_count++] = *out;
    return group.depth > 0 ? NCCL_OK : end_of_group();
}
VALUE(int, ncclCommInitRank, (comm_handle * out, int ranks, struct nccl_id id, int rank),
      nccl_make(out, ranks, &id, rank))
/* The configuration says how fast it is, and whether this call may come back early. */
VALUE(int, ncclCommInitRankConfig,
      (comm_handle * out, int ranks, struct nccl_id id, int rank, void *config),
      nccl_make(out, ranks, &id, rank))
VALUE(int, ncclCommInitRankScalable,
      (comm_handle * out, int ranks, int rank, int count, const struct nccl_id *ids, void *config),
      count < 1 ? nccl_wrong(NCCL_INVALID_ARGUMENT, "no unique id")
                : nccl_make(out, ranks, &ids[0], rank))
FACE(int, ncclCommInitAll, (comm_handle * out, int count, const int *devices))
{
    struct nccl_id id;
    const int before = none_device();
    int result = ncclGetUniqueId(&id);
    ncclGroupStart();
    for (int i = 0; i < count && result == NCCL_OK; i++) {
        none_set_device(devices ? devices[i] : i);
        result = nccl_make(&out[i], count, &id, i);
    }
    none_set_device(before);
    const int ended = ncclGroupEnd();
    return result ? result : ended;
}
FACE(int, ncclCommSplit, (comm_handle comm, int color, int key, comm_handle *out, void *config))
{
    if (!comm)
        return nccl_wrong(NCCL_INVALID_ARGUMENT, "no communicator");
    if (group.division_count == sizeof group.divisions / sizeof *group.divisions)
        none_missing("NCCL", "a group that divides more than 64 communicators");
    *out = NULL;
    group.divisions[group.division_count++] = (struct nccl_division){comm, out, color, key};
    return group.depth > 0 ? NCCL_OK : end_of_group();
}
FACE(int, ncclCommShrink,
     (comm_handle comm, int *excluded, int count, comm_handle *out, void *config, int flags))
{
    if (!comm)
        return nccl_wrong(NCCL_INVALID_ARGUMENT, "no communicator");
    int rank = comm->rank;
    for (int i = 0; i < count; i++)
        rank -= excluded[i] < comm->rank;
    char name[64];
    snprintf(name, sizeof name, "%.34s-s%llu", comm->name, (unsigned long long)++comm->shrinks);
    *out = nccl_join(name, comm->ranks - count, rank);
    if (!*out)
        return nccl_wrong(NCCL_SYSTEM_ERROR, "the communicator cannot be made");
    enter_comm(*out);
    group.joining[group.joining_count++] = *out;
    return group.depth > 0 ? NCCL_OK : end_of_group();
}

/* Waits for its operations, and for what was put aside, while its peers are there. */
static void nccl_finish(comm_handle comm)
{
    for (bool left = true; left;) {
        if (!none_lock())
            return;
        left = comm->done < comm->launched;
        for (int i = 0; i < comm->ranks; i++)
            left = left || comm->out[i];
        left = left && !comm->ended && !nccl_lost_peer_locked(comm);
        if (left)
            none_pause_locked();
        none_unlock();
    }
}
VALUE(int, ncclCommFinalize, (comm_handle comm), (nccl_finish(comm), NCCL_OK))
static int nccl_end(comm_handle comm, bool waits)
{
    if (!comm)
        return NCCL_OK;
    if (waits)
        nccl_finish(comm);
    if (!none_lock())
        return NCCL_OK;
    nccl_drop_locked(comm); /* its memory stays: calls may name it */
    none_unlock();
    return NCCL_OK;
}
VALUE(int, ncclCommDestroy, (comm_handle comm), nccl_end(comm, true))
VALUE(int, ncclCommAbort, (comm_handle comm), nccl_end(comm, false))
/* A process that just ends: what was put aside is still to be sent. */
__attribute__((destructor)) static void nccl_leave(void)
{
    for (comm_handle comm = all_comms; comm; comm = comm->next)
        if (!comm->ended && comm->done == comm->launched)
            nccl_finish(comm);
}

VALUE(int, ncclCommGetAsyncError, (comm_handle comm, int *out),
      (*out = comm ? comm->error : NCCL_INVALID_ARGUMENT, NCCL_OK))
VALUE(int, ncclCommCount, (const struct nccl_comm *comm, int *out), (*out = comm->ranks, NCCL_OK))
VALUE(int, ncclCommUserRank, (const struct nccl_comm *comm, int *out), (*out = comm->rank, NCCL_OK))
VALUE(int, ncclCommCuDevice, (const struct nccl_comm *comm, int *out),
      (*out = comm->device, NCCL_OK))
VALUE(int, ncclGetVersion, (int *out), (*out = 22705, NCCL_OK))
FACE(const char *, ncclGetErrorString, (int result))
{
    static const char *const words[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "NCCL operation in progress"};
    return result >= 0 && result < 8 ? words[result] : "unknown result code";
}
VALUE(const char *, ncclGetLastError, (comm_handle comm),
      comm && comm->error ? "a peer has ended"
      : last_words        ? last_words
                          : "")

/* Memory that a communicator has been told of is faster, no more. */
VALUE(int, ncclMemAlloc, (void **out, size_t bytes),
      none_alloc(out, bytes, NONE_DEVICE, 0) == NONE_OK ? NCCL_OK : NCCL_CUDA_ERROR)
VALUE(int, ncclMemFree, (void *at),
      none_free(at, NONE_DEVICE) == NONE_OK ? NCCL_OK : NCCL_CUDA_ERROR)
VALUE(int, ncclCommRegister, (comm_handle comm, void *at, size_t bytes, void **out),
      (*out = at, NCCL_OK))
VALUE(int, ncclCommDeregister, (comm_handle comm, void *handle), NCCL_OK)
VALUE(int, ncclCommWindowRegister,
      (comm_handle comm, void *at, size_t bytes, void **out, int flags), (*out = at, NCCL_OK))
VALUE(int, ncclCommWindowDeregister, (comm_handle comm, void *window), NCCL_OK)
FACE(void, ncclResetDebugInit, (void))
{
}

/* ---- operations ------------------------------------------------------------------------------------------------------ */

#define COLLECTIVE(name, KIND, PARAMS, ...)                                                        \
    FACE(int, name, PARAMS)                                                                        \
    {                                                                                              \
        const struct nccl_operation own = {.kind = NCCL_##KIND,                                    \
                                           .comm = comm,                                           \
                                           .stream = stream,                                       \
                                           .type = type,                                           \
                                           .count = count,                                         \
                                           __VA_ARGS__};                                           \
        return nccl_add(&own);                                                                     \
    }
COLLECTIVE(ncclAllReduce, ALL_REDUCE,
           (const void *from, void *to, size_t count, int type, int operation, comm_handle comm,
            void *stream),
           .from = from, .to = to, .operation = operation)
COLLECTIVE(ncclReduceScatter, REDUCE_SCATTER,
           (const void *from, void *to, size_t count, int type, int operation, comm_handle comm,
            void *stream),
           .from = from, .to = to, .operation = operation)
COLLECTIVE(ncclReduce, REDUCE,
           (const void *from, void *to, size_t count, int type, int operation, int root,
            comm_handle comm, void *stream),
           .from = from, .to = to, .operation = operation, .root = root)
COLLECTIVE(ncclBroadcast, BROADCAST,
           (const void *from, void *to, size_t count, int type, int root, comm_handle comm,
            void *stream),
           .from = from, .to = to, .root = root)
COLLECTIVE(ncclBcast, BROADCAST,
           (void *at, size_t count, int type, int root, comm_handle comm, void *stream), .from = at,
           .to = at, .root = root)
COLLECTIVE(ncclAllGather, ALL_GATHER,
           (const void *from, void *to, size_t count, int type, comm_handle comm, void *stream),
           .from = from, .to = to)
COLLECTIVE(ncclAlltoAll, ALL_TO_ALL,
           (const void *from, void *to, size_t count, int type, comm_handle comm, void *stream),
           .from = from, .to = to)
COLLECTIVE(ncclGather, GATHER,
           (const void *from, void *to, size_t count, int type, int root, comm_handle comm,
            void *stream),
           .from = from, .to = to, .root = root)
COLLECTIVE(ncclScatter, SCATTER,
           (const void *from, void *to, size_t count, int type, int root, comm_handle comm,
            void *stream),
           .from = from, .to = to, .root = root)
COLLECTIVE(ncclSend, MESSAGE,
           (const void *from, size_t count, int type, int peer, comm_handle comm, void *stream),
           .from = from, .send = true, .peer = peer)
COLLECTIVE(ncclRecv, MESSAGE,
           (void *to, size_t count, int type, int peer, comm_handle comm, void *stream), .to = to,
           .peer = peer)
