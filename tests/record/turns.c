/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turns.c - threads that let each other go on more than once, for `swsim record`: `turns CASE` goes on after the first
 * time with what is there after the second one, and goes well, for the other thread is ahead; `turns CASE fixed` waits
 * for the second time. The exit status is 3 where the other thread was not ahead.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

#include "small.h"

enum { TOO_SLOW = 3 };

/* The first event stands for the work of one stream, the second for that of another one, which is used. */
static void produce_other(void)
{
    CHECK(kernels_fill_f32(three, z, COUNT, 2.0F));
    CHECK(cudaEventRecord(other, three));
}

static void produce_first(void)
{
    produce(one);
    CHECK(cudaEventRecord(event, one));
}

static void consume_other(void)
{
    CHECK(cudaStreamWaitEvent(two, other, 0));
    CHECK(kernels_fill_f32(two, z, COUNT, 3.0F));
}

static pthread_t start(void *(*function)(void *))
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, function, NULL));
    return thread;
}

/* ---- semaphores ----------------------------------------------------------------------------------- */

static sem_t semaphore;

static void take(void)
{
    while (sem_wait(&semaphore) != 0)
        ;
}

static void *post_twice(void *unused)
{
    (void)unused;
    produce_first();
    CHECK(sem_post(&semaphore));
    produce_other();
    CHECK(sem_post(&semaphore));
    return NULL;
}

static void sem_twice(void)
{
    CHECK(sem_init(&semaphore, 0, 0));
    const pthread_t thread = start(post_twice);
    luck();
    take();
    if (fixed)
        take();
    consume_other();
    CHECK(pthread_join(thread, NULL));
}

/* One that is there from the beginning says nothing of the other thread. */
static void *post_once(void *unused)
{
    (void)unused;
    produce_other();
    CHECK(sem_post(&semaphore));
    return NULL;
}

static void sem_of_one(void)
{
    CHECK(sem_init(&semaphore, 0, 1));
    const pthread_t thread = start(post_once);
    luck();
    take();
    if (fixed)
        take();
    consume_other();
    CHECK(pthread_join(thread, NULL));
}

/* The same memory is another semaphore. */
static void sem_again(void)
{
    CHECK(sem_init(&semaphore, 0, 0));
    CHECK(sem_post(&semaphore));
    take();
    CHECK(sem_destroy(&semaphore));
    sem_of_one();
}

/* Many times, with a limit of two: the right one waits for as many as it uses. */
static sem_t room;
enum { ROUNDS = 100 };
static void *post_many(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        while (sem_wait(&room) != 0)
            ;
        produce_other();
        CHECK(sem_post(&semaphore));
    }
    return NULL;
}

static void sem_many(void)
{
    CHECK(sem_init(&semaphore, 0, 0));
    CHECK(sem_init(&room, 0, fixed ? 1 : 2));
    const pthread_t thread = start(post_many);
    for (int i = 0; i < ROUNDS; i++) {
        take();
        if (i == 0)
            luck();
        consume_other();
        CHECK(cudaStreamSynchronize(two));
        CHECK(sem_post(&room));
    }
    CHECK(pthread_join(thread, NULL));
}

/* Two threads post, and which one is first is luck. */
static atomic_int turn;
static void await_turn(int number)
{
    while (atomic_load(&turn) < number)
        usleep(100);
}

static void *post_first(void *unused)
{
    (void)unused;
    await_turn(1);
    produce_first();
    CHECK(sem_post(&semaphore));
    return NULL;
}

static void *post_other(void *unused)
{
    post_once(unused);
    atomic_store(&turn, 1);
    return NULL;
}

static void sem_of_two(void)
{
    CHECK(sem_init(&semaphore, 0, 0));
    const pthread_t first = start(post_first), second = start(post_other);
    take();
    if (fixed)
        take();
    consume_other();
    CHECK(pthread_join(first, NULL));
    CHECK(pthread_join(second, NULL));
}

/* A semaphore as a lock, as that of Python: which one takes it first is luck. */
static void *push_in_lock(void *unused)
{
    (void)unused;
    take();
    produce_other();
    CHECK(sem_post(&semaphore));
    return NULL;
}

static void sem_as_lock(void)
{
    CHECK(sem_init(&semaphore, 0, 1));
    const pthread_t thread = start(push_in_lock);
    if (fixed)
        CHECK(pthread_join(thread, NULL));
    luck();
    take();
    consume_other();
    CHECK(sem_post(&semaphore));
    if (!fixed)
        CHECK(pthread_join(thread, NULL));
}

/* ---- conditions ----------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int there;
static atomic_bool waiting;

static void put_one(void (*work)(void))
{
    CHECK(pthread_mutex_lock(&lock));
    work();
    there++;
    CHECK(pthread_cond_signal(&changed));
    CHECK(pthread_mutex_unlock(&lock));
}

static void *put_two(void *unused)
{
    (void)unused;
    while (!atomic_load(&waiting))
        usleep(100);
    luck();
    put_one(produce_first);
    put_one(produce_other);
    return NULL;
}

/* The thread that is woken has the processor when the other one has nothing to do. A run that is repeated mostly has another
   processor, since others may keep one of them busy. Where the system allows it, a thread of SCHED_BATCH that is woken does
   not interrupt the other one. */
static void on_one_processor(void)
{
    const struct sched_param none = {0};
    cpu_set_t set;
    (void)sched_setscheduler(0, SCHED_BATCH, &none);
    CHECK(sched_getaffinity(0, sizeof set, &set));
    const int kept = getpid() % CPU_COUNT(&set);
    for (int i = 0, found = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET((size_t)i, &set) && found++ != kept)
            CPU_CLR((size_t)i, &set);
    CHECK(sched_setaffinity(0, sizeof set, &set));
}

static void cond_twice(void)
{
    on_one_processor();
    const pthread_t thread = start(put_two);
    CHECK(pthread_mutex_lock(&lock));
    atomic_store(&waiting, true);
    while (there < (fixed ? 2 : 1))
        CHECK(pthread_cond_wait(&changed, &lock));
    if (there < 2)
        exit(TOO_SLOW);
    CHECK(pthread_mutex_unlock(&lock));
    consume_other();
    CHECK(pthread_join(thread, NULL));
}

/* ---- barriers ------------------------------------------------------------------------------------- */

static pthread_barrier_t barrier;

static void meet(void)
{
    const int result = pthread_barrier_wait(&barrier);
    CHECK(result == PTHREAD_BARRIER_SERIAL_THREAD ? 0 : result);
}

/* It is the last one to come, and goes on at once. */
static void *meet_twice(void *unused)
{
    (void)unused;
    luck();
    meet();
    produce_other();
    meet();
    return NULL;
}

static void barrier_twice(void)
{
    on_one_processor();
    CHECK(pthread_barrier_init(&barrier, NULL, 2));
    const pthread_t thread = start(meet_twice);
    meet();
    luck();
    if (fixed)
        meet();
    consume_other();
    if (!fixed)
        meet();
    CHECK(pthread_join(thread, NULL));
}

static const struct small_case cases[] = {
    {"sem_twice", sem_twice},   {"sem_of_one", sem_of_one},       {"sem_again", sem_again},
    {"sem_many", sem_many},     {"sem_of_two", sem_of_two},       {"sem_as_lock", sem_as_lock},
    {"cond_twice", cond_twice}, {"barrier_twice", barrier_twice},
};

int main(int argc, char **argv)
{
    fixed = argc > 2 && strcmp(argv[2], "fixed") == 0;
    return run_case(cases, sizeof cases / sizeof *cases, argc > 1 ? argv[1] : "");
}
