/*
 * independence.c - who uses what, and whose steps therefore conflict.
 *
 * Two steps of different agents are independent if neither disables the other and both orders lead
 * to one state and show the same violations. (That one *enables* the other is no conflict: for what
 * a step waits for see enabling.h.) The facts used, each local to one object:
 *
 *   - A stream is a FIFO: its push at the tail and its start or finish at the head commute. Two
 *     threads that push to one stream do not commute; nor does a push with another thread's sync.
 *   - The same for communicators (issue order), hardware queues, bounded queues and worker queues.
 *   - Flags are only ever set, and only the first signal carries knowledge: signals conflict with
 *     each other, an await that is enabled with nobody.
 *   - An event is written by record, read by wait and sync. The device reaching a record commutes
 *     with both: a wait that comes before is released by it, one that comes after finds its trace.
 *   - Events and flags of tasks are re-armed when an iteration is admitted, but with slots >= depth
 *     + distance never while someone may look at them (program->slots_safe): re-arming (T, j) for
 *     iteration i >= j + slots needs iteration i - depth >= j + distance to be retired, so all that
 *     could look at (T, j) has been submitted. And whoever waits for the event of (T, j) has awaited
 *     its flag, which is set after the record.
 *   - Where dependences on retired iterations are skipped, what an await learns depends on whether
 *     the driver has retired yet.
 *   - Finishing device work only enables others. Starting it takes something away only under
 *     sm_slots.
 *   - Tickets of pipelines are numbered in advance (clock, or data-flow by iteration), each once, so
 *     turns do not depend on timing. Numbered at firing time, the firings conflict. A host program
 *     may number its tickets as it likes: there a turn conflicts with serving.
 *   - Releasing a lock only enables others, if it is held by who releases it.
 *   - Under data-flow the end of a submission may put instances into worker queues. By the order
 *     lemma (doc/checker.md) instances of one task come in iteration order, whoever puts them there;
 *     instances of different tasks that share a worker may come in either order.
 *
 * Happens-before knowledge is carried along exactly these objects, so it commutes where they do.
 *
 * A step is *free* if it conflicts with nothing any other agent ever does.
 */
#include "independence.h"

#include <limits.h>

#include "lower.h"

/* ---- what a step uses ------------------------------------------------------------------------ */

struct visitor {
    const struct program *program;
    use_visit *visit;
    void *arg;
};

static void use(const struct visitor *v, enum object_kind kind, int index, enum way way)
{
    v->visit(v->arg, use_object(v->program, kind, index), way, -1);
}

static void use_push(const struct visitor *v, const struct op *op)
{
    const struct program *p = v->program;
    const struct stream_desc *stream = &p->streams[op->stream];
    use(v, OBJECT_STREAM, op->stream, WAY_WRITE);
    use(v, OBJECT_DEVICE, stream->rank, WAY_CHANGE);
    use(v, OBJECT_MEMORY, stream->rank, op->kind == OP_ALLOC ? WAY_WRITE : WAY_READ);
    if (stream->hw_queue >= 0)
        use(v, OBJECT_HW_QUEUE, stream->hw_queue, WAY_PUT);
    if (op->comm < 0)
        return;
    use(v, OBJECT_MEMBER, p->comms[op->comm].first_member + op->member, WAY_PUT);
    if (p->plan->machine.launch_order_implicit)
        use(v, OBJECT_ISSUE, stream->rank, WAY_PUT);
}

/* Looking at a task's slot: that of an iteration, not a single flag or event. */
static void use_slot(const struct visitor *v, const struct op *op, int rank, bool looks)
{
    const struct program *p = v->program;
    if (!p->slots_safe)
        use(v, OBJECT_SLOTS, rank, WAY_READ);
    if (looks && p->plan->pipeline.retired_dep == RETIRED_DEP_SKIP &&
        (op->distance > 0 || !p->slots_safe))
        use(v, OBJECT_RETIRED, rank, WAY_READ);
}

