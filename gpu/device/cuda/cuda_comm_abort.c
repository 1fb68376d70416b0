/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_comm_abort.c - errors that NCCL meets on its own, and the end of all communicators.
 *
 * An abort waits for pushed operations, and these for other communicators that are being aborted, so all are
 * aborted in one group (before NCCL 2.22: by a thread each), by a thread of its own: the aborting thread goes on at once. Calls of NCCL hold
 * comm->lock; one that does not come back within ABORT_WAIT_S is stuck, and only the abort ends it.
 */
#include "cuda_impl.h"

#if defined HAVE_CUDA && defined HAVE_NCCL

#include "cuda_comm_impl.h"

#include <stdio.h>
#include <time.h>

#include "base/quiet_thread.h"

/* ---- errors ---------------------------------------------------------------------------------- */

/* The first communicator with an error of its own, and the error. The world's lock is held. */
static const struct cuda_comm *find_error(const struct cuda_device *device, ncclResult_t *error)
{
    for (const struct cuda_comm *comm = device->comms; comm; comm = comm->next)
        if (!atomic_load(&comm->aborted) &&
            comm->nccl->CommGetAsyncError(comm->handle, error) == ncclSuccess &&
            *error != ncclSuccess && *error != ncclInProgress)
            return comm;
    return NULL;
}

/* An error of NCCL ends the run: it becomes the reason of an abort. Mostly it follows from the death or abort
   of a peer; so wait a moment for the original reason. */
void cuda_comm_check(struct cuda_device *device)
{
    struct cuda_world *world = device->world;
    char why[FAILURE_TEXT], words[NCCL_TEXT];
    ncclResult_t error;
    bool ends = false;
    pthread_mutex_lock(&world->lock);
    const struct cuda_comm *comm = find_error(device, &error);
    if (comm) {
        int64_t now_ns = device_now(&world->base);
        if (device->error_ns == 0)
            device->error_ns = now_ns;
        ends = !world->base.config.rendezvous || now_ns - device->error_ns >= NEWS_NS;
        snprintf(why, sizeof why, "communicator %s: %s", comm->base.name,
                 nccl_describe(comm->nccl, error, words, sizeof words));
    }
    if (ends && !world->failure.status) { /* as where a push is refused, which may be seen first */
        world->failure.status = STATUS_SYSTEM;
        snprintf(world->failure.text, sizeof world->failure.text, "%s", why);
    }
    pthread_mutex_unlock(&world->lock);
    if (ends)
        device_world_abort(&world->base, why);
}

/* ---- abort ----------------------------------------------------------------------------------- */

static void tell_lost(const struct cuda_comm *comm)
{
    const struct device *device = comm->base.device;
    const struct device_own *own = device->world->config.own;
    if (comm->adopted && own->comm_lost)
        own->comm_lost(own->arg, device->rank, comm->base.name);
}

/* The handles that no other thread ends, as a list through next_aborted. The world's lock is held, so no thread
   is in cuda_comm_check, and a close from now on leaves its handle to this function. */
static struct cuda_comm *take_all(struct cuda_device *device)
{
    struct cuda_comm *taken = NULL;
    for (struct cuda_comm *comm = device->comms; comm; comm = comm->next)
        if (!atomic_exchange(&comm->aborted, true)) {
            comm->next_aborted = taken;
            taken = comm;
            tell_lost(comm);
        }
    return taken;
}

static void *abort_one(void *arg)
{
    struct cuda_comm *comm = arg;
    cuda_enter(((struct cuda_device *)comm->base.device)->world);
    comm->nccl->CommAbort(comm->handle);
    return NULL;
}

/* Work of one communicator may wait for another's: none is aborted behind another. */
static void abort_apart(struct cuda_comm *taken)
{
    for (struct cuda_comm *comm = taken; comm; comm = comm->next_aborted)
        comm->aborting = quiet_thread_start(&comm->abort_thread, abort_one, comm) == 0;
    for (struct cuda_comm *comm = taken; comm; comm = comm->next_aborted)
        if (!comm->aborting)
            abort_one(comm);
    for (struct cuda_comm *comm = taken; comm; comm = comm->next_aborted)
        if (comm->aborting)
            pthread_join(comm->abort_thread, NULL);
}

static void abort_together(const struct nccl *nccl, struct cuda_comm *taken)
{
    nccl->GroupStart();
    for (struct cuda_comm *comm = taken; comm; comm = comm->next_aborted)
        nccl->CommAbort(comm->handle);
    nccl->GroupEnd();
}

static void *abort_all(void *arg)
{
    struct cuda_device *device = arg;
    struct cuda_comm *taken = device->condemned;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ABORT_WAIT_S;
    for (struct cuda_comm *comm = taken; comm; comm = comm->next_aborted)
        comm->locked = pthread_mutex_timedlock(&comm->lock, &until) == 0;
    cuda_enter(device->world);
    if (device->nccl->version >= NCCL_ABORTS_TOGETHER)
        abort_together(device->nccl, taken);
    else
        abort_apart(taken);
    for (struct cuda_comm *comm = taken; comm; comm = comm->next_aborted)
        if (comm->locked)
            pthread_mutex_unlock(&comm->lock);
    return NULL;
}

bool cuda_comm_abort(struct cuda_device *device)
{
    device->condemned = take_all(device);
    if (!device->condemned)
        return true;
    device->aborting = quiet_thread_start(&device->abort_thread, abort_all, device) == 0;
    return device->aborting;
}

void cuda_comm_abort_here(struct cuda_device *device)
{
    abort_all(device);
}

void cuda_comm_settle(struct cuda_device *device)
{
    pthread_mutex_lock(&device->abort_lock); /* the second to ask waits for the first */
    pthread_mutex_lock(&device->world->lock);
    bool aborting = device->aborting;
    device->aborting = false;
    pthread_mutex_unlock(&device->world->lock);
    if (aborting)
        pthread_join(device->abort_thread, NULL);
    pthread_mutex_unlock(&device->abort_lock);
}

#else

/* ISO C wants a declaration in every file. */
typedef int cuda_comm_abort_is_empty_without_nccl;

#endif
