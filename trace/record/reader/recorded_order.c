/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded_order.c - what happens before what in every run: between threads, and between the work of streams and threads.
 *
 * Threads. Each thread has a vector clock: how many items of each other thread it comes after; and a list of the places where
 * an entry of that clock grew, because a thread that comes after a place of this one comes after all that this one came after
 * there. A host function comes after the call that pushed it. The clocks hold only what was seen, so the count of uses without
 * an order may be too large, and never too small. Such a use is a mistake of the program, or the program orders its
 * threads by means that are not seen: nobody can tell which.
 *
 * Streams. The work of a stream is its pushes, numbered; a record is a push here, too. A *frontier* says of each stream how
 * many of its first pushes are complete. A stream has a frontier of all that its next work comes behind, by events and by the
 * order of the legacy stream; an event has that of its record. What a thread has *observed* to be complete is the
 * frontier of all that it waited for, or had the answer yes to.
 *
 *     thread A   push to s   record e in s             push to t        wait for all of t    unlock
 *     stream t                              wait for e
 *     thread B                                                                                  lock   has observed s up to e
 *
 * Observations go to the threads that come after this one, as entries of clocks do.
 *
 * The number of a push means something only where all of the stream's pushes came in an order that was seen; in another run
 * of an *unordered* stream it may be that of another push. Frontiers hold nothing of such a stream and nothing is observed
 * of it, nor by a wait that may come before the record that it found.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/sort.h"

#include "recorded_internal.h"

/*
 * Which locks of a recording the plan needs.
 *
 * A thread's operations between LOCK and UNLOCK are a *section*. Without a lock there are more interleavings, so what is proved
 * without it holds with it; leaving one out can only show a violation that the lock prevents. It prevents none, and is left out,
 * where each of its sections is no more than one push: a push is one step in any case, which nothing comes between; its
 * thread waits for nothing in the section, so no thread waits for that one for long; and what the section tells the next
 * one orders no accesses of the two, for those are the device's. A lock stays where several threads have sections of it, and one
 * of these has more steps, a wait, an access of the host or another lock that several threads take.
 *
 * Of a lock that stays a section without a step is left out, too, if no section of that lock waits or takes another such lock:
 * then whoever has it gives it back, so the empty section ends whatever others do. It tells its thread what came before it in the
 * other one, in one order of the two; in the other order it tells nothing, and hides nothing. PyTorch's allocator has hundreds
 * of them in a step.
 */

/* What is found out about a lock. */
struct section_lock {
    size_t thread; /* that has a section, + 1; 0: none yet */
    int home;      /* of that thread */
    bool several;  /* threads have sections */
    bool apart;    /* ... and are at home on different ranks, which share no locks */
    bool shared;   /* some sections may be at once, as no plan's may */
    bool
        asks; /* a section has a query, which is a wait in the plan and was none: it must not keep the lock */
    bool matters; /* a section needs the lock */
    bool waits;   /* in a section */
    bool nests;   /* with another lock that several threads take */
    int name;     /* plan->locks; -1: none */
};

/* True if threads may wait for each other by it. */
static bool lock_is_contended(const struct section_lock *lock)
{
    return lock->several && !lock->apart && !lock->shared && !lock->asks;
}

/* A section under way. */
struct lock_section {
    uint64_t lock;
    size_t steps, begin; /* its operation */
};

struct lock_sections {
    struct section_lock *locks; /* by number */
    size_t count;
    struct lock_section open[RECORDED_HELD];
    int open_count;
};

static uint64_t largest_lock(const struct recorded_process *process)
{
    uint64_t most = 0;
    for (size_t t = 0; t < process->tapes.thread_count; t++)
        for (size_t i = 0; i < process->threads[t].ops.count; i++)
            if (process->threads[t].ops.items[i].lock > most)
                most = process->threads[t].ops.items[i].lock;
    return most;
}

