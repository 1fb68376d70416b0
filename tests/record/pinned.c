/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pinned.c - accesses of the host to pinned memory that devices use, for `swsim record --host-accesses`: `pinned CASE` has a
 * mistake and goes well, `pinned CASE fixed` has none.
 */
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#include "small.h"

static float *pinned;

static float read_first(void)
{
    return *(const volatile float *)pinned;
}

static void write_first(float value)
{
    *(volatile float *)pinned = value;
}

static void copy_out(cudaStream_t stream)
{
    CHECK(cudaMemcpyAsync(pinned, x, BYTES, cudaMemcpyDeviceToHost, stream));
}

static void copy_in(float *to, cudaStream_t stream)
{
    CHECK(cudaMemcpyAsync(to, pinned, BYTES, cudaMemcpyHostToDevice, stream));
}

static void expect(float value)
{
    if (read_first() != value)
        exit(1);
}

/* A stream copies the result, another one copies it on, which lets the host read, but not before the first copy. */
static void copied_on(void)
{
    produce(one);
    copy_out(one);
    CHECK(cudaEventRecord(event, one));
    CHECK(cudaStreamWaitEvent(two, event, 0));
    copy_in(z, two);
    if (fixed)
        CHECK(cudaEventSynchronize(event));
    luck();
    expect(1.0F);
}

/* The host may read while the device reads, and then writes. */
static void read_then_write(void)
{
    produce(one);
    copy_out(one);
    CHECK(cudaEventRecord(event, one));
    CHECK(cudaStreamWaitEvent(two, event, 0));
    copy_in(z, two);
    CHECK(cudaEventSynchronize(event));
    expect(1.0F);
    if (fixed)
        CHECK(cudaStreamSynchronize(two));
    luck();
    write_first(2.0F);
}

/* Rows of a rectangle */
enum { ROWS = 4, ROW = BYTES / ROWS };
static void rows_out(void)
{
    produce(one);
    CHECK(cudaMemcpy2DAsync(pinned, ROW, x, ROW, ROW / 2, ROWS, cudaMemcpyDeviceToHost, one));
    if (fixed)
        CHECK(cudaStreamSynchronize(one));
    luck();
    expect(1.0F);
}

static void rows_in(void)
{
    CHECK(cudaMemcpy2DAsync(x, ROW, pinned, ROW, ROW / 2, ROWS, cudaMemcpyHostToDevice, one));
    if (fixed)
        CHECK(cudaStreamSynchronize(one));
    luck();
    write_first(2.0F);
}

/* Kernels reach the host's memory. */
static void kernel_writes(void)
{
    CHECK(kernels_fill_f32(one, pinned, COUNT, 1.0F));
    if (fixed)
        CHECK(cudaStreamSynchronize(one));
    luck();
    expect(1.0F);
}

static void kernel_reads(void)
{
    CHECK(kernels_axpy(one, pinned, y, COUNT, 1.0F));
    if (fixed)
        CHECK(cudaStreamSynchronize(one));
    luck();
    write_first(2.0F);
}

/* Copies of a graph are not seen launch by launch, which the verdict says. */
static void graph(void)
{
    cudaGraph_t captured;
    cudaGraphExec_t executable;
    CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal));
    produce(one);
    copy_out(one);
    CHECK(cudaStreamEndCapture(one, &captured));
    CHECK(cudaGraphInstantiateWithFlags(&executable, captured, 0));
    for (int i = 0; i < 2; i++) {
        CHECK(cudaGraphLaunch(executable, one));
        if (fixed || i == 0)
            CHECK(cudaStreamSynchronize(one));
        luck();
        expect(1.0F);
    }
    CHECK(cudaStreamSynchronize(one));
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(captured));
}

