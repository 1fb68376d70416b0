/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.c - see program.h: the common part of lowering, names, printing.
 */
#include "program.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lower.h"
#include "snapshot.h"
#include "plan/outside.h"
#include "plan/rank_programs.h"
#include "plan/units.h"

/* Of a short text: rank programs are as long as their lists, which have a limit of their own. */
enum { MAX_PROGRAM_BYTES = 1 << 30 };

const char *driver_key(enum driver driver)
{
    static const char *const keys[] = {"none", "clock", "dataflow"};
    return keys[driver];
}

/* ---- table builders -------------------------------------------------------------------------- */

void lower_reserve(struct lowering *lowering, size_t ops, size_t parts)
{
    struct program *program = lowering->program;
    assert(program->op_count == 0 && program->part_count == 0);
    program->ops = ARENA_ARRAY(&program->arena, ops, struct op);
    program->parts = ARENA_ARRAY(&program->arena, parts, struct part);
    if (!program->ops || !program->parts)
        lowering->failed = true;
    program->op_cap = program->ops ? ops : 0;
    program->part_cap = program->parts ? parts : 0;
}

static const struct work no_work = {.comm = -1};
static const struct dist constant = {0};
static const struct given nothing = {.jitter = &constant, .work = &no_work};

struct op *lower_emit(struct lowering *lowering, enum op_kind kind, struct mark mark)
{
    struct program *program = lowering->program;
    if (program->op_count >= PLAN_MAX_LOWERED ||
        !arena_grow(&program->arena, (void **)&program->ops, program->op_count, &program->op_cap,
                    sizeof *program->ops)) {
        lowering->failed = true;
        return &program->ops[0]; /* overwritten, never used: the build fails */
    }
    struct op *op = &program->ops[program->op_count++];
    *op = (struct op){.kind = kind,
                      .name = -1,
                      .task = -1,
                      .stream = -1,
                      .object = -1,
                      .comm = -1,
                      .device = -1,
                      .iteration = lowering->iteration - 1,
                      .ticket = -1,
                      .given = &nothing,
                      .mark = mark};
    return op;
}

int lower_body_begin(struct lowering *lowering)
{
    struct program *program = lowering->program;
    if (!arena_grow(&program->arena, (void **)&program->bodies, program->body_count,
                    &program->body_cap, sizeof *program->bodies)) {
        lowering->failed = true;
        return 0;
    }
    program->bodies[program->body_count].first = (int)program->op_count;
    return (int)program->body_count++;
}

void lower_body_end(struct lowering *lowering, int body)
{
    if (!lowering->failed)
        lowering->program->bodies[body].count =
            (int)lowering->program->op_count - lowering->program->bodies[body].first;
}

int lower_thread(struct lowering *lowering, struct thread_desc desc)
{
    struct program *program = lowering->program;
    if (!desc.name || !arena_grow(&program->arena, (void **)&program->threads,
                                  lowering->thread_total, &lowering->thread_cap, sizeof desc)) {
        lowering->failed = true;
        return 0;
    }
    program->threads[lowering->thread_total++] = desc;
    program->thread_count = (int)lowering->thread_total;
    return program->thread_count - 1;
}

int lower_stream(struct lowering *lowering, int rank, int plan_stream)
{
    struct program *program = lowering->program;
    for (int s = program->stream_count - 1; s >= 0;
         s--) /* those of this rank are mostly the last */
        if (program->streams[s].rank == rank && program->streams[s].plan_stream == plan_stream)
            return s;
    if (!arena_grow(&program->arena, (void **)&program->streams, lowering->stream_total,
                    &lowering->stream_cap, sizeof *program->streams)) {
        lowering->failed = true;
        return 0;
    }
    program->streams[lowering->stream_total++] =
        (struct stream_desc){.rank = rank,
                             .plan_stream = plan_stream,
                             .name = lowering->plan->streams.items[plan_stream],
                             .hw_queue = -1};
    program->stream_count = (int)lowering->stream_total;
    return program->stream_count - 1;
}

enum status lower_comms(struct lowering *lowering)
{
    struct program *program = lowering->program;
    const struct plan *plan = lowering->plan;
    program->comms = ARENA_ARRAY(&program->arena, plan->comm_count, struct comm_desc);
    int *all_ranks = ARENA_ARRAY(&program->arena, (size_t)program->ranks, int);
    if (!program->comms || !all_ranks)
        return diag_no_memory(lowering->diag);
    for (int rank = 0; rank < program->ranks; rank++)
        all_ranks[rank] = rank;
    for (size_t c = 0; c < plan->comm_count; c++) {
        const struct comm *from = &plan->comms[c];
        struct comm_desc *to = &program->comms[program->comm_count++];
        *to = (struct comm_desc){.name = from->name,
                                 .members = from->members ? from->members : all_ranks,
                                 .count = from->members ? (int)from->member_count : program->ranks,
                                 .first_member = program->member_count,
                                 .eager_messages = from->eager_messages,
                                 .eager_bytes = from->eager_bytes};
        program->member_count += to->count;
        if (from->members && from->members[from->member_count - 1] >= program->ranks)
            return diag_error_at(lowering->diag, plan->file, NULL, from->mark,
                                 "found rank %d in communicator %s, expected ranks below %d",
                                 from->members[from->member_count - 1], from->name, program->ranks);
    }
    return STATUS_OK;
}

