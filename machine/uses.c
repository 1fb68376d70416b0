/* SPDX-License-Identifier: Apache-2.0 */
/* uses.c - see uses.h; why these uses are the ones that matter is argued in conflicts.c. */
#include "uses.h"

#include <limits.h>

#include "machine_internal.h"
#include "base/array.h"
#include "base/sort.h"

/* ---- operands -------------------------------------------------------------------------------- */

/* Ways are in the order of the bits: gives, takes, sets, looks. What is not said is WAY_WRITE, the way that conflicts with
   all. */
const struct operand_row operand_table[OPERAND_COUNT] = {
    /* A thread sets which record an event stands for, and looks at it; that a stream reaches the record releases those that
       wait for it, whoever comes first. */
    [OPERAND_EVENT] = {OBJECT_EVENT, .way = {WAY_NOTHING, WAY_NOTHING, WAY_WRITE, WAY_READ}},
    /* A flag that is set stays set, and the first that sets it gives what it knows; way_of_use has the flags that count. */
    [OPERAND_FLAG] = {OBJECT_FLAG, .is_far = true, .way = {WAY_PUT, WAY_NOTHING}},
    [OPERAND_QUEUE] = {OBJECT_QUEUE, .is_far = true, .has_room = true, .way = {WAY_PUT, WAY_GET}},
    [OPERAND_LOCK] = {OBJECT_LOCK, .way = {WAY_RELEASE, WAY_PUT}},
    [OPERAND_TURN] = {OBJECT_TICKET, .of_rank = true, .way = {WAY_CHANGE, WAY_ASK}},
    /* A stream that allocates looks for accesses that are queued, or done and not known: one of the two in any order. */
    [OPERAND_BUFFER] = {OBJECT_MEMORY, .of_rank = true, .way = {[USE_LOOKS] = WAY_NOTHING}},
    /* An abort disables what starts on the communicator, or completes. */
    [OPERAND_COMM] = {OBJECT_COMM, .is_far = true, .way = {[USE_SETS] = WAY_WRITE}},
    [OPERAND_SUBMISSION] = {OBJECT_RETIRED,
                            .of_rank = true}, /* use_submission: more than one object */
};

/* The rank or object by which an operation uses its operand. */
static int operand_index(const struct program *p, const struct op *op, int rank)
{
    if (op_operand(op->kind) == OPERAND_BUFFER)
        return p->buffers[op->object].rank;
    return operand_table[op_operand(op->kind)].of_rank ? rank : op->object;
}

static bool syncs_with_device(const struct op *op)
{
    return op_syncs(op->kind) && op->sync != SYNC_STREAM && op->sync != SYNC_EVENT;
}

/* Its operand, where the uses of the row at the call are of one of these kinds; -1: none. */
static int used_so(const struct program *p, const struct op *op, int thread, unsigned uses)
{
    const struct operand_row *row = &operand_table[op_operand(op->kind)];
    if (!(op_uses(op->kind, AT_CALL) & (row->has_room ? GIVES | TAKES : uses)))
        return -1;
    return uses_use_object(p, row->object, operand_index(p, op, p->threads[thread].rank));
}

unsigned op_helping(enum op_kind kind)
{
    const bool room = operand_table[op_operand(kind)].has_room;
    return (op_takes(kind) ? GIVES : 0u) | (room && op_gives(kind) ? TAKES : 0u);
}

int op_awaited(const struct program *p, const struct op *op, int thread)
{
    if (op_pushes(op->kind))
        return uses_use_object(p, OBJECT_STREAM, op->stream);
    if (syncs_with_device(op))
        return uses_use_object(p, OBJECT_DEVICE, program_sync_rank(p, thread, op));
    if (op_syncs(op->kind) && op->sync == SYNC_STREAM)
        return uses_use_object(p, OBJECT_STREAM, op->stream);
    return used_so(p, op, thread, TAKES);
}

