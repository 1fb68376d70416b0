/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queries.c - small programs that ask whether work is done, for `swsim record`: `queries CASE [fixed]`. What they ask for is
 * held back until the answer is to be yes. The exit status is 3 where a run was too slow for the answer that a case is about.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

#include "small.h"

enum { TIMES = 20000, TOO_SLOW = 3 };

static atomic_bool released, over;

static void wait_for_release(void *unused)
{
    (void)unused;
    while (!atomic_load(&released))
        usleep(100);
}

static void tell_end(void *unused)
{
    (void)unused;
    atomic_store(&over, true);
}

/* The first stream writes x, once it may, and records the event behind that. */
static void produce_late(void)
{
    CHECK(cudaLaunchHostFunc(one, wait_for_release, NULL));
    produce(one);
    CHECK(cudaLaunchHostFunc(one, tell_end, NULL));
    CHECK(cudaEventRecord(event, one));
}

static void release(void)
{
    atomic_store(&released, true);
}

/* All is done, though no call of CUDA has said so. */
static void let_end(void)
{
    release();
    while (!atomic_load(&over))
        usleep(100);
    luck();
}

static void expect(int answer, bool done)
{
    if (answer != (done ? cudaSuccess : cudaErrorNotReady))
        exit(TOO_SLOW);
}

static void poll(void)
{
    while (cudaEventQuery(event) != cudaSuccess)
        usleep(100);
}

/* ---- loops --------------------------------------------------------------------------------------- */

static void loop(void)
{
    produce_late();
    for (int i = 0; i < TIMES; i++)
        expect(cudaEventQuery(event), false);
    release();
    poll();
    consume(two);
}

static void loop_of_two(void)
{
    bool event_done = false, stream_done = false;
    produce_late();
    for (int i = 0; i < TIMES; i++) {
        expect(cudaEventQuery(event), false);
        expect(cudaStreamQuery(one), false);
    }
    release();
    while (!event_done || !stream_done) {
        event_done = event_done || cudaEventQuery(event) == cudaSuccess;
        stream_done = stream_done || cudaStreamQuery(one) == cudaSuccess;
    }
    consume(two);
}

/* A time between events is there when both are done. */
static void loop_of_time(void)
{
    cudaEvent_t from, to;
    float ms;
    CHECK(cudaEventCreateWithFlags(&from, 0));
    CHECK(cudaEventCreateWithFlags(&to, 0));
    CHECK(cudaEventRecord(from, one));
    produce_late();
    CHECK(cudaEventRecord(to, one));
    for (int i = 0; i < TIMES; i++)
        expect(cudaEventElapsedTime(&ms, from, to), false);
    release();
    while (cudaEventElapsedTime(&ms, from, to) != cudaSuccess)
        usleep(100);
    consume(two);
}

/* Between two noes the thread goes on with something else. */
static void loop_of_looks(void)
{
    produce_late();
    expect(cudaEventQuery(event), false);
    CHECK(kernels_fill_f32(two, z, COUNT, 2.0F));
    expect(cudaEventQuery(event), false);
    release();
    poll();
    consume(two);
}

/* Another thread comes in between two answers of a loop: it had the lock, or it sends a signal. */
static atomic_int turn;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t semaphore;

/* It never goes back. */
static void begin_turn(int number)
{
    int before = atomic_load(&turn);
    while (before < number && !atomic_compare_exchange_weak(&turn, &before, number))
        ;
}

static void await_turn(int number)
{
    while (atomic_load(&turn) < number)
        usleep(100);
}

static void *come_between(void *by_signal)
{
    await_turn(1);
    CHECK(cudaStreamQuery(three)); /* nothing was pushed */
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    if (by_signal)
        sem_post(&semaphore);
    atomic_store(&turn, 2);
    return NULL;
}

static void ask_with_another(bool by_signal)
{
    pthread_t thread;
    sem_init(&semaphore, 0, 0);
    CHECK(pthread_create(&thread, NULL, come_between, by_signal ? &semaphore : NULL));
    produce_late();
    expect(cudaEventQuery(event), false);
    atomic_store(&turn, 1);
    await_turn(2);
    if (by_signal)
        while (sem_wait(&semaphore) != 0)
            ;
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    release();
    poll();
    consume(two);
    CHECK(pthread_join(thread, NULL));
}

static void loop_of_locks(void)
{
    ask_with_another(false);
}

static void loop_of_signals(void)
{
    ask_with_another(true);
}

