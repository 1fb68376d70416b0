/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks.c - what training programs of two ranks do, each a process, for `swsim record`: `ranks CASE` is right,
 * `ranks CASE MISTAKE` goes well all the same, or hangs where the verdict is of that.
 */
#include <nccl.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>

#include "small.h"

enum { RANKS = 2, STEPS = 3, BUCKETS = 3, LAYERS = 4, SHARD = COUNT / RANKS, MICRO_BATCHES = 4 };

static const char *mistake = "";
static int rank;
static ncclComm_t comm, second;

static bool makes(const char *name)
{
    return strcmp(mistake, name) == 0;
}

static cudaEvent_t new_event(void)
{
    cudaEvent_t created;
    CHECK(cudaEventCreateWithFlags(&created, cudaEventDisableTiming));
    return created;
}

static float *new_memory(void)
{
    float *memory;
    CHECK(cudaMalloc((void **)&memory, BYTES));
    CHECK(cudaMemset(memory, 0, BYTES));
    CHECK(cudaDeviceSynchronize());
    return memory;
}

/* ---- gradients, bucket by bucket ------------------------------------------------------------------ */

/* Of a size of its own. */
static void reduce(float *bucket, int number)
{
    CHECK(ncclAllReduce(bucket, bucket, (size_t)(number + 1) * 16, ncclFloat, ncclSum, comm, two));
}

/* The first stream computes, the second one reduces: a bucket behind its gradients, and the optimizer behind all buckets. */
static void buckets(void)
{
    float *gradients[BUCKETS];
    cudaEvent_t ready[BUCKETS], reduced = new_event();
    for (int i = 0; i < BUCKETS; i++)
        gradients[i] = new_memory(), ready[i] = new_event();
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < BUCKETS; i++) {
            fill(one, gradients[i]);
            luck();
            CHECK(cudaEventRecord(ready[i], one));
            if (!makes("bucket_not_ready"))
                CHECK(cudaStreamWaitEvent(two, ready[i], 0));
            if (!makes("other_order"))
                reduce(gradients[i], i);
        }
        for (int i = 0; makes("other_order") && i < BUCKETS; i++)
            reduce(gradients[rank == 0 ? i : BUCKETS - 1 - i], rank == 0 ? i : BUCKETS - 1 - i);
        CHECK(cudaEventRecord(reduced, two));
        if (!makes("optimizer_too_early"))
            CHECK(cudaStreamWaitEvent(one, reduced, 0));
        luck();
        luck();
        for (int i = 0; i < BUCKETS; i++)
            add_to(one, gradients[i], y);
    }
}

/* ---- shards that are gathered ahead --------------------------------------------------------------- */

/* Layer by layer the second stream gathers what the first one computes with, into two buffers by turns. The host lets no more
   than two be in flight. */
static void shards(void)
{
    float *full[2] = {new_memory(), new_memory()};
    cudaEvent_t gathered[2] = {new_event(), new_event()}, done[2] = {new_event(), new_event()};
    for (int layer = 0; layer < LAYERS; layer++) {
        const int slot = layer % 2;
        if (layer >= 2 && !makes("no_limit"))
            CHECK(cudaEventSynchronize(makes("waits_for_gathered") ? gathered[slot] : done[slot]));
        CHECK(ncclAllGather(x, full[slot], SHARD, ncclFloat, comm, two));
        CHECK(cudaEventRecord(gathered[slot], two));
        luck();
        if (!makes("computes_too_early"))
            CHECK(cudaStreamWaitEvent(one, gathered[slot], 0));
        add_to(one, full[slot], y);
        CHECK(cudaEventRecord(done[slot], one));
        luck();
    }
}

/* ---- stages --------------------------------------------------------------------------------------- */

static float *activation, *gradient;

static void send(const float *from, ncclComm_t on, cudaStream_t stream)
{
    CHECK(ncclSend(from, COUNT, ncclFloat, 1 - rank, on, stream));
}

static void receive(float *to, ncclComm_t on, cudaStream_t stream)
{
    CHECK(ncclRecv(to, COUNT, ncclFloat, 1 - rank, on, stream));
}

static void forward(void)
{
    if (rank == 0)
        fill(one, activation);
    else
        add_to(one, activation, y);
}

static void backward(void)
{
    if (rank == 1)
        fill(one, gradient);
    else
        add_to(one, gradient, y);
}

/* One forward, one backward: the first stage is a forward ahead, and then sends and receives by one call. */
static void first_stage(void)
{
    forward();
    send(activation, comm, one);
    for (int i = 1; i <= MICRO_BATCHES; i++) {
        if (i < MICRO_BATCHES)
            forward();
        if (makes("gradient_first") || makes("each_waits")) {
            receive(gradient, comm, one);
            if (i < MICRO_BATCHES)
                send(activation, comm, one);
        } else {
            if (!makes("no_group"))
                CHECK(ncclGroupStart());
            if (i < MICRO_BATCHES)
                send(activation, comm, one);
            receive(gradient, comm, one);
            if (!makes("no_group"))
                CHECK(ncclGroupEnd());
        }
        backward();
    }
}

static void second_stage(void)
{
    receive(activation, comm, one);
    for (int i = 1; i <= MICRO_BATCHES; i++) {
        forward();
        backward();
        if ((makes("activation_first") || makes("each_waits")) && i < MICRO_BATCHES) {
            receive(activation, comm, one);
            send(gradient, comm, one);
            continue;
        }
        if (!makes("no_group"))
            CHECK(ncclGroupStart());
        if (makes("one_more") || i < MICRO_BATCHES)
            receive(activation, comm, one);
        send(gradient, comm, one);
        if (!makes("no_group"))
            CHECK(ncclGroupEnd());
    }
}