/* Its operand, where its start by its stream is of one of these kinds; -1: none. A mark has no step of its own. */
static int used_at_stream(const struct program *p, const struct op *op, unsigned uses)
{
    const struct operand_row *row = &operand_table[op_operand(op->kind)];
    if (op_is_mark(op->kind) || !(op_uses(op->kind, AT_STREAM) & uses))
        return -1;
    return uses_use_object(p, row->object, operand_index(p, op, p->streams[op->stream].rank));
}

int op_stream_awaits(const struct program *p, const struct op *op)
{
    return used_at_stream(p, op, TAKES);
}

int op_stream_gives(const struct program *p, const struct op *op)
{
    return used_at_stream(p, op, GIVES);
}

int op_helped(const struct program *p, const struct op *op, int thread)
{
    if (op_syncs(op->kind) && op->sync == SYNC_LOAD) /* who loads a kernel loads it for all */
        return uses_use_object(p, OBJECT_DEVICE, program_sync_rank(p, thread, op));
    return used_so(p, op, thread, GIVES);
}

/* ---- the objects a step uses ----------------------------------------------------------------- */

struct visitor {
    const struct program *program;
    use_visit *visit;
    void *arg;
};

static void uses_use(const struct visitor *v, enum object_kind kind, int index, enum way way)
{
    v->visit(v->arg, uses_use_object(v->program, kind, index), way, -1);
}

/* Memory of other ranks is accessed where a thread drives several devices. */
static void use_accessed_memory(const struct visitor *v, const struct op *op, int rank)
{
    const struct program *p = v->program;
    for (int k = 0; p->is_crossed && k < op->access_count; k++) {
        int owner = p->buffers[p->accesses[op->access_first + k].buffer].rank;
        if (owner != rank)
            uses_use(v, OBJECT_MEMORY, owner, WAY_READ);
    }
}

/* True if it concerns the slot of a task and iteration, not an object that is there once. */
static bool uses_slot(const struct program *p, const struct op *op)
{
    const enum op_operand operand = op_operand(op->kind);
    return p->tasks && op->distance >= 0 && (operand == OPERAND_EVENT || operand == OPERAND_FLAG);
}

/* `reads`: the step depends on the slot of a task and iteration; else it sets the slot. */
static void use_slot(const struct visitor *v, const struct op *op, int rank, bool reads)
{
    const struct program *p = v->program;
    if (!p->slots_safe)
        uses_use(v, OBJECT_SLOTS, rank, WAY_READ);
    if (reads && p->plan->pipeline.retired_dep == RETIRED_DEP_SKIP &&
        (op->distance > 0 || !p->slots_safe))
        uses_use(v, OBJECT_RETIRED, rank, WAY_READ);
}

/* Put an instance of `task` into its worker's queue. */
static void use_inbox(const struct visitor *v, int rank, int task)
{
    const struct program *p = v->program;
    bool in_order = p->slots_safe && p->plan->pipeline.forget_done == FORGET_NEVER;
    v->visit(v->arg, uses_use_object(p, OBJECT_INBOX, p->worker[rank * p->tasks + task]), WAY_PUT,
             in_order ? task : -1);
    bool ordered = p->ticket_position[rank * p->tasks + task] >= 0;
    if (ordered && p->plan->pipeline.ticket_at == TICKET_AT_FIRE)
        uses_use(v, OBJECT_NUMBER, rank, WAY_PUT);
}

/* Which turns have an iteration is not known before the data end: who ends a turn, or passes some, does it before or behind that. */
static void use_turns(const struct visitor *v, int rank, enum way way)
{
    const struct program *p = v->program;
    if (program_fires_by_turn(p) && p->ordered_tasks[rank] > 0 && p->last_turn_stage > 0 &&
        p->ends[rank] < 0)
        uses_use(v, OBJECT_TICKET, rank, way);
}