int program_member(const struct program *program, int comm, int rank)
{
    const struct comm_desc *desc = &program->comms[comm];
    int low = 0, high = desc->count; /* members are ascending, and often all ranks */
    if (rank < high && desc->members[rank] == rank)
        return rank;
    while (low < high) {
        int middle = (low + high) / 2;
        if (desc->members[middle] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < desc->count && desc->members[low] == rank ? low : -1;
}

int lower_member(const struct lowering *lowering, int comm, int rank)
{
    return program_member(lowering->program, comm, rank);
}

void lower_root(struct lowering *lowering, struct op *op, enum collective_kind kind, int root)
{
    int place = root < 0 ? 0 : lower_member(lowering, op->comm, root);
    if (!collective_has_root(kind))
        return;
    struct given given = *op->given;
    for (int i = 0; i < given.root_count; i++)
        if (given.roots[i] == place)
            return;
    int *roots = ARENA_ARRAY(&lowering->program->arena, (size_t)given.root_count + 1, int);
    if (!roots) {
        lowering->failed = true;
        return;
    }
    if (given.root_count)
        memcpy(roots, given.roots, (size_t)given.root_count * sizeof *roots);
    roots[given.root_count++] = place;
    given.roots = roots;
    lower_give(lowering, op, given);
}

int lower_channel(struct lowering *lowering, int comm, int from, int to)
{
    struct program *program = lowering->program;
    for (int c = program->channel_count - 1; c >= 0; c--) { /* those in use are mostly the last */
        struct channel *channel = &program->channels[c];
        if (channel->comm == comm && channel->from == from && channel->to == to) {
            channel->cap++;
            return c;
        }
    }
    if (!arena_grow(&program->arena, (void **)&program->channels, lowering->channel_total,
                    &lowering->channel_cap, sizeof *program->channels)) {
        lowering->failed = true;
        return 0;
    }
    program->channels[lowering->channel_total++] = (struct channel){comm, from, to, 1};
    program->channel_count = (int)lowering->channel_total;
    return program->channel_count - 1;
}

static int intern(struct lowering *lowering, struct names *names, const char *name)
{
    int index = name ? names_intern(names, &lowering->program->arena, name) : -1;
    if (index < 0)
        lowering->failed = true;
    return index < 0 ? 0 : index;
}

int lower_name(struct lowering *lowering, const char *name)
{
    return intern(lowering, &lowering->program->names, name);
}

/* Names of actions are short and many: they stand one behind the other. */
static char *keep_text(struct lowering *lowering, const char *text)
{
    enum { ROOM = 8192 };
    size_t bytes = strlen(text) + 1;
    if (bytes > ROOM / 8)
        return arena_strdup(&lowering->program->arena, text);
    if (bytes > lowering->text_left) {
        lowering->text = arena_alloc(&lowering->program->arena, ROOM);
        lowering->text_left = lowering->text ? ROOM : 0;
    }
    char *kept = lowering->text;
    if (!kept)
        return NULL;
    memcpy(kept, text, bytes);
    lowering->text += bytes;
    lowering->text_left -= bytes;
    return kept;
}

int lower_new_name(struct lowering *lowering, const char *name)
{
    struct names *names = &lowering->program->names;
    const char *kept = keep_text(lowering, name);
    if (!kept || !arena_regrow(&lowering->program->arena, (void **)&names->items, names->count,
                               &names->cap, sizeof kept)) {
        lowering->failed = true;
        return -1;
    }
    names->items[names->count] = kept;
    return (int)names->count++;
}

int lower_op_name(struct lowering *lowering, const struct host_op *op)
{
    if (op->numbered)
        return op->numbered - 1;
    return op->name ? lower_name(lowering, op->name) : -1;
}

static bool same_bytes(const void *a, const void *b, size_t size)
{
    return a == b || (a && b && memcmp(a, b, size) == 0);
}

static bool same_given(const struct given *a, const struct given *b)
{
    return a->bytes == b->bytes && a->roots == b->roots && a->root_count == b->root_count &&
           same_bytes(a->work, b->work, sizeof *a->work) &&
           same_bytes(a->jitter, b->jitter, sizeof *a->jitter) &&
           same_bytes(a->shares, b->shares, sizeof *a->shares);
}

void lower_give(struct lowering *lowering, struct op *op, struct given given)
{
    given.jitter = given.jitter ? given.jitter : &constant;
    given.work = given.work ? given.work : &no_work;
    for (int i = 0; i < LOWER_KEPT && lowering->kept[i]; i++)
        if (same_given(lowering->kept[i], &given)) {
            op->given = lowering->kept[i];
            return;
        }
    struct arena *arena = &lowering->program->arena;
    struct given *kept = ARENA_NEW(arena, struct given);
    struct work *work = lowering->ranks ? ARENA_NEW(arena, struct work) : NULL;
    if (!kept || (lowering->ranks && !work)) {
        lowering->failed = true;
        return;
    }
    *kept = given;
    if (work) /* an action's lives no longer than the next one */
        kept->work = memcpy(work, given.work, sizeof *work);
    lowering->kept[lowering->kept_next++ % LOWER_KEPT] = kept;
    op->given = kept;
}

void lower_given(struct lowering *lowering, struct op *op, const struct host_op *from)
{
    static const struct shares none = {0};
    bool action = lowering->ranks; /* these have neither jitter nor shares of their own */
    lower_give(lowering, op,
               (struct given){.jitter = action ? NULL : &from->jitter,
                              .shares = action ? &none : &from->shares,
                              .work = &from->work,
                              .bytes = from->bytes});
}

int lower_flag(struct lowering *lowering, const char *name)
{
    return intern(lowering, &lowering->flags, name);
}

static void add_access(struct lowering *lowering, struct op *op, int buffer, bool write)
{
    struct program *program = lowering->program;
    if (buffer > ACCESS_MOST_BUFFERS ||
        !arena_regrow(&program->arena, (void **)&program->accesses, program->access_count,
                      &program->access_cap, sizeof *program->accesses)) {
        lowering->failed = true;
        return;
    }
    program->accesses[program->access_count++] =
        (struct access){buffer & ACCESS_MOST_BUFFERS, write};
    op->access_count++;
}

void lower_accesses(struct lowering *lowering, struct op *op, int rank,
                    const struct index_list *reads, const struct index_list *writes)
{
    op->access_first = (int)lowering->program->access_count;
    lower_more_accesses(lowering, op, rank, reads, writes);
}

static int listed_buffer(const struct plan *plan, int rank, const struct index_list *list, size_t i)
{
    if (list->ranks && list->ranks[i] > 0)
        rank = list->ranks[i] - 1;
    return lower_first_buffer(plan, rank) + list->items[i];
}

void lower_more_accesses(struct lowering *lowering, struct op *op, int rank,
                         const struct index_list *reads, const struct index_list *writes)
{
    for (size_t i = 0; i < reads->count; i++)
        add_access(lowering, op, listed_buffer(lowering->plan, rank, reads, i), false);
    for (size_t i = 0; i < writes->count; i++)
        add_access(lowering, op, listed_buffer(lowering->plan, rank, writes, i), true);
}

/* Flags stay set, so only the first use can block. */
static void meet(struct lowering *lowering, enum op_kind kind, const char *side, struct mark mark)
{
    int flag = lower_flag(lowering, side);
    struct op *op = lower_emit(lowering, kind, mark);
    op->object = flag;
    op->distance = -1;
}

/* A direction of a link: its sender and its receiver set a flag each and await that of the other. */
static void meet_peer(struct lowering *lowering, enum op_kind kind, int comm, int rank,
                      const struct p2p_part *part)
{
    bool sender = part->send == (kind == OP_SIGNAL);
    meet(lowering, kind,
         arena_printf(&lowering->program->arena, "first use of link %s %d>%d by its %s",
                      lowering->plan->comms[comm].name, part->send ? rank : part->peer,
                      part->send ? part->peer : rank, sender ? "sender" : "receiver"),
         part->mark);
}

/* A communicator: a thread of each member sets a flag and awaits those of the others. */
static void meet_members(struct lowering *lowering, enum op_kind kind, int comm, int rank,
                         struct mark mark)
{
    const struct comm_desc *desc = &lowering->program->comms[comm];
    for (int i = 0; i < desc->count; i++)
        if ((desc->members[i] == rank) == (kind == OP_SIGNAL))
            meet(lowering, kind,
                 arena_printf(&lowering->program->arena, "first collective of %s by rank %d",
                              desc->name, desc->members[i]),
                 mark);
}

static void meet_part(struct lowering *lowering, enum op_kind kind, const struct first_use *use,
                      const struct p2p_part *part)
{
    int comm = part->comm >= 0 ? part->comm : use->comm;
    int rank = part->device > 0 ? part->device - 1 : use->rank;
    if (part->is_collective)
        meet_members(lowering, kind, comm, rank, part->mark);
    else
        meet_peer(lowering, kind, comm, rank, part);
}

void lower_first_use(struct lowering *lowering, const struct first_use *use)
{
    static const enum op_kind passes[] = {OP_SIGNAL, OP_AWAIT};
    for (int pass = 0; lowering->plan->machine.first_use_blocks && pass < 2; pass++) {
        for (size_t i = 0; i < use->count; i++)
            meet_part(lowering, passes[pass], use, &use->parts[i]);
        if (use->count == 0)
            meet_members(lowering, passes[pass], use->comm, use->rank, use->mark);
    }
}

int lower_context_lock(const struct lowering *lowering, int rank)
{
    int per_rank = (int)lowering->plan->locks.count + 1;
    return rank * per_rank + per_rank - 1;
}

void lower_load_begin(struct lowering *lowering, int rank, int name, struct mark mark)
{
    if (!lowering->plan->machine.lazy_load)
        return;
    struct op *op = lower_emit(lowering, OP_LOCK, mark);
    op->object = lower_context_lock(lowering, rank);
    op = lower_emit(lowering, OP_SYNC, mark);
    op->sync = SYNC_LOAD;
    op->device = (int16_t)rank;
    op->name = name;
    op->object = name;
}

void lower_load_end(struct lowering *lowering, int rank, struct mark mark)
{
    if (lowering->plan->machine.lazy_load)
        lower_emit(lowering, OP_UNLOCK, mark)->object = lower_context_lock(lowering, rank);
}

void lower_launched(struct lowering *lowering, int stream, struct mark mark)
{
    if (!lowering->plan->machine.launch_blocking)
        return;
    struct op *op = lower_emit(lowering, OP_SYNC, mark);
    op->sync = SYNC_STREAM;
    op->stream = stream;
    op->device = (int16_t)lowering->program->streams[stream].rank;
}

void lower_allocating(struct lowering *lowering, int rank, struct mark mark)
{
    static const enum sync_kind syncs[] = {SYNC_RETRY, SYNC_DEVICE};
    for (int i = 0; lowering->plan->machine.alloc_may_sync && i < 2; i++) {
        struct op *op = lower_emit(lowering, OP_SYNC, mark);
        op->sync = syncs[i];
        op->device = (int16_t)rank;
    }
}

/* ---- derived tables -------------------------------------------------------------------------- */

static enum status name_locks(struct lowering *lowering)
{
    struct program *program = lowering->program;
    size_t per_rank = lowering->plan->locks.count + 1, count = (size_t)program->ranks * per_rank;
    program->lock_count = (int)count;
    program->lock_names = ARENA_ARRAY(&program->arena, count, const char *);
    program->lock_rank = ARENA_ARRAY(&program->arena, count, int);
    if (!program->lock_names || !program->lock_rank)
        return diag_no_memory(lowering->diag);
    for (size_t i = 0; i < count; i++) {
        bool context = i % per_rank == per_rank - 1;
        program->lock_rank[i] = (int)(i / per_rank);
        program->lock_names[i] =
            context ? "the context lock" : lowering->plan->locks.items[i % per_rank];
    }
    return STATUS_OK;
}

static enum status name_flags(struct lowering *lowering)
{
    struct program *program = lowering->program;
    int tasks = program->flag_families; /* pipeline form: these have their names already */
    const char **names = ARENA_ARRAY(&program->arena, lowering->flags.count, const char *);
    if (!names)
        return diag_no_memory(lowering->diag);
    for (int i = 0; i < (int)lowering->flags.count; i++)
        names[i] = i < tasks ? program->flag_names[i] : lowering->flags.items[i];
    program->flag_names = names;
    program->flag_families = (int)lowering->flags.count;
    program->kernel_count = (int)program->names.count;
    return STATUS_OK;
}

static enum status list_buffers(struct lowering *lowering)
{
    struct program *program = lowering->program;
    const struct plan *plan = lowering->plan;
    bool owned = plan->buffer_count > 0 && plan->buffers[0].owner > 0;
    size_t count = (owned ? 1 : (size_t)program->ranks) * plan->buffer_count;
    program->buffer_count = (int)count;
    program->buffers = ARENA_ARRAY(&program->arena, count, struct buffer_desc);
    bool *outside = ARENA_ARRAY(&program->arena, plan->buffer_count + 1, bool);
    if (!program->buffers || !outside)
        return diag_no_memory(lowering->diag);
    outside_find(plan, outside);
    for (size_t i = 0; i < count; i++) {
        const struct buffer *from = &plan->buffers[i % plan->buffer_count];
        int rank = owned ? from->owner - 1 : (int)(i / plan->buffer_count);
        program->buffers[i] = (struct buffer_desc){.rank = rank,
                                                   .plan_buffer = (int)(i % plan->buffer_count),
                                                   .name = from->name,
                                                   .scope = from->scope,
                                                   .bytes = from->bytes,
                                                   .initialised = outside[i % plan->buffer_count]};
        if (i < plan->buffer_count)
            *(from->scope == SCOPE_ITERATION ? &program->iteration_bytes
                                             : &program->shared_bytes) += from->bytes;
    }
    return STATUS_OK;
}

/* No two streams of the rank share a queue, which then has no effect. */
static void own_hw_queues(struct program *program, int rank)
{
    for (int k = program->rank_first[rank]; k < program->rank_first[rank + 1]; k++) {
        struct stream_desc *stream = &program->streams[program->rank_streams[k]];
        stream->hw_queue = -1;
        program->hw_cap -= stream->cap;
    }
}

/* The hardware queue that the plan names for a stream, or -1. */
static int named_hw_queue(const struct plan *plan, int stream)
{
    const struct stream_spec *spec = plan_stream_spec(plan, stream);
    return spec ? spec->hw_queue : -1;
}

/* Streams whose queue the plan does not name are dealt out in turn, in the order of their first use. */
static void assign_hw_queues(struct lowering *lowering)
{
    struct program *program = lowering->program;
    int queues = lowering->plan->machine.hw_queues;
    for (int rank = 0; queues && rank < program->ranks; rank++) {
        int first = program->rank_first[rank], streams = program->rank_first[rank + 1] - first;
        bool named = false;
        for (int k = 0, dealt = 0; k < streams; k++) {
            struct stream_desc *stream = &program->streams[program->rank_streams[first + k]];
            int queue = named_hw_queue(lowering->plan, stream->plan_stream);
            named |= queue >= 0;
            stream->hw_queue = rank * queues + (queue >= 0 ? queue : dealt++ % queues);
            program->hw_cap += stream->cap;
        }
        if (named || streams > queues)
            program->hw_queue_count = program->ranks * queues;
        else
            own_hw_queues(program, rank);
    }
}

/* Ranks of one device share its residency slots. */
static enum status find_devices(struct lowering *lowering)
{
    struct program *program = lowering->program;
    const struct plan *plan = lowering->plan;
    const int *shared = plan->machine.share_device;
    program->device = ARENA_ARRAY(&program->arena, (size_t)program->ranks, int);
    program->device_next = ARENA_ARRAY(&program->arena, (size_t)program->ranks, int);
    if (!program->device || !program->device_next)
        return diag_no_memory(lowering->diag);
    for (int rank = 0; rank < program->ranks; rank++) {
        program->device[rank] = shared && rank < plan->ranks ? shared[rank] : rank;
        program->device_next[rank] = -1;
    }
    for (int rank = 0; rank < program->ranks; rank++) {
        int last = program->device[rank];
        while (program->device_next[last] >= 0)
            last = program->device_next[last];
        if (last != rank)
            program->device_next[last] = rank;
    }
    return STATUS_OK;
}

/* `a`'s and `b`'s components become one; false: they are. */
static bool join_fellows(struct program *program, int a, int b)
{
    int *first = &program->fellows[a], *second = &program->fellows[b];
    bool joined = *first != *second;
    *first = *second = *first < *second ? *first : *second;
    return joined;
}

/* Without a communicator between them a rank could run ahead of another on its device without end, and
   no search would come to its end. */
static enum status check_devices(const struct lowering *lowering)
{
    const struct program *program = lowering->program;
    for (int rank = 0; rank < program->ranks; rank++)
        if (program->fellows[rank] != program->fellows[program->device[rank]])
            return diag_error_at(
                lowering->diag, lowering->plan->file, NULL,
                lowering->plan->machine.share_device_mark,
                "found ranks %d and %d on one device, which no communicator connects, expected a "
                "collective or message that both take part in, directly or through others: else "
                "one "
                "runs ahead of the other without end",
                program->device[rank], rank);
    return STATUS_OK;
}

/* Components of ranks connected by communicators; in host programs flags and queues may connect any
   two. Ranks of different components share only the answer of the data loader. */
static enum status find_fellows(struct lowering *lowering)
{
    struct program *program = lowering->program;
    program->fellows = ARENA_ARRAY(&program->arena, (size_t)program->ranks, int);
    if (!program->fellows)
        return diag_no_memory(lowering->diag);
    for (int rank = 0; rank < program->ranks; rank++)
        program->fellows[rank] = program->tasks ? rank : 0;
    for (bool again = program->tasks > 0; again;) {
        again = false;
        for (int c = 0; c < program->comm_count; c++)
            for (int m = 1; m < program->comms[c].count; m++)
                again |= join_fellows(program, program->comms[c].members[m - 1],
                                      program->comms[c].members[m]);
    }
    return check_devices(lowering);
}

/* For `part`: ranks outside the component have no data. */
static void leave_out_others(struct program *program)
{
    int part = program->options.part - 1;
    for (int rank = 0; program->tasks && part >= 0 && rank < program->ranks; rank++)
        if (program->fellows[rank] != program->fellows[part])
            program->ends[rank] = 0;
}

static bool shares_comm(const struct program *program, int rank)
{
    for (int c = 0; c < program->comm_count; c++)
        for (int m = 0; program->comms[c].count > 1 && m < program->comms[c].count; m++)
            if (program->comms[c].members[m] == rank)
                return true;
    return false;
}

/* Any thread but a driver may fail. The data of a rank end early only if it has peers, and a rank
   dies, with those in its process, only if there are others. */
static enum status list_faults(struct lowering *lowering)
{
    struct program *program = lowering->program;
    if (!program->options.faults)
        return STATUS_OK;
    size_t most = (size_t)program->thread_count + 2 * (size_t)program->ranks;
    program->faults = ARENA_ARRAY(&program->arena, most, struct fault);
    if (!program->faults)
        return diag_no_memory(lowering->diag);
    struct fault *next = program->faults;
    for (int t = 0; t < program->thread_count; t++)
        if (program->threads[t].kind != THREAD_DRIVER)
            *next++ = (struct fault){FAULT_TASK, t};
    for (int rank = 0; program->tasks && rank < program->ranks; rank++)
        if (shares_comm(program, rank))
            *next++ = (struct fault){FAULT_DATA, rank};
    bool others = false;
    for (int rank = 1; rank < program->ranks; rank++)
        others |= !program_same_process(program, 0, rank);
    for (int rank = 0; others && rank < program->ranks; rank++)
        if (!program->process || program->process[rank] == rank)
            *next++ = (struct fault){FAULT_RANK, rank};
    program->fault_count = (int)(next - program->faults);
    return STATUS_OK;
}

/* Counting sort by rank. */
static enum status list_streams(struct lowering *lowering)
{
    struct program *program = lowering->program;
    size_t ranks = (size_t)program->ranks;
    program->rank_first = ARENA_ARRAY(&program->arena, ranks + 2, int);
    program->rank_streams = ARENA_ARRAY(&program->arena, (size_t)program->stream_count + 1, int);
    if (!program->rank_first || !program->rank_streams)
        return diag_no_memory(lowering->diag);
    int *next = program->rank_first + 1; /* [rank]: where its next stream goes; at last its end */
    for (int s = 0; s < program->stream_count; s++)
        next[program->streams[s].rank + 1]++;
    for (size_t rank = 0; rank < ranks; rank++)
        next[rank + 1] += next[rank];
    for (int s = 0; s < program->stream_count; s++)
        program->rank_streams[next[program->streams[s].rank]++] = s;
    return STATUS_OK;
}

/* Each family's waiters lose their repetitions: a stream may have several waits for one event. */
static void unite_waiters(struct program *program, int *seen)
{
    int *first = program->waiter_first, kept = 0;
    for (int family = 0; family < program->event_families; family++) {
        int from = first[family];
        first[family] = kept;
        for (int i = from; i < first[family + 1]; i++) {
            int stream = program->waiters[i];
            if (seen[stream] != family + 1)
                program->waiters[kept++] = stream;
            seen[stream] = family + 1;
        }
    }
    first[program->event_families] = kept;
}

/* The streams that wait for each family of events: a counting sort. */
static enum status list_waiters(struct lowering *lowering)
{
    struct program *program = lowering->program;
    size_t families = (size_t)program->event_families, count = 0;
    for (size_t i = 0; i < program->op_count; i++)
        count += program->ops[i].kind == OP_WAIT;
    program->waiter_first = ARENA_ARRAY(&program->arena, families + 2, int);
    program->waiters = ARENA_ARRAY(&program->arena, count + 1, int);
    int *seen = ARENA_ARRAY(&program->arena, (size_t)program->stream_count + 1, int);
    if (!program->waiter_first || !program->waiters || !seen)
        return diag_no_memory(lowering->diag);
    int *next = program->waiter_first + 1;
    for (size_t i = 0; i < program->op_count; i++)
        if (program->ops[i].kind == OP_WAIT)
            next[program->ops[i].object + 1]++;
    for (size_t family = 0; family < families; family++)
        next[family + 1] += next[family];
    for (size_t i = 0; i < program->op_count; i++)
        if (program->ops[i].kind == OP_WAIT)
            program->waiters[next[program->ops[i].object]++] = program->ops[i].stream;
    unite_waiters(program, seen);
    return STATUS_OK;
}

static enum status list_agents(struct lowering *lowering)
{
    struct program *program = lowering->program;
    bool watched = program->options.faults && program->plan->on_failure == ON_FAILURE_ABORT;
    int most = 1 + program->thread_count + program->stream_count + 2 * program->comm_count +
               program->fault_count;
    program->agents = ARENA_ARRAY(&program->arena, (size_t)most, struct agent);
    if (!program->agents)
        return diag_no_memory(lowering->diag);
    struct agent *next = program->agents;
    *next++ = (struct agent){AGENT_DATA, 0, -1};
    for (int t = 0; t < program->thread_count; t++)
        *next++ = (struct agent){AGENT_THREAD, t, program->threads[t].rank};
    for (int s = 0; s < program->stream_count; s++)
        *next++ = (struct agent){AGENT_STREAM, s, program->streams[s].rank};
    for (int c = 0; c < program->comm_count; c++)
        *next++ = (struct agent){AGENT_COMM, c, -1};
    for (int f = 0; f < program->fault_count; f++)
        *next++ = (struct agent){AGENT_FAULT, f, -1};
    for (int c = 0; watched && c < program->comm_count; c++)
        if (program->comms[c].count > 1)
            *next++ = (struct agent){AGENT_WATCHDOG, c, -1};
    program->agent_count = (int)(next - program->agents);
    return STATUS_OK;
}

int program_thread_agent(const struct program *program, int thread)
{
    (void)program;
    return 1 + thread;
}

int program_stream_agent(const struct program *program, int stream)
{
    return 1 + program->thread_count + stream;
}

int program_comm_agent(const struct program *program, int comm)
{
    return 1 + program->thread_count + program->stream_count + comm;
}

bool program_op_crosses(const struct program *program, const struct op *op, int rank)
{
    bool crosses = op->stream >= 0 && program->streams[op->stream].rank != rank;
    if (op_operand(op->kind) == OPERAND_EVENT && op->object >= 0 && op->sync != SYNC_LOAD)
        crosses |= program->event_rank[op->object] != rank;
    crosses |= op->device >= 0 && op->device != rank;
    if (op_operand(op->kind) == OPERAND_BUFFER)
        crosses |= program->buffers[op->object].rank != rank;
    for (int k = 0; k < op->access_count; k++)
        crosses |= program->buffers[program->accesses[op->access_first + k].buffer].rank != rank;
    return crosses;
}

/* In a pipeline, and in what rank programs become, each rank has its own. */
static void find_crossings(struct program *program)
{
    bool asked = program->plan->form == FORM_THREADS && program->ranks > 1 && !program->owned_plan;
    for (size_t b = 0; asked && b < program->body_count; b++) {
        const struct body *body = &program->bodies[b];
        int rank = program->threads[body->thread].rank;
        for (int i = 0; i < body->count && !program->is_crossed; i++)
            program->is_crossed = program_op_crosses(program, &program->ops[body->first + i], rank);
    }
}

static void join_process(struct program *program, int a, int b)
{
    int low = program->process[a], high = program->process[b];
    for (int rank = 0; low != high && rank < program->ranks; rank++)
        if (program->process[rank] == low || program->process[rank] == high)
            program->process[rank] = low < high ? low : high;
}

/* The ranks of whose devices, events and buffers it makes use. */
static void join_used(struct program *program, const struct op *op, int rank)
{
    if (op->stream >= 0)
        join_process(program, rank, program->streams[op->stream].rank);
    if (op_operand(op->kind) == OPERAND_EVENT && op->object >= 0 && op->sync != SYNC_LOAD)
        join_process(program, rank, program->event_rank[op->object]);
    if (op->device >= 0)
        join_process(program, rank, op->device);
    for (int k = 0; k < op->access_count; k++)
        join_process(program, rank,
                     program->buffers[program->accesses[op->access_first + k].buffer].rank);
}

static enum status find_processes(struct lowering *lowering)
{
    struct program *program = lowering->program;
    if (!program->is_crossed)
        return STATUS_OK;
    program->process = ARENA_ARRAY(&program->arena, (size_t)program->ranks, int);
    if (!program->process)
        return diag_no_memory(lowering->diag);
    for (int rank = 0; rank < program->ranks; rank++)
        program->process[rank] = rank;
    for (size_t b = 0; b < program->body_count; b++) {
        const struct body *body = &program->bodies[b];
        for (int i = 0; i < body->count; i++)
            join_used(program, &program->ops[body->first + i], program->threads[body->thread].rank);
    }
    return STATUS_OK;
}

static const char *with_rank(struct lowering *lowering, const char *before, int rank,
                             const char *name)
{
    const char *full =
        arena_printf(&lowering->program->arena, "%sr%d.%s", before, rank, name + strlen(before));
    lowering->failed |= !full;
    return full ? full : name;
}

/* An object of a rank is named with the rank where the thread is another rank's. */
static enum status name_crossed(struct lowering *lowering)
{
    struct program *program = lowering->program;
    static const char event[] = "event ";
    for (int s = 0; s < program->stream_count; s++) {
        struct stream_desc *stream = &program->streams[s];
        stream->full_name = program->is_crossed
                                ? with_rank(lowering, "", stream->rank, stream->name)
                                : stream->name;
    }
    for (int b = 0; program->is_crossed && b < program->buffer_count; b++)
        program->buffers[b].name =
            with_rank(lowering, "", program->buffers[b].rank, program->buffers[b].name);
    for (int e = 0; program->is_crossed && e < program->event_families; e++)
        if (strncmp(program->event_names[e], event, strlen(event)) == 0)
            program->event_names[e] =
                with_rank(lowering, event, program->event_rank[e], program->event_names[e]);
    return lowering->failed ? diag_no_memory(lowering->diag) : STATUS_OK;
}

/* Which agent performs an operation's accesses: the stream it runs on, else the thread. */
static int access_agent(const struct program *program, const struct op *op, int thread)
{
    return op->stream >= 0 ? program_stream_agent(program, op->stream)
                           : program_thread_agent(program, thread);
}

static void note_record(struct program *program, struct record record)
{
    program->records[program->record_count++] = record;
}

static int compare_records(const void *a, const void *b)
{
    const struct record *x = a, *y = b;
    if (x->buffer != y->buffer)
        return x->buffer < y->buffer ? -1 : 1;
    if (x->agent != y->agent)
        return x->agent < y->agent ? -1 : 1;
    return x->alloc == y->alloc ? (int)x->write - (int)y->write : (int)x->alloc - (int)y->alloc;
}

/* Sorted records, each once. */
static void remove_twins(struct program *program)
{
    struct record *records = program->records;
    int kept = 0;
    for (int i = 0; i < program->record_count; i++)
        if (i == 0 || compare_records(&records[kept - 1], &records[i]) != 0)
            records[kept++] = records[i];
    program->record_count = kept;
}

/* Every body has one thread that executes it. */
static void assign_bodies(struct program *program)
{
    for (size_t b = 0; program->tasks && b < program->body_count; b++)
        program->bodies[b].thread = program->worker[b];
    for (int t = 0; t < program->thread_count; t++)
        if (program->threads[t].kind == THREAD_HOST)
            program->bodies[program->threads[t].body].thread = t;
    for (size_t i = 0; i < program->op_count; i++)
        if (program->ops[i].kind == OP_CALLBACK)
            program->bodies[program->ops[i].object].thread = program->ops[i].callback;
}

static void note_accesses(struct program *program)
{
    for (size_t b = 0; b < program->body_count; b++) {
        const struct body *body = &program->bodies[b];
        for (int i = 0; i < body->count; i++) {
            const struct op *op = &program->ops[body->first + i];
            for (int k = 0; k < op->access_count; k++) {
                const struct access *access = &program->accesses[op->access_first + k];
                note_record(program,
                            (struct record){.buffer = access->buffer,
                                            .agent = access_agent(program, op, body->thread),
                                            .write = access->write});
            }
        }
    }
}

static void note_allocations(struct program *program)
{
    for (size_t i = 0; i < program->op_count; i++) {
        const struct op *op = &program->ops[i];
        if (op->kind == OP_ALLOC)
            note_record(program, (struct record){.buffer = op->object,
                                                 .agent = program_stream_agent(program, op->stream),
                                                 .alloc = true});
    }
}

/* Into `to`, by buffer, then by the rest: a buffer has few. `first`: zeros, one a buffer and two more. */
static void sort_by_buffer(const struct program *program, const struct record *from,
                           struct record *to, int *first)
{
    for (int i = 0; i < program->record_count; i++)
        first[from[i].buffer + 2]++;
    for (int b = 0; b < program->buffer_count; b++)
        first[b + 2] += first[b + 1];
    for (int i = 0; i < program->record_count; i++)
        to[first[from[i].buffer + 1]++] = from[i];
    for (int b = 0; b < program->buffer_count; b++)
        if (first[b + 1] - first[b] > 1)
            qsort(to + first[b], (size_t)(first[b + 1] - first[b]), sizeof *to, compare_records);
}

/* Shared buffers come first, then those of one iteration. */
static void place_records(struct program *program, const struct record *from)
{
    int count = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < program->record_count; i++) {
            struct buffer_desc *buffer = &program->buffers[from[i].buffer];
            if ((buffer->scope == SCOPE_ITERATION && program->tasks) != (pass == 1))
                continue;
            if (buffer->record_count++ == 0)
                buffer->record_first = count;
            program->records[count++] = from[i];
        }
        if (pass == 0)
            program->shared_records = count;
    }
    program->period_records = count - program->shared_records;
}

