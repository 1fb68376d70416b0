/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_device.c - the conformance suite of devices: the same cases for every device that opens here.
 *
 * Where order matters, cases do not trust time: a *gate* is a callback that holds its stream until
 * the test opens it, and a *trail* is what callbacks wrote in the order they ran. The cases with
 * several ranks need a device that has them in one process, the host device. They are gone through
 * once more with the ranks spread over processes, on every device: a case then does its part for the ranks
 * that are here. A GPU tells nobody about a mismatch, so there it is a hang.
 *
 *     t_device [host|cuda [alone]]    one device only, which then must open; alone: without other
 *                                     processes, for tools that follow one
 */
#include "gpu/device/device.h"
#include "gpu/net/rendezvous.h"
#include "tests/tap.h"

#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_RANKS = 4, MAX_STREAMS = 3 };
static const int64_t SHORT_NS = 30000000, LONG_NS = 20000000000;

/* ---- a world to test in ---------------------------------------------------------------------- */

struct bench {
    struct device_world *world;
    struct device *ranks[MAX_RANKS];
    struct device_stream *streams[MAX_RANKS][MAX_STREAMS];
    struct device_buffer *buffers[512];
    size_t buffer_count;
    struct device_comm *comms[64];
    size_t comm_count;
    struct device_event *events[16];
    size_t event_count;
    int rank_count;
    struct diag diag;
};

static bool bench_open(struct bench *bench, struct device_config config)
{
    static const char *const names[MAX_STREAMS] = {"main", "memcpy", "data_dist"};
    *bench = (struct bench){.rank_count = config.ranks};
    diag_init(&bench->diag);
    bench->diag.limit = 1000;
    if (device_world_open(&config, &bench->world, &bench->diag)) {
        tap_ok(0, "a world of %d opens: %s", config.ranks,
               bench->diag.count ? bench->diag.messages[0].text : "?");
        diag_fini(&bench->diag);
        return false;
    }
    int last = config.local_ranks ? config.first_rank + config.local_ranks : config.ranks;
    for (int rank = config.first_rank; rank < last; rank++) {
        if (device_open(bench->world, rank, &bench->ranks[rank], &bench->diag))
            abort();
        for (int i = 0; i < MAX_STREAMS; i++)
            if (device_stream_open(bench->ranks[rank], names[i], &bench->streams[rank][i],
                                   &bench->diag))
                abort();
    }
    return true;
}

/* Something that a case cannot do without did not come. */
static _Noreturn void give_up(const struct bench *bench)
{
    tap_note("%s", bench->diag.count ? bench->diag.messages[bench->diag.count - 1].text : "?");
    fflush(stdout);
    abort();
}

static bool here(const struct bench *bench, int rank)
{
    return bench->ranks[rank] != NULL;
}

static void bench_close(struct bench *bench)
{
    for (size_t i = 0; i < bench->comm_count; i++)
        device_comm_close(bench->comms[i]);
    for (size_t i = 0; i < bench->event_count; i++)
        device_event_close(bench->events[i]);
    for (int rank = 0; rank < bench->rank_count; rank++)
        for (int i = 0; i < MAX_STREAMS; i++)
            device_stream_close(bench->streams[rank][i]);
    for (size_t i = 0; i < bench->buffer_count; i++)
        device_free(bench->buffers[i]);
    for (int rank = 0; rank < bench->rank_count; rank++)
        device_close(bench->ranks[rank]);
    device_world_close(bench->world);
    diag_fini(&bench->diag);
}

static struct device_buffer *buffer(struct bench *bench, int rank, enum device_memory memory,
                                    size_t bytes)
{
    struct device_buffer *made = NULL;
    if (bench->buffer_count == sizeof bench->buffers / sizeof *bench->buffers ||
        device_alloc(bench->ranks[rank], memory, bytes, &made, &bench->diag))
        give_up(bench);
    bench->buffers[bench->buffer_count++] = made;
    return made;
}

static struct device_event *event(struct bench *bench, int rank)
{
    struct device_event *made = NULL;
    if (device_event_open(bench->ranks[rank], &made, &bench->diag))
        give_up(bench);
    bench->events[bench->event_count++] = made;
    return made;
}

/* A communicator of ranks 0 .. count-1, one handle each. */
static void open_comm(struct bench *bench, const char *name, int count,
                      struct device_comm **handles)
{
    int members[MAX_RANKS] = {0, 1, 2, 3};
    for (int rank = 0; rank < count; rank++) {
        if (!here(bench, rank))
            continue;
        if (device_comm_open(bench->ranks[rank], name, members, count, &handles[rank],
                             &bench->diag))
            give_up(bench);
        bench->comms[bench->comm_count++] = handles[rank];
    }
}

static int64_t soon(const struct bench *bench)
{
    return device_now(bench->world) + SHORT_NS;
}

static int64_t late(const struct bench *bench)
{
    return device_now(bench->world) + LONG_NS;
}

static enum status push(struct bench *bench, struct device_stream *stream, struct device_op op)
{
    return device_push(stream, &op, NULL, &bench->diag);
}

static const char *last_message(const struct bench *bench)
{
    return bench->diag.count ? bench->diag.messages[bench->diag.count - 1].text : "";
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = SHORT_NS}, NULL);
}

/* ---- gates and trails ------------------------------------------------------------------------ */

struct gate {
    sem_t open;
};

static void pass_gate(void *arg)
{
    struct gate *gate = arg;
    while (sem_wait(&gate->open) != 0)
        continue;
}

static void put_gate(struct bench *bench, struct device_stream *stream, struct gate *gate)
{
    sem_init(&gate->open, 0, 0);
    push(bench, stream,
         (struct device_op){.kind = DEVICE_OP_CALLBACK,
                            .callback = {.run = pass_gate, .arg = gate}});
}

struct trail {
    pthread_mutex_t lock;
    char text[64];
    size_t length;
};

struct step {
    struct trail *trail;
    char letter;
};

static void take_step(void *arg)
{
    struct step *step = arg;
    pthread_mutex_lock(&step->trail->lock);
    step->trail->text[step->trail->length++] = step->letter;
    pthread_mutex_unlock(&step->trail->lock);
}

static void put_step(struct bench *bench, struct device_stream *stream, struct step *step)
{
    push(bench, stream,
         (struct device_op){.kind = DEVICE_OP_CALLBACK,
                            .callback = {.run = take_step, .arg = step}});
}

static const char *read_trail(struct trail *trail, char out[64])
{
    pthread_mutex_lock(&trail->lock);
    memcpy(out, trail->text, 64);
    pthread_mutex_unlock(&trail->lock);
    return out;
}

#define TRAIL_INIT                                                                                 \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER                                                          \
    }

/* ---- moving numbers -------------------------------------------------------------------------- */

static void upload(struct bench *bench, int rank, struct device_buffer *to, const void *from,
                   size_t bytes)
{
    struct device_buffer *staging = buffer(bench, rank, MEMORY_PINNED, bytes);
    memcpy(device_host_pointer(staging), from, bytes);
    push(bench, bench->streams[rank][0],
         (struct device_op){.kind = DEVICE_OP_COPY,
                            .copy = {.direction = DIRECTION_H2D,
                                     .from = {staging, 0},
                                     .to = {to, 0},
                                     .bytes = (int64_t)bytes}});
    device_stream_sync(bench->streams[rank][0], late(bench), &bench->diag);
}

/* Through pageable memory: the numbers are there when the push returns. */
static void *download(struct bench *bench, int rank, struct device_buffer *from, size_t bytes)
{
    struct device_buffer *staging = buffer(bench, rank, MEMORY_PAGEABLE, bytes);
    push(bench, bench->streams[rank][0],
         (struct device_op){.kind = DEVICE_OP_COPY,
                            .copy = {.direction = DIRECTION_D2H,
                                     .from = {from, 0},
                                     .to = {staging, 0},
                                     .bytes = (int64_t)bytes}});
    return device_host_pointer(staging);
}

/* ---- cases for one rank ---------------------------------------------------------------------- */

/* CUDA's, where the device is CUDA. */
int cudaGetLastError(void) __attribute__((weak));

static void test_fifo(struct bench *bench)
{
    struct trail trail = TRAIL_INIT;
    struct step a = {&trail, 'a'}, b = {&trail, 'b'}, c = {&trail, 'c'};
    struct device_stream *stream = bench->streams[0][0];
    struct gate gate;
    char text[64];
    put_gate(bench, stream, &gate);
    put_step(bench, stream, &a);
    push(bench, stream, (struct device_op){.kind = DEVICE_OP_SPIN, .time_ns = 2000000});
    put_step(bench, stream, &b);
    put_step(bench, stream, &c);
    bool done = true;
    struct device_event *behind = event(bench, 0);
    device_record(stream, behind, NULL, &bench->diag);
    int error = cudaGetLastError ? cudaGetLastError() : 0; /* without a GPU there is one */
    tap_is_int(device_event_query(behind, &done, &bench->diag), STATUS_OK, "query a busy stream");
    tap_is_int(cudaGetLastError ? cudaGetLastError() : 0, error,
               "the thread's last error is untouched");
    tap_ok(!done, "a stream with work is not done");
    tap_is_str(read_trail(&trail, text), "", "pushing does not wait for the work");
    sem_post(&gate.open);
    tap_is_int(device_stream_sync(stream, late(bench), &bench->diag), STATUS_OK, "stream sync");
    tap_is_str(read_trail(&trail, text), "abc", "a stream is a FIFO, callbacks included");
    device_event_query(behind, &done, &bench->diag);
    tap_ok(done, "a synced stream is done");
}

static void test_event_order(struct bench *bench)
{
    struct trail trail = TRAIL_INIT;
    struct step a = {&trail, 'a'}, b = {&trail, 'b'};
    struct device_stream *first = bench->streams[0][0], *second = bench->streams[0][1];
    struct device_event *ready = event(bench, 0), *never = event(bench, 0);
    struct gate gate;
    char text[64];
    bool done = false;
    put_gate(bench, first, &gate);
    put_step(bench, first, &a);
    device_record(first, ready, NULL, &bench->diag);
    device_wait(second, ready, NULL, &bench->diag);
    put_step(bench, second, &b);
    nap();
    tap_is_str(read_trail(&trail, text), "", "a stream waits for an event of another");
    tap_ok(!device_event_query(ready, &done, NULL) && !done, "the event is not done");
    sem_post(&gate.open);
    tap_is_int(device_sync(bench->ranks[0], late(bench), &bench->diag), STATUS_OK, "device sync");
    tap_is_str(read_trail(&trail, text), "ab", "and goes on after it");
    tap_ok(!device_event_query(ready, &done, NULL) && done, "the event is done");

    tap_ok(!device_event_query(never, &done, NULL) && done, "an event never recorded is done");
    device_wait(second, never, NULL, &bench->diag);
    tap_is_int(device_stream_sync(second, late(bench), &bench->diag), STATUS_OK,
               "an event never recorded is no wait");
}

static void test_event_snapshot(struct bench *bench)
{
    struct device_stream *first = bench->streams[0][0], *second = bench->streams[0][1];
    struct device_event *again = event(bench, 0);
    struct gate before, after;
    put_gate(bench, first, &before);
    device_record(first, again, NULL, &bench->diag);
    device_wait(second, again, NULL, &bench->diag);
    put_gate(bench, first, &after);
    device_record(first, again, NULL, &bench->diag);
    sem_post(&before.open);
    tap_is_int(device_stream_sync(second, late(bench), &bench->diag), STATUS_OK,
               "recording again changes nothing for an earlier waiter");
    tap_is_int(device_event_sync(again, soon(bench), &bench->diag), STATUS_LIMIT,
               "a later look sees the later record");
    sem_post(&after.open);
    tap_is_int(device_event_sync(again, late(bench), &bench->diag), STATUS_OK,
               "which finishes, too");
}

/* Open and close a stream often, beside an event that names its work: the device keeps no more of them than are open. */
static void test_many_streams(struct bench *bench)
{
    enum { TIMES = 2000, STREAM_BYTES = 100 };
    struct device_event *named = event(bench, 0);
    struct gate gate;
    bool good = true, done = false;
    size_t before = 0;
    for (int i = 0; i < TIMES && good; i++) {
        struct device_stream *stream;
        good = !device_stream_open(bench->ranks[0], "again", &stream, &bench->diag);
        if (!good)
            break;
        device_record(stream, named, NULL, &bench->diag);
        device_wait(stream, named, NULL, &bench->diag);
        push(bench, stream, (struct device_op){.kind = DEVICE_OP_SPIN});
        good = !device_stream_sync(stream, late(bench), &bench->diag);
        device_stream_close(stream);
        if (i == TIMES / 2)
            before = mallinfo2().uordblks;
    }
    size_t after = mallinfo2().uordblks;
    tap_ok(good, "a stream opens, works and closes %d times", TIMES);
    tap_ok(after < before + (size_t)TIMES / 2 * STREAM_BYTES, "and is not kept each time");
    tap_ok(!device_event_query(named, &done, NULL) && done, "an event of one that closed is done");
    struct device_stream *last;
    if (device_stream_open(bench->ranks[0], "last", &last, &bench->diag))
        return;
    put_gate(bench, last, &gate);
    device_record(last, named, NULL, &bench->diag);
    tap_is_int(device_event_sync(named, soon(bench), &bench->diag), STATUS_LIMIT,
               "an event of one that opened again waits for its work");
    sem_post(&gate.open);
    tap_is_int(device_event_sync(named, late(bench), &bench->diag), STATUS_OK, "until it is over");
    device_stream_close(last);
}

static void test_record_after_wait(struct bench *bench)
{
    struct device_stream *first = bench->streams[0][0], *second = bench->streams[0][1];
    struct device_event *source = event(bench, 0), *early = event(bench, 0),
                        *carried = event(bench, 0);
    struct gate gate;
    bool done = true;
    put_gate(bench, first, &gate);
    device_record(first, source, NULL, &bench->diag);
    device_record(second, early, NULL, &bench->diag);
    device_wait(second, source, NULL, &bench->diag);
    device_record(second, carried, NULL, &bench->diag);
    tap_is_int(device_event_sync(early, late(bench), &bench->diag), STATUS_OK,
               "a wait does not hold back an event recorded before it");
    nap();
    tap_ok(!device_event_query(carried, &done, NULL) && !done,
           "a record directly after a wait carries the wait");
    sem_post(&gate.open);
    tap_is_int(device_event_sync(carried, late(bench), &bench->diag), STATUS_OK, "and then ends");
    device_sync(bench->ranks[0], late(bench), &bench->diag);
}