/* Under data-flow: the end of a submission asks which iterations are retired only where they may be
   retired, or forgotten, too early. */
static void use_submission(const struct visitor *v, const struct op *op, int rank)
{
    const struct program *p = v->program;
    if (p->driver != DRIVER_DATAFLOW)
        return;
    if (!p->slots_safe || p->plan->pipeline.forget_done != FORGET_NEVER)
        uses_use(v, OBJECT_RETIRED, rank, WAY_READ);
    for (int k = 0, fired; (fired = program_may_fire(p, rank, op->task, k)) >= 0; k++)
        use_inbox(v, rank, fired);
    if (program_ends_turn(p, rank, op->task))
        use_turns(v, rank, WAY_CHANGE);
}

/* Two additions to a flag commute, in its value and in what it carries; to set it does not. */
static bool flag_is_set_by(const struct op *op)
{
    return !op_takes(op->kind) && op->flag_rule == FLAG_SETS;
}

static enum way way_of_use(const struct program *p, const struct op *op, enum use_kind use)
{
    const enum op_operand operand = op_operand(op->kind);
    if (op_has_branches(op) && (operand == OPERAND_LOCK || operand == OPERAND_QUEUE))
        return WAY_WRITE; /* its answer depends on all that others do with the object */
    switch (operand) {
    case OPERAND_EVENT: /* of a task: who waits for it has awaited the flag, which is set behind the record */
        if (uses_slot(p, op) && p->slots_safe)
            return WAY_NOTHING;
        break;
    case OPERAND_LOCK:
        if (use == USE_GIVES && p->uses->lock_abused[op->object])
            return WAY_WRITE;
        break;
    case OPERAND_TURN: /* those of a pipeline are numbered in advance */
        if (use == USE_TAKES && p->tasks > 0)
            return WAY_NOTHING;
        break;
    case OPERAND_FLAG: /* that counts: what was awaited may be gone, and a change may be the last before a look */
        if (p->flag_counts[op->object])
            return use == USE_TAKES || use == USE_LOOKS ? WAY_ASK
                   : flag_is_set_by(op)                 ? WAY_WRITE
                                                        : WAY_CHANGE;
        break;
    case OPERAND_NONE:
    case OPERAND_QUEUE:
    case OPERAND_BARRIER:
    case OPERAND_BUFFER:
    case OPERAND_COMM:
    case OPERAND_SUBMISSION: break;
    }
    return operand_table[operand].way[use];
}

/* The uses of an operand at a moment. */
static void use_operand(const struct visitor *v, const struct op *op, int rank,
                        enum op_moment moment)
{
    const struct operand_row *row = &operand_table[op_operand(op->kind)];
    for (unsigned uses = op_uses(op->kind, moment); uses; uses &= uses - 1) {
        const enum use_kind kind = (enum use_kind)__builtin_ctz(uses);
        const enum way way = way_of_use(v->program, op, kind);
        /* A mark takes effect in the step of another agent, which would have to use what it uses. */
        assert(way == WAY_NOTHING || moment == AT_CALL || !op_is_mark(op->kind));
        if (way != WAY_NOTHING)
            uses_use(v, row->object, operand_index(v->program, op, rank), way);
    }
}

static void use_push(const struct visitor *v, const struct op *op)
{
    const struct program *p = v->program;
    const struct stream_desc *stream = &p->streams[op->stream];
    uses_use(v, OBJECT_STREAM, op->stream, WAY_WRITE);
    uses_use(v, OBJECT_DEVICE, stream->rank, WAY_CHANGE);
    if (op_operand(op->kind) == OPERAND_BUFFER)
        use_operand(v, op, stream->rank, AT_CALL);
    else
        uses_use(v, OBJECT_MEMORY, stream->rank, WAY_READ);
    use_accessed_memory(v, op, stream->rank);
    if (stream->hw_queue >= 0)
        uses_use(v, OBJECT_HW_QUEUE, stream->hw_queue, WAY_PUT);
    if (op->comm < 0)
        return;
    uses_use(v, OBJECT_MEMBER, p->comms[op->comm].first_member + op->member, WAY_PUT);
    if (p->plan->machine.launch_order_implicit)
        uses_use(v, OBJECT_ISSUE, stream->rank, WAY_PUT);
}

