/* SPDX-License-Identifier: Apache-2.0 */
/*
 * training.c - what training programs do, each in a few lines, for `swsim record`: `training CASE` is right,
 * `training CASE MISTAKE` goes well all the same. The exit status is 3 where a run was too slow for the answer that a case is
 * about.
 */
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#include "small.h"

enum { TOO_SLOW = 3, STEPS = 4, SLOTS = 2 };

static const char *mistake = "";

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

/* ---- PyTorch's caching allocator ------------------------------------------------------------------ */

/* Blocks of one stream, cut from one allocation. A freed block is used again at once, unless other streams have used it: then
   when the events that are recorded there are found done. */
enum { BLOCKS = 4 };
static struct {
    float *memory;
    bool is_free, is_used; /* used: by the second stream */
    cudaEvent_t pending;
} cached[BLOCKS];

static void begin_cache(void)
{
    char *segment;
    CHECK(cudaMalloc((void **)&segment, (size_t)BLOCKS * BYTES));
    for (int i = 0; i < BLOCKS; i++)
        cached[i].memory = (float *)(void *)(segment + (size_t)i * BYTES), cached[i].is_free = true;
}

static void end_cache(void)
{
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(cached[0].memory));
}

static int take_block(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        if (cached[i].pending) {
            if (cudaEventQuery(cached[i].pending) != cudaSuccess)
                exit(TOO_SLOW); /* PyTorch would take another block, and ask again the next time */
            CHECK(cudaEventDestroy(cached[i].pending));
            cached[i].pending = NULL;
            cached[i].is_free = true;
        }
        if (cached[i].is_free) {
            cached[i].is_free = cached[i].is_used = false;
            return i;
        }
    }
    exit(1);
}

static void free_block(int block, cudaStream_t user)
{
    if (!cached[block].is_used) {
        cached[block].is_free = true;
        return;
    }
    cached[block].pending = new_event();
    CHECK(cudaEventRecord(cached[block].pending, user));
}

/* A tensor of the first stream is used on the second one, and freed by its owner. */
static void allocator(void)
{
    begin_cache();
    for (int i = 0; i < STEPS; i++) {
        const int block = take_block();
        fill(one, cached[block].memory);
        order(one, event, two);
        cached[block].is_used = !makes("no_record_stream");
        if (makes("freed_before_use"))
            free_block(block, two);
        add_to(two, cached[block].memory, y);
        if (!makes("freed_before_use"))
            free_block(block, makes("event_of_owner") ? one : two);
        luck();
    }
    end_cache();
}

/* The next owner waits for the event of the last one in place of asking. */
static void allocator_waits(void)
{
    begin_cache();
    for (int i = 0; i < STEPS; i++) {
        const int block = i % SLOTS;
        if (i >= SLOTS && !makes("no_wait"))
            CHECK(cudaStreamWaitEvent(
                one, makes("waits_for_more") ? cached[1 - block].pending : cached[block].pending,
                0));
        fill(one, cached[block].memory);
        order(one, event, two);
        add_to(two, cached[block].memory, y);
        if (!cached[block].pending)
            cached[block].pending = new_event();
        CHECK(cudaEventRecord(cached[block].pending, two));
        luck();
    }
    end_cache();
}

/* ---- staging in pinned memory --------------------------------------------------------------------- */

static float *pinned[SLOTS], *there[SLOTS];
static cudaEvent_t copied[SLOTS], consumed[SLOTS];

static void begin_slots(void)
{
    for (int i = 0; i < SLOTS; i++) {
        CHECK(cudaHostAlloc((void **)&pinned[i], BYTES, 0));
        CHECK(cudaMalloc((void **)&there[i], BYTES));
        copied[i] = new_event();
        consumed[i] = new_event();
    }
}

static void end_slots(void)
{
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < SLOTS; i++) {
        CHECK(cudaFreeHost(pinned[i]));
        CHECK(cudaFree(there[i]));
    }
}

static void write_batch(int slot, int number)
{
    for (int i = 0; i < COUNT; i++)
        pinned[slot][i] = (float)number;
}