struct recorder {
    struct bench *bench;
    struct device_event *event;
    struct stamp stamp;
    struct diag diag;
};

static void *record_on_first(void *arg)
{
    struct recorder *recorder = arg;
    device_record(recorder->bench->streams[0][0], recorder->event, &recorder->stamp,
                  &recorder->diag);
    return NULL;
}

/* One thread records an event while another lets a stream wait for it: the numbers say which record it waits for. The
   emulated CUDA takes its time to record. */
static void test_event_numbers(struct bench *bench)
{
    struct device_stream *second = bench->streams[0][1];
    struct device_event *shared = event(bench, 0), *after = event(bench, 0);
    struct recorder recorder = {.bench = bench, .event = shared};
    struct stamp stamp = {0};
    struct gate gate;
    pthread_t thread;
    bool done = false;
    diag_init(&recorder.diag);
    put_gate(bench, bench->streams[0][0], &gate);
    setenv("SWSIM_EMULATION_SLOW", "cudaEventRecord:100", 1);
    pthread_create(&thread, NULL, record_on_first, &recorder);
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    device_wait(second, shared, &stamp, &bench->diag);
    pthread_join(thread, NULL);
    unsetenv("SWSIM_EMULATION_SLOW");
    device_record(second, after, NULL, &bench->diag);
    nap();
    tap_is_int(device_event_query(after, &done, &bench->diag), STATUS_OK, "query behind the wait");
    tap_ok(done == (stamp.number < recorder.stamp.number),
           "a wait is behind the record whose number is before its own");
    sem_post(&gate.open);
    device_sync(bench->ranks[0], late(bench), &bench->diag);
    device_collect(bench->ranks[0], &bench->diag);
    diag_fini(&recorder.diag);
}

static void test_copies(struct bench *bench)
{
    enum { BYTES = 100000, SHIFT = 64 };
    struct device_stream *stream = bench->streams[0][1];
    struct device_buffer *from = buffer(bench, 0, MEMORY_PINNED, BYTES);
    struct device_buffer *a = buffer(bench, 0, MEMORY_DEVICE, BYTES + SHIFT);
    struct device_buffer *b = buffer(bench, 0, MEMORY_DEVICE, BYTES);
    struct device_buffer *to = buffer(bench, 0, MEMORY_PINNED, BYTES);
    unsigned char *bytes = device_host_pointer(from), *got = device_host_pointer(to);
    tap_ok(device_host_pointer(a) == NULL, "device memory has no host pointer");
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)(i * 7 + 3);
    struct device_copy copies[] = {
        {DIRECTION_H2D, {from, 0}, {a, SHIFT}, BYTES},
        {DIRECTION_D2D, {a, SHIFT}, {b, 0}, BYTES},
        {DIRECTION_D2H, {b, 0}, {to, 0}, BYTES},
    };
    for (int i = 0; i < 3; i++)
        push(bench, stream, (struct device_op){.kind = DEVICE_OP_COPY, .copy = copies[i]});
    tap_is_int(device_stream_sync(stream, late(bench), &bench->diag), STATUS_OK, "three copies");
    tap_ok(memcmp(bytes, got, BYTES) == 0, "to the device, within it and back");

    struct device_buffer *pageable = buffer(bench, 0, MEMORY_PAGEABLE, BYTES);
    memset(device_host_pointer(pageable), 42, BYTES);
    struct stamp copied = {0};
    device_push(stream,
                &(struct device_op){.kind = DEVICE_OP_COPY,
                                    .copy = {DIRECTION_H2D, {pageable, 0}, {b, 0}, BYTES}},
                &copied, &bench->diag);
    device_collect(bench->ranks[0], &bench->diag);
    tap_ok(copied.valid, "a pageable copy has finished when the push returns");
    memset(device_host_pointer(pageable), 1, BYTES);
    got = download(bench, 0, b, BYTES);
    tap_ok(got[0] == 42 && got[BYTES - 1] == 42, "so its source may change at once");
}

static float number(int64_t i)
{
    return (float)((i * 37 + 11) % 17) - 8.0F;
}

/* Push c = a * b and count what differs from the plain sum; the operands are small integers, so
   that every order of summation gives the same number. */
static int gemm_errors(struct bench *bench, int m, int n, int k, enum dtype dtype)
{
    size_t size = dtype == DTYPE_F32 ? sizeof(float) : sizeof(double);
    size_t counts[3] = {(size_t)(m * k), (size_t)(k * n), (size_t)(m * n)};
    struct device_buffer *matrix[3];
    for (int i = 0; i < 3; i++) {
        matrix[i] = buffer(bench, 0, MEMORY_DEVICE, counts[i] * size);
        char *values = malloc(counts[i] * size);
        for (size_t j = 0; j < counts[i]; j++)
            if (dtype == DTYPE_F32)
                ((float *)(void *)values)[j] = number((int64_t)j + i);
            else
                ((double *)(void *)values)[j] = (double)number((int64_t)j + i);
        upload(bench, 0, matrix[i], values, counts[i] * size); /* c, too: it must be overwritten */
        free(values);
    }
    push(bench, bench->streams[0][0],
         (struct device_op){
             .kind = DEVICE_OP_GEMM,
             .gemm = {{matrix[0], 0}, {matrix[1], 0}, {matrix[2], 0}, m, n, k, dtype}});
    const char *c = download(bench, 0, matrix[2], counts[2] * size);
    int errors = 0;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double want = 0;
            for (int p = 0; p < k; p++)
                want += (double)number(i * k + p) * (double)number(p * n + j + 1);
            double got = dtype == DTYPE_F32 ? (double)((const float *)(const void *)c)[i * n + j]
                                            : ((const double *)(const void *)c)[i * n + j];
            errors += fabs(got - want) > 1e-9;
        }
    return errors;
}

static void test_gemm(struct bench *bench)
{
    tap_is_int(gemm_errors(bench, 1, 1, 1, DTYPE_F32), 0, "gemm 1 x 1 x 1");
    tap_is_int(gemm_errors(bench, 64, 64, 64, DTYPE_F32), 0, "gemm of whole tiles");
    tap_is_int(gemm_errors(bench, 67, 131, 259, DTYPE_F32), 0, "gemm beyond every block, f32");
    tap_is_int(gemm_errors(bench, 67, 131, 259, DTYPE_F64), 0, "gemm beyond every block, f64");
}

static void test_gather(struct bench *bench)
{
    enum { TABLE = 50, DIM = 24, ROWS = 37 };
    float table[TABLE * DIM];
    uint32_t index[ROWS];
    for (int i = 0; i < TABLE * DIM; i++)
        table[i] = (float)i;
    for (int i = 0; i < ROWS; i++)
        index[i] = (uint32_t)i * 2654435761U;
    struct device_buffer *from = buffer(bench, 0, MEMORY_DEVICE, sizeof table);
    struct device_buffer *which = buffer(bench, 0, MEMORY_DEVICE, sizeof index);
    struct device_buffer *out = buffer(bench, 0, MEMORY_DEVICE, ROWS * DIM * sizeof(float));
    upload(bench, 0, from, table, sizeof table);
    upload(bench, 0, which, index, sizeof index);
    push(bench, bench->streams[0][0],
         (struct device_op){
             .kind = DEVICE_OP_GATHER,
             .gather = {{from, 0}, {which, 0}, {out, 0}, ROWS, DIM, TABLE, DTYPE_F32}});
    const float *got = download(bench, 0, out, ROWS * DIM * sizeof(float));
    int errors = 0;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < DIM; j++)
            errors += (int)got[i * DIM + j] != (int)(index[i] % TABLE) * DIM + j;
    tap_is_int(errors, 0, "gather picks rows, indices modulo the table");
}

static void test_axpy_fill(struct bench *bench)
{
    enum { COUNT = 10001 };
    struct device_stream *stream = bench->streams[0][0];
    struct device_buffer *x = buffer(bench, 0, MEMORY_DEVICE, COUNT * sizeof(float));
    struct device_buffer *y = buffer(bench, 0, MEMORY_DEVICE, COUNT * sizeof(float));
    struct device_buffer *z = buffer(bench, 0, MEMORY_DEVICE, COUNT * sizeof(double));
    push(bench, stream,
         (struct device_op){.kind = DEVICE_OP_FILL, .fill = {{x, 0}, COUNT, DTYPE_F32, 3.0}});
    push(bench, stream,
         (struct device_op){.kind = DEVICE_OP_FILL, .fill = {{y, 0}, COUNT, DTYPE_F32, 1.0}});
    push(bench, stream,
         (struct device_op){.kind = DEVICE_OP_FILL, .fill = {{z, 0}, COUNT, DTYPE_F64, 0.1}});
    for (int i = 0; i < 2; i++)
        push(bench, stream,
             (struct device_op){.kind = DEVICE_OP_AXPY, .axpy = {{x, 0}, {y, 0}, COUNT, 2.0F}});
    const float *sum = download(bench, 0, y, COUNT * sizeof(float));
    tap_ok(fabs((double)sum[0] - 13.0) < 1e-6 && fabs((double)sum[COUNT - 1] - 13.0) < 1e-6,
           "axpy adds, to the last element");
    const double *twice = download(bench, 0, z, COUNT * sizeof(double));
    tap_ok(fabs(twice[COUNT - 1] - 0.1) < 1e-15, "fill in f64");
}

/* Places in one buffer: a layer of 5 rows, 7 numbers in and 9 out, its loss and its gradients. */
enum {
    LAYER_ROWS = 5,
    LAYER_IN = 7,
    LAYER_OUT = 9,
    LAYER_X = 0,
    LAYER_W = LAYER_X + LAYER_ROWS * LAYER_IN,
    LAYER_WANTED = LAYER_W + (LAYER_IN + 1) * LAYER_OUT,
    LAYER_INPUTS = LAYER_WANTED + LAYER_ROWS * LAYER_OUT,
    LAYER_BEFORE = LAYER_INPUTS,
    LAYER_Y = LAYER_BEFORE + LAYER_ROWS * LAYER_OUT,
    LAYER_LOSS = LAYER_Y + LAYER_ROWS * LAYER_OUT,
    LAYER_GY = LAYER_LOSS + 1,
    LAYER_INNER = LAYER_GY + LAYER_ROWS * LAYER_OUT,
    LAYER_GX = LAYER_INNER + LAYER_ROWS * LAYER_OUT,
    LAYER_GW = LAYER_GX + LAYER_ROWS * LAYER_IN,
    LAYER_NUMBERS = LAYER_GW + (LAYER_IN + 1) * LAYER_OUT,
    LAYER_NONE = -1
};

/* Steps with the places of their operands, each behind those that make them. */
static const struct layer_step {
    enum dense_kind kind;
    int add, at[DENSE_OPERANDS];
} layer_steps[] = {
    {DENSE_FORWARD, 0, {LAYER_X, LAYER_W, LAYER_BEFORE, LAYER_Y}},
    {DENSE_LOSS, 0, {LAYER_Y, LAYER_WANTED, LAYER_LOSS, LAYER_NONE}},
    {DENSE_LOSS_GRADIENT, 0, {LAYER_Y, LAYER_WANTED, LAYER_GY, LAYER_NONE}},
    {DENSE_ACTIVATION_GRADIENT, 0, {LAYER_GY, LAYER_BEFORE, LAYER_INNER, LAYER_NONE}},
    {DENSE_INPUT_GRADIENT, 0, {LAYER_INNER, LAYER_W, LAYER_GX, LAYER_NONE}},
    {DENSE_WEIGHT_GRADIENT, 0, {LAYER_X, LAYER_INNER, LAYER_GW, LAYER_NONE}},
    {DENSE_WEIGHT_GRADIENT, 1, {LAYER_X, LAYER_INNER, LAYER_GW, LAYER_NONE}},
    {DENSE_ADD, 0, {LAYER_X, LAYER_NONE, LAYER_GX, LAYER_NONE}},
};
enum { LAYER_STEPS = sizeof layer_steps / sizeof layer_steps[0] };

static struct dense dense_of(const struct layer_step *step, enum layer_function activation,
                             enum loss_kind loss)
{
    int64_t in = step->kind == DENSE_ADD ? LAYER_ROWS * LAYER_IN : LAYER_IN;
    return (struct dense){.kind = step->kind,
                          .activation = activation,
                          .loss = loss,
                          .add = step->add,
                          .rows = LAYER_ROWS,
                          .in = in,
                          .out = LAYER_OUT};
}

static float *layer_place(float *layer, int at)
{
    return at == LAYER_NONE ? NULL : &layer[at];
}

/* All steps in one operation, and beside it with dense_compute: the numbers that differ in any bit. */
static int dense_errors(struct bench *bench, enum layer_function activation, enum loss_kind loss)
{
    float layer[LAYER_NUMBERS] = {0};
    struct device_dense_step steps[LAYER_STEPS];
    struct device_buffer *on_device = buffer(bench, 0, MEMORY_DEVICE, sizeof layer);
    for (int i = 0; i < LAYER_INPUTS; i++)
        layer[i] = number(i) / 16.0F;
    for (int i = 0; i < LAYER_ROWS * LAYER_OUT; i++)
        layer[LAYER_WANTED + i] = (float)(i % LAYER_OUT == i / LAYER_OUT);
    upload(bench, 0, on_device, layer, sizeof layer);
    for (int s = 0; s < LAYER_STEPS; s++) {
        const int *at = layer_steps[s].at;
        struct dense dense = dense_of(&layer_steps[s], activation, loss);
        steps[s] = (struct device_dense_step){.dense = dense};
        for (int i = 0; i < DENSE_OPERANDS; i++)
            if (at[i] != LAYER_NONE)
                steps[s].refs[i] = (struct device_ref){on_device, (size_t)at[i] * sizeof(float)};
        dense.a = layer_place(layer, at[0]);
        dense.b = layer_place(layer, at[1]);
        dense.c = layer_place(layer, at[2]);
        dense.d = layer_place(layer, at[3]);
        dense_compute(&dense, NULL);
    }
    push(bench, bench->streams[0][0],
         (struct device_op){.kind = DEVICE_OP_DENSE, .dense = {steps, LAYER_STEPS}});
    const char *got = download(bench, 0, on_device, sizeof layer);
    int errors = 0;
    for (size_t i = 0; i < LAYER_NUMBERS; i++)
        errors += memcmp(got + i * sizeof(float), &layer[i], sizeof(float)) != 0;
    return errors;
}

