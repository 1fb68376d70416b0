/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counted.h - objects by which threads let each other go on one time after another: semaphores, conditions, barriers.
 *
 * One time that a thread goes on comes after one time that another one let it, and not after all there were by then: the
 * other thread may have been ahead by luck. So these times are counted. Where only one thread lets others go on, the n-th
 * time is the same in every run; where several do, which of them was the n-th is luck, as the order of locks is: an item
 * of the recording says so of the object.
 */
#ifndef SWSIM_COUNTED_H
#define SWSIM_COUNTED_H

#include <stdint.h>

#include "recording.h"

/* The object begins: a semaphore with its value, a barrier with the number of its threads. An object that was not seen to
   begin orders nothing, but for a condition, which may begin anywhere. It ends. */
void counted_begin(const void *object, uint64_t value);
void counted_end(const void *object);

/* A semaphore is about to be posted; the caller has taken it, by a call that waits, or by one that may give up. */
void counted_post(const void *semaphore);
void counted_taken(const void *semaphore, enum recording_way way);

/* A condition is about to be signalled; how often it was; the caller, who knew so many, has been woken. */
void counted_signal(const void *condition);
uint64_t counted_signals(const void *condition);
void counted_woken(const void *condition, uint64_t before, enum recording_way way);
/* The lock that threads wait for a condition with; NULL: none was seen. */
void counted_set_lock(const void *condition, const void *lock);
const void *counted_lock(const void *condition);

/* The caller arrives at a barrier, in a round whose two neighbours have other keys. NULL: nothing is known of it. */
struct counted_round {
    const void *key;
    uint32_t object; /* as in struct tape_place */
};
struct counted_round counted_arrive(const void *barrier);

/* In a new process: places of the parent's threads are of no use. */
void counted_begin_child(void);

#endif
