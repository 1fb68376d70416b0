/* SPDX-License-Identifier: Apache-2.0 */
/* device_times.c - see device_times.h. */
#include "device_times.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cupti.h"
#include "real.h"
#include "tape.h"
#include "words.h"

enum { BUFFER = 1 << 20, TRIES = 16, SHORT_NS = 200, WHY = 400, NAME = 256 };
#define TIE_NS INT64_C(1000000000)

enum { OFF, RUNNING, ENDING };
static atomic_int state = OFF;
static struct cupti cupti;
static _Atomic int64_t next_tie_ns;
static pid_t owner;

static int64_t device_times_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- the clocks ------------------------------------------------------------------------------- */

/* CUPTI's clock between two readings of the host's: the shortest of some tries. */
static void tie_clocks(void)
{
    uint64_t best_ns = 0;
    int64_t middle_ns = 0, round_ns = INT64_MAX;
    for (int i = 0; i < TRIES && round_ns > SHORT_NS; i++) {
        uint64_t there_ns = 0;
        const int64_t before_ns = device_times_now_ns();
        const bool good = cupti.GetTimestamp(&there_ns) == 0;
        const int64_t took_ns = device_times_now_ns() - before_ns;
        if (!good || took_ns >= round_ns)
            continue;
        round_ns = took_ns;
        middle_ns = before_ns + took_ns / 2;
        best_ns = there_ns;
    }
    if (round_ns < INT64_MAX)
        tape_put(RECORDING_CLOCK, WORDS(best_ns, (uint64_t)middle_ns, (uint64_t)round_ns));
}

/* Buffers without unfinished work are taken then, too: a process that is killed loses only the others. */
static void tie_again(void)
{
    const int64_t now = device_times_now_ns();
    int64_t due_ns = atomic_load_explicit(&next_tie_ns, memory_order_relaxed);
    if (now < due_ns || !atomic_compare_exchange_strong(&next_tie_ns, &due_ns, now + TIE_NS))
        return;
    tie_clocks();
    (void)cupti.ActivityFlushAll(0);
}

/* ---- records ---------------------------------------------------------------------------------- */

static void want_buffer(uint8_t **buffer, size_t *bytes, size_t *most_records)
{
    *buffer = malloc(BUFFER);
    *bytes = *buffer ? BUFFER : 0;
    *most_records = 0;
}

static void put_operation(enum recording_operation what, uint32_t correlation, uint32_t device,
                          uint32_t stream, uint64_t start_ns, uint64_t end_ns, uint64_t node)
{
    tape_put(RECORDING_DEVICE_OP, WORDS(correlation, what, device, stream, start_ns, end_ns, node));
}

static void device_times_take_record(const struct cupti_record *record)
{
    const void *at = record;
    const struct cupti_kernel *kernel = at;
    const struct cupti_memcpy *copy = at;
    const struct cupti_memcpy_peer *peer = at;
    const struct cupti_external *external = at;
    switch (record->kind) {
    case CUPTI_CONCURRENT_KERNEL:
        put_operation(RECORDING_OPERATION_KERNEL, kernel->correlation, kernel->device,
                      kernel->stream, kernel->start, kernel->end, kernel->node);
        break;
    case CUPTI_MEMCPY:
    case CUPTI_MEMSET:
        put_operation(
            record->kind == CUPTI_MEMSET ? RECORDING_OPERATION_FILL : RECORDING_OPERATION_COPY,
            copy->correlation, copy->device, copy->stream, copy->start, copy->end, copy->node);
        break;
    case CUPTI_MEMCPY_PEER:
        put_operation(RECORDING_OPERATION_COPY, peer->correlation, peer->device, peer->stream,
                      peer->start, peer->end, peer->node);
        break;
    case CUPTI_EXTERNAL:
        if (external->external_kind == CUPTI_CUSTOM2)
            tape_put(RECORDING_PUSHED_AS, WORDS(external->id, external->correlation));
        break;
    default: break; /* a call of CUDA: the recorder has its own */
    }
}

