/* SPDX-License-Identifier: Apache-2.0 */
/*
 * context.h - what the tasks of one iteration share: its batch, values by name, device memory by name;
 * private to the public library (gpu/lib/swpipe.h).
 *
 *     iteration  1 --- n  value          owned by its kind
 *                |         `-- memory    a block of the rank's pool
 *                `---- n  thing          freed with the iteration; without a name
 *     pool       free blocks, each with the event behind which it may be used again
 *
 * An iteration is used by all its tasks, on their threads: values are looked up and changed under its
 * lock. A pool has one lock for all iterations of a rank.
 */
#ifndef SWPIPE_CONTEXT_H
#define SWPIPE_CONTEXT_H

#include <pthread.h>

#include "gpu/device/device.h"
#include "swpipe.h"

struct block {
    struct block *next;
    struct device_buffer *buffer;
    size_t bytes;
    struct device_event *event; /* use it when this has happened */
};

struct pool {
    pthread_mutex_t lock;
    struct device *device;
    struct block *free;
};

struct named_value {
    struct named_value *next;
    char *name;
    void *content;
    const struct swpipe_kind *kind; /* NULL: content is the user's */
    struct block *memory;           /* then content is its address */
    int setter;                     /* task */
};

struct kept_thing {
    struct kept_thing *next;
    void *content;
    void (*release)(void *content);
};

struct iteration {
    pthread_mutex_t lock;
    struct pool *pool;
    int rank;
    int64_t number;
    void *batch;
    const struct swpipe_hooks *owner; /* its `release` is owed the batch; NULL: nothing is */
    void *result;
    struct named_value *values;
    struct kept_thing *things;
};

bool pool_init(struct pool *pool, struct device *device);
/* Before its device is closed, which is idle or has been aborted. */
void pool_fini(struct pool *pool);

bool iteration_init(struct iteration *iteration, int rank, struct pool *pool);
void iteration_fini(struct iteration *iteration);
/* Free all values. The device has finished the iteration's work, or has been aborted. */
void iteration_clear(struct iteration *iteration);

/* Replace or add; false when memory is exhausted, then `content` is still the caller's. `stream` is that
   of the task that does it: memory that is replaced may be used again behind its work. */
bool iteration_set(struct iteration *iteration, const char *name, void *content,
                   const struct swpipe_kind *kind, int setter, struct device_stream *stream);
/* Does this thread execute the release of a value of it? The lock is held then: nothing here may be called. */
bool iteration_is_releasing(const struct iteration *iteration);
/* Release `content` when the iteration is cleared; false when memory is exhausted, then it is still the caller's. */
bool iteration_keep(struct iteration *iteration, void *content, void (*release)(void *content));
void *iteration_get(struct iteration *iteration, const char *name);
void iteration_unset(struct iteration *iteration, const char *name, struct device_stream *stream);

/* Device memory that work on `stream` may use; NULL when there is none, with the reason in diag. */
struct block *iteration_alloc(struct iteration *iteration, const char *name, size_t bytes,
                              int setter, struct device_stream *stream, struct diag *diag);

#endif