static size_t most_records(const struct program *program)
{
    size_t count = 0;
    for (size_t b = 0; b < program->body_count; b++)
        for (int i = 0; i < program->bodies[b].count; i++)
            count += (size_t)program->ops[program->bodies[b].first + i].access_count;
    for (size_t i = 0; i < program->op_count; i++)
        count += program->ops[i].kind == OP_ALLOC;
    return count;
}

/* Every possible (buffer, agent, read, write or allocation) gets one bit; shared buffers come first, then those
   of one iteration, which are repeated for each iteration of the window. */
static enum status list_records(struct lowering *lowering)
{
    struct program *program = lowering->program;
    for (size_t i = 0; i < program->op_count; i++)
        if (program->ops[i].kind == OP_ALLOC)
            program->buffers[program->ops[i].object].allocated = true;
    size_t most = most_records(program) + 1;
    struct record *noted = malloc(most * sizeof *noted), *sorted = malloc(most * sizeof *sorted);
    int *first = calloc((size_t)program->buffer_count + 2, sizeof *first);
    bool good = noted && sorted && first;
    if (good) {
        program->records = noted;
        note_accesses(program);
        if (program->record_count > 0)
            note_allocations(program);
        sort_by_buffer(program, noted, sorted, first);
        program->records = sorted;
        remove_twins(program);
        size_t count = (size_t)program->record_count + 1;
        program->records = ARENA_ARRAY(&program->arena, count, struct record);
        good = program->records != NULL;
    }
    if (good)
        place_records(program, sorted);
    free(noted);
    free(sorted);
    free(first);
    return good ? STATUS_OK : diag_no_memory(lowering->diag);
}

