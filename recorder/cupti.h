/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cupti.h - what the recorder uses of CUPTI: the functions, and the beginnings of its records.
 *
 * Like all of the recorder it is built without NVIDIA's headers. A record grows at its end from version to version; the
 * part that stands here has been the same since CUDA 11.0 (CUpti_ActivityKernel5, CUpti_ActivityMemcpy4,
 * CUpti_ActivityMemcpyPtoP3, CUpti_ActivityMemset2). tests/cuda_emulation/cupti.c holds it against cupti.h.
 */
#ifndef SWSIM_CUPTI_H
#define SWSIM_CUPTI_H

#include <stddef.h>
#include <stdint.h>

enum { CUPTI_OLDEST = 13, CUPTI_NO_MORE_RECORDS = 12, CUPTI_FORCED = 1, CUPTI_CUSTOM2 = 5 };

/* Kinds of records */
enum {
    CUPTI_MEMCPY = 1,
    CUPTI_MEMSET = 2,
    CUPTI_DRIVER_CALL = 4,
    CUPTI_RUNTIME_CALL = 5,
    CUPTI_CONCURRENT_KERNEL = 10,
    CUPTI_MEMCPY_PEER = 22, /* between devices */
    CUPTI_EXTERNAL = 39     /* a call of CUDA, and the id that the caller had pushed */
};

struct cupti_record {
    uint32_t kind;
};

/* Times in ns, of the clock of cuptiGetTimestamp; 0: not known. */
struct cupti_kernel {
    uint32_t kind, config;
    uint64_t registers;
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    uint32_t shape[10];
    uint32_t correlation;
    int64_t grid;
    const char *name;
    uint64_t reserved, queued, submitted;
    uint32_t attributes[2];
    uint64_t node; /* of the graph that it was launched with; 0: none */
};

/* Also of MEMSET */
struct cupti_memcpy {
    uint32_t kind, config;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
    uint64_t other[2];
    uint64_t node;
};

struct cupti_memcpy_peer {
    uint32_t kind, config;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, devices[4], correlation;
    uint64_t reserved;
    uint64_t node;
};

struct cupti_external {
    uint32_t kind, external_kind;
    uint64_t id;
    uint32_t correlation, reserved;
};

/*    NAME, parameters; a result other than 0 is an error */
#define CUPTI_LIST(X)                                                                              \
    X(GetVersion, (uint32_t * out))                                                                \
    X(GetResultString, (int result, const char **out))                                             \
    X(Subscribe, (void **out, void (*callback)(void), void *arg))                                  \
    X(Unsubscribe, (void *subscriber))                                                             \
    X(GetTimestamp, (uint64_t * out_ns))                                                           \
    X(ActivityRegisterCallbacks, (void (*want)(uint8_t **, size_t *, size_t *),                    \
                                  void (*take)(void *, uint32_t, uint8_t *, size_t, size_t)))      \
    X(ActivityEnable, (uint32_t kind))                                                             \
    X(ActivityDisable, (uint32_t kind))                                                            \
    X(ActivityGetNextRecord, (uint8_t * buffer, size_t bytes, struct cupti_record * *at))          \
    X(ActivityGetNumDroppedRecords, (void *context, uint32_t stream, size_t *out))                 \
    X(ActivityPushExternalCorrelationId, (int kind, uint64_t id))                                  \
    X(ActivityPopExternalCorrelationId, (int kind, uint64_t *last))                                \
    X(ActivityFlushAll, (uint32_t flags))

struct cupti {
#define X(name, PARAMS) int(*name) PARAMS;
    CUPTI_LIST(X)
#undef X
};

#endif
