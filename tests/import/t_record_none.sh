#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# swsim record --device=none: a program of CUDA and NCCL, linked as users link theirs, runs without a GPU; it is proved where it
# is right, and its mistakes are found though the run goes well.
. "${srcdir:-.}/tests/tap.sh"
program=$PWD/tests/record/dry
export SWSIM_RECORD_TIMES=0

check "a device of another name" complains 2 'option --device: found "some", expected none' "$SWSIM" record --device=some -- true
check "a model that nobody knows" complains 2 'found "none=k80", expected' "$SWSIM" record --device=none=k80 -- true
check "no devices" complains 2 'found "none=h100:0", expected' "$SWSIM" record --device=none=h100:0 -- true
check "values without the device" complains 2 'option --values: expected --device=none' "$SWSIM" record --values -- true

# An event is recorded on a stream that is busy, waited for, and recorded again on one that has nothing to do.
cat >"$dir/again.c" <<'END'
#include <stdio.h>
#include <unistd.h>
int cudaStreamCreateWithFlags(void **stream, unsigned flags), cudaEventCreateWithFlags(void **event, unsigned flags);
int cudaEventRecord(void *event, void *stream), cudaStreamWaitEvent(void *stream, void *event, unsigned flags);
int cudaLaunchHostFunc(void *stream, void (*function)(void *), void *arg), cudaDeviceSynchronize(void);
static volatile int done, early;
static void slow(void *arg) { (void)arg; usleep(200000); done = 1; }
static void look(void *arg) { (void)arg; early = !done; }
int main(void)
{
    void *streams[3], *event;
    for (int i = 0; i < 3; i++)
        cudaStreamCreateWithFlags(&streams[i], 1);
    cudaEventCreateWithFlags(&event, 2);
    cudaLaunchHostFunc(streams[0], slow, NULL);
    cudaEventRecord(event, streams[0]);
    cudaStreamWaitEvent(streams[1], event, 0);
    cudaEventRecord(event, streams[2]);
    cudaLaunchHostFunc(streams[1], look, NULL);
    cudaDeviceSynchronize();
    return early;
}
END
if "$CC" -o "$dir/again" "$dir/again.c" "$PWD/none/libcudart.so.12" "-Wl,-rpath,$PWD/none" 2>"$dir/log"; then
    check "a wait is for the record that was, though the event's next one is done first" \
        "$SWSIM" record --device=none -o "$dir/again.swr" -- "$dir/again"
else
    skip "nothing can be linked here"
fi

# Rank 0 of an all-gather in place sends from where it receives: it writes there nevertheless.
cat >"$dir/place.c" <<'END'
#include <stddef.h>
struct id { char bytes[128]; };
int cudaMalloc(void **out, size_t bytes), cudaMemset(void *to, int value, size_t bytes), cudaDeviceSynchronize(void);
int ncclGetUniqueId(struct id *id), ncclCommInitRank(void **comm, int ranks, struct id id, int rank);
int ncclAllGather(const void *from, void *to, size_t count, int type, void *comm, void *stream);
int main(void)
{
    struct id id;
    void *x, *comm;
    cudaMalloc(&x, 4096);
    cudaMemset(x, 0, 4096);
    ncclGetUniqueId(&id);
    ncclCommInitRank(&comm, 1, id, 0);
    ncclAllGather(x, x, 1024, 7, comm, NULL);
    return cudaDeviceSynchronize();
}
END
if "$CC" -o "$dir/place" "$dir/place.c" "$PWD/none/libcudart.so.12" "$PWD/none/libnccl.so.2" "-Wl,-rpath,$PWD/none" 2>"$dir/log"; then
    check "an all-gather in place" sh -c '"$0" record --device=none -o "$1/place.swr" -- "$1/place" && "$0" import -q -o "$1/place.yaml" "$1/place.swr"' \
        "$SWSIM" "$dir"
    check "writes" grep -q 'collective: all_gather.*writes:' "$dir/place.yaml"
else
    skip "nothing can be linked here"
fi

if [ ! -x "$program" ]; then
    skip "built without CUDA's toolkit, which the program is compiled with"
    done_testing; exit
fi
if grep -q '^build.*sanitize' config.log 2>/dev/null || strings "$PWD/libswrecord.so" | grep -q '__[at]san_init'; then
    skip "the loader cannot put libraries in place of a sanitizer's"
    done_testing; exit
fi