/* ---- building -------------------------------------------------------------------------------- */

static enum status fill_options(struct program *program, const struct plan *plan,
                                const struct program_options *options, struct diag *diag)
{
    program->options = *options;
    program->plan = plan;
    program->ranks = options->ranks ? options->ranks : plan->ranks;
    program->driver = plan->form == FORM_PIPELINE ? options->driver : DRIVER_NONE;
    if (plan->form == FORM_PIPELINE && options->driver == DRIVER_NONE)
        program->driver = DRIVER_CLOCK;
    if (plan->form != FORM_PIPELINE && options->ranks && options->ranks != plan->ranks)
        return diag_error(
            diag, STATUS_USAGE,
            "%s: found --ranks %d for a plan that names its %d ranks one by one; only a "
            "pipeline plan can be run on another number of ranks",
            plan->file, options->ranks, plan->ranks);
    if (program->ranks < 1 || program->ranks > PLAN_MAX_RANKS)
        return diag_error(diag, STATUS_USAGE, "%s: found %d ranks, expected 1 to %d", plan->file,
                          program->ranks, PLAN_MAX_RANKS);
    if (!options->max_depth)
        program->options.max_depth = plan->pipeline.max_depth;
    return STATUS_OK;
}

/* The families of the plan's own events are equally many a rank, as are those of the legacy order. */
static enum status rank_events(struct lowering *lowering)
{
    struct program *program = lowering->program;
    int all = program->event_families, own = lowering->in_order ? lowering->first_implicit : all;
    program->event_rank = ARENA_ARRAY(&program->arena, (size_t)all + 1, int);
    if (!program->event_rank)
        return diag_no_memory(lowering->diag);
    for (int family = 0; family < own; family++)
        program->event_rank[family] = family / (own / program->ranks);
    for (int family = own; family < all; family++)
        program->event_rank[family] = (family - own) / ((all - own) / program->ranks);
    return STATUS_OK;
}

