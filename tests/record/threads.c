/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.c - a result that one thread gives to another, in every way that the C library has for it: what `swsim record`
 * is tried on. `threads CASE fixed` records the event and then lets the other thread go on; `threads CASE` lets it go on
 * first, a mistake that does not strike, for the other thread sleeps.
 */
#include <cuda_runtime_api.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "gpu/device/cuda/kernels.h"
#include "check.h"

enum { COUNT = 1024, BYTES = COUNT * sizeof(float), WHILE_US = 30000, MANY = 96 };

static bool fixed;
static float *x, *y, *z;
static cudaStream_t one, two;
static cudaEvent_t event;

static void begin(void)
{
    float **all[] = {&x, &y, &z};
    CHECK(kernels_load());
    CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    for (int i = 0; i < 3; i++) {
        CHECK(cudaMalloc((void **)all[i], BYTES));
        CHECK(cudaMemsetAsync(*all[i], 0, BYTES, one));
    }
    CHECK(cudaStreamSynchronize(one));
}

static void produce(void)
{
    CHECK(kernels_fill_f32(one, x, COUNT, 1.0F));
    CHECK(cudaEventRecord(event, one));
}

static void consume(void)
{
    CHECK(cudaStreamWaitEvent(two, event, 0));
    CHECK(kernels_axpy(two, x, y, COUNT, 1.0F));
}

static struct timespec soon(clockid_t clock)
{
    struct timespec at;
    CHECK(clock_gettime(clock, &at));
    at.tv_sec += 60;
    return at;
}

/* ---- ways to let another thread go on, and to wait for it ------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool set;

static void cond_give(void)
{
    CHECK(pthread_mutex_lock(&lock));
    set = true;
    CHECK(pthread_mutex_unlock(&lock));
    CHECK(pthread_cond_broadcast(&changed));
}
static void cond_take(void)
{
    CHECK(pthread_mutex_lock(&lock));
    while (!set)
        CHECK(pthread_cond_wait(&changed, &lock));
    CHECK(pthread_mutex_unlock(&lock));
}
static void cond_timed_take(void)
{
    const struct timespec until = soon(CLOCK_REALTIME);
    CHECK(pthread_mutex_lock(&lock));
    while (!set)
        CHECK(pthread_cond_timedwait(&changed, &lock, &until));
    CHECK(pthread_mutex_unlock(&lock));
}
static void cond_clock_take(void)
{
    const struct timespec until = soon(CLOCK_MONOTONIC);
    CHECK(pthread_mutex_lock(&lock));
    while (!set)
        CHECK(pthread_cond_clockwait(&changed, &lock, CLOCK_MONOTONIC, &until));
    CHECK(pthread_mutex_unlock(&lock));
}

/* `lock` in some way until it is set */
#define POLL(name, lock_it, unlock_it)                                                             \
    static void name(void)                                                                         \
    {                                                                                              \
        for (bool done = false; !done; sched_yield()) {                                            \
            lock_it;                                                                               \
            done = set;                                                                            \
            CHECK(unlock_it);                                                                      \
        }                                                                                          \
    }
POLL(mutex_take, CHECK(pthread_mutex_lock(&lock)), pthread_mutex_unlock(&lock))
POLL(mutex_try_take, while (pthread_mutex_trylock(&lock) != 0) sched_yield(),
     pthread_mutex_unlock(&lock))
POLL(mutex_timed_take, const struct timespec until = soon(CLOCK_REALTIME);
     CHECK(pthread_mutex_timedlock(&lock, &until)), pthread_mutex_unlock(&lock))
POLL(mutex_clock_take, const struct timespec until = soon(CLOCK_MONOTONIC);
     CHECK(pthread_mutex_clocklock(&lock, CLOCK_MONOTONIC, &until)), pthread_mutex_unlock(&lock))

static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static void rwlock_give(void)
{
    CHECK(pthread_rwlock_wrlock(&shared));
    set = true;
    CHECK(pthread_rwlock_unlock(&shared));
}
static void rwlock_timed_give(void)
{
    const struct timespec until = soon(CLOCK_REALTIME);
    CHECK(pthread_rwlock_timedwrlock(&shared, &until));
    set = true;
    CHECK(pthread_rwlock_unlock(&shared));
}
POLL(rwlock_take, CHECK(pthread_rwlock_rdlock(&shared)), pthread_rwlock_unlock(&shared))
POLL(rwlock_timed_take, const struct timespec until = soon(CLOCK_REALTIME);
     CHECK(pthread_rwlock_timedrdlock(&shared, &until)), pthread_rwlock_unlock(&shared))