# record CASE [OPTION...]: leaves $dir/CASE.yaml
record()
{
    name=$1
    shift
    "$SWSIM" record --device=none=a100:2 -o "$dir/$name.swr" "$@" -- "$program" "$name" >"$dir/$name.out" 2>"$dir/$name.err" &&
        "$SWSIM" import -q -o "$dir/$name.yaml" "$dir/$name.swr"
}
# record_ranks CASE: the same of two ranks
record_ranks()
{
    rm -f "$dir/id"
    DRY_ID=$dir/id "$SWSIM" record --device=none -o "$dir/$1.swr" -- sh -c \
        'RANK=1 WORLD_SIZE=2 "$0" "$1" & RANK=0 WORLD_SIZE=2 "$0" "$1" && wait $!' "$program" "$1" >"$dir/$1.out" 2>"$dir/$1.err" &&
        "$SWSIM" import -q -o "$dir/$1.yaml" "$dir/$1.swr"
}
verdict()
{
    "$SWSIM" verify --no-fix "$dir/$1.yaml"
}
said_on_stderr()
{
    grep -qE "$2" "$dir/$1.err" || { cat "$dir/$1.err"; false; }
}

check "a pipeline of two streams is recorded" record right --host-accesses
check "on the devices that were asked for" grep -q '^2 devices' "$dir/right.out"
check "and proved" prints 0 'proved' verdict right
check "of each argument of its kernels it is known whether it is written" grep -q 'launch: add, stream: stream2, reads: .*writes' "$dir/right.yaml"
check "a program that asks is told no until it has waited" record asks
check "and is proved" prints 0 'proved' verdict asks
check "one that does not wait for the copy goes well" record no_wait
check "and is refuted: a race" prints 1 'race, .*scale(0) accesses buffer .*which copy [ot][^,]*(0) of stream stream1' verdict no_wait
check "an event that is recorded on the wrong stream" record wrong_stream
check "a race" prints 1 'race, ' verdict wrong_stream
check "a host buffer that is refilled too early" record refill --host-accesses
check "a race with the host" prints 1 'race, .*pinned' verdict refill
check "a graph of two streams" record graph
check "is proved" prints 0 'proved' verdict graph
check "one that nobody waits for" record graph_unwaited
check "is a race" prints 1 'race, ' verdict graph_unwaited
check "a program looks at its device" record device
check "which is what was asked for" grep -qx 'NVIDIA A100-SXM4-80GB 8.0, 108 multiprocessors, bus 2, 32 blocks, 166912 shared, pools 1, clusters 0, 1024 threads, 8 resident' "$dir/device.out"
check "a function that is not emulated ends the run" exits 2 record array
check "by its name" said_on_stderr array 'cudaMallocArray is not emulated by --device=none'

check "two ranks reduce, send, divide their communicator" record_ranks ranks
check "and are proved" prints 0 'proved' verdict ranks
check "ranks that reduce different numbers of floats go on" record_ranks ranks_count
check "which is told" said_on_stderr ranks_count 'rank [01] calls ncclAllReduce of (65536|32768) float32, rank [01] calls ncclAllReduce of'
check "and refuted" prints 1 'mismatch, ' verdict ranks_count
check "ranks that call different collectives go on" record_ranks ranks_kind
check "and are refuted" prints 1 'mismatch, ' verdict ranks_kind
check "a rank takes what another one has sent that has ended" record_ranks ranks_ended
check "ranks that both send first come to their end" record_ranks ranks_both_send
check "and are refuted: a deadlock" prints 1 'deadlock' verdict ranks_both_send
check "dry is record, import and verify: a right program" prints 0 'proved' "$SWSIM" dry -o "$dir/dry" -- "$program" right
check "one with a mistake" prints 1 'race, ' "$SWSIM" dry -o "$dir/dry2" -- "$program" no_wait
check "a recording that is there stays" complains 2 'dry2.swr exists already' "$SWSIM" dry -o "$dir/dry2" -- "$program" no_wait
check "with many states, also of the plan that has more interleavings" prints 0 ' proved .* [2-9][0-9][0-9][0-9][0-9] states' "$SWSIM" dry -o "$dir/dry4" -- "$program" turns
check "the plan that the verdict is about is left" test -e "$dir/dry4.yaml"
check "and no other one" test ! -e "$dir/dry4.like.yaml"
check "nothing to be judged" complains 3 'made no call to CUDA' "$SWSIM" dry -o "$dir/dry3" -- true

