/* SPDX-License-Identifier: Apache-2.0 */
/* t_cores.c - may a thread spin, or give way, before it sleeps? The count of threads that are awake, and how a try in vain is
   left out. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <unistd.h>

#include "gpu/device/cores.h"
#include "gpu/device/device_impl.h"
#include "tests/tap.h"

enum { MOST_THREADS = 1024, SECOND_NS = 1000000000 };

/* Threads that are awake until they are told to end. */
static sem_t begun, end;

static void *be_awake(void *arg)
{
    (void)arg;
    cores_join();
    sem_post(&begun);
    while (sem_wait(&end))
        continue;
    cores_leave();
    return NULL;
}

/* So many are begun until no core is free, `most` at most. */
static int fill_cores(pthread_t *threads, int most)
{
    int count = 0;
    while (count < most && cores_are_free()) {
        if (pthread_create(&threads[count], NULL, be_awake, NULL))
            break;
        count++;
        while (sem_wait(&begun))
            continue;
    }
    return count;
}

static void end_threads(pthread_t *threads, int count)
{
    for (int i = 0; i < count; i++)
        sem_post(&end);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

static void test_count(void)
{
    static pthread_t threads[MOST_THREADS];
    bool several = cores_are_several();
    tap_ok(cores_are_free() == several, "a thread alone may spin where there are several cores");
    int count = fill_cores(threads, MOST_THREADS);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    tap_ok(count <= cores && (count > 0) == several, "no more than there are cores: %d of %ld",
           count, cores);
    tap_ok(!cores_are_free(), "then none is free");
    cores_join();
    cores_sleep();
    tap_ok(cores_are_free() == several, "a thread that sleeps does not count");
    cores_wake();
    cores_leave();
    end_threads(threads, count);
    tap_ok(cores_are_free() == several, "and when they have ended, one is again");
    cores_divide(MOST_THREADS);
    tap_ok(!cores_are_free(), "cores that many processes share are not free");
}

static void test_backoff(void)
{
    struct spin spin = {0};
    int tries = 0, longest = 0, left_out = 0;
    for (int i = 0; i < 1000; i++)
        if (spin_is_due(&spin)) {
            longest = left_out > longest ? left_out : longest;
            left_out = 0;
            tries++;
            spin_ended(&spin, false);
        } else {
            left_out++;
        }
    tap_ok(tries > 10 && tries < 50, "of 1,000 waits that are in vain few spin: %d", tries);
    tap_is_int(longest, 63, "so many in a row do not");
    spin_ended(&spin, true);
    spin.left_out = 0;
    tap_ok(spin_is_due(&spin), "after one that was worth it the next one does");
}

static void *change(void *arg)
{
    atomic_store((atomic_uint *)arg, 1);
    return NULL;
}

static void test_spin(void)
{
    atomic_uint word = 0;
    pthread_t thread;
    int64_t from_ns = device_clock_ns();
    tap_ok(!spin_on(&word, 0, 1000), "nothing changes: in vain");
    tap_ok(device_clock_ns() - from_ns >= 1000, "not before its time");
    tap_ok(spin_on(&word, 1, SECOND_NS), "a word that has changed is seen at once");
    if (pthread_create(&thread, NULL, change, &word) == 0) {
        tap_ok(spin_on(&word, 0, 100L * SECOND_NS), "one that changes meanwhile is seen");
        pthread_join(thread, NULL);
    }
}

static atomic_bool has_waited;

/* It has something for who gives way, and goes on for long: again and again, because its time may end at any moment. */
static void *hold_core(void *arg)
{
    struct way *way = arg;
    while (!atomic_load(&has_waited)) {
        if (!atomic_load(&way->open))
            continue;
        way_found(way);
        for (int64_t end_ns = device_clock_ns() + 2000000; device_clock_ns() < end_ns;)
            continue;
    }
    return NULL;
}

static void test_way(void)
{
    struct way way = {0};
    pthread_t thread;
    cpu_set_t mine, one;
    const int core = sched_getcpu();
    sched_getaffinity(0, sizeof mine, &mine);
    CPU_ZERO(&one);
    CPU_SET((size_t)core, &one);
    if (sched_setaffinity(0, sizeof one, &one))
        return;
    tap_ok(!way_is_due(&way), "nobody has had anything for it: no way is given");
    way_found(&way);
    tap_ok(way_is_due(&way), "somebody on the same core has: it is");
    way_ended(&way, way_give(&way));
    tap_ok(way_is_due(&way), "and again, if nothing waited meanwhile");
    if (pthread_create(&thread, NULL, hold_core, &way) == 0) {
        int64_t end_ns = device_clock_ns() + 60 * (int64_t)SECOND_NS;
        while (way.spin.misses == 0 && device_clock_ns() < end_ns)
            way_ended(&way, way_give(&way));
        atomic_store(&has_waited, true);
        tap_ok(!way_is_due(&way), "where it waited for long the next sleep is at once");
        tap_ok(way_is_due(&way), "and way is given again later");
        pthread_join(thread, NULL);
    }
    sched_setaffinity(0, sizeof mine, &mine);
}

int main(void)
{
    sem_init(&begun, 0, 0);
    sem_init(&end, 0, 0);
    test_spin();
    test_way();
    test_backoff();
    test_count();
    return tap_done();
}