/* An operation under all locks that its thread has. */
static void note_locked_step(struct lock_sections *sections, const struct recorded_op *op)
{
    const bool waits = !op->asked && (op->op.kind == OP_SYNC ||
                                      (op->op.kind == OP_AWAIT && op->after_thread >= 0) ||
                                      host_op_is_pageable(&op->op));
    const bool is_step =
        !op->begins && !op->ends && (op->op.kind != OP_AWAIT || waits || op->asked);
    const bool matters = waits || (!op_pushes(op->op.kind) && op->access_count > 0);
    for (int i = 0; is_step && i < sections->open_count; i++) {
        struct section_lock *lock = &sections->locks[sections->open[i].lock];
        lock->waits |= waits;
        lock->asks |= op->asked;
        lock->matters |= matters || ++sections->open[i].steps > 1;
    }
}

static void open_section(struct lock_sections *sections, uint64_t number, size_t at)
{
    struct section_lock *lock = &sections->locks[number];
    for (int i = 0; i < sections->open_count; i++) {
        struct section_lock *outer = &sections->locks[sections->open[i].lock];
        if (outer != lock && lock_is_contended(outer) && lock_is_contended(lock))
            outer->matters = lock->matters = outer->nests = lock->nests = true;
    }
    if (sections->open_count < RECORDED_HELD)
        sections->open[sections->open_count++] = (struct lock_section){.lock = number, .begin = at};
    else
        lock->matters = lock->nests = true;
}

static void close_section(struct lock_sections *sections, uint64_t number, size_t thread, int home)
{
    struct section_lock *lock = &sections->locks[number];
    for (int i = sections->open_count - 1; i >= 0; i--)
        if (sections->open[i].lock == number) {
            sections->open[i] = sections->open[--sections->open_count];
            break;
        }
    lock->several |= lock->thread > 0 && lock->thread != thread + 1;
    lock->apart |= lock->thread > 0 && lock->home != home;
    lock->thread = thread + 1;
    lock->home = home;
}

static void look_at_sections(struct lock_sections *sections, const struct recorded_process *process,
                             size_t thread, int home)
{
    const struct recorded_ops *ops = &process->threads[thread].ops;
    sections->open_count = 0;
    for (size_t i = 0; i < ops->count; i++) {
        const struct recorded_op *op = &ops->items[i];
        if (op->op.kind == OP_LOCK) {
            open_section(sections, op->lock, i);
            sections->locks[op->lock].shared |= op->shared;
        } else if (op->op.kind == OP_UNLOCK)
            close_section(sections, op->lock, thread, home);
        else
            note_locked_step(sections, op);
    }
    while (sections->open_count > 0) /* it never gave them back */
        close_section(sections, sections->open[0].lock, thread, home);
}

static bool name_needed_locks(struct recorded_job *job, const struct recorded_process *process,
                              struct lock_sections *sections)
{
    size_t named = 0;
    for (size_t i = 1; i < sections->count; i++) {
        struct section_lock *lock = &sections->locks[i];
        job->waiting_locks += lock->waits;
        if (!lock_is_contended(lock) || !lock->matters)
            continue;
        const char *name = arena_printf(job->arena, "%d.lock%zu", process->first_rank, ++named);
        lock->name = name ? names_intern(&job->plan->locks, job->arena, name) : -1;
        if (lock->name < 0)
            return false;
    }
    return true;
}

/* Gives the operations of a thread the names of their locks, but for empty sections that may go. */
static void name_sections(struct lock_sections *sections, struct recorded_ops *ops)
{
    sections->open_count = 0;
    for (size_t i = 0; i < ops->count; i++) {
        struct recorded_op *op = &ops->items[i];
        if (op->lock == 0) {
            if (!op->begins && !op->ends)
                for (int o = 0; o < sections->open_count; o++)
                    sections->open[o].steps++;
            continue;
        }
        const struct section_lock *lock = &sections->locks[op->lock];
        op->op.object = lock->name;
        if (op->op.kind == OP_LOCK) {
            open_section(sections, op->lock, i);
            continue;
        }
        int o = sections->open_count - 1;
        while (o >= 0 && sections->open[o].lock != op->lock)
            o--;
        if (o < 0)
            continue;
        if (sections->open[o].steps == 0 && !lock->waits && !lock->nests)
            op->op.object = ops->items[sections->open[o].begin].op.object = -1;
        sections->open[o] = sections->open[--sections->open_count];
    }
}