static enum status lower(struct lowering *lowering)
{
    enum status status = lower_comms(lowering);
    if (status == STATUS_OK)
        status = name_locks(lowering);
    if (status == STATUS_OK)
        status = list_buffers(lowering);
    if (status == STATUS_OK)
        status = lowering->plan->form == FORM_PIPELINE ? lower_pipeline(lowering)
                                                       : lower_threads(lowering);
    if (status == STATUS_OK && lowering->failed)
        status = diag_no_memory(lowering->diag);
    rank_programs_close(lowering->ranks); /* its lists take much memory */
    lowering->ranks = NULL;
    if (status == STATUS_OK)
        status = rank_events(lowering);
    if (status == STATUS_OK)
        status = name_flags(lowering);
    if (status == STATUS_OK)
        status = list_streams(lowering);
    if (status == STATUS_OK)
        status = list_waiters(lowering);
    if (status == STATUS_OK)
        assign_hw_queues(lowering);
    if (status == STATUS_OK)
        status = find_devices(lowering);
    if (status == STATUS_OK)
        status = find_fellows(lowering);
    if (status == STATUS_OK)
        leave_out_others(lowering->program);
    if (status == STATUS_OK) {
        assign_bodies(lowering->program);
        find_crossings(lowering->program);
        status = find_processes(lowering);
    }
    if (status == STATUS_OK)
        status = name_crossed(lowering);
    if (status == STATUS_OK)
        status = list_faults(lowering);
    if (status == STATUS_OK)
        status = list_agents(lowering);
    if (status == STATUS_OK)
        status = list_records(lowering);
    if (status == STATUS_OK)
        status = snapshot_build(lowering->program, lowering->diag);
    if (status == STATUS_OK)
        status = program_find_conflicts(lowering->program, lowering->diag);
    return status == STATUS_OK ? program_lay_out(lowering->program, lowering->diag) : status;
}

