/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_alone.c - communicators of one member, which need no NCCL: what they send to themselves is copied.
 *
 * As NCCL's, their operations follow each other in the order of the calls, whatever the streams: an event stands behind
 * the last one, and another stream waits for it. In a capture that order is among what the capture has.
 */
#include "cuda_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/system_words.h"

struct alone {
    struct cuda_member member;
    cudaEvent_t last;             /* behind the last operation ... */
    cudaStream_t stream;          /* ... in this stream; NULL: there was none */
    struct device_graph *capture; /* it was captured into; NULL: none */
};

static bool is_adopted(const struct device *device, const char *name)
{
    const struct device_own *own = device->world->config.own;
    return own && own->comm && own->comm(own->arg, device->rank, name);
}

static void alone_free(struct alone *alone)
{
    free(alone->member.base.members);
    free(alone->member.base.name);
    free(alone);
}

static struct alone *alone_new(struct device *device, const char *name)
{
    struct alone *alone = calloc(1, sizeof *alone);
    if (!alone)
        return NULL;
    alone->member.alone = true;
    alone->member.base = (struct device_comm){
        .device = device, .name = strdup(name), .members = calloc(1, sizeof(int)), .count = 1};
    if (!alone->member.base.name || !alone->member.base.members) {
        alone_free(alone);
        return NULL;
    }
    alone->member.base.members[0] = device->rank;
    return alone;
}

static enum status alone_open(struct device *device, const char *name, struct device_comm **out,
                              struct diag *diag)
{
    struct alone *alone = alone_new(device, name);
    if (!alone)
        return diag_no_memory(diag);
    cudaError_t error = cuda_enter(((struct cuda_device *)device)->world);
    if (error == cudaSuccess)
        error = cudaEventCreateWithFlags(&alone->last, cudaEventDisableTiming);
    if (error != cudaSuccess) {
        alone_free(alone);
        return cuda_refused(diag, "cannot make an event", error);
    }
    int failed = pthread_mutex_init(&alone->member.order, NULL);
    if (failed) {
        cudaEventDestroy(alone->last);
        alone_free(alone);
        return diag_error(diag, STATUS_SYSTEM, "cannot make a lock: %s", system_words(failed));
    }
    *out = &alone->member.base;
    return STATUS_OK;
}

static void alone_close(struct alone *alone)
{
    struct diag ignored; /* a sync has reported it */
    diag_init(&ignored);
    device_enter(alone->member.base.device);
    cuda_device_sync(alone->member.base.device, DEVICE_FOREVER, &ignored);
    diag_fini(&ignored);
    cudaEventDestroy(alone->last);
    pthread_mutex_destroy(&alone->member.order);
    alone_free(alone);
}

/* ---- whichever it is ------------------------------------------------------------------------- */

enum status cuda_member_open(struct device *device, const char *name, const int *members, int count,
                             struct device_comm **out, struct diag *diag)
{
    return count == 1 && !is_adopted(device, name)
               ? alone_open(device, name, out, diag)
               : cuda_comm_open(device, name, members, count, out, diag);
}

void cuda_member_close(struct device_comm *comm)
{
    struct cuda_member *member = (struct cuda_member *)comm;
    if (member->alone)
        alone_close((struct alone *)member);
    else
        cuda_comm_close(comm);
}

void *cuda_member_handle(struct device_comm *comm)
{
    return ((struct cuda_member *)comm)->alone ? NULL : cuda_comm_handle(comm);
}

/* ---- push ------------------------------------------------------------------------------------ */

static cudaError_t cuda_alone_copy(char *to, const char *from, int64_t bytes, cudaStream_t stream)
{
    if (bytes == 0 || to == from)
        return cudaSuccess;
    return cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDeviceToDevice, stream);
}

/* The n-th part that is sent goes to the n-th that is received. */
static cudaError_t cuda_alone_copy_parts(const struct device_group *group, cudaStream_t stream)
{
    cudaError_t error = cudaSuccess;
    size_t at = 0;
    for (size_t i = 0; i < group->count && error == cudaSuccess; i++) {
        const struct device_p2p *send = &group->parts[i];
        if (!send->send)
            continue;
        while (at < group->count && group->parts[at].send)
            at++;
        if (at == group->count || group->parts[at].bytes != send->bytes)
            return cudaErrorInvalidValue;
        error = cuda_alone_copy(ref_address(group->parts[at++].data), ref_address(send->data),
                                send->bytes, stream);
    }
    return error;
}

static cudaError_t cuda_alone_follow(struct alone *alone, const struct cuda_stream *stream)
{
    bool apart =
        alone->stream && alone->stream != stream->handle && alone->capture == stream->base.capture;
    return apart ? cudaStreamWaitEvent(stream->handle, alone->last, 0) : cudaSuccess;
}

/* In order: the caller holds member.order, or is the only one to push, in a capture. */
cudaError_t cuda_alone_push(struct cuda_stream *stream, const struct device_op *op)
{
    struct alone *alone = (struct alone *)device_op_comm(op);
    cudaError_t error = cuda_alone_follow(alone, stream);
    if (error == cudaSuccess && op->kind == DEVICE_OP_GROUP)
        error = cuda_alone_copy_parts(&op->group, stream->handle);
    else if (error == cudaSuccess && op->collective.kind != COLLECTIVE_BARRIER)
        error = cuda_alone_copy(ref_address(op->collective.recv), ref_address(op->collective.send),
                                op->collective.bytes, stream->handle);
    if (error == cudaSuccess)
        error = cudaEventRecord(alone->last, stream->handle);
    alone->stream = stream->handle;
    alone->capture = stream->base.capture;
    return error;
}