POLL(rwlock_clock_take, const struct timespec until = soon(CLOCK_MONOTONIC);
     CHECK(pthread_rwlock_clockrdlock(&shared, CLOCK_MONOTONIC, &until)),
     pthread_rwlock_unlock(&shared))

static pthread_spinlock_t spin;
static void spin_give(void)
{
    CHECK(pthread_spin_lock(&spin));
    set = true;
    CHECK(pthread_spin_unlock(&spin));
}
POLL(spin_take, CHECK(pthread_spin_lock(&spin)), pthread_spin_unlock(&spin))

static mtx_t c_lock;
static cnd_t c_changed;
static void c_cond_give(void)
{
    CHECK(mtx_lock(&c_lock));
    set = true;
    CHECK(mtx_unlock(&c_lock));
    CHECK(cnd_signal(&c_changed));
}
static void c_cond_take(void)
{
    CHECK(mtx_lock(&c_lock));
    while (!set)
        CHECK(cnd_wait(&c_changed, &c_lock));
    CHECK(mtx_unlock(&c_lock));
}
static void c_cond_timed_take(void)
{
    const struct timespec until = soon(CLOCK_REALTIME);
    CHECK(mtx_lock(&c_lock));
    while (!set)
        CHECK(cnd_timedwait(&c_changed, &c_lock, &until));
    CHECK(mtx_unlock(&c_lock));
}
POLL(c_mutex_take, CHECK(mtx_lock(&c_lock)), mtx_unlock(&c_lock))
POLL(c_mutex_try_take, while (mtx_trylock(&c_lock) != thrd_success) sched_yield(),
     mtx_unlock(&c_lock))
POLL(c_mutex_timed_take, const struct timespec until = soon(CLOCK_REALTIME);
     CHECK(mtx_timedlock(&c_lock, &until)), mtx_unlock(&c_lock))

static sem_t semaphore;
static void sem_give(void)
{
    CHECK(sem_post(&semaphore));
}
static void sem_take(void)
{
    CHECK(sem_wait(&semaphore));
}
static void sem_try_take(void)
{
    while (sem_trywait(&semaphore) != 0)
        sched_yield();
}
static void sem_timed_take(void)
{
    const struct timespec until = soon(CLOCK_REALTIME);
    CHECK(sem_timedwait(&semaphore, &until));
}
static void sem_clock_take(void)
{
    const struct timespec until = soon(CLOCK_MONOTONIC);
    CHECK(sem_clockwait(&semaphore, CLOCK_MONOTONIC, &until));
}

static pthread_barrier_t barrier;
static void barrier_meet(void)
{
    const int result = pthread_barrier_wait(&barrier);
    CHECK(result == PTHREAD_BARRIER_SERIAL_THREAD ? 0 : result);
}

static int ends[2] = {-1, -1};
static void write_give(void)
{
    CHECK(write(ends[1], "12345678", 8) == 8 ? 0 : errno);
}
static void read_take(void)
{
    char got[8];
    CHECK(read(ends[0], got, 8) == 8 ? 0 : errno);
}
static void send_give(void)
{
    CHECK(send(ends[1], "12345678", 8, 0) == 8 ? 0 : errno);
}
static void receive_take(void)
{
    char got[8];
    CHECK(recv(ends[0], got, 8, MSG_WAITALL) == 8 ? 0 : errno);
}
static void eventfd_give(void)
{
    CHECK(eventfd_write(ends[1], 1));
}
static void eventfd_take(void)
{
    eventfd_t got;
    CHECK(eventfd_read(ends[0], &got));
}

static atomic_int word;
static void futex_give(void)
{
    atomic_store(&word, 1);
    CHECK(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) < 0 ? errno : 0);
}
static void futex_take(void)
{
    while (atomic_load(&word) == 0)
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}
static void atomic_give(void)
{
    atomic_store(&word, 1);
}
static void atomic_take(void)
{
    while (atomic_load(&word) == 0)
        sched_yield();
}

static pthread_t main_thread;
static void signal_give(void)
{
    CHECK(pthread_kill(main_thread, SIGUSR1));
}
static void signal_take(void)
{
    int got;
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGUSR1);
    CHECK(sigwait(&wanted, &got));
}