/* Rank programs first become host programs; the program then owns that plan. */
static enum status as_threads(const struct plan *plan, const struct program_options *options,
                              struct program *program, const struct plan **out,
                              struct rank_programs **ranks, struct diag *diag)
{
    if (plan->form != FORM_PROGRAMS) {
        *out = plan;
        return STATUS_OK;
    }
    struct plan *lowered = calloc(1, sizeof *lowered);
    if (!lowered)
        return diag_no_memory(diag);
    enum status status = rank_programs_open(plan, options->clocks, lowered, ranks, diag);
    if (status != STATUS_OK) {
        free(lowered);
        return status;
    }
    program->owned_plan = lowered;
    program->untracked = lowered->buffer_count == 0 && !options->clocks;
    *out = lowered;
    return STATUS_OK;
}

enum status program_build(const struct plan *plan, const struct program_options *options,
                          struct program **out, struct diag *diag)
{
    struct program *program = calloc(1, sizeof *program);
    if (!program)
        return diag_no_memory(diag);
    arena_init(&program->arena, plan->form == FORM_PROGRAMS ? 0 : MAX_PROGRAM_BYTES);
    struct lowering lowering = {.program = program, .diag = diag};
    enum status status = as_threads(plan, options, program, &lowering.plan, &lowering.ranks, diag);
    if (status == STATUS_OK)
        status = fill_options(program, lowering.plan, options, diag);
    if (status == STATUS_OK)
        status = lower(&lowering);
    rank_programs_close(lowering.ranks);
    if (status != STATUS_OK) {
        program_close(program);
        return status;
    }
    *out = program;
    return STATUS_OK;
}

