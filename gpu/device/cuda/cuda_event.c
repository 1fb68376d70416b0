/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_event.c - events of the CUDA device, and markers: CUDA events out of a pool, recorded once, and waits for them by polling.
 *
 * An event means the marker of its last record.
 * Two threads may record an event and let a stream wait for it at once. The wait is behind the record that it finds: so
 * both get their numbers where the event is set and looked at, under the world's lock, and the log has them in that order.
 */
#include <assert.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "cuda_impl.h"

/*
 * The GPU's clock on the world's clock.
 *
 * Events tell device time, and the GPU's clock drifts against the host's, by tens of ppm. A tie is a marker that is recorded and
 * awaited at once, between two readings of the world's clock: the shortest of some round trips when the device is opened,
 * and one about every second while stamps are collected. Until then each comes after as long a time as all before it: the
 * slope of so short a line may be wrong, but by no more than half a round trip until the next tie.
 *
 *     world time              tie, missed by m
 *                            x          slope `rate`: of the line through the first and the last tie;
 *                       . -  ' .  - '   in the TIE_NS behind a tie also `slew`, which makes up for m
 *            . - '  x .  - '
 *     x . - '
 *     +------------------------------> device time, in pieces of at most REBASE_NS
 *
 * So the map is continuous and grows: operations of a stream stay in order.
 */

enum {
    OPEN_TRIES = 64, /* round trips at most until one is short */
    TIE_TRIES = 8,
    FIRST_TIE_MS = 100,
    TIE_MS = 1000,
    REBASE_MS = 1000 /* a float of milliseconds resolves 0.1 us up to here */
};
#define TIE_NS        (TIE_MS * 1e6)
#define SHORT_NS      20000   /* a round trip that needs no better one */
#define MOST_NS       5000000 /* then the device is busy, and the tie is left for later */
#define OPEN_MOST_NS  INT64_C(10000000000)
#define STEEPEST_SLEW 0.01

/* ---- the map, with collect_lock ----------------------------------------------------------------- */

/* World time of a moment so far from the reference. Behind it the slope of all ties is the better one. */
static double to_world(const struct gpu_clock *clock, double device_ns)
{
    double slewed_ns = device_ns < 0 ? 0 : device_ns < TIE_NS ? device_ns : TIE_NS;
    return clock->world_ns + clock->rate * device_ns + clock->slew * slewed_ns;
}

static cudaError_t since_reference(const struct gpu_clock *clock, const struct marker *marker,
                                   double *out_ns)
{
    float ms = 0;
    cudaError_t error = cudaEventElapsedTime(&ms, clock->reference->handle, marker->handle);
    if (error == cudaSuccess)
        *out_ns = (double)ms * 1e6;
    return error;
}

static void move_reference(struct cuda_device *device, struct marker *marker, double device_ns)
{
    struct gpu_clock *clock = &device->clock;
    double world_ns = to_world(clock, device_ns);
    pthread_mutex_lock(&device->world->lock);
    marker_release_locked(device, clock->reference);
    marker->references++;
    pthread_mutex_unlock(&device->world->lock);
    clock->reference = marker;
    clock->world_ns = world_ns;
    clock->device_ns += device_ns;
    clock->slew = 0;
}

cudaError_t marker_measure(struct cuda_device *device, const struct marker *marker, double *out_ns)
{
    double device_ns;
    cudaError_t error = since_reference(&device->clock, marker, &device_ns);
    if (error == cudaSuccess)
        *out_ns = to_world(&device->clock, device_ns);
    return error;
}

cudaError_t marker_measure_from(struct cuda_device *device, struct marker *marker)
{
    double device_ns = 0;
    cudaError_t error = since_reference(&device->clock, marker, &device_ns);
    if (error == cudaSuccess && device_ns > 1e6 * REBASE_MS)
        move_reference(device, marker, device_ns);
    return error;
}

/* ---- ties -------------------------------------------------------------------------------------- */