/* Work of another thread comes behind the no of this one. */
static void *push_more(void *unused)
{
    (void)unused;
    CHECK(kernels_fill_f32(one, z, COUNT, 2.0F));
    return NULL;
}

static void loop_beside_pushes(void)
{
    pthread_t thread;
    produce_late();
    expect(cudaStreamQuery(one), false);
    CHECK(pthread_create(&thread, NULL, push_more, NULL));
    CHECK(pthread_join(thread, NULL));
    release();
    while (cudaStreamQuery(one) != cudaSuccess)
        usleep(100);
    consume(two);
}

/* ---- answers that decide -------------------------------------------------------------------------- */

/* Work that was not done is not waited for. */
static void yes_by_luck(void)
{
    produce_late();
    let_end();
    expect(cudaEventQuery(event), true);
    consume(two);
}

static void no_by_luck(void)
{
    produce_late();
    expect(cudaEventQuery(event), false);
    let_end();
    if (fixed)
        CHECK(cudaStreamWaitEvent(two, event, 0));
    consume(two);
}

/* The work in front of the event is known to be done, and not its record: the stream has yet to come there. */
static void record_by_luck(void)
{
    produce(one);
    CHECK(cudaStreamSynchronize(one));
    CHECK(cudaEventRecord(event, one));
    luck();
    expect(cudaEventQuery(event), true);
    consume(two);
}

/* So it is with the stream that has it. */
static void record_in_stream_by_luck(void)
{
    produce(one);
    CHECK(cudaStreamSynchronize(one));
    CHECK(cudaEventRecord(event, one));
    luck();
    expect(cudaStreamQuery(one), true);
    consume(two);
}

/* A wait says nothing of the way that a yes would have gone. */
static void waits_behind_no(void)
{
    produce_late();
    expect(cudaEventQuery(event), false);
    release();
    CHECK(cudaEventSynchronize(event));
    expect(cudaEventQuery(event), true);
    consume(two);
}

static void waits_for_all_behind_no(void)
{
    produce_late();
    expect(cudaStreamQuery(one), false);
    expect(cudaEventQuery(event), false);
    release();
    CHECK(cudaDeviceSynchronize());
    expect(cudaStreamQuery(one), true);
    expect(cudaEventQuery(event), true);
    consume(two);
}

/* The thread goes on behind the no, and then asks for more than before. */
static void goes_on(void)
{
    produce_late();
    expect(cudaStreamQuery(one), false);
    CHECK(kernels_fill_f32(one, z, COUNT, 2.0F));
    expect(cudaStreamQuery(one), false);
    release();
    while (cudaStreamQuery(one) != cudaSuccess)
        usleep(100);
    consume(two);
}

static void records_again(void)
{
    produce_late();
    expect(cudaEventQuery(event), false);
    CHECK(cudaEventRecord(event, one));
    expect(cudaEventQuery(event), false);
    release();
    poll();
    consume(two);
}

static void *poll_in_thread(void *unused)
{
    (void)unused;
    expect(cudaEventQuery(event), false);
    release();
    poll();
    return NULL;
}

/* The yes is another thread's. */
static void another_asks(void)
{
    pthread_t thread;
    produce_late();
    expect(cudaEventQuery(event), false);
    CHECK(pthread_create(&thread, NULL, poll_in_thread, NULL));
    CHECK(pthread_join(thread, NULL));
    consume(two);
}

/* ---- questions that are asked when all is done ------------------------------------------------------ */

static void produce_and_record(void)
{
    produce(one);
    CHECK(cudaEventRecord(event, one));
    luck();
}

static void poll_done(void)
{
    produce_and_record();
    poll();
    consume(two);
}

/* The same, as far as a recording shows. */
static void gives_up(void)
{
    produce_and_record();
    for (int i = 0; i < 1000 && cudaEventQuery(event) != cudaSuccess; i++)
        usleep(100);
    consume(two);
}

/* It goes another way where the answer is no, with its own wait or, by mistake, without. */
static void decides(void)
{
    produce_and_record();
    if (cudaEventQuery(event) != cudaSuccess && fixed)
        CHECK(cudaStreamWaitEvent(two, event, 0));
    consume(two);
}

/* A thread that looks after several events, each until it is done. */
static void looks_after(void)
{
    enum { EVENTS = 4 };
    cudaEvent_t events[EVENTS];
    bool done[EVENTS] = {false};
    for (int i = 0; i < EVENTS; i++) {
        CHECK(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming));
        produce(one);
        CHECK(cudaEventRecord(events[i], one));
    }
    luck();
    for (int left = EVENTS; left > 0;)
        for (int i = 0; i < EVENTS; i++)
            if (!done[i] && cudaEventQuery(events[i]) == cudaSuccess) {
                done[i] = true;
                left--;
            }
    consume(two);
}