static void copy_batch(int slot, cudaStream_t stream)
{
    CHECK(cudaMemcpyAsync(there[slot], pinned[slot], BYTES, cudaMemcpyHostToDevice, stream));
}

/* The host writes a buffer again once the event behind its last copy is done, as it finds by asking. */
static void staging(void)
{
    begin_slots();
    for (int i = 0; i < STEPS; i++) {
        const int slot = i % SLOTS;
        if (i >= SLOTS && !makes("no_query"))
            while (cudaEventQuery(copied[slot]) != cudaSuccess)
                usleep(100);
        write_batch(slot, i);
        if (makes("recorded_before_copy"))
            CHECK(cudaEventRecord(copied[slot], one));
        copy_batch(slot, one);
        if (!makes("recorded_before_copy"))
            CHECK(cudaEventRecord(copied[slot], makes("of_other_stream") ? two : one));
        add_to(one, there[slot], y);
        luck();
    }
    end_slots();
}

/* ---- batches ahead -------------------------------------------------------------------------------- */

/* One stream copies a batch ahead, the other one consumes: each waits for the other one's event of the slot. */
static void prefetch(void)
{
    begin_slots();
    for (int i = 0; i < STEPS; i++) {
        const int slot = i % SLOTS, of = makes("waits_for_more") ? 1 - slot : slot;
        if (i >= SLOTS && !makes("no_consumed"))
            CHECK(cudaStreamWaitEvent(one, consumed[of], 0));
        fill(one, there[slot]);
        if (makes("waits_before_record"))
            CHECK(cudaStreamWaitEvent(two, copied[slot], 0));
        CHECK(cudaEventRecord(copied[slot], one));
        if (!makes("waits_before_record"))
            CHECK(cudaStreamWaitEvent(two, copied[slot], 0));
        if (makes("records_before_launch"))
            CHECK(cudaEventRecord(consumed[slot], two));
        add_to(two, there[slot], y);
        if (!makes("records_before_launch"))
            CHECK(cudaEventRecord(consumed[slot], two));
        luck();
    }
    end_slots();
}

/* A thread loads batches into pinned memory, and tells the other one by a queue under a lock, which gives the buffer back. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int loaded, given_back;

static void tell(int *number)
{
    CHECK(pthread_mutex_lock(&lock));
    ++*number;
    CHECK(pthread_cond_signal(&changed));
    CHECK(pthread_mutex_unlock(&lock));
}

static void hear(const int *number, int at_least)
{
    CHECK(pthread_mutex_lock(&lock));
    while (*number < at_least)
        CHECK(pthread_cond_wait(&changed, &lock));
    CHECK(pthread_mutex_unlock(&lock));
}

/* It copies, too: with the lock's order, the event is there when the other thread waits for it. */
static void *load(void *unused)
{
    (void)unused;
    for (int i = 0; i < STEPS; i++) {
        const int slot = i % SLOTS;
        if (i >= SLOTS)
            hear(&given_back, i - SLOTS + 1);
        if (i >= SLOTS && !makes("no_consumed"))
            CHECK(cudaStreamWaitEvent(one, consumed[slot], 0));
        fill(one, there[slot]);
        if (makes("told_before_record"))
            tell(&loaded);
        CHECK(cudaEventRecord(copied[slot], one));
        if (!makes("told_before_record"))
            tell(&loaded);
    }
    return NULL;
}

static void loader(void)
{
    pthread_t thread;
    begin_slots();
    CHECK(pthread_create(&thread, NULL, load, NULL));
    for (int i = 0; i < STEPS; i++) {
        const int slot = i % SLOTS;
        hear(&loaded, i + 1);
        luck();
        if (!makes("no_wait"))
            CHECK(cudaStreamWaitEvent(two, copied[slot], 0));
        add_to(two, there[slot], y);
        if (makes("given_before_record"))
            tell(&given_back);
        CHECK(cudaEventRecord(consumed[slot], two));
        if (!makes("given_before_record"))
            tell(&given_back);
    }
    CHECK(pthread_join(thread, NULL));
    end_slots();
}

