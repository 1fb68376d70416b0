/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_impl.h - for implementers of a device: the table of its functions and the common part of all
 * handles. A handle of a device starts with the matching struct from here.
 *
 * device.c checks arguments, once for all devices; so a device sees only operations that have a
 * meaning, on handles that belong together. An open function fills all common members. `diag` is
 * never NULL here.
 */
#ifndef SWSIM_DEVICE_IMPL_H
#define SWSIM_DEVICE_IMPL_H

#include "device.h"

#include <stdatomic.h>

struct device_ops {
    enum status (*world_open)(const struct device_config *config, struct device_world **out,
                              struct diag *diag);
    void (*world_close)(struct device_world *world);
    void (*world_abort)(struct device_world *world, const char *why);
    enum status (*world_status)(struct device_world *world, struct diag *diag);
    void (*world_explain)(struct device_world *world, struct diag *diag);

    enum status (*open)(struct device_world *world, int rank, struct device **out,
                        struct diag *diag);
    void (*close)(struct device *device);
    /* NULL where there are no GPUs */
    void (*enter)(struct device *device);
    void (*note_caller)(const struct device_world *world, struct device_caller *out);
    void (*restore_caller)(const struct device_caller *caller);

    enum status (*alloc)(struct device *device, enum device_memory memory, size_t bytes,
                         struct device_buffer **out, struct diag *diag);
    /* Memory of the device, without a wait for work, if that can be; NULL: alloc never waits. */
    enum status (*alloc_beside)(struct device *device, size_t bytes, struct device_buffer **out,
                                struct diag *diag);
    void (*free)(struct device_buffer *buffer);
    size_t buffer_size; /* of its struct, for a buffer that wraps memory; zeroed, but for `base` */

    enum status (*stream_open)(struct device *device, const char *name, struct device_stream **out,
                               struct diag *diag);
    void (*stream_close)(struct device_stream *stream);
    void *(*stream_handle)(struct device_stream *stream); /* NULL: it has none */
    enum status (*event_open)(struct device *device, struct device_event **out, struct diag *diag);
    void (*event_close)(struct device_event *event);
    enum status (*comm_open)(struct device *device, const char *name, const int *members, int count,
                             struct device_comm **out, struct diag *diag);
    void (*comm_close)(struct device_comm *comm);
    void *(*comm_handle)(struct device_comm *comm);                       /* NULL: it has none */
    bool (*comm_takes_own)(const struct device_comm *comm, size_t bytes); /* NULL: never */

    enum status (*push)(struct device_stream *stream, const struct device_op *op,
                        struct stamp *stamp, struct diag *diag);

    /* A stream that is captured has base.capture set, its device as well; a push to it is kept in that
       graph, and counted in base.pushes and base.stamps. `graph_end` clears both in any case, and
       without `out` drops what was captured. Each launch comes after an arm of its own. */
    enum status (*graph_begin)(struct device *device, struct device_stream *const *streams,
                               size_t count, struct diag *diag);
    enum status (*graph_end)(struct device *device, struct device_graph **out, struct diag *diag);
    enum status (*graph_arm)(struct device_graph *graph, struct diag *diag); /* sets base.first */
    enum status (*graph_launch)(struct device_graph *graph, struct stamp *const *stamps,
                                struct diag *diag);
    void (*graph_close)(struct device_graph *graph);

    enum status (*event_query)(struct device_event *event, bool *done, struct diag *diag);
    enum status (*stream_sync)(struct device_stream *stream, int64_t deadline_ns,
                               struct diag *diag);
    enum status (*event_sync)(struct device_event *event, int64_t deadline_ns, struct diag *diag);
    enum status (*sync)(struct device *device, int64_t deadline_ns, struct diag *diag);
    enum status (*collect)(struct device *device, struct diag *diag);
    enum status (*inject)(struct device *device, int64_t number, enum status status,
                          struct diag *diag);
};

extern const struct device_ops device_host_ops;
extern const struct device_ops device_cuda_ops; /* only in a build with HAVE_CUDA */

struct device_world {
    const struct device_ops *ops;
    struct device_config config;
    int64_t base_ns; /* CLOCK_MONOTONIC at time 0 */
};

struct device {
    const struct device_ops *ops;
    struct device_world *world;
    int rank;
    char description[200];
    struct device_graph *capture; /* under way; NULL: none */
    atomic_llong
        clock_error_ns;      /* its stamps may be off by so much on the world's clock; it grows */
    atomic_llong kept_bytes; /* device_kept_bytes */
    atomic_int kept_comms;   /* device_kept_comms */
};

struct device_stream {
    struct device *device;
    char *name;                   /* the device's own copy */
    struct device_graph *capture; /* what pushes go to; NULL: they are done */
};

struct device_graph {
    struct device *device;
    size_t pushes, stamps; /* captured so far; of these, with a stamp */
    int64_t first;         /* number of the first operation of the next launch */
    bool armed;
};

struct device_event {
    struct device *device;
};

struct device_buffer {
    struct device *device;
    enum device_memory memory;
    size_t bytes;
    char *address; /* NULL only when bytes is 0 */
};

struct device_comm {
    struct device *device;
    char *name; /* the device's own copies */
    int *members;
    int count;
    int me; /* this rank's place among the members */
};

/* Why something failed. */
enum { FAILURE_TEXT = 320 };
struct failure {
    enum status status; /* STATUS_OK: it has not */
    char text[FAILURE_TEXT];
};

/* Failures asked for by device_inject. */
struct injection {
    struct injection *next;
    int64_t number;
    enum status status;
};
struct injection *injection_new(int64_t number, enum status status); /* NULL: no memory */
/* Take the injection of operation `number` out of the list: its status, or STATUS_OK. */
enum status injection_take(struct injection **list, int64_t number);
void injection_free_all(struct injection *list);

/* CLOCK_MONOTONIC in nanoseconds. */
int64_t device_clock_ns(void);

static inline char *ref_address(struct device_ref ref)
{
    return ref.buffer && ref.buffer->address ? ref.buffer->address + ref.offset : NULL;
}

/* The step with the addresses of its memory. */
static inline struct dense dense_at(const struct device_dense_step *step)
{
    struct dense dense = step->dense;
    dense.a = (const float *)(void *)ref_address(step->refs[0]);
    dense.b = (const float *)(void *)ref_address(step->refs[1]);
    dense.c = (float *)(void *)ref_address(step->refs[2]);
    dense.d = (float *)(void *)ref_address(step->refs[3]);
    return dense;
}

/* True if this rank is in this process. */
static inline bool device_world_has(const struct device_world *world, int rank)
{
    const struct device_config *config = &world->config;
    return rank >= config->first_rank && rank < config->first_rank + config->local_ranks;
}

/* The communicator an operation uses, or NULL. */
struct device_comm *device_op_comm(const struct device_op *op);
/* False for records and waits. */
static inline bool device_op_is_work(const struct device_op *op)
{
    return op->kind != DEVICE_OP_RECORD && op->kind != DEVICE_OP_WAIT;
}
/* The place of a rank among the members, or -1. */
int device_comm_place(const struct device_comm *comm, int rank);
/* An operation in words, "all_reduce 'grad'", "gemm 'Forward'"; returns `out`. */
enum { OP_TEXT = 96 };
const char *device_op_text(const struct device_op *op, char out[OP_TEXT]);

/* device_check.c: check that the operation has a meaning, on handles that belong together. `captured`: for a graph, which
   cannot keep some. */
enum status device_check_op(const struct device *device, const struct device_op *op, bool captured,
                            struct diag *diag);

#endif