static void device_times_take_buffer(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                                     size_t valid)
{
    struct cupti_record *record = NULL;
    size_t dropped = 0;
    int result = valid > 0 ? 0 : CUPTI_NO_MORE_RECORDS;
    (void)bytes;
    while (result == 0 && (result = cupti.ActivityGetNextRecord(buffer, valid, &record)) == 0)
        device_times_take_record(record);
    free(buffer);
    if (result != CUPTI_NO_MORE_RECORDS)
        tape_put(RECORDING_LOST, 1, &(uint64_t){1});
    if (cupti.ActivityGetNumDroppedRecords(context, stream, &dropped) == 0 && dropped > 0)
        tape_put(RECORDING_LOST, 1, &(uint64_t){dropped});
}

/* ---- the library ------------------------------------------------------------------------------ */

/* The program may have brought one of its own. */
static int look_for_loaded(struct dl_phdr_info *info, size_t size, void *arg)
{
    const char *base = strrchr(info->dlpi_name, '/');
    (void)size;
    if (strncmp(base ? base + 1 : info->dlpi_name, "libcupti.so", 11) != 0)
        return 0;
    *(void **)arg = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    return *(void **)arg != NULL;
}

/* The loader waits for the writer of a pipe. */
static bool device_times_may_be_library(const char *path)
{
    struct stat info;
    return !strchr(path, '/') || stat(path, &info) != 0 || S_ISREG(info.st_mode);
}

static void *open_library(char why[WHY])
{
    static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so",
                                        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
                                        "/usr/local/cuda/lib64/libcupti.so"};
    const char *named = getenv("SWSIM_CUPTI");
    void *library = NULL;
    if (named && *named && !device_times_may_be_library(named)) {
        snprintf(why, WHY, "SWSIM_CUPTI: %s is no file", named);
        return NULL;
    }
    if (named && *named) {
        library = dlopen(named, RTLD_LAZY | RTLD_LOCAL);
        if (!library)
            snprintf(why, WHY, "SWSIM_CUPTI: %s", words_of_loader());
        return library;
    }
    dl_iterate_phdr(look_for_loaded, &library);
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
    if (!library)
        snprintf(why, WHY, "libcupti.so is not found; SWSIM_CUPTI may name it");
    return library;
}

static bool device_times_find_function(void *library, const char *name, void *function,
                                       char why[WHY])
{
    char whole[NAME];
    snprintf(whole, sizeof whole, "cupti%s", name);
    void *found = real_dlsym()(library, whole);
    memcpy(function, &found, sizeof found);
    if (!found)
        snprintf(why, WHY, "libcupti.so has no %s", whole);
    return found != NULL;
}