/* The same by semaphores. */
static sem_t full, room;
static void *load_by_semaphore(void *unused)
{
    (void)unused;
    for (int i = 0; i < STEPS; i++) {
        const int slot = i % SLOTS;
        while (sem_wait(&room) != 0)
            ;
        if (i >= SLOTS)
            CHECK(cudaStreamWaitEvent(one, consumed[slot], 0));
        fill(one, there[slot]);
        if (makes("posted_before_record"))
            CHECK(sem_post(&full));
        CHECK(cudaEventRecord(copied[slot], one));
        if (!makes("posted_before_record"))
            CHECK(sem_post(&full));
    }
    return NULL;
}

static void loader_by_semaphores(void)
{
    pthread_t thread;
    begin_slots();
    CHECK(sem_init(&full, 0, 0));
    CHECK(sem_init(&room, 0, makes("room_for_one_more") ? SLOTS + 1 : SLOTS));
    CHECK(pthread_create(&thread, NULL, load_by_semaphore, NULL));
    for (int i = 0; i < STEPS; i++) {
        while (sem_wait(&full) != 0)
            ;
        luck();
        CHECK(cudaStreamWaitEvent(two, copied[i % SLOTS], 0));
        add_to(two, there[i % SLOTS], y);
        CHECK(cudaEventRecord(consumed[i % SLOTS], two));
        CHECK(sem_post(&room));
    }
    CHECK(pthread_join(thread, NULL));
    end_slots();
}

/* One event for all batches: it is recorded again while the other thread has yet to wait for it. */
static void *record_again(void *unused)
{
    (void)unused;
    for (int i = 0; i < SLOTS; i++) {
        cudaStream_t stream = i == 0 ? one : three;
        fill(stream, there[i]);
        CHECK(cudaEventRecord(makes("one_event") ? copied[0] : copied[i], stream));
        CHECK(sem_post(&full));
        if (makes("one_event"))
            luck();
    }
    return NULL;
}

static void events(void)
{
    pthread_t thread;
    begin_slots();
    CHECK(sem_init(&full, 0, 0));
    CHECK(pthread_create(&thread, NULL, record_again, NULL));
    for (int i = 0; i < SLOTS; i++) {
        while (sem_wait(&full) != 0)
            ;
        CHECK(cudaStreamWaitEvent(two, makes("one_event") ? copied[0] : copied[i], 0));
        add_to(two, there[i], y);
    }
    CHECK(pthread_join(thread, NULL));
    end_slots();
}

/* ---- graphs --------------------------------------------------------------------------------------- */

/* A captured step reads its static input, which another stream fills for each launch. */
static void step_graph(void)
{
    cudaGraph_t captured;
    cudaGraphExec_t executable;
    begin_slots();
    fill(one, there[0]);
    CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal));
    add_to(one, there[0], y);
    add_to(one, y, z);
    CHECK(cudaStreamEndCapture(one, &captured));
    CHECK(cudaGraphInstantiateWithFlags(&executable, captured, 0));
    CHECK(cudaStreamSynchronize(one));
    for (int i = 0; i < STEPS; i++) {
        if (i > 0 && !makes("filled_under_launch"))
            CHECK(cudaStreamWaitEvent(two, consumed[0], 0));
        fill(two, there[0]);
        CHECK(cudaEventRecord(copied[0], two));
        luck();
        if (!makes("launched_too_early"))
            CHECK(cudaStreamWaitEvent(one, copied[0], 0));
        CHECK(cudaGraphLaunch(executable, one));
        CHECK(cudaEventRecord(consumed[0], one));
        luck();
    }
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(captured));
    end_slots();
}