static void use_event(const struct visitor *v, const struct op *op, int rank)
{
    bool slot = v->program->tasks && op->distance >= 0, records = op->kind == OP_RECORD;
    if (slot)
        use_slot(v, op, rank, !records);
    if (!slot || !v->program->slots_safe)
        use(v, OBJECT_EVENT, op->object, records ? WAY_WRITE : WAY_READ);
}

static void use_flag(const struct visitor *v, const struct op *op, int rank)
{
    if (v->program->tasks && op->distance >= 0)
        use_slot(v, op, rank, op->kind == OP_AWAIT);
    if (op->kind == OP_SIGNAL)
        use(v, OBJECT_FLAG, op->object, WAY_PUT);
}

static void use_sync(const struct visitor *v, const struct op *op, int rank)
{
    if (op->sync == SYNC_STREAM)
        use(v, OBJECT_STREAM, op->stream, WAY_READ);
    else if (op->sync == SYNC_EVENT)
        use_event(v, op, rank);
    else
        use(v, OBJECT_DEVICE, rank, WAY_ASK);
}

/* Put an instance of `task` into its worker's queue. */
static void use_inbox(const struct visitor *v, int rank, int task)
{
    const struct program *p = v->program;
    bool in_order = p->slots_safe && p->plan->pipeline.forget_done == FORGET_NEVER;
    v->visit(v->arg, use_object(p, OBJECT_INBOX, p->worker[rank * p->tasks + task]), WAY_PUT,
             in_order ? task : -1);
    bool ordered = p->ticket_position[rank * p->tasks + task] >= 0;
    if (ordered && p->plan->pipeline.ticket_at == TICKET_AT_FIRE)
        use(v, OBJECT_NUMBER, rank, WAY_PUT);
}

/* Under data-flow: the end of a submission asks which iterations are retired only where they may be
   retired, or forgotten, too early. */
static void use_complete(const struct visitor *v, const struct op *op, int rank)
{
    const struct program *p = v->program;
    if (p->driver != DRIVER_DATAFLOW)
        return;
    if (!p->slots_safe || p->plan->pipeline.forget_done != FORGET_NEVER)
        use(v, OBJECT_RETIRED, rank, WAY_READ);
    for (int i = 0; i < p->fires[op->task].count; i++)
        use_inbox(v, rank, p->fires[op->task].items[i].task);
}

void uses_of_op(const struct program *program, const struct op *op, int thread, use_visit *visit,
                void *arg)
{
    const struct visitor v = {program, visit, arg};
    int rank = program->threads[thread].rank;
    if (op_pushes(op->kind))
        use_push(&v, op);
    switch (op->kind) {
    case OP_RECORD:
    case OP_WAIT: use_event(&v, op, rank); break;
    case OP_SYNC: use_sync(&v, op, rank); break;
    case OP_SIGNAL:
    case OP_AWAIT: use_flag(&v, op, rank); break;
    case OP_PUT: use(&v, OBJECT_QUEUE, op->object, WAY_PUT); break;
    case OP_GET: use(&v, OBJECT_QUEUE, op->object, WAY_GET); break;
    case OP_LOCK: use(&v, OBJECT_LOCK, op->object, WAY_PUT); break;
    case OP_UNLOCK:
        use(&v, OBJECT_LOCK, op->object,
            program->uses->lock_abused[op->object] ? WAY_WRITE : WAY_RELEASE);
        break;
    case OP_TICKET:
        if (program->tasks == 0)
            use(&v, OBJECT_TICKET, rank, WAY_ASK);
        break;
    case OP_SERVE: use(&v, OBJECT_TICKET, rank, WAY_CHANGE); break;
    case OP_FREE:
    case OP_RECORD_STREAM: use(&v, OBJECT_MEMORY, rank, WAY_WRITE); break;
    case OP_COMPLETE: use_complete(&v, op, rank); break;
    default: break;
    }
}

void uses_of_take(const struct program *program, int thread, use_visit *visit, void *arg)
{
    const struct visitor v = {program, visit, arg};
    if (program->tasks && program->plan->pipeline.slot_reset == SLOT_RESET_SUBMIT)
        use(&v, OBJECT_SLOTS, program->threads[thread].rank, WAY_WRITE);
}

/* Does the driver fire instances of `task`? Under data-flow at admission, if it waits for nothing
   of its own iteration; after a retirement only what was retired too early. */
