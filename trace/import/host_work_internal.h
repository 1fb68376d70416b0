/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_work_internal.h - what host_work.c (operations and their calls) and host_waits.c (waits, threads) share.
 */
#ifndef SWSIM_HOST_WORK_INTERNAL_H
#define SWSIM_HOST_WORK_INTERNAL_H

#include "host_work.h"

/* Where an annotation or an operator of a thread begins or ends. */
struct edge {
    int thread;
    int64_t time_ns;
};

struct host_maker {
    struct job *job;
    struct job_rank *rank;
    struct diag *diag;
    int *workers; /* the threads of gloo, ascending: rank->threads */
    size_t worker_count;
    int *asked;         /* per deed that is done: the deed that asked for it; -1: none did */
    int *stream;        /* ... and its stream */
    int *work;          /* ... rank->works */
    bool *waited;       /* ... a thread has waited for it */
    struct edge *edges; /* by thread and time */
    size_t edge_count;
    size_t oldest;    /* deed that a thread may still wait for */
    int64_t *free_ns; /* per stream: its last operation has ended */
};

/* Is it a send or a receive? */
bool host_is_message(const struct host_maker *maker, int deed);
/* Is this a thread of gloo? */
bool host_is_worker(const struct host_maker *maker, int thread);

/* Ids of a deed's push, of the record behind it and of the wait for it. */
enum host_call { PUSH, RECORD, WAIT };
int64_t host_id(int deed, enum host_call which);

/* False without memory. */
bool host_add_call(struct host_maker *maker, int thread, int name, enum call_kind kind, int64_t id,
                   int64_t start_ns, int64_t end_ns);

/* The waits of threads, and where threads begin and end. False without memory. */
bool host_waits_make(struct host_maker *maker);

#endif