static void use_at_call(const struct visitor *v, const struct op *op, int rank)
{
    if (op_operand(op->kind) == OPERAND_SUBMISSION) {
        use_submission(v, op, rank);
        return;
    }
    if (op_operand(op->kind) == OPERAND_BUFFER && op_pushes(op->kind))
        return; /* use_push */
    if (uses_slot(v->program, op))
        use_slot(v, op, rank, op_uses(op->kind, AT_CALL) & (TAKES | LOOKS));
    else if (v->program->tasks && op_dependence(op) >= 0 &&
             v->program->plan->pipeline.retired_dep == RETIRED_DEP_SKIP)
        uses_use(v, OBJECT_RETIRED, rank, WAY_READ); /* part of a wait that may be skipped */
    use_operand(v, op, rank, AT_CALL);
}

/* What the device has come to is asked, or changes. */
static void use_progress(const struct visitor *v, int rank, enum way way)
{
    if (v->program->asks_device)
        uses_use(v, OBJECT_PROGRESS, v->program->is_crossed ? 0 : rank, way);
}

static void use_sync(const struct visitor *v, const struct op *op, int rank)
{
    if (op->sync == SYNC_STREAM)
        uses_use(v, OBJECT_STREAM, op->stream, WAY_READ);
    else if (op->sync == SYNC_EVENT)
        use_at_call(v, op, rank);
    else if (!op_may_sync(op))
        uses_use(v, OBJECT_DEVICE, rank, WAY_ASK);
}

void uses_of_op(const struct program *program, const struct op *op, int thread, use_visit *visit,
                void *arg)
{
    const struct visitor v = {program, visit, arg};
    int rank = program->threads[thread].rank;
    assert(op_operand(op->kind) != OPERAND_BARRIER && "a barrier is lowered to flags");
    if (op_pushes(op->kind))
        use_push(&v, op);
    else if (op->access_count > 0) {
        uses_use(&v, OBJECT_MEMORY, rank, WAY_READ);
        use_accessed_memory(&v, op, rank);
    }
    if (op->kind == OP_QUERY)
        use_progress(&v, program_sync_rank(program, thread, op), WAY_ASK);
    if (op_syncs(op->kind) || op->kind == OP_QUERY)
        use_sync(&v, op, program_sync_rank(program, thread, op));
    else if (op_uses(op->kind, AT_CALL))
        use_at_call(&v, op, rank);
}

bool uses_alike(const struct program *program, const struct op *a, const struct op *b)
{
    bool accesses = a->access_count > 0;
    return a->kind == b->kind && a->sync == b->sync && a->stream == b->stream &&
           a->object == b->object && a->comm == b->comm && a->member == b->member &&
           a->task == b->task && a->distance == b->distance &&
           op_has_branches(a) == op_has_branches(b) && a->flag_rule == b->flag_rule &&
           op_dependence(a) == op_dependence(b) && (a->sm > 0) == (b->sm > 0) &&
           accesses == (b->access_count > 0) && !(accesses && program->is_crossed);
}

struct uses_kept *uses_place(struct uses_memo *memo, const struct program *program,
                             const struct body *body, const struct op *op)
{
    const struct op *first = &program->ops[body->first];
    unsigned hash = (unsigned)op->kind + 11u * (unsigned)op->flag_rule +
                    37u * (unsigned)(op->stream + 1) + 61u * (unsigned)(op->object + 1) +
                    97u * (unsigned)(op->comm + 1);
    struct uses_kept *place = &memo->kept[hash % USES_KEPT];
    if (place->op && (place->op < first || place->op >= first + body->count))
        place->op = NULL;
    return place;
}

