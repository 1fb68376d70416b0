/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.c - the order of threads: what one has done before it lets another one go on.
 *
 * A thread that unlocks, signals, posts, creates or ends leaves its place at the object; one that locks, has been
 * woken, has waited or joins comes after the place that it finds there. So the order of locks is that of the run.
 * Locks inside of CUDA and NCCL, and in threads of their own, are left out. Places are in a table by address, without
 * a lock; objects that fall on one place of the table make an order too many, which is rare.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "real.h"
#include "tape.h"
#include "threads.h"
#include "touch.h"

enum { TABLE = 1 << 16, WAYS = 8 };

/* Several threads may let one go on: each has its way. */
static struct left {
    _Atomic(const void *) object;
    atomic_ullong places[WAYS]; /* thread << 40 | count */
} table[TABLE];

static __thread bool internal __attribute__((tls_model("initial-exec"))); /* a thread of CUDA */
static __thread int host_calls __attribute__((tls_model("initial-exec")));

void threads_host_call(int by)
{
    host_calls += by;
}

bool threads_are_internal(void)
{
    return internal && host_calls == 0;
}

static bool is_left_out(void)
{
    return !tape_on() || tape_in_call() || threads_are_internal();
}

static struct left *find(const void *object)
{
    size_t at = (uintptr_t)object * 0x9e3779b97f4a7c15U >> 48;
    for (int tries = 0; tries < 8; tries++, at = (at + 1) % TABLE) {
        const void *there = atomic_load_explicit(&table[at].object, memory_order_relaxed);
        if (there == object ||
            (!there && (atomic_compare_exchange_strong(&table[at].object, &there, object) ||
                        there == object)))
            return &table[at];
    }
    return &table[(uintptr_t)object * 0x9e3779b97f4a7c15U >> 48];
}

/* `alone`: what others have left there is of no more use. */
static void leave(const void *object, bool alone)
{
    const struct tape_place here = tape_here();
    if (here.count == 0 || is_left_out())
        return;
    struct left *left = find(object);
    const unsigned long long place = (unsigned long long)here.thread << 40 | here.count;
    atomic_store_explicit(&left->places[alone ? 0 : here.thread % WAYS], place,
                          memory_order_release);
}

static void follow(const void *object)
{
    if (is_left_out())
        return;
    struct left *left = find(object);
    for (int i = 0; i < WAYS; i++) {
        const unsigned long long place =
            atomic_load_explicit(&left->places[i], memory_order_acquire);
        if (place)
            tape_after(
                (struct tape_place){(uint32_t)(place >> 40), place & ((UINT64_C(1) << 40) - 1)});
    }
}

/* ---- threads ---------------------------------------------------------------------------------- */

struct start {
    void *(*function)(void *);
    void *arg;
    struct tape_place parent;
    bool internal;
};
static pthread_key_t at_exit;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void leave_thread(void *unused)
{
    (void)unused;
    leave((void *)(uintptr_t)pthread_self(), true);
}

static void make_key(void)
{
    pthread_key_create(&at_exit, leave_thread);
}

static void *run_thread(void *arg)
{
    const struct start start = *(struct start *)arg;
    free(arg);
    internal = start.internal;
    touch_begin_thread();
    if (!internal) {
        pthread_setspecific(at_exit, &at_exit);
        tape_after(start.parent);
    }
    return start.function(start.arg);
}

int pthread_create(pthread_t *restrict out, const pthread_attr_t *restrict attributes,
                   void *(*function)(void *), void *restrict arg)
{
    REAL(pthread_create, (pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))
    struct start *start = tape_on() ? malloc(sizeof *start) : NULL;
    if (!start)
        return real(out, attributes, function, arg);
    pthread_once(&once, make_key);
    *start = (struct start){function, arg, tape_here(), tape_in_call() || internal};
    const int result = real(out, attributes, run_thread, start);
    if (result != 0)
        free(start);
    return result;
}

int pthread_join(pthread_t thread, void **out)
{
    REAL(pthread_join, (pthread_t, void **))
    const int result = real(thread, out);
    if (result == 0)
        follow((void *)(uintptr_t)thread);
    return result;
}

