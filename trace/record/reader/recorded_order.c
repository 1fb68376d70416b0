/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded_order.c - uses of one event or memory by two threads that no call was seen to order.
 *
 * Each thread has a vector clock: how many items of each other thread it comes after; and a list of when it came to know
 * that, because one that comes after a place of it knows what it knew there. A host function comes after the call that
 * pushed it. All that is in a clock was seen, so the list of uses may be too long, and never too short. Such uses are a
 * mistake of the program, or it orders its threads by means that are not seen: nobody can tell which.
 */
#include "recorded_walk.h"

#include <stdlib.h>
#include <string.h>

/* ---- host functions ------------------------------------------------------------------------------ */

static int by_number(const void *left, const void *right)
{
    const struct recorded_host_call *a = left, *b = right;
    return (a->number > b->number) - (a->number < b->number);
}

/* A function may begin before the call that pushes it has ended. So all these calls are looked up beforehand. */
static bool list_host_calls(struct recorded_job *job, struct recorded_process *process)
{
    for (size_t t = 0; t < process->tapes.thread_count; t++) {
        const struct tape_thread *tape = &process->tapes.threads[t];
        for (size_t i = 0; i < tape->count; i++) {
            if (tape->items[i]->kind != RECORDING_HOST_CALL)
                continue;
            if (!arena_grow(job->arena, (void **)&process->host_calls, process->host_call_count,
                            &process->host_call_cap, sizeof *process->host_calls))
                return false;
            process->host_calls[process->host_call_count++] =
                (struct recorded_host_call){tape->items[i]->word[1], {t, i + 1}};
        }
    }
    if (process->host_call_count > 0)
        qsort(process->host_calls, process->host_call_count, sizeof *process->host_calls,
              by_number);
    return true;
}

/* ---- objects of several threads ------------------------------------------------------------------ */

static int ascending(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* It may turn out later than the object orders threads. So they are looked up beforehand. */
static bool list_several(struct recorded_job *job, struct recorded_process *process)
{
    for (size_t t = 0; t < process->tapes.thread_count; t++)
        for (size_t i = 0; i < process->tapes.threads[t].count; i++) {
            const struct recording_item *item = process->tapes.threads[t].items[i];
            if (item->kind != RECORDING_SEVERAL)
                continue;
            if (!arena_grow(job->arena, (void **)&process->several, process->several_count,
                            &process->several_cap, sizeof *process->several))
                return false;
            process->several[process->several_count++] = item->word[0];
        }
    if (process->several_count > 0)
        qsort(process->several, process->several_count, sizeof *process->several, ascending);
    return true;
}

bool walk_order_has_several(const struct walk *walk, uint64_t object)
{
    const struct recorded_process *process = walk->process;
    return object != 0 && process->several_count > 0 &&
           bsearch(&object, process->several, process->several_count, sizeof object, ascending);
}

/* ---- clocks -------------------------------------------------------------------------------------- */

bool walk_order_begin(struct recorded_job *job, struct recorded_process *process)
{
    const size_t count = process->tapes.thread_count;
    for (size_t i = 0; i < count; i++) {
        struct recorded_thread *thread = &process->threads[i];
        thread->after = ARENA_ARRAY(job->arena, count, uint64_t);
        thread->met = ARENA_ARRAY(job->arena, count, size_t);
        if (!thread->after || !thread->met)
            return false;
        memset(thread->after, 0, count * sizeof *thread->after);
        memset(thread->met, 0, count * sizeof *thread->met);
    }
    return list_host_calls(job, process) && list_several(job, process);
}

static bool learn(const struct walk *walk, size_t other, uint64_t count)
{
    struct recorded_thread *thread = walk->thread;
    if (thread->after[other] >= count)
        return true;
    if (!arena_grow(walk->job->arena, (void **)&thread->orders, thread->order_count,
                    &thread->order_cap, sizeof *thread->orders))
        return false;
    thread->after[other] = count;
    thread->orders[thread->order_count++] =
        (struct recorded_followed){.place = thread->place, .count = count, .thread = other};
    return true;
}

bool walk_order_follow(const struct walk *walk, size_t other, uint64_t count)
{
    const struct recorded_thread *from = &walk->process->threads[other];
    size_t *met = &walk->thread->met[other];
    for (; *met < from->order_count && from->orders[*met].place <= count; ++*met) {
        const struct recorded_followed order = from->orders[*met];
        if (!learn(walk, order.thread, order.count))
            return false;
    }
    return learn(walk, other, count);
}

bool walk_order_host(const struct walk *walk)
{
    const struct recorded_process *process = walk->process;
    const struct recorded_host_call key = {.number = walk->item->word[0]};
    const struct recorded_host_call *found =
        process->host_call_count == 0 ? NULL
                                      : bsearch(&key, process->host_calls, process->host_call_count,
                                                sizeof *process->host_calls, by_number);
    return !found || walk_order_follow(walk, found->call.thread, found->call.place);
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
                               "no lock, signal or join does; if atomics, futexes, pipes or "
                               "signals do, import with "
                               "--order=seen");
}
