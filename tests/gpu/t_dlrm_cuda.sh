#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The DLRM of the examples on emulated CUDA, not a GPU: device_cuda.cu as nvcc compiles it, with stand-ins for cuBLAS and
# for the grids of kernels. One rank, and several as processes with NCCL (emulated), have the losses of the loop on the
# host, bit for bit: the stand-ins add up in its order, which a GPU need not.
. "${srcdir:-.}/tests/tap.sh"
plans=$srcdir/doc/examples/dlrm
dlrm=tests/dlrm_emulated
[ -x $dlrm ] || skip_all "built without CUDA, or there is no cuBLAS"
SWSIM_NCCL=$PWD/tests/cuda_emulation/libnccl.so.2 SWSIM_EMULATED_GPUS=8
export SWSIM_NCCL SWSIM_EMULATED_GPUS

losses()
{
    to=$1
    shift
    "$@" --quiet --iterations 25 >"$to" 2>"$dir/err" || { cat "$dir/err"; return 1; }
}
loop_of() { case $1 in semi_sync) echo "$dir/stale" ;; *) echo "$dir/plain" ;; esac; }
processes()
{
    size=$1 plan=$2 port=$((20000 + $$ % 20000)) failed=0 pids=
    rank=1
    while [ $rank -lt "$size" ]; do
        losses "$dir/other.$rank" $dlrm "$plan" --ranks "$size" --rank $rank --address 127.0.0.1:$port &
        pids="$pids $!"
        rank=$((rank + 1))
    done
    losses "$dir/piped" $dlrm "$plan" --ranks "$size" --rank 0 --address 127.0.0.1:$port || failed=1
    for pid in $pids; do wait "$pid" || failed=1; done
    return $failed
}

for ranks in 1 2 4 8; do
    check "the loop on the host" losses "$dir/plain.$ranks" doc/examples/dlrm/dlrm plain --ranks $ranks
    check "and the stale one" losses "$dir/stale.$ranks" doc/examples/dlrm/dlrm plain --stale --ranks $ranks
done
for plan in sparse_dist fused prefetch semi_sync; do
    check "$plan runs" losses "$dir/piped" $dlrm "$plans/$plan.yaml"
    check "with the losses of the loop" cmp "$(loop_of $plan).1" "$dir/piped"
    check "and serially" losses "$dir/piped" $dlrm "$plans/$plan.yaml" --serial
    check "with those of the plain loop" cmp "$dir/plain.1" "$dir/piped"
    for ranks in 2 4; do
        check "$ranks processes run $plan" processes $ranks "$plans/$plan.yaml"
        check "with the losses of the loop" cmp "$(loop_of $plan).$ranks" "$dir/piped"
    done
done
check "8 processes run prefetch" processes 8 "$plans/prefetch.yaml"
check "with the losses of the loop" cmp "$dir/plain.8" "$dir/piped"
for seed in 2 3 4; do
    check "other operations are late" losses "$dir/piped" env SWSIM_EMULATION_SEED=$seed $dlrm "$plans/prefetch.yaml"
    check "and the losses the same" cmp "$dir/plain.1" "$dir/piped"
done
check "what fails is told" sh -c "! $dlrm '$plans/fused.yaml' --ranks 2 2>'$dir/err' && grep -q '^usage' '$dir/err'"
done_testing