struct cuda_clock_tie {
    struct marker *marker;
    double world_ns; /* the middle of the round trip */
    int64_t round_ns;
};

static void know_error(struct cuda_device *device, double error_ns)
{
    if (error_ns > (double)atomic_load(&device->base.clock_error_ns))
        atomic_store(&device->base.clock_error_ns, (int64_t)error_ns);
}

/* One round trip. Its marker is NULL where the device did not answer in time. */
static cudaError_t take_tie(struct cuda_device *device, int64_t most_ns, struct cuda_clock_tie *tie)
{
    cudaError_t error = cudaSuccess;
    int64_t before_ns = device_now(&device->world->base), now_ns = before_ns;
    *tie = (struct cuda_clock_tie){.marker = marker_record(device, true, device->service, &error)};
    if (!tie->marker)
        return error;
    while ((error = cuda_ask_event(device->world, tie->marker->handle)) == cudaErrorNotReady &&
           now_ns - before_ns < most_ns) {
        sched_yield();
        now_ns = device_now(&device->world->base);
    }
    tie->round_ns = device_now(&device->world->base) - before_ns;
    tie->world_ns = (double)before_ns + (double)tie->round_ns / 2;
    if (error == cudaSuccess)
        return error;
    marker_release(device, tie->marker);
    tie->marker = NULL;
    return error == cudaErrorNotReady ? cudaSuccess : error;
}

/* The shortest of some round trips; the first that is short enough ends them, and one without an answer. */
static cudaError_t take_best(struct cuda_device *device, int tries, int64_t most_ns,
                             int64_t short_ns, struct cuda_clock_tie *best)
{
    cudaError_t error = cudaSuccess;
    *best = (struct cuda_clock_tie){0};
    for (int i = 0; i < tries && error == cudaSuccess; i++) {
        struct cuda_clock_tie tie;
        error = take_tie(device, most_ns, &tie);
        bool better = tie.marker && (!best->marker || tie.round_ns < best->round_ns);
        marker_release(device, better ? best->marker : tie.marker);
        if (better)
            *best = tie;
        if (!tie.marker || best->round_ns <= short_ns)
            break;
    }
    return error;
}

cudaError_t cuda_clock_open(struct cuda_device *device)
{
    struct gpu_clock *clock = &device->clock;
    struct cuda_clock_tie tie;
    cudaError_t error = take_best(device, OPEN_TRIES, OPEN_MOST_NS, SHORT_NS, &tie);
    if (error != cudaSuccess || !tie.marker) {
        marker_release(device, tie.marker);
        return error == cudaSuccess ? cudaErrorTimeout : error;
    }
    *clock = (struct gpu_clock){.reference = tie.marker,
                                .world_ns = tie.world_ns,
                                .first_ns = tie.world_ns,
                                .rate = 1,
                                .round_ns = tie.round_ns,
                                .next_ns = device_now(&device->world->base) +
                                           FIRST_TIE_MS * INT64_C(1000000)};
    know_error(device, (double)tie.round_ns / 2);
    return cudaSuccess;
}

/* The clocks are tied here: go on from where the map is, and towards where it should be. A long round trip only says between
   which times the marker lies; false: the map may be right. */
static bool cuda_clock_own_follow(struct cuda_device *device, const struct cuda_clock_tie *tie,
                                  int64_t good_ns)
{
    struct gpu_clock *clock = &device->clock;
    bool good = tie->round_ns <= good_ns;
    double device_ns = 0, slack_ns = good ? 0 : (double)tie->round_ns / 2;
    if (since_reference(clock, tie->marker, &device_ns) != cudaSuccess || device_ns <= 0)
        return false;
    double missed_ns = tie->world_ns - to_world(clock, device_ns), wrong_ns = fabs(missed_ns);
    if (!good && wrong_ns <= slack_ns)
        return false;
    move_reference(device, tie->marker, device_ns);
    if (good)
        clock->rate = (tie->world_ns - clock->first_ns) / clock->device_ns;
    double slew = copysign(wrong_ns - slack_ns, missed_ns) / TIE_NS;
    clock->slew = fmax(-STEEPEST_SLEW, fmin(slew, STEEPEST_SLEW));
    clock->round_ns = tie->round_ns < clock->round_ns ? tie->round_ns : clock->round_ns;
    know_error(device, wrong_ns + slack_ns);
    return good;
}