bool recorded_locks_name(struct recorded_job *job, struct recorded_process *process,
                         const int *homes)
{
    struct lock_sections sections = {.count = (size_t)largest_lock(process) + 1};
    sections.locks = ARENA_ARRAY(job->arena, sections.count, struct section_lock);
    if (!sections.locks)
        return false;
    for (size_t i = 0; i < sections.count; i++)
        sections.locks[i] = (struct section_lock){.name = -1};
    /* The second time it is known which locks several threads take: these nest. */
    for (int times = 0; times < 2; times++)
        for (size_t t = 0; t < process->tapes.thread_count; t++)
            look_at_sections(&sections, process, t, homes[t]);
    if (!name_needed_locks(job, process, &sections))
        return false;
    for (size_t t = 0; t < process->tapes.thread_count; t++)
        name_sections(&sections, &process->threads[t].ops);
    return true;
}

/* Sections without a call are no items. */
bool recorded_locks_say(struct recorded_job *job)
{
    const size_t count = job->waiting_locks;
    return count == 0 ||
           plan_add_unrecorded(
               job->plan,
               arena_printf(job->arena, "who waits for %zu lock%s", count, count == 1 ? "" : "s"),
               "a thread waits while it holds one, and threads that take it without "
               "a call are not recorded");
}

/* ---- host functions ------------------------------------------------------------------------------ */

static int recorded_order_by_number(const void *left, const void *right)
{
    const struct recorded_host_call *a = left, *b = right;
    return compare_u64(a->number, b->number);
}

/* A function may begin before the call that pushes it has ended. So all these calls are looked up beforehand. */
static bool list_host_calls(struct recorded_job *job, struct recorded_process *process)
{
    for (size_t t = 0; t < process->tapes.thread_count; t++) {
        const struct tape_thread *tape = &process->tapes.threads[t];
        for (size_t i = 0; i < tape->count; i++) {
            if (tape->items[i]->kind != RECORDING_HOST_CALL)
                continue;
            if (!ARENA_GROW(job->arena, process->host_calls, process->host_call_count,
                            process->host_call_cap))
                return false;
            process->host_calls[process->host_call_count++] =
                (struct recorded_host_call){tape->items[i]->word[1], {t, i + 1, 0}};
        }
    }
    SORT(process->host_calls, process->host_call_count, recorded_order_by_number);
    return true;
}

/* ---- objects of several threads ------------------------------------------------------------------ */

/* It may turn out later than the object orders threads. So they are looked up beforehand. */
static bool list_several(struct recorded_job *job, struct recorded_process *process)
{
    for (size_t t = 0; t < process->tapes.thread_count; t++)
        for (size_t i = 0; i < process->tapes.threads[t].count; i++) {
            const struct recording_item *item = process->tapes.threads[t].items[i];
            if (item->kind == RECORDING_SIGNAL && item->word[0] <= RECORDING_LOCKS)
                process->is_signalled[item->word[0]] = true;
            if (item->kind != RECORDING_SEVERAL)
                continue;
            if (!ARENA_GROW(job->arena, process->several, process->several_count,
                            process->several_cap))
                return false;
            process->several[process->several_count++] = item->word[0];
        }
    sort_u64(process->several, process->several_count);
    return true;
}