static const struct {
    const char *name;
    void (*give)(void), (*take)(void);
} ways[] = {
    {"cond", cond_give, cond_take},
    {"cond_timed", cond_give, cond_timed_take},
    {"cond_clock", cond_give, cond_clock_take},
    {"mutex", cond_give, mutex_take},
    {"mutex_try", cond_give, mutex_try_take},
    {"mutex_timed", cond_give, mutex_timed_take},
    {"mutex_clock", cond_give, mutex_clock_take},
    {"rwlock", rwlock_give, rwlock_take},
    {"rwlock_timed", rwlock_timed_give, rwlock_timed_take},
    {"rwlock_clock", rwlock_give, rwlock_clock_take},
    {"spin", spin_give, spin_take},
    {"c_cond", c_cond_give, c_cond_take},
    {"c_cond_timed", c_cond_give, c_cond_timed_take},
    {"c_mutex", c_cond_give, c_mutex_take},
    {"c_mutex_try", c_cond_give, c_mutex_try_take},
    {"c_mutex_timed", c_cond_give, c_mutex_timed_take},
    {"sem", sem_give, sem_take},
    {"sem_try", sem_give, sem_try_take},
    {"sem_timed", sem_give, sem_timed_take},
    {"sem_clock", sem_give, sem_clock_take},
    {"barrier", barrier_meet, barrier_meet},
    {"pipe", write_give, read_take},
    {"socket", send_give, receive_take},
    {"eventfd", eventfd_give, eventfd_take},
    {"signal", signal_give, signal_take},
    {"futex", futex_give, futex_take},
    {"atomic", atomic_give, atomic_take},
};
static size_t way;

static void prepare(const char *name)
{
    CHECK(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
    CHECK(mtx_init(&c_lock, mtx_timed));
    CHECK(cnd_init(&c_changed));
    CHECK(sem_init(&semaphore, 0, 0));
    CHECK(pthread_barrier_init(&barrier, NULL, 2));
    main_thread = pthread_self();
    if (strcmp(name, "pipe") == 0)
        CHECK(pipe(ends));
    if (strcmp(name, "socket") == 0)
        CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    if (strcmp(name, "eventfd") == 0)
        ends[0] = ends[1] = eventfd(0, EFD_CLOEXEC);
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    CHECK(pthread_sigmask(SIG_BLOCK, &blocked, NULL));
}

static void set_way(const char *name)
{
    for (way = 0; strcmp(ways[way].name, name) != 0; way++)
        ;
}

static void *give_in_thread(void *unused)
{
    (void)unused;
    if (fixed)
        produce();
    ways[way].give();
    if (!fixed)
        produce();
    return NULL;
}

static void hand_over(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, give_in_thread, NULL));
    ways[way].take();
    usleep(WHILE_US); /* without it a run would show the mistake now and then */
    consume();
    CHECK(pthread_join(thread, NULL));
}

/* ---- the beginning and the end of a thread ---------------------------------------------------- */

static void *produce_in_thread(void *unused)
{
    (void)unused;
    produce();
    return NULL;
}
static int produce_in_c_thread(void *unused)
{
    (void)unused;
    produce();
    return 0;
}

/* The thread is joined in some way, or too late. */
static void join_by(int (*join)(pthread_t thread))
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, produce_in_thread, NULL));
    usleep(WHILE_US);
    if (fixed)
        CHECK(join(thread));
    consume();
    if (!fixed)
        CHECK(join(thread));
}
static int plain_join(pthread_t thread)
{
    return pthread_join(thread, NULL);
}
static int try_join(pthread_t thread)
{
    int result;
    while ((result = pthread_tryjoin_np(thread, NULL)) == EBUSY)
        sched_yield();
    return result;
}
static int timed_join(pthread_t thread)
{
    const struct timespec until = soon(CLOCK_REALTIME);
    return pthread_timedjoin_np(thread, NULL, &until);
}
static int clock_join(pthread_t thread)
{
    const struct timespec until = soon(CLOCK_MONOTONIC);
    return pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until);
}
static void joined(void)
{
    join_by(plain_join);
}
static void try_joined(void)
{
    join_by(try_join);
}
static void timed_joined(void)
{
    join_by(timed_join);
}
static void clock_joined(void)
{
    join_by(clock_join);
}
static void c_joined(void)
{
    thrd_t thread;
    CHECK(thrd_create(&thread, produce_in_c_thread, NULL));
    usleep(WHILE_US);
    if (fixed)
        CHECK(thrd_join(thread, NULL));
    consume();
    if (!fixed)
        CHECK(thrd_join(thread, NULL));
}