# A program that hangs, ended from outside
hangs()
{
    "$SWSIM" record --device=none -o "$dir/hang.swr" -- sh -c '"$0" right; exec sleep 100' "$program" >"$dir/hang.out" 2>"$dir/hang.err" &
    wait_until 300 grep -q devices "$dir/hang.out" && kill -TERM $! && ends_within 20 $! && [ "$code" = 2 ]
}
check "SIGTERM ends the program" hangs
check "and leaves the recording under its name, which is told" said_on_stderr hang 'signal 15 ended sh; .* in .*hang.swr'
check "which can be read" "$SWSIM" import -q -o "$dir/hang.yaml" "$dir/hang.swr"

# A program tells of its operations: swsim_ops.h.
cat >"$dir/tells.c" <<'EOF'
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include "trace/record/recorder/swsim_ops.h"
int main(void)
{
    void *self = dlopen(NULL, RTLD_NOW), *cuda = dlopen("libcudart.so.13", RTLD_NOW);
    uint32_t (*text)(const char *) = dlsym(self, "swsim_text");
    void (*where)(uint32_t) = dlsym(self, "swsim_where");
    void (*op)(const void *, uint32_t, const struct swsim_access *, size_t) = dlsym(self, "swsim_op");
    int (*alloc)(void **, size_t) = dlsym(cuda, "cudaMalloc"), (*make)(void **) = dlsym(cuda, "cudaStreamCreate"),
        (*sync)(void) = dlsym(cuda, "cudaDeviceSynchronize");
    void *at, *one, *two;
    if (!text || !op || alloc(&at, 4096) || make(&one) || make(&two))
        return 1;
    struct swsim_access first = {(uint64_t)(uintptr_t)at, 1024 | SWSIM_OPS_WRITE},
                        second = {(uint64_t)(uintptr_t)at + 1024, 1024 | SWSIM_OPS_WRITE};
    where(text("a.py:1"));
    op(one, text("first"), &first, 1);
    where(text("a.py:2"));
    op(two, text("second"), &second, 1);
#ifdef OVERLAP
    where(text("a.py:3"));
    op(two, text("third"), &first, 1);
#endif
    return sync();
}
EOF
tells()
{
    "$CC" $2 -I"$srcdir" -o "$dir/$1" "$dir/tells.c" -ldl && "$SWSIM" record --device=none -o "$dir/$1.swr" -- "$dir/$1" &&
        "$SWSIM" import -q -o "$dir/$1.yaml" "$dir/$1.swr"
}
check "a program tells of its operations" tells apart ""
check "which access what it says, and no more" prints 0 'proved' verdict apart
check "each has its line" grep -q "launch: second, stream: .*at: 'a.py:2'" "$dir/apart.yaml"
check "two that access the same" tells overlap -DOVERLAP
check "are a race of these lines" prints 1 'race, .*a.py:3 third accesses buffer .*which a.py:1 first of stream' verdict overlap

# The process that launches the others looks at CUDA, too, and is no rank.
cat >"$dir/launches.c" <<'EOF'
#include <dlfcn.h>
#include <stdlib.h>
int main(int count, char **argv)
{
    void *cuda = dlopen("libcudart.so.13", RTLD_NOW), *event;
    int (*make)(void **) = cuda ? dlsym(cuda, "cudaEventCreate") : NULL;
    return count < 2 || !make || make(&event) || system(argv[1]);
}
EOF
launched()
{
    rm -f "$dir/id"
    "$CC" -o "$dir/launches" "$dir/launches.c" -ldl && DRY_ID=$dir/id "$SWSIM" record --device=none -o "$dir/launched.swr" -- \
        "$dir/launches" "RANK=1 WORLD_SIZE=2 $program ranks & RANK=0 WORLD_SIZE=2 $program ranks && wait" &&
        "$SWSIM" import -q -o "$dir/launched.yaml" "$dir/launched.swr" && [ "$(ls "$dir/launched.swr" | wc -l)" = 3 ]
}
check "two ranks and the process that launches them" launched
check "are two ranks" sh -c "grep -q 'r1.main' '$dir/launched.yaml' && ! grep -q '^  r2' '$dir/launched.yaml'"

check "nothing is left in shared memory" sh -c '! ls /dev/shm | grep "^swsim-[0-9a-f]*$"'
done_testing