/* ---- answers that are clear ----------------------------------------------------------------------- */

static void clear_answers(void)
{
    cudaEvent_t from, to;
    float ms;
    CHECK(cudaEventCreateWithFlags(&from, 0));
    CHECK(cudaEventCreateWithFlags(&to, 0));
    CHECK(cudaStreamQuery(two)); /* nothing was pushed */
    CHECK(cudaEventQuery(other));
    CHECK(cudaEventRecord(from, one));
    produce(one);
    CHECK(cudaEventRecord(to, one));
    CHECK(cudaEventSynchronize(to)); /* the first, too */
    CHECK(cudaEventElapsedTime(&ms, from, to));
    CHECK(cudaEventQuery(from));
    CHECK(cudaStreamQuery(one));
    produce(one);
    CHECK(cudaEventRecord(event, one));
    CHECK(cudaStreamSynchronize(one));
    CHECK(cudaEventQuery(event));
    consume(two);
    CHECK(cudaEventRecord(event, two));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaEventQuery(event));
    CHECK(cudaStreamQuery(two));
}

static void asks_again(void)
{
    produce_late();
    expect(cudaEventQuery(event), false);
    release();
    poll();
    for (int i = 0; i < 3; i++) {
        CHECK(cudaEventQuery(event));
        CHECK(cudaStreamQuery(one));
    }
    consume(two);
}

static atomic_bool asked;

static void *push_unseen(void *unused)
{
    (void)unused;
    while (!atomic_load(&asked))
        usleep(100);
    CHECK(kernels_fill_f32(one, z, COUNT, 2.0F));
    return NULL;
}

/* In another run this thread's work is there when the other one asks. */
static void clear_by_luck(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, push_unseen, NULL));
    produce(one);
    CHECK(cudaStreamSynchronize(one));
    CHECK(cudaStreamQuery(one));
    atomic_store(&asked, true);
    CHECK(pthread_join(thread, NULL));
    consume(two);
}

/* Two threads in front of the one that asks, and what the second one hears of the first. */
static sem_t pushed;

static void *push_and_tell(void *unused)
{
    (void)unused;
    await_turn(1);
    CHECK(kernels_fill_f32(one, z, COUNT, 2.0F));
    sem_post(&pushed);
    begin_turn(2);
    return NULL;
}

static void *tell_then_hear(void *unused)
{
    (void)unused;
    CHECK(cudaStreamQuery(three)); /* nothing was pushed */
    sem_post(&semaphore);
    atomic_store(&turn, 1);
    while (sem_wait(&pushed) != 0)
        ;
    CHECK(cudaStreamQuery(three));
    begin_turn(3);
    return NULL;
}

static void ask_behind_semaphore(void)
{
    while (sem_wait(&semaphore) != 0)
        ;
    CHECK(cudaStreamSynchronize(one));
    CHECK(cudaStreamQuery(one));
}

/* This thread comes after what the second one did before that has heard of the push. */
static void heard_too_late(void)
{
    pthread_t first, second;
    sem_init(&semaphore, 0, 0);
    sem_init(&pushed, 0, 0);
    CHECK(pthread_create(&first, NULL, push_and_tell, NULL));
    CHECK(pthread_create(&second, NULL, tell_then_hear, NULL));
    await_turn(3);
    ask_behind_semaphore();
    CHECK(pthread_join(first, NULL));
    CHECK(pthread_join(second, NULL));
}

static void tell_behind_push(void *unused)
{
    (void)unused;
    await_turn(2);
    sem_post(&semaphore);
}

/* A host function does not come after all that was called before it began. */
static void beside_host_function(void)
{
    pthread_t thread;
    sem_init(&semaphore, 0, 0);
    sem_init(&pushed, 0, 0);
    CHECK(pthread_create(&thread, NULL, push_and_tell, NULL));
    CHECK(cudaLaunchHostFunc(two, tell_behind_push, NULL));
    atomic_store(&turn, 1);
    ask_behind_semaphore();
    CHECK(pthread_join(thread, NULL));
}

/* It comes after the call that pushed it. */
static void by_host_function(void)
{
    pthread_t thread;
    sem_init(&semaphore, 0, 0);
    sem_init(&pushed, 0, 0);
    CHECK(pthread_create(&thread, NULL, push_and_tell, NULL));
    atomic_store(&turn, 1);
    while (sem_wait(&pushed) != 0)
        ;
    CHECK(cudaLaunchHostFunc(two, tell_behind_push, NULL));
    ask_behind_semaphore();
    CHECK(pthread_join(thread, NULL));
}

