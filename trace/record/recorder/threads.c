/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.c - the order of threads: what one has done before it lets another one go on.
 *
 * A thread that unlocks, arrives, creates or ends leaves its place at the object; one that locks, has met the others or
 * joins comes after the place that it finds there. Of a lock that is the order of the run, and import decides what it is worth:
 * a lock excludes, and orders where a thread has signalled a condition that belongs to it, or where another one has taken it
 * again and again until then. What a thread calls while it has a lock stands between the items LOCK and UNLOCK; a lock
 * without calls has none. Semaphores and conditions are counted (counted.h). Locks inside of CUDA and NCCL, and in threads
 * of their own, are left out. Places are in a table by address, without a lock; an object that finds no room there orders
 * nothing.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "counted.h"
#include "real.h"
#include "tape.h"
#include "threads.h"
#include "touch.h"

enum { TABLE = RECORDING_LOCKS, WAYS = 64, PAGES = 1 << 16 };

/* Several threads may let one go on: each has its way. In pages of its own. */
static _Alignas(PAGES) struct left {
    _Atomic(const void *) object;
    atomic_ullong used;         /* ways, as bits */
    atomic_ullong places[WAYS]; /* thread << 40 | count */
} table[TABLE];

enum { HELD = 16 };

/* The thread's locks, those that it took last behind the others, and what it did last with any. */
static __thread struct {
    struct {
        const void *lock;
        unsigned again; /* times that it was taken while it was held */
        bool told;      /* LOCK is written */
        enum lock_kind { MUTEX, WRITER, READER } kind;
    } held[HELD];
    int count;
    const void *taken, *released, *signalled;
    uint64_t taken_at, released_at, signalled_at; /* the thread's items then */
    bool paused;                                  /* since `taken` */
} own __attribute__((tls_model("initial-exec")));

void threads_begin_child(void)
{
    madvise(table, sizeof table, MADV_DONTNEED);
    own.count = 0;
    counted_begin_child();
}

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

bool threads_are_left_out(void)
{
    return !tape_on() || tape_in_call() || threads_are_internal();
}

/* _PyRuntime, in which Python has the lock of its interpreter. */
static struct {
    const char *begin;
    size_t bytes;
} interpreter;

bool threads_orders_nothing(const void *object)
{
    return (size_t)((const char *)object - interpreter.begin) < interpreter.bytes;
}