void uses_of_take(const struct program *program, int thread, use_visit *visit, void *arg)
{
    ASSERT_INDEX(thread, program->thread_count);
    const struct visitor v = {program, visit, arg};
    if (program->tasks && program->plan->pipeline.slot_reset == SLOT_RESET_SUBMIT)
        uses_use(&v, OBJECT_SLOTS, program->threads[thread].rank, WAY_WRITE);
}

/* True if the driver fires instances of `task`. Under data-flow at admission, if it waits for nothing of its own
   iteration, or when it passes turns; after a retirement only what was retired too early. */
static bool driver_fires(const struct program *program, int rank, int task)
{
    const struct edge_list *depends = &program->depends[task];
    if (program_ends_turn(program, rank, task))
        return true;
    for (int i = 0; program->driver == DRIVER_DATAFLOW && program->slots_safe && i < depends->count;
         i++)
        if (depends->items[i].distance == 0)
            return false;
    return true;
}

static void use_inboxes(const struct visitor *v, int rank)
{
    for (int task = 0; task < v->program->tasks; task++)
        if (driver_fires(v->program, rank, task))
            use_inbox(v, rank, task);
}

void uses_of_admit(const struct program *program, int rank, use_visit *visit, void *arg)
{
    ASSERT_INDEX(rank, program->ranks);
    const struct visitor v = {program, visit, arg};
    if (!program->slots_safe)
        uses_use(&v, OBJECT_SLOTS, rank, WAY_WRITE);
    use_inboxes(&v, rank);
    use_turns(&v, rank, WAY_CHANGE);
}

void uses_of_data(const struct program *program, use_visit *visit, void *arg)
{
    const struct visitor v = {program, visit, arg};
    for (int rank = 0; program->tasks && rank < program->ranks; rank++)
        use_turns(&v, rank, WAY_WRITE);
}

void uses_of_retire(const struct program *program, int rank, use_visit *visit, void *arg)
{
    ASSERT_INDEX(rank, program->ranks);
    const struct visitor v = {program, visit, arg};
    uses_use(&v, OBJECT_RETIRED, rank, WAY_WRITE);
    if (!program->slots_safe)
        use_inboxes(&v, rank);
}

void uses_of_start(const struct program *program, int stream, const struct op *op, use_visit *visit,
                   void *arg)
{
    const struct visitor v = {program, visit, arg};
    if (program->plan->machine.sm_slots && op->sm > 0)
        uses_use(&v, OBJECT_RESIDENCY, program->device[program->streams[stream].rank], WAY_PUT);
    if (program->has_aborts && op->comm >= 0)
        uses_use(&v, OBJECT_COMM, op->comm, WAY_READ);
    if (op_uses(op->kind, AT_STREAM))
        use_operand(&v, op, program->streams[stream].rank, AT_STREAM);
    if (program->streams[stream].hw_queue >= 0) /* others of its hardware queue may go on */
        use_progress(&v, program->streams[stream].rank, WAY_CHANGE);
}

void uses_of_finish(const struct program *program, int stream, use_visit *visit, void *arg)
{
    ASSERT_INDEX(stream, program->stream_count);
    const struct visitor v = {program, visit, arg};
    use_progress(&v, program->streams[stream].rank, WAY_CHANGE);
}

void uses_of_completion(const struct program *program, int comm, use_visit *visit, void *arg)
{
    ASSERT_INDEX(comm, program->comm_count);
    const struct visitor v = {program, visit, arg};
    if (program->has_aborts)
        uses_use(&v, OBJECT_COMM, comm, WAY_READ);
    for (int m = 0; m < program->comms[comm].count; m++)
        use_progress(&v, program->comms[comm].members[m], WAY_CHANGE);
}

/* ---- the table of uses ----------------------------------------------------------------------- */

