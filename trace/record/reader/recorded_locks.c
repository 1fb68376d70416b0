/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded_locks.c - which locks of a recording the plan needs.
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
#include "recorded_internal.h"

#include "base/array.h"

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
    const bool is_step = !op->begins && !op->ends && (op->op.kind != OP_AWAIT || waits);
    const bool matters = waits || (!op_pushes(op->op.kind) && op->access_count > 0);
    for (int i = 0; is_step && i < sections->open_count; i++) {
        struct section_lock *lock = &sections->locks[sections->open[i].lock];
        lock->waits |= waits;
        lock->asks |= op->asked && op->op.kind == OP_SYNC;
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
