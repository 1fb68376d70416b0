/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_clock.c - the GPU's clock on the world's clock.
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
#include "cuda_impl.h"

#if HAVE_CUDA

#include <math.h>
#include <sched.h>

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

#else

/* ISO C wants a declaration in every file. */
typedef int cuda_clock_is_empty_without_cuda;

#endif
