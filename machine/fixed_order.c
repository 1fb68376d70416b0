/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixed_order.c - see fixed_order.h: a walk over all threads at once, in which an await waits until the operation that sets
 * its flag is passed. A thread that the walk cannot bring to its end does not come further in any run.
 */
#include "fixed_order.h"

#include <limits.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/sort.h"

/* From operation `at` of a thread on so many operations of each thread are done. */
struct fixed_mark {
    int at;
    const int *done;
};

struct fixed_thread {
    struct fixed_mark *marks;
    size_t count, cap;
};

struct fixed_order {
    int thread_count;
    struct fixed_thread *threads;
};

enum { SET_NEVER = -1, SET_OFTEN = -2, CELLS_AN_OP = 512, MOST_OPS = 1 << 22 };

/* The only operation that sets a flag. */
struct fixed_setter {
    int thread, at;
};

struct order_walk {
    struct program *p;
    struct fixed_order *order;
    struct fixed_setter *setters; /* per flag; `thread` SET_NEVER, SET_OFTEN */
    int *next;                    /* per thread: the operation that it comes to */
    int *waits, *waits_next;      /* per flag: the first thread that is stopped by it; -1: none */
    int *ready, ready_count;      /* threads that may go on */
    size_t cells;
    bool no_memory;
};

static const struct body *fixed_order_body(const struct program *p, int thread)
{
    return p->threads[thread].kind == THREAD_HOST ? &p->bodies[p->threads[thread].body] : NULL;
}

static void find_setters(struct order_walk *walk)
{
    const struct program *p = walk->p;
    for (int flag = 0; flag < p->flag_families; flag++)
        walk->setters[flag].thread = p->flag_counts[flag] ? SET_OFTEN : SET_NEVER;
    for (size_t b = 0; b < p->body_count; b++)
        for (int i = 0; i < p->bodies[b].count; i++) {
            const struct op *op = &p->ops[p->bodies[b].first + i];
            if (!op_gives_to(op->kind, OPERAND_FLAG))
                continue;
            struct fixed_setter *setter = &walk->setters[op->object];
            const bool is_only = setter->thread == SET_NEVER && op->kind == OP_SIGNAL &&
                                 p->threads[p->bodies[b].thread].kind == THREAD_HOST;
            *setter = (struct fixed_setter){is_only ? p->bodies[b].thread : SET_OFTEN, i};
        }
}

/* The last mark of a thread at or before an operation; NULL: none. */
static const struct fixed_mark *fixed_order_mark(const struct fixed_thread *thread, int at)
{
    const size_t behind = SORT_FIRST(i, 0, thread->count, thread->marks[i].at > at);
    return behind == 0 ? NULL : &thread->marks[behind - 1];
}

/* From `at` on the thread comes behind the operation that sets the flag. */
static bool fixed_order_learn(struct order_walk *walk, int thread, int at,
                              struct fixed_setter setter)
{
    const int count = walk->order->thread_count;
    struct fixed_thread *of = &walk->order->threads[thread];
    const struct fixed_mark *known = fixed_order_mark(of, at),
                            *new =
                                fixed_order_mark(&walk->order->threads[setter.thread], setter.at);
    int *done;
    if (known && known->done[setter.thread] > setter.at)
        return true; /* and so all that the setter had learned */
    walk->cells += (size_t)count;
    if (walk->cells > CELLS_AN_OP * walk->p->op_count ||
        !(done = ARENA_ARRAY(&walk->p->arena, (size_t)count, int)) ||
        !ARENA_GROW(&walk->p->arena, of->marks, of->count, of->cap))
        return false;
    for (int t = 0; t < count; t++)
        done[t] = max_int(known ? known->done[t] : 0, new ? new->done[t] : 0);
    done[setter.thread] = max_int(done[setter.thread], setter.at + 1);
    of->marks[of->count++] = (struct fixed_mark){at, done};
    return true;
}

