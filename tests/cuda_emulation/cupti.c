/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cupti.c - emulated CUPTI: not a GPU. The functions of cupti.h that the recorder calls, over the emulated CUDA of the program.
 *
 * It is as strict as CUPTI's documentation: one subscriber a process; buffers come from the client and go back full, on a
 * thread of CUPTI's, or when they are flushed; a call's record has the external id of its thread in front of it, and only
 * where calls are recorded, too; the records of operations come when these have ended. Its clock is that of the GPUs, with another
 * zero.
 *
 * Environment, beside that of emulation.h:
 *   SWSIM_EMULATED_CUPTI=N                the version (that of the headers)
 *   SWSIM_EMULATION_FAULT=activity=N      there is no room for the record of the N-th operation
 *   SWSIM_EMULATION_FAULT=cupti...=N:CODE the N-th call of this function fails
 */
#include <cupti.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulation.h"
#include "trace/record/recorder/cupti.h"

/* The recorder is built without this header. */
#define SAME(ours, field, theirs, member)                                                          \
    _Static_assert(offsetof(struct ours, field) == offsetof(theirs, member), #theirs " " #member)
#define SAME_TIMES(ours, theirs)                                                                   \
    SAME(ours, start, theirs, start);                                                              \
    SAME(ours, end, theirs, end);                                                                  \
    SAME(ours, device, theirs, deviceId);                                                          \
    SAME(ours, correlation, theirs, correlationId);                                                \
    SAME(ours, node, theirs, graphNodeId)
#define SAME_STREAM(ours, theirs)                                                                  \
    SAME_TIMES(ours, theirs);                                                                      \
    SAME(ours, stream, theirs, streamId)
SAME_STREAM(cupti_kernel, CUpti_ActivityKernel5);
SAME_STREAM(cupti_kernel, CUpti_ActivityKernel6);
SAME_STREAM(cupti_kernel, CUpti_ActivityKernel7);
SAME_STREAM(cupti_kernel, CUpti_ActivityKernel8);
SAME_STREAM(cupti_kernel, CUpti_ActivityKernel9);
SAME_STREAM(cupti_memcpy, CUpti_ActivityMemcpy4);
SAME_STREAM(cupti_memcpy, CUpti_ActivityMemcpy5);
SAME_STREAM(cupti_memcpy, CUpti_ActivityMemset2);
SAME_STREAM(cupti_memcpy, CUpti_ActivityMemset4);
SAME_TIMES(cupti_memcpy_peer, CUpti_ActivityMemcpyPtoP3);
SAME_TIMES(cupti_memcpy_peer, CUpti_ActivityMemcpyPtoP4);
SAME(cupti_external, external_kind, CUpti_ActivityExternalCorrelation, externalKind);
SAME(cupti_external, id, CUpti_ActivityExternalCorrelation, externalId);
SAME(cupti_external, correlation, CUpti_ActivityExternalCorrelation, correlationId);
#define SAME_NUMBER(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
SAME_NUMBER(CUPTI_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME_NUMBER(CUPTI_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
SAME_NUMBER(CUPTI_DRIVER_CALL, CUPTI_ACTIVITY_KIND_DRIVER);
SAME_NUMBER(CUPTI_RUNTIME_CALL, CUPTI_ACTIVITY_KIND_RUNTIME);
SAME_NUMBER(CUPTI_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME_NUMBER(CUPTI_MEMCPY_PEER, CUPTI_ACTIVITY_KIND_MEMCPY2);
SAME_NUMBER(CUPTI_EXTERNAL, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
SAME_NUMBER(CUPTI_CUSTOM2, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2);
SAME_NUMBER(CUPTI_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
SAME_NUMBER(CUPTI_NO_MORE_RECORDS, CUPTI_ERROR_MAX_LIMIT_REACHED);
#define X(name, number) SAME_NUMBER(number, CUPTI_RUNTIME_TRACE_CBID_##name);
CUPTI_IDLE_RUNTIME_CALLS(X)
#undef X
#define X(name, number) SAME_NUMBER(number, CUPTI_DRIVER_TRACE_CBID_##name);
CUPTI_IDLE_DRIVER_CALLS(X)
#undef X

#define EPOCH_NS INT64_C(1700000000000000000)
enum { MOST_KINDS = 64, DEEPEST = 16, RECORD = 256 };
enum { RUNTIME_CALLS = CUPTI_RUNTIME_TRACE_CBID_SIZE, DRIVER_CALLS = CUPTI_DRIVER_TRACE_CBID_SIZE };

struct buffer {
    struct buffer *next;
    uint8_t *bytes;
    size_t size, used;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    bool subscribed, has_worker;
    bool enabled[MOST_KINDS];
    bool runtime_off[RUNTIME_CALLS], driver_off[DRIVER_CALLS]; /* calls without records */
    CUpti_BuffersCallbackRequestFunc want;
    CUpti_BuffersCallbackCompleteFunc take;
    struct buffer *current, *full;
    uint32_t correlations;
    size_t records, dropped;
} cupti = {.lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER};

static _Thread_local struct {
    uint64_t ids[DEEPEST];
    int depth;
} external;

/* ---- buffers ---------------------------------------------------------------------------------- */

/* All that are full go back, without the lock. */
static void deliver(void)
{
    struct buffer *list = cupti.full;
    cupti.full = NULL;
    pthread_mutex_unlock(&cupti.lock);
    while (list) {
        struct buffer *next = list->next;
        cupti.take(NULL, 0, list->bytes, list->size, list->used);
        free(list);
        list = next;
    }
    pthread_mutex_lock(&cupti.lock);
}

static void *work(void *unused)
{
    pthread_mutex_lock(&cupti.lock);
    for (;;) {
        while (!cupti.full)
            pthread_cond_wait(&cupti.filled, &cupti.lock);
        deliver();
    }
    return unused;
}

/* The lock is held. */
static void end_buffer(void)
{
    if (!cupti.current)
        return;
    struct buffer **end = &cupti.full;
    while (*end)
        end = &(*end)->next;
    *end = cupti.current;
    cupti.current = NULL;
    pthread_cond_signal(&cupti.filled);
}

static bool begin_buffer(void)
{
    struct buffer *buffer = calloc(1, sizeof *buffer);
    size_t most = 0;
    if (!buffer)
        return false;
    cupti.want(&buffer->bytes, &buffer->size, &most);
    if (!buffer->bytes || (uintptr_t)buffer->bytes % 8 != 0 || buffer->size < RECORD) {
        free(buffer);
        return false;
    }
    cupti.current = buffer;
    return true;
}

/* The lock is held. */
static void put(const void *record, size_t bytes)
{
    const char *room = getenv("SWSIM_EMULATED_CUPTI_ROOM");
    bytes = (bytes + 7) / 8 * 8;
    if (room && *room && cupti.records >= strtoull(room, NULL, 10)) {
        cupti.dropped++;
        return;
    }
    cupti.records++;
    if (cupti.current && cupti.current->used + bytes > cupti.current->size)
        end_buffer();
    if (!cupti.current && !begin_buffer()) {
        cupti.dropped++;
        return;
    }
    memcpy(cupti.current->bytes + cupti.current->used, record, bytes);
    cupti.current->used += bytes;
}

/* ---- what the emulated CUDA tells -------------------------------------------------------------- */

/* The functions that the switches of calls are tried on. */
static const struct call {
    const char *name;
    int runtime, driver; /* their numbers; 0: there is none */
} calls[] = {
#define RUNTIME(name) CUPTI_RUNTIME_TRACE_CBID_##name
#define DRIVER(name)  CUPTI_DRIVER_TRACE_CBID_##name
    {"cudaEventQuery", RUNTIME(cudaEventQuery_v3020), DRIVER(cuEventQuery)},
    {"cudaStreamQuery", RUNTIME(cudaStreamQuery_v3020), DRIVER(cuStreamQuery)},
    {"cudaGetDevice", RUNTIME(cudaGetDevice_v3020), DRIVER(cuCtxGetCurrent)},
    {"cudaEventRecord", RUNTIME(cudaEventRecord_v3020), DRIVER(cuEventRecord)},
    {"cudaStreamWaitEvent", RUNTIME(cudaStreamWaitEvent_v3020), DRIVER(cuStreamWaitEvent)},
    {"cudaStreamSynchronize", RUNTIME(cudaStreamSynchronize_v3020), DRIVER(cuStreamSynchronize)},
    {"cudaLaunchKernelExC", RUNTIME(cudaLaunchKernelExC_v11060), DRIVER(cuLaunchKernelEx)},
    {"cuLaunchKernelEx", 0, DRIVER(cuLaunchKernelEx)},
    {"cudaMemcpyAsync", RUNTIME(cudaMemcpyAsync_v3020), DRIVER(cuMemcpyAsync)},
    {"cudaMemsetAsync", RUNTIME(cudaMemsetAsync_v3020), DRIVER(cuMemsetD8Async)},
    {"cudaGraphLaunch", RUNTIME(cudaGraphLaunch_v10000), DRIVER(cuGraphLaunch)},
};

static struct call call_of(const char *function)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(calls[i].name, function) == 0)
            return calls[i];
    return (struct call){.name = function};
}

/* The ids that the caller has pushed are told with the record of the call, and only with it. The lock is held. */
static void put_call(CUpti_ActivityKind kind, int number, uint32_t correlation)
{
    const bool *off = kind == CUPTI_ACTIVITY_KIND_RUNTIME ? cupti.runtime_off : cupti.driver_off;
    if (!cupti.enabled[kind] || off[number])
        return;
    if (external.depth > 0 && cupti.enabled[CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION])
        put(&(CUpti_ActivityExternalCorrelation){.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                                 .externalKind =
                                                     CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2,
                                                 .externalId = external.ids[external.depth - 1],
                                                 .correlationId = correlation},
            sizeof(CUpti_ActivityExternalCorrelation));
    put(&(CUpti_ActivityAPI){.kind = kind,
                             .cbid = (CUpti_CallbackId)number,
                             .correlationId = correlation},
        sizeof(CUpti_ActivityAPI));
}

static _Thread_local uint32_t correlation_of_call;

/* A call of the runtime is also one of the driver. */
static void called(const char *function)
{
    const struct call call = call_of(function);
    pthread_mutex_lock(&cupti.lock);
    correlation_of_call = ++cupti.correlations;
    if (strncmp(function, "cuda", 4) == 0)
        put_call(CUPTI_ACTIVITY_KIND_RUNTIME, call.runtime, correlation_of_call);
    put_call(CUPTI_ACTIVITY_KIND_DRIVER, call.driver, correlation_of_call);
    pthread_mutex_unlock(&cupti.lock);
}

static uint32_t pushed(void)
{
    if (correlation_of_call == 0)
        emulation_misuse("work is pushed by no call");
    return correlation_of_call;
}

/* The members that the records of all kinds of work share. */
#define FIELDS_OF(done)                                                                            \
    .start = (uint64_t)((done)->start_ns + EPOCH_NS),                                              \
    .end = (uint64_t)((done)->end_ns + EPOCH_NS), .deviceId = (uint32_t)(done)->gpu,               \
    .streamId = (done)->stream, .correlationId = (done)->correlation, .graphNodeId = (done)->node

static void put_kernel(const struct activity_done *done)
{
    const CUpti_ActivityKernel9 record = {
        .kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, FIELDS_OF(done), .name = "kernel"};
    put(&record, sizeof record);
}

static void put_copy(const struct activity_done *done)
{
    const CUpti_ActivityMemcpy5 record = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY, FIELDS_OF(done)};
    put(&record, sizeof record);
}

static void put_peer_copy(const struct activity_done *done)
{
    const CUpti_ActivityMemcpyPtoP4 record = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY2, FIELDS_OF(done)};
    put(&record, sizeof record);
}

static void put_fill(const struct activity_done *done)
{
    const CUpti_ActivityMemset4 record = {.kind = CUPTI_ACTIVITY_KIND_MEMSET, FIELDS_OF(done)};
    put(&record, sizeof record);
}

static void done(const struct activity_done *done)
{
    static const struct {
        int kind;
        void (*put)(const struct activity_done *);
    } kinds[] = {
        [ACTIVITY_KERNEL] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, put_kernel},
        [ACTIVITY_COPY] = {CUPTI_ACTIVITY_KIND_MEMCPY, put_copy},
        [ACTIVITY_PEER_COPY] = {CUPTI_ACTIVITY_KIND_MEMCPY2, put_peer_copy},
        [ACTIVITY_FILL] = {CUPTI_ACTIVITY_KIND_MEMSET, put_fill},
    };
    pthread_mutex_lock(&cupti.lock);
    if (!cupti.enabled[kinds[done->kind].kind])
        ;
    else if (fault_activity())
        cupti.dropped++;
    else
        kinds[done->kind].put(done);
    pthread_mutex_unlock(&cupti.lock);
}

static const struct activity activity = {called, pushed, done};

/* ---- functions -------------------------------------------------------------------------------- */

static CUptiResult fails(const char *function)
{
    return (CUptiResult)fault_call(function);
}

CUptiResult cuptiGetVersion(uint32_t *out)
{
    const char *version = getenv("SWSIM_EMULATED_CUPTI");
    *out = version && *version ? (uint32_t)atoi(version) : CUPTI_API_VERSION;
    return fails(__func__);
}

CUptiResult cuptiGetResultString(CUptiResult result, const char **out)
{
    *out = result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
           : result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
               ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
               : "CUPTI_ERROR_UNKNOWN";
    return CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *out, CUpti_CallbackFunc callback, void *arg)
{
    const CUptiResult fault = fails(__func__);
    (void)callback, (void)arg;
    if (fault != CUPTI_SUCCESS || cupti.subscribed)
        return fault != CUPTI_SUCCESS ? fault : CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    cupti.subscribed = true;
    *out = (CUpti_SubscriberHandle)(void *)&cupti;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber)
{
    if ((void *)subscriber != (void *)&cupti)
        return CUPTI_ERROR_INVALID_PARAMETER;
    cupti.subscribed = false;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t *out)
{
    *out = (uint64_t)(emulation_gpu_ns() + EPOCH_NS);
    return fails(__func__);
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc want,
                                           CUpti_BuffersCallbackCompleteFunc take)
{
    pthread_t worker;
    const CUptiResult fault = fails(__func__);
    if (fault != CUPTI_SUCCESS)
        return fault;
    if (!want || !take)
        return CUPTI_ERROR_INVALID_PARAMETER;
    cupti.want = want;
    cupti.take = take;
    if (!cupti.has_worker && pthread_create(&worker, NULL, work, NULL) == 0)
        cupti.has_worker = pthread_detach(worker) == 0;
    return cupti.has_worker ? CUPTI_SUCCESS : CUPTI_ERROR_OUT_OF_MEMORY;
}

static CUptiResult set(CUpti_ActivityKind kind, bool on)
{
    if ((int)kind < 1 || (int)kind >= MOST_KINDS)
        return CUPTI_ERROR_INVALID_KIND;
    if (on && !cupti.want)
        emulation_misuse("cuptiActivityEnable before cuptiActivityRegisterCallbacks");
    pthread_mutex_lock(&cupti.lock);
    cupti.enabled[kind] = on;
    if (kind == CUPTI_ACTIVITY_KIND_RUNTIME)
        memset(cupti.runtime_off, 0, sizeof cupti.runtime_off);
    if (kind == CUPTI_ACTIVITY_KIND_DRIVER)
        memset(cupti.driver_off, 0, sizeof cupti.driver_off);
    pthread_mutex_unlock(&cupti.lock);
    atomic_store(&emulation_activity, &activity);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    const CUptiResult fault = fails(__func__);
    return fault != CUPTI_SUCCESS ? fault : set(kind, true);
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    return set(kind, false);
}

/* The kind itself sets all of its calls anew: see set(). */
static CUptiResult set_call(const char *function, bool *off, int count, CUpti_CallbackId call,
                            bool on)
{
    const CUptiResult fault = fails(function);
    if (fault != CUPTI_SUCCESS || call < 1 || (int)call >= count)
        return fault != CUPTI_SUCCESS ? fault : CUPTI_ERROR_INVALID_PARAMETER;
    pthread_mutex_lock(&cupti.lock);
    off[call] = !on;
    pthread_mutex_unlock(&cupti.lock);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId call, uint8_t on)
{
    return set_call(__func__, cupti.runtime_off, RUNTIME_CALLS, call, on);
}

CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId call, uint8_t on)
{
    return set_call(__func__, cupti.driver_off, DRIVER_CALLS, call, on);
}