/* A second branch in the graph: the first one goes on before it has ended. */
static void branches(void)
{
    cudaGraph_t captured;
    cudaGraphExec_t executable;
    CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal));
    order(one, event, two);
    fill(two, x);
    CHECK(cudaEventRecord(other, two));
    if (!makes("joined_too_late"))
        CHECK(cudaStreamWaitEvent(one, other, 0));
    add_to(one, x, y);
    if (makes("joined_too_late"))
        CHECK(cudaStreamWaitEvent(one, other, 0));
    CHECK(cudaStreamEndCapture(one, &captured));
    CHECK(cudaGraphInstantiateWithFlags(&executable, captured, 0));
    for (int i = 0; i < STEPS; i++)
        CHECK(cudaGraphLaunch(executable, one));
    CHECK(cudaStreamSynchronize(one));
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(captured));
}

/* ---- host functions ------------------------------------------------------------------------------- */

static void write_next(void *unused)
{
    (void)unused;
    write_batch(0, 2);
}

/* The buffer is written again by the stream itself, behind its copy. */
static void refill(void)
{
    begin_slots();
    write_batch(0, 1);
    copy_batch(0, one);
    luck();
    if (makes("by_other_stream")) {
        CHECK(cudaLaunchHostFunc(two, write_next, NULL));
        order(two, event, one);
    } else {
        CHECK(cudaLaunchHostFunc(one, write_next, NULL));
    }
    CHECK(cudaMemcpyAsync(there[1], pinned[0], BYTES, cudaMemcpyHostToDevice, one));
    end_slots();
}

/* ---- streams -------------------------------------------------------------------------------------- */

/* Work in the default stream orders two streams that know nothing of each other. */
static void hidden_order(void)
{
    cudaStream_t first, second;
    CHECK(cudaStreamCreate(&first));
    CHECK(cudaStreamCreateWithFlags(&second, makes("non_blocking") ? cudaStreamNonBlocking
                                                                   : cudaStreamDefault));
    fill(first, x);
    luck();
    if (!makes("no_default_work"))
        fill(NULL, z);
    luck();
    add_to(second, x, y);
}

/* A stream that is destroyed ends its work all the same, and nothing waits for that. */
static void destroyed(void)
{
    cudaStream_t short_lived;
    CHECK(cudaStreamCreateWithFlags(&short_lived, cudaStreamNonBlocking));
    fill(short_lived, x);
    CHECK(cudaEventRecord(event, short_lived));
    luck();
    CHECK(cudaStreamDestroy(short_lived));
    CHECK(
        cudaStreamCreateWithFlags(&short_lived, cudaStreamNonBlocking)); /* maybe the same handle */
    if (!makes("no_wait"))
        CHECK(cudaStreamWaitEvent(short_lived, event, 0));
    add_to(short_lived, x, y);
}

/* An event that is made again was never recorded: a wait for it is none. */
static void made_again(void)
{
    fill(one, x);
    CHECK(cudaEventRecord(event, one));
    luck();
    if (makes("not_recorded_again")) {
        CHECK(cudaEventDestroy(event));
        event = new_event();
    }
    CHECK(cudaStreamWaitEvent(two, event, 0));
    add_to(two, x, y);
}

/* Two threads with default streams of their own, one of which tells the other. */
static void *fill_own(void *unused)
{
    (void)unused;
    fill(cudaStreamPerThread, x);
    if (!makes("recorded_elsewhere"))
        CHECK(cudaEventRecord(event, cudaStreamPerThread));
    tell(&loaded);
    return NULL;
}

static void thread_streams(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, fill_own, NULL));
    hear(&loaded, 1);
    luck();
    if (makes("recorded_elsewhere"))
        CHECK(cudaEventRecord(event, cudaStreamPerThread));
    if (!makes("no_wait"))
        CHECK(cudaStreamWaitEvent(cudaStreamPerThread, event, 0));
    add_to(cudaStreamPerThread, x, y);
    CHECK(pthread_join(thread, NULL));
}

/* ---- memory in the order of streams --------------------------------------------------------------- */

/* A stream allocates, another one uses; the free comes behind that. */
static void pool(void)
{
    for (int i = 0; i < STEPS; i++) {
        float *memory;
        CHECK(cudaMallocAsync((void **)&memory, BYTES, one));
        fill(one, memory);
        order(one, event, two);
        add_to(two, memory, y);
        if (!makes("freed_too_early"))
            order(two, other, one);
        luck();
        CHECK(cudaFreeAsync(memory, makes("freed_by_third") ? three : one));
    }
}

