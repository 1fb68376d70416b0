/* SPDX-License-Identifier: Apache-2.0 */
/* counted.c - see counted.h. Without a lock, for a semaphore may be posted by the handler of a signal. */
#include "counted.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "tape.h"
#include "threads.h"

enum { TABLE = 1 << 14, PLACES = 8, KEPT = 128, PAGES = 1 << 16 };

/* All but the object is 0 before it begins. */
static struct counted {
    _Atomic(const void *) object;      /* NULL: a free place */
    atomic_ullong value, given, taken; /* of a barrier `taken` has bits of threads */
    atomic_uint number;                /* of this object, among all that ever were; 0: none yet */
    atomic_uint giver, taker;          /* the only thread */
    _Atomic(const void *) lock;        /* of a condition */
    atomic_bool several;               /* there is more than one ... */
    atomic_uint told;                  /* ... as this process has told, by its generation */
} table[TABLE];

/* The last times that a thread let others go on; in pages of their own. */
static _Alignas(PAGES) struct counted_given {
    atomic_ullong turn, place; /* from 1 on; tape_pack */
} given[TABLE][KEPT];

static atomic_uint numbers, threads;
static unsigned generation = 1; /* of processes, each the child of the one before */
static __thread unsigned own
    __attribute__((tls_model("initial-exec"))); /* of threads; 0: none yet */

void counted_begin_child(void)
{
    madvise(given, sizeof given, MADV_DONTNEED);
    generation++;
}

static size_t first_place(const void *object)
{
    return (size_t)((uintptr_t)object * 0x9e3779b97f4a7c15U >> 50);
}

static struct counted *counted_find(const void *object)
{
    size_t at = first_place(object);
    for (int i = 0; i < PLACES; i++, at = (at + 1) % TABLE)
        if (atomic_load_explicit(&table[at].object, memory_order_acquire) == object)
            return &table[at];
    return NULL;
}

static void clear(struct counted *counted)
{
    struct counted_given *places = given[counted - table];
    for (int i = 0; i < KEPT; i++)
        atomic_store(&places[i].turn, 0);
    atomic_store(&counted->value, 0);
    atomic_store(&counted->given, 0);
    atomic_store(&counted->taken, 0);
    atomic_store(&counted->number, 0);
    atomic_store(&counted->giver, 0);
    atomic_store(&counted->taker, 0);
    atomic_store(&counted->lock, NULL);
    atomic_store(&counted->several, false);
    atomic_store(&counted->told, 0);
}

/* NULL: there is no room, or the object orders nothing. Two threads that begin an object at once find the same place in the end. */
static struct counted *counted_add(const void *object)
{
    size_t at = first_place(object);
    for (int i = 0; i < PLACES && !threads_orders_nothing(object); i++, at = (at + 1) % TABLE) {
        const void *none = NULL;
        if (!atomic_compare_exchange_strong(&table[at].object, &none, object)) {
            if (none == object)
                return &table[at];
            continue;
        }
        struct counted *found = counted_find(object);
        if (found == &table[at])
            return found;
        atomic_store(&table[at].object, NULL);
        return found;
    }
    return NULL;
}

void counted_end(const void *object)
{
    struct counted *counted = counted_find(object);
    if (!counted)
        return;
    clear(counted);
    atomic_store_explicit(&counted->object, NULL, memory_order_release);
}

void counted_begin(const void *object, uint64_t value)
{
    struct counted *counted = counted_find(object);
    if (counted)
        clear(counted);
    else
        counted = counted_add(object);
    if (counted)
        atomic_store(&counted->value, value);
}

/* ---- several threads ----------------------------------------------------------------------------- */

static uint32_t counted_number_of(struct counted *counted)
{
    unsigned number = atomic_load(&counted->number);
    if (number == 0) {
        const unsigned new = atomic_fetch_add(&numbers, 1) + 1;
        if (atomic_compare_exchange_strong(&counted->number, &number, new))
            number = new;
    }
    return number;
}

static unsigned own_number(void)
{
    if (own == 0)
        own = atomic_fetch_add(&threads, 1) + 1;
    return own;
}