/* ---- locks ------------------------------------------------------------------------------------ */

/* The caller goes on after others, where the call says so. */
#define FOLLOWS(name, PARAMS, ARGS, object, good)                                                  \
    int name PARAMS                                                                                \
    {                                                                                              \
        REAL(name, PARAMS)                                                                         \
        const int result = real ARGS;                                                              \
        if (good)                                                                                  \
            follow(object);                                                                        \
        return result;                                                                             \
    }
/* Others go on after the caller. */
#define LEAVES(name, PARAMS, ARGS, object, alone)                                                  \
    int name PARAMS                                                                                \
    {                                                                                              \
        REAL(name, PARAMS)                                                                         \
        leave(object, alone);                                                                      \
        return real ARGS;                                                                          \
    }

FOLLOWS(pthread_mutex_lock, (pthread_mutex_t * lock), (lock), lock, result == 0)
FOLLOWS(pthread_mutex_trylock, (pthread_mutex_t * lock), (lock), lock, result == 0)
FOLLOWS(pthread_mutex_timedlock,
        (pthread_mutex_t *restrict lock, const struct timespec *restrict until), (lock, until),
        lock, result == 0)
LEAVES(pthread_mutex_unlock, (pthread_mutex_t * lock), (lock), lock, true)

FOLLOWS(pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock), lock, result == 0)
FOLLOWS(pthread_rwlock_tryrdlock, (pthread_rwlock_t * lock), (lock), lock, result == 0)
FOLLOWS(pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock), lock, result == 0)
FOLLOWS(pthread_rwlock_trywrlock, (pthread_rwlock_t * lock), (lock), lock, result == 0)
LEAVES(pthread_rwlock_unlock, (pthread_rwlock_t * lock), (lock), lock, false)

FOLLOWS(pthread_spin_lock, (pthread_spinlock_t * lock), (lock), (const void *)lock, result == 0)
FOLLOWS(pthread_spin_trylock, (pthread_spinlock_t * lock), (lock), (const void *)lock, result == 0)
LEAVES(pthread_spin_unlock, (pthread_spinlock_t * lock), (lock), (const void *)lock, true)

FOLLOWS(sem_wait, (sem_t * semaphore), (semaphore), semaphore, result == 0)
FOLLOWS(sem_trywait, (sem_t * semaphore), (semaphore), semaphore, result == 0)
FOLLOWS(sem_timedwait, (sem_t *restrict semaphore, const struct timespec *restrict until),
        (semaphore, until), semaphore, result == 0)
LEAVES(sem_post, (sem_t * semaphore), (semaphore), semaphore, false)

LEAVES(pthread_cond_signal, (pthread_cond_t * condition), (condition), condition, false)
LEAVES(pthread_cond_broadcast, (pthread_cond_t * condition), (condition), condition, false)

/* A wait gives the lock away and takes it again. */
#define WAITS(name, PARAMS, ARGS)                                                                  \
    int name PARAMS                                                                                \
    {                                                                                              \
        REAL(name, PARAMS)                                                                         \
        leave(lock, true);                                                                         \
        const int result = real ARGS;                                                              \
        follow(lock);                                                                              \
        if (result == 0)                                                                           \
            follow(condition);                                                                     \
        return result;                                                                             \
    }
WAITS(pthread_cond_wait, (pthread_cond_t *restrict condition, pthread_mutex_t *restrict lock),
      (condition, lock))
WAITS(pthread_cond_timedwait,
      (pthread_cond_t *restrict condition, pthread_mutex_t *restrict lock,
       const struct timespec *restrict until),
      (condition, lock, until))
WAITS(pthread_cond_clockwait,
      (pthread_cond_t *restrict condition, pthread_mutex_t *restrict lock, clockid_t clock,
       const struct timespec *restrict until),
      (condition, lock, clock, until))

int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    REAL(pthread_barrier_wait, (pthread_barrier_t *))
    leave(barrier, false);
    const int result = real(barrier);
    follow(barrier);
    return result;
}
