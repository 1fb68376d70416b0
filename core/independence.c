/*
 * independence.c - which steps can be done first without losing any behaviour.
 *
 * A step is *free* if, from any state where it is enabled, nothing another agent can do disables
 * it, is disabled by it, or leads to a different state when done before instead of after it. A free
 * step is a singleton persistent set (Godefroid 1996, ch. 4): exploring it alone loses no deadlock
 * and no violation that another interleaving would show. The facts used, each local to one table:
 *
 *   - A stream is a FIFO: its push at the tail and its start or finish at the head commute. Two
 *     threads that push to one stream do not commute; nor does a push with another thread's sync.
 *   - The same for communicators (issue order), hardware queues, bounded queues and worker queues.
 *   - Flags are only ever set; awaiting one stays enabled. Task flags and events are re-armed when
 * an iteration is admitted, but with slots >= depth + distance never while someone may look at them
 *     (program->slots_safe): re-arming (T, j) for iteration i >= j + slots needs iteration i -
 * depth >= j + distance to be retired, so all that could look at (T, j) has been submitted.
 *     Not so when slots are cleared at submission, or when dependences on retired iterations are
 *     skipped: what an await learns then depends on whether the driver has retired yet.
 *   - Finishing device work only enables others. Starting it takes resources only under sm_slots.
 *   - Tickets are numbered in advance (clock, or data-flow by iteration), each once, so turns do not
 *     depend on timing. Numbered at firing time they do; then the firing step is not free. A host
 *     program may number its tickets as it likes: there turns are free only within one thread.
 *   - Releasing a lock only enables others, if it is held by who releases it.
 *   - Under data-flow the end of a submission may put instances into worker queues. It is free
 * unless one of these queues can also be filled by another thread.
 *
 * Happens-before knowledge is carried along exactly these objects, so it commutes where they do.
 */
#include "lower.h"

enum { NOBODY = -1, MANY = -2 };

static void note(int *user, int thread)
{
    *user = *user == NOBODY || *user == thread ? thread : MANY;
}

struct users {
    int *stream;        /* threads that push to it or synchronise with it */
    int *stream_pusher; /* threads that push to it */
    int *comm;          /* per member: threads that issue on it */
    int *issuer;        /* per rank: threads that issue on any communicator */
    int *hw_queue;
    int *device_sync; /* per rank: threads that synchronise with the device or load kernels */
    int *pusher;      /* per rank: threads that push anywhere */
    int *event, *signaler, *putter, *getter, *lock;
    int *ticket;       /* per rank: threads that take or serve tickets */
    bool *lock_abused; /* per lock: somebody releases what he may not hold */
    int *lifetime;     /* per rank: threads that allocate or free */
    bool *worker_many; /* per thread: its queue is filled by several threads (data-flow) */
};

static int *fresh(struct program *program, int count)
{
    int *users = ARENA_ARRAY(&program->arena, (size_t)count, int);
    for (int i = 0; users && i < count; i++)
        users[i] = NOBODY;
    return users;
}

static bool allocate(struct program *program, struct users *users)
{
    users->stream = fresh(program, program->stream_count);
    users->stream_pusher = fresh(program, program->stream_count);
    users->comm = fresh(program, program->member_count);
    users->issuer = fresh(program, program->ranks);
    users->hw_queue = fresh(program, program->hw_queue_count);
    users->device_sync = fresh(program, program->ranks);
    users->pusher = fresh(program, program->ranks);
    users->event = fresh(program, program->event_families);
    users->signaler = fresh(program, program->flag_families);
    users->putter = fresh(program, program->queue_count);
    users->getter = fresh(program, program->queue_count);
    users->lock = fresh(program, program->lock_count);
    users->ticket = fresh(program, program->ranks);
    users->lock_abused = ARENA_ARRAY(&program->arena, (size_t)program->lock_count, bool);
    users->lifetime = fresh(program, program->ranks);
    users->worker_many = ARENA_ARRAY(&program->arena, (size_t)program->thread_count, bool);
    return !program->arena.failed;
}

