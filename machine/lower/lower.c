/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower.c - see lower.h: the builders of a program's tables, which all forms of plans share.
 */
#include "lower.h"

#include <assert.h>
#include <string.h>

#include "base/array.h"
#include "base/sort.h"

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

enum status lower_failed(const struct lowering *lowering)
{
    assert(lowering->failed);
    return lowering->program->op_count < PLAN_MAX_LOWERED ? diag_no_memory(lowering->diag)
                                                          : lower_too_large(lowering);
}

enum status lower_too_large(const struct lowering *lowering)
{
    return diag_error(lowering->diag, STATUS_INPUT,
                      "%s: the plan needs more than %d machine operations, expected a smaller plan",
                      lowering->plan->file, PLAN_MAX_LOWERED);
}

struct op *lower_emit(struct lowering *lowering, enum op_kind kind, struct mark mark)
{
    struct program *program = lowering->program;
    if (program->op_count >= PLAN_MAX_LOWERED ||
        !ARENA_GROW(&program->arena, program->ops, program->op_count, program->op_cap)) {
        lowering->failed = true;
        return &program->ops[0]; /* overwritten, never used: the build fails */
    }
    struct op *op = &program->ops[program->op_count++];
    *op = (struct op){.kind = kind,
                      .name = -1,
                      .at = lowering->at,
                      .task = -1,
                      .stream = -1,
                      .object = -1,
                      .comm = -1,
                      .device = -1,
                      .iteration = lowering->iteration - 1,
                      .ticket = -1,
                      .given = &nothing,
                      .mark = mark};
    if (op_operand(kind) == OPERAND_FLAG) {
        op->flag_rule = op_takes(kind) ? FLAG_AT_LEAST : FLAG_SETS;
        op->value = 1;
    }
    return op;
}