static bool driver_fires(const struct program *program, int task)
{
    const struct edge_list *depends = &program->depends[task];
    for (int i = 0; program->driver == DRIVER_DATAFLOW && program->slots_safe && i < depends->count;
         i++)
        if (depends->items[i].distance == 0)
            return false;
    return true;
}

static void use_inboxes(const struct visitor *v, int rank)
{
    for (int task = 0; task < v->program->tasks; task++)
        if (driver_fires(v->program, task))
            use_inbox(v, rank, task);
}

void uses_of_admit(const struct program *program, int rank, use_visit *visit, void *arg)
{
    const struct visitor v = {program, visit, arg};
    if (!program->slots_safe)
        use(&v, OBJECT_SLOTS, rank, WAY_WRITE);
    use_inboxes(&v, rank);
}

void uses_of_retire(const struct program *program, int rank, use_visit *visit, void *arg)
{
    const struct visitor v = {program, visit, arg};
    use(&v, OBJECT_RETIRED, rank, WAY_WRITE);
    if (!program->slots_safe)
        use_inboxes(&v, rank);
}

void uses_of_start(const struct program *program, int stream, const struct op *op, use_visit *visit,
                   void *arg)
{
    const struct visitor v = {program, visit, arg};
    if (program->plan->machine.sm_slots && op->sm > 0)
        use(&v, OBJECT_RESIDENCY, program->streams[stream].rank, WAY_PUT);
}

/* ---- the table of uses ----------------------------------------------------------------------- */

bool use_conflicts(enum way way, int tag, const struct use *other)
{
    static const unsigned conflicts[] = {
        [WAY_READ] = 1u << WAY_WRITE,
        [WAY_WRITE] = ~0u,
        [WAY_PUT] = 1u << WAY_PUT | 1u << WAY_WRITE,
        [WAY_GET] = 1u << WAY_GET | 1u << WAY_WRITE,
        [WAY_ASK] = 1u << WAY_CHANGE | 1u << WAY_WRITE,
        [WAY_CHANGE] = 1u << WAY_ASK | 1u << WAY_WRITE,
        [WAY_RELEASE] = 1u << WAY_WRITE,
    };
    return conflicts[way] >> other->way & 1 && (tag < 0 || tag != other->tag);
}

/* One step being noted, or compared with what is noted. */
struct step {
    struct program *program;
    int agent, last;
    bool free;
};

static void note(void *arg, int object, enum way way, int tag)
{
    struct step *step = arg;
    struct program *p = step->program;
    struct use_table *uses = p->uses;
    for (int u = uses->first[object]; u >= 0; u = uses->items[u].next) {
        struct use *known = &uses->items[u];
        if (known->agent != step->agent || known->way != way || known->tag != tag)
            continue;
        known->last = step->last > known->last ? step->last : known->last;
        return;
    }
    if (!arena_grow(&p->arena, (void **)&uses->items, uses->count, &uses->cap, sizeof *uses->items))
        return; /* program_find_conflicts looks at the arena */
    uses->items[uses->count] = (struct use){step->agent, way, tag, step->last, uses->first[object]};
    uses->first[object] = (int)uses->count++;
}

static void compare(void *arg, int object, enum way way, int tag)
{
    struct step *step = arg;
    const struct use_table *uses = step->program->uses;
    for (int u = uses->first[object]; step->free && u >= 0; u = uses->items[u].next)
        step->free =
            uses->items[u].agent == step->agent || !use_conflicts(way, tag, &uses->items[u]);
}

/* ---- going through the program --------------------------------------------------------------- */

/* Does the body hold the lock it releases at operation `at`, whatever others do? */
static bool holds_lock(const struct program *program, const struct body *body, int at)
{
    int lock = program->ops[body->first + at].object;
    for (int i = at - 1; i >= 0; i--) {
        const struct op *op = &program->ops[body->first + i];
        if (op->object == lock && (op->kind == OP_LOCK || op->kind == OP_UNLOCK))
            return op->kind == OP_LOCK;
    }
    return false;
}

