/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded_order.c - uses of one event or memory by two threads that no call was seen to order.
 *
 * Each thread has a vector clock: how many items of each other thread it comes after. What those threads had learned
 * until now counts as known to them at that item, and a host function as behind all calls until then, so the list may be
 * too short, and never too long. Such uses are a
 * mistake of the program, or it orders its threads by means that are not seen: nobody can tell which.
 */
#include "recorded_walk.h"

bool walk_order_begin(struct recorded_job *job, struct recorded_process *process)
{
    const size_t count = process->tapes.thread_count;
    for (size_t i = 0; i < count; i++) {
        process->threads[i].after = ARENA_ARRAY(job->arena, count, uint64_t);
        if (!process->threads[i].after)
            return false;
        for (size_t k = 0; k < count; k++)
            process->threads[i].after[k] = 0;
    }
    return true;
}

static void learn(uint64_t *after, uint64_t count)
{
    *after = count > *after ? count : *after;
}

void walk_order_follow(const struct walk *walk, size_t other, uint64_t count)
{
    const struct recorded_process *process = walk->process;
    for (size_t i = 0; i < process->tapes.thread_count; i++)
        learn(&walk->thread->after[i], process->threads[other].after[i]);
    learn(&walk->thread->after[other], count);
}

/* The call that pushed it has begun, so its item may be the next one of its thread. */
void walk_order_host(const struct walk *walk)
{
    const struct recorded_process *process = walk->process;
    for (size_t i = 0; i < process->tapes.thread_count; i++)
        walk_order_follow(walk, i, process->threads[i].place + 1);
}

bool walk_order_is_behind(const struct walk *walk, const struct recorded_use *use)
{
    return walk->thread->hosting || walk->job->options->order == RECORDED_SEEN || use->place == 0 ||
           use->thread == walk->number || walk->thread->after[use->thread] >= use->place;
}

void walk_order_use(const struct walk *walk, const struct recorded_use *before)
{
    walk->job->unordered_uses += !walk_order_is_behind(walk, before);
}

struct recorded_use walk_order_here(const struct walk *walk)
{
    return walk->thread->hosting
               ? (struct recorded_use){0}
               : (struct recorded_use){.thread = walk->number, .place = walk->thread->place};
}

static bool overlap(const struct recorded_access *one, const struct recorded_access *other)
{
    const uint64_t one_end = one->to ? one->to : one->from + 1,
                   other_end = other->to ? other->to : other->from + 1;
    return one->from < other_end && other->from < one_end;
}

static void take_access(const struct walk *walk, const struct recorded_access *access)
{
    struct recorded_block *block = &walk->process->blocks[access->block];
    if (overlap(access, &block->last_write))
        walk_order_use(walk, &block->writer);
    else if (access->write && overlap(access, &block->last_read))
        walk_order_use(walk, &block->reader);
    *(access->write ? &block->last_write : &block->last_read) = *access;
    *(access->write ? &block->writer : &block->reader) = walk_order_here(walk);
}

void walk_order_accesses(const struct walk *walk, const struct recorded_op *op)
{
    for (size_t i = 0; i < op->access_count; i++)
        take_access(walk, &op->accesses[i]);
}

static bool say_locks(struct recorded_job *job)
{
    const size_t count = job->lock_orders;
    return count == 0 ||
           plan_add_unrecorded(job->plan,
                               arena_printf(job->arena, "other orders of locks in %zu place%s",
                                            count, count == 1 ? "" : "s"),
                               "threads take them as in the run");
}

bool recorded_order_say(struct recorded_job *job)
{
    const size_t count = job->unordered_uses;
    if (!say_locks(job))
        return false;
    return count == 0 ||
           plan_add_unrecorded(job->plan,
                               arena_printf(job->arena, "what orders threads in %zu place%s", count,
                                            count == 1 ? "" : "s"),
                               "no lock, signal or join does; if atomics, futexes, pipes or "
                               "signals do, import with "
                               "--order=seen");
}
