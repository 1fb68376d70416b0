/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cores.h - the cores of this process: whether a thread may spin before it sleeps.
 *
 * To wake a thread costs its waker some microseconds, and tens of them pass before an idle core runs it. A thread that spins for
 * about as long as that costs at most twice what the better choice would have (Karlin, Li, Manasse, Owicki: "Empirical
 * Studies of Competitive Spinning for a Shared-Memory Multiprocessor", SOSP 1991), but it must not take the core from a
 * thread that has work. So the threads of all pipelines of a process are counted while they are awake: one spins for long
 * only as long as they are no more than the cores.
 */
#ifndef SWSIM_GPU_CORES_H
#define SWSIM_GPU_CORES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* How it went where a thread spun, or gave way, before. In vain it is tried less and less often. */
struct spin {
    int misses;   /* times in a row */
    int left_out; /* since the last of them */
};

/* Of threads that wait: before one sleeps it gives way to the one that is to wake it, if both have the same core. */
struct way {
    atomic_int core;          /* + 1, of the one that last had something for them; 0: not known */
    atomic_bool open;         /* one of them gives way now */
    _Atomic int64_t found_ns; /* since then there is something for it; 0: nothing yet */
    struct spin spin;         /* under the lock that they wait with */
};

/* The cores are shared with other processes, this one of so many; the largest number that was ever said holds. */
void cores_divide(int processes);
/* Of the calling thread: it is awake, until it ends. */
void cores_join(void);
void cores_leave(void);
/* Around a sleep of any thread; of one that has not joined they count nothing. */
void cores_sleep(void);
void cores_wake(void);

/* True if there is more than one core. */
bool cores_are_several(void);
/* True if there is a core for each thread that is awake, the caller among them. */
bool cores_are_free(void);

/* True if it is time to try again. Told of the last try afterwards. */
bool spin_is_due(struct spin *spin);
void spin_ended(struct spin *spin, bool found);
/* Until `word` is not `seen` any more: at most `most_ns`, or about a wake where 0 is given and then only while a core is free.
   False: in vain. */
bool spin_on(const atomic_uint *word, unsigned seen, long most_ns);

/* The calling thread has something for the one that waits. */
void way_found(struct way *way);
/* Before a sleep, if it is due: the caller yields, and looks again. A yield is a switch. A wake and a sleep are two and what the
   kernel does for both, and a sleeper that is woken takes the core at once, where its waker had more for it. But one that
   yields may not have the core again before its time comes, some milliseconds: after a yield that has let something wait
   for long it is tried less often. Without the lock; way_ended is told afterwards what it returns. */
bool way_is_due(struct way *way);
bool way_give(struct way *way);
void way_ended(struct way *way, bool in_time);

#endif