/* Which of two records comes last is luck. */
static void *record_unseen(void *unused)
{
    (void)unused;
    CHECK(cudaEventRecord(event, one));
    atomic_store(&turn, 1);
    return NULL;
}

static void recorded_twice(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, record_unseen, NULL));
    await_turn(1);
    CHECK(cudaEventRecord(event, one));
    CHECK(cudaEventSynchronize(event));
    CHECK(cudaEventQuery(event));
    CHECK(pthread_join(thread, NULL));
}

/* ---- what is known by waits of streams, and of other threads --------------------------------------- */

static void behind_wait(void)
{
    produce(one);
    CHECK(cudaEventRecord(event, one));
    CHECK(cudaStreamWaitEvent(two, event, 0));
    consume(two);
    CHECK(cudaEventRecord(other, two));
    CHECK(cudaEventSynchronize(other));
    CHECK(cudaEventQuery(event));
    CHECK(cudaStreamQuery(one));
}

static void behind_two_waits(void)
{
    produce(one);
    CHECK(cudaEventRecord(event, one));
    CHECK(cudaStreamWaitEvent(two, event, 0));
    consume(two);
    CHECK(cudaEventRecord(other, two));
    CHECK(cudaStreamWaitEvent(three, other, 0));
    CHECK(cudaStreamSynchronize(three));
    CHECK(cudaEventQuery(event));
    CHECK(cudaEventQuery(other));
    CHECK(cudaStreamQuery(one));
    CHECK(cudaStreamQuery(two));
}

/* The work that the host waits for was recorded in front of the wait. */
static void before_wait(void)
{
    CHECK(cudaEventRecord(other, two));
    produce_late();
    CHECK(cudaStreamWaitEvent(two, event, 0));
    consume(two);
    CHECK(cudaEventSynchronize(other));
    let_end();
    expect(cudaEventQuery(event), true);
}

/* The wait was for the record before. */
static void older_record(void)
{
    CHECK(cudaEventRecord(event, one));
    CHECK(cudaStreamWaitEvent(two, event, 0));
    produce_late();
    CHECK(cudaStreamSynchronize(two));
    let_end();
    expect(cudaEventQuery(event), true);
    consume(two);
}

/* Another push is behind the record that the stream waited for. */
static void more_than_record(void)
{
    produce(one);
    CHECK(cudaEventRecord(event, one));
    CHECK(cudaLaunchHostFunc(one, wait_for_release, NULL));
    CHECK(cudaLaunchHostFunc(one, tell_end, NULL));
    CHECK(cudaStreamWaitEvent(two, event, 0));
    consume(two);
    CHECK(cudaStreamSynchronize(two));
    let_end();
    expect(cudaStreamQuery(one), true);
}

/* The legacy stream's order, both ways. */
static void by_legacy(void)
{
    cudaStream_t blocking;
    CHECK(cudaStreamCreate(&blocking));
    produce(blocking);
    CHECK(cudaEventRecord(event, blocking));
    consume(NULL);
    CHECK(cudaEventRecord(other, NULL));
    CHECK(cudaEventSynchronize(other));
    CHECK(cudaEventQuery(event));
    CHECK(cudaStreamQuery(blocking));
    produce(NULL);
    CHECK(cudaEventRecord(event, NULL));
    consume(blocking);
    CHECK(cudaStreamSynchronize(blocking));
    CHECK(cudaEventQuery(event));
}

/* It does not order streams that are not blocking. */
static void beside_legacy(void)
{
    produce_late();
    CHECK(kernels_fill_f32(NULL, z, COUNT, 2.0F));
    CHECK(cudaStreamSynchronize(NULL));
    let_end();
    expect(cudaEventQuery(event), true);
    consume(two);
}