static void stages(void)
{
    activation = new_memory();
    gradient = new_memory();
    (rank == 0 ? first_stage : second_stage)();
}

/* Receives on a stream of their own: the next one overwrites what is still computed with. */
static void received_ahead(void)
{
    cudaEvent_t there[2] = {new_event(), new_event()}, used[2] = {new_event(), new_event()};
    float *slots[2] = {new_memory(), new_memory()};
    for (int i = 0; i < MICRO_BATCHES; i++) {
        if (rank == 0) {
            fill(one, slots[i % 2]);
            send(slots[i % 2], comm, one);
            continue;
        }
        if (i >= 2 && !makes("overwritten"))
            CHECK(cudaStreamWaitEvent(two, used[i % 2], 0));
        receive(slots[i % 2], comm, two);
        CHECK(cudaEventRecord(there[i % 2], two));
        luck();
        if (!makes("used_too_early"))
            CHECK(cudaStreamWaitEvent(one, there[i % 2], 0));
        add_to(one, slots[i % 2], y);
        CHECK(cudaEventRecord(used[i % 2], one));
        luck();
    }
}

/* ---- two communicators ---------------------------------------------------------------------------- */

/* One for gradients, one for activations, each on a stream of its own: one of them may have the room that the other one needs,
   unless events order them in the same way on all ranks. */
static void communicators(void)
{
    const bool swapped = (makes("other_order") || makes("no_events_other_order")) && rank == 1;
    for (int step = 0; step < STEPS; step++) {
        const cudaStream_t streams[] = {one, two};
        const ncclComm_t comms[] = {comm, second};
        float *const outs[] = {y, z};
        for (int i = 0; i < 2; i++) {
            const int k = swapped ? 1 - i : i;
            if (!makes("no_events") && !makes("no_events_other_order") && (i > 0 || step > 0))
                order(streams[1 - k], event, streams[k]);
            CHECK(ncclAllReduce(x, outs[k], 16, ncclFloat, ncclSum, comms[k], streams[k]));
        }
    }
}

/* ---- a thread that looks after collectives -------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static cudaEvent_t works[STEPS];
static int begun, found_done;

/* It asks until the oldest collective is done, and tells. */
static void *watch(void *unused)
{
    (void)unused;
    for (int i = 0; i < STEPS; i++) {
        CHECK(pthread_mutex_lock(&lock));
        while (begun <= i)
            CHECK(pthread_cond_wait(&changed, &lock));
        CHECK(pthread_mutex_unlock(&lock));
        while (cudaEventQuery(works[i]) != cudaSuccess)
            usleep(1000);
        CHECK(pthread_mutex_lock(&lock));
        found_done = i + 1;
        CHECK(pthread_cond_signal(&changed));
        CHECK(pthread_mutex_unlock(&lock));
    }
    return NULL;
}

static void tell_begun(void)
{
    CHECK(pthread_mutex_lock(&lock));
    begun++;
    CHECK(pthread_cond_signal(&changed));
    CHECK(pthread_mutex_unlock(&lock));
}

static void await_done(int step)
{
    CHECK(pthread_mutex_lock(&lock));
    while (found_done <= step)
        CHECK(pthread_cond_wait(&changed, &lock));
    CHECK(pthread_mutex_unlock(&lock));
}

static void watched(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, watch, NULL));
    for (int i = 0; i < STEPS; i++) {
        CHECK(ncclAllReduce(x, y, COUNT, ncclFloat, ncclSum, comm, two));
        works[i] = new_event();
        CHECK(cudaEventRecord(works[i], two));
        tell_begun();
        luck();
        if (!makes("not_heard"))
            await_done(i);
        add_to(one, y, z);
        CHECK(cudaEventRecord(event, one));
        CHECK(cudaStreamWaitEvent(two, event, 0));
    }
    CHECK(pthread_join(thread, NULL));
}

/* ---- all of them ---------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"buckets", buckets},
    {"shards", shards},
    {"stages", stages},
    {"received_ahead", received_ahead},
    {"communicators", communicators},
    {"watched", watched},
};

static void run_rank(const ncclUniqueId ids[2], void (*run)(void))
{
    begin(rank);
    CHECK(ncclCommInitRank(&comm, RANKS, ids[0], rank));
    CHECK(ncclCommInitRank(&second, RANKS, ids[1], rank));
    CHECK(ncclAllReduce(x, y, 16, ncclFloat, ncclSum, comm, one)); /* connects, which waits */
    CHECK(ncclAllReduce(x, y, 16, ncclFloat, ncclSum, second, one));
    CHECK(cudaStreamSynchronize(one));
    run();
    end();
    CHECK(ncclCommDestroy(second));
    CHECK(ncclCommDestroy(comm));
}

static int run_ranks(void (*run)(void))
{
    ncclUniqueId ids[2];
    int failed = 0;
    CHECK(ncclGetUniqueId(&ids[0]));
    CHECK(ncclGetUniqueId(&ids[1]));
    for (rank = 0; rank < RANKS; rank++)
        if (fork() == 0) {
            alarm(10); /* a run that hangs */
            run_rank(ids, run);
            exit(0);
        }
    for (int how, i = 0; i < RANKS; i++)
        failed |= wait(&how) < 0 || how != 0;
    return failed;
}

int main(int argc, char **argv)
{
    mistake = argc > 2 ? argv[2] : "";
    fixed = !*mistake;
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++)
        if (strcmp(cases[i].name, argv[1]) == 0)
            return run_ranks(cases[i].run);
    fprintf(stderr, "no such case\n");
    return 2;
}
