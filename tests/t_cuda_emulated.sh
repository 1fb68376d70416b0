#!/bin/sh
# The CUDA device on emulated CUDA (tests/cuda_emulation; not a GPU): the conformance suite, with streams late
# in different ways and with a GPU for each rank; then what swrun says when something breaks. Plans that go well
# are in t_gpu_run.sh.
set -u
: "${srcdir:=.}"
. "$srcdir/tests/tap.sh"
suite=tests/t_device_emulated
SWRUN=$PWD/tests/swrun_emulated
unset SWSIM_NCCL

if [ ! -x "$suite" ]; then
    skip "built without CUDA's toolkit, which the emulation is compiled against"
    done_testing
    exit
fi
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

cat >"$dir/quick.yaml" <<'PLAN'
swplan: 1
name: quick
ranks: 3
schedule:
  Copy: {stage: 0, stream: memcpy, time: 100us, writes: [x], work: {copy: h2d, bytes: 4KiB}}
  Meet: {stage: 1, time: 100us, reads: [x], writes: [y], globally_ordered: true,
         work: {collective: all_to_all, comm: dp, bytes: 6KiB}}
intra_iter_deps: [[Meet, Copy]]
buffers: {x: {scope: iteration}, y: {scope: shared}}
PLAN

said() { grep -q -e "$1" "$dir/err" "$dir/out" || { echo "nothing like '$1' in:"; cat "$dir/out" "$dir/err"; false; }; }
# children PID: the processes it started.
children()
{
    for stat in /proc/[0-9]*/stat; do
        read -r line <"$stat" || continue
        rest=${line##*) }
        rest=${rest#* }
        test "${rest%% *}" = "$1" && echo "${line%% *}"
    done 2>/dev/null
}

for seed in 1 2 3; do
    check "conformance, seed $seed" env SWSIM_EMULATION_SEED=$seed "$suite" cuda
done
check "conformance, four GPUs" env SWSIM_EMULATED_GPUS=4 "$suite" cuda
check "conformance in one process" "$suite" cuda alone
check "no GPU is said" complains 2 'no CUDA driver or GPU' \
    env SWSIM_EMULATED_GPUS=0 "$SWRUN" --device cuda --ranks 1 -n 1 "$dir/quick.yaml"

# Steady periods as graphs: legal, as all runs, and with the results of a serial one.
graphs() { prints 0 '"graph_launches":[1-9].*"legal":true,"results_match_serial":true' "$SWRUN" --device cuda --json --graph=require "$@"; }
for plan in base sparse_dist semi_sync prefetch staged; do
    check "$plan by one launch a period" graphs --ranks 1 -n 16 "$srcdir/plans/torchrec/$plan.yaml"
done
check "with collectives of three ranks" graphs -n 40 "$dir/quick.yaml"
# without WHAT: the run does without graphs when CUDA refuses.
without()
{
    complains 0 "no graphs from a period on: .*$2" env SWSIM_EMULATION_FAULT="$1" "$SWRUN" --device cuda --ranks 1 -n 30 --graph "$dir/quick.yaml" &&
        grep -q 'results  *the same' "$dir/out"
}
check "a capture that cannot begin" without cudaStreamBeginCapture=1 'a graph cannot be captured'
check "a push that cannot be captured" without cudaEventRecordWithFlags=7 'cannot be captured: out of memory'
check "a graph that cannot be made" without cudaGraphInstantiate=2 'cannot be made of what was captured'
check "or uploaded" without cudaGraphUpload=1 'cannot be made of what was captured'
refused() { complains 2 "$2" env SWSIM_EMULATION_FAULT="$1" "$SWRUN" --device cuda --ranks 1 -n 30 --graph=require "$dir/quick.yaml"; }
check "which ends a run that wants them" refused cudaGraphInstantiate=1 'cannot be made of what was captured'
check "a launch that is refused" refused cudaGraphLaunch=3 'a graph cannot be launched: out of memory'
check "an illegal address in a launch" refused work=60 'rank 0.*illegal memory access'

# fault WHAT: three ranks, of which number 1 meets it.
fault() { complains "$1" "$3" env SWSIM_EMULATION_FAULT="$2" "$SWRUN" --device cuda -n 1000 --timeout 5s "$dir/quick.yaml"; }
check "an illegal address: the rank is said" fault 2 work=40@swrun-rank-1 'rank 1.*illegal memory access'
check "the ranks end by themselves" sh -c '! grep -q "did not end" "$1/err"' sh "$dir"
check "an error of NCCL" fault 1 nccl=30@swrun-rank-1 'communicator dp: unhandled system error'
check "the ranks end by themselves, too" sh -c '! grep -q "did not end" "$1/err"' sh "$dir"
check "a push that is refused" fault 2 cudaEventRecord=90@swrun-rank-1 'rank 1, stream .*out of memory'
check "a stream that cannot be made" fault 2 cudaStreamCreateWithFlags=2@swrun-rank-1 'cannot make a stream: out of memory'
check "no memory for a communicator on one rank ends all" \
    fault 2 cudaMalloc=1@swrun-rank-2 'rank 2: no memory for communicator dp'
check "nobody had to be killed" sh -c '! grep -q "did not end" "$1/err"' sh "$dir"

"$SWRUN" --device cuda -n 100000000 --timeout 5s "$dir/quick.yaml" >"$dir/out" 2>"$dir/err" </dev/null &
pid=$! rank2=
for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    sleep 0.2
    set -- $(children $pid | sort -n)
    test $# -eq 3 && test $try -ge 6 && rank2=$3 && break
done
kill -s KILL "$rank2"
(sleep 20; kill -s KILL $pid) 2>/dev/null &
guard=$!
wait $pid 2>/dev/null
code=$?
kill $guard 2>/dev/null
wait $guard 2>/dev/null
check "a rank is killed: the others end" test "$code" -eq 1
check "which one" said 'rank 2: its process was killed by signal 9'
check "what rank 0 was at" said "rank 0, stream default: all_to_all 'Meet' on communicator dp has not finished, whose member rank 2 is gone"
check "and rank 1" said "rank 1, stream default: all_to_all 'Meet' on communicator dp has not finished, whose member rank 2 is gone"
done_testing
