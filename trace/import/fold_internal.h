/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_internal.h - shared by the files that fold the steps of a rank: fold.c finds steps that do the same, fold_waits.c
 * finds the waits and the recorded events of such a step, fold_body.c writes it.
 */
#ifndef SWSIM_FOLD_INTERNAL_H
#define SWSIM_FOLD_INTERNAL_H

#include "fold.h"

/* A place in a step: a thread and a slot in it. */
struct place {
    int thread, step, slot;
};

/* A stream waits for an event in front of a slot. */
struct edge {
    int thread, slot; /* that waits */
    int on_thread, on_slot, distance;
    int stream;
    int step;  /* of the step that shows it */
    int event; /* as it was */
};

struct folder {
    struct plan *plan;
    struct fold_thread *threads;
    int thread_count, steps;
    bool typical;
    struct arena arena;
    size_t **slots;    /* per thread: the operations of all slots, step by step */
    int **first;       /* per thread and step, and one more: of `slots` */
    struct place *set; /* per flag, then per event: where it is set */
    struct edge *edges;
    size_t edge_count, edge_cap;
    int from, to; /* the run of steps */
    int **event;  /* per thread and slot: that is recorded behind it; -1 */
    int *renamed; /* per event */
    bool changed; /* some step waits otherwise in the plan than in the trace */
    bool no_memory;
};

static inline struct place *fold_flag_place(const struct folder *folder, int flag)
{
    return &folder->set[flag];
}

static inline struct place *fold_event_place(const struct folder *folder, int event)
{
    return &folder->set[folder->plan->flags.count + (size_t)event];
}

static inline const struct host_op *fold_ops(const struct folder *folder, int thread)
{
    return folder->threads[thread].thread->ops;
}

static inline int fold_slot_count(const struct folder *folder, int thread, int step)
{
    return folder->first[thread][step + 1] - folder->first[thread][step];
}

static inline const struct host_op *fold_slot_op(const struct folder *folder, int thread, int step,
                                                 int slot)
{
    return &fold_ops(folder, thread)[folder->slots[thread][folder->first[thread][step] + slot]];
}

/* The waits in front of a slot: up to `end`, the first operation that is none of them. */
static inline size_t fold_waits_begin(const struct folder *folder, int thread, int step, int slot)
{
    const int at = folder->first[thread][step] + slot;
    return slot > 0 ? folder->slots[thread][at - 1] + 1 : folder->threads[thread].marks[step];
}

static inline size_t fold_slot_end(const struct folder *folder, int thread, int step, int slot)
{
    return slot < fold_slot_count(folder, thread, step)
               ? folder->slots[thread][folder->first[thread][step] + slot]
               : folder->threads[thread].marks[step + 1];
}

/* The next wait from `at` on, or `end`. */
static inline size_t fold_next_wait(const struct folder *folder, int thread, size_t at, size_t end)
{
    while (at < end && fold_ops(folder, thread)[at].kind != OP_WAIT)
        at++;
    return at;
}

/* The waits and the events of the run of steps; *fits is false where one event for all iterations cannot tell them apart. False:
   no memory. */
bool fold_find_waits(struct folder *folder, bool *fits);
bool fold_find_events(struct folder *folder, bool *fits);

/* The thread with the step as a repeat; false without memory. */
bool fold_write_thread(struct folder *folder, int thread);

#endif