bool walk_order_has_several(const struct walk *walk, uint64_t object)
{
    const struct recorded_process *process = walk->process;
    return object != 0 && process->several_count > 0 &&
           bsearch(&object, process->several, process->several_count, sizeof object,
                   compare_items_u64);
}

/* ---- locks and their conditions ------------------------------------------------------------------ */

bool walk_order_excludes(const struct walk *walk, uint64_t lock)
{
    return lock != 0 && lock <= RECORDING_LOCKS && walk->job->options->order == RECORDED_WAITS &&
           !walk->process->is_signalled[lock];
}

/* NULL: no memory. */
static struct recorded_signal *need_signal(const struct walk *walk, uint64_t lock, size_t thread,
                                           size_t follower)
{
    struct recorded_process *process = walk->process;
    for (size_t i = process->signals_of[lock]; i > 0; i = process->signals[i - 1].next)
        if (process->signals[i - 1].thread == thread &&
            process->signals[i - 1].follower == follower)
            return &process->signals[i - 1];
    if (!ARENA_GROW(walk->job->arena, process->signals, process->signal_count, process->signal_cap))
        return NULL;
    process->signals[process->signal_count] = (struct recorded_signal){
        .thread = thread, .follower = follower, .next = process->signals_of[lock]};
    process->signals_of[lock] = ++process->signal_count;
    return &process->signals[process->signal_count - 1];
}

bool walk_order_signal(const struct walk *walk, uint64_t lock)
{
    struct recorded_signal *own =
        lock > RECORDING_LOCKS ? NULL : need_signal(walk, lock, walk->number, SIZE_MAX);
    if (lock > RECORDING_LOCKS)
        return true;
    if (!own)
        return false;
    own->times++;
    return true;
}

static bool is_signal(const struct tape_thread *tape, uint64_t item, uint64_t lock)
{
    return item < tape->count && tape->items[item]->kind == RECORDING_SIGNAL &&
           tape->items[item]->word[0] == lock;
}

/* The other thread may have signalled with the lock, and UNLOCK stands between, or it does so behind giving it back. Where it has
   signalled several times since it was asked last, it may be ahead by luck. */
bool walk_order_find_luck(const struct walk *walk, bool *out)
{
    const uint64_t lock = walk->item->word[3], count = walk->item->word[1];
    const size_t other = (size_t)walk->item->word[0] - 1;
    const struct tape_thread *tape = &walk->process->tapes.threads[other];
    *out = true;
    if (lock == 0 || lock > RECORDING_LOCKS)
        return true;
    const bool soon = is_signal(tape, count, lock) && tape->read <= count;
    const bool told = soon || is_signal(tape, count - 1, lock) || is_signal(tape, count - 2, lock);
    const struct recorded_signal *own = need_signal(walk, lock, other, SIZE_MAX);
    const uint64_t times = own ? own->times + soon : 0;
    struct recorded_signal *known = need_signal(walk, lock, other, walk->number);
    if (!own || !known)
        return false;
    *out = !told || times > known->times + 1;
    known->times = times;
    return true;
}

/* ---- clocks -------------------------------------------------------------------------------------- */

/* Items of a thread that neither uses a device nor the memory of one. */
static bool relays(const struct tape_thread *tape)
{
    for (size_t i = 0; i < tape->count; i++)
        switch ((enum recording_kind)tape->items[i]->kind) {
        case RECORDING_PROCESS:
        case RECORDING_THREAD:
        case RECORDING_TEXT:
        case RECORDING_AFTER:
        case RECORDING_SEVERAL:
        case RECORDING_LOCK:
        case RECORDING_UNLOCK:
        case RECORDING_SIGNAL:
        case RECORDING_END:
        case RECORDING_UNSEEN:
        case RECORDING_DEVICE:
        case RECORDING_WHERE: break;
        default: return false;
        }
    return true;
}