/* The thread that is made uses what was recorded before, or after. */
static void *consume_in_thread(void *unused)
{
    (void)unused;
    usleep(WHILE_US);
    consume();
    return NULL;
}
static int consume_in_c_thread(void *unused)
{
    consume_in_thread(unused);
    return 0;
}
static void created(void)
{
    pthread_t thread;
    if (fixed)
        produce();
    CHECK(pthread_create(&thread, NULL, consume_in_thread, NULL));
    if (!fixed)
        produce();
    CHECK(pthread_join(thread, NULL));
}
static void c_created(void)
{
    thrd_t thread;
    if (fixed)
        produce();
    CHECK(thrd_create(&thread, consume_in_c_thread, NULL));
    if (!fixed)
        produce();
    CHECK(thrd_join(thread, NULL));
}

/* A host function lets the thread go on that consumes: its stream orders the two. */
static void give_from_stream(void *unused)
{
    (void)unused;
    cond_give();
}
static void *take_in_thread(void *unused)
{
    (void)unused;
    cond_take();
    usleep(WHILE_US);
    consume();
    return NULL;
}
static void by_host_function(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, take_in_thread, NULL));
    if (fixed)
        produce();
    CHECK(cudaLaunchHostFunc(one, give_from_stream, NULL));
    if (!fixed)
        produce();
    CHECK(pthread_join(thread, NULL));
}

/* Both take the lock, and neither looks whether the other one has. */
static void *produce_and_lock(void *unused)
{
    (void)unused;
    produce();
    CHECK(pthread_mutex_lock(&lock));
    CHECK(pthread_mutex_unlock(&lock));
    return NULL;
}
static void lock_alone(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, produce_and_lock, NULL));
    if (fixed)
        CHECK(pthread_join(thread, NULL));
    usleep(WHILE_US * 10);
    CHECK(pthread_mutex_lock(&lock));
    CHECK(pthread_mutex_unlock(&lock));
    consume();
    if (!fixed)
        CHECK(pthread_join(thread, NULL));
}

/* The same, and within it each takes a lock that the other one never takes. */
static pthread_mutex_t inner[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

static void lock_both(int own)
{
    CHECK(pthread_mutex_lock(&lock));
    CHECK(pthread_mutex_lock(&inner[own]));
    CHECK(pthread_mutex_unlock(&inner[own]));
    CHECK(pthread_mutex_unlock(&lock));
}

static void *produce_and_lock_both(void *unused)
{
    (void)unused;
    produce();
    lock_both(0);
    return NULL;
}

static void lock_inner(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, produce_and_lock_both, NULL));
    if (fixed)
        CHECK(pthread_join(thread, NULL));
    usleep(WHILE_US * 10);
    lock_both(1);
    consume();
    if (!fixed)
        CHECK(pthread_join(thread, NULL));
}

/* The same of a lock that both only read with. */
static void *produce_and_read(void *unused)
{
    (void)unused;
    produce();
    CHECK(pthread_rwlock_rdlock(&shared));
    CHECK(pthread_rwlock_unlock(&shared));
    return NULL;
}
static void readers_alone(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, produce_and_read, NULL));
    if (fixed)
        CHECK(pthread_join(thread, NULL));
    usleep(WHILE_US * 10);
    CHECK(pthread_rwlock_rdlock(&shared));
    CHECK(pthread_rwlock_unlock(&shared));
    consume();
    if (!fixed)
        CHECK(pthread_join(thread, NULL));
}

/* A thread that calls nothing hands on what another one gives it. */
static sem_t handed;
static void *hand_on(void *unused)
{
    (void)unused;
    sem_take();
    CHECK(sem_post(&handed));
    return NULL;
}
static void relayed(void)
{
    pthread_t thread, between;
    CHECK(sem_init(&handed, 0, 0));
    set_way("sem");
    CHECK(pthread_create(&between, NULL, hand_on, NULL));
    CHECK(pthread_create(&thread, NULL, give_in_thread, NULL));
    CHECK(sem_wait(&handed));
    usleep(WHILE_US);
    consume();
    CHECK(pthread_join(thread, NULL));
    CHECK(pthread_join(between, NULL));
}

/* Two threads use one event; a lock keeps each from recording it between the other's record and wait. */
static cudaStream_t third;
static void use_event(cudaStream_t from, float *own)
{
    if (fixed)
        CHECK(pthread_mutex_lock(&lock));
    CHECK(kernels_fill_f32(from, own, COUNT, 1.0F));
    CHECK(cudaEventRecord(event, from));
    CHECK(cudaStreamWaitEvent(two, event, 0));
    CHECK(kernels_axpy(two, own, z, COUNT, 1.0F));
    if (fixed)
        CHECK(pthread_mutex_unlock(&lock));
}
static void *use_in_thread(void *unused)
{
    (void)unused;
    use_event(one, x);
    return NULL;
}
static void lock_excludes(void)
{
    pthread_t thread;
    CHECK(cudaStreamCreateWithFlags(&third, cudaStreamNonBlocking));
    CHECK(pthread_create(&thread, NULL, use_in_thread, NULL));
    usleep(WHILE_US);
    use_event(third, y);
    CHECK(pthread_join(thread, NULL));
}

