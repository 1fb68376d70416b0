#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The CUDA device on emulated CUDA (tests/cuda_emulation; not a GPU): the conformance suite, with streams late
# in different ways and with a GPU for each rank; then what swrun says when something breaks. Plans that go well
# are in t_gpu_run.sh.
. "${srcdir:-.}/tests/tap.sh"
. "$srcdir/tests/run_plans.sh"
suite=tests/gpu/t_device_emulated
SWRUN=$PWD/tests/swrun_emulated
unset SWSIM_NCCL

if [ ! -x "$suite" ]; then
    skip_all "built without CUDA's toolkit, which the emulation is compiled against"
fi

quick_plan 3 6KiB >"$dir/quick.yaml"

for seed in 1 2 3; do
    check "conformance, seed $seed" env SWSIM_EMULATION_SEED=$seed "$suite" cuda
done
check "conformance, four GPUs, of which a process has one context" env SWSIM_EMULATED_GPUS=4 SWSIM_EMULATION_CONTEXTS=1 "$suite" cuda
check "conformance with an NCCL whose aborts go one by one" env SWSIM_EMULATED_NCCL=22105 "$suite" cuda
check "conformance in one process, which leaves nothing behind" env SWSIM_EMULATION_LEAKS=1 "$suite" cuda alone
# The functions that a library of the emulation exports, and those that its contracts name.
has_contracts()
{
    nm --defined-only "$@" 2>/dev/null | sed -n 's/^[0-9a-f]* T \(cuda[A-Z][A-Za-z0-9]*\|nccl[A-Z][A-Za-z0-9]*\)\(_pt[sd][sz]\)*$/\1/p' |
        grep -vE '^cudaGetDriverEntryPoint' | sort -u >"$dir/exported"
    sed -n '/^#/d; s/:.*//p' "$srcdir/tests/cuda_emulation/contracts.txt" | tr ' ' '\n' | grep -vE '^(cudaGetDriverEntryPoint.*|)$' |
        sort >"$dir/named"
    diff "$dir/exported" "$dir/named"
}
check "each function of the emulation says what it asks of its caller" has_contracts tests/cuda_emulation/libcuda.a tests/cuda_emulation/libnccl.so.2
check "nor does a run with graphs leave anything" env SWSIM_EMULATION_LEAKS=1 "$SWRUN" --device cuda --ranks 1 --graph=require -n 20 \
    "$srcdir/plans/reference/sparse_dist.yaml"
# refused PATTERN VARIABLE=VALUE...: swrun does not begin, and says why.
refused() { pattern=$1; shift; complains 2 "$pattern" env "$@" "$SWRUN" --device cuda --ranks 1 -n 1 "$dir/quick.yaml"; }
check "no GPU" refused 'no CUDA driver or GPU: no CUDA-capable device' SWSIM_EMULATED_GPUS=0
check "no driver" refused 'no CUDA driver or GPU: libcuda.so.1' SWSIM_EMULATED_DRIVER=0
check "an old driver" refused 'driver is too old: it is for CUDA 9.2, and this program needs one for CUDA' SWSIM_EMULATED_DRIVER=9020
check "an old GPU" refused 'cannot load the kernels: .*sm_80 or newer' SWSIM_EMULATION_FAULT=cudaFuncGetAttributes=1:209