/* Queues of Python may hand things over by that lock alone; on the device that is not there they are others, which do not. */
__attribute__((constructor)) static void find_interpreter(void)
{
    const void *found = getenv("SWSIM_NONE") ? real_dlsym()(RTLD_DEFAULT, "_PyRuntime") : NULL;
    const ElfW(Sym) *symbol = NULL;
    Dl_info info;
    if (!found || !dladdr1(found, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol)
        return;
    interpreter.begin = found;
    interpreter.bytes = symbol->st_size;
}

/* NULL: there is no room, or the object orders nothing. */
static struct left *threads_find(const void *object)
{
    if (threads_orders_nothing(object))
        return NULL;
    size_t at = (uintptr_t)object * 0x9e3779b97f4a7c15U >> 48;
    for (int tries = 0; tries < 8; tries++, at = (at + 1) % TABLE) {
        const void *there = atomic_load_explicit(&table[at].object, memory_order_relaxed);
        if (there == object ||
            (!there && (atomic_compare_exchange_strong(&table[at].object, &there, object) ||
                        there == object)))
            return &table[at];
    }
    return NULL;
}

/* `alone`: what others have left there is of no more use. */
static void threads_leave(const void *object, bool alone)
{
    const struct tape_place here = tape_here();
    if (here.count == 0 || threads_are_left_out())
        return;
    struct left *left = threads_find(object);
    if (!left)
        return;
    if (!alone) {
        /* Another thread's place in the same way is not lost: this thread comes after it. */
        int way = (int)(here.thread % WAYS);
        unsigned long long there = atomic_load_explicit(&left->places[way], memory_order_acquire);
        do
            tape_after(tape_unpack(there));
        while (!atomic_compare_exchange_weak(&left->places[way], &there, tape_pack(tape_here())));
        atomic_fetch_or_explicit(&left->used, 1ULL << way, memory_order_release);
        return;
    }
    atomic_store_explicit(&left->places[0], tape_pack(here), memory_order_release);
    if (!(atomic_load_explicit(&left->used, memory_order_relaxed) & 1))
        atomic_fetch_or_explicit(&left->used, 1, memory_order_release);
}

/* `counted` as in struct tape_place */
static void follow_by(const void *object, enum recording_way way, uint32_t counted)
{
    struct left *left = threads_are_left_out() ? NULL : threads_find(object);
    if (!left)
        return;
    unsigned long long used = atomic_load_explicit(&left->used, memory_order_acquire);
    for (; used; used &= used - 1) {
        struct tape_place place = tape_unpack(
            atomic_load_explicit(&left->places[__builtin_ctzll(used)], memory_order_acquire));
        place.way = way;
        place.object = counted;
        tape_after(place);
    }
}

static void threads_follow(const void *object)
{
    follow_by(object, RECORDING_WAITED, 0);
}

/* ---- threads ---------------------------------------------------------------------------------- */

struct start {
    void *(*function)(void *);
    thrd_start_t c_function; /* the other one, of thrd_create */
    void *arg;
    struct tape_place parent;
    bool internal;
};
static pthread_key_t at_exit;

static void leave_thread(void *unused)
{
    (void)unused;
    threads_leave((void *)(uintptr_t)pthread_self(), true);
}

__attribute__((constructor)) static void threads_make_key(void)
{
    pthread_key_create(&at_exit, leave_thread);
}

/* The C library's function is found when the process begins. dlsym wants the loader's lock, which a thread has while the
   constructors of a library that it opens are executed; when they want a lock of the program, the thread that holds
   that one must not want the loader's in its first wait. */
#define EARLY(name)                                                                                \
    __attribute__((constructor)) static void early_##name(void)                                    \
    {                                                                                              \
        void *function = NULL;                                                                     \
        if (real_find(&function, #name))                                                           \
            real_remember(#name, function);                                                        \
    }

/* In the new thread: what its creator has told it. */
static struct start threads_begin_thread(void *arg)
{
    const struct start start = *(struct start *)arg;
    free(arg);
    internal = start.internal;
    touch_begin_thread();
    if (!internal) {
        pthread_setspecific(at_exit, &at_exit);
        tape_after(start.parent);
    }
    return start;
}

static void *run_thread(void *arg)
{
    const struct start start = threads_begin_thread(arg);
    return start.function(start.arg);
}

static int run_c_thread(void *arg)
{
    const struct start start = threads_begin_thread(arg);
    return start.c_function(start.arg);
}

static atomic_bool several;

bool threads_are_several(void)
{
    return atomic_load_explicit(&several, memory_order_relaxed);
}

/* NULL: the thread is to start as it would alone. */
static struct start *new_start(struct start like)
{
    struct start *start = tape_on() ? malloc(sizeof *start) : NULL;
    if (!tape_in_call() && !internal)
        atomic_store_explicit(&several, true, memory_order_relaxed);
    if (!start)
        return NULL;
    like.parent = tape_here();
    like.internal = tape_in_call() || internal;
    *start = like;
    return start;
}

EARLY(pthread_create)
int pthread_create(pthread_t *restrict out, const pthread_attr_t *restrict attributes,
                   void *(*function)(void *), void *restrict arg)
{
    REAL(pthread_create, (pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))
    struct start *start = new_start((struct start){.function = function, .arg = arg});
    const int result =
        start ? real(out, attributes, run_thread, start) : real(out, attributes, function, arg);
    if (result != 0)
        free(start);
    return result;
}

EARLY(thrd_create)
int thrd_create(thrd_t *out, thrd_start_t function, void *arg)
{
    REAL(thrd_create, (thrd_t *, thrd_start_t, void *))
    struct start *start = new_start((struct start){.c_function = function, .arg = arg});
    const int result = start ? real(out, run_c_thread, start) : real(out, function, arg);
    if (result != thrd_success)
        free(start);
    return result;
}

#define JOINS(name, PARAMS, ARGS, way)                                                             \
    EARLY(name)                                                                                    \
    int name PARAMS                                                                                \
    {                                                                                              \
        REAL(name, PARAMS)                                                                         \
        const int result = real ARGS;                                                              \
        if (result == 0)                                                                           \
            follow_by((void *)(uintptr_t)thread, way, 0);                                          \
        return result;                                                                             \
    }
JOINS(pthread_join, (pthread_t thread, void **out), (thread, out), RECORDING_WAITED)
JOINS(pthread_tryjoin_np, (pthread_t thread, void **out), (thread, out), RECORDING_IN_TIME)
JOINS(pthread_timedjoin_np, (pthread_t thread, void **out, const struct timespec *until),
      (thread, out, until), RECORDING_IN_TIME)
JOINS(pthread_clockjoin_np,
      (pthread_t thread, void **out, clockid_t clock, const struct timespec *until),
      (thread, out, clock, until), RECORDING_IN_TIME)
JOINS(thrd_join, (thrd_t thread, int *out), (thread, out), RECORDING_WAITED)

/* ---- once ------------------------------------------------------------------------------------- */

/* The function that is to be called once: its end lets all others go on. */
static __thread struct {
    void (*function)(void);
    const void *flag;
} first __attribute__((tls_model("initial-exec")));

static void run_first(void)
{
    const void *flag = first.flag;
    first.function();
    threads_leave(flag, true);
}

EARLY(pthread_once)
int pthread_once(pthread_once_t *flag, void (*function)(void))
{
    REAL(pthread_once, (pthread_once_t *, void (*)(void)))
    if (threads_are_left_out())
        return real(flag, function);
    first.function = function;
    first.flag = flag;
    const int result = real(flag, run_first);
    threads_follow(flag);
    return result;
}

void call_once(once_flag *flag, void (*function)(void))
{
    static void (*real)(once_flag *, void (*)(void));
    if (!real_find(&real, "call_once"))
        return;
    if (threads_are_left_out()) {
        real(flag, function);
        return;
    }
    first.function = function;
    first.flag = flag;
    real(flag, run_first);
    threads_follow(flag);
}

/* ---- locks ------------------------------------------------------------------------------------ */

/* A number for the lock at an address; 0: there is no room. Another lock at the same address later on has the same. */
static uint64_t number_of(const void *lock)
{
    const struct left *left = threads_find(lock);
    return left ? (uint64_t)(left - table) + 1 : 0;
}

static int threads_find_held(const void *lock)
{
    int at = own.count - 1;
    while (at >= 0 && own.held[at].lock != lock)
        at--;
    return at;
}

void threads_tell_locks(void)
{
    for (int i = 0; i < own.count; i++) {
        const uint64_t number = own.held[i].told ? 0 : number_of(own.held[i].lock);
        own.held[i].told = true;
        if (number != 0)
            tape_put(RECORDING_LOCK, WORDS(number, own.held[i].kind == READER));
    }
}

/* Readers leave their places apart: they come after writers, and not after each other. */
static const void *readers_of(const void *lock)
{
    return (const char *)lock + 1;
}

/* The caller goes on after others that had the lock; they might have come after it. */
static void threads_locked(const void *lock, enum lock_kind kind)
{
    const int at = threads_find_held(lock);
    if (threads_are_left_out() || threads_orders_nothing(lock))
        return;
    if (at >= 0) {
        own.held[at].again++;
        return;
    }
    const bool polls = own.taken == lock && own.paused && own.taken_at == tape_here().count;
    const enum recording_way way = polls ? RECORDING_POLLED : RECORDING_LOCKED;
    follow_by(lock, way, kind == MUTEX ? (uint32_t)number_of(lock) : 0);
    if (kind == WRITER)
        follow_by(readers_of(lock), way, 0);
    own.taken = lock;
    own.taken_at = tape_here().count;
    own.paused = false;
    own.released = NULL;
    if (own.count < HELD) {
        own.held[own.count].lock = lock;
        own.held[own.count].kind = kind;
        own.held[own.count].again = 0;
        own.held[own.count++].told = false;
    }
}

/* Others go on after the caller, which is about to give the lock away. */
static void threads_unlock(const void *lock)
{
    const int at = threads_find_held(lock);
    const bool reads = at >= 0 && own.held[at].kind == READER;
    if (threads_orders_nothing(lock))
        return;
    if (at >= 0 && own.held[at].again > 0) {
        own.held[at].again--;
        return;
    }
    if (at >= 0) {
        if (own.held[at].told && number_of(lock) != 0)
            tape_put(RECORDING_UNLOCK, WORDS(number_of(lock)));
        for (int i = at; i + 1 < own.count; i++)
            own.held[i] = own.held[i + 1];
        own.count--;
    }
    threads_leave(reads ? readers_of(lock) : lock, !reads);
    own.released = lock;
    own.released_at = tape_here().count;
}

/* A condition is about to be signalled: of the lock that threads wait with, or have, or have just given back. */
static void threads_signal(const void *condition)
{
    counted_signal(condition);
    const void *lock = counted_lock(condition);
    if (!lock && own.count > 0)
        lock = own.held[own.count - 1].lock;
    else if (!lock && own.released_at == tape_here().count)
        lock = own.released;
    if (!lock || tape_here().count == 0 || threads_are_left_out() ||
        threads_orders_nothing(condition) || number_of(lock) == 0 ||
        (own.signalled == lock && own.signalled_at == tape_here().count))
        return;
    tape_put(RECORDING_SIGNAL, WORDS(number_of(lock)));
    own.signalled = lock;
    own.signalled_at = tape_here().count;
}

#define CALLS(name, PARAMS, ARGS, before, good, after)                                             \
    EARLY(name)                                                                                    \
    int name PARAMS                                                                                \
    {                                                                                              \
        REAL(name, PARAMS)                                                                         \
        before;                                                                                    \
        const int result = real ARGS;                                                              \
        if (good)                                                                                  \
            after;                                                                                 \
        return result;                                                                             \
    }
#define NOTHING ((void)0)
#define FOLLOWS(name, PARAMS, ARGS, good, kind)                                                    \
    CALLS(name, PARAMS, ARGS, NOTHING, good, threads_locked((const void *)lock, kind))
#define LEAVES(name, PARAMS, ARGS)                                                                 \
    CALLS(name, PARAMS, ARGS, threads_unlock((const void *)lock), true, NOTHING)

FOLLOWS(pthread_mutex_lock, (pthread_mutex_t * lock), (lock), result == 0, MUTEX)
FOLLOWS(pthread_mutex_trylock, (pthread_mutex_t * lock), (lock), result == 0, MUTEX)
FOLLOWS(pthread_mutex_timedlock,
        (pthread_mutex_t *restrict lock, const struct timespec *restrict until), (lock, until),
        result == 0, MUTEX)
FOLLOWS(pthread_mutex_clocklock,
        (pthread_mutex_t *restrict lock, clockid_t clock, const struct timespec *restrict until),
        (lock, clock, until), result == 0, MUTEX)
LEAVES(pthread_mutex_unlock, (pthread_mutex_t * lock), (lock))

FOLLOWS(pthread_spin_lock, (pthread_spinlock_t * lock), (lock), result == 0, MUTEX)
FOLLOWS(pthread_spin_trylock, (pthread_spinlock_t * lock), (lock), result == 0, MUTEX)
LEAVES(pthread_spin_unlock, (pthread_spinlock_t * lock), (lock))

FOLLOWS(mtx_lock, (mtx_t * lock), (lock), result == thrd_success, MUTEX)
FOLLOWS(mtx_trylock, (mtx_t * lock), (lock), result == thrd_success, MUTEX)
FOLLOWS(mtx_timedlock, (mtx_t *restrict lock, const struct timespec *restrict until), (lock, until),
        result == thrd_success, MUTEX)
LEAVES(mtx_unlock, (mtx_t * lock), (lock))

#define READS(name, PARAMS, ARGS)                                                                  \
    CALLS(name, PARAMS, ARGS, NOTHING, result == 0, threads_locked(lock, READER))
READS(pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock))
READS(pthread_rwlock_tryrdlock, (pthread_rwlock_t * lock), (lock))
READS(pthread_rwlock_timedrdlock,
      (pthread_rwlock_t *restrict lock, const struct timespec *restrict until), (lock, until))
READS(pthread_rwlock_clockrdlock,
      (pthread_rwlock_t *restrict lock, clockid_t clock, const struct timespec *restrict until),
      (lock, clock, until))
FOLLOWS(pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock), result == 0, WRITER)
FOLLOWS(pthread_rwlock_trywrlock, (pthread_rwlock_t * lock), (lock), result == 0, WRITER)
FOLLOWS(pthread_rwlock_timedwrlock,
        (pthread_rwlock_t *restrict lock, const struct timespec *restrict until), (lock, until),
        result == 0, WRITER)
FOLLOWS(pthread_rwlock_clockwrlock,
        (pthread_rwlock_t *restrict lock, clockid_t clock, const struct timespec *restrict until),
        (lock, clock, until), result == 0, WRITER)
LEAVES(pthread_rwlock_unlock, (pthread_rwlock_t * lock), (lock))

/* A thread that pauses between two times that it takes a lock looks whether something has changed. */
#define PAUSES(name, PARAMS, ARGS) CALLS(name, PARAMS, ARGS, own.paused = true, true, NOTHING)
PAUSES(sched_yield, (void), ())
PAUSES(usleep, (useconds_t us), (us))
PAUSES(nanosleep, (const struct timespec *time, struct timespec *left), (time, left))
PAUSES(clock_nanosleep,
       (clockid_t clock, int flags, const struct timespec *time, struct timespec *left),
       (clock, flags, time, left))
PAUSES(thrd_sleep, (const struct timespec *time, struct timespec *left), (time, left))

void thrd_yield(void)
{
    static void (*real)(void);
    own.paused = true;
    if (real_find(&real, "thrd_yield"))
        real();
}

/* ---- what is counted --------------------------------------------------------------------------- */

/* The object is told to counted.c: before the call, and after it where that went well. */
#define COUNTS(name, PARAMS, ARGS, before, after)                                                  \
    CALLS(name, PARAMS, ARGS, before, result == 0, after)

/* Of one that processes share nothing is known. */
static void begin_shared(const void *object, uint64_t value, bool shared)
{
    if (shared)
        counted_end(object);
    else
        counted_begin(object, value);
}

COUNTS(sem_init, (sem_t * semaphore, int shared, unsigned value), (semaphore, shared, value),
       NOTHING, begin_shared(semaphore, value, shared != 0))
COUNTS(sem_destroy, (sem_t * semaphore), (semaphore), NOTHING, counted_end(semaphore))
COUNTS(sem_wait, (sem_t * semaphore), (semaphore), NOTHING,
       counted_taken(semaphore, RECORDING_WAITED))
COUNTS(sem_trywait, (sem_t * semaphore), (semaphore), NOTHING,
       counted_taken(semaphore, RECORDING_IN_TIME))
COUNTS(sem_timedwait, (sem_t *restrict semaphore, const struct timespec *restrict until),
       (semaphore, until), NOTHING, counted_taken(semaphore, RECORDING_IN_TIME))
COUNTS(sem_clockwait,
       (sem_t *restrict semaphore, clockid_t clock, const struct timespec *restrict until),
       (semaphore, clock, until), NOTHING, counted_taken(semaphore, RECORDING_IN_TIME))
COUNTS(sem_post, (sem_t * semaphore), (semaphore), counted_post(semaphore), NOTHING)

COUNTS(pthread_cond_init,
       (pthread_cond_t *restrict condition, const pthread_condattr_t *restrict attributes),
       (condition, attributes), NOTHING, counted_begin(condition, 0))
COUNTS(pthread_cond_destroy, (pthread_cond_t * condition), (condition), counted_end(condition),
       NOTHING)
COUNTS(pthread_cond_signal, (pthread_cond_t * condition), (condition), threads_signal(condition),
       NOTHING)
COUNTS(pthread_cond_broadcast, (pthread_cond_t * condition), (condition), threads_signal(condition),
       NOTHING)
COUNTS(cnd_init, (cnd_t * condition), (condition), NOTHING, counted_begin(condition, 0))
COUNTS(cnd_signal, (cnd_t * condition), (condition), threads_signal(condition), NOTHING)
COUNTS(cnd_broadcast, (cnd_t * condition), (condition), threads_signal(condition), NOTHING)

void cnd_destroy(cnd_t *condition)
{
    static void (*real)(cnd_t *);
    if (!real_find(&real, "cnd_destroy"))
        return;
    counted_end(condition);
    real(condition);
}

/* A wait gives the lock away and takes it again. */
#define WAITS(name, PARAMS, ARGS, way)                                                             \
    EARLY(name)                                                                                    \
    int name PARAMS                                                                                \
    {                                                                                              \
        REAL(name, PARAMS)                                                                         \
        const uint64_t signals = counted_signals(condition);                                       \
        counted_set_lock(condition, lock);                                                         \
        threads_unlock(lock);                                                                      \
        const int result = real ARGS;                                                              \
        if (result == 0)                                                                           \
            counted_woken(condition, signals, way);                                                \
        threads_locked(lock, MUTEX);                                                               \
        return result;                                                                             \
    }
WAITS(pthread_cond_wait, (pthread_cond_t *restrict condition, pthread_mutex_t *restrict lock),
      (condition, lock), RECORDING_WAITED)
WAITS(pthread_cond_timedwait,
      (pthread_cond_t *restrict condition, pthread_mutex_t *restrict lock,
       const struct timespec *restrict until),
      (condition, lock, until), RECORDING_IN_TIME)
WAITS(pthread_cond_clockwait,
      (pthread_cond_t *restrict condition, pthread_mutex_t *restrict lock, clockid_t clock,
       const struct timespec *restrict until),
      (condition, lock, clock, until), RECORDING_IN_TIME)
WAITS(cnd_wait, (cnd_t * condition, mtx_t *lock), (condition, lock), RECORDING_WAITED)
WAITS(cnd_timedwait,
      (cnd_t *restrict condition, mtx_t *restrict lock, const struct timespec *restrict until),
      (condition, lock, until), RECORDING_IN_TIME)

static bool threads_is_shared(const pthread_barrierattr_t *attributes)
{
    int shared = PTHREAD_PROCESS_PRIVATE;
    return attributes && pthread_barrierattr_getpshared(attributes, &shared) == 0 &&
           shared == PTHREAD_PROCESS_SHARED;
}

COUNTS(pthread_barrier_init,
       (pthread_barrier_t *restrict barrier, const pthread_barrierattr_t *restrict attributes,
        unsigned count),
       (barrier, attributes, count), NOTHING,
       begin_shared(barrier, count, threads_is_shared(attributes)))
COUNTS(pthread_barrier_destroy, (pthread_barrier_t * barrier), (barrier), NOTHING,
       counted_end(barrier))

EARLY(pthread_barrier_wait)
int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    REAL(pthread_barrier_wait, (pthread_barrier_t *))
    const struct counted_round round = counted_arrive(barrier);
    if (round.key)
        threads_leave(round.key, false);
    const int result = real(barrier);
    if (round.key)
        follow_by(round.key, RECORDING_WAITED, round.object);
    return result;
}