bool walk_order_begin(struct recorded_job *job, struct recorded_process *process)
{
    const size_t count = process->tapes.thread_count;
    for (size_t i = 0; i < count; i++) {
        struct recorded_thread *thread = &process->threads[i];
        thread->relays = relays(&process->tapes.threads[i]);
        thread->after = ARENA_ARRAY(job->arena, count, uint64_t);
        thread->locked = ARENA_ARRAY(job->arena, count, uint64_t);
        thread->orders_merged = ARENA_ARRAY(job->arena, count, size_t);
        thread->observations_merged = ARENA_ARRAY(job->arena, count, size_t);
        if (!thread->after || !thread->locked || !thread->orders_merged ||
            !thread->observations_merged)
            return false;
        memset(thread->after, 0, count * sizeof *thread->after);
        memset(thread->locked, 0, count * sizeof *thread->locked);
        memset(thread->orders_merged, 0, count * sizeof *thread->orders_merged);
        memset(thread->observations_merged, 0, count * sizeof *thread->observations_merged);
    }
    process->signals_of = ARENA_ARRAY(job->arena, RECORDING_LOCKS + 1, size_t);
    process->is_signalled = ARENA_ARRAY(job->arena, RECORDING_LOCKS + 1, bool);
    if (!process->signals_of || !process->is_signalled)
        return false;
    memset(process->is_signalled, 0, (RECORDING_LOCKS + 1) * sizeof *process->is_signalled);
    memset(process->signals_of, 0, (RECORDING_LOCKS + 1) * sizeof *process->signals_of);
    return list_host_calls(job, process) && list_several(job, process);
}

static bool come_after(const struct walk *walk, struct recorded_followed order)
{
    struct recorded_thread *thread = walk->thread;
    assert(order.thread < walk->process->tapes.thread_count);
    if (thread->after[order.thread] >= order.count)
        return true;
    if (!ARENA_GROW(walk->job->arena, thread->orders, thread->order_count, thread->order_cap))
        return false;
    thread->after[order.thread] = order.count;
    order.place = thread->place;
    thread->orders[thread->order_count++] = order;
    return true;
}

bool walk_order_follow(const struct walk *walk, const struct recorded_followed *order,
                       walk_add_after *add)
{
    const struct recorded_thread *from = &walk->process->threads[order->thread];
    size_t *merged = &walk->thread->orders_merged[order->thread];
    for (; *merged < from->order_count && from->orders[*merged].place <= order->count; ++*merged) {
        struct recorded_followed other = from->orders[*merged];
        other.luck |= order->luck;
        other.in_time |= order->in_time;
        const bool is_news =
            other.thread != walk->number && walk->thread->after[other.thread] < other.count;
        if (is_news && add && from->relays && !walk->process->threads[other.thread].relays &&
            !add(walk, &other))
            return false;
        if (!come_after(walk, other))
            return false;
    }
    if (add && !from->relays && !add(walk, order))
        return false;
    return come_after(walk, *order);
}

bool walk_order_host(const struct walk *walk)
{
    const struct recorded_process *process = walk->process;
    const struct recorded_host_call key = {.number = walk->item->word[0]};
    const struct recorded_host_call *found =
        process->host_call_count == 0
            ? NULL
            : bsearch(&key, process->host_calls, process->host_call_count,
                      sizeof *process->host_calls, recorded_order_by_number);
    const struct recorded_followed order = {.thread = found ? found->call.thread : 0,
                                            .count = found ? found->call.place : 0};
    return !found || walk_order_follow(walk, &order, NULL);
}

bool walk_order_is_behind(const struct walk *walk, const struct recorded_use *use)
{
    return walk->thread->in_host_function || walk->job->options->order == RECORDED_SEEN ||
           use->place == 0 || use->thread == walk->number ||
           walk->thread->after[use->thread] >= use->place;
}

static bool recorded_order_holds(const struct recorded_thread *thread, uint64_t lock)
{
    for (int i = 0; i < thread->held_count; i++)
        if (thread->held[i] == lock)
            return true;
    return false;
}