/* A device that fails here fails in what is collected, too, and is reported there. */
void cuda_clock_follow(struct cuda_device *device)
{
    struct gpu_clock *clock = &device->clock;
    int64_t now_ns = device_now(&device->world->base);
    struct cuda_clock_tie tie;
    pthread_mutex_lock(&device->collect_lock);
    bool due = now_ns >= clock->next_ns;
    int64_t good_ns = 4 * clock->round_ns + SHORT_NS;
    if (due)
        clock->next_ns = now_ns + FIRST_TIE_MS * INT64_C(1000000);
    pthread_mutex_unlock(&device->collect_lock);
    if (!due)
        return;
    (void)take_best(device, TIE_TRIES, MOST_NS, good_ns, &tie);
    if (tie.marker) {
        pthread_mutex_lock(&device->collect_lock);
        if (cuda_clock_own_follow(device, &tie, good_ns)) {
            const double next_ns = fmin(TIE_NS, clock->device_ns);
            clock->next_ns = now_ns + (int64_t)next_ns;
        }
        pthread_mutex_unlock(&device->collect_lock);
    }
    marker_release(device, tie.marker);
}

void cuda_clock_close(struct cuda_device *device)
{
    marker_release(device, device->clock.reference);
    device->clock.reference = NULL;
}

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
    if (!marker)
        return;
    assert(marker->references > 0);
    if (--marker->references > 0)
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
    assert(marker->references == 0); /* it comes from the pool */
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
        struct cuda_pending *pending = device->pendings;
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

/* ---- events ---------------------------------------------------------------------------------- */

enum status cuda_event_open(struct device *device, struct device_event **out, struct diag *diag)
{
    struct cuda_event *event = calloc(1, sizeof *event);
    if (!event)
        return diag_no_memory(diag);
    event->base.device = device;
    *out = &event->base;
    return STATUS_OK;
}

void cuda_event_close(struct device_event *base)
{
    struct cuda_event *event = (struct cuda_event *)base;
    marker_release((struct cuda_device *)base->device, event->last);
    free(event);
}

/* The marker of the last record, held for the caller; NULL: never recorded. */
static struct marker *event_look_locked(struct cuda_event *event, struct failure *failure)
{
    assert(!event->last || event->last->references > 0); /* the event holds it */
    if (event->last)
        event->last->references++;
    *failure = event->failure;
    return event->last;
}

static struct marker *event_look(struct cuda_event *event, struct failure *failure)
{
    struct cuda_device *device = (struct cuda_device *)event->base.device;
    pthread_mutex_lock(&device->world->lock);
    struct marker *marker = event_look_locked(event, failure);
    pthread_mutex_unlock(&device->world->lock);
    return marker;
}

/* The event means `marker` from now on and takes over its hold, unless `failure` says that the record was
   refused. */
static void event_set_locked(struct cuda_event *event, struct marker *marker,
                             struct failure failure)
{
    marker_release_locked((struct cuda_device *)event->base.device, event->last);
    event->last = marker;
    event->failure = failure;
}

static void event_set(struct cuda_event *event, struct marker *marker, struct failure failure)
{
    struct cuda_device *device = (struct cuda_device *)event->base.device;
    pthread_mutex_lock(&device->world->lock);
    event_set_locked(event, marker, failure);
    pthread_mutex_unlock(&device->world->lock);
}

/* A failed stream refuses a record: the event stands for work that never finishes. */
void cuda_event_refuse(struct cuda_event *event, struct cuda_stream *stream)
{
    event_set(event, NULL, cuda_stream_failure(stream));
}