# NCCL as it may lie on a machine: fakes of it, of which only the functions named in NAMES are there.
fake_nccl()
{
    mkdir -p "$1"
    for name in $3; do echo "int nccl$name(int *version) { if (version) *version = $2; return 0; }"; done >"$dir/fake.c"
    ${CC:-cc} -shared -fPIC -o "$1/libnccl.so.2" "$dir/fake.c"
}
check "one member needs no NCCL" prints 0 '"legal":true' env SWSIM_NCCL="$dir/nothing" "$SWRUN" --device cuda --json --ranks 1 -n 5 "$dir/quick.yaml"
# of several members.
refused() { pattern=$1; shift; complains 2 "$pattern" env "$@" "$SWRUN" --device cuda --processes -n 1 "$dir/quick.yaml"; }
check "NCCL where it is not" refused "no NCCL found ($dir/nothing: cannot open shared object file" SWSIM_NCCL="$dir/nothing"
mkdir "$dir/text"
echo "not a library" >"$dir/text/libnccl.so.2"
check "NCCL that is none" refused 'no NCCL found (.*text/libnccl.so.2: ' SWSIM_NCCL="$dir/text"
fake_nccl "$dir/old" 2408 "GetVersion GetUniqueId GetErrorString CommInitRank CommDestroy CommAbort CommGetAsyncError AllReduce AllGather ReduceScatter Broadcast GroupStart GroupEnd"
check "NCCL without messages" refused 'NCCL 2.4.8 (.*/old/libnccl.so.2) is too old: it has no ncclSend; 2.7 or newer' SWSIM_NCCL="$dir/old"
fake_nccl "$dir/odd" 3 "GetErrorString"
check "a library that is not NCCL" refused '.*/odd/libnccl.so.2 is not NCCL: it has no ncclGetVersion' SWSIM_NCCL="$dir/odd"
check "an NCCL that does not load on this driver" refused 'no NCCL found' SWSIM_NCCL="$dir/text/libnccl.so.2"
# Python's: beside the python3 of PATH, and in a virtual environment. The loader's own NCCL comes before them.
python_nccl() { mkdir -p "$1/bin" "$1/lib/python3.12/site-packages/nvidia/nccl/lib"; cp tests/cuda_emulation/libnccl.so.2 "$1/lib/python3.12/site-packages/nvidia/nccl/lib/"; }
python_nccl "$dir/venv"
printf '#!/bin/sh\n' >"$dir/venv/bin/python3"
chmod +x "$dir/venv/bin/python3"
# Libraries that come first elsewhere are taken away, for these two alone.
hidden='
    for file in /usr/local/cuda/lib64/libnccl.so.2 $(PATH=$PATH:/sbin ldconfig -p | sed -n "s|.*libnccl\.so\.2.*=> ||p"); do
        test ! -e "$file" || mount --bind /dev/null "$(realpath "$file")" || exit
    done
    exec env SWSIM_NCCL= "$@"'
nccl_found() { prints 0 '"legal":true' unshare -m sh -c "$hidden" sh "$@" "$SWRUN" --device cuda --json --processes --ranks 2 -n 5 "$dir/quick.yaml"; }
if unshare -m sh -c "$hidden" sh true 2>/dev/null; then
    check "NCCL of a virtual environment" nccl_found VIRTUAL_ENV="$dir/venv"
    check "NCCL of the python3 in PATH" nccl_found PATH="/nowhere:$dir/venv/bin:$PATH"
    check "one that is too old is passed over" nccl_found LD_LIBRARY_PATH="$dir/old" VIRTUAL_ENV="$dir/venv"
else
    skip "another NCCL that may be found first cannot be taken away here"
fi
check "NCCL of a Python, named" prints 0 '"legal":true' env \
    SWSIM_NCCL="$dir/venv/lib/python3.12/site-packages/nvidia/nccl/lib" "$SWRUN" --device cuda --json --processes --ranks 2 -n 5 "$dir/quick.yaml"

# Groups, process groups, launches of graphs, pushes under the context lock, replicas with sharded parameters.
legal() { prints 0 '"legal":true' env SWSIM_EMULATED_GPUS=4 "$SWRUN" --device cuda --json --processes "$srcdir/plans/reality/$1_fixed.yaml"; }
for plan in group_coalesced group_communicators send_to_self work_wait graph_input launch_lock fsdp_residency; do
    check "reality/$plan" legal $plan
done