static bool device_times_find_functions(void *library, char why[WHY])
{
#define X(name, PARAMS)                                                                            \
    if (!device_times_find_function(library, #name, &cupti.name, why))                             \
        return false;
    CUPTI_LIST(X)
#undef X
    char unused[WHY];
#define X(name, PARAMS) (void)device_times_find_function(library, #name, &cupti.name, unused);
    CUPTI_OPTIONAL_LIST(X)
#undef X
    return true;
}

/* ---- begin and end ---------------------------------------------------------------------------- */

static bool succeeds(const char *function, int result, char why[WHY])
{
    const char *text = NULL;
    if (result != 0 && (cupti.GetResultString(result, &text) != 0 || !text))
        text = "an error without a name";
    if (result != 0)
        snprintf(why, WHY, "cupti%s: %s (%d)", function, text, result);
    return result == 0;
}

/* A process has one subscriber: no profiler can take the records away meanwhile. The callback is never enabled. */
static void no_callback(void)
{
}

static const uint32_t kinds[] = {CUPTI_EXTERNAL,         CUPTI_RUNTIME_CALL, CUPTI_DRIVER_CALL,
                                 CUPTI_MEMCPY,           CUPTI_MEMCPY_PEER,  CUPTI_MEMSET,
                                 CUPTI_CONCURRENT_KERNEL};

static bool enable_all(char why[WHY])
{
    size_t i = 0;
    const size_t count = sizeof kinds / sizeof *kinds;
    while (i < count && succeeds("ActivityEnable", cupti.ActivityEnable(kinds[i]), why))
        i++;
    for (size_t k = 0; i < count && k < i; k++)
        (void)cupti.ActivityDisable(kinds[k]);
    return i == count;
}

/* After enable_all, which asks for all calls. A call whose records come all the same costs room alone, and lost records
   are counted: an error says nothing. */
static void leave_out_idle_calls(void)
{
#define X(name, number) (void)cupti.ActivityEnableRuntimeApi(number, 0);
    if (cupti.ActivityEnableRuntimeApi) {
        CUPTI_IDLE_RUNTIME_CALLS(X)
    }
#undef X
#define X(name, number) (void)cupti.ActivityEnableDriverApi(number, 0);
    if (cupti.ActivityEnableDriverApi) {
        CUPTI_IDLE_DRIVER_CALLS(X)
    }
#undef X
}

static bool is_new_enough(char why[WHY])
{
    uint32_t version = 0;
    if (!succeeds("GetVersion", cupti.GetVersion(&version), why))
        return false;
    if (version < CUPTI_OLDEST)
        snprintf(why, WHY, "libcupti.so is of version %u, expected %d (CUDA 11.0) or later",
                 version, CUPTI_OLDEST);
    return version >= CUPTI_OLDEST;
}

static bool start_cupti(char why[WHY])
{
    void *library = open_library(why), *subscriber = NULL;
    if (!library || !device_times_find_functions(library, why) || !is_new_enough(why) ||
        !succeeds("Subscribe", cupti.Subscribe(&subscriber, no_callback, NULL), why))
        return false;
    if (succeeds("ActivityRegisterCallbacks",
                 cupti.ActivityRegisterCallbacks(want_buffer, device_times_take_buffer), why) &&
        enable_all(why)) {
        leave_out_idle_calls();
        return true;
    }
    (void)cupti.Unsubscribe(subscriber);
    return false;
}

static char reason[WHY]; /* there are no times for it; empty: there are some */
static atomic_bool is_told;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void device_times_own_begin(void)
{
    const char *wanted = getenv("SWSIM_RECORD_TIMES");
    owner = getpid();
    if (wanted && strcmp(wanted, "0") == 0)
        snprintf(reason, sizeof reason, "they were not asked for");
    else if (start_cupti(reason) && atexit(device_times_close) == 0)
        atomic_store(&state, RUNNING);
}

static bool pushes(enum recording_kind kind)
{
    switch (kind) {
    case RECORDING_LAUNCH:
    case RECORDING_COPY:
    case RECORDING_COPY_2D:
    case RECORDING_COPY_BATCH:
    case RECORDING_FILL:
    case RECORDING_GRAPH_LAUNCH:
    case RECORDING_COLLECTIVE:
    case RECORDING_MESSAGE:
    case RECORDING_GROUP_END: return true;
    default: return false;
    }
}

/* CUPTI may be opened only before CUDA is used: by the first call of any kind. */
uint64_t device_times_begin(enum recording_kind kind)
{
    pthread_once(&once, device_times_own_begin);
    if (atomic_load(&state) != RUNNING || owner != getpid() || !pushes(kind))
        return 0;
    const uint64_t number = tape_number();
    return cupti.ActivityPushExternalCorrelationId(CUPTI_CUSTOM2, number) == 0 ? number : 0;
}

void device_times_end(uint64_t number)
{
    uint64_t last;
    if (number > 0)
        (void)cupti.ActivityPopExternalCorrelationId(CUPTI_CUSTOM2, &last);
}

void device_times_put(enum recording_kind kind, uint64_t number)
{
    if (number > 0) {
        tie_again();
        tape_put(RECORDING_PUSH, 1, &number);
    } else if (pushes(kind) && *reason && !atomic_exchange(&is_told, true)) {
        tape_put(RECORDING_NO_TIMES, 1, &(uint64_t){tape_text(reason)});
    }
}

void device_times_close(void)
{
    int running = RUNNING;
    if (owner != getpid() || !atomic_compare_exchange_strong(&state, &running, ENDING))
        return;
    const struct tape_call call = tape_begin(RECORDING_NONE);
    tie_clocks();
    (void)cupti.ActivityFlushAll(CUPTI_FORCED);
    tape_drop(&call);
}