unsigned way_conflicts(enum way way)
{
    static const unsigned conflicts[] = {
        [WAY_READ] = 1u << WAY_WRITE,
        [WAY_WRITE] = ~0u,
        [WAY_PUT] = 1u << WAY_PUT | 1u << WAY_WRITE,
        [WAY_GET] = 1u << WAY_GET | 1u << WAY_WRITE,
        [WAY_ASK] = 1u << WAY_CHANGE | 1u << WAY_WRITE,
        [WAY_CHANGE] = 1u << WAY_ASK | 1u << WAY_WRITE,
        [WAY_RELEASE] = 1u << WAY_WRITE,
        [WAY_NOTHING] = 0,
    };
    return conflicts[way];
}

bool use_conflicts(enum way way, int tag, const struct use *other)
{
    return way_conflicts(way) >> other->way & 1 && (tag < 0 || tag != other->tag);
}

unsigned op_helping_ways(const struct program *p, const struct op *op)
{
    const unsigned helping = op_helping(op->kind);
    const enum way gives = way_of_use(p, op, USE_GIVES), takes = way_of_use(p, op, USE_TAKES);
    assert(gives != WAY_NOTHING && "who gives must be in the list of the object");
    return 1u << WAY_WRITE | (helping & GIVES ? 1u << gives : 0) |
           (helping & TAKES ? 1u << takes : 0);
}

bool use_is_ahead(const struct program *program, int32_t *cells, const struct use *use)
{
    const struct agent *agent = &program->agents[use->agent];
    return agent->kind != AGENT_THREAD || program->threads[agent->index].kind != THREAD_HOST ||
           thread_cells(program, cells, agent->index)[THREAD_PC] <= use->last;
}

bool use_may_meet(const struct program *program, int thread, int at, const struct use *use,
                  int done)
{
    const struct fixed_order *order = program->uses->order;
    const struct agent *agent = &program->agents[use->agent];
    if (!order || agent->kind != AGENT_THREAD || program->threads[agent->index].kind != THREAD_HOST)
        return true;
    const int from = max_int(done, fixed_order_before(order, thread, at, agent->index)),
              to = fixed_order_behind(order, thread, at, agent->index);
    const size_t place = SORT_FIRST(i, 0, use->place_count, use->places[i] >= from);
    return place < use->place_count && use->places[place] < to;
}

/* The steps whose uses are being entered into the table. */
struct uses_entry {
    struct program *program;
    int agent, last;
};

static void uses_enter_place(struct program *program, struct use *use, int place)
{
    if (program->uses->order && place != INT_MAX &&
        (use->place_count == 0 || use->places[use->place_count - 1] != place) &&
        ARENA_GROW(&program->arena, use->places, use->place_count, use->place_cap))
        use->places[use->place_count++] = place; /* else: uses_build looks at the arena */
}

static uint64_t hash_use(int agent, int object, enum way way, int tag)
{
    return table_hash_number((uint64_t)(uint32_t)tag << 32 ^ (uint64_t)way << 24 ^
                             hash_mix((uint64_t)agent << 32 ^ (uint64_t)object));
}

/* What the agent does to the object is in the table already; NULL: not so. */
static struct use *find_entered(struct use_table *uses, const struct uses_entry *entry, int object,
                                enum way way, int tag)
{
    if (!(uses->ways[object] >> way & 1))
        return NULL;
    const uint32_t found =
        TABLE_FIND(&uses->entered, hash_use(entry->agent, object, way, tag), i,
                   uses->items[i].agent == entry->agent && uses->items[i].object == object &&
                       uses->items[i].way == way && uses->items[i].tag == tag);
    return found == TABLE_NONE ? NULL : &uses->items[found];
}

