/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixed_order.c - see fixed_order.h: a walk over all threads at once, in which an await waits until the operation that sets
 * its flag is passed. A thread that the walk cannot bring to its end does not come further in any run.
 *
 * Threads know much the same, so what they know is a tree over the threads whose parts they share: a step of knowledge copies one
 * path. Most steps are of a thread that knows all that the other had learned, or the other way round, as the places where they
 * learned it tell; only else two trees are merged.
 */
#include "fixed_order.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/sort.h"

enum { BRANCH_BITS = 4, BRANCHES = 1 << BRANCH_BITS };

/* How many operations of each thread are done; at the lowest level counts, above it branches, of which NULL is all 0. */
union fixed_done {
    int counts[BRANCHES];
    const union fixed_done *branches[BRANCHES];
};

/* An operation of a thread. */
struct fixed_setter {
    int thread, at;
};

/* From operation `at` of a thread on this is done, since it awaits what `from` sets. */
struct fixed_mark {
    int at;
    struct fixed_setter from;
    const union fixed_done *done;
};

struct fixed_thread {
    struct fixed_mark *marks;
    size_t count, cap;
};

struct fixed_order {
    int top_shift; /* of a thread's number: its branch at the top */
    struct fixed_thread *threads;
};

enum { SET_NEVER = -1, SET_OFTEN = -2, NODES_AN_OP = 16, MOST_OPS = 1 << 22 };

struct order_walk {
    struct program *p;
    struct fixed_order *order;
    struct fixed_setter
        *setters; /* per flag the only operation that sets it; `thread` SET_NEVER, SET_OFTEN */
    int *next;    /* per thread: the operation that it comes to */
    int *waits, *waits_next; /* per flag: the first thread that is stopped by it; -1: none */
    int *ready, ready_count; /* threads that may go on */
    size_t nodes;
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

/* ---- what is done ----------------------------------------------------------------------------- */

static int done_of(const struct fixed_order *order, const union fixed_done *done, int thread)
{
    for (int shift = order->top_shift; done && shift > 0; shift -= BRANCH_BITS)
        done = done->branches[thread >> shift & (BRANCHES - 1)];
    return done ? done->counts[thread & (BRANCHES - 1)] : 0;
}

static size_t node_bytes(int shift)
{
    return shift ? sizeof(union fixed_done) : sizeof((union fixed_done *)0)->counts;
}

/* A copy; of NULL all 0. NULL: there is no memory, or they become too many. */
static union fixed_done *copy_node(struct order_walk *walk, const union fixed_done *node, int shift)
{
    union fixed_done *copy = NULL;
    if (++walk->nodes <= NODES_AN_OP * walk->p->op_count)
        copy = (union fixed_done *)arena_array(&walk->p->arena, 1, node_bytes(shift));
    if (!copy)
        walk->no_memory = true;
    else if (node)
        memcpy(copy, node, node_bytes(shift));
    return copy;
}

/* Also so many operations of the thread are done. */
static const union fixed_done *with_count(struct order_walk *walk, const union fixed_done *done,
                                          int shift, int thread, int count)
{
    const int place = thread >> shift & (BRANCHES - 1);
    union fixed_done *copy = copy_node(walk, done, shift);
    if (copy && shift == 0)
        copy->counts[place] = max_int(copy->counts[place], count);
    else if (copy)
        copy->branches[place] =
            with_count(walk, copy->branches[place], shift - BRANCH_BITS, thread, count);
    return copy;
}

/* The operations that are done in a or in b. It returns one of the two where that has all of the other. */
static const union fixed_done *merged(struct order_walk *walk, const union fixed_done *a,
                                      const union fixed_done *b, int shift)
{
    union fixed_done both;
    bool is_a = true, is_b = true;
    if (!a || !b || a == b)
        return a ? a : b;
    for (int i = 0; i < BRANCHES; i++)
        if (shift == 0) {
            both.counts[i] = max_int(a->counts[i], b->counts[i]);
            is_a &= both.counts[i] == a->counts[i];
            is_b &= both.counts[i] == b->counts[i];
        } else {
            both.branches[i] = merged(walk, a->branches[i], b->branches[i], shift - BRANCH_BITS);
            is_a &= both.branches[i] == a->branches[i];
            is_b &= both.branches[i] == b->branches[i];
        }
    return is_a ? a : is_b ? b : copy_node(walk, &both, shift);
}

/* ---- what threads learn ------------------------------------------------------------------------ */

/* True if a thread that has this behind it knows all that the setter had learned up to a mark. */
static bool knows_marks(const struct fixed_order *order, int thread, const union fixed_done *done,
                        int setter, const struct fixed_mark *last)
{
    const struct fixed_mark *marks = order->threads[setter].marks;
    const int known = done_of(order, done, setter);
    for (size_t i = (size_t)(last - marks) + 1; i-- > 0 && marks[i].at >= known;)
        if (marks[i].from.thread != thread &&
            done_of(order, done, marks[i].from.thread) <= marks[i].from.at)
            return false;
    return true;
}

/* From `at` on the thread comes behind the operation that sets the flag. */
static bool fixed_order_learn(struct order_walk *walk, int thread, int at,
                              struct fixed_setter setter)
{
    const struct fixed_order *order = walk->order;
    struct fixed_thread *of = &walk->order->threads[thread];
    const struct fixed_mark *known = fixed_order_mark(of, at),
                            *new = fixed_order_mark(&order->threads[setter.thread], setter.at);
    const union fixed_done *done = known ? known->done : NULL;
    if (done_of(order, done, setter.thread) > setter.at)
        return true; /* and so all that the setter had learned */
    if (new && (!known || done_of(order, new->done, thread) > known->at))
        done = new->done;
    else if (new && !knows_marks(order, thread, done, setter.thread, new))
        done = merged(walk, done, new->done, order->top_shift);
    done = with_count(walk, done, order->top_shift, setter.thread, setter.at + 1);
    if (walk->no_memory || !ARENA_GROW(&walk->p->arena, of->marks, of->count, of->cap))
        return false;
    of->marks[of->count++] = (struct fixed_mark){at, setter, done};
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
    *walk->order =
        (struct fixed_order){0, arena_array(&p->arena, threads, sizeof *walk->order->threads)};
    while ((p->thread_count - 1) >> walk->order->top_shift >= BRANCHES)
        walk->order->top_shift += BRANCH_BITS;
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
    return mark ? done_of(order, mark->done, other) : 0;
}

int fixed_order_behind(const struct fixed_order *order, int thread, int at, int other)
{
    const struct fixed_thread *of = &order->threads[other];
    const size_t place =
        SORT_FIRST(i, 0, of->count, done_of(order, of->marks[i].done, thread) > at);
    return place < of->count ? of->marks[place].at : INT_MAX;
}
