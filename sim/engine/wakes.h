/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wakes.h - which threads of a pipeline may go on when something happens; private to the event-driven engine.
 *
 * A rank may have thousands of workers, and most steps of one concern few others. So each thread is listed once
 * under each thing that it may wait for:
 *
 *     WAKE_FLAG    a CPU signal of a task is set             those that await it
 *     WAKE_LOCK    a lock is free                            those that take it
 *     WAKE_TURN    a ticket of the rank is served            those that wait for their turn
 *     WAKE_STREAM  a stream has gone on                      those that push to it, or synchronise with it
 *     WAKE_DEVICE  a stream of the rank has gone on          those that synchronise with the device; the driver
 *
 * Instances are handed out by the driver, after whose steps all workers of the rank are looked at, and by the end
 * of a submission, which knows whom it fires.
 */
#ifndef SWSIM_WAKES_H
#define SWSIM_WAKES_H

#include "machine/program.h"
#include "base/arena.h"

/* Lists by key: those of key k are items[first[k]] .. items[first[k + 1] - 1]. */
struct lists {
    int *first, *items;
};

struct lists_pair {
    int key, item;
};

/* Sort the pairs and make lists of them, each item once in the list of a key. false: memory is exhausted. */
bool lists_make(struct lists *lists, struct arena *arena, struct lists_pair *pairs, size_t count,
                int keys);

enum wake { WAKE_FLAG, WAKE_LOCK, WAKE_TURN, WAKE_STREAM, WAKE_DEVICE };

/* The lists of threads by wakes_key; of the pipeline form only. false: memory is exhausted. */
bool wakes_make(struct lists *wakes, const struct program *program, struct arena *arena);
/* `index`: of the flag family, lock or stream; else the rank. */
int wakes_key(const struct program *program, enum wake wake, int index);

#endif