/* Notes that the thread lets others go on by the object, or goes on by it. `only` is the one thread that did so before;
   0: none. */
static void counted_note(struct counted *counted, atomic_uint *only)
{
    unsigned before = 0;
    if (!atomic_compare_exchange_strong(only, &before, own_number()) && before != own)
        atomic_store(&counted->several, true);
}

/* The recording says once that there are several such threads; only a thread that may write does so. */
static void counted_tell(struct counted *counted)
{
    if (atomic_load(&counted->several) && !threads_are_left_out() &&
        atomic_exchange(&counted->told, generation) != generation)
        tape_put(RECORDING_SEVERAL, WORDS(counted_number_of(counted)));
}

/* ---- turns ---------------------------------------------------------------------------------------- */

/* The place is there before the turn. */
static void counted_give(struct counted *counted)
{
    const uint64_t turn = atomic_fetch_add(&counted->given, 1) + 1;
    struct counted_given *to = &given[counted - table][turn % KEPT];
    counted_note(counted, &counted->giver);
    atomic_store(&to->turn, 0);
    atomic_store(&to->place, threads_are_left_out() ? 0 : tape_pack(tape_here()));
    atomic_store(&to->turn, turn);
    counted_tell(counted);
}

/* A turn that is not kept any more orders nothing. */
static void counted_follow(struct counted *counted, uint64_t turn, enum recording_way way)
{
    struct counted_given *from = &given[counted - table][turn % KEPT];
    if (threads_are_left_out() || atomic_load(&from->turn) != turn)
        return;
    struct tape_place place = tape_unpack(atomic_load(&from->place));
    if (atomic_load(&from->turn) != turn)
        return;
    place.object = counted_number_of(counted);
    place.way = way;
    tape_after(place);
}

void counted_post(const void *semaphore)
{
    struct counted *counted = counted_find(semaphore);
    if (counted)
        counted_give(counted);
}

void counted_taken(const void *semaphore, enum recording_way way)
{
    struct counted *counted = counted_find(semaphore);
    if (!counted)
        return;
    const uint64_t turn = atomic_fetch_add(&counted->taken, 1) + 1;
    const uint64_t value = atomic_load(&counted->value);
    counted_note(counted, &counted->taker);
    counted_tell(counted);
    if (turn > value)
        counted_follow(counted, turn - value, way);
}

void counted_signal(const void *condition)
{
    struct counted *counted = counted_find(condition);
    if (!counted)
        counted = counted_add(condition);
    if (counted)
        counted_give(counted);
}

void counted_set_lock(const void *condition, const void *lock)
{
    struct counted *counted = counted_find(condition);
    if (counted)
        atomic_store_explicit(&counted->lock, lock, memory_order_relaxed);
}

const void *counted_lock(const void *condition)
{
    const struct counted *counted = counted_find(condition);
    return counted ? atomic_load_explicit(&counted->lock, memory_order_relaxed) : NULL;
}

uint64_t counted_signals(const void *condition)
{
    struct counted *counted = counted_find(condition);
    if (!counted)
        counted = counted_add(condition);
    return counted ? atomic_load(&counted->given) : UINT64_MAX;
}

void counted_woken(const void *condition, uint64_t before, enum recording_way way)
{
    struct counted *counted = counted_find(condition);
    if (counted && before != UINT64_MAX)
        counted_follow(counted, before + 1, way);
}

/* A thread is at most one round ahead of another one: the round after needs both. Where more threads come than a round
   has, which of them meet is luck. */
struct counted_round counted_arrive(const void *barrier)
{
    struct counted *counted = counted_find(barrier);
    const uint64_t count = counted ? atomic_load(&counted->value) : 0;
    if (count == 0)
        return (struct counted_round){0};
    const uint64_t bit = UINT64_C(1) << own_number() % 64;
    if ((uint64_t)__builtin_popcountll(atomic_fetch_or(&counted->taken, bit) | bit) > count)
        atomic_store(&counted->several, true);
    counted_tell(counted);
    return (struct counted_round){.key = (const char *)barrier +
                                         atomic_fetch_add(&counted->given, 1) / count % 2,
                                  .object = counted_number_of(counted)};
}