void walk_order_lock(const struct walk *walk, uint64_t lock, bool takes)
{
    struct recorded_thread *thread = walk->thread;
    if (takes && thread->held_count < RECORDED_HELD)
        thread->held[thread->held_count++] = lock;
    for (int i = thread->held_count - 1; !takes && i >= 0; i--)
        if (thread->held[i] == lock) {
            thread->held[i] = thread->held[--thread->held_count];
            return;
        }
}

void walk_order_use(const struct walk *walk, const struct recorded_use *before)
{
    walk->job->unordered_uses +=
        !walk_order_is_behind(walk, before) && !recorded_order_holds(walk->thread, before->lock);
}

struct recorded_use walk_order_here(const struct walk *walk)
{
    const struct recorded_thread *thread = walk->thread;
    const uint64_t lock = thread->held_count > 0 ? thread->held[thread->held_count - 1] : 0;
    return thread->in_host_function ? (struct recorded_use){0}
                                    : (struct recorded_use){.thread = walk->number,
                                                            .place = thread->place,
                                                            .lock = lock};
}

static bool recorded_order_overlap(const struct recorded_access *one,
                                   const struct recorded_access *other)
{
    const uint64_t one_end = one->to ? one->to : one->from + 1,
                   other_end = other->to ? other->to : other->from + 1;
    return one->from < other_end && other->from < one_end;
}

void walk_order_accesses(const struct walk *walk, const struct recorded_op *op)
{
    for (size_t i = 0; i < op->access_count; i++) {
        const struct recorded_access *access = &op->accesses[i];
        struct recorded_block *block = &walk->process->blocks[access->block];
        if (recorded_order_overlap(access, &block->last_write))
            walk_order_use(walk, &block->writer);
        else if (access->write && recorded_order_overlap(access, &block->last_read))
            walk_order_use(walk, &block->reader);
        *(access->write ? &block->last_write : &block->last_read) = *access;
        *(access->write ? &block->writer : &block->reader) = walk_order_here(walk);
    }
}

/* ---- frontiers ----------------------------------------------------------------------------------- */

/* The place of the stream in the list, or where it would stand. */
static size_t frontier_place(const struct recorded_frontier *list, size_t stream)
{
    return SORT_FIRST(i, 0, list->count, list->items[i].stream >= stream);
}

static bool frontier_has(const struct recorded_frontier *list, size_t stream, uint64_t pushes)
{
    const size_t place = frontier_place(list, stream);
    return place < list->count && list->items[place].stream == stream &&
           list->items[place].pushes >= pushes;
}

bool walk_frontier_includes(const struct recorded_stream *stream, size_t other, uint64_t pushes)
{
    return !stream->unordered && frontier_has(&stream->frontier, other, pushes);
}

/* A stream that has ended is not added: a program that makes them again and again has no long lists. */
static bool frontier_add(const struct walk *walk, struct recorded_frontier *list, size_t stream,
                         uint64_t pushes)
{
    const size_t place = frontier_place(list, stream);
    if (place < list->count && list->items[place].stream == stream) {
        if (pushes > list->items[place].pushes)
            list->items[place].pushes = pushes;
        return true;
    }
    assert(stream < walk->process->stream_count && pushes <= walk->process->streams[stream].pushes);
    if (!walk->process->streams[stream].live || pushes == 0)
        return true;
    if (!ARENA_GROW(walk->job->arena, list->items, list->count, list->cap))
        return false;
    memmove(&list->items[place + 1], &list->items[place],
            (list->count - place) * sizeof *list->items);
    list->items[place].stream = stream;
    list->items[place].pushes = pushes;
    list->count++;
    return true;
}