/* An event that a graph records in its midst says of the work before the launch, and nothing of the launch. */
static void in_graph(void)
{
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal));
    CHECK(cudaEventRecordWithFlags(event, one, cudaEventRecordExternal));
    CHECK(kernels_fill_f32(one, z, COUNT, 2.0F));
    CHECK(cudaStreamEndCapture(one, &graph));
    CHECK(cudaGraphInstantiateWithFlags(&executable, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    produce(one);
    CHECK(cudaEventRecord(other, one));
    CHECK(cudaGraphLaunch(executable, one));
    CHECK(cudaEventSynchronize(event));
    CHECK(cudaEventQuery(other));
    CHECK(cudaEventQuery(event));
    luck();
    expect(cudaStreamQuery(one), true);
    CHECK(cudaGraphExecDestroy(executable));
    consume(two);
}

static void *wait_then_tell(void *unused)
{
    (void)unused;
    CHECK(cudaEventSynchronize(event));
    sem_post(&semaphore);
    return NULL;
}

static void another_waits(void)
{
    pthread_t thread;
    sem_init(&semaphore, 0, 0);
    produce(one);
    CHECK(cudaEventRecord(event, one));
    CHECK(pthread_create(&thread, NULL, wait_then_tell, NULL));
    while (sem_wait(&semaphore) != 0)
        ;
    CHECK(cudaEventQuery(event));
    CHECK(cudaStreamQuery(one));
    consume(two);
    CHECK(pthread_join(thread, NULL));
}

static void *tell_then_wait(void *unused)
{
    (void)unused;
    CHECK(cudaStreamQuery(three)); /* nothing was pushed */
    sem_post(&semaphore);
    CHECK(cudaEventSynchronize(event));
    atomic_store(&over, true);
    return NULL;
}

/* The other thread has waited, but what this one hears of it is older. */
static void another_waits_unheard(void)
{
    pthread_t thread;
    sem_init(&semaphore, 0, 0);
    produce(one);
    CHECK(cudaEventRecord(event, one));
    CHECK(pthread_create(&thread, NULL, tell_then_wait, NULL));
    while (!atomic_load(&over))
        usleep(100);
    while (sem_wait(&semaphore) != 0)
        ;
    CHECK(cudaEventQuery(event));
    consume(two);
    CHECK(pthread_join(thread, NULL));
}

/* As PyTorch's allocator of pinned memory: what is listed under a lock is asked for behind the lock, and its memory taken again.
   The one who does not ask has a race. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static cudaEvent_t listed;
static void *take_listed(void *unused)
{
    (void)unused;
    for (int i = 0; i < 5; i++)
        luck();
    pthread_mutex_lock(&list_lock);
    const cudaEvent_t found = listed;
    pthread_mutex_unlock(&list_lock);
    if (!found || (fixed && cudaEventQuery(found) != cudaSuccess))
        exit(TOO_SLOW);
    consume(two);
    return NULL;
}

static void listed_by_another(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, take_listed, NULL));
    produce(one);
    CHECK(cudaEventRecord(event, one));
    pthread_mutex_lock(&list_lock);
    listed = event;
    pthread_mutex_unlock(&list_lock);
    CHECK(pthread_join(thread, NULL));
}

static const struct small_case cases[] = {
    {"loop", loop},
    {"loop_of_two", loop_of_two},
    {"loop_of_time", loop_of_time},
    {"loop_of_looks", loop_of_looks},
    {"loop_of_locks", loop_of_locks},
    {"loop_of_signals", loop_of_signals},
    {"loop_beside_pushes", loop_beside_pushes},
    {"yes_by_luck", yes_by_luck},
    {"no_by_luck", no_by_luck},
    {"record_by_luck", record_by_luck},
    {"record_in_stream_by_luck", record_in_stream_by_luck},
    {"waits_behind_no", waits_behind_no},
    {"waits_for_all_behind_no", waits_for_all_behind_no},
    {"goes_on", goes_on},
    {"records_again", records_again},
    {"another_asks", another_asks},
    {"poll_done", poll_done},
    {"gives_up", gives_up},
    {"decides", decides},
    {"looks_after", looks_after},
    {"clear_answers", clear_answers},
    {"asks_again", asks_again},
    {"clear_by_luck", clear_by_luck},
    {"heard_too_late", heard_too_late},
    {"beside_host_function", beside_host_function},
    {"by_host_function", by_host_function},
    {"recorded_twice", recorded_twice},
    {"behind_wait", behind_wait},
    {"behind_two_waits", behind_two_waits},
    {"before_wait", before_wait},
    {"older_record", older_record},
    {"more_than_record", more_than_record},
    {"by_legacy", by_legacy},
    {"beside_legacy", beside_legacy},
    {"in_graph", in_graph},
    {"another_waits", another_waits},
    {"another_waits_unheard", another_waits_unheard},
    {"listed_by_another", listed_by_another},
};

int main(int argc, char **argv)
{
    fixed = argc > 2 && strcmp(argv[2], "fixed") == 0;
    return run_case(cases, sizeof cases / sizeof *cases, argc > 1 ? argv[1] : "");
}