/* Two streams copy a half each. The host waits for one of them and reads both, the second of which is not seen. */
static void halves(void)
{
    produce(one);
    CHECK(cudaEventRecord(event, one));
    CHECK(cudaStreamWaitEvent(two, event, 0));
    CHECK(cudaMemcpyAsync(pinned, x, BYTES / 2, cudaMemcpyDeviceToHost, one));
    CHECK(cudaMemcpyAsync(pinned + COUNT / 2, x, BYTES / 2, cudaMemcpyDeviceToHost, two));
    CHECK(cudaStreamSynchronize(one));
    if (fixed)
        CHECK(cudaStreamSynchronize(two));
    luck();
    if (read_first() + ((const volatile float *)pinned)[COUNT / 2] != 2.0F)
        exit(1);
}

/* One thread reads behind a wait; another one then reads without, which is not seen, so the verdict says so. */
static sem_t seen;
static void *read_in_thread(void *unused)
{
    (void)unused;
    while (sem_wait(&seen) != 0)
        ;
    if (fixed)
        CHECK(cudaEventSynchronize(event));
    luck();
    expect(1.0F);
    return NULL;
}

static void two_threads(void)
{
    pthread_t thread;
    CHECK(sem_init(&seen, 0, 0));
    CHECK(pthread_create(&thread, NULL, read_in_thread, NULL));
    produce(one);
    copy_out(one);
    CHECK(cudaEventRecord(event, one));
    CHECK(sem_post(&seen));
    CHECK(cudaEventSynchronize(event));
    expect(1.0F);
    CHECK(pthread_join(thread, NULL));
}

/* As PyTorch's allocator of pinned memory gives a block away again: when a query has told it that the copy is done. */
static void taken_again(void)
{
    for (int i = 0; i < 3; i++) {
        write_first((float)i);
        copy_in(x, one);
        CHECK(cudaEventRecord(event, one));
        luck();
        if (fixed && cudaEventQuery(event) != cudaSuccess)
            exit(1);
    }
}

/* The same where a thread lists the event under a lock, and another one finds it there and takes the memory. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static bool listed;
static void *take_listed(void *unused)
{
    (void)unused;
    for (int i = 0; i < 5; i++)
        luck();
    pthread_mutex_lock(&list_lock);
    const bool found = listed;
    pthread_mutex_unlock(&list_lock);
    if (!found || (fixed && cudaEventQuery(event) != cudaSuccess))
        exit(1);
    write_first(2.0F);
    return NULL;
}

static void taken_by_another(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, take_listed, NULL));
    copy_in(x, one);
    CHECK(cudaEventRecord(event, one));
    pthread_mutex_lock(&list_lock);
    listed = true;
    pthread_mutex_unlock(&list_lock);
    CHECK(pthread_join(thread, NULL));
}

/* More allocations than are looked at. */
static void many(void)
{
    enum { MANY = 4200 };
    static void *all[MANY];
    for (int i = 0; i < MANY; i++)
        CHECK(cudaHostAlloc(&all[i], 64, 0));
    CHECK(cudaMemcpyAsync(all[MANY - 1], x, 64, cudaMemcpyDeviceToHost, one));
    luck();
    if (((const volatile char *)all[MANY - 1])[0] != 0)
        exit(1);
    CHECK(cudaStreamSynchronize(one));
    for (int i = 0; i < MANY; i++)
        CHECK(cudaFreeHost(all[i]));
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"copied_on", copied_on},
    {"read_then_write", read_then_write},
    {"rows_out", rows_out},
    {"rows_in", rows_in},
    {"kernel_writes", kernel_writes},
    {"kernel_reads", kernel_reads},
    {"graph", graph},
    {"halves", halves},
    {"two_threads", two_threads},
    {"taken_again", taken_again},
    {"taken_by_another", taken_by_another},
    {"many", many},
};

int main(int argc, char **argv)
{
    fixed = argc > 2 && strcmp(argv[2], "fixed") == 0;
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, argv[1]) != 0)
            continue;
        begin(0);
        CHECK(cudaHostAlloc((void **)&pinned, BYTES, 0));
        cases[i].run();
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaFreeHost(pinned));
        end();
        return 0;
    }
    fprintf(stderr, "no such case\n");
    return 2;
}