static void find_abused_locks(const struct program *program)
{
    for (size_t b = 0; b < program->body_count; b++)
        for (int i = 0; i < program->bodies[b].count; i++) {
            const struct op *op = &program->ops[program->bodies[b].first + i];
            if (op->kind == OP_UNLOCK && !holds_lock(program, &program->bodies[b], i))
                program->uses->lock_abused[op->object] = true;
        }
}

/* Which thread executes a body. */
static int *find_owners(struct program *program)
{
    int *owner = ARENA_ARRAY(&program->arena, program->body_count + 1, int);
    if (!owner)
        return NULL;
    for (int t = 0; !program->tasks && t < program->thread_count; t++)
        if (program->threads[t].body >= 0)
            owner[program->threads[t].body] = t;
    for (size_t i = 0; i < program->op_count; i++)
        if (program->ops[i].callback >= 0)
            owner[program->ops[i].object] = program->bodies[program->ops[i].object].thread =
                program->ops[i].callback;
    for (size_t b = 0; program->tasks && b < program->body_count; b++)
        owner[b] = program->worker[b];
    return owner;
}

static bool step_free(struct step *step, use_visit *visit)
{
    return visit == compare && step->free;
}

static void visit_drivers(struct program *program, use_visit *visit)
{
    program->admit_free = program->retire_free = program->take_free = true;
    for (int rank = 0; program->tasks && rank < program->ranks; rank++) {
        int agent = program_thread_agent(program, program->driver_thread[rank]);
        struct step admit = {program, agent, INT_MAX, true}, retire = admit;
        uses_of_admit(program, rank, visit, &admit);
        uses_of_retire(program, rank, visit, &retire);
        program->admit_free &= step_free(&admit, visit);
        program->retire_free &= step_free(&retire, visit);
    }
    for (int t = 0; program->tasks && t < program->thread_count; t++)
        if (program->threads[t].kind == THREAD_WORKER) {
            struct step take = {program, program_thread_agent(program, t), INT_MAX, true};
            uses_of_take(program, t, visit, &take);
            program->take_free &= step_free(&take, visit);
        }
}

static void visit_op(struct program *program, struct op *op, int thread, int last, use_visit *visit)
{
    struct step step = {program, program_thread_agent(program, thread), last, true};
    uses_of_op(program, op, thread, visit, &step);
    op->free = step_free(&step, visit);
    if (op->stream < 0 || !op_pushes(op->kind))
        return;
    struct step start = {program, program_stream_agent(program, op->stream), INT_MAX, true};
    uses_of_start(program, op->stream, op, visit, &start);
}

static void visit_steps(struct program *program, const int *owner, use_visit *visit)
{
    visit_drivers(program, visit);
    for (size_t b = 0; b < program->body_count; b++) {
        const struct body *body = &program->bodies[b];
        bool once = program->threads[owner[b]].kind == THREAD_HOST;
        for (int i = 0; i < body->count; i++)
            visit_op(program, &program->ops[body->first + i], owner[b], once ? i : INT_MAX, visit);
    }
}

static bool allocate(struct program *program)
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
                               [OBJECT_RESIDENCY] = program->ranks};
    struct use_table *uses = program->uses = ARENA_ARRAY(&program->arena, 1, struct use_table);
    if (!uses)
        return false;
    int count = 0;
    for (int kind = 0; kind < OBJECT_KINDS; kind++) {
        uses->base[kind] = count;
        count += sizes[kind];
    }
    uses->first = ARENA_ARRAY(&program->arena, (size_t)count + 1, int);
    uses->lock_abused = ARENA_ARRAY(&program->arena, (size_t)program->lock_count + 1, bool);
    for (int object = 0; uses->first && object < count; object++)
        uses->first[object] = -1;
    return uses->first && uses->lock_abused;
}

enum status program_find_conflicts(struct program *program, struct diag *diag)
{
    int *owner = find_owners(program);
    if (!owner || !allocate(program))
        return diag_no_memory(diag);
    find_abused_locks(program);
    visit_steps(program, owner, note);
    if (program->arena.failed)
        return diag_no_memory(diag);
    visit_steps(program, owner, compare);
    return STATUS_OK;
}
