/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_comm_none.c - communicators of the CUDA device in a build without NCCL's header: there are none. */
#include "cuda_impl.h"

#if defined HAVE_CUDA && !defined HAVE_NCCL

#include <stdio.h>

void *cuda_comm_handle(struct device_comm *comm)
{
    (void)comm;
    return NULL;
}

enum status cuda_comm_open(struct device *device, const char *name, const int *members, int count,
                           struct device_comm **out, struct diag *diag)
{
    (void)device, (void)members, (void)count, (void)out;
    return diag_error(diag, STATUS_SYSTEM,
                      "communicator %s: this program was built without NCCL's header", name);
}

void cuda_comm_close(struct device_comm *comm)
{
    (void)comm;
}

void cuda_comm_push(struct cuda_stream *stream, const struct device_op *op)
{
    (void)stream, (void)op;
}

void cuda_comm_check(struct cuda_device *device)
{
    (void)device;
}

bool cuda_comm_abort(struct cuda_device *device)
{
    (void)device;
    return true;
}

void cuda_comm_abort_here(struct cuda_device *device)
{
    (void)device;
}

void cuda_comm_settle(struct cuda_device *device)
{
    (void)device;
}

void cuda_nccl_open(struct cuda_device *device, char *description, size_t size)
{
    (void)device;
    snprintf(description, size, "built without NCCL");
}

enum status cuda_nccl_captures(const struct cuda_device *device, struct diag *diag)
{
    (void)device, (void)diag;
    return STATUS_OK;
}

void cuda_nccl_close(struct cuda_device *device)
{
    (void)device;
}

void cuda_comm_forget(struct cuda_world *world)
{
    (void)world;
}

#else

/* ISO C wants a declaration in every file. */
typedef int cuda_comm_none_is_empty;

#endif