/* The same, where the main thread has taken the lock before without a call. */
static void lock_emptied(void)
{
    for (int i = 0; i < 3; i++) {
        CHECK(pthread_mutex_lock(&lock));
        CHECK(pthread_mutex_unlock(&lock));
    }
    lock_excludes();
}

/* ---- once ------------------------------------------------------------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static once_flag c_once = ONCE_FLAG_INIT;
static void nothing(void)
{
}
static void *once_in_thread(void *unused)
{
    (void)unused;
    CHECK(pthread_once(&once, fixed ? produce : nothing));
    if (!fixed)
        produce();
    return NULL;
}
static void once_by_two(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, once_in_thread, NULL));
    usleep(WHILE_US);
    CHECK(pthread_once(&once, fixed ? produce : nothing));
    consume();
    CHECK(pthread_join(thread, NULL));
}
static void *c_once_in_thread(void *unused)
{
    (void)unused;
    call_once(&c_once, fixed ? produce : nothing);
    if (!fixed)
        produce();
    return NULL;
}
static void c_once_by_two(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, c_once_in_thread, NULL));
    usleep(WHILE_US);
    call_once(&c_once, fixed ? produce : nothing);
    consume();
    CHECK(pthread_join(thread, NULL));
}

/* ---- many threads ----------------------------------------------------------------------------- */

/* The first one of many has a result; all of them post, meet or read. Each makes a call, so that it has a place to leave. */
static void (*also)(void); /* the others do */
static void *post_in_thread(void *number)
{
    CHECK(cudaSetDevice(0));
    if (*(int *)number == 0)
        give_in_thread(NULL);
    else {
        usleep(WHILE_US / 2); /* behind the first */
        also();
    }
    return NULL;
}
static void many(void (*take)(void), int takes)
{
    static int numbers[MANY];
    pthread_t threads[MANY];
    CHECK(pthread_barrier_destroy(&barrier));
    CHECK(pthread_barrier_init(&barrier, NULL, MANY + 1));
    for (int i = 0; i < MANY; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, post_in_thread, &numbers[i]));
    }
    for (int i = 0; i < takes; i++)
        take();
    usleep(WHILE_US);
    consume();
    for (int i = 0; i < MANY; i++)
        CHECK(pthread_join(threads[i], NULL));
}
static void many_post(void)
{
    set_way("sem");
    also = sem_give;
    many(sem_take, MANY);
}
static void many_meet(void)
{
    set_way("barrier");
    also = barrier_meet;
    many(barrier_meet, 1);
}
/* Readers that share a lock with the one that has the result. */
static void many_read(void)
{
    set_way("rwlock");
    also = rwlock_take;
    many(rwlock_take, 1);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"joined", joined},
    {"try_joined", try_joined},
    {"timed_joined", timed_joined},
    {"clock_joined", clock_joined},
    {"c_joined", c_joined},
    {"created", created},
    {"c_created", c_created},
    {"by_host_function", by_host_function},
    {"lock_alone", lock_alone},
    {"lock_emptied", lock_emptied},
    {"lock_excludes", lock_excludes},
    {"lock_inner", lock_inner},
    {"readers_alone", readers_alone},
    {"relayed", relayed},
    {"once", once_by_two},
    {"c_once", c_once_by_two},
    {"many_post", many_post},
    {"many_meet", many_meet},
    {"many_read", many_read},
};

/* Its cases, a line each. */
static int list(void)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        puts(ways[i].name);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        puts(cases[i].name);
    return 0;
}

int main(int argc, char **argv)
{
    void (*run)(void) = NULL;
    fixed = argc > 2 && strcmp(argv[2], "fixed") == 0;
    if (argc < 2)
        return list();
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(ways[i].name, argv[1]) == 0) {
            way = i;
            run = hand_over;
        }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(cases[i].name, argv[1]) == 0)
            run = cases[i].run;
    if (!run) {
        fprintf(stderr, "no such case\n");
        return 2;
    }
    prepare(argv[1]);
    begin();
    run();
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(x));
    CHECK(cudaFree(y));
    CHECK(cudaFree(z));
    return 0;
}
