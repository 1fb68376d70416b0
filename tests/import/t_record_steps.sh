#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# import of recordings: steps that do the same are written once. A program does a random step again and again, on two streams and maybe
# two threads, with events and memory in turns, and one step may be another: the verdict is that of all steps written out.
. "${srcdir:-.}/tests/tap.sh"
export SWSIM_RECORD_TIMES=0
[ -e "$PWD/none/libcudart.so.13" ] || skip_all "built without the imitated device"

# steps SEED STEPS ODD MARKS: step ODD leaves out its waits; MARKS 0: nobody says where a step ends
cat >"$dir/steps.c" <<'EOF'
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "trace/record/recorder/swsim_ops.h"
enum { BUFFERS = 4, BYTES = 1024, EVENTS = 3, OPS = 6 };
static uint32_t (*text)(const char *);
static void (*op)(const void *, uint32_t, const struct swsim_access *, size_t), (*step_over)(void), (*where)(uint32_t);
static int (*record)(void *, void *), (*await)(void *, void *, unsigned), (*sync_event)(void *), (*sync)(void);
static int (*make_event)(void **), (*end_event)(void *);
static void *at, *streams[2], *events[EVENTS];
static int seed, odd, turns, threads, renews, strays;
static void *pool[2]; /* of events: nobody looks at the second one */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn; /* 2 * step: the second thread's; 2 * step + 1: it is done */
static uint64_t state;
static int draw(int limit) { return (int)((state = state * 6364136223846793005u + 1442695040888963407u) >> 33) % limit; }
static void part(int step, int thread)
{
    state = (uint64_t)seed * 2 + (uint64_t)thread;
    for (int i = 0; i < 9; i++)
        draw(2);
    for (int i = 0; i < OPS; i++) {
        const int kind = draw(8), stream = draw(2), event = draw(EVENTS), buffer = draw(BUFFERS), own = draw(2), write = !draw(3);
        const int used = own ? BUFFERS + buffer * 3 + step % turns : buffer;
        struct swsim_access access = {(uint64_t)(uintptr_t)at + (uint64_t)used * BYTES, BYTES | (write ? SWSIM_OPS_WRITE : 0)};
        if (kind < 4)
            op(streams[stream], text("work"), &access, 1);
        else if (kind < 6) {
            if (renews && thread == 0 && event == 0 && !end_event(events[0]))
                make_event(&events[0]);
            record(events[event], streams[event % 2]);
        } else if (step == odd)
            continue;
        else if (kind == 6)
            await(streams[stream], events[event], 0);
        else
            sync_event(events[event]);
    }
}
/* A record that nobody looks at, of an event that is looked at in the same step or never. No three rows of such steps are alike. */
static void stray(int step)
{
    record(pool[__builtin_parity((unsigned)step)], streams[0]);
    record(pool[0], streams[0]);
    await(streams[1], pool[0], 0);
}
static void pass(int to, int from)
{
    pthread_mutex_lock(&mutex);
    turn = to;
    pthread_cond_broadcast(&changed);
    while (turn != from)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}