void program_close(struct program *program)
{
    if (!program)
        return;
    if (program->owned_plan) {
        plan_fini(program->owned_plan);
        free(program->owned_plan);
    }
    arena_fini(&program->arena);
    free(program);
}

/* ---- words ----------------------------------------------------------------------------------- */

const char *program_agent_name(const struct program *program, int agent, char *buf, size_t cap)
{
    const struct agent *desc = &program->agents[agent];
    char rank[32] = "";
    if (program->ranks > 1 && desc->rank >= 0)
        snprintf(rank, sizeof rank, "rank %d ", desc->rank);
    switch (desc->kind) {
    case AGENT_DATA: snprintf(buf, cap, "data loader"); break;
    case AGENT_THREAD:
        if (program->threads[desc->index].kind == THREAD_DRIVER)
            snprintf(buf, cap, "%sdriver", rank);
        else
            snprintf(buf, cap, "%sthread %s", rank, program->threads[desc->index].name);
        break;
    case AGENT_STREAM:
        snprintf(buf, cap, "%sstream %s", rank, program->streams[desc->index].name);
        break;
    case AGENT_COMM: snprintf(buf, cap, "communicator %s", program->comms[desc->index].name); break;
    case AGENT_FAULT: snprintf(buf, cap, "fault"); break;
    case AGENT_WATCHDOG: snprintf(buf, cap, "watchdog"); break;
    }
    return buf;
}