static void uses_enter(void *arg, int object, enum way way, int tag)
{
    const struct uses_entry *entry = arg;
    struct program *p = entry->program;
    struct use_table *uses = p->uses;
    struct use *known = find_entered(uses, entry, object, way, tag);
    if (known) {
        known->last = max_int(known->last, entry->last);
        uses_enter_place(p, known, entry->last);
        return;
    }
    if (!ARENA_GROW(&p->arena, uses->items, uses->count, uses->cap) ||
        !table_add_in(&uses->entered, &p->arena, hash_use(entry->agent, object, way, tag),
                      uses->count))
        return; /* uses_build looks at the arena */
    const int next = uses->first[object];
    const bool same = next >= 0 && uses->items[next].agent == entry->agent;
    uses->items[uses->count] = (struct use){.agent = entry->agent,
                                            .object = object,
                                            .way = way,
                                            .tag = tag,
                                            .last = entry->last,
                                            .next = next,
                                            .other = same ? uses->items[next].other : next};
    uses_enter_place(p, &uses->items[uses->count], entry->last);
    uses->first[object] = (int)uses->count++;
    uses->ways[object] |= (uint8_t)(1u << way);
}

/* True if the body has done operation `i` whenever it comes to operation `at` behind it, and was not told no there.
   Else a branch that `i` is in, or begins, has ended in between. */
static bool comes_by(const struct program *program, const struct body *body, int i, int at)
{
    for (int k = 0; program->has_branches && k <= i; k++) {
        const int end = k + program->ops[body->first + k].otherwise;
        if (end > i && at >= end)
            return false;
    }
    return true;
}

/* True if the body holds the lock it releases at operation `at`, whatever others do. */
static bool holds_lock(const struct program *program, const struct body *body, int at)
{
    int lock = program->ops[body->first + at].object;
    for (int i = at - 1; i >= 0; i--) {
        const struct op *op = &program->ops[body->first + i];
        if (op->object == lock && op_operand(op->kind) == OPERAND_LOCK)
            return op_takes(op->kind) && comes_by(program, body, i, at);
    }
    return false;
}

static void find_abused_locks(const struct program *program)
{
    for (size_t b = 0; b < program->body_count; b++)
        for (int i = 0; i < program->bodies[b].count; i++) {
            const struct op *op = &program->ops[program->bodies[b].first + i];
            if (op_gives_to(op->kind, OPERAND_LOCK) && !holds_lock(program, &program->bodies[b], i))
                program->uses->lock_abused[op->object] = true;
        }
}

static void enter_op(struct program *program, const struct op *op, int thread, int last)
{
    struct uses_entry entry = {program, program_thread_agent(program, thread), last};
    uses_of_op(program, op, thread, uses_enter, &entry);
    if (op->stream < 0 || !op_pushes(op->kind))
        return;
    struct uses_entry start = {program, program_stream_agent(program, op->stream), INT_MAX};
    uses_of_start(program, op->stream, op, uses_enter, &start);
}

/* A host thread comes to its operations once: the last of those that are alike says until when. */
static void enter_last(struct program *program, const struct body *body,
                       const struct uses_kept *kept)
{
    if (kept->op && program->threads[body->thread].kind == THREAD_HOST)
        enter_op(program, kept->op, body->thread, kept->last);
}

static void enter_body(struct program *program, const struct body *body, struct uses_memo *memo)
{
    const bool once = program->threads[body->thread].kind == THREAD_HOST;
    const struct op *ops = &program->ops[body->first];
    if (once && program->uses->order) { /* every place counts */
        for (int i = 0; i < body->count; i++)
            enter_op(program, &ops[i], body->thread, i);
        return;
    }
    for (int i = 0; i < body->count; i++) {
        struct uses_kept *kept = uses_place(memo, program, body, &ops[i]);
        if (!kept->op || !uses_alike(program, kept->op, &ops[i])) {
            enter_last(program, body, kept);
            enter_op(program, &ops[i], body->thread, once ? i : INT_MAX);
            kept->op = &ops[i];
        }
        kept->last = i;
    }
    for (int place = 0; once && place < USES_KEPT; place++) {
        enter_last(program, body, &memo->kept[place]);
        memo->kept[place].op = NULL;
    }
}