void cuda_event_mean(struct cuda_event *event, struct marker *marker)
{
    struct cuda_device *device = (struct cuda_device *)event->base.device;
    pthread_mutex_lock(&device->world->lock);
    marker->references++;
    pthread_mutex_unlock(&device->world->lock);
    event_set(event, marker, (struct failure){.status = STATUS_OK});
}

enum status cuda_event_query(struct device_event *base, bool *done, struct diag *diag)
{
    struct cuda_device *device = (struct cuda_device *)base->device;
    struct failure failure;
    struct marker *marker = event_look((struct cuda_event *)base, &failure);
    cudaError_t error = marker ? cuda_ask_event(device->world, marker->handle) : cudaSuccess;
    marker_release(device, marker);
    if (failure.status)
        return diag_error(diag, failure.status, "%s", failure.text);
    if (error != cudaSuccess && error != cudaErrorNotReady)
        return cuda_device_fail(device, "the event", error, diag);
    *done = error == cudaSuccess;
    return *done ? STATUS_OK : cuda_world_ended(device->world, diag);
}

enum status cuda_event_sync(struct device_event *base, int64_t deadline_ns, struct diag *diag)
{
    struct cuda_device *device = (struct cuda_device *)base->device;
    struct failure failure;
    enum status status = STATUS_OK;
    struct marker *marker = event_look((struct cuda_event *)base, &failure);
    if (failure.status)
        status = diag_error(diag, failure.status, "%s", failure.text);
    else if (marker)
        status = marker_await(device, marker, deadline_ns, "the event", diag);
    marker_release(device, marker);
    return status;
}

/* ---- pushes ---------------------------------------------------------------------------------- */

/* The record is in the stream when the event is set. */
static cudaError_t push_record(struct cuda_stream *stream, const struct device_op *op,
                               struct stamp *stamp)
{
    struct cuda_event *event = (struct cuda_event *)op->event;
    cudaError_t error = cudaSuccess;
    struct marker *marker = marker_record(stream->device, false, stream->handle, &error);
    pthread_mutex_lock(&stream->world->lock);
    const bool good = cuda_count_locked(stream, op, stamp);
    if (!good)
        event_set_locked(event, NULL, stream->failure);
    else if (marker)
        event_set_locked(event, marker, (struct failure){.status = STATUS_OK});
    if (!good)
        marker_release_locked(stream->device, marker);
    pthread_mutex_unlock(&stream->world->lock);
    return good ? error : cudaSuccess;
}

/* Behind this marker, which is held; NULL: behind nothing. */
static cudaError_t cuda_event_own_follow(struct cuda_stream *stream, struct marker *marker,
                                         const struct failure *failure)
{
    cudaError_t error = cudaSuccess;
    if (failure->status)
        cuda_stream_fail(stream, failure->status, "%s", failure->text);
    else if (marker && marker->stream != stream->handle) /* else it is behind it anyway */
        error = cudaStreamWaitEvent(stream->handle, marker->handle, 0);
    marker_release(stream->device, marker);
    return error;
}

cudaError_t cuda_event_follow(struct cuda_event *event, struct cuda_stream *stream)
{
    struct failure failure;
    struct marker *marker = event_look(event, &failure);
    return cuda_event_own_follow(stream, marker, &failure);
}

static cudaError_t push_wait(struct cuda_stream *stream, const struct device_op *op,
                             struct stamp *stamp)
{
    struct failure failure = {.status = STATUS_OK};
    struct marker *marker = NULL;
    pthread_mutex_lock(&stream->world->lock);
    if (cuda_count_locked(stream, op, stamp))
        marker = event_look_locked((struct cuda_event *)op->event, &failure);
    pthread_mutex_unlock(&stream->world->lock);
    return cuda_event_own_follow(stream, marker, &failure);
}

cudaError_t cuda_event_push(struct cuda_stream *stream, const struct device_op *op,
                            struct stamp *stamp)
{
    return op->kind == DEVICE_OP_RECORD ? push_record(stream, op, stamp)
                                        : push_wait(stream, op, stamp);
}