/* Those that were stopped by the flag go on. */
static void fixed_order_wake(struct order_walk *walk, int flag)
{
    for (int t = walk->waits[flag]; t >= 0; t = walk->waits_next[t])
        walk->ready[walk->ready_count++] = t;
    walk->waits[flag] = -1;
}

/* False: the thread stops at the await. */
static bool pass_await(struct order_walk *walk, int thread, int at, int flag)
{
    const struct fixed_setter setter = walk->setters[flag];
    if (setter.thread == SET_OFTEN || setter.thread == thread)
        return true;
    if (setter.thread == SET_NEVER || walk->next[setter.thread] <= setter.at) {
        walk->waits_next[thread] = walk->waits[flag];
        walk->waits[flag] = thread;
        return false;
    }
    walk->no_memory = walk->no_memory || !fixed_order_learn(walk, thread, at, setter);
    return !walk->no_memory;
}

static void go_on(struct order_walk *walk, int thread)
{
    const struct program *p = walk->p;
    const struct body *body = fixed_order_body(p, thread);
    for (int *next = &walk->next[thread]; body && *next < body->count; ++*next) {
        const struct op *op = &p->ops[body->first + *next];
        if (op->kind == OP_AWAIT && !pass_await(walk, thread, *next, op->object))
            return;
        if (op->kind == OP_SIGNAL && walk->setters[op->object].thread == thread)
            fixed_order_wake(walk, op->object);
    }
}

static bool take_walk(struct order_walk *walk)
{
    struct program *p = walk->p;
    const size_t threads = (size_t)p->thread_count + 1, flags = (size_t)p->flag_families + 1;
    walk->order = ARENA_ARRAY(&p->arena, 1, struct fixed_order);
    if (!walk->order)
        return false;
    *walk->order = (struct fixed_order){
        p->thread_count, arena_array(&p->arena, threads, sizeof *walk->order->threads)};
    walk->setters = malloc(flags * sizeof *walk->setters);
    walk->waits = malloc(flags * sizeof *walk->waits);
    walk->waits_next = malloc(threads * sizeof *walk->waits_next);
    walk->next = calloc(threads, sizeof *walk->next);
    walk->ready = malloc(threads * sizeof *walk->ready);
    if (!walk->order->threads || !walk->setters || !walk->waits || !walk->waits_next ||
        !walk->next || !walk->ready)
        return false;
    for (int t = 0; t < p->thread_count; t++) {
        walk->order->threads[t] = (struct fixed_thread){0};
        walk->ready[walk->ready_count++] = t;
    }
    for (size_t flag = 0; flag < flags; flag++)
        walk->waits[flag] = -1;
    find_setters(walk);
    while (walk->ready_count > 0)
        go_on(walk, walk->ready[--walk->ready_count]);
    return !walk->no_memory;
}

struct fixed_order *fixed_order_make(struct program *p)
{
    struct order_walk walk = {.p = p};
    if (p->tasks > 0 || p->has_branches || p->can_abort || p->options.faults ||
        p->flag_families == 0 || p->thread_count < 2 || p->op_count > MOST_OPS)
        return NULL;
    bool orders = take_walk(&walk);
    free(walk.setters);
    free(walk.waits);
    free(walk.waits_next);
    free(walk.next);
    free(walk.ready);
    size_t marks = 0;
    for (int t = 0; orders && t < p->thread_count; t++)
        marks += walk.order->threads[t].count;
    return marks > 0 ? walk.order : NULL;
}

int fixed_order_before(const struct fixed_order *order, int thread, int at, int other)
{
    const struct fixed_mark *mark = fixed_order_mark(&order->threads[thread], at);
    return mark ? mark->done[other] : 0;
}

int fixed_order_behind(const struct fixed_order *order, int thread, int at, int other)
{
    const struct fixed_thread *of = &order->threads[other];
    const size_t place = SORT_FIRST(i, 0, of->count, of->marks[i].done[thread] > at);
    return place < of->count ? of->marks[place].at : INT_MAX;
}
