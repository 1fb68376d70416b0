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

/*
 * Calls that push no work: CUPTI is asked to make no records of them, so that a program that polls does not fill its
 * buffers. A call that is missing here costs room and nothing else. NAME, its number: those of cupti_runtime_cbid.h and
 * cupti_driver_cbid.h, which do not change.
 */
#define CUPTI_IDLE_RUNTIME_CALLS(X)                                                                \
    X(cudaGetLastError_v3020, 10)                                                                  \
    X(cudaPeekAtLastError_v3020, 11)                                                               \
    X(cudaFuncGetAttributes_v3020, 15)                                                             \
    X(cudaSetDevice_v3020, 16)                                                                     \
    X(cudaGetDevice_v3020, 17)                                                                     \
    X(cudaStreamSynchronize_v3020, 131)                                                            \
    X(cudaStreamQuery_v3020, 132)                                                                  \
    X(cudaEventRecord_v3020, 135)                                                                  \
    X(cudaEventSynchronize_v3020, 137)                                                             \
    X(cudaEventQuery_v3020, 138)                                                                   \
    X(cudaEventElapsedTime_v3020, 139)                                                             \
    X(cudaStreamWaitEvent_v3020, 147)                                                              \
    X(cudaPointerGetAttributes_v4000, 151)                                                         \
    X(cudaDeviceSynchronize_v3020, 165)                                                            \
    X(cudaDeviceGetAttribute_v5000, 200)                                                           \
    X(cudaStreamSynchronize_ptsz_v7000, 239)                                                       \
    X(cudaStreamQuery_ptsz_v7000, 240)                                                             \
    X(cudaEventRecord_ptsz_v7000, 242)                                                             \
    X(cudaStreamWaitEvent_ptsz_v7000, 247)                                                         \
    X(cudaStreamIsCapturing_v10000, 317)                                                           \
    X(cudaStreamIsCapturing_ptsz_v10000, 318)                                                      \
    X(cudaStreamGetCaptureInfo_v10010, 324)                                                        \
    X(cudaStreamGetCaptureInfo_ptsz_v10010, 325)                                                   \
    X(cudaEventRecordWithFlags_v11010, 370)                                                        \
    X(cudaEventRecordWithFlags_ptsz_v11010, 371)                                                   \
    X(cudaStreamGetCaptureInfo_v2_v11030, 409)                                                     \
    X(cudaStreamGetCaptureInfo_v2_ptsz_v11030, 410)
#define CUPTI_IDLE_DRIVER_CALLS(X)                                                                 \
    X(cuDeviceGetAttribute, 9)                                                                     \
    X(cuCtxGetDevice, 16)                                                                          \
    X(cuCtxSynchronize, 17)                                                                        \
    X(cuFuncGetAttribute, 85)                                                                      \
    X(cuEventRecord, 119)                                                                          \
    X(cuEventQuery, 120)                                                                           \
    X(cuEventSynchronize, 121)                                                                     \
    X(cuEventElapsedTime, 123)                                                                     \
    X(cuStreamQuery, 125)                                                                          \
    X(cuStreamSynchronize, 126)                                                                    \
    X(cuStreamWaitEvent, 295)                                                                      \
    X(cuCtxSetCurrent, 303)                                                                        \
    X(cuCtxGetCurrent, 304)                                                                        \
    X(cuPointerGetAttribute, 310)                                                                  \
    X(cuCtxPushCurrent_v2, 323)                                                                    \
    X(cuCtxPopCurrent_v2, 324)                                                                     \
    X(cuDevicePrimaryCtxGetState, 392)                                                             \
    X(cuStreamWaitEvent_ptsz, 436)                                                                 \
    X(cuStreamQuery_ptsz, 439)                                                                     \
    X(cuStreamSynchronize_ptsz, 440)                                                               \
    X(cuEventRecord_ptsz, 441)                                                                     \
    X(cuPointerGetAttributes, 450)                                                                 \
    X(cuStreamIsCapturing, 499)                                                                    \
    X(cuStreamIsCapturing_ptsz, 500)                                                               \
    X(cuStreamGetCaptureInfo, 536)                                                                 \
    X(cuStreamGetCaptureInfo_ptsz, 537)                                                            \
    X(cuEventRecordWithFlags, 587)                                                                 \
    X(cuEventRecordWithFlags_ptsz, 588)                                                            \
    X(cuStreamGetCaptureInfo_v2, 629)                                                              \
    X(cuStreamGetCaptureInfo_v2_ptsz, 630)

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

/* Those that are not in the oldest version */
#define CUPTI_OPTIONAL_LIST(X)                                                                     \
    X(ActivityEnableRuntimeApi, (uint32_t call, uint8_t on))                                       \
    X(ActivityEnableDriverApi, (uint32_t call, uint8_t on))

struct cupti {
#define X(name, PARAMS) int(*name) PARAMS;
    CUPTI_LIST(X)
    CUPTI_OPTIONAL_LIST(X) /* NULL: not there */
#undef X
};

#endif