static void test_dense(struct bench *bench)
{
    static const enum layer_function activations[] = {LAYER_FUNCTION_NONE, LAYER_FUNCTION_RELU,
                                                      LAYER_FUNCTION_GELU};
    for (size_t i = 0; i < sizeof activations / sizeof activations[0]; i++) {
        int mse = dense_errors(bench, activations[i], LOSS_MSE);
        int cross = dense_errors(bench, activations[i], LOSS_CROSS_ENTROPY);
        tap_ok(mse == 0 && cross == 0,
               "dense layers, function %zu: every bit as dense_compute has it", i);
    }
}

static void test_stamps(struct bench *bench)
{
    struct device_stream *stream = bench->streams[0][2];
    struct device_event *mark = event(bench, 0);
    struct stamp stamps[3];
    struct device_op spin = {.kind = DEVICE_OP_SPIN, .label = "work", .time_ns = 5000000};
    int64_t before = device_now(bench->world);
    device_push(stream, &spin, &stamps[0], &bench->diag);
    device_push(stream, &spin, &stamps[1], &bench->diag);
    int64_t returned = device_now(bench->world);
    device_record(stream, mark, &stamps[2], &bench->diag);
    device_stream_sync(stream, late(bench), &bench->diag);
    int64_t after = device_now(bench->world);
    tap_is_int(device_collect(bench->ranks[0], &bench->diag), STATUS_OK, "collect");
    tap_ok(stamps[0].valid && stamps[1].valid && stamps[2].valid, "stamps are valid");
    tap_is_int(stamps[1].number, stamps[0].number + 1, "pushes are counted");
    tap_ok(before <= stamps[0].pushed_from_ns && stamps[1].pushed_by_ns <= returned,
           "pushes took effect while they were called");
    tap_ok(stamps[0].pushed_from_ns <= stamps[0].pushed_by_ns &&
               stamps[0].pushed_by_ns <= stamps[1].pushed_from_ns,
           "one behind the other");
    bool exact = strncmp(device_description(bench->ranks[0]), "host", 4) == 0;
    tap_ok(!exact || (stamps[1].pushed_from_ns == stamps[1].pushed_by_ns &&
                      stamps[0].pushed_by_ns <= stamps[0].start_ns),
           "on the host device to the nanosecond, before they start");
    const int64_t slack = 100000; /* device clocks are read apart from the host's */
    tap_ok(stamps[0].end_ns - stamps[0].start_ns >= 5000000 - 10000, "a spin lasts its time");
    tap_ok(stamps[0].start_ns >= before - slack && stamps[2].end_ns <= after + slack,
           "stamps are on the world's clock");
    tap_ok(stamps[0].end_ns <= stamps[1].start_ns + 1000 &&
               stamps[1].end_ns <= stamps[2].end_ns + 1000,
           "stamps of a stream are in order");
    tap_note("5 ms on this device: %lld ns", (long long)(stamps[0].end_ns - stamps[0].start_ns));
}

/* Many ranks have more memory than the machine, and use little of it. */
static void test_unused_memory(struct bench *bench)
{
    enum { BLOCKS = 8 };
    const size_t bytes = (size_t)256 << 20;
    struct device_buffer *blocks[BLOCKS] = {0};
    struct rusage before, after;
    bool zeros = true;
    if (strncmp(device_description(bench->ranks[0]), "host", 4) != 0)
        return;
    getrusage(RUSAGE_SELF, &before);
    for (int i = 0; i < BLOCKS; i++) {
        if (device_alloc(bench->ranks[0], MEMORY_DEVICE, bytes, &blocks[i], &bench->diag))
            give_up(bench);
        const char *at = device_address(blocks[i]);
        zeros = zeros && at[0] == 0 && at[bytes - 1] == 0;
    }
    getrusage(RUSAGE_SELF, &after);
    for (int i = 0; i < BLOCKS; i++)
        device_free(blocks[i]);
    tap_ok(zeros, "new memory is zero");
    tap_ok(after.ru_maxrss - before.ru_maxrss < 256 << 10,
           "2 GiB that are not used take less than 256 MiB: %ld KiB",
           after.ru_maxrss - before.ru_maxrss);
}

static void test_deadline(struct bench *bench)
{
    struct device_stream *stream = bench->streams[0][0];
    struct gate gate;
    put_gate(bench, stream, &gate);
    int64_t start = device_now(bench->world);
    tap_is_int(device_stream_sync(stream, soon(bench), &bench->diag), STATUS_LIMIT,
               "a sync ends at its deadline");
    tap_ok(device_now(bench->world) - start >= SHORT_NS, "and not before it");
    tap_note("%s", last_message(bench));
    tap_is_int(device_sync(bench->ranks[0], 0, NULL), STATUS_LIMIT, "a deadline in the past");
    device_world_explain(bench->world, &bench->diag);
    tap_ok(strstr(last_message(bench), "stream main") != NULL, "the world can say what runs: %s",
           last_message(bench));
    sem_post(&gate.open);
    tap_is_int(device_sync(bench->ranks[0], DEVICE_FOREVER, &bench->diag), STATUS_OK,
               "no deadline");
}

/* After the call, so that the message is the call's. */
static void is_refused(const struct bench *bench, enum status got)
{
    tap_is_int(got, STATUS_INPUT, "refused: %s", last_message(bench));
}

static void test_refusals(struct bench *bench)
{
    struct device_stream *stream = bench->streams[0][0];
    struct device_buffer *small = buffer(bench, 0, MEMORY_DEVICE, 64);
    struct device_buffer *host = buffer(bench, 0, MEMORY_PINNED, 64);
    struct device_op wrong[] = {
        {.kind = DEVICE_OP_COPY, .copy = {DIRECTION_H2D, {host, 0}, {small, 8}, 64}},
        {.kind = DEVICE_OP_COPY, .copy = {DIRECTION_D2H, {host, 0}, {small, 0}, 64}},
        {.kind = DEVICE_OP_COPY, .copy = {DIRECTION_D2D, {small, 0}, {small, 8}, 16}},
        {.kind = DEVICE_OP_COPY, .copy = {DIRECTION_H2D, {NULL, 0}, {small, 0}, 64}},
        {.kind = DEVICE_OP_FILL, .fill = {{small, 0}, -1, DTYPE_F32, 0}},
        {.kind = DEVICE_OP_FILL, .fill = {{small, 0}, INT64_MAX / 2, DTYPE_F32, 0}},
        {.kind = DEVICE_OP_FILL, .fill = {{small, 2}, 1, DTYPE_F32, 0}},
        {.kind = DEVICE_OP_FILL, .fill = {{small, 0}, 1, DTYPE_BF16, 0}},
        {.kind = DEVICE_OP_SPIN, .time_ns = -1},
        {.kind = DEVICE_OP_WAIT, .event = NULL},
        {.kind = DEVICE_OP_COLLECTIVE, .collective = {.comm = NULL}},
        {.kind = DEVICE_OP_CALLBACK, .callback = {.run = NULL}},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        is_refused(bench, push(bench, stream, wrong[i]));
    int outside = 7;
    struct device_comm *comm;
    is_refused(bench, device_comm_open(bench->ranks[0], "x", &outside, 1, &comm, &bench->diag));
    struct device *twice;
    is_refused(bench, device_open(bench->world, 0, &twice, &bench->diag));
    tap_is_int(device_stream_sync(stream, late(bench), &bench->diag), STATUS_OK,
               "and nothing happened");
}

/* ---- collectives: member r sends 10000 r + i as its number i --------------------------------- */

/* Numbers a member has for each other: so few that the last to come moves them on the host device, from desk to desk between
   processes; so many that several threads do. Of two members 512 are 4 KiB, 1024 fill a desk, 131072 are 1 MiB. */
static const int blocks[] = {1, 37, 512, 1024, 1500, 41000, 131072};

/* The number i of member `rank` of `count` afterwards. */
static int collective_result(enum collective_kind kind, int block, int rank, int count, int i)
{
    int all = 10000 * (count * (count - 1) / 2);
    switch (kind) {
    case COLLECTIVE_ALL_TO_ALL: return 10000 * (i / block) + rank * block + i % block;
    case COLLECTIVE_ALL_REDUCE: return count * i + all;
    case COLLECTIVE_ALL_GATHER: return 10000 * (i / block) + i % block;
    case COLLECTIVE_REDUCE_SCATTER: return count * (rank * block + i) + all;
    case COLLECTIVE_BROADCAST: return 10000 * (count - 1) + i;
    case COLLECTIVE_BARRIER: break;
    }
    return 0;
}

struct members {
    int count, block;
    size_t bytes; /* of each buffer */
    struct device_comm *comms[MAX_RANKS];
    struct device_buffer *send[MAX_RANKS], *recv[MAX_RANKS];
};

static void members_open(struct bench *bench, int count, int block, struct members *members)
{
    members->count = count;
    members->block = block;
    members->bytes = (size_t)(block * count) * sizeof(float);
    char name[32];
    snprintf(name, sizeof name, "blocks of %d", block);
    open_comm(bench, name, count, members->comms);
    float *values = malloc(members->bytes);
    for (int rank = 0; rank < count; rank++) {
        if (!here(bench, rank))
            continue;
        members->send[rank] = buffer(bench, rank, MEMORY_DEVICE, members->bytes);
        members->recv[rank] = buffer(bench, rank, MEMORY_DEVICE, members->bytes);
        for (int i = 0; i < block * count; i++)
            values[i] = (float)(10000 * rank + i);
        upload(bench, rank, members->send[rank], values, members->bytes);
    }
    free(values);
}

/* Push the collective on all members, into `into`; wait for all. Counts the syncs that fail. */
static int run_collective(struct bench *bench, struct members *members, enum collective_kind kind,
                          struct device_buffer **into)
{
    int errors = 0;
    for (int rank = 0; rank < members->count; rank++)
        if (here(bench, rank))
            push(bench, bench->streams[rank][1],
                 (struct device_op){.kind = DEVICE_OP_COLLECTIVE,
                                    .collective = {.comm = members->comms[rank],
                                                   .kind = kind,
                                                   .tag = "t",
                                                   .root = members->count - 1,
                                                   .bytes = (int64_t)members->bytes,
                                                   .send = {members->send[rank], 0},
                                                   .recv = {into[rank], 0}}});
    for (int rank = 0; rank < members->count; rank++)
        if (here(bench, rank))
            errors += device_stream_sync(bench->streams[rank][1], late(bench), &bench->diag) != 0;
    return errors;
}

static int wrong_numbers(struct bench *bench, const struct members *members,
                         enum collective_kind kind, struct device_buffer *const *into)
{
    int errors = 0, count = members->count;
    int64_t bytes = device_collective_recv_bytes(kind, (int64_t)members->bytes, count);
    for (int rank = 0; rank < count && bytes > 0; rank++) {
        if (!here(bench, rank))
            continue;
        const float *got = download(bench, rank, into[rank], members->bytes);
        for (int i = 0; i < (int)bytes / (int)sizeof(float); i++)
            errors += (int)got[i] != collective_result(kind, members->block, rank, count, i);
    }
    return errors;
}

static void test_block(struct bench *bench, int count, int block)
{
    static const enum collective_kind kinds[] = {COLLECTIVE_ALL_TO_ALL, COLLECTIVE_ALL_REDUCE,
                                                 COLLECTIVE_ALL_GATHER, COLLECTIVE_REDUCE_SCATTER,
                                                 COLLECTIVE_BROADCAST,  COLLECTIVE_BARRIER};
    struct members members;
    members_open(bench, count, block, &members);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        int errors = run_collective(bench, &members, kinds[k], members.recv);
        errors += wrong_numbers(bench, &members, kinds[k], members.recv);
        tap_is_int(errors, 0, "%s of %zu bytes among %d", collective_key(kinds[k]), members.bytes,
                   count);
    }
    int errors = run_collective(bench, &members, COLLECTIVE_ALL_REDUCE, members.send);
    errors += wrong_numbers(bench, &members, COLLECTIVE_ALL_REDUCE, members.send);
    tap_is_int(errors, 0, "all_reduce of %zu bytes in place among %d", members.bytes, count);
    struct device_op over = {.kind = DEVICE_OP_COLLECTIVE,
                             .collective = {.kind = COLLECTIVE_REDUCE_SCATTER,
                                            .tag = "t",
                                            .bytes = (int64_t)members.bytes}};
    int refused = 0, wanted = 0;
    for (int rank = 1; rank < count; rank++) {
        if (!here(bench, rank) || block == 0)
            continue;
        over.collective.comm = members.comms[rank];
        over.collective.send = over.collective.recv = (struct device_ref){members.send[rank], 0};
        refused += push(bench, bench->streams[rank][1], over) == STATUS_INPUT;
        wanted++;
    }
    tap_is_int(refused, wanted, "the sum of another rank's block in place of the first is refused");
}

static void test_collectives(struct bench *bench, int count)
{
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        test_block(bench, count, blocks[i]);
}

/* A message of a rank to itself, the one exchange that needs no second rank. */
static void test_self_group(struct bench *bench)
{
    struct device_comm *comm[1];
    open_comm(bench, "self", 1, comm);
    struct device_buffer *from = buffer(bench, 0, MEMORY_DEVICE, 4);
    struct device_buffer *to = buffer(bench, 0, MEMORY_DEVICE, 4);
    upload(bench, 0, from, "abc", 4);
    struct device_p2p parts[] = {{.send = true, .bytes = 4, .data = {from, 0}},
                                 {.send = false, .bytes = 4, .data = {to, 0}}};
    push(bench, bench->streams[0][0],
         (struct device_op){.kind = DEVICE_OP_GROUP, .group = {comm[0], parts, 2}});
    tap_is_str(download(bench, 0, to, 4), "abc", "a group with itself");
    tap_is_int(push(bench, bench->streams[0][0],
                    (struct device_op){.kind = DEVICE_OP_GROUP, .group = {comm[0], parts, 1}}),
               STATUS_INPUT, "a send to itself alone is refused");
}