static void *second(void *steps)
{
    pthread_mutex_lock(&mutex);
    while (turn != 2)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    for (int step = 1; step <= (int)(intptr_t)steps; step++) {
        part(step, 1);
        if (step < (int)(intptr_t)steps)
            pass(2 * step + 1, 2 * step + 2);
    }
    pthread_mutex_lock(&mutex);
    turn++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    return NULL;
}
int main(int count, char **argv)
{
    void *self = dlopen(NULL, RTLD_NOW), *cuda = dlopen("libcudart.so.13", RTLD_NOW);
    int (*alloc)(void **, size_t) = dlsym(cuda, "cudaMalloc"), (*make)(void **, unsigned) = dlsym(cuda, "cudaStreamCreateWithFlags");
    const int steps = atoi(argv[2]);
    pthread_t thread;
    text = dlsym(self, "swsim_text"), op = dlsym(self, "swsim_op"), step_over = dlsym(self, "swsim_step");
    where = dlsym(self, "swsim_where");
    record = dlsym(cuda, "cudaEventRecord"), await = dlsym(cuda, "cudaStreamWaitEvent"), sync = dlsym(cuda, "cudaDeviceSynchronize");
    sync_event = dlsym(cuda, "cudaEventSynchronize");
    make_event = dlsym(cuda, "cudaEventCreate"), end_event = dlsym(cuda, "cudaEventDestroy");
    seed = atoi(argv[1]), odd = atoi(argv[3]), turns = 1 + seed % 3, threads = 1 + seed / 3 % 2, renews = seed / 6 % 2;
    strays = seed % 5 == 0;
    if (count < 5 || alloc(&at, BUFFERS * 4 * BYTES) || make(&streams[0], 1) || make(&streams[1], 1))
        return 1;
    for (int i = 0; i < EVENTS; i++)
        make_event(&events[i]);
    for (int i = 0; i < 2; i++)
        make_event(&pool[i]);
    if (threads == 2)
        pthread_create(&thread, NULL, second, (void *)(intptr_t)steps);
    for (int step = 1; step <= steps; step++) {
        where(text("a.py:1"));
        part(step, 0);
        if (strays)
            stray(step);
        if (threads == 2)
            pass(2 * step, 2 * step + 1);
        if (atoi(argv[4]))
            step_over();
    }
    if (threads == 2)
        pthread_join(thread, NULL);
    return sync();
}
EOF
"$CC" -I"$srcdir" -o "$dir/steps" "$dir/steps.c" -ldl -lpthread >"$dir/log" 2>&1 || { cat "$dir/log"; check "the program is built" false; done_testing; exit; }

# run SEED STEPS ODD MARKS; verdict HOW: the status of the verdict
run() { "$SWSIM" record --device=none -q -o "$dir/run.swr" -- "$dir/steps" "$@" >"$dir/log" 2>&1; }
verdict()
{
    "$SWSIM" import -q --repeat="$1" -o "$dir/$1.yaml" "$dir/run.swr" >"$dir/log" 2>&1 || { cat "$dir/log"; return 9; }
    "$SWSIM" verify --no-fix "$dir/$1.yaml" >"$dir/$1.txt" 2>&1
}
# Seeds A to B: every second one has an odd step.
plans=${SWSIM_PLANS:-24}
[ -z "${SWSIM_LONG-}" ] || plans=400
seed=${SWSIM_SEED:-1} last=$((${SWSIM_SEED:-1} + plans)) folded=0 any=0 bad=0 differ=0 rounds=0 strays=0
while [ "$seed" -lt "$last" ]; do
    odd=-1
    [ $((seed % 4)) -ne 1 ] || odd=5
    rm -rf "$dir/run.swr"
    marks=$((seed / 5 % 2))
    run "$seed" 14 "$odd" $marks || { cat "$dir/log"; differ=$((differ + 1)); }
    verdict never; all=$?
    for how in same like; do
        verdict $how; once=$?
        if [ $all != $once ] && [ $all != 3 ] && [ $once != 3 ]; then
            differ=$((differ + 1))
            echo "# SWSIM_SEED=$seed: --repeat=never $all, $how $once"
        fi
    done
    ! grep -q 'repeat: ' "$dir/same.yaml" || folded=$((folded + 1)) rounds=$((rounds + 1 - marks)) strays=$((strays + (seed % 5 == 0)))
    ! grep -q 'or more iterations' "$dir/same.txt" || any=$((any + 1))
    [ $all != 1 ] || bad=$((bad + 1))
    seed=$((seed + 1))
done
echo "# $plans recordings, $folded with steps written once ($rounds without marks, $strays with records that nobody looks at), $any proved for any number of them, $bad violated"
check "the verdict is that of all steps" test $differ = 0
check "steps are written once" test $folded -gt $rounds
check "also where nobody marks them" test $rounds -gt 0
check "also with records that nobody looks at" test $strays -gt 0
check "and stand for any number" test $any -gt 0
done_testing