const char *program_object_name(const struct program *program, const struct op *op)
{
    if (op->kind == OP_SYNC && op->sync != SYNC_EVENT)
        return NULL;
    switch (op_operand(op->kind)) {
    case OPERAND_EVENT: return program->event_names[op->object];
    case OPERAND_FLAG: return program->flag_names[op->object];
    case OPERAND_QUEUE: return program->queue_names[op->object];
    case OPERAND_LOCK: return program->lock_names[op->object];
    case OPERAND_BUFFER: return program->buffers[op->object].name;
    case OPERAND_BARRIER: /* lowered to flags */
    case OPERAND_TURN:
    case OPERAND_NONE: break;
    }
    return NULL;
}

const char *program_op_subject(const struct program *program, const struct op *op,
                               int64_t iteration, char *buf, size_t cap)
{
    if (op->task >= 0)
        snprintf(buf, cap, "%s(%" PRId64 ")", program->plan->pipeline.tasks[op->task].name,
                 iteration);
    else if (op->kind == OP_GROUP && op->part_count > 0) {
        const struct part *part = &program->parts[op->part_first];
        const struct channel *channel = &program->channels[part->channel];
        snprintf(buf, cap, "%s %s %s rank %d%s", part->send ? "send" : "receive",
                 program->names.items[part->tag], part->send ? "to" : "from",
                 part->send ? channel->to : channel->from, op->part_count > 1 ? " and others" : "");
    } else if (op->name >= 0)
        snprintf(buf, cap, "%s", program->names.items[op->name]);
    else
        snprintf(buf, cap, "%s", op_key(op->kind));
    if (op->iteration >= 0) {
        const size_t length = strlen(buf);
        snprintf(buf + length, cap - length, "(%d)", op->iteration);
    }
    return buf;
}

static void print_object(FILE *out, const char *name, const struct op *op, const char *task)
{
    enum op_operand kind = op_operand(op->kind);
    if (!task || (kind != OPERAND_EVENT && kind != OPERAND_FLAG))
        fprintf(out, " %s", name);
    else if (op->distance > 0)
        fprintf(out, " %s(i-%d)", name, op->distance);
    else
        fprintf(out, " %s(i)", name);
}

static void print_operands(const struct program *program, const struct op *op, FILE *out)
{
    const char *task =
        op->task >= 0 && op->distance >= 0 ? program->plan->pipeline.tasks[op->task].name : NULL;
    const char *object = program_object_name(program, op);
    char device[32] = "device";
    if (program->is_crossed && op->device >= 0)
        snprintf(device, sizeof device, "device of rank %d", op->device);
    if (object)
        print_object(out, object, op, task);
    else if (op->kind == OP_SYNC)
        fprintf(out, " %s",
                op->sync == SYNC_DEVICE  ? device
                : op->sync == SYNC_LOAD  ? "load"
                : op->sync == SYNC_RETRY ? "if memory lacks:"
                                         : "stream");
    else if (op->name >= 0)
        fprintf(out, " %s%s", program->names.items[op->name], task ? "(i)" : "");
    if (op_operand(op->kind) == OPERAND_TURN && op->ticket >= 0)
        fprintf(out, " %d", op->ticket);
    for (int i = 0; i < op->part_count; i++) {
        const struct part *part = &program->parts[op->part_first + i];
        const struct channel *channel = &program->channels[part->channel];
        fprintf(out, " %s %s %s %d", part->send ? "send" : "recv", program->names.items[part->tag],
                part->send ? "->" : "<-", part->send ? channel->to : channel->from);
    }
}

static void print_op(const struct program *program, const struct op *op, FILE *out)
{
    fputs(op_key(op->kind), out);
    print_operands(program, op, out);
    if (op->comm >= 0)
        fprintf(out, " comm %s", program->comms[op->comm].name);
    if (op->stream >= 0)
        fprintf(out, " on %s", program->streams[op->stream].full_name);
    if (op->time_ns) {
        char time[UNITS_TEXT];
        units_print_time(op->time_ns, time);
        fprintf(out, " %s", time);
    }
    for (int i = 0; i < op->access_count; i++) {
        const struct access *access = &program->accesses[op->access_first + i];
        fprintf(out, " %s %s", access->write ? "writes" : "reads",
                program->buffers[access->buffer].name);
    }
    fputs(op->free ? "\n" : "  # order can matter\n", out);
}

/* The steps of a callback or of a kernel. */
static void print_steps(const struct program *program, int index, FILE *out)
{
    const struct body *body = &program->bodies[index];
    for (int i = 0; i < body->count; i++) {
        fputs("      ", out);
        print_op(program, &program->ops[body->first + i], out);
    }
}

static void print_body(const struct program *program, int index, FILE *out)
{
    const struct body *body = &program->bodies[index];
    for (int i = 0; i < body->count; i++) {
        const struct op *op = &program->ops[body->first + i];
        fputs("    ", out);
        print_op(program, op, out);
        if (op->kind == OP_CALLBACK)
            print_steps(program, op->object, out);
    }
}

static void print_order(const struct program *program, int rank, FILE *out)
{
    const struct task *tasks = program->plan->pipeline.tasks;
    fprintf(out, "  driver %s, ", driver_key(program->driver));
    if (program->driver == DRIVER_CLOCK)
        fprintf(out, "depth %d", program->depth);
    else
        fprintf(out, "max_depth %d", program->depth);
    fprintf(out, ", %d slots, enqueue order", program->slots);
    for (int k = 0; k < program->tasks; k++)
        fprintf(out, "%s %s", k ? "," : "", tasks[program->order[rank][k]].name);
    fputc('\n', out);
}

enum status program_print(const struct program *program, FILE *out, struct diag *diag)
{
    for (int rank = 0; rank < program->ranks; rank++) {
        fprintf(out, "rank %d\n", rank);
        if (program->tasks)
            print_order(program, rank, out);
        for (int t = 0; t < program->thread_count; t++) {
            const struct thread_desc *thread = &program->threads[t];
            if (thread->rank != rank || thread->kind != THREAD_HOST)
                continue;
            fprintf(out, "  thread %s\n", thread->name);
            print_body(program, thread->body, out);
        }
        for (int task = 0; task < program->tasks; task++) {
            int index = rank * program->tasks + task;
            fprintf(out, "  task %s, thread %s\n", program->plan->pipeline.tasks[task].name,
                    program->threads[program->worker[index]].name);
            print_body(program, index, out);
        }
    }
    return diag_flush(diag, out, "the lowered program");
}