int lower_body_begin(struct lowering *lowering)
{
    struct program *program = lowering->program;
    if (!ARENA_GROW(&program->arena, program->bodies, program->body_count, program->body_cap)) {
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
    if (!desc.name || !ARENA_GROW(&program->arena, program->threads, lowering->thread_total,
                                  lowering->thread_cap)) {
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
    const struct stream_desc *streams = program->streams;
    const int key[] = {rank, plan_stream};
    const uint64_t hash = hash_bytes(key, sizeof key);
    const uint32_t found =
        TABLE_FIND(&lowering->streams, hash, i,
                   streams[i].rank == rank && streams[i].plan_stream == plan_stream);
    if (found != TABLE_NONE)
        return (int)found;
    if (!ARENA_GROW(&program->arena, program->streams, lowering->stream_total,
                    lowering->stream_cap) ||
        !table_add_in(&lowering->streams, &program->arena, hash, lowering->stream_total)) {
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
                                 .eager_bytes = from->eager_bytes,
                                 .time_limit_ns = from->time_limit_ns};
        program->member_count += to->count;
        if (from->members && from->members[from->member_count - 1] >= program->ranks)
            return plan_error_at(plan, lowering->diag, from->mark,
                                 "found rank %d in communicator %s, expected ranks below %d",
                                 from->members[from->member_count - 1], from->name, program->ranks);
    }
    return STATUS_OK;
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
    const struct channel *channels = program->channels;
    const int key[] = {comm, from, to};
    const uint64_t hash = hash_bytes(key, sizeof key);
    const uint32_t found =
        TABLE_FIND(&lowering->channels, hash, i,
                   channels[i].comm == comm && channels[i].from == from && channels[i].to == to);
    if (found != TABLE_NONE) {
        program->channels[found].cap++;
        return (int)found;
    }
    if (!ARENA_GROW(&program->arena, program->channels, lowering->channel_total,
                    lowering->channel_cap) ||
        !table_add_in(&lowering->channels, &program->arena, hash, lowering->channel_total)) {
        lowering->failed = true;
        return 0;
    }
    program->channels[lowering->channel_total++] = (struct channel){comm, from, to, 1};
    program->channel_count = (int)lowering->channel_total;
    return program->channel_count - 1;
}

static int lower_intern(struct lowering *lowering, struct names *names, const char *name)
{
    int index = name ? names_intern(names, &lowering->program->arena, name) : -1;
    if (index < 0)
        lowering->failed = true;
    return index < 0 ? 0 : index;
}

int lower_name(struct lowering *lowering, const char *name)
{
    return lower_intern(lowering, &lowering->program->names, name);
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
    if (!kept || !ARENA_REGROW(&lowering->program->arena, names->items, names->count, names->cap)) {
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

/* By member: one of them is a copy, whose padding is anything. */
static bool same_work(const struct work *a, const struct work *b)
{
    return a == b ||
           (a->kind == b->kind && a->direction == b->direction && a->pageable == b->pageable &&
            a->collective == b->collective && a->root == b->root && a->comm == b->comm &&
            a->peer == b->peer && a->tag == b->tag && a->bytes == b->bytes && a->m == b->m &&
            a->n == b->n && a->k == b->k && a->rows == b->rows && a->dim == b->dim &&
            a->elements == b->elements && a->element == b->element && a->dtype == b->dtype &&
            a->time_ns == b->time_ns);
}

static bool lower_same_given(const struct given *a, const struct given *b)
{
    return a->bytes == b->bytes && a->roots == b->roots && a->root_count == b->root_count &&
           same_work(a->work, b->work) && same_bytes(a->jitter, b->jitter, sizeof *a->jitter) &&
           same_bytes(a->shares, b->shares, sizeof *a->shares);
}

void lower_give(struct lowering *lowering, struct op *op, struct given given)
{
    given.jitter = given.jitter ? given.jitter : &constant;
    given.work = given.work ? given.work : &no_work;
    for (int i = 0; i < LOWER_KEPT && lowering->kept[i]; i++)
        if (lower_same_given(lowering->kept[i], &given)) {
            op->given = lowering->kept[i];
            return;
        }
    struct arena *arena = &lowering->program->arena;
    struct given *kept = ARENA_NEW(arena, struct given);
    struct work *work = given.work == &no_work ? NULL : ARENA_NEW(arena, struct work);
    if (!kept || (given.work != &no_work && !work)) {
        lowering->failed = true;
        return;
    }
    *kept = given;
    if (work) /* it lives no longer than the operation is lowered */
        kept->work = memcpy(work, given.work, sizeof *work);
    lowering->kept[lowering->kept_next++ % LOWER_KEPT] = kept;
    op->given = kept;
}

void lower_given(struct lowering *lowering, struct op *op, const struct host_op *from)
{
    static const struct shares none = {0};
    if (!op_is_work(from->kind))
        return;                    /* it has none of them */
    bool action = lowering->ranks; /* these have neither jitter nor shares of their own */
    const struct host_details *details = host_op_details(from);
    const struct work work = host_op_work(from);
    lower_give(lowering, op,
               (struct given){.jitter = action ? NULL : &details->jitter,
                              .shares = action ? &none : &details->shares,
                              .work = work.kind == WORK_NONE ? NULL : &work,
                              .bytes = host_op_bytes(from)});
}

int lower_flag(struct lowering *lowering, const char *name)
{
    return lower_intern(lowering, &lowering->flags, name);
}

static void add_access(struct lowering *lowering, struct op *op, int buffer, bool write)
{
    struct program *program = lowering->program;
    if (buffer > ACCESS_MOST_BUFFERS || !ARENA_REGROW(&program->arena, program->accesses,
                                                      program->access_count, program->access_cap)) {
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

void lower_slots(struct lowering *lowering, struct op *op, int sm, bool greedy)
{
    const struct machine_spec *machine = &lowering->plan->machine;
    op->sm = sm;
    if (!greedy || machine->sm_slots == 0)
        return;
    assert(op->kind == OP_LAUNCH && sm > 0);
    const int most = min_int(sm, machine->sm_slots);
    op->sm = machine->no_greed ? most : 1;
    op->sm_most = machine->no_greed ? -1 : most;
}

/* Flags stay set, so only the first use can block. */
static void meet(struct lowering *lowering, enum op_kind kind, const char *side, struct mark mark)
{
    int flag = lower_flag(lowering, side);
    struct op *op = lower_emit(lowering, kind, mark);
    op->object = flag;
    op->distance = -1;
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

/* One end of a direction of a link that a call connects. */
struct link_end {
    int round; /* of the call: how many members the receiver is behind the sender */
    int comm, from, to;
    bool sends;
    size_t part; /* of the call */
    struct mark mark;
};

static bool same_link_end(const struct link_end *a, const struct link_end *b)
{
    return a->comm == b->comm && a->from == b->from && a->to == b->to && a->sends == b->sends;
}

static int compare_link_ends(const void *left, const void *right)
{
    const struct link_end *a = left, *b = right;
    int places = compare_then(compare_int(a->round, b->round), compare_int(a->comm, b->comm));
    int ends = compare_then(compare_int(a->from, b->from), compare_int(a->to, b->to));
    int order = compare_then(compare_int(a->sends, b->sends), compare_size(a->part, b->part));
    return compare_then(places, compare_then(ends, order));
}

static struct link_end link_end_of(const struct lowering *lowering, const struct first_use *use,
                                   size_t at)
{
    const struct p2p_part *part = &use->parts[at];
    int rank = part->device > 0 ? part->device - 1 : use->rank;
    struct link_end end = {.comm = part->comm >= 0 ? part->comm : use->comm,
                           .from = part->send ? rank : part->peer,
                           .to = part->send ? part->peer : rank,
                           .sends = part->send,
                           .part = at,
                           .mark = part->mark};
    int members = lowering->program->comms[end.comm].count;
    int ahead =
        lower_member(lowering, end.comm, end.to) - lower_member(lowering, end.comm, end.from);
    end.round = (ahead + members) % members;
    return end;
}

/* An end sets its flag, or awaits that of the opposite one: when it is set up, or when its call has set up all of its
   ends. */
static void meet_end(struct lowering *lowering, enum op_kind kind, const struct link_end *end,
                     bool all)
{
    bool sender = end->sends == (kind == OP_SIGNAL);
    meet(lowering, kind,
         arena_printf(&lowering->program->arena, "first use of link %s %d>%d%s by its %s",
                      lowering->plan->comms[end->comm].name, end->from, end->to,
                      all ? ", all connected," : "", sender ? "sender" : "receiver"),
         end->mark);
}

/* The ends of a call meet their opposites round by round: in each it sets its flags and then awaits the others'. */
static void meet_in_rounds(struct lowering *lowering, const struct link_end *ends, size_t count,
                           bool all)
{
    for (size_t first = 0, next; first < count; first = next) {
        for (next = first; next < count && ends[next].round == ends[first].round; next++)
            meet_end(lowering, OP_SIGNAL, &ends[next], all);
        for (size_t i = first; i < next; i++)
            meet_end(lowering, OP_AWAIT, &ends[i], all);
    }
}

/* The links of a group. A message of a rank to itself needs none. */
static void meet_peers(struct lowering *lowering, const struct first_use *use)
{
    struct link_end *ends = ARENA_ARRAY(&lowering->program->arena, use->count, struct link_end);
    size_t count = 0, kept = 0;
    if (!ends) {
        lowering->failed = true;
        return;
    }
    for (size_t i = 0; i < use->count; i++)
        if (!use->parts[i].is_collective) {
            ends[count] = link_end_of(lowering, use, i);
            count += ends[count].from != ends[count].to;
        }
    SORT(ends, count, compare_link_ends);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || !same_link_end(&ends[kept - 1], &ends[i]))
            ends[kept++] = ends[i];
    meet_in_rounds(lowering, ends, kept, false);
    meet_in_rounds(lowering, ends, kept, true);
}

/* NCCL connects the messages of a group before its collectives (groupLaunch, NVIDIA/nccl src/group.cc). */
void lower_first_use(struct lowering *lowering, const struct first_use *use)
{
    static const enum op_kind passes[] = {OP_SIGNAL, OP_AWAIT};
    if (!lowering->plan->machine.first_use_blocks)
        return;
    if (use->count > 0)
        meet_peers(lowering, use);
    for (int pass = 0; pass < 2; pass++) {
        if (use->count == 0)
            meet_members(lowering, passes[pass], use->comm, use->rank, use->mark);
        for (size_t i = 0; i < use->count; i++) {
            const struct p2p_part *part = &use->parts[i];
            if (part->is_collective)
                meet_members(lowering, passes[pass], part->comm >= 0 ? part->comm : use->comm,
                             part->device > 0 ? part->device - 1 : use->rank, part->mark);
        }
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
    op->device = rank;
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
    op->device = lowering->program->streams[stream].rank;
}

void lower_allocating(struct lowering *lowering, int rank, struct mark mark)
{
    static const enum sync_kind syncs[] = {SYNC_RETRY, SYNC_DEVICE};
    for (int i = 0; lowering->plan->machine.alloc_may_sync && i < 2; i++) {
        struct op *op = lower_emit(lowering, OP_SYNC, mark);
        op->sync = syncs[i];
        op->device = rank;
    }
}
