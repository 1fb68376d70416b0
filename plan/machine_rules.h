/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine_rules.h - the rules of the device, of streams and of channels that a plan may change.
 */
#ifndef SWSIM_MACHINE_RULES_H
#define SWSIM_MACHINE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "programs.h"
#include "work.h"

struct comm {
    const char *name;
    int *members; /* ranks, ascending; NULL: all ranks */
    size_t member_count;
    int eager_messages; /* machine: {eager_messages: {A: 1}}; 0: rendezvous */
    int64_t eager_bytes;
    int64_t time_limit_ns; /* machine: {timeout: {A: 10min}}; 0: none */
    bool declared;         /* named under `comms:`, not only where it is used */
    struct mark mark;
};

struct queue {
    const char *name;
    int capacity;
    struct mark mark;
};

struct machine_spec {
    int sm_slots;      /* residency slots of a device; 0: unlimited */
    bool no_greed;     /* of a real run: greedy kernels wait for all their slots */
    int *share_device; /* per rank the first rank on its device; NULL: each has its own */
    struct mark share_device_mark;
    int hw_queues;             /* in-order hardware queues a rank; 0: one a stream */
    int launch_queue;          /* operations a stream can hold before a push blocks; 0: derived */
    int64_t launch_latency_ns; /* from a push until its work can begin; of time alone */
    bool first_use_blocks;
    bool launch_order_implicit;
    bool lazy_load;
    bool launch_lock; /* a push holds the context lock, also while it blocks */
    bool
        launch_blocking; /* CUDA_LAUNCH_BLOCKING=1: a kernel's launch returns when it has finished */
    bool alloc_may_sync; /* an allocation may free what is cached, and waits for the device then */
    int copy_engines;    /* that copies share; 0: as many as there are copies */
    int cores;           /* that the device work of all ranks shares; 0: as many as are wanted */
    struct shares shares[SHARED_WORK_COUNT]; /* of work without shares of its own */
    struct cost_list memory;                 /* bytes that a rank may hold: machine_memory */
};

/* Bytes that this rank may hold, in rank programs every rank at this place of a pipeline; 0: any number. */
static inline int64_t machine_memory(const struct machine_spec *machine, int rank)
{
    size_t at = machine->memory.count > 1 ? (size_t)rank : 0;
    return at < machine->memory.count ? machine->memory.items[at] : 0;
}

/* Those of every rank; 0: any number, or ranks differ. */
static inline int64_t machine_same_memory(const struct machine_spec *machine)
{
    for (size_t i = 1; i < machine->memory.count; i++)
        if (machine->memory.items[i] != machine->memory.items[0])
            return 0;
    return machine_memory(machine, 0);
}

static inline bool machine_has_memory(const struct machine_spec *machine)
{
    for (size_t i = 0; i < machine->memory.count; i++)
        if (machine->memory.items[i] > 0)
            return true;
    return false;
}

/* The effect of a failed task (doc/semantics.md, section 4): only its thread ends; its rank is woken and
   stops; watchdogs stop the ranks it communicates with, too, and abort the communicators of each rank one after the
   other, or all together. */
#define ON_FAILURE_LIST(X)                                                                         \
    X(NONE, "none") X(WAKE, "wake") X(ABORT, "abort") X(GROUP_ABORT, "group_abort")
enum on_failure {
#define X(name, key) ON_FAILURE_##name,
    ON_FAILURE_LIST(X)
#undef X
};

/* An entry of `streams:`, for every rank. */
struct stream_spec {
    int stream;    /* plan->streams */
    bool legacy;   /* it waits for all blocking streams of its rank, and they for it */
    bool blocking; /* to the legacy stream; default: true */
    int hw_queue;  /* -1: dealt out by first use */
    struct mark mark;
};

#endif