/* ---- pageable memory ------------------------------------------------------------------------------ */

/* A copy from the host's own memory may still be on its way when the call returns. */
static void copied_in(void)
{
    static float host[COUNT];
    if (makes("asynchronous"))
        CHECK(cudaMemcpyAsync(x, host, BYTES, cudaMemcpyHostToDevice, one));
    else
        CHECK(cudaMemcpy(x, host, BYTES, cudaMemcpyHostToDevice));
    if (!*mistake)
        CHECK(cudaDeviceSynchronize());
    luck();
    add_to(two, x, y);
}

/* The work that was in the stream before it is done. */
static void copied_behind(void)
{
    static float host[COUNT];
    fill(NULL, x);
    if (!makes("not_copied"))
        CHECK(cudaMemcpy(z, host, BYTES, cudaMemcpyHostToDevice));
    luck();
    add_to(two, x, y);
}

/* A copy into its own memory has ended. */
static void copied_out(void)
{
    static float host[COUNT];
    if (makes("asynchronous"))
        CHECK(cudaMemcpyAsync(host, x, BYTES, cudaMemcpyDeviceToHost, one));
    else
        CHECK(cudaMemcpy(host, x, BYTES, cudaMemcpyDeviceToHost));
    luck();
    fill(two, x);
}

/* ---- two devices ---------------------------------------------------------------------------------- */

/* A result goes to another device again and again; the buffer there is filled again when its reader is done. */
static void to_peer(void)
{
    cudaStream_t far;
    float *here = x, *far_in, *far_out;
    begin_slots();
    CHECK(cudaSetDevice(1));
    CHECK(kernels_load());
    CHECK(cudaStreamCreateWithFlags(&far, cudaStreamNonBlocking));
    CHECK(cudaMalloc((void **)&far_in, BYTES));
    CHECK(cudaMalloc((void **)&far_out, BYTES));
    CHECK(cudaMemsetAsync(far_out, 0, BYTES, far));
    CHECK(cudaStreamSynchronize(far));
    const cudaEvent_t read_there = new_event();
    CHECK(cudaSetDevice(0));
    for (int i = 0; i < STEPS; i++) {
        fill(one, here);
        if (i > 0 && !makes("sent_too_early"))
            CHECK(cudaStreamWaitEvent(one, read_there, 0));
        CHECK(cudaMemcpyPeerAsync(far_in, 1, here, 0, BYTES, one));
        CHECK(cudaEventRecord(copied[0], one));
        luck();
        CHECK(cudaSetDevice(1));
        if (!makes("read_too_early"))
            CHECK(cudaStreamWaitEvent(far, copied[0], 0));
        add_to(far, far_in, far_out);
        CHECK(cudaEventRecord(read_there, far));
        CHECK(cudaSetDevice(0));
        luck();
    }
    CHECK(cudaSetDevice(1));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaSetDevice(0));
    end_slots();
}

static const struct small_case cases[] = {
    {"allocator", allocator},
    {"allocator_waits", allocator_waits},
    {"staging", staging},
    {"prefetch", prefetch},
    {"loader", loader},
    {"loader_by_semaphores", loader_by_semaphores},
    {"events", events},
    {"step_graph", step_graph},
    {"branches", branches},
    {"refill", refill},
    {"hidden_order", hidden_order},
    {"destroyed", destroyed},
    {"made_again", made_again},
    {"thread_streams", thread_streams},
    {"pool", pool},
    {"copied_in", copied_in},
    {"copied_behind", copied_behind},
    {"copied_out", copied_out},
    {"to_peer", to_peer},
};

int main(int argc, char **argv)
{
    mistake = argc > 2 ? argv[2] : "";
    fixed = !*mistake;
    return run_case(cases, sizeof cases / sizeof *cases, argc > 1 ? argv[1] : "");
}