static void enter_all(struct program *program, struct uses_memo *memo)
{
    struct uses_entry data = {program, 0, INT_MAX}; /* the data loader is agent 0 */
    uses_of_data(program, uses_enter, &data);
    for (int rank = 0; program->tasks && rank < program->ranks; rank++) {
        int driver = program->driver_thread[rank];
        struct uses_entry entry = {program, program_thread_agent(program, driver), INT_MAX};
        uses_of_admit(program, rank, uses_enter, &entry);
        uses_of_retire(program, rank, uses_enter, &entry);
    }
    for (int t = 0; program->tasks && t < program->thread_count; t++) {
        struct uses_entry entry = {program, program_thread_agent(program, t), INT_MAX};
        if (program->threads[t].kind == THREAD_WORKER)
            uses_of_take(program, t, uses_enter, &entry);
    }
    for (int s = 0; program->asks_device && s < program->stream_count; s++) {
        struct uses_entry entry = {program, program_stream_agent(program, s), INT_MAX};
        uses_of_finish(program, s, uses_enter, &entry);
    }
    for (int c = 0; c < program->comm_count; c++) {
        struct uses_entry entry = {program, program_comm_agent(program, c), INT_MAX};
        uses_of_completion(program, c, uses_enter, &entry);
    }
    for (size_t b = 0; b < program->body_count; b++)
        enter_body(program, &program->bodies[b], memo);
}

static bool uses_allocate(struct program *program)
{
    int sizes[OBJECT_KINDS] = {[OBJECT_STREAM] = program->stream_count,
                               [OBJECT_DEVICE] = program->ranks,
                               [OBJECT_HW_QUEUE] = program->hw_queue_count,
                               [OBJECT_MEMBER] = program->member_count,
                               [OBJECT_ISSUE] = program->ranks,
                               [OBJECT_EVENT] = program->event_families,
                               [OBJECT_FLAG] = program->flag_families,
                               [OBJECT_QUEUE] = program->queue_count,
                               [OBJECT_LOCK] = program->lock_count,
                               [OBJECT_TICKET] = program->ranks,
                               [OBJECT_MEMORY] = program->ranks,
                               [OBJECT_SLOTS] = program->ranks,
                               [OBJECT_RETIRED] = program->ranks,
                               [OBJECT_NUMBER] = program->ranks,
                               [OBJECT_INBOX] = program->thread_count,
                               [OBJECT_RESIDENCY] = program->ranks,
                               [OBJECT_COMM] = program->has_aborts ? program->comm_count : 0,
                               [OBJECT_PROGRESS] = program->asks_device ? program->ranks : 0};
    struct use_table *uses = program->uses = ARENA_ARRAY(&program->arena, 1, struct use_table);
    if (!uses)
        return false;
    int count = 0;
    for (int kind = 0; kind < OBJECT_KINDS; kind++) {
        uses->base[kind] = count;
        count += sizes[kind];
    }
    uses->object_count = count;
    uses->first = ARENA_ARRAY(&program->arena, (size_t)count + 1, int);
    uses->ways = ARENA_ARRAY(&program->arena, (size_t)count + 1, uint8_t);
    uses->lock_abused = ARENA_ARRAY(&program->arena, (size_t)program->lock_count + 1, bool);
    for (int object = 0; uses->first && object < count; object++)
        uses->first[object] = -1;
    return uses->first && uses->ways && uses->lock_abused;
}

enum status uses_build(struct program *program, struct diag *diag)
{
    if (!uses_allocate(program))
        return diag_no_memory(diag);
    struct uses_memo memo = {0};
    program->uses->order = fixed_order_make(program);
    find_abused_locks(program);
    enter_all(program, &memo);
    return program->arena.failed ? diag_no_memory(diag) : STATUS_OK;
}
