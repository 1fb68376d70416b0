/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kineto_internal.h - an event of the profiler's JSON: kineto_event.c reads it, kineto_keep.c decides what becomes of it, and
 * kineto.c reads the file around the events.
 */
#ifndef SWSIM_KINETO_INTERNAL_H
#define SWSIM_KINETO_INTERNAL_H

#include "trace/job/job.h"
#include "json_reader.h"

enum { TEXT = 512 };

/* Categories, in the spelling of each generation. */
#define CATEGORY_LIST(X)                                                                           \
    X(KERNEL, "kernel", "Kernel")                                                                  \
    X(COPY, "gpu_memcpy", "Memcpy")                                                                \
    X(MEMSET, "gpu_memset", "Memset")                                                              \
    X(RUNTIME, "cuda_runtime", "Runtime")                                                          \
    X(DRIVER, "cuda_driver", "Driver")                                                             \
    X(HIP_RUNTIME, "hip_runtime", "HIP")                                                           \
    X(PRIVATE, "privateuse1_runtime", "privateuse1_driver")                                        \
    X(SYNC, "cuda_sync", "hip_sync")                                                               \
    X(ANNOTATION, "user_annotation", "UserAnnotation")                                             \
    X(MARK, "gpu_user_annotation", "gpu_user_annotation")                                          \
    X(OPERATOR, "cpu_op", "Operator")                                                              \
    X(PYTHON, "python_function", "python_function")

enum category {
#define X(name, ...) CATEGORY_##name,
    CATEGORY_LIST(X)
#undef X
        CATEGORY_OTHER,
    CATEGORY_UNKNOWN /* not read yet */
};

/* Of the events that last some time: "X", "B", "E". */
enum phase { PHASE_OTHER, PHASE_COMPLETE, PHASE_BEGIN, PHASE_END };

/* A text of the event, cut off where it is longer. */
struct text {
    char bytes[TEXT];
};

struct event {
    enum category category;
    enum phase phase;
    bool has_start;
    struct text name, pid, tid, group;
    struct text collective; /* "Collective name" */
    struct text ranks;      /* "Process Group Ranks": "[0, 2, ...]" */
    int64_t start_ns, duration_ns;
    int64_t correlation, stream, device, bytes, source_stream, record; /* of args; -1: not there */
    int64_t peer; /* its number in the process group */
    bool waits;
};

struct kineto {
    struct json_reader reader;
    struct job *job;
    struct job_rank *rank;
    struct diag *diag;
    int64_t base_ns; /* baseTimeNanoseconds */
    uint32_t place;  /* of the event */
    bool has_events;
    struct job_reversed reversed;
    struct text worked_tid; /* of the operator that was kept last, and its end */
    int64_t worked_end_ns;
    int worked_thread;
};

/* A text, or a number as its text; false where the reader failed. */
bool kineto_read_text(struct kineto *kineto, struct text *out);
/* A number, maybe in quotes, times 10^places. *found says whether it was one. */
bool kineto_read_number(struct kineto *kineto, int places, int64_t *out, bool *found);

/* The members of an event behind its '{', in any order; STATUS_OK, or the reader's status. */
enum status kineto_read_event(struct kineto *kineto, struct event *out);

/* Is it an operator of torch.distributed? */
bool kineto_is_distributed(const struct event *event);

/* Adds a complete event to the rank, if its category is of use. One that ends before it begins is counted and left
   out; STATUS_INPUT for times that cannot be. */
enum status kineto_take_event(struct kineto *kineto, const struct event *event);

#endif