/* The first pushes of a stream, and what these come behind. */
static bool frontier_add_all(const struct walk *walk, struct recorded_frontier *list, size_t stream,
                             uint64_t pushes, const struct recorded_frontier *frontier)
{
    if (frontier_has(list, stream, pushes))
        return true;
    for (size_t i = 0; i < frontier->count; i++)
        if (!frontier_add(walk, list, frontier->items[i].stream, frontier->items[i].pushes))
            return false;
    return frontier_add(walk, list, stream, pushes);
}

static size_t recorded_order_stream_index(const struct walk *walk,
                                          const struct recorded_stream *stream)
{
    return (size_t)(stream - walk->process->streams);
}

/* True if all work of the stream so far comes in front of the item, in every run. */
static bool recorded_order_is_ordered(const struct walk *walk, const struct recorded_stream *stream)
{
    return stream->capture < 0 && !stream->unordered && walk_order_is_behind(walk, &stream->used);
}

bool walk_frontier_push(const struct walk *walk, struct recorded_stream *stream)
{
    const struct recorded_process *process = walk->process;
    for (size_t i = 0; stream->blocking && stream->capture < 0 && i < process->stream_count; i++) {
        const struct recorded_stream *other = &process->streams[i];
        if (other != stream && other->device == stream->device && other->pushes > 0 &&
            recorded_comes_before(other, stream) && recorded_order_is_ordered(walk, other) &&
            !frontier_add_all(walk, &stream->frontier, i, other->pushes, &other->frontier))
            return false;
    }
    return true;
}

bool walk_frontier_record(const struct walk *walk, struct recorded_event *event,
                          struct recorded_stream *stream)
{
    event->stream = recorded_order_stream_index(walk, stream);
    event->pushes = event->implied = stream->pushes;
    event->frontier.count = 0;
    if (stream->unordered || stream->capture >= 0)
        return true;
    struct recorded_frontier *list = &stream->frontier;
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (walk->process->streams[list->items[i].stream].live)
            list->items[kept++] = list->items[i];
    list->count = kept;
    for (size_t i = 0; i < stream->frontier.count; i++)
        if (!frontier_add(walk, &event->frontier, stream->frontier.items[i].stream,
                          stream->frontier.items[i].pushes))
            return false;
    return true;
}

/* True if the frontier of the event at this item is the same in every run. */
static bool is_ordered_event(const struct walk *walk, const struct recorded_event *event)
{
    return event->records > 0 && event->capture < 0 &&
           walk_order_is_behind(walk, &event->recorded) &&
           !walk->process->streams[event->stream].unordered;
}

bool walk_frontier_wait(const struct walk *walk, struct recorded_stream *stream,
                        const struct recorded_event *event)
{
    return stream->capture >= 0 || stream->unordered || !is_ordered_event(walk, event) ||
           &walk->process->streams[event->stream] == stream ||
           frontier_add_all(walk, &stream->frontier, event->stream, event->implied,
                            &event->frontier);
}

/* ---- observations -------------------------------------------------------------------------------- */

static struct recorded_observed *find_observed(const struct walk *walk,
                                               const struct recorded_stream *stream)
{
    for (size_t i = 0; i < stream->observed_count; i++)
        if (stream->observed[i].thread == walk->number)
            return &stream->observed[i];
    return NULL;
}

static struct recorded_observed *need_observed(const struct walk *walk,
                                               struct recorded_stream *stream)
{
    struct recorded_observed *found = find_observed(walk, stream);
    if (found)
        return found;
    if (!ARENA_GROW(walk->job->arena, stream->observed, stream->observed_count,
                    stream->observed_cap))
        return NULL;
    stream->observed[stream->observed_count] = (struct recorded_observed){.thread = walk->number};
    return &stream->observed[stream->observed_count++];
}