# Collectives of passes, on their stream and beside them, and a ring of messages.
passes()
{
    printf 'swplan: 1\nname: passes\ntimes: {F: 1ms, B: 2ms}\nparallel: {%s}\nprograms: ["0F0 0F1 0B0 0B1"]\n' "$1" >"$dir/passes.yaml"
    prints 0 '"legal":true' env SWSIM_EMULATED_GPUS=4 "$SWRUN" --device cuda --json "$dir/passes.yaml"
}
check "sequence parallelism" passes "tp: 2, costs: {tp: {call: gather_scatter}}"
check "beside the passes" passes "tp: 2, costs: {tp: {call: gather_scatter, overlap: true}}"
check "a ring of three" passes "cp: 3, costs: {cp: {call: ring}}"
check "replicas that reduce their gradients" passes "dp: 2, tp: 2, grad_reduce: overlap"

cat >"$dir/waits.yaml" <<'END'
swplan: 1
threads:
  r0.a: [{launch: k, stream: s, body: [{await: f}]}, {launch: m, stream: t, body: [{signal: f}]}]
END
check "a kernel that waits on the device" complains 3 'a kernel with a body, which only the host device' \
    "$SWRUN" --device cuda "$dir/waits.yaml"

# TorchRec's collectives under data-flow: fired in the order of their turns on all ranks.
dataflow() { prints 0 '"legal":true' env SWSIM_EMULATED_GPUS=4 "$SWRUN" --device cuda --json --driver dataflow -n 5 "$1"; }
for plan in "$srcdir"/plans/torchrec/*.yaml; do
    check "$(basename "$plan" .yaml) under data-flow" dataflow "$plan"
done

# Steady periods as graphs: legal, as all runs, and with the results of a serial one.
graphs() { prints 0 '"graph_launches":[1-9].*"legal":true,"results_match_serial":true' "$SWRUN" --device cuda --json --graph=require "$@"; }
for plan in base sparse_dist semi_sync prefetch staged; do
    check "$plan by one launch a period" graphs --ranks 1 -n 16 "$srcdir/plans/reference/$plan.yaml"
done
check "with collectives of three ranks" graphs -n 40 "$dir/quick.yaml"
# without WHAT: the run does without graphs when CUDA refuses.
without()
{
    complains 0 "no graphs from a period on: .*$2" env SWSIM_EMULATION_FAULT="$1" "$SWRUN" --device cuda --ranks 1 -n 30 --graph "$dir/quick.yaml" &&
        grep -q 'results  *the same' "$dir/out"
}
check "a capture that cannot begin" without cudaStreamBeginCapture=1 'a graph cannot be captured'
old_nccl() { complains 0 "no graphs from a period on: $1" env SWSIM_EMULATED_NCCL=2804 "$SWRUN" --device cuda -n 30 --graph "$dir/quick.yaml"; }
check "an NCCL that is too old for graphs" old_nccl 'a graph cannot be captured: NCCL 2.8.4 is too old, 2.9 or newer'
check "a push that cannot be captured" without cudaEventRecordWithFlags=7 'cannot be captured: out of memory'
check "a graph that cannot be made" without cudaGraphInstantiate=2 'cannot be made of what was captured'
check "or uploaded" without cudaGraphUpload=1 'cannot be made of what was captured'
refused() { complains 2 "$2" env SWSIM_EMULATION_FAULT="$1" "$SWRUN" --device cuda --ranks 1 -n 30 --graph=require "$dir/quick.yaml"; }
check "which ends a run that wants them" refused cudaGraphInstantiate=1 'cannot be made of what was captured'
check "a launch that is refused" refused cudaGraphLaunch=3 'a graph cannot be launched: out of memory'
check "an illegal address in a launch" refused work=60 'rank 0.*illegal memory access'

# fault WHAT: three ranks, of which number 1 meets it.
fault() { complains "$1" "$3" env SWSIM_EMULATION_FAULT="$2" "$SWRUN" --device cuda -n 1000 --timeout 5s "$dir/quick.yaml"; }
check "an illegal address: the rank is said" fault 2 work=40@swrun-rank-1 'rank 1.*illegal memory access.*; the process can use the GPU no more: start it anew'
check "the ranks end by themselves" sh -c '! grep -q "did not end" "$1/err"' sh "$dir"
check "an error of NCCL, and what NCCL says of it" \
    fault 2 nccl=30@swrun-rank-1 'communicator dp: unhandled system error.*: call to connect failed'
check "the ranks end by themselves, too" sh -c '! grep -q "did not end" "$1/err"' sh "$dir"
# Rank 1 looks around so late that the others have ended because of its error.
cat >"$dir/late.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
typedef int await(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
    char name[16] = "";
    int result = ((await *)dlsym(RTLD_NEXT, "pthread_cond_timedwait"))(cond, mutex, until);
    pthread_getname_np(pthread_self(), name, sizeof name);
    if (strcmp(name, "rank 1") == 0) {
        pthread_mutex_unlock(mutex);
        nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
        pthread_mutex_lock(mutex);
    }
    return result;
}
END
late()
{
    complains 2 'communicator dp: unhandled system error.*: call to connect failed' env LD_PRELOAD="$dir/late.so${LD_PRELOAD:+:$LD_PRELOAD}" \
        SWSIM_EMULATION_FAULT=nccl=30@swrun-rank-1 "$SWRUN" --device cuda -n 1000 --timeout 5s "$dir/quick.yaml"
}
case ${INSTRUMENT_FLAGS-} in
*-fsanitize*) skip "a sanitizer must be loaded first: a rank that looks around late" ;;
*)
    check "a preloaded library, which makes rank 1 late" ${CC:-cc} -shared -fPIC -o "$dir/late.so" "$dir/late.c"
    check "an error comes before the ends that follow from it" late
    ;;
esac
old_abort() { complains 2 'communicator dp: unhandled system error' env SWSIM_EMULATED_NCCL=22105 SWSIM_EMULATION_FAULT=nccl=30@swrun-rank-1 \
    "$SWRUN" --device cuda -n 1000 --timeout 5s "$dir/quick.yaml" && ! grep -q "did not end" "$dir/err"; }
check "before NCCL 2.22 communicators are aborted by a thread each" old_abort
check "a push that is refused" fault 2 cudaEventRecord=90@swrun-rank-1 'rank 1, stream .*out of memory'
check "a stream that cannot be made" fault 2 cudaStreamCreateWithFlags=2@swrun-rank-1 'cannot make a stream: out of memory'
check "no memory for a communicator on one rank ends all" \
    fault 2 cudaMalloc=1@swrun-rank-2 'rank 2: no memory for communicator dp'
check "nobody had to be killed" sh -c '! grep -q "did not end" "$1/err"' sh "$dir"

# Without ties the stamps are 200 us late after a second, and a host wait seems to end before its work.
check "clocks that drift apart are tied again" prints 0 'legal *yes' env SWSIM_EMULATION_DRIFT=200 \
    "$SWRUN" --device cuda --ranks 1 --timeout 60s -n 60 "$srcdir/plans/torchrec/sparse_dist.yaml"
check "the output says how exact device times are" grep -Eq '^  clock +CUDA events, within [0-9.]+ [num]?s of' "$dir/out"
# Stamps are ms off until the second tie: the process that judges the run has to know.
check "also those of several processes" prints 0 '"clock_error_ns":[0-9]\{6\}.*"legal":true' env SWSIM_EMULATION_DRIFT=5000 SWSIM_EMULATED_GPUS=2 \
    "$SWRUN" --device cuda --json --ranks 2 --timeout 60s -n 40 "$srcdir/plans/torchrec/sparse_dist.yaml"

"$SWRUN" --device cuda -n 50000000 --timeout 5s "$dir/quick.yaml" >"$dir/out" 2>"$dir/err" </dev/null &
pid=$!
wait_until 200 are_at_work $pid && sleep 1
kill -s KILL "$(children $pid | sort -n | tail -n 1)"
ends_within 20 $pid
check "a rank is killed: the others end" test "$code" -eq 1
check "which one" said 'rank 2: its process was killed by signal 9'
check "what rank 0 was at" said "rank 0, stream main: all_to_all 'Meet' on communicator dp has not finished, whose member rank 2 is gone"
check "and rank 1" said "rank 1, stream main: all_to_all 'Meet' on communicator dp has not finished, whose member rank 2 is gone"
done_testing
