/* SPDX-License-Identifier: Apache-2.0 */
/* cores.c - see cores.h. */
#include "cores.h"

#include <assert.h>
#include <sched.h>

#include "device_impl.h"
#include "base/processors.h"

enum {
    WAKE_NS = 50000,  /* of an idle core, at most, where it has not fallen into a deep sleep */
    LATE_NS = 100000, /* what a thread that gives way may let wait */
    MOST_MISSES = 6
};

static atomic_int awake;
static atomic_int processes = 1;
static _Thread_local bool has_joined;

void cores_divide(int count)
{
    int known = atomic_load(&processes);
    while (count > known && !atomic_compare_exchange_weak(&processes, &known, count))
        continue;
}

static void count(int change)
{
    atomic_fetch_add_explicit(&awake, change, memory_order_relaxed);
}

void cores_join(void)
{
    assert(!has_joined);
    has_joined = true;
    count(1);
}

void cores_leave(void)
{
    assert(has_joined && atomic_load(&awake) > 0);
    count(-1);
    has_joined = false;
}

void cores_sleep(void)
{
    if (has_joined)
        count(-1);
}

void cores_wake(void)
{
    if (has_joined)
        count(1);
}

bool cores_are_several(void)
{
    return processors_count() > 1;
}

bool cores_are_free(void)
{
    int threads = atomic_load_explicit(&awake, memory_order_relaxed) + !has_joined;
    int all = atomic_load_explicit(&processes, memory_order_relaxed);
    return cores_are_several() && threads * all <= processors_count();
}

bool spin_is_due(struct spin *spin)
{
    if (spin->left_out++ < (1 << spin->misses) - 1)
        return false;
    spin->left_out = 0;
    return true;
}

void spin_ended(struct spin *spin, bool found)
{
    spin->misses = found ? 0 : spin->misses + (spin->misses < MOST_MISSES);
}

bool spin_on(const atomic_uint *word, unsigned seen, long most_ns)
{
    int64_t end_ns = device_deadline(device_clock_ns(), most_ns > 0 ? most_ns : WAKE_NS);
    while (atomic_load_explicit(word, memory_order_relaxed) == seen) {
        if (device_clock_ns() >= end_ns || (most_ns == 0 && !cores_are_free()))
            return false;
        device_relax();
    }
    return true;
}

void way_found(struct way *way)
{
    atomic_store_explicit(&way->core, sched_getcpu() + 1, memory_order_relaxed);
    if (atomic_load_explicit(&way->open, memory_order_relaxed) &&
        atomic_load_explicit(&way->found_ns, memory_order_relaxed) == 0)
        atomic_store_explicit(&way->found_ns, device_clock_ns(), memory_order_relaxed);
}

bool way_is_due(struct way *way)
{
    const int core = atomic_load_explicit(&way->core, memory_order_relaxed);
    return core != 0 && core == sched_getcpu() + 1 && spin_is_due(&way->spin);
}

bool way_give(struct way *way)
{
    atomic_store_explicit(&way->found_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&way->open, true, memory_order_relaxed);
    sched_yield();
    atomic_store_explicit(&way->open, false, memory_order_relaxed);
    const int64_t found_ns = atomic_load_explicit(&way->found_ns, memory_order_relaxed);
    return found_ns == 0 || device_clock_ns() - found_ns < LATE_NS;
}

void way_ended(struct way *way, bool in_time)
{
    spin_ended(&way->spin, in_time);
}
