/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wakes.h - which threads of a pipeline may go on when something happens; private to the event-driven engine.
 *
 * A rank may have thousands of workers, and most steps of one concern few others. So each thread is listed once
 * under each object that it may wait for (op_awaited of machine/uses.h): the flag that it awaits, the lock that it takes, the
 * turns of its rank, the stream that it pushes to or synchronises with, the device. The driver is listed under the device.
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

/* The lists of threads by objects; of the pipeline form only. false: memory is exhausted. */
bool wakes_make(struct lists *wakes, const struct program *program, struct arena *arena);

#endif