static size_t record_bytes(CUpti_ActivityKind kind)
{
    switch ((int)kind) {
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME: return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(CUpti_ActivityKernel9);
    case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(CUpti_ActivityMemcpy5);
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(CUpti_ActivityMemset4);
    default: return 0;
    }
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t bytes, CUpti_Activity **record)
{
    uint8_t *at = *record ? (uint8_t *)*record : NULL;
    const size_t before = at ? (record_bytes((*record)->kind) + 7) / 8 * 8 : 0;
    at = at ? at + before : buffer;
    if (at >= buffer + bytes)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)(void *)at;
    return record_bytes((*record)->kind) > 0 ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_KIND;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *out)
{
    (void)context, (void)stream;
    pthread_mutex_lock(&cupti.lock);
    *out = cupti.dropped;
    cupti.dropped = 0;
    pthread_mutex_unlock(&cupti.lock);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id)
{
    if (kind != CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (external.depth == DEEPEST)
        emulation_misuse("%s: ids are pushed and not taken away again", __func__);
    external.ids[external.depth++] = id;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                  uint64_t *last)
{
    if (kind != CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (external.depth == 0)
        emulation_misuse("%s: no id has been pushed", __func__);
    *last = external.ids[--external.depth];
    return CUPTI_SUCCESS;
}

/* A buffer in which an operation has not ended is given back by force only: here, while any stream has work. */
CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    const CUptiResult fault = fails(__func__);
    if (fault != CUPTI_SUCCESS)
        return fault;
    if (!cupti.take)
        return CUPTI_ERROR_INVALID_OPERATION;
    const bool ends = (flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) || !emulation_is_busy();
    pthread_mutex_lock(&cupti.lock);
    if (ends)
        end_buffer();
    deliver();
    pthread_mutex_unlock(&cupti.lock);
    return CUPTI_SUCCESS;
}