static void note_push(const struct program *program, struct users *users, const struct op *op,
                      int thread)
{
    const struct stream_desc *stream = &program->streams[op->stream];
    note(&users->stream[op->stream], thread);
    note(&users->stream_pusher[op->stream], thread);
    note(&users->pusher[stream->rank], thread);
    if (stream->hw_queue >= 0)
        note(&users->hw_queue[stream->hw_queue], thread);
    if (op->comm >= 0) {
        note(&users->comm[program->comms[op->comm].first_member + op->member], thread);
        note(&users->issuer[stream->rank], thread);
    }
}

static void note_op(const struct program *program, struct users *users, const struct op *op,
                    int thread)
{
    int rank = program->threads[thread].rank;
    switch (op->kind) {
    case OP_SYNC:
        if (op->sync == SYNC_STREAM)
            note(&users->stream[op->stream], thread);
        else if (op->sync == SYNC_EVENT)
            note(&users->event[op->object], thread);
        else
            note(&users->device_sync[rank], thread);
        break;
    case OP_RECORD:
    case OP_WAIT: note(&users->event[op->object], thread); break;
    case OP_SIGNAL: note(&users->signaler[op->object], thread); break;
    case OP_PUT: note(&users->putter[op->object], thread); break;
    case OP_GET: note(&users->getter[op->object], thread); break;
    case OP_LOCK:
    case OP_UNLOCK: note(&users->lock[op->object], thread); break;
    case OP_TICKET:
    case OP_SERVE: note(&users->ticket[rank], thread); break;
    case OP_ALLOC:
    case OP_FREE:
    case OP_RECORD_STREAM: note(&users->lifetime[rank], thread); break;
    default: break;
    }
    if (op_pushes(op->kind))
        note_push(program, users, op, thread);
}

/* Data-flow: who can put instances of `task` into its worker's queue? Its dependences' workers at
   the end of their submissions; the driver at admission if it waits for nothing of its own
   iteration. */
static void note_firing(const struct program *program, int *filler)
{
    for (int rank = 0; rank < program->ranks; rank++)
        for (int task = 0; task < program->tasks; task++) {
            int worker = program->worker[rank * program->tasks + task];
            const struct edge_list *depends = &program->depends[task];
            bool own = false;
            for (int i = 0; i < depends->count; i++) {
                own |= depends->items[i].distance == 0;
                note(&filler[worker],
                     program->worker[rank * program->tasks + depends->items[i].task]);
            }
            if (!own)
                note(&filler[worker], program->driver_thread[rank]);
        }
}

static bool push_free(const struct program *program, const struct users *users, const struct op *op,
                      int thread)
{
    const struct stream_desc *stream = &program->streams[op->stream];
    int rank = stream->rank;
    bool alone = users->stream[op->stream] == thread;
    int sync = users->device_sync[rank];
    alone &= sync == NOBODY || sync == thread;
    if (stream->hw_queue >= 0)
        alone &= users->hw_queue[stream->hw_queue] == thread;
    if (op->comm >= 0) {
        alone &= users->comm[program->comms[op->comm].first_member + op->member] == thread;
        if (program->plan->machine.launch_order_implicit)
            alone &= users->issuer[rank] == thread;
    }
    int lifetime = users->lifetime[rank];
    return alone && (lifetime == NOBODY || (lifetime == thread && users->pusher[rank] == thread));
}

static bool event_free(const struct program *program, const struct users *users,
                       const struct op *op, int thread)
{
    if (program->tasks == 0)
        return users->event[op->object] == thread;
    return program->slots_safe && program->plan->pipeline.retired_dep == RETIRED_DEP_WAIT;
}

/* May the end of this task's submission be reordered with everything else? */
static bool complete_free(const struct program *program, const struct users *users, int rank,
                          int task)
{
    if (program->driver != DRIVER_DATAFLOW)
        return true;
    if (program->plan->pipeline.ticket_at == TICKET_AT_FIRE ||
        program->plan->pipeline.forget_done != FORGET_NEVER)
        return false;
    const struct edge_list *fires = &program->fires[task];
    for (int i = 0; i < fires->count; i++)
        if (users->worker_many[program->worker[rank * program->tasks + fires->items[i].task]])
            return false;
    return true;
}

static bool sync_free(const struct program *program, const struct users *users, const struct op *op,
                      int thread)
{
    if (op->sync == SYNC_STREAM) {
        int pusher = users->stream_pusher[op->stream];
        return pusher == NOBODY || pusher == thread;
    }
    if (op->sync == SYNC_EVENT)
        return event_free(program, users, op, thread);
    int pusher = users->pusher[program->threads[thread].rank];
    return pusher == NOBODY || pusher == thread;
}