static void test_injection(struct bench *bench)
{
    struct device_stream *stream = bench->streams[0][0], *other = bench->streams[0][1];
    struct device_event *mark = event(bench, 0);
    struct device_op spin = {.kind = DEVICE_OP_SPIN, .label = "Forward", .time_ns = 1000000};
    struct stamp first, second;
    device_push(stream, &spin, &first, &bench->diag);
    tap_is_int(device_inject(bench->ranks[0], first.number + 1, STATUS_SYSTEM, &bench->diag),
               STATUS_OK, "inject");
    tap_is_int(device_stream_sync(stream, late(bench), &bench->diag), STATUS_OK,
               "the operation before it is well");
    device_push(stream, &spin, &second, &bench->diag);
    device_record(stream, mark, NULL, &bench->diag);
    device_wait(other, mark, NULL, &bench->diag);
    tap_is_int(device_stream_sync(stream, late(bench), &bench->diag), STATUS_SYSTEM,
               "sync reports the injected status");
    tap_ok(strstr(last_message(bench), "injected") && strstr(last_message(bench), "Forward"),
           "in words: %s", last_message(bench));
    bool done;
    tap_is_int(device_event_query(mark, &done, &bench->diag), STATUS_SYSTEM, "so does query");
    tap_is_int(push(bench, stream, spin), STATUS_SYSTEM, "and a push is refused with it");
    tap_is_int(device_stream_sync(other, late(bench), &bench->diag), STATUS_SYSTEM,
               "it spreads to who waits for it");
    tap_is_int(device_world_status(bench->world, &bench->diag), STATUS_SYSTEM,
               "the world knows the first failure");
    device_collect(bench->ranks[0], &bench->diag);
    tap_ok(first.valid && !second.valid, "an operation that failed has no stamp");
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static void begin_graph(struct bench *bench, int rank)
{
    tap_is_int(
        device_graph_begin(bench->ranks[rank], bench->streams[rank], MAX_STREAMS, &bench->diag),
        STATUS_OK, "a capture begins");
}

static struct device_graph *end_graph(struct bench *bench, int rank)
{
    struct device_graph *graph = NULL;
    tap_is_int(device_graph_end(bench->ranks[rank], &graph, &bench->diag), STATUS_OK,
               "and ends in a graph: %s", last_message(bench));
    if (!graph)
        abort();
    return graph;
}

/* All pushes of the graph have a stamp, or none has. */
static enum status launch(struct bench *bench, struct device_graph *graph, struct stamp **stamps,
                          int64_t *first)
{
    enum status status = device_graph_arm(graph, first, &bench->diag);
    for (size_t i = 0; !status && i < device_graph_stamps(graph); i++)
        *stamps[i] = (struct stamp){.number = *first + (int64_t)i};
    return status ? status : device_graph_launch(graph, stamps, &bench->diag);
}

/* On three streams: x comes from the host on the first, is added to the sum on the second, which goes back
   to the host on the third. */
enum { FLOW_FLOATS = 64, FLOW_BYTES = FLOW_FLOATS * (int)sizeof(float), FLOW_PUSHES = 7 };
struct flow {
    struct device_buffer *in, *x, *sum, *out;
    struct device_event *came, *added;
};

static void push_flow(struct bench *bench, const struct flow *flow, struct stamp *stamps)
{
    struct device_stream *const *streams = bench->streams[0];
    const struct device_op pushes[FLOW_PUSHES] = {
        {.kind = DEVICE_OP_COPY,
         .label = "in",
         .copy = {DIRECTION_H2D, {flow->in, 0}, {flow->x, 0}, FLOW_BYTES}},
        {.kind = DEVICE_OP_RECORD, .event = flow->came},
        {.kind = DEVICE_OP_WAIT, .event = flow->came},
        {.kind = DEVICE_OP_AXPY,
         .label = "add",
         .axpy = {.x = {flow->x, 0}, .y = {flow->sum, 0}, .elements = FLOW_FLOATS, .alpha = 1}},
        {.kind = DEVICE_OP_RECORD, .event = flow->added},
        {.kind = DEVICE_OP_WAIT, .event = flow->added},
        {.kind = DEVICE_OP_COPY,
         .label = "out",
         .copy = {DIRECTION_D2H, {flow->sum, 0}, {flow->out, 0}, FLOW_BYTES}}};
    static const int on[FLOW_PUSHES] = {0, 0, 1, 1, 1, 2, 2};
    int errors = 0;
    for (int i = 0; i < FLOW_PUSHES; i++)
        errors += device_push(streams[on[i]], &pushes[i], stamps ? &stamps[i] : NULL,
                              &bench->diag) != STATUS_OK;
    tap_is_int(errors, 0, "seven pushes on three streams: %s", last_message(bench));
}

static struct flow open_flow(struct bench *bench)
{
    return (struct flow){.in = buffer(bench, 0, MEMORY_PINNED, FLOW_BYTES),
                         .x = buffer(bench, 0, MEMORY_DEVICE, FLOW_BYTES),
                         .sum = buffer(bench, 0, MEMORY_DEVICE, FLOW_BYTES),
                         .out = buffer(bench, 0, MEMORY_PINNED, FLOW_BYTES),
                         .came = event(bench, 0),
                         .added = event(bench, 0)};
}

static void bring(const struct flow *flow, float value)
{
    float *in = device_host_pointer(flow->in);
    for (int i = 0; i < FLOW_FLOATS; i++)
        in[i] = value;
}

static float brought(const struct flow *flow)
{
    return ((const float *)device_host_pointer(flow->out))[FLOW_FLOATS - 1];
}

static void test_graph(struct bench *bench)
{
    struct flow flow = open_flow(bench);
    struct stamp places[FLOW_PUSHES], stamps[FLOW_PUSHES], *all[FLOW_PUSHES];
    int64_t first = -1, again = -1;
    for (int i = 0; i < FLOW_PUSHES; i++)
        all[i] = &stamps[i];
    bring(&flow, 1);
    begin_graph(bench, 0);
    push_flow(bench, &flow, places);
    struct device_graph *graph = end_graph(bench, 0);
    tap_is_int((int)device_graph_pushes(graph), FLOW_PUSHES, "it has all pushes");
    tap_is_int((int)device_graph_stamps(graph), FLOW_PUSHES, "and their stamps");
    tap_ok(places[0].number == 0 && places[6].number == 6, "a stamp tells the place in the graph");
    device_sync(bench->ranks[0], late(bench), &bench->diag);
    tap_ok(brought(&flow) == 0, "capturing does nothing");

    tap_is_int(launch(bench, graph, all, &first), STATUS_OK, "a launch");
    tap_is_int(device_event_sync(flow.added, late(bench), &bench->diag), STATUS_OK,
               "its events can be waited for");
    device_sync(bench->ranks[0], late(bench), &bench->diag);
    tap_ok(brought(&flow) == 1, "and all of it is done");
    device_collect(bench->ranks[0], &bench->diag);
    int errors = 0;
    for (int i = 0; i < FLOW_PUSHES; i++)
        errors += !stamps[i].valid || stamps[i].start_ns > stamps[i].end_ns;
    tap_is_int(errors, 0, "every operation of a launch has a stamp");
    tap_ok(stamps[0].end_ns <= stamps[3].start_ns + 1000 &&
               stamps[3].end_ns <= stamps[6].start_ns + 1000,
           "their times are in the order of the graph");
    int64_t before_ns = stamps[6].end_ns;

    bring(&flow, 10);
    tap_is_int(launch(bench, graph, all, &again), STATUS_OK, "a second launch");
    device_wait(bench->streams[0][0], flow.added, NULL,
                &bench->diag); /* before x is written again */
    push_flow(bench, &flow, NULL);
    device_sync(bench->ranks[0], late(bench), &bench->diag);
    device_collect(bench->ranks[0], &bench->diag);
    tap_ok(again >= first + FLOW_PUSHES, "with numbers of its own");
    tap_ok(stamps[0].valid && stamps[0].start_ns + 1000 >= before_ns, "and stamps of its own");
    tap_ok(brought(&flow) == 21,
           "reads what is in host memory now; pushes behind it come after it");
    device_graph_close(graph);
}

static atomic_bool collected;

static void *collect_first(void *arg)
{
    struct bench *bench = arg;
    device_collect(bench->ranks[0], NULL);
    atomic_store(&collected, true);
    return NULL;
}

/* Reading the stamps of a graph, which emulated CUDA takes 280 ms for, holds up no push. */
static void test_graph_collect(struct bench *bench)
{
    struct flow flow = open_flow(bench);
    struct stamp places[FLOW_PUSHES], stamps[FLOW_PUSHES], *all[FLOW_PUSHES];
    int64_t first = -1;
    pthread_t thread;
    for (int i = 0; i < FLOW_PUSHES; i++)
        all[i] = &stamps[i];
    begin_graph(bench, 0);
    push_flow(bench, &flow, places);
    struct device_graph *graph = end_graph(bench, 0);
    launch(bench, graph, all, &first);
    device_sync(bench->ranks[0], late(bench), &bench->diag);
    atomic_store(&collected, false);
    setenv("SWSIM_EMULATION_SLOW", "cudaEventElapsedTime:20", 1);
    pthread_create(&thread, NULL, collect_first, bench);
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    device_record(bench->streams[0][1], flow.came, NULL, &bench->diag);
    bool before = !atomic_load(&collected);
    pthread_join(thread, NULL);
    unsetenv("SWSIM_EMULATION_SLOW");
    if (strstr(device_description(bench->ranks[0]), "emulated"))
        tap_ok(before, "a push does not wait until all stamps of a graph are read");
    tap_ok(stamps[0].valid && stamps[FLOW_PUSHES - 1].valid, "which are read meanwhile");
    device_graph_close(graph);
}

/* A wait is about the last record at the time of the launch. */
static void test_graph_waits(struct bench *bench)
{
    struct trail trail = TRAIL_INIT;
    struct step a = {&trail, 'a'}, b = {&trail, 'b'};
    struct device_stream *first = bench->streams[0][0], *second = bench->streams[0][1];
    struct device_event *ready = event(bench, 0);
    struct gate gate;
    char text[64];
    int64_t number;
    tap_is_int(device_graph_begin(bench->ranks[0], &second, 1, &bench->diag), STATUS_OK,
               "a graph of one stream");
    device_wait(second, ready, NULL, &bench->diag);
    put_step(bench, second, &b);
    struct device_graph *graph = end_graph(bench, 0);
    tap_is_int(launch(bench, graph, NULL, &number), STATUS_OK, "launched: %s", last_message(bench));
    device_sync(bench->ranks[0], late(bench), &bench->diag);
    tap_is_str(read_trail(&trail, text), "b", "what was never recorded is no wait");
    put_gate(bench, first, &gate);
    put_step(bench, first, &a);
    device_record(first, ready, NULL, &bench->diag);
    launch(bench, graph, NULL, &number);
    nap();
    tap_is_str(read_trail(&trail, text), "b", "what has been recorded since is one");
    sem_post(&gate.open);
    device_sync(bench->ranks[0], late(bench), &bench->diag);
    tap_is_str(read_trail(&trail, text), "bab", "that ends with the work");
    device_graph_close(graph);
}

static void test_graph_refusals(struct bench *bench)
{
    struct device *device = bench->ranks[0];
    struct device_stream *stream = bench->streams[0][0], *twice[] = {stream, stream};
    struct device_buffer *pageable = buffer(bench, 0, MEMORY_PAGEABLE, 64),
                         *memory = buffer(bench, 0, MEMORY_DEVICE, 64);
    int64_t first;
    is_refused(bench, device_graph_end(device, NULL, &bench->diag));
    is_refused(bench, device_graph_begin(device, twice, 2, &bench->diag));
    is_refused(bench, device_graph_begin(device, twice, 0, &bench->diag));
    begin_graph(bench, 0);
    is_refused(bench, device_graph_begin(device, &stream, 1, &bench->diag));
    is_refused(bench, device_stream_sync(stream, soon(bench), &bench->diag));
    is_refused(bench, device_sync(device, soon(bench), &bench->diag));
    is_refused(bench,
               push(bench, stream,
                    (struct device_op){.kind = DEVICE_OP_COPY,
                                       .copy = {DIRECTION_H2D, {pageable, 0}, {memory, 0}, 64}}));
    is_refused(bench, push(bench, stream,
                           (struct device_op){.kind = DEVICE_OP_FILL,
                                              .fill = {{memory, 2}, 1, DTYPE_F32, 0}}));
    push(bench, stream,
         (struct device_op){.kind = DEVICE_OP_FILL, .fill = {{memory, 0}, 16, DTYPE_F32, 3}});
    tap_is_int(device_graph_end(device, NULL, &bench->diag), STATUS_OK, "a capture is given up");
    const float *numbers = download(bench, 0, memory, 64);
    tap_ok(numbers[0] == 0, "then nothing of it happens, and the stream works as before");
    begin_graph(bench, 0);
    push(bench, stream,
         (struct device_op){.kind = DEVICE_OP_FILL, .fill = {{memory, 0}, 16, DTYPE_F32, 3}});
    struct device_graph *graph = end_graph(bench, 0);
    is_refused(bench, device_graph_launch(graph, NULL, &bench->diag));
    tap_is_int(launch(bench, graph, NULL, &first), STATUS_OK, "armed it can be launched");
    is_refused(bench, device_graph_launch(graph, NULL, &bench->diag));
    numbers = download(bench, 0, memory, 64);
    tap_ok(numbers[15] == 3, "once");
    device_graph_close(graph);
    device_graph_close(NULL);
}

/* A failure of an operation in a launch is one of its stream. */
static void test_graph_failure(struct bench *bench)
{
    struct flow flow = open_flow(bench);
    static struct stamp
        stamps[FLOW_PUSHES]; /* what failed is not collected before the device closes */
    struct stamp *all[FLOW_PUSHES];
    int64_t first = -1;
    for (int i = 0; i < FLOW_PUSHES; i++)
        all[i] = &stamps[i];
    bring(&flow, 1);
    begin_graph(bench, 0);
    push_flow(bench, &flow, stamps);
    struct device_graph *graph = end_graph(bench, 0);
    launch(bench, graph, all, &first);
    device_sync(bench->ranks[0], late(bench), &bench->diag);
    device_collect(bench->ranks[0], &bench->diag);
    device_inject(bench->ranks[0], first + FLOW_PUSHES + 3, STATUS_SYSTEM, &bench->diag);
    launch(bench, graph, all, &first);
    enum status status = device_stream_sync(bench->streams[0][2], late(bench), &bench->diag);
    tap_is_int(status, STATUS_SYSTEM, "an operation fails in the second launch: %s",
               last_message(bench));
    tap_ok(strstr(last_message(bench), "injected") && strstr(last_message(bench), "add"),
           "and is named");
    tap_ok(brought(&flow) == 1, "what follows from it is not done");
    device_collect(bench->ranks[0], &bench->diag);
    tap_ok(!stamps[3].valid && !stamps[6].valid, "and has no stamp");
    tap_is_int(launch(bench, graph, all, &first), STATUS_SYSTEM, "a third launch is refused");
    device_graph_close(graph);
}

/* A launch that cannot end is ended by an abort. */
static void test_graph_abort(struct bench *bench)
{
    int64_t first;
    begin_graph(bench, 0);
    push(bench, bench->streams[0][1],
         (struct device_op){.kind = DEVICE_OP_SPIN, .time_ns = 3600LL * 1000000000});
    struct device_graph *graph = end_graph(bench, 0);
    launch(bench, graph, NULL, &first);
    tap_is_int(device_stream_sync(bench->streams[0][1], soon(bench), &bench->diag), STATUS_LIMIT,
               "an hour is launched");
    device_world_abort(bench->world, "the test says so");
    tap_is_int(device_stream_sync(bench->streams[0][1], late(bench), &bench->diag), STATUS_VIOLATED,
               "an abort ends it");
    tap_is_int(device_graph_arm(graph, &first, &bench->diag) ||
                   device_graph_launch(graph, NULL, &bench->diag),
               1, "and it is not launched again: %s", last_message(bench));
    device_graph_close(graph);
}

/* Collectives and messages of all ranks in graphs, launched three times; the parts of a group are the
   caller's only while it pushes. */
static void test_graph_block(struct bench *bench, int block)
{
    int count = bench->rank_count;
    struct members members;
    struct device_graph *graphs[MAX_RANKS] = {NULL};
    struct device_buffer *ring[MAX_RANKS] = {NULL};
    int errors = 0;
    members_open(bench, count, block, &members);
    for (int rank = 0; rank < count; rank++) {
        if (!here(bench, rank))
            continue;
        struct device_p2p *parts = calloc(2, sizeof *parts);
        ring[rank] = buffer(bench, rank, MEMORY_DEVICE, members.bytes);
        parts[0] = (struct device_p2p){.send = true,
                                       .peer = (rank + 1) % count,
                                       .bytes = (int64_t)members.bytes,
                                       .data = {members.recv[rank], 0}};
        parts[1] = (struct device_p2p){.peer = (rank + count - 1) % count,
                                       .bytes = (int64_t)members.bytes,
                                       .data = {ring[rank], 0}};
        begin_graph(bench, rank);
        push(bench, bench->streams[rank][1],
             (struct device_op){.kind = DEVICE_OP_COLLECTIVE,
                                .collective = {.comm = members.comms[rank],
                                               .kind = COLLECTIVE_ALL_REDUCE,
                                               .tag = "sum",
                                               .bytes = (int64_t)members.bytes,
                                               .send = {members.send[rank], 0},
                                               .recv = {members.recv[rank], 0}}});
        push(bench, bench->streams[rank][1],
             (struct device_op){.kind = DEVICE_OP_GROUP, .group = {members.comms[rank], parts, 2}});
        free(parts);
        graphs[rank] = end_graph(bench, rank);
    }
    for (int round = 0; round < 3; round++)
        for (int rank = 0; rank < count; rank++) {
            int64_t first;
            errors += here(bench, rank) && launch(bench, graphs[rank], NULL, &first) != STATUS_OK;
        }
    for (int rank = 0; rank < count; rank++)
        errors += here(bench, rank) &&
                  device_sync(bench->ranks[rank], late(bench), &bench->diag) != STATUS_OK;
    errors += wrong_numbers(bench, &members, COLLECTIVE_ALL_REDUCE, members.recv);
    errors += wrong_numbers(bench, &members, COLLECTIVE_ALL_REDUCE, ring);
    tap_is_int(errors, 0, "a sum and a ring among %d in graphs: %s", count, last_message(bench));
    for (int rank = 0; rank < count; rank++)
        device_graph_close(graphs[rank]);
}

static void test_graph_comms(struct bench *bench)
{
    test_graph_block(bench, 1500);
}

static void test_graph_small_comms(struct bench *bench)
{
    test_graph_block(bench, 37);
}

/* ---- abort ----------------------------------------------------------------------------------- */

struct syncer {
    struct bench *bench;
    int rank, stream;
    enum status status;
    int64_t end_ns;
};

static void *sync_forever(void *arg)
{
    struct syncer *syncer = arg;
    syncer->status = device_stream_sync(syncer->bench->streams[syncer->rank][syncer->stream],
                                        DEVICE_FOREVER, NULL);
    syncer->end_ns = device_now(syncer->bench->world);
    return NULL;
}

/* Work that never ends on every rank: a long spin, a wait for it, a collective that a peer misses.
 */
static void never_end(struct bench *bench, struct device_comm **comms)
{
    for (int rank = 0; rank < bench->rank_count; rank++) {
        if (!here(bench, rank))
            continue;
        struct device_event *mark = event(bench, rank);
        push(bench, bench->streams[rank][0],
             (struct device_op){.kind = DEVICE_OP_SPIN, .time_ns = 3600LL * 1000000000});
        device_record(bench->streams[rank][0], mark, NULL, &bench->diag);
        device_wait(bench->streams[rank][1], mark, NULL, &bench->diag);
        if (bench->rank_count > 1 && rank > 0)
            push(bench, bench->streams[rank][2],
                 (struct device_op){
                     .kind = DEVICE_OP_COLLECTIVE,
                     .collective = {.comm = comms[rank], .kind = COLLECTIVE_BARRIER}});
        else
            device_wait(bench->streams[rank][2], mark, NULL, &bench->diag);
    }
}

static void test_abort(struct bench *bench)
{
    struct device_comm *comms[MAX_RANKS];
    struct syncer syncers[MAX_RANKS][MAX_STREAMS];
    pthread_t threads[MAX_RANKS][MAX_STREAMS];
    if (bench->rank_count > 1)
        open_comm(bench, "dp", bench->rank_count, comms);
    never_end(bench, comms);
    for (int rank = 0; rank < bench->rank_count; rank++)
        for (int i = 0; i < MAX_STREAMS && here(bench, rank); i++) {
            syncers[rank][i] = (struct syncer){.bench = bench, .rank = rank, .stream = i};
            pthread_create(&threads[rank][i], NULL, sync_forever, &syncers[rank][i]);
        }
    nap();
    device_world_explain(bench->world, &bench->diag);
    int64_t start = device_now(bench->world);
    if (here(bench, 0)) {
        device_world_abort(bench->world, "the test says so");
        device_world_abort(bench->world, "and again");
    }
    int wrong = 0;
    int64_t last = start;
    for (int rank = 0; rank < bench->rank_count; rank++)
        for (int i = 0; i < MAX_STREAMS && here(bench, rank); i++) {
            pthread_join(threads[rank][i], NULL);
            wrong += syncers[rank][i].status != STATUS_VIOLATED;
            if (syncers[rank][i].end_ns > last)
                last = syncers[rank][i].end_ns;
        }
    tap_is_int(wrong, 0, "an abort ends every sync of %d ranks with a failure", bench->rank_count);
    tap_ok(last - start < 1000000000, "within a second: %lld us", (long long)(last - start) / 1000);
    enum status got = device_world_status(bench->world, &bench->diag);
    tap_is_int(got, STATUS_VIOLATED, "world status: %s", last_message(bench));
    tap_ok(strstr(last_message(bench), "the test says so") != NULL, "the first reason is kept");
    for (int rank = 0; rank < bench->rank_count; rank++)
        if (here(bench, rank))
            tap_is_int(
                push(bench, bench->streams[rank][0], (struct device_op){.kind = DEVICE_OP_SPIN}),
                STATUS_VIOLATED, "pushes are refused");
}

/* ---- cases for several ranks ----------------------------------------------------------------- */

static struct device_op barrier(struct device_comm *comm, const char *tag)
{
    return (struct device_op){.kind = DEVICE_OP_COLLECTIVE,
                              .collective = {.comm = comm, .kind = COLLECTIVE_BARRIER, .tag = tag}};
}

/* Two ranks bring `a` and `b` to one position. */
static void expect_mismatch(const struct device_config *config, const char *what,
                            struct device_collective a, struct device_collective b)
{
    struct bench bench;
    if (!bench_open(&bench, *config))
        return;
    struct device_comm *comms[MAX_RANKS];
    open_comm(&bench, "dp", 2, comms);
    struct device_collective both[] = {a, b};
    for (int rank = 0; rank < 2; rank++) {
        if (!here(&bench, rank))
            continue;
        both[rank].comm = comms[rank];
        both[rank].send.buffer = buffer(&bench, rank, MEMORY_DEVICE, 1024);
        both[rank].recv.buffer = buffer(&bench, rank, MEMORY_DEVICE, 1024);
        push(&bench, bench.streams[rank][0],
             (struct device_op){.kind = DEVICE_OP_COLLECTIVE, .collective = both[rank]});
    }
    for (int rank = 0; rank < 2; rank++) {
        if (!here(&bench, rank))
            continue;
        enum status got = device_stream_sync(bench.streams[rank][0], late(&bench), &bench.diag);
        tap_is_int(got, STATUS_VIOLATED, "%s, rank %d: %s", what, rank, last_message(&bench));
        tap_ok(strstr(last_message(&bench), "mismatch") != NULL, "is a mismatch");
    }
    bench_close(&bench);
}

static void test_mismatch(const struct device_config *config)
{
    struct device_collective base = {.kind = COLLECTIVE_ALL_REDUCE, .tag = "grad", .bytes = 1024};
    struct device_collective kind = base, tag = base, bytes = base;
    kind.kind = COLLECTIVE_ALL_TO_ALL;
    tag.tag = "other";
    bytes.bytes = 512;
    expect_mismatch(config, "different kinds", base, kind);
    expect_mismatch(config, "different tags", base, tag);
    expect_mismatch(config, "different bytes", base, bytes);
}

/* Rank 0 issues an operation behind a gate, then one on a free stream, all on one communicator. */
static void test_turns(struct bench *bench)
{
    struct device_comm *comms[MAX_RANKS];
    struct device_event *behind = event(bench, 0);
    struct stamp first, second;
    struct gate gate;
    bool done = true;
    open_comm(bench, "turns", 2, comms);
    put_gate(bench, bench->streams[0][0], &gate);
    struct device_op a = barrier(comms[0], "a"), b = barrier(comms[0], "b");
    device_push(bench->streams[0][0], &a, &first, &bench->diag);
    device_push(bench->streams[0][1], &b, &second, &bench->diag);
    device_record(bench->streams[0][1], behind, NULL, &bench->diag);
    push(bench, bench->streams[1][0], barrier(comms[1], "a"));
    push(bench, bench->streams[1][1], barrier(comms[1], "b"));
    nap();
    tap_ok(!device_event_query(behind, &done, &bench->diag) && !done,
           "a communicator serialises its operations across streams");
    device_world_explain(bench->world, &bench->diag);
    sem_post(&gate.open);
    for (int rank = 0; rank < 2; rank++)
        tap_is_int(device_sync(bench->ranks[rank], late(bench), &bench->diag), STATUS_OK,
                   "and both finish on rank %d", rank);
    device_collect(bench->ranks[0], &bench->diag);
    tap_ok(first.end_ns <= second.start_ns, "one after the other");
}

/* Many small collectives behind gates, each of a number of its own. Some last a while on one rank, so that a thread has
   to serve them there and not elsewhere. */
static void test_queues(struct bench *bench)
{
    enum { MANY = 200, STRIDE = 16 };
    const int count = bench->rank_count;
    struct device_comm *comms[MAX_RANKS];
    struct device_buffer *out[MAX_RANKS], *in[MAX_RANKS];
    struct gate gates[MAX_RANKS];
    int32_t numbers[MANY];
    int errors = 0, wrong = 0;
    open_comm(bench, "queues", count, comms);
    for (int rank = 0; rank < count; rank++) {
        if (!here(bench, rank))
            continue;
        out[rank] = buffer(bench, rank, MEMORY_DEVICE, sizeof numbers);
        in[rank] = buffer(bench, rank, MEMORY_DEVICE, sizeof numbers);
        for (int i = 0; i < MANY; i++)
            numbers[i] = rank * MANY + i;
        upload(bench, rank, out[rank], numbers, sizeof numbers);
        put_gate(bench, bench->streams[rank][0], &gates[rank]);
    }
    for (int rank = 0; rank < count; rank++)
        for (size_t i = 0; i < MANY && here(bench, rank); i++) {
            struct device_op op = {.kind = DEVICE_OP_COLLECTIVE,
                                   .collective = {.comm = comms[rank],
                                                  .kind = COLLECTIVE_ALL_REDUCE,
                                                  .number = NUMBER_I32,
                                                  .bytes = sizeof *numbers,
                                                  .send = {out[rank], i * sizeof *numbers},
                                                  .recv = {in[rank], i * sizeof *numbers}}};
            if (i % STRIDE == STRIDE - 1 && (int)(i / STRIDE) % count == rank)
                op.time_ns = 50000;
            errors += push(bench, bench->streams[rank][0], op) != STATUS_OK;
        }
    for (int rank = 0; rank < count; rank++)
        if (here(bench, rank))
            sem_post(&gates[rank].open);
    for (int rank = 0; rank < count; rank++) {
        if (!here(bench, rank))
            continue;
        errors += device_stream_sync(bench->streams[rank][0], late(bench), &bench->diag) != 0;
        const int32_t *got = download(bench, rank, in[rank], sizeof numbers);
        for (int i = 0; i < MANY; i++)
            wrong += got[i] != count * i + MANY * count * (count - 1) / 2;
    }
    tap_is_int(errors, 0, "%d small collectives of %d ranks in a queue end", MANY, count);
    tap_is_int(wrong, 0, "each with its own sum");
}

/* Records behind a small collective end with it, for the host that pushes its last member: nothing has to be waited for. */
static void test_marks(struct bench *bench)
{
    struct device_comm *comms[MAX_RANKS];
    struct device_event *behind = event(bench, 0);
    struct stamp first = {0}, second = {0};
    bool done = false;
    open_comm(bench, "marks", 2, comms);
    push(bench, bench->streams[0][0], barrier(comms[0], "a"));
    device_record(bench->streams[0][0], behind, &first, &bench->diag);
    device_wait(bench->streams[0][0], behind, NULL, &bench->diag);
    device_record(bench->streams[0][0], behind, &second, &bench->diag);
    tap_ok(!atomic_load(&first.valid) && !atomic_load(&second.valid),
           "marks wait for the collective before them");
    push(bench, bench->streams[1][0], barrier(comms[1], "a"));
    tap_ok(atomic_load(&first.valid) && atomic_load(&second.valid) &&
               first.end_ns <= second.start_ns,
           "and end with it");
    tap_ok(!device_event_query(behind, &done, &bench->diag) && done, "and so does the event");
    tap_is_int(device_sync(bench->ranks[0], late(bench), &bench->diag), STATUS_OK, "in good order");
}

/* A small collective is left by the member that came when the run ends, and those that come later fail. */
static void test_left(struct bench *bench)
{
    struct device_comm *comms[MAX_RANKS];
    open_comm(bench, "left", bench->rank_count, comms);
    if (here(bench, 0)) {
        push(bench, bench->streams[0][0], barrier(comms[0], "a"));
        enum status status = device_stream_sync(bench->streams[0][0], soon(bench), &bench->diag);
        tap_is_int(status, STATUS_LIMIT, "a rank waits for the others: %s", last_message(bench));
        tap_ok(strstr(last_message(bench), "waits for rank 1") != NULL, "and names them");
        device_world_abort(bench->world, "given up");
        status = device_stream_sync(bench->streams[0][0], late(bench), &bench->diag);
        tap_is_int(status, STATUS_VIOLATED, "until it fails: %s", last_message(bench));
    }
    while (device_world_status(bench->world, &bench->diag) == STATUS_OK)
        nap();
    for (int rank = 1; rank < bench->rank_count; rank++)
        if (here(bench, rank))
            tap_is_int(push(bench, bench->streams[rank][0], barrier(comms[rank], "a")),
                       STATUS_VIOLATED, "and nothing is pushed on rank %d then", rank);
}

/* A ring: everybody sends to the next two messages and receives two, all in one group. */
static void test_ring(struct bench *bench, int count)
{
    enum { BYTES = 4096 };
    struct device_comm *comms[MAX_RANKS];
    struct device_buffer *out[MAX_RANKS], *in[MAX_RANKS];
    unsigned char bytes[2 * BYTES];
    open_comm(bench, "ring", count, comms);
    for (int rank = 0; rank < count; rank++) {
        if (!here(bench, rank))
            continue;
        out[rank] = buffer(bench, rank, MEMORY_DEVICE, sizeof bytes);
        in[rank] = buffer(bench, rank, MEMORY_DEVICE, sizeof bytes);
        memset(bytes, 10 + rank, BYTES);
        memset(bytes + BYTES, 20 + rank, BYTES);
        upload(bench, rank, out[rank], bytes, sizeof bytes);
    }
    for (int rank = 0; rank < count; rank++) {
        if (!here(bench, rank))
            continue;
        int next = (rank + 1) % count, before = (rank + count - 1) % count;
        struct device_p2p parts[] = {{true, next, "one", 0, BYTES, {out[rank], 0}},
                                     {true, next, "two", 0, BYTES, {out[rank], BYTES}},
                                     {false, before, "one", 0, BYTES, {in[rank], 0}},
                                     {false, before, "two", 0, BYTES, {in[rank], BYTES}}};
        push(bench, bench->streams[rank][1],
             (struct device_op){.kind = DEVICE_OP_GROUP, .group = {comms[rank], parts, 4}});
    }
    int errors = 0;
    for (int rank = 0; rank < count; rank++) {
        if (!here(bench, rank))
            continue;
        int before = (rank + count - 1) % count;
        errors += device_stream_sync(bench->streams[rank][1], late(bench), &bench->diag) != 0;
        const unsigned char *got = download(bench, rank, in[rank], sizeof bytes);
        errors += got[0] != 10 + before || got[BYTES - 1] != 10 + before;
        errors += got[BYTES] != 20 + before || got[2 * BYTES - 1] != 20 + before;
    }
    tap_is_int(errors, 0, "a ring of %d exchanges in groups without deadlock", count);
}

/* Both send first and receive then, each in a group of its own: rendezvous, so neither ends. */
static void test_send_send(const struct device_config *config)
{
    struct bench bench;
    if (!bench_open(&bench, *config))
        return;
    struct device_comm *comms[MAX_RANKS];
    open_comm(&bench, "pp", 2, comms);
    for (int rank = 0; rank < 2; rank++) {
        if (!here(&bench, rank))
            continue;
        struct device_buffer *data = buffer(&bench, rank, MEMORY_DEVICE, 64);
        struct device_p2p send = {true, 1 - rank, "x", 0, 32, {data, 0}};
        struct device_p2p receive = {false, 1 - rank, "x", 0, 32, {data, 32}};
        push(&bench, bench.streams[rank][0],
             (struct device_op){.kind = DEVICE_OP_GROUP, .group = {comms[rank], &send, 1}});
        push(&bench, bench.streams[rank][0],
             (struct device_op){.kind = DEVICE_OP_GROUP, .group = {comms[rank], &receive, 1}});
    }
    if (here(&bench, 0)) {
        enum status got = device_sync(bench.ranks[0], soon(&bench), &bench.diag);
        tap_is_int(got, STATUS_LIMIT, "send against send hangs: %s", last_message(&bench));
        tap_ok(strstr(last_message(&bench), "send 'x' to rank 1") != NULL, "and says so");
        device_world_abort(bench.world, "hung");
    }
    if (here(&bench, 1))
        tap_is_int(device_sync(bench.ranks[1], late(&bench), &bench.diag), STATUS_VIOLATED,
                   "an abort ends it");
    device_world_explain(bench.world, &bench.diag);
    tap_ok(strstr(last_message(&bench), "send 'x' to rank") != NULL, "what it waited for is known");
    bench_close(&bench);
    tap_ok(1, "an aborted group can be closed");
}

static void test_p2p_mismatch(const struct device_config *config)
{
    struct bench bench;
    if (!bench_open(&bench, *config))
        return;
    struct device_comm *comms[MAX_RANKS];
    open_comm(&bench, "pp", 2, comms);
    for (int rank = 0; rank < 2; rank++) {
        if (!here(&bench, rank))
            continue;
        struct device_buffer *data = buffer(&bench, rank, MEMORY_DEVICE, 64);
        struct device_p2p part = {rank == 0, 1 - rank, "x", 0, rank == 0 ? 32 : 64, {data, 0}};
        push(&bench, bench.streams[rank][0],
             (struct device_op){.kind = DEVICE_OP_GROUP, .group = {comms[rank], &part, 1}});
    }
    for (int rank = 0; rank < 2; rank++) {
        if (!here(&bench, rank))
            continue;
        enum status got = device_sync(bench.ranks[rank], late(&bench), &bench.diag);
        tap_is_int(got, STATUS_VIOLATED, "rank %d: %s", rank, last_message(&bench));
    }
    bench_close(&bench);
}

/* Two communicators, ranks start them in opposite order: harmless, unless one slot is all there is.
 */
static void test_slots(struct device_config config, int slots)
{
    struct bench bench;
    config.sm_slots = slots;
    if (!bench_open(&bench, config))
        return;
    struct device_comm *comms[2][MAX_RANKS];
    open_comm(&bench, "A", 2, comms[0]);
    open_comm(&bench, "B", 2, comms[1]);
    for (int turn = 0; turn < 2; turn++) {
        for (int rank = 0; rank < 2; rank++) {
            int which = turn ^ rank;
            struct device_op op = barrier(comms[which][rank], NULL);
            op.sm = 1;
            push(&bench, bench.streams[rank][which], op);
        }
        nap(); /* both ranks have started their first one */
    }
    enum status status =
        device_sync(bench.ranks[0], slots == 1 ? soon(&bench) : late(&bench), &bench.diag);
    tap_is_int(status, slots == 1 ? STATUS_LIMIT : STATUS_OK,
               "opposite order of two communicators with %d slots", slots);
    if (slots == 1) {
        device_world_abort(bench.world, "hung");
        struct device_op greedy = {.kind = DEVICE_OP_SPIN, .sm = 2};
        is_refused(&bench, push(&bench, bench.streams[0][0], greedy));
    }
    bench_close(&bench);
}

struct pusher {
    struct bench *bench;
    atomic_int pushed;
    struct diag diag;
    enum status status;
};

static void *push_four(void *arg)
{
    struct pusher *pusher = arg;
    for (int i = 0; i < 4 && !pusher->status; i++) {
        struct device_op op = {.kind = DEVICE_OP_SPIN, .time_ns = 1000};
        pusher->status = device_push(pusher->bench->streams[0][0], &op, NULL, &pusher->diag);
        atomic_fetch_add(&pusher->pushed, pusher->status == STATUS_OK);
    }
    return NULL;
}

static void test_launch_queue(struct device_config config)
{
    struct bench bench;
    config.launch_queue = 3;
    if (!bench_open(&bench, config))
        return;
    struct gate gate;
    pthread_t thread;
    struct pusher pusher = {.bench = &bench};
    put_gate(&bench, bench.streams[0][0], &gate);
    pthread_create(&thread, NULL, push_four, &pusher);
    nap();
    tap_is_int(atomic_load(&pusher.pushed), 2, "a push into a full launch queue blocks");
    sem_post(&gate.open);
    pthread_join(thread, NULL);
    tap_is_int(atomic_load(&pusher.pushed), 4, "until there is room");
    diag_fini(&pusher.diag);
    bench_close(&bench);
}

/* ---- threads that serve any stream ------------------------------------------------------------- */

enum { EXTRA = 6, BOUNCES = 400 };

struct extra {
    struct device_stream *streams[EXTRA];
    struct device_event *events[EXTRA + 1];
};

static struct device_stream *open_stream(struct bench *bench, const char *name)
{
    struct device_stream *stream = NULL;
    if (device_stream_open(bench->ranks[0], name, &stream, &bench->diag))
        give_up(bench);
    return stream;
}

static void open_extra(struct bench *bench, struct extra *extra)
{
    for (int i = 0; i < EXTRA; i++)
        extra->streams[i] = open_stream(bench, "extra");
    for (int i = 0; i <= EXTRA; i++)
        extra->events[i] = event(bench, 0);
}

static void close_extra(struct extra *extra)
{
    for (int i = 0; i < EXTRA; i++)
        device_stream_close(extra->streams[i]);
}

/* Steps from stream to stream, each behind an event of the one before. */
static void put_chain(struct bench *bench, struct extra *extra, struct step *steps)
{
    device_record(bench->streams[0][1], extra->events[0], NULL, &bench->diag);
    for (int i = 0; i < EXTRA; i++) {
        device_wait(extra->streams[i], extra->events[i], NULL, &bench->diag);
        put_step(bench, extra->streams[i], &steps[i]);
        device_record(extra->streams[i], extra->events[i + 1], NULL, &bench->diag);
    }
}

/* A user's function blocks its own stream only. */
static void test_long_task(struct bench *bench)
{
    struct trail trail = TRAIL_INIT;
    struct step steps[EXTRA];
    struct extra extra;
    struct gate gate, start;
    char text[64];
    open_extra(bench, &extra);
    for (int i = 0; i < EXTRA; i++)
        steps[i] = (struct step){&trail, (char)('a' + i)};
    put_gate(bench, bench->streams[0][0], &gate);
    put_gate(bench, bench->streams[0][1], &start);
    put_chain(bench, &extra, steps);
    nap();
    tap_is_str(read_trail(&trail, text), "", "six streams wait for one another's events");
    sem_post(&start.open);
    tap_is_int(device_event_sync(extra.events[EXTRA], late(bench), &bench->diag), STATUS_OK,
               "they go on beside a function that blocks");
    tap_is_str(read_trail(&trail, text), "abcdef", "in the order of the events");
    sem_post(&gate.open);
    device_sync(bench->ranks[0], late(bench), &bench->diag); /* the gate is on this stack */
    close_extra(&extra);
}

/* All streams but one are blocked: each has a thread. */
static void test_all_blocked(struct bench *bench)
{
    struct trail trail = TRAIL_INIT;
    struct step last = {&trail, 'z'};
    struct extra extra;
    struct gate gates[EXTRA];
    char text[64];
    open_extra(bench, &extra);
    for (int i = 0; i < EXTRA; i++)
        put_gate(bench, extra.streams[i], &gates[i]);
    nap();
    put_step(bench, bench->streams[0][2], &last);
    tap_is_int(device_stream_sync(bench->streams[0][2], late(bench), &bench->diag), STATUS_OK,
               "a stream works while six others are blocked");
    tap_is_str(read_trail(&trail, text), "z", "its step is done");
    for (int i = EXTRA; i-- > 0;)
        sem_post(&gates[i].open);
    tap_is_int(device_sync(bench->ranks[0], late(bench), &bench->diag), STATUS_OK,
               "the others end in the opposite order");
    close_extra(&extra);
}

/* Two streams hand work to each other while the host looks for the end of both. */
static void test_bounces(struct bench *bench)
{
    struct device_stream *sides[2] = {bench->streams[0][1], bench->streams[0][2]};
    struct device_event *events[2] = {event(bench, 0), event(bench, 0)};
    struct device_buffer *data = buffer(bench, 0, MEMORY_DEVICE, 64);
    struct device_op add = {.kind = DEVICE_OP_AXPY, .axpy = {{data, 0}, {data, 32}, 8, 1.0F}};
    struct gate gate;
    put_gate(bench, bench->streams[0][0], &gate);
    push(bench, sides[0],
         (struct device_op){.kind = DEVICE_OP_FILL, .fill = {{data, 0}, 8, DTYPE_F32, 1.0}});
    for (int i = 0; i < BOUNCES; i++) {
        push(bench, sides[i % 2], add);
        device_record(sides[i % 2], events[i % 2], NULL, &bench->diag);
        device_wait(sides[1 - i % 2], events[i % 2], NULL, &bench->diag);
    }
    tap_is_int(device_stream_sync(sides[0], late(bench), &bench->diag), STATUS_OK,
               "a stream whose last entry is a wait ends");
    tap_is_int(device_stream_sync(sides[1], late(bench), &bench->diag), STATUS_OK,
               "the other one, too");
    sem_post(&gate.open);
    tap_is_int((int)((float *)download(bench, 0, data, 64))[8], BOUNCES,
               "no step was lost or done beside another");
}

static void *sync_first(void *arg)
{
    struct bench *bench = arg;
    return (void *)(intptr_t)device_stream_sync(bench->streams[0][0], late(bench), NULL);
}

/* A sync from before the wait came to the head, with nothing behind it. */
static void test_sync_before_wait(struct bench *bench)
{
    struct device_event *ready = event(bench, 0);
    struct gate first, second, behind;
    pthread_t thread;
    void *status = NULL;
    put_gate(bench, bench->streams[0][1], &second);
    device_record(bench->streams[0][1], ready, NULL, &bench->diag);
    put_gate(bench, bench->streams[0][1], &behind);
    put_gate(bench, bench->streams[0][0], &first);
    device_wait(bench->streams[0][0], ready, NULL, &bench->diag);
    pthread_create(&thread, NULL, sync_first, bench);
    nap();
    sem_post(&first.open);
    nap();
    sem_post(&second.open);
    pthread_join(thread, &status);
    tap_is_int((int)(intptr_t)status, STATUS_OK,
               "a sync ends with the wait at the end of a stream");
    sem_post(&behind.open);
    device_sync(bench->ranks[0], late(bench), &bench->diag);
}

/* ---- wakes: N threads that each wait for another thing sleep some N times together, not N * N ---------- */

enum { MANY = 200, SLEEPS_A_WAIT = 10 };

struct awaiting {
    struct bench *bench;
    struct device_event *event;
    atomic_bool over;
    sem_t back;
    pthread_t thread;
};

static void *await_one(void *arg)
{
    struct awaiting *waits = arg;
    if (device_event_sync(waits->event, late(waits->bench), NULL) == STATUS_OK)
        atomic_store(&waits->over, true);
    sem_post(&waits->back);
    return NULL;
}

static long sleeps_so_far(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
}

static void is_linear(long sleeps, int waits, const char *what)
{
    tap_note("%d waits: slept %ld times", waits, sleeps);
    tap_ok(sleeps < (long)SLEEPS_A_WAIT * waits, "%s", what);
}

/* Many host threads wait for one stream, each for an event of its own behind a gate of its own. */
static void test_many_waiters(struct bench *bench)
{
    static struct awaiting waits[MANY];
    static struct gate gates[MANY];
    struct device_stream *stream = bench->streams[0][0];
    bool in_order = true;
    for (int i = 0; i < MANY; i++) {
        waits[i] = (struct awaiting){.bench = bench};
        sem_init(&waits[i].back, 0, 0);
        put_gate(bench, stream, &gates[i]);
        if (device_event_open(bench->ranks[0], &waits[i].event, &bench->diag))
            give_up(bench);
        device_record(stream, waits[i].event, NULL, &bench->diag);
    }
    for (int i = MANY; i-- > 0;) /* not in the order in which they will be woken */
        if (pthread_create(&waits[i].thread, NULL, await_one, &waits[i]))
            abort();
    nap();
    const long before = sleeps_so_far();
    for (int i = 0; i < MANY; i++) {
        sem_post(&gates[i].open);
        sem_wait(&waits[i].back);
        in_order &= atomic_load(&waits[i].over) && (i + 1 == MANY || !waits[i + 1].over);
    }
    is_linear(sleeps_so_far() - before, MANY, "what one thread waits for wakes no other");
    tap_ok(in_order, "each is back when its own event is over");
    for (int i = 0; i < MANY; i++) {
        pthread_join(waits[i].thread, NULL);
        device_event_close(waits[i].event);
        sem_destroy(&waits[i].back);
    }
}

/* The device's own threads: each of many streams waits for its turn on a communicator, then for a residency slot. */
static void test_many_turns(struct device_config config)
{
    enum { STREAMS = 100 };
    static struct gate gates[STREAMS];
    struct device_stream *streams[STREAMS];
    struct device_comm *comms[1];
    struct bench bench;
    config.ranks = 1;
    config.sm_slots = 1;
    for (int slots = 0; slots < 2; slots++) {
        const struct device_op hold = {.kind = DEVICE_OP_SPIN, .time_ns = 10 * SHORT_NS, .sm = 1};
        const struct device_op brief = {.kind = DEVICE_OP_SPIN, .time_ns = 200000, .sm = 1};
        if (!bench_open(&bench, config))
            return;
        open_comm(&bench, "self", 1, comms);
        for (int i = 0; i < STREAMS; i++)
            streams[i] = open_stream(&bench, "many");
        if (slots)
            push(&bench, bench.streams[0][0], hold);
        for (int i = 0; i < STREAMS; i++) {
            struct device_op turn = barrier(comms[0], NULL);
            turn.time_ns = 1; /* so that a thread serves it */
            put_gate(&bench, streams[i], &gates[i]);
            push(&bench, streams[i], slots ? brief : turn);
        }
        for (int i = STREAMS; i-- > 1;)
            sem_post(&gates[i].open);
        nap();
        const long before = sleeps_so_far();
        sem_post(&gates[0].open);
        tap_is_int(device_sync(bench.ranks[0], late(&bench), &bench.diag), STATUS_OK,
                   "%d streams take turns", STREAMS);
        is_linear(sleeps_so_far() - before, STREAMS,
                  slots ? "a free slot wakes one stream"
                        : "a turn wakes the stream whose turn it is");
        for (int i = 0; i < STREAMS; i++)
            device_stream_close(streams[i]);
        bench_close(&bench);
    }
}

/* Half of the ranks of a communicator wait, each for a message of one other rank. */
static void test_many_messages(struct device_config config)
{
    enum { RANKS = 128, HALF = RANKS / 2, BYTES = 64 };
    struct device_world *world;
    struct device *ranks[RANKS];
    struct device_stream *streams[RANKS];
    struct device_comm *comms[RANKS];
    struct device_buffer *data[RANKS];
    int members[RANKS], failed = 0;
    struct diag diag;
    diag_init(&diag);
    config.ranks = RANKS;
    if (device_world_open(&config, &world, &diag))
        abort();
    for (int rank = 0; rank < RANKS; rank++)
        members[rank] = rank;
    for (int rank = 0; rank < RANKS; rank++)
        if (device_open(world, rank, &ranks[rank], &diag) ||
            device_stream_open(ranks[rank], "p2p", &streams[rank], &diag) ||
            device_comm_open(ranks[rank], "pairs", members, RANKS, &comms[rank], &diag) ||
            device_alloc(ranks[rank], MEMORY_DEVICE, BYTES, &data[rank], &diag))
            abort();
    long before = 0;
    for (int rank = 0; rank < RANKS; rank++) {
        if (rank == HALF) {
            nap();
            before = sleeps_so_far();
        }
        struct device_p2p part = {rank >= HALF, (rank + HALF) % RANKS, "x", 0,
                                  BYTES,        {data[rank], 0}};
        const struct device_op op = {.kind = DEVICE_OP_GROUP, .group = {comms[rank], &part, 1}};
        failed += device_push(streams[rank], &op, NULL, &diag) != STATUS_OK;
        if (rank >= HALF) /* one pair after the other */
            failed += device_stream_sync(streams[rank - HALF], device_now(world) + LONG_NS,
                                         &diag) != STATUS_OK;
    }
    is_linear(sleeps_so_far() - before, HALF, "a message wakes who receives it");
    tap_is_int(failed, 0, "%d messages came", HALF);
    for (int rank = 0; rank < RANKS; rank++) {
        device_stream_close(streams[rank]);
        device_comm_close(comms[rank]);
        device_free(data[rank]);
    }
    for (int rank = 0; rank < RANKS; rank++)
        device_close(ranks[rank]);
    device_world_close(world);
    diag_fini(&diag);
}

static void *close_stream(void *arg)
{
    device_stream_close(arg);
    return NULL;
}

/* Closing waits for what is pending; the events of a closed stream stay. */
static void test_close_pending(struct bench *bench)
{
    struct trail trail = TRAIL_INIT;
    struct step a = {&trail, 'a'}, b = {&trail, 'b'};
    struct device_event *ready = event(bench, 0), *done = event(bench, 0);
    struct device_stream *closing = open_stream(bench, "closing");
    struct timespec until;
    struct gate gate;
    pthread_t thread;
    char text[64];
    put_gate(bench, bench->streams[0][1], &gate);
    device_record(bench->streams[0][1], ready, NULL, &bench->diag);
    put_step(bench, closing, &a);
    device_wait(closing, ready, NULL, &bench->diag);
    put_step(bench, closing, &b);
    device_record(closing, done, NULL, &bench->diag);
    pthread_create(&thread, NULL, close_stream, closing);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += SHORT_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    tap_ok(pthread_timedjoin_np(thread, NULL, &until) != 0, "closing waits for pending work");
    sem_post(&gate.open);
    pthread_join(thread, NULL);
    tap_is_str(read_trail(&trail, text), "ab", "which is done then");
    device_wait(bench->streams[0][2], done, NULL, &bench->diag);
    tap_is_int(device_stream_sync(bench->streams[0][2], late(bench), &bench->diag), STATUS_OK,
               "an event of a closed stream can be waited for");
}

/* Streams that come and go while another one is blocked. */
static void test_reopened(struct bench *bench)
{
    struct trail trail = TRAIL_INIT;
    struct step step = {&trail, 'x'};
    struct gate gate;
    char text[64];
    put_gate(bench, bench->streams[0][0], &gate);
    for (int i = 0; i < 20; i++) {
        struct device_stream *stream = open_stream(bench, "again");
        put_step(bench, stream, &step);
        device_stream_close(stream);
    }
    tap_is_int((int)strlen(read_trail(&trail, text)), 20, "twenty streams are opened and closed");
    sem_post(&gate.open);
    device_sync(bench->ranks[0], late(bench), &bench->diag);
}

/* ---- many threads at once -------------------------------------------------------------------- */

struct trainer {
    struct bench *bench;
    int rank;
    struct device_comm *comm;
    struct device_buffer *weights, *gradient;
    struct device_event *ready, *reduced;
    struct stamp stamps[3];
    struct diag diag; /* its own: a diag is for one thread */
    enum status status;
};

/* A training loop: compute on one stream, reduce on another, events both ways. */
static void *train(void *arg)
{
    enum { STEPS = 60, COUNT = 256 };
    struct trainer *self = arg;
    struct device_stream *compute = self->bench->streams[self->rank][0];
    struct device_stream *reduce = self->bench->streams[self->rank][1];
    struct device_op fill = {.kind = DEVICE_OP_FILL,
                             .fill = {{self->gradient, 0}, COUNT, DTYPE_F32, 1.0}};
    struct device_op sum = {.kind = DEVICE_OP_COLLECTIVE,
                            .collective = {.comm = self->comm,
                                           .kind = COLLECTIVE_ALL_REDUCE,
                                           .bytes = COUNT * sizeof(float),
                                           .send = {self->gradient, 0},
                                           .recv = {self->gradient, 0}}};
    struct device_op step = {.kind = DEVICE_OP_AXPY,
                             .axpy = {{self->gradient, 0}, {self->weights, 0}, COUNT, 1.0F}};
    struct stamp *stamps = self->stamps;
    for (int i = 0; i < STEPS && !self->status; i++) {
        enum status status = device_push(compute, &fill, &stamps[0], &self->diag);
        if (!status)
            status = device_record(compute, self->ready, NULL, &self->diag);
        if (!status)
            status = device_wait(reduce, self->ready, NULL, &self->diag);
        if (!status)
            status = device_push(reduce, &sum, &stamps[1], &self->diag);
        if (!status)
            status = device_record(reduce, self->reduced, NULL, &self->diag);
        if (!status)
            status = device_wait(compute, self->reduced, NULL, &self->diag);
        if (!status)
            status = device_push(compute, &step, &stamps[2], &self->diag);
        if (!status)
            status = device_stream_sync(compute, late(self->bench), NULL);
        if (!status)
            status = device_collect(self->bench->ranks[self->rank], &self->diag);
        if (!status &&
            (stamps[0].end_ns > stamps[1].start_ns || stamps[1].end_ns > stamps[2].start_ns))
            status = STATUS_VIOLATED;
        self->status = status;
    }
    return NULL;
}

static void test_training(struct bench *bench, int count)
{
    struct device_comm *comms[MAX_RANKS];
    static struct trainer trainers[MAX_RANKS]; /* their stamps live as long as the devices */
    pthread_t threads[MAX_RANKS];
    open_comm(bench, "grad", count, comms);
    for (int rank = 0; rank < count; rank++) {
        if (!here(bench, rank))
            continue;
        trainers[rank] = (struct trainer){.bench = bench,
                                          .rank = rank,
                                          .comm = comms[rank],
                                          .weights = buffer(bench, rank, MEMORY_DEVICE, 1024),
                                          .gradient = buffer(bench, rank, MEMORY_DEVICE, 1024),
                                          .ready = event(bench, rank),
                                          .reduced = event(bench, rank)};
    }
    for (int rank = 0; rank < count; rank++)
        if (here(bench, rank))
            pthread_create(&threads[rank], NULL, train, &trainers[rank]);
    int errors = 0;
    for (int rank = 0; rank < count; rank++) {
        if (!here(bench, rank))
            continue;
        pthread_join(threads[rank], NULL);
        errors += trainers[rank].status != STATUS_OK;
        diag_fini(&trainers[rank].diag);
    }
    for (int rank = 0; rank < count; rank++) {
        if (!here(bench, rank))
            continue;
        const float *weights = download(bench, rank, trainers[rank].weights, 1024);
        errors += (int)weights[0] != 60 * count || (int)weights[255] != 60 * count;
    }
    tap_is_int(errors, 0, "60 steps of %d ranks from %d threads", count, count);
}

/* Ranks that brought different collectives, where nobody tells them: an abort ends it. */
static void test_silent_mismatch(struct bench *bench)
{
    enum { BYTES = 1 << 20 };
    struct device_comm *comms[MAX_RANKS];
    struct stamp stamp;
    open_comm(bench, "dp", 2, comms);
    for (int rank = 0; rank < 2; rank++) {
        if (!here(bench, rank))
            continue;
        struct device_buffer *data = buffer(bench, rank, MEMORY_DEVICE, BYTES);
        struct device_op op = {
            .kind = DEVICE_OP_COLLECTIVE,
            .collective = {.comm = comms[rank],
                           .kind = rank ? COLLECTIVE_ALL_REDUCE : COLLECTIVE_ALL_GATHER,
                           .tag = "bad",
                           .bytes = BYTES,
                           .send = {data, 0},
                           .recv = {data, 0}}};
        device_push(bench->streams[rank][0], &op, &stamp, &bench->diag);
        if (rank == 0) {
            tap_is_int(device_stream_sync(bench->streams[rank][0], soon(bench), &bench->diag),
                       STATUS_LIMIT, "a mismatch is a hang");
            device_world_explain(bench->world, &bench->diag);
            tap_ok(strstr(last_message(bench), "'bad' on communicator dp") != NULL,
                   "and can be explained: %s", last_message(bench));
            device_world_abort(bench->world, "hung");
        }
        tap_is_int(device_stream_sync(bench->streams[rank][0], late(bench), &bench->diag),
                   STATUS_VIOLATED, "an abort ends it");
    }
}

/* Each rank is blocked in a communicator that the other has not come to, with the other communicator behind
   it on the same stream: an abort must end both, whichever it tells first. */
static void test_two_comms(struct bench *bench)
{
    struct device_comm *a[MAX_RANKS], *b[MAX_RANKS];
    open_comm(bench, "A", bench->rank_count, a);
    open_comm(bench, "B", bench->rank_count, b);
    for (int rank = 0; rank < bench->rank_count; rank++) {
        if (!here(bench, rank))
            continue;
        push(bench, bench->streams[rank][0], barrier(rank ? a[rank] : b[rank], "x"));
        push(bench, bench->streams[rank][0], barrier(rank ? b[rank] : a[rank], "y"));
        if (rank == 0) {
            tap_is_int(device_stream_sync(bench->streams[rank][0], soon(bench), &bench->diag),
                       STATUS_LIMIT, "two communicators in opposite order on one stream hang");
            device_world_abort(bench->world, "hung");
        }
        tap_is_int(device_stream_sync(bench->streams[rank][0], late(bench), &bench->diag),
                   STATUS_VIOLATED, "an abort ends them");
    }
}

/* The first message of a pair of ranks must not hold a push up until the peer pushes its own. */
static void test_first_use(struct bench *bench)
{
    struct device_comm *comms[MAX_RANKS];
    open_comm(bench, "pp", 2, comms);
    for (int rank = 0; rank < 2; rank++) {
        if (!here(bench, rank))
            continue;
        struct device_buffer *data = buffer(bench, rank, MEMORY_DEVICE, 64);
        struct device_p2p send = {true, 1 - rank, "x", 0, 32, {data, 0}};
        struct device_p2p receive = {false, 1 - rank, "x", 0, 32, {data, 32}};
        push(bench, bench->streams[rank][0],
             (struct device_op){.kind = DEVICE_OP_GROUP, .group = {comms[rank], &send, 1}});
        push(bench, bench->streams[rank][0],
             (struct device_op){.kind = DEVICE_OP_GROUP, .group = {comms[rank], &receive, 1}});
        tap_ok(1, "rank %d: both are pushed", rank);
        nap();
        if (rank == 0)
            device_world_abort(bench->world, "hung, or not");
        device_stream_sync(bench->streams[rank][0], late(bench), NULL);
    }
}

/* ---- the suite ------------------------------------------------------------------------------- */

static void run_fresh(const struct device_config *config, void (*test)(struct bench *bench))
{
    struct bench bench;
    if (!bench_open(&bench, *config))
        return;
    test(&bench);
    bench_close(&bench);
}

/* A GPU may be there without NCCL. */
static bool communicates(struct bench *bench)
{
    int self = 0;
    struct device_comm *comm = NULL;
    enum status status = device_comm_open(bench->ranks[0], "try", &self, 1, &comm, &bench->diag);
    device_comm_close(comm);
    return status == STATUS_OK;
}

static void single_rank(struct device_config config)
{
    static void (*const tests[])(struct bench *) = {
        test_fifo,          test_event_order, test_event_snapshot, test_record_after_wait,
        test_event_numbers, test_copies,      test_gemm,           test_gather,
        test_axpy_fill,     test_dense,       test_unused_memory,  test_stamps,
        test_deadline,      test_refusals,    test_injection,      test_abort,
        test_graph,         test_graph_waits, test_graph_collect,  test_graph_refusals,
        test_graph_failure, test_graph_abort,
    };
    config.ranks = 1;
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        run_fresh(&config, tests[i]);
    struct bench bench;
    bool communicating = false;
    if (!bench_open(&bench, config))
        return;
    if (communicates(&bench)) {
        test_collectives(&bench, 1);
        test_self_group(&bench);
        communicating = true;
    } else {
        tap_skip(last_message(&bench));
    }
    bench_close(&bench);
    if (communicating) {
        run_fresh(&config, test_graph_comms);
        run_fresh(&config, test_graph_small_comms);
    }
}

/* CUDA may run the host functions of all streams one after another. */
static void test_servers(struct device_config config)
{
    static void (*const tests[])(struct bench *) = {
        test_long_task,     test_all_blocked, test_bounces,      test_sync_before_wait,
        test_close_pending, test_reopened,    test_many_streams, test_many_waiters};
    config.ranks = 1;
    test_many_turns(config);
    test_many_messages(config);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        run_fresh(&config, tests[i]);
}

static void several_ranks(struct device_config config)
{
    struct bench bench;
    for (int count = 2; count <= MAX_RANKS; count++) {
        config.ranks = count;
        if (!bench_open(&bench, config))
            return;
        test_collectives(&bench, count);
        test_ring(&bench, count);
        test_training(&bench, count);
        bench_close(&bench);
        run_fresh(&config, test_graph_comms);
        run_fresh(&config, test_graph_small_comms);
    }
    run_fresh(&config, test_turns);
    run_fresh(&config, test_abort);
    if (config.kind == DEVICE_KIND_HOST) {
        run_fresh(&config, test_marks);
        run_fresh(&config, test_queues);
        run_fresh(&config, test_left);
    }
    config.ranks = 2;
    test_mismatch(&config);
    test_p2p_mismatch(&config);
    test_send_send(&config);
    test_slots(config, 0);
    test_slots(config, 1);
    test_slots(config, 2);
    test_launch_queue(config);
}

/* ---- work of the user's that hangs: cuda ------------------------------------------------------ */

static void *close_bench(void *arg)
{
    bench_close(arg);
    return NULL;
}

/* A host function of the user's that does not come back: only the process's end frees what waits for it. */
static void test_user_hangs(struct device_config config)
{
    static struct gate gate; /* looked at behind the test's end */
    struct device_comm *comms[MAX_RANKS];
    struct bench bench;
    struct timespec until;
    pthread_t thread;
    if (!bench_open(&bench, config))
        return;
    buffer(&bench, config.first_rank, MEMORY_DEVICE, 4096);
    buffer(&bench, config.first_rank, MEMORY_PINNED, 4096);
    if (config.ranks > 1)
        open_comm(&bench, "dp", config.ranks, comms);
    put_gate(&bench, bench.streams[config.first_rank][0], &gate);
    if (config.rendezvous && /* no abort before all have opened theirs */
        rendezvous_barrier(config.rendezvous, INT64_MAX, &bench.diag))
        give_up(&bench);
    device_world_abort(bench.world, "the user's work hangs");
    pthread_create(&thread, NULL, close_bench, &bench);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    const bool closed = pthread_timedjoin_np(thread, NULL, &until) == 0;
    tap_ok(closed, "an aborted device is closed while work of the user's hangs");
    sem_post(&gate.open);
    if (!closed)
        pthread_join(thread, NULL);
}

/* ---- ranks in several processes -------------------------------------------------------------- */

/* The course of each process; worlds are opened in the same order by all. */
static void spread_ranks(enum device_kind kind, struct rendezvous *rendezvous, int ranks)
{
    int local = ranks / rendezvous_size(rendezvous);
    struct device_config config = {.kind = kind,
                                   .ranks = ranks,
                                   .first_rank = rendezvous_rank(rendezvous) * local,
                                   .local_ranks = local,
                                   .rendezvous = rendezvous,
                                   .own_process = true};
    struct bench bench;
    if (!bench_open(&bench, config))
        return;
    test_collectives(&bench, ranks);
    test_ring(&bench, ranks);
    test_training(&bench, ranks);
    bench_close(&bench);
    run_fresh(&config, test_graph_comms);
    run_fresh(&config, test_graph_small_comms);
    run_fresh(&config, test_abort);
    if (kind == DEVICE_KIND_HOST) {
        run_fresh(&config, test_queues);
        run_fresh(&config, test_left);
    }
    run_fresh(&config, test_two_comms);
    if (ranks > 2)
        return;
    if (kind == DEVICE_KIND_HOST) {
        test_mismatch(&config);
        test_p2p_mismatch(&config);
        test_send_send(&config);
    } else {
        run_fresh(&config, test_silent_mismatch);
        run_fresh(&config, test_first_use);
        test_user_hangs(config);
    }
}

/* A process of it: its lines go to `lines`. Never returns. */
static void be_process(enum device_kind kind, struct broker *broker, int process, int ranks,
                       int lines)
{
    struct rendezvous *rendezvous = NULL;
    struct diag diag;
    diag_init(&diag);
    int socket = broker_inherit(broker, process);
    dup2(lines, STDOUT_FILENO);
    tap_forget();
    if (rendezvous_join(socket, process, RENDEZVOUS_FOREVER, &rendezvous, &diag))
        tap_ok(0, "process %d joins: %s", process, diag.count ? diag.messages[0].text : "?");
    else
        spread_ranks(kind, rendezvous, ranks);
    rendezvous_leave(rendezvous);
    diag_fini(&diag);
    int code = tap_done();
    fflush(stdout);
    _exit(code);
}

/* The lines of a process that did not pass become notes of ours. */
static void show_lines(int lines)
{
    char line[600];
    FILE *file = lseek(lines, 0, SEEK_SET) == 0 ? fdopen(lines, "r") : NULL;
    while (file && fgets(line, sizeof line, file))
        tap_note("%.*s", (int)strcspn(line, "\n"), line);
    if (file)
        fclose(file);
}

static void several_processes(enum device_kind kind, int processes, int ranks)
{
    struct broker *broker = NULL;
    struct diag diag;
    pid_t pids[MAX_RANKS];
    int lines[MAX_RANKS];
    diag_init(&diag);
    if (broker_open(processes, &broker, &diag))
        abort();
    fflush(stdout);
    for (int i = 0; i < processes; i++)
        if (broker_invite(broker, i, &diag))
            abort();
    for (int i = 0; i < processes; i++) {
        lines[i] = memfd_create("lines", 0);
        pids[i] = fork();
        if (pids[i] == 0)
            be_process(kind, broker, i, ranks, lines[i]);
    }
    if (broker_start(broker, &diag))
        abort();
    for (int i = 0; i < processes; i++) {
        int status = -1;
        waitpid(pids[i], &status, 0);
        tap_is_int(status, 0, "%s, %d ranks in %d processes: process %d", device_kind_key(kind),
                   ranks, processes, i);
        if (status == 0)
            close(lines[i]);
        else
            show_lines(lines[i]);
    }
    broker_close(broker);
    diag_fini(&diag);
}

/* Does this device open here? If not, `why`. */
static bool available(const struct device_config *config, struct diag *why)
{
    struct device_world *world;
    struct device *device = NULL;
    if (device_world_open(config, &world, why))
        return false;
    enum status status = device_open(world, 0, &device, why);
    if (!status)
        tap_note("%s", device_description(device));
    device_close(device);
    device_world_close(world);
    return status == STATUS_OK;
}

/* Likewise, asked by a process that ends then: a driver that has been called does not work in a fork. */
static bool available_to_others(const struct device_config *config)
{
    int status = -1;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct diag ignored;
        diag_init(&ignored);
        bool yes = available(config, &ignored);
        _exit(yes ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    return status == 0;
}

static void test_kind(enum device_kind kind, bool needed, bool alone)
{
    struct device_config config = {.kind = kind, .ranks = 1};
    struct diag why;
    diag_init(&why);
    tap_note("device %s", device_kind_key(kind));
    if (alone ? available(&config, &why) : available_to_others(&config)) {
        for (int ranks = 2; ranks <= MAX_RANKS && !alone; ranks += 2)
            several_processes(kind, ranks, ranks);
        if (kind == DEVICE_KIND_HOST && !alone)
            several_processes(kind, 2, 4); /* more than a rank a process */
        if (alone || available(&config, &why))
            single_rank(config);
        if (kind == DEVICE_KIND_HOST) {
            test_servers(config);
            several_ranks(config);
        }
        if (kind == DEVICE_KIND_CUDA)
            test_user_hangs(config); /* the last, because its host function may hold others up */
    } else {
        tap_ok(!available(&config, &why) && !needed, "a device may be missing");
        tap_skip(why.count ? why.messages[0].text : "no reason given");
    }
    diag_fini(&why);
}

int main(int argc, char **argv)
{
    for (enum device_kind kind = DEVICE_KIND_HOST; kind <= DEVICE_KIND_CUDA; kind++)
        if (argc < 2 || strcmp(argv[1], device_kind_key(kind)) == 0)
            test_kind(kind, argc > 1 || kind == DEVICE_KIND_HOST, argc > 2);
    return tap_done();
}
