/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_marker.c - markers: CUDA events out of a pool, recorded once, and waits for them by polling. */
#include "cuda_impl.h"

#ifdef HAVE_CUDA

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

enum {
    SPIN_NS = 30000,    /* the time for which a wait looks at its marker again and again */
    POLL_MIN_NS = 5000, /* then the pause between two looks, doubling up to the longest */
    POLL_MAX_NS = 100000
};

/* ---- the pool --------------------------------------------------------------------------------- */

static struct marker *marker_take(struct cuda_device *device, bool timed, cudaError_t *error)
{
    pthread_mutex_lock(&device->world->lock);
    struct marker *marker = device->pool[timed];
    if (marker)
        device->pool[timed] = marker->next;
    pthread_mutex_unlock(&device->world->lock);
    if (marker)
        return marker;
    marker = calloc(1, sizeof *marker);
    if (!marker) {
        *error = cudaErrorMemoryAllocation;
        return NULL;
    }
    marker->timed = timed;
    *error = cuda_enter(device->world); /* an event belongs to the GPU it is made on */
    if (*error == cudaSuccess)
        *error = cudaEventCreateWithFlags(&marker->handle,
                                          timed ? cudaEventDefault : cudaEventDisableTiming);
    if (*error == cudaSuccess)
        return marker;
    free(marker);
    return NULL;
}

void marker_release_locked(struct cuda_device *device, struct marker *marker)
{
    if (!marker || --marker->references > 0)
        return;
    marker->next = device->pool[marker->timed];
    device->pool[marker->timed] = marker;
}

void marker_release(struct cuda_device *device, struct marker *marker)
{
    pthread_mutex_lock(&device->world->lock);
    marker_release_locked(device, marker);
    pthread_mutex_unlock(&device->world->lock);
}

struct marker *marker_record(struct cuda_device *device, bool timed, cudaStream_t stream,
                             cudaError_t *error)
{
    return marker_record_in(device, timed, stream, false, error);
}

struct marker *marker_record_in(struct cuda_device *device, bool timed, cudaStream_t stream,
                                bool node, cudaError_t *error)
{
    struct marker *marker = marker_take(device, timed, error);
    if (!marker)
        return NULL;
    marker->references = 1;
    marker->stream = stream;
    *error = node ? cudaEventRecordWithFlags(marker->handle, stream, cudaEventRecordExternal)
                  : cudaEventRecord(marker->handle, stream);
    if (*error == cudaSuccess)
        return marker;
    marker_release(device, marker);
    return NULL;
}

void markers_free(struct cuda_device *device)
{
    while (device->pendings) {
        struct pending *pending = device->pendings;
        device->pendings = pending->next;
        marker_release(device, pending->start);
        marker_release(device, pending->end);
        free(pending);
    }
    device->pendings_end = &device->pendings;
    for (int timed = 0; timed < 2; timed++)
        while (device->pool[timed]) {
            struct marker *marker = device->pool[timed];
            device->pool[timed] = marker->next;
            cudaEventDestroy(marker->handle);
            free(marker);
        }
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Linux adds 50 us to each pause of a thread that has not asked for less. The thread may be the program's: its own slack
   comes back behind the wait. */
struct pauses {
    int64_t ns; /* of the next */
    int before; /* the thread's slack; 0: there was no pause */
};

static void pause_once(struct pauses *pauses)
{
    if (!pauses->before) {
        pauses->before = prctl(PR_GET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL);
        (void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    }
    nanosleep(&(struct timespec){.tv_nsec = (long)pauses->ns}, NULL);
    pauses->ns = 2 * pauses->ns < POLL_MAX_NS ? 2 * pauses->ns : POLL_MAX_NS;
}

static void end_pauses(const struct pauses *pauses)
{
    if (pauses->before > 0)
        (void)prctl(PR_SET_TIMERSLACK, (unsigned long)pauses->before, 0UL, 0UL, 0UL);
}

enum status cuda_device_fail(struct cuda_device *device, const char *what, cudaError_t error,
                             struct diag *diag)
{
    struct cuda_world *world = device->world;
    pthread_mutex_lock(&world->lock);
    if (!world->failure.status) {
        world->failure.status = STATUS_SYSTEM;
        snprintf(world->failure.text, sizeof world->failure.text, "rank %d, %s: %s (%s)%s",
                 device->base.rank, what, cudaGetErrorString(error), cudaGetErrorName(error),
                 cuda_way_out(error));
    }
    enum status status = diag_error(diag, world->failure.status, "%s", world->failure.text);
    pthread_mutex_unlock(&world->lock);
    return status;
}

static enum status poll_marker(struct cuda_device *device, const struct marker *marker,
                               int64_t deadline_ns, const char *what, struct pauses *pauses,
                               struct diag *diag)
{
    const int64_t begin_ns = device_clock_ns();
    for (;;) {
        enum status status = cuda_world_ended(device->world, diag);
        if (status)
            return status;
        cudaError_t error = cuda_ask_event(device->world, marker->handle);
        if (error == cudaSuccess)
            return STATUS_OK;
        if (error != cudaErrorNotReady)
            return cuda_device_fail(device, what, error, diag);
        if (device_now(&device->world->base) >= deadline_ns)
            return diag_error(diag, STATUS_LIMIT, "time limit: rank %d, %s: has unfinished work",
                              device->base.rank, what);
        if (device_clock_ns() - begin_ns < SPIN_NS)
            sched_yield();
        else
            pause_once(pauses);
    }
}

enum status marker_await(struct cuda_device *device, const struct marker *marker,
                         int64_t deadline_ns, const char *what, struct diag *diag)
{
    struct pauses pauses = {.ns = POLL_MIN_NS};
    cudaError_t entered = cuda_enter(device->world);
    if (entered != cudaSuccess)
        return cuda_device_fail(device, what, entered, diag);
    enum status status = poll_marker(device, marker, deadline_ns, what, &pauses, diag);
    end_pauses(&pauses);
    return status;
}

#else

/* ISO C wants a declaration in every file. */
typedef int cuda_marker_is_empty_without_cuda;

#endif