/* The thread has observed that the first pushes of the stream are complete; this is noted where it is new. */
static bool observe(const struct walk *walk, size_t stream, uint64_t pushes, bool by_wait)
{
    struct recorded_thread *thread = walk->thread;
    struct recorded_observed *observed = need_observed(walk, &walk->process->streams[stream]);
    if (!observed)
        return false;
    assert(observed->waited <= observed->pushes);
    if (observed->pushes >= pushes && (!by_wait || observed->waited >= pushes))
        return true;
    observed->pushes = observed->pushes < pushes ? pushes : observed->pushes;
    observed->waited = by_wait && observed->waited < pushes ? pushes : observed->waited;
    if (!ARENA_GROW(walk->job->arena, thread->observations, thread->observation_count,
                    thread->observation_cap))
        return false;
    thread->observations[thread->observation_count++] = (struct recorded_observation){
        .place = thread->place, .stream = stream, .pushes = pushes, .by_wait = by_wait};
    return true;
}

static bool observe_all(const struct walk *walk, size_t stream, uint64_t pushes,
                        const struct recorded_frontier *frontier, bool by_wait)
{
    for (size_t i = 0; i < frontier->count; i++)
        if (!observe(walk, frontier->items[i].stream, frontier->items[i].pushes, by_wait))
            return false;
    return observe(walk, stream, pushes, by_wait);
}

bool walk_order_observe_stream(const struct walk *walk, struct recorded_stream *stream,
                               bool by_wait)
{
    return !recorded_order_is_ordered(walk, stream) ||
           observe_all(walk, recorded_order_stream_index(walk, stream), stream->pushes,
                       &stream->frontier, by_wait);
}

bool walk_order_observe_event(const struct walk *walk, struct recorded_event *event, bool by_wait)
{
    return !is_ordered_event(walk, event) ||
           observe_all(walk, event->stream, event->implied, &event->frontier, by_wait);
}

bool walk_order_merge(const struct walk *walk, size_t other, uint64_t count)
{
    const struct recorded_thread *from = &walk->process->threads[other];
    size_t *merged = &walk->thread->observations_merged[other];
    for (; *merged < from->observation_count && from->observations[*merged].place <= count;
         ++*merged) {
        const struct recorded_observation item = from->observations[*merged];
        if (!observe(walk, item.stream, item.pushes, item.by_wait))
            return false;
    }
    return true;
}

bool walk_has_observed(const struct walk *walk, const struct recorded_stream *stream,
                       uint64_t pushes, bool by_wait)
{
    const struct recorded_observed *observed = find_observed(walk, stream);
    return !stream->unordered && observed &&
           (by_wait ? observed->waited : observed->pushes) >= pushes;
}

bool walk_has_observed_record(const struct walk *walk, const struct recorded_event *event,
                              bool by_wait)
{
    return walk_order_is_behind(walk, &event->recorded) &&
           walk_has_observed(walk, &walk->process->streams[event->stream], event->pushes, by_wait);
}

/* ---- what the plan says of it ------------------------------------------------------------------ */

static bool say_locks(struct recorded_job *job)
{
    const size_t count = job->lock_orders;
    return count == 0 ||
           plan_add_unrecorded(job->plan,
                               arena_printf(job->arena, "other orders of locks in %zu place%s",
                                            count, count == 1 ? "" : "s"),
                               "threads take them as in the run");
}

static bool say_in_time(struct recorded_job *job)
{
    const size_t count = job->orders_in_time;
    return count == 0 ||
           plan_add_unrecorded(job->plan,
                               arena_printf(job->arena, "waits that give up in %zu place%s", count,
                                            count == 1 ? "" : "s"),
                               "in the run each ended in time");
}

bool recorded_order_say(struct recorded_job *job)
{
    const size_t count = job->unordered_uses;
    if (!say_locks(job) || !say_in_time(job))
        return false;
    return count == 0 ||
           plan_add_unrecorded(job->plan,
                               arena_printf(job->arena, "what orders threads in %zu place%s", count,
                                            count == 1 ? "" : "s"),
                               "no condition, signal or join does; if a lock does, import with "
                               "--order=locks; if atomics, futexes, pipes or signals do, with "
                               "--order=seen");
}