static bool op_free(const struct program *program, const struct users *users, const struct op *op,
                    int thread)
{
    bool pipeline_flag = program->tasks && op->distance >= 0;
    switch (op->kind) {
    case OP_HOST:
    case OP_TAKE: return true;
    case OP_TICKET:
    case OP_SERVE:
        return program->tasks > 0 || users->ticket[program->threads[thread].rank] == thread;
    case OP_UNLOCK: return users->lock[op->object] == thread || !users->lock_abused[op->object];
    case OP_LAUNCH:
    case OP_COPY:
    case OP_COLLECTIVE:
    case OP_GROUP:
    case OP_CALLBACK:
    case OP_ALLOC: return push_free(program, users, op, thread);
    case OP_RECORD:
    case OP_WAIT:
        return push_free(program, users, op, thread) && event_free(program, users, op, thread);
    case OP_SYNC: return sync_free(program, users, op, thread);
    case OP_SIGNAL:
    case OP_AWAIT:
        return pipeline_flag ? event_free(program, users, op, thread)
                             : users->signaler[op->object] != MANY;
    case OP_PUT: return users->putter[op->object] == thread;
    case OP_GET: return users->getter[op->object] == thread;
    case OP_LOCK: return users->lock[op->object] == thread;
    case OP_FREE:
    case OP_RECORD_STREAM: {
        int rank = program->threads[thread].rank;
        return users->lifetime[rank] == thread && users->pusher[rank] == thread;
    }
    case OP_COMPLETE: return complete_free(program, users, program->threads[thread].rank, op->task);
    default: return false;
    }
}

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

static void find_abused_locks(const struct program *program, struct users *users)
{
    for (size_t b = 0; b < program->body_count; b++)
        for (int i = 0; i < program->bodies[b].count; i++) {
            const struct op *op = &program->ops[program->bodies[b].first + i];
            if (op->kind == OP_UNLOCK && !holds_lock(program, &program->bodies[b], i))
                users->lock_abused[op->object] = true;
        }
}

static void for_each_body(struct program *program, struct users *users, bool decide)
{
    for (int b = 0; b < (int)program->body_count; b++) {
        int thread = 0;
        if (program->tasks)
            thread = program->worker[b];
        for (int t = 0; !program->tasks && t < program->thread_count; t++)
            if (program->threads[t].body == b)
                thread = t;
        const struct body *body = &program->bodies[b];
        for (int i = 0; i < body->count; i++) {
            struct op *op = &program->ops[body->first + i];
            int owner = thread;
            if (op->callback >= 0 && !decide)
                program->bodies[op->object].thread = op->callback;
            if (body->thread > 0)
                owner = body->thread;
            if (decide)
                op->free = op_free(program, users, op, owner);
            else
                note_op(program, users, op, owner);
        }
    }
}

static void find_driver_free(struct program *program, struct users *users, int *filler)
{
    const struct pipeline *pipeline = &program->plan->pipeline;
    bool dataflow = program->driver == DRIVER_DATAFLOW;
    bool skips = pipeline->retired_dep == RETIRED_DEP_SKIP;
    bool forgets = dataflow && pipeline->forget_done != FORGET_NEVER;
    program->retire_free = program->slots_safe && !skips && !forgets;
    program->admit_free =
        program->slots_safe && !(dataflow && pipeline->ticket_at == TICKET_AT_FIRE);
    if (!dataflow)
        return;
    note_firing(program, filler);
    for (int t = 0; t < program->thread_count; t++) {
        users->worker_many[t] = filler[t] == MANY;
        if (filler[t] == MANY)
            program->admit_free = false;
    }
}

enum status program_find_free(struct program *program, struct diag *diag)
{
    struct users users = {0};
    int *filler = fresh(program, program->thread_count);
    if (!filler || !allocate(program, &users))
        return diag_no_memory(diag);
    for_each_body(program, &users, false);
    find_abused_locks(program, &users);
    if (program->tasks)
        find_driver_free(program, &users, filler);
    for_each_body(program, &users, true);
    return STATUS_OK;
}
